// SPDX-License-Identifier: GPL-2.0
/* Which datagram is a fragment of, and where did its first one go? Under the qdisc lock. */
#include "paqm_flows.h"
#include "paqm_fragment.h"

/*
 * Who reassembles waits for 30 s or more, but what comes so late comes out of order in any case,
 * and IPv4 has 65536 identifications only: at 1 Gbit/s they come again every second.
 */
#define PAQM_DATAGRAM_NS NSEC_PER_SEC

/* Addresses, protocol and identification: RFC 791 section 2.3, RFC 8200 section 4.5. */
static u64 paqm_datagram_key(const struct paqm_packet *p, const struct paqm_rules *r)
{
	if (p->family == 4)
		return paqm_flow_hash4(p->net, htonl(p->id), paqm_hashed(p, p->proto), r->key);
	return paqm_flow_hash6(p->net, htonl(p->id), paqm_hashed(p, NEXTHDR_FRAGMENT), r->key);
}

static u32 paqm_datagram_place(u64 key)
{
	BUILD_BUG_ON(PAQM_DATAGRAMS & (PAQM_DATAGRAMS - 1));
	return (key >> 40) % PAQM_DATAGRAMS; /* bit 32 is always set */
}

/**
 * paqm_fragment_first() - remember a datagram
 * @table: PAQM_DATAGRAMS of them
 * @p: its first fragment
 * @r: with the key of the hash
 * @class: where that went
 * @now_tick: time
 */
void paqm_fragment_first(struct paqm_datagram *table, const struct paqm_packet *p,
			 const struct paqm_rules *r, u8 class, u32 now_tick)
{
	u64 key = paqm_datagram_key(p, r);

	table[paqm_datagram_place(key)] = (struct paqm_datagram){
		.key = key,
		.flow = p->hash ?: p->apart,
		.tick = now_tick,
		.ports = p->ports,
		.kind = p->kind,
		.class = class,
	};
}

/**
 * paqm_fragment_later() - find the datagram of a later fragment
 * @table: of paqm_fragment_first()
 * @p: the fragment; its flow and kind become those of the first one
 * @r: with the key of the hash
 * @now_tick: time
 * @class: takes where the first one went
 *
 * Return: whether @class says where it belongs; if not, its kind decides.
 */
bool paqm_fragment_later(const struct paqm_datagram *table, struct paqm_packet *p,
			 const struct paqm_rules *r, u32 now_tick, u8 *class)
{
	u64 key = paqm_datagram_key(p, r);
	const struct paqm_datagram *d = &table[paqm_datagram_place(key)];

	if (d->key != key || now_tick - d->tick > paqm_flow_clock(PAQM_DATAGRAM_NS))
		return false;
	p->kind = d->kind;
	p->ports = d->ports;
	if (p->kind == PAQM_KIND_SMALL || p->kind == PAQM_KIND_CONTROL) { /* within a budget */
		p->hash = 0;
		p->apart = d->flow;
		return false;
	}
	p->hash = d->flow;
	*class = d->class;
	return true;
}
