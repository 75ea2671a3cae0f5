// SPDX-License-Identifier: GPL-2.0
/* Who pays for repair, and how long a receiver waits: exact values and invariants. */
#include "core/tests/check.h"
#include "streamer/recv/playout.h"
#include "streamer/rtp/repairbudget.h"

/* A sender that always uses what is left; one of 40 packets is sent again for 10 s. */
TEST(test_budget)
{
	struct repair_budget b;
	double sent = 0, dt = 0.05, rate = 1e6, worst = 0;

	repair_begin(&b, 0, rate);
	near("nothing is owed at the start", repair_left(&b, rate), rate, 0);
	near("room", repair_room(&b, rate), 0.25 * rate / 8 * REPAIR_SPREAD, 1e-9);
	for (int k = 0; k < 200; k++) {
		double again = k % 2 ? 1200 : 0, left = repair_left(&b, rate);

		check(left <= rate && left >= rate / 2, "pictures", left);
		sent += left / 8 * dt + again;
		repair_spent(&b, rate, again, dt);
		if (sent - rate / 8 * dt * (k + 1) > worst)
			worst = sent - rate / 8 * dt * (k + 1);
	}
	check(worst <= 1200 * 3, "never far ahead of the rate, bytes", worst);
	near("all together keep to the rate, bytes", sent, rate / 8 * 10, 1200 * 3);

	/* correction is planned for: from the first picture on */
	repair_begin(&b, 20, rate);
	near("share of pictures", repair_left(&b, rate), rate / 1.2, 1e-6);
	for (int k = 0; k < 200; k++) {
		double left = repair_left(&b, rate);

		near("it stays", left, rate / 1.2, 1);
		repair_spent(&b, rate, 0.2 * left / 8 * dt, dt);
	}
	near("room beside correction", repair_room(&b, rate), 0.25 * rate / 8 * REPAIR_SPREAD, 1);

	/* whoever asks for more and more gets no more than the budget */
	repair_begin(&b, 0, rate);
	repair_spent(&b, rate, 1e9, dt);
	near("pictures keep a half", repair_left(&b, rate), rate / 2, 0);
	near("no room", repair_room(&b, rate), 0, 0);
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

TEST(test_playout)
{
	struct playout p;
	uint32_t ts = 0xffff0000; /* wraps on the way */

	playout_begin(&p, 90000, 0.060, 0.500, 0.200);
	near("too early to tell", play(&p, 100, 105, 0, &ts), 0.200, 0);
	near("not yet", playout_update(&p, 0), 0.200, 0);
	near("down to the least", play(&p, 105, 115, 0, &ts), 0.060, 0);
	near("the spread of a picture", playout_excess(&p), 0.030, 1e-6);
	near("up at once", play(&p, 115, 117, 0.100, &ts), 0.150, 1e-6);
	near("remembered", play(&p, 117, 125, 0, &ts), 0.150, 1e-6);
	near("and forgotten", play(&p, 125, 130, 0, &ts), 0.060, 1e-6);
	near("never above the most", play(&p, 130, 133, 3, &ts), 0.500, 0);
	near("whatever the reason", playout_update(&p, 0.9), 0.500, 0);
	near("back", play(&p, 133, 150, 0, &ts), 0.060, 1e-6);
	near("another reason, once", playout_update(&p, 0.120), 0.060, 1e-6);
	near("another reason", playout_update(&p, 0.120), 0.120, 0);

	/* another stream, or nonsense: begins anew, and stays in its bounds */
	ts += 0x40000000;
	play(&p, 150, 151, 0, &ts);
	near("a jump is no delay", playout_excess(&p), 0.030, 1e-6);
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
	near("behind its stamp", playout_excess(&p), 0.030, 1e-6);
	near("short path", play(&p, 171, 171.99, 0, &ts), 0.060, 0);
	playout_see(&p, ts, 172.280);
	near("later than any before", playout_update(&p, 0), 0.060, 0);
	playout_stamp(&p, ts, 172.280);
	near("that moved the stamp", playout_update(&p, 0), 0.060, 0);
	near("long path", play(&p, 172.280, 180, 0, &ts), 0.060, 0);
	/* it moves back to early packets, but late ones stay possible */
	playout_stamp(&p, ts, 180.030 - 0.280);
	near("early and late", play(&p, 180.030 - 0.280, 181, 0, &ts), 0.330, 1e-6);
	/* sender's clock 200 ppm fast: no growing delay */
	playout_begin(&p, 90018, 0.060, 0.500, 0.200);
	near("drift", play(&p, 200, 400, 0, &ts), 0.060, 1e-6);
}

CHECK_MAIN
