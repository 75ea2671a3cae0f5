/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the two ends of a call tell each other over their TLS link: JSON
 * objects, one per line. The first is the offer, the same from both ends;
 * later ones are notes. Pure functions; they read what the peer sent and
 * trust nothing in it.
 *
 *   {"paqm-call":1,"name":"...","video":{"port":P,"ssrc":S,"key":"BASE64","payload":N},
 *    "audio":{"port":P,"ssrc":S,"key":"BASE64","sends":false},"rate-max":BPS,"rtx":true,"fec":20,
 *    "useinbandfec":true,"rtcp-mux":true,"ready":true,"probes":NONCE,"returns":true}
 *   {"ready":true}  {"muted":true}  {"camera":false}  {"bye":"..."}
 *   {"candidates":{"video":[...],"audio":[...]}}
 *
 * `port` is where the end receives; `ssrc` and `key`, the SRTP master key and salt (RFC 3711), are
 * of what it sends: of its reports, too, so they are there if it `sends` no media. `payload` is
 * RTP's payload type, if pictures are not H.264 (encoder/adaptor.c: codecs). With `rtx` an end can
 * send pictures again and take what is sent again (RFC 4588); it is done if both can. With `fec` an
 * end corrects losses by what the peer adds (RFC 5109); the number is what it would add itself, per
 * cent, which it does if the peer corrects. With `useinbandfec` (the word of RFC 7587) an end uses
 * the copies of lost sound that Opus can send. With `rtcp-mux` (the word of RFC 5761) an end takes
 * RTCP at `port`, too; if both do, none is sent to the port above. With `ready` an end will tell
 * when it takes media: nothing is sent to it before, or what waits in its sockets meanwhile would
 * look to it like a path of that delay. With `probes` an end sends probes beside its pictures, of
 * that nonce (docs/protocol.md, section 4a), if the other `returns` what routers write into them.
 *
 * A stream of an end that knows ICE (RFC 8445) has
 *
 *   "ice":{"ufrag":"...","pwd":"...","candidates":[["FOUNDATION",PRIORITY,"ADDRESS",PORT,"host"]]}
 *
 * with "srflx" or "relay" for those that a server has told (ice.h). If both ends have it in both
 * streams, and `rtcp-mux`, media take the path that ICE finds. Candidates that a server tells later
 * follow in notes, which older ends pass over (as in RFC 8838, but for an end of them).
 */
#ifndef PAQM_CALL_OFFER_H
#define PAQM_CALL_OFFER_H

#include <glib.h>
#include <stdint.h>

#define OFFER_VERSION 1
#define OFFER_KEY 30	/* AES-128 master key and 112-bit salt */
#define OFFER_NAME 64	/* bytes of a name, with the final zero */
#define OFFER_LINE 4096 /* bytes of a line at most */

enum call_media { CALL_VIDEO, CALL_AUDIO, CALL_MEDIA };

extern const char *const call_media_names[CALL_MEDIA];

/* Sizes of texts have the final zero in them. */
#define OFFER_CANDIDATES 8 /* of a stream at most */
#define OFFER_FOUNDATION 33
#define OFFER_ADDRESS 46
#define OFFER_UFRAG 33
#define OFFER_PWD 65

/* RFC 8445, those that ends tell each other. */
enum candidate_kind { CANDIDATE_HOST, CANDIDATE_SRFLX, CANDIDATE_RELAY, CANDIDATE_KINDS };

extern const char *const candidate_names[CANDIDATE_KINDS];

struct offer_candidate {
	char foundation[OFFER_FOUNDATION];
	guint32 priority;
	char address[OFFER_ADDRESS]; /* of one host, that can be sent to */
	guint16 port;
	enum candidate_kind kind;
};

struct offer_ice {
	char ufrag[OFFER_UFRAG], pwd[OFFER_PWD]; /* empty: it knows no ICE */
	guint candidates;
	struct offer_candidate candidate[OFFER_CANDIDATES];
};

struct offer_stream {
	guint16 port; /* where the end receives; RTCP there or one above */
	gboolean sends;
	guint32 ssrc;  /* of what it sends, reports at least; 0: not told */
	guint payload; /* of what it sends; 0: not told */
	guint8 key[OFFER_KEY];
	struct offer_ice ice;
};

struct offer {
	char name[OFFER_NAME]; /* for people: printable characters only */
	struct offer_stream stream[CALL_MEDIA];
	guint64 rate_max; /* bit/s that the end wants to receive at most */
	gboolean rtx;	  /* lost pictures can be sent again */
	gboolean tells;	  /* when it is ready for media */
	gboolean mux;	  /* RTCP comes to the port of RTP, RFC 5761 */
	gboolean corrects;
	guint fec;	  /* packets that correct, per cent of the others, with @corrects */
	gboolean mends;	  /* lost sound, by what Opus copies into the next packet */
	guint32 nonce;	  /* of the probes beside its pictures; 0: it sends none */
	gboolean returns; /* the rates that the peer's probes bring */
};

enum note_kind {
	NOTE_NONE,
	NOTE_READY,
	NOTE_MUTED,
	NOTE_UNMUTED,
	NOTE_CAMERA_OFF,
	NOTE_CAMERA_ON,
	NOTE_BYE,
	NOTE_CANDIDATES
};

/* A numeric address of one other host, valid beyond a link; @out has it, written in one way only.
 */
gboolean offer_address(char out[OFFER_ADDRESS], const char *text);
/* Can both ends find their paths by ICE? */
gboolean offer_ice(const struct offer *mine, const struct offer *theirs);
/* What of a text is fit for a name: UTF-8, cut to @size with its end. */
void offer_printable(char *out, gsize size, const char *text);
char *offer_write(const struct offer *o);
gboolean offer_read(struct offer *o, const char *line, gsize len, GError **error);
char *note_write(enum note_kind kind, const char *text);
/* Only candidates of @more are told, and read; FALSE: it has something else in their place. */
char *note_write_candidates(const struct offer_ice more[CALL_MEDIA]);
gboolean note_read_candidates(const char *line, gsize len, struct offer_ice more[CALL_MEDIA]);
enum note_kind note_read(const char *line, gsize len, char text[OFFER_NAME]);

#endif /* PAQM_CALL_OFFER_H */
