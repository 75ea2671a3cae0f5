/* SPDX-License-Identifier: GPL-2.0 */
/* What a flow is told, as those see it who have its packets; paqm_notice.c. */
#ifndef PAQM_NOTICE_H
#define PAQM_NOTICE_H

#include "paqm_state.h"

void paqm_notice(struct paqm_sched_data *q, struct paqm_flow *flow, const struct sk_buff *skb,
		 u64 now);
void paqm_stamp_packet(struct paqm_sched_data *q, struct paqm_flow *flow, struct sk_buff *skb,
		       u64 now);

#endif /* PAQM_NOTICE_H */
