// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit suite of newcomers: when they are known, and whether they stay.
 */
#include <kunit/test.h>
#include "flow_table.h"

/* A newcomer counts when it has lasted and used something; one that only began does not. */
static void paqm_kunit_newcomers(struct kunit *test)
{
	struct paqm_flow *stays, *goes, *slow;
	u32 t = 1000;

	paqm_make(test, 64);
	stays = paqm_touch(paqm_nth(1), PAQM_MEDIA, t, NULL);
	goes = paqm_touch(paqm_nth(2), PAQM_MEDIA, t, NULL);
	KUNIT_ASSERT_NOT_NULL(test, stays);
	KUNIT_ASSERT_NOT_NULL(test, goes);
	goes->bytes = 300;
	paqm_count(t, 0, 1000000);
	KUNIT_EXPECT_EQ(test, paqm_seen.media, 2);
	KUNIT_EXPECT_EQ(test, paqm_seen.newcomers, 2);
	KUNIT_EXPECT_EQ(test, paqm_seen.mm.greedy, 0);
	t += 200;
	paqm_touch(paqm_nth(1), PAQM_MEDIA, t, NULL);
	stays->bytes += 25000;
	paqm_count(t, 0, 1000000); /* too early to tell */
	KUNIT_EXPECT_EQ(test, paqm_seen.newcomers, 2);
	t += 200;
	paqm_touch(paqm_nth(1), PAQM_MEDIA, t, NULL);
	stays->bytes += 25000;
	paqm_count(t, 0, 1000000); /* also in a round at an event: the window is its own */
	KUNIT_EXPECT_EQ(test, paqm_seen.proven, 1);
	KUNIT_EXPECT_EQ(test, paqm_seen.newcomers, 1);
	KUNIT_EXPECT_EQ(test, paqm_seen.mm.greedy, 1);
	KUNIT_EXPECT_TRUE(test, stays->every & PAQM_KNOWN);
	KUNIT_EXPECT_FALSE(test, goes->every & PAQM_KNOWN);
	/* what it sent before is no use of the time in which it was silent */
	KUNIT_EXPECT_EQ(test, paqm_gauge(goes)->rate, 0);
	t += PAQM_FLOW_ACTIVE_TICKS;
	paqm_touch(paqm_nth(1), PAQM_MEDIA, t, NULL);
	paqm_count(t, 0, 1000000);
	KUNIT_EXPECT_EQ(test, paqm_seen.passed, 1); /* once */
	paqm_count(t, 0, 1000000);
	KUNIT_EXPECT_EQ(test, paqm_seen.passed, 0);
	KUNIT_EXPECT_EQ(test, paqm_seen.media, 1);
	KUNIT_EXPECT_EQ(test, paqm_seen.newcomers, 0);
	/* three pictures a second: it is known though it has been silent since the last one */
	slow = paqm_touch(paqm_nth(3), PAQM_MEDIA, t, NULL);
	KUNIT_ASSERT_NOT_NULL(test, slow);
	paqm_count(t, 0, 1000000);
	paqm_touch(paqm_nth(3), PAQM_MEDIA, t + 330, NULL);
	slow->bytes += 6000;
	paqm_count(t + 480, 0, 1000000); /* it might be over */
	KUNIT_EXPECT_FALSE(test, slow->every & PAQM_KNOWN);
	paqm_touch(paqm_nth(3), PAQM_MEDIA, t + 499, NULL);
	paqm_count(t + 620, 0, 1000000);
	KUNIT_EXPECT_FALSE(test, slow->every & PAQM_KNOWN);
	paqm_touch(paqm_nth(3), PAQM_MEDIA, t + 660, NULL);
	paqm_count(t + 810, 0, 1000000);
	KUNIT_EXPECT_TRUE(test, slow->every & PAQM_KNOWN);
}

/* A flow from @t on that sends @bytes in half a second, as it is seen then, where R is 1 Mbit/s. */
static struct paqm_flow *paqm_lives(struct kunit *test, u64 hash, u32 t, u32 bytes)
{
	struct paqm_flow *f = paqm_new(test, hash, PAQM_MEDIA, t);

	paqm_count(t, 0, 1000000);
	paqm_touch(hash, PAQM_MEDIA, t + 500, NULL);
	f->bytes += bytes;
	paqm_count(t + 500, 0, 1000000);
	return f;
}

#define PAQM_TWICE 131072 /* a tick is 2^20 ns */

/* Of those that send too much, who leaves young is told from who stays, once. */
static void paqm_kunit_leaves_young(struct kunit *test)
{
	u32 t = 1000, i;

	paqm_make(test, 64);
	paqm_lives(test, paqm_nth(1), t, PAQM_TWICE);
	paqm_lives(test, paqm_nth(2), t, PAQM_TWICE);
	paqm_lives(test, paqm_nth(3), t, PAQM_TWICE / 2); /* it follows */
	t += 500 + PAQM_FLOW_ACTIVE_TICKS;
	paqm_touch(paqm_nth(1), PAQM_MEDIA, t, NULL);
	paqm_count(t, 0, 1000000); /* they count still */
	KUNIT_EXPECT_EQ(test, paqm_seen.media, 3);
	KUNIT_EXPECT_EQ(test, paqm_seen.left, 0);
	KUNIT_EXPECT_EQ(test, paqm_seen.young, 2);
	/* windows of silence, after which nothing else tells of what it sent */
	paqm_flows_mark(&paqm_table);
	for (i = 0; i < 2; i++) {
		paqm_count(t + 1, 250, 1000000);
		KUNIT_EXPECT_EQ(test, paqm_seen.media, 1);
		KUNIT_EXPECT_EQ(test, paqm_seen.left, !i);
		KUNIT_EXPECT_EQ(test, paqm_seen.stayed, 0);
	}
	for (i = 0; i < 2; i++) {
		t = 1000 + PAQM_FLOW_YOUNG_TICKS + i;
		paqm_touch(paqm_nth(1), PAQM_MEDIA, t, NULL);
		paqm_count(t, 0, 1000000);
		KUNIT_EXPECT_EQ(test, paqm_seen.left, 0);
		KUNIT_EXPECT_EQ(test, paqm_seen.stayed, !i);
	}
}

/* Where most of these leave young, who sends far too much is not known before it has stayed. */
static void paqm_kunit_rotating(struct kunit *test)
{
	struct paqm_flow *f;
	u32 t = 1000;

	paqm_make(test, 64);
	paqm_rotating = true;
	f = paqm_lives(test, paqm_nth(1), t, PAQM_TWICE / 2); /* it follows */
	KUNIT_EXPECT_TRUE(test, f->every & PAQM_KNOWN);
	paqm_lives(test, paqm_nth(2), t, PAQM_TWICE);
	KUNIT_EXPECT_EQ(test, paqm_seen.newcomers, 1);
	KUNIT_EXPECT_EQ(test, paqm_seen.takers, 1);
	paqm_count(t + 501 + PAQM_FLOW_ACTIVE_TICKS, 0, 1000000);
	KUNIT_EXPECT_EQ(test, paqm_seen.left, 1); /* as if it had been known */
	KUNIT_EXPECT_EQ(test, paqm_seen.passed, 1);

	t = 5000;
	f = paqm_lives(test, paqm_nth(3), t, PAQM_TWICE);
	f->bytes += 3 * PAQM_TWICE;
	t += PAQM_FLOW_YOUNG_TICKS - 1;
	paqm_touch(paqm_nth(3), PAQM_MEDIA, t, NULL);
	paqm_count(t, 0, 1000000);
	KUNIT_EXPECT_EQ(test, paqm_seen.stayed, 0);
	KUNIT_EXPECT_EQ(test, paqm_seen.newcomers, 0); /* it follows in the mean */
	KUNIT_EXPECT_TRUE(test, f->every & PAQM_KNOWN);

	t = 10000;
	f = paqm_lives(test, paqm_nth(4), t, 10 * PAQM_TWICE);
	t += PAQM_FLOW_YOUNG_TICKS - 1;
	paqm_touch(paqm_nth(4), PAQM_MEDIA, t, NULL);
	paqm_count(t, 0, 1000000);
	KUNIT_EXPECT_FALSE(test, f->every & PAQM_KNOWN);
	paqm_touch(paqm_nth(4), PAQM_MEDIA, t + 1, NULL);
	paqm_count(t + 1, 0, 1000000);
	KUNIT_EXPECT_TRUE(test, f->every & PAQM_KNOWN);
	KUNIT_EXPECT_EQ(test, paqm_seen.stayed, 1);
	KUNIT_EXPECT_EQ(test, paqm_seen.takers, 1);
	paqm_rotating = false;
}

/* A flow that lives as above, maybe once more. How many are counted as left then? */
static noinline u32 paqm_visits(struct kunit *test, struct paqm_flow *f, u64 hash, u32 t)
{
	bool known;

	paqm_touch(hash, PAQM_MEDIA, t, NULL);
	paqm_count(t, 0, 1000000);
	paqm_touch(hash, PAQM_MEDIA, t + 500, NULL);
	f->bytes += PAQM_TWICE;
	paqm_count(t + 500, 0, 1000000);
	known = f->every & PAQM_KNOWN;
	paqm_count(t + 501 + PAQM_FLOW_ACTIVE_TICKS, 0, 1000000);
	KUNIT_EXPECT_TRUE(test, known && !(f->every & PAQM_KNOWN));
	return paqm_seen.left;
}

/* Who uses two ports in turn leaves with each, again and again; who pauses does not. */
static void paqm_kunit_comes_again(struct kunit *test)
{
	struct paqm_flow *one, *other;
	u32 t = 1000, i;

	paqm_make(test, 64);
	one = paqm_new(test, paqm_nth(1), PAQM_MEDIA, t);
	KUNIT_EXPECT_EQ(test, paqm_visits(test, one, paqm_nth(1), t), 1);
	paqm_count(t + 502 + PAQM_FLOW_ACTIVE_TICKS, 0, 1000000);
	KUNIT_EXPECT_EQ(test, paqm_seen.left, 0); /* once */
	KUNIT_EXPECT_EQ(test, paqm_seen.young, 0);
	KUNIT_EXPECT_EQ(test, paqm_visits(test, one, paqm_nth(1), t + 1500), 0);
	KUNIT_EXPECT_EQ(test, paqm_seen.stayed, 0);

	t = 5000;
	other = paqm_new(test, paqm_nth(2), PAQM_MEDIA, t);
	for (i = 0; i < 4; i++, t += 3000) {
		KUNIT_EXPECT_EQ(test, paqm_visits(test, other, paqm_nth(2), t), 1);
		KUNIT_EXPECT_EQ(test, paqm_visits(test, one, paqm_nth(1), t + 1500), 1);
	}
}

/* That it has stayed once does not excuse it the next time. */
static void paqm_kunit_stayed_before(struct kunit *test)
{
	struct paqm_flow *f;
	u32 t = 1000, i;

	paqm_make(test, 64);
	f = paqm_lives(test, paqm_nth(1), t, PAQM_TWICE);
	for (i = 900; i < PAQM_FLOW_YOUNG_TICKS + 400; i += 400) {
		KUNIT_EXPECT_EQ(test, paqm_seen.stayed, 0);
		paqm_touch(paqm_nth(1), PAQM_MEDIA, t + i, NULL);
		paqm_count(t + i, 0, 1000000);
	}
	KUNIT_EXPECT_EQ(test, paqm_seen.stayed, 1);
	t += i + 1 + PAQM_FLOW_ACTIVE_TICKS;
	paqm_count(t, 0, 1000000);
	KUNIT_EXPECT_EQ(test, paqm_seen.left, 0);
	KUNIT_EXPECT_TRUE(test, f->every & PAQM_KNOWN);
	KUNIT_EXPECT_EQ(test, paqm_visits(test, f, paqm_nth(1), t), 1);
}

/* Two that leave are enough, but only until the next port of such a sender would be seen. */
static void paqm_kunit_rotation(struct kunit *test)
{
	const u32 last = 2 * (PAQM_FLOW_ACTIVE_TICKS + 250);
	struct paqm_census *c = &paqm_seen;
	struct paqm_rotation r = {};
	u32 t = -1000, i;

	paqm_make(test, 64);
	c->left = 1;
	KUNIT_EXPECT_FALSE(test, paqm_newcomers_rotate(&r, c, t, 250, true));
	KUNIT_EXPECT_TRUE(test, paqm_newcomers_rotate(&r, c, t, 250, true));
	c->left = 0;
	KUNIT_EXPECT_TRUE(test, paqm_newcomers_rotate(&r, c, t + last - 1, 250, true));
	KUNIT_EXPECT_FALSE(test, paqm_newcomers_rotate(&r, c, t + last, 250, true));
	t += 60000;
	c->young = 1; /* another one comes, and is seen through at once */
	KUNIT_EXPECT_TRUE(test, paqm_newcomers_rotate(&r, c, t, 250, true));
	c->young = 0;
	t += last - 1;
	c->passed = 1; /* or has gone before that */
	KUNIT_EXPECT_TRUE(test, paqm_newcomers_rotate(&r, c, t, 250, true));
	c->passed = 0;
	KUNIT_EXPECT_TRUE(test, paqm_newcomers_rotate(&r, c, t + last - 1, 250, true));
	c->stayed = 1;
	KUNIT_EXPECT_FALSE(test, paqm_newcomers_rotate(&r, c, t, 250, true));
	c->stayed = 0;
	c->left = 9;
	KUNIT_EXPECT_TRUE(test, paqm_newcomers_rotate(&r, c, t, 250, true));
	c->left = 0;
	for (i = 0; i < 256; i++)
		paqm_newcomers_rotate(&r, c, t, 250, false);
	KUNIT_EXPECT_TRUE(test, paqm_newcomers_rotate(&r, c, t, 250, false));
	for (i = 0; i < 256; i++)
		paqm_newcomers_rotate(&r, c, t, 250, true);
	KUNIT_EXPECT_FALSE(test, paqm_newcomers_rotate(&r, c, t, 250, true));
}

static struct kunit_case paqm_newcomer_cases[] = {
	KUNIT_CASE(paqm_kunit_newcomers),
	KUNIT_CASE(paqm_kunit_leaves_young),
	KUNIT_CASE(paqm_kunit_rotating),
	KUNIT_CASE(paqm_kunit_comes_again),
	KUNIT_CASE(paqm_kunit_stayed_before),
	KUNIT_CASE(paqm_kunit_rotation),
	{}
};

static struct kunit_suite paqm_newcomer_suite = {
	.name = "paqm_newcomers",
	.exit = paqm_flows_exit,
	.test_cases = paqm_newcomer_cases,
};
kunit_test_suite(paqm_newcomer_suite);
