/* SPDX-License-Identifier: GPL-2.0 */
/* Packets for tests and fuzzers: media as a sender emits it, messages as a router does. */
#ifndef PAQMD_TEST_PACKETS_H
#define PAQMD_TEST_PACKETS_H

#include <string.h>

#include "feedback-daemon/judge/engine.h"

#define T_SADDR 0x0A000102U /* 10.0.1.2 */
#define T_DADDR 0x0A000202U
#define T_ROUTER 0x0A000101U
#define T_SPORT 5004
#define T_DPORT 5006
#define T_SSRC 0x11223344U
#define T_PAYLOAD 40
#define T_MEDIA (28 + T_PAYLOAD)

static inline void t_ip(uint8_t *ip, uint8_t proto, uint32_t len, uint32_t saddr, uint32_t daddr)
{
	memset(ip, 0, 20);
	ip[0] = 0x45;
	paqm_put16(ip + 2, (uint16_t)len);
	ip[8] = 64;
	ip[9] = proto;
	paqm_put32(ip + 12, saddr);
	paqm_put32(ip + 16, daddr);
	paqm_put16(ip + 10, paqm_checksum(ip, 20));
}

/* The same flow over IPv6: an IPv4 address a.b.c.d becomes 2001:db8::a.b.c.d. */
static inline void t_v6(uint8_t a[16], uint32_t addr)
{
	memset(a, 0, 16);
	paqm_put32(a, 0x20010DB8U);
	paqm_put32(a + 12, addr);
}

/* Put an IPv6 header in place of the IPv4 header of @p. Return: the new length. */
static inline uint32_t t_to6(uint8_t *p, uint32_t len)
{
	uint8_t body[512], proto = p[9] == 1 ? 58 : p[9];
	uint32_t saddr = paqm_get32(p + 12), daddr = paqm_get32(p + 16);

	memcpy(body, p + 20, len - 20);
	memset(p, 0, 40);
	p[0] = 0x60;
	paqm_put16(p + 4, (uint16_t)(len - 20));
	p[6] = proto;
	p[7] = 64;
	t_v6(p + 8, saddr);
	t_v6(p + 24, daddr);
	memcpy(p + 40, body, len - 20);
	return len + 20;
}

/* RTP packet number @seq with T_PAYLOAD bytes behind UDP. Return: its length. */
static inline uint32_t t_media(uint8_t *p, uint16_t sport, uint32_t ssrc, uint16_t seq)
{
	uint32_t i;

	t_ip(p, 17, T_MEDIA, T_SADDR, T_DADDR);
	paqm_put16(p + 20, sport);
	paqm_put16(p + 22, T_DPORT);
	paqm_put16(p + 24, 8 + T_PAYLOAD);
	paqm_put16(p + 26, 0);
	p[28] = 0x80;
	p[29] = 96;
	paqm_put16(p + 30, seq);
	paqm_put32(p + 32, 90000U + seq);
	paqm_put32(p + 36, ssrc);
	for (i = 12; i < T_PAYLOAD; i++)
		p[28 + i] = (uint8_t)(seq * 7 + i);
	return T_MEDIA;
}

/* The checksum of the extension structure of the message in @len bytes at @icmp, if it has one. */
static inline void t_seal_ext(uint8_t *icmp, uint32_t len, bool v6)
{
	uint32_t at = 8 + (v6 ? icmp[4] * 8U : icmp[5] * 4U);

	if (at == 8 || at + 4 > len)
		return;
	paqm_put16(icmp + at + 2, 0);
	paqm_put16(icmp + at + 2, paqm_checksum(icmp + at, len - at));
}

/* Recompute all checksums after a packet has been changed. */
static inline void t_seal(uint8_t *ip, uint32_t len)
{
	uint32_t hlen = (ip[0] & 15U) * 4;

	if (ip[0] >> 4 == 6 && len >= 48) {
		t_seal_ext(ip + 40, len - 40, true);
		ip[42] = 0;
		ip[43] = 0;
		paqm_put16(ip + 42, paqm_checksum6(ip + 8, ip + 24, ip + 40, len - 40));
		return;
	}
	if (hlen < 20 || len < hlen + 8)
		return;
	t_seal_ext(ip + hlen, len - hlen, false);
	ip[10] = 0;
	ip[11] = 0;
	paqm_put16(ip + 10, paqm_checksum(ip, hlen));
	ip[hlen + 2] = 0;
	ip[hlen + 3] = 0;
	paqm_put16(ip + hlen + 2, paqm_checksum(ip + hlen, len - hlen));
}

#define T_MESSAGE (40 + PAQM_MSG_MAX) /* room for a message */

/* What a router quotes of @media: its proof; of what proves nothing as much as of no RTP. */
static inline uint32_t t_quote(const uint8_t *media)
{
	uint32_t hlen = media[0] >> 4 == 6 ? 40 : (media[0] & 15U) * 4;
	uint32_t proof = paqm_proof_len(media + hlen + 8, paqm_get16(media + hlen + 4) - 8U);

	return hlen + 8 + (proof ? proof : PAQM_PROOF_OTHER);
}

/* Message about @media. Return: its length. */
static inline uint32_t t_message_type(uint8_t *ip, uint8_t type, const uint8_t *media,
				      const struct paqm_msg *m)
{
	uint32_t len;

	len = paqm_icmp_encode(ip + 20, type, media, t_quote(media), m);
	t_ip(ip, 1, 20 + len, T_ROUTER, T_SADDR);
	return 20 + len;
}

/* Message of version 1. Return: its length. */
static inline uint32_t t_message1(uint8_t *ip, const uint8_t *media, const struct paqm_msg *m)
{
	uint32_t len = paqm1_encode(ip + 20, PAQM_ICMP_TYPE_EXP, NULL, NULL, media,
				    20 + 8 + PAQM1_QUOTE_UDP, m);

	t_ip(ip, 1, 20 + len, T_ROUTER, T_SADDR);
	return 20 + len;
}

/* Tag @m about @media with key @id, which is @host's own. */
static inline void t_tag(struct paqm_msg *m, const uint8_t *media, uint16_t id, const uint8_t *host)
{
	uint8_t object[PAQM_OBJ_SENT_MAX], bytes[PAQM_TAG_BYTES];
	struct paqm_quote q;

	if (paqm_quote_decode(media, t_quote(media), media[0] >> 4, &q))
		return;
	m->flags |= PAQM_F_AUTH;
	m->key_id = id;
	m->tag = paqm_siphash24(host, bytes,
				paqm_tag_bytes(object, paqm_object_encode(object, m), &q, bytes));
}

static inline uint32_t t_message(uint8_t *ip, const uint8_t *media, const struct paqm_msg *m)
{
	uint32_t len;

	if (media[0] >> 4 != 6)
		return t_message_type(ip, PAQM_ICMP_TYPE_EXP, media, m);
	t_ip(ip, 58, 20, T_ROUTER, T_SADDR);
	t_to6(ip, 20);
	len = paqm_icmp6_encode(ip + 40, PAQM_ICMP6_TYPE_EXP, ip + 8, ip + 24, media,
				t_quote(media), m);
	paqm_put16(ip + 4, (uint16_t)len);
	return 40 + len;
}

/* Source Quench of the published system: @value, no object. Return: its length. */
static inline uint32_t t_bare(uint8_t *ip, const uint8_t *media, uint32_t value)
{
	uint32_t len = PAQM_BARE_LEN;

	memset(ip + 20, 0, 8);
	ip[20] = PAQM_ICMP_TYPE_QUENCH;
	paqm_put32(ip + 24, value);
	memcpy(ip + 28, media, 28);
	paqm_put16(ip + 22, paqm_checksum(ip + 20, len));
	t_ip(ip, 1, 20 + len, T_ROUTER, T_SADDR);
	return 20 + len;
}

static inline uint32_t t_f32(double v)
{
	float f = (float)v;
	uint32_t bits;

	memcpy(&bits, &f, sizeof(bits));
	return bits;
}

static inline void t_v4(uint8_t a[16], uint32_t addr)
{
	memset(a, 0, 16);
	a[10] = 0xff;
	a[11] = 0xff;
	paqm_put32(a + 12, addr);
}

static inline struct paqm_ipc_register t_reg(uint64_t cookie, uint16_t sport, uint32_t ssrc)
{
	struct paqm_ipc_register r;

	memset(&r, 0, sizeof(r));
	r.hdr.magic = PAQM_IPC_MAGIC;
	r.hdr.version = PAQM_IPC_VERSION;
	r.hdr.kind = PAQM_IPC_REGISTER;
	r.hdr.len = sizeof(r);
	t_v4(r.saddr, T_SADDR);
	t_v4(r.daddr, T_DADDR);
	r.sport = sport;
	r.dport = T_DPORT;
	r.ssrc = ssrc;
	r.floor_bps = 10000;
	r.ceil_bps = 1000000;
	r.cookie = cookie;
	return r;
}

#endif /* PAQMD_TEST_PACKETS_H */
