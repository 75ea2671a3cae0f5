// SPDX-License-Identifier: GPL-2.0
/* How much later the loudspeaker is heard: found, unknown, and time stamps that jump. */
#include "streamer/call/lag.h"

#define RATE 48000
#define PIECE (RATE / 100)
#define SECONDS 4

static guint32 dice;

static gint16 throw_dice(void)
{
	dice = dice * 1664525u + 1013904223u;
	return (gint16)(dice >> 16);
}

/* Syllables: noise below about 2 kHz whose loudness changes. */
static gint16 *voice(guint32 seed)
{
	gint16 *v = g_new(gint16, SECONDS * RATE);
	double low = 0, loud = 0;

	dice = seed;
	for (int i = 0; i < SECONDS * RATE; i++) {
		if (i % (RATE / 10) == 0)
			loud = 0.2 + (throw_dice() & 0xff) / 255.0;
		low += 0.2 * (throw_dice() - low);
		v[i] = (gint16)(low * loud * 0.5);
	}
	return v;
}

static void add(struct lag_track *t, const gint16 *samples, int from, int to)
{
	for (int i = from; i + PIECE <= to; i += PIECE)
		lag_add(t, (guint64)i * 1000000000 / RATE, samples + i, PIECE);
}

static gboolean find(const struct lag *l, struct lag_found *found)
{
	struct lag_rows rows;

	return lag_take(l, &rows) && lag_find(&rows, found);
}

static void test_found(void)
{
	static const int lags[] = {-30, 0, 37, 120, 301, 540};

	for (gsize k = 0; k < G_N_ELEMENTS(lags); k++) {
		g_autofree gint16 *far = voice(1), *person = voice(2);
		g_autofree gint16 *near = g_new0(gint16, SECONDS * RATE);
		int lag = lags[k] * (RATE / 1000);
		struct lag_found found = {0};
		struct lag l;

		for (int i = 0; i < SECONDS * RATE; i++)
			if (i >= lag && i - lag < SECONDS * RATE)
				/* upside down, and somebody speaks softly */
				near[i] = (gint16)(person[i] / 8 - far[i - lag] / 3);
		lag_init(&l);
		add(&l.far, far, 0, SECONDS * RATE);
		add(&l.near, near, 0, SECONDS * RATE / 2);
		g_assert_false(find(&l, &found)); /* once is not enough */
		add(&l.near, near, SECONDS * RATE / 2, SECONDS * RATE);
		g_assert_true(find(&l, &found));
		g_assert_cmpint(ABS(found.ms - lags[k]), <=, 2);
		lag_clear(&l);
	}
}

static void test_unknown(void)
{
	g_autofree gint16 *far = voice(1), *near = voice(2);
	g_autofree gint16 *silence = g_new0(gint16, SECONDS * RATE);
	const struct {
		const gint16 *far, *near;
	} pairs[] = {{far, near}, {silence, near}, {far, silence}, {silence, silence}};

	for (gsize k = 0; k < G_N_ELEMENTS(pairs); k++) {
		struct lag_found found = {.ms = 7};
		struct lag l;

		lag_init(&l);
		g_assert_false(find(&l, &found));
		for (int i = 0; i < SECONDS * RATE; i += RATE / 4) {
			add(&l.far, pairs[k].far, i, i + RATE / 4);
			add(&l.near, pairs[k].near, i, i + RATE / 4);
			g_assert_false(find(&l, &found));
		}
		g_assert_cmpint(found.ms, ==, 7);
		lag_clear(&l);
	}
}

/* Time that jumps, back too, and ends: nothing of it is written elsewhere, and then all is well. */
static void test_jumps(void)
{
	static const guint64 times[] = {
		0, 3600ULL * 1000000000, 1, G_MAXUINT64, G_MAXUINT64 - 1, 250000, 249999, 10000000};
	g_autofree gint16 *far = voice(1);
	struct lag_found found = {0};
	struct lag l;

	lag_init(&l);
	for (gsize k = 0; k < G_N_ELEMENTS(times); k++) {
		lag_add(&l.far, times[k], far, RATE);
		lag_add(&l.near, times[G_N_ELEMENTS(times) - 1 - k], far, k * 7);
		find(&l, &found);
	}
	add(&l.far, far, 0, SECONDS * RATE);
	for (int i = 0; i < SECONDS; i++) {
		add(&l.near, far, i * RATE, (i + 1) * RATE);
		find(&l, &found);
	}
	g_assert_cmpint(found.again, >=, 2);
	g_assert_cmpint(ABS(found.ms), <=, 2);
	lag_clear(&l);
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/lag/found", test_found);
	g_test_add_func("/lag/unknown", test_unknown);
	g_test_add_func("/lag/jumps", test_jumps);
	return g_test_run();
}
