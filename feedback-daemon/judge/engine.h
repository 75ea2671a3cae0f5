/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The judging part of paqmd: flows, routers, and the pipeline of checks that a
 * feedback message must pass before it is believed (docs/protocol.md). It knows
 * nothing of capture and sockets: IPv4 and IPv6 packets and times go in, verdicts
 * come out, so that tests and fuzzers run the very code that runs in the daemon.
 * All times are nanoseconds of one clock that never goes back.
 */
#ifndef PAQMD_ENGINE_H
#define PAQMD_ENGINE_H

#include "feedback-daemon/judge/flows.h"
#include "feedback-daemon/judge/media.h"
#include "feedback-daemon/judge/message.h"
#include "feedback-daemon/judge/state.h"

extern const struct engine_params engine_defaults;

const char *refuse_name(enum refuse r);
const char *not_taken_name(enum not_taken r);
const char *forgot_name(enum forgot r);

void engine_init(struct engine *e, const struct engine_params *p,
		 const uint8_t key[PAQM_SIPHASH_KEY]);
void engine_free(struct engine *e);

/* Use these keys from now on; without @ring none. Allowances in force stay. */
void engine_set_keys(struct engine *e, const struct keyring *ring);

/* Expire a flow's allowances. Return: true if its rate record is new. */
bool engine_expire(struct engine *e, struct flow *f, uint64_t now_ns);

/**
 * engine_expire_all() - expire what is due, free memory that is no longer needed
 * @e: the engine
 * @now_ns: now
 * @told: called for each flow whose rate record is new
 * @data: for @told
 */
void engine_expire_all(struct engine *e, uint64_t now_ns, void (*told)(void *data, struct flow *f),
		       void *data);

/* When to call it again; UINT64_MAX: there is nothing to wait for. */
static inline uint64_t engine_next(const struct engine *e)
{
	return paqm_min64(e->early_ns, paqm_min64(e->next_ns, e->trim_ns));
}

#endif /* PAQMD_ENGINE_H */
