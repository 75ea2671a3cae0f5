// SPDX-License-Identifier: GPL-2.0
/* Pictures that go in, and coded ones that come out: counted, logged, paced. */
#include "streamer/encoder/encoded.h"
#include "streamer/gst/gstpaqmpacer.h"
#include "streamer/media/parts.h"
#include "streamer/outgoing/outgoing.h"

/* So many pictures left out in that time: it is no moment, the machine is too slow. */
#define SLOW_PICTURES 24
#define SLOW_S 5

#define WAIT_MOST_S 1 /* of pictures for the pacer */

/* The offset between the clocks is taken once, so that capture times keep the exact spacing of
 * the frame clock.
 */
gint64 watch_wall_ns(const struct outgoing *o, GstClockTime running)
{
	return (gint64)(gst_element_get_base_time(o->pipeline) + running) + o->wall_offset;
}

/*
 * A picture goes out over an interval, or at once. The pacer's shortest is a millisecond.
 */
static void pace(struct outgoing *o, double interval)
{
	guint64 ns = (guint64)(interval * GST_SECOND / o->n_encoders);

	g_object_set(o->pacer, "interval", o->kind->bursts ? GST_MSECOND : ns, NULL);
}

/* Frame rate and first picture are known once the encoder has caps. */
static void on_caps(GObject *pad, GParamSpec *pspec, gpointer data)
{
	struct outgoing *o = data;
	GstCaps *caps = gst_pad_get_current_caps(GST_PAD(pad));
	int n = 0, d = 0;

	(void)pspec;
	if (caps &&
	    gst_structure_get_fraction(gst_caps_get_structure(caps, 0), "framerate", &n, &d) &&
	    n > 0 && d > 0) {
		o->interval = (double)d / n;
		if (o->source_interval <= 0)
			o->source_interval = o->interval;
		pace(o, o->interval);
	}
	if (caps)
		gst_caps_unref(caps);
}

/* Streaming thread: pictures before the first answer are not coded. */
static GstPadProbeReturn on_raw_picture(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	struct outgoing *o = data;
	gint64 pts = (gint64)GST_BUFFER_PTS(GST_PAD_PROBE_INFO_BUFFER(info));
	gint sparse = g_atomic_int_get(&o->sparse);

	(void)pad;
	if (sparse && o->raw++ % (guint)sparse)
		return GST_PAD_PROBE_DROP;
	if (o->first_pts < 0)
		o->first_pts = pts;
	if (g_atomic_int_get(&o->waiting) || g_atomic_int_get(&o->stopped))
		return GST_PAD_PROBE_DROP;
	if (o->begun < 0)
		o->begun = pts;
	o->newest = pts;
	return GST_PAD_PROBE_OK;
}

/* Streaming thread. */
static void on_picture(GstElement *enc, const GstStructure *p, gpointer data)
{
	struct encoded e = encoded_read(p);
	struct outgoing *o = data;
	guint32 rtp_ts;
	guint index;
	int phase = 0;

	while (phase < o->n_encoders - 1 && o->encoders[phase] != enc)
		phase++;
	/* Below the quality floor a picture has two intervals to be sent in. */
	if (e.interval > 0 && e.interval != o->paced) {
		o->paced = e.interval;
		pace(o, e.interval);
	}
	encoded_cut(&e, o->pay, o->headers);
	if (o->first_pts < 0)
		o->first_pts = (gint64)e.pts;
	index = (guint)(((gint64)e.pts - o->first_pts) / 1e9 / o->source_interval + 0.5);
	if (o->clip_frames)
		index = (o->start_frame + index) % o->clip_frames;
	rtp_ts = o->ts_offset + (guint32)gst_util_uint64_scale_int(e.pts, 90000, GST_SECOND);
	if (o->split)
		rtp_ts = rtp_ts - SPLIT_PHASE(rtp_ts) + (guint32)phase;
	o->frames += phase == 0;
	o->wire_bytes += e.wire;
	o->qp = (guint)e.qp;
	encoded_log(o->frames_csv, &e, watch_wall_ns(o, e.pts), rtp_ts, index);
}

/* Streaming thread. */
static void on_group(GstElement *enc, const GstStructure *g, gpointer data)
{
	struct outgoing *o = data;

	o->group(enc, g, o->data);
}

/*
 * The camera's thread, as the next. After a standstill a test picture or a film makes up for all
 * that it has missed, at once: it would leave the pacer for many seconds, ever so late.
 */
static GstPadProbeReturn on_offered_picture(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	struct outgoing *o = data;
	double interval = o->source_interval > 0 ? o->source_interval : o->interval;

	(void)pad;
	(void)info;
	o->came_before = o->came;
	o->came = g_get_monotonic_time();
	if (o->spread_until - o->came > WAIT_MOST_S * G_USEC_PER_SEC)
		return GST_PAD_PROBE_DROP;
	o->spread_until =
		MAX(o->spread_until, o->came) +
		(gint64)(interval * G_USEC_PER_SEC) * GST_PAQM_PACER_MIN_SPREAD_PERCENT / 100;
	return GST_PAD_PROBE_OK;
}

/* A picture finds no room before the encoder. Told once, if it goes on. */
static void on_overrun(GstElement *queue, gpointer data)
{
	struct outgoing *o = data;

	(void)queue;
	/* A slow camera's pictures are repeated, several at once; but then room comes before the
	 * next. */
	if (o->came - o->came_before < o->interval / 2 * G_USEC_PER_SEC)
		return;
	if (o->came - o->slow_since > SLOW_S * G_USEC_PER_SEC) {
		o->slow_since = o->came;
		o->left_out = 0;
	}
	if (++o->left_out != SLOW_PICTURES || o->slow_told)
		return;
	o->slow_told = TRUE;
	g_printerr("paqm-streamer: this machine is too slow for these pictures: some are left "
		   "out; ask for fewer (--fps) or smaller ones\n");
}

void watch_pictures(struct outgoing *o)
{
	GstElement *queue = part_of(o->pipeline, "newest");
	GstElement *first = o->interlace ? gst_bin_get_by_name(GST_BIN(o->pipeline), "split")
					 : gst_object_ref(o->encoders[0]);
	GstPad *pad = gst_element_get_static_pad(first, "sink");

	if (queue) {
		part_probe(queue, "sink", on_offered_picture, o);
		g_signal_connect(queue, "overrun", G_CALLBACK(on_overrun), o);
	}
	/* What enters the encoder, or what splits pictures for several. */
	gst_object_unref(first);
	g_signal_connect(pad, "notify::caps", G_CALLBACK(on_caps), o);
	gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_BUFFER, on_raw_picture, o, NULL);
	gst_object_unref(pad);
	if (o->adaptor) {
		adaptor_watch(o->adaptor, o->encoders[0], o->pay, on_picture, on_group, o);
		return;
	}
	for (int k = 0; k < o->n_encoders; k++) {
		g_signal_connect(o->encoders[k], "picture", G_CALLBACK(on_picture), o);
		g_signal_connect(o->encoders[k], "group", G_CALLBACK(on_group), o);
	}
}
