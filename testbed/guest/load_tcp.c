// SPDX-License-Identifier: GPL-2.0
/* Short TCP connections and their sink: modes web and websink of load. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/sockios.h>
#include <math.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "testbed/guest/load.h"

#define CONNECTIONS_MAX 4096
#define CHUNK 65536
#define LOOK_NS 1000000 /* how often --lasting looks whether all has been acknowledged */

struct connection {
	int64_t begin;
	int left, bytes;
	bool shut;
};

static struct connection connection[CONNECTIONS_MAX];
static struct pollfd polled[CONNECTIONS_MAX];
static int open_connections;

static void forget(int i)
{
	close(polled[i].fd);
	open_connections--;
	polled[i] = polled[open_connections];
	connection[i] = connection[open_connections];
}

/* Uniform from --low to --high, or with --pareto's shape from --low on, cut at --high. */
static int draw_bytes(struct options *o)
{
	double u = erand48(o->random);

	if (!o->pareto)
		return o->low + (int)(u * (o->high - o->low + 1));
	return (int)fmin(o->low * pow(1 - u, -1 / o->pareto), o->high);
}

static void open_connection(struct options *o, int64_t now)
{
	struct connection *c = &connection[open_connections];
	struct pollfd *p = &polled[open_connections];
	struct sockaddr_in to = address(o->to, o->port);

	if (open_connections == CONNECTIONS_MAX)
		die("more than %d connections at once", CONNECTIONS_MAX);
	*p = (struct pollfd){.fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0),
			     .events = POLLOUT};
	if (p->fd < 0 || setsockopt(p->fd, IPPROTO_TCP, TCP_CONGESTION, o->algorithm,
				    (socklen_t)strlen(o->algorithm)))
		die("no TCP socket with %s: %s", o->algorithm, strerror(errno));
	if (connect(p->fd, (struct sockaddr *)&to, sizeof(to)) && errno != EINPROGRESS)
		die("connect: %s", strerror(errno));
	*c = (struct connection){.begin = now};
	c->bytes = c->left = draw_bytes(o);
	open_connections++;
}

/* Writes what goes in; true: the connection is over. *good: all of it was received. */
static bool serve(int i, bool *good)
{
	static const char block[CHUNK];
	struct connection *c = &connection[i];
	struct pollfd *p = &polled[i];
	char byte;
	ssize_t n;

	*good = false;
	while (c->left) {
		n = send(p->fd, block, c->left < CHUNK ? (size_t)c->left : CHUNK, MSG_NOSIGNAL);
		if (n < 0)
			return errno != EAGAIN;
		c->left -= (int)n;
	}
	if (!c->shut) {
		shutdown(p->fd, SHUT_WR);
		c->shut = true;
		p->events = POLLIN;
		return false;
	}
	n = recv(p->fd, &byte, 1, 0);
	if (n < 0 && errno == EAGAIN)
		return false;
	*good = n == 0; /* the other side has read to the end and closed */
	return true;
}

static int wait_events(int64_t until, int64_t now)
{
	int64_t left = until > now ? until - now : 0;
	struct timespec t = {left / NS, left % NS};

	return ppoll(polled, (nfds_t)open_connections, &t, NULL);
}

/* Until the next: regular where one connection lasts, else at random. */
static int64_t gap(struct options *o)
{
	if (o->lasting)
		return llround(NS / o->per_s);
	return llround(-log(1 - erand48(o->random)) / o->per_s * NS);
}

/*
 * One connection for all: what is to go is added to what has not gone yet. An entry of the log is
 * what went until all was acknowledged.
 */
static void web_lasting(struct options *o, FILE *log)
{
	static const char block[CHUNK];
	struct connection *c = &connection[0];
	int64_t now, next = o->from + gap(o);
	int begun = 0, done = 0, unacked = 0;
	ssize_t n = 0;

	while (now_ns() < o->from) /* the sink listens by then */
		sleep_until(o->from);
	open_connection(o, o->from);
	c->left = c->bytes = 0;
	while ((now = now_ns()) < o->until && (n >= 0 || errno == EAGAIN)) {
		if (next <= now) {
			int bytes = draw_bytes(o);

			if (!c->bytes)
				c->begin = now;
			c->bytes += bytes;
			c->left += bytes;
			begun++;
			next += gap(o);
		}
		n = 0;
		while (c->left && n >= 0) {
			n = send(polled[0].fd, block, c->left < CHUNK ? (size_t)c->left : CHUNK,
				 MSG_NOSIGNAL);
			c->left -= n > 0 ? (int)n : 0;
		}
		if (c->bytes && !c->left && !ioctl(polled[0].fd, SIOCOUTQ, &unacked) && !unacked) {
			fprintf(log, "%lld,%d,%.3f\n", (long long)c->begin, c->bytes,
				(double)(now - c->begin) / 1e6);
			c->bytes = 0;
			done++;
		}
		sleep_until(c->bytes && now + LOOK_NS < next ? now + LOOK_NS : next);
	}
	printf("{\"begun\": %d, \"done\": %d, \"failed\": %d, \"unfinished\": %d}\n", begun, done,
	       n < 0 && errno != EAGAIN, !!c->bytes);
}

int web_main(struct options *o)
{
	FILE *log = fopen(o->log, "w");
	int64_t now, next = o->from + gap(o);
	int begun = 0, done = 0, failed = 0, i;
	bool good;

	if (!log)
		die("%s: %s", o->log, strerror(errno));
	fputs("t_ns,bytes,ms\n", log);
	if (o->lasting) {
		web_lasting(o, log);
		return fclose(log) ? 2 : 0;
	}
	/* what is under way at the end has another second */
	while ((now = now_ns()) < o->until + (open_connections ? NS : 0)) {
		if (next <= now && next < o->until) {
			open_connection(o, now);
			begun++;
			next += gap(o);
		}
		wait_events(next < o->until ? next : o->until + NS, now);
		now = now_ns();
		for (i = open_connections - 1; i >= 0; i--) {
			struct connection c = connection[i];

			if (!polled[i].revents || !serve(i, &good))
				continue;
			done += good;
			failed += !good;
			if (good)
				fprintf(log, "%lld,%d,%.3f\n", (long long)c.begin, c.bytes,
					(double)(now - c.begin) / 1e6);
			forget(i);
		}
	}
	printf("{\"begun\": %d, \"done\": %d, \"failed\": %d, \"unfinished\": %d}\n", begun, done,
	       failed, open_connections);
	return fclose(log) ? 2 : 0;
}

int websink_main(struct options *o)
{
	int one = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), i;
	static char block[CHUNK];
	uint64_t bytes = 0;
	int accepted = 0;
	int64_t now;

	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	must_bind(listener, o->port);
	if (listen(listener, CONNECTIONS_MAX))
		die("listen: %s", strerror(errno));
	polled[0] = (struct pollfd){.fd = listener, .events = POLLIN};
	open_connections = 1;
	while ((now = now_ns()) < o->until) {
		wait_events(o->until, now);
		for (i = open_connections - 1; i >= 1; i--) {
			ssize_t n = 0;

			if (!polled[i].revents)
				continue;
			while ((n = recv(polled[i].fd, block, sizeof(block), 0)) > 0)
				bytes += (uint64_t)n;
			if (n == 0 || errno != EAGAIN)
				forget(i);
		}
		while (polled[0].revents && open_connections < CONNECTIONS_MAX) {
			int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);

			if (fd < 0)
				break;
			accepted++;
			polled[open_connections++] = (struct pollfd){.fd = fd, .events = POLLIN};
		}
	}
	printf("{\"accepted\": %d, \"bytes\": %llu}\n", accepted, (unsigned long long)bytes);
	return 0;
}
