/* SPDX-License-Identifier: GPL-2.0 */
/* The end of a round, as the outer loop sees it; paqm_publish.c. */
#ifndef PAQM_PUBLISH_H
#define PAQM_PUBLISH_H

#include "paqm_state.h"

void paqm_publish(struct paqm_sched_data *q, bool whole);

#endif /* PAQM_PUBLISH_H */
