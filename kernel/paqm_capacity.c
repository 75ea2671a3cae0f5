// SPDX-License-Identifier: GPL-2.0
/*
 * `bandwidth auto`: the glue between sch_paqm and the estimator of capacity in core/paqm_auto.h.
 * The datapath meters departures under the qdisc lock, a timer feeds these counts to the estimator,
 * and the outer loop puts the estimate in force.
 */
#include "core/paqm_auto.h"
#include "paqm_capacity.h"
#include "paqm_compat.h"
#include "paqm_event.h"
#include "paqm_feedback.h"
#include "paqm_split.h"
#include "paqm_trim.h"

/* A fall of the capacity by this much is an event, ... */
#define PAQM_AUTO_FALL_Q16 (PAQM_Q16_ONE / 20)
/* ... so is a rise by this much, later: it can wait, and messages are scarce. */
#define PAQM_AUTO_RISE_Q16 (PAQM_Q16_ONE / 10)
#define PAQM_AUTO_RISE_GAP_NS (150 * NSEC_PER_MSEC)

#define PAQM_AUTO_HOLD_NS (200 * NSEC_PER_MSEC) /* media waits that long before any is dropped */
#define PAQM_AUTO_CREDIT 8 /* times the credit: so far may media be ahead in a dip */
#define PAQM_AUTO_FORGIVE 4 /* shift: of what is beyond half of that, forgiven in each tick */
#define PAQM_AUTO_ALLOWED 3 /* times media-target: a media queue that is not too long */

static void paqm_auto_look(struct paqm_sched_data *q, struct paqm_auto_in *in, u64 now)
{
	in->meter = q->meter;
	if (!q->sch->q.qlen) /* emptied by drops: nothing waits for the link */
		in->meter.busy = 0;
	in->now = now;
	in->limit = READ_ONCE(q->auto_limit);
	in->queue = q->sch->qstats.backlog;
	in->backlog = q->queue[PAQM_MEDIA].st.backlog;
	in->allowed = READ_ONCE(q->auto_allowed);
}

/* The loops start, or the option is set while they run. Under the qdisc lock. */
void paqm_auto_start(struct paqm_sched_data *q, u64 now)
{
	struct paqm_auto_in in;

	if (!paqm_auto_on(q))
		return;
	q->meter.busy = 0;
	paqm_auto_look(q, &in, now);
	paqm_auto_wake(&q->estimate, &in);
	hrtimer_start(&q->auto_timer, ns_to_ktime(PAQM_AUTO_TICK_NS),
		      HRTIMER_MODE_REL_PINNED_SOFT);
}

/*
 * Beside elastic traffic media is told its part of the usual rate, so its lead over the split
 * grows in each dip and falls after it. Repaid to the byte it would wander to its bound, and media
 * would wait there for as long as a dip lasts. Buckets bound what goes first; overflow queues have
 * the lower half of the credit only, which is exact.
 */
static void paqm_auto_forgive(struct paqm_sched_data *q)
{
	s64 beyond = q->sched.lead - ((s64)READ_ONCE(q->sched.credit) << 15);

	if (beyond > 0)
		q->sched.lead -= beyond >> PAQM_AUTO_FORGIVE;
}

/* Does the capacity differ enough for an event round? */
static bool paqm_auto_event(const struct paqm_sched_data *q, u64 now, u64 capacity)
{
	u64 in_force = READ_ONCE(q->capacity);

	if (capacity < in_force)
		return in_force - capacity > paqm_muldiv(in_force, PAQM_AUTO_FALL_Q16,
							 PAQM_Q16_ONE);
	return capacity - in_force > paqm_muldiv(in_force, PAQM_AUTO_RISE_Q16, PAQM_Q16_ONE) &&
	       now - READ_ONCE(q->event_stamp) >= PAQM_AUTO_RISE_GAP_NS;
}

static enum hrtimer_restart paqm_auto_timer(struct hrtimer *timer)
{
	struct paqm_sched_data *q = container_of(timer, struct paqm_sched_data, auto_timer);
	struct paqm_auto_in in;
	u64 capacity = 0;
	spinlock_t *lock; /* of the root qdisc */
	bool on;

	rcu_read_lock();
	lock = qdisc_lock(qdisc_root_sleeping(q->sch));
	spin_lock(lock);
	/*
	 * The whole step is under the lock under which paqm_auto_start() starts over. If that
	 * happened while we waited for the lock, the timer is queued again and this run is one
	 * too many.
	 */
	on = q->awake && paqm_auto_on(q) && !hrtimer_is_queued(timer);
	if (on) {
		paqm_auto_look(q, &in, ktime_get_ns());
		capacity = paqm_auto_tick(&q->estimate, &in);
		WRITE_ONCE(q->auto_capacity, capacity);
		WRITE_ONCE(q->auto_usual, paqm_auto_usual(&q->estimate));
		WRITE_ONCE(q->auto_headroom, q->estimate.headroom_q24);
		paqm_auto_forgive(q);
		paqm_trim_late(q->sch);
		hrtimer_forward_now(timer, ns_to_ktime(PAQM_AUTO_TICK_NS));
	}
	spin_unlock(lock);
	rcu_read_unlock();
	if (!on)
		return HRTIMER_NORESTART;
	if (paqm_auto_event(q, in.now, capacity))
		paqm_raise(q, PAQM_EV_CAPACITY);
	return HRTIMER_RESTART;
}

void paqm_auto_setup(struct paqm_sched_data *q)
{
	paqm_hrtimer_setup(&q->auto_timer, paqm_auto_timer);
	paqm_auto_init(&q->estimate);
	q->auto_capacity = q->estimate.capacity;
	q->auto_usual = q->estimate.capacity;
}

/* Until packets have once waited, the capacity is a guess. */
static void paqm_auto_source(struct paqm_sched_data *q)
{
	WRITE_ONCE(q->capacity_source, READ_ONCE(q->estimate.measured) ? PAQM_CAPACITY_MEASURED :
									 PAQM_CAPACITY_GUESS);
}

/*
 * A configuration comes into force: returns the capacity, which is @limit without this option.
 * @limit is the rate of the device, if capacity_source says so. Under the qdisc lock. What was
 * measured earlier stands.
 */
u64 paqm_auto_apply(struct paqm_sched_data *q, bool was_on, u64 limit)
{
	if (!paqm_auto_on(q))
		return limit;
	if (READ_ONCE(q->capacity_source) != PAQM_CAPACITY_DEVICE)
		limit = PAQM_BANDWIDTH_MAX * 8;
	WRITE_ONCE(q->auto_limit, limit);
	if (!was_on && q->awake)
		paqm_auto_start(q, ktime_get_ns());
	paqm_auto_source(q);
	return min(READ_ONCE(q->auto_capacity), limit);
}

/*
 * What the link could have carried since creation, bytes. Who does not hold ctl_lock may miss the
 * time since a capacity that changes just now came.
 */
u64 paqm_capacity_room(const struct paqm_sched_data *q, u64 now)
{
	u64 bytes = READ_ONCE(q->room_bytes), since = READ_ONCE(q->room_since);

	return since < now ? bytes + paqm_bytes_in(READ_ONCE(q->capacity), now - since) : bytes;
}

/* The capacity, bit/s, from @now on. Under ctl_lock. */
void paqm_capacity_set(struct paqm_sched_data *q, u64 capacity, u64 now)
{
	u64 bytes = paqm_capacity_room(q, now);

	WRITE_ONCE(q->room_since, now);
	WRITE_ONCE(q->room_bytes, bytes);
	WRITE_ONCE(q->capacity, capacity);
}

/* A round begins: the estimate, if there is one, becomes the capacity. Under ctl_lock. */
bool paqm_auto_round(struct paqm_sched_data *q)
{
	if (!paqm_auto_on(q))
		return false;
	paqm_auto_source(q);
	paqm_capacity_set(q, READ_ONCE(q->auto_capacity), ktime_get_ns());
	if (q->fb) /* not in a dip of the rate: that is when messages matter */
		paqm_fb_set_rate(q->fb, paqm_fb_budget(q->auto_usual, q->cfg.notice_part));
	return true;
}

/*
 * Target utilisation with the headroom that the link needs, Q24. Beside elastic traffic a quarter
 * of that is enough: in a dip media is served first.
 */
u32 paqm_auto_util(const struct paqm_sched_data *q, u32 rho)
{
	u32 headroom = READ_ONCE(q->auto_headroom);

	if (!paqm_auto_on(q))
		return rho;
	return rho - paqm_mul_q24(rho, q->n_elastic ? headroom / 4 : headroom);
}

/* Time in which the outer loop wants a queue gone, us. */
u32 paqm_auto_drain(const struct paqm_sched_data *q)
{
	return paqm_auto_on(q) ? min(q->period_us, PAQM_AUTO_DRAIN_US) : q->period_us;
}

/*
 * Capacity of the link for the inner loops, bit/s. Advice is conservative; a loop that drops must
 * not be. Queues absorb a short dip, so nothing is dropped in it, and elastic traffic may fill what
 * advice leaves. When a dip lasts, the usual rate falls, too.
 */
u64 paqm_auto_link(const struct paqm_sched_data *q)
{
	u64 capacity = READ_ONCE(q->capacity);

	return paqm_auto_on(q) ? max(READ_ONCE(q->auto_usual), capacity) : capacity;
}

/* What the link is sure to take, bit/s: less the headroom. */
u64 paqm_auto_dip(const struct paqm_sched_data *q)
{
	u64 capacity = READ_ONCE(q->capacity);

	if (!paqm_auto_on(q))
		return capacity;
	return capacity - paqm_mul_q24(capacity, READ_ONCE(q->auto_headroom));
}

static u32 paqm_auto_scaled(u32 bytes, u64 num, u64 den)
{
	return min_t(u64, paqm_muldiv(bytes, num, den), 1U << 30);
}

/*
 * Lengths of the queues where the rate varies: for some 100 ms it changes faster than advice can
 * follow, and packets are better late than lost. So the media queue may hold 200 ms (limit 400 ms)
 * at the usual rate of the link, a short dip shortens no queue, and media may be further ahead of
 * its share than on a steady link. @n holds the lengths for the present capacity.
 */
void paqm_auto_lengths(struct paqm_sched_data *q, struct paqm_lengths *n)
{
	u64 usual = paqm_auto_link(q), share = paqm_media_part(q, usual);
	u32 mtu = paqm_longest_packet(q), bytes;

	if (!paqm_auto_on(q))
		return;
	bytes = min_t(u64, paqm_bytes_in(share, PAQM_AUTO_HOLD_NS), 1U << 29);
	n->media_target = max(n->media_target, bytes);
	n->media_limit = 2 * n->media_target;
	bytes = min_t(u64, PAQM_AUTO_CREDIT *
			   paqm_bytes_in(share, (u64)q->cfg.credit * NSEC_PER_USEC), 1U << 30);
	n->credit = max(n->credit, bytes);
	n->elastic_target = paqm_auto_scaled(n->elastic_target, usual, q->capacity);
	n->elastic_limit = paqm_auto_scaled(n->elastic_limit, usual, q->capacity);
	/* a burst of media is served at the rate of the link, not of its share */
	bytes = q->cfg.media_target_bytes;
	if (!bytes)
		bytes = min_t(u64, paqm_bytes_in(usual, (u64)q->cfg.media_target * NSEC_PER_USEC),
			      1U << 28);
	WRITE_ONCE(q->auto_allowed, max(PAQM_AUTO_ALLOWED * bytes, 3 * mtu));
}
