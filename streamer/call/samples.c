// SPDX-License-Identifier: GPL-2.0
/* The sound of a file; see samples.h. */
#include "streamer/call/samples.h"

#include <gio/gio.h>
#include <gst/app/gstappsink.h>

#include "streamer/media/parts.h"

#define LOOK (100 * GST_MSECOND)

/* NULL: it has ended, or failed, which need not bring an end; then @error has the bus's message. */
static GstSample *next(GstAppSink *sink, GstBus *bus, GstMessage **error)
{
	GstSample *sample;

	do
		sample = gst_app_sink_try_pull_sample(sink, LOOK);
	while (!sample && !(*error = gst_bus_pop_filtered(bus, GST_MESSAGE_ERROR)) &&
	       !gst_app_sink_is_eos(sink));
	return sample;
}

/**
 * samples_load() - the sound of a file, decoded
 * Return: samples of 16 bit, one channel, SAMPLES_RATE a second.
 */
GBytes *samples_load(const char *path, GError **error)
{
	char *uri = gst_filename_to_uri(path, error), *text;
	GByteArray *samples = g_byte_array_new();
	GstElement *pipeline, *sink;
	GstMessage *msg = NULL;
	GstSample *sample;
	GError *why = NULL;
	GstBus *bus;

	if (!uri)
		return NULL;
	text = g_strdup_printf("uridecodebin uri=\"%s\" caps=audio/x-raw ! audioconvert ! "
			       "audioresample ! " SAMPLES_CAPS " ! appsink name=out sync=false",
			       uri);
	pipeline = gst_parse_launch(text, error);
	g_free(text);
	g_free(uri);
	if (!pipeline)
		return g_byte_array_unref(samples), NULL;
	sink = gst_bin_get_by_name(GST_BIN(pipeline), "out");
	bus = gst_element_get_bus(pipeline);
	gst_element_set_state(pipeline, GST_STATE_PLAYING);
	while ((sample = next(GST_APP_SINK(sink), bus, &msg))) {
		GstMapInfo map;

		if (gst_buffer_map(gst_sample_get_buffer(sample), &map, GST_MAP_READ)) {
			g_byte_array_append(samples, map.data, (guint)map.size);
			gst_buffer_unmap(gst_sample_get_buffer(sample), &map);
		}
		gst_sample_unref(sample);
	}
	if (msg)
		gst_message_parse_error(msg, &why, NULL);
	else if (samples->len < SAMPLES_RATE / 1000 * SAMPLES_CHUNK_MS * 2)
		g_set_error(&why, G_IO_ERROR, G_IO_ERROR_INVALID_DATA, "there is no sound in it");
	g_clear_pointer(&msg, gst_message_unref);
	gst_object_unref(bus);
	gst_object_unref(sink);
	part_stop(pipeline);
	gst_object_unref(pipeline);
	if (why) {
		g_propagate_prefixed_error(error, why, "%s: ", path);
		g_byte_array_unref(samples);
		return NULL;
	}
	return g_byte_array_free_to_bytes(samples);
}

/* The @n-th chunk of 20 ms of what samples_load() read. */
GstBuffer *samples_chunk(guint64 n, gpointer data)
{
	gsize chunk = SAMPLES_RATE / 1000 * SAMPLES_CHUNK_MS * 2, len;
	const guint8 *samples = g_bytes_get_data(data, &len);
	guint64 chunks = len / chunk;

	return gst_buffer_new_memdup(samples + n % chunks * chunk, chunk);
}
