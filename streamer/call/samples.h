/* SPDX-License-Identifier: GPL-2.0 */
/* The sound of a file, in pieces that can be fed (feed.h). */
#ifndef PAQM_CALL_SAMPLES_H
#define PAQM_CALL_SAMPLES_H

#include <gst/audio/audio.h>
#include <gst/gst.h>

#define SAMPLES_RATE 48000
#define SAMPLES_CHUNK_MS 20
#define SAMPLES_CAPS                                                                               \
	"audio/x-raw,channels=1,layout=interleaved,rate=" G_STRINGIFY(                             \
		SAMPLES_RATE) ",format=" GST_AUDIO_NE(S16)

GBytes *samples_load(const char *path, GError **error);
GstBuffer *samples_chunk(guint64 n, gpointer data);

#endif /* PAQM_CALL_SAMPLES_H */
