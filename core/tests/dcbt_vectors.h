/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Test vectors of RED, FRED, CBT, D-CBT and ChIPS, for the same two runners as law_vectors.h:
 * core/tests/test_dcbt.c and kernel/kunit/dcbt.c, which define PAQM_NEAR().
 *
 * Numbers: the tables of Chung, WPI, 2000 (thresholds, counter, position, virtual queue), and the
 * formulas of the papers that core/ names, worked out by hand.
 */
#ifndef PAQM_DCBT_VECTORS_H
#define PAQM_DCBT_VECTORS_H

#include "../paqm_active.h"
#include "../paqm_chips.h"

#ifndef PAQM_SAME
#define PAQM_SAME(what, got, want) PAQM_NEAR(what, got, want, 0)
#endif

#define PAQM_MS 1000000ULL
/* Not constants: PAQM_Q24() would divide 64 bits, which the kernel cannot on 32 bit. */
#define PAQM_PACKETS(num, den) paqm_div64(((paqm_u64)(num) << 24) + (den) / 2, den)
#define PAQM_PART(num, den) paqm_div64(((paqm_u64)(num) << 32) + (den) / 2, den) /* probability */
#define PAQM_W PAQM_Q24(2, 1000)

/* The set of most experiments: 5, 15, 0.002, 0.1. */
static inline struct paqm_red_params paqm_vec_red(void)
{
	struct paqm_red_params p = {.min = 5 * PAQM_RED_PACKET,
				    .max = 15 * PAQM_RED_PACKET,
				    .weight_q24 = PAQM_W,
				    .max_p_q24 = PAQM_Q24(1, 10)};

	return p;
}

/* Numbers without a pattern, the same every time. */
static inline paqm_u32 paqm_vec_random(paqm_u32 *state)
{
	*state = *state * 1664525 + 1013904223;
	return *state >> 8;
}

static inline void paqm_check_red_average(void)
{
	paqm_u64 avg = PAQM_PACKETS(1, 5), slow = 0, gone;
	int i;

	PAQM_SAME("first sample", paqm_red_average(0, 10, PAQM_W), 10 * PAQM_W);
	PAQM_SAME("weight 1", paqm_red_average(12345, 10, PAQM_Q24_ONE), 10 * PAQM_RED_PACKET);
	PAQM_SAME("longest queue", paqm_red_average(0, PAQM_RED_LEN_MAX, PAQM_Q24_ONE),
		  PAQM_RED_LEN_MAX * PAQM_RED_PACKET);
	PAQM_SAME("longest queue leaves",
		  paqm_red_average(PAQM_RED_LEN_MAX * PAQM_RED_PACKET, 0, PAQM_Q24_ONE), 0);
	gone = paqm_red_decay(avg, PAQM_W, 2000);
	for (i = 0; i < 2000; i++) {
		avg = paqm_red_average(avg, 0, PAQM_W);
		slow = paqm_red_average(slow, 1, PAQM_W);
	}
	/* 0.2 (0.998)^2000 = 0.003647; 1 - 0.998^2000 = 0.981763 */
	PAQM_NEAR("0.2 packet after 2000 others", avg, PAQM_PACKETS(3647, 1000000), 300);
	PAQM_NEAR("the same as idle time", gone, avg, 300);
	PAQM_NEAR("grows as it decays", slow, PAQM_PACKETS(981763, 1000000), 300);
	PAQM_SAME("no idle time", paqm_red_decay(avg, PAQM_W, 0), avg);
	PAQM_SAME("a day of idle time", paqm_red_decay(1ULL << 38, PAQM_W, 1ULL << 40), 0);
	PAQM_SAME("weight 1 forgets", paqm_red_decay(1ULL << 38, PAQM_Q24_ONE, 1), 0);
	PAQM_SAME("idle packets, 0.32 ms each", paqm_red_idle(1000000, 320000), 3);
	PAQM_SAME("idle packets, time not known", paqm_red_idle(1000000, 0), 0);
}

static inline void paqm_check_red_curve(void)
{
	struct paqm_red_params p = paqm_vec_red();
	static const struct {
		paqm_u32 avg_x10;
		paqm_u32 hard, gentle; /* 1/10000 */
	} t[] = {
		{0, 0, 0},	    {49, 0, 0},		 {50, 0, 0},	       {75, 250, 250},
		{100, 500, 500},    {149, 990, 990},	 {150, 10000, 1000},   {225, 10000, 5500},
		{299, 10000, 9940}, {300, 10000, 10000}, {9999, 10000, 10000},
	};
	unsigned int i;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		paqm_u64 avg = PAQM_PACKETS(t[i].avg_x10, 10);

		p.gentle = 0;
		PAQM_NEAR("p_b", paqm_red_prob(&p, p.max_p_q24, avg), PAQM_PART(t[i].hard, 10000),
			  1 << 9);
		p.gentle = 1;
		PAQM_NEAR("p_b, gentle", paqm_red_prob(&p, p.max_p_q24, avg),
			  PAQM_PART(t[i].gentle, 10000), 1 << 9);
	}
	PAQM_SAME("waits", paqm_red_spread(PAQM_PART(5, 100), 19, 0), 0);
	PAQM_NEAR("then", paqm_red_spread(PAQM_PART(5, 100), 30, 0), PAQM_PART(1, 10), 32);
	PAQM_SAME("at last", paqm_red_spread(PAQM_PART(5, 100), 41, 0), PAQM_RED_CERTAIN);
	PAQM_NEAR("uniform", paqm_red_spread(PAQM_PART(5, 100), 10, 1), PAQM_PART(1, 10), 32);
	PAQM_NEAR("first", paqm_red_spread(PAQM_PART(5, 100), 0, 1), PAQM_PART(5, 100), 1);
	PAQM_SAME("uniform, last", paqm_red_spread(PAQM_PART(5, 100), 21, 1), PAQM_RED_CERTAIN);
	PAQM_SAME("certain", paqm_red_spread(PAQM_RED_CERTAIN, PAQM_RED_COUNT_MAX, 0),
		  PAQM_RED_CERTAIN);
}

static inline void paqm_check_red_test(void)
{
	struct paqm_red_params p = paqm_vec_red();
	struct paqm_red_vars v;
	int passed = 0;

	paqm_red_start(&v, &p, 0);
	v.avg = PAQM_PACKETS(49, 10);
	PAQM_SAME("below", paqm_red_test(&v, &p, 10, 0), PAQM_RED_PASS);
	v.avg = 10 * PAQM_RED_PACKET; /* p_b is 0.05 */
	PAQM_SAME("one packet", paqm_red_test(&v, &p, 1, 0), PAQM_RED_PASS);
	PAQM_SAME("one packet is below", v.count, PAQM_RED_BELOW);
	while (passed < 100 && paqm_red_test(&v, &p, 10, 0) == PAQM_RED_PASS)
		passed++;
	PAQM_NEAR("waits 1/p_b packets", passed, 20, 1);
	PAQM_SAME("begins again", v.count, 0);
	for (passed = 0; passed < 100; passed++)
		if (paqm_red_test(&v, &p, 10, PAQM_U32_MAX) != PAQM_RED_PASS)
			break;
	PAQM_NEAR("at most 2/p_b", passed, 39, 1);
	p.uniform = 1;
	PAQM_SAME("1993: at once", paqm_red_test(&v, &p, 10, 0), PAQM_RED_EARLY);
	v.avg = p.max;
	PAQM_SAME("forced", paqm_red_test(&v, &p, 10, PAQM_U32_MAX), PAQM_RED_FORCED);
	p.gentle = 1;
	PAQM_SAME("gentle: not yet", paqm_red_test(&v, &p, 10, PAQM_U32_MAX), PAQM_RED_PASS);
	v.avg = 2 * p.max;
	PAQM_SAME("gentle: forced", paqm_red_test(&v, &p, 10, PAQM_U32_MAX), PAQM_RED_FORCED);
	v.count = 7;
	paqm_red_dropped(&v);
	PAQM_SAME("another drop", v.count, 0);
	v.count = PAQM_RED_BELOW;
	paqm_red_dropped(&v);
	PAQM_SAME("another drop below", v.count, PAQM_RED_BELOW);
}

static inline void paqm_check_red_adaptive(void)
{
	struct paqm_red_params p = paqm_vec_red();
	struct paqm_red_vars v;
	paqm_u64 now = 1;
	int i;

	paqm_red_start(&v, &p, now);
	v.avg = PAQM_PACKETS(111, 10);
	paqm_red_adapt(&v, &p, now += 500 * PAQM_MS);
	PAQM_SAME("not adaptive", v.max_p_q24, PAQM_Q24(1, 10));
	p.adaptive = 1;
	paqm_red_adapt(&v, &p, now);
	PAQM_NEAR("up", v.max_p_q24, PAQM_Q24(11, 100), 1);
	paqm_red_adapt(&v, &p, now += 499 * PAQM_MS);
	PAQM_NEAR("not so soon", v.max_p_q24, PAQM_Q24(11, 100), 1);
	v.avg = 10 * PAQM_RED_PACKET;
	paqm_red_adapt(&v, &p, now += PAQM_MS);
	PAQM_NEAR("in the middle", v.max_p_q24, PAQM_Q24(11, 100), 1);
	v.avg = PAQM_PACKETS(89, 10);
	paqm_red_adapt(&v, &p, now += 500 * PAQM_MS);
	PAQM_NEAR("down", v.max_p_q24, PAQM_Q24(99, 1000), 10);
	for (i = 0; i < 100; i++)
		paqm_red_adapt(&v, &p, now += 500 * PAQM_MS);
	PAQM_NEAR("least", v.max_p_q24, PAQM_Q24(95, 10000), PAQM_Q24(5, 10000));
	v.avg = 14 * PAQM_RED_PACKET;
	paqm_red_adapt(&v, &p, now += 500 * PAQM_MS);
	PAQM_NEAR("a quarter at most", v.max_p_q24, PAQM_Q24(12, 1000), PAQM_Q24(6, 10000));
	for (i = 0; i < 100; i++)
		paqm_red_adapt(&v, &p, now += 500 * PAQM_MS);
	PAQM_NEAR("most", v.max_p_q24, PAQM_Q24(505, 1000), PAQM_Q24(6, 1000));
}

static inline void paqm_check_fred(void)
{
	struct paqm_red_params p = paqm_vec_red();
	struct paqm_fred_flow f = {0, 0};
	struct paqm_red_vars v;
	int passed;

	paqm_red_start(&v, &p, 0);
	PAQM_SAME("share", paqm_fred_share(10 * PAQM_RED_PACKET, 4), PAQM_PACKETS(5, 2));
	PAQM_SAME("at least one", paqm_fred_share(PAQM_RED_PACKET, 4), PAQM_RED_PACKET);
	PAQM_SAME("nobody", paqm_fred_share(3 * PAQM_RED_PACKET, 0), 3 * PAQM_RED_PACKET);

	v.avg = 2 * PAQM_RED_PACKET;
	f.qlen = 4;
	PAQM_SAME("short queue", paqm_fred_test(&v, &p, &f, 2, 2, 0), PAQM_FRED_PASS);
	f.qlen = 5;
	PAQM_SAME("more than min_th of one flow", paqm_fred_test(&v, &p, &f, 2, 2, 0),
		  PAQM_FRED_STRIKE);
	PAQM_SAME("is held against it", f.strikes, 1);
	f.qlen = 1;
	PAQM_SAME("one strike is nothing", paqm_fred_test(&v, &p, &f, 2, 2, 0), PAQM_FRED_PASS);
	f.strikes = 2;
	PAQM_SAME("two hold it to the share", paqm_fred_test(&v, &p, &f, 2, 2, 0),
		  PAQM_FRED_STRIKE);
	f.qlen = 0;
	PAQM_SAME("below it has packets", paqm_fred_test(&v, &p, &f, 2, 2, 0), PAQM_FRED_PASS);

	f = (struct paqm_fred_flow){1, 0};
	v.avg = 10 * PAQM_RED_PACKET; /* p_b 0.05, the share of five is 2 */
	for (passed = 0; passed < 100; passed++)
		if (paqm_fred_test(&v, &p, &f, 5, 2, 0) != PAQM_FRED_PASS)
			break;
	PAQM_SAME("fragile flows lose nothing", passed, 100);
	v.count = PAQM_RED_BELOW;
	f.qlen = 2;
	PAQM_SAME("others at random", paqm_fred_test(&v, &p, &f, 5, 2, 0), PAQM_FRED_EARLY);
	PAQM_SAME("but not below their share", paqm_fred_test(&v, &p, &f, 4, 2, 0), PAQM_FRED_PASS);
	PAQM_SAME("nor below min_q", paqm_fred_test(&v, &p, &f, 5, 4, 0), PAQM_FRED_PASS);
	v.count = 19;
	PAQM_SAME("20 p_b is 1", paqm_fred_test(&v, &p, &f, 5, 2, PAQM_U32_MAX), PAQM_FRED_EARLY);

	v.avg = p.max;
	PAQM_SAME("above max_th", paqm_fred_test(&v, &p, &f, 5, 2, PAQM_U32_MAX), PAQM_FRED_FORCED);
	f = (struct paqm_fred_flow){4, 0};
	PAQM_SAME("who holds more than two shares", paqm_fred_test(&v, &p, &f, 8, 2, PAQM_U32_MAX),
		  PAQM_FRED_STRIKE);
	PAQM_SAME("pays for it later", f.strikes, 1);
}

static inline void paqm_check_thresholds(void)
{
	static const struct {
		paqm_u32 flows[PAQM_CBT_CLASSES];
		paqm_u32 tagged, untagged; /* 1/10000 packet, at an average of 10 */
	} t[] = {
		{{25, 10, 0}, 28571, 0},
		{{25, 10, 2}, 27027, 3243},
		{{55, 10, 2}, 14925, 1791},
	};
	struct paqm_red_params p = paqm_vec_red();
	paqm_u32 beta = PAQM_Q24(1, 10), one[PAQM_CBT_CLASSES] = {0, 0, 1};
	paqm_u64 avg = 10 * PAQM_RED_PACKET;
	unsigned int i;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		PAQM_NEAR("tagged",
			  paqm_dcbt_threshold(&p, beta, 0, PAQM_CBT_TAGGED, avg, t[i].flows),
			  PAQM_PACKETS(t[i].tagged, 10000), PAQM_PACKETS(1, 10000));
		PAQM_NEAR("untagged",
			  paqm_dcbt_threshold(&p, beta, 0, PAQM_CBT_UNTAGGED, avg, t[i].flows),
			  PAQM_PACKETS(t[i].untagged, 10000), PAQM_PACKETS(1, 10000));
		PAQM_SAME("TCP", paqm_dcbt_threshold(&p, beta, 0, PAQM_CBT_TCP, avg, t[i].flows),
			  PAQM_CBT_NONE);
	}
	avg = PAQM_PACKETS(55, 10);
	PAQM_NEAR("without a cap", paqm_dcbt_threshold(&p, beta, 0, PAQM_CBT_UNTAGGED, avg, one),
		  6 * PAQM_RED_PACKET, 8);
	PAQM_SAME("with a cap", paqm_dcbt_threshold(&p, beta, 1, PAQM_CBT_UNTAGGED, avg, one), avg);
	PAQM_SAME("above the threshold", paqm_cbt_over(avg + 1, avg), 1);
	PAQM_SAME("at the threshold", paqm_cbt_over(avg, avg), 0);
	PAQM_SAME("no threshold", paqm_cbt_over(~1ULL, PAQM_CBT_NONE), 0);
	PAQM_SAME("gate closed", paqm_dcbt_gate(&p, p.min), 0);
	PAQM_SAME("gate open", paqm_dcbt_gate(&p, p.min + 1), 1);
}

/* Whatever arrives, the averages of the classes add up to that of the queue. */
static inline void paqm_check_joint_average(void)
{
	paqm_u64 red_avg = 0, avg[PAQM_CBT_CLASSES] = {0, 0, 0};
	paqm_u32 held[PAQM_CBT_CLASSES] = {0, 0, 0}, state = 1, packets;
	int i, c;

	for (i = 0; i < 20000; i++) {
		for (c = 0; c < PAQM_CBT_CLASSES; c++)
			held[c] = paqm_vec_random(&state) % (i % 5000 < 2500 ? 20 : 3);
		paqm_dcbt_average(&red_avg, avg, held[0] + held[1] + held[2], held, PAQM_W);
		if (i % 100 == 99) {
			packets = paqm_vec_random(&state) % 500;
			red_avg = paqm_red_decay(red_avg, PAQM_W, packets);
			for (c = 0; c < PAQM_CBT_CLASSES; c++)
				avg[c] = paqm_red_decay(avg[c], PAQM_W, packets);
		}
		/* each of four roundings stays for 1/w samples */
		PAQM_NEAR("sum of the classes", avg[0] + avg[1] + avg[2], red_avg, 1200);
	}
}

/*
 * The defect of CBT that D-CBT was made for: of two classes that hold as much of the queue, that
 * with more arrivals has the larger average, as only arrivals of a class update it.
 */
static inline void paqm_check_unsynchronised(void)
{
	paqm_u64 fast = 0, slow = 0;
	int i;

	for (i = 0; i < 400; i++) {
		fast = paqm_red_average(fast, 3, PAQM_W);
		if (i % 4 == 0)
			slow = paqm_red_average(slow, 3, PAQM_W);
	}
	/* 3 (1 - 0.998^400), 3 (1 - 0.998^100) */
	PAQM_NEAR("many arrivals", fast, PAQM_PACKETS(1653, 1000), PAQM_PACKETS(1, 1000));
	PAQM_NEAR("few arrivals", slow, PAQM_PACKETS(5443, 10000), PAQM_PACKETS(1, 1000));
}

static inline void paqm_vec_counts(const struct paqm_active *t, paqm_u32 tcp, paqm_u32 tagged,
				   paqm_u32 untagged)
{
	PAQM_SAME("TCP flows", t->count[PAQM_CBT_TCP], tcp);
	PAQM_SAME("tagged flows", t->count[PAQM_CBT_TAGGED], tagged);
	PAQM_SAME("untagged flows", t->count[PAQM_CBT_UNTAGGED], untagged);
}

static inline enum paqm_cbt_class paqm_vec_class(int flow)
{
	return flow < 25 ? PAQM_CBT_TCP : flow < 35 ? PAQM_CBT_TAGGED : PAQM_CBT_UNTAGGED;
}

/* 37 flows, each with a packet every 100 ms; then one falls silent. */
static inline void paqm_check_active(void)
{
	static struct paqm_active_flow flow[37];
	static paqm_u32 bucket[8]; /* few: chains */
	struct paqm_active t = {.flow = flow, .bucket = bucket, .slots = 37, .mask = 7};
	paqm_u64 now = 1, silent = 0;
	paqm_u32 i;
	int step;

	paqm_active_clear(&t, now);
	for (step = 0; step < 60; step++) {
		for (i = 0; i < 37; i++) {
			now += 100 * PAQM_MS / 37;
			if (i == 30 && step >= 30)
				continue;
			if (i == 30)
				silent = now;
			paqm_active_touch(&t, 1000 + i, paqm_vec_class(i), now);
			paqm_active_sweep(&t, now, 300 * PAQM_MS);
			if (step >= 30 && now - silent < 300 * PAQM_MS)
				PAQM_SAME("still active", t.count[PAQM_CBT_TAGGED], 10);
			if (step >= 30 && now - silent > 600 * PAQM_MS)
				PAQM_SAME("no longer", t.count[PAQM_CBT_TAGGED], 9);
		}
		if (step == 29)
			paqm_vec_counts(&t, 25, 10, 2);
	}
	paqm_vec_counts(&t, 25, 9, 2);
	PAQM_SAME("it is gone", paqm_active_find(&t, 1030), PAQM_ACTIVE_NONE);
	PAQM_SAME("none was missed", t.missed, 0);

	PAQM_SAME("a slot for a new one", paqm_active_touch(&t, 5, PAQM_CBT_TCP, now) < 37, 1);
	PAQM_SAME("no slot", paqm_active_touch(&t, 6, PAQM_CBT_TCP, now), PAQM_ACTIVE_NONE);
	PAQM_SAME("it is counted", t.missed, 1);
	paqm_vec_counts(&t, 26, 9, 2);
	paqm_active_touch(&t, 5, PAQM_CBT_UNTAGGED, now);
	paqm_vec_counts(&t, 25, 9, 3);
	for (i = 0; i < 37; i++)
		PAQM_SAME("found", paqm_active_find(&t, 1000 + i) != PAQM_ACTIVE_NONE, i != 30);
	paqm_active_sweep(&t, now + 1000 * PAQM_MS, 300 * PAQM_MS);
	paqm_vec_counts(&t, 0, 0, 0);
	for (i = 0; i < 37; i++)
		paqm_active_touch(&t, i, PAQM_CBT_TCP, now);
	paqm_vec_counts(&t, 37, 0, 0);
	PAQM_SAME("all slots are there again", t.missed, 1);
	paqm_active_remove(&t, paqm_active_find(&t, 20));
	paqm_vec_counts(&t, 36, 0, 0);
}

static inline void paqm_check_chips(void)
{
	static const paqm_u32 few[PAQM_CBT_CLASSES] = {25, 10, 1}; /* 0.28 */
	static const paqm_u32 half[PAQM_CBT_CLASSES] = {5, 5, 0};
	static const paqm_u32 many[PAQM_CBT_CLASSES] = {4, 6, 0};
	static paqm_u8 label[4];
	struct paqm_labels l = {.label = label, .mask = 3};
	paqm_u64 avg = PAQM_PACKETS(64, 10);
	paqm_u32 most = PAQM_Q16_ONE / 2;
	int i;

	PAQM_SAME("10 wait: cuts in", paqm_chips_cuts_in(avg, 10, few, most), 1);
	PAQM_SAME("behind six", paqm_chips_place(avg), 6);
	PAQM_SAME("6 wait: does not", paqm_chips_cuts_in(avg, 6, few, most), 0);
	PAQM_SAME("half is few", paqm_chips_cuts_in(avg, 10, half, most), 1);
	PAQM_SAME("0.6 is many", paqm_chips_cuts_in(avg, 10, many, most), 0);

	/* o waits, m cuts in before it and leaves: m counts until o's time comes */
	paqm_labels_clear(&l);
	paqm_labels_push(&l, PAQM_CBT_TCP);
	paqm_labels_push(&l, PAQM_CBT_TAGGED);
	paqm_labels_pop(&l);
	PAQM_SAME("one is left", l.len, 1);
	PAQM_SAME("which counts as tagged", l.held[PAQM_CBT_TAGGED], 1);
	paqm_labels_remove(&l, PAQM_CBT_TCP);
	PAQM_SAME("o is dropped", l.len, 0);
	PAQM_SAME("nothing counts", l.held[PAQM_CBT_TAGGED] + l.held[PAQM_CBT_TCP], 0);

	for (i = 0; i < 3; i++) /* around the end of the ring */
		paqm_labels_push(&l, i == 1 ? PAQM_CBT_UNTAGGED : PAQM_CBT_TCP);
	paqm_labels_remove(&l, PAQM_CBT_TCP);
	paqm_labels_pop(&l);
	PAQM_SAME("the newest one went", l.held[PAQM_CBT_UNTAGGED], 1);
	PAQM_SAME("and the first one left", l.held[PAQM_CBT_TCP], 0);
	paqm_labels_push(&l, PAQM_CBT_TAGGED);
	paqm_labels_remove(&l, PAQM_CBT_UNTAGGED);
	PAQM_SAME("one in the middle", l.label[l.head], PAQM_CBT_TAGGED);
}

#endif /* PAQM_DCBT_VECTORS_H */
