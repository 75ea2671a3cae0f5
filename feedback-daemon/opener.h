/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The privileged part of paqmd: a process of its own that opens capture sockets
 * and hands them over. It takes three requests of fixed size: open slot N on the
 * interface NAME, close slot N, let the packets of these flows through. Which packets
 * a socket can show at all is decided here (filter.h), whatever the rest of the
 * daemon may ask.
 */
#ifndef PAQMD_OPENER_H
#define PAQMD_OPENER_H

#include <stdint.h>

#include "conf.h"
#include "filter.h"
#include "sandbox.h"

/* The ring of a capture socket: slots of OPENER_FRAME bytes, each with the
 * header of TPACKET_V2 and the first bytes of a packet. 20 ms of 200,000
 * packets a second fit.
 */
#define OPENER_FRAME 512U
#define OPENER_FRAMES 4096U
#define OPENER_RING (OPENER_FRAME * OPENER_FRAMES)

/**
 * opener_start() - begin the process; before anything else is opened
 * @user: who it becomes; it keeps CAP_NET_RAW
 * @sandbox: restrict its system calls
 *
 * It ends when the descriptor is closed. Return: the descriptor by which it is
 * asked, or -1 after having logged why not.
 */
int opener_start(const struct sandbox_user *user, bool sandbox);

/*
 * Requests. Each has one answer, and the next one is made when that has been taken.
 * Return: false if the opener is gone.
 */

/**
 * opener_open() - open a capture socket
 * @fd: of opener_start()
 * @slot: below CONF_IFACES; the opener's half of what was there is closed
 * @name: an interface, or "any"
 * @flows: which flows to let through
 */
bool opener_open(int fd, unsigned int slot, const char *name, const struct filter_flows *flows);

/* Close the opener's half of a slot: the capture ends when we close ours, too. */
bool opener_close(int fd, unsigned int slot);

/* Other flows, for all open sockets. */
bool opener_filter(int fd, const struct filter_flows *flows);

/**
 * struct opener_answer - what became of a request
 * @error: 0 or an errno: ENODEV without such an interface, EPERM without CAP_NET_RAW
 * @sock: the capture socket, else -1
 * @index: number of its interface, 0 for "any"
 */
struct opener_answer {
	int error;
	int sock;
	unsigned int index;
};

/**
 * opener_take() - take an answer
 * @fd: of opener_start()
 * @wait: for it to come, for 10 s at most
 * @a: filled in
 *
 * Return: 0, EAGAIN if there is none yet, ETIMEDOUT if @wait was in vain, EPIPE if the
 * opener is gone.
 */
int opener_take(int fd, bool wait, struct opener_answer *a);

#endif /* PAQMD_OPENER_H */
