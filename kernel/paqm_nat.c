// SPDX-License-Identifier: GPL-2.0
/*
 * paqm_feedback: quotes of packets that this host translates (NAT)
 *
 * They are quoted as their sender knows them: else he would not recognise them, and his own address
 * would not be found. Connection tracking keeps, with a packet, the addresses and ports it came
 * with. What a flowtable translates, and what mirred has passed on, has nothing with it; but the
 * connection is known, by what an answer to the packet would be.
 *
 * No function of nf_conntrack is called by name here, so that it need not be loaded.
 */
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/module.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_conntrack_zones_common.h>
#include <linux/skbuff.h>
#include <linux/udp.h>
#include <net/checksum.h>
#if IS_ENABLED(CONFIG_NF_CONNTRACK)
#include <net/netfilter/nf_conntrack.h>
#include <net/netfilter/nf_conntrack_core.h>
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

/* What an answer to the quoted packet would be. */
static void paqm_answer(struct nf_conntrack_tuple *answer, const u8 *quote)
{
	bool v6 = quote[0] >> 4 == 6;
	const struct ipv6hdr *ip6 = (const struct ipv6hdr *)quote;
	const struct iphdr *ip = (const struct iphdr *)quote;
	const struct udphdr *udp;

	memset(answer, 0, sizeof(*answer)); /* the hash is of all of it */
	if (v6) {
		answer->src.u3.in6 = ip6->daddr;
		answer->dst.u3.in6 = ip6->saddr;
	} else {
		answer->src.u3.ip = ip->daddr;
		answer->dst.u3.ip = ip->saddr;
	}
	udp = (const struct udphdr *)(quote + (v6 ? sizeof(*ip6) : sizeof(*ip)));
	answer->src.u.udp.port = udp->dest;
	answer->dst.u.udp.port = udp->source;
	answer->src.l3num = v6 ? NFPROTO_IPV6 : NFPROTO_IPV4;
	answer->dst.protonum = IPPROTO_UDP;
}

/**
 * paqm_untranslate_late() - the same where connection tracking had nothing with the packet
 * @dev: device of the qdisc, gives the network namespace
 * @quote: of paqm_untranslate()
 *
 * In the default zone. In process context.
 */
void paqm_untranslate_late(struct net_device *dev, u8 *quote)
{
	const struct nf_conntrack_zone zone = { .dir = NF_CT_DEFAULT_ZONE_DIR };
	struct nf_conntrack_tuple answer;
	struct nf_conntrack_tuple_hash *found;
	typeof(nf_conntrack_find_get) *find;
	struct nf_conn *ct;

	if (!rcu_access_pointer(nf_ct_hook))
		return;
	find = symbol_get(nf_conntrack_find_get);
	if (!find)
		return;
	paqm_answer(&answer, quote);
	found = find(dev_net(dev), &zone, &answer);
	if (found) {
		ct = nf_ct_tuplehash_to_ctrack(found);
		paqm_requote_all(quote, &ct->tuplehash[!found->tuple.dst.dir].tuple);
		nf_conntrack_put(&ct->ct_general);
	}
	symbol_put(nf_conntrack_find_get);
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
