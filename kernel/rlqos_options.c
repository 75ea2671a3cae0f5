// SPDX-License-Identifier: GPL-2.0
/* Options of sch_rlqos, made of their table: defaults, ranges, refusals, netlink in and out. */
#include "rlqos_options.h"

#define PAQM_ROWS_TABLE "rlqos_option_table.h"
#define PAQM_ROWS_NAME "rlqos"
#define PAQM_ROWS_CONFIG struct rlqos_config
#define PAQM_ROWS_DEFAULTS rlqos_defaults
#define PAQM_ROWS_ATTR(attr) TCA_RLQOS_##attr
#define PAQM_ROWS_MAX TCA_RLQOS_MAX
#define PAQM_ROWS_MORE PAQM_ROWS_ALSO(DOWNSTREAM, NLA_U32)
#include "paqm_option_rows.h"

/* Options of netlink into @cfg and @said; nothing is changed elsewhere. */
int rlqos_parse(struct nlattr *opt, struct rlqos_config *cfg, struct rlqos_said *said,
		struct netlink_ext_ack *extack)
{
	struct nlattr *tb[TCA_RLQOS_MAX + 1];
	int err = paqm_take_options(opt, tb, cfg, extack);

	if (err)
		return err;
	if (cfg->tc1 & cfg->tc2)
		return paqm_refuse(extack, tb[TCA_RLQOS_TC2] ? tb[TCA_RLQOS_TC2] :
							      tb[TCA_RLQOS_TC1],
				   "rlqos: tc1 and tc2 must have no DSCP in common");
	said->any = tb[TCA_RLQOS_DOWNSTREAM];
	said->load = said->any ? nla_get_u32(tb[TCA_RLQOS_DOWNSTREAM]) : 0;
	return 0;
}

/* Options into a netlink message, which as a request has the same effect. */
int rlqos_dump_options(const struct rlqos_config *cfg, struct sk_buff *skb)
{
	struct nlattr *opts = nla_nest_start(skb, TCA_OPTIONS);

	if (!opts)
		return -EMSGSIZE;
	if (paqm_put_options(cfg, skb)) {
		nla_nest_cancel(skb, opts);
		return -EMSGSIZE;
	}
	return nla_nest_end(skb, opts);
}
