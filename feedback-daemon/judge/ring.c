// SPDX-License-Identifier: GPL-2.0
/* Ring of digests of sent media; see ring.h. */
#include "feedback-daemon/judge/ring.h"

#include <stdlib.h>
#include <string.h>

#define NONE 0xFFFF

_Static_assert(RING_CAP < NONE, "an index has 16 bits");
_Static_assert(RING_ENTRY_BYTES == sizeof(struct ring_entry) + 2 * sizeof(uint16_t),
	       "what an entry takes");

/* One block: entries, then both halves of the index. */
static int alloc(struct ring *r, uint32_t cap)
{
	r->entry = malloc((size_t)cap * RING_ENTRY_BYTES);
	if (!r->entry)
		return -1;
	r->head = (uint16_t *)(r->entry + cap);
	r->link = r->head + cap;
	r->cap = cap;
	r->next = 0;
	r->used = 0;
	memset(r->head, 0xFF, cap * sizeof(*r->head));
	return 0;
}

int ring_init(struct ring *r, uint32_t max)
{
	*r = (struct ring){.max = max};
	return alloc(r, max < RING_MIN ? max : RING_MIN);
}

void ring_free(struct ring *r)
{
	free(r->entry);
	*r = (struct ring){0};
}

static uint16_t *head_of(const struct ring *r, uint64_t digest)
{
	return &r->head[digest & (r->cap - 1)];
}

/* Digests are made under a secret key, so that chains stay short whoever sends. */
static void insert(struct ring *r, uint64_t digest, uint64_t t_ns)
{
	uint16_t *head = head_of(r, digest), at = (uint16_t)r->next;

	r->entry[at] = (struct ring_entry){digest, t_ns};
	r->link[at] = *head;
	*head = at;
	r->next = (r->next + 1) & (r->cap - 1);
	r->used += r->used < r->cap;
}

/* Take the oldest out of its chain, which it ends. */
static void forget(struct ring *r)
{
	uint16_t *p = head_of(r, r->entry[r->next].digest);

	while (*p != r->next)
		p = &r->link[*p];
	*p = NONE;
}

/* Twice as many digests. Without memory the ring stays as it is. */
static void grow(struct ring *r)
{
	struct ring bigger = *r;
	uint32_t i;

	if (alloc(&bigger, 2 * r->cap))
		return;
	for (i = 0; i < r->used; i++) {
		const struct ring_entry *e = &r->entry[(r->next + i) & (r->cap - 1)];

		insert(&bigger, e->digest, e->t_ns);
	}
	free(r->entry);
	*r = bigger;
}

void ring_put(struct ring *r, uint64_t digest, uint64_t t_ns, uint64_t life_ns)
{
	if (r->used == r->cap && t_ns < r->entry[r->next].t_ns + life_ns && r->cap < r->max)
		grow(r);
	if (r->used == r->cap) {
		r->early += t_ns < r->entry[r->next].t_ns + life_ns;
		forget(r);
	}
	insert(r, digest, t_ns);
}

/* The entry that came @back before the newest. */
static const struct ring_entry *entry_of(const struct ring *r, uint32_t back)
{
	return &r->entry[(r->next - 1 - back) & (r->cap - 1)];
}

void ring_trim(struct ring *r, uint64_t now_ns, uint64_t life_ns)
{
	struct ring smaller = *r;
	uint32_t alive = 0, cap = RING_MIN, i;

	/* Only if it ends half empty at most: it must not grow again at once. */
	if (r->cap <= RING_MIN ||
	    (r->used > r->cap / 4 && now_ns <= entry_of(r, r->cap / 4)->t_ns + life_ns))
		return;
	while (alive < r->used && now_ns <= entry_of(r, alive)->t_ns + life_ns)
		alive++;
	while (cap < 2 * alive)
		cap *= 2;
	if (cap >= r->cap || alloc(&smaller, cap))
		return;
	/* Those that are old stay as far as they fit: a late message is told from a forged one. */
	for (i = r->used < cap ? r->used : cap; i; i--)
		insert(&smaller, entry_of(r, i - 1)->digest, entry_of(r, i - 1)->t_ns);
	free(r->entry);
	*r = smaller;
}

enum ring_hit ring_find(const struct ring *r, uint64_t digest, uint64_t now_ns, uint64_t life_ns)
{
	uint16_t at;

	/* Newest first, so that a repeated packet counts from its last time. */
	for (at = *head_of(r, digest); at != NONE; at = r->link[at])
		if (r->entry[at].digest == digest)
			return now_ns > r->entry[at].t_ns + life_ns ? RING_OLD : RING_HIT;
	return RING_UNKNOWN;
}
