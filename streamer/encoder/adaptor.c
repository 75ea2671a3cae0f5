// SPDX-License-Identifier: GPL-2.0
/* Encoders of others: knob.h has the property that sets their rate. See adaptor.h. */
#include "streamer/encoder/adaptor.h"

#include <gst/rtp/gstrtpbuffer.h>
#include <string.h>

#include "streamer/encoder/bysize.h"
#include "streamer/encoder/excess.h"
#include "streamer/encoder/knob.h"
#include "streamer/options.h"
#include "streamer/rtp/wire.h"

/* A gap in the pictures counts no longer. */
#define GAP (GST_SECOND / 2)
#define RAW "video/x-raw,format=BGR" /* 24 bits, or a BMP would take 32 */

#define ONE_ELEMENT                                                                                \
	"must be the name of one installed GStreamer element and properties of it (but no name), " \
	"such as 'x264enc speed-preset=veryfast'"

struct adaptor {
	char *text; /* element and properties */
	struct knob knob;
	const struct codec *codec;
	guint group;
	guint below; /* bytes that a packet has beside RTP */

	GstElement *enc;
	adaptor_fn picture, ended;
	gpointer data;

	GMutex lock;
	guint64 rate; /* told last */
	struct excess excess;

	/* streaming thread: encoders that go by the size of each picture */
	GstElement *filter; /* that scales; NULL: none */
	guint64 raw_pts;
	double interval; /* s between two pictures; 0: not known yet */
	int quality, size;
	gsize trial; /* bytes of the last picture of trial */
	gboolean trying;

	/* streaming thread: the picture in the payloader, and the group */
	guint64 pts, last_pts;
	guint frame, bytes, wire, packets;
	gint width, height;
	gboolean key;
	guint gop, pictures;
	double bits, allowed;
};

static gboolean find_knob(struct adaptor *a, GstElementFactory *factory, GError **error)
{
	GError *why = NULL;

	if (knob_find(factory, &a->knob, &why))
		return TRUE;
	g_set_error(error, USAGE_ERROR, 0, "--encoder %s", why->message);
	g_error_free(why);
	return FALSE;
}

/*
 * Is it one element, which takes the name that we give it? The parser leaves out what it does not
 * understand, and need not say so.
 */
static gboolean is_element(const struct adaptor *a, GError **error)
{
	GstElement *bin = NULL, *enc = NULL;
	char *text = adaptor_text(a);
	GError *why = NULL;

	if (!strstr(a->text, " name="))
		bin = gst_parse_bin_from_description_full(text, FALSE, NULL,
							  GST_PARSE_FLAG_FATAL_ERRORS, &why);
	g_free(text);
	if (bin)
		enc = gst_bin_get_by_name(GST_BIN(gst_object_ref_sink(bin)), "enc");
	if (!enc)
		g_set_error(error, USAGE_ERROR, 0, "--encoder '%s': %s", a->text,
			    why ? why->message : ONE_ELEMENT);
	g_clear_error(&why);
	gst_clear_object(&bin);
	if (!enc)
		return FALSE;
	gst_object_unref(enc);
	return TRUE;
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
	a->excess = excess_new(wire_share(WIRE_PACKET, headers));
	a->quality = JPEG_QUALITY_MIDDLE;
	a->size = -1;
	if (factory)
		loaded = gst_plugin_feature_load(GST_PLUGIN_FEATURE(factory));
	if (!loaded || strchr(text, '!')) {
		g_set_error(error, USAGE_ERROR, 0, "--encoder '%s': " ONE_ELEMENT, text);
	} else {
		a->codec = codec_of_factory(GST_ELEMENT_FACTORY(loaded));
		if (a->codec)
			ok = find_knob(a, GST_ELEMENT_FACTORY(loaded), error) &&
			     is_element(a, error);
		else
			g_set_error(error, USAGE_ERROR, 0,
				    "--encoder %s: produces none of H.264, VP8, VP9, JPEG and BMP",
				    name);
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
	return g_strdup_printf("videoconvert ! %s%.*s %s %s name=enc ! %s name=pay pt=%u",
			       a->knob.turns == KNOB_SIZE ? "videoscale add-borders=false ! "
							    "capsfilter name=sized caps=" RAW " ! "
							  : "",
			       (int)n, a->text, a->knob.live, a->text + n, a->codec->pay,
			       a->codec->pt);
}

/* Tell the encoder the allowance, less headers. */
static void tell(struct adaptor *a)
{
	double rate;

	g_mutex_lock(&a->lock);
	rate = excess_less(&a->excess, (double)a->rate);
	g_mutex_unlock(&a->lock);
	knob_turn(a->enc, &a->knob, rate);
}

void adaptor_rate(struct adaptor *a, guint64 rate)
{
	g_mutex_lock(&a->lock);
	excess_change(&a->excess, (double)a->rate, (double)rate);
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
	g_mutex_lock(&a->lock);
	excess_group(&a->excess, a->bits, a->allowed);
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
	excess_picture(&a->excess, a->bytes, a->wire);
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

/* Bytes of the encoder that a picture may have. */
static double picture_bytes(struct adaptor *a)
{
	double rate;

	g_mutex_lock(&a->lock);
	rate = excess_less(&a->excess, (double)a->rate);
	g_mutex_unlock(&a->lock);
	return rate * a->interval / 8;
}

static double try(struct adaptor *a, GstPad *pad, GstBuffer *buf, int quality)
{
	a->trial = 0;
	g_object_set(a->enc, a->knob.property, quality, NULL);
	/* not by gst_pad_chain(): those who watch the pad see each picture once */
	GST_PAD_CHAINFUNC(pad)(pad, GST_OBJECT_PARENT(pad), gst_buffer_ref(buf));
	return (double)a->trial;
}

static void choose_quality(struct adaptor *a, GstPad *pad, GstBuffer *buf)
{
	double bytes[2];
	int trial[2];

	jpeg_trials(a->quality, trial);
	a->trying = TRUE;
	for (int i = 0; i < 2; i++)
		bytes[i] = try(a, pad, buf, trial[i]);
	a->trying = FALSE;
	a->quality = jpeg_next(trial, bytes, picture_bytes(a));
	g_object_set(a->enc, a->knob.property, a->quality, NULL);
}

/* From the next picture on. */
static void choose_size(struct adaptor *a, const GstStructure *raw)
{
	int width = 0, height = 0, size;
	GstCaps *caps;

	gst_structure_get(raw, "width", G_TYPE_INT, &width, "height", G_TYPE_INT, &height, NULL);
	size = raw_size(width, height, picture_bytes(a));
	if (size == a->size)
		return;
	a->size = size;
	caps = gst_caps_from_string(RAW);
	gst_caps_set_simple(caps, "width", G_TYPE_INT, raw_side(width, size), "height", G_TYPE_INT,
			    raw_side(height, size), NULL);
	g_object_set(a->filter, "caps", caps, NULL);
	gst_caps_unref(caps);
}

/* Streaming thread: a picture comes to an encoder without a rate, or to what scales for it. */
static GstPadProbeReturn on_raw(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	GstBuffer *buf = GST_PAD_PROBE_INFO_BUFFER(info);
	GstCaps *caps = gst_pad_get_current_caps(pad);
	struct adaptor *a = data;
	int n = 0, d = 1;

	if (!caps)
		return GST_PAD_PROBE_OK;
	gst_structure_get_fraction(gst_caps_get_structure(caps, 0), "framerate", &n, &d);
	if (n > 0)
		a->interval = (double)d / n;
	else if (a->raw_pts && GST_BUFFER_PTS(buf) > a->raw_pts)
		a->interval = (double)MIN(GST_BUFFER_PTS(buf) - a->raw_pts, GAP) / GST_SECOND;
	a->raw_pts = GST_BUFFER_PTS(buf);
	if (a->interval > 0 && a->filter)
		choose_size(a, gst_caps_get_structure(caps, 0));
	else if (a->interval > 0)
		choose_quality(a, pad, buf);
	gst_caps_unref(caps);
	return GST_PAD_PROBE_OK;
}

/* Streaming thread: a picture leaves the encoder. */
static GstPadProbeReturn on_coded(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	GstEvent *event = gst_pad_get_sticky_event(pad, GST_EVENT_SEGMENT, 0);
	GstCaps *caps = gst_pad_get_current_caps(pad);
	GstBuffer *buf = GST_PAD_PROBE_INFO_BUFFER(info);
	struct adaptor *a = data;
	const GstSegment *segment;

	if (a->trying) {
		a->trial += gst_buffer_get_size(buf);
		if (event)
			gst_event_unref(event);
		g_clear_pointer(&caps, gst_caps_unref);
		return GST_PAD_PROBE_DROP;
	}
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

static gboolean ends_picture(const struct adaptor *a, GstBuffer *buf)
{
	GstRTPBuffer rtp = GST_RTP_BUFFER_INIT;
	gboolean ends;

	if (!gst_rtp_buffer_map(buf, GST_MAP_READ, &rtp))
		return FALSE;
	ends = gst_rtp_buffer_get_marker(&rtp) &&
	       payload_is_media(a->codec->pt, gst_rtp_buffer_get_payload(&rtp),
				gst_rtp_buffer_get_payload_len(&rtp));
	gst_rtp_buffer_unmap(&rtp);
	return ends;
}

static void add_packet(struct adaptor *a, GstBuffer *buf)
{
	a->wire += gst_buffer_get_size(buf) + a->below;
	a->packets++;
	if (ends_picture(a, buf))
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

static GstElement *before(GstElement *e)
{
	GstPad *sink = gst_element_get_static_pad(e, "sink"), *src = gst_pad_get_peer(sink);
	GstElement *found = gst_pad_get_parent_element(src);

	gst_object_unref(src);
	gst_object_unref(sink);
	return found;
}

/* JPEG is tried at the encoder's own door; what scales stands before its filter. */
static void watch_raw(struct adaptor *a)
{
	GstElement *at = gst_object_ref(a->enc);
	GstPad *pad;

	if (a->knob.turns == KNOB_SIZE) {
		a->filter = before(at);
		gst_object_unref(at);
		at = before(a->filter);
	}
	pad = gst_element_get_static_pad(at, "sink");
	gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_BUFFER, on_raw, a, NULL);
	gst_object_unref(pad);
	gst_object_unref(at);
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
	if (a->knob.turns != KNOB_RATE)
		watch_raw(a);
	pad = gst_element_get_static_pad(pay, "src");
	gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_BUFFER_LIST,
			  on_packets, a, NULL);
	gst_object_unref(pad);
}

guint adaptor_payload(const struct adaptor *a)
{
	return a->codec->pt;
}

void adaptor_free(struct adaptor *a)
{
	if (!a)
		return;
	g_clear_object(&a->filter);
	g_mutex_clear(&a->lock);
	g_free(a->text);
	g_free(a);
}
