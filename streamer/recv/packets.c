// SPDX-License-Identifier: GPL-2.0
/* What arrives at the sockets of recv, and what is reported of it. */
#include <gst/app/gstappsrc.h>
#include <gst/net/gstnetaddressmeta.h>
#include <gst/rtp/gstrtcpbuffer.h>
#include <gst/rtp/gstrtpbuffer.h>

#include "streamer/media/parts.h"
#include "streamer/options.h"
#include "streamer/recv/state.h"
#include "streamer/rtp/ecn.h"
#include "streamer/rtp/train.h"
#include "streamer/rtp/wire.h"

#define NTP_EPOCH_S 2208988800ULL /* 1970, in seconds since 1900 */
#define TWCC_FMT 15

/*
 * The stream comes from there. Until a report of the sender, or of where it is now, comes, ours go
 * to a port above.
 */
static void come_from(struct receiver *r, GSocketAddress *from, gboolean moved)
{
	if (!G_IS_INET_SOCKET_ADDRESS(from))
		return;
	g_mutex_lock(&r->lock);
	if (moved)
		r->peer_reported = FALSE;
	if (!r->from || !address_equal(r->from, G_INET_SOCKET_ADDRESS(from))) {
		g_set_object(&r->from, G_INET_SOCKET_ADDRESS(from));
		if (!r->peer_reported) {
			g_clear_object(&r->peer);
			r->peer = address_with_port(r->from, 1);
		}
	}
	g_mutex_unlock(&r->lock);
}

/* Network thread: headers below RTP. A socket of IPv6 takes IPv4, too: who sends counts. */
static guint ip_udp(const struct receiver *r)
{
	return wire_ip_udp((r->from ? g_socket_address_get_family(G_SOCKET_ADDRESS(r->from))
				    : g_socket_get_family(r->rtp)) == G_SOCKET_FAMILY_IPV6);
}

/* Network thread: return the newest rate to the sender. */
static void return_rate(struct receiver *r)
{
	guint overhead = ip_udp(r) + WIRE_RTP;
	guint8 packet[RETURNS_MAX];
	GstFlowReturn flow;
	guint ssrc = 0;
	gsize len;

	g_object_get(r->session, "internal-ssrc", &ssrc, NULL);
	len = returns_compound(packet, &r->returns.newest, r->form, r->cname, ssrc, r->media_ssrc,
			       overhead);
	flow = gst_app_src_push_buffer(GST_APP_SRC(r->news), gst_buffer_new_memdup(packet, len));
	if (flow == GST_FLOW_OK)
		r->returned++;
}

/* Network thread: what has come, for the sender's controller. */
static void see_packet(struct receiver *r, const guint8 *p, enum ecn ecn)
{
	guint64 now = (guint64)monotonic_ns(), ntp = now + r->ntp_ns;
	gboolean again = (p[1] & 0x7f) == RTX_PT;
	guint8 report[CCFB_MAX];
	guint ssrc = 0;
	gsize len;

	ccfb_see(&r->ccfb, again, paqm_get32(p + 8), paqm_get16(p + 2), ecn, now);
	if (ecn != ECN_NOT_ECT && !again && !r->twcc_only)
		g_atomic_int_set(&r->tell_ecn, TRUE);
	/* transport-wide feedback never takes back that one is missing: who knows both kinds hears
	 * this one
	 */
	if (!g_atomic_int_get(&r->tell_ecn) && (!r->ccfb.overtaken || r->twcc_only))
		return;
	if (!ccfb_due(&r->ccfb, !again && p[1] >> 7, now))
		return;
	g_object_get(r->session, "internal-ssrc", &ssrc, NULL);
	len = ccfb_write(&r->ccfb, report, ssrc,
			 (guint32)(ntp / 1000000000 << 16 | (ntp % 1000000000 << 16) / 1000000000),
			 now);
	if (gst_app_src_push_buffer(GST_APP_SRC(r->news), gst_buffer_new_memdup(report, len)) ==
	    GST_FLOW_OK)
		r->told++;
}

/* With the lock of deciding. */
static void tell_sender(struct receiver *r)
{
	guint8 app[DEC_APP];
	guint ssrc = 0;
	gsize len;

	g_object_get(r->session, "internal-ssrc", &ssrc, NULL);
	len = dec_tell(r->dec, monotonic_ns() / 1e9, ssrc, app);
	if (len)
		gst_app_src_push_buffer(GST_APP_SRC(r->news), gst_buffer_new_memdup(app, len));
}

static void log_value(const char *controller, const char *key, double value, void *data)
{
	fprintf(data, "%" G_GINT64_FORMAT ",%s,%s,%.9g\n", realtime_ns(), controller, key, value);
}

gboolean recv_on_deciding(gpointer receiver)
{
	struct receiver *r = receiver;

	g_mutex_lock(&r->deciding);
	tell_sender(r);
	if (r->control_csv && r->ticks_deciding++ % 2 == 0)
		dec_state(r->dec, log_value, r->control_csv);
	g_mutex_unlock(&r->deciding);
	return G_SOURCE_CONTINUE;
}

/* Network thread: a packet of the stream, which is not sent again. */
static void show_decider(struct receiver *r, const guint8 *p, gsize len, gsize wire, enum ecn ecn)
{
	struct dec_packet d = {
		.at = monotonic_ns() / 1e9,
		.bytes = wire + ip_udp(r),
		.ecn = ecn,
		.ts = paqm_get32(p + 4),
		.seq = paqm_get16(p + 2),
		.marker = p[1] >> 7,
		.rtp = p,
		.len = r->srtp_key ? 0 : len,
		.readable = len,
	};

	g_mutex_lock(&r->deciding);
	dec_see(r->dec, paqm_get32(p + 8), &d);
	tell_sender(r);
	g_mutex_unlock(&r->deciding);
}

/* Streaming thread of RTCP: one kind of report on each packet is enough. */
static GstPadProbeReturn on_own_report(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	struct receiver *r = data;
	guint8 head[2];

	(void)pad;
	if (g_atomic_int_get(&r->tell_ecn) &&
	    gst_buffer_extract(GST_PAD_PROBE_INFO_BUFFER(info), 0, head, sizeof(head)) ==
		    sizeof(head) &&
	    (head[0] & 31) == TWCC_FMT && head[1] == GST_RTCP_TYPE_RTPFB)
		return GST_PAD_PROBE_DROP;
	return GST_PAD_PROBE_OK;
}

/* Network thread: one that ought to be of a picture, whoever sends it. */
static void count_unshown(struct receiver *r, const guint8 *p)
{
	if ((p[1] & 0x7f) == FEC_PT || (p[1] & 0x7f) == RTX_PT)
		return;
	g_atomic_int_set(&r->newest_ssrc, (gint)paqm_get32(p + 8));
	g_atomic_int_set(&r->newest_pt, p[1] & 0x7f);
	g_atomic_int_inc(&r->unshown);
}

/* Not of RTP: returns_see() looks closer. */
static gboolean is_probe(const guint8 *p, gsize len)
{
	return len >= PAQM_PROBE_LEN && p[0] == PAQM_PROBE_FIRST;
}

/* Network thread: does it come from where the stream does? */
static gboolean is_from_there(struct receiver *r, GSocketAddress *from)
{
	return !r->from || !G_IS_INET_SOCKET_ADDRESS(from) ||
	       address_equal(r->from, G_INET_SOCKET_ADDRESS(from));
}

/*
 * Network thread. Probes are signed by nobody: from where the stream comes, or ahead of its first
 * packet. Then the returns go to who was first, and others do not say how many.
 */
static gboolean is_expected(struct receiver *r, GSocketAddress *from)
{
	gboolean is = is_from_there(r, from);

	if (!is || !G_IS_INET_SOCKET_ADDRESS(from))
		return is;
	g_mutex_lock(&r->lock);
	if (!r->peer)
		r->peer = address_with_port(G_INET_SOCKET_ADDRESS(from), 1);
	else if (!r->from)
		is = address_same_host(r->peer, from);
	g_mutex_unlock(&r->lock);
	return is;
}

/* Network thread. */
static void see_probe(struct receiver *r, GSocketAddress *from, const guint8 *p, gsize len)
{
	bool probe;

	if (!is_expected(r, from))
		return;
	r->probes++;
	if (returns_see(&r->returns, p, len, (guint64)monotonic_ns(), &probe))
		return_rate(r);
}

/* At the socket. */
static GstPadProbeReturn on_datagram(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	GstBuffer *buf = GST_PAD_PROBE_INFO_BUFFER(info);
	GstNetAddressMeta *meta = gst_buffer_get_net_address_meta(buf);
	struct receiver *r = data;
	gboolean in = FALSE;
	GstMapInfo map;

	(void)pad;
	if (!gst_buffer_map(buf, &map, GST_MAP_READ))
		return GST_PAD_PROBE_OK;
	if (is_probe(map.data, map.size))
		see_probe(r, meta ? meta->addr : NULL, map.data, map.size);
	else
		in = guard_let(r->guard, map.data, map.size);
	if (in)
		count_unshown(r, map.data);
	gst_buffer_unmap(buf, &map);
	return in ? GST_PAD_PROBE_OK : GST_PAD_PROBE_DROP;
}

/* Network thread: whose a packet is; what is sent again has an SSRC of its own (RFC 4588). */
static enum streams_whose look_whose(struct receiver *r, const guint8 *p, GSocketAddress *from)
{
	enum streams_whose is;

	if ((p[1] & 0x7f) == RTX_PT)
		return r->srtp_key || is_from_there(r, from) ? STREAMS_OURS : STREAMS_REFUSED;
	is = streams_heard(r->streams, paqm_get32(p + 8), from);
	if (is == STREAMS_REFUSED || is == STREAMS_OTHER)
		return is;
	come_from(r, from, is == STREAMS_MOVED);
	r->media_ssrc = paqm_get32(p + 8); /* whatever its coding is */
	return is;
}

/* Of packets that were let in, and have proven themselves where there is a key. */
static GstPadProbeReturn on_packet(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	GstBuffer *buf = GST_PAD_PROBE_INFO_BUFFER(info);
	GstNetAddressMeta *meta = gst_buffer_get_net_address_meta(buf);
	GstRTPBuffer rtp = GST_RTP_BUFFER_INIT;
	gsize wire = gst_buffer_get_size(buf);
	struct receiver *r = data;
	enum ecn ecn = ecn_taken();
	enum streams_whose is;
	bool probe, begins;
	GstMapInfo map;

	(void)pad;
	if (!gst_buffer_map(buf, &map, GST_MAP_READ))
		return GST_PAD_PROBE_OK;
	if (r->srtp_key)
		wire += WIRE_SRTP;
	begins = !r->srtp_key && train_is(map.data, map.size);
	is = look_whose(r, map.data, meta ? meta->addr : NULL);
	if (is == STREAMS_OURS || is == STREAMS_MOVED) {
		see_packet(r, map.data, ecn);
		if (r->dec && (map.data[1] & 0x7f) == VIDEO_PT && !begins)
			show_decider(r, map.data, map.size, wire, ecn);
		if (returns_see(&r->returns, map.data, map.size, (guint64)monotonic_ns(), &probe))
			return_rate(r);
	}
	gst_buffer_unmap(buf, &map);
	if (is == STREAMS_REFUSED || begins) /* a train has done its work on the way */
		return GST_PAD_PROBE_DROP;
	if (is == STREAMS_OTHER) /* rtpbin has to know of it, nobody else */
		return GST_PAD_PROBE_OK;
	if (!gst_rtp_buffer_map(buf, GST_MAP_READ, &rtp))
		return GST_PAD_PROBE_OK;
	inbound_packet(r->inbound, gst_rtp_buffer_get_timestamp(&rtp));
	if (gst_rtp_buffer_get_payload_type(&rtp) == RTX_PT ||
	    gst_rtp_buffer_get_payload_type(&rtp) == FEC_PT) {
		/* numbered otherwise: not for the log of the stream's packets */
		r->repairs++;
		gst_rtp_buffer_unmap(&rtp);
		return GST_PAD_PROBE_OK;
	}
	r->packets++;
	g_mutex_lock(&r->lock);
	xr_see(&r->window, gst_rtp_buffer_get_seq(&rtp),
	       (guint32)gst_util_uint64_scale((guint64)monotonic_ns(), 90000, GST_SECOND) -
		       gst_rtp_buffer_get_timestamp(&rtp));
	g_mutex_unlock(&r->lock);
	if (r->rx_csv)
		fprintf(r->rx_csv, "%" G_GINT64_FORMAT ",%u,%u,%d,%" G_GSIZE_FORMAT "\n",
			realtime_ns(), gst_rtp_buffer_get_seq(&rtp),
			gst_rtp_buffer_get_timestamp(&rtp), gst_rtp_buffer_get_marker(&rtp),
			wire + ip_udp(r));
	gst_rtp_buffer_unmap(&rtp);
	return GST_PAD_PROBE_OK;
}

/* Reports go to wherever those of the stream's sender come from. */
static GstPadProbeReturn on_rtcp(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	GstBuffer *buf = GST_PAD_PROBE_INFO_BUFFER(info);
	GstNetAddressMeta *meta = gst_buffer_get_net_address_meta(buf);
	struct receiver *r = data;
	enum streams_whose is;
	guint8 head[8];

	(void)pad;
	if (!meta || gst_buffer_extract(buf, 0, head, sizeof(head)) != sizeof(head))
		return GST_PAD_PROBE_OK;
	is = streams_reported(r->streams, paqm_get32(head + 4), meta->addr);
	if (is == STREAMS_REFUSED)
		return GST_PAD_PROBE_DROP;
	g_mutex_lock(&r->lock);
	if (is == STREAMS_OURS)
		r->peer_reported = TRUE;
	/* a sender whom nobody reports to may send no packets, but reports */
	if (is == STREAMS_OURS || !r->from)
		g_set_object(&r->peer, meta->addr);
	g_mutex_unlock(&r->lock);
	return GST_PAD_PROBE_OK;
}

GstFlowReturn recv_on_report(GstAppSink *sink, gpointer receiver)
{
	GstSample *sample = gst_app_sink_pull_sample(sink);
	struct receiver *r = receiver;
	GstMapInfo map;

	if (!sample)
		return GST_FLOW_EOS;
	g_mutex_lock(&r->lock);
	/* A lost report is no harm: the next one says more. */
	if (r->peer && gst_buffer_map(gst_sample_get_buffer(sample), &map, GST_MAP_READ)) {
		g_socket_send_to(r->rtcp, r->peer, (const char *)map.data, map.size, NULL, NULL);
		gst_buffer_unmap(gst_sample_get_buffer(sample), &map);
	}
	g_mutex_unlock(&r->lock);
	gst_sample_unref(sample);
	return GST_FLOW_OK;
}

/* Thread of RTCP: statistics of the stream, for whoever watches the session, join a regular report.
 */
static gboolean on_sending_report(GObject *session, GstBuffer *buf, gboolean early, gpointer data)
{
	guint8 head[8], packet[XR_SUMMARY_LEN];
	struct receiver *r = data;
	gsize len;

	(void)session;
	if (early || gst_buffer_extract(buf, 0, head, sizeof(head)) != sizeof(head) ||
	    !g_atomic_int_compare_and_exchange(&r->summary_due, TRUE, FALSE))
		return FALSE;
	g_mutex_lock(&r->lock);
	len = xr_summary(packet, &r->window, paqm_get32(head + 4), r->media_ssrc);
	g_mutex_unlock(&r->lock);
	if (len)
		gst_buffer_append_memory(buf, gst_memory_new_wrapped(0, g_memdup2(packet, len), len,
								     0, len, NULL, g_free));
	return len > 0;
}

/* With a key, nothing but what has proven itself says who sends, or where to. */
static void watch_sockets(struct receiver *r)
{
	GstElement *rtp = part_of(r->pipeline, "rtp"), *rtcp = part_of(r->pipeline, "rtcpin");
	const char *rtp_pad = "src", *rtcp_pad = "src";

	part_probe(rtp, "src", on_datagram, r);
	guard_rtcp(r->guard, rtcp, "src");
	if (r->srtp_key) {
		rtp = part_of(r->pipeline, "srtp");
		rtcp = rtp;
		rtp_pad = "rtp_src";
		rtcp_pad = "rtcp_src";
		guard_proven_rtp(r->guard, rtp, rtp_pad);
	}
	part_probe(rtp, rtp_pad, on_packet, r);
	guard_hide_sender(rtp, rtp_pad);
	guard_proven_rtcp(r->guard, rtcp, rtcp_pad);
	part_probe(rtcp, rtcp_pad, on_rtcp, r);
	guard_hide_sender(rtcp, rtcp_pad);
}

void recv_watch_packets(struct receiver *r)
{
	guint ssrc = 0;

	ecn_watch(part_of(r->pipeline, "rtp"), r->rtp);
	r->ntp_ns = NTP_EPOCH_S * 1000000000 + (guint64)(realtime_ns() - monotonic_ns());
	part_probe(part_of(r->pipeline, "bin"), "send_rtcp_src_0", on_own_report, r);
	watch_sockets(r);
	g_signal_emit_by_name(part_of(r->pipeline, "bin"), "get-internal-session", 0, &r->session);
	g_object_get(r->session, "internal-ssrc", &ssrc, NULL);
	g_signal_connect(r->session, "on-sending-rtcp", G_CALLBACK(on_sending_report), r);
	guard_own(r->guard, ssrc);
}
