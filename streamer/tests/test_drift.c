// SPDX-License-Identifier: GPL-2.0
/* Sound cards whose seconds are not the host's: their time stamps do not leave it. */
#include "streamer/call/drift.h"
#include "core/tests/check.h"

#define MS 1000000LL
#define PIECE (10 * MS)
#define HOUR (3600LL * 1000 * MS)
#define APART (20 * MS) /* that a card may seem to be early or late before that is believed */

static gint64 least, most; /* age of what came, by its corrected time stamp */

/*
 * @millionths that the card is fast; pieces come @way later, each up to @jitter more; a card that
 * is behind by @room jumps there, as GStreamer's sources do.
 */
static void run(int millionths, gint64 way, gint64 jitter, gint64 room, gint64 length)
{
	struct drift d = {0};
	gint64 jumped = 0;
	guint32 dice = 1;

	least = G_MAXINT64;
	most = G_MININT64;
	for (gint64 n = 1; n * PIECE < length; n++) {
		gint64 real = n * PIECE - n * PIECE / 1000000 * millionths, now = real + way, end;

		dice = dice * 1664525u + 1013904223u;
		if (jitter)
			now += (dice >> 8) % jitter;
		end = n * PIECE + jumped;
		if (real - end > room) {
			jumped += real - end;
			end = real;
		}
		end += drift_follow(&d, end, now);
		if (n < 2000) /* while the usual age is learnt */
			continue;
		least = MIN(least, real - end);
		most = MAX(most, real - end);
	}
}

TEST(card_is_fast)
{
	run(100, 0, 0, 200 * MS, HOUR);
	CHECK(least >= -APART - PIECE && most <= PIECE);
	run(100, 5 * MS, 30 * MS, 200 * MS, HOUR);
	CHECK(least >= -APART - PIECE && most <= APART);
}

TEST(card_is_slow)
{
	run(-100, 0, 0, 200 * MS, HOUR);
	CHECK(least >= -MS && most <= APART + PIECE);
	run(-1000, 0, 0, 200 * MS, HOUR);
	CHECK(least >= -MS && most <= APART + PIECE);
}

/* Time stamps that are the host's, of a card that is far away, are left alone. */
TEST(card_tells_its_delay)
{
	run(0, 60 * MS, 30 * MS, 200 * MS, HOUR / 10);
	same("ms earlier", least / MS, 0);
	same("ms later", most / MS, 0);
}

int main(void)
{
	return check_run();
}
