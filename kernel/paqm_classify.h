/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Recogniser: what is a packet evidence for, which flow does it belong to, may a
 * message quote it?
 *
 * UDP is told apart by the first bytes of its payload, RFC 7983 and RFC 9443: RTP
 * (also within TURN channels), RTCP, STUN, ZRTP and DTLS handshakes are media's,
 * QUIC and everything on UDP port 443 is elastic. One packet proves nothing: a
 * quarter of all random payloads begins like RTP. So for RTP this file only
 * reports sequence number and SSRC; paqm_flows.h decides when a flow has gone on
 * like RTP for some packets. Small request traffic (DNS, DHCP, NTP), control and
 * ICMP ride with media but are never counted as flows.
 *
 * Tunnels count as their outer flow. IP within VLAN tags, MPLS labels or PPPoE is
 * found, but never quoted: its sender may live in another address space. Headers
 * are read with skb_header_pointer() only, so nothing is assumed about what is
 * linear.
 */
#ifndef PAQM_CLASSIFY_H
#define PAQM_CLASSIFY_H

#include <linux/icmp.h>
#include <linux/if_ether.h>
#include <linux/if_vlan.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/minmax.h>
#include <linux/siphash.h>
#include <linux/skbuff.h>
#include <linux/udp.h>
#include <net/dsfield.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include "uapi/linux/pkt_sched_paqm.h"
#include "core/paqm_msg.h"
#include "paqm_compat.h"

enum paqm_class { PAQM_MEDIA, PAQM_ELASTIC, PAQM_CLASSES };

/**
 * enum paqm_kind - what a packet is evidence for
 * @PAQM_KIND_ELASTIC: elastic, counted in its flow
 * @PAQM_KIND_UNKNOWN_UDP: UDP that does not look like media; elastic unless its flow is RTP
 * @PAQM_KIND_RTP: media if its flow goes on like RTP
 * @PAQM_KIND_MEDIA: media by rule, counted in its flow
 * @PAQM_KIND_SMALL: requests and control: rides with media, no flow
 * @PAQM_KIND_OTHER: nothing that could be counted: elastic, no flow
 */
enum paqm_kind {
	PAQM_KIND_ELASTIC,
	PAQM_KIND_UNKNOWN_UDP,
	PAQM_KIND_RTP,
	PAQM_KIND_MEDIA,
	PAQM_KIND_SMALL,
	PAQM_KIND_OTHER,
};

/* Rare things worth a counter, bits of struct paqm_packet's @note. */
#define PAQM_NOTE_NOT_IP BIT(0)
#define PAQM_NOTE_TAGGED BIT(1)
#define PAQM_NOTE_TUNNEL BIT(2)
#define PAQM_NOTE_FRAGMENT BIT(3)
#define PAQM_NOTE_DSCP BIT(4)

#define PAQM_TAGS_MAX 8 /* VLAN tags or MPLS labels that are looked through */

/**
 * struct paqm_rules - what the recogniser is told
 * @key: of the flow hash
 * @dscp_media: bit n: DSCP n is media
 * @dscp_elastic: bit n: DSCP n is elastic
 * @protocol: all UDP is media (`classify protocol`)
 */
struct paqm_rules {
	siphash_key_t key;
	u64 dscp_media;
	u64 dscp_elastic;
	bool protocol;
};

/**
 * struct paqm_packet - what the recogniser found out
 * @hash: 64 bit flow identity, 0 when the packet is not counted in a flow
 * @kind: enum paqm_kind
 * @note: PAQM_NOTE_*
 * @family: 4, 6; 0: no IP
 * @proto: transport protocol
 * @quotable: UDP in a whole packet without options or extension headers whose network
 *	header is the skb's: what a message may quote
 * @seq: RTP sequence number, for PAQM_KIND_RTP
 * @ssrc: RTP SSRC, the same
 * @ports: source and destination port, 0 where not known
 * @net: IP header, in the packet or in @buf
 * @buf: copy of a header that is not linear
 */
struct paqm_packet {
	u64 hash;
	u8 kind;
	u8 note;
	u8 family;
	u8 proto;
	bool quotable;
	u16 seq;
	u32 ssrc;
	__be32 ports;
	const void *net;
	union {
		struct iphdr ip;
		struct ipv6hdr ip6;
	} buf;
};

/* UDP ports whose traffic has a known nature. */
static inline int paqm_port_kind(u16 port)
{
	switch (port) {
	case 53:   /* DNS */
	case 67:   /* DHCP */
	case 68:
	case 123:  /* NTP */
	case 546:  /* DHCPv6 */
	case 547:
	case 5353: /* mDNS */
		return PAQM_KIND_SMALL;
	case 443:  /* QUIC, and DTLS VPNs */
		return PAQM_KIND_ELASTIC;
	}
	return -1;
}

static inline bool paqm_tunnel_port(u16 port)
{
	switch (port) {
	case 1701:  /* L2TP */
	case 4500:  /* IPsec through NAT */
	case 4789:  /* VXLAN */
	case 6081:  /* Geneve */
	case 8472:  /* VXLAN of Linux */
	case 51820: /* WireGuard */
		return true;
	}
	return false;
}

static inline bool paqm_tunnel_proto(u8 proto)
{
	switch (proto) {
	case IPPROTO_IPIP:
	case IPPROTO_IPV6:
	case IPPROTO_GRE:
	case IPPROTO_ESP:
	case IPPROTO_AH:
	case 97:  /* EtherIP */
	case 115: /* L2TPv3 */
		return true;
	}
	return false;
}

/**
 * paqm_rtp() - does a payload look like RTP (RFC 3550 section 5.1) or RTCP?
 * @h: first 12 bytes of the payload
 * @len: length of the payload, at least 12
 * @p: takes sequence number and SSRC
 *
 * RTCP shares RTP's range and is told by its packet type, RFC 5761 section 4.
 *
 * Return: what the packet is evidence for.
 */
static inline enum paqm_kind paqm_rtp(const u8 *h, unsigned int len, struct paqm_packet *p)
{
	unsigned int hdr = 12 + 4 * (h[0] & 15);

	if (h[1] >= 192 && h[1] <= 223)
		return PAQM_KIND_SMALL;
	if (h[0] & 16) /* a header extension: at least its own header */
		hdr += 4;
	if (hdr > len)
		return PAQM_KIND_UNKNOWN_UDP;
	p->seq = (u16)h[2] << 8 | h[3];
	p->ssrc = (u32)h[8] << 24 | (u32)h[9] << 16 | (u32)h[10] << 8 | h[11];
	return PAQM_KIND_RTP;
}

/**
 * paqm_udp_kind() - demultiplex a UDP payload by its beginning
 * @h: first 16 bytes; beyond @len their value does not matter
 * @len: length of the payload
 * @p: takes what RTP says, and the note that it is a tunnel
 *
 * Return: what the packet is evidence for.
 */
static inline enum paqm_kind paqm_udp_kind(const u8 *h, unsigned int len, struct paqm_packet *p)
{
	unsigned int inner;

	if (len < 12) /* keep-alives; too short for RTP, STUN has 20 */
		return PAQM_KIND_SMALL;
	switch (h[0]) {
	case 128 ... 191:
		return paqm_rtp(h, len, p);
	case 0 ... 4:
		/* the cookie of RFC 8489; WireGuard begins with a type and three zeros */
		if (h[4] == 0x21 && h[5] == 0x12 && h[6] == 0xA4 && h[7] == 0x42)
			return PAQM_KIND_SMALL;
		if (h[0] && !h[1] && !h[2] && !h[3])
			p->note |= PAQM_NOTE_TUNNEL;
		return PAQM_KIND_UNKNOWN_UDP;
	case 16 ... 19: /* ZRTP */
		return PAQM_KIND_SMALL;
	case 20 ... 22: /* DTLS handshake; its data (23 and 32..63) may be anything */
		return h[1] == 0xFE || h[1] == 1 ? PAQM_KIND_SMALL : PAQM_KIND_UNKNOWN_UDP;
	case 64 ... 79:
		/* a TURN channel (RFC 8656 section 12.4) says its length, QUIC does not */
		inner = (unsigned int)h[2] << 8 | h[3];
		if (len >= 16 && inner >= 12 && inner <= len - 4 && len - 4 - inner < 4 &&
		    (h[4] & 0xC0) == 0x80)
			return paqm_rtp(h + 4, inner, p);
		return PAQM_KIND_UNKNOWN_UDP;
	}
	return PAQM_KIND_UNKNOWN_UDP;
}

/* UDP whose header is at @off. */
static inline enum paqm_kind paqm_classify_udp(const struct sk_buff *skb, unsigned int off,
					       const struct paqm_rules *r, struct paqm_packet *p)
{
	u16 sport = ntohl(p->ports) >> 16, dport = ntohl(p->ports) & 0xFFFF;
	struct {
		struct udphdr udp;
		u8 payload[16];
	} buf;
	unsigned int len, said;
	const u8 *h;
	int kind;

	if (r->protocol)
		return PAQM_KIND_MEDIA;
	kind = paqm_port_kind(dport);
	if (kind < 0)
		kind = paqm_port_kind(sport);
	if (kind >= 0)
		return kind;
	if (paqm_tunnel_port(dport) || paqm_tunnel_port(sport)) {
		p->note |= PAQM_NOTE_TUNNEL;
		return PAQM_KIND_ELASTIC;
	}
	len = skb->len - off;
	h = skb_header_pointer(skb, off, min_t(unsigned int, len, sizeof(buf)), &buf);
	if (!h || len < sizeof(buf.udp))
		return PAQM_KIND_UNKNOWN_UDP;
	/* what stands behind the payload is padding; an offload packet may not say its length */
	said = (unsigned int)h[4] << 8 | h[5];
	if (said >= sizeof(buf.udp) && !skb_is_gso(skb))
		len = min(len, said);
	return paqm_udp_kind(h + sizeof(buf.udp), len - sizeof(buf.udp), p);
}

/* Look through VLAN tags, MPLS labels and PPPoE; returns the protocol at *off. */
static inline __be16 paqm_untag(const struct sk_buff *skb, __be16 proto, int *off)
{
	u8 buf[8];
	const u8 *h;
	int i;

	/* a tag may stand before what the skb calls its network header */
	if (*off > ETH_HLEN && eth_type_vlan(proto))
		*off = ETH_HLEN;
	for (i = 0; i < PAQM_TAGS_MAX && eth_type_vlan(proto); i++) {
		h = skb_header_pointer(skb, *off, VLAN_HLEN, buf);
		if (!h)
			return 0;
		proto = htons((u16)h[2] << 8 | h[3]);
		*off += VLAN_HLEN;
	}
	if (proto == htons(ETH_P_PPP_SES)) {
		h = skb_header_pointer(skb, *off, 8, buf);
		if (!h)
			return 0;
		*off += 8;
		if (!h[6] && h[7] == 0x21)
			return htons(ETH_P_IP);
		return !h[6] && h[7] == 0x57 ? htons(ETH_P_IPV6) : 0;
	}
	if (proto != htons(ETH_P_MPLS_UC) && proto != htons(ETH_P_MPLS_MC))
		return proto;
	for (i = 0; i < PAQM_TAGS_MAX; i++) {
		h = skb_header_pointer(skb, *off, 5, buf);
		if (!h)
			return 0;
		*off += 4;
		if (h[2] & 1) { /* bottom of the stack: the nibble behind it tells */
			if (h[4] >> 4 == 4)
				return htons(ETH_P_IP);
			return h[4] >> 4 == 6 ? htons(ETH_P_IPV6) : 0;
		}
	}
	return 0;
}

/*
 * SipHash-1-3 of some words: what the kernel uses for hash tables on 64 bit machines
 * (hsiphash()), but with all 64 bits of the result.
 */
static __always_inline u64 paqm_hash_words(const u64 *word, unsigned int n,
					   const siphash_key_t *key)
{
	u64 v0 = SIPHASH_CONST_0 ^ key->key[0], v1 = SIPHASH_CONST_1 ^ key->key[1];
	u64 v2 = SIPHASH_CONST_2 ^ key->key[0], v3 = SIPHASH_CONST_3 ^ key->key[1];
	u64 end = (u64)n << 59; /* length in bytes, in the last word's uppermost byte */
	unsigned int i;

	for (i = 0; i < n; i++) {
		v3 ^= word[i];
		SIPHASH_PERMUTATION(v0, v1, v2, v3);
		v0 ^= word[i];
	}
	v3 ^= end;
	SIPHASH_PERMUTATION(v0, v1, v2, v3);
	v0 ^= end;
	v2 ^= 0xFF;
	SIPHASH_PERMUTATION(v0, v1, v2, v3);
	SIPHASH_PERMUTATION(v0, v1, v2, v3);
	SIPHASH_PERMUTATION(v0, v1, v2, v3);
	return v0 ^ v1 ^ v2 ^ v3;
}

static inline u64 paqm_flow_hash(const struct paqm_packet *p, const siphash_key_t *key)
{
	u64 rest = (u64)ntohl(p->ports) << 8 | p->proto, hash;

	if (likely(p->family == 4)) {
		const struct iphdr *ip = p->net;
		u64 in[] = { (u64)(__force u32)ip->saddr << 32 | (__force u32)ip->daddr, rest };

		hash = paqm_hash_words(in, ARRAY_SIZE(in), key);
	} else {
		const struct ipv6hdr *ip6 = p->net;
		u64 in[] = { get_unaligned((const u64 *)&ip6->saddr.s6_addr[0]),
			     get_unaligned((const u64 *)&ip6->saddr.s6_addr[8]),
			     get_unaligned((const u64 *)&ip6->daddr.s6_addr[0]),
			     get_unaligned((const u64 *)&ip6->daddr.s6_addr[8]), rest };

		hash = paqm_hash_words(in, ARRAY_SIZE(in), key);
	}
	return hash ? hash : 1;
}

/* The IP header at @off into @p; returns the offset behind it, negative if it is none. */
static inline int paqm_classify_ip(const struct sk_buff *skb, __be16 proto, int off,
				   struct paqm_packet *p, u8 *dscp)
{
	if (proto == htons(ETH_P_IP)) {
		const struct iphdr *ip =
			skb_header_pointer(skb, off, sizeof(p->buf.ip), &p->buf.ip);

		if (!ip || ip->version != 4 || ip->ihl < 5)
			return -1;
		p->net = ip;
		p->family = 4;
		p->proto = ip->protocol;
		*dscp = ip->tos >> 2;
		if (ip->frag_off & htons(IP_OFFSET))
			p->note |= PAQM_NOTE_FRAGMENT;
		p->quotable = off == skb_network_offset(skb) && ip->ihl == 5 &&
			      ip->protocol == IPPROTO_UDP && !ip_is_fragment(ip) &&
			      ntohs(ip->tot_len) >= sizeof(*ip) + 8 + PAQM_QUOTE_UDP;
		return off + ip->ihl * 4;
	}
	if (proto == htons(ETH_P_IPV6)) {
		const struct ipv6hdr *ip6 =
			skb_header_pointer(skb, off, sizeof(p->buf.ip6), &p->buf.ip6);
		__be16 frag = 0;
		int next;

		if (!ip6 || ip6->version != 6)
			return -1;
		p->net = ip6;
		p->family = 6;
		p->proto = ip6->nexthdr;
		*dscp = ipv6_get_dsfield(ip6) >> 2;
		p->quotable = off == skb_network_offset(skb) && ip6->nexthdr == IPPROTO_UDP &&
			      ntohs(ip6->payload_len) >= 8 + PAQM_QUOTE_UDP;
		off += sizeof(*ip6);
		if (likely(!ipv6_ext_hdr(ip6->nexthdr)))
			return off;
		next = ipv6_skip_exthdr(skb, off, &p->proto, &frag);
		if (next < 0) { /* cut within its headers: still a flow of two hosts */
			p->proto = IPPROTO_NONE;
			return off;
		}
		if (frag & htons(IP6_OFFSET))
			p->note |= PAQM_NOTE_FRAGMENT;
		return next;
	}
	return -1;
}

/**
 * paqm_identify() - first half of the recogniser: headers and flow
 * @skb: packet, network header set
 * @r: rules
 * @p: result, all but what the payload of UDP tells
 *
 * Return: offset of the UDP header if there is one to be looked into, else 0.
 */
static inline unsigned int paqm_identify(const struct sk_buff *skb, const struct paqm_rules *r,
					 struct paqm_packet *p)
{
	__be16 proto = skb->protocol;
	int off = skb_network_offset(skb);
	const __be32 *ports;
	u8 dscp;

	p->hash = 0;
	p->kind = PAQM_KIND_OTHER;
	p->note = 0;
	p->family = 0;
	p->quotable = false;
	p->ports = 0;

	if (unlikely(proto != htons(ETH_P_IP) && proto != htons(ETH_P_IPV6))) {
		__be16 inner = paqm_untag(skb, proto, &off);

		if (inner != proto)
			p->note |= PAQM_NOTE_TAGGED;
		proto = inner;
	}
	off = paqm_classify_ip(skb, proto, off, p, &dscp);
	if (unlikely(off < 0)) {
		p->family = 0;
		p->note |= PAQM_NOTE_NOT_IP;
		return 0;
	}
	switch (p->proto) {
	case IPPROTO_UDP:
	case IPPROTO_TCP:
	case IPPROTO_UDPLITE:
	case IPPROTO_SCTP:
	case IPPROTO_DCCP:
		if (unlikely(p->note & PAQM_NOTE_FRAGMENT))
			break; /* its ports are in another packet */
		ports = skb_header_pointer(skb, off, sizeof(p->ports), &p->ports);
		if (unlikely(!ports)) {
			p->quotable = false;
			return 0;
		}
		p->ports = *ports;
		break;
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		p->kind = PAQM_KIND_SMALL;
		return 0;
	default:
		if (paqm_tunnel_proto(p->proto))
			p->note |= PAQM_NOTE_TUNNEL;
	}
	p->hash = paqm_flow_hash(p, &r->key);
	p->kind = PAQM_KIND_ELASTIC;
	if (unlikely((r->dscp_media | r->dscp_elastic) >> dscp & 1)) {
		p->note |= PAQM_NOTE_DSCP;
		if (r->dscp_media >> dscp & 1)
			p->kind = PAQM_KIND_MEDIA;
		return 0;
	}
	return p->proto == IPPROTO_UDP && likely(!(p->note & PAQM_NOTE_FRAGMENT)) ? off : 0;
}

/**
 * paqm_look_into() - second half: what the payload of UDP tells
 * @skb: packet
 * @r: rules
 * @off: what paqm_identify() returned
 * @p: its result, completed
 */
static inline void paqm_look_into(const struct sk_buff *skb, const struct paqm_rules *r,
				  unsigned int off, struct paqm_packet *p)
{
	if (!off)
		return;
	p->kind = paqm_classify_udp(skb, off, r, p);
	if (p->kind == PAQM_KIND_SMALL) {
		p->hash = 0;
		p->quotable = false;
	}
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
	paqm_look_into(skb, r, paqm_identify(skb, r, p), p);
}

#endif /* PAQM_CLASSIFY_H */
