// SPDX-License-Identifier: GPL-2.0
/*
 * Events of sch_paqm: what asks the outer loop (paqm_outer.c) for a round at once. Whoever notices
 * one calls this: datapath, timers, a new configuration.
 */
#include <linux/workqueue.h>
#include "paqm_event.h"

/*
 * Runs all outer loops. Unbound: a walk over a million flows takes longer than other work on the
 * same CPU should have to wait.
 */
struct workqueue_struct *paqm_wq;

/*
 * Ask for a round at once; the work item keeps the gap between event rounds. The published system
 * has none: `noevents`.
 */
void paqm_raise(struct paqm_sched_data *q, enum paqm_event ev)
{
	if (READ_ONCE(q->cfg.events) && !test_and_set_bit(ev, &q->events))
		queue_work(paqm_wq, &q->outer_work);
}
