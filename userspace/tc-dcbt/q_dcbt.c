// SPDX-License-Identifier: GPL-2.0
/*
 * tc plugin of sch_dcbt, which stock tc loads as q_dcbt.so. Options are parsed and shown by the
 * files of tc-paqm, from the list in option_list.c.
 */
#include "userspace/tc-dcbt/stats.h"
#include "userspace/tc-paqm/plain_plugin.h"

PLAIN_PLUGIN(dcbt, dcbt_stats_print);
