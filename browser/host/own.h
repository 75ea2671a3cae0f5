/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What belongs to this host and to this user. A page may name any flow; only one that leaves a
 * socket of the browser's own user is registered, so that no page learns of, or keeps others from
 * following, what another user sends.
 */
#ifndef PAQM_NATIVE_OWN_H
#define PAQM_NATIVE_OWN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Return: whether an interface of this host has the address. */
bool own_address(const char *text);

/* Return: whether a UDP socket of that user may send from the address, "": any, and port. */
bool own_socket(const char *source, uint16_t port, uid_t uid);

/* One line of /proc/net/udp or udp6. Return: whether it is of such a socket. */
bool own_line(const char *line, const char *source, uint16_t port, uid_t uid);

#endif /* PAQM_NATIVE_OWN_H */
