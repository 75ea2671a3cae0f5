/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Packet capture: one socket per interface, opened by the opener (opener.h) and
 * read through a ring that the kernel fills. Interfaces may come and go.
 */
#ifndef PAQMD_CAPTURE_H
#define PAQMD_CAPTURE_H

#include "loop.h"
#include "request.h"

/* Open the interfaces of the configuration, through the opener at @opener.
 * Return: 0, or -1 after having logged why not.
 */
int capture_open(struct daemon *d, int opener);
void capture_close(struct daemon *d);

/* The configuration names other interfaces. One that cannot be opened is tried
 * again, as one that has gone.
 */
void capture_reload(struct daemon *d);

/* Ask the opener for what is to be done: the filter of the present flows, interfaces that
 * have gone. Its answers come as events. Return: when to be called again, or UINT64_MAX.
 */
uint64_t capture_run(struct daemon *d, uint64_t now_ns);

void capture_stats(struct daemon *d, struct request_env *env);

#endif /* PAQMD_CAPTURE_H */
