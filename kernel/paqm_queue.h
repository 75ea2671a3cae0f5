/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Lists of packets of sch_paqm, as enqueue, dequeue and `change` all need them; what is not done
 * for each packet is in paqm_queue.c. All of it runs under the qdisc lock.
 */
#ifndef PAQM_QUEUE_H
#define PAQM_QUEUE_H

#include <linux/if_vlan.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <net/inet_ecn.h>
#include "core/paqm_bucket.h"
#include "paqm_compat.h"
#include "paqm_state.h"

#define PAQM_OVER_QUEUES 1024 /* overflow queues; more flows share one by their hash */
#define PAQM_BULK_QUEUES 1024 /* of the elastic class */
#define PAQM_BULK_OWED_NS NSEC_PER_SEC /* what an elastic flow has sent above its rate counts */
#define PAQM_OVER_STRANGERS 1 /* the first of those of flows not known yet; 0 is none */
#define PAQM_OVER_OWN 17 /* the first of those of known flows */

int paqm_drop(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free,
	      enum paqm_class class, u64 *counter, enum paqm_drop why);
int paqm_drop_uncut(struct sk_buff *skb, struct Qdisc *sch, int class, struct sk_buff **to_free);
void paqm_count_segs(struct sk_buff *skb);
u8 paqm_ecn_tagged(const struct sk_buff *skb);
void paqm_free_list(struct paqm_sched_data *q, struct paqm_queue *queue);
void paqm_drr_purge(struct paqm_sched_data *q, enum paqm_class class);
void paqm_host_idle(struct paqm_sched_data *q, const struct paqm_flowq *over);
void paqm_part_sent(struct paqm_sched_data *q, const struct paqm_flowq *fq,
		    const struct sk_buff *skb);
void paqm_part_released(struct paqm_sched_data *q, struct paqm_flowq *fq);

/* CoDel of a flow queue begins anew, but remembers how much it had to drop. */
static inline void paqm_codel_rest(struct codel_vars *codel)
{
	codel->dropping = false;
	codel->first_above_time = 0;
}

/* A queue that is empty is not served any more; other flows may have one of a known flow. */
static inline void paqm_drr_release(struct paqm_sched_data *q, struct paqm_round *r,
				    struct paqm_flowq *fq)
{
	if (fq->gated) {
		fq->gated = 0;
		q->over_gated--;
	}
	r->served -= fq->served;
	if (unlikely(fq->part))
		paqm_part_released(q, fq);
	if (r == &q->drr[PAQM_MEDIA] && !fq->strangers)
		list_move_tail(&fq->list, &q->over_free);
	else
		list_del_init(&fq->list);
	fq->served = false;
}

/* Packets that have left the common queue, lowest bits; those that wait there. */
static inline u32 paqm_common_out(const struct paqm_sched_data *q)
{
	return (u32)q->queue[PAQM_MEDIA].st.sent_packets - (u32)q->over_sent + q->common_cut;
}

/* Packets that wait in overflow queues. */
static inline u32 paqm_over_qlen(const struct paqm_sched_data *q)
{
	return q->drr[PAQM_MEDIA].qlen;
}

static inline u32 paqm_common_len(const struct paqm_sched_data *q)
{
	return paqm_qlen(&q->queue[PAQM_MEDIA]) - paqm_over_qlen(q);
}

/* Do strangers come from everywhere, as far as their queues tell? Their addresses are made up. */
static inline bool paqm_strangers_everywhere(const struct paqm_sched_data *q)
{
	return q->strangers_busy > (PAQM_OVER_OWN - PAQM_OVER_STRANGERS) / 2;
}

/* A queue that is not served gets its place in the round robin. */
static inline void paqm_drr_join(struct paqm_round *r, struct paqm_flowq *fq,
				 struct list_head *where, u32 quantum)
{
	fq->deficit = quantum;
	fq->served = true;
	r->served++;
	list_add_tail(&fq->list, where);
}

/*
 * A packet of an elastic flow comes: does that take less than its share, and so do all such flows
 * together, of which some may not be counted?
 */
static inline bool paqm_bulk_ahead(struct paqm_sched_data *q, struct paqm_flowq *fq, u32 len,
				   u64 now)
{
	u32 clock = paqm_bucket_clock(now), depth = READ_ONCE(q->bulk_depth);

	return paqm_bucket_watch(&fq->due, clock, len, READ_ONCE(q->bulk_cost), depth,
				 depth + paqm_bucket_clock(PAQM_BULK_OWED_NS)) &&
	       paqm_bucket_take(&q->bulk_due, clock, len, READ_ONCE(q->bulk_cost_all),
				READ_ONCE(q->bulk_depth_all));
}

/* A queue of those that go ahead has sent a packet; a flow that took more waits its turn. */
static inline void paqm_bulk_sent(struct paqm_sched_data *q, struct paqm_round *r,
				  struct paqm_flowq *fq, u64 now)
{
	s32 ahead = fq->due - paqm_bucket_clock(now);

	if (!fq->head) {
		paqm_drr_release(q, r, fq);
	} else if (ahead <= (s32)READ_ONCE(q->bulk_depth)) {
		list_move_tail(&fq->list, &r->ahead);
	} else {
		fq->deficit = READ_ONCE(r->quantum);
		list_move_tail(&fq->list, &r->old);
	}
}

/* Put a packet into a flow queue; there is room. */
static inline void paqm_drr_append(struct Qdisc *sch, enum paqm_class class, struct paqm_flowq *fq,
				   struct sk_buff *skb, u64 now)
{
	struct paqm_sched_data *q = qdisc_priv(sch);
	struct paqm_queue *queue = &q->queue[class];
	struct paqm_round *r = &q->drr[class];
	u32 len = qdisc_pkt_len(skb);
	bool ahead = class == PAQM_ELASTIC && paqm_bulk_ahead(q, fq, len, now);

	if (list_empty(&fq->list))
		paqm_drr_join(r, fq, ahead ? &r->ahead : &r->fresh, READ_ONCE(r->quantum));
	else if (ahead && !fq->head)
		list_move_tail(&fq->list, &r->ahead);
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

/* Take the first packet of a flow queue, if there is one; our own length still holds it. */
static __always_inline struct sk_buff *paqm_drr_pop(struct Qdisc *sch, enum paqm_class class,
						    struct paqm_flowq *fq)
{
	struct paqm_sched_data *q = qdisc_priv(sch);
	struct paqm_queue *queue = &q->queue[class];
	struct paqm_round *r = &q->drr[class];
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
	if (class == PAQM_ELASTIC) {
		q->memory -= skb->truesize;
		WRITE_ONCE(queue->st.backlog, queue->st.backlog - len);
	} else if (unlikely(fq->part)) {
		paqm_part_sent(q, fq, skb);
	}
	return skb;
}

/*
 * Does a packet wait in the elastic class that goes before media whatever its lead? It is of a flow
 * that takes less than its share: buckets bound these.
 */
static inline bool paqm_elastic_first(const struct paqm_sched_data *q)
{
	return likely(q->isolate) && (!list_empty(&q->drr[PAQM_ELASTIC].ahead) ||
				      (q->queue[PAQM_ELASTIC].head && q->alone_ahead));
}

/* Is media next? Both classes hold packets. */
static inline bool paqm_media_next(const struct paqm_sched_data *q)
{
	return !paqm_elastic_first(q) && paqm_sched_media_next(&q->sched);
}

/* Does the elastic class hold packets, in its list or in queues of its flows? */
static inline bool paqm_elastic_waits(const struct paqm_sched_data *q)
{
	return q->drr[PAQM_ELASTIC].qlen || q->queue[PAQM_ELASTIC].head;
}

#define PAQM_BURST_MOST_NS (60 * NSEC_PER_MSEC) /* what lasts longer is no burst of pictures */

/*
 * The media queue is short again. Cameras whose pictures come at the same time make it long again
 * and again, and about as long each time; a quarter more than that is still no overload. It is
 * forgotten gradually: with the phases of cameras bursts change.
 */
static inline void paqm_end_overload(struct paqm_sched_data *q, u64 now)
{
	u64 lasted = q->long_since ? now - q->long_since : 0;

	if (lasted > PAQM_BURST_MOST_NS)
		lasted = 0;
	q->burst_ns = max(lasted + lasted / 4, q->burst_ns - q->burst_ns / 32);
	q->long_since = 0;
	if (!q->overloaded)
		return;
	WRITE_ONCE(q->overloaded, false);
	WRITE_ONCE(q->overload_ns, q->overload_ns + now - q->overload_since);
}

/* Segments that a packet becomes. */
static inline u32 paqm_segs(const struct sk_buff *skb)
{
	return skb_is_gso(skb) ? max_t(u32, skb_shinfo(skb)->gso_segs, 1) : 1;
}

/* Bytes that several segments take on the link, each for itself. */
static inline u32 paqm_framed_len(const struct paqm_sched_data *q, const struct sk_buff *skb,
				  u32 len)
{
	u32 segs = paqm_segs(skb);

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

/* ECN field of an IP packet, in the packet; Not-ECT where there is none. */
static inline u8 paqm_ecn(const struct sk_buff *skb)
{
	if (skb_headlen(skb) < skb_network_offset(skb) + (int)sizeof(struct iphdr))
		return INET_ECN_NOT_ECT;
	if (skb->protocol == htons(ETH_P_IP))
		return ip_hdr(skb)->tos & INET_ECN_MASK;
	if (skb->protocol == htons(ETH_P_IPV6))
		return ipv6_get_dsfield(ipv6_hdr(skb)) & INET_ECN_MASK;
	return unlikely(eth_type_vlan(skb->protocol)) ? paqm_ecn_tagged(skb) : INET_ECN_NOT_ECT;
}

/* The first packet after an idle time. */
static inline void paqm_begin_busy(struct paqm_sched_data *q, u64 now)
{
	WRITE_ONCE(q->idle_ns, q->idle_ns + now - q->idle_since);
	WRITE_ONCE(q->idle_since, now);
	q->meter.busy = 0; /* whatever emptied the queue, a departure or not */
	if (q->next_tx < now)
		q->next_tx = now;
}

#endif /* PAQM_QUEUE_H */
