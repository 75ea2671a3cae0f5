// SPDX-License-Identifier: GPL-2.0
/*
 * TEAR (I. Rhee, V. Ozdemir, Y. Yi, NCSU 2000): what TCP's window would be, by what arrives, and
 * its mean over epochs as the rate. A reconstruction with five of the original's states, not
 * compared with the report. It works where reports on each packet are (the authors': at the
 * receiver), so its little feedback, reports of a rate every few round trips, is not shown.
 *
 * Epochs are weighed as TFRC's loss intervals are. The fading of old ones when the present epoch
 * does better is an addition: without it a lone flow beside RED used half of the link.
 */
#include <math.h>
#include <string.h>

#include "streamer/control/control.h"

#define EPOCHS 8
#define FADE_LEAST 0.25
#define FIRST 3.0 /* s without an arrival before a round trip is known */
#define REPORTS_MISSED 3

static const double tear_weight[EPOCHS] = {1, 1, 1, 1, 0.8, 0.6, 0.4, 0.2};

/* Rounds of an epoch: windows, round trips, how many. */
struct tear_rounds {
	double windows, time;
	int n;
};

struct tear {
	double packet; /* bytes */
	struct fb_rtt rtt;
	double window, slow_end;
	double round;	/* window of this round, as it began */
	double arrived; /* in it */
	struct tear_rounds now;
	double epoch[EPOCHS]; /* packets/s, the newest first */
	int epochs;
	uint64_t known; /* losses up to here belong to the last event */
	uint64_t next;	/* that arrives in order */
	bool gap;	/* packet @hole is missing, and @later ones have come */
	uint64_t hole;
	int later;
	double silent, patience;
	bool idle;
};

static double tear_mean(const double *epoch, int n, int shift)
{
	double sum = 0, norm = 0;

	for (int i = 0; i + shift < EPOCHS && i < n; i++) {
		sum += tear_weight[i + shift] * epoch[i];
		norm += tear_weight[i + shift];
	}
	return norm > 0 ? sum / norm : 0;
}

/* Packets/s of @n closed epochs and the present one (0: none of its rounds is over). */
static double tear_rate_of(const double *epoch, int n, double present)
{
	double closed = tear_mean(epoch, n, 0), norm = 0, fade;

	if (present <= 0)
		return closed;
	fade = ctl_clamp(closed / present, FADE_LEAST, 1);
	for (int i = 0; i + 1 < EPOCHS && i < n; i++)
		norm += tear_weight[i + 1];
	return fmax(closed, (present + fade * norm * tear_mean(epoch, n, 1)) / (1 + fade * norm));
}

static double tear_sample(const struct tear_rounds *r)
{
	return r->n && r->time > 0 ? r->windows / r->time : 0;
}

static void tear_round(struct tear *s)
{
	s->now.windows += s->round;
	s->now.time += s->rtt.mean;
	s->now.n++;
	s->arrived = 0;
	s->round = s->window;
}

static void tear_close(struct tear *s)
{
	double sample = tear_sample(&s->now);

	/* An epoch that ends in its first round had the window of that. */
	if (sample <= 0 && s->rtt.mean > 0)
		sample = s->round / s->rtt.mean;
	if (sample > 0) {
		memmove(s->epoch + 1, s->epoch, (EPOCHS - 1) * sizeof(s->epoch[0]));
		s->epoch[0] = sample;
		s->epochs += s->epochs < EPOCHS;
	}
	s->now = (struct tear_rounds){0};
}

static void tear_init(void *state, const struct ctl_params *p, double now)
{
	*(struct tear *)state = (struct tear){.packet = p->packet,
					      .window = 2,
					      .slow_end = INFINITY,
					      .round = 2,
					      .silent = now + FIRST,
					      .patience = FIRST,
					      .idle = true};
}

static double tear_rate(const void *state, const struct ctl_params *p)
{
	const struct tear *s = state;

	(void)p;
	if (!s->rtt.any)
		return 8 * s->packet * s->window / FIRST;
	if (!s->epochs)
		return 8 * s->packet * s->round / s->rtt.mean;
	return 8 * s->packet * tear_rate_of(s->epoch, s->epochs, tear_sample(&s->now));
}

static void tear_arrival(struct tear *s, bool limited)
{
	if (!limited)
		s->window += s->window < s->slow_end ? 1 : 1 / s->round;
	if (++s->arrived >= s->round)
		tear_round(s);
}

/* A hole that three later packets have followed: half the window, once for all of its window. */
static void tear_event(struct tear *s, const struct ctl_params *p, const struct fb_report *r)
{
	double flight = fmax(s->round, tear_rate(s, p) * s->rtt.mean / (8 * s->packet));

	tear_close(s);
	s->window = fmax(1, s->window / 2);
	s->slow_end = s->round = s->window;
	s->arrived = 0;
	s->known = r->fb->highest + (uint64_t)fmin(flight, 1e6);
	s->gap = false;
}

/*
 * Does it arrive in order? What follows a hole does not, until that is filled, or lost, or was
 * never reported at all: TCP's window stands while duplicate acknowledgements come.
 */
static bool tear_in_order(struct tear *s, uint64_t seq)
{
	uint64_t first = s->next > s->known ? s->next : s->known + 1;

	if (s->gap && (seq == s->hole || ++s->later > FB_LATER))
		s->gap = false;
	if (!s->gap && s->next && first < seq) {
		s->gap = true;
		s->hole = first;
		s->later = 1;
	}
	s->next = seq >= s->next ? seq + 1 : s->next;
	return !s->gap;
}

/* It does not say which packets: all of them, in order, or a loss event. */
static void tear_receiver_report(struct tear *s, const struct ctl_params *p,
				 const struct fb_report *r)
{
	double arrived = fb_arrived(r, tear_rate(s, p), s->packet);

	if (r->fraction > 0)
		tear_event(s, p, r);
	for (double i = 0; i < arrived; i++)
		tear_arrival(s, tear_rate(s, p) >= p->rate_max);
}

static void tear_report(void *state, const struct ctl_params *p, const struct fb_report *r)
{
	struct tear *s = state;
	const struct fb_packet *sign;
	size_t lost = 0, came = 0;
	bool limited = isfinite(r->x_sent) && r->x_sent < 0.9 * tear_rate(s, p);
	bool marks = p->ecn != CTL_ECN_NONE;

	if (isfinite(r->rtt))
		fb_rtt_sample(&s->rtt, fmax(r->rtt, 1e-4), 0.125, 0.25);
	if (!s->rtt.any)
		return;
	sign = fb_next_sign(r, marks, &lost, &came);
	for (size_t i = 0; i < r->n; i++) {
		bool in_order = tear_in_order(s, r->pkts[i].seq);

		if (in_order)
			tear_arrival(s, limited);
		/* what is lost counts when so many later packets have come */
		while (sign && sign->seq + FB_LATER <= r->pkts[i].seq) {
			if (sign->seq > s->known)
				tear_event(s, p, r);
			sign = fb_next_sign(r, marks, &lost, &came);
		}
	}
	for (; sign; sign = fb_next_sign(r, marks, &lost, &came))
		if (sign->seq > s->known)
			tear_event(s, p, r);
	if (!r->expected)
		tear_receiver_report(s, p, r);
	s->patience =
		fmax(fmax(4 * s->rtt.mean, 2 * 8 * s->packet / tear_rate(s, p) + 4 * s->rtt.mean),
		     REPORTS_MISSED * r->fb->spacing);
	s->silent = r->now + s->patience;
	s->idle = true;
}

static void tear_sent(void *state, double now, size_t bytes)
{
	(void)now;
	(void)bytes;
	((struct tear *)state)->idle = false;
}

static double tear_next(const void *state)
{
	return ((const struct tear *)state)->silent;
}

/* Nothing arrives: TCP's timeout. Its epoch has the window that is left. */
static void tear_timeout(void *state, const struct ctl_params *p, double now)
{
	struct tear *s = state;

	(void)p;
	if (!s->idle && s->rtt.any) {
		tear_close(s);
		for (int i = 0; i < s->epochs; i++)
			s->epoch[i] /= 2;
		s->slow_end = fmax(2, s->window / 2);
		s->window = s->round = 1;
		s->arrived = 0;
		s->patience = fmin(2 * s->patience, 64);
	}
	s->idle = true;
	s->silent = now + fmax(s->patience, 1e-3);
}

static void tear_state(const void *state, const char *name, ctl_log_fn log, void *data)
{
	const struct tear *s = state;

	log(name, "window", s->window, data);
	log(name, "epochs", s->epochs, data);
	log(name, "closed", tear_mean(s->epoch, s->epochs, 0), data);
}

const struct ctl_kind ctl_tear = {
	.name = "tear",
	.summary = "TEAR: the mean of the window that TCP would have",
	.marks = true,
	.size = sizeof(struct tear),
	.init = tear_init,
	.report = tear_report,
	.sent = tear_sent,
	.next = tear_next,
	.timeout = tear_timeout,
	.rate = tear_rate,
	.state = tear_state,
};
