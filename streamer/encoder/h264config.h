/* SPDX-License-Identifier: GPL-2.0 */
/* What an encoder of h264enc.h is opened with. */
#ifndef PAQM_H264CONFIG_H
#define PAQM_H264CONFIG_H

#include <stdbool.h>

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
	unsigned int packet;	    /* longest IP packet, bytes, */
	unsigned int packet_coarse; /* and of coarse pictures, if that is longer */
	unsigned int headers;	    /* bytes around the payload of each packet */
	bool psnr;		    /* measure PSNR of each picture */
};

#endif /* PAQM_H264CONFIG_H */
