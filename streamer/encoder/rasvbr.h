/* SPDX-License-Identifier: GPL-2.0 */
/*
 * RA-SVBR: rate-adaptive shaped VBR, the controller that picks one quantizer
 * per group of pictures (A. Lie, dr.ing. thesis, NTNU 2008, Papers C-E and
 * Appendix C). A virtual leaky bucket of beta times the allowance remembers
 * past excess; it never delays a packet.
 *
 * Pure functions: no clock, no allocation, no I/O. All sizes are wire bits,
 * headers included; all rates are bits per group of pictures.
 */
#ifndef PAQM_RASVBR_H
#define PAQM_RASVBR_H

#include <stdbool.h>

/* How a quantizer relates to bits. */
enum ra_domain {
	RA_STEP, /* bits ~ 1/Q, MPEG-4 quantizer 1..31 */
	RA_QP,	 /* bits ~ 2^(-gamma*QP/6), H.264 */
};

struct ra_params {
	enum ra_domain domain;
	int frames;   /* G, pictures per group */
	double beta;  /* bucket size over allowance; 1.5 as published */
	double q_ref; /* reference quantizer q */
	double q_min;
	double q_max;
	double rho;   /* rounding point: 0.5 is nearest */
	double gamma; /* only RA_QP: exponent of the rate model; 1 as published */
	double r_min; /* limits of the allowance */
	double r_max;
	double decay; /* d_f: packets of backlog that lower an allowance to 1/e; 100 as published */
};

struct ra_state {
	double x_bits;	 /* X, fullness of the bucket */
	double q;	 /* quantizer of the group being sent */
	double r_cur;	 /* allowance when the group began */
	double r_last;	 /* newest allowance */
	double r_acc;	 /* allowance summed over the frames before the newest one came */
	int i_last;	 /* frame at which the newest allowance came */
	double buffered; /* allowances less what waits before a send buffer, summed */
	int n_buffered;
	double sent; /* R so far */
	int i;	     /* frames sent in this group */
};

/* What the controller saw and did at the end of a group. */
struct ra_group {
	double R;	 /* wire bits of the group */
	double r_eff;	 /* r', mean allowance */
	double b_eff;	 /* b', bucket size */
	double X;	 /* bucket after the group */
	double raw;	 /* the same before clipping to b' */
	double overflow; /* raw - b', what the bucket forgets */
	double x, e1, e2;
	double R_open, R_temp;
	double q_star; /* quantizer before rounding */
	double r_t;    /* newest allowance */
	double gamma;  /* exponent of the rate model in use */
	double q_next;
};

/* Quantizers and bits of the last groups. */
#define RA_FIT 20
struct ra_fit {
	double q[RA_FIT];
	double octaves[RA_FIT]; /* log2 of the bits */
	int n, at;
};

void ra_init(struct ra_state *st, const struct ra_params *p, double rate);
void ra_feedback(struct ra_state *st, const struct ra_params *p, double rate);
/**
 * ra_feedback_buffered() - the same where a send buffer stands behind the encoder (TFRC, Paper E)
 * @backlog: packets that wait in it
 *
 * paqm-streamer has no such buffer: its pictures keep within the rate.
 */
void ra_feedback_buffered(struct ra_state *st, const struct ra_params *p, double rate,
			  double backlog);
void ra_frame(struct ra_state *st, double wire_bits);
bool ra_group_complete(const struct ra_state *st, const struct ra_params *p);
double ra_open_bits(const struct ra_params *p, double bits, double q);
struct ra_group ra_group_end(struct ra_state *st, const struct ra_params *p, double open_bits);
void ra_fit_add(struct ra_fit *fit, double q, double bits);
double ra_fit_gamma(const struct ra_fit *fit, double gamma);

#endif /* PAQM_RASVBR_H */
