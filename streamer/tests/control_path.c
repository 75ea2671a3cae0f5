// SPDX-License-Identifier: GPL-2.0
/* Checks, and a path that a controller sends over; see control_path.h. */
#include "streamer/tests/control_path.h"

#include <math.h>
#include <string.h>

const struct ctl_params params = {.rate_min = 300e3, .rate_max = 3e6, .packet = 1000};

bool all(uint64_t seq)
{
	(void)seq;
	return true;
}

bool none(uint64_t seq)
{
	(void)seq;
	return false;
}

void path_init(struct path *p, const struct ctl_kind *kind)
{
	static struct path zero;

	ctl_free(p->c);
	*p = zero;
	p->c = ctl_new(kind, &params, 0);
	p->keeps = all;
	p->marks = none;
	p->seq = 1ULL << 32;
	p->rate = ctl_rate(p->c, 0);
}

void path_ecn(struct path *p, enum ctl_ecn ecn, const struct ctl_kind *kind)
{
	struct ctl_params ecn_params = params;

	path_init(p, kind);
	ecn_params.ecn = ecn;
	ctl_free(p->c);
	p->c = ctl_new(kind, &ecn_params, 0);
	p->ecn = true;
}

void path_run(struct path *p, double seconds, bool reports)
{
	double end = p->now + seconds;

	while (p->now < end - 1e-9) {
		double from = p->now, gap = 8 * 1000 / p->rate;
		double t = fmax(from, p->next);
		size_t n = 0;

		for (; t < from + 0.04 - 1e-9 && n < FB_REPORT; t += gap, p->seq++) {
			bool full = p->room > 0 && p->busy - t > p->room;

			if (p->capacity > 0 && !full) {
				p->queue = fmax(p->queue, p->busy - t);
				p->busy = fmax(p->busy, t) + 8 * 1000 / p->capacity;
				p->delay = p->busy - t;
			}
			p->last[n++] = (struct fb_packet){
				.seq = p->seq,
				.sent = t,
				.recv = 1000 + t + 0.02 + p->delay + p->ahead,
				.size = 1000,
				.received = !full && p->keeps(p->seq),
				.ect = p->ecn && !p->bleached && !p->marks(p->seq),
				.ce = !p->bleached && p->marks(p->seq),
			};
		}
		p->next = t;
		p->now = from + 0.04;
		p->n_last = n;
		ctl_sent(p->c, p->now, 1000 * n);
		if (reports)
			ctl_feedback(p->c, p->now + 0.04 + p->delay, p->last, n);
		p->rate = ctl_rate(p->c, p->now + 0.04 + p->delay);
	}
}

static double value;
static char wanted[64];

static void pick(const char *controller, const char *key, double v, void *data)
{
	char name[64];

	(void)data;
	snprintf(name, sizeof(name), "%s.%s", controller, key);
	if (!strcmp(name, wanted))
		value = v;
}

double state(const struct ctl *c, const char *name)
{
	value = NAN;
	snprintf(wanted, sizeof(wanted), "%s", name);
	ctl_state(c, pick, NULL);
	return value;
}

struct fb_packet packet(uint64_t seq, bool received)
{
	return (struct fb_packet){.seq = seq,
				  .sent = 0.01 * (double)(seq & 0xffff),
				  .recv = 5 + 0.01 * (double)(seq & 0xffff),
				  .size = 1000,
				  .received = received};
}

bool tenth(uint64_t seq)
{
	return seq % 10;
}

void advise_at(struct path *p, double now, double rate)
{
	static uint32_t seq;
	struct ctl_advice a = {.rate = rate, .value = 1, .router = 1, .seq = ++seq};

	ctl_advise(p->c, now, &a);
}

void advise(struct path *p, double rate)
{
	advise_at(p, p->now, rate);
}
