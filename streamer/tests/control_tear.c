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

/* @came of @n packets from @seq on, in one report. */
static void report(struct tear *s, struct fb *fb, uint64_t seq, int n, const char *came)
{
	static const struct ctl_params p = {.rate_min = 1e3, .rate_max = 1e8, .packet = 1000};
	struct fb_packet pkts[16];
	struct fb_report r;

	for (int i = 0; i < n; i++)
		pkts[i] = (struct fb_packet){.seq = seq + (uint64_t)i,
					     .sent = 0.001 * (double)(seq + (uint64_t)i),
					     .recv = 5 + 0.001 * (double)(seq + (uint64_t)i),
					     .size = 1000,
					     .received = came[i] == '1'};
	TRUE("taken",
	     fb_packets(fb, 0.001 * (double)(seq + (uint64_t)n) + 0.04, pkts, (size_t)n, &r));
	tear_report(s, &p, &r);
}

/* While it is not known whether a packet is lost the window stands (spec section 6: GAP). */
TEST(test_tear_gap)
{
	static const struct ctl_params p = {.rate_min = 1e3, .rate_max = 1e8, .packet = 1000};
	static struct fb fb;
	struct tear s;

	fb_init(&fb);
	tear_init(&s, &p, 0);
	s.slow_end = 1;
	s.window = s.round = 10;
	report(&s, &fb, 1, 2, "11");
	SAME("two in order", s.window, 10.2);
	report(&s, &fb, 3, 3, "011");
	SAME("two after a hole", s.window, 10.2);
	report(&s, &fb, 3, 1, "1");
	SAME("it comes late", s.window, 10.3);
	report(&s, &fb, 6, 4, "1111");
	SAME("and all is in order again", s.window, 10.7);
	report(&s, &fb, 10, 3, "011");
	SAME("another hole", s.window, 10.7);
	report(&s, &fb, 13, 1, "1");
	SAME("half of it, without those after the hole", s.window, 5.35);
	TRUE("what is lost together is one event", s.known >= 14);
	report(&s, &fb, 14, 2, "01");
	WITHIN("a hole of the same event holds nothing up", s.window, 5.35 + 1 / 5.35, 1e-9);
}
