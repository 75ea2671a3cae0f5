// SPDX-License-Identifier: GPL-2.0
/* Who pays for repair, and how long a receiver waits: exact values and invariants. */
#include <math.h>
#include <stdio.h>

#include "streamer/recv/playout.h"
#include "streamer/rtp/repairbudget.h"

static int failed;

static void check(bool ok, const char *what, double got)
{
	if (ok)
		return;
	failed++;
	printf("FAIL %s: %g\n", what, got);
}

static void near(double got, double want, double by, const char *what)
{
	check(fabs(got - want) <= by, what, got);
}

/* A sender that always uses what is left; one of 40 packets is sent again for 10 s. */
static void test_budget(void)
{
	struct repair_budget b;
	double sent = 0, dt = 0.05, rate = 1e6, worst = 0;

	repair_begin(&b, 0, rate);
	near(repair_left(&b, rate), rate, 0, "nothing is owed at the start");
	near(repair_room(&b, rate), 0.25 * rate / 8 * REPAIR_SPREAD, 1e-9, "room");
	for (int k = 0; k < 200; k++) {
		double again = k % 2 ? 1200 : 0, left = repair_left(&b, rate);

		check(left <= rate && left >= rate / 2, "pictures", left);
		sent += left / 8 * dt + again;
		repair_spent(&b, rate, again, dt);
		if (sent - rate / 8 * dt * (k + 1) > worst)
			worst = sent - rate / 8 * dt * (k + 1);
	}
	check(worst <= 1200 * 3, "never far ahead of the rate, bytes", worst);
	near(sent, rate / 8 * 10, 1200 * 3, "all together keep to the rate, bytes");

	/* correction is planned for: from the first picture on */
	repair_begin(&b, 20, rate);
	near(repair_left(&b, rate), rate / 1.2, 1e-6, "share of pictures");
	for (int k = 0; k < 200; k++) {
		double left = repair_left(&b, rate);

		near(left, rate / 1.2, 1, "it stays");
		repair_spent(&b, rate, 0.2 * left / 8 * dt, dt);
	}
	near(repair_room(&b, rate), 0.25 * rate / 8 * REPAIR_SPREAD, 1, "room beside correction");

	/* whoever asks for more and more gets no more than the budget */
	repair_begin(&b, 0, rate);
	repair_spent(&b, rate, 1e9, dt);
	near(repair_left(&b, rate), rate / 2, 0, "pictures keep a half");
	near(repair_room(&b, rate), 0, 0, "no room");
	/* a rate that falls to nothing is no division by zero */
	check(repair_left(&b, 0) >= 0 && repair_room(&b, 0) >= 0, "rate 0", repair_left(&b, 0));
}

/* Pictures of 24 a second, two packets each, 30 ms apart; @late of the second one in between. */
static double play(struct playout *p, double from, double to, double late, uint32_t *ts)
{
	double wait = p->wait;

	for (int k = 0; from + k / 24.0 < to; k++) {
		double now = from + k / 24.0;

		playout_see(p, *ts, now);
		playout_see(p, *ts, now + 0.030 + (k % 24 == 12 ? late : 0));
		*ts += 3750;
		wait = playout_update(p, 0);
	}
	return wait;
}

static void test_playout(void)
{
	struct playout p;
	uint32_t ts = 0xffff0000; /* wraps on the way */

	playout_begin(&p, 90000, 0.060, 0.500, 0.200);
	near(play(&p, 100, 105, 0, &ts), 0.200, 0, "too early to tell");
	near(playout_update(&p, 0), 0.200, 0, "not yet");
	near(play(&p, 105, 115, 0, &ts), 0.060, 0, "down to the least");
	near(playout_excess(&p), 0.030, 1e-6, "the spread of a picture");
	near(play(&p, 115, 117, 0.100, &ts), 0.150, 1e-6, "up at once");
	near(play(&p, 117, 125, 0, &ts), 0.150, 1e-6, "remembered");
	near(play(&p, 125, 130, 0, &ts), 0.060, 1e-6, "and forgotten");
	near(play(&p, 130, 133, 3, &ts), 0.500, 0, "never above the most");
	near(playout_update(&p, 0.9), 0.500, 0, "whatever the reason");
	near(play(&p, 133, 150, 0, &ts), 0.060, 1e-6, "back");
	near(playout_update(&p, 0.120), 0.060, 1e-6, "another reason, once");
	near(playout_update(&p, 0.120), 0.120, 0, "another reason");

	/* another stream, or nonsense: begins anew, and stays in its bounds */
	ts += 0x40000000;
	play(&p, 150, 151, 0, &ts);
	near(playout_excess(&p), 0.030, 1e-6, "a jump is no delay");
	for (uint32_t k = 0; k < 100000; k++) {
		double wait;

		playout_see(&p, k * 2654435761U, 160 + k * 1e-4);
		wait = playout_update(&p, 0);
		check(wait >= 0.060 && wait <= 0.500, "bounds", wait);
	}
	/* all packets take longer, and the jitter buffer moves with them: once, not twice */
	playout_begin(&p, 90000, 0.060, 0.500, 0.060);
	play(&p, 170, 171, 0, &ts);
	playout_stamp(&p, ts, 171);
	near(playout_excess(&p), 0.030, 1e-6, "behind its stamp");
	near(play(&p, 171, 171.99, 0, &ts), 0.060, 0, "short path");
	playout_see(&p, ts, 172.280);
	near(playout_update(&p, 0), 0.060, 0, "later than any before");
	playout_stamp(&p, ts, 172.280);
	near(playout_update(&p, 0), 0.060, 0, "that moved the stamp");
	near(play(&p, 172.280, 180, 0, &ts), 0.060, 0, "long path");
	/* it moves back to early packets, but late ones stay possible */
	playout_stamp(&p, ts, 180.030 - 0.280);
	near(play(&p, 180.030 - 0.280, 181, 0, &ts), 0.330, 1e-6, "early and late");
	/* sender's clock 200 ppm fast: no growing delay */
	playout_begin(&p, 90018, 0.060, 0.500, 0.200);
	near(play(&p, 200, 400, 0, &ts), 0.060, 1e-6, "drift");
}

int main(void)
{
	test_budget();
	test_playout();
	if (!failed)
		printf("all is well\n");
	return failed != 0;
}
