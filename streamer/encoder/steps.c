// SPDX-License-Identifier: GPL-2.0
/* What is given up below the floor of quality; see steps.h. */
#include "streamer/encoder/steps.h"

#define SIDE_MIN 96 /* no picture is made smaller than this, either way */
#define FEW 4	    /* one in so many only where others do not fit at all */

const struct step steps[STEPS] = {{1, 1, 0}, {2, 1, 10}, {2, 2, 14}, {2, 4, 14}, {FEW, 4, 14}};

int step_shrink(const struct h264_config *cfg, size_t step)
{
	int shrink = steps[step].shrink;

	while (shrink > 1 && (cfg->width / shrink < SIDE_MIN || cfg->height / shrink < SIDE_MIN))
		shrink /= 2;
	return shrink;
}

/* Pictures that are small already are not made smaller: then a step is none. */
static bool differ(const struct h264_config *cfg, size_t one, size_t other)
{
	return steps[one].every != steps[other].every ||
	       step_shrink(cfg, one) != step_shrink(cfg, other);
}

size_t step_below(const struct h264_config *cfg, size_t step, double qp)
{
	for (size_t next = step + 1; next < STEPS; next++)
		if (differ(cfg, next, step) && (steps[next].every < FEW || qp > QP_COARSEST))
			return next;
	return step;
}

size_t step_above(const struct h264_config *cfg, size_t step)
{
	size_t above = step ? step - 1 : 0;

	while (above && !differ(cfg, above, above - 1))
		above--;
	return above;
}
