/* SPDX-License-Identifier: GPL-2.0 */
/* Elements of a pipeline by their names, and probes on their pads. */
#ifndef PAQM_STREAMER_PARTS_H
#define PAQM_STREAMER_PARTS_H

#include <gst/gst.h>

/* The pipeline keeps it: no reference is handed out. NULL if there is none. */
static inline GstElement *part_of(GstElement *pipeline, const char *name)
{
	GstElement *e = gst_bin_get_by_name(GST_BIN(pipeline), name);

	if (e)
		gst_object_unref(e);
	return e;
}

/*
 * Stops an element, and what is in it. A decodebin (1.22) that has failed on its way up fails once
 * more on its way down, and so does each bin around it.
 */
static inline void part_stop(GstElement *e)
{
	for (int n = 0; n < 4; n++)
		if (gst_element_set_state(e, GST_STATE_NULL) != GST_STATE_CHANGE_FAILURE)
			break;
}

/* @fn sees each buffer on a pad that @e always has. */
static inline void part_probe(GstElement *e, const char *pad_name, GstPadProbeCallback fn,
			      gpointer data)
{
	GstPad *pad = gst_element_get_static_pad(e, pad_name);

	gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_BUFFER, fn, data, NULL);
	gst_object_unref(pad);
}

/* Adds a copy of bytes to the end of a buffer. */
static inline void part_append(GstBuffer *buf, const guint8 *p, gsize len)
{
	if (len)
		gst_buffer_append_memory(buf, gst_memory_new_wrapped(0, g_memdup2(p, len), len, 0,
								     len, NULL, g_free));
}

#endif /* PAQM_STREAMER_PARTS_H */
