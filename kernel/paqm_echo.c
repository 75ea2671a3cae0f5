// SPDX-License-Identifier: GPL-2.0
/*
 * paqm_feedback: RTT between this router and the sources that are told
 *
 * Every source that is owed a notice is sent an ICMP echo request now and then. An answer counts
 * once, if it comes from that source with our identifier, the sequence number of the last request
 * and its 64-bit nonce. So an off-path attacker cannot forge an RTT, and a source can only inflate
 * its own. But the longest counts for all (`rtt auto`): one that answers late makes rounds slow.
 *
 * Requests have a budget of their own, in packets and bytes, and are spaced: they go out one at a
 * time, to the source that has waited longest. For a source that does not answer they back off.
 *
 * Answers arrive on raw sockets, which exist only while RTTs are measured, and are read in softirq,
 * as soon as they arrive. Releasing a raw ICMPv6 socket takes RTNL where multicast is forwarded
 * (ip6mr_sk_done()), and whoever stops the measurement holds RTNL. So a work item releases the
 * sockets, at the latest before their namespace goes.
 */
#include <linux/icmp.h>
#include <linux/icmpv6.h>
#include <linux/ktime.h>
#include <linux/random.h>
#include <linux/sort.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <net/raw.h>
#include <net/sock.h>
#include "core/paqm_fix.h"
#include "core/paqm_msg.h"
#include "paqm_transmitter.h"

#define PAQM_ECHO_PER_SEC 10
#define PAQM_ECHO_SHARE_DIV 5		       /* of the budget of messages, on top of it */
#define PAQM_ECHO_FIRST_NS (300ULL * NSEC_PER_MSEC) /* between the first answers */
#define PAQM_ECHO_EVERY_NS (2ULL * NSEC_PER_SEC)
#define PAQM_ECHO_MISSES 6		       /* the backoff ends at 128 s between requests */
#define PAQM_ECHO_WAIT_NS (2ULL * NSEC_PER_SEC)  /* a later answer is late */
#define PAQM_RTT_FRESH_NS (30ULL * NSEC_PER_SEC) /* older answers do not count */

/* What follows the ICMP header of a request. */
struct paqm_echo {
	u8 type;
	u8 code;
	__be16 checksum;
	__be16 id;
	__be16 seq;
	__be64 nonce;
	u8 name[8]; /* tells who reads a capture what this is */
};

/* A raw socket, and the work item that releases it. */
struct paqm_echo_sock {
	struct socket *sock;
	struct work_struct end;
};

/* @ns, plus or minus up to a quarter. */
static u64 paqm_jitter(u64 ns)
{
	return ns - ns / 4 + paqm_muldiv(ns / 2, get_random_u32(), U32_MAX);
}

/* Time to the next request, after @peer has answered or has not. */
static u64 paqm_echo_pause(const struct paqm_peer *peer)
{
	if (peer->misses)
		return paqm_jitter(PAQM_ECHO_EVERY_NS
				   << min_t(u32, peer->misses, PAQM_ECHO_MISSES));
	return paqm_jitter(peer->kept < PAQM_RTT_KEPT ? PAQM_ECHO_FIRST_NS : PAQM_ECHO_EVERY_NS);
}

/* Minimum time between two requests, to any source. */
static u64 paqm_echo_gap(const struct paqm_fb *fb)
{
	u64 rate = paqm_div64(READ_ONCE(fb->rate), PAQM_ECHO_SHARE_DIV);
	u64 gap = NSEC_PER_SEC / PAQM_ECHO_PER_SEC;

	if (rate)
		gap = max(gap, paqm_muldiv(PAQM_IP6_HDR + sizeof(struct paqm_echo), NSEC_PER_SEC,
					   rate));
	return paqm_jitter(gap);
}

/**
 * paqm_echo_target() - a source is owed a notice: measure its RTT soon
 * @fb: transmitter, locked
 * @peer: the source
 */
void paqm_echo_target(struct paqm_fb *fb, struct paqm_peer *peer)
{
	if (fb->echo_on && !peer->mute && !peer->waiting && peer->due <= peer->seen &&
	    fb->echo_free <= peer->seen)
		mod_delayed_work(fb->wq, &fb->echo_work, 0);
}

/* No answer in time, or the request could not be sent. Under @fb->lock. */
static void paqm_echo_missed(struct paqm_peer *peer, u64 now)
{
	peer->waiting = false;
	if (peer->misses < U8_MAX)
		peer->misses++;
	peer->due = now + paqm_echo_pause(peer);
}

/*
 * The source to send a request to now, or NULL; *@next: ns until there may be one, 0 if no source
 * is active. Under @fb->lock. Also called early, when a source turns up.
 *
 * Sources that never answered get every second turn at most: they may be spoofed.
 */
static struct paqm_peer *paqm_echo_choose(struct paqm_fb *fb, u64 now, u64 *next)
{
	struct paqm_peer *peer, *known = NULL, *fresh = NULL, *best;

	*next = 0;
	for (peer = fb->peer; peer < fb->peer + PAQM_PEERS; peer++) {
		struct paqm_peer **first = peer->kept ? &known : &fresh;
		u64 wait;

		if (peer->waiting && now - peer->sent > PAQM_ECHO_WAIT_NS)
			paqm_echo_missed(peer, now);
		if (!peer->seen || peer->mute || now - peer->seen > PAQM_PEER_ACTIVE_NS)
			continue;
		wait = peer->waiting ? peer->sent + PAQM_ECHO_WAIT_NS : peer->due;
		wait = wait > now ? wait - now : 1;
		if (!*next || wait < *next)
			*next = wait;
		if (!peer->waiting && peer->due <= now && (!*first || peer->due < (*first)->due))
			*first = peer;
	}
	best = !known || (fresh && fb->echo_turn) ? fresh : known;
	if (!best)
		return NULL;
	if (now < fb->echo_free) {
		*next = fb->echo_free - now;
		return NULL;
	}
	*next = paqm_echo_gap(fb);
	fb->echo_free = now + *next;
	fb->echo_turn = best == known;
	for (peer = fb->peer; peer < fb->peer + PAQM_PEERS; peer++) {
		if (peer != best && peer->seen && !peer->mute && !peer->waiting && !peer->put_off &&
		    peer->due <= now && now - peer->seen <= PAQM_PEER_ACTIVE_NS) {
			peer->put_off = true;
			paqm_fb_count(&fb->st.echo_limited);
		}
	}
	return best;
}

/* Is @peer still the source at the end of @path? Under @fb->lock. */
static bool paqm_echo_is(const struct paqm_peer *peer, const struct paqm_path *path)
{
	return peer->seen && peer->vrf == path->vrf && ipv6_addr_equal(&peer->addr, &path->to);
}

/*
 * Send a request to the source in @slot; -ESTALE if it is no longer the one at the end of @path.
 * Consumes the path.
 */
static int paqm_echo_send(struct paqm_fb *fb, u32 slot, struct paqm_path *path)
{
	struct paqm_peer *peer = &fb->peer[slot];
	struct paqm_echo echo = {
		.type = path->v6 ? ICMPV6_ECHO_REQUEST : ICMP_ECHO,
		.name = { 'P', '-', 'A', 'Q', 'M', 'r', 't', 't' },
	};
	u16 check;

	do {
		get_random_bytes(&echo.nonce, sizeof(echo.nonce));
	} while (!echo.nonce);
	spin_lock_bh(&fb->lock);
	if (!paqm_echo_is(peer, path)) {
		spin_unlock_bh(&fb->lock);
		paqm_path_put(path);
		return -ESTALE;
	}
	peer->seq = (u16)(slot + ((peer->seq / PAQM_PEERS + 1) * PAQM_PEERS));
	peer->nonce = (__force u64)echo.nonce;
	peer->waiting = true;
	peer->put_off = false;
	peer->sent = ktime_get_ns();
	echo.id = fb->echo_id;
	echo.seq = htons(peer->seq);
	spin_unlock_bh(&fb->lock);

	if (path->v6)
		check = paqm_checksum6(path->src.s6_addr, path->to.s6_addr, (u8 *)&echo,
				       sizeof(echo));
	else
		check = paqm_checksum((u8 *)&echo, sizeof(echo));
	echo.checksum = htons(check);
	return paqm_path_send(fb->dev, path, NULL, NULL, (u8 *)&echo, sizeof(echo));
}

/*
 * An unbound socket sees what arrives in a VRF only with `raw_l3mdev_accept`. Without that, bind it
 * to the VRF of the source that is asked now: an answer counts if it comes before the next request
 * into another VRF.
 */
static void paqm_echo_bind(const struct paqm_fb *fb, const struct paqm_path *path)
{
#ifdef CONFIG_NET_L3_MASTER_DEV
	bool any = READ_ONCE(dev_net(fb->dev)->ipv4.sysctl_raw_l3mdev_accept);
	struct paqm_echo_sock *es = fb->echo_sock[path->v6];

	if (es) /* closed only after this work item has ended */
		WRITE_ONCE(es->sock->sk->sk_bound_dev_if, any ? 0 : path->vrf);
#endif
}

static void paqm_echo_work(struct work_struct *work)
{
	struct paqm_fb *fb = container_of(to_delayed_work(work), struct paqm_fb, echo_work);
	struct paqm_peer *peer;
	struct paqm_path path;
	u64 next;
	int err;

	spin_lock_bh(&fb->lock);
	peer = paqm_echo_choose(fb, ktime_get_ns(), &next);
	if (peer) {
		path.to = peer->addr;
		path.vrf = peer->vrf;
		path.mark = peer->mark;
	}
	spin_unlock_bh(&fb->lock);

	err = peer ? paqm_path_find(fb->dev, &path) : -ESTALE;
	if (!err && !path.ours) { /* its address has gone */
		paqm_path_put(&path);
		err = -EADDRNOTAVAIL;
	}
	if (!err) {
		paqm_echo_bind(fb, &path);
		err = paqm_echo_send(fb, peer - fb->peer, &path);
	}

	spin_lock_bh(&fb->lock);
	if (!err)
		paqm_fb_count(&fb->st.echo_sent);
	else if (err == PAQM_REFUSED)
		paqm_fb_count(&fb->st.echo_refused);
	else if (err != -ESTALE)
		paqm_fb_count(&fb->st.echo_failed);
	if (err && err != -ESTALE && paqm_echo_is(peer, &path))
		paqm_echo_missed(peer, ktime_get_ns());
	if (fb->echo_on && next)
		queue_delayed_work(fb->wq, &fb->echo_work, 1 + nsecs_to_jiffies(next));
	spin_unlock_bh(&fb->lock);
}

/* An echo reply with our identifier. */
static void paqm_echo_reply(struct paqm_fb *fb, const struct paqm_echo *echo,
			    const struct in6_addr *from)
{
	struct paqm_peer *peer = &fb->peer[ntohs(echo->seq) % PAQM_PEERS];
	u64 now = ktime_get_ns();

	spin_lock(&fb->lock);
	if (!peer->seen || peer->seq != ntohs(echo->seq) || !peer->nonce ||
	    peer->nonce != (__force u64)echo->nonce || !ipv6_addr_equal(&peer->addr, from)) {
		paqm_fb_count(&fb->st.echo_unknown);
	} else if (!peer->waiting || now - peer->sent > PAQM_ECHO_WAIT_NS) {
		peer->nonce = 0;
		paqm_fb_count(&fb->st.echo_late);
	} else {
		peer->nonce = 0;
		peer->waiting = false;
		peer->misses = 0;
		peer->answered = now;
		peer->rtt[peer->kept % PAQM_RTT_KEPT] =
			max_t(u32, (u32)(now - peer->sent) / NSEC_PER_USEC, 1);
		/* wraps late, and to a full set */
		peer->kept = peer->kept + 1 < 100 * PAQM_RTT_KEPT ? peer->kept + 1 : PAQM_RTT_KEPT;
		peer->due = now + paqm_echo_pause(peer);
		paqm_fb_count(&fb->st.echo_answered);
	}
	spin_unlock(&fb->lock);
}

/* Packets came to a raw socket: softirq. */
static void paqm_echo_ready(struct sock *sk)
{
	bool v6 = sk->sk_family == AF_INET6;
	const struct paqm_echo *echo;
	struct paqm_echo buf;
	struct in6_addr from;
	struct sk_buff *skb;
	struct paqm_fb *fb;

	read_lock_bh(&sk->sk_callback_lock);
	fb = sk->sk_user_data;
	while (fb && (skb = skb_dequeue(&sk->sk_receive_queue))) {
		echo = skb_header_pointer(skb, skb_transport_offset(skb), sizeof(buf), &buf);
		/* others ping too: what does not carry our identifier is theirs */
		if (echo && echo->type == (v6 ? ICMPV6_ECHO_REPLY : ICMP_ECHOREPLY) &&
		    echo->id == fb->echo_id) {
			if (v6)
				from = ipv6_hdr(skb)->saddr;
			else
				ipv6_addr_set_v4mapped(ip_hdr(skb)->saddr, &from);
			paqm_echo_reply(fb, echo, &from);
		}
		consume_skb(skb);
	}
	read_unlock_bh(&sk->sk_callback_lock);
}

/* Let a raw socket deliver echo replies only. */
static void paqm_echo_filter(struct sock *sk)
{
#if IS_ENABLED(CONFIG_IPV6)
	if (sk->sk_family == AF_INET6) {
		struct icmp6_filter *filter = &raw6_sk(sk)->filter;

		memset(filter->data, 0xFF, sizeof(filter->data));
		filter->data[ICMPV6_ECHO_REPLY / 32] = ~(1U << ICMPV6_ECHO_REPLY % 32);
		return;
	}
#endif
	raw_sk(sk)->filter.data = ~(1U << ICMP_ECHOREPLY);
}

static void paqm_echo_end(struct work_struct *work)
{
	struct paqm_echo_sock *es = container_of(work, struct paqm_echo_sock, end);

	sock_release(es->sock);
	kfree(es);
}

static int paqm_echo_open(struct paqm_fb *fb, int family, int protocol,
			  struct paqm_echo_sock **result)
{
	struct paqm_echo_sock *es = kzalloc(sizeof(*es), GFP_KERNEL_ACCOUNT);
	struct sock *sk;
	int err;

	if (!es)
		return -ENOMEM;
	INIT_WORK(&es->end, paqm_echo_end);
	/* a kernel socket does not hold the namespace: the device goes before that */
	err = sock_create_kern(dev_net(fb->dev), family, SOCK_RAW, protocol, &es->sock);
	if (err) {
		kfree(es);
		return err;
	}
	sk = es->sock->sk;
	write_lock_bh(&sk->sk_callback_lock);
	paqm_echo_filter(sk);
	sk->sk_user_data = fb;
	sk->sk_data_ready = paqm_echo_ready;
	write_unlock_bh(&sk->sk_callback_lock);
	*result = es;
	return 0;
}

static void paqm_echo_close(struct paqm_fb *fb, struct paqm_echo_sock **place)
{
	struct paqm_echo_sock *es = *place;
	struct sock *sk;

	if (!es)
		return;
	*place = NULL;
	sk = es->sock->sk;
	write_lock_bh(&sk->sk_callback_lock);
	sk->sk_user_data = NULL;
	write_unlock_bh(&sk->sk_callback_lock);
	queue_work(fb->wq, &es->end);
}

static void paqm_echo_switch(struct paqm_fb *fb, bool on)
{
	u32 i;

	spin_lock_bh(&fb->lock);
	WRITE_ONCE(fb->echo_on, on);
	fb->echo_id = (__force __be16)get_random_u32();
	for (i = 0; i < PAQM_PEERS; i++) { /* earlier measurements are void */
		fb->peer[i].due = 0;
		fb->peer[i].kept = 0;
		fb->peer[i].nonce = 0;
		fb->peer[i].misses = 0;
		fb->peer[i].waiting = false;
		fb->peer[i].answered = 0;
	}
	spin_unlock_bh(&fb->lock);
}

/**
 * paqm_fb_set_echo() - start or stop measuring RTTs
 * @fb: transmitter
 * @on: which
 *
 * Under RTNL, or when nobody else knows the transmitter.
 *
 * Return: 0, or the error of a socket; then nothing is measured.
 */
int paqm_fb_set_echo(struct paqm_fb *fb, bool on)
{
	int err = 0;

	if (on == fb->echo_on)
		return 0;
	if (on) {
		err = paqm_echo_open(fb, PF_INET, IPPROTO_ICMP, &fb->echo_sock[0]);
#if IS_ENABLED(CONFIG_IPV6)
		/* never load a protocol family under RTNL */
		if (!err && ipv6_mod_enabled())
			err = paqm_echo_open(fb, PF_INET6, IPPROTO_ICMPV6, &fb->echo_sock[1]);
#endif
		if (!err) {
			paqm_echo_switch(fb, true);
			return 0;
		}
	} else {
		paqm_echo_switch(fb, false);
		cancel_delayed_work_sync(&fb->echo_work);
	}
	paqm_echo_close(fb, &fb->echo_sock[0]);
	paqm_echo_close(fb, &fb->echo_sock[1]);
	return err;
}
EXPORT_SYMBOL_GPL(paqm_fb_set_echo);

static int paqm_cmp_u32(const void *a, const void *b)
{
	u32 x = *(const u32 *)a, y = *(const u32 *)b;

	return x < y ? -1 : x > y;
}

static u32 paqm_peer_rtt(const struct paqm_peer *peer)
{
	u32 sorted[PAQM_RTT_KEPT], n = min_t(u32, peer->kept, PAQM_RTT_KEPT);

	memcpy(sorted, peer->rtt, sizeof(sorted));
	sort(sorted, n, sizeof(sorted[0]), paqm_cmp_u32, NULL);
	return sorted[(n - 1) / 2]; /* the first answer may have waited for a neighbour's address */
}

/**
 * paqm_fb_rtt() - what is known of the RTTs
 * @fb: transmitter
 * @rtt: result
 */
void paqm_fb_rtt(struct paqm_fb *fb, struct paqm_fb_rtt *rtt)
{
	const struct paqm_peer *peer;
	u64 now, sum = 0;
	u32 one;

	*rtt = (struct paqm_fb_rtt){};
	if (!READ_ONCE(fb->echo_on))
		return;
	spin_lock_bh(&fb->lock);
	now = ktime_get_ns(); /* not before: no time of a peer may be later */
	for (peer = fb->peer; peer < fb->peer + PAQM_PEERS; peer++) {
		if (!peer->seen || now - peer->seen > PAQM_PEER_ACTIVE_NS || !peer->kept ||
		    now - peer->answered > PAQM_RTT_FRESH_NS)
			continue;
		one = paqm_peer_rtt(peer);
		sum += one;
		rtt->max_us = max(rtt->max_us, one);
		rtt->sources++;
	}
	spin_unlock_bh(&fb->lock);
	if (rtt->sources)
		rtt->mean_us = paqm_div64(sum, rtt->sources);
}
EXPORT_SYMBOL_GPL(paqm_fb_rtt);

/* Part of paqm_fb_create(). */
void paqm_echo_init(struct paqm_fb *fb)
{
	BUILD_BUG_ON(sizeof(struct paqm_echo) != 24);
	BUILD_BUG_ON(PAQM_PEERS & (PAQM_PEERS - 1) || PAQM_PEERS > 1 << 15);
	INIT_DELAYED_WORK(&fb->echo_work, paqm_echo_work);
}
