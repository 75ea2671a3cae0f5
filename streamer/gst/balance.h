/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What encoders have made beside what the rate allowed, and what they are told for it: pure
 * functions. An encoder of others keeps to its rate in the mean, but not from picture to picture.
 * What it made too much waits in a pacer, and waits there for ever if nobody tells it less.
 */
#ifndef PAQM_BALANCE_H
#define PAQM_BALANCE_H

#include <stdbool.h>

/* What waits is made good within so many s, of slow pictures within two, but encoders keep this
 * part of the rate.
 */
#define BALANCE_DRAIN 0.25
#define BALANCE_MIN 0.5
/* What was left unused for so many s of the rate may be made up for: without it the mean of what is
 * sent stays below the rate by as much as pictures differ. The pacer holds so much more.
 */
#define BALANCE_CREDIT 0.012
/* Who keeps sending too much, or too little, is told less, or more, within so many s. */
#define BALANCE_SETTLE 3.0
#define BALANCE_TRIM_MIN 0.7
#define BALANCE_TRIM_MAX 1.1
#define BALANCE_INTERVAL (1 / 24.0) /* s between pictures, until it is measured */
#define BALANCE_INTERVAL_GAIN 0.1
#define BALANCE_GAP 1.0 /* s: a longer one is a pause, and counts no longer */
/* Pictures of several streams that end within this part of the interval count as one. */
#define BALANCE_TOGETHER 0.25
/* Who has less than this part of the rate to send is told the rate, and no more. */
#define BALANCE_USES 0.85
#define BALANCE_MEAN 0.05 /* how much of a picture enters the mean of what comes */

struct balance {
	double bits;	/* come beyond what the rate allowed until now; negative: left unused */
	double waits;	/* of these, when the next picture comes */
	double trim;	/* of the rate, against what is wrong in the mean */
	double last;	/* s */
	double picture; /* s: the end of the last one */
	double interval;
	double came; /* bits since then */
	double mean; /* bit/s */
	bool begun;
};

static inline struct balance balance_new(void)
{
	return (struct balance){.trim = 1, .interval = BALANCE_INTERVAL};
}

static inline double balance_between(double value, double least, double most)
{
	return value < least ? least : value > most ? most : value;
}

/* So many @bits have come at @now, in s; @rate has held since the last ones. */
static inline void balance_came(struct balance *b, double bits, double rate, double now)
{
	double least = -BALANCE_CREDIT * rate;

	if (b->begun && now > b->last)
		b->bits -= rate * (now - b->last);
	if (b->bits < least)
		b->bits = least;
	b->bits += bits;
	b->came += bits;
	b->last = now;
	b->begun = true;
}

/* s within which what waits is made good. */
static inline double balance_drain(const struct balance *b)
{
	return 2 * b->interval > BALANCE_DRAIN ? 2 * b->interval : BALANCE_DRAIN;
}

/* With them a picture has come to its end. */
static inline void balance_picture(struct balance *b, double rate)
{
	double credit = BALANCE_CREDIT * rate, wrong;
	double past = balance_between(b->last - b->picture, 0, BALANCE_GAP);

	if (b->picture <= 0 || past >= BALANCE_TOGETHER * b->interval) {
		if (b->picture > 0) {
			b->interval += BALANCE_INTERVAL_GAIN * (past - b->interval);
			b->mean += BALANCE_MEAN * (b->came / past - b->mean);
		}
		if (b->picture > 0 && rate > 0) {
			wrong = balance_between(b->waits, -credit, credit) / rate;
			b->trim -= wrong * past / (balance_drain(b) * BALANCE_SETTLE);
			b->trim = balance_between(b->trim, BALANCE_TRIM_MIN, BALANCE_TRIM_MAX);
		}
		b->came = 0;
		b->picture = b->last;
	}
	b->waits = b->bits - rate * b->interval;
	if (b->waits < -credit)
		b->waits = -credit;
}

/* What encoders are told of @rate. */
static inline double balance_tell(const struct balance *b, double rate)
{
	bool more = b->mean > BALANCE_USES * rate;
	double trim = more || b->trim < 1 ? b->trim : 1;
	double waits = more || b->waits > 0 ? b->waits : 0;
	double told = trim * rate - waits / balance_drain(b);

	return told > BALANCE_MIN * rate ? told : BALANCE_MIN * rate;
}

#endif /* PAQM_BALANCE_H */
