/* SPDX-License-Identifier: GPL-2.0 */
/* Options of sch_dcbt, as the other parts see them. */
#ifndef DCBT_OPTIONS_H
#define DCBT_OPTIONS_H

#include <net/netlink.h>
#include "uapi/linux/pkt_sched_dcbt.h"
#include "core/paqm_red.h"
#include "paqm_option_units.h"

/* Options as given, in the units of the netlink interface: the fields that the table names. */
struct dcbt_config {
#define PAQM_OPTION(kind, attr, field, ...)                                                        \
	PAQM_BY_FORM(PAQM_FIELD_, PAQM_FORM_##kind)(field)
#include "dcbt_option_table.h"
};

extern const struct dcbt_config dcbt_defaults;

/* Packets of an option (Q16) as the laws have them (Q24). */
static inline u64 dcbt_packets(u32 q16)
{
	return (u64)q16 << 8;
}

int dcbt_parse(struct nlattr *opt, struct dcbt_config *cfg, struct netlink_ext_ack *extack);
int dcbt_dump_options(const struct dcbt_config *cfg, struct sk_buff *skb);

#endif /* DCBT_OPTIONS_H */
