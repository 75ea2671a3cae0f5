/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Isolation of flows from each other: no flow pays for those that ignore advice.
 *
 * Every media flow has a token bucket that fills at its fair rate (core/paqm_bucket.h). What
 * conforms joins the common short queue of the class; what does not goes to an overflow
 * queue of that flow alone, and so does all that follows until that queue is empty, so
 * nothing is reordered. Overflow queues share by deficit round robin what the flows in
 * them are entitled to, each under CoDel (paqm_dequeue.c).
 *
 * Flows that are not known yet (new, not recognised, or without a slot in the table) are
 * strangers: they share one bucket and one overflow queue, so that many short flows get no more
 * than a long one. While most of them do not stay, there is such a queue for those of some source
 * addresses each, and these have the turn of one together; if most of these hold packets, the
 * addresses are made up, and they are as one queue again. They never have more than a part of the
 * memory of all overflow queues.
 *
 * Where hosts are equal (`weights host`), the flows of a host that has several share its rate: the
 * bucket of each fills at a part of it, the host has a bucket as well, and their overflow queues
 * have one turn together. A packet that conforms while these hold some is charged to one of them.
 *
 * The common queue is served first while its lead over its share is below the credit; overflow
 * queues may use half of the class's credit at most. So a flow that follows never waits for one
 * that does not.
 *
 * Elastic flows get no advice: each has a queue of its own, so a short request does not wait
 * behind a long transfer.
 *
 * All of it runs under the qdisc lock; rates and depths are published by the outer loop
 * (paqm_derive.c: paqm_publish_paces()).
 */
#ifndef PAQM_ISOLATE_H
#define PAQM_ISOLATE_H

#include "paqm_flows.h"
#include "paqm_queue.h"
#include "paqm_state.h"

/* The limit that a media packet is held to. */
enum paqm_lane {
	PAQM_LANE_FLOW,	    /* its flow's bucket, or that of strangers until the flow is known */
	PAQM_LANE_STRANGER, /* the bucket of strangers */
	PAQM_LANE_SMALL,    /* requests: within a budget of their own */
	PAQM_LANE_CONTROL,  /* the network's own packets: the same, and never dropped early */
};

/* Have all packets of a flow left the overflow queue that its last one went to? */
static inline bool paqm_over_left(const struct paqm_sched_data *q, const struct paqm_flow *flow)
{
	const struct paqm_flowq *over = &q->flowq[flow->over];

	return !paqm_fifo_waits(over->in, over->out, flow->over_seq);
}

/*
 * Are packets still in the common queue that were there at @behind? If not, @behind follows: it
 * comes again after 2^32 packets, and would look like a time to come after half of that, while an
 * overflow queue of a flow that heeds nothing may stand for days.
 */
static __always_inline bool paqm_common_first(const struct paqm_sched_data *q, u32 *behind)
{
	u32 out = paqm_common_out(q);

	if ((s32)(out - *behind) < 0)
		return true;
	*behind = out;
	return false;
}

/*
 * How many overflow queues may not be served yet, as packets are in the common queue that were
 * there before them? One that has been emptied meanwhile counts until these have left.
 */
static inline u32 paqm_over_waits(struct paqm_sched_data *q)
{
	struct paqm_flowq *over, *next;

	list_for_each_entry_safe(over, next, &q->over_waiting, waits) {
		if (paqm_common_first(q, &over->behind))
			break;
		list_del_init(&over->waits);
		q->over_waits--;
		q->over_waits_whole -= over->waits_whole;
	}
	return q->over_waits;
}

/* The host of a flow that shares its rate. */
static inline struct paqm_host *paqm_host_of(const struct paqm_sched_data *q,
					     const struct paqm_flow *flow)
{
	return &q->hosts->host[READ_ONCE(paqm_flow_more(&q->flows, flow)->host) % PAQM_HOSTS];
}

/* How fast the bucket of a known flow fills, by its @every. */
static __always_inline enum paqm_pace paqm_pace_of(u8 every)
{
	return every & PAQM_DEAF ? PAQM_PACE_DEAF : PAQM_PACE_FOLLOW;
}

/* Cost of a byte in a known flow's bucket. */
static __always_inline u32 paqm_pace_known(const struct paqm_sched_data *q,
					   const struct paqm_flow *flow)
{
	return READ_ONCE(q->pace[paqm_pace_of(flow->every)]);
}

/* Do most newcomers not stay: spoofed flows, and those of who changes its port? */
static inline bool paqm_newcomers_pass(const struct paqm_sched_data *q)
{
	return READ_ONCE(q->credit_q16) < PAQM_CREDIT_LEAST_Q16 || READ_ONCE(q->rotating);
}

/*
 * Queue of an elastic flow, by its hash, whose lowest bit is set in all (PAQM_HASH_SET): flows that
 * meet in one share it.
 */
static inline struct paqm_flowq *paqm_bulk_of(struct paqm_sched_data *q, u32 tag)
{
	return &q->flowq[PAQM_OVER_QUEUES + (tag >> 1) % PAQM_BULK_QUEUES];
}

/*
 * May a packet of @len bytes join the queue of an elastic flow? A queue may hold as much as the
 * class has left (Choudhury and Hahne 1998): one flow at most half, so that a new one finds room.
 */
static inline bool paqm_bulk_has_room(const struct paqm_sched_data *q, const struct paqm_flowq *fq,
				      u32 len)
{
	return (u64)fq->backlog + len + q->drr[PAQM_ELASTIC].backlog <= READ_ONCE(q->bulk_limit);
}

#endif /* PAQM_ISOLATE_H */
