/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Interface between the qdisc and the feedback transmitter.
 *
 * The qdisc calls paqm_fb_queue() under its lock with a packet whose sender is
 * owed a notice; that copies at most PAQM_QUOTE_MAX bytes and wakes a work item.
 * Routing, rate limiting and sending happen there, in process context.
 */
#ifndef PAQM_FEEDBACK_H
#define PAQM_FEEDBACK_H

#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include "core/paqm_msg.h"

struct paqm_fb;

/**
 * struct paqm_fb_stats - counters of the transmitter
 * @sent: messages handed to the network
 * @limited: not sent: token bucket empty
 * @ring: not sent: more notices than the ring holds
 * @refused: not sent: source is no unicast address one may answer
 * @failed: not sent: no route, no memory
 */
struct paqm_fb_stats {
	u32 sent;
	u32 limited;
	u32 ring;
	u32 refused;
	u32 failed;
};

struct paqm_fb *paqm_fb_create(struct net_device *dev);
void paqm_fb_destroy(struct paqm_fb *fb);
void paqm_fb_set_rate(struct paqm_fb *fb, u64 bytes_per_second);
bool paqm_fb_queue(struct paqm_fb *fb, const struct sk_buff *skb, const struct paqm_msg *msg);
void paqm_fb_get_stats(const struct paqm_fb *fb, struct paqm_fb_stats *stats);

#endif /* PAQM_FEEDBACK_H */
