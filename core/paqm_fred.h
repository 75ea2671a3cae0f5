/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * FRED: Lin and Morris, Dynamics of random early detection, SIGCOMM 1997. RED that keeps account
 * of every flow with packets in the queue: who holds less than a share of the average is spared,
 * who has reached the limit too often is held to the share.
 */
#ifndef PAQM_FRED_H
#define PAQM_FRED_H

#include "paqm_red.h"

enum paqm_fred_verdict {
	PAQM_FRED_PASS,
	PAQM_FRED_EARLY,  /* random */
	PAQM_FRED_STRIKE, /* the flow holds too much */
	PAQM_FRED_FORCED, /* the average is above the upper threshold */
};

/**
 * struct paqm_fred_flow - account of a flow, as long as packets of it wait
 * @qlen: its packets in the queue
 * @strikes: how often it held too much
 */
struct paqm_fred_flow {
	paqm_u32 qlen;
	paqm_u32 strikes;
};

/* avgcq: what a flow holds on average, at least one packet; packets Q24. */
static inline paqm_u64 paqm_fred_share(paqm_u64 avg, paqm_u32 active)
{
	return paqm_max64(active ? paqm_div64(avg, active) : avg, PAQM_RED_PACKET);
}

/**
 * paqm_fred_test() - what becomes of an arrival
 * @v: average and count of RED
 * @p: parameters of RED; the spacing of drops is the uniform one of 1993
 * @flow: account of its flow
 * @active: flows with packets in the queue
 * @min_q: packets that any flow may hold without random drops
 * @draw: random number of 32 bits
 *
 * The average is updated by the caller: by an arrival that is taken, by a departure, and by one
 * that finds the queue empty; not by a drop (section 5 of the paper).
 *
 * Return: the verdict.
 */
static inline enum paqm_fred_verdict paqm_fred_test(struct paqm_red_vars *v,
						    const struct paqm_red_params *p,
						    struct paqm_fred_flow *flow, paqm_u32 active,
						    paqm_u32 min_q, paqm_u32 draw)
{
	paqm_u64 share = paqm_fred_share(v->avg, active);
	paqm_u64 held = (paqm_u64)flow->qlen << 24, prob;

	if (held >= p->min || (v->avg >= p->max && held > 2 * share) ||
	    (held >= share && flow->strikes > 1)) {
		flow->strikes++;
		return PAQM_FRED_STRIKE;
	}
	if (v->avg < p->min) {
		v->count = PAQM_RED_BELOW;
		return PAQM_FRED_PASS;
	}
	if (v->avg >= p->max) {
		v->count = 0;
		return PAQM_FRED_FORCED;
	}
	if (v->count < PAQM_RED_COUNT_MAX)
		v->count++;
	if (flow->qlen < min_q || held < share)
		return PAQM_FRED_PASS;
	prob = paqm_red_prob(p, v->max_p_q24, v->avg);
	if (draw >= paqm_red_spread(prob, (paqm_u32)v->count, 1))
		return PAQM_FRED_PASS;
	v->count = 0;
	return PAQM_FRED_EARLY;
}

#endif /* PAQM_FRED_H */
