// SPDX-License-Identifier: GPL-2.0
/*
 * What a flow sends: the windows in which that is measured, and the rate that comes of it. Part of
 * the census (paqm_census.c): process context, without the qdisc lock.
 */
#include "paqm_census.h"

#define PAQM_PICTURES 8 /* of a flow that pauses between them: its rate is the mean of as many */

/*
 * @turns that belong to the @bytes of a flow, which were read before. The last bit of @turns is the
 * first of @bytes: if they differ, @bytes are from before the last turn.
 */
u16 paqm_flow_turns(const struct paqm_flow_gauge *g, u32 bytes)
{
	u16 turns;

	smp_rmb(); /* pairs with smp_wmb() in paqm_flow_add() */
	turns = READ_ONCE(g->turns);
	return turns - ((turns & 1) != bytes >> 31);
}

/* A window of a flow that has sent @bytes, after @turns, begins. */
void paqm_gauge_open(struct paqm_flow_gauge *g, u32 bytes, u16 turns)
{
	g->mark = bytes;
	g->mark_turns = turns;
}

/* What a flow has sent in its window. */
u64 paqm_gauge_sent(const struct paqm_flow_gauge *g, u32 bytes, u16 turns)
{
	u64 now = ((u64)turns << 31) + (bytes & S32_MAX);
	u64 then = ((u64)g->mark_turns << 31) + (g->mark & S32_MAX);

	return (now - then) & ((1ULL << 46) - 1);
}

/* Nothing is known of pauses of a flow: it is taken for one that has none. */
void paqm_gauge_steady(struct paqm_flow_gauge *g)
{
	g->pause = 0;
	g->lasts = 0;
	g->rare = false;
}

/*
 * A flow is silent for longer than it is waited for. Its own window ends with that, or goes on if
 * it has ended so before: then it may be a camera of a picture a second.
 *
 * Return: whether it was a newcomer until now, and has passed.
 */
bool paqm_gauge_silent(struct paqm_flow_gauge *g, u32 silent)
{
	bool passed = g->marked == PAQM_MARKED_OWN, gone = silent > PAQM_FLOW_RARE_TICKS;

	if (gone) /* what comes after that says nothing of its pauses */
		paqm_gauge_steady(g);
	if (paqm_gauge_own(g))
		WRITE_ONCE(g->marked, passed || gone ? PAQM_MARKED_ENDED : PAQM_MARKED_RARE);
	return passed;
}

/* How long a flow's pauses are, ns, as far as two windows agree. */
static u64 paqm_flow_pause(const struct paqm_flow_gauge *g)
{
	return (u64)min(PAQM_PAUSE_TICKS * g->pause, PAQM_LASTS_TICKS * g->lasts) << 20;
}

/*
 * How many windows does a flow's rate have to be averaged over? A camera of five pictures a second
 * has one in a window, or two: by the phase it would be seen to use 80 or 160 % of what it does. So
 * there are to be some pictures, as far as its pauses tell.
 */
static u32 paqm_flow_windows(const struct paqm_flow_gauge *g, u64 window)
{
	return paqm_div64(PAQM_PICTURES * paqm_flow_pause(g), window);
}

/*
 * Has a flow that pauses, and has sent @sent in a @window, begun to do something else? A screen at
 * rest on which a film begins is no camera any more, and by the mean over its old pauses it would
 * take five seconds until that shows. Eight times: a picture in two seconds is four times the mean
 * in what is taken for its pause at most, and key pictures are larger.
 */
static void paqm_flow_wakes(struct paqm_flow_gauge *g, u64 sent, u64 window)
{
	if (!g->rate || paqm_rate_bps(sent, max(window, paqm_flow_pause(g))) < 8 * g->rate)
		return;
	g->pause /= 2;
	g->lasts /= 2;
}

/*
 * Take in a newly measured rate: smoothed, unless it is far from the old one. Flows far below the
 * fair rate matter only in sums, which the rates of all others follow: they are smoothed more.
 * @windows: as paqm_flow_windows().
 */
static void paqm_flow_rate(struct paqm_flow_gauge *g, u64 rate, const struct paqm_walk *w,
			   u32 windows)
{
	u64 diff = rate > g->rate ? rate - g->rate : g->rate - rate;

	if (g->rate && windows > 1)
		WRITE_ONCE(g->rate, paqm_div64(g->rate * (windows - 1) + rate, windows));
	else if (!g->rate || (diff > g->rate / 4 && diff > w->grain))
		WRITE_ONCE(g->rate, rate);
	else if (w->grain != U64_MAX && max(rate, g->rate) < w->fair / 2)
		WRITE_ONCE(g->rate, (3 * g->rate + rate) / 4);
	else
		WRITE_ONCE(g->rate, (g->rate + rate) / 2);
}

/*
 * Has a flow been a newcomer before, and ended unmeasured? A packet a second would make it one for
 * ever, and take a full flow's share from all others for that time. It weighs what it sends, as a
 * stranger does, until it lasts.
 */
bool paqm_gauge_again(const struct paqm_flow_gauge *g)
{
	return g->marked >= PAQM_MARKED_ENDED;
}

/* Is the window that of a flow which is not known yet? */
bool paqm_gauge_own(const struct paqm_flow_gauge *g)
{
	return g->marked >= PAQM_MARKED_OWN && g->marked != PAQM_MARKED_ENDED;
}

/*
 * What a flow sends that has sent @sent in a window; PAQM_RATE_UNKNOWN: one of its pauses. A rate
 * that is averaged falls late, and who did as told would be taken for one who does not: so a
 * picture with its pause has to say the same.
 */
static u64 paqm_flow_sends(const struct paqm_flow_gauge *g, u64 sent, u64 window, u32 windows)
{
	if (windows <= 1)
		return g->rate;
	return sent ? min(g->rate, paqm_rate_bps(sent, max(window, paqm_flow_pause(g)))) :
		      PAQM_RATE_UNKNOWN;
}

/* End a flow's window, if that is long enough. Was the flow measured? @now: paqm_flow_sends() */
bool paqm_flow_measure(struct paqm_flow_gauge *g, const struct paqm_walk *w, u32 bytes, u16 turns,
		       u32 silent, u64 *now)
{
	u64 window = w->window_ns, sent = paqm_gauge_sent(g, bytes, turns);
	u32 windows = 0;

	if (paqm_gauge_own(g)) {
		window = paqm_newcomer_window(g, w, sent, silent);
		if (!window)
			return false;
		if (g->marked == PAQM_MARKED_RARE) {
			g->pause = PAQM_PAUSE_MOST;
			g->rare = true;
		}
		WRITE_ONCE(g->marked, PAQM_MARKED_NOT); /* the next one is the round's */
	} else if (g->marked == PAQM_MARKED_ROUND && window >= w->window_min_ns) {
		paqm_flow_wakes(g, sent, window);
		windows = paqm_flow_windows(g, window);
	} else {
		return false;
	}
	paqm_flow_rate(g, paqm_rate_bps(sent, window), w, windows);
	*now = paqm_flow_sends(g, sent, window, windows);
	return true;
}
