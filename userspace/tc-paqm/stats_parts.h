/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the parts of the statistics share: what follows from them, and each kind as JSON and text.
 */
#ifndef PAQM_TC_STATS_PARTS_H
#define PAQM_TC_STATS_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <linux/types.h>

#include "kernel/uapi/linux/pkt_sched_paqm.h"

#define Q32_ONE 4294967296.0
/* Before this age nothing is said about what never happened. */
#define YOUNG_NS 10000000000ULL

/* Where the capacity comes from; @buf: TEXT_SIZE. */
const char *source_word(__u32 source, char *buf);
double mean_sojourn_ns(const struct tc_paqm_class_stats *st, const struct tc_paqm_class_counts *n);
__u64 quantile_ns(const struct tc_paqm_class_stats *st, const struct tc_paqm_class_counts *n,
		  __u32 permille);
/* Part of what the link could have carried since creation, 0 before any time passed. */
double utilisation(const struct tc_paqm_xstats *st);
/* What arrives now as a part of capacity. */
double load(const struct tc_paqm_xstats *st);
bool saw_nothing(const struct tc_paqm_xstats *st);
__u32 longest_wait_us(const struct tc_paqm_xstats *st);
/* Whether packets passed for a while and none ever met a queue, a mark or a drop here. */
bool never_congested(const struct tc_paqm_xstats *st);
double survival(const struct tc_paqm_class_stats *st);

/* By what a flow may know its fair rate. A word of NULL ends the list. */
struct hears_word {
	__u32 bit;
	const char *word;
};
extern const struct hears_word hears_words[];

/* Counts of 64 bits from those of 32, for a module that sends no others. */
void widen_class(const struct tc_paqm_class_stats *st, struct tc_paqm_class_counts *n);
void widen_xstats(struct tc_paqm_xstats *st);

/* @len: bytes that the module sent; what it does not know is not shown as 0. */
void json_xstats(const struct tc_paqm_xstats *st, size_t len);
void text_xstats(FILE *f, const struct tc_paqm_xstats *st, size_t len);
void json_class(const struct tc_paqm_class_stats *st, const struct tc_paqm_class_counts *n);
/* One column per class. */
void text_classes(FILE *f, const struct tc_paqm_class_stats *const *st,
		  const struct tc_paqm_class_counts *const *n, size_t classes);
void json_flow(const struct tc_paqm_flow_stats *st);
void text_flow(FILE *f, const struct tc_paqm_flow_stats *st);

#endif /* PAQM_TC_STATS_PARTS_H */
