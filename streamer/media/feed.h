/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A clock that feeds an appsrc: buffers enter at exact multiples of their duration, and what would
 * come too late is left out, as a camera does.
 */
#ifndef PAQM_STREAMER_FEED_H
#define PAQM_STREAMER_FEED_H

#include <gst/gst.h>

struct feed;

/* Its own thread: makes the @n-th buffer, counted with those left out; NULL: it cannot. */
typedef GstBuffer *(*feed_fn)(guint64 n, gpointer data);

/**
 * feed_start() - feed an appsrc of a pipeline that is playing on the monotonic clock
 * @num, @den: a buffer lasts num / den seconds
 * @begin: time of the first on that clock
 * @count: of buffers, then the stream ends; G_MAXUINT64: it does not
 */
struct feed *feed_start(GstElement *appsrc, guint64 num, guint64 den, GstClockTime begin,
			guint64 count, feed_fn fn, gpointer data);
/* Any thread but its own: no more buffers; the stream's end is not told. NULL: nothing to do. */
void feed_stop(struct feed *f);

#endif /* PAQM_STREAMER_FEED_H */
