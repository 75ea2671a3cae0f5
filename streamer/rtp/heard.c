// SPDX-License-Identifier: GPL-2.0
/* Reports of RFC 8888 about our packets; see heard.h. */
#include "streamer/rtp/heard.h"

#include <gst/rtp/gstrtcpbuffer.h>
#include <gst/rtp/gstrtpbuffer.h>
#include <string.h>

#include "core/paqm_msg.h"
#include "streamer/rtp/ccfb.h"
#include "streamer/rtp/wire.h"

#define KEPT 4096 /* packets; power of two */

struct sent {
	guint32 ssrc;
	guint16 seq, wide;
	guint32 size; /* 0: nothing here */
	gint64 at_us;
};

struct heard {
	GstPad *after;
	gulong probe;
	GObject *session;
	gulong signal;
	guint below;
	heard_fn fn;
	gpointer data;

	GMutex lock;
	struct sent sent[KEPT];
	/* thread of RTCP */
	struct ccfb_clock clock;
	double report; /* peer's clock: when the present report was made, s */
	struct heard_packet packets[FB_REPORT];
	guint n;
};

/* Streams that are sent side by side begin at different places. */
static struct sent *place(struct heard *h, guint32 ssrc, guint16 seq)
{
	return &h->sent[(seq + ssrc % KEPT) % KEPT];
}

static void note(struct heard *h, GstBuffer *buf)
{
	GstRTPBuffer rtp = GST_RTP_BUFFER_INIT;
	gpointer wide;
	guint size;

	if (!gst_rtp_buffer_map(buf, GST_MAP_READ, &rtp))
		return;
	/* What has no number for all the transport is not reported by the other kind either. */
	if (gst_rtp_buffer_get_extension_onebyte_header(&rtp, TWCC_ID, 0, &wide, &size) &&
	    size == 2) {
		struct sent p = {.ssrc = gst_rtp_buffer_get_ssrc(&rtp),
				 .seq = gst_rtp_buffer_get_seq(&rtp),
				 .wide = paqm_get16(wide),
				 .size = (guint32)gst_buffer_get_size(buf) + h->below,
				 .at_us = g_get_monotonic_time()};

		g_mutex_lock(&h->lock);
		*place(h, p.ssrc, p.seq) = p;
		g_mutex_unlock(&h->lock);
	}
	gst_rtp_buffer_unmap(&rtp);
}

static gboolean note_of_list(GstBuffer **buf, guint i, gpointer data)
{
	(void)i;
	note(data, *buf);
	return TRUE;
}

/* Streaming thread. */
static GstPadProbeReturn on_sent(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	(void)pad;
	if (info->type & GST_PAD_PROBE_TYPE_BUFFER_LIST)
		gst_buffer_list_foreach(GST_PAD_PROBE_INFO_BUFFER_LIST(info), note_of_list, data);
	else
		note(data, GST_PAD_PROBE_INFO_BUFFER(info));
	return GST_PAD_PROBE_OK;
}

static void on_entry(const struct ccfb_entry *e, void *data)
{
	struct heard *h = data;
	const struct sent *s = place(h, e->ssrc, e->seq);

	if (h->n == FB_REPORT || !s->size || s->ssrc != e->ssrc || s->seq != e->seq ||
	    (e->received && !e->known))
		return;
	h->packets[h->n++] = (struct heard_packet){
		.seq = s->wide,
		.pkt = {.sent = s->at_us / 1e6,
			.recv = h->report - e->before,
			.size = s->size,
			.received = e->received,
			.ect = e->ecn == ECN_ECT0 || e->ecn == ECN_ECT1,
			.ce = e->ecn == ECN_CE},
	};
}

/* Thread of RTCP. */
static void on_feedback(GObject *session, guint type, guint format, guint from, guint media,
			GstBuffer *fci, gpointer data)
{
	struct heard *h = data;
	guint32 ntp;
	guint8 *p;
	gsize len;

	(void)session;
	(void)from;
	if (type != GST_RTCP_TYPE_RTPFB || format != CCFB_FMT || !fci)
		return;
	/* rtpsession takes the SSRC of the first stream for that of the media, as others have it */
	len = gst_buffer_get_size(fci) + 4;
	p = g_malloc(len);
	paqm_put32(p, media);
	gst_buffer_extract(fci, 0, p + 4, len - 4);
	h->n = 0;
	if (len >= 8)
		h->report = ccfb_time(&h->clock, paqm_get32(p + len - 4));
	g_mutex_lock(&h->lock);
	ccfb_read(p, len, &ntp, on_entry, h);
	g_mutex_unlock(&h->lock);
	g_free(p);
	if (h->n)
		h->fn(h->packets, h->n, h->data);
}

struct heard *heard_new(GstPad *after, GObject *session, guint below, heard_fn fn, gpointer data)
{
	struct heard *h = g_new0(struct heard, 1);

	g_mutex_init(&h->lock);
	h->below = below;
	h->fn = fn;
	h->data = data;
	h->after = gst_object_ref(after);
	h->session = g_object_ref(session);
	h->probe =
		gst_pad_add_probe(after, GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_BUFFER_LIST,
				  on_sent, h, NULL);
	h->signal = g_signal_connect(session, "on-feedback-rtcp", G_CALLBACK(on_feedback), h);
	return h;
}

void heard_free(struct heard *h)
{
	if (!h)
		return;
	gst_pad_remove_probe(h->after, h->probe);
	g_signal_handler_disconnect(h->session, h->signal);
	gst_object_unref(h->after);
	g_object_unref(h->session);
	g_mutex_clear(&h->lock);
	g_free(h);
}
