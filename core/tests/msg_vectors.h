/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Feedback message codec, ICMP and ICMPv6: round trips about every packet that can be quoted, all
 * that is published (msg_cases.h), fixed vectors, mutation of every byte, the bytes that prove a
 * packet and those that a tag covers.
 *
 * Run in user space and in the kernel: who includes this brings memcpy() and the like and
 * defines EXPECT(what, got, want), VEC_ALLOC(bytes) and VEC_FREE(pointer).
 */
#ifndef PAQM_MSG_VECTORS_H
#define PAQM_MSG_VECTORS_H

#include "msg_cases.h"

#define VEC_FIELD_AT 17 /* of an in-band field in a header extension of its own */

static const struct vec_how vec_now, vec_old = {.version = 1};

static enum paqm_msg_err decode_into(const paqm_u8 *buf, unsigned int len,
				     const struct vec_quote *from, struct paqm_msg *m,
				     struct paqm_quote *q)
{
	if (from->v6)
		return paqm_icmp6_decode(buf, len, vec_router6, vec_told(from), m, q);
	return paqm_icmp_decode(buf, len, m, q);
}

/* Decode a copy in a block of exactly @len bytes, so that sanitizers see overreads. */
static enum paqm_msg_err decode(const paqm_u8 *buf, unsigned int len, const struct vec_quote *from)
{
	paqm_u8 *copy = VEC_ALLOC(len ? len : 1), bytes[PAQM_TAG_BYTES];
	enum paqm_msg_err err;
	struct paqm_quote q;
	struct paqm_msg m;
	unsigned int n;

	if (len)
		memcpy(copy, buf, len);
	err = decode_into(copy, len, from, &m, &q);
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

static int same_fields(const struct paqm_msg *a, const struct paqm_msg *b)
{
	return a->flags == b->flags && a->key_id == b->key_id && a->router_id == b->router_id &&
	       a->boot == b->boot && a->seq == b->seq && a->ecf == b->ecf && a->rate == b->rate &&
	       a->period_ms == b->period_ms && a->qdelay_100us == b->qdelay_100us &&
	       a->flows == b->flows && a->util == b->util && a->tag == b->tag;
}

/* Of a message of @version about @from comes out @want, and what it is about. */
static void expect_message(const char *what, const paqm_u8 *buf, unsigned int len, int version,
			   const struct vec_quote *from, const struct paqm_msg *want)
{
	unsigned int word = version == 1 ? 1 : from->v6 ? 8 : 4, hlen = from->hlen, i;
	unsigned int padded = (vec_quoted(from) + word - 1) / word * word;
	const paqm_u8 *quote = from->bytes;
	struct paqm_quote q;
	struct paqm_msg m;

	EXPECT(what, decode_into(buf, len, from, &m, &q), PAQM_MSG_OK);
	EXPECT(what, decode(buf, len, from), PAQM_MSG_OK);
	EXPECT(what, m.version, version);
	EXPECT(what, same_fields(&m, want), 1);
	EXPECT(what, m.object_len, version == 1 ? PAQM1_OBJ_LEN : paqm_get16(m.object));
	EXPECT(what, m.object >= buf + 8 + padded && m.object + m.object_len <= buf + len, 1);
	EXPECT(what, q.version, from->v6 ? 6 : 4);
	EXPECT(what, q.ip_hlen, hlen);
	EXPECT(what, memcmp(q.src, vec_told(from), from->v6 ? 16 : 4), 0);
	EXPECT(what, memcmp(q.dst, quote + (from->v6 ? 24 : 16), from->v6 ? 16 : 4), 0);
	EXPECT(what, q.saddr, from->v6 ? 0 : paqm_get32(quote + 12));
	EXPECT(what, q.daddr, from->v6 ? 0 : paqm_get32(quote + 16));
	EXPECT(what, q.sport, paqm_get16(quote + hlen));
	EXPECT(what, q.dport, paqm_get16(quote + hlen + 2));
	EXPECT(what, q.payload_len, padded - hlen - 8);
	EXPECT(what, memcmp(q.payload, quote + hlen + 8, from->payload), 0);
	for (i = vec_quoted(from); i < padded; i++)
		EXPECT("padding", buf[8 + i], 0);
}

/* The tag is right, and no bit of what it covers may change. */
static void expect_tag(const struct vec_case *c)
{
	paqm_u8 bytes[PAQM_TAG_BYTES], key[PAQM_SIPHASH_KEY];
	struct paqm_quote q;
	struct paqm_msg m;
	unsigned int n, i;

	decode_into(c->buf, c->len, c->q, &m, &q);
	EXPECT(c->name, m.flags & PAQM_F_AUTH, PAQM_F_AUTH);
	memcpy(key, vec_router_key, sizeof(key));
	if (m.version == 1) {
		n = paqm1_tag_bytes(m.object, &q, bytes);
	} else {
		n = paqm_tag_bytes(m.object, m.object_len, &q, bytes);
		vec_derive(vec_router_key, q.version == 6, q.src, key);
	}
	EXPECT(c->name, paqm_tag_equal(paqm_siphash24(key, bytes, n), m.tag), 1);
	for (i = 0; i < 8 * n; i++) {
		bytes[i / 8] ^= (paqm_u8)(1 << i % 8);
		EXPECT("a changed bit", paqm_siphash24(key, bytes, n) == m.tag, 0);
		bytes[i / 8] ^= (paqm_u8)(1 << i % 8);
	}
	for (i = 0; i < 64; i++)
		EXPECT("a tag with another bit", paqm_tag_equal(m.tag, m.tag ^ 1ULL << i), 0);
}

/* What is published. */
static void vec_take(const struct vec_case *c)
{
	if (c->want != PAQM_MSG_OK) {
		EXPECT(c->name, decode(c->buf, c->len, c->q), c->want);
		return;
	}
	expect_message(c->name, c->buf, c->len, c->how.version ? 1 : 2, c->q, &c->m);
	if (c->how.tagged)
		expect_tag(c);
}

static void check_published(void)
{
	vec_messages();
	vec_messages6();
	vec_version1();
	vec_refused();
}

/* What comes back of a message about @q. */
__attribute__((__noinline__)) static void roundtrip(const struct vec_quote *q,
						    const struct paqm_msg *want)
{
	unsigned int word = q->v6 ? 8 : 4, padded = (vec_quoted(q) + word - 1) / word * word, n;
	paqm_u8 buf[PAQM_MSG_MAX], proof[PAQM_PROOF_MAX], again[PAQM_PROOF_MAX];

	memset(buf, 0xA5, sizeof(buf)); /* nothing of what was there may shine through */
	n = vec_encode(buf, &vec_now, want, q, vec_quoted(q));
	EXPECT("length", n,
	       8 + padded + 4 + 44 + (want->ecf ? 8 : 0) + (want->flags & PAQM_F_AUTH ? 12 : 0));
	EXPECT("length beforehand", n, paqm_icmp_len(q->v6, vec_quoted(q), want));
	EXPECT("no longer than a router's", n <= PAQM_MSG_SENT_MAX || q->hlen > 40, 1);
	expect_message("round trip", buf, n, 2, q, want);
	n = paqm_proof(q->bytes + q->hlen + 8, q->payload, proof);
	if (n) {
		EXPECT("proof of the quote",
		       paqm_proof(buf + 8 + q->hlen + 8, padded - q->hlen - 8, again), n);
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

static void expect_hex(const char *what, const paqm_u8 *p, unsigned int len, const char *want)
{
	paqm_u8 bytes[PAQM_INBAND_MAX];

	EXPECT(what, len, paqm_inband_make(bytes, want));
	EXPECT(what, memcmp(p, bytes, len), 0);
}

/* Whatever a packet proves itself with comes through, over IPv4 and IPv6. */
__attribute__((__noinline__)) static void roundtrips(int v6)
{
	struct vec_quote q = vec_plain(v6);
	unsigned int head = q.hlen + 8, most = head + PAQM_PROOF_MAX, csrc, n, i;
	static paqm_u8 buf[PAQM_MSG_MAX]; /* a kernel of 32 bit has little stack */
	struct paqm_msg m = vec_sample;
	int words;

	for (n = 0; n <= PAQM_PROOF_MAX; n++) { /* what is padded, too */
		q = vec_quote(0, n);
		q = v6 ? vec_to6(q) : q;
		roundtrip(&q, &m);
	}
	for (csrc = 0; csrc < 16; csrc++) {
		for (words = -1; words < 26; words++) {
			n = make_rtp(q.bytes + head, csrc, words) + 16;
			EXPECT("proof of the packet",
			       paqm_proof_len(q.bytes + head, PAQM_PROOF_MAX),
			       n <= PAQM_PROOF_MAX ? n : 0);
			q.payload = n;
			if (n <= PAQM_PROOF_MAX)
				roundtrip(&q, &m);
		}
	}
	q = vec_plain(v6);
	for (i = 0; i < 4; i++) { /* with and without options */
		m = vec_sample;
		m.ecf = i & 1 ? 0x3F59999A : 0;
		m.flags |= i & 2 ? PAQM_F_AUTH : 0;
		m.key_id = i & 2 ? 0x0102 : 0;
		m.tag = i & 2 ? 0xFEDCBA9876543210ULL : 0;
		roundtrip(&q, &m);
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
	roundtrip(&q, &m);
	m.rate = 1;
	roundtrip(&q, &m);
	m = vec_sample;
	EXPECT("quote too short", vec_encode(buf, &vec_now, &m, &q, head - 1), 0);
	EXPECT("quote too long",
	       vec_encode(buf, &vec_now, &m, &q, v6 ? most + 1 : PAQM_QUOTE_MAX + 1), 0);
	m.rate = 0;
	n = vec_encode(buf, &vec_now, &m, &q, vec_quoted(&q));
	EXPECT("rate 0", decode(buf, n, &q), PAQM_MSG_VALUE);
	m.rate = PAQM_VALUE_MAX + 1;
	n = vec_encode(buf, &vec_now, &m, &q, vec_quoted(&q));
	EXPECT("rate too large", decode(buf, n, &q), PAQM_MSG_VALUE);
	/* a quote of the most that there may be of payload */
	q = vec_quote(0, PAQM_PROOF_MAX);
	q = v6 ? vec_to6(q) : q;
	roundtrip(&q, &vec_sample);
}

static void check_roundtrip(void)
{
	unsigned int options;
	struct vec_quote q;

	roundtrips(0);
	for (options = 4; options <= 40; options += 4) {
		q = vec_quote(options, VEC_PLAIN + 3);
		roundtrip(&q, &vec_sample);
	}
}

static void check_roundtrip6(void)
{
	struct vec_quote q = vec_plain(1);
	const paqm_u8 *told = vec_told(&q), *other = q.bytes + 24;
	static paqm_u8 buf[PAQM_MSG_MAX];
	struct paqm_quote quoted;
	struct paqm_msg m;
	unsigned int len;

	roundtrips(1);
	len = vec_encode(buf, &vec_now, &vec_sample, &q, vec_quoted(&q));
	EXPECT("the checksum covers the source",
	       paqm_icmp6_decode(buf, len, other, told, &m, &quoted), PAQM_MSG_CHECKSUM);
	EXPECT("the checksum covers the destination",
	       paqm_icmp6_decode(buf, len, vec_router6, other, &m, &quoted), PAQM_MSG_CHECKSUM);
	q.v6 = 0;
	EXPECT("no ICMP message", decode(buf, len, &q), PAQM_MSG_TYPE);
}

/*
 * Messages byte for byte. The checksums were computed apart from this code, with RFC 1071 over the
 * extension structure and then over the message; over IPv6 with the pseudo header (two addresses,
 * length 156, next header 58).
 */
static void check_vectors(void)
{
	struct vec_quote q = {.hlen = 20, .payload = VEC_PLAIN};
	struct paqm_msg m = vec_sample;
	paqm_u8 buf[PAQM_MSG_MAX];
	unsigned int len;

#define PAYLOAD "138c177400b40000 808182838485868788898a8b8c8d8e8f909192939495969798999a9b"
#define QUOTE4 "450000c80000000040110000 0a000001 0a000102" PAYLOAD
#define QUOTE6                                                                                     \
	"6000000000b41140 20010db800000002000000000000000a"                                        \
	"fd00000000000003000000000000000b" PAYLOAD
	m.period_ms = 240;
	paqm_inband_make(q.bytes, QUOTE4);
	len = vec_encode(buf, &vec_now, &m, &q, vec_quoted(&q));
	expect_hex("IPv4", buf, len,
		   "fd007e94000e0000" QUOTE4
		   "200070cc 002cf701 5041514d 0204 0000 1122334455667788 a1b2c3d4 0000004d"
		   "0000000000186a00 00f0 000d 0003 f230");
	m.ecf = 0x3F59999A;
	m.flags |= PAQM_F_AUTH;
	m.key_id = 0x0102;
	m.tag = 0xFEDCBA9876543210ULL;
	q = (struct vec_quote){.hlen = 40, .payload = VEC_PLAIN, .v6 = 1};
	paqm_inband_make(q.bytes, QUOTE6);
	len = vec_encode(buf, &vec_now, &m, &q, vec_quoted(&q));
	expect_hex("IPv6", buf, len,
		   "c8004b610a000000" QUOTE6 "00000000"
		   "2000b4d1 0040f701 5041514d 020c 0102 1122334455667788 a1b2c3d4 0000004d"
		   "0000000000186a00 00f0 000d 0003 f230 00010004 3f59999a"
		   "80010008 fedcba9876543210");
}

/* Nothing that is cut or changed is believed; with right checksums nothing is read beyond it. */
static void mutate(const struct vec_quote *q, const paqm_u8 *good, unsigned int len)
{
	paqm_u8 buf[PAQM_MSG_MAX];
	unsigned int i, bit;

	for (i = 0; i < len; i++) {
		if (i < PAQM_ICMP_HDR + q->hlen + 8 + PAQM_EXT_HDR + PAQM_OBJ_FIXED)
			EXPECT("too short", decode(good, i, q), PAQM_MSG_SHORT);
		EXPECT("truncated", decode(good, i, q) != PAQM_MSG_OK, 1);
		memcpy(buf, good, len);
		if (i >= PAQM_ICMP_HDR)
			vec_seal(buf, i, q);
		EXPECT("truncated and sealed", decode(buf, i, q) != PAQM_MSG_OK, 1);
	}
	for (i = 0; i < len; i++) {
		for (bit = 0; bit < 8; bit++) {
			memcpy(buf, good, len);
			buf[i] ^= (paqm_u8)(1 << bit);
			EXPECT("bit flip", decode(buf, len, q),
			       i < 2 ? PAQM_MSG_TYPE : PAQM_MSG_CHECKSUM);
			vec_seal_icmp(buf, len, q);
			decode(buf, len, q);
			vec_seal(buf, len, q);
			decode(buf, len, q);
		}
	}
}

static void check_mutations(void)
{
	static paqm_u8 good[PAQM_MSG_MAX];
	struct vec_how how = {.tagged = 1};
	struct paqm_msg m = vec_sample;
	struct vec_quote q;
	int v6;

	m.ecf = 0x3F59999A;
	for (v6 = 0; v6 < 2; v6++) {
		q = vec_plain(v6);
		mutate(&q, good, vec_build(good, &how, &m, &q));
	}
}

/* Version 1 is read for one release more, over IPv4 and as ICMPv6 type 100. */
static void check_version1(void)
{
	paqm_u8 buf[PAQM1_MSG_MAX + 8];
	struct paqm_msg m, want = vec_sample;
	struct paqm_quote quoted;
	unsigned int len = 0, payload;
	struct vec_quote q;
	int v6;

	want.ecf = 0x3F59999A;
	want.flags |= PAQM_F_AUTH;
	want.key_id = 7;
	want.tag = 0x0102030405060708ULL;
	for (v6 = 0; v6 < 2; v6++) {
		for (payload = 0; payload <= PAQM1_QUOTE_UDP; payload++) {
			q = vec_quote(0, payload);
			q = v6 ? vec_to6(q) : q;
			len = vec_encode(buf, &vec_old, &want, &q, vec_quoted(&q));
			EXPECT("length", len, 8 + vec_quoted(&q) + 48);
			expect_message("version 1", buf, len, 1, &q, &want);
		}
		mutate(&q, buf, len);
		EXPECT("quote too short", vec_encode(buf, &vec_old, &want, &q, q.hlen + 7), 0);
		EXPECT("quote too long",
		       vec_encode(buf, &vec_old, &want, &q, v6 ? 77 : PAQM1_QUOTE_MAX + 1), 0);
		/* its rate is binary32: rounded, at least 1 bit/s */
		m = want;
		m.rate = 16777217;
		len = vec_encode(buf, &vec_old, &m, &q, vec_quoted(&q));
		EXPECT("rounded", decode_into(buf, len, &q, &m, &quoted), PAQM_MSG_OK);
		EXPECT("rounded rate", m.rate, 16777216);
		paqm_put32(buf + len - 20, 0x35800000); /* 2^-20 */
		vec_seal_icmp(buf, len, &q);
		EXPECT("least", decode_into(buf, len, &q, &m, &quoted), PAQM_MSG_OK);
		EXPECT("least rate", m.rate, 1);
	}
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

/* What of the published payloads proves their packets, and what of what is quoted. */
static void published_proofs(void)
{
	paqm_u8 p[PAQM_INBAND_MAX], want[PAQM_INBAND_MAX], got[PAQM_PROOF_MAX];
	unsigned int i, len, n, quoted;

	for (i = 0; i < sizeof(vec_proofs) / sizeof(vec_proofs[0]); i++) {
		len = paqm_inband_make(p, vec_proofs[i].payload);
		n = vec_proofs[i].proof ? paqm_inband_make(want, vec_proofs[i].proof) : 0;
		quoted = proof_len(p, len);
		EXPECT(vec_proofs[i].name, paqm_proof(p, len, got), n);
		EXPECT(vec_proofs[i].name, memcmp(got, want, n), 0);
		EXPECT(vec_proofs[i].name, quoted <= len && !quoted == !n, 1);
		if (n)
			EXPECT(vec_proofs[i].name, paqm_proof(p, quoted, got), n);
	}
}

static void check_proof(void)
{
	paqm_u8 p[PAQM_PROOF_MAX + 32], a[PAQM_PROOF_MAX], b[PAQM_PROOF_MAX];
	unsigned int i, n;

	published_proofs();
	for (i = 0; i < sizeof(p); i++)
		p[i] = (paqm_u8)(i * 7);
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
	make_rtp(p, 15, 14);
	EXPECT("header of 132 bytes", proof_len(p, sizeof(p)), 0);
	make_rtp(p, 4, -1);
	p[0] |= 0x10;
	EXPECT("cut before the extension", proof_len(p, 28), 0);
	EXPECT("cut in its head", proof_len(p, 31), 0);
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
}

/* Does the tag cover byte @at of the message? */
static int covers(const struct vec_quote *from, const paqm_u8 *good, unsigned int len,
		  unsigned int at)
{
	static paqm_u8 buf[PAQM_MSG_MAX], a[PAQM_TAG_BYTES],
		b[PAQM_TAG_BYTES]; /* stacks are small */
	struct paqm_quote q, changed;
	struct paqm_msg m;
	unsigned int n;

	memcpy(buf, good, len);
	EXPECT("good", decode_into(buf, len, from, &m, &q), PAQM_MSG_OK);
	n = paqm_tag_bytes(m.object, m.object_len, &q, a);
	buf[at] ^= 1;
	/* ports are read, not pointed at */
	if (paqm_quote_decode(buf + PAQM_ICMP_HDR, vec_ext(buf, from->v6) - PAQM_ICMP_HDR,
			      q.version, &changed))
		return 0; /* no quote any longer, and so refused */
	return paqm_tag_bytes(m.object, m.object_len, &changed, b) != n || memcmp(a, b, n);
}

/* The tag covers for whom the quoted packet was, the object, and the proof; nothing else. */
static void tag_binds(int v6)
{
	struct vec_quote from = v6 ? vec_to6(vec_quote(0, 0)) : vec_quote(0, 0);
	static paqm_u8 buf[PAQM_MSG_MAX], bytes[PAQM_TAG_BYTES];
	unsigned int hlen = from.hlen, len, obj, i, n;
	unsigned int to = 8 + (v6 ? 24 : 16), port = 8 + hlen + 2, payload = 8 + hlen + 8, field;
	struct paqm_msg m = vec_sample;
	struct paqm_quote q;

	m.flags |= PAQM_F_AUTH;
	m.ecf = 0x3F59999A;
	m.tag = ~0ULL;
	n = make_field(from.bytes + hlen + 8, PAQM_PROOF_MAX);
	from.payload = n;
	len = vec_encode(buf, &vec_now, &m, &from, vec_quoted(&from));
	obj = vec_ext(buf, v6) + PAQM_EXT_HDR;
	field = payload + VEC_FIELD_AT;
	for (i = 8; i < len; i++) {
		int want = (i >= to && i < to + (v6 ? 16 : 4)) || i == port || i == port + 1 ||
			   (i >= obj && i < len - 8) ||
			   (i >= payload && i < payload + n && (i < field + 4 || i >= field + 11));

		/* with what says how long things are, more than the byte changes */
		if (i != 8 && i != payload)
			EXPECT("covered", covers(&from, buf, len, i), want);
	}
	EXPECT("decode", decode_into(buf, len, &from, &m, &q), PAQM_MSG_OK);
	EXPECT("bytes", paqm_tag_bytes(m.object, m.object_len, &q, bytes),
	       16 + 2 + PAQM_OBJ_SENT_MAX + n - 7);
	expect_hex("address", bytes, 18,
		   v6 ? "20010db8000000000700000000000001 1774"
		      : "00000000000000000000ffff c6336407 1774");
	EXPECT("object", memcmp(bytes + 18, buf + obj, m.object_len - 8), 0);
	expect_hex("no tag", bytes + 18 + m.object_len - 8, 8, "0000000000000000");
	EXPECT("proof", memcmp(bytes + 18 + m.object_len, from.bytes + hlen + 8, VEC_FIELD_AT + 4),
	       0);
}

static void check_tag(void)
{
	static paqm_u8 buf[PAQM1_MSG_MAX];
	static paqm_u8 a[PAQM_TAG_BYTES], b[PAQM_TAG_BYTES];
	struct vec_quote from = vec_plain(0);
	struct paqm_msg m = vec_sample;
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
	len = vec_encode(buf, &vec_old, &m, &from, vec_quoted(&from));
	EXPECT("version 1", decode_into(buf, len, &from, &m, &q), PAQM_MSG_OK);
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
	paqm_u8 addr[16] = {[10] = 0xFF, [11] = 0xFF, 192, 0, 2, 2}, out[PAQM_HOST_BYTES], v6[16];
	unsigned int i;

	paqm_host_bytes(addr, 0, out);
	expect_hex("IPv4: all of it", out, sizeof(out), "00000000000000000000ffff c0000202 00");
	paqm_host_bytes(addr, 1, out);
	expect_hex("IPv4: second half", out, sizeof(out), "00000000000000000000ffff c0000202 01");
	paqm_inband_make(v6, "20010db8000000020000000000 00000a");
	paqm_host_bytes(v6, 0, out);
	expect_hex("IPv6: network", out, sizeof(out), "20010db800000002 0000000000000000 00");
	paqm_inband_make(v6, "fd000000000000030000000000 00000b");
	paqm_host_bytes(v6, 1, out);
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
	struct vec_quote from = vec_quote(0, 0);
	paqm_u8 buf[PAQM_BARE_LEN + 1];
	struct paqm_quote q;
	struct paqm_msg m;
	unsigned int i;

	memset(buf, 0, sizeof(buf));
	buf[0] = PAQM_ICMP_TYPE_QUENCH;
	paqm_put32(buf + 4, 0x3F000000);
	memcpy(buf + PAQM_ICMP_HDR, from.bytes, vec_quoted(&from));
	vec_seal_icmp(buf, PAQM_BARE_LEN, &from);
	EXPECT("bare", paqm_bare_decode(buf, PAQM_BARE_LEN, &m, &q), PAQM_MSG_OK);
	EXPECT("value", m.ecf, 0x3F000000);
	EXPECT("nothing else", !m.rate && !m.seq && !m.object && !m.version, 1);
	EXPECT("no payload", q.payload_len, 0);
	for (i = 0; i < 16; i++) {
		paqm_u8 *copy = VEC_ALLOC(PAQM_BARE_LEN);

		memcpy(copy, buf, PAQM_BARE_LEN);
		copy[PAQM_ICMP_HDR] = (paqm_u8)(0x40 | i);
		vec_seal_icmp(copy, PAQM_BARE_LEN, &from);
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
	vec_seal_icmp(buf, PAQM_BARE_LEN, &from);
	EXPECT("value 0", paqm_bare_decode(buf, PAQM_BARE_LEN, &m, &q), PAQM_MSG_VALUE);
	buf[0] = PAQM_ICMP_TYPE_EXP;
	EXPECT("type", paqm_bare_decode(buf, PAQM_BARE_LEN, &m, &q), PAQM_MSG_TYPE);
}

#endif /* PAQM_MSG_VECTORS_H */
