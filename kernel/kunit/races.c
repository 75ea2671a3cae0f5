// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit suite of a walk that meets claims at its worst moment.
 */
#include <kunit/test.h>
#include <linux/prandom.h>
#include "flow_table.h"

static u64 paqm_newcomer;
static u32 paqm_meetings;

/* All eight slots of the one set are taken by new flows just now. */
static void paqm_take_all(void)
{
	u32 i;

	paqm_meetings++;
	for (i = 0; i < PAQM_WAYS; i++) {
		struct paqm_flow *f;

		f = paqm_touch(paqm_nth(++paqm_newcomer), PAQM_ELASTIC, 50000, NULL);

		if (f)
			f->bytes += 1000000;
	}
}

/*
 * A claim between the walker's two looks at the key: what it read may be half of one
 * flow and half of another, so it must be thrown away, not counted.
 */
static void paqm_kunit_walk_race(struct kunit *test)
{
	u32 i;

	paqm_make(test, PAQM_WAYS);
	paqm_newcomer = 1000;
	paqm_meetings = 0;
	for (i = 1; i <= PAQM_WAYS; i++)
		paqm_touch(paqm_nth(i), PAQM_MEDIA, 100, NULL);
	paqm_count(100, 200, 0);
	for (i = 0; i < PAQM_WAYS; i++)
		paqm_table.flow[i].bytes += 25000;
	paqm_count(100, 200, 1000000);
	KUNIT_EXPECT_EQ(test, paqm_seen.media, PAQM_WAYS);
	paqm_at_barrier = paqm_take_all;
	/* at 50000 the eight are long silent, so every barrier may replace them all */
	paqm_count(100, 200, 1000000);
	paqm_at_barrier = NULL;
	KUNIT_EXPECT_GE(test, paqm_meetings, 1);
	KUNIT_EXPECT_EQ(test, paqm_seen.media, 0); /* those seen first are gone */
	paqm_count(50000, 0, 1000000);
	KUNIT_EXPECT_EQ(test, paqm_seen.present, PAQM_WAYS);
	KUNIT_EXPECT_EQ(test, paqm_seen.used, PAQM_WAYS);
	for (i = 0; i < PAQM_WAYS; i++) /* nobody inherits a rate */
		KUNIT_EXPECT_EQ(test, paqm_table.gauge[i].rate, 0);
}

static struct paqm_flow *paqm_slot;
static u32 paqm_late; /* when the walker goes on */

/* The slot is taken by a new flow, before the walker writes what it knows of the old one. */
static void paqm_take_slot(void)
{
	u32 i;

	paqm_at_write = NULL;
	paqm_meetings++;
	for (i = 0; i < PAQM_WAYS; i++) /* the others live */
		if (&paqm_table.flow[i] != paqm_slot)
			WRITE_ONCE(paqm_table.flow[i].last_tick, paqm_late);
	paqm_touch(paqm_nth(++paqm_newcomer), PAQM_MEDIA, paqm_late, NULL);
}

/* A packet of the flow comes just then: it overflows. */
static void paqm_touch_slot(void)
{
	paqm_at_write = NULL;
	paqm_meetings++;
	WRITE_ONCE(paqm_slot->over_seq, paqm_slot->over_seq + 1);
}

/*
 * A walker that was kept from running after its second look at the key: the slot has another
 * flow, which is neither known nor dead.
 */
static void paqm_kunit_late_walker(struct kunit *test)
{
	u32 i, seen, tag;

	paqm_make(test, PAQM_WAYS);
	paqm_newcomer = 1000;
	paqm_meetings = 0;
	for (i = 0; i < PAQM_WAYS - 1; i++)
		paqm_touch(paqm_nth(i + 1), PAQM_ELASTIC, 100, NULL);
	paqm_slot = paqm_new(test, paqm_nth(i + 1), PAQM_MEDIA, 100);

	/* one that becomes known just then; of two claims in a row each is noticed */
	for (i = 0; i < 2; i++) {
		seen = paqm_slot->every;
		KUNIT_EXPECT_EQ(test, seen & ~PAQM_CLAIM, 0);
		paqm_count(100 + i * 10000, 0, 0); /* its window begins */
		WRITE_ONCE(paqm_slot->last_tick, 600 + i * 10000);
		paqm_slot->bytes += 50000;
		tag = paqm_slot->tag;
		paqm_late = 10100 + i * 10000; /* it was silent for longer than slots are held */
		paqm_at_write = paqm_take_slot;
		paqm_count(600 + i * 10000, 200, 1000000);
		KUNIT_EXPECT_EQ(test, paqm_meetings, i + 1);
		KUNIT_EXPECT_NE(test, paqm_slot->tag, tag);
		KUNIT_EXPECT_EQ(test, paqm_slot->every & ~PAQM_CLAIM, 0);
		KUNIT_EXPECT_NE(test, paqm_slot->every, seen);
		KUNIT_EXPECT_EQ(test, paqm_slot->last_tick, paqm_late);
		KUNIT_EXPECT_FALSE(test, paqm_publish(paqm_slot, seen, PAQM_KNOWN));
		KUNIT_EXPECT_EQ(test, paqm_slot->every & ~PAQM_CLAIM, 0);
	}
	paqm_count(paqm_late + 1, 0, 0);
	KUNIT_EXPECT_EQ(test, paqm_gauge(paqm_slot)->rate, 0);

	/* a packet of the same flow does not keep it from being known, and is not undone */
	WRITE_ONCE(paqm_slot->last_tick, paqm_late + 501);
	paqm_slot->bytes += 50000;
	paqm_at_write = paqm_touch_slot;
	paqm_count(paqm_late + 501, 200, 1000000);
	KUNIT_EXPECT_EQ(test, paqm_meetings, 3);
	KUNIT_EXPECT_TRUE(test, paqm_slot->every & PAQM_KNOWN);
	KUNIT_EXPECT_EQ(test, paqm_slot->over_seq, 1);

	/* dead for so long that its time would come again, and taken just then */
	paqm_late += 600 + PAQM_SILENT_LONG;
	for (i = 0; i < PAQM_WAYS - 1; i++)
		WRITE_ONCE(paqm_table.flow[i].last_tick, paqm_late);
	paqm_at_write = paqm_take_slot;
	paqm_count(paqm_late, 0, 0);
	KUNIT_EXPECT_EQ(test, paqm_meetings, 4);
	KUNIT_EXPECT_EQ(test, paqm_slot->last_tick, paqm_late);
	/* and not taken: it stays dead */
	paqm_late += 1 + PAQM_SILENT_LONG;
	paqm_count(paqm_late, 0, 0);
	KUNIT_EXPECT_EQ(test, paqm_late - paqm_slot->last_tick, PAQM_SILENT_LONG / 2);
}

static struct rnd_state paqm_race_rnd;
static u32 paqm_race_now;

/* Some flow or other appears, in a table that turns over all the time. */
static void paqm_take_one(void)
{
	u64 hash = paqm_nth(1 + (prandom_u32_state(&paqm_race_rnd) & 4095));
	struct paqm_flow *f = paqm_touch(hash, hash & 1, paqm_race_now, NULL);

	if (f)
		f->bytes += 1500;
}

/*
 * Walks during constant claims: every census is possible (no more flows than slots, no
 * rate beyond what a flow can have sent) and once all is quiet it is exact.
 */
static void paqm_kunit_walk_churn(struct kunit *test)
{
	struct paqm_walk w = { .elastic_ticks = PAQM_FLOW_ACTIVE_TICKS };
	u32 round, i, living;

	paqm_make(test, 1024);
	prandom_seed_state(&paqm_race_rnd, 4);
	paqm_race_now = 1;
	paqm_at_barrier = paqm_take_one;
	for (i = 0; i < 2000; i++)
		paqm_take_one();
	for (round = 0; round < 300; round++) {
		paqm_race_now += 1 + (prandom_u32_state(&paqm_race_rnd) & 511);
		paqm_flows_mark(&paqm_table);
		for (i = 0; i < 200; i++)
			paqm_take_one();
		paqm_count(paqm_race_now, 200, 1000000);
		KUNIT_EXPECT_LE(test, paqm_seen.used, 1024);
		KUNIT_EXPECT_LE(test, paqm_seen.media + paqm_seen.present, paqm_seen.used);
		KUNIT_EXPECT_LE(test, paqm_seen.elastic, paqm_seen.present);
		for (i = 0; i < 1024; i++) /* at most all claims of a round */
			KUNIT_EXPECT_LE(test, paqm_table.gauge[i].rate,
					1500ULL * 8 * 5 * (200 + 1024));
	}
	paqm_at_barrier = NULL;
	paqm_count(paqm_race_now, 200, 1000000);
	w.now_tick = paqm_race_now;
	for (living = 0, i = 0; i < 1024; i++) {
		const struct paqm_flow *f = &paqm_table.flow[i];
		u32 silent = paqm_race_now - f->last_tick;
		u32 patience = paqm_flow_patience(&paqm_table.gauge[i]);

		if (paqm_flow_class(f) == PAQM_ELASTIC)
			patience = paqm_elastic_patience(&paqm_table.gauge[i], &w, silent);
		living += f->tag && silent <= patience;
	}
	KUNIT_EXPECT_EQ(test, paqm_seen.media + paqm_seen.present, living);
}

static struct kunit_case paqm_races_cases[] = {
	KUNIT_CASE(paqm_kunit_walk_race),
	KUNIT_CASE(paqm_kunit_late_walker),
	KUNIT_CASE(paqm_kunit_walk_churn),
	{}
};

static struct kunit_suite paqm_races_suite = {
	.name = "paqm_races",
	.exit = paqm_flows_exit,
	.test_cases = paqm_races_cases,
};
kunit_test_suite(paqm_races_suite);
