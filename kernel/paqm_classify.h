/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Recogniser: what is a packet evidence for, which flow does it belong to, may a message quote it?
 * Here what finds the flow of an ordinary packet, the rest is in paqm_classify.c.
 */
#ifndef PAQM_CLASSIFY_H
#define PAQM_CLASSIFY_H

#include <linux/if_vlan.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/skbuff.h>
#include <net/dsfield.h>
#include <net/ip.h>
#include "uapi/linux/pkt_sched_paqm.h"
#include "core/paqm_quote.h"
#include "paqm_compat.h"

enum paqm_class { PAQM_MEDIA, PAQM_ELASTIC, PAQM_CLASSES };

/**
 * enum paqm_kind - what a packet is evidence for
 * @PAQM_KIND_ELASTIC: elastic, counted in its flow
 * @PAQM_KIND_UDP: UDP whose payload was not looked into
 * @PAQM_KIND_UNKNOWN_UDP: UDP that does not look like media; elastic unless its flow is RTP
 * @PAQM_KIND_RTP: media if its flow goes on like RTP
 * @PAQM_KIND_MEDIA: media by rule, counted in its flow
 * @PAQM_KIND_SMALL: requests: rides with media, no flow
 * @PAQM_KIND_CONTROL: of the network itself: the same, and not dropped by the inner law
 * @PAQM_KIND_OTHER: nothing that could be counted: elastic, no flow
 */
enum paqm_kind {
	PAQM_KIND_ELASTIC,
	PAQM_KIND_UDP,
	PAQM_KIND_UNKNOWN_UDP,
	PAQM_KIND_RTP,
	PAQM_KIND_MEDIA,
	PAQM_KIND_SMALL,
	PAQM_KIND_CONTROL,
	PAQM_KIND_OTHER,
};

/* Rare things worth a counter, bits of struct paqm_packet's @note. */
#define PAQM_NOTE_NOT_IP BIT(0)
#define PAQM_NOTE_TAGGED BIT(1)
#define PAQM_NOTE_TUNNEL BIT(2)
#define PAQM_NOTE_FRAGMENT BIT(3)
#define PAQM_NOTE_DSCP BIT(4)

/* Network control: DSCP CS6 and CS7, as routing daemons mark (RFC 2474, RFC 4594). */
#define PAQM_DSCP_CONTROL (BIT_ULL(48) | BIT_ULL(56))

#define PAQM_HASH_WORDS 6
#define PAQM_HASH_SET BIT_ULL(32) /* set in every hash: 0 is none, nor is its upper half 0 */
#define PAQM_SPACE_BITS 24
#define PAQM_SPACE_SHIFT 40 /* place of an address space in what is hashed */

/**
 * struct paqm_rules - what the recogniser is told
 * @key: of the flow hash, secret
 * @dscp_media: bit n: DSCP n is media
 * @dscp_elastic: bit n: DSCP n is elastic
 * @dscp_any: bit n: a rule decides by DSCP n
 * @protocol: all UDP is media (`classify protocol`)
 */
struct paqm_rules {
	u64 key[PAQM_HASH_WORDS];
	u64 dscp_media;
	u64 dscp_elastic;
	u64 dscp_any;
	bool protocol;
};

/**
 * struct paqm_packet - what the recogniser found out
 * @hash: 64 bit flow identity, 0 when the packet is not counted in a flow
 * @apart: if it is not: what tells its queue from those of others, beyond the budget of its kind
 * @kind: enum paqm_kind
 * @note: PAQM_NOTE_*
 * @family: 4, 6; 0: no IP
 * @proto: transport protocol
 * @quotable: UDP in a whole packet without options or extension headers whose network
 *	header is the skb's: what a message may quote, unless paqm_foreign_tags()
 * @space: VLAN, MPLS labels, PPPoE session; 0: none. Each may have the same addresses
 * @seq: RTP sequence number, for PAQM_KIND_RTP
 * @ssrc: RTP SSRC, the same
 * @piece: a fragment, also the first; PAQM_NOTE_FRAGMENT only stands for the others
 * @id: of its datagram
 * @ports: source and destination port, 0 where not known
 * @net: IP header, in the packet or in @buf
 * @buf: copy of a header that is not linear
 */
struct paqm_packet {
	u64 hash;
	u64 apart;
	u8 kind;
	u8 note;
	u8 family;
	u8 proto;
	bool quotable;
	u32 space;
	u16 seq;
	u32 ssrc;
	bool piece;
	u32 id;
	__be32 ports;
	const void *net;
	union {
		struct iphdr ip;
		struct ipv6hdr ip6;
	} buf;
};

/* paqm_classify.c */
bool paqm_behind_tags(struct sk_buff *skb);
unsigned int paqm_identify(const struct sk_buff *skb, const struct paqm_rules *r,
			   struct paqm_packet *p);
void paqm_look_into(const struct sk_buff *skb, unsigned int off, struct paqm_packet *p);

/* (@a + k0) (@b + k1) modulo 2^128, its halves put together. */
static inline u64 paqm_hash_pair(u64 a, u64 b, const u64 *key)
{
	a += key[0];
	b += key[1];
	return (a * b) ^ mul_u64_u64_shr(a, b, 64);
}

/* The address space within @space that a tag tells; exact for two VLAN tags. */
static inline u32 paqm_space_within(u32 space, u32 id)
{
	return ((space << 12 | space >> (PAQM_SPACE_BITS - 12)) ^ id) &
	       ((1U << PAQM_SPACE_BITS) - 1);
}

/* That of a tag beside the packet, where it is hashed. A tag with a priority alone names none. */
static __always_inline u64 paqm_space_beside(const struct sk_buff *skb)
{
	return unlikely(skb_vlan_tag_present(skb)) ?
		       (u64)(skb_vlan_tag_get(skb) & VLAN_VID_MASK) << PAQM_SPACE_SHIFT : 0;
}

/*
 * NH of UMAC (Black et al., CRYPTO 1999, section 4): for whoever does not know the key,
 * two flows collide in the product with probability 2^-64. Nobody sees a hash, so no
 * more is needed, and SipHash would cost ten times as much. @what: the protocol, and the address
 * space from PAQM_SPACE_SHIFT on.
 */
static __always_inline u64 paqm_flow_hash4(const struct iphdr *ip, __be32 ports, u64 what,
					   const u64 *key)
{
	/* source and destination at once */
	u64 addresses = get_unaligned_le64(&ip->saddr);

	return PAQM_HASH_SET | paqm_hash_pair(addresses, (u64)(__force u32)ports << 8 | what, key);
}

static __always_inline u64 paqm_flow_hash6(const struct ipv6hdr *ip6, __be32 ports, u64 what,
					   const u64 *key)
{
	const u8 *addr = (const u8 *)&ip6->saddr;
	u64 hash;

	hash = paqm_hash_pair(get_unaligned_le64(addr), get_unaligned_le64(addr + 8), key);
	hash += paqm_hash_pair(get_unaligned_le64(addr + 16), get_unaligned_le64(addr + 24),
			       key + 2);
	hash += paqm_hash_pair((u64)(__force u32)ports << 8 | what, 6, key + 4);
	return PAQM_HASH_SET | hash;
}

/* What is hashed of a packet beside addresses and ports. */
static inline u64 paqm_hashed(const struct paqm_packet *p, u8 proto)
{
	return proto | (u64)p->space << PAQM_SPACE_SHIFT;
}

/* Rules by DSCP; those for network control may be overruled. */
static inline void paqm_rules_dscp(struct paqm_rules *r, u64 media, u64 elastic)
{
	r->dscp_media = media;
	r->dscp_elastic = elastic;
	r->dscp_any = media | elastic | PAQM_DSCP_CONTROL;
}

/* UDP or TCP about which no rule decides by its DSCP? */
static __always_inline bool paqm_is_plain(const struct paqm_rules *r, u8 proto, u8 dscp)
{
	if (proto != IPPROTO_UDP && proto != IPPROTO_TCP)
		return false;
	return !(r->dscp_any >> dscp & 1);
}

/**
 * paqm_plain_flow() - the flow of an ordinary packet, at the least cost
 * @skb: packet, network header set
 * @r: rules
 *
 * Ordinary is TCP or UDP straight behind an IPv4 header without options or an IPv6
 * header, no fragment, its headers linear and not tagged, and no rule decides by its
 * DSCP.
 *
 * Return: the hash that paqm_identify() finds, too, or 0 if that has to look.
 */
static __always_inline u64 paqm_plain_flow(const struct sk_buff *skb, const struct paqm_rules *r)
{
	const u8 *net = skb_network_header(skb);
	long linear = skb_tail_pointer(skb) - net;

	if (likely(skb->protocol == htons(ETH_P_IP))) {
		const struct iphdr *ip = (const struct iphdr *)net;
		const __be32 *ports = (const __be32 *)(ip + 1);

		if (linear < (long)(sizeof(*ip) + sizeof(*ports)) || *net != 0x45 ||
		    ip->frag_off & htons(IP_MF | IP_OFFSET) ||
		    !paqm_is_plain(r, ip->protocol, ip->tos >> 2))
			return 0;
		return paqm_flow_hash4(ip, *ports, ip->protocol | paqm_space_beside(skb), r->key);
	}
	if (skb->protocol == htons(ETH_P_IPV6)) {
		const struct ipv6hdr *ip6 = (const struct ipv6hdr *)net;
		const __be32 *ports = (const __be32 *)(ip6 + 1);

		if (linear < (long)(sizeof(*ip6) + sizeof(*ports)) || *net >> 4 != 6 ||
		    !paqm_is_plain(r, ip6->nexthdr, ipv6_get_dsfield(ip6) >> 2))
			return 0;
		return paqm_flow_hash6(ip6, *ports, ip6->nexthdr | paqm_space_beside(skb), r->key);
	}
	return 0;
}

/**
 * paqm_classify() - recognise a packet
 * @skb: packet, network header set
 * @r: rules
 * @p: result
 */
static inline void paqm_classify(const struct sk_buff *skb, const struct paqm_rules *r,
				 struct paqm_packet *p)
{
	unsigned int off = paqm_identify(skb, r, p);

	if (off)
		paqm_look_into(skb, off, p);
}

#endif /* PAQM_CLASSIFY_H */
