/* SPDX-License-Identifier: GPL-2.0 */
/* The two classes, as the other parts of sch_paqm see them; paqm_class.c. */
#ifndef PAQM_CLASS_H
#define PAQM_CLASS_H

#include <net/pkt_cls.h>
#include "paqm_state.h"

extern const struct Qdisc_class_ops paqm_class_ops;

int paqm_filter(struct sk_buff *skb, struct Qdisc *sch, const struct tcf_proto *fl,
		struct sk_buff **to_free);
int paqm_enqueue_child(struct sk_buff *skb, struct Qdisc *sch, struct Qdisc *child, u64 now,
		       struct sk_buff **to_free);
void paqm_level(const struct paqm_sched_data *q, enum paqm_class class, u32 *qlen, u32 *backlog);
void paqm_class_stats(const struct paqm_sched_data *q, enum paqm_class class,
		      struct tc_paqm_class_stats *st, struct tc_paqm_class_counts *n);

/* Numbers of the classes are those of the queues plus 1: 0 is "no such class". */
static inline unsigned long paqm_class_number(u32 classid)
{
	u32 minor = TC_H_MIN(classid);

	return minor <= PAQM_CLASSES ? minor : 0;
}

/**
 * paqm_choose() - class of a packet by its priority or by filters
 * @skb: packet
 * @sch: this qdisc
 * @to_free: list of packets to free
 *
 * Return: the class, PAQM_CLASSES if none was chosen and the recogniser decides, or, if
 * a filter took or dropped the packet, the complement of what enqueue returns then.
 */
static __always_inline int paqm_choose(struct sk_buff *skb, struct Qdisc *sch,
				       struct sk_buff **to_free)
{
	struct paqm_sched_data *q = qdisc_priv(sch);
	const struct tcf_proto *fl;
	unsigned long cl;

	/* a default qdisc has no handle, and small priorities mean something else */
	if (unlikely((skb->priority ^ sch->handle) <= TC_H_MIN_MASK) && sch->handle) {
		cl = paqm_class_number(skb->priority);
		if (cl)
			return cl - 1;
	}
	fl = rcu_dereference_bh(q->filter_list);
	return unlikely(fl) ? paqm_filter(skb, sch, fl, to_free) : PAQM_CLASSES;
}

#endif /* PAQM_CLASS_H */
