/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Class-based thresholds, fixed (CBT: Parris, Jeffay and Smith, 1999) and dynamic (D-CBT: Chung,
 * WPI, 2000). UDP is held to a threshold of its class's average before RED sees it.
 */
#ifndef PAQM_CBT_H
#define PAQM_CBT_H

#include "paqm_red.h"

/* Tagged: UDP that its sender marks as multimedia; in D-CBT only that which is flow-controlled. */
enum paqm_cbt_class { PAQM_CBT_TCP, PAQM_CBT_TAGGED, PAQM_CBT_UNTAGGED, PAQM_CBT_CLASSES };

#define PAQM_CBT_NONE PAQM_U64_MAX /* no threshold */

/**
 * paqm_cbt_over() - is an arrival dropped by its class's threshold?
 * @avg: average of the class, updated
 * @threshold: packets Q24
 *
 * Return: true above it, not at it.
 */
static inline int paqm_cbt_over(paqm_u64 avg, paqm_u64 threshold)
{
	return avg > threshold;
}

/**
 * paqm_dcbt_average() - D-CBT: every arrival updates all averages, with the same weight
 * @red_avg: average of the queue
 * @avg: those of the classes
 * @len: packets that wait
 * @held: those of each class
 * @weight_q24: weight of the sample
 *
 * A class's part of the queue's average is then its part of the throughput, and the averages of
 * the classes add up to that of the queue.
 */
static inline void paqm_dcbt_average(paqm_u64 *red_avg, paqm_u64 *avg, paqm_u32 len,
				     const paqm_u32 *held, paqm_u32 weight_q24)
{
	int i;

	*red_avg = paqm_red_average(*red_avg, len, weight_q24);
	for (i = 0; i < PAQM_CBT_CLASSES; i++)
		avg[i] = paqm_red_average(avg[i], held[i], weight_q24);
}

/* Active flows of all classes. */
static inline paqm_u32 paqm_dcbt_flows(const paqm_u32 *flows)
{
	return flows[PAQM_CBT_TCP] + flows[PAQM_CBT_TAGGED] + flows[PAQM_CBT_UNTAGGED];
}

/**
 * paqm_dcbt_threshold() - D-CBT: the fair threshold of a class
 * @p: parameters of RED
 * @beta_q24: what untagged flows have beyond @p->min, as a part of the way to @p->max
 * @cap: untagged flows get no more than tagged ones, where the average is small
 * @class: of the arrival
 * @red_avg: average of the queue, packets Q24
 * @flows: active flows by class
 *
 * Tagged flows may use their share of the whole average, untagged ones only that of a queue which
 * is not congested.
 *
 * Return: packets Q24; PAQM_CBT_NONE for TCP.
 */
static inline paqm_u64 paqm_dcbt_threshold(const struct paqm_red_params *p, paqm_u32 beta_q24,
					   int cap, enum paqm_cbt_class class, paqm_u64 red_avg,
					   const paqm_u32 *flows)
{
	paqm_u32 all = paqm_dcbt_flows(flows);
	paqm_u64 base = red_avg;

	if (class == PAQM_CBT_TCP || !all)
		return PAQM_CBT_NONE;
	if (class == PAQM_CBT_UNTAGGED) {
		base = p->min + paqm_mul_q24(p->max - p->min, beta_q24);
		if (cap)
			base = paqm_min64(base, red_avg);
	}
	return paqm_muldiv(base, flows[class], all);
}

/* D-CBT: are thresholds in force? Only while RED sees congestion come. */
static inline int paqm_dcbt_gate(const struct paqm_red_params *p, paqm_u64 red_avg)
{
	return red_avg > p->min;
}

#endif /* PAQM_CBT_H */
