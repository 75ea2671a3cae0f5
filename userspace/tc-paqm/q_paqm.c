// SPDX-License-Identifier: GPL-2.0
/*
 * tc plugin of sch_paqm: turns command-line words into netlink attributes and
 * attributes and statistics into text or JSON. Stock tc loads it as q_paqm.so.
 *
 * One table describes the options and one the statistics: parsing, ranges in
 * error messages, help, text and JSON are all derived from them.
 */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "core/paqm_hist.h"
#include "kernel/uapi/linux/pkt_sched_paqm.h"
#include "userspace/tc-paqm/tc_plugin.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define Q24_ONE (1U << 24)
/* Room for the largest message: every option at once takes under 300 bytes. */
#define MAX_REQUEST 1024
/* Longest text of a value. */
#define TEXT_SIZE 64

_Static_assert(PAQM_HIST_BINS == PAQM_HIST_SIZE, "the histogram of core/ and of the UAPI differ");

/* --- options ------------------------------------------------------------- */

enum kind {
	KIND_RATE,    /* u64 bytes/s */
	KIND_TIME,    /* u32 us */
	KIND_SIZE,    /* u32 bytes */
	KIND_RATIO,   /* u32 Q24 */
	KIND_PERCENT, /* the same, and N% is understood */
	KIND_COUNT,   /* u32 */
	KIND_WORD,    /* u32, index into words */
	KIND_FLAG,    /* u32 0/1, words NAME and noNAME */
	KIND_ID,      /* u64, hexadecimal */
};

struct option {
	const char *name;
	const char *key;  /* in JSON */
	const char *zero; /* word for the value 0 where that means something else */
	const char *const *words;
	__u64 min, max; /* as on the wire */
	unsigned short attr;
	unsigned char kind;
	bool tuning; /* shown only with -d */
};

static const char *const law_words[] = {"maxmin", "ecf", "erf", NULL};
static const char *const feedback_words[] = {"none", "icmp", NULL};
static const char *const classify_words[] = {"auto", "protocol", NULL};

_Static_assert(ARRAY_SIZE(law_words) == __PAQM_LAW_MAX + 1, "law without a word");
_Static_assert(ARRAY_SIZE(feedback_words) == __PAQM_FEEDBACK_MAX + 1, "feedback without a word");
_Static_assert(ARRAY_SIZE(classify_words) == __PAQM_CLASSIFY_MAX + 1, "classifier without a word");

static const struct option options[] = {
	{.name = "bandwidth",
	 .key = "bandwidth_bps",
	 .kind = KIND_RATE,
	 .attr = TCA_PAQM_BANDWIDTH,
	 .min = PAQM_BANDWIDTH_MIN,
	 .max = PAQM_BANDWIDTH_MAX,
	 .zero = "none"},
	{.name = "media-target",
	 .key = "media_target_us",
	 .kind = KIND_TIME,
	 .attr = TCA_PAQM_MEDIA_TARGET,
	 .min = PAQM_TARGET_MIN_US,
	 .max = PAQM_TARGET_MAX_US},
	{.name = "elastic-target",
	 .key = "elastic_target_us",
	 .kind = KIND_TIME,
	 .attr = TCA_PAQM_ELASTIC_TARGET,
	 .min = PAQM_TARGET_MIN_US,
	 .max = PAQM_TARGET_MAX_US},
	{.name = "limit",
	 .key = "limit_bytes",
	 .kind = KIND_SIZE,
	 .attr = TCA_PAQM_LIMIT,
	 .min = PAQM_LIMIT_MIN,
	 .max = 0xFFFFFFFFU,
	 .zero = "auto"},
	{.name = "law", .key = "law", .kind = KIND_WORD, .attr = TCA_PAQM_LAW, .words = law_words},
	{.name = "feedback",
	 .key = "feedback",
	 .kind = KIND_WORD,
	 .attr = TCA_PAQM_FEEDBACK,
	 .words = feedback_words},
	{.name = "classify",
	 .key = "classify",
	 .kind = KIND_WORD,
	 .attr = TCA_PAQM_CLASSIFY,
	 .words = classify_words},
	{.name = "target-util",
	 .key = "target_util",
	 .kind = KIND_PERCENT,
	 .attr = TCA_PAQM_TARGET_UTIL,
	 .min = PAQM_UTIL_MIN_Q24,
	 .max = Q24_ONE},
	{.name = "ecn", .key = "ecn", .kind = KIND_FLAG, .attr = TCA_PAQM_ECN},
	{.name = "police", .key = "police", .kind = KIND_FLAG, .attr = TCA_PAQM_POLICE},
	{.name = "interval",
	 .key = "interval_us",
	 .kind = KIND_TIME,
	 .attr = TCA_PAQM_INTERVAL,
	 .min = PAQM_INTERVAL_MIN_US,
	 .max = PAQM_INTERVAL_MAX_US,
	 .zero = "auto",
	 .tuning = true},
	{.name = "gain",
	 .key = "gain",
	 .kind = KIND_RATIO,
	 .attr = TCA_PAQM_GAIN,
	 .min = PAQM_GAIN_MIN_Q24,
	 .max = PAQM_GAIN_MAX_Q24,
	 .tuning = true},
	{.name = "gamma",
	 .key = "gamma",
	 .kind = KIND_RATIO,
	 .attr = TCA_PAQM_GAMMA,
	 .min = Q24_ONE / 64,
	 .max = Q24_ONE,
	 .zero = "auto",
	 .tuning = true},
	{.name = "alpha",
	 .key = "alpha",
	 .kind = KIND_RATIO,
	 .attr = TCA_PAQM_ALPHA,
	 .min = PAQM_OUTER_GAIN_MIN_Q24,
	 .max = PAQM_OUTER_GAIN_MAX_Q24,
	 .tuning = true},
	{.name = "beta",
	 .key = "beta",
	 .kind = KIND_RATIO,
	 .attr = TCA_PAQM_BETA,
	 .min = PAQM_OUTER_GAIN_MIN_Q24,
	 .max = PAQM_OUTER_GAIN_MAX_Q24,
	 .tuning = true},
	{.name = "period",
	 .key = "period_us",
	 .kind = KIND_TIME,
	 .attr = TCA_PAQM_PERIOD,
	 .min = PAQM_PERIOD_MIN_US,
	 .max = PAQM_PERIOD_MAX_US,
	 .tuning = true},
	{.name = "rtt",
	 .key = "rtt_us",
	 .kind = KIND_TIME,
	 .attr = TCA_PAQM_RTT,
	 .min = PAQM_RTT_MIN_US,
	 .max = PAQM_RTT_MAX_US,
	 .tuning = true},
	{.name = "transfer",
	 .key = "transfer_us",
	 .kind = KIND_TIME,
	 .attr = TCA_PAQM_TRANSFER,
	 .max = PAQM_TRANSFER_MAX_US,
	 .tuning = true},
	{.name = "credit",
	 .key = "credit_us",
	 .kind = KIND_TIME,
	 .attr = TCA_PAQM_CREDIT,
	 .max = PAQM_CREDIT_MAX_US,
	 .tuning = true},
	{.name = "md-floor",
	 .key = "md_floor",
	 .kind = KIND_RATIO,
	 .attr = TCA_PAQM_MD_FLOOR,
	 .min = PAQM_MD_FLOOR_MIN_Q24,
	 .max = PAQM_MD_FLOOR_MAX_Q24,
	 .tuning = true},
	{.name = "forced-md",
	 .key = "forced_md",
	 .kind = KIND_FLAG,
	 .attr = TCA_PAQM_FORCED_MD,
	 .tuning = true},
	{.name = "ai-hold",
	 .key = "ai_hold",
	 .kind = KIND_FLAG,
	 .attr = TCA_PAQM_AI_HOLD,
	 .tuning = true},
	{.name = "flows",
	 .key = "flows",
	 .kind = KIND_COUNT,
	 .attr = TCA_PAQM_FLOWS,
	 .min = PAQM_FLOWS_MIN,
	 .max = PAQM_FLOWS_MAX,
	 .tuning = true},
	{.name = "router-id",
	 .key = "router_id",
	 .kind = KIND_ID,
	 .attr = TCA_PAQM_ROUTER_ID,
	 .min = 1,
	 .max = ~0ULL,
	 .tuning = true},
};

/* Outer gains that go together: quick, or stable for delays up to d. */
static const struct profile {
	const char *name;
	__u32 alpha, beta;
} profiles[] = {
	{"fast", PAQM_Q24(75, 100), PAQM_Q24(35, 100)},
	{"robust", PAQM_Q24(484, 1000), PAQM_Q24(131, 1000)},
};

static bool is_wide(const struct option *o)
{
	return o->kind == KIND_RATE || o->kind == KIND_ID;
}

static const char *format_rate(__u64 bps, char *buf)
{
	static const char *const units[] = {"bit", "Kbit", "Mbit", "Gbit", "Tbit"};
	double value = bps;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(units) - 1 && value >= 1000; i++)
		value /= 1000;
	snprintf(buf, TEXT_SIZE, "%.4g%s", value, units[i]);
	return buf;
}

/* @digits: significant ones; options want all, measured times few. */
static const char *format_time(__u64 ns, int digits, char *buf)
{
	if (ns >= 1000000000)
		snprintf(buf, TEXT_SIZE, "%.*gs", digits, ns / 1e9);
	else if (ns >= 1000000)
		snprintf(buf, TEXT_SIZE, "%.*gms", digits, ns / 1e6);
	else
		snprintf(buf, TEXT_SIZE, "%.*gus", digits, ns / 1e3);
	return buf;
}

static const char *measured_time(__u64 ns, char *buf)
{
	return format_time(ns, 4, buf);
}

/* Value as a user would type it. */
static const char *format_value(const struct option *o, __u64 value, char *buf)
{
	size_t words = 0;

	if (!value && o->zero)
		return o->zero;
	switch (o->kind) {
	case KIND_RATE:
		return format_rate(value * 8, buf);
	case KIND_TIME:
		return format_time(value * 1000, 10, buf);
	case KIND_SIZE:
		snprintf(buf, TEXT_SIZE, "%llub", (unsigned long long)value);
		break;
	case KIND_RATIO:
	case KIND_PERCENT:
		snprintf(buf, TEXT_SIZE, "%.5g", (double)value / Q24_ONE);
		break;
	case KIND_COUNT:
		snprintf(buf, TEXT_SIZE, "%llu", (unsigned long long)value);
		break;
	case KIND_WORD:
		while (o->words[words])
			words++;
		/* A newer kernel may know more of them. */
		if (value < words)
			return o->words[value];
		snprintf(buf, TEXT_SIZE, "%llu", (unsigned long long)value);
		break;
	case KIND_FLAG:
		snprintf(buf, TEXT_SIZE, "%s%s", value ? "" : "no", o->name);
		break;
	default:
		snprintf(buf, TEXT_SIZE, "%016llx", (unsigned long long)value);
	}
	return buf;
}

/* Range of an option, for the end of an error message. */
static void print_range(const struct option *o)
{
	static const char *const what[] = {
		[KIND_RATE] = "a rate",
		[KIND_TIME] = "a time",
		[KIND_SIZE] = "a size",
		[KIND_RATIO] = "a number",
		[KIND_PERCENT] = "a number or percentage",
		[KIND_COUNT] = "a whole number",
	};
	char low[TEXT_SIZE], high[TEXT_SIZE];
	int i;

	if (o->kind == KIND_WORD) {
		fprintf(stderr, "one of");
		for (i = 0; o->words[i]; i++)
			fprintf(stderr, "%s %s", i ? "," : "", o->words[i]);
	} else if (o->kind == KIND_ID) {
		fprintf(stderr, "1 to 16 hexadecimal digits, not all 0");
	} else {
		fprintf(stderr, "%s from %s to %s", what[o->kind],
			o->min ? format_value(o, o->min, low) : "0", format_value(o, o->max, high));
		if (o->zero)
			fprintf(stderr, ", or %s", o->zero);
	}
	fprintf(stderr, "\n");
}

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

static bool parse_id(const char *text, __u64 *value)
{
	size_t digits;

	if (!strncmp(text, "0x", 2))
		text += 2;
	digits = strspn(text, "0123456789abcdefABCDEF");
	if (!digits || digits > 16 || text[digits])
		return false;
	*value = strtoull(text, NULL, 16);
	return true;
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

static bool parse_value(const struct option *o, const char *text, __u64 *value)
{
	unsigned int size;
	double number;

	if (o->zero && !strcmp(text, o->zero)) {
		*value = 0;
		return true;
	}
	/* tc's own parsers let a sign wrap around. */
	if (*text == '-' || *text == '+')
		return false;
	switch (o->kind) {
	case KIND_RATE:
		if (get_rate64(value, text))
			return false;
		break;
	case KIND_TIME:
		if (!parse_time(text, value))
			return false;
		break;
	case KIND_SIZE:
		if (get_size(&size, text))
			return false;
		*value = size;
		break;
	case KIND_RATIO:
	case KIND_PERCENT:
		if (!parse_number(text, o->kind == KIND_PERCENT, &number) || number > 1000)
			return false;
		*value = llrint(number * Q24_ONE);
		break;
	case KIND_COUNT:
		if (!parse_number(text, false, &number) || number != floor(number) ||
		    number > o->max)
			return false;
		*value = number;
		break;
	case KIND_WORD:
		return parse_word(o, text, value);
	default:
		if (!parse_id(text, value))
			return false;
	}
	return *value >= o->min && *value <= o->max;
}

static void print_help(void)
{
	static const char *const shape[] = {
		[KIND_RATE] = "RATE",
		[KIND_TIME] = "TIME",
		[KIND_SIZE] = "BYTES",
		[KIND_RATIO] = "NUMBER",
		[KIND_PERCENT] = "NUMBER|PERCENT%",
		[KIND_COUNT] = "NUMBER",
		[KIND_ID] = "HEX",
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

/* What the command line asks for, indexed by attribute; the last word wins. */
struct request {
	__u64 value[TCA_PAQM_MAX + 1];
	bool given[TCA_PAQM_MAX + 1];
};

static void request_set(struct request *req, unsigned short attr, __u64 value)
{
	req->value[attr] = value;
	req->given[attr] = true;
}

/* Words taken from argv, or -1 after saying what is wrong. */
static int parse_option(struct request *req, int argc, char **argv)
{
	const struct profile *profile;
	const struct option *o;
	__u64 value;

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
	o = find_option(*argv, &value);
	if (!o) {
		fprintf(stderr, "paqm: unknown option \"%s\"; \"... paqm help\" lists them\n",
			*argv);
		return -1;
	}
	if (o->kind == KIND_FLAG) {
		request_set(req, o->attr, value);
		return 1;
	}
	if (argc < 2 || !parse_value(o, argv[1], &value)) {
		fprintf(stderr, "paqm: %s \"%s\": expected ", o->name, argc < 2 ? "" : argv[1]);
		print_range(o);
		return -1;
	}
	request_set(req, o->attr, value);
	return 2;
}

static int paqm_parse_opt(const struct qdisc_util *qu, int argc, char **argv, struct nlmsghdr *n,
			  const char *dev)
{
	struct request req = {0};
	struct rtattr *nest;
	size_t i;
	int used;

	(void)qu;
	(void)dev;
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
	nest = addattr_nest(n, MAX_REQUEST, TCA_OPTIONS | NLA_F_NESTED);
	for (i = 0; i < ARRAY_SIZE(options); i++) {
		const struct option *o = &options[i];

		if (!req.given[o->attr])
			continue;
		if (is_wide(o))
			addattr64(n, MAX_REQUEST, o->attr, req.value[o->attr]);
		else
			addattr32(n, MAX_REQUEST, o->attr, req.value[o->attr]);
	}
	addattr_nest_end(n, nest);
	return 0;
}

static int paqm_parse_copt(const struct qdisc_util *qu, int argc, char **argv, struct nlmsghdr *n,
			   const char *dev)
{
	(void)qu;
	(void)argc;
	(void)argv;
	(void)n;
	(void)dev;
	fprintf(stderr, "paqm: the classes :1 (media) and :2 (elastic) are always there and have "
			"no options\n");
	return -1;
}

/* --- printing ------------------------------------------------------------ */

static void json_u64(const char *key, __u64 value)
{
	print_color_u64(PRINT_JSON, COLOR_IFNAME, key, NULL, value);
}

static void json_string(const char *key, const char *value)
{
	print_color_string(PRINT_JSON, COLOR_IFNAME, key, NULL, value);
}

/* JSON has no infinity. */
static void json_float(const char *key, double value)
{
	if (isfinite(value))
		print_color_float(PRINT_JSON, COLOR_IFNAME, key, NULL, value);
	else
		print_color_null(PRINT_JSON, COLOR_IFNAME, key, NULL, NULL);
}

static void json_option(const struct option *o, __u64 value)
{
	char buf[TEXT_SIZE];

	switch (o->kind) {
	case KIND_RATE:
		json_u64(o->key, value * 8);
		break;
	case KIND_RATIO:
	case KIND_PERCENT:
		json_float(o->key, (double)value / Q24_ONE);
		break;
	case KIND_WORD:
	case KIND_ID:
		json_string(o->key, format_value(o, value, buf));
		break;
	case KIND_FLAG:
		print_color_bool(PRINT_JSON, COLOR_IFNAME, o->key, NULL, value);
		break;
	default:
		json_u64(o->key, value);
	}
}

static int paqm_print_opt(const struct qdisc_util *qu, FILE *f, struct rtattr *opt)
{
	struct rtattr *tb[TCA_PAQM_MAX + 1] = {NULL};
	char buf[TEXT_SIZE];
	size_t i;

	(void)qu;
	if (!opt)
		return 0;
	parse_rtattr(tb, TCA_PAQM_MAX, RTA_DATA(opt), RTA_PAYLOAD(opt));
	for (i = 0; i < ARRAY_SIZE(options); i++) {
		const struct option *o = &options[i];
		const struct rtattr *attr = tb[o->attr];
		size_t size = is_wide(o) ? sizeof(__u64) : sizeof(__u32);
		__u64 value;
		__u32 word;

		if (!attr || RTA_PAYLOAD(attr) < size)
			continue;
		if (is_wide(o)) {
			memcpy(&value, RTA_DATA(attr), sizeof(value));
		} else {
			memcpy(&word, RTA_DATA(attr), sizeof(word));
			value = word;
		}
		if (is_json_context())
			json_option(o, value);
		else if (o->kind == KIND_FLAG && (!o->tuning || show_details))
			fprintf(f, "%s ", format_value(o, value, buf));
		else if (!o->tuning || show_details)
			fprintf(f, "%s %s ", o->name, format_value(o, value, buf));
	}
	return 0;
}

/* --- statistics ---------------------------------------------------------- */

enum form { FORM_U32, FORM_U64, FORM_Q16, FORM_WIDE_Q16, FORM_Q24, FORM_Q32, FORM_F32, FORM_HEX };

struct field {
	const char *key;
	unsigned short offset;
	unsigned char form;
};

#define FIELD(struct_, form_, member_, key_)                                                       \
	{                                                                                          \
		.key = (key_), .offset = offsetof(struct struct_, member_), .form = FORM_##form_   \
	}
#define CLASS_FIELD(form, member, key) FIELD(tc_paqm_class_stats, form, member, key)
#define XSTATS_FIELD(form, member, key) FIELD(tc_paqm_xstats, form, member, key)

static const struct field class_fields[] = {
	CLASS_FIELD(U64, sent_bytes, "sent_bytes"),
	CLASS_FIELD(U64, sent_packets, "sent_packets"),
	CLASS_FIELD(U64, arrived_bytes, "arrived_bytes"),
	CLASS_FIELD(U64, sojourn_ns, "sojourn_sum_ns"),
	CLASS_FIELD(U32, backlog, "backlog_bytes"),
	CLASS_FIELD(U32, qlen, "backlog_packets"),
	CLASS_FIELD(U32, drop_tail, "drop_tail_packets"),
	CLASS_FIELD(U32, drop_inner, "drop_inner_packets"),
	CLASS_FIELD(U32, drop_strike, "drop_strike_packets"),
	CLASS_FIELD(U32, ecn_mark, "ecn_mark_packets"),
	CLASS_FIELD(Q32, prob, "prob"),
	CLASS_FIELD(U32, flows, "flows"),
	CLASS_FIELD(U32, sojourn_max_us, "sojourn_max_us"),
	CLASS_FIELD(U64, rate, "rate_bps"),
	CLASS_FIELD(U64, share, "share_bps"),
};

static const struct field xstats_fields[] = {
	XSTATS_FIELD(HEX, router_id, "router"),
	XSTATS_FIELD(U64, capacity, "capacity_bps"),
	XSTATS_FIELD(U64, fair_rate, "fair_rate_bps"),
	XSTATS_FIELD(U64, outer_rate, "outer_rate_bps"),
	XSTATS_FIELD(WIDE_Q16, erf_flows_q16, "erf_flows"),
	XSTATS_FIELD(U64, idle_ns, "idle_ns"),
	XSTATS_FIELD(U64, uptime_ns, "uptime_ns"),
	XSTATS_FIELD(U32, boot, "boot"),
	XSTATS_FIELD(U32, seq, "seq"),
	XSTATS_FIELD(Q16, phi_q16, "phi"),
	XSTATS_FIELD(Q16, share_q16, "media_weight"),
	XSTATS_FIELD(U32, period_us, "period_us"),
	XSTATS_FIELD(U32, skip_us, "skip_us"),
	XSTATS_FIELD(U32, rtt_us, "rtt_us"),
	XSTATS_FIELD(U32, interval_us, "interval_us"),
	XSTATS_FIELD(Q24, trim_q24, "trim"),
	XSTATS_FIELD(F32, ecf, "ecf"),
	XSTATS_FIELD(U32, ecf_md, "ecf_md_periods"),
	XSTATS_FIELD(U32, ecf_ai, "ecf_ai_periods"),
	XSTATS_FIELD(U32, ecf_hold, "ecf_hold_periods"),
	XSTATS_FIELD(U32, rounds, "rounds"),
	XSTATS_FIELD(U32, event_flow, "event_flow_rounds"),
	XSTATS_FIELD(U32, event_split, "event_split_rounds"),
	XSTATS_FIELD(U32, event_capacity, "event_capacity_rounds"),
	XSTATS_FIELD(U32, event_queue, "event_queue_rounds"),
	XSTATS_FIELD(U32, notices_owed, "notices_owed"),
	XSTATS_FIELD(U32, notices_sent, "notices_sent"),
	XSTATS_FIELD(U32, notices_limited, "notices_limited"),
	XSTATS_FIELD(U32, notices_ring, "notices_ring"),
	XSTATS_FIELD(U32, notices_refused, "notices_refused"),
	XSTATS_FIELD(U32, notices_failed, "notices_failed"),
	XSTATS_FIELD(U32, table_slots, "table_slots"),
	XSTATS_FIELD(U32, table_used, "table_used"),
	XSTATS_FIELD(U32, table_overflow, "table_overflow_flows"),
	XSTATS_FIELD(U32, timer_slips, "timer_slips"),
	XSTATS_FIELD(U32, overload, "overload_episodes"),
	XSTATS_FIELD(U32, transfers, "transfers"),
	XSTATS_FIELD(U32, strikes, "strikes_flows"),
	XSTATS_FIELD(U32, not_ip, "not_ip_packets"),
	XSTATS_FIELD(U32, filter_drop, "filter_drop_packets"),
	XSTATS_FIELD(U32, filter_taken, "filter_taken_packets"),
};

static void json_field(const struct field *field, const unsigned char *at)
{
	char buf[TEXT_SIZE];
	__u64 wide;
	__u32 word;
	float real;

	memcpy(&word, at, sizeof(word));
	switch (field->form) {
	case FORM_U32:
		json_u64(field->key, word);
		return;
	case FORM_Q16:
		json_float(field->key, word / 65536.0);
		return;
	case FORM_Q24:
		json_float(field->key, (double)word / Q24_ONE);
		return;
	case FORM_Q32:
		json_float(field->key, word / 4294967296.0);
		return;
	case FORM_F32:
		memcpy(&real, at, sizeof(real));
		json_float(field->key, real);
		return;
	}
	memcpy(&wide, at, sizeof(wide));
	switch (field->form) {
	case FORM_WIDE_Q16:
		json_float(field->key, wide / 65536.0);
		break;
	case FORM_HEX:
		snprintf(buf, sizeof(buf), "%016llx", (unsigned long long)wide);
		json_string(field->key, buf);
		break;
	default:
		json_u64(field->key, wide);
	}
}

static size_t field_size(const struct field *field)
{
	switch (field->form) {
	case FORM_U64:
	case FORM_WIDE_Q16:
	case FORM_HEX:
		return sizeof(__u64);
	default:
		return sizeof(__u32);
	}
}

static double mean_sojourn_ns(const struct tc_paqm_class_stats *st)
{
	return st->sent_packets ? (double)st->sojourn_ns / st->sent_packets : 0;
}

/* The mean of the bin's bounds must not exceed what was really seen. */
static __u64 quantile_ns(const struct tc_paqm_class_stats *st, __u32 permille)
{
	__u64 ns = paqm_hist_quantile(st->hist, permille);
	__u64 max = (__u64)st->sojourn_max_us * 1000;

	return max && ns > max ? max : ns;
}

/* Part of what the link could have carried since creation, 0 before any time passed. */
static double utilisation(const struct tc_paqm_xstats *st)
{
	double room = (double)st->capacity * (st->uptime_ns / 1e9);

	return room > 0 ? 8.0 * (st->media.sent_bytes + st->elastic.sent_bytes) / room : 0;
}

/* What arrives now as a part of capacity. */
static double load(const struct tc_paqm_xstats *st)
{
	return st->capacity ? (double)(st->media.rate + st->elastic.rate) / st->capacity : 0;
}

static double survival(const struct tc_paqm_class_stats *st)
{
	return 1 - st->prob / 4294967296.0;
}

static void json_class(const struct tc_paqm_class_stats *st)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(class_fields); i++)
		json_field(&class_fields[i], (const unsigned char *)st + class_fields[i].offset);
	json_float("survival", survival(st));
	json_float("sojourn_mean_us", mean_sojourn_ns(st) / 1000);
	json_u64("sojourn_p50_us", quantile_ns(st, 500) / 1000);
	json_u64("sojourn_p99_us", quantile_ns(st, 990) / 1000);
	open_json_array(PRINT_JSON, "sojourn_hist_packets");
	for (i = 0; i < PAQM_HIST_BINS; i++)
		json_u64(NULL, st->hist[i]);
	close_json_array(PRINT_JSON, NULL);
}

static void json_xstats(const struct tc_paqm_xstats *st, size_t len)
{
	size_t i;

	open_json_object("media");
	json_class(&st->media);
	close_json_object();
	open_json_object("elastic");
	json_class(&st->elastic);
	close_json_object();
	for (i = 0; i < ARRAY_SIZE(xstats_fields); i++) {
		const struct field *field = &xstats_fields[i];

		if (field->offset + field_size(field) <= len)
			json_field(field, (const unsigned char *)st + field->offset);
	}
	json_float("utilisation", utilisation(st));
	json_float("load", load(st));
	open_json_array(PRINT_JSON, "sojourn_edges_ns");
	for (i = 0; i < PAQM_HIST_BINS; i++)
		json_u64(NULL, paqm_hist_edge(i));
	close_json_array(PRINT_JSON, NULL);
}

/* Rows of the table of classes. */
enum cell {
	CELL_U32,
	CELL_U64,
	CELL_RATE,
	CELL_MEAN,
	CELL_P50,
	CELL_P99,
	CELL_MAX,
	CELL_SURVIVAL,
};

static const struct row {
	const char *name;
	unsigned short offset;
	unsigned char cell;
} rows[] = {
#define ROW(cell_, member_, name_)                                                                 \
	{                                                                                          \
		.name = (name_), .offset = offsetof(struct tc_paqm_class_stats, member_),          \
		.cell = CELL_##cell_                                                               \
	}
	ROW(U32, flows, "flows"),
	ROW(RATE, share, "share"),
	ROW(RATE, rate, "rate"),
	ROW(U32, backlog, "backlog b"),
	ROW(U32, qlen, "backlog p"),
	ROW(MEAN, sojourn_ns, "delay mean"),
	ROW(P50, hist, "delay p50"),
	ROW(P99, hist, "delay p99"),
	ROW(MAX, sojourn_max_us, "delay max"),
	ROW(U64, arrived_bytes, "arrived b"),
	ROW(U64, sent_bytes, "sent b"),
	ROW(U64, sent_packets, "sent p"),
	ROW(SURVIVAL, prob, "survival"),
	ROW(U32, ecn_mark, "ecn marks"),
	ROW(U32, drop_tail, "drop tail"),
	ROW(U32, drop_inner, "drop inner"),
	ROW(U32, drop_strike, "drop strike"),
#undef ROW
};

static const char *format_cell(const struct row *row, const struct tc_paqm_class_stats *st,
			       char *buf)
{
	__u64 wide;
	__u32 word;

	switch (row->cell) {
	case CELL_U32:
		memcpy(&word, (const char *)st + row->offset, sizeof(word));
		snprintf(buf, TEXT_SIZE, "%u", word);
		return buf;
	case CELL_MEAN:
		return measured_time(mean_sojourn_ns(st), buf);
	case CELL_P50:
		return measured_time(quantile_ns(st, 500), buf);
	case CELL_P99:
		return measured_time(quantile_ns(st, 990), buf);
	case CELL_MAX:
		return measured_time(st->sojourn_max_us * 1000ULL, buf);
	case CELL_SURVIVAL:
		snprintf(buf, TEXT_SIZE, "%.4g%%", 100 * survival(st));
		return buf;
	}
	memcpy(&wide, (const char *)st + row->offset, sizeof(wide));
	if (row->cell == CELL_RATE)
		return format_rate(wide, buf);
	snprintf(buf, TEXT_SIZE, "%llu", (unsigned long long)wide);
	return buf;
}

/* One column per class. */
static void text_classes(FILE *f, const struct tc_paqm_class_stats *const *st, size_t classes)
{
	char buf[TEXT_SIZE];
	size_t i, j;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		fprintf(f, "  %-12s", rows[i].name);
		for (j = 0; j < classes; j++)
			fprintf(f, " %14s", format_cell(&rows[i], st[j], buf));
		print_nl();
	}
}

static void text_xstats(FILE *f, const struct tc_paqm_xstats *st)
{
	const struct tc_paqm_class_stats *const classes[] = {&st->media, &st->elastic};
	char buf[4][TEXT_SIZE];
	float ecf;

	fprintf(f, "  capacity %s fair rate %s media weight %.1f%% (phi %.1f%%)",
		format_rate(st->capacity, buf[0]), format_rate(st->fair_rate, buf[1]),
		st->share_q16 / 655.36, st->phi_q16 / 655.36);
	print_nl();
	fprintf(f, "  up %s idle %s utilisation %.1f%% load %.1f%%",
		measured_time(st->uptime_ns, buf[0]), measured_time(st->idle_ns, buf[1]),
		100 * utilisation(st), 100 * load(st));
	print_nl();
	fprintf(f, "  %-12s %14s %14s", "", "media", "elastic");
	print_nl();
	text_classes(f, classes, ARRAY_SIZE(classes));
	memcpy(&ecf, &st->ecf, sizeof(ecf));
	fprintf(f, "  rounds %u by event: flow %u split %u capacity %u queue %u; transfers %u",
		st->rounds, st->event_flow, st->event_split, st->event_capacity, st->event_queue,
		st->transfers);
	print_nl();
	fprintf(f, "  notices sent %u of %u owed; limited %u ring %u refused %u failed %u",
		st->notices_sent, st->notices_owed, st->notices_limited, st->notices_ring,
		st->notices_refused, st->notices_failed);
	print_nl();
	fprintf(f,
		"  flow table %u/%u overflow %u policed %u; overload %u timer slips %u not IP %u",
		st->table_used, st->table_slots, st->table_overflow, st->strikes, st->overload,
		st->timer_slips, st->not_ip);
	if (st->filter_drop || st->filter_taken) {
		print_nl();
		fprintf(f, "  filters dropped %u took %u", st->filter_drop, st->filter_taken);
	}
	if (!show_details)
		return;
	print_nl();
	fprintf(f, "  period %s skip %s rtt %s interval %s",
		measured_time(st->period_us * 1000ULL, buf[0]),
		measured_time(st->skip_us * 1000ULL, buf[1]),
		measured_time(st->rtt_us * 1000ULL, buf[2]),
		measured_time(st->interval_us * 1000ULL, buf[3]));
	print_nl();
	fprintf(f, "  measured %s trim %.3f erf flows %.2f ecf %g (md %u ai %u hold %u)",
		format_rate(st->outer_rate, buf[0]), (double)st->trim_q24 / Q24_ONE,
		st->erf_flows_q16 / 65536.0, ecf, st->ecf_md, st->ecf_ai, st->ecf_hold);
	print_nl();
	fprintf(f, "  router %016llx boot %08x seq %u", (unsigned long long)st->router_id, st->boot,
		st->seq);
}

static int paqm_print_xstats(const struct qdisc_util *qu, FILE *f, struct rtattr *xstats)
{
	const struct tc_paqm_class_stats *class;
	struct tc_paqm_xstats st = {0};
	size_t len = xstats ? RTA_PAYLOAD(xstats) : 0;

	(void)qu;
	/* tc asks the same function for a class; that sends its own part only. */
	if (len == sizeof(st.media)) {
		memcpy(&st.media, RTA_DATA(xstats), len);
		class = &st.media;
		if (is_json_context())
			json_class(class);
		else
			text_classes(f, &class, 1);
		return 0;
	}
	/* Older modules send less, newer ones more; without both classes it is not ours. */
	if (len < offsetof(struct tc_paqm_xstats, router_id))
		return 0;
	if (len > sizeof(st))
		len = sizeof(st);
	memcpy(&st, RTA_DATA(xstats), len);
	if (is_json_context())
		json_xstats(&st, len);
	else
		text_xstats(f, &st);
	return 0;
}

struct qdisc_util paqm_qdisc_util = {
	.id = "paqm",
	.parse_qopt = paqm_parse_opt,
	.print_qopt = paqm_print_opt,
	.print_xstats = paqm_print_xstats,
	.parse_copt = paqm_parse_copt,
};
