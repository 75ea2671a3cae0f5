/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Packet capture: one libpcap handle per interface, immediate mode, with a
 * kernel filter for incoming feedback messages and outgoing registered media.
 */
#ifndef PAQMD_CAPTURE_H
#define PAQMD_CAPTURE_H

#include "loop.h"
#include "request.h"

/* Open @n interfaces. Return: 0, or -1 after having logged why not. */
int capture_open(struct daemon *d, const char *const *names, unsigned int n);
void capture_close(struct daemon *d);

/* The set of flows has changed. */
void capture_filter(struct daemon *d);

/* Bring back interfaces that have gone. Return: when to try again, or UINT64_MAX. */
uint64_t capture_retry(struct daemon *d, uint64_t now_ns);

void capture_stats(struct daemon *d, struct request_env *env);

#endif /* PAQMD_CAPTURE_H */
