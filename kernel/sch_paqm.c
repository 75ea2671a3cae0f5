// SPDX-License-Identifier: GPL-2.0
/*
 * sch_paqm - P-AQM: an AQM that tells media senders their fair rate
 *
 * Two queues share a link: media (U) and elastic (T). They are served byte-true
 * in proportion to the number of active flows, media with a bounded credit to
 * run ahead. Every dT an inner loop per queue turns arrival rate and backlog
 * into a drop probability, the safety net. Every period d, and at once when
 * flows, split, capacity or queue change, an outer loop computes the fair rate
 * of media flows; each flow's next packet then triggers one message to its
 * sender. In steady state the senders keep the queue short and nothing is lost.
 *
 * Laws: A. Lie, NTNU 2008:74 (Papers D, F, App. C), in core/paqm_law.h; default
 * outer law: water-filling over measured rates, core/paqm_maxmin.h.
 *
 * Who runs where:
 *  enqueue/dequeue	under the qdisc lock: recognise, count, compare with a
 *			random number, copy the head of a packet for a notice
 *  inner hrtimer	softirq, no lock: reads counters, publishes probabilities
 *  outer work		process context, ctl_lock: walks the flow table, publishes
 *			advice and weights
 *  change		RTNL and ctl_lock; what the datapath reads is published by
 *			WRITE_ONCE or under sch_tree_lock
 */
#include <linux/ethtool.h>
#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/random.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include <net/inet_ecn.h>
#include <net/pkt_sched.h>
#include "paqm_compat.h"
#include "uapi/linux/pkt_sched_paqm.h"
#include "core/paqm_hist.h"
#include "core/paqm_law.h"
#include "core/paqm_maxmin.h"
#include "core/paqm_msg.h"
#include "core/paqm_sched.h"
#include "paqm_class.h"
#include "paqm_classify.h"
#include "paqm_feedback.h"
#include "paqm_flows.h"
#include "paqm_options.h"
#include "paqm_state.h"

#define PAQM_EVENT_GAP_NS (50 * NSEC_PER_MSEC) /* at most one event round in this time */
#define PAQM_IDLE_NS (2 * NSEC_PER_SEC)	       /* nothing seen for so long: stop the timers */
#define PAQM_SHARE_FLOOR_Q16 (PAQM_Q16_ONE / 20) /* neither class is ever starved */
#define PAQM_SPLIT_EVENT_Q16 (PAQM_Q16_ONE / 20) /* a change of the split by 5 % is an event */
#define PAQM_ELASTIC_FLOOR_Q24 PAQM_Q24(2, 100) /* of c: less traffic is no flow of its own */
#define PAQM_MOUSE_Q24 PAQM_Q24(10, 100) /* of the mean elastic flow: less is a mouse */
#define PAQM_MOUSE_SHARE_DIV 100	/* or less than a hundredth of a fair share */
#define PAQM_RATE_MIN 10000ULL			/* bit/s, floor of an advised rate */
#define PAQM_FB_SHARE_DIV 200			/* messages take at most 0.5 % of c */
#define PAQM_NOTICE_PAUSE_US (10 * USEC_PER_SEC) /* to a flow that does not follow */

/* Bytes that the link moves in @us; at least @least. */
static u32 paqm_bytes_us(u64 bps, u64 us, u32 least)
{
	u64 bytes = paqm_bytes_in(bps, us * NSEC_PER_USEC);

	return clamp_t(u64, bytes, least, 1U << 30);
}

/* Ask for a round at once; the work item keeps the gap between event rounds. */
static void paqm_raise(struct paqm_sched_data *q, enum paqm_event ev)
{
	if (!test_and_set_bit(ev, &q->events))
		mod_delayed_work(system_highpri_wq, &q->outer_work, 0);
}

/* First packet after idleness: start the loops with u* = 1. */
static void paqm_wake(struct paqm_sched_data *q, u64 now)
{
	q->awake = true;
	q->queue[PAQM_MEDIA].inner = (struct paqm_inner_vars){};
	q->queue[PAQM_ELASTIC].inner = (struct paqm_inner_vars){};
	q->inner_stamp = now;
	hrtimer_start(&q->inner_timer, ns_to_ktime(q->interval_ns), HRTIMER_MODE_REL_PINNED_SOFT);
	mod_delayed_work(system_highpri_wq, &q->outer_work, 0);
}

/* ------------------------------------------------------------------ datapath */

/*
 * Take the head of a packet for a notice if its flow has not been told about the
 * present round. One comparison for every other packet.
 */
static void paqm_notice(struct paqm_sched_data *q, struct paqm_flow *flow,
			const struct paqm_packet *p, const struct sk_buff *skb)
{
	struct paqm_msg msg;

	if (q->round - flow->round < READ_ONCE(flow->every) || !p->quotable)
		return;
	flow->round = q->round;
	msg = q->advice;
	if (q->overloaded)
		msg.flags |= PAQM_F_OVERLOAD;
	if (READ_ONCE(flow->drop))
		msg.flags |= PAQM_F_POLICED;
	paqm_inc(&q->notices_owed);
	paqm_fb_queue(q->fb, skb, &msg);
}

static int paqm_drop(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free,
		     u32 *counter, enum paqm_drop why)
{
	paqm_inc(counter);
	if (why == PAQM_DROP_TAIL)
		qdisc_qstats_overlimit(sch);
	return paqm_qdisc_drop(skb, sch, to_free, why);
}

/* The first packet after an idle time. */
static void paqm_begin_busy(struct paqm_sched_data *q, u64 now)
{
	q->idle_ns += now - q->idle_since;
	WRITE_ONCE(q->idle_since, now);
	if (q->next_tx < now)
		q->next_tx = now;
}

/* Hand an elastic packet to the qdisc of that class. */
static int paqm_enqueue_child(struct sk_buff *skb, struct Qdisc *sch, struct Qdisc *child, u64 now,
			      struct sk_buff **to_free)
{
	struct paqm_sched_data *q = qdisc_priv(sch);
	u32 len = qdisc_pkt_len(skb);
	bool idle = !sch->q.qlen;
	/* not qdisc_enqueue(): a child's size table must not change what we account */
	int ret = child->enqueue(skb, child, to_free);

	if (ret != NET_XMIT_SUCCESS) {
		if (net_xmit_drop_count(ret))
			qdisc_qstats_drop(sch);
		return ret;
	}
	if (idle)
		paqm_begin_busy(q, now);
	qdisc_qlen_inc(sch);
	WRITE_ONCE(sch->qstats.backlog, sch->qstats.backlog + len);
	return ret;
}

/* @class: chosen by priority or filter, PAQM_CLASSES: by the recogniser */
static int paqm_enqueue_one(struct sk_buff *skb, struct Qdisc *sch, int class,
			    struct sk_buff **to_free)
{
	struct paqm_sched_data *q = qdisc_priv(sch);
	u32 len = qdisc_pkt_len(skb), before = U32_MAX, prob;
	struct paqm_flow *flow = NULL;
	struct paqm_queue *queue;
	struct paqm_packet p;
	u64 now = ktime_get_ns();
	bool fresh = false, full;
	struct Qdisc *child;

	paqm_classify(skb, q->cfg.classify, &q->hash_key, &p);
	if (class < PAQM_CLASSES)
		p.class = class;
	if (!p.ip)
		paqm_inc(&q->not_ip);
	queue = &q->queue[p.class];
	if (unlikely(!q->awake))
		paqm_wake(q, now);

	if (p.hash)
		flow = paqm_flows_touch(&q->flows, p.hash, p.class, (u32)(now >> 20), &fresh);
	if (flow) {
		before = flow->bytes;
		WRITE_ONCE(flow->bytes, before + len);
	}
	WRITE_ONCE(queue->st.arrived_bytes, queue->st.arrived_bytes + len);
	WRITE_ONCE(queue->load, queue->load + len);
	if (p.class == PAQM_MEDIA) {
		if (fresh) {
			/* the present advice does not know this flow: it waits for the next */
			flow->round = q->round;
			paqm_raise(q, PAQM_EV_FLOW);
		}
		if (flow && q->fb)
			paqm_notice(q, flow, &p, skb);
		if (queue->st.backlog + len > q->overload_bytes) {
			if (!q->overloaded) {
				q->overloaded = true;
				paqm_inc(&q->overload);
				paqm_raise(q, PAQM_EV_QUEUE);
			}
		} else if (q->overloaded && queue->st.backlog < q->overload_bytes / 2) {
			q->overloaded = false;
		}
	} else if (unlikely(!q->elastic_awake ||
			    (before < PAQM_MOUSE_BYTES && before + len >= PAQM_MOUSE_BYTES))) {
		q->elastic_awake = true;
		paqm_raise(q, PAQM_EV_SPLIT);
	}

	full = sch->qstats.backlog + len > q->limit;
	child = p.class == PAQM_ELASTIC ? rcu_dereference_bh(q->child) : NULL;
	if (child) {
		if (unlikely(full && child->q.qlen))
			return paqm_drop(skb, sch, to_free, &queue->st.drop_tail, PAQM_DROP_TAIL);
		return paqm_enqueue_child(skb, sch, child, now, to_free);
	}
	if (unlikely(queue->st.backlog + len > queue->limit || full) && queue->st.qlen)
		return paqm_drop(skb, sch, to_free, &queue->st.drop_tail, PAQM_DROP_TAIL);
	if (flow && unlikely(READ_ONCE(flow->drop)) && get_random_u32() < READ_ONCE(flow->drop)) {
		/* policed bytes are not load: adaptive flows must not pay for them */
		WRITE_ONCE(queue->load, queue->load - len);
		return paqm_drop(skb, sch, to_free, &queue->st.drop_strike, PAQM_DROP_STRIKE);
	}
	prob = READ_ONCE(queue->inner.prob);
	if (unlikely(prob) && get_random_u32() < prob) {
		/* RFC 9332: under overload a mark is not enough */
		if (q->cfg.ecn && prob < 1U << 31 && INET_ECN_set_ce(skb))
			paqm_inc(&queue->st.ecn_mark);
		else
			return paqm_drop(skb, sch, to_free, &queue->st.drop_inner, PAQM_DROP_INNER);
	}

	if (!sch->q.qlen)
		paqm_begin_busy(q, now);
	paqm_skb_cb(skb)->enqueued = now;
	paqm_append(queue, skb);
	qdisc_qlen_inc(sch);
	qdisc_qstats_backlog_inc(sch, skb);
	return NET_XMIT_SUCCESS;
}

/*
 * A GSO packet that would hold the link for longer than the media target is cut
 * into its packets: a 64 kB burst is 65 ms at 8 Mbit/s.
 */
static int paqm_enqueue_gso(struct sk_buff *skb, struct Qdisc *sch, int class,
			    struct sk_buff **to_free)
{
	unsigned int total = qdisc_pkt_len(skb), taken = 0, bytes = 0, len;
	struct sk_buff *segs, *next;
	int ret = NET_XMIT_DROP;

	segs = skb_gso_segment(skb, netif_skb_features(skb) & ~NETIF_F_GSO_MASK);
	if (IS_ERR_OR_NULL(segs))
		return paqm_qdisc_drop(skb, sch, to_free, PAQM_DROP_TAIL);
	skb_list_walk_safe(segs, segs, next) {
		skb_mark_not_on_list(segs);
		qdisc_skb_cb(segs)->pkt_len = segs->len;
		paqm_set_segs(segs);
		len = segs->len;
		if (paqm_enqueue_one(segs, sch, class, to_free) == NET_XMIT_SUCCESS) {
			bytes += len;
			taken++;
			ret = NET_XMIT_SUCCESS;
		}
	}
	/* The parent adds one packet of @total bytes if we succeed. */
	if (taken)
		qdisc_tree_reduce_backlog(sch, 1 - taken, total - bytes);
	consume_skb(skb);
	return ret;
}

static int paqm_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct paqm_sched_data *q = qdisc_priv(sch);
	int ret, class = paqm_choose(skb, sch, to_free, &ret);

	if (class < 0)
		return ret;
	if (skb_is_gso(skb) && qdisc_pkt_len(skb) > q->gso_split)
		return paqm_enqueue_gso(skb, sch, class, to_free);
	return paqm_enqueue_one(skb, sch, class, to_free);
}

/* Count a packet of our own lists out, with its time in the queue. */
static void paqm_count_sojourn(struct paqm_queue *queue, const struct sk_buff *skb, u64 now)
{
	u64 sojourn = now - paqm_skb_cb(skb)->enqueued;

	WRITE_ONCE(queue->st.sojourn_ns, queue->st.sojourn_ns + sojourn);
	paqm_inc(&queue->st.hist[paqm_hist_bin(sojourn)]);
	if (sojourn > queue->sojourn_max)
		WRITE_ONCE(queue->sojourn_max, sojourn);
}

static struct sk_buff *paqm_dequeue(struct Qdisc *sch)
{
	struct paqm_sched_data *q = qdisc_priv(sch);
	struct paqm_queue *media = &q->queue[PAQM_MEDIA], *elastic = &q->queue[PAQM_ELASTIC];
	struct Qdisc *child = rcu_dereference_bh(q->child);
	struct sk_buff *skb = NULL;
	bool ready; /* elastic has a packet that may go now */
	int class;
	u64 now;
	u32 len;

	if (!sch->q.qlen)
		return NULL;
	now = ktime_get_ns();
	if (q->shaper.rate_bytes_ps && now < q->next_tx) {
		qdisc_qstats_overlimit(sch);
		qdisc_watchdog_schedule_ns(&q->watchdog, q->next_tx);
		return NULL;
	}

	q->sched.share_q16 = READ_ONCE(q->share_now);
	/* A child drops here if it wants to, while all its packets are still in our length. */
	ready = child ? !!child->ops->peek(child) : !!elastic->head;
	class = ready && !(media->head && paqm_sched_media_next(&q->sched)) ? PAQM_ELASTIC :
									      PAQM_MEDIA;
	if (class == PAQM_ELASTIC) {
		skb = child ? qdisc_dequeue_peeked(child) : paqm_pop(elastic);
		if (skb && !child)
			paqm_count_sojourn(elastic, skb, now);
	}
	if (!skb && media->head) {
		class = PAQM_MEDIA;
		skb = paqm_pop(media);
		paqm_count_sojourn(media, skb, now);
	}
	if (unlikely(!skb)) { /* the child dropped all, or holds it back */
		q->stalled = true;
		return NULL;
	}

	len = qdisc_pkt_len(skb);
	paqm_sched_sent(&q->sched, class == PAQM_MEDIA, len, !!media->head, ready);
	if (q->shaper.rate_bytes_ps) {
		if (unlikely(q->stalled) && q->next_tx < now)
			q->next_tx = now;
		q->next_tx += psched_l2t_ns(&q->shaper, len);
	}
	q->stalled = false;
	WRITE_ONCE(q->queue[class].st.sent_bytes, q->queue[class].st.sent_bytes + len);
	WRITE_ONCE(q->queue[class].st.sent_packets, q->queue[class].st.sent_packets + 1);

	qdisc_qlen_dec(sch);
	qdisc_qstats_backlog_dec(sch, skb);
	qdisc_bstats_update(sch, skb);
	if (!sch->q.qlen)
		WRITE_ONCE(q->idle_since, now);
	return skb;
}

/* ---------------------------------------------------------------- inner loop */

/*
 * Capacity of a class: its share, or what the other class leaves of the link.
 * Without the second a class that may use idle capacity would be dropped for it.
 */
static u64 paqm_class_cap(u64 share, u64 link, u64 other_rate)
{
	return max(share, link > other_rate ? link - other_rate : 0);
}

/* One inner period of both classes; @elapsed ns have passed. */
static void paqm_inner_period(struct paqm_sched_data *q, u64 elapsed)
{
	u64 link = paqm_bytes_in(READ_ONCE(q->capacity), elapsed) << 24;
	u32 share = READ_ONCE(q->share_now);
	u64 media_cap = paqm_muldiv(link, share, PAQM_Q16_ONE);
	struct paqm_queue *u = &q->queue[PAQM_MEDIA], *t = &q->queue[PAQM_ELASTIC];
	struct paqm_inner_params p = { .gain_q24 = READ_ONCE(q->cfg.gain),
				       .gamma_q24 = READ_ONCE(q->gamma) };
	u64 arrived_u = READ_ONCE(u->load), arrived_t = READ_ONCE(t->load);
	u64 rate_u = u->inner.rate_q24, rate_t = t->inner.rate_q24;
	struct paqm_inner_vars v;

	p.cap_q24 = paqm_class_cap(media_cap, link, rate_t);
	p.target = READ_ONCE(u->target);
	v = u->inner;
	paqm_inner_step(&v, &p, arrived_u - u->seen, READ_ONCE(u->st.backlog));
	u->seen = arrived_u;
	u->inner.rate_q24 = v.rate_q24;
	WRITE_ONCE(u->inner.prob, v.prob);

	/* a child of the elastic class is an AQM of its own: only its rate is of interest */
	p.cap_q24 = paqm_class_cap(link - media_cap, link, rate_u);
	p.target = READ_ONCE(t->target);
	v = t->inner;
	paqm_inner_step(&v, &p, arrived_t - t->seen, READ_ONCE(t->st.backlog));
	t->seen = arrived_t;
	t->inner.rate_q24 = v.rate_q24;
	WRITE_ONCE(t->inner.prob, rcu_access_pointer(q->child) ? 0 : v.prob);

	WRITE_ONCE(u->st.rate, paqm_rate_bps(u->inner.rate_q24 >> 24, elapsed));
	WRITE_ONCE(t->st.rate, paqm_rate_bps(t->inner.rate_q24 >> 24, elapsed));
	WRITE_ONCE(u->st.prob, u->inner.prob);
	WRITE_ONCE(t->st.prob, t->inner.prob);
}

/* Nothing queued and nothing arrived for long? Then stop, under the lock. */
static bool paqm_try_sleep(struct paqm_sched_data *q, u64 now)
{
	spinlock_t *lock; /* of the root qdisc */
	bool asleep = false;

	if (READ_ONCE(q->sch->q.qlen) || now - READ_ONCE(q->idle_since) < PAQM_IDLE_NS)
		return false;
	rcu_read_lock();
	lock = qdisc_lock(qdisc_root_sleeping(q->sch));
	spin_lock(lock);
	if (!q->sch->q.qlen && now - q->idle_since >= PAQM_IDLE_NS) {
		q->awake = false;
		q->elastic_awake = false;
		asleep = true;
	}
	spin_unlock(lock);
	rcu_read_unlock();
	return asleep;
}

static enum hrtimer_restart paqm_inner_timer(struct hrtimer *timer)
{
	struct paqm_sched_data *q = container_of(timer, struct paqm_sched_data, inner_timer);
	u64 now = ktime_get_ns();
	u64 elapsed = now - q->inner_stamp;
	u32 interval = READ_ONCE(q->interval_ns);
	u64 due = READ_ONCE(q->share_due);

	q->inner_stamp = now;
	if (elapsed > 2ULL * interval)
		paqm_inc(&q->slips);
	paqm_inner_period(q, max_t(u64, elapsed, NSEC_PER_USEC));
	if (due && now >= due) {
		WRITE_ONCE(q->share_now, READ_ONCE(q->share_next));
		WRITE_ONCE(q->share_due, 0);
	}
	if (paqm_try_sleep(q, now))
		return HRTIMER_NORESTART;
	hrtimer_forward_now(timer, ns_to_ktime(interval));
	return HRTIMER_RESTART;
}

/* ---------------------------------------------------------------- outer loop */

/* Media share of the scheduler for the counted flows; no class is starved. */
static u32 paqm_share(u32 n_media, u32 n_elastic)
{
	return clamp_t(u32, paqm_share_q16(n_media, n_elastic), PAQM_SHARE_FLOOR_Q16,
		       PAQM_Q16_ONE - PAQM_SHARE_FLOOR_Q16);
}

/* c_u: without elastic flows all of the link is media's. */
static u64 paqm_media_capacity(const struct paqm_sched_data *q)
{
	if (!q->n_elastic)
		return q->capacity;
	return paqm_muldiv(q->capacity, paqm_share_q16(q->n_media, q->n_elastic), PAQM_Q16_ONE);
}

/* Weights follow the census: at once in favour of media, announced against it. */
static void paqm_transfer(struct paqm_sched_data *q, u64 now)
{
	u32 share = paqm_share(q->n_media, q->n_elastic);
	u32 in_force = READ_ONCE(q->share_now);
	u64 delay = (u64)q->cfg.transfer * NSEC_PER_USEC;

	if (share >= in_force || !delay || in_force - share < PAQM_SPLIT_EVENT_Q16 / 5) {
		WRITE_ONCE(q->share_due, 0);
		WRITE_ONCE(q->share_next, share);
		WRITE_ONCE(q->share_now, share);
		return;
	}
	if (!READ_ONCE(q->share_due)) {
		q->share_first = now;
		paqm_inc(&q->transfers);
		WRITE_ONCE(q->share_next, share);
		WRITE_ONCE(q->share_due, now + delay);
	} else if (READ_ONCE(q->share_next) != share) {
		/* a further step: its news takes time too, but not for ever */
		WRITE_ONCE(q->share_next, share);
		WRITE_ONCE(q->share_due, min(now + delay, q->share_first + 2 * delay));
	}
}

/*
 * Target utilisation of the media share, Q24. Beside elastic traffic half of the
 * headroom is enough: a media burst is served at the rate of the link, not of
 * the share, and the link stays full anyway.
 */
static u32 paqm_target_util(const struct paqm_sched_data *q)
{
	u32 rho = q->cfg.target_util;

	return q->n_elastic ? rho + (PAQM_Q24_ONE - rho) / 2 : rho;
}

/* Byte thresholds that depend on capacity and split. */
static void paqm_derive_queues(struct paqm_sched_data *q)
{
	u32 mtu = psched_mtu(qdisc_dev(q->sch));
	u64 cu = paqm_media_capacity(q);
	u64 ct = max(q->capacity - min(cu, q->capacity),
		     paqm_muldiv(q->capacity, PAQM_SHARE_FLOOR_Q16, PAQM_Q16_ONE));
	struct paqm_queue *u = &q->queue[PAQM_MEDIA], *t = &q->queue[PAQM_ELASTIC];
	u32 n_out;

	mtu = clamp_t(u32, mtu, 64, 65535);
	cu = max(cu, paqm_muldiv(q->capacity, PAQM_SHARE_FLOOR_Q16, PAQM_Q16_ONE));
	n_out = paqm_bytes_us(cu, q->cfg.media_target, 2 * mtu);
	WRITE_ONCE(q->overload_bytes, 2 * n_out);
	/* inner N* ten times the outer target, at most 100 ms: eta = 0.1 */
	WRITE_ONCE(u->target, max(min(10 * n_out, paqm_bytes_us(cu, 100000, 0)), 4 * mtu));
	WRITE_ONCE(u->limit, 2 * u->target);
	WRITE_ONCE(t->target, paqm_bytes_us(ct, q->cfg.elastic_target, 10 * mtu));
	WRITE_ONCE(t->limit, max(4 * t->target, paqm_bytes_us(q->capacity, 200000, 20 * mtu)));
	WRITE_ONCE(q->limit, q->cfg.limit ? q->cfg.limit : U32_MAX);
	WRITE_ONCE(q->sched.credit, paqm_bytes_us(cu, q->cfg.credit, 2 * mtu));
	WRITE_ONCE(q->gso_split, max(paqm_bytes_us(q->capacity, q->cfg.media_target, 0), mtu));
	WRITE_ONCE(u->st.share, cu);
	WRITE_ONCE(t->st.share, q->capacity - min(cu, q->capacity));
}

/* Rate on the IP layer: messages and senders do not count the link header. */
static u64 paqm_ip_rate(const struct paqm_sched_data *q, u64 bps)
{
	u32 link = qdisc_dev(q->sch)->hard_header_len;
	u32 len = max(q->mean_len, 2 * link + 64);

	return paqm_muldiv(bps, len - link, len);
}

/* The ECF value of a message: an increase is a rate, too. */
static u32 paqm_ecf_value(const struct paqm_sched_data *q)
{
	u64 bps_q20;

	if (q->ecf_out.kind != PAQM_ECF_AI || paqm_f32_decode(q->ecf_out.value, 20, &bps_q20))
		return q->ecf_out.value;
	bps_q20 = paqm_ip_rate(q, bps_q20);
	return bps_q20 > 1 << 20 ? paqm_f32_encode(bps_q20, 20) : PAQM_F32_ONE;
}

/* Publish the advice of a round; notices copy it under the qdisc lock. */
static void paqm_publish(struct paqm_sched_data *q)
{
	struct Qdisc *root;
	struct paqm_msg msg = {
		.router_id = q->cfg.router_id,
		.boot = q->boot,
		.seq = q->rounds,
		.ecf = paqm_ecf_value(q),
		.erf = paqm_f32_encode(max(paqm_ip_rate(q, q->fair), PAQM_RATE_MIN), 0),
		.period_ms = min_t(u32, q->cfg.period / USEC_PER_MSEC, U16_MAX),
		.flows = min_t(u32, q->n_media, U16_MAX),
		.flags = q->cfg.law == PAQM_LAW_MAXMIN ? PAQM_F_FINAL : 0,
	};
	u64 backlog = READ_ONCE(q->queue[PAQM_MEDIA].st.backlog);
	u64 cu = max(paqm_media_capacity(q), 1000ULL);

	msg.qdelay_100us = min_t(u64, paqm_muldiv(backlog, 80000, cu), U16_MAX);
	msg.util = min_t(u64, paqm_muldiv(q->outer_rate + q->elastic_rate, U16_MAX, q->capacity),
			 U16_MAX);

	rcu_read_lock();
	root = qdisc_root_sleeping(q->sch);
	spin_lock_bh(qdisc_lock(root));
	q->advice = msg;
	q->round = q->rounds;
	spin_unlock_bh(qdisc_lock(root));
	rcu_read_unlock();
}

/* Measure what happened since the marks. */
static void paqm_measure(struct paqm_sched_data *q, u64 now, struct paqm_walk *w)
{
	struct tc_paqm_class_stats *u = &q->queue[PAQM_MEDIA].st;
	u64 bytes = READ_ONCE(q->queue[PAQM_MEDIA].load) - q->mark_bytes[PAQM_MEDIA];
	u64 elastic = READ_ONCE(q->queue[PAQM_ELASTIC].load) - q->mark_bytes[PAQM_ELASTIC];
	u64 window = now - q->mark_stamp;
	u64 packets = READ_ONCE(u->sent_packets) - q->mark_packets;
	u64 sent = READ_ONCE(u->sent_bytes) - q->mark_sent;

	w->window_ns = q->mark_stamp ? window : 0;
	if (w->window_ns < PAQM_WINDOW_MIN_NS)
		return; /* too short to mean anything: the last figures stand */
	q->outer_rate = paqm_rate_bps(bytes, window);
	q->elastic_rate = paqm_rate_bps(elastic, window);
	if (packets)
		q->mean_len = (q->mean_len * 3 + min_t(u64, paqm_div64(sent, packets), 65535)) / 4;
}

static void paqm_set_marks(struct paqm_sched_data *q, u64 now)
{
	paqm_flows_mark(&q->flows);
	q->mark_bytes[PAQM_MEDIA] = READ_ONCE(q->queue[PAQM_MEDIA].load);
	q->mark_bytes[PAQM_ELASTIC] = READ_ONCE(q->queue[PAQM_ELASTIC].load);
	q->mark_sent = READ_ONCE(q->queue[PAQM_MEDIA].st.sent_bytes);
	q->mark_packets = READ_ONCE(q->queue[PAQM_MEDIA].st.sent_packets);
	q->mark_stamp = now;
}

/* The fair rate by the law in force. */
static void paqm_solve(struct paqm_sched_data *q, u32 n_out, bool event)
{
	struct paqm_outer_params p = {
		.alpha_q24 = q->cfg.alpha,
		.beta_q24 = q->cfg.beta,
		.md_min_q24 = q->cfg.md_floor,
		.rate_min = PAQM_RATE_MIN,
		.forced_md = q->cfg.forced_md,
		.ai_hold = q->cfg.ai_hold,
	};
	u32 backlog = READ_ONCE(q->queue[PAQM_MEDIA].st.backlog);
	u64 cu = paqm_media_capacity(q);
	u32 rho = paqm_target_util(q);
	u64 ceiling = paqm_mul_q24(cu, rho);
	struct paqm_outer_in in = {
		.cap = ceiling,
		.rate = q->outer_rate,
		.backlog = backlog,
		.target = n_out,
		.period_us = q->cfg.period,
		.flows = q->n_media,
	};
	u64 cap;

	if (!event || q->cfg.law != PAQM_LAW_MAXMIN)
		q->ecf_out = paqm_ecf_step(&q->ecf, &p, &in);
	else /* relative values are not idempotent: nothing new was measured, so hold */
		q->ecf_out = (struct paqm_ecf_out){ PAQM_ECF_HOLD, PAQM_F32_ONE, 0 };
	paqm_inc(&q->ecf_kind[q->ecf_out.kind]);
	switch (q->cfg.law) {
	case PAQM_LAW_ERF:
		if (q->n_media)
			q->fair = paqm_erf_step(&q->erf, &p, &in);
		else
			paqm_erf_init(&q->erf, ceiling, ceiling);
		break;
	case PAQM_LAW_ECF:
		q->fair = paqm_div64(ceiling, max(q->n_media, 1U));
		break;
	default:
		/* The gain of the queue term is that of the model, not of ECF/ERF. */
		cap = paqm_mm_capacity(cu, rho, PAQM_Q24(35, 100), n_out, backlog, q->cfg.period);
		if (event || paqm_mm_any_limited(&q->census.mm))
			q->trim = 0;
		else
			q->trim = paqm_mm_trim(q->trim, q->outer_rate, cap, backlog, n_out);
		q->fair = paqm_mm_solve(&q->census.mm, cap, PAQM_RATE_MIN, ceiling);
		q->fair = min(q->fair + paqm_mul_q24(q->fair, q->trim), ceiling);
	}
}

/* One notice round. @events: causes, 0 at the end of a period. */
static void paqm_round(struct paqm_sched_data *q, u64 now, unsigned long events)
{
	u64 share_of_one = paqm_div64(q->capacity, q->n_media + q->n_elastic + 1);
	u64 mean_elastic = paqm_div64(q->elastic_rate, max(q->census.present, 1U));
	u32 old = paqm_share_q16(q->n_media, q->n_elastic), new;
	struct paqm_walk w = {
		.now_ms = (u32)(now >> 20),
		.fair = q->fair,
		.mouse = max(paqm_mul_q24(mean_elastic, PAQM_MOUSE_Q24),
			     paqm_div64(share_of_one, PAQM_MOUSE_SHARE_DIV)),
		.cautious = events & BIT(PAQM_EV_QUEUE),
		.police = q->cfg.police && READ_ONCE(q->overloaded),
		.max_every = max(1U, (u32)(PAQM_NOTICE_PAUSE_US / q->cfg.period)),
	};
	u32 n_out, ev, qlen, backlog;

	paqm_measure(q, now, &w);
	paqm_flows_walk(&q->flows, &w, &q->census);
	q->n_media = q->census.media;
	q->n_elastic = q->census.elastic;
	paqm_level(q, PAQM_ELASTIC, &qlen, &backlog);
	/* only mice, but more than a trickle: they count as one flow */
	if (!q->n_elastic &&
	    (q->elastic_rate > paqm_mul_q24(q->capacity, PAQM_ELASTIC_FLOOR_Q24) ||
	     backlog > 10 * psched_mtu(qdisc_dev(q->sch))))
		q->n_elastic = 1;
	if (w.window_ns >= PAQM_WINDOW_MIN_NS && !q->elastic_rate)
		WRITE_ONCE(q->elastic_awake, false);
	new = paqm_share_q16(q->n_media, q->n_elastic);
	if (abs((s32)(new - old)) > PAQM_SPLIT_EVENT_Q16)
		events |= BIT(PAQM_EV_SPLIT);

	for (ev = 0; ev < PAQM_EVENTS; ev++)
		if (events & BIT(ev))
			paqm_inc(&q->event_rounds[ev]);
	q->rounds++;
	if (!q->rounds)
		q->rounds = 1;
	if (events)
		q->event_stamp = now;

	paqm_derive_queues(q);
	n_out = q->overload_bytes / 2;
	paqm_solve(q, n_out, events != 0);
	paqm_publish(q);
	paqm_transfer(q, now);

	WRITE_ONCE(q->queue[PAQM_MEDIA].st.flows, q->n_media);
	WRITE_ONCE(q->queue[PAQM_ELASTIC].st.flows, q->n_elastic);
	q->round_stamp = now;
	q->mark_stamp = 0;
}

/* Runs a round when one is due, sets the marks when tau1 has passed. */
static void paqm_outer_work(struct work_struct *work)
{
	struct paqm_sched_data *q =
		container_of(to_delayed_work(work), struct paqm_sched_data, outer_work);
	u64 now = ktime_get_ns(), skip, next;
	unsigned long events;

	mutex_lock(&q->ctl_lock);
	skip = min(q->cfg.rtt, q->cfg.period / 2) * (u64)NSEC_PER_USEC;
	events = READ_ONCE(q->events);
	if (events && (!q->event_stamp || now - q->event_stamp >= PAQM_EVENT_GAP_NS)) {
		events = xchg(&q->events, 0);
		paqm_round(q, now, events);
	} else if (now - q->round_stamp >= (u64)q->cfg.period * NSEC_PER_USEC) {
		paqm_round(q, now, 0);
	} else if (!q->mark_stamp && now - q->round_stamp >= skip) {
		paqm_set_marks(q, now);
	}
	next = q->round_stamp + (q->mark_stamp ? (u64)q->cfg.period * NSEC_PER_USEC : skip);
	if (READ_ONCE(q->events))
		next = min(next, q->event_stamp + PAQM_EVENT_GAP_NS);
	if (READ_ONCE(q->awake))
		queue_delayed_work(system_highpri_wq, &q->outer_work,
				   1 + nsecs_to_jiffies(next > now ? next - now : 0));
	mutex_unlock(&q->ctl_lock);
}

/* ------------------------------------------------------------------- control */

/* Capacity without `bandwidth`: the link speed, 1 Gbit/s where it is not known. */
static u64 paqm_link_rate(struct Qdisc *sch)
{
	struct ethtool_link_ksettings link;

	if (!paqm_link_ksettings(qdisc_dev(sch), &link) && link.base.speed &&
	    link.base.speed != SPEED_UNKNOWN)
		return min_t(u64, (u64)link.base.speed * 1000000, PAQM_BANDWIDTH_MAX * 8);
	return 1000000000;
}

/* Inner period and filter weight for a capacity. */
static void paqm_derive_inner(struct paqm_sched_data *q)
{
	u64 mtu = max_t(u64, psched_mtu(qdisc_dev(q->sch)), 64);
	u64 us = q->cfg.interval, bytes;

	if (!us)
		us = clamp_t(u64, paqm_muldiv(64 * mtu, 8 * USEC_PER_SEC, q->capacity),
			     PAQM_INTERVAL_MIN_US, PAQM_INTERVAL_MAX_US);
	WRITE_ONCE(q->interval_ns, us * NSEC_PER_USEC);
	bytes = paqm_bytes_in(q->capacity, us * NSEC_PER_USEC);
	if (q->cfg.gamma)
		WRITE_ONCE(q->gamma, q->cfg.gamma);
	else if (bytes >= 50 * mtu)
		WRITE_ONCE(q->gamma, PAQM_Q24_ONE / 2);
	else
		WRITE_ONCE(q->gamma, clamp_t(u64, paqm_muldiv(bytes, PAQM_Q24_ONE, 100 * mtu),
					     PAQM_Q24_ONE / 64, PAQM_Q24_ONE / 2));
}

/* Put @cfg in force. RTNL; @fb is what notices go to, NULL for none. */
static void paqm_apply(struct Qdisc *sch, const struct paqm_config *cfg, struct paqm_fb *fb)
{
	struct paqm_sched_data *q = qdisc_priv(sch);
	u64 shaper = cfg->bandwidth == PAQM_BANDWIDTH_AUTO ? 0 : cfg->bandwidth;
	struct tc_ratespec spec = {
		.rate = min_t(u64, shaper, U32_MAX),
		.linklayer = TC_LINKLAYER_ETHERNET,
	};
	u64 before, capacity = shaper ? shaper * 8 : paqm_link_rate(sch);

	mutex_lock(&q->ctl_lock);
	sch_tree_lock(sch);
	q->cfg = *cfg;
	q->fb = fb;
	if (shaper)
		psched_ratecfg_precompute(&q->shaper, &spec, shaper);
	else
		q->shaper.rate_bytes_ps = 0;
	q->next_tx = min(q->next_tx, ktime_get_ns());
	if (sch->q.qlen) /* it may wait for the moment of the old rate */
		qdisc_watchdog_schedule_ns(&q->watchdog, q->next_tx);
	before = q->capacity;
	WRITE_ONCE(q->capacity, capacity);
	sch_tree_unlock(sch);
	paqm_derive_inner(q);
	paqm_derive_queues(q);
	if (fb)
		paqm_fb_set_rate(fb, max(capacity / 8 / PAQM_FB_SHARE_DIV, 1000ULL));
	if (before && q->awake &&
	    max(before, capacity) - min(before, capacity) >
		    paqm_muldiv(before, PAQM_SPLIT_EVENT_Q16, PAQM_Q16_ONE))
		paqm_raise(q, PAQM_EV_CAPACITY);
	mutex_unlock(&q->ctl_lock);
}

static int paqm_change(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct paqm_sched_data *q = qdisc_priv(sch);
	struct paqm_config cfg = q->cfg;
	struct paqm_fb *old = q->fb, *fb = old;
	int err;

	if (opt) {
		err = paqm_parse(opt, &cfg, extack);
		if (err)
			return err;
	}
	if (cfg.feedback == PAQM_FEEDBACK_NONE) {
		fb = NULL;
	} else if (!fb) {
		fb = paqm_fb_create(qdisc_dev(sch));
		if (!fb)
			return -ENOMEM;
	}
	paqm_apply(sch, &cfg, fb);
	if (old && !fb)
		paqm_fb_destroy(old);
	return 0;
}

static int paqm_init(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct paqm_sched_data *q = qdisc_priv(sch);
	u64 now = ktime_get_ns();
	int err;

	/* destroy() runs after a failure too: first what it undoes */
	q->sch = sch;
	mutex_init(&q->ctl_lock);
	INIT_DELAYED_WORK(&q->outer_work, paqm_outer_work);
	paqm_hrtimer_setup(&q->inner_timer, paqm_inner_timer);
	qdisc_watchdog_init(&q->watchdog, sch);

	get_random_bytes(&q->hash_key, sizeof(q->hash_key));
	q->boot = get_random_u32();
	q->created = now;
	q->idle_since = now;
	q->share_now = PAQM_Q16_ONE / 2;
	q->share_next = q->share_now;
	q->mean_len = 1000;
	q->ecf_out.value = PAQM_F32_ONE;
	q->cfg = paqm_defaults;
	q->cfg.router_id = get_random_u64() | 1;
	sch->limit = U32_MAX; /* the limit counts bytes */
	err = tcf_block_get(&q->block, &q->filter_list, sch, extack);
	if (err)
		return err;
	err = paqm_change(sch, opt, extack);
	if (err)
		return err;
	paqm_erf_init(&q->erf, q->capacity, q->capacity);
	return paqm_flows_init(&q->flows, q->cfg.flows);
}

static void paqm_reset(struct Qdisc *sch)
{
	struct paqm_sched_data *q = qdisc_priv(sch);
	struct Qdisc *child = rtnl_dereference(q->child);

	paqm_free_list(&q->queue[PAQM_MEDIA]);
	paqm_free_list(&q->queue[PAQM_ELASTIC]);
	if (child)
		qdisc_reset(child);
	q->sched.lead = 0;
	q->next_tx = 0;
	q->overloaded = false;
	q->stalled = false;
	WRITE_ONCE(q->idle_since, ktime_get_ns());
	qdisc_watchdog_cancel(&q->watchdog);
}

static void paqm_destroy(struct Qdisc *sch)
{
	struct paqm_sched_data *q = qdisc_priv(sch);

	tcf_block_put(q->block);
	WRITE_ONCE(q->awake, false);
	qdisc_watchdog_cancel(&q->watchdog);
	hrtimer_cancel(&q->inner_timer);
	cancel_delayed_work_sync(&q->outer_work);
	paqm_fb_destroy(q->fb);
	paqm_flows_free(&q->flows);
	qdisc_put(rtnl_dereference(q->child));
}

static int paqm_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	struct paqm_sched_data *q = qdisc_priv(sch);

	return paqm_dump_options(&q->cfg, skb);
}

static int paqm_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	struct paqm_sched_data *q = qdisc_priv(sch);
	u64 now = ktime_get_ns(), idle = READ_ONCE(q->idle_ns);
	struct paqm_fb *fb = READ_ONCE(q->fb);
	struct paqm_fb_stats notices = {};
	struct tc_paqm_xstats st = {
		.router_id = READ_ONCE(q->cfg.router_id),
		.capacity = READ_ONCE(q->capacity),
		.fair_rate = READ_ONCE(q->fair),
		.outer_rate = READ_ONCE(q->outer_rate),
		.erf_flows_q16 = READ_ONCE(q->erf.flows_q16),
		.uptime_ns = now - q->created,
		.boot = q->boot,
		.seq = READ_ONCE(q->rounds),
		.share_q16 = READ_ONCE(q->share_now),
		.period_us = READ_ONCE(q->cfg.period),
		.skip_us = min(READ_ONCE(q->cfg.rtt), READ_ONCE(q->cfg.period) / 2),
		.rtt_us = READ_ONCE(q->cfg.rtt),
		.interval_us = READ_ONCE(q->interval_ns) / NSEC_PER_USEC,
		.trim_q24 = READ_ONCE(q->trim),
		.ecf = READ_ONCE(q->ecf_out.value),
		.ecf_md = READ_ONCE(q->ecf_kind[PAQM_ECF_MD]),
		.ecf_ai = READ_ONCE(q->ecf_kind[PAQM_ECF_AI]),
		.ecf_hold = READ_ONCE(q->ecf_kind[PAQM_ECF_HOLD]),
		.rounds = READ_ONCE(q->rounds),
		.event_flow = READ_ONCE(q->event_rounds[PAQM_EV_FLOW]),
		.event_split = READ_ONCE(q->event_rounds[PAQM_EV_SPLIT]),
		.event_capacity = READ_ONCE(q->event_rounds[PAQM_EV_CAPACITY]),
		.event_queue = READ_ONCE(q->event_rounds[PAQM_EV_QUEUE]),
		.notices_owed = READ_ONCE(q->notices_owed),
		.table_slots = (q->flows.mask + 1) * PAQM_WAYS,
		.table_used = READ_ONCE(q->census.used),
		.table_overflow = READ_ONCE(q->flows.overflow),
		.timer_slips = READ_ONCE(q->slips),
		.overload = READ_ONCE(q->overload),
		.transfers = READ_ONCE(q->transfers),
		.strikes = READ_ONCE(q->census.policed),
		.not_ip = READ_ONCE(q->not_ip),
		.filter_drop = READ_ONCE(q->filter_drop),
		.filter_taken = READ_ONCE(q->filter_taken),
	};

	paqm_class_stats(q, PAQM_MEDIA, &st.media);
	paqm_class_stats(q, PAQM_ELASTIC, &st.elastic);
	st.phi_q16 = PAQM_Q16_ONE - paqm_share_q16(st.media.flows, st.elastic.flows);
	if (!READ_ONCE(sch->q.qlen))
		idle += now - READ_ONCE(q->idle_since);
	st.idle_ns = idle;
	if (fb)
		paqm_fb_get_stats(fb, &notices);
	st.notices_sent = notices.sent;
	st.notices_limited = notices.limited;
	st.notices_ring = notices.ring;
	st.notices_refused = notices.refused;
	st.notices_failed = notices.failed;
	return gnet_stats_copy_app(d, &st, sizeof(st));
}

static struct Qdisc_ops paqm_qdisc_ops __read_mostly = {
	.cl_ops = &paqm_class_ops,
	.id = "paqm",
	.priv_size = sizeof(struct paqm_sched_data),
	.enqueue = paqm_enqueue,
	.dequeue = paqm_dequeue,
	/* a child's drops are accounted before our packet leaves our length: no parent sees 0 */
	.peek = qdisc_peek_dequeued,
	.init = paqm_init,
	.reset = paqm_reset,
	.destroy = paqm_destroy,
	.change = paqm_change,
	.dump = paqm_dump,
	.dump_stats = paqm_dump_stats,
	.owner = THIS_MODULE,
};
MODULE_ALIAS_NET_SCH("paqm");

static int __init paqm_module_init(void)
{
	BUILD_BUG_ON(PAQM_HIST_SIZE != PAQM_HIST_BINS);
	return register_qdisc(&paqm_qdisc_ops);
}

static void __exit paqm_module_exit(void)
{
	unregister_qdisc(&paqm_qdisc_ops);
}

module_init(paqm_module_init);
module_exit(paqm_module_exit);

MODULE_DESCRIPTION("P-AQM: two queues, rate feedback to media senders");
MODULE_AUTHOR("The P-AQM project");
MODULE_LICENSE("GPL");
MODULE_VERSION("0.1.0");
