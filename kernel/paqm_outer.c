// SPDX-License-Identifier: GPL-2.0
/*
 * Outer loop of sch_paqm: every period, and at once on events, a round measures the flows, computes
 * split and fair rate, and publishes them as advice, weights and paces. It calls what does these
 * steps, in this order; none of them calls it.
 *
 * Process context under ctl_lock; the qdisc lock is taken only to publish.
 */
#include <linux/ktime.h>
#include <linux/workqueue.h>
#include "core/paqm_bucket.h"
#include "core/paqm_laws.h"
#include "core/paqm_maxmin.h"
#include "core/paqm_msg.h"
#include "core/paqm_sched.h"
#include "paqm_capacity.h"
#include "paqm_class.h"
#include "paqm_derive.h"
#include "paqm_event.h"
#include "paqm_outer.h"
#include "paqm_publish.h"
#include "paqm_split.h"
#include "paqm_stranger.h"
#include "paqm_trace.h"

#define PAQM_OUTER_GAP_NS NSEC_PER_MSEC /* between two looks at what is due, at least */
#define PAQM_EVENT_GAP_NS (50 * NSEC_PER_MSEC) /* at most one event round in this time */
#define PAQM_FEW_ELASTIC 32 /* of more flows one that leaves changes little: no round of its own */
#define PAQM_WALK_SHARE 20 /* walks over the flow table take a 20th of a CPU at most */
#define PAQM_WALK_GAP_MAX_NS (2 * NSEC_PER_SEC) /* a walk may have been held up once */
#define PAQM_MOUSE_Q24 PAQM_Q24(10, 100) /* of the mean elastic flow: less is a mouse */
#define PAQM_MOUSE_SHARE_DIV 100	/* or less than a hundredth of a fair share */
#define PAQM_GRAIN_BYTES 6000	/* four packets more or less in a window are noise */
#define PAQM_ANSWER_NS NSEC_PER_SEC /* senders have answered advice by then, even far ones */
#define PAQM_TRIM_HOLD_NS (PAQM_ANSWER_NS / 2 * 3) /* no trim after a change */
#define PAQM_ERF_RATE_MIN 10000 /* bit/s: floor of ERF as published */
#define PAQM_NEWS_SHIFT 5 /* a rate that changes by less than a 32nd is not worth a message */
#define PAQM_MIDDLING_BPS 20000000ULL	/* from this rate and number of flows on */
#define PAQM_MIDDLING_FLOWS 20		/* half the headroom is enough */
#define PAQM_LARGE_BPS 100000000ULL	/* and from here a quarter */
#define PAQM_LARGE_FLOWS 100
/* Score of flows that find their rate by the queue: a period with one adds this, others take 1. */
#define PAQM_SEEKING_STEP 8
#define PAQM_SEEKING_MOST 160
#define PAQM_SEEKING_ON 40  /* from here on they do, */
#define PAQM_SEEKING_OFF 16 /* to here */

/* So many media flows on so fast a link? With hysteresis: a fifth and a tenth less keep it so. */
static bool paqm_crowded(const struct paqm_sched_data *q, bool was, u64 bps, u32 flows)
{
	if (was) {
		bps = paqm_muldiv(bps, 9, 10);
		flows = flows / 10 * 8;
	}
	return q->capacity >= bps && q->n_media >= flows;
}

/*
 * Has media waited, and do some flows find their rate by the queue? Flows that follow exceed it in
 * a few periods after a change only; others do so again and again.
 */
static void paqm_note_queued(struct paqm_sched_data *q)
{
	u32 sent = READ_ONCE(q->over_sent);

	q->queued_then = q->queued_now;
	q->queued_now = sent != q->seeking_mark || READ_ONCE(q->stood);
	WRITE_ONCE(q->stood, false);
	if (sent != q->seeking_mark)
		q->seeking = min(q->seeking + PAQM_SEEKING_STEP, PAQM_SEEKING_MOST);
	else if (q->seeking)
		q->seeking--;
	q->seeking_mark = sent;
	q->sought = q->seeking >= (q->sought ? PAQM_SEEKING_OFF : PAQM_SEEKING_ON);
}

/*
 * Target utilisation of the media share, Q24. Beside elastic traffic half of the
 * headroom is enough: a media burst is served at the rate of the link, not of
 * the share, and the link stays full anyway. So it is with many flows on a fast
 * link, whose bursts even out (spec section 4.7); with hysteresis, or flows that
 * come and go would make all the others move. A flow that finds its rate by the queue
 * needs room to probe.
 */
static u32 paqm_target_util(struct paqm_sched_data *q)
{
	u32 rho = q->cfg.target_util;

	if (!q->cfg.adapt_util)
		return paqm_auto_util(q, rho);
	q->large = paqm_crowded(q, q->large, PAQM_LARGE_BPS, PAQM_LARGE_FLOWS);
	q->middling = paqm_by_demands(q) &&
		      paqm_crowded(q, q->middling, PAQM_MIDDLING_BPS, PAQM_MIDDLING_FLOWS);
	if (q->large)
		rho += (PAQM_Q24_ONE - rho) / 4 * 3;
	else if (q->n_elastic || q->middling)
		rho += (PAQM_Q24_ONE - rho) / 2;
	else if (q->sought && paqm_by_demands(q))
		rho -= (PAQM_Q24_ONE - rho) / 4;
	return paqm_auto_util(q, rho);
}

/* Media bytes on the link that arrived; what policing dropped does not count. */
static u64 paqm_media_arrived(const struct paqm_sched_data *q)
{
	const struct paqm_queue *queue = &q->queue[PAQM_MEDIA];

	return READ_ONCE(queue->load) + READ_ONCE(queue->beyond);
}

/* Time that media packets have waited, all of them together, ns. */
static u64 paqm_media_waited(const struct paqm_sched_data *q)
{
	return READ_ONCE(q->queue[PAQM_MEDIA].st.sojourn_ns) + READ_ONCE(q->over_sojourn_ns);
}

/* Measure what happened since the marks. */
static void paqm_measure(struct paqm_sched_data *q, u64 now, struct paqm_walk *w)
{
	struct tc_paqm_class_stats *u = &q->queue[PAQM_MEDIA].st;
	u64 bytes = paqm_media_arrived(q) - q->mark_bytes[PAQM_MEDIA];
	u64 elastic = READ_ONCE(q->queue[PAQM_ELASTIC].load) - q->mark_bytes[PAQM_ELASTIC];
	u64 window = now - q->mark_stamp;
	u64 packets = READ_ONCE(u->sent_packets) - q->mark_packets;
	u64 all = READ_ONCE(q->queue[PAQM_ELASTIC].st.sent_packets) - q->mark_others + packets;
	u64 notices;
	u64 sent = READ_ONCE(u->sent_bytes) - q->mark_sent;
	u64 waited = READ_ONCE(q->queue[PAQM_ELASTIC].st.sojourn_ns) - q->mark_waited;

	w->window_ns = q->mark_stamp ? window : 0;
	if (window > 8ULL * PAQM_PERIOD_MAX_US * NSEC_PER_USEC)
		w->window_ns = 0; /* marks from before a sleep */
	if (w->window_ns < w->window_min_ns)
		return; /* too short to mean anything: the last figures stand */
	/* the published laws swing by themselves: there a new rate is half believed, always */
	w->grain = paqm_by_demands(q) ? paqm_rate_bps(PAQM_GRAIN_BYTES, window) :
						   U64_MAX;
	q->outer_rate = paqm_rate_bps(bytes, window);
	q->stranger_then = q->stranger_rate;
	q->stranger_rate = paqm_rate_bps(READ_ONCE(q->stranger_bytes) - q->mark_strangers, window);
	q->small_rate = paqm_rate_bps(READ_ONCE(q->small_bytes) - q->mark_small, window);
	q->small_mean = max((3 * q->small_mean + q->small_rate) / 4, q->small_rate / 2);
	q->elastic_rate = paqm_rate_bps(elastic, window);
	if (q->elastic_rate > 2 * q->elastic_mean)
		q->elastic_mean = q->elastic_rate;
	else
		q->elastic_mean = (3 * q->elastic_mean + q->elastic_rate) / 4;
	paqm_measure_calm(q, window, now);
	q->elastic_wait_ns = all > packets ? paqm_div64(waited, all - packets) : 0;
	notices = paqm_muldiv(all, NSEC_PER_SEC, window * PAQM_NOTICE_PACKETS);
	WRITE_ONCE(q->notice_gap_ns,
		   paqm_div64(NSEC_PER_SEC, max_t(u64, notices, PAQM_NOTICES_FREE)));
	if (packets)
		q->mean_len = (q->mean_len * 3 + min_t(u64, paqm_div64(sent, packets), 65535)) / 4;
	/* Little's law: as many bytes as wait in the mean arrive in the mean time of waiting */
	q->queued = paqm_muldiv(paqm_media_waited(q) - q->mark_media_waited, q->mean_len, window);
}

static void paqm_set_marks(struct paqm_sched_data *q, u64 now)
{
	paqm_flows_mark(&q->flows);
	q->mark_bytes[PAQM_MEDIA] = paqm_media_arrived(q);
	q->mark_strangers = READ_ONCE(q->stranger_bytes);
	q->mark_small = READ_ONCE(q->small_bytes);
	q->mark_bytes[PAQM_ELASTIC] = READ_ONCE(q->queue[PAQM_ELASTIC].load);
	q->mark_sent = READ_ONCE(q->queue[PAQM_MEDIA].st.sent_bytes);
	q->mark_packets = READ_ONCE(q->queue[PAQM_MEDIA].st.sent_packets);
	q->mark_others = READ_ONCE(q->queue[PAQM_ELASTIC].st.sent_packets);
	q->mark_waited = READ_ONCE(q->queue[PAQM_ELASTIC].st.sojourn_ns);
	q->mark_media_waited = paqm_media_waited(q);
	q->mark_busy = paqm_elastic_busy(q, now);
	q->mark_stamp = now;
}

/*
 * What senders leave of their rate, and what limited flows keep for growth, is offered to flows
 * that use theirs; what is held for the former is not. Where some do not follow, these take it
 * already: then the trim only makes sure that the others get their share.
 */
static u32 paqm_find_trim(const struct paqm_sched_data *q, u64 cap, bool deaf, u32 backlog,
			  u32 n_out)
{
	const struct paqm_census *c = &q->census;
	u64 apart = q->stranger_rate + q->small_rate;
	u64 rate = q->outer_rate - min(apart, q->outer_rate) + q->stranger_mean + c->held;

	if (deaf)
		return paqm_mm_trim(q->trim, c->follow_rate,
				    paqm_muldiv(c->follow_q16, q->fair_base, PAQM_Q16_ONE),
				    backlog, n_out);
	if (!c->follow_q16)
		return 0;
	return paqm_mm_trim(q->trim, rate, cap, backlog, n_out);
}

static void paqm_trim_reset(struct paqm_sched_data *q, u64 now)
{
	q->trim = 0;
	q->trim_ns = now;
}

/* A sender that has not answered the last change yet does not undershoot: no rise before that. */
static void paqm_trim_step(struct paqm_sched_data *q, u32 trim, u64 now)
{
	if (q->slow)
		trim = min(trim, PAQM_TRIM_SLOW_Q24);
	if (trim < q->trim || now - q->trim_ns >= PAQM_TRIM_HOLD_NS)
		q->trim = trim;
}

/* Are two rates nearly the same? What flows answer to such a change is none of their rates. */
static bool paqm_about(u64 bps, u64 other)
{
	return max(bps, other) - min(bps, other) <= other / 16;
}

/*
 * The fair rate by the law in force. @events: what changed; @whole: a period was measured, without
 * which the published laws keep their values.
 */
static void paqm_solve(struct paqm_sched_data *q, unsigned long events, bool whole, u64 now)
{
	struct paqm_outer_params p = {
		.alpha_q24 = q->cfg.alpha,
		.beta_q24 = q->cfg.beta,
		.md_min_q24 = q->cfg.md_floor,
		.rate_min = q->cfg.erf_count ? PAQM_RATE_MIN : PAQM_ERF_RATE_MIN,
		.forced_md = q->cfg.forced_md,
		.ai_hold = q->cfg.ai_hold,
		.ai_q24 = q->cfg.ai_factor,
		.counted = q->cfg.erf_count,
		.fastest = q->cfg.erf_count && q->census.top.n ? q->census.top.flow[0].rate : 0,
	};
	u32 backlog = READ_ONCE(q->queue[PAQM_MEDIA].st.backlog);
	u64 link = paqm_media_capacity(q);
	/* what is in no flow goes with media, up to its budget, and is nobody's to use */
	u64 cu = link - (paqm_by_demands(q) ? min(q->small_mean, link / 2) : 0);
	u32 rho = paqm_target_util(q);
	u64 ceiling = paqm_mul_q24(cu, rho);
	struct paqm_outer_in in = {
		.cap = ceiling,
		.rate = q->outer_rate,
		.backlog = backlog,
		.target = q->overload_bytes / 2,
		.period_us = q->period_us,
		.flows = q->n_media,
		.packet = q->mean_len,
		.rtt_us = q->rtt_us,
		.link = cu,
		.queued = q->queued,
		.demand = q->asked_then.demand,
	};
	const struct paqm_law *law = paqm_law_of(q->cfg.law);
	u64 cap, before = q->fair_base;
	u64 deaf = q->census.deaf_q16;

	if (q->asked_then.trips)
		in.rtt_us = max_t(u64, div_u64(q->asked_then.trips_us, q->asked_then.trips), 1000);
	if (q->stranger_rate > before + before / 4)
		deaf += PAQM_Q16_ONE;

	if (law->rate) {
		q->fair = law->rate(&q->law, &p, &in, whole) ?: q->fair;
		q->fair_base = q->fair;
		if (law->relative)
			paqm_inc(&q->ecf_kind[q->law.ecf.said.kind]);
	} else {
		u32 n_out = paqm_media_target(q);

		/*
		 * Flows that do not follow fill the headroom, so half of it goes to the others;
		 * without the other half the queues of the former would never drain.
		 */
		if (q->isolate && (deaf || q->stranger_mean))
			rho = min_t(u64, rho + (PAQM_Q24_ONE - rho) / 2,
				    rho + paqm_muldiv(paqm_muldiv(deaf, before, PAQM_Q16_ONE) +
							      q->stranger_mean,
						      PAQM_Q24_ONE, cu));
		/* The gain of the queue term is that of the model, not of ECF/ERF. */
		cap = paqm_mm_capacity(cu, rho, PAQM_Q24(35, 100), n_out, backlog,
				       paqm_auto_drain(q));
		ceiling = paqm_mul_q24(cu, rho);
		q->fair_base = paqm_mm_solve(&q->census.mm, cap, PAQM_RATE_MIN, ceiling);
		if (events & (BIT(PAQM_EV_CAPACITY) | BIT(PAQM_EV_QUEUE)) ||
		    (events && !paqm_about(before, q->fair_base)))
			paqm_trim_reset(q, now);
		else if (whole)
			paqm_trim_step(q, paqm_find_trim(q, cap, deaf, backlog, n_out), now);
		q->fair = min(paqm_mm_trimmed(q->fair_base, q->trim), ceiling);
	}
	q->right = q->fair;
	/* a flow that takes what others leave of an equal division is not deaf */
	if (law->relative)
		q->right = max(q->fair, paqm_mm_solve(&q->census.mm, ceiling, PAQM_RATE_MIN,
						      ceiling));
	WRITE_ONCE(q->equal, paqm_div64(paqm_mm_trimmed(ceiling, q->trim),
					max(q->census.takers + q->newcomers, 1U)));
	q->fair_new = q->fair;
	if (paqm_by_demands(q) && q->census.newcomers > max(q->newcomers, 1U))
		q->fair_new = paqm_div64(q->fair * max(q->newcomers, 1U), q->census.newcomers);
}

/*
 * Has an event round nothing worth telling? Ordinary web traffic changes the split slightly many
 * times a second: messages about that would use up their budget.
 */
static bool paqm_no_news(const struct paqm_sched_data *q, unsigned long events)
{
	u64 told = q->fair_told;

	return !(events & ~BIT(PAQM_EV_SPLIT)) && q->rounds &&
	       max(told, q->fair) - min(told, q->fair) < told >> PAQM_NEWS_SHIFT;
}

/* Track the lowest rate told in the last second or so: senders may still be answering it. */
static void paqm_note_low(struct paqm_sched_data *q, u64 now)
{
	if (now - q->low_stamp >= PAQM_ANSWER_NS / 2) {
		q->low_then = q->low_now ?: q->right;
		q->low_now = q->right;
		q->low_stamp = now;
	}
	q->low_now = min(q->low_now, q->right);
}

/* The shortest window that is measured: of a period that is set so short, most of what is left. */
static u64 paqm_window_min(const struct paqm_sched_data *q)
{
	u64 tau2 = (u64)(q->period_us - min(q->skip_us, q->period_us)) * NSEC_PER_USEC;

	return tau2 < PAQM_WINDOW_MIN_NS ? tau2 - tau2 / 4 : PAQM_WINDOW_MIN_NS;
}

/*
 * Longest time between two messages to a flow that does not follow. What relative values have made
 * of a rate is gone when it expires, after 3 s at least: the sender would begin at its ceiling.
 */
static u32 paqm_pause_us(const struct paqm_sched_data *q)
{
	if (paqm_law_of(q->cfg.law)->relative)
		return min_t(u32, q->cfg.notice_pause, USEC_PER_SEC);
	return q->cfg.notice_pause;
}

/* What an elastic flow that wants it may have by the split in force, bit/s; 0: not known. */
static u64 paqm_elastic_each(const struct paqm_sched_data *q)
{
	if (!q->n_elastic || !q->census.elastic_q16)
		return 0;
	return paqm_muldiv(paqm_muldiv(q->capacity, PAQM_Q16_ONE - paqm_split(q), PAQM_Q16_ONE),
			   PAQM_Q16_ONE, q->census.elastic_q16);
}

/* What the share of a flow that is told 1 bit/s is on the link, Q24; 0 without messages. */
static u32 paqm_link_by_told(const struct paqm_sched_data *q)
{
	u64 ip = paqm_ip_rate(q, PAQM_Q24_ONE);

	if (!q->tell || !ip)
		return 0;
	return paqm_mm_untrimmed(paqm_muldiv(PAQM_Q24_ONE, PAQM_Q24_ONE, ip), q->trim);
}

/* One round of the outer loop. @events: what happened; @whole: a period has ended. */
static void paqm_round(struct paqm_sched_data *q, u64 now, unsigned long events, bool whole)
{
	u64 share_of_one = paqm_div64(q->capacity, q->n_media + q->n_elastic + 1);
	u64 mean_elastic = paqm_div64(q->elastic_rate, max(q->census.present, 1U));
	u32 old = paqm_split(q), new;
	struct paqm_walk w = {
		.now_tick = paqm_flow_clock(now),
		.window_min_ns = paqm_window_min(q),
		.fair = q->right_low,
		.fair_least = q->right_low,
		.fair_most = paqm_by_demands(q) ? q->right_high : max(q->right_high, q->equal),
		.equal = q->equal,
		.fair_new = q->fair_new,
		.elastic_each = paqm_elastic_each(q),
		.elastic_ticks = paqm_elastic_ticks(q),
		.mouse = max(paqm_mul_q24(mean_elastic, PAQM_MOUSE_Q24),
			     paqm_div64(share_of_one, PAQM_MOUSE_SHARE_DIV)),
		.police = q->cfg.police,
		.overloaded = READ_ONCE(q->overloaded) || READ_ONCE(q->drr[PAQM_MEDIA].qlen),
		.crowded = READ_ONCE(q->drr[PAQM_MEDIA].qlen),
		.max_every = max(1U, paqm_pause_us(q) / q->period_us),
		.hosts = paqm_hosts(q),
		.key = q->rules.key,
		.slow = q->slow,
		.rotating = q->rotating,
		.rare = q->census.rare,
	};
	u32 ev, qlen, backlog;
	bool heard = paqm_heard(q, now);

	if (paqm_by_demands(q)) {
		w.fair_least = paqm_mm_untrimmed(min3(q->right_low, q->low_now, q->low_then),
						 q->trim);
		w.answer_ticks = paqm_flow_clock(PAQM_ANSWER_NS);
		w.link_q24 = paqm_link_by_told(q);
		w.ip_part = q->ip_part;
	}
	if (q->fb)
		paqm_fb_rtt(q->fb, &q->rtt);
	paqm_derive_period(q);
	if (paqm_auto_round(q))
		paqm_derive_inner(q);
	/*
	 * Windows survive events, which may come faster than anything can be measured:
	 * flows are judged by the lowest and highest rate that they were told meanwhile.
	 */
	if (whole) {
		paqm_measure(q, now, &w);
		paqm_note_queued(q);
		w.queued = q->queued_now || q->queued_then || q->sought;
	}
	/* measurements from before the queue grew are not trusted until there is a new one */
	q->cautious = events & (BIT(PAQM_EV_QUEUE) | BIT(PAQM_EV_CAPACITY)) ||
		      (q->cautious && w.window_ns < w.window_min_ns);
	w.cautious = q->cautious;
	WRITE_ONCE(q->max_every, min_t(u32, w.max_every, PAQM_EVERY_MAX));
	paqm_flows_walk(&q->flows, &w, &q->census);
	spin_lock(&q->top_lock);
	q->top = q->census.top;
	spin_unlock(&q->top_lock);
	q->n_media = q->census.media;
	q->n_elastic = heard ? q->census.elastic : 0;
	q->leave_ns = q->n_elastic && q->n_elastic <= PAQM_FEW_ELASTIC && !paqm_calm(q) ?
			      now + ((u64)(q->census.leaves + 1) << 20) : 0;
	paqm_level(q, PAQM_ELASTIC, &qlen, &backlog);
	/* only mice, but more than a trickle: count them as one flow */
	if (heard && !q->n_elastic &&
	    (q->elastic_rate > paqm_mul_q24(q->capacity, PAQM_ELASTIC_FLOOR_Q24) ||
	     backlog > 10 * psched_mtu(qdisc_dev(q->sch))))
		q->n_elastic = 1;
	if (!paqm_calm(q) && (!heard || (w.window_ns >= w.window_min_ns && !q->elastic_rate)))
		WRITE_ONCE(q->elastic_awake, false);
	paqm_weigh_newcomers(q, whole);
	/* then what is not known yet is one flow, calls no round, and may stay so */
	WRITE_ONCE(q->rotating, paqm_newcomers_rotate(&q->rotation, &q->census, w.now_tick,
						      paqm_flow_clock(q->period_us * 1000ULL),
						      whole));
	paqm_judge_elastic(q, whole);
	new = paqm_find_split(q);
	WRITE_ONCE(q->split, new);
	if (q->cfg.events && abs((s32)(new - old)) > PAQM_SPLIT_EVENT_Q16)
		events |= BIT(PAQM_EV_SPLIT);

	for (ev = 0; ev < PAQM_EVENTS; ev++)
		if (events & BIT(ev))
			paqm_inc(&q->event_rounds[ev]);
	if (events)
		q->event_stamp = now;

	paqm_derive_queues(q);
	paqm_solve(q, events, whole, now);
	if (w.hosts)
		paqm_hosts_divide(w.hosts, q->fair, whole);
	if (whole || !paqm_no_news(q, events)) {
		q->rounds++;
		if (!q->rounds)
			q->rounds = 1;
		q->fair_told = q->fair;
		paqm_publish(q, whole);
	}
	paqm_transfer(q, now, paqm_news_ns(q));
	paqm_publish_paces(q, now);
	if (whole && q->rtt_us <= q->skip_us) { /* advice has acted before measuring begins */
		q->right_low = q->right;
		q->right_high = q->right;
	} else if (whole) {
		q->right_low = min(q->right, q->right_then);
		q->right_high = max(q->right, q->right_then);
	} else {
		q->right_low = min(q->right_low ?: q->right, q->right);
		q->right_high = max(q->right_high, q->right);
	}
	if (whole) {
		/* what strangers leave, and take again, is answered to all the time */
		q->steady = paqm_by_demands(q) && !events && !q->census.newcomers &&
			    !(q->stranger_rate | q->stranger_then | q->stranger_mean) &&
			    paqm_about(q->right, q->right_then);
		q->right_then = q->right;
	}
	paqm_note_low(q, now);

	WRITE_ONCE(q->queue[PAQM_MEDIA].st.flows, q->n_media);
	WRITE_ONCE(q->queue[PAQM_ELASTIC].st.flows, q->n_elastic);
	if (whole) {
		q->round_stamp = now;
		q->mark_stamp = 0;
	}
	q->walk_ns = ktime_get_ns() - now;
	trace_law(q, qdisc_dev(q->sch)->name, READ_ONCE(q->queue[PAQM_MEDIA].st.backlog), events);
}

/* Run a round when one is due; set the marks when tau1 has passed. */
void paqm_outer_work(struct work_struct *work)
{
	struct paqm_sched_data *q =
		container_of(work, struct paqm_sched_data, outer_work);
	u64 now = ktime_get_ns(), skip, period, gap, next;
	unsigned long events;
	u32 heard = 0, last;

	mutex_lock(&q->ctl_lock);
	if (q->n_elastic) {
		heard = paqm_heard(q, now);
		if (!heard && !paqm_calm(q))
			paqm_raise(q, PAQM_EV_SPLIT);
	}
	if (q->leave_ns && now >= q->leave_ns) {
		q->leave_ns = 0;
		paqm_raise(q, PAQM_EV_SPLIT);
	}
	/* the longer a walk over the table takes, the rarer it is */
	gap = clamp_t(u64, q->walk_ns * PAQM_WALK_SHARE, PAQM_EVENT_GAP_NS, PAQM_WALK_GAP_MAX_NS);
	last = paqm_by_demands(q) ? paqm_mm_period(q->period_us, q->round_stamp) : q->period_us;
	period = max_t(u64, last * (u64)NSEC_PER_USEC, gap);
	events = READ_ONCE(q->events);
	if (now - q->round_stamp >= period) /* events must not keep it from ending */
		paqm_round(q, now, xchg(&q->events, 0), true);
	else if (events && (!q->event_stamp || now - q->event_stamp >= gap))
		paqm_round(q, now, xchg(&q->events, 0), false);
	/*
	 * While flows answer to what they were told nothing is measured. Where there is nothing to
	 * answer to, windows follow each other without a gap: then at least six of the pictures of
	 * a camera with 24 a second are in each, and what one lacks the next one has.
	 */
	skip = q->steady ? 0 : q->skip_us * (u64)NSEC_PER_USEC;
	if (!q->mark_stamp && now - q->round_stamp >= skip)
		paqm_set_marks(q, now);
	next = q->round_stamp + (q->mark_stamp ? period : skip);
	if (q->n_elastic)
		next = min(next, now + (heard ?: PAQM_SILENT_MS) * NSEC_PER_MSEC);
	if (q->leave_ns)
		next = min(next, q->leave_ns);
	if (READ_ONCE(q->events))
		next = min(next, q->event_stamp + gap);
	if (READ_ONCE(q->awake))
		hrtimer_start(&q->outer_timer,
			      ns_to_ktime(max(next, now + PAQM_OUTER_GAP_NS) - now),
			      HRTIMER_MODE_REL_PINNED_SOFT);
	mutex_unlock(&q->ctl_lock);
}

/* What is due is done in process context; jiffies would be too coarse for a window of 100 ms. */
enum hrtimer_restart paqm_outer_timer(struct hrtimer *timer)
{
	struct paqm_sched_data *q = container_of(timer, struct paqm_sched_data, outer_timer);

	queue_work(paqm_wq, &q->outer_work);
	return HRTIMER_NORESTART;
}

/* No round runs any more, and none will. Nothing is enqueued by now. */
void paqm_outer_stop(struct paqm_sched_data *q)
{
	mutex_lock(&q->ctl_lock);
	WRITE_ONCE(q->awake, false); /* the work no longer starts the timer, */
	mutex_unlock(&q->ctl_lock);
	hrtimer_cancel(&q->outer_timer); /* nor that the work */
	cancel_work_sync(&q->outer_work);
}
