// SPDX-License-Identifier: GPL-2.0
/* Trains of packets in a stream with an encoder; see trains.h. */
#include "streamer/outgoing/trains.h"

#include <gst/rtp/gstrtpbuffer.h>
#include <string.h>

#include "core/paqm_bytes.h"
#include "streamer/gst/trainpace.h"
#include "streamer/rtp/wire.h"

#define ONE_BYTE 0xBEDE /* RFC 8285 */
#define TWCC_BYTES 3	/* of the element that rtpsession writes a number into */
/* A picture's packets and what follows them last until the next picture, which may be late. */
#define COVER 1.25

struct trains {
	guint below, longest; /* bytes around RTP, and of a packet of a train with them */
	GMutex lock;	      /* of the next three */
	struct ctl_train want;
	gboolean wanted;
	gint64 interval; /* us */
	/* streaming thread */
	struct ctl_train now;
	gboolean any, on, within; /* @within: a picture */
	guint8 next;
	gint64 begin; /* us */
	guint16 inserted;
	guint8 head[12]; /* of the last packet */
};

/* Of the picture that begins: is another train to begin, or is this one to end? */
static void choose(struct trains *t)
{
	g_mutex_lock(&t->lock);
	if (!t->wanted) {
		t->on = FALSE;
	} else if (!t->any || t->want.id != t->now.id) {
		t->now = t->want;
		t->any = t->on = TRUE;
		t->next = 0;
		t->begin = g_get_monotonic_time();
	}
	g_mutex_unlock(&t->lock);
}

/*
 * Header and extension of a packet of the train: the elements @old of @old_len bytes, ours, and
 * zeroes until it is as long as all, with @media bytes behind it.
 */
static GstMemory *head_of(struct trains *t, const guint8 *old, gsize old_len, gsize media)
{
	gsize whole = t->longest - t->below - media;
	gsize least = 12 + 4 + ((old_len + 1 + PROBE_DATA + 3) & ~(gsize)3);
	gsize len = MAX(whole & ~(gsize)3, least);
	guint8 *p = g_malloc0(len);
	struct probe probe = {
		.train = t->now.id,
		.index = t->next++,
		.packets = t->now.packets,
		.flags = (guint8)((t->now.start ? PROBE_START : 0) | (media ? 0 : PROBE_PADDING)),
		.rate = (guint32)MIN(t->now.rate, G_MAXUINT32)};

	memcpy(p, t->head, 12);
	p[0] |= 0x10;
	paqm_put16(p + 12, ONE_BYTE);
	paqm_put16(p + 14, (guint16)((len - 16) / 4));
	memcpy(p + 16, old, old_len);
	p[16 + old_len] = PROBE_ID << 4 | (PROBE_DATA - 1);
	probe_write(p + 17 + old_len, &probe);
	t->on = t->next < t->now.packets;
	return gst_memory_new_wrapped(0, p, len, 0, len, p, g_free);
}

/* A packet of the stream joins the train. */
static GstBuffer *join(struct trains *t, GstBuffer *buf)
{
	const guint8 *old = NULL;
	gsize len, media, old_len = 0;
	GstBuffer *whole;
	GstMapInfo map;

	if (!gst_buffer_map(buf, &map, GST_MAP_READ))
		return buf;
	/* contributors, padding or other extensions: not of our payloaders */
	len = 12;
	if ((map.data[0] & 0x2f) == 0 && map.data[0] & 0x10 && map.size >= 16 &&
	    paqm_get16(map.data + 12) == ONE_BYTE) {
		old = map.data + 16;
		old_len = 4 * (gsize)paqm_get16(map.data + 14);
		len = 16 + old_len;
	}
	if (map.size <= len || (map.data[0] & 0x3f && !old)) {
		gst_buffer_unmap(buf, &map);
		return buf;
	}
	media = map.size - len;
	whole = gst_buffer_new();
	gst_buffer_append_memory(whole, head_of(t, old, old_len, media));
	gst_buffer_unmap(buf, &map);
	gst_buffer_copy_into(whole, buf, GST_BUFFER_COPY_FLAGS | GST_BUFFER_COPY_TIMESTAMPS, 0, -1);
	gst_buffer_copy_into(whole, buf, GST_BUFFER_COPY_MEMORY, len, media);
	gst_buffer_unref(buf);
	return whole;
}

static GstBuffer *see(struct trains *t, GstBuffer *buf, gboolean *last)
{
	GstRTPBuffer rtp = GST_RTP_BUFFER_INIT;

	if (!t->within)
		choose(t);
	buf = gst_buffer_make_writable(buf);
	if (!gst_rtp_buffer_map(buf, GST_MAP_READWRITE, &rtp))
		return buf;
	gst_rtp_buffer_set_seq(&rtp, (guint16)(gst_rtp_buffer_get_seq(&rtp) + t->inserted));
	*last = gst_rtp_buffer_get_marker(&rtp);
	gst_rtp_buffer_unmap(&rtp);
	gst_buffer_extract(buf, 0, t->head, sizeof(t->head));
	t->within = !*last;
	return t->on ? join(t, buf) : buf;
}

/* Behind a picture: what the train lacks until the next one. @like: has its time stamps. */
static GstBuffer *fill(struct trains *t, const GstBuffer *like)
{
	static const guint8 twcc[TWCC_BYTES] = {TWCC_ID << 4 | 1};
	gint64 covered = t->begin + (gint64)(8e6 * t->longest / t->now.rate * t->next), interval;
	GstBuffer *buf;

	g_mutex_lock(&t->lock);
	interval = t->interval;
	g_mutex_unlock(&t->lock);
	if (!t->on || covered >= g_get_monotonic_time() + (gint64)(COVER * (double)interval))
		return NULL;
	t->inserted++;
	paqm_put16(t->head + 2, (guint16)(paqm_get16(t->head + 2) + 1));
	t->head[0] = 0x80;
	t->head[1] &= 0x7f;
	buf = gst_buffer_new();
	gst_buffer_append_memory(buf, head_of(t, twcc, sizeof(twcc), 0));
	GST_BUFFER_PTS(buf) = GST_BUFFER_PTS(like);
	GST_BUFFER_DTS(buf) = GST_BUFFER_DTS(like);
	return buf;
}

static GstPadProbeReturn on_list(struct trains *t, GstPadProbeInfo *info)
{
	GstBufferList *list = info->data, *out;
	guint n = gst_buffer_list_length(list);
	GstBuffer *more;

	out = gst_buffer_list_new_sized(n);
	for (guint i = 0; i < n; i++) {
		gboolean last = FALSE;
		GstBuffer *buf = see(t, gst_buffer_ref(gst_buffer_list_get(list, i)), &last);

		gst_buffer_list_add(out, buf);
		while (last && (more = fill(t, buf)))
			gst_buffer_list_add(out, more);
	}
	gst_buffer_list_unref(list);
	info->data = out;
	return GST_PAD_PROBE_OK;
}

/* One packet: what follows it goes the same way from here. */
static GstPadProbeReturn on_one(struct trains *t, GstPad *pad, GstPadProbeInfo *info)
{
	gboolean last = FALSE;
	GstBuffer *buf = see(t, info->data, &last), *more;
	GstFlowReturn flow = GST_FLOW_OK;
	GstBufferList *list;
	GstPad *peer;

	info->data = buf;
	more = last ? fill(t, buf) : NULL;
	peer = more ? gst_pad_get_peer(pad) : NULL;
	if (!peer) {
		if (more)
			gst_buffer_unref(more);
		return GST_PAD_PROBE_OK;
	}
	list = gst_buffer_list_new();
	gst_buffer_list_add(list, gst_buffer_ref(buf));
	for (; more; more = fill(t, buf))
		gst_buffer_list_add(list, more);
	gst_buffer_unref(buf);
	flow = gst_pad_chain_list(peer, list);
	gst_object_unref(peer);
	info->data = NULL;
	GST_PAD_PROBE_INFO_FLOW_RETURN(info) = flow;
	return GST_PAD_PROBE_HANDLED;
}

static GstPadProbeReturn on_payload(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	return info->type & GST_PAD_PROBE_TYPE_BUFFER_LIST ? on_list(data, info)
							   : on_one(data, pad, info);
}

/* The pacer's thread: when the packet is sent. */
static GstPadProbeReturn on_leave(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	struct probe probe;

	(void)pad;
	(void)data;
	if (!train_probe(info->data, &probe, 0))
		return GST_PAD_PROBE_OK;
	info->data = gst_buffer_make_writable(GST_BUFFER_CAST(info->data));
	train_probe(info->data, &probe, (guint64)g_get_monotonic_time());
	return GST_PAD_PROBE_OK;
}

static void watch(GstElement *e, GstPadProbeType what, GstPadProbeCallback fn, struct trains *t)
{
	GstPad *pad = gst_element_get_static_pad(e, "src");

	gst_pad_add_probe(pad, what, fn, t, NULL);
	gst_object_unref(pad);
}

guint trains_room(const struct ctl_kind *kind)
{
	return kind->train ? PROBE_ROOM : 0;
}

struct trains *trains_new(GstElement *pay, GstElement *pacer, guint headers)
{
	struct trains *t = g_new0(struct trains, 1);

	t->below = wire_below(headers);
	t->longest = WIRE_PACKET;
	g_mutex_init(&t->lock);
	watch(pay, GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_BUFFER_LIST, on_payload, t);
	watch(pacer, GST_PAD_PROBE_TYPE_BUFFER, on_leave, t);
	return t;
}

void trains_want(struct trains *t, const struct ctl_train *want, double interval)
{
	g_mutex_lock(&t->lock);
	t->wanted = want != NULL;
	if (want)
		t->want = *want;
	t->interval = (gint64)(interval * 1e6);
	g_mutex_unlock(&t->lock);
}

void trains_free(struct trains *t)
{
	if (!t)
		return;
	g_mutex_clear(&t->lock);
	g_free(t);
}
