// SPDX-License-Identifier: GPL-2.0
/* What encoders of others are told, so that what they make too much does not wait for ever. */
#include <math.h>

#include "core/tests/check.h"
#include "streamer/gst/balance.h"

#define FPS 24.0
#define RATE 1e6

/* An encoder that makes @over of what it is told; sizes of its pictures differ by up to @spread. */
struct encoder {
	double over, spread, fps, now, told, sent;
	unsigned int n;
	struct balance b;
};

static struct encoder begin(double over, double spread)
{
	return (struct encoder){over, spread, FPS, 5, RATE, 0, 0, balance_new()};
}

/* One picture, @times as large as it should be. */
static void picture(struct encoder *e, double rate, double times)
{
	static const double odd[] = {-1, 0.2, 0.9, -0.4, 0.6, -0.3};
	double size = e->told / e->fps * e->over * times * (1 + e->spread * odd[e->n++ % 6]);

	/* in three packets, at once */
	for (int i = 0; i < 3; i++)
		balance_came(&e->b, size / 3, rate, e->now);
	balance_picture(&e->b, rate);
	e->told = balance_tell(&e->b, rate);
	e->sent += size;
	e->now += 1 / e->fps;
}

static double run(struct encoder *e, double seconds)
{
	double before = e->sent;

	for (int i = 0; i < seconds * e->fps; i++)
		picture(e, RATE, 1);
	return (e->sent - before) / seconds;
}

/* Whatever they make of what they are told, in the mean they send what is allowed. */
TEST(test_mean)
{
	for (double over = 0.92; over < 1.3; over += 0.02)
		for (double spread = 0; spread < 0.7; spread += 0.3) {
			struct encoder e = begin(over, spread);

			run(&e, 10);
			/* a credit makes up for so much of a difference */
			near("mean", run(&e, 10) / RATE, 1, spread > 0.5 ? 0.07 : 0.015);
			check(e.b.waits < 0.1 * RATE, "waits less than 100 ms", (int)(100 * over));
		}
}

/* However many pictures a second there are: a shared screen has few. */
TEST(test_pace)
{
	static const double fps[] = {1.5, 5, 12, 30, 60};

	for (unsigned int i = 0; i < ROWS(fps); i++) {
		struct encoder e = begin(1.05, 0.2);

		e.fps = fps[i];
		run(&e, 40);
		near("mean", run(&e, 20) / RATE, 1, 0.05);
		near("told", e.told / RATE, 1 / 1.05, 0.15);
	}
}

/*
 * Two cameras in one transport, each with its part of what is told, the second one's pictures
 * @apart (of an interval) behind the first one's: in the mean they send what is allowed.
 */
TEST(test_two)
{
	static const double apart[] = {0, 0.002, 0.1, 0.25, 0.5, 0.9}, part[] = {0.5, 0.1, 0.8};

	for (unsigned int i = 0; i < ROWS(apart) * ROWS(part); i++) {
		double first = part[i / ROWS(apart)], behind = apart[i % ROWS(apart)] / FPS;
		double told = RATE, now = 5, sent = 0, size;
		struct balance b = balance_new();

		for (int n = 0; n < 40 * FPS; n++) {
			for (int second = 0; second < 2; second++) {
				size = told / FPS * 1.05 * (second ? 1 - first : first);
				balance_came(&b, size, RATE, now + (second ? behind : 0));
				balance_picture(&b, RATE);
				told = balance_tell(&b, RATE);
				sent += n < 20 * FPS ? 0 : size;
			}
			now += 1 / FPS;
		}
		near("mean", sent / 20 / RATE, 1, 0.03);
		check(b.waits < 0.1 * RATE, "waits less than 100 ms", (int)i);
	}
}

/* A coding that marks no pictures, such as MPEG-TS: each of its packets counts as one. */
TEST(test_unmarked)
{
	double told = RATE, sent = 0, gap = 1e4 / RATE;
	struct balance b = balance_new();

	for (int n = 0; n < 60 / gap; n++) {
		double size = told * gap * 1.1;

		balance_came(&b, size, RATE, 5 + n * gap);
		balance_picture(&b, RATE);
		told = balance_tell(&b, RATE);
		sent += n < 40 / gap ? 0 : size;
	}
	near("mean", sent / 20 / RATE, 1, 0.02);
	check(b.waits < 0.1 * RATE, "waits less than 100 ms", (int)b.waits);
}

/* The same sizes, told the rate as it is, are what it is for: they wait, and go on waiting. */
TEST(test_without)
{
	struct encoder e = begin(1.02, 0.6);

	for (int i = 0; i < 20 * FPS; i++) {
		picture(&e, RATE, 1);
		e.told = RATE;
	}
	check(e.b.waits > 0.35 * RATE, "20 s of 2 % too much", (int)e.b.waits);
}

/* A picture of a third of a second: half of the rate until it has left, which takes less than one.
 */
TEST(test_cut)
{
	struct encoder e = begin(1, 0);
	double worst = 0;

	run(&e, 5);
	picture(&e, RATE, 8);
	near("told", e.told, BALANCE_MIN * RATE, 1);
	for (int i = 0; i < FPS; i++) {
		worst = fmax(worst, e.b.waits);
		picture(&e, RATE, 1);
	}
	check(worst < 0.32 * RATE, "nothing comes on top", (int)worst);
	check(e.b.waits < 0.02 * RATE, "gone within a second", (int)e.b.waits);
	/* it was no habit */
	check(e.b.trim > 0.97, "trim", (int)(1000 * e.b.trim));
}

/* What waits when the rate falls waits longer, and is told at once. */
TEST(test_fall)
{
	struct encoder e = begin(1, 0);
	double least = RATE;
	int pictures;

	run(&e, 5);
	picture(&e, RATE, 3);
	check(balance_tell(&e.b, 0.4 * RATE) < 0.25 * RATE, "at once",
	      (int)balance_tell(&e.b, 0.4 * RATE));
	for (pictures = 0; e.b.waits > 0.01 * RATE && pictures < 100; pictures++) {
		picture(&e, 0.4 * RATE, 1);
		least = fmin(least, e.told);
	}
	check(pictures < FPS, "drained within a second", pictures);
	near("never less than half", least, 0.5 * 0.4 * RATE, 1);
}

/* Who has little to send is told the rate and no more, and saves up no more than a credit. */
TEST(test_idle)
{
	struct encoder e = begin(0.1, 0);

	run(&e, 60);
	near("told", e.told, RATE, 0);
	near("unused", e.b.waits, -BALANCE_CREDIT * RATE, 1);
	/* after a pause of a minute, too */
	e.now += 60;
	balance_came(&e.b, 0, RATE, e.now);
	near("after a pause", e.b.bits, -BALANCE_CREDIT * RATE, 1);
	check(e.b.trim <= BALANCE_TRIM_MAX, "trim", (int)(1000 * e.b.trim));
}

/* Clocks that stand or go back, rates of nothing, pictures without end: numbers stay numbers. */
TEST(test_odd)
{
	struct balance b = balance_new();

	near("nothing yet", balance_tell(&b, RATE), RATE, 0);
	balance_picture(&b, RATE);
	balance_came(&b, 1000, 0, 5);
	balance_picture(&b, 0);
	near("no rate", balance_tell(&b, 0), 0, 0);
	balance_came(&b, 1000, RATE, 3);
	balance_came(&b, 1000, RATE, 3);
	balance_picture(&b, RATE);
	check(isfinite(balance_tell(&b, RATE)), "finite", 0);
	for (int i = 0; i < 1000; i++) {
		balance_came(&b, 1e12, RATE, 3);
		balance_picture(&b, RATE);
	}
	near("never less than half", balance_tell(&b, RATE), BALANCE_MIN * RATE, 0);
	check(b.trim >= BALANCE_TRIM_MIN, "trim", (int)(1000 * b.trim));
	check(isfinite(b.mean), "a mean", 0);
}

CHECK_MAIN
