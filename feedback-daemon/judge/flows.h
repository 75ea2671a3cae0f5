/* SPDX-License-Identifier: GPL-2.0 */
/* The flow table of the judging part. */
#ifndef PAQMD_FLOWS_H
#define PAQMD_FLOWS_H

#include "feedback-daemon/judge/state.h"

/**
 * engine_register() - add a flow, or change the limits of an existing one
 * @owner: the client, not 0
 * @uid: whom it runs as
 * @reg: its record
 * @flow: set to the flow on success
 *
 * Return: 0 or a positive errno: EAFNOSUPPORT (addresses of different versions),
 * EINVAL (port, floor or ceiling impossible), EEXIST (flow or cookie is taken),
 * EDQUOT (the user's share is used up), ENOSPC, ENOMEM. Refusals are counted.
 */
int engine_register(struct engine *e, uint64_t owner, uint32_t uid,
		    const struct paqm_ipc_register *reg, struct flow **flow);

/* Return: the user's entry, or NULL if the user has no flow. */
const struct user *engine_user(const struct engine *e, uint32_t uid);

/* Return: the client's flow with this cookie, or NULL. */
struct flow *engine_flow(struct engine *e, uint64_t owner, uint64_t cookie);
void engine_unregister(struct engine *e, struct flow *f);

static inline const struct flow_key *engine_key(const struct engine *e, const struct flow *f)
{
	return &e->keys[f - e->flows];
}

/* Is it a packet of IPv6 that was one of this flow's, of IPv4? */
static inline bool flow_translated(const struct flow_key *flow, const struct flow_key *packet)
{
	return addr_is_v4(&flow->daddr) && !addr_is_v4(&packet->daddr);
}

/* The flow of a packet; of IPv6 that belongs to none also the flow of IPv4 which it was, if this
 * host translates its own (CLAT, RFC 6877): the last four bytes of the destination are those of
 * IPv4, the source is the translator's. Return: NULL if there is none.
 */
struct flow *flow_of(struct engine *e, const struct flow_key *k);

/* Update the record that the client sees. Return: true if it has changed. */
bool flow_record(struct flow *f);

/* Account for a ring that was created, resized or freed. */
void flow_account(struct engine *e, const struct flow *f, uint32_t cap_before, uint64_t now_ns);

/* Shrink rings that are larger than needed. Not done where they are filled: a flow that has
 * fallen silent must not keep its memory.
 */
void flows_trim(struct engine *e, uint64_t now_ns);

#endif /* PAQMD_FLOWS_H */
