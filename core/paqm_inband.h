/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * A rate that travels with the media: carrier `in-band` (docs/protocol.md, section 4a).
 *
 * The sender writes a field of 15 bytes, each router on the way lowers the rate in it,
 * the receiver returns what arrives. The field is the data of an RFC 8285 header
 * extension element of RTP or, for SRTP, which authenticates its header, the body of a
 * probe datagram beside the media:
 *
 *   0-3	magic "PAQ1": no router knows what identifier an element was given
 *   4-7	rate, binary32, bit/s on the IP layer; at first the largest there is
 *   8-9	router that lowered it last: low 16 bits of its id; 0: none
 *   10		period of that router in 20 ms, rounded up
 *   11-14	nonce of the sender, left alone; proves that who returns the rate saw it
 *
 * Probe: byte 0x0F (RFC 7983 and RFC 9443 give it to nobody: it is dropped), field,
 * 32 bit sequence number. Laws that search for a rate want to know more of a sender, and say
 * more; the supplement, as many bytes, is another element beside the field, or behind the probe:
 *
 *   0-3	magic "PAQ2"
 *   4-5	round trip of the sender, 100 us; 0: not known
 *   6-9	rate that it could use, binary32, bit/s on the IP layer
 *   10-13	rate that it uses now, likewise
 *   14		what routers say: enum paqm_said
 *
 * Who does not know it finds the field as ever. All in network byte order. Nothing here reads or
 * writes outside of the bytes given.
 */
#ifndef PAQM_INBAND_H
#define PAQM_INBAND_H

#include "paqm_bytes.h"

#define PAQM_FIELD_LEN 15
#define PAQM_FIELD_MAGIC 0x50415131U /* "PAQ1" */
#define PAQM_FIELD_RATE 4
#define PAQM_FIELD_ROUTER 8
#define PAQM_FIELD_PERIOD 10
#define PAQM_FIELD_NONCE 11
#define PAQM_FIELD_PERIOD_MS 20
#define PAQM_FIELD_WINDOW 192	    /* the field ends within this many bytes of UDP payload */
#define PAQM_MORE_MAGIC 0x50415132U /* "PAQ2" */
#define PAQM_MORE_RTT 4
#define PAQM_MORE_RTT_US 100
#define PAQM_MORE_DEMAND 6
#define PAQM_MORE_USED 10
#define PAQM_MORE_SAID 14
#define PAQM_PROBE_FIRST 0x0F
#define PAQM_PROBE_LEN (1 + PAQM_FIELD_LEN + 4)

/**
 * struct paqm_field - the field
 * @rate: binary32, bit/s on the IP layer
 * @nonce: of the sender
 * @router: low bits of the id of the router that lowered it last, 0: none
 * @period: of that router, units of PAQM_FIELD_PERIOD_MS
 */
struct paqm_field {
	paqm_u32 rate;
	paqm_u32 nonce;
	paqm_u16 router;
	paqm_u8 period;
};

/**
 * enum paqm_said - what routers say in a supplement
 * @PAQM_SAID_GRADE: the highest load of the way, enum paqm_vcp_load; 0: no router gives grades
 * @PAQM_SAID_CONGESTED: the link of one is nearly full
 * @PAQM_SAID_SEARCHES: the law of one searches for its rate: follow it gradually
 * @PAQM_SAID_ALL: all that has a meaning; the rest is 0 and left alone
 */
enum paqm_said {
	PAQM_SAID_GRADE = 3,
	PAQM_SAID_CONGESTED = 4,
	PAQM_SAID_SEARCHES = 8,
	PAQM_SAID_ALL = 15,
};

/**
 * struct paqm_more - the supplement
 * @demand: binary32, bit/s: what the sender could use
 * @used: binary32, bit/s: what it uses
 * @rtt: its round trip, units of PAQM_MORE_RTT_US; 0: not known
 * @said: enum paqm_said
 */
struct paqm_more {
	paqm_u32 demand;
	paqm_u32 used;
	paqm_u16 rtt;
	paqm_u8 said;
};

/* Write the 15 bytes of a supplement. */
static inline void paqm_more_encode(paqm_u8 *p, const struct paqm_more *m)
{
	paqm_put32(p, PAQM_MORE_MAGIC);
	paqm_put16(p + PAQM_MORE_RTT, m->rtt);
	paqm_put32(p + PAQM_MORE_DEMAND, m->demand);
	paqm_put32(p + PAQM_MORE_USED, m->used);
	p[PAQM_MORE_SAID] = m->said;
}

/* Is there a supplement in these 15 bytes, with rates that can be used? */
static inline int paqm_more_ok(const paqm_u8 *p)
{
	return paqm_get32(p) == PAQM_MORE_MAGIC &&
	       paqm_value_ok(paqm_get32(p + PAQM_MORE_DEMAND)) &&
	       paqm_value_ok(paqm_get32(p + PAQM_MORE_USED));
}

/* Read the 15 bytes of a supplement. */
static inline void paqm_more_decode(const paqm_u8 *p, struct paqm_more *m)
{
	m->rtt = paqm_get16(p + PAQM_MORE_RTT);
	m->demand = paqm_get32(p + PAQM_MORE_DEMAND);
	m->used = paqm_get32(p + PAQM_MORE_USED);
	m->said = p[PAQM_MORE_SAID];
}

/* What it says behind a router that says @mine: the higher grade, and all flags. */
static inline paqm_u8 paqm_said_both(paqm_u8 said, paqm_u8 mine)
{
	paqm_u8 grade = mine & PAQM_SAID_GRADE;

	if (grade > (said & PAQM_SAID_GRADE))
		said = (paqm_u8)((said & ~PAQM_SAID_GRADE) | grade);
	return said | (mine & (PAQM_SAID_CONGESTED | PAQM_SAID_SEARCHES));
}

/* Write the 15 bytes. */
static inline void paqm_field_encode(paqm_u8 *p, const struct paqm_field *f)
{
	paqm_put32(p, PAQM_FIELD_MAGIC);
	paqm_put32(p + PAQM_FIELD_RATE, f->rate);
	paqm_put16(p + PAQM_FIELD_ROUTER, f->router);
	p[PAQM_FIELD_PERIOD] = f->period;
	paqm_put32(p + PAQM_FIELD_NONCE, f->nonce);
}

/* Is there a field in these 15 bytes, and a rate in it that can be used? */
static inline int paqm_field_ok(const paqm_u8 *p)
{
	return paqm_get32(p) == PAQM_FIELD_MAGIC && paqm_value_ok(paqm_get32(p + PAQM_FIELD_RATE));
}

/* Read the 15 bytes of a field. */
static inline void paqm_field_decode(const paqm_u8 *p, struct paqm_field *f)
{
	f->rate = paqm_get32(p + PAQM_FIELD_RATE);
	f->router = paqm_get16(p + PAQM_FIELD_ROUTER);
	f->period = p[PAQM_FIELD_PERIOD];
	f->nonce = paqm_get32(p + PAQM_FIELD_NONCE);
}

/* The field's period byte for a period of @ms, never 0. */
static inline paqm_u8 paqm_field_period(paqm_u32 ms)
{
	paqm_u32 units = ms / PAQM_FIELD_PERIOD_MS + (ms % PAQM_FIELD_PERIOD_MS != 0);

	return units > 255 ? 255 : units ? (paqm_u8)units : 1;
}

/* May a UDP payload that begins like this have a field? One look rules out most. */
static inline int paqm_field_possible(paqm_u8 first)
{
	return (first & 0xD0) == 0x90 || first == PAQM_PROBE_FIRST; /* RTP with an extension */
}

/* Field or supplement among RFC 8285 elements, which begin at @at and end before @end; 0: none. */
static inline paqm_u32 paqm_elements_find(const paqm_u8 *p, paqm_u32 at, paqm_u32 end, int two,
					  int more)
{
	paqm_u32 len;

	while (at < end) {
		if (!p[at]) { /* padding */
			at++;
			continue;
		}
		if (two) {
			if (end - at < 2)
				return 0;
			len = p[at + 1];
			at += 2;
		} else {
			if (p[at] < 16 || p[at] >> 4 == 15) /* reserved: nothing behind counts */
				return 0;
			len = (p[at] & 15U) + 1;
			at += 1;
		}
		if (len > end - at)
			return 0;
		if (len == PAQM_FIELD_LEN && (more ? paqm_more_ok(p + at) : paqm_field_ok(p + at)))
			return at;
		at += len;
	}
	return 0;
}

/* Where is the field, or the supplement, in a UDP payload? */
static inline paqm_u32 paqm_inband_find(const paqm_u8 *p, paqm_u32 len, int more)
{
	paqm_u32 at, end, profile;

	if (!len)
		return 0;
	if (p[0] == PAQM_PROBE_FIRST) {
		if (len < PAQM_PROBE_LEN || !paqm_field_ok(p + 1))
			return 0;
		if (!more)
			return 1;
		return len >= PAQM_PROBE_LEN + PAQM_FIELD_LEN && paqm_more_ok(p + PAQM_PROBE_LEN)
			       ? PAQM_PROBE_LEN
			       : 0;
	}
	if ((p[0] & 0xD0) != 0x90 || len < 16)
		return 0;
	at = 12 + (p[0] & 15U) * 4;
	if (at + 4 > len)
		return 0;
	profile = paqm_get16(p + at);
	end = at + 4 + 4U * paqm_get16(p + at + 2);
	if (end > len)
		end = len; /* what lies behind the window is not looked at */
	if (profile == 0xBEDE)
		return paqm_elements_find(p, at + 4, end, 0, more);
	if ((profile & 0xFFF0) == 0x1000)
		return paqm_elements_find(p, at + 4, end, 1, more);
	return 0;
}

/**
 * paqm_field_find() - where is the field in a UDP payload?
 * @p: beginning of the payload
 * @len: bytes that may be read, PAQM_FIELD_WINDOW are enough
 *
 * RFC 3550 section 5.3.1, RFC 8285 section 4: elements with one and with two byte headers.
 *
 * Return: offset of its 15 bytes, 0 if there is none.
 */
static inline paqm_u32 paqm_field_find(const paqm_u8 *p, paqm_u32 len)
{
	return paqm_inband_find(p, len, 0);
}

/* The same of the supplement, which counts beside a field only: ask for that first. */
static inline paqm_u32 paqm_more_find(const paqm_u8 *p, paqm_u32 len)
{
	return paqm_inband_find(p, len, 1);
}

/* Would @mine lower the field at @p? */
static inline int paqm_field_above(const paqm_u8 *p, const struct paqm_field *mine)
{
	/* positive binary32 compare like integers */
	return paqm_get32(p + PAQM_FIELD_RATE) > mine->rate;
}

/**
 * paqm_checksum_adjust() - Internet checksum after some bytes have changed
 * @check: checksum before
 * @old: these bytes before
 * @fresh: and after
 * @len: how many
 * @odd: they begin at an odd offset within what is summed
 *
 * RFC 1624, equation 3.
 *
 * Return: the checksum after; 0 and 0xFFFF are the same number.
 */
static inline paqm_u16 paqm_checksum_adjust(paqm_u16 check, const paqm_u8 *old,
					    const paqm_u8 *fresh, paqm_u32 len, int odd)
{
	paqm_u32 sum = (paqm_u16)~check, i;

	for (i = 0; i < len; i++) {
		int shift = (odd ^ (int)(i & 1)) ? 0 : 8;

		sum += 0xFFFF ^ ((paqm_u32)old[i] << shift);
		sum += (paqm_u32)fresh[i] << shift;
		sum = (sum & 0xFFFF) + (sum >> 16);
	}
	sum = (sum & 0xFFFF) + (sum >> 16);
	return (paqm_u16)~sum;
}

/**
 * paqm_field_lower() - lower the field of a datagram, and keep its checksum right
 * @udp: UDP header and payload, as far as the field
 * @at: offset of the field in the payload, from paqm_field_find()
 * @mine: what to write; its nonce is not used
 * @partial: the checksum is still to be computed, over what the payload is then
 *
 * A checksum of zero says that there is none and stays.
 */
static inline void paqm_field_lower(paqm_u8 *udp, paqm_u32 at, const struct paqm_field *mine,
				    int partial)
{
	paqm_u8 *p = udp + 8 + at + PAQM_FIELD_RATE, old[7], fresh[7];
	paqm_u16 check = paqm_get16(udp + 6);
	paqm_u32 i;

	paqm_put32(fresh, mine->rate);
	paqm_put16(fresh + 4, mine->router);
	fresh[6] = mine->period;
	for (i = 0; i < 7; i++) {
		old[i] = p[i];
		p[i] = fresh[i];
	}
	if (partial || !check)
		return;
	check = paqm_checksum_adjust(check, old, fresh, 7, (int)(at & 1));
	paqm_put16(udp + 6, check ? check : 0xFFFF);
}

/**
 * paqm_more_say() - say more in the supplement of a datagram, and keep its checksum right
 * @udp: UDP header and payload, as far as the supplement
 * @at: offset of the supplement in the payload, from paqm_more_find()
 * @mine: what this router says
 * @partial: the checksum is still to be computed
 */
static inline void paqm_more_say(paqm_u8 *udp, paqm_u32 at, paqm_u8 mine, int partial)
{
	paqm_u8 *p = udp + 8 + at + PAQM_MORE_SAID, old = *p;
	paqm_u16 check = paqm_get16(udp + 6);

	*p = paqm_said_both(old, mine);
	if (partial || !check)
		return;
	check = paqm_checksum_adjust(check, &old, p, 1, (int)((at + PAQM_MORE_SAID) & 1));
	paqm_put16(udp + 6, check ? check : 0xFFFF);
}

/* ------------------------------------------------------- what the receiver returns */

#define PAQM_APP_LEN 28
#define PAQM_APP_NAME 0x5041514DU /* "PAQM" */
#define PAQM_APP_SUBTYPE 1
#define PAQM_APP_DATA 12
#define PAQM_APP_DATA_LEN 16
#define PAQM_APP_MORE 4 /* bytes behind it, if there was a supplement: what routers said, zeros */
#define PAQM_TMMBR_LEN 20
#define PAQM_REMB_LEN 24

enum paqm_return_kind { PAQM_RETURN_ELEMENT, PAQM_RETURN_PROBE };

/**
 * struct paqm_return - what a receiver returns of the newest field
 * @field: the field
 * @seq: RTP sequence number with its cycles, or sequence number of the probe
 * @kind: enum paqm_return_kind
 * @more: it had a supplement,
 * @said: in which this stood, enum paqm_said
 */
struct paqm_return {
	struct paqm_field field;
	paqm_u32 seq;
	paqm_u8 kind;
	paqm_u8 more;
	paqm_u8 said;
};

/* Length of the APP packet for it. */
static inline paqm_u32 paqm_return_len(const struct paqm_return *r)
{
	return PAQM_APP_LEN + (r->more ? PAQM_APP_MORE : 0);
}

/* Write an RTCP APP packet (RFC 3550 section 6.7) of paqm_return_len() bytes. */
static inline void paqm_return_encode(paqm_u8 *p, paqm_u32 ssrc, const struct paqm_return *r)
{
	p[0] = 0x80 | PAQM_APP_SUBTYPE;
	p[1] = 204;
	paqm_put16(p + 2, (paqm_u16)(paqm_return_len(r) / 4 - 1));
	paqm_put32(p + 4, ssrc);
	paqm_put32(p + 8, PAQM_APP_NAME);
	paqm_put32(p + 12, r->field.rate);
	paqm_put16(p + 16, r->field.router);
	p[18] = r->field.period;
	p[19] = r->kind;
	paqm_put32(p + 20, r->field.nonce);
	paqm_put32(p + 24, r->seq);
	if (r->more)
		paqm_put32(p + 28, (paqm_u32)r->said << 24);
}

/**
 * paqm_return_decode() - read the data of an APP packet with name PAQM and subtype 1
 * @p: data, behind the name
 * @len: its length
 * @r: result
 *
 * Return: 0, or -1 if it is not a return that can be used.
 */
static inline int paqm_return_decode(const paqm_u8 *p, paqm_u32 len, struct paqm_return *r)
{
	if (len != PAQM_APP_DATA_LEN && len != PAQM_APP_DATA_LEN + PAQM_APP_MORE)
		return -1;
	r->more = len != PAQM_APP_DATA_LEN;
	r->said = r->more ? p[16] & PAQM_SAID_ALL : 0;
	r->field.rate = paqm_get32(p);
	r->field.router = paqm_get16(p + 4);
	r->field.period = p[6];
	r->kind = p[7];
	r->field.nonce = paqm_get32(p + 8);
	r->seq = paqm_get32(p + 12);
	return r->kind <= PAQM_RETURN_PROBE && paqm_value_ok(r->field.rate) ? 0 : -1;
}

/* Mantissa of at most @bits bits and exponent of @bps, rounded down. */
static inline paqm_u32 paqm_mantissa(paqm_u64 bps, int bits, paqm_u32 *exp)
{
	for (*exp = 0; bps >> bits; bps >>= 1)
		++*exp;
	return (paqm_u32)bps;
}

/**
 * paqm_tmmbr_encode() - the same for a stock sender: TMMBR, RFC 5104 section 4.2.1
 * @p: room for PAQM_TMMBR_LEN bytes
 * @ssrc: of the receiver
 * @media: SSRC of the sender
 * @bps: rate on the IP layer
 * @overhead: bytes from the IP header to the RTP payload, below 512
 */
static inline void paqm_tmmbr_encode(paqm_u8 *p, paqm_u32 ssrc, paqm_u32 media, paqm_u64 bps,
				     paqm_u32 overhead)
{
	paqm_u32 exp, mantissa = paqm_mantissa(bps, 17, &exp);

	p[0] = 0x80 | 3;
	p[1] = 205;
	paqm_put16(p + 2, PAQM_TMMBR_LEN / 4 - 1);
	paqm_put32(p + 4, ssrc);
	paqm_put32(p + 8, 0);
	paqm_put32(p + 12, media);
	paqm_put32(p + 16, exp << 26 | mantissa << 9 | (overhead & 0x1FF));
}

/**
 * paqm_remb_encode() - and REMB, draft-alvestrand-rmcat-remb-03 section 2.2
 * @p: room for PAQM_REMB_LEN bytes
 * @ssrc: of the receiver
 * @media: SSRC of the sender
 * @bps: rate
 */
static inline void paqm_remb_encode(paqm_u8 *p, paqm_u32 ssrc, paqm_u32 media, paqm_u64 bps)
{
	paqm_u32 exp, mantissa = paqm_mantissa(bps, 18, &exp);

	p[0] = 0x80 | 15;
	p[1] = 206;
	paqm_put16(p + 2, PAQM_REMB_LEN / 4 - 1);
	paqm_put32(p + 4, ssrc);
	paqm_put32(p + 8, 0);
	paqm_put32(p + 12, 0x52454D42); /* "REMB" */
	paqm_put32(p + 16, 1U << 24 | exp << 18 | mantissa);
	paqm_put32(p + 20, media);
}

#endif /* PAQM_INBAND_H */
