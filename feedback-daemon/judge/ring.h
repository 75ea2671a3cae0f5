/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Digests of the media packets that one flow has sent lately. A feedback
 * message must quote one of them: who is not on the path cannot know their
 * contents. Every flow has a ring of its own, so that a fast flow cannot push
 * out what a slow one needs for its proof.
 *
 * A ring begins small, doubles while it would forget what is not yet old, and gives
 * back what it needs no more. An index finds a digest, or that it is none, in the same
 * short time however many there are: a flood of guesses must not cost more than it
 * costs its author.
 */
#ifndef PAQMD_RING_H
#define PAQMD_RING_H

#include <stdint.h>

/* Powers of two. */
#define RING_MIN 64
#define RING_CAP 4096 /* four seconds of a 10 Mbit/s flow of 1200-byte packets */

#define RING_ENTRY_BYTES 20 /* memory for each digest that fits */

struct ring_entry {
	uint64_t digest;
	uint64_t t_ns;
};

struct ring {
	struct ring_entry *entry;
	uint16_t *head; /* of the chain of digests with the same low bits */
	uint16_t *link; /* the entry before in the chain of an entry */
	uint32_t cap;
	uint32_t max;  /* it may grow so far */
	uint32_t next; /* where the next digest goes */
	uint32_t used;
	uint64_t early; /* overwritten before they had expired */
};

enum ring_hit { RING_UNKNOWN, RING_OLD, RING_HIT };

/* A ring that grows up to @max digests, a power of two. Return: 0, or -1 without memory. */
int ring_init(struct ring *r, uint32_t max);
void ring_free(struct ring *r);

/* Remember @digest, sent at @t_ns; the oldest one gives way. */
void ring_put(struct ring *r, uint64_t digest, uint64_t t_ns, uint64_t life_ns);

/* Give back memory: most of what the ring holds is older than @life_ns. */
void ring_trim(struct ring *r, uint64_t now_ns, uint64_t life_ns);

/* Was @digest sent at most @life_ns before @now_ns? */
enum ring_hit ring_find(const struct ring *r, uint64_t digest, uint64_t now_ns, uint64_t life_ns);

#endif /* PAQMD_RING_H */
