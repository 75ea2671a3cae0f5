/* SPDX-License-Identifier: GPL-2.0 */
/* Advice to a flow, triggered by one of its packets or written into it; paqm_notice.c. */
#ifndef PAQM_NOTICE_H
#define PAQM_NOTICE_H

#include "paqm_state.h"

void paqm_notice(struct paqm_sched_data *q, struct paqm_flow *flow, const struct sk_buff *skb,
		 u64 now);
void paqm_stamp_packet(struct paqm_sched_data *q, struct paqm_flow *flow, struct sk_buff *skb,
		       u64 now);

#endif /* PAQM_NOTICE_H */
