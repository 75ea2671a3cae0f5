/* SPDX-License-Identifier: GPL-2.0 */
/* What the vectors of the message codec are made of: packets quoted, messages, both ways. */
#ifndef PAQM_MSG_KIT_H
#define PAQM_MSG_KIT_H

#include "../paqm_msg.h"

#define VEC_HLEN(v6) ((v6) ? 40U : 20U)
#define VEC_PLAIN 28	/* bytes that prove an RTP packet without CSRC and header extension */
#define VEC_FIELD_AT 17 /* of an in-band field in a header extension of its own */

static const struct paqm_msg sample = {
	.flags = PAQM_F_FINAL,
	.router_id = 0x1122334455667788ULL,
	.boot = 0xA1B2C3D4,
	.seq = 77,
	.rate = 1600000,
	.period_ms = 240,
	.qdelay_100us = 13,
	.flows = 3,
	.util = 62000,
};

static const paqm_u8 router6[16] = {0x20, 0x01, 0x0d, 0xb8, [15] = 0x01};
static const paqm_u8 sender6[16] = {0x20, 0x01, 0x0d, 0xb8, [7] = 0x02, [15] = 0x0a};
static const paqm_u8 receiver6[16] = {0xfd, [7] = 0x03, [15] = 0x0b};

/* The first bytes of an RTP packet over UDP, as a router would quote them. */
static unsigned int make_quote(paqm_u8 *q, int v6, unsigned int payload)
{
	unsigned int i, hlen = VEC_HLEN(v6);

	memset(q, 0, hlen + 8);
	if (v6) {
		q[0] = 0x60;
		q[5] = 180;
		q[6] = 17;
		q[7] = 64;
		memcpy(q + 8, sender6, 16);
		memcpy(q + 24, receiver6, 16);
	} else {
		q[0] = 0x45;
		q[3] = 200;
		q[8] = 64;
		q[9] = 17;
		paqm_put32(q + 12, 0x0A000001);
		paqm_put32(q + 16, 0x0A000102);
	}
	paqm_put16(q + hlen, 5004);
	paqm_put16(q + hlen + 2, 6004);
	paqm_put16(q + hlen + 4, 180);
	for (i = 0; i < payload; i++)
		q[hlen + 8 + i] = (paqm_u8)(0x80 + i);
	return hlen + 8 + payload;
}

static unsigned int encode(paqm_u8 *buf, int v6, const paqm_u8 *quote, unsigned int len,
			   const struct paqm_msg *m)
{
	return v6 ? paqm_icmp6_encode(buf, PAQM_ICMP6_TYPE_EXP, router6, sender6, quote, len, m)
		  : paqm_icmp_encode(buf, PAQM_ICMP_TYPE_EXP, quote, len, m);
}

static enum paqm_msg_err decode_into(const paqm_u8 *buf, unsigned int len, int v6,
				     struct paqm_msg *m, struct paqm_quote *q)
{
	return v6 ? paqm_icmp6_decode(buf, len, router6, sender6, m, q)
		  : paqm_icmp_decode(buf, len, PAQM_ICMP_TYPE_EXP, m, q);
}

/* Decode a copy in a block of exactly @len bytes, so that sanitizers see overreads. */
static enum paqm_msg_err decode(const paqm_u8 *buf, unsigned int len, int v6)
{
	paqm_u8 *copy = VEC_ALLOC(len ? len : 1), bytes[PAQM_TAG_BYTES];
	enum paqm_msg_err err;
	struct paqm_quote q;
	struct paqm_msg m;
	unsigned int n;

	if (len)
		memcpy(copy, buf, len);
	err = decode_into(copy, len, v6, &m, &q);
	if (err == PAQM_MSG_OK) {
		n = m.version == 1 ? paqm1_tag_bytes(m.object, &q, bytes)
				   : paqm_tag_bytes(m.object, m.object_len, &q, bytes);
		EXPECT("tag bytes fit", n <= PAQM_TAG_BYTES, 1);
		EXPECT("version", m.version == 1 || m.version == 2, 1);
		EXPECT("rate", m.rate && m.rate <= PAQM_VALUE_MAX, 1);
	}
	VEC_FREE(copy);
	return err;
}

/* Where the extension structure begins. */
static unsigned int ext_of(const paqm_u8 *buf, int v6)
{
	return PAQM_ICMP_HDR + (v6 ? buf[4] * 8U : buf[5] * 4U);
}

static void seal_icmp(paqm_u8 *buf, unsigned int len, int v6)
{
	paqm_put16(buf + 2, 0);
	paqm_put16(buf + 2,
		   v6 ? paqm_checksum6(router6, sender6, buf, len) : paqm_checksum(buf, len));
}

/* Both checksums again, after a change. */
static void seal(paqm_u8 *buf, unsigned int len, int v6)
{
	unsigned int ext = ext_of(buf, v6);

	if (ext + PAQM_EXT_HDR <= len) {
		paqm_put16(buf + ext + 2, 0);
		paqm_put16(buf + ext + 2, paqm_checksum(buf + ext, len - ext));
	}
	seal_icmp(buf, len, v6);
}

/* A message about a plain packet that ends with these objects. */
static unsigned int assemble(paqm_u8 *buf, int v6, const paqm_u8 *objects, unsigned int n)
{
	paqm_u8 quote[PAQM_QUOTE_MAX];
	unsigned int ext;

	encode(buf, v6, quote, make_quote(quote, v6, VEC_PLAIN), &sample);
	ext = ext_of(buf, v6);
	memcpy(buf + ext + PAQM_EXT_HDR, objects, n);
	seal(buf, ext + PAQM_EXT_HDR + n, v6);
	return ext + PAQM_EXT_HDR + n;
}

static int same(const struct paqm_msg *a, const struct paqm_msg *b)
{
	return a->flags == b->flags && a->key_id == b->key_id && a->router_id == b->router_id &&
	       a->boot == b->boot && a->seq == b->seq && a->ecf == b->ecf && a->rate == b->rate &&
	       a->period_ms == b->period_ms && a->qdelay_100us == b->qdelay_100us &&
	       a->flows == b->flows && a->util == b->util && a->tag == b->tag;
}

/* An RTP header with @csrc sources and, unless negative, @words of extension; its length. */
static unsigned int make_rtp(paqm_u8 *p, unsigned int csrc, int words)
{
	unsigned int at = 12 + 4 * csrc;

	p[0] = (paqm_u8)(0x80 | (words < 0 ? 0 : 0x10) | csrc);
	if (words < 0)
		return at;
	paqm_put16(p + at, 0xABCD); /* a profile that nobody looks into */
	paqm_put16(p + at + 2, (paqm_u16)words);
	return at + 4 + 4 * (unsigned int)words;
}

static void expect_hex(const char *what, const paqm_u8 *p, unsigned int len, const char *want)
{
	unsigned int i, n = 0;
	char digits[3];

	for (i = 0; want[i]; i++) {
		if (want[i] == ' ')
			continue;
		snprintf(digits, sizeof(digits), "%02x", n / 2 < len ? p[n / 2] : 0);
		EXPECT(what, want[i], digits[n % 2]);
		n++;
	}
	EXPECT(what, n, 2 * len);
}

#endif /* PAQM_MSG_KIT_H */
