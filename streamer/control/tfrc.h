/* SPDX-License-Identifier: GPL-2.0 */
/*
 * TFRC (RFC 5348) with all of it at the sender: reports on packets take the
 * place of the receiver's loss history. The parts are visible for their tests.
 */
#ifndef PAQM_TFRC_H
#define PAQM_TFRC_H

#include <stdbool.h>
#include <stdint.h>

#define TFRC_INTERVALS 8
#define TFRC_RECV_SET 64

/* Loss intervals: [0] is open, [1] the newest closed one (RFC 5348 section 5.4). */
struct tfrc_history {
	double length[TFRC_INTERVALS + 1];
	double discount[TFRC_INTERVALS + 1];
	int closed;
	bool any;	    /* a loss event has happened */
	uint64_t first_seq; /* of the newest event */
	double first_sent;
};

struct tfrc {
	struct tfrc_history history;
	double s;   /* bytes of a usual packet */
	double rtt; /* NAN: none yet */
	double rtt_sqrt, rtt_last;
	double x;	/* allowed, bytes/s */
	double doubled; /* when slow start last doubled */
	double p;
	struct {
		double at, rate;
	} recv[TFRC_RECV_SET]; /* X_recv_set, bytes/s */
	int n_recv;
	int reports;
	double recv_max; /* largest X_recv so far */
	double spacing;	 /* usual time between reports */
	double timer;	 /* of no feedback */
	bool idle;	 /* nothing sent since it was set */
};

/* Bytes/s by the TCP equation, b = 1, t_RTO = 4 R (RFC 5348 section 3.1). */
double tfrc_equation(double s, double rtt, double p);
/* The loss event rate at which the equation gives x bytes/s. */
double tfrc_inverse(double s, double rtt, double x);
/* Mean loss interval, with or without discounting of old ones (section 5.5). */
double tfrc_mean(const struct tfrc_history *h, bool discounting);
/* A new loss event; @first: length of the made-up interval if it is the first one. */
void tfrc_event(struct tfrc_history *h, uint64_t seq, double sent, double first);

void tfrc_begin(struct tfrc *t, double s, double now);
/**
 * tfrc_update() - the sender's reaction to one report (RFC 5348 section 4.3)
 * @rtt: sample
 * @x_recv: bytes/s; NAN if the report does not say
 * @worse: a new loss event, or p has risen
 */
void tfrc_update(struct tfrc *t, double now, double rtt, double x_recv, double p, bool worse,
		 bool data_limited);
/* The no-feedback timer has run out (section 4.4). */
void tfrc_silence(struct tfrc *t, double now);
double tfrc_rto(const struct tfrc *t);
/* Bytes/s, with prevention of oscillation (section 4.5). */
double tfrc_now(const struct tfrc *t);

#endif /* PAQM_TFRC_H */
