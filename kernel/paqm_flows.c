// SPDX-License-Identifier: GPL-2.0
/* The flow table of sch_paqm: memory, and slots for flows that have none. */
#include <linux/mm.h>
#include "paqm_flows.h"

void paqm_flows_free(struct paqm_flows *t)
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
int paqm_flows_alloc(struct paqm_flows *t, u32 slots)
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
void paqm_flows_swap(struct paqm_flows *a, struct paqm_flows *b)
{
	u32 sets = a->sets;

	swap(a->flow, b->flow);
	swap(a->more, b->more);
	swap(a->gauge, b->gauge);
	swap(a->mem, b->mem);
	WRITE_ONCE(a->sets, b->sets); /* statistics read it at any time */
	b->sets = sets;
}

/*
 * The living flows of @from into the empty @to, as far as there is room. The
 * datapath may go on with @from meanwhile: some bytes are not counted then, and a flow that gets
 * its first overflow queue meanwhile may overtake itself once.
 */
void paqm_flows_copy(struct paqm_flows *to, const struct paqm_flows *from, u32 now_tick)
{
	u32 i, j, n = paqm_flows_slots(from);

	for (i = 0; i < n; i++) {
		/* pairs with the release in paqm_flows_claim() */
		u32 tag = smp_load_acquire(&from->flow[i].tag);
		struct paqm_flow *set = paqm_flows_set(to, from->more[i].low);

		if (!(i & 8191))
			cond_resched();
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
struct paqm_flow *paqm_flows_claim(struct paqm_flows *t, const struct paqm_packet *p, u32 now_tick)
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
	smp_wmb(); /* pairs with smp_rmb() in paqm_flow_visit() */
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
	WRITE_ONCE(more->told.low, 0);
	WRITE_ONCE(more->told.refused, false);
	WRITE_ONCE(more->told.outside, false);
	more->told_bytes = 0;
	more->unfit = 0;
	WRITE_ONCE(more->lost, 0);
	WRITE_ONCE(more->marked, 0);
	WRITE_ONCE(more->hears, 0);
	WRITE_ONCE(more->ip_part, 0);
	more->over = 0;
	more->low = (u32)p->hash;
	more->matches = 0;
	more->misses = 0;
	more->sources = 0;
	paqm_tuple_set(&more->tuple, p);
	/* the slot is whole: pairs with the acquire in paqm_flows_walk() */
	smp_store_release(&flow->tag, paqm_flow_tag(p->hash));
	return flow;
}
