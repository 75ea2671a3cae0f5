/* SPDX-License-Identifier: GPL-2.0 */
/* Pictures of one size, and one range of samples, out of a stream whose sender may change it. */
#ifndef PAQM_STREAMER_SIZE_H
#define PAQM_STREAMER_SIZE_H

#include <gst/gst.h>

/* Elements between a decoder and what shows or records its pictures. */
#define SIZE_FIXED                                                                                 \
	"videoconvert name=pictures ! videoscale add-borders=false ! capsfilter name=size"

/* The decoder's own size. */
struct size {
	GstElement *filter;
	int width, height; /* of the last picture; written and read by the streaming thread */
	int wanted_width, wanted_height; /* what users want to see; 0: the first picture's */
};

/* What a user says with --size, WIDTHxHEIGHT: even, 16 to 8192 each. */
gboolean size_parse(int *width, int *height, const char *text, GError **error);
/**
 * size_keep() - give all pictures the size of the first one
 * @decoder: element whose pad "src" gives pictures
 * @filter: SIZE_FIXED's capsfilter, behind it; must live as long as the decoder
 */
void size_keep(struct size *s, GstElement *decoder, GstElement *filter);

#endif /* PAQM_STREAMER_SIZE_H */
