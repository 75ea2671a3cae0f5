// SPDX-License-Identifier: GPL-2.0
/* Puts a configuration of sch_paqm in force. RTNL, ctl_lock; the datapath's part under its lock. */
#include <linux/ethtool.h>
#include <linux/netdevice.h>
#include <linux/random.h>
#include "core/paqm_link.h"
#include "paqm_capacity.h"
#include "paqm_compat.h"
#include "paqm_config.h"
#include "paqm_derive.h"
#include "paqm_event.h"
#include "paqm_split.h"

/* Capacity without `bandwidth`: the link speed, 1 Gbit/s where it is not known. */
u64 paqm_link_rate(struct Qdisc *sch, u32 *source)
{
	struct ethtool_link_ksettings link;

	*source = PAQM_CAPACITY_DEVICE;
	if (!paqm_link_ksettings(qdisc_dev(sch), &link) && link.base.speed &&
	    link.base.speed != SPEED_UNKNOWN)
		return (u64)link.base.speed * 1000000;
	*source = PAQM_CAPACITY_GUESS;
	return 1000000000;
}

/* Are senders told by messages? */
bool paqm_tells(const struct paqm_config *cfg)
{
	return paqm_icmp_type(cfg->feedback);
}

/*
 * Does it begin a new sequence of random numbers, and with it a new key of the flows' hash? Also
 * without a seed after one: that key is known.
 */
bool paqm_reseeds(const struct paqm_sched_data *q, const struct paqm_config *cfg)
{
	return cfg->seed != q->cfg.seed;
}

/* Flows fall into the same sets again where there is a seed. Under the qdisc lock. */
static void paqm_reseed(struct paqm_sched_data *q, u64 seed)
{
	struct rnd_state rnd;

	if (!seed) {
		get_random_bytes(q->rules.key, sizeof(q->rules.key));
		return;
	}
	prandom_seed_state(&q->rnd, seed);
	prandom_seed_state(&rnd, seed);
	prandom_bytes_state(&rnd, q->rules.key, sizeof(q->rules.key));
}

/* The rules of the recogniser and the framing of the link; under the qdisc lock. */
static void paqm_set_rules(struct paqm_sched_data *q, const struct paqm_config *cfg)
{
	q->rules.protocol = cfg->classify == PAQM_CLASSIFY_PROTOCOL;
	q->settled = q->rules.protocol ? PAQM_SETTLED_PROTOCOL : PAQM_SETTLED_AUTO;
	paqm_rules_dscp(&q->rules, cfg->dscp_media, cfg->dscp_elastic);
	if (q->isolate != cfg->isolate) {
		q->isolate_ns = ktime_get_ns();
		q->alone_ahead = false; /* what waits in the list of the class did not join alone */
	}
	WRITE_ONCE(q->isolate, cfg->isolate);
	BUILD_BUG_ON((int)PAQM_LINK_ATM != PAQM_LAYER_ATM || (int)PAQM_LINK_PTM != PAQM_LAYER_PTM);
	q->link.overhead = cfg->overhead;
	q->link.mpu = cfg->mpu;
	q->link.layer = cfg->linklayer;
	q->link_counts = paqm_link_counts(&q->link);
	q->flows.age_ticks = paqm_flow_clock((u64)cfg->flow_age * NSEC_PER_USEC);
	WRITE_ONCE(q->tell, paqm_tells(cfg)); /* tc reads these two */
	WRITE_ONCE(q->stamp, cfg->feedback == PAQM_FEEDBACK_INBAND);
	if (paqm_reseeds(q, cfg))
		paqm_reseed(q, cfg->seed);
}

/*
 * Shape to another rate, bytes/s; 0: no more. Under the qdisc lock. What is left of the packet that
 * was sent last takes its time at the new rate: were it forgiven, each of many changes, as of a
 * program that adapts the rate, would let a packet through beyond any rate.
 */
static void paqm_set_shaper(struct paqm_sched_data *q, u64 shaper, u64 now)
{
	struct tc_ratespec spec = {
		.rate = min_t(u64, shaper, U32_MAX),
		.linklayer = TC_LINKLAYER_ETHERNET,
	};
	u64 left = q->shaper.rate_bytes_ps && q->next_tx > now ? q->next_tx - now : 0;

	if (shaper) {
		left = paqm_muldiv(left, q->shaper.rate_bytes_ps, shaper);
		psched_ratecfg_precompute(&q->shaper, &spec, shaper);
	} else {
		q->shaper.rate_bytes_ps = 0;
		left = 0; /* what waits has nothing to wait for: the watchdog goes off at once */
	}
	q->next_tx = now + left;
	q->tx_mask = (1ULL << q->shaper.shift) - 1;
	q->tx_part = 0;
}

/*
 * Put @cfg in force. RTNL; @table, if it has memory, takes the place of the flow table
 * and returns with the old memory.
 */
void paqm_apply(struct Qdisc *sch, const struct paqm_config *cfg, struct paqm_flows *table)
{
	struct paqm_sched_data *q = qdisc_priv(sch);
	u64 shaper = cfg->bandwidth == PAQM_BANDWIDTH_AUTO ? 0 : cfg->bandwidth;
	u32 source = PAQM_CAPACITY_GIVEN;
	u64 before, capacity = shaper ? shaper * 8 : paqm_link_rate(sch, &source);
	bool was_auto = paqm_auto_on(q);

	if (capacity > PAQM_BANDWIDTH_MAX * 8) { /* it became so fast; creation refuses that */
		net_warn_ratelimited("%s: paqm counts on 800 Gbit/s of this link\n",
				     qdisc_dev(sch)->name);
		capacity = PAQM_BANDWIDTH_MAX * 8;
	}

	mutex_lock(&q->ctl_lock);
	if (table->flow && q->flows.flow && !paqm_reseeds(q, cfg))
		paqm_flows_copy(table, &q->flows, paqm_flow_clock(ktime_get_ns()));
	/* flows that share a rate do so until the next round; nothing of that is left then */
	if (q->hosts && (cfg->weights != PAQM_WEIGHTS_HOST || paqm_reseeds(q, cfg)))
		paqm_hosts_clear(q->hosts);
	/* before the other options: paqm_dump() takes this lock only */
	spin_lock(&q->top_lock);
	memcpy(q->cfg.prefix, cfg->prefix, sizeof(cfg->prefix));
	q->cfg.n_prefixes = cfg->n_prefixes;
	spin_unlock(&q->top_lock);
	sch_tree_lock(sch);
	if (q->fb)
		paqm_fb_release(q->fb, NULL, 0);
	if (table->flow)
		paqm_flows_swap(&q->flows, table);
	paqm_set_rules(q, cfg);
	q->cfg = *cfg;
	if (shaper != q->shaper.rate_bytes_ps)
		paqm_set_shaper(q, shaper, ktime_get_ns());
	if (sch->q.qlen) /* it may wait for the moment of the old rate */
		qdisc_watchdog_schedule_ns(&q->watchdog, q->next_tx);
	before = q->capacity;
	WRITE_ONCE(q->capacity_source, source);
	capacity = paqm_auto_apply(q, was_auto, capacity);
	paqm_capacity_set(q, capacity, ktime_get_ns());
	sch_tree_unlock(sch);
	paqm_derive_period(q);
	paqm_derive_inner(q);
	paqm_derive_queues(q);
	if (!q->n_media) /* else the next round does */
		paqm_publish_paces(q, ktime_get_ns());
	if (q->fb)
		paqm_fb_set_rate(q->fb, paqm_fb_budget(capacity, cfg->notice_part));
	if (before && q->awake &&
	    max(before, capacity) - min(before, capacity) >
		    paqm_muldiv(before, PAQM_SPLIT_EVENT_Q16, PAQM_Q16_ONE))
		paqm_raise(q, PAQM_EV_CAPACITY);
	mutex_unlock(&q->ctl_lock);
}
