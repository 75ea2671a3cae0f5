// SPDX-License-Identifier: GPL-2.0
/* ADIVIS: its worked figures; its parts are static, so its file is part of this one. */
#include "streamer/control/adivis.c"
#include "streamer/tests/control_path.h"

TEST(test_adivis_fuzzy)
{
	static const struct {
		double loss, marked, factor;
	} rows[] = {
		{0, 0, 1.02},	   {0, 0.02, 1.01},    {0, 0.04, 1},	       {0, 0.05, 0.9975},
		{0, 0.07, 0.9925}, {0, 0.1, 0.985},    {0, 0.25, 0.95},	       {0.01, 0, 1.0025},
		{0.02, 0, 0.985},  {0.05, 0, 0.95875}, {0.03, 0.05, 0.967708}, {0.1, 0.1, 0.694444},
		{0.15, 0, 0.85},   {0.2, 0.3, 0.5},    {1, 0, 0.85},
	};
	double mu[SETS];

	for (size_t i = 0; i < ROWS(rows); i++)
		near("factor", fuzzy(rows[i].loss, rows[i].marked), rows[i].factor, 1e-6);
	memberships(0.10, loss_sets, mu);
	near("medium loss", mu[2], 0.5556, 5e-5);
	near("high loss", mu[3], 0.4444, 5e-5);
	memberships(0.05, mark_sets, mu);
	near("few marks", mu[1], 0.8333, 5e-5);
	near("medium marks", mu[2], 0.1667, 5e-5);
	/* More loss or more marks never raise the rate. */
	for (int i = 0; i < 61; i++)
		for (int k = 0; k < 61; k++) {
			double l = i * 0.2 / 60, m = k * 0.25 / 60, a = fuzzy(l, m);

			TRUE("monotone", fuzzy(l + 0.2 / 60, m) <= a + 1e-12 &&
						 fuzzy(l, m + 0.25 / 60) <= a + 1e-12);
		}
}

TEST(test_adivis_layers)
{
	static const double later[] = {231e3, 230e3, 229e3, 256e3};
	static const int wanted[] = {4, 3, 3, 3};
	static const double fall[] = {350e3, 346e3, 345e3, 180e3, 60e3};
	static const int fallen[] = {5, 5, 4, 3, 0};
	struct layers s = {.now = 3, .wait = WAIT, .age = CALM};

	for (int i = 1; i <= 13; i++) {
		choose_layer(&s, 256e3, 1e6);
		SAME("one more at the tenth decision", s.now, i < 10 ? 3 : 4);
	}
	for (size_t i = 0; i < ROWS(later); i++) {
		choose_layer(&s, later[i], 1e6);
		SAME("given up below 0.9 of its rate", s.now, wanted[i]);
	}
	SAME("waits longer after a trial that failed", s.wait, 20);
	s = (struct layers){.now = 5, .wait = WAIT, .age = CALM};
	for (size_t i = 0; i < ROWS(fall); i++) {
		choose_layer(&s, fall[i], 1e6);
		SAME("several at once", s.now, fallen[i]);
	}
	SAME("no more than one layer is banked", choose_layer(&s, 900e3, 1e6), 96e3);
}

/* A report across the wrap of numbers: 16 expected, 15 here, 2 of them marked. */
TEST(test_adivis_report)
{
	static struct adivis s;
	static struct fb fb;
	struct fb_packet p[19];
	struct fb_report r;
	double option[CTL_OPTIONS] = {0.3};
	struct ctl_params q = params;

	q.option = option;
	q.ecn = CTL_ECN_CLASSIC;
	fb_init(&fb);
	p[0] = (struct fb_packet){65530, 0.9, 5.9, 1000, .received = true};
	TRUE("one before", fb_packets(&fb, 1, p, 1, &r));
	for (int i = 0; i < 16; i++) {
		p[i] = (struct fb_packet){fb_unwrap(&fb, (uint16_t)(65531 + i)), 1 + 0.01 * i,
					  6 + 0.01 * i, 1000, .received = i != 4};
		p[i].ce = i == 6 || i == 9;
	}
	TRUE("taken", fb_packets(&fb, 2, p, 16, &r));
	SAME("expected", r.expected, 16);
	adivis_init(&s, &q, 0);
	adivis_report(&s, &q, &r);
	SAME("loss", share(&s, LOSS_SPAN, false, 2), 0.0625);
	near("marks", share(&s, 0.3, true, 2), 2.0 / 15, 1e-9);
	TRUE("duplicates are no news", !fb_packets(&fb, 2.1, p, 3, &r));
	s.mark = INFINITY;
	s.n = 0;
	adivis_report(&s, &q, &r);
	SAME("what was punished is forgotten", s.n, 0);
}

/* 1.02 per 0.3 s doubles the rate in 10.5 s. */
TEST(test_adivis)
{
	static struct path p;
	double before;

	path_init(&p, &ctl_adivis);
	path_run(&p, 1, true);
	before = state(p.c, "adivis.target");
	path_run(&p, 10.5, true);
	WITHIN("twice", state(p.c, "adivis.target"), 2 * before, 0.03);
	p.keeps = tenth;
	path_run(&p, 3, true);
	TRUE("loss is answered", state(p.c, "adivis.factor") < 1);
	p.keeps = all;
	path_run(&p, 3, true);
	before = state(p.c, "adivis.target");
	path_run(&p, 5, false);
	TRUE("and so is silence", state(p.c, "adivis.target") <= fmax(before / 8, params.rate_min));
	path_run(&p, 2, true);
	TRUE("it comes back", state(p.c, "adivis.factor") > 1);
}
