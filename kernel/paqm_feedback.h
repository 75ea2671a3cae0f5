/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Interface between the qdisc and the feedback transmitter.
 *
 * The qdisc calls paqm_fb_queue() under its lock with a packet whose sender is
 * owed a notice; that copies what proves it (core/paqm_quote.h) and wakes a work item.
 * Routing, rate limiting and sending happen there, in process context.
 *
 * A transmitter lives as long as its qdisc: it is made when first needed, and
 * whoever finds the pointer set may read its statistics, also without RTNL.
 */
#ifndef PAQM_FEEDBACK_H
#define PAQM_FEEDBACK_H

#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include "uapi/linux/pkt_sched_paqm.h"
#include "core/paqm_msg.h"

struct paqm_fb;

#define PAQM_TYPE_OF(carrier, number) { PAQM_FEEDBACK_##carrier, number },

/* ICMP type of a carrier's messages about IPv4, 0 if it sends none (PAQM_FEEDBACK_*) */
static inline u8 paqm_icmp_type(u32 feedback)
{
	static const u8 carriers[][2] = { PAQM_ICMP_CARRIERS(PAQM_TYPE_OF) };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(carriers); i++)
		if (carriers[i][0] == feedback)
			return carriers[i][1];
	return 0;
}

/**
 * struct paqm_fb_stats - counters of the transmitter
 * @sent: messages handed to the network
 * @limited: not sent: token bucket empty, or the target has had its part of it
 * @ring: not sent: more notices than the ring holds
 * @refused: not sent: source is no unicast address one may answer, or is not in the prefixes
 * @failed: not sent: no route, no memory
 * @echo_sent: echo requests handed to the network
 * @echo_answered: answers to them, each a measurement of the RTT
 * @echo_late: answers that came when they were no longer waited for
 * @echo_limited: echo requests that the budget put off
 * @echo_refused: not sent: the source may not be answered any more
 * @echo_failed: not sent: no route, no memory
 * @echo_unknown: replies with our identifier that answer no request
 */
struct paqm_fb_stats {
	u64 sent;
	u64 limited;
	u64 ring;
	u64 refused;
	u64 failed;
	u64 echo_sent;
	u64 echo_answered;
	u64 echo_late;
	u64 echo_limited;
	u64 echo_refused;
	u64 echo_failed;
	u64 echo_unknown;
};

/**
 * struct paqm_fb_rtt - RTT between this router and the sources that it told lately
 * @mean_us: mean over sources
 * @max_us: of the farthest source
 * @sources: how many answered lately; 0: nothing is known
 *
 * Each source counts with the median of its last answers: one delayed answer says nothing.
 */
struct paqm_fb_rtt {
	u32 mean_us;
	u32 max_us;
	u32 sources;
};

/**
 * struct paqm_told - what a flow was told last
 * @rate: binary32, 0: nothing
 * @tick: when, clock of the flow table
 * @low: the lowest that messages said since @low_tick; positive binary32 compare as numbers
 * @low_then: the lowest of the PAQM_TOLD_LOW_TICKS before, or of the last message if it is older
 * @low_tick: when @low began
 * @refused: what it was owed since was not in the budget
 * @outside: its source is in none of the prefixes
 * @messages: how many it was sent, lowest bits
 */
struct paqm_told {
	u32 rate;
	u32 tick;
	u32 low;
	u32 low_then;
	u32 low_tick;
	bool refused;
	bool outside;
	u8 messages;
};

#define PAQM_TOLD_LOW_TICKS 768 /* more than half of what even a far sender takes to answer */

static inline void paqm_told_set(struct paqm_told *told, u32 rate, u32 now_tick)
{
	WRITE_ONCE(told->rate, rate);
	WRITE_ONCE(told->tick, now_tick);
	WRITE_ONCE(told->refused, false);
}

/* A message says @rate: keep what was the lowest in the last second and a half. */
static inline void paqm_told_message(struct paqm_told *told, u32 rate, u32 now_tick)
{
	bool turn = !told->low || now_tick - told->low_tick >= PAQM_TOLD_LOW_TICKS;

	if (turn) {
		WRITE_ONCE(told->low_then, told->low);
		WRITE_ONCE(told->low_tick, now_tick);
	}
	WRITE_ONCE(told->low, turn ? rate : min(told->low, rate));
	WRITE_ONCE(told->messages, told->messages + 1);
	paqm_told_set(told, rate, now_tick);
}

enum paqm_fb_queued {
	PAQM_FB_QUEUED,
	PAQM_FB_FULL,  /* more notices wait than the ring holds */
	PAQM_FB_UNFIT, /* the packet is cut, or proves nothing */
};

struct paqm_fb *paqm_fb_create(struct net_device *dev);
void paqm_fb_destroy(struct paqm_fb *fb);
void paqm_fb_set_carrier(struct paqm_fb *fb, u32 feedback);
void paqm_fb_set_rate(struct paqm_fb *fb, u64 bytes_per_second);
void paqm_fb_set_prefixes(struct paqm_fb *fb, const struct tc_paqm_prefix *list, u32 n);
void paqm_fb_set_key(struct paqm_fb *fb, u16 id, const u8 *key);
int paqm_fb_set_echo(struct paqm_fb *fb, bool on);
enum paqm_fb_queued paqm_fb_queue(struct paqm_fb *fb, const struct sk_buff *skb,
				  const struct paqm_msg *msg, struct paqm_told *told, u32 now_tick,
				  bool keep);
void paqm_fb_release(struct paqm_fb *fb, const struct paqm_msg *msg, u32 now_tick);
void paqm_fb_flush(struct paqm_fb *fb);
void paqm_fb_get_stats(const struct paqm_fb *fb, struct paqm_fb_stats *stats);
void paqm_fb_rtt(struct paqm_fb *fb, struct paqm_fb_rtt *rtt);

#endif /* PAQM_FEEDBACK_H */
