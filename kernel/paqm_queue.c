// SPDX-License-Identifier: GPL-2.0
/* Lists of packets of sch_paqm: what is not done for each packet; dropping one before it joins. */
#include <linux/if_vlan.h>
#include <linux/rtnetlink.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <net/codel.h>
#include "paqm_classify.h"
#include "paqm_flows.h"
#include "paqm_queue.h"
#include "paqm_trace.h"

/* Drop a packet that has not joined its queue, and count it in @counter. */
int paqm_drop(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free,
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

/* A GSO packet that cannot be segmented: its headers are broken. */
int paqm_drop_uncut(struct sk_buff *skb, struct Qdisc *sch, int class, struct sk_buff **to_free)
{
	struct paqm_sched_data *q = qdisc_priv(sch);
	u64 hash = paqm_plain_flow(skb, &q->rules);

	if (class == PAQM_CLASSES)
		class = hash && paqm_flow_counted(paqm_flows_slot(paqm_flows_set(&q->flows, hash),
								  paqm_flow_tag(hash))) ?
				PAQM_MEDIA : PAQM_ELASTIC;
	return paqm_drop(skb, sch, to_free, class, &q->queue[class].n.drop_tail, PAQM_DROP_TAIL);
}

/* GSO packets from virtual machines give the size of their segments, not the number. */
void paqm_count_segs(struct sk_buff *skb)
{
	struct skb_shared_info *info = skb_shinfo(skb);
	u32 head = skb_transport_header_was_set(skb) ? skb_transport_offset(skb) : 0;

	head += info->gso_type & SKB_GSO_UDP_L4 ? sizeof(struct udphdr) : sizeof(struct tcphdr);
	info->gso_segs = min_t(u32, DIV_ROUND_UP(skb->len - min(head, skb->len), info->gso_size),
			       U16_MAX);
}

/* The same as paqm_ecn(), with tags in the packet that INET_ECN_set_ce() looks through, too. */
u8 paqm_ecn_tagged(const struct sk_buff *skb)
{
	switch (vlan_get_protocol(skb)) {
	case htons(ETH_P_IP):
		return ip_hdr(skb)->tos & INET_ECN_MASK;
	case htons(ETH_P_IPV6):
		return ipv6_get_dsfield(ipv6_hdr(skb)) & INET_ECN_MASK;
	}
	return INET_ECN_NOT_ECT;
}

/* RTNL: packets are freed when it is released. */
void paqm_free_list(struct paqm_sched_data *q, struct paqm_queue *queue)
{
	struct sk_buff *skb;

	for (skb = queue->head; skb; skb = skb->next)
		q->memory -= skb->truesize;
	rtnl_kfree_skbs(queue->head, queue->tail);
	queue->head = NULL;
	queue->tail = NULL;
	WRITE_ONCE(queue->taken, (u32)queue->st.sent_packets);
	WRITE_ONCE(queue->st.backlog, 0);
}

/* An overflow queue of a host has lost its last packet. */
void paqm_host_idle(struct paqm_sched_data *q, const struct paqm_flowq *over)
{
	struct paqm_host_over *o = &q->hosts->over[over->host - 1];

	o->busy--;
	q->siblings_busy -= o->busy > 0;
}

/* A packet has left an overflow queue that shares a turn. */
void paqm_part_sent(struct paqm_sched_data *q, const struct paqm_flowq *fq,
		    const struct sk_buff *skb)
{
	if (fq->strangers) {
		q->strangers_busy -= !fq->head;
		q->strangers_memory -= skb->truesize;
		q->strangers_backlog -= qdisc_pkt_len(skb);
	} else if (!fq->head) {
		paqm_host_idle(q, fq);
	}
}

/* Such a queue, which is empty, loses its place in the round robin. */
void paqm_part_released(struct paqm_sched_data *q, struct paqm_flowq *fq)
{
	q->parts_served--;
	if (fq->strangers) {
		q->strangers_served--;
		return;
	}
	q->hosts->over[fq->host - 1].served--;
	fq->host = 0;
	fq->part = false;
}

/* RTNL: throw away what waits in the flow queues of a class. */
void paqm_drr_purge(struct paqm_sched_data *q, enum paqm_class class)
{
	struct paqm_round *r = &q->drr[class];
	struct paqm_flowq *fq, *next;

	list_splice_tail_init(&r->ahead, &r->old);
	list_splice_tail_init(&r->fresh, &r->old);
	list_for_each_entry_safe(fq, next, &r->old, list) {
		rtnl_kfree_skbs(fq->head, fq->tail);
		if (fq->host && fq->head)
			paqm_host_idle(q, fq);
		fq->head = NULL;
		fq->out = fq->in;
		fq->backlog = 0;
		fq->codel = (struct codel_vars){}; /* codel_impl.h is the datapath's */
		paqm_drr_release(q, r, fq);
	}
	if (class == PAQM_ELASTIC)
		q->memory -= r->memory;
	r->busy = 0;
	if (class == PAQM_MEDIA) {
		q->strangers_busy = 0;
		q->strangers_memory = 0;
		q->strangers_backlog = 0;
		list_for_each_entry_safe(fq, next, &q->over_waiting, waits)
			list_del_init(&fq->waits);
		q->over_waits = 0;
		q->over_waits_whole = 0;
	}
	r->memory = 0;
	WRITE_ONCE(r->qlen, 0);
	WRITE_ONCE(r->backlog, 0);
}
