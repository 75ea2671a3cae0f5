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
};

/* Streaming thread. What fails is the device's affair: it is given up. */
static GstFlowReturn on_picture(GstAppSink *sink, gpointer data)
{
	GstSample *sample = gst_app_sink_pull_sample(sink);
	struct y4m_file *f = data;
	gboolean first = !f->file, ok;
	int n = 0, d = 0;

	if (!sample)
		return GST_FLOW_EOS;
	if (first) {
		f->file = fopen(f->path, "we");
		inbound_pace(f->inbound, &n, &d); /* VP8 and others do not tell theirs */
	}
	ok = f->file && y4m_write(f->file, sample, first, n, d);
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
