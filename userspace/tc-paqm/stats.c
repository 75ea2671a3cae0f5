// SPDX-License-Identifier: GPL-2.0
/*
 * Statistics of sch_paqm: what a message of the kernel is, by its length, and who shows it.
 */
#include <stddef.h>
#include <string.h>

#include "userspace/tc-paqm/tc_plugin.h"
#include "userspace/tc-paqm/stats.h"
#include "userspace/tc-paqm/stats_parts.h"

void stats_print(FILE *f, struct rtattr *xstats)
{
	const struct tc_paqm_class_counts *numbers;
	const struct tc_paqm_class_stats *class;
	size_t len = RTA_PAYLOAD(xstats);
	struct tc_paqm_flow_stats flow;
	struct tc_paqm_xstats st = {0};

	/* tc asks the same function for a class; that sends its own part only. */
	if (len == sizeof(st.media)) {
		memcpy(&st.media, RTA_DATA(xstats), len);
		widen_class(&st.media, &st.counts.media);
		class = &st.media;
		numbers = &st.counts.media;
		if (is_json_context())
			json_class(class, numbers);
		else
			text_classes(f, &class, &numbers, 1);
		return;
	}
	if (len >= offsetof(struct tc_paqm_flow_stats, hears) && len < sizeof(st.media)) {
		memset(&flow, 0, sizeof(flow));
		memcpy(&flow, RTA_DATA(xstats), len < sizeof(flow) ? len : sizeof(flow));
		if (is_json_context())
			json_flow(&flow);
		else
			text_flow(f, &flow);
		return;
	}
	/* Older modules send less, newer ones more; without both classes it is not ours. */
	if (len < offsetof(struct tc_paqm_xstats, router_id))
		return;
	if (len > sizeof(st))
		len = sizeof(st);
	memcpy(&st, RTA_DATA(xstats), len);
	if (len < offsetof(struct tc_paqm_xstats, counts) + sizeof(st.counts))
		widen_xstats(&st);
	if (is_json_context())
		json_xstats(&st, len);
	else
		text_xstats(f, &st, len);
}
