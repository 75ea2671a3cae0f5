// SPDX-License-Identifier: GPL-2.0
/* The receiving side of 2D-interlaced coding; see weave.h. */
#include "streamer/recv/weave.h"

#include <gst/app/gstappsink.h>
#include <gst/app/gstappsrc.h>
#include <gst/rtp/gstrtpbuffer.h>
#include <gst/video/video.h>

#include "streamer/rtp/wire.h"
#include "streamer/outgoing/split.h"
#include "streamer/trace/rtph264.h"

#define PENDING_MAX 8 /* pictures that wait for a decoder; one may never give its part out */
#define NAL_IDR 5

struct picture {
	guint64 ext;	  /* RTP time stamp without phase, extended */
	guint sent, came; /* bit k: part k has been given to its decoder, has come out of it */
	gboolean closed;  /* no part can follow */
	GstSample *part[INTERLACE_PHASES];
};

struct lane {
	struct weave *w;
	int phase;
	gboolean intact; /* all that its next part refers to has been decoded */
	GstElement *in;
};

struct weave {
	enum interlace_mode mode;
	int phases;
	weave_fn fn;
	gpointer data;
	GstElement *inlet;
	struct lane lane[INTERLACE_PHASES];

	/* thread of the jitter buffer */
	struct h264_unit unit;
	gboolean begun;
	guint32 ssrc;
	guint16 seq;
	guint32 ts;
	gboolean marker;
	guint32 step; /* least distance of two pictures */
	guint64 ext;

	GMutex lock;	 /* of what follows */
	GQueue pictures; /* of struct picture, oldest first */
	GstVideoInfo info;
	gboolean sized;
	GstBuffer *before;
	struct weave_stats stats;
};

static guint32 base_of(guint32 ts)
{
	return ts & ~(guint32)(INTERLACE_PHASES - 1);
}

static GstClockTime pts_of(const struct picture *p)
{
	return gst_util_uint64_scale(p->ext, GST_SECOND, 90000);
}

static void free_picture(struct picture *p)
{
	for (int k = 0; k < INTERLACE_PHASES; k++)
		if (p->part[k])
			gst_sample_unref(p->part[k]);
	g_free(p);
}

/* The first part that comes tells the size; another size later is refused. */
static gboolean size_fits(struct weave *w, const GstVideoInfo *part)
{
	int width, height;

	if (!w->sized) {
		interlace_size(w->mode, 2, 2, &width, &height);
		gst_video_info_set_format(&w->info, GST_VIDEO_FORMAT_I420,
					  (guint)(part->width * 2 / width),
					  (guint)(part->height * 2 / height));
		w->info.colorimetry = part->colorimetry;
		w->info.par_n = part->par_n;
		w->info.par_d = part->par_d;
		w->info.fps_n = part->fps_n;
		w->info.fps_d = part->fps_d;
		w->sized = part->width % 2 == 0 && part->height % 2 == 0;
		return w->sized;
	}
	interlace_size(w->mode, w->info.width, w->info.height, &width, &height);
	return part->width == width && part->height == height;
}

static guint join_parts(struct weave *w, struct picture *p, GstVideoFrame *to)
{
	guint have = 0;

	for (int k = 0; k < w->phases; k++) {
		GstVideoInfo info;
		GstVideoFrame from;

		if (!p->part[k] ||
		    !gst_video_info_from_caps(&info, gst_sample_get_caps(p->part[k])) ||
		    !size_fits(w, &info) ||
		    !gst_video_frame_map(&from, &info, gst_sample_get_buffer(p->part[k]),
					 GST_MAP_READ))
			continue;
		for (int c = 0; c < 3; c++) {
			struct plane part = split_plane(&from, c), whole = split_plane(to, c);

			interlace_join(w->mode, k, &part, &whole);
		}
		gst_video_frame_unmap(&from);
		have |= 1U << k;
		w->stats.parts++;
	}
	return have;
}

/* With the lock held. */
static void show(struct weave *w, struct picture *p)
{
	GstVideoFrame to, last;
	GstVideoInfo info;
	GstSample *sample;
	GstBuffer *buf;
	GstCaps *caps;
	guint have;

	for (int k = 0; k < w->phases && !w->sized; k++)
		if (p->part[k] && gst_video_info_from_caps(&info, gst_sample_get_caps(p->part[k])))
			size_fits(w, &info);
	if (!w->sized)
		return; /* nothing has come yet */
	buf = gst_buffer_new_allocate(NULL, GST_VIDEO_INFO_SIZE(&w->info), NULL);
	gst_video_frame_map(&to, &w->info, buf, GST_MAP_READWRITE);
	have = join_parts(w, p, &to);
	if (w->before)
		gst_video_frame_map(&last, &w->info, w->before, GST_MAP_READ);
	for (int c = 0; c < 3; c++) {
		struct plane whole = split_plane(&to, c), before = {0};

		if (w->before)
			before = split_plane(&last, c);
		interlace_conceal(w->mode, have, &whole, w->before ? &before : NULL);
	}
	if (w->before)
		gst_video_frame_unmap(&last);
	gst_video_frame_unmap(&to);
	for (int k = 0; k < w->phases; k++)
		w->stats.missing += !(have >> k & 1);
	GST_BUFFER_PTS(buf) = pts_of(p);
	gst_buffer_replace(&w->before, buf);
	caps = gst_video_info_to_caps(&w->info);
	sample = gst_sample_new(buf, caps, NULL, NULL);
	w->fn(sample, w->data);
	gst_sample_unref(sample);
	gst_caps_unref(caps);
	gst_buffer_unref(buf);
}

/* With the lock held: what is complete goes out, in order. */
static void show_ready(struct weave *w)
{
	struct picture *p;

	while ((p = g_queue_peek_head(&w->pictures)) &&
	       ((p->closed && p->came == p->sent) || w->pictures.length > PENDING_MAX)) {
		g_queue_pop_head(&w->pictures);
		show(w, p);
		free_picture(p);
	}
}

static GstFlowReturn on_part(GstAppSink *sink, gpointer data)
{
	GstSample *sample = gst_app_sink_pull_sample(sink);
	struct lane *lane = data;
	struct weave *w = lane->w;
	GstClockTime pts;

	if (!sample)
		return GST_FLOW_EOS;
	pts = GST_BUFFER_PTS(gst_sample_get_buffer(sample));
	g_mutex_lock(&w->lock);
	for (GList *l = w->pictures.head; l; l = l->next) {
		struct picture *p = l->data;

		if (pts_of(p) != pts || p->part[lane->phase])
			continue;
		p->part[lane->phase] = gst_sample_ref(sample);
		p->came |= 1U << lane->phase;
		break;
	}
	show_ready(w);
	g_mutex_unlock(&w->lock);
	gst_sample_unref(sample);
	return GST_FLOW_OK;
}

/* The picture that a packet belongs to. With the lock held. */
static struct picture *picture_of(struct weave *w, guint32 ts)
{
	struct picture *p = g_queue_peek_tail(&w->pictures);

	if (!w->begun)
		w->ext = (1ULL << 32) | base_of(ts);
	else
		gst_rtp_buffer_ext_timestamp(&w->ext, base_of(ts));
	if (p && p->ext == w->ext)
		return p;
	for (GList *l = w->pictures.head; l; l = l->next)
		((struct picture *)l->data)->closed = TRUE;
	p = g_new0(struct picture, 1);
	p->ext = w->ext;
	g_queue_push_tail(&w->pictures, p);
	return p;
}

/* Packets are missing between the last one and this: which parts may they have belonged to? */
static void mark_lost(struct weave *w, guint32 ts)
{
	int from = (int)SPLIT_PHASE(w->ts), to = (int)SPLIT_PHASE(ts);
	guint32 apart = base_of(ts) - base_of(w->ts);

	if (apart > RTP_JUMP_MAX || !w->step || apart > w->step + w->step / 2) {
		for (int k = 0; k < w->phases; k++) /* of a whole picture */
			w->lane[k].intact = FALSE;
		return;
	}
	if (!w->marker && from < w->phases)
		w->lane[from].intact = FALSE;
	for (int k = 0; k < w->phases; k++)
		if (apart ? k > from || k < to : k > from && k < to)
			w->lane[k].intact = FALSE;
}

/*
 * Another stream, or the same from a sender that was begun anew, with numbers or times of before.
 * What is late or comes twice has not got past the jitter buffer.
 */
static gboolean begins_anew(const struct weave *w, guint32 ssrc, guint16 seq, guint32 ts)
{
	return ssrc != w->ssrc || (gint16)(seq - w->seq) < 0 ||
	       (gint32)(ts - w->ts) < -RTP_JUMP_MAX;
}

/* What came before is of no use to what comes from here on. */
static void restart(struct weave *w, guint16 seq, guint32 ts)
{
	for (int k = 0; k < w->phases; k++)
		w->lane[k].intact = FALSE;
	h264_unit_clear(&w->unit); /* it would take numbers below its own for late ones */
	h264_unit_init(&w->unit);
	w->step = 0;
	w->seq = (guint16)(seq - 1);
	w->ts = ts;
	g_mutex_lock(&w->lock);
	w->ext = ((w->ext >> 32) + 1) << 32 | base_of(ts); /* time goes on forward */
	g_mutex_unlock(&w->lock);
}

static gboolean is_key(const GByteArray *unit)
{
	for (guint i = 0; i + 4 < unit->len; i++)
		if (!unit->data[i] && !unit->data[i + 1] && !unit->data[i + 2] &&
		    unit->data[i + 3] == 1 && (unit->data[i + 4] & 0x1f) == NAL_IDR)
			return TRUE;
	return FALSE;
}

static void take(struct weave *w, GstRTPBuffer *rtp)
{
	guint32 ts = gst_rtp_buffer_get_timestamp(rtp);
	guint16 seq = gst_rtp_buffer_get_seq(rtp);
	gboolean marker = gst_rtp_buffer_get_marker(rtp);
	guint phase = SPLIT_PHASE(ts);
	enum h264_join join;
	struct picture *p;
	GstBuffer *au;

	if (gst_rtp_buffer_get_payload_type(rtp) != VIDEO_PT || phase >= (guint)w->phases)
		return;
	if (w->begun && begins_anew(w, gst_rtp_buffer_get_ssrc(rtp), seq, ts))
		restart(w, seq, ts);
	w->ssrc = gst_rtp_buffer_get_ssrc(rtp);
	if (w->begun && seq == w->seq)
		return;
	if (w->begun && seq != (guint16)(w->seq + 1))
		mark_lost(w, ts);
	else if (w->begun && base_of(ts) != base_of(w->ts) &&
		 (!w->step || base_of(ts) - base_of(w->ts) < w->step))
		w->step = base_of(ts) - base_of(w->ts);
	join = h264_unit_add(&w->unit, seq, ts, marker, gst_rtp_buffer_get_payload(rtp),
			     gst_rtp_buffer_get_payload_len(rtp));
	g_mutex_lock(&w->lock);
	p = picture_of(w, ts);
	w->begun = TRUE;
	w->seq = seq;
	w->ts = ts;
	w->marker = marker;
	if (join == H264_JOIN_BROKEN)
		w->lane[phase].intact = FALSE;
	else if (join == H264_JOIN_COMPLETE && is_key(w->unit.data))
		w->lane[phase].intact = TRUE;
	au = NULL;
	if (join == H264_JOIN_COMPLETE && w->lane[phase].intact && !(p->sent >> phase & 1)) {
		au = gst_buffer_new_memdup(w->unit.data->data, w->unit.data->len);
		GST_BUFFER_PTS(au) = pts_of(p);
		p->sent |= 1U << phase;
	}
	show_ready(w);
	g_mutex_unlock(&w->lock);
	if (au)
		gst_app_src_push_buffer(GST_APP_SRC(w->lane[phase].in), au);
}

static GstFlowReturn on_packet(GstAppSink *sink, gpointer data)
{
	GstSample *sample = gst_app_sink_pull_sample(sink);
	GstRTPBuffer rtp = GST_RTP_BUFFER_INIT;

	if (!sample)
		return GST_FLOW_EOS;
	if (gst_rtp_buffer_map(gst_sample_get_buffer(sample), GST_MAP_READ, &rtp)) {
		take(data, &rtp);
		gst_rtp_buffer_unmap(&rtp);
	}
	gst_sample_unref(sample);
	return GST_FLOW_OK;
}

static gboolean add_decoder(struct weave *w, GstBin *pipeline, int phase, GError **error)
{
	GstAppSinkCallbacks parts = {.new_sample = on_part};
	struct lane *lane = &w->lane[phase];
	GstElement *bin, *out;

	*lane = (struct lane){.w = w, .phase = phase};
	bin = gst_parse_bin_from_description(
		"appsrc name=in is-live=true format=time "
		"caps=video/x-h264,stream-format=byte-stream,alignment=au ! "
		"avdec_h264 max-threads=1 ! videoconvert ! video/x-raw,format=I420 ! "
		"appsink name=out sync=false async=false",
		FALSE, error);
	if (!bin)
		return FALSE;
	lane->in = gst_bin_get_by_name(GST_BIN(bin), "in");
	out = gst_bin_get_by_name(GST_BIN(bin), "out");
	gst_app_sink_set_callbacks(GST_APP_SINK(out), &parts, lane, NULL);
	gst_object_unref(out);
	gst_bin_add(pipeline, bin);
	return TRUE;
}

struct weave *weave_new(GstBin *pipeline, enum interlace_mode mode, weave_fn fn, gpointer data,
			GError **error)
{
	GstAppSinkCallbacks packets = {.new_sample = on_packet};
	struct weave *w = g_new0(struct weave, 1);

	w->mode = mode;
	w->phases = interlace_phases(mode);
	w->fn = fn;
	w->data = data;
	g_mutex_init(&w->lock);
	g_queue_init(&w->pictures);
	h264_unit_init(&w->unit);
	w->inlet = gst_element_factory_make("appsink", NULL);
	g_object_set(w->inlet, "sync", FALSE, "async", FALSE, NULL);
	gst_app_sink_set_callbacks(GST_APP_SINK(w->inlet), &packets, w, NULL);
	gst_bin_add(pipeline, gst_object_ref(w->inlet));
	for (int k = 0; k < w->phases; k++) {
		if (!add_decoder(w, pipeline, k, error)) {
			weave_free(w);
			return NULL;
		}
	}
	return w;
}

GstElement *weave_inlet(struct weave *w)
{
	return w->inlet;
}

void weave_stats(struct weave *w, struct weave_stats *st)
{
	g_mutex_lock(&w->lock);
	*st = w->stats;
	g_mutex_unlock(&w->lock);
}

void weave_free(struct weave *w)
{
	if (!w)
		return;
	for (int k = 0; k < w->phases; k++)
		gst_clear_object(&w->lane[k].in);
	gst_clear_object(&w->inlet);
	g_queue_clear_full(&w->pictures, (GDestroyNotify)free_picture);
	gst_clear_buffer(&w->before);
	h264_unit_clear(&w->unit);
	g_mutex_clear(&w->lock);
	g_free(w);
}
