/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Inside of the transmitter: its state, and what its parts offer each other.
 *
 *  paqm_fb.c	notices: ring, tags, what is quoted; calls the others
 *  paqm_nat.c	quotes of packets that this host translates
 *  paqm_echo.c	RTT of the sources that are told
 *  paqm_budget.c	who may be told, and how much
 *  paqm_xmit.c	routes and IP headers of what notices and echo requests are sent with
 */
#ifndef PAQM_TRANSMITTER_H
#define PAQM_TRANSMITTER_H

#include <linux/if_ether.h>
#include <linux/in6.h>
#include <linux/net.h>
#include <linux/rcupdate.h>
#include <linux/siphash.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <net/dst.h>
#include "paqm_feedback.h"

#define PAQM_FB_RING 256 /* power of two */
#define PAQM_PEER_SETS 32 /* power of two */
#define PAQM_PEER_WAYS 16 /* sets of fewer would be full long before the table */
#define PAQM_PEERS (PAQM_PEER_SETS * PAQM_PEER_WAYS)
#define PAQM_RESTS 512 /* shares of sources that have no entry */
#define PAQM_PEER_ACTIVE_NS (12ULL * NSEC_PER_SEC) /* deaf flows are told every 10 s */
#define PAQM_RTT_KEPT 5 /* answers whose median counts */

/**
 * struct paqm_way - what a packet says about the way back to its sender
 * @iif: device that it came in by, a VRF where that has it; 0: it is from this host
 * @mark: its mark
 * @vlan_proto: protocol of a VLAN tag that is kept beside it, 0: none
 * @vlan_tci: the tag
 * @mac: its Ethernet addresses, destination first; zeros where there are none
 * @came_in: tc has redirected it as it came in by @iif; else as it went out there, if at all
 */
struct paqm_way {
	int iif;
	u32 mark;
	__be16 vlan_proto;
	u16 vlan_tci;
	u8 mac[2 * ETH_ALEN];
	bool came_in;
};

/**
 * struct paqm_fb_entry - a queued notice
 * @msg: what to tell
 * @told: where to note that it was sent
 * @way: how the packet came
 * @now_tick: time of the packet
 * @len: bytes of @quote
 * @tracked: connection tracking had its connection at hand
 * @quote: the packet's first bytes, as its sender knows them; without IP options
 */
struct paqm_fb_entry {
	struct paqm_msg msg;
	struct paqm_told *told;
	struct paqm_way way;
	u32 now_tick;
	u16 len;
	bool tracked;
	u8 quote[PAQM_IP6_HDR + 8 + PAQM_PROOF_MAX] __aligned(8);
};

/**
 * struct paqm_part - part of the budget while that is short
 * @stamp: ns: last refill of @tokens
 * @tokens: bytes of messages
 * @judged: ns: when @turn was changed last
 * @turn: ticks of 2^20 ns: flows that were told more recently wait for the others
 * @missed: one that has had to wait for longer found nothing since
 */
struct paqm_part {
	u64 stamp;
	u64 tokens;
	u64 judged;
	u32 turn;
	bool missed;
};

/**
 * struct paqm_rest - share of sources that have no entry
 * @seen: ns: last notice owed; 0: none yet
 * @part: what they have together
 * @told: hash of the one that was told last
 */
struct paqm_rest {
	u64 seen;
	struct paqm_part part;
	u32 told;
};

/**
 * struct paqm_peer - a source that is told
 * @addr: its address; IPv4 is mapped
 * @vrf: VRF that it is reached in, 0: none
 * @mark: of the last packet that was answered
 * @since: ns: first notice owed
 * @seen: ns: last notice owed; 0: slot is free
 * @part: what it may have
 * @due: ns: next echo request
 * @sent: ns: last echo request
 * @nonce: what the answer to it must carry; 0: answered
 * @answered: ns: last answer
 * @rtt: us: last answers
 * @kept: number of answers put into @rtt, wraps
 * @seq: sequence number of the last request: slot and a counter
 * @misses: requests in a row without an answer
 * @waiting: an answer may still come in time
 * @put_off: the budget has delayed the request
 * @mute: messages to it bear the address of another host, so no echo reply would reach us
 */
struct paqm_peer {
	struct in6_addr addr;
	int vrf;
	u32 mark;
	u64 since;
	u64 seen;
	struct paqm_part part;
	u64 due;
	u64 sent;
	u64 nonce;
	u64 answered;
	u32 rtt[PAQM_RTT_KEPT];
	u32 kept;
	u16 seq;
	u8 misses;
	bool waiting;
	bool put_off;
	bool mute;
};

/**
 * struct paqm_fb - one transmitter
 * @rcu: frees it when no dump reads it any more
 * @wq: where @work and @echo_work run, and sockets end
 * @work: sends the notices in the ring
 * @dev: device of the qdisc; the qdisc does not outlive it
 * @head: next entry to fill; only the qdisc reads and writes it, under its lock
 * @ready: end of what @work may send; the qdisc writes it, under its lock
 * @tail: next entry to send; only @work writes it
 * @rate: bytes per second of the token bucket
 * @icmp_type: of messages about IPv4
 * @mac: Ethernet source of messages on the link
 * @lock: what follows; taken in process context and in softirq
 * @tokens: bytes in the bucket
 * @stamp: time of its last refill
 * @counted: time when @active was counted
 * @active: peers, and shares of the rest, that were owed a notice lately
 * @proven: peers of them that paqm_peer_proven() takes for real
 * @n_prefixes: 0: anywhere
 * @prefix: where messages may go
 * @key_id: id of @key; 0: messages are not tagged
 * @key: makes the tags
 * @st: counters
 * @echo_on: RTTs are measured
 * @echo_free: ns: the budget allows the next request
 * @echo_turn: the next request may go to a source that never answered
 * @echo_id: identifier of the echo requests, network order
 * @echo_work: sends them
 * @echo_sock: raw sockets that answers arrive on: ICMP, ICMPv6
 * @hash: seed of the hash that places peers
 * @peer: sources that are told
 * @rest: those that it has no room for
 * @ring: notices queued for @work
 */
struct paqm_fb {
	struct rcu_head rcu;
	struct workqueue_struct *wq;
	struct work_struct work;
	struct net_device *dev;
	u32 head;
	u32 ready;
	u32 tail;
	u64 rate;
	u8 icmp_type;
	u8 mac[ETH_ALEN];

	spinlock_t lock; /* what follows but the ring */
	u64 tokens;
	u64 stamp;
	u64 counted;
	u32 active;
	u32 proven;
	u32 n_prefixes;
	struct tc_paqm_prefix prefix[PAQM_PREFIXES];
	u16 key_id;
	siphash_key_t key;
	struct paqm_fb_stats st;
	u64 echo_free;
	bool echo_on;
	bool echo_turn;
	__be16 echo_id;
	struct delayed_work echo_work;
	struct paqm_echo_sock *echo_sock[2];
	u32 hash;
	struct paqm_peer peer[PAQM_PEERS];
	struct paqm_rest rest[PAQM_RESTS];
	struct paqm_fb_entry ring[PAQM_FB_RING];
};

#define PAQM_REFUSED 1 /* an address that is never answered; errors are negative */

/**
 * struct paqm_path - way to the receiver of a message
 * @dst: route; NULL: straight back on the link that the packet came over
 * @link: device of that link, 0: that of the queue
 * @src: source address, IPv4 mapped
 * @to: receiver, IPv4 mapped
 * @vrf: VRF to look it up in, 0: none
 * @mark: of the packet that is answered
 * @v6: IPv6
 * @ours: @src is an address of this host, to which it may answer
 */
struct paqm_path {
	struct dst_entry *dst;
	int link;
	struct in6_addr src;
	struct in6_addr to;
	int vrf;
	u32 mark;
	bool v6;
	bool ours;
};

static inline void paqm_fb_count(u64 *counter)
{
	WRITE_ONCE(*counter, *counter + 1);
}

bool paqm_untranslate(u8 *quote, const struct sk_buff *skb);
void paqm_untranslate_late(struct net_device *dev, u8 *quote);

bool paqm_fb_wanted(struct paqm_fb *fb, const struct in6_addr *addr);
struct paqm_peer *paqm_peer_touch(struct paqm_fb *fb, const struct paqm_path *path, u64 now);
bool paqm_fb_allow(struct paqm_fb *fb, const struct paqm_path *path, struct paqm_peer *peer,
		   u32 len, u32 age, u64 now);

int paqm_path_find(struct net_device *dev, struct paqm_path *path);
int paqm_path_back(struct net_device *dev, const struct paqm_way *way, const struct in6_addr *from,
		   struct paqm_path *path);
void paqm_path_put(struct paqm_path *path);
int paqm_path_send(struct net_device *dev, struct paqm_path *path, const struct paqm_way *way,
		   const u8 *own, const u8 *icmp, u32 len);

void paqm_echo_init(struct paqm_fb *fb);
void paqm_echo_target(struct paqm_fb *fb, struct paqm_peer *peer);

#endif /* PAQM_TRANSMITTER_H */
