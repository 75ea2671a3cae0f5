// SPDX-License-Identifier: GPL-2.0
/*
 * Who loses packets where all queues together have no room: the longest queue, from its head, so
 * that short queues keep theirs.
 *
 * A limit that `change` lowers holds at once. It may be a gigabyte below the old one, so the lock
 * is released now and then; no packet joins meanwhile that has no room.
 */
#include <linux/rtnetlink.h>
#include <linux/sched.h>
#include "paqm_compat.h"
#include "paqm_queue.h"
#include "paqm_trace.h"
#include "paqm_trim.h"

#define PAQM_TRIM_BATCH 256 /* packets in a hold of the lock */
#define PAQM_ROOM_BATCH 64 /* packets that make room at once: a look at all queues takes time */

/**
 * struct paqm_trim - one queue that is to lose packets
 * @class: it is of this class
 * @fq: the queue of a flow, NULL: the list of the class, or
 * @child: its other qdisc
 * @own: it is the limit of the class that asks for it
 * @backlog: bytes in it; 0: there is none
 */
struct paqm_trim {
	enum paqm_class class;
	struct paqm_flowq *fq;
	struct Qdisc *child;
	bool own;
	u32 backlog;
};

/* Is @limit, 0: none, lower than it was? */
bool paqm_lowers(u32 limit, u32 before)
{
	return limit && (!before || limit < before);
}

/* What waits in the list of a class. */
static u32 paqm_list_backlog(const struct paqm_sched_data *q, enum paqm_class class)
{
	u32 backlog = q->queue[class].st.backlog;

	return class == PAQM_ELASTIC ? backlog - q->drr[class].backlog : backlog;
}

static void paqm_trim_flows(struct paqm_sched_data *q, enum paqm_class class,
			    const struct list_head *list, struct paqm_trim *most)
{
	struct paqm_flowq *fq;

	list_for_each_entry(fq, list, list)
		if (fq->head && fq->backlog > most->backlog)
			*most = (struct paqm_trim){ .class = class, .fq = fq,
						   .backlog = fq->backlog };
}

/* Is there a longer queue in @class than @most? @flows: of media those of flows count, too. */
static void paqm_trim_find(struct paqm_sched_data *q, enum paqm_class class, bool flows,
			   struct paqm_trim *most)
{
	u32 backlog = paqm_list_backlog(q, class);

	if (q->queue[class].head && backlog > most->backlog)
		*most = (struct paqm_trim){ .class = class, .backlog = backlog };
	if (!flows)
		return;
	paqm_trim_flows(q, class, &q->drr[class].ahead, most);
	paqm_trim_flows(q, class, &q->drr[class].fresh, most);
	paqm_trim_flows(q, class, &q->drr[class].old, most);
}

/* Does a class hold more than one packet to which its own limit applies? */
static bool paqm_trim_several(const struct paqm_sched_data *q, enum paqm_class class)
{
	const struct sk_buff *head = q->queue[class].head;

	return class == PAQM_MEDIA ? head && head->next : paqm_qlen(&q->queue[class]) > 1;
}

/*
 * How many bytes are too many, and which queue is to lose some. @stuck: the child holds back what
 * it has. The last packet stays, however long it is: it would have been let in.
 */
static u32 paqm_trim_excess(struct Qdisc *sch, bool stuck, struct paqm_trim *most)
{
	struct paqm_sched_data *q = qdisc_priv(sch);
	const struct paqm_queue *u = &q->queue[PAQM_MEDIA], *t = &q->queue[PAQM_ELASTIC];
	struct Qdisc *child = rtnl_dereference(q->child);
	u32 limit = q->cfg.media_limit, qlen, backlog;

	*most = (struct paqm_trim){};
	if (limit && u->st.backlog > limit && paqm_trim_several(q, PAQM_MEDIA)) {
		paqm_trim_find(q, PAQM_MEDIA, false, most);
		most->own = true;
		return u->st.backlog - limit;
	}
	limit = q->cfg.elastic_limit;
	if (limit && !child && t->st.backlog > limit &&
	    paqm_trim_several(q, PAQM_ELASTIC)) {
		paqm_trim_find(q, PAQM_ELASTIC, true, most);
		most->own = true;
		return t->st.backlog - limit;
	}
	limit = READ_ONCE(q->limit);
	if (sch->qstats.backlog <= limit || sch->q.qlen < 2)
		return 0;
	paqm_trim_find(q, PAQM_MEDIA, true, most);
	paqm_trim_find(q, PAQM_ELASTIC, true, most);
	if (child && !stuck) {
		qdisc_qstats_qlen_backlog(child, &qlen, &backlog);
		if (qlen && backlog >= most->backlog)
			*most = (struct paqm_trim){ .class = PAQM_ELASTIC, .child = child,
						   .backlog = backlog };
	}
	return sch->qstats.backlog - limit;
}

/* The first packet of a queue; NULL if a child holds back what it has. */
static struct sk_buff *paqm_trim_take(struct Qdisc *sch, const struct paqm_trim *from)
{
	struct paqm_sched_data *q = qdisc_priv(sch);
	struct paqm_queue *queue = &q->queue[from->class];
	u64 *counter = &queue->n.drop_tail;
	struct sk_buff *skb;

	if (from->child) {
		/* as in dequeue: what it drops by itself is in our length until then */
		if (!from->child->ops->peek(from->child))
			return NULL;
		skb = qdisc_dequeue_peeked(from->child);
		if (skb)
			paqm_count(counter);
		return skb;
	}
	if (from->fq) {
		skb = paqm_drr_pop(sch, from->class, from->fq);
		WRITE_ONCE(from->fq->lost, from->fq->lost + 1);
		if (from->class == PAQM_MEDIA)
			counter = &q->over_full;
	} else {
		skb = paqm_pop(q, queue);
		if (from->class == PAQM_MEDIA)
			q->common_cut++;
	}
	WRITE_ONCE(queue->taken, queue->taken - 1);
	paqm_count(counter);
	return skb;
}

/* Account a packet that was taken in order to drop it. Returns its length. */
static u32 paqm_trim_count(struct Qdisc *sch, const struct paqm_trim *from,
			   const struct sk_buff *skb)
{
	struct paqm_sched_data *q = qdisc_priv(sch);
	u32 len = qdisc_pkt_len(skb);

	trace_drop(qdisc_dev(sch)->name, from->class, PAQM_DROP_TAIL, len,
		   q->queue[from->class].st.backlog, 0);
	qdisc_qlen_dec(sch);
	qdisc_qstats_backlog_dec(sch, skb);
	qdisc_qstats_drop(sch);
	return len;
}

/*
 * Drop some packets of one queue: half of what it holds at most, since then another one may be
 * longer. Says whether there is more to do. Under the qdisc lock.
 */
static bool paqm_trim_some(struct Qdisc *sch, bool *stuck)
{
	struct paqm_sched_data *q = qdisc_priv(sch);
	u32 excess, enough, packets = 0, bytes = 0, len;
	struct paqm_trim from;
	struct sk_buff *skb;

	excess = paqm_trim_excess(sch, *stuck, &from);
	if (!excess || !from.backlog)
		return false;
	enough = min(excess, from.backlog / 2 + 1);
	while (bytes < enough && packets < PAQM_TRIM_BATCH &&
	       (from.own ? paqm_trim_several(q, from.class) : sch->q.qlen > 1)) {
		skb = paqm_trim_take(sch, &from);
		if (!skb) {
			*stuck = true;
			break;
		}
		len = paqm_trim_count(sch, &from, skb);
		packets++;
		bytes += len;
		rtnl_kfree_skbs(skb, skb);
		if (from.child) /* it may report drops of its own, next time */
			qdisc_tree_reduce_backlog(sch, 1, len);
	}
	if (packets && !from.child)
		qdisc_tree_reduce_backlog(sch, packets, bytes);
	return true;
}

/* Drop what the limits in force do not allow. RTNL. */
void paqm_trim(struct Qdisc *sch)
{
	struct paqm_sched_data *q = qdisc_priv(sch);
	bool more, stuck = false;

	do {
		sch_tree_lock(sch);
		more = paqm_trim_some(sch, &stuck);
		if (q->long_since &&
		    q->queue[PAQM_MEDIA].st.backlog < READ_ONCE(q->overload_bytes) / 2)
			paqm_end_overload(q, ktime_get_ns());
		sch_tree_unlock(sch);
		cond_resched();
	} while (more);
}

/**
 * paqm_trim_late() - drop media that is far beyond its limit, since that has fallen by itself
 * @sch: this qdisc
 *
 * From the head: what has waited for so long is of no use, and keeps what is from its receiver.
 * Under the qdisc lock.
 */
void paqm_trim_late(struct Qdisc *sch)
{
	struct paqm_sched_data *q = qdisc_priv(sch);
	const struct paqm_queue *queue = &q->queue[PAQM_MEDIA];
	const struct paqm_trim from = { .class = PAQM_MEDIA };
	u32 limit = READ_ONCE(queue->limit), packets = 0, bytes = 0;
	struct sk_buff *skb;

	if (likely(queue->st.backlog <= (u64)limit + limit / 2))
		return;
	while (queue->st.backlog > limit && packets < PAQM_TRIM_BATCH &&
	       paqm_trim_several(q, PAQM_MEDIA)) {
		skb = paqm_trim_take(sch, &from);
		bytes += paqm_trim_count(sch, &from, skb);
		packets++;
		kfree_skb_reason(skb, SKB_DROP_REASON_QDISC_DROP);
	}
	if (packets)
		qdisc_tree_reduce_backlog(sch, packets, bytes);
}

/* May a packet have the room of elastic ones? Media has half of all, an elastic flow its part. */
static bool paqm_room_due(const struct paqm_sched_data *q, enum paqm_class class,
			  const struct paqm_flowq *fq)
{
	const struct paqm_round *t = &q->drr[PAQM_ELASTIC];

	if (class == PAQM_MEDIA)
		return (u64)q->queue[PAQM_MEDIA].st.backlog + q->drr[PAQM_MEDIA].backlog <
		       q->queue[PAQM_ELASTIC].st.backlog;
	return fq && (u64)fq->backlog * t->busy < t->backlog;
}

/* Are `limit` or the memory of all used up? */
static bool paqm_room_lacks(struct Qdisc *sch, u32 len)
{
	const struct paqm_sched_data *q = qdisc_priv(sch);

	return (u64)sch->qstats.backlog + len > READ_ONCE(q->limit) ||
	       q->memory > READ_ONCE(q->memory_limit);
}

/*
 * The longest elastic queue loses half of what it holds, as in sch_fq_codel; but the last packet of
 * all that parents know of stays, so that none sees an empty queue: above it a class that had only
 * these would go to sleep, and nobody would wake it.
 */
static bool paqm_room_make(struct Qdisc *sch, struct sk_buff **to_free)
{
	struct paqm_sched_data *q = qdisc_priv(sch);
	u32 packets = 0, bytes = 0;
	struct paqm_trim from = {};
	struct sk_buff *skb;

	paqm_trim_find(q, PAQM_ELASTIC, true, &from);
	while (bytes < from.backlog / 2 + !!from.backlog && packets < PAQM_ROOM_BATCH &&
	       sch->q.qlen > 1 + q->cut.taken) {
		skb = paqm_trim_take(sch, &from);
		bytes += paqm_trim_count(sch, &from, skb);
		packets++;
		__qdisc_drop(skb, to_free);
	}
	if (packets)
		qdisc_tree_reduce_backlog(sch, packets, bytes);
	return packets;
}

/**
 * paqm_room() - do limit and memory of all queues leave room for a packet?
 * @sch: this qdisc
 * @class: of the packet
 * @fq: the queue of its flow, if it is elastic and has one
 * @len: bytes
 * @to_free: dropped packets
 *
 * If not, elastic packets may make it: else a flood of these would leave media, and other elastic
 * flows, none at all. Under the qdisc lock.
 *
 * Return: whether there is room.
 */
bool paqm_room(struct Qdisc *sch, enum paqm_class class, const struct paqm_flowq *fq, u32 len,
	       struct sk_buff **to_free)
{
	const struct paqm_sched_data *q = qdisc_priv(sch);

	while (paqm_room_lacks(sch, len))
		if (!paqm_room_due(q, class, fq) || !paqm_room_make(sch, to_free))
			return false;
	return true;
}
