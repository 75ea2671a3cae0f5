// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The first published feedback: routers report u, the part of the arrivals that their inner loop
 * lets pass, every 40 ms, and sources multiply their rate by it (A. Lie's thesis, Paper B). No
 * queue or sender speaks this law, which ECF replaced; here packets, queues and sources are
 * simulated, and the inner law is that of core/.
 *
 * reports_of_u CASE SEED, CASE one of the table below. Prints JSON.
 *
 * A path: Term0 - Host0 - R1 - R2 - R3 - Host4, five queues in a row. A cloud joins at each router
 * and leaves behind it. Queues serve one packet of 1500 bytes after the other; wires take no time.
 */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../paqm_law.h"

#define NODES 5
#define SOURCES 4  /* Term0, then the clouds of R1, R2, R3 */
#define BITS 12000 /* of a packet */
#define ROOM 200   /* packets: the longest queue */
#define TICK 1e-3  /* s, dT */
#define REPORT 40  /* dT */
#define SAMPLES 20 /* of u in a report */
#define SECONDS 4.0
#define SETTLED 1.0 /* s: use, drops and waits are counted from here on */
#define LATE 6e-3   /* s, of a queue; printed: almost none */
#define UP 16e6	    /* bit/s, step of an increase */

/* Kinds of the reports: what a source does at u (Paper B). */
#define HOLD_FROM 0.99
#define HOLD_TO 1.02
#define RESET_FROM 10
#define DOWN 0.95
#define NEARER 1.25 /* a nearer router counts, if its u is at most so many times the least */

struct node {
	double speed;	  /* bit/s */
	int room, target; /* packets */
	int first;	  /* packet in service, in @packet */
	int queued;
	struct {
		double came;
		int source;
	} packet[ROOM];
	double done; /* of the packet in service */
	struct paqm_inner_params p;
	struct paqm_inner_vars v;
	uint64_t arrived; /* bytes in this dT */
	double u, mean;	  /* raw, exponential mean */
	uint64_t sent, dropped, late, of_term0;
	double waited;
};

struct source {
	bool poisson;
	double most, rate, next;
	int enters;
	uint64_t sent, dropped, came;
};

struct path {
	struct node node[NODES];
	struct source source[SOURCES];
	double now, reached, whole; /* s: 90 % and 100 % of the share */
	int periods;		    /* of B2: until within 5 % */
	unsigned short random[3];
};

static const struct kase {
	const char *name;
	double term0, host; /* bit/s: what Term0 wants, links of the hosts */
	bool term0_poisson, cloud_poisson, one;
} cases[] = {
	{"B2-cbr", 1.5e9, 1e9, false, false, true},  {"B2-poisson", 1.5e9, 1e9, true, false, true},
	{"B3-1a", 1.5e9, 1e9, true, true, false},    {"B3-1b", 1.5e9, 1e9, true, false, false},
	{"B3-1c", 1.5e9, 1e9, false, false, false},  {"B3-2a", 120e6, 32e6, true, true, false},
	{"B3-2b", 120e6, 32e6, false, true, false},  {"B3-2c", 120e6, 32e6, true, false, false},
	{"B3-2d", 120e6, 32e6, false, false, false}, {NULL, 0, 0, false, false, false},
};

static void node_init(struct node *n, double speed, int room, int target)
{
	double bytes = speed * TICK / 8;

	*n = (struct node){.speed = speed,
			   .room = room,
			   .target = target,
			   .done = INFINITY,
			   .u = 1,
			   .mean = 1};
	n->p = (struct paqm_inner_params){
		.cap_q24 = (paqm_u64)(bytes * PAQM_Q24_ONE),
		.target = (paqm_u32)target * BITS / 8,
		.gain_q24 = PAQM_Q24(2, 10),
		/* with few packets in a dT a longer mean (the specification, 3.5) */
		.gamma_q24 = bytes * 8 >= 50 * BITS
				     ? PAQM_Q24_ONE / 2
				     : (paqm_u32)(fmax(1.0 / 64, bytes * 8 / (100 * BITS)) *
						  PAQM_Q24_ONE),
	};
}

static void schedule(struct path *w, struct source *s)
{
	double gap = BITS / s->rate;

	s->next = w->now + (s->poisson ? -log(1 - erand48(w->random)) * gap : gap);
}

static void enter(struct path *w, int at, int source)
{
	struct node *n = &w->node[at];

	n->arrived += BITS / 8;
	if (erand48(w->random) * 4294967296.0 < n->v.prob || n->queued == n->room) {
		n->dropped++;
		w->source[source].dropped += !!at; /* printed apart: what the own host drops */
		return;
	}
	n->packet[(n->first + n->queued) % ROOM].came = w->now;
	n->packet[(n->first + n->queued) % ROOM].source = source;
	if (!n->queued++)
		n->done = w->now + BITS / n->speed;
}

static void leave(struct path *w, int at)
{
	struct node *n = &w->node[at];
	int source = n->packet[n->first].source;
	double waited = w->now - n->packet[n->first].came;

	n->sent++;
	n->waited += waited;
	n->late += waited > LATE;
	n->of_term0 += !source;
	n->first = (n->first + 1) % ROOM;
	n->done = --n->queued ? w->now + BITS / n->speed : INFINITY;
	if (!source && at + 1 < NODES)
		enter(w, at + 1, source);
	else
		w->source[source].came++;
}

/* The raw u of Paper B's law in the form of core/, not limited to 1. */
static void tick(struct node *n)
{
	double rate;

	paqm_inner_step(&n->v, &n->p, n->arrived, (paqm_u32)n->queued * BITS / 8);
	n->arrived = 0;
	rate = (double)n->v.rate_q24 / PAQM_Q24_ONE;
	n->u = rate > 0 ? ((double)n->p.cap_q24 / PAQM_Q24_ONE +
			   0.2 * (n->target - n->queued) * BITS / 8) /
				  rate
			: RESET_FROM;
	n->mean += (n->u - n->mean) * 2 / (SAMPLES + 1);
}

static void hear(struct path *w, struct source *s, int first, int last)
{
	double least = INFINITY, u = INFINITY, old = s->rate;
	int i;

	for (i = first; i <= last; i++)
		least = fmin(least, w->node[i].mean);
	for (i = first; i <= last && isinf(u); i++)
		if (w->node[i].mean <= NEARER * least)
			u = w->node[i].mean;
	if (u < HOLD_FROM)
		s->rate *= u * DOWN;
	else if (u >= RESET_FROM)
		s->rate = s->most;
	else if (u > HOLD_TO)
		s->rate += UP;
	s->rate = fmin(s->rate, s->most);
	/* what is left of the gap stretches with it */
	s->next = w->now + (s->next - w->now) * old / s->rate;
}

static void run(struct path *w, bool one)
{
	double tick_at = TICK, share = one ? 1e9 : fmin(500e6, w->node[0].speed);
	bool counted = false;
	int ticks = 0, i;

	w->reached = w->whole = -1;
	w->periods = -1;
	while (w->now < SECONDS) {
		if (w->now >= SETTLED && !counted) {
			counted = true;
			for (i = 0; i < NODES; i++)
				w->node[i].sent = w->node[i].late = w->node[i].of_term0 = 0,
				w->node[i].waited = 0;
			w->source[0].sent = w->source[0].dropped = 0;
		}
		double t = tick_at;
		int what = -1;

		for (i = 0; i < NODES; i++)
			if (w->node[i].done < t) {
				t = w->node[i].done;
				what = i;
			}
		for (i = 0; i < SOURCES; i++)
			if (w->source[i].next < t) {
				t = w->source[i].next;
				what = NODES + i;
			}
		w->now = t;
		if (what >= NODES) {
			struct source *s = &w->source[what - NODES];

			s->sent++;
			enter(w, s->enters, what - NODES);
			schedule(w, s);
		} else if (what >= 0) {
			leave(w, what);
		} else {
			for (i = 0; i < NODES; i++)
				tick(&w->node[i]);
			tick_at += TICK;
			if (++ticks % REPORT)
				continue;
			hear(w, &w->source[0], one ? 1 : 0, one ? 1 : NODES - 1);
			for (i = 1; i < SOURCES && !one; i++)
				hear(w, &w->source[i], i, i);
			if (w->periods < 0 && fabs(w->source[0].rate / share - 1) <= 0.055)
				w->periods = ticks / REPORT;
			if (w->source[0].rate >= 0.9 * share && w->reached < 0)
				w->reached = w->now;
			if (w->source[0].rate >= share && w->whole < 0)
				w->whole = w->now;
		}
	}
}

int main(int argc, char **argv)
{
	static struct path w;
	const struct kase *k = cases;
	uint64_t late = 0, sent = 0;
	int i;

	while (argc == 3 && k->name && strcmp(k->name, argv[1]))
		k++;
	if (argc != 3 || !k->name) {
		fprintf(stderr, "usage: reports_of_u CASE SEED, CASE one of");
		for (k = cases; k->name; k++)
			fprintf(stderr, " %s", k->name);
		fprintf(stderr, "\n");
		return 2;
	}
	w.random[0] = (unsigned short)atoi(argv[2]);
	for (i = 0; i < NODES; i++) {
		bool host = !i || i == NODES - 1;

		node_init(&w.node[i], host ? k->host : 1e9, host && k->host < 1e9 ? 8 : ROOM,
			  host && k->host < 1e9 ? 6 : 100);
	}
	for (i = 0; i < SOURCES; i++) {
		struct source *s = &w.source[i];

		s->poisson = i ? k->cloud_poisson : k->term0_poisson;
		s->rate = s->most = i ? 1.5e9 : k->term0;
		s->enters = k->one ? 1 : i;
		schedule(&w, s);
		if (k->one && i)
			s->next = INFINITY;
	}
	run(&w, k->one);
	printf("{\"reached_s\": %.3f, \"whole_s\": %.3f, \"periods\": %d, \"rate_mbit\": %.3f, "
	       "\"cloud_mbit\": %.3f, \"drop_percent\": %.3f, \"use_percent\": [",
	       w.reached, w.whole, w.periods, w.source[0].rate / 1e6, w.source[1].rate / 1e6,
	       100.0 * (double)w.source[0].dropped /
		       (double)(w.node[k->one ? 1 : 0].of_term0 +
				(k->one ? w.source[0].dropped : 0)));
	for (i = 0; i < NODES; i++)
		printf("%s%.3f", i ? ", " : "",
		       100 * (double)w.node[i].sent * BITS / w.node[i].speed / (SECONDS - SETTLED));
	printf("], \"wait_ms\": [");
	for (i = 0; i < NODES; i++) {
		printf("%s%.4f", i ? ", " : "",
		       w.node[i].sent ? 1e3 * w.node[i].waited / (double)w.node[i].sent : 0);
		late += w.node[i].late;
		sent += w.node[i].sent;
	}
	printf("], \"late_percent\": %.4f}\n", 100.0 * (double)late / (double)sent);
	return 0;
}
