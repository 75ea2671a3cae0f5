/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How many wire bytes the next picture may and should take.
 *
 * The model is a bottleneck that serves exactly the allowance while the
 * packets of each picture are spread over the frame interval. What a picture
 * takes above its interval's share is backlog there. "May": no picture lets
 * the backlog exceed the delay budget. "Should": the share, less the backlog,
 * plus a slow correction that makes the mean meet the allowance.
 *
 * Pure functions: no clock, no I/O.
 */
#ifndef PAQM_FRAMEBUDGET_H
#define PAQM_FRAMEBUDGET_H

#include <stdbool.h>

struct budget_params {
	double interval; /* frame interval, s */
	double delay;	 /* delay budget, s */
	double use;	 /* share of the allowance to aim at */
};

struct budget_state {
	double backlog; /* bytes waiting at the modelled bottleneck */
	double trim;	/* slow correction, as a share of the allowance */
	double owed;	/* bytes that pictures stayed short of their shares */
	double share;	/* at which that was */
};

struct budget {
	double share; /* bytes the allowance serves in one interval */
	double bound; /* never more than this */
	double target;
	bool skip; /* too little is left: leave this picture out */
};

struct budget budget_next(const struct budget_state *st, const struct budget_params *p,
			  double rate);
void budget_sent(struct budget_state *st, const struct budget_params *p, const struct budget *b,
		 double wire, bool limited);

#endif /* PAQM_FRAMEBUDGET_H */
