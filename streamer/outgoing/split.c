// SPDX-License-Identifier: GPL-2.0
/* The sending side of 2D-interlaced coding; see split.h. */
#include "streamer/outgoing/split.h"

#include <gst/rtp/gstrtpbuffer.h>
#include <gst/video/video.h>

struct lane {
	struct split *split;
	int phase;
	guint wait; /* pictures, before its first one */
};

struct split {
	enum interlace_mode mode;
	/* streaming thread: all lanes take their turn in one */
	GstVideoInfo whole, part;
	int phase; /* of what is being paid out */
	struct lane lane[INTERLACE_PHASES];
};

char *split_elements(enum interlace_mode mode, const char *options)
{
	GString *s = g_string_new("tee name=split ");

	for (int k = 0; k < interlace_phases(mode); k++)
		g_string_append_printf(s, "split. ! paqmh264enc name=enc%d %s ! merge. ", k,
				       options);
	g_string_append(s, "funnel name=merge forward-sticky-events=false ! ");
	return g_string_free(s, FALSE);
}

/* The encoder sees a source of sub-pictures. */
static GstPadProbeReturn on_caps(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	GstEvent *event = GST_PAD_PROBE_INFO_EVENT(info);
	struct lane *lane = data;
	struct split *s = lane->split;
	int width, height;
	GstCaps *caps;

	(void)pad;
	if (GST_EVENT_TYPE(event) != GST_EVENT_CAPS)
		return GST_PAD_PROBE_OK;
	gst_event_parse_caps(event, &caps);
	if (!gst_video_info_from_caps(&s->whole, caps))
		return GST_PAD_PROBE_OK;
	interlace_size(s->mode, s->whole.width, s->whole.height, &width, &height);
	caps = gst_caps_copy(caps);
	gst_caps_set_simple(caps, "width", G_TYPE_INT, width, "height", G_TYPE_INT, height, NULL);
	gst_video_info_from_caps(&s->part, caps);
	info->data = gst_event_new_caps(caps);
	gst_event_set_seqnum(info->data, gst_event_get_seqnum(event));
	gst_event_unref(event);
	gst_caps_unref(caps);
	return GST_PAD_PROBE_OK;
}

static GstPadProbeReturn on_raw(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	GstBuffer *buf = GST_PAD_PROBE_INFO_BUFFER(info), *sub;
	struct lane *lane = data;
	struct split *s = lane->split;
	GstVideoFrame from, to;

	(void)pad;
	if (lane->wait) {
		lane->wait--;
		return GST_PAD_PROBE_DROP;
	}
	if (!gst_video_frame_map(&from, &s->whole, buf, GST_MAP_READ))
		return GST_PAD_PROBE_DROP;
	sub = gst_buffer_new_allocate(NULL, GST_VIDEO_INFO_SIZE(&s->part), NULL);
	gst_video_frame_map(&to, &s->part, sub, GST_MAP_WRITE);
	for (int c = 0; c < 3; c++) {
		struct plane whole = split_plane(&from, c), part = split_plane(&to, c);

		interlace_split(s->mode, lane->phase, &whole, &part);
	}
	gst_video_frame_unmap(&to);
	gst_video_frame_unmap(&from);
	gst_buffer_copy_into(sub, buf, GST_BUFFER_COPY_FLAGS | GST_BUFFER_COPY_TIMESTAMPS, 0, -1);
	gst_buffer_unref(buf);
	info->data = sub;
	return GST_PAD_PROBE_OK;
}

static GstPadProbeReturn on_coded(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	struct lane *lane = data;

	(void)pad;
	(void)info;
	lane->split->phase = lane->phase;
	return GST_PAD_PROBE_OK;
}

static gboolean mark(GstBuffer **buf, guint i, gpointer data)
{
	GstRTPBuffer rtp = GST_RTP_BUFFER_INIT;
	struct split *s = data;
	guint32 ts;

	(void)i;
	*buf = gst_buffer_make_writable(*buf);
	if (!gst_rtp_buffer_map(*buf, GST_MAP_READWRITE, &rtp))
		return TRUE;
	ts = gst_rtp_buffer_get_timestamp(&rtp);
	gst_rtp_buffer_set_timestamp(&rtp,
				     (ts & ~(guint32)(INTERLACE_PHASES - 1)) + (guint32)s->phase);
	gst_rtp_buffer_unmap(&rtp);
	return TRUE;
}

static GstPadProbeReturn on_packets(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	(void)pad;
	if (info->type & GST_PAD_PROBE_TYPE_BUFFER_LIST) {
		info->data = gst_buffer_list_make_writable(info->data);
		gst_buffer_list_foreach(info->data, mark, data);
	} else {
		GstBuffer *buf = info->data;

		mark(&buf, 0, data);
		info->data = buf;
	}
	return GST_PAD_PROBE_OK;
}

static void watch(GstElement *e, const char *name, GstPadProbeType what, GstPadProbeCallback fn,
		  gpointer data)
{
	GstPad *pad = gst_element_get_static_pad(e, name);

	gst_pad_add_probe(pad, what, fn, data, NULL);
	gst_object_unref(pad);
}

struct split *split_new(GstBin *pipeline, enum interlace_mode mode, guint gop, GstElement *pay)
{
	struct split *s = g_new0(struct split, 1);

	s->mode = mode;
	for (int k = 0; k < interlace_phases(mode); k++) {
		char *name = g_strdup_printf("enc%d", k);
		GstElement *enc = gst_bin_get_by_name(pipeline, name);
		struct lane *lane = &s->lane[k];

		*lane = (struct lane){s, k, (guint)k * gop / (guint)interlace_phases(mode)};
		watch(enc, "sink", GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM, on_caps, lane);
		watch(enc, "sink", GST_PAD_PROBE_TYPE_BUFFER, on_raw, lane);
		watch(enc, "src", GST_PAD_PROBE_TYPE_BUFFER, on_coded, lane);
		gst_object_unref(enc);
		g_free(name);
	}
	watch(pay, "src", GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_BUFFER_LIST, on_packets,
	      s);
	return s;
}

void split_free(struct split *s)
{
	g_free(s);
}
