// SPDX-License-Identifier: GPL-2.0
/*
 * paqm_feedback: quotes of packets that this host translates (NAT)
 *
 * They are quoted as their sender knows them: else he would not recognise them, and his own address
 * would not be found. Connection tracking keeps, with a packet, the addresses and ports it came
 * with. What a flowtable translates, and what mirred has passed on, has nothing with it; but the
 * connection is known, by what an answer to the packet would be.
 *
 * No function of nf_conntrack is called here, so that it need not be loaded.
 */
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/minmax.h>
#include <linux/netfilter.h>
#include <linux/skbuff.h>
#include <linux/udp.h>
#include <net/checksum.h>
#if IS_ENABLED(CONFIG_NF_CONNTRACK)
#include <net/netfilter/nf_conntrack.h>
#endif
#include "paqm_transmitter.h"

#if IS_ENABLED(CONFIG_NF_CONNTRACK)
/* Replace the address at @place in the quote; @sum: the UDP checksum, which covers it. */
static void paqm_requote(__be32 *place, const __be32 *addr, u32 words, __sum16 *sum)
{
	for (; words; words--, place++, addr++) {
		csum_replace4(sum, *place, *addr);
		*place = *addr;
	}
}

/* The same for a port. */
static void paqm_requote_port(__be16 *place, __be16 port, __sum16 *sum)
{
	csum_replace2(sum, *place, port);
	*place = port;
}

/* Addresses and ports of the quote become those of @came. */
static void paqm_requote_all(u8 *quote, const struct nf_conntrack_tuple *came)
{
	bool v6 = quote[0] >> 4 == 6;
	struct udphdr *udp;
	__sum16 sum;

	udp = (struct udphdr *)(quote + (v6 ? sizeof(struct ipv6hdr) : sizeof(struct iphdr)));
	sum = udp->check;
	if (v6) {
		struct ipv6hdr *ip6 = (struct ipv6hdr *)quote;

		paqm_requote(ip6->saddr.s6_addr32, came->src.u3.ip6, 4, &sum);
		paqm_requote(ip6->daddr.s6_addr32, came->dst.u3.ip6, 4, &sum);
	} else {
		struct iphdr *ip = (struct iphdr *)quote;

		csum_replace4(&ip->check, ip->saddr, came->src.u3.ip);
		csum_replace4(&ip->check, ip->daddr, came->dst.u3.ip);
		paqm_requote(&ip->saddr, &came->src.u3.ip, 1, &sum);
		paqm_requote(&ip->daddr, &came->dst.u3.ip, 1, &sum);
	}
	paqm_requote_port(&udp->source, came->src.u.udp.port, &sum);
	paqm_requote_port(&udp->dest, came->dst.u.udp.port, &sum);
	if (udp->check) /* 0: it has none */
		udp->check = sum ?: CSUM_MANGLED_0;
}

/**
 * paqm_untranslate() - quote a packet as it came
 * @quote: its first bytes, UDP header included; changed
 * @skb: the packet; under the qdisc lock
 *
 * Return: false if connection tracking has nothing with the packet.
 */
bool paqm_untranslate(u8 *quote, const struct sk_buff *skb)
{
	enum ip_conntrack_info info;
	const struct nf_conn *ct = nf_ct_get(skb, &info);

	if (!ct)
		return false;
	/* a template has no protocol */
	if (nf_ct_protonum(ct) == IPPROTO_UDP &&
	    nf_ct_l3num(ct) == (quote[0] >> 4 == 6 ? NFPROTO_IPV6 : NFPROTO_IPV4))
		paqm_requote_all(quote, &ct->tuplehash[CTINFO2DIR(info)].tuple);
	return true;
}

/**
 * paqm_untranslate_late() - the same where connection tracking had nothing with the packet
 * @dev: device of the qdisc, gives the network namespace
 * @quote: of paqm_untranslate()
 *
 * Only for IPv4: the kernel knows no such question about IPv6. In process context.
 */
void paqm_untranslate_late(struct net_device *dev, u8 *quote)
{
	const u32 len = sizeof(struct iphdr) + sizeof(struct udphdr);
	struct nf_conntrack_tuple came;
	struct sk_buff *answer;
	struct udphdr *udp;
	struct iphdr *ip;

	if (quote[0] >> 4 != 4 || !rcu_access_pointer(nf_ct_hook))
		return;
	answer = alloc_skb(len, GFP_KERNEL);
	if (!answer)
		return;
	ip = skb_put_data(answer, quote, len);
	udp = (struct udphdr *)(ip + 1);
	swap(ip->saddr, ip->daddr);
	swap(udp->source, udp->dest);
	skb_reset_network_header(answer);
	answer->protocol = htons(ETH_P_IP);
	answer->dev = dev;
	if (nf_ct_get_tuple_skb(&came, answer) && came.dst.protonum == IPPROTO_UDP)
		paqm_requote_all(quote, &came);
	kfree_skb(answer);
}
#else
bool paqm_untranslate(u8 *quote, const struct sk_buff *skb)
{
	return true;
}

void paqm_untranslate_late(struct net_device *dev, u8 *quote)
{
}
#endif
