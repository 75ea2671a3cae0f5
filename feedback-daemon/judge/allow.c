// SPDX-License-Identifier: GPL-2.0
/* Allowances per router and their combination; see allow.h. */
#include "feedback-daemon/judge/allow.h"

#define WINDUP 2 /* sender specification 3.1: 2 leaves the shares as they are */

/* Damping: a fall by a quarter soon after a raise by a quarter is a flap. Flows that join
 * make a few of them: nine flows that share a link within five seconds cost those that were
 * there one each, and must not hold them back. More than that, or one every two seconds for
 * long, hold the rate: it then rises at once only to what was asked for throughout the last
 * half second, and slowly above. Who was held is not trusted again before half a minute
 * of quiet.
 */
#define FLAP_SOON_NS 5000000000ULL
#define FLAP_DEBT_NS 2500000000ULL
#define FLAP_AGAIN_NS 10000000000ULL
#define FLAP_HOLD_NS 22000000000ULL
#define FLAP_FREE_NS 15000000000ULL
#define FLAP_MOST_NS 30000000000ULL
#define FLAP_RISE_NS 2000000000ULL /* a held rate doubles in this time at most */
#define FLAP_LOW_NS 125000000ULL   /* part of the half second in which lows count */

#define ECF_MIN_Q24 PAQM_Q24(1, 10) /* deepest single decrease (Paper F) */

/* Relative values leave shares as unequal as they find them. The absolute rate of the
 * same message is every flow's right: no flow stays below it, except as far as an
 * overloaded queue needs to drain.
 */
#define ECF_RIGHT_Q24 PAQM_Q24(95, 100)

const char *const allow_uses[ALLOW_USES] = {ALLOW_USE_WORDS};

static struct allow *slot_of(const struct allow_set *s, uint64_t router_id)
{
	size_t i;

	for (i = 0; i < ALLOW_ROUTERS; i++)
		if (s->slot[i].used && s->slot[i].msg.router_id == router_id)
			return (struct allow *)&s->slot[i];
	return NULL;
}

/* A free slot, or that of the router which has been silent for longest. */
static struct allow *slot_for_new(const struct allow_set *s)
{
	const struct allow *best = NULL;
	size_t i;

	for (i = 0; i < ALLOW_ROUTERS; i++) {
		const struct allow *a = &s->slot[i];

		if (!a->used)
			return (struct allow *)a;
		if (!a->active && (!best || a->mono_ns < best->mono_ns))
			best = a;
	}
	return (struct allow *)best;
}

enum allow_order allow_order(const struct allow_set *s, const struct paqm_msg *m)
{
	const struct allow *a = slot_of(s, m->router_id);

	if (!a)
		return slot_for_new(s) ? ALLOW_NEWER : ALLOW_FULL;
	if (a->has_old_boot && m->boot == a->old_boot)
		return ALLOW_OLD_BOOT;
	if (m->boot != a->msg.boot || paqm_seq_newer(m->seq, a->msg.seq))
		return ALLOW_NEWER;
	return m->seq == a->msg.seq ? ALLOW_REPLAY : ALLOW_STALE;
}

/* Whole bit/s of a checked binary32, at least 1. */
static uint64_t f32_bps(uint32_t bits)
{
	paqm_u64 v = 0;

	if (paqm_f32_decode(bits, 0, &v))
		return 1;
	return paqm_max64(v, 1);
}

static uint64_t ecf_step(uint64_t rate, uint32_t ecf, uint64_t ceil_bps)
{
	paqm_u64 q24 = PAQM_Q24_ONE;

	/* Values of 1 and less fit into Q24; what does not fit is an increase. */
	if (ecf == PAQM_F32_ONE)
		return rate;
	if (!paqm_f32_decode(ecf, 24, &q24) && q24 < PAQM_Q24_ONE)
		return paqm_max64(paqm_muldiv(rate, paqm_max64(q24, ECF_MIN_Q24), PAQM_Q24_ONE), 1);
	return paqm_min64(ceil_bps, rate + f32_bps(ecf));
}

/* What an ECF value counts from. */
static uint64_t ecf_base(const struct allow_set *s, const struct allow *a, const struct paqm_msg *m,
			 uint64_t floor_bps, uint64_t ceil_bps)
{
	uint64_t net, most;
	const struct allow *min;
	unsigned int active;

	if (!a->active)
		return ceil_bps;
	net = allow_min(s, floor_bps, ceil_bps, &min, &active);
	/* The flow cannot have used more than twice what it may send. */
	most = paqm_max64(WINDUP * net, m->rate);
	return paqm_clamp64(a->rate, floor_bps / WINDUP, paqm_min64(ceil_bps, most));
}

/* Is there nothing for @m to be relative to, or was a message in between lost? */
static bool is_gap(const struct allow *a, const struct paqm_msg *m)
{
	return !a->active || m->boot != a->msg.boot || m->seq - a->msg.seq > 1;
}

static uint64_t expiry_ns(const struct paqm_msg *m)
{
	return paqm_clamp64(3 * 1000000ULL * m->period_ms, ALLOW_EXPIRY_MIN_NS,
			    ALLOW_EXPIRY_MAX_NS);
}

struct allow *allow_apply(struct allow_set *s, const struct paqm_msg *m, const struct addr *addr,
			  uint64_t floor_bps, uint64_t ceil_bps, enum allow_use use,
			  uint64_t now_ns, uint64_t keep_ns)
{
	bool published = allow_published(use);
	struct allow *a;

	allow_expire(s, now_ns, keep_ns);
	a = slot_of(s, m->router_id);
	if (!a) {
		a = slot_for_new(s);
		if (!a)
			return NULL;
		*a = (struct allow){.used = true};
	} else if (m->boot != a->msg.boot) {
		a->old_boot = a->msg.boot;
		a->has_old_boot = true;
	}
	if (published)
		use -= ALLOW_USE_THESIS_ERF;
	/* a router whose law is another says no relative value */
	if (!m->ecf)
		use = ALLOW_USE_ERF;
	if (use == ALLOW_USE_ERF || (!published && is_gap(a, m) && m->rate))
		a->rate = paqm_max64(m->rate, 1);
	else if (published)
		a->rate = ecf_step(a->active ? paqm_min64(a->rate, ceil_bps) : ceil_bps, m->ecf,
				   ceil_bps);
	else
		a->rate = paqm_max64(
			ecf_step(ecf_base(s, a, m, floor_bps, ceil_bps), m->ecf, ceil_bps),
			paqm_mul_q24(m->rate, ECF_RIGHT_Q24));
	a->active = true;
	a->use = use;
	a->msg = *m;
	a->addr = *addr;
	a->mono_ns = now_ns;
	a->expires_ns = now_ns + expiry_ns(m);
	s->spoken = true;
	return a;
}

unsigned int allow_expire(struct allow_set *s, uint64_t now_ns, uint64_t keep_ns)
{
	unsigned int n = 0;
	size_t i;

	for (i = 0; i < ALLOW_ROUTERS; i++) {
		struct allow *a = &s->slot[i];

		if (!a->used || now_ns < a->expires_ns)
			continue;
		if (a->active)
			n++;
		a->active = false;
		/* The sequence outlives the allowance by the life of a digest:
		 * otherwise an old message could be played back here.
		 */
		if (now_ns >= a->expires_ns + keep_ns)
			a->used = false;
	}
	return n;
}

uint64_t allow_next(const struct allow_set *s, uint64_t keep_ns)
{
	uint64_t next = UINT64_MAX;
	size_t i;

	for (i = 0; i < ALLOW_ROUTERS; i++) {
		const struct allow *a = &s->slot[i];

		if (a->used)
			next = paqm_min64(next, a->expires_ns + (a->active ? 0 : keep_ns));
	}
	return next;
}

uint64_t allow_min(const struct allow_set *s, uint64_t floor_bps, uint64_t ceil_bps,
		   const struct allow **min, unsigned int *active)
{
	uint64_t rate;
	size_t i;

	*min = NULL;
	*active = 0;
	for (i = 0; i < ALLOW_ROUTERS; i++) {
		const struct allow *a = &s->slot[i];

		if (!a->used || !a->active)
			continue;
		++*active;
		if (!*min || a->rate < (*min)->rate)
			*min = a;
	}
	if (!*min)
		return 0;
	rate = s->damp.held ? paqm_min64((*min)->rate, s->damp.rate) : (*min)->rate;
	return paqm_clamp64(rate, floor_bps, ceil_bps);
}

/* The rate falls by a quarter or more: was it raised a moment ago? */
static void damp_fall(struct allow_damp *d, uint64_t now_ns)
{
	if (d->raised && now_ns < d->raised_ns + FLAP_SOON_NS)
		d->debt_ns = paqm_min64(FLAP_MOST_NS,
					d->debt_ns + (d->known ? FLAP_AGAIN_NS : FLAP_DEBT_NS));
	d->raised = false;
	d->mark = 0;
}

/* The least that was asked for in the last four to five parts of the window. What swings
 * faster than that asks for its lows only. An honest router on a link that swings asks for
 * little for a moment, while its queue drains, and then for what the link has.
 */
static uint64_t damp_low(struct allow_damp *d, uint64_t rate, uint64_t now_ns)
{
	uint64_t least = rate;
	size_t i;

	for (i = 0; i < ALLOW_LOWS && now_ns >= d->low_ns + FLAP_LOW_NS; i++) {
		memmove(d->low + 1, d->low, sizeof(d->low) - sizeof(d->low[0]));
		/* what was asked for last holds until now */
		d->low[0] = d->asked ? d->asked : rate;
		d->low_ns = i + 1 < ALLOW_LOWS ? d->low_ns + FLAP_LOW_NS : now_ns;
	}
	d->low[0] = paqm_min64(d->low[0], rate);
	d->asked = rate;
	for (i = 0; i < ALLOW_LOWS; i++)
		least = paqm_min64(least, d->low[i]);
	return least;
}

void allow_damp(struct allow_set *s, enum allow_use use, uint64_t ceil_bps, uint64_t now_ns)
{
	struct allow_damp *d = &s->damp;
	const struct allow *min;
	unsigned int active;
	bool held = d->held;
	uint64_t rate, low;

	if (allow_published(use)) {
		*d = (struct allow_damp){0};
		return;
	}
	d->held = false;
	rate = allow_min(s, 0, ceil_bps, &min, &active);
	/* What was captured on another device may be older: time does not go back. */
	now_ns = paqm_max64(now_ns, d->seen_ns);
	d->debt_ns -= paqm_min64(d->debt_ns, now_ns - d->seen_ns);
	d->seen_ns = now_ns;
	low = rate ? damp_low(d, rate, now_ns) : 0;
	if (!d->debt_ns)
		d->known = false;
	if (rate && d->rate && rate <= d->rate - d->rate / 4)
		damp_fall(d, now_ns);
	if (d->debt_ns >= FLAP_HOLD_NS)
		held = d->known = true;
	else if (d->debt_ns < FLAP_FREE_NS)
		held = false;
	d->held = held;
	if (held && d->rate && rate > d->rate) {
		/* slowly, but not never: if the link itself swings, its lows are not the right rate
		 */
		uint64_t ms = paqm_min64(now_ns - d->moved_ns, FLAP_RISE_NS) / 1000000;

		d->rate += d->rate * ms / (FLAP_RISE_NS / 1000000);
		d->rate = paqm_min64(rate, paqm_max64(d->rate, low));
		d->moved_ns = now_ns;
		return;
	}
	d->moved_ns = now_ns;
	d->rate = rate; /* 0: without advice the application decides; the past counts on */
	if (!d->mark || rate < d->mark) {
		d->mark = rate;
	} else if (rate >= d->mark + d->mark / 4) {
		d->mark = rate;
		d->raised = true;
		d->raised_ns = now_ns;
	}
}
