/* SPDX-License-Identifier: GPL-2.0 */
/*
 * RTCP congestion control feedback (RFC 8888): which packets have come, when, and with which
 * ECN field. Bytes in, bytes out; the caller brings the time, in nanoseconds of any monotonic
 * clock.
 */
#ifndef PAQM_CCFB_H
#define PAQM_CCFB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The ECN field of an IP header (RFC 3168). */
enum ecn { ECN_NOT_ECT, ECN_ECT1, ECN_ECT0, ECN_CE };

#define CCFB_FMT 11
#define CCFB_MAX 1136  /* bytes of a packet that is made here */
#define CCFB_KEPT 512  /* newest packets of a stream that are remembered; power of two */
#define CCFB_STREAMS 2 /* the pictures, and what is sent again */
#define CCFB_MS 50     /* longest time between the arrival of a packet and its report */

/**
 * struct ccfb_stream - packets of one SSRC
 * @from: first number of the next report: those of the last report are told again, in case
 *	it was lost, and what has come after all
 * @next: first number that no report has told
 * @highest: newest number
 */
struct ccfb_stream {
	bool any;
	uint32_t ssrc;
	uint16_t from, next, highest;
	struct {
		uint64_t at_ns; /* 0: has not come */
		uint8_t ecn;
	} p[CCFB_KEPT];
};

/* The receiving side. */
struct ccfb {
	struct ccfb_stream streams[CCFB_STREAMS];
	uint64_t waiting_ns; /* arrival of the oldest packet that no report has told; 0: none */
	uint64_t ce, ect;    /* packets so far */
	uint64_t overtaken;  /* the same: that came after a later one */
};

/**
 * ccfb_see() - a packet has come
 * @k: which stream, below CCFB_STREAMS; another SSRC than before begins it anew
 * @at_ns: when, not 0
 */
void ccfb_see(struct ccfb *c, unsigned int k, uint32_t ssrc, uint16_t seq, enum ecn ecn,
	      uint64_t at_ns);

/* Is it time for a report? @last: the newest packet ends a picture. */
bool ccfb_due(const struct ccfb *c, bool last, uint64_t now_ns);

/**
 * ccfb_write() - an RTCP packet of what is to be told
 * @p: room for CCFB_MAX bytes
 * @ssrc: of the receiver
 * @ntp: middle 32 bits of the NTP time that now is
 *
 * Return: its length; 0: there is nothing to tell.
 */
size_t ccfb_write(struct ccfb *c, uint8_t *p, uint32_t ssrc, uint32_t ntp, uint64_t now_ns);

/**
 * struct ccfb_entry - what a report says of one packet
 * @known: its time of arrival is told
 * @before: how long before the report it arrived, s; if known
 */
struct ccfb_entry {
	uint32_t ssrc;
	uint16_t seq;
	bool received, known;
	enum ecn ecn;
	double before;
};

typedef void (*ccfb_fn)(const struct ccfb_entry *e, void *data);

/**
 * ccfb_read() - take a report apart
 * @p: all after the SSRC of its sender; its length is @len
 * @ntp: when the report was made
 * @fn: told of each packet, if the whole report is well formed
 *
 * Return: false if it is not.
 */
bool ccfb_read(const uint8_t *p, size_t len, uint32_t *ntp, ccfb_fn fn, void *data);

/* The time of reports, of 32 bits, as one that does not wrap. */
struct ccfb_clock {
	bool any;
	uint32_t ntp;
	double at; /* s */
};

/* Return: when the report was made, s of the peer's clock. */
static inline double ccfb_time(struct ccfb_clock *c, uint32_t ntp)
{
	c->at = c->any ? c->at + (int32_t)(ntp - c->ntp) / 65536.0 : ntp / 65536.0;
	c->ntp = ntp;
	c->any = true;
	return c->at;
}

#endif /* PAQM_CCFB_H */
