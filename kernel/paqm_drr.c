// SPDX-License-Identifier: GPL-2.0
/* Deficit round robin among flow queues: rounds in which nobody sends. Under the qdisc lock. */
#include "paqm_drr.h"

/*
 * What a queue of strangers may send in a round. If strangers are everywhere, all of them together
 * have a turn, and each of that what it has of their packets, as if they were one queue. Else each
 * has the same, of a turn where flows that are known wait, too.
 */
static u32 paqm_strangers_part(const struct paqm_sched_data *q, const struct paqm_flowq *fq,
			       u32 quantum)
{
	if (q->strangers_served < 2)
		return quantum;
	if (paqm_strangers_everywhere(q))
		return paqm_muldiv(quantum, fq->backlog, q->strangers_backlog);
	if (q->strangers_busy < q->drr[PAQM_MEDIA].busy)
		return quantum / q->strangers_served;
	return quantum;
}

/*
 * What an overflow queue may send in a round that shares a turn with others: the flows of a host
 * that is equal to others have one together.
 */
u32 paqm_drr_part(const struct paqm_sched_data *q, const struct paqm_flowq *fq, u32 quantum)
{
	if (fq->strangers)
		quantum = paqm_strangers_part(q, fq, quantum);
	else
		quantum /= q->hosts->over[fq->host - 1].served;
	return max(quantum, 1U);
}

/* What the flows with overflow queues are entitled to, where some share that; Q16 of media. */
u64 paqm_over_parts(const struct paqm_sched_data *q)
{
	u32 takers = q->drr[PAQM_MEDIA].busy - q->strangers_busy - q->siblings_busy;

	return (u64)takers * READ_ONCE(q->over_part) +
	       (q->strangers_busy ? READ_ONCE(q->over_part_new) : 0);
}

/**
 * paqm_drr_forward() - go on to the round in which a queue of a class may send
 * @q: the qdisc
 * @class: of it; no queue may send in this round
 * @held: as for paqm_drr_next()
 *
 * A large GSO packet may be the turns of many rounds, and where a queue has a part of a turn only,
 * of several hundred. If all others are held back, or owe as much, nobody sends in these.
 *
 * Return: whether there is a queue that is not held back.
 */
bool paqm_drr_forward(struct paqm_sched_data *q, enum paqm_class class, paqm_held_t held)
{
	struct paqm_round *r = &q->drr[class];
	u32 rounds = U32_MAX;
	struct paqm_flowq *fq;

	list_for_each_entry(fq, &r->old, list)
		if (!held || !fq->head || !held(q, fq))
			rounds = min_t(u32, rounds, -min(fq->deficit, 0) /
						    paqm_drr_quantum(q, class, fq));
	if (rounds == U32_MAX)
		return false;
	list_for_each_entry(fq, &r->old, list)
		if (!held || !fq->head || !held(q, fq))
			fq->deficit += rounds * paqm_drr_quantum(q, class, fq);
	return true;
}

/**
 * paqm_drr_owes() - a queue owes more than the turn that it just had
 * @q: the qdisc
 * @class: of it
 * @held: as for paqm_drr_next()
 * @fq: the queue
 * @first: of those that may not send in this round, or NULL
 *
 * Return: the first of them from here on.
 */
struct paqm_flowq *paqm_drr_owes(struct paqm_sched_data *q, enum paqm_class class,
				 paqm_held_t held, struct paqm_flowq *fq, struct paqm_flowq *first)
{
	if (fq == first)
		paqm_drr_forward(q, class, held);
	return first ?: fq;
}
