// SPDX-License-Identifier: GPL-2.0
/*
 * What flows that are not known yet count for in a round: as flows, if newcomers stay as a rule, or
 * with what they send together. Part of the outer loop, process context under ctl_lock.
 */
#include "core/paqm_maxmin.h"
#include "paqm_stranger.h"

#define PAQM_NEWCOMER_ROUNDS 64 /* rounds in which a low credit of newcomers recovers */
#define PAQM_NEWCOMER_MEMORY 16	/* newcomers that their credit is averaged over */

/*
 * Strangers together send a few packets in most windows: their mean counts, or the rates of all
 * others would follow each of these packets. What two windows agree on counts at once. Newcomers
 * that count as flows, or became known in this period, are no strangers.
 */
static void paqm_mean_strangers(struct paqm_sched_data *q)
{
	u64 low = min(q->stranger_rate, q->stranger_then);
	u64 high = max(q->stranger_rate, q->stranger_then);

	if (q->newcomers)
		q->stranger_mean = 0;
	else if (q->proven)
		return;
	else if (low > 2 * q->stranger_mean)
		q->stranger_mean = low;
	else if (high < q->stranger_mean / 4)
		q->stranger_mean = high;
	else
		q->stranger_mean = (q->stranger_mean * 15 + q->stranger_rate) / 16;
}

/*
 * Weigh flows that are not known yet, together. Usually they stay and use what they get: they count
 * in full, as long as they do not outnumber the others, which thus lose half at most before the
 * newcomers are measured. Where most newcomers were soon gone, like spoofed flows and those that
 * change their ports, they count as one flow that uses what it sends.
 */
void paqm_weigh_newcomers(struct paqm_sched_data *q, bool whole)
{
	struct paqm_census *c = &q->census;
	u32 credit = div_u64((u64)q->credit_q16 * PAQM_NEWCOMER_MEMORY + ((u64)c->proven << 16),
			     PAQM_NEWCOMER_MEMORY + c->proven + c->passed);

	if (whole && !c->passed) /* it recovers gradually */
		credit += (PAQM_Q16_ONE - credit) / PAQM_NEWCOMER_ROUNDS;
	WRITE_ONCE(q->credit_q16, credit); /* the datapath reads it */
	q->newcomers = (u32)(((u64)min(c->joining, q->rotating ? 1 : c->takers + 1) * credit +
			      PAQM_Q16_ONE / 2) >> 16);
	q->proven |= c->proven;
	/* those that do not count as flows any more count with what they sent lately */
	if (whole || (c->joining && !q->newcomers && !q->stranger_mean))
		paqm_mean_strangers(q);
	q->proven &= !whole;
	c->mm.greedy += q->newcomers;
	if (q->stranger_mean && !q->newcomers)
		paqm_mm_add(&c->mm, q->stranger_mean, q->right_low);
}
