/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What vectors of the message codec are made of: packets quoted, messages about them. Used by the
 * tests in user space and in the kernel, and by what writes the published vectors; who includes
 * this brings memcpy() and the like.
 */
#ifndef PAQM_MSG_KIT_H
#define PAQM_MSG_KIT_H

#include "../paqm_msg.h"
#include "../paqm_siphash.h"
#include "inband_vectors.h"

#define VEC_PLAIN 28 /* bytes that prove an RTP packet without CSRC and header extension */
#define VEC_KEY_ID 0x0102

static const struct paqm_msg vec_sample = {
	.flags = PAQM_F_FINAL,
	.router_id = 0x1122334455667788ULL,
	.boot = 0xA1B2C3D4,
	.seq = 77,
	.rate = 1600000,
	.period_ms = 250,
	.qdelay_100us = 13,
	.flows = 3,
	.util = 62000,
};

/* 00 01 .. 0f */
static const paqm_u8 vec_router_key[PAQM_SIPHASH_KEY] = {0, 1, 2,  3,  4,  5,  6,  7,
							 8, 9, 10, 11, 12, 13, 14, 15};
static const paqm_u8 vec_router6[16] = {0x20, 0x01, 0x0D, 0xB8, [15] = 1};

/* The head of a packet as a router quotes it. */
struct vec_quote {
	paqm_u8 bytes[PAQM_QUOTE_MAX + 8];
	paqm_u32 hlen;
	paqm_u32 payload;
	int v6;
};

/* How a message is made. */
struct vec_how {
	paqm_u8 type; /* 0: that of carrier `icmp` */
	int version;  /* 0: the present one */
	int tagged;
	const char *options;	     /* more of them in our object, hexadecimal */
	const char *before, *behind; /* objects beside ours */
	int no_checksum;	     /* of the extension structure */
	int alone;		     /* without our object */
	int auth;		     /* the flag, and no tag */
};

/* That of an RTP packet with so many bytes of options and payload. */
static inline struct vec_quote vec_quote(paqm_u32 options, paqm_u32 payload)
{
	struct vec_quote q = {.hlen = 20 + options, .payload = payload};
	paqm_u8 *ip = q.bytes, *udp = ip + q.hlen, *rtp = udp + 8;
	paqm_u32 i;

	ip[0] = (paqm_u8)(0x40 | q.hlen / 4);
	paqm_put16(ip + 2, (paqm_u16)(q.hlen + 8 + 1160));
	paqm_put16(ip + 4, 0x4711);
	paqm_put16(ip + 6, 0x4000);
	ip[8] = 63;
	ip[9] = 17;
	paqm_put32(ip + 12, 0xC0000202); /* 192.0.2.2 */
	paqm_put32(ip + 16, 0xC6336407); /* 198.51.100.7 */
	for (i = 20; i < q.hlen; i++)
		ip[i] = 1; /* no operation */
	paqm_put16(ip + 10, paqm_checksum(ip, q.hlen));
	paqm_put16(udp, 5004);
	paqm_put16(udp + 2, 6004);
	paqm_put16(udp + 4, 8 + 1160);
	paqm_put16(udp + 6, 0xBEEF);
	for (i = 0; i < payload; i++)
		rtp[i] = (paqm_u8)(0x61 + i);
	if (payload >= 12) {
		rtp[0] = 0x80;
		rtp[1] = 96;
		paqm_put16(rtp + 2, 4660);
		paqm_put32(rtp + 4, 0x01020304);
		paqm_put32(rtp + 8, 0xCAFEBABE);
	}
	return q;
}

/* The same packet over IPv6: 2001:db8::2 to 2001:db8::700:0:0:1. */
static inline struct vec_quote vec_to6(struct vec_quote v4)
{
	struct vec_quote q = {.hlen = PAQM_IP6_HDR, .payload = v4.payload, .v6 = 1};
	paqm_u8 *ip = q.bytes;

	ip[0] = 0x60;
	paqm_put16(ip + 4, 8 + 1160);
	ip[6] = 17;
	ip[7] = 63;
	memcpy(ip + 8, vec_router6, 16);
	ip[23] = 2;
	memcpy(ip + 24, vec_router6, 16);
	ip[32] = 7;
	memcpy(ip + PAQM_IP6_HDR, v4.bytes + v4.hlen, 8 + v4.payload);
	return q;
}

static inline struct vec_quote vec_plain(int v6)
{
	return v6 ? vec_to6(vec_quote(0, VEC_PLAIN)) : vec_quote(0, VEC_PLAIN);
}

/* That of a packet with this payload, which is written as in inband_vectors.h. */
static inline struct vec_quote vec_payload(int v6, const char *payload)
{
	paqm_u8 bytes[PAQM_INBAND_MAX];
	struct vec_quote q = vec_quote(0, paqm_proof_len(bytes, paqm_inband_make(bytes, payload)));

	memcpy(q.bytes + q.hlen + 8, bytes, q.payload);
	return v6 ? vec_to6(q) : q;
}

/* Who is told: the source of the quoted packet. */
static inline const paqm_u8 *vec_told(const struct vec_quote *q)
{
	return q->bytes + (q->v6 ? 8 : 12);
}

static inline paqm_u32 vec_quoted(const struct vec_quote *q)
{
	return q->hlen + 8 + q->payload;
}

/* Where the extension structure of a message begins. */
static inline paqm_u32 vec_ext(const paqm_u8 *buf, int v6)
{
	return PAQM_ICMP_HDR + (v6 ? buf[4] * 8U : buf[5] * 4U);
}

static inline void vec_seal_icmp(paqm_u8 *buf, paqm_u32 len, const struct vec_quote *q)
{
	paqm_put16(buf + 2, 0);
	paqm_put16(buf + 2, q->v6 ? paqm_checksum6(vec_router6, vec_told(q), buf, len)
				  : paqm_checksum(buf, len));
}

/* Both checksums again, if the extension structure has one. */
static inline void vec_seal(paqm_u8 *buf, paqm_u32 len, const struct vec_quote *q)
{
	paqm_u32 ext = vec_ext(buf, q->v6);

	if (ext + PAQM_EXT_HDR <= len && paqm_get16(buf + ext + 2)) {
		paqm_put16(buf + ext + 2, 0);
		paqm_put16(buf + ext + 2, paqm_checksum(buf + ext, len - ext));
	}
	vec_seal_icmp(buf, len, q);
}

/* The key of the host with this address. */
static inline void vec_derive(const paqm_u8 *router, int v6, const paqm_u8 *addr, paqm_u8 *own)
{
	paqm_u8 mapped[16] = {[10] = 0xFF, [11] = 0xFF}, bytes[PAQM_HOST_BYTES];
	paqm_u64 half;
	int i, b;

	memcpy(v6 ? mapped : mapped + 12, addr, v6 ? 16 : 4);
	for (i = 0; i < 2; i++) {
		paqm_host_bytes(mapped, i, bytes);
		half = paqm_siphash24(router, bytes, sizeof(bytes));
		for (b = 0; b < 8; b++)
			own[8 * i + b] = (paqm_u8)(half >> 8 * b);
	}
}

static inline void vec_tag(struct paqm_msg *m, const struct vec_quote *q, int version)
{
	paqm_u8 key[PAQM_SIPHASH_KEY], object[PAQM_OBJ_SENT_MAX], bytes[PAQM_TAG_BYTES];
	struct paqm_quote quoted = {0};

	m->flags |= PAQM_F_AUTH;
	m->key_id = VEC_KEY_ID;
	paqm_quote_decode(q->bytes, vec_quoted(q), q->v6 ? 6 : 4, &quoted);
	if (version == 1) {
		paqm1_object_encode(object, m);
		m->tag = paqm_siphash24(vec_router_key, bytes,
					paqm1_tag_bytes(object, &quoted, bytes));
		return;
	}
	vec_derive(vec_router_key, q->v6, vec_told(q), key);
	m->tag = paqm_siphash24(
		key, bytes, paqm_tag_bytes(object, paqm_object_encode(object, m), &quoted, bytes));
}

/* A message that quotes the first @len bytes of @q; its length. */
static inline paqm_u32 vec_encode(paqm_u8 *buf, const struct vec_how *how, const struct paqm_msg *m,
				  const struct vec_quote *q, paqm_u32 len)
{
	paqm_u8 type = how->type ? how->type : PAQM_ICMP_TYPE_EXP;

	if (how->version == 1)
		return paqm1_encode(buf, q->v6 ? PAQM_ICMP6_TYPE_OLD : type,
				    q->v6 ? vec_router6 : 0, vec_told(q), q->bytes, len, m);
	return q->v6 ? paqm_icmp6_encode(buf, PAQM_ICMP6_TYPE_EXP, vec_router6, vec_told(q),
					 q->bytes, len, m)
		     : paqm_icmp_encode(buf, type, q->bytes, len, m);
}

/* Length of the message; @m gets its tag. */
static inline paqm_u32 vec_build(paqm_u8 *buf, const struct vec_how *how, struct paqm_msg *m,
				 const struct vec_quote *q)
{
	paqm_u8 own[2 * PAQM_OBJ_MAX];
	paqm_u32 len, obj, n;

	if (how->tagged)
		vec_tag(m, q, how->version);
	len = vec_encode(buf, how, m, q, vec_quoted(q));
	if (how->version == 1)
		return len;
	obj = vec_ext(buf, q->v6) + PAQM_EXT_HDR;
	n = len - obj;
	memcpy(own, buf + obj, n);
	n += how->options ? paqm_inband_make(own + n, how->options) : 0;
	paqm_put16(own, (paqm_u16)n);
	own[9] |= how->auth ? PAQM_F_AUTH : 0;
	n = how->alone ? 0 : n;
	len = obj + (how->before ? paqm_inband_make(buf + obj, how->before) : 0);
	memcpy(buf + len, own, n);
	len += n;
	len += how->behind ? paqm_inband_make(buf + len, how->behind) : 0;
	vec_seal(buf, len, q);
	if (how->no_checksum) {
		paqm_put16(buf + obj - 2, 0);
		vec_seal_icmp(buf, len, q);
	}
	return len;
}

#endif /* PAQM_MSG_KIT_H */
