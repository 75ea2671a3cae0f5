// SPDX-License-Identifier: GPL-2.0
/* The frame clock of a y4m file. */
#include <gst/app/gstappsrc.h>

#include "streamer/send/send.h"

/* The frame clock: pictures enter at exact multiples of the interval. */
gpointer send_feed(gpointer data)
{
	struct sender *s = data;
	GstClockTime base = gst_element_get_base_time(s->pipeline);
	GstClockTime origin = g_get_monotonic_time() * 1000 - base;
	guint64 limit = s->duration > 0 ? (guint64)(s->duration / s->interval + 0.5) : G_MAXUINT64;

	s->first_pts = (gint64)origin; /* though that picture may come too late */
	if (!s->loop_source)
		limit = MIN(limit, s->y4m.frames - s->start_frame);
	for (guint64 n = 0; n < limit; n++) {
		GstClockTime pts =
			origin + gst_util_uint64_scale(n, s->y4m.fps_d * GST_SECOND, s->y4m.fps_n);
		gint64 due = (gint64)((base + pts) / 1000);
		GstBuffer *buf;
		gboolean stop;

		/* Too late for this one: a live source does not wait for its sink. */
		if (g_get_monotonic_time() > due + (gint64)(s->interval * 1e6))
			continue;
		g_mutex_lock(&s->lock);
		while (!s->stop && g_get_monotonic_time() < due)
			g_cond_wait_until(&s->cond, &s->lock, due);
		stop = s->stop;
		g_mutex_unlock(&s->lock);
		if (stop)
			break;
		buf = y4m_frame(&s->y4m, (s->start_frame + n) % s->y4m.frames);
		GST_BUFFER_PTS(buf) = pts;
		GST_BUFFER_DURATION(buf) = (GstClockTime)(s->interval * GST_SECOND);
		if (gst_app_src_push_buffer(GST_APP_SRC(s->appsrc), buf) != GST_FLOW_OK)
			break;
	}
	gst_app_src_end_of_stream(GST_APP_SRC(s->appsrc));
	return NULL;
}
