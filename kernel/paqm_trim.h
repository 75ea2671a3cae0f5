/* SPDX-License-Identifier: GPL-2.0 */
/* Who loses packets where all queues together have no room; paqm_trim.c. */
#ifndef PAQM_TRIM_H
#define PAQM_TRIM_H

#include "paqm_state.h"

bool paqm_lowers(u32 limit, u32 before);
void paqm_trim(struct Qdisc *sch);
void paqm_trim_late(struct Qdisc *sch);
bool paqm_room(struct Qdisc *sch, enum paqm_class class, const struct paqm_flowq *fq, u32 len,
	       struct sk_buff **to_free);

#endif /* PAQM_TRIM_H */
