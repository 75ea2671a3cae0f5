/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * When a flow's queue stands: for a while it is served a little slower and drops nothing, so that
 * its delay grows steadily.
 *
 * A queue that an AQM holds has no slope, and then libwebrtc goes by losses alone, of which it
 * accepts 5 % and, over its rate, 75 to 100 kbit/s more (loss_based_bwe_v2: the instant upper
 * bound): a tenth at 1.6 Mbit/s. Senders of whole pictures, as today's browsers, see the delay once
 * in a picture and fit a line through 20 of these, 0.8 s at 24 pictures/s; so what lasts for a
 * tenth of a second is not seen. docs/design-notes.md has the measurements.
 */
#ifndef PAQM_RAMP_H
#define PAQM_RAMP_H

#include "paqm_bucket.h"

#define PAQM_RAMP_MS(ms) paqm_bucket_clock((ms)*1000000ULL)
#define PAQM_RAMP_AFTER PAQM_RAMP_MS(400)   /* a queue stands that was never empty for so long; */
#define PAQM_RAMP_EVERY PAQM_RAMP_MS(4000)  /* from then on, once in this time, */
#define PAQM_RAMP_TIMES 3		    /* so often at most, */
#define PAQM_RAMP_LASTS PAQM_RAMP_MS(1000)  /* it is served slower for so long, */
#define PAQM_RAMP_SHIFT 4		    /* by a 2^4th part, */
#define PAQM_RAMP_SPARES PAQM_RAMP_MS(1600) /* and spared for so long: an answer takes time */
#define PAQM_RAMP_MOST PAQM_RAMP_MS(120)    /* but not if a packet has waited for longer */

/*
 * Of a queue that is not empty since @age: time since the last ramp began; all ones: none did, or
 * some were in vain. Who has not answered these answers none, and an AQM that begins anew after
 * each finds out each time how much it has to drop: his queue would be as long as a ramp makes it.
 * @age wraps after 69 s, and three more are shown.
 */
static inline paqm_u32 paqm_ramp_phase(paqm_u32 age)
{
	paqm_u32 stood = age - PAQM_RAMP_AFTER; /* a large number before that */

	return stood < PAQM_RAMP_TIMES * PAQM_RAMP_EVERY ? stood % PAQM_RAMP_EVERY : ~0U;
}

/**
 * paqm_ramp_extra() - what is charged for a packet beyond its length
 * @age: for how long its queue has not been empty, in units of paqm_bucket_clock()
 * @len: bytes
 *
 * Return: bytes.
 */
static inline paqm_u32 paqm_ramp_extra(paqm_u32 age, paqm_u32 len)
{
	return paqm_ramp_phase(age) < PAQM_RAMP_LASTS ? len >> PAQM_RAMP_SHIFT : 0;
}

/**
 * paqm_ramp_spares() - should an AQM drop nothing now?
 * @age: for how long the queue has not been empty, in units of paqm_bucket_clock()
 * @waited: for how long its first packet has, in the same
 *
 * Return: whether it should not.
 */
static inline int paqm_ramp_spares(paqm_u32 age, paqm_u32 waited)
{
	return paqm_ramp_phase(age) < PAQM_RAMP_SPARES && waited < PAQM_RAMP_MOST;
}

#endif /* PAQM_RAMP_H */
