/* SPDX-License-Identifier: GPL-2.0 */
/* The capacity, and `bandwidth auto`, as the other parts of sch_paqm see them; paqm_capacity.c. */
#ifndef PAQM_CAPACITY_H
#define PAQM_CAPACITY_H

#include "paqm_state.h"

/* Lengths of the queues that nobody has configured, bytes. */
struct paqm_lengths {
	u32 media_target;
	u32 media_limit;
	u32 elastic_target;
	u32 elastic_limit;
	u32 credit;
};

static inline bool paqm_auto_on(const struct paqm_sched_data *q)
{
	return READ_ONCE(q->cfg.bandwidth) == PAQM_BANDWIDTH_AUTO;
}

/* A packet leaves, others may be waiting. Under the qdisc lock. */
static inline void paqm_auto_sent(struct paqm_sched_data *q, u64 now, u32 len)
{
	if (paqm_auto_on(q))
		paqm_meter_sent(&q->meter, now, len, q->sch->q.qlen);
}

void paqm_auto_start(struct paqm_sched_data *q, u64 now);
void paqm_auto_setup(struct paqm_sched_data *q);
u64 paqm_auto_apply(struct paqm_sched_data *q, bool was_on, u64 limit);
u64 paqm_capacity_room(const struct paqm_sched_data *q, u64 now);
void paqm_capacity_set(struct paqm_sched_data *q, u64 capacity, u64 now);
bool paqm_auto_round(struct paqm_sched_data *q);
u32 paqm_auto_util(const struct paqm_sched_data *q, u32 rho);
u32 paqm_auto_drain(const struct paqm_sched_data *q);
u64 paqm_auto_dip(const struct paqm_sched_data *q);
u64 paqm_auto_link(const struct paqm_sched_data *q);
void paqm_auto_lengths(struct paqm_sched_data *q, struct paqm_lengths *n);

#endif /* PAQM_CAPACITY_H */
