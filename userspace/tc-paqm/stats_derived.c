// SPDX-License-Identifier: GPL-2.0
/*
 * What follows from the statistics of sch_paqm: means, quantiles, loads, names of numbers.
 */
#include "core/paqm_hist.h"
#include "kernel/uapi/linux/pkt_sched_paqm.h"
#include "userspace/tc-paqm/tc_plugin.h"
#include "userspace/tc-paqm/show.h"
#include "userspace/tc-paqm/stats_parts.h"

_Static_assert(PAQM_HIST_BINS == PAQM_HIST_SIZE, "the histogram of core/ and of the UAPI differ");

/* Where the capacity comes from. */
const char *source_word(__u32 source, char *buf)
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

/* Of the packets whose wait is in the sum: media's from overflow queues have sums of their own. */
double mean_sojourn_ns(const struct tc_paqm_class_stats *st, const struct tc_paqm_class_counts *n)
{
	__u64 packets = 0;
	size_t i;

	for (i = 0; i < PAQM_HIST_BINS; i++)
		packets += n->hist[i];
	/* those of a class have 32 bits */
	if (st->sent_packets > packets)
		packets += (st->sent_packets - packets) >> 32 << 32;
	return packets ? (double)st->sojourn_ns / packets : 0;
}

/* The mean of the bin's bounds must not exceed what was really seen. */
__u64 quantile_ns(const struct tc_paqm_class_stats *st, const struct tc_paqm_class_counts *n,
		  __u32 permille)
{
	/* the core's own type of 64 bits is another one on some machines, of the same size */
	__u64 ns = paqm_hist_quantile((const paqm_u64 *)n->hist, permille);
	__u64 max = (__u64)st->sojourn_max_us * 1000;

	return max && ns > max ? max : ns;
}

/* Part of what the link could have carried since creation, 0 before any time passed. */
double utilisation(const struct tc_paqm_xstats *st)
{
	double sent = (double)(st->media.sent_bytes + st->elastic.sent_bytes);

	return st->room_bytes ? sent / (double)st->room_bytes : 0;
}

/* What arrives now as a part of capacity. */
double load(const struct tc_paqm_xstats *st)
{
	return st->capacity ? (double)(st->media.rate + st->elastic.rate) / st->capacity : 0;
}

/* A wait that no congested queue keeps below. */
#define SHORT_US 1000U

bool saw_nothing(const struct tc_paqm_xstats *st)
{
	return !st->media.arrived_bytes && !st->elastic.arrived_bytes;
}

__u32 longest_wait_us(const struct tc_paqm_xstats *st)
{
	return st->media.sojourn_max_us > st->elastic.sojourn_max_us ? st->media.sojourn_max_us
								     : st->elastic.sojourn_max_us;
}

/* Whether packets passed for a while and none ever met a queue, a mark or a drop here. */
bool never_congested(const struct tc_paqm_xstats *st)
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

double survival(const struct tc_paqm_class_stats *st)
{
	return 1 - st->prob / Q32_ONE;
}

const struct hears_word hears_words[] = {
	{PAQM_HEARS_MESSAGE, "message"},
	{PAQM_HEARS_INBAND, "in-band"},
	{PAQM_HEARS_MARK, "mark"},
	{PAQM_HEARS_LOSS, "loss"},
	{0, NULL},
};
