/* SPDX-License-Identifier: GPL-2.0 */
/* Events that begin a round; paqm_event.c. */
#ifndef PAQM_EVENT_H
#define PAQM_EVENT_H

#include "paqm_state.h"

extern struct workqueue_struct *paqm_wq;

void paqm_raise(struct paqm_sched_data *q, enum paqm_event ev);

#endif /* PAQM_EVENT_H */
