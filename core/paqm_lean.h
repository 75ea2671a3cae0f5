/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Is a flow a little above its rate for long? Buckets fill a twentieth faster than flows are told,
 * since who follows is not exact. A flow that heeds nothing and sends that much too much would
 * keep it, and the one among its like that is just beyond it would pay for all of them.
 *
 * The cumulative sum of Page (1954, "Continuous inspection schemes"): what a flow was above its
 * rate and a tolerance, in windows of that rate, and never less than nothing. Measurements that
 * see one picture more or less cancel out in it, and a congestion control that answers every few
 * seconds makes good what it took: 4 % too much shows after 20 s, a tenth after 6.
 */
#ifndef PAQM_LEAN_H
#define PAQM_LEAN_H

#include "paqm_fix.h"

#define PAQM_LEAN_ONE 4096			 /* what a flow may send in a window */
#define PAQM_LEAN_TOLERANCE (PAQM_LEAN_ONE / 64) /* who follows is as close as that */
#define PAQM_LEAN_STEP (PAQM_LEAN_ONE / 2)	 /* one window counts for no more, */
#define PAQM_LEAN_SHOWN (2 * PAQM_LEAN_ONE)	 /* who answers now and then has less, */
#define PAQM_LEAN_MOST (3 * PAQM_LEAN_ONE)	 /* and no more has to be made good */

/**
 * paqm_lean() - the sum after one more window
 * @sum: before
 * @rate: what the flow sent
 * @most: what it may send, in the same unit
 * @counts: what it has too much another flow lacks
 *
 * Return: the sum; the flow leans from PAQM_LEAN_SHOWN on.
 */
static inline paqm_u32 paqm_lean(paqm_u32 sum, paqm_u64 rate, paqm_u64 most, int counts)
{
	paqm_s64 more = -PAQM_LEAN_TOLERANCE;

	if (rate < most)
		more -= paqm_min64(paqm_muldiv(most - rate, PAQM_LEAN_ONE, most), PAQM_LEAN_STEP);
	else if (counts && most)
		more += paqm_min64(paqm_muldiv(rate - most, PAQM_LEAN_ONE, most), PAQM_LEAN_STEP);
	more += sum;
	return more < 0 ? 0 : more > PAQM_LEAN_MOST ? PAQM_LEAN_MOST : (paqm_u32)more;
}

#endif /* PAQM_LEAN_H */
