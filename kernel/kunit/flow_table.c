// SPDX-License-Identifier: GPL-2.0
/*
 * A flow table as the KUnit suites of flows have it: the code of the qdisc with hooks in its
 * barriers, and what the suites do with it.
 */
#include <kunit/test.h>
#include <net/dsfield.h>
#include "hooks.h"

/*
 * The walk re-reads the key behind smp_rmb(): a hook there stands for another CPU that
 * claims slots just between the walker's two looks, which no scheduling can be made to do
 * every time.
 */
void (*paqm_at_barrier)(void);
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
void (*paqm_at_write)(void);
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
#include "../paqm_gauge.c"
#include "../paqm_heed.c"
#include "../paqm_hosts.c"
#include "../paqm_newcomer.c"
#include "../paqm_rtp.c"
#include "flow_table.h" /* behind the hooks: its headers have them, too */

struct paqm_flows paqm_table;
struct paqm_census paqm_seen;
bool paqm_queued;
bool paqm_rotating;
u32 paqm_link_q24;

/* A packet of the flow @hash, in @class, at @now_tick. */
struct paqm_flow *paqm_touch(u64 hash, enum paqm_class class, u32 now_tick, bool *fresh)
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
	bool unused, rare;

	p.net = &p.buf;
	if (!fresh)
		fresh = &unused;
	*fresh = false;
	f = paqm_flows_find(&paqm_table, hash, now_tick, fresh, &rare);
	if (!f) {
		*fresh = true;
		f = paqm_flows_claim(&paqm_table, &p, now_tick);
	}
	if (f)
		paqm_flow_set(f, class, PAQM_NATURE_OPEN);
	return f;
}

/* The same for a flow that must find room. */
struct paqm_flow *paqm_new(struct kunit *test, u64 hash, enum paqm_class class, u32 now_tick)
{
	struct paqm_flow *f = paqm_touch(hash, class, now_tick, NULL);

	KUNIT_ASSERT_NOT_NULL(test, f);
	return f;
}

struct paqm_flow_gauge *paqm_gauge(const struct paqm_flow *f)
{
	return paqm_flow_gauge(&paqm_table, f);
}

/* Census at @now_tick; rates are measured over @window_ms. */
void paqm_count(u32 now_tick, u32 window_ms, u64 fair)
{
	struct paqm_walk w = {
		.now_tick = now_tick,
		.window_ns = window_ms * (u64)NSEC_PER_MSEC,
		.window_min_ns = PAQM_WINDOW_MIN_NS,
		.fair = fair,
		.fair_least = fair,
		.fair_most = fair,
		.equal = fair,
		.fair_new = fair,
		.elastic_ticks = PAQM_FLOW_ACTIVE_TICKS,
		.mouse = 100000,
		.police = true,
		.overloaded = true,
		.queued = paqm_queued,
		.rotating = paqm_rotating,
		.link_q24 = paqm_link_q24,
		.max_every = 40,
	};

	paqm_flows_walk(&paqm_table, &w, &paqm_seen);
}

/* A flow that has lasted: its windows are those of the rounds. */
void paqm_know(struct paqm_flow *f)
{
	f->every |= PAQM_KNOWN;
	paqm_gauge(f)->marked = PAQM_MARKED_NOT;
}

/* Rounds between two notices, without what else stands there. */
u8 paqm_every(const struct paqm_flow *f)
{
	return paqm_flow_every(f, PAQM_EVERY_MAX);
}

/* Table of @slots, or the test ends. */
void paqm_make(struct kunit *test, u32 slots)
{
	paqm_at_barrier = NULL;
	paqm_at_write = NULL;
	memset(&paqm_table, 0, sizeof(paqm_table));
	paqm_queued = false;
	paqm_rotating = false;
	paqm_link_q24 = 0;
	memset(&paqm_seen, 0, sizeof(paqm_seen));
	paqm_table.age_ticks = PAQM_AGE;
	KUNIT_ASSERT_EQ(test, paqm_flows_alloc(&paqm_table, slots), 0);
}

void paqm_flows_exit(struct kunit *test)
{
	paqm_at_barrier = NULL;
	paqm_at_write = NULL;
	paqm_flows_free(&paqm_table);
}

/* The @n-th flow of set 0. */
u64 paqm_same_set(u64 n)
{
	return (n + 1) << 33 | PAQM_HASH_SET;
}

/* The @n-th flow, in a set like others. */
u64 paqm_nth(u64 n)
{
	return n << 33 | PAQM_HASH_SET | n;
}

const u32 paqm_deaf_strike = PAQM_DEAF_STRIKE;

u32 paqm_place(const struct paqm_tuple *t, enum paqm_side side, const u64 *key)
{
	return paqm_host_place(t, side, key);
}

bool paqm_publish(struct paqm_flow *f, u8 seen, u8 every)
{
	return paqm_flow_publish(f, seen, every);
}
