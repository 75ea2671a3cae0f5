// SPDX-License-Identifier: GPL-2.0
/*
 * Network-assisted dynamic adaptation (RFC 8698): queueing delay and loss make
 * one congestion signal; the rate falls with its level and its growth. Names
 * and values of the constants are those of RFC 8698, figure 3; lengths in s.
 */
#include "streamer/control/nada.h"

#include <math.h>

#define PRIO 1.0
/* Less than RFC 8698's 10, 10, 120 and 50 ms: queues are emptied here, not balanced. */
#define XREF 0.003
#define KAPPA 0.5
#define ETA 2.0
#define TAU 0.5
#define DELTA 0.1
#define LOGWIN 0.5
#define QEPS 0.004
#define DFILT 0.080
#define GAMMA_MAX 0.5
#define QBOUND 0.030
#define MULTILOSS 7
#define QTH 0.050
#define LAMBDA 0.5
#define PLRREF 0.01
#define DLOSS 0.010
#define PMRREF 0.01
#define DMARK 0.002
#define ALPHA 0.1
/* Not in RFC 8698, whose ramp-up overshoots again and again: it ends below the
 * rate at which congestion last began, and feels its way above that ever faster
 * when there has been none for a while.
 */
#define CEILING 0.95
#define PROBE 3.0
#define PROBE_FASTER 0.03 /* per second, of the ceiling and second */
/* Nor this: one answer to a queue that begins, or to an overload, instead of many small
 * steps, which leave a queue standing and are too slow for a router that drops what
 * waits longer than 5 ms for 0.1 s (RFC 8289).
 */
#define DRAIN 0.06 /* s in which what waits is to be gone */
#define OVERLOAD 0.9
#define OVERLOAD_QUEUE 0.020
#define OVERLOAD_WINDOW 0.15
/* Nor these: after a burst of loss the square of its share swings far. */
#define LOSS_MAX 0.1
#define GAP_MAX 100 /* packets: longer ones are no pattern */
#define STEP_DOWN 0.3
#define STEP_UP 0.5 /* per TAU */
/* Epoch of the base delay: clocks drift apart, routes change. */
#define EPOCH 60.0
#define CLOCK_ROUND 0.01 /* s: times in reports are rounded, and clocks drift */
#define DATA_LIMITED 0.9
/* With receiver reports alone: loss is all there is to go by. */
#define RR_RAISE 1.10
#define RR_EVERY 0.5
#define RR_LOWER 0.85
#define RR_LOSS 0.01
#define RR_REST 2.0
/* Reports came and stopped. */
#define SILENCE 1.0
#define REPORTS_MISSED 4
#define SILENCE_LOWER 0.5
#define PAUSE 0.5     /* s in which nothing is sent */
#define SENT_TOLD 0.1 /* s: what was sent is told so late, so its report may have come before */

/* Of a stream that nothing is known about. */
static double start_rate(const struct ctl_params *p)
{
	return ctl_clamp(CTL_START_SHARE * p->rate_max, p->rate_min, p->rate_max);
}

void nada_begin(struct nada *n, double rate)
{
	*n = (struct nada){
		.rate = rate,
		.base = {INFINITY, INFINITY},
		.since = -INFINITY,
		.congested = -INFINITY,
		.ceiling = INFINITY,
		.updated = -1,
		.sent = -INFINITY,
		.timer = INFINITY,
	};
	marks_begin(&n->marks, 0);
}

static void forget_delays(struct nada *n)
{
	n->base[0] = n->base[1] = INFINITY;
	n->n_delays = 0;
}

/*
 * By the smallest delay known the packet arrived after the report of it: then one of the clocks has
 * been set, or ours has stood still. No queue is longer than the round trip, which our clock alone
 * measures.
 */
static bool clock_set(const struct nada *n, const struct fb_packet *p, double now)
{
	return p->recv - fmin(n->base[0], n->base[1]) > now + CLOCK_ROUND;
}

/* Smallest delay of the last DFILT above the smallest of the last epochs. */
static void measure(struct nada *n, const struct fb_report *r)
{
	double low = INFINITY, last = -INFINITY;

	if (r->now - n->epoch > EPOCH) {
		n->base[1] = n->base[0];
		n->base[0] = INFINITY;
		n->epoch = r->now;
	}
	for (size_t i = 0; i < r->n; i++) {
		double d = r->pkts[i].recv - r->pkts[i].sent;

		if (r->pkts[i].sent < n->since)
			continue;
		if (clock_set(n, &r->pkts[i], r->now))
			forget_delays(n);
		n->base[0] = fmin(n->base[0], d);
		n->delays[n->n_delays % NADA_DELAYS].recv = r->pkts[i].recv;
		n->delays[n->n_delays % NADA_DELAYS].delay = d;
		n->n_delays++;
		last = fmax(last, r->pkts[i].recv);
	}
	for (unsigned int i = n->n_delays > NADA_DELAYS ? n->n_delays - NADA_DELAYS : 0;
	     i < n->n_delays; i++)
		if (n->delays[i % NADA_DELAYS].recv >= last - DFILT)
			low = fmin(low, n->delays[i % NADA_DELAYS].delay);
	if (isfinite(low))
		n->queue = fmax(0, low - fmin(n->base[0], n->base[1]));
}

/* Delay that one packet makes, or less than QEPS, is no queue: large packets take longer. */
static bool waits(const struct nada *n, const struct ctl_params *p)
{
	return n->queue >= fmax(QEPS, 8 * p->packet / n->rate);
}

static void measure_loss(struct nada *n, const struct ctl_params *p, const struct fb_report *r)
{
	double expected = 0, lost = 0, marked = 0, began = n->congested;

	n->log[n->n_log % NADA_LOSSES].at = r->now;
	n->log[n->n_log % NADA_LOSSES].expected = (double)r->expected;
	n->log[n->n_log % NADA_LOSSES].lost = (double)r->lost;
	n->log[n->n_log % NADA_LOSSES].marked = (double)r->ce;
	n->n_log++;
	for (unsigned int i = n->n_log > NADA_LOSSES ? n->n_log - NADA_LOSSES : 0; i < n->n_log;
	     i++) {
		if (n->log[i % NADA_LOSSES].at <= r->now - LOGWIN)
			continue;
		expected += n->log[i % NADA_LOSSES].expected;
		lost += n->log[i % NADA_LOSSES].lost;
		marked += n->log[i % NADA_LOSSES].marked;
	}
	if (expected > 0) {
		n->p_loss += ALPHA * (lost / expected - n->p_loss);
		n->p_mark += ALPHA * (marked / expected - n->p_mark);
	}
	n->since_loss += (double)r->expected;
	if (r->lost) {
		double gap = fmin(n->since_loss, GAP_MAX);

		n->loss_gap = n->loss_gap > 0 ? n->loss_gap + (gap - n->loss_gap) / 4 : gap;
		n->since_loss = 0;
		n->congested = r->now;
	}
	if (waits(n, p) || r->ce)
		n->congested = r->now;
	/* What arrived when it began is what the path carries. */
	if (n->congested == r->now && r->now - began > LOGWIN)
		n->ceiling = fmax(fb_recv_rate(r->fb, LOGWIN), n->rate / 2);
	else if (r->now - n->congested > PROBE && r->interval > 0)
		n->ceiling *=
			1 + PROBE_FASTER * fmin(r->interval, 1) * (r->now - n->congested - PROBE);
}

/* Beside flows that fill the buffer delay says little once packets are lost. */
static double warped(const struct nada *n)
{
	if (n->queue < QTH || n->loss_gap <= 0 || n->since_loss > MULTILOSS * n->loss_gap)
		return n->queue;
	return QTH * exp(-LAMBDA * (n->queue - QTH) / QTH);
}

/* A queue begins: what arrives is what there is, less what has to drain. Once, until the
 * queue was gone: what stays is that of others. Again if less arrives than is sent.
 */
static void back_off(struct nada *n, const struct ctl_params *p, const struct fb_report *r)
{
	double recv = fb_recv_rate(r->fb, OVERLOAD_WINDOW);
	bool begins = n->drained;

	n->drained = !waits(n, p);
	if (n->drained)
		return;
	if (begins || (n->queue >= OVERLOAD_QUEUE && recv < OVERLOAD * n->rate &&
		       r->x_sent >= DATA_LIMITED * n->rate))
		n->rate = fmin(n->rate, fmax(recv * (1 - n->queue / DRAIN), n->rate / 2));
}

static void by_receiver_report(struct nada *n, const struct fb_report *r)
{
	if (r->fraction > RR_LOSS) {
		n->rate *= RR_LOWER;
		n->congested = n->raised = r->now;
	} else if (r->now - n->congested >= RR_REST && r->now - n->raised >= RR_EVERY) {
		n->rate *= RR_RAISE;
		n->raised = r->now;
	}
}

/* Accelerated ramp-up: the queue that it may build is bounded. */
static double ramp_rate(const struct fb_report *r)
{
	double rtt = isfinite(r->fb->rtt) ? r->fb->rtt : 0;
	double gamma = fmin(GAMMA_MAX, QBOUND / (rtt + DELTA + DFILT));

	return (1 + gamma) * fb_recv_rate(r->fb, LOGWIN);
}

/* So long no report comes before that means something. */
static double patience(const struct nada *n)
{
	return fmax(SILENCE, REPORTS_MISSED * n->spacing);
}

void nada_report(struct nada *n, const struct ctl_params *p, const struct fb_report *r)
{
	double delta = n->updated >= 0 ? fmin(r->now - n->updated, TAU) : DELTA, before = n->x;
	bool by_marks;
	double ramp;

	if (r->interval > 0)
		n->spacing =
			n->spacing > 0 ? n->spacing + (r->interval - n->spacing) / 8 : r->interval;
	n->timer = r->now + patience(n);
	n->unanswered = r->now + SENT_TOLD;
	n->updated = r->now;
	if (!r->expected) {
		by_receiver_report(n, r);
		goto out;
	}
	measure(n, r);
	measure_loss(n, p, r);
	by_marks = n->net && marks_rule(&n->marks, p, r, n->queue);
	if (by_marks)
		n->drained = !waits(n, p);
	else
		back_off(n, p, r);
	n->x = warped(n) + fmin(DLOSS * pow(n->p_loss / PLRREF, 2), LOSS_MAX);
	if (!n->net)
		n->x += fmin(DMARK * pow(n->p_mark / PMRREF, 2), LOSS_MAX);
	if (by_marks) {
		n->rate = marks_rate(&n->marks, p, r, n->rate, n->queue, waits(n, p));
		goto out;
	}
	ramp = fmin(ramp_rate(r), CEILING * n->ceiling);
	if (r->now - n->congested > LOGWIN && ramp > n->rate) {
		n->rate = ramp;
	} else {
		double offset = n->x - PRIO * XREF * p->rate_max / n->rate;
		double step = -KAPPA * (delta / TAU) * (offset / TAU) -
			      KAPPA * ETA * ((n->x - before) / TAU);

		/* A flow that does not use its rate gets no more. */
		if (step < 0 || !(r->x_sent < DATA_LIMITED * n->rate))
			n->rate *= 1 + ctl_clamp(step, -STEP_DOWN, STEP_UP * delta / TAU);
	}
out:
	n->rate = ctl_clamp(n->rate, p->rate_min, p->rate_max);
}

void nada_settle(struct nada *n, const struct ctl_params *p, double now, double rate)
{
	n->rate = ctl_clamp(rate, p->rate_min, p->rate_max);
	n->ceiling = n->rate / CEILING;
	n->congested = now;
}

void nada_silence(struct nada *n, const struct ctl_params *p, double now)
{
	double lower = fmax(SILENCE_LOWER * n->rate, p->rate_min);

	n->timer = now + SILENCE;
	if (n->sent <= n->unanswered) {
		/* Nobody reports on what is not sent; but what the path carried is long ago. */
		n->rate = fmax(lower, fmin(n->rate, start_rate(p)));
		return;
	}
	n->rate = lower;
	n->congested = n->unanswered = now;
}

void nada_sent(struct nada *n, double now)
{
	/* the first after a pause has all that time; each of a few pictures has not */
	if (now - n->sent > PAUSE && n->sent <= n->unanswered && isfinite(n->timer))
		n->timer = fmax(n->timer, now + patience(n));
	n->sent = now;
}

void nada_moved(struct nada *n, double now)
{
	forget_delays(n);
	n->queue = 0;
	n->since = now;
}

void nada_log(const struct nada *n, ctl_log_fn log, void *data)
{
	log("nada", "r_ref", n->rate, data);
	log("nada", "queue", n->queue, data);
	log("nada", "x", n->x, data);
	log("nada", "p_loss", n->p_loss, data);
	log("nada", "p_mark", n->p_mark, data);
	if (n->net)
		marks_log(&n->marks, log, data);
}

/* The controller. */

static void init(void *state, const struct ctl_params *p, double now)
{
	(void)now;
	nada_begin(state, start_rate(p));
}

static void report(void *state, const struct ctl_params *p, const struct fb_report *r)
{
	nada_report(state, p, r);
}

static double next(const void *state)
{
	return ((const struct nada *)state)->timer;
}

static void timeout(void *state, const struct ctl_params *p, double now)
{
	nada_silence(state, p, now);
}

static double rate(const void *state, const struct ctl_params *p)
{
	(void)p;
	return ((const struct nada *)state)->rate;
}

static void sent(void *state, double now, size_t bytes)
{
	(void)bytes;
	nada_sent(state, now);
}

static void moved(void *state, double now)
{
	nada_moved(state, now);
}

static void log_state(const void *state, const char *name, ctl_log_fn log, void *data)
{
	(void)name;
	nada_log(state, log, data);
}

const struct ctl_kind ctl_nada = {
	.name = "nada",
	.summary = "delay and loss as one signal (RFC 8698)",
	.marks = true,
	.size = sizeof(struct nada),
	.init = init,
	.report = report,
	.sent = sent,
	.moved = moved,
	.next = next,
	.timeout = timeout,
	.rate = rate,
	.state = log_state,
};
