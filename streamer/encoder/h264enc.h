/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Rate-controlled H.264 encoder over libx264: RA-SVBR chooses the quantizer of
 * each group of pictures, x264's row control keeps every picture inside its
 * budget. Knows nothing of GStreamer, so that tools can measure it directly.
 */
#ifndef PAQM_H264ENC_H
#define PAQM_H264ENC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "streamer/encoder/h264config.h"
#include "streamer/encoder/rasvbr.h"

struct h264_picture {
	unsigned int frame;
	unsigned int gop;
	char type; /* I: IDR, R: start of a refresh wave, P */
	int qp_base;
	double qp; /* mean over the macroblocks */
	size_t bytes;
	size_t wire;
	unsigned int packets;
	unsigned int packet; /* bytes of the longest, headers included */
	double bound;	     /* wire bytes; 0 in mode gop */
	double target;
	double rate;	 /* allowance in force */
	double interval; /* s until the next picture that is coded */
	int width, height;
	double psnr;
};

struct h264_output {
	const uint8_t *data; /* Annex B access unit, valid until the next call */
	size_t size;
	struct h264_picture pic;
	bool group_end; /* this picture completed a group: */
	unsigned int group;
	int group_qp;
	int group_frames;
	struct ra_group ra;
};

struct h264_enc;

struct h264_enc *h264_open(const struct h264_config *cfg, char *err, size_t errlen);
void h264_set_rate(struct h264_enc *enc, double rate);
/* Packets are so long from the next picture on; those of coarse pictures @coarse, if longer. */
void h264_set_packet(struct h264_enc *enc, unsigned int packet, unsigned int coarse);
void h264_set_limits(struct h264_enc *enc, int gop, int qp_min, int qp_max, int floor_qp,
		     double delay);
bool h264_encode(struct h264_enc *enc, const uint8_t *const plane[3], const int stride[3], bool key,
		 struct h264_output *out);
void h264_close(struct h264_enc *enc);

#endif /* PAQM_H264ENC_H */
