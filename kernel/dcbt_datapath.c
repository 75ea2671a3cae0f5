// SPDX-License-Identifier: GPL-2.0
/*
 * Packets of sch_dcbt: an arrival is classified and counted, the law in force decides, the packet
 * is queued at the end or, with ChIPS, where the average ends. What the law decides is in core/.
 *
 * Under the qdisc lock. Averages are updated by arrivals only, but for those of FRED.
 */
#include <linux/ktime.h>
#include <linux/random.h>
#include <net/dsfield.h>
#include <net/inet_ecn.h>
#include <net/pkt_sched.h>
#include "dcbt_state.h"
#include "paqm_count.h"
#include "paqm_gso.h"

#define DCBT_KEY_OTHER 1 /* what has no flow shares an account of FRED; no hash is so small */
#define DCBT_PACKET_MAX NSEC_PER_SEC /* who waits longer for the device is not sending */
#define DCBT_PACKET_SHIFT 4 /* weight of the newest time of a packet, 1/16 */

/**
 * struct dcbt_packet - what an arrival is
 * @key: its flow, 0: not counted
 * @class: its class
 */
struct dcbt_packet {
	u64 key;
	u8 class;
};

static u8 dcbt_class_of(const struct dcbt_sched_data *q, u8 proto, u8 dscp)
{
	if (proto == IPPROTO_TCP)
		return PAQM_CBT_TCP;
	return proto == IPPROTO_UDP && q->cfg.tag >> dscp & 1 ? PAQM_CBT_TAGGED :
								PAQM_CBT_UNTAGGED;
}

/* What is no IP, ICMP and what the network itself says count as TCP, and in no flow. */
static struct dcbt_packet dcbt_classify(const struct dcbt_sched_data *q, struct sk_buff *skb)
{
	bool hosts = q->cfg.flow_key == DCBT_FLOW_KEY_HOSTS;
	struct dcbt_packet to;
	struct paqm_packet p;

	p.hash = paqm_plain_flow(skb, &q->rules);
	if (likely(p.hash)) {
		p.family = skb->protocol == htons(ETH_P_IP) ? 4 : 6;
		p.net = skb_network_header(skb);
		p.proto = p.family == 4 ? ip_hdr(skb)->protocol : ipv6_hdr(skb)->nexthdr;
	} else {
		paqm_identify(skb, &q->rules, &p);
		if (p.note & PAQM_NOTE_TAGGED)
			paqm_behind_tags(skb);
		if (!p.family || p.kind == PAQM_KIND_SMALL || p.kind == PAQM_KIND_CONTROL)
			return (struct dcbt_packet){ 0, PAQM_CBT_TCP };
	}
	to.key = p.hash;
	if (p.family == 4) {
		const struct iphdr *ip = p.net;

		to.class = dcbt_class_of(q, p.proto, ip->tos >> 2);
		if (hosts && to.key)
			to.key = paqm_flow_hash4(ip, 0, 0, q->rules.key);
	} else {
		const struct ipv6hdr *ip6 = p.net;

		to.class = dcbt_class_of(q, p.proto, ipv6_get_dsfield(ip6) >> 2);
		if (hosts && to.key)
			to.key = paqm_flow_hash6(ip6, 0, 0, q->rules.key);
	}
	return to;
}

/* A packet has joined or left the account of its flow. */
static void dcbt_account(struct dcbt_sched_data *q, const struct sk_buff *skb, u64 now, bool joins)
{
	u64 key = dcbt_skb_key(skb);
	u32 i;

	if (q->cfg.mode != DCBT_MODE_FRED)
		return;
	if (joins) {
		i = paqm_active_touch(&q->active, key, dcbt_skb_cb(skb)->class, now);
		if (i != PAQM_ACTIVE_NONE) /* there are more slots than packets */
			q->active.flow[i].account.qlen++;
		return;
	}
	i = paqm_active_find(&q->active, key);
	if (i != PAQM_ACTIVE_NONE && !--q->active.flow[i].account.qlen)
		paqm_active_remove(&q->active, i);
}

/* The packet at place @i leaves the ring; all counts of what waits follow but the labels. */
static struct sk_buff *dcbt_pull(struct Qdisc *sch, u32 i)
{
	struct dcbt_sched_data *q = qdisc_priv(sch);
	struct sk_buff *skb = dcbt_ring_remove(&q->ring, i);
	u8 class = dcbt_skb_cb(skb)->class;
	struct dcbt_class *c = &q->class[class];

	WRITE_ONCE(q->qlen[class], q->qlen[class] - 1);
	WRITE_ONCE(c->backlog, c->backlog - qdisc_pkt_len(skb));
	dcbt_account(q, skb, 0, false);
	qdisc_qlen_dec(sch);
	qdisc_qstats_backlog_dec(sch, skb);
	return skb;
}

/* Take a packet out of the queue that will not be sent. */
struct sk_buff *dcbt_take_out(struct Qdisc *sch, u32 i)
{
	struct dcbt_sched_data *q = qdisc_priv(sch);
	struct sk_buff *skb = dcbt_pull(sch, i);

	if (q->cfg.chips)
		paqm_labels_remove(&q->labels, dcbt_skb_cb(skb)->class);
	return skb;
}

static void dcbt_insert(struct Qdisc *sch, u32 i, struct sk_buff *skb, u64 now)
{
	struct dcbt_sched_data *q = qdisc_priv(sch);
	u8 class = dcbt_skb_cb(skb)->class;
	struct dcbt_class *c = &q->class[class];

	if (i < q->ring.len)
		paqm_count(&c->cut_in);
	dcbt_ring_insert(&q->ring, i, skb);
	WRITE_ONCE(q->qlen[class], q->qlen[class] + 1);
	WRITE_ONCE(c->backlog, c->backlog + qdisc_pkt_len(skb));
	if (q->cfg.chips)
		paqm_labels_push(&q->labels, class);
	dcbt_account(q, skb, now, true);
	qdisc_qlen_inc(sch);
	qdisc_qstats_backlog_inc(sch, skb);
}

/* Another option is in force: labels anew from what waits, with @flows the table of flows, too. */
void dcbt_recount(struct dcbt_sched_data *q, bool flows, u64 now)
{
	u32 i;

	paqm_labels_clear(&q->labels);
	if (flows)
		paqm_active_clear(&q->active, now);
	for (i = 0; i < q->ring.len; i++) {
		const struct sk_buff *skb = *dcbt_ring_at(&q->ring, i);

		if (q->cfg.chips)
			paqm_labels_push(&q->labels, dcbt_skb_cb(skb)->class);
		if (flows)
			dcbt_account(q, skb, now, true);
	}
}

/* The queue is empty for some time: averages decay as if packets had been sent. */
static void dcbt_decay(struct dcbt_sched_data *q, u64 now)
{
	u64 packets;
	int i;

	if (q->ring.len || !q->idle_since || now <= q->idle_since)
		return;
	packets = paqm_red_idle(now - q->idle_since, q->packet_ns);
	if (!packets)
		return;
	q->idle_since = now;
	WRITE_ONCE(q->red.avg, paqm_red_decay(q->red.avg, q->params.weight_q24, packets));
	for (i = 0; i < PAQM_CBT_CLASSES && q->cfg.mode == DCBT_MODE_DCBT; i++)
		WRITE_ONCE(q->avg[i],
			   paqm_red_decay(q->avg[i], q->params.weight_q24, packets));
}

/* FRED; @key is the flow's, 0 none. */
static enum dcbt_why dcbt_judge_fred(struct dcbt_sched_data *q, u64 key)
{
	u32 i = paqm_active_find(&q->active, key);
	struct paqm_fred_flow none = {};
	struct paqm_fred_flow *flow = i == PAQM_ACTIVE_NONE ? &none : &q->active.flow[i].account;

	switch (paqm_fred_test(&q->red, &q->params, flow, paqm_dcbt_flows(q->active.count),
			       q->cfg.min_q, get_random_u32())) {
	case PAQM_FRED_PASS:
		WRITE_ONCE(q->red.avg, paqm_red_average(q->red.avg, q->ring.len,
							q->params.weight_q24));
		return DCBT_WHYS;
	case PAQM_FRED_EARLY:
		return DCBT_EARLY;
	case PAQM_FRED_STRIKE:
		return DCBT_FLOW;
	case PAQM_FRED_FORCED:
		break;
	}
	return DCBT_FORCED;
}

/* The thresholds of CBT; RED is for all, in mode cbt-tcp for TCP only. DCBT_WHYS: RED decides. */
static enum dcbt_why dcbt_judge_class(struct dcbt_sched_data *q, u8 class)
{
	u32 weight = q->params.weight_q24;

	if (q->cfg.mode == DCBT_MODE_DCBT) {
		u64 avg[PAQM_CBT_CLASSES], red_avg = q->red.avg;
		int i;

		memcpy(avg, q->avg, sizeof(avg));
		paqm_dcbt_average(&red_avg, avg, q->ring.len, dcbt_held(q), weight);
		WRITE_ONCE(q->red.avg, red_avg);
		for (i = 0; i < PAQM_CBT_CLASSES; i++)
			WRITE_ONCE(q->avg[i], avg[i]);
		if (!paqm_dcbt_gate(&q->params, red_avg))
			return DCBT_WHYS;
	} else if (class != PAQM_CBT_TCP) {
		WRITE_ONCE(q->avg[class],
			   paqm_red_average(q->avg[class], dcbt_held(q)[class], weight));
	}
	return class != PAQM_CBT_TCP && paqm_cbt_over(q->avg[class], dcbt_threshold(q, class)) ?
		       DCBT_THRESHOLD : DCBT_WHYS;
}

/* Why an arrival is to be dropped, DCBT_WHYS: it is not. FORCED may cost another one. */
static enum dcbt_why dcbt_judge(struct dcbt_sched_data *q, const struct dcbt_packet *to, u64 now)
{
	u32 len = q->ring.len;

	switch (q->cfg.mode) {
	case DCBT_MODE_FRED:
		return dcbt_judge_fred(q, to->key);
	case DCBT_MODE_CBT:
	case DCBT_MODE_CBT_TCP:
	case DCBT_MODE_DCBT:
		if (dcbt_judge_class(q, to->class) != DCBT_WHYS)
			return DCBT_THRESHOLD;
		if (q->cfg.mode != DCBT_MODE_CBT_TCP)
			break;
		if (to->class != PAQM_CBT_TCP)
			return DCBT_WHYS;
		len = dcbt_held(q)[PAQM_CBT_TCP];
	}
	if (q->cfg.mode != DCBT_MODE_DCBT)
		WRITE_ONCE(q->red.avg, paqm_red_average(q->red.avg, len, q->params.weight_q24));
	paqm_red_adapt(&q->red, &q->params, now);
	switch (paqm_red_test(&q->red, &q->params, len, get_random_u32())) {
	case PAQM_RED_PASS:
		return DCBT_WHYS;
	case PAQM_RED_EARLY:
		return DCBT_EARLY;
	case PAQM_RED_FORCED:
		break;
	}
	return DCBT_FORCED;
}

static int dcbt_drop(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free, u8 class,
		     enum dcbt_why why)
{
	static const enum paqm_drop reason[DCBT_WHYS] = {
		[DCBT_EARLY] = PAQM_DROP_INNER,	     [DCBT_FORCED] = PAQM_DROP_INNER,
		[DCBT_FULL] = PAQM_DROP_TAIL,	     [DCBT_THRESHOLD] = PAQM_DROP_STRIKE,
		[DCBT_FLOW] = PAQM_DROP_FULL,
	};
	struct dcbt_sched_data *q = qdisc_priv(sch);

	paqm_count(&q->class[class].drop[why]);
	if (why == DCBT_FULL)
		qdisc_qstats_overlimit(sch);
	return paqm_qdisc_drop(skb, sch, to_free, reason[why]);
}

/* The place of an arrival: the end, unless it is tagged and cuts in. */
static u32 dcbt_place(const struct dcbt_sched_data *q, const struct dcbt_packet *to)
{
	u32 len = q->ring.len;

	if (!q->cfg.chips || to->class != PAQM_CBT_TAGGED ||
	    !paqm_chips_cuts_in(q->red.avg, len, q->active.count, q->cfg.chips_share))
		return len;
	return dcbt_ring_place(&q->ring, paqm_chips_place(q->red.avg), to->key);
}

/* @unused: what paqm_gso_enqueue() passes on. */
static int dcbt_enqueue_one(struct sk_buff *skb, struct Qdisc *sch, int unused,
			    struct sk_buff **to_free)
{
	struct dcbt_sched_data *q = qdisc_priv(sch);
	struct dcbt_packet to = dcbt_classify(q, skb);
	struct dcbt_class *c = &q->class[to.class];
	struct dcbt_skb_cb *cb = dcbt_skb_cb(skb);
	u32 place, lost, len = qdisc_pkt_len(skb);
	u64 now = ktime_get_ns();
	enum dcbt_why why;

	paqm_count(&c->arrived);
	WRITE_ONCE(c->arrived_bytes, c->arrived_bytes + len);
	if (dcbt_counts(&q->cfg)) {
		if (to.key)
			paqm_active_touch(&q->active, to.key, to.class, now);
		paqm_active_sweep(&q->active, now, (u64)q->cfg.sweep * NSEC_PER_USEC);
	}
	if (!to.key)
		to.key = DCBT_KEY_OTHER;
	dcbt_decay(q, now);
	why = dcbt_judge(q, &to, now);
	if (why == DCBT_EARLY && q->cfg.ecn && INET_ECN_set_ce(skb)) {
		paqm_count(&c->marks);
		why = DCBT_WHYS;
	}
	if (why == DCBT_WHYS && q->ring.len >= q->cfg.limit) {
		paqm_red_dropped(&q->red);
		why = DCBT_FULL;
	}
	cb->key[0] = to.key;
	cb->key[1] = to.key >> 32;
	cb->class = to.class;
	cb->enqueued = now >> 10;
	if (why == DCBT_WHYS) {
		dcbt_insert(sch, dcbt_place(q, &to), skb, now);
		return NET_XMIT_SUCCESS;
	}
	if ((why != DCBT_FORCED && why != DCBT_FULL) || q->cfg.forced == DCBT_FORCED_TAIL ||
	    q->cfg.mode == DCBT_MODE_FRED || q->ring.len < 2)
		return dcbt_drop(skb, sch, to_free, to.class, why);
	/* a random one of all that would wait, but never the only one that parents know of */
	place = dcbt_place(q, &to);
	lost = get_random_u32_below(q->ring.len + 1);
	if (lost == place)
		return dcbt_drop(skb, sch, to_free, to.class, why);
	dcbt_insert(sch, place, skb, now);
	skb = dcbt_take_out(sch, lost);
	q->gone++;
	q->gone_bytes += qdisc_pkt_len(skb);
	dcbt_drop(skb, sch, to_free, dcbt_skb_cb(skb)->class, why);
	return NET_XMIT_SUCCESS;
}

/* One packet is one for all that is counted here: GSO packets are segmented. */
static noinline int dcbt_enqueue_gso(struct sk_buff *skb, struct Qdisc *sch,
				     struct sk_buff **to_free)
{
	struct dcbt_sched_data *q = qdisc_priv(sch);
	unsigned int total = qdisc_pkt_len(skb);
	struct sk_buff *segs = paqm_gso_segments(skb);
	struct paqm_cut cut;
	int ret;

	if (!segs) {
		paqm_count(&q->not_cut);
		return paqm_qdisc_drop(skb, sch, to_free, PAQM_DROP_TAIL);
	}
	ret = paqm_gso_enqueue(segs, sch, dcbt_enqueue_one, 0, to_free, &cut);
	if (cut.taken) {
		q->gone += 1 - cut.taken;
		q->gone_bytes += total - cut.bytes;
	}
	consume_skb(skb);
	return ret;
}

int dcbt_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct dcbt_sched_data *q = qdisc_priv(sch);
	int ret;

	q->gone = 0;
	q->gone_bytes = 0;
	ret = skb_is_gso(skb) ? dcbt_enqueue_gso(skb, sch, to_free) :
				dcbt_enqueue_one(skb, sch, 0, to_free);
	/* the parent adds one packet if we succeed */
	if (q->gone || q->gone_bytes)
		qdisc_tree_reduce_backlog(sch, q->gone, q->gone_bytes);
	return ret;
}

/* The mean time of a packet, from those that leave one behind the other. */
static void dcbt_measure(struct dcbt_sched_data *q, u64 now)
{
	u64 took;

	if (q->left) {
		took = min_t(u64, now - q->left, DCBT_PACKET_MAX);
		if (q->packet_ns)
			took = q->packet_ns - (q->packet_ns >> DCBT_PACKET_SHIFT) +
			       (took >> DCBT_PACKET_SHIFT);
		WRITE_ONCE(q->packet_ns, took);
	}
	q->left = q->ring.len ? now : 0;
}

struct sk_buff *dcbt_dequeue(struct Qdisc *sch)
{
	struct dcbt_sched_data *q = qdisc_priv(sch);
	u64 now, waited;
	struct dcbt_class *c;
	struct sk_buff *skb;

	if (!q->ring.len)
		return NULL;
	skb = dcbt_pull(sch, 0);
	if (q->cfg.chips)
		paqm_labels_pop(&q->labels);
	now = ktime_get_ns();
	dcbt_measure(q, now);
	if (!q->ring.len)
		q->idle_since = now;
	if (q->cfg.mode == DCBT_MODE_FRED)
		WRITE_ONCE(q->red.avg, paqm_red_average(q->red.avg, q->ring.len,
							q->params.weight_q24));
	c = &q->class[dcbt_skb_cb(skb)->class];
	paqm_count(&c->sent);
	WRITE_ONCE(c->sent_bytes, c->sent_bytes + qdisc_pkt_len(skb));
	waited = (u64)((u32)(now >> 10) - dcbt_skb_cb(skb)->enqueued) << 10;
	WRITE_ONCE(c->sojourn_ns, c->sojourn_ns + waited);
	paqm_count(&c->hist[paqm_hist_bin(waited)]);
	qdisc_bstats_update(sch, skb);
	return skb;
}
