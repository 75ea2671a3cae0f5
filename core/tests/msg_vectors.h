/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Feedback message codec, ICMP and ICMPv6: round trip, a fixed vector, every refusal,
 * mutation of every byte, and the invariant bytes of RTP packets with and without header extension.
 *
 * Run in user space and in the kernel: who includes this brings memcpy() and the like and
 * defines EXPECT(what, got, want), VEC_ALLOC(bytes) and VEC_FREE(pointer).
 */
#ifndef PAQM_MSG_VECTORS_H
#define PAQM_MSG_VECTORS_H

#include "../paqm_msg.h"

static const struct paqm_msg sample = {
	.flags = PAQM_F_FINAL,
	.key_id = 0x0102,
	.router_id = 0x1122334455667788ULL,
	.boot = 0xA1B2C3D4,
	.seq = 77,
	.ecf = 0x3F59999A,
	.erf = 0x49C35000,
	.period_ms = 240,
	.qdelay_100us = 13,
	.flows = 3,
	.util = 62000,
	.tag = 0,
};

/* An IPv4/UDP/RTP packet's first bytes as a router would quote them. */
static unsigned int make_quote(paqm_u8 *q, unsigned int payload)
{
	unsigned int i;

	memset(q, 0, 28);
	q[0] = 0x45;
	q[3] = 200;
	q[8] = 64;
	q[9] = 17;
	paqm_put32(q + 12, 0x0A000001);
	paqm_put32(q + 16, 0x0A000102);
	paqm_put16(q + 20, 5004);
	paqm_put16(q + 22, 6004);
	paqm_put16(q + 24, 180);
	for (i = 0; i < payload; i++)
		q[28 + i] = (paqm_u8)(0x80 + i);
	return 28 + payload;
}

/* Decode a copy in a block of exactly @len bytes, so that sanitizers see overreads. */
static enum paqm_msg_err decode(const paqm_u8 *buf, unsigned int len)
{
	paqm_u8 *copy = VEC_ALLOC(len ? len : 1);
	struct paqm_quote q;
	struct paqm_msg m;
	enum paqm_msg_err err;

	if (len)
		memcpy(copy, buf, len);
	err = paqm_icmp_decode(copy, len, PAQM_ICMP_TYPE_EXP, &m, &q);
	if (err == PAQM_MSG_OK) {
		unsigned int i, sum = 0;

		for (i = 0; i < q.payload_len; i++)
			sum += q.payload[i];
		(void)sum;
	}
	VEC_FREE(copy);
	return err;
}

static void fix_checksum(paqm_u8 *buf, unsigned int len)
{
	paqm_put16(buf + 2, 0);
	paqm_put16(buf + 2, paqm_checksum(buf, len));
}

static int same(const struct paqm_msg *a, const struct paqm_msg *b)
{
	return a->flags == b->flags && a->key_id == b->key_id && a->router_id == b->router_id &&
	       a->boot == b->boot && a->seq == b->seq && a->ecf == b->ecf && a->erf == b->erf &&
	       a->period_ms == b->period_ms && a->qdelay_100us == b->qdelay_100us &&
	       a->flows == b->flows && a->util == b->util && a->tag == b->tag;
}

static void check_roundtrip(void)
{
	paqm_u8 quote[PAQM_QUOTE_MAX], buf[PAQM_MSG_MAX];
	struct paqm_quote q;
	struct paqm_msg m;
	unsigned int payload, len;

	for (payload = 0; payload <= PAQM_QUOTE_UDP; payload++) {
		len = paqm_icmp_encode(buf, PAQM_ICMP_TYPE_EXP, quote, make_quote(quote, payload),
				       &sample);
		EXPECT("length", len, 8 + 28 + payload + 48);
		EXPECT("decode", paqm_icmp_decode(buf, len, PAQM_ICMP_TYPE_EXP, &m, &q),
		       PAQM_MSG_OK);
		EXPECT("object", same(&m, &sample), 1);
		EXPECT("sport", q.sport, 5004);
		EXPECT("dport", q.dport, 6004);
		EXPECT("saddr", q.saddr, 0x0A000001);
		EXPECT("daddr", q.daddr, 0x0A000102);
		EXPECT("payload length", q.payload_len, payload);
		EXPECT("payload", memcmp(q.payload, quote + 28, payload), 0);
	}
	EXPECT("quote too short", paqm_icmp_encode(buf, 253, quote, 27, &sample), 0);
	EXPECT("quote too long", paqm_icmp_encode(buf, 253, quote, PAQM_QUOTE_MAX + 1, &sample), 0);
}

static void check_refusals(void)
{
	paqm_u8 quote[PAQM_QUOTE_MAX], good[PAQM_MSG_MAX], buf[PAQM_MSG_MAX + 1];
	unsigned int len, i, bit;

	len = paqm_icmp_encode(good, PAQM_ICMP_TYPE_EXP, quote, make_quote(quote, 28), &sample);
	for (i = 0; i < len; i++) /* every truncation */
		EXPECT("truncated", decode(good, i) != PAQM_MSG_OK, 1);
	for (i = 0; i < len; i++) { /* every flipped bit breaks the checksum or the type */
		for (bit = 0; bit < 8; bit++) {
			memcpy(buf, good, len);
			buf[i] ^= (paqm_u8)(1 << bit);
			EXPECT("bit flip", decode(buf, len),
			       i < 2 ? PAQM_MSG_TYPE : PAQM_MSG_CHECKSUM);
		}
	}
#define TRY(what, offset, byte, want)                                                              \
	do {                                                                                       \
		memcpy(buf, good, len);                                                            \
		buf[offset] = (byte);                                                              \
		fix_checksum(buf, len);                                                            \
		EXPECT(what, decode(buf, len), want);                                              \
	} while (0)
	TRY("magic", len - 48, 'Q', PAQM_MSG_MAGIC);
	TRY("version", len - 44, 2, PAQM_MSG_VERSION_ERR);
	TRY("quoted version 6", 8, 0x65, PAQM_MSG_QUOTE);
	TRY("quoted header too short", 8, 0x44, PAQM_MSG_QUOTE);
	TRY("quoted header beyond the quote", 8, 0x4F, PAQM_MSG_QUOTE);
	TRY("quoted TCP", 8 + 9, 6, PAQM_MSG_QUOTE);
	TRY("quoted later fragment", 8 + 7, 1, PAQM_MSG_QUOTE);
	TRY("negative rate", len - 20, 0xC9, PAQM_MSG_VALUE);
	TRY("ICMP value differs", 5, 0x58, PAQM_MSG_MISMATCH);
	memcpy(buf, good, len);
	paqm_put32(buf + len - 20, 0x7F800000);
	fix_checksum(buf, len);
	EXPECT("infinite rate", decode(buf, len), PAQM_MSG_VALUE);
	paqm_put32(buf + len - 20, 0x7FC00001);
	fix_checksum(buf, len);
	EXPECT("NaN rate", decode(buf, len), PAQM_MSG_VALUE);
	paqm_put32(buf + len - 20, 0);
	fix_checksum(buf, len);
	EXPECT("zero rate", decode(buf, len), PAQM_MSG_VALUE);
	EXPECT("too long", decode(buf, PAQM_MSG_MAX + 1), PAQM_MSG_SHORT);
}

static const paqm_u8 router6[16] = {0x20, 0x01, 0x0d, 0xb8, [15] = 0x01};
static const paqm_u8 sender6[16] = {0x20, 0x01, 0x0d, 0xb8, [7] = 0x02, [15] = 0x0a};
static const paqm_u8 receiver6[16] = {0xfd, [7] = 0x03, [15] = 0x0b};

/* The first bytes of an IPv6/UDP/RTP packet. */
static unsigned int make_quote6(paqm_u8 *q, unsigned int payload)
{
	unsigned int i;

	memset(q, 0, 48);
	q[0] = 0x60;
	q[5] = 180;
	q[6] = 17;
	q[7] = 64;
	memcpy(q + 8, sender6, 16);
	memcpy(q + 24, receiver6, 16);
	paqm_put16(q + 40, 5004);
	paqm_put16(q + 42, 6004);
	paqm_put16(q + 44, 180);
	for (i = 0; i < payload; i++)
		q[48 + i] = (paqm_u8)(0x80 + i);
	return 48 + payload;
}

static enum paqm_msg_err decode6(const paqm_u8 *buf, unsigned int len)
{
	paqm_u8 *copy = VEC_ALLOC(len ? len : 1);
	struct paqm_quote q;
	struct paqm_msg m;
	enum paqm_msg_err err;

	if (len)
		memcpy(copy, buf, len);
	err = paqm_icmp6_decode(copy, len, PAQM_ICMP6_TYPE_EXP, router6, sender6, &m, &q);
	VEC_FREE(copy);
	return err;
}

static void fix_checksum6(paqm_u8 *buf, unsigned int len)
{
	paqm_put16(buf + 2, 0);
	paqm_put16(buf + 2, paqm_checksum6(router6, sender6, buf, len));
}

static void check_roundtrip6(void)
{
	paqm_u8 quote[PAQM_QUOTE_MAX], buf[PAQM_MSG_MAX];
	unsigned int payload, len;
	struct paqm_quote q;
	struct paqm_msg m;

	for (payload = 0; payload <= PAQM_QUOTE_UDP; payload++) {
		len = paqm_icmp6_encode(buf, PAQM_ICMP6_TYPE_EXP, router6, sender6, quote,
					make_quote6(quote, payload), &sample);
		EXPECT("length", len, 8 + 48 + payload + 48);
		EXPECT("decode",
		       paqm_icmp6_decode(buf, len, PAQM_ICMP6_TYPE_EXP, router6, sender6, &m, &q),
		       PAQM_MSG_OK);
		EXPECT("object", same(&m, &sample), 1);
		EXPECT("version", q.version, 6);
		EXPECT("sport", q.sport, 5004);
		EXPECT("dport", q.dport, 6004);
		EXPECT("source", memcmp(q.src, sender6, 16), 0);
		EXPECT("destination", memcmp(q.dst, receiver6, 16), 0);
		EXPECT("payload length", q.payload_len, payload);
		EXPECT("payload", memcmp(q.payload, quote + 48, payload), 0);
		EXPECT("the checksum covers the source",
		       paqm_icmp6_decode(buf, len, PAQM_ICMP6_TYPE_EXP, receiver6, sender6, &m, &q),
		       PAQM_MSG_CHECKSUM);
		EXPECT("the checksum covers the destination",
		       paqm_icmp6_decode(buf, len, PAQM_ICMP6_TYPE_EXP, router6, receiver6, &m, &q),
		       PAQM_MSG_CHECKSUM);
		EXPECT("no ICMP message", decode(buf, len), PAQM_MSG_TYPE);
	}
	EXPECT("quote too short", paqm_icmp6_encode(buf, 100, router6, sender6, quote, 47, &sample),
	       0);
	EXPECT("quote too long", paqm_icmp6_encode(buf, 100, router6, sender6, quote, 77, &sample),
	       0);
}

/*
 * One message byte for byte. The checksum was computed by hand with RFC 1071 over the
 * pseudo header (two addresses, length 132, next header 58) and the message.
 */
static void check_vector6(void)
{
	static const char want[] = "64005fdf3f59999a"
				   "6000000000b4114020010db8000000020000000000 00000a"
				   "fd000000000000030000000000 00000b138c177400b40000"
				   "808182838485868788898a8b8c8d8e8f909192939495969798999a9b"
				   "5041514d01040102112233445566 7788a1b2c3d40000004d"
				   "3f59999a49c3500000f0000d0003f2300000000000000000";
	paqm_u8 quote[PAQM_QUOTE_MAX], buf[PAQM_MSG_MAX];
	char hex[2 * PAQM_MSG_MAX + 1], plain[sizeof(want)];
	unsigned int len, i, n = 0;

	len = paqm_icmp6_encode(buf, PAQM_ICMP6_TYPE_EXP, router6, sender6, quote,
				make_quote6(quote, PAQM_QUOTE_UDP), &sample);
	for (i = 0; i < len; i++)
		snprintf(hex + 2 * i, 3, "%02x", buf[i]);
	for (i = 0; want[i]; i++)
		if (want[i] != ' ')
			plain[n++] = want[i];
	plain[n] = 0;
	EXPECT("vector", strcmp(hex, plain), 0);
}

static void check_refusals6(void)
{
	paqm_u8 quote[PAQM_QUOTE_MAX], good[PAQM_MSG_MAX], buf[PAQM_MSG_MAX + 1];
	unsigned int len, i, bit;

	len = paqm_icmp6_encode(good, PAQM_ICMP6_TYPE_EXP, router6, sender6, quote,
				make_quote6(quote, 28), &sample);
	for (i = 0; i < len; i++)
		EXPECT("truncated", decode6(good, i) != PAQM_MSG_OK, 1);
	for (i = 0; i < len; i++) {
		for (bit = 0; bit < 8; bit++) {
			memcpy(buf, good, len);
			buf[i] ^= (paqm_u8)(1 << bit);
			EXPECT("bit flip", decode6(buf, len),
			       i < 2 ? PAQM_MSG_TYPE : PAQM_MSG_CHECKSUM);
		}
	}
#define TRY6(what, offset, byte, want)                                                             \
	do {                                                                                       \
		memcpy(buf, good, len);                                                            \
		buf[offset] = (byte);                                                              \
		fix_checksum6(buf, len);                                                           \
		EXPECT(what, decode6(buf, len), want);                                             \
	} while (0)
	TRY6("magic", len - 48, 'Q', PAQM_MSG_MAGIC);
	TRY6("version", len - 44, 2, PAQM_MSG_VERSION_ERR);
	TRY6("quoted version 4", 8, 0x45, PAQM_MSG_QUOTE);
	TRY6("quoted TCP", 8 + 6, 6, PAQM_MSG_QUOTE);
	TRY6("quoted fragment header", 8 + 6, 44, PAQM_MSG_QUOTE);
	TRY6("negative rate", len - 20, 0xC9, PAQM_MSG_VALUE);
	TRY6("ICMP value differs", 5, 0x58, PAQM_MSG_MISMATCH);
	EXPECT("too long", decode6(buf, PAQM_MSG_MAX + 1), PAQM_MSG_SHORT);
}

static void check_sequence(void)
{
	EXPECT("newer", paqm_seq_newer(2, 1), 1);
	EXPECT("same", paqm_seq_newer(1, 1), 0);
	EXPECT("older", paqm_seq_newer(1, 2), 0);
	EXPECT("wrapped", paqm_seq_newer(3, 0xFFFFFFF0), 1);
	EXPECT("wrapped back", paqm_seq_newer(0xFFFFFFF0, 3), 0);
}

static void check_invariant(void)
{
	paqm_u8 rtp[40], a[PAQM_QUOTE_UDP], b[PAQM_QUOTE_UDP];
	unsigned int i, n, m;

	for (i = 0; i < sizeof(rtp); i++)
		rtp[i] = (paqm_u8)(i * 7);
	rtp[0] = 0x80;
	n = paqm_rtp_invariant(rtp, sizeof(rtp), a);
	EXPECT("plain RTP: all quoted bytes", n, 28);
	EXPECT("plain RTP: the same bytes", memcmp(a, rtp, 28), 0);
	m = paqm_rtp_invariant(rtp, 28, b);
	EXPECT("quote and packet agree", m == n && !memcmp(a, b, n), 1);

	rtp[0] = 0x90; /* extension of one word behind the fixed header */
	paqm_put16(rtp + 12, 0xBEDE);
	paqm_put16(rtp + 14, 1);
	n = paqm_rtp_invariant(rtp, sizeof(rtp), a);
	EXPECT("extension: header and what is behind it", n, 12 + 8);
	EXPECT("extension: payload", memcmp(a + 12, rtp + 20, 8), 0);
	rtp[16] ^= 0xFF; /* a router lowers the in-band rate */
	m = paqm_rtp_invariant(rtp, sizeof(rtp), b);
	EXPECT("extension bytes do not count", m == n && !memcmp(a, b, n), 1);
	paqm_put16(rtp + 14, 0xFFFF);
	EXPECT("absurd extension length", paqm_rtp_invariant(rtp, sizeof(rtp), a), 12);
	EXPECT("cut before the extension", paqm_rtp_invariant(rtp, 13, a), 12);
	EXPECT("empty", paqm_rtp_invariant(rtp, 0, a), 0);
	rtp[0] = 0x16; /* DTLS: taken as a whole */
	EXPECT("not RTP", paqm_rtp_invariant(rtp, sizeof(rtp), a), 28);
}

#endif /* PAQM_MSG_VECTORS_H */
