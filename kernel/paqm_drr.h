/* SPDX-License-Identifier: GPL-2.0 */
/* Deficit round robin among the flow queues of a class: whose turn is it? Under the qdisc lock. */
#ifndef PAQM_DRR_H
#define PAQM_DRR_H

#include "paqm_queue.h"
#include "paqm_state.h"

/* Says of a queue that it may not be served yet. */
typedef bool (*paqm_held_t)(struct paqm_sched_data *q, struct paqm_flowq *fq);

u32 paqm_drr_part(const struct paqm_sched_data *q, const struct paqm_flowq *fq, u32 quantum);
u64 paqm_over_parts(const struct paqm_sched_data *q);
u32 paqm_common_share(struct paqm_sched_data *q);
u32 paqm_common_credit(struct paqm_sched_data *q);
bool paqm_drr_forward(struct paqm_sched_data *q, enum paqm_class class, paqm_held_t held);
struct paqm_flowq *paqm_drr_owes(struct paqm_sched_data *q, enum paqm_class class,
				 paqm_held_t held, struct paqm_flowq *fq, struct paqm_flowq *first);

/* What a queue may send in a round. */
static __always_inline u32 paqm_drr_quantum(const struct paqm_sched_data *q, enum paqm_class class,
					    const struct paqm_flowq *fq)
{
	const struct paqm_round *r = &q->drr[class];
	u32 quantum = READ_ONCE(r->quantum);

	if (class == PAQM_MEDIA && unlikely(fq->part))
		return paqm_drr_part(q, fq, quantum);
	return quantum;
}

/**
 * paqm_drr_next() - the queue of a class that is to send next
 * @q: the qdisc
 * @class: of it; queues have their place in the round robin, with packets or none
 * @held: says of a queue with packets that it may not be served yet; NULL: all may
 * @from: set to the list that the queue is in
 * @next: set to the queue
 *
 * Return: whether there is one; not if all are held back.
 */
static __always_inline bool paqm_drr_next(struct paqm_sched_data *q, enum paqm_class class,
					  paqm_held_t held, struct list_head **from,
					  struct paqm_flowq **next)
{
	struct paqm_round *r = &q->drr[class];
	struct paqm_flowq *first = NULL, *fq; /* @first of those that may not send in this round */

	if (class == PAQM_ELASTIC && !list_empty(&r->ahead)) {
		*from = &r->ahead;
		*next = list_first_entry(*from, struct paqm_flowq, list);
		return true;
	}
	for (;;) {
		*from = list_empty(&r->fresh) ? &r->old : &r->fresh;
		fq = list_first_entry(*from, struct paqm_flowq, list);
		if (held && fq->head && held(q, fq)) {
			if (fq == first && !paqm_drr_forward(q, class, held))
				return false;
			if (!first)
				first = fq;
			list_move_tail(&fq->list, &r->old);
			continue;
		}
		if (fq->deficit > 0) {
			*next = fq;
			return true;
		}
		fq->deficit += paqm_drr_quantum(q, class, fq);
		list_move_tail(&fq->list, &r->old);
		if (likely(fq->deficit > 0))
			first = NULL; /* this one may, next time */
		else
			first = paqm_drr_owes(q, class, held, fq, first);
	}
}

#endif /* PAQM_DRR_H */
