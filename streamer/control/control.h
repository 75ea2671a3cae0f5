/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Rate controllers of the sender behind one interface. A controller is one
 * file with one struct ctl_kind, and one row in the table of control.c.
 *
 * Nothing here reads a clock or does I/O: times are arguments, in seconds of
 * any monotonic clock, so tests are exact. Rates are bit/s at IP level.
 */
#ifndef PAQM_CONTROL_H
#define PAQM_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "streamer/control/feedback.h"

/* Share of the highest rate to begin with when nothing is known of the path. */
#define CTL_START_SHARE 0.25

/* How packets are sent, and hence how their marks are to be answered. */
enum ctl_ecn { CTL_ECN_NONE, CTL_ECN_CLASSIC, CTL_ECN_SCALABLE };

/* What users may set of a controller, as --controller NAME:OPTION=VALUE,... */
struct ctl_option {
	const char *name;
	const char *what;
	double least, most, initial;
};

#define CTL_OPTIONS 8 /* of one controller at the most */

struct ctl_params {
	double rate_min;
	double rate_max;
	double packet; /* bytes of a usual packet, headers included */
	double pause;  /* s, longest between two pictures, where that is known */
	enum ctl_ecn ecn;
	const double *option; /* in the order of ctl_kind.options; NULL: their initial values */
};

/* What paqmd hands over: the smallest rate of all routers, or that it is gone. */
struct ctl_advice {
	double rate;	 /* 0: no advice is in force any more */
	double value;	 /* relative value of the message: below 1 times, above 1 plus bit/s */
	uint64_t router; /* whose message it was */
	uint32_t seq;	 /* its sequence: one step per message */
	/* Of the worst link by its byte counters: bit/s, and the share that is used. */
	double capacity, load; /* capacity 0: no counters are told */
	uint32_t routers;      /* whose advice is in force; 0: unknown */
};

/* What the receiving side of a controller tells (decide/decide.h): an RTCP APP packet. */
struct ctl_message {
	uint32_t from; /* SSRC of who tells it */
	uint32_t name; /* four letters */
	unsigned int subtype;
	const uint8_t *data; /* behind the name */
	size_t len;
};

/* Pictures as a controller wants them; what is 0 stays as the source has it. */
struct ctl_format {
	int width, height; /* even */
	double fps;
};

/* What reports say of ECN on the path (RFC 6679 section 7.2). */
enum ctl_path {
	CTL_PATH_UNKNOWN,
	CTL_PATH_GOOD,
	CTL_PATH_BLEACHED, /* what was sent as ECN-capable does not arrive as such, or is not told
			    */
	CTL_PATH_STUCK,	   /* everything is marked, whatever is sent */
};

struct ctl_ecn_seen {
	enum ctl_path path; /* bleached and stuck are for good: marks count no more */
	uint64_t ect, ce;   /* packets reported so */
};

/* A train that is to be sent: packets of the stream in equal gaps, filled up where media is short.
 */
struct ctl_train {
	uint8_t id;
	uint8_t packets;
	bool start;  /* of the start phase */
	double rate; /* bit/s */
};

typedef void (*ctl_log_fn)(const char *controller, const char *key, double value, void *data);

struct ctl_kind {
	const char *name;
	const char *summary;
	bool marks;	     /* answers ECN marks */
	bool steps;	     /* goes by relative values, which only paqmd hears of */
	const char *element; /* GStreamer element that brings estimates; NULL: needs none */
	const struct ctl_option *options; /* the last has no name; NULL: there are none */
	bool bursts;	  /* pictures are sent at once: the receiver measures the path by them */
	size_t extension; /* bytes, if each packet carries an RTP header extension for its other
			     side */
	size_t size;	  /* of the state, which begins zeroed */
	void (*init)(void *state, const struct ctl_params *p, double now);
	/* All but init and rate may be NULL. */
	void (*report)(void *state, const struct ctl_params *p, const struct fb_report *r);
	void (*advice)(void *state, const struct ctl_params *p, double now,
		       const struct ctl_advice *a);
	void (*estimate)(void *state, const struct ctl_params *p, double now, double rate);
	/* What its receiving side tells; false: it is not understood, and changes nothing. */
	bool (*message)(void *state, const struct ctl_params *p, double now,
			const struct ctl_message *m);
	void (*format)(const void *state, struct ctl_format *f);
	/* Packets sent at the rate, out of a buffer: so many of them in it lower the allowance of
	 * pictures to 1/e (ra_feedback_buffered()); 0: pictures keep within the rate, as usual.
	 */
	double (*decay)(const struct ctl_params *p);
	void (*sent)(void *state, double now, size_t bytes);
	void (*moved)(void *state, double now); /* what is sent from now on goes another way */
	/* Probes with trains: which one is to be on its way now? False: none. */
	bool (*train)(const void *state, struct ctl_train *t);
	/* What a packet that leaves now carries: ctl_kind.extension bytes, if there are any. */
	void (*extend)(const void *state, double now, uint8_t *ext);
	/* When timeout() is due; INFINITY: not at all. It must move into the future. */
	double (*next)(const void *state);
	void (*timeout)(void *state, const struct ctl_params *p, double now);
	double (*rate)(const void *state, const struct ctl_params *p);
	/* Is the rate what routers advise? */
	bool (*follows)(const void *state);
	void (*state)(const void *state, const char *name, ctl_log_fn log, void *data);
};

#define CTL_KIND(name, file) extern const struct ctl_kind ctl_##name;
#include "streamer/control/kinds.h"

/* The table: NULL after the last. The first is the default. */
extern const struct ctl_kind *const ctl_kinds[];
const struct ctl_kind *ctl_find(const char *name);

/**
 * ctl_choose() - a controller by NAME or NAME:OPTION=VALUE,...
 * @option: its options
 * @why: what was wrong, a sentence without its end
 * Return: NULL if there is none of that name, or an option is refused.
 */
const struct ctl_kind *ctl_choose(const char *text, double option[CTL_OPTIONS], char *why,
				  size_t size);

struct ctl;

/**
 * ctl_new() - a controller at its start
 * Return: NULL when memory is short.
 */
struct ctl *ctl_new(const struct ctl_kind *kind, const struct ctl_params *p, double now);
/* It begins anew, as a new one does; what it remembered of packets is not written over. */
void ctl_again(struct ctl *c, const struct ctl_params *p, double now);
void ctl_free(struct ctl *c);

/* Transport-wide sequence number of 16 bits to one that does not wrap. */
uint64_t ctl_unwrap(const struct ctl *c, uint16_t seq);

/**
 * ctl_feedback() - one report of the peer with the fate of each packet
 * @pkts: in any order; packets that were reported before change nothing
 */
void ctl_feedback(struct ctl *c, double now, const struct fb_packet *pkts, size_t n);
/**
 * ctl_receiver_report() - an RTCP receiver report (RFC 3550 section 6.4)
 * @lost: share of packets lost since the report before
 * @rtt: seconds; NAN if unknown
 * Not looked at while the peer tells the fate of each packet.
 */
void ctl_receiver_report(struct ctl *c, double now, double lost, double rtt);
void ctl_advise(struct ctl *c, double now, const struct ctl_advice *a);
/* An estimate by the controller's element. */
void ctl_estimate(struct ctl *c, double now, double rate);
/* An APP packet of the peer; also one that nobody understands. */
void ctl_message(struct ctl *c, double now, const struct ctl_message *m);
/* The pictures that are wanted now. */
void ctl_format(const struct ctl *c, struct ctl_format *f);
/* See ctl_kind.decay. @option: of the controller */
double ctl_decay(const struct ctl_kind *kind, const double option[CTL_OPTIONS]);
/* So many bytes have gone out since the last call. */
void ctl_sent(struct ctl *c, double now, size_t bytes);
/* What is sent from now on goes another way, which may be longer. */
void ctl_moved(struct ctl *c, double now);
/* The train that is to be on its way: one with another id is to begin. False: none, stop it. */
bool ctl_train(struct ctl *c, double now, struct ctl_train *t);
/* See ctl_kind.extend: the header extension of a packet. */
void ctl_extend(const struct ctl *c, double now, uint8_t *ext);
/* What was seen of ECN, if packets are sent as ECN-capable. */
const struct ctl_ecn_seen *ctl_ecn_seen(const struct ctl *c);
/* The rate to use now, within the limits; lets time act on the controller. */
double ctl_rate(struct ctl *c, double now);
/* Do routers set the rate, with nothing that contradicts them? */
bool ctl_follows(const struct ctl *c);
/* When ctl_rate() should be asked at the latest; INFINITY: whenever. */
double ctl_next(const struct ctl *c);
/* State as keys and values, of the controller and of those inside it. */
void ctl_state(const struct ctl *c, ctl_log_fn log, void *data);

/* Share of a link with @capacity that was sent between two readings of its byte counter. */
static inline double ctl_load(double bytes, double seconds, double capacity)
{
	return 8 * bytes / (seconds * capacity);
}

static inline double ctl_clamp(double v, double lo, double hi)
{
	return v < lo ? lo : v > hi ? hi : v;
}

#endif /* PAQM_CONTROL_H */
