/* SPDX-License-Identifier: GPL-2.0 */
/* The inner loop, as the other parts of sch_paqm see it; paqm_inner.c. */
#ifndef PAQM_INNER_H
#define PAQM_INNER_H

#include "paqm_state.h"

enum hrtimer_restart paqm_inner_timer(struct hrtimer *timer);

#endif /* PAQM_INNER_H */
