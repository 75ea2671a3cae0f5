/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Token bucket of a media flow: does a packet stay within the flow's fair rate? And a plain one
 * of bytes, for messages.
 *
 * In the form of the virtual scheduling algorithm (ITU-T I.371 Annex A, the GCRA), so
 * that a flow's state is one number: the moment at which its bucket is full again. All
 * flows of a queue share rate and depth, which are therefore worked out once, in
 * paqm_bucket_cost() and paqm_bucket_depth(), and a packet costs one product.
 */
#ifndef PAQM_BUCKET_H
#define PAQM_BUCKET_H

#include "paqm_fix.h"

/* Times are in units of 16 ns, modulo 2^32: 68 s, and half of that from another time. */
#define PAQM_BUCKET_SHIFT 4
#define PAQM_BUCKET_LONGEST (1U << 29) /* deepest bucket, and costliest packet: 8.6 s */
#define PAQM_BUCKET_BPS_MIN 8000ULL
#define PAQM_BUCKET_OWED (50000000U >> PAQM_BUCKET_SHIFT)    /* 50 ms: the most that a flow owes, */
#define PAQM_BUCKET_OWED_DEAF (10 * PAQM_BUCKET_OWED)	     /* and one that heeds nothing */
#define PAQM_BUCKET_NARROWS (60000000U >> PAQM_BUCKET_SHIFT) /* by so much a depth may fall */

static inline paqm_u32 paqm_bucket_clock(paqm_u64 now_ns)
{
	return (paqm_u32)(now_ns >> PAQM_BUCKET_SHIFT);
}

/* Time that a byte takes at @bps, Q16 of a unit; rates below 8 kbit/s count as that. */
static inline paqm_u32 paqm_bucket_cost(paqm_u64 bps)
{
	bps = paqm_max64(bps, PAQM_BUCKET_BPS_MIN);
	return (paqm_u32)paqm_div64(((8000000000ULL >> PAQM_BUCKET_SHIFT) << 16) + bps / 2, bps);
}

/*
 * Time that @bytes take, in whole units. What is cut off would be much of a packet at 100 Gbit/s
 * (1500 bytes are 7.5 units), so it is rounded up as often as it should be: by a number that
 * nothing in step with the clock follows. Packets shorter than a unit, which are 2 kbyte at
 * 1 Tbit/s and 200 bytes at 100 Gbit/s, are counted in part only.
 */
static inline paqm_u64 paqm_bucket_time(paqm_u32 cost_q16, paqm_u32 bytes, paqm_u32 now)
{
	paqm_u32 mixed = (now * 0x9E3779B1U >> 16) * now;

	return ((paqm_u64)cost_q16 * bytes + (mixed & (PAQM_Q16_ONE - 1))) >> 16;
}

/* Depth of a bucket that holds @bytes, given the cost of a byte; in units. */
static inline paqm_u32 paqm_bucket_depth(paqm_u32 cost_q16, paqm_u32 bytes)
{
	return (paqm_u32)paqm_min64((paqm_u64)cost_q16 * bytes >> 16, PAQM_BUCKET_LONGEST);
}

/**
 * paqm_bucket_take() - take a packet out of the bucket, if it holds it
 * @due: when the bucket is full again; updated
 * @now: paqm_bucket_clock()
 * @bytes: of the packet; one that is larger than the bucket fits into a full one
 * @cost_q16: paqm_bucket_cost() of the rate at which the bucket fills; 0: no limit
 * @depth: paqm_bucket_depth()
 *
 * From 34 s of age on @due looks like a time to come. None can be later than the depth, a packet of
 * 64 kB and PAQM_BUCKET_OWED_DEAF beyond @now, or was when the bucket was deeper: what seems to be
 * is an old one, and the bucket full.
 *
 * Return: whether the packet conforms.
 */
static inline int paqm_bucket_take(paqm_u32 *due, paqm_u32 now, paqm_u32 bytes, paqm_u32 cost_q16,
				   paqm_u32 depth)
{
	paqm_u32 from = (paqm_s32)(*due - now) > 0 ? *due : now;
	paqm_u64 cost;

	if (from - now > depth) {
		/* in units a packet of 64 kB costs what one byte costs in Q16 */
		if (from - now <=
		    (paqm_u64)depth + PAQM_BUCKET_NARROWS + PAQM_BUCKET_OWED_DEAF + cost_q16)
			return 0;
		from = now;
	}
	cost = paqm_bucket_time(cost_q16, bytes, now);
	*due = from + (cost < PAQM_BUCKET_LONGEST ? (paqm_u32)cost : PAQM_BUCKET_LONGEST);
	return 1;
}

/**
 * paqm_bucket_owe() - account a packet that did not conform, but is sent
 * @due: as above
 * @now: as above
 * @bytes: of the packet
 * @cost_q16: as above
 * @most: latest that @due may become, units after @now
 *
 * So that who sends too much all the time does not get the rate of the bucket beside what it
 * gets elsewhere.
 */
static inline void paqm_bucket_owe(paqm_u32 *due, paqm_u32 now, paqm_u32 bytes, paqm_u32 cost_q16,
				   paqm_u32 most)
{
	/* what it owes is bounded: here it may be rounded */
	paqm_u64 cost = ((paqm_u64)cost_q16 * bytes + PAQM_Q16_ONE / 2) >> 16;
	paqm_u32 from = (paqm_s32)(*due - now) > 0 ? *due - now : 0;

	if (from < most)
		*due = now + (paqm_u32)paqm_min64(from + cost, most);
}

/**
 * paqm_bucket_watch() - account a packet that is sent in any case
 * @due: as above
 * @now: as above
 * @bytes: of the packet
 * @cost_q16: as above
 * @depth: as above
 * @most: latest that @due may become, units after @now, at least @depth and below 2^31
 *
 * Return: whether the flow keeps to the rate of the bucket; who was above it has to stay below for
 * as long as he owes. By a better rate, with which @most falls, he may not have been: his bucket is
 * empty then, but he owes nothing.
 */
static inline int paqm_bucket_watch(paqm_u32 *due, paqm_u32 now, paqm_u32 bytes, paqm_u32 cost_q16,
				    paqm_u32 depth, paqm_u32 most)
{
	paqm_u64 cost = paqm_bucket_time(cost_q16, bytes, now);
	paqm_u32 from = *due - now;

	/* full, or was so long ago that this looks like a time to come; or @most has fallen */
	if (from > most)
		from = from > most + PAQM_BUCKET_LONGEST ? 0 : depth;
	*due = now + (paqm_u32)paqm_min64(from + cost, most);
	return from <= depth;
}

/**
 * paqm_tokens_fill() - what a bucket of bytes holds by now
 * @tokens: bytes that it held
 * @stamp: ns, when that was; updated to the time that is paid for, so that a bucket which is
 *	looked at often neither loses nor wins by rounding
 * @rate: bytes per second
 * @depth: bytes that it holds at most
 * @now: ns, not before @stamp
 *
 * Return: bytes.
 */
static inline paqm_u64 paqm_tokens_fill(paqm_u64 tokens, paqm_u64 *stamp, paqm_u64 rate,
					paqm_u64 depth, paqm_u64 now)
{
	paqm_u64 age = now - *stamp, took;
	paqm_u64 won = paqm_muldiv(rate, age, 1000000000ULL);

	if (won >= depth || tokens >= depth - won) {
		*stamp = now;
		return depth;
	}
	if (!won)
		return tokens;
	took = paqm_muldiv(won, 1000000000ULL, rate);
	if (took > age) /* it was rounded up */
		took = paqm_muldiv(--won, 1000000000ULL, rate);
	*stamp += took;
	return tokens + won;
}

#endif /* PAQM_BUCKET_H */
