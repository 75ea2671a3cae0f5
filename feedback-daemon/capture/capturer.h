/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The process that reads the captures. It has opened them (opener.c); from then on it can
 * read and hand on what it has read, and nothing else: it has no privilege, opens nothing,
 * may not send, and may write to one pipe only (sandbox.c). It does not look into packets, except
 * for batches of segmentation offload (batch.h), which it splits.
 *
 * Messages wake it at once. Dense media does not: it stays in the kernel's ring until a
 * message comes, which it is passed on ahead of, or for 10 ms.
 */
#ifndef PAQMD_CAPTURER_H
#define PAQMD_CAPTURER_H

#include <pcap/pcap.h>
#include <stddef.h>
#include <stdint.h>

#include "feedback-daemon/capture/filter.h"

/* The captures do not block and are of the link type DLT_LINUX_SLL2. */
struct capturer {
	pcap_t *media, *batches, *messages;
	int out;
};

enum captured { CAPTURED_MEDIA = 1, CAPTURED_MESSAGE, CAPTURED_COUNTS, CAPTURED_END };

/**
 * struct capturer_count - what the kernel counts of a capture
 * @received: packets that passed the filter
 * @dropped: of them, those that found the ring full
 */
struct capturer_count {
	uint64_t received, dropped;
};

/**
 * struct capturer_record - what comes out of the pipe, in the order in which it is to be judged
 * @t_ns: CLOCK_REALTIME
 * @index: the device
 * @len: bytes of what follows @what; the record takes capturer_size() of them
 * @what: enum captured
 * @ip: a packet from its IP header on
 * @count: with CAPTURED_COUNTS: of media, of messages
 * @why: with CAPTURED_END: what does not work
 */
struct capturer_record {
	uint64_t t_ns;
	uint32_t index;
	uint16_t len;
	uint16_t what;
	union {
		uint8_t ip[FILTER_SNAP];
		struct capturer_count count[2];
		char why[FILTER_SNAP];
	};
};

/* Bytes of a record with @len bytes behind its head. */
static inline size_t capturer_size(uint16_t len)
{
	return offsetof(struct capturer_record, ip) + ((len + 7U) & ~7U);
}

/* Read and pass on until the reader is gone. */
void capturer_run(const struct capturer *c);

#endif /* PAQMD_CAPTURER_H */
