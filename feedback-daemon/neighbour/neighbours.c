// SPDX-License-Identifier: GPL-2.0
/* Neighbours; see neighbours.h. */
#include "feedback-daemon/neighbour/neighbours.h"

#include <stddef.h>

#include "core/paqm_rlmsg.h"

/* The place of a node: its own, else a free or forgotten one; NULL: all are taken. */
static struct neighbour *place(struct neighbours *n, uint64_t node, uint64_t now_ns)
{
	struct neighbour *spare = NULL;

	for (int i = 0; i < NEIGHBOURS_MAX; i++) {
		if (n->of[i].node == node)
			return &n->of[i];
		if (!n->of[i].node || now_ns >= n->of[i].until_ns)
			spare = &n->of[i];
	}
	return spare;
}

enum heard neighbours_hear(struct neighbours *n, uint64_t self, const uint8_t *data, uint32_t len,
			   int ttl, uint64_t now_ns, uint64_t keep_ns)
{
	struct neighbour *at;
	struct paqm_rlmsg m;

	if (paqm_rlmsg_decode(&m, data, len))
		return HEARD_FORMAT;
	if (ttl != PAQM_RLMSG_TTL)
		return HEARD_AFAR;
	if (m.node == self)
		return HEARD_SELF;
	at = place(n, m.node, now_ns);
	if (!at)
		return HEARD_FULL;
	/* who was silent for so long may have begun anew */
	if (at->node == m.node && now_ns < at->until_ns && !paqm_seq_newer(m.seq, at->seq))
		return HEARD_OLD;
	*at = (struct neighbour){
		.node = m.node, .until_ns = now_ns + keep_ns, .seq = m.seq, .load = m.load};
	return HEARD;
}

uint32_t neighbours_load(const struct neighbours *n, uint64_t now_ns)
{
	uint32_t most = 0;

	for (int i = 0; i < NEIGHBOURS_MAX; i++)
		if (n->of[i].node && now_ns < n->of[i].until_ns && n->of[i].load > most)
			most = n->of[i].load;
	return most;
}

const char *heard_name(enum heard what)
{
	static const char *const names[HEARD_WHATS] = {
		[HEARD] = "accepted", [HEARD_FORMAT] = "format", [HEARD_AFAR] = "not_of_link",
		[HEARD_SELF] = "own", [HEARD_OLD] = "old",	 [HEARD_FULL] = "too_many",
	};

	return names[what];
}
