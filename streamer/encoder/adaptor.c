// SPDX-License-Identifier: GPL-2.0
/*
 * Encoders of others. They differ in the name and the unit of the property
 * that sets their rate, and in what makes them fit for live media: one row of a
 * table each. Of encoders that have no row the property's description tells the unit.
 */
#include "streamer/encoder/adaptor.h"

#include <string.h>

#include "streamer/options.h"
#include "streamer/rtp/wire.h"

/* How much of a picture's share of headers enters the mean. */
#define SHARE_GAIN 0.05
/* An encoder that keeps sending more than it was told is told less: so much of the excess
 * of each group, down to this share of the rate. A gap in the pictures counts no longer than GAP.
 */
#define EXCESS_GAIN 0.3
#define TRIM_MIN 0.6
#define GAP (GST_SECOND / 2)
/* Encoders follow a fall of the rate late. After one below FALL of the rate before they are told
 * less by as much again, at least FALL_MIN of the rate; each group returns half of what is missing.
 */
#define FALL 0.9
#define FALL_MIN 0.4

static const struct codec codecs[] = {
	{"video/x-h264", CODEC_H264_PT, "H264", "rtph264pay config-interval=-1 aggregate-mode=none",
	 "rtph264depay", "avdec_h264 max-threads=1"},
	{"video/x-vp8", 98, "VP8", "rtpvp8pay picture-id-mode=15-bit", "rtpvp8depay", "vp8dec"},
	{"video/x-vp9", 99, "VP9", "rtpvp9pay picture-id-mode=15-bit", "rtpvp9depay", "vp9dec"},
};

static const struct kind {
	const char *element, *property;
	guint unit; /* bit/s */
	const char *live;
} kinds[] = {
	{"x264enc", "bitrate", 1000,
	 "tune=zerolatency speed-preset=faster vbv-buf-capacity=120 key-int-max=240"},
	{"openh264enc", "bitrate", 1, "rate-control=bitrate complexity=low gop-size=240"},
	{"vp8enc", "target-bitrate", 1,
	 "deadline=1 cpu-used=8 lag-in-frames=0 end-usage=cbr buffer-size=240 "
	 "buffer-initial-size=120 "
	 "buffer-optimal-size=120 undershoot=95 overshoot=15 keyframe-max-dist=240"},
	{"vp9enc", "target-bitrate", 1,
	 "deadline=1 cpu-used=8 lag-in-frames=0 end-usage=cbr buffer-size=240 "
	 "buffer-initial-size=120 "
	 "buffer-optimal-size=120 undershoot=95 overshoot=15 keyframe-max-dist=240"},
};

struct adaptor {
	char *text; /* element and properties */
	const char *live;
	char *property;
	guint unit;
	const struct codec *codec;
	guint group;
	guint below; /* bytes that a packet has beside RTP */

	GstElement *enc;
	adaptor_fn picture, ended;
	gpointer data;

	GMutex lock;
	guint64 rate; /* told last */
	double share; /* of the wire's bytes that the encoder's own are */
	double trim;  /* against excess */
	double fall;  /* less than 1 after a fall of the rate */

	/* streaming thread: the picture in the payloader, and the group */
	guint64 pts, last_pts;
	guint frame, bytes, wire, packets;
	gint width, height;
	gboolean key;
	guint gop, pictures;
	double bits, allowed;
};

const struct codec *codec_of_payload(guint pt)
{
	for (guint i = 0; i < G_N_ELEMENTS(codecs); i++)
		if (codecs[i].pt == pt)
			return &codecs[i];
	return NULL;
}

GstCaps *codec_caps(const struct codec *codec)
{
	return gst_caps_new_simple("application/x-rtp", "media", G_TYPE_STRING, "video",
				   "clock-rate", G_TYPE_INT, 90000, "encoding-name", G_TYPE_STRING,
				   codec->name, "payload", G_TYPE_INT, (gint)codec->pt,
				   /* What is lost is asked for anew: RFC 4585 section 6.3.1. */
				   "rtcp-fb-nack-pli", G_TYPE_BOOLEAN, TRUE, NULL);
}

/* What comes out of an element of this kind. */
static const struct codec *codec_of_factory(GstElementFactory *factory)
{
	for (const GList *l = gst_element_factory_get_static_pad_templates(factory); l;
	     l = l->next) {
		GstStaticPadTemplate *t = l->data;

		for (guint i = 0; t->direction == GST_PAD_SRC && i < G_N_ELEMENTS(codecs); i++)
			if (strstr(t->static_caps.string, codecs[i].caps))
				return &codecs[i];
	}
	return NULL;
}

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

static gboolean find_property(struct adaptor *a, GstElementFactory *factory, GError **error)
{
	const char *name = GST_OBJECT_NAME(factory);
	GParamSpec *pspec = NULL;
	GObjectClass *klass;

	for (guint i = 0; i < G_N_ELEMENTS(kinds); i++) {
		if (strcmp(kinds[i].element, name))
			continue;
		a->property = g_strdup(kinds[i].property);
		a->unit = kinds[i].unit;
		a->live = kinds[i].live;
		return TRUE;
	}
	klass = g_type_class_ref(gst_element_factory_get_element_type(factory));
	pspec = g_object_class_find_property(klass, "bitrate");
	if (!pspec)
		pspec = g_object_class_find_property(klass, "target-bitrate");
	if (pspec)
		a->unit = unit_of(pspec);
	if (a->unit)
		a->property = g_strdup(g_param_spec_get_name(pspec));
	else if (pspec)
		g_set_error(error, USAGE_ERROR, 0,
			    "--encoder %s: its property %s does not say whether it counts bit/s or "
			    "kbit/s; such an encoder needs a row in streamer/encoder/adaptor.c",
			    name, g_param_spec_get_name(pspec));
	else
		g_set_error(error, USAGE_ERROR, 0,
			    "--encoder %s: it has neither a property bitrate nor target-bitrate",
			    name);
	g_type_class_unref(klass);
	a->live = "";
	return a->unit != 0;
}

struct adaptor *adaptor_new(const char *text, guint group, guint headers, GError **error)
{
	char *name = g_strndup(text, strcspn(text, " \t"));
	GstPluginFeature *loaded = NULL;
	GstElementFactory *factory = gst_element_factory_find(name);
	struct adaptor *a = g_new0(struct adaptor, 1);
	gboolean ok = FALSE;

	g_mutex_init(&a->lock);
	a->text = g_strdup(text);
	a->group = group;
	a->below = wire_below(headers);
	a->share = wire_share(WIRE_PACKET, headers);
	a->trim = a->fall = 1;
	if (factory)
		loaded = gst_plugin_feature_load(GST_PLUGIN_FEATURE(factory));
	if (!loaded || strchr(text, '!')) {
		g_set_error(error, USAGE_ERROR, 0,
			    "--encoder '%s': must be the name of one installed GStreamer element "
			    "and properties of it, such as 'x264enc speed-preset=veryfast'",
			    text);
	} else {
		a->codec = codec_of_factory(GST_ELEMENT_FACTORY(loaded));
		if (a->codec)
			ok = find_property(a, GST_ELEMENT_FACTORY(loaded), error);
		else
			g_set_error(error, USAGE_ERROR, 0,
				    "--encoder %s: makes none of H.264, VP8 and VP9", name);
	}
	gst_clear_object(&factory);
	gst_clear_object(&loaded);
	g_free(name);
	if (ok)
		return a;
	adaptor_free(a);
	return NULL;
}

char *adaptor_text(const struct adaptor *a)
{
	guint n = strcspn(a->text, " \t");

	/* What is given last counts: the user's own properties. */
	return g_strdup_printf("videoconvert ! %.*s %s %s name=enc ! %s name=pay pt=%u", (int)n,
			       a->text, a->live, a->text + n, a->codec->pay, a->codec->pt);
}

/* Tell the encoder the allowance, less headers. */
static void tell(struct adaptor *a)
{
	GValue value = G_VALUE_INIT;
	gint64 units;

	g_mutex_lock(&a->lock);
	units = (gint64)((double)a->rate * a->share * a->trim * a->fall / a->unit);
	g_mutex_unlock(&a->lock);
	g_value_init(&value, G_TYPE_INT64);
	g_value_set_int64(&value, MAX(units, 1));
	g_object_set_property(G_OBJECT(a->enc), a->property, &value);
	g_value_unset(&value);
}

void adaptor_rate(struct adaptor *a, guint64 rate)
{
	g_mutex_lock(&a->lock);
	if ((double)rate < FALL * (double)a->rate)
		a->fall = MAX((double)rate / (double)a->rate, FALL_MIN);
	a->rate = rate;
	g_mutex_unlock(&a->lock);
	tell(a);
}

static void end_group(struct adaptor *a)
{
	GstStructure *s =
		gst_structure_new("paqm-group", "pts", G_TYPE_UINT64, a->pts, "gop", G_TYPE_UINT,
				  a->gop++, "frames", G_TYPE_INT, (gint)a->pictures, "qp-base",
				  G_TYPE_INT, 0, "R", G_TYPE_DOUBLE, a->bits, NULL);

	a->ended(a->enc, s, a->data);
	gst_structure_free(s);
	if (a->allowed > 0) {
		double excess = MIN(a->bits / a->allowed - 1, 1);

		a->trim = CLAMP(a->trim * (1 - EXCESS_GAIN * excess), TRIM_MIN, 1);
	}
	g_mutex_lock(&a->lock);
	a->fall = (1 + a->fall) / 2;
	g_mutex_unlock(&a->lock);
	a->pictures = 0;
	a->bits = a->allowed = 0;
	tell(a);
}

/* The payloader has sent the last packet of a picture. */
static void end_picture(struct adaptor *a)
{
	GstStructure *s;
	guint64 rate;

	g_mutex_lock(&a->lock);
	a->share += SHARE_GAIN * ((double)a->bytes / a->wire - a->share);
	rate = a->rate;
	g_mutex_unlock(&a->lock);
	s = gst_structure_new(
		"paqm-picture", "pts", G_TYPE_UINT64, a->pts, "frame", G_TYPE_UINT, a->frame++,
		"gop", G_TYPE_UINT, a->gop, "type", G_TYPE_STRING, a->key ? "I" : "P", "qp-base",
		G_TYPE_INT, 0, "qp", G_TYPE_DOUBLE, 0.0, "bound-bytes", G_TYPE_DOUBLE, 0.0,
		"interval", G_TYPE_DOUBLE, 0.0, "width", G_TYPE_INT, a->width, "height", G_TYPE_INT,
		a->height, "bytes", G_TYPE_UINT, a->bytes, "wire-bytes", G_TYPE_UINT, a->wire,
		"packets", G_TYPE_UINT, a->packets, "rate", G_TYPE_DOUBLE, (double)rate, NULL);
	a->picture(a->enc, s, a->data);
	gst_structure_free(s);
	a->bits += 8.0 * a->wire;
	if (a->frame > 1)
		a->allowed += (double)rate * (double)MIN(a->pts - a->last_pts, GAP) / GST_SECOND;
	a->last_pts = a->pts;
	if (++a->pictures >= a->group)
		end_group(a);
	a->bytes = a->wire = a->packets = 0;
}

/* Streaming thread: a picture leaves the encoder. */
static GstPadProbeReturn on_coded(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	GstEvent *event = gst_pad_get_sticky_event(pad, GST_EVENT_SEGMENT, 0);
	GstCaps *caps = gst_pad_get_current_caps(pad);
	GstBuffer *buf = GST_PAD_PROBE_INFO_BUFFER(info);
	struct adaptor *a = data;
	const GstSegment *segment;

	a->pts = GST_BUFFER_PTS(buf);
	if (event) {
		gst_event_parse_segment(event, &segment);
		a->pts = gst_segment_to_running_time(segment, GST_FORMAT_TIME, a->pts);
		gst_event_unref(event);
	}
	if (caps) {
		gst_structure_get(gst_caps_get_structure(caps, 0), "width", G_TYPE_INT, &a->width,
				  "height", G_TYPE_INT, &a->height, NULL);
		gst_caps_unref(caps);
	}
	a->key = !GST_BUFFER_FLAG_IS_SET(buf, GST_BUFFER_FLAG_DELTA_UNIT);
	a->bytes += gst_buffer_get_size(buf);
	return GST_PAD_PROBE_OK;
}

static void add_packet(struct adaptor *a, GstBuffer *buf)
{
	guint8 marker = 0;

	a->wire += gst_buffer_get_size(buf) + a->below;
	a->packets++;
	if (gst_buffer_extract(buf, 1, &marker, 1) == 1 && marker & 0x80)
		end_picture(a);
}

/* Streaming thread: its packets leave the payloader. */
static GstPadProbeReturn on_packets(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	(void)pad;
	if (info->type & GST_PAD_PROBE_TYPE_BUFFER_LIST) {
		GstBufferList *list = GST_PAD_PROBE_INFO_BUFFER_LIST(info);

		for (guint i = 0; i < gst_buffer_list_length(list); i++)
			add_packet(data, gst_buffer_list_get(list, i));
	} else {
		add_packet(data, GST_PAD_PROBE_INFO_BUFFER(info));
	}
	return GST_PAD_PROBE_OK;
}

void adaptor_watch(struct adaptor *a, GstElement *enc, GstElement *pay, adaptor_fn picture,
		   adaptor_fn ended, gpointer data)
{
	GstPad *pad = gst_element_get_static_pad(enc, "src");

	a->enc = enc;
	a->picture = picture;
	a->ended = ended;
	a->data = data;
	gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_BUFFER, on_coded, a, NULL);
	gst_object_unref(pad);
	pad = gst_element_get_static_pad(pay, "src");
	gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_BUFFER_LIST,
			  on_packets, a, NULL);
	gst_object_unref(pad);
}

void adaptor_free(struct adaptor *a)
{
	if (!a)
		return;
	g_mutex_clear(&a->lock);
	g_free(a->text);
	g_free(a->property);
	g_free(a);
}
