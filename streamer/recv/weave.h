/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The receiving side of 2D-interlaced coding (interlace.h, split.h): packets in order come in,
 * sub-pictures that are whole and whose references are go to a decoder each, and pictures come
 * out, interpolated where a sub-picture is missing.
 */
#ifndef PAQM_STREAMER_WEAVE_H
#define PAQM_STREAMER_WEAVE_H

#include <gst/gst.h>

#include "streamer/media/interlace.h"

struct weave;

struct weave_stats {
	guint64 parts;	 /* sub-pictures shown */
	guint64 missing; /* interpolated */
};

/* Any thread, one at a time: a picture, I420; its presentation time is its RTP time. */
typedef void (*weave_fn)(GstSample *picture, gpointer data);

/**
 * weave_new() - add what it takes to a pipeline
 *
 * Return: NULL with @error.
 */
struct weave *weave_new(GstBin *pipeline, enum interlace_mode mode, weave_fn fn, gpointer data,
			GError **error);

/* Where packets come in: an element with a pad "sink". */
GstElement *weave_inlet(struct weave *w);
void weave_stats(struct weave *w, struct weave_stats *st);
void weave_free(struct weave *w);

#endif /* PAQM_STREAMER_WEAVE_H */
