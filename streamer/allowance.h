/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How fast a sender may send: the advice of the routers and, always beside it,
 * an end-to-end safety net that lives on receiver reports. Pure functions; the
 * caller brings the time, in seconds of any monotonic clock.
 */
#ifndef PAQM_ALLOWANCE_H
#define PAQM_ALLOWANCE_H

#include <stdbool.h>

struct allow_params {
	double rate_min;
	double rate_max;
};

struct allow_state {
	double start;	  /* when the stream began */
	double advice;	  /* bit/s; 0: none in force */
	double net;	  /* what the safety net permits */
	double raised;	  /* last time the net was raised, or lowered */
	double report;	  /* last receiver report; negative: none yet */
	double loss;	  /* last report with loss; negative: none yet */
	double kept;	  /* the net when the last advice expired; 0: none has */
	double kept_loss; /* @loss then */
	int lossy;	  /* successive reports with loss */
	bool advised;	  /* a router has spoken */
};

void allow_init(struct allow_state *st, const struct allow_params *p, double now);
void allow_advice(struct allow_state *st, const struct allow_params *p, double now, double rate);
void allow_report(struct allow_state *st, const struct allow_params *p, double now,
		  double fraction_lost);
double allow_rate(struct allow_state *st, const struct allow_params *p, double now);

#endif /* PAQM_ALLOWANCE_H */
