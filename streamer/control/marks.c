// SPDX-License-Identifier: GPL-2.0
/* Answers to ECN marks; see marks.h. */
#include "streamer/control/marks.h"

#include <math.h>

#define VALID 2.0      /* s that ECN counts as seen */
#define CLASSIC 0.85   /* multiplicative decrease for CE (RFC 8511) */
#define GAIN 0.125     /* of alpha; rounds here are several round trips of DCTCP */
#define LEAST 0.85     /* of what arrives while there are marks: that is the fair rate */
#define LEAST_LONG 0.6 /* the same, if much waits: */
#define DRAIN 0.5      /* s in which it should be gone */
#define DRAIN_SOON 0.06
#define OVERLOAD 0.9
#define RETURN 0.97 /* of what arrived, when the queue is gone */
#define WINDOW 0.15 /* s over which arrivals are counted */
#define GROW 0.25   /* per second, at once */
#define GROW_MARKED 2.5
#define SEGMENT 1500.0 /* bytes: TCP's, RFC 8257 section 3 */
#define GROW_MORE 0.45 /* per second, for each second without congestion */
#define GROW_MOST 1.00 /* per second */
#define BLIND_QUEUE 0.050
#define BLIND 0.3 /* s with such a queue and no mark: nobody marks here */
#define FORGET 2.0
#define FRESH 3.0 /* s without congestion that a beginning is worth */
#define DATA_LIMITED 0.8

void marks_begin(struct marks *m, double now)
{
	*m = (struct marks){
		.seen = -INFINITY, .marked = -INFINITY, .bad = -INFINITY, .eased = now - FRESH};
}

bool marks_rule(struct marks *m, const struct ctl_params *p, const struct fb_report *r,
		double queue)
{
	if (p->ecn == CTL_ECN_NONE)
		return false;
	if (r->ect || r->ce)
		m->seen = r->now;
	if (r->ce)
		m->marked = r->now;
	if (r->lost || (queue > BLIND_QUEUE && m->queued > 0 && r->now - m->queued > BLIND &&
			r->now - m->marked > BLIND))
		m->bad = r->now;
	if (r->now - m->seen < VALID && r->now - m->bad > FORGET)
		return true;
	m->fits = 0; /* was true of another time */
	return false;
}

double marks_rate(struct marks *m, const struct ctl_params *p, const struct fb_report *r,
		  double rate, double queue, bool waits)
{
	double recv = fb_recv_rate(r->fb, WINDOW), dt = fmin(r->interval, 0.2), newest = 0;
	double round = fmax(isfinite(r->fb->rtt) ? r->fb->rtt : 0, r->fb->spacing);
	bool answered = false;

	for (size_t i = 0; i < r->n; i++) {
		newest = fmax(newest, r->pkts[i].sent);
		if (r->pkts[i].sent < m->since)
			continue;
		m->n++;
		m->ce += r->pkts[i].ce;
	}
	if (waits) {
		/* what arrives is what there is; it has to be told soon, marks or not */
		if (m->queued <= 0 || recv < OVERLOAD * rate)
			rate = fmin(rate, recv * fmax(LEAST, 1 - queue / DRAIN_SOON));
		if (m->queued <= 0)
			m->queued = r->now;
		m->fits = recv;
	} else {
		m->queued = 0;
	}
	if (m->n > 0 && newest - m->since >= round) {
		double share = m->ce / m->n;

		m->alpha += GAIN * (share - m->alpha);
		if (m->ce > 0) {
			double less = p->ecn == CTL_ECN_SCALABLE ? 1 - m->alpha / 2 : CLASSIC;

			rate = fmin(rate, fmax(LEAST * recv, fmin(less * rate, recv)));
			answered = true;
		}
		m->n = m->ce = 0;
		/* the next picture is the first that obeys */
		m->since = r->now + (answered ? r->fb->spacing : 0);
	}
	/* after a fall of the fair rate much waits: rounds would be too slow */
	if (queue > (1 - LEAST) * DRAIN && r->now - m->marked < BLIND)
		rate = fmin(rate, recv * fmax(LEAST_LONG, 1 - queue / DRAIN));
	if (waits || answered || r->now - m->marked < round) {
		m->eased = r->now;
		/* marks without a queue: one segment more per round trip, as DCTCP has it */
		if (p->ecn == CTL_ECN_SCALABLE && !waits && r->fb->rtt > 0)
			rate *= 1 + dt * fmin(8 * SEGMENT / (rate * r->fb->rtt * r->fb->rtt),
					      GROW_MARKED);
		return rate;
	}
	if (m->fits > 0) {
		rate = fmax(rate, RETURN * m->fits);
		m->fits = 0;
	}
	if (!(r->x_sent < DATA_LIMITED * rate))
		rate *= 1 + dt * fmin(GROW + GROW_MORE * (r->now - m->eased), GROW_MOST);
	return rate;
}

void marks_log(const struct marks *m, ctl_log_fn log, void *data)
{
	log("marks", "alpha", m->alpha, data);
	log("marks", "share", m->n > 0 ? m->ce / m->n : 0, data);
	log("marks", "fits", m->fits, data);
}
