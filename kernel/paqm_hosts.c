// SPDX-License-Identifier: GPL-2.0
/* Hosts that are equal, whatever number of flows each has (`weights host`); part of the census. */
#include <linux/bitmap.h>
#include <linux/siphash.h>
#include "paqm_census.h"

/* Place of the host of a flow on one side, below PAQM_HOSTS. */
u32 paqm_host_place(const struct paqm_tuple *t, enum paqm_side side, const u64 *key)
{
	const u8 *addr = side == PAQM_SIDE_SOURCE ? t->saddr : t->daddr;
	siphash_key_t k = { { key[0], key[1] } };

	/* keyed, or a host could choose with whom it collides */
	return siphash_3u64(get_unaligned_le64(addr), get_unaligned_le64(addr + 8), t->family,
			    &k) % PAQM_HOSTS;
}

/* All hosts begin anew. The datapath may go on meanwhile: a host without flows limits none. */
void paqm_hosts_clear(struct paqm_hosts *h)
{
	u32 i;

	memset(h->flows, 0, sizeof(h->flows));
	memset(h->elastic, 0, sizeof(h->elastic));
	for (i = 0; i < PAQM_HOSTS; i++)
		h->host[i] = (struct paqm_host){};
	h->side = PAQM_SIDE_SOURCE;
}

/* Hosts with elastic flows on the side on which there are fewer: those behind this link, mostly. */
u32 paqm_hosts_elastic(const struct paqm_hosts *h)
{
	return min(bitmap_weight(h->elastic[PAQM_SIDE_SOURCE], PAQM_HOSTS),
		   bitmap_weight(h->elastic[PAQM_SIDE_DESTINATION], PAQM_HOSTS));
}

/*
 * The side whose addresses are hosts, with so many different ones on each: the one with fewer.
 * But one that is alone says nothing where there are several on the other side.
 */
enum paqm_side paqm_hosts_side(u32 sources, u32 destinations, enum paqm_side before)
{
	if (sources <= 1 && destinations <= 1)
		return PAQM_SIDE_NONE;
	if (sources <= 1)
		return PAQM_SIDE_DESTINATION;
	if (destinations <= 1)
		return PAQM_SIDE_SOURCE;
	if (sources == destinations && before != PAQM_SIDE_NONE)
		return before;
	return destinations < sources ? PAQM_SIDE_DESTINATION : PAQM_SIDE_SOURCE;
}

/*
 * Divide the rate of each host among its flows: @fair, bit/s, which is told now; @whole: a period
 * has ended.
 */
void paqm_hosts_divide(struct paqm_hosts *hosts, u64 fair, bool whole)
{
	u32 i, flows, parts, low, high, then;

	for (i = 0; i < PAQM_HOSTS; i++) {
		struct paqm_host *h = &hosts->host[i];

		flows = h->seen ? hosts->flows[hosts->side][i] : 0;
		parts = PAQM_PART_ONE;
		if (flows > 1)
			parts = paqm_mm_parts(fair, flows, h->n_limited, h->limited);
		then = max_t(u32, h->then, PAQM_PART_ONE);
		low = min(whole ? then : max_t(u32, h->low, PAQM_PART_ONE), parts);
		high = max(whole ? then : h->high, parts);
		if (whole)
			h->then = parts;
		h->high = high;
		WRITE_ONCE(h->low, low);
		WRITE_ONCE(h->parts, parts);
		WRITE_ONCE(h->flows, flows);
	}
}

/* Does the capacity have one more taker by a newcomer? Not by another flow of the same host. */
bool paqm_host_joins(const struct paqm_flow_more *m, const struct paqm_walk *w)
{
	struct paqm_hosts *hosts = w->hosts;
	bool joins;
	u32 place;

	if (!hosts || hosts->side == PAQM_SIDE_NONE)
		return true;
	place = paqm_host_place(&m->tuple, hosts->side, w->key);
	joins = !hosts->flows[hosts->side][place] && !hosts->host[place].joins;
	hosts->host[place].joins = true;
	return joins;
}

/* Note the hosts of an elastic flow that counts. */
void paqm_host_elastic(const struct paqm_walk *w, const struct paqm_tuple *t)
{
	int side;

	for (side = 0; side < PAQM_SIDES; side++)
		__set_bit(paqm_host_place(t, side, w->key), w->hosts->elastic[side]);
}
