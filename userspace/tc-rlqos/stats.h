/* SPDX-License-Identifier: GPL-2.0 */
/* Statistics of sch_rlqos on the screen or as JSON. */
#ifndef PAQM_TC_RLQOS_STATS_H
#define PAQM_TC_RLQOS_STATS_H

#include <stdio.h>
#include <linux/rtnetlink.h>

/* The payload of TCA_STATS_APP. */
void rlqos_stats_print(FILE *f, struct rtattr *xstats);

#endif /* PAQM_TC_RLQOS_STATS_H */
