/* SPDX-License-Identifier: GPL-2.0 */
/* The connections of a rendezvous: greeted, joined, copied, ended. One thread, one buffer for each.
 */
#ifndef PAQM_MEET_SERVE_H
#define PAQM_MEET_SERVE_H

#include <stdbool.h>

/**
 * serve_begin() - get ready; nothing is allocated later
 * @signals: a descriptor that is readable when it is time to end
 * @listening: sockets, @n of them
 *
 * Return: false with errno.
 */
bool serve_begin(int signals, const int *listening, int n, int most, int per_address);

/* Until it is time to end. Return: the exit status. */
int serve_run(void);

/* Prints what has been counted. */
void serve_counters(void);

#endif /* PAQM_MEET_SERVE_H */
