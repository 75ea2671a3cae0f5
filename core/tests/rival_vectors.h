/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Test vectors of the rival outer laws and of how senders follow them. As law_vectors.h, which
 * includes this.
 *
 * ACP, QLBIC and the sender: worked out in floating point from the published equations; those of
 * ACP that have a second value are exact in fixed point. RCP, XCP and VCP: by hand from their
 * formulas.
 */
#ifndef PAQM_RIVAL_VECTORS_H
#define PAQM_RIVAL_VECTORS_H

#include "../paqm_acp.h"
#include "../paqm_follow.h"
#include "../paqm_qlbic.h"
#include "../paqm_rcp.h"
#include "../paqm_vcp.h"
#include "../paqm_xcp.h"

#define PAQM_VEC_LINK 19375000ULL /* bytes/s, 155 Mbit/s */
#define PAQM_VEC_SMALL 1250000ULL
#define PAQM_TOL_RATE 20   /* bytes/s */
#define PAQM_TOL_USERS 328 /* 0.005 in Q16 */

/* Q16 of a number of users that is given in 1/100000. */
#define PAQM_USERS(e5) paqm_div64((paqm_u64)(e5)*PAQM_Q16_ONE, 100000)

struct paqm_vec_acp {
	paqm_u64 link, rate;
	paqm_u32 users_e5;
	paqm_u64 seen, queue;
	paqm_u32 rtt_us;
	paqm_u64 next;
	paqm_u32 next_users_e5;
	paqm_u64 exact, exact_q16; /* 0: not known */
};

static const struct paqm_vec_acp paqm_vec_acp[] = {
	{PAQM_VEC_LINK, 0, 1000000, 0, 0, 80000, 304406, 1000000, 304419, 655360},
	{PAQM_VEC_LINK, 387500, 5000000, 19181250, 0, 80000, 387500, 4995000, 387500, 3273523},
	{PAQM_VEC_LINK, 387500, 5000000, 19375000, 100000, 80000, 378948, 5000000, 378948, 3276800},
	{PAQM_VEC_LINK, 387500, 1000000, 19375000, 0, 80000, 384425, 1399997, 384426, 917520},
	{PAQM_VEC_LINK, 1000000, 3000000, 9687500, 0, 80000, 1050222, 2796875, 1050224, 1832951},
	{PAQM_VEC_LINK, 100000, 1000000, 19375000, 1000000, 80000, 0, 2837316, 0, 1859657},
	{PAQM_VEC_LINK, 19000000, 100000, 9687500, 0, 80000, 19375000, 100000, 0, 0},
	{PAQM_VEC_SMALL, 312500, 400000, 1300000, 20000, 40000, 270333, 401600, 270333, 263192},
	{125000, 60000, 250000, 118000, 3000, 100000, 56555, 244668, 0, 0},
};

static inline void paqm_check_acp(void)
{
	struct paqm_outer_params p = {.rate_min = 10000};
	struct paqm_outer_in in = {.link = 8 * PAQM_VEC_LINK, .rtt_us = 80000, .packet = 1000};
	struct paqm_acp_vars v;
	unsigned int i;

	for (i = 0; i < sizeof(paqm_vec_acp) / sizeof(paqm_vec_acp[0]); i++) {
		const struct paqm_vec_acp *t = &paqm_vec_acp[i];

		v = (struct paqm_acp_vars){t->rate, PAQM_USERS(t->users_e5), 0};
		paqm_acp_step(&v, t->link, t->seen, t->queue, t->rtt_us, t->link);
		PAQM_NEAR("ACP, rate", v.rate, t->next, PAQM_TOL_RATE);
		PAQM_NEAR("ACP, users", v.users_q16, PAQM_USERS(t->next_users_e5), PAQM_TOL_USERS);
		if (!t->exact_q16)
			continue;
		PAQM_SAME("ACP, rate in fixed point", v.rate, t->exact);
		PAQM_SAME("ACP, users in fixed point", v.users_q16, t->exact_q16);
	}
	/* at less than 1000 bytes/s nothing is learnt; where nothing is sent all is offered */
	v = (struct paqm_acp_vars){500, 10 * PAQM_Q16_ONE, 0};
	paqm_acp_step(&v, PAQM_VEC_LINK, 0, 0, 80000, PAQM_VEC_LINK);
	PAQM_NEAR("ACP, idle, rate", v.rate, 304906, PAQM_TOL_RATE);
	PAQM_SAME("ACP, idle, users", v.users_q16, 10 * PAQM_Q16_ONE);
	for (i = 0; i < 200; i++)
		paqm_acp_step(&v, PAQM_VEC_LINK, 0, 0, 80000, PAQM_VEC_LINK);
	PAQM_SAME("ACP, long idle, rate", v.rate, PAQM_VEC_LINK);
	PAQM_SAME("ACP, long idle, users", v.users_q16, PAQM_Q16_ONE);
	/* the largest link, queue and rates neither overflow nor leave the bounds */
	v = (struct paqm_acp_vars){PAQM_BPS_MAX / 8, PAQM_Q16_ONE, 0};
	paqm_acp_step(&v, PAQM_BPS_MAX / 8, PAQM_BPS_MAX / 8, PAQM_ACP_BYTES_MAX, 1000,
		      PAQM_BPS_MAX / 8);
	PAQM_SAME("ACP, largest queue", v.rate, 0);
	v = (struct paqm_acp_vars){1000, PAQM_Q16_ONE, 0};
	paqm_acp_step(&v, PAQM_BPS_MAX / 8, PAQM_BPS_MAX / 8, 0, 1000, PAQM_BPS_MAX / 8);
	PAQM_NEAR("ACP, largest step of the users", v.users_q16, 655400000000ULL, 1U << 17);

	/* as the router asks: begins with the least, then as above less two packets of queue */
	v = (struct paqm_acp_vars){0, 0, 0};
	PAQM_SAME("ACP, at first", paqm_acp_rate(&v, &p, &in, 1), 10000);
	PAQM_SAME("ACP, first period", paqm_acp_rate(&v, &p, &in, 1), 8 * 304419);
	PAQM_SAME("ACP, no period", paqm_acp_rate(&v, &p, &in, 0), 8 * 304419);
	v = (struct paqm_acp_vars){387500, 50 * PAQM_Q16_ONE, 0};
	in.rate = 8 * 19375000;
	in.queued = 102000;
	PAQM_SAME("ACP, queue", paqm_acp_rate(&v, &p, &in, 1), 8 * 378948);
	/* 1.1 times the greatest demand of this period and the one before */
	v = (struct paqm_acp_vars){387500, 50 * PAQM_Q16_ONE, 0};
	in.rate = 0;
	in.queued = 0;
	in.demand = 8 * 350000;
	PAQM_NEAR("ACP, demand", paqm_acp_rate(&v, &p, &in, 1), 8 * 385000, 8);
	in.demand = 8 * 100000;
	PAQM_NEAR("ACP, demand before", paqm_acp_rate(&v, &p, &in, 1), 8 * 385000, 8);
	PAQM_NEAR("ACP, demand now", paqm_acp_rate(&v, &p, &in, 1), 8 * 110000, 8);
	PAQM_SAME("ACP, 95 % is not congested", paqm_acp_congested(1000000, 950000), 0);
	PAQM_SAME("ACP, more is", paqm_acp_congested(1000000, 950001), 1);
}

#define PAQM_VEC_WINDOW                                                                            \
	{                                                                                          \
		65536, 19661, 6554                                                                 \
	}
#define PAQM_VEC_PACED                                                                             \
	{                                                                                          \
		19661, 6554, 6554                                                                  \
	}

struct paqm_vec_qlbic {
	paqm_u64 link;
	paqm_u32 users_e5;
	paqm_u64 seen, rate, queue;
	paqm_u32 rtt_us;
	paqm_u64 ref;
	struct paqm_qlbic_gains gains;
	paqm_u64 want, next;
	paqm_u32 next_users_e5;
};

static const struct paqm_vec_qlbic paqm_vec_qlbic[] = {
	{PAQM_VEC_LINK, 5000000, PAQM_VEC_LINK, 387500, 100000, 80000, 100000, PAQM_VEC_WINDOW,
	 19375000, 387500, 5000000},
	{PAQM_VEC_LINK, 5000000, PAQM_VEC_LINK, 387500, 200000, 80000, 100000, PAQM_VEC_WINDOW,
	 18125000, 362500, 5000000},
	{PAQM_VEC_LINK, 5000000, PAQM_VEC_LINK, 387500, 0, 80000, 100000, PAQM_VEC_WINDOW, 20625000,
	 412500, 5000000},
	{PAQM_VEC_LINK, 1000000, PAQM_VEC_LINK, 387500, 100000, 80000, 100000, PAQM_VEC_WINDOW,
	 19375000, 1937500, 2199992},
	{PAQM_VEC_LINK, 5000000, 9687500, 387500, 0, 80000, 100000, PAQM_VEC_WINDOW, 20625000,
	 412500, 4750002},
	{PAQM_VEC_LINK, 5000000, PAQM_VEC_LINK, 387500, 2000000, 80000, 100000, PAQM_VEC_WINDOW, 0,
	 0, 5000000},
	{PAQM_VEC_LINK, 1000000, 0, 0, 0, 80000, 100000, PAQM_VEC_WINDOW, 20625000, 2062500,
	 1000000},
	{PAQM_VEC_LINK, 100000, 9687500, PAQM_VEC_LINK, 500, 80000, 100000, PAQM_VEC_WINDOW,
	 20618750, 19375000, 100000},
	{PAQM_VEC_SMALL, 400000, 1300000, 312500, 32000, 80000, 20000, PAQM_VEC_PACED, 1205000,
	 301250, 401600},
	{PAQM_VEC_SMALL, 800000, 1250000, 312500, 8000, 20000, 20000, PAQM_VEC_PACED, 1430000,
	 178750, 760000},
};

static inline void paqm_check_qlbic(void)
{
	struct paqm_outer_params p = {.rate_min = 10000};
	struct paqm_outer_in in = {.link = 8 * PAQM_VEC_SMALL,
				   .rate = 8 * 1300000,
				   .queued = 32000,
				   .rtt_us = 40000,
				   .packet = 1000};
	struct paqm_qlbic_vars law = {{312500, 4 * PAQM_Q16_ONE, 0}};
	struct paqm_acp_vars v;
	unsigned int i;

	for (i = 0; i < sizeof(paqm_vec_qlbic) / sizeof(paqm_vec_qlbic[0]); i++) {
		const struct paqm_vec_qlbic *t = &paqm_vec_qlbic[i];
		paqm_u64 want;

		v = (struct paqm_acp_vars){t->rate, PAQM_USERS(t->users_e5), 0};
		want = paqm_qlbic_step(&v, &t->gains, t->link, t->seen, t->queue, t->ref,
				       t->rtt_us);
		PAQM_NEAR("QLBIC, aggregate", want, t->want, PAQM_TOL_RATE);
		PAQM_NEAR("QLBIC, rate", v.rate, t->next, PAQM_TOL_RATE);
		PAQM_NEAR("QLBIC, users", v.users_q16, PAQM_USERS(t->next_users_e5),
			  PAQM_TOL_USERS);
	}
	PAQM_SAME("QLBIC, reference, 2 Mbit/s", paqm_qlbic_ref(250000, 1000), 10000);
	PAQM_SAME("QLBIC, reference, 10 Mbit/s", paqm_qlbic_ref(1250000, 1000), 25000);
	PAQM_SAME("QLBIC, reference, 155 Mbit/s", paqm_qlbic_ref(19375000, 1000), 100000);
	/* as the router asks: 20 ms of 10 Mbit/s are 25000 bytes */
	PAQM_NEAR("QLBIC, a period", paqm_qlbic_rate(&law, &p, &in, 1), 8 * 299375,
		  8 * PAQM_TOL_RATE);
	law = (struct paqm_qlbic_vars){{0, 0, 0}};
	PAQM_SAME("QLBIC, at first", paqm_qlbic_rate(&law, &p, &in, 1), 10000);
	PAQM_SAME("QLBIC, no period", paqm_qlbic_rate(&law, &p, &in, 0), 10000);
}

struct paqm_vec_rcp {
	paqm_u64 rate, link, seen, queue;
	paqm_u32 period_us, rtt_us;
	paqm_u64 next;
};

/* alpha 0.1, beta 1 */
static const struct paqm_vec_rcp paqm_vec_rcp[] = {
	{1000000, 10000000, 10000000, 0, 100000, 100000, 1000000},    /* full, no queue */
	{1000000, 10000000, 8000000, 0, 100000, 100000, 1020000},     /* a fifth is left */
	{1000000, 10000000, 12000000, 0, 100000, 100000, 980000},     /* a fifth too much */
	{1000000, 10000000, 10000000, 12500, 100000, 100000, 900000}, /* queue of 10 ms */
	{1000000, 10000000, 8000000, 12500, 100000, 100000, 920000},
	{1000000, 10000000, 8000000, 0, 50000, 100000, 1010000},  /* half a round trip */
	{1000000, 10000000, 8000000, 0, 400000, 100000, 1020000}, /* a long period */
	{1000000, 10000000, 10000000, 125000, 100000, 100000, 0}, /* queue of a round trip */
	{1000000, 10000000, 0, 500000, 100000, 100000, 0},
	{9900000, 10000000, 0, 0, 100000, 100000, 10000000}, /* the link is the bound */
	{PAQM_BPS_MAX, PAQM_BPS_MAX, 0, 0, 1, 1, PAQM_BPS_MAX},
	{PAQM_BPS_MAX, PAQM_BPS_MAX, PAQM_U64_MAX, PAQM_U64_MAX >> 20, 1, 1, 0},
};

static inline void paqm_check_rcp(void)
{
	struct paqm_outer_params p = {.rate_min = 10000};
	struct paqm_outer_in in = {
		.link = 10000000, .rate = 8000000, .period_us = 100000, .rtt_us = 100000};
	struct paqm_rcp_vars v = {0};
	unsigned int i;

	for (i = 0; i < sizeof(paqm_vec_rcp) / sizeof(paqm_vec_rcp[0]); i++) {
		const struct paqm_vec_rcp *t = &paqm_vec_rcp[i];

		PAQM_NEAR("RCP, rate",
			  paqm_rcp_step(t->rate << PAQM_BPS_Q, t->link, t->seen, t->queue,
					t->period_us, t->rtt_us) >>
				  PAQM_BPS_Q,
			  t->next, 1);
	}
	PAQM_SAME("RCP, at first a twentieth", paqm_rcp_rate(&v, &p, &in, 1), 500000);
	PAQM_NEAR("RCP, a period", paqm_rcp_rate(&v, &p, &in, 1), 510000, 1);
	PAQM_NEAR("RCP, no period", paqm_rcp_rate(&v, &p, &in, 0), 510000, 1);
	in.backlog = 1000000;
	PAQM_SAME("RCP, the least", paqm_rcp_rate(&v, &p, &in, 1), 10000);
	in.backlog = 0;
	PAQM_NEAR("RCP, and back", paqm_rcp_rate(&v, &p, &in, 1), 10200, 1);
}

struct paqm_vec_xcp {
	paqm_u64 link, rate, queue;
	paqm_u32 rtt_us, flows;
	paqm_u64 add;
	paqm_u32 lose_ppm;
};

/* alpha 0.4, beta 0.226; a tenth of the traffic moves, unless the sum changes by more */
static const struct paqm_vec_xcp paqm_vec_xcp[] = {
	{10000000, 10000000, 0, 100000, 4, 250000, 100000},	/* only shuffled */
	{10000000, 9000000, 0, 100000, 4, 225000, 55556},	/* 0.4 M more, 0.5 M moves */
	{10000000, 5000000, 0, 100000, 4, 500000, 0},		/* 2 M more: 0.5 M is less */
	{10000000, 12000000, 0, 100000, 4, 100000, 100000},	/* 0.8 M less, 0.4 M moves */
	{10000000, 20000000, 0, 100000, 4, 0, 200000},		/* 4 M less */
	{10000000, 10000000, 12500, 100000, 4, 193500, 100000}, /* 226 kbit/s drain */
	{10000000, 0, 0, 100000, 0, 4000000, 0},
	{10000000, 1000000, 5000000, 100000, 1, 0, 1000000}, /* nothing may be sent */
	{PAQM_BPS_MAX, PAQM_BPS_MAX, 0, 1, 1, PAQM_BPS_MAX / 10, 100000},
};

static inline void paqm_check_xcp(void)
{
	struct paqm_outer_params p = {.rate_min = 10000};
	struct paqm_outer_in in = {
		.link = 10000000, .rate = 9000000, .queued = 12500, .rtt_us = 100000, .flows = 4};
	struct paqm_xcp_vars v = {{0, 0, 0}};
	struct paqm_each each;
	unsigned int i;

	for (i = 0; i < sizeof(paqm_vec_xcp) / sizeof(paqm_vec_xcp[0]); i++) {
		const struct paqm_vec_xcp *t = &paqm_vec_xcp[i];

		each = paqm_xcp_step(t->link, t->rate, t->queue, t->rtt_us, t->flows);
		PAQM_NEAR("XCP, gain", each.add, t->add, paqm_div64(t->add, 1000000) + 2);
		PAQM_NEAR("XCP, loss",
			  paqm_muldiv(PAQM_Q24_ONE - each.keep_q24, 1000000, PAQM_Q24_ONE),
			  t->lose_ppm, 1);
	}
	/* as the router asks: what drained within the period is no queue */
	PAQM_SAME("XCP, equal part", paqm_xcp_rate(&v, &p, &in, 1), 2500000);
	each = paqm_xcp_each(&v);
	PAQM_NEAR("XCP, a small flow", paqm_each_rate(&each, 100000), 319444, 3);
	PAQM_NEAR("XCP, a large flow", paqm_each_rate(&each, 8000000), 7780556, 3);
	PAQM_NEAR("XCP, flows at their part stay equal", paqm_each_rate(&each, 2250000), 2350000,
		  3);
}

static inline void paqm_check_vcp(void)
{
	struct paqm_outer_params p = {.rate_min = 10000};
	struct paqm_outer_in in = {
		.link = 10000000, .rate = 7000000, .period_us = 200000, .packet = 1000, .flows = 4};
	struct paqm_vcp_vars v = {PAQM_VCP_NONE, {0, 0, 0}};
	struct paqm_each each;

	/* of 9.8 Mbit/s: 80 % are 7.84 */
	PAQM_SAME("VCP, low", paqm_vcp_load(10000000, 7839000, 0), PAQM_VCP_LOW);
	PAQM_SAME("VCP, high", paqm_vcp_load(10000000, 7840000, 0), PAQM_VCP_HIGH);
	PAQM_SAME("VCP, still high", paqm_vcp_load(10000000, 9799000, 0), PAQM_VCP_HIGH);
	PAQM_SAME("VCP, overload", paqm_vcp_load(10000000, 9800000, 0), PAQM_VCP_OVER);
	/* half of 25000 bytes in 200 ms is 0.5 Mbit/s */
	PAQM_SAME("VCP, queue", paqm_vcp_load(10000000, 7339000, 25000), PAQM_VCP_LOW);
	PAQM_SAME("VCP, with its queue high", paqm_vcp_load(10000000, 7340000, 25000),
		  PAQM_VCP_HIGH);
	PAQM_SAME("VCP, with its queue overloaded", paqm_vcp_load(10000000, 9300000, 25000),
		  PAQM_VCP_OVER);
	PAQM_SAME("VCP, largest", paqm_vcp_load(PAQM_BPS_MAX, PAQM_U64_MAX, PAQM_U64_MAX >> 20),
		  PAQM_VCP_OVER);

	PAQM_SAME("VCP, equal part", paqm_vcp_rate(&v, &p, &in, 1), 2500000);
	each = paqm_vcp_each(&v);
	PAQM_SAME("VCP, multiplies", paqm_each_rate(&each, 1600000), 1700000);
	in.rate = 9000000;
	paqm_vcp_rate(&v, &p, &in, 1);
	each = paqm_vcp_each(&v);
	PAQM_SAME("VCP, adds a packet", paqm_each_rate(&each, 1600000), 1640000);
	in.rate = 10000000;
	paqm_vcp_rate(&v, &p, &in, 1);
	each = paqm_vcp_each(&v);
	PAQM_SAME("VCP, cuts", paqm_each_rate(&each, 1600000), 1400000);
	each = paqm_vcp_answer(PAQM_VCP_LOW, 100000, 1000);
	PAQM_SAME("VCP, multiplies in half the time", paqm_each_rate(&each, 1600000), 1650000);
	each = paqm_vcp_answer(PAQM_VCP_HIGH, 100000, 1000);
	PAQM_SAME("VCP, adds in half the time", paqm_each_rate(&each, 1600000), 1620000);
	each = paqm_vcp_answer(PAQM_VCP_NONE, 100000, 1000);
	PAQM_SAME("VCP, stays", paqm_each_rate(&each, 1600000), 1600000);
}

struct paqm_vec_follow {
	paqm_u64 rate, told, since_us, rtt_us;
	int congested;
	paqm_u64 part_e6, next;
};

static const struct paqm_vec_follow paqm_vec_follow[] = {
	{100000, 300000, 50000, 80000, 0, 464739, 192948},
	{100000, 300000, 50000, 80000, 1, 60587, 112117},
	{300000, 100000, 50000, 80000, 1, 464739, 207052},
	{312500, 309375, 50000, 80000, 0, 464739, 311048},
	{0, 312500, 80000, 80000, 0, 632121, 197538},
	{100000, 300000, 400000, 80000, 0, 993262, 298652},
	{100000, 300000, 0, 80000, 0, 0, 100000},
	{100000, 300000, 100000000, 1000, 0, 1000000, 300000},
	{100000, 300000, 50000, 0, 0, 1000000, 300000}, /* no round trip is known: at once */
};

static inline void paqm_check_follow(void)
{
	unsigned int i;

	for (i = 0; i < sizeof(paqm_vec_follow) / sizeof(paqm_vec_follow[0]); i++) {
		const struct paqm_vec_follow *t = &paqm_vec_follow[i];
		paqm_u64 wide = 1000000;

		/* over a difference of 10^6 the part itself shows */
		if (t->told >= t->rate)
			PAQM_NEAR("follow, part",
				  paqm_follow(0, wide, t->since_us, t->rtt_us, t->congested),
				  t->part_e6, 1);
		PAQM_NEAR("follow, rate",
			  paqm_follow(t->rate, t->told, t->since_us, t->rtt_us, t->congested),
			  t->next, 1);
	}
}

#endif /* PAQM_RIVAL_VECTORS_H */
