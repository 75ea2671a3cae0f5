/* SPDX-License-Identifier: GPL-2.0 */
/* The routers that a host believes, and how many messages each may send. */
#ifndef PAQMD_ROUTERS_H
#define PAQMD_ROUTERS_H

#include "feedback-daemon/judge/state.h"

/* Return: the router with this id, or NULL. */
struct router *router_of(struct engine *e, uint64_t id);

/**
 * router_spend() - check (f): take a message out of the budgets of its router and of all
 * @e: the engine
 * @id: of the router
 * @f: the flow that it tells
 * @now_ns: now
 * @router: set to its entry, which may be new, if there is room for the message
 *
 * Return: REFUSE_NONE, or why there is none.
 */
enum refuse router_spend(struct engine *e, uint64_t id, const struct flow *f, uint64_t now_ns,
			 struct router **router);

#endif /* PAQMD_ROUTERS_H */
