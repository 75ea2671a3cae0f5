/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * RED: Floyd and Jacobson, IEEE/ACM Transactions on Networking 1(4), 1993; its gentle form, Floyd,
 * 2000; adaptive RED: Floyd, Gummadi and Shenker, 2001. Lengths are in packets, Q24, and at most
 * PAQM_RED_LEN_MAX; probabilities Q32. The queue is measured where packets arrive, the arrival not
 * counted, as ns-2 does.
 */
#ifndef PAQM_RED_H
#define PAQM_RED_H

#include "paqm_fix.h"

#define PAQM_RED_PACKET (1ULL << 24)  /* one packet */
#define PAQM_RED_CERTAIN (1ULL << 32) /* probability 1 */
#define PAQM_RED_LEN_MAX 16384	      /* so that length by weight fits into 63 bits */
#define PAQM_RED_BELOW (-1)	      /* count: not above the lower threshold */
#define PAQM_RED_COUNT_MAX 0x7FFFFFFE

/* Adaptive RED, sections 4 and 5: when max_p moves, and by how much. */
#define PAQM_RED_ADAPT_NS 500000000ULL
#define PAQM_RED_ADAPT_STEP PAQM_Q24(1, 100)
#define PAQM_RED_ADAPT_LEAST PAQM_Q24(1, 100)
#define PAQM_RED_ADAPT_MOST PAQM_Q24(1, 2)

enum paqm_red_verdict { PAQM_RED_PASS, PAQM_RED_EARLY, PAQM_RED_FORCED };

/**
 * struct paqm_red_params - what RED is told
 * @min: lower threshold of the average, packets Q24
 * @max: upper threshold, above @min
 * @weight_q24: w, weight of the newest sample, above 0
 * @max_p_q24: probability at @max; where @adaptive is set, the first one
 * @gentle: the probability goes on to 1 at twice @max instead of a jump there
 * @adaptive: max_p follows the average
 * @uniform: spacing of 1993; else that of ns-2, which waits 1/p packets after a drop
 */
struct paqm_red_params {
	paqm_u64 min;
	paqm_u64 max;
	paqm_u32 weight_q24;
	paqm_u32 max_p_q24;
	paqm_u8 gentle;
	paqm_u8 adaptive;
	paqm_u8 uniform;
};

/**
 * struct paqm_red_vars - state
 * @avg: average length, packets Q24
 * @adapted: when max_p was looked at last, ns
 * @max_p_q24: max_p in force
 * @count: packets tested since the last drop, or PAQM_RED_BELOW
 */
struct paqm_red_vars {
	paqm_u64 avg;
	paqm_u64 adapted;
	paqm_u32 max_p_q24;
	paqm_s32 count;
};

static inline void paqm_red_start(struct paqm_red_vars *v, const struct paqm_red_params *p,
				  paqm_u64 now)
{
	v->avg = 0;
	v->adapted = now;
	v->max_p_q24 = p->max_p_q24;
	v->count = PAQM_RED_BELOW;
}

/**
 * paqm_red_average() - the average after one more sample
 * @avg: average before, packets Q24
 * @len: sample, packets
 * @weight_q24: weight of the sample
 *
 * Return: avg + w (len - avg), rounded to nearest, so that nothing is left of an average that
 * decays.
 */
static inline paqm_u64 paqm_red_average(paqm_u64 avg, paqm_u32 len, paqm_u32 weight_q24)
{
	paqm_s64 gap = (paqm_s64)((paqm_u64)len << 24) - (paqm_s64)avg;

	return (paqm_u64)((paqm_s64)avg + ((gap * (paqm_s64)weight_q24 + (1 << 23)) >> 24));
}

/**
 * paqm_red_decay() - the average after an idle time
 * @avg: average before
 * @weight_q24: weight of a sample
 * @packets: how many packets could have left in that time
 *
 * Return: avg (1 - w)^packets.
 */
static inline paqm_u64 paqm_red_decay(paqm_u64 avg, paqm_u32 weight_q24, paqm_u64 packets)
{
	paqm_u64 keep = (paqm_u64)(PAQM_Q24_ONE - weight_q24) << 8, hi, lo; /* Q32, below 1 */

	for (; packets && avg; packets >>= 1) {
		if (packets & 1) {
			paqm_mul128(avg, keep, &hi, &lo);
			avg = hi << 32 | lo >> 32;
		}
		keep = keep * keep >> 32;
	}
	return avg;
}

/* Packets that could have left in @idle_ns if one takes @packet_ns; 0: not known, none. */
static inline paqm_u64 paqm_red_idle(paqm_u64 idle_ns, paqm_u64 packet_ns)
{
	return packet_ns ? paqm_div64(idle_ns, packet_ns) : 0;
}

/* Average at and above which every arrival costs a packet. */
static inline paqm_u64 paqm_red_ceiling(const struct paqm_red_params *p)
{
	return p->gentle ? 2 * p->max : p->max;
}

/* p_b, by the average alone. */
static inline paqm_u64 paqm_red_prob(const struct paqm_red_params *p, paqm_u32 max_p_q24,
				     paqm_u64 avg)
{
	paqm_u64 top = (paqm_u64)max_p_q24 << 8;

	if (avg < p->min)
		return 0;
	if (avg < p->max)
		return paqm_muldiv(top, avg - p->min, p->max - p->min);
	if (avg < paqm_red_ceiling(p))
		return top + paqm_muldiv(PAQM_RED_CERTAIN - top, avg - p->max, p->max);
	return PAQM_RED_CERTAIN;
}

/**
 * paqm_red_spread() - p_a: drops spread over the packets
 * @prob: p_b
 * @count: packets since the last drop, this one included
 * @uniform: p_b / (1 - count p_b); else 0 for the first 1/p_b packets, then
 *	p_b / (2 - count p_b)
 *
 * Return: Q32.
 */
static inline paqm_u64 paqm_red_spread(paqm_u64 prob, paqm_u32 count, int uniform)
{
	paqm_u64 sum = prob * count, most = uniform ? PAQM_RED_CERTAIN : 2 * PAQM_RED_CERTAIN;

	if (!uniform && sum < PAQM_RED_CERTAIN)
		return 0;
	if (sum >= most)
		return PAQM_RED_CERTAIN;
	return paqm_min64(paqm_muldiv(prob, PAQM_RED_CERTAIN, most - sum), PAQM_RED_CERTAIN);
}

/**
 * paqm_red_test() - what becomes of an arrival; the average has been updated
 * @v: state
 * @p: parameters
 * @len: packets that wait
 * @draw: random number of 32 bits
 *
 * A queue of one packet loses none, as in ns-2.
 *
 * Return: the verdict; who drops for another reason tells paqm_red_dropped().
 */
static inline enum paqm_red_verdict
paqm_red_test(struct paqm_red_vars *v, const struct paqm_red_params *p, paqm_u32 len, paqm_u32 draw)
{
	paqm_u64 prob;

	if (v->avg < p->min || len <= 1) {
		v->count = PAQM_RED_BELOW;
		return PAQM_RED_PASS;
	}
	if (v->avg >= paqm_red_ceiling(p)) {
		v->count = 0;
		return PAQM_RED_FORCED;
	}
	if (v->count == PAQM_RED_BELOW) {
		v->count = 1;
		return PAQM_RED_PASS;
	}
	if (v->count < PAQM_RED_COUNT_MAX)
		v->count++;
	prob = paqm_red_prob(p, v->max_p_q24, v->avg);
	if (draw >= paqm_red_spread(prob, (paqm_u32)v->count, p->uniform))
		return PAQM_RED_PASS;
	v->count = 0;
	return PAQM_RED_EARLY;
}

/* A packet was dropped by something else. */
static inline void paqm_red_dropped(struct paqm_red_vars *v)
{
	if (v->count > 0)
		v->count = 0;
}

/**
 * paqm_red_adapt() - move max_p, if that is due
 * @v: state
 * @p: parameters
 * @now: ns
 *
 * The average shall stay between 0.4 and 0.6 of the way from @p->min to @p->max.
 */
static inline void paqm_red_adapt(struct paqm_red_vars *v, const struct paqm_red_params *p,
				  paqm_u64 now)
{
	paqm_u64 way = p->max - p->min;

	if (!p->adaptive || now - v->adapted < PAQM_RED_ADAPT_NS)
		return;
	v->adapted = now;
	if (v->avg > p->min + paqm_muldiv(way, 3, 5)) {
		if (v->max_p_q24 <= PAQM_RED_ADAPT_MOST)
			v->max_p_q24 += (paqm_u32)paqm_min64(PAQM_RED_ADAPT_STEP, v->max_p_q24 / 4);
	} else if (v->avg < p->min + paqm_muldiv(way, 2, 5)) {
		if (v->max_p_q24 >= PAQM_RED_ADAPT_LEAST)
			v->max_p_q24 = v->max_p_q24 / 10 * 9;
	}
}

#endif /* PAQM_RED_H */
