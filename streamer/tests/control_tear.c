// SPDX-License-Identifier: GPL-2.0
/* TEAR: worked figures of its formulas, which are static, so its file is part of this one. */
#include "streamer/control/tear.c"
#include "streamer/tests/control_path.h"

TEST(test_tear_formulas)
{
	static const double eight[] = {250, 300, 225, 275, 250, 250, 250, 250};
	static const double one[] = {300}, two[] = {500, 400};
	static const struct {
		const double *epoch;
		int n;
		double present, rate;
	} rows[] = {
		{eight, 8, 0, 2066.7},	  {eight, 8, 200, 2066.7}, {eight, 8, 400, 2338.7},
		{eight, 8, 1000, 4658.8}, {one, 1, 600, 4000},	   {two, 2, 100, 3600},
	};
	struct tear s = {.window = 10, .round = 10, .slow_end = 1};
	static const double windows[] = {10, 11, 12, 13}, trips[] = {0.1, 0.1, 0.11, 0.12};

	for (size_t i = 0; i < ROWS(rows); i++)
		WITHIN("rate of epochs, kbit/s",
		       8 * tear_rate_of(rows[i].epoch, rows[i].n, rows[i].present), rows[i].rate,
		       2e-5);
	for (int i = 0; i < 10; i++)
		tear_arrival(&s, false);
	SAME("a packet per window", s.window, 11);
	SAME("the round is over", s.now.n, 1);
	s.now = (struct tear_rounds){0};
	for (size_t i = 0; i < ROWS(windows); i++) {
		s.round = windows[i];
		s.rtt.mean = trips[i];
		tear_round(&s);
	}
	WITHIN("an epoch", tear_sample(&s.now), 106.9767, 1e-6);
}
