// SPDX-License-Identifier: GPL-2.0
/*
 * The default: the lower of what routers advise and what a safety net allows.
 *
 * The net is NADA and sees every report. Alone, it rules. While advice is in
 * force and nothing contradicts it, the net is lifted to the advice: it must
 * not hold back what a router grants. Loss or a long queue that last although
 * the advice is kept mean a bottleneck which does not speak P-AQM: then advice
 * is in doubt, and the net goes its own way below it until it has reached the
 * advice by itself. Or until it was calm for a while: a queue of others, or of the
 * time before the advice, is no such bottleneck, and beside many streams the net may
 * never reach what its share is. Then the advice is tried: the rate climbs towards
 * it, and with signs against it the next trial is twice as far away. When advice ends the net goes
 * on from the present rate; what it loses in its own search does not hold back advice that returns.
 */
#include <math.h>

#include "streamer/control/nada.h"

/* Signs against the advice. Single losses are the business of the routers. */
#define WINDOW 0.5 /* s over which loss is counted */
#define LOSS 0.01
#define LOSSY_WINDOWS 2
#define MARKED 0.2  /* share of marks of a scalable sender that counts as much */
#define QUEUE 0.100 /* s; no law of a P-AQM router leaves more for long */
#define QUEUE_LASTS 0.5
/* Much less is advised than was sent: what is lost until that has acted says nothing of it. */
#define FALL 0.875
#define ANSWER 0.5 /* s, of an encoder, and of what waits then */
/* What was sent before the advice came waits, and the advice leaves it there: it is drained. */
#define DRAIN_TIME 2.0	 /* s */
#define DRAIN_QUEUE 0.02 /* s; less is a router's own */
#define DRAIN_LOWER 0.85
#define DOUBT_LOWER 0.85
#define DOUBT_ENDS 2.0	/* s without congestion */
#define TRIAL_AFTER 5.0 /* s without a sign: then the advice is tried again */
#define TRIAL_LATEST 80.0
#define TRIAL_CLIMBS 0.25 /* per s: what a bottleneck elsewhere may get too much by then */

struct autoctl {
	struct nada net;
	double advice; /* bit/s; 0: none in force */
	bool doubt;
	bool drains;
	double sign;   /* the last time that it was contradicted */
	double began;  /* when it came into force */
	double fell;   /* the last time that it fell much */
	double calm;   /* s without a sign after which it is tried */
	double bound;  /* bit/s: how far a trial has climbed; infinite: there is none */
	double window; /* when the present one began */
	double expected, lost, marked;
	int lossy;
	double long_queue; /* first of the reports in a row that show one; infinite: none does */
};

static double auto_rate(const void *state, const struct ctl_params *p)
{
	const struct autoctl *s = state;

	(void)p;
	if (s->advice <= 0)
		return s->net.rate;
	return fmin(s->advice, s->net.rate) * (s->drains ? DRAIN_LOWER : 1);
}

static void next_window(struct autoctl *s, double now)
{
	s->window = now;
	s->expected = s->lost = s->marked = 0;
}

static void forget_signs(struct autoctl *s, double now)
{
	next_window(s, now);
	s->long_queue = INFINITY;
	s->lossy = 0;
}

static void auto_init(void *state, const struct ctl_params *p, double now)
{
	struct autoctl *s = state;

	s->fell = -INFINITY;
	nada_begin(&s->net, ctl_clamp(CTL_START_SHARE * p->rate_max, p->rate_min, p->rate_max));
	s->net.net = true;
	s->calm = TRIAL_AFTER;
	s->bound = INFINITY;
	forget_signs(s, now);
}

static void lift(struct autoctl *s, const struct ctl_params *p)
{
	if (s->advice > 0 && !s->doubt)
		s->net.rate = ctl_clamp(fmax(s->net.rate, fmin(s->advice, s->bound)), p->rate_min,
					p->rate_max);
}

static void auto_advice(void *state, const struct ctl_params *p, double now,
			const struct ctl_advice *a)
{
	struct autoctl *s = state;

	if (a->rate <= 0) {
		/* Alone again: from here, not from the top. */
		if (s->advice > 0)
			nada_settle(&s->net, p, now, auto_rate(s, p));
		s->advice = 0;
		s->drains = false;
		return;
	}
	/* What went wrong without a router says nothing about the router. */
	if (s->advice <= 0) {
		forget_signs(s, now);
		s->began = now;
	} else if (a->rate < FALL * auto_rate(s, p)) {
		s->fell = now;
	}
	s->advice = a->rate;
	lift(s, p);
}

/* Does what the peer reports contradict the advice? */
static bool contradicts(struct autoctl *s, const struct ctl_params *p, const struct fb_report *r)
{
	double marks = p->ecn == CTL_ECN_SCALABLE ? MARKED : LOSS;
	double trip = isfinite(r->fb->rtt) ? r->fb->rtt : r->rtt; /* of receiver reports alone */

	if (r->now - s->began < trip) { /* they are of packets sent before it came */
		forget_signs(s, r->now);
		return false;
	}
	/* passed over, not forgotten: a router that is elsewhere may tell now this, now that */
	if (r->now - s->fell < (isfinite(trip) ? trip : 0) + ANSWER) {
		next_window(s, r->now);
		return false;
	}
	/* it may be long when nothing has been reported for a while: that says nothing of before */
	s->long_queue = s->net.queue < QUEUE ? INFINITY : fmin(s->long_queue, r->now);
	if (r->expected) {
		s->expected += (double)r->expected;
		s->lost += (double)r->lost;
		s->marked += (double)r->ce;
		if (r->now - s->window >= WINDOW) {
			s->lossy = s->lost > LOSS * s->expected || s->marked > marks * s->expected
					   ? s->lossy + 1
					   : 0;
			next_window(s, r->now);
		}
	} else {
		s->lossy = r->fraction > LOSS ? s->lossy + 1 : 0;
	}
	return s->lossy >= LOSSY_WINDOWS || r->now - s->long_queue > QUEUE_LASTS;
}

static void auto_report(void *state, const struct ctl_params *p, const struct fb_report *r)
{
	struct autoctl *s = state;

	nada_report(&s->net, p, r);
	if (s->advice <= 0)
		return;
	if (contradicts(s, p, r)) {
		if (!s->doubt)
			nada_settle(&s->net, p, r->now, fmin(DOUBT_LOWER * s->advice, s->net.rate));
		if (isfinite(s->bound)) /* a trial failed */
			s->calm = fmin(2 * s->calm, TRIAL_LATEST);
		s->doubt = true;
		s->sign = r->now;
		s->bound = INFINITY;
		forget_signs(s, r->now);
	} else if (s->doubt && s->net.rate >= fmin(s->advice, p->rate_max) &&
		   r->now - s->net.congested > DOUBT_ENDS) {
		s->doubt = false;
		s->calm = TRIAL_AFTER;
	} else if (s->doubt && r->now - s->sign > s->calm) {
		s->doubt = false;
		s->bound = s->net.rate;
	} else if (isfinite(s->bound)) {
		s->bound *= 1 + TRIAL_CLIMBS * fmin(r->interval, 1);
		if (s->bound > 2 * s->advice) { /* it has held for three seconds */
			s->bound = INFINITY;
			s->calm = TRIAL_AFTER;
		}
	}
	s->drains = !s->doubt && s->net.queue > DRAIN_QUEUE && r->now - s->began < DRAIN_TIME;
	lift(s, p);
}

/* Not while a trial climbs, either: its way may still be another router's. */
static bool auto_follows(const void *state)
{
	const struct autoctl *s = state;

	return s->advice > 0 && !s->doubt && !isfinite(s->bound);
}

static void auto_sent(void *state, double now, size_t bytes)
{
	(void)bytes;
	nada_sent(&((struct autoctl *)state)->net, now);
}

static void auto_moved(void *state, double now)
{
	struct autoctl *s = state;

	nada_moved(&s->net, now);
	forget_signs(s, now);
}

static double auto_next(const void *state)
{
	return ((const struct autoctl *)state)->net.timer;
}

static void auto_timeout(void *state, const struct ctl_params *p, double now)
{
	struct autoctl *s = state;

	nada_silence(&s->net, p, now);
	s->drains = false; /* nobody tells when it is gone */
	/* The way back of the reports is broken, that of the advice is not. */
	lift(s, p);
}

static void auto_state(const void *state, const char *name, ctl_log_fn log, void *data)
{
	const struct autoctl *s = state;

	log(name, "advice", s->advice, data);
	log(name, "doubt", s->doubt, data);
	nada_log(&s->net, log, data);
}

const struct ctl_kind ctl_auto = {
	.name = "auto",
	.summary = "the lower of the routers' advice and a safety net (nada)",
	.marks = true,
	.size = sizeof(struct autoctl),
	.init = auto_init,
	.report = auto_report,
	.advice = auto_advice,
	.sent = auto_sent,
	.moved = auto_moved,
	.next = auto_next,
	.timeout = auto_timeout,
	.rate = auto_rate,
	.follows = auto_follows,
	.state = auto_state,
};
