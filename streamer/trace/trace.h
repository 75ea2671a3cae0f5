/* SPDX-License-Identifier: GPL-2.0 */
/* Trace mode of paqm-streamer: many streams of a ready-made quality ladder, without an encoder. */
#ifndef PAQM_TRACE_H
#define PAQM_TRACE_H

#include <gio/gio.h>
#include <stdint.h>

#include "streamer/rtp/ccfb.h"

#define TRACE_FLOWS_MAX 256
#define TRACE_PT 96
#define TRACE_CLOCK 90000
#define RTP_HEADER 12

int cmd_trace_send(int argc, char **argv);
int cmd_trace_recv(int argc, char **argv);

/*
 * What waits for hundreds of sockets at once; the main loop of GLib polls each of them for every
 * packet of any of them.
 */
struct trace_loop {
	int epoll, signals;
	gint64 due_ns; /* of its timer */
	gboolean stop;
};

typedef void (*trace_fn)(gpointer data);

struct trace_watch {
	trace_fn fn;
	gpointer data;
};

gboolean trace_loop_init(struct trace_loop *l, GError **error);
gboolean trace_loop_add(struct trace_loop *l, int fd, struct trace_watch *watch, GError **error);
void trace_loop_run(struct trace_loop *l, struct trace_watch *on_timer);
void trace_loop_clear(struct trace_loop *l);
void trace_timer_set(struct trace_loop *l, gint64 when_ns);

guint64 trace_ntp(gint64 realtime_ns);
void trace_close(int *fd);
/* DSCP and ECN field of all that a socket sends from now on. */
gboolean trace_send_as(int fd, int dscp, enum ecn ecn, GError **error);
/* Of --flows: two ports for each, from that of @first on. */
gboolean trace_ports_fit(GInetSocketAddress *first, gint flows, GError **error);
int trace_socket(GInetSocketAddress *addr, guint16 port, gboolean connected, GError **error);

#endif /* PAQM_TRACE_H */
