/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The kernel filter of a capture socket: what of the host's traffic paqmd may
 * see at all. Feedback messages that come in, and UDP that goes out: nothing of
 * it, that of a few flows, or all. It is for sockets of the type SOCK_DGRAM,
 * whose packets begin with the IP header on every kind of link.
 */
#ifndef PAQMD_FILTER_H
#define PAQMD_FILTER_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stdint.h>

/* Bytes of a packet that are handed up: the longest message (an IPv6 header, a
 * quote with options and the object) is shorter, and so is what a digest needs.
 */
#define FILTER_SNAP 256

/* Beyond this many flows all outgoing UDP passes and the flow table alone
 * decides: a long filter costs more than it saves.
 */
#define FILTER_FLOWS 48
#define FILTER_INSNS (72 + FILTER_FLOWS * 5)

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
 * filter_build() - make the program
 * @flows: the flows whose packets pass
 * @all: the socket hears all interfaces: a packet in a VLAN then comes by
 *       twice, and passes only on the VLAN's own interface
 * @prog: room for it
 *
 * Return: its length.
 */
unsigned short filter_build(const struct filter_flows *flows, bool all,
			    struct sock_filter prog[FILTER_INSNS]);

#endif /* PAQMD_FILTER_H */
