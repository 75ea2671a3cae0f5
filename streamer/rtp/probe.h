/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Trains of packets that measure a path: what each of their packets carries, what a receiver
 * computes and reports, what a sender reads. S.-S. Wang and H.-F. Hsiao, "TCP-friendly congestion
 * control for the fair streaming of scalable video", Computer Communications 2010, called the
 * paper here. Bytes in, bytes out; the caller brings the time, ns of any monotonic clock.
 *
 * From the paper: an RTP header extension with the sender's clock, an RTCP APP packet with the rate
 * that was received, the full-search statistic. Its text was at hand only as excerpts, so the
 * layouts are a reconstruction: the index, the rate and all of the report behind its first word.
 * Its marker bit, which video uses for the end of a picture, is left alone.
 */
#ifndef PAQM_PROBE_H
#define PAQM_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROBE_DATA 16	       /* bytes that a packet of a train carries */
#define PROBE_ROOM 20	       /* by which that makes it longer */
#define PROBE_ID 3	       /* RFC 8285 element, behind TWCC_ID and that of carriers */
#define PROBE_TRAIN 64	       /* packets of a train at the most */
#define PROBE_PROFILE 0x5748   /* the extension where it is the only one */
#define PROBE_REPORT 16	       /* bytes of what is reported: an APP packet of 28 */
#define PROBE_NAME 0x50524F42U /* "PROB" */
#define PROBE_SUBTYPE 0
#define PROBE_START 1	/* flag: of the start phase */
#define PROBE_PADDING 2 /* flag: the packet has no media */

/**
 * struct probe - what a packet of a train carries
 * @clock_us: the sender's, when it was sent
 * @train: which one
 * @index: its place, from 0
 * @packets: of the train
 * @flags: PROBE_START, PROBE_PADDING
 * @rate: at which the train is sent, bit/s
 */
struct probe {
	uint64_t clock_us;
	uint8_t train, index, packets, flags;
	uint32_t rate;
};

void probe_write(uint8_t data[PROBE_DATA], const struct probe *p);
void probe_read(const uint8_t data[PROBE_DATA], struct probe *p);

/**
 * probe_find() - the 16 bytes in an RTP packet
 * @head: length of the RTP header and its extension; set for any packet of RTP
 *
 * Return: NULL if it has none, is not RTP or not in one piece.
 */
const uint8_t *probe_find(const uint8_t *packet, size_t len, size_t *head);

/**
 * probe_extension() - a header extension that holds nothing else, zeroes behind it
 * @p: room for @len bytes
 * @len: a multiple of 4, at least 4 + PROBE_DATA; if it is more, the form is that of RFC 8285
 *
 * What fills a packet up stands here: RTP's own padding ends at 255 bytes.
 */
void probe_extension(uint8_t *p, size_t len, const struct probe *probe);

enum probe_verdict {
	PROBE_WHOLE,   /* its last packet has come */
	PROBE_LATE,    /* it has not */
	PROBE_INVALID, /* the sender did not keep its rate */
};

/**
 * struct probe_result - what a train was like
 * @rate: at which it arrived, bit/s
 * @fs: share of pairs in which the later packet was under way for longer, 0 to 1
 * @rtt: s; NAN if the report shows none
 */
struct probe_result {
	enum probe_verdict verdict;
	uint8_t train;
	unsigned int came, of;
	double rate, fs;
	bool trend;
	double rtt;
};

/**
 * probe_fs() - full-search statistic, equation (11) of the paper
 * @delay: of each packet in order of sending, in any unit and from any zero
 * @band: by how much more counts as more
 *
 * Return: 1 strictly rising, 0 constant or falling, about 0.5 noise; 0 for less than two.
 */
double probe_fs(const int64_t *delay, unsigned int n, int64_t band);

/* Above it delay rises: 0.7, up to 2 Mbit/s 0.63 (of the paper's simulations). */
double probe_threshold(double rate);

/**
 * struct probes - a receiver's train under way
 * @bytes, @first_bytes: on the wire, of all that have come and of the first
 */
struct probes {
	bool open, any;
	uint8_t done; /* the last that was reported, if any */
	uint8_t train, packets;
	uint32_t rate;
	uint64_t first_ns, last_ns; /* of arrival */
	uint64_t bytes, first_bytes;
	unsigned int came;
	uint32_t clock_us;
	struct {
		bool here;
		uint64_t clock_us, at_ns;
	} p[PROBE_TRAIN];
};

/**
 * probes_see() - a packet of the stream has come
 * @wire: its bytes with all headers
 *
 * Return: true if a train has ended: probes_report() is due.
 */
bool probes_see(struct probes *r, const uint8_t *packet, size_t len, size_t wire, uint64_t now_ns);

/* Has the train's end been waited for in vain? probes_report() is due, then. */
bool probes_late(const struct probes *r, uint64_t now_ns);

/**
 * probes_report() - end the train and write what its sender is told: the data of an APP packet
 *
 * Return: its length; 0: no train is under way.
 */
size_t probes_report(struct probes *r, uint8_t data[PROBE_REPORT], uint64_t now_ns);

/**
 * probe_heard() - the sender's side: data of an APP packet named PROB
 * @now_us: the clock that struct probe has
 *
 * Return: false if it is none of these reports.
 */
bool probe_heard(const uint8_t *data, size_t len, uint64_t now_us, struct probe_result *r);

#endif /* PAQM_PROBE_H */
