// SPDX-License-Identifier: GPL-2.0
/* The offer of a call: written, read from a stranger and checked, and what both ends agree on. */
#include "streamer/call/offer.h"

#include <jansson.h>
#include <netinet/in.h>
#include <string.h>

#include "streamer/options.h"
#include "streamer/rtp/repairbudget.h"

const char *const call_media_names[CALL_MEDIA] = {"video", "audio"};
const char *const candidate_names[CANDIDATE_KINDS] = {"host", "srflx", "relay"};

#define UFRAG_LEAST 4 /* RFC 8445 section 5.3, as are the next */
#define PWD_LEAST 22
#define PRIORITY_MOST G_MAXINT32

/* Text for the terminal: nothing that moves a cursor or turns the line around. */
void offer_printable(char *out, gsize size, const char *text)
{
	gsize n = 0, len;

	for (const char *p = text; *p; p += len) {
		gunichar c = g_utf8_get_char_validated(p, -1);
		gboolean whole = c < 0x110000; /* else an error: not UTF-8 */

		len = whole ? (gsize)(g_utf8_next_char(p) - p) : 1;
		if (whole && g_unichar_isprint(c)) {
			if (n + len >= size)
				break; /* a character is not cut */
			memcpy(out + n, p, len);
			n += len;
		} else {
			if (n + 1 >= size)
				break;
			out[n++] = '?';
		}
	}
	out[n] = 0;
}

/* One line, with its end; free with g_free(). */
static char *line_of(json_t *root)
{
	char *text = json_dumps(root, JSON_COMPACT), *line = g_strconcat(text, "\n", NULL);

	free(text);
	json_decref(root);
	return line;
}

static json_t *candidates_json(const struct offer_ice *ice)
{
	json_t *candidates = json_array();

	for (guint i = 0; i < ice->candidates; i++) {
		const struct offer_candidate *c = &ice->candidate[i];

		json_array_append_new(candidates, json_pack("[s, I, s, i, s]", c->foundation,
							    (json_int_t)c->priority, c->address,
							    c->port, candidate_names[c->kind]));
	}
	return candidates;
}

static json_t *ice_json(const struct offer_ice *ice)
{
	return json_pack("{s:s, s:s, s:o}", "ufrag", ice->ufrag, "pwd", ice->pwd, "candidates",
			 candidates_json(ice));
}

char *offer_write(const struct offer *o)
{
	json_t *root = json_pack("{s:i, s:s, s:I, s:b, s:b, s:b, s:b, s:b}", "paqm-call",
				 OFFER_VERSION, "name", o->name, "rate-max",
				 (json_int_t)o->rate_max, "rtx", o->rtx, "useinbandfec", o->mends,
				 "rtcp-mux", o->mux, "ready", o->tells, "returns", o->returns);

	if (o->corrects)
		json_object_set_new(root, "fec", json_integer(o->fec));
	if (o->nonce)
		json_object_set_new(root, "probes", json_integer(o->nonce));

	for (int i = 0; i < CALL_MEDIA; i++) {
		const struct offer_stream *st = &o->stream[i];
		json_t *stream = json_pack("{s:i}", "port", st->port);

		if (st->ssrc) {
			char *key = g_base64_encode(st->key, OFFER_KEY);

			json_object_set_new(stream, "ssrc", json_integer(st->ssrc));
			json_object_set_new(stream, "key", json_string(key));
			g_free(key);
			/* what was there before this word took ssrc for a stream */
			if (st->payload)
				json_object_set_new(stream, "payload", json_integer(st->payload));
			if (!st->sends)
				json_object_set_new(stream, "sends", json_false());
		}
		if (st->ice.ufrag[0])
			json_object_set_new(stream, "ice", ice_json(&st->ice));
		json_object_set_new(root, call_media_names[i], stream);
	}
	return line_of(root);
}

static gboolean bad(GError **error, const char *what)
{
	g_set_error(error, USAGE_ERROR, 0, "the peer's offer: %s", what);
	return FALSE;
}

/* Letters, digits, + and / only, as RFC 8839 has it (ice-char). */
static gboolean take_word(char *out, gsize size, gsize least, json_t *json)
{
	const char *text = json_string_value(json);
	gsize len = json_string_length(json);

	if (!text || len < least || len >= size)
		return FALSE;
	for (gsize i = 0; i < len; i++)
		if (!g_ascii_isalnum(text[i]) && text[i] != '+' && text[i] != '/')
			return FALSE;
	memcpy(out, text, len + 1);
	return TRUE;
}

gboolean offer_address(char out[OFFER_ADDRESS], const char *text)
{
	GInetAddress *address = g_inet_address_new_from_string(text);
	gboolean ok = address && !g_inet_address_get_is_any(address) &&
		      !g_inet_address_get_is_multicast(address) &&
		      !g_inet_address_get_is_loopback(address) &&
		      !g_inet_address_get_is_link_local(address);

	if (ok && g_inet_address_get_family(address) == G_SOCKET_FAMILY_IPV4)
		ok = g_inet_address_to_bytes(address)[0] % 255 != 0; /* 0.x, 255.x: of nobody */
	else if (ok) /* IPv4 in disguise is none of what has been looked at */
		ok = !IN6_IS_ADDR_V4MAPPED(
			(const struct in6_addr *)(gconstpointer)g_inet_address_to_bytes(address));
	if (ok) {
		char *plain = g_inet_address_to_string(address);

		ok = g_strlcpy(out, plain, OFFER_ADDRESS) < OFFER_ADDRESS;
		g_free(plain);
	}
	g_clear_object(&address);
	return ok;
}

static gboolean take_address(char out[OFFER_ADDRESS], json_t *json)
{
	const char *text = json_string_value(json);

	return text && strlen(text) == json_string_length(json) && offer_address(out, text);
}

static gboolean read_candidate(struct offer_candidate *c, json_t *json)
{
	json_int_t priority = json_integer_value(json_array_get(json, 1));
	json_int_t port = json_integer_value(json_array_get(json, 3));
	const char *kind = json_string_value(json_array_get(json, 4));

	if (json_array_size(json) != 5 ||
	    !take_word(c->foundation, OFFER_FOUNDATION, 1, json_array_get(json, 0)) ||
	    priority < 1 || priority > PRIORITY_MOST ||
	    !take_address(c->address, json_array_get(json, 2)) || port < 1 || port > 65535 || !kind)
		return FALSE;
	c->priority = (guint32)priority;
	c->port = (guint16)port;
	for (c->kind = 0; c->kind < CANDIDATE_KINDS; c->kind++)
		if (!strcmp(kind, candidate_names[c->kind]))
			return TRUE;
	return FALSE;
}

static gboolean read_candidates(struct offer_ice *ice, json_t *candidates, GError **error)
{
	if (!json_is_array(candidates) || json_array_size(candidates) > OFFER_CANDIDATES)
		return bad(error, "ice may have at most " G_STRINGIFY(
					  OFFER_CANDIDATES) " candidates in a stream");
	for (; ice->candidates < json_array_size(candidates); ice->candidates++)
		if (!read_candidate(&ice->candidate[ice->candidates],
				    json_array_get(candidates, ice->candidates)))
			return bad(error, "a candidate must be foundation, priority, numeric "
					  "address of a host, port, and host, srflx or relay");
	return TRUE;
}

static gboolean read_ice(struct offer_ice *ice, json_t *json, GError **error)
{
	if (!json)
		return TRUE;
	if (!take_word(ice->ufrag, OFFER_UFRAG, UFRAG_LEAST, json_object_get(json, "ufrag")) ||
	    !take_word(ice->pwd, OFFER_PWD, PWD_LEAST, json_object_get(json, "pwd")))
		return bad(error, "ice needs ufrag and pwd, as in RFC 8445");
	return read_candidates(ice, json_object_get(json, "candidates"), error);
}

static gboolean read_stream(struct offer_stream *st, json_t *json, GError **error)
{
	json_t *ssrc = json_object_get(json, "ssrc"), *key = json_object_get(json, "key");
	json_t *payload = json_object_get(json, "payload");
	json_int_t port = json_integer_value(json_object_get(json, "port"));
	gsize len = 0;
	guchar *raw;

	if (!json_is_object(json) || port < 1024 || port > 65534)
		return bad(error, "a stream needs a port from 1024 to 65534");
	st->port = (guint16)port;
	if (!read_ice(&st->ice, json_object_get(json, "ice"), error))
		return FALSE;
	if (!ssrc && !key)
		return TRUE;
	if (!json_is_integer(ssrc) || json_integer_value(ssrc) < 1 ||
	    json_integer_value(ssrc) > G_MAXUINT32 || !json_is_string(key) ||
	    json_string_length(key) > 2 * OFFER_KEY)
		return bad(error, "a stream that is sent needs ssrc and key");
	raw = g_base64_decode(json_string_value(key), &len);
	if (len == OFFER_KEY)
		memcpy(st->key, raw, OFFER_KEY);
	g_free(raw);
	if (len != OFFER_KEY)
		return bad(error, "a key must have 30 bytes in base64");
	st->ssrc = (guint32)json_integer_value(ssrc);
	if (payload && (!json_is_integer(payload) || json_integer_value(payload) < 0 ||
			json_integer_value(payload) > 127))
		return bad(error, "payload must be 0 to 127");
	st->payload = (guint)json_integer_value(payload);
	st->sends = !json_is_false(json_object_get(json, "sends"));
	return TRUE;
}

static gboolean read_fec(struct offer *o, json_t *fec, GError **error)
{
	json_int_t percent = json_integer_value(fec);

	if (fec && (!json_is_integer(fec) || percent < 0 || percent > FEC_MOST))
		return bad(error, "fec must be 0 to " G_STRINGIFY(FEC_MOST) " per cent");
	o->corrects = fec != NULL;
	o->fec = (guint)percent;
	return TRUE;
}

static gboolean read_probes(struct offer *o, json_t *probes, GError **error)
{
	json_int_t nonce = json_integer_value(probes);

	if (probes && (!json_is_integer(probes) || nonce < 1 || nonce > G_MAXUINT32))
		return bad(error, "probes must be a number from 1 to 4294967295");
	o->nonce = (guint32)nonce;
	return TRUE;
}

/**
 * offer_read() - the peer's first line
 * @line: without its end
 */
gboolean offer_read(struct offer *o, const char *line, gsize len, GError **error)
{
	json_error_t at;
	json_t *root = len > OFFER_LINE ? NULL : json_loadb(line, len, JSON_REJECT_DUPLICATES, &at);
	json_int_t rate;
	const char *name;
	gboolean ok;

	memset(o, 0, sizeof(*o));
	if (!root || !json_is_object(root)) {
		json_decref(root);
		return bad(error, "is not one JSON object of at most 4096 bytes");
	}
	if (json_integer_value(json_object_get(root, "paqm-call")) != OFFER_VERSION) {
		json_decref(root);
		return bad(error, "is of another version; both ends need the same program");
	}
	name = json_string_value(json_object_get(root, "name"));
	offer_printable(o->name, sizeof(o->name), name ? name : "?");
	rate = json_integer_value(json_object_get(root, "rate-max"));
	if (rate < 1000 || rate > 4000000000) {
		json_decref(root);
		return bad(error, "rate-max must be 1000 to 4000000000 bit/s");
	}
	o->rate_max = (guint64)rate;
	o->rtx = json_is_true(json_object_get(root, "rtx"));
	o->mends = json_is_true(json_object_get(root, "useinbandfec"));
	o->tells = json_is_true(json_object_get(root, "ready"));
	o->mux = json_is_true(json_object_get(root, "rtcp-mux"));
	o->returns = json_is_true(json_object_get(root, "returns"));
	ok = read_fec(o, json_object_get(root, "fec"), error) &&
	     read_probes(o, json_object_get(root, "probes"), error);
	for (int i = 0; i < CALL_MEDIA && ok; i++)
		ok = read_stream(&o->stream[i], json_object_get(root, call_media_names[i]), error);
	json_decref(root);
	return ok;
}

gboolean offer_ice(const struct offer *mine, const struct offer *theirs)
{
	gboolean both = mine->mux && theirs->mux;

	for (int i = 0; i < CALL_MEDIA; i++)
		both = both && mine->stream[i].ice.candidates && theirs->stream[i].ice.candidates;
	return both;
}

/* A later line; @text only goes with a farewell. */
char *note_write(enum note_kind kind, const char *text)
{
	if (kind == NOTE_BYE)
		return line_of(json_pack("{s:s}", "bye", text));
	if (kind == NOTE_READY)
		return line_of(json_pack("{s:b}", "ready", TRUE));
	if (kind == NOTE_CAMERA_OFF || kind == NOTE_CAMERA_ON)
		return line_of(json_pack("{s:b}", "camera", kind == NOTE_CAMERA_ON));
	return line_of(json_pack("{s:b}", "muted", kind == NOTE_MUTED));
}

char *note_write_candidates(const struct offer_ice more[CALL_MEDIA])
{
	json_t *media = json_object();

	for (int i = 0; i < CALL_MEDIA; i++)
		json_object_set_new(media, call_media_names[i], candidates_json(&more[i]));
	return line_of(json_pack("{s:o}", "candidates", media));
}

gboolean note_read_candidates(const char *line, gsize len, struct offer_ice more[CALL_MEDIA])
{
	json_t *root =
		len > OFFER_LINE ? NULL : json_loadb(line, len, JSON_REJECT_DUPLICATES, NULL);
	json_t *media = json_object_get(root, "candidates");
	gboolean ok = media != NULL;

	memset(more, 0, CALL_MEDIA * sizeof(more[0]));
	for (int i = 0; i < CALL_MEDIA && ok; i++)
		ok = read_candidates(&more[i], json_object_get(media, call_media_names[i]), NULL);
	json_decref(root);
	return ok;
}

/* What a later line says; NOTE_NONE: nothing that this version knows. */
enum note_kind note_read(const char *line, gsize len, char text[OFFER_NAME])
{
	json_t *root =
		len > OFFER_LINE ? NULL : json_loadb(line, len, JSON_REJECT_DUPLICATES, NULL);
	json_t *muted = json_object_get(root, "muted"), *bye = json_object_get(root, "bye");
	json_t *camera = json_object_get(root, "camera");
	enum note_kind kind = NOTE_NONE;

	text[0] = 0;
	if (json_is_string(bye)) {
		kind = NOTE_BYE;
		offer_printable(text, OFFER_NAME, json_string_value(bye));
	} else if (json_is_true(json_object_get(root, "ready"))) {
		kind = NOTE_READY;
	} else if (json_object_get(root, "candidates")) {
		kind = NOTE_CANDIDATES;
	} else if (json_is_boolean(muted)) {
		kind = json_is_true(muted) ? NOTE_MUTED : NOTE_UNMUTED;
	} else if (json_is_boolean(camera)) {
		kind = json_is_true(camera) ? NOTE_CAMERA_ON : NOTE_CAMERA_OFF;
	}
	json_decref(root);
	return kind;
}
