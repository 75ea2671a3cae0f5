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

#include "feedback-daemon/conf.h"
#include "feedback-daemon/judge/engine.h"

struct capture;
struct ipc_server;
struct ctl_server;

/* A file descriptor and who handles it. */
struct source {
	int fd;
	void (*ready)(struct source *s, uint32_t events);
};

enum daemon_stop { DAEMON_RUNS, DAEMON_ENDS, DAEMON_FAILED };

struct daemon {
	int epfd;
	int spare;	  /* closed for a moment when no other file can be opened */
	struct conf conf; /* in force */
	struct engine engine;
	struct capture *capture;
	struct ipc_server *ipc;
	struct ctl_server *ctl;
	uid_t owner; /* who started us may connect, */
	gid_t group; /* and members of this group */
	bool has_group;
	uint64_t flows_change; /* counts changes to the set of flows */
	enum daemon_stop stop;
	uint64_t start_ns;
	uint64_t bad_records;
	uint64_t peers_refused;
	struct clients_full senders_full, controls_full;
	struct source *listener[2]; /* where clients come from; see unixsock.h */
	uint64_t listen_ns;	    /* when to listen again; UINT64_MAX: listening */
	bool starved;		    /* the last client could not be accepted */
	uint64_t accept_failed;
};

/* The clock of all judgement and timers. It includes suspend: advice from before says nothing about
 * the network in which the machine wakes up.
 */
#define DAEMON_CLOCK CLOCK_BOOTTIME

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
