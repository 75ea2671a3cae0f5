// SPDX-License-Identifier: GPL-2.0
/*
 * sch_paqm - P-AQM: an AQM that tells media senders their fair rate
 *
 * Two queues share a link: media (U) and elastic (T). They are served byte-true
 * in proportion to what their flows can use, media with a bounded credit to
 * run ahead. Media flows that send more than their fair rate wait in queues of their
 * own. Every dT an inner loop per queue turns arrival rate and backlog
 * into a drop probability, the safety net. Every period d, and at once when
 * flows, split, capacity or queue change, an outer loop computes the fair rate
 * of media flows; each flow's next packet then triggers one message to its
 * sender. In steady state the senders keep the queue short and nothing is lost.
 *
 * Laws: A. Lie, NTNU 2008:74 (Papers D, F, App. C), in core/paqm_laws.h; default
 * outer law: water-filling over measured rates, core/paqm_maxmin.h.
 *
 * Who runs where:
 *  enqueue/dequeue	under the qdisc lock: recognise, count, compare with a
 *			random number, copy the head of a packet for a notice
 *  inner hrtimer	softirq, no lock: reads counters, publishes probabilities
 *  outer work		process context, ctl_lock: walks the flow table, publishes
 *			advice and weights; begun by outer_timer, or at once by an event
 *  change		RTNL and ctl_lock; what the datapath reads is published by
 *			WRITE_ONCE or under sch_tree_lock
 */
#include <linux/hrtimer.h>
#include <linux/if_arp.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/ppp_defs.h>
#include <linux/random.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include <net/pkt_sched.h>
#include "paqm_compat.h"
#include "uapi/linux/pkt_sched_paqm.h"
#include "core/paqm_hist.h"
#include "core/paqm_law.h"
#include "paqm_capacity.h"
#include "paqm_class.h"
#include "paqm_config.h"
#include "paqm_datapath.h"
#include "paqm_event.h"
#include "paqm_feedback.h"
#include "paqm_flows.h"
#include "paqm_inner.h"
#include "paqm_options.h"
#include "paqm_outer.h"
#include "paqm_queue.h"
#include "paqm_state.h"
#include "paqm_trim.h"

#define CREATE_TRACE_POINTS
#include "paqm_trace.h"

static bool paqm_shapes(const struct paqm_config *cfg)
{
	return cfg->bandwidth && cfg->bandwidth != PAQM_BANDWIDTH_AUTO;
}

/*
 * Does the device take all packets, since it is another's, or has queues of its own that do not
 * stop this one (mac80211)? PPP over others (PPPoE, L2TP), for whose headers it asks for room, is
 * so as well, and says it from Linux 6.16 on; a modem stops PPP. So is ifb, which only stops while
 * it hands on what it has.
 */
static bool paqm_takes_all(const struct net_device *dev)
{
	return dev->priv_flags & IFF_NO_QUEUE ||
	       (dev->type == ARPHRD_PPP && dev->hard_header_len > PPP_HDRLEN) ||
	       (dev->rtnl_link_ops && !strcmp(dev->rtnl_link_ops->kind, "ifb"));
}

/* Does nothing ever make packets wait? There is no shaper, here or above. */
static bool paqm_never_waits(struct Qdisc *sch, const struct paqm_config *cfg)
{
	return !paqm_shapes(cfg) && sch->parent == TC_H_ROOT && paqm_takes_all(qdisc_dev(sch));
}

static int paqm_change(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct paqm_sched_data *q = qdisc_priv(sch);
	struct paqm_config cfg = q->cfg;
	struct paqm_flows table = {};
	struct paqm_fb *fb = q->fb;
	const u8 *key = NULL;
	bool lowers, tell, news;
	u32 source;
	int err;

	if (opt) {
		err = paqm_parse(opt, &cfg, &key, extack);
		if (err)
			return err;
	}
	if (!paqm_shapes(&cfg) && paqm_link_rate(sch, &source) > PAQM_BANDWIDTH_MAX * 8) {
		NL_SET_ERR_MSG(extack, "paqm: a link above 800gbit needs a bandwidth");
		return -ERANGE;
	}
	if (!q->flows.flow || cfg.flows != q->cfg.flows || paqm_reseeds(q, &cfg)) {
		err = paqm_flows_alloc(&table, cfg.flows);
		if (err) {
			NL_SET_ERR_MSG(extack, "paqm: no memory for so many flows");
			return err;
		}
	}
	if (cfg.weights == PAQM_WEIGHTS_HOST && !q->hosts) { /* it stays until the end */
		struct paqm_hosts *hosts = kvzalloc(sizeof(*hosts), GFP_KERNEL_ACCOUNT);

		if (!hosts) {
			NL_SET_ERR_MSG(extack, "paqm: no memory to tell hosts apart");
			err = -ENOMEM;
			goto out;
		}
		WRITE_ONCE(q->hosts, hosts);
	}
	tell = paqm_tells(&cfg);
	if ((tell || key) && !fb) { /* it keeps the key */
		fb = paqm_fb_create(qdisc_dev(sch));
		if (!fb) {
			err = -ENOMEM;
			goto out;
		}
		/* stays until the end: dumps read it, perhaps without RTNL */
		smp_store_release(&q->fb, fb);
	}
	if (fb) {
		err = paqm_fb_set_echo(fb, tell && !cfg.rtt);
		if (err) {
			NL_SET_ERR_MSG(extack,
				       "paqm: no raw socket to measure the rtt with; give one");
			goto out;
		}
		paqm_fb_set_carrier(fb, cfg.feedback);
		paqm_fb_set_prefixes(fb, cfg.prefix, cfg.n_prefixes);
		if (key)
			paqm_fb_set_key(fb, cfg.key_id, key);
	}
	news = !q->flows.flow || cfg.bandwidth != q->cfg.bandwidth;
	lowers = paqm_lowers(cfg.limit, q->cfg.limit) ||
		 paqm_lowers(cfg.media_limit, q->cfg.media_limit) ||
		 paqm_lowers(cfg.elastic_limit, q->cfg.elastic_limit);
	paqm_apply(sch, &cfg, &table);
	if (lowers)
		paqm_trim(sch);
	if (fb && table.flow) /* notices that wait point into the old one */
		paqm_fb_flush(fb);
	if (news && paqm_never_waits(sch, &cfg))
		NL_SET_ERR_MSG(extack,
			       "paqm: this device (Wi-Fi, veth, bridge, tunnel, ifb, PPPoE, ...) never lets packets wait here; give a bandwidth, less than what it can send");
	err = 0;
out:
	paqm_flows_free(&table);
	return err;
}

static LIST_HEAD(paqm_instances); /* RTNL */

/* A device comes up, or its link has another speed: whose capacity that is must know. */
static int paqm_device_event(struct notifier_block *nb, unsigned long event, void *info)
{
	struct net_device *dev = netdev_notifier_info_to_dev(info);
	struct paqm_flows none = {};
	struct paqm_config cfg;
	struct paqm_sched_data *q;

	ASSERT_RTNL();
	if (event != NETDEV_UP && event != NETDEV_CHANGE)
		return NOTIFY_DONE;
	list_for_each_entry(q, &paqm_instances, list) {
		if (qdisc_dev(q->sch) != dev ||
		    (q->cfg.bandwidth && q->cfg.bandwidth != PAQM_BANDWIDTH_AUTO))
			continue;
		cfg = q->cfg;
		paqm_apply(q->sch, &cfg, &none);
	}
	return NOTIFY_DONE;
}

static struct notifier_block paqm_device_notifier = {
	.notifier_call = paqm_device_event,
};

/* Is it one of several, each below a transmit queue of the device (mq and the like)? */
static bool paqm_one_of_several(struct Qdisc *sch)
{
	const struct Qdisc *root = rtnl_dereference(qdisc_dev(sch)->qdisc);

	return root && root->flags & TCQ_F_MQROOT &&
	       TC_H_MAJ(sch->parent) == TC_H_MAJ(root->handle);
}

static int paqm_init(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct paqm_sched_data *q = qdisc_priv(sch);
	u64 now = ktime_get_ns();
	int err;

	/* destroy() runs after a failure too: first what it undoes */
	q->sch = sch;
	INIT_LIST_HEAD(&q->list);
	mutex_init(&q->ctl_lock);
	INIT_WORK(&q->outer_work, paqm_outer_work);
	paqm_hrtimer_setup(&q->outer_timer, paqm_outer_timer);
	paqm_hrtimer_setup(&q->inner_timer, paqm_inner_timer);
	paqm_auto_setup(q);
	qdisc_watchdog_init(&q->watchdog, sch);

	spin_lock_init(&q->top_lock);
	get_random_bytes(q->rules.key, sizeof(q->rules.key));
	q->boot = get_random_u32();
	q->created = now;
	q->room_since = now;
	/* a queue that is put under flows counts them before it tells the first one */
	q->event_stamp = now;
	q->round_stamp = now;
	q->idle_since = now;
	q->max_every = 1;
	q->share_now = PAQM_Q16_ONE / 2;
	q->share_next = q->share_now;
	q->split = q->share_now;
	q->credit_q16 = PAQM_Q16_ONE;
	q->mean_len = 1000;
	q->notice_turn = 1;
	q->notice_gap_ns = NSEC_PER_SEC / PAQM_NOTICES_FREE;
	q->law.ecf.said.value = PAQM_F32_ONE;
	q->cfg = paqm_defaults;
	q->cfg.router_id = get_random_u64() | 1;
	sch->limit = U32_MAX; /* the limit counts bytes */
	err = paqm_isolate_init(q);
	if (err)
		return err;
	err = tcf_block_get(&q->block, &q->filter_list, sch, extack);
	if (err)
		return err;
	err = paqm_change(sch, opt, extack);
	if (err)
		return err;
	list_add(&q->list, &paqm_instances);
	if (paqm_one_of_several(sch))
		NL_SET_ERR_MSG(extack,
			       "paqm: each transmit queue advises and shapes by itself, as if it were the whole device; as root there is one");
	return 0;
}

static void paqm_reset(struct Qdisc *sch)
{
	struct paqm_sched_data *q = qdisc_priv(sch);
	struct Qdisc *child = rtnl_dereference(q->child);

	if (q->flowq) {
		WRITE_ONCE(q->over_purged, q->over_purged + q->drr[PAQM_MEDIA].qlen);
		paqm_drr_purge(q, PAQM_MEDIA);
		paqm_drr_purge(q, PAQM_ELASTIC);
	}
	paqm_free_list(q, &q->queue[PAQM_MEDIA]);
	paqm_free_list(q, &q->queue[PAQM_ELASTIC]);
	if (child)
		qdisc_reset(child);
	q->sched.lead = 0;
	q->next_tx = 0;
	paqm_end_overload(q, ktime_get_ns());
	q->stalled = false;
	if (sch->q.qlen)
		WRITE_ONCE(q->idle_since, ktime_get_ns());
	qdisc_watchdog_cancel(&q->watchdog);
}

static void paqm_destroy(struct Qdisc *sch)
{
	struct paqm_sched_data *q = qdisc_priv(sch);

	list_del(&q->list);
	tcf_block_put(q->block);
	WRITE_ONCE(q->awake, false);
	qdisc_watchdog_cancel(&q->watchdog);
	hrtimer_cancel(&q->inner_timer);
	hrtimer_cancel(&q->auto_timer);
	paqm_outer_stop(q);
	paqm_fb_destroy(q->fb);
	paqm_flows_free(&q->flows);
	kvfree(q->flowq);
	kvfree(q->hosts);
	qdisc_put(rtnl_dereference(q->child));
}

static int paqm_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	struct paqm_sched_data *q = qdisc_priv(sch);

	struct tc_paqm_prefix prefix[PAQM_PREFIXES];
	u32 n;

	spin_lock(&q->top_lock);
	n = q->cfg.n_prefixes;
	memcpy(prefix, q->cfg.prefix, sizeof(prefix));
	spin_unlock(&q->top_lock);
	return paqm_dump_options(&q->cfg, prefix, n, skb);
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
	int err;

	BUILD_BUG_ON(PAQM_HIST_SIZE != PAQM_HIST_BINS);
	paqm_wq = alloc_workqueue("paqm", WQ_UNBOUND | WQ_HIGHPRI, 0);
	if (!paqm_wq)
		return -ENOMEM;
	err = register_netdevice_notifier(&paqm_device_notifier);
	if (err)
		goto no_notifier;
	err = register_qdisc(&paqm_qdisc_ops);
	if (err)
		goto no_qdisc;
	return 0;

no_qdisc:
	unregister_netdevice_notifier(&paqm_device_notifier);
no_notifier:
	destroy_workqueue(paqm_wq);
	return err;
}

static void __exit paqm_module_exit(void)
{
	unregister_qdisc(&paqm_qdisc_ops);
	unregister_netdevice_notifier(&paqm_device_notifier);
	destroy_workqueue(paqm_wq);
}

module_init(paqm_module_init);
module_exit(paqm_module_exit);

MODULE_DESCRIPTION("P-AQM: two queues, rate feedback to media senders");
MODULE_AUTHOR("The P-AQM project");
MODULE_LICENSE("GPL");
MODULE_VERSION("0.1.0");
