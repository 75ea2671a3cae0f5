/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Test vectors of the P-AQM laws and codecs, run by two runners: the user-space
 * test (core/tests/test_law.c) and the KUnit suite (kernel/kunit/paqm_kunit.c).
 * Integer-only for that reason. The includer defines
 *   PAQM_NEAR(what, got, want, tolerance)   all paqm_u64
 * as a check that reports a difference above the tolerance and goes on.
 *
 * Numbers: inner law and EWMA, ECF, ERF, binary32 and plant vectors of the P-AQM
 * router specification, derived from A. Lie, NTNU 2008:74.
 */
#ifndef PAQM_LAW_VECTORS_H
#define PAQM_LAW_VECTORS_H

#include "../paqm_bucket.h"
#include "../paqm_law.h"
#include "../paqm_link.h"
#include "../paqm_maxmin.h"
#include "../paqm_sched.h"
#include "../paqm_msg.h"

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
	struct paqm_outer_params p = {
		PAQM_Q24(75, 100), PAQM_Q24(35, 100), PAQM_Q24(1, 10), 10000, 0, 0, 0};

	return p;
}

struct paqm_vec_ecf {
	struct paqm_outer_in in;
	paqm_u64 want_x10; /* r' in 0.1 bit/s */
	enum paqm_ecf_kind kind;
	paqm_u32 value;
};

static const struct paqm_vec_ecf paqm_vec_ecf[] = {
	{{16000000, 16000000, 40000, 40000, 600000, 10}, 160000000, PAQM_ECF_HOLD, 0x3F800000},
	{{16000000, 16000000, 0, 40000, 600000, 10}, 161866667, PAQM_ECF_AI, 0x4691D555},
	{{16000000, 16000000, 80000, 40000, 600000, 10}, 158133333, PAQM_ECF_MD, 0x3F7D036A},
	{{16000000, 12000000, 0, 40000, 600000, 10}, 151866667, PAQM_ECF_AI, 0x489B9955},
	{{16000000, 12000000, 40000, 40000, 600000, 10}, 150000000, PAQM_ECF_AI, 0x48927C00},
	{{16000000, 20000000, 40000, 40000, 600000, 10}, 170000000, PAQM_ECF_MD, 0x3F59999A},
	{{16000000, 20000000, 200000, 40000, 600000, 10}, 162533333, PAQM_ECF_MD, 0x3F500AEC},
	{{16000000, 160000000, 400000, 40000, 600000, 80}, 503200000, PAQM_ECF_MD, 0x3EA10625},
	{{16000000, 16000000, 39999, 40000, 600000, 10}, 160000047, PAQM_ECF_HOLD, 0x3F800000},
	{{16000000, 16000000, 40001, 40000, 600000, 10}, 159999953, PAQM_ECF_MD, 0x3F7FFFFB},
	{{15200000, 16000000, 40000, 40000, 600000, 20}, 154000000, PAQM_ECF_MD, 0x3F766666},
	{{16000000, 15800000, 80000, 40000, 600000, 10}, 157633333, PAQM_ECF_MD, 0x3F7F67EA},
	{{60000, 64000, 4500, 3000, 800000, 1}, 557500, PAQM_ECF_MD, 0x3F5F0000},
	{{95000000000ULL, 100000000000ULL, 2500000, 2500000, 510000, 10000},
	 962500000000ULL,
	 PAQM_ECF_MD,
	 0x3F766666},
	{{760000000000ULL, 800000000000ULL, 20000000, 20000000, 510000, 10000},
	 7700000000000ULL,
	 PAQM_ECF_MD,
	 0x3F766666},
	{{800000000000ULL, 100000000000ULL, 20000000, 20000000, 510000, 1},
	 6250000000000ULL,
	 PAQM_ECF_AI,
	 0x52F478E1},
	{{16000000, 2000000000, 1000000, 40000, 600000, 1000},
	 5075200000ULL,
	 PAQM_ECF_MD,
	 0x3E81ECD5},
	{{16000000, 0, 0, 40000, 600000, 0}, 0, PAQM_ECF_NONE, PAQM_F32_ONE},
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
		PAQM_NEAR("ECF, kind", out.kind, t->kind, 0);
		PAQM_NEAR("ECF, wanted rate in 0.1 bit/s",
			  paqm_muldiv(out.want_q20, 10, 1 << PAQM_BPS_Q), t->want_x10,
			  paqm_max64(10, paqm_div64(t->want_x10, 1000000)));
		PAQM_NEAR("ECF, value", out.value, t->value, 2);
	}
	p.md_min_q24 = PAQM_Q24(5, 10);
	{
		struct paqm_ecf_vars v = {0};

		out = paqm_ecf_step(&v, &p, &paqm_vec_ecf[16].in);
		PAQM_NEAR("ECF, floor 0.5", out.value, 0x3F000000, 0);
	}
	p.ai_hold = 1;
	{
		struct paqm_ecf_vars v = {0};

		out = paqm_ecf_step(&v, &p, &paqm_vec_ecf[4].in); /* queue at its target */
		PAQM_NEAR("ECF, increase withheld", out.value, PAQM_F32_ONE, 0);
	}
}

/* A measurement that yields the decrease @percent/100 with an empty error. */
static inline struct paqm_outer_in paqm_vec_md(unsigned int percent)
{
	struct paqm_outer_in in = {0, 1000000, 40000, 40000, 600000, 10};

	/* r' = r + 0.75 (cap - r) */
	in.cap = 1000000 - paqm_muldiv(1000000 - 10000ULL * percent, 4, 3);
	return in;
}

static inline void paqm_check_forced_md(void)
{
	struct paqm_outer_params p = paqm_vec_gains();
	struct paqm_ecf_vars v = {0};
	struct paqm_outer_in in, rise = {2000000, 1000000, 40000, 40000, 600000, 10};
	struct paqm_ecf_out out;
	int i;

	p.forced_md = 1;
	in = paqm_vec_md(97);
	for (i = 0; i < 5; i++)
		paqm_ecf_step(&v, &p, &in);
	in = paqm_vec_md(98);
	out = paqm_ecf_step(&v, &p, &in);
	PAQM_NEAR("forced decrease after five", out.value, 0x3F75C28F, 0);

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
	PAQM_NEAR("and resets the count", v.near_one, 0, 0);
}

struct paqm_vec_erf {
	paqm_u64 rate, flows_q16;
	struct paqm_outer_in in;
	paqm_u64 want_x10;
	paqm_u64 flows_ppm; /* N' in 1e-6 */
	paqm_u32 value;
};

static const struct paqm_vec_erf paqm_vec_erf[] = {
	{1600000,
	 10 << 16,
	 {16000000, 16000000, 40000, 40000, 600000, 0},
	 16000000,
	 10000000,
	 0x49C35000},
	{1600000,
	 10 << 16,
	 {16000000, 32000000, 400000, 40000, 600000, 0},
	 2320000,
	 68965517,
	 0x48629000},
	{1600000,
	 10 << 16,
	 {16000000, 8000000, 0, 40000, 600000, 0},
	 22186667,
	 7211538,
	 0x4A076AAB},
	{16000000, 1 << 16, {16000000, 0, 0, 40000, 600000, 0}, 160000000, 1000000, 0x4B742400},
	{16000000,
	 1 << 16,
	 {16000000, 40000000, 200000, 40000, 600000, 0},
	 100000,
	 1600000000,
	 0x461C4000},
	{800000,
	 20 << 16,
	 {16000000, 16000000, 48000, 40000, 600000, 0},
	 7981333,
	 20046776,
	 0x4942DB55},
	{100000000000ULL,
	 1 << 16,
	 {95000000000ULL, 10000000000ULL, 0, 2500000, 510000, 0},
	 950000000000ULL,
	 1000000,
	 0x51B0F388},
	{800000000000ULL,
	 1 << 16,
	 {760000000000ULL, 80000000000ULL, 0, 20000000, 510000, 0},
	 7600000000000ULL,
	 1000000,
	 0x5330F388},
	{400000000000ULL,
	 2 << 16,
	 {800000000000ULL, 800000000000ULL, 0, 0, 510000, 0},
	 4000000000000ULL,
	 2000000,
	 0x52BA43B7},
	{64000, 1 << 16, {60000, 64000, 4500, 3000, 800000, 0}, 557500, 1076233, 0x4759C600},
};

/* The greatest gains, at the greatest rate, with everything missing: the sums must hold it. */
static inline void paqm_check_outer_bound(void)
{
	struct paqm_outer_params p = paqm_vec_gains();
	struct paqm_outer_in in = {PAQM_BPS_MAX, 1000, 0, 1U << 30, 50000, 1};
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
	PAQM_NEAR("ECF, an increase", out.kind, PAQM_ECF_AI, 0);
	in.rate = 2 * PAQM_BPS_MAX; /* more than can be: counts as that */
	out = paqm_ecf_step(&ecf, &p, &in);
	PAQM_NEAR("ECF, sum of all at full rate", out.want_q20 >> PAQM_BPS_Q, 3 * PAQM_BPS_MAX,
		  2000);
	in.target = 0;
	in.backlog = 1U << 31;
	out = paqm_ecf_step(&ecf, &p, &in);
	PAQM_NEAR("ECF, nothing is left", out.want_q20, 0, 0);
	PAQM_NEAR("ECF, a decrease", out.kind, PAQM_ECF_MD, 0);
	paqm_erf_init(&erf, PAQM_BPS_MAX, PAQM_BPS_MAX);
	in.backlog = 0;
	in.target = 1U << 31;
	in.rate = 1000;
	PAQM_NEAR("ERF, not above the capacity", paqm_erf_step(&erf, &p, &in), PAQM_BPS_MAX, 0);
}

static inline void paqm_check_erf(void)
{
	struct paqm_outer_params p = paqm_vec_gains();
	unsigned int i;

	for (i = 0; i < sizeof(paqm_vec_erf) / sizeof(paqm_vec_erf[0]); i++) {
		const struct paqm_vec_erf *t = &paqm_vec_erf[i];
		struct paqm_erf_vars v = {t->rate << PAQM_BPS_Q, t->flows_q16};

		paqm_erf_step(&v, &p, &t->in);
		PAQM_NEAR("ERF, rate in 0.1 bit/s", paqm_muldiv(v.rate_q20, 10, 1 << PAQM_BPS_Q),
			  t->want_x10, paqm_max64(10, paqm_div64(t->want_x10, 1000000)));
		PAQM_NEAR("ERF, implied flows", paqm_muldiv(v.flows_q16, 1000000, PAQM_Q16_ONE),
			  t->flows_ppm, paqm_max64(20, paqm_div64(t->flows_ppm, 100000)));
		PAQM_NEAR("ERF, binary32", paqm_f32_encode(v.rate_q20, PAQM_BPS_Q), t->value, 2);
	}
	/* ten flows of 2 Mbit/s are too much: R = 16 Mbit/s says nothing, N is 8 */
	for (i = 0; i < 2; i++) {
		struct paqm_outer_in in = {16000000, 20000000, 40000, 40000, 600000, 10};
		struct paqm_erf_vars v = {16000000ULL << PAQM_BPS_Q, 1 << 16};

		p.erf_fastest = i ? 2000000 : 0;
		PAQM_NEAR("ERF, overload, fastest flow known", paqm_erf_step(&v, &p, &in),
			  i ? 1625000 : 13000000, 1);
	}
	/* idle capacity: ten flows share the increase that the law would give each of two */
	for (i = 0; i < 2; i++) {
		struct paqm_outer_in in = {16000000, 10000000, 40000, 40000, 600000, 10};
		struct paqm_erf_vars v = {8000000ULL << PAQM_BPS_Q, 2 << 16};

		p.erf_fastest = i ? 1000000 : 0;
		PAQM_NEAR("ERF, increase, flows counted", paqm_erf_step(&v, &p, &in),
			  i ? 8450000 : 10250000, 1);
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

		PAQM_NEAR("binary32 encode", paqm_f32_encode(v, frac), t[i].bits, 0);
		PAQM_NEAR("binary32 decode accepts", paqm_f32_decode(t[i].bits, 20, &back), 0, 0);
		PAQM_NEAR("binary32 decode", back, paqm_muldiv(t[i].num, 1 << 20, t[i].den),
			  paqm_max64(1, paqm_div64(t[i].num, t[i].den) >> 3));
	}
	for (i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		PAQM_NEAR("binary32 decode refuses",
			  (paqm_u64)(paqm_f32_decode(refused[i], 20, &back) == -1), 1, 0);
	PAQM_NEAR("binary32 of zero", paqm_f32_encode(0, 24), 0, 0);
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
		struct paqm_outer_in in = {16000000, 0, 0, 40000, 600000, 0};

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
		struct paqm_outer_in in = {16000000, 0, 0, 40000, 600000, 12};
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
			PAQM_NEAR("plant P4, forced decrease", out.value, 0x3F75C28F, 0);
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

/* Water-filling: worked cases and the shares of the control notes. */
static inline void paqm_check_maxmin(void)
{
	static struct paqm_mm mm; /* large for a kernel stack */
	paqm_u64 fair;
	int i;

	paqm_mm_reset(&mm); /* three greedy flows */
	for (i = 0; i < 3; i++)
		paqm_mm_add(&mm, 2500000, 2533333);
	PAQM_NEAR("maxmin, equal division", paqm_mm_solve(&mm, 7600000, 10000, 8000000), 2533333,
		  0);

	paqm_mm_reset(&mm); /* two flows at their own ceiling of 3 Mbit/s */
	paqm_mm_add(&mm, 3000000, 3800000);
	paqm_mm_add(&mm, 3000000, 3800000);
	PAQM_NEAR("maxmin, all limited", paqm_mm_solve(&mm, 7600000, 10000, 8000000), 3800000, 0);

	paqm_mm_reset(&mm); /* one uses two thirds of its quarter, beside three elastic */
	paqm_mm_add(&mm, 670000, 1000000);
	fair = paqm_mm_solve_beside(&mm, 3 * PAQM_Q16_ONE, 4000000, 10000, 4000000);
	PAQM_NEAR("maxmin, limited, has an equal part", fair, 1000000, 0);

	paqm_mm_reset(&mm); /* four at 0.2, eight greedy on 11.4 Mbit/s */
	for (i = 0; i < 4; i++)
		paqm_mm_add(&mm, 200000, 1315000);
	for (i = 0; i < 8; i++)
		paqm_mm_add(&mm, 1310000, 1315000);
	PAQM_NEAR("maxmin, four limited", paqm_mm_solve(&mm, 11400000, 10000, 12000000), 1315000,
		  0);

	paqm_mm_reset(&mm); /* a flow that sends 20 of 8 is one of three all the same */
	paqm_mm_add(&mm, 20000000, 2666666);
	paqm_mm_add(&mm, 0, 0);
	paqm_mm_add(&mm, 0, 0);
	PAQM_NEAR("maxmin, one unresponsive", paqm_mm_solve(&mm, 8000000, 10000, 8000000), 2666666,
		  0);

	paqm_mm_reset(&mm); /* twenty of sound beside one elastic flow: 10 - 20 * 1.1 * 0.05 */
	for (i = 0; i < 20; i++)
		paqm_mm_add(&mm, 50000, 4000000);
	fair = paqm_mm_solve_beside(&mm, PAQM_Q16_ONE, 10000000, 10000, 10000000);
	PAQM_NEAR("maxmin, sound beside one elastic flow", fair, 4450000, 2);
	for (i = 0; i < 2; i++) /* and two of video beside four that weigh a half */
		paqm_mm_add(&mm, 2000000, 2000000);
	fair = paqm_mm_solve_beside(&mm, 2 * PAQM_Q16_ONE, 10000000, 10000, 10000000);
	PAQM_NEAR("maxmin, sound and video beside two", fair, 2225000, 2);

	PAQM_NEAR("growth, measured far below", paqm_mm_may_grow(13700000, 2000000, 500000, 0),
		  2000000, 0);
	PAQM_NEAR("growth, doubles", paqm_mm_may_grow(13700000, 2000000, 1500000, 0), 3000000, 0);
	PAQM_NEAR("growth, at its rate", paqm_mm_may_grow(2500000, 2000000, 2400000, 0), 2500000,
		  0);
	PAQM_NEAR("growth, unknown", paqm_mm_may_grow(2500000, 2000000, 0, 0), 2500000, 0);
	PAQM_NEAR("growth, slow news", paqm_mm_may_grow(13700000, 1000000, 1600000, 1), 1800000, 0);
	PAQM_NEAR("growth, slow, to an equal part", paqm_mm_may_grow(9000000, 2000000, 100000, 1),
		  2000000, 0);

	paqm_mm_reset(&mm); /* nobody there: everything is free */
	PAQM_NEAR("maxmin, no flow", paqm_mm_solve(&mm, 7600000, 10000, 8000000), 7600000, 0);

	paqm_mm_reset(&mm); /* more flows than the floor allows */
	for (i = 0; i < 1000; i++)
		paqm_mm_add(&mm, 0, 0);
	fair = paqm_mm_solve(&mm, 8000000, 10000, 8000000);
	PAQM_NEAR("maxmin, floor", fair, 10000, 0);

	PAQM_NEAR("host, one flow", paqm_mm_parts(2000000, 1, 0, 0), 256, 0);
	PAQM_NEAR("host, equal parts", paqm_mm_parts(2000000, 100, 0, 0), 25600, 0);
	/* 2 - 1.1 * 0.05 are left for the other one */
	PAQM_NEAR("host, sound and video", paqm_mm_parts(2000000, 2, 1, 50000), 263, 0);
	PAQM_NEAR("host, all limited: one may grow", paqm_mm_parts(2000000, 4, 4, 400000), 328, 0);
	PAQM_NEAR("host, an equal part at least", paqm_mm_parts(2000000, 4, 3, 2000000), 1024, 0);
	PAQM_NEAR("host, no rate yet", paqm_mm_parts(0, 3, 0, 0), 768, 0);

	PAQM_NEAR("capacity, empty queue",
		  paqm_mm_capacity(8000000, PAQM_Q24(95, 100), PAQM_Q24(35, 100), 5000, 0, 240000),
		  7658333, 2);
	PAQM_NEAR("capacity, floor",
		  paqm_mm_capacity(8000000, PAQM_Q24(95, 100), PAQM_Q24(35, 100), 5000, 5000000,
				   240000),
		  4000000, 0);
	PAQM_NEAR("trim rises", paqm_mm_trim(0, 900, 1000, 0, 5000), PAQM_TRIM_UP_Q24, 0);
	PAQM_NEAR("trim falls", paqm_mm_trim(PAQM_TRIM_MAX_Q24, 900, 1000, 10000, 5000),
		  PAQM_TRIM_MAX_Q24 - PAQM_TRIM_MAX_Q24 / 4, 1);
	PAQM_NEAR("trim rises by a part of what is missing", paqm_mm_trim(0, 980, 1000, 0, 5000),
		  PAQM_Q24(2, 400), 1);
	PAQM_NEAR("trim falls by a part of what is too much",
		  paqm_mm_trim(PAQM_Q24(10, 100), 1040, 1000, 0, 5000), PAQM_Q24(9, 100), 2);
	PAQM_NEAR("trim falls by so much at most",
		  paqm_mm_trim(PAQM_Q24(10, 100), 2000, 1000, 0, 5000), PAQM_Q24(5, 100), 1);
	PAQM_NEAR("no trim below nothing", paqm_mm_trim(PAQM_Q24(1, 100), 1100, 1000, 0, 5000), 0,
		  0);
	PAQM_NEAR("trim is bounded", paqm_mm_trim(PAQM_TRIM_MAX_Q24, 900, 1000, 0, 5000),
		  PAQM_TRIM_MAX_Q24, 0);
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
		PAQM_NEAR("bucket, packets of a full one", n, 3, 0);
		PAQM_NEAR("bucket, no rate is no limit", paqm_bucket_take(&due, due, 9000, 0, 0), 1,
			  0);
		due = 0;
		PAQM_NEAR("bucket, the costliest packet",
			  paqm_bucket_take(&due, 0, 65535, paqm_bucket_cost(1), depth), 1, 0);
		PAQM_NEAR("bucket, is bounded", due, PAQM_BUCKET_LONGEST, 0);
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
		PAQM_NEAR("bucket, what is owed is bounded", due - (now - step), most, 0);
		/* one at half of the rate fits again when that is paid back */
		packet = 0;
		for (; !paqm_bucket_take(&due, now, 1500, cost, depth); now += 4 * step) {
			paqm_bucket_owe(&due, now, 1500, cost, most);
			packet++;
		}
		PAQM_NEAR("bucket, owed, packets until one fits", packet, 2, 1);
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

		PAQM_NEAR("tokens, a full bucket",
			  paqm_tokens_fill(10, &stamp, 1000, 500, 1000000000ULL), 500, 0);
		PAQM_NEAR("tokens, nothing before it was full", stamp, 1000000000ULL, 0);
		PAQM_NEAR("tokens, a smaller bucket",
			  paqm_tokens_fill(500, &stamp, 0, 100, 2000000000ULL), 100, 0);
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
		PAQM_NEAR("scheduler, no debt without rival", (paqm_u64)s.lead, 0, 0);
		for (i = 0; i < 1000; i++) /* and idle media saves nothing up */
			paqm_sched_sent(&s, 0, 1500, 0, 1);
		PAQM_NEAR("scheduler, no saving while idle", (paqm_u64)s.lead, 0, 0);
	}
	PAQM_NEAR("share, nobody", paqm_share_q16(0, 0), PAQM_Q16_ONE / 2, 0);
	PAQM_NEAR("share, 3 against 4", paqm_share_q16(3, 4), 28087, 0);

	/* three wait, numbers 65535 to 1 */
	PAQM_NEAR("fifo, the last waits", paqm_fifo_waits(1, 65534, 1), 1, 0);
	PAQM_NEAR("fifo, the first waits", paqm_fifo_waits(1, 65534, 65535), 1, 0);
	PAQM_NEAR("fifo, one has left", paqm_fifo_waits(1, 65534, 65534), 0, 0);
	PAQM_NEAR("fifo, one left long ago", paqm_fifo_waits(1, 65534, 32000), 0, 0);
	PAQM_NEAR("fifo, nobody waits for an old one", paqm_fifo_waits(7, 7, 20000), 0, 0);
	PAQM_NEAR("fifo, all bits in use", paqm_fifo_waits(65535, 0, 1), 1, 0);
}

#endif /* PAQM_LAW_VECTORS_H */
