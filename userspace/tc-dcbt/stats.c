// SPDX-License-Identifier: GPL-2.0
/* Statistics of sch_dcbt: a table of its three classes, or JSON. */
#include <string.h>

#include "core/paqm_hist.h"
#include "kernel/uapi/linux/pkt_sched_dcbt.h"
#include "userspace/tc-dcbt/stats.h"
#include "userspace/tc-paqm/class_table.h"
#include "userspace/tc-paqm/tc_plugin.h"
#include "userspace/tc-paqm/show.h"

_Static_assert(DCBT_HIST_BINS == PAQM_HIST_SIZE, "the histogram of core/ and of the UAPI differ");
_Static_assert(DCBT_NO_THRESHOLD == ~0ULL, "what stands for no threshold");

static const struct class_row rows[] = {
#define ROW(cell, member, name, key) CLASS_ROW(struct tc_dcbt_class_stats, cell, member, name, key)
	ROW(U32, flows, "flows", "flows"),
	ROW(PACKETS, average, "average p", "average_packets"),
	ROW(THRESHOLD, threshold, "threshold p", "threshold_packets"),
	ROW(U32, backlog, "backlog b", "backlog_bytes"),
	ROW(U32, qlen, "backlog p", "backlog_packets"),
	ROW(MEAN, sojourn_ns, "delay mean", "sojourn_mean_us"),
	ROW(P50, hist, "delay p50", "sojourn_p50_us"),
	ROW(P99, hist, "delay p99", "sojourn_p99_us"),
	ROW(U64, arrived_bytes, "arrived b", "arrived_bytes"),
	ROW(U64, arrived, "arrived p", "arrived_packets"),
	ROW(U64, sent_bytes, "sent b", "sent_bytes"),
	ROW(U64, sent, "sent p", "sent_packets"),
	ROW(U64, cut_in, "cut in", "cut_in"),
	ROW(U64, ecn_mark, "ecn marks", "ecn_mark"),
	ROW(U64, drop_early, "drop early", "drop_early"),
	ROW(U64, drop_forced, "drop forced", "drop_forced"),
	ROW(U64, drop_limit, "drop limit", "drop_limit"),
	ROW(U64, drop_threshold, "drop class", "drop_threshold"),
	ROW(U64, drop_flow, "drop flow", "drop_flow"),
#undef ROW
};

static const char *const names[] = {"tcp", "tagged", "untagged"};

static const struct class_table table = {
	.rows = rows,
	.n_rows = ARRAY_SIZE(rows),
	.names = names,
	.n_classes = ARRAY_SIZE(names),
	.size = sizeof(struct tc_dcbt_class_stats),
	.sent = offsetof(struct tc_dcbt_class_stats, sent),
	.hist = offsetof(struct tc_dcbt_class_stats, hist),
};

static void json_stats(const struct tc_dcbt_xstats *st)
{
	json_float("average_packets", (double)st->average / Q24_ONE);
	json_float("max_p_now", (double)st->max_p / Q24_ONE);
	json_float("packet_us", st->packet_ns / 1e3);
	json_u64("flow_missed", st->flow_missed);
	json_u64("not_cut", st->not_cut);
	class_table_json(&table, &st->tcp);
}

static void text_stats(FILE *f, const struct tc_dcbt_xstats *st)
{
	char buf[TEXT_SIZE];

	fprintf(f, "  average %.4gp max-p %.4g packet %s", (double)st->average / Q24_ONE,
		(double)st->max_p / Q24_ONE,
		st->packet_ns ? measured_time(st->packet_ns, buf) : "not known yet");
	if (st->flow_missed)
		fprintf(f, " flows without a slot %llu", (unsigned long long)st->flow_missed);
	if (st->not_cut)
		fprintf(f, " not segmented %llu", (unsigned long long)st->not_cut);
	print_nl();
	class_table_text(f, &table, &st->tcp);
}

void dcbt_stats_print(FILE *f, struct rtattr *xstats)
{
	size_t len = RTA_PAYLOAD(xstats);
	struct tc_dcbt_xstats st = {0};

	/* Newer modules send more; without all classes it is not ours. */
	if (len < offsetof(struct tc_dcbt_xstats, average))
		return;
	memcpy(&st, RTA_DATA(xstats), len < sizeof(st) ? len : sizeof(st));
	if (is_json_context())
		json_stats(&st);
	else
		text_stats(f, &st);
}
