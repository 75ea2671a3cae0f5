// SPDX-License-Identifier: GPL-2.0
/* What may vanish in the middle of a call; see device.h. */
#include "streamer/call/device.h"

#include <string.h>

#include "streamer/call/drift.h"
#include "streamer/media/parts.h"

#define STILL_MS 500 /* a file of a single picture need not be read more often */

struct device {
	struct device_params p;
	char *elements;
	GstElement *bin; /* NULL: it is not there */
	GstPad *towards; /* it, from the joint, out of all bins that this is in */
	GstPadChainFunction chain;
	GstClockTime offset; /* running time at which it was opened, or began */
	struct drift drift;  /* its streaming thread */
	gint lost;	     /* atomic */
	gint given;	     /* atomic: 0, 1, or 2: more */
	gint fresh;	     /* atomic: given since device_gives() */
	gint heard;	     /* atomic: other than silence, since it was opened */
	guint retry;
	gboolean stopped;
};

/* A buffer has gone through. */
static void works(struct device *d)
{
	if (g_atomic_int_get(&d->given) < 2)
		g_atomic_int_inc(&d->given);
	if (g_atomic_int_compare_and_exchange(&d->lost, 1, 0))
		d->p.tell(d->p.what, d->p.returns, NULL, d->p.data);
}

static void post(GstElement *bin, const char *why)
{
	GError *error = g_error_new_literal(GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_FAILED, why);

	gst_element_post_message(bin, gst_message_new_error(GST_OBJECT(bin), error, NULL));
	g_error_free(error);
}

/* Streaming thread: the device that takes has no use for what comes, and tells nobody. */
static void refuses(struct device *d)
{
	GstPad *open = gst_pad_get_peer(d->towards);
	GstElement *bin = open ? gst_pad_get_parent_element(open) : NULL;

	if (bin) /* not device.bin: it may be on its way out */
		post(bin, "it takes nothing");
	gst_clear_object(&bin);
	gst_clear_object(&open);
}

/* What a device that takes returns stays here: upstream everything would stop by it. */
static GstFlowReturn give(GstPad *pad, GstObject *parent, GstBuffer *buf)
{
	struct device *d = pad->chaindata;
	GstFlowReturn ret = d->chain(pad, parent, buf);

	if (ret == GST_FLOW_OK)
		works(d);
	else if (ret == GST_FLOW_NOT_NEGOTIATED)
		refuses(d);
	return GST_FLOW_OK;
}

/*
 * A sound server whose last loudspeaker has gone takes nothing of any kind. Who decodes would end
 * the call by that, before there is a piece that could be refused.
 */
static GstPadProbeReturn on_answer(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	GstQuery *query = GST_PAD_PROBE_INFO_QUERY(info);
	GstCaps *caps = NULL, *filter = NULL;

	(void)pad;
	(void)data;
	if (GST_QUERY_TYPE(query) == GST_QUERY_ACCEPT_CAPS)
		gst_query_set_accept_caps_result(query, TRUE);
	if (GST_QUERY_TYPE(query) != GST_QUERY_CAPS)
		return GST_PAD_PROBE_OK;
	gst_query_parse_caps_result(query, &caps);
	if (!caps || !gst_caps_is_empty(caps))
		return GST_PAD_PROBE_OK;
	gst_query_parse_caps(query, &filter);
	caps = filter ? gst_caps_ref(filter) : gst_caps_new_any();
	gst_query_set_caps_result(query, caps);
	gst_caps_unref(caps);
	return GST_PAD_PROBE_OK;
}

/* What is the same throughout is no sound, in whatever format; a microphone has noise at least. */
static gboolean is_silence(GstBuffer *buf)
{
	gboolean same = TRUE;
	GstMapInfo map;

	if (!gst_buffer_map(buf, &map, GST_MAP_READ))
		return TRUE;
	if (map.size > 1)
		same = !memcmp(map.data, map.data + 1, map.size - 1);
	gst_buffer_unmap(buf, &map);
	return same;
}

/* A sound card's count of samples is held to the host's time. */
static void keep_time(struct device *d, GstBuffer *buf)
{
	GstClockTime now = gst_element_get_current_running_time(d->p.pipeline);
	gint64 begin = (gint64)GST_BUFFER_PTS(buf), moved;

	if (!GST_BUFFER_PTS_IS_VALID(buf) || !GST_BUFFER_DURATION_IS_VALID(buf) ||
	    !GST_CLOCK_TIME_IS_VALID(now))
		return;
	moved = drift_follow(&d->drift, begin + (gint64)GST_BUFFER_DURATION(buf), (gint64)now);
	GST_BUFFER_PTS(buf) = (GstClockTime)MAX(begin + moved, 0);
}

/* Its time begins when it is opened, as files have it; the pipeline's began before. */
static GstPadProbeReturn on_given(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	GstBuffer *buf = gst_buffer_make_writable(GST_PAD_PROBE_INFO_BUFFER(info));
	struct device *d = data;

	(void)pad;
	if (GST_BUFFER_PTS_IS_VALID(buf))
		GST_BUFFER_PTS(buf) += d->offset;
	if (GST_BUFFER_DTS_IS_VALID(buf))
		GST_BUFFER_DTS(buf) += d->offset;
	if (d->p.counts)
		keep_time(d, buf);
	if (!g_atomic_int_get(&d->heard) && !(d->p.counts && is_silence(buf)))
		g_atomic_int_set(&d->heard, 1);
	g_atomic_int_set(&d->fresh, 1);
	info->data = buf;
	works(d);
	return GST_PAD_PROBE_OK;
}

static gboolean on_retry(gpointer data);

static void retry_in(struct device *d, guint ms)
{
	if (!d->retry && !d->stopped)
		d->retry = g_timeout_add(ms, on_retry, d);
}

/* The segment of a file ends where it does; encoders drop what on_given() moves beyond that. */
static GstEvent *without_stop(GstEvent *event)
{
	GstEvent *open;
	GstSegment s;

	gst_event_copy_segment(event, &s);
	s.stop = GST_CLOCK_TIME_NONE;
	open = gst_event_new_segment(&s);
	gst_event_set_seqnum(open, gst_event_get_seqnum(event));
	gst_event_unref(event);
	return open;
}

/* At the end a file begins again; downstream would take the end for that of the call. */
static GstPadProbeReturn on_event(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	GstEvent *event = GST_PAD_PROBE_INFO_EVENT(info);
	GstEventType type = GST_EVENT_TYPE(event);

	(void)data;
	if (type == GST_EVENT_SEGMENT)
		info->data = without_stop(event);
	if (type != GST_EVENT_EOS)
		return GST_PAD_PROBE_OK;
	/* not device.bin: it may be on its way out */
	post(GST_ELEMENT(GST_OBJECT_PARENT(GST_OBJECT_PARENT(pad))), "it has ended");
	return GST_PAD_PROBE_DROP;
}

static gboolean make(struct device *d, GError **error)
{
	char *text = g_strdup_printf(d->p.source ? "%s ! identity name=open silent=true"
						 : "identity name=open silent=true ! %s",
				     d->elements);
	GstElement *open;
	GstPad *pad;

	d->bin = gst_parse_bin_from_description_full(text, FALSE, NULL, GST_PARSE_FLAG_FATAL_ERRORS,
						     error);
	g_free(text);
	if (!d->bin)
		return FALSE;
	gst_object_ref_sink(d->bin);
	/* that it waits for its first picture is nobody else's affair */
	g_object_set(d->bin, "async-handling", TRUE, NULL);
	open = gst_bin_get_by_name(GST_BIN(d->bin), "open");
	pad = gst_element_get_static_pad(open, d->p.source ? "src" : "sink");
	gst_element_add_pad(d->bin, gst_ghost_pad_new("open", pad));
	if (d->p.source) {
		gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_BUFFER, on_given, d, NULL);
		gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM, on_event, NULL, NULL);
	} else if (d->p.probe) {
		gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_BUFFER, d->p.probe, d->p.data, NULL);
	}
	gst_object_unref(pad);
	gst_object_unref(open);
	if (d->p.made)
		d->p.made(d->bin, d->p.data);
	return TRUE;
}

struct device *device_new(const struct device_params *p, GError **error)
{
	struct device *d = g_new0(struct device, 1);
	GstPad *pad;

	d->p = *p;
	d->elements = g_strdup(p->elements);
	if (!make(d, error)) {
		device_free(d);
		return NULL;
	}
	pad = gst_element_get_static_pad(p->joint, p->source ? "sink" : "src");
	d->towards = gst_ghost_pad_new(GST_OBJECT_NAME(p->joint), pad);
	gst_object_unref(pad);
	gst_element_add_pad(GST_ELEMENT(GST_OBJECT_PARENT(p->joint)), d->towards);
	if (p->source)
		return d;
	pad = gst_element_get_static_pad(p->joint, "sink");
	d->chain = GST_PAD_CHAINFUNC(pad);
	gst_pad_set_chain_function_full(pad, give, d, NULL);
	gst_object_unref(pad);
	pad = gst_element_get_static_pad(p->joint, "src");
	gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_QUERY_DOWNSTREAM | GST_PAD_PROBE_TYPE_PULL,
			  on_answer, NULL, NULL);
	gst_object_unref(pad);
	return d;
}

static gint not_fake(const GValue *item, gconstpointer unused)
{
	(void)unused;
	return !g_str_has_prefix(GST_OBJECT_NAME(g_value_get_object(item)), "fake-");
}

/* Elements that choose a device take one that does nothing where there is none. */
static gboolean is_fake(GstElement *bin)
{
	GstIterator *it = gst_bin_iterate_recurse(GST_BIN(bin));
	GValue item = G_VALUE_INIT;
	gboolean fake = gst_iterator_find_custom(it, (GCompareFunc)not_fake, &item, NULL);

	g_value_unset(&item);
	gst_iterator_free(it);
	return fake;
}

void device_open(struct device *d)
{
	GstClockTime base = gst_element_get_base_time(d->p.pipeline);
	gboolean ready, fake;
	GstPad *open;

	if (d->stopped || (!d->bin && !make(d, NULL)))
		return;
	open = gst_element_get_static_pad(d->bin, "open");
	g_atomic_int_set(&d->given, 0);
	g_atomic_int_set(&d->heard, 0);
	d->drift = (struct drift){0};
	d->offset = gst_element_get_current_running_time(d->p.pipeline);
	gst_bin_add(GST_BIN(d->p.pipeline), d->bin);
	if (d->p.source)
		gst_element_set_base_time(d->bin, base + d->offset);
	/* The choice is made on the way to READY: what one that does nothing gives never goes out.
	 */
	ready = gst_element_set_state(d->bin, GST_STATE_READY) != GST_STATE_CHANGE_FAILURE;
	fake = ready && is_fake(d->bin);
	/* What comes to a device that cannot take it yet is lost, the head of a stream too. */
	if (d->p.source)
		gst_pad_link(open, d->towards);
	if (ready && !fake)
		ready = gst_element_sync_state_with_parent(d->bin);
	if (!d->p.source) /* though it may take nothing of any kind: that is told then */
		gst_pad_link_full(d->towards, open, GST_PAD_LINK_CHECK_NOTHING);
	gst_object_unref(open);
	if (!ready)
		post(d->bin, "it does not start"); /* behind what the element has to say */
	else if (fake)
		post(d->bin, "there is none");
}

static gboolean on_retry(gpointer data)
{
	struct device *d = data;

	d->retry = 0;
	device_open(d);
	return G_SOURCE_REMOVE;
}

static void take_out(struct device *d)
{
	GstElement *bin = g_steal_pointer(&d->bin);

	part_stop(bin);
	gst_bin_remove(GST_BIN(d->p.pipeline), bin);
	gst_object_unref(bin);
}

/* A decodebin that finds sound only where pictures are wanted says that a plug-in is missing. */
static const char *in_words(const GError *error)
{
	return g_error_matches(error, GST_CORE_ERROR, GST_CORE_ERROR_MISSING_PLUGIN)
		       ? "nothing in it can be used here, or its decoder is not installed"
		       : error->message;
}

gboolean device_message(struct device *d, GstMessage *msg)
{
	GError *error = NULL;
	gboolean again;

	if (!d || !d->bin || GST_MESSAGE_TYPE(msg) != GST_MESSAGE_ERROR ||
	    !gst_object_has_as_ancestor(msg->src, GST_OBJECT(d->bin)))
		return FALSE;
	/* a file that has given something and ended begins again */
	again = msg->src == GST_OBJECT(d->bin) && d->p.source && g_atomic_int_get(&d->given);
	take_out(d);
	if (again) {
		retry_in(d, g_atomic_int_get(&d->given) > 1 ? 0 : STILL_MS);
		return TRUE;
	}
	gst_message_parse_error(msg, &error, NULL);
	if (g_atomic_int_compare_and_exchange(&d->lost, 0, 1))
		d->p.tell(d->p.what, d->p.returns, in_words(error), d->p.data);
	g_error_free(error);
	if (d->p.returns == DEVICE_RETRIED)
		retry_in(d, DEVICE_RETRY_MS);
	return TRUE;
}

void device_begins(struct device *d, GstElement *pacer, GstClockTime late)
{
	GstClockTime now = gst_element_get_current_running_time(d->p.pipeline);
	GstClockTime base = gst_element_get_base_time(d->p.pipeline);
	GstObject *bin = gst_object_get_parent(GST_OBJECT(pacer)); /* d->bin, unless that goes */

	if (GST_CLOCK_TIME_IS_VALID(now) && bin) {
		d->offset = late ? d->offset + late : now;
		/* the bin, too: it gives its own to all when its change of state is over */
		gst_element_set_base_time(GST_ELEMENT(bin), base + d->offset);
		gst_element_set_base_time(pacer, base + d->offset);
	}
	g_clear_pointer(&bin, gst_object_unref);
}

gboolean device_waits(const struct device *d)
{
	return d && d->bin && !g_atomic_int_get(&d->given);
}

enum device_gives device_gives(struct device *d)
{
	if (!g_atomic_int_compare_and_exchange(&d->fresh, 1, 0))
		return DEVICE_NOTHING;
	return g_atomic_int_get(&d->heard) ? DEVICE_SOMETHING : DEVICE_SILENCE;
}

void device_lose(struct device *d, const char *why)
{
	post(d->bin, why);
}

GstElement *device_elements(const struct device *d)
{
	return d ? d->bin : NULL;
}

void device_replace(struct device *d, const char *elements)
{
	g_free(d->elements);
	d->elements = g_strdup(elements);
}

void device_ask(struct device *d)
{
	if (d && !d->bin && d->p.returns == DEVICE_ASKED)
		device_open(d);
}

void device_stop(struct device *d)
{
	if (!d)
		return;
	d->stopped = TRUE;
	if (d->retry)
		g_source_remove(d->retry);
	d->retry = 0;
}

void device_free(struct device *d)
{
	if (!d)
		return;
	if (d->bin) {
		part_stop(d->bin);
		gst_object_unref(d->bin);
	}
	g_free(d->elements);
	g_free(d);
}
