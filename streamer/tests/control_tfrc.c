// SPDX-License-Identifier: GPL-2.0
/* TFRC: published vectors of its equation and history, reports, marks apart. */
#include "streamer/control/tfrc.h"
#include "streamer/tests/control_path.h"

TEST(test_equation)
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

	for (size_t i = 0; i < ROWS(v); i++)
		WITHIN("equation, kbit/s", 8e-3 * tfrc_equation(v[i].s, v[i].rtt, v[i].p),
		       v[i].kbps, 0.051 / v[i].kbps);
	for (size_t i = 0; i < ROWS(inverse); i++)
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

TEST(test_history)
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

TEST(test_tfrc)
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

static bool burst(uint64_t seq)
{
	return (seq & 0xffff) < 1000 || (seq & 0xffff) >= 1010;
}

TEST(test_tfrc_reports)
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

	/* Receiver reports only. */
	path_init(&p, &ctl_tfrc);
	for (int i = 0; i < 40; i++)
		ctl_receiver_report(p.c, i, 0, 0.04);
	SAME("no loss: all", ctl_rate(p.c, 40), params.rate_max);
	/* that a peer claims, or two clocks make of a negative one */
	ctl_receiver_report(p.c, 40, 0, 65535.99);
	SAME("no such round trip", ctl_rate(p.c, 40), params.rate_max);
	for (int i = 40; i < 80; i++)
		ctl_receiver_report(p.c, i, 0.05, 0.04);
	WITHIN("equation", ctl_rate(p.c, 80), 737.2e3, 0.02);
}

TEST(test_tfrc_buffer)
{
	double option[CTL_OPTIONS];
	char why[200];

	TRUE("as it is", ctl_choose("tfrc", option, why, sizeof(why)) == &ctl_tfrc);
	SAME("no send buffer", ctl_decay(&ctl_tfrc, option), 0);
	TRUE("as published", ctl_choose("tfrc:buffer=100", option, why, sizeof(why)) == &ctl_tfrc);
	SAME("packets", ctl_decay(&ctl_tfrc, option), 100);
}
