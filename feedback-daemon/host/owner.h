/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Whose packet is it? A flow whose source address was left open has those packets only
 * that come from a socket of the user who has registered it (or of root): another local
 * user could take the same port on another address of this host, and supply what proves
 * a message of his.
 *
 * The kernel's tables of UDP sockets say it (proc(5), /proc/net/udp). To read them takes
 * the longer the more sockets there are, so it is done at most for a twentieth of the time;
 * who is asked about meanwhile is not known yet, and his packets prove nothing.
 */
#ifndef PAQMD_OWNER_H
#define PAQMD_OWNER_H

#include <stdint.h>
#include <stdio.h>

#include "feedback-daemon/judge/state.h"

/**
 * owner_read() - look for the sockets that may have sent a packet
 * @table: text of /proc/net/udp or udp6
 * @p: the packet
 * @uid: whose it should be
 * @found: of tables before; OWNER_UNKNOWN at first
 *
 * Return: OWNER_OTHER as soon as one of them is neither that user's nor root's.
 */
enum owner owner_read(FILE *table, const struct owner_ends *p, uint32_t uid, enum owner found);

/* The same of this host, now; OWNER_UNKNOWN also if it may not be looked for yet. */
enum owner owner_of(const struct owner_ends *p, uint32_t uid);

#endif /* PAQMD_OWNER_H */
