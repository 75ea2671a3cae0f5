// SPDX-License-Identifier: GPL-2.0
/* Reports on the peer's pictures; see tell.h. They join those that rtpsession makes anyway. */
#include "streamer/call/tell.h"

#include "core/paqm_bytes.h"
#include "streamer/decide/decide.h"
#include "streamer/media/parts.h"
#include "streamer/options.h"
#include "streamer/rtp/ecn.h"
#include "streamer/rtp/repair.h"
#include "streamer/rtp/wire.h"

#define NTP_EPOCH_S 2208988800ULL /* 1970, in seconds since 1900 */

struct call_tell {
	guint32 ssrc;
	guint pt;
	guint ip_udp;
	guint64 ntp_ns; /* NTP time less that of monotonic_ns() */
	GObject *session;
	gulong signal;
	GMutex lock;
	struct ccfb ccfb;
	gboolean fates; /* an ECN-capable packet has come, or one after a later one */
	struct dec *dec;
};

/* Network thread: a packet, encrypted but for its head. */
static GstPadProbeReturn on_packet(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	GstBuffer *buf = GST_PAD_PROBE_INFO_BUFFER(info);
	enum ecn ecn = ecn_taken();
	struct call_tell *t = data;
	struct dec_packet d;
	const guint8 *head;
	GstMapInfo map;

	(void)pad;
	if (!gst_buffer_map(buf, &map, GST_MAP_READ))
		return GST_PAD_PROBE_OK;
	head = map.data;
	if (map.size < 12 || paqm_get32(head + 8) != t->ssrc || (head[1] & 0x7f) != t->pt) {
		gst_buffer_unmap(buf, &map);
		return GST_PAD_PROBE_OK;
	}
	d = (struct dec_packet){.at = monotonic_ns() / 1e9,
				.bytes = gst_buffer_get_size(buf) + t->ip_udp,
				.ecn = ecn,
				.ts = paqm_get32(head + 4),
				.seq = paqm_get16(head + 2),
				.marker = head[1] >> 7,
				.rtp = head,
				.readable = map.size};
	g_mutex_lock(&t->lock);
	ccfb_see(&t->ccfb, 0, t->ssrc, d.seq, ecn, (guint64)monotonic_ns());
	t->fates |= ecn != ECN_NOT_ECT || t->ccfb.overtaken;
	if (t->dec)
		dec_see(t->dec, t->ssrc, &d);
	g_mutex_unlock(&t->lock);
	gst_buffer_unmap(buf, &map);
	return GST_PAD_PROBE_OK;
}

/* Thread of RTCP: a report is about to leave. */
static gboolean on_sending(GObject *session, GstBuffer *buf, gboolean early, gpointer data)
{
	guint64 now = (guint64)monotonic_ns(), ntp;
	guint8 head[8], report[CCFB_MAX], app[DEC_APP];
	struct call_tell *t = data;
	gsize len = 0, told = 0;
	guint32 ssrc;

	(void)session;
	(void)early;
	if (gst_buffer_extract(buf, 0, head, sizeof(head)) != sizeof(head))
		return FALSE;
	ssrc = paqm_get32(head + 4);
	g_mutex_lock(&t->lock);
	ntp = now + t->ntp_ns;
	if (t->fates)
		len = ccfb_write(
			&t->ccfb, report, ssrc,
			(guint32)(ntp / 1000000000 << 16 | (ntp % 1000000000 << 16) / 1000000000),
			now);
	if (t->dec)
		told = dec_tell(t->dec, now / 1e9, ssrc, app);
	g_mutex_unlock(&t->lock);
	part_append(buf, report, len);
	part_append(buf, app, told);
	return len || told;
}

struct call_tell *call_tell_new(GstElement *src, GSocket *socket, gboolean ipv6, GObject *session,
				guint32 ssrc, guint pt, const struct ctl_kind *kind,
				const double option[CTL_OPTIONS])
{
	struct call_tell *t = g_new0(struct call_tell, 1);
	const struct dec_kind *side = dec_find(kind->name);

	t->ssrc = ssrc;
	t->pt = pt;
	t->ip_udp = wire_ip_udp(ipv6);
	t->ntp_ns = NTP_EPOCH_S * 1000000000 + (guint64)(realtime_ns() - monotonic_ns());
	g_mutex_init(&t->lock);
	if (side) {
		t->dec = dec_new(side, option, monotonic_ns() / 1e9);
		if (!t->dec)
			g_error("out of memory");
	}
	if (socket)
		ecn_watch(src, socket);
	part_probe(src, "src", on_packet, t);
	t->session = g_object_ref(session);
	t->signal = g_signal_connect(session, "on-sending-rtcp", G_CALLBACK(on_sending), t);
	return t;
}

void call_tell_free(struct call_tell *t)
{
	if (!t)
		return;
	g_signal_handler_disconnect(t->session, t->signal);
	g_object_unref(t->session);
	dec_free(t->dec);
	g_mutex_clear(&t->lock);
	g_free(t);
}
