/* SPDX-License-Identifier: GPL-2.0 */
/* Lists of packets of sch_paqm: what is not done for each packet; paqm_queue.c. */
#ifndef PAQM_QUEUE_H
#define PAQM_QUEUE_H

#include "paqm_state.h"

void paqm_free_list(struct paqm_sched_data *q, struct paqm_queue *queue);
void paqm_drr_purge(struct paqm_sched_data *q, enum paqm_class class);

/* A queue that is empty is not served any more; of a pool, other flows may have it. */
static inline void paqm_drr_release(struct paqm_sched_data *q, struct paqm_round *r,
				    struct paqm_flowq *fq)
{
	if (fq->gated) {
		fq->gated = false;
		q->over_gated--;
	}
	r->served -= fq->served;
	fq->served = false;
	if (fq->pooled)
		list_move_tail(&fq->list, &q->over_free);
	else
		list_del_init(&fq->list);
}

#endif /* PAQM_QUEUE_H */
