// SPDX-License-Identifier: GPL-2.0
/*
 * paqm_feedback - builds and sends the feedback messages of sch_paqm
 *
 * Carrier `icmp`: ICMP type 253 (RFC 4727 experiment) and ICMPv6 type 200 (RFC 4443
 * private experiment) with the layout of core/paqm_msg.h. Carrier `quench`: the same
 * messages, but those about IPv4 as ICMP type 4, which NAT translates as an error about
 * the quoted flow. ICMPv6 never had a Source Quench.
 *
 * No message is ever about a fragment, a packet with options or extension headers or anything but
 * UDP: the qdisc does not offer them. Nor does one go to an address that is not a single host's
 * (paqm_xmit.c) or that is outside the given prefixes (paqm_budget.c).
 */
#include <linux/etherdevice.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/siphash.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/udp.h>
#include <net/checksum.h>
#include <net/ipv6.h>
#include <net/route.h>
#include "paqm_compat.h"
#include "paqm_transmitter.h"

static struct workqueue_struct *paqm_fb_wq; /* of all transmitters */

/* Derive the key of the host at @addr: with it, a host can forge messages to itself only. */
static void paqm_fb_host_key(siphash_key_t *key, const struct in6_addr *addr)
{
	u8 bytes[PAQM_HOST_BYTES] __aligned(8);
	siphash_key_t own;
	int half;

	for (half = 0; half < 2; half++) {
		paqm_host_bytes(addr->s6_addr, half, bytes);
		own.key[half] = siphash(bytes, sizeof(bytes), key);
	}
	*key = own;
	memzero_explicit(&own, sizeof(own));
}

/* If there is a key, put its id and the tag for the host at @to into @msg. */
static void paqm_fb_tag(struct paqm_fb *fb, struct paqm_msg *msg, const u8 *quote, u32 len,
			const struct in6_addr *to)
{
	u8 bytes[PAQM_TAG_BYTES] __aligned(8), object[PAQM_OBJ_SENT_MAX];
	struct paqm_quote q;
	siphash_key_t key;
	u32 n;
	u16 id;

	if (paqm_quote_decode(quote, len, quote[0] >> 4, &q))
		return;
	spin_lock_bh(&fb->lock);
	id = fb->key_id;
	key = fb->key;
	spin_unlock_bh(&fb->lock);
	if (!id)
		return;
	msg->flags |= PAQM_F_AUTH;
	msg->key_id = id;
	paqm_fb_host_key(&key, to);
	n = paqm_object_encode(object, msg);
	msg->tag = siphash(bytes, paqm_tag_bytes(object, n, &q, bytes), &key);
	memzero_explicit(&key, sizeof(key));
}

/*
 * Does the quoted packet @q go to a single host? About multicast and broadcast every router on the
 * tree would send a message. Of a broadcast address in a VRF that a device above this one is in,
 * only the frame tells.
 */
static bool paqm_fb_single(struct net_device *dev, const struct paqm_way *way, const u8 *q,
			   bool v6)
{
	__be32 to;

	if (is_broadcast_ether_addr(way->mac))
		return false;
	if (v6)
		return q[24] != 0xFF;
	to = ((const struct iphdr *)q)->daddr;
	return !ipv4_is_multicast(to) && !ipv4_is_lbcast(to) &&
	       inet_addr_type_dev_table(dev_net(dev), dev, to) != RTN_BROADCAST;
}

/* The source to tell, and the destination of the quoted packet @q; IPv4 is mapped. */
static void paqm_fb_ends(const u8 *q, struct in6_addr *from, struct in6_addr *to)
{
	const struct ipv6hdr *ip6 = (const struct ipv6hdr *)q;
	const struct iphdr *ip = (const struct iphdr *)q;

	if (ip6->version == 6) {
		*to = ip6->saddr;
		*from = ip6->daddr;
	} else {
		ipv6_addr_set_v4mapped(ip->saddr, to);
		ipv6_addr_set_v4mapped(ip->daddr, from);
	}
}

/*
 * Is a message of @len bytes to the end of @path within the budget, for a flow that was told so
 * before? Who is told is worth knowing the RTT of, whether this message goes out or not.
 */
static bool paqm_fb_admit(struct paqm_fb *fb, const struct paqm_path *path, u32 len,
			  const struct paqm_told *told, u32 now_tick)
{
	u32 age = READ_ONCE(told->rate) ? now_tick - READ_ONCE(told->tick) : U32_MAX;
	u64 now = ktime_get_ns();
	struct paqm_peer *peer;
	bool ok;

	spin_lock_bh(&fb->lock);
	peer = paqm_peer_touch(fb, path, now);
	if (peer)
		paqm_echo_target(fb, peer);
	ok = paqm_fb_allow(fb, path, peer, len, age, now);
	if (!ok)
		paqm_fb_count(&fb->st.limited);
	spin_unlock_bh(&fb->lock);
	return ok;
}

/* Is the sender of a notice's packet, at @to, in one of the prefixes? That is noted at its flow. */
static bool paqm_fb_inside(struct paqm_fb *fb, const struct paqm_fb_entry *e,
			   const struct in6_addr *to)
{
	bool wanted = paqm_fb_wanted(fb, to);

	if (READ_ONCE(e->told->outside) == wanted)
		WRITE_ONCE(e->told->outside, !wanted);
	return wanted;
}

static void paqm_fb_send(struct paqm_fb *fb, struct paqm_fb_entry *e)
{
	const u8 *q = e->quote;
	bool v6 = q[0] >> 4 == 6;
	struct paqm_msg msg = e->msg;
	u8 icmp[PAQM_MSG_SENT_MAX];
	struct paqm_path path;
	struct in6_addr from;
	u8 type = READ_ONCE(fb->icmp_type); /* 0: no messages */
	int err;
	u32 len;

	if (!e->tracked)
		paqm_untranslate_late(fb->dev, e->quote);
	paqm_fb_ends(q, &from, &path.to);
	err = PAQM_REFUSED;
	/* a change of carrier may come before what is queued; and no IPv4 in disguise */
	if (type && v6 != ipv6_addr_v4mapped(&path.to) &&
	    paqm_fb_single(fb->dev, &e->way, q, v6) && paqm_fb_inside(fb, e, &path.to))
		err = paqm_path_back(fb->dev, &e->way, &from, &path);
	if (err) {
		paqm_fb_count(err == PAQM_REFUSED ? &fb->st.refused : &fb->st.failed);
		return;
	}
	paqm_fb_tag(fb, &msg, q, e->len, &path.to);
	len = (v6 ? PAQM_IP6_HDR : sizeof(struct iphdr)) + paqm_icmp_len(v6, e->len, &msg);
	if (!paqm_fb_admit(fb, &path, len, e->told, e->now_tick)) {
		WRITE_ONCE(e->told->refused, true);
		paqm_path_put(&path);
		return;
	}
	if (v6)
		len = paqm_icmp6_encode(icmp, PAQM_ICMP6_TYPE_EXP, path.src.s6_addr,
					path.to.s6_addr, q, e->len, &msg);
	else
		len = paqm_icmp_encode(icmp, type, q, e->len, &msg);
	err = paqm_path_send(fb->dev, &path, &e->way, fb->mac, icmp, len);
	paqm_fb_count(err ? &fb->st.failed : &fb->st.sent);
	if (err)
		return;
	paqm_told_message(e->told, paqm_f32_encode(msg.rate, 0), e->now_tick);
}

static void paqm_fb_work(struct work_struct *work)
{
	struct paqm_fb *fb = container_of(work, struct paqm_fb, work);
	u32 tail = fb->tail;

	/* pairs with the release in paqm_fb_ready() */
	while (tail != smp_load_acquire(&fb->ready)) {
		paqm_fb_send(fb, &fb->ring[tail & (PAQM_FB_RING - 1)]);
		/* the slot has been read: pairs with the acquire in paqm_fb_queue() */
		smp_store_release(&fb->tail, ++tail);
		cond_resched();
	}
}

/* What a packet, whose network header is at @off, says about the way back. */
static void paqm_way_of(const struct sk_buff *skb, int off, struct paqm_way *way)
{
	way->iif = skb->skb_iif;
	way->mark = skb->mark;
	way->vlan_proto = skb_vlan_tag_present(skb) ? skb->vlan_proto : 0;
	way->vlan_tci = skb->vlan_tci;
#ifdef CONFIG_NET_REDIRECT
	way->came_in = skb_is_redirected(skb) && skb->from_ingress;
#else
	way->came_in = false;
#endif
	if (off != ETH_HLEN || skb_copy_bits(skb, 0, way->mac, sizeof(way->mac)) < 0)
		memset(way->mac, 0, sizeof(way->mac));
}

/* Let the work item send all that was queued; under the qdisc lock. */
static void paqm_fb_ready(struct paqm_fb *fb)
{
	/* the slots are filled: pairs with the acquire in paqm_fb_work() */
	smp_store_release(&fb->ready, fb->head);
	queue_work(fb->wq, &fb->work);
}

/**
 * paqm_fb_release() - send the notices that are kept
 * @fb: transmitter
 * @msg: what they tell, but for what each says about its own flow; NULL: what they were queued with
 * @now_tick: time noted for their flows; not used without @msg
 *
 * Called under the qdisc lock.
 */
void paqm_fb_release(struct paqm_fb *fb, const struct paqm_msg *msg, u32 now_tick)
{
	u32 i;

	if (fb->ready == fb->head)
		return;
	for (i = fb->ready; msg && i != fb->head; i++) {
		struct paqm_fb_entry *e = &fb->ring[i & (PAQM_FB_RING - 1)];
		u32 own = e->msg.flags & (PAQM_F_OVERLOAD | PAQM_F_POLICED);

		e->msg = *msg;
		e->msg.flags |= own;
		e->now_tick = now_tick;
	}
	paqm_fb_ready(fb);
}
EXPORT_SYMBOL_GPL(paqm_fb_release);

/**
 * paqm_fb_queue() - owe the sender of a packet a notice
 * @fb: transmitter
 * @skb: an IPv4/UDP packet without options or an IPv6/UDP packet without extension
 *	headers, network header set
 * @msg: what to tell
 * @told: noted there when the message has been sent; must live until paqm_fb_flush()
 * @now_tick: time noted there
 * @keep: until paqm_fb_release(), or until the ring is full
 *
 * Called under the qdisc lock; copies the first bytes, as they were before NAT on this host, and
 * wakes the work item unless the notice is to be kept.
 *
 * Return: whether it was queued, or why not.
 */
enum paqm_fb_queued paqm_fb_queue(struct paqm_fb *fb, const struct sk_buff *skb,
				  const struct paqm_msg *msg, struct paqm_told *told, u32 now_tick,
				  bool keep)
{
	u32 head = fb->head;
	struct paqm_fb_entry *e = &fb->ring[head & (PAQM_FB_RING - 1)];
	int off = skb_network_offset(skb);
	const struct udphdr *udp;
	u32 least, len;

	/* pairs with the release in paqm_fb_work(): the slot has been read */
	if (head - smp_load_acquire(&fb->tail) >= PAQM_FB_RING) {
		if (fb->ready != head) /* they cannot be kept longer */
			paqm_fb_ready(fb);
		else
			paqm_fb_count(&fb->st.ring);
		return PAQM_FB_FULL;
	}
	if (skb_copy_bits(skb, off, e->quote, 1) < 0)
		return PAQM_FB_UNFIT;
	least = (e->quote[0] >> 4 == 6 ? PAQM_IP6_HDR : sizeof(struct iphdr)) + 8;
	len = min_t(u32, skb->len - off, least + PAQM_PROOF_MAX);
	if (len < least || skb_copy_bits(skb, off, e->quote, len) < 0)
		return PAQM_FB_UNFIT;
	udp = (const struct udphdr *)(e->quote + least - sizeof(*udp));
	len = min_t(u32, len - least, max_t(u32, ntohs(udp->len), sizeof(*udp)) - sizeof(*udp));
	len = paqm_proof_len(e->quote + least, len); /* padding proves nothing */
	if (!len)
		return PAQM_FB_UNFIT;
	e->tracked = paqm_untranslate(e->quote, skb);
	paqm_way_of(skb, off, &e->way);
	e->len = least + len;
	e->msg = *msg;
	e->told = told;
	e->now_tick = now_tick;
	fb->head = head + 1;
	if (!keep)
		paqm_fb_ready(fb);
	return PAQM_FB_QUEUED;
}
EXPORT_SYMBOL_GPL(paqm_fb_queue);

/**
 * paqm_fb_flush() - wait until all queued notices are sent or refused
 * @fb: transmitter; paqm_fb_release() must have been called, or none was kept
 */
void paqm_fb_flush(struct paqm_fb *fb)
{
	flush_work(&fb->work);
}
EXPORT_SYMBOL_GPL(paqm_fb_flush);

/**
 * paqm_fb_create() - new transmitter
 * @dev: device of the qdisc, gives the network namespace
 *
 * Return: the transmitter or NULL.
 */
struct paqm_fb *paqm_fb_create(struct net_device *dev)
{
	struct paqm_fb *fb = kvzalloc(sizeof(*fb), GFP_KERNEL_ACCOUNT);

	if (!fb)
		return NULL;
	fb->wq = paqm_fb_wq;
	INIT_WORK(&fb->work, paqm_fb_work);
	spin_lock_init(&fb->lock);
	fb->dev = dev;
	fb->icmp_type = PAQM_ICMP_TYPE_EXP;
	eth_random_addr(fb->mac);
	fb->active = 1;
	fb->hash = get_random_u32();
	paqm_echo_init(fb);
	return fb;
}
EXPORT_SYMBOL_GPL(paqm_fb_create);

/**
 * paqm_fb_destroy() - end a transmitter
 * @fb: transmitter or NULL; nothing may be queued any more
 *
 * Its memory is freed after a grace period: dumps read its statistics under RCU.
 */
void paqm_fb_destroy(struct paqm_fb *fb)
{
	if (!fb)
		return;
	paqm_fb_set_echo(fb, false);
	cancel_work_sync(&fb->work);
	memzero_explicit(&fb->key, sizeof(fb->key));
	kvfree_rcu(fb, rcu);
}
EXPORT_SYMBOL_GPL(paqm_fb_destroy);

/**
 * paqm_fb_set_carrier() - ICMP type of messages about IPv4
 * @fb: transmitter
 * @feedback: PAQM_FEEDBACK_*; with one that sends no messages all are refused
 *
 * Also for notices that are queued already.
 */
void paqm_fb_set_carrier(struct paqm_fb *fb, u32 feedback)
{
	WRITE_ONCE(fb->icmp_type, paqm_icmp_type(feedback));
}
EXPORT_SYMBOL_GPL(paqm_fb_set_carrier);

/**
 * paqm_fb_set_rate() - rate limit of all messages together
 * @fb: transmitter
 * @bytes_per_second: on the IP layer; echo requests have a fifth of it beside
 */
void paqm_fb_set_rate(struct paqm_fb *fb, u64 bytes_per_second)
{
	WRITE_ONCE(fb->rate, bytes_per_second);
}
EXPORT_SYMBOL_GPL(paqm_fb_set_rate);

/**
 * paqm_fb_set_prefixes() - sources that may be told
 * @fb: transmitter
 * @list: prefixes
 * @n: how many, at most PAQM_PREFIXES; 0: anywhere
 *
 * Also for notices that are queued already. On a change all that is known about sources is
 * forgotten: the RTT of some may not be measured any more.
 */
void paqm_fb_set_prefixes(struct paqm_fb *fb, const struct tc_paqm_prefix *list, u32 n)
{
	n = min_t(u32, n, PAQM_PREFIXES);
	spin_lock_bh(&fb->lock);
	if (n != fb->n_prefixes || memcmp(fb->prefix, list, n * sizeof(*list))) {
		fb->n_prefixes = n;
		memcpy(fb->prefix, list, n * sizeof(*list));
		memset(fb->peer, 0, sizeof(fb->peer));
	}
	spin_unlock_bh(&fb->lock);
}
EXPORT_SYMBOL_GPL(paqm_fb_set_prefixes);

/**
 * paqm_fb_set_key() - key of the tags from the next message on
 * @fb: transmitter
 * @id: how messages name it; 0: messages carry no tag
 * @key: PAQM_KEY_LEN bytes, read as SipHash has it
 *
 * Rotation without a gap: receivers learn the new key first, forget the old one last.
 */
void paqm_fb_set_key(struct paqm_fb *fb, u16 id, const u8 *key)
{
	BUILD_BUG_ON(sizeof(fb->key) != PAQM_KEY_LEN);
	spin_lock_bh(&fb->lock);
	fb->key_id = id;
	fb->key.key[0] = get_unaligned_le64(key);
	fb->key.key[1] = get_unaligned_le64(key + 8);
	spin_unlock_bh(&fb->lock);
}
EXPORT_SYMBOL_GPL(paqm_fb_set_key);

/**
 * paqm_fb_get_stats() - read the counters, from anywhere
 * @fb: transmitter
 * @stats: result
 */
void paqm_fb_get_stats(const struct paqm_fb *fb, struct paqm_fb_stats *stats)
{
	const struct paqm_fb_stats *st = &fb->st;

	stats->sent = READ_ONCE(st->sent);
	stats->limited = READ_ONCE(st->limited);
	stats->ring = READ_ONCE(st->ring);
	stats->refused = READ_ONCE(st->refused);
	stats->failed = READ_ONCE(st->failed);
	stats->echo_sent = READ_ONCE(st->echo_sent);
	stats->echo_answered = READ_ONCE(st->echo_answered);
	stats->echo_late = READ_ONCE(st->echo_late);
	stats->echo_limited = READ_ONCE(st->echo_limited);
	stats->echo_refused = READ_ONCE(st->echo_refused);
	stats->echo_failed = READ_ONCE(st->echo_failed);
	stats->echo_unknown = READ_ONCE(st->echo_unknown);
}
EXPORT_SYMBOL_GPL(paqm_fb_get_stats);

/* A namespace goes, after its devices; its raw sockets may still wait to be released. */
static void __net_exit paqm_fb_net_exit(struct net *net)
{
	flush_workqueue(paqm_fb_wq);
}

static struct pernet_operations paqm_fb_net_ops = {
	.exit = paqm_fb_net_exit,
};

static int __init paqm_fb_module_init(void)
{
	int err;

	paqm_fb_wq = alloc_workqueue("paqm_feedback", WQ_UNBOUND | WQ_HIGHPRI, 0);
	if (!paqm_fb_wq)
		return -ENOMEM;
	err = register_pernet_subsys(&paqm_fb_net_ops);
	if (err)
		destroy_workqueue(paqm_fb_wq);
	return err;
}

static void __exit paqm_fb_module_exit(void)
{
	unregister_pernet_subsys(&paqm_fb_net_ops);
	destroy_workqueue(paqm_fb_wq);
	/* paqm_echo_ready() may still be returning on another CPU */
	synchronize_rcu();
}

module_init(paqm_fb_module_init);
module_exit(paqm_fb_module_exit);

MODULE_DESCRIPTION("P-AQM feedback messages");
MODULE_AUTHOR("The P-AQM project");
MODULE_LICENSE("GPL");
MODULE_VERSION("0.1.0");
