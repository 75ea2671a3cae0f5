// SPDX-License-Identifier: GPL-2.0
/*
 * The two classes as tc sees them: X:1 media, X:2 elastic. Filters and priorities
 * choose between them; the elastic class can hold any other qdisc in place of its
 * own list, the media class cannot.
 *
 * A child of the elastic class may drop whenever it is asked for a packet, may hold
 * back what it has and may put back copies from within its enqueue (netem). So
 * nothing here remembers the child's length: it is read from the child, and the
 * qdisc's own length follows through qdisc_tree_reduce_backlog().
 */
#include <net/gen_stats.h>
#include <net/pkt_cls.h>
#include "paqm_class.h"
#include "paqm_compat.h"
#include "paqm_queue.h"

/* Is @cl one of the pseudo classes that show media flows? Then its place in the list. */
static int paqm_top_index(unsigned long cl)
{
	return cl >= PAQM_TOP_MINOR && cl < PAQM_TOP_MINOR + PAQM_TOP_FLOWS ?
		       (int)(cl - PAQM_TOP_MINOR) : -1;
}

static unsigned long paqm_find(struct Qdisc *sch, u32 classid)
{
	if (paqm_top_index(TC_H_MIN(classid)) >= 0)
		return TC_H_MIN(classid);
	return paqm_class_number(classid);
}

/* Ask the filters; result as of paqm_choose(). */
int paqm_filter(struct sk_buff *skb, struct Qdisc *sch, const struct tcf_proto *fl,
		struct sk_buff **to_free)
{
	struct paqm_sched_data *q = qdisc_priv(sch);
	struct tcf_result res;
	unsigned long cl;
	int verdict;

	verdict = paqm_tcf_classify(skb, fl, &res);
	switch (verdict) {
	case TC_ACT_STOLEN:
	case TC_ACT_QUEUED:
	case TC_ACT_TRAP:
		__qdisc_drop(skb, to_free);
		fallthrough;
	case TC_ACT_CONSUMED: /* the packet has another owner already */
		paqm_count(&q->filter_taken);
		return ~(NET_XMIT_SUCCESS | __NET_XMIT_STOLEN);
	case TC_ACT_SHOT:
		paqm_count(&q->filter_drop);
		qdisc_qstats_drop(sch);
		__qdisc_drop(skb, to_free);
		return ~(NET_XMIT_SUCCESS | __NET_XMIT_BYPASS);
	}
	if (verdict < 0)
		return PAQM_CLASSES;
	/* bound at configuration, or a number that a program computed */
	cl = res.class;
	if (!cl && (!TC_H_MAJ(res.classid) || TC_H_MAJ(res.classid) == sch->handle))
		cl = paqm_class_number(res.classid);
	return cl ? cl - 1 : PAQM_CLASSES;
}

/* What waits in a class. */
void paqm_level(const struct paqm_sched_data *q, enum paqm_class class, u32 *qlen, u32 *backlog)
{
	struct Qdisc *child;

	*qlen = paqm_qlen(&q->queue[class]);
	*backlog = READ_ONCE(q->queue[class].st.backlog);
	if (class == PAQM_MEDIA)
		return;
	rcu_read_lock();
	child = rcu_dereference(q->child);
	if (child)
		qdisc_qstats_qlen_backlog(child, qlen, backlog);
	rcu_read_unlock();
}

/* Counts that the datapath goes on to write: no word is read twice, or half before a write. */
static void paqm_copy_counts(void *to, const void *from, size_t size)
{
	unsigned long *words = to;
	const unsigned long *source = from;
	size_t i;

	for (i = 0; i < size / sizeof(*words); i++)
		words[i] = READ_ONCE(source[i]);
}

/* Statistics of a class, with what is not kept in them all the time; and its counts. */
void paqm_class_stats(const struct paqm_sched_data *q, enum paqm_class class,
		      struct tc_paqm_class_stats *st, struct tc_paqm_class_counts *n)
{
	const struct paqm_queue *queue = &q->queue[class];
	u32 i;

	BUILD_BUG_ON(sizeof(*st) % sizeof(long) || sizeof(*n) % sizeof(long));
	paqm_copy_counts(st, &queue->st, sizeof(*st));
	paqm_copy_counts(n, &queue->n, sizeof(*n));
	paqm_level(q, class, &st->qlen, &st->backlog);
	if (class == PAQM_MEDIA) { /* the packets are counted already */
		st->backlog += READ_ONCE(q->drr[PAQM_MEDIA].backlog);
	} else { /* its AQM is that of its flows, or the inner law */
		n->drop_inner += READ_ONCE(q->drr[PAQM_ELASTIC].drops);
		n->ecn_mark += READ_ONCE(q->drr[PAQM_ELASTIC].marks);
	}
	st->drop_tail = n->drop_tail;
	st->drop_inner = n->drop_inner;
	st->drop_strike = n->drop_strike;
	st->ecn_mark = n->ecn_mark;
	for (i = 0; i < PAQM_HIST_BINS; i++)
		st->hist[i] = n->hist[i];
	st->arrived_bytes = READ_ONCE(queue->load) + READ_ONCE(queue->policed) +
			    READ_ONCE(queue->beyond) - READ_ONCE(queue->framing);
	st->sojourn_max_us = paqm_div64(READ_ONCE(queue->sojourn_max), NSEC_PER_USEC);
}

/* Throw away what waits in the elastic class's own list and tell the parents. */
static void paqm_discard_elastic(struct Qdisc *sch)
{
	struct paqm_sched_data *q = qdisc_priv(sch);
	struct paqm_queue *queue = &q->queue[PAQM_ELASTIC];
	u32 qlen = paqm_qlen(queue), backlog = queue->st.backlog;

	if (!qlen)
		return;
	paqm_drr_purge(q, PAQM_ELASTIC);
	paqm_free_list(q, queue);
	WRITE_ONCE(queue->n.drop_tail, queue->n.drop_tail + qlen);
	__qdisc_qstats_drop(sch, qlen);
	WRITE_ONCE(sch->q.qlen, sch->q.qlen - qlen);
	WRITE_ONCE(sch->qstats.backlog, sch->qstats.backlog - backlog);
	if (!sch->q.qlen)
		WRITE_ONCE(q->idle_since, ktime_get_ns());
	qdisc_tree_reduce_backlog(sch, qlen, backlog);
}

static int paqm_graft(struct Qdisc *sch, unsigned long cl, struct Qdisc *new, struct Qdisc **old,
		      struct netlink_ext_ack *extack)
{
	struct paqm_sched_data *q = qdisc_priv(sch);

	if (paqm_top_index(cl) >= 0) {
		NL_SET_ERR_MSG(extack, "paqm: this class only shows a flow");
		return -EOPNOTSUPP;
	}
	if (cl - 1 != PAQM_ELASTIC) {
		NL_SET_ERR_MSG(extack,
			       "paqm: media keeps its own queue; only the elastic class (:2) takes a qdisc");
		return -EOPNOTSUPP;
	}
	sch_tree_lock(sch);
	*old = rtnl_dereference(q->child);
	rcu_assign_pointer(q->child, new);
	/* a new list or child starts without the drop probability of the one before */
	WRITE_ONCE(q->queue[PAQM_ELASTIC].inner.prob, 0);
	if (*old)
		qdisc_purge_queue(*old);
	else
		paqm_discard_elastic(sch);
	/* what a child sent was not taken */
	paqm_free_list(q, &q->queue[PAQM_ELASTIC]);
	sch_tree_unlock(sch);
	return 0;
}

/*
 * Has another qdisc in the elastic class all that it may have of `limit`? It does not give back
 * what it holds, so room for the media queue is kept from it, half of all at most.
 */
static bool paqm_child_full(struct Qdisc *sch, u32 len)
{
	const struct paqm_sched_data *q = qdisc_priv(sch);
	const struct paqm_queue *media = &q->queue[PAQM_MEDIA];
	u64 others = (u64)media->st.backlog + q->drr[PAQM_MEDIA].backlog;
	u32 limit = READ_ONCE(q->limit);

	return sch->qstats.backlog - others + len >
	       limit - min(limit / 2, READ_ONCE(media->limit));
}

/*
 * Parents have been told that packets went, but not that none is left. A call without either does
 * nothing on older kernels, so a byte goes and comes.
 */
static void paqm_tell_empty(struct Qdisc *sch)
{
	qdisc_tree_reduce_backlog(sch, 0, 1);
	qdisc_tree_reduce_backlog(sch, 0, -1);
}

/*
 * Hand an elastic packet to the qdisc of that class. That may drop the only one that it held in
 * favour of this: we must not seem to be empty meanwhile, or a parent would put our class to sleep,
 * and hfsc does not wake it for a packet that comes where there was one before.
 */
int paqm_enqueue_child(struct sk_buff *skb, struct Qdisc *sch, struct Qdisc *child, u64 now,
		       struct sk_buff **to_free)
{
	struct paqm_sched_data *q = qdisc_priv(sch);
	u32 len = qdisc_pkt_len(skb);
	bool idle = !sch->q.qlen;
	int ret;

	if (unlikely(paqm_child_full(sch, len)) && child->q.qlen)
		return paqm_drop(skb, sch, to_free, PAQM_ELASTIC,
				 &q->queue[PAQM_ELASTIC].n.drop_tail, PAQM_DROP_TAIL);
	if (!idle)
		qdisc_qlen_inc(sch);
	/* not qdisc_enqueue(): a child's size table must not change our accounts */
	ret = child->enqueue(skb, child, to_free);
	if (!idle)
		qdisc_qlen_dec(sch);
	if (ret != NET_XMIT_SUCCESS) {
		if (!idle && !sch->q.qlen)
			paqm_tell_empty(sch);
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

static struct Qdisc *paqm_leaf(struct Qdisc *sch, unsigned long cl)
{
	struct paqm_sched_data *q = qdisc_priv(sch);

	return cl - 1 == PAQM_ELASTIC ? rtnl_dereference(q->child) : NULL;
}

/*
 * The child is empty: it has dropped what it had, which the caller takes off the qdisc's length
 * afterwards, or it is changed or replaced while it is. What is left to note is that the link may
 * be idle from now on. Called once too often this only moves the beginning of an idle time that has
 * not begun; one that has goes on.
 */
static void paqm_qlen_notify(struct Qdisc *sch, unsigned long cl)
{
	struct paqm_sched_data *q = qdisc_priv(sch);

	if (sch->q.qlen)
		WRITE_ONCE(q->idle_since, ktime_get_ns());
}

static void paqm_walk(struct Qdisc *sch, struct qdisc_walker *walker)
{
	struct paqm_sched_data *q = qdisc_priv(sch);
	unsigned long cl;

	if (walker->stop)
		return;
	for (cl = 1; cl <= PAQM_CLASSES; cl++)
		if (!tc_qdisc_stats_dump(sch, cl, walker))
			return;
	for (cl = PAQM_TOP_MINOR; cl < PAQM_TOP_MINOR + READ_ONCE(q->top.n); cl++)
		if (!tc_qdisc_stats_dump(sch, cl, walker))
			return;
}

static struct tcf_block *paqm_tcf_block(struct Qdisc *sch, unsigned long cl,
					struct netlink_ext_ack *extack)
{
	struct paqm_sched_data *q = qdisc_priv(sch);

	if (cl) {
		NL_SET_ERR_MSG(extack, "paqm: filters go to the qdisc (parent X:), not to a class");
		return NULL;
	}
	return q->block;
}

/* The classes are always there: a filter that names one holds no reference. */
static unsigned long paqm_bind(struct Qdisc *sch, unsigned long parent, u32 classid)
{
	return paqm_class_number(classid);
}

static void paqm_unbind(struct Qdisc *sch, unsigned long cl)
{
}

static int paqm_dump_class(struct Qdisc *sch, unsigned long cl, struct sk_buff *skb,
			   struct tcmsg *tcm)
{
	struct Qdisc *child = paqm_leaf(sch, cl);

	if (paqm_top_index(cl) >= 0)
		tcm->tcm_parent = TC_H_MAKE(sch->handle, PAQM_MEDIA + 1);
	tcm->tcm_handle |= TC_H_MIN(cl);
	tcm->tcm_info = child ? child->handle : 0;
	return 0;
}

/* One of the busiest media flows. */
static int paqm_dump_flow(struct paqm_sched_data *q, u32 index, struct gnet_dump *d)
{
	struct tc_paqm_flow_stats st = {};
	struct paqm_top_flow f;
	u32 now_tick;
	u64 told;

	/* not every user of the machine may see who talks to whom */
	if (!ns_capable(dev_net(qdisc_dev(q->sch))->user_ns, CAP_NET_ADMIN))
		return 0;
	spin_lock(&q->top_lock);
	if (index >= q->top.n) {
		spin_unlock(&q->top_lock);
		return 0; /* the list became shorter */
	}
	f = q->top.flow[index];
	spin_unlock(&q->top_lock);
	now_tick = paqm_flow_clock(ktime_get_ns()); /* not before what was noted */
	st.family = f.tuple.family;
	st.proto = f.tuple.proto;
	st.sport = htons(ntohl(f.tuple.ports) >> 16);
	st.dport = htons(ntohl(f.tuple.ports) & 0xFFFF);
	memcpy(st.saddr, f.tuple.saddr, sizeof(st.saddr));
	memcpy(st.daddr, f.tuple.daddr, sizeof(st.daddr));
	st.strikes = f.deaf;
	st.rate = f.rate;
	st.share = READ_ONCE(q->fair);
	if (f.every & PAQM_SHARES)
		st.share = paqm_host_part(&q->hosts->host[f.host % PAQM_HOSTS], st.share);
	st.idle_ms = paqm_flow_ms(now_tick - f.last_tick);
	st.drop = f.drop;
	st.lost = f.lost;
	st.marked = f.marked;
	if (f.over && READ_ONCE(q->flowq[f.over].tag) == f.tag) {
		st.lost += READ_ONCE(q->flowq[f.over].lost);
		st.marked += READ_ONCE(q->flowq[f.over].marked);
		st.waiting = READ_ONCE(q->flowq[f.over].backlog);
	}
	st.hears = f.hears | (f.deaf ? 0 : PAQM_FOLLOWS) | (st.lost ? PAQM_HEARS_LOSS : 0);
	if (!READ_ONCE(q->stamp)) /* it may have, before a change of the carrier */
		st.hears &= ~PAQM_HEARS_INBAND;
	if (f.told && READ_ONCE(q->tell))
		st.hears |= PAQM_HEARS_MESSAGE;
	if (f.told && !paqm_f32_decode(f.told, 0, &told)) {
		st.told = told;
		st.told_ms = paqm_flow_ms(now_tick - f.told_tick);
	}
	return gnet_stats_copy_app(d, &st, sizeof(st));
}

static int paqm_dump_class_stats(struct Qdisc *sch, unsigned long cl, struct gnet_dump *d)
{
	struct paqm_sched_data *q = qdisc_priv(sch);
	struct Qdisc *child = paqm_leaf(sch, cl);
	struct gnet_stats_basic_sync sent;
	struct gnet_stats_queue qs = {};
	struct tc_paqm_class_counts n;
	struct tc_paqm_class_stats st;

	if (paqm_top_index(cl) >= 0)
		return paqm_dump_flow(q, paqm_top_index(cl), d);
	paqm_class_stats(q, cl - 1, &st, &n);
	gnet_stats_basic_sync_init(&sent);
	u64_stats_set(&sent.bytes, st.sent_bytes);
	u64_stats_set(&sent.packets, st.sent_packets); /* more than 32 bits, too */
	if (child)
		gnet_stats_add_queue(&qs, child->cpu_qstats, &child->qstats);
	qs.drops += st.drop_tail + st.drop_inner + st.drop_strike;
	if (cl - 1 == PAQM_MEDIA) /* elastic flows' are in @st */
		qs.drops += READ_ONCE(q->drr[PAQM_MEDIA].drops) + READ_ONCE(q->over_full);
	qs.overlimits += st.drop_tail;
	qs.backlog = st.backlog;
	if (gnet_stats_copy_basic(d, NULL, &sent, false) < 0 ||
	    gnet_stats_copy_queue(d, NULL, &qs, st.qlen) < 0)
		return -1;
	return gnet_stats_copy_app(d, &st, sizeof(st));
}

const struct Qdisc_class_ops paqm_class_ops = {
	.graft = paqm_graft,
	.leaf = paqm_leaf,
	.qlen_notify = paqm_qlen_notify,
	.find = paqm_find,
	.walk = paqm_walk,
	.tcf_block = paqm_tcf_block,
	.bind_tcf = paqm_bind,
	.unbind_tcf = paqm_unbind,
	.dump = paqm_dump_class,
	.dump_stats = paqm_dump_class_stats,
};
