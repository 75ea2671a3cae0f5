// SPDX-License-Identifier: GPL-2.0
/*
 * What the receiver of a flow of trace mode reports: losses (RFC 3550), the fate of each packet
 * (RFC 8888), and what the receiving side of its controller tells.
 */
#include <gst/rtp/gstrtcpbuffer.h>
#include <math.h>

#include "core/paqm_bytes.h"
#include "streamer/decide/decide.h"
#include "streamer/trace/trace_flow.h"

#define FB_HEAD 8 /* of a feedback packet, before what is about media */

struct fates {
	const struct trace_flow *f;
	double report; /* when it was made, s of the peer's clock */
	size_t n;
	struct fb_packet p[FB_REPORT];
};

/* Round trip of a report, RFC 3550 section 6.4.1; NAN: unknown. */
static double round_trip(const struct trace_flow *f, gint64 now, guint32 lsr, guint32 dlsr)
{
	guint32 then = (guint32)(trace_ntp(now + f->s->wall_offset) >> 16);

	return lsr ? (then - lsr - dlsr) / 65536.0 : NAN;
}

static void hear_losses(struct trace_flow *f, GstRTCPPacket *p, gint64 now)
{
	for (guint i = 0; i < gst_rtcp_packet_get_rb_count(p); i++) {
		guint32 ssrc, ext, jitter, lsr, dlsr;
		guint8 lost;
		gint32 total;

		gst_rtcp_packet_get_rb(p, i, &ssrc, &lost, &total, &ext, &jitter, &lsr, &dlsr);
		if (ssrc == f->ssrc)
			ctl_receiver_report(f->ctl, now / 1e9, lost / 256.0,
					    round_trip(f, now, lsr, dlsr));
	}
}

static void on_entry(const struct ccfb_entry *e, void *data)
{
	struct fates *t = data;
	const struct trace_sent *s = &t->f->sent[e->seq % TRACE_SENT];

	if (t->n == FB_REPORT || e->ssrc != t->f->ssrc || !s->size || s->seq != e->seq ||
	    (e->received && !e->known))
		return;
	t->p[t->n++] = (struct fb_packet){
		.seq = ctl_unwrap(t->f->ctl, e->seq),
		.sent = s->at / 1e9,
		.recv = t->report - e->before,
		.size = s->size,
		.received = e->received,
		.ect = e->ecn == ECN_ECT0 || e->ecn == ECN_ECT1,
		.ce = e->ecn == ECN_CE,
	};
}

static void hear_fates(struct trace_flow *f, const guint8 *p, gsize len, gint64 now)
{
	static struct fates t; /* one thread hears all flows */
	guint32 ntp;

	if (len < FB_HEAD + 4 || (p[0] & 31) != CCFB_FMT)
		return;
	t.f = f;
	t.n = 0;
	t.report = ccfb_time(&f->clock, paqm_get32(p + len - 4));
	if (ccfb_read(p + FB_HEAD, len - FB_HEAD, &ntp, on_entry, &t) && t.n)
		ctl_feedback(f->ctl, now / 1e9, t.p, t.n);
}

void trace_flow_hear(struct trace_flow *f, const guint8 *packet, gsize len, gint64 now)
{
	GstRTCPBuffer rtcp = GST_RTCP_BUFFER_INIT;
	struct ctl_message m;
	GstBuffer *buf;
	GstRTCPPacket p;

	if (!gst_rtcp_buffer_validate_data_reduced((guint8 *)packet, (guint)len))
		return;
	buf = gst_buffer_new_wrapped_full(GST_MEMORY_FLAG_READONLY, (gpointer)packet, len, 0, len,
					  NULL, NULL);
	gst_rtcp_buffer_map(buf, GST_MAP_READ, &rtcp);
	for (gboolean more = gst_rtcp_buffer_get_first_packet(&rtcp, &p); more;
	     more = gst_rtcp_packet_move_to_next(&p)) {
		const guint8 *at = packet + p.offset;
		gsize size = 4 * ((gsize)p.length + 1);

		switch (gst_rtcp_packet_get_type(&p)) {
		case GST_RTCP_TYPE_RR:
			hear_losses(f, &p, now);
			break;
		case GST_RTCP_TYPE_RTPFB:
			hear_fates(f, at, size, now);
			break;
		case GST_RTCP_TYPE_APP:
			if (dec_read(at, size, &m))
				ctl_message(f->ctl, now / 1e9, &m);
			break;
		default:
			break;
		}
	}
	gst_rtcp_buffer_unmap(&rtcp);
	gst_buffer_unref(buf);
}
