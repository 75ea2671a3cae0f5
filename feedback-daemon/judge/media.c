// SPDX-License-Identifier: GPL-2.0
/* Packets that this host sends: whose they are, and what proves them; see media.h. */
#include "feedback-daemon/judge/media.h"

#include "feedback-daemon/judge/flows.h"

#define IPPROTO_UDP_ 17

/* How long the owner of an open source address is remembered; after half of that he is looked for
 * again. Looking takes time that all flows share: a flow has a number of looks within a second.
 */
#define SOURCE_NS (10 * NS_PER_S)
#define LOOKS 4

bool media_digest(const struct engine *e, const struct flow *f, const uint8_t *payload,
		  uint32_t len, uint64_t *result)
{
	uint8_t buf[8 + PAQM_PROOF_MAX];
	uint32_t n = paqm_proof(payload, len, buf + 8);

	paqm_put64(buf, f->serial);
	*result = paqm_siphash24(e->key, buf, 8 + n);
	return n;
}

bool media_ssrc_agrees(const struct flow *f, const uint8_t *payload, uint32_t len)
{
	if (!f->ssrc)
		return true;
	return len >= 12 && payload[0] >> 6 == 2 && paqm_get32(payload + 8) == f->ssrc;
}

/* An IP packet with UDP. */
struct media {
	struct flow_key key;
	const uint8_t *payload;
	uint32_t len; /* at most PAQM_PROOF_MAX */
};

/* Find the UDP header. Return: its offset, or 0 if the packet is not of interest. */
static uint32_t media_ip(const uint8_t *ip, uint32_t caplen, struct flow_key *k, uint32_t *total)
{
	uint32_t hlen;

	if (caplen < 28)
		return 0;
	if (ip[0] >> 4 == 4) {
		hlen = (ip[0] & 15U) * 4;
		*total = paqm_get16(ip + 2);
		k->saddr = addr_v4(ip + 12);
		k->daddr = addr_v4(ip + 16);
		/* No router answers fragments. */
		return hlen < 20 || ip[9] != IPPROTO_UDP_ || paqm_get16(ip + 6) & 0x3FFF ? 0 : hlen;
	}
	/* Nor packets with extension headers. */
	if (ip[0] >> 4 != 6 || caplen < PAQM_IP6_HDR + 8 || ip[6] != IPPROTO_UDP_)
		return 0;
	*total = PAQM_IP6_HDR + paqm_get16(ip + 4);
	k->saddr = addr_v6(ip + 8);
	k->daddr = addr_v6(ip + 24);
	return PAQM_IP6_HDR;
}

static bool media_parse(const uint8_t *ip, uint32_t caplen, struct media *m)
{
	uint32_t total = 0, hlen = media_ip(ip, caplen, &m->key, &total), ulen;
	const uint8_t *udp = ip + hlen;

	if (!hlen || total < hlen + 8 || caplen < hlen + 8)
		return false;
	ulen = paqm_get16(udp + 4);
	if (ulen < 8 || ulen > total - hlen)
		return false;
	m->key.sport = paqm_get16(udp);
	m->key.dport = paqm_get16(udp + 2);
	m->payload = udp + 8;
	m->len = ulen - 8 < PAQM_PROOF_MAX ? ulen - 8 : PAQM_PROOF_MAX;
	return caplen >= hlen + 8 + m->len;
}

/* May the ring double? What counts is what its user has beyond each flow's minimum. */
static bool ring_room(const struct engine *e, const struct flow *f)
{
	const struct user *u = &e->users[f->user];

	return share_has(u->digests - u->flows * RING_MIN, f->ring.cap,
			 e->digests - e->used * RING_MIN, ENGINE_SPARE);
}

bool media_left_from(const struct engine *e, const struct flow *f, const struct addr *addr,
		     uint64_t now_ns)
{
	uint32_t i;

	for (i = 0; i < FLOW_SOURCES; i++) {
		const struct sent_from *s = &f->sent_from[i];

		if (s->ns && addr_equal(&s->addr, addr))
			return now_ns <= s->ns + e->params.digest_life_ns;
	}
	return false;
}

static void keep_source(struct flow *f, const struct addr *addr, uint64_t now_ns)
{
	struct sent_from *s = f->sent_from;
	uint32_t i;

	for (i = 0; i < FLOW_SOURCES && !addr_equal(&s->addr, addr); i++)
		if (f->sent_from[i].ns < s->ns || addr_equal(&f->sent_from[i].addr, addr))
			s = &f->sent_from[i];
	*s = (struct sent_from){.addr = *addr, .ns = now_ns};
}

/* Messages that were waiting for this packet are due. */
static void prove_early(struct engine *e, uint64_t digest)
{
	uint32_t i;

	for (i = 0; i < e->waiting; i++) {
		if (e->early[i].digest == digest) {
			e->early[i].due_ns = 0;
			e->early_ns = 0;
		}
	}
}

/* May the flow's user be looked for now? */
static bool may_look(struct looks *l, uint64_t now_ns)
{
	if (now_ns >= l->since_ns + NS_PER_S)
		*l = (struct looks){.since_ns = now_ns};
	if (l->n == LOOKS)
		return false;
	l->n++;
	return true;
}

/* Whose is the packet? One of IPv6 that may have been of IPv4 must be no other's as either. */
static enum owner owner_of_packet(const struct engine *e, const struct flow *f,
				  const struct flow_key *packet)
{
	const struct flow_key *own = engine_key(e, f);
	struct owner_ends ends = {.saddr = packet->saddr,
				  .daddr = packet->daddr,
				  .sport = packet->sport,
				  .dport = packet->dport};
	enum owner who = e->owner(&ends, e->users[f->user].uid);

	if (who == OWNER_OTHER || !flow_translated(own, packet))
		return who;
	ends.saddr = own->saddr;
	ends.daddr = own->daddr;
	return e->owner(&ends, e->users[f->user].uid);
}

/* Is the packet from a socket of the flow's user? Not asked if the flow named its source, and that
 * is the packet's.
 */
static bool is_own(struct engine *e, struct flow *f, const struct flow_key *packet, uint64_t now_ns)
{
	const struct flow_key *own = engine_key(e, f);
	bool same = f->source_ns && addr_equal(&f->source, &packet->saddr);
	bool known = same && now_ns < f->source_ns + SOURCE_NS;

	if (!e->owner || (!addr_is_any(&own->saddr) && !flow_translated(own, packet)))
		return true;
	if (known && now_ns < f->source_ns + SOURCE_NS / 2)
		return true;
	/* What others send from elsewhere does not use up the looks at his address. */
	if (!may_look(same ? &f->source_looks : &f->other_looks, now_ns))
		return known;
	switch (owner_of_packet(e, f, packet)) {
	case OWNER_HIS:
		f->source = packet->saddr;
		f->source_ns = now_ns;
		return true;
	case OWNER_OTHER:
		if (same)
			f->source_ns = 0;
		return false;
	case OWNER_UNKNOWN:
		break;
	}
	return known;
}

void engine_media(struct engine *e, const uint8_t *ip, uint32_t caplen, uint64_t now_ns)
{
	struct media m = {0};
	struct flow *f = media_parse(ip, caplen, &m) ? flow_of(e, &m.key) : NULL;
	uint64_t early, d;
	uint32_t cap;
	bool room;

	if (!f || !media_ssrc_agrees(f, m.payload, m.len) ||
	    !media_digest(e, f, m.payload, m.len, &d)) {
		e->media_ignored++;
		return;
	}
	if (!is_own(e, f, &m.key, now_ns)) {
		f->others++;
		e->media_others++;
		return;
	}
	cap = f->ring.cap;
	early = f->ring.early;
	room = ring_room(e, f);
	f->ring.max = room ? RING_CAP : cap;
	ring_put(&f->ring, d, now_ns, e->params.digest_life_ns);
	keep_source(f, &m.key.saddr, now_ns);
	prove_early(e, d);
	flow_account(e, f, cap, now_ns);
	if (f->ring.early != early)
		e->forgot[cap == RING_CAP ? FORGOT_FLOW_FULL
			  : room	  ? FORGOT_NO_MEMORY
					  : FORGOT_USER_FULL]++;
	f->packets++;
	e->media++;
}
