/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What an H.264 access unit costs on the wire when rtph264pay (packetization
 * mode 1) cuts it into RTP packets over UDP and IPv4. The encoder plans in
 * these bytes, because an allowance counts them.
 */
#ifndef PAQM_WIRE_H
#define PAQM_WIRE_H

#include <stddef.h>

#define WIRE_IP_PACKET 1200 /* largest IP packet sent */
#define WIRE_EXTENSION 8    /* RTP header extension: transport-wide sequence number */
#define WIRE_HEADERS (20 + 8 + 12 + WIRE_EXTENSION) /* IPv4, UDP, RTP */
/* What rtph264pay calls mtu: it does not count the extension. */
#define WIRE_RTP_MTU (WIRE_IP_PACKET - 20 - 8 - WIRE_EXTENSION)
#define WIRE_NAL (WIRE_IP_PACKET - WIRE_HEADERS)
#define WIRE_FU (WIRE_NAL - 2) /* payload of a fragment: FU indicator, FU header */

/* Packets for one NAL unit of so many bytes, start code not counted. */
static inline unsigned int wire_packets(size_t nal)
{
	return nal <= WIRE_NAL ? 1 : (unsigned int)((nal - 1 + WIRE_FU - 1) / WIRE_FU);
}

static inline size_t wire_bytes(size_t nal)
{
	if (nal <= WIRE_NAL)
		return nal + WIRE_HEADERS;
	return nal - 1 + (size_t)wire_packets(nal) * (WIRE_HEADERS + 2);
}

/* Largest NAL unit that costs no more than so many wire bytes. */
static inline size_t wire_largest_nal(size_t wire)
{
	size_t full = WIRE_FU + WIRE_HEADERS + 2, rest;

	if (wire <= WIRE_HEADERS)
		return 0;
	if (wire <= WIRE_IP_PACKET)
		return wire - WIRE_HEADERS;
	rest = wire % full;
	rest = rest > WIRE_HEADERS + 2 ? rest - (WIRE_HEADERS + 2) : 0;
	return wire / full * WIRE_FU + rest + 1;
}

#endif /* PAQM_WIRE_H */
