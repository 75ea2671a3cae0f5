// SPDX-License-Identifier: GPL-2.0
/*
 * Recogniser: what is a packet evidence for, which flow does it belong to, may a
 * message quote it?
 *
 * UDP is told apart by the first bytes of its payload, RFC 7983 and RFC 9443: RTP
 * (also within TURN channels), RTCP, STUN, ZRTP and DTLS handshakes are media's,
 * QUIC and everything on UDP port 443 is elastic. One packet proves nothing: a
 * quarter of all random payloads begins like RTP. So for RTP this file only
 * reports sequence number and SSRC; paqm_rtp.c decides when a flow has gone on
 * like RTP for some packets. Small request traffic (DNS, DHCP, NTP) and ICMP ride with
 * media but are never counted as flows; so does what keeps the network itself going
 * (ARP, neighbour discovery, routing protocols), which the inner law spares as well.
 *
 * Tunnels count as their outer flow. IP within VLAN tags, MPLS labels or PPPoE is
 * found, but quoted only if a VLAN device of this host has put the tags there
 * (paqm_foreign_tags()): else its sender may live in another address space. Headers
 * are read with skb_header_pointer() only, so nothing is assumed about what is
 * linear.
 */
#include <linux/icmp.h>
#include <linux/if_ether.h>
#include <linux/if_vlan.h>
#include <linux/udp.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include "paqm_classify.h"

#define PAQM_TAGS_MAX 8 /* VLAN tags or MPLS labels that are looked through */
#define PAQM_EXTENSIONS_MAX 8 /* the same of extension headers of IPv6 */

/*
 * One bit for each lower half of a port number that paqm_port_kind() or
 * paqm_tunnel_port() knows: most ports are ruled out by one look.
 */
static bool paqm_port_known(u16 port)
{
	static const u64 known[4] = {
		BIT_ULL(53) | BIT_ULL(34) | BIT_ULL(35) | BIT_ULL(24), /* 53, 546, 547, 8472 */
		BIT_ULL(67 - 64) | BIT_ULL(68 - 64) | BIT_ULL(123 - 64) | /* 67, 68, 123 */
			BIT_ULL(108 - 64), /* 51820 */
		BIT_ULL(187 - 128) | BIT_ULL(165 - 128) | BIT_ULL(148 - 128) | /* 443, 1701, 4500 */
			BIT_ULL(181 - 128), /* 4789 */
		BIT_ULL(233 - 192) | BIT_ULL(193 - 192), /* 5353, 6081 */
	};

	return known[port >> 6 & 3] >> (port & 63) & 1;
}

/* UDP ports whose traffic has a known nature. */
static int paqm_port_kind(u16 port)
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

static bool paqm_tunnel_port(u16 port)
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

static bool paqm_tunnel_proto(u8 proto)
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
static enum paqm_kind paqm_rtp(const u8 *h, unsigned int len, struct paqm_packet *p)
{
	unsigned int hdr = 12 + 4 * (h[0] & 15);

	if (h[1] >= 192 && h[1] <= 223)
		return PAQM_KIND_SMALL;
	if (h[0] & 16) /* a header extension: at least its own header */
		hdr += 4;
	if (hdr > len)
		return PAQM_KIND_UNKNOWN_UDP;
	p->seq = get_unaligned_be16(h + 2);
	p->ssrc = get_unaligned_be32(h + 8);
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
static enum paqm_kind paqm_udp_kind(const u8 *h, unsigned int len, struct paqm_packet *p)
{
	unsigned int inner;

	if (len < 12) /* keep-alives; too short for RTP, STUN has 20 */
		return PAQM_KIND_SMALL;
	switch (h[0]) {
	case 128 ... 191:
		return paqm_rtp(h, len, p);
	case 0 ... 4:
		/* the cookie of RFC 8489; WireGuard begins with a type and three zeros */
		if (h[4] == 0x21 && h[5] == 0x12 && h[6] == 0xA4 && h[7] == 0x42) {
			/* data of a TURN client without a channel, RFC 8656 section 11 */
			if (!h[0] && (h[1] == 0x16 || h[1] == 0x17))
				return PAQM_KIND_UNKNOWN_UDP;
			return PAQM_KIND_SMALL;
		}
		if (h[0] && !h[1] && !h[2] && !h[3])
			p->note |= PAQM_NOTE_TUNNEL;
		return PAQM_KIND_UNKNOWN_UDP;
	case 16 ... 19: /* ZRTP */
		return PAQM_KIND_SMALL;
	case 20 ... 22: /* DTLS handshake; its data (23 and 32..63) may be anything */
		return h[1] == 0xFE || h[1] == 1 ? PAQM_KIND_SMALL : PAQM_KIND_UNKNOWN_UDP;
	case PAQM_PROBE_FIRST: /* a rate for the routers on the way, beside SRTP */
		return get_unaligned_be32(h + 1) == PAQM_FIELD_MAGIC ? PAQM_KIND_SMALL :
								       PAQM_KIND_UNKNOWN_UDP;
	case 64 ... 79:
		/* a TURN channel (RFC 8656 section 12.4) says its length, QUIC does not */
		inner = get_unaligned_be16(h + 2);
		if (len >= 16 && inner >= 12 && inner <= len - 4 && len - 4 - inner < 4 &&
		    (h[4] & 0xC0) == 0x80)
			return paqm_rtp(h + 4, inner, p);
		return PAQM_KIND_UNKNOWN_UDP;
	}
	return PAQM_KIND_UNKNOWN_UDP;
}

/* What UDP is by its ports; PAQM_KIND_UDP: they do not tell. */
static enum paqm_kind paqm_udp_by_port(struct paqm_packet *p)
{
	u16 sport = ntohl(p->ports) >> 16, dport = ntohl(p->ports) & 0xFFFF;
	int kind = paqm_port_kind(dport);

	if (kind < 0)
		kind = paqm_port_kind(sport);
	if (kind >= 0)
		return kind;
	if (paqm_tunnel_port(dport) || paqm_tunnel_port(sport)) {
		p->note |= PAQM_NOTE_TUNNEL;
		return PAQM_KIND_ELASTIC;
	}
	return PAQM_KIND_UDP;
}

/* A packet is counted in no flow. */
static void paqm_no_flow(struct paqm_packet *p)
{
	p->apart = p->hash;
	p->hash = 0;
	p->quotable = false;
}

/**
 * paqm_look_into() - second half of the recogniser: what the payload of UDP tells
 * @skb: packet
 * @off: what paqm_identify() returned, not 0
 * @p: its result, completed
 */
void paqm_look_into(const struct sk_buff *skb, unsigned int off,
		    struct paqm_packet *p)
{
	struct {
		struct udphdr udp;
		u8 payload[16];
	} buf;
	unsigned int len = skb->len - off, said;
	const u8 *h;

	p->kind = PAQM_KIND_UNKNOWN_UDP;
	h = skb_header_pointer(skb, off, min_t(unsigned int, len, sizeof(buf)), &buf);
	if (!h || len < sizeof(buf.udp))
		return;
	/* what stands behind the payload is padding; an offload packet may not say its length */
	said = get_unaligned_be16(h + 4);
	if (said >= sizeof(buf.udp) && !skb_is_gso(skb))
		len = min(len, said);
	p->kind = paqm_udp_kind(h + sizeof(buf.udp), len - sizeof(buf.udp), p);
	if (p->kind == PAQM_KIND_SMALL)
		paqm_no_flow(p);
}

/* Does a packet that is no IP belong to the network itself? */
static bool paqm_control_ether(__be16 proto)
{
	switch (proto) {
	case htons(ETH_P_ARP):
	case htons(ETH_P_PAE):	  /* EAPOL */
	case htons(ETH_P_SLOW):	  /* LACP */
	case htons(ETH_P_LLDP):
	case htons(ETH_P_802_2):  /* spanning tree, IS-IS */
	case htons(ETH_P_CFM):
	case htons(ETH_P_PPP_DISC):
		return true;
	}
	return false;
}

/* Routing and multicast protocols straight above IP. */
static bool paqm_control_proto(u8 proto)
{
	switch (proto) {
	case IPPROTO_IGMP:
	case IPPROTO_RSVP:
	case 88:  /* EIGRP */
	case 89:  /* OSPF */
	case IPPROTO_PIM:
	case 112: /* VRRP */
		return true;
	}
	return false;
}

/*
 * Look through VLAN tags, MPLS labels and PPPoE; returns the protocol at *off. What they say about
 * the address space goes into *space, within what that is before; a tag with a priority alone says
 * nothing.
 */
static __be16 paqm_untag(const struct sk_buff *skb, __be16 proto, int *off, u32 *space)
{
	u8 buf[8];
	const u8 *h;
	u16 vid;
	int i;

	/* a tag may stand before what the skb calls its network header */
	if (*off > ETH_HLEN && eth_type_vlan(proto))
		*off = ETH_HLEN;
	for (i = 0; i < PAQM_TAGS_MAX && eth_type_vlan(proto); i++) {
		h = skb_header_pointer(skb, *off, VLAN_HLEN, buf);
		if (!h)
			return 0;
		proto = htons((u16)h[2] << 8 | h[3]);
		vid = get_unaligned_be16(h) & VLAN_VID_MASK;
		if (vid)
			*space = paqm_space_within(*space, vid);
		*off += VLAN_HLEN;
	}
	if (proto == htons(ETH_P_PPP_SES)) {
		h = skb_header_pointer(skb, *off, 8, buf);
		if (!h)
			return 0;
		*space = paqm_space_within(*space, get_unaligned_be16(h + 2));
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
		*space = paqm_space_within(*space, get_unaligned_be32(h) >> 12);
		*off += 4;
		if (h[2] & 1) { /* bottom of the stack: the nibble behind it tells */
			if (h[4] >> 4 == 4)
				return htons(ETH_P_IP);
			return h[4] >> 4 == 6 ? htons(ETH_P_IPV6) : 0;
		}
	}
	return 0;
}

/**
 * paqm_behind_tags() - where the kernel looks for IP in a packet with tags in it
 * @skb: packet
 *
 * A bridge leaves the network header at an inner tag (QinQ), and INET_ECN_set_ce() would take the
 * VLAN ID there for the ECN field. Where the bridge itself needs the header it moves it, too.
 *
 * Return: whether the header was moved.
 */
bool paqm_behind_tags(struct sk_buff *skb)
{
	int off = skb_network_offset(skb);
	u32 space = 0; /* not asked for */
	__be16 proto;

	if (off != ETH_HLEN || !eth_type_vlan(skb->protocol))
		return false;
	proto = paqm_untag(skb, skb->protocol, &off, &space);
	if ((proto != htons(ETH_P_IP) && proto != htons(ETH_P_IPV6)) ||
	    (u32)off > skb_headlen(skb))
		return false;
	skb_set_network_header(skb, off);
	return true;
}

/* Header at @off, in place if it is linear. */
static const void *paqm_header(const struct sk_buff *skb, int headlen, int off, int len,
			       void *buf)
{
	if (likely(headlen - off >= len))
		return skb->data + off;
	return skb_header_pointer(skb, off, len, buf);
}

/*
 * IPv6 with extension headers, the first of which is at @off; offset behind them. Who nests more
 * than some of them is not followed, so that no packet costs much.
 */
static int paqm_skip_extensions(const struct sk_buff *skb, int off, struct paqm_packet *p)
{
	int first = off, i;
	u8 buf[8]; /* none is shorter */
	const u8 *h;

	p->quotable = false;
	for (i = 0; i < PAQM_EXTENSIONS_MAX && p->proto != NEXTHDR_NONE; i++) {
		h = skb_header_pointer(skb, off, sizeof(buf), buf);
		if (!h)
			break;
		if (p->proto == NEXTHDR_FRAGMENT) {
			p->piece = get_unaligned_be16(h + 2) & (IP6_MF | IP6_OFFSET);
			p->id = get_unaligned_be32(h + 4);
			if (get_unaligned_be16(h + 2) & IP6_OFFSET) {
				p->note |= PAQM_NOTE_FRAGMENT;
				return off;
			}
			off += 8;
		} else if (p->proto == NEXTHDR_AUTH) {
			off += (h[1] + 2) * 4; /* RFC 4302 section 2.2 */
		} else {
			off += (h[1] + 1) * 8; /* RFC 8200 section 4.3 */
		}
		p->proto = h[0];
		if (!ipv6_ext_hdr(p->proto))
			return off;
	}
	/* cut within its headers, none behind them, or too many: still a flow of two hosts */
	p->proto = IPPROTO_NONE;
	return first;
}

/* The IP header at @off into @p; returns the offset behind it, negative if it is none. */
static int paqm_classify_ip(const struct sk_buff *skb, int headlen, __be16 proto, int off,
			    struct paqm_packet *p, u8 *dscp)
{
	if (likely(proto == htons(ETH_P_IP))) {
		const struct iphdr *ip =
			paqm_header(skb, headlen, off, sizeof(p->buf.ip), &p->buf.ip);
		u8 first;

		if (unlikely(!ip))
			return -1;
		first = *(const u8 *)ip; /* version and length */
		if (unlikely(first < 0x45 || first > 0x4F))
			return -1;
		p->net = ip;
		p->family = 4;
		p->proto = ip->protocol;
		*dscp = ip->tos >> 2;
		p->quotable = first == 0x45 && ip->protocol == IPPROTO_UDP &&
			      ntohs(ip->tot_len) >= sizeof(*ip) + 8 + PAQM_PROOF_OTHER;
		if (unlikely(ip->frag_off & htons(IP_MF | IP_OFFSET))) {
			p->quotable = false;
			p->piece = true;
			p->id = ntohs(ip->id);
			if (ip->frag_off & htons(IP_OFFSET))
				p->note |= PAQM_NOTE_FRAGMENT;
		}
		return off + (first & 15) * 4;
	}
	if (proto == htons(ETH_P_IPV6)) {
		const struct ipv6hdr *ip6 =
			paqm_header(skb, headlen, off, sizeof(p->buf.ip6), &p->buf.ip6);

		if (!ip6 || ip6->version != 6)
			return -1;
		p->net = ip6;
		p->family = 6;
		p->proto = ip6->nexthdr;
		*dscp = ipv6_get_dsfield(ip6) >> 2;
		p->quotable = ip6->nexthdr == IPPROTO_UDP &&
			      ntohs(ip6->payload_len) >= 8 + PAQM_PROOF_OTHER;
		off += sizeof(*ip6);
		if (unlikely(ipv6_ext_hdr(ip6->nexthdr)))
			return paqm_skip_extensions(skb, off, p);
		return off;
	}
	return -1;
}

/* Is ICMPv6 neighbour discovery (RFC 4861) or a multicast listener's report? */
static bool paqm_is_discovery(const struct sk_buff *skb, int off)
{
	u8 buf;
	const u8 *type = skb_header_pointer(skb, off, sizeof(buf), &buf);

	return type && ((*type >= 130 && *type <= 137) || *type == 143);
}

/**
 * paqm_identify() - first half of the recogniser: headers and flow
 * @skb: packet, network header set
 * @r: rules
 * @p: result, all but what the payload of UDP tells
 *
 * Return: offset of the UDP header if only the payload can tell, else 0.
 */
unsigned int paqm_identify(const struct sk_buff *skb, const struct paqm_rules *r,
			   struct paqm_packet *p)
{
	int headlen = skb_headlen(skb), off = skb_network_offset(skb), net;
	__be16 proto = skb->protocol;
	const __be32 *ports;
	u32 both;
	u8 kind = PAQM_KIND_ELASTIC, dscp;

	p->hash = 0;
	p->apart = 0;
	p->kind = PAQM_KIND_OTHER;
	p->note = 0;
	p->quotable = false;
	p->piece = false;
	p->space = paqm_space_beside(skb) >> PAQM_SPACE_SHIFT;
	p->ports = 0;

	if (skb_vlan_tag_present(skb)) /* the device puts it into the packet, or took it out */
		p->note |= PAQM_NOTE_TAGGED;
	if (unlikely(proto != htons(ETH_P_IP) && proto != htons(ETH_P_IPV6))) {
		__be16 inner = paqm_untag(skb, proto, &off, &p->space);

		if (inner != proto)
			p->note |= PAQM_NOTE_TAGGED;
		proto = inner;
	}
	net = off;
	off = paqm_classify_ip(skb, headlen, proto, off, p, &dscp);
	if (unlikely(off < 0)) {
		p->family = 0;
		p->note |= PAQM_NOTE_NOT_IP;
		p->apart = (u64)(__force u16)proto << 32;
		if (paqm_control_ether(proto))
			p->kind = PAQM_KIND_CONTROL;
		return 0;
	}
	if (unlikely(p->note)) {
		/* what is quoted begins at the skb's network header */
		if (net != skb_network_offset(skb))
			p->quotable = false;
		if (p->note & PAQM_NOTE_FRAGMENT)
			goto no_ports; /* its ports are in another packet */
	}
	switch (p->proto) {
	case IPPROTO_UDP:
	case IPPROTO_TCP:
	case IPPROTO_UDPLITE:
	case IPPROTO_SCTP:
	case IPPROTO_DCCP:
		ports = paqm_header(skb, headlen, off, sizeof(p->ports), &p->ports);
		if (unlikely(!ports)) {
			p->quotable = false;
			return 0;
		}
		p->ports = *ports;
		break;
	case IPPROTO_ICMP:
		kind = PAQM_KIND_SMALL;
		break;
	case IPPROTO_ICMPV6:
		kind = paqm_is_discovery(skb, off) ? PAQM_KIND_CONTROL : PAQM_KIND_SMALL;
		break;
	default:
		if (paqm_tunnel_proto(p->proto))
			p->note |= PAQM_NOTE_TUNNEL;
		if (paqm_control_proto(p->proto))
			kind = PAQM_KIND_CONTROL;
	}
no_ports:
	p->hash = p->family == 4 ?
			  paqm_flow_hash4(p->net, p->ports, paqm_hashed(p, p->proto), r->key) :
			  paqm_flow_hash6(p->net, p->ports, paqm_hashed(p, p->proto), r->key);
	p->kind = kind;
	if (unlikely(kind != PAQM_KIND_ELASTIC)) {
		paqm_no_flow(p);
		return 0;
	}
	if (unlikely(r->dscp_any >> dscp & 1)) {
		p->note |= PAQM_NOTE_DSCP;
		if (r->dscp_media >> dscp & 1) {
			p->kind = PAQM_KIND_MEDIA;
		} else if (!(r->dscp_elastic >> dscp & 1)) {
			p->kind = PAQM_KIND_CONTROL;
			paqm_no_flow(p);
		}
		return 0;
	}
	if (p->proto != IPPROTO_UDP || unlikely(p->note & PAQM_NOTE_FRAGMENT))
		return 0;
	if (unlikely(r->protocol)) {
		p->kind = PAQM_KIND_MEDIA;
		return 0;
	}
	p->kind = PAQM_KIND_UDP;
	both = ntohl(p->ports);
	if (unlikely(paqm_port_known(both >> 16) || paqm_port_known(both & 0xFFFF))) {
		p->kind = paqm_udp_by_port(p);
		if (p->kind == PAQM_KIND_SMALL)
			paqm_no_flow(p);
	}
	return p->kind == PAQM_KIND_UDP ? off : 0;
}
