/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Allowances of one flow: what each router on its path grants it. ERF rates
 * replace, ECF values multiply or add (P-AQM, Paper F); the flow may send the
 * minimum over the routers, between its floor and its ceiling. State is kept
 * per router: applied to one common rate, the decreases of several routers
 * would starve a long path.
 *
 * A relative value means something only after the one before it: after a gap, a
 * restart or a silence the absolute rate of the same message is taken instead.
 * An allowance that grew while another router was the limit is cut to what the
 * flow can have shown that router (anti-windup).
 *
 * What rises and falls again and again is damped: a fall counts at once, but
 * after a few of them the rate rises slowly until there has been quiet.
 *
 * The published senders had none of this, see allow_published().
 */
#ifndef PAQMD_ALLOW_H
#define PAQMD_ALLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "feedback-daemon/judge/addr.h"
#include "core/paqm_msg.h"

#define ALLOW_ROUTERS 8 /* routers remembered per flow; longer congested paths do not occur */
#define ALLOW_EXPIRY_MIN_NS 3000000000ULL
#define ALLOW_EXPIRY_MAX_NS 30000000000ULL

/* What a flow goes by: absolute rates or relative values; or these as the published senders did. */
enum allow_use {
	ALLOW_USE_ERF,
	ALLOW_USE_ECF,
	ALLOW_USE_THESIS_ERF,
	ALLOW_USE_THESIS_ECF,
	ALLOW_USES
};
#define ALLOW_USE_WORDS "erf", "ecf", "thesis-erf", "thesis-ecf"
extern const char *const allow_uses[ALLOW_USES];

/* Nothing but what a message says: no healing, no right, no anti-windup, no damping. */
static inline bool allow_published(enum allow_use use)
{
	return use == ALLOW_USE_THESIS_ERF || use == ALLOW_USE_THESIS_ECF;
}

/**
 * struct allow - one router's word to one flow
 * @used: the slot is taken; false is free
 * @active: the allowance is in force
 * @has_old_boot: @old_boot is valid
 * @use: which of its values the allowance comes from, ERF or ECF
 * @msg: newest believed message
 * @addr: address it came from
 * @old_boot: nonce before the last restart; its messages are replays
 * @rate: allowance in bit/s, not yet limited by the flow's floor
 * @mono_ns: capture time of the newest message
 * @expires_ns: when it falls silent
 */
struct allow {
	bool used, active, has_old_boot;
	enum allow_use use;
	struct paqm_msg msg;
	struct addr addr;
	uint32_t old_boot;
	uint64_t rate;
	uint64_t mono_ns;
	uint64_t expires_ns;
};

#define ALLOW_LOWS 5 /* parts of a window of lows; the newest has only begun */

/**
 * struct allow_damp - memory of a rate that flaps
 * @rate: in force, 0 without advice
 * @mark: the lowest since the last raise by a quarter, which counts from here; 0: none
 * @raised_ns: when that was
 * @debt_ns: grows with each fall that follows a raise, and shrinks with time
 * @seen_ns: when @debt_ns was brought up to date
 * @raised: there was one, and no fall by a quarter since
 * @moved_ns: when @rate was set
 * @asked: what the routers asked for last
 * @low: the least of that since @low_ns, and in each part of a window before
 * @low_ns: when the newest part began
 * @held: @rate rises slowly
 * @known: it was held, and the debt has not been paid since
 */
struct allow_damp {
	uint64_t rate, mark;
	uint64_t raised_ns, moved_ns;
	uint64_t debt_ns;
	uint64_t seen_ns;
	uint64_t asked, low[ALLOW_LOWS], low_ns;
	bool raised, held, known;
};

struct allow_set {
	struct allow slot[ALLOW_ROUTERS];
	struct allow_damp damp;
	bool spoken; /* a router has spoken since registration */
};

enum allow_order { ALLOW_NEWER, ALLOW_REPLAY, ALLOW_STALE, ALLOW_OLD_BOOT, ALLOW_FULL };

/* May a message with this identity and sequence follow what is known? */
enum allow_order allow_order(const struct allow_set *s, const struct paqm_msg *m);

/**
 * allow_apply() - take over a message that has been proven and is newer
 * @s: the flow's allowances
 * @m: message
 * @addr: address of the router
 * @floor_bps: the flow's minimum; ECF values count from half of it at least
 * @ceil_bps: what the flow asked for; the first ECF value without an ERF rate counts from there
 * @use: which of the two values to use
 * @now_ns: capture time
 * @keep_ns: how long the sequence is remembered at least after expiry
 *
 * Return: the router's slot, NULL if allow_order() says ALLOW_FULL.
 */
struct allow *allow_apply(struct allow_set *s, const struct paqm_msg *m, const struct addr *addr,
			  uint64_t floor_bps, uint64_t ceil_bps, enum allow_use use,
			  uint64_t now_ns, uint64_t keep_ns);

/* Deactivate silent routers. Return: how many. */
unsigned int allow_expire(struct allow_set *s, uint64_t now_ns, uint64_t keep_ns);

/* The next time allow_expire() has work, or UINT64_MAX. */
uint64_t allow_next(const struct allow_set *s, uint64_t keep_ns);

/**
 * allow_damp() - update the damping with what the routers say now
 * @s: the flow's allowances
 * @use: as in allow_apply(); as published, there is none
 * @ceil_bps: upper limit of the flow; what happens above it does not matter
 * @now_ns: now
 *
 * To be called after allow_apply() and allow_expire(). From then on allow_min()
 * gives no more than was in force while the rate is held.
 */
void allow_damp(struct allow_set *s, enum allow_use use, uint64_t ceil_bps, uint64_t now_ns);

/**
 * allow_min() - combine the routers
 * @s: the flow's allowances
 * @floor_bps: lower limit of the result
 * @ceil_bps: upper limit of the result
 * @min: set to the router that gives the minimum, NULL without one
 * @active: set to the number of allowances in force
 *
 * Return: the allowed rate, 0 if no router has an allowance in force.
 */
uint64_t allow_min(const struct allow_set *s, uint64_t floor_bps, uint64_t ceil_bps,
		   const struct allow **min, unsigned int *active);

#endif /* PAQMD_ALLOW_H */
