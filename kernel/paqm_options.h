/* SPDX-License-Identifier: GPL-2.0 */
/* Options of sch_paqm, as the other parts see them. */
#ifndef PAQM_OPTIONS_H
#define PAQM_OPTIONS_H

#include <net/netlink.h>
#include "uapi/linux/pkt_sched_paqm.h"
#include "core/paqm_fix.h"
#include "paqm_option_units.h"

/*
 * Options as given, in the units of the netlink interface: the fields that the table of options
 * names, and what is not one number.
 */
struct paqm_config {
#define PAQM_OPTION(kind, attr, field, ...)                                                        \
	PAQM_BY_FORM(PAQM_FIELD_, PAQM_FORM_##kind)(field)
#include "paqm_option_table.h"
	u32 key_id; /* the key itself is with the transmitter */
	u32 n_prefixes;
	struct tc_paqm_prefix prefix[PAQM_PREFIXES];
};

extern const struct paqm_config paqm_defaults;

int paqm_parse(struct nlattr *opt, struct paqm_config *cfg, const u8 **key,
	       struct netlink_ext_ack *extack);
int paqm_dump_options(const struct paqm_config *cfg, const struct tc_paqm_prefix *prefix, u32 n,
		      struct sk_buff *skb);

#endif /* PAQM_OPTIONS_H */
