// SPDX-License-Identifier: GPL-2.0
/*
 * sch_paqm - P-AQM: an AQM that tells media senders their fair rate
 *
 * Two queues share a link: media (U) and elastic (T). They are served byte-true
 * in proportion to what their flows can use, media with a bounded credit to
 * run ahead. Media flows that send more than their fair rate wait in queues of their
 * own. Every dT an inner loop per queue turns arrival rate and backlog
 * into a drop probability, the safety net. Every period d, and at once when
 * flows, split, capacity or queue change, an outer loop computes the fair rate
 * of media flows; each flow's next packet then triggers one message to its
 * sender. In steady state the senders keep the queue short and nothing is lost.
 *
 * Laws: A. Lie, NTNU 2008:74 (Papers D, F, App. C), in core/paqm_law.h; default
 * outer law: water-filling over measured rates, core/paqm_maxmin.h.
 *
 * Who runs where:
 *  enqueue/dequeue	under the qdisc lock: recognise, count, compare with a
 *			random number, copy the head of a packet for a notice
 *  inner hrtimer	softirq, no lock: reads counters, publishes probabilities
 *  outer work		process context, ctl_lock: walks the flow table, publishes
 *			advice and weights
 *  change		RTNL and ctl_lock; what the datapath reads is published by
 *			WRITE_ONCE or under sch_tree_lock
 */
#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/prefetch.h>
#include <linux/random.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <linux/workqueue.h>
#include <net/inet_ecn.h>
#include <net/pkt_sched.h>
#include "paqm_compat.h"
#include "uapi/linux/pkt_sched_paqm.h"
#include "core/paqm_hist.h"
#include "core/paqm_law.h"
#include "core/paqm_msg.h"
#include "core/paqm_sched.h"
#include "paqm_capacity.h"
#include "paqm_class.h"
#include "paqm_classify.h"
#include "paqm_config.h"
#include "paqm_feedback.h"
#include "paqm_flows.h"
#include "paqm_inband.h"
#include "paqm_inner.h"
#include "paqm_isolate.h"
#include "paqm_options.h"
#include "paqm_outer.h"
#include "paqm_state.h"
#include "paqm_trim.h"

#define CREATE_TRACE_POINTS
#include "paqm_trace.h"

#define PAQM_SHAPER_LAG_NS (5 * NSEC_PER_MSEC) /* departures may be late by so much */
#define PAQM_SPACING_TICKS 16 /* between two notices to a flow at least, twice that at most */
#define PAQM_SMALL_BURST 3000 /* bytes: two large packets of uncounted media */
#define PAQM_OVERLOAD_NS (15 * NSEC_PER_MSEC) /* a queue is long when it is for so long */
#define PAQM_NOTICE_WORTH (2 * PAQM_MSG_SENT_MAX) /* bytes that a flow sends for a notice */
#define PAQM_UNFIT_MOST 8 /* packets that cannot be quoted, of a flow in a round; after that */
#define PAQM_UNFIT_ONE_IN 64 /* not each is looked at. Pictures begin with small ones */
#define PAQM_NOTICE_BURST_NS (100 * NSEC_PER_MSEC) /* notices may be early by so much */
#define PAQM_NEWS_Q23 (1 << 20) /* binary32 rates that differ by less: by an eighth at most */

/* First packet after idleness: start the loops with u* = 1. */
static void paqm_wake(struct paqm_sched_data *q, u64 now)
{
	q->awake = true;
	q->queue[PAQM_MEDIA].inner = (struct paqm_inner_vars){};
	q->queue[PAQM_ELASTIC].inner = (struct paqm_inner_vars){};
	q->inner_stamp = now;
	WRITE_ONCE(q->preview_from, 0);
	q->over_stands = false;
	hrtimer_start(&q->inner_timer, ns_to_ktime(q->interval_ns), HRTIMER_MODE_REL_PINNED_SOFT);
	paqm_auto_start(q, now);
	mod_delayed_work(paqm_wq, &q->outer_work, 0);
}

/* ------------------------------------------------------------------ datapath */

/*
 * Is a flow owed a notice, as it has not been told about the present round? A message
 * costs as much as many packets: when too many are owed, the flow's turn comes with a
 * later packet. Where telling all flows takes long those that may be gone soon must wait.
 */
static bool paqm_notice_owed(const struct paqm_sched_data *q, const struct paqm_flow *flow, u64 now)
{
	u16 rounds = q->round - flow->round; /* 0, mostly */

	return rounds && q->notice_due <= now + PAQM_NOTICE_BURST_NS && q->tell &&
	       (READ_ONCE(flow->every) & PAQM_KNOWN || !READ_ONCE(q->crowd_ticks)) &&
	       rounds >= paqm_flow_every(flow, READ_ONCE(q->max_every));
}

/* The rate that a flow is told, bit/s on the IP layer. */
static u64 paqm_told(const struct paqm_sched_data *q, struct paqm_flow *flow)
{
	u64 rate = READ_ONCE(paqm_flow_gauge(&q->flows, flow)->rate);
	u64 fair = READ_ONCE(q->fair), equal = READ_ONCE(q->equal), most;

	if (q->cfg.law != PAQM_LAW_MAXMIN)
		return q->advice.rate;
	if (!(READ_ONCE(flow->every) & PAQM_KNOWN))
		return q->told_new;
	if (READ_ONCE(flow->every) & PAQM_SHARES) {
		const struct paqm_host *host = paqm_host_of(q, flow);

		most = paqm_mm_may_grow(paqm_host_part(host, fair),
					paqm_div64(equal, max(READ_ONCE(host->flows), 1U)), rate,
					READ_ONCE(q->slow));
		return max(paqm_ip_rate(q, most), PAQM_RATE_MIN);
	}
	most = paqm_mm_may_grow(fair, equal, rate, READ_ONCE(q->slow));
	return most < fair ? max(paqm_ip_rate(q, most), PAQM_RATE_MIN) : q->advice.rate;
}

/* Where telling all flows takes long those that know must wait, until all others have been told. */
static bool paqm_notice_can_wait(const struct paqm_sched_data *q, struct paqm_flow *flow,
				 const struct paqm_flow_more *more, u32 now_tick)
{
	u32 crowd = READ_ONCE(q->crowd_ticks), before, told;

	before = READ_ONCE(more->told.rate);
	if (!crowd || !before || now_tick - READ_ONCE(more->told.tick) >= crowd)
		return false;
	told = paqm_f32_encode(paqm_told(q, flow), 0);
	return max(told, before) - min(told, before) < PAQM_NEWS_Q23;
}

/* Take the head of a packet for a notice, if it is one that may be quoted. */
static noinline void paqm_notice(struct paqm_sched_data *q, struct paqm_flow *flow,
				 const struct sk_buff *skb, u64 now)
{
	struct paqm_flow_more *more = paqm_flow_more(&q->flows, flow);
	u32 now_tick = paqm_flow_clock(now);
	enum paqm_fb_queued queued;
	struct paqm_packet p;
	struct paqm_msg msg;

	if (paqm_notice_can_wait(q, flow, more, now_tick)) {
		flow->round = q->round;
		return;
	}

	/* late news and new ones not at once; by lot, so that flows do not keep step */
	if (READ_ONCE(more->told.rate) &&
	    now_tick - READ_ONCE(more->told.tick) < PAQM_SPACING_TICKS +
						(flow->tag ^ q->round) % PAQM_SPACING_TICKS)
		return;
	/* or invented sources could have others sent more than they send themselves */
	if (flow->bytes - more->told_bytes < PAQM_NOTICE_WORTH)
		return;
	/* a look costs as much as many packets: not each of a flow that may have none to quote */
	if (more->unfit_round != q->round) {
		more->unfit_round = q->round;
		more->unfit = 0;
	}
	if (more->unfit == PAQM_UNFIT_MOST && paqm_draw(q) % PAQM_UNFIT_ONE_IN)
		return;
	paqm_identify(skb, &q->rules, &p);
	msg = q->advice;
	msg.rate = paqm_told(q, flow);
	if (q->overloaded)
		msg.flags |= PAQM_F_OVERLOAD;
	if (READ_ONCE(flow->every) & PAQM_POLICED)
		msg.flags |= PAQM_F_POLICED;
	queued = p.quotable ? paqm_fb_queue(q->fb, skb, &msg, &more->told, now_tick) :
			      PAQM_FB_UNFIT;
	if (queued == PAQM_FB_UNFIT) { /* fragment, options, tags, proves too little: left alone */
		more->unfit = min(more->unfit + 1, PAQM_UNFIT_MOST);
		paqm_count(&q->notices_unfit);
		return;
	}
	q->notice_due = max(q->notice_due, now) + q->notice_gap_ns;
	paqm_count(&q->notices_owed);
	if (queued == PAQM_FB_QUEUED) { /* or its next packet tries again */
		flow->round = q->round;
		more->told_bytes = flow->bytes;
	}
	trace_notice(qdisc_dev(q->sch)->name, &p, &msg, queued == PAQM_FB_QUEUED);
}

/*
 * Lower the rate in a packet of a media flow that goes into the queue, or in a probe,
 * which belongs to no flow. The packet's headers may move.
 */
static noinline void paqm_stamp_packet(struct paqm_sched_data *q, struct paqm_flow *flow,
				       struct sk_buff *skb, u64 now)
{
	struct paqm_field field = q->field;
	enum paqm_stamp done;

	if (!field.rate) /* nothing is known yet */
		return;
	if (flow)
		field.rate = paqm_f32_encode(paqm_told(q, flow), 0);
	done = paqm_stamp(skb, &field, flow);
	paqm_count(&q->stamped[done]);
	if (flow && done != PAQM_STAMP_NONE) {
		struct paqm_flow_more *more = paqm_flow_more(&q->flows, flow);

		WRITE_ONCE(more->hears, more->hears | PAQM_HEARS_INBAND);
		paqm_told_set(&more->told, field.rate, paqm_flow_clock(now));
	}
}

static noinline int paqm_drop(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free,
			      enum paqm_class class, u64 *counter, enum paqm_drop why)
{
	struct paqm_sched_data *q = qdisc_priv(sch);

	paqm_count(counter);
	if (why == PAQM_DROP_TAIL)
		qdisc_qstats_overlimit(sch);
	trace_drop(qdisc_dev(sch)->name, class, why, qdisc_pkt_len(skb),
		   q->queue[class].st.backlog, q->queue[class].inner.prob);
	return paqm_qdisc_drop(skb, sch, to_free, why);
}

/* The first packet after an idle time. */
static void paqm_begin_busy(struct paqm_sched_data *q, u64 now)
{
	WRITE_ONCE(q->idle_ns, q->idle_ns + now - q->idle_since);
	WRITE_ONCE(q->idle_since, now);
	q->meter.busy = 0; /* whoever emptied the queue, a departure or not */
	if (q->next_tx < now)
		q->next_tx = now;
}

/* Hand an elastic packet to the qdisc of that class. */
static noinline int paqm_enqueue_child(struct sk_buff *skb, struct Qdisc *sch,
				       struct Qdisc *child, u64 now, struct sk_buff **to_free)
{
	struct paqm_sched_data *q = qdisc_priv(sch);
	u32 len = qdisc_pkt_len(skb);
	bool idle = !sch->q.qlen;
	/* not qdisc_enqueue(): a child's size table must not change what we account */
	int ret = child->enqueue(skb, child, to_free);

	if (ret != NET_XMIT_SUCCESS) {
		if (net_xmit_drop_count(ret))
			qdisc_qstats_drop(sch);
		return ret;
	}
	if (idle)
		paqm_begin_busy(q, now);
	qdisc_qlen_inc(sch);
	WRITE_ONCE(sch->qstats.backlog, sch->qstats.backlog + len);
	return ret;
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
 * Requests ride with media uncounted, within a budget: a bulk transfer that poses as
 * DNS or ping gets nothing out of it. Like a virtual queue of that rate which holds
 * 100 ms or, on a slow link, PAQM_SMALL_BURST: a report of RTCP and a request at the
 * same time shall not begin an elastic flow with a share of its own. The network's own
 * packets have another such budget, @due, so that requests cannot crowd them out.
 */
static u8 paqm_small_class(struct paqm_sched_data *q, u64 *due, u64 *count, u64 now, u32 len)
{
	u64 most = max_t(u64, 100 * NSEC_PER_MSEC, (u64)PAQM_SMALL_BURST * q->small_q8 >> 8);
	u64 from = max(*due, now);

	if (from - now > most) {
		paqm_count(&q->small_over);
		return PAQM_ELASTIC;
	}
	*due = from + ((u64)len * q->small_q8 >> 8);
	paqm_count(count);
	return PAQM_MEDIA;
}

/*
 * Queue of a packet; @chosen by priority or filter, PAQM_CLASSES: by what it is.
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
 * The media queue is above 2 N_out. Packets of many streams that come together are no
 * overload: they are gone soon.
 */
static void paqm_begin_overload(struct paqm_sched_data *q, u64 now)
{
	if (!q->long_since)
		q->long_since = now;
	if (q->overloaded || now - q->long_since < PAQM_OVERLOAD_NS)
		return;
	q->overloaded = true;
	q->overload_since = now;
	paqm_inc(&q->overload);
	paqm_raise(q, PAQM_EV_QUEUE);
}

static void paqm_end_overload(struct paqm_sched_data *q, u64 now)
{
	q->long_since = 0;
	if (!q->overloaded)
		return;
	q->overloaded = false;
	WRITE_ONCE(q->overload_ns, q->overload_ns + now - q->overload_since);
}

/* Count a packet in its flow; says whether a media or elastic flow joins by it. */
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
 * Does the flow of a packet stay what it is, whatever comes? Not before UDP is judged,
 * not by a rule for the single packet, and not where packets have counters of their own.
 */
static bool paqm_settles(const struct paqm_flow *flow, const struct paqm_packet *p, int chosen)
{
	/* a tag beside the packet is counted on the short way, one within does not go there */
	if (chosen < PAQM_CLASSES || p->note & ~PAQM_NOTE_TAGGED)
		return false;
	switch (p->kind) {
	case PAQM_KIND_UDP:
	case PAQM_KIND_RTP:
	case PAQM_KIND_UNKNOWN_UDP:
		return paqm_flow_nature(flow) != PAQM_NATURE_OPEN;
	}
	return p->kind == PAQM_KIND_ELASTIC || p->kind == PAQM_KIND_MEDIA;
}

/**
 * struct paqm_verdict - where a packet belongs
 * @flow: NULL if it has none
 * @tag: hash of it, though it may have no slot
 * @class: its queue
 * @lane: what it is held to there
 */
struct paqm_verdict {
	struct paqm_flow *flow;
	u32 tag;
	u8 class;
	u8 lane;
};

/* What a packet of media is held to. */
static u8 paqm_lane_of(const struct paqm_flow *flow, const struct paqm_packet *p, int chosen)
{
	if (chosen == PAQM_CLASSES && p->kind == PAQM_KIND_SMALL)
		return PAQM_LANE_SMALL;
	if (chosen == PAQM_CLASSES && p->kind == PAQM_KIND_CONTROL)
		return PAQM_LANE_CONTROL;
	return flow ? PAQM_LANE_FLOW : PAQM_LANE_STRANGER;
}

/*
 * A packet that needs a closer look: what is it, which flow does it belong to, does that
 * join or change? @chosen is as below.
 */
static noinline struct paqm_verdict paqm_recognise(struct paqm_sched_data *q,
						   const struct sk_buff *skb, int chosen,
						   u64 now, u32 wire)
{
	u32 now_tick = paqm_flow_clock(now);
	struct paqm_flow *flow = NULL;
	struct paqm_packet p;
	bool fresh = false;
	unsigned int off;
	u8 where;

	off = paqm_identify(skb, &q->rules, &p);
	if (p.hash)
		flow = paqm_flows_find(&q->flows, p.hash, now_tick, &fresh);
	if (off && paqm_flow_wants_look(flow, wire)) {
		paqm_look_into(skb, off, &p);
		if (!p.hash) /* it turned out control: no part of its flow */
			flow = NULL;
	}
	if (!flow && p.hash) {
		flow = paqm_flows_claim(&q->flows, &p, now_tick);
		fresh = true;
	}
	if (fresh && flow) /* older times mislead */
		flow->due = paqm_bucket_clock(now);
	if (p.note)
		paqm_count_notes(q, p.note);
	where = paqm_queue_of(q, flow, &p, chosen, now, wire);
	if (flow) {
		fresh = paqm_count_flow(q, flow, where, wire, fresh);
		paqm_flow_settle(flow, paqm_settles(flow, &p, chosen) ? q->settled : 0);
		if (where == PAQM_FLOW_UNSURE) {
			paqm_count(&q->unsure);
			/* not counted, and owed nothing */
			flow->round = q->round;
			return (struct paqm_verdict){ flow, flow->tag, PAQM_MEDIA,
						      PAQM_LANE_STRANGER };
		}
		if (fresh) {
			/* the present advice does not know a media flow that joins: it waits */
			flow->round = q->round;
			if (where == PAQM_ELASTIC)
				paqm_raise(q, PAQM_EV_SPLIT);
			else if (READ_ONCE(q->credit_q16) >= PAQM_CREDIT_LEAST_Q16)
				paqm_raise(q, PAQM_EV_FLOW);
		}
	}
	return (struct paqm_verdict){ flow, paqm_flow_tag(p.hash), where,
				      paqm_lane_of(flow, &p, chosen) };
}

/*
 * The queues are not short, or their memory is used up: is there room for a packet, in its
 * class or in the flow queue @fq? Media above 2 N_out is an event.
 */
static noinline bool paqm_has_room(struct Qdisc *sch, enum paqm_class class,
				   const struct Qdisc *child, const struct paqm_flowq *fq, u32 len,
				   u64 now)
{
	struct paqm_sched_data *q = qdisc_priv(sch);
	const struct paqm_queue *queue = &q->queue[class];
	bool full = (u64)sch->qstats.backlog + len > q->limit || q->memory > q->memory_limit;

	if (class == PAQM_MEDIA && (u64)queue->st.backlog + len > q->overload_bytes)
		paqm_begin_overload(q, now);
	if (child)
		return !full || !child->q.qlen;
	if (fq)
		return !paqm_qlen(queue) || (!full && paqm_bulk_has_room(q, fq, len));
	return !queue->head || (!full && (u64)queue->st.backlog + len <= queue->limit);
}

/* The first packet, of all or of the elastic class, after a time without. */
static noinline void paqm_rouse(struct paqm_sched_data *q, enum paqm_class class, u64 now)
{
	if (!q->awake)
		paqm_wake(q, now);
	if (class == PAQM_ELASTIC && !q->elastic_awake) {
		q->elastic_awake = true;
		paqm_raise(q, PAQM_EV_SPLIT);
	}
}

/* Is a packet of a flow that is policed to be dropped? Its bytes are no load then. */
static noinline bool paqm_policed(struct paqm_sched_data *q, struct paqm_flow *flow, u32 wire)
{
	struct paqm_queue *queue = &q->queue[PAQM_MEDIA];

	if (paqm_draw(q) >= READ_ONCE(paqm_flow_gauge(&q->flows, flow)->drop))
		return false;
	WRITE_ONCE(queue->policed, queue->policed + wire);
	return true;
}

/* Does a packet of media stay within what its lane may send? */
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

/*
 * Does a flow beyond its rate need time rather than losses? So does one that is too new to
 * have been told.
 */
static bool paqm_needs_time(const struct paqm_sched_data *q, const struct paqm_flow *flow)
{
	return (q->tell || q->stamp) && !(flow && READ_ONCE(flow->every) & PAQM_KNOWN) &&
	       READ_ONCE(q->credit_q16) >= PAQM_CREDIT_LEAST_Q16;
}

/* Put a media packet beyond its fair rate into an overflow queue, or drop it. */
static noinline int paqm_divert(struct sk_buff *skb, struct Qdisc *sch, struct paqm_flow *flow,
				enum paqm_lane lane, u32 len, u32 wire, u64 now,
				struct sk_buff **to_free)
{
	struct paqm_sched_data *q = qdisc_priv(sch);
	struct paqm_queue *queue = &q->queue[PAQM_MEDIA];
	struct paqm_flowq *over = paqm_over_of(q, flow, lane);

	WRITE_ONCE(queue->beyond, queue->beyond + wire);
	if (over == &q->flowq[PAQM_OVER_STRANGERS])
		paqm_count(&q->over_strangers);
	if (flow && paqm_ecn(skb) != INET_ECN_NOT_ECT) {
		struct paqm_flow_more *more = paqm_flow_more(&q->flows, flow);

		WRITE_ONCE(more->hears, more->hears | PAQM_HEARS_MARK);
	}
	if (!paqm_over_has_room(sch, over, len)) {
		WRITE_ONCE(over->lost, over->lost + 1);
		if (unlikely(over->host))
			paqm_over_settle(q, flow, over);
		if (list_empty(&over->list)) /* it was taken for this packet */
			paqm_drr_release(q, &q->drr[PAQM_MEDIA], over);
		return paqm_drop(skb, sch, to_free, PAQM_MEDIA, &q->over_full, PAQM_DROP_FULL);
	}
	if (unlikely(q->stamp))
		paqm_stamp_packet(q, paqm_flow_counted(flow) ? flow : NULL, skb, now);
	if (!sch->q.qlen)
		paqm_begin_busy(q, now);
	over->patient = paqm_needs_time(q, flow);
	if (flow)
		paqm_over_owe(q, flow, wire, now);
	paqm_over_append(sch, over, flow, skb, now);
	return NET_XMIT_SUCCESS;
}

/* Does the elastic class hold packets, in its list or in queues of its flows? */
static bool paqm_elastic_waits(const struct paqm_sched_data *q)
{
	return q->drr[PAQM_ELASTIC].qlen || q->queue[PAQM_ELASTIC].head;
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
 * Put a packet into its queue, or drop it. Inline for each class: half of it concerns one
 * of them only.
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
			if (!paqm_elastic_waits(q)) { /* alone: no queue of its own, and room */
				WRITE_ONCE(queue->load, queue->load + wire);
				return paqm_join(skb, sch, queue, now);
			}
			fq = paqm_bulk_of(q, tag);
		}
	} else {
		if (flow && unlikely(flow->round != (u16)q->round) &&
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
	if (unlikely((u64)sch->qstats.backlog + len > q->calm || q->memory > q->memory_limit) &&
	    !paqm_has_room(sch, class, child, fq, len, now))
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

/* One that had a closer look. */
static noinline int paqm_put_media(struct sk_buff *skb, struct Qdisc *sch, struct paqm_verdict to,
				   u32 len, u32 wire, u64 now, struct sk_buff **to_free)
{
	return paqm_put(skb, sch, PAQM_MEDIA, to.flow, 0, to.lane, len, wire, now, to_free);
}

/* Bytes that several segments take on the link, each for itself. */
static noinline u32 paqm_framed_len(const struct paqm_sched_data *q, const struct sk_buff *skb,
				    u32 len)
{
	u32 segs = skb_is_gso(skb) ? skb_shinfo(skb)->gso_segs : 1;

	if (segs < 2)
		return paqm_link_len(&q->link, len);
	return segs * paqm_link_len(&q->link, len / segs);
}

/* Bytes that a packet of @len takes on the link. */
static __always_inline u32 paqm_wire_len(const struct paqm_sched_data *q,
					 const struct sk_buff *skb, u32 len)
{
	return likely(!q->link_counts) ? len : paqm_framed_len(q, skb, len);
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
	 * With many flows it is far away, and larger than a cache line. Slots are taken from the
	 * first on, and in a table that is half full the third line has little: to fetch it as
	 * well costs all others a part of the cache.
	 */
	prefetchw(set);
	prefetchw((u8 *)set + SMP_CACHE_BYTES);
	now = ktime_get_ns();
	/* without a hash this finds a free slot at most, and that is not settled */
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

/* One of several segments that cannot be cut: something is wrong with its headers. */
static int paqm_drop_uncut(struct sk_buff *skb, struct Qdisc *sch, int class,
			   struct sk_buff **to_free)
{
	struct paqm_sched_data *q = qdisc_priv(sch);
	u64 hash = paqm_plain_flow(skb, &q->rules);

	if (class == PAQM_CLASSES)
		class = hash && paqm_flow_counted(paqm_flows_slot(paqm_flows_set(&q->flows, hash),
								  paqm_flow_tag(hash))) ?
				PAQM_MEDIA : PAQM_ELASTIC;
	return paqm_drop(skb, sch, to_free, class, &q->queue[class].n.drop_tail, PAQM_DROP_TAIL);
}

/*
 * A GSO packet that would hold the link for longer than the media target is cut
 * into its packets: a 64 kB burst is 65 ms at 8 Mbit/s.
 */
static noinline int paqm_enqueue_gso(struct sk_buff *skb, struct Qdisc *sch, int class,
				     struct sk_buff **to_free)
{
	unsigned int total = qdisc_pkt_len(skb), taken = 0, bytes = 0, len;
	struct sk_buff *segs, *next;
	int ret = NET_XMIT_DROP, one;

	segs = skb_gso_segment(skb, netif_skb_features(skb) & ~NETIF_F_GSO_MASK);
	if (IS_ERR_OR_NULL(segs))
		return paqm_drop_uncut(skb, sch, class, to_free);
	skb_list_walk_safe(segs, segs, next) {
		skb_mark_not_on_list(segs);
		qdisc_skb_cb(segs)->pkt_len = segs->len;
		paqm_set_segs(segs);
		len = segs->len;
		one = paqm_enqueue_chosen(segs, sch, class, to_free);
		if (one == NET_XMIT_SUCCESS) {
			bytes += len;
			taken++;
			ret = NET_XMIT_SUCCESS;
		} else if (!taken && !net_xmit_drop_count(one)) {
			ret = one; /* the filter of a child has it, unless others are queued */
		}
	}
	/* The parent adds one packet of @total bytes if we succeed. */
	if (taken)
		qdisc_tree_reduce_backlog(sch, 1 - taken, total - bytes);
	consume_skb(skb);
	return ret;
}

/* Packets of virtual machines say how long their segments are, not how many these are. */
static noinline void paqm_count_segs(struct sk_buff *skb)
{
	struct skb_shared_info *info = skb_shinfo(skb);
	u32 head = skb_transport_header_was_set(skb) ? skb_transport_offset(skb) : 0;

	head += info->gso_type & SKB_GSO_UDP_L4 ? sizeof(struct udphdr) : sizeof(struct tcphdr);
	info->gso_segs = min_t(u32, DIV_ROUND_UP(skb->len - min(head, skb->len), info->gso_size),
			       U16_MAX);
}

/* Is a GSO packet, whose segments count from here on, to be cut? Rates go into single ones only. */
static bool paqm_cuts(const struct paqm_sched_data *q, struct sk_buff *skb)
{
	if (unlikely(!skb_shinfo(skb)->gso_segs))
		paqm_count_segs(skb);
	return qdisc_pkt_len(skb) > q->gso_split ||
	       (q->stamp && skb_shinfo(skb)->gso_type & SKB_GSO_UDP_L4);
}

static int paqm_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct paqm_sched_data *q = qdisc_priv(sch);
	int class = paqm_choose(skb, sch, to_free);

	if (unlikely(class < 0))
		return ~class;
	if (unlikely(qdisc_pkt_len(skb) > q->gso_look) && skb_is_gso(skb) && paqm_cuts(q, skb))
		return paqm_enqueue_gso(skb, sch, class, to_free);
	if (unlikely(class < PAQM_CLASSES))
		return paqm_enqueue_chosen(skb, sch, class, to_free);
	return paqm_enqueue_one(skb, sch, PAQM_CLASSES, to_free);
}

/* Note how long a packet that leaves a class has waited. */
static __always_inline struct sk_buff *paqm_waited(struct paqm_queue *queue, struct sk_buff *skb,
						   u64 now)
{
	u64 sojourn = now - paqm_skb_cb(skb)->enqueued;

	WRITE_ONCE(queue->st.sojourn_ns, queue->st.sojourn_ns + sojourn);
	paqm_count(&queue->n.hist[paqm_hist_bin(sojourn)]);
	if (unlikely(sojourn > queue->sojourn_max))
		WRITE_ONCE(queue->sojourn_max, sojourn);
	return skb;
}

/* The first packet of media's common queue leaves, at @now. */
static __always_inline struct sk_buff *paqm_take_media(struct paqm_sched_data *q, u64 now)
{
	return paqm_waited(&q->queue[PAQM_MEDIA], paqm_pop(q, &q->queue[PAQM_MEDIA]), now);
}

/*
 * The next packet of the elastic class, which holds some. First what waited in the list before
 * a flow had a queue of its own, or before `isolate` was changed.
 */
static __always_inline struct sk_buff *paqm_take_elastic(struct Qdisc *sch, u64 now)
{
	struct paqm_sched_data *q = qdisc_priv(sch);
	struct paqm_queue *queue = &q->queue[PAQM_ELASTIC];
	struct sk_buff *skb;

	if (q->drr[PAQM_ELASTIC].qlen &&
	    !(queue->head &&
	      (q->isolate || paqm_skb_cb(queue->head)->enqueued < q->isolate_ns)))
		skb = paqm_bulk_take(sch, now);
	else
		skb = paqm_pop(q, queue);
	return paqm_waited(queue, skb, now);
}

/* The shaper's next departure after one of @wire bytes. */
static __always_inline void paqm_shape(struct paqm_sched_data *q, u64 now, u32 wire)
{
	/* time in which something else held the packets back is not made up for */
	if (unlikely(q->next_tx + PAQM_SHAPER_LAG_NS < now))
		q->next_tx = now - PAQM_SHAPER_LAG_NS;
	if (unlikely(q->stalled)) {
		q->next_tx = max(q->next_tx, now);
		q->stalled = false;
	}
	q->next_tx += paqm_link_time(wire, q->shaper.mult, q->shaper.shift, q->tx_mask,
				     &q->tx_part);
}

/* Account a packet that leaves; @elastic_waits as for paqm_sched_sent(). */
static __always_inline struct sk_buff *paqm_sent(struct Qdisc *sch, struct sk_buff *skb,
						 enum paqm_class class, bool elastic_waits,
						 u64 now)
{
	struct paqm_sched_data *q = qdisc_priv(sch);
	struct paqm_queue *media = &q->queue[PAQM_MEDIA], *queue = &q->queue[class];
	u32 len = qdisc_pkt_len(skb), wire = paqm_wire_len(q, skb, len);

	paqm_sched_sent(&q->sched, class == PAQM_MEDIA, wire, media->head || paqm_over_qlen(q),
			elastic_waits);
	if (class == PAQM_MEDIA && unlikely(q->long_since) &&
	    queue->st.backlog < q->overload_bytes / 2)
		paqm_end_overload(q, now);
	qdisc_qlen_dec(sch);
	qdisc_qstats_backlog_dec(sch, skb);
	qdisc_bstats_update(sch, skb);
	if (q->shaper.rate_bytes_ps) {
		paqm_shape(q, now, wire);
	} else { /* neither the guard of the inner loop nor the meter adds to a shaper */
		WRITE_ONCE(q->wire_sent, q->wire_sent + wire);
		paqm_auto_sent(q, now, wire);
	}
	WRITE_ONCE(queue->st.sent_bytes, queue->st.sent_bytes + len);
	WRITE_ONCE(queue->st.sent_packets, queue->st.sent_packets + 1);
	if (!sch->q.qlen)
		WRITE_ONCE(q->idle_since, now);
	return skb;
}

/* A media packet leaves while overflow queues hold some; @elastic_waits as above. */
static noinline struct sk_buff *paqm_send_media(struct Qdisc *sch, enum paqm_turn turn,
						bool elastic_waits, u64 now)
{
	struct paqm_sched_data *q = qdisc_priv(sch);
	bool common = turn == PAQM_TURN_COMMON;
	struct sk_buff *skb = NULL;

	if (!common) {
		skb = paqm_over_take(sch, now, true);
		/* never so: nothing waits for a queue that is empty */
		if (!skb && WARN_ON_ONCE(!q->queue[PAQM_MEDIA].head))
			skb = paqm_over_take(sch, now, false);
	}
	if (!skb) {
		common = true;
		skb = paqm_take_media(q, now);
	}
	paqm_sched_sent(&q->inside, common, paqm_wire_len(q, skb, qdisc_pkt_len(skb)),
			!!q->queue[PAQM_MEDIA].head, common || paqm_over_qlen(q));
	return paqm_sent(sch, skb, PAQM_MEDIA, elastic_waits, now);
}

/*
 * It is the overflow queues' turn, in a preview that began at @from. NULL: they have had what they
 * may have; elastic packets are next, or, if none waits, nothing until they may have more.
 */
static noinline struct sk_buff *paqm_send_preview(struct Qdisc *sch, u32 from, bool elastic_waits,
						  u64 now)
{
	struct paqm_sched_data *q = qdisc_priv(sch);
	struct sk_buff *skb;

	if (!paqm_preview_holds(q, from, now)) {
		skb = paqm_send_media(sch, PAQM_TURN_OVER, elastic_waits, now);
		paqm_preview_sent(q, from, paqm_wire_len(q, skb, qdisc_pkt_len(skb)), now);
		return skb;
	}
	/* the common queue does not pay back what others may not have now */
	if (q->queue[PAQM_MEDIA].head)
		return paqm_sent(sch, paqm_take_media(q, now), PAQM_MEDIA, elastic_waits, now);
	/* the timer of the inner loop ends it */
	if (!elastic_waits)
		qdisc_watchdog_schedule_ns(&q->watchdog, now + min(paqm_preview_wait(q, now),
								   (u64)READ_ONCE(q->interval_ns)));
	return NULL;
}

/* The same as below with another qdisc in the elastic class, or with overflow queues. */
static noinline struct sk_buff *paqm_dequeue_slow(struct Qdisc *sch, struct Qdisc *child, u64 now)
{
	struct paqm_sched_data *q = qdisc_priv(sch);
	struct paqm_queue *media = &q->queue[PAQM_MEDIA];
	/* A child drops here if it wants to, while all its packets are still in our length. */
	bool ready = child ? !!child->ops->peek(child) : paqm_elastic_waits(q);
	enum paqm_turn turn = PAQM_TURN_ELASTIC;
	struct sk_buff *skb;
	u32 preview;

	q->sched.share_q16 = READ_ONCE(q->share_now);
	if (paqm_over_qlen(q)) {
		turn = paqm_over_turn(q, ready);
		preview = READ_ONCE(q->preview_from);
		/* a parent must always find a packet: only who shapes may hold them */
		if (unlikely(preview) && turn == PAQM_TURN_OVER &&
		    (ready || q->shaper.rate_bytes_ps)) {
			skb = paqm_send_preview(sch, preview, ready, now);
			if (skb || !ready)
				return skb;
			turn = PAQM_TURN_ELASTIC;
		} else if (!ready) {
			return paqm_send_media(sch, turn, false, now);
		}
	} else if (media->head && (!ready || paqm_sched_media_next(&q->sched))) {
		turn = PAQM_TURN_COMMON;
	}
	if (ready && turn == PAQM_TURN_ELASTIC) {
		skb = child ? qdisc_dequeue_peeked(child) : paqm_take_elastic(sch, now);
		if (skb)
			return paqm_sent(sch, skb, PAQM_ELASTIC, true, now);
		if (paqm_over_qlen(q))
			turn = paqm_over_turn(q, false);
	}
	if (paqm_over_qlen(q))
		return paqm_send_media(sch, turn, ready, now);
	if (media->head)
		return paqm_sent(sch, paqm_take_media(q, now), PAQM_MEDIA, ready, now);
	/* the child dropped all, or holds it back */
	q->stalled = true;
	q->meter.busy = 0;
	return NULL;
}

static struct sk_buff *paqm_dequeue(struct Qdisc *sch)
{
	struct paqm_sched_data *q = qdisc_priv(sch);
	struct paqm_queue *media = &q->queue[PAQM_MEDIA];
	struct Qdisc *child;
	bool ready;
	u64 now;

	if (!sch->q.qlen)
		return NULL;
	now = ktime_get_ns();
	if (q->shaper.rate_bytes_ps && now < q->next_tx) {
		qdisc_qstats_overlimit(sch);
		qdisc_watchdog_schedule_ns(&q->watchdog, q->next_tx);
		return NULL;
	}
	child = rcu_dereference_bh(q->child);
	if (unlikely(child || paqm_over_qlen(q)))
		return paqm_dequeue_slow(sch, child, now);
	ready = paqm_elastic_waits(q);
	if (ready) {
		q->sched.share_q16 = READ_ONCE(q->share_now);
		if (!media->head || !paqm_sched_media_next(&q->sched))
			return paqm_sent(sch, paqm_take_elastic(sch, now), PAQM_ELASTIC, true,
					 now);
	}
	if (unlikely(!media->head)) /* a parent has peeked at the last one */
		return NULL;
	return paqm_sent(sch, paqm_take_media(q, now), PAQM_MEDIA, ready, now);
}

/* ------------------------------------------------------------------- control */

static int paqm_change(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct paqm_sched_data *q = qdisc_priv(sch);
	struct paqm_config cfg = q->cfg;
	struct paqm_flows table = {};
	struct paqm_fb *fb = q->fb;
	const u8 *key = NULL;
	bool lowers, tell;
	u32 source;
	int err;

	if (opt) {
		err = paqm_parse(opt, &cfg, &key, extack);
		if (err)
			return err;
	}
	if ((!cfg.bandwidth || cfg.bandwidth == PAQM_BANDWIDTH_AUTO) &&
	    paqm_link_rate(sch, &source) > PAQM_BANDWIDTH_MAX * 8) {
		NL_SET_ERR_MSG(extack, "paqm: a link above 800gbit needs a bandwidth");
		return -ERANGE;
	}
	if (!q->flows.flow || cfg.flows != q->cfg.flows || paqm_reseeds(q, &cfg)) {
		err = paqm_flows_alloc(&table, cfg.flows);
		if (err) {
			NL_SET_ERR_MSG(extack, "paqm: no memory for so many flows");
			return err;
		}
	}
	if (cfg.weights == PAQM_WEIGHTS_HOST && !q->hosts) { /* it stays until the end */
		struct paqm_hosts *hosts = kvzalloc(sizeof(*hosts), GFP_KERNEL_ACCOUNT);

		if (!hosts) {
			NL_SET_ERR_MSG(extack, "paqm: no memory to tell hosts apart");
			err = -ENOMEM;
			goto out;
		}
		WRITE_ONCE(q->hosts, hosts);
	}
	tell = paqm_tells(&cfg);
	if ((tell || key) && !fb) { /* it keeps the key */
		fb = paqm_fb_create(qdisc_dev(sch));
		if (!fb) {
			err = -ENOMEM;
			goto out;
		}
		/* stays until the end: dumps read it, perhaps without RTNL */
		smp_store_release(&q->fb, fb);
	}
	if (fb) {
		err = paqm_fb_set_echo(fb, tell && !cfg.rtt);
		if (err) {
			NL_SET_ERR_MSG(extack,
				       "paqm: no raw socket to measure the rtt with; give one");
			goto out;
		}
		paqm_fb_set_carrier(fb, cfg.feedback);
		paqm_fb_set_prefixes(fb, cfg.prefix, cfg.n_prefixes);
		if (key)
			paqm_fb_set_key(fb, cfg.key_id, key);
	}
	lowers = paqm_lowers(cfg.limit, q->cfg.limit) ||
		 paqm_lowers(cfg.media_limit, q->cfg.media_limit) ||
		 paqm_lowers(cfg.elastic_limit, q->cfg.elastic_limit);
	paqm_apply(sch, &cfg, &table);
	if (lowers)
		paqm_trim(sch);
	if (fb && table.flow) /* notices that wait point into the old one */
		paqm_fb_flush(fb);
	err = 0;
out:
	paqm_flows_free(&table);
	return err;
}

static LIST_HEAD(paqm_instances); /* RTNL */

/* A device comes up, or its link has another speed: whose capacity that is must know. */
static int paqm_device_event(struct notifier_block *nb, unsigned long event, void *info)
{
	struct net_device *dev = netdev_notifier_info_to_dev(info);
	struct paqm_flows none = {};
	struct paqm_config cfg;
	struct paqm_sched_data *q;

	ASSERT_RTNL();
	if (event != NETDEV_UP && event != NETDEV_CHANGE)
		return NOTIFY_DONE;
	list_for_each_entry(q, &paqm_instances, list) {
		if (qdisc_dev(q->sch) != dev ||
		    (q->cfg.bandwidth && q->cfg.bandwidth != PAQM_BANDWIDTH_AUTO))
			continue;
		cfg = q->cfg;
		paqm_apply(q->sch, &cfg, &none);
	}
	return NOTIFY_DONE;
}

static struct notifier_block paqm_device_notifier = {
	.notifier_call = paqm_device_event,
};

/* Is it one of several, each below a transmit queue of the device (mq and the like)? */
static bool paqm_one_of_several(struct Qdisc *sch)
{
	const struct Qdisc *root = rtnl_dereference(qdisc_dev(sch)->qdisc);

	return root && root->flags & TCQ_F_MQROOT &&
	       TC_H_MAJ(sch->parent) == TC_H_MAJ(root->handle);
}

static int paqm_init(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct paqm_sched_data *q = qdisc_priv(sch);
	u64 now = ktime_get_ns();
	int err;

	/* destroy() runs after a failure too: first what it undoes */
	q->sch = sch;
	INIT_LIST_HEAD(&q->list);
	mutex_init(&q->ctl_lock);
	INIT_DELAYED_WORK(&q->outer_work, paqm_outer_work);
	paqm_hrtimer_setup(&q->inner_timer, paqm_inner_timer);
	paqm_auto_setup(q);
	qdisc_watchdog_init(&q->watchdog, sch);

	spin_lock_init(&q->top_lock);
	get_random_bytes(q->rules.key, sizeof(q->rules.key));
	q->boot = get_random_u32();
	q->created = now;
	/* a queue that is put under flows counts them before it tells the first one */
	q->event_stamp = now;
	q->round_stamp = now;
	q->idle_since = now;
	q->max_every = 1;
	q->share_now = PAQM_Q16_ONE / 2;
	q->share_next = q->share_now;
	q->split = q->share_now;
	q->credit_q16 = PAQM_Q16_ONE;
	q->mean_len = 1000;
	q->notice_gap_ns = NSEC_PER_SEC / PAQM_NOTICES_FREE;
	q->ecf_out.value = PAQM_F32_ONE;
	q->cfg = paqm_defaults;
	q->cfg.router_id = get_random_u64() | 1;
	sch->limit = U32_MAX; /* the limit counts bytes */
	err = paqm_isolate_init(q);
	if (err)
		return err;
	err = tcf_block_get(&q->block, &q->filter_list, sch, extack);
	if (err)
		return err;
	err = paqm_change(sch, opt, extack);
	if (err)
		return err;
	list_add(&q->list, &paqm_instances);
	if (paqm_one_of_several(sch))
		NL_SET_ERR_MSG(extack,
			       "paqm: each transmit queue advises and shapes by itself, as if it were the whole device; as root there is one");
	return 0;
}

static void paqm_reset(struct Qdisc *sch)
{
	struct paqm_sched_data *q = qdisc_priv(sch);
	struct Qdisc *child = rtnl_dereference(q->child);

	if (q->flowq) {
		WRITE_ONCE(q->over_purged, q->over_purged + q->drr[PAQM_MEDIA].qlen);
		paqm_drr_purge(q, PAQM_MEDIA);
		paqm_drr_purge(q, PAQM_ELASTIC);
		q->over_behind = paqm_common_out(q);
	}
	paqm_free_list(q, &q->queue[PAQM_MEDIA]);
	paqm_free_list(q, &q->queue[PAQM_ELASTIC]);
	if (child)
		qdisc_reset(child);
	q->sched.lead = 0;
	q->next_tx = 0;
	paqm_end_overload(q, ktime_get_ns());
	q->stalled = false;
	if (sch->q.qlen)
		WRITE_ONCE(q->idle_since, ktime_get_ns());
	qdisc_watchdog_cancel(&q->watchdog);
}

static void paqm_destroy(struct Qdisc *sch)
{
	struct paqm_sched_data *q = qdisc_priv(sch);

	list_del(&q->list);
	tcf_block_put(q->block);
	WRITE_ONCE(q->awake, false);
	qdisc_watchdog_cancel(&q->watchdog);
	hrtimer_cancel(&q->inner_timer);
	hrtimer_cancel(&q->auto_timer);
	cancel_delayed_work_sync(&q->outer_work);
	paqm_fb_destroy(q->fb);
	paqm_flows_free(&q->flows);
	kvfree(q->flowq);
	kvfree(q->hosts);
	qdisc_put(rtnl_dereference(q->child));
}

static int paqm_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	struct paqm_sched_data *q = qdisc_priv(sch);

	struct tc_paqm_prefix prefix[PAQM_PREFIXES];
	u32 n;

	spin_lock(&q->top_lock);
	n = q->cfg.n_prefixes;
	memcpy(prefix, q->cfg.prefix, sizeof(prefix));
	spin_unlock(&q->top_lock);
	return paqm_dump_options(&q->cfg, prefix, n, skb);
}

static struct Qdisc_ops paqm_qdisc_ops __read_mostly = {
	.cl_ops = &paqm_class_ops,
	.id = "paqm",
	.priv_size = sizeof(struct paqm_sched_data),
	.enqueue = paqm_enqueue,
	.dequeue = paqm_dequeue,
	/* a child's drops are accounted before our packet leaves our length: no parent sees 0 */
	.peek = qdisc_peek_dequeued,
	.init = paqm_init,
	.reset = paqm_reset,
	.destroy = paqm_destroy,
	.change = paqm_change,
	.dump = paqm_dump,
	.dump_stats = paqm_dump_stats,
	.owner = THIS_MODULE,
};
MODULE_ALIAS_NET_SCH("paqm");

static int __init paqm_module_init(void)
{
	int err;

	BUILD_BUG_ON(PAQM_HIST_SIZE != PAQM_HIST_BINS);
	paqm_wq = alloc_workqueue("paqm", WQ_UNBOUND | WQ_HIGHPRI, 0);
	if (!paqm_wq)
		return -ENOMEM;
	err = register_netdevice_notifier(&paqm_device_notifier);
	if (err)
		goto no_notifier;
	err = register_qdisc(&paqm_qdisc_ops);
	if (err)
		goto no_qdisc;
	return 0;

no_qdisc:
	unregister_netdevice_notifier(&paqm_device_notifier);
no_notifier:
	destroy_workqueue(paqm_wq);
	return err;
}

static void __exit paqm_module_exit(void)
{
	unregister_qdisc(&paqm_qdisc_ops);
	unregister_netdevice_notifier(&paqm_device_notifier);
	destroy_workqueue(paqm_wq);
}

module_init(paqm_module_init);
module_exit(paqm_module_exit);

MODULE_DESCRIPTION("P-AQM: two queues, rate feedback to media senders");
MODULE_AUTHOR("The P-AQM project");
MODULE_LICENSE("GPL");
MODULE_VERSION("0.1.0");
