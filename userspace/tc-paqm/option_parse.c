// SPDX-License-Identifier: GPL-2.0
/*
 * Options of a qdisc from the command line into a netlink request.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "userspace/tc-paqm/tc_plugin.h"
#include "userspace/tc-paqm/option.h"
#include "userspace/tc-paqm/options.h"
#include "userspace/tc-paqm/show.h"

/* Room for the largest message: every option at once takes under 900 bytes. */
#define MAX_REQUEST 2048

/* Of the longest shorthand: its words, and its bytes. */
#define SHORTHAND_WORDS 80
#define SHORTHAND_SIZE 1024

/* What the command line asks for, indexed by attribute; the last word wins. */
struct request {
	__u64 value[OPTION_ATTRS];
	bool given[OPTION_ATTRS];
	struct tc_paqm_prefix prefix[PAQM_PREFIXES];
	unsigned int prefixes;
	struct tc_paqm_key key;
};

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

	bool percent = o->kind == KIND_PERCENT || o->kind == KIND_SHARE;

	if (!parse_number(text, percent, &number) || number * option_scale(o) > UINT32_MAX)
		return false;
	*value = llrint(number * option_scale(o));
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
	/* A bare number means us everywhere else in tc, but ns in get_time64(), which cuts what is
	 * behind the point: 1.001ms is 1000999 ns there.
	 */
	*us = len && strchr("0123456789.", text[len - 1]) ? (__u64)ns : ((__u64)ns + 500) / 1000;
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

static bool parse_signed(const struct option *o, const char *text, __u64 *value)
{
	char *end;
	long number = strtol(text, &end, 10);

	*value = (__u32)number;
	return end != text && !*end && number >= (long)o->min && number <= (long)o->max;
}

/* Either of the two ways to say how long a queue shall be; the other one is switched off. To tc 5m
 * are 5 MiB, but who leaves out the s of 5ms means a thousandth of that: so it is neither.
 */
static bool parse_target(struct request *req, const struct option *o, const char *text)
{
	const struct option *bytes = o + 1;
	unsigned int size;
	__u64 us;

	if (parse_value(o, text, &us)) {
		request_set(req, o->attr, us);
		request_set(req, bytes->attr, 0);
		return true;
	}
	if (!*text || !strchr(".0123456789", *text) || text[strlen(text) - 1] == 'm' ||
	    parse_time(text, &us) || get_size(&size, text) || size < bytes->min ||
	    size > bytes->max)
		return false;
	request_set(req, bytes->attr, size);
	/* a time that was named before in the same line no longer counts */
	req->given[o->attr] = false;
	return true;
}

static bool parse_dscp(const char *text, __u64 *mask)
{
	double number;
	size_t i;

	for (i = 0; dscps[i].name; i++) {
		if (!strcasecmp(text, dscps[i].name)) {
			*mask |= 1ULL << dscps[i].value;
			return true;
		}
	}
	if (!*text || text[strspn(text, "0123456789")] || !parse_number(text, false, &number) ||
	    number >= CODE_POINTS)
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
	/* shown as it acts; packets of ::ffff:192.0.2.1 are of IPv4 on a wire */
	if (prefix->family == 6 && prefix->len >= 96 &&
	    IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)prefix->addr)) {
		prefix->family = 4;
		prefix->len -= 96;
		bits = 32;
		memcpy(prefix->addr, prefix->addr + 12, 4);
		memset(prefix->addr + 4, 0, 12);
	}
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

/* Option of this name, and for a flag what it is set to. */
static const struct option *find_option(const char *name, __u64 *flag)
{
	const struct option *o;

	for (o = options; o->name; o++) {
		*flag = 1;
		if (!strcmp(name, o->name))
			return o;
		*flag = 0;
		if (o->kind == KIND_FLAG && !strncmp(name, "no", 2) && !strcmp(name + 2, o->name))
			return o;
	}
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
		if (!parse_signed(o, text, &value))
			return text;
		break;
	default:
		if (!*text || !parse_value(o, text, &value))
			return text;
	}
	request_set(req, o->attr, value);
	return NULL;
}

/* What an option takes that stands for others, on stderr. */
static void print_shorthands(const char *option)
{
	const struct shorthand *s;
	const char *before = "";

	for (s = shorthands; s->option; s++) {
		if (strcmp(s->option, option))
			continue;
		fprintf(stderr, "%s%s", before, s->name);
		before = ", ";
	}
	fprintf(stderr, "\n");
}

static int parse_option(struct request *req, int argc, char **argv);

/* Take over what @word of such an option stands for; -1 after saying what is wrong. */
static int parse_shorthand(struct request *req, const char *option, const char *word)
{
	char *words[SHORTHAND_WORDS + 1], line[SHORTHAND_SIZE], *rest = line;
	const struct shorthand *s;
	int n = 0, at = 0;

	for (s = shorthands; s->option; s++)
		if (!strcmp(s->option, option) && !strcmp(s->name, word))
			break;
	if (!s->option) {
		fprintf(stderr, "%s: %s \"%s\": expected one of ", option_qdisc, option, word);
		print_shorthands(option);
		return -1;
	}
	snprintf(line, sizeof(line), "%s", s->words);
	while (n < SHORTHAND_WORDS && (words[n] = strsep(&rest, " ")))
		n++;
	while (at < n) {
		int used = parse_option(req, n - at, words + at);

		if (used < 0)
			return -1;
		at += used;
	}
	return 2;
}

/* Words taken from argv, or -1 after saying what is wrong. */
static int parse_option(struct request *req, int argc, char **argv)
{
	const struct shorthand *s;
	const struct option *o;
	const char *wrong;
	__u64 flag;

	for (s = shorthands; s->option; s++)
		if (!strcmp(*argv, s->option))
			return parse_shorthand(req, s->option, argc > 1 ? argv[1] : "");
	o = find_option(*argv, &flag);
	if (!o) {
		fprintf(stderr, "%s: unknown option \"%s\"; \"... %s help\" lists them\n",
			option_qdisc, *argv, option_qdisc);
		return -1;
	}
	if (o->kind == KIND_FLAG) {
		request_set(req, o->attr, flag);
		return 1;
	}
	wrong = argc < 2 ? "" : parse_argument(req, o, argv[1]);
	if (wrong) {
		fprintf(stderr, "%s: %s \"%s\": expected ", option_qdisc, o->name, wrong);
		print_expected(o);
		return -1;
	}
	return 2;
}

/* A code point in two maps: the kernel says so too, but cannot name it. */
static bool dscps_overlap(const struct request *req)
{
	const struct option *o, *other;
	char list[LIST_SIZE];
	__u64 both;

	for (o = options; o->name; o++) {
		for (other = o + 1; o->kind == KIND_DSCPS && other->name; other++) {
			both = req->value[o->attr] & req->value[other->attr];
			if (other->kind != KIND_DSCPS || !both)
				continue;
			dscps_text(both, list);
			fprintf(stderr, "%s: %s and %s both name %s\n", option_qdisc, o->name,
				other->name, list);
			return true;
		}
	}
	return false;
}

int options_parse(int argc, char **argv, struct nlmsghdr *n)
{
	struct request req = {0};
	const struct option *o;
	struct rtattr *nest;
	int used;

	while (argc > 0) {
		if (!strcmp(*argv, "help")) {
			print_help(argc > 1 && !strcmp(argv[1], "research") ? GROUP_RESEARCH
									    : GROUP_EVERYDAY);
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
	for (o = options; o->name; o++) {
		if (!req.given[o->attr])
			continue;
		if (o->kind == KIND_PREFIXES)
			addattr_l(n, MAX_REQUEST, o->attr, req.prefix,
				  req.prefixes * sizeof(req.prefix[0]));
		else if (o->kind == KIND_KEY)
			addattr_l(n, MAX_REQUEST, o->attr, &req.key, sizeof(req.key));
		else if (o->wide)
			addattr64(n, MAX_REQUEST, o->attr, req.value[o->attr]);
		else
			addattr32(n, MAX_REQUEST, o->attr, req.value[o->attr]);
	}
	addattr_nest_end(n, nest);
	return 0;
}
