/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Whose packet is it? A flow whose source address was left open has those packets only
 * that come from a socket of the user who has registered it (or of root): another local
 * user could take the same port on another address of this host, and supply what proves
 * a message of his.
 *
 * The kernel's tables of UDP sockets say it (proc(5), /proc/net/udp). To read them takes
 * the longer the more sockets there are, so it is done at most for a twentieth of the time;
 * who is asked about meanwhile is looked for in what was read last. A server with a socket
 * for each of its viewers asks about hundreds of them at once.
 */
#ifndef PAQMD_OWNER_H
#define PAQMD_OWNER_H

#include <stdint.h>
#include <stdio.h>

#include "feedback-daemon/judge/state.h"

#define OWNER_SOCKETS (1U << 18) /* that are looked at, at most */

/* A UDP socket; open and unconnected ends are 0. */
struct owner_socket {
	struct addr local, remote;
	uint16_t lport, rport;
	uint32_t uid; /* last: in a table they are in the order of their bytes */
};

/* Sockets; all 0 is an empty one. */
struct owner_table {
	struct owner_socket *of;
	uint32_t n, room;
};

/* Add the sockets that stand in the text of /proc/net/udp or udp6. */
void owner_read(struct owner_table *t, FILE *text);

/**
 * owner_find() - whose are the sockets that may have sent a packet
 * @t: sockets of this host
 * @p: the packet
 * @uid: whose it should be
 *
 * The time that it takes does not grow with the sockets that a user opens.
 * Return: OWNER_OTHER if one of them is neither that user's nor root's.
 */
enum owner owner_find(const struct owner_table *t, const struct owner_ends *p, uint32_t uid);

/* The same of this host, as it was a moment ago. */
enum owner owner_of(const struct owner_ends *p, uint32_t uid);

#endif /* PAQMD_OWNER_H */
