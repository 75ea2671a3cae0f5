// SPDX-License-Identifier: GPL-2.0
/* When a call has room for sound only; see scarce.h. */
#include "streamer/call/scarce.h"

static gboolean change(struct scarce *s, gboolean paused)
{
	s->paused = paused;
	s->long_for = 0;
	return TRUE;
}

static gboolean pauses(struct scarce *s, double granted, double least)
{
	gboolean little = granted > 0 && granted < least;

	s->long_for = little ? s->long_for + 1 : 0;
	if (granted > 0 && !little) { /* the trial went well */
		s->tried = FALSE;
		s->untold = 0;
	}
	if (s->long_for < SCARCE_AFTER)
		return FALSE;
	if (s->tried)
		s->untold = MIN(2 * s->untold, SCARCE_UNTOLD_MAX);
	return change(s, TRUE);
}

static gboolean comes_back(struct scarce *s, double granted, double least)
{
	gboolean told = granted > 0;

	if (!s->untold)
		s->untold = SCARCE_UNTOLD;
	if (told != !s->tried) /* what was counted was the other kind of seconds */
		s->long_for = 0;
	s->tried = !told;
	s->long_for = !told || granted >= SCARCE_MORE * least ? s->long_for + 1 : 0;
	return s->long_for >= (told ? SCARCE_ENDS : s->untold) && change(s, FALSE);
}

gboolean scarce_second(struct scarce *s, double granted, double least)
{
	return s->paused ? comes_back(s, granted, least) : pauses(s, granted, least);
}
