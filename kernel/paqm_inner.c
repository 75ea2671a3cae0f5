// SPDX-License-Identifier: GPL-2.0
/*
 * Inner loop of sch_paqm: every dT a timer turns arrival rate and backlog of each class into a drop
 * probability, lets media's share fall, begins and ends previews, and stops when nothing comes.
 *
 * Softirq; no lock, but the qdisc's to stop.
 */
#include <linux/ktime.h>
#include <net/pkt_sched.h>
#include "core/paqm_bucket.h"
#include "core/paqm_law.h"
#include "core/paqm_sched.h"
#include "paqm_capacity.h"
#include "paqm_derive.h"
#include "paqm_inner.h"

#define PAQM_IDLE_NS (2 * NSEC_PER_SEC) /* stop the timers after this long without packets */
#define PAQM_PAUSE_NS (100 * NSEC_PER_MSEC) /* a link that works may stand still for so long, */
#define PAQM_PAUSE_REST 8 /* and again when it has moved for so many times as long */
#define PAQM_GUARD_SHIFT 4 /* the guards of the inner loop average over 2^4 periods */
#define PAQM_SHARE_FALL_NS (2 * NSEC_PER_SEC) /* time constant of a fall of media's share */
#define PAQM_PREVIEW_EVERY_NS (500 * NSEC_PER_MSEC) /* a preview begins so often, */
#define PAQM_PREVIEW_NS (100 * NSEC_PER_MSEC) /* and lasts this long, */
#define PAQM_PREVIEW_ALONE_NS (150 * NSEC_PER_MSEC) /* without elastic flows this long */
#define PAQM_PREVIEW_AGAIN_NS (300 * NSEC_PER_MSEC) /* and this long if the last one did not help */
#define PAQM_PREVIEW_VAIN 2 /* one that did not help adds this, one that did takes 1: */
#define PAQM_PREVIEW_MOST 12 /* from here on */
#define PAQM_PREVIEW_REST 16 /* there is one in so many half seconds */
#define PAQM_SHARE_STEP_Q16 (PAQM_Q16_ONE / 100) /* so little of it is no step */

/*
 * Capacity of a class: its share, or what the other class leaves of the link.
 * Without the second a class that may use idle capacity would be dropped for it.
 */
static u64 paqm_class_cap(u64 share, u64 link, u64 other_rate)
{
	return max(share, link > other_rate ? link - other_rate : 0);
}

/*
 * Does the link stand still, as in a handover or while a radio is busy? One that was believed to
 * move a packet and more in a period moves none: how long that lasts says nothing of its rate. The
 * period in which it ends is a part of one, and says nothing either. A link that stands still again
 * and again is a slow one.
 */
static bool paqm_link_pauses(struct paqm_sched_data *q, u64 link, u64 moved, u64 elapsed)
{
	u64 usual = q->moved_q24 ? min(q->moved_q24, link) : link;
	bool ended = q->pauses;

	q->pauses = false;
	if (moved) {
		q->pause_ns -= min_t(u64, q->pause_ns, elapsed / PAQM_PAUSE_REST);
		return ended;
	}
	if (usual < (u64)psched_mtu(qdisc_dev(q->sch)) << 24)
		return false;
	q->pause_ns = min_t(u64, q->pause_ns + elapsed, PAQM_PAUSE_NS);
	q->pauses = q->pause_ns < PAQM_PAUSE_NS;
	return q->pauses;
}

/*
 * What the link really moves per period, Q24 bytes, where a queue stood all the time and
 * that is much less than was believed; else @link. A capacity that is too high would
 * leave the loops at rest while the queues grow to targets of that capacity.
 */
static u64 paqm_guard_link(struct paqm_sched_data *q, u64 link, u64 elapsed)
{
	unsigned long sent = READ_ONCE(q->wire_sent);
	u64 moved = paqm_muldiv((u64)(sent - q->sent_seen) << 24, q->interval_ns, elapsed);

	q->sent_seen = sent;
	if (q->shaper.rate_bytes_ps || !READ_ONCE(q->sch->q.qlen) || READ_ONCE(q->stalled) ||
	    (s64)(ktime_get_ns() - READ_ONCE(q->idle_since)) < 2 * (s64)elapsed) {
		q->moved_q24 = 0; /* it was idle, or held back by a child */
		q->pause_ns = 0;
		q->pauses = false;
	} else if (!paqm_link_pauses(q, link, moved, elapsed)) {
		/* one period says little: the mean begins at what was believed */
		if (!q->moved_q24)
			q->moved_q24 = link;
		q->moved_q24 += (moved >> PAQM_GUARD_SHIFT) - (q->moved_q24 >> PAQM_GUARD_SHIFT);
	}
	if (!q->moved_q24 || q->moved_q24 >= (link >> 2) * 3)
		return link;
	return q->moved_q24;
}

/*
 * Nothing is dropped where nothing waits: a capacity that is believed too low would take
 * all that exceeds it for overload.
 */
static u32 paqm_guard_prob(const struct paqm_sched_data *q, const struct paqm_queue *queue,
			   u32 prob)
{
	return READ_ONCE(queue->st.backlog) < READ_ONCE(q->guard_bytes) ? 0 : prob;
}

/* One class's target or what waits there, in bytes, for a link that moves @num of @den. */
static u32 paqm_guard_target(u32 target, u64 num, u64 den)
{
	return num >= den ? target : max_t(u32, paqm_muldiv(target, num, den), 2000);
}

/* One inner period of both classes; @elapsed ns have passed. */
static void paqm_inner_period(struct paqm_sched_data *q, u64 elapsed)
{
	u32 interval = READ_ONCE(q->interval_ns);
	u64 believed = paqm_bytes_in(paqm_auto_link(q), interval) << 24;
	u64 link = paqm_guard_link(q, believed, elapsed);
	u32 share = READ_ONCE(q->share_now);
	u64 media_cap = paqm_muldiv(link, share, PAQM_Q16_ONE);
	struct paqm_queue *u = &q->queue[PAQM_MEDIA], *t = &q->queue[PAQM_ELASTIC];
	struct paqm_inner_params p = { .gain_q24 = READ_ONCE(q->cfg.gain),
				       .gamma_q24 = READ_ONCE(q->gamma) };
	/* differences of what is read in one step: on 32 bit machines that is the low word */
	unsigned long load_u = (unsigned long)READ_ONCE(u->load);
	unsigned long load_t = (unsigned long)READ_ONCE(t->load);
	/* a period that came late counts as one of the usual length */
	u64 arrived_u = paqm_muldiv(load_u - u->seen, interval, elapsed);
	u64 arrived_t = paqm_muldiv(load_t - t->seen, interval, elapsed);
	struct paqm_inner_vars v;
	u64 rate_u, rate_t;

	if (unlikely(q->interval_seen != interval)) { /* rates are bytes per interval */
		if (q->interval_seen) {
			u->inner.rate_q24 = paqm_muldiv(u->inner.rate_q24, interval,
							q->interval_seen);
			t->inner.rate_q24 = paqm_muldiv(t->inner.rate_q24, interval,
							q->interval_seen);
		}
		q->interval_seen = interval;
	}
	rate_u = u->inner.rate_q24;
	rate_t = t->inner.rate_q24;

	p.cap_q24 = paqm_class_cap(media_cap, link, rate_t);
	p.target = paqm_guard_target(READ_ONCE(u->target), link, believed);
	v = u->inner;
	paqm_inner_step(&v, &p, arrived_u, READ_ONCE(u->st.backlog));
	u->seen = load_u;
	u->inner.rate_q24 = v.rate_q24;
	WRITE_ONCE(u->inner.prob, paqm_guard_prob(q, u, v.prob));

	/* a child of the elastic class, or its flows, have an AQM: only the rate is of interest */
	p.cap_q24 = paqm_class_cap(link - media_cap, link, rate_u);
	p.target = paqm_guard_target(READ_ONCE(t->target), link, believed);
	v = t->inner;
	paqm_inner_step(&v, &p, arrived_t, READ_ONCE(t->st.backlog));
	t->seen = load_t;
	t->inner.rate_q24 = v.rate_q24;
	WRITE_ONCE(t->inner.prob, rcu_access_pointer(q->child) || READ_ONCE(q->isolate) ?
					  0 : paqm_guard_prob(q, t, v.prob));

	/* and room for no more than this link needs */
	WRITE_ONCE(q->bulk_limit, paqm_guard_target(READ_ONCE(t->limit), link, believed));
	WRITE_ONCE(q->calm, paqm_guard_target(READ_ONCE(q->calm_usual), link, believed));

	WRITE_ONCE(u->st.rate, paqm_rate_bps(u->inner.rate_q24 >> 24, interval));
	WRITE_ONCE(t->st.rate, paqm_rate_bps(t->inner.rate_q24 >> 24, interval));
	WRITE_ONCE(u->st.prob, u->inner.prob);
	WRITE_ONCE(t->st.prob, t->inner.prob);
}

/* Nothing queued and nothing arrived for long? Then stop, under the lock. */
static bool paqm_try_sleep(struct paqm_sched_data *q, u64 now)
{
	spinlock_t *lock; /* of the root qdisc */
	bool asleep = false;

	if (READ_ONCE(q->sch->q.qlen) ||
	    !paqm_idle_for(now, READ_ONCE(q->idle_since), PAQM_IDLE_NS))
		return false;
	rcu_read_lock();
	lock = qdisc_lock(qdisc_root_sleeping(q->sch));
	spin_lock(lock);
	if (!q->sch->q.qlen && paqm_idle_for(ktime_get_ns(), q->idle_since, PAQM_IDLE_NS)) {
		q->awake = false;
		q->elastic_awake = false;
		asleep = true;
	}
	spin_unlock(lock);
	rcu_read_unlock();
	return asleep;
}

/*
 * An announced fall of media's share, step by step from what it uses: flows that follow send less
 * already and leave the rest to the elastic class; previews show the others what is to come
 * (paqm_preview()). True when it is over.
 */
static bool paqm_share_falls(struct paqm_sched_data *q, u64 elapsed)
{
	u32 share = min(READ_ONCE(q->share_now), READ_ONCE(q->share_from));
	u32 next = READ_ONCE(q->share_next);
	u32 left = share > next ? share - next : 0;

	if (q->isolate && left > PAQM_SHARE_STEP_Q16) {
		left -= min_t(u32, left, paqm_muldiv(left, elapsed, PAQM_SHARE_FALL_NS) + 1);
		WRITE_ONCE(q->share_now, next + left);
		return false;
	}
	WRITE_ONCE(q->share_now, next);
	return true;
}

/* A half second has ended. Has its preview, if it had one, helped, and is there one in the next? */
static void paqm_preview_judge(struct paqm_sched_data *q, bool alone)
{
	if (q->preview_rest) {
		q->preview_rest--;
	} else if (!alone || !q->preview_again) {
		q->preview_vain -= !!q->preview_vain;
	} else {
		q->preview_vain += PAQM_PREVIEW_VAIN;
		if (q->preview_vain >= PAQM_PREVIEW_MOST) {
			q->preview_vain = PAQM_PREVIEW_MOST - PAQM_PREVIEW_VAIN;
			q->preview_rest = PAQM_PREVIEW_REST - 1;
		}
	}
}

/*
 * Previews: for a moment of every half second flows beyond their rate get no more than that rate.
 * So the delay of a flow that sends more has a slope, which delay-based congestion control sees.
 * Without previews it grows too slowly to be seen, as the flow also gets what others leave, and
 * media's share falls slowly, until there is a standing queue and CoDel has to drop. After a
 * preview the queue soon drains: the sender has slowed down, and the elastic class owes media what
 * that did not use meanwhile. If the overflow queues have not been empty since the last preview, a
 * sender did not react, and this one is longer. @since: ns since the first preview began.
 *
 * Without elastic traffic nobody has what a preview holds back. So who does not answer six in a
 * row, or most of many, is shown one in 8 s only.
 */
static void paqm_preview(struct paqm_sched_data *q, u64 since, u64 now)
{
	u64 slot = paqm_div64(since, PAQM_PREVIEW_EVERY_NS), last = slot * PAQM_PREVIEW_EVERY_NS;
	bool alone = !READ_ONCE(q->queue[PAQM_ELASTIC].st.flows);
	u64 most = alone ? PAQM_PREVIEW_ALONE_NS : PAQM_PREVIEW_NS;

	if (q->preview_slot != (u32)slot) {
		q->preview_slot = slot;
		q->preview_again = q->over_stands;
		q->over_stands = true;
		paqm_preview_judge(q, alone);
	}
	if (alone && q->preview_again)
		most = PAQM_PREVIEW_AGAIN_NS;
	if (since - last >= most || (alone && q->preview_rest)) {
		WRITE_ONCE(q->preview_from, 0);
		q->over_stands &= !!READ_ONCE(q->drr[PAQM_MEDIA].qlen);
	} else if (!q->preview_from) {
		WRITE_ONCE(q->preview_from, paqm_bucket_clock(now) | 1);
	}
}

enum hrtimer_restart paqm_inner_timer(struct hrtimer *timer)
{
	struct paqm_sched_data *q = container_of(timer, struct paqm_sched_data, inner_timer);
	u64 now = ktime_get_ns();
	u64 elapsed = now - q->inner_stamp;
	u32 interval = READ_ONCE(q->interval_ns);
	u64 due = READ_ONCE(q->share_due);

	q->inner_stamp = now;
	if (elapsed > 2ULL * interval)
		paqm_inc(&q->slips);
	paqm_inner_period(q, max_t(u64, elapsed, NSEC_PER_USEC));
	if (due && now >= due) {
		paqm_preview(q, now - due, now); /* the sooner a fall is seen the better */
		if (paqm_share_falls(q, elapsed))
			WRITE_ONCE(q->share_due, 0);
	} else {
		paqm_preview(q, now, now);
	}
	due = READ_ONCE(q->pace_due);
	if (due && now >= due) {
		paqm_paces_in_force(q);
		WRITE_ONCE(q->pace_due, 0);
	}
	paqm_buckets_in_force(q);
	if (paqm_try_sleep(q, now))
		return HRTIMER_NORESTART;
	hrtimer_forward_now(timer, ns_to_ktime(interval));
	return HRTIMER_RESTART;
}
