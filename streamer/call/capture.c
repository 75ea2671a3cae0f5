// SPDX-License-Identifier: GPL-2.0
/* When what comes was captured; see capture.h. */
#include "streamer/call/capture.h"

#include <gst/rtp/gstrtcpbuffer.h>

#include "streamer/media/parts.h"

#define NTP_TO_UNIX_NS (2208988800LL * GST_SECOND)

static GstCaps *kind_of_time(void)
{
	static GstCaps *kind;

	if (g_once_init_enter(&kind))
		g_once_init_leave(&kind, gst_caps_new_empty_simple("timestamp/x-unix"));
	return kind;
}

/* Network thread of RTCP. */
static GstPadProbeReturn on_report(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	GstRTCPBuffer rtcp = GST_RTCP_BUFFER_INIT;
	struct capture *c = data;
	GstRTCPPacket packet;
	guint32 ssrc, rtp;
	guint64 ntp;

	(void)pad;
	if (!gst_rtcp_buffer_map(GST_PAD_PROBE_INFO_BUFFER(info), GST_MAP_READ, &rtcp))
		return GST_PAD_PROBE_OK;
	if (gst_rtcp_buffer_get_first_packet(&rtcp, &packet) &&
	    gst_rtcp_packet_get_type(&packet) == GST_RTCP_TYPE_SR) {
		gst_rtcp_packet_sr_get_sender_info(&packet, &ssrc, &ntp, &rtp, NULL, NULL);
		g_mutex_lock(&c->lock);
		if (ssrc == c->ssrc) {
			c->told = TRUE;
			c->rtp = rtp;
			c->time = (gint64)gst_util_uint64_scale(ntp, GST_SECOND,
								G_GUINT64_CONSTANT(1) << 32) -
				  NTP_TO_UNIX_NS;
		}
		g_mutex_unlock(&c->lock);
	}
	gst_rtcp_buffer_unmap(&rtcp);
	return GST_PAD_PROBE_OK;
}

/* Streaming thread. */
static GstPadProbeReturn on_packet(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	GstBuffer *buf = GST_PAD_PROBE_INFO_BUFFER(info);
	struct capture *c = data;
	gboolean told;
	guint8 head[8];
	gint64 time;

	(void)pad;
	if (gst_buffer_extract(buf, 0, head, sizeof(head)) != sizeof(head))
		return GST_PAD_PROBE_OK;
	g_mutex_lock(&c->lock);
	told = c->told;
	time = c->time +
	       (gint32)(GST_READ_UINT32_BE(head + 4) - c->rtp) * (gint64)GST_SECOND / c->clock;
	g_mutex_unlock(&c->lock);
	if (!told)
		return GST_PAD_PROBE_OK;
	buf = gst_buffer_make_writable(buf);
	gst_buffer_add_reference_timestamp_meta(buf, kind_of_time(), (GstClockTime)time,
						GST_CLOCK_TIME_NONE);
	info->data = buf;
	return GST_PAD_PROBE_OK;
}

void capture_reports(struct capture *c, GstElement *from, const char *pad)
{
	part_probe(from, pad, on_report, c);
}

void capture_packets(struct capture *c, GstElement *from, const char *pad)
{
	part_probe(from, pad, on_packet, c);
}

gint64 capture_of(GstBuffer *buf)
{
	const GstReferenceTimestampMeta *meta =
		gst_buffer_get_reference_timestamp_meta(buf, kind_of_time());

	return meta ? (gint64)meta->timestamp : 0;
}
