// SPDX-License-Identifier: GPL-2.0
/*
 * Which sources may be told, and how often: prefixes, the table of sources, and the budget of all
 * messages.
 *
 * One token bucket limits all messages (RFC 4443 section 2.4 (f) requires one). While it is more
 * than half full, any source may draw on it; below that, each has an equal share. So a host with a
 * thousand flows, real or spoofed, does not starve the others. Sources that the table has no room
 * for have a share with others of the same hash, and take turns.
 */
#include <linux/jhash.h>
#include <linux/string.h>
#include <net/ipv6.h>
#include "core/paqm_bucket.h"
#include "core/paqm_fix.h"
#include "paqm_compat.h"
#include "paqm_transmitter.h"

#define PAQM_FB_BURST_MS 2000
#define PAQM_FB_COUNT_NS (250ULL * NSEC_PER_MSEC) /* active peers are recounted so often */
#define PAQM_TURN_STEP 48U /* ticks: the least by which the time for a turn grows, */
#define PAQM_TURN_MOST (1U << 16) /* and the longest */
#define PAQM_PEER_SHARES_NS (3ULL * NSEC_PER_SEC) /* counts as active: twice PAQM_REMIND_NS */
#define PAQM_PEER_LIFE_NS (60ULL * NSEC_PER_SEC) /* then its entry may be reused */
#define PAQM_PEER_PRESS_NS (2ULL * NSEC_PER_SEC) /* the same, if it is not proven */
#define PAQM_PEER_LONG_NS (10ULL * NSEC_PER_SEC) /* proves a source: spoofed ones change sooner */

/* Do @a and @b agree in their first @bits? */
static bool paqm_same_prefix(const u8 *a, const u8 *b, u32 bits)
{
	u8 mask = 0xFF << (8 - bits % 8);

	return !memcmp(a, b, bits / 8) && (!(bits % 8) || !((a[bits / 8] ^ b[bits / 8]) & mask));
}

/**
 * paqm_fb_wanted() - may a source be told, by its address?
 * @fb: transmitter
 * @addr: its address, IPv4 mapped
 *
 * Return: true if it is in one of the prefixes, or if there are none.
 */
bool paqm_fb_wanted(struct paqm_fb *fb, const struct in6_addr *addr)
{
	bool v4 = ipv6_addr_v4mapped(addr), wanted;
	u32 i;

	spin_lock_bh(&fb->lock);
	wanted = !fb->n_prefixes;
	for (i = 0; i < fb->n_prefixes && !wanted; i++) {
		const struct tc_paqm_prefix *p = &fb->prefix[i];

		wanted = p->family == (v4 ? 4 : 6) &&
			 paqm_same_prefix(p->addr, addr->s6_addr + (v4 ? 12 : 0), p->len);
	}
	spin_unlock_bh(&fb->lock);
	return wanted;
}

/*
 * Is the source real? It has answered an echo request, or has been owed notices for a while. Its
 * entry is not evicted for sources that are not proven, and those get at most half of a budget that
 * is short.
 */
static bool paqm_peer_proven(const struct paqm_peer *peer)
{
	return peer->kept || peer->seen - peer->since >= PAQM_PEER_LONG_NS;
}

/* Which of two entries to evict: one that is not proven, else the older one. */
static struct paqm_peer *paqm_peer_lesser(struct paqm_peer *a, struct paqm_peer *b)
{
	if (a->seen && b->seen && paqm_peer_proven(a) != paqm_peer_proven(b))
		return paqm_peer_proven(a) ? b : a;
	return b->seen < a->seen ? b : a;
}

static u32 paqm_peer_hash(const struct paqm_fb *fb, const struct paqm_path *path)
{
	return jhash2((const u32 *)&path->to, 4, fb->hash ^ path->vrf);
}

/**
 * paqm_peer_touch() - a source is owed a notice: find it in the table, or add it
 * @fb: transmitter, locked
 * @path: way to the source
 * @now: ns
 *
 * Return: its entry, NULL if there is no room.
 */
struct paqm_peer *paqm_peer_touch(struct paqm_fb *fb, const struct paqm_path *path, u64 now)
{
	const struct in6_addr *addr = &path->to;
	u32 set = paqm_peer_hash(fb, path) % PAQM_PEER_SETS;
	struct paqm_peer *peer = &fb->peer[set * PAQM_PEER_WAYS], *place = NULL;
	u32 i;

	for (i = 0; i < PAQM_PEER_WAYS; i++, peer++) {
		if (peer->seen && peer->vrf == path->vrf && ipv6_addr_equal(&peer->addr, addr)) {
			peer->seen = now;
			peer->mark = path->mark;
			peer->mute = !path->ours;
			return peer;
		}
		place = place ? paqm_peer_lesser(place, peer) : peer;
	}
	if (place->seen && now - place->seen < (paqm_peer_proven(place) ? PAQM_PEER_LIFE_NS :
									  PAQM_PEER_PRESS_NS))
		return NULL;
	/* without tokens: else each spoofed source would have a first message */
	*place = (struct paqm_peer){
		.addr = *addr,
		.vrf = path->vrf,
		.mark = path->mark,
		.mute = !path->ours,
		.since = now,
		.seen = now,
		.part.stamp = now,
		.due = now,
	};
	return place;
}

/* The share of a source of that @hash without an entry. It begins without tokens, as entries do. */
static struct paqm_rest *paqm_rest_touch(struct paqm_fb *fb, u32 hash, u64 now)
{
	struct paqm_rest *rest = &fb->rest[hash / PAQM_PEER_SETS % PAQM_RESTS];

	if (!rest->seen || now - rest->seen >= PAQM_PEER_SHARES_NS)
		*rest = (struct paqm_rest){ .part.stamp = now };
	rest->seen = now;
	return rest;
}

/*
 * Tokens at which a source of that @hash may have a message of @len bytes. Those of a share take
 * turns in the order of their hashes: the next one needs little more than @len, who was told last
 * half as much again.
 */
static u32 paqm_rest_needs(const struct paqm_rest *rest, u32 hash, u32 len)
{
	u32 ahead = hash - rest->told - 1;

	return len + ((u64)len * ahead >> 33);
}

/* Count the sources that share the budget. Under @fb->lock. */
static void paqm_peers_count(struct paqm_fb *fb, u64 now)
{
	u32 i, n = 0, proven = 0;

	if (fb->counted && now - fb->counted < PAQM_FB_COUNT_NS)
		return;
	fb->counted = now;
	for (i = 0; i < PAQM_PEERS; i++) {
		struct paqm_peer *peer = &fb->peer[i];

		if (peer->seen && now - peer->seen > PAQM_PEER_LIFE_NS)
			peer->seen = 0;
		if (!peer->seen || now - peer->seen >= PAQM_PEER_SHARES_NS)
			continue;
		n++;
		proven += paqm_peer_proven(peer);
	}
	for (i = 0; i < PAQM_RESTS; i++)
		n += fb->rest[i].seen && now - fb->rest[i].seen < PAQM_PEER_SHARES_NS;
	fb->active = max(n, 1U);
	fb->proven = proven;
}

/*
 * How many equal parts of the budget there are, of which a source has one. Sources that are not
 * proven get no more together than those that are. Under @fb->lock.
 */
static u32 paqm_fb_parts(const struct paqm_fb *fb, bool proven)
{
	u32 like = proven ? fb->proven : fb->active - fb->proven;

	return fb->proven && fb->proven < fb->active ? 2 * max(like, 1U) : fb->active;
}

/*
 * Is it the turn of others? Packets of a source may always come in the same order, as those of a
 * server that sends each picture to all its viewers: the first flows would have the whole part. So
 * who was told less than @turn ago waits. That time grows as long as one who has waited for longer
 * finds nothing, and falls while nobody does.
 */
static bool paqm_turn_of_others(struct paqm_part *part, u32 age, u64 now)
{
	u64 since = now - part->judged;

	if (since >= PAQM_FB_COUNT_NS) {
		if (part->missed)
			part->turn = min(part->turn + part->turn / 4 + PAQM_TURN_STEP,
					 PAQM_TURN_MOST);
		else if (since < PAQM_PEER_SHARES_NS)
			part->turn -= DIV_ROUND_UP(part->turn, 8);
		else
			part->turn = 0;
		part->missed = false;
		part->judged = now;
	}
	return age < part->turn;
}

/**
 * paqm_fb_allow() - draw a message from the budget
 * @fb: transmitter, locked
 * @path: way to the source that is told
 * @peer: its entry; NULL if it has none
 * @len: bytes of the message
 * @age: ticks of 2^20 ns since the flow was told last, U32_MAX: never
 * @now: ns
 *
 * Return: false if it is not in the budget.
 */
bool paqm_fb_allow(struct paqm_fb *fb, const struct paqm_path *path, struct paqm_peer *peer,
		   u32 len, u32 age, u64 now)
{
	u32 hash = 0, need = len, most = PAQM_MSG_SENT_MAX, parts;
	struct paqm_rest *rest = NULL;
	struct paqm_part *part;
	u64 rate = READ_ONCE(fb->rate);
	u64 depth = max_t(u64, paqm_muldiv(rate, PAQM_FB_BURST_MS, MSEC_PER_SEC),
			  4 * PAQM_MSG_SENT_MAX);

	if (peer) {
		part = &peer->part;
	} else {
		hash = paqm_peer_hash(fb, path);
		rest = paqm_rest_touch(fb, hash, now);
		part = &rest->part;
		need = paqm_rest_needs(rest, hash, len);
		most *= 2;
	}
	paqm_peers_count(fb, now);
	fb->tokens = paqm_tokens_fill(fb->tokens, &fb->stamp, rate, depth, now);
	parts = paqm_fb_parts(fb, peer && paqm_peer_proven(peer));
	part->tokens = paqm_tokens_fill(part->tokens, &part->stamp, paqm_div64(rate, parts),
					max_t(u64, paqm_div64(depth, parts), most), now);
	if (paqm_turn_of_others(part, age, now))
		return false;
	if (fb->tokens < len || (fb->tokens < depth / 2 && part->tokens < need)) {
		part->missed = true;
		return false;
	}
	if (rest)
		rest->told = hash;
	fb->tokens -= len;
	part->tokens -= min_t(u64, part->tokens, len);
	return true;
}
