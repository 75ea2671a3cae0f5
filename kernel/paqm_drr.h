/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Flow queues, served by deficit round robin within their class (Shreedhar and Varghese 1995)
 * and each with CoDel (RFC 8289), which unmodified senders understand: it drops, or marks
 * ECT(0); ECT(1) is marked from a short queue on, in proportion (RFC 9332). A queue that was
 * empty is served first, once, as in RFC 8290.
 *
 * Of media that are the overflow queues of flows beyond their fair rate, of the elastic class
 * all there is (paqm_isolate.h). All of it runs under the qdisc lock.
 */
#ifndef PAQM_DRR_H
#define PAQM_DRR_H

#include <linux/list.h>
#include <linux/rtnetlink.h>
#include <net/codel.h>
#include <net/codel_impl.h>
#include <net/inet_ecn.h>
#include "paqm_compat.h"
#include "paqm_queue.h"
#include "paqm_state.h"
#include "paqm_trace.h"

#define PAQM_L4S_RANGE_NS (4 * NSEC_PER_MSEC) /* and how much more until all are marked */

static void paqm_drr_init(struct paqm_round *r)
{
	INIT_LIST_HEAD(&r->fresh);
	INIT_LIST_HEAD(&r->old);
	codel_params_init(&r->codel);
	codel_stats_init(&r->stats);
}

/* Put a packet into a flow queue; there is room. */
static void paqm_drr_append(struct Qdisc *sch, enum paqm_class class, struct paqm_flowq *fq,
			    struct sk_buff *skb, u64 now)
{
	struct paqm_sched_data *q = qdisc_priv(sch);
	struct paqm_queue *queue = &q->queue[class];
	struct paqm_round *r = &q->drr[class];
	u32 len = qdisc_pkt_len(skb);

	if (list_empty(&fq->list)) {
		fq->deficit = READ_ONCE(r->quantum);
		fq->served = true;
		r->served++;
		list_add_tail(&fq->list, &r->fresh);
	}
	paqm_skb_cb(skb)->enqueued = now;
	skb->next = NULL;
	if (fq->head) {
		fq->tail->next = skb;
	} else {
		fq->head = skb;
		WRITE_ONCE(r->busy, r->busy + 1);
	}
	fq->tail = skb;
	fq->in++;
	WRITE_ONCE(fq->backlog, fq->backlog + len);
	r->memory += skb->truesize;
	WRITE_ONCE(r->qlen, r->qlen + 1);
	WRITE_ONCE(r->backlog, r->backlog + len);
	WRITE_ONCE(queue->taken, queue->taken + 1);
	if (class == PAQM_ELASTIC) { /* a limit of their own holds for overflow queues */
		q->memory += skb->truesize;
		WRITE_ONCE(queue->st.backlog, queue->st.backlog + len);
	}
	qdisc_qlen_inc(sch);
	qdisc_qstats_backlog_inc(sch, skb);
}

struct paqm_drr_ctx {
	struct Qdisc *sch;
	struct paqm_flowq *fq;
	enum paqm_class class;
	u32 drops;
	u32 bytes;
};

/* CoDel takes the first packet; our own length still holds it. */
static struct sk_buff *paqm_drr_pop(struct codel_vars *vars, void *data)
{
	struct paqm_drr_ctx *ctx = data;
	struct paqm_sched_data *q = qdisc_priv(ctx->sch);
	struct paqm_queue *queue = &q->queue[ctx->class];
	struct paqm_round *r = &q->drr[ctx->class];
	struct paqm_flowq *fq = ctx->fq;
	struct sk_buff *skb = fq->head;
	u32 len;

	if (!skb)
		return NULL;
	len = qdisc_pkt_len(skb);
	fq->head = skb->next;
	if (!fq->head)
		WRITE_ONCE(r->busy, r->busy - 1);
	skb_mark_not_on_list(skb);
	fq->out++;
	WRITE_ONCE(fq->backlog, fq->backlog - len);
	r->memory -= skb->truesize;
	WRITE_ONCE(r->qlen, r->qlen - 1);
	WRITE_ONCE(r->backlog, r->backlog - len);
	if (ctx->class == PAQM_ELASTIC) {
		q->memory -= skb->truesize;
		WRITE_ONCE(queue->st.backlog, queue->st.backlog - len);
	}
	return skb;
}

/* And drops it. Never the last one of a queue, so our length does not become 0 here. */
static void paqm_drr_drop(struct sk_buff *skb, void *data)
{
	struct paqm_drr_ctx *ctx = data;
	struct paqm_sched_data *q = qdisc_priv(ctx->sch);
	struct paqm_queue *queue = &q->queue[ctx->class];
	struct paqm_round *r = &q->drr[ctx->class];
	u32 len = qdisc_pkt_len(skb);

	trace_drop(qdisc_dev(ctx->sch)->name, ctx->class,
		   ctx->class == PAQM_MEDIA ? PAQM_DROP_OVER : PAQM_DROP_INNER, len,
		   ctx->fq->backlog, 0);
	WRITE_ONCE(r->drops, r->drops + 1);
	WRITE_ONCE(ctx->fq->lost, ctx->fq->lost + 1);
	WRITE_ONCE(queue->taken, queue->taken - 1);
	qdisc_qlen_dec(ctx->sch);
	qdisc_qstats_backlog_dec(ctx->sch, skb);
	qdisc_qstats_drop(ctx->sch);
	ctx->drops++;
	ctx->bytes += len;
	kfree_skb_reason(skb, SKB_DROP_REASON_QDISC_DROP);
}

static codel_time_t paqm_drr_time(const struct sk_buff *skb)
{
	return paqm_skb_cb(skb)->enqueued >> CODEL_SHIFT;
}

/* ECN field of an IP packet, in the packet; Not-ECT where there is none. */
static u8 paqm_ecn(const struct sk_buff *skb)
{
	if (skb_headlen(skb) < skb_network_offset(skb) + (int)sizeof(struct iphdr))
		return INET_ECN_NOT_ECT;
	if (skb->protocol == htons(ETH_P_IP))
		return ip_hdr(skb)->tos & INET_ECN_MASK;
	if (skb->protocol == htons(ETH_P_IPV6))
		return ipv6_get_dsfield(ipv6_hdr(skb)) & INET_ECN_MASK;
	return INET_ECN_NOT_ECT;
}

/*
 * Has the first packet waited for less than CoDel's target, while it drops nothing? Then it
 * would do no more than this, after a look at the clock.
 */
static __always_inline bool paqm_drr_calm(const struct paqm_round *r, struct paqm_flowq *fq,
					  u64 now)
{
	codel_time_t waited;

	if (unlikely(!fq->head || fq->codel.dropping))
		return false;
	waited = (codel_time_t)(now >> CODEL_SHIFT) - paqm_drr_time(fq->head);
	if (waited >= READ_ONCE(r->codel.target))
		return false;
	if (unlikely(fq->codel.first_above_time))
		fq->codel.first_above_time = 0;
	return true;
}

/*
 * ECT(1): marked in proportion to the queue delay beyond a floor, as senders of RFC 9331
 * expect; RFC 9332 Appendix A.1 has the ramp.
 */
static bool paqm_drr_l4s(struct paqm_sched_data *q, const struct paqm_round *r,
			 struct sk_buff *skb, u64 sojourn)
{
	u64 floor = READ_ONCE(r->l4s_floor_ns), beyond;

	if (sojourn <= floor || !q->cfg.ecn || paqm_ecn(skb) != INET_ECN_ECT_1)
		return false;
	beyond = sojourn - floor;
	if (beyond < PAQM_L4S_RANGE_NS &&
	    paqm_draw(q) >= (u32)paqm_div64(beyond << 32, PAQM_L4S_RANGE_NS))
		return false;
	return INET_ECN_set_ce(skb);
}

/**
 * paqm_drr_take() - the next packet of a class's flow queues, which hold some
 * @sch: this qdisc
 * @class: of them
 * @now: ns
 * @held: says of a queue that it may not be served yet; NULL: all may
 *
 * Return: the packet, which our length still holds; NULL if all queues are held back.
 */
static __always_inline struct sk_buff *
paqm_drr_take(struct Qdisc *sch, enum paqm_class class, u64 now,
	      bool (*held)(struct paqm_sched_data *q, struct paqm_flowq *fq))
{
	struct paqm_sched_data *q = qdisc_priv(sch);
	struct paqm_drr_ctx ctx = { .sch = sch, .class = class };
	struct paqm_round *r = &q->drr[class];
	struct paqm_flowq *first_held = NULL, *fq;
	u32 marks = r->stats.ecn_mark;
	struct list_head *from;
	struct sk_buff *skb;

	for (;;) {
		from = list_empty(&r->fresh) ? &r->old : &r->fresh;
		fq = list_first_entry(from, struct paqm_flowq, list);
		if (held && fq->head && held(q, fq)) {
			if (fq == first_held) /* once round, and none that may */
				return NULL;
			if (!first_held)
				first_held = fq;
			list_move_tail(&fq->list, &r->old);
			continue;
		}
		if (fq->deficit <= 0) {
			fq->deficit += READ_ONCE(r->quantum);
			list_move_tail(&fq->list, &r->old);
			first_held = NULL; /* this one may, next time */
			continue;
		}
		ctx.fq = fq;
		if (fq->patient || likely(paqm_drr_calm(r, fq, now)))
			skb = paqm_drr_pop(&fq->codel, &ctx);
		else
			skb = codel_dequeue(&ctx, &fq->backlog, &r->codel, &fq->codel, &r->stats,
					    qdisc_pkt_len, paqm_drr_time, paqm_drr_drop,
					    paqm_drr_pop);
		if (likely(skb))
			break;
		/* one that was new waits a round, or it could be new all the time */
		if (from == &r->fresh && !list_empty(&r->old))
			list_move_tail(&fq->list, &r->old);
		else
			paqm_drr_release(q, r, fq);
	}
	fq->deficit -= qdisc_pkt_len(skb);
	if (unlikely(ctx.drops)) /* while @skb is still in our length */
		qdisc_tree_reduce_backlog(sch, ctx.drops, ctx.bytes);
	marks = r->stats.ecn_mark - marks;
	marks += paqm_drr_l4s(q, r, skb, now - paqm_skb_cb(skb)->enqueued);
	if (marks) {
		WRITE_ONCE(r->marks, r->marks + marks);
		WRITE_ONCE(fq->marked, fq->marked + marks);
	}
	return skb;
}

#endif /* PAQM_DRR_H */
