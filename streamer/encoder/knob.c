// SPDX-License-Identifier: GPL-2.0
/* The table of encoders' rates; see knob.h. */
#include "streamer/encoder/knob.h"

#include <string.h>

#define LIVE_VPX                                                                                   \
	"deadline=1 cpu-used=8 lag-in-frames=0 end-usage=cbr buffer-size=240 "                     \
	"buffer-initial-size=120 buffer-optimal-size=120 undershoot=95 overshoot=15 "              \
	"keyframe-max-dist=240"

/* Names may end in *: VA-API and others number their devices and name their codings. The first
 * row that fits counts. Units are those of the elements' documentation (GStreamer 1.22 to 1.26).
 */
static const struct row {
	const char *element;
	struct knob knob;
} rows[] = {
	/* ours, which counts headers itself */
	{"paqmh264enc", {"rate", 1, NULL, "", KNOB_RATE}},
	{"x264enc",
	 {"bitrate", 1000, NULL,
	  "tune=zerolatency speed-preset=faster vbv-buf-capacity=120 key-int-max=240", KNOB_RATE}},
	{"openh264enc",
	 {"bitrate", 1, NULL, "rate-control=bitrate complexity=low gop-size=240", KNOB_RATE}},
	{"vp8enc", {"target-bitrate", 1, NULL, LIVE_VPX, KNOB_RATE}},
	{"vp9enc", {"target-bitrate", 1, NULL, LIVE_VPX, KNOB_RATE}},
	{"x265enc",
	 {"bitrate", 1000, NULL, "tune=zerolatency speed-preset=ultrafast key-int-max=240",
	  KNOB_RATE}},
	{"svtav1enc", {"target-bitrate", 1000, NULL, "preset=12", KNOB_RATE}},
	{"av1enc", {"target-bitrate", 1000, NULL, "", KNOB_RATE}},
	/* va: vah264enc, varenderD129h265enc, vaav1enc; vaapi before it: vaapih264enc */
	{"va*enc", {"bitrate", 1000, NULL, "rate-control=cbr", KNOB_RATE}},
	{"nv*enc", {"bitrate", 1000, NULL, "", KNOB_RATE}},
	{"qsv*enc", {"bitrate", 1000, NULL, "", KNOB_RATE}},
	/* V4L2_CID_MPEG_VIDEO_BITRATE counts bit/s; the element sets controls while it is open. */
	{"v4l2*enc", {"extra-controls", 1, "video_bitrate", "", KNOB_RATE}},
	/* M-JPEG, and pictures as they are: no rate, but a size of each. */
	{"jpegenc", {"quality", 1, NULL, "", KNOB_QUALITY}},
	{"avenc_bmp", {"qos", 1, NULL, "", KNOB_SIZE}},
};

/* From a property's own words: "Bitrate in kbit/sec", "Bitrate (in bits per second)". */
static guint unit_of(GParamSpec *pspec)
{
	char *words = g_ascii_strdown(g_param_spec_get_blurb(pspec), -1);
	guint unit = 0;

	if (strstr(words, "kbit") || strstr(words, "kbps") || strstr(words, "kilobit"))
		unit = 1000;
	else if (strstr(words, "bit/s") || strstr(words, "bits/s") || strstr(words, "bps") ||
		 strstr(words, "bits per second"))
		unit = 1;
	g_free(words);
	return unit;
}

gboolean knob_find(GstElementFactory *factory, struct knob *knob, GError **error)
{
	const char *name = GST_OBJECT_NAME(factory);
	GObjectClass *klass = g_type_class_ref(gst_element_factory_get_element_type(factory));
	GParamSpec *pspec = NULL;

	*knob = (struct knob){.live = ""};
	for (guint i = 0; i < G_N_ELEMENTS(rows) && !pspec; i++)
		if (g_pattern_match_simple(rows[i].element, name)) {
			pspec = g_object_class_find_property(klass, rows[i].knob.property);
			*knob = rows[i].knob;
		}
	if (!knob->unit) {
		pspec = g_object_class_find_property(klass, "bitrate");
		if (!pspec)
			pspec = g_object_class_find_property(klass, "target-bitrate");
		if (pspec)
			knob->property = g_intern_string(g_param_spec_get_name(pspec));
		knob->unit = pspec ? unit_of(pspec) : 0;
	}
	if (!pspec)
		g_set_error(error, GST_CORE_ERROR, GST_CORE_ERROR_FAILED,
			    "%s: it has no property that sets a bit rate", name);
	else if (!knob->unit)
		g_set_error(error, GST_CORE_ERROR, GST_CORE_ERROR_FAILED,
			    "%s: its property %s does not say whether it counts bit/s or kbit/s; "
			    "such an encoder needs a row in streamer/encoder/knob.c",
			    name, g_param_spec_get_name(pspec));
	g_type_class_unref(klass);
	return pspec && knob->unit;
}

void knob_turn(GstElement *encoder, const struct knob *knob, double rate)
{
	gint64 units = MAX((gint64)(rate / knob->unit), 1);
	GValue value = G_VALUE_INIT;

	if (knob->turns != KNOB_RATE)
		return;
	if (knob->control) {
		GstStructure *s = gst_structure_new("controls", knob->control, G_TYPE_INT,
						    (gint)MIN(units, G_MAXINT), NULL);

		g_object_set(encoder, knob->property, s, NULL);
		gst_structure_free(s);
		return;
	}
	/* Whatever integer the property is; one that is narrower takes its greatest. */
	g_value_init(&value, G_TYPE_INT64);
	g_value_set_int64(&value, MIN(units, G_MAXINT));
	g_object_set_property(G_OBJECT(encoder), knob->property, &value);
	g_value_unset(&value);
}
