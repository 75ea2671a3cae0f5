// SPDX-License-Identifier: GPL-2.0
/*
 * The options of sch_paqm, of the table that the module is made of, and what stands for several of
 * them.
 */
#include "core/paqm_laws.h"
#include "kernel/uapi/linux/pkt_sched_paqm.h"

#define OPTION_TABLE "kernel/paqm_option_table.h"
#define OPTION_QDISC "paqm"
#define OPTION_ATTR(attr) TCA_PAQM_##attr
#define OPTION_LAST TCA_PAQM_MAX
#include "userspace/tc-paqm/option_rows.h"

/*
 * The published system: the gains of Paper F, which are those of profile fast; K of Paper D; dT,
 * the least decrease and an inner target of ten times the outer one of App. C; the weight of its
 * source code; d = RTT + 0.5 s and queues as in Paper F. A published router told every source as a
 * period ended, whatever that cost.
 */
#define THESIS                                                                                     \
	"feedback icmp classify protocol noisolate nopolice noborrow weights flow split flows "    \
	"media-target 40000b media-inner-target 400000b elastic-target 350000b target-util 95% "   \
	"noadapt-util interval 10ms gain 0.2 gamma 0.5 alpha 0.75 beta 0.35 period 500ms "         \
	"rtt auto gop 500ms transfer 0 credit 0 md-floor 0.1 forced-md noai-hold ai-factor 1 "     \
	"noerf-count noevents notice-part 20 notice-pause 0 in-step "

const struct shorthand shorthands[] = {
	{"profile", "fast", "alpha 0.75 beta 0.35"},
	{"profile", "robust", "alpha 0.484 beta 0.131"},
	{"preset", "thesis-ecf", THESIS "law ecf"},
	{"preset", "thesis-erf", THESIS "law erf"},
	{NULL, NULL, NULL},
};
