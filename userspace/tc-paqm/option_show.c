// SPDX-License-Identifier: GPL-2.0
/*
 * Options of a qdisc from a netlink message to the screen or into JSON.
 */
#include <stdlib.h>
#include <string.h>

#include "userspace/tc-paqm/tc_plugin.h"
#include "userspace/tc-paqm/option.h"
#include "userspace/tc-paqm/options.h"
#include "userspace/tc-paqm/show.h"

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
	case KIND_PACKETS:
		fraction_text(o, value, buf);
		json_float(o->key, strtod(buf, NULL));
		break;
	case KIND_SIGNED:
		json_s64(o->key, (int)value);
		break;
	case KIND_WORD:
	case KIND_ID:
		json_string(o->key, option_text(o, value, buf));
		break;
	case KIND_FLAG:
		json_bool(o->key, value);
		break;
	case KIND_DSCPS:
		open_json_array(PRINT_JSON, o->key);
		for (i = 0; i < CODE_POINTS; i++)
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
		dscps_text(value, list);
		fprintf(f, "%s %s ", o->name, list);
	} else if (o->kind == KIND_FLAG) {
		fprintf(f, "%s ", option_text(o, value, buf));
	} else {
		fprintf(f, "%s %s ", o->name, option_text(o, value, buf));
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
		prefix_text(&prefix, buf);
		if (is_json_context())
			json_string(NULL, buf);
		else
			list_append(list, buf);
	}
	if (is_json_context())
		close_json_array(PRINT_JSON, NULL);
	else if (*list || show_details)
		fprintf(f, "%s %s ", o->name, *list ? list : o->zero);
}

void options_print(FILE *f, struct rtattr *opt)
{
	struct rtattr *tb[OPTION_ATTRS] = {NULL};
	const struct option *o;

	parse_rtattr(tb, OPTION_ATTRS - 1, RTA_DATA(opt), RTA_PAYLOAD(opt));
	for (o = options; o->name; o++) {
		__u64 value, bytes = 0;

		if (o->kind == KIND_TARGET_BYTES)
			continue; /* with the time before it */
		if (o->kind == KIND_PREFIXES) {
			/* left out when empty; older modules do not know their neighbour either */
			if (tb[o->attr] || tb[TCA_PAQM_DSCP_MEDIA])
				print_prefixes(f, o, tb[o->attr]);
			continue;
		}
		if (!attr_value(tb[o->kind == KIND_KEY ? TCA_PAQM_KEY_ID : o->attr], o->wide,
				&value))
			continue;
		if (o->kind == KIND_TARGET && attr_value(tb[o[1].attr], false, &bytes) &&
		    is_json_context())
			json_u64(o[1].key, bytes);
		if (is_json_context())
			json_option(o, value);
		else if (o->shown == SHOWN_DETAIL && !show_details)
			continue;
		else if (o->shown == SHOWN_SET && !show_details && value == o->initial)
			continue;
		else if (bytes)
			fprintf(f, "%s %llub ", o->name, (unsigned long long)bytes);
		else
			text_option(f, o, value);
	}
}
