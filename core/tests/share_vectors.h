/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Test vectors of what shares a link: water-filling, token bucket, shaping, scheduler. As
 * law_vectors.h, which includes this.
 */
#ifndef PAQM_SHARE_VECTORS_H
#define PAQM_SHARE_VECTORS_H

#include "../paqm_bucket.h"
#include "../paqm_lean.h"
#include "../paqm_link.h"
#include "../paqm_maxmin.h"
#include "../paqm_ramp.h"
#include "../paqm_sched.h"

/* What the sum of a flow is after windows in which it sends @rates in turn, of 1000 each. */
static inline paqm_u32 paqm_check_lean(const paqm_u64 *rates, int n, int windows, int counts)
{
	paqm_u32 sum = 0;
	int i;

	for (i = 0; i < windows; i++)
		sum = paqm_lean(sum, rates[i % n], 1000, counts);
	return sum;
}

/* Who leans on the tolerance of the buckets, and for how long he has to. */
static inline void paqm_check_leans(void)
{
	static const paqm_u64 above[] = {1040}, close[] = {1015}, twice[] = {2000};
	static const paqm_u64 pictures[] = {1300, 900, 800}, uneven[] = {1340, 940, 840};
	paqm_u32 sum;

	PAQM_SAME("lean, above it by 4 % for 81 windows",
		  paqm_check_lean(above, 1, 81, 1) < PAQM_LEAN_SHOWN, 1);
	PAQM_SAME("lean, for 82", paqm_check_lean(above, 1, 82, 1) >= PAQM_LEAN_SHOWN, 1);
	PAQM_SAME("lean, nobody lacks it", paqm_check_lean(above, 1, 1000, 0), 0);
	PAQM_SAME("lean, as close as who follows", paqm_check_lean(close, 1, 1000, 1), 0);
	PAQM_SAME("lean, twice its rate is no more than half above",
		  paqm_check_lean(twice, 1, 1, 1), PAQM_LEAN_STEP - PAQM_LEAN_TOLERANCE);
	PAQM_SAME("lean, whole pictures that are its rate",
		  paqm_check_lean(pictures, 3, 1000, 1) < PAQM_LEAN_SHOWN, 1);
	PAQM_SAME("lean, pictures of 4 % more",
		  paqm_check_lean(uneven, 3, 90, 1) >= PAQM_LEAN_SHOWN, 1);
	sum = paqm_check_lean(above, 1, 1000, 1);
	PAQM_SAME("lean, no more than so much", sum, PAQM_LEAN_MOST);
	PAQM_SAME("lean, unknown what it may send", paqm_lean(0, 1000, 0, 1), 0);
	PAQM_SAME("lean, at its rate it is forgiven", paqm_lean(sum, 1000, 1000, 1),
		  PAQM_LEAN_MOST - PAQM_LEAN_TOLERANCE);
	PAQM_SAME("lean, sooner below it", paqm_lean(sum, 500, 1000, 1),
		  PAQM_LEAN_MOST - PAQM_LEAN_TOLERANCE - PAQM_LEAN_STEP);
}

/* Water-filling: worked cases and the shares of the control notes. */
static inline void paqm_check_maxmin(void)
{
	static struct paqm_mm mm; /* large for a kernel stack */
	paqm_u64 fair;
	int i;

	paqm_mm_reset(&mm); /* three greedy flows */
	for (i = 0; i < 3; i++)
		paqm_mm_add(&mm, 2500000, 2533333);
	PAQM_SAME("maxmin, equal division", paqm_mm_solve(&mm, 7600000, 10000, 8000000), 2533333);

	paqm_mm_reset(&mm); /* two flows at their own ceiling of 3 Mbit/s */
	paqm_mm_add(&mm, 3000000, 3800000);
	paqm_mm_add(&mm, 3000000, 3800000);
	PAQM_SAME("maxmin, all limited", paqm_mm_solve(&mm, 7600000, 10000, 8000000), 3800000);

	paqm_mm_reset(&mm); /* one uses two thirds of its quarter, beside three elastic */
	paqm_mm_add(&mm, 670000, 1000000);
	fair = paqm_mm_solve_beside(&mm, 3 * PAQM_Q16_ONE, 4000000, 10000, 4000000);
	PAQM_SAME("maxmin, limited, has an equal part", fair, 1000000);

	/* a flow fell to 1 Mbit/s: for a queue; for none; some time ago; returns; is told less */
	PAQM_SAME("maxmin, held", paqm_mm_hold(2500000, 2500000, 1000000, 2600000, 1), 2343750);
	PAQM_SAME("maxmin, not held", paqm_mm_hold(2500000, 2500000, 1000000, 2600000, 0), 1000000);
	PAQM_SAME("maxmin, held on", paqm_mm_hold(1600000, 1000000, 1000000, 2600000, 0), 1500000);
	PAQM_SAME("maxmin, none left", paqm_mm_hold(1600000, 1000000, 1550000, 2600000, 1),
		  1550000);
	PAQM_SAME("maxmin, held as told", paqm_mm_hold(2500000, 2500000, 1000000, 1600000, 1),
		  1500000);

	paqm_mm_reset(&mm); /* four at 0.2, eight greedy on 11.4 Mbit/s */
	for (i = 0; i < 4; i++)
		paqm_mm_add(&mm, 200000, 1315000);
	for (i = 0; i < 8; i++)
		paqm_mm_add(&mm, 1310000, 1315000);
	PAQM_SAME("maxmin, four limited", paqm_mm_solve(&mm, 11400000, 10000, 12000000), 1315000);

	paqm_mm_reset(&mm); /* a flow that sends 20 of 8 is one of three all the same */
	paqm_mm_add(&mm, 20000000, 2666666);
	paqm_mm_add(&mm, 0, 0);
	paqm_mm_add(&mm, 0, 0);
	PAQM_SAME("maxmin, one unresponsive", paqm_mm_solve(&mm, 8000000, 10000, 8000000), 2666666);

	paqm_mm_reset(&mm); /* twenty of sound beside one elastic flow: 10 - 20 * 1.1 * 0.05 */
	for (i = 0; i < 20; i++)
		paqm_mm_add(&mm, 50000, 4000000);
	fair = paqm_mm_solve_beside(&mm, PAQM_Q16_ONE, 10000000, 10000, 10000000);
	PAQM_NEAR("maxmin, sound beside one elastic flow", fair, 4450000, 2);
	for (i = 0; i < 2; i++) /* and two of video beside four that weigh a half */
		paqm_mm_add(&mm, 2000000, 2000000);
	fair = paqm_mm_solve_beside(&mm, 2 * PAQM_Q16_ONE, 10000000, 10000, 10000000);
	PAQM_NEAR("maxmin, sound and video beside two", fair, 2225000, 2);

	PAQM_SAME("growth, measured far below", paqm_mm_may_grow(13700000, 2000000, 500000, 0),
		  2000000);
	PAQM_SAME("growth, doubles", paqm_mm_may_grow(13700000, 2000000, 1500000, 0), 3000000);
	PAQM_SAME("growth, at its rate", paqm_mm_may_grow(2500000, 2000000, 2400000, 0), 2500000);
	PAQM_SAME("growth, unknown", paqm_mm_may_grow(2500000, 2000000, 0, 0), 2500000);
	PAQM_SAME("growth, slow news", paqm_mm_may_grow(13700000, 1000000, 1600000, 1), 1800000);
	PAQM_SAME("growth, slow, to an equal part", paqm_mm_may_grow(9000000, 2000000, 100000, 1),
		  2000000);

	paqm_mm_reset(&mm); /* nobody there: everything is free */
	PAQM_SAME("maxmin, no flow", paqm_mm_solve(&mm, 7600000, 10000, 8000000), 7600000);

	paqm_mm_reset(&mm); /* more flows than the floor allows */
	for (i = 0; i < 1000; i++)
		paqm_mm_add(&mm, 0, 0);
	fair = paqm_mm_solve(&mm, 8000000, 10000, 8000000);
	PAQM_SAME("maxmin, floor", fair, 10000);

	PAQM_SAME("host, one flow", paqm_mm_parts(2000000, 1, 0, 0), 256);
	PAQM_SAME("host, equal parts", paqm_mm_parts(2000000, 100, 0, 0), 25600);
	/* 2 - 1.1 * 0.05 are left for the other one */
	PAQM_SAME("host, sound and video", paqm_mm_parts(2000000, 2, 1, 50000), 263);
	PAQM_SAME("host, all limited: one may grow", paqm_mm_parts(2000000, 4, 4, 400000), 328);
	PAQM_SAME("host, an equal part at least", paqm_mm_parts(2000000, 4, 3, 2000000), 1024);
	PAQM_SAME("host, no rate yet", paqm_mm_parts(0, 3, 0, 0), 768);

	PAQM_SAME("period, at least", paqm_mm_period(250000, 0), 250000);
	PAQM_SAME("period, somewhat longer", paqm_mm_period(250000, 1ULL << 20), 262875);
	PAQM_SAME("target, of a fast link", paqm_mm_target(16000000, 3000, 1514), 6000);
	PAQM_SAME("target, a packet on a slow one", paqm_mm_target(500000, 3000, 1514), 1514);
	PAQM_NEAR("capacity, empty queue",
		  paqm_mm_capacity(8000000, PAQM_Q24(95, 100), PAQM_Q24(35, 100), 5000, 0, 240000),
		  7658333, 2);
	PAQM_SAME("capacity, floor",
		  paqm_mm_capacity(8000000, PAQM_Q24(95, 100), PAQM_Q24(35, 100), 5000, 5000000,
				   240000),
		  4000000);
	PAQM_SAME("trim rises", paqm_mm_trim(0, 900, 1000, 0, 5000), PAQM_TRIM_UP_Q24);
	PAQM_NEAR("trim falls", paqm_mm_trim(PAQM_TRIM_MAX_Q24, 900, 1000, 10000, 5000),
		  PAQM_TRIM_MAX_Q24 - PAQM_TRIM_MAX_Q24 / 4, 1);
	PAQM_NEAR("trim rises by a part of what is missing", paqm_mm_trim(0, 980, 1000, 0, 5000),
		  PAQM_Q24(2, 400), 1);
	PAQM_NEAR("trim falls by a part of what is too much",
		  paqm_mm_trim(PAQM_Q24(10, 100), 1040, 1000, 0, 5000), PAQM_Q24(9, 100), 2);
	PAQM_NEAR("trim falls by so much at most",
		  paqm_mm_trim(PAQM_Q24(10, 100), 2000, 1000, 0, 5000), PAQM_Q24(5, 100), 1);
	PAQM_SAME("no trim below nothing", paqm_mm_trim(PAQM_Q24(1, 100), 1100, 1000, 0, 5000), 0);
	PAQM_SAME("trim is bounded", paqm_mm_trim(PAQM_TRIM_MAX_Q24, 900, 1000, 0, 5000),
		  PAQM_TRIM_MAX_Q24);
}

/* Token bucket: rate in the long run, depth, time that wraps, packets larger than it. */
static inline void paqm_check_bucket(void)
{
	static const struct {
		paqm_u64 bps;
		paqm_u32 len, depth_bytes;
	} t[] = {
		{8000, 1500, 3000},
		{64000, 200, 3000},
		{1200000, 1214, 9000},
		{1000000000, 1500, 60000},
		{10000000000ULL, 1500, 64000},
		{100000000000ULL, 1500, 64000},
		{100000000000ULL, 200, 3000},
		{400000000000ULL, 1400, 64000},
		{800000000000ULL, 9000, 64000},
		{1000000, 9000, 3000},
	};
	unsigned int i;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		paqm_u32 cost = paqm_bucket_cost(t[i].bps);
		paqm_u32 depth = paqm_bucket_depth(cost, t[i].depth_bytes), due = 0xFFFFF000U;
		paqm_u64 step = paqm_div64(t[i].len * 8000000000ULL, 3 * t[i].bps), ns, taken = 0;
		unsigned int n;

		/* offered three times the rate, from just before the clock wraps */
		ns = ((paqm_u64)due << PAQM_BUCKET_SHIFT) + 1;
		for (n = 0; n < 3000; n++, ns += step)
			if (paqm_bucket_take(&due, paqm_bucket_clock(ns), t[i].len, cost, depth))
				taken += t[i].len;
		PAQM_NEAR("bucket, bytes in the long run", taken,
			  paqm_bytes_in(t[i].bps, step * 3000) + t[i].depth_bytes,
			  2 * t[i].len + paqm_div64(taken, 100));
	}
	{
		paqm_u32 cost = paqm_bucket_cost(1000000), due = 0, n = 0;
		paqm_u32 depth = paqm_bucket_depth(cost, 3000);

		while (paqm_bucket_take(&due, 0, 1500, cost, depth))
			n++;
		PAQM_SAME("bucket, packets of a full one", n, 3);
		PAQM_SAME("bucket, no rate is no limit", paqm_bucket_take(&due, due, 9000, 0, 0),
			  1);
		due = 0;
		PAQM_SAME("bucket, the costliest packet",
			  paqm_bucket_take(&due, 0, 65535, paqm_bucket_cost(1), depth), 1);
		PAQM_SAME("bucket, is bounded", due, PAQM_BUCKET_LONGEST);
	}
	{ /* a flow that was not media for any time is media again */
		paqm_u32 cost = paqm_bucket_cost(1000000), depth = paqm_bucket_depth(cost, 3000);
		paqm_u32 age, wait, longest = 0;

		for (age = 0; age < 200; age++) {
			paqm_u32 due = 12345, now = due + age * paqm_bucket_clock(1310000000);

			for (wait = 0; !paqm_bucket_take(&due, now, 1500, cost, depth); wait++)
				now += paqm_bucket_clock(10000000);
			longest = longest > wait ? longest : wait;
		}
		PAQM_SAME("bucket, its age is no debt for more than 0.6 s", longest <= 60, 1);
	}
	{ /* buckets narrow: what is owed stays, at whatever rate */
		static const paqm_u64 rates[] = {100000, 1000000, 20000000, 100000000,
						 10000000000ULL};
		paqm_u32 i, n = 0;

		for (i = 0; i < sizeof(rates) / sizeof(*rates); i++) {
			paqm_u32 cost = paqm_bucket_cost(rates[i]), now = 77;
			paqm_u32 wide = paqm_bucket_depth(cost, rates[i] / 8 * 6 / 100 + 3000);
			paqm_u32 due = now + wide + PAQM_BUCKET_OWED_DEAF;

			n += paqm_bucket_take(&due, now, 1500, cost, paqm_bucket_depth(cost, 1500));
		}
		PAQM_SAME("bucket, narrows, and who owes does not conform", n, 0);
	}
	{ /* offered twice the rate, and what does not fit is sent elsewhere: it never fits */
		paqm_u32 cost = paqm_bucket_cost(1000000), due = 0, n = 0, packet, now = 0;
		paqm_u32 depth = paqm_bucket_depth(cost, 3000), most = depth + 1000000;
		paqm_u32 step = paqm_bucket_clock(6000000); /* 1500 bytes at 2 Mbit/s */

		for (packet = 0; packet < 1000; packet++, now += step) {
			if (paqm_bucket_take(&due, now, 1500, cost, depth))
				n++;
			else
				paqm_bucket_owe(&due, now, 1500, cost, most);
		}
		PAQM_NEAR("bucket, owed, packets that fit", n, 6, 1);
		PAQM_SAME("bucket, what is owed is bounded", due - (now - step), most);
		/* one at half of the rate fits again when that is paid back */
		packet = 0;
		for (; !paqm_bucket_take(&due, now, 1500, cost, depth); now += 4 * step) {
			paqm_bucket_owe(&due, now, 1500, cost, most);
			packet++;
		}
		PAQM_NEAR("bucket, owed, packets until one fits", packet, 2, 1);
	}
	{ /* watched: who sends more keeps to nothing until that is paid back, and then at once */
		paqm_u32 cost = paqm_bucket_cost(2000000), depth = paqm_bucket_depth(cost, 3000);
		paqm_u32 most = depth + paqm_bucket_clock(1000000000), now = 0xFFFF0000U;
		paqm_u32 due = now - 5, packet, n = 0, step = paqm_bucket_clock(6000000);

		for (packet = 0; packet < 100; packet++, now += step)
			n += paqm_bucket_watch(&due, now, 1500, cost, depth, most);
		PAQM_SAME("bucket, watched, all at its rate", n, 100);
		for (n = 0, packet = 0; packet < 1000; packet++, now += step / 2)
			n += paqm_bucket_watch(&due, now, 1500, cost, depth, most);
		PAQM_NEAR("bucket, watched, at twice its rate", n, 4, 1);
		PAQM_SAME("bucket, watched, bounded", due - (now - step / 2), most);
		for (packet = 0; !paqm_bucket_watch(&due, now, 1500, cost, depth, most); packet++)
			now += 2 * step;
		PAQM_NEAR("bucket, watched, packets at half of it until one keeps", packet, 167, 2);
		for (packet = 0; packet < 1000; packet++)
			paqm_bucket_watch(&due, now, 1500, cost, depth, most);
		PAQM_SAME("bucket, watched, a better rate forgives",
			  paqm_bucket_watch(&due, now, 1500, cost / 2, depth / 2, most - depth / 2),
			  1);
		PAQM_SAME("bucket, watched, but leaves no burst",
			  paqm_bucket_watch(&due, now, 1500, cost / 2, depth / 2, most - depth / 2),
			  0);
		due = now - PAQM_RAMP_MS(40000); /* looks like a time to come */
		PAQM_SAME("bucket, watched, long ago",
			  paqm_bucket_watch(&due, now, 1500, cost, depth, most), 1);
	}
	{ /* rates that are no whole number of bytes between two looks */
		static const struct {
			paqm_u64 rate, step;
		} r[] = {{312, 1000000}, {1000, 600000}, {62500000, 33}, {7, 999999937}};

		for (i = 0; i < sizeof(r) / sizeof(r[0]); i++) {
			paqm_u64 now = 5, stamp = 5, have = 0, n = 10000;

			while (n--) {
				now += r[i].step;
				have = paqm_tokens_fill(have, &stamp, r[i].rate, 1ULL << 40, now);
			}
			PAQM_NEAR("tokens, in the long run", have,
				  paqm_muldiv(r[i].rate, now - 5, 1000000000ULL), 1);
		}
	}
	{
		paqm_u64 stamp = 0;

		PAQM_SAME("tokens, a full bucket",
			  paqm_tokens_fill(10, &stamp, 1000, 500, 1000000000ULL), 500);
		PAQM_SAME("tokens, nothing before it was full", stamp, 1000000000ULL);
		PAQM_SAME("tokens, a smaller bucket",
			  paqm_tokens_fill(500, &stamp, 0, 100, 2000000000ULL), 100);
	}
}

/* Shaping: what one packet takes of an ns is not lost. */
static inline void paqm_check_link_time(void)
{
	static const struct {
		paqm_u64 bytes_per_s;
		paqm_u32 len;
	} t[] = {
		{1000, 1500},	       {1250000000, 64},	{15000000000ULL, 64},
		{50000000000ULL, 64},  {50000000000ULL, 65},	{100000000000ULL, 1},
		{100000000000ULL, 64}, {100000000000ULL, 1514},
	};
	unsigned int i, n;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		paqm_u64 factor = 1000000000, mult = paqm_div64(factor, t[i].bytes_per_s);
		paqm_u64 part = 0, now = 0;
		paqm_u8 shift = 0;

		/* as psched_ratecfg_precompute() does */
		while (!(mult >> 31) && !(factor >> 63)) {
			factor <<= 1;
			shift++;
			mult = paqm_div64(factor, t[i].bytes_per_s);
		}
		for (n = 0; n < 100000; n++)
			now += paqm_link_time(t[i].len, (paqm_u32)mult, shift, (1ULL << shift) - 1,
					      &part);
		factor = paqm_div64(100000ULL * t[i].len * 1000000000ULL, t[i].bytes_per_s);
		PAQM_NEAR("link, time of 100,000 packets", now, factor,
			  1 + paqm_div64(factor, 10000000));
	}
}

/*
 * Both classes always backlogged: bytes follow the share within one packet each
 * plus the credit, whatever the packet sizes.
 */
static inline void paqm_check_sched(void)
{
	static const struct {
		paqm_u32 n_u, n_t, len_u, len_t, credit;
	} t[] = {
		{10, 10, 300, 1500, 0},	  {3, 4, 1214, 1514, 20000}, {1, 9, 64, 1514, 5000},
		{9, 1, 1514, 64, 100000}, {1, 1, 1514, 1514, 3000},
	};
	unsigned int i;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct paqm_sched s = {0, paqm_share_q16(t[i].n_u, t[i].n_t), t[i].credit};
		paqm_u64 sent_u = 0, sent_t = 0, ideal;

		while (sent_u + sent_t < 20000000) {
			if (paqm_sched_media_next(&s)) {
				sent_u += t[i].len_u;
				paqm_sched_sent(&s, 1, t[i].len_u, 1, 1);
			} else {
				sent_t += t[i].len_t;
				paqm_sched_sent(&s, 0, t[i].len_t, 1, 1);
			}
		}
		ideal = paqm_muldiv(sent_u + sent_t, s.share_q16, PAQM_Q16_ONE);
		PAQM_NEAR("scheduler, media bytes", sent_u, ideal + t[i].credit,
			  t[i].len_u + t[i].len_t);
	}
	{ /* media alone owes nothing afterwards */
		struct paqm_sched s = {0, paqm_share_q16(1, 1), 10000};

		for (i = 0; i < 1000; i++)
			paqm_sched_sent(&s, 1, 1500, 1, 0);
		PAQM_SAME("scheduler, no debt without rival", (paqm_u64)s.lead, 0);
		for (i = 0; i < 1000; i++) /* and idle media saves nothing up */
			paqm_sched_sent(&s, 0, 1500, 0, 1);
		PAQM_SAME("scheduler, no saving while idle", (paqm_u64)s.lead, 0);
	}
	PAQM_SAME("share, nobody", paqm_share_q16(0, 0), PAQM_Q16_ONE / 2);
	PAQM_SAME("share, 3 against 4", paqm_share_q16(3, 4), 28087);
	/* 2000 bytes in 0.25 s are 6.4 % of 1 Mbit/s; up to an equal part; no share is lowered */
	PAQM_SAME("share, a queue leaves", paqm_share_draining(40000, 50000, 2000, 250000, 1000000),
		  44194);
	PAQM_SAME("share, to an equal part",
		  paqm_share_draining(40000, 42000, 2000, 250000, 1000000), 42000);
	PAQM_SAME("share, more than an equal part",
		  paqm_share_draining(50000, 42000, 2000, 250000, 1000000), 50000);

	/* three wait, numbers 65535 to 1 */
	PAQM_SAME("fifo, the last waits", paqm_fifo_waits(1, 65534, 1), 1);
	PAQM_SAME("fifo, the first waits", paqm_fifo_waits(1, 65534, 65535), 1);
	PAQM_SAME("fifo, one has left", paqm_fifo_waits(1, 65534, 65534), 0);
	PAQM_SAME("fifo, one left long ago", paqm_fifo_waits(1, 65534, 32000), 0);
	PAQM_SAME("fifo, nobody waits for an old one", paqm_fifo_waits(7, 7, 20000), 0);
	PAQM_SAME("fifo, all bits in use", paqm_fifo_waits(65535, 0, 1), 1);

	PAQM_SAME("ramp, a queue that was empty 0.399 s ago",
		  paqm_ramp_extra(PAQM_RAMP_MS(399), 1600), 0);
	PAQM_SAME("ramp, it stands", paqm_ramp_extra(PAQM_RAMP_MS(400), 1600), 100);
	PAQM_SAME("ramp, still", paqm_ramp_extra(PAQM_RAMP_MS(1399), 1600), 100);
	PAQM_SAME("ramp, it ends", paqm_ramp_extra(PAQM_RAMP_MS(1400), 1600), 0);
	PAQM_SAME("ramp, before the next", paqm_ramp_extra(PAQM_RAMP_MS(4399), 1600), 0);
	PAQM_SAME("ramp, the next", paqm_ramp_extra(PAQM_RAMP_MS(4400), 1600), 100);
	PAQM_SAME("ramp, the last", paqm_ramp_extra(PAQM_RAMP_MS(9399), 1600), 100);
	PAQM_SAME("ramp, three were in vain", paqm_ramp_extra(PAQM_RAMP_MS(12400), 1600), 0);
	PAQM_SAME("ramp, spares none after these",
		  paqm_ramp_spares(PAQM_RAMP_MS(12400), PAQM_RAMP_MS(30)), 0);
	PAQM_SAME("ramp, spares nothing before",
		  paqm_ramp_spares(PAQM_RAMP_MS(399), PAQM_RAMP_MS(30)), 0);
	PAQM_SAME("ramp, spares", paqm_ramp_spares(PAQM_RAMP_MS(1999), PAQM_RAMP_MS(119)), 1);
	PAQM_SAME("ramp, spares no longer", paqm_ramp_spares(PAQM_RAMP_MS(2000), PAQM_RAMP_MS(119)),
		  0);
	PAQM_SAME("ramp, spares nothing that waits too long",
		  paqm_ramp_spares(PAQM_RAMP_MS(500), PAQM_RAMP_MS(120)), 0);
}

#endif /* PAQM_SHARE_VECTORS_H */
