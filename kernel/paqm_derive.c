// SPDX-License-Identifier: GPL-2.0
/*
 * What follows from the capacity, the split and the rates of sch_paqm: periods, lengths of queues,
 * depth and pace of buckets, and how long it takes until senders follow.
 *
 * Process context under ctl_lock, unless a function says otherwise.
 */
#include "core/paqm_bucket.h"
#include "core/paqm_law.h"
#include "core/paqm_sched.h"
#include "paqm_capacity.h"
#include "paqm_derive.h"
#include "paqm_split.h"

#define PAQM_NOTICE_BYTES 132 /* of a message, IPv4 */
#define PAQM_CROWD_NS (NSEC_PER_SEC / 2) /* telling all flows takes long if longer than this */
#define PAQM_REMIND_NS (1500 * NSEC_PER_MSEC) /* half of what advice holds for */
#define PAQM_OUTSIDE_FLOWS 8 /* so many show which part of flows is not to be told */
#define PAQM_RTT_DEFAULT_US 100000	/* where `rtt` is measured and nobody answered yet */
#define PAQM_TAU2_MIN_US 150000	/* least measuring time where tau1 is a measured RTT */
#define PAQM_BULK_PACKETS 5 /* of buckets of elastic flows, where the link takes them in 20 ms */
#define PAQM_BULK_NS (2500 * NSEC_PER_USEC) /* of the link: what they hold where that is more */
#define PAQM_BULK_FILL_NS (500 * NSEC_PER_MSEC) /* no picture comes of a share that takes longer */
#define PAQM_CREDIT_PACKETS 6	/* credit of media at least, up to three times `credit` */
#define PAQM_SMALL_DIV 20	/* uncounted media may take 5 % of c */
#define PAQM_BULK_TARGET_NS (6 * NSEC_PER_MSEC) /* CoDel of elastic flows, RFC 8289: target */
#define PAQM_BULK_INTERVAL_NS (100 * NSEC_PER_MSEC) /* and interval, or the round trip */
#define PAQM_OVER_INTERVAL_NS (100 * NSEC_PER_MSEC) /* CoDel of overflow queues */
#define PAQM_OVER_MEMORY_MAX (64U << 20) /* of packets in overflow queues */
#define PAQM_BUCKET_SLACK_Q24 PAQM_Q24(105, 100) /* a bucket fills this much faster than told */
#define PAQM_BUCKET_NS (60 * NSEC_PER_MSEC) /* of a flow's rate that a bucket holds at most: */
#define PAQM_BURST_NS (5 * NSEC_PER_MSEC)   /* of the link: a burst, beside other flows, */
#define PAQM_BURSTS_NS (20 * NSEC_PER_MSEC) /* and the bursts of all others */
#define PAQM_STANDS_NS (6 * NSEC_PER_MSEC) /* a longer common queue is a standing one */
#define PAQM_NEWS_FRAME_US 50000 /* from message to sending at the new rate, beside the RTT */

/* Bytes that the link moves in @us; at least @least. */
static u32 paqm_bytes_us(u64 bps, u64 us, u32 least)
{
	u64 bytes = paqm_bytes_in(bps, us * NSEC_PER_USEC);

	return clamp_t(u64, bytes, least, 1U << 30);
}

/* Rate on the IP layer: messages and senders do not count what the link adds. */
u64 paqm_ip_rate(const struct paqm_sched_data *q, u64 bps)
{
	u32 header = paqm_header_len(qdisc_dev(q->sch));
	u32 len = max(q->mean_len, 2 * header + 64);

	return paqm_muldiv(bps, len - header, paqm_link_len(&q->link, len));
}

/*
 * Time until senders follow new advice: `transfer`, and a round trip at least. 0 where there is no
 * advice.
 */
u64 paqm_news_ns(const struct paqm_sched_data *q)
{
	u32 us = q->cfg.transfer;

	if (!q->tell && !q->stamp)
		return 0;
	if (us)
		us = max(us, q->rtt_us + PAQM_NEWS_FRAME_US);
	return (u64)us * NSEC_PER_USEC;
}

/* Time between two notices by the budget of messages, and by their own pace. */
static u64 paqm_notice_ns(const struct paqm_sched_data *q)
{
	u64 gap = READ_ONCE(q->notice_gap_ns);

	if (!q->tell)
		return gap;
	return max(gap, paqm_div64((u64)PAQM_NOTICE_BYTES * NSEC_PER_SEC,
				   paqm_fb_budget(q->capacity, q->cfg.notice_part)));
}

/*
 * Which part of media flows is outside of `feedback-to`? In a round every flow is due once, and
 * only who makes messages knows whose it is.
 */
static void paqm_find_outside(struct paqm_sched_data *q)
{
	u32 inside = READ_ONCE(q->due_flows[0]) - q->due_flows_then[0];
	u32 outside = READ_ONCE(q->due_flows[1]) - q->due_flows_then[1];

	if (inside + outside < PAQM_OUTSIDE_FLOWS)
		return;
	q->due_flows_then[0] += inside;
	q->due_flows_then[1] += outside;
	q->outside_q16 = (q->outside_q16 +
			  paqm_muldiv(outside, PAQM_Q16_ONE, inside + outside)) / 2;
}

/* Of @flows, those that may be told; one at least. */
static u64 paqm_inside(const struct paqm_sched_data *q, u64 flows)
{
	if (!q->tell || !flows)
		return flows;
	return max(flows - paqm_muldiv(flows, q->outside_q16, PAQM_Q16_ONE), 1ULL);
}

/*
 * Time until every media flow has had its message, given their budget, of which half a second is
 * usually saved up. Flows that are probably spoofed are not waited for.
 */
static u64 paqm_tell_ns(const struct paqm_sched_data *q)
{
	u64 flows = q->n_media - q->census.newcomers + q->newcomers;
	u64 all = paqm_inside(q, flows) * paqm_notice_ns(q);

	return all > NSEC_PER_SEC / 2 ? all - NSEC_PER_SEC / 2 : 0;
}

/*
 * Where telling all flows takes long: how long flows can wait whose rate has hardly changed. Not
 * with the published laws, whose values are relative to the message before.
 */
static void paqm_derive_crowd(struct paqm_sched_data *q)
{
	u64 all = paqm_inside(q, q->n_media) * paqm_notice_ns(q);
	bool crowd = paqm_by_demands(q) && all > PAQM_CROWD_NS;

	WRITE_ONCE(q->crowd_ticks, crowd ? paqm_flow_clock(min(all, PAQM_REMIND_NS)) : 0);
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

/* Inner period and filter weight for the capacity. */
void paqm_derive_inner(struct paqm_sched_data *q)
{
	u64 mtu = max_t(u64, psched_mtu(qdisc_dev(q->sch)), 64);
	u64 us = q->cfg.interval, bytes;

	if (!us)
		us = clamp_t(u64, paqm_muldiv(64 * mtu, 8 * USEC_PER_SEC, q->capacity),
			     PAQM_INTERVAL_MIN_US, PAQM_INTERVAL_MAX_US);
	/* a queue that is to hold 30 ms runs empty within a period of 40 ms */
	if (!q->cfg.interval)
		us = clamp_t(u64, us, PAQM_INTERVAL_MIN_US,
			     max(q->cfg.elastic_target / 2, PAQM_INTERVAL_MIN_US));
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

/*
 * Period d = tau1 + tau2, spec section 4.1: advice takes an RTT to act; then the window must be
 * long enough to measure, and longer than a GOP where senders adapt once in a GOP, or the queue
 * oscillates.
 */
void paqm_derive_period(struct paqm_sched_data *q)
{
	u32 rtt = paqm_rtt_us(q), period = q->cfg.period;

	if (q->cfg.gop || !q->cfg.rtt)
		period = max_t(u32, period, rtt + max_t(u32, q->cfg.gop, PAQM_TAU2_MIN_US));
	period = min_t(u32, period, PAQM_PERIOD_MAX_US);
	WRITE_ONCE(q->rtt_us, rtt);
	WRITE_ONCE(q->period_us, period);
	/* tau1: no measurement so soon after a notice; with `gop` the rest is that long at least */
	WRITE_ONCE(q->skip_us, q->cfg.gop ? rtt : min(rtt, period / 2));
}

/* Time that a packet takes at a rate. */
static u64 paqm_packet_ns(u32 mtu, u64 bps)
{
	return paqm_div64((u64)mtu * 8 * NSEC_PER_SEC, max(bps, 8 * PAQM_RATE_MIN));
}

/*
 * Elastic flows that keep to three quarters of their share of @ct go ahead of others: who takes all
 * that he gets never does. Calls send a picture at once, of five packets or more; of hundreds of
 * flows none has the rate for one, and media would wait for what they send by chance. All of them
 * together have a bucket, too.
 */
static void paqm_derive_bulk(struct paqm_sched_data *q, u64 ct, u32 mtu)
{
	u64 all = ct * 3 / 4, bps = paqm_div64(all, max3(q->n_elastic, q->census.crowd, 1U));
	u64 most = min_t(u64, PAQM_BULK_PACKETS * mtu, paqm_bytes_in(q->capacity, PAQM_BURSTS_NS));
	u64 burst = min(most, max_t(u64, mtu, paqm_bytes_in(bps, PAQM_BULK_FILL_NS)));
	u64 together = max(burst, paqm_bytes_in(q->capacity, PAQM_BULK_NS));
	u64 bytes = max(burst, min(paqm_bytes_in(bps, PAQM_BUCKET_NS), together));
	u32 cost = paqm_bucket_cost(bps), cost_all = paqm_bucket_cost(all);

	WRITE_ONCE(q->bulk_cost, cost);
	WRITE_ONCE(q->bulk_depth, paqm_bucket_depth(cost, min_t(u64, bytes, 1U << 30)));
	WRITE_ONCE(q->bulk_cost_all, cost_all);
	WRITE_ONCE(q->bulk_depth_all, paqm_bucket_depth(cost_all, min_t(u64, together, 1U << 30)));
}

/* Flow queues of both classes: lengths and targets; @cu and @ct are the shares of the link. */
static void paqm_derive_drr(struct paqm_sched_data *q, u64 cu, u64 ct, u32 mtu)
{
	struct paqm_round *u = &q->drr[PAQM_MEDIA], *t = &q->drr[PAQM_ELASTIC];
	u64 fair = max(q->fair_base, 8 * PAQM_RATE_MIN);
	u64 packet_ns = paqm_packet_ns(mtu, ct), target, interval, over;
	int i;

	WRITE_ONCE(q->over_limit, max_t(u32, PAQM_OVER_PACKETS * mtu,
					paqm_bytes_us(fair, PAQM_OVER_HOLD_NS / NSEC_PER_USEC, 0)));
	/* small packets take ten times their length in memory, usual ones four times */
	WRITE_ONCE(q->over_memory_limit,
		   clamp_t(u64, 8 * paqm_bytes_in(cu, PAQM_OVER_HOLD_NS), 4U << 20,
			   PAQM_OVER_MEMORY_MAX));
	for (i = 0; i < PAQM_CLASSES; i++) {
		WRITE_ONCE(q->drr[i].quantum, mtu);
		WRITE_ONCE(q->drr[i].codel.mtu, mtu);
		WRITE_ONCE(q->drr[i].codel.ecn, q->cfg.ecn);
		WRITE_ONCE(q->drr[i].codel_drops.mtu, mtu);
		WRITE_ONCE(q->drr[i].codel_drops.ecn, q->cfg.ecn);
	}
	WRITE_ONCE(u->l4s_floor_ns, max(PAQM_L4S_FLOOR_NS, paqm_packet_ns(mtu, fair)));
	WRITE_ONCE(t->l4s_floor_ns, max(PAQM_L4S_FLOOR_NS, packet_ns));
	/* some packets of one picture are no standing queue, however slowly they leave */
	over = max(PAQM_OVER_INTERVAL_NS, 4 * paqm_packet_ns(mtu, q->fair_base ?: cu));
	WRITE_ONCE(u->codel.interval, (codel_time_t)(over >> CODEL_SHIFT));
	/* one or two packets are no queue, however slow the link */
	target = max(PAQM_BULK_TARGET_NS, packet_ns + packet_ns / 2);
	interval = max3(PAQM_BULK_INTERVAL_NS, (u64)q->rtt_us * NSEC_PER_USEC, 2 * target);
	if (paqm_calm(q)) /* its bursts wait, but no queue stands */
		interval *= PAQM_CALM_PERIODS;
	WRITE_ONCE(t->codel.target, (codel_time_t)(target >> CODEL_SHIFT));
	WRITE_ONCE(t->codel.interval, (codel_time_t)(interval >> CODEL_SHIFT));
	paqm_derive_bulk(q, ct, mtu);
}

/*
 * Who picks a quantizer for a whole group of pictures keeps to its rate within a bucket of 1.5
 * groups (RA-SVBR, A. Lie's thesis 2008:74, Paper C): so much after a cut of scenes.
 * 0 without `gop`.
 */
static u64 paqm_groups_bytes(const struct paqm_sched_data *q, u64 bps)
{
	return min(paqm_bytes_in(bps, q->cfg.gop * (u64)NSEC_PER_USEC * 3 / 2),
		   paqm_bytes_in(q->capacity, PAQM_BURSTS_NS));
}

/*
 * Byte thresholds that depend on capacity and split. Each is stored once and whole:
 * the inner loop and the datapath read them at any time.
 */
void paqm_derive_queues(struct paqm_sched_data *q)
{
	u32 mtu = paqm_longest_packet(q);
	u64 cu = paqm_media_capacity(q);
	/* elastic queues have the length for their full share */
	u32 full = q->elastic_limited ? q->entitled : paqm_split(q);
	u64 ct = paqm_muldiv(q->capacity, max_t(u32, PAQM_Q16_ONE - full, PAQM_SHARE_FLOOR_Q16),
			     PAQM_Q16_ONE);
	struct paqm_queue *u = &q->queue[PAQM_MEDIA], *t = &q->queue[PAQM_ELASTIC];
	struct paqm_lengths n;
	u32 n_out;
	u64 small, each;

	cu = max(cu, paqm_muldiv(q->capacity, PAQM_SHARE_FLOOR_Q16, PAQM_Q16_ONE));
	n_out = q->cfg.media_target_bytes;
	if (!n_out)
		n_out = paqm_bytes_us(cu, q->cfg.media_target, 2 * mtu);
	/* inner N* ten times the outer target, at most 100 ms: eta = 0.1; above what is aimed at */
	n.media_target = max(min(10ULL * n_out, paqm_bytes_us(cu, 100000, 0)), 4 * mtu);
	n.media_target = max_t(u64, n.media_target, min_t(u64, 2ULL * n_out, 1U << 30));
	/*
	 * Buckets decide what is too much; what they let through in one moment, as from a server to
	 * all its viewers, is no overload.
	 */
	if (q->isolate && paqm_by_demands(q)) {
		each = max_t(u64, PAQM_BUCKET_MOST * mtu, paqm_groups_bytes(q, q->right));
		n.media_target = max_t(u64, n.media_target,
				       min_t(u64, q->n_media * each,
					     paqm_bytes_us(q->capacity, 100000, 0)));
	}
	n.media_limit = 2 * n.media_target;
	n.elastic_target = q->cfg.elastic_target_bytes;
	if (!n.elastic_target)
		n.elastic_target = paqm_bytes_us(ct, q->cfg.elastic_target, 10 * mtu);
	n.elastic_limit = max(4 * min(n.elastic_target, 1U << 28),
			      paqm_bytes_us(q->capacity, 200000, 20 * mtu));
	n.credit = paqm_bytes_us(cu, q->cfg.credit, 2 * mtu);
	/* pictures of some streams, where the link is so slow that each is a few packets */
	n.credit = max(n.credit, min(PAQM_CREDIT_PACKETS * mtu,
				     paqm_bytes_us(q->capacity, 3ULL * q->cfg.credit, 0)));
	paqm_auto_lengths(q, &n);
	if (q->cfg.media_inner_target) {
		n.media_target = min(q->cfg.media_inner_target, 1U << 30);
		n.media_limit = 2 * n.media_target;
	}
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
	WRITE_ONCE(q->bulk_limit, n.elastic_limit);
	WRITE_ONCE(q->calm_usual, min3(q->limit, 2 * n_out, min(n.media_limit, n.elastic_limit)));
	WRITE_ONCE(q->calm, q->calm_usual);
	WRITE_ONCE(q->gso_split, max(paqm_bytes_us(q->capacity, q->cfg.media_target, 0), mtu));
	WRITE_ONCE(q->gso_look, q->stamp || q->link_counts ? 0 : q->gso_split);
	WRITE_ONCE(q->guard_bytes, min3(2 * mtu, n.media_target / 8, n.elastic_target / 8));
	paqm_derive_drr(q, cu, ct, mtu);
	paqm_derive_crowd(q);
	small = max_t(u64, paqm_div64(q->capacity, PAQM_SMALL_DIV), 8000);
	WRITE_ONCE(q->small_q8, paqm_div64((8ULL * NSEC_PER_SEC << 8) + small - 1, small));
	WRITE_ONCE(u->st.share, cu);
	WRITE_ONCE(t->st.share, q->capacity - min(cu, q->capacity));
}

/* Depth of the buckets, with flows of @bps. */
static u32 paqm_find_depth(const struct paqm_sched_data *q, u64 bps, u32 cost)
{
	u64 each = paqm_div64(PAQM_BURSTS_NS, max(q->census.heavy, 2U) - 1);
	u64 bytes = paqm_bytes_in(bps, PAQM_BUCKET_NS);

	/*
	 * A burst that fits into a bucket goes before the packets of all others, and unpaced
	 * pictures of several flows may coincide. Those of small flows are small.
	 */
	if (q->n_media > 1)
		bytes = min(bytes, paqm_bytes_in(q->capacity, min_t(u64, each, PAQM_BURST_NS)));
	bytes = max(bytes, paqm_groups_bytes(q, bps));
	bytes = max_t(u64, bytes, PAQM_BUCKET_PACKETS * psched_mtu(qdisc_dev(q->sch)));
	return paqm_bucket_depth(cost, min_t(u64, bytes, 1U << 30));
}

/*
 * While there is a standing common queue, buckets hold one packet and fill at the fair rate itself.
 * One forms when several flows that were below their rate return to it at once, each with a full
 * bucket; together they then send at the rate of the link, so it would not drain by itself. It also
 * forms when a flow returns to its rate while another was offered what it had left. Flows that are
 * paced do not need more than a packet.
 */
void paqm_buckets_in_force(struct paqm_sched_data *q)
{
	u32 depth = READ_ONCE(q->depth_wide), pace = READ_ONCE(q->pace_wide), i;

	if (READ_ONCE(q->queue[PAQM_MEDIA].st.backlog) > READ_ONCE(q->stands_bytes)) {
		depth = min(depth, READ_ONCE(q->depth_packet));
		pace = max(pace, READ_ONCE(q->pace_narrow));
		WRITE_ONCE(q->stood, true);
	}
	WRITE_ONCE(q->bucket_depth, depth);
	for (i = 0; i < PAQM_PACES; i++)
		WRITE_ONCE(q->owed_most[i], depth + (i == PAQM_PACE_DEAF ? PAQM_BUCKET_OWED_DEAF :
									   PAQM_BUCKET_OWED));
	WRITE_ONCE(q->pace[PAQM_PACE_FOLLOW], pace);
}

void paqm_paces_in_force(struct paqm_sched_data *q)
{
	int i;

	for (i = PAQM_PACE_FOLLOW + 1; i < PAQM_PACES; i++)
		WRITE_ONCE(q->pace[i], READ_ONCE(q->pace_next[i]));
	WRITE_ONCE(q->pace_wide, READ_ONCE(q->pace_next[PAQM_PACE_FOLLOW]));
	WRITE_ONCE(q->pace_narrow, READ_ONCE(q->pace_base));
	WRITE_ONCE(q->depth_wide, READ_ONCE(q->depth_next));
	paqm_buckets_in_force(q);
}

/* A rate as part of media's, Q16; a little less, or flows that use all of theirs would wait. */
static u32 paqm_part(u64 bps, u64 cu)
{
	return min_t(u64, paqm_muldiv(bps, PAQM_OVER_MOST_Q16, cu), PAQM_OVER_MOST_Q16);
}

/*
 * How fast buckets fill, how much they hold, and the parts of overflow queues. What concerns
 * buckets comes into force later (paqm_publish_paces()).
 */
static void paqm_find_paces(struct paqm_sched_data *q)
{
	u64 cu = max(paqm_media_capacity(q), 1ULL);
	u32 mtu = psched_mtu(qdisc_dev(q->sch));
	u64 follow, deaf, newcomers, one, burst, strangers;
	u32 cost;

	if (q->n_media) {
		follow = paqm_mul_q24(q->right, PAQM_BUCKET_SLACK_Q24);
		deaf = paqm_by_demands(q) ? q->fair_base : q->right;
		newcomers = follow * max(q->newcomers, 1U);
		one = paqm_mul_q24(q->fair_new, PAQM_BUCKET_SLACK_Q24);
		burst = follow;
	} else { /* nothing is known of the first flow yet */
		follow = cu / 2;
		deaf = cu / 2;
		newcomers = cu;
		one = cu / 8;
		burst = one;
	}
	WRITE_ONCE(q->pace_next[PAQM_PACE_FOLLOW], paqm_bucket_cost(follow));
	WRITE_ONCE(q->pace_next[PAQM_PACE_DEAF], paqm_bucket_cost(deaf));
	WRITE_ONCE(q->pace_base, paqm_bucket_cost(min(follow, deaf)));
	/* where most newcomers are spoofed, they all go to the queue of strangers */
	WRITE_ONCE(q->pace_next[PAQM_PACE_NEW],
		   q->n_media && q->credit_q16 < PAQM_CREDIT_LEAST_Q16 ? U32_MAX :
		   paqm_bucket_cost(newcomers));
	WRITE_ONCE(q->pace_next[PAQM_PACE_ONE], paqm_bucket_cost(one));
	cost = paqm_bucket_cost(burst);
	WRITE_ONCE(q->depth_next, paqm_find_depth(q, burst, cost));
	/* whole pictures of several flows are a standing queue, and none of them is to blame */
	WRITE_ONCE(q->depth_packet, q->cfg.gop ? q->depth_next : paqm_bucket_depth(cost, mtu));
	/* a packet of each flow is no standing queue, nor is one that senders are steered to */
	WRITE_ONCE(q->stands_bytes,
		   max3(paqm_bytes_in(cu, PAQM_STANDS_NS), 2ULL * paqm_media_target(q),
			min_t(u64, (u64)max(q->n_media, 2U) * mtu, S32_MAX)));
	WRITE_ONCE(q->over_part, paqm_part(q->fair_base, cu));
	/* newcomers have a part in the common queue already; spoofed ones have not */
	strangers = min(q->newcomers ? q->fair_new : max(q->stranger_rate, q->stranger_mean),
			q->fair_base);
	WRITE_ONCE(q->over_part_new, max(paqm_part(strangers, cu), PAQM_Q16_ONE / 16));
}

/*
 * A rise is in force at once. A fall is when advice has had time to reach all flows and to act: no
 * flow is beyond its rate before it can know. The timer of the inner loop puts it in force.
 */
void paqm_publish_paces(struct paqm_sched_data *q, u64 now)
{
	u64 news = paqm_news_ns(q), tell, due;

	paqm_find_outside(q);
	tell = paqm_tell_ns(q);
	due = news ? news + tell : 0;

	WRITE_ONCE(q->slow, tell > q->period_us * (u64)NSEC_PER_USEC);
	paqm_find_paces(q);
	/* flows that do not follow need no time to react */
	WRITE_ONCE(q->pace[PAQM_PACE_DEAF], READ_ONCE(q->pace_next[PAQM_PACE_DEAF]));
	if (READ_ONCE(q->pace_next[PAQM_PACE_FOLLOW]) <= READ_ONCE(q->pace_wide) ||
	    !due || !q->n_media) {
		WRITE_ONCE(q->pace_due, 0);
		paqm_paces_in_force(q);
	} else if (!READ_ONCE(q->pace_due)) {
		q->pace_first = now;
		WRITE_ONCE(q->pace_due, now + due);
	} else {
		/* a further fall takes time, too, but does not put it off for ever */
		WRITE_ONCE(q->pace_due, min(now + due, q->pace_first + 2 * due));
	}
}
