// SPDX-License-Identifier: GPL-2.0
/* Echo cancellation in a call; see echo.h. */
#include "streamer/call/echo.h"

#include "streamer/call/lag.h"
#include "streamer/media/parts.h"
#include "streamer/options.h"

/*
 * The echo begins so long after what webrtcdsp is given of the loudspeaker: its filter is 128 ms
 * long (extended-filter), is behind by up to 30 ms itself, and has to take in the room's answer.
 * With 40 and 50 ms it learnt a room in a second, with 75 ms in six.
 */
#define MARGIN_MS 40
#define USUAL_MS 50 /* that it is late, until that is found out */
#define MOVE_MS 8   /* less is not worth learning the room again */
/* Found so often in a row, or in vain (headphones): then it is looked for less often. */
#define STEADY 20
#define STEADY_TICKS 10
#define PLAYS_ON (40 * GST_MSECOND)
#define ECHO_RATE 48000

struct echo {
	GMutex lock; /* of lag, latency */
	struct lag lag;
	struct lag_found found; /* main loop */
	guint ticks, vain;
	GstClockTime latency;  /* from time stamps to when the loudspeaker plays; or none */
	gint shift;	       /* atomic, ms */
	GstClockTime next;     /* time stamp of what is played, its thread */
	GstClockTimeDiff used; /* microphone's thread */
	GThread *asking;       /* atomic: whom webrtcechoprobe asks in */
};

gboolean echo_possible(gboolean must, GError **error)
{
	static const char missing[] =
		"the GStreamer elements webrtcdsp and webrtcechoprobe are missing: install "
		"gstreamer1.0-plugins-bad";
	GstRegistry *registry = gst_registry_get();

	if (gst_registry_check_feature_version(registry, "webrtcdsp", 1, 0, 0) &&
	    gst_registry_check_feature_version(registry, "webrtcechoprobe", 1, 0, 0))
		return TRUE;
	if (must)
		g_set_error(error, USAGE_ERROR, 0, "--echo-cancel on: %s", missing);
	else
		g_printerr("paqm-streamer: the peer will hear itself: %s\n", missing);
	return FALSE;
}

static GstClockTime running_time(GstPad *pad, GstBuffer *buf)
{
	GstEvent *event = gst_pad_get_sticky_event(pad, GST_EVENT_SEGMENT, 0);
	GstClockTime running = GST_CLOCK_TIME_NONE;
	const GstSegment *segment;

	if (!event)
		return running;
	gst_event_parse_segment(event, &segment);
	if (segment->format == GST_FORMAT_TIME && GST_BUFFER_PTS_IS_VALID(buf))
		running =
			gst_segment_to_running_time(segment, GST_FORMAT_TIME, GST_BUFFER_PTS(buf));
	gst_event_unref(event);
	return running;
}

static void add(struct echo *e, struct lag_track *track, GstPad *pad, GstBuffer *buf,
		gboolean played)
{
	GstClockTime at = running_time(pad, buf);
	GstMapInfo map;

	if (!GST_CLOCK_TIME_IS_VALID(at) || !gst_buffer_map(buf, &map, GST_MAP_READ))
		return;
	g_mutex_lock(&e->lock);
	if (!played)
		lag_add(track, at, (const gint16 *)(void *)map.data, map.size / 2);
	else if (GST_CLOCK_TIME_IS_VALID(e->latency))
		lag_add(track, at + e->latency, (const gint16 *)(void *)map.data, map.size / 2);
	g_mutex_unlock(&e->lock);
	gst_buffer_unmap(buf, &map);
}

/*
 * Thread of what is played. Time stamps of packets jitter by some ms; a loudspeaker plays without
 * gaps, whatever they say, until it is this far behind or ahead (alignment-threshold of GStreamer's
 * sinks). webrtcechoprobe would cut pieces by the time stamps, and the echo be another than they.
 */
static GstPadProbeReturn on_far(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	GstBuffer *buf = gst_buffer_make_writable(GST_PAD_PROBE_INFO_BUFFER(info));
	struct echo *e = data;

	info->data = buf;
	if (!GST_BUFFER_PTS_IS_VALID(buf))
		return GST_PAD_PROBE_OK;
	if (GST_CLOCK_TIME_IS_VALID(e->next) &&
	    ABS(GST_CLOCK_DIFF(e->next, GST_BUFFER_PTS(buf))) < PLAYS_ON)
		GST_BUFFER_PTS(buf) = e->next;
	e->next = GST_BUFFER_PTS(buf) +
		  gst_util_uint64_scale(gst_buffer_get_size(buf) / 2, GST_SECOND, ECHO_RATE);
	add(e, &e->lag.far, pad, buf, TRUE);
	return GST_PAD_PROBE_OK;
}

/* Thread of the microphone, as the next one. */
static GstPadProbeReturn on_near(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	GstBuffer *buf = GST_PAD_PROBE_INFO_BUFFER(info);
	struct echo *e = data;
	GstClockTimeDiff shift = g_atomic_int_get(&e->shift) * (GstClockTimeDiff)GST_MSECOND;

	add(e, &e->lag.near, pad, buf, FALSE);
	if (!GST_BUFFER_PTS_IS_VALID(buf))
		return GST_PAD_PROBE_OK;
	buf = gst_buffer_make_writable(buf);
	shift = MIN(shift, (GstClockTimeDiff)GST_BUFFER_PTS(buf));
	if (shift != e->used) /* what webrtcdsp has of older sound has another shift */
		GST_BUFFER_FLAG_SET(buf, GST_BUFFER_FLAG_DISCONT);
	e->used = shift;
	GST_BUFFER_PTS(buf) -= (GstClockTime)shift;
	info->data = buf;
	return GST_PAD_PROBE_OK;
}

static GstPadProbeReturn on_cancelled(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	GstBuffer *buf = gst_buffer_make_writable(GST_PAD_PROBE_INFO_BUFFER(info));
	struct echo *e = data;

	(void)pad;
	if (GST_BUFFER_PTS_IS_VALID(buf))
		GST_BUFFER_PTS(buf) += (GstClockTime)e->used;
	info->data = buf;
	return GST_PAD_PROBE_OK;
}

/*
 * webrtcechoprobe (1.22) takes the latency up to it, which it asks for when it is told that of the
 * pipeline, for the time between the two streams, and gives webrtcdsp what will be played so much
 * later. With opusdec's allowance of 120 ms that is more than has been decoded yet: webrtcdsp got
 * silence. Here it is told of none, and all else is in the shift.
 */
static GstPadProbeReturn on_latency(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	GstEvent *event = GST_PAD_PROBE_INFO_EVENT(info);
	struct echo *e = data;

	(void)pad;
	if (GST_EVENT_TYPE(event) != GST_EVENT_LATENCY)
		return GST_PAD_PROBE_OK;
	g_mutex_lock(&e->lock);
	gst_event_parse_latency(event, &e->latency);
	g_mutex_unlock(&e->lock);
	g_atomic_pointer_set(&e->asking, g_thread_self());
	return GST_PAD_PROBE_OK;
}

static GstPadProbeReturn on_latency_told(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	struct echo *e = data;

	(void)pad;
	if (GST_EVENT_TYPE(GST_PAD_PROBE_INFO_EVENT(info)) == GST_EVENT_LATENCY)
		g_atomic_pointer_set(&e->asking, NULL);
	return GST_PAD_PROBE_OK;
}

static GstPadProbeReturn on_asked(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	GstQuery *query = GST_PAD_PROBE_INFO_QUERY(info);
	struct echo *e = data;

	(void)pad;
	if (GST_QUERY_TYPE(query) != GST_QUERY_LATENCY ||
	    g_atomic_pointer_get(&e->asking) != g_thread_self())
		return GST_PAD_PROBE_OK;
	gst_query_set_latency(query, TRUE, 0, GST_CLOCK_TIME_NONE);
	return GST_PAD_PROBE_HANDLED;
}

static void watch(struct echo *e, GstElement *element, const char *name, GstPadProbeType type,
		  GstPadProbeCallback fn)
{
	GstPad *pad = gst_element_get_static_pad(element, name);

	gst_pad_add_probe(pad, type, fn, e, NULL);
	gst_object_unref(pad);
}

struct echo *echo_new(GstElement *pipeline)
{
	struct echo *e = g_new0(struct echo, 1);
	GstElement *probe = part_of(pipeline, "echo-probe"), *dsp = part_of(pipeline, "echo");

	g_mutex_init(&e->lock);
	lag_init(&e->lag);
	e->latency = e->next = GST_CLOCK_TIME_NONE;
	e->shift = USUAL_MS - MARGIN_MS;
	watch(e, probe, "sink", GST_PAD_PROBE_TYPE_BUFFER, on_far);
	watch(e, probe, "src", GST_PAD_PROBE_TYPE_EVENT_UPSTREAM, on_latency);
	watch(e, probe, "sink", GST_PAD_PROBE_TYPE_EVENT_UPSTREAM, on_latency_told);
	watch(e, probe, "src", GST_PAD_PROBE_TYPE_QUERY_UPSTREAM | GST_PAD_PROBE_TYPE_PUSH,
	      on_asked);
	watch(e, dsp, "sink", GST_PAD_PROBE_TYPE_BUFFER, on_near);
	watch(e, dsp, "src", GST_PAD_PROBE_TYPE_BUFFER, on_cancelled);
	return e;
}

void echo_tick(struct echo *e)
{
	struct lag_rows rows;
	gboolean full;
	gint shift;

	if (!e || ((e->found.again >= STEADY || e->vain >= STEADY) && ++e->ticks % STEADY_TICKS))
		return;
	g_mutex_lock(&e->lock);
	full = lag_take(&e->lag, &rows);
	g_mutex_unlock(&e->lock);
	if (!full)
		return;
	if (!lag_find(&rows, &e->found)) {
		e->vain++;
		return;
	}
	e->vain = 0;
	shift = e->found.ms - MARGIN_MS;
	if (ABS(shift - g_atomic_int_get(&e->shift)) >= MOVE_MS)
		g_atomic_int_set(&e->shift, shift);
}

void echo_free(struct echo *e)
{
	if (!e)
		return;
	lag_clear(&e->lag);
	g_mutex_clear(&e->lock);
	g_free(e);
}
