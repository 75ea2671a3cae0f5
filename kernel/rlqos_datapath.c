// SPDX-License-Identifier: GPL-2.0
/*
 * Packets of sch_rlqos: an arrival is classified, thinned if it enters the network here, and
 * queued with its class. What is decided by numbers is in core/paqm_rlqos.h.
 *
 * Under the qdisc lock.
 */
#include <linux/ktime.h>
#include <linux/random.h>
#include <net/dsfield.h>
#include <net/pkt_sched.h>
#include "rlqos_state.h"
#include "paqm_gso.h"

#define RLQOS_LOOKS_AT 64 /* packets that may be dropped in the place of an arrival */

/**
 * struct rlqos_packet - what an arrival is
 * @frame: the picture that it is a part of, 0: not known
 * @class: enum paqm_rlqos_class
 */
struct rlqos_packet {
	u64 frame;
	u8 class;
};

/*
 * What one host sends to another with one RTP timestamp is a frame, whatever its ports and SSRC:
 * sub-streams of a picture have it in common. @off: of the UDP header.
 */
static u64 rlqos_frame(const struct rlqos_sched_data *q, const struct sk_buff *skb,
		       unsigned int off, const struct paqm_packet *p)
{
	u8 copy[12];
	const u8 *h = skb_header_pointer(skb, off + sizeof(struct udphdr), sizeof(copy), copy);
	__be32 stamp;

	if (!h)
		return 0;
	/* in a TURN channel RTP is behind a number and a length */
	stamp = (__force __be32)get_unaligned((const u32 *)(h + (h[0] & 0x80 ? 4 : 8)));
	return p->family == 4 ? paqm_flow_hash4(p->net, stamp, 0, q->rules.key) :
				paqm_flow_hash6(p->net, stamp, 0, q->rules.key);
}

static struct rlqos_packet rlqos_classify(const struct rlqos_sched_data *q,
					  const struct sk_buff *skb)
{
	struct rlqos_packet to = { 0, PAQM_RLQOS_TC3 };
	struct paqm_packet p;
	unsigned int off;
	u8 dscp;

	off = paqm_identify(skb, &q->rules, &p);
	if (off)
		paqm_look_into(skb, off, &p);
	if (p.kind == PAQM_KIND_CONTROL || p.kind == PAQM_KIND_SMALL) {
		to.class = PAQM_RLQOS_TC1;
		return to;
	}
	if (!p.family)
		return to;
	dscp = p.family == 4 ? ((const struct iphdr *)p.net)->tos >> 2 :
			       ipv6_get_dsfield(p.net) >> 2;
	if (p.kind == PAQM_KIND_RTP) {
		to.class = PAQM_RLQOS_TC2;
		if (q->cfg.frames)
			to.frame = rlqos_frame(q, skb, off, &p);
	} else if (q->cfg.tc2 >> dscp & 1) {
		to.class = PAQM_RLQOS_TC2;
	}
	return to;
}

/* A packet leaves its queue; all counts of what waits follow. */
static struct sk_buff *rlqos_pull(struct Qdisc *sch, struct rlqos_class *c, struct sk_buff *skb)
{
	__skb_unlink(skb, &c->queue);
	c->backlog -= qdisc_pkt_len(skb);
	qdisc_qlen_dec(sch);
	qdisc_qstats_backlog_dec(sch, skb);
	return skb;
}

/* It will not be sent. */
struct sk_buff *rlqos_take_out(struct Qdisc *sch, struct rlqos_class *c, struct sk_buff *skb)
{
	struct rlqos_sched_data *q = qdisc_priv(sch);

	c->drop_limit++;
	if (paqm_rlqos_hurt(&q->frames, rlqos_skb_frame(skb)))
		c->drop_again++;
	paqm_rlqos_hurts(&q->frames, rlqos_skb_frame(skb));
	return rlqos_pull(sch, c, skb);
}

static void rlqos_insert(struct Qdisc *sch, struct rlqos_class *c, struct sk_buff *skb)
{
	__skb_queue_tail(&c->queue, skb);
	c->backlog += qdisc_pkt_len(skb);
	qdisc_qlen_inc(sch);
	qdisc_qstats_backlog_inc(sch, skb);
}

/* One of the newest packets whose frame has lost none; NULL: there is none. */
static struct sk_buff *rlqos_unhurt(const struct rlqos_sched_data *q, struct rlqos_class *c)
{
	struct sk_buff *skb;
	int looked = 0;

	skb_queue_reverse_walk(&c->queue, skb) {
		if (!paqm_rlqos_hurt(&q->frames, rlqos_skb_frame(skb)))
			return skb;
		if (++looked == RLQOS_LOOKS_AT)
			break;
	}
	return NULL;
}

/* No room: the arrival is dropped, or another one in its place. */
static int rlqos_full(struct sk_buff *skb, struct Qdisc *sch, struct rlqos_class *c, bool hurt,
		      struct sk_buff **to_free)
{
	struct rlqos_sched_data *q = qdisc_priv(sch);
	/* never the only one that parents know of: a class above it would go to sleep for good */
	struct sk_buff *other = hurt && sch->q.qlen > 1 ? rlqos_unhurt(q, c) : NULL;

	qdisc_qstats_overlimit(sch);
	if (!other) {
		c->drop_limit++;
		if (hurt)
			c->drop_again++;
		paqm_rlqos_hurts(&q->frames, rlqos_skb_frame(skb));
		return paqm_qdisc_drop(skb, sch, to_free, PAQM_DROP_TAIL);
	}
	rlqos_insert(sch, c, skb);
	rlqos_take_out(sch, c, other);
	q->gone++;
	q->gone_bytes += qdisc_pkt_len(other);
	paqm_qdisc_drop(other, sch, to_free, PAQM_DROP_TAIL);
	return NET_XMIT_SUCCESS;
}

/* @unused: what paqm_gso_enqueue() passes on. */
static int rlqos_enqueue_one(struct sk_buff *skb, struct Qdisc *sch, int unused,
			     struct sk_buff **to_free)
{
	struct rlqos_sched_data *q = qdisc_priv(sch);
	struct rlqos_packet to = rlqos_classify(q, skb);
	struct rlqos_class *c = &q->class[to.class];
	struct rlqos_skb_cb *cb = rlqos_skb_cb(skb);
	u64 now = ktime_get_ns();
	bool media = to.class == PAQM_RLQOS_TC2, hurt;

	c->arrived++;
	c->arrived_bytes += qdisc_pkt_len(skb);
	cb->frame[0] = to.frame;
	cb->frame[1] = to.frame >> 32;
	cb->enqueued = now >> 10;
	rlqos_advance(q, now);
	hurt = paqm_rlqos_hurt(&q->frames, to.frame);
	if (media && (!q->cfg.transit || skb->mark != q->cfg.transit)) {
		c->entered++;
		if (paqm_rlqos_thins(&q->law, get_random_u32(), hurt)) {
			c->drop_thin++;
			paqm_rlqos_hurts(&q->frames, to.frame);
			return paqm_qdisc_drop(skb, sch, to_free, PAQM_DROP_INNER);
		}
	}
	if (skb_queue_len(&c->queue) >= (media ? q->cfg.limit : q->cfg.other_limit))
		return rlqos_full(skb, sch, c, hurt, to_free);
	rlqos_insert(sch, c, skb);
	return NET_XMIT_SUCCESS;
}

/* Lengths are packets: GSO packets are segmented. */
static noinline int rlqos_enqueue_gso(struct sk_buff *skb, struct Qdisc *sch,
				      struct sk_buff **to_free)
{
	struct rlqos_sched_data *q = qdisc_priv(sch);
	unsigned int total = qdisc_pkt_len(skb);
	struct sk_buff *segs = paqm_gso_segments(skb);
	struct paqm_cut cut;
	int ret;

	if (!segs) {
		q->not_cut++;
		return paqm_qdisc_drop(skb, sch, to_free, PAQM_DROP_TAIL);
	}
	ret = paqm_gso_enqueue(segs, sch, rlqos_enqueue_one, 0, to_free, &cut);
	if (cut.taken) {
		q->gone += 1 - cut.taken;
		q->gone_bytes += total - cut.bytes;
	}
	consume_skb(skb);
	return ret;
}

int rlqos_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct rlqos_sched_data *q = qdisc_priv(sch);
	int ret;

	q->gone = 0;
	q->gone_bytes = 0;
	ret = skb_is_gso(skb) ? rlqos_enqueue_gso(skb, sch, to_free) :
				rlqos_enqueue_one(skb, sch, 0, to_free);
	/* the parent adds one packet if we succeed */
	if (q->gone || q->gone_bytes)
		qdisc_tree_reduce_backlog(sch, q->gone, q->gone_bytes);
	return ret;
}

struct sk_buff *rlqos_dequeue(struct Qdisc *sch)
{
	struct rlqos_sched_data *q = qdisc_priv(sch);
	u32 waits[PAQM_RLQOS_CLASSES], i, len;
	enum paqm_rlqos_class who;
	struct rlqos_class *c;
	struct sk_buff *skb;
	u64 now, waited;

	for (i = 0; i < PAQM_RLQOS_CLASSES; i++)
		waits[i] = skb_queue_len(&q->class[i].queue);
	who = paqm_rlqos_next(q->credit, waits);
	if (who == PAQM_RLQOS_CLASSES)
		return NULL;
	now = ktime_get_ns();
	rlqos_advance(q, now);
	c = &q->class[who];
	skb = rlqos_pull(sch, c, skb_peek(&c->queue));
	len = qdisc_pkt_len(skb);
	q->credit = paqm_rlqos_credit(q->credit, who, len, q->cfg.tc1_share);
	c->sent++;
	c->sent_bytes += len;
	waited = (u64)((u32)(now >> 10) - rlqos_skb_cb(skb)->enqueued) << 10;
	c->sojourn_ns += waited;
	c->hist[paqm_hist_bin(waited)]++;
	qdisc_bstats_update(sch, skb);
	return skb;
}
