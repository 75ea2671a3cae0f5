/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Outer law `maxmin` (default): the fair rate of adaptive media flows, computed
 * by water-filling over the measured rates of the counted flows.
 *
 * This is the family of ERICA+ (Kalyanaraman et al., IEEE/ACM ToN 8(1), 2000)
 * and of consistent marking (Charny, Clark, Jain, ICC 1995). Flows are kept in a
 * histogram of rates on a logarithmic scale, so the cost does not grow with the
 * number of flows. Only *limited* flows (those that do not use what they are
 * given) are binned; within a bin all flows are taken at the bin's mean. A bin's
 * sum is exact, so there is no error unless the water line cuts through a bin;
 * then R and its exact value both lie inside that bin (at most 25 % wide;
 * core/tests/test_law.c measures the error over random populations).
 */
#ifndef PAQM_MAXMIN_H
#define PAQM_MAXMIN_H

#include "paqm_law.h"

#define PAQM_MM_BINS 128
#define PAQM_MM_MIN_SHIFT 10 /* the lowest bin holds all below 2^10 bit/s */

/* A flow counts as using its rate from 85 % of it on. */
#define PAQM_MM_GREEDY_Q24 PAQM_Q24(85, 100)
/* Headroom of a limited flow, so that it can grow. */
#define PAQM_MM_HEADROOM_Q24 PAQM_Q24(110, 100)
/* Of what is held for a flow this part is given up in each window. */
#define PAQM_MM_HOLD_DIV 16

/**
 * struct paqm_mm - one round's census of the media flows
 * @greedy: flows that take part in the division. Those that do not listen are among them:
 *	what counts is what a flow is entitled to, not what it sends
 * @count: limited flows per bin
 * @sum: their rates per bin, bit/s
 */
struct paqm_mm {
	paqm_u32 greedy;
	paqm_u32 count[PAQM_MM_BINS];
	paqm_u64 sum[PAQM_MM_BINS];
};

/* Bin of a rate: four per octave from 2^PAQM_MM_MIN_SHIFT bit/s on. */
static inline paqm_u32 paqm_mm_bin(paqm_u64 bps)
{
	int top = paqm_fls64(bps) - 1;
	paqm_u32 bin;

	if (top < PAQM_MM_MIN_SHIFT)
		return 0;
	bin = (paqm_u32)(top - PAQM_MM_MIN_SHIFT) * 4 + (paqm_u32)((bps >> (top - 2)) & 3);
	return bin < PAQM_MM_BINS ? bin : PAQM_MM_BINS - 1;
}

static inline void paqm_mm_reset(struct paqm_mm *mm)
{
	paqm_u32 i;

	mm->greedy = 0;
	for (i = 0; i < PAQM_MM_BINS; i++) {
		mm->count[i] = 0;
		mm->sum[i] = 0;
	}
}

/**
 * paqm_mm_hold() - what is held for a flow, so that others are not told to use it
 * @held: what was, bit/s; 0 for a flow that is new
 * @before: its rate in the window before, bit/s; 0 if there was none
 * @bps: its rate in the window that has ended
 * @told: the fair rate that it was told last: no more is ever held; 0 if none
 * @queued: it may have waited in one of the two windows
 *
 * Senders that find their rate by the queue fall far below it when they have waited, and are back
 * within seconds. Were others offered what these leave, more would be sent than the link carries
 * until they have heard that it is gone again. So of what such a flow used a sixteenth is given up
 * in each window. Who falls where nothing waits wants less, or is limited elsewhere.
 *
 * Return: @bps, or what is left of @held, bit/s.
 */
static inline paqm_u64 paqm_mm_hold(paqm_u64 held, paqm_u64 before, paqm_u64 bps, paqm_u64 told,
				    int queued)
{
	if (!queued && held <= before)
		return bps;
	if (told)
		held = paqm_min64(held, told);
	return paqm_max64(bps, held - held / PAQM_MM_HOLD_DIV);
}

/**
 * paqm_mm_add() - count one adaptive flow
 * @mm: census
 * @bps: its measured rate, or what is held for it
 * @fair: the fair rate it was told last, bit/s; 0 for a flow that is new
 */
static inline void paqm_mm_add(struct paqm_mm *mm, paqm_u64 bps, paqm_u64 fair)
{
	paqm_u32 bin;

	if (!fair || bps >= paqm_mul_q24(fair, PAQM_MM_GREEDY_Q24)) {
		mm->greedy++;
		return;
	}
	bin = paqm_mm_bin(bps);
	mm->count[bin]++;
	mm->sum[bin] += bps;
}

/**
 * paqm_mm_period() - how long a round lasts
 * @period_us: at least
 * @began_ns: when it began
 *
 * Flows are measured in a part of it. A camera of 24 pictures a second makes six in 0.25 s; were
 * all rounds as long as that, the same three or four of the 3.6 that are due in 0.15 s would be
 * seen of it in each, and it would be believed to use 83 or 111 % of what it does, by its phase,
 * for ever. So lengths vary by a twelfth; with an eighth a camera of 15 would be seen by its phase.
 *
 * Return: us.
 */
static inline paqm_u32 paqm_mm_period(paqm_u32 period_us, paqm_u64 began_ns)
{
	paqm_u32 mixed = (paqm_u32)(began_ns >> 20) * 0x9E3779B1U >> 16;

	return period_us + (paqm_u32)((paqm_u64)(period_us / 12) * mixed >> 16);
}

/**
 * paqm_mm_target() - N_out, the length of the queue that senders are steered to
 * @cu: media share of the link, bit/s
 * @delay_us: how long it may take to send it
 * @packet: the longest packet, bytes
 *
 * The specification's least length is two packets (section 3.5), but what senders are steered to
 * stands: 24 ms at 1 Mbit/s. A single packet waits for nothing but one that is being sent.
 *
 * Return: bytes.
 */
static inline paqm_u32 paqm_mm_target(paqm_u64 cu, paqm_u32 delay_us, paqm_u32 packet)
{
	paqm_u64 bytes = paqm_bytes_in(cu, (paqm_u64)delay_us * 1000);

	return (paqm_u32)paqm_clamp64(bytes, packet, 1U << 30);
}

/**
 * paqm_mm_capacity() - capacity to divide
 * @cu: media share of the link, bit/s
 * @rho_q24: target utilisation
 * @beta_q24: gain of the queue term
 * @target: N_out, bytes
 * @backlog: media queue now, bytes
 * @period_us: d
 *
 * C = rho c_u + beta (N_out - Q) 8 / d, clamped to [0.5, 1.1] c_u.
 *
 * Return: C, bit/s.
 */
static inline paqm_u64 paqm_mm_capacity(paqm_u64 cu, paqm_u32 rho_q24, paqm_u32 beta_q24,
					paqm_u32 target, paqm_u32 backlog, paqm_u32 period_us)
{
	paqm_u64 base = paqm_mul_q24(cu, rho_q24);
	paqm_u64 err = target >= backlog ? target - backlog : backlog - target;
	paqm_u64 term = paqm_muldiv(err * 8000000ULL, beta_q24, period_us) >> 24;

	if (target >= backlog)
		base += paqm_min64(term, cu);
	else
		base = base > term ? base - term : 0;
	return paqm_clamp64(base, cu / 2, paqm_mul_q24(cu, PAQM_MM_HEADROOM_Q24));
}

/* An equal part of @bps for each of @flows and of the takers beside them. */
static inline paqm_u64 paqm_mm_part(paqm_u64 bps, paqm_u32 flows, paqm_u32 others_q16)
{
	paqm_u64 parts = ((paqm_u64)(flows ? flows : 1) << 16) + others_q16;

	return others_q16 ? paqm_muldiv(bps, PAQM_Q16_ONE, parts) : paqm_div64(bps, parts >> 16);
}

/**
 * paqm_mm_solve_beside() - water-filling beside takers that are not in the census
 * @mm: census
 * @others_q16: how many greedy flows more take part, Q16
 * @cap: capacity to divide, bit/s
 * @rate_min: lowest rate ever told, bit/s
 * @rate_max: highest, bit/s
 *
 * R = (cap - 1.1 * sum of limited) / (max(1, greedy) + others); every limited flow
 * with 1.1 x > R joins the greedy ones, highest first, until none does. Moving
 * a bin whose value exceeds R raises R (it is a weighted mean), never above
 * that value, so one pass from the top is enough. Where all are limited one more is assumed,
 * which begins to grow; it takes nothing of an equal division, to which all have a right.
 *
 * Return: R, bit/s.
 */
static inline paqm_u64 paqm_mm_solve_beside(const struct paqm_mm *mm, paqm_u32 others_q16,
					    paqm_u64 cap, paqm_u64 rate_min, paqm_u64 rate_max)
{
	paqm_u64 limited = 0, rest, fair, value;
	paqm_u32 greedy = mm->greedy, flows = greedy;
	int i;

	for (i = 0; i < PAQM_MM_BINS; i++) {
		limited += mm->sum[i];
		flows += mm->count[i];
	}
	for (i = PAQM_MM_BINS - 1;; i--) {
		value = paqm_mul_q24(limited, PAQM_MM_HEADROOM_Q24);
		rest = cap > value ? cap - value : 0;
		fair = paqm_mm_part(rest, greedy, others_q16);
		while (i >= 0 && !mm->count[i])
			i--;
		if (i < 0)
			break;
		value = paqm_div64(paqm_mul_q24(mm->sum[i], PAQM_MM_HEADROOM_Q24), mm->count[i]);
		if (value <= fair)
			break;
		greedy += mm->count[i];
		limited -= mm->sum[i];
	}
	fair = paqm_max64(fair, paqm_mm_part(cap, flows, others_q16));
	return paqm_clamp64(fair, rate_min, paqm_max64(rate_min, rate_max));
}

/* Water-filling among the flows of the census alone. */
static inline paqm_u64 paqm_mm_solve(const struct paqm_mm *mm, paqm_u64 cap, paqm_u64 rate_min,
				     paqm_u64 rate_max)
{
	return paqm_mm_solve_beside(mm, 0, cap, rate_min, rate_max);
}

/**
 * paqm_mm_may_grow() - the most a flow is told
 * @fair: R, bit/s
 * @equal: capacity divided by all flows, bit/s
 * @bps: measured rate of the flow, 0 if there is none
 * @slow: what is told now is not taken back soon
 *
 * What some leave unused is promised to all, but all must not take it at once: a flow
 * far below R may double, or grow by an eighth if @slow, or go up to an equal division.
 *
 * Return: rate, bit/s.
 */
static inline paqm_u64 paqm_mm_may_grow(paqm_u64 fair, paqm_u64 equal, paqm_u64 bps, int slow)
{
	if (!bps)
		return fair;
	return paqm_min64(fair, paqm_max64(equal, bps + (slow ? bps / 8 : bps)));
}

/**
 * paqm_mm_parts() - how a host's rate is divided among its flows
 * @fair: rate of the host, bit/s
 * @flows: its flows, at least one
 * @limited: how many of them use less than an equal part of it
 * @sum: what those send together, bit/s
 *
 * Those keep what they send and room to grow, the others have equal parts of what remains.
 *
 * Return: @fair by what each flow is told, Q8; 1 to @flows.
 */
static inline paqm_u32 paqm_mm_parts(paqm_u64 fair, paqm_u32 flows, paqm_u32 limited, paqm_u64 sum)
{
	paqm_u64 kept = paqm_min64(paqm_mul_q24(sum, PAQM_MM_HEADROOM_Q24), fair);
	paqm_u64 part = paqm_div64(fair - kept, limited < flows ? flows - limited : 1);

	return (paqm_u32)paqm_clamp64(paqm_muldiv(fair, 256, part), 256, (paqm_u64)flows * 256);
}

/* Upper bound of the trim and its largest steps, control notes section 2. */
#define PAQM_TRIM_MAX_Q24 PAQM_Q24(30, 100)
#define PAQM_TRIM_SLOW_Q24 PAQM_Q24(10, 100) /* where what was told is not taken back soon */
#define PAQM_TRIM_UP_Q24 PAQM_Q24(2, 100)
#define PAQM_TRIM_DOWN_Q24 PAQM_Q24(5, 100)
/* Part of what is missing or too much that a step corrects. */
#define PAQM_TRIM_GAIN_DIV 4

/**
 * paqm_mm_trim() - correction for senders that undershoot what they are told
 * @trim_q24: correction in force, 0..0.3
 * @rate: what flows that take part in the division and follow send together, bit/s
 * @cap: what they may, without the correction, bit/s
 * @backlog: media queue, bytes
 * @target: N_out, bytes
 *
 * What limited flows leave is in @cap already. The caller sets the correction to 0 when
 * the rate changes by itself.
 *
 * Return: the next correction.
 */
static inline paqm_u32 paqm_mm_trim(paqm_u32 trim_q24, paqm_u64 rate, paqm_u64 cap,
				    paqm_u32 backlog, paqm_u32 target)
{
	paqm_u64 err = rate < cap ? cap - rate : rate - cap;
	paqm_u64 step = paqm_muldiv(err, PAQM_Q24_ONE / PAQM_TRIM_GAIN_DIV, cap);

	if (rate < cap && backlog / 2 < target)
		return (paqm_u32)paqm_min64(trim_q24 + paqm_min64(step, PAQM_TRIM_UP_Q24),
					    PAQM_TRIM_MAX_Q24);
	step = rate < cap ? trim_q24 / PAQM_TRIM_GAIN_DIV : paqm_min64(step, PAQM_TRIM_DOWN_Q24);
	return trim_q24 > step ? trim_q24 - (paqm_u32)step : 0;
}

/* What is told of a share of @bps: each gets the trim, or who has the least would stay there. */
static inline paqm_u64 paqm_mm_trimmed(paqm_u64 bps, paqm_u32 trim_q24)
{
	return bps + paqm_mul_q24(bps, trim_q24);
}

/**
 * paqm_mm_untrimmed() - the share of who is told a rate
 * @told: the rate, bit/s
 * @trim_q24: correction in it, 0..0.3
 *
 * Senders are told more because they stay below it, so whether one uses its share is not a question
 * of what it was told: with 12 % more, 85 % of that are 95 % of the share, and who uses that by a
 * picture less in a window would be taken for limited, and others be offered what it leaves.
 *
 * Return: bit/s.
 */
static inline paqm_u64 paqm_mm_untrimmed(paqm_u64 told, paqm_u32 trim_q24)
{
	return paqm_muldiv(told, PAQM_Q24_ONE, PAQM_Q24_ONE + trim_q24);
}

#endif /* PAQM_MAXMIN_H */
