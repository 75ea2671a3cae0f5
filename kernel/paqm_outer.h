/* SPDX-License-Identifier: GPL-2.0 */
/* The outer loop, as the other parts of sch_paqm see it; paqm_outer.c. */
#ifndef PAQM_OUTER_H
#define PAQM_OUTER_H

#include <linux/workqueue.h>

#define PAQM_NOTICES_FREE 1500 /* a second; more only as one for PAQM_NOTICE_PACKETS */
#define PAQM_NOTICE_PACKETS 512 /* one message per this many packets: they cost at most 2 % */

void paqm_outer_work(struct work_struct *work);
enum hrtimer_restart paqm_outer_timer(struct hrtimer *timer);
void paqm_outer_stop(struct paqm_sched_data *q);

#endif /* PAQM_OUTER_H */
