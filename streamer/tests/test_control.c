// SPDX-License-Identifier: GPL-2.0
/* Rate controllers: published vectors, fate of packets, handover, hostile reports. */
#include "streamer/control/control.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/paqm_law.h"
#include "streamer/control/nada.h"
#include "streamer/control/tfrc.h"

static int failed;

static void check(int line, const char *what, double got, double want, double tolerance)
{
	if (fabs(got - want) <= tolerance * fabs(want) + 1e-9)
		return;
	failed++;
	printf("FAIL line %d, %s: %.9g instead of %.9g\n", line, what, got, want);
}

#define NEAR(what, got, want) check(__LINE__, what, got, want, 5e-5)
#define SAME(what, got, want) check(__LINE__, what, got, want, 1e-9)
#define TRUE(what, condition) check(__LINE__, what, !!(condition), 1, 0)

static const struct ctl_params params = {.rate_min = 300e3, .rate_max = 3e6, .packet = 1000};

static void test_equation(void)
{
	static const struct {
		double rtt, p, s, kbps;
	} v[] = {
		{0.04, 0.0001, 1000, 24472.9}, {0.04, 0.001, 1000, 7676.9},
		{0.04, 0.01, 1000, 2246.6},    {0.04, 0.05, 1000, 737.2},
		{0.1, 0.001, 1000, 3070.7},    {0.1, 0.01, 1000, 898.7},
		{0.1, 0.05, 1000, 294.9},      {0.1, 0.02, 500, 293.0},
		{0.04, 0.3, 1000, 39.0},       {0.04, 1, 1000, 0.8},
	};
	static const struct {
		double x, rtt, p;
	} inverse[] = {
		{10e6, 0.04, 5.9364e-4},
		{1e6, 0.04, 0.034378},
		{2.5e6, 0.1, 1.49547e-3},
		{300e3, 0.2, 0.019292},
	};

	for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++)
		check(__LINE__, "equation, kbit/s", 8e-3 * tfrc_equation(v[i].s, v[i].rtt, v[i].p),
		      v[i].kbps, 0.051 / v[i].kbps);
	for (size_t i = 0; i < sizeof(inverse) / sizeof(inverse[0]); i++)
		NEAR("inverse", tfrc_inverse(1000, inverse[i].rtt, inverse[i].x / 8), inverse[i].p);
}

static struct tfrc_history history(double open, int n, const double *closed)
{
	struct tfrc_history h = {.closed = n, .any = true, .length = {open}};

	for (int i = 1; i <= n; i++) {
		h.length[i] = closed[i - 1];
		h.discount[i] = 1;
	}
	return h;
}

static void test_history(void)
{
	static const double even[] = {100, 100, 100, 100, 100, 100, 100, 100};
	static const double mixed[] = {80, 120, 60, 200, 150, 90, 110, 70};
	static const double two[] = {40, 40};
	struct tfrc_history h = history(50, 8, even);

	SAME("even", tfrc_mean(&h, true), 100);
	h = history(400, 8, even);
	SAME("open one counts when long", tfrc_mean(&h, false), 150);
	NEAR("discounted", tfrc_mean(&h, true), 185.714);
	h = history(1000, 8, even);
	SAME("longer", tfrc_mean(&h, false), 250);
	SAME("longer, discounted", tfrc_mean(&h, true), 500);
	h = history(10, 8, mixed);
	NEAR("mixed", tfrc_mean(&h, true), 115.3333);
	h = history(10, 1, even);
	SAME("one", tfrc_mean(&h, true), 100);
	h = history(500, 2, two);
	SAME("two", tfrc_mean(&h, false), 270);
	SAME("two, discounted", tfrc_mean(&h, true), 408);
	/* An event makes the discount of the old ones last. */
	tfrc_event(&h, 700, 1, 0);
	SAME("closed", h.closed, 3);
	SAME("new interval", h.length[1], 700);
	SAME("undiscounted", h.discount[1], 1);
	SAME("discounted for good", h.discount[2], 0.25);
}

static void test_tfrc(void)
{
	struct tfrc t;

	tfrc_begin(&t, 1460, 0);
	tfrc_update(&t, 0, 0.1, NAN, 0, false, false);
	NEAR("window of 1460", 8e-3 * t.x, 350.4);
	tfrc_begin(&t, 500, 0);
	tfrc_update(&t, 0, 0.1, NAN, 0, false, false);
	NEAR("window of 500", 8e-3 * t.x, 160);

	tfrc_begin(&t, 1000, 0);
	SAME("before feedback", t.x, 1000);
	tfrc_silence(&t, 2);
	SAME("idle: no need", t.x, 1000);
	t.idle = false;
	tfrc_silence(&t, 4);
	SAME("no feedback at all", t.x, 500);
	tfrc_begin(&t, 1000, 0);
	tfrc_update(&t, 1, 0.04, NAN, 0, false, false);
	SAME("first report", 8e-3 * t.x, 800);
	tfrc_update(&t, 1.04, 0.04, 100e3, 0, false, false);
	SAME("slow start", 8e-3 * t.x, 1600);
	tfrc_update(&t, 1.05, 0.04, 100e3, 0, false, false);
	SAME("doubles once per round trip", 8e-3 * t.x, 1600);
	tfrc_update(&t, 1.085, 0.04, 180e3, 0, false, false);
	SAME("twice of what arrives", 8e-3 * t.x, 2880);
	tfrc_update(&t, 1.13, 0.04, 300e3, 0.01, true, false);
	NEAR("by the equation", 8e-3 * t.x, 2246.6);
	tfrc_silence(&t, 1.3);
	NEAR("silence", 8e-3 * t.x, 1123.3);
	t.x = 10e6 / 8;
	SAME("timer", tfrc_rto(&t), 0.16);
	t.x = 1000;
	SAME("timer of a slow one", tfrc_rto(&t), 2);
	t.rtt_sqrt = 0.2;
	t.x = 1e6;
	tfrc_update(&t, 2, 0.06, 1e6, 0.01, false, false);
	NEAR("root of rtt", t.rtt_sqrt, 0.204495);
	NEAR("no oscillation", tfrc_now(&t) / t.x, 0.83485);

	/* RFC 5348 section 8.2.1: a report of times when there was little to send. */
	tfrc_begin(&t, 1000, 0);
	tfrc_update(&t, 1, 0.04, NAN, 0, false, false);
	tfrc_update(&t, 1.04, 0.04, 100e3, 0, false, false);
	tfrc_update(&t, 1.5, 0.04, 50e3, 0.001, false, true);
	NEAR("unused room stays for a while", t.x, 200e3);
	tfrc_update(&t, 1.6, 0.04, 50e3, 0.001, true, true);
	NEAR("not after loss", t.x, 50e3);
}

/* A path of the tests: packets of 1000 bytes, sent evenly, 20 ms each way. */
struct path {
	struct ctl *c;
	double now, rate;
	double next; /* when the next packet is sent */
	uint64_t seq;
	double delay;	 /* s of queue */
	double capacity; /* bit/s of a bottleneck with a queue of its own; 0: none */
	double busy;	 /* until when it is */
	double queue;	 /* longest wait there since it was last set to 0 */
	bool (*keeps)(uint64_t seq);
	bool ecn, bleached; /* sent as ECN-capable; arrives as if it were not */
	bool (*marks)(uint64_t seq);
	struct fb_packet last[FB_REPORT];
	size_t n_last;
};

static bool all(uint64_t seq)
{
	(void)seq;
	return true;
}

static bool none(uint64_t seq)
{
	(void)seq;
	return false;
}

static void path_init(struct path *p, const struct ctl_kind *kind)
{
	static struct path zero;

	*p = zero;
	p->c = ctl_new(kind, &params, 0);
	p->keeps = all;
	p->marks = none;
	p->seq = 1ULL << 32;
	p->rate = ctl_rate(p->c, 0);
}

/* Begin again, as a sender of ECN-capable packets. */
static void path_ecn(struct path *p, enum ctl_ecn ecn, const struct ctl_kind *kind)
{
	struct ctl_params ecn_params = params;

	ecn_params.ecn = ecn;
	ctl_free(p->c);
	p->c = ctl_new(kind, &ecn_params, 0);
	p->ecn = true;
}

/* So long with a report every 40 ms, which arrives 20 ms after its newest packet did. */
static void path_run(struct path *p, double seconds, bool reports)
{
	double end = p->now + seconds;

	while (p->now < end - 1e-9) {
		double from = p->now, gap = 8 * 1000 / p->rate;
		double t = fmax(from, p->next);
		size_t n = 0;

		for (; t < from + 0.04 - 1e-9 && n < FB_REPORT; t += gap, p->seq++) {
			if (p->capacity > 0) {
				p->queue = fmax(p->queue, p->busy - t);
				p->busy = fmax(p->busy, t) + 8 * 1000 / p->capacity;
				p->delay = p->busy - t;
			}
			p->last[n++] = (struct fb_packet){
				.seq = p->seq,
				.sent = t,
				.recv = 1000 + t + 0.02 + p->delay,
				.size = 1000,
				.received = p->keeps(p->seq),
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

static double state(const struct ctl *c, const char *name)
{
	value = NAN;
	snprintf(wanted, sizeof(wanted), "%s", name);
	ctl_state(c, pick, NULL);
	return value;
}

static struct fb_packet packet(uint64_t seq, bool received)
{
	return (struct fb_packet){.seq = seq,
				  .sent = 0.01 * (double)(seq & 0xffff),
				  .recv = 5 + 0.01 * (double)(seq & 0xffff),
				  .size = 1000,
				  .received = received};
}

static void test_feedback(void)
{
	static struct fb fb;
	struct fb_packet p[8];
	struct fb_report r;

	fb_init(&fb);
	TRUE("begins high", fb_unwrap(&fb, 65530) < 1ULL << 32);
	fb.any = true;
	fb.highest = (1ULL << 32) + 65530;
	SAME("wraps", (double)(fb_unwrap(&fb, 3) - fb.highest), 9);
	SAME("back", (double)(fb.highest - fb_unwrap(&fb, 65528)), 2);

	fb_init(&fb);
	for (int i = 0; i < 4; i++)
		p[i] = packet(100 + i, i != 1);
	TRUE("taken", fb_packets(&fb, 2, p, 3, &r));
	SAME("one later packet", r.lost, 0);
	SAME("two arrived", r.n, 2);
	TRUE("again: nothing new", !fb_packets(&fb, 2, p, 3, &r));
	TRUE("fourth", fb_packets(&fb, 2.1, p + 3, 1, &r));
	SAME("two later packets", r.lost, 0);
	p[0] = packet(104, true);
	TRUE("fifth", fb_packets(&fb, 2.2, p, 1, &r));
	SAME("three later packets", r.lost, 1);
	SAME("which", r.losses[0].seq, 101);
	SAME("of two", r.fraction, 0.5);
	p[0] = packet(101, true);
	TRUE("too late", !fb_packets(&fb, 2.3, p, 1, &r));

	/* Out of order by two: nothing is lost. */
	p[0] = packet(105, false);
	p[1] = packet(106, true);
	p[2] = packet(107, true);
	TRUE("hole", fb_packets(&fb, 2.4, p, 3, &r) && !r.lost);
	p[0].received = true;
	TRUE("filled", fb_packets(&fb, 2.5, p, 1, &r) && r.n == 1);
	for (int i = 0; i < 4; i++)
		p[i] = packet(108 + i, true);
	TRUE("no loss", fb_packets(&fb, 2.6, p, 4, &r) && !r.lost);

	/* What no report has mentioned is unknown. */
	p[0] = packet(150, true);
	TRUE("gap", fb_packets(&fb, 2.7, p, 1, &r) && !r.lost && r.expected == 1);

	/* Broken entries are not looked at. */
	p[0] = packet(200, true);
	p[0].sent = 99;
	p[1] = packet(201, true);
	p[1].recv = NAN;
	p[2] = packet(202, true);
	p[2].sent = -INFINITY;
	TRUE("broken", !fb_packets(&fb, 2.8, p, 3, &r));

	fb_init(&fb);
	for (int i = 0; i < 5; i++)
		p[i] = packet(i, true);
	TRUE("evenly", fb_packets(&fb, 1, p, 5, &r));
	SAME("rate", fb_recv_rate(&fb, 0.02), 800e3);
	SAME("round trip", r.rtt, 0.96);
}

static bool burst(uint64_t seq)
{
	return (seq & 0xffff) < 1000 || (seq & 0xffff) >= 1010;
}

static bool tenth(uint64_t seq)
{
	return seq % 10;
}

static void test_tfrc_reports(void)
{
	static struct path p;
	double before;

	path_init(&p, &ctl_tfrc);
	path_run(&p, 1, true);
	TRUE("slow start", p.rate > 2e6);
	SAME("no loss", state(p.c, "tfrc.p"), 0);
	/* Ten in a row within a round trip: one event, whose interval is made up. */
	p.keeps = burst;
	while ((p.seq & 0xffff) < 1030)
		path_run(&p, 0.04, true);
	before = state(p.c, "tfrc.p");
	TRUE("an event", before > 0);
	TRUE("one only", before < 0.01);
	/* Duplicates and old reports change nothing. */
	for (int i = 0; i < 10; i++)
		ctl_feedback(p.c, p.now + 0.04, p.last, p.n_last);
	SAME("duplicate", state(p.c, "tfrc.p"), before);
	SAME("rate", ctl_rate(p.c, p.now + 0.04), p.rate);
	p.keeps = tenth;
	path_run(&p, 20, true);
	TRUE("every tenth lost", p.rate == params.rate_min);
	TRUE("below the floor inside", state(p.c, "tfrc.x") < 400e3);
	p.keeps = all;
	path_run(&p, 120, true);
	before = p.rate;
	TRUE("recovers", before > 1.5e6);
	path_run(&p, 5, false);
	TRUE("black-out", state(p.c, "tfrc.x") <= before / 4);
	path_run(&p, 60, true);
	TRUE("and back", p.rate > before / 2);
	ctl_free(p.c);

	/* Receiver reports only. */
	path_init(&p, &ctl_tfrc);
	for (int i = 0; i < 40; i++)
		ctl_receiver_report(p.c, i, 0, 0.04);
	SAME("no loss: all", ctl_rate(p.c, 40), params.rate_max);
	for (int i = 40; i < 80; i++)
		ctl_receiver_report(p.c, i, 0.05, 0.04);
	check(__LINE__, "equation", ctl_rate(p.c, 80), 737.2e3, 0.02);
	ctl_free(p.c);
}

static void test_nada(void)
{
	static struct path p;
	double before;

	path_init(&p, &ctl_nada);
	SAME("start", p.rate, 750e3);
	path_run(&p, 0.4, true);
	TRUE("grows without a queue", p.rate > 750e3);
	path_run(&p, 12, true);
	SAME("to the top", p.rate, 3e6);
	p.delay = 0.1;
	path_run(&p, 0.5, true);
	TRUE("a queue lowers it", p.rate < 2.2e6);
	path_run(&p, 5, true);
	TRUE("and again", p.rate < 1.2e6);
	p.delay = 0;
	path_run(&p, 20, true);
	SAME("and up", p.rate, 3e6);
	/* A queue that begins is drained at once, one that stays is not ours. */
	p.delay = 0.01;
	path_run(&p, 0.24, true);
	TRUE("drained", p.rate < 2.75e6);
	before = p.rate;
	path_run(&p, 1, true);
	TRUE("not twice", p.rate > 0.95 * before);
	/* What a packet takes is no queue. */
	p.delay = 0;
	path_run(&p, 20, true);
	p.delay = 0.003;
	path_run(&p, 2, true);
	SAME("no queue", p.rate, 3e6);
	p.delay = 0;
	path_run(&p, 1, true);
	SAME("and up", p.rate, 3e6);
	before = p.rate;
	path_run(&p, 5.5, false);
	TRUE("black-out", p.rate <= before / 4);
	path_run(&p, 12, true);
	SAME("back", p.rate, 3e6);
	/* A clock that is set does not look like a queue. */
	p.delay = 3600;
	p.last[0] = (struct fb_packet){
		.seq = p.seq,
		.sent = p.now,
		.recv = p.now + 5000,
		.size = 1000,
		.received = true,
	};
	ctl_feedback(p.c, p.now + 0.04, p.last, 1);
	TRUE("clock", state(p.c, "nada.queue") < 1);
	ctl_free(p.c);

	/* Receiver reports only: what loss says. */
	path_init(&p, &ctl_nada);
	SAME("no report, no growth", ctl_rate(p.c, 20), 750e3);
	for (int i = 0; i < 20; i++)
		ctl_receiver_report(p.c, 20 + 0.5 * i, 0, 0.04);
	SAME("growth", ctl_rate(p.c, 29.6), 3e6);
	ctl_receiver_report(p.c, 30, 0.02, 0.04);
	SAME("loss", ctl_rate(p.c, 30), 2.55e6);
	ctl_receiver_report(p.c, 30.5, 0, 0.04);
	SAME("rest", ctl_rate(p.c, 30.5), 2.55e6);
	TRUE("a second of silence", ctl_rate(p.c, 31.4) == 2.55e6);
	SAME("long silence", ctl_rate(p.c, 60), 300e3);
	ctl_free(p.c);
}

/* A bottleneck that it fills by itself: the queue is emptied, not balanced. */
static void test_nada_queue(void)
{
	static struct path p;
	double sent;

	path_init(&p, &ctl_nada);
	p.capacity = 2e6;
	path_run(&p, 5, true);
	p.queue = 0;
	sent = (double)p.seq;
	path_run(&p, 60, true);
	TRUE("most of it is used", 8000 * ((double)p.seq - sent) > 0.9 * 60 * 2e6);
	TRUE("short queue", p.queue < 0.015);
	/* Half of it goes to others. */
	p.capacity = 1e6;
	path_run(&p, 0.6, true);
	TRUE("answered", p.rate < 1e6);
	path_run(&p, 1.4, true);
	p.queue = 0;
	path_run(&p, 0.4, true);
	TRUE("drained", p.queue < 0.01);
	path_run(&p, 20, true);
	p.queue = 0;
	sent = (double)p.seq;
	path_run(&p, 30, true);
	TRUE("most of the half is used", 8000 * ((double)p.seq - sent) > 0.85 * 30 * 1e6);
	TRUE("short queue of the half", p.queue < 0.009);
	p.capacity = 2e6;
	path_run(&p, 12, true);
	TRUE("and all again", p.rate > 1.7e6);
	ctl_free(p.c);
}

static void advise_at(struct path *p, double now, double rate)
{
	static uint32_t seq;
	struct ctl_advice a = {.rate = rate, .value = 1, .router = 1, .seq = ++seq};

	ctl_advise(p->c, now, &a);
}

static void advise(struct path *p, double rate)
{
	advise_at(p, p->now, rate);
}

/* A queue of 60 ms stands for 0.2 s, then there is advice of 1 Mbit/s, and 0.4 s go by. */
static void path_of_queue_and_advice(struct path *p)
{
	path_init(p, &ctl_auto);
	path_run(p, 0.2, true);
	p->delay = 0.06;
	path_run(p, 0.2, true);
	advise_at(p, p->now + 0.1, 1e6);
	path_run(p, 0.4, true);
}

static void test_auto(void)
{
	static struct path p;

	path_init(&p, &ctl_auto);
	SAME("start", p.rate, 750e3);
	TRUE("nobody to follow", !ctl_follows(p.c));
	advise(&p, 2.5e6);
	SAME("advice at once", ctl_rate(p.c, 0), 2.5e6);
	TRUE("follows", ctl_follows(p.c));
	advise(&p, 0.4e6);
	SAME("down at once", ctl_rate(p.c, 0), 0.4e6);
	advise(&p, 1e3);
	SAME("floor", ctl_rate(p.c, 0), 300e3);
	advise(&p, 9e9);
	SAME("ceiling", ctl_rate(p.c, 0), 3e6);
	advise(&p, 1e6);
	path_run(&p, 2, true);
	SAME("holds", p.rate, 1e6);
	/* What a router's own change makes of queue and loss passes. */
	p.delay = 0.06;
	path_run(&p, 0.6, true);
	SAME("a short queue", p.rate, 1e6);
	p.delay = 0;
	p.keeps = tenth;
	path_run(&p, 0.4, true);
	p.keeps = all;
	path_run(&p, 1, true);
	SAME("some loss", p.rate, 1e6);
	/* Loss that lasts: a bottleneck that has no say here. */
	p.keeps = tenth;
	path_run(&p, 3, true);
	SAME("doubt", state(p.c, "auto.doubt"), 1);
	TRUE("below", p.rate < 0.85e6);
	TRUE("does not follow in doubt", !ctl_follows(p.c));
	advise(&p, 3e6);
	TRUE("advice does not lift it", ctl_rate(p.c, p.now + 0.04) < 0.85e6);
	advise(&p, 1e6);
	p.keeps = all;
	path_run(&p, 15, true);
	SAME("trust again", state(p.c, "auto.doubt"), 0);
	SAME("all of it", p.rate, 1e6);
	/* A queue that lasts. */
	p.delay = 0.15;
	path_run(&p, 1.2, true);
	SAME("doubt by delay", state(p.c, "auto.doubt"), 1);
	TRUE("lower", p.rate < 0.85e6);
	p.delay = 0;
	path_run(&p, 15, true);
	SAME("and back", p.rate, 1e6);
	/* Alone again: from here. */
	advise(&p, 0);
	SAME("handover", ctl_rate(p.c, p.now), 1e6);
	TRUE("alone again", !ctl_follows(p.c));
	path_run(&p, 0.5, true);
	TRUE("no leap", p.rate < 1.05e6);
	path_run(&p, 6, true);
	TRUE("then its own way", p.rate > 1.2e6);
	advise(&p, 0.5e6);
	SAME("advice again", ctl_rate(p.c, p.now), 0.5e6);
	/* What is lost in the search without advice does not hold back advice that returns. */
	advise(&p, 0);
	p.keeps = tenth;
	path_run(&p, 3, true);
	TRUE("loss counts", p.rate < 0.5e6);
	advise(&p, 0.6e6);
	SAME("advice is back", ctl_rate(p.c, p.now), 0.6e6);
	p.keeps = all;
	path_run(&p, 0.5, true);
	advise(&p, 0.5e6);
	/* Reports do not come back, advice does. */
	path_run(&p, 5, false);
	SAME("advice holds", p.rate, 0.5e6);
	ctl_free(p.c);

	/* What was sent before the advice came is drained; the advice alone would leave it. */
	path_of_queue_and_advice(&p);
	SAME("below the advice", p.rate, 0.85e6);
	TRUE("yet follows", ctl_follows(p.c));
	path_run(&p, 1, false);
	SAME("no report says that it is gone", p.rate, 1e6);
	path_run(&p, 0.2, true);
	SAME("it is there", p.rate, 0.85e6);
	/* One that stays is that of others. */
	path_run(&p, 0.6, true);
	SAME("not for ever", p.rate, 1e6);
	ctl_free(p.c);

	path_of_queue_and_advice(&p);
	p.delay = 0;
	path_run(&p, 0.2, true);
	SAME("then all of it", p.rate, 1e6);
	/* A queue that begins later is the router's own affair. */
	path_run(&p, 2, true);
	p.delay = 0.06;
	path_run(&p, 0.6, true);
	SAME("later", p.rate, 1e6);
	ctl_free(p.c);

	/* Advice with receiver reports: one with loss is the routers' business, two are not. */
	path_init(&p, &ctl_auto);
	advise(&p, 1e6);
	ctl_receiver_report(p.c, 0.5, 0.05, 0.04);
	SAME("one report", ctl_rate(p.c, 0.5), 1e6);
	ctl_receiver_report(p.c, 1, 0.05, 0.04);
	SAME("two reports", ctl_rate(p.c, 1), 850e3);
	ctl_free(p.c);
}

/*
 * A queue of the flow's own that marks what exceeds the fair rate: by CoDel (5 ms, 100 ms), or in
 * proportion to the wait from 1 ms on. 20 ms each way, a picture each 1/24 s which costs 97 % of
 * what it may, a report when it has come.
 */
struct lane {
	struct ctl *c;
	bool codel;
	double now, fair, busy;
	double above, next_mark; /* CoDel */
	bool shared;		 /* each waits for a packet of another flow, which is long enough */
	int marks, count;
	uint64_t seq;
	struct {
		double at;
		size_t n;
		struct fb_packet pkts[64];
	} reports[64];
	size_t first, last;
	double bytes[400]; /* that arrived in each quarter second */
};

static bool lane_marks(struct lane *l, double start, double wait)
{
	bool now = false;

	if (l->shared)
		return true;
	if (!l->codel)
		return wait > 0.001 && fmod(0.618 * (double)l->seq, 1) < (wait - 0.001) / 0.010;
	if (wait < 0.005)
		l->above = l->count = 0;
	else if (l->above <= 0)
		l->above = l->next_mark = start + 0.1;
	else
		now = start >= l->next_mark;
	if (now)
		l->next_mark = start + 0.1 / sqrt(++l->count);
	return now;
}

static void lane_run(struct lane *l, double seconds)
{
	for (double end = l->now + seconds; l->now < end - 1e-9; l->now += 1 / 24.0) {
		double left, gap, t = l->now;
		size_t k, n = 0;

		while (l->first != l->last && l->reports[l->first % 64].at <= l->now) {
			k = l->first++ % 64;
			ctl_feedback(l->c, l->reports[k].at, l->reports[k].pkts, l->reports[k].n);
		}
		left = 0.97 * ctl_rate(l->c, l->now) / 24 / 8;
		ctl_sent(l->c, l->now, (size_t)left);
		gap = 1200 / left / 24;
		k = l->last++ % 64;
		for (; left > 0; left -= 1200, t += gap) {
			double size = fmin(1200, left), start = fmax(t, l->busy);
			bool ce = lane_marks(l, start, start - t);
			size_t quarter;

			l->busy = start + 8 * size / l->fair;
			l->marks += ce;
			l->reports[k].at = l->busy + 0.04;
			l->reports[k].pkts[n++] = (struct fb_packet){
				.seq = l->seq++,
				.sent = t,
				.recv = 1000 + floor((l->busy + 0.02) * 1024) / 1024,
				.size = (uint32_t)size,
				.received = true,
				.ect = !ce,
				.ce = ce,
			};
			quarter = (size_t)(4 * l->busy);
			if (quarter < sizeof(l->bytes) / sizeof(l->bytes[0]))
				l->bytes[quarter] += size;
		}
		l->reports[k].n = n;
	}
}

/* Of the fair rate, from 2 s after a change on: in all, and in the least quarter second. */
static double lane_share(const struct lane *l, double from, double to, double *least)
{
	double sum = 0;

	*least = INFINITY;
	for (size_t q = (size_t)(4 * from); q < (size_t)(4 * to); q++) {
		sum += l->bytes[q];
		*least = fmin(*least, 4 * 8 * l->bytes[q] / l->fair);
	}
	return 8 * sum / l->fair / (to - from);
}

static void test_marks(bool codel)
{
	static const double fair[] = {2.4e6, 1.2e6, 0.8e6, 1.2e6, 2.4e6, 0.6e6, 1.2e6};
	struct ctl_params p = params;
	static struct lane l;
	double least;

	p.packet = 1200;
	p.ecn = codel ? CTL_ECN_CLASSIC : CTL_ECN_SCALABLE;
	l = (struct lane){.c = ctl_new(&ctl_auto, &p, 0), .codel = codel, .seq = 1ULL << 32};
	for (size_t i = 0; i < sizeof(fair) / sizeof(fair[0]); i++) {
		double begin = 10.0 * (double)i, share;

		l.fair = fair[i];
		l.marks = 0;
		lane_run(&l, begin + 10 - l.now);
		share = lane_share(&l, begin + 2, begin + 9.5, &least);
		if (share < 0.9 || least < 0.7)
			printf("%s, %.1f Mbit/s: %.3f of it, least %.3f\n",
			       codel ? "classic" : "scalable", fair[i] / 1e6, share, least);
		TRUE("the fair rate by marks", share >= 0.9);
		TRUE("never far below", least >= 0.7);
		TRUE("there are marks", l.marks > 0);
		TRUE("the queue is gone", l.busy - l.now < 0.1);
	}
	SAME("good path", state(l.c, "ecn.path"), CTL_PATH_GOOD);
	ctl_free(l.c);
}

/* At 0.4 Mbit/s a packet of another flow takes 24 ms: who has his fair rate is marked for ever. */
static void test_marked_for_ever(void)
{
	struct ctl_params p = params;
	static struct lane l;
	double least;

	p.packet = 1200;
	p.ecn = CTL_ECN_SCALABLE;
	l = (struct lane){.c = ctl_new(&ctl_auto, &p, 0), .fair = 0.4e6, .seq = 1ULL << 32};
	lane_run(&l, 20);
	l.shared = true;
	lane_run(&l, 30);
	SAME("not stuck", state(l.c, "ecn.path"), CTL_PATH_GOOD);
	check(__LINE__, "share", lane_share(&l, 20, 50, &least), 0.9, 0.15);
	TRUE("never far below", least >= 0.7);
	ctl_free(l.c);
}

static bool marked_tenth(uint64_t seq)
{
	return seq % 10 == 0;
}

/* What the controllers of RFCs make of marks. */
static void test_marks_published(void)
{
	static struct path p;
	struct fb_report r;
	struct fb_packet three[3];
	static struct fb fb;
	double before;

	fb_init(&fb);
	for (int i = 0; i < 3; i++)
		three[i] = packet(100 + i, true);
	three[0].ect = three[2].ect = three[1].ce = true;
	TRUE("counted", fb_packets(&fb, 2, three, 3, &r) && r.ect == 2 && r.ce == 1);
	TRUE("once", !fb_packets(&fb, 2, three, 3, &r));

	/* without ECN marks are nobody's business */
	path_init(&p, &ctl_nada);
	p.marks = marked_tenth;
	path_run(&p, 12, true);
	SAME("not asked for", p.rate, 3e6);
	ctl_free(p.c);
	/* DMARK (0.1 / PMRREF)^2 is 200 ms, of which 100 count */
	path_init(&p, &ctl_nada);
	path_ecn(&p, CTL_ECN_CLASSIC, &ctl_nada);
	path_run(&p, 12, true);
	SAME("no marks", p.rate, 3e6);
	p.marks = marked_tenth;
	path_run(&p, 3, true);
	check(__LINE__, "p_mark", state(p.c, "nada.p_mark"), 0.1, 0.15);
	check(__LINE__, "penalty", state(p.c, "nada.x"), 0.1, 0.01);
	TRUE("lower", p.rate < 0.7 * 3e6);
	ctl_free(p.c);

	path_init(&p, &ctl_tfrc);
	path_ecn(&p, CTL_ECN_CLASSIC, &ctl_tfrc);
	path_run(&p, 1, true);
	SAME("no event", state(p.c, "tfrc.p"), 0);
	p.marks = marked_tenth;
	path_run(&p, 20, true);
	before = state(p.c, "tfrc.p");
	TRUE("marks are events", before > 0.01);
	TRUE("equation", p.rate < 2e6);
	ctl_free(p.c);
}

/* A path that does not treat ECN as it should. */
static void test_ecn_path(void)
{
	static struct path p;
	double before;

	path_init(&p, &ctl_auto);
	path_ecn(&p, CTL_ECN_CLASSIC, &ctl_auto);
	path_run(&p, 2, true);
	SAME("good", ctl_ecn_seen(p.c)->path, CTL_PATH_GOOD);
	TRUE("counted", ctl_ecn_seen(p.c)->ect > 100 && !ctl_ecn_seen(p.c)->ce);
	p.marks = all;
	before = p.rate;
	path_run(&p, 3, true);
	SAME("an overload", ctl_ecn_seen(p.c)->path, CTL_PATH_GOOD);
	TRUE("answered", p.rate < 0.5 * before);
	path_run(&p, 4, true);
	SAME("stuck", ctl_ecn_seen(p.c)->path, CTL_PATH_STUCK);
	path_run(&p, 30, true);
	SAME("marks count no more", p.rate, params.rate_max);
	ctl_free(p.c);

	path_init(&p, &ctl_auto);
	path_ecn(&p, CTL_ECN_SCALABLE, &ctl_auto);
	p.bleached = true;
	path_run(&p, 2, true);
	SAME("too soon", ctl_ecn_seen(p.c)->path, CTL_PATH_UNKNOWN);
	path_run(&p, 2, true);
	SAME("bleached", ctl_ecn_seen(p.c)->path, CTL_PATH_BLEACHED);
	ctl_free(p.c);

	/* advice in force: marks that last contradict it */
	path_init(&p, &ctl_auto);
	path_ecn(&p, CTL_ECN_CLASSIC, &ctl_auto);
	advise(&p, 2e6);
	path_run(&p, 2, true);
	p.marks = marked_tenth;
	path_run(&p, 0.5, true);
	SAME("a short while", ctl_rate(p.c, p.now), 2e6);
	path_run(&p, 1.5, true);
	SAME("doubt by marks", state(p.c, "auto.doubt"), 1);
	TRUE("below the advice", p.rate < 1.8e6);
	ctl_free(p.c);
}

/* The queue goes: it raised no doubt of the advice of 2.5 Mbit/s. Frees the path's controller. */
static void path_believes(struct path *p)
{
	p->delay = 0;
	path_run(p, 0.6, true);
	SAME("no doubt", state(p->c, "auto.doubt"), 0);
	SAME("followed", p->rate, 2.5e6);
	ctl_free(p->c);
}

/* Advice that was doubted once is tried again. */
static void test_trials(void)
{
	static struct path p;
	int waits = 0;

	/* the queue of a second in which all begin; then that of others, which never ends */
	path_init(&p, &ctl_auto);
	advise(&p, 2.5e6);
	path_run(&p, 1, true);
	p.delay = 0.3;
	path_run(&p, 1, true);
	SAME("doubt", state(p.c, "auto.doubt"), 1);
	p.delay = 0.012;
	path_run(&p, 4, true);
	TRUE("its own way", p.rate < 1.5e6);
	path_run(&p, 12, true);
	SAME("followed again", p.rate, 2.5e6);
	SAME("no doubt", state(p.c, "auto.doubt"), 0);
	ctl_free(p.c);

	/* the same queue, which is gone half a second and a round trip after the advice came */
	path_init(&p, &ctl_auto);
	path_run(&p, 0.2, true);
	p.delay = 0.3;
	path_run(&p, 0.6, true);
	advise_at(&p, p.now + 0.34, 2.5e6); /* when the last report came */
	path_run(&p, 0.7, true);
	path_believes(&p);

	/* a queue that shows after a while without reports, and is gone soon */
	path_init(&p, &ctl_auto);
	advise(&p, 2.5e6);
	path_run(&p, 0.2, true);
	p.delay = 0.3;
	path_run(&p, 0.4, false);
	path_run(&p, 0.3, true);
	path_believes(&p);

	/* a bottleneck that does not speak, of a third of what is advised */
	path_init(&p, &ctl_auto);
	advise(&p, 3e6);
	p.capacity = 1e6;
	path_run(&p, 5, true);
	for (int i = 0; i < 200; i++) {
		p.queue = 0;
		path_run(&p, 1, true);
		waits += p.queue > 0.1;
		TRUE("a trial ends soon", p.queue < 1);
	}
	TRUE("and is rare", waits <= 12);
	ctl_free(p.c);
}

/* Spec of the sender, section 9.4. */
static void test_advised(void)
{
	static const struct {
		uint64_t router;
		double value, kbps;
	} step[] = {
		{1, 0.8, 800}, {2, 0.6, 600}, {1, 50000, 600},	{2, 30000, 630},
		{1, 0.5, 425}, {2, 1.0, 425}, {1, 700000, 630}, {2, 0.02, 63},
	};
	const struct ctl_params p = {.rate_min = 10e3, .rate_max = 1e6, .packet = 1000};
	struct ctl *c = ctl_new(&ctl_ecf, &p, 0);
	uint32_t seq = 0;

	for (size_t i = 0; i < sizeof(step) / sizeof(step[0]); i++) {
		struct ctl_advice a = {1e6, step[i].value, step[i].router, ++seq};

		ctl_advise(c, 0, &a);
		ctl_advise(c, 0, &a);
		SAME("ecf", ctl_rate(c, 0), 1e3 * step[i].kbps);
	}
	ctl_advise(c, 0, &(struct ctl_advice){0});
	SAME("ecf: nobody left", ctl_rate(c, 0), 63e3);
	ctl_free(c);

	c = ctl_new(&ctl_erf, &p, 0);
	SAME("erf: start", ctl_rate(c, 0), 250e3);
	ctl_advise(c, 0, &(struct ctl_advice){450e3, 1, 1, 1});
	SAME("erf", ctl_rate(c, 0), 450e3);
	ctl_advise(c, 0, &(struct ctl_advice){0});
	SAME("erf: nobody left", ctl_rate(c, 0), 450e3);
	ctl_free(c);

	c = ctl_new(&ctl_fixed, &p, 0);
	SAME("fixed", ctl_rate(c, 0), 1e6);
	ctl_free(c);
	c = ctl_new(&ctl_gcc, &p, 0);
	ctl_estimate(c, 0, 600e3);
	ctl_estimate(c, 0, NAN);
	SAME("gcc", ctl_rate(c, 0), 600e3);
	ctl_free(c);
}

static double noise(void)
{
	static uint64_t r = 0x9E3779B97F4A7C15ULL;
	double sum = -6;

	for (int i = 0; i < 12; i++) {
		r ^= r << 13;
		r ^= r >> 7;
		r ^= r << 17;
		sum += (double)(r >> 11) / 9007199254740992.0;
	}
	return sum;
}

/*
 * Parking lot of the sender's specification, section 3.1: three links of 10 Mbit/s, two flows
 * over all of them, two over each alone. The routers' own law, unsynchronized periods of 0.5 s,
 * flows that send now more, now less than they may. With a state per router the long flows
 * get what the short ones get; with the smallest step applied to one rate they would starve.
 */
static void test_parking(double spread)
{
	enum { LINKS = 3, FLOWS = 8, STEP_MS = 100, PERIOD_MS = 500, SECONDS = 1500 };
	static const struct ctl_params p = {.rate_min = 10e3, .rate_max = 10e6, .packet = 1000};
	const struct paqm_outer_params gains = {.alpha_q24 = PAQM_Q24(75, 100),
						.beta_q24 = PAQM_Q24(35, 100),
						.md_min_q24 = PAQM_Q24(1, 10),
						.forced_md = 1};
	struct paqm_ecf_vars vars[LINKS] = {{0}};
	double queue[LINKS] = {0}, arrived[LINKS] = {0}, got[FLOWS] = {0}, mean_long, mean_short;
	struct ctl *c[FLOWS];
	uint32_t seq = 0;

	for (int f = 0; f < FLOWS; f++)
		c[f] = ctl_new(&ctl_ecf, &p, 0);
	for (int ms = 0; ms < 1000 * SECONDS; ms += STEP_MS) {
		double now = ms / 1000.0;

		for (int f = 0; f < FLOWS; f++) {
			double rate = ctl_rate(c[f], now) * fmax(0, 1 + spread * noise());

			for (int l = 0; l < LINKS; l++)
				if (f < 2 || (f - 2) / 2 == l)
					arrived[l] += rate * STEP_MS / 1000;
			if (ms > 300 * SECONDS)
				got[f] += rate;
		}
		for (int l = 0; l < LINKS; l++) {
			struct paqm_outer_in in = {9500000, 0, 0, 6000, 1000 * PERIOD_MS, 4};
			struct paqm_ecf_out out;
			float value;

			if ((ms + l * 200) % PERIOD_MS)
				continue;
			queue[l] = fmax(0, queue[l] + arrived[l] - 10e6 * PERIOD_MS / 1000);
			in.rate = (uint64_t)(arrived[l] * 1000 / PERIOD_MS);
			in.backlog = (uint32_t)(queue[l] / 8);
			arrived[l] = 0;
			out = paqm_ecf_step(&vars[l], &gains, &in);
			memcpy(&value, &out.value, sizeof(value));
			seq++;
			for (int f = 0; f < FLOWS; f++)
				if (f < 2 || (f - 2) / 2 == l)
					ctl_advise(c[f], now,
						   &(struct ctl_advice){1e6, (double)value,
									(uint64_t)l + 1, seq});
		}
	}
	mean_long = (got[0] + got[1]) / 2;
	mean_short = (got[2] + got[3] + got[4] + got[5] + got[6] + got[7]) / 6;
	TRUE("the long ones get as much", mean_long > 0.9 * mean_short);
	TRUE("and not more", mean_long < 1.05 * mean_short);
	for (int f = 0; f < FLOWS; f++)
		ctl_free(c[f]);
}

/* Whatever reports say: the rate stays within its limits, and it is a number. */
static void test_hostile(void)
{
	static struct fb_packet p[FB_REPORT + 9];
	unsigned int dice = 1;

	for (size_t k = 0; ctl_kinds[k / 3]; k++) {
		struct ctl_params ecn = params;
		struct ctl *c;
		double now = 0;

		ecn.ecn = (enum ctl_ecn)(k % 3);
		c = ctl_new(ctl_kinds[k / 3], &ecn, 0);
		for (int round = 0; round < 400; round++) {
			size_t n = (dice = dice * 1103515245 + 12345) >> 16;

			n %= round % 50 ? 40 : FB_REPORT + 9;
			for (size_t i = 0; i < n; i++) {
				static const double odd[] = {0, -1, 1e300, -1e300, 1e9, NAN};

				dice = dice * 1103515245 + 12345;
				p[i].seq = (1ULL << 32) + (dice >> 16) % 65536;
				p[i].received = dice & 0x10000;
				p[i].ce = dice & 0x80000;
				p[i].ect = dice & 0x100000;
				p[i].size = dice >> 8;
				p[i].sent = dice & 0x20000 ? now : odd[(dice >> 20) % 6];
				p[i].recv = dice & 0x40000 ? now : odd[(dice >> 21) % 6];
			}
			now += (dice >> 16) % 100 * 0.01;
			ctl_feedback(c, now, p, n);
			ctl_receiver_report(c, now, dice & 2 ? NAN : dice / 1e9 - 2,
					    dice & 1 ? NAN : 1e9);
			ctl_sent(c, now, dice);
			TRUE("a rate", ctl_rate(c, now) >= params.rate_min &&
					       ctl_rate(c, now) <= params.rate_max);
		}
		ctl_free(c);
	}
}

int main(void)
{
	test_equation();
	test_history();
	test_tfrc();
	test_feedback();
	test_tfrc_reports();
	test_nada();
	test_nada_queue();
	test_auto();
	test_marks(true);
	test_marks(false);
	test_marked_for_ever();
	test_marks_published();
	test_ecn_path();
	test_trials();
	test_advised();
	test_parking(0);
	test_parking(0.05);
	test_parking(0.15);
	test_parking(0.3);
	test_hostile();
	TRUE("the default", ctl_kinds[0] == &ctl_auto && ctl_find("tfrc") == &ctl_tfrc);
	TRUE("unknown", !ctl_find("none"));
	printf(failed ? "%d checks failed\n" : "control: all checks hold\n", failed);
	return failed != 0;
}
