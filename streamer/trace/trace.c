// SPDX-License-Identifier: GPL-2.0
/* Loop, timer and sockets that both ends of trace mode use. */
#include "streamer/trace/trace.h"

#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <sys/socket.h>
#include <unistd.h>

#include "streamer/options.h"

#define NTP_OFFSET 2208988800u /* s from 1900 to 1970, RFC 5905 */

static int signalled; /* the loop's eventfd */

/* In whichever thread: GLib may have made some before main() began. */
static void on_signal(int number)
{
	int kept = errno;

	(void)number;
	eventfd_write(signalled, 1);
	errno = kept;
}

/**
 * trace_loop_init() - a loop with its timer and its signals
 *
 * SIGINT and SIGTERM end it. A process has one loop.
 */
gboolean trace_loop_init(struct trace_loop *l, GError **error)
{
	struct sigaction end = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

	*l = (struct trace_loop){.epoll = epoll_create1(EPOLL_CLOEXEC),
				 .signals = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC),
				 .due_ns = G_MAXINT64};
	signalled = l->signals;
	prctl(PR_SET_TIMERSLACK, 1); /* packets leave at their time, not up to 50 us later */
	sigaction(SIGINT, &end, NULL);
	sigaction(SIGTERM, &end, NULL);
	if (l->epoll >= 0 && l->signals >= 0 && trace_loop_add(l, l->signals, (gpointer)l, error))
		return TRUE;
	if (error && !*error)
		g_set_error(error, G_IO_ERROR, g_io_error_from_errno(errno),
			    "cannot wait for sockets: %s", g_strerror(errno));
	return FALSE;
}

/* @watch stays the caller's and must live as long as the loop. */
gboolean trace_loop_add(struct trace_loop *l, int fd, struct trace_watch *watch, GError **error)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = watch};

	if (epoll_ctl(l->epoll, EPOLL_CTL_ADD, fd, &ev) == 0)
		return TRUE;
	g_set_error(error, G_IO_ERROR, g_io_error_from_errno(errno), "cannot wait for a socket: %s",
		    g_strerror(errno));
	return FALSE;
}

/*
 * Until l->stop, or a signal. One system call for each time it wakes up: in a guest of the lab they
 * cost more than what is done then, and a timer of its own takes three.
 */
void trace_loop_run(struct trace_loop *l, struct trace_watch *on_timer)
{
	struct epoll_event ev[64];

	while (!l->stop) {
		gint64 wait = MAX(l->due_ns - monotonic_ns(), 0);
		struct timespec until = {.tv_sec = wait / 1000000000, .tv_nsec = wait % 1000000000};
		int n = epoll_pwait2(l->epoll, ev, G_N_ELEMENTS(ev), &until, NULL);

		for (int i = 0; i < n && !l->stop; i++) {
			struct trace_watch *watch = ev[i].data.ptr;

			if ((gpointer)watch == l)
				l->stop = TRUE;
			else
				watch->fn(watch->data);
		}
		if (!l->stop && (!n || l->due_ns <= monotonic_ns()))
			on_timer->fn(on_timer->data);
	}
}

void trace_loop_clear(struct trace_loop *l)
{
	trace_close(&l->epoll);
	trace_close(&l->signals);
}

/* At that time of CLOCK_MONOTONIC; the past is at once. */
void trace_timer_set(struct trace_loop *l, gint64 when_ns)
{
	l->due_ns = when_ns;
}

/* 64-bit NTP time stamp. */
guint64 trace_ntp(gint64 realtime_ns)
{
	guint64 s = (guint64)realtime_ns / 1000000000, ns = (guint64)realtime_ns % 1000000000;

	return ((s + NTP_OFFSET) << 32) | ((ns << 32) / 1000000000);
}

void trace_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

gboolean trace_send_as(int fd, int dscp, enum ecn ecn, GError **error)
{
	int field = dscp << 2 | (int)ecn, domain = 0;
	socklen_t size = sizeof(domain);
	gboolean ipv6 =
		!getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) && domain == AF_INET6;

	if (!setsockopt(fd, ipv6 ? IPPROTO_IPV6 : IPPROTO_IP, ipv6 ? IPV6_TCLASS : IP_TOS, &field,
			sizeof(field)))
		return TRUE;
	g_set_error(error, G_IO_ERROR, g_io_error_from_errno(errno),
		    "cannot set DSCP and ECN field: %s", g_strerror(errno));
	return FALSE;
}

/* UDP, non-blocking; bound to @addr and @port, or connected to them. -1 on failure. */
gboolean trace_ports_fit(GInetSocketAddress *first, gint flows, GError **error)
{
	int port = g_inet_socket_address_get_port(first);

	if (!in_range("--flows", flows, 1, TRACE_FLOWS_MAX, "", error))
		return FALSE;
	if (port + 2 * flows > 65535)
		g_set_error(error, USAGE_ERROR, 0,
			    "--flows %d: two ports for each, from %d on, are more than there are",
			    flows, port);
	return port + 2 * flows <= 65535;
}

int trace_socket(GInetSocketAddress *addr, guint16 port, gboolean connected, GError **error)
{
	GInetAddress *host = g_inet_socket_address_get_address(addr);
	GSocketAddress *sa = address_to_port(addr, port);
	struct sockaddr_storage ss;
	int fd, done, size = 1 << 21;
	char *text;

	fd = socket(g_inet_address_get_family(host) == G_SOCKET_FAMILY_IPV6 ? AF_INET6 : AF_INET,
		    SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	g_socket_address_to_native(sa, &ss, sizeof(ss), NULL);
	done = fd < 0 ? -1
	       : connected
		       ? connect(fd, (struct sockaddr *)&ss, g_socket_address_get_native_size(sa))
		       : bind(fd, (struct sockaddr *)&ss, g_socket_address_get_native_size(sa));
	if (done < 0) {
		text = g_inet_address_to_string(host);
		g_set_error(error, G_IO_ERROR, g_io_error_from_errno(errno),
			    "cannot %s UDP %s port %u: %s", connected ? "send to" : "bind", text,
			    port, g_strerror(errno));
		g_free(text);
		trace_close(&fd);
	} else if (!connected) {
		/* a burst of many streams at once; the kernel may grant less, but not to root */
		if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) < 0)
			setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	}
	g_object_unref(sa);
	return fd;
}
