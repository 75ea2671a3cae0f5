// SPDX-License-Identifier: GPL-2.0
/*
 * ADIVIS (P. Antoniou and others, ADAVIDEO D3.2, University of Cyprus 2007): every 0.3 s a fuzzy
 * controller makes of the share of lost packets and that of marked ones a factor for the rate; the
 * rate may choose a layer of eight.
 *
 * The report gives inputs, period, ladder and results. Its equations are in another one that was
 * not to be had: sets, outputs, rules, windows and the timing of layers are a RECONSTRUCTION, which
 * behaves as published. A related paper of the authors has a factor around 1 as output, too
 * (remembered, not read again).
 *
 * The report has a message of its own for what reports on each packet say as well; these are used.
 * Receiver reports tell the loss and no marks.
 */
#include <math.h>

#include "streamer/control/control.h"

#define SETS 4
#define LAYERS 8
#define HISTORY 512 /* reports; power of two */
#define REMEMBER 5.0
#define LOSS_SPAN 1.0	 /* s */
#define PACKETS_LEAST 20 /* of a share, or one mark of few packets says too much */
#define FLUSH 0.93 /* below it one burst is punished once: what was sent before is forgotten */
#define SILENT_LEAST 1.0
#define ADD_AT 500e3  /* bit/s whose growth is that of all rates, with ai */
#define USED_SPAN 1.0 /* s; within a group pictures differ */
#define USED 0.5      /* of the rate: who sends less does not grow */
#define WAIT 10	      /* decisions before a layer more, */
#define WAIT_MOST 200 /* at the most, */
#define TRIAL 33      /* doubled if the last was given up within so many, */
#define CALM 200      /* back to the first value after so many */
#define DROP_AT 0.9   /* of a layer's rate */

enum { PERIOD, ADDITIVE, LAYERED };

static const struct ctl_option adivis_options[] = {
	[PERIOD] = {"period", "s between decisions", 0.05, 5, 0.3},
	[ADDITIVE] = {"ai", "1: growth is the same for all rates, which is fair", 0, 1, 0},
	[LAYERED] = {"layers", "1: only the rates of the eight layers, 64 to 768 kbit/s", 0, 1, 0},
	{0},
};

/* Bit/s when so many layers are sent; sorted, the report has two of them swapped. */
static const double ladder[LAYERS] = {64e3, 96e3, 128e3, 192e3, 256e3, 384e3, 512e3, 768e3};

/* Where each set is 1; between two both have their part, so all of them add up to 1. */
static const double loss_sets[SETS] = {0, 0.02, 0.06, 0.15};
static const double mark_sets[SETS] = {0, 0.04, 0.10, 0.20};

/* Factors: increase, no change, small decrease, decrease, quick and very quick decrease. */
#define I 1.02
#define NC 1.0
#define SD 0.985
#define D 0.95
#define QD 0.85
#define VD 0.5
/* clang-format off */
static const double rules[SETS][SETS] = { /* [loss][marks] */
	{I,  NC, SD, D},
	{SD, SD, D,  QD},
	{D,  D,  QD, VD},
	{QD, QD, VD, VD},
};
/* clang-format on */
#undef I
#undef NC
#undef SD
#undef D
#undef QD
#undef VD

struct layers {
	int now;
	int count; /* decisions in a row that allow one more */
	int wait;
	int age; /* decisions since the last switch */
	bool up; /* that was one more */
};

struct adivis {
	double rate;
	struct layers layers;
	struct {
		double at, span;
		double expected, received, lost, ce;
	} history[HISTORY];
	size_t n;
	double mark; /* what was sent before is not looked at */
	double decide, silent;
	double bytes, counted;	     /* sent since then */
	double loss, marked, factor; /* of the last decision */
	bool limited, idle, news;
};

static void memberships(double v, const double sets[SETS], double mu[SETS])
{
	for (int i = 0; i < SETS; i++)
		mu[i] = 0;
	if (v >= sets[SETS - 1]) {
		mu[SETS - 1] = 1;
		return;
	}
	for (int i = SETS - 2; i >= 0; i--) {
		if (v < sets[i])
			continue;
		mu[i + 1] = (v - sets[i]) / (sets[i + 1] - sets[i]);
		mu[i] = 1 - mu[i + 1];
		return;
	}
	mu[0] = 1;
}

/* Product of the memberships as weight; the smaller of them would not be monotone. */
static double fuzzy(double loss, double marked)
{
	double l[SETS], m[SETS], a = 0;

	memberships(loss, loss_sets, l);
	memberships(marked, mark_sets, m);
	for (int i = 0; i < SETS; i++)
		for (int k = 0; k < SETS; k++)
			a += l[i] * m[k] * rules[i][k];
	return a;
}

/* One decision about layers. Return: the rate, which banks no more than one layer. */
static double choose_layer(struct layers *s, double rate, double most)
{
	if (s->age < CALM)
		s->age++;
	if (s->now > 0 && rate < DROP_AT * ladder[s->now]) {
		if (s->up && s->age <= TRIAL)
			s->wait = 2 * s->wait < WAIT_MOST ? 2 * s->wait : WAIT_MOST;
		do
			s->now--;
		while (s->now > 0 && rate < DROP_AT * ladder[s->now]);
		s->count = s->age = 0;
		s->up = false;
	} else if (s->now < LAYERS - 1 && rate >= ladder[s->now + 1]) {
		if (++s->count >= s->wait) {
			s->now++;
			s->count = s->age = 0;
			s->up = true;
		}
	} else {
		s->count = 0;
	}
	if (s->up && s->age == CALM)
		s->wait = WAIT;
	return fmin(rate, s->now < LAYERS - 1 ? ladder[s->now + 1] : most);
}

static void adivis_init(void *state, const struct ctl_params *p, double now)
{
	struct adivis *s = state;

	s->rate = ctl_clamp(ladder[0], p->rate_min, p->rate_max);
	s->layers = (struct layers){.wait = WAIT, .age = CALM};
	s->mark = -INFINITY;
	s->decide = now + p->option[PERIOD];
	s->silent = now + SILENT_LEAST;
	s->counted = now;
	s->factor = 1;
	s->idle = true;
}

/* Sums over the newest reports that cover so long, and enough packets. */
static double share(const struct adivis *s, double span, bool marks, double now)
{
	double covered = 0, of = 0, part = 0;

	for (size_t i = s->n; i-- > 0 && s->n - i <= HISTORY;) {
		const size_t k = i % HISTORY;

		if (now - s->history[k].at > REMEMBER || (covered >= span && of >= PACKETS_LEAST))
			break;
		covered += s->history[k].span;
		of += marks ? s->history[k].received : s->history[k].expected;
		part += marks ? s->history[k].ce : s->history[k].lost;
	}
	return of > 0 ? part / of : 0;
}

static void adivis_report(void *state, const struct ctl_params *p, const struct fb_report *r)
{
	size_t k = ((struct adivis *)state)->n % HISTORY;
	double received = 0, lost = 0, ce = 0;
	struct adivis *s = state;

	s->silent = r->now + fmax(fmax(SILENT_LEAST, 4 * p->option[PERIOD]),
				  isfinite(r->fb->rtt) ? 4 * r->fb->rtt : 0);
	s->idle = true;
	for (size_t i = 0; i < r->n; i++) {
		if (r->pkts[i].sent < s->mark)
			continue;
		received++;
		ce += r->pkts[i].ce && p->ecn != CTL_ECN_NONE;
	}
	for (size_t i = 0; i < r->lost; i++)
		lost += r->losses[i].sent >= s->mark;
	if (!r->n && !r->lost) {
		/* a receiver report: a share of packets that it does not number */
		double rtt = isfinite(r->rtt) ? r->rtt : 0, n;

		if (r->now - r->interval - rtt < s->mark)
			return;
		n = fmax(1, s->rate * fmax(r->interval, p->option[PERIOD]) / 8 / p->packet);
		lost = r->fraction * n;
		received = n - lost;
	}
	if (received + lost <= 0)
		return;
	s->history[k].at = r->now;
	s->history[k].span = r->interval;
	s->history[k].expected = received + lost;
	s->history[k].received = received;
	s->history[k].lost = lost;
	s->history[k].ce = ce;
	s->n++;
	s->news = true;
}

static void adivis_sent(void *state, double now, size_t bytes)
{
	struct adivis *s = state;

	s->idle = false;
	s->bytes += (double)bytes;
	if (now - s->counted < USED_SPAN)
		return;
	s->limited = 8 * s->bytes / (now - s->counted) < USED * s->rate;
	s->bytes = 0;
	s->counted = now;
}

static double adivis_next(const void *state)
{
	const struct adivis *s = state;

	return fmin(s->decide, s->silent);
}

static void decide(struct adivis *s, const struct ctl_params *p, double now)
{
	double rate = s->rate;

	/* What has been answered is not answered again: a choice of ours, for slow reports. */
	if (s->news) {
		s->news = false;
		s->loss = share(s, LOSS_SPAN, false, now);
		s->marked = share(s, p->option[PERIOD], true, now);
		s->factor = fuzzy(s->loss, s->marked);
		if (s->factor > 1 && s->limited && p->option[LAYERED] <= 0)
			s->factor = 1;
		rate = s->factor > 1 && p->option[ADDITIVE] > 0 ? rate + (s->factor - 1) * ADD_AT
								: rate * s->factor;
		if (s->factor < FLUSH) {
			s->mark = now;
			s->n = 0;
		}
	}
	rate = ctl_clamp(rate, p->rate_min, p->rate_max);
	if (p->option[LAYERED] > 0)
		rate = choose_layer(&s->layers, rate, p->rate_max);
	s->rate = rate;
}

static void adivis_timeout(void *state, const struct ctl_params *p, double now)
{
	struct adivis *s = state;

	if (s->silent <= now) {
		/* Who has sent nothing has nothing to be told of. */
		if (!s->idle)
			s->rate = fmax(p->rate_min, s->rate / 2);
		s->idle = true;
		s->silent = now + fmax(SILENT_LEAST, 4 * p->option[PERIOD]);
	}
	if (s->decide <= now) {
		decide(s, p, now);
		s->decide = now + p->option[PERIOD];
	}
}

static double adivis_rate(const void *state, const struct ctl_params *p)
{
	const struct adivis *s = state;

	return p->option[LAYERED] > 0 ? ladder[s->layers.now] : s->rate;
}

static void adivis_state(const void *state, const char *name, ctl_log_fn log, void *data)
{
	const struct adivis *s = state;

	log(name, "target", s->rate, data);
	log(name, "loss", s->loss, data);
	log(name, "marked", s->marked, data);
	log(name, "factor", s->factor, data);
	log(name, "layer", s->layers.now, data);
}

const struct ctl_kind ctl_adivis = {
	.name = "adivis",
	.summary = "ADIVIS: a fuzzy controller on shares of lost and of marked packets",
	.marks = true,
	.options = adivis_options,
	.size = sizeof(struct adivis),
	.init = adivis_init,
	.report = adivis_report,
	.sent = adivis_sent,
	.next = adivis_next,
	.timeout = adivis_timeout,
	.rate = adivis_rate,
	.state = adivis_state,
};
