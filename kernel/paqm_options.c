// SPDX-License-Identifier: GPL-2.0
/*
 * Options of sch_paqm: defaults, ranges, refusals, netlink in and out, all made of the
 * table of options; what is not one number (key, prefixes) is read here by hand.
 */
#include <linux/rtnetlink.h>
#include <net/netlink.h>
#include "core/paqm_laws.h"
#include "paqm_options.h"

const struct paqm_config paqm_defaults = {
#define PAQM_DEFAULT_U32(field, value) .field = value,
#define PAQM_DEFAULT_S32 PAQM_DEFAULT_U32
#define PAQM_DEFAULT_U64 PAQM_DEFAULT_U32
#define PAQM_DEFAULT_Q24 PAQM_DEFAULT_U32
#define PAQM_DEFAULT_Q16 PAQM_DEFAULT_U32
#define PAQM_DEFAULT_OWN(field, value)
#define PAQM_OPTION(kind, attr, field, name, key, zero, low, high, initial, shown, group)          \
	PAQM_BY_FORM(PAQM_DEFAULT_, PAQM_FORM_##kind)(field, PAQM_INITIAL(kind) initial)
#include "paqm_option_table.h"
};

/* An end of a range as the refusal has it. */
#define PAQM_AS_us "us"
#define PAQM_AS_ms "ms"
#define PAQM_AS_s "s"
#define PAQM_AS_bytes " bytes"
#define PAQM_AS_MiB " MiB"
#define PAQM_AS_kbit "kbit"
#define PAQM_AS_gbit "gbit"
#define PAQM_AS_count ""
#define PAQM_TEXT_UNITS(number, unit) #number PAQM_AS_##unit
#define PAQM_TEXT_FRACTION(decimal, num, den) #decimal

/* What an option must, by kind; @or: "0 (word) or " if 0 is taken, too. */
#define PAQM_FIRST(word, ...) word
#define PAQM_MORE(word, ...) ", " word
#define PAQM_LAST(word, ...) " or " word
#define PAQM_MUST_TIME(or, attr, low, high) "be " or PAQM_TEXT_UNITS low ".." PAQM_TEXT_UNITS high
#define PAQM_MUST_COUNT PAQM_MUST_TIME
#define PAQM_MUST_SIGNED PAQM_MUST_TIME
#define PAQM_MUST_TARGET PAQM_MUST_TIME
#define PAQM_MUST_TARGET_BYTES PAQM_MUST_TIME
#define PAQM_MUST_SIZE(or, attr, low, high) "be " or "at least " PAQM_TEXT_UNITS low
#define PAQM_MUST_RATIO(or, attr, low, high)                                                       \
	"be " or PAQM_TEXT_FRACTION low ".." PAQM_TEXT_FRACTION high
#define PAQM_MUST_PERCENT PAQM_MUST_RATIO
#define PAQM_MUST_SHARE PAQM_MUST_RATIO
#define PAQM_MUST_WORD(or, attr, low, high)                                                        \
	"be " PAQM_WORDS_##attr(PAQM_FIRST, PAQM_MORE, PAQM_LAST)
#define PAQM_MUST_FLAG(or, attr, low, high) "be 0 or 1"
#define PAQM_MUST_RATE(or, attr, low, high)                                                        \
	"be none, auto or " PAQM_TEXT_UNITS low ".." PAQM_TEXT_UNITS high
#define PAQM_MUST_ID(or, attr, low, high) "not be 0"
#define PAQM_MUST_SEED(or, attr, low, high) "be a number of 64 bits"
#define PAQM_MUST_DSCPS(or, attr, low, high) "be a map of 64 bits"
#define PAQM_MUST_PREFIXES(or, attr, low, high)                                                    \
	"be a list of at most " __stringify(PAQM_PREFIXES) " prefixes"
#define PAQM_MUST_KEY(or, attr, low, high) "be an id and " __stringify(PAQM_KEY_LEN) " bytes"

/* Where an option goes, its range, and what a refusal says: netlink would not name the option. */
static const struct paqm_option {
	u16 offset;
	u8 width; /* bytes; 0: not one number */
	u32 least; /* if it is not 0, which means something else; 0: any in the range */
	struct netlink_range_validation range;
	const char *refusal;
} paqm_options[TCA_PAQM_MAX + 1] = {
#define PAQM_GOES_U32(field) offsetof(struct paqm_config, field), sizeof(u32)
#define PAQM_GOES_Q24 PAQM_GOES_U32
#define PAQM_GOES_Q16 PAQM_GOES_U32
#define PAQM_GOES_S32 PAQM_GOES_U32
#define PAQM_GOES_U64(field) offsetof(struct paqm_config, field), sizeof(u64)
#define PAQM_GOES_OWN(field) 0, 0
#define PAQM_TAKES_0(zero) (sizeof(zero) > 1)
#define PAQM_REFUSAL(kind, name, or, attr, low, high)                                              \
	"paqm: " name " must " PAQM_MUST_##kind(or, attr, low, high)
#define PAQM_OPTION(kind, attr, field, name, key, zero, low, high, initial, shown, group)          \
	[TCA_PAQM_##attr] = {                                                                      \
		PAQM_BY_FORM(PAQM_GOES_, PAQM_FORM_##kind)(field),                                 \
		PAQM_TAKES_0(zero) ? PAQM_END(kind) low : 0,                                       \
		{ PAQM_TAKES_0(zero) ? 0 : PAQM_END(kind) low, PAQM_END(kind) high },              \
		PAQM_TAKES_0(zero) ? PAQM_REFUSAL(kind, name, "0 (" zero ") or ", attr, low, high) \
				   : PAQM_REFUSAL(kind, name, "", attr, low, high),                \
	},
#include "paqm_option_table.h"
};

/* Ends that other parts go by, too. */
enum {
#define PAQM_ENDS_U32(attr, low, high) PAQM_LEAST_##attr = low, PAQM_MOST_##attr = high,
#define PAQM_ENDS_Q24 PAQM_ENDS_U32
#define PAQM_ENDS_Q16 PAQM_ENDS_U32
#define PAQM_ENDS_U64 PAQM_ENDS_U32
#define PAQM_ENDS_S32(attr, low, high)
#define PAQM_ENDS_OWN(attr, low, high)
#define PAQM_OPTION(kind, attr, field, name, key, zero, low, high, ...)                            \
	PAQM_BY_FORM(PAQM_ENDS_, PAQM_FORM_##kind)(attr, PAQM_END(kind) low, PAQM_END(kind) high)
#include "paqm_option_table.h"
};

static_assert(PAQM_MOST_BANDWIDTH == PAQM_BANDWIDTH_MAX);
static_assert(PAQM_LEAST_INTERVAL == PAQM_INTERVAL_MIN_US);
static_assert(PAQM_MOST_INTERVAL == PAQM_INTERVAL_MAX_US);
static_assert(PAQM_MOST_PERIOD == PAQM_PERIOD_MAX_US);
static_assert(PAQM_LEAST_RTT == PAQM_RTT_MIN_US);
static_assert(PAQM_MOST_RTT == PAQM_RTT_MAX_US);

/* Netlink checks the ranges, and tells user space of the one that was not kept. */
static const struct nla_policy paqm_policy[TCA_PAQM_MAX + 1] = {
/* the pointer became const after 6.1; nobody writes by it */
#define PAQM_RANGE(type, attr)                                                                     \
	NLA_POLICY_FULL_RANGE(type, (struct netlink_range_validation *)                            \
				    &paqm_options[TCA_PAQM_##attr].range)
#define PAQM_POLICY_TIME(attr, low, high) PAQM_RANGE(NLA_U32, attr)
#define PAQM_POLICY_SIZE PAQM_POLICY_TIME
#define PAQM_POLICY_COUNT PAQM_POLICY_TIME
#define PAQM_POLICY_WORD PAQM_POLICY_TIME
#define PAQM_POLICY_FLAG PAQM_POLICY_TIME
#define PAQM_POLICY_TARGET PAQM_POLICY_TIME
#define PAQM_POLICY_TARGET_BYTES PAQM_POLICY_TIME
#define PAQM_POLICY_RATIO PAQM_POLICY_TIME
#define PAQM_POLICY_PERCENT PAQM_POLICY_TIME
#define PAQM_POLICY_SHARE PAQM_POLICY_TIME
#define PAQM_POLICY_SIGNED(attr, low, high)                                                        \
	NLA_POLICY_RANGE(NLA_S32, PAQM_END_S32 low, PAQM_END_S32 high)
#define PAQM_POLICY_RATE(attr, low, high) { .type = NLA_U64 }
#define PAQM_POLICY_ID(attr, low, high) PAQM_RANGE(NLA_U64, attr)
#define PAQM_POLICY_SEED PAQM_POLICY_RATE
#define PAQM_POLICY_DSCPS PAQM_POLICY_RATE
#define PAQM_POLICY_PREFIXES(attr, low, high)                                                      \
	{ .type = NLA_BINARY, .len = PAQM_PREFIXES * sizeof(struct tc_paqm_prefix) }
#define PAQM_POLICY_KEY(attr, low, high) NLA_POLICY_EXACT_LEN(sizeof(struct tc_paqm_key))
#define PAQM_OPTION(kind, attr, field, name, key, zero, low, high, ...)                            \
	[TCA_PAQM_##attr] = PAQM_POLICY_##kind(attr, low, high),
#include "paqm_option_table.h"
	[TCA_PAQM_KEY_ID] = { .type = NLA_U32 },
	[TCA_PAQM_PAD] = { .type = NLA_FLAG }, /* what is shown can be given again */
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
	const struct paqm_option *o;
	u64 value;
	int err, i;

	err = nla_parse_nested(tb, TCA_PAQM_MAX, opt, paqm_policy, extack);
	if (err == -ERANGE && extack && extack->bad_attr) {
		o = &paqm_options[nla_type(extack->bad_attr)];
		/* without a text of ours netlink's stands */
		return o->refusal ? paqm_refuse(extack, extack->bad_attr, o->refusal) : err;
	}
	if (err < 0)
		return err;
	for (i = 1; i <= TCA_PAQM_MAX; i++) {
		o = &paqm_options[i];
		if (!tb[i] || !o->width)
			continue;
		if (o->width == sizeof(u32))
			value = nla_get_u32(tb[i]);
		else
			value = nla_get_u64(tb[i]);
		/* netlink has looked at 32 bits; all ones: bandwidth auto */
		if ((value && value < o->least) ||
		    (o->width == sizeof(u64) && value > o->range.max &&
		     value != PAQM_BANDWIDTH_AUTO))
			return paqm_refuse(extack, tb[i], o->refusal);
		if (o->width == sizeof(u32))
			*(u32 *)((u8 *)cfg + o->offset) = value;
		else
			*(u64 *)((u8 *)cfg + o->offset) = value;
	}
	if (cfg->dscp_media & cfg->dscp_elastic) {
		a = tb[TCA_PAQM_DSCP_MEDIA] ? tb[TCA_PAQM_DSCP_MEDIA] : tb[TCA_PAQM_DSCP_ELASTIC];
		return paqm_refuse(extack, a,
				   "paqm: a DSCP cannot be in dscp-media and in dscp-elastic");
	}
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
	int err = 0, i;

	if (!opts)
		return -EMSGSIZE;
	for (i = 1; i <= TCA_PAQM_MAX && !err; i++) {
		const struct paqm_option *o = &paqm_options[i];
		const void *at = (const u8 *)cfg + o->offset;

		if (o->width == sizeof(u32))
			err = nla_put_u32(skb, i, READ_ONCE(*(const u32 *)at));
		else if (o->width)
			err = nla_put_u64_64bit(skb, i, READ_ONCE(*(const u64 *)at), TCA_PAQM_PAD);
	}
	if (err || nla_put_u32(skb, TCA_PAQM_KEY_ID, READ_ONCE(cfg->key_id)))
		goto cancel;
	if (nla_put(skb, TCA_PAQM_FEEDBACK_TO, n * sizeof(*prefix), prefix))
		goto cancel;
	return nla_nest_end(skb, opts);

cancel:
	nla_nest_cancel(skb, opts);
	return -EMSGSIZE;
}
