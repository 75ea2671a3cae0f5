/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Outer loop of sch_paqm: every period, and at once on events, measure the flows,
 * compute the fair rate of media, publish what notices say and move the split.
 *
 * Process context under ctl_lock; the qdisc lock is taken only to publish.
 */
#ifndef PAQM_OUTER_H
#define PAQM_OUTER_H

#include <linux/ktime.h>
#include <linux/workqueue.h>
#include "core/paqm_law.h"
#include "core/paqm_maxmin.h"
#include "core/paqm_msg.h"
#include "core/paqm_sched.h"
#include "paqm_auto.h"
#include "paqm_class.h"
#include "paqm_state.h"
#include "paqm_trace.h"

#define PAQM_EVENT_GAP_NS (50 * NSEC_PER_MSEC) /* at most one event round in this time */
/*
 * The elastic class has gone when so long nothing of it has come. One flow may pause for longer
 * (PAQM_FLOW_ACTIVE_MS); when all do, the link stands half empty.
 */
#define PAQM_SILENT_MS 250
#define PAQM_WALK_SHARE 20 /* walks over the flow table take at most so little of a CPU: 5 % */
#define PAQM_WALK_GAP_MAX_NS (2 * NSEC_PER_SEC) /* a walk may have been held up once */
#define PAQM_SHARE_FLOOR_Q16 (PAQM_Q16_ONE / 20) /* neither class is ever starved */
#define PAQM_SPLIT_EVENT_Q16 (PAQM_Q16_ONE / 20) /* a change of the split by 5 % is an event */
#define PAQM_ELASTIC_FLOOR_Q24 PAQM_Q24(2, 100) /* of c: less traffic is no flow of its own */
#define PAQM_MOUSE_Q24 PAQM_Q24(10, 100) /* of the mean elastic flow: less is a mouse */
#define PAQM_MOUSE_SHARE_DIV 100	/* or less than a hundredth of a fair share */
#define PAQM_WINDOW_MAX_BYTES (3ULL << 30) /* of one flow, between two looks at it */
#define PAQM_RATE_MIN 10000ULL			/* bit/s, floor of an advised rate */
#define PAQM_NOTICE_PAUSE_US (10 * USEC_PER_SEC) /* to a flow that does not follow */
#define PAQM_NOTICES_FREE 1500 /* a second; more only as */
#define PAQM_NOTICE_PACKETS 512 /* one for so many packets: messages cost 2 % at most */
#define PAQM_RTT_DEFAULT_US 100000	/* where `rtt` is measured and nobody answered yet */
#define PAQM_GRAIN_BYTES 6000	/* four packets more or less in a window say nothing */
#define PAQM_TAU2_MIN_US 150000	/* measuring time where tau1 is a measured RTT */
#define PAQM_SMALL_DIV 20	/* uncounted media may take 5 % of c */
#define PAQM_LARGE_BPS 100000000ULL	/* from here and with so many flows, */
#define PAQM_LARGE_FLOWS 100		/* less headroom is enough */

/*
 * Of all outer loops. Unbound: a walk over a million flows takes longer than work of
 * others on the same CPU should have to wait.
 */
static struct workqueue_struct *paqm_wq;

/* Bytes that the link moves in @us; at least @least. */
static u32 paqm_bytes_us(u64 bps, u64 us, u32 least)
{
	u64 bytes = paqm_bytes_in(bps, us * NSEC_PER_USEC);

	return clamp_t(u64, bytes, least, 1U << 30);
}

/* Media share by the counted flows and their weights, or as configured. */
static u32 paqm_split(const struct paqm_sched_data *q)
{
	if (q->cfg.split)
		return q->cfg.split;
	return paqm_share_q16(q->n_media * q->cfg.media_weight,
			      q->n_elastic * q->cfg.elastic_weight);
}

/* The same for the scheduler: no class is starved. */
static u32 paqm_share(const struct paqm_sched_data *q)
{
	return clamp_t(u32, paqm_split(q), PAQM_SHARE_FLOOR_Q16,
		       PAQM_Q16_ONE - PAQM_SHARE_FLOOR_Q16);
}

/*
 * c_u: without elastic flows all of the link is media's. With `borrow` also what
 * elastic flows do not use of their share, while none of them waits.
 */
static u64 paqm_media_capacity(const struct paqm_sched_data *q)
{
	u64 cu, used;
	u32 qlen, backlog;

	if (!q->n_elastic)
		return q->capacity;
	cu = paqm_muldiv(q->capacity, paqm_split(q), PAQM_Q16_ONE);
	if (!q->cfg.borrow)
		return cu;
	paqm_level(q, PAQM_ELASTIC, &qlen, &backlog);
	/* room for growth, or elastic would find its share taken */
	used = paqm_mul_q24(q->elastic_rate, PAQM_MM_HEADROOM_Q24) +
	       paqm_div64(q->capacity, 50);
	if (qlen || used >= q->capacity - cu)
		return cu;
	return q->capacity - used;
}

/* Weights follow the census: at once in favour of media, announced against it. */
static void paqm_transfer(struct paqm_sched_data *q, u64 now)
{
	u32 share = paqm_share(q);
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
 * the share, and the link stays full anyway. So it is with many flows on a fast
 * link, whose bursts even out (spec section 4.7); with hysteresis, or flows that
 * come and go would make all the others move.
 */
static u32 paqm_target_util(struct paqm_sched_data *q)
{
	u32 rho = q->cfg.target_util;

	if (q->large)
		q->large = q->capacity >= PAQM_LARGE_BPS / 10 * 9 &&
			   q->n_media >= PAQM_LARGE_FLOWS / 10 * 8;
	else
		q->large = q->capacity >= PAQM_LARGE_BPS && q->n_media >= PAQM_LARGE_FLOWS;
	if (q->large)
		rho += (PAQM_Q24_ONE - rho) / 4 * 3;
	else if (q->n_elastic)
		rho += (PAQM_Q24_ONE - rho) / 2;
	return paqm_auto_util(q, rho);
}

/* RTT_max between router and senders: given, or measured. */
static u32 paqm_rtt_us(const struct paqm_sched_data *q)
{
	if (q->cfg.rtt)
		return q->cfg.rtt;
	if (!q->rtt.sources)
		return PAQM_RTT_DEFAULT_US;
	return clamp(q->rtt.max_us, PAQM_RTT_MIN_US, PAQM_RTT_MAX_US);
}

/*
 * tau1, us: nothing is measured so soon after a notice. On a fast link with a long
 * period measuring begins later than that: flows are counted in 32 bits, and one
 * that fills the link must not count all of that in a window.
 */
static u32 paqm_skip(u32 rtt, u32 period, u64 capacity)
{
	u64 longest = paqm_muldiv(PAQM_WINDOW_MAX_BYTES, 8 * USEC_PER_SEC, max(capacity, 1ULL));
	u32 skip = min(rtt, period / 2);

	return period > longest ? max_t(u32, skip, period - (u32)longest) : skip;
}

/*
 * Period d = tau1 + tau2, spec section 4.1: the news needs an RTT to act, then the
 * window must be long enough to measure, and longer than a GOP where senders
 * answer only once in one, or the queue oscillates.
 */
static void paqm_derive_period(struct paqm_sched_data *q)
{
	u32 rtt = paqm_rtt_us(q), period = q->cfg.period;

	if (q->cfg.gop || !q->cfg.rtt)
		period = max_t(u32, period, rtt + max_t(u32, q->cfg.gop, PAQM_TAU2_MIN_US));
	period = min_t(u32, period, PAQM_PERIOD_MAX_US);
	WRITE_ONCE(q->rtt_us, rtt);
	WRITE_ONCE(q->period_us, period);
	WRITE_ONCE(q->skip_us, paqm_skip(rtt, period, q->capacity));
}

/*
 * Byte thresholds that depend on capacity and split. Each is stored once and whole:
 * the inner loop and the datapath read them at any time.
 */
static void paqm_derive_queues(struct paqm_sched_data *q)
{
	u32 mtu = psched_mtu(qdisc_dev(q->sch));
	u64 cu = paqm_media_capacity(q);
	u64 ct = max(q->capacity - min(cu, q->capacity),
		     paqm_muldiv(q->capacity, PAQM_SHARE_FLOOR_Q16, PAQM_Q16_ONE));
	struct paqm_queue *u = &q->queue[PAQM_MEDIA], *t = &q->queue[PAQM_ELASTIC];
	struct paqm_lengths n;
	u32 n_out;
	u64 small;

	mtu = clamp_t(u32, mtu, 64, 65535);
	cu = max(cu, paqm_muldiv(q->capacity, PAQM_SHARE_FLOOR_Q16, PAQM_Q16_ONE));
	n_out = q->cfg.media_target_bytes;
	if (!n_out)
		n_out = paqm_bytes_us(cu, q->cfg.media_target, 2 * mtu);
	/* inner N* ten times the outer target, at most 100 ms: eta = 0.1 */
	n.media_target = max(min(10ULL * n_out, paqm_bytes_us(cu, 100000, 0)), 4 * mtu);
	n.media_limit = 2 * n.media_target;
	n.elastic_target = q->cfg.elastic_target_bytes;
	if (!n.elastic_target)
		n.elastic_target = paqm_bytes_us(ct, q->cfg.elastic_target, 10 * mtu);
	n.elastic_limit = max(4 * min(n.elastic_target, 1U << 28),
			      paqm_bytes_us(q->capacity, 200000, 20 * mtu));
	n.credit = paqm_bytes_us(cu, q->cfg.credit, 2 * mtu);
	paqm_auto_lengths(q, &n);
	if (q->cfg.elastic_target_bytes)
		n.elastic_target = q->cfg.elastic_target_bytes;
	if (q->cfg.media_limit)
		n.media_limit = q->cfg.media_limit;
	if (q->cfg.elastic_limit)
		n.elastic_limit = q->cfg.elastic_limit;

	WRITE_ONCE(q->overload_bytes, 2 * n_out);
	WRITE_ONCE(u->target, n.media_target);
	WRITE_ONCE(u->limit, n.media_limit);
	WRITE_ONCE(t->target, n.elastic_target);
	WRITE_ONCE(t->limit, n.elastic_limit);
	WRITE_ONCE(q->sched.credit, n.credit);
	WRITE_ONCE(q->limit, q->cfg.limit ? q->cfg.limit : U32_MAX);
	/* small packets take ten times their length in memory */
	WRITE_ONCE(q->memory_limit,
		   clamp_t(u64, 4 * min_t(u64, q->limit, (u64)n.media_limit + n.elastic_limit),
			   4U << 20, 3U << 30));
	WRITE_ONCE(q->calm, min3(q->limit, 2 * n_out, min(n.media_limit, n.elastic_limit)));
	WRITE_ONCE(q->gso_split, max(paqm_bytes_us(q->capacity, q->cfg.media_target, 0), mtu));
	WRITE_ONCE(q->gso_look, q->stamp ? 0 : q->gso_split);
	small = max_t(u64, paqm_div64(q->capacity, PAQM_SMALL_DIV), 8000);
	WRITE_ONCE(q->small_ns, paqm_div64(8ULL * NSEC_PER_SEC + small - 1, small));
	WRITE_ONCE(u->st.share, cu);
	WRITE_ONCE(t->st.share, q->capacity - min(cu, q->capacity));
}

/* Rate on the IP layer: messages and senders do not count what the link adds. */
static u64 paqm_ip_rate(const struct paqm_sched_data *q, u64 bps)
{
	u32 header = qdisc_dev(q->sch)->hard_header_len;
	u32 len = max(q->mean_len, 2 * header + 64);

	return paqm_muldiv(bps, len - header, paqm_link_len(&q->link, len));
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
		.period_ms = min_t(u32, q->period_us / USEC_PER_MSEC, U16_MAX),
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
	q->field = (struct paqm_field){
		.rate = msg.erf,
		.router = (u16)msg.router_id ? (u16)msg.router_id : 1,
		.period = paqm_field_period(msg.period_ms),
	};
	if (q->tell) /* else nobody is owed anything */
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
	u64 all = READ_ONCE(q->queue[PAQM_ELASTIC].st.sent_packets) - q->mark_others + packets;
	u64 notices;
	u64 sent = READ_ONCE(u->sent_bytes) - q->mark_sent;

	w->window_ns = q->mark_stamp ? window : 0;
	if (window > 8ULL * PAQM_PERIOD_MAX_US * NSEC_PER_USEC)
		w->window_ns = 0; /* marks from before a sleep */
	if (w->window_ns < PAQM_WINDOW_MIN_NS)
		return; /* too short to mean anything: the last figures stand */
	/* the published laws swing by themselves: there a new rate is half believed, always */
	w->grain = q->cfg.law == PAQM_LAW_MAXMIN ? paqm_rate_bps(PAQM_GRAIN_BYTES, window) :
						   U64_MAX;
	q->outer_rate = paqm_rate_bps(bytes, window);
	q->elastic_rate = paqm_rate_bps(elastic, window);
	notices = paqm_muldiv(all, NSEC_PER_SEC, window * PAQM_NOTICE_PACKETS);
	WRITE_ONCE(q->notice_gap_ns,
		   paqm_div64(NSEC_PER_SEC, max_t(u64, notices, PAQM_NOTICES_FREE)));
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
	q->mark_others = READ_ONCE(q->queue[PAQM_ELASTIC].st.sent_packets);
	q->mark_stamp = now;
}

/*
 * The fair rate by the law in force. @event: something changed, and no whole period was
 * measured, without which the published laws and relative values hold.
 */
static void paqm_solve(struct paqm_sched_data *q, u32 n_out, bool event)
{
	struct paqm_outer_params p = {
		.alpha_q24 = q->cfg.alpha,
		.beta_q24 = q->cfg.beta,
		.md_min_q24 = q->cfg.md_floor,
		.rate_min = PAQM_RATE_MIN,
		.forced_md = q->cfg.forced_md,
		.ai_hold = q->cfg.ai_hold,
		.erf_fastest = q->census.top.n ? q->census.top.flow[0].rate : 0,
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
		.period_us = q->period_us,
		.flows = q->n_media,
	};
	u64 cap;

	if (!event)
		q->ecf_out = paqm_ecf_step(&q->ecf, &p, &in);
	else
		q->ecf_out = (struct paqm_ecf_out){ PAQM_ECF_HOLD, PAQM_F32_ONE, 0 };
	paqm_inc(&q->ecf_kind[q->ecf_out.kind]);
	switch (q->cfg.law) {
	case PAQM_LAW_ERF:
		/* R_0 = c_u / n_u: the first flows do not start at the rate of the link */
		if (q->n_media && !q->erf.rate_q24)
			paqm_erf_init(&q->erf, paqm_div64(ceiling, q->n_media), ceiling);
		if (!q->n_media)
			q->erf = (struct paqm_erf_vars){};
		else if (!event)
			q->fair = paqm_erf_step(&q->erf, &p, &in);
		else
			q->fair = q->erf.rate_q24 >> 24;
		break;
	case PAQM_LAW_ECF:
		q->fair = paqm_div64(ceiling, max(q->n_media, 1U));
		break;
	default:
		/* The gain of the queue term is that of the model, not of ECF/ERF. */
		cap = paqm_mm_capacity(cu, rho, PAQM_Q24(35, 100), n_out, backlog,
				       paqm_auto_drain(q));
		if (event || paqm_mm_any_limited(&q->census.mm))
			q->trim = 0;
		else
			q->trim = paqm_mm_trim(q->trim, q->outer_rate, cap, backlog, n_out);
		q->fair = paqm_mm_solve(&q->census.mm, cap, PAQM_RATE_MIN, ceiling);
		q->fair = min(q->fair + paqm_mul_q24(q->fair, q->trim), ceiling);
	}
	q->right = q->fair;
	/* who takes what others leave of an equal division does not disobey */
	if (q->cfg.law == PAQM_LAW_ECF)
		q->right = max(q->fair, paqm_mm_solve(&q->census.mm, ceiling, PAQM_RATE_MIN,
						      ceiling));
}

/* ms until the elastic class has been silent for long; 0: it has been, and none of it waits. */
static u32 paqm_heard(const struct paqm_sched_data *q, u64 now)
{
	/* a far sender's window comes once in a round trip */
	u32 longest = clamp_t(u32, q->rtt_us / USEC_PER_MSEC + 100, PAQM_SILENT_MS,
			      PAQM_FLOW_ACTIVE_MS);
	s32 age = (s32)(paqm_flow_clock(now) - READ_ONCE(q->elastic_last));
	u32 silent = paqm_flow_ms(max(age, 0)); /* a packet may have come after @now */
	u32 qlen, backlog;

	paqm_level(q, PAQM_ELASTIC, &qlen, &backlog);
	if (qlen)
		return PAQM_SILENT_MS;
	return silent < longest ? longest - silent : 0;
}

/* One notice round. @events: causes, 0 at the end of a period. */
static void paqm_round(struct paqm_sched_data *q, u64 now, unsigned long events)
{
	u64 share_of_one = paqm_div64(q->capacity, q->n_media + q->n_elastic + 1);
	u64 mean_elastic = paqm_div64(q->elastic_rate, max(q->census.present, 1U));
	u32 old = paqm_split(q), new;
	struct paqm_walk w = {
		.now_ms = paqm_flow_clock(now),
		.fair = q->right,
		.mouse = max(paqm_mul_q24(mean_elastic, PAQM_MOUSE_Q24),
			     paqm_div64(share_of_one, PAQM_MOUSE_SHARE_DIV)),
		.police = q->cfg.police,
		.overloaded = READ_ONCE(q->overloaded),
		.max_every = max(1U, (u32)(PAQM_NOTICE_PAUSE_US / q->period_us)),
	};
	bool maxmin = q->cfg.law == PAQM_LAW_MAXMIN;
	/*
	 * The window of a published law survives events, and that in which senders who
	 * answer once per GOP are measured: less than a GOP says nothing of them.
	 */
	bool restart = !events || (maxmin && !q->cfg.gop);
	u32 n_out, ev, qlen, backlog;
	bool heard = paqm_heard(q, now);

	if (q->fb)
		paqm_fb_rtt(q->fb, &q->rtt);
	paqm_derive_period(q);
	paqm_auto_round(q);
	if (restart)
		paqm_measure(q, now, &w);
	/* what was measured before the queue grew is not trusted until something new is */
	q->cautious = events & (BIT(PAQM_EV_QUEUE) | BIT(PAQM_EV_CAPACITY)) ||
		      (q->cautious && w.window_ns < PAQM_WINDOW_MIN_NS);
	w.cautious = q->cautious;
	paqm_flows_walk(&q->flows, &w, &q->census);
	spin_lock(&q->top_lock);
	q->top = q->census.top;
	spin_unlock(&q->top_lock);
	q->n_media = q->census.media;
	q->n_elastic = heard ? q->census.elastic : 0;
	paqm_level(q, PAQM_ELASTIC, &qlen, &backlog);
	/* only mice, but more than a trickle: they count as one flow */
	if (heard && !q->n_elastic &&
	    (q->elastic_rate > paqm_mul_q24(q->capacity, PAQM_ELASTIC_FLOOR_Q24) ||
	     backlog > 10 * psched_mtu(qdisc_dev(q->sch))))
		q->n_elastic = 1;
	if (!heard || (w.window_ns >= PAQM_WINDOW_MIN_NS && !q->elastic_rate))
		WRITE_ONCE(q->elastic_awake, false);
	new = paqm_split(q);
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
	paqm_solve(q, n_out, events);
	paqm_publish(q);
	paqm_transfer(q, now);

	WRITE_ONCE(q->queue[PAQM_MEDIA].st.flows, q->n_media);
	WRITE_ONCE(q->queue[PAQM_ELASTIC].st.flows, q->n_elastic);
	if (restart) {
		q->round_stamp = now;
		q->mark_stamp = 0;
	}
	q->walk_ns = ktime_get_ns() - now;
	trace_law(q, qdisc_dev(q->sch)->name, READ_ONCE(q->queue[PAQM_MEDIA].st.backlog), events);
}

/* Runs a round when one is due, sets the marks when tau1 has passed. */
static void paqm_outer_work(struct work_struct *work)
{
	struct paqm_sched_data *q =
		container_of(to_delayed_work(work), struct paqm_sched_data, outer_work);
	u64 now = ktime_get_ns(), skip, period, gap, next;
	unsigned long events;
	u32 heard = 0;

	mutex_lock(&q->ctl_lock);
	if (q->n_elastic) {
		heard = paqm_heard(q, now);
		if (!heard)
			paqm_raise(q, PAQM_EV_SPLIT);
	}
	/* a table of a million flows takes a while to walk: the less often */
	gap = clamp_t(u64, q->walk_ns * PAQM_WALK_SHARE, PAQM_EVENT_GAP_NS, PAQM_WALK_GAP_MAX_NS);
	period = max_t(u64, q->period_us * (u64)NSEC_PER_USEC, gap);
	skip = q->skip_us * (u64)NSEC_PER_USEC;
	events = READ_ONCE(q->events);
	if (events && (!q->event_stamp || now - q->event_stamp >= gap)) {
		events = xchg(&q->events, 0);
		paqm_round(q, now, events);
	} else if (now - q->round_stamp >= period) {
		paqm_round(q, now, 0);
	} else if (!q->mark_stamp && now - q->round_stamp >= skip) {
		paqm_set_marks(q, now);
	}
	next = q->round_stamp + (q->mark_stamp ? period : skip);
	if (q->n_elastic)
		next = min(next, now + (heard ?: PAQM_SILENT_MS) * NSEC_PER_MSEC);
	if (READ_ONCE(q->events))
		next = min(next, q->event_stamp + gap);
	if (READ_ONCE(q->awake))
		queue_delayed_work(paqm_wq, &q->outer_work,
				   1 + nsecs_to_jiffies(next > now ? next - now : 0));
	mutex_unlock(&q->ctl_lock);
}

#endif /* PAQM_OUTER_H */
