/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The kernel filters of the captures: what of the host's traffic paqmd may see at
 * all. Feedback messages that come in or go to guests, and UDP that goes out: nothing of it, that
 * of a few flows, or all. libpcap compiles what is said of IP packets; ahead of that stand a few
 * instructions about device, direction and VLAN, which its language does not have for captures of
 * the kind "Linux cooked". The program is for sockets of the type SOCK_DGRAM, whose packets begin
 * with the IP header on every kind of link.
 */
#ifndef PAQMD_FILTER_H
#define PAQMD_FILTER_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/paqm_msg.h"

/* Bytes of a packet that are handed up: the longest message (an IPv6 header, a
 * quote with options and the object) is shorter; what a digest needs of media.
 */
#define FILTER_SNAP 384
#define FILTER_MEDIA_SNAP PAQM_QUOTE_MAX

/* Beyond this many flows all outgoing UDP passes and the flow table alone
 * decides: a long filter costs more than it saves.
 */
#define FILTER_FLOWS 48
#define FILTER_DEVICES 8
#define FILTER_INSNS (64 + FILTER_FLOWS * 8)

/* What tells the packets of a flow, roughly: the flow table is exact. */
struct filter_flow {
	uint32_t addr;	 /* last four bytes of the destination, host order */
	uint32_t ports;	 /* source << 16 | destination */
	uint8_t version; /* of IP: 4 or 6 */
};

/* @n may be more than FILTER_FLOWS; then @flow is not looked at. */
struct filter_flows {
	uint32_t n;
	struct filter_flow flow[FILTER_FLOWS];
};

/**
 * struct filter_devices - where packets may come by
 * @all: on every device: a packet in a VLAN then comes by twice, and passes only on the
 *       VLAN's own device
 * @n: how many devices there are in @index, unless @all
 * @index: numbers of devices; those of 0 are left out
 * @loopback: what comes in there this host has sent, and libpcap shows it only then; messages
 *            of its own queues come there, wherever these are
 */
struct filter_devices {
	bool all;
	uint32_t n;
	uint32_t index[FILTER_DEVICES];
	uint32_t loopback;
};

/*
 * filter_messages() - the filter of messages that come in, or go out: a queue of this host tells
 *	a guest that it routes for (a container), and no device of ours brings that in
 * filter_media() - that of the media of these flows which goes out
 * @devices: where
 * @batches: packets that may be batches (batch.h), else those that are none
 * @prog: room for FILTER_INSNS instructions
 *
 * Return: the number of instructions; 0: libpcap failed, for want of memory.
 */
unsigned short filter_messages(const struct filter_devices *devices, struct sock_filter *prog);
unsigned short filter_media(const struct filter_devices *devices, const struct filter_flows *flows,
			    bool batches, struct sock_filter *prog);

#endif /* PAQMD_FILTER_H */
