/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Users' shares of a common resource. No user gets more than is left for the others: the first
 * may have half, the next half of the rest, so that something remains for newcomers without
 * reserving a part for each that most would never use.
 */
#ifndef PAQMD_SHARE_H
#define PAQMD_SHARE_H

#include <stdbool.h>
#include <stdint.h>

/**
 * share_has() - does the request fit into the user's share
 * @own: what the user has
 * @more: what is requested in addition
 * @used: what all users have, this one included
 * @all: the total
 */
static inline bool share_has(uint32_t own, uint32_t more, uint32_t used, uint32_t all)
{
	return used <= all && (uint64_t)own + more <= all - used;
}

/* Root may stop paqmd anyway, so it is not limited to a share. */
static inline bool share_is_whole(uint32_t uid)
{
	return uid == 0;
}

/* Clients refused: their user's share is used up, or everything is. */
struct clients_full {
	uint64_t user, all;
};

#endif /* PAQMD_SHARE_H */
