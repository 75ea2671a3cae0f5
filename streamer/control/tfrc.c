// SPDX-License-Identifier: GPL-2.0
/* TCP friendly rate control (RFC 5348): the TCP equation on loss event rate and RTT. */
#include "streamer/control/tfrc.h"

#include <math.h>
#include <string.h>

#include "streamer/control/control.h"

#define T_MBI 64.0	    /* s: longest gap between two packets */
#define RTT_GAIN 0.1	    /* 1 - q */
#define DISCOUNT_FLOOR 0.25 /* RFC 5348 section 5.5: THRESHOLD */
#define FIRST_TIMER 2.0
/* Reports come once per picture, which may be longer than four round trips. */
#define REPORTS_MISSED 3
#define DATA_LIMITED 0.9

static const double weight[TFRC_INTERVALS] = {1, 1, 1, 1, 0.8, 0.6, 0.4, 0.2};

double tfrc_equation(double s, double rtt, double p)
{
	return s / (rtt * sqrt(2 * p / 3) + 4 * rtt * 3 * sqrt(3 * p / 8) * p * (1 + 32 * p * p));
}

double tfrc_inverse(double s, double rtt, double x)
{
	double lo = log(1e-9), hi = 0;

	while (hi - lo > 1e-9) {
		double mid = (lo + hi) / 2;

		if (tfrc_equation(s, rtt, exp(mid)) > x)
			lo = mid;
		else
			hi = mid;
	}
	return exp(hi);
}

/* Weighted mean of the intervals from..from+n-1; those behind the open one fade. */
static double mean_of(const struct tfrc_history *h, int from, int n, double fade)
{
	double sum = 0, norm = 0;

	for (int i = 0; i < n; i++) {
		double w = weight[i];

		if (from + i > 0)
			w *= h->discount[from + i] * fade;
		sum += w * h->length[from + i];
		norm += w;
	}
	return norm > 0 ? sum / norm : 0;
}

static double fade_now(const struct tfrc_history *h)
{
	double mean = mean_of(h, 1, h->closed, 1);

	if (!h->closed || h->length[0] <= 2 * mean)
		return 1;
	return fmax(2 * mean / h->length[0], DISCOUNT_FLOOR);
}

double tfrc_mean(const struct tfrc_history *h, bool discounting)
{
	/* As many intervals with the open one as without it. */
	double open = mean_of(h, 0, h->closed, discounting ? fade_now(h) : 1);
	double closed = mean_of(h, 1, h->closed, 1);

	return fmax(open, closed);
}

void tfrc_event(struct tfrc_history *h, uint64_t seq, double sent, double first)
{
	double fade = h->any ? fade_now(h) : 1;

	for (int i = TFRC_INTERVALS; i > 1; i--) {
		h->length[i] = h->length[i - 1];
		h->discount[i] = h->discount[i - 1] * fade;
	}
	h->length[1] = h->any ? (double)(seq - h->first_seq) : first;
	h->discount[1] = 1;
	if (h->closed < TFRC_INTERVALS)
		h->closed++;
	h->length[0] = 1;
	h->any = true;
	h->first_seq = seq;
	h->first_sent = sent;
}

void tfrc_begin(struct tfrc *t, double s, double now)
{
	*t = (struct tfrc){
		.s = s,
		.x = s, /* one packet per second */
		.rtt = NAN,
		.doubled = now,
		.recv = {{now, INFINITY}},
		.n_recv = 1,
		.timer = now + FIRST_TIMER,
		.idle = true,
	};
}

static double initial_window(const struct tfrc *t)
{
	return fmin(4 * t->s, fmax(2 * t->s, 4380));
}

static double recv_largest(const struct tfrc *t)
{
	double v = 0;

	for (int i = 0; i < t->n_recv; i++)
		v = fmax(v, t->recv[i].rate);
	return v;
}

static void recv_only(struct tfrc *t, double now, double rate)
{
	t->recv[0].at = now;
	t->recv[0].rate = rate;
	t->n_recv = 1;
}

static void recv_add(struct tfrc *t, double now, double rate)
{
	int kept = 0;

	for (int i = 0; i < t->n_recv; i++)
		if (isfinite(t->recv[i].rate) && now - t->recv[i].at <= 2 * t->rtt)
			t->recv[kept++] = t->recv[i];
	if (kept == TFRC_RECV_SET)
		memmove(t->recv, t->recv + 1, (size_t)--kept * sizeof(t->recv[0]));
	t->recv[kept].at = now;
	t->recv[kept++].rate = rate;
	t->n_recv = kept;
}

/* Largest X_recv of them and this one, without the infinite one of the start. */
static void recv_maximize(struct tfrc *t, double now, double rate)
{
	for (int i = 0; i < t->n_recv; i++)
		if (isfinite(t->recv[i].rate))
			rate = fmax(rate, t->recv[i].rate);
	recv_only(t, now, rate);
}

double tfrc_rto(const struct tfrc *t)
{
	return fmax(fmax(4 * t->rtt, 2 * t->s / t->x), REPORTS_MISSED * t->spacing);
}

static void set_timer(struct tfrc *t, double now)
{
	t->timer = now + (isfinite(t->rtt) ? tfrc_rto(t) : FIRST_TIMER);
	t->idle = true;
}

static void recompute(struct tfrc *t, double now, double limit)
{
	double floor = t->s / T_MBI;

	if (t->p > 0) {
		t->x = fmax(fmin(tfrc_equation(t->s, t->rtt, t->p), limit), floor);
	} else if (now - t->doubled >= t->rtt) {
		t->x = fmax(fmin(2 * t->x, limit), initial_window(t) / t->rtt);
		t->doubled = now;
	}
}

void tfrc_update(struct tfrc *t, double now, double rtt, double x_recv, double p, bool worse,
		 bool data_limited)
{
	double limit;

	if (isfinite(rtt)) {
		bool first = !isfinite(t->rtt);

		t->rtt_last = fmax(rtt, 1e-4);
		t->rtt = first ? t->rtt_last : t->rtt + RTT_GAIN * (t->rtt_last - t->rtt);
		t->rtt_sqrt = first ? sqrt(t->rtt_last)
				    : t->rtt_sqrt + RTT_GAIN * (sqrt(t->rtt_last) - t->rtt_sqrt);
		if (first) {
			t->x = initial_window(t) / t->rtt;
			t->doubled = now;
		}
	}
	if (!isfinite(t->rtt))
		return;
	t->p = p;
	t->reports++;
	/* What the first report counts is less than one round trip of packets. */
	if (t->reports == 1 || !isfinite(x_recv)) {
		limit = INFINITY;
	} else if (!data_limited) {
		recv_add(t, now, x_recv);
		limit = 2 * recv_largest(t);
	} else if (worse) {
		for (int i = 0; i < t->n_recv; i++)
			t->recv[i].rate /= 2;
		recv_maximize(t, now, 0.85 * x_recv);
		limit = recv_largest(t);
	} else {
		recv_maximize(t, now, x_recv);
		limit = 2 * recv_largest(t);
	}
	if (t->reports > 1 || p > 0)
		recompute(t, now, limit);
	set_timer(t, now);
}

void tfrc_silence(struct tfrc *t, double now)
{
	double recv = recv_largest(t), floor = t->s / T_MBI;
	double recover = isfinite(t->rtt) ? initial_window(t) / t->rtt : 0;

	if (!isfinite(t->rtt)) {
		if (!t->idle)
			t->x = fmax(t->x / 2, floor);
	} else if (t->idle && (t->p > 0 ? recv < recover : t->x < 2 * recover)) {
		/* What is not used needs not be lowered. */
	} else if (t->p <= 0) {
		t->x = fmax(t->x / 2, floor);
	} else {
		double x = tfrc_equation(t->s, t->rtt, t->p);
		double limit = fmax(x > 2 * recv ? recv : x / 2, floor);

		recv_only(t, now, limit / 2);
		recompute(t, now, limit);
	}
	set_timer(t, now);
}

double tfrc_now(const struct tfrc *t)
{
	double x = t->x;

	if (isfinite(t->rtt) && t->rtt_last > 0)
		x = fmax(x * t->rtt_sqrt / sqrt(t->rtt_last), t->s / T_MBI);
	return x;
}

/* The controller. */

static void tfrc_init(void *state, const struct ctl_params *p, double now)
{
	tfrc_begin(state, p->packet, now);
}

static void tfrc_report(void *state, const struct ctl_params *p, const struct fb_report *r)
{
	struct tfrc *t = state;
	double x_recv = r->x_recv / 8, before = t->p, now_p, rtt;
	const struct fb_packet *l;
	size_t lost = 0, came = 0;
	bool event = false;

	for (size_t i = 0; i < r->n; i++)
		t->s += ((double)r->pkts[i].size - t->s) / 64;
	if (r->interval > 0)
		t->spacing =
			t->spacing > 0 ? t->spacing + (r->interval - t->spacing) / 8 : r->interval;
	rtt = isfinite(t->rtt) ? t->rtt : fmax(r->rtt, 1e-4);
	while ((l = fb_next_sign(r, p->ecn != CTL_ECN_NONE, &lost, &came))) {
		double first = 1;

		/* What is lost or marked within a round trip is one event (section 5.2). */
		if (t->history.any && l->sent <= t->history.first_sent + rtt)
			continue;
		if (!t->history.any && isfinite(rtt))
			first = 1 / tfrc_inverse(t->s, rtt, fmax(t->recv_max, t->s / T_MBI));
		tfrc_event(&t->history, l->seq, l->sent, first);
		event = true;
	}
	if (isfinite(x_recv) && t->reports)
		t->recv_max = fmax(t->recv_max, x_recv);
	if (r->expected) {
		if (t->history.any && r->fb->highest >= t->history.first_seq)
			t->history.length[0] = (double)(r->fb->highest - t->history.first_seq + 1);
		now_p = t->history.any ? fmin(1, 1 / tfrc_mean(&t->history, true)) : 0;
	} else {
		/* A receiver report knows no events: its share of loss is the best guess. */
		now_p = r->fraction > 0 || before > 1e-4 ? before + (r->fraction - before) / 4 : 0;
		event = r->fraction > 0;
	}
	tfrc_update(t, r->now, r->rtt, x_recv, now_p, event || now_p > before,
		    isfinite(r->x_sent) && r->x_sent / 8 < DATA_LIMITED * tfrc_now(t));
}

static void tfrc_sent(void *state, double now, size_t bytes)
{
	(void)now;
	(void)bytes;
	((struct tfrc *)state)->idle = false;
}

static double tfrc_next(const void *state)
{
	return ((const struct tfrc *)state)->timer;
}

static void tfrc_timeout(void *state, const struct ctl_params *p, double now)
{
	(void)p;
	tfrc_silence(state, now);
}

static double tfrc_rate(const void *state, const struct ctl_params *p)
{
	(void)p;
	return 8 * tfrc_now(state);
}

static void tfrc_state(const void *state, const char *name, ctl_log_fn log, void *data)
{
	const struct tfrc *t = state;

	log(name, "p", t->p, data);
	log(name, "r", t->rtt, data);
	log(name, "x", 8 * t->x, data);
	log(name, "x_recv", 8 * recv_largest(t), data);
	log(name, "interval_0", t->history.length[0], data);
}

static const struct ctl_option tfrc_options[] = {
	{"buffer", "packets in a send buffer that lower RA-SVBR's allowance to 1/e; 0: no buffer",
	 0, 10000, 0},
	{0},
};

/* As published with TFRC (A. Lie, thesis, Paper E): 100; what was shipped with it has 1000. */
static double tfrc_decay(const struct ctl_params *p)
{
	return p->option ? p->option[0] : 0;
}

const struct ctl_kind ctl_tfrc = {
	.name = "tfrc",
	.summary = "TCP friendly rate control (RFC 5348)",
	.marks = true,
	.options = tfrc_options,
	.decay = tfrc_decay,
	.size = sizeof(struct tfrc),
	.init = tfrc_init,
	.report = tfrc_report,
	.sent = tfrc_sent,
	.next = tfrc_next,
	.timeout = tfrc_timeout,
	.rate = tfrc_rate,
	.state = tfrc_state,
};
