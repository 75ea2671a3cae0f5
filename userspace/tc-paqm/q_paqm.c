// SPDX-License-Identifier: GPL-2.0
/*
 * tc plugin of sch_paqm: turns command-line words into netlink attributes and
 * attributes and statistics into text or JSON. Stock tc loads it as q_paqm.so
 * and looks up what is here; the work is done in option_*.c and stats*.c.
 */
#include "userspace/tc-paqm/tc_plugin.h"
#include "userspace/tc-paqm/options.h"
#include "userspace/tc-paqm/stats.h"

static int paqm_parse_opt(const struct qdisc_util *qu, int argc, char **argv, struct nlmsghdr *n,
			  const char *dev)
{
	(void)qu;
	(void)dev;
	return options_parse(argc, argv, n);
}

static int paqm_print_opt(const struct qdisc_util *qu, FILE *f, struct rtattr *opt)
{
	(void)qu;
	if (opt)
		options_print(f, opt);
	return 0;
}

static int paqm_print_xstats(const struct qdisc_util *qu, FILE *f, struct rtattr *xstats)
{
	(void)qu;
	if (xstats)
		stats_print(f, xstats);
	return 0;
}

static int paqm_parse_copt(const struct qdisc_util *qu, int argc, char **argv, struct nlmsghdr *n,
			   const char *dev)
{
	(void)qu;
	(void)argc;
	(void)argv;
	(void)n;
	(void)dev;
	fprintf(stderr, "paqm: the classes :1 (media) and :2 (elastic) are always there and have "
			"no options\n");
	return -1;
}

/* The only name that is not hidden: tc exports functions of its own under plain names. */
__attribute__((visibility("default"))) struct qdisc_util paqm_qdisc_util = {
	.id = "paqm",
	.parse_qopt = paqm_parse_opt,
	.print_qopt = paqm_print_opt,
	.print_xstats = paqm_print_xstats,
	.parse_copt = paqm_parse_copt,
};
