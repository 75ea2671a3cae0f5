/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The sending side of 2D-interlaced coding (interlace.h): one encoder per sub-picture, all in one
 * RTP stream. The two lowest bits of an RTP time stamp are the number of the sub-picture, so each
 * one is an access unit with a time of its own, and a receiver knows what it lacks.
 */
#ifndef PAQM_STREAMER_SPLIT_H
#define PAQM_STREAMER_SPLIT_H

#include <gst/gst.h>
#include <gst/video/video.h>

#include "streamer/media/interlace.h"

#define SPLIT_PHASE(ts) ((ts) & (INTERLACE_PHASES - 1))

/* Component @c of a mapped picture. */
static inline struct plane split_plane(GstVideoFrame *f, int c)
{
	return (struct plane){
		.data = GST_VIDEO_FRAME_COMP_DATA(f, c),
		.width = GST_VIDEO_FRAME_COMP_WIDTH(f, c),
		.height = GST_VIDEO_FRAME_COMP_HEIGHT(f, c),
		.stride = GST_VIDEO_FRAME_COMP_STRIDE(f, c),
	};
}

struct split;

/**
 * split_elements() - what stands between source and payloader, as gst-launch has it
 * @options: of each encoder; they are called enc0, enc1, ...
 *
 * Return: ends with "! "; free with g_free().
 */
char *split_elements(enum interlace_mode mode, const char *options);

/**
 * split_new() - let these elements do so
 * @gop: pictures of a group: groups of the sub-pictures begin one after another
 */
struct split *split_new(GstBin *pipeline, enum interlace_mode mode, guint gop, GstElement *pay);
void split_free(struct split *s);

#endif /* PAQM_STREAMER_SPLIT_H */
