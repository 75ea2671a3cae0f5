/* SPDX-License-Identifier: GPL-2.0 */
/* paqmctl host-key: the line of a host's keys file out of a router's. */
#ifndef PAQMCTL_HOST_KEY_H
#define PAQMCTL_HOST_KEY_H

/* Derive the keys on standard input for the host at address @text. Return: exit status. */
int host_key(const char *text);

#endif /* PAQMCTL_HOST_KEY_H */
