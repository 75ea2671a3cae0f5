// SPDX-License-Identifier: GPL-2.0
/*
 * What tc says about the options of a qdisc: usage, and what a wrong word should have been.
 */
#include <stdio.h>
#include <string.h>

#include "userspace/tc-paqm/tc_plugin.h"
#include "userspace/tc-paqm/option.h"
#include "userspace/tc-paqm/show.h"

#define COLUMNS 80
#define INDENT 16
/* Longest item of the usage. */
#define ITEM_SIZE 96

void print_expected(const struct option *o)
{
	static const char *const what[] = {
		[KIND_RATE] = "a rate",
		[KIND_TIME] = "a time",
		[KIND_TARGET] = "a time",
		[KIND_SIZE] = "a size",
		[KIND_RATIO] = "a number",
		[KIND_PERCENT] = "a number or percentage",
		[KIND_SHARE] = "a number or percentage",
		[KIND_PACKETS] = "a number of packets",
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
		fprintf(stderr, "a whole number from %d to %d", (int)o->min, (int)o->max);
		break;
	case KIND_DSCPS:
		fprintf(stderr, "a list of numbers from 0 to 63 or names, such as EF,AF41,CS1,LE");
		break;
	case KIND_PREFIXES:
		fprintf(stderr, "at most %d prefixes, such as 10.0.0.0/8,2001:db8::/32",
			PAQM_PREFIXES);
		break;
	case KIND_KEY:
		fprintf(stderr,
			"an id from 1 to 65535, a colon and %d hexadecimal digits, not all 0",
			2 * PAQM_KEY_LEN);
		break;
	default:
		fprintf(stderr, "%s from %s to %s", what[o->kind],
			o->min ? option_text(o, o->min, low) : "0",
			o->kind == KIND_SEED ? "18446744073709551615"
					     : option_text(o, o->max, high));
	}
	if (o->kind == KIND_TARGET)
		fprintf(stderr, ", or a size from %llub to %llub (m is neither: ms or mb)",
			(unsigned long long)o[1].min, (unsigned long long)o[1].max);
	if (o->ones)
		fprintf(stderr, ", %s", o->ones);
	if (o->zero)
		fprintf(stderr, ", or %s", o->zero);
	fprintf(stderr, "\n");
}

/* What stands for the value of an option in the usage. */
static const char *const shape[] = {
	[KIND_RATE] = "RATE",
	[KIND_TIME] = "TIME",
	[KIND_TARGET] = "TIME|BYTES",
	[KIND_SIZE] = "BYTES",
	[KIND_RATIO] = "NUMBER",
	[KIND_PERCENT] = "NUMBER|PERCENT%",
	[KIND_SHARE] = "NUMBER|PERCENT%",
	[KIND_PACKETS] = "PACKETS",
	[KIND_COUNT] = "NUMBER",
	[KIND_SIGNED] = "NUMBER",
	[KIND_SEED] = "NUMBER",
	[KIND_ID] = "HEX",
	[KIND_DSCPS] = "DSCP[,DSCP...]",
	[KIND_PREFIXES] = "PREFIX[,PREFIX...]",
	[KIND_KEY] = "ID:HEX",
};

/* Alternatives, separated by bars. */
static void add_word(char *item, const char *word)
{
	size_t len = strlen(item);

	snprintf(item + len, ITEM_SIZE - len, "%s%s", item[len - 1] == ' ' ? "" : "|", word);
}

static void format_item(const struct option *o, char *item)
{
	size_t i;

	if (o->kind == KIND_FLAG) {
		snprintf(item, ITEM_SIZE, "[no]%s", o->name);
		return;
	}
	snprintf(item, ITEM_SIZE, "%s ", o->name);
	for (i = 0; o->words && o->words[i]; i++)
		add_word(item, o->words[i]);
	if (!o->words)
		add_word(item, shape[o->kind]);
	if (o->ones)
		add_word(item, o->ones);
	if (o->zero)
		add_word(item, o->zero);
}

/* An item more in lines of a screen's width; the next column. */
static int print_item(const char *item, int column)
{
	int width = strlen(item) + 5;

	if (column + width > COLUMNS) {
		fprintf(stderr, "\n%*s", INDENT - 1, "");
		column = INDENT - 1;
	}
	fprintf(stderr, " [ %s ]", item);
	return column + width;
}

void print_help(enum group group)
{
	int column = fprintf(stderr, "Usage: ... %s", option_qdisc);
	const struct shorthand *s;
	const struct option *o;
	char item[ITEM_SIZE];

	for (o = options; o->name; o++) {
		if (o->group != group || o->kind == KIND_TARGET_BYTES)
			continue;
		format_item(o, item);
		column = print_item(item, column);
	}
	for (s = shorthands; group == GROUP_RESEARCH && s->option; s++) {
		if (s == shorthands || strcmp(s->option, s[-1].option))
			snprintf(item, sizeof(item), "%s ", s->option);
		add_word(item, s->name);
		if (!s[1].option || strcmp(s->option, s[1].option))
			column = print_item(item, column);
	}
	fprintf(stderr, "\n");
	if (group == GROUP_EVERYDAY)
		fprintf(stderr,
			"Options of the published laws and for experiments: ... %s help research\n",
			option_qdisc);
}
