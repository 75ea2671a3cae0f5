/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The laws ACP, QLBIC and RCP at the links of ratesim.h, and what their closed loops share. */
#ifndef PAQM_RATELAWS_H
#define PAQM_RATELAWS_H

#include "../paqm_laws.h"
#include "check.h"
#include "ratesim.h"

#define TRIP 0.08 /* s, round trip where nothing else is said */

struct result {
	double use, queue, peak;
	unsigned long drops;
};

extern struct paqm_acp_vars acp_state[SIM_LINKS]; /* of ACP and QLBIC, by link */
extern struct sim_flow *users_of[1000];

void law_acp(struct sim_link *link, double period, double trip);
/* As published: windows, a reference of 100 packets. */
void law_qlbic_window(struct sim_link *link, double period, double trip);
/* As in the router, with a reference of 20 packets. */
void law_qlbic_paced(struct sim_link *link, double period, double trip);
void law_rcp(struct sim_link *link, double period, double trip);
/* The number of users that ACP or QLBIC has estimated. */
double users(const struct sim_link *link);

/* A link with the buffer of its bandwidth-delay product, and users that join one per round trip. */
struct sim_link *dumbbell(double mbit, double trip, int count, sim_law law);
/* What is measured from @begin on; drops and the longest queue are of the whole run. */
struct result measured(const char *what, struct sim_link *link, double begin, double end);
/* What settles of a user: its window, packets; its mean rate of a round trip, Mbit/s. */
double window_of(const struct sim_flow *f);
double mbit_of(const struct sim_flow *f);
/*
 * Seconds from @from on, until that of users @first to @last - 1 is within a tenth of @want for
 * good; at most until @end.
 */
double settles(double (*of)(const struct sim_flow *f), int first, int last, double from, double end,
	       double want);
/* Check the rates of flows since sim_mark(), Mbit/s. */
void rates(const char *what, struct sim_flow *const *f, const double *want, int count,
	   double within);

#endif /* PAQM_RATELAWS_H */
