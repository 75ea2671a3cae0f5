// SPDX-License-Identifier: GPL-2.0
/*
 * The census of sch_paqm: a walk over the flow table that measures all flows, judges which of them
 * follow, and adds up each host. Process context, without the qdisc lock; the only writer of what
 * belongs to the outer loop.
 */
#include <linux/string.h>
#include "paqm_census.h"

#define PAQM_YOUNG_DIV 8 /* a flow below such a part of R does not grow: audio */
#define PAQM_CROWD_BPS 3000 /* bit/s: half of a full packet in two seconds */
#define PAQM_DEAF_STRIKE 3 /* rounds after which policing may begin */

/**
 * struct paqm_right - what a media flow that is known may send
 * @told: lowest rate that it was told, bit/s; 0: not judged by that yet
 * @fair: as in struct paqm_walk, for this flow
 * @most: @fair_most, for this flow
 * @equal: for this flow
 * @now: what it sends, measured just now; else PAQM_RATE_UNKNOWN
 * @part_q16: of what the unit of the division has: 1 where that is the flow
 * @host: its host, where hosts are equal
 * @shares: and has more flows
 * @more: what it was told
 */
struct paqm_right {
	u64 told;
	u64 fair;
	u64 most;
	u64 equal;
	u64 now;
	u32 part_q16;
	struct paqm_host *host;
	bool shares;
	struct paqm_flow_more *more;
};

/* Count a flow, or a host, in the water-filling; @told: 0: assume that it grows. */
static void paqm_census_add(struct paqm_census *c, u64 rate, u64 held, u64 told)
{
	paqm_mm_add(&c->mm, held, told);
	if (held < paqm_mul_q24(told, PAQM_MM_GREEDY_Q24))
		c->held += held - rate;
}

/* Count a flow in its host; @told as in struct paqm_right, 0: assume that it grows. */
static void paqm_host_add(const struct paqm_flow_gauge *g, const struct paqm_walk *w,
			  const struct paqm_right *r, u32 flows, u64 told)
{
	struct paqm_host *h = r->host;

	h->seen++;
	h->rate += g->rate;
	h->held += g->held;
	h->told += told;
	h->grows |= !told;
	if (r->shares && g->rate < paqm_mul_q24(paqm_div64(w->fair, flows), PAQM_MM_GREEDY_Q24)) {
		h->limited += g->rate;
		h->n_limited++;
	}
}

/**
 * paqm_flow_publish() - what the outer loop has found out about a flow
 * @f: its slot
 * @seen: @every, as it was when the slot was the flow's for sure
 * @every: what it is to be; PAQM_CLAIM is taken from @seen
 *
 * The outer loop holds no lock. It may have been kept from running since it looked at the slot,
 * for so long that the flow was silent for @age_ticks and another one has the slot, which then must
 * not be known, or policed, for what the old one did. So @every is written only if no claim was
 * in between, which would have turned PAQM_CLAIM over: both are in one word, and comparing and
 * writing that is one step. @seen was read before the tag was found to be the same as before:
 *
 *	paqm_flows_claim()		paqm_flow_visit()
 *	tag = 0				tag (acquire)
 *	smp_wmb()			seen = every, with PAQM_CLAIM
 *	PAQM_CLAIM turns over		smp_rmb()
 *	tag = new (release)		tag again: go on only if it is the same
 *					compare PAQM_CLAIM in every with seen, and write
 *
 * If @seen is what the claim wrote, the second look at the tag finds 0 or the new one. If it is
 * what was there before, the comparison fails once the claim has written, and if the claim writes
 * later, it writes over what was published. Only two claims in that time, between which at least
 * @age_ticks pass, would look like none. Whatever the datapath writes to the word meanwhile makes
 * the step fail, and it is tried again.
 *
 * Return: whether it is the same flow still.
 */
static bool paqm_flow_publish(struct paqm_flow *f, u8 seen, u8 every)
{
	struct paqm_flow next;
	u32 old = READ_ONCE(f->word);

	do {
		next.word = old;
		if ((next.every ^ seen) & PAQM_CLAIM)
			return false;
		next.every = (every & ~PAQM_CLAIM) | (seen & PAQM_CLAIM);
	} while (!try_cmpxchg(&f->word, &old, next.word));
	return true;
}

/*
 * Judge one media flow that is known by what it sends against what it was told. @seen: as for
 * paqm_flow_publish(); @flows: of its host.
 */
static void paqm_flow_judge(struct paqm_flow *f, struct paqm_flow_gauge *g,
			    const struct paqm_walk *w, struct paqm_census *c,
			    const struct paqm_right *r, u32 flows, u8 seen)
{
	u32 every = 0, drop = 0;
	u64 told = r->told;
	bool young;

	if (r->now != PAQM_RATE_UNKNOWN)
		paqm_heed_window(g, r->more, r->now, r->most, w->crowded);
	if (g->deaf)
		every = paqm_heed_rare(g, r->more);
	/*
	 * Police a flow, if configured, that has sent more than twice the fair rate for long,
	 * while media is overloaded; then until it follows, since the drops themselves end the
	 * overload. It keeps an equal part of the link: the others, which are told of changes
	 * only, leave it that much.
	 */
	if (w->police && g->deaf > PAQM_DEAF_STRIKE && g->rate > r->fair &&
	    (g->drop || (w->overloaded && g->rate > 2 * r->fair))) {
		drop = PAQM_U32_MAX - (u32)paqm_muldiv(min(r->fair, r->equal ?: r->fair),
						       PAQM_U32_MAX, g->rate);
		c->policed++;
	}
	if (g->drop != drop)
		WRITE_ONCE(g->drop, drop);
	every |= PAQM_KNOWN | (r->shares ? PAQM_SHARES : 0);
	every |= drop ? PAQM_POLICED : 0;
	every |= paqm_heed_strict(g, r->more) ? PAQM_DEAF : 0;
	every |= seen & PAQM_CLAIM;
	if (seen != every && !paqm_flow_publish(f, seen, every))
		return; /* the flow has gone, and another one has its slot */
	if (g->deaf) {
		c->deaf++;
		c->deaf_q16 += r->part_q16;
	}
	c->heavy += g->rate >= r->fair / 4;
	/* entitlement, not appetite: a flow that sends more than its rate counts as using it */
	/* assume that it grows while its answer to advice may be on its way */
	young = w->now_tick - g->mark_tick < w->answer_ticks && g->rate >= told / PAQM_YOUNG_DIV;
	if (w->cautious || young)
		told = 0;
	if (told && !g->deaf && g->rate >= paqm_mul_q24(told, PAQM_MM_GREEDY_Q24)) {
		c->follow_q16 += r->part_q16;
		c->follow_rate += g->rate;
	}
	if (r->host)
		paqm_host_add(g, w, r, flows, told);
	else
		paqm_census_add(c, g->rate, g->held, told);
}

/* Add a media flow to the list of the fastest. */
static void paqm_top_add(struct paqm_top *top, const struct paqm_flow *f,
			 const struct paqm_flow_more *m, const struct paqm_flow_gauge *g)
{
	u32 i;

	if (top->n == PAQM_TOP_FLOWS && g->rate <= top->flow[PAQM_TOP_FLOWS - 1].rate)
		return;
	i = top->n < PAQM_TOP_FLOWS ? top->n++ : PAQM_TOP_FLOWS - 1;
	for (; i && top->flow[i - 1].rate < g->rate; i--)
		top->flow[i] = top->flow[i - 1];
	top->flow[i] = (struct paqm_top_flow){
		.tuple = m->tuple,
		.rate = g->rate,
		.told = READ_ONCE(m->told.rate),
		.told_tick = READ_ONCE(m->told.tick),
		.last_tick = READ_ONCE(f->last_tick),
		.drop = g->drop,
		.tag = READ_ONCE(f->tag),
		.lost = READ_ONCE(m->lost),
		.marked = READ_ONCE(m->marked),
		.over = READ_ONCE(f->over),
		.deaf = g->deaf,
		.hears = READ_ONCE(m->hears),
		.host = m->host,
		.every = READ_ONCE(f->every),
	};
}

/* Set the beginning of the measuring window of every flow. */
void paqm_flows_mark(struct paqm_flows *t)
{
	u32 i, n = paqm_flows_slots(t);

	for (i = 0; i < n; i++) {
		if (READ_ONCE(t->flow[i].tag) && t->gauge[i].marked <= PAQM_MARKED_ROUND) {
			u32 bytes = READ_ONCE(t->flow[i].bytes);

			paqm_gauge_open(&t->gauge[i], bytes, paqm_flow_turns(&t->gauge[i], bytes));
			WRITE_ONCE(t->gauge[i].marked, PAQM_MARKED_ROUND);
		}
		if (!(i & 8191))
			cond_resched();
	}
}

/* Has an elastic flow, with @bytes after @turns, sent enough to be counted? */
static bool paqm_flow_counts(struct paqm_flow_gauge *g, const struct paqm_walk *w, u32 bytes,
			     u16 turns)
{
	if (turns)
		bytes = U32_MAX;
	/* many bytes, or two windows above the limit; off at half of it */
	if (g->rate < w->mouse / 2 && g->counted == 2 && g->rate)
		g->counted = 0;
	else if (bytes >= PAQM_MOUSE_BYTES && !g->rate)
		g->counted = 2;
	else if (g->rate >= w->mouse && g->counted < 2 && w->window_ns >= w->window_min_ns)
		g->counted = bytes >= PAQM_MOUSE_BYTES ? 2 : g->counted + 1;
	return g->counted == 2;
}

/*
 * As how much of a flow, Q16, does an elastic one count in the division? A game or a video over TCP
 * that uses less than half of what it may does not want the rest.
 */
static u32 paqm_elastic_part(const struct paqm_flow_gauge *g, const struct paqm_walk *w)
{
	if (!g->rate || g->rate >= w->elastic_each / 2)
		return PAQM_Q16_ONE;
	return paqm_muldiv(g->rate, PAQM_Q16_ONE, w->elastic_each);
}

/* What a media flow may send where hosts are equal; @r holds the rates of its host. */
static u32 paqm_host_right(struct paqm_flow_more *m, const struct paqm_walk *w,
			   struct paqm_right *r, u64 before)
{
	u32 place = paqm_host_place(&m->tuple, w->hosts->side, w->key), low, high;
	u32 flows = max(w->hosts->flows[w->hosts->side][place], 1U);

	r->host = &w->hosts->host[place];
	if (flows == 1)
		return flows;
	WRITE_ONCE(m->host, place);
	low = max_t(u32, r->host->low, PAQM_PART_ONE);
	high = max(r->host->high, low);
	r->shares = true;
	r->fair = paqm_muldiv(r->fair, PAQM_PART_ONE, high);
	r->most = paqm_muldiv(r->most, PAQM_PART_ONE, low);
	r->equal = paqm_div64(r->equal, flows);
	r->part_q16 = PAQM_Q16_ONE * PAQM_PART_ONE / max_t(u32, r->host->parts, PAQM_PART_ONE);
	r->told = paqm_mm_may_grow(paqm_muldiv(w->fair_least, PAQM_PART_ONE, high), r->equal,
				   before, w->slow);
	return flows;
}

/*
 * Does a media flow send still, as far as its usual pauses tell? A camera, or a screen that is
 * shared, may send two pictures a second. @measured: a window has ended.
 */
static bool paqm_flow_sending(struct paqm_flow_gauge *g, u32 silent, bool measured)
{
	if (silent > max_t(u32, PAQM_FLOW_SENDING_TICKS, 2 * PAQM_PAUSE_TICKS * g->pause))
		return false;
	if (measured) {
		g->rare = g->pause >= PAQM_PAUSE_LONG &&
			  (g->rare || silent < PAQM_PAUSE_LONG * PAQM_PAUSE_TICKS);
		g->lasts = g->pause * PAQM_PAUSE_TICKS / PAQM_LASTS_TICKS;
		g->pause = clamp_t(u32, DIV_ROUND_UP(silent, PAQM_PAUSE_TICKS),
				   g->pause - !!g->pause, PAQM_PAUSE_MOST);
	}
	return true;
}

/*
 * An active media flow. A newcomer is known when it has lasted for a window and used
 * something in it; until then it weighs nothing by itself (paqm_weigh_newcomers()).
 */
static void paqm_flow_visit_media(struct paqm_flows *t, struct paqm_flow *f,
				  const struct paqm_walk *w, struct paqm_census *c, u32 bytes,
				  u16 turns, u8 seen, bool measured, u64 now, u64 before)
{
	struct paqm_flow_gauge *g = paqm_flow_gauge(t, f);
	struct paqm_flow_more *m = paqm_flow_more(t, f);
	struct paqm_right r = {
		.told = paqm_mm_may_grow(w->fair_least, w->equal, before, w->slow),
		.fair = w->fair,
		.most = w->fair_most,
		.equal = w->equal,
		.now = now,
		.part_q16 = PAQM_Q16_ONE,
		.more = m,
	};
	bool sending = paqm_flow_sending(g, paqm_flow_silent(f, w->now_tick), measured);
	bool proven = false;
	u32 flows = 1;

	c->media++;
	c->sending += sending;
	if (!(seen & PAQM_KNOWN)) {
		if (!measured || !g->rate || g->marked == PAQM_MARKED_ROUND) {
			bool again = paqm_gauge_again(g);

			if (!again) {
				c->newcomers++;
				c->joining += paqm_host_joins(m, w);
			}
			if (paqm_gauge_own(g))
				return;
			paqm_gauge_open(g, bytes, turns);
			g->mark_tick = w->now_tick;
			WRITE_ONCE(g->marked, again ? PAQM_MARKED_AGAIN : PAQM_MARKED_OWN);
			return;
		}
		c->proven++;
		proven = true;
	}
	if (w->hosts && w->hosts->side != PAQM_SIDE_NONE)
		flows = paqm_host_right(m, w, &r, before);
	else
		c->takers++;
	r.told = paqm_heed_knows(m, w, r.told);
	if (proven) { /* newcomers were told the same, whatever their host */
		r.told = w->fair_new;
		r.most = w->fair_most;
	}
	if (!sending) /* nothing is held for who may have left */
		g->held = g->rate;
	else if (measured)
		g->held = paqm_mm_hold(g->held, before, g->rate, r.told, w->queued);
	else /* it may have been elastic when it was measured last */
		g->held = max(g->held, g->rate);
	paqm_flow_judge(f, g, w, c, &r, flows, seen);
	paqm_top_add(&c->top, f, m, g);
}

/* Does a flow count in its host, as it is known or will be in this walk? */
static bool paqm_flow_has_host(const struct paqm_flow *f, struct paqm_flow_gauge *g,
			       const struct paqm_walk *w)
{
	u32 silent = paqm_flow_silent(f, w->now_tick), bytes = READ_ONCE(f->bytes);

	if (paqm_flow_class(f) != PAQM_MEDIA || silent > paqm_flow_patience(g))
		return false;
	if (READ_ONCE(f->every) & PAQM_KNOWN)
		return true;
	return g->known == READ_ONCE(g->claim) && paqm_gauge_own(g) && bytes != g->mark &&
	       paqm_newcomer_window(g, w, paqm_gauge_sent(g, bytes, paqm_flow_turns(g, bytes)),
				    silent);
}

/* Before a walk: how many media flows has each host? A flow's part is known with the first. */
static void paqm_hosts_count(struct paqm_flows *t, const struct paqm_walk *w)
{
	u32 i, n = paqm_flows_slots(t), many[PAQM_SIDES] = {};
	struct paqm_hosts *h = w->hosts;
	int side;

	memset(h->flows, 0, sizeof(h->flows));
	memset(h->elastic, 0, sizeof(h->elastic));
	for (i = 0; i < n; i++) {
		/* pairs with the release in paqm_flows_claim() */
		if (smp_load_acquire(&t->flow[i].tag) &&
		    paqm_flow_has_host(&t->flow[i], &t->gauge[i], w))
			for (side = 0; side < PAQM_SIDES; side++)
				h->flows[side][paqm_host_place(&t->more[i].tuple, side, w->key)]++;
		if (!(i & 8191))
			cond_resched();
	}
	for (i = 0; i < PAQM_HOSTS; i++) {
		for (side = 0; side < PAQM_SIDES; side++)
			many[side] += !!h->flows[side][i];
		h->host[i].rate = 0;
		h->host[i].held = 0;
		h->host[i].told = 0;
		h->host[i].limited = 0;
		h->host[i].n_limited = 0;
		h->host[i].seen = 0;
		h->host[i].grows = false;
		h->host[i].joins = false;
	}
	h->side = paqm_hosts_side(many[PAQM_SIDE_SOURCE], many[PAQM_SIDE_DESTINATION], h->side);
}

/* After it: hosts are what capacity is divided among. */
static void paqm_hosts_add(const struct paqm_walk *w, struct paqm_census *c)
{
	u32 i;

	for (i = 0; i < PAQM_HOSTS; i++) {
		const struct paqm_host *h = &w->hosts->host[i];
		u64 told = h->seen > 1 ? min(h->told, w->fair_least) : h->told;

		if (!h->seen)
			continue;
		c->takers++;
		paqm_census_add(c, h->rate, h->held, h->grows ? 0 : told);
	}
}

/* Nothing is known of what a flow sends. */
static void paqm_flow_blank(const struct paqm_flows *t, const struct paqm_flow *f,
			    struct paqm_flow_gauge *g)
{
	WRITE_ONCE(g->rate, 0);
	g->held = 0;
	g->deaf = 0;
	paqm_flow_more(t, f)->lean = 0;
	WRITE_ONCE(g->drop, 0);
	paqm_gauge_steady(g);
}

/*
 * What is known of a flow that left young is not valid when it comes again. Else a sender that uses
 * some ports in turn would soon be as many flows that are known.
 */
static void paqm_flow_forget(const struct paqm_flows *t, struct paqm_flow *f,
			     struct paqm_flow_gauge *g, u8 seen)
{
	if (!paqm_flow_publish(f, seen, 0))
		return; /* the flow has gone, and another one has its slot */
	paqm_flow_blank(t, f, g);
	WRITE_ONCE(g->marked, PAQM_MARKED_ENDED);
}

/* One slot in use. */
static void paqm_flow_visit(struct paqm_flows *t, struct paqm_flow *f, u32 tag,
			    const struct paqm_walk *w, struct paqm_census *c)
{
	struct paqm_flow_gauge *g = paqm_flow_gauge(t, f);
	u32 bytes = READ_ONCE(f->bytes), last = READ_ONCE(f->last_tick);
	u32 silent = paqm_flow_silence(last, w->now_tick);
	u16 turns = paqm_flow_turns(g, bytes), claim = READ_ONCE(g->claim);
	u8 class = paqm_flow_class(f), seen = READ_ONCE(f->every);
	bool measured = false, active;
	u32 patience, part;
	u64 before, now = PAQM_RATE_UNKNOWN;

	smp_rmb(); /* pairs with smp_wmb() in paqm_flows_claim() */
	if (READ_ONCE(f->tag) != tag)
		return;
	if (g->known != claim) { /* a new flow: nothing measured yet */
		paqm_flow_blank(t, f, g);
		g->stay = PAQM_STAY_FREE;
		g->counted = 0;
		g->mark_tick = w->now_tick;
		WRITE_ONCE(g->marked, PAQM_MARKED_NOT);
		/* nothing is left of the last one: pairs with the acquire in paqm_flow_marked() */
		smp_store_release(&g->known, claim);
	}
	before = g->rate;
	/* time wraps after 52 days: the dead stay dead, but not a flow that came just now */
	if (silent > PAQM_SILENT_LONG)
		cmpxchg(&f->last_tick, last, w->now_tick - PAQM_SILENT_LONG / 2);
	active = silent <= paqm_flow_patience(g);
	if (active || g->marked == PAQM_MARKED_ROUND)
		measured = paqm_flow_measure(g, w, bytes, turns, silent, &now);
	if (!active)
		c->passed += paqm_gauge_silent(g, silent);
	if (silent > t->age_ticks)
		return;
	c->used++;
	if (class == PAQM_MEDIA && paqm_newcomer_judge(g, w, silent, tag, c) && seen & PAQM_KNOWN) {
		paqm_flow_forget(t, f, g, seen);
		active = false; /* one that is waited for while it pauses, too */
	}
	c->rare += class == PAQM_MEDIA && paqm_gauge_again(g) && silent <= PAQM_FLOW_RARE_TICKS;
	c->crowd += class == PAQM_ELASTIC && g->rate >= PAQM_CROWD_BPS;
	if (!active)
		return;
	if (class == PAQM_MEDIA) {
		paqm_flow_visit_media(t, f, w, c, bytes, turns, seen, measured, now, before);
	} else if (class == PAQM_ELASTIC) {
		paqm_gauge_steady(g); /* it may have been media */
		patience = paqm_elastic_patience(g, w, silent);
		if (silent > patience)
			return;
		c->present++;
		if (!paqm_flow_counts(g, w, bytes, turns))
			return;
		c->elastic++;
		part = paqm_elastic_part(g, w);
		c->elastic_q16 += part;
		c->greedy += part == PAQM_Q16_ONE;
		c->leaves = min(c->leaves, patience - silent);
		if (w->hosts)
			paqm_host_elastic(w, &paqm_flow_more(t, f)->tuple);
	}
}

/**
 * paqm_flows_walk() - measure all flows and take the census of a round
 * @t: table
 * @w: how
 * @c: result
 *
 * Process context; the only writer of the outer loop's fields.
 */
void paqm_flows_walk(struct paqm_flows *t, const struct paqm_walk *w, struct paqm_census *c)
{
	u32 i, n = paqm_flows_slots(t);

	paqm_mm_reset(&c->mm);
	memset_startat(c, 0, media);
	c->leaves = w->elastic_ticks;
	c->top.n = 0;
	if (w->hosts)
		paqm_hosts_count(t, w);
	for (i = 0; i < n; i++) {
		/* pairs with the release in paqm_flows_claim() */
		u32 tag = smp_load_acquire(&t->flow[i].tag);

		if (tag)
			paqm_flow_visit(t, &t->flow[i], tag, w, c);
		if (!(i & 8191))
			cond_resched();
	}
	if (w->hosts)
		paqm_hosts_add(w, c);
}
