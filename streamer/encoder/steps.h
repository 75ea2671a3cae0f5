/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What an encoder gives up below its floor of quality, step by step: pictures first, then their
 * size, and again pictures where they do not fit at all. To climb back pictures must be finer than
 * the floor by more than the climb will cost: twice as many pictures cost 6 steps of the quantizer,
 * four times as many pixels some 9.
 */
#ifndef PAQM_STREAMER_STEPS_H
#define PAQM_STREAMER_STEPS_H

#include <stddef.h>

#include "streamer/encoder/h264config.h"

#define STEPS 5
#define QP_COARSEST 51
#define QP_NO_FIT 52 /* coarser than any: a picture that has to be simplified, or left out */

struct step {
	int every;  /* one in this many pictures is coded */
	int shrink; /* its sides divided by this, if that leaves enough of them */
	int finer;
};

extern const struct step steps[STEPS];

/* What sides are divided by at a step. */
int step_shrink(const struct h264_config *cfg, size_t step);
/* The next one of less, where pictures have that quantizer; @step: there is none. */
size_t step_below(const struct h264_config *cfg, size_t step, double qp);
/* The one that it is entered from. */
size_t step_above(const struct h264_config *cfg, size_t step);

#endif /* PAQM_STREAMER_STEPS_H */
