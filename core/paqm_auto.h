/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Capacity of a link that nobody tells: measured from departures while packets wait.
 *
 * A rate can only be seen while the link is the one that decides when a packet
 * leaves. The meter counts bytes and time of such intervals: from one departure
 * that had to wait to the next. What leaves together with the first packet of a
 * busy period is not counted, since the device below may swallow a burst.
 *
 * The estimator takes the meter's counts every few ms into two means, weighted by
 * busy time: a short one and a long one. Their minimum is the capacity: it falls
 * with the short mean and rises with the long one. Without packets waiting nothing
 * is measured; if all the same nearly all that was offered is in use, the estimate
 * grows until they do wait. How much of it is offered follows from how often a
 * queue stands: rarely on a steady link, which loses nothing, too often on one
 * that falls faster than senders can be told.
 */
#ifndef PAQM_AUTO_H
#define PAQM_AUTO_H

#include "paqm_fix.h"

#define PAQM_AUTO_TICK_NS 10000000U
/* Departures nearer than this are one burst of the device below. */
#define PAQM_METER_GAP_NS 50000U

/**
 * struct paqm_meter - departures while packets wait
 * @sent: all bytes that left; only grows
 * @bytes: that left in measured intervals; only grows
 * @ns: length of those intervals; only grows
 * @anchor: last departure that had to wait, ns
 * @pending: bytes that left since then
 * @busy: packets have been waiting since @anchor
 * @fresh: the interval that began at @anchor may hold a swallowed burst
 */
struct paqm_meter {
	paqm_u64 sent;
	paqm_u64 bytes;
	paqm_u64 ns;
	paqm_u64 anchor;
	paqm_u64 pending;
	paqm_u8 busy;
	paqm_u8 fresh;
};

/**
 * paqm_meter_sent() - a packet leaves
 * @m: meter
 * @now: ns
 * @len: bytes
 * @waiting: more packets wait
 */
static inline void paqm_meter_sent(struct paqm_meter *m, paqm_u64 now, paqm_u32 len, int waiting)
{
	m->sent += len;
	if (!m->busy) {
		m->busy = !!waiting;
		m->fresh = 1;
		m->anchor = now;
		m->pending = 0;
		return;
	}
	if (now - m->anchor >= PAQM_METER_GAP_NS) {
		if (!m->fresh) {
			m->bytes += m->pending;
			m->ns += now - m->anchor;
		}
		m->fresh = 0;
		m->anchor = now;
		m->pending = 0;
	}
	m->pending += len;
	m->busy = !!waiting;
}

/**
 * struct paqm_mean - mean rate over busy time, exponentially forgotten
 * @bytes: weighted sum, Q8: that of a single packet, too, can grow by a thousandth
 * @ns: weighted busy time
 */
struct paqm_mean {
	paqm_u64 bytes;
	paqm_u64 ns;
};

#define PAQM_MEAN_SHIFT 8
#define PAQM_MEAN_LEAST_NS 10000000ULL
/*
 * Memory of the two means: busy time after which 63 % is forgotten. What the long one holds counts
 * half after as much time in which nothing waits: after a fall senders keep below the link, there
 * is little to measure for a second, and the rate before the fall must not return.
 */
#define PAQM_AUTO_SHORT_NS 30000000ULL
#define PAQM_AUTO_LONG_NS 400000000ULL
/* The short mean is of use from this much busy time on. */
#define PAQM_AUTO_LEAST_NS 10000000ULL
/*
 * And while more waits than this part of what may: a link that has become slower leaves a queue.
 * Where none stands the few packets that were measured have met by chance.
 */
#define PAQM_AUTO_STANDS_DIV 3
/* Window for the load and for the part of time in which packets wait. */
#define PAQM_AUTO_LOAD_NS 160000000ULL

/*
 * Growth per tick while no packet waits: 10 % a second near the rate that was measured last, since
 * what is beyond the link's has become a queue before senders hear of it; more the further the
 * estimate has come without one, as the link must have become faster.
 */
#define PAQM_AUTO_GROWTH_Q24 PAQM_Q24(1, 1000)
#define PAQM_AUTO_GROWTH_DIV 40 /* and so much of what it is beyond the measured rate, */
#define PAQM_AUTO_GROWTH_MAX_Q24 PAQM_Q24(15, 1000) /* up to this */
/* The same while nothing was measured yet: twice in 100 ms. */
#define PAQM_AUTO_START_Q24 PAQM_Q24(72, 1000)
/* It grows if this part of it is in use ... */
#define PAQM_AUTO_USED_Q24 PAQM_Q24(80, 100)
#define PAQM_AUTO_START_USED_Q24 PAQM_Q24(40, 100)
/* ... and packets wait for less than this part of the time. */
#define PAQM_AUTO_WAITING_Q16 (PAQM_Q16_ONE / 2)
/*
 * A queue that a fall of the rate has left is to be gone after this time; with the
 * period of the outer loop instead it stands for most of a second.
 */
#define PAQM_AUTO_DRAIN_US 50000U

/*
 * Headroom per tick: up while the queue is longer than allowed, down while it is
 * not. It stays where it is if the queue is too long for 4 % of the time: long queues
 * hold more packets than short ones, so that of the packets 5 % or so have to wait.
 */
#define PAQM_AUTO_HEADROOM_UP_Q24 PAQM_Q24(96, 10000)
#define PAQM_AUTO_HEADROOM_DOWN_Q24 PAQM_Q24(4, 10000)
#define PAQM_AUTO_HEADROOM_MAX_Q24 PAQM_Q24(50, 100)
#define PAQM_AUTO_HEADROOM_TICKS 4 /* a tick that comes late counts as that many at most */
/*
 * It goes up for so many ticks at once, and for an eighth of the time. What stands longer was left
 * by a fall that no headroom would have held: counting all of it takes a quarter of a link that is
 * steady again, for seconds.
 */
#define PAQM_AUTO_HEADROOM_ONCE_Q8 (6 * 256)
#define PAQM_AUTO_HEADROOM_AGAIN 3 /* shift */
/* How much further a fall is taken to go: time until news act, over the long memory. */
#define PAQM_AUTO_LEAD_Q24 PAQM_Q24_ONE
#define PAQM_AUTO_LEAD_DIV 3		/* of the short mean, at most that part */
#define PAQM_AUTO_RATE_START 1000000ULL /* bit/s, before anything is known */
#define PAQM_AUTO_RATE_MIN 8000ULL

/**
 * struct paqm_auto_in - what is known at a tick
 * @meter: copy of the meter
 * @now: ns
 * @limit: most that the device can do, bit/s
 * @queue: all that waits, bytes
 * @backlog: of the flows that are told, bytes
 * @allowed: what of it may stand without being too much, bytes
 */
struct paqm_auto_in {
	struct paqm_meter meter;
	paqm_u64 now;
	paqm_u64 limit;
	paqm_u32 queue;
	paqm_u32 backlog;
	paqm_u32 allowed;
};

/**
 * struct paqm_auto_vars - state of the estimator
 * @fast: short mean
 * @slow: long mean
 * @usual: long mean without growth
 * @load: bytes sent and time passed, lately
 * @seen: meter at the last tick
 * @stamp: ns of the last tick
 * @capacity: result, bit/s
 * @waiting_q16: part of the time in which packets waited, lately
 * @headroom_q24: part of the capacity to leave unused, so that a dip finds it unused
 * @upward_q8: ticks for which the headroom may still go up, Q8
 * @measured: packets have waited at least once
 */
struct paqm_auto_vars {
	struct paqm_mean fast;
	struct paqm_mean slow;
	struct paqm_mean usual;
	struct paqm_mean load;
	struct paqm_meter seen;
	paqm_u64 stamp;
	paqm_u64 capacity;
	paqm_u32 waiting_q16;
	paqm_u32 headroom_q24;
	paqm_u32 upward_q8;
	paqm_u8 measured;
};

/* A single interval is worth @memory at most: an outage is not remembered for its length. */
static inline void paqm_mean_add(struct paqm_mean *m, paqm_u64 bytes, paqm_u64 ns, paqm_u64 memory)
{
	paqm_u64 weight = paqm_min64(ns, memory);

	bytes <<= PAQM_MEAN_SHIFT;
	if (ns > memory)
		bytes = paqm_muldiv(bytes, memory, ns);
	m->bytes = paqm_muldiv(m->bytes, memory, memory + weight) + bytes;
	m->ns = paqm_muldiv(m->ns, memory, memory + weight) + weight;
}

static inline paqm_u64 paqm_mean_bps(const struct paqm_mean *m)
{
	return paqm_rate_bps(m->bytes, m->ns) >> PAQM_MEAN_SHIFT;
}

static inline void paqm_mean_forget(struct paqm_mean *m, paqm_u64 elapsed, paqm_u64 half)
{
	/* too little to weigh anything; further on rounding would spoil the ratio */
	if (m->ns < PAQM_MEAN_LEAST_NS)
		return;
	m->bytes = paqm_muldiv(m->bytes, half, half + elapsed);
	m->ns = paqm_muldiv(m->ns, half, half + elapsed);
}

static inline void paqm_auto_init(struct paqm_auto_vars *v)
{
	*v = (struct paqm_auto_vars){.capacity = PAQM_AUTO_RATE_START,
				     .upward_q8 = PAQM_AUTO_HEADROOM_ONCE_Q8};
}

/* After silence: what was measured stands, the clocks begin anew. */
static inline void paqm_auto_wake(struct paqm_auto_vars *v, const struct paqm_auto_in *in)
{
	v->seen = in->meter;
	v->stamp = in->now;
	v->load = (struct paqm_mean){0, 0};
	v->waiting_q16 = 0;
}

/* By how much the estimate grows in this tick, Q24. */
static inline paqm_u32 paqm_auto_growth(const struct paqm_auto_vars *v)
{
	paqm_u64 load = paqm_mean_bps(&v->load);
	paqm_u64 offered = paqm_mul_q24(v->capacity, PAQM_Q24_ONE - v->headroom_q24);
	paqm_u64 beyond, growth;

	if (!v->measured)
		return load < paqm_mul_q24(offered, PAQM_AUTO_START_USED_Q24) ? 0
									      : PAQM_AUTO_START_Q24;
	if (load < paqm_mul_q24(offered, PAQM_AUTO_USED_Q24))
		return 0;
	if (v->waiting_q16 >= PAQM_AUTO_WAITING_Q16)
		return 0;
	/* both means are of the same time */
	beyond = paqm_muldiv(v->slow.bytes - paqm_min64(v->usual.bytes, v->slow.bytes),
			     PAQM_Q24_ONE, paqm_max64(v->usual.bytes, 1));
	growth = paqm_min64(PAQM_AUTO_GROWTH_Q24 + paqm_div64(beyond, PAQM_AUTO_GROWTH_DIV),
			    PAQM_AUTO_GROWTH_MAX_Q24);
	return (paqm_u32)paqm_muldiv(growth, PAQM_AUTO_WAITING_Q16 - v->waiting_q16,
				     PAQM_AUTO_WAITING_Q16);
}

static inline void paqm_mean_grow(struct paqm_mean *m, paqm_u32 growth_q24)
{
	m->bytes += paqm_mul_q24(m->bytes, growth_q24);
}

/*
 * The smallest headroom with which the queue is rarely too long: steps up and down
 * in the ratio of the two parts of the time (Robbins and Monro, Ann. Math. Statist.
 * 22(3), 1951, for a quantile).
 */
static inline void paqm_auto_margin(struct paqm_auto_vars *v, const struct paqm_auto_in *in,
				    paqm_u64 elapsed)
{
	paqm_u64 ticks_q8 = paqm_min64(paqm_muldiv(elapsed, 256, PAQM_AUTO_TICK_NS),
				       256 * PAQM_AUTO_HEADROOM_TICKS);
	paqm_u32 step;

	v->upward_q8 = (paqm_u32)paqm_min64(v->upward_q8 + (ticks_q8 >> PAQM_AUTO_HEADROOM_AGAIN),
					    PAQM_AUTO_HEADROOM_ONCE_Q8);
	if (in->backlog > in->allowed) {
		ticks_q8 = paqm_min64(ticks_q8, v->upward_q8);
		v->upward_q8 -= (paqm_u32)ticks_q8;
		step = (paqm_u32)(PAQM_AUTO_HEADROOM_UP_Q24 * ticks_q8 >> 8);
		v->headroom_q24 =
			(paqm_u32)paqm_min64(v->headroom_q24 + step, PAQM_AUTO_HEADROOM_MAX_Q24);
	} else {
		step = (paqm_u32)(PAQM_AUTO_HEADROOM_DOWN_Q24 * ticks_q8 >> 8);
		v->headroom_q24 -= (paqm_u32)paqm_min64(v->headroom_q24, step);
	}
}

/* What the link mostly does: queues are not cut to a passing dip. bit/s */
static inline paqm_u64 paqm_auto_usual(const struct paqm_auto_vars *v)
{
	if (!v->measured)
		return v->capacity;
	return paqm_max64(v->capacity, paqm_mean_bps(&v->usual));
}

/* The short mean; while it falls, where it will be when the senders have heard of it. */
static inline paqm_u64 paqm_auto_lead(paqm_u64 recent, paqm_u64 usual)
{
	paqm_u64 fall;

	if (recent >= usual)
		return recent;
	fall = paqm_mul_q24(usual - recent, PAQM_AUTO_LEAD_Q24);
	return recent - paqm_min64(fall, paqm_div64(recent, PAQM_AUTO_LEAD_DIV));
}

/**
 * paqm_auto_tick() - one step of the estimator, every PAQM_AUTO_TICK_NS or so
 * @v: state
 * @in: what is known
 *
 * Return: capacity, bit/s.
 */
static inline paqm_u64 paqm_auto_tick(struct paqm_auto_vars *v, const struct paqm_auto_in *in)
{
	paqm_u64 bytes = in->meter.bytes - v->seen.bytes, ns = in->meter.ns - v->seen.ns;
	paqm_u64 elapsed = in->now - v->stamp, open = 0, rate, recent, usual;
	struct paqm_mean fast;
	paqm_u32 growth;

	if (in->now <= v->stamp)
		return v->capacity;
	/* an interval that has not ended: packets wait, and nothing has left since */
	if (in->meter.busy && !in->meter.fresh)
		open = in->now - in->meter.anchor;
	paqm_mean_add(&v->load, in->meter.sent - v->seen.sent, elapsed, PAQM_AUTO_LOAD_NS);
	rate = paqm_min64(ns + open, elapsed) << 16;
	v->waiting_q16 = (paqm_u32)paqm_div64(v->waiting_q16 * PAQM_AUTO_LOAD_NS + rate,
					      PAQM_AUTO_LOAD_NS + elapsed);
	v->seen = in->meter;
	v->stamp = in->now;
	paqm_auto_margin(v, in, elapsed);

	if (ns) {
		v->measured = 1;
		paqm_mean_add(&v->fast, bytes, ns, PAQM_AUTO_SHORT_NS);
		paqm_mean_add(&v->slow, bytes, ns, PAQM_AUTO_LONG_NS);
		paqm_mean_add(&v->usual, bytes, ns, PAQM_AUTO_LONG_NS);
	} else if (!open) {
		paqm_mean_forget(&v->fast, elapsed, PAQM_AUTO_LOAD_NS);
		paqm_mean_forget(&v->slow, elapsed, PAQM_AUTO_LONG_NS);
		paqm_mean_forget(&v->usual, elapsed, PAQM_AUTO_LONG_NS);
	}
	growth = paqm_auto_growth(v);
	if (v->measured) {
		paqm_mean_grow(&v->fast, growth);
		paqm_mean_grow(&v->slow, growth);
		rate = paqm_mean_bps(&v->slow);
		fast = v->fast;
		if (open) {
			fast.bytes += in->meter.pending << PAQM_MEAN_SHIFT;
			fast.ns += open;
		}
		if (fast.ns >= PAQM_AUTO_LEAST_NS &&
		    in->queue > in->allowed / PAQM_AUTO_STANDS_DIV) {
			recent = paqm_mean_bps(&fast);
			usual = paqm_mean_bps(&v->usual);
			rate = paqm_min64(rate, paqm_auto_lead(recent, usual));
		}
	} else {
		rate = v->capacity + paqm_mul_q24(v->capacity, growth);
	}
	v->capacity =
		paqm_clamp64(rate, PAQM_AUTO_RATE_MIN, paqm_max64(in->limit, PAQM_AUTO_RATE_MIN));
	return v->capacity;
}

#endif /* PAQM_AUTO_H */
