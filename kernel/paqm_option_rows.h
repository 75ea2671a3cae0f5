/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Options of a qdisc, made of its table: defaults, ranges, refusals, netlink in and out. The one
 * file that includes this is of that qdisc, and defines before
 *
 * PAQM_ROWS_TABLE	the table
 * PAQM_ROWS_NAME	name of the qdisc, a string
 * PAQM_ROWS_CONFIG	struct of its configuration
 * PAQM_ROWS_DEFAULTS	name of the defaults, which are declared
 * PAQM_ROWS_ATTR(a)	attribute of an option, or PAD
 * PAQM_ROWS_MAX	the last one
 * PAQM_ROWS_MORE	policy of attributes that are in no row: PAQM_ROWS_ALSO(attr, type)...
 */
#include <linux/rtnetlink.h>
#include <net/netlink.h>
#include "paqm_option_units.h"

#define PAQM_ROWS_ALSO(attr, kind)                                                                 \
	[PAQM_ROWS_ATTR(attr)] = { .type = (kind) },

const PAQM_ROWS_CONFIG PAQM_ROWS_DEFAULTS = {
#define PAQM_DEFAULT_U32(field, value) .field = value,
#define PAQM_DEFAULT_S32 PAQM_DEFAULT_U32
#define PAQM_DEFAULT_U64 PAQM_DEFAULT_U32
#define PAQM_DEFAULT_Q24 PAQM_DEFAULT_U32
#define PAQM_DEFAULT_Q16 PAQM_DEFAULT_U32
#define PAQM_DEFAULT_OWN(field, value)
#define PAQM_OPTION(kind, attr, field, name, key, zero, low, high, initial, shown, group)          \
	PAQM_BY_FORM(PAQM_DEFAULT_, PAQM_FORM_##kind)(field, PAQM_INITIAL(kind) initial)
#include PAQM_ROWS_TABLE
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
#define PAQM_MUST_PACKETS PAQM_MUST_RATIO
#define PAQM_MUST_WORD(or, attr, low, high)                                                        \
	"be " PAQM_WORDS_##attr(PAQM_FIRST, PAQM_MORE, PAQM_LAST)
#define PAQM_MUST_FLAG(or, attr, low, high) "be 0 or 1"
#define PAQM_MUST_RATE(or, attr, low, high)                                                        \
	"be none, auto or " PAQM_TEXT_UNITS low ".." PAQM_TEXT_UNITS high
#define PAQM_MUST_ID(or, attr, low, high) "not be 0"
#define PAQM_MUST_SEED(or, attr, low, high) "be a number of 64 bits"
#define PAQM_MUST_DSCPS(or, attr, low, high) "be a map of 64 bits"

/* Where an option goes, its range, and what a refusal says: netlink would not name the option. */
static const struct paqm_option {
	u16 offset;
	u8 width; /* bytes; 0: not one number */
	u32 least; /* if it is not 0, which means something else; 0: any in the range */
	struct netlink_range_validation range;
	const char *refusal;
} paqm_options[PAQM_ROWS_MAX + 1] = {
#define PAQM_GOES_U32(field) offsetof(PAQM_ROWS_CONFIG, field), sizeof(u32)
#define PAQM_GOES_Q24 PAQM_GOES_U32
#define PAQM_GOES_Q16 PAQM_GOES_U32
#define PAQM_GOES_S32 PAQM_GOES_U32
#define PAQM_GOES_U64(field) offsetof(PAQM_ROWS_CONFIG, field), sizeof(u64)
#define PAQM_GOES_OWN(field) 0, 0
#define PAQM_TAKES_0(zero) (sizeof(zero) > 1)
#define PAQM_REFUSAL(kind, name, or, attr, low, high)                                              \
	PAQM_ROWS_NAME ": " name " must " PAQM_MUST_##kind(or, attr, low, high)
#define PAQM_OPTION(kind, attr, field, name, key, zero, low, high, initial, shown, group)          \
	[PAQM_ROWS_ATTR(attr)] = {                                                                 \
		PAQM_BY_FORM(PAQM_GOES_, PAQM_FORM_##kind)(field),                                 \
		PAQM_TAKES_0(zero) ? PAQM_END(kind) low : 0,                                       \
		{ PAQM_TAKES_0(zero) ? 0 : PAQM_END(kind) low, PAQM_END(kind) high },              \
		PAQM_TAKES_0(zero) ? PAQM_REFUSAL(kind, name, "0 (" zero ") or ", attr, low, high) \
				   : PAQM_REFUSAL(kind, name, "", attr, low, high),                \
	},
#include PAQM_ROWS_TABLE
};

/* Netlink checks the ranges, and tells user space of the one that was not kept. */
static const struct nla_policy paqm_policy[PAQM_ROWS_MAX + 1] = {
/* the pointer became const after 6.1; nobody writes by it */
#define PAQM_RANGE(type, attr)                                                                     \
	NLA_POLICY_FULL_RANGE(type, (struct netlink_range_validation *)                            \
				    &paqm_options[PAQM_ROWS_ATTR(attr)].range)
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
#define PAQM_POLICY_PACKETS PAQM_POLICY_TIME
#define PAQM_POLICY_SIGNED(attr, low, high)                                                        \
	NLA_POLICY_RANGE(NLA_S32, PAQM_END_S32 low, PAQM_END_S32 high)
#define PAQM_POLICY_RATE(attr, low, high) { .type = NLA_U64 }
#define PAQM_POLICY_ID(attr, low, high) PAQM_RANGE(NLA_U64, attr)
#define PAQM_POLICY_SEED PAQM_POLICY_RATE
#define PAQM_POLICY_DSCPS PAQM_POLICY_RATE
#define PAQM_OPTION(kind, attr, field, name, key, zero, low, high, ...)                            \
	[PAQM_ROWS_ATTR(attr)] = PAQM_POLICY_##kind(attr, low, high),
#include PAQM_ROWS_TABLE
	PAQM_ROWS_MORE
	[PAQM_ROWS_ATTR(PAD)] = { .type = NLA_FLAG }, /* what is shown can be given again */
};

/* Refuse @attr with @text, which begins with the name of the module. */
static inline int paqm_refuse(struct netlink_ext_ack *extack, const struct nlattr *attr,
			      const char *text)
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

/*
 * Options of netlink into @tb, and the numbers of the table into @cfg; nothing is changed
 * elsewhere.
 */
static inline int paqm_take_options(struct nlattr *opt, struct nlattr **tb, PAQM_ROWS_CONFIG *cfg,
				    struct netlink_ext_ack *extack)
{
	const struct paqm_option *o;
	u64 value;
	int err, i;

	err = nla_parse_nested(tb, PAQM_ROWS_MAX, opt, paqm_policy, extack);
	if (err == -ERANGE && extack && extack->bad_attr) {
		o = &paqm_options[nla_type(extack->bad_attr)];
		/* without a text of ours netlink's stands */
		return o->refusal ? paqm_refuse(extack, extack->bad_attr, o->refusal) : err;
	}
	if (err < 0)
		return err;
	for (i = 1; i <= PAQM_ROWS_MAX; i++) {
		o = &paqm_options[i];
		if (!tb[i] || !o->width)
			continue;
		if (o->width == sizeof(u32))
			value = nla_get_u32(tb[i]);
		else
			value = nla_get_u64(tb[i]);
		/* netlink has looked at 32 bits; all ones: auto */
		if ((value && value < o->least) ||
		    (o->width == sizeof(u64) && value > o->range.max &&
		     value != ~0ULL))
			return paqm_refuse(extack, tb[i], o->refusal);
		if (o->width == sizeof(u32))
			*(u32 *)((u8 *)cfg + o->offset) = value;
		else
			*(u64 *)((u8 *)cfg + o->offset) = value;
	}
	return 0;
}

/* The numbers of the table into a netlink message; readers are not locked out of changes. */
static inline int paqm_put_options(const PAQM_ROWS_CONFIG *cfg, struct sk_buff *skb)
{
	int err = 0, i;

	for (i = 1; i <= PAQM_ROWS_MAX && !err; i++) {
		const struct paqm_option *o = &paqm_options[i];
		const void *at = (const u8 *)cfg + o->offset;

		if (o->width == sizeof(u32))
			err = nla_put_u32(skb, i, READ_ONCE(*(const u32 *)at));
		else if (o->width)
			err = nla_put_u64_64bit(skb, i, READ_ONCE(*(const u64 *)at),
						PAQM_ROWS_ATTR(PAD));
	}
	return err;
}
