/* SPDX-License-Identifier: GPL-2.0 */
/* Configuration in force, and statistics; paqm_config.c, paqm_stats.c. */
#ifndef PAQM_CONFIG_H
#define PAQM_CONFIG_H

#include "paqm_state.h"

u64 paqm_link_rate(struct Qdisc *sch, u32 *source);
bool paqm_tells(const struct paqm_config *cfg);
bool paqm_reseeds(const struct paqm_sched_data *q, const struct paqm_config *cfg);
void paqm_apply(struct Qdisc *sch, const struct paqm_config *cfg, struct paqm_flows *table);
int paqm_dump_stats(struct Qdisc *sch, struct gnet_dump *d);

#endif /* PAQM_CONFIG_H */
