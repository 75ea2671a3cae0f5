// SPDX-License-Identifier: GPL-2.0
/* Wire bytes of the next picture: bound by delay, target by rate. */
#include "streamer/encoder/framebudget.h"

#include <math.h>

/* Share of the backlog repaid by each picture. */
#define REPAY 0.9
/* What pictures stayed short of their shares is made good by the next ones: so
 * much of it by each, of no more than so many shares.
 */
#define MAKE_GOOD 0.5
#define OWED_MAX 1.5
#define SAME 0.05   /* rates that differ less are one */
#define FORGET 0.05 /* by a picture that needs no more */
/* Gain and limits of the slow correction. */
#define TRIM_GAIN 0.06
#define TRIM_MAX 0.15
#define TRIM_MIN -0.05
/* A picture below this share of its interval is not worth coding: after a
 * steep fall the old backlog drains first.
 */
#define WORTH 0.5
#define TARGET_FLOOR 0.25

static double clampd(double v, double lo, double hi)
{
	return v < lo ? lo : v > hi ? hi : v;
}

struct budget budget_next(const struct budget_state *st, const struct budget_params *p, double rate)
{
	struct budget b = {.share = rate * p->interval / 8};

	b.bound = b.share + rate * p->delay / 8 - st->backlog;
	b.skip = b.bound < WORTH * b.share;
	b.target = b.share * (p->use + st->trim) + MAKE_GOOD * st->owed - REPAY * st->backlog;
	b.target = clampd(b.target, TARGET_FLOOR * b.share, fmax(b.bound, TARGET_FLOOR * b.share));
	return b;
}

/**
 * budget_sent() - account for a picture
 * @b: what budget_next() said about it
 * @limited: the picture stayed small because nothing finer was allowed, not
 *           because of a wrong prediction: nothing to learn from it
 */
void budget_sent(struct budget_state *st, const struct budget_params *p, const struct budget *b,
		 double wire, bool limited)
{
	double miss = p->use - wire / b->share;

	/* What is owed at one rate is not at another. */
	if (fabs(b->share - st->share) > SAME * st->share)
		st->owed = 0;
	st->share = b->share;
	if (limited && wire < b->share)
		st->owed *= 1 - FORGET;
	else
		st->owed = clampd(st->owed + b->share - wire, 0, OWED_MAX * b->share);
	st->backlog = fmax(0, st->backlog + wire - b->share);
	if (!limited || miss < 0)
		st->trim = clampd(st->trim + TRIM_GAIN * miss, TRIM_MIN, TRIM_MAX);
}
