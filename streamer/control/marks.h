/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The answer to ECN marks where routers mark what exceeds the fair rate, for the safety net of
 * auto: of a classic sender once per round to the presence of marks (RFC 3168), of a scalable one
 * to their share (RFC 9331). A bottleneck that marks may be probed soon: what was too much costs
 * a mark, and no packet.
 */
#ifndef PAQM_MARKS_H
#define PAQM_MARKS_H

#include "streamer/control/control.h"

struct marks {
	double seen;   /* last report that told of an ECN-capable packet */
	double marked; /* last report with a mark */
	double bad;    /* last sign of congestion that no mark came with */
	double since;  /* marks on what was sent before say nothing new */
	double n, ce;  /* packets of this round */
	double alpha;  /* smoothed share of them that is marked */
	double queued; /* since when there is a queue; 0: there is none */
	double fits;   /* what arrived while there was one, bit/s; 0: unknown */
	double eased;  /* when the last congestion ended */
};

void marks_begin(struct marks *m, double now);
/**
 * marks_rule() - take a report in
 * @queue: queueing delay, s
 *
 * Return: whether marks tell enough to set the rate by them.
 */
bool marks_rule(struct marks *m, const struct ctl_params *p, const struct fb_report *r,
		double queue);
/**
 * marks_rate() - after marks_rule() that returned true
 * @rate: of now
 * @waits: there is a queue
 *
 * Return: the new one.
 */
double marks_rate(struct marks *m, const struct ctl_params *p, const struct fb_report *r,
		  double rate, double queue, bool waits);
void marks_log(const struct marks *m, ctl_log_fn log, void *data);

#endif /* PAQM_MARKS_H */
