// SPDX-License-Identifier: GPL-2.0
/* RA-SVBR controller; equation numbers are those of docs and header. */
#include "streamer/encoder/rasvbr.h"

#include <math.h>

/* An estimate of gamma: its limits, and how far quantizers must have been apart (sum of
 * squares about their mean) for content not to be taken for the quantizer's effect.
 */
#define GAMMA_MIN 0.7
#define GAMMA_MAX 1.6
#define SPREAD_MIN 20

static double clampd(double v, double lo, double hi)
{
	return v < lo ? lo : v > hi ? hi : v;
}

/**
 * ra_init() - start values of the author's implementation
 * @rate: allowance, bits per group
 *
 * Half a bucket and a quantizer that is twice as coarse as the reference: the
 * first group must not be a burst.
 */
void ra_init(struct ra_state *st, const struct ra_params *p, double rate)
{
	double r = clampd(rate, p->r_min, p->r_max);

	*st = (struct ra_state){0};
	st->r_cur = r;
	st->r_last = r;
	st->x_bits = 0.5 * p->beta * r;
	st->q = p->domain == RA_STEP ? 2 * p->q_ref : p->q_ref + 6 / p->gamma;
	st->q = clampd(st->q, p->q_min, p->q_max);
}

/* A new allowance, valid from the next frame on. */
void ra_feedback(struct ra_state *st, const struct ra_params *p, double rate)
{
	st->r_acc += st->r_last * (st->i - st->i_last);
	st->i_last = st->i;
	st->r_last = clampd(rate, p->r_min, p->r_max);
}

void ra_feedback_buffered(struct ra_state *st, const struct ra_params *p, double rate,
			  double backlog)
{
	ra_feedback(st, p, rate);
	st->buffered += st->r_last * exp(-backlog / p->decay);
	st->n_buffered++;
}

void ra_frame(struct ra_state *st, double wire_bits)
{
	st->sent += wire_bits;
	st->i++;
}

bool ra_group_complete(const struct ra_state *st, const struct ra_params *p)
{
	return st->i >= p->frames;
}

/* (4): bits that would have been needed at the reference quantizer. */
double ra_open_bits(const struct ra_params *p, double bits, double q)
{
	if (p->domain == RA_STEP)
		return bits * q / p->q_ref;
	return bits * exp2(p->gamma * (q - p->q_ref) / 6);
}

/**
 * ra_group_end() - close a group and choose the quantizer of the next one
 * @open_bits: bits the next group would need at the reference quantizer: the
 *             live estimate ra_open_bits(R, Q), or the exact figure a priori
 */
struct ra_group ra_group_end(struct ra_state *st, const struct ra_params *p, double open_bits)
{
	struct ra_group g = {
		.R = st->sent, .R_open = open_bits, .r_t = st->r_last, .gamma = p->gamma};
	int frames = st->i > 0 ? st->i : 1;
	double q;

	/* (2), with the piecewise mean when several allowances came. */
	g.r_eff = (st->r_acc + st->r_last * (frames - st->i_last)) / frames;
	/* Paper E (4): what waits has to leave first; each report counts alike. */
	if (st->n_buffered)
		g.r_eff = st->buffered / st->n_buffered;
	g.b_eff = p->beta * g.r_eff;
	/* (1) */
	g.raw = fmax(0, st->x_bits - g.r_eff) + g.R;
	g.overflow = fmax(0, g.raw - g.b_eff);
	g.X = fmin(g.b_eff, g.raw);
	/* (3) */
	g.x = g.X / g.b_eff;
	g.e1 = 1 - pow(1 - g.x, 5);
	g.e2 = pow(g.x, 5);
	/* (5a), (5b) */
	if (g.R_open > g.r_t)
		g.R_temp = (1 - g.e1) * g.R_open + g.e1 * g.r_t;
	else
		g.R_temp = g.e2 * g.R_open + (1 - g.e2) * g.r_t;
	/* (6) */
	if (p->domain == RA_STEP)
		g.q_star = p->q_ref * g.R_open / g.R_temp;
	else if (g.R_open > 0)
		g.q_star = p->q_ref + 6 / p->gamma * log2(g.R_open / g.R_temp);
	else
		g.q_star = p->q_min;
	q = floor(g.q_star + p->rho);
	g.q_next = clampd(q, p->q_min, p->q_max);

	st->x_bits = g.X;
	st->q = g.q_next;
	st->r_cur = st->r_last;
	st->r_acc = 0;
	st->i_last = 0;
	st->buffered = 0;
	st->n_buffered = 0;
	st->sent = 0;
	st->i = 0;
	return g;
}

/* Note a group that was coded with one quantizer throughout; one of no bits says nothing. */
void ra_fit_add(struct ra_fit *fit, double q, double bits)
{
	if (!(bits > 0))
		return;
	fit->q[fit->at] = q;
	fit->octaves[fit->at] = log2(bits);
	fit->at = (fit->at + 1) % RA_FIT;
	if (fit->n < RA_FIT)
		fit->n++;
}

/**
 * ra_fit_gamma() - exponent of the rate model, RA_QP, by regression over the last groups
 * @gamma: what it is as long as quantizers have been too much alike to tell
 */
double ra_fit_gamma(const struct ra_fit *fit, double gamma)
{
	double q = 0, octaves = 0, spread = 0, both = 0;

	for (int i = 0; i < fit->n; i++) {
		q += fit->q[i] / fit->n;
		octaves += fit->octaves[i] / fit->n;
	}
	for (int i = 0; i < fit->n; i++) {
		spread += (fit->q[i] - q) * (fit->q[i] - q);
		both += (fit->q[i] - q) * (fit->octaves[i] - octaves);
	}
	if (spread < SPREAD_MIN)
		return gamma;
	return clampd(-6 * both / spread, GAMMA_MIN, GAMMA_MAX);
}
