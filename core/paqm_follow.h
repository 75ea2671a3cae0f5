/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * How a sender follows rates that a law such as ACP searches for: smoothly, within a round trip,
 * and slowly upwards where the link is nearly full.
 *
 * Source: the windows of ACP (core/paqm_acp.h) make up for (1 - 1/e) of a difference in a round
 * trip, and for a tenth of it per round trip towards a congested link; this is the same for a
 * sender that paces a rate and hears of it from time to time.
 */
#ifndef PAQM_FOLLOW_H
#define PAQM_FOLLOW_H

#include "paqm_fix.h"

#define PAQM_LN2_Q32 2977044472ULL
#define PAQM_FOLLOW_SLOW 10 /* increases towards a congested link take so many times as long */
#define PAQM_EXP_TERMS 12   /* of e^-x for x < ln 2: the rest is below 2^-32 */

/* 1 - e^-x in Q32, for x in Q32. */
static inline paqm_u64 paqm_reached_q32(paqm_u64 x_q32)
{
	paqm_u64 halves = paqm_div64(x_q32, PAQM_LN2_Q32), rest = x_q32 - halves * PAQM_LN2_Q32;
	paqm_u64 sum = 1ULL << 32, term = 1ULL << 32;
	paqm_u32 n;

	if (halves >= 32)
		return (1ULL << 32) - 1;
	for (n = 1; n <= PAQM_EXP_TERMS; n++) {
		term = paqm_muldiv(term, rest, (paqm_u64)n << 32);
		sum += n & 1 ? -term : term;
	}
	return (1ULL << 32) - (sum >> halves);
}

/**
 * paqm_follow() - a sender's rate after it has heard of a rate
 * @rate: in force
 * @told: the rate that came back, in the same unit
 * @since_us: since the last one
 * @rtt_us: round trip, smoothed
 * @congested: a router of the way said that its link is nearly full
 *
 * Return: the next rate.
 */
static inline paqm_u64 paqm_follow(paqm_u64 rate, paqm_u64 told, paqm_u64 since_us, paqm_u64 rtt_us,
				   int congested)
{
	paqm_u64 trip = rtt_us * (congested && told > rate ? PAQM_FOLLOW_SLOW : 1);
	paqm_u64 part =
		paqm_reached_q32(paqm_min64(paqm_muldiv(since_us, 1ULL << 32, trip), 32ULL << 32));

	if (told >= rate)
		return rate + paqm_muldiv(told - rate, part, 1ULL << 32);
	return rate - paqm_muldiv(rate - told, part, 1ULL << 32);
}

#endif /* PAQM_FOLLOW_H */
