// SPDX-License-Identifier: GPL-2.0
/* Black pictures in place of the camera's; see shutter.h. */
#include "streamer/call/shutter.h"

#include <gst/video/video.h>
#include <string.h>

/* BT.601 and BT.709, limited range; hardly brighter in the full one. */
#define BLACK_Y 16
#define BLACK_UV 128

/* As large as @buf, of the same time; NULL: of pictures like these none is known. */
static GstBuffer *black_like(GstPad *pad, GstBuffer *buf)
{
	GstCaps *caps = gst_pad_get_current_caps(pad);
	GstVideoInfo info;
	GstVideoFrame frame;
	GstBuffer *black;
	gboolean known;

	known = caps && gst_video_info_from_caps(&info, caps) &&
		GST_VIDEO_INFO_FORMAT(&info) == GST_VIDEO_FORMAT_I420;
	g_clear_pointer(&caps, gst_caps_unref);
	if (!known)
		return NULL;
	black = gst_buffer_new_allocate(NULL, gst_buffer_get_size(buf), NULL);
	gst_buffer_copy_into(black, buf, GST_BUFFER_COPY_METADATA, 0, -1);
	if (!gst_video_frame_map(&frame, &info, black, GST_MAP_WRITE)) {
		gst_buffer_unref(black);
		return NULL;
	}
	for (guint i = 0; i < GST_VIDEO_FRAME_N_PLANES(&frame); i++)
		memset(GST_VIDEO_FRAME_PLANE_DATA(&frame, i), i ? BLACK_UV : BLACK_Y,
		       (gsize)GST_VIDEO_FRAME_PLANE_STRIDE(&frame, i) *
			       (gsize)GST_VIDEO_FRAME_COMP_HEIGHT(&frame, i));
	gst_video_frame_unmap(&frame);
	return black;
}

static GstPadProbeReturn on_picture(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	GstBuffer *buf = GST_PAD_PROBE_INFO_BUFFER(info), *black;

	if (!g_atomic_int_get((gint *)data))
		return GST_PAD_PROBE_OK;
	black = black_like(pad, buf);
	if (!black)
		return GST_PAD_PROBE_DROP;
	gst_buffer_unref(buf);
	info->data = black;
	return GST_PAD_PROBE_OK;
}

void shutter_put(GstPad *pad, gint *closed)
{
	gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_BUFFER, on_picture, closed, NULL);
}
