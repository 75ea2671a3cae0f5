/* SPDX-License-Identifier: GPL-2.0 */
/* Listening Unix sockets, and who may connect to them. */
#ifndef PAQMD_UNIXSOCK_H
#define PAQMD_UNIXSOCK_H

#include "feedback-daemon/loop.h"
#include "feedback-daemon/host/sandbox.h"

/**
 * unixsock_listen() - create a listening socket, or take over the manager's
 * @d: whose group gets access
 * @user: who the daemon will be: created directories will belong to it
 * @path: where; missing directories are created (0755)
 * @type: SOCK_SEQPACKET or SOCK_STREAM
 * @own: set to a copy of @path if the socket was created here and has to be
 *       removed in the end, else NULL
 *
 * A socket of this type that the service manager has passed is used, wherever it
 * is. Otherwise a stale socket of a dead daemon is replaced, but not one that
 * answers. Return: the descriptor, or -1 after having logged why not.
 */
int unixsock_listen(const struct daemon *d, const struct sandbox_user *user, const char *path,
		    int type, char **own);

/* Close @fd and remove the socket at @own. */
void unixsock_close(int fd, char *own);

/* Who is at the other end. */
struct unixsock_peer {
	pid_t pid;
	uid_t uid;
	bool owner; /* root, or who started us */
};

/* Accept a client, unless it is neither root, nor who started us, nor of the group.
 * If out of files or memory, stop listening for a second. Return: the
 * descriptor, or -1 (logged if it was refused).
 */
int unixsock_accept(struct daemon *d, int fd, struct unixsock_peer *peer);

/**
 * unixsock_room() - is there room for another client
 * @peer: who it is
 * @own: clients of the same user
 * @used: clients of all
 * @all: the limit
 * @full: counts refusals
 *
 * Return: true, or false after having logged why not.
 */
bool unixsock_room(const struct unixsock_peer *peer, uint32_t own, uint32_t used, uint32_t all,
		   struct clients_full *full);

/* Listen again, if it is time. Return: when to be called again, or UINT64_MAX. */
uint64_t unixsock_resume(struct daemon *d, uint64_t now_ns);

#endif /* PAQMD_UNIXSOCK_H */
