// SPDX-License-Identifier: GPL-2.0
/*
 * A sender below its quality floor codes smaller pictures. Windows and files want
 * one size: the first, which is the sender's own, since it begins with whole pictures.
 */
#include "streamer/media/size.h"

#include <stdio.h>

#include "streamer/options.h"

#define SIDE_MIN 16
#define SIDE_MAX 8192

static gboolean is_side(int side)
{
	return side >= SIDE_MIN && side <= SIDE_MAX && !(side % 2);
}

gboolean size_parse(int *width, int *height, const char *text, GError **error)
{
	char end;

	if (sscanf(text, "%5dx%5d%c", width, height, &end) == 2 && is_side(*width) &&
	    is_side(*height))
		return TRUE;
	g_set_error(error, USAGE_ERROR, 0,
		    "--size %s: must be WIDTHxHEIGHT, both even and from " G_STRINGIFY(
			    SIDE_MIN) " to " G_STRINGIFY(SIDE_MAX),
		    text);
	return FALSE;
}

static GstPadProbeReturn on_caps(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	GstEvent *event = GST_PAD_PROBE_INFO_EVENT(info);
	GstStructure *picture;
	struct size *s = data;
	gboolean first = !s->width;
	const char *colours;
	GstCaps *caps;

	(void)pad;
	if (GST_EVENT_TYPE(event) != GST_EVENT_CAPS)
		return GST_PAD_PROBE_OK;
	gst_event_parse_caps(event, &caps);
	picture = gst_caps_get_structure(caps, 0);
	if (!gst_structure_get_int(picture, "width", &s->width) ||
	    !gst_structure_get_int(picture, "height", &s->height) || !first)
		return GST_PAD_PROBE_OK;
	colours = gst_structure_get_string(picture, "colorimetry");
	caps = gst_caps_new_simple("video/x-raw", "format", G_TYPE_STRING, "I420", "width",
				   G_TYPE_INT, s->wanted_width ? s->wanted_width : s->width,
				   "height", G_TYPE_INT,
				   s->wanted_width ? s->wanted_height : s->height, NULL);
	if (colours)
		gst_caps_set_simple(caps, "colorimetry", G_TYPE_STRING, colours, NULL);
	g_object_set(s->filter, "caps", caps, NULL);
	gst_caps_unref(caps);
	return GST_PAD_PROBE_OK;
}

void size_keep(struct size *s, GstElement *decoder, GstElement *filter)
{
	GstPad *pad = gst_element_get_static_pad(decoder, "src");

	s->filter = filter;
	gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM, on_caps, s, NULL);
	gst_object_unref(pad);
}
