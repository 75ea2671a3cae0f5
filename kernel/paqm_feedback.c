// SPDX-License-Identifier: GPL-2.0
/*
 * paqm_feedback - builds and sends the feedback messages of sch_paqm
 *
 * Carrier `icmp`: ICMP type 253 (RFC 4727 experiment) with the layout of
 * core/paqm_msg.h. The packet is built here: icmp_send() indexes a table by type
 * and must not be called with a type it does not know.
 *
 * What is never answered (RFC 1812 section 4.3.2.7): fragments, packets with
 * options and anything but UDP are not offered by the qdisc; multicast,
 * broadcast, loopback and other martian sources are refused here. One token
 * bucket bounds all messages (RFC 4443 section 2.4(f) asks for one).
 */
#include <linux/inetdevice.h>
#include <linux/ip.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include <net/ip.h>
#include <net/route.h>
#include "paqm_compat.h"
#include "paqm_feedback.h"

#define PAQM_FB_RING 256 /* power of two */
#define PAQM_FB_BURST_MS 1000

struct paqm_fb_entry {
	struct paqm_msg msg;
	u16 len;
	u8 quote[PAQM_QUOTE_MAX];
};

/**
 * struct paqm_fb - one transmitter
 * @work: sends what is in the ring
 * @dev: device of the qdisc; the qdisc does not outlive it
 * @head: next entry to fill; only the qdisc writes it, under its lock
 * @tail: next entry to send; only @work writes it
 * @rate: bytes per second of the token bucket
 * @tokens: bytes in the bucket
 * @stamp: time of the last refill
 * @sent: counters of struct paqm_fb_stats
 * @limited: the same
 * @full: the same, as @ring there
 * @refused: the same
 * @failed: the same
 * @ring: notices that wait for @work
 */
struct paqm_fb {
	struct work_struct work;
	struct net_device *dev;
	u32 head;
	u32 tail;
	u64 rate;
	u64 tokens;
	u64 stamp;
	u32 sent;
	u32 limited;
	u32 full;
	u32 refused;
	u32 failed;
	struct paqm_fb_entry ring[PAQM_FB_RING];
};

static void paqm_fb_count(u32 *counter)
{
	WRITE_ONCE(*counter, *counter + 1);
}

/* May a message of @len bytes leave now? */
static bool paqm_fb_allow(struct paqm_fb *fb, u32 len)
{
	u64 now = ktime_get_ns();
	u64 rate = READ_ONCE(fb->rate);
	u64 depth = max_t(u64, paqm_muldiv(rate, PAQM_FB_BURST_MS, MSEC_PER_SEC), 4 * PAQM_MSG_MAX);

	fb->tokens = min(depth, fb->tokens + paqm_muldiv(rate, now - fb->stamp, NSEC_PER_SEC));
	fb->stamp = now;
	if (fb->tokens < len)
		return false;
	fb->tokens -= len;
	return true;
}

/* Is @addr an address that a message may be sent to? */
static bool paqm_fb_source_ok(struct net *net, struct net_device *dev, __be32 addr)
{
	if (ipv4_is_multicast(addr) || ipv4_is_lbcast(addr) || ipv4_is_zeronet(addr) ||
	    ipv4_is_loopback(addr))
		return false;
	return inet_addr_type(net, addr) == RTN_UNICAST ||
	       inet_addr_type(net, addr) == RTN_LOCAL;
}

static void paqm_fb_send(struct paqm_fb *fb, const struct paqm_fb_entry *e)
{
	const struct iphdr *quoted = (const struct iphdr *)e->quote;
	struct net *net = dev_net(fb->dev);
	struct flowi4 fl4 = {};
	struct sk_buff *skb;
	struct rtable *rt;
	struct iphdr *ip;
	u32 len = PAQM_ICMP_HDR + e->len + PAQM_OBJ_LEN;
	u32 total = len + sizeof(*ip);
	u32 room;
	int err;

	if (!paqm_fb_source_ok(net, fb->dev, quoted->saddr)) {
		paqm_fb_count(&fb->refused);
		return;
	}
	if (!paqm_fb_allow(fb, total)) {
		paqm_fb_count(&fb->limited);
		return;
	}
	fl4.daddr = quoted->saddr;
	fl4.flowi4_proto = IPPROTO_ICMP;
	rt = ip_route_output_key(net, &fl4);
	if (IS_ERR(rt)) {
		paqm_fb_count(&fb->failed);
		return;
	}
	if (rt->rt_type != RTN_UNICAST && rt->rt_type != RTN_LOCAL) {
		ip_rt_put(rt);
		paqm_fb_count(&fb->refused);
		return;
	}
	room = LL_RESERVED_SPACE(rt->dst.dev);
	skb = alloc_skb(room + total + rt->dst.dev->needed_tailroom, GFP_KERNEL);
	if (!skb) {
		ip_rt_put(rt);
		paqm_fb_count(&fb->failed);
		return;
	}
	skb_reserve(skb, room);
	skb_reset_network_header(skb);
	ip = skb_put_zero(skb, sizeof(*ip));
	skb_set_transport_header(skb, sizeof(*ip));
	paqm_icmp_encode(skb_put(skb, len), PAQM_ICMP_TYPE_EXP, e->quote, e->len, &e->msg);

	ip->version = 4;
	ip->ihl = 5;
	ip->tos = 0xC0; /* CS6, as ICMP errors (RFC 1812 section 4.3.2.5) */
	ip->ttl = ip4_dst_hoplimit(&rt->dst);
	ip->protocol = IPPROTO_ICMP;
	ip->saddr = fl4.saddr;
	ip->daddr = fl4.daddr;
	skb->protocol = htons(ETH_P_IP);
	skb->priority = 6; /* TC_PRIO_INTERACTIVE */
	skb_dst_set(skb, &rt->dst);
	ip_select_ident(net, skb, NULL);
	err = ip_local_out(net, NULL, skb);
	if (net_xmit_eval(err))
		paqm_fb_count(&fb->failed);
	else
		paqm_fb_count(&fb->sent);
}

static void paqm_fb_work(struct work_struct *work)
{
	struct paqm_fb *fb = container_of(work, struct paqm_fb, work);
	u32 tail = fb->tail;

	/* pairs with the release in paqm_fb_queue() */
	while (tail != smp_load_acquire(&fb->head)) {
		paqm_fb_send(fb, &fb->ring[tail & (PAQM_FB_RING - 1)]);
		/* the slot has been read: pairs with the acquire in paqm_fb_queue() */
		smp_store_release(&fb->tail, ++tail);
		cond_resched();
	}
}

/**
 * paqm_fb_queue() - owe the sender of a packet a notice
 * @fb: transmitter
 * @skb: an IPv4/UDP packet without options, network header set
 * @msg: what to tell
 *
 * Called under the qdisc lock; copies the first bytes and wakes the work item.
 *
 * Return: false if the ring is full or the packet is cut.
 */
bool paqm_fb_queue(struct paqm_fb *fb, const struct sk_buff *skb, const struct paqm_msg *msg)
{
	u32 head = fb->head;
	struct paqm_fb_entry *e = &fb->ring[head & (PAQM_FB_RING - 1)];
	int off = skb_network_offset(skb);
	u32 len;

	/* pairs with the release in paqm_fb_work(): the slot has been read */
	if (head - smp_load_acquire(&fb->tail) >= PAQM_FB_RING) {
		paqm_fb_count(&fb->full);
		return false;
	}
	len = min_t(u32, skb->len - off, sizeof(struct iphdr) + 8 + PAQM_QUOTE_UDP);
	if (len < sizeof(struct iphdr) + 8 || skb_copy_bits(skb, off, e->quote, len) < 0)
		return false;
	e->len = len;
	e->msg = *msg;
	/* the slot is filled: pairs with the acquire in paqm_fb_work() */
	smp_store_release(&fb->head, head + 1);
	queue_work(system_highpri_wq, &fb->work);
	return true;
}
EXPORT_SYMBOL_GPL(paqm_fb_queue);

/**
 * paqm_fb_create() - new transmitter
 * @dev: device of the qdisc, gives the network namespace
 *
 * Return: the transmitter or NULL.
 */
struct paqm_fb *paqm_fb_create(struct net_device *dev)
{
	struct paqm_fb *fb = kvzalloc(sizeof(*fb), GFP_KERNEL);

	if (!fb)
		return NULL;
	INIT_WORK(&fb->work, paqm_fb_work);
	fb->dev = dev;
	fb->stamp = ktime_get_ns();
	return fb;
}
EXPORT_SYMBOL_GPL(paqm_fb_create);

/**
 * paqm_fb_destroy() - end a transmitter
 * @fb: transmitter or NULL; nobody may queue any more
 */
void paqm_fb_destroy(struct paqm_fb *fb)
{
	if (!fb)
		return;
	cancel_work_sync(&fb->work);
	kvfree(fb);
}
EXPORT_SYMBOL_GPL(paqm_fb_destroy);

/**
 * paqm_fb_set_rate() - bound on all messages together
 * @fb: transmitter
 * @bytes_per_second: on the IP layer
 */
void paqm_fb_set_rate(struct paqm_fb *fb, u64 bytes_per_second)
{
	WRITE_ONCE(fb->rate, bytes_per_second);
}
EXPORT_SYMBOL_GPL(paqm_fb_set_rate);

void paqm_fb_get_stats(const struct paqm_fb *fb, struct paqm_fb_stats *stats)
{
	stats->sent = READ_ONCE(fb->sent);
	stats->limited = READ_ONCE(fb->limited);
	stats->ring = READ_ONCE(fb->full);
	stats->refused = READ_ONCE(fb->refused);
	stats->failed = READ_ONCE(fb->failed);
}
EXPORT_SYMBOL_GPL(paqm_fb_get_stats);

MODULE_DESCRIPTION("P-AQM feedback messages");
MODULE_AUTHOR("The P-AQM project");
MODULE_LICENSE("GPL");
MODULE_VERSION("0.1.0");
