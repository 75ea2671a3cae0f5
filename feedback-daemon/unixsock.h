/* SPDX-License-Identifier: GPL-2.0 */
/* Listening Unix sockets and the question who may connect to them. */
#ifndef PAQMD_UNIXSOCK_H
#define PAQMD_UNIXSOCK_H

#include "loop.h"

/**
 * unixsock_listen() - create a listening socket
 * @d: whose group gets access
 * @path: where; directories in front of it are created (0755)
 * @type: SOCK_SEQPACKET or SOCK_STREAM
 *
 * A socket that a dead daemon has left behind is replaced, one that answers is
 * not. Return: the descriptor, or -1 after having logged why not.
 */
int unixsock_listen(const struct daemon *d, const char *path, int type);

/* Accept a client, unless it is neither root, nor our user, nor of the group.
 * Return: the descriptor, or -1 (logged if it was refused).
 */
int unixsock_accept(struct daemon *d, int fd, pid_t *pid);

#endif /* PAQMD_UNIXSOCK_H */
