// SPDX-License-Identifier: GPL-2.0
/* Always the highest rate: a sender that listens to nobody, for comparison. */
#include "streamer/control/control.h"

static void fixed_init(void *state, const struct ctl_params *p, double now)
{
	(void)state;
	(void)p;
	(void)now;
}

static double fixed_rate(const void *state, const struct ctl_params *p)
{
	(void)state;
	return p->rate_max;
}

const struct ctl_kind ctl_fixed = {
	.name = "fixed",
	.summary = "the highest rate, whatever happens",
	.init = fixed_init,
	.rate = fixed_rate,
};
