// SPDX-License-Identifier: GPL-2.0
/*
 * LDA+ (D. Sisalem, A. Wolisz, NOSSDAV 2000): additive increase by what is free of the bottleneck,
 * decrease by the share of loss but not below what TCP would have, once per RTCP interval. It needs
 * no more than receiver reports; where each packet is reported, the interval's packets count.
 *
 * Of the formulas the papers' wording has been checked by nobody here: they are those of the
 * literature about it. Three things are choices: the increase is at least that of the start (or it
 * would stay at 0 once the link was full), TCP's rate may double the rate at most, and without a
 * report for three intervals the rate is halved. The capacity of the bottleneck, which the authors
 * measure by pairs of packets, is the highest rate unless it is told: our packets are paced.
 */
#include <math.h>

#include "streamer/control/control.h"

#define FIRST_INCREASE 10e3 /* bit/s */
#define PATIENCE 3	    /* intervals */

enum { INTERVAL, CAPACITY };

static const struct ctl_option lda_options[] = {
	[INTERVAL] = {"interval", "s between two decisions", 0.1, 60, 5},
	[CAPACITY] = {"capacity", "of the bottleneck, bit/s; 0: the highest rate", 0, 1e11, 0},
	{0},
};

struct lda {
	double rate, increase; /* bit/s */
	double packet;	       /* bytes */
	double rtt;
	double at, heard; /* next decision; last report */
	double expected, lost;
	bool limited, sent;
};

/*
 * What is added after an interval of @t seconds without loss: twice the last increase at most,
 * less the nearer it is to @capacity; what lets small shares grow faster; what TCP would gain.
 */
static double lda_increase(double rate, double capacity, double last, double t, double rtt,
			   double packet)
{
	double free = 1 - rate / capacity;
	double by_share = (1 + free) * fmax(last, FIRST_INCREASE);
	double by_rate = (1 - exp(-free)) * rate;
	double by_tcp = 8 * packet * (t / rtt + 1) / (2 * rtt);

	return fmax(0, fmin(by_share, fmin(by_rate, by_tcp)));
}

/* TCP's rate, bit/s (Padhye et al. 1998, with its limit on the share of timeouts). */
static double lda_tcp(double loss, double rtt, double packet)
{
	double timeouts = fmin(1, 3 * sqrt(3 * loss / 8));

	return 8 * packet /
	       (rtt * sqrt(2 * loss / 3) + 4 * rtt * timeouts * loss * (1 + 32 * loss * loss));
}

/* The rate after an interval in which the share @loss was lost. */
static double lda_decrease(double rate, double capacity, double loss, double rtt, double packet)
{
	double tcp = fmin(lda_tcp(loss, rtt, packet), fmin(2 * rate, capacity));

	return fmax(rate * (1 - sqrt(loss)), tcp);
}

static void lda_init(void *state, const struct ctl_params *p, double now)
{
	*(struct lda *)state = (struct lda){.rate = CTL_START_SHARE * p->rate_max,
					    .increase = FIRST_INCREASE,
					    .packet = p->packet,
					    .rtt = NAN,
					    .at = now + p->option[INTERVAL],
					    .heard = now};
}

static double lda_rate(const void *state, const struct ctl_params *p)
{
	(void)p;
	return ((const struct lda *)state)->rate;
}

static void lda_report(void *state, const struct ctl_params *p, const struct fb_report *r)
{
	struct lda *s = state;

	(void)p;
	if (isfinite(r->rtt))
		s->rtt = fmax(r->fb->rtt > 0 ? r->fb->rtt : r->rtt, 1e-3);
	/* A receiver report says nothing but its share: it stands for as many packets as others. */
	s->expected += r->expected ? (double)r->expected : 1;
	s->lost += r->expected ? (double)r->lost : r->fraction;
	s->limited = isfinite(r->x_sent) && r->x_sent < 0.9 * s->rate;
	s->heard = r->now;
}

static void lda_sent(void *state, double now, size_t bytes)
{
	(void)now;
	(void)bytes;
	((struct lda *)state)->sent = true;
}

static double lda_next(const void *state)
{
	return ((const struct lda *)state)->at;
}

static void lda_timeout(void *state, const struct ctl_params *p, double now)
{
	struct lda *s = state;
	double capacity = p->option[CAPACITY] > 0 ? p->option[CAPACITY] : p->rate_max;
	double t = p->option[INTERVAL];

	if (s->expected > 0 && isfinite(s->rtt)) {
		double loss = s->lost / s->expected;

		if (loss > 0) {
			s->rate = lda_decrease(s->rate, capacity, loss, s->rtt, s->packet);
			s->increase = FIRST_INCREASE;
		} else if (!s->limited) {
			s->increase =
				lda_increase(s->rate, capacity, s->increase, t, s->rtt, s->packet);
			s->rate += s->increase;
		}
	} else if (s->sent && now - s->heard >= PATIENCE * t) {
		s->rate = fmax(s->rate / 2, 1);
		s->heard = now;
	}
	s->expected = s->lost = 0;
	s->sent = false;
	s->at = now + t;
}

static void lda_state(const void *state, const char *name, ctl_log_fn log, void *data)
{
	const struct lda *s = state;

	log(name, "increase", s->increase, data);
	log(name, "r", s->rtt, data);
}

const struct ctl_kind ctl_ldaplus = {
	.name = "lda+",
	.summary = "LDA+: by the share of loss once per RTCP interval",
	.options = lda_options,
	.size = sizeof(struct lda),
	.init = lda_init,
	.report = lda_report,
	.sent = lda_sent,
	.next = lda_next,
	.timeout = lda_timeout,
	.rate = lda_rate,
	.state = lda_state,
};
