/* SPDX-License-Identifier: GPL-2.0 */
/* Pictures of a y4m file, mapped into memory. */
#ifndef PAQM_STREAMER_SOURCE_H
#define PAQM_STREAMER_SOURCE_H

#include <gst/video/video.h>

struct y4m {
	int width, height, fps_n, fps_d;
	guint frames;
	gsize frame_size;
	GMappedFile *file;
	GArray *offset; /* of gsize */
};

gboolean y4m_open(struct y4m *y, const char *path, GError **error);
GstBuffer *y4m_frame(const struct y4m *y, guint index);
GstCaps *y4m_caps(const struct y4m *y);
void y4m_close(struct y4m *y);

#endif /* PAQM_STREAMER_SOURCE_H */
