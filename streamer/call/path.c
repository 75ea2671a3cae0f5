// SPDX-License-Identifier: GPL-2.0
/*
 * ICE of a call: what the options say, what the peer is told in place of two sockets, and which
 * path the stream of pictures takes: who tells rates must know it, so paqmd is told of each.
 */
#include <string.h>
#include <unistd.h>

#include "streamer/call/state.h"
#include "streamer/options.h"
#include "streamer/rtp/wire.h"

static gboolean parse_turn(struct call *c, GError **error)
{
	const char *at = strrchr(c->turn_text, '@');

	if (!at || at == c->turn_text || !g_utf8_validate(c->turn_text, -1, NULL)) {
		g_set_error(error, USAGE_ERROR, 0,
			    "--turn '%s': give USER@HOST or USER@HOST:PORT, in UTF-8",
			    c->turn_text);
		return FALSE;
	}
	if (!c->turn_secret_path) {
		g_set_error(error, USAGE_ERROR, 0,
			    "--turn needs --turn-secret FILE, with the password of that user");
		return FALSE;
	}
	c->turn_user = g_strndup(c->turn_text, (gsize)(at - c->turn_text));
	c->turn_secret = link_secret(c->turn_secret_path, 1, error);
	c->turn = c->turn_secret ? parse_address(at + 1, ICE_PORT, error) : NULL;
	return c->turn != NULL;
}

gboolean call_parse_ice(struct call *c, GError **error)
{
	const char *ice = c->ice_text ? c->ice_text : "auto";
	gboolean off = !strcmp(ice, "off");

	if (!off && strcmp(ice, "on") && strcmp(ice, "auto")) {
		g_set_error(error, USAGE_ERROR, 0, "--ice '%s': must be on, off or auto", ice);
		return FALSE;
	}
	if (off && (c->stun_text || c->turn_text)) {
		g_set_error(error, USAGE_ERROR, 0,
			    "--stun and --turn need ICE: omit them, or omit --ice off");
		return FALSE;
	}
	if (off && c->meet_text) {
		g_set_error(error, USAGE_ERROR, 0,
			    "--meet needs ICE to find the path of media: omit --ice off");
		return FALSE;
	}
	if (c->meet_text && !c->stun_text && !c->turn_text)
		g_printerr(
			"paqm-streamer: --meet without --stun or --turn: unless both ends are in "
			"one network, media will probably find no path\n");
	if (c->turn_secret_path && !c->turn_text) {
		g_set_error(error, USAGE_ERROR, 0, "--turn-secret has no effect without --turn");
		return FALSE;
	}
	c->wants_ice = !strcmp(ice, "on") || c->stun_text || c->turn_text || c->meet_text;
	if (c->stun_text && !(c->stun = parse_address(c->stun_text, ICE_PORT, error)))
		return FALSE;
	return !c->turn_text || parse_turn(c, error);
}

gboolean call_offer_ice(struct call *c, GError **error)
{
	struct ice_params p = {
		.controlling = !c->listen, .stun = c->stun, .turn = c->turn, .user = c->turn_user};
	char *secret = NULL;

	if (c->turn_secret) {
		gsize len;
		const char *bytes = g_bytes_get_data(c->turn_secret, &len);

		p.secret = secret = g_strndup(bytes, len);
	}
	/* they have found ports, which libnice needs for itself */
	for (int i = 0; i < CALL_MEDIA; i++) {
		g_clear_object(&c->rtp[i]);
		g_clear_object(&c->rtcp[i]);
		p.port[i] = c->mine.stream[i].port;
		p.dscp[i] = c->dscp ? call_dscp[i] : 0;
	}
	c->ice = ice_new(&p, &c->mine, error);
	g_free(secret);
	return c->ice != NULL;
}

/* Where the pictures go now. */
static void take_path(struct call *c, const struct ice_path *path)
{
	g_set_object(&c->rtp[CALL_VIDEO], path->socket);
	g_set_object(&c->from, path->from);
	g_set_object(&c->to, path->to);
	c->out.socket = c->rtp[CALL_VIDEO];
	c->out.from = c->from;
	c->out.dest = c->to;
	c->out.wrapped = path->relayed;
}

/* FALSE: it is the one that there was. */
static gboolean say_path(struct call *c, enum call_media media, const struct ice_path *path)
{
	char *text = ice_path_text(path), *event;

	if (!g_strcmp0(text, c->path[media])) {
		g_free(text);
		return FALSE;
	}
	g_free(c->path[media]);
	c->path[media] = text;
	printf("%s%s goes %s\n", isatty(STDOUT_FILENO) ? "\r\033[K" : "",
	       media == CALL_VIDEO ? "picture" : "sound", text);
	fflush(stdout);
	event = g_strdup_printf("%s %s", call_media_names[media], text);
	call_record_event(&c->rec, "path", event);
	g_free(event);
	return TRUE;
}

static void on_found(gpointer data)
{
	struct offer_ice more[CALL_MEDIA];
	struct call *c = data;
	char *line;

	if (!ice_more(c->ice, more))
		return;
	line = note_write_candidates(more);
	link_send(c->link, line);
	g_free(line);
}

gboolean call_use_ice(struct call *c, GError **error)
{
	if (c->meet_text && !offer_ice(&c->mine, &c->theirs)) {
		g_set_error(
			error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED,
			"the peer has no ICE, or no address for it, and at a rendezvous nothing "
			"else tells where to send media");
		return FALSE;
	}
	if (!c->ice || !offer_ice(&c->mine, &c->theirs)) {
		if (c->theirs.stream[CALL_VIDEO].ice.ufrag[0])
			printf("the peer could find a path by ICE: give --ice on here, too\n");
		if (!c->ice)
			return TRUE;
		printf("the peer does not use ICE; media go from host to host\n");
		g_clear_pointer(&c->ice, ice_free);
		return call_open_sockets(c, error);
	}
	if (!ice_connect(c->ice, &c->theirs, on_found, c, error)) {
		if (c->why) {
			g_clear_error(error);
			g_set_error(error, G_IO_ERROR, G_IO_ERROR_CONNECTION_CLOSED,
				    "ICE has found no path for media to the peer yet, and %s: does "
				    "it say why? If a network in between blocks every other path, "
				    "one end needs --turn",
				    c->why);
		}
		return FALSE;
	}
	for (int i = 0; i < CALL_MEDIA; i++) {
		struct ice_path path;

		ice_path(c->ice, i, &path);
		say_path(c, i, &path);
		if (i == CALL_VIDEO) {
			c->ipv6 = g_socket_address_get_family(G_SOCKET_ADDRESS(path.to)) ==
				  G_SOCKET_FAMILY_IPV6;
			take_path(c, &path);
		}
		ice_path_clear(&path);
	}
	if (c->out.ecn != ECN_NOT_ECT)
		g_printerr("paqm-streamer: ECN is off: with ICE, marks cannot be read\n");
	c->out.ecn = ECN_NOT_ECT;
	if (!call_use_encoder(c, error))
		return FALSE;
	if (c->out.wrapped)
		c->out.headers += WIRE_CHANNEL;
	return TRUE;
}

static void on_moved(enum call_media media, gpointer data)
{
	struct call *c = data;
	struct ice_path path;

	ice_path(c->ice, media, &path);
	if (say_path(c, media, &path) && media == CALL_VIDEO && call_sends_video(c)) {
		take_path(c, &path);
		outgoing_move(&c->out);
	}
	ice_path_clear(&path);
}

void call_follow_path(struct call *c)
{
	if (c->ice)
		ice_watch(c->ice, on_moved, c);
}

void call_clear_ice(struct call *c)
{
	g_clear_pointer(&c->ice, ice_free);
	g_clear_object(&c->stun);
	g_clear_object(&c->turn);
	g_clear_pointer(&c->turn_secret, g_bytes_unref);
	for (int i = 0; i < CALL_MEDIA; i++)
		g_free(c->path[i]);
	g_free(c->turn_user);
	g_free(c->meet_text);
	g_free(c->ice_text);
	g_free(c->stun_text);
	g_free(c->turn_text);
	g_free(c->turn_secret_path);
}
