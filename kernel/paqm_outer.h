/* SPDX-License-Identifier: GPL-2.0 */
/* The outer loop, as the other parts of sch_paqm see it; paqm_outer.c. */
#ifndef PAQM_OUTER_H
#define PAQM_OUTER_H

#include "paqm_state.h"

#define PAQM_RATE_MIN 1000ULL			/* bit/s, floor of an advised rate */
#define PAQM_SPLIT_EVENT_Q16 (PAQM_Q16_ONE / 20) /* a change of the split by 5 % is an event */
#define PAQM_NOTICES_FREE 1500 /* a second; more only as one for PAQM_NOTICE_PACKETS */
#define PAQM_NOTICE_PACKETS 512 /* one for so many packets: messages cost 2 % at most */

extern struct workqueue_struct *paqm_wq;

void paqm_raise(struct paqm_sched_data *q, enum paqm_event ev);
u64 paqm_media_capacity(const struct paqm_sched_data *q);
u32 paqm_split(const struct paqm_sched_data *q);
void paqm_derive_inner(struct paqm_sched_data *q);
void paqm_derive_period(struct paqm_sched_data *q);
void paqm_derive_queues(struct paqm_sched_data *q);
u64 paqm_ip_rate(const struct paqm_sched_data *q, u64 bps);
void paqm_buckets_in_force(struct paqm_sched_data *q);
void paqm_paces_in_force(struct paqm_sched_data *q);
void paqm_publish_paces(struct paqm_sched_data *q, u64 now);
void paqm_outer_work(struct work_struct *work);

#endif /* PAQM_OUTER_H */
