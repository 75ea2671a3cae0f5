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

#include "streamer/encoder/rasvbr.h"

enum h264_mode {
	H264_MODE_GOP,	/* one quantizer per group, exactly RA-SVBR */
	H264_MODE_TRIM, /* the same with pictures trimmed to their budget */
	H264_MODE_CBR,	/* libx264's own control with a VBV, for comparison */
};

enum h264_refresh {
	H264_REFRESH_INTRA, /* no IDR but the first; a column of intra blocks wanders */
	H264_REFRESH_IDR,   /* closed groups: each begins with an IDR picture */
};

/* What samples mean (ITU-T H.264, Annex E); numbers of ITU-T H.273, 2: nobody knows. */
struct h264_colour {
	bool full_range;
	int primaries, transfer, matrix;
	int sar_n, sar_d; /* width over height of a sample; 0: unknown */
};

struct h264_config {
	int width, height;
	struct h264_colour colour;
	int fps_n, fps_d;
	enum h264_mode mode;
	int gop; /* pictures per rate-control group */
	enum h264_refresh refresh;
	int wave; /* pictures per wave of intra blocks */
	int qp_min, qp_max;
	int floor_qp;	 /* coarser than this for long: fewer, then smaller pictures; 52: never */
	double beta;	 /* RA-SVBR bucket over allowance */
	double gamma;	 /* exponent of the rate model in mode gop; 0: estimated */
	double delay;	 /* delay budget of a picture, s */
	double rate;	 /* first allowance, bit/s, IP level */
	double rate_max; /* highest allowance there will be */
	unsigned int packet;  /* longest IP packet, bytes */
	unsigned int headers; /* bytes around the payload of each packet */
	bool psnr;	      /* measure PSNR of each picture */
};

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
/* Packets are so long from the next picture on. */
void h264_set_packet(struct h264_enc *enc, unsigned int packet);
void h264_set_limits(struct h264_enc *enc, int gop, int qp_min, int qp_max, int floor_qp,
		     double delay);
bool h264_encode(struct h264_enc *enc, const uint8_t *const plane[3], const int stride[3], bool key,
		 struct h264_output *out);
void h264_close(struct h264_enc *enc);

#endif /* PAQM_H264ENC_H */
