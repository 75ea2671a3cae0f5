// SPDX-License-Identifier: GPL-2.0
/* RAP: worked figures of its formulas, which are static, so its file is part of this one. */
#include "streamer/control/rap.c"
#include "streamer/tests/control_path.h"

TEST(test_rap_formulas)
{
	static const struct {
		double ipg, rtt, after;
	} steps[] = {
		{0.01, 0.04, 0.008},   {0.0008, 0.04, 0.00078431}, {0.04, 0.04, 0.02},
		{0.1, 0.2, 0.0666667}, {0.002, 0.1, 0.00196078},
	};
	static const double samples[] = {0.1, 0.12, 0.08};
	static const double half[] = {0.12, 0.172, 0.194}, usual[] = {0.12, 0.143, 0.15713};
	struct rap s = {0}, u = {0}, f = {0};

	for (size_t i = 0; i < ROWS(steps); i++)
		NEAR("gap after a step", rap_step(steps[i].ipg, steps[i].rtt), steps[i].after);
	for (size_t i = 0; i < ROWS(samples); i++) {
		rap_sample(&s, samples[i], 0.5);
		NEAR("timeout with gains of 1/2", rap_patience(&s), half[i]);
		rap_sample(&u, samples[i], 0);
		NEAR("timeout with 1/8 and 1/4", rap_patience(&u), usual[i]);
	}
	rap_sample(&f, 0.05, 0);
	rap_sample(&f, 0.05, 0);
	rap_sample(&f, 0.08, 0);
	NEAR("short-term round trip", f.fast, 0.077);
	NEAR("long-term round trip", f.slow, 0.0503);
	NEAR("fine grain", rap_grain(&f), 1.5308);
	s.ipg = 0.0008;
	rap_lower(&s, 1);
	SAME("twice the gap", s.ipg, 0.0016);
}

/* A packet per round trip at first; then one more each, which are 200 kbit/s in 40 ms. */
TEST(test_rap)
{
	static struct path p;
	double before;

	path_init(&p, &ctl_rap);
	SAME("nothing is known", 8000 / state(p.c, "rap.ipg"), 4000);
	path_run(&p, 0.04, true);
	SAME("a packet per round trip", state(p.c, "rap.ipg"), state(p.c, "rap.rtt"));
	path_run(&p, 0.2, true);
	before = 8000 / state(p.c, "rap.ipg");
	path_run(&p, 0.4, true);
	/* 1000 bytes more per round trip, each round trip */
	WITHIN("linear", 8000 / state(p.c, "rap.ipg") - before,
	       0.4 * 8000 / pow(state(p.c, "rap.rtt"), 2), 0.15);
}
