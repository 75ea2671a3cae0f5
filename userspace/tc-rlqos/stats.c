// SPDX-License-Identifier: GPL-2.0
/* Statistics of sch_rlqos: a table of its three classes, or JSON. */
#include <string.h>

#include "core/paqm_hist.h"
#include "kernel/uapi/linux/pkt_sched_rlqos.h"
#include "userspace/tc-paqm/class_table.h"
#include "userspace/tc-paqm/tc_plugin.h"
#include "userspace/tc-paqm/show.h"
#include "userspace/tc-rlqos/stats.h"

_Static_assert(RLQOS_HIST_BINS == PAQM_HIST_SIZE, "the histogram of core/ and of the UAPI differ");

static const struct class_row rows[] = {
#define ROW(cell, member, name, key) CLASS_ROW(struct tc_rlqos_class_stats, cell, member, name, key)
	ROW(U32, backlog, "backlog b", "backlog_bytes"),
	ROW(U32, qlen, "backlog p", "backlog_packets"),
	ROW(MEAN, sojourn_ns, "delay mean", "sojourn_mean_us"),
	ROW(P50, hist, "delay p50", "sojourn_p50_us"),
	ROW(P99, hist, "delay p99", "sojourn_p99_us"),
	ROW(U64, arrived_bytes, "arrived b", "arrived_bytes"),
	ROW(U64, arrived, "arrived p", "arrived_packets"),
	ROW(U64, entered, "entered p", "entered_packets"),
	ROW(U64, sent_bytes, "sent b", "sent_bytes"),
	ROW(U64, sent, "sent p", "sent_packets"),
	ROW(U64, drop_thin, "drop thin", "drop_thin"),
	ROW(U64, drop_limit, "drop limit", "drop_limit"),
	ROW(U64, drop_again, "drop again", "drop_again"),
#undef ROW
};

static const char *const names[] = {"tc1", "tc2", "tc3"};

static const struct class_table table = {
	.rows = rows,
	.n_rows = ARRAY_SIZE(rows),
	.names = names,
	.n_classes = ARRAY_SIZE(names),
	.size = sizeof(struct tc_rlqos_class_stats),
	.sent = offsetof(struct tc_rlqos_class_stats, sent),
	.hist = offsetof(struct tc_rlqos_class_stats, hist),
};

static double probability(const struct tc_rlqos_xstats *st)
{
	return st->probability / 4294967296.0;
}

static void json_stats(const struct tc_rlqos_xstats *st)
{
	json_float("mean_packets", (double)st->mean / Q24_ONE);
	json_float("growth_packets", (double)st->growth / Q24_ONE);
	json_float("load", (double)st->load / Q24_ONE);
	json_float("downstream", (double)st->downstream / Q24_ONE);
	json_float("probability", probability(st));
	json_u64("not_cut", st->not_cut);
	class_table_json(&table, &st->tc1);
}

static void text_stats(FILE *f, const struct tc_rlqos_xstats *st)
{
	fprintf(f, "  mean %.4gp growth %.4gp load %.4g downstream %.4g probability %.4g",
		(double)st->mean / Q24_ONE, (double)st->growth / Q24_ONE,
		(double)st->load / Q24_ONE, (double)st->downstream / Q24_ONE, probability(st));
	if (st->not_cut)
		fprintf(f, " not segmented %llu", (unsigned long long)st->not_cut);
	print_nl();
	class_table_text(f, &table, &st->tc1);
}

void rlqos_stats_print(FILE *f, struct rtattr *xstats)
{
	size_t len = RTA_PAYLOAD(xstats);
	struct tc_rlqos_xstats st = {0};

	/* Newer modules send more; without all classes it is not ours. */
	if (len < offsetof(struct tc_rlqos_xstats, mean))
		return;
	memcpy(&st, RTA_DATA(xstats), len < sizeof(st) ? len : sizeof(st));
	if (is_json_context())
		json_stats(&st);
	else
		text_stats(f, &st);
}
