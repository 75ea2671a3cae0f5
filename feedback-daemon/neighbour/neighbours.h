/* SPDX-License-Identifier: GPL-2.0 */
/* What the neighbours at one device say: judged, kept, forgotten. No input or output. */
#ifndef RLQOSD_NEIGHBOURS_H
#define RLQOSD_NEIGHBOURS_H

#include <stdint.h>

#define NEIGHBOURS_MAX 16

/* What became of a message. */
enum heard {
	HEARD,
	HEARD_FORMAT, /* not one of ours */
	HEARD_AFAR,   /* not from this link */
	HEARD_SELF,   /* our own */
	HEARD_OLD,    /* not newer than the last one */
	HEARD_FULL,   /* there are NEIGHBOURS_MAX others */
	HEARD_WHATS,
};

struct neighbour {
	uint64_t node; /* 0: none */
	uint64_t until_ns;
	uint32_t seq;
	uint32_t load; /* Q24 */
};

struct neighbours {
	struct neighbour of[NEIGHBOURS_MAX];
};

/**
 * neighbours_hear() - take or refuse a message
 * @n: the neighbours at the device that it came by
 * @self: this node
 * @data: the payload
 * @len: its length
 * @ttl: of its packet; -1: not known
 * @now_ns: time
 * @keep_ns: how long it is believed
 */
enum heard neighbours_hear(struct neighbours *n, uint64_t self, const uint8_t *data, uint32_t len,
			   int ttl, uint64_t now_ns, uint64_t keep_ns);

/* The largest load that is still believed, Q24. */
uint32_t neighbours_load(const struct neighbours *n, uint64_t now_ns);

/* As it stands in the counters. */
const char *heard_name(enum heard what);

#endif /* RLQOSD_NEIGHBOURS_H */
