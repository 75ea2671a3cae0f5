// SPDX-License-Identifier: GPL-2.0
/*
 * Does a media flow do as it was told? Part of the census (paqm_census.c): process context, without
 * the qdisc lock.
 */
#include "core/paqm_f32.h"
#include "core/paqm_fix.h"
#include "core/paqm_lean.h"
#include "paqm_census.h"

#define PAQM_DEAF_NOTICE 8 /* notices in vain after which they become rarer */
#define PAQM_DEAF_RAREST 6 /* and how often they do */

/**
 * paqm_heed_knows() - the rate by which a flow is judged
 * @m: the flow
 * @w: the walk
 * @fair: what such a flow is told, the lowest of late, bit/s
 *
 * Not all messages may be in the budget where many flows begin at once, and a far sender answers
 * late. One that uses all it was told would be taken for one that leaves something, and others be
 * offered that. Who was told nothing for long is judged by what all are told.
 *
 * Return: @fair, or the lowest that the flow was told lately if that is less, bit/s.
 */
u64 paqm_heed_knows(const struct paqm_flow_more *m, const struct paqm_walk *w, u64 fair)
{
	const struct paqm_told *told = &m->told;
	u32 low = READ_ONCE(told->low), then = READ_ONCE(told->low_then), own;
	u64 rate;

	if (then && w->now_tick - READ_ONCE(told->low_tick) < PAQM_TOLD_LOW_TICKS)
		low = min(low, then);
	if (!low || !w->link_q24 || paqm_f32_decode(low, 0, &rate) ||
	    w->now_tick - READ_ONCE(told->tick) >= 2 * PAQM_TOLD_LOW_TICKS)
		return fair;
	rate = paqm_mul_q24(rate, w->link_q24);
	own = paqm_flow_own_part(m, w->ip_part);
	return min(fair, own ? paqm_muldiv(rate, w->ip_part, own) : rate);
}

/**
 * paqm_heed_rare() - how rarely a flow is told that does not do as told
 * @g: the flow
 * @m: the same; updated
 *
 * What counts are notices in vain, not for how long it does so: one that would follow may have lost
 * some, and the fewer come, the longer it takes until one arrives. As many windows have to say so:
 * events may have a flow told more than once in one. One that was owed a notice that was not in the
 * budget is due in two rounds.
 *
 * Return: a logarithm, PAQM_RARE.
 */
u32 paqm_heed_rare(const struct paqm_flow_gauge *g, struct paqm_flow_more *m)
{
	u8 messages = READ_ONCE(m->told.messages), missed = messages - m->heeded;
	u32 vain = min_t(u32, missed, min(g->deaf + 0U, PAQM_DEAF_NOTICE * PAQM_DEAF_RAREST));

	m->heeded = messages - vain;
	if (vain <= PAQM_DEAF_NOTICE)
		return 0;
	return min(vain / PAQM_DEAF_NOTICE, READ_ONCE(m->told.refused) ? 1 : PAQM_DEAF_RAREST);
}

/**
 * paqm_heed_window() - take in a window that has been measured
 * @g: the flow; updated
 * @m: the same
 * @now: what it sends, bit/s
 * @most: the highest rate that it was told, bit/s; 0: none
 * @crowded: overflow queues hold packets: what this flow has too much, another one lacks
 */
void paqm_heed_window(struct paqm_flow_gauge *g, struct paqm_flow_more *m, u64 now, u64 most,
		      bool crowded)
{
	if (paqm_far_above(now, most))
		g->deaf = min_t(u32, g->deaf + 1, 1000);
	else
		g->deaf /= 2; /* a short pause does not clear the record */
	WRITE_ONCE(m->lean, paqm_lean(m->lean, g->rate, most, crowded)); /* paqm_leans() */
}

/* Has it only what it was told, and not what buckets allow beyond that? */
bool paqm_heed_strict(const struct paqm_flow_gauge *g, const struct paqm_flow_more *m)
{
	return g->deaf || m->lean >= PAQM_LEAN_SHOWN;
}
