/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Outer law ECF, explicit congestion feedback: a relative step towards the wanted aggregate.
 *
 * Source: A. Lie, NTNU 2008:74, App. C, with the forced decrease of Paper D.
 */
#ifndef PAQM_ECF_H
#define PAQM_ECF_H

#include "paqm_law.h"

enum paqm_ecf_kind { PAQM_ECF_NONE, PAQM_ECF_HOLD, PAQM_ECF_MD, PAQM_ECF_AI };

/**
 * struct paqm_ecf_out - result of one ECF period
 * @kind: what @value means
 * @value: binary32: factor below 1, 1.0, or bit/s to add
 * @want_q20: wanted aggregate r', bit/s, Q20
 */
struct paqm_ecf_out {
	enum paqm_ecf_kind kind;
	paqm_u32 value;
	paqm_u64 want_q20;
};

/**
 * struct paqm_ecf_vars - state of the ECF law
 * @near_one: consecutive decreases above 0.96
 * @said: result of the last round
 */
struct paqm_ecf_vars {
	paqm_u8 near_one;
	struct paqm_ecf_out said;
};

#define PAQM_ECF_FORCED_Q24 PAQM_Q24(96, 100)
#define PAQM_ECF_FORCED_AFTER 5

/**
 * paqm_ecf_step() - ECF law, App. C form, with forced decrease (Paper D)
 * @v: state
 * @p: parameters
 * @in: measurement
 *
 * r' = r + alpha (cap - r) + beta (N_out - Q) / d. A decrease is sent as the
 * factor r'/r, an increase as (r' - r)/n bit/s per flow, times @p->ai_q24. An increase of at most
 * 1 bit/s could be taken for a factor and is sent as hold. Without the forced
 * decrease a perfectly matched aggregate would freeze unequal shares.
 *
 * Return: what to send.
 */
static inline struct paqm_ecf_out paqm_ecf_step(struct paqm_ecf_vars *v,
						const struct paqm_outer_params *p,
						const struct paqm_outer_in *in)
{
	struct paqm_ecf_out out = {PAQM_ECF_NONE, PAQM_F32_ONE, 0};
	paqm_u64 rate_q20 = paqm_min64(in->rate, PAQM_BPS_MAX) << PAQM_BPS_Q;
	paqm_u64 pos = rate_q20, neg = 0, md, ai;

	if (!in->rate) {
		v->near_one = 0;
		return out;
	}
	paqm_outer_terms(p, in, &pos, &neg);
	out.want_q20 = pos > neg ? pos - neg : 0;
	out.kind = PAQM_ECF_HOLD;
	if (out.want_q20 >= rate_q20) {
		v->near_one = 0;
		ai = paqm_mul_q24(out.want_q20 - rate_q20, p->ai_q24);
		ai = paqm_div64(ai, in->flows ? in->flows : 1);
		if (ai > 1ULL << PAQM_BPS_Q && !(p->ai_hold && in->backlog >= in->target)) {
			out.kind = PAQM_ECF_AI;
			out.value = paqm_f32_encode(ai, PAQM_BPS_Q);
		}
		return out;
	}
	out.kind = PAQM_ECF_MD;
	md = paqm_muldiv(out.want_q20, 1ULL << 40, rate_q20);
	md = paqm_max64(md, (paqm_u64)p->md_min_q24 << 16);
	if (md > (paqm_u64)PAQM_ECF_FORCED_Q24 << 16) {
		if (p->forced_md && v->near_one >= PAQM_ECF_FORCED_AFTER) {
			/* the decimal 0.96 itself, not its Q24 neighbour */
			md = paqm_muldiv(96, 1ULL << 40, 100);
			v->near_one = 0;
		} else if (v->near_one < PAQM_ECF_FORCED_AFTER) {
			v->near_one++;
		}
	} else {
		v->near_one = 0;
	}
	out.value = paqm_f32_encode(md, 40);
	return out;
}

/* An equal part for each flow; how it changes is in @v->said. */
static inline paqm_u64 paqm_ecf_rate(struct paqm_ecf_vars *v, const struct paqm_outer_params *p,
				     const struct paqm_outer_in *in, int whole)
{
	if (whole)
		v->said = paqm_ecf_step(v, p, in);
	else
		v->said = (struct paqm_ecf_out){PAQM_ECF_HOLD, PAQM_F32_ONE, 0};
	return paqm_div64(in->cap, in->flows ? in->flows : 1);
}

#endif /* PAQM_ECF_H */
