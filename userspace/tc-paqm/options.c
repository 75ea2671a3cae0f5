// SPDX-License-Identifier: GPL-2.0
/*
 * Options of sch_paqm. One table describes them: parsing, ranges in error messages,
 * help, text and JSON are all derived from it.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/paqm_fix.h"
#include "kernel/uapi/linux/pkt_sched_paqm.h"
#include "userspace/tc-paqm/tc_plugin.h"
#include "userspace/tc-paqm/options.h"
#include "userspace/tc-paqm/show.h"

/* Room for the largest message: every option at once takes under 900 bytes. */
#define MAX_REQUEST 2048
/* Digits that keep every rate, time and size as it is. */
#define ALL_DIGITS 15
/* Longest list: the DSCPs by name, or all prefixes. */
#define LIST_SIZE (PAQM_PREFIXES * (INET6_ADDRSTRLEN + 5) + 64 * 4)
#define DSCPS 64

enum kind {
	KIND_RATE,     /* u64 bytes/s */
	KIND_TIME,     /* u32 us */
	KIND_SIZE,     /* u32 bytes */
	KIND_TARGET,   /* u32 us, or u32 bytes in a second attribute, which wins unless 0 */
	KIND_RATIO,    /* u32 Q24 */
	KIND_PERCENT,  /* the same, and N% is understood */
	KIND_SHARE,    /* u32 Q16, the same */
	KIND_COUNT,    /* u32 */
	KIND_SIGNED,   /* s32 */
	KIND_WORD,     /* u32, index into words */
	KIND_FLAG,     /* u32 0/1, words NAME and noNAME */
	KIND_ID,       /* u64, hexadecimal */
	KIND_SEED,     /* u64, decimal */
	KIND_DSCPS,    /* u64, a bit for each DSCP */
	KIND_PREFIXES, /* struct tc_paqm_prefix[] */
	KIND_KEY,      /* struct tc_paqm_key; shown is only its id, in a second attribute */
};

enum shown {
	SHOWN_ALWAYS,
	SHOWN_SET,    /* without -d only if it is not at its neutral value */
	SHOWN_DETAIL, /* with -d */
};

struct option {
	const char *name;
	const char *key;  /* in JSON */
	const char *zero; /* word for the value 0 where that means something else */
	const char *ones; /* the same for the value with all bits set */
	const char *const *words;
	__u64 min, max; /* as on the wire */
	__u64 neutral;	/* changes nothing */
	unsigned short attr;
	unsigned short bytes_attr; /* KIND_TARGET */
	unsigned char kind;
	unsigned char shown;
};

static const char *const law_words[] = {"maxmin", "ecf", "erf", NULL};
static const char *const feedback_words[] = {"none", "icmp", "quench", "in-band", NULL};
static const char *const classify_words[] = {"auto", "protocol", NULL};
static const char *const link_words[] = {"ethernet", "atm", "ptm", NULL};
static const char *const weights_words[] = {"flow", "host", NULL};

_Static_assert(ARRAY_SIZE(law_words) == __PAQM_LAW_MAX + 1, "law without a word");
_Static_assert(ARRAY_SIZE(feedback_words) == __PAQM_FEEDBACK_MAX + 1, "feedback without a word");
_Static_assert(ARRAY_SIZE(classify_words) == __PAQM_CLASSIFY_MAX + 1, "classifier without a word");
_Static_assert(ARRAY_SIZE(weights_words) == __PAQM_WEIGHTS_MAX + 1, "weights without a word");
_Static_assert(ARRAY_SIZE(link_words) == __PAQM_LINK_MAX + 1, "link layer without a word");

/* In the order in which they are shown. */
static const struct option options[] = {
	{.name = "bandwidth",
	 .key = "bandwidth_bps",
	 .kind = KIND_RATE,
	 .attr = TCA_PAQM_BANDWIDTH,
	 .min = PAQM_BANDWIDTH_MIN,
	 .max = PAQM_BANDWIDTH_MAX,
	 .ones = "auto",
	 .zero = "none"},
	{.name = "overhead",
	 .key = "overhead_bytes",
	 .kind = KIND_SIGNED,
	 .attr = TCA_PAQM_OVERHEAD,
	 .shown = SHOWN_SET},
	{.name = "mpu",
	 .key = "mpu_bytes",
	 .kind = KIND_COUNT,
	 .attr = TCA_PAQM_MPU,
	 .max = PAQM_MPU_MAX,
	 .shown = SHOWN_SET},
	{.name = "linklayer",
	 .key = "linklayer",
	 .kind = KIND_WORD,
	 .attr = TCA_PAQM_LINKLAYER,
	 .words = link_words,
	 .shown = SHOWN_SET},
	{.name = "media-target",
	 .key = "media_target_us",
	 .kind = KIND_TARGET,
	 .attr = TCA_PAQM_MEDIA_TARGET,
	 .bytes_attr = TCA_PAQM_MEDIA_TARGET_BYTES,
	 .min = PAQM_TARGET_MIN_US,
	 .max = PAQM_TARGET_MAX_US},
	{.name = "elastic-target",
	 .key = "elastic_target_us",
	 .kind = KIND_TARGET,
	 .attr = TCA_PAQM_ELASTIC_TARGET,
	 .bytes_attr = TCA_PAQM_ELASTIC_TARGET_BYTES,
	 .min = PAQM_TARGET_MIN_US,
	 .max = PAQM_TARGET_MAX_US},
	{.name = "limit",
	 .key = "limit_bytes",
	 .kind = KIND_SIZE,
	 .attr = TCA_PAQM_LIMIT,
	 .min = PAQM_LIMIT_MIN,
	 .max = 0xFFFFFFFFU,
	 .zero = "auto",
	 .shown = SHOWN_SET},
	{.name = "media-limit",
	 .key = "media_limit_bytes",
	 .kind = KIND_SIZE,
	 .attr = TCA_PAQM_MEDIA_LIMIT,
	 .min = PAQM_LIMIT_MIN,
	 .max = 0xFFFFFFFFU,
	 .zero = "auto",
	 .shown = SHOWN_SET},
	{.name = "elastic-limit",
	 .key = "elastic_limit_bytes",
	 .kind = KIND_SIZE,
	 .attr = TCA_PAQM_ELASTIC_LIMIT,
	 .min = PAQM_LIMIT_MIN,
	 .max = 0xFFFFFFFFU,
	 .zero = "auto",
	 .shown = SHOWN_SET},
	{.name = "law", .key = "law", .kind = KIND_WORD, .attr = TCA_PAQM_LAW, .words = law_words},
	{.name = "feedback",
	 .key = "feedback",
	 .kind = KIND_WORD,
	 .attr = TCA_PAQM_FEEDBACK,
	 .words = feedback_words},
	{.name = "feedback-to",
	 .key = "feedback_to",
	 .kind = KIND_PREFIXES,
	 .attr = TCA_PAQM_FEEDBACK_TO,
	 .zero = "any",
	 .shown = SHOWN_SET},
	{.name = "classify",
	 .key = "classify",
	 .kind = KIND_WORD,
	 .attr = TCA_PAQM_CLASSIFY,
	 .words = classify_words},
	{.name = "dscp-media",
	 .key = "dscp_media",
	 .kind = KIND_DSCPS,
	 .attr = TCA_PAQM_DSCP_MEDIA,
	 .zero = "none",
	 .shown = SHOWN_SET},
	{.name = "dscp-elastic",
	 .key = "dscp_elastic",
	 .kind = KIND_DSCPS,
	 .attr = TCA_PAQM_DSCP_ELASTIC,
	 .zero = "none",
	 .shown = SHOWN_SET},
	{.name = "target-util",
	 .key = "target_util",
	 .kind = KIND_PERCENT,
	 .attr = TCA_PAQM_TARGET_UTIL,
	 .min = PAQM_UTIL_MIN_Q24,
	 .max = PAQM_UTIL_MAX_Q24},
	{.name = "split",
	 .key = "split",
	 .kind = KIND_SHARE,
	 .attr = TCA_PAQM_SPLIT,
	 .min = PAQM_SPLIT_MIN_Q16,
	 .max = PAQM_SPLIT_MAX_Q16,
	 .zero = "flows",
	 .shown = SHOWN_SET},
	{.name = "media-weight",
	 .key = "media_weight",
	 .kind = KIND_COUNT,
	 .attr = TCA_PAQM_MEDIA_WEIGHT,
	 .min = 1,
	 .max = PAQM_WEIGHT_MAX,
	 .neutral = 1,
	 .shown = SHOWN_SET},
	{.name = "elastic-weight",
	 .key = "elastic_weight",
	 .kind = KIND_COUNT,
	 .attr = TCA_PAQM_ELASTIC_WEIGHT,
	 .min = 1,
	 .max = PAQM_WEIGHT_MAX,
	 .neutral = 1,
	 .shown = SHOWN_SET},
	{.name = "borrow",
	 .key = "borrow",
	 .kind = KIND_FLAG,
	 .attr = TCA_PAQM_BORROW,
	 .neutral = 1,
	 .shown = SHOWN_SET},
	{.name = "weights",
	 .key = "weights",
	 .kind = KIND_WORD,
	 .attr = TCA_PAQM_WEIGHTS,
	 .words = weights_words,
	 .shown = SHOWN_SET},
	{.name = "ecn", .key = "ecn", .kind = KIND_FLAG, .attr = TCA_PAQM_ECN},
	{.name = "isolate",
	 .key = "isolate",
	 .kind = KIND_FLAG,
	 .attr = TCA_PAQM_ISOLATE,
	 .neutral = 1,
	 .shown = SHOWN_SET},
	{.name = "police",
	 .key = "police",
	 .kind = KIND_FLAG,
	 .attr = TCA_PAQM_POLICE,
	 .shown = SHOWN_SET},
	{.name = "interval",
	 .key = "interval_us",
	 .kind = KIND_TIME,
	 .attr = TCA_PAQM_INTERVAL,
	 .min = PAQM_INTERVAL_MIN_US,
	 .max = PAQM_INTERVAL_MAX_US,
	 .zero = "auto",
	 .shown = SHOWN_SET},
	{.name = "gain",
	 .key = "gain",
	 .kind = KIND_RATIO,
	 .attr = TCA_PAQM_GAIN,
	 .min = PAQM_GAIN_MIN_Q24,
	 .max = PAQM_GAIN_MAX_Q24,
	 .shown = SHOWN_DETAIL},
	{.name = "gamma",
	 .key = "gamma",
	 .kind = KIND_RATIO,
	 .attr = TCA_PAQM_GAMMA,
	 .min = PAQM_GAMMA_MIN_Q24,
	 .max = PAQM_GAMMA_MAX_Q24,
	 .zero = "auto",
	 .shown = SHOWN_SET},
	{.name = "alpha",
	 .key = "alpha",
	 .kind = KIND_RATIO,
	 .attr = TCA_PAQM_ALPHA,
	 .min = PAQM_OUTER_GAIN_MIN_Q24,
	 .max = PAQM_OUTER_GAIN_MAX_Q24,
	 .shown = SHOWN_DETAIL},
	{.name = "beta",
	 .key = "beta",
	 .kind = KIND_RATIO,
	 .attr = TCA_PAQM_BETA,
	 .min = PAQM_OUTER_GAIN_MIN_Q24,
	 .max = PAQM_OUTER_GAIN_MAX_Q24,
	 .shown = SHOWN_DETAIL},
	{.name = "period",
	 .key = "period_us",
	 .kind = KIND_TIME,
	 .attr = TCA_PAQM_PERIOD,
	 .min = PAQM_PERIOD_MIN_US,
	 .max = PAQM_PERIOD_MAX_US,
	 .shown = SHOWN_DETAIL},
	{.name = "rtt",
	 .key = "rtt_us",
	 .kind = KIND_TIME,
	 .attr = TCA_PAQM_RTT,
	 .min = PAQM_RTT_MIN_US,
	 .max = PAQM_RTT_MAX_US,
	 .zero = "auto",
	 .shown = SHOWN_DETAIL},
	{.name = "gop",
	 .key = "gop_us",
	 .kind = KIND_TIME,
	 .attr = TCA_PAQM_GOP,
	 .min = 1,
	 .max = PAQM_GOP_MAX_US,
	 .zero = "auto",
	 .shown = SHOWN_SET},
	{.name = "transfer",
	 .key = "transfer_us",
	 .kind = KIND_TIME,
	 .attr = TCA_PAQM_TRANSFER,
	 .max = PAQM_TRANSFER_MAX_US,
	 .shown = SHOWN_DETAIL},
	{.name = "credit",
	 .key = "credit_us",
	 .kind = KIND_TIME,
	 .attr = TCA_PAQM_CREDIT,
	 .max = PAQM_CREDIT_MAX_US,
	 .shown = SHOWN_DETAIL},
	{.name = "md-floor",
	 .key = "md_floor",
	 .kind = KIND_RATIO,
	 .attr = TCA_PAQM_MD_FLOOR,
	 .min = PAQM_MD_FLOOR_MIN_Q24,
	 .max = PAQM_MD_FLOOR_MAX_Q24,
	 .shown = SHOWN_DETAIL},
	{.name = "forced-md",
	 .key = "forced_md",
	 .kind = KIND_FLAG,
	 .attr = TCA_PAQM_FORCED_MD,
	 .shown = SHOWN_DETAIL},
	{.name = "ai-hold",
	 .key = "ai_hold",
	 .kind = KIND_FLAG,
	 .attr = TCA_PAQM_AI_HOLD,
	 .shown = SHOWN_DETAIL},
	{.name = "flows",
	 .key = "flows",
	 .kind = KIND_COUNT,
	 .attr = TCA_PAQM_FLOWS,
	 .min = PAQM_FLOWS_MIN,
	 .max = PAQM_FLOWS_MAX,
	 .shown = SHOWN_DETAIL},
	{.name = "flow-age",
	 .key = "flow_age_us",
	 .kind = KIND_TIME,
	 .attr = TCA_PAQM_FLOW_AGE,
	 .min = PAQM_FLOW_AGE_MIN_US,
	 .max = PAQM_FLOW_AGE_MAX_US,
	 .shown = SHOWN_DETAIL},
	{.name = "router-id",
	 .key = "router_id",
	 .kind = KIND_ID,
	 .attr = TCA_PAQM_ROUTER_ID,
	 .min = 1,
	 .max = ~0ULL,
	 .shown = SHOWN_DETAIL},
	{.name = "seed",
	 .key = "seed",
	 .kind = KIND_SEED,
	 .attr = TCA_PAQM_SEED,
	 .min = 1,
	 .max = ~0ULL,
	 .zero = "random",
	 .shown = SHOWN_SET},
	{.name = "key",
	 .key = "key",
	 .kind = KIND_KEY,
	 .attr = TCA_PAQM_KEY,
	 .zero = "none",
	 .shown = SHOWN_SET},
};

/* Outer gains that go together: quick, or stable for delays up to d. */
static const struct profile {
	const char *name;
	__u32 alpha, beta;
} profiles[] = {
	{"fast", PAQM_Q24(75, 100), PAQM_Q24(35, 100)},
	{"robust", PAQM_Q24(484, 1000), PAQM_Q24(131, 1000)},
};

/* Names of code points; where one has two, the first is shown. */
static const struct dscp {
	const char *name;
	unsigned char value;
} dscps[] = {
	{"CS0", 0},   {"BE", 0},    {"DF", 0},	  {"LE", 1},	{"CS1", 8},   {"AF11", 10},
	{"AF12", 12}, {"AF13", 14}, {"CS2", 16},  {"AF21", 18}, {"AF22", 20}, {"AF23", 22},
	{"CS3", 24},  {"AF31", 26}, {"AF32", 28}, {"AF33", 30}, {"CS4", 32},  {"AF41", 34},
	{"AF42", 36}, {"AF43", 38}, {"CS5", 40},  {"VA", 44},	{"NQB", 45},  {"EF", 46},
	{"CS6", 48},  {"CS7", 56},
};

/* What the command line asks for, indexed by attribute; the last word wins. */
struct request {
	__u64 value[TCA_PAQM_MAX + 1];
	bool given[TCA_PAQM_MAX + 1];
	struct tc_paqm_prefix prefix[PAQM_PREFIXES];
	unsigned int prefixes;
	struct tc_paqm_key key;
};

static bool is_wide(const struct option *o)
{
	return o->kind == KIND_RATE || o->kind == KIND_ID || o->kind == KIND_SEED ||
	       o->kind == KIND_DSCPS;
}

static double scale(const struct option *o)
{
	return o->kind == KIND_SHARE ? Q16_ONE : Q24_ONE;
}

/* --- values as text ------------------------------------------------------ */

/*
 * The shortest number that is read back as the same fraction, or its neighbour: ends of
 * ranges are rounded down and shall read as they are documented.
 */
static void format_fraction(const struct option *o, __u64 value, char *buf)
{
	int digits;

	for (digits = 3; digits < 10; digits++) {
		snprintf(buf, TEXT_SIZE, "%.*g", digits, value / scale(o));
		if (llabs(llrint(strtod(buf, NULL) * scale(o)) - (long long)value) <= 1)
			return;
	}
}

/* Appends to a list that is separated by commas. */
static void append(char *list, const char *word)
{
	size_t len = strlen(list);

	snprintf(list + len, LIST_SIZE - len, "%s%s", len ? "," : "", word);
}

static void format_dscps(__u64 mask, char *list)
{
	char buf[TEXT_SIZE];
	unsigned int i;
	size_t name;

	*list = 0;
	for (i = 0; i < DSCPS; i++) {
		if (!(mask >> i & 1))
			continue;
		for (name = 0; name < ARRAY_SIZE(dscps) && dscps[name].value != i; name++)
			;
		snprintf(buf, sizeof(buf), "%u", i);
		append(list, name < ARRAY_SIZE(dscps) ? dscps[name].name : buf);
	}
}

static const char *format_prefix(const struct tc_paqm_prefix *p, char *buf)
{
	size_t len;

	show_address(p->family, p->addr, buf);
	len = strlen(buf);
	snprintf(buf + len, TEXT_SIZE - len, "/%u", p->len);
	return buf;
}

static const char *format_word(const struct option *o, __u64 value, char *buf)
{
	size_t words = 0;

	while (o->words[words])
		words++;
	/* A newer kernel may know more of them. */
	if (value < words)
		return o->words[value];
	snprintf(buf, TEXT_SIZE, "%llu", (unsigned long long)value);
	return buf;
}

/* Value as a user would type it, of the kinds that are one number. */
static const char *format_value(const struct option *o, __u64 value, char *buf)
{
	if (!value && o->zero)
		return o->zero;
	if (value == ~0ULL && o->ones)
		return o->ones;
	switch (o->kind) {
	case KIND_RATE:
		return show_rate(value * 8, ALL_DIGITS, buf);
	case KIND_TIME:
	case KIND_TARGET:
		return show_time(value * 1000, ALL_DIGITS, buf);
	case KIND_SIZE:
		snprintf(buf, TEXT_SIZE, "%llub", (unsigned long long)value);
		break;
	case KIND_RATIO:
	case KIND_PERCENT:
	case KIND_SHARE:
		format_fraction(o, value, buf);
		break;
	case KIND_SIGNED:
		snprintf(buf, TEXT_SIZE, "%d", (int)value);
		break;
	case KIND_WORD:
		return format_word(o, value, buf);
	case KIND_FLAG:
		snprintf(buf, TEXT_SIZE, "%s%s", value ? "" : "no", o->name);
		break;
	case KIND_ID:
		snprintf(buf, TEXT_SIZE, "%016llx", (unsigned long long)value);
		break;
	case KIND_KEY:
		snprintf(buf, TEXT_SIZE, "%llu:hidden", (unsigned long long)value);
		break;
	default:
		snprintf(buf, TEXT_SIZE, "%llu", (unsigned long long)value);
	}
	return buf;
}

/* --- words of the command line ------------------------------------------- */

/* A number that must fill the whole text; @percent: N% is understood. */
static bool parse_number(const char *text, bool percent, double *value)
{
	char *end;

	*value = strtod(text, &end);
	if (end == text || !isfinite(*value))
		return false;
	if (percent && *end == '%') {
		*value /= 100;
		end++;
	}
	return !*end;
}

static bool parse_fraction(const struct option *o, const char *text, __u64 *value)
{
	double number;

	if (!parse_number(text, o->kind != KIND_RATIO, &number) || number > 1000)
		return false;
	*value = llrint(number * scale(o));
	return true;
}

static bool parse_count(const struct option *o, const char *text, __u64 *value)
{
	double number;

	if (!parse_number(text, false, &number) || number != floor(number) || number > o->max)
		return false;
	*value = number;
	return true;
}

/* @base 16 or 10; all 64 bits. */
static bool parse_wide(const char *text, int base, __u64 *value)
{
	const char *digits = base == 16 ? "0123456789abcdefABCDEF" : "0123456789";
	size_t len;

	if (base == 16 && !strncmp(text, "0x", 2))
		text += 2;
	len = strspn(text, digits);
	if (!len || text[len])
		return false;
	if (base == 16 && len > 16)
		return false;
	*value = strtoull(text, NULL, base);
	/* what does not fit is not all ones, but is read so */
	return base == 16 || *value != ~0ULL || !strcmp(text, "18446744073709551615");
}

static bool parse_word(const struct option *o, const char *text, __u64 *value)
{
	for (*value = 0; o->words[*value]; ++*value)
		if (!strcmp(o->words[*value], text))
			return true;
	return false;
}

static bool parse_time(const char *text, __u64 *us)
{
	size_t len = strlen(text);
	__s64 ns;

	if (get_time64(&ns, text) || ns < 0)
		return false;
	/* A bare number means us everywhere else in tc, but ns in get_time64(). */
	*us = len && strchr("0123456789.", text[len - 1]) ? (__u64)ns : (__u64)ns / 1000;
	return true;
}

/* Not the kinds that may be negative, a list or two values. */
static bool parse_value(const struct option *o, const char *text, __u64 *value)
{
	unsigned int size;

	if (o->zero && !strcmp(text, o->zero)) {
		*value = 0;
		return true;
	}
	if (o->ones && !strcmp(text, o->ones)) {
		*value = ~0ULL;
		return true;
	}
	if (o->kind == KIND_WORD)
		return parse_word(o, text, value);
	if (o->kind == KIND_ID)
		return parse_wide(text, 16, value) && *value;
	/* tc's own parsers take nan, inf and let a sign wrap around. */
	if (!strchr(".0123456789", *text))
		return false;
	switch (o->kind) {
	case KIND_RATE:
		if (get_rate64(value, text))
			return false;
		break;
	case KIND_TIME:
	case KIND_TARGET:
		if (!parse_time(text, value))
			return false;
		break;
	case KIND_SIZE:
		if (get_size(&size, text))
			return false;
		*value = size;
		break;
	case KIND_SEED:
		if (!parse_wide(text, 10, value))
			return false;
		break;
	case KIND_COUNT:
		if (!parse_count(o, text, value))
			return false;
		break;
	default:
		if (!parse_fraction(o, text, value))
			return false;
	}
	return *value >= o->min && *value <= o->max;
}

static void request_set(struct request *req, unsigned short attr, __u64 value)
{
	req->value[attr] = value;
	req->given[attr] = true;
}

static bool parse_overhead(const char *text, __u64 *value)
{
	char *end;
	long number = strtol(text, &end, 10);

	*value = (__u32)number;
	return end != text && !*end && number >= PAQM_OVERHEAD_MIN && number <= PAQM_OVERHEAD_MAX;
}

/* Either of the two ways to say how long a queue shall be; the other one is switched off. */
static bool parse_target(struct request *req, const struct option *o, const char *text)
{
	unsigned int size;
	__u64 us;

	if (parse_value(o, text, &us)) {
		request_set(req, o->attr, us);
		request_set(req, o->bytes_attr, 0);
		return true;
	}
	if (!*text || !strchr(".0123456789", *text) || parse_time(text, &us) ||
	    get_size(&size, text) || size < PAQM_TARGET_BYTES_MIN || size > PAQM_TARGET_BYTES_MAX)
		return false;
	request_set(req, o->bytes_attr, size);
	/* a time that was named before in the same line no longer counts */
	req->given[o->attr] = false;
	return true;
}

static bool parse_dscp(const char *text, __u64 *mask)
{
	double number;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(dscps); i++) {
		if (!strcasecmp(text, dscps[i].name)) {
			*mask |= 1ULL << dscps[i].value;
			return true;
		}
	}
	if (!*text || text[strspn(text, "0123456789")] || !parse_number(text, false, &number) ||
	    number >= DSCPS)
		return false;
	*mask |= 1ULL << (unsigned int)number;
	return true;
}

static bool parse_prefix(char *text, struct tc_paqm_prefix *prefix)
{
	char *slash = strchr(text, '/');
	unsigned int bits, i;

	memset(prefix, 0, sizeof(*prefix));
	if (slash)
		*slash = 0;
	if (inet_pton(AF_INET, text, prefix->addr) == 1)
		prefix->family = 4;
	else if (inet_pton(AF_INET6, text, prefix->addr) == 1)
		prefix->family = 6;
	if (slash)
		*slash = '/';
	bits = prefix->family == 4 ? 32 : 128;
	prefix->len = bits;
	if (slash) {
		size_t digits = strspn(slash + 1, "0123456789");

		if (!digits || digits > 3 || slash[1 + digits] ||
		    strtoul(slash + 1, NULL, 10) > bits)
			return false;
		prefix->len = strtoul(slash + 1, NULL, 10);
	}
	/* shown as it acts */
	for (i = prefix->len; i < bits; i++)
		prefix->addr[i / 8] &= ~(0x80 >> i % 8);
	return prefix->family;
}

/* ID:HEX32, the bytes of the key in the order in which SipHash takes them. */
static bool parse_key(struct request *req, const struct option *o, const char *text)
{
	static const char digits[] = "0123456789abcdef";
	size_t id = strspn(text, "0123456789"), i;
	struct tc_paqm_key key = {0};
	unsigned char any = 0;

	if (strcmp(text, o->zero)) {
		if (!id || id > 5 || text[id] != ':' || strlen(text + id + 1) != 2 * PAQM_KEY_LEN ||
		    strtoul(text, NULL, 10) > 0xFFFF)
			return false;
		key.id = strtoul(text, NULL, 10);
		for (i = 0; i < 2 * PAQM_KEY_LEN; i++) {
			const char *digit =
				strchr(digits, tolower((unsigned char)text[id + 1 + i]));

			if (!digit)
				return false;
			key.key[i / 2] = key.key[i / 2] << 4 | (digit - digits);
			any |= key.key[i / 2];
		}
		if (!key.id || !any)
			return false;
	}
	req->key = key;
	request_set(req, o->attr, key.id);
	return true;
}

/* The element of @list that is wrong, or NULL. @list is written to. */
static const char *parse_list(struct request *req, const struct option *o, char *list)
{
	unsigned int prefixes = 0;
	__u64 mask = 0;
	char *word;

	if (strcmp(list, o->zero)) {
		for (word = list; word; word = list) {
			list = strchr(word, ',');
			if (list)
				*list++ = 0;
			if (o->kind == KIND_DSCPS
				    ? !parse_dscp(word, &mask)
				    : prefixes == PAQM_PREFIXES ||
					      !parse_prefix(word, &req->prefix[prefixes]))
				return word;
			prefixes++;
		}
	}
	if (o->kind == KIND_PREFIXES)
		req->prefixes = prefixes;
	request_set(req, o->attr, mask);
	return NULL;
}

/* Says what an option takes, for the end of an error message. */
static void print_expected(const struct option *o)
{
	static const char *const what[] = {
		[KIND_RATE] = "a rate",
		[KIND_TIME] = "a time",
		[KIND_TARGET] = "a time",
		[KIND_SIZE] = "a size",
		[KIND_RATIO] = "a number",
		[KIND_PERCENT] = "a number or percentage",
		[KIND_SHARE] = "a number or percentage",
		[KIND_COUNT] = "a whole number",
		[KIND_SEED] = "a whole number",
	};
	char low[TEXT_SIZE], high[TEXT_SIZE];
	int i;

	switch (o->kind) {
	case KIND_WORD:
		fprintf(stderr, "one of");
		for (i = 0; o->words[i]; i++)
			fprintf(stderr, "%s %s", i ? "," : "", o->words[i]);
		break;
	case KIND_ID:
		fprintf(stderr, "1 to 16 hexadecimal digits, not all 0");
		break;
	case KIND_SIGNED:
		fprintf(stderr, "a whole number from %d to %d", PAQM_OVERHEAD_MIN,
			PAQM_OVERHEAD_MAX);
		break;
	case KIND_DSCPS:
		fprintf(stderr, "a list of 0 to 63 or names, as EF,AF41,CS1,LE");
		break;
	case KIND_PREFIXES:
		fprintf(stderr, "at most %d prefixes, as 10.0.0.0/8,2001:db8::/32", PAQM_PREFIXES);
		break;
	case KIND_KEY:
		fprintf(stderr,
			"an id from 1 to 65535, a colon and %d hexadecimal digits, not all 0",
			2 * PAQM_KEY_LEN);
		break;
	default:
		fprintf(stderr, "%s from %s to %s", what[o->kind],
			o->min ? format_value(o, o->min, low) : "0",
			o->kind == KIND_SEED ? "18446744073709551615"
					     : format_value(o, o->max, high));
	}
	if (o->kind == KIND_TARGET)
		fprintf(stderr, ", or a size from %ub to %ub", PAQM_TARGET_BYTES_MIN,
			PAQM_TARGET_BYTES_MAX);
	if (o->ones)
		fprintf(stderr, ", %s", o->ones);
	if (o->zero)
		fprintf(stderr, ", or %s", o->zero);
	fprintf(stderr, "\n");
}

static void print_help(void)
{
	static const char *const shape[] = {
		[KIND_RATE] = "RATE",
		[KIND_TIME] = "TIME",
		[KIND_TARGET] = "TIME|BYTES",
		[KIND_SIZE] = "BYTES",
		[KIND_RATIO] = "NUMBER",
		[KIND_PERCENT] = "NUMBER|PERCENT%",
		[KIND_SHARE] = "NUMBER|PERCENT%",
		[KIND_COUNT] = "NUMBER",
		[KIND_SIGNED] = "NUMBER",
		[KIND_SEED] = "NUMBER",
		[KIND_ID] = "HEX",
		[KIND_DSCPS] = "DSCP[,DSCP...]",
		[KIND_PREFIXES] = "PREFIX[,PREFIX...]",
		[KIND_KEY] = "ID:HEX",
	};
	size_t i, j;

	fprintf(stderr, "Usage: ... paqm");
	for (i = 0; i < ARRAY_SIZE(options); i++) {
		const struct option *o = &options[i];

		fprintf(stderr, i ? "\n                [ " : " [ ");
		if (o->kind == KIND_FLAG) {
			fprintf(stderr, "[no]%s ]", o->name);
			continue;
		}
		fprintf(stderr, "%s ", o->name);
		if (o->kind == KIND_WORD)
			for (j = 0; o->words[j]; j++)
				fprintf(stderr, "%s%s", j ? "|" : "", o->words[j]);
		else
			fprintf(stderr, "%s", shape[o->kind]);
		fprintf(stderr, "%s%s", o->ones ? "|" : "", o->ones ? o->ones : "");
		fprintf(stderr, "%s%s ]", o->zero ? "|" : "", o->zero ? o->zero : "");
	}
	fprintf(stderr, "\n                [ profile ");
	for (i = 0; i < ARRAY_SIZE(profiles); i++)
		fprintf(stderr, "%s%s", i ? "|" : "", profiles[i].name);
	fprintf(stderr, " ]\n");
}

/* Option of this name, and for a flag what it is set to. */
static const struct option *find_option(const char *name, __u64 *flag)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(options); i++) {
		const struct option *o = &options[i];

		*flag = 1;
		if (!strcmp(name, o->name))
			return o;
		*flag = 0;
		if (o->kind == KIND_FLAG && !strncmp(name, "no", 2) && !strcmp(name + 2, o->name))
			return o;
	}
	return NULL;
}

static const struct profile *find_profile(const char *name)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(profiles); i++)
		if (!strcmp(profiles[i].name, name))
			return &profiles[i];
	return NULL;
}

/* What of @text is wrong for the option, or NULL. */
static const char *parse_argument(struct request *req, const struct option *o, char *text)
{
	__u64 value;

	switch (o->kind) {
	case KIND_DSCPS:
	case KIND_PREFIXES:
		return parse_list(req, o, text);
	case KIND_TARGET:
		return parse_target(req, o, text) ? NULL : text;
	case KIND_KEY:
		return parse_key(req, o, text) ? NULL : text;
	case KIND_SIGNED:
		if (!parse_overhead(text, &value))
			return text;
		break;
	default:
		if (!*text || !parse_value(o, text, &value))
			return text;
	}
	request_set(req, o->attr, value);
	return NULL;
}

/* Words taken from argv, or -1 after saying what is wrong. */
static int parse_option(struct request *req, int argc, char **argv)
{
	const struct profile *profile;
	const struct option *o;
	const char *wrong;
	__u64 flag;

	if (!strcmp(*argv, "profile")) {
		profile = argc > 1 ? find_profile(argv[1]) : NULL;
		if (!profile) {
			fprintf(stderr, "paqm: profile \"%s\": expected one of fast, robust\n",
				argc > 1 ? argv[1] : "");
			return -1;
		}
		request_set(req, TCA_PAQM_ALPHA, profile->alpha);
		request_set(req, TCA_PAQM_BETA, profile->beta);
		return 2;
	}
	o = find_option(*argv, &flag);
	if (!o) {
		fprintf(stderr, "paqm: unknown option \"%s\"; \"... paqm help\" lists them\n",
			*argv);
		return -1;
	}
	if (o->kind == KIND_FLAG) {
		request_set(req, o->attr, flag);
		return 1;
	}
	wrong = argc < 2 ? "" : parse_argument(req, o, argv[1]);
	if (wrong) {
		fprintf(stderr, "paqm: %s \"%s\": expected ", o->name, wrong);
		print_expected(o);
		return -1;
	}
	return 2;
}

/* Both maps at once: the kernel says so too, but cannot name the code point. */
static bool dscps_overlap(const struct request *req)
{
	__u64 both = req->value[TCA_PAQM_DSCP_MEDIA] & req->value[TCA_PAQM_DSCP_ELASTIC];
	char list[LIST_SIZE];

	if (!both)
		return false;
	format_dscps(both, list);
	fprintf(stderr, "paqm: dscp-media and dscp-elastic both name %s\n", list);
	return true;
}

int options_parse(int argc, char **argv, struct nlmsghdr *n)
{
	struct request req = {0};
	struct rtattr *nest;
	unsigned short i;
	int used;

	while (argc > 0) {
		if (!strcmp(*argv, "help")) {
			print_help();
			return -1;
		}
		used = parse_option(&req, argc, argv);
		if (used < 0)
			return -1;
		argc -= used;
		argv += used;
	}
	if (dscps_overlap(&req))
		return -1;
	nest = addattr_nest(n, MAX_REQUEST, TCA_OPTIONS | NLA_F_NESTED);
	for (i = 0; i < ARRAY_SIZE(options); i++) {
		const struct option *o = &options[i];

		if (o->kind == KIND_TARGET && req.given[o->bytes_attr])
			addattr32(n, MAX_REQUEST, o->bytes_attr, req.value[o->bytes_attr]);
		if (!req.given[o->attr])
			continue;
		if (o->kind == KIND_PREFIXES)
			addattr_l(n, MAX_REQUEST, o->attr, req.prefix,
				  req.prefixes * sizeof(req.prefix[0]));
		else if (o->kind == KIND_KEY)
			addattr_l(n, MAX_REQUEST, o->attr, &req.key, sizeof(req.key));
		else if (is_wide(o))
			addattr64(n, MAX_REQUEST, o->attr, req.value[o->attr]);
		else
			addattr32(n, MAX_REQUEST, o->attr, req.value[o->attr]);
	}
	addattr_nest_end(n, nest);
	return 0;
}

/* --- printing ------------------------------------------------------------ */

/* A number of an attribute; false if it is missing or too short. */
static bool attr_value(const struct rtattr *attr, bool wide, __u64 *value)
{
	__u32 word;

	if (!attr || RTA_PAYLOAD(attr) < (wide ? sizeof(__u64) : sizeof(__u32)))
		return false;
	if (wide) {
		memcpy(value, RTA_DATA(attr), sizeof(*value));
	} else {
		memcpy(&word, RTA_DATA(attr), sizeof(word));
		*value = word;
	}
	return true;
}

static void json_option(const struct option *o, __u64 value)
{
	char buf[TEXT_SIZE];
	unsigned int i;

	switch (o->kind) {
	case KIND_RATE:
		json_u64(o->key, value == PAQM_BANDWIDTH_AUTO ? 0 : value * 8);
		json_bool("bandwidth_auto", value == PAQM_BANDWIDTH_AUTO);
		break;
	case KIND_RATIO:
	case KIND_PERCENT:
	case KIND_SHARE:
		format_fraction(o, value, buf);
		json_float(o->key, strtod(buf, NULL));
		break;
	case KIND_SIGNED:
		json_s64(o->key, (int)value);
		break;
	case KIND_WORD:
	case KIND_ID:
		json_string(o->key, format_value(o, value, buf));
		break;
	case KIND_FLAG:
		json_bool(o->key, value);
		break;
	case KIND_DSCPS:
		open_json_array(PRINT_JSON, o->key);
		for (i = 0; i < DSCPS; i++)
			if (value >> i & 1)
				json_u64(NULL, i);
		close_json_array(PRINT_JSON, NULL);
		break;
	default:
		json_u64(o->key, value);
	}
}

static void text_option(FILE *f, const struct option *o, __u64 value)
{
	char buf[TEXT_SIZE], list[LIST_SIZE];

	if (o->kind == KIND_DSCPS && value) {
		format_dscps(value, list);
		fprintf(f, "%s %s ", o->name, list);
	} else if (o->kind == KIND_FLAG) {
		fprintf(f, "%s ", format_value(o, value, buf));
	} else {
		fprintf(f, "%s %s ", o->name, format_value(o, value, buf));
	}
}

static void print_prefixes(FILE *f, const struct option *o, const struct rtattr *attr)
{
	size_t size = attr ? RTA_PAYLOAD(attr) : 0, at;
	char buf[TEXT_SIZE], list[LIST_SIZE] = "";
	struct tc_paqm_prefix prefix;

	if (is_json_context())
		open_json_array(PRINT_JSON, o->key);
	for (at = 0; at + sizeof(prefix) <= size; at += sizeof(prefix)) {
		memcpy(&prefix, (const char *)RTA_DATA(attr) + at, sizeof(prefix));
		format_prefix(&prefix, buf);
		if (is_json_context())
			json_string(NULL, buf);
		else
			append(list, buf);
	}
	if (is_json_context())
		close_json_array(PRINT_JSON, NULL);
	else if (*list || show_details)
		fprintf(f, "%s %s ", o->name, *list ? list : o->zero);
}

void options_print(FILE *f, struct rtattr *opt)
{
	struct rtattr *tb[TCA_PAQM_MAX + 1] = {NULL};
	size_t i;

	parse_rtattr(tb, TCA_PAQM_MAX, RTA_DATA(opt), RTA_PAYLOAD(opt));
	for (i = 0; i < ARRAY_SIZE(options); i++) {
		const struct option *o = &options[i];
		__u64 value, bytes = 0;

		if (o->kind == KIND_PREFIXES) {
			/* left out when empty; older modules do not know their neighbour either */
			if (tb[o->attr] || tb[TCA_PAQM_DSCP_MEDIA])
				print_prefixes(f, o, tb[o->attr]);
			continue;
		}
		if (!attr_value(tb[o->kind == KIND_KEY ? TCA_PAQM_KEY_ID : o->attr], is_wide(o),
				&value))
			continue;
		if (o->kind == KIND_TARGET && attr_value(tb[o->bytes_attr], false, &bytes) &&
		    is_json_context())
			json_u64(o->bytes_attr == TCA_PAQM_MEDIA_TARGET_BYTES
					 ? "media_target_bytes"
					 : "elastic_target_bytes",
				 bytes);
		if (is_json_context())
			json_option(o, value);
		else if (o->shown == SHOWN_DETAIL && !show_details)
			continue;
		else if (o->shown == SHOWN_SET && !show_details && value == o->neutral)
			continue;
		else if (bytes)
			fprintf(f, "%s %llub ", o->name, (unsigned long long)bytes);
		else
			text_option(f, o, value);
	}
}
