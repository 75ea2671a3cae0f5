/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Histogram of sojourn times, two bins per octave, cheap enough for every packet.
 * RFC 9332 section 2.5.2 asks an AQM for mean and 99th percentile of the delay.
 *
 * Times are taken in units of 1024 ns. Bin 0 is [0, 32) units; bin i > 0 begins
 * at 32 * 2^((i-1)/2) units for odd i and at 1.5 times the bin before for even i.
 */
#ifndef PAQM_HIST_H
#define PAQM_HIST_H

#include "paqm_fix.h"

#define PAQM_HIST_SIZE 32

/* Bin of a duration in ns. */
static inline paqm_u32 paqm_hist_bin(paqm_u64 ns)
{
	paqm_u64 units = ns >> 10;
	paqm_u32 bin;
	int top;

	if (units < 32)
		return 0;
	top = paqm_fls64(units);
	bin = 1 + 2 * (paqm_u32)(top - 6) + (paqm_u32)((units >> (top - 2)) & 1);
	return bin < PAQM_HIST_SIZE ? bin : PAQM_HIST_SIZE - 1;
}

/* Lower edge of a bin, ns; paqm_hist_edge(i + 1) is the upper one. */
static inline paqm_u64 paqm_hist_edge(paqm_u32 bin)
{
	paqm_u64 octave;

	if (!bin)
		return 0;
	octave = 32ULL << ((bin - 1) / 2);
	return (octave + ((bin - 1) & 1 ? octave / 2 : 0)) << 10;
}

/**
 * paqm_hist_quantile() - duration that a fraction of the samples stays below
 * @hist: counts
 * @permille: fraction, 0..1000
 *
 * Return: ns, linear inside the bin; 0 for an empty histogram.
 */
static inline paqm_u64 paqm_hist_quantile(const paqm_u64 *hist, paqm_u32 permille)
{
	paqm_u64 total = 0, want, below = 0, lo, hi;
	paqm_u32 i;

	for (i = 0; i < PAQM_HIST_SIZE; i++)
		total += hist[i];
	if (!total)
		return 0;
	want = paqm_div64(total * permille + 999, 1000);
	for (i = 0; i < PAQM_HIST_SIZE - 1 && below + hist[i] < want; i++)
		below += hist[i];
	lo = paqm_hist_edge(i);
	hi = paqm_hist_edge(i + 1);
	if (!hist[i] || want <= below)
		return lo;
	return lo + paqm_muldiv(hi - lo, want - below, hist[i]);
}

#endif /* PAQM_HIST_H */
