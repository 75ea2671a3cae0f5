/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Feedback message codec, ICMP and ICMPv6: round trips about every packet that can be quoted, fixed
 * vectors, the bytes that prove a packet and those that a tag covers; refusals (msg_refusals.h).
 *
 * Run in user space and in the kernel: who includes this brings memcpy() and the like and
 * defines EXPECT(what, got, want), VEC_ALLOC(bytes) and VEC_FREE(pointer).
 */
#ifndef PAQM_MSG_VECTORS_H
#define PAQM_MSG_VECTORS_H

#include "msg_kit.h"
#include "msg_refusals.h"

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
