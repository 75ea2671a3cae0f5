// SPDX-License-Identifier: GPL-2.0
/* An encoder that follows; see retune.h. */
#include "streamer/encoder/retune.h"

#include "streamer/encoder/excess.h"
#include "streamer/encoder/knob.h"

#define SHARE 0.95 /* of what is sent that is the encoder's, until that is measured */
#define GAP 1.0	   /* s: a pause counts no longer */
/* What was sent too much waits in a pacer or a router: it is made good within so many s, but the
 * encoder keeps this part of the rate.
 */
#define DRAIN 0.5
#define DRAIN_MIN 0.5

struct retune {
	GstElement *encoder;
	GstPad *pad;
	gulong probe;
	struct knob knob;

	GMutex lock;
	struct excess excess;
	double rate;	 /* bit/s */
	double backlog;	 /* bits sent beyond the rate */
	gsize own, wire; /* bytes since the last tick */
	gint64 last;	 /* us */
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
				    "%s: it is no encoder with a bit rate",
				    GST_OBJECT_NAME(encoder));
		gst_clear_object(&r->pad);
		g_free(r);
		return NULL;
	}
	g_mutex_init(&r->lock);
	r->encoder = gst_object_ref(encoder);
	r->excess = excess_new(SHARE);
	r->probe = gst_pad_add_probe(r->pad, GST_PAD_PROBE_TYPE_BUFFER, on_coded, r, NULL);
	return r;
}

static void tell(struct retune *r)
{
	double rate;

	g_mutex_lock(&r->lock);
	rate = MAX(r->rate - r->backlog / DRAIN, r->rate * DRAIN_MIN);
	rate = excess_less(&r->excess, rate);
	g_mutex_unlock(&r->lock);
	if (rate > 0)
		knob_turn(r->encoder, &r->knob, rate);
}

void retune_rate(struct retune *r, double rate)
{
	g_mutex_lock(&r->lock);
	excess_change(&r->excess, r->rate, rate);
	r->rate = rate;
	g_mutex_unlock(&r->lock);
	tell(r);
}

void retune_sent(struct retune *r, gsize bytes)
{
	g_mutex_lock(&r->lock);
	r->wire += bytes;
	g_mutex_unlock(&r->lock);
}

void retune_tick(struct retune *r, gint64 now)
{
	double seconds, sent, allowed;

	g_mutex_lock(&r->lock);
	seconds = r->last ? (double)(now - r->last) / G_USEC_PER_SEC : 0;
	r->last = now;
	sent = 8.0 * (double)r->wire;
	allowed = r->rate * MIN(seconds, GAP);
	r->backlog = MAX(r->backlog + sent - allowed, 0);
	if (r->wire && r->own && seconds > 0) {
		excess_picture(&r->excess, (double)MIN(r->own, r->wire), (double)r->wire);
		excess_group(&r->excess, sent, allowed);
	}
	r->own = r->wire = 0;
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
