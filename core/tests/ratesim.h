/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * A network of packets for closed loops of laws that compute one rate for all flows: links with a
 * queue and a law each, and flows that follow the least rate of their way, by windows as ACP is
 * published, or by pacing as media does (core/paqm_follow.h).
 *
 * Units: bytes, bytes per second, seconds. Control periods are as long as the mean of the round
 * trips that packets carry. Nothing is random.
 */
#ifndef PAQM_RATESIM_H
#define PAQM_RATESIM_H

#define SIM_LINKS 8	  /* that a flow crosses at most */
#define SIM_PACKET 1000.0 /* bytes */

struct sim_link;

/* The law of a link after a period of @period s and a mean round trip of @trip: sets @told. */
typedef void (*sim_law)(struct sim_link *link, double period, double trip);

struct sim_link {
	double rate;   /* bytes/s */
	double delay;  /* s, to the next node */
	double buffer; /* bytes */
	sim_law law;
	void *state;
	double told;			     /* what each flow may send, bytes/s */
	int congested;			     /* more than 0.95 of the link was used */
	double bytes, queued, trips, demand; /* of this period: for the law */
	unsigned long queued_n, trips_n;
	double served, waited, peak; /* since sim_mark(): bytes, their backlog, the most of it */
	unsigned long packets, drops;
	double free_at, begun, trip; /* private */
};

struct sim_flow {
	int links, way[SIM_LINKS];
	double before,
		after; /* s: to the first link; from behind the last one back to the sender */
	double start, stop;
	double demand; /* most that it can use, bytes/s */
	double size;   /* packets that it has to send */
	int paced;     /* sends at a rate, and hears of it each @every; else by a window */
	double every;
	const double *ladder; /* paced: rates of its layers, NULL: it uses any rate */
	int layers;
	int asks;	     /* its packets carry what it could use next */
	double window, rate; /* in force: packets, bytes/s */
	double got;	     /* bytes since sim_mark() */
	double base, trip, heard, came, carried, held; /* private */
	int alive, flight, layer, wins, congested, any, timer;
};

/* Make an empty network; forget the one before. */
void sim_begin(void);
/* Both stay where they are. Return: the new one. */
struct sim_link *sim_add_link(double mbit, double delay, double buffer, sim_law law, void *state);
struct sim_flow *sim_add_flow(double before, double after, double start);
void sim_via(struct sim_flow *flow, const struct sim_link *link);
/* Go on until this time. */
void sim_run(double until);
/* Results begin anew. */
void sim_mark(void);
/* Since sim_mark(): part of the link that was used; mean backlog that packets found, packets; what
 * a flow got, Mbit/s.
 */
double sim_use(const struct sim_link *link);
double sim_queue(const struct sim_link *link);
double sim_rate(const struct sim_flow *flow);

#endif /* PAQM_RATESIM_H */
