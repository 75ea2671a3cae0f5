// SPDX-License-Identifier: GPL-2.0
/*
 * Never blocks: a daemon that is absent, slow or restarted costs nothing but
 * its advice. Everything runs in the main loop.
 */
#include "streamer/ipc_client.h"

#include <errno.h>
#include <glib-unix.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define RETRY_MS 500

struct ipc_client {
	char *path;
	struct paqm_ipc_register flow;
	ipc_rate_fn fn;
	gpointer data;
	int fd;
	guint watch, retry;
	gboolean told; /* that the daemon is not there */
};

static gboolean try_connect(gpointer data);

static struct paqm_ipc_hdr header(guint8 kind, gsize len)
{
	return (struct paqm_ipc_hdr){.magic = PAQM_IPC_MAGIC,
				     .version = PAQM_IPC_VERSION,
				     .kind = kind,
				     .len = (guint16)len};
}

static void lose(struct ipc_client *c, const char *why)
{
	gboolean had = c->watch != 0;

	if (c->watch)
		g_source_remove(c->watch);
	c->watch = 0;
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	if (!c->told)
		g_printerr("paqm-streamer: no advice from paqmd at %s (%s); going on without, "
			   "trying again\n",
			   c->path, why);
	c->told = TRUE;
	if (had)
		c->fn(NULL, c->data);
	if (!c->retry)
		c->retry = g_timeout_add(RETRY_MS, try_connect, c);
}

static void handle(struct ipc_client *c, const void *record, gsize len)
{
	union {
		struct paqm_ipc_hdr hdr;
		struct paqm_ipc_registered registered;
		struct paqm_ipc_rate rate;
	} u = {0};

	if (len < sizeof(u.hdr) || len > sizeof(u))
		return;
	memcpy(&u, record, len);
	if (u.hdr.magic != PAQM_IPC_MAGIC || u.hdr.version != PAQM_IPC_VERSION || u.hdr.len != len)
		return;
	if (u.hdr.kind == PAQM_IPC_REGISTERED && len == sizeof(u.registered) && u.registered.error)
		g_printerr("paqm-streamer: paqmd refused the flow: %s\n",
			   g_strerror(u.registered.error));
	else if (u.hdr.kind == PAQM_IPC_RATE && len == sizeof(u.rate) &&
		 u.rate.cookie == c->flow.cookie)
		c->fn(&u.rate, c->data);
}

static gboolean readable(gint fd, GIOCondition condition, gpointer data)
{
	struct ipc_client *c = data;

	(void)condition;
	for (;;) {
		char record[256];
		ssize_t n = recv(fd, record, sizeof(record), MSG_DONTWAIT);

		if (n > 0) {
			handle(c, record, (gsize)n);
			continue;
		}
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return G_SOURCE_CONTINUE;
		lose(c, n < 0 ? g_strerror(errno) : "it closed the connection");
		return G_SOURCE_REMOVE;
	}
}

static gboolean try_connect(gpointer data)
{
	struct ipc_client *c = data;
	struct sockaddr_un sun = {.sun_family = AF_UNIX};

	if (c->retry)
		g_source_remove(c->retry);
	c->retry = 0;
	if (strlen(c->path) >= sizeof(sun.sun_path)) {
		lose(c, "the path is too long for a socket");
		return G_SOURCE_REMOVE;
	}
	strcpy(sun.sun_path, c->path);
	c->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&sun, sizeof(sun)) < 0 ||
	    send(c->fd, &c->flow, sizeof(c->flow), MSG_NOSIGNAL) < 0) {
		lose(c, g_strerror(errno));
		return G_SOURCE_REMOVE;
	}
	c->told = FALSE;
	c->watch = g_unix_fd_add(c->fd, G_IO_IN | G_IO_HUP | G_IO_ERR, readable, c);
	return G_SOURCE_REMOVE;
}

/**
 * ipc_client_new() - connect to paqmd, now or when it appears
 * @path: its client socket
 * @flow: the flow to register; the header is filled in here
 */
struct ipc_client *ipc_client_new(const char *path, const struct paqm_ipc_register *flow,
				  ipc_rate_fn fn, gpointer data)
{
	struct ipc_client *c = g_new0(struct ipc_client, 1);

	c->path = g_strdup(path);
	c->flow = *flow;
	c->flow.hdr = header(PAQM_IPC_REGISTER, sizeof(c->flow));
	c->fn = fn;
	c->data = data;
	c->fd = -1;
	try_connect(c);
	return c;
}

/* What the sender made of the advice; lost when the daemon is slow. */
void ipc_client_status(struct ipc_client *c, guint64 wire_bps, guint gop, guint qp)
{
	struct paqm_ipc_status st = {
		.hdr = header(PAQM_IPC_STATUS, sizeof(st)),
		.cookie = c->flow.cookie,
		.wire_bps = wire_bps,
		.gop = gop,
		.qp = qp,
	};

	if (c->watch && send(c->fd, &st, sizeof(st), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		g_debug("status to paqmd lost: %s", g_strerror(errno));
}

void ipc_client_free(struct ipc_client *c)
{
	if (!c)
		return;
	if (c->watch)
		g_source_remove(c->watch);
	if (c->retry)
		g_source_remove(c->retry);
	if (c->fd >= 0)
		close(c->fd);
	g_free(c->path);
	g_free(c);
}
