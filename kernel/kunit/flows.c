// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit suite of the flow table: claims, ageing, full sets, equal hashes, another size,
 * RTP known by its sequence, the census, tables from one flow to a million, and a walk
 * that meets claims at its worst moment.
 */
#include <kunit/test.h>
#include <linux/prandom.h>
#include <linux/sched.h>
#include <net/dsfield.h>

/*
 * The walk re-reads the key behind smp_rmb(): a hook there stands for another CPU that
 * claims slots just between the walker's two looks, which no scheduling can be made to do
 * every time.
 */
static void (*paqm_at_barrier)(void);
static void paqm_meet(void)
{
	if (paqm_at_barrier)
		paqm_at_barrier();
	barrier();
}

#include "../paqm_classify.h" /* enum paqm_class */
#undef smp_rmb
#define smp_rmb() paqm_meet() /* see above */
/* and just before what it has found out is written, when it has looked at the key twice */
static void (*paqm_at_write)(void);
static u32 paqm_kunit_cmpxchg(u32 *word, u32 old, u32 new)
{
	u32 was;

	if (paqm_at_write)
		paqm_at_write();
	was = *word;
	if (was == old)
		*word = new;
	return was;
}
#undef cmpxchg
#define cmpxchg(p, o, n) paqm_kunit_cmpxchg(p, o, n)
static bool paqm_kunit_try_cmpxchg(u32 *word, u32 *old, u32 new)
{
	u32 wanted = *old;

	*old = paqm_kunit_cmpxchg(word, wanted, new);
	return *old == wanted;
}
#undef try_cmpxchg
#define try_cmpxchg(p, o, n) paqm_kunit_try_cmpxchg(p, o, n)
#include "../paqm_census.c"
#include "../paqm_flows.c"
#include "../paqm_hosts.c"
#include "../paqm_rtp.c"

#define PAQM_AGE 2000 /* ticks */

static struct paqm_flows paqm_table;

/* A packet of the flow @hash, in @class, at @now_tick. */
static struct paqm_flow *paqm_touch(u64 hash, enum paqm_class class, u32 now_tick, bool *fresh)
{
	struct paqm_packet p = {
		.hash = hash,
		.kind = PAQM_KIND_MEDIA,
		.family = 4,
		.proto = IPPROTO_UDP,
		.ports = htonl((u32)hash),
		.buf.ip.saddr = htonl((u32)(hash >> 32)),
	};
	struct paqm_flow *f;
	bool unused;

	p.net = &p.buf;
	if (!fresh)
		fresh = &unused;
	*fresh = false;
	f = paqm_flows_find(&paqm_table, hash, now_tick, fresh);
	if (!f) {
		*fresh = true;
		f = paqm_flows_claim(&paqm_table, &p, now_tick);
	}
	if (f)
		paqm_flow_set(f, class, PAQM_NATURE_OPEN);
	return f;
}

static struct paqm_flow_gauge *paqm_gauge(const struct paqm_flow *f)
{
	return paqm_flow_gauge(&paqm_table, f);
}

/* Census at @now_tick; rates are measured over @window_ms. */
static void paqm_count(u32 now_tick, u32 window_ms, u64 fair, struct paqm_census *c)
{
	struct paqm_walk w = {
		.now_tick = now_tick,
		.window_ns = window_ms * (u64)NSEC_PER_MSEC,
		.fair = fair,
		.fair_least = fair,
		.fair_most = fair,
		.equal = fair,
		.fair_new = fair,
		.mouse = 100000,
		.police = true,
		.overloaded = true,
		.max_every = 40,
	};

	paqm_flows_walk(&paqm_table, &w, c);
}

/* A flow that has lasted: its windows are those of the rounds. */
static void paqm_know(struct paqm_flow *f)
{
	f->every |= PAQM_KNOWN;
	paqm_gauge(f)->marked = PAQM_MARKED_NOT;
}

/* Rounds between two notices, without what else stands there. */
static u8 paqm_every(const struct paqm_flow *f)
{
	return paqm_flow_every(f, PAQM_EVERY_MAX);
}

/* Table of @slots, or the test ends. */
static void paqm_make(struct kunit *test, u32 slots)
{
	paqm_at_barrier = NULL;
	paqm_at_write = NULL;
	memset(&paqm_table, 0, sizeof(paqm_table));
	paqm_table.age_ticks = PAQM_AGE;
	KUNIT_ASSERT_EQ(test, paqm_flows_alloc(&paqm_table, slots), 0);
}

static void paqm_flows_exit(struct kunit *test)
{
	paqm_at_barrier = NULL;
	paqm_at_write = NULL;
	paqm_flows_free(&paqm_table);
}

/* The @n-th flow of set 0. */
static u64 paqm_same_set(u64 n)
{
	return (n + 1) << 33 | PAQM_HASH_SET;
}

/* The @n-th flow, in a set like others. */
static u64 paqm_nth(u64 n)
{
	return n << 33 | PAQM_HASH_SET | n;
}

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
	struct paqm_census *c;
	bool fresh;

	paqm_make(test, 64);
	c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, c);
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
	paqm_count(1002, 0, 0, c);
	KUNIT_EXPECT_EQ(test, c->used, 2);
	KUNIT_EXPECT_EQ(test, c->media, 0);
	KUNIT_EXPECT_EQ(test, c->present, 2);
}

/* Silence: forgotten by the census first, then its slot may be taken. Time wraps. */
static void paqm_kunit_ageing(struct kunit *test)
{
	static const u32 begin[] = { 0, 1000, U32_MAX - 100, U32_MAX - PAQM_AGE };
	struct paqm_census *c;
	struct paqm_flow *a;
	bool fresh;
	u32 i, n, t;

	c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, c);
	for (i = 0; i < ARRAY_SIZE(begin); i++) {
		t = begin[i];
		paqm_make(test, 64);
		a = paqm_touch(paqm_nth(5), PAQM_MEDIA, t, NULL);
		paqm_count(t + PAQM_FLOW_ACTIVE_TICKS, 0, 0, c);
		KUNIT_EXPECT_EQ(test, c->media, 1);
		paqm_count(t + PAQM_FLOW_ACTIVE_TICKS + 1, 0, 0, c);
		KUNIT_EXPECT_EQ(test, c->media, 0);
		KUNIT_EXPECT_EQ(test, c->used, 1);
		paqm_count(t + PAQM_AGE + 1, 0, 0, c);
		KUNIT_EXPECT_EQ(test, c->used, 0);
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
	struct paqm_census *c;
	u32 i, t = 10000;

	c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, c);
	paqm_make(test, PAQM_WAYS); /* a single set */
	for (i = 0; i < PAQM_WAYS; i++) {
		old[i] = paqm_touch(paqm_nth(i + 1), PAQM_MEDIA, t, NULL);
		KUNIT_ASSERT_NOT_NULL(test, old[i]);
	}
	paqm_count(t, 0, 0, c);
	for (i = 0; i < PAQM_WAYS; i++)
		paqm_know(old[i]);
	paqm_flows_mark(&paqm_table);
	for (i = 0; i < PAQM_WAYS; i++)
		old[i]->bytes += 500000;
	for (i = 0; i < 20; i++) /* 20 Mbit/s where 1 was told */
		paqm_count(t, 200, 1000000, c);
	KUNIT_EXPECT_EQ(test, c->policed, PAQM_WAYS);
	t += PAQM_AGE + 1;
	f = paqm_touch(paqm_nth(99), PAQM_MEDIA, t, NULL);
	KUNIT_ASSERT_NOT_NULL(test, f);
	KUNIT_EXPECT_EQ(test, f->bytes, 0);
	KUNIT_EXPECT_EQ(test, f->every & ~PAQM_CLAIM, 0); /* not policed, not known, not deaf */
	KUNIT_EXPECT_EQ(test, f->over, 0);
	paqm_count(t, 200, 1000000, c);
	KUNIT_EXPECT_EQ(test, c->used, 1);
	KUNIT_EXPECT_EQ(test, c->policed, 0);
	KUNIT_EXPECT_EQ(test, paqm_gauge(f)->rate, 0);
	KUNIT_EXPECT_EQ(test, paqm_gauge(f)->deaf, 0);
}

/* Full sets: the ninth flow is not counted, that is counted; the others live on. */
static void paqm_kunit_overflow(struct kunit *test)
{
	struct paqm_census *c;
	bool fresh;
	u32 i;

	c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, c);
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
	paqm_count(101, 0, 0, c);
	KUNIT_EXPECT_EQ(test, c->media, PAQM_WAYS + 1);
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
	struct paqm_census *c;
	struct paqm_flow *f;
	u32 step;

	c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, c);
	paqm_make(test, 64);
	f = paqm_touch(paqm_nth(1), PAQM_MEDIA, 10, NULL);
	KUNIT_ASSERT_NOT_NULL(test, f);
	paqm_count(10, 0, 0, c);
	KUNIT_EXPECT_EQ(test, c->media, 1);
	paqm_count(9, 0, 0, c); /* a packet that came after the round had begun */
	KUNIT_EXPECT_EQ(test, c->media, 1);
	for (step = 1; step < 64; step++) { /* 208 days in steps of 3.4 */
		paqm_count(10 + step * 0x10000000U, 0, 0, c);
		KUNIT_EXPECT_EQ(test, c->media, 0);
		KUNIT_EXPECT_EQ(test, c->used, 0);
	}
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
	struct paqm_census *c;
	struct paqm_flow *f;
	u32 i, kept = 0;
	bool fresh;

	c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, c);
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
	paqm_count(11, 0, 0, c);
	KUNIT_EXPECT_EQ(test, c->used, 64);
}

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

/* Every flow its rate, whatever wraps: bytes between two marks over the window. */
static void paqm_kunit_rates(struct kunit *test)
{
	struct paqm_census *c;
	struct paqm_flow *f;
	u32 i;

	c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, c);
	paqm_make(test, 64);
	f = paqm_touch(paqm_nth(7), PAQM_MEDIA, 1, NULL);
	KUNIT_ASSERT_NOT_NULL(test, f);
	paqm_count(1, 200, 0, c); /* its first window says nothing yet */
	KUNIT_EXPECT_EQ(test, paqm_gauge(f)->rate, 0);
	paqm_know(f);
	f->bytes = U32_MAX - 1000;
	paqm_flows_mark(&paqm_table);
	for (i = 0; i < 12; i++) {
		f->bytes += 25000; /* 1 Mbit/s in 200 ms */
		paqm_count(1, 200, 0, c);
		paqm_flows_mark(&paqm_table);
	}
	KUNIT_EXPECT_EQ(test, paqm_gauge(f)->rate, 1000000);
	/* a window that is too short changes nothing */
	f->bytes += 10000000;
	paqm_count(1, PAQM_WINDOW_MIN_NS / NSEC_PER_MSEC - 1, 0, c);
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
static u64 paqm_fast_rate(struct paqm_census *c, u64 bytes, u32 ms)
{
	paqm_flows_mark(&paqm_table);
	for (; bytes; bytes -= 1000000)
		paqm_flow_add(&paqm_table, paqm_fast, 1000000);
	paqm_gauge(paqm_fast)->rate = 0; /* not smoothed */
	paqm_count(1, ms, 0, c);
	return paqm_gauge(paqm_fast)->rate;
}

/* Links of 400 and 800 Gbit/s: a window has more bytes than 32 bits count. */
static void paqm_kunit_fast(struct kunit *test)
{
	struct paqm_flow *tcp;
	struct paqm_census *c;
	u32 n, seen;

	c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, c);
	paqm_make(test, 64);
	paqm_fast = paqm_touch(paqm_nth(7), PAQM_MEDIA, 1, NULL);
	KUNIT_ASSERT_NOT_NULL(test, paqm_fast);
	paqm_count(1, 200, 0, c);
	paqm_know(paqm_fast);
	for (n = 0; n < 20; n++) /* from everywhere in the range */
		KUNIT_EXPECT_EQ(test, paqm_fast_rate(c, 12500000000ULL, 250), 400000000000ULL);
	KUNIT_EXPECT_EQ(test, paqm_fast_rate(c, 25000000000ULL, 250), 800000000000ULL);
	KUNIT_EXPECT_EQ(test, paqm_fast_rate(c, 500000000000ULL, 5000), 800000000000ULL);

	/* the walker reads the one half before a turn and the other after it */
	while (paqm_fast->bytes + 1000000 > 1000000 &&
	       !((paqm_fast->bytes ^ (paqm_fast->bytes + 1000000)) >> 31))
		paqm_flow_add(&paqm_table, paqm_fast, 1000000);
	paqm_flow_add(&paqm_table, paqm_fast, (paqm_fast->bytes | S32_MAX) - paqm_fast->bytes);
	paqm_flows_mark(&paqm_table);
	seen = paqm_gauge(paqm_fast)->turns;
	paqm_at_barrier = paqm_turn;
	paqm_count(1, 250, 0, c);
	KUNIT_EXPECT_EQ(test, (u16)(paqm_gauge(paqm_fast)->turns - seen), 1);
	KUNIT_EXPECT_LT(test, paqm_gauge(paqm_fast)->rate, 800000000000ULL);
	KUNIT_EXPECT_EQ(test, paqm_fast_rate(c, 12500000000ULL, 250), 400000000000ULL);

	/* a slot that is taken again begins at nothing */
	tcp = paqm_touch(paqm_nth(7 + (1ULL << 40)), PAQM_ELASTIC, 1 + 2 * PAQM_AGE, NULL);
	KUNIT_ASSERT_NOT_NULL(test, tcp);
	KUNIT_EXPECT_EQ(test, paqm_gauge(tcp)->turns, 0);
	/* an elastic flow is no mouse for ever more, whatever its 32 bits say */
	for (n = 0; n < 4295; n++)
		paqm_flow_add(&paqm_table, tcp, 1000000);
	KUNIT_EXPECT_LT(test, tcp->bytes, PAQM_MOUSE_BYTES * 4);
	KUNIT_EXPECT_TRUE(test, paqm_gauge(tcp)->turns);
}

/* Who does not do as told: asked ever more rarely, policed only far above the rate. */
static void paqm_kunit_strikes(struct kunit *test)
{
	struct paqm_flow *good, *deaf, *wild;
	struct paqm_census *c;
	u32 i, every = 1;

	c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, c);
	paqm_make(test, 64);
	good = paqm_touch(paqm_nth(1), PAQM_MEDIA, 1, NULL);
	deaf = paqm_touch(paqm_nth(2), PAQM_MEDIA, 1, NULL);
	wild = paqm_touch(paqm_nth(3), PAQM_MEDIA, 1, NULL);
	paqm_count(1, 0, 0, c);
	paqm_know(good);
	paqm_know(deaf);
	paqm_know(wild);
	for (i = 0; i < 2000; i++) {
		paqm_flows_mark(&paqm_table);
		good->bytes += 25000; /* 1.0 Mbit/s */
		deaf->bytes += 40000; /* 1.6 */
		wild->bytes += 100000; /* 4.0 */
		paqm_count(1, 200, 1000000, c);
		KUNIT_EXPECT_GE(test, paqm_every(deaf), every);
		KUNIT_EXPECT_EQ(test, !!(wild->every & PAQM_POLICED), !!paqm_gauge(wild)->drop);
		KUNIT_EXPECT_TRUE(test, wild->every & PAQM_DEAF);
		every = paqm_every(deaf);
		KUNIT_EXPECT_EQ(test, good->every & ~PAQM_CLAIM, PAQM_KNOWN);
		KUNIT_EXPECT_EQ(test, paqm_gauge(good)->drop, 0);
		KUNIT_EXPECT_EQ(test, paqm_gauge(deaf)->drop, 0);
		if (i < PAQM_DEAF_STRIKE)
			KUNIT_EXPECT_EQ(test, paqm_gauge(wild)->drop, 0);
	}
	KUNIT_EXPECT_EQ(test, every, PAQM_EVERY_MAX);
	KUNIT_EXPECT_EQ(test, c->deaf, 2);
	/* what is left of 4 Mbit/s is the fair rate */
	KUNIT_EXPECT_GE(test, paqm_gauge(wild)->drop, U32_MAX / 100 * 74);
	KUNIT_EXPECT_LE(test, paqm_gauge(wild)->drop, U32_MAX / 100 * 76);
	KUNIT_EXPECT_EQ(test, c->policed, 1);
	/* one window within the rate does not wipe out all that was before */
	paqm_flows_mark(&paqm_table);
	wild->bytes += 25000;
	paqm_count(1, 200, 1000000, c);
	KUNIT_EXPECT_GE(test, paqm_gauge(wild)->deaf, 400);
	for (i = 0; i < 20; i++) { /* it mends its ways */
		paqm_flows_mark(&paqm_table);
		wild->bytes += 25000;
		deaf->bytes += 25000;
		paqm_count(1, 200, 1000000, c);
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
	struct paqm_census *c;
	u64 fair, first = 0;
	u32 i, n, d, k;

	c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, c);
	for (k = 0; k < ARRAY_SIZE(deaf_mbit); k++) {
		for (n = 2; n <= 16; n++) {
			for (d = 1; d < n; d++) {
				paqm_make(test, 64);
				for (i = 0; i < n; i++) {
					f[i] = paqm_touch(paqm_nth(i + 1), PAQM_MEDIA, 1, NULL);
					KUNIT_ASSERT_NOT_NULL(test, f[i]);
				}
				paqm_count(1, 0, 0, c);
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
					paqm_count(1, 200, fair, c);
					fair = paqm_mm_solve(&c->mm, 10000000, 1000, 10000000);
				}
				/* told rates neither swing nor sink */
				KUNIT_EXPECT_EQ(test, fair, first);
				KUNIT_EXPECT_GE(test, fair, 10000000 / n);
				paqm_flows_free(&paqm_table);
			}
		}
	}
}

/* A newcomer counts when it has lasted and used something; one that only began does not. */
static void paqm_kunit_newcomers(struct kunit *test)
{
	struct paqm_flow *stays, *goes;
	struct paqm_census *c;
	u32 t = 1000;

	c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, c);
	paqm_make(test, 64);
	stays = paqm_touch(paqm_nth(1), PAQM_MEDIA, t, NULL);
	goes = paqm_touch(paqm_nth(2), PAQM_MEDIA, t, NULL);
	KUNIT_ASSERT_NOT_NULL(test, stays);
	KUNIT_ASSERT_NOT_NULL(test, goes);
	goes->bytes = 300;
	paqm_count(t, 0, 1000000, c);
	KUNIT_EXPECT_EQ(test, c->media, 2);
	KUNIT_EXPECT_EQ(test, c->newcomers, 2);
	KUNIT_EXPECT_EQ(test, c->mm.greedy, 0);
	t += 200;
	paqm_touch(paqm_nth(1), PAQM_MEDIA, t, NULL);
	stays->bytes += 25000;
	paqm_count(t, 0, 1000000, c); /* too early to tell */
	KUNIT_EXPECT_EQ(test, c->newcomers, 2);
	t += 200;
	paqm_touch(paqm_nth(1), PAQM_MEDIA, t, NULL);
	stays->bytes += 25000;
	paqm_count(t, 0, 1000000, c); /* also in a round at an event: the window is its own */
	KUNIT_EXPECT_EQ(test, c->proven, 1);
	KUNIT_EXPECT_EQ(test, c->newcomers, 1);
	KUNIT_EXPECT_EQ(test, c->mm.greedy, 1);
	KUNIT_EXPECT_TRUE(test, stays->every & PAQM_KNOWN);
	KUNIT_EXPECT_FALSE(test, goes->every & PAQM_KNOWN);
	/* what it sent before is no use of the time in which it was silent */
	KUNIT_EXPECT_EQ(test, paqm_gauge(goes)->rate, 0);
	t += PAQM_FLOW_ACTIVE_TICKS;
	paqm_touch(paqm_nth(1), PAQM_MEDIA, t, NULL);
	paqm_count(t, 0, 1000000, c);
	KUNIT_EXPECT_EQ(test, c->passed, 1); /* once */
	paqm_count(t, 0, 1000000, c);
	KUNIT_EXPECT_EQ(test, c->passed, 0);
	KUNIT_EXPECT_EQ(test, c->media, 1);
	KUNIT_EXPECT_EQ(test, c->newcomers, 0);
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
	struct paqm_flow *f[PAQM_CROWD + 3];
	struct paqm_walk w = {
		.now_tick = 1,
		.window_ns = 200 * (u64)NSEC_PER_MSEC,
		.max_every = 40,
		.key = key,
	};
	const struct paqm_host *of[3];
	struct paqm_census *c;
	u64 fair = 0;
	u32 i, n, round;

	c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);
	w.hosts = kunit_kzalloc(test, sizeof(*w.hosts), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, c);
	KUNIT_ASSERT_NOT_NULL(test, w.hosts);
	paqm_make(test, 1024);
	for (i = 0; i < ARRAY_SIZE(f); i++) {
		struct paqm_tuple *t;

		n = i < PAQM_CROWD ? 0 : i < PAQM_CROWD + 2 ? 1 : 2;
		f[i] = paqm_touch(paqm_nth(i + 1), PAQM_MEDIA, 1, NULL);
		KUNIT_ASSERT_NOT_NULL(test, f[i]);
		t = &paqm_flow_more(&paqm_table, f[i])->tuple;
		memset(t->saddr, 0, sizeof(t->saddr));
		t->saddr[3] = n;
		of[n] = &w.hosts->host[paqm_host_place(t, PAQM_SIDE_SOURCE, key)];
	}
	/* not known yet: nobody is a host */
	paqm_flows_walk(&paqm_table, &w, c);
	KUNIT_EXPECT_EQ(test, c->media, ARRAY_SIZE(f));
	KUNIT_EXPECT_EQ(test, c->takers, 0);
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
		paqm_flows_walk(&paqm_table, &w, c);
		fair = paqm_mm_solve(&c->mm, 6000000, 1000, 6000000);
		paqm_hosts_divide(w.hosts, fair, true);
		KUNIT_EXPECT_EQ(test, w.hosts->side, PAQM_SIDE_SOURCE);
		KUNIT_EXPECT_EQ(test, c->takers, 3);
		KUNIT_EXPECT_EQ(test, c->mm.greedy, 3);
		KUNIT_EXPECT_EQ(test, fair, 2000000);
	}
	KUNIT_EXPECT_EQ(test, of[0]->parts, PAQM_CROWD * PAQM_PART_ONE);
	KUNIT_EXPECT_EQ(test, of[0]->flows, PAQM_CROWD);
	KUNIT_EXPECT_EQ(test, paqm_host_part(of[0], fair), (u32)fair / PAQM_CROWD);
	/* what sound does not use of a half is video's */
	KUNIT_EXPECT_GE(test, paqm_host_part(of[1], fair), (u32)fair / 100 * 96);
	KUNIT_EXPECT_LE(test, paqm_host_part(of[1], fair), fair - 50000);
	KUNIT_EXPECT_EQ(test, of[2]->parts, PAQM_PART_ONE);
	KUNIT_EXPECT_EQ(test, c->deaf, PAQM_CROWD);
	KUNIT_EXPECT_EQ(test, c->deaf_q16, PAQM_CROWD * (PAQM_Q16_ONE / PAQM_CROWD));
	for (i = 0; i < ARRAY_SIZE(f); i++) {
		KUNIT_EXPECT_EQ(test, !!(f[i]->every & PAQM_SHARES), i < PAQM_CROWD + 2);
		KUNIT_EXPECT_EQ(test, !!(f[i]->every & PAQM_DEAF), i < PAQM_CROWD);
	}
	/* a newcomer of a known host is no further one, two of another host are one */
	for (i = 0; i < 3; i++) {
		f[i]->every = 0;
		paqm_flow_more(&paqm_table, f[i])->tuple.saddr[3] = i ? 3 : 1;
	}
	paqm_flows_walk(&paqm_table, &w, c);
	KUNIT_EXPECT_EQ(test, c->newcomers, 3);
	KUNIT_EXPECT_EQ(test, c->joining, 1);
	KUNIT_EXPECT_EQ(test, c->takers, 3);
	for (i = 0; i < 3; i++) {
		paqm_know(f[i]);
		paqm_flow_more(&paqm_table, f[i])->tuple.saddr[3] = 0;
	}
	/* the others go: what is left has one host on both sides, whose flows are equal */
	w.now_tick += PAQM_FLOW_ACTIVE_TICKS + 1;
	for (i = 0; i < PAQM_CROWD; i++)
		WRITE_ONCE(f[i]->last_tick, w.now_tick);
	paqm_flows_walk(&paqm_table, &w, c);
	paqm_hosts_divide(w.hosts, fair, true);
	KUNIT_EXPECT_EQ(test, w.hosts->side, PAQM_SIDE_NONE);
	KUNIT_EXPECT_EQ(test, c->takers, PAQM_CROWD);
	KUNIT_EXPECT_EQ(test, f[0]->every & PAQM_SHARES, 0);
	KUNIT_EXPECT_EQ(test, of[0]->parts, PAQM_PART_ONE);
	/* and without that option nobody knows of hosts */
	w.hosts = NULL;
	paqm_flows_walk(&paqm_table, &w, c);
	KUNIT_EXPECT_EQ(test, c->takers, PAQM_CROWD);
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
	struct paqm_census *c;
	struct rnd_state rnd;
	u32 i, n, lost, again;
	u64 hash;

	c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, c);
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		paqm_make(test, t[i].slots);
		prandom_seed_state(&rnd, 3);
		for (lost = 0, n = 0; n < t[i].flows; n++) {
			hash = paqm_draw_hash(&rnd);
			lost += !paqm_touch(hash, PAQM_MEDIA, 1, NULL);
		}
		KUNIT_EXPECT_EQ(test, paqm_table.overflow, lost);
		paqm_count(1, 0, 0, c);
		KUNIT_EXPECT_EQ(test, c->used + lost, t[i].flows);
		KUNIT_EXPECT_EQ(test, c->media, c->used);
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

/* ------------------------------------------------------ a walk that meets claims */

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
	struct paqm_census *c;
	u32 i;

	c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, c);
	paqm_make(test, PAQM_WAYS);
	paqm_newcomer = 1000;
	paqm_meetings = 0;
	for (i = 1; i <= PAQM_WAYS; i++)
		paqm_touch(paqm_nth(i), PAQM_MEDIA, 100, NULL);
	paqm_count(100, 200, 0, c);
	for (i = 0; i < PAQM_WAYS; i++)
		paqm_table.flow[i].bytes += 25000;
	paqm_count(100, 200, 1000000, c);
	KUNIT_EXPECT_EQ(test, c->media, PAQM_WAYS);
	paqm_at_barrier = paqm_take_all;
	/* at 50000 the eight are long silent, so every barrier may replace them all */
	paqm_count(100, 200, 1000000, c);
	paqm_at_barrier = NULL;
	KUNIT_EXPECT_GE(test, paqm_meetings, 1);
	KUNIT_EXPECT_EQ(test, c->media, 0); /* those seen first are gone */
	paqm_count(50000, 0, 1000000, c);
	KUNIT_EXPECT_EQ(test, c->present, PAQM_WAYS);
	KUNIT_EXPECT_EQ(test, c->used, PAQM_WAYS);
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
	struct paqm_census *c;
	u32 i, seen, tag;

	c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, c);
	paqm_make(test, PAQM_WAYS);
	paqm_newcomer = 1000;
	paqm_meetings = 0;
	for (i = 0; i < PAQM_WAYS - 1; i++)
		paqm_touch(paqm_nth(i + 1), PAQM_ELASTIC, 100, NULL);
	paqm_slot = paqm_touch(paqm_nth(i + 1), PAQM_MEDIA, 100, NULL);
	KUNIT_ASSERT_NOT_NULL(test, paqm_slot);

	/* one that becomes known just then; of two claims in a row each is noticed */
	for (i = 0; i < 2; i++) {
		seen = paqm_slot->every;
		KUNIT_EXPECT_EQ(test, seen & ~PAQM_CLAIM, 0);
		paqm_count(100 + i * 10000, 0, 0, c); /* its window begins */
		WRITE_ONCE(paqm_slot->last_tick, 600 + i * 10000);
		paqm_slot->bytes += 50000;
		tag = paqm_slot->tag;
		paqm_late = 10100 + i * 10000; /* it was silent for longer than slots are held */
		paqm_at_write = paqm_take_slot;
		paqm_count(600 + i * 10000, 200, 1000000, c);
		KUNIT_EXPECT_EQ(test, paqm_meetings, i + 1);
		KUNIT_EXPECT_NE(test, paqm_slot->tag, tag);
		KUNIT_EXPECT_EQ(test, paqm_slot->every & ~PAQM_CLAIM, 0);
		KUNIT_EXPECT_NE(test, paqm_slot->every, seen);
		KUNIT_EXPECT_EQ(test, paqm_slot->last_tick, paqm_late);
		KUNIT_EXPECT_FALSE(test, paqm_flow_publish(paqm_slot, seen, PAQM_KNOWN));
		KUNIT_EXPECT_EQ(test, paqm_slot->every & ~PAQM_CLAIM, 0);
	}
	paqm_count(paqm_late + 1, 0, 0, c);
	KUNIT_EXPECT_EQ(test, paqm_gauge(paqm_slot)->rate, 0);

	/* a packet of the same flow does not keep it from being known, and is not undone */
	WRITE_ONCE(paqm_slot->last_tick, paqm_late + 501);
	paqm_slot->bytes += 50000;
	paqm_at_write = paqm_touch_slot;
	paqm_count(paqm_late + 501, 200, 1000000, c);
	KUNIT_EXPECT_EQ(test, paqm_meetings, 3);
	KUNIT_EXPECT_TRUE(test, paqm_slot->every & PAQM_KNOWN);
	KUNIT_EXPECT_EQ(test, paqm_slot->over_seq, 1);

	/* dead for so long that its time would come again, and taken just then */
	paqm_late += 600 + PAQM_SILENT_LONG;
	for (i = 0; i < PAQM_WAYS - 1; i++)
		WRITE_ONCE(paqm_table.flow[i].last_tick, paqm_late);
	paqm_at_write = paqm_take_slot;
	paqm_count(paqm_late, 0, 0, c);
	KUNIT_EXPECT_EQ(test, paqm_meetings, 4);
	KUNIT_EXPECT_EQ(test, paqm_slot->last_tick, paqm_late);
	/* and not taken: it stays dead */
	paqm_late += 1 + PAQM_SILENT_LONG;
	paqm_count(paqm_late, 0, 0, c);
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
	struct paqm_census *c;
	u32 round, i, living;

	c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, c);
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
		paqm_count(paqm_race_now, 200, 1000000, c);
		KUNIT_EXPECT_LE(test, c->used, 1024);
		KUNIT_EXPECT_LE(test, c->media + c->present, c->used);
		KUNIT_EXPECT_LE(test, c->elastic, c->present);
		for (i = 0; i < 1024; i++) /* at most all claims of a round */
			KUNIT_EXPECT_LE(test, paqm_table.gauge[i].rate,
					1500ULL * 8 * 5 * (200 + 1024));
	}
	paqm_at_barrier = NULL;
	for (living = 0, i = 0; i < 1024; i++)
		living += paqm_table.flow[i].tag &&
			  paqm_race_now - paqm_table.flow[i].last_tick <= PAQM_FLOW_ACTIVE_TICKS;
	paqm_count(paqm_race_now, 200, 1000000, c);
	KUNIT_EXPECT_EQ(test, c->media + c->present, living);
}

static struct kunit_case paqm_flows_cases[] = {
	KUNIT_CASE(paqm_kunit_clock),
	KUNIT_CASE(paqm_kunit_claim),
	KUNIT_CASE(paqm_kunit_ageing),
	KUNIT_CASE(paqm_kunit_reuse),
	KUNIT_CASE(paqm_kunit_overflow),
	KUNIT_CASE(paqm_kunit_equal),
	KUNIT_CASE(paqm_kunit_silence),
	KUNIT_CASE(paqm_kunit_spread),
	KUNIT_CASE(paqm_kunit_resize),
	KUNIT_CASE(paqm_kunit_rtp),
	KUNIT_CASE(paqm_kunit_pass),
	KUNIT_CASE(paqm_kunit_not_rtp),
	KUNIT_CASE(paqm_kunit_rates),
	KUNIT_CASE(paqm_kunit_fast),
	KUNIT_CASE(paqm_kunit_strikes),
	KUNIT_CASE(paqm_kunit_entitled),
	KUNIT_CASE(paqm_kunit_newcomers),
	KUNIT_CASE(paqm_kunit_side),
	KUNIT_CASE(paqm_kunit_hosts),
	KUNIT_CASE(paqm_kunit_bundle),
	KUNIT_CASE(paqm_kunit_million),
	KUNIT_CASE(paqm_kunit_walk_race),
	KUNIT_CASE(paqm_kunit_late_walker),
	KUNIT_CASE(paqm_kunit_walk_churn),
	{}
};

static struct kunit_suite paqm_flows_suite = {
	.name = "paqm_flows",
	.exit = paqm_flows_exit,
	.test_cases = paqm_flows_cases,
};
kunit_test_suite(paqm_flows_suite);
