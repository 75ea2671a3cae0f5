/* SPDX-License-Identifier: GPL-2.0 */
/* What flows that are not known yet count for, as a round sees it; paqm_stranger.c. */
#ifndef PAQM_STRANGER_H
#define PAQM_STRANGER_H

#include "paqm_state.h"

void paqm_weigh_newcomers(struct paqm_sched_data *q, bool whole);

#endif /* PAQM_STRANGER_H */
