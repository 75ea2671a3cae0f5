/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What has been captured: it comes by a pipe from a process that can do no more
 * (capturer.h). Here it is judged, and interfaces are followed, which may come and go.
 */
#ifndef PAQMD_CAPTURE_H
#define PAQMD_CAPTURE_H

#include "loop.h"
#include "opener.h"
#include "request.h"

/* Capture on the interfaces of the configuration. Return: 0, or -1 after having logged
 * why not.
 */
int capture_open(struct daemon *d, const struct opener *o);
void capture_close(struct daemon *d);

/* The configuration names other interfaces. One that is not there is waited for. */
void capture_reload(struct daemon *d);

/* Ask the opener for the filter of the present flows and interfaces. Its answers come as
 * events. Return: when to be called again, or UINT64_MAX.
 */
uint64_t capture_run(struct daemon *d, uint64_t now_ns);

void capture_stats(struct daemon *d, struct request_env *env);

#endif /* PAQMD_CAPTURE_H */
