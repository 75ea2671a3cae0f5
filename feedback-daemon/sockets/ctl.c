// SPDX-License-Identifier: GPL-2.0
/*
 * Server of the control socket; see ctl.h. Each client gets one answer at a time,
 * and the next one when it has read that; the others are served in between. A client
 * that cannot keep up with a watch loses events and is told how many.
 */
#include "feedback-daemon/sockets/ctl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "feedback-daemon/host/log.h"
#include "feedback-daemon/sockets/unixsock.h"

#define CTL_CLIENTS 16
#define CTL_LINE 4096
/* Refused messages shown to watchers are spaced evenly, so that valid ones are not held up; the
 * rest of a flood is counted.
 */
#define CTL_REFUSED_NS 2000000ULL
#define CTL_REFUSED_BURST 50
#define CTL_EVENTS_MAX (256U << 10)

struct ctl_client {
	struct source src; /* first: the loop knows the client by it */
	struct daemon *d;
	bool used, watch, capture;
	bool owner; /* root, or who started us */
	uid_t uid;
	bool waits;    /* for room in its buffer; nothing is read meanwhile */
	uint64_t lost; /* events */
	char in[CTL_LINE];
	size_t in_len;
	char *out;
	size_t out_len;
};

struct ctl_server {
	struct source src;
	struct daemon *d;
	const struct ctl_source *source;
	char *path;
	unsigned int watchers, captures;
	uint64_t refused_ns[2]; /* when the next may be sent: to watchers, to captures */
	struct ctl_client client[CTL_CLIENTS];
};

static void drop_client(struct ctl_client *c)
{
	c->d->ctl->watchers -= c->watch;
	c->d->ctl->captures -= c->capture;
	close(c->src.fd);
	free(c->out);
	c->out = NULL;
	c->used = false;
}

/* Return: false if the client was dropped. */
static bool flush(struct ctl_client *c)
{
	ssize_t n;

	while (c->out_len) {
		n = send(c->src.fd, c->out, c->out_len, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			break;
		if (n < 0) {
			drop_client(c);
			return false;
		}
		c->out_len -= (size_t)n;
		memmove(c->out, c->out + n, c->out_len);
	}
	if (c->waits != (c->out_len != 0)) {
		c->waits = c->out_len != 0;
		loop_watch(c->d, &c->src, c->waits ? EPOLLOUT : EPOLLIN);
	}
	return true;
}

/* Queue one line; takes over @o. Return: false if it does not fit in @max. */
static bool put_line(struct ctl_client *c, json_t *o, size_t max)
{
	char *text = o ? json_dumps(o, JSON_COMPACT) : NULL;
	size_t len = text ? strlen(text) : 0;
	char *out = NULL;

	json_decref(o);
	if (text && c->out_len + len + 1 <= max)
		out = realloc(c->out, c->out_len + len + 1);
	if (out) {
		memcpy(out + c->out_len, text, len);
		out[c->out_len + len] = '\n';
		c->out = out;
		c->out_len += len + 1;
	}
	free(text);
	return out;
}

static void put_event(struct ctl_client *c, json_t *o)
{
	json_t *lost;

	if (c->lost) {
		lost = json_pack("{s:s,s:I,s:I}", "event", "lost", "t_ns",
				 (json_int_t)clock_ns(CLOCK_REALTIME), "count",
				 (json_int_t)c->lost);
		if (!put_line(c, lost, CTL_EVENTS_MAX)) {
			c->lost++;
			json_decref(o);
			return;
		}
		c->lost = 0;
	}
	if (!put_line(c, o, CTL_EVENTS_MAX))
		c->lost++;
	flush(c);
}

static void broadcast(struct daemon *d, json_t *o, bool capture)
{
	size_t i;

	for (i = 0; i < CTL_CLIENTS; i++) {
		struct ctl_client *c = &d->ctl->client[i];

		if (c->used && (capture ? c->capture : c->watch))
			put_event(c, json_incref(o));
	}
	json_decref(o);
}

/* May another refused message be sent? If not, it counts as lost for those concerned. */
static bool refused_room(struct daemon *d, uint64_t t_ns, bool capture)
{
	struct ctl_server *srv = d->ctl;
	uint64_t *next = &srv->refused_ns[capture];
	size_t i;

	/* The wall clock may have been set back. */
	if (*next > t_ns + CTL_REFUSED_BURST * CTL_REFUSED_NS ||
	    *next < t_ns - CTL_REFUSED_BURST * CTL_REFUSED_NS)
		*next = t_ns - CTL_REFUSED_BURST * CTL_REFUSED_NS;
	if (*next <= t_ns) {
		*next += CTL_REFUSED_NS;
		return true;
	}
	for (i = 0; i < CTL_CLIENTS; i++) {
		struct ctl_client *c = &srv->client[i];

		c->lost += c->used && (capture ? c->capture : c->watch);
	}
	return false;
}

void ctl_event_verdict(struct daemon *d, const struct verdict *v, uint64_t t_ns)
{
	if (d->ctl && d->ctl->watchers && (!v->refuse || refused_room(d, t_ns, false)))
		broadcast(d, request_event_verdict(&d->engine, v, t_ns), false);
}

void ctl_event_packet(struct daemon *d, const struct verdict *v, const uint8_t *ip, uint32_t len,
		      uint64_t t_ns)
{
	if (d->ctl && d->ctl->captures && (!v->refuse || refused_room(d, t_ns, true)))
		broadcast(d, request_event_packet(v, ip, len, t_ns), true);
}

void ctl_event_flow(struct daemon *d, const char *event, const struct flow *f)
{
	if (d->ctl && d->ctl->watchers)
		broadcast(d, request_event_flow(&d->engine, event, f, clock_ns(CLOCK_REALTIME)),
			  false);
}

static void answer(struct ctl_client *c, const char *line, size_t len)
{
	struct daemon *d = c->d;
	struct request_env env = {
		.now_ns = clock_ns(DAEMON_CLOCK),
		.start_ns = d->start_ns,
		.bad_records = d->bad_records,
		.peers_refused = d->peers_refused,
		.accept_failed = d->accept_failed,
		.senders_full = d->senders_full,
		.controls_full = d->controls_full,
	};
	enum request_act act;
	char why[CONF_WHY];
	json_t *o;

	d->ctl->source->stats(d, &env);
	o = request_answer(&d->engine, &env, line, len, &act);
	if (!c->owner && (act == REQUEST_RELOAD || act == REQUEST_CAPTURE)) {
		act = REQUEST_NOTHING;
		json_decref(o);
		o = request_forbidden();
	}
	if (act == REQUEST_RELOAD) {
		json_decref(o);
		o = request_reloaded(d->ctl->source->reload(d, why) ? NULL : why);
	}
	if (!put_line(c, o, SIZE_MAX)) {
		log_limited(LOG_CLASS_CLIENT, "control client dropped: no memory for its answer");
		drop_client(c);
		return;
	}
	if (act == REQUEST_WATCH && !c->watch) {
		c->watch = true;
		d->ctl->watchers++;
	}
	if (act == REQUEST_CAPTURE && !c->capture) {
		c->capture = true;
		d->ctl->captures++;
	}
	flush(c);
}

/* Read one line at most: the rest wakes us again, after the others. */
static void client_ready(struct source *s, uint32_t events)
{
	struct ctl_client *c = (struct ctl_client *)s;
	char *to = c->in + c->in_len;
	const char *end;
	ssize_t n;

	(void)events;
	if (c->waits) {
		flush(c);
		return;
	}
	n = recv(s->fd, to, sizeof(c->in) - c->in_len, MSG_DONTWAIT | MSG_PEEK);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	end = n > 0 ? memchr(to, '\n', (size_t)n) : NULL;
	if (end)
		n = end - to + 1;
	if (n <= 0 || recv(s->fd, to, (size_t)n, MSG_DONTWAIT) != n) {
		drop_client(c);
		return;
	}
	c->in_len += (size_t)n;
	if (end) {
		n = (ssize_t)c->in_len - 1;
		c->in_len = 0;
		answer(c, c->in, (size_t)n);
	} else if (c->in_len == sizeof(c->in)) {
		log_limited(LOG_CLASS_CLIENT, "control client dropped: line longer than %d bytes",
			    CTL_LINE);
		drop_client(c);
	}
}

static void listen_ready(struct source *s, uint32_t events)
{
	struct ctl_server *srv = (struct ctl_server *)s;
	struct ctl_client *c = NULL;
	struct unixsock_peer peer;
	uint32_t own = 0, used = 0;
	size_t i;
	int fd;

	(void)events;
	fd = unixsock_accept(srv->d, s->fd, &peer);
	if (fd < 0)
		return;
	for (i = 0; i < CTL_CLIENTS; i++) {
		used += srv->client[i].used;
		own += srv->client[i].used && srv->client[i].uid == peer.uid;
		if (!srv->client[i].used)
			c = &srv->client[i];
	}
	if (!unixsock_room(&peer, own, used, CTL_CLIENTS, &srv->d->controls_full)) {
		close(fd);
		return;
	}
	*c = (struct ctl_client){
		.src = {.fd = fd, .ready = client_ready},
		.d = srv->d,
		.used = true,
		.owner = peer.owner,
		.uid = peer.uid,
	};
	if (loop_watch(srv->d, &c->src, EPOLLIN))
		drop_client(c);
}

int ctl_open(struct daemon *d, const char *path, const struct sandbox_user *user,
	     const struct ctl_source *source)
{
	struct ctl_server *srv = calloc(1, sizeof(*srv));

	if (!srv)
		return -1;
	srv->d = d;
	srv->source = source;
	srv->src.ready = listen_ready;
	srv->src.fd = unixsock_listen(d, user, path, SOCK_STREAM, &srv->path);
	if (srv->src.fd < 0) {
		free(srv);
		return -1;
	}
	d->ctl = srv;
	d->listener[1] = &srv->src;
	return loop_watch(d, &srv->src, EPOLLIN);
}

void ctl_close(struct daemon *d)
{
	struct ctl_server *srv = d->ctl;
	size_t i;

	if (!srv)
		return;
	for (i = 0; i < CTL_CLIENTS; i++)
		if (srv->client[i].used)
			drop_client(&srv->client[i]);
	unixsock_close(srv->src.fd, srv->path);
	free(srv);
	d->ctl = NULL;
}
