/* SPDX-License-Identifier: GPL-2.0 */
/* The split of the link, as the other parts of sch_paqm see it; paqm_split.c. */
#ifndef PAQM_SPLIT_H
#define PAQM_SPLIT_H

#include "paqm_state.h"

#define PAQM_SPLIT_EVENT_Q16 (PAQM_Q16_ONE / 20) /* a change of the split by 5 % is an event */
#define PAQM_ELASTIC_FLOOR_Q24 PAQM_Q24(2, 100) /* of c: less traffic is no flow of its own */
#define PAQM_SHARE_FLOOR_Q16 (PAQM_Q16_ONE / 20) /* neither class is ever starved */

/*
 * The elastic class is idle when none of its packets has come for this long. A single flow may
 * pause for longer (PAQM_ELASTIC_ACTIVE_MS); when all do, half of the link would stay unused.
 */
#define PAQM_SILENT_MS 250
#define PAQM_SILENT_MOST_MS 500 /* with far senders */

/*
 * Chats, polling, live video in pieces: an elastic class that has held no packet for a quarter of
 * the time, in so many periods that had some, is calm. It counts with its mean use then, also while
 * it pauses: in turn as a full flow and as none it would make the rates of all media flap.
 */
#define PAQM_CALM_PERIODS 4
#define PAQM_CALM_MOST 16 /* that are remembered */
#define PAQM_CALM_SILENT_MS 700 /* bursts that are rarer get a full share each */

static inline bool paqm_calm(const struct paqm_sched_data *q)
{
	return q->elastic_calm >= PAQM_CALM_PERIODS;
}

struct paqm_hosts *paqm_hosts(const struct paqm_sched_data *q);
u32 paqm_find_split(struct paqm_sched_data *q);
u32 paqm_heard(const struct paqm_sched_data *q, u64 now);
u32 paqm_elastic_ticks(const struct paqm_sched_data *q);
u64 paqm_elastic_busy(const struct paqm_sched_data *q, u64 now);
void paqm_measure_calm(struct paqm_sched_data *q, u64 window, u64 now);
void paqm_judge_elastic(struct paqm_sched_data *q, bool whole);
u32 paqm_split(const struct paqm_sched_data *q);
u64 paqm_media_part(const struct paqm_sched_data *q, u64 bps);
u64 paqm_media_capacity(const struct paqm_sched_data *q);
u32 paqm_media_target(const struct paqm_sched_data *q);
void paqm_transfer(struct paqm_sched_data *q, u64 now, u64 delay);

#endif /* PAQM_SPLIT_H */
