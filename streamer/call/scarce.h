/* SPDX-License-Identifier: GPL-2.0 */
/*
 * When a call has room for sound only. Routers grant less than the least rate of a picture: it
 * stands still, so as not to take from the sound. It comes back when they grant a third more for a
 * while, so it does not come and go with every grant. Pure functions.
 */
#ifndef PAQM_CALL_SCARCE_H
#define PAQM_CALL_SCARCE_H

#include <glib.h>

/*
 * Between two pictures meanwhile: routers forget the rate of a stream that is silent for half a
 * second (docs/protocol.md 4.2), and would not say when there is room again.
 */
#define SCARCE_STILL_S 0.34
#define SCARCE_AFTER 2 /* s of too little: then the picture pauses */
#define SCARCE_MORE 1.3
#define SCARCE_ENDS 5	     /* s of so much more: then it comes back, */
#define SCARCE_UNTOLD 10     /* or after so many without a word of any router, */
#define SCARCE_UNTOLD_MAX 80 /* twice as many each time that it did so too early */

struct scarce {
	gboolean paused;
	guint long_for; /* s for which the other state was due */
	guint untold;	/* s without a word after which the picture is tried; 0: SCARCE_UNTOLD */
	gboolean tried; /* nobody said that it may come back */
};

/**
 * scarce_second() - once a second
 * @granted: by routers, bit/s; 0: no router says anything
 * @least: rate of a picture, bit/s
 *
 * Return: has @paused changed?
 */
gboolean scarce_second(struct scarce *s, double granted, double least);

#endif /* PAQM_CALL_SCARCE_H */
