// SPDX-License-Identifier: GPL-2.0
/*
 * What sch_paqm tells a flow, and by which of its packets: in a notice that quotes one, or in a
 * field that the packet carries. Under the qdisc lock.
 */
#include <linux/netdevice.h>
#include "core/paqm_law.h"
#include "core/paqm_maxmin.h"
#include "core/paqm_msg.h"
#include "paqm_classify.h"
#include "paqm_derive.h"
#include "paqm_feedback.h"
#include "paqm_inband.h"
#include "paqm_isolate.h"
#include "paqm_notice.h"
#include "paqm_trace.h"

#define PAQM_SPACING_TICKS 16 /* between two notices to a flow; with jitter, up to twice that */
#define PAQM_NOTICE_WORTH (2 * PAQM_MSG_SENT_MAX) /* bytes sent between two notices */
#define PAQM_UNFIT_MOST 8 /* unquotable packets of a flow in a round; from then on */
#define PAQM_UNFIT_ONE_IN 64 /* few are looked at. Pictures begin with small ones */
#define PAQM_NEWS_Q23 (1 << 20) /* binary32 rates closer than that differ by an eighth at most */

/* The rate of a flow on the link, bit/s. */
static u64 paqm_may_send(const struct paqm_sched_data *q, struct paqm_flow *flow)
{
	u64 rate = READ_ONCE(paqm_flow_gauge(&q->flows, flow)->rate);
	u64 fair = READ_ONCE(q->fair), equal = READ_ONCE(q->equal);
	const struct paqm_host *host;

	if (!(READ_ONCE(flow->every) & PAQM_KNOWN))
		return READ_ONCE(q->fair_new);
	if (!(READ_ONCE(flow->every) & PAQM_SHARES))
		return min(paqm_mm_may_grow(fair, equal, rate, READ_ONCE(q->slow)), fair);
	host = paqm_host_of(q, flow);
	return paqm_mm_may_grow(paqm_host_part(host, fair),
				paqm_div64(equal, max(READ_ONCE(host->flows), 1U)), rate,
				READ_ONCE(q->slow));
}

/*
 * The rate that a flow is told, bit/s on the IP layer. A flow of packets that are much smaller
 * than others' has less of its share of the link there: it would overrun that.
 */
static u64 paqm_told(const struct paqm_sched_data *q, struct paqm_flow *flow)
{
	u64 rate;
	u32 own;

	if (!paqm_by_demands(q)) {
		rate = READ_ONCE(paqm_flow_gauge(&q->flows, flow)->rate);
		if (!rate || !paqm_each_says(&q->each))
			return q->advice.rate;
		rate = min(paqm_each_rate(&q->each, rate), READ_ONCE(q->capacity));
		return max(paqm_ip_rate(q, rate), PAQM_RATE_MIN);
	}
	rate = paqm_may_send(q, flow);
	own = paqm_flow_own_part(paqm_flow_more(&q->flows, flow), q->ip_part);
	if (own)
		return max(rate * own >> PAQM_IP_SHIFT, PAQM_RATE_MIN);
	if (!(READ_ONCE(flow->every) & PAQM_KNOWN))
		return q->told_new;
	if (rate == READ_ONCE(q->fair))
		return q->advice.rate;
	return max(paqm_ip_rate(q, rate), PAQM_RATE_MIN);
}

/*
 * Where telling all flows takes long, a flow whose rate has hardly changed waits until the others
 * have been told.
 */
static bool paqm_notice_can_wait(const struct paqm_sched_data *q, struct paqm_flow *flow,
				 const struct paqm_flow_more *more, u32 now_tick)
{
	u32 crowd = READ_ONCE(q->crowd_ticks), before, told;

	before = READ_ONCE(more->told.rate);
	if (!crowd || !before || now_tick - READ_ONCE(more->told.tick) >= crowd)
		return false;
	told = paqm_f32_encode(paqm_told(q, flow), 0);
	return max(told, before) - min(told, before) < PAQM_NEWS_Q23;
}

/*
 * Has a packet VLAN tags within that no VLAN device of this host has put there? Its sender may live
 * in another address space. That of packet sockets and of guests behind taps has no IP socket here.
 */
static bool paqm_foreign_tags(const struct sk_buff *skb)
{
	if (likely(!eth_type_vlan(skb->protocol)))
		return false;
	return paqm_skb_cb(skb)->moved ||
	       (skb->sk && skb->sk->sk_family != AF_INET && skb->sk->sk_family != AF_INET6);
}

/* Queue a notice that quotes a packet, if that may be quoted. */
void paqm_notice(struct paqm_sched_data *q, struct paqm_flow *flow,
		 const struct sk_buff *skb, u64 now)
{
	struct paqm_flow_more *more = paqm_flow_more(&q->flows, flow);
	u32 now_tick = paqm_flow_clock(now);
	enum paqm_fb_queued queued;
	struct paqm_packet p;
	struct paqm_msg msg;

	if (paqm_notice_can_wait(q, flow, more, now_tick)) {
		flow->round = q->round;
		WRITE_ONCE(q->due_flows[0], q->due_flows[0] + 1);
		return;
	}

	/* space notices per flow; jitter avoids synchronisation */
	if (READ_ONCE(more->told.rate) &&
	    now_tick - READ_ONCE(more->told.tick) < PAQM_SPACING_TICKS +
						(flow->tag ^ q->round) % PAQM_SPACING_TICKS)
		return;
	/* no amplification: a source is sent less than it has sent itself */
	if (flow->bytes - more->told_bytes < PAQM_NOTICE_WORTH)
		return;
	/* a look costs as much as many packets: sample flows that have nothing to quote */
	if (more->unfit_round != q->round) {
		more->unfit_round = q->round;
		more->unfit = 0;
	}
	if (more->unfit == PAQM_UNFIT_MOST && paqm_draw(q) % PAQM_UNFIT_ONE_IN)
		return;
	paqm_identify(skb, &q->rules, &p);
	msg = q->advice;
	msg.rate = paqm_told(q, flow);
	if (q->overloaded)
		msg.flags |= PAQM_F_OVERLOAD;
	if (READ_ONCE(flow->every) & PAQM_POLICED)
		msg.flags |= PAQM_F_POLICED;
	queued = p.quotable && !paqm_foreign_tags(skb) ?
			 paqm_fb_queue(q->fb, skb, &msg, &more->told, now_tick, paqm_in_step(q)) :
			 PAQM_FB_UNFIT;
	if (queued == PAQM_FB_UNFIT) { /* fragment, options, tags, too little payload */
		more->unfit = min(more->unfit + 1, PAQM_UNFIT_MOST);
		paqm_count(&q->notices_unfit);
		return;
	}
	q->notice_due = max(q->notice_due, now) + q->notice_gap_ns;
	paqm_count(&q->notices_owed);
	if (queued == PAQM_FB_QUEUED) { /* else the next packet tries again */
		bool outside = READ_ONCE(more->told.outside);

		flow->round = q->round;
		WRITE_ONCE(q->due_flows[outside], q->due_flows[outside] + 1);
		more->told_bytes = flow->bytes;
	}
	if (!paqm_in_step(q)) /* what it will say is not known yet */
		trace_notice(qdisc_dev(q->sch)->name, &p, &msg, queued == PAQM_FB_QUEUED);
}

/* What a sender says of itself, for a law that asks. Round trips beyond 2 s are not believed. */
static void paqm_note_asked(struct paqm_asked *asked, const struct paqm_more *more)
{
	u64 demand = 0;

	if (more->rtt && more->rtt <= PAQM_RTT_MAX_US / PAQM_MORE_RTT_US) {
		asked->trips_us += more->rtt * PAQM_MORE_RTT_US;
		asked->trips++;
	}
	if (!paqm_f32_decode(more->demand, 0, &demand))
		asked->demand = max(asked->demand, demand);
}

/*
 * Lower the rate in a packet that joins a media queue: one of a media flow, or a probe, which
 * belongs to no flow. The packet's headers may move.
 */
void paqm_stamp_packet(struct paqm_sched_data *q, struct paqm_flow *flow,
		       struct sk_buff *skb, u64 now)
{
	struct paqm_field field = q->field;
	struct paqm_ask ask = { .each = &q->each, .said = q->said };
	enum paqm_stamp done;
	u32 told;

	if (!field.rate) /* nothing is known yet */
		return;
	if (flow)
		field.rate = paqm_f32_encode(paqm_told(q, flow), 0);
	told = field.rate; /* as a sender without a supplement takes it */
	done = paqm_stamp(skb, &field, flow, q->said ? &ask : NULL);
	if (ask.has)
		paqm_note_asked(&q->asked, &ask.more);
	paqm_count(&q->stamped[done]);
	if (flow && done != PAQM_STAMP_NONE) {
		struct paqm_flow_more *more = paqm_flow_more(&q->flows, flow);

		WRITE_ONCE(more->hears, more->hears | PAQM_HEARS_INBAND);
		paqm_told_set(&more->told, told, paqm_flow_clock(now));
	}
}
