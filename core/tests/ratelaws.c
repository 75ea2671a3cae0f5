// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* The laws at the links of ratesim.h, and what is measured there (ratelaws.h). */
#include "ratelaws.h"

static double mean_queue(const struct sim_link *link)
{
	return link->queued_n ? link->queued / (double)link->queued_n : 0;
}

static double backlog(const struct sim_link *link, double period)
{
	return fmax(0, link->free_at - link->begun - period) * link->rate;
}

static paqm_u32 micro(double seconds)
{
	return (paqm_u32)llround(seconds * 1e6);
}

void law_acp(struct sim_link *link, double period, double trip)
{
	struct paqm_acp_vars *v = link->state;
	double queue = fmax(0, mean_queue(link) - PAQM_ACP_SPARE * SIM_PACKET);
	paqm_u64 c = (paqm_u64)link->rate;

	if (!v->users_q16)
		paqm_acp_init(v);
	paqm_acp_step(v, c, (paqm_u64)(link->bytes / period), (paqm_u64)queue, micro(trip),
		      paqm_acp_most(v, c, (paqm_u64)fmin(link->demand, 1e12)));
	link->told = (double)v->rate;
}

static void qlbic(struct sim_link *link, double period, double trip, struct paqm_qlbic_gains gains,
		  double queue, paqm_u64 ref)
{
	struct paqm_acp_vars *v = link->state;

	if (!v->users_q16)
		paqm_acp_init(v);
	paqm_qlbic_step(v, &gains, (paqm_u64)link->rate, (paqm_u64)(link->bytes / period),
			(paqm_u64)queue, ref, micro(trip));
	link->told = (double)v->rate;
}

void law_qlbic_window(struct sim_link *link, double period, double trip)
{
	qlbic(link, period, trip, (struct paqm_qlbic_gains){65536, 19661, 6554},
	      backlog(link, period), 100000);
}

void law_qlbic_paced(struct sim_link *link, double period, double trip)
{
	qlbic(link, period, trip, paqm_qlbic_paced(), mean_queue(link), 20000);
}

void law_rcp(struct sim_link *link, double period, double trip)
{
	struct paqm_outer_params p = {.rate_min = 8 * 1000};
	struct paqm_outer_in in = {.link = (paqm_u64)(8 * link->rate),
				   .rate = (paqm_u64)(8 * link->bytes / period),
				   .backlog = (paqm_u32)backlog(link, period),
				   .period_us = micro(period),
				   .rtt_us = micro(trip)};

	link->told = (double)paqm_rcp_rate(link->state, &p, &in, 1) / 8;
}

double users(const struct sim_link *link)
{
	return (double)((const struct paqm_acp_vars *)link->state)->users_q16 / PAQM_Q16_ONE;
}

struct paqm_acp_vars acp_state[SIM_LINKS];
struct sim_flow *users_of[1000];

struct sim_link *dumbbell(double mbit, double trip, int count, sim_law law)
{
	struct sim_link *link;
	int i;

	sim_begin();
	acp_state[0] = (struct paqm_acp_vars){0};
	link = sim_add_link(mbit, trip / 4, mbit * 1e6 / 8 * trip, law, &acp_state[0]);
	for (i = 0; i < count; i++) {
		users_of[i] = sim_add_flow(trip / 4, trip / 2, i * trip);
		sim_via(users_of[i], link);
	}
	return link;
}

struct result measured(const char *what, struct sim_link *link, double begin, double end)
{
	struct result r;

	sim_mark();
	sim_run(begin);
	r = (struct result){.peak = link->peak, .drops = link->drops};
	sim_mark();
	sim_run(end);
	r.use = sim_use(link);
	r.queue = sim_queue(link);
	r.peak = fmax(r.peak, link->peak) / SIM_PACKET;
	r.drops += link->drops;
	printf("%-28s use %.3f, queue %.1f, peak %.0f, drops %lu\n", what, r.use, r.queue, r.peak,
	       r.drops);
	return r;
}

double window_of(const struct sim_flow *f)
{
	return f->window;
}

double mbit_of(const struct sim_flow *f)
{
	return f->rate * 8e-6;
}

double settles(double (*of)(const struct sim_flow *f), int first, int last, double from, double end,
	       double want)
{
	double since = from, t;
	int i;

	for (t = from; t < end; t += TRIP) {
		sim_run(t);
		for (i = first; i < last; i++)
			if (fabs(of(users_of[i]) / want - 1) > 0.1)
				since = t + TRIP;
	}
	return since - from;
}

void rates(const char *what, struct sim_flow *const *f, const double *want, int count,
	   double within)
{
	int i;

	printf("%s:", what);
	for (i = 0; i < count; i++) {
		printf(" %.2f", sim_rate(f[i]));
		near(what, sim_rate(f[i]), want[i], within * want[i]);
	}
	puts(" Mbit/s");
}
