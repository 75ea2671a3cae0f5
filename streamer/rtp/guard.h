/* SPDX-License-Identifier: GPL-2.0 */
/* The gate before one of rtpbin's sessions (gate.h): on its pads, with a lock. */
#ifndef PAQM_STREAMER_GUARD_H
#define PAQM_STREAMER_GUARD_H

#include <gst/gst.h>

#include "streamer/rtp/gate.h"

#define GUARD_BEGIN 1000000 /* us: time begins; 0 is never */

struct guard;

/* Network thread: the stream has had to leave, and what is kept of it should go. */
typedef void (*guard_fn)(guint32 ssrc, gpointer data);

/**
 * guard_new() - nothing is watched yet
 * @srtp: packets prove themselves after they were let in
 * @gone: NULL: nobody wants to know
 */
struct guard *guard_new(gboolean srtp, guard_fn gone, gpointer data);
/* From the first on, nobody else gets in. */
void guard_agree(struct guard *g, guint32 ssrc);
/* That we send with. */
void guard_own(struct guard *g, guint32 ssrc);
/* Any thread: the stream that is being played never leaves; 0: none is. */
void guard_keep(struct guard *g, guint32 ssrc);

/* Network thread: may a datagram on the port of RTP go on? */
gboolean guard_let(struct guard *g, const guint8 *p, gsize len);

/* The same on a pad by which they come: of RTP, of RTCP, which may be encrypted. */
void guard_rtp(struct guard *g, GstElement *e, const char *pad);
void guard_rtcp(struct guard *g, GstElement *e, const char *pad);
/* Of both, RFC 5761. */
void guard_both(struct guard *g, GstElement *e, const char *pad);
/* Where what was let in comes out of srtpdec: of RTP, of RTCP. Without SRTP, the latter stands
 * behind guard_rtcp().
 */
void guard_proven_rtp(struct guard *g, GstElement *e, const char *pad);
void guard_proven_rtcp(struct guard *g, GstElement *e, const char *pad);

/*
 * Where it is decided whom an SSRC belongs to, by a key or by what stands before: rtpsession would
 * leave out a sender whose address is another now (a NAT), until it has forgotten the one before,
 * five seconds later.
 */
void guard_hide_sender(GstElement *e, const char *pad);

/* Main loop: time has passed. A few times a second is enough, and no packet costs a look at
 * the clock, which in the lab takes time.
 */
void guard_tick(struct guard *g, guint ms);
/* Any thread: the time of those ticks, us. */
gint64 guard_now(struct guard *g);
/* When the newest report on what we send came; 0: never. */
gint64 guard_reported(struct guard *g);
/* When something came from the peer that was let in and proven. */
gint64 guard_heard(struct guard *g);
/* For people: what was refused, by reason; NULL: nothing. */
char *guard_summary(struct guard *g);
/* After the pipeline has stopped. */
void guard_free(struct guard *g);

#endif /* PAQM_STREAMER_GUARD_H */
