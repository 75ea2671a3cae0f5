// SPDX-License-Identifier: GPL-2.0
/* Pictures of any size and pace; see format.h. */
#include "streamer/outgoing/format.h"

const char *format_elements(const struct ctl_kind *kind)
{
	/* It only leaves pictures out: those that stay keep their times. */
	return kind->format ? "videorate name=pace drop-only=true ! videoscale add-borders=false ! "
			      "capsfilter name=format ! "
			    : "";
}

void format_use(GstBin *pipeline, const struct ctl_format *f, double source_fps)
{
	GstElement *filter = gst_bin_get_by_name(pipeline, "format");
	GstCaps *caps = gst_caps_new_empty_simple("video/x-raw");
	int n, d;

	if (f->width && f->height)
		gst_caps_set_simple(caps, "width", G_TYPE_INT, f->width, "height", G_TYPE_INT,
				    f->height, NULL);
	if (f->fps > 0 && f->fps < source_fps) {
		gst_util_double_to_fraction(f->fps, &n, &d);
		gst_caps_set_simple(caps, "framerate", GST_TYPE_FRACTION, n, d, NULL);
	}
	g_object_set(filter, "caps", caps, NULL);
	gst_caps_unref(caps);
	gst_object_unref(filter);
}
