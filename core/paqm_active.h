/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Flows that are active: for D-CBT those seen since the sweep before (Chung, WPI, 2000), for FRED
 * those with packets in the queue. A hash table of fixed size; when it is full new flows are not
 * counted. Flows are kept in the order in which they were seen, so that a sweep only looks at those
 * that it removes.
 */
#ifndef PAQM_ACTIVE_H
#define PAQM_ACTIVE_H

#include "paqm_cbt.h"
#include "paqm_fred.h"

#define PAQM_ACTIVE_NONE 0xFFFFFFFFU

/**
 * struct paqm_active_flow - a flow
 * @key: what tells it from others
 * @seen: when it last presented a packet, ns
 * @account: what FRED knows of it
 * @chain: next of the same bucket, or of the unused ones
 * @older: the flow seen before it
 * @newer: the flow seen after it
 * @class: it counts in this one
 */
struct paqm_active_flow {
	paqm_u64 key;
	paqm_u64 seen;
	struct paqm_fred_flow account;
	paqm_u32 chain;
	paqm_u32 older;
	paqm_u32 newer;
	paqm_u8 class;
};

/**
 * struct paqm_active - the table
 * @flow: @slots flows
 * @bucket: first flow of each of the @mask + 1 buckets
 * @slots: most flows
 * @mask: number of buckets, a power of two, less 1
 * @unused: first slot without a flow
 * @oldest: the flow that was not seen for the longest time
 * @newest: the one seen last
 * @count: flows of each class
 * @swept: when the last sweep was, ns
 * @missed: arrivals of flows that found no slot
 */
struct paqm_active {
	struct paqm_active_flow *flow;
	paqm_u32 *bucket;
	paqm_u32 slots;
	paqm_u32 mask;
	paqm_u32 unused;
	paqm_u32 oldest;
	paqm_u32 newest;
	paqm_u32 count[PAQM_CBT_CLASSES];
	paqm_u64 swept;
	paqm_u64 missed;
};

/* Forget all flows; @t->flow, bucket, slots, mask are set. */
static inline void paqm_active_clear(struct paqm_active *t, paqm_u64 now)
{
	paqm_u32 i;

	for (i = 0; i <= t->mask; i++)
		t->bucket[i] = PAQM_ACTIVE_NONE;
	for (i = 0; i < t->slots; i++)
		t->flow[i].chain = i + 1 < t->slots ? i + 1 : PAQM_ACTIVE_NONE;
	t->unused = t->slots ? 0 : PAQM_ACTIVE_NONE;
	t->oldest = PAQM_ACTIVE_NONE;
	t->newest = PAQM_ACTIVE_NONE;
	for (i = 0; i < PAQM_CBT_CLASSES; i++)
		t->count[i] = 0;
	t->swept = now;
}

/* The bucket of a key, which is a hash already. */
static inline paqm_u32 *paqm_active_bucket(const struct paqm_active *t, paqm_u64 key)
{
	return &t->bucket[(paqm_u32)(key ^ key >> 32) & t->mask];
}

/* Index of a flow, PAQM_ACTIVE_NONE if it is not there. */
static inline paqm_u32 paqm_active_find(const struct paqm_active *t, paqm_u64 key)
{
	paqm_u32 i = *paqm_active_bucket(t, key);

	while (i != PAQM_ACTIVE_NONE && t->flow[i].key != key)
		i = t->flow[i].chain;
	return i;
}

/* Take a flow out of the order of being seen. */
static inline void paqm_active_unlink(struct paqm_active *t, const struct paqm_active_flow *flow)
{
	if (flow->older == PAQM_ACTIVE_NONE)
		t->oldest = flow->newer;
	else
		t->flow[flow->older].newer = flow->newer;
	if (flow->newer == PAQM_ACTIVE_NONE)
		t->newest = flow->older;
	else
		t->flow[flow->newer].older = flow->older;
}

/* Flow @i is the one seen last. */
static inline void paqm_active_append(struct paqm_active *t, paqm_u32 i)
{
	struct paqm_active_flow *flow = &t->flow[i];

	flow->older = t->newest;
	flow->newer = PAQM_ACTIVE_NONE;
	if (t->newest == PAQM_ACTIVE_NONE)
		t->oldest = i;
	else
		t->flow[t->newest].newer = i;
	t->newest = i;
}

/* Forget flow @i. */
static inline void paqm_active_remove(struct paqm_active *t, paqm_u32 i)
{
	struct paqm_active_flow *flow = &t->flow[i];
	paqm_u32 *at = paqm_active_bucket(t, flow->key);

	while (*at != i)
		at = &t->flow[*at].chain;
	*at = flow->chain;
	paqm_active_unlink(t, flow);
	t->count[flow->class]--;
	flow->chain = t->unused;
	t->unused = i;
}

/**
 * paqm_active_touch() - a packet of a flow arrives, whatever becomes of it
 * @t: table
 * @key: hash of the flow
 * @class: it counts in this one from now on
 * @now: ns
 *
 * Return: its index; PAQM_ACTIVE_NONE if it is new and there is no slot.
 */
static inline paqm_u32 paqm_active_touch(struct paqm_active *t, paqm_u64 key,
					 enum paqm_cbt_class class, paqm_u64 now)
{
	paqm_u32 i = paqm_active_find(t, key), *bucket;
	struct paqm_active_flow *flow;

	if (i == PAQM_ACTIVE_NONE) {
		i = t->unused;
		if (i == PAQM_ACTIVE_NONE) {
			t->missed++;
			return i;
		}
		flow = &t->flow[i];
		t->unused = flow->chain;
		bucket = paqm_active_bucket(t, key);
		flow->key = key;
		flow->account = (struct paqm_fred_flow){0, 0};
		flow->chain = *bucket;
		*bucket = i;
	} else {
		flow = &t->flow[i];
		t->count[flow->class]--;
		paqm_active_unlink(t, flow);
	}
	flow->class = (paqm_u8) class;
	flow->seen = now;
	t->count[class]++;
	paqm_active_append(t, i);
	return i;
}

/**
 * paqm_active_sweep() - forget flows that are silent, if that is due
 * @t: table
 * @now: ns
 * @interval: time between two sweeps, and of silence after which a flow goes, ns
 */
static inline void paqm_active_sweep(struct paqm_active *t, paqm_u64 now, paqm_u64 interval)
{
	if (now - t->swept < interval)
		return;
	t->swept = now;
	while (t->oldest != PAQM_ACTIVE_NONE && now - t->flow[t->oldest].seen > interval)
		paqm_active_remove(t, t->oldest);
}

#endif /* PAQM_ACTIVE_H */
