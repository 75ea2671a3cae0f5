// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit suite of the flow table: claims, ageing, full sets, equal hashes, another size,
 * tables from one flow to a million.
 */
#include <kunit/test.h>
#include <linux/prandom.h>
#include <linux/sched.h>
#include "flow_table.h"

/* Times of the table as people read them. */
static void paqm_kunit_clock(struct kunit *test)
{
	u64 ns;

	for (ns = NSEC_PER_MSEC; ns < 40ULL * 86400 * NSEC_PER_SEC; ns *= 3) {
		s64 ms = paqm_flow_ms(paqm_flow_clock(ns));

		KUNIT_EXPECT_LE(test, abs(ms - (s64)paqm_div64(ns, NSEC_PER_MSEC)), 2);
	}
}

static void paqm_kunit_claim(struct kunit *test)
{
	struct paqm_flow *a, *b;
	bool fresh;

	paqm_make(test, 64);
	a = paqm_touch(paqm_nth(1), PAQM_MEDIA, 1000, &fresh);
	KUNIT_ASSERT_NOT_NULL(test, a);
	KUNIT_EXPECT_TRUE(test, fresh);
	a->bytes = 77;
	KUNIT_EXPECT_PTR_EQ(test, paqm_touch(paqm_nth(1), PAQM_MEDIA, 1000, &fresh), a);
	KUNIT_EXPECT_FALSE(test, fresh);
	b = paqm_touch(paqm_nth(2), PAQM_ELASTIC, 1001, &fresh);
	KUNIT_EXPECT_PTR_NE(test, a, b);
	KUNIT_EXPECT_TRUE(test, fresh);
	KUNIT_EXPECT_EQ(test, a->bytes, 77);
	KUNIT_EXPECT_EQ(test, b->bytes, 0);
	/* a filter moves a living flow */
	KUNIT_EXPECT_PTR_EQ(test, paqm_touch(paqm_nth(1), PAQM_ELASTIC, 1002, &fresh), a);
	KUNIT_EXPECT_FALSE(test, fresh);
	paqm_count(1002, 0, 0);
	KUNIT_EXPECT_EQ(test, paqm_seen.used, 2);
	KUNIT_EXPECT_EQ(test, paqm_seen.media, 0);
	KUNIT_EXPECT_EQ(test, paqm_seen.present, 2);
}

/* Silence: forgotten by the census first, then its slot may be taken. Time wraps. */
static void paqm_kunit_ageing(struct kunit *test)
{
	static const u32 begin[] = { 0, 1000, U32_MAX - 100, U32_MAX - PAQM_AGE };
	struct paqm_flow *a;
	bool fresh;
	u32 i, n, t;

	for (i = 0; i < ARRAY_SIZE(begin); i++) {
		t = begin[i];
		paqm_make(test, 64);
		a = paqm_touch(paqm_nth(5), PAQM_MEDIA, t, NULL);
		paqm_count(t + PAQM_FLOW_SENDING_TICKS, 0, 0);
		KUNIT_EXPECT_EQ(test, paqm_seen.sending, 1);
		paqm_count(t + PAQM_FLOW_SENDING_TICKS + 1, 0, 0);
		KUNIT_EXPECT_EQ(test, paqm_seen.sending, 0);
		paqm_count(t + PAQM_FLOW_ACTIVE_TICKS, 0, 0);
		KUNIT_EXPECT_EQ(test, paqm_seen.media, 1);
		paqm_count(t + PAQM_FLOW_ACTIVE_TICKS + 1, 0, 0);
		KUNIT_EXPECT_EQ(test, paqm_seen.media, 0);
		KUNIT_EXPECT_EQ(test, paqm_seen.used, 1);
		paqm_count(t + PAQM_AGE + 1, 0, 0);
		KUNIT_EXPECT_EQ(test, paqm_seen.used, 0);
		/* back in time: the same slot, and news to the census */
		KUNIT_EXPECT_PTR_EQ(test, a, paqm_touch(paqm_nth(5), PAQM_MEDIA,
							t + PAQM_FLOW_ACTIVE_TICKS, &fresh));
		KUNIT_EXPECT_FALSE(test, fresh);
		t += 2 * PAQM_FLOW_ACTIVE_TICKS + 1;
		KUNIT_EXPECT_PTR_EQ(test, paqm_touch(paqm_nth(5), PAQM_MEDIA, t, &fresh), a);
		KUNIT_EXPECT_TRUE(test, fresh);
		/* a full set yields its place to a new flow only when that is over age */
		for (n = 0; n < PAQM_WAYS; n++)
			KUNIT_EXPECT_NOT_NULL(test, paqm_touch(paqm_same_set(n), PAQM_MEDIA, t,
							       NULL));
		KUNIT_EXPECT_NULL(test, paqm_touch(paqm_same_set(100), PAQM_MEDIA,
						   t + PAQM_AGE, NULL));
		KUNIT_EXPECT_NOT_NULL(test, paqm_touch(paqm_same_set(100), PAQM_MEDIA,
						       t + PAQM_AGE + 1, &fresh));
		KUNIT_EXPECT_TRUE(test, fresh);
		KUNIT_EXPECT_EQ(test, paqm_table.overflow, 1);
		paqm_flows_free(&paqm_table);
	}
}

/* A flow that comes into an aged slot begins from nothing. */
static void paqm_kunit_reuse(struct kunit *test)
{
	struct paqm_flow *old[PAQM_WAYS], *f;
	u32 i, t = 10000;

	paqm_make(test, PAQM_WAYS); /* a single set */
	for (i = 0; i < PAQM_WAYS; i++)
		old[i] = paqm_new(test, paqm_nth(i + 1), PAQM_MEDIA, t);
	paqm_count(t, 0, 0);
	for (i = 0; i < PAQM_WAYS; i++)
		paqm_know(old[i]);
	paqm_flows_mark(&paqm_table);
	for (i = 0; i < PAQM_WAYS; i++)
		old[i]->bytes += 500000;
	for (i = 0; i < 20; i++) /* 20 Mbit/s where 1 was told */
		paqm_count(t, 200, 1000000);
	KUNIT_EXPECT_EQ(test, paqm_seen.policed, PAQM_WAYS);
	t += PAQM_AGE + 1;
	f = paqm_new(test, paqm_nth(99), PAQM_MEDIA, t);
	KUNIT_EXPECT_EQ(test, f->bytes, 0);
	KUNIT_EXPECT_EQ(test, f->every & ~PAQM_CLAIM, 0); /* not policed, not known, not deaf */
	KUNIT_EXPECT_EQ(test, f->over, 0);
	paqm_count(t, 200, 1000000);
	KUNIT_EXPECT_EQ(test, paqm_seen.used, 1);
	KUNIT_EXPECT_EQ(test, paqm_seen.policed, 0);
	KUNIT_EXPECT_EQ(test, paqm_gauge(f)->rate, 0);
	KUNIT_EXPECT_EQ(test, (u16)paqm_gauge(f)->deaf, 0);
}

/* Full sets: the ninth flow is not counted, that is counted; the others live on. */
static void paqm_kunit_overflow(struct kunit *test)
{
	bool fresh;
	u32 i;

	paqm_make(test, 1024);
	for (i = 0; i < 20; i++) {
		struct paqm_flow *f = paqm_touch(paqm_same_set(i), PAQM_MEDIA, 100, &fresh);

		KUNIT_EXPECT_EQ(test, !!f, i < PAQM_WAYS);
		if (f)
			KUNIT_EXPECT_TRUE(test, fresh);
	}
	KUNIT_EXPECT_EQ(test, paqm_table.overflow, 20 - PAQM_WAYS);
	for (i = 0; i < PAQM_WAYS; i++)
		KUNIT_EXPECT_NOT_NULL(test, paqm_touch(paqm_same_set(i), PAQM_MEDIA, 101, NULL));
	/* other sets are not concerned */
	KUNIT_EXPECT_NOT_NULL(test, paqm_touch(paqm_same_set(0) + 1, PAQM_MEDIA, 101, NULL));
	paqm_count(101, 0, 0);
	KUNIT_EXPECT_EQ(test, paqm_seen.media, PAQM_WAYS + 1);
	paqm_table.overflow = U32_MAX; /* soon reached on a fast link: goes on */
	KUNIT_EXPECT_NULL(test, paqm_touch(paqm_same_set(50), PAQM_MEDIA, 102, NULL));
	KUNIT_EXPECT_EQ(test, paqm_table.overflow, 1ULL << 32);
}

/* Flows that agree in set and tag are one, whatever the other bits. */
static void paqm_kunit_equal(struct kunit *test)
{
	const u64 hash = 0x8000000100000005ULL;
	struct paqm_flow *f;
	u64 other = hash;
	bool fresh;

	paqm_make(test, 1024);
	do {
		other++;
	} while (paqm_flows_set(&paqm_table, other) != paqm_flows_set(&paqm_table, hash));
	f = paqm_touch(hash, PAQM_MEDIA, 1, NULL);
	KUNIT_EXPECT_PTR_EQ(test, paqm_touch(other, PAQM_MEDIA, 1, &fresh), f);
	KUNIT_EXPECT_FALSE(test, fresh);
	KUNIT_EXPECT_PTR_NE(test, paqm_touch(hash + 1, PAQM_MEDIA, 1, NULL), f);
	KUNIT_EXPECT_PTR_NE(test, paqm_touch(hash ^ 1ULL << 40, PAQM_MEDIA, 1, NULL), f);
	KUNIT_EXPECT_EQ(test, paqm_table.seen, 3);
}

/* A month of silence does not make a flow active again. */
static void paqm_kunit_silence(struct kunit *test)
{
	u32 step;

	paqm_make(test, 64);
	paqm_new(test, paqm_nth(1), PAQM_MEDIA, 10);
	paqm_count(10, 0, 0);
	KUNIT_EXPECT_EQ(test, paqm_seen.media, 1);
	paqm_count(9, 0, 0); /* a packet that came after the round had begun */
	KUNIT_EXPECT_EQ(test, paqm_seen.media, 1);
	for (step = 1; step < 64; step++) { /* 208 days in steps of 3.4 */
		paqm_count(10 + step * 0x10000000U, 0, 0);
		KUNIT_EXPECT_EQ(test, paqm_seen.media, 0);
		KUNIT_EXPECT_EQ(test, paqm_seen.used, 0);
	}
}

/* Nor do six weeks in which the qdisc slept, so that nobody looked. */
static void paqm_kunit_long_sleep(struct kunit *test)
{
	paqm_make(test, 64);
	paqm_new(test, paqm_nth(1), PAQM_MEDIA, 10);
	paqm_count(10, 0, 0);
	paqm_count(10 + 0xD0000000U, 0, 0); /* 42 days */
	KUNIT_EXPECT_EQ(test, paqm_seen.media, 0);
	KUNIT_EXPECT_EQ(test, paqm_seen.used, 0);
	paqm_count(11 + 0xD0000000U, 0, 0);
	KUNIT_EXPECT_EQ(test, paqm_seen.used, 0);
}

/* Whatever the key, 2048 flows of neighbouring ports or hosts find a slot among 4096. */
static void paqm_kunit_spread(struct kunit *test)
{
	struct ipv6hdr ip6 = { .saddr.s6_addr = { 0x20, 1 }, .daddr.s6_addr = { 0x20, 2 } };
	struct iphdr ip = { .saddr = htonl(0x0A000001), .daddr = htonl(0x0A000002) };
	u64 key[PAQM_HASH_WORDS], hash;
	u32 try, i, lost, how;
	struct rnd_state rnd;
	u16 *in_set;

	in_set = kunit_kcalloc(test, 512, sizeof(*in_set), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, in_set);
	paqm_make(test, 4096);
	prandom_seed_state(&rnd, 1);
	for (try = 0; try < 600; try++) {
		how = try % 3;
		lost = 0;
		prandom_bytes_state(&rnd, key, sizeof(key));
		memset(in_set, 0, 512 * sizeof(*in_set));
		for (i = 0; i < 2048; i++) {
			u32 ports = 0x13880000 | (how == 1 ? 20000 : 10000 + i);

			ip.daddr = htonl(0x0A000002 + (how == 1 ? i : 0));
			hash = how < 2 ? paqm_flow_hash4(&ip, htonl(ports), IPPROTO_UDP, key) :
					 paqm_flow_hash6(&ip6, htonl(ports), IPPROTO_UDP, key);
			if (++in_set[(paqm_flows_set(&paqm_table, hash) - paqm_table.flow) /
				     PAQM_WAYS] > PAQM_WAYS)
				lost++;
		}
		KUNIT_EXPECT_LT_MSG(test, lost, 205, "of 2048, kind %u, key %u", how, try);
	}
}

/* A table of another size takes the living flows along, with all that is known. */
static void paqm_kunit_resize(struct kunit *test)
{
	struct paqm_flows old;
	struct paqm_flow *f;
	u32 i, kept = 0;
	bool fresh;

	paqm_make(test, 4096);
	for (i = 1; i <= 500; i++) {
		f = paqm_touch(paqm_nth(i), i % 2 ? PAQM_MEDIA : PAQM_ELASTIC, 10, NULL);
		KUNIT_ASSERT_NOT_NULL(test, f);
		f->bytes = i;
	}
	old = paqm_table;
	paqm_make(test, 65536);
	paqm_flows_copy(&paqm_table, &old, 9); /* packets came while it was copied */
	for (i = 1; i <= 500; i++) {
		f = paqm_touch(paqm_nth(i), i % 2 ? PAQM_MEDIA : PAQM_ELASTIC, 11, &fresh);
		KUNIT_ASSERT_NOT_NULL(test, f);
		KUNIT_EXPECT_FALSE(test, fresh);
		KUNIT_EXPECT_EQ(test, f->bytes, i);
	}
	paqm_flows_free(&old);
	old = paqm_table;
	paqm_make(test, 64); /* and one that is too small as many as it holds */
	paqm_flows_copy(&paqm_table, &old, 11);
	paqm_flows_free(&old);
	for (i = 0; i < 64; i++)
		kept += !!paqm_table.flow[i].tag;
	KUNIT_EXPECT_EQ(test, kept, 64);
	paqm_count(11, 0, 0);
	KUNIT_EXPECT_EQ(test, paqm_seen.used, 64);
}

static u64 paqm_draw_hash(struct rnd_state *rnd)
{
	u64 hash = (u64)prandom_u32_state(rnd) << 32 | PAQM_HASH_SET;

	return hash | prandom_u32_state(rnd);
}

/* 1 to 1,000,000 flows: none lost where there is room, and every one not counted is told. */
static void paqm_kunit_million(struct kunit *test)
{
	static const struct {
		u32 flows, slots, lost_min, lost_max; /* per million */
	} t[] = {
		/* what eight ways lose follows from Poisson's law of the load of a set */
		{ 1, 64, 0, 0 },
		{ 10, 1024, 0, 0 },
		{ 100, 1024, 0, 0 },
		{ 1000, 16384, 0, 0 },
		{ 10000, 65536, 0, 200 },
		{ 100000, 262144, 500, 3000 },
		{ 1000000, 1048576, 115000, 135000 },
	};
	struct rnd_state rnd;
	u32 i, n, lost, again;
	u64 hash;

	for (i = 0; i < ARRAY_SIZE(t); i++) {
		paqm_make(test, t[i].slots);
		prandom_seed_state(&rnd, 3);
		for (lost = 0, n = 0; n < t[i].flows; n++) {
			hash = paqm_draw_hash(&rnd);
			lost += !paqm_touch(hash, PAQM_MEDIA, 1, NULL);
		}
		KUNIT_EXPECT_EQ(test, paqm_table.overflow, lost);
		paqm_count(1, 0, 0);
		KUNIT_EXPECT_EQ(test, paqm_seen.used + lost, t[i].flows);
		KUNIT_EXPECT_EQ(test, paqm_seen.media, paqm_seen.used);
		KUNIT_EXPECT_GE(test, lost, div_u64((u64)t[i].lost_min * t[i].flows, 1000000));
		KUNIT_EXPECT_LE(test, lost, div_u64((u64)t[i].lost_max * t[i].flows, 1000000));
		kunit_info(test, "%u flows in %u slots: %u not counted\n", t[i].flows, t[i].slots,
			   lost);
		/* the same ones again: who has a slot keeps it */
		prandom_seed_state(&rnd, 3);
		for (again = 0, n = 0; n < t[i].flows; n++) {
			hash = paqm_draw_hash(&rnd);
			again += !paqm_touch(hash, PAQM_MEDIA, 2, NULL);
			if (!(n & 65535))
				cond_resched();
		}
		KUNIT_EXPECT_EQ(test, again, lost);
		paqm_flows_free(&paqm_table);
	}
}

static struct kunit_case paqm_flows_cases[] = {
	KUNIT_CASE(paqm_kunit_clock),
	KUNIT_CASE(paqm_kunit_claim),
	KUNIT_CASE(paqm_kunit_ageing),
	KUNIT_CASE(paqm_kunit_reuse),
	KUNIT_CASE(paqm_kunit_overflow),
	KUNIT_CASE(paqm_kunit_equal),
	KUNIT_CASE(paqm_kunit_silence),
	KUNIT_CASE(paqm_kunit_long_sleep),
	KUNIT_CASE(paqm_kunit_spread),
	KUNIT_CASE(paqm_kunit_resize),
	KUNIT_CASE(paqm_kunit_million),
	{}
};

static struct kunit_suite paqm_flows_suite = {
	.name = "paqm_flows",
	.exit = paqm_flows_exit,
	.test_cases = paqm_flows_cases,
};
kunit_test_suite(paqm_flows_suite);
