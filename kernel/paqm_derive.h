/* SPDX-License-Identifier: GPL-2.0 */
/* What follows from capacity, split and rates, as other parts of sch_paqm see it; paqm_derive.c. */
#ifndef PAQM_DERIVE_H
#define PAQM_DERIVE_H

#include "paqm_state.h"

#define PAQM_RATE_MIN 1000ULL /* bit/s, floor of an advised rate */

u64 paqm_ip_rate(const struct paqm_sched_data *q, u64 bps);
u64 paqm_news_ns(const struct paqm_sched_data *q);
void paqm_derive_inner(struct paqm_sched_data *q);
void paqm_derive_period(struct paqm_sched_data *q);
void paqm_derive_queues(struct paqm_sched_data *q);
void paqm_buckets_in_force(struct paqm_sched_data *q);
void paqm_paces_in_force(struct paqm_sched_data *q);
void paqm_publish_paces(struct paqm_sched_data *q, u64 now);

#endif /* PAQM_DERIVE_H */
