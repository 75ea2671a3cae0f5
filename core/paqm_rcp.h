/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Outer law RCP, Rate Control Protocol: one rate for every flow, changed by a factor from period to
 * period, so that all flows share the link like a processor.
 *
 * Source: Dukkipati, Kobayashi, Zhang-Shen, McKeown, "Processor sharing flows in the Internet",
 * IWQoS 2005; gains are those of its simulations.
 */
#ifndef PAQM_RCP_H
#define PAQM_RCP_H

#include "paqm_law.h"

#define PAQM_RCP_ALPHA_Q24 PAQM_Q24(1, 10)
#define PAQM_RCP_BETA_Q24 PAQM_Q24(1, 1)
#define PAQM_RCP_FIRST_DIV 20 /* at first a flow has this part of the link */

/**
 * struct paqm_rcp_vars - state of the law
 * @rate_q20: R, bit/s, Q20; 0: the law has not begun
 */
struct paqm_rcp_vars {
	paqm_u64 rate_q20;
};

/**
 * paqm_rcp_step() - one period
 * @rate_q20: R, bit/s, Q20
 * @link: C, bit/s, not 0
 * @rate: y, bit/s
 * @queue: q, bytes
 * @period_us: T; beyond a round trip it counts as one
 * @rtt_us: d, not 0
 *
 * R' = R (1 + (T / d) (alpha (C - y) - beta q / d) / C), at most C. The change of a period is
 * within R, so R stays above 0 but for its rounding.
 *
 * Return: R'.
 */
static inline paqm_u64 paqm_rcp_step(paqm_u64 rate_q20, paqm_u64 link, paqm_u64 rate,
				     paqm_u64 queue, paqm_u32 period_us, paqm_u32 rtt_us)
{
	paqm_u64 most = paqm_min64(link, PAQM_BPS_MAX) << PAQM_BPS_Q, pos = 0, neg, part;
	paqm_u64 trips = paqm_muldiv(paqm_min64(period_us, rtt_us), PAQM_Q24_ONE, rtt_us);

	neg = paqm_muldiv(queue, 8000000, rtt_us);
	neg = paqm_mul_q24(paqm_min64(neg, 4 * link), PAQM_RCP_BETA_Q24);
	if (link >= rate)
		pos = paqm_mul_q24(link - rate, PAQM_RCP_ALPHA_Q24);
	else
		neg += paqm_mul_q24(paqm_min64(rate - link, 4 * link), PAQM_RCP_ALPHA_Q24);
	part = paqm_muldiv(pos >= neg ? pos - neg : neg - pos, trips, link);
	part = paqm_mul_q24(rate_q20, paqm_min64(part, PAQM_Q24_ONE));
	return pos >= neg ? paqm_min64(rate_q20 + part, most) : rate_q20 - part;
}

static inline paqm_u64 paqm_rcp_rate(struct paqm_rcp_vars *v, const struct paqm_outer_params *p,
				     const struct paqm_outer_in *in, int whole)
{
	paqm_u64 link = paqm_clamp64(in->link, 1, PAQM_BPS_MAX);

	if (!v->rate_q20)
		v->rate_q20 = paqm_div64(link << PAQM_BPS_Q, PAQM_RCP_FIRST_DIV);
	else if (whole)
		v->rate_q20 = paqm_rcp_step(v->rate_q20, link, in->rate, in->backlog, in->period_us,
					    in->rtt_us ? in->rtt_us : 1);
	v->rate_q20 = paqm_max64(v->rate_q20, p->rate_min << PAQM_BPS_Q);
	return v->rate_q20 >> PAQM_BPS_Q;
}

#endif /* PAQM_RCP_H */
