/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a receiver returns of the rates that travel with the media (docs/protocol.md,
 * section 4a), and what a sender makes of it. Bytes in, bytes out; the caller brings the
 * time, in nanoseconds of any monotonic clock; the sender one that goes on in a suspend, which
 * no advice outlives.
 */
#ifndef PAQM_RETURNS_H
#define PAQM_RETURNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/paqm_inband.h"

#define RETURNS_MAX 128 /* bytes of a compound packet; longer names are cut */

/* In which form beside APP: for senders that do not know that. */
enum returns_form { RETURNS_APP, RETURNS_TMMBR, RETURNS_REMB };

/**
 * struct returns - the receiving side
 * @have: @newest is valid
 * @newest: newest field seen
 * @said: rate that was returned last, bit/s, of whatever stream
 * @said_ns: and when
 * @again: what routers said in supplements before that is not to be returned again
 */
struct returns {
	bool have;
	struct paqm_return newest;
	uint64_t said;
	uint64_t said_ns;
	bool again;
};

/* The nonce of a probe; 0: it is none. Most datagrams are none, so a look at the first byte does.
 */
uint32_t returns_probe_nonce(const uint8_t *payload, size_t len);

/**
 * returns_see() - a datagram came
 * @r: state
 * @payload: UDP payload
 * @len: its length
 * @now_ns: time
 * @probe: set if it was a probe, which is not for the decoder
 *
 * Return: true if @r->newest is to be returned now: the rate has changed by more than 1 %
 * (20 ms apart at least), or 100 ms have passed.
 */
bool returns_see(struct returns *r, const uint8_t *payload, size_t len, uint64_t now_ns,
		 bool *probe);

/**
 * returns_compound() - RTCP compound packet: empty RR, SDES with CNAME, APP, and more by form
 * @p: room for RETURNS_MAX bytes
 * @r: what to return
 * @form: in which form beside APP
 * @cname: of the receiver
 * @ssrc: of the receiver
 * @media: SSRC of the sender, for TMMBR and REMB
 * @overhead: bytes of IP, UDP and RTP headers, for TMMBR
 *
 * Return: its length.
 */
size_t returns_compound(uint8_t *p, const struct paqm_return *r, enum returns_form form,
			const char *cname, uint32_t ssrc, uint32_t media, uint32_t overhead);

/* The APP packet alone, to be added to a compound packet; @p: room for RETURNS_MAX bytes. */
size_t returns_app(uint8_t *p, const struct paqm_return *r, uint32_t ssrc);

/**
 * struct returned - the sending side
 * @nonce: what our fields carry
 * @moved: the last probe before the path changed; 0: it did not
 * @have: something has been returned; @newest is valid
 * @newest: newest return
 * @until_ns: when it expires
 * @used: what is sent at now, bit/s; the caller's to set, as is
 * @rtt_us: the round trip; 0: not known
 * @rate: that is followed, bit/s
 * @taken_ns: when the newest return came
 * @cut_ns: when a grade of overload was answered last
 * @asked_ns: when routers last said something in a supplement; 0: never
 * @believed: returns believed
 * @refused: returns not believed: malformed, without our nonce, old
 * @untold: returns of fields that no router has touched
 */
struct returned {
	uint32_t nonce;
	uint32_t moved;
	bool have;
	struct paqm_return newest;
	uint64_t until_ns;
	uint64_t used, rtt_us;
	uint64_t rate, taken_ns, cut_ns, asked_ns;
	uint64_t believed, refused, untold;
};

/**
 * returned_take() - data of an APP packet with name PAQM and subtype 1 came
 *
 * A rate that a law searches for is followed gradually (core/paqm_follow.h), grades of load as VCP
 * has it (core/paqm_vcp.h), another rate at once.
 *
 * Return: the rate that it allows, bit/s; 0 if it is refused or no router has spoken.
 */
uint64_t returned_take(struct returned *s, const uint8_t *data, size_t len, uint64_t now_ns);

/* The path is another: what came back of the one before counts no more, nor do its probes up to
 * this one, whose returns are on their way.
 */
void returned_move(struct returned *s, uint32_t probe);

/* The rate that is in force now, 0 if none is. */
uint64_t returned_rate(const struct returned *s, uint64_t now_ns);

/* Does a router of the way go by what supplements say? If so, each field should have one. */
bool returned_asked(const struct returned *s, uint64_t now_ns);

#endif /* PAQM_RETURNS_H */
