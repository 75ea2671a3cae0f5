// SPDX-License-Identifier: GPL-2.0
/*
 * Receiver reports; see reports.h. rtpsession's own statistics keep one block of each reporter, the
 * last of a packet, which may be about another stream of ours: what is sent again.
 */
#include "streamer/rtp/reports.h"

#include <gst/rtp/gstrtcpbuffer.h>

struct reports {
	GObject *session;
	gulong signal;
	guint32 ssrc;

	GMutex lock;
	gboolean any; /* since the last look */
	struct report_block newest;
};

/* The middle 32 bits of the time now, as sender reports have it. */
static guint32 ntp_now(void)
{
	return (guint32)(gst_rtcp_unix_to_ntp((guint64)g_get_real_time() * GST_USECOND) >> 16);
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
		gint32 trip;

		gst_rtcp_packet_get_rb(p, i, &about, &fraction, &b.lost, &b.highest, &b.jitter,
				       &lsr, &dlsr);
		if (about != r->ssrc)
			continue;
		trip = (gint32)(ntp_now() - lsr - dlsr);
		b.fraction_lost = fraction / 256.0;
		b.rtt = lsr && trip > 0 ? trip / 65536.0 : 0;
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

struct reports *reports_new(GObject *session, guint32 ssrc)
{
	struct reports *r = g_new0(struct reports, 1);

	g_mutex_init(&r->lock);
	r->ssrc = ssrc;
	r->session = g_object_ref(session);
	r->signal = g_signal_connect(session, "on-receiving-rtcp", G_CALLBACK(on_rtcp), r);
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
	g_signal_handler_disconnect(r->session, r->signal);
	g_object_unref(r->session);
	g_mutex_clear(&r->lock);
	g_free(r);
}
