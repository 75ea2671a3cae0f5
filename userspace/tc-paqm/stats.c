// SPDX-License-Identifier: GPL-2.0
/*
 * Statistics of sch_paqm. One table describes the fields of a class, one those of the
 * qdisc, one those of a flow; JSON is derived from them.
 */
#include <arpa/inet.h>
#include <stddef.h>
#include <string.h>

#include "core/paqm_hist.h"
#include "kernel/uapi/linux/pkt_sched_paqm.h"
#include "userspace/tc-paqm/tc_plugin.h"
#include "userspace/tc-paqm/show.h"
#include "userspace/tc-paqm/stats.h"

#define Q32_ONE 4294967296.0
#define COUNT(n) ((unsigned long long)(n)) /* as printf() knows it */

_Static_assert(PAQM_HIST_BINS == PAQM_HIST_SIZE, "the histogram of core/ and of the UAPI differ");

enum form {
	FORM_U8,
	FORM_U16,
	FORM_BE16,
	FORM_U32,
	FORM_COUNT, /* 32 bits that have 64 elsewhere */
	FORM_U64,
	FORM_Q16,
	FORM_WIDE_Q16,
	FORM_Q24,
	FORM_Q32,
	FORM_F32,
	FORM_HEX,
	FORM_SOURCE,
};

struct field {
	const char *key;
	unsigned short offset;
	unsigned char form;
	unsigned short wide; /* FORM_COUNT: offset of its 64 bits */
};

#define FIELD(struct_, form_, member_, key_)                                                       \
	{                                                                                          \
		.key = (key_), .offset = offsetof(struct struct_, member_), .form = FORM_##form_   \
	}
#define CLASS_FIELD(form, member, key) FIELD(tc_paqm_class_stats, form, member, key)
#define XSTATS_FIELD(form, member, key) FIELD(tc_paqm_xstats, form, member, key)
#define CLASS_COUNT(member_, key_)                                                                 \
	{                                                                                          \
		.key = (key_), .offset = offsetof(struct tc_paqm_class_stats, member_),            \
		.form = FORM_COUNT, .wide = offsetof(struct tc_paqm_class_counts, member_)         \
	}
#define XSTATS_COUNT(member_, key_)                                                                \
	{                                                                                          \
		.key = (key_), .offset = offsetof(struct tc_paqm_xstats, member_),                 \
		.form = FORM_COUNT, .wide = offsetof(struct tc_paqm_counts, member_)               \
	}
#define FLOW_FIELD(form, member, key) FIELD(tc_paqm_flow_stats, form, member, key)

static const struct field class_fields[] = {
	CLASS_FIELD(U64, sent_bytes, "sent_bytes"),
	CLASS_FIELD(U64, sent_packets, "sent_packets"),
	CLASS_FIELD(U64, arrived_bytes, "arrived_bytes"),
	CLASS_FIELD(U64, sojourn_ns, "sojourn_sum_ns"),
	CLASS_FIELD(U32, backlog, "backlog_bytes"),
	CLASS_FIELD(U32, qlen, "backlog_packets"),
	CLASS_COUNT(drop_tail, "drop_tail_packets"),
	CLASS_COUNT(drop_inner, "drop_inner_packets"),
	CLASS_COUNT(drop_strike, "drop_strike_packets"),
	CLASS_COUNT(ecn_mark, "ecn_mark_packets"),
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
	XSTATS_COUNT(notices_owed, "notices_owed"),
	XSTATS_COUNT(notices_sent, "notices_sent"),
	XSTATS_COUNT(notices_limited, "notices_limited"),
	XSTATS_COUNT(notices_ring, "notices_ring"),
	XSTATS_COUNT(notices_refused, "notices_refused"),
	XSTATS_COUNT(notices_failed, "notices_failed"),
	XSTATS_COUNT(notices_unfit, "notices_unfit_packets"),
	XSTATS_COUNT(inband_kept, "inband_kept_packets"),
	XSTATS_COUNT(inband_lowered, "inband_lowered_packets"),
	XSTATS_COUNT(inband_left, "inband_left_packets"),
	XSTATS_FIELD(U32, table_slots, "table_slots"),
	XSTATS_FIELD(U32, table_used, "table_used"),
	XSTATS_COUNT(table_overflow, "table_overflow_flows"),
	XSTATS_FIELD(U32, timer_slips, "timer_slips"),
	XSTATS_FIELD(U32, overload, "overload_episodes"),
	XSTATS_FIELD(U32, transfers, "transfers"),
	XSTATS_FIELD(U32, strikes, "strikes_flows"),
	XSTATS_COUNT(not_ip, "not_ip_packets"),
	XSTATS_COUNT(filter_drop, "filter_drop_packets"),
	XSTATS_COUNT(filter_taken, "filter_taken_packets"),
	XSTATS_FIELD(SOURCE, capacity_source, "capacity_source"),
	XSTATS_FIELD(U32, rtt_mean_us, "rtt_mean_us"),
	XSTATS_FIELD(U32, rtt_max_us, "rtt_max_us"),
	XSTATS_FIELD(U32, rtt_samples, "rtt_samples"),
	XSTATS_FIELD(U32, echo_sent, "echo_sent"),
	XSTATS_FIELD(U32, echo_answered, "echo_answered"),
	XSTATS_FIELD(U32, echo_limited, "echo_limited"),
	XSTATS_COUNT(echo_unknown, "echo_unknown"),
	XSTATS_COUNT(flows_seen, "seen_flows"),
	XSTATS_COUNT(flows_rtp, "rtp_flows"),
	XSTATS_COUNT(flows_not_rtp, "not_rtp_flows"),
	XSTATS_COUNT(packets_unsure, "unsure_packets"),
	XSTATS_COUNT(packets_small, "small_packets"),
	XSTATS_COUNT(packets_small_over, "small_over_packets"),
	XSTATS_COUNT(packets_dscp, "dscp_packets"),
	XSTATS_COUNT(packets_tagged, "tagged_packets"),
	XSTATS_COUNT(packets_tunnel, "tunnel_packets"),
	XSTATS_COUNT(packets_fragment, "fragment_packets"),
	XSTATS_FIELD(U64, overload_ns, "overload_ns"),
	XSTATS_FIELD(U32, echo_late, "echo_late"),
	XSTATS_FIELD(U32, echo_refused, "echo_refused"),
	XSTATS_FIELD(U32, echo_failed, "echo_failed"),
	XSTATS_FIELD(Q16, headroom_q16, "headroom"),
	XSTATS_FIELD(U32, over_queues, "over_queues"),
	XSTATS_COUNT(over_packets, "over_packets"),
	XSTATS_COUNT(over_strangers, "over_stranger_packets"),
	XSTATS_COUNT(over_drops, "over_drop_packets"),
	XSTATS_COUNT(over_full, "over_full_packets"),
	XSTATS_COUNT(over_marks, "over_mark_packets"),
	XSTATS_FIELD(U32, over_qlen, "over_backlog_packets"),
	XSTATS_FIELD(U32, over_backlog, "over_backlog_bytes"),
	XSTATS_FIELD(U32, flows_deaf, "deaf_flows"),
	XSTATS_FIELD(U64, over_sent, "over_sent_packets"),
	XSTATS_FIELD(U64, over_sojourn_ns, "over_sojourn_sum_ns"),
	XSTATS_FIELD(U32, flows_new, "new_flows"),
	XSTATS_FIELD(Q16, newcomers_q16, "newcomers_stay"),
	XSTATS_COUNT(packets_control, "control_packets"),
};

static const struct field flow_fields[] = {
	FLOW_FIELD(U8, proto, "protocol"),	     FLOW_FIELD(BE16, sport, "source_port"),
	FLOW_FIELD(BE16, dport, "destination_port"), FLOW_FIELD(U64, rate, "rate_bps"),
	FLOW_FIELD(U64, share, "share_bps"),	     FLOW_FIELD(U64, told, "told_bps"),
	FLOW_FIELD(U32, told_ms, "told_ms"),	     FLOW_FIELD(U32, idle_ms, "idle_ms"),
	FLOW_FIELD(U16, strikes, "strikes"),	     FLOW_FIELD(Q32, drop, "prob"),
	FLOW_FIELD(U32, lost, "lost_packets"),	     FLOW_FIELD(U32, marked, "mark_packets"),
	FLOW_FIELD(U32, waiting, "backlog_bytes"),
};

/* Where the capacity comes from. */
static const char *source_word(__u32 source, char *buf)
{
	static const char *const words[] = {
		[PAQM_CAPACITY_GIVEN] = "given",
		[PAQM_CAPACITY_DEVICE] = "device",
		[PAQM_CAPACITY_GUESS] = "guess",
		[PAQM_CAPACITY_MEASURED] = "measured",
	};

	/* A newer kernel may know more of them. */
	if (source < ARRAY_SIZE(words))
		return words[source];
	snprintf(buf, TEXT_SIZE, "%u", source);
	return buf;
}

static size_t field_size(const struct field *field)
{
	switch (field->form) {
	case FORM_U8:
		return sizeof(__u8);
	case FORM_U16:
	case FORM_BE16:
		return sizeof(__u16);
	case FORM_U64:
	case FORM_WIDE_Q16:
	case FORM_HEX:
		return sizeof(__u64);
	default:
		return sizeof(__u32);
	}
}

static __u64 wide_at(const void *counts, const struct field *field)
{
	__u64 wide;

	memcpy(&wide, (const char *)counts + field->wide, sizeof(wide));
	return wide;
}

/* What the module has sent of 64 bit counts, or, if it knows none, from those of 32 bits. */
static void widen(const struct field *fields, size_t n, const void *from, void *counts)
{
	__u64 wide;
	__u32 word;
	size_t i;

	for (i = 0; i < n; i++) {
		if (fields[i].form != FORM_COUNT)
			continue;
		memcpy(&word, (const char *)from + fields[i].offset, sizeof(word));
		wide = word;
		memcpy((char *)counts + fields[i].wide, &wide, sizeof(wide));
	}
}

static void widen_class(const struct tc_paqm_class_stats *st, struct tc_paqm_class_counts *n)
{
	size_t i;

	widen(class_fields, ARRAY_SIZE(class_fields), st, n);
	for (i = 0; i < PAQM_HIST_BINS; i++)
		n->hist[i] = st->hist[i];
}

static void widen_xstats(struct tc_paqm_xstats *st)
{
	size_t i;

	widen(xstats_fields, ARRAY_SIZE(xstats_fields), st, &st->counts);
	widen_class(&st->media, &st->counts.media);
	widen_class(&st->elastic, &st->counts.elastic);
	for (i = 0; i < PAQM_HIST_BINS; i++)
		st->counts.over_hist[i] = st->over_hist[i];
}

static void json_field(const struct field *field, const unsigned char *at)
{
	char buf[TEXT_SIZE];
	__u64 wide = 0;
	__u32 word = 0;
	__u16 half = 0;
	float real;

	switch (field_size(field)) {
	case sizeof(wide):
		memcpy(&wide, at, sizeof(wide));
		break;
	case sizeof(word):
		memcpy(&word, at, sizeof(word));
		break;
	case sizeof(half):
		memcpy(&half, at, sizeof(half));
		break;
	}
	switch (field->form) {
	case FORM_U8:
		json_u64(field->key, *at);
		break;
	case FORM_U16:
		json_u64(field->key, half);
		break;
	case FORM_BE16:
		json_u64(field->key, ntohs(half));
		break;
	case FORM_U32:
		json_u64(field->key, word);
		break;
	case FORM_U64:
		json_u64(field->key, wide);
		break;
	case FORM_Q16:
		json_float(field->key, word / (double)Q16_ONE);
		break;
	case FORM_WIDE_Q16:
		json_float(field->key, wide / (double)Q16_ONE);
		break;
	case FORM_Q24:
		json_float(field->key, word / (double)Q24_ONE);
		break;
	case FORM_Q32:
		json_float(field->key, word / Q32_ONE);
		break;
	case FORM_F32:
		memcpy(&real, &word, sizeof(real));
		json_float(field->key, real);
		break;
	case FORM_HEX:
		snprintf(buf, sizeof(buf), "%016llx", (unsigned long long)wide);
		json_string(field->key, buf);
		break;
	case FORM_SOURCE:
		json_string(field->key, source_word(word, buf));
		break;
	}
}

static double mean_sojourn_ns(const struct tc_paqm_class_stats *st)
{
	return st->sent_packets ? (double)st->sojourn_ns / st->sent_packets : 0;
}

/* The mean of the bin's bounds must not exceed what was really seen. */
static __u64 quantile_ns(const struct tc_paqm_class_stats *st, const struct tc_paqm_class_counts *n,
			 __u32 permille)
{
	/* the core's own type of 64 bits is another one on some machines, of the same size */
	__u64 ns = paqm_hist_quantile((const paqm_u64 *)n->hist, permille);
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

/* Before this age nothing is said about what never happened. */
#define YOUNG_NS 10000000000ULL
/* A wait that no congested queue keeps below. */
#define SHORT_US 1000U

static bool saw_nothing(const struct tc_paqm_xstats *st)
{
	return !st->media.arrived_bytes && !st->elastic.arrived_bytes;
}

static __u32 longest_wait_us(const struct tc_paqm_xstats *st)
{
	return st->media.sojourn_max_us > st->elastic.sojourn_max_us ? st->media.sojourn_max_us
								     : st->elastic.sojourn_max_us;
}

/* Whether packets passed for a while and none ever met a queue, a mark or a drop here. */
static bool never_congested(const struct tc_paqm_xstats *st)
{
	const struct tc_paqm_class_counts *const classes[] = {&st->counts.media,
							      &st->counts.elastic};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(classes); i++)
		if (classes[i]->drop_tail || classes[i]->drop_inner || classes[i]->drop_strike ||
		    classes[i]->ecn_mark)
			return false;
	return st->uptime_ns >= YOUNG_NS && !saw_nothing(st) &&
	       st->idle_ns >= st->uptime_ns / 100 * 99 && longest_wait_us(st) < SHORT_US;
}

static double survival(const struct tc_paqm_class_stats *st)
{
	return 1 - st->prob / Q32_ONE;
}

static void json_class(const struct tc_paqm_class_stats *st, const struct tc_paqm_class_counts *n)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(class_fields); i++)
		if (class_fields[i].form == FORM_COUNT)
			json_u64(class_fields[i].key, wide_at(n, &class_fields[i]));
		else
			json_field(&class_fields[i],
				   (const unsigned char *)st + class_fields[i].offset);
	json_float("survival", survival(st));
	json_float("sojourn_mean_us", mean_sojourn_ns(st) / 1000);
	json_u64("sojourn_p50_us", quantile_ns(st, n, 500) / 1000);
	json_u64("sojourn_p99_us", quantile_ns(st, n, 990) / 1000);
	open_json_array(PRINT_JSON, "sojourn_hist_packets");
	for (i = 0; i < PAQM_HIST_BINS; i++)
		json_u64(NULL, n->hist[i]);
	close_json_array(PRINT_JSON, NULL);
}

static void json_xstats(const struct tc_paqm_xstats *st, size_t len)
{
	size_t i;

	open_json_object("media");
	json_class(&st->media, &st->counts.media);
	close_json_object();
	open_json_object("elastic");
	json_class(&st->elastic, &st->counts.elastic);
	close_json_object();
	for (i = 0; i < ARRAY_SIZE(xstats_fields); i++) {
		const struct field *field = &xstats_fields[i];

		if (field->offset + field_size(field) > len)
			continue;
		if (field->form == FORM_COUNT)
			json_u64(field->key, wide_at(&st->counts, field));
		else
			json_field(field, (const unsigned char *)st + field->offset);
	}
	json_float("utilisation", utilisation(st));
	if (len > offsetof(struct tc_paqm_xstats, over_hist)) {
		open_json_array(PRINT_JSON, "over_sojourn_hist_packets");
		for (i = 0; i < PAQM_HIST_BINS; i++)
			json_u64(NULL, st->counts.over_hist[i]);
		close_json_array(PRINT_JSON, NULL);
	}
	json_float("load", load(st));
	json_bool("never_congested", never_congested(st));
	open_json_array(PRINT_JSON, "sojourn_edges_ns");
	for (i = 0; i < PAQM_HIST_BINS; i++)
		json_u64(NULL, paqm_hist_edge(i));
	close_json_array(PRINT_JSON, NULL);
}

/* Rows of the table of classes. */
enum cell {
	CELL_U32,
	CELL_U64,
	CELL_COUNT, /* of struct tc_paqm_class_counts */
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
#undef ROW
#define ROW(member_, name_)                                                                        \
	{                                                                                          \
		.name = (name_), .offset = offsetof(struct tc_paqm_class_counts, member_),         \
		.cell = CELL_COUNT                                                                 \
	}
	ROW(ecn_mark, "ecn marks"),
	ROW(drop_tail, "drop tail"),
	ROW(drop_inner, "drop inner"),
	ROW(drop_strike, "drop strike"),
#undef ROW
};

static const char *format_cell(const struct row *row, const struct tc_paqm_class_stats *st,
			       const struct tc_paqm_class_counts *n, char *buf)
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
		return measured_time(quantile_ns(st, n, 500), buf);
	case CELL_P99:
		return measured_time(quantile_ns(st, n, 990), buf);
	case CELL_MAX:
		return measured_time(st->sojourn_max_us * 1000ULL, buf);
	case CELL_SURVIVAL:
		snprintf(buf, TEXT_SIZE, "%.4g%%", 100 * survival(st));
		return buf;
	}
	memcpy(&wide, (row->cell == CELL_COUNT ? (const char *)n : (const char *)st) + row->offset,
	       sizeof(wide));
	if (row->cell == CELL_RATE)
		return measured_rate(wide, buf);
	snprintf(buf, TEXT_SIZE, "%llu", (unsigned long long)wide);
	return buf;
}

/* One column per class. */
static void text_classes(FILE *f, const struct tc_paqm_class_stats *const *st,
			 const struct tc_paqm_class_counts *const *n, size_t classes)
{
	char buf[TEXT_SIZE];
	size_t i, j;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		fprintf(f, "  %-12s", rows[i].name);
		for (j = 0; j < classes; j++)
			fprintf(f, " %14s", format_cell(&rows[i], st[j], n[j], buf));
		print_nl();
	}
}

/* Counters of the recogniser that are not 0; nothing if all are. */
static void text_recogniser(FILE *f, const struct tc_paqm_counts *st)
{
	const struct {
		const char *name;
		__u64 value;
	} counts[] = {
		{"flows seen", st->flows_seen},	      {"RTP", st->flows_rtp},
		{"not RTP", st->flows_not_rtp},	      {"packets unsure", st->packets_unsure},
		{"small", st->packets_small},	      {"small over budget", st->packets_small_over},
		{"control", st->packets_control},     {"by DSCP", st->packets_dscp},
		{"tagged", st->packets_tagged},	      {"tunnel", st->packets_tunnel},
		{"fragment", st->packets_fragment},   {"not IP", st->not_ip},
		{"filters dropped", st->filter_drop}, {"filters took", st->filter_taken},
	};
	bool any = false;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(counts); i++) {
		if (!counts[i].value)
			continue;
		if (!any)
			print_nl();
		fprintf(f, "%s %s %llu", any ? "" : "  recogniser:", counts[i].name,
			COUNT(counts[i].value));
		any = true;
	}
}

/* What media flows sent beyond their fair rate; nothing if none did. */
static void text_overflow(FILE *f, const struct tc_paqm_xstats *st)
{
	const struct tc_paqm_counts *n = &st->counts;
	char buf[2][TEXT_SIZE];

	if (!n->over_packets)
		return;
	print_nl();
	fprintf(f,
		"  beyond the fair rate: packets %llu (new flows %llu) lost %llu full %llu "
		"marked %llu; "
		"waiting %ub in %u queues; wait mean %s p99 %s; flows %u",
		COUNT(n->over_packets), COUNT(n->over_strangers), COUNT(n->over_drops),
		COUNT(n->over_full), COUNT(n->over_marks), st->over_backlog, st->over_queues,
		measured_time(st->over_sent ? st->over_sojourn_ns / st->over_sent : 0, buf[0]),
		measured_time(paqm_hist_quantile((const paqm_u64 *)n->over_hist, 990), buf[1]),
		st->flows_deaf);
}

/* What somebody must know who wonders why nothing happens here. */
static void text_hint(FILE *f, const struct tc_paqm_xstats *st)
{
	char buf[TEXT_SIZE];

	if (never_congested(st)) {
		print_nl();
		fprintf(f,
			"  never congested here, longest wait %s: if the link is loaded, packets "
			"queue elsewhere, see NOTES in tc-paqm(8)",
			measured_time(longest_wait_us(st) * 1000ULL, buf));
	} else if (st->uptime_ns >= YOUNG_NS && saw_nothing(st)) {
		print_nl();
		fprintf(f, "  no packet came here: does traffic leave by this device?");
	}
}

static void text_details(FILE *f, const struct tc_paqm_xstats *st)
{
	char buf[4][TEXT_SIZE];
	float ecf;

	memcpy(&ecf, &st->ecf, sizeof(ecf));
	print_nl();
	fprintf(f, "  period %s skip %s rtt %s interval %s",
		measured_time(st->period_us * 1000ULL, buf[0]),
		measured_time(st->skip_us * 1000ULL, buf[1]),
		measured_time(st->rtt_us * 1000ULL, buf[2]),
		measured_time(st->interval_us * 1000ULL, buf[3]));
	print_nl();
	fprintf(f, "  measured %s trim %.3f erf flows %.2f ecf %g (md %u ai %u hold %u)",
		measured_rate(st->outer_rate, buf[0]), (double)st->trim_q24 / Q24_ONE,
		st->erf_flows_q16 / (double)Q16_ONE, ecf, st->ecf_md, st->ecf_ai, st->ecf_hold);
	print_nl();
	fprintf(f, "  router %016llx boot %08x seq %u", (unsigned long long)st->router_id, st->boot,
		st->seq);
}

/* @len: bytes that the module sent; what it does not know is not shown as 0. */
static void text_xstats(FILE *f, const struct tc_paqm_xstats *st, size_t len)
{
	const struct tc_paqm_class_stats *const classes[] = {&st->media, &st->elastic};
	const struct tc_paqm_class_counts *const numbers[] = {&st->counts.media,
							      &st->counts.elastic};
	const struct tc_paqm_counts *n = &st->counts;
	char buf[2][TEXT_SIZE];

	fprintf(f, "  capacity %s", measured_rate(st->capacity, buf[0]));
	if (len > offsetof(struct tc_paqm_xstats, capacity_source))
		fprintf(f, " (%s)", source_word(st->capacity_source, buf[0]));
	if (st->headroom_q16)
		fprintf(f, " headroom %.1f%%", st->headroom_q16 / 655.36);
	fprintf(f, " fair rate %s media share %.1f%% (phi %.1f%%)",
		measured_rate(st->fair_rate, buf[0]), st->share_q16 / 655.36, st->phi_q16 / 655.36);
	print_nl();
	fprintf(f, "  up %s idle %s utilisation %.1f%% load %.1f%%",
		measured_time(st->uptime_ns, buf[0]), measured_time(st->idle_ns, buf[1]),
		100 * utilisation(st), 100 * load(st));
	text_hint(f, st);
	print_nl();
	fprintf(f, "  %-12s %14s %14s", "", "media", "elastic");
	print_nl();
	text_classes(f, classes, numbers, ARRAY_SIZE(classes));
	fprintf(f, "  rounds %u by event: flow %u split %u capacity %u queue %u; transfers %u",
		st->rounds, st->event_flow, st->event_split, st->event_capacity, st->event_queue,
		st->transfers);
	print_nl();
	fprintf(f,
		"  notices sent %llu of %llu owed; limited %llu ring %llu refused %llu failed %llu",
		COUNT(n->notices_sent), COUNT(n->notices_owed), COUNT(n->notices_limited),
		COUNT(n->notices_ring), COUNT(n->notices_refused), COUNT(n->notices_failed));
	if (n->notices_unfit)
		fprintf(f, " unfit %llu", COUNT(n->notices_unfit));
	if (n->inband_kept || n->inband_lowered || n->inband_left) {
		print_nl();
		fprintf(f, "  rates in packets: lowered %llu kept %llu left %llu",
			COUNT(n->inband_lowered), COUNT(n->inband_kept), COUNT(n->inband_left));
	}
	if (st->echo_sent || st->echo_limited || st->echo_refused || st->echo_failed) {
		print_nl();
		fprintf(f,
			"  rtt mean %s max %s of %u senders; echo sent %u answered %u late %u "
			"limited %u refused %u failed %u unknown %llu",
			measured_time(st->rtt_mean_us * 1000ULL, buf[0]),
			measured_time(st->rtt_max_us * 1000ULL, buf[1]), st->rtt_samples,
			st->echo_sent, st->echo_answered, st->echo_late, st->echo_limited,
			st->echo_refused, st->echo_failed, COUNT(n->echo_unknown));
	}
	print_nl();
	fprintf(f, "  flow table %u/%u overflow %llu policed %u; overload %u", st->table_used,
		st->table_slots, COUNT(n->table_overflow), st->strikes, st->overload);
	if (st->overload_ns)
		fprintf(f, " (%s)", measured_time(st->overload_ns, buf[0]));
	fprintf(f, " timer slips %u", st->timer_slips);
	text_overflow(f, st);
	text_recogniser(f, &st->counts);
	if (show_details)
		text_details(f, st);
}

/* --- flows --------------------------------------------------------------- */

static const char *protocol_word(__u8 proto, char *buf)
{
	switch (proto) {
	case IPPROTO_UDP:
		return "udp";
	case IPPROTO_TCP:
		return "tcp";
	case IPPROTO_DCCP:
		return "dccp";
	case IPPROTO_UDPLITE:
		return "udplite";
	}
	snprintf(buf, TEXT_SIZE, "protocol %u", proto);
	return buf;
}

/* By what a flow may know its fair rate. */
static const struct {
	__u32 bit;
	const char *word;
} hears_words[] = {
	{PAQM_HEARS_MESSAGE, "message"},
	{PAQM_HEARS_INBAND, "in-band"},
	{PAQM_HEARS_MARK, "mark"},
	{PAQM_HEARS_LOSS, "loss"},
};

static void json_flow(const struct tc_paqm_flow_stats *st)
{
	char buf[TEXT_SIZE];
	size_t i;

	json_bool("follows", st->hears & PAQM_FOLLOWS);
	open_json_array(PRINT_JSON, "hears");
	for (i = 0; i < ARRAY_SIZE(hears_words); i++)
		if (st->hears & hears_words[i].bit)
			json_string(NULL, hears_words[i].word);
	close_json_array(PRINT_JSON, NULL);

	json_string("source", show_address(st->family, st->saddr, buf));
	json_string("destination", show_address(st->family, st->daddr, buf));
	for (i = 0; i < ARRAY_SIZE(flow_fields); i++)
		json_field(&flow_fields[i], (const unsigned char *)st + flow_fields[i].offset);
}

static void text_end(FILE *f, __u8 family, const __u8 *addr, __u16 port)
{
	char buf[TEXT_SIZE];

	fprintf(f, family == 6 ? " [%s]:%u" : " %s:%u", show_address(family, addr, buf),
		ntohs(port));
}

static void text_flow(FILE *f, const struct tc_paqm_flow_stats *st)
{
	char buf[2][TEXT_SIZE];
	size_t i;

	fprintf(f, "  %s", protocol_word(st->proto, buf[0]));
	text_end(f, st->family, st->saddr, st->sport);
	fprintf(f, " >");
	text_end(f, st->family, st->daddr, st->dport);
	print_nl();
	fprintf(f, "  rate %s share %s", measured_rate(st->rate, buf[0]),
		measured_rate(st->share, buf[1]));
	if (st->told)
		fprintf(f, " told %s %s ago", measured_rate(st->told, buf[0]),
			measured_time(st->told_ms * 1000000ULL, buf[1]));
	else
		fprintf(f, " not told");
	fprintf(f, " last packet %s ago", measured_time(st->idle_ms * 1000000ULL, buf[0]));
	print_nl();
	fprintf(f, "  %s; hears by", st->hears & PAQM_FOLLOWS ? "follows" : "does not follow");
	for (i = 0; i < ARRAY_SIZE(hears_words); i++)
		if (st->hears & hears_words[i].bit)
			fprintf(f, " %s", hears_words[i].word);
	if (!(st->hears & ~PAQM_FOLLOWS))
		fprintf(f, " nothing yet");
	if (st->lost || st->marked || st->waiting)
		fprintf(f, "; beyond its rate: lost %u marked %u waiting %ub", st->lost, st->marked,
			st->waiting);
	if (st->strikes || st->drop)
		fprintf(f, " strikes %u dropped with %.4g%%", st->strikes,
			100 * (st->drop / Q32_ONE));
}

/* --- what the kernel sent ------------------------------------------------ */

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
	if (len < sizeof(st))
		widen_xstats(&st);
	if (is_json_context())
		json_xstats(&st, len);
	else
		text_xstats(f, &st, len);
}
