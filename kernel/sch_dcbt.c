// SPDX-License-Identifier: GPL-2.0
/*
 * sch_dcbt - the queues that P-AQM is compared with: RED, FRED, CBT, D-CBT with ChIPS
 *
 * One queue of packets. TCP, tagged UDP and other UDP are its classes. RED drops or marks by the
 * average length; before it, CBT holds each class of UDP to a threshold of its own average, which
 * D-CBT computes from the flows that are active, and FRED every flow to its share. ChIPS lets
 * tagged packets go ahead of a queue that is longer than its average.
 *
 * Laws, and where they are from: core/paqm_red.h, paqm_fred.h, paqm_cbt.h, paqm_chips.h,
 * paqm_active.h. Packets: dcbt_datapath.c. There is no timer: whatever is due is done by the next
 * arrival.
 */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <net/gen_stats.h>
#include "dcbt_state.h"
#include "paqm_count.h"

/* Memory of a queue; what is NULL stays as it is. */
struct dcbt_memory {
	struct dcbt_ring ring;
	struct paqm_active active;
	u8 *label;
};

/* Slots for flows: with FRED every packet that waits may be of another one. */
static u32 dcbt_slots(const struct dcbt_config *cfg)
{
	return max(cfg->flows, cfg->limit + 1);
}

static void dcbt_free(struct dcbt_memory *m)
{
	kvfree(m->ring.slot);
	kvfree(m->label);
	kvfree(m->active.flow);
	kvfree(m->active.bucket);
}

/* What other options need, in @m. */
static int dcbt_alloc(const struct dcbt_sched_data *q, const struct dcbt_config *cfg,
		      struct dcbt_memory *m)
{
	u32 size = roundup_pow_of_two(cfg->limit + 1), slots = dcbt_slots(cfg), buckets;

	if (!q->ring.slot || size != q->ring.mask + 1) {
		m->ring.slot = kvcalloc(size, sizeof(*m->ring.slot), GFP_KERNEL_ACCOUNT);
		m->label = kvcalloc(size, sizeof(*m->label), GFP_KERNEL_ACCOUNT);
		m->ring.mask = size - 1;
		if (!m->ring.slot || !m->label)
			return -ENOMEM;
	}
	if (!q->active.flow || slots != q->active.slots) {
		buckets = roundup_pow_of_two(slots);
		m->active.flow = kvcalloc(slots, sizeof(*m->active.flow), GFP_KERNEL_ACCOUNT);
		m->active.bucket = kvcalloc(buckets, sizeof(*m->active.bucket),
					    GFP_KERNEL_ACCOUNT);
		m->active.slots = slots;
		m->active.mask = buckets - 1;
		if (!m->active.flow || !m->active.bucket)
			return -ENOMEM;
	}
	return 0;
}

/* Take over the flows of another table, those seen last if there are too many. */
static void dcbt_move_flows(struct paqm_active *to, const struct paqm_active *from, u64 now)
{
	u32 i, at, skip = paqm_dcbt_flows(from->count);

	paqm_active_clear(to, now);
	to->swept = from->swept;
	to->missed = from->missed;
	skip = skip > to->slots ? skip - to->slots : 0;
	for (i = from->oldest; from->flow && i != PAQM_ACTIVE_NONE; i = from->flow[i].newer) {
		const struct paqm_active_flow *flow = &from->flow[i];

		if (skip) {
			skip--;
			continue;
		}
		at = paqm_active_touch(to, flow->key, flow->class, flow->seen);
		to->flow[at].account = flow->account;
	}
}

/* Put new memory in the place of the old one, which is in @m afterwards. */
static void dcbt_move(struct dcbt_sched_data *q, struct dcbt_memory *m, u64 now)
{
	u32 i;

	if (m->ring.slot) {
		for (i = 0; i < q->ring.len; i++)
			m->ring.slot[i] = *dcbt_ring_at(&q->ring, i);
		m->ring.len = q->ring.len;
		swap(m->ring, q->ring);
		swap(m->label, q->labels.label);
		q->labels.mask = q->ring.mask;
	}
	if (m->active.flow) {
		dcbt_move_flows(&m->active, &q->active, now);
		swap(m->active, q->active);
	}
}

/* Options that have been checked come into force; q->cfg has the ones before. */
static void dcbt_apply(struct dcbt_sched_data *q, const struct dcbt_config *cfg, u64 now)
{
	bool law = cfg->mode != q->cfg.mode || !q->red.max_p_q24;
	bool flows = law || cfg->flow_key != q->cfg.flow_key ||
		     dcbt_counts(cfg) != dcbt_counts(&q->cfg);
	bool prob = cfg->max_p != q->cfg.max_p || cfg->adaptive != q->cfg.adaptive;

	q->params.min = dcbt_packets(cfg->min_th);
	q->params.max = dcbt_packets(cfg->max_th);
	q->params.weight_q24 = cfg->weight;
	q->params.max_p_q24 = cfg->max_p;
	q->params.gentle = cfg->gentle;
	q->params.adaptive = cfg->adaptive;
	q->params.uniform = cfg->spacing == DCBT_SPACING_UNIFORM;
	if (law) {
		paqm_red_start(&q->red, &q->params, now);
		memset(q->avg, 0, sizeof(q->avg));
	} else if (prob) {
		WRITE_ONCE(q->red.max_p_q24, cfg->max_p);
	}
	q->cfg = *cfg;
	dcbt_recount(q, flows, now);
}

static int dcbt_change(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct dcbt_sched_data *q = qdisc_priv(sch);
	u32 dropped = 0, dropped_bytes = 0;
	struct dcbt_config cfg = q->cfg;
	struct dcbt_memory memory = {};
	struct sk_buff *skb;
	int err;

	if (opt) {
		err = dcbt_parse(opt, &cfg, extack);
		if (err)
			return err;
	}
	err = dcbt_alloc(q, &cfg, &memory);
	if (err) {
		NL_SET_ERR_MSG(extack, "dcbt: no memory for so many packets or flows");
		goto out;
	}
	sch_tree_lock(sch);
	while (q->ring.len > cfg.limit) {
		skb = dcbt_take_out(sch, q->ring.len - 1);
		dropped++;
		dropped_bytes += qdisc_pkt_len(skb);
		paqm_count(&q->class[dcbt_skb_cb(skb)->class].drop[DCBT_FULL]);
		qdisc_qstats_drop(sch);
		rtnl_kfree_skbs(skb, skb);
	}
	dcbt_move(q, &memory, ktime_get_ns());
	dcbt_apply(q, &cfg, ktime_get_ns());
	sch->limit = cfg.limit;
	if (dropped)
		qdisc_tree_reduce_backlog(sch, dropped, dropped_bytes);
	sch_tree_unlock(sch);
out:
	dcbt_free(&memory);
	return err;
}

static int dcbt_init(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct dcbt_sched_data *q = qdisc_priv(sch);

	/* destroy() runs after a failure, too: it frees what there is */
	q->cfg = dcbt_defaults;
	get_random_bytes(q->rules.key, sizeof(q->rules.key));
	q->rules.protocol = true; /* of UDP nothing is to be found out by its ports */
	return dcbt_change(sch, opt, extack);
}

static void dcbt_reset(struct Qdisc *sch)
{
	struct dcbt_sched_data *q = qdisc_priv(sch);
	u64 now = ktime_get_ns();
	struct sk_buff *skb;
	int i;

	while (q->ring.len) {
		skb = dcbt_ring_remove(&q->ring, q->ring.len - 1);
		rtnl_kfree_skbs(skb, skb);
	}
	for (i = 0; i < PAQM_CBT_CLASSES; i++) {
		WRITE_ONCE(q->qlen[i], 0);
		WRITE_ONCE(q->class[i].backlog, 0);
		WRITE_ONCE(q->avg[i], 0);
	}
	if (!q->ring.slot) /* its making failed */
		return;
	paqm_red_start(&q->red, &q->params, now);
	paqm_active_clear(&q->active, now);
	paqm_labels_clear(&q->labels);
	q->idle_since = 0;
	q->left = 0;
}

static void dcbt_destroy(struct Qdisc *sch)
{
	struct dcbt_sched_data *q = qdisc_priv(sch);
	struct dcbt_memory memory = {
		.ring = q->ring,
		.active = q->active,
		.label = q->labels.label,
	};

	dcbt_free(&memory);
}

static int dcbt_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	struct dcbt_sched_data *q = qdisc_priv(sch);

	return dcbt_dump_options(&q->cfg, skb);
}

static void dcbt_class_stats(const struct dcbt_sched_data *q, enum paqm_cbt_class class,
			     struct tc_dcbt_class_stats *st)
{
	const struct dcbt_class *c = &q->class[class];
	int i;

	st->arrived = READ_ONCE(c->arrived);
	st->arrived_bytes = READ_ONCE(c->arrived_bytes);
	st->sent = READ_ONCE(c->sent);
	st->sent_bytes = READ_ONCE(c->sent_bytes);
	st->sojourn_ns = READ_ONCE(c->sojourn_ns);
	st->drop_early = READ_ONCE(c->drop[DCBT_EARLY]);
	st->drop_forced = READ_ONCE(c->drop[DCBT_FORCED]);
	st->drop_limit = READ_ONCE(c->drop[DCBT_FULL]);
	st->drop_threshold = READ_ONCE(c->drop[DCBT_THRESHOLD]);
	st->drop_flow = READ_ONCE(c->drop[DCBT_FLOW]);
	st->ecn_mark = READ_ONCE(c->marks);
	st->cut_in = READ_ONCE(c->cut_in);
	st->average = READ_ONCE(q->avg[class]);
	st->threshold = dcbt_threshold(q, class);
	st->backlog = READ_ONCE(c->backlog);
	st->qlen = READ_ONCE(q->qlen[class]);
	st->flows = READ_ONCE(q->active.count[class]);
	for (i = 0; i < DCBT_HIST_BINS; i++)
		st->hist[i] = READ_ONCE(c->hist[i]);
}

/* Perhaps without any lock, and where nobody may sleep. */
static int dcbt_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	struct dcbt_sched_data *q = qdisc_priv(sch);
	struct tc_dcbt_xstats *st = kzalloc(sizeof(*st), GFP_ATOMIC);
	int err;

	if (!st)
		return -ENOMEM;
	dcbt_class_stats(q, PAQM_CBT_TCP, &st->tcp);
	dcbt_class_stats(q, PAQM_CBT_TAGGED, &st->tagged);
	dcbt_class_stats(q, PAQM_CBT_UNTAGGED, &st->untagged);
	st->average = READ_ONCE(q->red.avg);
	st->max_p = READ_ONCE(q->red.max_p_q24);
	st->packet_ns = READ_ONCE(q->packet_ns);
	st->flow_missed = READ_ONCE(q->active.missed);
	st->not_cut = READ_ONCE(q->not_cut);
	d->compat_xstats = 0; /* a message has no room for it twice, as very old tc wants it */
	err = gnet_stats_copy_app(d, st, sizeof(*st));
	kfree(st);
	return err;
}

static struct Qdisc_ops dcbt_qdisc_ops __read_mostly = {
	.id = "dcbt",
	.priv_size = sizeof(struct dcbt_sched_data),
	.enqueue = dcbt_enqueue,
	.dequeue = dcbt_dequeue,
	.peek = qdisc_peek_dequeued, /* dequeue drops nothing */
	.init = dcbt_init,
	.reset = dcbt_reset,
	.destroy = dcbt_destroy,
	.change = dcbt_change,
	.dump = dcbt_dump,
	.dump_stats = dcbt_dump_stats,
	.owner = THIS_MODULE,
};
MODULE_ALIAS_NET_SCH("dcbt");

static int __init dcbt_module_init(void)
{
	BUILD_BUG_ON(PAQM_HIST_SIZE != DCBT_HIST_BINS);
	return register_qdisc(&dcbt_qdisc_ops);
}

static void __exit dcbt_module_exit(void)
{
	unregister_qdisc(&dcbt_qdisc_ops);
}

module_init(dcbt_module_init);
module_exit(dcbt_module_exit);

MODULE_DESCRIPTION("RED, FRED, CBT, D-CBT with ChIPS");
MODULE_AUTHOR("The P-AQM project");
MODULE_LICENSE("GPL");
MODULE_VERSION("0.1.0");
