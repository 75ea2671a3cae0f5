/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Captured packets come through a pipe from a process that can do nothing else
 * (capturer.h). Here they are judged, and interfaces that come and go are followed.
 */
#ifndef PAQMD_CAPTURE_H
#define PAQMD_CAPTURE_H

#include "feedback-daemon/loop.h"
#include "feedback-daemon/capture/opener.h"
#include "feedback-daemon/sockets/request.h"

/* Where capture's results go; the main program connects them to the servers. */
struct capture_sink {
	/* A message, captured at @t_ns of the wall clock, has been judged. */
	void (*judged)(struct daemon *d, const struct verdict *v, const uint8_t *ip, uint32_t len,
		       uint64_t t_ns);
	/* The filter for the set of flows after this change is in force. */
	void (*filter_in_force)(struct daemon *d, uint64_t change);
};

/* Capture on the interfaces of the configuration. Return: 0, or -1 after having logged
 * why not.
 */
int capture_open(struct daemon *d, const struct opener *o, const struct capture_sink *sink);
void capture_close(struct daemon *d);

/* The configuration has changed the interfaces. Missing ones are waited for. */
void capture_reload(struct daemon *d);

/* Ask the opener for the filter of the current flows and interfaces. Its answers come as
 * events. Return: when to be called again, or UINT64_MAX.
 */
uint64_t capture_run(struct daemon *d, uint64_t now_ns);

/* Fill in what capture knows. */
void capture_stats(struct daemon *d, struct request_env *env);

#endif /* PAQMD_CAPTURE_H */
