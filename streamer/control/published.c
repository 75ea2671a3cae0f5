// SPDX-License-Identifier: GPL-2.0
/*
 * The two published reactions to the routers' messages, and nothing else
 * (A. Lie, thesis 2008:74, Papers D and F): no safety net, for comparison and
 * for networks where every bottleneck speaks P-AQM. Without advice the last
 * rate stays.
 *
 * erf: the rate that the message names, as paqmd combined it over the routers; with paqmd --use
 * thesis-ecf that of steps. ecf: the relative value, whatever paqmd goes by, of the routers that it
 * tells of, one state per router, the smallest rules. Applied to a common rate instead, flows
 * through many routers starve. A router that has fallen silent, or is on the way no more, rules no
 * more: where fewer are in force than are known, those told of for longest are forgotten.
 */
#include "streamer/control/control.h"

#define ROUTERS 64
#define ECF_MIN 0.1 /* deepest single decrease (Paper F) */

static const struct ctl_option advised_options[] = {
	{"start", "part of the highest rate to begin with; 1 as published", 0.01, 1,
	 CTL_START_SHARE},
	{0},
};

struct advised {
	double start;
	double rate; /* erf; 0: no router has spoken */
	struct {
		uint64_t id;
		uint32_t seq;
		double rate;
		uint64_t told; /* greater: later */
	} router[ROUTERS];
	size_t n;
	uint64_t told;
};

static void advised_init(void *state, const struct ctl_params *p, double now)
{
	struct advised *s = state;

	(void)now;
	s->start = p->option[0] * p->rate_max;
}

static void erf_advice(void *state, const struct ctl_params *p, double now,
		       const struct ctl_advice *a)
{
	struct advised *s = state;

	(void)p;
	(void)now;
	if (a->rate > 0)
		s->rate = a->rate;
}

static double erf_rate(const void *state, const struct ctl_params *p)
{
	const struct advised *s = state;

	(void)p;
	return s->rate > 0 ? s->rate : s->start;
}

static bool advised_follows(const void *state)
{
	return ((const struct advised *)state)->rate > 0;
}

static size_t ecf_find(const struct advised *s, uint64_t id)
{
	size_t i = 0;

	while (i < s->n && s->router[i].id != id)
		i++;
	return i;
}

/* Of the routers that are known @most are in force, and none has granted more than was in use. */
static void ecf_forget(struct advised *s, const struct ctl_params *p, size_t most)
{
	if (s->n <= most)
		return;
	while (s->n > most) {
		size_t gone = 0;

		for (size_t k = 1; k < s->n; k++)
			if (s->router[k].told < s->router[gone].told)
				gone = k;
		s->router[gone] = s->router[--s->n];
	}
	for (size_t k = 0; k < s->n; k++)
		s->router[k].rate = ctl_clamp(s->router[k].rate, 1, s->rate);
	s->start = ctl_clamp(s->rate, p->rate_min, p->rate_max);
}

static void ecf_advice(void *state, const struct ctl_params *p, double now,
		       const struct ctl_advice *a)
{
	size_t most = a->routers && a->routers < ROUTERS ? a->routers : ROUTERS, i;
	struct advised *s = state;
	bool known;

	(void)now;
	if (a->rate <= 0) {
		s->start = ctl_clamp(erf_rate(s, p), p->rate_min, p->rate_max);
		s->n = 0;
		s->rate = 0;
		return;
	}
	i = ecf_find(s, a->router);
	known = i < s->n;
	if (known)
		s->router[i].told = ++s->told;
	ecf_forget(s, p, known ? most : most - 1);
	i = ecf_find(s, a->router);
	if (!known) {
		s->router[i].id = a->router;
		s->router[i].told = ++s->told;
		/* What others allow binds anyway; where nobody does, nobody has granted more. */
		s->router[i].rate = i ? p->rate_max : s->start;
		s->n++;
	} else if (s->router[i].seq == a->seq) {
		return; /* the same message again: steps add up */
	}
	s->router[i].seq = a->seq;
	if (a->value < 1)
		s->router[i].rate *= ctl_clamp(a->value, ECF_MIN, 1);
	else if (a->value > 1)
		s->router[i].rate += a->value;
	s->router[i].rate = ctl_clamp(s->router[i].rate, 1, p->rate_max);
	s->rate = s->router[0].rate;
	for (size_t k = 1; k < s->n; k++)
		if (s->router[k].rate < s->rate)
			s->rate = s->router[k].rate;
}

static void advised_state(const void *state, const char *name, ctl_log_fn log, void *data)
{
	const struct advised *s = state;

	log(name, "advice", s->rate, data);
}

const struct ctl_kind ctl_erf = {
	.name = "erf",
	.summary = "the rate that routers name, without a safety net",
	.options = advised_options,
	.size = sizeof(struct advised),
	.init = advised_init,
	.advice = erf_advice,
	.rate = erf_rate,
	.follows = advised_follows,
	.state = advised_state,
};

const struct ctl_kind ctl_ecf = {
	.name = "ecf",
	.summary = "the steps that routers ask for, without a safety net",
	.steps = true,
	.options = advised_options,
	.size = sizeof(struct advised),
	.init = advised_init,
	.advice = ecf_advice,
	.rate = erf_rate,
	.follows = advised_follows,
	.state = advised_state,
};
