// SPDX-License-Identifier: GPL-2.0
/* When a flow is known, and whether who comes stays. Part of the census, process context. */
#include "paqm_census.h"

/* A newcomer is known after this time, if its last packet is not older than the second. */
#define PAQM_NEWCOMER_NS (400 * NSEC_PER_MSEC)
#define PAQM_NEWCOMER_SILENT_TICKS 100
#define PAQM_NEWCOMER_SPAN_TICKS 500 /* or whenever it has sent for so long */
#define PAQM_RARE_MOST 64 /* flows that pause for long may become known, where there are no more */
#define PAQM_LEFT_ROUNDS 256 /* rounds in which it is forgotten that deaf flows left young */
#define PAQM_LEFT_MEMORY 2   /* flows that this is averaged over: the second is seen through */

/*
 * Is a newcomer that sends @rate bit/s one more of those that leave young, as far as can be told?
 * While most do, who sends far more than its share stays unknown until it is not young: all that
 * are have one bucket and one queue together. Known, each port would have its own, and count, for
 * half a second after its last packet: who changes the port once a second was one flow and a half.
 */
static bool paqm_newcomer_doubtful(struct paqm_flow_gauge *g, const struct paqm_walk *w, u64 rate)
{
	if (!w->rotating || !paqm_far_above(rate, w->fair_most) ||
	    w->now_tick - g->mark_tick >= PAQM_FLOW_YOUNG_TICKS)
		return false;
	g->stay = PAQM_STAY_DEAF;
	return true;
}

/*
 * Is a newcomer that pauses for long, and comes again, no camera? Hundreds of ports that somebody
 * uses in turn do so as well, or a few by each of which he has a share at least.
 */
static bool paqm_newcomer_turns(struct paqm_flow_gauge *g, const struct paqm_walk *w, u64 rate)
{
	if (g->marked != PAQM_MARKED_RARE || (rate < w->fair && w->rare <= PAQM_RARE_MOST))
		return false;
	WRITE_ONCE(g->marked, PAQM_MARKED_ENDED);
	return true;
}

/*
 * A newcomer's window, ns, in which it has sent @sent bytes; 0: it is not known yet. Of four
 * pictures a second few walks are within 0.1 s; to let all do that span less would count each port
 * of who changes it three times a second.
 */
u64 paqm_newcomer_window(struct paqm_flow_gauge *g, const struct paqm_walk *w, u64 sent, u32 silent)
{
	u32 age = w->now_tick - g->mark_tick;
	u64 window = (u64)age << 20, rate;

	if (window < PAQM_NEWCOMER_NS || (silent > PAQM_NEWCOMER_SILENT_TICKS &&
					  age < silent + PAQM_NEWCOMER_SPAN_TICKS))
		return 0;
	rate = paqm_rate_bps(sent, window);
	return paqm_newcomer_doubtful(g, w, rate) || paqm_newcomer_turns(g, w, rate) ? 0 : window;
}

/*
 * Has a flow that sends too much left, if it is not the one that did last? Somebody who pauses is
 * no sender that changes its port; who uses some ports in turn is.
 */
static void paqm_newcomer_left(struct paqm_census *c, u32 tag)
{
	c->left += c->left_tag != tag;
	c->left_tag = tag;
}

/*
 * Count once, for a media flow that sends, or sent, more than it was told, whether it has stayed or
 * left young; again when it comes after a silence. Who follows may come and go.
 *
 * Return: whether it has left young: when it comes again it is a newcomer.
 */
bool paqm_newcomer_judge(struct paqm_flow_gauge *g, const struct paqm_walk *w, u32 silent, u32 tag,
			 struct paqm_census *c)
{
	bool gone = silent > PAQM_FLOW_ACTIVE_TICKS, deaf, young, left;

	if (g->stay == PAQM_STAY_AWAY) {
		if (gone)
			return false;
		g->stay = PAQM_STAY_FREE;
		g->mark_tick = w->now_tick;
	}
	if (g->stay == PAQM_STAY_FREE && g->deaf)
		g->stay = PAQM_STAY_DEAF;
	deaf = g->stay == PAQM_STAY_DEAF;
	young = w->now_tick - g->mark_tick < PAQM_FLOW_YOUNG_TICKS + silent;
	left = deaf && gone && young;
	if (left)
		paqm_newcomer_left(c, tag);
	c->young += deaf && !gone && young;
	if (deaf && !young) {
		c->stayed++;
		g->stay = PAQM_STAY_JUDGED;
	}
	if (gone && g->stay != PAQM_STAY_FREE)
		g->stay = PAQM_STAY_AWAY;
	return left;
}

/*
 * For how long may an elastic flow be silent and still count, ticks? No longer than it has sent,
 * but for a round trip and a half at least. A page comes over connections that last for a few
 * round trips; each counted for 0.4 s more, and ten a second as four flows and a half.
 */
u32 paqm_elastic_patience(const struct paqm_flow_gauge *g, const struct paqm_walk *w,
			  u32 silent)
{
	u32 age = w->now_tick - g->mark_tick;

	return clamp_t(u32, age > silent ? age - silent : 0,
		       w->elastic_ticks - PAQM_ELASTIC_PATIENCE_TICKS, w->elastic_ticks);
}

/*
 * Do most flows that send too much leave young, as those of a sender that changes its port? Only
 * for as long as there is one, or has been: its ports follow each other, and each has passed, or is
 * seen to send too much, within a round after half a second. Who joins later joins as ever.
 */
bool paqm_newcomers_rotate(struct paqm_rotation *r, const struct paqm_census *c, u32 now_tick,
			   u32 period_ticks, bool whole)
{
	r->left_q16 = (u32)paqm_div64((u64)r->left_q16 * PAQM_LEFT_MEMORY + ((u64)c->left << 16),
				      PAQM_LEFT_MEMORY + c->left + c->stayed);
	if (whole && !c->left)
		r->left_q16 -= DIV_ROUND_UP(r->left_q16, PAQM_LEFT_ROUNDS);
	if (c->left || c->young || c->passed)
		r->tick = now_tick;
	return r->left_q16 > PAQM_Q16_ONE / 2 &&
	       now_tick - r->tick < 2 * (PAQM_FLOW_ACTIVE_TICKS + period_ticks);
}
