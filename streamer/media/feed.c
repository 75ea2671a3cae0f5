// SPDX-License-Identifier: GPL-2.0
/* A clock that feeds an appsrc; see feed.h. */
#include "streamer/media/feed.h"

#include <gio/gio.h>
#include <gst/app/gstappsrc.h>

struct feed {
	GstElement *appsrc;
	GThread *thread;
	GMutex lock;
	GCond cond;
	gboolean stop;
	guint64 num, den; /* a buffer lasts num / den seconds */
	guint64 count;
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

	for (guint64 n = 0; n < f->count; n++) {
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
		if (!buf) {
			GST_ELEMENT_ERROR(f->appsrc, RESOURCE, READ,
					  ("the file has become shorter while it was played"),
					  (NULL));
			return NULL;
		}
		GST_BUFFER_PTS(buf) = pts;
		GST_BUFFER_DURATION(buf) = length;
		if (gst_app_src_push_buffer(GST_APP_SRC(f->appsrc), buf) != GST_FLOW_OK)
			break;
	}
	gst_app_src_end_of_stream(GST_APP_SRC(f->appsrc));
	return NULL;
}

struct feed *feed_start(GstElement *appsrc, guint64 num, guint64 den, GstClockTime begin,
			guint64 count, feed_fn fn, gpointer data)
{
	struct feed *f = g_new0(struct feed, 1);

	f->appsrc = gst_object_ref(appsrc);
	f->num = num;
	f->den = den;
	f->begin = begin;
	f->count = count;
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
