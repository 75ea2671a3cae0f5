// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * libpaqmclient: client of paqmd; see paqmclient.h. One epoll set holds the
 * connection and a timer, so that the application polls one descriptor that stays
 * the same over reconnections.
 */
#include "libpaqmclient/paqmclient.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "feedback-daemon/paqm_ipc.h"

#define RETRY_NS 500000000ULL
#define NEVER UINT64_MAX
#define GRACE_NS (PAQM_CLIENT_GRACE_MS * 1000000ULL)
#define RECORDS_PER_CALL 64

/* A flow that was refused for what others do is asked for again, after pauses that double. Those
 * that are due within a tick are asked for together.
 */
#define AGAIN_MIN_NS 500000000ULL
#define AGAIN_MAX_NS 8000000000ULL
#define AGAIN_TICK_NS 125000000ULL

enum flow_state {
	FREE = 0,
	UNKNOWN, /* paqmd has to be told of it */
	KNOWN,
	LEAVING, /* paqmd has to be told that it is gone */
};

struct flow {
	enum flow_state state;
	bool news;
	int next;	   /* flow with news after this one, -1: none */
	uint64_t pause_ns; /* before it was asked for last; 0: not refused yet */
	uint64_t again_ns; /* when to ask for it again; 0: not at all */
	uint64_t lost_ns;  /* when the connection ended that its rate came by; 0: it has not */
	struct paqm_ipc_register reg;
	struct paqm_client_advice advice;
};

struct paqm_client {
	struct sockaddr_un sa;
	int epoll, timer, fd; /* fd: -1 while not connected */
	const char *trouble;
	uint64_t retry_ns; /* when to connect, NEVER if connected */
	uint64_t grace_ns; /* when the first advice of a connection before ends */
	uint64_t again_ns; /* when the first of the refused flows is due */
	uint64_t cookie;   /* last one given */
	struct flow *flow;
	int flows;	 /* slots */
	int last_slot;	 /* that was taken */
	int first, last; /* of the flows with news, -1: none */
	bool untold;	 /* some are UNKNOWN or LEAVING */
	bool waits_room; /* for the connection to take more */
};

static void add_news(struct paqm_client *c, struct flow *f)
{
	int n = (int)(f - c->flow);

	if (f->news)
		return;
	f->news = true;
	f->next = -1;
	if (c->last >= 0)
		c->flow[c->last].next = n;
	else
		c->first = n;
	c->last = n;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	/* goes on while the machine sleeps: no advice outlives that */
	clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

static void set_timer(struct paqm_client *c)
{
	uint64_t at = c->retry_ns < c->grace_ns ? c->retry_ns : c->grace_ns;
	struct itimerspec t = {0};

	if (c->again_ns < at)
		at = c->again_ns;
	if (at != NEVER) {
		t.it_value.tv_sec = (time_t)(at / 1000000000ULL);
		t.it_value.tv_nsec = (long)(at % 1000000000ULL);
	}
	timerfd_settime(c->timer, TFD_TIMER_ABSTIME, &t, NULL);
}

static void lose(struct paqm_client *c, const char *why)
{
	uint64_t now = now_ns();
	int i;

	c->trouble = why;
	c->retry_ns = now + RETRY_NS;
	if (c->fd >= 0) {
		close(c->fd);
		c->fd = -1;
	}
	c->again_ns = NEVER;
	for (i = 0; i < c->flows; i++) {
		c->flow[i].pause_ns = 0;
		c->flow[i].again_ns = 0;
		/* A connection that has told nothing prolongs nothing. */
		if (c->flow[i].advice.rate_bps && !c->flow[i].lost_ns) {
			c->flow[i].lost_ns = now;
			if (c->grace_ns == NEVER)
				c->grace_ns = now + GRACE_NS;
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

/* Return: 1 sent, 0 not yet, -1 the connection is gone. */
static int put(struct paqm_client *c, const void *record, size_t len)
{
	if (send(c->fd, record, len, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)len)
		return 1;
	if (errno == EAGAIN || errno == EINTR || errno == ENOBUFS)
		return 0;
	lose(c, strerror(errno));
	return -1;
}

static struct paqm_ipc_hdr header(uint8_t kind, size_t len)
{
	return (struct paqm_ipc_hdr){.magic = PAQM_IPC_MAGIC,
				     .version = PAQM_IPC_VERSION,
				     .kind = kind,
				     .len = (uint16_t)len};
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
		if (done > 0)
			f->state = KNOWN;
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

/* Tell paqmd what it does not know yet, as far as the connection takes it. Flows that
 * are gone come first: a new one may have the same ports.
 */
static void tell(struct paqm_client *c)
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

/* There is something to tell: the descriptor becomes readable for it. */
static void untold(struct paqm_client *c)
{
	c->untold = true;
	if (c->fd >= 0)
		watch(c, true);
}

static void try_connect(struct paqm_client *c)
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

static struct flow *flow_of(struct paqm_client *c, int n)
{
	if (n < 0 || n >= c->flows || c->flow[n].state == FREE || c->flow[n].state == LEAVING)
		return NULL;
	return &c->flow[n];
}

/* The cookie is the flow's number and a count, so that it is never used twice. */
static struct flow *flow_by_cookie(struct paqm_client *c, uint64_t cookie)
{
	struct flow *f = flow_of(c, (int)(cookie & 0xFFFFFF));

	return f && f->reg.cookie == cookie ? f : NULL;
}

static void set_router(struct paqm_client_advice *a, const struct paqm_ipc_rate *r)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	if (!memcmp(r->router, mapped, sizeof(mapped)))
		inet_ntop(AF_INET, r->router + 12, a->router, sizeof(a->router));
	else
		inet_ntop(AF_INET6, r->router, a->router, sizeof(a->router));
}

static void on_rate(struct paqm_client *c, const struct paqm_ipc_rate *r)
{
	struct flow *f = flow_by_cookie(c, r->cookie);
	struct paqm_client_advice *a;

	if (!f)
		return;
	a = &f->advice;
	/* A paqmd that has just started knows nothing yet: what held before is
	 * still the best there is.
	 */
	if (r->cause == PAQM_CAUSE_NONE && a->rate_bps && f->lost_ns)
		return;
	f->lost_ns = 0;
	*a = (struct paqm_client_advice){
		.flow = a->flow,
		.cause = r->cause,
		.rate_bps = r->rate_bps,
		.seq = r->seq,
		.router_id = r->router_id,
		.qdelay_ms = (float)r->qdelay_100us / 10,
		.period_ms = r->period_ms,
		.routers = r->routers,
		.captured_ns = r->mono_ns,
	};
	memcpy(&a->value, &r->value, sizeof(a->value));
	if (r->routers)
		set_router(a, r);
	add_news(c, f);
}

/* Others may make room, or leave these packets to us: it will be asked for again. */
static void ask_later(struct paqm_client *c, struct flow *f)
{
	f->pause_ns = f->pause_ns ? 2 * f->pause_ns : AGAIN_MIN_NS;
	if (f->pause_ns > AGAIN_MAX_NS)
		f->pause_ns = AGAIN_MAX_NS;
	f->again_ns = now_ns() + f->pause_ns;
	f->again_ns += AGAIN_TICK_NS - f->again_ns % AGAIN_TICK_NS;
	if (f->again_ns >= c->again_ns)
		return;
	c->again_ns = f->again_ns;
	set_timer(c);
}

/* Ask for those that are due. */
static void ask_again(struct paqm_client *c, uint64_t now)
{
	int i;

	c->again_ns = NEVER;
	for (i = 0; i < c->flows; i++) {
		struct flow *f = &c->flow[i];

		if (!flow_of(c, i) || !f->again_ns)
			continue;
		if (now >= f->again_ns) {
			f->again_ns = 0;
			f->state = UNKNOWN;
			c->untold = true;
		} else if (f->again_ns < c->again_ns) {
			c->again_ns = f->again_ns;
		}
	}
}

static void on_registered(struct paqm_client *c, const struct paqm_ipc_registered *r)
{
	struct flow *f = flow_by_cookie(c, r->cookie);

	if (!f)
		return;
	f->again_ns = 0;
	if (!r->error) {
		f->pause_ns = 0;
		return;
	}
	/* Whatever else is wrong lies in the registration, and stays so. */
	if (r->error != EINVAL && r->error != EAFNOSUPPORT)
		ask_later(c, f);
	if (f->advice.cause == PAQM_CLIENT_REFUSED && f->advice.error == r->error)
		return;
	f->lost_ns = 0;
	f->advice = (struct paqm_client_advice){
		.flow = f->advice.flow, .cause = PAQM_CLIENT_REFUSED, .error = r->error};
	add_news(c, f);
}

static void on_record(struct paqm_client *c, const void *record, size_t len)
{
	union {
		struct paqm_ipc_hdr hdr;
		struct paqm_ipc_registered registered;
		struct paqm_ipc_rate rate;
	} u = {0};

	if (len < sizeof(u.hdr))
		return;
	memcpy(&u, record, len < sizeof(u) ? len : sizeof(u)); /* a later release may say more */
	if (u.hdr.magic != PAQM_IPC_MAGIC || u.hdr.version != PAQM_IPC_VERSION || u.hdr.len != len)
		return;
	if (u.hdr.kind == PAQM_IPC_REGISTERED && len >= sizeof(u.registered))
		on_registered(c, &u.registered);
	else if (u.hdr.kind == PAQM_IPC_RATE && len >= sizeof(u.rate))
		on_rate(c, &u.rate);
}

static void receive(struct paqm_client *c)
{
	char record[PAQM_IPC_RECORD_MAX];
	ssize_t n;
	int i;

	for (i = 0; i < RECORDS_PER_CALL; i++) {
		n = recv(c->fd, record, sizeof(record), MSG_DONTWAIT);
		if (n > 0) {
			on_record(c, record, (size_t)n);
			continue;
		}
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		lose(c, n < 0 ? strerror(errno) : "it closed the connection");
		return;
	}
}

/* What has not been told anew in time does not hold any more. */
static void end_grace(struct paqm_client *c, uint64_t now)
{
	int i;

	c->grace_ns = NEVER;
	for (i = 0; i < c->flows; i++) {
		struct flow *f = &c->flow[i];

		if (!flow_of(c, i) || !f->lost_ns)
			continue;
		if (now < f->lost_ns + GRACE_NS) {
			if (f->lost_ns + GRACE_NS < c->grace_ns)
				c->grace_ns = f->lost_ns + GRACE_NS;
			continue;
		}
		f->lost_ns = 0;
		f->advice = (struct paqm_client_advice){
			.flow = i, .cause = c->fd < 0 ? PAQM_CLIENT_LOST : PAQM_CLIENT_NONE};
		add_news(c, f);
	}
}

static void timer_ready(struct paqm_client *c)
{
	uint64_t n, now = now_ns();

	if (read(c->timer, &n, sizeof(n)) < 0)
		return;
	if (now >= c->grace_ns)
		end_grace(c, now);
	if (now >= c->again_ns)
		ask_again(c, now);
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
	c->grace_ns = NEVER;
	c->again_ns = NEVER;
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
	c->flow[i].lost_ns = 0;
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
	f->state = c->fd < 0 ? FREE : LEAVING;
	untold(c);
	return 0;
}

int paqm_client_next(struct paqm_client *c, struct paqm_client_advice *a)
{
	struct epoll_event e[2];
	int i, n = epoll_wait(c->epoll, e, 2, 0);

	for (i = 0; i < n; i++) {
		if (e[i].data.fd == c->timer)
			timer_ready(c);
		else if (e[i].data.fd == c->fd && e[i].events & ~(uint32_t)EPOLLOUT)
			receive(c);
	}
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
