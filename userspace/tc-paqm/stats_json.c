// SPDX-License-Identifier: GPL-2.0
/*
 * Statistics of sch_paqm as JSON. One table describes the fields of a class, one those of the
 * qdisc, one those of a flow.
 */
#include <arpa/inet.h>
#include <stddef.h>
#include <string.h>

#include "core/paqm_hist.h"
#include "kernel/uapi/linux/pkt_sched_paqm.h"
#include "userspace/tc-paqm/tc_plugin.h"
#include "userspace/tc-paqm/show.h"
#include "userspace/tc-paqm/stats_parts.h"

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
	XSTATS_FIELD(U64, room_bytes, "room_bytes"),
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

void widen_class(const struct tc_paqm_class_stats *st, struct tc_paqm_class_counts *n)
{
	size_t i;

	widen(class_fields, ARRAY_SIZE(class_fields), st, n);
	for (i = 0; i < PAQM_HIST_BINS; i++)
		n->hist[i] = st->hist[i];
}

void widen_xstats(struct tc_paqm_xstats *st)
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

void json_class(const struct tc_paqm_class_stats *st, const struct tc_paqm_class_counts *n)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(class_fields); i++)
		if (class_fields[i].form == FORM_COUNT)
			json_u64(class_fields[i].key, wide_at(n, &class_fields[i]));
		else
			json_field(&class_fields[i],
				   (const unsigned char *)st + class_fields[i].offset);
	json_float("survival", survival(st));
	json_float("sojourn_mean_us", mean_sojourn_ns(st, n) / 1000);
	json_u64("sojourn_p50_us", quantile_ns(st, n, 500) / 1000);
	json_u64("sojourn_p99_us", quantile_ns(st, n, 990) / 1000);
	open_json_array(PRINT_JSON, "sojourn_hist_packets");
	for (i = 0; i < PAQM_HIST_BINS; i++)
		json_u64(NULL, n->hist[i]);
	close_json_array(PRINT_JSON, NULL);
}

void json_xstats(const struct tc_paqm_xstats *st, size_t len)
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

void json_flow(const struct tc_paqm_flow_stats *st)
{
	char buf[TEXT_SIZE];
	size_t i;

	json_bool("follows", st->hears & PAQM_FOLLOWS);
	open_json_array(PRINT_JSON, "hears");
	for (i = 0; hears_words[i].word; i++)
		if (st->hears & hears_words[i].bit)
			json_string(NULL, hears_words[i].word);
	close_json_array(PRINT_JSON, NULL);

	json_string("source", show_address(st->family, st->saddr, buf));
	json_string("destination", show_address(st->family, st->daddr, buf));
	for (i = 0; i < ARRAY_SIZE(flow_fields); i++)
		json_field(&flow_fields[i], (const unsigned char *)st + flow_fields[i].offset);
}
