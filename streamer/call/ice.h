/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The path of media by ICE (RFC 8445): addresses are gathered, the peer's are tried, and what is
 * found is used. libnice does this, in a thread of its own; without it there is ice_none.c.
 *
 * There is one path per stream, for RTP and RTCP (RFC 5761). Functions belong to the main
 * loop's thread where nothing else is said.
 */
#ifndef PAQM_CALL_ICE_H
#define PAQM_CALL_ICE_H

#include <gio/gio.h>
#include <gst/gst.h>

#include "streamer/call/offer.h"

#define ICE_PORT 3478	    /* of STUN and TURN, RFC 8489 */
#define ICE_GATHER_MS 500   /* then the call begins; what servers tell later follows */
#define ICE_CONNECT_MS 8000 /* then there is no path */

struct ice;

struct ice_params {
	gboolean controlling;	  /* one end is: the caller */
	GInetSocketAddress *stun; /* NULL: none is asked */
	GInetSocketAddress *turn; /* likewise; the next two are for it */
	const char *user, *secret;
	guint16 port[CALL_MEDIA];
	guint dscp[CALL_MEDIA];
};

/* Where a stream goes now. */
struct ice_path {
	GSocket *socket;		 /* that sends it; NULL: it goes by a relay of ours */
	GInetSocketAddress *from, *to;	 /* on the wire: to the relay, if it goes by one */
	gboolean relayed;		 /* by ours; of the peer's, routers notice nothing */
	enum candidate_kind here, there; /* kinds of both ends' candidates */
};

/* A stream has another path. */
typedef void (*ice_moved_fn)(enum call_media media, gpointer data);

/**
 * ice_new() - gather this end's candidates
 * @mine: gets them
 *
 * Waits for servers, ICE_GATHER_MS at most; which one was of no use until then is said. Return:
 * NULL with @error set if there is not one address.
 */
struct ice *ice_new(const struct ice_params *p, struct offer *mine, GError **error);

/* A server has told more: ice_more() has it. */
typedef void (*ice_found_fn)(gpointer data);

/* Try the peer's; waits until both streams have a path, ICE_CONNECT_MS at most, in the main loop.
 */
gboolean ice_connect(struct ice *ice, const struct offer *theirs, ice_found_fn found, gpointer data,
		     GError **error);
/* It is in vain: ice_connect() waits no longer. */
void ice_give_up(struct ice *ice);
/* Candidates of which the peer has not been told; FALSE: none. */
gboolean ice_more(struct ice *ice, struct offer_ice more[CALL_MEDIA]);
/* The same of the peer; no more of them than an offer may have. */
void ice_try_more(struct ice *ice, const struct offer_ice more[CALL_MEDIA]);

/* From now on @moved is told of paths that change, and of those that have before. */
void ice_watch(struct ice *ice, ice_moved_fn moved, gpointer data);

/* The newest path; clear it with ice_path_clear(). */
void ice_path(struct ice *ice, enum call_media media, struct ice_path *path);
void ice_path_clear(struct ice_path *path);
/* For people; free with g_free(). */
char *ice_path_text(const struct ice_path *path);

/* Elements without pads to the other side: what sends a stream's packets, what brings them. */
GstElement *ice_sink(struct ice *ice, enum call_media media);
GstElement *ice_src(struct ice *ice, enum call_media media, GstCaps *caps);
/* It may bring them; what has come before is forgotten. */
void ice_let_in(struct ice *ice, enum call_media media);

void ice_free(struct ice *ice);

#endif /* PAQM_CALL_ICE_H */
