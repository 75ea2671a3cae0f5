/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Outer law VCP, Variable-structure congestion Control Protocol: two bits say how loaded the link
 * is, and flows multiply, add or fall back by that.
 *
 * Source: Xia, Subramanian, Stoica, Kalyanaraman, "One more bit is enough", SIGCOMM 2005. Changes
 * of a window per round trip there are changes of a rate here, by the published scaling for round
 * trips.
 */
#ifndef PAQM_VCP_H
#define PAQM_VCP_H

#include "paqm_law.h"

#define PAQM_VCP_TARGET_Q24 PAQM_Q24(98, 100) /* of the link */
#define PAQM_VCP_HIGH_Q24 PAQM_Q24(80, 100)   /* load from which flows add */
#define PAQM_VCP_MORE_Q24 PAQM_Q24(1, 16)     /* of a rate, per PAQM_VCP_TIME_US */
#define PAQM_VCP_KEEP_Q24 PAQM_Q24(875, 1000) /* of a rate, in overload */
#define PAQM_VCP_TIME_US 200000

/* What the two bits say; 0: no router has spoken. */
enum paqm_vcp_load { PAQM_VCP_NONE, PAQM_VCP_LOW, PAQM_VCP_HIGH, PAQM_VCP_OVER };

/**
 * struct paqm_vcp_vars - state of the law
 * @load: of the last period
 * @each: what a flow is to do
 */
struct paqm_vcp_vars {
	enum paqm_vcp_load load;
	struct paqm_each each;
};

/**
 * paqm_vcp_load() - how loaded is the link?
 * @link: C, bit/s
 * @rate: y, bit/s
 * @queue: q, bytes: half of it counts as load of PAQM_VCP_TIME_US
 *
 * Load is (y t + q / 2) / (0.98 C t).
 *
 * Return: what the bits say.
 */
static inline enum paqm_vcp_load paqm_vcp_load(paqm_u64 link, paqm_u64 rate, paqm_u64 queue)
{
	paqm_u64 full = paqm_mul_q24(link, PAQM_VCP_TARGET_Q24);
	paqm_u64 used =
		paqm_min64(rate, PAQM_BPS_MAX) + paqm_muldiv(queue, 4000000, PAQM_VCP_TIME_US);

	if (used >= full)
		return PAQM_VCP_OVER;
	return used >= paqm_mul_q24(full, PAQM_VCP_HIGH_Q24) ? PAQM_VCP_HIGH : PAQM_VCP_LOW;
}

/**
 * paqm_vcp_answer() - what a flow does in a period
 * @load: said in it
 * @period_us: its length
 * @packet: bytes: what a flow adds is a packet per PAQM_VCP_TIME_US, once in that time
 *
 * Return: what it is to do.
 */
static inline struct paqm_each paqm_vcp_answer(enum paqm_vcp_load load, paqm_u32 period_us,
					       paqm_u32 packet)
{
	struct paqm_each each = {.keep_q24 = PAQM_Q24_ONE, .grade = (paqm_u8)load};

	if (load == PAQM_VCP_OVER)
		each.keep_q24 = PAQM_VCP_KEEP_Q24;
	else if (load == PAQM_VCP_LOW)
		each.keep_q24 += (paqm_u32)paqm_muldiv(PAQM_VCP_MORE_Q24,
						       paqm_min64(period_us, 8 * PAQM_VCP_TIME_US),
						       PAQM_VCP_TIME_US);
	else if (load == PAQM_VCP_HIGH)
		each.add = paqm_muldiv(packet * 8000000ULL, period_us,
				       (paqm_u64)PAQM_VCP_TIME_US * PAQM_VCP_TIME_US);
	return each;
}

/* Without a rate of its own a flow has an equal part. */
static inline paqm_u64 paqm_vcp_rate(struct paqm_vcp_vars *v, const struct paqm_outer_params *p,
				     const struct paqm_outer_in *in, int whole)
{
	if (whole) {
		v->load = paqm_vcp_load(in->link, in->rate, in->queued);
		v->each = paqm_vcp_answer(v->load, in->period_us, in->packet);
	}
	return paqm_max64(paqm_div64(in->link, in->flows ? in->flows : 1), p->rate_min);
}

static inline struct paqm_each paqm_vcp_each(const struct paqm_vcp_vars *v)
{
	return v->each;
}

#endif /* PAQM_VCP_H */
