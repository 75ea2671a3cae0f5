// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit suite of the census: rates, strikes, what flows are entitled to, hosts.
 */
#include <kunit/test.h>
#include "flow_table.h"

/* Every flow its rate, whatever wraps: bytes between two marks over the window. */
static void paqm_kunit_rates(struct kunit *test)
{
	struct paqm_flow *f;
	u32 i;

	paqm_make(test, 64);
	f = paqm_new(test, paqm_nth(7), PAQM_MEDIA, 1);
	paqm_count(1, 200, 0); /* its first window says nothing yet */
	KUNIT_EXPECT_EQ(test, paqm_gauge(f)->rate, 0);
	paqm_know(f);
	f->bytes = U32_MAX - 1000;
	paqm_flows_mark(&paqm_table);
	for (i = 0; i < 12; i++) {
		f->bytes += 25000; /* 1 Mbit/s in 200 ms */
		paqm_count(1, 200, 0);
		paqm_flows_mark(&paqm_table);
	}
	KUNIT_EXPECT_EQ(test, paqm_gauge(f)->rate, 1000000);
	/* a window that is too short changes nothing */
	f->bytes += 10000000;
	paqm_count(1, PAQM_WINDOW_MIN_NS / NSEC_PER_MSEC - 1, 0);
	KUNIT_EXPECT_EQ(test, paqm_gauge(f)->rate, 1000000);
}

static struct paqm_flow *paqm_fast;

/* Its next packet comes, and goes through half of the range of 32 bits. */
static void paqm_turn(void)
{
	paqm_at_barrier = NULL;
	paqm_flow_add(&paqm_table, paqm_fast, 1000);
}

/* A flow that sends @bytes in packets of 1 MB in a window of @ms; its rate then. */
static u64 paqm_fast_rate(u64 bytes, u32 ms)
{
	paqm_flows_mark(&paqm_table);
	for (; bytes; bytes -= 1000000)
		paqm_flow_add(&paqm_table, paqm_fast, 1000000);
	paqm_gauge(paqm_fast)->rate = 0; /* not smoothed */
	paqm_count(1, ms, 0);
	return paqm_gauge(paqm_fast)->rate;
}

/* Links of 400 and 800 Gbit/s: a window has more bytes than 32 bits count. */
static void paqm_kunit_fast(struct kunit *test)
{
	struct paqm_flow *tcp;
	u32 n, seen;

	paqm_make(test, 64);
	paqm_fast = paqm_new(test, paqm_nth(7), PAQM_MEDIA, 1);
	paqm_count(1, 200, 0);
	paqm_know(paqm_fast);
	for (n = 0; n < 20; n++) /* from everywhere in the range */
		KUNIT_EXPECT_EQ(test, paqm_fast_rate(12500000000ULL, 250), 400000000000ULL);
	KUNIT_EXPECT_EQ(test, paqm_fast_rate(25000000000ULL, 250), 800000000000ULL);
	KUNIT_EXPECT_EQ(test, paqm_fast_rate(500000000000ULL, 5000), 800000000000ULL);

	/* the walker reads the one half before a turn and the other after it */
	while (paqm_fast->bytes + 1000000 > 1000000 &&
	       !((paqm_fast->bytes ^ (paqm_fast->bytes + 1000000)) >> 31))
		paqm_flow_add(&paqm_table, paqm_fast, 1000000);
	paqm_flow_add(&paqm_table, paqm_fast, (paqm_fast->bytes | S32_MAX) - paqm_fast->bytes);
	paqm_flows_mark(&paqm_table);
	seen = paqm_gauge(paqm_fast)->turns;
	paqm_at_barrier = paqm_turn;
	paqm_count(1, 250, 0);
	KUNIT_EXPECT_EQ(test, (u16)(paqm_gauge(paqm_fast)->turns - seen), 1);
	KUNIT_EXPECT_LT(test, paqm_gauge(paqm_fast)->rate, 800000000000ULL);
	KUNIT_EXPECT_EQ(test, paqm_fast_rate(12500000000ULL, 250), 400000000000ULL);

	/* a slot that is taken again begins at nothing */
	tcp = paqm_new(test, paqm_nth(7 + (1ULL << 40)), PAQM_ELASTIC, 1 + 2 * PAQM_AGE);
	KUNIT_EXPECT_EQ(test, paqm_gauge(tcp)->turns, 0);
	/* an elastic flow is no mouse for ever more, whatever its 32 bits say */
	for (n = 0; n < 4295; n++)
		paqm_flow_add(&paqm_table, tcp, 1000000);
	KUNIT_EXPECT_LT(test, tcp->bytes, PAQM_MOUSE_BYTES * 4);
	KUNIT_EXPECT_TRUE(test, paqm_gauge(tcp)->turns);
}

/* The flow is sent a message, if that is due in this round; @last: of the message before. */
static void paqm_tell(const struct paqm_flow *f, u32 round, u32 *last)
{
	if (round - *last < paqm_every(f))
		return;
	*last = round;
	paqm_flow_more(&paqm_table, f)->told.messages++;
}

/* A window of 200 ms in which a flow sends @bytes and is told 1 Mbit/s. */
static void paqm_window(struct paqm_flow *f, u32 bytes)
{
	paqm_flows_mark(&paqm_table);
	f->bytes += bytes;
	paqm_count(1, 200, 1000000);
}

/* Only messages that a flow does not heed make the next ones rarer, not that it was told none. */
static void paqm_kunit_vain(struct kunit *test)
{
	struct paqm_flow_more *more;
	u32 i, last = 0, told = 0;
	struct paqm_flow *f;

	paqm_make(test, 64);
	f = paqm_touch(paqm_nth(1), PAQM_MEDIA, 1, NULL);
	more = paqm_flow_more(&paqm_table, f);
	more->told.messages = 250;
	paqm_count(1, 0, 0);
	paqm_know(f);
	/* its advice has expired; the budget has nothing for it, say */
	for (i = 0; i < 100; i++) {
		paqm_window(f, 40000);
		KUNIT_EXPECT_EQ(test, paqm_every(f), 1);
	}
	/* then its messages are lost: as many in every second round, every fourth, ... */
	for (i = 0; paqm_every(f) < 8; i++) {
		u8 before = more->told.messages;

		KUNIT_ASSERT_LT(test, i, 100);
		paqm_tell(f, i, &last);
		told += (u8)(more->told.messages - before);
		paqm_window(f, 40000);
	}
	KUNIT_EXPECT_EQ(test, told, 23); /* one before the first window counts with it */
	KUNIT_EXPECT_EQ(test, i, 7 + 16 + 32);
	/* one arrives: it is soon told in every round again */
	for (i = 0; i < 5; i++)
		paqm_window(f, 25000);
	KUNIT_EXPECT_EQ(test, paqm_every(f), 1);
	/* of the past nothing counts */
	while (paqm_gauge(f)->deaf)
		paqm_window(f, 25000);
	more->told.messages += 30;
	for (i = 0; i < 8; i++)
		paqm_window(f, 40000);
	KUNIT_EXPECT_EQ(test, paqm_every(f), 1);
}

/* Who does not do as told: asked ever more rarely, policed only far above the rate. */
static void paqm_kunit_strikes(struct kunit *test)
{
	u32 i, every = 1, last_deaf = 0, last_wild = 0, asked = 0;
	struct paqm_flow *good, *deaf, *wild;

	paqm_make(test, 64);
	good = paqm_touch(paqm_nth(1), PAQM_MEDIA, 1, NULL);
	deaf = paqm_touch(paqm_nth(2), PAQM_MEDIA, 1, NULL);
	wild = paqm_touch(paqm_nth(3), PAQM_MEDIA, 1, NULL);
	paqm_count(1, 0, 0);
	paqm_know(good);
	paqm_know(deaf);
	paqm_know(wild);
	for (i = 0; i < 2000; i++) {
		paqm_flows_mark(&paqm_table);
		good->bytes += 25000; /* 1.0 Mbit/s */
		deaf->bytes += 40000; /* 1.6 */
		wild->bytes += 100000; /* 4.0 */
		paqm_tell(deaf, i + 1, &last_deaf);
		paqm_tell(wild, i + 1, &last_wild);
		asked += last_deaf == i + 1;
		paqm_count(1, 200, 1000000);
		KUNIT_EXPECT_GE(test, paqm_every(deaf), every);
		KUNIT_EXPECT_EQ(test, !!(wild->every & PAQM_POLICED), !!paqm_gauge(wild)->drop);
		KUNIT_EXPECT_TRUE(test, wild->every & PAQM_DEAF);
		every = paqm_every(deaf);
		KUNIT_EXPECT_EQ(test, good->every & ~PAQM_CLAIM, PAQM_KNOWN);
		KUNIT_EXPECT_EQ(test, paqm_gauge(good)->drop, 0);
		KUNIT_EXPECT_EQ(test, paqm_gauge(deaf)->drop, 0);
		if (i < paqm_deaf_strike)
			KUNIT_EXPECT_EQ(test, paqm_gauge(wild)->drop, 0);
	}
	KUNIT_EXPECT_EQ(test, every, PAQM_EVERY_MAX);
	KUNIT_EXPECT_LE(test, asked, 5 * 8 + 2000 / PAQM_EVERY_MAX);
	KUNIT_EXPECT_EQ(test, paqm_seen.deaf, 2);
	/* what is left of 4 Mbit/s is the fair rate */
	KUNIT_EXPECT_GE(test, paqm_gauge(wild)->drop, U32_MAX / 100 * 74);
	KUNIT_EXPECT_LE(test, paqm_gauge(wild)->drop, U32_MAX / 100 * 76);
	KUNIT_EXPECT_EQ(test, paqm_seen.policed, 1);
	/* one window within the rate does not wipe out all that was before */
	paqm_flows_mark(&paqm_table);
	wild->bytes += 25000;
	paqm_count(1, 200, 1000000);
	KUNIT_EXPECT_GE(test, (u16)paqm_gauge(wild)->deaf, 400);
	for (i = 0; i < 20; i++) { /* it mends its ways */
		paqm_flows_mark(&paqm_table);
		wild->bytes += 25000;
		deaf->bytes += 25000;
		paqm_count(1, 200, 1000000);
	}
	KUNIT_EXPECT_EQ(test, paqm_gauge(wild)->drop, 0);
	KUNIT_EXPECT_EQ(test, wild->every & ~PAQM_CLAIM, PAQM_KNOWN);
	KUNIT_EXPECT_EQ(test, deaf->every & ~PAQM_CLAIM, PAQM_KNOWN);
}

/* What a flow sends beyond its rate does not count: each of them has one share. */
static void paqm_kunit_entitled(struct kunit *test)
{
	static const u32 deaf_mbit[] = { 2, 4, 8, 20, 100 };
	struct paqm_flow *f[16];
	u64 fair, first = 0;
	u32 i, n, d, k;

	for (k = 0; k < ARRAY_SIZE(deaf_mbit); k++) {
		for (n = 2; n <= 16; n++) {
			for (d = 1; d < n; d++) {
				paqm_make(test, 64);
				for (i = 0; i < n; i++)
					f[i] = paqm_new(test, paqm_nth(i + 1), PAQM_MEDIA, 1);
				paqm_count(1, 0, 0);
				for (i = 0; i < n; i++)
					paqm_know(f[i]);
				fair = 10000000 / n;
				for (i = 0; i < 8 * n; i++) { /* followers do as told */
					if (!(i % n)) {
						paqm_flows_mark(&paqm_table);
						first = fair;
					}
					f[i % n]->bytes += (i % n < d ? deaf_mbit[k] * 1000000 :
									(u32)fair) / 40;
					if (i % n < n - 1)
						continue;
					paqm_count(1, 200, fair);
					fair = paqm_mm_solve(&paqm_seen.mm, 10000000, 1000,
							     10000000);
				}
				/* told rates neither swing nor sink */
				KUNIT_EXPECT_EQ(test, fair, first);
				KUNIT_EXPECT_GE(test, fair, 10000000 / n);
				paqm_flows_free(&paqm_table);
			}
		}
	}
}

/*
 * What a flow used before it fell is not given away at once if it may have fallen for a queue, in
 * some seconds it is; if nothing has waited it wants less.
 */
static void paqm_kunit_held(struct kunit *test)
{
	struct paqm_flow_gauge *g;
	struct paqm_flow *f;
	u64 held;
	u32 n;

	paqm_make(test, 64);
	f = paqm_new(test, paqm_nth(7), PAQM_MEDIA, 1);
	paqm_count(1, 200, 0);
	paqm_know(f);
	g = paqm_gauge(f);
	for (n = 0; n < 12; n++)
		paqm_window(f, 25000); /* 1 Mbit/s */
	KUNIT_EXPECT_EQ(test, g->held, 1000000);
	paqm_window(f, 6250);
	KUNIT_EXPECT_EQ(test, g->held, 250000);
	KUNIT_EXPECT_EQ(test, paqm_seen.mm.greedy, 0);
	for (n = 0; n < 12; n++)
		paqm_window(f, 25000);
	paqm_queued = true;
	for (n = 0; n < 100; n++) { /* 0.25 Mbit/s from here on */
		held = g->held;
		paqm_window(f, 6250);
		paqm_queued = false; /* it has not to wait for as long as it is held */
		KUNIT_EXPECT_EQ(test, g->held, max(g->rate, held - held / PAQM_MM_HOLD_DIV));
		if (g->held < 850000) /* else it may take its rate still */
			KUNIT_EXPECT_EQ(test, paqm_seen.held, g->held - g->rate);
		KUNIT_EXPECT_EQ(test, paqm_seen.mm.greedy, g->held >= 850000);
	}
	KUNIT_EXPECT_EQ(test, g->held, 250000);
	KUNIT_EXPECT_EQ(test, paqm_seen.held, 0);
	/* no more is held than a flow is told, whatever it has sent */
	paqm_queued = true;
	for (n = 0; n < 12; n++)
		paqm_window(f, 250000); /* 10 Mbit/s */
	KUNIT_EXPECT_EQ(test, g->held, g->rate);
	KUNIT_EXPECT_EQ(test, paqm_seen.mm.greedy, 1);
	for (n = 0; n < 2; n++)
		paqm_window(f, 6250);
	KUNIT_EXPECT_LE(test, g->held, 1000000);
	KUNIT_EXPECT_GT(test, g->held, 850000);
	/* and nothing for who may have left */
	paqm_count(1 + PAQM_FLOW_SENDING_TICKS + 1, 0, 1000000);
	KUNIT_EXPECT_EQ(test, g->held, g->rate);
	/* unless it is silent for half as long as a rule */
	paqm_flows_mark(&paqm_table);
	f->bytes += 25000;
	paqm_count(1 + 100, 200, 1000000);
	paqm_count(1 + 208, 0, 1000000);
	KUNIT_EXPECT_EQ(test, paqm_seen.sending, 1);
	paqm_count(1 + 209, 0, 1000000);
	KUNIT_EXPECT_EQ(test, paqm_seen.sending, 0);
	paqm_queued = false;
	/* measured as an elastic flow, it begins with what it uses */
	g->held = 0;
	paqm_count(1, 0, 1000000);
	KUNIT_EXPECT_EQ(test, g->held, g->rate);
	KUNIT_EXPECT_EQ(test, paqm_seen.held, 0);
}

/* What IP has of a flow's bytes on the link: about that of all, or its own. */
static void paqm_kunit_part(struct kunit *test)
{
	const u32 all = PAQM_IP_ALL * 9 / 10;
	struct paqm_flow_more more = {};
	u32 n;

	KUNIT_EXPECT_EQ(test, paqm_flow_own_part(&more, all), 0);
	for (n = 0; n < 50; n++)
		paqm_flow_note_part(&more, all, all + (n & 1 ? 300 : -300));
	KUNIT_EXPECT_EQ(test, paqm_flow_own_part(&more, all), 0);
	/* it takes some packets until smaller ones are believed */
	paqm_flow_note_part(&more, all, PAQM_IP_ALL / 2);
	KUNIT_EXPECT_GT(test, more.ip_part, all * 9 / 10);
	for (n = 0; n < 100; n++)
		paqm_flow_note_part(&more, all, PAQM_IP_ALL / 2);
	KUNIT_EXPECT_GE(test, paqm_flow_own_part(&more, all), PAQM_IP_ALL / 2);
	KUNIT_EXPECT_LE(test, paqm_flow_own_part(&more, all), PAQM_IP_ALL / 2 + 4);
	/* where nothing is known of all; `overhead` may be negative */
	more.ip_part = 0;
	paqm_flow_note_part(&more, 0, PAQM_IP_ALL / 2);
	KUNIT_EXPECT_EQ(test, more.ip_part, PAQM_IP_ALL / 2);
	for (n = 0; n < 50; n++)
		paqm_flow_note_part(&more, 0, 4 * PAQM_IP_ALL);
	KUNIT_EXPECT_EQ(test, more.ip_part, 2 * PAQM_IP_ALL - 1);
}

/* Judged by what it was told, where that is less than what all are told now. */
static void paqm_kunit_knows(struct kunit *test)
{
	const u32 rate[] = { paqm_f32_encode(300000, 0), paqm_f32_encode(500000, 0) };
	struct paqm_walk w = { .now_tick = 5000, .link_q24 = PAQM_Q24_ONE };
	struct paqm_flow_more more = {}, *m = &more;
	struct paqm_told *told = &more.told;
	struct paqm_flow *f;
	u32 n;

	KUNIT_EXPECT_EQ(test, paqm_heed_knows(m, &w, 800000), 800000); /* no message */
	paqm_told_message(told, rate[1], 5000);
	KUNIT_EXPECT_EQ(test, paqm_heed_knows(m, &w, 800000), 500000);
	KUNIT_EXPECT_EQ(test, paqm_heed_knows(m, &w, 400000), 400000);
	w.link_q24 = PAQM_Q24(110, 100); /* messages say what IP carries */
	KUNIT_EXPECT_EQ(test, paqm_heed_knows(m, &w, 800000), 550000);
	w.ip_part = PAQM_IP_ALL * 10 / 11; /* or less of the packets of this flow */
	m->ip_part = PAQM_IP_ALL * 10 / 14;
	KUNIT_EXPECT_GT(test, paqm_heed_knows(m, &w, 800000), 699000);
	KUNIT_EXPECT_LT(test, paqm_heed_knows(m, &w, 800000), 701000);
	m->ip_part = 0;
	w.link_q24 = 0; /* no messages any more */
	KUNIT_EXPECT_EQ(test, paqm_heed_knows(m, &w, 800000), 800000);
	w.link_q24 = PAQM_Q24_ONE;
	/* the lowest counts until the answer to a higher one must have come, */
	paqm_told_message(told, rate[0], 5100);
	paqm_told_message(told, rate[1], 5200);
	w.now_tick = 5200;
	KUNIT_EXPECT_EQ(test, paqm_heed_knows(m, &w, 800000), 300000);
	for (n = 5400; n < 5000 + 2 * PAQM_TOLD_LOW_TICKS; n += 200)
		paqm_told_message(told, rate[1], n);
	w.now_tick = told->low_tick + PAQM_TOLD_LOW_TICKS - 1;
	KUNIT_EXPECT_EQ(test, paqm_heed_knows(m, &w, 800000), 300000);
	w.now_tick++;
	KUNIT_EXPECT_EQ(test, paqm_heed_knows(m, &w, 800000), 500000);
	KUNIT_EXPECT_LT(test, w.now_tick, 5100 + 3 * PAQM_TOLD_LOW_TICKS);
	/* or until long after the last one; one that is under way is none from the past */
	w.now_tick = told->tick + 2 * PAQM_TOLD_LOW_TICKS - 1;
	KUNIT_EXPECT_EQ(test, paqm_heed_knows(m, &w, 800000), 500000);
	w.now_tick++;
	KUNIT_EXPECT_EQ(test, paqm_heed_knows(m, &w, 800000), 800000);
	w.now_tick = told->tick - 1;
	KUNIT_EXPECT_EQ(test, paqm_heed_knows(m, &w, 800000), 800000);

	/* a flow that uses all it knows of leaves nothing to others */
	paqm_make(test, 64);
	f = paqm_new(test, paqm_nth(7), PAQM_MEDIA, 1);
	paqm_count(1, 200, 0);
	paqm_know(f);
	paqm_told_message(&paqm_flow_more(&paqm_table, f)->told, rate[1], 1);
	for (n = 0; n < 12; n++)
		paqm_window(f, 12500); /* 0.5 Mbit/s, of 1 */
	KUNIT_EXPECT_EQ(test, paqm_seen.mm.greedy, 0);
	paqm_link_q24 = PAQM_Q24_ONE;
	paqm_window(f, 12500);
	KUNIT_EXPECT_EQ(test, paqm_seen.mm.greedy, 1);
	KUNIT_EXPECT_EQ(test, paqm_seen.follow_rate, 500000);
	paqm_window(f, 1250);
	KUNIT_EXPECT_EQ(test, paqm_seen.mm.greedy, 0);
	/* another one in its slot knows of nothing */
	f = paqm_new(test, paqm_nth(7 + (1ULL << 40)), PAQM_MEDIA, 1 + 2 * PAQM_AGE);
	KUNIT_EXPECT_EQ(test, paqm_flow_more(&paqm_table, f)->told.low, 0);
}

/* Whose addresses are hosts: those on the side with fewer, but not where that is a single one. */
static void paqm_kunit_side(struct kunit *test)
{
	static const struct {
		u32 sources, destinations;
		enum paqm_side before, want;
	} t[] = {
		{ 0, 0, PAQM_SIDE_NONE, PAQM_SIDE_NONE },
		{ 1, 1, PAQM_SIDE_SOURCE, PAQM_SIDE_NONE },
		{ 4, 1, PAQM_SIDE_NONE, PAQM_SIDE_SOURCE },
		{ 1, 4, PAQM_SIDE_SOURCE, PAQM_SIDE_DESTINATION },
		{ 3, 7, PAQM_SIDE_DESTINATION, PAQM_SIDE_SOURCE },
		{ 7, 3, PAQM_SIDE_SOURCE, PAQM_SIDE_DESTINATION },
		{ 3, 3, PAQM_SIDE_NONE, PAQM_SIDE_SOURCE },
		{ 3, 3, PAQM_SIDE_DESTINATION, PAQM_SIDE_DESTINATION },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(t); i++)
		KUNIT_EXPECT_EQ(test, paqm_hosts_side(t[i].sources, t[i].destinations,
						      t[i].before), t[i].want);
}

#define PAQM_CROWD 100

/* Hosts are equal: a hundred flows of one, sound and video of another, one flow of a third. */
static void paqm_kunit_hosts(struct kunit *test)
{
	static const u64 key[] = { 1, 2 };
	static struct paqm_flow *f[PAQM_CROWD + 3];
	struct paqm_walk w = {
		.now_tick = 1,
		.window_ns = 200 * (u64)NSEC_PER_MSEC,
		.window_min_ns = PAQM_WINDOW_MIN_NS,
		.elastic_ticks = PAQM_FLOW_ACTIVE_TICKS,
		.max_every = 40,
		.key = key,
	};
	const struct paqm_host *of[3];
	u64 fair = 0;
	u32 i, n, round;

	w.hosts = kunit_kzalloc(test, sizeof(*w.hosts), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, w.hosts);
	paqm_make(test, 1024);
	for (i = 0; i < ARRAY_SIZE(f); i++) {
		struct paqm_tuple *t;

		n = i < PAQM_CROWD ? 0 : i < PAQM_CROWD + 2 ? 1 : 2;
		f[i] = paqm_new(test, paqm_nth(i + 1), PAQM_MEDIA, 1);
		t = &paqm_flow_more(&paqm_table, f[i])->tuple;
		memset(t->saddr, 0, sizeof(t->saddr));
		t->saddr[3] = n;
		of[n] = &w.hosts->host[paqm_place(t, PAQM_SIDE_SOURCE, key)];
	}
	/* not known yet: nobody is a host */
	paqm_flows_walk(&paqm_table, &w, &paqm_seen);
	KUNIT_EXPECT_EQ(test, paqm_seen.media, ARRAY_SIZE(f));
	KUNIT_EXPECT_EQ(test, paqm_seen.takers, 0);
	KUNIT_EXPECT_EQ(test, w.hosts->side, PAQM_SIDE_NONE);
	for (i = 0; i < ARRAY_SIZE(f); i++)
		paqm_know(f[i]);
	for (round = 0; round < 12; round++) {
		paqm_flows_mark(&paqm_table);
		for (i = 0; i < PAQM_CROWD; i++) /* 24 Mbit/s together */
			f[i]->bytes += 6000;
		f[PAQM_CROWD]->bytes += 1250; /* 50 kbit/s */
		f[PAQM_CROWD + 1]->bytes += (fair ? (u32)fair - 55000 : 1000000) / 40;
		f[PAQM_CROWD + 2]->bytes += ((u32)fair ?: 1000000) / 40;
		w.fair = fair;
		w.fair_least = fair;
		w.fair_most = fair;
		w.fair_new = fair;
		w.equal = fair;
		paqm_flows_walk(&paqm_table, &w, &paqm_seen);
		fair = paqm_mm_solve(&paqm_seen.mm, 6000000, 1000, 6000000);
		paqm_hosts_divide(w.hosts, fair, true);
		KUNIT_EXPECT_EQ(test, w.hosts->side, PAQM_SIDE_SOURCE);
		KUNIT_EXPECT_EQ(test, paqm_seen.takers, 3);
		KUNIT_EXPECT_EQ(test, paqm_seen.mm.greedy, 3);
		KUNIT_EXPECT_EQ(test, fair, 2000000);
	}
	KUNIT_EXPECT_EQ(test, of[0]->parts, PAQM_CROWD * PAQM_PART_ONE);
	KUNIT_EXPECT_EQ(test, of[0]->flows, PAQM_CROWD);
	KUNIT_EXPECT_EQ(test, paqm_host_part(of[0], fair), (u32)fair / PAQM_CROWD);
	/* what sound does not use of a half is video's */
	KUNIT_EXPECT_GE(test, paqm_host_part(of[1], fair), (u32)fair / 100 * 96);
	KUNIT_EXPECT_LE(test, paqm_host_part(of[1], fair), fair - 50000);
	KUNIT_EXPECT_EQ(test, of[2]->parts, PAQM_PART_ONE);
	KUNIT_EXPECT_EQ(test, paqm_seen.deaf, PAQM_CROWD);
	KUNIT_EXPECT_EQ(test, paqm_seen.deaf_q16, PAQM_CROWD * (PAQM_Q16_ONE / PAQM_CROWD));
	for (i = 0; i < ARRAY_SIZE(f); i++) {
		KUNIT_EXPECT_EQ(test, !!(f[i]->every & PAQM_SHARES), i < PAQM_CROWD + 2);
		KUNIT_EXPECT_EQ(test, !!(f[i]->every & PAQM_DEAF), i < PAQM_CROWD);
	}
	/* a newcomer of a known host is no further one, two of another host are one */
	for (i = 0; i < 3; i++) {
		f[i]->every = 0;
		paqm_flow_more(&paqm_table, f[i])->tuple.saddr[3] = i ? 3 : 1;
	}
	paqm_flows_walk(&paqm_table, &w, &paqm_seen);
	KUNIT_EXPECT_EQ(test, paqm_seen.newcomers, 3);
	KUNIT_EXPECT_EQ(test, paqm_seen.joining, 1);
	KUNIT_EXPECT_EQ(test, paqm_seen.takers, 3);
	for (i = 0; i < 3; i++) {
		paqm_know(f[i]);
		paqm_flow_more(&paqm_table, f[i])->tuple.saddr[3] = 0;
	}
	/* the others go: what is left has one host on both sides, whose flows are equal */
	w.now_tick += PAQM_FLOW_ACTIVE_TICKS + 1;
	for (i = 0; i < PAQM_CROWD; i++)
		WRITE_ONCE(f[i]->last_tick, w.now_tick);
	paqm_flows_walk(&paqm_table, &w, &paqm_seen);
	paqm_hosts_divide(w.hosts, fair, true);
	KUNIT_EXPECT_EQ(test, w.hosts->side, PAQM_SIDE_NONE);
	KUNIT_EXPECT_EQ(test, paqm_seen.takers, PAQM_CROWD);
	KUNIT_EXPECT_EQ(test, f[0]->every & PAQM_SHARES, 0);
	KUNIT_EXPECT_EQ(test, of[0]->parts, PAQM_PART_ONE);
	/* and without that option nobody knows of hosts */
	w.hosts = NULL;
	paqm_flows_walk(&paqm_table, &w, &paqm_seen);
	KUNIT_EXPECT_EQ(test, paqm_seen.takers, PAQM_CROWD);
}

static struct kunit_case paqm_census_cases[] = {
	KUNIT_CASE(paqm_kunit_rates),
	KUNIT_CASE(paqm_kunit_fast),
	KUNIT_CASE(paqm_kunit_vain),
	KUNIT_CASE(paqm_kunit_strikes),
	KUNIT_CASE(paqm_kunit_entitled),
	KUNIT_CASE(paqm_kunit_held),
	KUNIT_CASE(paqm_kunit_knows),
	KUNIT_CASE(paqm_kunit_part),
	KUNIT_CASE(paqm_kunit_side),
	KUNIT_CASE(paqm_kunit_hosts),
	{}
};

static struct kunit_suite paqm_census_suite = {
	.name = "paqm_census",
	.exit = paqm_flows_exit,
	.test_cases = paqm_census_cases,
};
kunit_test_suite(paqm_census_suite);
