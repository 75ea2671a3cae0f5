/* SPDX-License-Identifier: GPL-2.0 */
/* Talk with the service manager: sd_notify(3), sd_listen_fds(3). */
#ifndef PAQMD_NOTIFY_H
#define PAQMD_NOTIFY_H

#include <stdint.h>

/* Connect to the manager, if there is one. Before the sandbox. */
void notify_open(void);

/* Say "READY=1" or the like; without a manager nothing happens. */
void notify(const char *state);

/* Return: how often to say "WATCHDOG=1", in nanoseconds, or 0 for never. */
uint64_t notify_watchdog_ns(void);

/* Return: a listening socket of this type (SOCK_STREAM, SOCK_SEQPACKET) that the
 * manager has passed, or -1.
 */
int notify_socket(int type);

#endif /* PAQMD_NOTIFY_H */
