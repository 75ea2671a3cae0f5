/* SPDX-License-Identifier: GPL-2.0 */
/* The outer loop, as the other parts of sch_paqm see it; paqm_outer.c. */
#ifndef PAQM_OUTER_H
#define PAQM_OUTER_H

#include "paqm_state.h"

#define PAQM_RATE_MIN 1000ULL			/* bit/s, floor of an advised rate */
#define PAQM_SPLIT_EVENT_Q16 (PAQM_Q16_ONE / 20) /* a change of the split by 5 % is an event */
#define PAQM_SHARE_FLOOR_Q16 (PAQM_Q16_ONE / 20) /* neither class is ever starved */
#define PAQM_NOTICES_FREE 1500 /* a second; more only as one for PAQM_NOTICE_PACKETS */
#define PAQM_NOTICE_PACKETS 512 /* one for so many packets: messages cost 2 % at most */

extern struct workqueue_struct *paqm_wq;

/* paqm_outer.c */
void paqm_raise(struct paqm_sched_data *q, enum paqm_event ev);
u64 paqm_ip_rate(const struct paqm_sched_data *q, u64 bps);
void paqm_outer_work(struct work_struct *work);

/* paqm_split.c */
struct paqm_hosts *paqm_hosts(const struct paqm_sched_data *q);
u32 paqm_find_split(struct paqm_sched_data *q);
void paqm_judge_elastic(struct paqm_sched_data *q, bool whole);
u32 paqm_split(const struct paqm_sched_data *q);
u64 paqm_media_capacity(const struct paqm_sched_data *q);
void paqm_transfer(struct paqm_sched_data *q, u64 now);

/* paqm_derive.c */
u64 paqm_news_ns(const struct paqm_sched_data *q);
void paqm_derive_inner(struct paqm_sched_data *q);
void paqm_derive_period(struct paqm_sched_data *q);
void paqm_derive_queues(struct paqm_sched_data *q);
void paqm_buckets_in_force(struct paqm_sched_data *q);
void paqm_paces_in_force(struct paqm_sched_data *q);
void paqm_publish_paces(struct paqm_sched_data *q, u64 now);

#endif /* PAQM_OUTER_H */
