/* SPDX-License-Identifier: GPL-2.0 */
/* What the test vectors are made of: quotes of packets, messages about them, their JSON. */
#include <arpa/inet.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vector_kit.h"

#define KEY_ID 0x0102

const struct paqm_msg vector_sample = {
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
const paqm_u8 vector_router_key[PAQM_SIPHASH_KEY] = {0, 1, 2,  3,  4,  5,  6,  7,
						     8, 9, 10, 11, 12, 13, 14, 15};

const paqm_u8 vector_router6[16] = {0x20, 0x01, 0x0D, 0xB8, [15] = 1};

json_t *vector_hex(const paqm_u8 *p, paqm_u32 len)
{
	char text[2 * (PAQM_MSG_MAX + PAQM_INBAND_MAX) + 3];
	paqm_u32 i;

	for (i = 0; i < len; i++)
		snprintf(text + 2 * i, 3, "%02x", p[i]);
	return json_stringn(text, 2 * len);
}

/* Hexadecimal digits without blanks into @p. Return: bytes. */
paqm_u32 vector_unhex(paqm_u8 *p, const char *text)
{
	return text ? paqm_inband_make(p, text) : 0;
}

json_t *vector_number_hex(unsigned long long v, int digits)
{
	return json_sprintf("%0*llx", digits, v);
}

static json_t *vector_address(int v6, const paqm_u8 *a)
{
	char text[INET6_ADDRSTRLEN];

	return json_string(inet_ntop(v6 ? AF_INET6 : AF_INET, a, text, sizeof(text)));
}

/* binary32 as a number for people; exact in a double */
static double real(paqm_u32 bits)
{
	float f;

	memcpy(&f, &bits, sizeof(f));
	return (double)f;
}

/* The head of an RTP packet as a router quotes it. */
struct vector_quote vector_quote(paqm_u32 options, paqm_u32 payload)
{
	struct vector_quote q = {.hlen = 20 + options, .payload = payload};
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

/* The head of a packet with this payload, which is written as in inband_vectors.h. */
struct vector_quote vector_payload(const char *payload)
{
	paqm_u8 bytes[PAQM_INBAND_MAX];
	struct vector_quote q =
		vector_quote(0, paqm_proof_len(bytes, vector_unhex(bytes, payload)));

	memcpy(q.bytes + q.hlen + 8, bytes, q.payload);
	return q;
}

/* The same packet over IPv6: 2001:db8::2 to 2001:db8::700:0:0:1. */
struct vector_quote vector_to6(const struct vector_quote *v4)
{
	struct vector_quote q = {.hlen = PAQM_IP6_HDR, .payload = v4->payload, .v6 = 1};
	paqm_u8 *ip = q.bytes;

	ip[0] = 0x60;
	paqm_put16(ip + 4, 8 + 1160);
	ip[6] = 17;
	ip[7] = 63;
	memcpy(ip + 8, vector_router6, 16);
	ip[23] = 2;
	memcpy(ip + 24, vector_router6, 16);
	ip[32] = 7;
	memcpy(ip + PAQM_IP6_HDR, v4->bytes + v4->hlen, 8 + v4->payload);
	return q;
}

/* Where the extension structure of a message begins. */
paqm_u32 vector_ext(const paqm_u8 *buf, int v6)
{
	return PAQM_ICMP_HDR + (v6 ? buf[4] * 8U : buf[5] * 4U);
}

/* Checksums again: of the message and, if it has one, of the extension structure. */
void vector_seal(paqm_u8 *buf, paqm_u32 len, int v6, const paqm_u8 *to, int version)
{
	paqm_u32 ext = vector_ext(buf, v6);

	if (version != 1 && ext + PAQM_EXT_HDR <= len && paqm_get16(buf + ext + 2)) {
		paqm_put16(buf + ext + 2, 0);
		paqm_put16(buf + ext + 2, paqm_checksum(buf + ext, len - ext));
	}
	paqm_put16(buf + 2, 0);
	paqm_put16(buf + 2,
		   v6 ? paqm_checksum6(vector_router6, to, buf, len) : paqm_checksum(buf, len));
}

/* The key of the host with this address. */
void vector_derive(const paqm_u8 *router, int v6, const paqm_u8 *addr, paqm_u8 *own)
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

/* Who is told: the source of the quoted packet. */
const paqm_u8 *vector_told(const struct vector_quote *q)
{
	return q->bytes + (q->v6 ? 8 : 12);
}

static void tag(struct paqm_msg *m, const struct vector_quote *q, int version)
{
	paqm_u8 key[PAQM_SIPHASH_KEY], object[PAQM_OBJ_SENT_MAX], bytes[PAQM_TAG_BYTES];
	struct paqm_quote quoted;

	m->flags |= PAQM_F_AUTH;
	m->key_id = KEY_ID;
	if (paqm_quote_decode(q->bytes, q->hlen + 8 + q->payload, q->v6 ? 6 : 4, &quoted))
		abort();
	if (version == 1) {
		paqm1_object_encode(object, m);
		m->tag = paqm_siphash24(vector_router_key, bytes,
					paqm1_tag_bytes(object, &quoted, bytes));
		return;
	}
	vector_derive(vector_router_key, q->v6, vector_told(q), key);
	m->tag = paqm_siphash24(
		key, bytes, paqm_tag_bytes(object, paqm_object_encode(object, m), &quoted, bytes));
}

/* Return: length of the message; @m gets its tag. */
paqm_u32 vector_build(paqm_u8 *buf, const struct vector_how *how, struct paqm_msg *m,
		      const struct vector_quote *q)
{
	paqm_u32 len = q->hlen + 8 + q->payload, ext, obj, n;
	paqm_u8 type = how->type, own[2 * PAQM_OBJ_MAX];

	if (how->tagged)
		tag(m, q, how->version);
	if (how->version == 1)
		return paqm1_encode(buf,
				    type    ? type
				    : q->v6 ? PAQM_ICMP6_TYPE_OLD
					    : PAQM_ICMP_TYPE_EXP,
				    q->v6 ? vector_router6 : NULL, vector_told(q), q->bytes, len,
				    m);
	if (q->v6)
		len = paqm_icmp6_encode(buf, PAQM_ICMP6_TYPE_EXP, vector_router6, vector_told(q),
					q->bytes, len, m);
	else
		len = paqm_icmp_encode(buf, type ? type : PAQM_ICMP_TYPE_EXP, q->bytes, len, m);
	if (!how->options && !how->before && !how->behind && !how->no_checksum && !how->auth)
		return len;
	ext = vector_ext(buf, q->v6);
	obj = ext + PAQM_EXT_HDR;
	n = len - obj;
	memcpy(own, buf + obj, n);
	n += vector_unhex(own + n, how->options);
	paqm_put16(own, (paqm_u16)n);
	own[9] |= how->auth ? PAQM_F_AUTH : 0;
	n = how->alone ? 0 : n;
	len = obj + vector_unhex(buf + obj, how->before);
	memcpy(buf + len, own, n);
	len += n;
	len += vector_unhex(buf + len, how->behind);
	if (how->no_checksum)
		paqm_put16(buf + ext + 2, 0);
	vector_seal(buf, len, q->v6, vector_told(q), how->version);
	return len;
}

json_t *vector_fields(const struct paqm_msg *m, const struct vector_quote *q, int version)
{
	json_t *o = json_object(), *quote = json_object();
	const paqm_u8 *udp = q->bytes + q->hlen;
	paqm_u32 word = q->v6 ? 8 : 4, payload = q->payload;

	if (version != 1) /* zeros up to a word: the rest of the quote is 0 */
		payload = (q->hlen + 8 + payload + word - 1) / word * word - q->hlen - 8;
	json_object_set_new(o, "version", json_integer(version ? version : PAQM_MSG_VERSION));
	json_object_set_new(o, "flags", json_integer(m->flags));
	json_object_set_new(o, "key_id", json_integer(m->key_id));
	json_object_set_new(o, "router_id", vector_number_hex(m->router_id, 16));
	json_object_set_new(o, "boot", vector_number_hex(m->boot, 8));
	json_object_set_new(o, "seq", json_integer(m->seq));
	json_object_set_new(o, "ecf", m->ecf ? vector_number_hex(m->ecf, 8) : json_null());
	json_object_set_new(o, "ecf_value", m->ecf ? json_real(real(m->ecf)) : json_null());
	json_object_set_new(o, "rate_bps", json_integer((json_int_t)m->rate));
	json_object_set_new(o, "period_ms", json_integer(m->period_ms));
	json_object_set_new(o, "qdelay_100us", json_integer(m->qdelay_100us));
	json_object_set_new(o, "flows", json_integer(m->flows));
	json_object_set_new(o, "util", json_integer(m->util));
	json_object_set_new(o, "tag", vector_number_hex(m->tag, 16));
	json_object_set_new(quote, "saddr", vector_address(q->v6, vector_told(q)));
	json_object_set_new(quote, "daddr", vector_address(q->v6, q->bytes + (q->v6 ? 24 : 16)));
	json_object_set_new(quote, "sport", json_integer(paqm_get16(udp)));
	json_object_set_new(quote, "dport", json_integer(paqm_get16(udp + 2)));
	json_object_set_new(quote, "payload", vector_hex(udp + 8, payload));
	json_object_set_new(o, "quote", quote);
	return o;
}

/* A vector with the message in it and, over IPv6, between which addresses. */
json_t *vector_new(const char *name, const paqm_u8 *buf, paqm_u32 len, const struct vector_quote *q)
{
	if (!q->v6)
		return json_pack("{s:s,s:o}", "name", name, "icmp", vector_hex(buf, len));
	return json_pack("{s:s,s:o,s:o,s:o}", "name", name, "src",
			 vector_address(1, vector_router6), "dst",
			 vector_address(1, vector_told(q)), "icmp6", vector_hex(buf, len));
}
