// SPDX-License-Identifier: GPL-2.0
/*
 * Flows beyond their fair rate: overflow queues, the debt of a flow, and hosts whose flows share a
 * rate. paqm_isolate.h gives the overview. Under the qdisc lock.
 */
#include "core/paqm_bucket.h"
#include "core/paqm_lean.h"
#include "paqm_drr.h"
#include "paqm_flows.h"
#include "paqm_isolate.h"
#include "paqm_notice.h"
#include "paqm_over.h"
#include "paqm_queue.h"
#include "paqm_trim.h"

#define PAQM_STRANGERS_PART 4 /* of the memory of overflow queues, theirs is one of so many */
#define PAQM_OVER_STANDS (PAQM_BUCKET_OWED_DEAF / 10 * 7) /* a picture may be 150 ms old */
#define PAQM_OVER_GATED 16 /* queues that wait for packets in the queue of strangers */

/* Add the counters of a flow's own overflow queue to the flow's. */
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

/* A flow has no packet in its overflow queue any more, and gives it up. */
static void paqm_over_leave(struct paqm_sched_data *q, struct paqm_flow *flow)
{
	paqm_over_settle(q, flow, &q->flowq[flow->over]);
	WRITE_ONCE(flow->over, 0);
}

/*
 * Have the packets of a flow left its overflow queue? It keeps a queue that is still in the round
 * robin: with a new one for each packet it would be served before all flows that wait.
 */
bool paqm_over_ends(struct paqm_sched_data *q, struct paqm_flow *flow)
{
	struct paqm_flowq *over = &q->flowq[flow->over];

	if (!paqm_over_left(q, flow))
		return false;
	if (over->served && over->tag == flow->tag)
		return true;
	paqm_over_leave(q, flow);
	return true;
}

/* Place of the host of a flow that shares its rate, plus 1: struct paqm_flowq, @host. */
static u16 paqm_host_number(const struct paqm_sched_data *q, const struct paqm_flow *flow)
{
	return paqm_host_of(q, flow) - q->hosts->host + 1;
}

/* Cost of a byte in the bucket of a flow that shares the rate of its host. */
static u32 paqm_host_cost(const struct paqm_host *host, u32 pace)
{
	return min_t(u64, (u64)pace * max_t(u32, READ_ONCE(host->low), PAQM_PART_ONE) /
				  PAQM_PART_ONE, U32_MAX);
}

/* Depth of that bucket: the same time as all others, but some packets at least. */
static u32 paqm_host_depth(const struct paqm_sched_data *q, u32 cost)
{
	u32 least = PAQM_BUCKET_PACKETS * psched_mtu(qdisc_dev(q->sch));

	return max(READ_ONCE(q->bucket_depth), paqm_bucket_depth(cost, least));
}

/*
 * A packet of a host joins the common queue while others wait in overflow queues of its flows:
 * charge one of these for it, or the host would have its share there and a part of it beside. A
 * queue never owes more than some packets.
 */
static void paqm_host_charge(struct paqm_sched_data *q, u16 host, u32 wire)
{
	struct paqm_flowq *over = &q->flowq[q->hosts->over[host - 1].last];
	s32 least = -PAQM_OVER_PACKETS * (s32)READ_ONCE(q->drr[PAQM_MEDIA].quantum);

	if (over->host != host || !over->head)
		return;
	over->deficit = max(over->deficit - (s32)wire, least);
	q->inside.lead = max(q->inside.lead - ((s64)wire << 16),
			     -((s64)READ_ONCE(q->sched.credit) << 16));
}

/* The same as paqm_conforms() (paqm_enqueue.c), for a flow that shares the rate of its host. */
bool paqm_host_conforms(struct paqm_sched_data *q, struct paqm_flow *flow,
			u32 wire, u64 now)
{
	u32 clock = paqm_bucket_clock(now), tick = paqm_flow_clock(now), before = flow->due;
	u32 pace = paqm_pace_known(q, flow), cost;
	struct paqm_host *host = paqm_host_of(q, flow);

	if (flow->over && !paqm_over_ends(q, flow))
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
	paqm_host_charge(q, paqm_host_number(q, flow), wire);
	return true;
}

/* An overflow queue of a host gets a packet, and held none. */
static void paqm_host_busy(struct paqm_sched_data *q, const struct paqm_flowq *over)
{
	struct paqm_host_over *o = &q->hosts->over[over->host - 1];

	q->siblings_busy += o->busy > 0;
	o->busy++;
}

/* A packet of a flow that shares the rate of its host is about to join an overflow queue. */
static void paqm_host_over(struct paqm_sched_data *q, const struct paqm_flow *flow,
			   struct paqm_flowq *over)
{
	struct paqm_round *r = &q->drr[PAQM_MEDIA];
	u16 host = paqm_host_number(q, flow);

	if (over->strangers)
		return;
	if (over->host != host && over->tag == flow->tag) {
		if (over->host) {
			paqm_host_idle(q, over);
			paqm_part_released(q, over);
		}
		over->host = host;
		over->part = true;
		q->hosts->over[host - 1].served++;
		q->parts_served++;
		paqm_host_busy(q, over);
	}
	q->hosts->over[host - 1].last = over - q->flowq;
	if (list_empty(&over->list))
		paqm_drr_join(r, over, &r->fresh,
			      paqm_drr_part(q, over, READ_ONCE(r->quantum)));
}

/* What such a flow sends beyond its part; if it follows, its host owes it, too. */
static noinline void paqm_host_owe(struct paqm_sched_data *q, struct paqm_flow *flow, u32 wire,
				   u64 now)
{
	u32 clock = paqm_bucket_clock(now), owed = PAQM_BUCKET_OWED;
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
static void paqm_over_owe(struct paqm_sched_data *q, struct paqm_flow *flow,
			  struct paqm_flowq *over, u32 wire, u64 now)
{
	u8 every = READ_ONCE(flow->every);
	enum paqm_pace pace = every & PAQM_KNOWN ? paqm_pace_of(every) : PAQM_PACE_ONE;

	if (unlikely(every & PAQM_SHARES)) {
		paqm_host_owe(q, flow, wire, now);
		paqm_host_over(q, flow, over);
		return;
	}
	paqm_bucket_owe(&flow->due, paqm_bucket_clock(now), wire, READ_ONCE(q->pace[pace]),
			READ_ONCE(q->owed_most[pace]));
}

/* The same for a stranger; @flow if it has a slot. */
bool paqm_stranger_conforms(struct paqm_sched_data *q, struct paqm_flow *flow,
			    u32 wire, u64 now)
{
	u32 clock = paqm_bucket_clock(now), depth = READ_ONCE(q->bucket_depth);
	u32 before = flow ? flow->due : 0;

	WRITE_ONCE(q->stranger_bytes, q->stranger_bytes + wire);
	/* before all else: a queue that was empty may be somebody else's by now, or nobody's */
	if (flow && flow->over && !paqm_over_ends(q, flow))
		return false;
	if (READ_ONCE(q->pace[PAQM_PACE_NEW]) == U32_MAX)
		return false;
	/* a newcomer gets a picture at once, not again and again, nor from ever new ports */
	if (flow && (paqm_flow_marked(&q->flows, flow) >= PAQM_MARKED_ENDED ||
		     paqm_newcomers_pass(q)))
		depth = min(depth, READ_ONCE(q->depth_packet));
	if (flow) { /* each has a bucket of its own, too, or one could take all */
		if (!paqm_bucket_take(&flow->due, clock, wire, READ_ONCE(q->pace[PAQM_PACE_ONE]),
				      depth))
			return false;
	} else if (q->flowq[PAQM_OVER_STRANGERS].head) { /* see paqm_strangers_of() */
		return false; /* all without a slot are one flow, and that waits */
	}
	if (now - q->stranger_ns > NSEC_PER_SEC) /* older times than half a minute mislead */
		q->stranger_due = clock;
	q->stranger_ns = now;
	if (paqm_bucket_take(&q->stranger_due, clock, wire, READ_ONCE(q->pace[PAQM_PACE_NEW]),
			     depth))
		return true;
	if (flow) /* paqm_over_owe() takes it out of that */
		flow->due = before;
	return false;
}

/*
 * A flow becomes known while packets of it wait in the queue of strangers: it gets its own queue,
 * which is not served before these have left. Only so many at a time, since every turn looks at
 * each of them until then; the others stay for now.
 */
static bool paqm_over_may_move(const struct paqm_sched_data *q, const struct paqm_flow *flow)
{
	return flow->over < PAQM_OVER_OWN && READ_ONCE(flow->every) & PAQM_KNOWN &&
	       q->over_gated < PAQM_OVER_GATED && !list_empty(&q->over_free);
}

/*
 * The queue of strangers for the next packet. Where most of them do not stay, one of those from the
 * same address, by its hash: who joins does not wait behind a flood that is new again all the time.
 * One with made-up addresses is in all of them. Those without a slot share the first.
 */
static noinline struct paqm_flowq *paqm_strangers_of(struct paqm_sched_data *q,
						     const struct paqm_flow *flow)
{
	u32 place = 0;

	if (flow && paqm_newcomers_pass(q))
		place = paqm_host_place(&paqm_flow_more(&q->flows, flow)->tuple, PAQM_SIDE_SOURCE,
					q->rules.key);
	return &q->flowq[PAQM_OVER_STRANGERS + place % (PAQM_OVER_OWN - PAQM_OVER_STRANGERS)];
}

/*
 * A queue of its own for a flow: if it is free, the one that it had last, which knows how much its
 * AQM had to drop and how long it stood (paqm_over_stands()). NULL if none is free.
 */
static noinline struct paqm_flowq *paqm_over_own(struct paqm_sched_data *q,
						 const struct paqm_flow *flow, u64 now)
{
	struct paqm_flow_more *more = paqm_flow_more(&q->flows, flow);
	struct paqm_flowq *over = &q->flowq[more->over];

	if (more->over && !over->served && over->tag == flow->tag) {
		paqm_codel_rest(&over->codel); /* it may have been emptied to make room */
		return over;
	}
	over = list_first_entry_or_null(&q->over_free, struct paqm_flowq, list);
	if (over) {
		more->over = over - q->flowq;
		over->codel = (struct codel_vars){};
		over->since = paqm_bucket_clock(now);
	}
	return over;
}

/* An overflow queue is not served before all that is in the common queue now. */
static void paqm_over_wait(struct paqm_sched_data *q, struct paqm_flowq *over)
{
	over->behind = paqm_common_out(q) + paqm_common_len(q);
	if (list_empty(&over->waits)) {
		q->over_waits++;
		over->waits_whole = !over->part;
		q->over_waits_whole += over->waits_whole;
	}
	list_move_tail(&over->waits, &q->over_waiting);
}

/* Overflow queue for a packet beyond the fair rate; @flow may be NULL for strangers. */
static struct paqm_flowq *paqm_over_of(struct paqm_sched_data *q, struct paqm_flow *flow,
				       enum paqm_lane lane, u64 now)
{
	bool moves = flow && flow->over && paqm_over_may_move(q, flow) &&
		     lane != PAQM_LANE_STRANGER;
	struct paqm_flowq *over;

	if (flow && flow->over && !moves) /* some of its packets wait there */
		return &q->flowq[flow->over];
	if (lane == PAQM_LANE_STRANGER || !(READ_ONCE(flow->every) & PAQM_KNOWN))
		return paqm_strangers_of(q, flow);
	over = paqm_over_own(q, flow, now);
	if (over) {
		list_del_init(&over->list);
		over->gated = moves ? flow->over : 0;
		over->gate = flow->over_seq;
		q->over_gated += moves;
		WRITE_ONCE(over->lost, 0);
		WRITE_ONCE(over->marked, 0);
	} else { /* one that others have; packets of this flow may be in the common queue */
		over = &q->flowq[PAQM_OVER_OWN + flow->tag % (PAQM_OVER_QUEUES - PAQM_OVER_OWN)];
		paqm_over_wait(q, over);
	}
	over->tag = flow->tag;
	return over;
}

/* Has a newcomer sent what takes its bucket 50 ms to pay off? All without a slot have. */
static bool paqm_owes(const struct paqm_flow *flow, u64 now)
{
	return !flow || (s32)(flow->due - paqm_bucket_clock(now)) > (s32)PAQM_BUCKET_OWED;
}

/* The most that an overflow queue holds whose flow shares the turn of its host, bytes. */
static noinline u32 paqm_host_over_most(const struct paqm_sched_data *q,
					const struct paqm_flowq *over, u32 most)
{
	u32 least = PAQM_OVER_PACKETS / 4 * psched_mtu(qdisc_dev(q->sch));

	return max(most / q->hosts->over[over->host - 1].served, least);
}

/*
 * May a packet of @len bytes join an overflow queue? When these use more than half of their memory,
 * queues longer than the mean take no more: the heaviest flow loses first. All together never hold
 * more than half of `limit`, nor more of it than all others leave.
 */
static bool paqm_over_has_room(struct Qdisc *sch, const struct paqm_flowq *over, u32 len,
			       struct sk_buff **to_free)
{
	struct paqm_sched_data *q = qdisc_priv(sch);
	const struct paqm_round *r = &q->drr[PAQM_MEDIA];
	u32 memory = READ_ONCE(q->over_memory_limit), most = READ_ONCE(q->over_limit);
	u32 limit = READ_ONCE(q->limit);

	if ((u64)r->backlog + len > limit / 2 || r->memory > memory ||
	    (u16)(over->in - over->out) >= S16_MAX)
		return false;
	if ((u64)sch->qstats.backlog + len > limit &&
	    !paqm_room(sch, PAQM_MEDIA, NULL, len, to_free))
		return false;
	if (!over->head)
		return true;
	if (unlikely(over->host))
		most = paqm_host_over_most(q, over, most);
	if ((u64)over->backlog + len > most)
		return false;
	return r->memory <= memory / 2 || (u64)over->backlog * r->busy <= r->backlog;
}

/*
 * May a packet that counts in what strangers have already join a queue of theirs that holds some?
 * They have a quarter of the memory: a flood of small packets from ever new addresses must not take
 * the room of flows that are known, nor have these cut to the mean. If strangers are everywhere
 * their queues are one. Where most newcomers do not stay, half of their queue is for those that do
 * not send too much: who joins would wait behind, and lose to, a flood that is new again all the
 * time.
 */
static bool paqm_strangers_have_room(const struct paqm_sched_data *q,
				     const struct paqm_flowq *over,
				     const struct paqm_flow *flow, u64 now)
{
	u32 limit = READ_ONCE(q->over_limit), backlog = over->backlog;

	if (q->strangers_memory > READ_ONCE(q->over_memory_limit) / PAQM_STRANGERS_PART)
		return false;
	if (paqm_strangers_everywhere(q))
		backlog = q->strangers_backlog;
	return backlog <= limit / 2 ||
	       (backlog <= limit && !(paqm_newcomers_pass(q) && paqm_owes(flow, now)));
}

/*
 * A packet comes to a queue of strangers, which gets its place in the round robin if it has none.
 * Beside others of strangers it is not new, or each of them would have a whole turn time and again.
 * Return: whether it may join, as far as strangers go.
 */
static bool paqm_strangers_come(struct paqm_sched_data *q, struct paqm_flowq *over,
				const struct paqm_flow *flow, const struct sk_buff *skb, u64 now)
{
	struct paqm_round *r = &q->drr[PAQM_MEDIA];

	/* the flow's packets may be in the common queue; but not where none of strangers is */
	if (flow && flow->over != over - q->flowq && flow->bytes > qdisc_pkt_len(skb) &&
	    READ_ONCE(q->pace[PAQM_PACE_NEW]) != U32_MAX)
		paqm_over_wait(q, over);
	if (over->patient)
		paqm_codel_rest(&over->codel);
	paqm_count(&q->over_strangers);
	q->strangers_memory += skb->truesize;
	q->strangers_backlog += qdisc_pkt_len(skb);
	q->strangers_busy += !over->head;
	if (list_empty(&over->list)) {
		q->strangers_served++;
		q->parts_served++;
		paqm_drr_join(r, over, q->strangers_served > 1 ? &r->old : &r->fresh,
			      max(READ_ONCE(r->quantum) / q->strangers_served, 1U));
	}
	return !over->head || paqm_strangers_have_room(q, over, flow, now);
}

/* A packet comes to an overflow queue that shares a turn. Return: as paqm_strangers_come(). */
static noinline bool paqm_part_comes(struct paqm_sched_data *q, struct paqm_flowq *over,
				     const struct paqm_flow *flow, const struct sk_buff *skb,
				     u64 now)
{
	if (over->strangers)
		return paqm_strangers_come(q, over, flow, skb, now);
	if (!over->head)
		paqm_host_busy(q, over);
	return true;
}

/*
 * Does the overflow queue of a flow stand though it was empty just now? What the flow sends goes
 * there as long as it owes; one that heeds nothing and owes nearly all that it can has not sent
 * less for so long that its queue would be another one. Not for strangers, nor where flows share
 * the rate of a host: their buckets are deeper.
 */
static bool paqm_over_stands(const struct paqm_sched_data *q, const struct paqm_flow *flow, u64 now)
{
	return (s32)(flow->due - paqm_bucket_clock(now)) >
	       (s32)(READ_ONCE(q->bucket_depth) + PAQM_OVER_STANDS);
}

/* Put a packet into an overflow queue; there is room. */
static void paqm_over_append(struct Qdisc *sch, struct paqm_flowq *over, struct paqm_flow *flow,
			     struct sk_buff *skb, u64 now)
{
	struct paqm_sched_data *q = qdisc_priv(sch);

	if (!paqm_over_qlen(q)) /* no queue was kept waiting: none is owed anything */
		q->inside.lead = 0;
	if (!over->head) {
		paqm_over_wait(q, over);
		if (unlikely(over->part) || !paqm_over_stands(q, flow, now))
			over->since = paqm_bucket_clock(now);
	}
	paqm_drr_append(sch, PAQM_MEDIA, over, skb, now);
	if (flow) {
		WRITE_ONCE(flow->over, over - q->flowq);
		WRITE_ONCE(flow->over_seq, over->in); /* beside @every */
	}
}

/*
 * Does a flow beyond its rate need time rather than losses, since it is too new to have been told?
 */
static bool paqm_needs_time(const struct paqm_sched_data *q, const struct paqm_flow *flow)
{
	return !(flow && READ_ONCE(flow->every) & PAQM_KNOWN) && (q->tell || q->stamp) &&
	       !paqm_newcomers_pass(q);
}

/*
 * Has a flow sent more than it was told for long? A window with a picture of it says less: at a low
 * rate that is too much for a window, and one that keeps to its rate sends less in the next ones.
 */
static bool paqm_leans(const struct paqm_sched_data *q, const struct paqm_flow *flow)
{
	return flow->every & PAQM_DEAF &&
	       READ_ONCE(paqm_flow_more(&q->flows, flow)->lean) >= PAQM_LEAN_SHOWN;
}

/* A packet finds no room in an overflow queue. */
static noinline int paqm_over_refuse(struct sk_buff *skb, struct Qdisc *sch,
				     struct paqm_flow *flow, struct paqm_flowq *over,
				     struct sk_buff **to_free)
{
	struct paqm_sched_data *q = qdisc_priv(sch);

	WRITE_ONCE(over->lost, over->lost + 1);
	if (over->part)
		paqm_part_sent(q, over, skb);
	if (list_empty(&over->list)) /* it was taken for this packet */
		paqm_drr_release(q, &q->drr[PAQM_MEDIA], over);
	return paqm_drop(skb, sch, to_free, PAQM_MEDIA, &q->over_full, PAQM_DROP_FULL);
}

/* Put a media packet beyond its flow's fair rate into an overflow queue, or drop it. */
int paqm_divert(struct sk_buff *skb, struct Qdisc *sch, struct paqm_flow *flow,
		enum paqm_lane lane, u32 len, u32 wire, u64 now,
		struct sk_buff **to_free)
{
	struct paqm_sched_data *q = qdisc_priv(sch);
	struct paqm_queue *queue = &q->queue[PAQM_MEDIA];
	struct paqm_flowq *over = paqm_over_of(q, flow, lane, now);

	WRITE_ONCE(queue->beyond, queue->beyond + wire);
	if (flow && paqm_ecn(skb) != INET_ECN_NOT_ECT) {
		struct paqm_flow_more *more = paqm_flow_more(&q->flows, flow);

		WRITE_ONCE(more->hears, more->hears | PAQM_HEARS_MARK);
	}
	if (unlikely(over->part) && !paqm_part_comes(q, over, flow, skb, now))
		return paqm_over_refuse(skb, sch, flow, over, to_free);
	if (unlikely(!paqm_over_has_room(sch, over, len, to_free)))
		return paqm_over_refuse(skb, sch, flow, over, to_free);
	if (unlikely(q->stamp)) {
		u32 before = skb->truesize;

		paqm_stamp_packet(q, paqm_flow_counted(flow) ? flow : NULL, skb, now);
		if (over->strangers) /* its headers may have moved */
			q->strangers_memory += skb->truesize - before;
	}
	if (!sch->q.qlen)
		paqm_begin_busy(q, now);
	over->patient = paqm_needs_time(q, flow);
	over->above = flow && paqm_leans(q, flow);
	if (flow)
		paqm_over_owe(q, flow, over, wire, now);
	paqm_over_append(sch, over, flow, skb, now);
	return NET_XMIT_SUCCESS;
}
