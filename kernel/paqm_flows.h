/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Bounded flow table: which flows are active, and how fast is each?
 *
 * A set-associative table of fixed size, eight slots to a set, the eight keys of
 * a set in one cache line. The datapath (under the qdisc lock) claims slots and
 * counts bytes; the outer loop walks the table in process context without that
 * lock. Both sides own different fields, so there is nothing to free and no lock
 * between them: a slot is re-used once its flow has been silent for PAQM_FLOW_AGE.
 *
 * Two flows whose 64 bit keyed hashes are equal are counted as one. A flow that
 * finds its set full of living flows is not counted; that is counted instead.
 */
#ifndef PAQM_FLOWS_H
#define PAQM_FLOWS_H

#include <linux/cache.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/types.h>
#include "core/paqm_maxmin.h"

#define PAQM_WAYS 8
#define PAQM_FLOW_AGE_MS 2000	/* a silent flow's slot may be taken */
#define PAQM_FLOW_ACTIVE_MS 500 /* a flow that was silent for longer is not counted */
#define PAQM_MOUSE_BYTES 16384	/* an elastic flow that sent less is a mouse for now */

/**
 * struct paqm_flow - one slot
 * @bytes: datapath: arrived bytes, wraps
 * @last_ms: datapath: time of the last packet, ms
 * @round: datapath: notice round that this flow was told about
 * @class: datapath: queue of the flow
 * @every: outer loop: rounds between two notices, 1 unless it does not follow
 * @drop: outer loop: drop probability while policed, Q32
 * @key: outer loop: flow that the fields below belong to
 * @mark: outer loop: @bytes at the beginning of the window
 * @rate: outer loop: measured rate, bit/s, 0 before the first window
 * @deaf: outer loop: consecutive rounds above 1.25 R
 * @counted: outer loop: elastic flow: windows above the mouse limit; 2: no mouse
 */
struct paqm_flow {
	u32 bytes;
	u32 last_ms;
	u32 round;
	u8 class;
	u16 every;
	u32 drop;

	u64 key;
	u64 rate;
	u32 mark;
	u16 deaf;
	u8 counted;
};

struct paqm_set {
	u64 key[PAQM_WAYS] ____cacheline_aligned;
	struct paqm_flow flow[PAQM_WAYS];
};

struct paqm_flows {
	struct paqm_set *set;
	u32 mask;
	u32 overflow;
};

static inline int paqm_flows_init(struct paqm_flows *t, u32 slots)
{
	u32 sets = roundup_pow_of_two(max_t(u32, slots / PAQM_WAYS, 1));

	t->set = kvcalloc(sets, sizeof(*t->set), GFP_KERNEL);
	if (!t->set)
		return -ENOMEM;
	t->mask = sets - 1;
	t->overflow = 0;
	return 0;
}

static inline void paqm_flows_free(struct paqm_flows *t)
{
	kvfree(t->set);
	t->set = NULL;
}

/**
 * paqm_flows_touch() - slot of a packet's flow, claimed if it is new
 * @t: table
 * @hash: flow identity, not 0
 * @class: queue of the packet
 * @now_ms: time
 * @fresh: set if the flow is new to the census, or back after a silence
 *
 * Called under the qdisc lock.
 *
 * Return: the slot, or NULL when every slot of the set holds a living flow.
 */
static inline struct paqm_flow *paqm_flows_touch(struct paqm_flows *t, u64 hash,
						 enum paqm_class class, u32 now_ms, bool *fresh)
{
	struct paqm_set *set = &t->set[hash & t->mask];
	struct paqm_flow *flow;
	int i, victim = -1;
	u32 silent;

	*fresh = false;
	for (i = 0; i < PAQM_WAYS; i++) {
		if (set->key[i] == hash) {
			flow = &set->flow[i];
			silent = now_ms - flow->last_ms;
			if (silent) {
				/* long enough to be forgotten by the census: it joins anew */
				*fresh = silent > PAQM_FLOW_ACTIVE_MS;
				WRITE_ONCE(flow->last_ms, now_ms);
			}
			/* a filter may move a living flow */
			if (flow->class != class)
				WRITE_ONCE(flow->class, class);
			return flow;
		}
	}
	for (i = 0; i < PAQM_WAYS; i++) {
		if (!set->key[i]) {
			victim = i;
			break;
		}
		if (now_ms - set->flow[i].last_ms > PAQM_FLOW_AGE_MS)
			victim = i;
	}
	if (victim < 0) {
		WRITE_ONCE(t->overflow, t->overflow + 1);
		return NULL;
	}
	/* A walker that reads between these writes sees the key change. */
	WRITE_ONCE(set->key[victim], 0);
	smp_wmb(); /* pairs with smp_rmb() in paqm_flows_walk() */
	flow = &set->flow[victim];
	WRITE_ONCE(flow->bytes, 0);
	WRITE_ONCE(flow->last_ms, now_ms);
	WRITE_ONCE(flow->drop, 0);
	WRITE_ONCE(flow->every, 1);
	flow->round = 0;
	WRITE_ONCE(flow->class, class);
	/* the slot is whole: pairs with the acquire in paqm_flows_walk() */
	smp_store_release(&set->key[victim], hash);
	*fresh = true;
	return flow;
}

/**
 * struct paqm_census - what one walk over the table found
 * @mm: media flows for the water-filling
 * @media: active media flows
 * @elastic: active elastic flows that are more than mice
 * @present: all active elastic flows
 * @used: slots in use
 * @policed: flows with a drop probability
 */
struct paqm_census {
	struct paqm_mm mm;
	u32 media;
	u32 elastic;
	u32 present;
	u32 used;
	u32 policed;
};

/**
 * struct paqm_walk - how to measure during a walk
 * @now_ms: time
 * @window_ns: since the marks were set
 * @fair: rate that media flows were told last, bit/s; 0 before the first round
 * @mouse: elastic flows below this rate are mice, bit/s
 * @cautious: the queue grew: nobody is taken for limited by an old measurement
 * @police: flows that do not listen may be dropped
 * @max_every: longest pause between notices, in rounds
 */
struct paqm_walk {
	u32 now_ms;
	u64 window_ns;
	u64 fair;
	u64 mouse;
	bool cautious;
	bool police;
	u32 max_every;
};

#define PAQM_WINDOW_MIN_NS (150 * NSEC_PER_MSEC)
#define PAQM_DEAF_NOTICE 8  /* rounds after which notices become rarer */
#define PAQM_DEAF_STRIKE 3  /* rounds after which policing may begin */

/* Judge one media flow by what it sends against what it was told. */
static inline void paqm_flow_judge(struct paqm_flow *f, const struct paqm_walk *w,
				   struct paqm_census *c)
{
	u32 every = 1, drop = 0;

	if (w->fair && f->rate <= w->fair + w->fair / 4)
		f->deaf = 0;
	else if (w->fair && w->window_ns >= PAQM_WINDOW_MIN_NS)
		f->deaf = min_t(u32, f->deaf + 1, 1000); /* only on fresh measurements */
	if (f->deaf > PAQM_DEAF_NOTICE)
		every = min_t(u32, 1U << min(f->deaf / PAQM_DEAF_NOTICE, 6), w->max_every);
	/* Strike: above twice the fair rate for long, while media is overloaded. */
	if (w->police && f->deaf > PAQM_DEAF_STRIKE && f->rate > 2 * w->fair) {
		drop = PAQM_U32_MAX - (u32)paqm_muldiv(w->fair, PAQM_U32_MAX, f->rate);
		c->policed++;
	}
	if (f->every != every)
		WRITE_ONCE(f->every, every);
	if (f->drop != drop)
		WRITE_ONCE(f->drop, drop);
	if (f->deaf > PAQM_DEAF_STRIKE)
		paqm_mm_add_fixed(&c->mm, min(f->rate, 2 * w->fair));
	else
		paqm_mm_add(&c->mm, f->rate, f->rate && !w->cautious ? w->fair : 0);
}

/* Set the beginning of the measuring window of every flow. */
static inline void paqm_flows_mark(struct paqm_flows *t)
{
	u32 s, i;

	for (s = 0; s <= t->mask; s++) {
		for (i = 0; i < PAQM_WAYS; i++) {
			struct paqm_flow *f = &t->set[s].flow[i];

			f->mark = READ_ONCE(f->bytes);
		}
		if (!(s & 1023))
			cond_resched();
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
	u32 s, i;

	paqm_mm_reset(&c->mm);
	c->media = 0;
	c->elastic = 0;
	c->present = 0;
	c->used = 0;
	c->policed = 0;
	for (s = 0; s <= t->mask; s++) {
		for (i = 0; i < PAQM_WAYS; i++) {
			struct paqm_flow *f = &t->set[s].flow[i];
			/* pairs with the release in paqm_flows_touch() */
			u64 key = smp_load_acquire(&t->set[s].key[i]);
			u32 bytes, silent;
			u64 rate;

			if (!key)
				continue;
			bytes = READ_ONCE(f->bytes);
			silent = w->now_ms - READ_ONCE(f->last_ms);
			smp_rmb(); /* pairs with the claim in paqm_flows_touch() */
			if (READ_ONCE(t->set[s].key[i]) != key)
				continue;
			if (f->key != key) { /* a new flow: nothing measured yet */
				f->key = key;
				f->rate = 0;
				f->deaf = 0;
				f->counted = 0;
				f->mark = 0;
			} else if (w->window_ns >= PAQM_WINDOW_MIN_NS) {
				rate = paqm_rate_bps(bytes - f->mark, w->window_ns);
				f->rate = f->rate ? (f->rate + rate) / 2 : rate;
			}
			if ((s32)silent > PAQM_FLOW_AGE_MS)
				continue;
			c->used++;
			if ((s32)silent > PAQM_FLOW_ACTIVE_MS)
				continue;
			if (READ_ONCE(f->class) == PAQM_MEDIA) {
				c->media++;
				paqm_flow_judge(f, w, c);
			} else {
				/* many bytes, or two windows above the limit; off at half of it */
				c->present++;
				if (f->rate < w->mouse / 2 && f->counted == 2 && f->rate)
					f->counted = 0;
				else if (bytes >= PAQM_MOUSE_BYTES && !f->rate)
					f->counted = 2;
				else if (f->rate >= w->mouse && f->counted < 2 &&
					 w->window_ns >= PAQM_WINDOW_MIN_NS)
					f->counted = bytes >= PAQM_MOUSE_BYTES ? 2 : f->counted + 1;
				c->elastic += f->counted == 2;
			}
		}
		if (!(s & 1023))
			cond_resched();
	}
}

#endif /* PAQM_FLOWS_H */
