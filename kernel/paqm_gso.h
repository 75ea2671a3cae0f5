/* SPDX-License-Identifier: GPL-2.0 */
/* GSO packets at a queue that wants single ones: what sch_paqm and sch_dcbt share. */
#ifndef PAQM_GSO_H
#define PAQM_GSO_H

#include <linux/netdevice.h>
#include "paqm_compat.h"

/**
 * struct paqm_cut - what became of the segments of a packet
 * @taken: how many were queued
 * @bytes: their length
 */
struct paqm_cut {
	unsigned int taken;
	unsigned int bytes;
};

typedef int (*paqm_take_fn)(struct sk_buff *skb, struct Qdisc *sch, int arg,
				struct sk_buff **to_free);

/* Segments of a GSO packet; NULL if its headers are broken. */
static inline struct sk_buff *paqm_gso_segments(struct sk_buff *skb)
{
	struct sk_buff *segs = skb_gso_segment(skb, netif_skb_features(skb) & ~NETIF_F_GSO_MASK);

	return IS_ERR(segs) ? NULL : segs;
}

/**
 * paqm_gso_enqueue() - enqueue segments one by one
 * @segs: list of them
 * @sch: qdisc
 * @take: enqueues one; its third argument is @arg
 * @arg: passed on
 * @to_free: dropped packets
 * @cut: result
 *
 * The caller tells the parent, which adds one packet as long as all were if this succeeds.
 *
 * Return: as enqueue does: success if one segment was queued.
 */
static __always_inline int paqm_gso_enqueue(struct sk_buff *segs, struct Qdisc *sch,
					    paqm_take_fn take, int arg,
					    struct sk_buff **to_free, struct paqm_cut *cut)
{
	struct sk_buff *next;
	int ret = NET_XMIT_DROP, got;
	unsigned int len;

	*cut = (struct paqm_cut){};
	skb_list_walk_safe(segs, segs, next) {
		skb_mark_not_on_list(segs);
		qdisc_skb_cb(segs)->pkt_len = segs->len;
		paqm_set_segs(segs);
		len = segs->len;
		got = take(segs, sch, arg, to_free);
		if (got == NET_XMIT_SUCCESS) {
			cut->bytes += len;
			cut->taken++;
			ret = NET_XMIT_SUCCESS;
		} else if (!cut->taken && !net_xmit_drop_count(got)) {
			ret = got; /* the filter of a child has it, unless others are queued */
		}
	}
	return ret;
}

#endif /* PAQM_GSO_H */
