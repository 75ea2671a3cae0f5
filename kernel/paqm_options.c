// SPDX-License-Identifier: GPL-2.0
/*
 * Options of sch_paqm: defaults, ranges, refusals, netlink in and out, all made of the
 * table of options; what is not one number (key, prefixes) is read here by hand.
 */
#include <linux/rtnetlink.h>
#include <net/netlink.h>
#include "core/paqm_laws.h"
#include "paqm_options.h"

#define PAQM_MUST_PREFIXES(or, attr, low, high)                                                    \
	"be a list of at most " __stringify(PAQM_PREFIXES) " prefixes"
#define PAQM_MUST_KEY(or, attr, low, high) "be an id and " __stringify(PAQM_KEY_LEN) " bytes"
#define PAQM_POLICY_PREFIXES(attr, low, high)                                                      \
	{ .type = NLA_BINARY, .len = PAQM_PREFIXES * sizeof(struct tc_paqm_prefix) }
#define PAQM_POLICY_KEY(attr, low, high) NLA_POLICY_EXACT_LEN(sizeof(struct tc_paqm_key))

#define PAQM_ROWS_TABLE "paqm_option_table.h"
#define PAQM_ROWS_NAME "paqm"
#define PAQM_ROWS_CONFIG struct paqm_config
#define PAQM_ROWS_DEFAULTS paqm_defaults
#define PAQM_ROWS_ATTR(attr) TCA_PAQM_##attr
#define PAQM_ROWS_MAX TCA_PAQM_MAX
#define PAQM_ROWS_MORE PAQM_ROWS_ALSO(KEY_ID, NLA_U32)
#include "paqm_option_rows.h"

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
	int err;

	err = paqm_take_options(opt, tb, cfg, extack);
	if (err)
		return err;
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

	if (!opts)
		return -EMSGSIZE;
	if (paqm_put_options(cfg, skb) || nla_put_u32(skb, TCA_PAQM_KEY_ID, READ_ONCE(cfg->key_id)))
		goto cancel;
	if (nla_put(skb, TCA_PAQM_FEEDBACK_TO, n * sizeof(*prefix), prefix))
		goto cancel;
	return nla_nest_end(skb, opts);

cancel:
	nla_nest_cancel(skb, opts);
	return -EMSGSIZE;
}
