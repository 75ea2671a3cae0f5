// SPDX-License-Identifier: GPL-2.0
/*
 * Google congestion control by the GStreamer element rtpgccbwe (gst-plugins-rs,
 * plugin rsrtp), which sits before rtpbin, reads its reports and estimates. This
 * is only the adaptor: the estimate is the rate.
 */
#include "streamer/control/control.h"

struct gcc {
	double rate;
};

static void gcc_init(void *state, const struct ctl_params *p, double now)
{
	struct gcc *g = state;

	(void)now;
	g->rate = CTL_START_SHARE * p->rate_max;
}

static void gcc_estimate(void *state, const struct ctl_params *p, double now, double rate)
{
	struct gcc *g = state;

	(void)p;
	(void)now;
	g->rate = rate;
}

static double gcc_rate(const void *state, const struct ctl_params *p)
{
	(void)p;
	return ((const struct gcc *)state)->rate;
}

const struct ctl_kind ctl_gcc = {
	.name = "gcc",
	.summary = "Google congestion control, where rtpgccbwe is installed",
	.element = "rtpgccbwe",
	.size = sizeof(struct gcc),
	.init = gcc_init,
	.estimate = gcc_estimate,
	.rate = gcc_rate,
};
