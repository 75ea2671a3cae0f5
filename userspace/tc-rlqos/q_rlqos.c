// SPDX-License-Identifier: GPL-2.0
/*
 * tc plugin of sch_rlqos, which stock tc loads as q_rlqos.so. Options are parsed and shown by the
 * files of tc-paqm, from the list in option_list.c.
 */
#include "userspace/tc-paqm/plain_plugin.h"
#include "userspace/tc-rlqos/stats.h"

PLAIN_PLUGIN(rlqos, rlqos_stats_print);
