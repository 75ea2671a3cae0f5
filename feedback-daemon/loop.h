/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the parts of paqmd share: the epoll set, the engine and the servers.
 * Everything happens in one thread, one event at a time.
 */
#ifndef PAQMD_LOOP_H
#define PAQMD_LOOP_H

#include <sys/epoll.h>
#include <sys/types.h>
#include <time.h>

#include "engine.h"

struct capture;
struct ipc_server;
struct ctl_server;

/* A file descriptor and who handles it. */
struct source {
	int fd;
	void (*ready)(struct source *s, uint32_t events);
};

struct daemon {
	int epfd;
	struct engine engine;
	struct capture *capture;
	struct ipc_server *ipc;
	struct ctl_server *ctl;
	gid_t group; /* whose members may connect */
	bool has_group;
	bool filter_stale; /* the set of flows has changed */
	uint64_t start_ns;
	uint64_t bad_records;
	uint64_t peers_refused;
};

static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

/* Watch @s for @events (replacing earlier ones). Return: 0 or -1 with errno. */
static inline int loop_watch(struct daemon *d, struct source *s, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.ptr = s};

	if (!epoll_ctl(d->epfd, EPOLL_CTL_MOD, s->fd, &ev))
		return 0;
	return epoll_ctl(d->epfd, EPOLL_CTL_ADD, s->fd, &ev);
}

#endif /* PAQMD_LOOP_H */
