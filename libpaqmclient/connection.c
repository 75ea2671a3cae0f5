// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* The connection to paqmd: made, told of flows, lost, and made again; see client.h. */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "libpaqmclient/client.h"

#define RETRY_NS 500000000ULL

void set_timer(struct paqm_client *c)
{
	uint64_t at = c->retry_ns < c->ends_ns ? c->retry_ns : c->ends_ns;
	struct itimerspec t = {0};

	if (c->again_ns < at)
		at = c->again_ns;
	if (c->doubt_ns < at)
		at = c->doubt_ns;
	if (at != NEVER) {
		t.it_value.tv_sec = (time_t)(at / 1000000000ULL);
		t.it_value.tv_nsec = (long)(at % 1000000000ULL);
	}
	timerfd_settime(c->timer, TFD_TIMER_ABSTIME, &t, NULL);
}

void lose(struct paqm_client *c, const char *why)
{
	uint64_t now = now_ns();
	int i;

	c->trouble = why;
	c->retry_ns = now + RETRY_NS;
	if (c->fd >= 0) {
		/* A forked child may hold it: then it is not gone by close(), and reports its end
		 * for ever. */
		epoll_ctl(c->epoll, EPOLL_CTL_DEL, c->fd, NULL);
		close(c->fd);
		c->fd = -1;
	}
	c->again_ns = NEVER;
	c->doubt_ns = NEVER;
	c->heard = false;
	for (i = 0; i < c->flows; i++) {
		c->flow[i].pause_ns = 0;
		c->flow[i].again_ns = 0;
		c->flow[i].told = false;
		/* A connection that has told nothing prolongs nothing. */
		if (c->flow[i].advice.rate_bps && !c->flow[i].lost) {
			c->flow[i].lost = true;
			end_at(c, &c->flow[i], now + GRACE_NS);
		}
		if (c->flow[i].state == KNOWN)
			c->flow[i].state = UNKNOWN;
		else if (c->flow[i].state == LEAVING)
			c->flow[i].state = FREE;
	}
	c->untold = c->flows > 0;
	set_timer(c);
}

static void watch(struct paqm_client *c, bool room)
{
	struct epoll_event e = {.events = room ? EPOLLIN | EPOLLOUT : EPOLLIN, .data.fd = c->fd};

	if (c->waits_room == room)
		return;
	c->waits_room = room;
	epoll_ctl(c->epoll, EPOLL_CTL_MOD, c->fd, &e);
}

int put(struct paqm_client *c, const void *record, size_t len)
{
	if (send(c->fd, record, len, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)len)
		return 1;
	if (errno == EAGAIN || errno == EINTR || errno == ENOBUFS)
		return 0;
	lose(c, strerror(errno));
	return -1;
}

/* paqmd answers each registration at once. */
static void expect_answer(struct paqm_client *c)
{
	if (c->heard || c->trouble || c->doubt_ns != NEVER)
		return;
	c->doubt_ns = now_ns() + GRACE_NS;
	set_timer(c);
}

static int tell_one(struct paqm_client *c, struct flow *f)
{
	struct paqm_ipc_unregister gone = {
		.hdr = header(PAQM_IPC_UNREGISTER, sizeof(gone)),
		.cookie = f->reg.cookie,
	};
	int done;

	if (f->state == UNKNOWN) {
		done = put(c, &f->reg, sizeof(f->reg));
		if (done > 0) {
			f->state = KNOWN;
			f->told = true;
			expect_answer(c);
		}
		return done;
	}
	done = put(c, &gone, sizeof(gone));
	if (done > 0)
		f->state = FREE;
	return done;
}

/* Tell paqmd of flows in this state. Return: as put(). */
static int tell_all(struct paqm_client *c, enum flow_state state)
{
	int i, done = 1;

	for (i = 0; i < c->flows && done > 0; i++)
		if (c->flow[i].state == state)
			done = tell_one(c, &c->flow[i]);
	return done;
}

/* Flows that are gone come first: a new one may have the same ports. */
void tell(struct paqm_client *c)
{
	int done;

	if (c->fd < 0 || !c->untold)
		return;
	done = tell_all(c, LEAVING);
	if (done > 0)
		done = tell_all(c, UNKNOWN);
	if (done < 0)
		return;
	c->untold = !done;
	watch(c, !done);
}

void untold(struct paqm_client *c)
{
	c->untold = true;
	if (c->fd >= 0)
		watch(c, true);
}

void try_connect(struct paqm_client *c)
{
	struct epoll_event e = {.events = EPOLLIN};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	e.data.fd = fd;
	if (fd < 0 || connect(fd, (struct sockaddr *)&c->sa, sizeof(c->sa)) ||
	    epoll_ctl(c->epoll, EPOLL_CTL_ADD, fd, &e)) {
		int err = errno;

		if (fd >= 0)
			close(fd);
		lose(c, strerror(err));
		return;
	}
	c->fd = fd;
	c->trouble = NULL;
	c->retry_ns = NEVER;
	c->waits_room = false;
	c->untold = true;
	set_timer(c);
	tell(c);
}
