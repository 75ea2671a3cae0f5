/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Test vectors of RL-QoS, for two runners: core/tests/test_rlqos.c and kernel/kunit/rlqos.c, which
 * define PAQM_NEAR(). Numbers: the formulas of docs/rlqos.md, worked out by hand.
 */
#ifndef PAQM_RLQOS_VECTORS_H
#define PAQM_RLQOS_VECTORS_H

#include "../paqm_rlqos.h"

#ifndef PAQM_SAME
#define PAQM_SAME(what, got, want) PAQM_NEAR(what, got, want, 0)
#endif

#define PAQM_RL_MS 1000000ULL
/* Not constants: PAQM_Q24() would divide 64 bits, which the kernel cannot on 32 bit. */
#define PAQM_RL_Q24(num, den) paqm_div64(((paqm_u64)(num) << 24) + (den) / 2, den)
#define PAQM_RL_PART(num, den) paqm_div64(((paqm_u64)(num) << 32) + (den) / 2, den)

/* A router of 200 packets: 1 ms, 5 ms, 0.3, 350, a quarter of what is downstream, 0.02. */
static inline struct paqm_rlqos_params paqm_vec_rlqos(paqm_u32 k1)
{
	return (struct paqm_rlqos_params){.interval = PAQM_RL_MS,
					  .samples = 5,
					  .weight_q24 = PAQM_Q24(3, 10),
					  .k1 = k1,
					  .share_q16 = PAQM_Q16_ONE / 4,
					  .k3_q16 = PAQM_Q16_ONE / 50};
}

static inline void paqm_check_rlqos_probability(void)
{
	static const struct {
		paqm_u32 load_x1000, part_x1e9;
	} t[] = {
		/* 1 - exp(-x) */
		{0, 0},
		{1, 999500},
		{20, 19801327},
		{430, 349490892},
		{693, 499926396},
		{1000, 632120559},
		{2500, 917915001},
		{8000, 999664537},
		{16000, 999999887},
	};
	unsigned int i;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++)
		PAQM_NEAR("1 - exp(-load)",
			  paqm_rlqos_probability((paqm_u32)PAQM_RL_Q24(t[i].load_x1000, 1000)),
			  PAQM_RL_PART(t[i].part_x1e9, 1000000000ULL), 300);
	PAQM_NEAR("the most", paqm_rlqos_probability(PAQM_RLQOS_LOAD_MAX), PAQM_U32_MAX, 500);
}

/* Ten packets come at once and stay. */
static inline void paqm_check_rlqos_means(void)
{
	static const paqm_u64 mean_x1e5[] = {300000, 510000, 657000, 759900, 831930};
	static const paqm_u64 growth_x1e5[] = {300000, 210000, 147000, 102900, 72030};
	struct paqm_rlqos_params p = paqm_vec_rlqos(8);
	struct paqm_rlqos v;
	unsigned int i;

	paqm_rlqos_start(&v, &p, 100);
	for (i = 0; i < 5; i++) {
		paqm_rlqos_advance(&v, &p, 100 + (i + 1) * PAQM_RL_MS - 1, 10);
		PAQM_SAME("samples before they are due", v.taken, i);
		paqm_rlqos_advance(&v, &p, 100 + (i + 1) * PAQM_RL_MS, 10);
		PAQM_NEAR("mean", v.mean, PAQM_RL_Q24(mean_x1e5[i], 100000), 300);
		PAQM_NEAR("growth", v.growth, PAQM_RL_Q24(growth_x1e5[i], 100000), 300);
	}
	PAQM_SAME("a period is over", v.taken, 0);
	/* (8.3193 + 0.7203) / 8 = 1.12995; 1 - exp(-1.12995) = 0.676951 */
	PAQM_NEAR("load", v.load, PAQM_RL_Q24(112995, 100000), 300);
	PAQM_NEAR("probability", v.probability, PAQM_RL_PART(676951, 1000000), 10000);
	paqm_rlqos_advance(&v, &p, 100 + 10 * PAQM_RL_MS, 0);
	/* mean 8.3193 x 0.7^5 = 1.39823; growth (0.7203 x 0.7 - 3) x 0.7^4 = -0.599239 */
	PAQM_NEAR("it has emptied", v.load, PAQM_RL_Q24(99874, 1000000), 300);
}

/* Many samples at once are the same as one after the other. */
static inline void paqm_check_rlqos_catches_up(void)
{
	struct paqm_rlqos_params p = paqm_vec_rlqos(350);
	struct paqm_rlqos one, all;
	unsigned int i, n;

	for (n = 1; n < 200; n++) {
		paqm_rlqos_start(&one, &p, 0);
		paqm_rlqos_advance(&one, &p, 3 * PAQM_RL_MS, 150);
		all = one;
		for (i = 4; i < 4 + n; i++)
			paqm_rlqos_advance(&one, &p, i * PAQM_RL_MS + 7, 40);
		paqm_rlqos_advance(&all, &p, (3 + n) * PAQM_RL_MS + 7, 40);
		PAQM_SAME("next sample", all.next, one.next);
		/* 0.7^69 of 150 packets are 2^-28 of one */
		PAQM_NEAR("mean", all.mean, one.mean, 8);
		PAQM_NEAR("growth", all.growth + PAQM_Q24_ONE, one.growth + PAQM_Q24_ONE, 8);
		if (all.taken == one.taken)
			PAQM_NEAR("probability", all.probability, one.probability, 100);
	}
	paqm_rlqos_start(&all, &p, 0);
	paqm_rlqos_advance(&all, &p, 1ULL << 62, PAQM_U32_MAX);
	PAQM_SAME("the longest queue after the longest time", all.mean,
		  PAQM_RLQOS_LEN_MAX * PAQM_RL_Q24(1, 1));
	PAQM_SAME("the most", all.load, PAQM_RLQOS_LOAD_MAX);
	p.k1 = 10000;
	paqm_rlqos_advance(&all, &p, (1ULL << 62) + 5 * PAQM_RL_MS, PAQM_U32_MAX);
	PAQM_NEAR("of a longer limit", all.load, PAQM_RL_Q24(PAQM_RLQOS_LEN_MAX, 10000), 1);
}

/* What is downstream counts for a quarter, as long as it is said again. */
static inline void paqm_check_rlqos_downstream(void)
{
	struct paqm_rlqos_params p = paqm_vec_rlqos(350);
	struct paqm_rlqos v;

	paqm_rlqos_start(&v, &p, 0);
	paqm_rlqos_advance(&v, &p, 4 * PAQM_RL_MS, 0);
	paqm_rlqos_hear(&v, &p, 4 * PAQM_RL_MS, (paqm_u32)PAQM_RL_Q24(4, 10));
	PAQM_SAME("not before the period ends", v.probability, 0);
	paqm_rlqos_advance(&v, &p, 5 * PAQM_RL_MS, 0);
	PAQM_SAME("its own load", v.load, 0);
	/* 1 - exp(-0.1) = 0.0951626 */
	PAQM_NEAR("thins for others", v.probability, PAQM_RL_PART(951626, 10000000), 500);
	paqm_rlqos_advance(&v, &p, 25 * PAQM_RL_MS, 0);
	PAQM_SAME("four periods of silence", v.probability > 0, 1);
	paqm_rlqos_advance(&v, &p, 30 * PAQM_RL_MS, 0);
	PAQM_SAME("five", v.probability, 0);
	paqm_rlqos_hear(&v, &p, 30 * PAQM_RL_MS, PAQM_U32_MAX);
	PAQM_SAME("nobody says more than the most", v.down, PAQM_RLQOS_LOAD_MAX);
	/* 1 - exp(-0.08 / 4) = 0.0198 is not more than k3, with 0.084 it is 0.0208 */
	paqm_rlqos_hear(&v, &p, 30 * PAQM_RL_MS, (paqm_u32)PAQM_RL_Q24(80, 1000));
	paqm_rlqos_advance(&v, &p, 35 * PAQM_RL_MS, 0);
	PAQM_SAME("k3", v.probability, 0);
	paqm_rlqos_hear(&v, &p, 35 * PAQM_RL_MS, (paqm_u32)PAQM_RL_Q24(84, 1000));
	paqm_rlqos_advance(&v, &p, 40 * PAQM_RL_MS, 0);
	PAQM_NEAR("more than k3", v.probability, PAQM_RL_PART(2078, 100000), 100000);
	p.share_q16 = 0;
	paqm_rlqos_hear(&v, &p, 40 * PAQM_RL_MS, PAQM_RLQOS_LOAD_MAX);
	paqm_rlqos_advance(&v, &p, 45 * PAQM_RL_MS, 0);
	PAQM_SAME("a node that does not listen", v.probability, 0);
}

/* No frame loses two, and as many are dropped as should be. */
static inline void paqm_check_rlqos_frames(void)
{
	static struct paqm_rlqos_frames f;
	struct paqm_rlqos v = {.probability = 1U << 30}; /* a quarter */
	paqm_u32 frame, part, state = 1, dropped = 0, lost;
	int hurt;

	for (frame = 1; frame <= 20000; frame++) {
		paqm_u64 key = frame * 0x9E3779B97F4A7C15ULL;

		for (part = 0, lost = 0; part < 2; part++) {
			state = state * 1664525 + 1013904223;
			hurt = paqm_rlqos_hurt(&f, key);
			PAQM_SAME("a frame that has lost one is known", hurt, lost);
			if (paqm_rlqos_thins(&v, state, hurt)) {
				paqm_rlqos_hurts(&f, key);
				lost++;
			}
		}
		PAQM_SAME("packets of a frame lost", lost > 1, 0);
		dropped += lost;
	}
	PAQM_NEAR("a quarter of 40000", dropped, 10000, 200);
	v.probability = 3U << 30;
	for (frame = 0; frame < 100; frame++)
		paqm_rlqos_thins(&v, 0, 1);
	PAQM_SAME("what is owed is bounded", v.owed, PAQM_RLQOS_OWED_MAX);
	v.probability = 0;
	PAQM_SAME("and forgotten", paqm_rlqos_thins(&v, 0, 0) + v.owed, 0);
	PAQM_SAME("no frame", paqm_rlqos_hurt(&f, 0), 0);
	for (frame = 0; frame <= PAQM_RLQOS_FRAME_WAYS; frame++)
		paqm_rlqos_hurts(&f, (5ULL << 40) + 2 * frame + 2);
	PAQM_SAME("the oldest of a set makes room", paqm_rlqos_hurt(&f, (5ULL << 40) + 2), 0);
	PAQM_SAME("not the second", paqm_rlqos_hurt(&f, (5ULL << 40) + 4), 1);
}

/* TC1 goes first within a tenth of all bytes, and last beyond. */
static inline void paqm_check_rlqos_turns(void)
{
	static const struct {
		paqm_u32 waits[PAQM_RLQOS_CLASSES];
		paqm_s64 credit;
		enum paqm_rlqos_class who;
	} t[] = {
		{{1, 1, 1}, 0, PAQM_RLQOS_TC1},	    {{1, 1, 1}, -1, PAQM_RLQOS_TC2},
		{{1, 0, 1}, -1, PAQM_RLQOS_TC3},    {{1, 0, 0}, -1, PAQM_RLQOS_TC1},
		{{0, 1, 1}, 9, PAQM_RLQOS_TC2},	    {{0, 0, 1}, 9, PAQM_RLQOS_TC3},
		{{0, 0, 0}, 9, PAQM_RLQOS_CLASSES},
	};
	static const paqm_u32 all[] = {1, 1, 1};
	const paqm_s64 most = (paqm_s64)PAQM_RLQOS_BURST << 16;
	paqm_u32 i, first = 0, share = PAQM_Q16_ONE / 10;
	enum paqm_rlqos_class who;
	paqm_s64 credit = 0;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++)
		PAQM_SAME("whose turn", paqm_rlqos_next(t[i].credit, t[i].waits), t[i].who);
	for (i = 0; i < 10000; i++) {
		who = paqm_rlqos_next(credit, all);
		credit = paqm_rlqos_credit(credit, who, 1500, share);
		first += who == PAQM_RLQOS_TC1;
	}
	PAQM_NEAR("its part of 10000", first, 1000, 11);
	for (i = 0; i < 200; i++)
		credit = paqm_rlqos_credit(credit, PAQM_RLQOS_TC1, 1500, share);
	PAQM_SAME("never further behind", credit, -most);
	for (i = 0; i < 2000; i++)
		credit = paqm_rlqos_credit(credit, PAQM_RLQOS_TC2, 1500, share);
	PAQM_SAME("nor ahead", credit, most);
}

#endif /* PAQM_RLQOS_VECTORS_H */
