// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit suite of flows that pause between pictures: what they send, and whether they are known.
 */
#include <kunit/test.h>
#include "flow_table.h"

/*
 * Pictures with pauses between them: who does at once as he is told is not one who does not, though
 * the mean of his rate falls late; and who does not is found.
 */
static void paqm_kunit_pauses(struct kunit *test)
{
	static const u32 gaps[] = { 450, 228, 190, 127, 95, 40 }; /* ticks */
	struct paqm_flow *f;
	u32 k, i;

	for (k = 0; k < ARRAY_SIZE(gaps); k++) {
		u32 next = 1, end = 0;

		paqm_make(test, 64);
		f = paqm_new(test, paqm_nth(1), PAQM_MEDIA, 1);
		paqm_count(1, 0, 0);
		paqm_know(f);
		for (i = 0; i < 240; i++) {
			bool less = i >= 100 && i < 200;

			paqm_flows_mark(&paqm_table);
			for (end += 238; next <= end; next += gaps[k]) { /* 250 ms */
				f->bytes += gaps[k] * (less ? 125 : 500);
				f->last_tick = next;
			}
			paqm_count(end, 250, i <= 101 ? 4000000 : 1000000);
			if (i < 200)
				KUNIT_EXPECT_LE(test, (u16)paqm_gauge(f)->deaf, paqm_deaf_strike);
		}
		KUNIT_EXPECT_GT(test, (u16)paqm_gauge(f)->deaf, paqm_deaf_strike);
		paqm_flows_free(&paqm_table);
	}
}

/* One walk at @end over a flow that sends @bytes once in @gap ticks, the next time at *@next. */
static void paqm_rarely(struct paqm_flow *f, u32 end, u32 *next, u32 gap, u32 bytes)
{
	paqm_flows_mark(&paqm_table);
	for (; *next <= end; *next += gap) {
		f->bytes += bytes;
		f->last_tick = *next;
	}
	paqm_count(end, 250, 1000000);
}

/*
 * A picture a second, or in two: such a flow becomes known, and counts also while it pauses, with
 * what it sends. Who has more than a share by ports that he uses in turn has no flow by each.
 */
static void paqm_kunit_rarely(struct kunit *test)
{
	static const u32 gaps[] = { 800, 954, 1900 }; /* ticks */
	static const u32 rates[] = { 500, 1500 }; /* kbit/s; told are 1000 */
	struct paqm_flow *f;
	u32 k, i, j;

	for (k = 0; k < ARRAY_SIZE(gaps); k++) {
		for (j = 0; j < ARRAY_SIZE(rates); j++) {
			u32 next = 1, end = 0, bytes = rates[j] * gaps[k] / 1024 * 1049 / 8;

			paqm_make(test, 64);
			f = paqm_new(test, paqm_nth(1), PAQM_MEDIA, 1);
			paqm_count(1, 0, 0);
			for (i = 0; i < 80; i++) {
				paqm_rarely(f, end += 238, &next, gaps[k], bytes);
				KUNIT_EXPECT_TRUE(test, i < 40 || j || paqm_seen.takers == 1);
			}
			KUNIT_EXPECT_EQ(test, !!(f->every & PAQM_KNOWN), !j);
			if (!j) {
				KUNIT_EXPECT_GE(test, paqm_gauge(f)->rate, 350000);
				KUNIT_EXPECT_LE(test, paqm_gauge(f)->rate, 700000);
			}
			paqm_flows_free(&paqm_table);
		}
	}
}

/* A screen at rest, a picture of 2.5 kB each second, on which a film of 2 Mbit/s begins. */
static void paqm_kunit_wakes(struct kunit *test)
{
	u32 next = 1, end = 0, i;
	struct paqm_flow *f;

	paqm_make(test, 64);
	f = paqm_new(test, paqm_nth(1), PAQM_MEDIA, 1);
	paqm_count(1, 0, 0);
	paqm_know(f);
	for (i = 0; i < 100; i++)
		paqm_rarely(f, end += 238, &next, 954, 2500);
	KUNIT_EXPECT_LE(test, paqm_gauge(f)->rate, 40000);
	for (next = end + 1, i = 0; i < 8; i++) /* two seconds */
		paqm_rarely(f, end += 238, &next, 40, 10500);
	KUNIT_EXPECT_GE(test, paqm_gauge(f)->rate, 1600000);
	KUNIT_EXPECT_LE(test, paqm_gauge(f)->rate, 2200000);
	paqm_flows_free(&paqm_table);
}

/*
 * One that pauses for long, and sends far more than it is told, has left young with its next pause:
 * it is not known any more then, nor counts. What is known is measured.
 */
static void paqm_kunit_rarely_deaf(struct kunit *test)
{
	u32 next = 1, end = 0, bytes = 500 * 800 / 1024 * 1049 / 8, i, left = 0;
	bool was = false, is;
	struct paqm_flow *f;

	paqm_make(test, 64);
	f = paqm_new(test, paqm_nth(1), PAQM_MEDIA, 1);
	paqm_count(1, 0, 0);
	for (i = 0; i < 60; i++) {
		paqm_rarely(f, end += 238, &next, 800, was ? 8 * bytes : bytes);
		is = f->every & PAQM_KNOWN;
		left += was && !is;
		was |= is;
		KUNIT_EXPECT_EQ(test, paqm_seen.takers, (u32)is);
		KUNIT_EXPECT_TRUE(test, !is || paqm_gauge(f)->marked <= PAQM_MARKED_ROUND);
	}
	KUNIT_EXPECT_GT(test, left, 0U);
	paqm_flows_free(&paqm_table);
}

static struct kunit_case paqm_pauses_cases[] = {
	KUNIT_CASE(paqm_kunit_pauses),
	KUNIT_CASE(paqm_kunit_rarely),
	KUNIT_CASE(paqm_kunit_wakes),
	KUNIT_CASE(paqm_kunit_rarely_deaf),
	{}
};

static struct kunit_suite paqm_pauses_suite = {
	.name = "paqm_pauses",
	.exit = paqm_flows_exit,
	.test_cases = paqm_pauses_cases,
};
kunit_test_suite(paqm_pauses_suite);
