/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The events of a simulation, a heap by time: those at the same time happen in the order in which
 * they were added.
 */
#ifndef PAQM_TESTS_EVENTS_H
#define PAQM_TESTS_EVENTS_H

#include <stdlib.h>

struct event {
	double t;
	int kind, flow;
	long value; /* what the kind needs */
	void *what; /* the same */
	unsigned long order;
};

struct events {
	struct event *heap;
	unsigned long n, room, orders;
};

static inline int event_earlier(const struct event *a, const struct event *b)
{
	return a->t < b->t || (!(a->t > b->t) && a->order < b->order);
}

static inline void events_add(struct events *all, struct event e)
{
	unsigned long i, up;

	if (all->n == all->room) {
		all->room = all->room ? 2 * all->room : 1024;
		all->heap = realloc(all->heap, all->room * sizeof(*all->heap));
		if (!all->heap)
			abort();
	}
	e.order = all->orders++;
	for (i = all->n++; i; i = up) {
		up = (i - 1) / 2;
		if (!event_earlier(&e, &all->heap[up]))
			break;
		all->heap[i] = all->heap[up];
	}
	all->heap[i] = e;
}

/* The first of those there are. */
static inline struct event events_take(struct events *all)
{
	struct event first = all->heap[0], last = all->heap[--all->n];
	unsigned long i = 0, down;

	while ((down = 2 * i + 1) < all->n) {
		if (down + 1 < all->n && event_earlier(&all->heap[down + 1], &all->heap[down]))
			down++;
		if (!event_earlier(&all->heap[down], &last))
			break;
		all->heap[i] = all->heap[down];
		i = down;
	}
	all->heap[i] = last;
	return first;
}

#endif /* PAQM_TESTS_EVENTS_H */
