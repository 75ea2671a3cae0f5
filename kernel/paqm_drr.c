// SPDX-License-Identifier: GPL-2.0
/*
 * Deficit round robin among flow queues: rounds in which nobody sends; and what overflow queues may
 * have beside the common one. Under the qdisc lock.
 */
#include "paqm_drr.h"
#include "paqm_isolate.h"

#define PAQM_OVER_CREDITS 8 /* `credit` of these flows: they wait for the common queue at most */
#define PAQM_COMMON_PACKETS 4 /* and that may be so many packets ahead in any case */

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

/*
 * Share of media that is the common queue's: what the flows with overflow queues are not entitled
 * to, and what those are that wait for packets of theirs in that queue: it would go to the others.
 * Among a hundred flows, of which one begins to wait before another is done, those that were first
 * have theirs all the time.
 */
u32 paqm_common_share(struct paqm_sched_data *q)
{
	u32 busy = q->drr[PAQM_MEDIA].busy, waits = paqm_over_waits(q);
	u64 part = READ_ONCE(q->over_part), others = busy * part;

	if (waits >= busy)
		return PAQM_Q16_ONE;
	if (unlikely(q->parts_served))
		others = paqm_over_parts(q);
	others -= min(others, q->over_waits_whole * part);
	return PAQM_Q16_ONE - (u32)min_t(u64, others, PAQM_OVER_MOST_Q16);
}

/*
 * How far the common queue may be ahead of its share, bytes. As much as media of the elastic class,
 * but where it has nearly all, what it is ahead is time for the others: of a hundred flows one
 * would wait for five seconds. They are owed no more than that.
 */
u32 paqm_common_credit(struct paqm_sched_data *q)
{
	u32 credit = READ_ONCE(q->sched.credit), others = PAQM_Q16_ONE - q->inside.share_q16;
	u64 most = max((u64)credit * PAQM_OVER_CREDITS * others >> 16,
		       (u64)PAQM_COMMON_PACKETS * READ_ONCE(q->drr[PAQM_MEDIA].quantum));

	if (!others || most >= credit)
		return credit;
	q->inside.lead = min_t(s64, q->inside.lead, most << 16);
	return most;
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
