// SPDX-License-Identifier: GPL-2.0
/*
 * GAIMD (Y. R. Yang, S. S. Lam, ICNP 2000) in the form of a rate: alpha packets per round trip more
 * each round trip, beta of the rate after a loss event, then a round trip of rest. Friendly to TCP
 * where alpha = 4 (1 - beta^2) / 3, as with the pair of the start, 0.3125 and 7/8; the mean of the
 * sawtooth asks for 3 (1 - beta) / (1 + beta) instead, 0.2 for 7/8 (Floyd, Handley, Padhye 2000).
 * Silence halves: the papers leave it to TCP's timeout.
 */
#include <math.h>

#include "streamer/control/control.h"

#define USED 0.9     /* of the rate, or it does not grow */
#define LONGEST 64.0 /* s between two packets */
#define FIRST 2.0    /* s without a report before any */
#define REPORTS_MISSED 3

enum { ALPHA, BETA };

static const struct ctl_option gaimd_options[] = {
	[ALPHA] = {"alpha", "packets more per round trip", 0.01, 4, 0.3125},
	[BETA] = {"beta", "kept after a loss event", 0.1, 0.99, 0.875},
	{0},
};

struct gaimd {
	double packet; /* bytes */
	double rate;   /* bytes/s */
	struct fb_rtt rtt;
	double cut; /* when it was lowered last */
	double step, silent;
	bool limited, idle;
};

static void gaimd_init(void *state, const struct ctl_params *p, double now)
{
	*(struct gaimd *)state = (struct gaimd){.packet = p->packet,
						.rate = p->packet / FIRST,
						.cut = -INFINITY,
						.step = INFINITY,
						.silent = now + FIRST,
						.idle = true};
}

static double gaimd_rate(const void *state, const struct ctl_params *p)
{
	(void)p;
	return 8 * ((const struct gaimd *)state)->rate;
}

static void gaimd_lower(struct gaimd *s, double now, double kept)
{
	s->rate = fmax(kept * s->rate, s->packet / LONGEST);
	s->cut = now;
	/* The round trip of rest, and the one that is judged after it. */
	s->step = s->rtt.any ? now + 2 * s->rtt.mean : INFINITY;
}

static void gaimd_report(void *state, const struct ctl_params *p, const struct fb_report *r)
{
	struct gaimd *s = state;
	double patience;

	if (isfinite(r->rtt)) {
		bool first = !s->rtt.any;

		fb_rtt_sample(&s->rtt, fmax(r->rtt, 1e-4), 0.125, 0.25);
		if (first) {
			s->rate = s->packet / s->rtt.mean;
			s->step = r->now + s->rtt.mean;
		}
	}
	s->limited = isfinite(r->x_sent) && r->x_sent < USED * gaimd_rate(s, p);
	if (fb_congested(r, p->ecn != CTL_ECN_NONE, s->cut, s->rtt.mean))
		gaimd_lower(s, r->now, p->option[BETA]);
	patience = s->rtt.any ? 2 * s->rtt.mean + 4 * s->rtt.var : FIRST;
	s->silent = r->now + fmax(patience, REPORTS_MISSED * r->fb->spacing);
	s->idle = true;
}

static void gaimd_sent(void *state, double now, size_t bytes)
{
	(void)now;
	(void)bytes;
	((struct gaimd *)state)->idle = false;
}

static double gaimd_next(const void *state)
{
	const struct gaimd *s = state;

	return fmin(s->step, s->silent);
}

static void gaimd_timeout(void *state, const struct ctl_params *p, double now)
{
	struct gaimd *s = state;

	if (s->silent <= now) {
		if (!s->idle)
			gaimd_lower(s, now, 0.5);
		s->idle = true;
		s->silent = now + (s->rtt.any ? 2 * s->rtt.mean + 4 * s->rtt.var : FIRST);
	}
	if (s->step <= now) {
		if (!s->limited)
			s->rate = fmin(s->rate + p->option[ALPHA] * s->packet / s->rtt.mean,
				       p->rate_max / 8);
		s->step = now + s->rtt.mean;
	}
}

static void gaimd_state(const void *state, const char *name, ctl_log_fn log, void *data)
{
	const struct gaimd *s = state;

	log(name, "r", s->rtt.mean, data);
	log(name, "limited", s->limited, data);
}

const struct ctl_kind ctl_gaimd = {
	.name = "gaimd",
	.summary = "GAIMD: alpha packets more per round trip, beta of the rate after losses",
	.marks = true,
	.options = gaimd_options,
	.size = sizeof(struct gaimd),
	.init = gaimd_init,
	.report = gaimd_report,
	.sent = gaimd_sent,
	.next = gaimd_next,
	.timeout = gaimd_timeout,
	.rate = gaimd_rate,
	.state = gaimd_state,
};
