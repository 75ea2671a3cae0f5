// SPDX-License-Identifier: GPL-2.0
/*
 * Values of options as a user would type them; names of DSCPs.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "userspace/tc-paqm/tc_plugin.h"
#include "userspace/tc-paqm/option.h"
#include "userspace/tc-paqm/show.h"

/* Digits that keep every rate, time and size as it is. */
#define ALL_DIGITS 15

const struct dscp dscps[] = {
	{"CS0", 0},   {"BE", 0},    {"DF", 0},	  {"LE", 1},	{"CS1", 8},   {"AF11", 10},
	{"AF12", 12}, {"AF13", 14}, {"CS2", 16},  {"AF21", 18}, {"AF22", 20}, {"AF23", 22},
	{"CS3", 24},  {"AF31", 26}, {"AF32", 28}, {"AF33", 30}, {"CS4", 32},  {"AF41", 34},
	{"AF42", 36}, {"AF43", 38}, {"CS5", 40},  {"VA", 44},	{"NQB", 45},  {"EF", 46},
	{"CS6", 48},  {"CS7", 56},  {NULL, 0},
};

double option_scale(const struct option *o)
{
	return o->kind == KIND_SHARE || o->kind == KIND_PACKETS ? Q16_ONE : Q24_ONE;
}

/*
 * The shortest number that is read back as the same fraction, or its neighbour: ends of
 * ranges are rounded down and shall read as they are documented.
 */
void fraction_text(const struct option *o, __u64 value, char *buf)
{
	int digits;

	for (digits = 3; digits < 10; digits++) {
		snprintf(buf, TEXT_SIZE, "%.*g", digits, value / option_scale(o));
		if (llabs(llrint(strtod(buf, NULL) * option_scale(o)) - (long long)value) <= 1)
			return;
	}
}

/* Appends to a list that is separated by commas. */
void list_append(char *list, const char *word)
{
	size_t len = strlen(list);

	snprintf(list + len, LIST_SIZE - len, "%s%s", len ? "," : "", word);
}

void dscps_text(__u64 mask, char *list)
{
	char buf[TEXT_SIZE];
	unsigned int i;
	size_t name;

	*list = 0;
	for (i = 0; i < CODE_POINTS; i++) {
		if (!(mask >> i & 1))
			continue;
		for (name = 0; dscps[name].name && dscps[name].value != i; name++)
			;
		snprintf(buf, sizeof(buf), "%u", i);
		list_append(list, dscps[name].name ? dscps[name].name : buf);
	}
}

const char *prefix_text(const struct tc_paqm_prefix *p, char *buf)
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

/* In the unit in which tc reads it back as it is: 8.008Kbit are 1000 bytes to it, not 1001. */
static const char *format_rate(__u64 value, char *buf)
{
	__u64 back;

	show_rate(value * 8, ALL_DIGITS, buf);
	if (get_rate64(&back, buf) || back != value)
		snprintf(buf, TEXT_SIZE, "%llubit", (unsigned long long)value * 8);
	return buf;
}

/* Value as a user would type it, of the kinds that are one number. */
const char *option_text(const struct option *o, __u64 value, char *buf)
{
	if (!value && o->zero)
		return o->zero;
	if (value == ~0ULL && o->ones)
		return o->ones;
	switch (o->kind) {
	case KIND_RATE:
		return format_rate(value, buf);
	case KIND_TIME:
	case KIND_TARGET:
		return show_time(value * 1000, ALL_DIGITS, buf);
	case KIND_SIZE:
		snprintf(buf, TEXT_SIZE, "%llub", (unsigned long long)value);
		break;
	case KIND_RATIO:
	case KIND_PERCENT:
	case KIND_SHARE:
	case KIND_PACKETS:
		fraction_text(o, value, buf);
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
