// SPDX-License-Identifier: GPL-2.0
/*
 * tc plugin of sch_dcbt, which stock tc loads as q_dcbt.so. Options are parsed and shown by the
 * files of tc-paqm, from the list in option_list.c.
 */
#include "userspace/tc-dcbt/stats.h"
#include "userspace/tc-paqm/options.h"
#include "userspace/tc-paqm/tc_plugin.h"

static int dcbt_parse_opt(const struct qdisc_util *qu, int argc, char **argv, struct nlmsghdr *n,
			  const char *dev)
{
	(void)qu;
	(void)dev;
	return options_parse(argc, argv, n);
}

static int dcbt_print_opt(const struct qdisc_util *qu, FILE *f, struct rtattr *opt)
{
	(void)qu;
	if (opt)
		options_print(f, opt);
	return 0;
}

static int dcbt_print_xstats(const struct qdisc_util *qu, FILE *f, struct rtattr *xstats)
{
	(void)qu;
	if (xstats)
		dcbt_stats_print(f, xstats);
	return 0;
}

/* The only name that is not hidden: tc exports functions of its own under plain names. */
__attribute__((visibility("default"))) struct qdisc_util dcbt_qdisc_util = {
	.id = "dcbt",
	.parse_qopt = dcbt_parse_opt,
	.print_qopt = dcbt_print_opt,
	.print_xstats = dcbt_print_xstats,
};
