// SPDX-License-Identifier: GPL-2.0
/*
 * Receiver reports; see reports.h. rtpsession's own statistics keep one block of each reporter, the
 * last of a packet, which may be about another stream of ours: what is sent again.
 */
#include "streamer/rtp/reports.h"

#include <gst/rtp/gstrtcpbuffer.h>

#include "streamer/options.h"

#define SENT 8 /* of our sender reports: a peer answers one of the last */

/* A sender report of ours. Its time is the wall clock's, which may be set before it is answered. */
struct sent {
	guint32 ntp;  /* the middle 32 bits of its time, by which it is known; 0: none */
	gint64 ahead; /* of the monotonic clock, what it has its time from, ns */
};

struct reports {
	GObject *session;
	gulong comes, goes; /* signals */
	guint32 ssrc;

	GMutex lock;
	struct sent sent[SENT];
	guint next;
	gboolean any; /* since the last look */
	struct report_block newest;
};

/* The middle 32 bits of a time, ns: as sender reports have it, of whole us. */
static guint32 middle(gint64 ns)
{
	return (guint32)(gst_rtcp_unix_to_ntp((guint64)ns / 1000 * 1000) >> 16);
}

/* Round trip, s, by a report's LSR and DLSR (RFC 3550 section 6.4.1); 0: unknown. */
static double round_trip(struct reports *r, guint32 lsr, guint32 dlsr)
{
	gint32 trip = 0;

	g_mutex_lock(&r->lock);
	for (guint i = 0; i < SENT; i++)
		if (lsr && r->sent[i].ntp == lsr)
			trip = (gint32)(middle(monotonic_ns() + r->sent[i].ahead) - lsr - dlsr);
	g_mutex_unlock(&r->lock);
	return MAX(trip, 0) / 65536.0;
}

/*
 * A peer with several sources reports by each of them, and only the first has what was lost since
 * its last report.
 */
static void keep(struct reports *r, const struct report_block *b)
{
	double lost;

	g_mutex_lock(&r->lock);
	lost = r->any ? r->newest.fraction_lost : 0;
	r->newest = *b;
	r->newest.fraction_lost = MAX(lost, b->fraction_lost);
	r->any = TRUE;
	g_mutex_unlock(&r->lock);
}

/* Of a sender or receiver report, the blocks about our stream. */
static void read_blocks(struct reports *r, GstRTCPPacket *p)
{
	for (guint i = 0; i < gst_rtcp_packet_get_rb_count(p); i++) {
		guint32 about, lsr, dlsr;
		struct report_block b;
		guint8 fraction;

		gst_rtcp_packet_get_rb(p, i, &about, &fraction, &b.lost, &b.highest, &b.jitter,
				       &lsr, &dlsr);
		if (about != r->ssrc)
			continue;
		b.fraction_lost = fraction / 256.0;
		b.rtt = round_trip(r, lsr, dlsr);
		keep(r, &b);
	}
}

/* Thread of RTCP. */
static void on_rtcp(GObject *session, GstBuffer *buf, gpointer data)
{
	GstRTCPBuffer rtcp = GST_RTCP_BUFFER_INIT;
	struct reports *r = data;
	GstRTCPPacket p;

	(void)session;
	if (!gst_rtcp_buffer_map(buf, GST_MAP_READ, &rtcp))
		return;
	for (gboolean more = gst_rtcp_buffer_get_first_packet(&rtcp, &p); more;
	     more = gst_rtcp_packet_move_to_next(&p))
		if (gst_rtcp_packet_get_type(&p) == GST_RTCP_TYPE_SR ||
		    gst_rtcp_packet_get_type(&p) == GST_RTCP_TYPE_RR)
			read_blocks(r, &p);
	gst_rtcp_buffer_unmap(&rtcp);
}

/* The same. What is sent begins with a sender report if we have sent anything lately. */
static gboolean on_sending(GObject *session, GstBuffer *buf, gboolean early, gpointer data)
{
	GstRTCPBuffer rtcp = GST_RTCP_BUFFER_INIT;
	struct reports *r = data;
	GstRTCPPacket p;
	guint64 ntp;

	(void)session;
	(void)early;
	if (!gst_rtcp_buffer_map(buf, GST_MAP_READ, &rtcp))
		return FALSE;
	if (gst_rtcp_buffer_get_first_packet(&rtcp, &p) &&
	    gst_rtcp_packet_get_type(&p) == GST_RTCP_TYPE_SR) {
		gst_rtcp_packet_sr_get_sender_info(&p, NULL, &ntp, NULL, NULL, NULL);
		g_mutex_lock(&r->lock);
		r->sent[r->next++ % SENT] = (struct sent){
			.ntp = (guint32)(ntp >> 16),
			.ahead = wall_ns() - monotonic_ns(),
		};
		g_mutex_unlock(&r->lock);
	}
	gst_rtcp_buffer_unmap(&rtcp);
	return FALSE; /* no reason to send it */
}

struct reports *reports_new(GObject *session, guint32 ssrc)
{
	struct reports *r = g_new0(struct reports, 1);

	g_mutex_init(&r->lock);
	r->ssrc = ssrc;
	r->session = g_object_ref(session);
	r->comes = g_signal_connect(session, "on-receiving-rtcp", G_CALLBACK(on_rtcp), r);
	r->goes = g_signal_connect(session, "on-sending-rtcp", G_CALLBACK(on_sending), r);
	return r;
}

void reports_poll(struct reports *r, report_fn fn, gpointer data)
{
	struct report_block b;
	gboolean any;

	g_mutex_lock(&r->lock);
	any = r->any;
	b = r->newest;
	r->any = FALSE;
	g_mutex_unlock(&r->lock);
	if (any)
		fn(&b, data);
}

void reports_free(struct reports *r)
{
	if (!r)
		return;
	g_signal_handler_disconnect(r->session, r->comes);
	g_signal_handler_disconnect(r->session, r->goes);
	g_object_unref(r->session);
	g_mutex_clear(&r->lock);
	g_free(r);
}
