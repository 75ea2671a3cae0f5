/* SPDX-License-Identifier: GPL-2.0 */
/* The rlqos queue of a device, over rtnetlink: what it says of itself, and what it is told. */
#ifndef RLQOSD_QDISC_H
#define RLQOSD_QDISC_H

#include <stdbool.h>
#include <stdint.h>

/* A socket for the functions below. Return: the descriptor, or -1 with errno. */
int qdisc_open(void);

/**
 * qdisc_find() - look for the queue of kind rlqos at a device
 * @fd: of qdisc_open()
 * @ifindex: the device
 * @handle: set to that of the first one; 0: there is none
 *
 * Return: 0, or -1 with errno.
 */
int qdisc_find(int fd, int ifindex, uint32_t *handle);

/**
 * qdisc_ask() - its load
 * @fd: of qdisc_open()
 * @ifindex: the device
 * @handle: of qdisc_find()
 * @load: set to the load, Q24, while it thins, else to 0
 *
 * Return: 0, or -1 with errno, ENOENT if it is gone.
 */
int qdisc_ask(int fd, int ifindex, uint32_t handle, uint32_t *load);

/* The number of the device that has this name now. Return: 0 if there is none, or with errno. */
int qdisc_device(int fd, const char *name);

/* Tell it the load downstream. Return: 0, or -1 with errno. */
int qdisc_tell(int fd, int ifindex, uint32_t handle, uint32_t load);

#endif /* RLQOSD_QDISC_H */
