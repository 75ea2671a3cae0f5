/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Options of a qdisc between the command line, netlink and the screen.
 */
#ifndef PAQM_TC_OPTIONS_H
#define PAQM_TC_OPTIONS_H

#include <linux/netlink.h>
#include <linux/rtnetlink.h>

/* Words into the attribute TCA_OPTIONS of @n; -1 after saying what is wrong. */
int options_parse(int argc, char **argv, struct nlmsghdr *n);
/* The payload of TCA_OPTIONS on @f, or as JSON where tc writes that. */
void options_print(FILE *f, struct rtattr *opt);

#endif /* PAQM_TC_OPTIONS_H */
