// SPDX-License-Identifier: GPL-2.0
/*
 * The end-to-end controllers of the literature over a path: what each does with its rate, and what
 * all of them have to do when packets get lost in a row, come late, or nothing is heard.
 */
#include <math.h>
#include <string.h>

#include "streamer/tests/control_path.h"

/* In the order of no table: those with one answer per loss event. */
static const struct ctl_kind *const events[] = {&ctl_rap, &ctl_gaimd, &ctl_tear, &ctl_tcplike};
static const struct ctl_kind *const classic[] = {&ctl_rap,     &ctl_gaimd,   &ctl_tear,
						 &ctl_tcplike, &ctl_ldaplus, &ctl_naive};

static uint64_t gone_from, gone;

static bool but_ten(uint64_t seq)
{
	return seq < gone_from || seq >= gone_from + gone;
}

TEST(test_gaimd)
{
	static struct path p;
	double before;

	path_init(&p, &ctl_gaimd);
	path_run(&p, 6, true);
	SAME("to the top", p.rate, 3e6);
	/* Above the highest rate nothing is offered, so it does not grow on unseen. */
	TRUE("not far above", state(p.c, "gaimd.rate") < 3.5e6);
	before = state(p.c, "gaimd.rate");
	gone_from = p.seq;
	gone = 1;
	p.keeps = but_ten;
	path_run(&p, 0.08, true);
	SAME("an eighth less", state(p.c, "gaimd.rate"), 0.875 * before);
	path_run(&p, 1, true);
	TRUE("slow again", state(p.c, "gaimd.rate") > 0.9 * before);
}

TEST(test_gaimd_options)
{
	static const double reno[CTL_OPTIONS] = {1, 0.5};
	struct ctl_params p = params;
	static struct path path;
	double before;

	path_init(&path, &ctl_gaimd);
	ctl_free(path.c);
	p.option = reno;
	path.c = ctl_new(&ctl_gaimd, &p, 0);
	path_run(&path, 3, true);
	before = state(path.c, "gaimd.rate");
	gone_from = path.seq;
	gone = 1;
	path.keeps = but_ten;
	path_run(&path, 0.08, true);
	SAME("half", state(path.c, "gaimd.rate"), 0.5 * before);
}

/* Its rate is a whole number of steps; loss takes it to what arrived. */
TEST(test_naive)
{
	static const double slides[CTL_OPTIONS] = {28.8e3, 150e3, 5e3};
	struct ctl_params p = {.rate_min = 1e3, .rate_max = 1e6, .packet = 500, .option = slides};
	static struct path path;
	double least = INFINITY;

	path_init(&path, &ctl_naive);
	ctl_free(path.c);
	path.c = ctl_new(&ctl_naive, &p, 0);
	path.rate = ctl_rate(path.c, 0);
	SAME("start", path.rate, 28.8e3);
	path_run(&path, 30, true);
	SAME("24 steps to the top", path.rate, 148.8e3);
	SAME("target", state(path.c, "naive.target"), 150e3);
	path.keeps = tenth;
	for (int i = 0; i < 250; i++) {
		path_run(&path, 0.04, true);
		least = fmin(least, state(path.c, "naive.target"));
	}
	TRUE("what arrived, and steps from there", least < 145e3 && least > 100e3);
	path_run(&path, 12, false);
	SAME("silence", ctl_rate(path.c, path.now), 28.8e3);
}

TEST(test_tcplike)
{
	static struct path p;
	double before;

	path_init(&p, &ctl_tcplike);
	path_run(&p, 0.4, true);
	TRUE("slow start", state(p.c, "tcp-like.window") > 8);
	path_run(&p, 4, true);
	SAME("to the top", p.rate, 3e6);
	before = state(p.c, "tcp-like.window");
	gone_from = p.seq + 3;
	gone = 3;
	p.keeps = but_ten;
	path_run(&p, 0.04, true);
	TRUE("half", state(p.c, "tcp-like.window") < 0.52 * before &&
			     state(p.c, "tcp-like.window") >= 0.5 * before);
}

/* Ten packets in a row are one event, whatever the report that tells of them. */
TEST(test_classic_burst)
{
	static struct path p;

	for (size_t i = 0; i < ROWS(events); i++) {
		double before, least;
		char rate[32];

		snprintf(rate, sizeof(rate), "%s.rate", events[i]->name);
		path_init(&p, events[i]);
		path_run(&p, 6, true);
		before = state(p.c, rate);
		gone_from = p.seq;
		gone = 10;
		p.keeps = but_ten;
		least = before;
		for (int k = 0; k < 4; k++) {
			path_run(&p, 0.04, true);
			least = fmin(least, state(p.c, rate));
		}
		TRUE(events[i]->name, least < 0.99 * before || events[i] == &ctl_tear);
		TRUE(events[i]->name, least > 0.48 * before);
	}
}

/* Out of order by two is no loss; a report that comes twice says nothing. */
TEST(test_classic_order)
{
	static struct path p;
	static struct fb_packet swapped[FB_REPORT];

	for (size_t i = 0; i < ROWS(classic); i++) {
		char rate[32];
		double before;

		snprintf(rate, sizeof(rate), "%s.rate", classic[i]->name);
		path_init(&p, classic[i]);
		path_run(&p, 6, true);
		before = state(p.c, rate);
		path_run(&p, 0.04, false);
		memcpy(swapped, p.last, p.n_last * sizeof(p.last[0]));
		swapped[0] = p.last[2];
		swapped[2] = p.last[0];
		ctl_feedback(p.c, p.now + 0.04, swapped, p.n_last);
		ctl_feedback(p.c, p.now + 0.041, p.last, p.n_last);
		TRUE(classic[i]->name, state(p.c, rate) >= before);
	}
}

/* Five seconds without a report, and back without anybody's help. */
TEST(test_classic_silence)
{
	static const double second[CTL_OPTIONS] = {1, 0};
	static struct path p;

	for (size_t i = 0; i < ROWS(classic); i++) {
		const struct ctl_kind *kind = classic[i];
		struct ctl_params now = params;
		double before;

		/* That of RTCP's usual interval takes three of them. */
		now.option = kind == &ctl_ldaplus ? second : NULL;
		now.rate_min = 10e3;
		path_init(&p, kind);
		ctl_free(p.c);
		p.c = ctl_new(kind, &now, 0);
		p.rate = ctl_rate(p.c, 0);
		path_run(&p, 60, true);
		before = p.rate;
		TRUE(kind->name, before > 1e6);
		path_run(&p, kind == &ctl_ldaplus ? 8 : 5, false);
		TRUE(kind->name, p.rate <= before / 4);
		path_run(&p, 90, true);
		TRUE(kind->name, p.rate >= 0.9 * before);
	}
}

/* A peer with receiver reports alone: without loss up to the highest rate, and no further. */
TEST(test_classic_receiver_reports)
{
	static const struct ctl_kind *const kinds[] = {&ctl_rap, &ctl_gaimd, &ctl_tcplike,
						       &ctl_tear};

	for (size_t k = 0; k < ROWS(kinds); k++) {
		struct ctl *c = ctl_new(kinds[k], &params, 0);

		check(ctl_rate(c, 0) == params.rate_min, kinds[k]->name, ctl_rate(c, 0));
		for (int i = 0; i < 3000; i++) {
			ctl_sent(c, 0.02 * i, 1000);
			if (i % 25 == 0)
				ctl_receiver_report(c, 0.02 * i, 0, 0.02);
			ctl_rate(c, 0.02 * i);
		}
		check(ctl_rate(c, 60) == params.rate_max, kinds[k]->name, ctl_rate(c, 60));
		ctl_receiver_report(c, 60, 0.1, 0.02);
		check(ctl_rate(c, 60) < 0.9 * params.rate_max, kinds[k]->name, ctl_rate(c, 60));
		ctl_free(c);
	}
}

TEST(test_choose)
{
	double option[CTL_OPTIONS];
	char why[256];

	TRUE("plain", ctl_choose("gaimd", option, why, sizeof(why)) == &ctl_gaimd);
	SAME("initial", option[1], 0.875);
	TRUE("with options",
	     ctl_choose("gaimd:beta=0.5,alpha=1", option, why, sizeof(why)) == &ctl_gaimd);
	SAME("alpha", option[0], 1);
	SAME("beta", option[1], 0.5);
	TRUE("name with a sign", ctl_choose("lda+", option, why, sizeof(why)) == &ctl_ldaplus);
	for (const char *const *bad =
		     (const char *const[]){"", "gaim", "gaimdx", "gaimd:", "gaimd:x=1",
					   "gaimd:beta", "gaimd:beta=", "gaimd:beta=1",
					   "gaimd:beta=nan", "gaimd:beta=0.5x", "gaimd:beta=0.5,,",
					   "fixed:x=1", "gaimd:bet=0.5", NULL};
	     *bad; bad++) {
		why[0] = 0;
		TRUE(*bad, !ctl_choose(*bad, option, why, sizeof(why)) && why[0]);
	}
}
