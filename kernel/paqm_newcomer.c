// SPDX-License-Identifier: GPL-2.0
/* When a flow is known, and whether who comes stays. Part of the census, process context. */
#include "paqm_census.h"

/* A newcomer is known after this time, if its last packet is not older than the second. */
#define PAQM_NEWCOMER_NS (400 * NSEC_PER_MSEC)
#define PAQM_NEWCOMER_SILENT_TICKS 100
#define PAQM_NEWCOMER_SPAN_TICKS 500 /* or whenever it has sent for so long */

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
 * A newcomer's window, ns, in which it has sent @sent bytes; 0: it is not known yet. Of four
 * pictures a second few walks are within 0.1 s; to let all do that span less would count each port
 * of who changes it three times a second.
 */
u64 paqm_newcomer_window(struct paqm_flow_gauge *g, const struct paqm_walk *w, u64 sent, u32 silent)
{
	u32 age = w->now_tick - g->mark_tick;
	u64 window = (u64)age << 20;

	if (window < PAQM_NEWCOMER_NS || (silent > PAQM_NEWCOMER_SILENT_TICKS &&
					  age < silent + PAQM_NEWCOMER_SPAN_TICKS))
		return 0;
	return paqm_newcomer_doubtful(g, w, paqm_rate_bps(sent, window)) ? 0 : window;
}

/*
 * Count once, for a media flow that sends, or sent, more than it was told, whether it has stayed or
 * left young. Who follows may come and go.
 */
void paqm_newcomer_judge(struct paqm_flow_gauge *g, const struct paqm_walk *w, u32 silent,
			 struct paqm_census *c)
{
	bool gone = silent > PAQM_FLOW_ACTIVE_TICKS;
	bool young = w->now_tick - g->mark_tick < PAQM_FLOW_YOUNG_TICKS + silent;

	if (g->stay == PAQM_STAY_FREE && g->deaf)
		g->stay = PAQM_STAY_DEAF;
	if (g->stay != PAQM_STAY_DEAF || gone != young)
		return;
	c->left += young;
	c->stayed += !young;
	g->stay = PAQM_STAY_JUDGED;
}
