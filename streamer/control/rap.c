// SPDX-License-Identifier: GPL-2.0
/*
 * RAP (R. Rejaie, M. Handley, D. Estrin, INFOCOM 1999): one packet more per round trip, half the
 * rate after a round trip with losses, by the gap between packets (IPG). Constants of its ns-2
 * code, but for the gains of the round trip, 1/8 and 1/4 (`rtt-gain=0.5`: both as there). `fine`:
 * the gap is scaled by the short-term over the long-term round trip.
 *
 * As the original it has no slow start. Reports say what its acknowledgements would, so these are
 * not carried. Its increase asks for half of the packets allowed: here of the rate that was offered
 * since the report before, as video does not send in every round trip.
 */
#include <math.h>

#include "streamer/control/control.h"

#define ALPHA 1.0
#define BETA 0.5
#define MU 1.2	/* of the timeout: round trip */
#define PHI 4.0 /* and its variation */
#define FAST 0.9
#define SLOW 0.01
#define FIRST 2.0 /* s: gap and timeout before any report */
#define USED 0.5
#define LONGEST 64.0
#define REPORTS_MISSED 3

enum { FINE, RTT_GAIN };

static const struct ctl_option rap_options[] = {
	[FINE] = {"fine", "1: the gap follows the round trip", 0, 1, 0},
	[RTT_GAIN] = {"rtt-gain", "of round trip and variation; 0: 1/8 and 1/4", 0, 1, 0},
	{0},
};

struct rap {
	double packet; /* bytes */
	double ipg;
	struct fb_rtt rtt;
	double fast, slow; /* round trips of the fine grain */
	double cut;	   /* when it was lowered last */
	double step, silent;
	bool limited, idle;
};

/* The gap after a round trip without loss: ALPHA packets more in it. */
static double rap_step(double ipg, double rtt)
{
	return ipg * rtt / (ALPHA * ipg + rtt);
}

static double rap_patience(const struct rap *s)
{
	return s->rtt.any ? MU * s->rtt.mean + PHI * s->rtt.var : FIRST;
}

static double rap_grain(const struct rap *s)
{
	return s->slow > 0 ? s->fast / s->slow : 1;
}

static void rap_sample(struct rap *s, double rtt, double gain)
{
	bool first = !s->rtt.any;

	fb_rtt_sample(&s->rtt, rtt, gain > 0 ? gain : 0.125, gain > 0 ? gain : 0.25);
	s->fast = first ? rtt : s->fast + FAST * (rtt - s->fast);
	s->slow = first ? rtt : s->slow + SLOW * (rtt - s->slow);
}

static void rap_lower(struct rap *s, double now)
{
	s->ipg = fmin(s->ipg / BETA, LONGEST);
	s->cut = now;
	s->step = s->rtt.any ? now + s->rtt.mean : INFINITY;
}

static void rap_init(void *state, const struct ctl_params *p, double now)
{
	*(struct rap *)state = (struct rap){.packet = p->packet,
					    .ipg = FIRST,
					    .cut = -INFINITY,
					    .step = INFINITY,
					    .silent = now + FIRST,
					    .idle = true};
}

static double rap_rate(const void *state, const struct ctl_params *p)
{
	const struct rap *s = state;

	return 8 * s->packet / (s->ipg * (p->option[FINE] > 0 ? rap_grain(s) : 1));
}

static void rap_report(void *state, const struct ctl_params *p, const struct fb_report *r)
{
	struct rap *s = state;

	if (isfinite(r->rtt)) {
		bool first = !s->rtt.any;

		rap_sample(s, fmax(r->rtt, 1e-4), p->option[RTT_GAIN]);
		if (first) {
			s->ipg = s->rtt.mean;
			s->step = r->now + s->rtt.mean;
		}
	}
	s->limited = isfinite(r->x_sent) && r->x_sent < USED * rap_rate(s, p);
	if (fb_congested(r, p->ecn != CTL_ECN_NONE, s->cut, s->rtt.mean))
		rap_lower(s, r->now);
	s->silent = r->now + fmax(rap_patience(s), REPORTS_MISSED * r->fb->spacing);
	s->idle = true;
}

static void rap_sent(void *state, double now, size_t bytes)
{
	(void)now;
	(void)bytes;
	((struct rap *)state)->idle = false;
}

static double rap_next(const void *state)
{
	const struct rap *s = state;

	return fmin(s->step, s->silent);
}

static void rap_timeout(void *state, const struct ctl_params *p, double now)
{
	struct rap *s = state;

	if (s->silent <= now) {
		/* Who has sent nothing has nothing to be told of. */
		if (!s->idle)
			rap_lower(s, now);
		s->idle = true;
		s->silent = now + fmax(rap_patience(s), 1e-3);
	}
	if (s->step <= now) {
		if (!s->limited)
			s->ipg = fmax(rap_step(s->ipg, s->rtt.mean), 8 * s->packet / p->rate_max);
		s->step = now + s->rtt.mean;
	}
}

static void rap_state(const void *state, const char *name, ctl_log_fn log, void *data)
{
	const struct rap *s = state;

	log(name, "ipg", s->ipg, data);
	log(name, "grain", rap_grain(s), data);
	log(name, "timeout", rap_patience(s), data);
}

const struct ctl_kind ctl_rap = {
	.name = "rap",
	.summary = "RAP: additive increase, half after losses, by the gap between packets",
	.marks = true,
	.options = rap_options,
	.size = sizeof(struct rap),
	.init = rap_init,
	.report = rap_report,
	.sent = rap_sent,
	.next = rap_next,
	.timeout = rap_timeout,
	.rate = rap_rate,
	.state = rap_state,
};
