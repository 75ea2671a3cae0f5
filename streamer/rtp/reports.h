/* SPDX-License-Identifier: GPL-2.0 */
/* What peers report about a stream of ours (RFC 3550 section 6.4), out of the RTCP that comes. */
#ifndef PAQM_STREAMER_REPORTS_H
#define PAQM_STREAMER_REPORTS_H

#include <gst/gst.h>

struct report_block {
	double fraction_lost; /* since the report before, 0..1 */
	int lost;	      /* packets in all */
	guint highest;	      /* sequence number that has come, extended */
	guint jitter;	      /* in units of the RTP clock */
	double rtt;	      /* s; 0: unknown */
};

typedef void (*report_fn)(const struct report_block *b, gpointer data);

struct reports;

/**
 * reports_new() - hear them from now on
 * @session: rtpbin's RTPSession
 * @ssrc: our stream
 */
struct reports *reports_new(GObject *session, guint32 ssrc);
/**
 * reports_poll() - tell the newest report since the last call, if there was one
 * @fn: told of it, with the largest loss of all since then
 */
void reports_poll(struct reports *r, report_fn fn, gpointer data);
void reports_free(struct reports *r);

#endif /* PAQM_STREAMER_REPORTS_H */
