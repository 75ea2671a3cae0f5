// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The network of ratesim.h: events in a heap, packets in a pool. A packet is stamped when it leaves
 * a link, with the newest rate.
 */
#include <math.h>
#include <stdlib.h>

#include "../paqm_follow.h"
#include "events.h"
#include "ratesim.h"

#define FIRST_PERIOD 0.1  /* s, before any round trip is known; the law is not applied in it */
#define SLOW_TRIPS 10.0	  /* windows that grow towards a congested link take so much longer */
#define UP_AFTER 10	  /* reports in a row, before a layer is added */
#define NEAR_ENOUGH 1.001 /* a rate that is told is approached from below */
#define QUIET 1.0	  /* s without a report: half the rate */

enum kind { START, STOP, ARRIVE, LEAVE, GOT, BACK, LOST, SEND, REPORT, HEAR, PERIOD };

struct packet {
	struct packet *next;
	struct sim_flow *flow;
	int hop, congested;
	double sent, trip, told;
};

static struct events queue;
static struct sim_link *links[64];
static struct sim_flow **flows;
static int n_links, n_flows;
static struct packet *spare;
static double now, marked;

static void at(double t, enum kind kind, void *what)
{
	events_add(&queue, (struct event){.t = t, .kind = (int)kind, .what = what});
}

void sim_begin(void)
{
	int i;

	for (i = 0; i < n_links; i++)
		free(links[i]);
	for (i = 0; i < n_flows; i++)
		free(flows[i]);
	while (queue.n) {
		struct event e = events_take(&queue);

		if (e.kind >= ARRIVE && e.kind <= LOST)
			free(e.what);
	}
	while (spare) {
		struct packet *p = spare;

		spare = p->next;
		free(p);
	}
	free(queue.heap);
	free(flows);
	queue = (struct events){0};
	flows = NULL;
	n_links = n_flows = 0;
	now = marked = 0;
}

struct sim_link *sim_add_link(double mbit, double delay, double buffer, sim_law law, void *state)
{
	struct sim_link *link = calloc(1, sizeof(*link));

	if (!link || n_links == (int)(sizeof(links) / sizeof(links[0])))
		abort();
	link->rate = mbit * 1e6 / 8;
	link->delay = delay;
	link->buffer = buffer;
	link->law = law;
	link->state = state;
	links[n_links++] = link;
	at(FIRST_PERIOD, PERIOD, link);
	return link;
}

struct sim_flow *sim_add_flow(double before, double after, double start)
{
	struct sim_flow *flow = calloc(1, sizeof(*flow));

	if (!(n_flows & (n_flows - 1)))
		flows = realloc(flows, 2 * (size_t)(n_flows ? n_flows : 1) * sizeof(*flows));
	if (!flow || !flows)
		abort();
	flow->before = before;
	flow->after = after;
	flow->start = start;
	flow->stop = INFINITY;
	flow->demand = INFINITY;
	flow->size = INFINITY;
	flow->base = INFINITY;
	flow->every = 0.05;
	flow->window = 1;
	flows[n_flows++] = flow;
	at(start, START, flow);
	return flow;
}

void sim_via(struct sim_flow *flow, const struct sim_link *link)
{
	int i;

	for (i = 0; links[i] != link; i++)
		;
	flow->way[flow->links++] = i;
}

/* What a packet carries of what its sender could use. */
static double wish(const struct sim_flow *f)
{
	if (!f->asks)
		return INFINITY;
	return f->ladder ? f->ladder[f->layer + 1 < f->layers ? f->layer + 1 : f->layer]
			 : f->demand;
}

static void launch(struct sim_flow *f)
{
	struct packet *p = spare;

	if (p)
		spare = p->next;
	else
		p = malloc(sizeof(*p));
	if (!p)
		abort();
	*p = (struct packet){.flow = f, .sent = now, .trip = f->trip, .told = wish(f)};
	f->flight++;
	f->size--;
	at(now + f->before, ARRIVE, p);
}

static void fill(struct sim_flow *f)
{
	while (f->alive && f->size > 0 && f->flight < floor(f->window))
		launch(f);
}

/* A paced sender's actual rate: that of a layer, if it has any. */
static double pace(const struct sim_flow *f)
{
	return f->ladder ? f->ladder[f->layer] : f->rate;
}

/* What packets and reports take, both ways, without queues. */
static double way_of(const struct sim_flow *f)
{
	double sum = f->before + f->after;
	int i;

	for (i = 0; i < f->links; i++)
		sum += links[f->way[i]]->delay;
	return sum;
}

static double least_rate(const struct sim_flow *f)
{
	return f->ladder ? f->ladder[0] : SIM_PACKET / (2 * way_of(f));
}

static void begin(struct sim_flow *f)
{
	f->alive = 1;
	f->heard = now;
	at(f->stop, STOP, f);
	if (!f->paced) {
		fill(f);
		return;
	}
	f->rate = least_rate(f);
	f->trip = 0;
	at(now, SEND, f);
	at(now + f->every, REPORT, f);
}

static void arrive(struct packet *p)
{
	struct sim_link *link = links[p->flow->way[p->hop]];
	double backlog = fmax(0, link->free_at - now) * link->rate;

	link->bytes += SIM_PACKET;
	link->queued += backlog;
	link->queued_n++;
	if (p->trip > 0) {
		link->trips += p->trip;
		link->trips_n++;
	}
	if (isfinite(p->told) && p->flow->asks)
		link->demand = fmax(link->demand, p->told);
	link->waited += backlog;
	link->peak = fmax(link->peak, backlog);
	link->packets++;
	if (backlog > link->buffer) { /* the packet that is being sent does not count, as in ns-2 */
		link->drops++;
		at(now + way_of(p->flow), LOST, p);
		return;
	}
	link->free_at = fmax(link->free_at, now) + SIM_PACKET / link->rate;
	at(link->free_at, LEAVE, p);
}

static void leave(struct packet *p)
{
	struct sim_flow *f = p->flow;
	struct sim_link *link = links[f->way[p->hop++]];

	link->served += SIM_PACKET;
	p->told = fmin(p->told, link->told);
	p->congested |= link->congested;
	if (p->hop < f->links) {
		at(now + link->delay, ARRIVE, p);
		return;
	}
	/* to its receiver it is half of what is left; reports take the other half */
	at(now + link->delay + (f->paced ? f->after / 2 : f->after), f->paced ? GOT : BACK, p);
}

static void drop(struct packet *p)
{
	p->flow->flight--;
	p->next = spare;
	spare = p;
}

/* A packet of a paced sender has come. */
static void got(struct packet *p)
{
	struct sim_flow *f = p->flow;

	f->got += SIM_PACKET;
	f->carried = p->told;
	f->congested |= p->congested;
	f->came = now;
	f->held = p->sent;
	f->any = 1;
	drop(p);
}

/* The window form of the sender, from an acknowledgement. */
static void back(struct packet *p)
{
	struct sim_flow *f = p->flow;
	double want;

	f->got += SIM_PACKET;
	f->trip = now - p->sent;
	f->base = fmin(f->base, f->trip);
	want = fmin(p->told, f->demand) * f->base / SIM_PACKET;
	f->window += (want - f->window) / f->window /
		     (want > f->window && p->congested ? SLOW_TRIPS : 1);
	f->window = fmax(1, f->window);
	drop(p);
	fill(f);
}

/* The paced form, from a report. */
static void hear(struct sim_flow *f)
{
	double trip = f->came - f->held + f->after / 2;
	int layer = 0;

	f->trip = f->trip > 0 ? f->trip + (trip - f->trip) / 8 : trip;
	f->rate = (double)paqm_follow((paqm_u64)(f->rate * 1000),
				      (paqm_u64)(fmin(f->carried, 1e12) * 1000),
				      (paqm_u64)((now - f->heard) * 1e6), (paqm_u64)(f->trip * 1e6),
				      f->congested) /
		  1000;
	f->rate = fmin(fmax(f->rate, least_rate(f)), f->demand);
	f->heard = now;
	f->congested = 0;
	f->any = 0;
	if (!f->ladder)
		return;
	while (layer + 1 < f->layers && f->ladder[layer + 1] <= f->rate * NEAR_ENOUGH)
		layer++;
	f->wins = layer > f->layer ? f->wins + 1 : 0;
	if (layer < f->layer)
		f->layer = layer;
	else if (f->wins >= UP_AFTER) {
		f->layer++;
		f->wins = 0;
	}
}

static void report(struct sim_flow *f)
{
	if (!f->alive)
		return;
	if (f->any)
		at(now + f->after / 2, HEAR, f);
	if (now - f->heard > fmax(QUIET, 4 * fmax(f->trip, f->every))) {
		f->rate = fmax(f->rate / 2, least_rate(f));
		f->heard = now;
	}
	at(now + f->every, REPORT, f);
}

static void end_period(struct sim_link *link)
{
	double period = now - link->begun;

	if (link->trips_n)
		link->trip = fmin(2, fmax(0.001, link->trips / (double)link->trips_n));
	if (link->trip > 0)
		link->law(link, period, link->trip);
	link->congested = link->bytes / period > 0.95 * link->rate;
	link->bytes = link->queued = link->trips = link->demand = 0;
	link->queued_n = link->trips_n = 0;
	link->begun = now;
	at(now + (link->trip > 0 ? link->trip : FIRST_PERIOD), PERIOD, link);
}

static void happen(const struct event *e)
{
	struct packet *p = e->what;
	struct sim_flow *f = e->what;

	switch ((enum kind)e->kind) {
	case START:
		begin(f);
		break;
	case STOP:
		f->alive = 0;
		break;
	case ARRIVE:
		arrive(p);
		break;
	case LEAVE:
		leave(p);
		break;
	case GOT:
		got(p);
		break;
	case BACK:
		back(p);
		break;
	case LOST:
		f = p->flow;
		drop(p);
		if (!f->paced)
			fill(f);
		break;
	case SEND:
		if (!f->alive)
			break;
		launch(f);
		at(now + SIM_PACKET / pace(f), SEND, f);
		break;
	case REPORT:
		report(f);
		break;
	case HEAR:
		if (f->alive)
			hear(f);
		break;
	case PERIOD:
		end_period(e->what);
		break;
	}
}

void sim_run(double until)
{
	while (queue.n && queue.heap[0].t <= until) {
		struct event e = events_take(&queue);

		now = e.t;
		happen(&e);
	}
	now = until;
}

void sim_mark(void)
{
	int i;

	marked = now;
	for (i = 0; i < n_links; i++) {
		links[i]->served = links[i]->waited = links[i]->peak = 0;
		links[i]->packets = links[i]->drops = 0;
	}
	for (i = 0; i < n_flows; i++)
		flows[i]->got = 0;
}

double sim_use(const struct sim_link *link)
{
	return link->served / link->rate / (now - marked);
}

double sim_rate(const struct sim_flow *flow)
{
	return flow->got * 8 / 1e6 / (now - marked);
}

double sim_queue(const struct sim_link *link)
{
	return link->packets ? link->waited / (double)link->packets / SIM_PACKET : 0;
}
