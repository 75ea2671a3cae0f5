/* SPDX-License-Identifier: GPL-2.0 */
/*
 * When what comes was captured, by the sender's reports (RFC 3550 section 6.4.1), which tell what
 * its clock showed at an RTP time stamp. rtpjitterbuffer's add-reference-timestamp-meta tells the
 * same, but forgets the report with each payload type: with packets that correct, whose type is
 * another, most pictures had no time.
 */
#ifndef PAQM_CALL_CAPTURE_H
#define PAQM_CALL_CAPTURE_H

#include <gst/gst.h>

/**
 * struct capture
 * @ssrc: of the stream
 * @clock: RTP time stamps per second
 */
struct capture {
	GMutex lock;
	guint32 ssrc, clock;
	gboolean told;
	guint32 rtp;
	gint64 time;
};

/* RTCP that is truly the peer's leaves this pad. */
void capture_reports(struct capture *c, GstElement *from, const char *pad);
/* Packets of the stream, with the time stamps that they were sent with first: they are told it. */
void capture_packets(struct capture *c, GstElement *from, const char *pad);
/* Of what they have become: ns since 1970 on the sender's clock; 0: it has told nothing yet. */
gint64 capture_of(GstBuffer *buf);

#endif /* PAQM_CALL_CAPTURE_H */
