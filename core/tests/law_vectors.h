/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Test vectors of the P-AQM laws and codecs, run by two runners: the user-space
 * test (core/tests/test_law.c) and the KUnit suite (kernel/kunit/laws.c).
 * Integer-only for that reason. The includer defines
 *   PAQM_NEAR(what, got, want, tolerance)   all paqm_u64
 * as a check that reports a difference above the tolerance and goes on.
 *
 * Numbers: inner law and EWMA, ECF, ERF, binary32 and plant vectors of the P-AQM
 * router specification, derived from A. Lie, NTNU 2008:74.
 */
#ifndef PAQM_LAW_VECTORS_H
#define PAQM_LAW_VECTORS_H

#include "../paqm_laws.h"
#include "../paqm_msg.h"

#define PAQM_SAME(what, got, want) PAQM_NEAR(what, got, want, 0)
#include "rival_vectors.h"
#include "share_vectors.h"

#define PAQM_TOL_P (1ULL << 12) /* 2^-20 of 1.0 in Q32 */

struct paqm_vec_inner {
	paqm_u64 cap, rate;
	paqm_u32 backlog, target;
	paqm_u32 gain_q24;
	paqm_u32 prob;
};

#define PAQM_K2 PAQM_Q24(2, 10)
#define PAQM_K5 PAQM_Q24(5, 10)

static const struct paqm_vec_inner paqm_vec_inner[] = {
	{150000, 0, 0, 150000, PAQM_K2, 0},
	{150000, 100000, 0, 150000, PAQM_K2, 0},
	{150000, 149999, 300000, 150000, PAQM_K2, 0},
	{150000, 150000, 150000, 150000, PAQM_K2, 0},
	{150000, 150000, 0, 150000, PAQM_K2, 0},
	{150000, 150000, 300000, 150000, PAQM_K2, 0x33333333},
	{150000, 225000, 150000, 150000, PAQM_K2, 0x55555555},
	{150000, 225000, 0, 150000, PAQM_K2, 0x33333333},
	{150000, 225000, 300000, 150000, PAQM_K2, 0x77777777},
	{150000, 225000, 300000, 150000, PAQM_K5, 0xAAAAAAAA},
	{150000, 1500000, 600000, 150000, PAQM_K2, 0xF5C28F5C},
	{150000, 1500000, 900000, 150000, PAQM_K2, 0xFFFFFFFF},
	{150000, 1500000, 1000000, 150000, PAQM_K2, 0xFFFFFFFF},
	{8, 16, 6000, 6000, PAQM_K2, 0x80000000},
	{8, 16, 4000, 6000, PAQM_K2, 0},
	{125000000, 187500000, 50000000, 25000000, PAQM_K5, 0x66666666},
};

static inline void paqm_check_inner(void)
{
	static const paqm_u64 ewma[7][2] = {
		/* 16 * rate, survival in ppm */
		{1800000, 1000000}, {2700000, 888889}, {3150000, 761905}, {3375000, 711111},
		{1687500, 1000000}, {843750, 1000000}, {421875, 1000000},
	};
	static const paqm_u64 slow[5] = {30000, 54000, 73200, 88560, 100848};
	struct paqm_inner_params p = {0};
	struct paqm_inner_vars v = {0, 0};
	unsigned int i;

	for (i = 0; i < sizeof(paqm_vec_inner) / sizeof(paqm_vec_inner[0]); i++) {
		const struct paqm_vec_inner *t = &paqm_vec_inner[i];

		p.cap_q24 = t->cap << 24;
		p.target = t->target;
		p.gain_q24 = t->gain_q24;
		PAQM_NEAR("inner law, probability", paqm_inner_prob(&p, t->rate << 24, t->backlog),
			  t->prob, PAQM_TOL_P);
	}

	p.cap_q24 = 150000ULL << 24;
	p.target = 150000;
	p.gain_q24 = PAQM_K2;
	p.gamma_q24 = PAQM_Q24_ONE / 2;
	for (i = 0; i < 7; i++) {
		paqm_inner_step(&v, &p, i < 4 ? 225000 : 0, 150000);
		PAQM_NEAR("EWMA gamma 0.5, rate", v.rate_q24 >> 20, ewma[i][0], 1);
		PAQM_NEAR("EWMA gamma 0.5, survival", (1ULL << 32) - v.prob,
			  paqm_muldiv(ewma[i][1], 1ULL << 32, 1000000), PAQM_TOL_P);
	}
	v.rate_q24 = 0;
	for (i = 0; i < 5; i++) {
		v.rate_q24 = paqm_inner_filter(v.rate_q24, 150000, PAQM_K2);
		PAQM_NEAR("EWMA gamma 0.2, rate", v.rate_q24 >> 24, slow[i], 1);
	}
}

/* Closed loop of one queue: 225000 bytes arrive per period, capacity 150000. */
static inline void paqm_check_inner_loop(void)
{
	static const paqm_u64 want[6] = {75000, 150000, 200000, 210000, 207200, 200230};
	struct paqm_inner_params p = {150000ULL << 24, 150000, PAQM_K2, PAQM_Q24_ONE / 2};
	struct paqm_inner_vars v = {0, 0};
	paqm_u64 backlog = 0, peak = 0, admitted;
	unsigned int i;

	for (i = 0; i < 40; i++) {
		admitted = paqm_muldiv(225000, (1ULL << 32) - v.prob, 1ULL << 32);
		backlog = backlog + admitted > 150000 ? backlog + admitted - 150000 : 0;
		paqm_inner_step(&v, &p, 225000, (paqm_u32)backlog);
		if (i < 6)
			PAQM_NEAR("inner loop, backlog", backlog, want[i], 20);
		if (i == 19)
			PAQM_NEAR("inner loop, step 20", backlog, 152537, 40);
		peak = paqm_max64(peak, backlog);
	}
	PAQM_NEAR("inner loop, peak", peak, 210000, 20);
	PAQM_NEAR("inner loop, survival", (1ULL << 32) - v.prob, paqm_muldiv(2, 1ULL << 32, 3),
		  1ULL << 23);
}

static inline struct paqm_outer_params paqm_vec_gains(void)
{
	struct paqm_outer_params p = {.alpha_q24 = PAQM_Q24(75, 100),
				      .beta_q24 = PAQM_Q24(35, 100),
				      .md_min_q24 = PAQM_Q24(1, 10),
				      .rate_min = 10000,
				      .ai_q24 = PAQM_Q24_ONE};

	return p;
}

/* What the published laws go by. */
#define PAQM_IN(cap_, rate_, backlog_, target_, period_us_, flows_)                                \
	{                                                                                          \
		.cap = (cap_), .rate = (rate_), .backlog = (backlog_), .target = (target_),        \
		.period_us = (period_us_), .flows = (flows_)                                       \
	}

struct paqm_vec_ecf {
	struct paqm_outer_in in;
	paqm_u64 want_x10; /* r' in 0.1 bit/s */
	enum paqm_ecf_kind kind;
	paqm_u32 value;
};

static const struct paqm_vec_ecf paqm_vec_ecf[] = {
	{PAQM_IN(16000000, 16000000, 40000, 40000, 600000, 10), 160000000, PAQM_ECF_HOLD,
	 0x3F800000},
	{PAQM_IN(16000000, 16000000, 0, 40000, 600000, 10), 161866667, PAQM_ECF_AI, 0x4691D555},
	{PAQM_IN(16000000, 16000000, 80000, 40000, 600000, 10), 158133333, PAQM_ECF_MD, 0x3F7D036A},
	{PAQM_IN(16000000, 12000000, 0, 40000, 600000, 10), 151866667, PAQM_ECF_AI, 0x489B9955},
	{PAQM_IN(16000000, 12000000, 40000, 40000, 600000, 10), 150000000, PAQM_ECF_AI, 0x48927C00},
	{PAQM_IN(16000000, 20000000, 40000, 40000, 600000, 10), 170000000, PAQM_ECF_MD, 0x3F59999A},
	{PAQM_IN(16000000, 20000000, 200000, 40000, 600000, 10), 162533333, PAQM_ECF_MD,
	 0x3F500AEC},
	{PAQM_IN(16000000, 160000000, 400000, 40000, 600000, 80), 503200000, PAQM_ECF_MD,
	 0x3EA10625},
	{PAQM_IN(16000000, 16000000, 39999, 40000, 600000, 10), 160000047, PAQM_ECF_HOLD,
	 0x3F800000},
	{PAQM_IN(16000000, 16000000, 40001, 40000, 600000, 10), 159999953, PAQM_ECF_MD, 0x3F7FFFFB},
	{PAQM_IN(15200000, 16000000, 40000, 40000, 600000, 20), 154000000, PAQM_ECF_MD, 0x3F766666},
	{PAQM_IN(16000000, 15800000, 80000, 40000, 600000, 10), 157633333, PAQM_ECF_MD, 0x3F7F67EA},
	{PAQM_IN(60000, 64000, 4500, 3000, 800000, 1), 557500, PAQM_ECF_MD, 0x3F5F0000},
	{PAQM_IN(95000000000ULL, 100000000000ULL, 2500000, 2500000, 510000, 10000), 962500000000ULL,
	 PAQM_ECF_MD, 0x3F766666},
	{PAQM_IN(760000000000ULL, 800000000000ULL, 20000000, 20000000, 510000, 10000),
	 7700000000000ULL, PAQM_ECF_MD, 0x3F766666},
	{PAQM_IN(800000000000ULL, 100000000000ULL, 20000000, 20000000, 510000, 1), 6250000000000ULL,
	 PAQM_ECF_AI, 0x52F478E1},
	{PAQM_IN(16000000, 2000000000, 1000000, 40000, 600000, 1000), 5075200000ULL, PAQM_ECF_MD,
	 0x3E81ECD5},
	{PAQM_IN(16000000, 0, 0, 40000, 600000, 0), 0, PAQM_ECF_NONE, PAQM_F32_ONE},
};

static inline void paqm_check_ecf(void)
{
	struct paqm_outer_params p = paqm_vec_gains();
	struct paqm_ecf_out out;
	unsigned int i;

	for (i = 0; i < sizeof(paqm_vec_ecf) / sizeof(paqm_vec_ecf[0]); i++) {
		const struct paqm_vec_ecf *t = &paqm_vec_ecf[i];
		struct paqm_ecf_vars v = {0};

		out = paqm_ecf_step(&v, &p, &t->in);
		PAQM_SAME("ECF, kind", out.kind, t->kind);
		PAQM_NEAR("ECF, wanted rate in 0.1 bit/s",
			  paqm_muldiv(out.want_q20, 10, 1 << PAQM_BPS_Q), t->want_x10,
			  paqm_max64(10, paqm_div64(t->want_x10, 1000000)));
		PAQM_NEAR("ECF, value", out.value, t->value, 2);
	}
	p.md_min_q24 = PAQM_Q24(5, 10);
	{
		struct paqm_ecf_vars v = {0};

		out = paqm_ecf_step(&v, &p, &paqm_vec_ecf[16].in);
		PAQM_SAME("ECF, floor 0.5", out.value, 0x3F000000);
	}
	p.ai_hold = 1;
	{
		struct paqm_ecf_vars v = {0};

		out = paqm_ecf_step(&v, &p, &paqm_vec_ecf[4].in); /* queue at its target */
		PAQM_SAME("ECF, increase withheld", out.value, PAQM_F32_ONE);
	}
}

/* A measurement that yields the decrease @percent/100 with an empty error. */
static inline struct paqm_outer_in paqm_vec_md(unsigned int percent)
{
	struct paqm_outer_in in = PAQM_IN(0, 1000000, 40000, 40000, 600000, 10);

	/* r' = r + 0.75 (cap - r) */
	in.cap = 1000000 - paqm_muldiv(1000000 - 10000ULL * percent, 4, 3);
	return in;
}

static inline void paqm_check_forced_md(void)
{
	struct paqm_outer_params p = paqm_vec_gains();
	struct paqm_ecf_vars v = {0};
	struct paqm_outer_in in, rise = PAQM_IN(2000000, 1000000, 40000, 40000, 600000, 10);
	struct paqm_ecf_out out;
	int i;

	p.forced_md = 1;
	in = paqm_vec_md(97);
	for (i = 0; i < 5; i++)
		paqm_ecf_step(&v, &p, &in);
	in = paqm_vec_md(98);
	out = paqm_ecf_step(&v, &p, &in);
	PAQM_SAME("forced decrease after five", out.value, 0x3F75C28F);

	in = paqm_vec_md(97);
	for (i = 0; i < 4; i++)
		paqm_ecf_step(&v, &p, &in);
	paqm_ecf_step(&v, &p, &rise);
	out = paqm_ecf_step(&v, &p, &in);
	PAQM_NEAR("increase resets the count", out.value,
		  paqm_f32_encode(97ULL * (1 << 20) / 100, 20), 32);
	for (i = 0; i < 4; i++)
		paqm_ecf_step(&v, &p, &in);
	in = paqm_vec_md(95);
	out = paqm_ecf_step(&v, &p, &in);
	PAQM_NEAR("a stronger decrease stands", out.value,
		  paqm_f32_encode(95ULL * (1 << 20) / 100, 20), 32);
	PAQM_SAME("and resets the count", v.near_one, 0);
}

/*
 * The older laws are that of App. C with other gains: Paper D's with d / tau2 for both, and half of
 * an increase told; law (1) of Paper F with each gain times d / tau2.
 */
static inline void paqm_check_old_laws(void)
{
	static const struct {
		paqm_u32 alpha_q24, beta_q24, ai_q24;
		struct paqm_outer_in in;
		paqm_u64 want; /* r', bit/s */
		enum paqm_ecf_kind kind;
		paqm_u64 value_ppm; /* factor in 1e-6; or bit/s */
	} t[] = {
		{PAQM_Q24(16, 14), PAQM_Q24(16, 14), PAQM_Q24(1, 2),
		 PAQM_IN(30000000, 60000000, 200000, 105000, 160000, 5), 20285714, PAQM_ECF_MD,
		 338095},
		{PAQM_Q24(16, 14), PAQM_Q24(16, 14), PAQM_Q24(1, 2),
		 PAQM_IN(30000000, 20000000, 0, 105000, 160000, 5), 37428571, PAQM_ECF_AI, 1742857},
		{PAQM_Q24(90, 100), PAQM_Q24(42, 100), PAQM_Q24_ONE,
		 PAQM_IN(16000000, 20000000, 40000, 40000, 600000, 10), 16400000, PAQM_ECF_MD,
		 820000},
	};
	struct paqm_outer_params p = paqm_vec_gains();
	unsigned int i;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		int md = t[i].kind == PAQM_ECF_MD;
		struct paqm_ecf_vars v = {0};
		struct paqm_ecf_out out;
		paqm_u64 value = 0;

		p.alpha_q24 = t[i].alpha_q24;
		p.beta_q24 = t[i].beta_q24;
		p.ai_q24 = t[i].ai_q24;
		out = paqm_ecf_step(&v, &p, &t[i].in);
		PAQM_NEAR("old law, wanted rate", out.want_q20 >> PAQM_BPS_Q, t[i].want, 3);
		PAQM_SAME("old law, kind", out.kind, t[i].kind);
		PAQM_SAME("old law, a number", paqm_f32_decode(out.value, 20, &value), 0);
		PAQM_NEAR("old law, value", paqm_muldiv(value, md ? 1000000 : 1, 1 << 20),
			  t[i].value_ppm, 1);
	}
}

/* State, measurement, and what comes of them. */
struct paqm_vec_erf {
	paqm_u64 old;
	paqm_u32 flows;
	paqm_u64 cap, rate;
	paqm_u32 backlog, target, period_us;
	paqm_u64 want_x10, flows_ppm; /* 0.1 bit/s; N' in 1e-6 */
	paqm_u32 value;
};

static const struct paqm_vec_erf paqm_vec_erf[] = {
	{1600000, 10, 16000000, 16000000, 40000, 40000, 600000, 16000000, 10000000, 0x49C35000},
	{1600000, 10, 16000000, 32000000, 400000, 40000, 600000, 2320000, 68965517, 0x48629000},
	{1600000, 10, 16000000, 8000000, 0, 40000, 600000, 22186667, 7211538, 0x4A076AAB},
	{16000000, 1, 16000000, 0, 0, 40000, 600000, 160000000, 1000000, 0x4B742400},
	{16000000, 1, 16000000, 40000000, 200000, 40000, 600000, 100000, 1600000000, 0x461C4000},
	{800000, 20, 16000000, 16000000, 48000, 40000, 600000, 7981333, 20046776, 0x4942DB55},
	{100000000000, 1, 95000000000, 10000000000, 0, 2500000, 510000, 950000000000, 1000000,
	 0x51B0F388},
	{800000000000, 1, 760000000000, 80000000000, 0, 20000000, 510000, 7600000000000, 1000000,
	 0x5330F388},
	{400000000000, 2, 800000000000, 800000000000, 0, 0, 510000, 4000000000000, 2000000,
	 0x52BA43B7},
	{64000, 1, 60000, 64000, 4500, 3000, 800000, 557500, 1076233, 0x4759C600},
};

/* The greatest gains, at the greatest rate, with everything missing: the sums must hold it. */
static inline void paqm_check_outer_bound(void)
{
	struct paqm_outer_params p = paqm_vec_gains();
	struct paqm_outer_in in = PAQM_IN(PAQM_BPS_MAX, 1000, 0, 1U << 30, 50000, 1);
	struct paqm_ecf_vars ecf = {0};
	struct paqm_erf_vars erf;
	struct paqm_ecf_out out;

	p.alpha_q24 = 2U << 24;
	p.beta_q24 = 2U << 24;
	out = paqm_ecf_step(&ecf, &p, &in); /* 2 c missing, and a queue term of 0.34 Tbit/s */
	PAQM_NEAR("ECF, greatest increase", out.want_q20 >> PAQM_BPS_Q, 1943597382720ULL, 2000);
	in.target = 1U << 31; /* the queue term is at most 2 c */
	in.period_us = 1000;
	out = paqm_ecf_step(&ecf, &p, &in);
	PAQM_NEAR("ECF, sum of all", out.want_q20 >> PAQM_BPS_Q, 4 * PAQM_BPS_MAX, 2000);
	PAQM_SAME("ECF, an increase", out.kind, PAQM_ECF_AI);
	in.rate = 2 * PAQM_BPS_MAX; /* more than can be: counts as that */
	out = paqm_ecf_step(&ecf, &p, &in);
	PAQM_NEAR("ECF, sum of all at full rate", out.want_q20 >> PAQM_BPS_Q, 3 * PAQM_BPS_MAX,
		  2000);
	in.target = 0;
	in.backlog = 1U << 31;
	out = paqm_ecf_step(&ecf, &p, &in);
	PAQM_SAME("ECF, nothing is left", out.want_q20, 0);
	PAQM_SAME("ECF, a decrease", out.kind, PAQM_ECF_MD);
	paqm_erf_init(&erf, PAQM_BPS_MAX, PAQM_BPS_MAX);
	in.backlog = 0;
	in.target = 1U << 31;
	in.rate = 1000;
	PAQM_SAME("ERF, not above the capacity", paqm_erf_step(&erf, &p, &in), PAQM_BPS_MAX);
}

static inline void paqm_check_erf(void)
{
	struct paqm_outer_params p = paqm_vec_gains();
	unsigned int i;

	for (i = 0; i < sizeof(paqm_vec_erf) / sizeof(paqm_vec_erf[0]); i++) {
		const struct paqm_vec_erf *t = &paqm_vec_erf[i];
		struct paqm_outer_in in =
			PAQM_IN(t->cap, t->rate, t->backlog, t->target, t->period_us, 0);
		struct paqm_erf_vars v = {t->old << PAQM_BPS_Q, (paqm_u64)t->flows << 16};

		paqm_erf_step(&v, &p, &in);
		PAQM_NEAR("ERF, rate in 0.1 bit/s", paqm_muldiv(v.rate_q20, 10, 1 << PAQM_BPS_Q),
			  t->want_x10, paqm_max64(10, paqm_div64(t->want_x10, 1000000)));
		PAQM_NEAR("ERF, implied flows", paqm_muldiv(v.flows_q16, 1000000, PAQM_Q16_ONE),
			  t->flows_ppm, paqm_max64(20, paqm_div64(t->flows_ppm, 100000)));
		PAQM_NEAR("ERF, binary32", paqm_f32_encode(v.rate_q20, PAQM_BPS_Q), t->value, 2);
	}
	/* ten flows of 2 Mbit/s are too much: R = 16 Mbit/s says nothing, N is 8 */
	for (i = 0; i < 2; i++) {
		struct paqm_outer_in in = PAQM_IN(16000000, 20000000, 40000, 40000, 600000, 10);
		struct paqm_erf_vars v = {16000000ULL << PAQM_BPS_Q, 1 << 16};

		p.fastest = i ? 2000000 : 0;
		PAQM_NEAR("ERF, overload, fastest flow known", paqm_erf_step(&v, &p, &in),
			  i ? 1625000 : 13000000, 1);
	}
	/* an R that only swings is not left: what is known of the flows lags behind it */
	{
		struct paqm_outer_in in = PAQM_IN(16000000, 20000000, 40000, 40000, 600000, 10);
		struct paqm_erf_vars v = {2100000ULL << PAQM_BPS_Q, 8 << 16};

		p.fastest = 2000000;
		PAQM_NEAR("ERF, overload, R near the fastest flow", paqm_erf_step(&v, &p, &in),
			  1725000, 1);
	}
	/* idle capacity: ten flows share the increase that the law would give each of two */
	for (i = 0; i < 2; i++) {
		struct paqm_outer_in in = PAQM_IN(16000000, 10000000, 40000, 40000, 600000, 10);
		struct paqm_erf_vars v = {8000000ULL << PAQM_BPS_Q, 2 << 16};

		p.fastest = i ? 1000000 : 0;
		PAQM_NEAR("ERF, increase, flows counted", paqm_erf_step(&v, &p, &in),
			  i ? 8450000 : 10250000, 1);
	}
	/* begins at the whole capacity, as published, or at an equal part, when there are flows */
	for (i = 0; i < 2; i++) {
		struct paqm_outer_in in = PAQM_IN(16000000, 0, 0, 40000, 600000, 0);
		struct paqm_erf_vars v = {0, 0};

		p.counted = i;
		PAQM_SAME("ERF, start without flows", paqm_erf_rate(&v, &p, &in, 0),
			  i ? 0 : 16000000);
		in.flows = 10;
		PAQM_SAME("ERF, start", paqm_erf_rate(&v, &p, &in, 0), i ? 1600000 : 16000000);
	}
}

static inline void paqm_check_f32(void)
{
	static const struct {
		paqm_u64 num, den;
		paqm_u32 bits;
	} t[] = {
		{1, 10, 0x3DCCCCCD},
		{1, 2, 0x3F000000},
		{93, 100, 0x3F6E147B},
		{96, 100, 0x3F75C28F},
		{1, 3, 0x3EAAAAAB},
		{2, 3, 0x3F2AAAAB},
		{(1 << 23) + 1, 1 << 23, 0x3F800001},
		{2, 1, 0x40000000},
		{10000, 1, 0x461C4000},
		{250000, 1, 0x48742400},
		{625000, 1, 0x49189680},
		{1000000, 1, 0x49742400},
		{16777217, 1, 0x4B800000},
		{1000000000, 1, 0x4E6E6B28},
		{10000000000ULL, 1, 0x501502F9},
		{100000000000ULL, 1, 0x51BA43B7},
		{800000000000ULL, 1, 0x533A43B7},
	};
	static const paqm_u32 refused[] = {0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001,
					   0xBF800000, 0x80000000, 0x7F7FFFFF};
	paqm_u64 back = 0;
	unsigned int i;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		/* large numbers exactly, fractions with 40 bits behind the point */
		int frac = t[i].den == 1 ? 0 : 40;
		paqm_u64 v = paqm_muldiv(t[i].num, 1ULL << frac, t[i].den);

		PAQM_SAME("binary32 encode", paqm_f32_encode(v, frac), t[i].bits);
		PAQM_SAME("binary32 decode accepts", paqm_f32_decode(t[i].bits, 20, &back), 0);
		PAQM_NEAR("binary32 decode", back, paqm_muldiv(t[i].num, 1 << 20, t[i].den),
			  paqm_max64(1, paqm_div64(t[i].num, t[i].den) >> 3));
	}
	for (i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		PAQM_SAME("binary32 decode refuses",
			  (paqm_u64)(paqm_f32_decode(refused[i], 20, &back) == -1), 1);
	PAQM_SAME("binary32 of zero", paqm_f32_encode(0, 24), 0);
}

/* Reference plant of the outer laws: two segments per period, backlog in bits. */
static inline paqm_s64 paqm_plant(paqm_s64 bits, paqm_s64 rate, paqm_s64 cap, paqm_s64 ms)
{
	paqm_s64 gain = (rate - cap) * ms;

	/* 32-bit kernels do not divide 64 bits, signed ones even less */
	if (gain < 0)
		bits -= (paqm_s64)paqm_div64((paqm_u64)-gain, 1000);
	else
		bits += (paqm_s64)paqm_div64((paqm_u64)gain, 1000);
	return bits < 0 ? 0 : bits > 3200000 ? 3200000 : bits;
}

/*
 * P1-P3: ERF in closed loop. Flows change from @before to @after at step 2; the
 * rate of a source is its allowance, at most @limit.
 */
static inline void paqm_check_erf_plant(const char *what, paqm_u64 start, unsigned int before,
					unsigned int after, paqm_s64 limit, const paqm_u64 *want,
					unsigned int first, unsigned int count)
{
	struct paqm_outer_params p = paqm_vec_gains();
	struct paqm_erf_vars v;
	paqm_s64 bits = 320000, old = (paqm_s64)start, now = (paqm_s64)start;
	unsigned int n, flows;

	paqm_erf_init(&v, start, 16000000);
	for (n = 0; n < first + count; n++) {
		struct paqm_outer_in in = PAQM_IN(16000000, 0, 0, 40000, 600000, 0);

		flows = n < 2 ? before : after;
		if (start == 16000000 && !n)
			bits = 0;
		bits = paqm_plant(bits, (paqm_s64)flows * (old < limit ? old : limit), 16000000,
				  100);
		bits = paqm_plant(bits, (paqm_s64)flows * (now < limit ? now : limit), 16000000,
				  500);
		in.rate = (paqm_u64)((paqm_s64)flows * (now < limit ? now : limit));
		in.backlog = (paqm_u32)bits / 8;
		old = now;
		paqm_erf_step(&v, &p, &in);
		now = (paqm_s64)((v.rate_q20 + (1 << 19)) >> PAQM_BPS_Q);
		if (n >= first && n - first < count)
			PAQM_NEAR(what, (paqm_u64)now, want[n - first],
				  paqm_div64(want[n - first], 1000) + 60);
	}
}

static inline void paqm_check_erf_plants(void)
{
	static const paqm_u64 p1[] = {232000, 358200, 510800, 655200, 751800, 794500, 807900,
				      809000, 806200, 803100, 801100, 800100, 799800};
	static const paqm_u64 p2[] = {1109300, 1377400, 1537200, 1600400, 1618700,
				      1617700, 1611200, 1605300, 1601600, 1600000};
	static const paqm_u64 p3[] = {11787000, 8339000, 5900000, 4174000, 2953000,
				      2089000,	1478000, 1440000, 1477000, 1531000,
				      1574500,	1598000, 1607000};

	paqm_check_erf_plant("plant P1, 10 to 20 flows", 1600000, 10, 20, 1LL << 40, p1, 2, 13);
	paqm_check_erf_plant("plant P2, 20 to 10 flows", 800000, 20, 10, 1LL << 40, p2, 2, 10);
	paqm_check_erf_plant("plant P3, cold start", 16000000, 10, 10, 2000000, p3, 0, 13);
}

/* P4: ECF in closed loop, 12 unequal sources; rates in bit/s, Q16. */
static inline void paqm_check_ecf_plant(void)
{
	static const paqm_u64 ai_x10[7] = {2155556, 1212500, 682031, 383643, 215799, 108099, 26469};
	static const paqm_u64 md[5] = {9979, 9969, 9976, 9987, 9995};
	static const struct {
		int step;
		paqm_u64 jain_x10000;
	} jain[] = {{19, 8681}, {99, 9490}, {199, 9870}, {399, 9990}};
	struct paqm_outer_params p = paqm_vec_gains();
	struct paqm_ecf_vars v = {0};
	paqm_u64 rate[12], cap = 2000000ULL << 16, value = 0, total, squares;
	paqm_s64 bits = 320000, old = 0, now = 0;
	unsigned int i, n, next = 0;

	p.forced_md = 1;
	for (i = 0; i < 12; i++) {
		rate[i] = (i >= 5 && i < 10 ? 2000000ULL : 400000ULL) << 16;
		now += (paqm_s64)rate[i];
	}
	old = now;
	for (n = 0; n < 400; n++) {
		struct paqm_outer_in in = PAQM_IN(16000000, 0, 0, 40000, 600000, 12);
		struct paqm_ecf_out out;

		if (!n)
			bits = 0;
		bits = paqm_plant(bits, old >> 16, 16000000, 100);
		bits = paqm_plant(bits, now >> 16, 16000000, 500);
		in.rate = (paqm_u64)now >> 16;
		in.backlog = (paqm_u32)bits / 8;
		out = paqm_ecf_step(&v, &p, &in);
		if (n < 7) {
			paqm_f32_decode(out.value, 20, &value);
			PAQM_NEAR("plant P4, increase in 0.1 bit/s",
				  paqm_muldiv(value, 10, 1 << 20), ai_x10[n],
				  paqm_div64(ai_x10[n], 500) + 20);
		} else if (n < 12) {
			paqm_f32_decode(out.value, 30, &value);
			PAQM_NEAR("plant P4, decrease in 1e-4", paqm_muldiv(value, 10000, 1 << 30),
				  md[n - 7], 2);
		} else if (n == 12) {
			PAQM_SAME("plant P4, forced decrease", out.value, 0x3F75C28F);
		}
		old = now;
		now = 0;
		total = 0;
		squares = 0;
		for (i = 0; i < 12; i++) {
			if (out.kind == PAQM_ECF_MD) {
				paqm_f32_decode(out.value, 30, &value);
				rate[i] = paqm_muldiv(rate[i], value, 1 << 30);
			} else if (out.kind == PAQM_ECF_AI) {
				paqm_f32_decode(out.value, 16, &value);
				rate[i] = paqm_min64(cap, rate[i] + value);
			}
			now += (paqm_s64)rate[i];
			total += rate[i] >> 16;
			squares += (rate[i] >> 16) * (rate[i] >> 16);
		}
		if (next < 4 && (int)n == jain[next].step) {
			PAQM_NEAR("plant P4, Jain index in 1e-4",
				  paqm_muldiv(paqm_muldiv(total, total, 12), 10000, squares),
				  jain[next].jain_x10000, 15);
			next++;
		}
	}
}

#endif /* PAQM_LAW_VECTORS_H */
