// SPDX-License-Identifier: GPL-2.0
/*
 * What a call is: its options, what both ends agree on over the link, and what the recording
 * says of that.
 */
#include "streamer/call/state.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "streamer/call/choose.h"
#include "streamer/meet/words.h"
#include "streamer/options.h"
#include "streamer/outgoing/choice.h"
#include "streamer/rtp/ecn.h"
#include "streamer/rtp/wire.h"

#define PORT_DEFAULT 5090
#define PORT_LEAST 1024
#define PORT_MOST (65535 - 3) /* four in a row */
#define PORT_TRIES 16

/* RFC 8837, table 1: sound, and interactive video, of medium priority. */
const guint call_dscp[CALL_MEDIA] = {[CALL_VIDEO] = 36, [CALL_AUDIO] = 46};

/* Will there be something to see, and to be seen in? */
static gboolean displays_fit(const struct call *c, GError **error)
{
	if ((strcmp(c->sink, "window") && !c->self_view && strcmp(c->source, "screen")) ||
	    call_env("DISPLAY") || call_env("WAYLAND_DISPLAY"))
		return TRUE;
	g_set_error(error, USAGE_ERROR, 0,
		    "there is no display: give --sink none or --sink FILE.y4m, no --self-view, and "
		    "a --source other than screen");
	return FALSE;
}

/*
 * What is none of these words is a file, which may come later if it is read: so a word that is
 * mistyped must not be one. @end: of the names of files that are written; NULL: it is read.
 */
static gboolean word_fits(const char *option, const char *value, const char *device,
			  const char *words, const char *end, GError **error)
{
	char **known = g_strsplit(words, ", ", -1);
	gboolean ok = choose_is(value, device) || g_strv_contains((const char **)known, value);

	g_strfreev(known);
	if (!ok)
		ok = end ? g_str_has_suffix(value, end)
			 : strpbrk(value, "./") || g_file_test(value, G_FILE_TEST_EXISTS);
	if (!ok)
		g_set_error(error, USAGE_ERROR, 0, "%s %s: must be %s, %s, or a file%s%s", option,
			    value, device, words, end ? " whose name ends with " : "",
			    end ? end : ", of which none has that name");
	return ok;
}

static gboolean words_fit(const struct call *c, GError **error)
{
	return word_fits("--source", c->source, "camera", "screen, test, none", NULL, error) &&
	       word_fits("--audio", c->audio, "mic", "test, none", NULL, error) &&
	       word_fits("--sink", c->sink, "window", "none", ".y4m", error) &&
	       word_fits("--audio-sink", c->audio_sink, "auto", "none", ".wav", error);
}

/* Only what is played is known, and only a microphone hears it. */
static gboolean parse_echo(struct call *c, GError **error)
{
	const char *text = c->echo_text ? c->echo_text : "auto";
	gboolean devices = choose_is(c->audio, "mic") && choose_is(c->audio_sink, "auto");
	gboolean on = !strcmp(text, "on");

	if (!on && strcmp(text, "off") && strcmp(text, "auto")) {
		g_set_error(error, USAGE_ERROR, 0, "--echo-cancel %s: must be on, off or auto",
			    text);
		return FALSE;
	}
	if (on && !devices) {
		g_set_error(
			error, USAGE_ERROR, 0,
			"--echo-cancel on needs a microphone and a loudspeaker: --audio mic and "
			"--audio-sink auto");
		return FALSE;
	}
	c->cancels = devices && strcmp(text, "off");
	c->must_cancel = on;
	return TRUE;
}

gboolean call_parse(struct call *c, int argc, char **argv, GError **error)
{
	GOptionEntry entries[] = {
		{"listen", 0, 0, G_OPTION_ARG_NONE, &c->listen,
		 "Wait for a call, on the address given or on all", NULL},
		{"meet", 0, 0, G_OPTION_ARG_STRING, &c->meet_text,
		 "Meet the other end, which gives this option too, at this rendezvous: neither "
		 "need be reachable",
		 "HOST[:PORT]"},
		{"secret", 0, 0, G_OPTION_ARG_FILENAME, &c->secret_path,
		 "File with the secret of both ends: 16 bytes or more", "FILE"},
		{"source", 0, 0, G_OPTION_ARG_FILENAME, &c->source,
		 "Picture: camera (default), camera:NAME, screen, test, a file, or none", "WHAT"},
		{"size", 0, 0, G_OPTION_ARG_STRING, &c->size_text,
		 "Size of the picture sent, except from a .y4m file (640x360)", "WIDTHxHEIGHT"},
		{"fps", 0, 0, G_OPTION_ARG_INT, &c->fps,
		 "Pictures a second, except from a .y4m file, which has its own (30)", "N"},
		{"audio", 0, 0, G_OPTION_ARG_FILENAME, &c->audio,
		 "Sound: mic (default), mic:NAME, test, a file, or none", "WHAT"},
		{"sink", 0, 0, G_OPTION_ARG_FILENAME, &c->sink,
		 "Peer's picture: window (default), a .y4m file, or none", "WHAT"},
		{"audio-sink", 0, 0, G_OPTION_ARG_FILENAME, &c->audio_sink,
		 "Peer's sound: auto (default), auto:NAME, a .wav file, or none", "WHAT"},
		{"echo-cancel", 0, 0, G_OPTION_ARG_STRING, &c->echo_text,
		 "Take the loudspeaker's sound out of the microphone's (auto: where there are "
		 "both)",
		 "on|off|auto"},
		{"self-view", 0, 0, G_OPTION_ARG_NONE, &c->self_view, "Show your own picture, too",
		 NULL},
		{"muted", 0, 0, G_OPTION_ARG_NONE, &c->muted,
		 "Start muted; key m or SIGUSR1 toggles", NULL},
		{"camera-off", 0, 0, G_OPTION_ARG_NONE, &c->dark,
		 "Start with the camera off; key c or SIGUSR2 toggles", NULL},
		{"name", 0, 0, G_OPTION_ARG_FILENAME, /* any bytes */ &c->name,
		 "Name that the peer sees (host name)", "TEXT"},
		{"rate-max", 0, 0, G_OPTION_ARG_STRING, &c->rate_max_text,
		 "Highest rate of a picture, either way, headers included (3mbit)", "BPS"},
		{"rate-min", 0, 0, G_OPTION_ARG_STRING, &c->rate_min_text,
		 "Lowest rate of the picture (200kbit)", "BPS"},
		{"controller", 0, 0, G_OPTION_ARG_STRING, &c->controller,
		 "Rate controller of the picture (auto); an unknown name lists them",
		 "NAME[:OPTION=VALUE,...]"},
		{"encoder", 0, 0, G_OPTION_ARG_STRING, &c->encoder,
		 "GStreamer encoder with a live bit rate, and its properties (" OWN_ENCODER ")",
		 "ELEMENT"},
		{"carrier", 0, 0, G_OPTION_ARG_STRING, &c->carrier,
		 "Let routers write rates into probes beside the picture, or (icmp) nowhere",
		 "icmp|probe"},
		{"ecn", 0, 0, G_OPTION_ARG_STRING, &c->ecn_text,
		 "Send the picture as ECN-capable and lower its rate when packets are marked (off)",
		 "off|ect0|ect1"},
		{"port", 0, 0, G_OPTION_ARG_INT, &c->port,
		 "UDP port of the picture; the sound's is two above (free ones)", "PORT"},
		{"ice", 0, 0, G_OPTION_ARG_STRING, &c->ice_text,
		 "Find the path of media by ICE if the peer does, too (auto: with --stun, "
		 "--turn or --meet)",
		 "on|off|auto"},
		{"stun", 0, 0, G_OPTION_ARG_STRING, &c->stun_text,
		 "Server that tells this host its address as seen from outside", "HOST[:PORT]"},
		{"turn", 0, 0, G_OPTION_ARG_STRING, &c->turn_text,
		 "Relay for media that find no other path", "USER@HOST[:PORT]"},
		{"turn-secret", 0, 0, G_OPTION_ARG_FILENAME, &c->turn_secret_path,
		 "File with that user's password", "FILE"},
		{"dscp", 0, 0, G_OPTION_ARG_NONE, &c->dscp, "Mark packets: sound EF, picture AF42",
		 NULL},
		{"rtx", 0, 0, G_OPTION_ARG_NONE, &c->out.repairs.rtx,
		 "Retransmit lost packets of the picture and request them if the peer does, too",
		 NULL},
		{"fec", 0, 0, G_OPTION_ARG_INT, &c->fec,
		 "Add PERCENT of forward error correction to the picture", "PERCENT"},
		{"record", 0, 0, G_OPTION_ARG_FILENAME, &c->record_dir,
		 "Write the logs of the call to DIR, for paqm-lab report", "DIR"},
		{"duration", 0, 0, G_OPTION_ARG_DOUBLE, &c->duration, "Hang up after S seconds",
		 "S"},
		{"paqmd", 0, 0, G_OPTION_ARG_FILENAME, &c->paqmd,
		 "Socket of the feedback daemon, or none ($PAQM_SOCKET, /run/paqmd/client.sock)",
		 "PATH|none"},
		{0},
	};

	if (!parse_options("[HOST[:PORT]]", "Two-way picture and sound, from host to host.",
			   entries, &argc, &argv, error))
		return FALSE;
	if (argc > 2 || (argc < 2 && !c->listen && !c->meet_text)) {
		g_set_error(error, USAGE_ERROR, 0,
			    argc > 2 ? "one host at a time; see paqm-streamer call --help"
				     : "whom to call? give HOST, --listen or --meet HOST");
		return FALSE;
	}
	if (c->meet_text && (argc == 2 || c->listen)) {
		g_set_error(error, USAGE_ERROR, 0,
			    "with --meet both ends give it and the same secret: omit %s",
			    c->listen ? "--listen" : argv[1]);
		return FALSE;
	}
	if (!c->secret_path) {
		g_set_error(error, USAGE_ERROR, 0,
			    "--secret FILE is missing: both ends need the same; make one with "
			    "(umask 077; head -c 24 /dev/urandom | base64 >FILE)");
		return FALSE;
	}
	if (argc == 2 && !(c->where = parse_where(argv[1], PORT_DEFAULT, error)))
		return FALSE;
	if (c->meet_text && !(c->where = parse_where(c->meet_text, MEET_PORT, error)))
		return FALSE;
	if (!parse_rates(c->rate_max_text, c->rate_min_text, 200000, &c->out.rate_max,
			 &c->out.rate_min, error))
		return FALSE;
	c->out.kind = parse_controller(c->controller, c->out.control, error);
	if (!c->out.kind || !parse_ecn(c->ecn_text, c->out.kind, &c->out.ecn, error))
		return FALSE;
	if (!parse_carrier(c->carrier, &c->out.carrier, error))
		return FALSE;
	if (c->out.carrier == CARRIER_IN_BAND) {
		g_set_error(error, USAGE_ERROR, 0,
			    "--carrier in-band: a call is encrypted, and routers cannot write into "
			    "headers that are authenticated; use --carrier probe");
		return FALSE;
	}
	if (!in_range("--fps", c->fps, 1, SOURCE_FPS_MAX, " pictures a second", error) ||
	    !in_range("--fec", c->fec, 0, FEC_MOST, " per cent", error) ||
	    (c->port && !in_range("--port", c->port, PORT_LEAST, PORT_MOST, "", error)) ||
	    !duration_fits(c->duration, error))
		return FALSE;
	c->out.interval = 1.0 / c->fps;
	if (!size_parse(&c->width, &c->height, c->size_text ? c->size_text : "640x360", error) ||
	    !call_parse_ice(c, error))
		return FALSE;
	if (c->name && !g_utf8_validate(c->name, -1, NULL)) {
		g_set_error(error, USAGE_ERROR, 0, "--name must be UTF-8");
		return FALSE;
	}
	c->source = c->source ? c->source : g_strdup("camera");
	c->audio = c->audio ? c->audio : g_strdup("mic");
	c->sink = c->sink ? c->sink : g_strdup("window");
	c->audio_sink = c->audio_sink ? c->audio_sink : g_strdup("auto");
	return words_fit(c, error) && displays_fit(c, error) && parse_echo(c, error);
}

/* Is there the encoder? What it leaves to headers depends on the way to the peer. */
gboolean call_use_encoder(struct call *c, GError **error)
{
	g_clear_pointer(&c->out.adaptor, adaptor_free);
	c->out.encoder = c->encoder;
	c->out.gop = OUTGOING_GOP;
	c->out.repairs.fec = (guint)c->fec;
	c->out.headers = wire_headers(c->ipv6, true);
	if (!outgoing_check(&c->out, error))
		return FALSE;
	if (c->out.adaptor || MAX(c->width, c->height) <= OWN_SIDE_MAX)
		return TRUE;
	g_set_error(error, USAGE_ERROR, 0,
		    "--size %dx%d: " OWN_ENCODER
		    " takes no side above %d; choose another --encoder",
		    c->width, c->height, OWN_SIDE_MAX);
	return FALSE;
}

/* One port for RTP, and the next one: for RTCP, should the peer want it there. */
static gboolean open_pair(struct call *c, enum call_media media, GInetSocketAddress *any,
			  guint16 port, GError **error)
{
	for (int attempt = 0; attempt < PORT_TRIES; attempt++) {
		g_clear_error(error);
		c->rtp[media] = open_socket(any, port, error);
		if (!c->rtp[media])
			return FALSE;
		c->rtcp[media] = open_socket(any, socket_port(c->rtp[media]) + 1, error);
		if (c->rtcp[media])
			return TRUE;
		g_clear_object(&c->rtp[media]);
		if (port)
			return FALSE;
	}
	return FALSE;
}

/* At the ports that the peer has been told of, those chosen, or any. */
gboolean call_open_sockets(struct call *c, GError **error)
{
	GInetSocketAddress *peer = link_peer(c->link);
	GInetSocketAddress *any = address_any(g_socket_address_get_family(G_SOCKET_ADDRESS(peer)));
	gboolean ok = TRUE;

	for (int i = 0; i < CALL_MEDIA && ok; i++) {
		guint16 port = c->mine.stream[i].port;

		if (!port && c->port)
			port = (guint16)(c->port + 2 * i);
		ok = open_pair(c, i, any, port, error);
		if (!ok)
			break;
		c->mine.stream[i].port = socket_port(c->rtp[i]);
		socket_use_link(c->rtp[i], peer);
		socket_use_link(c->rtcp[i], peer);
		ok = !c->dscp || (dscp_send_as(c->rtp[i], call_dscp[i], error) &&
				  dscp_send_as(c->rtcp[i], call_dscp[i], error));
	}
	g_object_unref(any);
	return ok;
}

/* What the peer will be told: media go where the link goes, or by ICE. */
static gboolean prepare_offer(struct call *c, GError **error)
{
	gboolean ok;

	for (int i = 0; i < CALL_MEDIA; i++) {
		struct offer_stream *st = &c->mine.stream[i];

		st->sends = strcmp(i == CALL_VIDEO ? c->source : c->audio, "none") != 0;
		st->ssrc = g_random_int() | 1;
		if (getentropy(st->key, OFFER_KEY) < 0)
			g_error("no random numbers: %s", g_strerror(errno));
	}
	c->ipv6 = g_socket_address_get_family(G_SOCKET_ADDRESS(link_peer(c->link))) ==
		  G_SOCKET_FAMILY_IPV6;
	ok = call_open_sockets(c, error) && (!c->wants_ice || call_offer_ice(c, error));
	offer_printable(c->mine.name, OFFER_NAME, c->name ? c->name : g_get_host_name());
	c->mine.rate_max = c->out.rate_max;
	c->mine.rtx = c->out.repairs.rtx;
	c->mine.tells = TRUE;
	c->mine.mux = TRUE;
	c->mine.corrects = TRUE;
	c->mine.mends = TRUE;
	c->mine.returns = TRUE;
	if (c->out.carrier == CARRIER_PROBE)
		c->mine.nonce = c->out.nonce = g_random_int() | 1;
	ok = ok && call_use_encoder(c, error);
	if (ok && c->out.adaptor)
		c->mine.stream[CALL_VIDEO].payload = adaptor_payload(c->out.adaptor);
	c->mine.fec = (guint)c->fec;
	c->out.ts_offset = g_random_int();
	c->out.first_seq = g_random_int() & 0x7fff;
	return ok;
}

gboolean call_agree(struct call *c, GError **error)
{
	GBytes *secret = link_secret(c->secret_path, LINK_SECRET_MIN, error);
	guint16 port = c->where ? g_network_address_get_port(c->where) : PORT_DEFAULT;
	char *line, *answer = NULL;
	gboolean ok;

	if (!secret)
		return FALSE;
	if (!call_use_encoder(c, error)) {
		g_bytes_unref(secret);
		return FALSE;
	}
	printf("%s %s%sport %u",
	       c->meet_text ? "meeting at"
	       : c->listen  ? "waiting for a call on"
			    : "calling",
	       c->where ? g_network_address_get_hostname(c->where) : "", c->where ? " " : "", port);
	if (c->port)
		printf("; media will come to UDP ports %d and %d", c->port, c->port + 2);
	printf("\n");
	fflush(stdout);
	c->link = c->meet_text ? link_meet(c->where, secret, &c->listen, error)
		  : c->listen  ? link_listen(c->where, port, secret, error)
			       : link_connect(c->where, secret, error);
	g_bytes_unref(secret);
	if (!c->link || !prepare_offer(c, error))
		return FALSE;
	line = offer_write(&c->mine);
	ok = link_exchange(c->link, line, &answer, error) &&
	     offer_read(&c->theirs, answer, strlen(answer), error);
	g_free(line);
	g_free(answer);
	if (!ok)
		return FALSE;
	if (!codec_of_payload(call_payload(&c->theirs))) {
		g_set_error(error, USAGE_ERROR, 0,
			    "the peer's pictures have payload type %u, unknown here; both "
			    "ends need the same program",
			    call_payload(&c->theirs));
		return FALSE;
	}
	if (c->theirs.stream[CALL_VIDEO].sends &&
	    !codec_is_known(codec_of_payload(call_payload(&c->theirs)), error)) {
		g_prefix_error(error, "the peer's pictures: ");
		return FALSE;
	}
	/* a receiver may ask for less than we would send */
	c->out.rate_max = MIN(c->out.rate_max, c->theirs.rate_max);
	c->out.rate_min = MIN(c->out.rate_min, c->out.rate_max);
	c->out.repairs.rtx = c->out.repairs.rtx && c->theirs.rtx;
	c->fec = c->theirs.corrects ? c->fec : 0;
	c->out.stopped = c->theirs.tells;
	link_watch(c->link, call_on_line, c);
	if (!call_use_ice(c, error))
		return FALSE;
	for (int i = 0; i < CALL_MEDIA && c->theirs.mux; i++)
		g_clear_object(&c->rtcp[i]);
	printf("talking to %s; picture at UDP port %u, sound at %u%s\n", c->theirs.name,
	       c->mine.stream[CALL_VIDEO].port, c->mine.stream[CALL_AUDIO].port,
	       c->theirs.mux ? "" : ", reports at the ports above");
	fflush(stdout);
	return TRUE;
}

static json_t *stream_json(const struct offer_stream *st)
{
	return json_pack("{s:I, s:i, s:b}", "ssrc", (json_int_t)st->ssrc, "port", st->port, "sent",
			 st->sends);
}

/* What the recording says of the call itself; keys stay out of it. */
gboolean call_write_config(struct call *c, GError **error)
{
	char *peer, *path, *text;
	gboolean ok;
	json_t *root;

	if (!c->rec.dir)
		return TRUE;
	/* not the rendezvous, which is everybody's */
	peer = address_host(c->meet_text ? c->to : link_peer(c->link));
	root = json_pack(
		"{s:i, s:s, s:s, s:s, s:s, s:b, s:I, s:I, s:I, s:b, s:b, s:i, s:f, s:o, s:o}",
		"version", 1, "program", PAQM_VERSION, "name", c->mine.name, "peer", peer,
		"peer_name", c->theirs.name, "listened", c->listen, "t0_ns",
		(json_int_t)realtime_ns(), "rate_max", (json_int_t)c->out.rate_max, "rate_min",
		(json_int_t)c->out.rate_min, "rtx", c->out.repairs.rtx, "rtcp_mux", c->theirs.mux,
		"fec", c->fec, "fps", 1 / c->out.interval, "video",
		stream_json(&c->mine.stream[CALL_VIDEO]), "audio",
		stream_json(&c->mine.stream[CALL_AUDIO]));
	for (int i = 0; i < CALL_MEDIA; i++)
		if (c->path[i])
			json_object_set_new(json_object_get(root, call_media_names[i]), "path",
					    json_string(c->path[i]));
	text = json_dumps(root, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
	path = g_build_filename(c->rec.dir, "call.json", NULL);
	ok = g_file_set_contents(path, text, -1, error);
	g_free(path);
	free(text);
	json_decref(root);
	g_free(peer);
	return ok;
}
