/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What feedback says, worked out once for all controllers: which packets are
 * new, which are lost, what arrived in the last seconds.
 *
 * A packet is lost when three later ones have arrived (RFC 5348 section 5.1);
 * if it arrives before that, it never was missing. On a path that has been seen
 * to reorder, the last of these has to be later than the first by as much as it
 * does (RFC 8985 section 6.2). A packet that no report mentions, because the
 * report was lost, is neither received nor lost.
 */
#ifndef PAQM_FEEDBACK_H
#define PAQM_FEEDBACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FB_LATER 3	     /* packets after which a missing one is lost */
#define FB_PENDING 256	     /* missing packets that are not yet given up */
#define FB_HISTORY 4096	     /* arrivals remembered for rates */
#define FB_REPORT 2048	     /* packets of one report; what exceeds it is not looked at */
#define FB_INTERVAL 5.0	     /* s between receiver reports, usually (RFC 3550 section 6.2) */
#define FB_REORDER_MAX 0.1   /* s: what comes so much later has no use for a picture either */
#define FB_REORDER_KEPT 30.0 /* s for which a path that has reordered may do so again */
#define FB_GONE 64	     /* lost packets by which it is seen that they were only late */
#define FB_RTT_MAX 60.0 /* s: no path has more; who says so is broken, hostile, or set a clock */

struct fb_packet {
	uint64_t seq; /* without wrap: fb_unwrap() */
	double sent;  /* our clock */
	double recv;  /* the peer's clock; only differences mean anything */
	uint32_t size;
	bool received;
	/* as it arrived, where the peer tells: ECN-capable, or marked on the way */
	bool ect, ce;
};

struct fb_missing {
	struct fb_packet pkt;
	int later;
	double overtaken; /* when the first later one arrived, peer's clock; NAN: none in it */
};

struct fb {
	uint64_t highest; /* newest sequence number reported */
	bool any;
	size_t n_missing;
	uint64_t n_arrived, n_gone;
	double first_recv, last_recv; /* peer's clock */
	double last_sent;	      /* of what was reported */
	double last_report;
	double rtt;	  /* smoothed (RFC 6298), s; NAN: none yet */
	double spacing;	  /* usual time between reports, s; 0: none yet */
	double reorder;	  /* s by which packets come after later ones; 0: none has lately */
	double reordered; /* when one last came so late, our clock */
	/* From here on only what the counts say has been written: 190 kB that a controller does not
	 * touch before there are packets.
	 */
	struct fb_missing missing[FB_PENDING];
	struct {
		uint64_t seq;
		double overtaken;
	} gone[FB_GONE];
	struct {
		double recv;
		uint32_t size;
	} arrived[FB_HISTORY];
	/* of the present report */
	struct fb_packet fresh[FB_REPORT], lost[FB_PENDING];
};

/* One report, as controllers see it. */
struct fb_report {
	double now;
	double rtt;	 /* sample, hold time of the receiver included; NAN if none */
	double interval; /* since the report before, s */
	/* New packets that arrived, in order of sequence; none in a receiver report. */
	const struct fb_packet *pkts;
	size_t n;
	const struct fb_packet *losses; /* found lost now, in order of sequence */
	size_t lost;
	size_t ect, ce;	 /* of pkts */
	size_t expected; /* of which new ones arrived or were lost */
	double fraction; /* lost/expected; of a receiver report: what it says */
	double x_recv;	 /* delivered in the interval or, if longer, the last round trip */
	double x_sent;	 /* offered in the interval; NAN in a receiver report */
	const struct fb *fb;
};

/* Sequence number of 16 bits to one that does not wrap. */
uint64_t fb_unwrap(const struct fb *fb, uint16_t seq);
void fb_init(struct fb *fb);
/* The peer's clock is another one from now on: what it has shown says nothing any more. */
void fb_new_clock(struct fb *fb);
/* A report of either kind came, so long after the one before; 0: it is the first. */
void fb_space(struct fb *fb, double interval);
/**
 * fb_packets() - take a report in
 * Return: false if it says nothing new; then *r is not written.
 */
bool fb_packets(struct fb *fb, double now, const struct fb_packet *pkts, size_t n,
		struct fb_report *r);
/**
 * fb_next_sign() - the next packet that was lost or marked, in order of sequence
 * @marks: marks count
 * @lost, @came: places in @r, 0 before the first call
 * Return: NULL when there are no more.
 */
const struct fb_packet *fb_next_sign(const struct fb_report *r, bool marks, size_t *lost,
				     size_t *came);
/**
 * fb_congested() - does a report tell of a loss or mark of what was sent after @since?
 * @since: when the last answer was given: what was sent before says nothing new (one answer to
 *	all losses of a round trip)
 * @rtt: s; receiver reports do not say when the lost packet was sent, so one within a round trip
 *	of @since counts as known
 */
bool fb_congested(const struct fb_report *r, bool marks, double since, double rtt);
/* Bit/s that arrived during the last @window seconds of the peer's clock. */
double fb_recv_rate(const struct fb *fb, double window);
/**
 * fb_arrived() - how many packets a report says have arrived
 * @rate: that was sent at, bit/s
 * @packet: bytes of each
 * A receiver report without loss means all of the time since the one before, FB_INTERVAL at most.
 */
static inline double fb_arrived(const struct fb_report *r, double rate, double packet)
{
	if (r->expected)
		return (double)r->n;
	if (r->fraction > 0)
		return 0;
	return rate * (r->interval < FB_INTERVAL ? r->interval : FB_INTERVAL) / (8 * packet);
}

/* Smoothed round trip and its variation, s (RFC 6298 section 2). */
struct fb_rtt {
	double mean, var;
	bool any;
};

/**
 * fb_rtt_sample() - take a sample in
 * @gain: of the mean, 1/8 in RFC 6298
 * @gain_var: of the variation, 1/4
 * The variation begins at 0, since what reports tell has no delayed acknowledgement in it.
 */
static inline void fb_rtt_sample(struct fb_rtt *r, double sample, double gain, double gain_var)
{
	double off = sample > r->mean ? sample - r->mean : r->mean - sample;

	if (!r->any) {
		*r = (struct fb_rtt){.mean = sample, .any = true};
		return;
	}
	r->var += gain_var * (off - r->var);
	r->mean += gain * (sample - r->mean);
}

#endif /* PAQM_FEEDBACK_H */
