// SPDX-License-Identifier: GPL-2.0
/*
 * Options of sch_paqm: defaults, ranges, netlink in and out. One table says for
 * every 32 bit option where it lives, what its range is and how a refusal reads.
 */
#include <linux/rtnetlink.h>
#include <net/netlink.h>
#include "paqm_options.h"

const struct paqm_config paqm_defaults = {
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
	.isolate = 1,
	.borrow = 1,
	.flow_age = 2000000,
	.media_weight = 1,
	.elastic_weight = 1,
};

/*
 * Every 32 bit option: where it goes, its range, what a refusal says: what netlink says would
 * not name the option.
 */
static const struct paqm_option {
	u16 offset;
	u32 least; /* if it is not 0, which means derived; 0: any in the range */
	struct netlink_range_validation range;
	const char *refusal;
} paqm_options[TCA_PAQM_MAX + 1] = {
#define PAQM_OPT(attr, field, low, least, most, text)                                              \
	[attr] = { offsetof(struct paqm_config, field), least, { low, most }, "paqm: " text }
	PAQM_OPT(TCA_PAQM_MEDIA_TARGET, media_target, PAQM_TARGET_MIN_US, 0, PAQM_TARGET_MAX_US,
		 "media-target must be 100us..1s"),
	PAQM_OPT(TCA_PAQM_ELASTIC_TARGET, elastic_target, PAQM_TARGET_MIN_US, 0, PAQM_TARGET_MAX_US,
		 "elastic-target must be 100us..1s"),
	PAQM_OPT(TCA_PAQM_LIMIT, limit, 0, PAQM_LIMIT_MIN, U32_MAX,
		 "limit must be 0 (derived) or at least 3000 bytes"),
	PAQM_OPT(TCA_PAQM_INTERVAL, interval, 0, PAQM_INTERVAL_MIN_US, PAQM_INTERVAL_MAX_US,
		 "interval must be 0 (derived) or 1ms..40ms"),
	PAQM_OPT(TCA_PAQM_GAIN, gain, PAQM_GAIN_MIN_Q24, 0, PAQM_GAIN_MAX_Q24,
		 "gain must be 0.05..1"),
	PAQM_OPT(TCA_PAQM_GAMMA, gamma, 0, PAQM_GAMMA_MIN_Q24, PAQM_GAMMA_MAX_Q24,
		 "gamma must be 0 (derived) or 1/64..1"),
	PAQM_OPT(TCA_PAQM_ALPHA, alpha, PAQM_OUTER_GAIN_MIN_Q24, 0, PAQM_OUTER_GAIN_MAX_Q24,
		 "alpha must be 0.01..2"),
	PAQM_OPT(TCA_PAQM_BETA, beta, PAQM_OUTER_GAIN_MIN_Q24, 0, PAQM_OUTER_GAIN_MAX_Q24,
		 "beta must be 0.01..2"),
	PAQM_OPT(TCA_PAQM_PERIOD, period, PAQM_PERIOD_MIN_US, 0, PAQM_PERIOD_MAX_US,
		 "period must be 50ms..5s"),
	PAQM_OPT(TCA_PAQM_RTT, rtt, 0, PAQM_RTT_MIN_US, PAQM_RTT_MAX_US,
		 "rtt must be 0 (measured) or 100us..2s"),
	PAQM_OPT(TCA_PAQM_TARGET_UTIL, target_util, PAQM_UTIL_MIN_Q24, 0, PAQM_UTIL_MAX_Q24,
		 "target-util must be 0.5..1"),
	PAQM_OPT(TCA_PAQM_LAW, law, 0, 0, __PAQM_LAW_MAX - 1, "law must be maxmin, ecf or erf"),
	PAQM_OPT(TCA_PAQM_TRANSFER, transfer, 0, 0, PAQM_TRANSFER_MAX_US, "transfer must be 0..2s"),
	PAQM_OPT(TCA_PAQM_CREDIT, credit, 0, 0, PAQM_CREDIT_MAX_US, "credit must be 0..1s"),
	PAQM_OPT(TCA_PAQM_MD_FLOOR, md_floor, PAQM_MD_FLOOR_MIN_Q24, 0, PAQM_MD_FLOOR_MAX_Q24,
		 "md-floor must be 0.1..0.95"),
	PAQM_OPT(TCA_PAQM_FORCED_MD, forced_md, 0, 0, 1, "forced-md must be 0 or 1"),
	PAQM_OPT(TCA_PAQM_AI_HOLD, ai_hold, 0, 0, 1, "ai-hold must be 0 or 1"),
	PAQM_OPT(TCA_PAQM_FEEDBACK, feedback, 0, 0, __PAQM_FEEDBACK_MAX - 1,
		 "feedback must be none, icmp, quench or in-band"),
	PAQM_OPT(TCA_PAQM_CLASSIFY, classify, 0, 0, __PAQM_CLASSIFY_MAX - 1,
		 "classify must be auto or protocol"),
	PAQM_OPT(TCA_PAQM_FLOWS, flows, PAQM_FLOWS_MIN, 0, PAQM_FLOWS_MAX,
		 "flows must be 64..1048576"),
	PAQM_OPT(TCA_PAQM_ECN, ecn, 0, 0, 1, "ecn must be 0 or 1"),
	PAQM_OPT(TCA_PAQM_POLICE, police, 0, 0, 1, "police must be 0 or 1"),
	PAQM_OPT(TCA_PAQM_MPU, mpu, 0, 0, PAQM_MPU_MAX, "mpu must be 0..256 bytes"),
	PAQM_OPT(TCA_PAQM_LINKLAYER, linklayer, 0, 0, __PAQM_LINK_MAX - 1,
		 "linklayer must be ethernet, atm or ptm"),
	PAQM_OPT(TCA_PAQM_MEDIA_TARGET_BYTES, media_target_bytes, 0, PAQM_TARGET_BYTES_MIN,
		 PAQM_TARGET_BYTES_MAX, "media-target must be 256 bytes..256 MiB"),
	PAQM_OPT(TCA_PAQM_ELASTIC_TARGET_BYTES, elastic_target_bytes, 0, PAQM_TARGET_BYTES_MIN,
		 PAQM_TARGET_BYTES_MAX, "elastic-target must be 256 bytes..256 MiB"),
	PAQM_OPT(TCA_PAQM_MEDIA_LIMIT, media_limit, 0, PAQM_LIMIT_MIN, U32_MAX,
		 "media-limit must be 0 (derived) or at least 3000 bytes"),
	PAQM_OPT(TCA_PAQM_ELASTIC_LIMIT, elastic_limit, 0, PAQM_LIMIT_MIN, U32_MAX,
		 "elastic-limit must be 0 (derived) or at least 3000 bytes"),
	PAQM_OPT(TCA_PAQM_GOP, gop, 0, 0, PAQM_GOP_MAX_US, "gop must be 0..2s"),
	PAQM_OPT(TCA_PAQM_FLOW_AGE, flow_age, PAQM_FLOW_AGE_MIN_US, 0, PAQM_FLOW_AGE_MAX_US,
		 "flow-age must be 1s..60s"),
	PAQM_OPT(TCA_PAQM_MEDIA_WEIGHT, media_weight, 1, 0, PAQM_WEIGHT_MAX,
		 "media-weight must be 1..64"),
	PAQM_OPT(TCA_PAQM_ELASTIC_WEIGHT, elastic_weight, 1, 0, PAQM_WEIGHT_MAX,
		 "elastic-weight must be 1..64"),
	PAQM_OPT(TCA_PAQM_SPLIT, split, 0, PAQM_SPLIT_MIN_Q16, PAQM_SPLIT_MAX_Q16,
		 "split must be 0 (by flows) or 0.05..0.95"),
	PAQM_OPT(TCA_PAQM_BORROW, borrow, 0, 0, 1, "borrow must be 0 or 1"),
	PAQM_OPT(TCA_PAQM_ISOLATE, isolate, 0, 0, 1, "isolate must be 0 or 1"),
	PAQM_OPT(TCA_PAQM_WEIGHTS, weights, 0, 0, __PAQM_WEIGHTS_MAX - 1,
		 "weights must be flow or host"),
#undef PAQM_OPT
};

/* Netlink checks the ranges, and tells user space of the one that was not kept. */
static const struct nla_policy paqm_policy[TCA_PAQM_MAX + 1] = {
/* the pointer became const after 6.1; nobody writes by it */
#define PAQM_RANGE(attr)                                                                           \
	NLA_POLICY_FULL_RANGE(NLA_U32,                                                             \
			      (struct netlink_range_validation *)&paqm_options[attr].range)
	[TCA_PAQM_BANDWIDTH] = { .type = NLA_U64 },
	[TCA_PAQM_MEDIA_TARGET] = PAQM_RANGE(TCA_PAQM_MEDIA_TARGET),
	[TCA_PAQM_ELASTIC_TARGET] = PAQM_RANGE(TCA_PAQM_ELASTIC_TARGET),
	[TCA_PAQM_LIMIT] = PAQM_RANGE(TCA_PAQM_LIMIT),
	[TCA_PAQM_INTERVAL] = PAQM_RANGE(TCA_PAQM_INTERVAL),
	[TCA_PAQM_GAIN] = PAQM_RANGE(TCA_PAQM_GAIN),
	[TCA_PAQM_GAMMA] = PAQM_RANGE(TCA_PAQM_GAMMA),
	[TCA_PAQM_ALPHA] = PAQM_RANGE(TCA_PAQM_ALPHA),
	[TCA_PAQM_BETA] = PAQM_RANGE(TCA_PAQM_BETA),
	[TCA_PAQM_PERIOD] = PAQM_RANGE(TCA_PAQM_PERIOD),
	[TCA_PAQM_RTT] = PAQM_RANGE(TCA_PAQM_RTT),
	[TCA_PAQM_TARGET_UTIL] = PAQM_RANGE(TCA_PAQM_TARGET_UTIL),
	[TCA_PAQM_LAW] = PAQM_RANGE(TCA_PAQM_LAW),
	[TCA_PAQM_TRANSFER] = PAQM_RANGE(TCA_PAQM_TRANSFER),
	[TCA_PAQM_CREDIT] = PAQM_RANGE(TCA_PAQM_CREDIT),
	[TCA_PAQM_MD_FLOOR] = PAQM_RANGE(TCA_PAQM_MD_FLOOR),
	[TCA_PAQM_FORCED_MD] = PAQM_RANGE(TCA_PAQM_FORCED_MD),
	[TCA_PAQM_AI_HOLD] = PAQM_RANGE(TCA_PAQM_AI_HOLD),
	[TCA_PAQM_FEEDBACK] = PAQM_RANGE(TCA_PAQM_FEEDBACK),
	[TCA_PAQM_CLASSIFY] = PAQM_RANGE(TCA_PAQM_CLASSIFY),
	[TCA_PAQM_FLOWS] = PAQM_RANGE(TCA_PAQM_FLOWS),
	[TCA_PAQM_ECN] = PAQM_RANGE(TCA_PAQM_ECN),
	[TCA_PAQM_POLICE] = PAQM_RANGE(TCA_PAQM_POLICE),
	[TCA_PAQM_ROUTER_ID] = NLA_POLICY_MIN(NLA_U64, 1),
	[TCA_PAQM_OVERHEAD] = NLA_POLICY_RANGE(NLA_S32, PAQM_OVERHEAD_MIN, PAQM_OVERHEAD_MAX),
	[TCA_PAQM_MPU] = PAQM_RANGE(TCA_PAQM_MPU),
	[TCA_PAQM_LINKLAYER] = PAQM_RANGE(TCA_PAQM_LINKLAYER),
	[TCA_PAQM_MEDIA_TARGET_BYTES] = PAQM_RANGE(TCA_PAQM_MEDIA_TARGET_BYTES),
	[TCA_PAQM_ELASTIC_TARGET_BYTES] = PAQM_RANGE(TCA_PAQM_ELASTIC_TARGET_BYTES),
	[TCA_PAQM_MEDIA_LIMIT] = PAQM_RANGE(TCA_PAQM_MEDIA_LIMIT),
	[TCA_PAQM_ELASTIC_LIMIT] = PAQM_RANGE(TCA_PAQM_ELASTIC_LIMIT),
	[TCA_PAQM_GOP] = PAQM_RANGE(TCA_PAQM_GOP),
	[TCA_PAQM_FEEDBACK_TO] = { .type = NLA_BINARY,
				   .len = PAQM_PREFIXES * sizeof(struct tc_paqm_prefix) },
	[TCA_PAQM_DSCP_MEDIA] = { .type = NLA_U64 },
	[TCA_PAQM_DSCP_ELASTIC] = { .type = NLA_U64 },
	[TCA_PAQM_FLOW_AGE] = PAQM_RANGE(TCA_PAQM_FLOW_AGE),
	[TCA_PAQM_MEDIA_WEIGHT] = PAQM_RANGE(TCA_PAQM_MEDIA_WEIGHT),
	[TCA_PAQM_ELASTIC_WEIGHT] = PAQM_RANGE(TCA_PAQM_ELASTIC_WEIGHT),
	[TCA_PAQM_SPLIT] = PAQM_RANGE(TCA_PAQM_SPLIT),
	[TCA_PAQM_BORROW] = PAQM_RANGE(TCA_PAQM_BORROW),
	[TCA_PAQM_SEED] = { .type = NLA_U64 },
	[TCA_PAQM_ISOLATE] = PAQM_RANGE(TCA_PAQM_ISOLATE),
	[TCA_PAQM_WEIGHTS] = PAQM_RANGE(TCA_PAQM_WEIGHTS),
	[TCA_PAQM_KEY] = NLA_POLICY_EXACT_LEN(sizeof(struct tc_paqm_key)),
	[TCA_PAQM_KEY_ID] = { .type = NLA_U32 },
	[TCA_PAQM_PAD] = { .type = NLA_FLAG }, /* what is shown can be given again */
#undef PAQM_RANGE
};

/* Refuse @attr with @text, which begins with the name of the module. */
static int paqm_refuse(struct netlink_ext_ack *extack, const struct nlattr *attr, const char *text)
{
	/* NL_SET_ERR_MSG_ATTR() cannot take a variable text */
	do_trace_netlink_extack(text);
	if (extack) {
		extack->_msg = text;
		extack->bad_attr = attr;
		extack->policy = &paqm_policy[nla_type(attr)];
	}
	return -EINVAL;
}

/* The same for one out of its range. */
static int paqm_refuse_range(struct netlink_ext_ack *extack, const struct nlattr *attr)
{
	switch (nla_type(attr)) {
	case TCA_PAQM_ROUTER_ID:
		return paqm_refuse(extack, attr, "paqm: router-id must not be 0");
	case TCA_PAQM_OVERHEAD:
		return paqm_refuse(extack, attr, "paqm: overhead must be -64..256 bytes");
	case TCA_PAQM_KEY:
		return paqm_refuse(extack, attr, "paqm: key must be an id and 16 bytes");
	case TCA_PAQM_FEEDBACK_TO:
		return paqm_refuse(extack, attr, "paqm: feedback-to has more than 16 prefixes");
	}
	if (!paqm_options[nla_type(attr)].refusal)
		return -ERANGE; /* what netlink says stands */
	return paqm_refuse(extack, attr, paqm_options[nla_type(attr)].refusal);
}

/* The prefixes that messages may go to. */
static int paqm_parse_prefixes(const struct nlattr *attr, struct paqm_config *cfg,
			       struct netlink_ext_ack *extack)
{
	const struct tc_paqm_prefix *p = nla_data(attr);
	int n = nla_len(attr) / sizeof(*p), i;

	if (nla_len(attr) % sizeof(*p))
		return paqm_refuse(extack, attr, "paqm: feedback-to is not a list of prefixes");
	for (i = 0; i < n; i++)
		if ((p[i].family != 4 && p[i].family != 6) ||
		    p[i].len > (p[i].family == 4 ? 32 : 128) || p[i].pad[0] || p[i].pad[1])
			return paqm_refuse(extack, attr,
					   "paqm: feedback-to: family must be 4 or 6, length 0..32 or 0..128");
	memset(cfg->prefix, 0, sizeof(cfg->prefix));
	memcpy(cfg->prefix, p, n * sizeof(*p));
	cfg->n_prefixes = n;
	return 0;
}

/* The key of the tags: its id goes to @cfg, @key is set to its bytes. */
static int paqm_parse_key(const struct nlattr *attr, struct paqm_config *cfg, const u8 **key,
			  struct netlink_ext_ack *extack)
{
	const struct tc_paqm_key *k = nla_data(attr);

	if (!k->id != !memchr_inv(k->key, 0, sizeof(k->key)))
		return paqm_refuse(extack, attr,
				   "paqm: key: id and bytes must both be 0 (no key) or neither");
	cfg->key_id = k->id;
	*key = k->key;
	return 0;
}

/*
 * Options of netlink into @cfg; nothing is changed elsewhere. @key is set to the bytes of the
 * key if one is given, in @opt.
 */
int paqm_parse(struct nlattr *opt, struct paqm_config *cfg, const u8 **key,
	       struct netlink_ext_ack *extack)
{
	struct nlattr *tb[TCA_PAQM_MAX + 1], *a;
	u32 value;
	int err, i;

	err = nla_parse_nested(tb, TCA_PAQM_MAX, opt, paqm_policy, extack);
	if (err == -ERANGE && extack && extack->bad_attr)
		return paqm_refuse_range(extack, extack->bad_attr);
	if (err < 0)
		return err;
	for (i = 1; i <= TCA_PAQM_MAX; i++) {
		const struct paqm_option *o = &paqm_options[i];

		if (!tb[i] || !o->refusal)
			continue;
		value = nla_get_u32(tb[i]);
		if (value && value < o->least)
			return paqm_refuse(extack, tb[i], o->refusal);
		*(u32 *)((u8 *)cfg + o->offset) = value;
	}
	a = tb[TCA_PAQM_BANDWIDTH];
	if (a) {
		cfg->bandwidth = nla_get_u64(a);
		if (cfg->bandwidth && cfg->bandwidth != PAQM_BANDWIDTH_AUTO &&
		    (cfg->bandwidth < PAQM_BANDWIDTH_MIN || cfg->bandwidth > PAQM_BANDWIDTH_MAX))
			return paqm_refuse(extack, a,
					   "paqm: bandwidth must be none, auto or 8kbit..800gbit");
	}
	if (tb[TCA_PAQM_ROUTER_ID])
		cfg->router_id = nla_get_u64(tb[TCA_PAQM_ROUTER_ID]);
	if (tb[TCA_PAQM_OVERHEAD])
		cfg->overhead = nla_get_s32(tb[TCA_PAQM_OVERHEAD]);
	if (tb[TCA_PAQM_DSCP_MEDIA])
		cfg->dscp_media = nla_get_u64(tb[TCA_PAQM_DSCP_MEDIA]);
	if (tb[TCA_PAQM_DSCP_ELASTIC])
		cfg->dscp_elastic = nla_get_u64(tb[TCA_PAQM_DSCP_ELASTIC]);
	if (cfg->dscp_media & cfg->dscp_elastic) {
		a = tb[TCA_PAQM_DSCP_MEDIA] ? tb[TCA_PAQM_DSCP_MEDIA] : tb[TCA_PAQM_DSCP_ELASTIC];
		return paqm_refuse(extack, a,
				   "paqm: a DSCP cannot be in dscp-media and in dscp-elastic");
	}
	if (tb[TCA_PAQM_SEED])
		cfg->seed = nla_get_u64(tb[TCA_PAQM_SEED]);
	if (tb[TCA_PAQM_KEY]) {
		err = paqm_parse_key(tb[TCA_PAQM_KEY], cfg, key, extack);
		if (err)
			return err;
	}
	if (tb[TCA_PAQM_KEY_ID] && nla_get_u32(tb[TCA_PAQM_KEY_ID]) != cfg->key_id)
		return paqm_refuse(extack, tb[TCA_PAQM_KEY_ID],
				   "paqm: key-id is only shown; key sets it");
	if (tb[TCA_PAQM_FEEDBACK_TO])
		return paqm_parse_prefixes(tb[TCA_PAQM_FEEDBACK_TO], cfg, extack);
	return 0;
}

/*
 * Options into a netlink message, which as a request has the same effect; readers are not locked
 * out of changes but for the @n prefixes.
 */
int paqm_dump_options(const struct paqm_config *cfg, const struct tc_paqm_prefix *prefix, u32 n,
		      struct sk_buff *skb)
{
	struct nlattr *opts = nla_nest_start(skb, TCA_OPTIONS);
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
	    nla_put_u64_64bit(skb, TCA_PAQM_ROUTER_ID, READ_ONCE(cfg->router_id), TCA_PAQM_PAD) ||
	    nla_put_u64_64bit(skb, TCA_PAQM_DSCP_MEDIA, READ_ONCE(cfg->dscp_media), TCA_PAQM_PAD) ||
	    nla_put_u64_64bit(skb, TCA_PAQM_DSCP_ELASTIC, READ_ONCE(cfg->dscp_elastic),
			      TCA_PAQM_PAD) ||
	    nla_put_u64_64bit(skb, TCA_PAQM_SEED, READ_ONCE(cfg->seed), TCA_PAQM_PAD) ||
	    nla_put_s32(skb, TCA_PAQM_OVERHEAD, READ_ONCE(cfg->overhead)) ||
	    nla_put_u32(skb, TCA_PAQM_KEY_ID, READ_ONCE(cfg->key_id)))
		goto cancel;
	if (nla_put(skb, TCA_PAQM_FEEDBACK_TO, n * sizeof(*prefix), prefix))
		goto cancel;
	return nla_nest_end(skb, opts);

cancel:
	nla_nest_cancel(skb, opts);
	return -EMSGSIZE;
}
