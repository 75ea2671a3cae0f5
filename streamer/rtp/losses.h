/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What share of a stream's packets has been lost lately, by receiver reports (RFC 3550 section
 * 6.4.1). One report is about few packets; this looks at the last LOSSES_REPORTS of them together.
 *
 * Pure functions: no clock, no I/O.
 */
#ifndef PAQM_LOSSES_H
#define PAQM_LOSSES_H

#include <stdint.h>

#define LOSSES_REPORTS 10

/**
 * struct losses
 * @n: reports that are remembered
 * @at: where the next one goes
 */
struct losses {
	unsigned int n, at;
	struct {
		uint32_t highest; /* sequence number, extended */
		int32_t lost;	  /* in all */
	} seen[LOSSES_REPORTS];
};

/* A report has come; what begins anew is another stream. */
void losses_report(struct losses *l, uint32_t highest, int32_t lost);

/* Per cent of the packets between the oldest report and the newest, rounded up: 0 is none. */
unsigned int losses_percent(const struct losses *l);

#endif /* PAQM_LOSSES_H */
