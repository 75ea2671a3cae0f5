// SPDX-License-Identifier: GPL-2.0
/*
 * paqm_feedback: who may be sent an ICMP message, and the IP packet around it
 *
 * The packets are built here: icmp_send() indexes a table by type and must not be
 * called with a type it does not know, and has budgets of its own.
 *
 * Never answered are (RFC 1812 section 4.3.2.7, RFC 4443 section 2.4 (e)) sources
 * that do not name one host: multicast, broadcast, unspecified, anycast; loopback
 * and IPv4 in disguise; and link-local ones other than our own, as nobody knows
 * any more on which link they were.
 */
#include <linux/inetdevice.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/pkt_sched.h>
#include <linux/rcupdate.h>
#include <net/addrconf.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <net/l3mdev.h>
#include <net/route.h>
#if IS_ENABLED(CONFIG_IPV6)
#include <net/ip6_route.h>
#endif
#include "paqm_fb.h"

#define PAQM_FB_TOS 0xC0 /* CS6, as ICMP errors (RFC 1812 section 4.3.2.5) */

static int paqm_path_find4(struct net_device *dev, struct paqm_path *path)
{
	__be32 to = path->to.s6_addr32[3];
	struct net *net = dev_net(dev);
	struct flowi4 fl4 = {
		.daddr = to,
		.flowi4_oif = l3mdev_master_ifindex(dev),
		.flowi4_proto = IPPROTO_ICMP,
	};
	struct rtable *rt;

	if (ipv4_is_multicast(to) || ipv4_is_lbcast(to) || ipv4_is_zeronet(to) ||
	    ipv4_is_loopback(to))
		return PAQM_REFUSED;
	switch (inet_addr_type_dev_table(net, dev, to)) {
	case RTN_UNICAST:
	case RTN_LOCAL:
		break;
	default:
		return PAQM_REFUSED;
	}
	rt = ip_route_output_key(net, &fl4);
	if (IS_ERR(rt))
		return PTR_ERR(rt);
	if (rt->rt_type != RTN_UNICAST && rt->rt_type != RTN_LOCAL) {
		ip_rt_put(rt);
		return PAQM_REFUSED;
	}
	path->dst = &rt->dst;
	ipv6_addr_set_v4mapped(fl4.saddr, &path->src);
	return 0;
}

#if IS_ENABLED(CONFIG_IPV6)
static int paqm_path_find6(struct net_device *dev, struct paqm_path *path)
{
	struct net *net = dev_net(dev);
	int type = ipv6_addr_type(&path->to);
	struct flowi6 fl6 = {
		.daddr = path->to,
		.flowi6_oif = l3mdev_master_ifindex(dev),
		.flowi6_proto = IPPROTO_ICMPV6,
	};
	struct dst_entry *dst;

	if (!ipv6_mod_enabled())
		return -EAFNOSUPPORT;
	if (!(type & IPV6_ADDR_UNICAST) ||
	    type & (IPV6_ADDR_LOOPBACK | IPV6_ADDR_MAPPED | IPV6_ADDR_COMPATv4))
		return PAQM_REFUSED;
	if (type & IPV6_ADDR_LINKLOCAL) {
		if (!ipv6_chk_addr(net, &path->to, dev, 0))
			return PAQM_REFUSED;
		fl6.flowi6_oif = dev->ifindex;
	}
	dst = ip6_dst_lookup_flow(net, NULL, &fl6, NULL);
	if (IS_ERR(dst))
		return PTR_ERR(dst);
	if (ipv6_anycast_destination(dst, &path->to)) {
		dst_release(dst);
		return PAQM_REFUSED;
	}
	path->dst = dst;
	path->src = fl6.saddr;
	return 0;
}

static void paqm_put_ip6(struct sk_buff *skb, const struct paqm_path *path)
{
	struct ipv6hdr *ip6 = skb_put(skb, sizeof(*ip6));

	/* the payload's length is set by ip6_local_out() */
	ip6_flow_hdr(ip6, PAQM_FB_TOS, 0);
	ip6->payload_len = 0;
	ip6->nexthdr = IPPROTO_ICMPV6;
	ip6->hop_limit = ip6_dst_hoplimit(path->dst);
	ip6->saddr = path->src;
	ip6->daddr = path->to;
	skb->protocol = htons(ETH_P_IPV6);
}

static int paqm_out6(struct net *net, struct sk_buff *skb)
{
	return ip6_local_out(net, NULL, skb);
}
#else
static int paqm_path_find6(struct net_device *dev, struct paqm_path *path)
{
	return -EAFNOSUPPORT;
}

static void paqm_put_ip6(struct sk_buff *skb, const struct paqm_path *path)
{
}

static int paqm_out6(struct net *net, struct sk_buff *skb)
{
	kfree_skb(skb);
	return -EAFNOSUPPORT;
}
#endif

static void paqm_put_ip4(struct sk_buff *skb, const struct paqm_path *path)
{
	struct iphdr *ip = skb_put_zero(skb, sizeof(*ip));

	/* length and checksum are set by ip_local_out() */
	ip->version = 4;
	ip->ihl = 5;
	ip->tos = PAQM_FB_TOS;
	ip->ttl = ip4_dst_hoplimit(path->dst);
	ip->protocol = IPPROTO_ICMP;
	ip->saddr = path->src.s6_addr32[3];
	ip->daddr = path->to.s6_addr32[3];
	skb->protocol = htons(ETH_P_IP);
}

/**
 * paqm_path_find() - may @to be sent a message, and how?
 * @dev: device of the qdisc; gives namespace, VRF and the scope of link-local addresses
 * @to: the receiver; IPv4 is mapped
 * @path: result, for paqm_path_send() or paqm_path_put()
 *
 * Return: 0, PAQM_REFUSED for an address that is never answered, or an error if there is
 * no route.
 */
int paqm_path_find(struct net_device *dev, const struct in6_addr *to, struct paqm_path *path)
{
	path->to = *to;
	path->v6 = !ipv6_addr_v4mapped(to);
	return path->v6 ? paqm_path_find6(dev, path) : paqm_path_find4(dev, path);
}

/* A path that is not used. */
void paqm_path_put(struct paqm_path *path)
{
	dst_release(path->dst);
}

/**
 * paqm_path_send() - send a message, checksum included; the path is used up
 * @dev: device of the qdisc
 * @path: from paqm_path_find()
 * @icmp: the message
 * @len: its length
 *
 * Return: 0 if the network took it, else a negative error.
 */
int paqm_path_send(struct net_device *dev, struct paqm_path *path, const u8 *icmp, u32 len)
{
	u32 head = path->v6 ? sizeof(struct ipv6hdr) : sizeof(struct iphdr);
	struct net *net = dev_net(dev);
	const struct net_device *out;
	struct sk_buff *skb;
	u32 room, tail;
	int err;

	rcu_read_lock(); /* a device that goes is taken out of the route */
	out = READ_ONCE(path->dst->dev);
	room = LL_RESERVED_SPACE(out);
	tail = READ_ONCE(out->needed_tailroom);
	rcu_read_unlock();
	skb = alloc_skb(room + head + len + tail, GFP_KERNEL);
	if (!skb) {
		paqm_path_put(path);
		return -ENOMEM;
	}
	skb_reserve(skb, room);
	skb_reset_network_header(skb);
	if (path->v6)
		paqm_put_ip6(skb, path);
	else
		paqm_put_ip4(skb, path);
	skb_set_transport_header(skb, head);
	skb_put_data(skb, icmp, len);
	skb->priority = TC_PRIO_INTERACTIVE;
	skb_dst_set(skb, path->dst);
	if (path->v6) {
		err = paqm_out6(net, skb);
	} else {
		ip_select_ident(net, skb, NULL);
		err = ip_local_out(net, NULL, skb);
	}
	err = net_xmit_eval(err);
	return err > 0 ? -ENOBUFS : err; /* a queue on the way dropped it */
}
