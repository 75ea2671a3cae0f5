// SPDX-License-Identifier: GPL-2.0
/* The smaller of what the routers advise and what loss allows. */
#include "streamer/allowance.h"

#include <math.h>

#define START_SHARE 0.25 /* of the highest rate */
#define START_HOLD 1.0	 /* s to wait for the first advice */
#define RAISE_EVERY 0.5
#define RAISE 1.10
#define LOWER 0.85
#define LOSS 0.01
/* Single lost packets belong to the routers as long as they give advice. */
#define LOSSY_REPORTS 2
#define LOSS_REST 2.0 /* s without loss before the net is raised again */
/* Reports came and stopped: the path may be broken. */
#define SILENCE 5.0
#define SILENCE_EVERY 1.0
#define SILENCE_LOWER 0.7

static double clampr(const struct allow_params *p, double rate)
{
	return fmin(fmax(rate, p->rate_min), p->rate_max);
}

void allow_init(struct allow_state *st, const struct allow_params *p, double now)
{
	*st = (struct allow_state){
		.start = now,
		.net = clampr(p, START_SHARE * p->rate_max),
		.raised = now,
		.report = -1,
		.loss = -1,
	};
}

static double rate_now(const struct allow_state *st, const struct allow_params *p)
{
	return clampr(p, st->advice > 0 ? fmin(st->advice, st->net) : st->net);
}

/**
 * allow_advice() - what the routers say now
 * @rate: bit/s; 0 when no advice is in force any more
 */
void allow_advice(struct allow_state *st, const struct allow_params *p, double now, double rate)
{
	if (rate > 0) {
		/*
		 * Advice is back. What was lost meanwhile was lost to this sender's own search
		 * for a rate, and says nothing against the rate that a router knows.
		 */
		if (st->advice <= 0 && st->kept > 0) {
			st->net = fmax(st->net, st->kept);
			st->loss = st->kept_loss;
			st->lossy = 0;
			st->kept = 0;
		}
		/* Without loss the net must not hold back what a router grants. */
		if (st->loss < 0)
			st->net = p->rate_max;
		st->advised = true;
	} else if (st->advice > 0) {
		/* Alone again: go on from here, not from the top. */
		st->kept = st->net;
		st->kept_loss = st->loss;
		st->net = rate_now(st, p);
		st->raised = now;
	}
	st->advice = rate;
}

/**
 * allow_report() - a receiver report came
 * @fraction_lost: share of packets lost since the report before
 */
void allow_report(struct allow_state *st, const struct allow_params *p, double now,
		  double fraction_lost)
{
	st->report = now;
	if (fraction_lost <= LOSS) {
		st->lossy = 0;
		return;
	}
	st->lossy++;
	if (st->advice > 0 && st->lossy < LOSSY_REPORTS)
		return;
	st->net = clampr(p, LOWER * rate_now(st, p));
	st->loss = now;
	st->raised = now;
}

/* The rate to use now; also lets time act on the safety net. */
double allow_rate(struct allow_state *st, const struct allow_params *p, double now)
{
	if (st->report >= 0 && now - st->report > SILENCE) {
		if (st->advice <= 0 && now - st->raised >= SILENCE_EVERY) {
			st->net = clampr(p, SILENCE_LOWER * st->net);
			st->raised = now;
		}
		return rate_now(st, p);
	}
	if (st->loss >= 0 && now - st->loss < LOSS_REST)
		return rate_now(st, p);
	/* Nobody listens: without advice and reports there is nothing to go by. */
	if (st->advice <= 0 && st->report < 0)
		return rate_now(st, p);
	if (st->advice <= 0 && !st->advised && now - st->start < START_HOLD)
		return rate_now(st, p);
	if (st->net < p->rate_max && now - st->raised >= RAISE_EVERY) {
		st->net = clampr(p, RAISE * st->net);
		st->raised = now;
	}
	if (st->net >= p->rate_max) {
		st->raised = now;
		st->loss = -1;
	}
	return rate_now(st, p);
}
