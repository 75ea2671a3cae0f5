// SPDX-License-Identifier: GPL-2.0
/*
 * TCP-like congestion control (DCCP CCID 2, RFC 4341) as a rate: its window over the round trip.
 * Slow start from the initial window of RFC 3390, then a packet more per window; half after a
 * window with losses or marks (section 5); one packet after a timeout, whose estimate has no lower
 * end of a second. Acknowledgements are those of the reports, so their own ratio (section 6) and
 * its control are not there.
 */
#include <math.h>

#include "streamer/control/control.h"

#define FIRST 3.0 /* s: timeout before a round trip is known (RFC 6298 at its time) */
#define USED 0.9
#define REPORTS_MISSED 3

struct tcplike {
	double packet;		 /* bytes */
	double window, slow_end; /* packets */
	struct fb_rtt rtt;
	double cut; /* when it was lowered last */
	double silent, patience;
	bool idle;
};

static void tcplike_init(void *state, const struct ctl_params *p, double now)
{
	*(struct tcplike *)state = (struct tcplike){.packet = p->packet,
						    .window = fmin(4, fmax(2, 4380 / p->packet)),
						    .slow_end = INFINITY,
						    .cut = -INFINITY,
						    .silent = now + FIRST,
						    .patience = FIRST,
						    .idle = true};
}

static double tcplike_rate(const void *state, const struct ctl_params *p)
{
	const struct tcplike *s = state;

	(void)p;
	return 8 * s->packet * s->window / (s->rtt.any ? s->rtt.mean : FIRST);
}

static void tcplike_report(void *state, const struct ctl_params *p, const struct fb_report *r)
{
	struct tcplike *s = state;

	if (isfinite(r->rtt))
		fb_rtt_sample(&s->rtt, fmax(r->rtt, 1e-4), 0.125, 0.25);
	if (fb_congested(r, p->ecn != CTL_ECN_NONE, s->cut, s->rtt.mean)) {
		s->slow_end = fmax(s->window / 2, 1);
		s->window = s->slow_end;
		s->cut = r->now;
	} else if (!isfinite(r->x_sent) || r->x_sent >= USED * tcplike_rate(s, p)) {
		double arrived = fb_arrived(r, tcplike_rate(s, p), s->packet);

		/* A window that is not used does not grow (RFC 7661). */
		for (double i = 0; i < arrived && tcplike_rate(s, p) < p->rate_max; i++)
			s->window += s->window < s->slow_end ? 1 : 1 / s->window;
	}
	s->patience = fmax(s->rtt.any ? s->rtt.mean + 4 * s->rtt.var : FIRST,
			   REPORTS_MISSED * r->fb->spacing);
	s->silent = r->now + s->patience;
	s->idle = true;
}

static void tcplike_sent(void *state, double now, size_t bytes)
{
	(void)now;
	(void)bytes;
	((struct tcplike *)state)->idle = false;
}

static double tcplike_next(const void *state)
{
	return ((const struct tcplike *)state)->silent;
}

static void tcplike_timeout(void *state, const struct ctl_params *p, double now)
{
	struct tcplike *s = state;

	(void)p;
	if (!s->idle) {
		s->slow_end = fmax(s->window / 2, 2);
		s->window = 1;
		s->cut = now;
		s->patience = fmin(2 * s->patience, 64);
	}
	s->idle = true;
	s->silent = now + fmax(s->patience, 1e-3);
}

static void tcplike_state(const void *state, const char *name, ctl_log_fn log, void *data)
{
	const struct tcplike *s = state;

	log(name, "window", s->window, data);
	log(name, "slow_end", s->slow_end, data);
}

const struct ctl_kind ctl_tcplike = {
	.name = "tcp-like",
	.summary = "TCP-like: the window of DCCP CCID 2 over the round trip (RFC 4341)",
	.marks = true,
	.size = sizeof(struct tcplike),
	.init = tcplike_init,
	.report = tcplike_report,
	.sent = tcplike_sent,
	.next = tcplike_next,
	.timeout = tcplike_timeout,
	.rate = tcplike_rate,
	.state = tcplike_state,
};
