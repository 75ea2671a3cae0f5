/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Outer law QLBIC, Queue Length Based Internet Congestion control: one rate for every flow, which
 * holds the queue at a length; the number of users is estimated as by ACP.
 *
 * Source: Pitsillides, Lestas et al., "Queue Length Based Internet Congestion Control", IEEE ICNSC
 * 2007. Public are its kind, a proportional control of the queue divided by the estimate, and its
 * equilibrium, a full link and the queue at its reference; this is the law with both. Units are
 * bytes and bytes per second.
 */
#ifndef PAQM_QLBIC_H
#define PAQM_QLBIC_H

#include "paqm_acp.h"

#define PAQM_QLBIC_REF_US 20000 /* reference on small links, of the link, */
#define PAQM_QLBIC_REF_MOST 100 /* at most so many packets, */
#define PAQM_QLBIC_REF_LEAST 10 /* and at least */

/**
 * struct paqm_qlbic_gains - gains of the law, Q16
 * @queue: k_q
 * @up: weight of the newest sample of the users, where there are more than estimated
 * @down: and fewer
 */
struct paqm_qlbic_gains {
	paqm_u32 queue;
	paqm_u32 up;
	paqm_u32 down;
};

struct paqm_qlbic_vars {
	struct paqm_acp_vars users;
};

/* For senders that pace a rate: with more they oscillate. */
static inline struct paqm_qlbic_gains paqm_qlbic_paced(void)
{
	return (struct paqm_qlbic_gains){19661, 6554, 6554}; /* 0.3, 0.1, 0.1 */
}

/**
 * paqm_qlbic_step() - one control period
 * @v: state, as of ACP; @users_q16 is not 0
 * @g: gains
 * @link: C, bytes/s
 * @rate: y, bytes/s
 * @queue: q, bytes
 * @ref: wanted q, bytes
 * @rtt_us: d
 *
 * u = P[0, 1.5 C]{ C - k_q (q - q_ref) / d }, p' = min(C, u / N).
 *
 * Return: u.
 */
static inline paqm_u64 paqm_qlbic_step(struct paqm_acp_vars *v, const struct paqm_qlbic_gains *g,
				       paqm_u64 link, paqm_u64 rate, paqm_u64 queue, paqm_u64 ref,
				       paqm_u32 rtt_us)
{
	paqm_u64 off = queue > ref ? queue - ref : ref - queue, want, users = v->users_q16;
	int above = paqm_muldiv(users, v->rate, PAQM_Q16_ONE) > rate;

	off = paqm_div64(paqm_min64(off, PAQM_ACP_BYTES_MAX) * 1000000, rtt_us);
	off = paqm_div64(g->queue * off, PAQM_Q16_ONE);
	if (queue > ref)
		want = link > off ? link - off : 0;
	else
		want = paqm_min64(link + off, link + link / 2);
	v->users_q16 = paqm_users_step(users, rate, v->rate, above ? g->down : g->up);
	v->rate = paqm_min64(link, paqm_div64(want << 16, users));
	return want;
}

/* The queue that is wanted, bytes. */
static inline paqm_u64 paqm_qlbic_ref(paqm_u64 link, paqm_u32 packet)
{
	return paqm_clamp64(paqm_muldiv(link, PAQM_QLBIC_REF_US, 1000000),
			    PAQM_QLBIC_REF_LEAST * (paqm_u64)packet,
			    PAQM_QLBIC_REF_MOST * (paqm_u64)packet);
}

static inline paqm_u64 paqm_qlbic_rate(struct paqm_qlbic_vars *v, const struct paqm_outer_params *p,
				       const struct paqm_outer_in *in, int whole)
{
	const struct paqm_qlbic_gains gains = paqm_qlbic_paced();
	paqm_u64 link = paqm_acp_bytes(in->link);

	if (!v->users.users_q16)
		paqm_acp_init(&v->users);
	else if (whole)
		paqm_qlbic_step(&v->users, &gains, link, paqm_acp_bytes(in->rate), in->queued,
				paqm_qlbic_ref(link, in->packet), paqm_acp_rtt(in));
	return paqm_max64(8 * v->users.rate, p->rate_min);
}

#endif /* PAQM_QLBIC_H */
