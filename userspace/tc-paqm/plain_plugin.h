/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A tc plugin of a qdisc without classes: options come from its list (option_list.c), statistics go
 * to a function of its own. Used once in a plugin, which stock tc loads as q_NAME.so.
 */
#ifndef PAQM_TC_PLAIN_PLUGIN_H
#define PAQM_TC_PLAIN_PLUGIN_H

#include <stdio.h>

#include "userspace/tc-paqm/options.h"
#include "userspace/tc-paqm/tc_plugin.h"

static int plain_parse_opt(const struct qdisc_util *qu, int argc, char **argv, struct nlmsghdr *n,
			   const char *dev)
{
	(void)qu;
	(void)dev;
	return options_parse(argc, argv, n);
}

static int plain_print_opt(const struct qdisc_util *qu, FILE *f, struct rtattr *opt)
{
	(void)qu;
	if (opt)
		options_print(f, opt);
	return 0;
}

/* The only name that is not hidden: tc exports functions of its own under plain names. */
#define PLAIN_PLUGIN(name, stats_print)                                                            \
	static int name##_print_xstats(const struct qdisc_util *qu, FILE *f,                       \
				       struct rtattr *xstats)                                      \
	{                                                                                          \
		(void)qu;                                                                          \
		if (xstats)                                                                        \
			stats_print(f, xstats);                                                    \
		return 0;                                                                          \
	}                                                                                          \
	__attribute__((visibility("default"))) struct qdisc_util name##_qdisc_util = {             \
		.id = #name,                                                                       \
		.parse_qopt = plain_parse_opt,                                                     \
		.print_qopt = plain_print_opt,                                                     \
		.print_xstats = name##_print_xstats,                                               \
	}

#endif /* PAQM_TC_PLAIN_PLUGIN_H */
