/* SPDX-License-Identifier: GPL-2.0 */
/* Pictures of a y4m file; and what such a file begins with. */
#ifndef PAQM_STREAMER_SOURCE_H
#define PAQM_STREAMER_SOURCE_H

#include <gst/video/video.h>
#include <stdio.h>

/* Behind a decoder: telephones write pictures as they lay, and beside them how they were held. */
#define SOURCE_UPRIGHT "videoconvert ! videoflip video-direction=auto"

/* Pictures a second: as encoders have it; and one at least. */
#define SOURCE_FPS_MAX 240

struct y4m {
	int width, height, fps_n, fps_d, par_n, par_d; /* par: of a pixel */
	gboolean full_range;			       /* samples are 0 to 255; else 16 to 235 */
	guint frames;
	gsize frame_size;
	FILE *file;
	GArray *offset; /* of gsize */
};

/* A pipe with a name, which another program writes to: mkfifo(1). */
gboolean source_is_pipe(const char *path);
/**
 * source_uri() - what uridecodebin opens
 * @pipe: a descriptor, if @path is a pipe, to be closed when nothing reads it any more; else -1
 *
 * Of a pipe it is that descriptor: filesrc waits in open() and read() for who writes, and nothing
 * ends it then.
 */
char *source_uri(const char *path, int *pipe, GError **error);
/* FALSE: it was removed, or made anew, and nobody will ever write to what was opened. */
gboolean source_is_that_pipe(const char *path, int pipe);
gboolean y4m_open(struct y4m *y, const char *path, GError **error);
/* NULL: the file has become shorter since. */
GstBuffer *y4m_frame(const struct y4m *y, guint index);
GstCaps *y4m_caps(const struct y4m *y);
/**
 * y4m_write() - add a picture to a file
 * @picture: raw video, 8 bit 4:2:0
 * @first: the head goes before it
 * @fps_n, @fps_d: pictures a second by time stamps; @picture may tell none, or not all of it
 *
 * Return: FALSE: it is not written, see errno.
 */
gboolean y4m_write(FILE *file, GstSample *picture, gboolean first, int fps_n, int fps_d);
void y4m_close(struct y4m *y);

#endif /* PAQM_STREAMER_SOURCE_H */
