/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Sound cards count their own seconds: 30 to 100 millionths more or less than the host's. Time
 * stamps by their count would leave the picture's by 360 ms an hour. GStreamer's sources follow the
 * host's clock only once a card is behind by all of its buffer, and never one that is ahead. Pure:
 * no GStreamer.
 */
#ifndef PAQM_CALL_DRIFT_H
#define PAQM_CALL_DRIFT_H

#include <glib.h>

/* All times in ns. */
struct drift {
	gint64 shift; /* of the time stamps */
	gint64 since; /* begin of what is being watched; 0: nothing yet */
	gint64 least; /* age of the youngest that came in that time */
	gint64 usual; /* likewise, in the beginning: the way from the card to here */
	gboolean begun;
};

/**
 * drift_follow() - a piece has come from a card
 * @end: time stamp of its end, by the card's count
 * @now: the host's clock
 * Return: by how much its time stamp has to be moved.
 */
gint64 drift_follow(struct drift *d, gint64 end, gint64 now);

#endif /* PAQM_CALL_DRIFT_H */
