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

#include <linux/cache.h>
#include <linux/types.h>
#include "paqm_classify.h"
#include "paqm_feedback.h"

#define PAQM_WAYS 8
#define PAQM_SPREAD 0x9E3779B1U /* odd, the golden part of 2^32 */
#define PAQM_FLOW_ACTIVE_TICKS 500 /* a flow that was silent for longer is not counted; elastic */
#define PAQM_ELASTIC_ACTIVE_MS 400 /* ones less: they are not made of packets 400 ms apart (DTX) */
#define PAQM_FLOW_RARE_TICKS 2000 /* a packet of 1500 bytes is 1.5 s of the least rate told */
#define PAQM_ELASTIC_PATIENCE_TICKS 230 /* less for one that has just begun */
#define PAQM_FLOW_SENDING_TICKS 150 /* who was silent for longer than usual may have left */
#define PAQM_FLOW_YOUNG_TICKS 4000 /* who leaves before that has come for a moment */
#define PAQM_PAUSE_TICKS 8 /* unit of @pause */
#define PAQM_LASTS_TICKS 32 /* of @lasts, to which it is rounded down */
#define PAQM_PAUSE_MOST 63 /* 504 ticks: more is the same */
#define PAQM_PAUSE_LONG 50 /* 400 ticks: who comes again after it may do so after two seconds */
#define PAQM_SILENT_LONG (1U << 30) /* ticks, 13 days: a time so old is made younger */
#define PAQM_SILENT_AHEAD (1U << 20) /* 18 minutes: a packet is later than a walk by less */
#define PAQM_MOUSE_BYTES 16384	/* an elastic flow that sent less is a mouse for now */
#define PAQM_FLOW_UNSURE PAQM_CLASSES /* class of a flow not recognised yet: not counted */

/* What a UDP flow has turned out to be. */
enum paqm_nature { PAQM_NATURE_OPEN, PAQM_NATURE_RTP, PAQM_NATURE_NOT_RTP };

#define PAQM_RTP_SOURCES 8  /* that are remembered */
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
#define PAQM_DEAF 0x20	  /* it sends more than it was told, much or for long */
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
 * @heeded: @told.messages without those that it has not done as told by
 * @lean: how far it was above its rate lately, paqm_lean()
 * @over: overflow queue of its own that it had last
 * @host: place of its host in struct paqm_hosts, where it is one of several flows of that
 * @ip_part: of its bytes on the link, what IP has, PAQM_IP_ALL: all; 0: not known yet
 *
 * All but @heeded, @lean and @host is written by the datapath.
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
	u8 heeded;
	u16 lean;
	u16 over;
	u16 host;
	u16 ip_part;
} __aligned(32);

#define PAQM_IP_SHIFT 15
#define PAQM_IP_ALL (1U << PAQM_IP_SHIFT)
#define PAQM_IP_OWN 64 /* a flow has its own where it differs by more than one in so many */

/**
 * paqm_flow_own_part() - what IP has of the bytes of a flow on the link
 * @more: the flow
 * @all: the same of all media
 *
 * Return: that of the flow, PAQM_IP_ALL: all; 0 if it is about that of all, or not known.
 */
static inline u32 paqm_flow_own_part(const struct paqm_flow_more *more, u32 all)
{
	u32 own = READ_ONCE(more->ip_part);

	return own && max(own, all) - min(own, all) > all / PAQM_IP_OWN ? own : 0;
}

/**
 * paqm_flow_note_part() - take in a packet of a flow
 * @more: the flow
 * @all: what IP has of the bytes of all media on the link, 0: not known; where a flow begins
 * @part: what it has of this packet's
 *
 * Called for a packet in every PAQM_LOOK_SHIFT bytes on the link: large ones are as much more
 * likely as they are larger, so that the mean is that of bytes. Under the qdisc lock.
 */
static inline void paqm_flow_note_part(struct paqm_flow_more *more, u32 all, u32 part)
{
	u32 mean = more->ip_part ?: all ?: part;

	WRITE_ONCE(more->ip_part, min((7 * mean + part + 4) / 8, 2 * PAQM_IP_ALL - 1));
}

/* What the window of a flow is, struct paqm_flow_gauge's @marked. */
enum paqm_marked {
	PAQM_MARKED_NOT,
	PAQM_MARKED_ROUND, /* that of the round */
	PAQM_MARKED_OWN,   /* a newcomer's: since it was first seen */
	PAQM_MARKED_ENDED, /* a newcomer that went before it was measured; counted */
	PAQM_MARKED_AGAIN, /* that of one that ended once: since it was seen again, */
	PAQM_MARKED_RARE,  /* and it has paused meanwhile, like a camera of a picture a second */
};

/* What is known of whether a media flow stays, struct paqm_flow_gauge's @stay. */
enum paqm_stay {
	PAQM_STAY_FREE,	  /* it has never sent too much: it may come and go */
	PAQM_STAY_DEAF,	  /* it has sent more than it was told */
	PAQM_STAY_JUDGED, /* it has stayed, and that has been counted */
	PAQM_STAY_AWAY,	  /* it has gone; when it comes again, that is for the first time */
};

/**
 * struct paqm_flow_gauge - what the outer loop knows of a flow
 * @claim: how often this slot was claimed, lowest bits; written by the datapath
 * @turns: how often @bytes has gone through half of its range; written by the datapath
 * @known: claim that the fields below belong to
 * @rate: measured rate, bit/s, 0 before the first window
 * @held: media flow: what it used lately, bit/s; @rate at least (paqm_mm_hold())
 * @mark: @bytes at the beginning of the window,
 * @mark_turns: and @turns
 * @rare: it pauses for long, and has come again: it counts meanwhile (paqm_flow_patience())
 * @mark_tick: when a window of its own began; elastic flow: when it was first seen
 * @drop: drop probability while policed, Q32
 * @deaf: windows above 1.25 R, halved by each that is not; those in a pause do not count
 * @stay: what is known of whether it stays, enum paqm_stay
 * @counted: elastic flow: windows above the mouse limit; 2: no mouse
 * @pause: media flow: how long it was silent at the end of a window, at most, PAQM_PAUSE_TICKS; it
 *	shrinks by one in each
 * @lasts: the same, one window earlier, PAQM_LASTS_TICKS: who has left has not begun to pause
 * @marked: enum paqm_marked
 *
 * Small, as a walk over the table reads and writes that of every living flow.
 */
struct paqm_flow_gauge {
	u16 claim;
	u16 known;
	u16 turns;
	u16 mark_turns : 15;
	u16 rare : 1;
	u64 rate;
	u64 held;
	u32 mark;
	u32 mark_tick;
	u32 drop;
	u16 deaf : 10;
	u16 stay : 2;
	u16 lasts : 4;
	u8 counted : 2;
	u8 pause : 6;
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

/* How many it has. */
static inline u32 paqm_flows_slots(const struct paqm_flows *t)
{
	return PAQM_WAYS * READ_ONCE(t->sets);
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

/* The same: enum paqm_marked, as the last walk left it; under the qdisc lock. */
static inline u8 paqm_flow_marked(const struct paqm_flows *t, const struct paqm_flow *f)
{
	const struct paqm_flow_gauge *g = paqm_flow_gauge(t, f);

	/* pairs with the release in paqm_flow_visit() */
	return smp_load_acquire(&g->known) == g->claim ? READ_ONCE(g->marked) : PAQM_MARKED_NOT;
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

/* The slot of a set with that tag, or NULL. */
static __always_inline struct paqm_flow *paqm_flows_slot(struct paqm_flow *set, u32 tag)
{
	int i;

	for (i = 0; i < PAQM_WAYS; i++)
		if (set[i].tag == tag)
			return &set[i];
	return NULL;
}

/*
 * For how long may a media flow be silent and still count, ticks? A camera that watches a place, or
 * a screen that is shared, may send a picture a second, of 50 kB.
 */
static inline u32 paqm_flow_patience(const struct paqm_flow_gauge *g)
{
	return g->rare ? PAQM_FLOW_RARE_TICKS : PAQM_FLOW_ACTIVE_TICKS;
}

/**
 * paqm_flows_find() - slot of a flow
 * @t: table
 * @hash: its hash
 * @now_tick: time
 * @fresh: set if the flow is back after a silence: it joins the census anew
 * @rare: set, with @fresh, if that was no longer than between packets of the lowest rate, and its
 *	packet before was not told either
 *
 * Called under the qdisc lock.
 *
 * Return: the slot, or NULL if it has none.
 */
static inline struct paqm_flow *paqm_flows_find(const struct paqm_flows *t, u64 hash, u32 now_tick,
						bool *fresh, bool *rare)
{
	struct paqm_flow *flow = paqm_flows_slot(paqm_flows_set(t, hash), paqm_flow_tag(hash));
	u32 silent, patience, told;

	if (flow) {
		silent = now_tick - flow->last_tick;
		patience = PAQM_FLOW_ACTIVE_TICKS;
		if (silent > patience)
			/* a race: as a walk leaves it, or as it was before; both will do */
			patience = data_race(paqm_flow_patience(paqm_flow_gauge(t, flow)));
		*fresh = silent > patience;
		if (*fresh) {
			told = READ_ONCE(paqm_flow_more(t, flow)->told.tick);
			*rare = silent <= PAQM_FLOW_RARE_TICKS &&
				(!told || (s32)(flow->last_tick - told) > PAQM_FLOW_ACTIVE_TICKS);
		}
		WRITE_ONCE(flow->last_tick, now_tick);
	}
	return flow;
}

/* Is a flow due for a look with the packet that takes its bytes from @before to @after? */
static __always_inline bool paqm_flow_look_due(u32 before, u32 after)
{
	return (before ^ after) >> PAQM_LOOK_SHIFT;
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

	if (!(f->state & settled) || paqm_flow_look_due(f->bytes, bytes) ||
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

/* Time between the last packet of a flow, at @last_tick, and @now_tick; none if it came later. */
static inline u32 paqm_flow_silence(u32 last_tick, u32 now_tick)
{
	u32 silent = now_tick - last_tick;

	return silent > -PAQM_SILENT_AHEAD ? 0 : silent;
}

/* Time since the last packet of a flow. */
static inline u32 paqm_flow_silent(const struct paqm_flow *f, u32 now_tick)
{
	return paqm_flow_silence(READ_ONCE(f->last_tick), now_tick);
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
	       paqm_flow_look_due(f->bytes, f->bytes + len);
}

/* paqm_flows.c */
void paqm_flows_free(struct paqm_flows *t);
int paqm_flows_alloc(struct paqm_flows *t, u32 slots);
void paqm_flows_swap(struct paqm_flows *a, struct paqm_flows *b);
void paqm_flows_copy(struct paqm_flows *to, const struct paqm_flows *from, u32 now_tick);
struct paqm_flow *paqm_flows_claim(struct paqm_flows *t, const struct paqm_packet *p, u32 now_tick);

/* paqm_rtp.c */
u8 paqm_flow_judge_udp(struct paqm_flows *t, struct paqm_flow *f, const struct paqm_packet *p);

#endif /* PAQM_FLOWS_H */
