/* SPDX-License-Identifier: GPL-2.0 */
/* NADA (RFC 8698) with all of it at the sender; also the safety net of auto. */
#ifndef PAQM_NADA_H
#define PAQM_NADA_H

#include "streamer/control/control.h"
#include "streamer/control/marks.h"

#define NADA_DELAYS 512
#define NADA_LOSSES 64

struct nada {
	double rate;	/* r_ref, bit/s */
	double x;	/* aggregate congestion signal, s */
	double queue;	/* queueing delay, s */
	double base[2]; /* smallest one-way delay of this and the last epoch */
	double epoch;	/* when this epoch began */
	double since;	/* what was sent before went another way */
	struct {
		double recv, delay;
	} delays[NADA_DELAYS];
	unsigned int n_delays;
	struct {
		double at;
		double expected, lost, marked;
	} log[NADA_LOSSES];
	unsigned int n_log;
	double p_loss, p_mark;
	bool net; /* of auto: marks have an answer of their own */
	struct marks marks;
	double since_loss; /* packets since the last one lost */
	double loss_gap;   /* usual packets between losses; 0: no loss yet */
	double congested;  /* last sign of it; -INFINITY: none */
	double ceiling;	   /* what arrived when congestion last began, bit/s */
	bool drained;	   /* the queue was gone in the last report */
	double updated;
	double raised; /* by receiver reports alone */
	double spacing;
	double sent;	   /* last time that something was */
	double unanswered; /* what was sent since then has not been reported on */
	double timer;
};

void nada_begin(struct nada *n, double rate);
/* This much is known to fit: go on from here, and feel the way above it. */
void nada_settle(struct nada *n, const struct ctl_params *p, double now, double rate);
void nada_report(struct nada *n, const struct ctl_params *p, const struct fb_report *r);
void nada_silence(struct nada *n, const struct ctl_params *p, double now);
void nada_sent(struct nada *n, double now);
void nada_moved(struct nada *n, double now);
void nada_log(const struct nada *n, ctl_log_fn log, void *data);

#endif /* PAQM_NADA_H */
