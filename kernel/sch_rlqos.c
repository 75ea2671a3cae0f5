// SPDX-License-Identifier: GPL-2.0
/*
 * sch_rlqos - RL-QoS, the predecessor of P-AQM, to compare it with
 *
 * Three classes: TC1 signals, TC2 is adaptive media, TC3 best effort. Of TC2 what enters the
 * network here is thinned, with a probability that follows the length of its queue, how fast that
 * grows, and the load of the node downstream, which rlqosd brings. docs/rlqos.md has the design.
 *
 * Law: core/paqm_rlqos.h. Packets: rlqos_datapath.c. There is no timer: samples that are due are
 * taken when the next packet comes or goes, and for statistics.
 */
#include <linux/module.h>
#include <linux/random.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <net/gen_stats.h>
#include "rlqos_state.h"

/* Where k1 is not given: 1.75 times the limit of the queue. */
static u32 rlqos_k1(const struct rlqos_config *cfg)
{
	return cfg->k1 ? cfg->k1 : cfg->limit + cfg->limit * 3 / 4;
}

/* Options that have been checked come into force; q->cfg has the ones before. */
static void rlqos_apply(struct rlqos_sched_data *q, const struct rlqos_config *cfg, u64 now)
{
	struct paqm_rlqos_params *p = &q->params;
	u64 interval = (u64)cfg->interval * NSEC_PER_USEC;

	if (interval != p->interval || cfg->samples != p->samples) {
		q->law.next = now + interval;
		q->law.taken = 0;
	}
	p->interval = interval;
	p->samples = cfg->samples;
	p->weight_q24 = cfg->weight;
	p->k1 = rlqos_k1(cfg);
	p->share_q16 = cfg->down_share;
	p->k3_q16 = cfg->k3;
	q->rules.dscp_any = cfg->tc1;
	q->cfg = *cfg;
}

/* Drop the newest packets of a class beyond its limit, and count them. */
static void rlqos_shorten(struct Qdisc *sch, struct rlqos_class *c, u32 limit, u32 *dropped,
			  u32 *bytes)
{
	struct sk_buff *skb;

	while (skb_queue_len(&c->queue) > limit) {
		skb = rlqos_take_out(sch, c, skb_peek_tail(&c->queue));
		++*dropped;
		*bytes += qdisc_pkt_len(skb);
		qdisc_qstats_drop(sch);
		rtnl_kfree_skbs(skb, skb);
	}
}

static int rlqos_change(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct rlqos_sched_data *q = qdisc_priv(sch);
	u32 dropped = 0, bytes = 0, i;
	struct rlqos_config cfg = q->cfg;
	struct rlqos_said said = {};
	u64 now;
	int err;

	if (opt) {
		err = rlqos_parse(opt, &cfg, &said, extack);
		if (err)
			return err;
	}
	sch_tree_lock(sch);
	now = ktime_get_ns();
	rlqos_advance(q, now);
	for (i = 0; i < PAQM_RLQOS_CLASSES; i++)
		rlqos_shorten(sch, &q->class[i],
			      i == PAQM_RLQOS_TC2 ? cfg.limit : cfg.other_limit, &dropped, &bytes);
	rlqos_apply(q, &cfg, now);
	if (said.any)
		paqm_rlqos_hear(&q->law, &q->params, now, said.load);
	sch->limit = cfg.limit + 2 * cfg.other_limit;
	if (dropped)
		qdisc_tree_reduce_backlog(sch, dropped, bytes);
	sch_tree_unlock(sch);
	return 0;
}

static void rlqos_forget(struct rlqos_sched_data *q)
{
	paqm_rlqos_start(&q->law, &q->params, ktime_get_ns());
	memset(&q->frames, 0, sizeof(q->frames));
	q->credit = 0;
}

static int rlqos_init(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct rlqos_sched_data *q = qdisc_priv(sch);
	int i;

	for (i = 0; i < PAQM_RLQOS_CLASSES; i++)
		__skb_queue_head_init(&q->class[i].queue);
	get_random_bytes(q->rules.key, sizeof(q->rules.key));
	rlqos_apply(q, &rlqos_defaults, ktime_get_ns());
	rlqos_forget(q);
	return rlqos_change(sch, opt, extack);
}

static void rlqos_reset(struct Qdisc *sch)
{
	struct rlqos_sched_data *q = qdisc_priv(sch);
	struct sk_buff *skb;
	int i;

	for (i = 0; i < PAQM_RLQOS_CLASSES; i++) {
		while ((skb = __skb_dequeue(&q->class[i].queue)))
			rtnl_kfree_skbs(skb, skb);
		q->class[i].backlog = 0;
	}
	rlqos_forget(q);
}

static int rlqos_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	struct rlqos_sched_data *q = qdisc_priv(sch);

	return rlqos_dump_options(&q->cfg, skb);
}

static void rlqos_class_stats(const struct rlqos_class *c, struct tc_rlqos_class_stats *st)
{
	st->arrived = c->arrived;
	st->arrived_bytes = c->arrived_bytes;
	st->sent = c->sent;
	st->sent_bytes = c->sent_bytes;
	st->sojourn_ns = c->sojourn_ns;
	st->entered = c->entered;
	st->drop_thin = c->drop_thin;
	st->drop_limit = c->drop_limit;
	st->drop_again = c->drop_again;
	st->backlog = c->backlog;
	st->qlen = skb_queue_len(&c->queue);
	memcpy(st->hist, c->hist, sizeof(st->hist));
}

static int rlqos_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	struct rlqos_sched_data *q = qdisc_priv(sch);
	struct tc_rlqos_xstats *st = kzalloc(sizeof(*st), GFP_ATOMIC);
	int err;

	if (!st)
		return -ENOMEM;
	/* an idle queue's load falls, too, and nobody else would notice */
	sch_tree_lock(sch);
	rlqos_advance(q, ktime_get_ns());
	rlqos_class_stats(&q->class[PAQM_RLQOS_TC1], &st->tc1);
	rlqos_class_stats(&q->class[PAQM_RLQOS_TC2], &st->tc2);
	rlqos_class_stats(&q->class[PAQM_RLQOS_TC3], &st->tc3);
	st->mean = q->law.mean;
	st->growth = q->law.growth;
	st->load = q->law.load;
	st->downstream = q->law.down;
	st->probability = q->law.probability;
	st->not_cut = q->not_cut;
	sch_tree_unlock(sch);
	d->compat_xstats = 0; /* a message has no room for it twice, as very old tc wants it */
	err = gnet_stats_copy_app(d, st, sizeof(*st));
	kfree(st);
	return err;
}

static struct Qdisc_ops rlqos_qdisc_ops __read_mostly = {
	.id = "rlqos",
	.priv_size = sizeof(struct rlqos_sched_data),
	.enqueue = rlqos_enqueue,
	.dequeue = rlqos_dequeue,
	.peek = qdisc_peek_dequeued, /* dequeue drops nothing */
	.init = rlqos_init,
	.reset = rlqos_reset,
	.change = rlqos_change,
	.dump = rlqos_dump,
	.dump_stats = rlqos_dump_stats,
	.owner = THIS_MODULE,
};
MODULE_ALIAS_NET_SCH("rlqos");

static int __init rlqos_module_init(void)
{
	BUILD_BUG_ON(PAQM_HIST_SIZE != RLQOS_HIST_BINS);
	return register_qdisc(&rlqos_qdisc_ops);
}

static void __exit rlqos_module_exit(void)
{
	unregister_qdisc(&rlqos_qdisc_ops);
}

module_init(rlqos_module_init);
module_exit(rlqos_module_exit);

MODULE_DESCRIPTION("RL-QoS: hop-by-hop back-pressure for adaptive media");
MODULE_AUTHOR("The P-AQM project");
MODULE_LICENSE("GPL");
MODULE_VERSION("0.1.0");
