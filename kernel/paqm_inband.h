/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Carrier `in-band`: lower the rate that a media packet carries (core/paqm_inband.h), and, for laws
 * that ask, read what its sender says of itself and answer.
 *
 * In place, without changing a length. Fragments, packets with IP options or extension
 * headers, tags and tunnels are left alone: what they carry is not ours to read. Bytes
 * that are shared with another owner are copied first.
 */
#ifndef PAQM_SKB_INBAND_H
#define PAQM_SKB_INBAND_H

#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/skbuff.h>
#include <net/ip.h>
#include "core/paqm_inband.h"
#include "core/paqm_law.h"

/**
 * enum paqm_stamp - what became of a packet
 * @PAQM_STAMP_NONE: it has no field
 * @PAQM_STAMP_KEPT: the rate in it is not above ours
 * @PAQM_STAMP_LOWERED: now it is ours
 * @PAQM_STAMP_LEFT: it would have been, but the packet is a fragment, has options or
 *	cannot be written to
 */
enum paqm_stamp { PAQM_STAMP_NONE, PAQM_STAMP_KEPT, PAQM_STAMP_LOWERED, PAQM_STAMP_LEFT };

/**
 * struct paqm_ask - a law's part in a packet that has a supplement
 * @each: what its sender is to make of the rate that it says, if the law knows no rate for all
 * @said: what the router says, enum paqm_said
 * @more: the supplement, if there is one
 * @has: there is
 */
struct paqm_ask {
	const struct paqm_each *each;
	u8 said;
	struct paqm_more more;
	bool has;
};

/*
 * Offset of the UDP header of a packet that may have a field, 0 if it is none; *@alone:
 * first fragment or IP options.
 */
static inline int paqm_stamp_udp(const struct sk_buff *skb, bool *alone)
{
	int net = skb_network_offset(skb);
	union {
		struct iphdr ip;
		struct ipv6hdr ip6;
	} buf;

	if (skb->protocol == htons(ETH_P_IP)) {
		const struct iphdr *ip = skb_header_pointer(skb, net, sizeof(*ip), &buf.ip);

		if (!ip || ip->version != 4 || ip->ihl < 5 || ip->protocol != IPPROTO_UDP ||
		    ip->frag_off & htons(IP_OFFSET))
			return 0;
		*alone = ip->ihl != 5 || ip->frag_off & htons(IP_MF);
		return net + ip->ihl * 4;
	}
	if (skb->protocol == htons(ETH_P_IPV6)) {
		const struct ipv6hdr *ip6 = skb_header_pointer(skb, net, sizeof(*ip6), &buf.ip6);

		if (!ip6 || ip6->version != 6 || ip6->nexthdr != IPPROTO_UDP)
			return 0;
		*alone = false;
		return net + (int)sizeof(*ip6);
	}
	return 0;
}

/*
 * What a sender with a supplement is told, binary32: by its own word of its rate; with a grade,
 * which it knows what to do with, whatever others allow. What the link adds to a packet makes no
 * difference worth a computation here.
 */
static inline u32 paqm_stamp_rate(const struct paqm_ask *ask, u32 rate)
{
	u64 used;

	if (ask->each->grade)
		return paqm_f32_encode(PAQM_VALUE_MAX, 0);
	if (!paqm_each_says(ask->each) || paqm_f32_decode(ask->more.used, 0, &used))
		return rate;
	return paqm_f32_encode(paqm_clamp64(paqm_each_rate(ask->each, used), 1, PAQM_VALUE_MAX), 0);
}

/**
 * paqm_stamp() - lower the rate in a packet
 * @skb: packet, network header set; its headers may move
 * @mine: this router's rate, identity and period; a supplement may change the rate
 * @judged: its flow is media; else only a probe is looked at
 * @ask: what a law asks and says; NULL: nothing, no supplement is looked for
 *
 * Return: what became of it.
 */
static inline enum paqm_stamp paqm_stamp(struct sk_buff *skb, struct paqm_field *mine,
					 bool judged, struct paqm_ask *ask)
{
	u8 buf[8 + PAQM_FIELD_WINDOW];
	bool alone = false;
	int udp = paqm_stamp_udp(skb, &alone);
	u32 len, said, at, more = 0;
	bool lower, say = false;
	const u8 *h;

	if (!udp || skb->len < (u32)udp + 8 + 1)
		return PAQM_STAMP_NONE;
	h = skb_header_pointer(skb, udp, 8 + 1, buf);
	if (!h || !paqm_field_possible(h[8]) || (!judged && h[8] != PAQM_PROBE_FIRST))
		return PAQM_STAMP_NONE;
	said = paqm_get16(h + 4); /* what lies behind is padding */
	len = min_t(u32, min_t(u32, skb->len - (u32)udp, said), sizeof(buf));
	if (len <= 8)
		return PAQM_STAMP_NONE;
	h = skb_header_pointer(skb, udp, (int)len, buf);
	at = h ? paqm_field_find(h + 8, len - 8) : 0;
	if (!at)
		return PAQM_STAMP_NONE;
	if (ask)
		more = paqm_more_find(h + 8, len - 8);
	if (more) {
		paqm_more_decode(h + 8 + more, &ask->more);
		ask->has = true;
		mine->rate = paqm_stamp_rate(ask, mine->rate);
		say = paqm_said_both(ask->more.said, ask->said) != ask->more.said;
	}
	lower = paqm_field_above(h + 8 + at, mine);
	if (!lower && !say)
		return PAQM_STAMP_KEPT;
	/* a shared head cannot be exchanged; each packet of several in one has a checksum */
	if (alone || skb_shared(skb) || skb_is_gso(skb) ||
	    skb_ensure_writable(skb, udp + 8 + max(at, more) + PAQM_FIELD_LEN))
		return PAQM_STAMP_LEFT;
	h = skb->data + udp;
	if (skb->ip_summed == CHECKSUM_COMPLETE && !paqm_get16(h + 6))
		skb->ip_summed = CHECKSUM_NONE; /* no checksum that would balance the change */
	if (say)
		paqm_more_say(skb->data + udp, more, ask->said,
			      skb->ip_summed == CHECKSUM_PARTIAL);
	if (!lower)
		return PAQM_STAMP_KEPT;
	paqm_field_lower(skb->data + udp, at, mine, skb->ip_summed == CHECKSUM_PARTIAL);
	return PAQM_STAMP_LOWERED;
}

#endif /* PAQM_SKB_INBAND_H */
