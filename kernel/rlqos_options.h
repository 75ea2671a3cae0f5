/* SPDX-License-Identifier: GPL-2.0 */
/* Options of sch_rlqos, as the other parts see them. */
#ifndef RLQOS_OPTIONS_H
#define RLQOS_OPTIONS_H

#include <net/netlink.h>
#include "uapi/linux/pkt_sched_rlqos.h"
#include "paqm_option_units.h"

/* Options as given, in the units of the netlink interface: the fields that the table names. */
struct rlqos_config {
#define PAQM_OPTION(kind, attr, field, ...)                                                        \
	PAQM_BY_FORM(PAQM_FIELD_, PAQM_FORM_##kind)(field)
#include "rlqos_option_table.h"
};

/* What a neighbour says, if it does. */
struct rlqos_said {
	bool any;
	u32 load;
};

extern const struct rlqos_config rlqos_defaults;

int rlqos_parse(struct nlattr *opt, struct rlqos_config *cfg, struct rlqos_said *said,
		struct netlink_ext_ack *extack);
int rlqos_dump_options(const struct rlqos_config *cfg, struct sk_buff *skb);

#endif /* RLQOS_OPTIONS_H */
