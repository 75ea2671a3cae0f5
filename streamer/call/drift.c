// SPDX-License-Identifier: GPL-2.0
/* A sound card's clock; see drift.h. */
#include "streamer/call/drift.h"

#define MS 1000000LL
#define WATCHED (5000 * MS)
#define APART (20 * MS) /* who cancels echoes has to begin anew after each step: few of them */

/*
 * Nothing is recorded in the future: then the card is ahead. That it is behind shows in the pieces
 * that came quickest, as any single one may have had to wait for the processor.
 */
gint64 drift_follow(struct drift *d, gint64 end, gint64 now)
{
	gint64 age = now - (end + d->shift);

	if (age < -APART) {
		d->shift += age;
		age = 0;
	}
	if (!d->since || age < d->least)
		d->least = age;
	if (!d->since)
		d->since = now;
	if (now - d->since < WATCHED)
		return d->shift;
	if (!d->begun)
		d->usual = d->least;
	else if (d->least > d->usual + APART)
		d->shift += d->least - d->usual;
	d->begun = TRUE;
	d->since = 0;
	return d->shift;
}
