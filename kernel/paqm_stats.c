// SPDX-License-Identifier: GPL-2.0
/* Statistics of sch_paqm, as tc shows them. Any context that may dump: no lock, no sleep. */
#include <linux/slab.h>
#include <net/gen_stats.h>
#include "paqm_capacity.h"
#include "paqm_class.h"
#include "paqm_config.h"
#include "paqm_inband.h"
#include "paqm_split.h"

/* What of the counts has room in 32 bits, where they stood first. */
static void paqm_low_halves(struct tc_paqm_xstats *st, const struct tc_paqm_counts *n)
{
	u32 i;

	for (i = 0; i < PAQM_HIST_BINS; i++)
		st->over_hist[i] = n->over_hist[i];
	st->notices_owed = n->notices_owed;
	st->notices_unfit = n->notices_unfit;
	st->inband_kept = n->inband_kept;
	st->inband_lowered = n->inband_lowered;
	st->inband_left = n->inband_left;
	st->table_overflow = n->table_overflow;
	st->not_ip = n->not_ip;
	st->filter_drop = n->filter_drop;
	st->filter_taken = n->filter_taken;
	st->flows_seen = n->flows_seen;
	st->flows_rtp = n->flows_rtp;
	st->flows_not_rtp = n->flows_not_rtp;
	st->packets_unsure = n->packets_unsure;
	st->packets_small = n->packets_small;
	st->packets_small_over = n->packets_small_over;
	st->packets_dscp = n->packets_dscp;
	st->packets_tagged = n->packets_tagged;
	st->packets_tunnel = n->packets_tunnel;
	st->packets_fragment = n->packets_fragment;
	st->over_packets = n->over_packets;
	st->over_strangers = n->over_strangers;
	st->over_drops = n->over_drops;
	st->over_full = n->over_full;
	st->over_marks = n->over_marks;
	st->packets_control = n->packets_control;
	st->notices_sent = n->notices_sent;
	st->notices_limited = n->notices_limited;
	st->notices_ring = n->notices_ring;
	st->notices_refused = n->notices_refused;
	st->notices_failed = n->notices_failed;
	st->echo_unknown = n->echo_unknown;
}

int paqm_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	struct paqm_sched_data *q = qdisc_priv(sch);
	u64 now = ktime_get_ns(), idle = READ_ONCE(q->idle_ns), since;
	struct paqm_fb *fb = smp_load_acquire(&q->fb); /* pairs with the release in change */
	struct paqm_fb_stats notices = {};
	struct tc_paqm_xstats *st;
	struct tc_paqm_counts *n;
	int err;

	st = kcalloc(1, sizeof(*st), GFP_ATOMIC); /* perhaps under RCU; large for the stack */
	if (!st)
		return -ENOMEM;
	n = &st->counts;
	st->router_id = READ_ONCE(q->cfg.router_id);
	st->capacity = READ_ONCE(q->capacity);
	st->fair_rate = READ_ONCE(q->fair);
	st->outer_rate = READ_ONCE(q->outer_rate);
	st->erf_flows_q16 = READ_ONCE(q->law.erf.flows_q16);
	st->uptime_ns = now - q->created;
	st->boot = q->boot;
	st->seq = READ_ONCE(q->rounds);
	st->share_q16 = READ_ONCE(q->share_now);
	st->period_us = READ_ONCE(q->period_us);
	st->skip_us = READ_ONCE(q->skip_us);
	st->rtt_us = READ_ONCE(q->rtt_us);
	st->interval_us = READ_ONCE(q->interval_ns) / NSEC_PER_USEC;
	st->trim_q24 = READ_ONCE(q->trim);
	st->ecf = READ_ONCE(q->law.ecf.said.value);
	st->ecf_md = READ_ONCE(q->ecf_kind[PAQM_ECF_MD]);
	st->ecf_ai = READ_ONCE(q->ecf_kind[PAQM_ECF_AI]);
	st->ecf_hold = READ_ONCE(q->ecf_kind[PAQM_ECF_HOLD]);
	st->rounds = READ_ONCE(q->rounds);
	st->event_flow = READ_ONCE(q->event_rounds[PAQM_EV_FLOW]);
	st->event_split = READ_ONCE(q->event_rounds[PAQM_EV_SPLIT]);
	st->event_capacity = READ_ONCE(q->event_rounds[PAQM_EV_CAPACITY]);
	st->event_queue = READ_ONCE(q->event_rounds[PAQM_EV_QUEUE]);
	n->notices_owed = READ_ONCE(q->notices_owed);
	n->notices_unfit = READ_ONCE(q->notices_unfit);
	n->inband_kept = READ_ONCE(q->stamped[PAQM_STAMP_KEPT]);
	n->inband_lowered = READ_ONCE(q->stamped[PAQM_STAMP_LOWERED]);
	n->inband_left = READ_ONCE(q->stamped[PAQM_STAMP_LEFT]);
	st->table_slots = paqm_flows_slots(&q->flows);
	st->table_used = READ_ONCE(q->census.used);
	n->table_overflow = READ_ONCE(q->flows.overflow);
	st->timer_slips = READ_ONCE(q->slips);
	st->overload = READ_ONCE(q->overload);
	st->transfers = READ_ONCE(q->transfers);
	st->strikes = READ_ONCE(q->census.policed);
	n->not_ip = READ_ONCE(q->not_ip);
	n->filter_drop = READ_ONCE(q->filter_drop);
	n->filter_taken = READ_ONCE(q->filter_taken);
	st->capacity_source = READ_ONCE(q->capacity_source);
	n->flows_seen = READ_ONCE(q->flows.seen);
	n->flows_rtp = READ_ONCE(q->flows.rtp);
	n->flows_not_rtp = READ_ONCE(q->flows.not_rtp);
	n->packets_unsure = READ_ONCE(q->unsure);
	n->packets_small = READ_ONCE(q->small);
	n->packets_small_over = READ_ONCE(q->small_over);
	n->packets_dscp = READ_ONCE(q->dscp);
	n->packets_tagged = READ_ONCE(q->tagged);
	n->packets_tunnel = READ_ONCE(q->tunnel);
	n->packets_fragment = READ_ONCE(q->fragment);
	st->overload_ns = READ_ONCE(q->overload_ns);
	since = READ_ONCE(q->overload_since);
	if (READ_ONCE(q->overloaded) && since < now) /* and it goes on */
		st->overload_ns += now - since;
	st->over_queues = READ_ONCE(q->drr[PAQM_MEDIA].busy);
	/* those that joined: all that have left, and that wait */
	n->over_packets = READ_ONCE(q->over_sent) + READ_ONCE(q->drr[PAQM_MEDIA].drops) +
			  READ_ONCE(q->over_full) + READ_ONCE(q->drr[PAQM_MEDIA].qlen) +
			  READ_ONCE(q->over_purged);
	n->over_strangers = READ_ONCE(q->over_strangers);
	n->over_drops = READ_ONCE(q->drr[PAQM_MEDIA].drops);
	n->over_full = READ_ONCE(q->over_full);
	n->over_marks = READ_ONCE(q->drr[PAQM_MEDIA].marks);
	st->over_qlen = READ_ONCE(q->drr[PAQM_MEDIA].qlen);
	st->over_backlog = READ_ONCE(q->drr[PAQM_MEDIA].backlog);
	st->flows_deaf = READ_ONCE(q->census.deaf);
	st->over_sent = READ_ONCE(q->over_sent);
	st->over_sojourn_ns = READ_ONCE(q->over_sojourn_ns);
	memcpy(n->over_hist, q->over_hist, sizeof(n->over_hist));
	st->flows_new = READ_ONCE(q->census.newcomers);
	n->packets_control = READ_ONCE(q->control);
	st->newcomers_q16 = READ_ONCE(q->credit_q16);
	paqm_class_stats(q, PAQM_MEDIA, &st->media, &n->media);
	paqm_class_stats(q, PAQM_ELASTIC, &st->elastic, &n->elastic);
	st->phi_q16 = PAQM_Q16_ONE - paqm_split(q);
	since = READ_ONCE(q->idle_since);
	if (!READ_ONCE(sch->q.qlen) && since < now) /* it may have begun since we looked */
		idle += now - since;
	st->idle_ns = idle;
	st->room_bytes = paqm_capacity_room(q, now);
	if (fb)
		paqm_fb_get_stats(fb, &notices);
	n->notices_sent = notices.sent;
	n->notices_limited = notices.limited;
	n->notices_ring = notices.ring;
	n->notices_refused = notices.refused;
	n->notices_failed = notices.failed;
	st->rtt_mean_us = READ_ONCE(q->rtt.mean_us);
	st->rtt_max_us = READ_ONCE(q->rtt.max_us);
	st->rtt_samples = READ_ONCE(q->rtt.sources);
	st->echo_sent = notices.echo_sent;
	st->echo_answered = notices.echo_answered;
	st->echo_limited = notices.echo_limited;
	n->echo_unknown = notices.echo_unknown;
	st->echo_late = notices.echo_late;
	st->echo_refused = notices.echo_refused;
	st->echo_failed = notices.echo_failed;
	if (paqm_auto_on(q))
		st->headroom_q16 = READ_ONCE(q->auto_headroom) >> 8;
	paqm_low_halves(st, n);
	d->compat_xstats = 0; /* a message has no room for it twice, as very old tc wants it */
	err = gnet_stats_copy_app(d, st, sizeof(*st));
	kfree(st);
	return err;
}
