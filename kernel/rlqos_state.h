/* SPDX-License-Identifier: GPL-2.0 */
/* State of sch_rlqos. All of it is written under the qdisc's lock. */
#ifndef RLQOS_STATE_H
#define RLQOS_STATE_H

#include <net/pkt_sched.h>
#include "paqm_compat.h"
#include "core/paqm_hist.h"
#include "core/paqm_rlqos.h"
#include "rlqos_options.h"
#include "paqm_classify.h"

/* Counters of a class. */
struct rlqos_class {
	struct sk_buff_head queue;
	u32 backlog;
	u64 arrived;
	u64 arrived_bytes;
	u64 sent;
	u64 sent_bytes;
	u64 sojourn_ns;
	u64 entered;
	u64 drop_thin;
	u64 drop_limit;
	u64 drop_again;
	u64 hist[PAQM_HIST_SIZE];
};

/**
 * struct rlqos_sched_data - a queue
 * @cfg: options
 * @params: of the law, made of them
 * @law: its state
 * @rules: of the recogniser
 * @credit: of TC1, bytes Q16
 * @gone: packets dropped out of a queue by the present arrival, less those that a cut added
 * @gone_bytes: their length
 * @not_cut: GSO packets that could not be segmented
 * @class: what waits, and counters
 * @frames: those that have lost a packet
 */
struct rlqos_sched_data {
	struct rlqos_config cfg;
	struct paqm_rlqos_params params;
	struct paqm_rlqos law;
	struct paqm_rules rules;
	s64 credit;
	u32 gone;
	u32 gone_bytes;
	u64 not_cut;
	struct rlqos_class class[PAQM_RLQOS_CLASSES];
	struct paqm_rlqos_frames frames;
};

/**
 * struct rlqos_skb_cb - what is kept with a packet that waits
 * @frame: which one it belongs to, low and high half; 0: none
 * @enqueued: units of 1024 ns
 */
struct rlqos_skb_cb {
	u32 frame[2];
	u32 enqueued;
};

static inline struct rlqos_skb_cb *rlqos_skb_cb(const struct sk_buff *skb)
{
	qdisc_cb_private_validate(skb, sizeof(struct rlqos_skb_cb));
	return (struct rlqos_skb_cb *)qdisc_skb_cb(skb)->data;
}

static inline u64 rlqos_skb_frame(const struct sk_buff *skb)
{
	const struct rlqos_skb_cb *cb = rlqos_skb_cb(skb);

	return (u64)cb->frame[1] << 32 | cb->frame[0];
}

/* The law sees what waited until now; to be called before that changes. */
static inline void rlqos_advance(struct rlqos_sched_data *q, u64 now)
{
	paqm_rlqos_advance(&q->law, &q->params, now,
			   skb_queue_len(&q->class[PAQM_RLQOS_TC2].queue));
}

/* rlqos_datapath.c */
int rlqos_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free);
struct sk_buff *rlqos_dequeue(struct Qdisc *sch);
struct sk_buff *rlqos_take_out(struct Qdisc *sch, struct rlqos_class *c, struct sk_buff *skb);

#endif /* RLQOS_STATE_H */
