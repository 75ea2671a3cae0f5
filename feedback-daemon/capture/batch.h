/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Batches of UDP segmentation offload (udp(7), UDP_SEGMENT). What leaves a host as one packet
 * of up to 64 kB is cut behind the place where captures look, and a router quotes any of the
 * segments. Captures do not show where it is cut; but RTP does: each segment begins with the
 * next sequence number of the same source.
 */
#ifndef PAQMD_BATCH_H
#define PAQMD_BATCH_H

#include <stdint.h>

#include "core/paqm_quote.h"

#define BATCH_LEAST 1600    /* IP packets that are not longer are taken for no batch */
#define BATCH_SNAP 65535    /* bytes that a batch may have */
#define BATCH_SEGMENTS 128  /* the kernel's limit (UDP_MAX_SEGMENTS) */
#define BATCH_HEAD (60 + 8) /* IPv4 with options, UDP */

/**
 * batch_segment() - how long are the segments of a batch?
 * @payload: of UDP, all of it
 * @len: its length
 *
 * Return: the length of all but the last one; @len if it is no batch.
 */
uint32_t batch_segment(const uint8_t *payload, uint32_t len);

/**
 * batch_split() - the packets that a batch becomes
 * @ip: it, from the IP header on
 * @len: bytes of it
 * @emit: is called for each, at most BATCH_SEGMENTS times: IP and UDP header with lengths that
 *        are right, and the payload
 * @data: for @emit
 *
 * What is not UDP, or cut, is passed on as it is, with an empty payload.
 */
void batch_split(const uint8_t *ip, uint32_t len,
		 void (*emit)(void *data, const uint8_t *head, uint32_t head_len,
			      const uint8_t *payload, uint32_t payload_len),
		 void *data);

/* The beginning of such a packet, as much as proves it. Return: its length. */
uint32_t batch_packet(uint8_t ip[PAQM_QUOTE_MAX], const uint8_t *head, uint32_t head_len,
		      const uint8_t *payload, uint32_t payload_len);

#endif /* PAQMD_BATCH_H */
