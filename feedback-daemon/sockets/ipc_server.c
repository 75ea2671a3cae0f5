// SPDX-License-Identifier: GPL-2.0
/*
 * Server of the socket of media senders; see ipc_server.h.
 *
 * Latest wins: at most one record of each kind is pending per flow, and its content
 * is taken when it is sent. The send buffer is kept at a few records, so that a slow
 * reader finds few old ones. The flows with pending records form a list per client.
 *
 * A refused registration has no flow and takes a place of its own, one answer per cookie.
 * A client that has used up its places is not read until it has taken some answers:
 * none is lost, and what it may ask meanwhile waits in its own buffer.
 */
#include "feedback-daemon/sockets/ipc_server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "feedback-daemon/host/log.h"
#include "feedback-daemon/sockets/record.h"
#include "feedback-daemon/sockets/unixsock.h"

#define IPC_SNDBUF 4096
#define IPC_RECORDS_PER_TURN 16

#define IPC_REFUSALS 256 /* answers that may be pending per client beyond its buffer */

#define OWES_REGISTERED 1
#define OWES_RATE 2
#define OWES_REFUSED 4 /* a change was refused: the flow is as it was */

struct refusal {
	uint64_t cookie;
	int error; /* 0: taken meanwhile */
};

struct ipc_client {
	struct source src; /* first: the loop knows the client by it */
	struct daemon *d;
	uint64_t id; /* 0: slot is free */
	struct unixsock_peer peer;
	unsigned int flows;
	uint32_t watched;     /* events */
	uint32_t first, last; /* flows that are owed something: number + 1; 0: none */
	unsigned int oldest, refusals;
	struct refusal refusal[IPC_REFUSALS];
};

struct ipc_server {
	struct source src;
	struct daemon *d;
	ipc_flow_sink *sink;
	char *path;
	uint64_t serial; /* of clients */
	struct ipc_client client[IPC_CLIENTS];
	uint8_t owes[ENGINE_FLOWS];
	uint32_t next[ENGINE_FLOWS]; /* in the list of its client */
	int error[ENGINE_FLOWS];     /* of OWES_REFUSED; sent after the pending answer */
	/* The change whose filter must be in force before the client hears of this flow;
	 * 0: it is. What the client sends after that is sure to be seen.
	 */
	uint64_t waits[ENGINE_FLOWS];
};

static size_t index_of(const struct daemon *d, const struct flow *f)
{
	return (size_t)(f - d->engine.flows);
}

/* Mark this record of the flow as pending. */
static void owe(struct ipc_client *c, const struct flow *f, uint8_t what)
{
	struct ipc_server *srv = c->d->ipc;
	uint32_t i = (uint32_t)index_of(c->d, f);

	if (!srv->owes[i]) {
		srv->next[i] = 0;
		if (c->last)
			srv->next[c->last - 1] = i + 1;
		else
			c->first = i + 1;
		c->last = i + 1;
	}
	srv->owes[i] |= what;
}

/* Nothing is pending for the flow any more: unlink it. */
static void forgive(struct ipc_client *c, const struct flow *f)
{
	struct ipc_server *srv = c->d->ipc;
	uint32_t i = (uint32_t)index_of(c->d, f), before = 0, n;

	if (!srv->owes[i])
		return;
	srv->owes[i] = 0;
	for (n = c->first; n != i + 1; n = srv->next[n - 1])
		before = n;
	if (before)
		srv->next[before - 1] = srv->next[i];
	else
		c->first = srv->next[i];
	if (c->last == i + 1)
		c->last = before;
}

/* The pending refusal for @cookie, or NULL. */
static struct refusal *refusal_of(struct ipc_client *c, uint64_t cookie)
{
	unsigned int i;

	for (i = 0; i < c->refusals; i++) {
		struct refusal *r = &c->refusal[(c->oldest + i) % IPC_REFUSALS];

		if (r->cookie == cookie)
			return r;
	}
	return NULL;
}

/* There is room: a client without any is not read. */
static void owe_refusal(struct ipc_client *c, uint64_t cookie, int error)
{
	struct refusal *r = refusal_of(c, cookie);

	if (!r)
		r = &c->refusal[(c->oldest + c->refusals++) % IPC_REFUSALS];
	*r = (struct refusal){cookie, error};
}

static void drop_flow(struct ipc_client *c, struct flow *f)
{
	struct daemon *d = c->d;

	d->ipc->sink(d, "unregister", f);
	forgive(c, f);
	d->ipc->waits[index_of(d, f)] = 0;
	d->ipc->error[index_of(d, f)] = 0;
	engine_unregister(&d->engine, f);
	d->flows_change++;
	c->flows--;
}

static void drop_client(struct ipc_client *c, const char *why)
{
	struct daemon *d = c->d;
	size_t i;

	for (; c->first; c->first = d->ipc->next[c->first - 1])
		d->ipc->owes[c->first - 1] = 0;
	c->last = 0;
	for (i = 0; c->flows && i < ENGINE_FLOWS; i++)
		if (d->engine.keys[i].used && d->engine.flows[i].owner == c->id)
			drop_flow(c, &d->engine.flows[i]);
	if (why)
		log_limited(LOG_CLASS_CLIENT, "client pid %d dropped: %s", (int)c->peer.pid, why);
	else if (log_verbose)
		log_line("client pid %d has left", (int)c->peer.pid);
	close(c->src.fd);
	c->id = 0;
}

/* Return: 1 sent, 0 the buffer is full, -1 the client is gone. */
static int put_record(struct ipc_client *c, const void *rec, size_t len)
{
	if (send(c->src.fd, rec, len, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)len)
		return 1;
	if (errno == EAGAIN || errno == ENOBUFS || errno == EINTR)
		return 0;
	return -1;
}

static int put_registered(struct ipc_client *c, uint64_t cookie, int error)
{
	struct paqm_ipc_registered r = {
		.hdr = {PAQM_IPC_MAGIC, PAQM_IPC_VERSION, PAQM_IPC_REGISTERED, sizeof(r)},
		.cookie = cookie,
		.error = error,
	};

	return put_record(c, &r, sizeof(r));
}

/* Clients use another clock than the engine. Return: as put_record(). */
static int put_rate(struct ipc_client *c, const struct flow *f)
{
	struct paqm_ipc_rate r = f->rate;
	uint64_t age = clock_ns(DAEMON_CLOCK) - r.mono_ns, now = clock_ns(CLOCK_MONOTONIC);

	if (r.mono_ns)
		r.mono_ns = now - paqm_min64(age, now);
	return put_record(c, &r, sizeof(r));
}

/* Return: as put_record(). */
static int flush_refusals(struct ipc_client *c)
{
	int done = 1;

	while (c->refusals && done > 0) {
		const struct refusal *r = &c->refusal[c->oldest];

		if (r->error)
			done = put_registered(c, r->cookie, r->error);
		if (done > 0) {
			c->oldest = (c->oldest + 1) % IPC_REFUSALS;
			c->refusals--;
		}
	}
	return done;
}

/* Send what is pending. Return: false if the client was dropped. */
static bool flush(struct ipc_client *c)
{
	struct daemon *d = c->d;
	int done = flush_refusals(c);
	uint32_t events;

	while (c->first && done > 0) {
		const struct flow *f = &d->engine.flows[c->first - 1];
		uint8_t *owes = &d->ipc->owes[c->first - 1];

		if (*owes & OWES_REGISTERED) {
			done = put_registered(c, f->cookie, 0);
			if (done > 0)
				*owes &= (uint8_t)~OWES_REGISTERED;
		}
		if (done > 0 && *owes & OWES_REFUSED) {
			done = put_registered(c, f->cookie, d->ipc->error[c->first - 1]);
			if (done > 0) {
				*owes &= (uint8_t)~OWES_REFUSED;
				d->ipc->error[c->first - 1] = 0;
			}
		}
		if (done > 0 && *owes & OWES_RATE) {
			done = put_rate(c, f);
			if (done > 0)
				*owes &= (uint8_t)~OWES_RATE;
		}
		if (*owes)
			continue;
		c->first = d->ipc->next[c->first - 1];
		if (!c->first)
			c->last = 0;
	}
	if (done < 0) {
		drop_client(c, NULL);
		return false;
	}
	events = (c->refusals < IPC_REFUSALS ? EPOLLIN : 0U) | (done ? 0U : EPOLLOUT);
	if (c->watched != events) {
		c->watched = events;
		loop_watch(d, &c->src, events);
	}
	return true;
}

/* A client's id contains its slot. Return: NULL if it has gone. */
static struct ipc_client *client_of(const struct daemon *d, uint64_t id)
{
	struct ipc_client *c = &d->ipc->client[id % IPC_CLIENTS];

	return c->id == id ? c : NULL;
}

void ipc_push(struct daemon *d, const struct flow *f)
{
	struct ipc_client *c = client_of(d, f->owner);

	if (!c || d->ipc->waits[index_of(d, f)])
		return;
	owe(c, f, OWES_RATE);
	flush(c);
}

void ipc_filter_in_force(struct daemon *d, uint64_t change)
{
	struct ipc_server *srv = d->ipc;
	size_t i;

	for (i = 0; i < ENGINE_FLOWS; i++) {
		const struct flow *f = &d->engine.flows[i];

		if (!srv->waits[i] || srv->waits[i] > change)
			continue;
		srv->waits[i] = 0;
		owe(client_of(d, f->owner), f,
		    OWES_REGISTERED | OWES_RATE | (srv->error[i] ? OWES_REFUSED : 0));
	}
	for (i = 0; i < IPC_CLIENTS; i++)
		if (d->ipc->client[i].id)
			flush(&d->ipc->client[i]);
}

/* Tell the client that a registration, or a change of flow @known, was refused. Return: false if
 * the client was dropped.
 */
static bool refuse(struct ipc_client *c, const struct paqm_ipc_register *reg,
		   const struct flow *known, int err)
{
	struct ipc_server *srv = c->d->ipc;

	log_limited(LOG_CLASS_CLIENT, "client pid %d: flow to port %u not registered: %s",
		    (int)c->peer.pid, reg->dport, strerror(err));
	if (known) {
		srv->error[index_of(c->d, known)] = err;
		if (!srv->waits[index_of(c->d, known)])
			owe(c, known, OWES_REFUSED);
	} else {
		owe_refusal(c, reg->cookie, err);
	}
	return flush(c);
}

/* Return: false if the client was dropped. */
static bool do_register(struct ipc_client *c, const struct paqm_ipc_register *reg)
{
	struct daemon *d = c->d;
	struct flow *f = engine_flow(&d->engine, c->id, reg->cookie);
	struct flow_key before = {0};
	const struct flow_key *key;
	struct refusal *old;
	bool known = f;
	uint64_t *waits;
	int err = ENOSPC;

	if (known)
		before = d->engine.keys[index_of(d, f)];
	if (known || c->flows < IPC_FLOWS_PER_CLIENT)
		err = engine_register(&d->engine, c->id, c->peer.uid, reg, &f);
	else
		d->engine.not_taken[NOT_TAKEN_CLIENT_FULL]++;
	if (err)
		return refuse(c, reg, known ? f : NULL, err);
	/* An earlier refusal is outdated, and must not follow this answer. */
	old = refusal_of(c, reg->cookie);
	if (old)
		old->error = 0;
	if (d->ipc->error[index_of(d, f)]) {
		d->ipc->error[index_of(d, f)] = 0;
		forgive(c, f);
	}
	if (!known)
		c->flows++;
	d->ipc->sink(d, "register", f);
	key = &d->engine.keys[index_of(d, f)];
	waits = &d->ipc->waits[index_of(d, f)];
	if (!known || !addr_equal(&key->daddr, &before.daddr) || key->sport != before.sport ||
	    key->dport != before.dport)
		*waits = ++d->flows_change;
	if (*waits)
		return true;
	owe(c, f, OWES_REGISTERED | OWES_RATE);
	return flush(c);
}

static bool do_record(struct ipc_client *c, const union record *r)
{
	struct flow *f;

	switch (r->hdr.kind) {
	case PAQM_IPC_REGISTER:
		return do_register(c, &r->reg);
	case PAQM_IPC_UNREGISTER:
		f = engine_flow(&c->d->engine, c->id, r->unreg.cookie);
		if (f)
			drop_flow(c, f);
		return true;
	case PAQM_IPC_STATUS:
		f = engine_flow(&c->d->engine, c->id, r->status.cookie);
		if (f) {
			f->status = r->status;
			f->has_status = true;
		}
		return true;
	}
	return true;
}

static void client_ready(struct source *s, uint32_t events)
{
	struct ipc_client *c = (struct ipc_client *)s;
	union record rec;
	char buf[sizeof(rec)];
	const char *why;
	ssize_t n;
	int i;

	if (events & EPOLLOUT && !flush(c))
		return;
	if (events & EPOLLHUP && c->refusals == IPC_REFUSALS) {
		drop_client(c, NULL); /* there is nobody to answer */
		return;
	}
	for (i = 0; i < IPC_RECORDS_PER_TURN && c->refusals < IPC_REFUSALS; i++) {
		n = recv(c->src.fd, buf, sizeof(buf), MSG_DONTWAIT | MSG_TRUNC);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0) {
			drop_client(c, NULL);
			return;
		}
		why = record_parse(buf, (size_t)n, &rec);
		if (why) {
			c->d->bad_records++;
			drop_client(c, why);
			return;
		}
		if (!do_record(c, &rec))
			return;
	}
}

static void listen_ready(struct source *s, uint32_t events)
{
	struct ipc_server *srv = (struct ipc_server *)s;
	struct ipc_client *c;
	int sndbuf = IPC_SNDBUF;
	struct unixsock_peer peer;
	uint32_t own = 0, used = 0;
	size_t i;
	int fd;

	(void)events;
	fd = unixsock_accept(srv->d, s->fd, &peer);
	if (fd < 0)
		return;
	for (i = 0; i < IPC_CLIENTS; i++) {
		used += srv->client[i].id != 0;
		own += srv->client[i].id && srv->client[i].peer.uid == peer.uid;
	}
	if (!unixsock_room(&peer, own, used, IPC_CLIENTS, &srv->d->senders_full)) {
		close(fd);
		return;
	}
	for (i = 0; srv->client[i].id; i++)
		;
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &sndbuf, sizeof(sndbuf));
	c = &srv->client[i];
	*c = (struct ipc_client){
		.src = {.fd = fd, .ready = client_ready},
		.d = srv->d,
		.id = ++srv->serial * IPC_CLIENTS + i,
		.peer = peer,
		.watched = EPOLLIN,
	};
	if (loop_watch(srv->d, &c->src, EPOLLIN))
		drop_client(c, strerror(errno));
	else if (log_verbose)
		log_line("client pid %d connected", (int)peer.pid);
}

void ipc_stats(const struct daemon *d, struct request_env *env)
{
	unsigned int n;
	size_t i;

	_Static_assert(IPC_CLIENTS <= ENGINE_USERS, "a slot for the user of each client");
	env->clients = 0;
	env->users = 0;
	for (i = 0; i < IPC_CLIENTS; i++) {
		const struct ipc_client *c = &d->ipc->client[i];

		if (!c->id)
			continue;
		env->clients++;
		for (n = 0; n < env->users && env->user[n].uid != c->peer.uid; n++)
			;
		if (n == env->users)
			env->user[env->users++] = (struct request_user){.uid = c->peer.uid};
		env->user[n].clients++;
	}
}

int ipc_open(struct daemon *d, const char *path, const struct sandbox_user *user,
	     ipc_flow_sink *sink)
{
	struct ipc_server *srv = calloc(1, sizeof(*srv));

	if (!srv)
		return -1;
	srv->d = d;
	srv->sink = sink;
	srv->src.ready = listen_ready;
	srv->src.fd = unixsock_listen(d, user, path, SOCK_SEQPACKET, &srv->path);
	if (srv->src.fd < 0) {
		free(srv);
		return -1;
	}
	d->ipc = srv;
	d->listener[0] = &srv->src;
	return loop_watch(d, &srv->src, EPOLLIN);
}

void ipc_close(struct daemon *d)
{
	struct ipc_server *srv = d->ipc;
	size_t i;

	if (!srv)
		return;
	for (i = 0; i < IPC_CLIENTS; i++)
		if (srv->client[i].id)
			drop_client(&srv->client[i], NULL);
	unixsock_close(srv->src.fd, srv->path);
	free(srv);
	d->ipc = NULL;
}
