// SPDX-License-Identifier: GPL-2.0
/*
 * The peer's picture in a y4m file. y4menc (1.22) does not know the range of samples, and takes
 * rows for packed that a decoder has left room between.
 */
#include <errno.h>
#include <gst/app/gstappsink.h>

#include "streamer/call/state.h"
#include "streamer/options.h"
#include "streamer/media/parts.h"

struct y4m_file {
	struct inbound *inbound;
	char *path;
	FILE *file;
	GstSample *first; /* not written yet */
};

/* Their pace comes before the first of them; VP8 and others do not tell it. */
static gboolean write_first(struct y4m_file *f, int n, int d)
{
	gboolean ok = y4m_write(f->file, f->first, TRUE, n, d);

	g_clear_pointer(&f->first, gst_sample_unref);
	return ok;
}

/*
 * Streaming thread. What fails is the device's affair: it is given up. The first picture waits for
 * the next one, since nobody knows the pace of a single one.
 */
static GstFlowReturn on_picture(GstAppSink *sink, gpointer data)
{
	GstSample *sample = gst_app_sink_pull_sample(sink);
	struct y4m_file *f = data;
	gboolean ok;
	int n, d;

	if (!sample)
		return GST_FLOW_EOS;
	if (!f->file) {
		f->file = fopen(f->path, "we");
		ok = f->file != NULL;
		f->first = ok ? gst_sample_ref(sample) : NULL; /* else it may be called again */
	} else {
		inbound_pace(f->inbound, &n, &d);
		ok = (!f->first || write_first(f, n, d)) && y4m_write(f->file, sample, FALSE, n, d);
	}
	gst_sample_unref(sample);
	if (ok)
		return GST_FLOW_OK;
	GST_ELEMENT_ERROR(sink, RESOURCE, WRITE,
			  ("cannot write %s: %s", f->path, g_strerror(errno)), (NULL));
	return GST_FLOW_ERROR;
}

static void close_file(gpointer data)
{
	struct y4m_file *f = data;

	if (f->file && f->first)
		write_first(f, 24, 1); /* the call has no inbound any more */
	g_clear_pointer(&f->first, gst_sample_unref);
	close_log(f->file, f->path);
	g_free(f->path);
	g_free(f);
}

void call_write_y4m(GstElement *elements, gpointer data)
{
	GstAppSinkCallbacks calls = {.new_sample = on_picture};
	GstElement *sink = part_of(elements, "y4m");
	struct y4m_file *f;

	if (!sink)
		return;
	f = g_new0(struct y4m_file, 1);
	f->inbound = ((struct call *)data)->inbound;
	f->path = g_strdup(((struct call *)data)->sink);
	gst_app_sink_set_callbacks(GST_APP_SINK(sink), &calls, f, close_file);
}
