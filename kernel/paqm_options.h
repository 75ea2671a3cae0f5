/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Options of sch_paqm: defaults, ranges, netlink in and out. One table says for
 * every 32 bit option where it lives, what its range is and how a refusal reads.
 */
#ifndef PAQM_OPTIONS_H
#define PAQM_OPTIONS_H

#include <net/netlink.h>
#include "uapi/linux/pkt_sched_paqm.h"
#include "core/paqm_fix.h"

/* Options as given, units of the netlink interface; 0 means derived where that says so. */
struct paqm_config {
	u64 bandwidth; /* bytes/s, 0: none */
	u64 router_id;
	u32 media_target; /* us */
	u32 elastic_target;
	u32 limit; /* bytes */
	u32 interval; /* us */
	u32 gain; /* Q24 */
	u32 gamma;
	u32 alpha;
	u32 beta;
	u32 period; /* us */
	u32 rtt;
	u32 target_util; /* Q24 */
	u32 law;
	u32 transfer; /* us */
	u32 credit; /* us */
	u32 md_floor; /* Q24 */
	u32 forced_md;
	u32 ai_hold;
	u32 feedback;
	u32 classify;
	u32 flows;
	u32 ecn;
	u32 police;
};

static const struct paqm_config paqm_defaults = {
	.media_target = 3000,
	.elastic_target = 30000,
	.gain = PAQM_Q24(30, 100),
	.alpha = PAQM_Q24(484, 1000),
	.beta = PAQM_Q24(131, 1000),
	.period = 250000,
	.rtt = 100000,
	.target_util = PAQM_Q24(96, 100),
	.transfer = 150000,
	.credit = 50000,
	.md_floor = PAQM_Q24(10, 100),
	.forced_md = 1,
	.flows = 4096,
	.ecn = 1,
	.police = 1,
};

static const struct nla_policy paqm_policy[TCA_PAQM_MAX + 1] = {
	[TCA_PAQM_BANDWIDTH] = { .type = NLA_U64 },
	[TCA_PAQM_MEDIA_TARGET] = { .type = NLA_U32 },
	[TCA_PAQM_ELASTIC_TARGET] = { .type = NLA_U32 },
	[TCA_PAQM_LIMIT] = { .type = NLA_U32 },
	[TCA_PAQM_INTERVAL] = { .type = NLA_U32 },
	[TCA_PAQM_GAIN] = { .type = NLA_U32 },
	[TCA_PAQM_GAMMA] = { .type = NLA_U32 },
	[TCA_PAQM_ALPHA] = { .type = NLA_U32 },
	[TCA_PAQM_BETA] = { .type = NLA_U32 },
	[TCA_PAQM_PERIOD] = { .type = NLA_U32 },
	[TCA_PAQM_RTT] = { .type = NLA_U32 },
	[TCA_PAQM_TARGET_UTIL] = { .type = NLA_U32 },
	[TCA_PAQM_LAW] = { .type = NLA_U32 },
	[TCA_PAQM_TRANSFER] = { .type = NLA_U32 },
	[TCA_PAQM_CREDIT] = { .type = NLA_U32 },
	[TCA_PAQM_MD_FLOOR] = { .type = NLA_U32 },
	[TCA_PAQM_FORCED_MD] = { .type = NLA_U32 },
	[TCA_PAQM_AI_HOLD] = { .type = NLA_U32 },
	[TCA_PAQM_FEEDBACK] = { .type = NLA_U32 },
	[TCA_PAQM_CLASSIFY] = { .type = NLA_U32 },
	[TCA_PAQM_FLOWS] = { .type = NLA_U32 },
	[TCA_PAQM_ECN] = { .type = NLA_U32 },
	[TCA_PAQM_POLICE] = { .type = NLA_U32 },
	[TCA_PAQM_ROUTER_ID] = { .type = NLA_U64 },
};

/*
 * Every 32 bit option: where it goes, its range, what a refusal says. The policy
 * only checks types: its range texts would not name the option.
 */
static const struct paqm_option {
	u16 offset;
	bool zero; /* 0 is allowed too: derive it */
	u32 min;
	u32 max;
	const char *refusal;
} paqm_options[TCA_PAQM_MAX + 1] = {
#define PAQM_OPT(attr, field, zero, min, max, text)                                                \
	[attr] = { offsetof(struct paqm_config, field), zero, min, max, "paqm: " text }
	PAQM_OPT(TCA_PAQM_MEDIA_TARGET, media_target, false, PAQM_TARGET_MIN_US, PAQM_TARGET_MAX_US,
		 "media-target must be 100us..1s"),
	PAQM_OPT(TCA_PAQM_ELASTIC_TARGET, elastic_target, false, PAQM_TARGET_MIN_US,
		 PAQM_TARGET_MAX_US, "elastic-target must be 100us..1s"),
	PAQM_OPT(TCA_PAQM_LIMIT, limit, true, PAQM_LIMIT_MIN, U32_MAX,
		 "limit must be 0 (derived) or at least 3000 bytes"),
	PAQM_OPT(TCA_PAQM_INTERVAL, interval, true, PAQM_INTERVAL_MIN_US, PAQM_INTERVAL_MAX_US,
		 "interval must be 0 (derived) or 1ms..40ms"),
	PAQM_OPT(TCA_PAQM_GAIN, gain, false, PAQM_GAIN_MIN_Q24, PAQM_GAIN_MAX_Q24,
		 "gain must be 0.05..1"),
	PAQM_OPT(TCA_PAQM_GAMMA, gamma, true, PAQM_GAMMA_MIN_Q24, PAQM_GAMMA_MAX_Q24,
		 "gamma must be 0 (derived) or 1/64..1"),
	PAQM_OPT(TCA_PAQM_ALPHA, alpha, false, PAQM_OUTER_GAIN_MIN_Q24, PAQM_OUTER_GAIN_MAX_Q24,
		 "alpha must be 0.01..2"),
	PAQM_OPT(TCA_PAQM_BETA, beta, false, PAQM_OUTER_GAIN_MIN_Q24, PAQM_OUTER_GAIN_MAX_Q24,
		 "beta must be 0.01..2"),
	PAQM_OPT(TCA_PAQM_PERIOD, period, false, PAQM_PERIOD_MIN_US, PAQM_PERIOD_MAX_US,
		 "period must be 50ms..5s"),
	PAQM_OPT(TCA_PAQM_RTT, rtt, false, PAQM_RTT_MIN_US, PAQM_RTT_MAX_US,
		 "rtt must be 100us..2s"),
	PAQM_OPT(TCA_PAQM_TARGET_UTIL, target_util, false, PAQM_UTIL_MIN_Q24, PAQM_UTIL_MAX_Q24,
		 "target-util must be 0.5..1"),
	PAQM_OPT(TCA_PAQM_LAW, law, false, 0, __PAQM_LAW_MAX - 1,
		 "law must be maxmin, ecf or erf"),
	PAQM_OPT(TCA_PAQM_TRANSFER, transfer, false, 0, PAQM_TRANSFER_MAX_US,
		 "transfer must be 0..2s"),
	PAQM_OPT(TCA_PAQM_CREDIT, credit, false, 0, PAQM_CREDIT_MAX_US, "credit must be 0..1s"),
	PAQM_OPT(TCA_PAQM_MD_FLOOR, md_floor, false, PAQM_MD_FLOOR_MIN_Q24, PAQM_MD_FLOOR_MAX_Q24,
		 "md-floor must be 0.1..0.95"),
	PAQM_OPT(TCA_PAQM_FORCED_MD, forced_md, false, 0, 1, "forced-md must be 0 or 1"),
	PAQM_OPT(TCA_PAQM_AI_HOLD, ai_hold, false, 0, 1, "ai-hold must be 0 or 1"),
	PAQM_OPT(TCA_PAQM_FEEDBACK, feedback, false, 0, __PAQM_FEEDBACK_MAX - 1,
		 "feedback must be none or icmp"),
	PAQM_OPT(TCA_PAQM_CLASSIFY, classify, false, 0, __PAQM_CLASSIFY_MAX - 1,
		 "classify must be auto or protocol"),
	PAQM_OPT(TCA_PAQM_FLOWS, flows, false, PAQM_FLOWS_MIN, PAQM_FLOWS_MAX,
		 "flows must be 64..1048576"),
	PAQM_OPT(TCA_PAQM_ECN, ecn, false, 0, 1, "ecn must be 0 or 1"),
	PAQM_OPT(TCA_PAQM_POLICE, police, false, 0, 1, "police must be 0 or 1"),
#undef PAQM_OPT
};

/* Options of netlink into @cfg; nothing is changed elsewhere. */
static int paqm_parse(struct nlattr *opt, struct paqm_config *cfg, bool live,
		      struct netlink_ext_ack *extack)
{
	struct nlattr *tb[TCA_PAQM_MAX + 1];
	u32 flows = cfg->flows, value;
	int err, i;

	err = nla_parse_nested(tb, TCA_PAQM_MAX, opt, paqm_policy, extack);
	if (err < 0)
		return err;
	for (i = 1; i <= TCA_PAQM_MAX; i++) {
		const struct paqm_option *o = &paqm_options[i];

		if (!tb[i] || !o->refusal)
			continue;
		value = nla_get_u32(tb[i]);
		if ((value < o->min || value > o->max) && !(o->zero && !value)) {
			/* the macro cannot take a variable text */
			do_trace_netlink_extack(o->refusal);
			if (extack) {
				extack->_msg = o->refusal;
				extack->bad_attr = tb[i];
			}
			return -EINVAL;
		}
		*(u32 *)((u8 *)cfg + o->offset) = value;
	}
	if (tb[TCA_PAQM_BANDWIDTH]) {
		cfg->bandwidth = nla_get_u64(tb[TCA_PAQM_BANDWIDTH]);
		if (cfg->bandwidth &&
		    (cfg->bandwidth < PAQM_BANDWIDTH_MIN || cfg->bandwidth > PAQM_BANDWIDTH_MAX)) {
			NL_SET_ERR_MSG_ATTR(extack, tb[TCA_PAQM_BANDWIDTH],
					    "paqm: bandwidth must be none or 8kbit..120gbit");
			return -EINVAL;
		}
	}
	if (tb[TCA_PAQM_ROUTER_ID]) {
		cfg->router_id = nla_get_u64(tb[TCA_PAQM_ROUTER_ID]);
		if (!cfg->router_id) {
			NL_SET_ERR_MSG_ATTR(extack, tb[TCA_PAQM_ROUTER_ID],
					    "paqm: router-id must not be 0");
			return -EINVAL;
		}
	}
	if (live && cfg->flows != flows) {
		NL_SET_ERR_MSG_ATTR(extack, tb[TCA_PAQM_FLOWS],
				    "paqm: flows can only be set when the qdisc is created");
		return -EINVAL;
	}
	return 0;
}

/* Options into a netlink message; readers are not locked out of changes. */
static int paqm_dump_options(const struct paqm_config *cfg, struct sk_buff *skb)
{
	struct nlattr *opts = nla_nest_start_noflag(skb, TCA_OPTIONS);
	int i;

	if (!opts)
		return -EMSGSIZE;
	for (i = 1; i <= TCA_PAQM_MAX; i++) {
		const struct paqm_option *o = &paqm_options[i];

		if (o->refusal &&
		    nla_put_u32(skb, i, READ_ONCE(*(const u32 *)((const u8 *)cfg + o->offset))))
			goto cancel;
	}
	if (nla_put_u64_64bit(skb, TCA_PAQM_BANDWIDTH, READ_ONCE(cfg->bandwidth), TCA_PAQM_PAD) ||
	    nla_put_u64_64bit(skb, TCA_PAQM_ROUTER_ID, READ_ONCE(cfg->router_id), TCA_PAQM_PAD))
		goto cancel;
	return nla_nest_end(skb, opts);

cancel:
	nla_nest_cancel(skb, opts);
	return -EMSGSIZE;
}

#endif /* PAQM_OPTIONS_H */
