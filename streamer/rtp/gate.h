/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Who and what reaches rtpbin. It keeps state for each source identifier (SSRC) that it hears of,
 * with a thread for each that sends media, srtpdec a key, and both before anything is proven: a
 * stranger who can reach the port makes them out of small datagrams. So an SSRC has to get in here
 * first: one that was agreed on or, where nobody has agreed on anything, one of a few. And RTCP is
 * looked through, for what rtpsession cannot bear.
 *
 * Bytes in, a verdict out; the caller brings the time, in nanoseconds of any monotonic clock, and
 * the lock.
 */
#ifndef PAQM_STREAMER_GATE_H
#define PAQM_STREAMER_GATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GATE_STREAMS 16 /* at a time */
#define GATE_FREE 4	/* of them get in with their first packet */
#define GATE_ROW 3	/* packets in sequence that others show before (RFC 3550 section A.1) */
#define GATE_WAITING 64 /* that are remembered meanwhile; power of two */
#define GATE_SILENT_NS 5000000000ULL /* then another may have the place */

/* The circuit breaker of RFC 8083: without reports on a stream for three of their longest intervals
 * it is not sent.
 */
#define BREAKER_S 15

enum gate_why {
	GATE_IN,
	GATE_BROKEN,   /* neither RTP nor RTCP, or not in one piece */
	GATE_STRANGER, /* nobody has agreed on that SSRC, or it has not shown enough packets */
	GATE_FULL,     /* as many streams as there may be */
	GATE_SELF,     /* our own SSRC: rtpsession would give it up for another */
	GATE_OTHERS,   /* speaks for others: sources that contribute, RTCP of several */
	GATE_HANGS,    /* asks for a sender report (RFC 6051): rtpsession 1.22 waits for itself */
	GATE_WHYS
};

struct gate_stream {
	uint32_t ssrc;
	bool used, proven;
	uint64_t heard_ns;
};

/**
 * struct gate
 * @agreed: only what gate_agree() has named gets in, and never has to leave
 * @proof: what is let in proves its key later, see gate_prove(); it can be evicted until then
 * @own: our SSRCs
 * @keep: never evicted: it is being played
 * @refused: datagrams, and packets within one of RTCP, by reason
 */
struct gate {
	bool agreed, proof;
	uint32_t own[2];
	unsigned int n_own;
	uint32_t keep;
	struct gate_stream streams[GATE_STREAMS];
	struct {
		uint32_t ssrc;
		uint16_t seq;
		uint8_t row;
	} waiting[GATE_WAITING];
	uint64_t refused[GATE_WHYS];
};

/* A stream has had to leave for another. */
struct gate_gone {
	bool any;
	uint32_t ssrc;
};

extern const char *const gate_whys[GATE_WHYS];

/* @ssrc: 0: the peer has named none, and nobody gets in. */
void gate_agree(struct gate *g, uint32_t ssrc);
void gate_own(struct gate *g, uint32_t ssrc);

/**
 * gate_rtp() - a datagram on the port of RTP, encrypted or not
 * @gone: whose place it has taken
 */
enum gate_why gate_rtp(struct gate *g, const uint8_t *p, size_t len, uint64_t now_ns,
		       struct gate_gone *gone);

/* The same on the port of RTCP: only the head is looked at, which is never encrypted. */
enum gate_why gate_rtcp(struct gate *g, const uint8_t *p, size_t len, uint64_t now_ns,
			struct gate_gone *gone);

/* A packet of that stream was authentic. */
void gate_prove(struct gate *g, uint32_t ssrc);

/**
 * gate_clean() - what is in a datagram of RTCP, decrypted
 * @p: packets that must not go on are taken out
 * @about_us: set if something is left that reports about a stream of ours
 *
 * Return: its length from now on; 0: nothing is left.
 */
size_t gate_clean(struct gate *g, uint8_t *p, size_t len, bool *about_us);

/* Of all reasons. */
uint64_t gate_refused(const struct gate *g);

#endif /* PAQM_STREAMER_GATE_H */
