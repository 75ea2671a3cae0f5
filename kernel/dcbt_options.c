// SPDX-License-Identifier: GPL-2.0
/* Options of sch_dcbt, made of their table: defaults, ranges, refusals, netlink in and out. */
#include "dcbt_options.h"

#define PAQM_ROWS_TABLE "dcbt_option_table.h"
#define PAQM_ROWS_NAME "dcbt"
#define PAQM_ROWS_CONFIG struct dcbt_config
#define PAQM_ROWS_DEFAULTS dcbt_defaults
#define PAQM_ROWS_ATTR(attr) TCA_DCBT_##attr
#define PAQM_ROWS_MAX TCA_DCBT_MAX
#define PAQM_ROWS_MORE
#include "paqm_option_rows.h"

/* Options of netlink into @cfg; nothing is changed elsewhere. */
int dcbt_parse(struct nlattr *opt, struct dcbt_config *cfg, struct netlink_ext_ack *extack)
{
	struct nlattr *tb[TCA_DCBT_MAX + 1];
	int err = paqm_take_options(opt, tb, cfg, extack);

	if (err)
		return err;
	if (cfg->min_th >= cfg->max_th)
		return paqm_refuse(extack, tb[TCA_DCBT_MAX_TH] ? tb[TCA_DCBT_MAX_TH] :
								 tb[TCA_DCBT_MIN_TH],
				   "dcbt: min must be below max");
	return 0;
}

/* Options into a netlink message, which as a request has the same effect. */
int dcbt_dump_options(const struct dcbt_config *cfg, struct sk_buff *skb)
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
