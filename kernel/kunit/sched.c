// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit suites of the scheduler and of the sojourn histogram: the split of the bytes
 * in the long run and at every moment, credit, idle classes; bins and quantiles.
 */
#include <kunit/test.h>
#include <linux/prandom.h>
#include "core/paqm_hist.h"
#include "core/paqm_sched.h"

/* Same numbers in every run. */
static u32 paqm_draw(struct rnd_state *rnd, u32 below)
{
	return (u32)(((u64)prandom_u32_state(rnd) * below) >> 32);
}

static u32 paqm_draw_len(struct rnd_state *rnd)
{
	return 60 + paqm_draw(rnd, 1455);
}

#define PAQM_LEN_MAX 1514

/* Send one packet as the qdisc does: both classes wait. Media's length or 0. */
static u32 paqm_serve(struct paqm_sched *s, u32 len)
{
	bool media = paqm_sched_media_next(s);

	paqm_sched_sent(s, media, len, 1, 1);
	return media ? len : 0;
}

/*
 * Both classes backlogged, packets of any size: at every moment media has had its
 * share of the bytes, at most the credit and a packet more, at most a packet less.
 */
static void paqm_kunit_split(struct kunit *test)
{
	static const u32 credits[] = { PAQM_LEN_MAX, 20000, 200000 };
	struct rnd_state rnd;
	u32 n, c, i;

	prandom_seed_state(&rnd, 1);
	for (n = 1; n < 64; n++) {
		for (c = 0; c < ARRAY_SIZE(credits); c++) {
			struct paqm_sched s = { 0, paqm_share_q16(n, 64 - n), credits[c] };
			s64 lead, worst_up = 0, worst_down = 0;
			u64 media = 0, total = 0;
			u32 len;

			for (i = 0; i < 4000; i++) {
				len = paqm_draw_len(&rnd);
				media += paqm_serve(&s, len);
				total += len;
				lead = media - ((total * s.share_q16) >> 16);
				worst_up = max(worst_up, lead);
				worst_down = min(worst_down, lead);
			}
			KUNIT_EXPECT_LE(test, worst_up, (s64)credits[c] + PAQM_LEN_MAX);
			KUNIT_EXPECT_GE(test, worst_down, -(s64)PAQM_LEN_MAX - 1);
			KUNIT_EXPECT_GE(test, lead, -(s64)PAQM_LEN_MAX - 1);
		}
	}
}

/* The split is one of bytes: small media packets are not paid for by their number. */
static void paqm_kunit_split_sizes(struct kunit *test)
{
	static const u32 sizes[][2] = { { 64, 1514 }, { 1514, 64 }, { 64, 65535 }, { 9000, 60 } };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct paqm_sched s = { 0, PAQM_Q16_ONE / 2, 65535 };
		u64 sent[2] = {};

		while (sent[0] + sent[1] < 100000000) {
			int class = !paqm_sched_media_next(&s);

			sent[class] += sizes[i][class];
			paqm_sched_sent(&s, !class, sizes[i][class], 1, 1);
		}
		/* 2 % is the promise; what remains is the credit once and a packet */
		KUNIT_EXPECT_LE(test, abs((s64)(sent[0] - sent[1])), 2 * (65535 + 65535));
	}
}

/* A class that may have nothing still goes, by its credit; one that has all is not held. */
static void paqm_kunit_split_extremes(struct kunit *test)
{
	struct paqm_sched none = { 0, 0, 3000 }, all = { 0, PAQM_Q16_ONE, 3000 };
	u32 i, media = 0;

	for (i = 0; i < 1000; i++)
		media += !!paqm_serve(&none, 1500);
	KUNIT_EXPECT_EQ(test, media, 2); /* its credit, never repaid */
	for (media = 0, i = 0; i < 1000; i++)
		media += !!paqm_serve(&all, 1500);
	KUNIT_EXPECT_EQ(test, media, 1000);
	KUNIT_EXPECT_EQ(test, paqm_share_q16(0, 5), 0);
	KUNIT_EXPECT_EQ(test, paqm_share_q16(5, 0), PAQM_Q16_ONE);
	KUNIT_EXPECT_EQ(test, paqm_share_q16(U32_MAX, U32_MAX), PAQM_Q16_ONE / 2);
}

/* A media frame that meets bulk goes first up to the credit, and that is repaid. */
static void paqm_kunit_credit(struct kunit *test)
{
	struct paqm_sched s = { 0, PAQM_Q16_ONE / 4, 15000 };
	u64 media = 0, elastic = 0;
	u32 i, run = 0;

	for (i = 0; i < 100; i++) /* bulk alone */
		paqm_sched_sent(&s, 0, 1500, 0, 1);
	KUNIT_EXPECT_EQ(test, s.lead, 0);
	while (paqm_sched_media_next(&s)) {
		paqm_sched_sent(&s, 1, 1000, 1, 1);
		run += 1000;
	}
	/* three quarters of each packet are borrowed */
	KUNIT_EXPECT_GE(test, run, 20000);
	KUNIT_EXPECT_LE(test, run, 21000);
	media = run;
	while (media + elastic < 10000000) {
		u32 len = paqm_serve(&s, 1000);

		media += len;
		elastic += 1000 - len;
	}
	KUNIT_EXPECT_LE(test, media, 2500000 + 15000 + 1000);
	KUNIT_EXPECT_GE(test, media, 2500000);
}

/*
 * Media comes and goes: what it left unused while idle is not saved up, what it had while nobody
 * waited is not owed, and takes a quarter of its price off what is. In each busy time it has its
 * share.
 */
static void paqm_kunit_idle(struct kunit *test)
{
	struct paqm_sched s = { 0, PAQM_Q16_ONE / 2, 3000 };
	struct rnd_state rnd;
	u32 i, j, n;

	prandom_seed_state(&rnd, 2);
	for (i = 0; i < 500; i++) {
		u64 media = 0, total = 0, alone = 0;
		s64 before = s.lead;

		n = paqm_draw(&rnd, 20);
		for (j = 0; j < n; j++) { /* media has the link for itself */
			u32 len = paqm_draw_len(&rnd);

			paqm_sched_sent(&s, 1, len, 1, 0);
			alone += len;
		}
		KUNIT_EXPECT_EQ(test, s.lead, max(before - (s64)(alone << 13), (s64)0));
		n = 100 + paqm_draw(&rnd, 200);
		for (j = 0; j < n; j++) {
			u32 len = paqm_draw_len(&rnd);

			media += paqm_serve(&s, len);
			total += len;
		}
		/* of this busy time: an earlier lead may be repaid, an earlier debt is gone */
		KUNIT_EXPECT_LE(test, (s64)media, (s64)(total / 2) + 3000 + 2 * PAQM_LEN_MAX);
		KUNIT_EXPECT_GE(test, (s64)media, (s64)(total / 2) - 3000 - 2 * PAQM_LEN_MAX);
		n = paqm_draw(&rnd, 200);
		for (j = 0; j < n; j++) /* bulk has it */
			paqm_sched_sent(&s, 0, paqm_draw_len(&rnd), 0, 1);
		KUNIT_EXPECT_GE(test, s.lead, 0);
	}
}

/* The end of the last packet is written by other CPUs, also after we have looked at the clock. */
static void paqm_kunit_idle_for(struct kunit *test)
{
	const u64 second = NSEC_PER_SEC;

	KUNIT_EXPECT_TRUE(test, paqm_idle_for(3 * second, second, 2 * second));
	KUNIT_EXPECT_FALSE(test, paqm_idle_for(3 * second - 1, second, 2 * second));
	KUNIT_EXPECT_FALSE(test, paqm_idle_for(second, second, 2 * second));
	KUNIT_EXPECT_FALSE(test, paqm_idle_for(second, second + 1, 2 * second));
	KUNIT_EXPECT_FALSE(test, paqm_idle_for(second, 4 * second, 2 * second));
}

static struct kunit_case paqm_sched_cases[] = {
	KUNIT_CASE(paqm_kunit_split),
	KUNIT_CASE(paqm_kunit_split_sizes),
	KUNIT_CASE(paqm_kunit_split_extremes),
	KUNIT_CASE(paqm_kunit_credit),
	KUNIT_CASE(paqm_kunit_idle),
	KUNIT_CASE(paqm_kunit_idle_for),
	{}
};

static struct kunit_suite paqm_sched_suite = {
	.name = "paqm_scheduler",
	.test_cases = paqm_sched_cases,
};

/* Every duration lies between the edges of its bin. */
static void paqm_kunit_hist_edges(struct kunit *test)
{
	u32 bin;

	KUNIT_EXPECT_EQ(test, paqm_hist_edge(0), 0);
	for (bin = 0; bin < PAQM_HIST_SIZE; bin++) {
		u64 lo = paqm_hist_edge(bin), hi = paqm_hist_edge(bin + 1);

		KUNIT_EXPECT_LT(test, lo, hi);
		KUNIT_EXPECT_LE(test, hi - lo, bin ? lo / 2 : hi); /* half an octave at most */
		KUNIT_EXPECT_EQ(test, paqm_hist_bin(lo), bin);
		KUNIT_EXPECT_EQ(test, paqm_hist_bin(hi - 1), bin);
	}
	KUNIT_EXPECT_EQ(test, paqm_hist_bin(U64_MAX), PAQM_HIST_SIZE - 1);
}

/* A quantile is off by no more than the width of its bin. */
static void paqm_kunit_hist_quantile(struct kunit *test)
{
	static const u32 permille[] = { 0, 1, 10, 500, 900, 990, 999, 1000 };
	u64 hist[PAQM_HIST_SIZE] = {};
	u32 n, q, i;
	const u32 samples = 100000;

	for (q = 0; q < ARRAY_SIZE(permille); q++)
		KUNIT_EXPECT_EQ(test, paqm_hist_quantile(hist, permille[q]), 0);
	for (n = 0; n < samples; n++) /* 1 us, 2 us ... 100 ms */
		hist[paqm_hist_bin((n + 1) * 1000ULL)]++;
	for (q = 1; q < ARRAY_SIZE(permille); q++) {
		u64 exact = permille[q] * 100000ULL; /* ns */
		u64 got = paqm_hist_quantile(hist, permille[q]);
		u32 bin = paqm_hist_bin(exact);

		KUNIT_EXPECT_LE(test, got, paqm_hist_edge(bin + 1));
		KUNIT_EXPECT_GE(test, got, paqm_hist_edge(bin));
	}
	for (i = 1, q = 0; i <= 1000; i++) { /* monotonous */
		KUNIT_EXPECT_LE(test, paqm_hist_quantile(hist, i - 1),
				paqm_hist_quantile(hist, i));
	}
	for (i = 0; i < PAQM_HIST_SIZE; i++) /* full counters */
		hist[i] = 1ULL << 48;
	KUNIT_EXPECT_EQ(test, paqm_hist_quantile(hist, 1000), paqm_hist_edge(PAQM_HIST_SIZE));
}

static struct kunit_case paqm_hist_cases[] = {
	KUNIT_CASE(paqm_kunit_hist_edges),
	KUNIT_CASE(paqm_kunit_hist_quantile),
	{}
};

static struct kunit_suite paqm_hist_suite = {
	.name = "paqm_histogram",
	.test_cases = paqm_hist_cases,
};

kunit_test_suites(&paqm_sched_suite, &paqm_hist_suite);
