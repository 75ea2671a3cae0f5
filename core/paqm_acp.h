/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Outer law ACP, Adaptive Congestion Protocol: one rate for every flow, found by an integral of
 * what the link has left, with the number of users estimated from the aggregate.
 *
 * Source: Lestas, Pitsillides, Ioannou, Hadjipollas, "Adaptive Congestion Protocol: a congestion
 * control protocol with learning capability", Computer Networks 51 (2007). Units are those of the
 * paper: bytes and bytes per second.
 */
#ifndef PAQM_ACP_H
#define PAQM_ACP_H

#include "paqm_law.h"

#define PAQM_ACP_KI_Q16 10401	 /* 0.1587 */
#define PAQM_ACP_KQ_Q16 20808	 /* 0.3175 */
#define PAQM_ACP_GAMMA_Q16 6554	 /* 0.1 */
#define PAQM_ACP_TARGET 99	 /* percent of the link: the rest drains the queue */
#define PAQM_ACP_CONGESTED 95	 /* percent of the link */
#define PAQM_ACP_USERS 10	 /* at first: too high is slow, too low is unstable */
#define PAQM_ACP_RATE_LEAST 1000 /* bytes/s: below it the aggregate says nothing of the users */
#define PAQM_ACP_EACH_MOST (1ULL << 31) /* bound of aggregate by rate */
#define PAQM_ACP_BYTES_MAX (1ULL << 32)
#define PAQM_ACP_RTT_LEAST_US 1000
#define PAQM_ACP_RTT_MOST_US 2000000
#define PAQM_ACP_SPARE 2 /* packets in service and just behind it are no queue */
#define PAQM_ACP_GROWTH_Q24 PAQM_Q24(110, 100) /* beyond the greatest demand */

/**
 * struct paqm_acp_vars - state of the law, and of QLBIC
 * @rate: p, bytes/s
 * @users_q16: N, effective number of users, Q16, at least 1; 0: the law has not begun
 * @demand: greatest demand of the period before, bytes/s
 */
struct paqm_acp_vars {
	paqm_u64 rate;
	paqm_u64 users_q16;
	paqm_u64 demand;
};

/* Does the link tell senders to grow slowly? Both in the same unit. */
static inline int paqm_acp_congested(paqm_u64 link, paqm_u64 rate)
{
	return rate > paqm_muldiv(link, PAQM_ACP_CONGESTED, 100);
}

/**
 * paqm_users_step() - estimate of the number of users
 * @users_q16: N, Q16
 * @rate: y, aggregate, bytes/s
 * @each: p, what each user was told, bytes/s
 * @gain_q16: weight of the newest sample
 *
 * A normalised gradient step on (y - N p)^2, projected on N >= 1. At rates of more than a packet
 * per second it is a weighted mean of y / p.
 *
 * Return: the next N.
 */
static inline paqm_u64 paqm_users_step(paqm_u64 users_q16, paqm_u64 rate, paqm_u64 each,
				       paqm_u32 gain_q16)
{
	paqm_u64 seen;
	paqm_s64 step;

	if (each < PAQM_ACP_RATE_LEAST)
		return users_q16;
	seen = paqm_min64(paqm_div64(rate << 16, each), PAQM_ACP_EACH_MOST << 16);
	step = ((paqm_s64)gain_q16 * (paqm_s64)(seen - users_q16)) >> 16;
	return paqm_max64(PAQM_Q16_ONE, (paqm_u64)((paqm_s64)users_q16 + step));
}

/**
 * paqm_acp_step() - one control period
 * @v: state; @users_q16 is not 0
 * @link: C, bytes/s
 * @rate: y, bytes/s
 * @queue: q, bytes
 * @rtt_us: d
 * @most: bound of p: C, or what demands leave of it, bytes/s
 *
 * p' = P[0, most]{ p + (k_i (0.99 C - y) - k_q q / d) / N }. Queues are at most 2^32 bytes, round
 * trips 1 ms to 2 s, rates those of PAQM_BPS_MAX.
 */
static inline void paqm_acp_step(struct paqm_acp_vars *v, paqm_u64 link, paqm_u64 rate,
				 paqm_u64 queue, paqm_u32 rtt_us, paqm_u64 most)
{
	paqm_u64 drain = paqm_div64(paqm_min64(queue, PAQM_ACP_BYTES_MAX) * 1000000, rtt_us);
	paqm_s64 left = (paqm_s64)paqm_div64(PAQM_ACP_TARGET * link, 100) - (paqm_s64)rate;
	paqm_s64 step = PAQM_ACP_KI_Q16 * left - (paqm_s64)(PAQM_ACP_KQ_Q16 * drain);
	paqm_s64 next = (paqm_s64)v->rate + paqm_sdiv64(step, v->users_q16);

	v->users_q16 = paqm_users_step(v->users_q16, rate, v->rate, PAQM_ACP_GAMMA_Q16);
	v->rate = next > 0 ? paqm_min64((paqm_u64)next, most) : 0;
}

/**
 * paqm_acp_most() - bound of the rate by what senders can use
 * @v: state
 * @link: C, bytes/s
 * @demand: greatest demand of this period, bytes/s; 0: none is known
 *
 * Senders of layers whose next layer does not fit leave the link unused. Without this bound p
 * would wind up to C meanwhile, and all would take a layer at once.
 *
 * Return: bytes/s.
 */
static inline paqm_u64 paqm_acp_most(struct paqm_acp_vars *v, paqm_u64 link, paqm_u64 demand)
{
	paqm_u64 most = paqm_max64(v->demand, demand);

	v->demand = demand;
	return most ? paqm_min64(link, paqm_mul_q24(most, PAQM_ACP_GROWTH_Q24)) : link;
}

/* Begins with nothing for anybody, as if there were ten users. */
static inline void paqm_acp_init(struct paqm_acp_vars *v)
{
	*v = (struct paqm_acp_vars){.users_q16 = PAQM_ACP_USERS * PAQM_Q16_ONE};
}

/* A rate in bytes/s of one in bit/s. */
static inline paqm_u64 paqm_acp_bytes(paqm_u64 bps)
{
	return paqm_min64(bps, PAQM_BPS_MAX) / 8;
}

/* Round trip that the laws reckon with. */
static inline paqm_u32 paqm_acp_rtt(const struct paqm_outer_in *in)
{
	return (paqm_u32)paqm_clamp64(in->rtt_us, PAQM_ACP_RTT_LEAST_US, PAQM_ACP_RTT_MOST_US);
}

static inline paqm_u64 paqm_acp_rate(struct paqm_acp_vars *v, const struct paqm_outer_params *p,
				     const struct paqm_outer_in *in, int whole)
{
	paqm_u64 link = paqm_acp_bytes(in->link), spare = PAQM_ACP_SPARE * (paqm_u64)in->packet;

	if (!v->users_q16)
		paqm_acp_init(v);
	else if (whole)
		paqm_acp_step(v, link, paqm_acp_bytes(in->rate),
			      in->queued > spare ? in->queued - spare : 0, paqm_acp_rtt(in),
			      paqm_acp_most(v, link, paqm_acp_bytes(in->demand)));
	return paqm_max64(8 * v->rate, p->rate_min);
}

#endif /* PAQM_ACP_H */
