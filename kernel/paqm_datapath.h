/* SPDX-License-Identifier: GPL-2.0 */
/* What is done for each packet: paqm_enqueue.c, paqm_dequeue.c. */
#ifndef PAQM_DATAPATH_H
#define PAQM_DATAPATH_H

#include "paqm_compat.h"
#include "paqm_state.h"

int paqm_isolate_init(struct paqm_sched_data *q);
int paqm_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free);
struct sk_buff *paqm_dequeue(struct Qdisc *sch);

#endif /* PAQM_DATAPATH_H */
