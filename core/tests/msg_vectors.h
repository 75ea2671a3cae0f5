/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Feedback message codec, ICMP and ICMPv6: round trips about every packet that can be quoted, fixed
 * vectors, every refusal, mutation of every byte, options and objects that are yet to come, version
 * 1, the bytes that prove a packet and those that a tag covers.
 *
 * Run in user space and in the kernel: who includes this brings memcpy() and the like and
 * defines EXPECT(what, got, want), VEC_ALLOC(bytes) and VEC_FREE(pointer).
 */
#ifndef PAQM_MSG_VECTORS_H
#define PAQM_MSG_VECTORS_H

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

/* What comes back of a message about the @len bytes at @quote, of which @hlen are its IP header. */
static void roundtrip(int v6, const paqm_u8 *quote, unsigned int hlen, unsigned int len,
		      const struct paqm_msg *want)
{
	unsigned int word = v6 ? 8 : 4, padded = (len + word - 1) / word * word, n, i;
	paqm_u8 buf[PAQM_MSG_MAX], proof[PAQM_PROOF_MAX], again[PAQM_PROOF_MAX];
	struct paqm_quote q;
	struct paqm_msg m;

	memset(buf, 0xA5, sizeof(buf)); /* nothing of what was there may shine through */
	n = encode(buf, v6, quote, len, want);
	EXPECT("length", n,
	       8 + padded + 4 + 44 + (want->ecf ? 8 : 0) + (want->flags & PAQM_F_AUTH ? 12 : 0));
	EXPECT("length beforehand", n, paqm_icmp_len(v6, len, want));
	EXPECT("no longer than a router's", n <= PAQM_MSG_SENT_MAX || hlen > 40, 1);
	EXPECT("decode", decode_into(buf, n, v6, &m, &q), PAQM_MSG_OK);
	EXPECT("within its block", decode(buf, n, v6), PAQM_MSG_OK);
	EXPECT("version", m.version, 2);
	EXPECT("fields", same(&m, want), 1);
	EXPECT("object", m.object == buf + 8 + padded + 4 && m.object + m.object_len == buf + n, 1);
	EXPECT("quoted version", q.version, v6 ? 6 : 4);
	EXPECT("quoted header", q.ip_hlen, hlen);
	EXPECT("source", memcmp(q.src, quote + (v6 ? 8 : 12), v6 ? 16 : 4), 0);
	EXPECT("destination", memcmp(q.dst, quote + (v6 ? 24 : 16), v6 ? 16 : 4), 0);
	EXPECT("saddr", q.saddr, v6 ? 0 : 0x0A000001);
	EXPECT("daddr", q.daddr, v6 ? 0 : 0x0A000102);
	EXPECT("sport", q.sport, 5004);
	EXPECT("dport", q.dport, 6004);
	EXPECT("payload length", q.payload_len, padded - hlen - 8);
	EXPECT("payload", memcmp(q.payload, quote + hlen + 8, len - hlen - 8), 0);
	for (i = len; i < padded; i++)
		EXPECT("padding", buf[8 + i], 0);
	n = paqm_proof(quote + hlen + 8, len - hlen - 8, proof);
	if (n) {
		EXPECT("proof of the quote", paqm_proof(q.payload, q.payload_len, again), n);
		EXPECT("the same bytes", memcmp(proof, again, n), 0);
	}
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

/* Whatever a packet proves itself with comes through, over IPv4 and IPv6. */
static void roundtrips(int v6)
{
	unsigned int hlen = VEC_HLEN(v6), head = hlen + 8, csrc, n, i;
	paqm_u8 quote[PAQM_QUOTE_MAX + 1], buf[PAQM_MSG_MAX];
	struct paqm_msg m = sample;
	int words;

	for (n = 0; n <= PAQM_PROOF_MAX; n++) /* what is padded, too */
		roundtrip(v6, quote, hlen, make_quote(quote, v6, n), &m);
	for (csrc = 0; csrc < 16; csrc++) {
		for (words = -1; words < 26; words++) {
			make_quote(quote, v6, PAQM_PROOF_MAX);
			n = make_rtp(quote + head, csrc, words) + 16;
			EXPECT("proof of the packet", paqm_proof_len(quote + head, PAQM_PROOF_MAX),
			       n <= PAQM_PROOF_MAX ? n : 0);
			if (n <= PAQM_PROOF_MAX)
				roundtrip(v6, quote, hlen, head + n, &m);
		}
	}
	n = make_quote(quote, v6, VEC_PLAIN);
	for (i = 0; i < 4; i++) { /* with and without options */
		m = sample;
		m.ecf = i & 1 ? 0x3F59999A : 0;
		m.flags |= i & 2 ? PAQM_F_AUTH : 0;
		m.key_id = i & 2 ? 0x0102 : 0;
		m.tag = i & 2 ? 0xFEDCBA9876543210ULL : 0;
		roundtrip(v6, quote, hlen, n, &m);
	}
	m.rate = PAQM_VALUE_MAX;
	m.flags = 0xFF; /* those that are not assigned yet come through */
	m.router_id = ~0ULL;
	m.boot = ~0U;
	m.seq = ~0U;
	m.period_ms = 0xFFFF;
	m.qdelay_100us = 0xFFFF;
	m.flows = 0xFFFF;
	m.util = 0xFFFF;
	roundtrip(v6, quote, hlen, n, &m);
	m.rate = 1;
	roundtrip(v6, quote, hlen, n, &m);
	EXPECT("quote too short", encode(buf, v6, quote, head - 1, &sample), 0);
	EXPECT("quote too long",
	       encode(buf, v6, quote, v6 ? 40 + 8 + PAQM_PROOF_MAX + 1 : PAQM_QUOTE_MAX + 1,
		      &sample),
	       0);
}

static void check_roundtrip(void)
{
	paqm_u8 quote[PAQM_QUOTE_MAX];
	unsigned int options, n;

	roundtrips(0);
	for (options = 4; options <= 40; options += 4) {
		n = make_quote(quote, 0, VEC_PLAIN + 3);
		memmove(quote + 20 + options, quote + 20, n - 20);
		memset(quote + 20, 1, options); /* no operation */
		quote[0] = (paqm_u8)(0x45 + options / 4);
		roundtrip(0, quote, 20 + options, n + options, &sample);
	}
}

static void check_roundtrip6(void)
{
	paqm_u8 quote[PAQM_QUOTE_MAX], buf[PAQM_MSG_MAX];
	struct paqm_quote q;
	struct paqm_msg m;
	unsigned int len;

	roundtrips(1);
	len = encode(buf, 1, quote, make_quote(quote, 1, VEC_PLAIN), &sample);
	EXPECT("the checksum covers the source",
	       paqm_icmp6_decode(buf, len, receiver6, sender6, &m, &q), PAQM_MSG_CHECKSUM);
	EXPECT("the checksum covers the destination",
	       paqm_icmp6_decode(buf, len, router6, receiver6, &m, &q), PAQM_MSG_CHECKSUM);
	EXPECT("no ICMP message", decode(buf, len, 0), PAQM_MSG_TYPE);
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

/*
 * Messages byte for byte. The checksums were computed apart from this code, with RFC 1071 over the
 * extension structure and then over the message; over IPv6 with the pseudo header (two addresses,
 * length 156, next header 58).
 */
static void check_vectors(void)
{
	struct paqm_msg m = sample;
	paqm_u8 quote[PAQM_QUOTE_MAX], buf[PAQM_MSG_MAX];
	unsigned int len;

	len = encode(buf, 0, quote, make_quote(quote, 0, VEC_PLAIN), &m);
	expect_hex("IPv4", buf, len,
		   "fd007e94000e0000"
		   "450000c8000000004011 00000a0000010a000102 138c177400b40000"
		   "808182838485868788898a8b8c8d8e8f909192939495969798999a9b"
		   "200070cc 002cf701 5041514d 0204 0000 1122334455667788 a1b2c3d4 0000004d"
		   "0000000000186a00 00f0 000d 0003 f230");
	m.ecf = 0x3F59999A;
	m.flags |= PAQM_F_AUTH;
	m.key_id = 0x0102;
	m.tag = 0xFEDCBA9876543210ULL;
	len = encode(buf, 1, quote, make_quote(quote, 1, VEC_PLAIN), &m);
	expect_hex("IPv6", buf, len,
		   "c8004b610a000000"
		   "6000000000b4114020010db8000000020000000000 00000a"
		   "fd000000000000030000000000 00000b138c177400b40000"
		   "808182838485868788898a8b8c8d8e8f909192939495969798999a9b 00000000"
		   "2000b4d1 0040f701 5041514d 020c 0102 1122334455667788 a1b2c3d4 0000004d"
		   "0000000000186a00 00f0 000d 0003 f230 00010004 3f59999a"
		   "80010008 fedcba9876543210");
}

/* One byte of a good message is changed: of the message, the extension structure or our object. */
struct vec_spoil {
	const char *what;
	enum { VEC_MSG, VEC_EXT, VEC_OBJ } part;
	unsigned int offset;
	paqm_u8 byte;
	enum paqm_msg_err want;
};

static const struct vec_spoil spoils[] = {
	{"type", VEC_MSG, 0, 3, PAQM_MSG_TYPE},
	{"code", VEC_MSG, 1, 1, PAQM_MSG_TYPE},
	{"extension structure of version 1", VEC_EXT, 0, 0x10, PAQM_MSG_MAGIC},
	{"reserved bits of the extension structure", VEC_EXT, 0, 0x2F, PAQM_MSG_OK},
	{"object of no bytes", VEC_OBJ, 1, 0, PAQM_MSG_MAGIC},
	{"object of 3 bytes", VEC_OBJ, 1, 3, PAQM_MSG_MAGIC},
	{"object beyond the message", VEC_OBJ, 1, 65, PAQM_MSG_MAGIC},
	{"object far beyond the message", VEC_OBJ, 0, 4, PAQM_MSG_MAGIC},
	{"another class", VEC_OBJ, 2, 1, PAQM_MSG_MAGIC},
	{"another type", VEC_OBJ, 3, 2, PAQM_MSG_MAGIC},
	{"magic", VEC_OBJ, 4, 'Q', PAQM_MSG_MAGIC},
	{"version 0", VEC_OBJ, 8, 0, PAQM_MSG_VERSION_ERR},
	{"version 1 in an object", VEC_OBJ, 8, 1, PAQM_MSG_VERSION_ERR},
	{"version 3", VEC_OBJ, 8, 3, PAQM_MSG_VERSION_ERR},
	{"object shorter than version 2", VEC_OBJ, 1, 43, PAQM_MSG_VERSION_ERR},
	{"tag without flag", VEC_OBJ, 9, PAQM_F_FINAL, PAQM_MSG_OPTION},
	{"option beyond the object", VEC_OBJ, 47, 17, PAQM_MSG_OPTION},
	{"relative value of 3 bytes", VEC_OBJ, 47, 3, PAQM_MSG_OPTION},
	{"tag of 7 bytes", VEC_OBJ, 55, 7, PAQM_MSG_OPTION},
	{"tag of 9 bytes", VEC_OBJ, 55, 9, PAQM_MSG_OPTION},
	{"unknown option that must be known", VEC_OBJ, 44, 0xC0, PAQM_MSG_OPTION},
	{"relative value negative", VEC_OBJ, 48, 0xBF, PAQM_MSG_VALUE},
	{"relative value too large", VEC_OBJ, 48, 0x7F, PAQM_MSG_VALUE},
	{"rate above 10^12", VEC_OBJ, 28, 1, PAQM_MSG_VALUE},
};

static const struct vec_spoil spoils4[] = {
	{"no quote", VEC_MSG, 5, 0, PAQM_MSG_MAGIC},
	{"quote of a word less", VEC_MSG, 5, 13, PAQM_MSG_MAGIC},
	{"quote of a word more", VEC_MSG, 5, 15, PAQM_MSG_MAGIC},
	{"quote beyond the message", VEC_MSG, 5, 255, PAQM_MSG_MAGIC},
	{"what IPv6 has the length in", VEC_MSG, 4, 9, PAQM_MSG_OK},
	{"quoted IPv6", VEC_MSG, 8, 0x65, PAQM_MSG_QUOTE},
	{"quoted TCP", VEC_MSG, 8 + 9, 6, PAQM_MSG_QUOTE},
	{"quoted header too short", VEC_MSG, 8, 0x44, PAQM_MSG_QUOTE},
	{"quoted header beyond the quote", VEC_MSG, 8, 0x4F, PAQM_MSG_QUOTE},
	{"quoted later fragment", VEC_MSG, 8 + 7, 1, PAQM_MSG_QUOTE},
	{"quoted first fragment", VEC_MSG, 8 + 6, 0x20, PAQM_MSG_OK},
};

static const struct vec_spoil spoils6[] = {
	{"no quote", VEC_MSG, 4, 0, PAQM_MSG_MAGIC},
	{"quote of a word less", VEC_MSG, 4, 9, PAQM_MSG_MAGIC},
	{"quote of a word more", VEC_MSG, 4, 11, PAQM_MSG_MAGIC},
	{"quote beyond the message", VEC_MSG, 4, 255, PAQM_MSG_MAGIC},
	{"what IPv4 has the length in", VEC_MSG, 5, 14, PAQM_MSG_OK},
	{"quoted IPv4", VEC_MSG, 8, 0x45, PAQM_MSG_QUOTE},
	{"quoted TCP", VEC_MSG, 8 + 6, 6, PAQM_MSG_QUOTE},
	{"quoted fragment header", VEC_MSG, 8 + 6, 44, PAQM_MSG_QUOTE},
	{"type of version 1", VEC_MSG, 0, PAQM_ICMP6_TYPE_OLD, PAQM_MSG_TYPE},
};

static void spoil(int v6, const paqm_u8 *good, unsigned int len, const struct vec_spoil *s,
		  unsigned int n)
{
	paqm_u8 buf[PAQM_MSG_MAX];
	unsigned int i, at;

	for (i = 0; i < n; i++) {
		at = s[i].part == VEC_MSG ? 0 : ext_of(good, v6);
		at += s[i].part == VEC_OBJ ? PAQM_EXT_HDR : 0;
		memcpy(buf, good, len);
		buf[at + s[i].offset] = s[i].byte;
		seal(buf, len, v6);
		EXPECT(s[i].what, decode(buf, len, v6), s[i].want);
	}
}

#define SPOIL(v6, good, len, list) spoil(v6, good, len, list, sizeof(list) / sizeof(list[0]))

/* Nothing that is cut or changed is believed; with right checksums nothing is read beyond it. */
static void mutate(int v6, const paqm_u8 *good, unsigned int len)
{
	paqm_u8 buf[PAQM_MSG_MAX];
	unsigned int i, bit;

	for (i = 0; i < len; i++) {
		if (i < PAQM_ICMP_HDR + VEC_HLEN(v6) + 8 + PAQM_EXT_HDR + PAQM_OBJ_FIXED)
			EXPECT("too short", decode(good, i, v6), PAQM_MSG_SHORT);
		EXPECT("truncated", decode(good, i, v6) != PAQM_MSG_OK, 1);
		memcpy(buf, good, len);
		if (i >= PAQM_ICMP_HDR)
			seal(buf, i, v6);
		EXPECT("truncated and sealed", decode(buf, i, v6) != PAQM_MSG_OK, 1);
	}
	for (i = 0; i < len; i++) {
		for (bit = 0; bit < 8; bit++) {
			memcpy(buf, good, len);
			buf[i] ^= (paqm_u8)(1 << bit);
			EXPECT("bit flip", decode(buf, len, v6),
			       i < 2 ? PAQM_MSG_TYPE : PAQM_MSG_CHECKSUM);
			seal_icmp(buf, len, v6);
			decode(buf, len, v6);
			seal(buf, len, v6);
			decode(buf, len, v6);
		}
	}
}

static void refusals(int v6)
{
	unsigned int hlen = VEC_HLEN(v6), len, ext, obj, i;
	static paqm_u8 quote[PAQM_QUOTE_MAX], good[PAQM_MSG_MAX], buf[PAQM_MSG_MAX + 1];
	struct paqm_msg m = sample;

	m.ecf = 0x3F59999A;
	m.flags |= PAQM_F_AUTH;
	m.tag = 1;
	len = encode(good, v6, quote, make_quote(quote, v6, VEC_PLAIN), &m);
	mutate(v6, good, len);
	ext = ext_of(good, v6);
	obj = ext + PAQM_EXT_HDR;
	SPOIL(v6, good, len, spoils);
	if (v6)
		SPOIL(v6, good, len, spoils6);
	else
		SPOIL(v6, good, len, spoils4);
	memcpy(buf, good, len);
	buf[ext + 3] ^= 1;
	seal_icmp(buf, len, v6);
	EXPECT("checksum of the extension structure", decode(buf, len, v6), PAQM_MSG_MAGIC);
	paqm_put16(buf + ext + 2, 0);
	seal_icmp(buf, len, v6);
	EXPECT("no checksum of the extension structure", decode(buf, len, v6), PAQM_MSG_OK);

	m = sample;
	for (i = 0; i < 4; i++) {
		static const paqm_u64 rates[] = {0, 1, PAQM_VALUE_MAX, PAQM_VALUE_MAX + 1};

		m.rate = rates[i];
		len = encode(buf, v6, quote, make_quote(quote, v6, VEC_PLAIN), &m);
		EXPECT("rate", decode(buf, len, v6), i % 3 ? PAQM_MSG_OK : PAQM_MSG_VALUE);
	}
	/* two faults: the first one is named */
	m.rate = 0;
	len = encode(buf, v6, quote, make_quote(quote, v6, VEC_PLAIN), &m);
	buf[obj + 9] |= PAQM_F_AUTH;
	seal(buf, len, v6);
	EXPECT("option before value", decode(buf, len, v6), PAQM_MSG_OPTION);
	buf[8 + (v6 ? 6 : 9)] = 6;
	seal(buf, len, v6);
	EXPECT("quote before option", decode(buf, len, v6), PAQM_MSG_QUOTE);
	buf[obj + 8] = 9;
	seal(buf, len, v6);
	EXPECT("version before quote", decode(buf, len, v6), PAQM_MSG_VERSION_ERR);

	/* 128 bytes of payload are the most, and the zeros of a word */
	len = make_quote(quote, v6, VEC_PLAIN);
	for (i = 0; i < 2; i++) {
		unsigned int quoted = hlen + 8 + PAQM_PROOF_MAX + i * (v6 ? 8 : 4);

		memset(buf, 0, sizeof(buf));
		buf[0] = v6 ? PAQM_ICMP6_TYPE_EXP : PAQM_ICMP_TYPE_EXP;
		buf[v6 ? 4 : 5] = (paqm_u8)(quoted / (v6 ? 8 : 4));
		memcpy(buf + 8, quote, len);
		ext = 8 + quoted;
		buf[ext] = 0x20;
		len = ext + 4 + paqm_object_encode(buf + ext + 4, &sample);
		seal(buf, len, v6);
		EXPECT("bytes of payload", decode(buf, len, v6), i ? PAQM_MSG_QUOTE : PAQM_MSG_OK);
		len = hlen + 8 + VEC_PLAIN;
	}
	EXPECT("too long", decode(buf, PAQM_MSG_MAX + 1, v6), PAQM_MSG_SHORT);
}

static void check_refusals(void)
{
	refusals(0);
}

static void check_refusals6(void)
{
	refusals(1);
}

/* What becomes of a message whose object has the flags @flags and the options @opts. */
static enum paqm_msg_err with_options(int v6, paqm_u8 flags, const char *opts, struct paqm_msg *m)
{
	paqm_u8 object[PAQM_OBJ_MAX + 8], buf[PAQM_MSG_MAX + 8];
	unsigned int n = paqm_object_encode(object, &sample), len, hi = 0, odd = 0;
	enum paqm_msg_err err;
	struct paqm_quote q;

	object[9] = flags;
	for (; *opts; opts++) {
		unsigned int nibble = (unsigned int)(*opts <= '9' ? *opts - '0' : *opts - 'a' + 10);

		if (*opts == ' ')
			continue;
		if (odd)
			object[n++] = (paqm_u8)(hi << 4 | nibble);
		hi = nibble;
		odd = !odd;
	}
	paqm_put16(object, (paqm_u16)n);
	len = assemble(buf, v6, object, n);
	err = decode(buf, len, v6);
	EXPECT("the same wherever it lies", decode_into(buf, len, v6, m, &q), err);
	return err;
}

#define VEC_REL "00010004 3f000000"
#define VEC_TAG "80010008 0102030405060708"
#define VEC_16 "00112233445566778899aabbccddeeff"

/* Options: those of later versions are passed over, unless they must be known. */
static void check_options(void)
{
	static const struct {
		const char *what;
		const char *opts;
		paqm_u8 flags;
		enum paqm_msg_err want;
		paqm_u32 ecf;
	} cases[] = {
		{"none", "", 0, PAQM_MSG_OK, 0},
		{"relative value", VEC_REL, 0, PAQM_MSG_OK, 0x3F000000},
		{"tag", VEC_TAG, PAQM_F_AUTH, PAQM_MSG_OK, 0},
		{"both", VEC_REL VEC_TAG, PAQM_F_AUTH, PAQM_MSG_OK, 0x3F000000},
		{"unknown, empty", "00020000" VEC_REL, 0, PAQM_MSG_OK, 0x3F000000},
		{"unknown, 1 byte", "7fff0001 aa000000" VEC_REL, 0, PAQM_MSG_OK, 0x3F000000},
		{"unknown, padded with other than zeros", "00020003 aabbccdd" VEC_REL, 0,
		 PAQM_MSG_OK, 0x3F000000},
		{"unknown, behind what is known", VEC_REL "00020004 aabbccdd" VEC_TAG, PAQM_F_AUTH,
		 PAQM_MSG_OK, 0x3F000000},
		{"unknown, twice", "00020000 00020000", 0, PAQM_MSG_OK, 0},
		{"as many as there is room for",
		 "0002004c" VEC_16 VEC_16 VEC_16 VEC_16 "00112233445566778899aabb"
		 "00030000",
		 0, PAQM_MSG_OK, 0},
		{"type 0", "00000004 aabbccdd", 0, PAQM_MSG_OK, 0},
		{"must be known", "80020000", 0, PAQM_MSG_OPTION, 0},
		{"must be known, behind what is known", VEC_REL "ffff0000", 0, PAQM_MSG_OPTION, 0},
		{"half a header", "0002", 0, PAQM_MSG_OPTION, 0},
		{"three bytes of a header", "000200", 0, PAQM_MSG_OPTION, 0},
		{"a byte behind the last", VEC_REL "00", 0, PAQM_MSG_OPTION, 0},
		{"value cut", "00020004 aabbcc", 0, PAQM_MSG_OPTION, 0},
		{"value missing", "00020004", 0, PAQM_MSG_OPTION, 0},
		{"absurd length", "0002ffff aabbccdd", 0, PAQM_MSG_OPTION, 0},
		{"length that wraps when it is rounded up", "0002fffd aabbccdd", 0, PAQM_MSG_OPTION,
		 0},
		{"zeros cut", "00020005 aabbccddee 0000", 0, PAQM_MSG_OPTION, 0},
		{"relative value cut", "00010004 3f0000", 0, PAQM_MSG_OPTION, 0},
		{"relative value of 8 bytes", "00010008 3f00000000000000", 0, PAQM_MSG_OPTION, 0},
		{"relative value twice", VEC_REL VEC_REL, 0, PAQM_MSG_OPTION, 0},
		{"tag twice", VEC_TAG VEC_TAG, PAQM_F_AUTH, PAQM_MSG_OPTION, 0},
		{"something behind the tag", VEC_TAG VEC_REL, PAQM_F_AUTH, PAQM_MSG_OPTION, 0},
		{"unknown behind the tag", VEC_TAG "00020000", PAQM_F_AUTH, PAQM_MSG_OPTION, 0},
		{"tag cut", "80010008 01020304050607", PAQM_F_AUTH, PAQM_MSG_OPTION, 0},
		{"tag of 4 bytes", "80010004 01020304", PAQM_F_AUTH, PAQM_MSG_OPTION, 0},
		{"tag of 12 bytes", "8001000c 0102030405060708090a0b0c", PAQM_F_AUTH,
		 PAQM_MSG_OPTION, 0},
		{"tag and no flag", VEC_TAG, 0, PAQM_MSG_OPTION, 0},
		{"flag and no tag", VEC_REL, PAQM_F_AUTH, PAQM_MSG_OPTION, 0},
		{"relative value 0", "00010004 00000000", 0, PAQM_MSG_VALUE, 0},
		{"relative value NaN", "00010004 7fc00001", 0, PAQM_MSG_VALUE, 0},
		{"relative value infinite", "00010004 7f800000", 0, PAQM_MSG_VALUE, 0},
		{"relative value below 2^-20", "00010004 357fffff", 0, PAQM_MSG_VALUE, 0},
		{"relative value 2^-20", "00010004 35800000", 0, PAQM_MSG_OK, 0x35800000},
		{"relative value 10^12", "00010004 5368d4a5", 0, PAQM_MSG_OK, 0x5368D4A5},
		{"relative value above", "00010004 5368d4a6", 0, PAQM_MSG_VALUE, 0},
	};
	unsigned int i;
	struct paqm_msg m;
	int v6;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (v6 = 0; v6 < 2; v6++) {
			EXPECT(cases[i].what, with_options(v6, cases[i].flags, cases[i].opts, &m),
			       cases[i].want);
			if (cases[i].want != PAQM_MSG_OK)
				continue;
			EXPECT(cases[i].what, m.ecf, cases[i].ecf);
			EXPECT(cases[i].what, m.tag,
			       m.flags & PAQM_F_AUTH ? 0x0102030405060708ULL : 0);
			EXPECT(cases[i].what, m.rate, sample.rate);
		}
	}
	/* an object of more than PAQM_OBJ_MAX bytes is of another version */
	EXPECT("too many options",
	       with_options(0, 0, "00020050" VEC_16 VEC_16 VEC_16 VEC_16 VEC_16 "00030000", &m),
	       PAQM_MSG_VERSION_ERR);
}

/* Objects beside ours are passed over. */
static void check_objects(void)
{
	static const paqm_u8 foreign[] = {0, 8, 2, 1, 0xDE, 0xAD, 0xBE, 0xEF}; /* RFC 5837 */
	static const paqm_u8 alien[] = {
		0, 12, PAQM_OBJ_CLASS, PAQM_OBJ_TYPE, 'P', 'A', 'Q', 'N', PAQM_MSG_VERSION, 0,
		0, 0};
	static const paqm_u8 empty[] = {0, 4, PAQM_OBJ_CLASS, PAQM_OBJ_TYPE};
	static const paqm_u8 later[] = {0,   12, PAQM_OBJ_CLASS, PAQM_OBJ_TYPE, 'P', 'A', 'Q',
					'M', 3,	 0xFF,		 0xFF,		0xFF};
	static const paqm_u8 bare[] = {0, 8, PAQM_OBJ_CLASS, PAQM_OBJ_TYPE, 'P', 'A', 'Q', 'M'};
	static const paqm_u8 broken[] = {0, 3, 2, 1};
	static const struct {
		const char *what, *order; /* o: ours, n: ours with another sequence */
		enum paqm_msg_err want;
	} cases[] = {
		{"alone", "o", PAQM_MSG_OK},
		{"foreign before", "fo", PAQM_MSG_OK},
		{"foreign behind", "of", PAQM_MSG_OK},
		{"foreign on both sides", "faof", PAQM_MSG_OK},
		{"of this class, too short for a magic", "eo", PAQM_MSG_OK},
		{"later version before", "lo", PAQM_MSG_OK},
		{"later version behind", "ol", PAQM_MSG_OK},
		{"the first of two counts", "on", PAQM_MSG_OK},
		{"none", "", PAQM_MSG_SHORT},
		{"foreign ones only", "fffffff", PAQM_MSG_MAGIC},
		{"magic and no version", "fffffm", PAQM_MSG_MAGIC},
		{"another magic only", "aaaaa", PAQM_MSG_MAGIC},
		{"later version only", "llllf", PAQM_MSG_VERSION_ERR},
		{"broken before", "bo", PAQM_MSG_MAGIC},
		{"broken behind", "ob", PAQM_MSG_OK},
		{"later version before a broken one", "llllb", PAQM_MSG_VERSION_ERR},
	};
	paqm_u8 objects[2 * PAQM_OBJ_MAX], buf[PAQM_MSG_MAX];
	struct paqm_msg m, want = sample;
	struct paqm_quote q;
	unsigned int i, n, len;
	const char *c;
	int v6;

	want.seq++;
	for (i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
		v6 = i & 1;
		n = 0;
		for (c = cases[i / 2].order; *c; c++) {
			const paqm_u8 *p = *c == 'f'   ? foreign
					   : *c == 'a' ? alien
					   : *c == 'e' ? empty
					   : *c == 'l' ? later
					   : *c == 'm' ? bare
						       : broken;

			if (*c == 'o' || *c == 'n') {
				n += paqm_object_encode(objects + n, *c == 'o' ? &sample : &want);
				continue;
			}
			len = p == broken ? sizeof(broken) : paqm_get16(p);
			memcpy(objects + n, p, len);
			n += len;
		}
		len = assemble(buf, v6, objects, n);
		EXPECT(cases[i / 2].what, decode(buf, len, v6), cases[i / 2].want);
		if (cases[i / 2].want != PAQM_MSG_OK)
			continue;
		decode_into(buf, len, v6, &m, &q);
		EXPECT(cases[i / 2].what, same(&m, &sample), 1);
		EXPECT(cases[i / 2].what, m.object_len, PAQM_OBJ_FIXED);
	}
}

/* Without a quote there is nothing to believe, whatever stands in its place. */
static void check_unquoted(void)
{
	paqm_u8 buf[PAQM_MSG_MAX], *ext = buf + PAQM_ICMP_HDR;
	unsigned int len;
	int v6;

	for (v6 = 0; v6 < 2; v6++) {
		memset(buf, 0, sizeof(buf));
		buf[0] = v6 ? PAQM_ICMP6_TYPE_EXP : PAQM_ICMP_TYPE_EXP;
		ext[0] = PAQM_EXT_VERSION << 4;
		len = PAQM_EXT_HDR + paqm_object_encode(ext + PAQM_EXT_HDR, &sample);
		ext[len + 1] = 60; /* a foreign object, so that the message is long enough */
		len += 60;
		paqm_put16(ext + 2, paqm_checksum(ext, len));
		seal_icmp(buf, PAQM_ICMP_HDR + len, v6);
		EXPECT("no quote", decode(buf, PAQM_ICMP_HDR + len, v6), PAQM_MSG_MAGIC);
	}
}

/* Version 1 is read for one release more, over IPv4 and as ICMPv6 type 100. */
static void version1(int v6)
{
	unsigned int head = VEC_HLEN(v6) + 8, payload, len, obj;
	paqm_u8 quote[PAQM_QUOTE_MAX], buf[PAQM1_MSG_MAX + 8], good[PAQM1_MSG_MAX];
	paqm_u8 type = v6 ? PAQM_ICMP6_TYPE_OLD : PAQM_ICMP_TYPE_EXP;
	const paqm_u8 *src = v6 ? router6 : 0;
	struct paqm_msg m, want = sample;
	struct paqm_quote q;

	want.ecf = 0x3F59999A;
	want.flags |= PAQM_F_AUTH;
	want.key_id = 7;
	want.tag = 0x0102030405060708ULL;
	for (payload = 0; payload <= PAQM1_QUOTE_UDP; payload++) {
		len = paqm1_encode(good, type, src, sender6, quote, make_quote(quote, v6, payload),
				   &want);
		EXPECT("length", len, 8 + head + payload + 48);
		EXPECT("decode", decode_into(good, len, v6, &m, &q), PAQM_MSG_OK);
		EXPECT("version", m.version, 1);
		EXPECT("fields", same(&m, &want), 1);
		EXPECT("object", m.object == good + len - 48 && m.object_len == 48, 1);
		EXPECT("payload length", q.payload_len, payload);
		EXPECT("payload", memcmp(q.payload, quote + head, payload), 0);
		EXPECT("within its block", decode(good, len, v6), PAQM_MSG_OK);
	}
	EXPECT("quote too short", paqm1_encode(buf, type, src, sender6, quote, head - 1, &want), 0);
	EXPECT("quote too long",
	       paqm1_encode(buf, type, src, sender6, quote, v6 ? 77 : PAQM1_QUOTE_MAX + 1, &want),
	       0);
	mutate(v6, good, len);
	obj = len - PAQM1_OBJ_LEN;
#define TRY1(what, offset, byte, want)                                                             \
	do {                                                                                       \
		memcpy(buf, good, len);                                                            \
		buf[offset] = (byte);                                                              \
		seal_icmp(buf, len, v6);                                                           \
		EXPECT(what, decode(buf, len, v6), want);                                          \
	} while (0)
	TRY1("magic", obj, 'Q', PAQM_MSG_MAGIC);
	TRY1("version 2 where version 1 had it", obj + 4, 2, PAQM_MSG_VERSION_ERR);
	TRY1("version 0", obj + 4, 0, PAQM_MSG_VERSION_ERR);
	TRY1("quoted TCP", 8 + (v6 ? 6 : 9), 6, PAQM_MSG_QUOTE);
	TRY1("quoted IP of the other version", 8, v6 ? 0x45 : 0x65, PAQM_MSG_QUOTE);
	TRY1("negative rate", obj + 28, 0xC9, PAQM_MSG_VALUE);
	TRY1("rate NaN", obj + 28, 0x7F, PAQM_MSG_VALUE);
	TRY1("ICMP value differs", 7, 0x9B, PAQM_MSG_MISMATCH);
	if (v6)
		TRY1("type of version 2", 0, PAQM_ICMP6_TYPE_EXP, PAQM_MSG_TYPE);
	/* more behind UDP than version 1 quotes */
	memcpy(buf, good, obj);
	memset(buf + obj, 0, 4);
	memcpy(buf + obj + 4, good + obj, PAQM1_OBJ_LEN);
	seal_icmp(buf, len + 4, v6);
	EXPECT("32 bytes of payload", decode(buf, len + 4, v6), PAQM_MSG_QUOTE);

	/* its rate is binary32: rounded, at least 1 bit/s */
	want.rate = 16777217;
	len = paqm1_encode(buf, type, src, sender6, quote, head + VEC_PLAIN, &want);
	EXPECT("rounded rate", decode_into(buf, len, v6, &m, &q), PAQM_MSG_OK);
	EXPECT("rounded rate", m.rate, 16777216);
	paqm_put32(buf + len - 20, 0x35800000); /* 2^-20 */
	seal_icmp(buf, len, v6);
	EXPECT("least rate", decode_into(buf, len, v6, &m, &q), PAQM_MSG_OK);
	EXPECT("least rate", m.rate, 1);
}

static void check_version1(void)
{
	version1(0);
	version1(1);
}

static void check_sequence(void)
{
	EXPECT("newer", paqm_seq_newer(2, 1), 1);
	EXPECT("same", paqm_seq_newer(1, 1), 0);
	EXPECT("older", paqm_seq_newer(1, 2), 0);
	EXPECT("wrapped", paqm_seq_newer(3, 0xFFFFFFF0), 1);
	EXPECT("wrapped back", paqm_seq_newer(0xFFFFFFF0, 3), 0);
}

/* A packet with an in-band field in its header extension; its length. */
static unsigned int make_field(paqm_u8 *p, unsigned int len)
{
	static const struct paqm_field field = {.rate = 0x4A3EBC20, .nonce = 0x11223344};
	unsigned int i;

	for (i = 0; i < len; i++)
		p[i] = (paqm_u8)(i * 7 + 1);
	make_rtp(p, 0, 4);
	paqm_put16(p + 12, 0xBEDE);
	p[16] = 0x1E; /* element 1 of 15 bytes */
	paqm_field_encode(p + VEC_FIELD_AT, &field);
	return 12 + 4 + 16 + 16;
}

/* The same of a copy at the end of its block; there is a block if the payload is empty, too. */
static unsigned int proof_len(const paqm_u8 *payload, unsigned int len)
{
	paqm_u8 *block = VEC_ALLOC(len + 8), *copy = block + 8, proof[PAQM_PROOF_MAX];
	unsigned int n;

	memcpy(copy, payload, len);
	n = paqm_proof_len(copy, len);
	EXPECT("proof", paqm_proof(copy, len, proof) > 0, n > 0);
	VEC_FREE(block);
	return n;
}

static void check_proof(void)
{
	paqm_u8 p[PAQM_PROOF_MAX + 32], a[PAQM_PROOF_MAX], b[PAQM_PROOF_MAX];
	unsigned int i, n;

	for (i = 0; i < sizeof(p); i++)
		p[i] = (paqm_u8)(i * 7);
	p[0] = 0x80;
	EXPECT("plain RTP: 16 bytes behind its header", paqm_proof(p, sizeof(p), a), 28);
	EXPECT("plain RTP: as they are", memcmp(a, p, 28), 0);
	EXPECT("no more is needed", paqm_proof(p, 28, b), 28);
	EXPECT("no less", proof_len(p, 27), 0);
	EXPECT("empty", proof_len(p, 0), 0);

	for (i = 0; i < 64; i++) { /* nothing is read beyond the packet */
		p[0] = 0x9F;
		EXPECT("cut", proof_len(p, 12 + i), 0);
		p[0] = 0x90;
		EXPECT("cut", proof_len(p, i < 32 ? i : 31), 0);
	}
	for (n = 0; n < 16; n++) { /* sources count as they are */
		make_rtp(p, n, -1);
		EXPECT("CSRC", proof_len(p, sizeof(p)), 28 + 4 * n);
		EXPECT("CSRC, a byte too few", proof_len(p, 28 + 4 * n - 1), 0);
		EXPECT("CSRC, enough", paqm_proof(p, 28 + 4 * n, a), 28 + 4 * n);
		EXPECT("CSRC, as they are", memcmp(a, p, 28 + 4 * n), 0);
	}
	for (n = 0; n < 26; n++) { /* and so does the header extension */
		make_rtp(p, 0, (int)n);
		EXPECT("extension", proof_len(p, sizeof(p)), n <= 24 ? 32 + 4 * n : 0);
		if (n > 24)
			continue;
		EXPECT("extension, a byte too few", proof_len(p, 32 + 4 * n - 1), 0);
		EXPECT("extension, enough", paqm_proof(p, 32 + 4 * n, a), 32 + 4 * n);
		EXPECT("extension, as it is", memcmp(a, p, 32 + 4 * n), 0);
	}
	make_rtp(p, 0, 1);
	paqm_put16(p + 14, 0xFFFF);
	EXPECT("absurd length of the extension", proof_len(p, sizeof(p)), 0);
	paqm_put16(p + 14, 0x4000); /* 4 * 0x4000 is no 16-bit number */
	EXPECT("length that wraps", proof_len(p, sizeof(p)), 0);
	make_rtp(p, 15, 14);
	EXPECT("header of 132 bytes", proof_len(p, sizeof(p)), 0);
	make_rtp(p, 4, -1);
	p[0] |= 0x10;
	EXPECT("cut before the extension", proof_len(p, 28), 0);
	EXPECT("cut in its head", proof_len(p, 31), 0);
	p[0] = 0x40;
	EXPECT("RTP version 1: 28 bytes of whatever it is", proof_len(p, sizeof(p)), 28);
	p[0] = 0xD3;
	EXPECT("RTP version 3: as well", proof_len(p, sizeof(p)), 28);
	p[0] = 0x16; /* DTLS */
	EXPECT("not RTP", paqm_proof(p, sizeof(p), a), 28);
	EXPECT("not RTP: as it is", memcmp(a, p, 28), 0);
	EXPECT("not RTP, too short", proof_len(p, 27), 0);

	/* of an in-band field routers write rate, their id and period: seven bytes */
	n = make_field(p, sizeof(p));
	EXPECT("field: to be quoted", proof_len(p, sizeof(p)), n);
	EXPECT("field: seven bytes less", paqm_proof(p, sizeof(p), a), n - 7);
	EXPECT("field: before", memcmp(a, p, VEC_FIELD_AT + 4), 0);
	EXPECT("field: behind",
	       memcmp(a + VEC_FIELD_AT + 4, p + VEC_FIELD_AT + 11, n - VEC_FIELD_AT - 11), 0);
	for (i = 0; i < n; i++) {
		p[i] ^= 1;
		if (i >= VEC_FIELD_AT + 4 && i < VEC_FIELD_AT + 11)
			EXPECT("a router lowers it",
			       paqm_proof(p, n, b) == n - 7 && !memcmp(a, b, n - 7), 1);
		else
			EXPECT("anything else counts",
			       paqm_proof(p, n, b) == n - 7 && !memcmp(a, b, n - 7), 0);
		p[i] ^= 1;
	}
	paqm_put32(p + VEC_FIELD_AT + 4, 0x7FC00000);
	EXPECT("rate NaN: no field", paqm_proof(p, n, b), n);
	/* a probe with more behind it than is usual */
	for (i = 0; i < sizeof(p); i++)
		p[i] = (paqm_u8)(i * 7 + 1);
	p[0] = PAQM_PROBE_FIRST;
	paqm_field_encode(p + 1, &(struct paqm_field){.rate = 0x4A3EBC20});
	EXPECT("probe", paqm_proof(p, sizeof(p), a), 28 - 7);
	EXPECT("probe of its usual length", paqm_proof(p, PAQM_PROBE_LEN, a), 0);
}

/* Does the tag cover byte @at of the message? */
static int covers(int v6, const paqm_u8 *good, unsigned int len, unsigned int at)
{
	static paqm_u8 buf[PAQM_MSG_MAX], a[PAQM_TAG_BYTES],
		b[PAQM_TAG_BYTES]; /* stacks are small */
	struct paqm_quote q, changed;
	struct paqm_msg m;
	unsigned int n;

	memcpy(buf, good, len);
	seal(buf, len, v6);
	EXPECT("good", decode_into(buf, len, v6, &m, &q), PAQM_MSG_OK);
	n = paqm_tag_bytes(m.object, m.object_len, &q, a);
	buf[at] ^= 1;
	/* ports are read, not pointed at */
	if (paqm_quote_decode(buf + PAQM_ICMP_HDR, ext_of(buf, v6) - PAQM_ICMP_HDR, q.version,
			      &changed))
		return 0; /* no quote any longer, and so refused */
	return paqm_tag_bytes(m.object, m.object_len, &changed, b) != n || memcmp(a, b, n);
}

/* The tag covers for whom the quoted packet was, the object, and the proof; nothing else. */
static void tag_binds(int v6)
{
	unsigned int hlen = VEC_HLEN(v6), len, ext, obj, i, n;
	static paqm_u8 quote[PAQM_QUOTE_MAX], buf[PAQM_MSG_MAX], bytes[PAQM_TAG_BYTES];
	unsigned int to = 8 + (v6 ? 24 : 16), port = 8 + hlen + 2, payload = 8 + hlen + 8, field;
	struct paqm_msg m = sample;
	struct paqm_quote q;

	m.flags |= PAQM_F_AUTH;
	m.ecf = 0x3F59999A;
	m.tag = ~0ULL;
	make_quote(quote, v6, 0);
	n = make_field(quote + hlen + 8, PAQM_PROOF_MAX);
	len = encode(buf, v6, quote, hlen + 8 + n, &m);
	ext = ext_of(buf, v6);
	obj = ext + PAQM_EXT_HDR;
	field = payload + VEC_FIELD_AT;
	for (i = 8; i < len; i++) {
		int want = (i >= to && i < to + (v6 ? 16 : 4)) || i == port || i == port + 1 ||
			   (i >= obj && i < len - 8) ||
			   (i >= payload && i < payload + n && (i < field + 4 || i >= field + 11));

		/* with what says how long things are, more than the byte changes */
		if (i != 8 && i != payload)
			EXPECT("covered", covers(v6, buf, len, i), want);
	}
	EXPECT("decode", decode_into(buf, len, v6, &m, &q), PAQM_MSG_OK);
	EXPECT("bytes", paqm_tag_bytes(m.object, m.object_len, &q, bytes),
	       16 + 2 + PAQM_OBJ_SENT_MAX + n - 7);
	if (v6)
		expect_hex("address", bytes, 18, "fd000000000000030000000000 00000b 1774");
	else
		expect_hex("address", bytes, 18, "00000000000000000000ffff 0a000102 1774");
	EXPECT("object", memcmp(bytes + 18, buf + obj, m.object_len - 8), 0);
	expect_hex("no tag", bytes + 18 + m.object_len - 8, 8, "0000000000000000");
	EXPECT("proof", memcmp(bytes + 18 + m.object_len, quote + hlen + 8, VEC_FIELD_AT + 4), 0);
}

static void check_tag(void)
{
	static paqm_u8 quote[PAQM_QUOTE_MAX], buf[PAQM1_MSG_MAX];
	static paqm_u8 a[PAQM_TAG_BYTES], b[PAQM_TAG_BYTES];
	struct paqm_msg m = sample;
	struct paqm_quote q;
	unsigned int len, n;
	paqm_u64 bit;

	tag_binds(0);
	tag_binds(1);
	for (bit = 1; bit; bit <<= 1) {
		EXPECT("tags that differ",
		       paqm_tag_equal(0x0123456789ABCDEFULL, 0x0123456789ABCDEFULL ^ bit), 0);
	}
	EXPECT("equal tags", paqm_tag_equal(0x0123456789ABCDEFULL, 0x0123456789ABCDEFULL), 1);

	/* version 1 bound it to no flow */
	m.flags |= PAQM_F_AUTH;
	m.ecf = PAQM_F32_ONE;
	len = paqm1_encode(buf, PAQM_ICMP_TYPE_EXP, 0, 0, quote, make_quote(quote, 0, VEC_PLAIN),
			   &m);
	EXPECT("version 1", decode_into(buf, len, 0, &m, &q), PAQM_MSG_OK);
	n = paqm1_tag_bytes(m.object, &q, a);
	EXPECT("version 1: object and proof", n, PAQM1_OBJ_LEN + VEC_PLAIN);
	buf[8 + 16] ^= 1;
	buf[8 + 20 + 2] ^= 1;
	EXPECT("version 1: no address, no port",
	       paqm1_tag_bytes(m.object, &q, b) == n && !memcmp(a, b, n), 1);
}

/* What a host's own key is made of. */
static void check_host_bytes(void)
{
	paqm_u8 addr[16] = {[10] = 0xFF, [11] = 0xFF, 192, 0, 2, 2}, out[PAQM_HOST_BYTES];
	unsigned int i;

	paqm_host_bytes(addr, 0, out);
	expect_hex("IPv4: all of it", out, sizeof(out), "00000000000000000000ffff c0000202 00");
	paqm_host_bytes(addr, 1, out);
	expect_hex("IPv4: second half", out, sizeof(out), "00000000000000000000ffff c0000202 01");
	paqm_host_bytes(sender6, 0, out);
	expect_hex("IPv6: network", out, sizeof(out), "20010db800000002 0000000000000000 00");
	paqm_host_bytes(receiver6, 1, out);
	expect_hex("IPv6: second half", out, sizeof(out), "fd00000000000003 0000000000000000 01");
	for (i = 0; i < 12; i++) { /* all of these are IPv6, however little they differ from IPv4 */
		addr[i] ^= 1;
		paqm_host_bytes(addr, 0, out);
		EXPECT("nearly IPv4", paqm_get32(out + 12), 0);
		EXPECT("its network", memcmp(out, addr, 8), 0);
		addr[i] ^= 1;
	}
}

/* Source Quench of the published system. */
static void check_bare(void)
{
	paqm_u8 buf[PAQM_BARE_LEN + 1];
	struct paqm_quote q;
	struct paqm_msg m;
	unsigned int i;

	memset(buf, 0, sizeof(buf));
	buf[0] = PAQM_ICMP_TYPE_QUENCH;
	paqm_put32(buf + 4, 0x3F000000);
	make_quote(buf + PAQM_ICMP_HDR, 0, 0);
	seal_icmp(buf, PAQM_BARE_LEN, 0);
	EXPECT("bare", paqm_bare_decode(buf, PAQM_BARE_LEN, &m, &q), PAQM_MSG_OK);
	EXPECT("value", m.ecf, 0x3F000000);
	EXPECT("nothing else", !m.rate && !m.seq && !m.object && !m.version, 1);
	EXPECT("no payload", q.payload_len, 0);
	for (i = 0; i < 16; i++) {
		paqm_u8 *copy = VEC_ALLOC(PAQM_BARE_LEN);

		memcpy(copy, buf, PAQM_BARE_LEN);
		copy[PAQM_ICMP_HDR] = (paqm_u8)(0x40 | i);
		seal_icmp(copy, PAQM_BARE_LEN, 0);
		EXPECT("header within the quote", paqm_bare_decode(copy, PAQM_BARE_LEN, &m, &q),
		       i == 5 ? PAQM_MSG_OK : PAQM_MSG_QUOTE);
		VEC_FREE(copy);
	}
	for (i = 0; i <= sizeof(buf); i++)
		if (i != PAQM_BARE_LEN)
			EXPECT("length", paqm_bare_decode(buf, i, &m, &q), PAQM_MSG_SHORT);
	buf[3] ^= 1;
	EXPECT("checksum", paqm_bare_decode(buf, PAQM_BARE_LEN, &m, &q), PAQM_MSG_CHECKSUM);
	paqm_put32(buf + 4, 0);
	seal_icmp(buf, PAQM_BARE_LEN, 0);
	EXPECT("value 0", paqm_bare_decode(buf, PAQM_BARE_LEN, &m, &q), PAQM_MSG_VALUE);
	buf[0] = PAQM_ICMP_TYPE_EXP;
	EXPECT("type", paqm_bare_decode(buf, PAQM_BARE_LEN, &m, &q), PAQM_MSG_TYPE);
}

#endif /* PAQM_MSG_VECTORS_H */
