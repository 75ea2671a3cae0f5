// SPDX-License-Identifier: GPL-2.0
/* Packets between libnice and the pipeline, in the place of udpsink and udpsrc; see ice.h. */
#include <gst/app/gstappsink.h>
#include <gst/app/gstappsrc.h>

#include "streamer/call/candidates.h"
#include "streamer/call/ice_state.h"

#define QUEUED_BYTES (1 << 20) /* as udpsrc asks of its socket */

/* A packet that is not ICE's own; from whom is for the gate behind to judge. */
void ice_on_packet(NiceAgent *agent, guint id, guint component, guint len, char *bytes,
		   gpointer data)
{
	struct ice_stream *s = data;
	GstElement *src = NULL;
	GstClockTime now;
	GstClock *clock;
	GstBuffer *buf;

	(void)agent;
	(void)id;
	(void)component;
	g_mutex_lock(&s->ice->lock);
	if (s->let_in)
		src = gst_object_ref(s->src);
	g_mutex_unlock(&s->ice->lock);
	if (!src)
		return;
	clock = gst_element_get_clock(src);
	if (clock) {
		now = gst_clock_get_time(clock) - gst_element_get_base_time(src);
		gst_object_unref(clock);
		buf = gst_buffer_new_memdup(bytes, len);
		GST_BUFFER_PTS(buf) = GST_BUFFER_DTS(buf) = now;
		gst_app_src_push_buffer(GST_APP_SRC(src), buf);
	}
	gst_object_unref(src);
}

/* A streaming thread's packet. One that cannot be sent is lost, as on any path. */
static GstFlowReturn on_sample(GstAppSink *sink, gpointer data)
{
	GstSample *sample = gst_app_sink_pull_sample(sink);
	struct ice_stream *s = data;
	GstBuffer *buf = sample ? gst_sample_get_buffer(sample) : NULL;
	GstMapInfo map;

	if (buf && gst_buffer_map(buf, &map, GST_MAP_READ)) {
		if (nice_agent_send(s->ice->agent, s->id, COMPONENT, (guint)map.size,
				    (const char *)map.data) < 0) {
			g_mutex_lock(&s->ice->lock);
			s->failed++;
			g_mutex_unlock(&s->ice->lock);
		}
		gst_buffer_unmap(buf, &map);
	}
	if (sample)
		gst_sample_unref(sample);
	return GST_FLOW_OK;
}

GstElement *ice_sink(struct ice *ice, enum call_media media)
{
	GstElement *sink = gst_element_factory_make("appsink", NULL);
	GstAppSinkCallbacks on = {.new_sample = on_sample};

	g_object_set(sink, "sync", FALSE, "async", FALSE, "enable-last-sample", FALSE, NULL);
	gst_app_sink_set_callbacks(GST_APP_SINK(sink), &on, &ice->stream[media], NULL);
	return sink;
}

GstElement *ice_src(struct ice *ice, enum call_media media, GstCaps *caps)
{
	GstElement *src = gst_element_factory_make("appsrc", NULL);

	g_object_set(src, "caps", caps, "is-live", TRUE, "format", GST_FORMAT_TIME, "max-bytes",
		     (guint64)QUEUED_BYTES, "leaky-type", GST_APP_LEAKY_TYPE_UPSTREAM, NULL);
	ice->stream[media].src = gst_object_ref(src);
	return src;
}

void ice_let_in(struct ice *ice, enum call_media media)
{
	g_mutex_lock(&ice->lock);
	ice->stream[media].let_in = TRUE;
	g_mutex_unlock(&ice->lock);
}
