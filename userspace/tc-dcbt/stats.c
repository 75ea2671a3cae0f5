// SPDX-License-Identifier: GPL-2.0
/*
 * Statistics of sch_dcbt: a table of its three classes, or JSON. One table here describes the
 * fields for both.
 */
#include <stddef.h>
#include <string.h>

#include "core/paqm_hist.h"
#include "kernel/uapi/linux/pkt_sched_dcbt.h"
#include "userspace/tc-dcbt/stats.h"
#include "userspace/tc-paqm/tc_plugin.h"
#include "userspace/tc-paqm/show.h"

_Static_assert(DCBT_HIST_BINS == PAQM_HIST_SIZE, "the histogram of core/ and of the UAPI differ");

enum cell {
	CELL_U32,
	CELL_U64,
	CELL_PACKETS,	/* Q24 */
	CELL_THRESHOLD, /* the same, or none */
	CELL_MEAN,
	CELL_P50,
	CELL_P99,
};

static const struct row {
	const char *name; /* in text */
	const char *key;  /* in JSON */
	unsigned short offset;
	unsigned char cell;
} rows[] = {
#define ROW(cell_, member_, name_, key_)                                                           \
	{                                                                                          \
		.name = (name_), .key = (key_),                                                    \
		.offset = offsetof(struct tc_dcbt_class_stats, member_), .cell = CELL_##cell_      \
	}
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

static const struct class
{
	const char *name;
	size_t offset;
} classes[] = {
	{"tcp", offsetof(struct tc_dcbt_xstats, tcp)},
	{"tagged", offsetof(struct tc_dcbt_xstats, tagged)},
	{"untagged", offsetof(struct tc_dcbt_xstats, untagged)},
};

static const struct tc_dcbt_class_stats *class_of(const struct tc_dcbt_xstats *st, size_t c)
{
	return (const void *)((const char *)st + classes[c].offset);
}

static __u64 quantile_ns(const struct tc_dcbt_class_stats *st, __u32 permille)
{
	/* the core's own type of 64 bits is another one on some machines, of the same size */
	return paqm_hist_quantile((const paqm_u64 *)st->hist, permille);
}

static double mean_ns(const struct tc_dcbt_class_stats *st)
{
	return st->sent ? (double)st->sojourn_ns / st->sent : 0;
}

static __u64 cell_value(const struct row *row, const struct tc_dcbt_class_stats *st)
{
	__u64 wide;
	__u32 word;

	if (row->cell == CELL_U32) {
		memcpy(&word, (const char *)st + row->offset, sizeof(word));
		return word;
	}
	memcpy(&wide, (const char *)st + row->offset, sizeof(wide));
	return wide;
}

static void json_cell(const struct row *row, const struct tc_dcbt_class_stats *st)
{
	__u64 value = cell_value(row, st);

	switch (row->cell) {
	case CELL_MEAN:
		json_float(row->key, mean_ns(st) / 1000);
		break;
	case CELL_P50:
	case CELL_P99:
		json_float(row->key, quantile_ns(st, row->cell == CELL_P50 ? 500 : 990) / 1000.0);
		break;
	case CELL_THRESHOLD:
		if (value == DCBT_NO_THRESHOLD) {
			print_color_null(PRINT_JSON, COLOR_IFNAME, row->key, NULL, NULL);
			break;
		}
		json_float(row->key, (double)value / Q24_ONE);
		break;
	case CELL_PACKETS:
		json_float(row->key, (double)value / Q24_ONE);
		break;
	default:
		json_u64(row->key, value);
	}
}

static const char *text_cell(const struct row *row, const struct tc_dcbt_class_stats *st, char *buf)
{
	__u64 value = cell_value(row, st);

	switch (row->cell) {
	case CELL_MEAN:
		return measured_time(mean_ns(st), buf);
	case CELL_P50:
	case CELL_P99:
		return measured_time(quantile_ns(st, row->cell == CELL_P50 ? 500 : 990), buf);
	case CELL_THRESHOLD:
		if (value == DCBT_NO_THRESHOLD)
			return "none";
		/* fall through */
	case CELL_PACKETS:
		snprintf(buf, TEXT_SIZE, "%.4g", (double)value / Q24_ONE);
		return buf;
	}
	snprintf(buf, TEXT_SIZE, "%llu", (unsigned long long)value);
	return buf;
}

static void json_stats(const struct tc_dcbt_xstats *st)
{
	size_t i, c;

	json_float("average_packets", (double)st->average / Q24_ONE);
	json_float("max_p_now", (double)st->max_p / Q24_ONE);
	json_float("packet_us", st->packet_ns / 1e3);
	json_u64("flow_missed", st->flow_missed);
	json_u64("not_cut", st->not_cut);
	for (c = 0; c < ARRAY_SIZE(classes); c++) {
		open_json_object(classes[c].name);
		for (i = 0; i < ARRAY_SIZE(rows); i++)
			json_cell(&rows[i], class_of(st, c));
		open_json_array(PRINT_JSON, "sojourn_hist");
		for (i = 0; i < DCBT_HIST_BINS; i++)
			json_u64(NULL, class_of(st, c)->hist[i]);
		close_json_array(PRINT_JSON, NULL);
		close_json_object();
	}
}

static void text_stats(FILE *f, const struct tc_dcbt_xstats *st)
{
	char buf[TEXT_SIZE];
	size_t i, c;

	fprintf(f, "  average %.4gp max-p %.4g packet %s", (double)st->average / Q24_ONE,
		(double)st->max_p / Q24_ONE,
		st->packet_ns ? measured_time(st->packet_ns, buf) : "not known yet");
	if (st->flow_missed)
		fprintf(f, " flows without a slot %llu", (unsigned long long)st->flow_missed);
	if (st->not_cut)
		fprintf(f, " not segmented %llu", (unsigned long long)st->not_cut);
	print_nl();
	fprintf(f, "  %-12s", "");
	for (c = 0; c < ARRAY_SIZE(classes); c++)
		fprintf(f, " %14s", classes[c].name);
	print_nl();
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		fprintf(f, "  %-12s", rows[i].name);
		for (c = 0; c < ARRAY_SIZE(classes); c++)
			fprintf(f, " %14s", text_cell(&rows[i], class_of(st, c), buf));
		print_nl();
	}
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
