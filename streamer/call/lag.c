// SPDX-License-Identifier: GPL-2.0
/* How much later the loudspeaker is heard; see lag.h. */
#include "streamer/call/lag.h"

#include <string.h>

#define ROOM (8 * LAG_RATE) /* samples that are kept */
#define EVERY (48000 / LAG_RATE)
#define QUIET 20.0   /* mean amplitude: less is silence */
#define ALIKE 0.4    /* correlation; two voices have 0.2 at most */
#define TOLERANCE 12 /* ms: a period of a low voice */
#define TIMES 2

G_STATIC_ASSERT(LAG_WINDOW % 8 == 0);

void lag_init(struct lag *l)
{
	memset(l, 0, sizeof(*l));
	l->far.past = g_new0(float, ROOM);
	l->near.past = g_new0(float, ROOM);
}

void lag_clear(struct lag *l)
{
	g_clear_pointer(&l->far.past, g_free);
	g_clear_pointer(&l->near.past, g_free);
}

/* What is missing is silence; what was there before is overwritten by what is told now. */
static void go_to(struct lag_track *t, guint64 begin)
{
	if (begin > t->end + ROOM || begin + ROOM < t->end) {
		memset(t->past, 0, ROOM * sizeof(*t->past));
		t->end = begin;
	}
	while (t->end < begin)
		t->past[t->end++ % ROOM] = 0;
	t->end = begin;
	t->sum = 0;
	t->summed = 0;
}

void lag_add(struct lag_track *t, guint64 ns, const gint16 *samples, gsize count)
{
	guint64 begin = ns / (1000000000 / LAG_RATE);

	/* time stamps are rounded */
	if (begin > t->end + 1 || begin + 1 < t->end)
		go_to(t, begin);
	for (gsize i = 0; i < count; i++) {
		float mean;

		t->sum += samples[i];
		if (++t->summed < EVERY)
			continue;
		/* changes only: low tones have most of the power, and tell least about time */
		mean = (float)(t->sum / EVERY);
		t->past[t->end++ % ROOM] = mean - t->last;
		t->last = mean;
		t->sum = 0;
		t->summed = 0;
	}
}

/* @count samples from @begin on, in a row; FALSE: they are not all there, or silence. */
static gboolean take(const struct lag_track *t, gint64 begin, gsize count, float *row)
{
	double power = 0;

	if (begin < 0 || begin + (gint64)count > (gint64)t->end || begin + ROOM < (gint64)t->end)
		return FALSE;
	for (gsize i = 0; i < count; i++) {
		row[i] = t->past[((guint64)begin + i) % ROOM];
		power += (double)row[i] * row[i];
	}
	return power > QUIET * QUIET * (double)count;
}

/* Of LAG_WINDOW samples. */
static float product(const float *a, const float *b)
{
	float sums[8] = {0}, sum = 0;

	for (gsize i = 0; i < LAG_WINDOW; i += 8)
		for (gsize k = 0; k < 8; k++)
			sums[k] += a[i + k] * b[i + k];
	for (gsize k = 0; k < 8; k++)
		sum += sums[k];
	return sum;
}

gboolean lag_take(const struct lag *l, struct lag_rows *rows)
{
	/* the newest of which all that could be heard in it is known */
	gint64 end = MIN((gint64)l->near.end, (gint64)l->far.end + LAG_LEAST);

	return take(&l->near, end - LAG_WINDOW, LAG_WINDOW, rows->near) &&
	       take(&l->far, end - LAG_WINDOW - LAG_MOST, G_N_ELEMENTS(rows->far), rows->far);
}

gboolean lag_find(const struct lag_rows *rows, struct lag_found *found)
{
	double best = 0, mine = product(rows->near, rows->near), theirs = 0;
	gint at = 0, ms;

	for (int lag = LAG_LEAST; lag <= LAG_MOST; lag++) {
		const float *from = rows->far + LAG_MOST - lag;
		double sum = product(rows->near, from);

		/* of the same length, a sample earlier than the one before */
		if (lag == LAG_LEAST)
			theirs = product(from, from);
		else
			theirs += (double)from[0] * from[0] -
				  (double)from[LAG_WINDOW] * from[LAG_WINDOW];
		/* which way round a microphone is connected does not matter; nor what is silent */
		if (theirs < QUIET * QUIET * LAG_WINDOW || sum * sum <= best * mine * theirs)
			continue;
		best = sum * sum / (mine * theirs);
		at = lag;
	}
	if (best < ALIKE * ALIKE)
		return FALSE;
	ms = at * 1000 / LAG_RATE;
	found->again = ABS(ms - found->ms) <= TOLERANCE ? found->again + 1 : 1;
	found->ms = ms;
	return found->again >= TIMES;
}
