/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How much less than its rate an encoder of others is told, so that what it sends fits: pure
 * functions. It counts payload, not headers; some send more than they were told; all follow a fall
 * late.
 */
#ifndef PAQM_STREAMER_EXCESS_H
#define PAQM_STREAMER_EXCESS_H

/* How much of a picture's share of headers enters the mean. */
#define EXCESS_SHARE_GAIN 0.05
/* An encoder that keeps sending more than it was told is told less: so much of the excess
 * of each group, down to this share of the rate.
 */
#define EXCESS_GAIN 0.3
#define EXCESS_TRIM_MIN 0.6
/* After a rate below EXCESS_FALL of the one before they are told less by as much again, at least
 * EXCESS_FALL_MIN of the rate; each group returns half of what is missing.
 */
#define EXCESS_FALL 0.9
#define EXCESS_FALL_MIN 0.4

struct excess {
	double share; /* of the wire's bytes that the encoder's own are */
	double trim;  /* against excess */
	double fall;  /* less than 1 after a fall of the rate */
};

static inline struct excess excess_new(double share)
{
	return (struct excess){.share = share, .trim = 1, .fall = 1};
}

/* What the encoder is told of @rate. */
static inline double excess_less(const struct excess *e, double rate)
{
	return rate * e->share * e->trim * e->fall;
}

/* The rate changes from @before to @rate. */
static inline void excess_change(struct excess *e, double before, double rate)
{
	if (rate < EXCESS_FALL * before) {
		double fall = rate / before;

		e->fall = fall > EXCESS_FALL_MIN ? fall : EXCESS_FALL_MIN;
	}
}

/* A picture of @own bytes took @wire of the rate's bytes. */
static inline void excess_picture(struct excess *e, double own, double wire)
{
	e->share += EXCESS_SHARE_GAIN * (own / wire - e->share);
}

/* A group of pictures took @bits; the rate allowed @allowed, 0: unknown. */
static inline void excess_group(struct excess *e, double bits, double allowed)
{
	if (allowed > 0) {
		double over = bits / allowed - 1 < 1 ? bits / allowed - 1 : 1;
		double trim = e->trim * (1 - EXCESS_GAIN * over);

		e->trim = trim > 1 ? 1 : trim < EXCESS_TRIM_MIN ? EXCESS_TRIM_MIN : trim;
	}
	e->fall = (1 + e->fall) / 2;
}

#endif /* PAQM_STREAMER_EXCESS_H */
