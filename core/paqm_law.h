/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The P-AQM control laws: inner loop (drop probability per queue), and what the published outer
 * laws share. These are in paqm_ecf.h and paqm_erf.h, the default one in paqm_maxmin.h, the list
 * of all in paqm_laws.h.
 *
 * Source: A. Lie, "Enhancing Rate Adaptive IP Streaming Media Performance with the use of Active
 * Queue Management", NTNU 2008:74, Paper D (inner law), Paper F and App. C (outer laws). State,
 * parameters and results are separate structs; nothing here reads a clock, a packet or a random
 * number.
 */
#ifndef PAQM_LAW_H
#define PAQM_LAW_H

#include "paqm_f32.h"

/*
 * Rates above this are clamped. The outer laws count in Q20 of a bit/s: there the largest sum,
 * of five rates (the rate itself, twice what is missing, twice the queue), is 2^62.
 */
#define PAQM_BPS_MAX 800000000000ULL
#define PAQM_BPS_Q 20

/**
 * struct paqm_inner_params - one queue's inner loop
 * @cap_q24: capacity of the queue in bytes per period dT, Q24
 * @target: equilibrium backlog N*, bytes
 * @gain_q24: K, dimensionless with rates in bytes per dT; 0 < K < 2
 * @gamma_q24: weight of the newest sample in the arrival rate, 0..1
 */
struct paqm_inner_params {
	paqm_u64 cap_q24;
	paqm_u32 target;
	paqm_u32 gain_q24;
	paqm_u32 gamma_q24;
};

/**
 * struct paqm_inner_vars - state of an inner loop
 * @rate_q24: low-passed arrival rate, bytes per dT, Q24
 * @prob: probability of acting on an arrival, Q32; 0 never, PAQM_U32_MAX always
 */
struct paqm_inner_vars {
	paqm_u64 rate_q24;
	paqm_u32 prob;
};

/* r(k) = gamma * N_arr(k) + (1 - gamma) * r(k-1); @arrived in bytes, below 2^39. */
static inline paqm_u64 paqm_inner_filter(paqm_u64 rate_q24, paqm_u64 arrived, paqm_u32 gamma_q24)
{
	paqm_u64 sample = paqm_min64(arrived, (1ULL << 39) - 1) << 24;

	if (sample >= rate_q24)
		return rate_q24 + paqm_mul_q24(sample - rate_q24, gamma_q24);
	return rate_q24 - paqm_mul_q24(rate_q24 - sample, gamma_q24);
}

/**
 * paqm_inner_prob() - probability of acting on an arrival (Paper D)
 * @p: parameters
 * @rate_q24: arrival rate, bytes per dT, Q24
 * @backlog: bytes queued now
 *
 * u = (c + K (N* - N)) / r where r >= c, c / r below; survival is u clamped to
 * [0, 1]. Below capacity nothing is dropped, whatever the backlog.
 *
 * Return: 1 - u in Q32, saturated.
 */
static inline paqm_u32 paqm_inner_prob(const struct paqm_inner_params *p, paqm_u64 rate_q24,
				       paqm_u32 backlog)
{
	paqm_u64 num = p->cap_q24, survive, k;
	int shift;

	if (rate_q24 < p->cap_q24 || !rate_q24)
		return 0;
	if (backlog <= p->target) {
		num += (paqm_u64)p->gain_q24 * (p->target - backlog);
	} else {
		k = (paqm_u64)p->gain_q24 * (backlog - p->target);
		if (k >= num)
			return PAQM_U32_MAX;
		num -= k;
	}
	if (num >= rate_q24)
		return 0;
	shift = paqm_fls64(rate_q24) - 32;
	if (shift > 0) {
		num >>= shift;
		rate_q24 >>= shift;
	}
	survive = paqm_div64(num << 32, rate_q24);
	if (!survive)
		return PAQM_U32_MAX;
	return (paqm_u32)((1ULL << 32) - survive);
}

/* One period of the inner loop. */
static inline void paqm_inner_step(struct paqm_inner_vars *v, const struct paqm_inner_params *p,
				   paqm_u64 arrived, paqm_u32 backlog)
{
	v->rate_q24 = paqm_inner_filter(v->rate_q24, arrived, p->gamma_q24);
	v->prob = paqm_inner_prob(p, v->rate_q24, backlog);
}

/**
 * struct paqm_outer_params - gains and limits of the outer laws
 * @alpha_q24: gain of the rate term
 * @beta_q24: gain of the queue term
 * @md_min_q24: floor of a multiplicative decrease
 * @rate_min: floor of an ERF rate, bit/s
 * @forced_md: send 0.96 after five decreases above 0.96 (Paper D)
 * @ai_hold: no increase while the queue is above its target
 * @ai_q24: part of an increase that is told, 1 (Paper F) or less (0.5 in Paper D)
 * @counted: ERF may start with the counted flows; 0: as published
 * @fastest: rate of the fastest flow, bit/s: ERF may use it and the counted flows;
 *	0: as published
 */
struct paqm_outer_params {
	paqm_u32 alpha_q24;
	paqm_u32 beta_q24;
	paqm_u32 md_min_q24;
	paqm_u64 rate_min;
	paqm_u8 forced_md;
	paqm_u8 ai_hold;
	paqm_u8 counted;
	paqm_u32 ai_q24;
	paqm_u64 fastest;
};

/**
 * struct paqm_outer_in - what the outer loop measured in one period
 * @cap: wanted aggregate, rho * c_u, bit/s
 * @rate: measured aggregate arrival rate, bit/s
 * @backlog: queue at the end of the period, bytes
 * @target: N_out, bytes
 * @period_us: d, us
 * @flows: active flows n_u
 * @packet: mean length of a packet, bytes
 * @rtt_us: round trip between router and senders, us
 * @link: the media share of the link, c_u, bit/s
 * @queued: mean queue over the period, bytes
 * @demand: largest rate that a sender asked for in the period, bit/s; 0: not known
 */
struct paqm_outer_in {
	paqm_u64 cap;
	paqm_u64 rate;
	paqm_u32 backlog;
	paqm_u32 target;
	paqm_u32 period_us;
	paqm_u32 flows;
	paqm_u32 packet;
	paqm_u32 rtt_us;
	paqm_u64 link;
	paqm_u64 queued;
	paqm_u64 demand;
};

/**
 * struct paqm_each - what a flow makes of its rate in a period, by laws that know no rate for all
 * @keep_q24: part of its rate that it keeps, Q24; 0 and no @add: the law has said nothing yet
 * @grade: the same in two bits, enum paqm_vcp_load, for senders that know what follows; 0: no bits
 * @add: and what it adds, bit/s
 */
struct paqm_each {
	paqm_u32 keep_q24;
	paqm_u8 grade;
	paqm_u64 add;
};

/* Whether the law has said anything yet. */
static inline int paqm_each_says(const struct paqm_each *each)
{
	return each->keep_q24 || each->add;
}

/* The rate after such a change. */
static inline paqm_u64 paqm_each_rate(const struct paqm_each *each, paqm_u64 rate)
{
	return paqm_mul_q24(paqm_min64(rate, PAQM_BPS_MAX), each->keep_q24) + each->add;
}

/* alpha * (cap - rate) + beta * dq / d, added to *pos or *neg; all bit/s in Q20. */
static inline void paqm_outer_terms(const struct paqm_outer_params *p,
				    const struct paqm_outer_in *in, paqm_u64 *pos, paqm_u64 *neg)
{
	paqm_u64 cap = paqm_min64(in->cap, PAQM_BPS_MAX);
	paqm_u64 rate = paqm_min64(in->rate, PAQM_BPS_MAX);
	paqm_u64 queue, err;

	if (cap >= rate)
		*pos += paqm_mul_q24((cap - rate) << PAQM_BPS_Q, p->alpha_q24);
	else
		*neg += paqm_mul_q24((rate - cap) << PAQM_BPS_Q, p->alpha_q24);
	err = in->target >= in->backlog ? in->target - in->backlog : in->backlog - in->target;
	queue = paqm_muldiv(p->beta_q24, err * (8000000ULL >> (24 - PAQM_BPS_Q)), in->period_us);
	queue = paqm_min64(queue, 2 * cap << PAQM_BPS_Q); /* at most twice the capacity */
	if (in->target >= in->backlog)
		*pos += queue;
	else
		*neg += queue;
}

#endif /* PAQM_LAW_H */
