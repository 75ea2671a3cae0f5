/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Isolation of flows from each other: nobody pays for those who do not listen.
 *
 * Every media flow has a token bucket that fills at its fair rate (core/paqm_bucket.h). What
 * conforms joins the common short queue of the class; what does not goes to an overflow
 * queue of that flow alone, and so does all that follows until that queue is empty, so
 * nothing is reordered. Overflow queues share by deficit round robin what the flows in
 * them are entitled to, each under CoDel (paqm_drr.h).
 *
 * Flows that are not known yet (new, not recognised, or without a slot in the table) are
 * strangers: they have one bucket and one overflow queue together, so that many short
 * lives get no more than a long one.
 *
 * Where hosts are equal (`weights host`) the flows of a host that has several share its rate: each
 * bucket fills at a part of it, one bucket more is the host's, and they have one overflow queue.
 * What conforms while that holds packets counts as if it came out of it.
 *
 * The common queue goes first while its lead over its share is below the credit; overflow
 * queues may use half of the class's credit at most. So a flow that does as it is told
 * never waits for one that does not.
 *
 * Elastic flows are told nothing: all they send waits in queues of their own, so a short
 * request does not wait for a long transfer.
 *
 * All of it runs under the qdisc lock; rates and depths are published by the outer loop
 * (paqm_derive.c: paqm_publish_paces()).
 */
#ifndef PAQM_ISOLATE_H
#define PAQM_ISOLATE_H

#include <linux/list.h>
#include <linux/mm.h>
#include "core/paqm_bucket.h"
#include "core/paqm_hist.h"
#include "core/paqm_sched.h"
#include "paqm_compat.h"
#include "paqm_drr.h"
#include "paqm_flows.h"
#include "paqm_state.h"

#define PAQM_OVER_QUEUES 1024 /* overflow queues; more flows share one by their hash */
#define PAQM_BULK_QUEUES 1024 /* of the elastic class */
#define PAQM_OVER_STRANGERS 1 /* that of flows not known yet; 0 is none */
#define PAQM_OVER_GATED 16 /* queues that wait for packets in that of strangers */
#define PAQM_OWED_NS (50 * NSEC_PER_MSEC) /* of its fair rate that a flow may owe */

/* What a media packet is held to. */
enum paqm_lane {
	PAQM_LANE_FLOW,	    /* its flow's bucket, or, before that is known, that of strangers */
	PAQM_LANE_STRANGER, /* the bucket of all that are not known */
	PAQM_LANE_SMALL,    /* requests: a budget of their own has been kept */
	PAQM_LANE_CONTROL,  /* the network's own: the same, and never dropped early */
};

static int paqm_isolate_init(struct paqm_sched_data *q)
{
	u32 i;

	BUILD_BUG_ON(PAQM_OVER_QUEUES > U16_MAX);
	q->flowq = kvcalloc(PAQM_OVER_QUEUES + PAQM_BULK_QUEUES, sizeof(*q->flowq),
			    GFP_KERNEL_ACCOUNT);
	if (!q->flowq)
		return -ENOMEM;
	INIT_LIST_HEAD(&q->over_free);
	for (i = 0; i < PAQM_CLASSES; i++)
		paqm_drr_init(&q->drr[i]);
	for (i = 0; i < PAQM_OVER_QUEUES + PAQM_BULK_QUEUES; i++) {
		struct paqm_flowq *fq = &q->flowq[i];

		INIT_LIST_HEAD(&fq->list);
		codel_vars_init(&fq->codel);
		fq->pooled = i > PAQM_OVER_STRANGERS && i < PAQM_OVER_QUEUES;
		if (fq->pooled)
			list_add_tail(&fq->list, &q->over_free);
	}
	return 0;
}

/* Have all packets of a flow left the overflow queue that its last one went to? */
static inline bool paqm_over_left(const struct paqm_sched_data *q, const struct paqm_flow *flow)
{
	const struct paqm_flowq *over = &q->flowq[flow->over];

	return !paqm_fifo_waits(over->in, over->out, flow->over_seq);
}

/* The counters of a flow's own overflow queue become the flow's. */
static void paqm_over_settle(struct paqm_sched_data *q, const struct paqm_flow *flow,
			     struct paqm_flowq *over)
{
	struct paqm_flow_more *more = paqm_flow_more(&q->flows, flow);

	if (over->tag != flow->tag)
		return;
	WRITE_ONCE(more->lost, more->lost + over->lost);
	WRITE_ONCE(more->marked, more->marked + over->marked);
	WRITE_ONCE(over->lost, 0);
	WRITE_ONCE(over->marked, 0);
}

/* A flow has no packet in its overflow queue any more, and none of its next ones goes there. */
static void paqm_over_leave(struct paqm_sched_data *q, struct paqm_flow *flow)
{
	paqm_over_settle(q, flow, &q->flowq[flow->over]);
	WRITE_ONCE(flow->over, 0);
}

/*
 * Have the packets of a flow left its overflow queue? It keeps a queue that is still in the
 * round: with a new one for each packet it would be served before all who wait.
 */
static noinline bool paqm_over_ends(struct paqm_sched_data *q, struct paqm_flow *flow)
{
	struct paqm_flowq *over = &q->flowq[flow->over];

	if (!paqm_over_left(q, flow))
		return false;
	if (over->served && over->tag == flow->tag)
		return true;
	paqm_over_leave(q, flow);
	return true;
}

/* The host of a flow that shares its rate. */
static struct paqm_host *paqm_host_of(const struct paqm_sched_data *q,
				      const struct paqm_flow *flow)
{
	return &q->hosts->host[READ_ONCE(paqm_flow_more(&q->flows, flow)->host) % PAQM_HOSTS];
}

/* The overflow queue that its flows share now, or NULL. */
static struct paqm_flowq *paqm_host_over(const struct paqm_sched_data *q,
					 const struct paqm_host *host)
{
	struct paqm_flowq *over = &q->flowq[host->over];

	return host->over && over->served && over->host == host - q->hosts->host + 1 ? over : NULL;
}

/* Cost of a byte in a known flow's bucket. */
static __always_inline u32 paqm_pace_known(const struct paqm_sched_data *q,
					   const struct paqm_flow *flow)
{
	return READ_ONCE(q->pace[flow->every & PAQM_DEAF ? PAQM_PACE_DEAF : PAQM_PACE_FOLLOW]);
}

/* What a flow of a host with several is held to: cost of a byte, and depth of its bucket. */
static u32 paqm_host_cost(const struct paqm_host *host, u32 pace)
{
	return min_t(u64, (u64)pace * max_t(u32, READ_ONCE(host->low), PAQM_PART_ONE) /
				  PAQM_PART_ONE, U32_MAX);
}

/* As long a time as that of all others, but not less than some packets. */
static u32 paqm_host_depth(const struct paqm_sched_data *q, u32 cost)
{
	u32 least = PAQM_BUCKET_PACKETS * psched_mtu(qdisc_dev(q->sch));

	return max(READ_ONCE(q->bucket_depth), paqm_bucket_depth(cost, least));
}

/*
 * A packet of a host joins the common queue while others wait in its overflow queue: it counts as
 * if it came out of that. But a queue never waits for more than some packets.
 */
static void paqm_over_charge(struct paqm_sched_data *q, struct paqm_flowq *over, u32 wire)
{
	s32 least = -PAQM_OVER_PACKETS * (s32)READ_ONCE(q->drr[PAQM_MEDIA].quantum);

	over->deficit = max(over->deficit - (s32)wire, least);
	q->inside.lead = max(q->inside.lead - ((s64)wire << 16),
			     -((s64)READ_ONCE(q->sched.credit) << 16));
}

/*
 * The same as paqm_conforms() below for a flow that shares the rate of its host. Who does not
 * follow has what waits in their queue as long as that is there, or he would have both.
 */
static noinline bool paqm_host_conforms(struct paqm_sched_data *q, struct paqm_flow *flow,
					u32 wire, u64 now)
{
	u32 clock = paqm_bucket_clock(now), tick = paqm_flow_clock(now), before = flow->due;
	u32 pace = paqm_pace_known(q, flow), cost;
	struct paqm_host *host = paqm_host_of(q, flow);
	struct paqm_flowq *over = paqm_host_over(q, host);

	if (flow->over && !paqm_over_left(q, flow))
		return false;
	if (flow->over && over != &q->flowq[flow->over])
		paqm_over_leave(q, flow);
	if (over && over->head && flow->every & PAQM_DEAF)
		return false;
	if (tick - host->used_tick > PAQM_FLOW_ACTIVE_TICKS) /* older times mislead */
		host->due = clock;
	host->used_tick = tick;
	cost = paqm_host_cost(host, pace);
	if (!paqm_bucket_take(&flow->due, clock, wire, cost, paqm_host_depth(q, cost)))
		return false;
	if (!paqm_bucket_take(&host->due, clock, wire, pace, READ_ONCE(q->bucket_depth))) {
		flow->due = before;
		return false;
	}
	if (flow->over) /* from here on packets of it are in the common queue */
		paqm_over_leave(q, flow);
	if (over && over->head) /* its turn comes the later */
		paqm_over_charge(q, over, wire);
	return true;
}

/* What such a flow sends beyond its part; of who follows, his host owes it, too. */
static noinline void paqm_host_owe(struct paqm_sched_data *q, struct paqm_flow *flow, u32 wire,
				   u64 now)
{
	u32 clock = paqm_bucket_clock(now), owed = paqm_bucket_clock(PAQM_OWED_NS);
	u32 pace = paqm_pace_known(q, flow);
	struct paqm_host *host = paqm_host_of(q, flow);
	u32 cost = paqm_host_cost(host, pace);

	paqm_bucket_owe(&flow->due, clock, wire, cost, paqm_host_depth(q, cost) + owed);
	if (!(flow->every & PAQM_DEAF))
		paqm_bucket_owe(&host->due, clock, wire, pace, READ_ONCE(q->bucket_depth) + owed);
}

/*
 * What goes to an overflow queue is taken out of the flow's bucket, too, which then owes it.
 * Else a flow that is above its rate all the time would have that rate in the common queue and
 * a part of what the overflow queues get beside, and one that waits there only the second.
 */
static void paqm_over_owe(struct paqm_sched_data *q, struct paqm_flow *flow, u32 wire, u64 now)
{
	bool known = READ_ONCE(flow->every) & PAQM_KNOWN;

	if (unlikely(READ_ONCE(flow->every) & PAQM_SHARES)) {
		paqm_host_owe(q, flow, wire, now);
		return;
	}
	paqm_bucket_owe(&flow->due, paqm_bucket_clock(now), wire,
			known ? paqm_pace_known(q, flow) : READ_ONCE(q->pace[PAQM_PACE_ONE]),
			READ_ONCE(q->bucket_depth) + paqm_bucket_clock(PAQM_OWED_NS));
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

/* The same for one that is not known, @flow, if it has a slot. */
static noinline bool paqm_stranger_conforms(struct paqm_sched_data *q, struct paqm_flow *flow,
					    u32 wire, u64 now)
{
	u32 clock = paqm_bucket_clock(now);

	WRITE_ONCE(q->stranger_bytes, q->stranger_bytes + wire);
	if (READ_ONCE(q->pace[PAQM_PACE_NEW]) == U32_MAX)
		return false;
	if (flow) { /* each has its part, or one could take that of the others */
		if (flow->over && !paqm_over_ends(q, flow))
			return false;
		if (!paqm_bucket_take(&flow->due, clock, wire, READ_ONCE(q->pace[PAQM_PACE_ONE]),
				      READ_ONCE(q->bucket_depth)))
			return false;
	} else if (q->flowq[PAQM_OVER_STRANGERS].head) {
		return false; /* what has no slot is one flow, and that waits */
	}
	if (now - q->stranger_ns > NSEC_PER_SEC) /* older times than half a minute mislead */
		q->stranger_due = clock;
	q->stranger_ns = now;
	return paqm_bucket_take(&q->stranger_due, clock, wire, READ_ONCE(q->pace[PAQM_PACE_NEW]),
				READ_ONCE(q->bucket_depth));
}

/*
 * A flow becomes known while packets of it wait with those of strangers: it gets its own
 * queue, which is not served before these have left. Only so many at a time, since each is
 * looked at in every turn until then; the others stay where they are for now.
 */
static bool paqm_over_may_move(const struct paqm_sched_data *q, const struct paqm_flow *flow)
{
	return flow->over == PAQM_OVER_STRANGERS && READ_ONCE(flow->every) & PAQM_KNOWN &&
	       q->over_gated < PAQM_OVER_GATED && !list_empty(&q->over_free);
}

/* Packets that have left the common queue, lowest bits; those that wait there. */
static u32 paqm_common_out(const struct paqm_sched_data *q)
{
	return (u32)q->queue[PAQM_MEDIA].st.sent_packets - (u32)q->over_sent + q->common_cut;
}

/* Packets that wait in overflow queues. */
static u32 paqm_over_qlen(const struct paqm_sched_data *q)
{
	return q->drr[PAQM_MEDIA].qlen;
}

static u32 paqm_common_len(const struct paqm_sched_data *q)
{
	return paqm_qlen(&q->queue[PAQM_MEDIA]) - paqm_over_qlen(q);
}

/* May an overflow queue not be served yet, as earlier packets of its flow wait elsewhere? */
static bool paqm_over_gated(struct paqm_sched_data *q, struct paqm_flowq *over)
{
	const struct paqm_flowq *strangers = &q->flowq[PAQM_OVER_STRANGERS];

	if ((s32)(paqm_common_out(q) - over->behind) < 0)
		return true;
	if (likely(!over->gated))
		return false;
	if (paqm_fifo_waits(strangers->in, strangers->out, over->gate))
		return true;
	over->gated = false;
	q->over_gated--;
	return false;
}

/*
 * The overflow queue that the flows of a host share, for one of them, or NULL. What was lost there
 * since the last packet is that of whoever comes. @moves: earlier packets of this one wait with
 * those of strangers.
 */
static noinline struct paqm_flowq *paqm_over_share(struct paqm_sched_data *q,
						   struct paqm_flow *flow, bool moves)
{
	struct paqm_flowq *over = paqm_host_over(q, paqm_host_of(q, flow));

	if (!over || (flow->over && !moves && over != &q->flowq[flow->over]))
		return NULL;
	over->tag = flow->tag;
	paqm_over_settle(q, flow, over);
	if (!moves)
		return over;
	if (!over->gated || (s16)(flow->over_seq - over->gate) > 0)
		over->gate = flow->over_seq;
	q->over_gated += !over->gated;
	over->gated = true;
	return over;
}

/* From here on they share this one. */
static noinline void paqm_over_found(struct paqm_sched_data *q, const struct paqm_flow *flow,
				     struct paqm_flowq *over)
{
	struct paqm_host *host = paqm_host_of(q, flow);

	over->host = host - q->hosts->host + 1;
	host->over = over - q->flowq;
}

/* Overflow queue for a packet beyond the fair rate; @flow may be NULL for strangers. */
static struct paqm_flowq *paqm_over_of(struct paqm_sched_data *q, struct paqm_flow *flow,
				       enum paqm_lane lane)
{
	bool moves = flow && flow->over && paqm_over_may_move(q, flow);
	bool shares = flow && READ_ONCE(flow->every) & PAQM_SHARES;
	struct paqm_flowq *over;

	if (unlikely(shares)) {
		over = paqm_over_share(q, flow, moves);
		if (over)
			return over;
	}
	if (flow && flow->over && !moves) /* some of its packets wait there */
		return &q->flowq[flow->over];
	if (lane == PAQM_LANE_STRANGER || !(READ_ONCE(flow->every) & PAQM_KNOWN))
		return &q->flowq[PAQM_OVER_STRANGERS];
	over = list_first_entry_or_null(&q->over_free, struct paqm_flowq, list);
	if (over) {
		list_del_init(&over->list);
		codel_vars_init(&over->codel);
		over->gated = moves;
		over->gate = flow->over_seq;
		q->over_gated += moves;
		over->host = 0;
		if (unlikely(shares))
			paqm_over_found(q, flow, over);
	} else {
		over = &q->flowq[PAQM_OVER_STRANGERS + 1 +
				flow->tag % (PAQM_OVER_QUEUES - PAQM_OVER_STRANGERS - 1)];
	}
	over->tag = flow->tag;
	WRITE_ONCE(over->lost, 0);
	WRITE_ONCE(over->marked, 0);
	return over;
}

/*
 * May a packet of @len bytes join an overflow queue? When they use more than half of what
 * all may, those that are longer than the mean must wait: the heaviest flow loses first.
 * They never take more than half of `limit`.
 */
static bool paqm_over_has_room(struct Qdisc *sch, const struct paqm_flowq *over, u32 len)
{
	struct paqm_sched_data *q = qdisc_priv(sch);
	const struct paqm_round *r = &q->drr[PAQM_MEDIA];
	u32 memory = READ_ONCE(q->over_memory_limit);

	if ((u64)r->backlog + len > q->limit / 2 || r->memory > memory ||
	    (u16)(over->in - over->out) >= S16_MAX)
		return false;
	if (!over->head)
		return true;
	if ((u64)over->backlog + len > READ_ONCE(q->over_limit))
		return false;
	return r->memory <= memory / 2 || (u64)over->backlog * r->busy <= r->backlog;
}

/* Put a packet into an overflow queue; there is room. */
static void paqm_over_append(struct Qdisc *sch, struct paqm_flowq *over, struct paqm_flow *flow,
			     struct sk_buff *skb, u64 now)
{
	struct paqm_sched_data *q = qdisc_priv(sch);

	if (!paqm_over_qlen(q)) /* nobody was kept waiting: nothing is owed */
		q->inside.lead = 0;
	/* where several share it, some of this one's may be in the common queue */
	if (!over->head ||
	    (unlikely(over->host) && flow && flow->over != over - q->flowq)) {
		over->behind = paqm_common_out(q) + paqm_common_len(q);
		q->over_behind = over->behind;
	}
	paqm_drr_append(sch, PAQM_MEDIA, over, skb, now);
	if (flow) {
		WRITE_ONCE(flow->over, over - q->flowq);
		WRITE_ONCE(flow->over_seq, over->in); /* beside @every */
	}
}

/*
 * The next packet of the overflow queues, which hold some; NULL if @gates count and all of
 * these have to wait for packets in the common queue.
 */
static noinline struct sk_buff *paqm_over_take(struct Qdisc *sch, u64 now, bool gates)
{
	struct paqm_sched_data *q = qdisc_priv(sch);
	struct sk_buff *skb;
	u64 sojourn;

	/* a constant function is no indirect call */
	if (likely(gates))
		skb = paqm_drr_take(sch, PAQM_MEDIA, now, paqm_over_gated);
	else
		skb = paqm_drr_take(sch, PAQM_MEDIA, now, NULL);
	if (!skb)
		return NULL;
	sojourn = now - paqm_skb_cb(skb)->enqueued;
	WRITE_ONCE(q->over_sojourn_ns, q->over_sojourn_ns + sojourn);
	paqm_count(&q->over_hist[paqm_hist_bin(sojourn)]);
	WRITE_ONCE(q->over_sent, q->over_sent + 1);
	return skb;
}

/**
 * enum paqm_turn - who sends next
 * @PAQM_TURN_ELASTIC: the elastic class
 * @PAQM_TURN_COMMON: the common queue of media
 * @PAQM_TURN_OVER: one of its overflow queues
 */
enum paqm_turn { PAQM_TURN_ELASTIC, PAQM_TURN_COMMON, PAQM_TURN_OVER };

/*
 * Share of media that is the common queue's: what the flows with overflow queues are not
 * entitled to. All of it while some of these wait for packets of theirs in that queue: what
 * they are entitled to would go to the others.
 */
static u32 paqm_common_share(const struct paqm_sched_data *q)
{
	bool strangers = q->flowq[PAQM_OVER_STRANGERS].head;
	u64 others = (u64)(q->drr[PAQM_MEDIA].busy - strangers) * READ_ONCE(q->over_part);

	if ((s32)(paqm_common_out(q) - q->over_behind) < 0)
		return PAQM_Q16_ONE;
	if (strangers)
		others += READ_ONCE(q->over_part_new);
	return PAQM_Q16_ONE - (u32)min_t(u64, others, PAQM_OVER_MOST_Q16);
}

/*
 * Who is next while overflow queues hold packets; @elastic: that class waits, too. When the
 * common queue is empty these have half of the class's credit at most: the rest is for those
 * who keep to their rate, and come next.
 */
static noinline enum paqm_turn paqm_over_turn(struct paqm_sched_data *q, bool elastic)
{
	bool common = q->queue[PAQM_MEDIA].head;
	s64 most = (s64)READ_ONCE(q->sched.credit) << (common ? 16 : 15);

	if (elastic && q->sched.lead >= most)
		return PAQM_TURN_ELASTIC;
	if (!common && q->inside.lead <= 0) /* nothing to divide, and nothing to pay back */
		return PAQM_TURN_OVER;
	q->inside.share_q16 = paqm_common_share(q);
	q->inside.credit = READ_ONCE(q->sched.credit);
	return common && paqm_sched_media_next(&q->inside) ? PAQM_TURN_COMMON : PAQM_TURN_OVER;
}

/*
 * In a preview that began at @from (paqm_inner.c: paqm_preview()): have the overflow queues had as
 * much as their flows' rates come to? Not where there are some who are too new to have heard.
 */
static bool paqm_preview_holds(const struct paqm_sched_data *q, u32 from, u64 now)
{
	return from == q->preview_seen && (s32)(q->preview_due - paqm_bucket_clock(now)) > 0 &&
	       !q->flowq[PAQM_OVER_STRANGERS].head;
}

/* The same: ns until they may have more. */
static u64 paqm_preview_wait(const struct paqm_sched_data *q, u64 now)
{
	return (u64)(u32)(q->preview_due - paqm_bucket_clock(now)) << PAQM_BUCKET_SHIFT;
}

/* A packet of theirs leaves: it takes the time that it takes at these rates. */
static void paqm_preview_sent(struct paqm_sched_data *q, u32 from, u32 wire, u64 now)
{
	u32 cost = READ_ONCE(q->pace[PAQM_PACE_DEAF]) / max(q->drr[PAQM_MEDIA].served, 1U);

	if (from != q->preview_seen) {
		q->preview_seen = from;
		q->preview_due = from;
	}
	/* further ahead than a preview lasts it does not matter */
	if ((s32)(q->preview_due - paqm_bucket_clock(now)) < (s32)paqm_bucket_clock(NSEC_PER_SEC))
		q->preview_due += paqm_bucket_depth(cost, wire);
}

/* --------------------------------------------------------------- the elastic class */

/* Queue of an elastic flow, by its hash: flows that meet in one share it. */
static struct paqm_flowq *paqm_bulk_of(struct paqm_sched_data *q, u32 tag)
{
	return &q->flowq[PAQM_OVER_QUEUES + tag % PAQM_BULK_QUEUES];
}

/*
 * May a packet of @len bytes join the queue of an elastic flow? A queue may hold as much as the
 * class has left (Choudhury and Hahne 1998): one flow at most half, and whoever comes finds room.
 */
static bool paqm_bulk_has_room(const struct paqm_sched_data *q, const struct paqm_flowq *fq,
			       u32 len)
{
	return (u64)fq->backlog + len + q->drr[PAQM_ELASTIC].backlog <= READ_ONCE(q->bulk_limit);
}

static noinline struct sk_buff *paqm_bulk_take(struct Qdisc *sch, u64 now)
{
	return paqm_drr_take(sch, PAQM_ELASTIC, now, NULL);
}

#endif /* PAQM_ISOLATE_H */
