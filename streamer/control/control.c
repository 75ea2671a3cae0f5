// SPDX-License-Identifier: GPL-2.0
/* The table of controllers, and what all of them share. */
#include "streamer/control/control.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How long reports on packets outrank receiver reports, which say less. */
#define PACKETS_RULE 3.0
/* ECN does not work if this many packets, over this time, all look alike (RFC 6679 section 7.2). */
#define ECN_PACKETS 100
#define ECN_BLEACHED 3.0
#define ECN_STUCK 5.0	/* longer: a bottleneck that is overloaded marks all of them, too */
#define ECN_YIELDED 0.5 /* and marks go on at this part of the rate: they do not mean it, */
#define ECN_YIELD 2.0	/* s: not only while a queue drains */

const struct ctl_kind *const ctl_kinds[] = {
#define CTL_KIND(name, file) &ctl_##name,
#include "streamer/control/kinds.h"
	NULL,
};

struct ctl {
	const struct ctl_kind *kind;
	struct ctl_params params;
	double option[CTL_OPTIONS];
	struct fb fb;
	double last_report; /* receiver report */
	bool ecn;	    /* packets are sent as ECN-capable, or were */
	struct ctl_ecn_seen seen;
	struct {
		double since;
		size_t n;
	} plain, marked;	      /* packets in a row without ECT and CE, with CE */
	double marked_rate;	      /* when the latter began, bit/s */
	double yielded;		      /* since when it has been far below that */
	uint64_t understood, refused; /* messages of the receiving side */
	_Alignas(max_align_t) unsigned char state[];
};

static const struct ctl_kind *find(const char *name, size_t length)
{
	for (size_t i = 0; ctl_kinds[i]; i++)
		if (!strncmp(ctl_kinds[i]->name, name, length) && !ctl_kinds[i]->name[length])
			return ctl_kinds[i];
	return NULL;
}

const struct ctl_kind *ctl_find(const char *name)
{
	return find(name, strlen(name));
}

static void initial_options(const struct ctl_kind *kind, double option[CTL_OPTIONS])
{
	for (size_t i = 0; kind->options && kind->options[i].name; i++)
		option[i] = kind->options[i].initial;
}

/* One OPTION=VALUE, of which @length characters count. */
static bool choose_option(const struct ctl_kind *kind, const char *text, int length,
			  double option[CTL_OPTIONS], char *why, size_t size)
{
	const char *is = memchr(text, '=', (size_t)length);
	int name = is ? (int)(is - text) : length, at = 0;

	for (size_t i = 0; kind->options && kind->options[i].name; i++) {
		const struct ctl_option *o = &kind->options[i];
		char *end;

		at += snprintf(why + at, (size_t)at < size ? size - (size_t)at : 0, "%s%s",
			       i ? ", " : "", o->name);
		if ((size_t)at >= size)
			at = (int)size - 1;
		if (strncmp(o->name, text, (size_t)name) != 0 || o->name[name])
			continue;
		option[i] = is ? strtod(is + 1, &end) : NAN;
		if (is && end == text + length && end > is + 1 && option[i] >= o->least &&
		    option[i] <= o->most)
			return true;
		snprintf(why, size, "%s of %s (%s) must be a number from %g to %g", o->name,
			 kind->name, o->what, o->least, o->most);
		return false;
	}
	{
		char there[160];

		snprintf(there, sizeof(there), "%s", at ? why : "none");
		snprintf(why, size, "%s has no option '%.*s'; there are: %s", kind->name, name,
			 text, there);
	}
	return false;
}

const struct ctl_kind *ctl_choose(const char *text, double option[CTL_OPTIONS], char *why,
				  size_t size)
{
	size_t length = strcspn(text, ":");
	const struct ctl_kind *kind = find(text, length);
	const char *at = text + length;

	if (!kind) {
		snprintf(why, size, "there is no controller '%.*s'", (int)length, text);
		return NULL;
	}
	initial_options(kind, option);
	while (*at) {
		const char *one = at + 1;

		at = one + strcspn(one, ",");
		if (!choose_option(kind, one, (int)(at - one), option, why, size))
			return NULL;
	}
	return kind;
}

struct ctl *ctl_new(const struct ctl_kind *kind, const struct ctl_params *p, double now)
{
	struct ctl *c = malloc(sizeof(*c) + kind->size);

	if (!c)
		return NULL;
	c->kind = kind;
	ctl_again(c, p, now);
	return c;
}

void ctl_again(struct ctl *c, const struct ctl_params *p, double now)
{
	const struct ctl_kind *kind = c->kind;

	memset(c, 0, offsetof(struct ctl, fb));
	fb_init(&c->fb);
	memset(&c->last_report, 0,
	       offsetof(struct ctl, state) - offsetof(struct ctl, last_report) + kind->size);
	c->kind = kind;
	c->params = *p;
	initial_options(kind, c->option);
	if (p->option)
		memcpy(c->option, p->option, sizeof(c->option));
	c->params.option = c->option;
	c->ecn = p->ecn != CTL_ECN_NONE;
	kind->init(c->state, &c->params, now);
}

void ctl_free(struct ctl *c)
{
	free(c);
}

uint64_t ctl_unwrap(const struct ctl *c, uint16_t seq)
{
	return fb_unwrap(&c->fb, seq);
}

/* Timers that were due before what happens now act first. */
static void run_timers(struct ctl *c, double now)
{
	/* A controller that does not move its timer must not hang the sender. */
	for (int i = 0; i < 1000 && ctl_next(c) <= now; i++)
		c->kind->timeout(c->state, &c->params, ctl_next(c));
}

/* Packets in a row that are alike: do they go on for too long? */
static bool too_long(double *since, size_t *n, size_t more, const struct fb_report *r, double most)
{
	if (!*n)
		*since = r->now;
	*n = more == r->n ? *n + more : 0;
	return *n >= ECN_PACKETS && r->now - *since >= most;
}

/*
 * Is everything marked, whatever is sent? A queue that marks from a packet time on marks all
 * packets of a flow that keeps its fair rate, too; but not those of one that yields.
 */
static bool is_stuck(struct ctl *c, const struct fb_report *r)
{
	double rate = ctl_rate(c, r->now);

	if (!c->marked.n)
		c->marked_rate = rate;
	if (!c->marked.n || rate > fmax(ECN_YIELDED * c->marked_rate, c->params.rate_min))
		c->yielded = r->now;
	return too_long(&c->marked.since, &c->marked.n, r->ce, r, ECN_STUCK) &&
	       r->now - c->yielded >= ECN_YIELD;
}

/* A path that does not treat ECN as it should is not believed. */
static void check_ecn(struct ctl *c, struct fb_report *r)
{
	if (!r->n || c->params.ecn == CTL_ECN_NONE) {
		r->ect = r->ce = 0;
		return;
	}
	c->seen.ect += r->ect;
	c->seen.ce += r->ce;
	if (r->ect || r->ce)
		c->seen.path = CTL_PATH_GOOD;
	if (too_long(&c->plain.since, &c->plain.n, r->n - r->ect - r->ce, r, ECN_BLEACHED))
		c->seen.path = CTL_PATH_BLEACHED;
	else if (is_stuck(c, r))
		c->seen.path = CTL_PATH_STUCK;
	else
		return;
	c->params.ecn = CTL_ECN_NONE;
	r->ect = r->ce = 0;
}

const struct ctl_ecn_seen *ctl_ecn_seen(const struct ctl *c)
{
	return &c->seen;
}

void ctl_feedback(struct ctl *c, double now, const struct fb_packet *pkts, size_t n)
{
	struct fb_report r;

	run_timers(c, now);
	if (!fb_packets(&c->fb, now, pkts, n, &r))
		return;
	check_ecn(c, &r);
	if (c->kind->report)
		c->kind->report(c->state, &c->params, &r);
}

void ctl_receiver_report(struct ctl *c, double now, double lost, double rtt)
{
	struct fb_report r = {
		.now = now,
		.rtt = rtt < FB_RTT_MAX ? rtt : NAN,
		.interval = c->last_report > 0 ? now - c->last_report : 0,
		.fraction = ctl_clamp(lost, 0, 1),
		.x_recv = NAN,
		.x_sent = NAN,
		.fb = &c->fb,
	};

	run_timers(c, now);
	c->last_report = now;
	if (c->fb.last_report > 0 && now - c->fb.last_report < PACKETS_RULE)
		return;
	fb_space(&c->fb, r.interval);
	if (c->kind->report)
		c->kind->report(c->state, &c->params, &r);
}

void ctl_advise(struct ctl *c, double now, const struct ctl_advice *a)
{
	run_timers(c, now);
	if (c->kind->advice)
		c->kind->advice(c->state, &c->params, now, a);
}

void ctl_estimate(struct ctl *c, double now, double rate)
{
	run_timers(c, now);
	if (c->kind->estimate && isfinite(rate) && rate > 0)
		c->kind->estimate(c->state, &c->params, now, rate);
}

void ctl_message(struct ctl *c, double now, const struct ctl_message *m)
{
	run_timers(c, now);
	if (c->kind->message && c->kind->message(c->state, &c->params, now, m))
		c->understood++;
	else
		c->refused++;
}

void ctl_format(const struct ctl *c, struct ctl_format *f)
{
	*f = (struct ctl_format){0};
	if (c->kind->format)
		c->kind->format(c->state, f);
}

double ctl_decay(const struct ctl_kind *kind, const double option[CTL_OPTIONS])
{
	struct ctl_params p = {.option = option};

	return kind->decay ? kind->decay(&p) : 0;
}

void ctl_sent(struct ctl *c, double now, size_t bytes)
{
	if (bytes && c->kind->sent)
		c->kind->sent(c->state, now, bytes);
}

void ctl_moved(struct ctl *c, double now)
{
	run_timers(c, now);
	fb_new_clock(&c->fb);
	if (c->kind->moved)
		c->kind->moved(c->state, now);
}

bool ctl_train(struct ctl *c, double now, struct ctl_train *t)
{
	run_timers(c, now);
	return c->kind->train && c->kind->train(c->state, t);
}

void ctl_extend(const struct ctl *c, double now, uint8_t *ext)
{
	c->kind->extend(c->state, now, ext);
}

double ctl_rate(struct ctl *c, double now)
{
	run_timers(c, now);
	return ctl_clamp(c->kind->rate(c->state, &c->params), c->params.rate_min,
			 c->params.rate_max);
}

bool ctl_follows(const struct ctl *c)
{
	return c->kind->follows && c->kind->follows(c->state);
}

double ctl_next(const struct ctl *c)
{
	return c->kind->next ? c->kind->next(c->state) : INFINITY;
}

void ctl_state(const struct ctl *c, ctl_log_fn log, void *data)
{
	const char *name = c->kind->name;

	log(name, "rate", c->kind->rate(c->state, &c->params), data);
	if (isfinite(c->fb.rtt))
		log(name, "rtt", c->fb.rtt, data);
	if (c->fb.spacing > 0)
		log(name, "report_interval", c->fb.spacing, data);
	if (c->kind->message) {
		log(name, "messages", (double)c->understood, data);
		log(name, "refused", (double)c->refused, data);
	}
	if (c->ecn) {
		log("ecn", "path", c->seen.path, data);
		log("ecn", "ect", (double)c->seen.ect, data);
		log("ecn", "ce", (double)c->seen.ce, data);
	}
	if (c->kind->state)
		c->kind->state(c->state, name, log, data);
}
