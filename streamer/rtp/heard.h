/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Congestion control feedback of the peer (RFC 8888, ccfb.h), told in terms of what we have sent:
 * remembers each packet as it leaves rtpbin, by the number it has in its stream.
 */
#ifndef PAQM_STREAMER_HEARD_H
#define PAQM_STREAMER_HEARD_H

#include <gst/gst.h>

#include "streamer/control/feedback.h"

struct heard;

struct heard_packet {
	guint16 seq;	      /* transport-wide */
	struct fb_packet pkt; /* all but its seq */
};

/* Streaming thread of RTCP: the packets of one report that we remember, @n > 0. */
typedef void (*heard_fn)(const struct heard_packet *p, guint n, gpointer data);

/**
 * heard_new() - look at what leaves and what comes back
 * @after: the pad by which packets leave rtpbin
 * @session: rtpbin's RTPSession
 * @below: bytes around RTP packets: of IP, UDP, SRTP
 */
struct heard *heard_new(GstPad *after, GObject *session, guint below, heard_fn fn, gpointer data);
void heard_free(struct heard *h);

#endif /* PAQM_STREAMER_HEARD_H */
