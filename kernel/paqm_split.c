// SPDX-License-Identifier: GPL-2.0
/*
 * The split of the link between media and elastic traffic, when a new split comes into force, and
 * for how long silent elastic traffic counts.
 * Process context under ctl_lock.
 */
#include "core/paqm_law.h"
#include "core/paqm_maxmin.h"
#include "paqm_capacity.h"
#include "paqm_class.h"
#include "paqm_split.h"

#define PAQM_SHARE_AGAIN_NS (10 * NSEC_PER_SEC) /* a fall goes on where one ended in this time */
#define PAQM_CALM_ROOM_Q24 PAQM_Q24(150, 100) /* of their mean rate, for bursts to be over soon */

/* ms since the last elastic packet came. */
static u32 paqm_elastic_silent(const struct paqm_sched_data *q, u64 now)
{
	s32 age = (s32)(paqm_flow_clock(now) - READ_ONCE(q->elastic_last));

	return paqm_flow_ms(max(age, 0)); /* one may have come after @now */
}

/* ms until the elastic class counts as idle; 0: it is, and none of its packets waits. */
u32 paqm_heard(const struct paqm_sched_data *q, u64 now)
{
	/* a far sender's window comes once per round trip */
	u32 longest = clamp_t(u32, q->rtt_us / USEC_PER_MSEC + 100, PAQM_SILENT_MS,
			      PAQM_SILENT_MOST_MS);
	u32 silent = paqm_elastic_silent(q, now), qlen, backlog;

	paqm_level(q, PAQM_ELASTIC, &qlen, &backlog);
	if (qlen)
		return PAQM_SILENT_MS;
	return silent < longest ? longest - silent : 0;
}

/* When an elastic flow has left, ticks of silence: it may wait for a retransmission, or be far. */
u32 paqm_elastic_ticks(const struct paqm_sched_data *q)
{
	u32 ms = q->rtt_us / USEC_PER_MSEC + PAQM_ELASTIC_ACTIVE_MS * 3 / 4;

	return min_t(u32, paqm_flow_clock((u64)max_t(u32, ms, PAQM_ELASTIC_ACTIVE_MS) *
					  NSEC_PER_MSEC), PAQM_FLOW_ACTIVE_TICKS);
}

/* What the elastic class uses, with room to grow: else it would lose the rest of its share. */
static u64 paqm_elastic_demand(const struct paqm_sched_data *q)
{
	u64 used = paqm_calm(q) ? paqm_mul_q24(q->elastic_long, PAQM_CALM_ROOM_Q24) :
				  paqm_mul_q24(q->elastic_mean, PAQM_MM_HEADROOM_Q24);

	return used + paqm_div64(q->capacity, 50);
}

/* For how long in sum the queues of elastic flows have held packets, ns. */
u64 paqm_elastic_busy(const struct paqm_sched_data *q, u64 now)
{
	u64 since = READ_ONCE(q->elastic_since);
	bool waits = READ_ONCE(q->drr[PAQM_ELASTIC].qlen);

	return READ_ONCE(q->elastic_busy_ns) + (waits && now > since ? now - since : 0);
}

/* What elastic flows together are entitled to, bit/s. */
static u64 paqm_elastic_share(const struct paqm_sched_data *q)
{
	return paqm_muldiv(q->capacity, PAQM_Q16_ONE - q->entitled, PAQM_Q16_ONE);
}

/*
 * Is the elastic class calm? After a measured @window, ns. A greedy flow fills its queue for most
 * of the time, whatever it gets; bursts that are served at more than their mean rate do not. What
 * begins or ends in mid-window is in two of them.
 */
void paqm_measure_calm(struct paqm_sched_data *q, u64 window, u64 now)
{
	u64 held = paqm_elastic_busy(q, now) - q->mark_busy;
	u32 busy = paqm_muldiv(min(held, window), PAQM_Q16_ONE, window);
	bool bursts = q->isolate && q->cfg.borrow && !q->cfg.split && paqm_by_demands(q) &&
		      !rcu_access_pointer(q->child) &&
		      paqm_elastic_silent(q, now) <= PAQM_CALM_SILENT_MS &&
		      busy + q->busy_then <= PAQM_Q16_ONE / 2 * 3 &&
		      2 * q->elastic_long <= paqm_elastic_share(q);

	q->busy_then = busy;
	if (!bursts) {
		q->elastic_calm = 0;
		q->elastic_long = q->elastic_rate;
		return;
	}
	/* how long a pause is says nothing about those who come after it */
	if (q->elastic_rate && q->elastic_calm < PAQM_CALM_PERIODS && !q->elastic_calm++)
		q->calm_seen = 0;
	q->calm_seen = min_t(u32, q->calm_seen + 1, PAQM_CALM_MOST);
	q->elastic_long = paqm_div64(q->elastic_long * (q->calm_seen - 1) + q->elastic_rate,
				     q->calm_seen);
}

/* Hosts, where these are to be equal, or NULL. The published laws know flows only. */
struct paqm_hosts *paqm_hosts(const struct paqm_sched_data *q)
{
	return q->cfg.weights == PAQM_WEIGHTS_HOST && paqm_by_demands(q) ? q->hosts :
										      NULL;
}

/*
 * Media share: as configured, or by what flows can use: water-filling over all flows of both
 * classes, in which an elastic flow is a greedy one of its weight. So TCP gets what audio does not
 * need of an equal share. When all media flows are limited, one more is assumed: there must be room
 * for one that begins to grow.
 */
u32 paqm_find_split(struct paqm_sched_data *q)
{
	u64 elastic = q->census.elastic_q16;
	u32 n_elastic = q->n_elastic, others;
	const struct paqm_hosts *h = paqm_hosts(q);
	u64 one, sending = q->census.sending;
	/* what is in no flow goes with media besides; all the others pay for it */
	u64 room = q->capacity - min(q->small_mean, q->capacity / 2);

	/* as many elastic flows as give each host of either class the same */
	if (h && q->n_media && n_elastic) {
		n_elastic = min(n_elastic, max(paqm_hosts_elastic(h), 1U));
		if (h->side == PAQM_SIDE_NONE) /* all are flows of a single host */
			n_elastic *= q->n_media;
	}
	if (h || !q->census.greedy || n_elastic != q->census.elastic || q->elastic_limited)
		elastic = (u64)n_elastic << 16;
	others = min_t(u64, div_u64(elastic * q->cfg.elastic_weight, q->cfg.media_weight),
		       U32_MAX);

	q->even = 0;
	if (q->cfg.split)
		return q->cfg.split;
	if (!q->n_media || !q->n_elastic || !paqm_by_demands(q))
		return paqm_share_q16(q->n_media * q->cfg.media_weight,
				      q->n_elastic * q->cfg.elastic_weight);
	/* what waits of flows that have left is no reason to serve media more than its part */
	if (sending)
		q->even = div64_u64(sending << 32, (sending << 16) + others);
	one = paqm_mm_solve_beside(&q->census.mm, others, room, 0, room);
	/* what one elastic flow gets, times all of them; or what they use, if that is less */
	one = paqm_muldiv(one, others, PAQM_Q16_ONE);
	q->entitled = PAQM_Q16_ONE - min_t(u64, paqm_muldiv(one, PAQM_Q16_ONE, q->capacity ?: 1),
					   PAQM_Q16_ONE);
	if (q->elastic_limited)
		one = min(one, paqm_elastic_demand(q));
	one = paqm_muldiv(one, PAQM_Q16_ONE, q->capacity ?: 1);
	return PAQM_Q16_ONE - min_t(u64, one, PAQM_Q16_ONE);
}

/*
 * Is the elastic class limited elsewhere? Then its packets do not wait for long, and media is
 * offered what it leaves of its share. Judged after a whole period, which has measured that.
 */
void paqm_judge_elastic(struct paqm_sched_data *q, bool whole)
{
	u64 share = paqm_elastic_share(q);
	u64 target = q->cfg.elastic_target * (u64)NSEC_PER_USEC;
	bool idle, room;

	if (!whole && q->n_elastic > q->n_elastic_then + q->n_elastic_then / 2 + 1) {
		q->elastic_limited = false; /* others have come since */
		q->elastic_calm = 0;
	}
	if (paqm_calm(q)) /* also while it pauses */
		q->n_elastic = max(q->n_elastic, 1U);
	if (!whole)
		return;
	q->n_elastic_then = max(q->n_elastic,
				q->n_elastic_then - DIV_ROUND_UP(q->n_elastic_then, 8));
	idle = 3 * q->elastic_wait_ns < target;
	/* bursts of many short flows queue behind each other even on a link with room */
	room = q->elastic_wait_ns < 2 * target &&
	       q->outer_rate + q->elastic_mean < paqm_muldiv(q->capacity, 9, 10);
	q->elastic_limited = q->cfg.borrow && q->n_elastic && !rcu_access_pointer(q->child) &&
			     (idle || room || paqm_calm(q)) && paqm_elastic_demand(q) < share;
}

u32 paqm_split(const struct paqm_sched_data *q)
{
	return READ_ONCE(q->split);
}

/* N_out of the default law, bytes. */
u32 paqm_media_target(const struct paqm_sched_data *q)
{
	return q->cfg.media_target_bytes ?:
		       paqm_mm_target(paqm_media_capacity(q), q->cfg.media_target,
				      paqm_longest_packet(q));
}

/* The same for the scheduler: a media queue that stands is drained, and no class is starved. */
static u32 paqm_share(const struct paqm_sched_data *q)
{
	u32 backlog = READ_ONCE(q->queue[PAQM_MEDIA].st.backlog), target = paqm_media_target(q);
	u32 share = paqm_split(q);

	if (backlog > target)
		share = paqm_share_draining(share, q->even, backlog - target, q->period_us,
					    q->capacity);
	return clamp_t(u32, share, PAQM_SHARE_FLOOR_Q16,
		       PAQM_Q16_ONE - PAQM_SHARE_FLOOR_Q16);
}

/* Media's part of @bps of the link: without elastic flows, all. */
u64 paqm_media_part(const struct paqm_sched_data *q, u64 bps)
{
	return q->n_elastic ? paqm_muldiv(bps, paqm_split(q), PAQM_Q16_ONE) : bps;
}

/*
 * c_u. Beside elastic traffic, on a link that varies, media has its part of what the link usually
 * takes: in a dip it is served first. But all of it together must fit into the dip.
 */
u64 paqm_media_capacity(const struct paqm_sched_data *q)
{
	u64 part = paqm_media_part(q, q->capacity);

	if (!q->n_elastic)
		return part;
	return max(part, min(paqm_media_part(q, paqm_auto_link(q)), paqm_auto_dip(q)));
}

/*
 * Put the split in force: at once in favour of media; against it after @delay, by which its senders
 * have slowed down.
 */
void paqm_transfer(struct paqm_sched_data *q, u64 now, u64 delay)
{
	u32 share = paqm_share(q);
	u32 in_force = READ_ONCE(q->share_now), from;

	if (share >= in_force || !delay || in_force - share < PAQM_SPLIT_EVENT_Q16 / 5) {
		if (share > in_force && q->share_first) {
			q->share_low = in_force;
			q->share_low_ns = now;
		}
		WRITE_ONCE(q->share_due, 0);
		WRITE_ONCE(q->share_next, share);
		WRITE_ONCE(q->share_now, share);
		return;
	}
	if (!READ_ONCE(q->share_due)) {
		from = min_t(u64, paqm_muldiv(q->outer_rate, PAQM_Q16_ONE, q->capacity ?: 1),
			     PAQM_Q16_ONE);
		/* who does not listen has had his time: TCP came, went, and is back */
		if (q->share_low_ns && now - q->share_low_ns < PAQM_SHARE_AGAIN_NS)
			from = min(from, max(q->share_low, share));
		q->share_first = now;
		paqm_inc(&q->transfers);
		WRITE_ONCE(q->share_from, from);
		WRITE_ONCE(q->share_next, share);
		WRITE_ONCE(q->share_due, now + delay);
	} else if (READ_ONCE(q->share_next) != share) {
		/* a further step takes time, too, but does not put the transfer off for ever */
		WRITE_ONCE(q->share_next, share);
		WRITE_ONCE(q->share_due, min(now + delay, q->share_first + 2 * delay));
	}
}
