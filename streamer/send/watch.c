// SPDX-License-Identifier: GPL-2.0
/* Pictures and groups that are sent, written down and told. */
#include "streamer/encoded.h"
#include "streamer/send/send.h"

/* Wall-clock time of a running time. The offset between the clocks is taken
 * once, so that capture times keep the exact spacing of the frame clock.
 */
static gint64 wall_ns(struct sender *s, GstClockTime running)
{
	return (gint64)(gst_element_get_base_time(s->pipeline) + running) + s->wall_offset;
}

/* Streaming thread: pictures before the first answer are not coded. */
GstPadProbeReturn send_on_raw_picture(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	struct sender *s = data;

	(void)pad;
	if (s->first_pts < 0)
		s->first_pts = (gint64)GST_BUFFER_PTS(GST_PAD_PROBE_INFO_BUFFER(info));
	return g_atomic_int_get(&s->waiting) || g_atomic_int_get(&s->broken) ? GST_PAD_PROBE_DROP
									     : GST_PAD_PROBE_OK;
}

/* Streaming thread. */
void send_on_picture(GstElement *enc, const GstStructure *p, gpointer data)
{
	struct encoded e = encoded_read(p);
	struct sender *s = data;
	guint32 rtp_ts;
	guint index;
	int phase = 0;

	while (phase < s->encoders - 1 && s->encoder[phase] != enc)
		phase++;
	/* Below the quality floor a picture has two intervals to be sent in. */
	if (e.interval > 0 && e.interval != s->paced) {
		s->paced = e.interval;
		g_object_set(s->pacer, "interval", (guint64)(e.interval * GST_SECOND / s->encoders),
			     NULL);
	}
	encoded_cut(&e, s->pay, s->headers);
	if (s->first_pts < 0)
		s->first_pts = (gint64)e.pts;
	index = (guint)(((gint64)e.pts - s->first_pts) / 1e9 / s->interval + 0.5);
	if (s->from_file)
		index = (s->start_frame + index) % s->y4m.frames;
	rtp_ts = s->ts_offset + (guint32)gst_util_uint64_scale_int(e.pts, 90000, GST_SECOND);
	if (s->split)
		rtp_ts = rtp_ts - SPLIT_PHASE(rtp_ts) + (guint32)phase;
	s->frames += phase == 0;
	s->wire_bytes += e.wire;
	encoded_log(s->frames_csv, &e, wall_ns(s, e.pts), rtp_ts, index);
}

struct status {
	struct sender *s;
	guint64 wire_bps;
	guint gop, qp;
};

static gboolean send_status(gpointer data)
{
	struct status *st = data;

	if (st->s->advice)
		advice_status(st->s->advice, st->s->advice_flow, st->wire_bps, st->gop, st->qp);
	g_free(st);
	return G_SOURCE_REMOVE;
}

/* Streaming thread. */
void send_on_group(GstElement *enc, const GstStructure *g, gpointer data)
{
	struct sender *s = data;
	struct status *st;
	guint64 pts = 0;
	int frames = 0, qp = 0;
	double bits = 0;
	guint gop = 0;

	gst_structure_get(g, "pts", G_TYPE_UINT64, &pts, "gop", G_TYPE_UINT, &gop, "frames",
			  G_TYPE_INT, &frames, "qp-base", G_TYPE_INT, &qp, "R", G_TYPE_DOUBLE,
			  &bits, NULL);
	if (!s->adaptor)
		encoded_group_log(s->gop_csv, g, wall_ns(s, pts));
	if (enc != s->encoder[0])
		return; /* the first speaks for all of equal part */
	bits *= s->encoders;
	st = g_new(struct status, 1);
	*st = (struct status){s, (guint64)(bits / (frames * s->interval)), gop, (guint)qp};
	g_idle_add(send_status, st);
}
