// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * libpaqmclient: client of paqmd; see paqmclient.h. One epoll set holds the
 * connection and a timer, so that the application polls one descriptor that stays
 * the same over reconnections.
 */
#include "libpaqmclient/paqmclient.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "core/paqm_msg_format.h"
#include "libpaqmclient/client.h"

static void timer_ready(struct paqm_client *c)
{
	uint64_t n, now = now_ns();

	if (read(c->timer, &n, sizeof(n)) < 0)
		return;
	if (now >= c->ends_ns)
		end_advice(c, now);
	if (now >= c->again_ns)
		ask_again(c, now);
	if (now >= c->doubt_ns) {
		c->doubt_ns = NEVER;
		c->trouble = "it does not answer";
	}
	if (now >= c->retry_ns)
		try_connect(c);
	else
		set_timer(c);
}

struct paqm_client *paqm_client_open(const char *path)
{
	struct paqm_client *c = calloc(1, sizeof(*c));
	struct epoll_event e = {.events = EPOLLIN};
	int err;

	if (!c)
		return NULL;
	if (!path)
		path = getenv("PAQM_SOCKET");
	if (!path || !*path)
		path = PAQM_IPC_PATH;
	c->epoll = -1;
	c->timer = -1;
	c->fd = -1;
	c->first = -1;
	c->last = -1;
	c->retry_ns = NEVER;
	c->ends_ns = NEVER;
	c->again_ns = NEVER;
	c->doubt_ns = NEVER;
	c->sa.sun_family = AF_UNIX;
	err = ENAMETOOLONG;
	if (strlen(path) >= sizeof(c->sa.sun_path))
		goto fail;
	strcpy(c->sa.sun_path, path);
	c->epoll = epoll_create1(EPOLL_CLOEXEC);
	c->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	e.data.fd = c->timer;
	err = errno;
	if (c->epoll < 0 || c->timer < 0 || epoll_ctl(c->epoll, EPOLL_CTL_ADD, c->timer, &e))
		goto fail;
	try_connect(c);
	return c;
fail:
	paqm_client_close(c);
	errno = err;
	return NULL;
}

void paqm_client_close(struct paqm_client *c)
{
	if (!c)
		return;
	if (c->fd >= 0)
		close(c->fd);
	if (c->timer >= 0)
		close(c->timer);
	if (c->epoll >= 0)
		close(c->epoll);
	free(c->flow);
	free(c);
}

int paqm_client_fd(const struct paqm_client *c)
{
	return c->epoll;
}

/* An address as the records have it. */
static bool parse_address(const char *text, uint8_t to[16])
{
	if (inet_pton(AF_INET6, text, to) == 1)
		return true;
	memset(to, 0, 10);
	to[10] = 0xff;
	to[11] = 0xff;
	return inet_pton(AF_INET, text, to + 12) == 1;
}

static int free_slot(struct paqm_client *c)
{
	struct flow *more;
	int i, n;

	for (i = 0; i < c->flows; i++) {
		c->last_slot = (c->last_slot + 1) % c->flows;
		if (c->flow[c->last_slot].state == FREE)
			return c->last_slot;
	}
	n = c->flows ? c->flows * 2 : 4;
	if (n > 0xFFFFFF)
		return -ENOMEM;
	more = realloc(c->flow, (size_t)n * sizeof(*more));
	if (!more)
		return -ENOMEM;
	memset(more + c->flows, 0, (size_t)(n - c->flows) * sizeof(*more));
	c->flow = more;
	c->flows = n;
	c->last_slot = i;
	return i;
}

int paqm_client_add(struct paqm_client *c, const char *source, uint16_t source_port,
		    const char *destination, uint16_t destination_port, uint32_t ssrc,
		    uint64_t floor_bps, uint64_t ceiling_bps)
{
	struct paqm_ipc_register reg = {
		.hdr = header(PAQM_IPC_REGISTER, sizeof(reg)),
		.sport = source_port,
		.dport = destination_port,
		.ssrc = ssrc,
		.floor_bps = floor_bps,
		.ceil_bps = ceiling_bps,
	};
	int i, err;

	if (!destination || !parse_address(destination, reg.daddr))
		return -EINVAL;
	if (source && *source && !parse_address(source, reg.saddr))
		return -EINVAL;
	err = paqm_ipc_fault(&reg);
	if (err)
		return -err;
	i = free_slot(c);
	if (i < 0)
		return i;
	reg.cookie = ++c->cookie << 24 | (uint64_t)i;
	/* The slot may still be in the list of news. */
	c->flow[i].state = UNKNOWN;
	c->flow[i].reg = reg;
	c->flow[i].pause_ns = 0;
	c->flow[i].again_ns = 0;
	c->flow[i].ends_ns = NEVER;
	c->flow[i].lost = false;
	c->flow[i].told = false;
	c->flow[i].said = 0;
	c->flow[i].advice = (struct paqm_client_advice){.flow = i};
	untold(c);
	return i;
}

/* The record has changed: paqmd gets it anew. */
static int renew(struct paqm_client *c, struct flow *f)
{
	f->again_ns = 0;
	f->state = UNKNOWN;
	untold(c);
	return 0;
}

_Static_assert(PAQM_CLIENT_SAID_OVERLOAD == PAQM_F_OVERLOAD, "as in messages");
_Static_assert(PAQM_CLIENT_SAID_POLICED == PAQM_F_POLICED, "as in messages");
_Static_assert(PAQM_CLIENT_SAID_FINAL == PAQM_F_FINAL, "as in messages");
_Static_assert(PAQM_CLIENT_SAID_AUTH == PAQM_F_AUTH, "as in messages");

unsigned int paqm_client_said(struct paqm_client *c, int flow)
{
	const struct flow *f = flow_of(c, flow);

	return f ? f->said : 0;
}

int paqm_client_limits(struct paqm_client *c, int flow, uint64_t floor_bps, uint64_t ceiling_bps)
{
	struct flow *f = flow_of(c, flow);
	struct paqm_ipc_register reg;

	if (!f)
		return -ENOENT;
	reg = f->reg;
	reg.floor_bps = floor_bps;
	reg.ceil_bps = ceiling_bps;
	if (paqm_ipc_fault(&reg))
		return -EINVAL;
	f->reg = reg;
	return renew(c, f);
}

int paqm_client_timing(struct paqm_client *c, int flow, uint32_t gop_us, uint32_t answer_us)
{
	struct flow *f = flow_of(c, flow);

	if (!f)
		return -ENOENT;
	f->reg.gop_us = gop_us;
	f->reg.answer_us = answer_us;
	return renew(c, f);
}

int paqm_client_remove(struct paqm_client *c, int flow)
{
	struct flow *f = flow_of(c, flow);

	if (!f)
		return -ENOENT;
	/* Of what it was never told paqmd need not hear: slots would pile up while it hangs. */
	f->state = c->fd >= 0 && f->told ? LEAVING : FREE;
	untold(c);
	return 0;
}

int paqm_client_next(struct paqm_client *c, struct paqm_client_advice *a)
{
	struct epoll_event e[2];
	int i, n = epoll_wait(c->epoll, e, 2, 0);
	bool due = false;

	for (i = 0; i < n; i++) {
		if (e[i].data.fd == c->timer)
			due = true;
		else if (e[i].data.fd == c->fd && e[i].events & ~(uint32_t)EPOLLOUT)
			receive(c);
	}
	/* Behind what has come: that may renew advice which would end. */
	if (due)
		timer_ready(c);
	tell(c);
	while (c->first >= 0) {
		struct flow *f = &c->flow[c->first];

		c->first = f->next;
		if (c->first < 0)
			c->last = -1;
		f->news = false;
		/* It may have been removed meanwhile. */
		if (f->state == FREE || f->state == LEAVING)
			continue;
		*a = f->advice;
		return 1;
	}
	return 0;
}

int paqm_client_status(struct paqm_client *c, int flow, uint64_t wire_bps, uint32_t gop,
		       uint32_t qp)
{
	struct flow *f = flow_of(c, flow);
	struct paqm_ipc_status st = {
		.hdr = header(PAQM_IPC_STATUS, sizeof(st)),
		.wire_bps = wire_bps,
		.gop = gop,
		.qp = qp,
	};

	if (!f)
		return -ENOENT;
	if (c->fd < 0)
		return -ENOTCONN;
	st.cookie = f->reg.cookie;
	switch (put(c, &st, sizeof(st))) {
	case 1:
		return 0;
	case 0:
		return -EAGAIN;
	default:
		return -ENOTCONN;
	}
}

const char *paqm_client_trouble(const struct paqm_client *c)
{
	return c->trouble;
}

const char *paqm_client_path(const struct paqm_client *c)
{
	return c->sa.sun_path;
}
