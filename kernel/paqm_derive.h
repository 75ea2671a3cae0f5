/* SPDX-License-Identifier: GPL-2.0 */
/* What follows from capacity, split and rates, as other parts of sch_paqm see it; paqm_derive.c. */
#ifndef PAQM_DERIVE_H
#define PAQM_DERIVE_H

#include <linux/netdevice.h>
#include "paqm_state.h"

#define PAQM_RATE_MIN 1000ULL /* bit/s, floor of an advised rate */

/*
 * Bytes in front of IP that a packet has here. @hard_header_len is room: drivers of USB adapters
 * ask for more, and PPP, which has no header yet, for all that lies below it.
 */
static inline u32 paqm_header_len(const struct net_device *dev)
{
	if (!dev_has_header(dev))
		return 0;
	return dev->min_header_len ?: dev->hard_header_len;
}

u64 paqm_ip_rate(const struct paqm_sched_data *q, u64 bps);
u64 paqm_news_ns(const struct paqm_sched_data *q);
void paqm_derive_inner(struct paqm_sched_data *q);
void paqm_derive_period(struct paqm_sched_data *q);
void paqm_derive_queues(struct paqm_sched_data *q);
void paqm_buckets_in_force(struct paqm_sched_data *q);
void paqm_paces_in_force(struct paqm_sched_data *q);
void paqm_publish_paces(struct paqm_sched_data *q, u64 now);

#endif /* PAQM_DERIVE_H */
