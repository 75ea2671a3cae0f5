/* SPDX-License-Identifier: GPL-2.0 */
/* The flow table of the KUnit suites, and what they do with it. */
#ifndef PAQM_KUNIT_FLOW_TABLE_H
#define PAQM_KUNIT_FLOW_TABLE_H

#include <net/dsfield.h>
#include "../paqm_census.h"
#include "../paqm_classify.h"
#include "../paqm_flows.h"
#include "hooks.h"

struct kunit;

#define PAQM_AGE 2000 /* ticks */

extern struct paqm_flows paqm_table;
extern struct paqm_census paqm_seen; /* what the last walk found */
extern bool paqm_queued; /* media has waited before the next walk */
extern bool paqm_rotating; /* most flows have left young before it */
extern u32 paqm_link_q24; /* flows have messages: what is said by the link's rate */

void paqm_make(struct kunit *test, u32 slots);
void paqm_flows_exit(struct kunit *test);
struct paqm_flow *paqm_touch(u64 hash, enum paqm_class class, u32 now_tick, bool *fresh);
struct paqm_flow *paqm_new(struct kunit *test, u64 hash, enum paqm_class class, u32 now_tick);
struct paqm_flow_gauge *paqm_gauge(const struct paqm_flow *f);
void paqm_count(u32 now_tick, u32 window_ms, u64 fair);
void paqm_know(struct paqm_flow *f);
u8 paqm_every(const struct paqm_flow *f);
u64 paqm_same_set(u64 n);
u64 paqm_nth(u64 n);

/* PAQM_DEAF_STRIKE, paqm_host_place() and paqm_flow_publish(), which are the walker's own. */
extern const u32 paqm_deaf_strike;
u32 paqm_place(const struct paqm_tuple *t, enum paqm_side side, const u64 *key);
bool paqm_publish(struct paqm_flow *f, u8 seen, u8 every);

#endif
