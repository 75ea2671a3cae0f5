// SPDX-License-Identifier: GPL-2.0
/* An encoder that follows; see retune.h. */
#include "streamer/encoder/retune.h"

#include "streamer/encoder/knob.h"

#define SHARE 0.95	/* of what is sent that is the encoder's, until that is measured */
#define SHARE_GAIN 0.05 /* of what is sent between two retune_sent() */

struct retune {
	GstElement *encoder;
	GstPad *pad;
	gulong probe;
	struct knob knob;

	GMutex lock;
	double share;
	double rate; /* bit/s */
	gsize own;   /* bytes since retune_sent() */
};

/* Streaming thread: a picture leaves the encoder. */
static GstPadProbeReturn on_coded(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	struct retune *r = data;

	(void)pad;
	g_mutex_lock(&r->lock);
	r->own += gst_buffer_get_size(GST_PAD_PROBE_INFO_BUFFER(info));
	g_mutex_unlock(&r->lock);
	return GST_PAD_PROBE_OK;
}

struct retune *retune_new(GstElement *encoder, GError **error)
{
	GstElementFactory *factory = gst_element_get_factory(encoder);
	struct retune *r = g_new0(struct retune, 1);

	r->pad = gst_element_get_static_pad(encoder, "src");
	if (!factory || !r->pad || !knob_find(factory, &r->knob, error) ||
	    r->knob.turns != KNOB_RATE) {
		if (error && !*error)
			g_set_error(error, GST_CORE_ERROR, GST_CORE_ERROR_FAILED,
				    "%s: it is not an encoder with a bit rate",
				    GST_OBJECT_NAME(encoder));
		gst_clear_object(&r->pad);
		g_free(r);
		return NULL;
	}
	g_mutex_init(&r->lock);
	r->encoder = gst_object_ref(encoder);
	r->share = SHARE;
	r->probe = gst_pad_add_probe(r->pad, GST_PAD_PROBE_TYPE_BUFFER, on_coded, r, NULL);
	return r;
}

static void tell(struct retune *r)
{
	double rate;

	g_mutex_lock(&r->lock);
	rate = r->rate * r->share;
	g_mutex_unlock(&r->lock);
	if (rate > 0)
		knob_turn(r->encoder, &r->knob, rate);
}

void retune_rate(struct retune *r, double rate)
{
	gboolean other;

	g_mutex_lock(&r->lock);
	other = rate != r->rate;
	r->rate = rate;
	g_mutex_unlock(&r->lock);
	if (other)
		tell(r);
}

void retune_sent(struct retune *r, gsize bytes)
{
	g_mutex_lock(&r->lock);
	if (bytes && r->own)
		r->share += SHARE_GAIN * ((double)MIN(r->own, bytes) / (double)bytes - r->share);
	r->own = 0;
	g_mutex_unlock(&r->lock);
	tell(r);
}

void retune_free(struct retune *r)
{
	if (!r)
		return;
	gst_pad_remove_probe(r->pad, r->probe);
	gst_object_unref(r->pad);
	gst_object_unref(r->encoder);
	g_mutex_clear(&r->lock);
	g_free(r);
}
