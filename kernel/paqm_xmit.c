// SPDX-License-Identifier: GPL-2.0
/*
 * paqm_feedback: which addresses may be sent an ICMP message, the route, and the IP packet
 *
 * The packets are built here: icmp_send() indexes a table by type and must not be
 * called with a type it does not know, and has budgets of its own.
 *
 * No message goes (RFC 1812 section 4.3.2.7, RFC 4443 section 2.4 (e)) to an address
 * that does not name one host: multicast, broadcast, unspecified, anycast; nor to loopback
 * and IPv4-mapped ones; nor to link-local ones other than our own, since their link is
 * not known any more.
 *
 * Messages take this host's route to the sender. Where the packet was bridged and the host has no
 * address on its sender's link, they take the packet's own way back, as a bridge's rejects do: with
 * the packet's addresses swapped they come in where it goes out, so that the bridge finds port and
 * VLAN by itself. Only the Ethernet source is our own: a bridge that floods packets to a receiver
 * would else learn the receiver's address on the wrong port. So do messages to guests that have a
 * device of their own above that of the queue (macvlan, ipvlan, a VLAN), and messages about frames
 * that tc passes on, where the host has no route by the device that they came in by: its routes do
 * not lead there, but perhaps to another host with the sender's address. Open vSwitch is a bridge,
 * but with addresses on devices of its own beside its ports.
 */
#include <linux/etherdevice.h>
#include <linux/if_vlan.h>
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
#include "paqm_transmitter.h"

#define PAQM_FB_TOS 0xC0 /* CS6, as ICMP errors (RFC 1812 section 4.3.2.5) */
#define PAQM_LINK_TTL 64 /* of what takes no route */

/* Is it an address that no answer ever goes to? */
static bool paqm_never(const struct in6_addr *to)
{
	int type;

	if (ipv6_addr_v4mapped(to)) {
		__be32 to4 = to->s6_addr32[3];

		return ipv4_is_multicast(to4) || ipv4_is_lbcast(to4) || ipv4_is_zeronet(to4) ||
		       ipv4_is_loopback(to4);
	}
	type = ipv6_addr_type(to);
	return !(type & IPV6_ADDR_UNICAST) ||
	       type & (IPV6_ADDR_LOOPBACK | IPV6_ADDR_MAPPED | IPV6_ADDR_COMPATv4);
}

static int paqm_path_find4(struct net *net, struct paqm_path *path)
{
	struct flowi4 fl4;
	struct rtable *rt;

	path->mark = IP4_REPLY_MARK(net, path->mark);
	flowi4_init_output(&fl4, path->vrf, path->mark, PAQM_FB_TOS, RT_SCOPE_UNIVERSE,
			   IPPROTO_ICMP, 0, path->to.s6_addr32[3], 0, 0, 0,
			   sock_net_uid(net, NULL));
	rt = ip_route_output_key(net, &fl4);
	if (IS_ERR(rt))
		return PTR_ERR(rt);
	if (rt->rt_type != RTN_UNICAST && rt->rt_type != RTN_LOCAL) {
		ip_rt_put(rt);
		return PAQM_REFUSED;
	}
	/* no gateway knows the link that it holds on (RFC 3927 section 7) */
	if (ipv4_is_linklocal_169(path->to.s6_addr32[3]) && rt->rt_uses_gateway) {
		ip_rt_put(rt);
		return -EHOSTUNREACH;
	}
	path->dst = &rt->dst;
	/* as errors do: its routes of IPv4 may lead over IPv6 (RFC 8950), with no such address */
	ipv6_addr_set_v4mapped(fl4.saddr ?: htonl(INADDR_DUMMY), &path->src);
	path->ours = fl4.saddr;
	return 0;
}

/* Does a route lead to its receiver without a router between? */
static bool paqm_path_direct(const struct paqm_path *path)
{
#if IS_ENABLED(CONFIG_IPV6)
	if (path->v6)
		return !(container_of(path->dst, const struct rt6_info, dst)->rt6i_flags &
			 RTF_GATEWAY);
#endif
	return !container_of(path->dst, const struct rtable, dst)->rt_uses_gateway;
}

#if IS_ENABLED(CONFIG_IPV6)
struct paqm_own_link {
	const struct net *net;
	const struct in6_addr *addr;
};

static int paqm_own_link_at(struct net_device *upper, struct netdev_nested_priv *priv)
{
	const struct paqm_own_link *own = priv->data;

	if (!net_eq(dev_net(upper), own->net) ||
	    !ipv6_chk_addr(dev_net(upper), own->addr, upper, 0))
		return 0;
	return upper->ifindex;
}

/*
 * Number of the device where this host has a link-local address: that of the queue, or one that
 * sends through it (VLAN, bridge, bond); 0: none.
 */
static int paqm_own_link(struct net_device *dev, const struct in6_addr *addr)
{
	struct paqm_own_link own = { .net = dev_net(dev), .addr = addr };
	struct netdev_nested_priv priv = { .data = &own };
	int index;

	rcu_read_lock();
	index = paqm_own_link_at(dev, &priv) ?:
		netdev_walk_all_upper_dev_rcu(dev, paqm_own_link_at, &priv);
	rcu_read_unlock();
	return index;
}

static int paqm_path_find6(struct net_device *dev, struct paqm_path *path)
{
	struct net *net = dev_net(dev);
	int type = ipv6_addr_type(&path->to);
	struct flowi6 fl6 = {
		.daddr = path->to,
		.flowi6_oif = path->vrf,
		.flowi6_mark = IP6_REPLY_MARK(net, path->mark),
		.flowlabel = ip6_make_flowinfo(PAQM_FB_TOS, 0),
		.flowi6_proto = IPPROTO_ICMPV6,
		.flowi6_uid = sock_net_uid(net, NULL),
	};
	struct dst_entry *dst;

	path->mark = fl6.flowi6_mark;
	if (!ipv6_mod_enabled())
		return -EAFNOSUPPORT;
	if (type & IPV6_ADDR_LINKLOCAL) {
		fl6.flowi6_oif = paqm_own_link(dev, &path->to);
		if (!fl6.flowi6_oif)
			return PAQM_REFUSED;
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
	path->ours = !ipv6_addr_any(&fl6.saddr);
	/* no router passes on what comes from there */
	if (ipv6_addr_type(&fl6.saddr) & IPV6_ADDR_LINKLOCAL)
		path->ours = paqm_path_direct(path);
	if (path->ours)
		return 0;
	dst_release(dst);
	return -EADDRNOTAVAIL;
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

static int paqm_out6(struct net *net, struct sk_buff *skb)
{
	kfree_skb(skb);
	return -EAFNOSUPPORT;
}
#endif

static void paqm_put_ip6(struct sk_buff *skb, const struct paqm_path *path, u32 len)
{
	struct ipv6hdr *ip6 = skb_put(skb, sizeof(*ip6));

	ip6_flow_hdr(ip6, PAQM_FB_TOS, 0);
	ip6->payload_len = htons(len);
	ip6->nexthdr = IPPROTO_ICMPV6;
	ip6->hop_limit = PAQM_LINK_TTL;
#if IS_ENABLED(CONFIG_IPV6)
	if (path->dst)
		ip6->hop_limit = ip6_dst_hoplimit(path->dst);
#endif
	ip6->saddr = path->src;
	ip6->daddr = path->to;
	skb->protocol = htons(ETH_P_IPV6);
}

static void paqm_put_ip4(struct sk_buff *skb, const struct paqm_path *path, u32 len)
{
	struct iphdr *ip = skb_put_zero(skb, sizeof(*ip));

	ip->version = 4;
	ip->ihl = 5;
	ip->tos = PAQM_FB_TOS;
	ip->ttl = path->dst ? ip4_dst_hoplimit(path->dst) : PAQM_LINK_TTL;
	ip->protocol = IPPROTO_ICMP;
	ip->saddr = path->src.s6_addr32[3];
	ip->daddr = path->to.s6_addr32[3];
	/* for messages without a route; ip_local_out() sets them again */
	ip->tot_len = htons(sizeof(*ip) + len);
	ip->frag_off = path->dst ? 0 : htons(IP_DF); /* which needs no identity (RFC 6864) */
	ip_send_check(ip);
	skb->protocol = htons(ETH_P_IP);
}

/**
 * paqm_path_find() - is there a route to a receiver?
 * @dev: device of the qdisc; gives namespace and the scope of link-local addresses
 * @path: @to, @vrf and @mark are given; the rest is the result, for paqm_path_send() or
 *	paqm_path_put()
 *
 * Return: 0, PAQM_REFUSED for an address that is never answered, or an error if there is
 * no route, or none of IPv6 with an address to send from.
 */
int paqm_path_find(struct net_device *dev, struct paqm_path *path)
{
	path->v6 = !ipv6_addr_v4mapped(&path->to);
	path->ours = false;
	if (paqm_never(&path->to))
		return PAQM_REFUSED;
	return path->v6 ? paqm_path_find6(dev, path) : paqm_path_find4(dev_net(dev), path);
}

/* A port of a bond or team sends for that, which bridges, VLANs and VRFs know. Under RCU. */
static struct net_device *paqm_lag_of(struct net_device *dev)
{
	struct net_device *lag = NULL;

	if (netif_is_lag_port(dev))
		lag = netdev_master_upper_dev_get_rcu(dev);
	return lag ?: dev;
}

/* The device of a VLAN tag above @dev, if the packet has one. Under RCU. */
static struct net_device *paqm_vlan_above(struct net_device *dev, const struct paqm_way *way)
{
	if (!way->vlan_proto)
		return NULL;
	return __vlan_find_dev_deep_rcu(dev, way->vlan_proto, way->vlan_tci & VLAN_VID_MASK);
}

/* Port of a bridge that a packet leaves by, or NULL. Under RCU. */
static struct net_device *paqm_port_of(struct net_device *dev, const struct paqm_way *way)
{
	if (!netif_is_bridge_port(dev))
		dev = paqm_vlan_above(dev, way);
	return dev && netif_is_bridge_port(dev) ? dev : NULL;
}

/* The bridge that a packet crossed without being routed, or NULL. Under RCU. */
static struct net_device *paqm_bridge_of(struct net_device *dev, const struct paqm_way *way)
{
	struct net_device *in = dev_get_by_index_rcu(dev_net(dev), way->iif), *bridge;
	struct net_device *out = paqm_port_of(dev, way);

	/* the last device that it was received by: the bridge itself if it was for this host */
	if (!in || !netif_is_bridge_port(in) || !out || dev->type != ARPHRD_ETHER)
		return NULL;
	bridge = netdev_master_upper_dev_get_rcu(in);
	return bridge && bridge == netdev_master_upper_dev_get_rcu(out) ? bridge : NULL;
}

static bool paqm_is_kind(const struct net_device *dev, const char *kind)
{
	return dev->rtnl_link_ops && !strcmp(dev->rtnl_link_ops->kind, kind);
}

/* Does an ipvlan have the address? All of them have the Ethernet address of the one below. */
static bool paqm_ipvlan_has(struct net_device *dev, const struct in6_addr *addr)
{
	const struct in_device *in = __in_dev_get_rcu(dev);
	const struct in_ifaddr *ifa;

	if (!ipv6_addr_v4mapped(addr)) {
#if IS_ENABLED(CONFIG_IPV6)
		return ipv6_chk_addr(dev_net(dev), addr, dev, 0);
#else
		return false;
#endif
	}
	if (!in)
		return false;
	in_dev_for_each_ifa_rcu(ifa, in)
		if (ifa->ifa_local == addr->s6_addr32[3])
			return true;
	return false;
}

/*
 * Did a guest send the packet, a container or a virtual machine, by its own device above @dev?
 * Such devices receive what comes in by @dev, and nothing that this host sends there. Under RCU.
 */
static bool paqm_of_guest(struct net_device *dev, const struct paqm_way *way,
			  const struct in6_addr *sender)
{
	struct net_device *vlan = paqm_vlan_above(dev, way), *upper;
	struct net *net = dev_net(dev);
	struct list_head *iter;

	if (vlan && !net_eq(dev_net(vlan), net))
		return true;
	netdev_for_each_upper_dev_rcu(vlan ?: dev, upper, iter) {
		if (netif_is_macvlan(upper)) {
			if ((!net_eq(dev_net(upper), net) || paqm_is_kind(upper, "macvtap")) &&
			    ether_addr_equal(upper->dev_addr, way->mac + ETH_ALEN))
				return true;
		} else if (paqm_is_kind(upper, "ipvlan")) {
			if (!net_eq(dev_net(upper), net) && paqm_ipvlan_has(upper, sender))
				return true;
		}
	}
	return false;
}

static int paqm_has_mac(struct net_device *dev, struct netdev_nested_priv *priv)
{
	return ether_addr_equal(dev->dev_addr, priv->data);
}

/*
 * The device that a packet came in by, if tc or nftables passed it on to @dev as it was: its source
 * is no Ethernet address of this host then; else NULL. To a port of Open vSwitch its own devices
 * send, too, and ifb shows what came in. Under RCU.
 */
static struct net_device *paqm_passed_on(struct net_device *dev, const struct paqm_way *way)
{
	struct net_device *in = dev_get_by_index_rcu(dev_net(dev), way->iif);
	u8 mac[ETH_ALEN] __aligned(2);
	struct netdev_nested_priv priv = { .data = mac };

	if (!in || in->type != ARPHRD_ETHER || dev->type != ARPHRD_ETHER ||
	    netif_is_ovs_port(dev) || paqm_is_kind(dev, "ifb"))
		return NULL;
	ether_addr_copy(mac, way->mac + ETH_ALEN);
	if (!is_valid_ether_addr(mac) || paqm_has_mac(in, &priv) || paqm_has_mac(dev, &priv) ||
	    netdev_walk_all_upper_dev_rcu(dev, paqm_has_mac, &priv))
		return NULL;
	return in;
}

/*
 * The port of a bridge at which tc has shown a packet to ifb, if the bridge passes it on; NULL if
 * it is for or from this host, or there is no such port. Under RCU.
 */
static struct net_device *paqm_shown_at(struct net_device *dev, const struct paqm_way *way)
{
	struct net_device *port = dev_get_by_index_rcu(dev_net(dev), way->iif);
	u8 mac[ETH_ALEN] __aligned(2);
	struct netdev_nested_priv priv = { .data = mac };

	if (!port || !netif_is_bridge_port(port) || !paqm_is_kind(dev, "ifb"))
		return NULL;
	ether_addr_copy(mac, way->came_in ? way->mac : way->mac + ETH_ALEN);
	if (paqm_has_mac(port, &priv) || netdev_walk_all_upper_dev_rcu(port, paqm_has_mac, &priv))
		return NULL;
	return port;
}

/* Did Open vSwitch pass a packet on, which no device of its own had in between? Under RCU. */
static bool paqm_of_ovs(const struct net_device *dev, const struct paqm_way *way)
{
	const struct net_device *in = dev_get_by_index_rcu(dev_net(dev), way->iif);

	return in && netif_is_ovs_port(in) && netif_is_ovs_port(dev);
}

/* Is @to the device, of Open vSwitch's own, beside the sender of a packet? */
static bool paqm_is_ovs_own(const struct net_device *to, const struct paqm_way *way)
{
	if (!way->vlan_proto)
		return netif_is_ovs_master(to);
	return is_vlan_dev(to) && vlan_dev_vlan_id(to) == (way->vlan_tci & VLAN_VID_MASK) &&
	       netif_is_ovs_master(vlan_dev_real_dev(to));
}

/* The VRF in which the sender of a packet is found, 0 for none. Under RCU. */
static int paqm_vrf_of(struct net_device *dev, const struct paqm_way *way,
		       const struct net_device *bridge)
{
	struct net_device *port;

	if (bridge)
		return l3mdev_master_ifindex_rcu(bridge);
	if (way->iif)
		return l3mdev_master_ifindex_by_index(dev_net(dev), way->iif);
	/* of this host: where the packet goes is what is known */
	port = paqm_port_of(dev, way);
	if (port)
		return l3mdev_master_ifindex_rcu(netdev_master_upper_dev_get_rcu(port));
	return l3mdev_master_ifindex_rcu(paqm_vlan_above(dev, way) ?: dev);
}

/*
 * Can a message go back on the link that a packet came over? @refused: its receiver has an address
 * that is never answered, as far as routes know. Of IPv6 addresses of hosts that only hold on a
 * link, this is the link; not of groups on it.
 */
static bool paqm_link_known(const struct paqm_way *way, const struct paqm_path *path, bool refused)
{
	const int local = IPV6_ADDR_UNICAST | IPV6_ADDR_LINKLOCAL;

	return !(refused && (ipv6_addr_type(&path->to) & local) != local) &&
	       is_valid_ether_addr(way->mac) && is_valid_ether_addr(way->mac + ETH_ALEN);
}

/* It goes there, and comes from the packet's destination. */
static int paqm_path_link(struct paqm_path *path, const struct in6_addr *from, bool ours)
{
	path->v6 = !ipv6_addr_v4mapped(&path->to);
	path->dst = NULL;
	path->src = *from;
	path->ours = ours;
	return 0;
}

/**
 * paqm_path_back() - may the sender of a packet be sent a message, and how?
 * @dev: device of the qdisc
 * @way: how the packet came
 * @from: the packet's destination, IPv4 is mapped: a message on the link comes from there
 * @path: @to is given, the rest is the result as of paqm_path_find()
 *
 * Return: as of paqm_path_find().
 */
int paqm_path_back(struct net_device *dev, const struct paqm_way *way, const struct in6_addr *from,
		   struct paqm_path *path)
{
	struct net_device *bridge, *out, *to, *shown, *at = NULL;
	bool guest, ovs, passed, came_in, ours = false;
	int err;

	rcu_read_lock();
	shown = paqm_shown_at(dev, way);
	path->link = shown ? shown->ifindex : 0;
	out = paqm_lag_of(shown ?: dev);
	bridge = shown ? netdev_master_upper_dev_get_rcu(shown) : paqm_bridge_of(out, way);
	/* an address of this host beside the sender's is the bridge's, or that of its VLAN */
	if (bridge)
		at = netif_is_bridge_port(out) && way->vlan_proto ? paqm_vlan_above(bridge, way) :
								    bridge;
	guest = !bridge && paqm_of_guest(out, way, &path->to);
	ovs = !bridge && !guest && paqm_of_ovs(out, way);
	if (!bridge && !guest && !ovs)
		at = paqm_passed_on(dev, way);
	passed = !bridge && at;
	path->vrf = guest ? 0 : paqm_vrf_of(out, way, bridge);
	rcu_read_unlock();
	path->mark = way->mark;
	if (guest)
		return paqm_link_known(way, path, paqm_never(&path->to)) ?
			       paqm_path_link(path, from, false) : PAQM_REFUSED;
	err = paqm_path_find(dev, path);
	if (!bridge && !passed && !ovs)
		return err;
	if (!paqm_link_known(way, path, err == PAQM_REFUSED)) {
		if (!err)
			paqm_path_put(path);
		return PAQM_REFUSED;
	}
	if (!err) {
		rcu_read_lock();
		to = READ_ONCE(path->dst->dev);
		ours = path->ours && (ovs ? paqm_is_ovs_own(to, way) : to == at);
		rcu_read_unlock();
	}
	came_in = path->link && way->came_in;
	if (ours && (passed || came_in || paqm_path_direct(path)))
		return 0;
	if (!err)
		paqm_path_put(path);
	if (came_in) /* by which port will the packet leave? */
		return PAQM_REFUSED;
	return paqm_path_link(path, from, ours);
}

/* A path that is not used. */
void paqm_path_put(struct paqm_path *path)
{
	dst_release(path->dst);
}

/* Let a message come in by the device that the packet leaves by, as if its receiver answered. */
static int paqm_link_send(struct net_device *dev, const struct paqm_way *way, const u8 *own,
			  int link, struct sk_buff *skb)
{
	struct ethhdr *eth = skb_push(skb, ETH_HLEN);
	int result;

	ether_addr_copy(eth->h_dest, way->mac + ETH_ALEN);
	ether_addr_copy(eth->h_source, own);
	eth->h_proto = skb->protocol;
	if (way->vlan_proto)
		__vlan_hwaccel_put_tag(skb, way->vlan_proto, way->vlan_tci);
	rcu_read_lock();
	if (link)
		dev = dev_get_by_index_rcu(dev_net(dev), link);
	if (!dev) {
		rcu_read_unlock();
		kfree_skb(skb);
		return -ENODEV;
	}
	/* some ports of a bond only send */
	skb->protocol = eth_type_trans(skb, paqm_lag_of(dev));
	result = netif_rx(skb);
	rcu_read_unlock();
	return result == NET_RX_SUCCESS ? 0 : -ENOBUFS;
}

/**
 * paqm_path_send() - send a message, checksum included; the path is used up
 * @dev: device of the qdisc
 * @path: from paqm_path_find() or paqm_path_back()
 * @way: what the latter was given; may be NULL for the former
 * @own: Ethernet address to send from where there is no route; may be NULL as @way
 * @icmp: the message
 * @len: its length
 *
 * Return: 0 if the network took it, else a negative error.
 */
int paqm_path_send(struct net_device *dev, struct paqm_path *path, const struct paqm_way *way,
		   const u8 *own, const u8 *icmp, u32 len)
{
	u32 head = path->v6 ? sizeof(struct ipv6hdr) : sizeof(struct iphdr);
	struct net *net = dev_net(dev);
	const struct net_device *out;
	struct sk_buff *skb;
	u32 room, tail;
	int err;

	rcu_read_lock(); /* a device that goes is taken out of the route */
	out = path->dst ? READ_ONCE(path->dst->dev) : dev;
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
		paqm_put_ip6(skb, path, len);
	else
		paqm_put_ip4(skb, path, len);
	skb_set_transport_header(skb, head);
	skb_put_data(skb, icmp, len);
	skb->priority = TC_PRIO_INTERACTIVE;
	if (!path->dst)
		return paqm_link_send(dev, way, own, path->link, skb);
	skb->mark = path->mark;
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
