/* SPDX-License-Identifier: GPL-2.0 */
/* Flows beyond their fair rate, as seen by enqueue; paqm_over.c. */
#ifndef PAQM_OVER_H
#define PAQM_OVER_H

#include "paqm_isolate.h"

bool paqm_over_ends(struct paqm_sched_data *q, struct paqm_flow *flow);
bool paqm_host_conforms(struct paqm_sched_data *q, struct paqm_flow *flow, u32 wire, u64 now);
bool paqm_stranger_conforms(struct paqm_sched_data *q, struct paqm_flow *flow, u32 wire, u64 now);
int paqm_divert(struct sk_buff *skb, struct Qdisc *sch, struct paqm_flow *flow, enum paqm_lane lane,
		u32 len, u32 wire, u64 now, struct sk_buff **to_free);

#endif /* PAQM_OVER_H */
