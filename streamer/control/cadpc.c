// SPDX-License-Identifier: GPL-2.0
/*
 * CADPC (M. Welzl, 2003): every four round trips x *= 1 + a (1 - x - lambda), with x the own rate
 * and lambda all traffic as shares of the worst link's capacity. n flows end at 1/(n+1) each, and
 * leave as much free: no queue and no loss, whatever their round trips. Beside TCP in one queue
 * nothing remains for them.
 *
 * Law, constant and period are the papers', not compared with them again. Start rate, the half
 * after eight round trips without counters, and TFRC where no router tells any are choices.
 *
 * Its routers write byte counters and speeds into probes (PTP). They come here as capacity and load
 * of advice. P-AQM's message carries the load as utilisation (docs/protocol.md 2.2), but paqmd does
 * not hand it on yet; until something does, this is TFRC.
 */
#include <math.h>

#include "streamer/control/control.h"
#include "streamer/control/tfrc.h"

#define ROUNDS 4.0	  /* between two steps, in round trips */
#define ROUNDS_SILENT 8.0 /* without counters */
#define FORGET 3.0	  /* s without counters: no router tells any */
#define RTT_UNKNOWN 0.1

enum { GAIN };

static const struct ctl_option cadpc_options[] = {
	[GAIN] = {"a", "gain of a step", 0.01, 2, 0.5},
	{0},
};

struct cadpc {
	double x, capacity, load; /* bit/s; 0: no counters are told */
	double told, step, silent;
	double rtt;
	bool news;
	struct tfrc tfrc; /* meanwhile */
};

static double cadpc_step(double x, double load, double gain)
{
	return fmax(x * (1 + gain * (1 - x - load)), 0);
}

/* TFRC's own options. */
static struct ctl_params without(const struct ctl_params *p)
{
	struct ctl_params q = *p;

	q.option = NULL;
	return q;
}

static void cadpc_init(void *state, const struct ctl_params *p, double now)
{
	struct ctl_params q = without(p);
	struct cadpc *s = state;

	*s = (struct cadpc){.rtt = RTT_UNKNOWN, .step = INFINITY, .silent = INFINITY};
	ctl_tfrc.init(&s->tfrc, &q, now);
}

static void cadpc_report(void *state, const struct ctl_params *p, const struct fb_report *r)
{
	struct ctl_params q = without(p);
	struct cadpc *s = state;

	if (isfinite(r->fb->rtt))
		s->rtt = fmax(r->fb->rtt, 1e-3);
	ctl_tfrc.report(&s->tfrc, &q, r);
}

static void cadpc_advice(void *state, const struct ctl_params *p, double now,
			 const struct ctl_advice *a)
{
	struct cadpc *s = state;

	if (!(a->capacity > 0) || !isfinite(a->capacity) || !(a->load >= 0))
		return;
	if (s->capacity <= 0) {
		s->x = 8 * p->packet / (s->rtt * a->capacity); /* a packet per round trip */
		s->step = now + ROUNDS * s->rtt;
	}
	s->capacity = a->capacity;
	s->load = a->load;
	s->told = now;
	s->silent = now + ROUNDS_SILENT * s->rtt;
	s->news = true;
}

static double cadpc_next(const void *state)
{
	const struct cadpc *s = state;

	return fmin(fmin(s->step, s->silent), ctl_tfrc.next(&s->tfrc));
}

static void cadpc_timeout(void *state, const struct ctl_params *p, double now)
{
	struct ctl_params q = without(p);
	struct cadpc *s = state;

	if (ctl_tfrc.next(&s->tfrc) <= now)
		ctl_tfrc.timeout(&s->tfrc, &q, now);
	if (s->silent <= now) {
		s->x /= 2;
		s->silent = now + ROUNDS_SILENT * s->rtt;
		if (now - s->told > FORGET) {
			s->capacity = 0;
			s->step = s->silent = INFINITY;
		}
	}
	if (s->step <= now) {
		if (s->news)
			s->x = cadpc_step(s->x, s->load, p->option[GAIN]);
		s->news = false;
		s->step = now + ROUNDS * s->rtt;
	}
}

static void cadpc_sent(void *state, double now, size_t bytes)
{
	ctl_tfrc.sent(&((struct cadpc *)state)->tfrc, now, bytes);
}

static double cadpc_rate(const void *state, const struct ctl_params *p)
{
	struct ctl_params q = without(p);
	const struct cadpc *s = state;

	return s->capacity > 0 ? s->x * s->capacity : ctl_tfrc.rate(&s->tfrc, &q);
}

static void cadpc_state(const void *state, const char *name, ctl_log_fn log, void *data)
{
	const struct cadpc *s = state;

	log(name, "share", s->x, data);
	log(name, "load", s->load, data);
	log(name, "capacity", s->capacity, data);
}

const struct ctl_kind ctl_cadpc = {
	.name = "cadpc",
	.summary = "CADPC: by the load that byte counters of routers tell; TFRC where none do",
	.marks = true,
	.options = cadpc_options,
	.size = sizeof(struct cadpc),
	.init = cadpc_init,
	.report = cadpc_report,
	.advice = cadpc_advice,
	.sent = cadpc_sent,
	.next = cadpc_next,
	.timeout = cadpc_timeout,
	.rate = cadpc_rate,
	.state = cadpc_state,
};
