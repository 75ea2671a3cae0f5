/* SPDX-License-Identifier: GPL-2.0 */
/* What peers report about a stream of ours (RFC 3550 section 6.4), as rtpbin keeps it. */
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

/**
 * reports_poll() - tell of each report that has come since the last call
 * @session: rtpbin's RTPSession
 * @ssrc: our stream
 * @seen: which report was told last; 0 in the beginning
 * @fn: told of it
 */
void reports_poll(GObject *session, guint32 ssrc, guint64 *seen, report_fn fn, gpointer data);

#endif /* PAQM_STREAMER_REPORTS_H */
