/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Statistics of sch_paqm, its classes and its busiest flows on the screen.
 */
#ifndef PAQM_TC_STATS_H
#define PAQM_TC_STATS_H

#include <stdio.h>
#include <linux/rtnetlink.h>

/*
 * The payload of TCA_STATS_APP on @f, or as JSON where tc writes that. Its size tells
 * what it is: a class, a flow, else the qdisc.
 */
void stats_print(FILE *f, struct rtattr *xstats);

#endif /* PAQM_TC_STATS_H */
