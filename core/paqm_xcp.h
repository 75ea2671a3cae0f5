/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Outer law XCP, eXplicit Control Protocol: all flows gain the same and lose in proportion to what
 * they send, so that the sum fills the link and shares become equal.
 *
 * Source: Katabi, Handley, Rohrs, "Congestion control for high bandwidth-delay product networks",
 * SIGCOMM 2002, sections 3.5 and 5. The feedback of a packet there is a change of its flow's rate
 * per control interval here; flows are counted, not found from windows in packets.
 */
#ifndef PAQM_XCP_H
#define PAQM_XCP_H

#include "paqm_law.h"

#define PAQM_XCP_ALPHA_Q24 PAQM_Q24(4, 10)
#define PAQM_XCP_BETA_Q24 PAQM_Q24(226, 1000)
#define PAQM_XCP_SHUFFLE_Q24 PAQM_Q24(1, 10) /* part of the traffic that is moved */

/**
 * struct paqm_xcp_vars - state of the law
 * @each: what a flow is to do
 */
struct paqm_xcp_vars {
	struct paqm_each each;
};

/**
 * paqm_xcp_step() - one control interval
 * @link: C, bit/s
 * @rate: y, bit/s
 * @queue: Q, what did not drain in the interval, bytes
 * @rtt_us: d, not 0
 * @flows: how many share the gain
 *
 * phi / d = alpha (C - y) - beta Q / d; h = max(0, 0.1 y - |phi / d|). Each of n flows gains
 * (h + max(phi, 0)) / n and loses the part (h + max(-phi, 0)) / y of what it sends.
 *
 * Return: what a flow is to do.
 */
static inline struct paqm_each paqm_xcp_step(paqm_u64 link, paqm_u64 rate, paqm_u64 queue,
					     paqm_u32 rtt_us, paqm_u32 flows)
{
	paqm_u64 drain = paqm_min64(paqm_muldiv(queue, 8000000, rtt_us), 4 * link);
	paqm_u64 more = 0, less = paqm_mul_q24(drain, PAQM_XCP_BETA_Q24), phi, moved;
	struct paqm_each each;

	rate = paqm_min64(rate, PAQM_BPS_MAX);
	if (link >= rate)
		more = paqm_mul_q24(link - rate, PAQM_XCP_ALPHA_Q24);
	else
		less += paqm_mul_q24(rate - link, PAQM_XCP_ALPHA_Q24);
	phi = more >= less ? more - less : less - more;
	moved = paqm_mul_q24(rate, PAQM_XCP_SHUFFLE_Q24);
	moved = moved > phi ? moved - phi : 0;
	each.grade = 0;
	each.add = paqm_div64(moved + (more >= less ? phi : 0), flows ? flows : 1);
	less = paqm_muldiv(moved + (more < less ? phi : 0), PAQM_Q24_ONE, rate ? rate : 1);
	each.keep_q24 = less < PAQM_Q24_ONE ? PAQM_Q24_ONE - (paqm_u32)less : 0;
	return each;
}

/* Without a rate of its own a flow has an equal part. */
static inline paqm_u64 paqm_xcp_rate(struct paqm_xcp_vars *v, const struct paqm_outer_params *p,
				     const struct paqm_outer_in *in, int whole)
{
	if (whole)
		v->each = paqm_xcp_step(paqm_min64(in->link, PAQM_BPS_MAX), in->rate,
					paqm_min64(in->queued, in->backlog),
					in->rtt_us ? in->rtt_us : 1, in->flows);
	return paqm_max64(paqm_div64(in->link, in->flows ? in->flows : 1), p->rate_min);
}

static inline struct paqm_each paqm_xcp_each(const struct paqm_xcp_vars *v)
{
	return v->each;
}

#endif /* PAQM_XCP_H */
