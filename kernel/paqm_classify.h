/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Recogniser: is a packet media or elastic, which flow does it belong to, may a
 * message quote it?
 *
 * First byte of the UDP payload as in RFC 7983 and RFC 9443: RTP and RTCP, STUN
 * and DTLS are media, QUIC and everything on UDP port 443 is elastic. Small
 * request traffic (DNS, DHCP, NTP) and ICMP ride with media but are never counted
 * as flows. Headers are read with skb_header_pointer() only, so nothing is
 * assumed about what is linear.
 */
#ifndef PAQM_CLASSIFY_H
#define PAQM_CLASSIFY_H

#include <linux/icmp.h>
#include <linux/if_vlan.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/siphash.h>
#include <linux/skbuff.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include "uapi/linux/pkt_sched_paqm.h"
#include "core/paqm_msg.h"
#include "paqm_compat.h"

enum paqm_class { PAQM_MEDIA, PAQM_ELASTIC, PAQM_CLASSES };

/**
 * struct paqm_packet - what the recogniser found out
 * @hash: 64 bit flow identity, 0 when the packet is not counted in a flow
 * @class: queue it goes to
 * @ip: is IPv4 or IPv6
 * @quotable: counted IPv4/UDP without options, no fragment, long enough to prove that a
 *	quote of it comes from the path; only media is told
 */
struct paqm_packet {
	u64 hash;
	enum paqm_class class;
	bool ip;
	bool quotable;
};

/* Request traffic that is never a flow of its own. */
static inline bool paqm_small_service(u16 port)
{
	switch (port) {
	case 53:   /* DNS */
	case 67:   /* DHCP */
	case 68:
	case 123:  /* NTP */
	case 546:  /* DHCPv6 */
	case 547:
	case 5353: /* mDNS */
		return true;
	}
	return false;
}

enum paqm_udp { PAQM_UDP_RTP, PAQM_UDP_MEDIA_CONTROL, PAQM_UDP_ELASTIC };

/**
 * paqm_udp_kind() - demultiplex the beginning of a UDP payload
 * @first: first two payload bytes
 * @len: how many there are
 *
 * RTCP shares RTP's range and is told by its packet type, RFC 5761 section 4.
 */
static inline enum paqm_udp paqm_udp_kind(const u8 *first, unsigned int len)
{
	if (len < 2)
		return PAQM_UDP_MEDIA_CONTROL;
	if (first[0] >= 128 && first[0] <= 191)
		return first[1] >= 192 && first[1] <= 223 ? PAQM_UDP_MEDIA_CONTROL : PAQM_UDP_RTP;
	if (first[0] <= 3 || (first[0] >= 20 && first[0] <= 63))
		return PAQM_UDP_MEDIA_CONTROL; /* STUN, DTLS */
	return PAQM_UDP_ELASTIC;
}

static inline u64 paqm_flow_hash(u64 a, u64 b, u32 ports, u8 proto, const siphash_key_t *key)
{
	u64 hash = siphash_3u64(a, b, (u64)ports << 8 | proto, key);

	return hash ? hash : 1;
}

/* UDP, whose ports are @ports (network order) and whose payload is at @off. */
static inline void paqm_classify_udp(const struct sk_buff *skb, int off, __be32 ports, u32 mode,
				     struct paqm_packet *p, bool *counted)
{
	u16 sport = ntohl(ports) >> 16, dport = ntohl(ports) & 0xFFFF;
	u8 first[2];
	const u8 *head;

	*counted = false;
	p->class = PAQM_MEDIA;
	if (mode == PAQM_CLASSIFY_PROTOCOL) {
		*counted = true;
		return;
	}
	if (paqm_small_service(sport) || paqm_small_service(dport))
		return;
	if (sport == 443 || dport == 443) {
		p->class = PAQM_ELASTIC;
		*counted = true;
		return;
	}
	head = skb_header_pointer(skb, off, sizeof(first), first);
	switch (paqm_udp_kind(head, head ? 2 : 0)) {
	case PAQM_UDP_RTP:
		*counted = true;
		break;
	case PAQM_UDP_MEDIA_CONTROL:
		break;
	case PAQM_UDP_ELASTIC:
		p->class = PAQM_ELASTIC;
		*counted = true;
		break;
	}
}

/**
 * paqm_classify() - recognise a packet
 * @skb: packet, network header set
 * @mode: PAQM_CLASSIFY_AUTO or _PROTOCOL (all UDP is media)
 * @key: hash key of the qdisc
 * @p: result
 */
static inline void paqm_classify(const struct sk_buff *skb, u32 mode, const siphash_key_t *key,
				 struct paqm_packet *p)
{
	int off = skb_network_offset(skb);
	bool counted = true, ports_known = true;
	__be32 ports_buf;
	const __be32 *ports;
	u64 a, b;
	u8 proto;

	p->hash = 0;
	p->class = PAQM_ELASTIC;
	p->ip = true;
	p->quotable = false;

	switch (skb_protocol(skb, true)) {
	case htons(ETH_P_IP): {
		struct iphdr buf;
		const struct iphdr *ip = skb_header_pointer(skb, off, sizeof(buf), &buf);

		if (!ip || ip->version != 4 || ip->ihl < 5)
			goto not_ip;
		proto = ip->protocol;
		a = (__force u32)ip->saddr;
		b = (__force u32)ip->daddr;
		off += ip->ihl * 4;
		ports_known = !(ip->frag_off & htons(IP_OFFSET));
		p->quotable = ip->ihl == 5 && !ip_is_fragment(ip) &&
			      ntohs(ip->tot_len) >= sizeof(*ip) + 8 + PAQM_QUOTE_UDP;
		break;
	}
	case htons(ETH_P_IPV6): {
		struct ipv6hdr buf;
		const struct ipv6hdr *ip6 = skb_header_pointer(skb, off, sizeof(buf), &buf);
		__be16 frag = 0;
		int next;

		if (!ip6 || ip6->version != 6)
			goto not_ip;
		proto = ip6->nexthdr;
		a = (__force u64)(*(const __be64 *)&ip6->saddr.s6_addr32[0] ^
				  *(const __be64 *)&ip6->daddr.s6_addr32[2]);
		b = (__force u64)(*(const __be64 *)&ip6->saddr.s6_addr32[2] ^
				  *(const __be64 *)&ip6->daddr.s6_addr32[0]);
		next = ipv6_skip_exthdr(skb, off + sizeof(buf), &proto, &frag);
		if (next < 0)
			return;
		off = next;
		ports_known = !(frag & htons(~0x7));
		break;
	}
	default:
		goto not_ip;
	}

	if (proto == IPPROTO_ICMP || proto == IPPROTO_ICMPV6) {
		p->class = PAQM_MEDIA;
		return;
	}
	ports_buf = 0;
	ports = &ports_buf;
	if (ports_known && (proto == IPPROTO_TCP || proto == IPPROTO_UDP ||
			    proto == IPPROTO_UDPLITE || proto == IPPROTO_SCTP ||
			    proto == IPPROTO_DCCP)) {
		ports = skb_header_pointer(skb, off, sizeof(ports_buf), &ports_buf);
		if (!ports)
			return;
	}
	if (proto == IPPROTO_UDP && ports_known)
		paqm_classify_udp(skb, off + 8, *ports, mode, p, &counted);
	p->quotable = p->quotable && proto == IPPROTO_UDP && counted;
	if (counted)
		p->hash = paqm_flow_hash(a, b, ntohl(*ports), proto, key);
	return;

not_ip:
	p->ip = false;
	p->quotable = false;
}

#endif /* PAQM_CLASSIFY_H */
