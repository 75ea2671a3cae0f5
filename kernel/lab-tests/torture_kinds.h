/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Options of the qdiscs, classes and filters of the torture test; see torture_kinds.c.
 */
#ifndef TORTURE_KINDS_H
#define TORTURE_KINDS_H

#include <stdbool.h>
#include <stdint.h>
#include "../uapi/linux/pkt_sched_paqm.h"

#define PAQM_ATTRS (TCA_PAQM_MAX + 3) /* some beyond what there is */
#define LADDER 80

/* What the kernel took for an attribute: width and accepted steps of the ladder. */
struct known {
	int width; /* 0: none */
	int count;
	uint64_t value[LADDER];
};

extern struct known known[PAQM_ATTRS + 1];

/* A qdisc that is tried: its options, sensible ones or whatever, and how often. */
struct kind {
	const char *name;
	void (*options)(bool valid);
	bool classful;
	uint8_t weight;
};

extern const struct kind kinds[]; /* the first is paqm */

void opt_paqm(bool valid);
void opt_none(bool valid);
const struct kind *kind_of(const char *name);
const struct kind *random_kind(void);
void opt_stab(void);
bool hfsc_real_time(void);
void opt_class(const char *kind, bool valid);
void opt_filter(const char *kind, uint32_t classid, const uint32_t *devices, int count);

#endif /* TORTURE_KINDS_H */
