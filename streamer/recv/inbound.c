// SPDX-License-Identifier: GPL-2.0
/* The receiving side of a video stream; see inbound.h. */
#include "streamer/recv/inbound.h"

#include "streamer/options.h"
#include "streamer/media/parts.h"
#include "streamer/recv/playout.h"
#include "streamer/rtp/wire.h"

#define VIDEO_CLOCK 90000
#define NACK_RETRIES 3
#define NACK_DELAY_MS 5	 /* what comes a little out of order is not lost */
#define RTX_FIRST_MS 150 /* waited for a retransmission before one has been timed */
#define RTX_DETECT_MS 60 /* until a hole shows: the next picture's first packet, and some */
#define FEC_STORE_NS (500 * GST_MSECOND)

struct inbound {
	struct inbound_params p;
	guint session;
	GstElement *bin;
	gulong handlers[3];
	guint n_handlers;

	GMutex lock;	     /* of what follows: signals come from streaming threads */
	GHashTable *buffers; /* by SSRC */
	GstElement *buffer, *corrector;
	struct playout playout;
	guint32 first_ts, newest_ts;
	guint pictures; /* of other time stamps than the first */
	gboolean any;
	struct inbound_stats before; /* of streams that were before */
};

static GstElement *on_aux_receiver(GstElement *bin, guint session, gpointer data)
{
	struct inbound *in = data;
	GstElement *rtx, *box;
	GstStructure *map;
	char *name;

	(void)bin;
	if (session != in->session)
		return NULL;
	rtx = gst_element_factory_make("rtprtxreceive", NULL);
	map = gst_structure_new("application/x-rtp-pt-map", G_STRINGIFY(VIDEO_PT), G_TYPE_UINT,
				RTX_PT, NULL);
	g_object_set(rtx, "payload-type-map", map, NULL);
	gst_structure_free(map);
	/* rtpbin wants pads that are called after the session */
	box = gst_bin_new(NULL);
	gst_bin_add(GST_BIN(box), rtx);
	for (int k = 0; k < 2; k++) {
		GstPad *pad = gst_element_get_static_pad(rtx, k ? "src" : "sink");

		name = g_strdup_printf(k ? "src_%u" : "sink_%u", session);
		gst_element_add_pad(box, gst_ghost_pad_new(name, pad));
		gst_object_unref(pad);
		g_free(name);
	}
	return box;
}

static void on_storage(GstElement *bin, GstElement *storage, guint session, gpointer data)
{
	struct inbound *in = data;

	(void)bin;
	if (session == in->session)
		g_object_set(storage, "size-time", FEC_STORE_NS, NULL);
}

/* A packet leaves a jitter buffer. */
static GstPadProbeReturn on_stamped(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	GstBuffer *buf = GST_PAD_PROBE_INFO_BUFFER(info);
	struct inbound *in = data;
	guint8 head[8];

	g_mutex_lock(&in->lock);
	if (in->buffer && GST_OBJECT_PARENT(pad) == GST_OBJECT(in->buffer) &&
	    GST_BUFFER_PTS_IS_VALID(buf) &&
	    gst_buffer_extract(buf, 0, head, sizeof(head)) == sizeof(head))
		playout_stamp(&in->playout, GST_READ_UINT32_BE(head + 4),
			      (gst_element_get_base_time(in->buffer) + GST_BUFFER_PTS(buf)) / 1e9);
	g_mutex_unlock(&in->lock);
	return GST_PAD_PROBE_OK;
}

static void on_buffer(GstElement *bin, GstElement *buffer, guint session, guint ssrc, gpointer data)
{
	struct inbound *in = data;

	(void)bin;
	if (session != in->session)
		return;
	if (in->p.rtx)
		/* The next packet comes when there is a picture, not after a usual time. */
		g_object_set(buffer, "do-retransmission", TRUE, "rtx-next-seqnum", FALSE,
			     "rtx-delay", NACK_DELAY_MS, "rtx-max-retries", NACK_RETRIES, NULL);
	if (in->p.fec)
		g_object_set(buffer, "do-lost", TRUE, NULL);
	part_probe(buffer, "src", on_stamped, in);
	g_mutex_lock(&in->lock);
	/* The first is the stream's; retransmissions have gone into it before. */
	if (!in->buffer)
		in->buffer = gst_object_ref(buffer);
	g_hash_table_replace(in->buffers, GUINT_TO_POINTER(ssrc), gst_object_ref(buffer));
	g_object_set(buffer, "latency", (guint)(in->playout.wait * 1000 + 0.5), NULL);
	g_mutex_unlock(&in->lock);
}

/* A request for a key frame names its payload type, or rtpbin sends none: nobody else does. */
static GstPadProbeReturn on_key_frame_wanted(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	GstEvent *event = GST_PAD_PROBE_INFO_EVENT(info);

	(void)pad;
	(void)data;
	if (gst_event_has_name(event, "GstForceKeyUnit")) {
		event = gst_event_make_writable(event);
		gst_structure_set(gst_event_writable_structure(event), "payload", G_TYPE_UINT,
				  VIDEO_PT, NULL);
		info->data = event;
	}
	return GST_PAD_PROBE_OK;
}

/* What has corrected is none of the decoder's business. */
static GstPadProbeReturn on_corrected(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	guint8 head[2] = {0};

	(void)pad;
	(void)data;
	gst_buffer_extract(GST_PAD_PROBE_INFO_BUFFER(info), 0, head, sizeof(head));
	return (head[1] & 0x7f) == FEC_PT ? GST_PAD_PROBE_DROP : GST_PAD_PROBE_OK;
}

void inbound_correct(struct inbound *in, GstElement *corrector)
{
	GstPad *pad = gst_element_get_static_pad(corrector, "src");
	GObject *storage = NULL;

	gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_BUFFER, on_corrected, NULL, NULL);
	gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_EVENT_UPSTREAM, on_key_frame_wanted, NULL, NULL);
	gst_object_unref(pad);

	g_signal_emit_by_name(in->bin, "get-internal-storage", in->session, &storage);
	g_object_set(corrector, "pt", FEC_PT, "storage", storage, NULL);
	g_clear_object(&storage);
	in->corrector = gst_object_ref(corrector);
}

struct inbound *inbound_new(GstElement *bin, guint session, const struct inbound_params *p)
{
	struct inbound *in = g_new0(struct inbound, 1);

	in->p = *p;
	in->session = session;
	in->bin = gst_object_ref(bin);
	in->buffers = g_hash_table_new_full(NULL, NULL, NULL, gst_object_unref);
	g_mutex_init(&in->lock);
	playout_begin(&in->playout, VIDEO_CLOCK, p->wait_min / 1e3, p->wait_max / 1e3,
		      p->wait / 1e3);
	in->handlers[in->n_handlers++] =
		g_signal_connect(bin, "new-jitterbuffer", G_CALLBACK(on_buffer), in);
	if (p->rtx)
		in->handlers[in->n_handlers++] = g_signal_connect(bin, "request-aux-receiver",
								  G_CALLBACK(on_aux_receiver), in);
	if (p->fec) {
		in->handlers[in->n_handlers++] =
			g_signal_connect(bin, "new-storage", G_CALLBACK(on_storage), in);
		/* Whoever corrects has to see all packets of the stream, and every hole. */
		g_object_set(bin, "ignore-pt", TRUE, NULL);
	}
	return in;
}

void inbound_packet(struct inbound *in, guint32 rtp_ts)
{
	g_mutex_lock(&in->lock);
	if (!in->any) {
		in->any = TRUE;
		in->first_ts = in->newest_ts = rtp_ts;
	} else if ((gint32)(rtp_ts - in->newest_ts) > 0) {
		in->newest_ts = rtp_ts;
		in->pictures++;
	}
	playout_see(&in->playout, rtp_ts, g_get_monotonic_time() / 1e6);
	g_mutex_unlock(&in->lock);
}

void inbound_pace(struct inbound *in, gint *n, gint *d)
{
	gint step, gcd;

	g_mutex_lock(&in->lock);
	step = in->pictures ? (gint)((in->newest_ts - in->first_ts) / in->pictures) : 0;
	g_mutex_unlock(&in->lock);
	*n = 24;
	*d = 1;
	if (step <= 0)
		return;
	gcd = gst_util_greatest_common_divisor(VIDEO_CLOCK, step);
	*n = VIDEO_CLOCK / gcd;
	*d = step / gcd;
}

/* Of the jitter buffer; FALSE: there is none yet. */
static gboolean buffer_stats(struct inbound *in, struct inbound_stats *st, guint64 *rtx_rtt)
{
	GstStructure *s = NULL;

	if (in->buffer)
		g_object_get(in->buffer, "stats", &s, NULL);
	if (in->corrector)
		g_object_get(in->corrector, "recovered", &st->corrected, NULL);
	if (!s)
		return FALSE;
	gst_structure_get_uint64(s, "num-lost", &st->lost);
	gst_structure_get_uint64(s, "num-late", &st->late);
	gst_structure_get_uint64(s, "rtx-count", &st->asked);
	gst_structure_get_uint64(s, "rtx-success-count", &st->resent);
	gst_structure_get_uint64(s, "rtx-rtt", rtx_rtt);
	gst_structure_free(s);
	st->lost += in->before.lost;
	st->late += in->before.late;
	st->asked += in->before.asked;
	st->resent += in->before.resent;
	return TRUE;
}

void inbound_take(struct inbound *in, guint32 ssrc)
{
	struct inbound_stats st = {0};
	GstElement *buffer;
	guint64 rtx_rtt;

	g_mutex_lock(&in->lock);
	buffer = g_hash_table_lookup(in->buffers, GUINT_TO_POINTER(ssrc));
	if (buffer && buffer != in->buffer) {
		buffer_stats(in, &st, &rtx_rtt);
		in->before = st;
		gst_object_replace((GstObject **)&in->buffer, GST_OBJECT(buffer));
		in->any = FALSE;
		in->pictures = 0;
		playout_begin(&in->playout, VIDEO_CLOCK, in->p.wait_min / 1e3, in->p.wait_max / 1e3,
			      in->playout.wait);
		g_object_set(buffer, "latency", (guint)(in->playout.wait * 1000 + 0.5), NULL);
	}
	g_mutex_unlock(&in->lock);
}

void inbound_leave(struct inbound *in, guint32 ssrc)
{
	g_mutex_lock(&in->lock);
	g_hash_table_remove(in->buffers, GUINT_TO_POINTER(ssrc));
	g_mutex_unlock(&in->lock);
}

guint inbound_tick(struct inbound *in, FILE *log)
{
	struct inbound_stats st = {0};
	double least = 0, excess;
	guint64 rtx_rtt = 0;
	GstElement *buffer;
	guint before, wait;

	g_mutex_lock(&in->lock);
	buffer_stats(in, &st, &rtx_rtt);
	if (in->p.rtx)
		least = (rtx_rtt ? rtx_rtt / 1e9 * 1.25 + RTX_DETECT_MS / 1e3 : RTX_FIRST_MS / 1e3);
	before = (guint)(in->playout.wait * 1000 + 0.5);
	wait = (guint)(playout_update(&in->playout, least) * 1000 + 0.5);
	excess = playout_excess(&in->playout);
	buffer = in->buffer ? gst_object_ref(in->buffer) : NULL;
	g_mutex_unlock(&in->lock);
	if (buffer && wait != before)
		g_object_set(buffer, "latency", wait, NULL);
	gst_clear_object(&buffer);
	if (log)
		fprintf(log,
			"%" G_GINT64_FORMAT ",%.3f,%u,%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT
			",%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT ",%u\n",
			realtime_ns(), excess * 1000, wait, st.lost, st.late, st.asked, st.resent,
			st.corrected);
	return wait;
}

void inbound_stats(struct inbound *in, struct inbound_stats *st)
{
	guint64 rtx_rtt;

	*st = (struct inbound_stats){0};
	g_mutex_lock(&in->lock);
	buffer_stats(in, st, &rtx_rtt);
	g_mutex_unlock(&in->lock);
}

void inbound_free(struct inbound *in)
{
	if (!in)
		return;
	for (guint i = 0; i < in->n_handlers; i++)
		g_signal_handler_disconnect(in->bin, in->handlers[i]);
	gst_clear_object(&in->bin);
	gst_clear_object(&in->buffer);
	gst_clear_object(&in->corrector);
	g_hash_table_unref(in->buffers);
	g_mutex_clear(&in->lock);
	g_free(in);
}
