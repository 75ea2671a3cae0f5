/* SPDX-License-Identifier: GPL-2.0 */
/* Statistics of sch_dcbt on the screen. */
#ifndef DCBT_TC_STATS_H
#define DCBT_TC_STATS_H

#include <stdio.h>
#include <linux/rtnetlink.h>

/* The payload of TCA_STATS_APP on @f, or as JSON where tc writes that. */
void dcbt_stats_print(FILE *f, struct rtattr *xstats);

#endif /* DCBT_TC_STATS_H */
