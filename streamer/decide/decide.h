/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The receiving side of controllers that decide, or measure, at the receiver. It sees every packet
 * and tells the sender in RTCP APP packets (RFC 3550 section 6.7); what they say is understood by
 * the same controller there (control.c: ctl_message()).
 *
 * One file with one struct dec_kind each, and a row in kinds.h. As controllers these read no clock
 * and do no I/O: times are arguments, in seconds of any monotonic clock.
 */
#ifndef PAQM_DECIDE_H
#define PAQM_DECIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "streamer/control/control.h"
#include "streamer/rtp/ccfb.h"

#define DEC_DATA 64 /* bytes of what is told, at the most; a multiple of four */
#define DEC_APP (12 + DEC_DATA)

/* An RTP packet of the stream, as it arrived. */
struct dec_packet {
	double at;    /* s */
	size_t bytes; /* with all headers, IP level */
	enum ecn ecn;
	uint32_t ts;
	uint16_t seq;
	bool marker;	    /* the last of its picture */
	const uint8_t *rtp; /* all of it, decrypted if @len is not 0 */
	size_t len;
	size_t readable; /* bytes of @rtp, though the payload may be encrypted */
};

struct dec_kind {
	const char *name; /* of the controller */
	size_t size;	  /* of the state, which begins zeroed */
	uint32_t app;	  /* name of its APP packets, four letters */
	unsigned int subtype;
	/* @option: as in ctl_params */
	void (*init)(void *state, const double *option, double now);
	void (*packet)(void *state, const struct dec_packet *p);
	/**
	 * Asked after each packet, and every DEC_TICK: is there anything to tell?
	 * @media: SSRC of the stream
	 * Return: bytes of @data, a multiple of four; 0: nothing
	 */
	size_t (*tell)(void *state, double now, uint32_t media, uint8_t data[DEC_DATA]);
	/* When tell() wants to be asked without a packet, which then is to be read at once, too;
	 * NULL: DEC_TICK will do.
	 */
	double (*next)(const void *state);
	void (*state)(const void *state, const char *name, ctl_log_fn log, void *data);
};

#define DEC_TICK 0.05 /* s */

#define DEC_KIND(name, file) extern const struct dec_kind dec_##name;
#include "streamer/decide/kinds.h"

/* Those of the table: NULL after the last. */
extern const struct dec_kind *const dec_kinds[];
/* The receiving side of a controller; NULL: it has none. */
const struct dec_kind *dec_find(const char *name);

struct dec;

/**
 * dec_new() - a receiving side at its start
 * @option: what users have set, as ctl_choose() gives it
 * Return: NULL when memory is short.
 */
struct dec *dec_new(const struct dec_kind *kind, const double option[CTL_OPTIONS], double now);
void dec_free(struct dec *d);
/* A packet has arrived. Another SSRC than before begins anew. */
void dec_see(struct dec *d, uint32_t media, const struct dec_packet *p);
/**
 * dec_tell() - what the sender is to be told now
 * @app: room for DEC_APP bytes
 * @ssrc: ours
 * Return: length of an RTCP APP packet; 0: nothing.
 */
size_t dec_tell(struct dec *d, double now, uint32_t ssrc, uint8_t app[DEC_APP]);
/* Does it, and are packets to be read at once? */
bool dec_prompt(const struct dec *d);
/* When dec_tell() wants to be asked at the latest; INFINITY: whenever packets are looked at. */
double dec_next(const struct dec *d);
/**
 * dec_read() - the other end: take such a packet apart
 * Return: false if it is no APP packet, or not in one piece.
 */
bool dec_read(const uint8_t *p, size_t len, struct ctl_message *m);
/* State as keys and values, for logs. */
void dec_state(const struct dec *d, ctl_log_fn log, void *data);

#endif /* PAQM_DECIDE_H */
