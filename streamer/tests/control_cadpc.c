// SPDX-License-Identifier: GPL-2.0
/* CADPC: its worked figures, which are static, so its file is part of this one. */
#include "streamer/control/cadpc.c"
#include "streamer/tests/control_path.h"

TEST(test_cadpc_formulas)
{
	static const struct {
		double x, load, after;
	} steps[] = {
		{0.01, 0.01, 0.0149}, {0.01, 0.9, 0.01045}, {0.5, 0.5, 0.5},
		{0.2, 0.8, 0.2},      {0.1, 1.2, 0.085},
	};
	static const struct {
		int step;
		double a, b;
	} two[] = {{1, 0.01290, 0.43800},
		   {5, 0.03137, 0.48482},
		   {20, 0.25427, 0.39231},
		   {40, 0.33135, 0.33529}};
	static const struct {
		int flows;
		double each;
	} ends[] = {{1, 0.5}, {2, 0.3333}, {4, 0.2}, {10, 0.0909}};
	double a = 0.01, b = 0.4;

	for (size_t i = 0; i < ROWS(steps); i++)
		near("a step", cadpc_step(steps[i].x, steps[i].load, 0.5), steps[i].after, 1e-9);
	SAME("load of a link", ctl_load(150000, 0.16, 10e6), 0.75);
	for (int i = 1, row = 0; i <= 40; i++) {
		double load = a + b;

		a = cadpc_step(a, load, 0.5);
		b = cadpc_step(b, load, 0.5);
		if (i != two[row].step)
			continue;
		near("the smaller of two", a, two[row].a, 6e-6);
		near("the larger", b, two[row].b, 6e-6);
		row++;
	}
	for (size_t i = 0; i < ROWS(ends); i++) {
		double x = 0.001;

		for (int n = 0; n < 1000; n++)
			x = cadpc_step(x, ends[i].flows * x, 0.5);
		near("share of each", x, ends[i].each, 5e-5);
	}
}

/* Where no router tells counters it is TFRC; half of an empty link when one does. */
TEST(test_cadpc)
{
	static struct path p, q;
	struct ctl_advice a = {.capacity = 4e6};

	path_init(&p, &ctl_cadpc);
	path_init(&q, &ctl_tfrc);
	p.keeps = q.keeps = tenth;
	path_run(&p, 5, true);
	path_run(&q, 5, true);
	SAME("as TFRC", p.rate, q.rate);
	p.keeps = all;
	for (int i = 0; i < 200; i++) {
		a.load = p.rate / a.capacity;
		ctl_advise(p.c, p.now + 0.06, &a);
		path_run(&p, 0.08, true);
	}
	WITHIN("half of the link", p.rate, 2e6, 0.03);
	path_run(&p, 2, true);
	TRUE("less without counters", p.rate < 1e6);
	path_run(&p, 10, true);
	SAME("TFRC again", state(p.c, "cadpc.capacity"), 0);
	a.capacity = NAN;
	ctl_advise(p.c, p.now + 0.06, &a);
	SAME("no capacity", state(p.c, "cadpc.capacity"), 0);
}
