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
#include <linux/jhash.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/types.h>
#include "core/paqm_maxmin.h"
#include "paqm_classify.h"
#include "paqm_feedback.h"

#define PAQM_WAYS 8
#define PAQM_FLOW_ACTIVE_MS 500 /* a flow that was silent for longer is not counted */
#define PAQM_SILENT_LONG (1U << 30) /* ms, half of what can be told from the future */
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
#define PAQM_EVERY_MAX 0x1F

/**
 * struct paqm_flow - what every packet of a flow touches
 * @tag: upper half of the hash, 0: free
 * @bytes: arrived bytes, wraps
 * @last_ms: time of the last packet, ms
 * @due: when its bucket is full again, paqm_bucket_clock()
 * @round: notice round that this flow was told about, lowest bits
 * @over: overflow queue that its last packet beyond the fair rate went to, 0: none
 * @over_seq: number of that packet in that queue, lowest bits
 * @state: queue of the flow, or PAQM_FLOW_UNSURE; its nature from bit 4 on;
 *	PAQM_SETTLED_*
 * @every: written by the outer loop: rounds between two notices, 1 unless it does
 *	not follow; PAQM_POLICED, PAQM_KNOWN, PAQM_DEAF
 */
struct paqm_flow {
	u32 tag;
	u32 bytes;
	u32 last_ms;
	u32 due;
	u16 round;
	u16 over;
	u16 over_seq;
	u8 state;
	u8 every;
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

/* The clock of the table, in units of 2^20 ns. */
static inline u32 paqm_flow_clock(u64 now_ns)
{
	return (u32)(now_ns >> 20);
}

/* Such units in ms, for people. */
static inline u32 paqm_flow_ms(u32 units)
{
	return (u32)paqm_div64(((u64)units << 20) + NSEC_PER_MSEC / 2, NSEC_PER_MSEC);
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
 * @lost: packets beyond the fair rate that were dropped
 * @marked: the same, marked CE
 * @source: RTP sources whose sequence is watched
 * @sources: how many have been
 * @matches: packets in sequence
 * @misses: what was not since the last that was, PAQM_RTP_MISS_OTHER
 * @hears: PAQM_HEARS_INBAND: its packets carry a rate; PAQM_HEARS_MARK: they may be marked
 *
 * All is written by the datapath.
 */
struct paqm_flow_more {
	struct paqm_tuple tuple;
	u32 low;
	struct paqm_told told;
	u32 lost;
	u32 marked;
	struct paqm_rtp_source source[PAQM_RTP_SOURCES];
	u8 sources;
	u8 matches;
	u8 misses;
	u8 hears;
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
 * @claim: number of the claim of this slot; written by the datapath
 * @known: claim that the fields below belong to
 * @rate: measured rate, bit/s, 0 before the first window
 * @mark: @bytes at the beginning of the window
 * @mark_ms: when a window of its own began
 * @drop: drop probability while policed, Q32
 * @deaf: windows above 1.25 R, halved by each that is not
 * @counted: elastic flow: windows above the mouse limit; 2: no mouse
 * @marked: enum paqm_marked
 *
 * Small, as a walk over the table reads and writes that of every living flow.
 */
struct paqm_flow_gauge {
	u32 claim;
	u32 known;
	u64 rate;
	u32 mark;
	u32 mark_ms;
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
 * @mask: number of sets minus 1
 * @age_ms: silence after which a slot may be taken
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
	u32 mask;
	u32 age_ms;
	u32 seen;
	u32 overflow;
	u32 rtp;
	u32 not_rtp;
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

/* Memory for @slots flows; the counters of @t go on. */
static inline int paqm_flows_alloc(struct paqm_flows *t, u32 slots)
{
	u32 sets = roundup_pow_of_two(DIV_ROUND_UP(max(slots, 1U), PAQM_WAYS));
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
	t->mask = sets - 1;
	return 0;
}

/* Exchange the memory of two tables; their counters stay. Nobody else may be reading. */
static inline void paqm_flows_swap(struct paqm_flows *a, struct paqm_flows *b)
{
	u32 mask = a->mask;

	swap(a->flow, b->flow);
	swap(a->more, b->more);
	swap(a->gauge, b->gauge);
	swap(a->mem, b->mem);
	WRITE_ONCE(a->mask, b->mask); /* statistics read it at any time */
	b->mask = mask;
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

/* First slot of a hash's set. */
static inline struct paqm_flow *paqm_flows_set(const struct paqm_flows *t, u64 hash)
{
	return &t->flow[(u32)(hash & t->mask) * PAQM_WAYS];
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
 * @now_ms: time
 *
 * Called under the qdisc lock.
 *
 * Return: the slot, or NULL when every slot of the set holds a living flow.
 */
static noinline struct paqm_flow *paqm_flows_claim(struct paqm_flows *t,
						   const struct paqm_packet *p, u32 now_ms)
{
	struct paqm_flow *set = paqm_flows_set(t, p->hash), *flow;
	struct paqm_flow_more *more;
	u32 silent, longest = 0;
	int i, victim = -1;

	for (i = 0; i < PAQM_WAYS; i++) {
		if (!set[i].tag) {
			victim = i;
			break;
		}
		silent = now_ms - set[i].last_ms;
		if (silent > t->age_ms && silent >= longest) { /* the longest dead */
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
	/* A walker that reads between these writes sees the tag change. */
	WRITE_ONCE(flow->tag, 0);
	smp_wmb(); /* pairs with smp_rmb() in paqm_flows_walk() */
	WRITE_ONCE(flow->bytes, 0);
	WRITE_ONCE(flow->last_ms, now_ms);
	WRITE_ONCE(flow->every, 1);
	flow->round = 0;
	WRITE_ONCE(flow->over, 0);
	paqm_flow_set(flow, PAQM_FLOW_UNSURE, PAQM_NATURE_OPEN);
	WRITE_ONCE(t->seen, t->seen + 1);
	WRITE_ONCE(paqm_flow_gauge(t, flow)->claim, t->seen);
	WRITE_ONCE(more->told.rate, 0);
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
 * @now_ms: time
 * @fresh: set if the flow is back after a silence: it joins the census anew
 *
 * Called under the qdisc lock.
 *
 * Return: the slot, or NULL if it has none.
 */
static inline struct paqm_flow *paqm_flows_find(const struct paqm_flows *t, u64 hash, u32 now_ms,
						bool *fresh)
{
	struct paqm_flow *flow = paqm_flows_slot(paqm_flows_set(t, hash), paqm_flow_tag(hash));

	if (flow) {
		*fresh = now_ms - flow->last_ms > PAQM_FLOW_ACTIVE_MS;
		WRITE_ONCE(flow->last_ms, now_ms);
	}
	return flow;
}

/**
 * paqm_flow_pass() - count a packet of a flow about which nothing is open
 * @f: the flow
 * @settled: PAQM_SETTLED_* for the rule in force
 * @len: bytes that it adds to the flow
 * @now_ms: time
 *
 * Most packets are of such flows. Each of these has a closer look once in 2^14 bytes, and
 * after a silence. Called under the qdisc lock.
 *
 * Return: whether the flow's class is that of the packet; if not, nothing was done, and
 * the packet needs a closer look.
 */
static __always_inline bool paqm_flow_pass(struct paqm_flow *f, u8 settled, u32 len, u32 now_ms)
{
	u32 bytes = f->bytes + len;

	if (!(f->state & settled) || (f->bytes ^ bytes) >> PAQM_LOOK_SHIFT ||
	    now_ms - f->last_ms > PAQM_FLOW_ACTIVE_MS)
		return false;
	WRITE_ONCE(f->bytes, bytes);
	WRITE_ONCE(f->last_ms, now_ms);
	return true;
}

/*
 * The living flows of @from into the empty @to, as far as there is room. The
 * datapath may go on with @from meanwhile: some bytes are not counted then.
 */
static inline void paqm_flows_copy(struct paqm_flows *to, const struct paqm_flows *from,
				   u32 now_ms)
{
	u32 i, j, n = (from->mask + 1) * PAQM_WAYS;

	for (i = 0; i < n; i++) {
		/* pairs with the release in paqm_flows_claim() */
		u32 tag = smp_load_acquire(&from->flow[i].tag);
		struct paqm_flow *set = paqm_flows_set(to, from->more[i].low);

		if (now_ms - READ_ONCE(from->flow[i].last_ms) > from->age_ms)
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
		u32 told_ms;
		u32 last_ms;
		u32 drop;
		u32 tag;
		u32 lost;
		u32 marked;
		u16 over;
		u16 deaf;
		u8 hears;
		u8 every;
	} flow[PAQM_TOP_FLOWS];
};

#define PAQM_HOST_BITS 4096 /* hosts are told apart by so many hashes */

/**
 * struct paqm_hosts - hosts of a class's flows, a bit each
 * @source: by their source addresses
 * @destination: by their destination addresses
 */
struct paqm_hosts {
	DECLARE_BITMAP(source, PAQM_HOST_BITS);
	DECLARE_BITMAP(destination, PAQM_HOST_BITS);
};

/**
 * struct paqm_census - what one walk over the table found
 * @mm: media flows that are known, for the water-filling
 * @media: active media flows
 * @newcomers: those that are not known yet
 * @proven: newcomers that became known in this walk
 * @passed: newcomers that went before they were
 * @deaf: flows that send more than they were told
 * @follow: flows that use what they were told, and no more
 * @follow_rate: what those send together, bit/s
 * @elastic: active elastic flows that are more than mice
 * @present: all active elastic flows
 * @used: slots in use
 * @policed: flows with a drop probability
 * @top: the fastest media flows
 * @hosts: of the flows that count; only if that was asked for
 */
struct paqm_census {
	struct paqm_mm mm;
	struct paqm_top top;
	u32 media;
	u32 newcomers;
	u32 proven;
	u32 passed;
	u32 deaf;
	u32 follow;
	u64 follow_rate;
	u32 elastic;
	u32 present;
	u32 used;
	u32 policed;
	struct paqm_hosts hosts[PAQM_CLASSES];
};

/* Hosts of a class on the side on which there are fewer: those behind this link, mostly. */
static inline u32 paqm_hosts_count(const struct paqm_hosts *h)
{
	return min(bitmap_weight(h->source, PAQM_HOST_BITS),
		   bitmap_weight(h->destination, PAQM_HOST_BITS));
}

/**
 * struct paqm_walk - how to measure during a walk
 * @now_ms: time
 * @window_ns: since the marks were set
 * @grain: rate of some full packets in the window: less is chance, bit/s
 * @fair: rate that media flows may send since the window began, bit/s; 0 before the first
 *	round. Where it changed meanwhile, the lowest: more than that was asked of nobody
 * @fair_least: the lowest in the last second: the answer to it may still be arriving
 * @fair_most: the highest since the window began
 * @equal: capacity divided by all flows, bit/s
 * @fair_new: what newcomers were told, bit/s
 * @answer_ms: until what flows were told shows in what they send
 * @mouse: elastic flows below this rate are mice, bit/s
 * @cautious: the queue grew: nobody is taken for limited by an old measurement
 * @police: flows that do not listen may be dropped
 * @overloaded: and it is time to begin with that
 * @max_every: longest pause between notices, in rounds
 * @hosts: note the hosts of flows that count
 * @slow: telling all flows takes more than a period
 */
struct paqm_walk {
	u32 now_ms;
	u64 window_ns;
	u64 grain;
	u64 fair;
	u64 fair_least;
	u64 fair_most;
	u64 equal;
	u64 fair_new;
	u32 answer_ms;
	u64 mouse;
	bool cautious;
	bool police;
	bool overloaded;
	u32 max_every;
	bool hosts;
	bool slow;
};

/* tau1 takes at most half of the default period: what it leaves has to count, however late */
#define PAQM_WINDOW_MIN_NS (120 * NSEC_PER_MSEC)
/* A newcomer is known when it has lasted for so long, and its last packet is not older. */
#define PAQM_NEWCOMER_NS (400 * NSEC_PER_MSEC)
#define PAQM_NEWCOMER_SILENT_MS 100
#define PAQM_YOUNG_DIV 8 /* one that sends less than such a part of R does not grow: sound */
#define PAQM_DEAF_NOTICE 8  /* rounds after which notices become rarer */
#define PAQM_DEAF_STRIKE 3  /* rounds after which policing may begin */

/*
 * Judge one media flow that is known by what it sends against what it was told. @told: at
 * least that, bit/s; @measured: just now.
 */
static inline void paqm_flow_judge(struct paqm_flow *f, struct paqm_flow_gauge *g,
				   const struct paqm_walk *w, struct paqm_census *c, u64 told,
				   bool measured)
{
	u32 every = 1, drop = 0;
	bool young;

	if (measured && w->fair_most && g->rate > w->fair_most + w->fair_most / 4)
		g->deaf = min_t(u32, g->deaf + 1, 1000);
	else if (measured)
		g->deaf /= 2; /* whoever stops for a moment is not forgiven all */
	if (g->deaf > PAQM_DEAF_NOTICE)
		every = min_t(u32, 1U << min(g->deaf / PAQM_DEAF_NOTICE, 6), w->max_every);
	/*
	 * Strike, if that is asked for: above twice the fair rate for long, while media is
	 * overloaded. Then until it does as it is told: dropping alone ends the overload. An
	 * equal part of the link is left: others that only hear of changes do not use more
	 * while it does.
	 */
	if (w->police && g->deaf > PAQM_DEAF_STRIKE && g->rate > w->fair &&
	    (g->drop || (w->overloaded && g->rate > 2 * w->fair))) {
		drop = PAQM_U32_MAX - (u32)paqm_muldiv(min(w->fair, w->equal ?: w->fair),
						       PAQM_U32_MAX, g->rate);
		c->policed++;
	}
	if (g->drop != drop)
		WRITE_ONCE(g->drop, drop);
	every = min_t(u32, every, PAQM_EVERY_MAX) | PAQM_KNOWN;
	every |= (drop ? PAQM_POLICED : 0) | (g->deaf ? PAQM_DEAF : 0);
	if (f->every != every)
		WRITE_ONCE(f->every, every);
	if (g->deaf)
		c->deaf++;
	/* entitlement, not appetite: who sends more than his rate is one who uses it */
	/* taken for one that grows while its answer to what it was told may be on its way */
	young = w->now_ms - g->mark_ms < w->answer_ms && g->rate >= told / PAQM_YOUNG_DIV;
	if (w->cautious || young)
		told = 0;
	if (told && !g->deaf && g->rate >= paqm_mul_q24(told, PAQM_MM_GREEDY_Q24)) {
		c->follow++;
		c->follow_rate += g->rate;
	}
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
		.told_ms = READ_ONCE(m->told.ms),
		.last_ms = READ_ONCE(f->last_ms),
		.drop = g->drop,
		.tag = READ_ONCE(f->tag),
		.lost = READ_ONCE(m->lost),
		.marked = READ_ONCE(m->marked),
		.over = READ_ONCE(f->over),
		.deaf = g->deaf,
		.hears = READ_ONCE(m->hears),
		.every = READ_ONCE(f->every),
	};
}

/* Set the beginning of the measuring window of every flow. */
static inline void paqm_flows_mark(struct paqm_flows *t)
{
	u32 i, n = (t->mask + 1) * PAQM_WAYS;

	for (i = 0; i < n; i++) {
		if (READ_ONCE(t->flow[i].tag) && t->gauge[i].marked <= PAQM_MARKED_ROUND) {
			t->gauge[i].mark = READ_ONCE(t->flow[i].bytes);
			t->gauge[i].marked = PAQM_MARKED_ROUND;
		}
		if (!(i & 8191))
			cond_resched();
	}
}

/* Has an elastic flow sent enough to be counted? */
static inline bool paqm_flow_counts(struct paqm_flow_gauge *g, const struct paqm_walk *w,
				    u32 bytes)
{
	/* many bytes, or two windows above the limit; off at half of it */
	if (g->rate < w->mouse / 2 && g->counted == 2 && g->rate)
		g->counted = 0;
	else if (bytes >= PAQM_MOUSE_BYTES && !g->rate)
		g->counted = 2;
	else if (g->rate >= w->mouse && g->counted < 2 && w->window_ns >= PAQM_WINDOW_MIN_NS)
		g->counted = bytes >= PAQM_MOUSE_BYTES ? 2 : g->counted + 1;
	return g->counted == 2;
}

/* Note the hosts of a flow that counts. */
static inline void paqm_flow_hosts(const struct paqm_flow_more *m, struct paqm_hosts *h)
{
	const struct paqm_tuple *t = &m->tuple;

	__set_bit(jhash(t->saddr, sizeof(t->saddr), t->family) % PAQM_HOST_BITS, h->source);
	__set_bit(jhash(t->daddr, sizeof(t->daddr), t->family) % PAQM_HOST_BITS, h->destination);
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

/* End a flow's window, if it has one that is long enough; says whether it was measured. */
static inline bool paqm_flow_measure(struct paqm_flow_gauge *g, const struct paqm_walk *w,
				     u32 bytes, u32 silent)
{
	u64 window = w->window_ns;

	if (g->marked == PAQM_MARKED_OWN) {
		window = (u64)(w->now_ms - g->mark_ms) << 20;
		if (window < PAQM_NEWCOMER_NS || silent > PAQM_NEWCOMER_SILENT_MS)
			return false;
		g->marked = PAQM_MARKED_NOT; /* the next one is the round's */
	} else if (g->marked != PAQM_MARKED_ROUND || window < PAQM_WINDOW_MIN_NS) {
		return false;
	}
	paqm_flow_rate(g, paqm_rate_bps(bytes - g->mark, window), w);
	return true;
}

/*
 * An active media flow. A newcomer is known when it has lasted for a window and used
 * something in it; until then it weighs nothing by itself (paqm_newcomers()).
 */
static inline void paqm_flow_visit_media(struct paqm_flows *t, struct paqm_flow *f,
					 const struct paqm_walk *w, struct paqm_census *c,
					 bool measured, u64 before)
{
	struct paqm_flow_gauge *g = paqm_flow_gauge(t, f);
	u64 told = paqm_mm_may_grow(w->fair_least, w->equal, before, w->slow);

	c->media++;
	if (!(READ_ONCE(f->every) & PAQM_KNOWN)) {
		if (!measured || !g->rate || g->marked == PAQM_MARKED_ROUND) {
			c->newcomers++;
			if (g->marked == PAQM_MARKED_OWN)
				return;
			g->mark = READ_ONCE(f->bytes);
			g->mark_ms = w->now_ms;
			g->marked = PAQM_MARKED_OWN;
			return;
		}
		c->proven++;
		told = w->fair_new;
	}
	paqm_flow_judge(f, g, w, c, told, measured);
	paqm_top_add(&c->top, f, paqm_flow_more(t, f), g);
	if (w->hosts)
		paqm_flow_hosts(paqm_flow_more(t, f), &c->hosts[PAQM_MEDIA]);
}

/* One slot in use. */
static inline void paqm_flow_visit(struct paqm_flows *t, struct paqm_flow *f,
				   u32 tag, const struct paqm_walk *w, struct paqm_census *c)
{
	struct paqm_flow_gauge *g = paqm_flow_gauge(t, f);
	u32 bytes = READ_ONCE(f->bytes), silent = w->now_ms - READ_ONCE(f->last_ms);
	u32 claim = READ_ONCE(g->claim);
	u8 class = paqm_flow_class(f);
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
	if (silent > -PAQM_SILENT_LONG) /* its last packet came after the round began */
		silent = 0;
	else if (silent > PAQM_SILENT_LONG) /* time wraps after 52 days: the dead stay dead */
		WRITE_ONCE(f->last_ms, w->now_ms - PAQM_SILENT_LONG / 2);
	if (silent <= PAQM_FLOW_ACTIVE_MS || g->marked == PAQM_MARKED_ROUND)
		measured = paqm_flow_measure(g, w, bytes, silent);
	if (silent > t->age_ms)
		return;
	c->used++;
	if (silent > PAQM_FLOW_ACTIVE_MS) {
		if (g->marked == PAQM_MARKED_OWN) {
			g->marked = PAQM_MARKED_ENDED;
			c->passed++;
		}
		return;
	}
	if (class == PAQM_MEDIA) {
		paqm_flow_visit_media(t, f, w, c, measured, before);
	} else if (class == PAQM_ELASTIC) {
		c->present++;
		if (!paqm_flow_counts(g, w, bytes))
			return;
		c->elastic++;
		if (w->hosts)
			paqm_flow_hosts(paqm_flow_more(t, f), &c->hosts[PAQM_ELASTIC]);
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
	u32 i, n = (t->mask + 1) * PAQM_WAYS;

	paqm_mm_reset(&c->mm);
	c->media = 0;
	c->newcomers = 0;
	c->proven = 0;
	c->passed = 0;
	c->deaf = 0;
	c->follow = 0;
	c->follow_rate = 0;
	c->elastic = 0;
	c->present = 0;
	c->used = 0;
	c->policed = 0;
	c->top.n = 0;
	if (w->hosts)
		memset(c->hosts, 0, sizeof(c->hosts));
	for (i = 0; i < n; i++) {
		/* pairs with the release in paqm_flows_claim() */
		u32 tag = smp_load_acquire(&t->flow[i].tag);

		if (tag)
			paqm_flow_visit(t, &t->flow[i], tag, w, c);
		if (!(i & 8191))
			cond_resched();
	}
}

#endif /* PAQM_FLOWS_H */
