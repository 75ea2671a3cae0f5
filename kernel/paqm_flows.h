/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Bounded flow table: which flows are active, how fast is each, and is it RTP?
 *
 * A set-associative table of fixed size. What every packet touches, 24 bytes a flow,
 * stands apart from the rest: the eight slots of a set fill three cache lines that lie
 * side by side, so that also with 100,000 flows a packet costs about one cache miss.
 * The datapath (under the qdisc lock) claims slots and counts bytes; the outer loop
 * walks the table in process context without that lock. Both sides own different
 * fields, so there is nothing to free and no lock between them: a slot is re-used
 * once its flow has been silent for the ageing time.
 *
 * A flow is known by its set and 31 further bits of a keyed hash. Two flows that agree
 * in both are counted as one; among a million flows that is expected for about one
 * pair in 500 tables. A flow that finds its set full of living flows is not counted;
 * that is counted instead.
 */
#ifndef PAQM_FLOWS_H
#define PAQM_FLOWS_H

#include <linux/bitmap.h>
#include <linux/cache.h>
#include <linux/mm.h>
#include <linux/siphash.h>
#include <linux/types.h>
#include "core/paqm_maxmin.h"
#include "paqm_classify.h"
#include "paqm_feedback.h"

#define PAQM_WAYS 8
#define PAQM_SPREAD 0x9E3779B1U /* odd, the golden part of 2^32 */
#define PAQM_FLOW_ACTIVE_TICKS 500 /* a flow that was silent for longer is not counted */
#define PAQM_SILENT_LONG (1U << 30) /* ticks, half of what can be told from the future */
#define PAQM_MOUSE_BYTES 16384	/* an elastic flow that sent less is a mouse for now */
#define PAQM_FLOW_UNSURE PAQM_CLASSES /* class of a flow not recognised yet: not counted */

/* What a UDP flow has turned out to be. */
enum paqm_nature { PAQM_NATURE_OPEN, PAQM_NATURE_RTP, PAQM_NATURE_NOT_RTP };

#define PAQM_RTP_MATCHES 2  /* packets in sequence that make an open flow RTP */
#define PAQM_RTP_REMATCH 4  /* the same for one that was judged before */
/*
 * Packets that are not in sequence: those of a source that is not remembered count as one,
 * since a flow may carry many sources (the downlink of an SFU), others as four.
 */
#define PAQM_RTP_MISS_OTHER 4
#define PAQM_RTP_MISSES 32  /* so much of it makes an open flow none */
#define PAQM_RTP_LOST 128   /* and one that was RTP: half a megabyte of other things */
#define PAQM_RTP_SOURCES 8  /* that are remembered */
#define PAQM_RTP_HOLD 4	    /* of so many packets of others one takes a place among them */
#define PAQM_RTP_JUMP 256   /* sequence numbers may be missing: loss upstream */
#define PAQM_RTP_JUMP_JUDGED 1024 /* and of a judged flow not all packets are looked at */
#define PAQM_LOOK_SHIFT 14  /* of a judged flow one packet in 2^14 bytes is looked into */

/*
 * Bits of struct paqm_flow's @state: nothing about the flow is open under `classify auto`,
 * under `classify protocol`. Two, so that a change of the rule needs no walk.
 */
#define PAQM_SETTLED_AUTO 0x80
#define PAQM_SETTLED_PROTOCOL 0x08

/* Bits of struct paqm_flow's @every. */
#define PAQM_POLICED 0x80 /* packets may be dropped at once */
#define PAQM_KNOWN 0x40	  /* it has lasted, and its use is measured */
#define PAQM_DEAF 0x20	  /* it sends more than it was told */
#define PAQM_SHARES 0x10  /* the rate is its host's, which has more flows (struct paqm_host) */
#define PAQM_CLAIM 0x08	  /* turns over with each claim of the slot */
#define PAQM_RARE 0x07	  /* logarithm of the rounds between two notices */
#define PAQM_EVERY_MAX 31 /* these at most */

/**
 * struct paqm_flow - what every packet of a flow touches
 * @tag: upper half of the hash, 0: free
 * @bytes: arrived bytes, wraps
 * @last_tick: time of the last packet, paqm_flow_clock()
 * @due: when its bucket is full again, paqm_bucket_clock()
 * @round: notice round that this flow was told about, lowest bits
 * @over: overflow queue that its last packet beyond the fair rate went to, 0: none
 * @over_seq: number of that packet in that queue, lowest bits
 * @state: queue of the flow, or PAQM_FLOW_UNSURE; its nature from bit 4 on;
 *	PAQM_SETTLED_*
 * @every: written by the outer loop: PAQM_RARE, 0 unless it does not follow; PAQM_POLICED,
 *	PAQM_KNOWN, PAQM_DEAF, PAQM_SHARES; PAQM_CLAIM by the datapath
 * @word: the last three at once, paqm_flow_publish()
 */
struct paqm_flow {
	u32 tag;
	u32 bytes;
	u32 last_tick;
	u32 due;
	u16 round;
	u16 over;
	union {
		struct {
			u16 over_seq;
			u8 state;
			u8 every;
		};
		u32 word;
	};
};

static inline u8 paqm_flow_class(const struct paqm_flow *f)
{
	return READ_ONCE(f->state) & 7;
}

static inline u8 paqm_flow_nature(const struct paqm_flow *f)
{
	return READ_ONCE(f->state) >> 4 & 7;
}

/* Is a flow media for sure, and not only until it is recognised? */
static inline bool paqm_flow_counted(const struct paqm_flow *f)
{
	return f && paqm_flow_class(f) == PAQM_MEDIA;
}

/* A flow that is set is not settled. */
static inline void paqm_flow_set(struct paqm_flow *f, u8 class, u8 nature)
{
	WRITE_ONCE(f->state, class | nature << 4);
}

/* @bits: 0, or PAQM_SETTLED_* for the rule in force */
static inline void paqm_flow_settle(struct paqm_flow *f, u8 bits)
{
	u8 old = READ_ONCE(f->state) & ~(PAQM_SETTLED_AUTO | PAQM_SETTLED_PROTOCOL);

	WRITE_ONCE(f->state, old | bits);
}

/* Rounds between two notices to a flow, @most at most. */
static inline u32 paqm_flow_every(const struct paqm_flow *f, u32 most)
{
	return min(1U << (READ_ONCE(f->every) & PAQM_RARE), most);
}

/* The clock of the table, in ticks of 2^20 ns: times and spans that are called so are in these. */
static inline u32 paqm_flow_clock(u64 now_ns)
{
	return (u32)(now_ns >> 20);
}

/* Ticks in ms, for people. */
static inline u32 paqm_flow_ms(u32 ticks)
{
	return (u32)paqm_div64(((u64)ticks << 20) + NSEC_PER_MSEC / 2, NSEC_PER_MSEC);
}

/* Who a flow is; written when its slot is claimed. */
struct paqm_tuple {
	u8 saddr[16];
	u8 daddr[16];
	__be32 ports;
	u8 family;
	u8 proto;
};

/**
 * struct paqm_rtp_source - one of the RTP sources of a flow
 * @mark: part of a hash of its SSRC
 * @seq: its last sequence number
 */
struct paqm_rtp_source {
	u16 mark;
	u16 seq;
};

/**
 * struct paqm_flow_more - what few packets of a flow touch
 * @tuple: addresses and ports
 * @low: lower half of the hash
 * @told: the last notice that was sent, or stamp
 * @told_bytes: @bytes of the flow when the last notice was owed
 * @unfit: packets that could not be quoted, though a notice was owed,
 * @unfit_round: in this round
 * @lost: packets beyond the fair rate that were dropped
 * @marked: the same, marked CE
 * @source: RTP sources whose sequence is watched
 * @sources: how many have been
 * @matches: packets in sequence
 * @misses: what was not since the last that was, PAQM_RTP_MISS_OTHER
 * @hears: PAQM_HEARS_INBAND: its packets carry a rate; PAQM_HEARS_MARK: they may be marked
 * @host: place of its host in struct paqm_hosts, where it is one of several flows of that
 *
 * All but @host is written by the datapath.
 */
struct paqm_flow_more {
	struct paqm_tuple tuple;
	u32 low;
	struct paqm_told told;
	u32 told_bytes;
	u32 unfit;
	u32 unfit_round;
	u32 lost;
	u32 marked;
	struct paqm_rtp_source source[PAQM_RTP_SOURCES];
	u8 sources;
	u8 matches;
	u8 misses;
	u8 hears;
	u16 host;
} __aligned(32);

/* What the window of a flow is, struct paqm_flow_gauge's @marked. */
enum paqm_marked {
	PAQM_MARKED_NOT,
	PAQM_MARKED_ROUND, /* that of the round */
	PAQM_MARKED_OWN,   /* a newcomer's: since it was first seen */
	PAQM_MARKED_ENDED, /* a newcomer that went before it was measured; counted */
};

/**
 * struct paqm_flow_gauge - what the outer loop knows of a flow
 * @claim: how often this slot was claimed, lowest bits; written by the datapath
 * @turns: how often @bytes has gone through half of its range; written by the datapath
 * @known: claim that the fields below belong to
 * @rate: measured rate, bit/s, 0 before the first window
 * @mark: @bytes at the beginning of the window,
 * @mark_turns: and @turns
 * @mark_tick: when a window of its own began
 * @drop: drop probability while policed, Q32
 * @deaf: windows above 1.25 R, halved by each that is not
 * @counted: elastic flow: windows above the mouse limit; 2: no mouse
 * @marked: enum paqm_marked
 *
 * Small, as a walk over the table reads and writes that of every living flow.
 */
struct paqm_flow_gauge {
	u16 claim;
	u16 known;
	u16 turns;
	u16 mark_turns;
	u64 rate;
	u32 mark;
	u32 mark_tick;
	u32 drop;
	u16 deaf;
	u8 counted;
	u8 marked;
};

/**
 * struct paqm_flows - the table
 * @flow: slots, eight to a set, sets aligned to their size
 * @more: one for each slot
 * @gauge: one for each slot
 * @mem: memory of @flow
 * @sets: how many
 * @age_ticks: silence after which a slot may be taken
 * @seen: flows that were given a slot
 * @overflow: packets whose flow found none
 * @rtp: flows recognised as RTP
 * @not_rtp: flows that began like RTP and were none
 */
struct paqm_flows {
	struct paqm_flow *flow;
	struct paqm_flow_more *more;
	struct paqm_flow_gauge *gauge;
	void *mem;
	u32 sets;
	u32 age_ticks;
	u64 seen;
	u64 overflow;
	u64 rtp;
	u64 not_rtp;
};

static inline void paqm_flows_free(struct paqm_flows *t)
{
	kvfree(t->mem);
	kvfree(t->more);
	kvfree(t->gauge);
	t->flow = NULL;
	t->mem = NULL;
	t->more = NULL;
	t->gauge = NULL;
}

/* How many it has. */
static inline u32 paqm_flows_slots(const struct paqm_flows *t)
{
	return PAQM_WAYS * READ_ONCE(t->sets);
}

/* Memory for @slots flows; the counters of @t go on. */
static inline int paqm_flows_alloc(struct paqm_flows *t, u32 slots)
{
	u32 sets = DIV_ROUND_UP(max(slots, 1U), PAQM_WAYS);
	size_t set_size = PAQM_WAYS * sizeof(*t->flow);

	BUILD_BUG_ON(sizeof(*t->flow) != 24);
	t->mem = kvzalloc(sets * set_size + SMP_CACHE_BYTES, GFP_KERNEL_ACCOUNT);
	t->more = kvcalloc(sets * PAQM_WAYS, sizeof(*t->more), GFP_KERNEL_ACCOUNT);
	t->gauge = kvcalloc(sets * PAQM_WAYS, sizeof(*t->gauge), GFP_KERNEL_ACCOUNT);
	if (!t->mem || !t->more || !t->gauge) {
		paqm_flows_free(t);
		return -ENOMEM;
	}
	t->flow = PTR_ALIGN(t->mem, SMP_CACHE_BYTES);
	t->sets = sets;
	return 0;
}

/* Exchange the memory of two tables; their counters stay. Nobody else may be reading. */
static inline void paqm_flows_swap(struct paqm_flows *a, struct paqm_flows *b)
{
	u32 sets = a->sets;

	swap(a->flow, b->flow);
	swap(a->more, b->more);
	swap(a->gauge, b->gauge);
	swap(a->mem, b->mem);
	WRITE_ONCE(a->sets, b->sets); /* statistics read it at any time */
	b->sets = sets;
}

static inline struct paqm_flow_more *paqm_flow_more(const struct paqm_flows *t,
						    const struct paqm_flow *f)
{
	return &t->more[f - t->flow];
}

static inline struct paqm_flow_gauge *paqm_flow_gauge(const struct paqm_flows *t,
						      const struct paqm_flow *f)
{
	return &t->gauge[f - t->flow];
}

/*
 * First slot of a hash's set. Chosen by the upper bits of one more product (Knuth, The Art of
 * Computer Programming 3, section 6.4): lower bits of the hash leave flows of neighbouring ports
 * or addresses in few of the sets, with one key of twenty.
 */
static inline struct paqm_flow *paqm_flows_set(const struct paqm_flows *t, u64 hash)
{
	return &t->flow[((u64)((u32)hash * PAQM_SPREAD) * t->sets >> 32) * PAQM_WAYS];
}

/* The rest of the hash; not 0, by PAQM_HASH_SET. */
static inline u32 paqm_flow_tag(u64 hash)
{
	return (u32)(hash >> 32);
}

static inline void paqm_tuple_set(struct paqm_tuple *tuple, const struct paqm_packet *p)
{
	memset(tuple, 0, sizeof(*tuple));
	tuple->family = p->family;
	tuple->proto = p->proto;
	tuple->ports = p->ports;
	if (p->family == 4) {
		memcpy(tuple->saddr, &((const struct iphdr *)p->net)->saddr, 4);
		memcpy(tuple->daddr, &((const struct iphdr *)p->net)->daddr, 4);
	} else {
		memcpy(tuple->saddr, &((const struct ipv6hdr *)p->net)->saddr, 16);
		memcpy(tuple->daddr, &((const struct ipv6hdr *)p->net)->daddr, 16);
	}
}

/**
 * paqm_flows_claim() - a slot for a flow that has none
 * @t: table
 * @p: its packet, with a hash
 * @now_tick: time
 *
 * Called under the qdisc lock.
 *
 * Return: the slot, or NULL when every slot of the set holds a living flow.
 */
static noinline __maybe_unused struct paqm_flow *
paqm_flows_claim(struct paqm_flows *t, const struct paqm_packet *p, u32 now_tick)
{
	struct paqm_flow *set = paqm_flows_set(t, p->hash), *flow;
	struct paqm_flow_gauge *gauge;
	struct paqm_flow_more *more;
	u32 silent, longest = 0;
	int i, victim = -1;

	for (i = 0; i < PAQM_WAYS; i++) {
		if (!set[i].tag) {
			victim = i;
			break;
		}
		silent = now_tick - set[i].last_tick;
		if (silent > t->age_ticks && silent >= longest) { /* the longest dead */
			longest = silent;
			victim = i;
		}
	}
	if (victim < 0) {
		WRITE_ONCE(t->overflow, t->overflow + 1);
		return NULL;
	}
	flow = &set[victim];
	more = paqm_flow_more(t, flow);
	gauge = paqm_flow_gauge(t, flow);
	/* A walker that reads between these writes sees the tag change. */
	WRITE_ONCE(flow->tag, 0);
	smp_wmb(); /* pairs with smp_rmb() in paqm_flows_walk() */
	WRITE_ONCE(flow->bytes, 0);
	WRITE_ONCE(flow->last_tick, now_tick);
	WRITE_ONCE(flow->every, ~flow->every & PAQM_CLAIM);
	flow->round = 0;
	WRITE_ONCE(flow->over, 0);
	paqm_flow_set(flow, PAQM_FLOW_UNSURE, PAQM_NATURE_OPEN);
	WRITE_ONCE(t->seen, t->seen + 1);
	/* a slot is claimed once in @age_ticks at most: between two walks no number comes again */
	WRITE_ONCE(gauge->claim, gauge->claim + 1);
	WRITE_ONCE(gauge->turns, 0);
	WRITE_ONCE(more->told.rate, 0);
	more->told_bytes = 0;
	more->unfit = 0;
	WRITE_ONCE(more->lost, 0);
	WRITE_ONCE(more->marked, 0);
	WRITE_ONCE(more->hears, 0);
	more->low = (u32)p->hash;
	more->matches = 0;
	more->misses = 0;
	more->sources = 0;
	paqm_tuple_set(&more->tuple, p);
	/* the slot is whole: pairs with the acquire in paqm_flows_walk() */
	smp_store_release(&flow->tag, paqm_flow_tag(p->hash));
	return flow;
}

/* The slot of a set with that tag, or NULL. */
static __always_inline struct paqm_flow *paqm_flows_slot(struct paqm_flow *set, u32 tag)
{
	int i;

	for (i = 0; i < PAQM_WAYS; i++)
		if (set[i].tag == tag)
			return &set[i];
	return NULL;
}

/**
 * paqm_flows_find() - slot of a flow
 * @t: table
 * @hash: its hash
 * @now_tick: time
 * @fresh: set if the flow is back after a silence: it joins the census anew
 *
 * Called under the qdisc lock.
 *
 * Return: the slot, or NULL if it has none.
 */
static inline struct paqm_flow *paqm_flows_find(const struct paqm_flows *t, u64 hash, u32 now_tick,
						bool *fresh)
{
	struct paqm_flow *flow = paqm_flows_slot(paqm_flows_set(t, hash), paqm_flow_tag(hash));

	if (flow) {
		*fresh = now_tick - flow->last_tick > PAQM_FLOW_ACTIVE_TICKS;
		WRITE_ONCE(flow->last_tick, now_tick);
	}
	return flow;
}

/**
 * paqm_flow_pass() - count a packet of a flow about which nothing is open
 * @f: the flow
 * @settled: PAQM_SETTLED_* for the rule in force
 * @len: bytes that it adds to the flow
 * @now_tick: time
 *
 * Most packets are of such flows. Each of these has a closer look once in 2^14 bytes, and
 * after a silence. Called under the qdisc lock.
 *
 * Return: whether the flow's class is that of the packet; if not, nothing was done, and
 * the packet needs a closer look.
 */
static __always_inline bool paqm_flow_pass(struct paqm_flow *f, u8 settled, u32 len, u32 now_tick)
{
	u32 bytes = f->bytes + len;

	if (!(f->state & settled) || (f->bytes ^ bytes) >> PAQM_LOOK_SHIFT ||
	    now_tick - f->last_tick > PAQM_FLOW_ACTIVE_TICKS)
		return false;
	WRITE_ONCE(f->bytes, bytes);
	WRITE_ONCE(f->last_tick, now_tick);
	return true;
}

/*
 * Add a packet to what a flow has sent. Half of the range of 32 bits is 40 ms of a link of
 * 400 Gbit/s: what goes beyond is counted apart, here and not in paqm_flow_pass(), as a packet
 * with which that happens has a closer look. Called under the qdisc lock.
 */
static inline void paqm_flow_add(struct paqm_flows *t, struct paqm_flow *f, u32 len)
{
	u32 bytes = f->bytes + len;

	if (unlikely((f->bytes ^ bytes) >> 31)) {
		struct paqm_flow_gauge *g = paqm_flow_gauge(t, f);

		WRITE_ONCE(g->turns, g->turns + 1);
		smp_wmb(); /* pairs with smp_rmb() in paqm_flow_turns() */
	}
	WRITE_ONCE(f->bytes, bytes);
}

/*
 * @turns that belong to the @bytes of a flow, which were read before. The last bit of the one is
 * the first of the other: if not, @bytes are from before the last turn.
 */
static inline u16 paqm_flow_turns(const struct paqm_flow_gauge *g, u32 bytes)
{
	u16 turns;

	smp_rmb(); /* pairs with smp_wmb() in paqm_flow_add() */
	turns = READ_ONCE(g->turns);
	return turns - ((turns & 1) != bytes >> 31);
}

/* A window of a flow that has sent @bytes, after @turns, begins. */
static inline void paqm_gauge_open(struct paqm_flow_gauge *g, u32 bytes, u16 turns)
{
	g->mark = bytes;
	g->mark_turns = turns;
}

/* What it has sent since then. */
static inline u64 paqm_gauge_sent(const struct paqm_flow_gauge *g, u32 bytes, u16 turns)
{
	u64 now = ((u64)turns << 31) + (bytes & S32_MAX);
	u64 then = ((u64)g->mark_turns << 31) + (g->mark & S32_MAX);

	return (now - then) & ((1ULL << 47) - 1);
}

/**
 * paqm_flow_publish() - what the outer loop has found out about a flow
 * @f: its slot
 * @seen: @every, as it was when the slot was the flow's for sure
 * @every: what it is to be; PAQM_CLAIM is taken from @seen
 *
 * The outer loop holds no lock. It may have been kept from running since it looked at the slot,
 * for so long that the flow was silent for @age_ticks and another one has the slot, which then must
 * not be known, or policed, for what the old one did. So @every is written only if no claim was
 * in between, which would have turned PAQM_CLAIM over: both are in one word, and comparing and
 * writing that is one step. @seen was read before the tag was found to be the same as before:
 *
 *	paqm_flows_claim()		paqm_flow_visit()
 *	tag = 0				tag (acquire)
 *	smp_wmb()			seen = every, with PAQM_CLAIM
 *	PAQM_CLAIM turns over		smp_rmb()
 *	tag = new (release)		tag again: go on only if it is the same
 *					compare PAQM_CLAIM in every with seen, and write
 *
 * If @seen is what the claim wrote, the second look at the tag finds 0 or the new one. If it is
 * what was there before, the comparison fails once the claim has written, and if the claim writes
 * later, it writes over what was published. Only two claims in that time, between which at least
 * @age_ticks pass, would look like none. Whatever the datapath writes to the word meanwhile makes
 * the step fail, and it is tried again.
 *
 * Return: whether it is the same flow still.
 */
static inline bool paqm_flow_publish(struct paqm_flow *f, u8 seen, u8 every)
{
	struct paqm_flow next;
	u32 old = READ_ONCE(f->word);

	do {
		next.word = old;
		if ((next.every ^ seen) & PAQM_CLAIM)
			return false;
		next.every = (every & ~PAQM_CLAIM) | (seen & PAQM_CLAIM);
	} while (!try_cmpxchg(&f->word, &old, next.word));
	return true;
}

/* Time between the last packet of a flow, at @last_tick, and @now_tick; none if it came later. */
static inline u32 paqm_flow_silence(u32 last_tick, u32 now_tick)
{
	u32 silent = now_tick - last_tick;

	return silent > -PAQM_SILENT_LONG ? 0 : silent;
}

/* Time since the last packet of a flow. */
static inline u32 paqm_flow_silent(const struct paqm_flow *f, u32 now_tick)
{
	return paqm_flow_silence(READ_ONCE(f->last_tick), now_tick);
}

/*
 * The living flows of @from into the empty @to, as far as there is room. The
 * datapath may go on with @from meanwhile: some bytes are not counted then.
 */
static inline void paqm_flows_copy(struct paqm_flows *to, const struct paqm_flows *from,
				   u32 now_tick)
{
	u32 i, j, n = paqm_flows_slots(from);

	for (i = 0; i < n; i++) {
		/* pairs with the release in paqm_flows_claim() */
		u32 tag = smp_load_acquire(&from->flow[i].tag);
		struct paqm_flow *set = paqm_flows_set(to, from->more[i].low);

		if (paqm_flow_silent(&from->flow[i], now_tick) > from->age_ticks)
			continue;
		for (j = 0; tag && j < PAQM_WAYS; j++) {
			if (set[j].tag)
				continue;
			set[j] = from->flow[i];
			set[j].tag = tag;
			*paqm_flow_more(to, &set[j]) = from->more[i];
			*paqm_flow_gauge(to, &set[j]) = from->gauge[i];
			break;
		}
		if (!(i & 8191))
			cond_resched();
	}
}

/*
 * The remembered source of a packet, or NULL. One that is new takes a place that is free,
 * or, now and then, that of the oldest: in a flow of more sources than places some stay.
 */
static struct paqm_rtp_source *paqm_rtp_find(struct paqm_flow_more *m, const struct paqm_packet *p)
{
	u16 mark = (u16)((p->ssrc * 0x9E3779B1U) >> 16); /* 2^32 / golden ratio */
	u32 i, known = min_t(u32, m->sources, PAQM_RTP_SOURCES);

	for (i = 0; i < known; i++)
		if (m->source[i].mark == mark)
			return &m->source[i];
	if (known < PAQM_RTP_SOURCES || m->misses % PAQM_RTP_HOLD == PAQM_RTP_HOLD - 1) {
		m->source[m->sources % PAQM_RTP_SOURCES] = (struct paqm_rtp_source){ mark, p->seq };
		m->sources = m->sources < 2 * PAQM_RTP_SOURCES - 1 ? m->sources + 1 :
								     PAQM_RTP_SOURCES;
	}
	return NULL;
}

/* Weigh the evidence of a packet for or against RTP; returns what the flow is now. */
static noinline u8 paqm_flow_watch(struct paqm_flows *t, struct paqm_flow *f, u8 nature,
				   const struct paqm_packet *p)
{
	struct paqm_flow_more *m = paqm_flow_more(t, f);
	bool rtp = p->kind == PAQM_KIND_RTP;
	struct paqm_rtp_source *s = rtp ? paqm_rtp_find(m, p) : NULL;
	u16 ahead = s ? p->seq - s->seq : 0, most = PAQM_RTP_JUMP_JUDGED;
	u32 misses;

	if (nature == PAQM_NATURE_OPEN)
		most = PAQM_RTP_JUMP;
	if (s)
		s->seq = p->seq;
	if (ahead && ahead <= most) {
		m->misses = 0;
		if (nature == PAQM_NATURE_RTP)
			return nature;
		m->matches++;
		if (m->matches < (nature == PAQM_NATURE_OPEN ? PAQM_RTP_MATCHES : PAQM_RTP_REMATCH))
			return nature;
		WRITE_ONCE(t->rtp, t->rtp + 1);
		return PAQM_NATURE_RTP;
	}
	/* a known source out of sequence is worse than one that is new here */
	misses = min_t(u32, m->misses + (rtp && !s ? 1 : PAQM_RTP_MISS_OTHER), U8_MAX);
	m->misses = misses;
	if (nature == PAQM_NATURE_NOT_RTP) {
		m->matches /= 2;
		return nature;
	}
	if (misses <= (nature == PAQM_NATURE_RTP ? PAQM_RTP_LOST : PAQM_RTP_MISSES))
		return nature;
	m->matches = 0;
	WRITE_ONCE(t->not_rtp, t->not_rtp + 1);
	return PAQM_NATURE_NOT_RTP;
}

/**
 * paqm_flow_wants_look() - must the payload of a packet be looked into?
 * @f: its flow, NULL if it has no slot
 * @len: bytes that it adds to the flow
 *
 * Of a judged flow only one packet in 16 kB is.
 *
 * Return: whether it is worth while.
 */
static inline bool paqm_flow_wants_look(const struct paqm_flow *f, u32 len)
{
	return !f || paqm_flow_nature(f) == PAQM_NATURE_OPEN ||
	       (f->bytes ^ (f->bytes + len)) >> PAQM_LOOK_SHIFT;
}

/**
 * paqm_flow_judge_udp() - which queue a packet of a UDP flow belongs to
 * @t: table
 * @f: its flow, NULL if there was no room: then the packet alone decides
 * @p: packet; of kind PAQM_KIND_UDP if it was not looked into
 *
 * Until a flow is recognised its RTP-like packets ride with media and it is not
 * counted, so a false alarm costs nobody a share.
 *
 * Return: class, PAQM_FLOW_UNSURE for media that is not to be counted.
 */
static inline u8 paqm_flow_judge_udp(struct paqm_flows *t, struct paqm_flow *f,
				     const struct paqm_packet *p)
{
	bool rtp = p->kind == PAQM_KIND_RTP;
	u8 nature, now;

	if (unlikely(!f))
		return rtp ? PAQM_MEDIA : PAQM_ELASTIC;
	nature = paqm_flow_nature(f);
	if (p->kind != PAQM_KIND_UDP) {
		now = paqm_flow_watch(t, f, nature, p);
		if (now != nature)
			paqm_flow_set(f, paqm_flow_class(f), now);
		nature = now;
	}
	switch (nature) {
	case PAQM_NATURE_RTP:
		return PAQM_MEDIA;
	case PAQM_NATURE_NOT_RTP:
		return PAQM_ELASTIC;
	}
	return rtp ? PAQM_FLOW_UNSURE : PAQM_ELASTIC;
}

/**
 * struct paqm_top - the busiest media flows of a round, fastest first
 * @n: how many
 * @flow: they
 */
struct paqm_top {
	u32 n;
	struct paqm_top_flow {
		struct paqm_tuple tuple;
		u64 rate;
		u32 told;
		u32 told_tick;
		u32 last_tick;
		u32 drop;
		u32 tag;
		u32 lost;
		u32 marked;
		u16 over;
		u16 deaf;
		u16 host;
		u8 hears;
		u8 every;
	} flow[PAQM_TOP_FLOWS];
};

#define PAQM_HOSTS 4096 /* so many are told apart, by a keyed hash */
#define PAQM_PART_ONE 256 /* a host by its flow, where that is its only one: Q8 */

/* Whose address is a host's. */
enum paqm_side {
	PAQM_SIDE_SOURCE,
	PAQM_SIDE_DESTINATION,
	PAQM_SIDES,
	PAQM_SIDE_NONE = PAQM_SIDES, /* there is one only: flows are equal */
};

/**
 * struct paqm_host - a host with media flows that are known
 * @rate: what they send together, bit/s
 * @told: what they were told together, bit/s
 * @limited: what those of them send that use less than an equal part of the host's rate
 * @n_limited: how many are limited
 * @seen: how many there are, in the walk
 * @grows: one of them is taken for one that grows
 * @joins: it has none yet, but newcomers
 * @then: @parts at the end of the last period
 * @high: the highest of it since the one before
 * @parts: rate of the host by that of each of its flows, Q8
 * @low: the lowest of it since the last period but one: nobody is out of line before he can know
 * @flows: how many share its rate
 * @due: when the bucket of all of them is full again
 * @used_tick: when that was last looked at
 * @over: overflow queue that they share, 0: none
 *
 * The datapath reads @parts to @flows, which the outer loop publishes, and owns what follows.
 */
struct paqm_host {
	u64 rate;
	u64 told;
	u64 limited;
	u32 n_limited;
	u32 seen;
	bool grows;
	bool joins;
	u32 then;
	u32 high;
	u32 parts;
	u32 low;
	u32 flows;
	u32 due;
	u32 used_tick;
	u16 over;
};

/**
 * struct paqm_hosts - hosts that are equal, whatever number of flows each has
 * @side: of the media flows' addresses, the one by which hosts are told apart
 * @flows: media flows that are known, by the hash of their host; for both sides
 * @elastic: hosts of elastic flows, the same
 * @host: those of media, on that side
 */
struct paqm_hosts {
	enum paqm_side side;
	u32 flows[PAQM_SIDES][PAQM_HOSTS];
	DECLARE_BITMAP(elastic[PAQM_SIDES], PAQM_HOSTS);
	struct paqm_host host[PAQM_HOSTS];
};

/**
 * struct paqm_census - what one walk over the table found
 * @mm: media flows that are known, for the water-filling
 * @media: active media flows
 * @takers: those among whom capacity is divided: flows that are known, or their hosts
 * @newcomers: those that are not known yet
 * @joining: takers that these will be: where hosts are equal, those that are not known
 * @proven: newcomers that became known in this walk
 * @passed: newcomers that went before they were
 * @deaf: flows that send more than they were told
 * @deaf_q16: the same, a flow of a host with several counting as its part of that
 * @follow_q16: flows that use what they were told, and no more; likewise
 * @follow_rate: what those send together, bit/s
 * @heavy: flows that send a quarter of the fair rate or more
 * @elastic: active elastic flows that are more than mice
 * @present: all active elastic flows
 * @used: slots in use
 * @policed: flows with a drop probability
 * @top: the fastest media flows
 */
struct paqm_census {
	struct paqm_mm mm;
	struct paqm_top top;
	u32 media;
	u32 takers;
	u32 newcomers;
	u32 joining;
	u32 proven;
	u32 passed;
	u32 deaf;
	u64 deaf_q16;
	u64 follow_q16;
	u64 follow_rate;
	u32 heavy;
	u32 elastic;
	u32 present;
	u32 used;
	u32 policed;
};

/* All hosts begin anew. The datapath may go on meanwhile: a host without flows limits none. */
static inline void paqm_hosts_clear(struct paqm_hosts *h)
{
	u32 i;

	memset(h->flows, 0, sizeof(h->flows));
	memset(h->elastic, 0, sizeof(h->elastic));
	for (i = 0; i < PAQM_HOSTS; i++)
		h->host[i] = (struct paqm_host){};
	h->side = PAQM_SIDE_SOURCE;
}

/* What a flow of a host is told of the host's rate. */
static inline u64 paqm_host_part(const struct paqm_host *h, u64 fair)
{
	return paqm_muldiv(fair, PAQM_PART_ONE, max_t(u32, READ_ONCE(h->parts), PAQM_PART_ONE));
}

/* Hosts with elastic flows on the side on which there are fewer: those behind this link, mostly. */
static inline u32 paqm_hosts_elastic(const struct paqm_hosts *h)
{
	return min(bitmap_weight(h->elastic[PAQM_SIDE_SOURCE], PAQM_HOSTS),
		   bitmap_weight(h->elastic[PAQM_SIDE_DESTINATION], PAQM_HOSTS));
}

/*
 * The side whose addresses are hosts, with so many different ones on each: the one with fewer.
 * But one that is alone says nothing where there are several on the other side.
 */
static inline enum paqm_side paqm_hosts_side(u32 sources, u32 destinations, enum paqm_side before)
{
	if (sources <= 1 && destinations <= 1)
		return PAQM_SIDE_NONE;
	if (sources <= 1)
		return PAQM_SIDE_DESTINATION;
	if (destinations <= 1)
		return PAQM_SIDE_SOURCE;
	if (sources == destinations && before != PAQM_SIDE_NONE)
		return before;
	return destinations < sources ? PAQM_SIDE_DESTINATION : PAQM_SIDE_SOURCE;
}

/**
 * struct paqm_walk - how to measure during a walk
 * @now_tick: time
 * @window_ns: since the marks were set
 * @grain: rate of some full packets in the window: less is chance, bit/s
 * @fair: rate that media flows may send since the window began, bit/s; 0 before the first
 *	round. Where it changed meanwhile, the lowest: more than that was asked of nobody
 * @fair_least: the lowest in the last second: the answer to it may still be arriving
 * @fair_most: the highest since the window began
 * @equal: capacity divided by all flows, bit/s
 * @fair_new: what newcomers were told, bit/s
 * @answer_ticks: until what flows were told shows in what they send
 * @mouse: elastic flows below this rate are mice, bit/s
 * @cautious: the queue grew: nobody is taken for limited by an old measurement
 * @police: flows that do not listen may be dropped
 * @overloaded: and it is time to begin with that
 * @max_every: longest pause between notices, in rounds
 * @hosts: that are to be equal; NULL: flows are
 * @key: of their hash
 * @slow: telling all flows takes more than a period
 */
struct paqm_walk {
	u32 now_tick;
	u64 window_ns;
	u64 grain;
	u64 fair;
	u64 fair_least;
	u64 fair_most;
	u64 equal;
	u64 fair_new;
	u32 answer_ticks;
	u64 mouse;
	bool cautious;
	bool police;
	bool overloaded;
	u32 max_every;
	struct paqm_hosts *hosts;
	const u64 *key;
	bool slow;
};

/* tau1 takes at most half of the default period: what it leaves has to count, however late */
#define PAQM_WINDOW_MIN_NS (120 * NSEC_PER_MSEC)
/* A newcomer is known when it has lasted for so long, and its last packet is not older. */
#define PAQM_NEWCOMER_NS (400 * NSEC_PER_MSEC)
#define PAQM_NEWCOMER_SILENT_TICKS 100
#define PAQM_YOUNG_DIV 8 /* one that sends less than such a part of R does not grow: sound */
#define PAQM_DEAF_NOTICE 8  /* rounds after which notices become rarer */
#define PAQM_DEAF_STRIKE 3  /* rounds after which policing may begin */

/**
 * struct paqm_right - what a media flow that is known may send
 * @told: it was told that at least, bit/s; 0: not judged by it yet
 * @fair: as in struct paqm_walk, for this flow
 * @most: @fair_most, for this flow
 * @equal: for this flow
 * @part_q16: of what the unit of the division has: 1 where that is the flow
 * @host: its host, where hosts are equal
 * @shares: and has more flows
 */
struct paqm_right {
	u64 told;
	u64 fair;
	u64 most;
	u64 equal;
	u32 part_q16;
	struct paqm_host *host;
	bool shares;
};

/* Count a flow in its host; @told as in struct paqm_right, 0: it is taken for one that grows. */
static inline void paqm_host_add(const struct paqm_flow_gauge *g, const struct paqm_walk *w,
				 const struct paqm_right *r, u32 flows, u64 told)
{
	struct paqm_host *h = r->host;

	h->seen++;
	h->rate += g->rate;
	h->told += told;
	h->grows |= !told;
	if (r->shares && g->rate < paqm_mul_q24(paqm_div64(w->fair, flows), PAQM_MM_GREEDY_Q24)) {
		h->limited += g->rate;
		h->n_limited++;
	}
}

/*
 * Judge one media flow that is known by what it sends against what it was told. @seen: as for
 * paqm_flow_publish(); @measured: just now; @flows: of its host.
 */
static inline void paqm_flow_judge(struct paqm_flow *f, struct paqm_flow_gauge *g,
				   const struct paqm_walk *w, struct paqm_census *c,
				   const struct paqm_right *r, u32 flows, u8 seen, bool measured)
{
	u32 every = 0, drop = 0;
	u64 told = r->told;
	bool young;

	if (measured && r->most && g->rate > r->most + r->most / 4)
		g->deaf = min_t(u32, g->deaf + 1, 1000);
	else if (measured)
		g->deaf /= 2; /* whoever stops for a moment is not forgiven all */
	if (g->deaf > PAQM_DEAF_NOTICE)
		every = min(g->deaf / PAQM_DEAF_NOTICE, 6);
	/*
	 * Strike, if that is asked for: above twice the fair rate for long, while media is
	 * overloaded. Then until it does as it is told: dropping alone ends the overload. An
	 * equal part of the link is left: others that only hear of changes do not use more
	 * while it does.
	 */
	if (w->police && g->deaf > PAQM_DEAF_STRIKE && g->rate > r->fair &&
	    (g->drop || (w->overloaded && g->rate > 2 * r->fair))) {
		drop = PAQM_U32_MAX - (u32)paqm_muldiv(min(r->fair, r->equal ?: r->fair),
						       PAQM_U32_MAX, g->rate);
		c->policed++;
	}
	if (g->drop != drop)
		WRITE_ONCE(g->drop, drop);
	every |= PAQM_KNOWN | (r->shares ? PAQM_SHARES : 0);
	every |= (drop ? PAQM_POLICED : 0) | (g->deaf ? PAQM_DEAF : 0) | (seen & PAQM_CLAIM);
	if (seen != every && !paqm_flow_publish(f, seen, every))
		return; /* it has gone, and another one has its slot */
	if (g->deaf) {
		c->deaf++;
		c->deaf_q16 += r->part_q16;
	}
	c->heavy += g->rate >= r->fair / 4;
	/* entitlement, not appetite: who sends more than his rate is one who uses it */
	/* taken for one that grows while its answer to what it was told may be on its way */
	young = w->now_tick - g->mark_tick < w->answer_ticks && g->rate >= told / PAQM_YOUNG_DIV;
	if (w->cautious || young)
		told = 0;
	if (told && !g->deaf && g->rate >= paqm_mul_q24(told, PAQM_MM_GREEDY_Q24)) {
		c->follow_q16 += r->part_q16;
		c->follow_rate += g->rate;
	}
	if (r->host)
		paqm_host_add(g, w, r, flows, told);
	else
		paqm_mm_add(&c->mm, g->rate, told);
}

/* Enter a media flow into the list of the fastest. */
static inline void paqm_top_add(struct paqm_top *top, const struct paqm_flow *f,
				const struct paqm_flow_more *m, const struct paqm_flow_gauge *g)
{
	u32 i;

	if (top->n == PAQM_TOP_FLOWS && g->rate <= top->flow[PAQM_TOP_FLOWS - 1].rate)
		return;
	i = top->n < PAQM_TOP_FLOWS ? top->n++ : PAQM_TOP_FLOWS - 1;
	for (; i && top->flow[i - 1].rate < g->rate; i--)
		top->flow[i] = top->flow[i - 1];
	top->flow[i] = (struct paqm_top_flow){
		.tuple = m->tuple,
		.rate = g->rate,
		.told = READ_ONCE(m->told.rate),
		.told_tick = READ_ONCE(m->told.tick),
		.last_tick = READ_ONCE(f->last_tick),
		.drop = g->drop,
		.tag = READ_ONCE(f->tag),
		.lost = READ_ONCE(m->lost),
		.marked = READ_ONCE(m->marked),
		.over = READ_ONCE(f->over),
		.deaf = g->deaf,
		.hears = READ_ONCE(m->hears),
		.host = m->host,
		.every = READ_ONCE(f->every),
	};
}

/* Set the beginning of the measuring window of every flow. */
static inline void paqm_flows_mark(struct paqm_flows *t)
{
	u32 i, n = paqm_flows_slots(t);

	for (i = 0; i < n; i++) {
		if (READ_ONCE(t->flow[i].tag) && t->gauge[i].marked <= PAQM_MARKED_ROUND) {
			u32 bytes = READ_ONCE(t->flow[i].bytes);

			paqm_gauge_open(&t->gauge[i], bytes, paqm_flow_turns(&t->gauge[i], bytes));
			t->gauge[i].marked = PAQM_MARKED_ROUND;
		}
		if (!(i & 8191))
			cond_resched();
	}
}

/* Has an elastic flow, with @bytes after @turns, sent enough to be counted? */
static inline bool paqm_flow_counts(struct paqm_flow_gauge *g, const struct paqm_walk *w,
				    u32 bytes, u16 turns)
{
	if (turns)
		bytes = U32_MAX;
	/* many bytes, or two windows above the limit; off at half of it */
	if (g->rate < w->mouse / 2 && g->counted == 2 && g->rate)
		g->counted = 0;
	else if (bytes >= PAQM_MOUSE_BYTES && !g->rate)
		g->counted = 2;
	else if (g->rate >= w->mouse && g->counted < 2 && w->window_ns >= PAQM_WINDOW_MIN_NS)
		g->counted = bytes >= PAQM_MOUSE_BYTES ? 2 : g->counted + 1;
	return g->counted == 2;
}

/* Place of the host of a flow on one side. */
static inline u32 paqm_host_place(const struct paqm_tuple *t, enum paqm_side side, const u64 *key)
{
	const u8 *addr = side == PAQM_SIDE_SOURCE ? t->saddr : t->daddr;
	siphash_key_t k = { { key[0], key[1] } };

	/* else somebody could choose whose share he takes */
	return siphash_3u64(get_unaligned_le64(addr), get_unaligned_le64(addr + 8), t->family,
			    &k) % PAQM_HOSTS;
}

/*
 * A new rate: smoothed, but one that is far from the old is not taken for half of it. What is
 * far from fair counts in sums only, which all others' rates follow: more slowly.
 */
static inline void paqm_flow_rate(struct paqm_flow_gauge *g, u64 rate, const struct paqm_walk *w)
{
	u64 diff = rate > g->rate ? rate - g->rate : g->rate - rate;

	if (!g->rate || (diff > g->rate / 4 && diff > w->grain))
		g->rate = rate;
	else if (w->grain != U64_MAX && max(rate, g->rate) < w->fair / 2)
		g->rate = (3 * g->rate + rate) / 4;
	else
		g->rate = (g->rate + rate) / 2;
}

/* A newcomer's window, ns; 0: it has not lasted. */
static inline u64 paqm_flow_lasted(const struct paqm_flow_gauge *g, const struct paqm_walk *w,
				   u32 silent)
{
	u64 window = (u64)(w->now_tick - g->mark_tick) << 20;

	return window < PAQM_NEWCOMER_NS || silent > PAQM_NEWCOMER_SILENT_TICKS ? 0 : window;
}

/* End a flow's window, if it has one that is long enough; says whether it was measured. */
static inline bool paqm_flow_measure(struct paqm_flow_gauge *g, const struct paqm_walk *w,
				     u32 bytes, u16 turns, u32 silent)
{
	u64 window = w->window_ns;

	if (g->marked == PAQM_MARKED_OWN) {
		window = paqm_flow_lasted(g, w, silent);
		if (!window)
			return false;
		g->marked = PAQM_MARKED_NOT; /* the next one is the round's */
	} else if (g->marked != PAQM_MARKED_ROUND || window < PAQM_WINDOW_MIN_NS) {
		return false;
	}
	paqm_flow_rate(g, paqm_rate_bps(paqm_gauge_sent(g, bytes, turns), window), w);
	return true;
}

/* What a media flow may send where hosts are equal: @r says what its host may. */
static inline u32 paqm_host_right(struct paqm_flow_more *m, const struct paqm_walk *w,
				  struct paqm_right *r, u64 before)
{
	u32 place = paqm_host_place(&m->tuple, w->hosts->side, w->key), low, high;
	u32 flows = max(w->hosts->flows[w->hosts->side][place], 1U);

	r->host = &w->hosts->host[place];
	if (flows == 1)
		return flows;
	WRITE_ONCE(m->host, place);
	low = max_t(u32, r->host->low, PAQM_PART_ONE);
	high = max(r->host->high, low);
	r->shares = true;
	r->fair = paqm_muldiv(r->fair, PAQM_PART_ONE, high);
	r->most = paqm_muldiv(r->most, PAQM_PART_ONE, low);
	r->equal = paqm_div64(r->equal, flows);
	r->part_q16 = PAQM_Q16_ONE * PAQM_PART_ONE / max_t(u32, r->host->parts, PAQM_PART_ONE);
	r->told = paqm_mm_may_grow(paqm_muldiv(w->fair_least, PAQM_PART_ONE, high), r->equal,
				   before, w->slow);
	return flows;
}

/* Does a newcomer bring one more to divide among? Flows of known hosts do not, nor twice one's. */
static inline bool paqm_host_joins(const struct paqm_flow_more *m, const struct paqm_walk *w)
{
	struct paqm_hosts *hosts = w->hosts;
	bool joins;
	u32 place;

	if (!hosts || hosts->side == PAQM_SIDE_NONE)
		return true;
	place = paqm_host_place(&m->tuple, hosts->side, w->key);
	joins = !hosts->flows[hosts->side][place] && !hosts->host[place].joins;
	hosts->host[place].joins = true;
	return joins;
}

/*
 * An active media flow. A newcomer is known when it has lasted for a window and used
 * something in it; until then it weighs nothing by itself (paqm_newcomers()).
 */
static inline void paqm_flow_visit_media(struct paqm_flows *t, struct paqm_flow *f,
					 const struct paqm_walk *w, struct paqm_census *c,
					 u32 bytes, u16 turns, u8 seen, bool measured, u64 before)
{
	struct paqm_flow_gauge *g = paqm_flow_gauge(t, f);
	struct paqm_flow_more *m = paqm_flow_more(t, f);
	struct paqm_right r = {
		.told = paqm_mm_may_grow(w->fair_least, w->equal, before, w->slow),
		.fair = w->fair,
		.most = w->fair_most,
		.equal = w->equal,
		.part_q16 = PAQM_Q16_ONE,
	};
	bool proven = false;
	u32 flows = 1;

	c->media++;
	if (!(seen & PAQM_KNOWN)) {
		if (!measured || !g->rate || g->marked == PAQM_MARKED_ROUND) {
			c->newcomers++;
			c->joining += paqm_host_joins(m, w);
			if (g->marked == PAQM_MARKED_OWN)
				return;
			paqm_gauge_open(g, bytes, turns);
			g->mark_tick = w->now_tick;
			g->marked = PAQM_MARKED_OWN;
			return;
		}
		c->proven++;
		proven = true;
	}
	if (w->hosts && w->hosts->side != PAQM_SIDE_NONE)
		flows = paqm_host_right(m, w, &r, before);
	else
		c->takers++;
	if (proven) { /* a newcomer was told the same whoever sent it */
		r.told = w->fair_new;
		r.most = w->fair_most;
	}
	paqm_flow_judge(f, g, w, c, &r, flows, seen, measured);
	paqm_top_add(&c->top, f, m, g);
}

/* Note the hosts of an elastic flow that counts. */
static inline void paqm_host_elastic(const struct paqm_walk *w, const struct paqm_tuple *t)
{
	int side;

	for (side = 0; side < PAQM_SIDES; side++)
		__set_bit(paqm_host_place(t, side, w->key), w->hosts->elastic[side]);
}

/* Does a flow count in its host, as it is known or will be in this walk? */
static inline bool paqm_flow_has_host(const struct paqm_flow *f, const struct paqm_flow_gauge *g,
				      const struct paqm_walk *w)
{
	u32 silent = paqm_flow_silent(f, w->now_tick);

	if (paqm_flow_class(f) != PAQM_MEDIA || silent > PAQM_FLOW_ACTIVE_TICKS)
		return false;
	return READ_ONCE(f->every) & PAQM_KNOWN ||
	       (g->known == READ_ONCE(g->claim) && g->marked == PAQM_MARKED_OWN &&
		READ_ONCE(f->bytes) != g->mark && paqm_flow_lasted(g, w, silent));
}

/* Before a walk: how many media flows has each host? A flow's part is known with the first. */
static inline void paqm_hosts_count(struct paqm_flows *t, const struct paqm_walk *w)
{
	u32 i, n = paqm_flows_slots(t), many[PAQM_SIDES] = {};
	struct paqm_hosts *h = w->hosts;
	int side;

	memset(h->flows, 0, sizeof(h->flows));
	memset(h->elastic, 0, sizeof(h->elastic));
	for (i = 0; i < n; i++) {
		/* pairs with the release in paqm_flows_claim() */
		if (smp_load_acquire(&t->flow[i].tag) &&
		    paqm_flow_has_host(&t->flow[i], &t->gauge[i], w))
			for (side = 0; side < PAQM_SIDES; side++)
				h->flows[side][paqm_host_place(&t->more[i].tuple, side, w->key)]++;
		if (!(i & 8191))
			cond_resched();
	}
	for (i = 0; i < PAQM_HOSTS; i++) {
		for (side = 0; side < PAQM_SIDES; side++)
			many[side] += !!h->flows[side][i];
		h->host[i].rate = 0;
		h->host[i].told = 0;
		h->host[i].limited = 0;
		h->host[i].n_limited = 0;
		h->host[i].seen = 0;
		h->host[i].grows = false;
		h->host[i].joins = false;
	}
	h->side = paqm_hosts_side(many[PAQM_SIDE_SOURCE], many[PAQM_SIDE_DESTINATION], h->side);
}

/* After it: hosts are what capacity is divided among. */
static inline void paqm_hosts_add(const struct paqm_walk *w, struct paqm_census *c)
{
	u32 i;

	for (i = 0; i < PAQM_HOSTS; i++) {
		const struct paqm_host *h = &w->hosts->host[i];
		u64 told = h->seen > 1 ? min(h->told, w->fair_least) : h->told;

		if (!h->seen)
			continue;
		c->takers++;
		paqm_mm_add(&c->mm, h->rate, h->grows ? 0 : told);
	}
}

/*
 * Divide the rate of each host among its flows: @fair, bit/s, which is told now; @whole: a period
 * has ended.
 */
static inline void paqm_hosts_divide(struct paqm_hosts *hosts, u64 fair, bool whole)
{
	u32 i, flows, parts, low, high, then;

	for (i = 0; i < PAQM_HOSTS; i++) {
		struct paqm_host *h = &hosts->host[i];

		flows = h->seen ? hosts->flows[hosts->side][i] : 0;
		parts = PAQM_PART_ONE;
		if (flows > 1)
			parts = paqm_mm_parts(fair, flows, h->n_limited, h->limited);
		then = max_t(u32, h->then, PAQM_PART_ONE);
		low = min(whole ? then : max_t(u32, h->low, PAQM_PART_ONE), parts);
		high = max(whole ? then : h->high, parts);
		if (whole)
			h->then = parts;
		h->high = high;
		WRITE_ONCE(h->low, low);
		WRITE_ONCE(h->parts, parts);
		WRITE_ONCE(h->flows, flows);
	}
}

/* One slot in use. */
static inline void paqm_flow_visit(struct paqm_flows *t, struct paqm_flow *f,
				   u32 tag, const struct paqm_walk *w, struct paqm_census *c)
{
	struct paqm_flow_gauge *g = paqm_flow_gauge(t, f);
	u32 bytes = READ_ONCE(f->bytes), last = READ_ONCE(f->last_tick);
	u32 silent = paqm_flow_silence(last, w->now_tick);
	u16 turns = paqm_flow_turns(g, bytes), claim = READ_ONCE(g->claim);
	u8 class = paqm_flow_class(f), seen = READ_ONCE(f->every);
	bool measured = false;
	u64 before;

	smp_rmb(); /* pairs with smp_wmb() in paqm_flows_claim() */
	if (READ_ONCE(f->tag) != tag)
		return;
	if (g->known != claim) { /* a new flow: nothing measured yet */
		g->known = claim;
		g->rate = 0;
		g->deaf = 0;
		g->counted = 0;
		g->marked = PAQM_MARKED_NOT;
		WRITE_ONCE(g->drop, 0);
	}
	before = g->rate;
	/* time wraps after 52 days: the dead stay dead, but not a flow that came just now */
	if (silent > PAQM_SILENT_LONG)
		cmpxchg(&f->last_tick, last, w->now_tick - PAQM_SILENT_LONG / 2);
	if (silent <= PAQM_FLOW_ACTIVE_TICKS || g->marked == PAQM_MARKED_ROUND)
		measured = paqm_flow_measure(g, w, bytes, turns, silent);
	if (silent > t->age_ticks)
		return;
	c->used++;
	if (silent > PAQM_FLOW_ACTIVE_TICKS) {
		if (g->marked == PAQM_MARKED_OWN) {
			g->marked = PAQM_MARKED_ENDED;
			c->passed++;
		}
		return;
	}
	if (class == PAQM_MEDIA) {
		paqm_flow_visit_media(t, f, w, c, bytes, turns, seen, measured, before);
	} else if (class == PAQM_ELASTIC) {
		c->present++;
		if (!paqm_flow_counts(g, w, bytes, turns))
			return;
		c->elastic++;
		if (w->hosts)
			paqm_host_elastic(w, &paqm_flow_more(t, f)->tuple);
	}
}

/**
 * paqm_flows_walk() - measure all flows and take the census of a round
 * @t: table
 * @w: how
 * @c: result
 *
 * Process context; the only writer of the outer loop's fields.
 */
static inline void paqm_flows_walk(struct paqm_flows *t, const struct paqm_walk *w,
				   struct paqm_census *c)
{
	u32 i, n = paqm_flows_slots(t);

	paqm_mm_reset(&c->mm);
	c->media = 0;
	c->takers = 0;
	c->newcomers = 0;
	c->joining = 0;
	c->proven = 0;
	c->passed = 0;
	c->deaf = 0;
	c->deaf_q16 = 0;
	c->follow_q16 = 0;
	c->follow_rate = 0;
	c->heavy = 0;
	c->elastic = 0;
	c->present = 0;
	c->used = 0;
	c->policed = 0;
	c->top.n = 0;
	if (w->hosts)
		paqm_hosts_count(t, w);
	for (i = 0; i < n; i++) {
		/* pairs with the release in paqm_flows_claim() */
		u32 tag = smp_load_acquire(&t->flow[i].tag);

		if (tag)
			paqm_flow_visit(t, &t->flow[i], tag, w, c);
		if (!(i & 8191))
			cond_resched();
	}
	if (w->hosts)
		paqm_hosts_add(w, c);
}

#endif /* PAQM_FLOWS_H */
