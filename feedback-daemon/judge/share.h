/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shares of users in what there is for all of them. Nobody gets more than he leaves to the
 * others: one alone half of it, the next one half of the rest, so that there is something for
 * whoever comes, without a part set aside for each that most would never use.
 */
#ifndef PAQMD_SHARE_H
#define PAQMD_SHARE_H

#include <stdbool.h>
#include <stdint.h>

/**
 * share_has() - is there room for somebody
 * @own: what he has
 * @more: what he asks for beside that
 * @used: what all have, he too
 * @all: what there is
 */
static inline bool share_has(uint32_t own, uint32_t more, uint32_t used, uint32_t all)
{
	return used <= all && (uint64_t)own + more <= all - used;
}

/* Who may end paqmd needs no share of it: root has what there is. */
static inline bool share_is_whole(uint32_t uid)
{
	return uid == 0;
}

/* Clients that found no room: their user has his share, or there is none for anybody. */
struct clients_full {
	uint64_t user, all;
};

#endif /* PAQMD_SHARE_H */
