/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How much later than planned the loudspeaker's sound is in the microphone's: by the correlation of
 * the two. Sound servers, cards and rooms add to the delay, and few of them tell. Pure: no
 * GStreamer.
 */
#ifndef PAQM_CALL_LAG_H
#define PAQM_CALL_LAG_H

#include <glib.h>

#define LAG_RATE 4000 /* samples a second that are compared */
#define LAG_LEAST_MS (-50)
#define LAG_MOST_MS 550

/* A sound as it is compared: the newest @room samples, by the time that they belong to. */
struct lag_track {
	float *past;
	guint64 end;  /* of what is known, in samples since time 0 */
	double sum;   /* of what will become the next one */
	guint summed; /* how many samples have */
	float last;
};

#define LAG_WINDOW (LAG_RATE * 4 / 5) /* samples that are compared: some syllables */
#define LAG_LEAST (LAG_LEAST_MS * LAG_RATE / 1000)
#define LAG_MOST (LAG_MOST_MS * LAG_RATE / 1000)

/* What is compared. */
struct lag_rows {
	float far[LAG_WINDOW + LAG_MOST - LAG_LEAST], near[LAG_WINDOW];
};

struct lag {
	struct lag_track far, near;
};

/* What has been found, and how often in a row. */
struct lag_found {
	gint ms, again;
};

void lag_init(struct lag *l);
void lag_clear(struct lag *l);
/**
 * lag_add() - what has been played or recorded
 * @ns: when the first sample was
 * @samples: 48,000 a second
 */
void lag_add(struct lag_track *t, guint64 ns, const gint16 *samples, gsize count);
/* The newest of both. FALSE: there is not enough, or one is silent. */
gboolean lag_take(const struct lag *l, struct lag_rows *rows);
/**
 * lag_find() - look whether the two are alike
 * Return: FALSE: nobody can tell, or it is not sure yet.
 */
gboolean lag_find(const struct lag_rows *rows, struct lag_found *found);

#endif /* PAQM_CALL_LAG_H */
