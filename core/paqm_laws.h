/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Every outer law, once. The qdisc computes by this table; `tc` and the kernel's refusals have the
 * words from it. docs/adding.md says how to add a law.
 */
#ifndef PAQM_LAWS_H
#define PAQM_LAWS_H

#include "paqm_acp.h"
#include "paqm_ecf.h"
#include "paqm_erf.h"
#include "paqm_qlbic.h"
#include "paqm_rcp.h"
#include "paqm_vcp.h"
#include "paqm_xcp.h"

/*
 * In the order of PAQM_LAW_* in the netlink interface: word, name, kind, and whether messages carry
 * a relative value. DEMANDS: the rate is divided by what flows use (paqm_maxmin.h). MEASURED: it is
 * found from the aggregate by paqm_NAME_rate(), whose state is struct paqm_NAME_vars. ASKS: so it
 * is, and it goes by what senders say in the supplement of paqm_inband.h. EACH: and a flow whose
 * rate is known is told what paqm_NAME_each() makes of that.
 */
/* clang-format off */
#define PAQM_LAWS(first, more, last) \
	first("maxmin", maxmin, DEMANDS, 0) \
	more("ecf", ecf, MEASURED, 1) \
	more("erf", erf, MEASURED, 0) \
	more("acp", acp, ASKS, 0) \
	more("qlbic", qlbic, ASKS, 0) \
	more("rcp", rcp, ASKS, 0) \
	more("xcp", xcp, EACH, 0) \
	last("vcp", vcp, EACH, 0)
/* clang-format on */

#define PAQM_LAW_STATE_DEMANDS(name)
#define PAQM_LAW_STATE_MEASURED(name) struct paqm_##name##_vars name;
#define PAQM_LAW_STATE_ASKS(name) PAQM_LAW_STATE_MEASURED(name)
#define PAQM_LAW_STATE_EACH(name) PAQM_LAW_STATE_MEASURED(name)
#define PAQM_LAW_STATE(word, name, kind, relative) PAQM_LAW_STATE_##kind(name)
#define PAQM_LAW_RATE_DEMANDS(name) ((void *)0), ((void *)0), 0
#define PAQM_LAW_RATE_MEASURED(name) paqm_law_##name, ((void *)0), 0
#define PAQM_LAW_RATE_ASKS(name) paqm_law_##name, ((void *)0), 1
#define PAQM_LAW_RATE_EACH(name) paqm_law_##name, paqm_law_each_##name, 1
#define PAQM_LAW_ROW(word, name, kind, relative) {PAQM_LAW_RATE_##kind(name), relative},
#define PAQM_LAW_CALL_DEMANDS(name)
#define PAQM_LAW_CALL_MEASURED(name)                                                               \
	static inline paqm_u64 paqm_law_##name(struct paqm_law_vars *v,                            \
					       const struct paqm_outer_params *p,                  \
					       const struct paqm_outer_in *in, int whole)          \
	{                                                                                          \
		return paqm_##name##_rate(&v->name, p, in, whole);                                 \
	}
#define PAQM_LAW_CALL_ASKS(name) PAQM_LAW_CALL_MEASURED(name)
#define PAQM_LAW_CALL_EACH(name)                                                                   \
	PAQM_LAW_CALL_MEASURED(name)                                                               \
	static inline struct paqm_each paqm_law_each_##name(const struct paqm_law_vars *v)         \
	{                                                                                          \
		return paqm_##name##_each(&v->name);                                               \
	}
#define PAQM_LAW_CALL(word, name, kind, relative) PAQM_LAW_CALL_##kind(name)

/* State of all laws; only that of the law in force moves. */
struct paqm_law_vars {
	PAQM_LAWS(PAQM_LAW_STATE, PAQM_LAW_STATE, PAQM_LAW_STATE)
};

PAQM_LAWS(PAQM_LAW_CALL, PAQM_LAW_CALL, PAQM_LAW_CALL)

/**
 * struct paqm_law - an outer law
 * @rate: the fair rate of a flow, bit/s, from what a period measured; 0: the last one stands.
 *	Without @whole there was no period, and the law keeps its values. Null: by demands
 * @each: what flows make of their rates; null: all are told the same
 * @asks: goes by what senders say of themselves
 * @relative: messages carry a relative value, too
 */
struct paqm_law {
	paqm_u64 (*rate)(struct paqm_law_vars *v, const struct paqm_outer_params *p,
			 const struct paqm_outer_in *in, int whole);
	struct paqm_each (*each)(const struct paqm_law_vars *v);
	paqm_u8 asks;
	paqm_u8 relative;
};

/* The law of a number of the netlink interface, which has been checked. */
static inline const struct paqm_law *paqm_law_of(paqm_u32 number)
{
	static const struct paqm_law laws[] = {PAQM_LAWS(PAQM_LAW_ROW, PAQM_LAW_ROW, PAQM_LAW_ROW)};

	return &laws[number];
}

#endif /* PAQM_LAWS_H */
