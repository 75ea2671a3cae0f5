/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Digests of the media packets that one flow has sent lately. A feedback
 * message must quote one of them: who is not on the path cannot know their
 * contents. Every flow has a ring of its own, so that a fast flow cannot push
 * out what a slow one needs for its proof.
 */
#ifndef PAQMD_RING_H
#define PAQMD_RING_H

#include <stdint.h>

/* Four seconds of a 10 Mbit/s flow of 1200-byte packets. */
#define RING_CAP 4096

struct ring_entry {
	uint64_t digest;
	uint64_t t_ns;
};

struct ring {
	struct ring_entry *entry;
	uint32_t cap;
	uint32_t next; /* where the next digest goes */
	uint32_t used;
	uint64_t early; /* overwritten before they had expired */
};

enum ring_hit { RING_UNKNOWN, RING_OLD, RING_HIT };

/* Return: 0, or -1 without memory. */
int ring_init(struct ring *r, uint32_t cap);
void ring_free(struct ring *r);

/* Remember @digest, sent at @t_ns; the oldest one gives way. */
void ring_put(struct ring *r, uint64_t digest, uint64_t t_ns, uint64_t life_ns);

/* Was @digest sent at most @life_ns before @now_ns? */
enum ring_hit ring_find(const struct ring *r, uint64_t digest, uint64_t now_ns, uint64_t life_ns);

#endif /* PAQMD_RING_H */
