// SPDX-License-Identifier: GPL-2.0
/* How often the numbers of encrypted packets have begun anew; see rollover.h. */
#include "streamer/rtp/rollover.h"

#include "core/paqm_msg.h"
#include "streamer/media/parts.h"
#include "streamer/rtp/carry.h"

#define RTP_HEAD 12
#define SR 200
#define SR_LEN 28
#define SLACK 16384 /* packets that may be missing or come late around a report */

struct stream {
	guint16 seq;	 /* of the newest packet */
	gboolean came;	 /* since the last report */
	gboolean proven; /* one of its packets was authentic: srtpdec counts from there on */
	guint32 roc;	 /* as srtpdec was told */
	guint tries;
};

struct rollover {
	GstElement *srtpdec;
	GstBuffer *key;

	GMutex lock;	     /* RTP and RTCP come in threads of their own */
	GHashTable *streams; /* by SSRC; the gate has let few in */
};

/*
 * Numbers begin below 2^15 with senders of ours, so a packet's is beyond the count by that at most,
 * but for what is lost or late.
 */
static guint32 rolled(guint32 count, guint16 seq)
{
	gint64 from = (gint64)count - SLACK, number = from + (guint16)(seq - (guint64)from);

	return number < 0 ? 0 : (guint32)(number >> 16);
}

/* srtpdec does not lock its streams when one is taken out, while packets of others pass. */
static void remove_key(struct rollover *r, guint32 ssrc)
{
	GST_OBJECT_LOCK(r->srtpdec);
	g_signal_emit_by_name(r->srtpdec, "remove-key", ssrc);
	GST_OBJECT_UNLOCK(r->srtpdec);
}

/* It locks itself. */
static GstCaps *on_request_key(GstElement *srtpdec, guint ssrc, gpointer data)
{
	struct rollover *r = data;
	struct stream *st;
	guint32 roc;

	(void)srtpdec;
	g_mutex_lock(&r->lock);
	st = g_hash_table_lookup(r->streams, GUINT_TO_POINTER(ssrc));
	roc = st ? st->roc : 0;
	g_mutex_unlock(&r->lock);
	return carry_key_caps(r->key, roc);
}

static GstPadProbeReturn on_packet(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	struct rollover *r = data;
	guint8 head[RTP_HEAD];
	struct stream *st;
	gpointer ssrc;

	(void)pad;
	if (gst_buffer_extract(GST_PAD_PROBE_INFO_BUFFER(info), 0, head, sizeof(head)) !=
	    sizeof(head))
		return GST_PAD_PROBE_OK;
	ssrc = GUINT_TO_POINTER(paqm_get32(head + 8));
	g_mutex_lock(&r->lock);
	st = g_hash_table_lookup(r->streams, ssrc);
	if (!st) {
		st = g_new0(struct stream, 1);
		g_hash_table_insert(r->streams, ssrc, st);
	}
	st->seq = paqm_get16(head + 2);
	st->came = TRUE;
	g_mutex_unlock(&r->lock);
	return GST_PAD_PROBE_OK;
}

static GstPadProbeReturn on_proven(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	struct rollover *r = data;
	guint8 head[RTP_HEAD] = {0};
	struct stream *st;

	(void)pad;
	gst_buffer_extract(GST_PAD_PROBE_INFO_BUFFER(info), 0, head, sizeof(head));
	g_mutex_lock(&r->lock);
	st = g_hash_table_lookup(r->streams, GUINT_TO_POINTER(paqm_get32(head + 8)));
	if (st)
		st->proven = TRUE;
	g_mutex_unlock(&r->lock);
	return GST_PAD_PROBE_OK;
}

/* Packets came, none was authentic, and this report was: another counter, from the next one on. */
static gboolean judge(struct rollover *r, guint32 ssrc, guint32 count)
{
	gboolean another = FALSE;
	struct stream *st;
	guint32 roc;

	g_mutex_lock(&r->lock);
	st = g_hash_table_lookup(r->streams, GUINT_TO_POINTER(ssrc));
	if (st && st->came && !st->proven) {
		/* what others send, or send again, may begin anywhere: the next one in turn */
		roc = rolled(count, st->seq) + (st->tries++ & 1);
		another = roc != st->roc;
		st->roc = roc;
		st->came = FALSE;
	}
	g_mutex_unlock(&r->lock);
	return another;
}

static GstPadProbeReturn on_report(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	GstBuffer *buf = GST_PAD_PROBE_INFO_BUFFER(info);
	struct rollover *r = data;
	guint8 report[SR_LEN];

	(void)pad;
	/* it comes first, if there is one (RFC 3550 section 6.1) */
	if (gst_buffer_extract(buf, 0, report, sizeof(report)) == sizeof(report) &&
	    report[1] == SR && judge(r, paqm_get32(report + 4), paqm_get32(report + 20)))
		remove_key(r, paqm_get32(report + 4));
	return GST_PAD_PROBE_OK;
}

struct rollover *rollover_new(GstElement *srtpdec, GstBuffer *key)
{
	struct rollover *r = g_new0(struct rollover, 1);

	r->srtpdec = srtpdec;
	r->key = gst_buffer_ref(key);
	g_mutex_init(&r->lock);
	r->streams = g_hash_table_new_full(NULL, NULL, NULL, g_free);
	g_signal_connect(srtpdec, "request-key", G_CALLBACK(on_request_key), r);
	part_probe(srtpdec, "rtp_sink", on_packet, r);
	part_probe(srtpdec, "rtp_src", on_proven, r);
	part_probe(srtpdec, "rtcp_src", on_report, r);
	return r;
}

gboolean rollover_proven(struct rollover *r, guint32 ssrc)
{
	struct stream *st;
	gboolean proven;

	g_mutex_lock(&r->lock);
	st = g_hash_table_lookup(r->streams, GUINT_TO_POINTER(ssrc));
	proven = st && st->proven;
	g_mutex_unlock(&r->lock);
	return proven;
}

void rollover_leave(struct rollover *r, guint32 ssrc)
{
	g_mutex_lock(&r->lock);
	g_hash_table_remove(r->streams, GUINT_TO_POINTER(ssrc));
	g_mutex_unlock(&r->lock);
	remove_key(r, ssrc);
}

void rollover_free(struct rollover *r)
{
	if (!r)
		return;
	gst_buffer_unref(r->key);
	g_hash_table_unref(r->streams);
	g_mutex_clear(&r->lock);
	g_free(r);
}
