/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The process that starts the one that opens the captures of libpcap and reads them
 * (capturer.h), is handed their sockets, and gives up its privileges. From then on it does
 * one thing: set the kernel filters. Which packets a capture can show at all is decided here
 * (filter.h), whatever the rest of the daemon may ask; it never sees one itself.
 *
 * All captures are of all devices, and the filter says which of them count. So nothing
 * has to be opened when an interface comes.
 */
#ifndef PAQMD_OPENER_H
#define PAQMD_OPENER_H

#include <stdbool.h>
#include <stdint.h>

#include "feedback-daemon/conf.h"
#include "feedback-daemon/capture/filter.h"
#include "feedback-daemon/host/sandbox.h"

/**
 * struct opener - the worker's ends
 * @ask: the opener is asked by it, -1: there is none
 * @packets: what has been captured comes by it
 */
struct opener {
	int ask;
	int packets;
};

/**
 * opener_start() - begin both processes; before anything else is opened
 * @user: who they become, without any privilege
 * @sandbox: restrict their system calls
 * @o: filled in
 *
 * They end when the descriptors are closed. Return: 0, or -1 after having logged why not.
 */
int opener_start(const struct sandbox_user *user, bool sandbox, struct opener *o);

/**
 * opener_filter() - let other packets through, for there are other interfaces or flows
 * @fd: of struct opener
 * @names: of interfaces; "any" is all of them
 * @flows: whose packets count
 *
 * A request has one answer, and the next one is made when that has been taken. Return:
 * false if the opener is gone.
 */
bool opener_filter(int fd, char names[CONF_IFACES][CONF_IFACE_LEN],
		   const struct filter_flows *flows);

/**
 * struct opener_answer - what became of it
 * @error: 0 or an errno
 * @index: number of each interface, 0: there is none of this name, or it is "any"
 * @loopback: number of the loopback device, 0: there is none
 */
struct opener_answer {
	int32_t error;
	uint32_t index[CONF_IFACES];
	uint32_t loopback;
};

/**
 * opener_take() - take an answer
 * @fd: of struct opener
 * @wait: for it to come, for 10 s at most
 * @a: filled in
 *
 * Return: 0, EAGAIN if there is none yet, ETIMEDOUT if @wait was in vain, EPIPE if the
 * opener is gone.
 */
int opener_take(int fd, bool wait, struct opener_answer *a);

#endif /* PAQMD_OPENER_H */
