// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit suite of what a flow is: RTP known by its sequence, one source or many in a flow,
 * random payload that is none, and packets that pass when nothing is open.
 */
#include <kunit/test.h>
#include <linux/prandom.h>
#include "flow_table.h"

/* One packet of a UDP flow through the recogniser; what it is taken for. */
static u8 paqm_udp(struct paqm_flow *f, bool rtp, u16 seq, u32 ssrc)
{
	struct paqm_packet p = {
		.kind = rtp ? PAQM_KIND_RTP : PAQM_KIND_UNKNOWN_UDP,
		.seq = seq,
		.ssrc = ssrc,
	};

	return paqm_flow_judge_udp(&paqm_table, f, &p);
}

/* RTP is known by its sequence: soon, in spite of loss, and for as long as it goes on. */
static void paqm_kunit_rtp(struct kunit *test)
{
	struct paqm_flow *f;
	struct rnd_state rnd;
	u16 seq = 65530;
	u32 i;

	paqm_make(test, 64);
	prandom_seed_state(&rnd, 5);
	f = paqm_touch(paqm_nth(1), PAQM_MEDIA, 1, NULL);
	KUNIT_EXPECT_EQ(test, paqm_udp(f, true, seq++, 7), PAQM_FLOW_UNSURE);
	KUNIT_EXPECT_EQ(test, paqm_udp(f, true, seq++, 7), PAQM_FLOW_UNSURE);
	KUNIT_EXPECT_EQ(test, paqm_udp(f, true, seq++, 7), PAQM_MEDIA);
	KUNIT_EXPECT_EQ(test, paqm_table.rtp, 1);
	for (i = 0; i < 100000; i++) { /* wraps, loses a fifth */
		seq += 1 + (prandom_u32_state(&rnd) % 5 == 0);
		KUNIT_EXPECT_EQ(test, paqm_udp(f, true, seq, 7), PAQM_MEDIA);
	}
	/* a new source in the same flow, a burst of something else */
	for (i = 0; i < 100; i++)
		KUNIT_EXPECT_EQ(test, paqm_udp(f, true, i, 8), PAQM_MEDIA);
	for (i = 0; i < 30; i++)
		KUNIT_EXPECT_EQ(test, paqm_udp(f, false, 0, 0), PAQM_MEDIA);
	KUNIT_EXPECT_EQ(test, paqm_table.not_rtp, 0);
	for (i = 0; i < 1000; i++) /* but not for ever */
		paqm_udp(f, false, 0, 0);
	KUNIT_EXPECT_EQ(test, paqm_udp(f, false, 0, 0), PAQM_ELASTIC);
	KUNIT_EXPECT_EQ(test, paqm_table.not_rtp, 1);
	for (i = 0; i < 100; i++) /* and back, with more evidence */
		paqm_udp(f, true, i, 9);
	KUNIT_EXPECT_EQ(test, paqm_udp(f, true, i, 9), PAQM_MEDIA);
	KUNIT_EXPECT_EQ(test, paqm_table.rtp, 2);
}

static bool paqm_passes(struct paqm_flow *f, u32 len, u32 now_tick)
{
	return paqm_flow_pass(f, PAQM_SETTLED_AUTO, len, now_tick);
}

/* Packets pass only when nothing about their flow is open, and leave no trace if not. */
static void paqm_kunit_pass(struct kunit *test)
{
	struct paqm_flow *f, before;
	u32 i;

	paqm_make(test, 64);
	f = paqm_touch(paqm_nth(1), PAQM_MEDIA, 1000, NULL);
	KUNIT_ASSERT_NOT_NULL(test, f);
	before = *f;
	KUNIT_EXPECT_FALSE(test, paqm_passes(f, 100, 1001));
	KUNIT_EXPECT_EQ(test, memcmp(f, &before, sizeof(before)), 0);
	paqm_flow_settle(f, PAQM_SETTLED_AUTO);
	KUNIT_EXPECT_EQ(test, paqm_flow_class(f), PAQM_MEDIA);
	KUNIT_EXPECT_EQ(test, paqm_flow_nature(f), PAQM_NATURE_OPEN);
	for (i = 0; i < 163; i++) /* up to 16 kB */
		KUNIT_EXPECT_TRUE(test, paqm_passes(f, 100, 1001));
	KUNIT_EXPECT_EQ(test, f->bytes, 16300);
	KUNIT_EXPECT_EQ(test, f->last_tick, 1001);
	before = *f;
	KUNIT_EXPECT_FALSE(test, paqm_passes(f, 100, 1002));
	KUNIT_EXPECT_EQ(test, memcmp(f, &before, sizeof(before)), 0);
	KUNIT_EXPECT_TRUE(test, paqm_passes(f, 10, 1001 + PAQM_FLOW_ACTIVE_TICKS));
	KUNIT_EXPECT_FALSE(test, paqm_passes(f, 10, 1002 + 2 * PAQM_FLOW_ACTIVE_TICKS));
	f->bytes = U32_MAX; /* wraps */
	KUNIT_EXPECT_FALSE(test, paqm_passes(f, 10, 1001 + PAQM_FLOW_ACTIVE_TICKS));
	f->bytes = 0;
	KUNIT_EXPECT_TRUE(test, paqm_passes(f, 10, 1001 + PAQM_FLOW_ACTIVE_TICKS));
	paqm_flow_set(f, PAQM_ELASTIC, PAQM_NATURE_NOT_RTP); /* a change opens it */
	KUNIT_EXPECT_FALSE(test, paqm_passes(f, 10, 1001 + PAQM_FLOW_ACTIVE_TICKS));
	paqm_flow_settle(f, PAQM_SETTLED_AUTO);
	KUNIT_EXPECT_EQ(test, paqm_flow_nature(f), PAQM_NATURE_NOT_RTP);
	KUNIT_EXPECT_TRUE(test, paqm_passes(f, 10, 1001 + PAQM_FLOW_ACTIVE_TICKS));
	/* under the one rule it is not what it is under the other */
	KUNIT_EXPECT_FALSE(test, paqm_flow_pass(f, PAQM_SETTLED_PROTOCOL, 10,
						1001 + PAQM_FLOW_ACTIVE_TICKS));
	paqm_flow_settle(f, PAQM_SETTLED_PROTOCOL);
	KUNIT_EXPECT_EQ(test, paqm_flow_class(f), PAQM_ELASTIC);
	KUNIT_EXPECT_EQ(test, paqm_flow_nature(f), PAQM_NATURE_NOT_RTP);
	KUNIT_EXPECT_TRUE(test, paqm_flow_pass(f, PAQM_SETTLED_PROTOCOL, 10,
					       1001 + PAQM_FLOW_ACTIVE_TICKS));
	paqm_flow_settle(f, 0);
	KUNIT_EXPECT_FALSE(test, paqm_passes(f, 10, 1001 + PAQM_FLOW_ACTIVE_TICKS));
	KUNIT_EXPECT_EQ(test, paqm_flow_class(f), PAQM_ELASTIC);
}

/* Flows of random payload, a quarter of which begins like RTP: none is taken for it. */
static void paqm_kunit_not_rtp(struct kunit *test)
{
	struct rnd_state rnd;
	struct paqm_flow *f;
	u32 i, j;

	paqm_make(test, 65536);
	prandom_seed_state(&rnd, 6);
	for (i = 1; i <= 5000; i++) {
		f = paqm_touch(paqm_nth(i), PAQM_ELASTIC, 1, NULL);
		for (j = 0; j < 200; j++)
			KUNIT_EXPECT_NE(test, paqm_udp(f, prandom_u32_state(&rnd) % 4 == 0,
						       prandom_u32_state(&rnd),
						       prandom_u32_state(&rnd)), PAQM_MEDIA);
	}
	KUNIT_EXPECT_EQ(test, paqm_table.rtp, 0);
	/* one source, random numbers: the sequence alone must not pass by chance */
	for (i = 5001; i <= 10000; i++) {
		f = paqm_touch(paqm_nth(i), PAQM_ELASTIC, 1, NULL);
		for (j = 0; j < 200; j++)
			paqm_udp(f, true, prandom_u32_state(&rnd), 1);
	}
	kunit_info(test, "%llu of 5000 flows with one SSRC and random numbers pass\n",
		   paqm_table.rtp);
	KUNIT_EXPECT_LE(test, paqm_table.rtp, 50);
	/* without a slot the packet alone decides */
	KUNIT_EXPECT_EQ(test, paqm_udp(NULL, true, 1, 1), PAQM_MEDIA);
	KUNIT_EXPECT_EQ(test, paqm_udp(NULL, false, 1, 1), PAQM_ELASTIC);
}

/* Many RTP sources in one flow, in any order: the downlink of an SFU. */
static void paqm_kunit_bundle(struct kunit *test)
{
	u32 i, j, source, sources, wrong;
	struct paqm_flow *f;
	struct rnd_state rnd;
	u16 seq[64];

	prandom_seed_state(&rnd, 7);
	for (sources = 2; sources <= 25; sources++) {
		paqm_make(test, 4096);
		for (wrong = 0, i = 1; i <= 200; i++) {
			u32 ssrc = prandom_u32_state(&rnd);

			f = paqm_touch(paqm_nth(i), PAQM_MEDIA, 1, NULL);
			KUNIT_ASSERT_NOT_NULL(test, f);
			prandom_bytes_state(&rnd, seq, sizeof(seq));
			for (j = 0; j < 300; j++) { /* in turn, or at random */
				source = (i % 2 ? j : prandom_u32_state(&rnd)) % sources;
				paqm_udp(f, true, seq[source]++, ssrc + source * 7919);
			}
			wrong += paqm_udp(f, true, seq[0]++, ssrc) != PAQM_MEDIA;
		}
		KUNIT_EXPECT_EQ_MSG(test, wrong, 0, "%u sources", sources);
		paqm_flows_free(&paqm_table);
	}
}

static struct kunit_case paqm_natures_cases[] = {
	KUNIT_CASE(paqm_kunit_rtp),
	KUNIT_CASE(paqm_kunit_pass),
	KUNIT_CASE(paqm_kunit_not_rtp),
	KUNIT_CASE(paqm_kunit_bundle),
	{}
};

static struct kunit_suite paqm_natures_suite = {
	.name = "paqm_natures",
	.exit = paqm_flows_exit,
	.test_cases = paqm_natures_cases,
};
kunit_test_suite(paqm_natures_suite);
