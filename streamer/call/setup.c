// SPDX-License-Identifier: GPL-2.0
/*
 * What a call is: its options, what both ends agree on over the link, and what the recording
 * says of that.
 */
#include "streamer/call/call.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "streamer/options.h"

#define PORT_DEFAULT 5090

static gboolean has_display(void)
{
	const char *x = g_getenv("DISPLAY"), *wayland = g_getenv("WAYLAND_DISPLAY");

	return (x && *x) || (wayland && *wayland);
}

gboolean call_parse(struct call *c, int argc, char **argv, GError **error)
{
	GOptionEntry entries[] = {
		{"listen", 0, 0, G_OPTION_ARG_NONE, &c->listen,
		 "Wait for a call, on the address given or on all", NULL},
		{"secret", 0, 0, G_OPTION_ARG_FILENAME, &c->secret_path,
		 "File with what both ends know: 16 bytes or more", "FILE"},
		{"source", 0, 0, G_OPTION_ARG_FILENAME, &c->source,
		 "Picture: camera (default), /dev/videoN, screen, test, a file, or none", "WHAT"},
		{"audio", 0, 0, G_OPTION_ARG_FILENAME, &c->audio,
		 "Sound: mic (default), test, a file, or none", "WHAT"},
		{"sink", 0, 0, G_OPTION_ARG_FILENAME, &c->sink,
		 "Peer's picture: window (default), a .y4m file, or none", "WHAT"},
		{"audio-sink", 0, 0, G_OPTION_ARG_FILENAME, &c->audio_sink,
		 "Peer's sound: auto (default), a .wav file, or none", "WHAT"},
		{"self-view", 0, 0, G_OPTION_ARG_NONE, &c->self_view, "Show the own picture, too",
		 NULL},
		{"muted", 0, 0, G_OPTION_ARG_NONE, &c->muted,
		 "Begin without sound; key m or SIGUSR1 changes it", NULL},
		{"name", 0, 0, G_OPTION_ARG_STRING, &c->name, "What the peer sees (host name)",
		 "TEXT"},
		{"rate-max", 0, 0, G_OPTION_ARG_STRING, &c->rate_max_text,
		 "Highest rate of a picture, either way, headers included (3mbit)", "BPS"},
		{"rate-min", 0, 0, G_OPTION_ARG_STRING, &c->rate_min_text,
		 "Lowest rate of the picture (200kbit)", "BPS"},
		{"rtx", 0, 0, G_OPTION_ARG_NONE, &c->rtx,
		 "Send lost pictures again and ask for them, if the peer does so, too", NULL},
		{"fec", 0, 0, G_OPTION_ARG_INT, &c->fec,
		 "Add so many per cent of packets that correct losses of the picture", "PERCENT"},
		{"record", 0, 0, G_OPTION_ARG_FILENAME, &c->record_dir,
		 "Keep the logs of the call there, for paqm-lab report", "DIR"},
		{"duration", 0, 0, G_OPTION_ARG_DOUBLE, &c->duration, "Hang up after so long", "S"},
		{"paqmd", 0, 0, G_OPTION_ARG_FILENAME, &c->paqmd,
		 "Socket of the feedback daemon, or none ($PAQM_SOCKET, /run/paqmd/client.sock)",
		 "PATH|none"},
		{0},
	};
	const char *where;

	if (!parse_options("[HOST[:PORT]]", "Two-way picture and sound, from host to host.",
			   entries, &argc, &argv, error))
		return FALSE;
	if (argc > 2 || (argc < 2 && !c->listen)) {
		g_set_error(error, USAGE_ERROR, 0,
			    argc > 2 ? "one host at a time; see paqm-streamer call --help"
				     : "whom to call? give HOST or --listen");
		return FALSE;
	}
	if (!c->secret_path) {
		g_set_error(error, USAGE_ERROR, 0,
			    "--secret FILE is missing: both ends need the same; make one with "
			    "(umask 077; head -c 24 /dev/urandom | base64 >FILE)");
		return FALSE;
	}
	where = argc == 2 ? argv[1] : "0.0.0.0";
	c->address = parse_address(where, PORT_DEFAULT, error);
	if (!c->address ||
	    !parse_rate(c->rate_max_text ? c->rate_max_text : "3mbit", &c->rate_max, error) ||
	    !parse_rate(c->rate_min_text ? c->rate_min_text : "200kbit", &c->rate_min, error))
		return FALSE;
	if (c->rate_min > c->rate_max || c->duration < 0 || c->duration > 1e6) {
		g_set_error(error, USAGE_ERROR, 0,
			    "an option is out of range: --rate-min must not exceed --rate-max, "
			    "--duration not be negative");
		return FALSE;
	}
	if (c->fec < 0 || c->fec > FEC_MOST) {
		g_set_error(error, USAGE_ERROR, 0, "--fec %d: must be 0 to %d per cent", c->fec,
			    FEC_MOST);
		return FALSE;
	}
	c->source = c->source ? c->source : g_strdup("camera");
	c->audio = c->audio ? c->audio : g_strdup("mic");
	c->sink = c->sink ? c->sink : g_strdup("window");
	c->audio_sink = c->audio_sink ? c->audio_sink : g_strdup("auto");
	if ((!strcmp(c->sink, "window") || c->self_view || !strcmp(c->source, "screen")) &&
	    !has_display()) {
		g_set_error(error, USAGE_ERROR, 0,
			    "there is no display: give --sink none or --sink FILE.y4m, no "
			    "--self-view, and another --source than screen");
		return FALSE;
	}
	return TRUE;
}

/* Before the link: what the peer will be told. */
static gboolean prepare_offer(struct call *c, GError **error)
{
	GSocketFamily family =
		g_inet_address_get_family(g_inet_socket_address_get_address(c->address));
	GInetAddress *any = g_inet_address_new_any(family);
	gboolean ok = TRUE;

	for (int i = 0; i < CALL_MEDIA && ok; i++) {
		struct offer_stream *st = &c->mine.stream[i];

		st->sends = strcmp(i == CALL_VIDEO ? c->source : c->audio, "none") != 0;
		st->ssrc = g_random_int() | 1;
		if (getentropy(st->key, OFFER_KEY) < 0)
			g_error("no random numbers: %s", g_strerror(errno));
		ok = FALSE;
		for (int attempt = 0; attempt < 16 && !ok; attempt++) {
			c->rtp[i] = open_socket(any, 0, error);
			if (!c->rtp[i])
				break;
			c->rtcp[i] = open_socket(any, socket_port(c->rtp[i]) + 1, NULL);
			ok = c->rtcp[i] != NULL;
			if (!ok)
				g_clear_object(&c->rtp[i]);
		}
		if (ok)
			st->port = socket_port(c->rtp[i]);
		else if (error && !*error)
			g_set_error(error, USAGE_ERROR, 0,
				    "no two neighbouring UDP ports are free");
	}
	g_object_unref(any);
	g_strlcpy(c->mine.name, c->name ? c->name : g_get_host_name(), OFFER_NAME);
	c->mine.rate_max = c->rate_max;
	c->mine.rtx = c->rtx;
	c->mine.corrects = TRUE;
	c->mine.fec = (guint)c->fec;
	c->ts_offset = g_random_int();
	c->first_seq = g_random_int() & 0x7fff;
	return ok;
}

gboolean call_agree(struct call *c, GError **error)
{
	GBytes *secret = link_secret(c->secret_path, error);
	char *line, *answer = NULL;
	gboolean ok;

	if (!secret || !prepare_offer(c, error)) {
		g_clear_pointer(&secret, g_bytes_unref);
		return FALSE;
	}
	printf(c->listen ? "waiting for a call on port %u\n" : "calling port %u\n",
	       g_inet_socket_address_get_port(c->address));
	fflush(stdout);
	c->link = c->listen ? link_listen(c->address, secret, error)
			    : link_connect(c->address, secret, error);
	g_bytes_unref(secret);
	if (!c->link)
		return FALSE;
	line = offer_write(&c->mine);
	ok = link_exchange(c->link, line, &answer, error) &&
	     offer_read(&c->theirs, answer, strlen(answer), error);
	g_free(line);
	g_free(answer);
	if (!ok)
		return FALSE;
	/* a receiver may ask for less than we would send */
	c->rate_max = MIN(c->rate_max, c->theirs.rate_max);
	c->rate_min = MIN(c->rate_min, c->rate_max);
	c->rtx = c->rtx && c->theirs.rtx;
	c->fec = c->theirs.corrects ? c->fec : 0;
	printf("talking to %s\n", c->theirs.name);
	fflush(stdout);
	return TRUE;
}

/* What the recording says of the call itself; keys stay out of it. */
gboolean call_write_config(struct call *c, GError **error)
{
	char *peer, *path, *text, *name;
	gboolean ok;

	if (!c->rec.dir)
		return TRUE;
	peer = g_inet_address_to_string(link_peer(c->link));
	name = g_strescape(c->mine.name, NULL);
	text = g_strdup_printf(
		"{\n \"version\": 1,\n \"program\": \"%s\",\n \"name\": \"%s\",\n"
		" \"peer\": \"%s\",\n \"peer_name\": \"%s\",\n \"listened\": %s,\n"
		" \"t0_ns\": %" G_GINT64_FORMAT ",\n \"rate_max\": %" G_GUINT64_FORMAT
		",\n \"rate_min\": %" G_GUINT64_FORMAT
		",\n \"rtx\": %s,\n \"fec\": %d,\n \"fps\": %.6f,\n"
		" \"video\": {\"ssrc\": %u, \"port\": %u, \"sent\": %s},\n"
		" \"audio\": {\"ssrc\": %u, \"port\": %u, \"sent\": %s}\n}\n",
		PAQM_VERSION, name, peer, c->theirs.name, c->listen ? "true" : "false",
		realtime_ns(), c->rate_max, c->rate_min, c->rtx ? "true" : "false", c->fec,
		1 / c->interval, c->mine.stream[CALL_VIDEO].ssrc, c->mine.stream[CALL_VIDEO].port,
		c->mine.stream[CALL_VIDEO].sends ? "true" : "false",
		c->mine.stream[CALL_AUDIO].ssrc, c->mine.stream[CALL_AUDIO].port,
		c->mine.stream[CALL_AUDIO].sends ? "true" : "false");
	path = g_build_filename(c->rec.dir, "call.json", NULL);
	ok = g_file_set_contents(path, text, -1, error);
	g_free(path);
	g_free(text);
	g_free(name);
	g_free(peer);
	return ok;
}
