// SPDX-License-Identifier: GPL-2.0
/*
 * The options of sch_dcbt, of the table that the module is made of.
 */
#include "kernel/uapi/linux/pkt_sched_dcbt.h"

#define OPTION_TABLE "kernel/dcbt_option_table.h"
#define OPTION_QDISC "dcbt"
#define OPTION_ATTR(attr) TCA_DCBT_##attr
#define OPTION_LAST TCA_DCBT_MAX
#include "userspace/tc-paqm/option_rows.h"

const struct shorthand shorthands[] = {
	{NULL, NULL, NULL},
};
