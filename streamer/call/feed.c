// SPDX-License-Identifier: GPL-2.0
#include "streamer/call/feed.h"

#include <gio/gio.h>
#include <gst/app/gstappsink.h>

struct feed {
	GstElement *appsrc;
	GThread *thread;
	GMutex lock;
	GCond cond;
	gboolean stop;
	guint64 num, den; /* a buffer lasts num / den seconds */
	GstClockTime begin;
	feed_fn fn;
	gpointer data;
};

static gpointer feed_run(gpointer data)
{
	struct feed *f = data;
	GstClockTime base = gst_element_get_base_time(f->appsrc);
	GstClockTime length = gst_util_uint64_scale(f->num, GST_SECOND, f->den);
	GstClockTime origin = f->begin - base;

	for (guint64 n = 0;; n++) {
		GstClockTime pts = origin + gst_util_uint64_scale(n, f->num * GST_SECOND, f->den);
		gint64 due = (gint64)((base + pts) / 1000);
		GstBuffer *buf;
		gboolean stop;

		/* Too late for this one: a camera does not wait for anybody. */
		if (g_get_monotonic_time() > due + (gint64)(length / 1000))
			continue;
		g_mutex_lock(&f->lock);
		while (!f->stop && g_get_monotonic_time() < due)
			g_cond_wait_until(&f->cond, &f->lock, due);
		stop = f->stop;
		g_mutex_unlock(&f->lock);
		if (stop)
			return NULL;
		buf = f->fn(n, f->data);
		GST_BUFFER_PTS(buf) = pts;
		GST_BUFFER_DURATION(buf) = length;
		if (gst_app_src_push_buffer(GST_APP_SRC(f->appsrc), buf) != GST_FLOW_OK)
			return NULL;
	}
}

/**
 * feed_start() - feed an appsrc of a pipeline that is playing on the monotonic clock
 * @num, @den: a buffer lasts num / den seconds
 * @begin: time of the first on that clock
 */
struct feed *feed_start(GstElement *appsrc, guint64 num, guint64 den, GstClockTime begin,
			feed_fn fn, gpointer data)
{
	struct feed *f = g_new0(struct feed, 1);

	f->appsrc = gst_object_ref(appsrc);
	f->num = num;
	f->den = den;
	f->begin = begin;
	f->fn = fn;
	f->data = data;
	g_mutex_init(&f->lock);
	g_cond_init(&f->cond);
	f->thread = g_thread_new("feed", feed_run, f);
	return f;
}

void feed_stop(struct feed *f)
{
	if (!f)
		return;
	g_mutex_lock(&f->lock);
	f->stop = TRUE;
	g_cond_broadcast(&f->cond);
	g_mutex_unlock(&f->lock);
	g_thread_join(f->thread);
	gst_object_unref(f->appsrc);
	g_mutex_clear(&f->lock);
	g_cond_clear(&f->cond);
	g_free(f);
}

/**
 * feed_load_audio() - the sound of a file, decoded
 * Return: samples of 16 bit, one channel, FEED_RATE a second.
 */
GBytes *feed_load_audio(const char *path, GError **error)
{
	char *uri = gst_filename_to_uri(path, error), *text;
	GByteArray *samples = g_byte_array_new();
	GstElement *pipeline, *sink;
	GstSample *sample;
	GstMessage *msg;
	GstBus *bus;

	if (!uri)
		return NULL;
	text = g_strdup_printf("uridecodebin uri=\"%s\" caps=audio/x-raw ! audioconvert ! "
			       "audioresample ! "
			       "audio/x-raw,format=S16LE,rate=%d,channels=1,layout=interleaved ! "
			       "appsink name=out sync=false",
			       uri, FEED_RATE);
	pipeline = gst_parse_launch(text, error);
	g_free(text);
	g_free(uri);
	if (!pipeline)
		return g_byte_array_unref(samples), NULL;
	sink = gst_bin_get_by_name(GST_BIN(pipeline), "out");
	gst_element_set_state(pipeline, GST_STATE_PLAYING);
	while ((sample = gst_app_sink_pull_sample(GST_APP_SINK(sink)))) {
		GstMapInfo map;

		if (gst_buffer_map(gst_sample_get_buffer(sample), &map, GST_MAP_READ)) {
			g_byte_array_append(samples, map.data, (guint)map.size);
			gst_buffer_unmap(gst_sample_get_buffer(sample), &map);
		}
		gst_sample_unref(sample);
	}
	bus = gst_element_get_bus(pipeline);
	msg = gst_bus_pop_filtered(bus, GST_MESSAGE_ERROR);
	if (msg)
		gst_message_parse_error(msg, error, NULL);
	else if (samples->len < FEED_RATE / 1000 * FEED_CHUNK_MS * 2)
		g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA, "there is no sound in it");
	g_clear_pointer(&msg, gst_message_unref);
	gst_object_unref(bus);
	gst_object_unref(sink);
	gst_element_set_state(pipeline, GST_STATE_NULL);
	gst_object_unref(pipeline);
	if (error && *error) {
		g_prefix_error(error, "%s: ", path);
		g_byte_array_unref(samples);
		return NULL;
	}
	return g_byte_array_free_to_bytes(samples);
}

/* The @n-th chunk of 20 ms of what feed_load_audio() read. */
GstBuffer *feed_audio(guint64 n, gpointer data)
{
	gsize chunk = FEED_RATE / 1000 * FEED_CHUNK_MS * 2, len;
	const guint8 *samples = g_bytes_get_data(data, &len);
	guint64 chunks = len / chunk;

	return gst_buffer_new_memdup(samples + n % chunks * chunk, chunk);
}
