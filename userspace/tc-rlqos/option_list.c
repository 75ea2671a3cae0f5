// SPDX-License-Identifier: GPL-2.0
/*
 * The options of sch_rlqos, of the table that the module is made of.
 */
#include "kernel/uapi/linux/pkt_sched_rlqos.h"

#define OPTION_TABLE "kernel/rlqos_option_table.h"
#define OPTION_QDISC "rlqos"
#define OPTION_ATTR(attr) TCA_RLQOS_##attr
#define OPTION_LAST TCA_RLQOS_MAX
#include "userspace/tc-paqm/option_rows.h"

const struct shorthand shorthands[] = {
	{NULL, NULL, NULL},
};
