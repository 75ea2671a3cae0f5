/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Outer law ERF, explicit rate feedback: a rate per flow, adjusted from period to period.
 *
 * Source: A. Lie, NTNU 2008:74, Paper F, law 3.
 */
#ifndef PAQM_ERF_H
#define PAQM_ERF_H

#include "paqm_law.h"

/**
 * struct paqm_erf_vars - state of the ERF law
 * @rate_q20: per-flow rate R, bit/s, Q20
 * @flows_q16: implied number of flows, Q16, at least 1
 */
struct paqm_erf_vars {
	paqm_u64 rate_q20;
	paqm_u64 flows_q16;
};

static inline void paqm_erf_init(struct paqm_erf_vars *v, paqm_u64 rate, paqm_u64 cap)
{
	v->rate_q20 = paqm_min64(rate, PAQM_BPS_MAX) << PAQM_BPS_Q;
	v->flows_q16 = rate ? paqm_max64(PAQM_Q16_ONE, paqm_muldiv(cap, PAQM_Q16_ONE, rate))
			    : PAQM_Q16_ONE;
}

/**
 * paqm_erf_step() - ERF law (Paper F, law 3)
 * @v: state
 * @p: parameters
 * @in: measurement; @in->flows only with @p->fastest
 *
 * R' = R + [alpha (cap - r) + beta (N_out - Q) / d] / N, clamped to
 * [rate_min, cap]; N' = max(1, cap / R'). With @p->fastest two things are known
 * that the published law finds out in some seven periods of overload: an R far above
 * what the fastest flow sends says nothing, so under overload the step begins there;
 * and an increase is divided by the counted flows while these exceed N.
 *
 * Return: R' rounded down to bit/s.
 */
static inline paqm_u64 paqm_erf_step(struct paqm_erf_vars *v, const struct paqm_outer_params *p,
				     const struct paqm_outer_in *in)
{
	paqm_u64 cap_q20 = paqm_min64(in->cap, PAQM_BPS_MAX) << PAQM_BPS_Q;
	paqm_u64 pos = 0, neg = 0, step, next, flows_q16 = v->flows_q16;

	/* twice: what is known of a flow lags behind R, which may swing by a half of itself */
	if (p->fastest && in->rate > in->cap && v->rate_q20 >> PAQM_BPS_Q > 2 * p->fastest) {
		paqm_erf_init(v, p->fastest, in->cap);
		flows_q16 = v->flows_q16;
	}
	paqm_outer_terms(p, in, &pos, &neg);
	if (p->fastest && pos > neg)
		flows_q16 = paqm_max64(flows_q16, (paqm_u64)in->flows << 16);
	step = paqm_muldiv(pos >= neg ? pos - neg : neg - pos, PAQM_Q16_ONE, flows_q16);
	if (pos >= neg)
		next = v->rate_q20 > PAQM_U64_MAX - step ? PAQM_U64_MAX : v->rate_q20 + step;
	else
		next = v->rate_q20 > step ? v->rate_q20 - step : 0;
	next = paqm_min64(next, cap_q20);
	next = paqm_max64(next, paqm_min64(p->rate_min, PAQM_BPS_MAX) << PAQM_BPS_Q);
	v->rate_q20 = next;
	v->flows_q16 = paqm_max64(PAQM_Q16_ONE, paqm_muldiv(cap_q20, PAQM_Q16_ONE, next));
	return next >> PAQM_BPS_Q;
}

/*
 * Begins at R = cap / n: the first flows do not start at the rate of the link. As published it
 * begins at R = cap, whatever the number of flows.
 */
static inline paqm_u64 paqm_erf_rate(struct paqm_erf_vars *v, const struct paqm_outer_params *p,
				     const struct paqm_outer_in *in, int whole)
{
	if (p->counted && !in->flows) {
		*v = (struct paqm_erf_vars){0, 0};
		return 0;
	}
	if (!v->rate_q20)
		paqm_erf_init(v, p->counted ? paqm_div64(in->cap, in->flows) : in->cap, in->cap);
	return whole ? paqm_erf_step(v, p, in) : v->rate_q20 >> PAQM_BPS_Q;
}

#endif /* PAQM_ERF_H */
