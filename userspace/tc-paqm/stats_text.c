// SPDX-License-Identifier: GPL-2.0
/*
 * Statistics of sch_paqm as text: a table of both classes, and lines of words.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>

#include "core/paqm_hist.h"
#include "kernel/uapi/linux/pkt_sched_paqm.h"
#include "userspace/tc-paqm/tc_plugin.h"
#include "userspace/tc-paqm/show.h"
#include "userspace/tc-paqm/stats_parts.h"

#define COUNT(n) ((unsigned long long)(n)) /* as printf() knows it */

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
		return measured_time(mean_sojourn_ns(st, n), buf);
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
void text_classes(FILE *f, const struct tc_paqm_class_stats *const *st,
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
void text_xstats(FILE *f, const struct tc_paqm_xstats *st, size_t len)
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

static void text_end(FILE *f, __u8 family, const __u8 *addr, __u16 port)
{
	char buf[TEXT_SIZE];

	fprintf(f, family == 6 ? " [%s]:%u" : " %s:%u", show_address(family, addr, buf),
		ntohs(port));
}

void text_flow(FILE *f, const struct tc_paqm_flow_stats *st)
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
	for (i = 0; hears_words[i].word; i++)
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
