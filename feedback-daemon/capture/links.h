/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Notifications from the kernel about devices: which exist, and which are parts of others.
 * By rtnetlink, which needs no privilege.
 */
#ifndef PAQMD_LINKS_H
#define PAQMD_LINKS_H

#include "feedback-daemon/loop.h"

/**
 * struct link_news - a device is there, has changed, or has gone
 * @index: its number
 * @name: its name
 * @others: its other names, as the kernel lists them; NULL: it has none
 * @gone: it has gone
 */
struct link_news {
	unsigned int index;
	const char *name;
	const struct rtattr *others;
	bool gone;
};

/* Is this one of its names? */
bool link_is(const struct link_news *news, const char *name);

/**
 * struct links - what is known
 * @source: first: the loop knows us by it
 * @told: called with each notification, and with NULL when some were lost
 * @data: for @told
 * @foreign: what came by the socket and not from the kernel
 * @part: numbers of the devices that are parts of others, in their order
 */
struct links {
	struct source source;
	void (*told)(void *data, const struct link_news *news);
	void *data;
	uint64_t foreign;
	unsigned int *part;
	size_t parts, room;
};

/* List all devices, then follow changes. Return: 0, or -1 after having logged why not. */
int links_open(struct links *l, struct daemon *d,
	       void (*told)(void *data, const struct link_news *news), void *data);
void links_close(struct links *l);

/**
 * links_is_part() - is a device part of another: a port of a bridge or switch, one of a bond?
 * @l: what is known
 * @index: number of the device
 *
 * What goes through it goes through the other as well, if it is this host's, and through a
 * port there goes what others send. A device in a VRF is part of none: it has addresses.
 */
bool links_is_part(const struct links *l, unsigned int index);

#endif /* PAQMD_LINKS_H */
