// SPDX-License-Identifier: GPL-2.0
/*
 * What a plain application does (M. Welzl, M. Muehlhaeuser, slides of 2001): between two bounds, a
 * step more each round trip without loss, down to what arrived when there was loss, to the lower
 * bound when nothing is heard for two round trips; sent is a whole number of steps above the lower
 * bound. With a step as wide as a third of the range it is their choice of three fixed encodings.
 */
#include <math.h>

#include "streamer/control/control.h"

#define FIRST 1.0  /* s: round trip before any is known */
#define PACKETS 20 /* of a measured rate */
#define STEPS 25.0 /* of the range, unless told: 28.8 to 150 by 5 kbit/s, as on the slides */
#define USED 0.9
#define REPORTS_MISSED 3

enum { LOWER, UPPER, STEP };

static const struct ctl_option naive_options[] = {
	[LOWER] = {"lower", "bound, bit/s; 0: the lowest rate", 0, 1e10, 0},
	[UPPER] = {"upper", "bound, bit/s; 0: the highest rate", 0, 1e10, 0},
	[STEP] = {"step", "bit/s; 0: a 25th of the range", 0, 1e10, 0},
	{0},
};

struct naive {
	double target; /* bit/s; 0: none yet */
	double measured;
	double rtt;
	double at;     /* next decision */
	double silent; /* when silence is too long */
	double lost;   /* since the last decision */
	bool heard, limited;
};

static double naive_lower(const struct ctl_params *p)
{
	return p->option[LOWER] > 0 ? p->option[LOWER] : p->rate_min;
}

static double naive_upper(const struct ctl_params *p)
{
	return fmax(p->option[UPPER] > 0 ? p->option[UPPER] : p->rate_max, naive_lower(p));
}

static double naive_width(const struct ctl_params *p)
{
	double range = naive_upper(p) - naive_lower(p);

	return p->option[STEP] > 0 ? p->option[STEP] : fmax(range / STEPS, 1);
}

/* The target after a decision. */
static double naive_next_target(const struct ctl_params *p, double target, bool loss,
				double measured)
{
	return ctl_clamp(loss ? measured : target + naive_width(p), naive_lower(p), naive_upper(p));
}

static void naive_init(void *state, const struct ctl_params *p, double now)
{
	*(struct naive *)state = (struct naive){.target = naive_lower(p),
						.rtt = FIRST,
						.at = now + FIRST,
						.silent = now + 2 * FIRST};
}

static double naive_rate(const void *state, const struct ctl_params *p)
{
	const struct naive *s = state;
	double width = naive_width(p), steps = (s->target - naive_lower(p)) / width;

	return naive_lower(p) + width * floor(steps + 1e-9);
}

static void naive_report(void *state, const struct ctl_params *p, const struct fb_report *r)
{
	struct naive *s = state;

	if (isfinite(r->rtt))
		s->rtt = fmax(r->rtt, 1e-3);
	if (r->fb->n_arrived >= PACKETS)
		s->measured = fb_recv_rate(
			r->fb, fmax(s->rtt, PACKETS * 8 * p->packet / naive_rate(s, p)));
	s->limited = isfinite(r->x_sent) && r->x_sent < USED * naive_rate(s, p);
	s->lost += r->expected ? (double)r->lost : r->fraction;
	s->heard = true;
	s->silent = r->now + fmax(2 * s->rtt, REPORTS_MISSED * r->fb->spacing);
	s->at = fmin(s->at, r->now + s->rtt);
}

static double naive_next(const void *state)
{
	const struct naive *s = state;

	return fmin(s->at, s->silent);
}

static void naive_timeout(void *state, const struct ctl_params *p, double now)
{
	struct naive *s = state;

	if (s->silent <= now) {
		s->target = naive_lower(p);
		s->silent = now + 2 * s->rtt;
	}
	if (s->at > now)
		return;
	/* Without a report since then nothing is known. */
	if (s->heard && (s->lost > 0 || !s->limited))
		s->target = naive_next_target(p, s->target, s->lost > 0, s->measured);
	s->heard = false;
	s->lost = 0;
	s->at = now + s->rtt;
}

static void naive_state(const void *state, const char *name, ctl_log_fn log, void *data)
{
	const struct naive *s = state;

	log(name, "target", s->target, data);
	log(name, "measured", s->measured, data);
}

const struct ctl_kind ctl_naive = {
	.name = "naive",
	.summary = "a step up without loss, down to what arrives with loss; not friendly to TCP",
	.options = naive_options,
	.size = sizeof(struct naive),
	.init = naive_init,
	.report = naive_report,
	.next = naive_next,
	.timeout = naive_timeout,
	.rate = naive_rate,
	.state = naive_state,
};
