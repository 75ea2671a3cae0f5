// SPDX-License-Identifier: GPL-2.0
/*
 * What arrives at sch_paqm: each packet is classified, counted in its flow, tested against the
 * flow's rate, and queued or dropped. The next packet of a flow that is owed a notice triggers it,
 * and packets with a field for the rate have it lowered.
 *
 * Under the qdisc lock.
 */
#include <linux/ktime.h>
#include <linux/netdevice.h>
#include <linux/prefetch.h>
#include <linux/workqueue.h>
#include <net/inet_ecn.h>
#include <net/pkt_sched.h>
#include "paqm_compat.h"
#include "core/paqm_bucket.h"
#include "core/paqm_law.h"
#include "core/paqm_maxmin.h"
#include "core/paqm_msg.h"
#include "paqm_capacity.h"
#include "paqm_class.h"
#include "paqm_classify.h"
#include "paqm_datapath.h"
#include "paqm_derive.h"
#include "paqm_event.h"
#include "paqm_feedback.h"
#include "paqm_flows.h"
#include "paqm_fragment.h"
#include "paqm_gso.h"
#include "paqm_inband.h"
#include "paqm_isolate.h"
#include "paqm_notice.h"
#include "paqm_over.h"
#include "paqm_queue.h"
#include "paqm_trace.h"
#include "paqm_trim.h"

#define PAQM_SMALL_BURST 3000 /* bytes: two large packets of uncounted media */
#define PAQM_OVERLOAD_NS (15 * NSEC_PER_MSEC) /* overlong for this time: overloaded */
#define PAQM_NOTICE_BURST_NS (100 * NSEC_PER_MSEC) /* notices may be this early */

/* First packet after an idle time: start the loops with u* = 1. */
static void paqm_wake(struct paqm_sched_data *q, u64 now)
{
	q->awake = true;
	q->queue[PAQM_MEDIA].inner = (struct paqm_inner_vars){};
	q->queue[PAQM_ELASTIC].inner = (struct paqm_inner_vars){};
	q->inner_stamp = now;
	WRITE_ONCE(q->preview_from, 0);
	q->over_stands = false;
	q->preview_vain = 0;
	q->preview_rest = 0;
	hrtimer_start(&q->inner_timer, ns_to_ktime(q->interval_ns), HRTIMER_MODE_REL_PINNED_SOFT);
	paqm_auto_start(q, now);
	queue_work(paqm_wq, &q->outer_work);
}

/*
 * Is a flow owed a notice, since it has not been told for a round or more? A message costs as much
 * as many packets: when too many are owed, a later packet of the flow triggers it. Then those that
 * were told a round ago wait for the others (notice_turn), since the first packets of a round are
 * always of the same flows where a server sends to all its viewers in turn. Where telling all flows
 * takes long, flows that may be gone soon must wait.
 */
static bool paqm_notice_owed(struct paqm_sched_data *q, const struct paqm_flow *flow, u64 now)
{
	u16 rounds = q->round - flow->round;

	if (q->notice_due > now + PAQM_NOTICE_BURST_NS) {
		q->notice_missed = true;
		return false;
	}
	return q->tell && (READ_ONCE(flow->every) & PAQM_KNOWN || !READ_ONCE(q->crowd_ticks)) &&
	       rounds >= paqm_flow_every(flow, READ_ONCE(q->max_every));
}

/* A flow that begins, or is owed nothing, waits for the next round: the present advice is older. */
static void paqm_notice_next(const struct paqm_sched_data *q, struct paqm_flow *flow)
{
	flow->round = q->round + 1 - q->notice_turn;
}

/* Rare properties of packets that are worth a counter. */
static void paqm_count_notes(struct paqm_sched_data *q, u8 note)
{
	if (note & PAQM_NOTE_NOT_IP)
		paqm_count(&q->not_ip);
	if (note & PAQM_NOTE_TAGGED)
		paqm_count(&q->tagged);
	if (note & PAQM_NOTE_TUNNEL)
		paqm_count(&q->tunnel);
	if (note & PAQM_NOTE_FRAGMENT)
		paqm_count(&q->fragment);
	if (note & PAQM_NOTE_DSCP)
		paqm_count(&q->dscp);
}

/*
 * Requests go with media, uncounted, within a budget, so that a bulk transfer disguised as DNS or
 * ping gains nothing. The budget is a virtual queue that holds 100 ms or, on a slow link,
 * PAQM_SMALL_BURST: an RTCP report and a request that come together must not begin an elastic flow
 * with a share of its own. The network's own packets have another such budget, @due, so that
 * requests cannot crowd them out.
 */
static u8 paqm_small_class(struct paqm_sched_data *q, u64 *due, u64 *count, u64 now, u32 len)
{
	u32 small_q8 = READ_ONCE(q->small_q8);
	u64 most = max_t(u64, 100 * NSEC_PER_MSEC, (u64)PAQM_SMALL_BURST * small_q8 >> 8);
	u64 from = max(*due, now);

	if (from - now > most) {
		paqm_count(&q->small_over);
		return PAQM_ELASTIC;
	}
	*due = from + ((u64)len * small_q8 >> 8);
	WRITE_ONCE(q->small_bytes, q->small_bytes + len);
	paqm_count(count);
	return PAQM_MEDIA;
}

/*
 * Class of a packet; @chosen by priority or filter, PAQM_CLASSES: by its kind.
 * PAQM_FLOW_UNSURE is media whose flow is not counted yet.
 */
static u8 paqm_queue_of(struct paqm_sched_data *q, struct paqm_flow *flow,
			const struct paqm_packet *p, int chosen, u64 now, u32 len)
{
	if (chosen < PAQM_CLASSES)
		return chosen;
	switch (p->kind) {
	case PAQM_KIND_UDP:
	case PAQM_KIND_RTP:
	case PAQM_KIND_UNKNOWN_UDP:
		return paqm_flow_judge_udp(&q->flows, flow, p);
	case PAQM_KIND_MEDIA:
		return PAQM_MEDIA;
	case PAQM_KIND_SMALL:
		return paqm_small_class(q, &q->small_due, &q->small, now, len);
	case PAQM_KIND_CONTROL:
		return paqm_small_class(q, &q->control_due, &q->control, now, len);
	}
	return PAQM_ELASTIC;
}

/*
 * The media queue is above 2 N_out. Packets of many streams that come at once are no overload:
 * they soon leave, as those before them did.
 */
static void paqm_begin_overload(struct paqm_sched_data *q, u64 now)
{
	if (!q->long_since)
		q->long_since = now;
	if (q->overloaded || now - q->long_since < max(PAQM_OVERLOAD_NS, q->burst_ns))
		return;
	WRITE_ONCE(q->overload_since, now);
	WRITE_ONCE(q->overloaded, true);
	paqm_inc(&q->overload);
	paqm_raise(q, PAQM_EV_QUEUE);
}

/* Count a packet in its flow. Does a media or elastic flow join with it? */
static bool paqm_count_flow(struct paqm_sched_data *q, struct paqm_flow *flow, u8 class, u32 wire,
			    bool fresh)
{
	u32 before = flow->bytes;

	paqm_flow_add(&q->flows, flow, wire);
	if (paqm_flow_class(flow) != class) {
		paqm_flow_set(flow, class, paqm_flow_nature(flow));
		fresh = true;
	}
	if (class == PAQM_ELASTIC) /* mice have not joined yet */
		return before < PAQM_MOUSE_BYTES && before + wire >= PAQM_MOUSE_BYTES &&
		       !paqm_flow_gauge(&q->flows, flow)->turns; /* nor joins again after 2^32 */
	return fresh && class == PAQM_MEDIA;
}

/*
 * Is the class of a packet's flow final? Not before UDP is judged, not where a rule chose it for
 * this packet only, and not where its packets have counters of their own.
 */
static bool paqm_settles(const struct paqm_flow *flow, const struct paqm_packet *p, int chosen)
{
	/* the fast path counts a tag beside the packet; it takes no other tags, and no pieces */
	if (chosen < PAQM_CLASSES || p->note & ~(PAQM_NOTE_TAGGED | PAQM_NOTE_FRAGMENT))
		return false;
	switch (p->kind) {
	case PAQM_KIND_UDP:
	case PAQM_KIND_RTP:
	case PAQM_KIND_UNKNOWN_UDP:
		return paqm_flow_nature(flow) != PAQM_NATURE_OPEN;
	}
	return p->kind == PAQM_KIND_ELASTIC || p->kind == PAQM_KIND_MEDIA;
}

/* How much of a packet's length on the link is IP's. */
static void paqm_note_part(struct paqm_sched_data *q, struct paqm_flow *flow,
			   const struct sk_buff *skb, u32 wire)
{
	s64 headers = (s64)paqm_segs(skb) * paqm_header_len(qdisc_dev(q->sch));
	u64 ip = max_t(s64, qdisc_pkt_len(skb) - headers, 0);

	paqm_flow_note_part(paqm_flow_more(&q->flows, flow), q->ip_part,
			    paqm_div64(ip << PAQM_IP_SHIFT, max(wire, 1U)));
}

/**
 * struct paqm_verdict - what a packet was classified as
 * @flow: its flow, NULL if that has no slot
 * @tag: hash of the flow, even if that has no slot
 * @class: its class
 * @lane: the limit it is held to there
 */
struct paqm_verdict {
	struct paqm_flow *flow;
	u32 tag;
	u8 class;
	u8 lane;
};

/* The limit that a media packet is held to. */
static u8 paqm_lane_of(const struct paqm_flow *flow, const struct paqm_packet *p, int chosen)
{
	if (chosen == PAQM_CLASSES && p->kind == PAQM_KIND_SMALL)
		return PAQM_LANE_SMALL;
	if (chosen == PAQM_CLASSES && p->kind == PAQM_KIND_CONTROL)
		return PAQM_LANE_CONTROL;
	return flow ? PAQM_LANE_FLOW : PAQM_LANE_STRANGER;
}

/*
 * The slow path of classification: what is a packet, which flow does it belong to, does that join
 * or change? @chosen is as below.
 */
static noinline struct paqm_verdict paqm_recognise(struct paqm_sched_data *q, struct sk_buff *skb,
						   int chosen, u64 now, u32 wire)
{
	u32 now_tick = paqm_flow_clock(now);
	struct paqm_flow *flow = NULL;
	bool fresh = false, rare = false, told = false;
	struct paqm_packet p;
	unsigned int off;
	u8 where;

	off = paqm_identify(skb, &q->rules, &p);
	if (unlikely(p.note & PAQM_NOTE_FRAGMENT))
		told = paqm_fragment_later(q->datagram, &p, &q->rules, now_tick, &where);
	if (p.hash)
		flow = paqm_flows_find(&q->flows, p.hash, now_tick, &fresh, &rare);
	if (off && paqm_flow_wants_look(flow, wire)) {
		paqm_look_into(skb, off, &p);
		if (!p.hash) /* it turned out to be control: no part of its flow */
			flow = NULL;
	}
	if (!flow && p.hash) {
		flow = paqm_flows_claim(&q->flows, &p, now_tick);
		fresh = true;
	}
	if (fresh && flow) /* older times mislead */
		flow->due = paqm_bucket_clock(now);
	if (p.note) {
		paqm_count_notes(q, p.note);
		paqm_skb_cb(skb)->moved = paqm_behind_tags(skb);
	}
	if (!told || chosen < PAQM_CLASSES)
		where = paqm_queue_of(q, flow, &p, chosen, now, wire);
	if (unlikely(p.piece) && !(p.note & PAQM_NOTE_FRAGMENT))
		paqm_fragment_first(q->datagram, &p, &q->rules, where, now_tick);
	if (flow) {
		if (where == PAQM_MEDIA && paqm_flow_look_due(flow->bytes, flow->bytes + wire))
			paqm_note_part(q, flow, skb, wire);
		fresh = paqm_count_flow(q, flow, where, wire, fresh);
		paqm_flow_settle(flow, paqm_settles(flow, &p, chosen) ? q->settled : 0);
		if (where == PAQM_FLOW_UNSURE) {
			paqm_count(&q->unsure);
			paqm_notice_next(q, flow); /* not counted, and owed nothing */
			return (struct paqm_verdict){ flow, flow->tag, PAQM_MEDIA,
						      PAQM_LANE_STRANGER };
		}
		if (fresh) {
			/* of rare packets each comes after a silence: one must tell their flow */
			if (!rare)
				paqm_notice_next(q, flow);
			if (where == PAQM_ELASTIC)
				paqm_raise(q, PAQM_EV_SPLIT);
			/* nor is one that is a newcomer already, or was one, an event */
			else if (!paqm_newcomers_pass(q) &&
				 paqm_flow_marked(&q->flows, flow) < PAQM_MARKED_OWN)
				paqm_raise(q, PAQM_EV_FLOW);
		}
	}
	return (struct paqm_verdict){ flow, paqm_flow_tag(p.hash ?: p.apart), where,
				      paqm_lane_of(flow, &p, chosen) };
}

/*
 * The queues are long, or their memory is used up: is there room for a packet, in its class or in
 * the flow queue @fq? Media above 2 N_out is an event.
 */
static noinline bool paqm_has_room(struct Qdisc *sch, enum paqm_class class,
				   const struct Qdisc *child, const struct paqm_flowq *fq, u32 len,
				   u64 now, struct sk_buff **to_free)
{
	struct paqm_sched_data *q = qdisc_priv(sch);
	const struct paqm_queue *queue = &q->queue[class];
	bool full = !paqm_room(sch, class, fq, len, to_free);

	if (class == PAQM_MEDIA &&
	    (u64)queue->st.backlog + len > READ_ONCE(q->overload_bytes))
		paqm_begin_overload(q, now);
	if (child)
		return !full || !child->q.qlen;
	if (fq)
		return !paqm_qlen(queue) || (!full && paqm_bulk_has_room(q, fq, len));
	return !queue->head ||
	       (!full && (u64)queue->st.backlog + len <= READ_ONCE(queue->limit));
}

/* The first packet after an idle time, of the qdisc or of the elastic class. */
static noinline void paqm_rouse(struct paqm_sched_data *q, enum paqm_class class, u64 now)
{
	if (!q->awake)
		paqm_wake(q, now);
	if (class == PAQM_ELASTIC && !q->elastic_awake) {
		q->elastic_awake = true;
		paqm_raise(q, PAQM_EV_SPLIT);
	}
}

/* Drop this packet of a policed flow? Then its bytes do not count as load. */
static noinline bool paqm_policed(struct paqm_sched_data *q, struct paqm_flow *flow, u32 wire)
{
	struct paqm_queue *queue = &q->queue[PAQM_MEDIA];

	if (paqm_draw(q) >= READ_ONCE(paqm_flow_gauge(&q->flows, flow)->drop))
		return false;
	WRITE_ONCE(queue->policed, queue->policed + wire);
	return true;
}

/* Does a packet of a known media flow join the common queue? */
static __always_inline bool paqm_conforms(struct paqm_sched_data *q, struct paqm_flow *flow,
					  u32 wire, u64 now)
{
	if (unlikely(READ_ONCE(flow->every) & PAQM_SHARES))
		return paqm_host_conforms(q, flow, wire, now);
	if (unlikely(flow->over) && !paqm_over_ends(q, flow))
		return false;
	return paqm_bucket_take(&flow->due, paqm_bucket_clock(now), wire, paqm_pace_known(q, flow),
				READ_ONCE(q->bucket_depth));
}

/* Does a media packet stay within the limit of its lane? */
static __always_inline bool paqm_within(struct paqm_sched_data *q, struct paqm_flow *flow,
					enum paqm_lane lane, u32 wire, u64 now)
{
	if (likely(lane == PAQM_LANE_FLOW)) {
		if (likely(READ_ONCE(flow->every) & PAQM_KNOWN))
			return paqm_conforms(q, flow, wire, now);
		lane = PAQM_LANE_STRANGER;
	}
	return lane != PAQM_LANE_STRANGER || paqm_stranger_conforms(q, flow, wire, now);
}

/* Put a packet at the end of its class's list. */
static __always_inline int paqm_join(struct sk_buff *skb, struct Qdisc *sch,
				     struct paqm_queue *queue, u64 now)
{
	struct paqm_sched_data *q = qdisc_priv(sch);

	if (!sch->q.qlen)
		paqm_begin_busy(q, now);
	paqm_skb_cb(skb)->enqueued = now;
	paqm_append(q, queue, skb);
	qdisc_qlen_inc(sch);
	qdisc_qstats_backlog_inc(sch, skb);
	return NET_XMIT_SUCCESS;
}

/*
 * Put a packet into its queue, or drop it. Inlined once for each class: half of it concerns only
 * one of them.
 */
static __always_inline int paqm_put(struct sk_buff *skb, struct Qdisc *sch, enum paqm_class class,
				    struct paqm_flow *flow, u32 tag, enum paqm_lane lane, u32 len,
				    u32 wire, u64 now, struct sk_buff **to_free)
{
	struct paqm_sched_data *q = qdisc_priv(sch);
	struct paqm_queue *queue = &q->queue[class];
	struct paqm_flowq *fq = NULL;
	struct Qdisc *child = NULL;
	u32 prob;

	if (unlikely(!(class == PAQM_MEDIA ? q->awake : q->elastic_awake)))
		paqm_rouse(q, class, now);
	if (unlikely(q->link_counts))
		WRITE_ONCE(queue->framing, queue->framing + wire - len);
	if (class == PAQM_ELASTIC) {
		WRITE_ONCE(q->elastic_last, paqm_flow_clock(now));
		child = rcu_dereference_bh(q->child);
		if (likely(q->isolate && !child)) {
			fq = paqm_bulk_of(q, tag);
			if (!paqm_elastic_waits(q)) { /* alone: no queue of its own, and room */
				q->alone_ahead = paqm_bulk_ahead(q, fq, len, now);
				WRITE_ONCE(queue->load, queue->load + wire);
				return paqm_join(skb, sch, queue, now);
			}
			if (!q->drr[PAQM_ELASTIC].qlen)
				WRITE_ONCE(q->elastic_since, now);
		}
	} else {
		if (flow && unlikely((u16)(q->round - flow->round) >= q->notice_turn) &&
		    paqm_notice_owed(q, flow, now))
			paqm_notice(q, flow, skb, now);
		if (flow && unlikely(READ_ONCE(flow->every) & PAQM_POLICED) &&
		    paqm_policed(q, flow, wire))
			return paqm_drop(skb, sch, to_free, class, &queue->n.drop_strike,
					 PAQM_DROP_STRIKE);
		if (likely(q->isolate) && unlikely(!paqm_within(q, flow, lane, wire, now)))
			return paqm_divert(skb, sch, flow, lane, len, wire, now, to_free);
	}
	WRITE_ONCE(queue->load, queue->load + wire);
	if (unlikely((u64)sch->qstats.backlog + len > READ_ONCE(q->calm) ||
		     q->memory > READ_ONCE(q->memory_limit)) &&
	    !paqm_has_room(sch, class, child, fq, len, now, to_free))
		return paqm_drop(skb, sch, to_free, class, &queue->n.drop_tail, PAQM_DROP_TAIL);
	if (unlikely(child))
		return paqm_enqueue_child(skb, sch, child, now, to_free);
	if (fq) {
		if (!sch->q.qlen)
			paqm_begin_busy(q, now);
		paqm_drr_append(sch, PAQM_ELASTIC, fq, skb, now);
		return NET_XMIT_SUCCESS;
	}
	prob = READ_ONCE(queue->inner.prob);
	if (unlikely(prob) && lane != PAQM_LANE_CONTROL && paqm_draw(q) < prob) {
		/* RFC 9332: under overload a mark is not enough */
		if (!q->cfg.ecn || prob >= 1U << 31 || !INET_ECN_set_ce(skb))
			return paqm_drop(skb, sch, to_free, class, &queue->n.drop_inner,
					 PAQM_DROP_INNER);
		paqm_count(&queue->n.ecn_mark);
		trace_drop(qdisc_dev(sch)->name, class, PAQM_DROP_MARK, len, queue->st.backlog,
			   prob);
	}

	if (class == PAQM_MEDIA && unlikely(q->stamp))
		paqm_stamp_packet(q, paqm_flow_counted(flow) ? flow : NULL, skb, now);
	return paqm_join(skb, sch, queue, now);
}

/* After the slow path. */
static noinline int paqm_put_media(struct sk_buff *skb, struct Qdisc *sch, struct paqm_verdict to,
				   u32 len, u32 wire, u64 now, struct sk_buff **to_free)
{
	return paqm_put(skb, sch, PAQM_MEDIA, to.flow, 0, to.lane, len, wire, now, to_free);
}

/* @chosen: class by priority or filter, PAQM_CLASSES: by the recogniser */
static __always_inline int paqm_enqueue_one(struct sk_buff *skb, struct Qdisc *sch, int chosen,
					    struct sk_buff **to_free)
{
	struct paqm_sched_data *q = qdisc_priv(sch);
	u32 len = qdisc_pkt_len(skb), wire = paqm_wire_len(q, skb, len);
	struct paqm_verdict to = {};
	struct paqm_flow *set;
	u64 now, hash = 0;

	if (likely(chosen == PAQM_CLASSES))
		hash = paqm_plain_flow(skb, &q->rules);
	set = paqm_flows_set(&q->flows, hash);
	/*
	 * With many flows the set is not in the cache, and it is larger than a line. Slots are
	 * taken from the first on: in a table that is half full the third line holds little, and
	 * to fetch it as well would evict something else.
	 */
	prefetchw(set);
	prefetchw((u8 *)set + SMP_CACHE_BYTES);
	now = ktime_get_ns();
	/* hash 0 finds a free slot at most, and that is not settled */
	to.flow = paqm_flows_slot(set, paqm_flow_tag(hash));
	if (likely(to.flow &&
		   paqm_flow_pass(to.flow, q->settled, wire, paqm_flow_clock(now)))) {
		if (unlikely(skb_vlan_tag_present(skb)))
			paqm_count(&q->tagged);
		if (paqm_flow_class(to.flow) == PAQM_MEDIA)
			return paqm_put(skb, sch, PAQM_MEDIA, to.flow, 0, PAQM_LANE_FLOW, len,
					wire, now, to_free);
		to.lane = PAQM_LANE_FLOW;
		to.tag = to.flow->tag;
	} else {
		to = paqm_recognise(q, skb, chosen, now, wire);
		if (to.class == PAQM_MEDIA)
			return paqm_put_media(skb, sch, to, len, wire, now, to_free);
	}
	return paqm_put(skb, sch, PAQM_ELASTIC, to.flow, to.tag, to.lane, len, wire, now,
			to_free);
}

static noinline int paqm_enqueue_chosen(struct sk_buff *skb, struct Qdisc *sch, int class,
					struct sk_buff **to_free)
{
	return paqm_enqueue_one(skb, sch, class, to_free);
}

/*
 * A segment may join another qdisc, which may drop whatever it holds: parents that serve us know of
 * each at once. Where all has gone they sleep, and only a packet of their own wakes them.
 */
static int paqm_enqueue_known(struct sk_buff *skb, struct Qdisc *sch, int class,
			      struct sk_buff **to_free)
{
	struct paqm_sched_data *q = qdisc_priv(sch);
	int len = qdisc_pkt_len(skb), ret;

	if (!sch->q.qlen)
		return paqm_drop(skb, sch, to_free, PAQM_ELASTIC,
				 &q->queue[PAQM_ELASTIC].n.drop_tail, PAQM_DROP_TAIL);
	ret = paqm_enqueue_chosen(skb, sch, class, to_free);
	if (ret == NET_XMIT_SUCCESS)
		qdisc_tree_reduce_backlog(sch, -1, -len);
	return ret;
}

/*
 * Segment a GSO packet that would hold the link for longer than the media target: 64 kB are 65 ms
 * at 8 Mbit/s.
 */
static noinline int paqm_enqueue_gso(struct sk_buff *skb, struct Qdisc *sch, int class,
				     struct sk_buff **to_free)
{
	struct paqm_sched_data *q = qdisc_priv(sch);
	struct sk_buff *segs = paqm_gso_segments(skb);
	unsigned int total = qdisc_pkt_len(skb);
	struct paqm_cut cut;
	int ret;

	if (!segs)
		return paqm_drop_uncut(skb, sch, class, to_free);
	consume_skb(skb);
	if (unlikely(rcu_access_pointer(q->child)) && sch->q.qlen) {
		ret = paqm_gso_enqueue(segs, sch, paqm_enqueue_known, class, to_free, &cut);
		return ret == NET_XMIT_SUCCESS ? ret | __NET_XMIT_STOLEN : ret; /* known */
	}
	ret = paqm_gso_enqueue(segs, sch, paqm_enqueue_chosen, class, to_free, &q->cut);
	if (q->cut.taken)
		qdisc_tree_reduce_backlog(sch, 1 - q->cut.taken, total - q->cut.bytes);
	q->cut = (struct paqm_cut){};
	return ret;
}

/*
 * Segment a GSO packet? From here on its number of segments counts. Rates can be written into
 * single packets only.
 */
static bool paqm_cuts(const struct paqm_sched_data *q, struct sk_buff *skb)
{
	if (unlikely(!skb_shinfo(skb)->gso_segs))
		paqm_count_segs(skb);
	return qdisc_pkt_len(skb) > READ_ONCE(q->gso_split) ||
	       (q->stamp && skb_shinfo(skb)->gso_type & SKB_GSO_UDP_L4);
}

int paqm_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct paqm_sched_data *q = qdisc_priv(sch);
	int class = paqm_choose(skb, sch, to_free);

	if (unlikely(class < 0))
		return ~class;
	if (unlikely(qdisc_pkt_len(skb) > READ_ONCE(q->gso_look)) && skb_is_gso(skb) &&
	    paqm_cuts(q, skb))
		return paqm_enqueue_gso(skb, sch, class, to_free);
	if (unlikely(class < PAQM_CLASSES))
		return paqm_enqueue_chosen(skb, sch, class, to_free);
	return paqm_enqueue_one(skb, sch, PAQM_CLASSES, to_free);
}
