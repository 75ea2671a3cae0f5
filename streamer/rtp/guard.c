// SPDX-License-Identifier: GPL-2.0
/* The gate before one of rtpbin's sessions; see guard.h. */
#include "streamer/rtp/guard.h"

#include <gst/net/gstnetaddressmeta.h>

#include "core/paqm_msg.h"
#include "streamer/media/parts.h"
#include "streamer/rtp/wire.h"

struct guard {
	guard_fn gone;
	gpointer data;

	GMutex lock; /* RTP and RTCP come in threads of their own */
	struct gate gate;
	gint64 now, reported, heard; /* us */
};

struct guard *guard_new(gboolean srtp, guard_fn gone, gpointer data)
{
	struct guard *g = g_new0(struct guard, 1);

	g_mutex_init(&g->lock);
	g->now = GUARD_BEGIN;
	g->gate.proof = srtp;
	g->gone = gone;
	g->data = data;
	return g;
}

void guard_agree(struct guard *g, guint32 ssrc)
{
	gate_agree(&g->gate, ssrc);
}

void guard_own(struct guard *g, guint32 ssrc)
{
	gate_own(&g->gate, ssrc);
}

void guard_keep(struct guard *g, guint32 ssrc)
{
	g_mutex_lock(&g->lock);
	g->gate.keep = ssrc;
	g_mutex_unlock(&g->lock);
}

typedef enum gate_why (*gate_fn)(struct gate *g, const uint8_t *p, size_t len, uint64_t now_ns,
				 struct gate_gone *gone);

static gboolean let(struct guard *g, gate_fn judge, const guint8 *p, gsize len)
{
	struct gate_gone gone;
	enum gate_why why;

	g_mutex_lock(&g->lock);
	why = judge(&g->gate, p, len, (guint64)g->now * 1000, &gone);
	g_mutex_unlock(&g->lock);
	if (gone.any && g->gone)
		g->gone(gone.ssrc, g->data);
	return why == GATE_IN;
}

gboolean guard_let(struct guard *g, const guint8 *p, gsize len)
{
	return let(g, gate_rtp, p, len);
}

static GstPadProbeReturn judge_head(struct guard *g, gate_fn judge, GstPadProbeInfo *info)
{
	guint8 head[12];
	gsize len = gst_buffer_extract(GST_PAD_PROBE_INFO_BUFFER(info), 0, head, sizeof(head));

	return let(g, judge, head, len) ? GST_PAD_PROBE_OK : GST_PAD_PROBE_DROP;
}

static GstPadProbeReturn on_rtp(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	(void)pad;
	return judge_head(data, gate_rtp, info);
}

static GstPadProbeReturn on_rtcp(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	(void)pad;
	return judge_head(data, gate_rtcp, info);
}

static GstPadProbeReturn on_both(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	guint8 kind = 0;

	gst_buffer_extract(GST_PAD_PROBE_INFO_BUFFER(info), 1, &kind, 1);
	return wire_is_rtcp(kind) ? on_rtcp(pad, info, data) : on_rtp(pad, info, data);
}

static GstPadProbeReturn on_proven_rtp(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	struct guard *g = data;
	guint8 head[12];

	(void)pad;
	if (gst_buffer_extract(GST_PAD_PROBE_INFO_BUFFER(info), 0, head, sizeof(head)) <
	    sizeof(head))
		return GST_PAD_PROBE_DROP;
	g_mutex_lock(&g->lock);
	gate_prove(&g->gate, paqm_get32(head + 8));
	g->heard = g->now;
	g_mutex_unlock(&g->lock);
	return GST_PAD_PROBE_OK;
}

static GstPadProbeReturn on_proven_rtcp(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	GstBuffer *buf = gst_buffer_make_writable(GST_PAD_PROBE_INFO_BUFFER(info));
	struct guard *g = data;
	bool about_us = false;
	GstMapInfo map;
	gsize left = 0;

	(void)pad;
	info->data = buf;
	if (!gst_buffer_map(buf, &map, GST_MAP_READWRITE))
		return GST_PAD_PROBE_DROP;
	g_mutex_lock(&g->lock);
	if (map.size >= 8)
		gate_prove(&g->gate, paqm_get32(map.data + 4));
	left = gate_clean(&g->gate, map.data, map.size, &about_us);
	if (left)
		g->heard = g->now;
	if (about_us)
		g->reported = g->now;
	g_mutex_unlock(&g->lock);
	gst_buffer_unmap(buf, &map);
	if (!left)
		return GST_PAD_PROBE_DROP;
	gst_buffer_set_size(buf, (gssize)left);
	return GST_PAD_PROBE_OK;
}

static GstPadProbeReturn on_leaving(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	GstBuffer *buf = gst_buffer_make_writable(GST_PAD_PROBE_INFO_BUFFER(info));
	GstNetAddressMeta *meta = gst_buffer_get_net_address_meta(buf);

	(void)pad;
	(void)data;
	info->data = buf;
	if (meta)
		gst_buffer_remove_meta(buf, GST_META_CAST(meta));
	return GST_PAD_PROBE_OK;
}

void guard_hide_sender(GstElement *e, const char *pad)
{
	part_probe(e, pad, on_leaving, NULL);
}

void guard_rtp(struct guard *g, GstElement *e, const char *pad)
{
	part_probe(e, pad, on_rtp, g);
}

void guard_rtcp(struct guard *g, GstElement *e, const char *pad)
{
	part_probe(e, pad, on_rtcp, g);
}

void guard_both(struct guard *g, GstElement *e, const char *pad)
{
	part_probe(e, pad, on_both, g);
}

void guard_proven_rtp(struct guard *g, GstElement *e, const char *pad)
{
	part_probe(e, pad, on_proven_rtp, g);
}

void guard_proven_rtcp(struct guard *g, GstElement *e, const char *pad)
{
	part_probe(e, pad, on_proven_rtcp, g);
}

void guard_tick(struct guard *g, guint ms)
{
	g_mutex_lock(&g->lock);
	g->now += ms * 1000;
	g_mutex_unlock(&g->lock);
}

/* One of its times. */
static gint64 read_time(struct guard *g, const gint64 *time)
{
	gint64 at;

	g_mutex_lock(&g->lock);
	at = *time;
	g_mutex_unlock(&g->lock);
	return at;
}

gint64 guard_now(struct guard *g)
{
	return read_time(g, &g->now);
}

gint64 guard_reported(struct guard *g)
{
	return read_time(g, &g->reported);
}

gint64 guard_heard(struct guard *g)
{
	return read_time(g, &g->heard);
}

char *guard_summary(struct guard *g)
{
	GString *text;

	if (!gate_refused(&g->gate))
		return NULL;
	text = g_string_new("refused packets:");
	for (int i = 0; i < GATE_WHYS; i++)
		if (g->gate.refused[i])
			g_string_append_printf(text, "%s %" G_GUINT64_FORMAT " %s",
					       text->str[text->len - 1] == ':' ? "" : ",",
					       g->gate.refused[i], gate_whys[i]);
	return g_string_free(text, FALSE);
}

void guard_free(struct guard *g)
{
	if (!g)
		return;
	g_mutex_clear(&g->lock);
	g_free(g);
}
