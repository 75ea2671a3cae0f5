/* SPDX-License-Identifier: GPL-2.0 */
/* State of sch_dcbt. All of it is written under the qdisc's lock; statistics are read without. */
#ifndef DCBT_STATE_H
#define DCBT_STATE_H

#include <net/pkt_sched.h>
#include "paqm_compat.h"
#include "core/paqm_active.h"
#include "core/paqm_chips.h"
#include "core/paqm_hist.h"
#include "dcbt_options.h"
#include "dcbt_ring.h"
#include "paqm_classify.h"

/* Why a packet is dropped. */
enum dcbt_why {
	DCBT_EARLY,
	DCBT_FORCED,
	DCBT_FULL,
	DCBT_THRESHOLD,
	DCBT_FLOW,
	DCBT_WHYS,
};

/* Counters of a class, and what it has in the queue. */
struct dcbt_class {
	u64 arrived;
	u64 arrived_bytes;
	u64 sent;
	u64 sent_bytes;
	u64 sojourn_ns;
	u64 drop[DCBT_WHYS];
	u64 marks;
	u64 cut_in;
	u64 hist[PAQM_HIST_SIZE];
	u32 backlog;
};

/**
 * struct dcbt_sched_data - a queue
 * @cfg: options
 * @params: of RED, made of them
 * @red: its state
 * @avg: averages of the classes, packets Q24; those of UDP in the modes cbt, of all in dcbt
 * @qlen: packets of each class that wait
 * @ring: all that wait
 * @labels: virtual queue; in use while there is ChIPS
 * @active: flows, for dcbt and ChIPS those seen lately, for fred those with packets in @ring
 * @rules: of the recogniser: the key of its hash
 * @idle_since: when @ring ran empty, ns; 0: it did not
 * @left: when the last packet left, ns; 0: there was none to wait for
 * @packet_ns: mean time between packets that leave one behind the other
 * @gone: packets dropped out of @ring by the present arrival
 * @gone_bytes: their length
 * @not_cut: GSO packets that could not be segmented
 * @class: counters
 */
struct dcbt_sched_data {
	struct dcbt_config cfg;
	struct paqm_red_params params;
	struct paqm_red_vars red;
	u64 avg[PAQM_CBT_CLASSES];
	u32 qlen[PAQM_CBT_CLASSES];
	struct dcbt_ring ring;
	struct paqm_labels labels;
	struct paqm_active active;
	struct paqm_rules rules;
	u64 idle_since;
	u64 left;
	u64 packet_ns;
	u32 gone;
	u32 gone_bytes;
	u64 not_cut;
	struct dcbt_class class[PAQM_CBT_CLASSES];
};

/* Whom the averages take for waiting. */
static inline const u32 *dcbt_held(const struct dcbt_sched_data *q)
{
	return q->cfg.chips ? q->labels.held : q->qlen;
}

/* Are the flows seen lately counted? */
static inline bool dcbt_counts(const struct dcbt_config *cfg)
{
	return cfg->mode == DCBT_MODE_DCBT || (cfg->chips && cfg->mode != DCBT_MODE_FRED);
}

/* The threshold of a class now, packets Q24. */
static inline u64 dcbt_threshold(const struct dcbt_sched_data *q, enum paqm_cbt_class class)
{
	switch (READ_ONCE(q->cfg.mode)) {
	case DCBT_MODE_CBT:
	case DCBT_MODE_CBT_TCP:
		if (class == PAQM_CBT_TCP)
			return PAQM_CBT_NONE;
		return dcbt_packets(class == PAQM_CBT_TAGGED ? READ_ONCE(q->cfg.tagged_th) :
							       READ_ONCE(q->cfg.untagged_th));
	case DCBT_MODE_DCBT:
		return paqm_dcbt_threshold(&q->params, READ_ONCE(q->cfg.beta),
					   READ_ONCE(q->cfg.cap), class, READ_ONCE(q->red.avg),
					   q->active.count);
	}
	return PAQM_CBT_NONE;
}

/* dcbt_datapath.c */
int dcbt_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free);
struct sk_buff *dcbt_dequeue(struct Qdisc *sch);
struct sk_buff *dcbt_take_out(struct Qdisc *sch, u32 i);
void dcbt_recount(struct dcbt_sched_data *q, bool flows, u64 now);

#endif /* DCBT_STATE_H */
