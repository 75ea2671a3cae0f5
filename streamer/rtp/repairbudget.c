// SPDX-License-Identifier: GPL-2.0
/* Who pays for repair; see repairbudget.h. */
#include "streamer/rtp/repairbudget.h"

#include <math.h>

void repair_begin(struct repair_budget *b, double percent, double rate)
{
	b->planned = percent / (100 + percent);
	b->owed = b->planned * rate / 8 * REPAIR_SPREAD;
}

double repair_left(const struct repair_budget *b, double rate)
{
	return fmax(rate - 8 * b->owed / REPAIR_SPREAD, REPAIR_LEAST * rate);
}

double repair_room(const struct repair_budget *b, double rate)
{
	return fmax((b->planned + REPAIR_SHARE) * rate / 8 * REPAIR_SPREAD - b->owed, 0);
}

void repair_spent(struct repair_budget *b, double rate, double bytes, double dt)
{
	double paid = (rate - repair_left(b, rate)) / 8 * dt;

	b->owed = fmax(b->owed - paid, 0) + bytes;
}
