// SPDX-License-Identifier: GPL-2.0
/* Ring of digests of sent media; see ring.h. */
#include "ring.h"

#include <stdlib.h>

int ring_init(struct ring *r, uint32_t cap)
{
	*r = (struct ring){.cap = cap};
	r->entry = calloc(cap, sizeof(*r->entry));
	return r->entry ? 0 : -1;
}

void ring_free(struct ring *r)
{
	free(r->entry);
	*r = (struct ring){0};
}

void ring_put(struct ring *r, uint64_t digest, uint64_t t_ns, uint64_t life_ns)
{
	struct ring_entry *e = &r->entry[r->next];

	if (r->used == r->cap) {
		if (t_ns < e->t_ns + life_ns)
			r->early++;
	} else {
		r->used++;
	}
	e->digest = digest;
	e->t_ns = t_ns;
	r->next = r->next + 1 == r->cap ? 0 : r->next + 1;
}

enum ring_hit ring_find(const struct ring *r, uint64_t digest, uint64_t now_ns, uint64_t life_ns)
{
	uint32_t pos = r->next, i;

	/* Newest first: a router quotes what it has just forwarded. */
	for (i = 0; i < r->used; i++) {
		pos = (pos ? pos : r->cap) - 1;
		if (r->entry[pos].digest != digest)
			continue;
		return now_ns > r->entry[pos].t_ns + life_ns ? RING_OLD : RING_HIT;
	}
	return RING_UNKNOWN;
}
