// SPDX-License-Identifier: GPL-2.0
/*
 * What leaves sch_paqm: which class is next, which of media's queues, and the accounts of it.
 *
 * Flow queues are served by deficit round robin within their class (Shreedhar and Varghese 1995)
 * and each with CoDel (RFC 8289), which unmodified senders understand: it drops, or marks
 * ECT(0); ECT(1) is marked from a short queue on, in proportion (RFC 9332). A queue that was
 * empty is served first, once, as in RFC 8290. Of media that are the overflow queues of flows
 * beyond their fair rate (paqm_isolate.h), of the elastic class all there is.
 *
 * Under the qdisc lock, but for what the inner loop writes.
 */
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/rtnetlink.h>
#include <net/codel.h>
#include <net/codel_impl.h>
#include <net/inet_ecn.h>
#include <net/pkt_sched.h>
#include "core/paqm_bucket.h"
#include "core/paqm_hist.h"
#include "core/paqm_ramp.h"
#include "core/paqm_sched.h"
#include "paqm_capacity.h"
#include "paqm_datapath.h"
#include "paqm_drr.h"
#include "paqm_isolate.h"
#include "paqm_queue.h"
#include "paqm_trace.h"

#define PAQM_SHAPER_LAG_NS (5 * NSEC_PER_MSEC) /* departures may be this late */
#define PAQM_L4S_RANGE_NS (4 * NSEC_PER_MSEC) /* marking: how much more until all are marked */

static void paqm_drr_init(struct paqm_round *r)
{
	INIT_LIST_HEAD(&r->ahead);
	INIT_LIST_HEAD(&r->fresh);
	INIT_LIST_HEAD(&r->old);
	codel_params_init(&r->codel);
	codel_params_init(&r->codel_drops);
	codel_stats_init(&r->stats);
}

int paqm_isolate_init(struct paqm_sched_data *q)
{
	u32 i;

	BUILD_BUG_ON(PAQM_OVER_QUEUES > U16_MAX);
	BUILD_BUG_ON(PAQM_OVER_OWN > U8_MAX); /* struct paqm_flowq, @gated */
	q->flowq = kvcalloc(PAQM_OVER_QUEUES + PAQM_BULK_QUEUES, sizeof(*q->flowq),
			    GFP_KERNEL_ACCOUNT);
	if (!q->flowq)
		return -ENOMEM;
	INIT_LIST_HEAD(&q->over_free);
	INIT_LIST_HEAD(&q->over_waiting);
	for (i = 0; i < PAQM_CLASSES; i++)
		paqm_drr_init(&q->drr[i]);
	for (i = 0; i < PAQM_OVER_QUEUES + PAQM_BULK_QUEUES; i++) {
		struct paqm_flowq *fq = &q->flowq[i];

		INIT_LIST_HEAD(&fq->list);
		INIT_LIST_HEAD(&fq->waits);
		codel_vars_init(&fq->codel);
		fq->strangers = i < PAQM_OVER_OWN;
		fq->part = fq->strangers;
		if (i >= PAQM_OVER_OWN && i < PAQM_OVER_QUEUES)
			list_add_tail(&fq->list, &q->over_free);
	}
	return 0;
}

/* What CoDel works on. */
struct paqm_drr_ctx {
	struct Qdisc *sch;
	struct paqm_flowq *fq;
	enum paqm_class class;
	u32 drops;
	u32 bytes;
};

static struct sk_buff *paqm_drr_first(struct codel_vars *vars, void *data)
{
	struct paqm_drr_ctx *ctx = data;

	return paqm_drr_pop(ctx->sch, ctx->class, ctx->fq);
}

/* CoDel drops a packet. Never the last one of a class, so our length does not become 0 here. */
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

/*
 * Has the first packet waited for less than CoDel's target, while it drops nothing? Then it
 * would do no more than this, after a look at the clock.
 */
static __always_inline bool paqm_drr_calm(const struct paqm_round *r, struct paqm_flowq *fq,
					  u64 now)
{
	codel_time_t waited;

	if (unlikely(fq->codel.dropping))
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

/*
 * For how long an overflow queue has not been empty, in units of paqm_bucket_clock(). 0 if no
 * elastic flow is counted: what it does not get then nobody has, and previews alone have to do.
 */
static u32 paqm_over_age(const struct paqm_sched_data *q, const struct paqm_flowq *fq, u64 now)
{
	return READ_ONCE(q->queue[PAQM_ELASTIC].st.flows) ? paqm_bucket_clock(now) - fq->since : 0;
}

/*
 * Is the overflow queue @fq spared, as it stands, and its sender is to see its delay grow? Not a
 * sender that can be told by a mark.
 */
static bool paqm_over_spared(const struct paqm_sched_data *q, struct paqm_flowq *fq, u32 age,
			     u64 now)
{
	if ((q->cfg.ecn && paqm_ecn(fq->head) != INET_ECN_NOT_ECT) ||
	    !paqm_ramp_spares(age, paqm_bucket_clock(now - paqm_skb_cb(fq->head)->enqueued)))
		return false;
	/* it would drop at once all that it might have meanwhile */
	paqm_codel_rest(&fq->codel);
	return true;
}

static void paqm_drr_marked(struct paqm_round *r, struct paqm_flowq *fq, u32 marks)
{
	WRITE_ONCE(r->marks, r->marks + marks);
	WRITE_ONCE(fq->marked, fq->marked + marks);
}

/* The first packet of a queue that CoDel leaves there, or NULL; our length still holds it. */
static noinline struct sk_buff *paqm_drr_codel(struct Qdisc *sch, enum paqm_class class,
					       struct paqm_flowq *fq)
{
	struct paqm_drr_ctx ctx = { .sch = sch, .class = class, .fq = fq };
	struct paqm_sched_data *q = qdisc_priv(sch);
	struct paqm_round *r = &q->drr[class];
	struct codel_params *params = class == PAQM_MEDIA && (fq->codel.dropping || fq->above) ?
					      &r->codel_drops : &r->codel;
	u32 marks = r->stats.ecn_mark;
	/*
	 * Of many elastic flows each holds a packet or two: were these spared, the limit of the
	 * class alone would drop. As in sch_fq_codel one stays of all of them.
	 */
	u32 *backlog = class == PAQM_ELASTIC ? &r->backlog : &fq->backlog;
	struct sk_buff *skb;

	skb = codel_dequeue(&ctx, backlog, params, &fq->codel, &r->stats, qdisc_pkt_len,
			    paqm_drr_time, paqm_drr_drop, paqm_drr_first);
	if (ctx.drops) /* while @skb is still in our length */
		qdisc_tree_reduce_backlog(sch, ctx.drops, ctx.bytes);
	marks = r->stats.ecn_mark - marks;
	if (marks)
		paqm_drr_marked(r, fq, marks);
	return skb;
}

/**
 * paqm_drr_take() - the next packet of a class's flow queues, which hold some
 * @sch: this qdisc
 * @class: of them
 * @now: ns
 * @held: says of a queue that it may not be served yet; NULL: all may
 * @extra: of an overflow queue: what it is charged beyond the length of the packet, bytes
 *
 * Return: the packet, which our length still holds; NULL if all queues are held back.
 */
static __always_inline struct sk_buff *
paqm_drr_take(struct Qdisc *sch, enum paqm_class class, u64 now,
	      bool (*held)(struct paqm_sched_data *q, struct paqm_flowq *fq), u32 *extra)
{
	struct paqm_sched_data *q = qdisc_priv(sch);
	struct paqm_round *r = &q->drr[class];
	struct list_head *from;
	struct paqm_flowq *fq;
	struct sk_buff *skb;
	u32 age = 0, charge;

	for (;;) {
		if (!paqm_drr_next(q, class, held, &from, &fq))
			return NULL;
		if (class == PAQM_MEDIA)
			age = paqm_over_age(q, fq, now);
		skb = NULL;
		if (!fq->head) /* as codel_dequeue() does, without what it needs for that */
			paqm_codel_rest(&fq->codel);
		else if (fq->patient || likely(paqm_drr_calm(r, fq, now)) ||
			 (class == PAQM_MEDIA && paqm_over_spared(q, fq, age, now)))
			skb = paqm_drr_pop(sch, class, fq);
		else
			skb = paqm_drr_codel(sch, class, fq);
		if (likely(skb))
			break;
		/* one that was new waits a round, or it could be new all the time */
		if (from == &r->fresh && !list_empty(&r->old))
			list_move_tail(&fq->list, &r->old);
		else
			paqm_drr_release(q, r, fq);
	}
	charge = qdisc_pkt_len(skb);
	if (class == PAQM_MEDIA && unlikely(age)) {
		*extra = paqm_ramp_extra(age, charge);
		charge += *extra;
	}
	fq->deficit -= charge;
	if (class == PAQM_ELASTIC && from == &r->ahead)
		paqm_bulk_sent(q, r, fq, now);
	if (paqm_drr_l4s(q, r, skb, now - paqm_skb_cb(skb)->enqueued))
		paqm_drr_marked(r, fq, 1);
	return skb;
}

/* May an overflow queue not be served yet, as earlier packets of its flow wait elsewhere? */
static __always_inline bool paqm_over_gated(struct paqm_sched_data *q, struct paqm_flowq *over)
{
	const struct paqm_flowq *strangers = &q->flowq[over->gated];

	if (paqm_common_first(q, &over->behind))
		return true;
	if (likely(!over->gated))
		return false;
	if (paqm_fifo_waits(strangers->in, strangers->out, over->gate))
		return true;
	over->gated = 0;
	q->over_gated--;
	return false;
}

/*
 * The next packet of the overflow queues, which hold some; NULL if @held says of all of these that
 * they have to wait for packets in the common queue.
 */
static __always_inline struct sk_buff *paqm_over_take(struct Qdisc *sch, u64 now, paqm_held_t held,
						      u32 *extra)
{
	struct sk_buff *skb = paqm_drr_take(sch, PAQM_MEDIA, now, held, extra);
	struct paqm_sched_data *q = qdisc_priv(sch);
	u64 sojourn;

	if (!skb)
		return NULL;
	sojourn = now - paqm_skb_cb(skb)->enqueued;
	WRITE_ONCE(q->over_sojourn_ns, q->over_sojourn_ns + sojourn);
	paqm_count(&q->over_hist[paqm_hist_bin(sojourn)]);
	WRITE_ONCE(q->over_sent, q->over_sent + 1);
	return skb;
}

/* A constant function is no indirect call. */
static noinline struct sk_buff *paqm_over_next(struct Qdisc *sch, u64 now, u32 *extra)
{
	return paqm_over_take(sch, now, paqm_over_gated, extra);
}

static noinline struct sk_buff *paqm_over_any(struct Qdisc *sch, u64 now, u32 *extra)
{
	return paqm_over_take(sch, now, NULL, extra);
}

/**
 * enum paqm_turn - who sends next
 * @PAQM_TURN_ELASTIC: the elastic class
 * @PAQM_TURN_COMMON: the common queue of media
 * @PAQM_TURN_OVER: one of its overflow queues
 */
enum paqm_turn { PAQM_TURN_ELASTIC, PAQM_TURN_COMMON, PAQM_TURN_OVER };

/*
 * Who is next while overflow queues hold packets; @elastic: that class waits, too. When the
 * common queue is empty, overflow queues may use half of the class's credit at most: the rest is
 * for flows that keep to their rate and send next.
 */
static noinline enum paqm_turn paqm_over_turn(struct paqm_sched_data *q, bool elastic)
{
	bool common = q->queue[PAQM_MEDIA].head;
	s64 most;

	if (elastic) {
		most = (s64)READ_ONCE(q->sched.credit) << (common ? 16 : 15);
		if (paqm_elastic_first(q) || q->sched.lead >= most)
			return PAQM_TURN_ELASTIC;
	}
	if (!common && q->inside.lead <= 0) /* nothing to divide, and nothing to pay back */
		return PAQM_TURN_OVER;
	q->inside.share_q16 = paqm_common_share(q);
	q->inside.credit = paqm_common_credit(q);
	return common && paqm_sched_media_next(&q->inside) ? PAQM_TURN_COMMON : PAQM_TURN_OVER;
}

/*
 * In a preview that began at @from (paqm_inner.c: paqm_preview()): have the overflow queues had as
 * much as their flows' rates come to? Not where strangers wait, who may not have been told yet.
 */
static bool paqm_preview_holds(const struct paqm_sched_data *q, u32 from, u64 now)
{
	return from == q->preview_seen && (s32)(q->preview_due - paqm_bucket_clock(now)) > 0 &&
	       !q->strangers_busy;
}

/* The same: ns until they may have more. */
static u64 paqm_preview_wait(const struct paqm_sched_data *q, u64 now)
{
	return (u64)(u32)(q->preview_due - paqm_bucket_clock(now)) << PAQM_BUCKET_SHIFT;
}

/* A packet of theirs leaves: it takes the time that it takes at these rates. */
static void paqm_preview_sent(struct paqm_sched_data *q, u32 from, u32 wire, u64 now)
{
	u32 takers = q->drr[PAQM_MEDIA].served - q->siblings_busy;
	u32 cost = READ_ONCE(q->pace[PAQM_PACE_DEAF]) / max(takers, 1U);

	if (from != q->preview_seen) {
		q->preview_seen = from;
		q->preview_due = from;
	}
	/* further ahead than a preview lasts it does not matter */
	if ((s32)(q->preview_due - paqm_bucket_clock(now)) < (s32)paqm_bucket_clock(NSEC_PER_SEC))
		q->preview_due += paqm_bucket_depth(cost, wire);
}

static noinline struct sk_buff *paqm_bulk_take(struct Qdisc *sch, u64 now)
{
	struct sk_buff *skb = paqm_drr_take(sch, PAQM_ELASTIC, now, NULL, NULL);
	struct paqm_sched_data *q = qdisc_priv(sch);

	if (!q->drr[PAQM_ELASTIC].qlen)
		WRITE_ONCE(q->elastic_busy_ns, q->elastic_busy_ns + now - q->elastic_since);
	return skb;
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
	    queue->st.backlog < READ_ONCE(q->overload_bytes) / 2)
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
	u32 extra = 0;

	if (!common) {
		skb = paqm_over_next(sch, now, &extra);
		/* never so: nothing waits for a queue that is empty */
		if (!skb && WARN_ON_ONCE(!q->queue[PAQM_MEDIA].head))
			skb = paqm_over_any(sch, now, &extra);
	}
	if (!skb) {
		common = true;
		skb = paqm_take_media(q, now);
	}
	paqm_sched_sent(&q->inside, common, paqm_wire_len(q, skb, qdisc_pkt_len(skb)),
			!!q->queue[PAQM_MEDIA].head, common || paqm_over_qlen(q));
	if (extra) /* the elastic class has it */
		paqm_sched_sent(&q->sched, 1, extra, 1, elastic_waits);
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
		/* a parent must always find a packet: only a shaper may hold them back */
		if (unlikely(preview) && turn == PAQM_TURN_OVER &&
		    (ready || q->shaper.rate_bytes_ps)) {
			skb = paqm_send_preview(sch, preview, ready, now);
			if (skb || !ready)
				return skb;
			turn = PAQM_TURN_ELASTIC;
		} else if (!ready) {
			return paqm_send_media(sch, turn, false, now);
		}
	} else if (media->head && (!ready || paqm_media_next(q))) {
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

struct sk_buff *paqm_dequeue(struct Qdisc *sch)
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
		if (!media->head || !paqm_media_next(q))
			return paqm_sent(sch, paqm_take_elastic(sch, now), PAQM_ELASTIC, true,
					 now);
	}
	if (unlikely(!media->head)) /* a parent has peeked at the last one */
		return NULL;
	return paqm_sent(sch, paqm_take_media(q, now), PAQM_MEDIA, ready, now);
}
