/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What differs between kernels 6.1 and 7.x, decided by feature probes of Kbuild
 * (PAQM_HAVE_*), never by version numbers: stable trees receive API changes too.
 * The rest of the module is written once.
 */
#ifndef PAQM_COMPAT_H
#define PAQM_COMPAT_H

#include <linux/ethtool.h>
#include <linux/hrtimer.h>
#include <linux/version.h>
#include <net/pkt_cls.h>
#include <net/pkt_sched.h>
#include <net/sch_generic.h>
#if __has_include("linux/unaligned.h")
#include <linux/unaligned.h>
#else
#include <asm/unaligned.h>
#endif
#if __has_include("net/gso.h")
#include <net/gso.h>
#endif

#ifndef MODULE_ALIAS_NET_SCH
#define MODULE_ALIAS_NET_SCH(id) MODULE_ALIAS("net-sch-" id)
#endif

static inline void paqm_hrtimer_setup(struct hrtimer *timer,
				      enum hrtimer_restart (*fn)(struct hrtimer *))
{
#ifdef PAQM_HAVE_HRTIMER_SETUP
	hrtimer_setup(timer, fn, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_SOFT);
#else
	hrtimer_init(timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_SOFT);
	timer->function = fn;
#endif
}

#ifndef PAQM_HAVE_QLEN_INC
static inline void qdisc_qlen_inc(struct Qdisc *q)
{
	q->q.qlen++;
}

static inline void qdisc_qlen_dec(struct Qdisc *q)
{
	q->q.qlen--;
}
#endif

/* Newer kernels hold the device's lock around all tc operations. */
static inline int paqm_link_ksettings(struct net_device *dev, struct ethtool_link_ksettings *link)
{
#ifdef PAQM_HAVE_NETIF_LINK
	return netif_get_link_ksettings(dev, link);
#else
	return __ethtool_get_link_ksettings(dev, link);
#endif
}

/* Segments of a GSO packet carry their own count where the kernel keeps one. */
static inline void paqm_set_segs(struct sk_buff *skb)
{
#ifdef PAQM_HAVE_PKT_SEGS
	qdisc_skb_cb(skb)->pkt_segs = 1;
#endif
}

/* Verdict of the filters; redirection of a packet by its filter is not possible here. */
static inline int paqm_tcf_classify(struct sk_buff *skb, const struct tcf_proto *fl,
				    struct tcf_result *res)
{
#ifdef PAQM_HAVE_CLASSIFY_QDISC
	return tcf_classify_qdisc(skb, fl, res, false);
#else
	int verdict = tcf_classify(skb, NULL, fl, res, false);

	return verdict == TC_ACT_REDIRECT ? TC_ACT_SHOT : verdict;
#endif
}

/* Why a packet is dropped, where the kernel wants to know. */
enum paqm_drop {
	PAQM_DROP_TAIL,
	PAQM_DROP_INNER,
	PAQM_DROP_STRIKE,
	PAQM_DROP_OVER, /* by the AQM of an overflow queue */
	PAQM_DROP_FULL, /* no room in one */
	PAQM_DROP_MARK, /* no drop: for the tracepoint only */
};

static inline int paqm_qdisc_drop(struct sk_buff *skb, struct Qdisc *sch,
				  struct sk_buff **to_free, enum paqm_drop why)
{
#ifdef PAQM_HAVE_DROP_REASON
	return qdisc_drop_reason(skb, sch, to_free,
				 why == PAQM_DROP_TAIL	 ? QDISC_DROP_OVERLIMIT :
				 why == PAQM_DROP_FULL	 ? QDISC_DROP_FLOW_LIMIT :
				 why == PAQM_DROP_STRIKE ? QDISC_DROP_FLOOD_PROTECTION :
							   QDISC_DROP_CONGESTED);
#else
	return qdisc_drop(skb, sch, to_free);
#endif
}

#endif /* PAQM_COMPAT_H */
