/* SPDX-License-Identifier: GPL-2.0 */
/* Files in place of camera and microphone: buffers at their exact times, again from the start at
 * the end. */
#ifndef PAQM_CALL_FEED_H
#define PAQM_CALL_FEED_H

#include <gst/app/gstappsrc.h>
#include <gst/gst.h>

#define FEED_RATE 48000 /* samples per second, one channel, 16 bit */
#define FEED_CHUNK_MS 20

struct feed;

/* The @n-th buffer; its times are set by the feeder. */
typedef GstBuffer *(*feed_fn)(guint64 n, gpointer data);

struct feed *feed_start(GstElement *appsrc, guint64 num, guint64 den, GstClockTime begin,
			feed_fn fn, gpointer data);
void feed_stop(struct feed *f);
GBytes *feed_load_audio(const char *path, GError **error);
GstBuffer *feed_audio(guint64 n, gpointer data);

#endif /* PAQM_CALL_FEED_H */
