/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Feedback message, version 1: layout, encoder and decoder (docs/protocol.md).
 *
 *   ICMP header, 8 bytes   type, code 0, checksum, value (binary32)
 *   quote                  the offending IPv4 or IPv6 header, 8 bytes of UDP header
 *                          and up to PAQM_QUOTE_UDP bytes of UDP payload
 *   PAQM object, 48 bytes  always the last 48 bytes of the message
 *
 * ICMP quotes IPv4, ICMPv6 quotes IPv6 without extension headers; the checksum of
 * ICMPv6 covers the addresses of the message too (RFC 4443 section 2.3).
 * All fields are in network byte order. The decoder trusts no length: it reads
 * nothing outside [buf, buf + len) and names the first thing that is wrong.
 */
#ifndef PAQM_MSG_H
#define PAQM_MSG_H

#include "paqm_f32.h"

#define PAQM_ICMP_TYPE_EXP 253	/* RFC 4727 experiment */
#define PAQM_ICMP_TYPE_QUENCH 4 /* Source Quench of RFC 792, deprecated by RFC 6633 */
#define PAQM_ICMP6_TYPE_EXP 100 /* RFC 4443 private experiment, error class */
#define PAQM_ICMP_HDR 8
#define PAQM_OBJ_LEN 48
#define PAQM_OBJ_MAGIC 0x5041514DU /* "PAQM" */
#define PAQM_MSG_VERSION 1
#define PAQM_VALUE_MAX 1000000000000ULL /* of a rate, bit/s, and of an ECF value */
#define PAQM_QUOTE_UDP 28		/* quoted bytes behind the UDP header: RTP header + 16 */
#define PAQM_IP4_MAX_HDR 60
#define PAQM_IP6_HDR 40
#define PAQM_QUOTE_MAX (PAQM_IP4_MAX_HDR + 8 + PAQM_QUOTE_UDP)
#define PAQM_TAG_BYTES (PAQM_OBJ_LEN + PAQM_QUOTE_UDP) /* most that a tag covers */
#define PAQM_MSG_MAX (PAQM_ICMP_HDR + PAQM_QUOTE_MAX + PAQM_OBJ_LEN)

/* flags */
#define PAQM_F_OVERLOAD 0x01 /* the media queue exceeds its limit target */
#define PAQM_F_POLICED 0x02  /* this flow is being policed */
#define PAQM_F_FINAL 0x04    /* the rate is the fair rate, not a step towards it */
#define PAQM_F_AUTH 0x08     /* the tag is valid for key_id */

/**
 * struct paqm_msg - the PAQM object
 * @flags: PAQM_F_*
 * @key_id: key of @tag, 0 when unauthenticated
 * @router_id: stable identity of the router
 * @boot: nonce that changes whenever @seq restarts
 * @seq: notice round, increasing per router and boot (serial arithmetic)
 * @ecf: ECF value, binary32: <1 multiply, 1 hold, >1 add bit/s
 * @erf: fair rate per flow, binary32, bit/s on the IP layer
 * @period_ms: outer period d
 * @qdelay_100us: delay of the media queue now, 0.1 ms
 * @flows: counted media flows, saturating
 * @util: link utilisation of the last period, 65535 == 100 %
 * @tag: SipHash-2-4 of paqm_tag_bytes(); 0 if unauthenticated
 */
struct paqm_msg {
	paqm_u8 flags;
	paqm_u16 key_id;
	paqm_u64 router_id;
	paqm_u32 boot;
	paqm_u32 seq;
	paqm_u32 ecf;
	paqm_u32 erf;
	paqm_u16 period_ms;
	paqm_u16 qdelay_100us;
	paqm_u16 flows;
	paqm_u16 util;
	paqm_u64 tag;
};

/* Why a message was refused; the order is that of the checks. */
enum paqm_msg_err {
	PAQM_MSG_OK = 0,
	PAQM_MSG_SHORT,	      /* too short for header, quote and object */
	PAQM_MSG_TYPE,	      /* ICMP type or code is not ours */
	PAQM_MSG_CHECKSUM,    /* ICMP checksum wrong */
	PAQM_MSG_MAGIC,	      /* no PAQM object at the end */
	PAQM_MSG_VERSION_ERR, /* version not understood */
	PAQM_MSG_QUOTE,	      /* quoted packet is not UDP of the carrier's IP version, or is cut */
	PAQM_MSG_VALUE,	      /* a rate or factor is NaN, infinite, negative or out of range */
	PAQM_MSG_MISMATCH,    /* the ICMP value differs from the object */
	PAQM_MSG_ERR_MAX
};

/**
 * struct paqm_quote - the quoted packet, by reference into the message
 * @ip: quoted IP header
 * @ip_hlen: its length, 20..60; IPv6: 40
 * @version: 4 or 6
 * @src: source address, 4 or 16 bytes
 * @dst: destination address, 4 or 16 bytes
 * @saddr: IPv4: source address, host order
 * @daddr: IPv4: destination address, host order
 * @sport: UDP source port, host order
 * @dport: UDP destination port, host order
 * @payload: quoted UDP payload
 * @payload_len: 0..PAQM_QUOTE_UDP
 */
struct paqm_quote {
	const paqm_u8 *ip;
	paqm_u32 ip_hlen;
	paqm_u32 version;
	const paqm_u8 *src, *dst;
	paqm_u32 saddr, daddr;
	paqm_u16 sport, dport;
	const paqm_u8 *payload;
	paqm_u32 payload_len;
};

static inline paqm_u16 paqm_get16(const paqm_u8 *p)
{
	return (paqm_u16)(p[0] << 8 | p[1]);
}

static inline paqm_u32 paqm_get32(const paqm_u8 *p)
{
	return (paqm_u32)paqm_get16(p) << 16 | paqm_get16(p + 2);
}

static inline paqm_u64 paqm_get64(const paqm_u8 *p)
{
	return (paqm_u64)paqm_get32(p) << 32 | paqm_get32(p + 4);
}

static inline void paqm_put16(paqm_u8 *p, paqm_u16 v)
{
	p[0] = (paqm_u8)(v >> 8);
	p[1] = (paqm_u8)v;
}

static inline void paqm_put32(paqm_u8 *p, paqm_u32 v)
{
	paqm_put16(p, (paqm_u16)(v >> 16));
	paqm_put16(p + 2, (paqm_u16)v);
}

static inline void paqm_put64(paqm_u8 *p, paqm_u64 v)
{
	paqm_put32(p, (paqm_u32)(v >> 32));
	paqm_put32(p + 4, (paqm_u32)v);
}

/* Add @len bytes to the sum of an Internet checksum (RFC 1071); folded, not inverted. */
static inline paqm_u32 paqm_sum(paqm_u32 sum, const paqm_u8 *p, paqm_u32 len)
{
	paqm_u64 wide = sum;
	paqm_u32 i;

	/* modulo 2^16 - 1 it does not matter how many words are added at once */
	for (i = 0; i + 3 < len; i += 4)
		wide += paqm_get32(p + i);
	if (len & 2) {
		wide += paqm_get16(p + i);
		i += 2;
	}
	if (len & 1)
		wide += (paqm_u32)p[i] << 8;
	while (wide >> 16)
		wide = (wide & 0xFFFF) + (wide >> 16);
	return (paqm_u32)wide;
}

/* Internet checksum of @len bytes. */
static inline paqm_u16 paqm_checksum(const paqm_u8 *p, paqm_u32 len)
{
	return (paqm_u16)~paqm_sum(0, p, len);
}

/* ICMPv6 checksum: with the pseudo header of RFC 8200 section 8.1; @len below 64 KiB. */
static inline paqm_u16 paqm_checksum6(const paqm_u8 *src, const paqm_u8 *dst, const paqm_u8 *p,
				      paqm_u32 len)
{
	paqm_u32 sum = paqm_sum(paqm_sum(len + 58, src, 16), dst, 16);

	return (paqm_u16)~paqm_sum(sum, p, len);
}

/* Write the 48 bytes of the object. */
static inline void paqm_msg_encode(paqm_u8 *p, const struct paqm_msg *m)
{
	paqm_put32(p, PAQM_OBJ_MAGIC);
	p[4] = PAQM_MSG_VERSION;
	p[5] = m->flags;
	paqm_put16(p + 6, m->key_id);
	paqm_put64(p + 8, m->router_id);
	paqm_put32(p + 16, m->boot);
	paqm_put32(p + 20, m->seq);
	paqm_put32(p + 24, m->ecf);
	paqm_put32(p + 28, m->erf);
	paqm_put16(p + 32, m->period_ms);
	paqm_put16(p + 34, m->qdelay_100us);
	paqm_put16(p + 36, m->flows);
	paqm_put16(p + 38, m->util);
	paqm_put64(p + 40, m->tag);
}

/* A message but for its checksum, which is 0. The bounds are the encoders' affair. */
static inline paqm_u32 paqm_icmp_fill(paqm_u8 *buf, paqm_u8 type, const paqm_u8 *quote,
				      paqm_u32 quote_len, const struct paqm_msg *m)
{
	paqm_u32 i;

	buf[0] = type;
	buf[1] = 0;
	buf[2] = 0;
	buf[3] = 0;
	paqm_put32(buf + 4, m->ecf);
	for (i = 0; i < quote_len; i++)
		buf[PAQM_ICMP_HDR + i] = quote[i];
	paqm_msg_encode(buf + PAQM_ICMP_HDR + quote_len, m);
	return PAQM_ICMP_HDR + quote_len + PAQM_OBJ_LEN;
}

/**
 * paqm_icmp_encode() - whole ICMP message of carrier `icmp`
 * @buf: room for PAQM_MSG_MAX bytes
 * @type: ICMP type
 * @quote: quoted packet, starting with its IPv4 header
 * @quote_len: its length, at most PAQM_QUOTE_MAX
 * @m: the object
 *
 * Return: length of the message, 0 if @quote_len is out of range.
 */
static inline paqm_u32 paqm_icmp_encode(paqm_u8 *buf, paqm_u8 type, const paqm_u8 *quote,
					paqm_u32 quote_len, const struct paqm_msg *m)
{
	paqm_u32 len;

	if (quote_len < 28 || quote_len > PAQM_QUOTE_MAX)
		return 0;
	len = paqm_icmp_fill(buf, type, quote, quote_len, m);
	paqm_put16(buf + 2, paqm_checksum(buf, len));
	return len;
}

/**
 * paqm_icmp6_encode() - whole ICMPv6 message of carrier `icmp`
 * @buf: room for PAQM_MSG_MAX bytes
 * @type: ICMPv6 type
 * @src: source address of the message, 16 bytes
 * @dst: destination address of the message, 16 bytes
 * @quote: quoted packet, starting with its IPv6 header
 * @quote_len: its length, at most PAQM_IP6_HDR + 8 + PAQM_QUOTE_UDP
 * @m: the object
 *
 * Return: length of the message, 0 if @quote_len is out of range.
 */
static inline paqm_u32 paqm_icmp6_encode(paqm_u8 *buf, paqm_u8 type, const paqm_u8 *src,
					 const paqm_u8 *dst, const paqm_u8 *quote,
					 paqm_u32 quote_len, const struct paqm_msg *m)
{
	paqm_u32 len;

	if (quote_len < PAQM_IP6_HDR + 8 || quote_len > PAQM_IP6_HDR + 8 + PAQM_QUOTE_UDP)
		return 0;
	len = paqm_icmp_fill(buf, type, quote, quote_len, m);
	paqm_put16(buf + 2, paqm_checksum6(src, dst, buf, len));
	return len;
}

/* An ECF value and a rate in bit/s are usable if 0 < v <= PAQM_VALUE_MAX. */
static inline int paqm_value_ok(paqm_u32 bits)
{
	paqm_u64 v;

	return !paqm_f32_decode(bits, 20, &v) && v && v <= PAQM_VALUE_MAX << 20;
}

/* The quoted packet of @len bytes at @ip, whose IP version must be @version. */
static inline enum paqm_msg_err paqm_quote_decode(const paqm_u8 *ip, paqm_u32 len, paqm_u32 version,
						  struct paqm_quote *q)
{
	q->ip = ip;
	q->version = version;
	if (ip[0] >> 4 != version)
		return PAQM_MSG_QUOTE;
	q->ip_hlen = version == 4 ? (paqm_u32)(ip[0] & 15) * 4 : PAQM_IP6_HDR;
	if (q->ip_hlen < 20 || q->ip_hlen + 8 > len)
		return PAQM_MSG_QUOTE;
	if (ip[version == 4 ? 9 : 6] != 17)
		return PAQM_MSG_QUOTE;
	if (version == 4) {
		if (paqm_get16(ip + 6) & 0x1FFF) /* no ports in a later fragment */
			return PAQM_MSG_QUOTE;
		q->src = ip + 12;
		q->dst = ip + 16;
		q->saddr = paqm_get32(q->src);
		q->daddr = paqm_get32(q->dst);
	} else {
		q->src = ip + 8;
		q->dst = ip + 24;
		q->saddr = 0;
		q->daddr = 0;
	}
	q->sport = paqm_get16(ip + q->ip_hlen);
	q->dport = paqm_get16(ip + q->ip_hlen + 2);
	q->payload = ip + q->ip_hlen + 8;
	q->payload_len = len - q->ip_hlen - 8;
	return q->payload_len > PAQM_QUOTE_UDP ? PAQM_MSG_QUOTE : PAQM_MSG_OK;
}

/* Object and quote of a message whose length, type and checksum are right. */
static inline enum paqm_msg_err paqm_icmp_parse(const paqm_u8 *buf, paqm_u32 len, paqm_u32 version,
						struct paqm_msg *m, struct paqm_quote *q)
{
	const paqm_u8 *obj = buf + len - PAQM_OBJ_LEN;
	enum paqm_msg_err err;

	if (paqm_get32(obj) != PAQM_OBJ_MAGIC)
		return PAQM_MSG_MAGIC;
	if (obj[4] != PAQM_MSG_VERSION)
		return PAQM_MSG_VERSION_ERR;
	err = paqm_quote_decode(buf + PAQM_ICMP_HDR, len - PAQM_ICMP_HDR - PAQM_OBJ_LEN, version,
				q);
	if (err != PAQM_MSG_OK)
		return err;

	m->flags = obj[5];
	m->key_id = paqm_get16(obj + 6);
	m->router_id = paqm_get64(obj + 8);
	m->boot = paqm_get32(obj + 16);
	m->seq = paqm_get32(obj + 20);
	m->ecf = paqm_get32(obj + 24);
	m->erf = paqm_get32(obj + 28);
	m->period_ms = paqm_get16(obj + 32);
	m->qdelay_100us = paqm_get16(obj + 34);
	m->flows = paqm_get16(obj + 36);
	m->util = paqm_get16(obj + 38);
	m->tag = paqm_get64(obj + 40);
	if (!paqm_value_ok(m->ecf) || !paqm_value_ok(m->erf))
		return PAQM_MSG_VALUE;
	if (paqm_get32(buf + 4) != m->ecf)
		return PAQM_MSG_MISMATCH;
	return PAQM_MSG_OK;
}

/**
 * paqm_icmp_decode() - decode and check an ICMP message from anywhere
 * @buf: message, starting with the ICMP header
 * @len: its length as given by the IP header
 * @type: ICMP type this carrier uses
 * @m: result
 * @q: result, points into @buf
 *
 * Covers receiver check (a): well-formed, checksum right, lengths agree,
 * values finite and inside limits.
 *
 * Return: PAQM_MSG_OK, or why it was refused.
 */
static inline enum paqm_msg_err paqm_icmp_decode(const paqm_u8 *buf, paqm_u32 len, paqm_u8 type,
						 struct paqm_msg *m, struct paqm_quote *q)
{
	if (len < PAQM_ICMP_HDR + 28 + PAQM_OBJ_LEN || len > PAQM_MSG_MAX)
		return PAQM_MSG_SHORT;
	if (buf[0] != type || buf[1] != 0)
		return PAQM_MSG_TYPE;
	if (paqm_checksum(buf, len) != 0)
		return PAQM_MSG_CHECKSUM;
	return paqm_icmp_parse(buf, len, 4, m, q);
}

/**
 * paqm_icmp6_decode() - the same for an ICMPv6 message
 * @buf: message, starting with the ICMPv6 header
 * @len: its length as given by the IPv6 header
 * @type: ICMPv6 type this carrier uses
 * @src: source address of the message, 16 bytes
 * @dst: destination address of the message, 16 bytes
 * @m: result
 * @q: result, points into @buf
 *
 * Return: PAQM_MSG_OK, or why it was refused.
 */
static inline enum paqm_msg_err paqm_icmp6_decode(const paqm_u8 *buf, paqm_u32 len, paqm_u8 type,
						  const paqm_u8 *src, const paqm_u8 *dst,
						  struct paqm_msg *m, struct paqm_quote *q)
{
	if (len < PAQM_ICMP_HDR + PAQM_IP6_HDR + 8 + PAQM_OBJ_LEN || len > PAQM_MSG_MAX)
		return PAQM_MSG_SHORT;
	if (buf[0] != type || buf[1] != 0)
		return PAQM_MSG_TYPE;
	if (paqm_checksum6(src, dst, buf, len) != 0)
		return PAQM_MSG_CHECKSUM;
	return paqm_icmp_parse(buf, len, 6, m, q);
}

#define PAQM_BARE_LEN (PAQM_ICMP_HDR + 28)

/**
 * paqm_bare_decode() - Source Quench of the published system, without object
 * @buf: message, starting with the ICMP header
 * @len: its length as given by the IP header
 * @m: result: @m->ecf; the rest is 0
 * @q: result, points into @buf
 *
 * 56 bytes with the IP header: value, IPv4 header without options, UDP header. It has
 * no sequence and quotes nothing that only somebody on the path can know.
 *
 * Return: PAQM_MSG_OK, or why it was refused.
 */
static inline enum paqm_msg_err paqm_bare_decode(const paqm_u8 *buf, paqm_u32 len,
						 struct paqm_msg *m, struct paqm_quote *q)
{
	static const struct paqm_msg none;
	enum paqm_msg_err err;

	if (len != PAQM_BARE_LEN)
		return PAQM_MSG_SHORT;
	if (buf[0] != PAQM_ICMP_TYPE_QUENCH || buf[1] != 0)
		return PAQM_MSG_TYPE;
	if (paqm_checksum(buf, len) != 0)
		return PAQM_MSG_CHECKSUM;
	err = paqm_quote_decode(buf + PAQM_ICMP_HDR, len - PAQM_ICMP_HDR, 4, q);
	if (err != PAQM_MSG_OK)
		return err;
	*m = none;
	m->ecf = paqm_get32(buf + 4);
	return paqm_value_ok(m->ecf) ? PAQM_MSG_OK : PAQM_MSG_VALUE;
}

/* Serial number arithmetic (RFC 1982): is @a newer than @b? */
static inline int paqm_seq_newer(paqm_u32 a, paqm_u32 b)
{
	return (paqm_s32)(a - b) > 0;
}

/**
 * paqm_rtp_invariant() - bytes of a media packet that nothing on the path may change
 * @payload: UDP payload (or its quoted beginning)
 * @len: available bytes
 * @out: at least PAQM_QUOTE_UDP bytes
 *
 * Looks only at the first PAQM_QUOTE_UDP bytes, which is what a router quotes:
 * the 12 bytes of the RTP fixed header and, of the rest, what lies behind the
 * CSRC list and any header extension (in-band feedback lives in there). A
 * packet that is not RTP version 2 is taken as a whole.
 *
 * Return: number of bytes written to @out.
 */
static inline paqm_u32 paqm_rtp_invariant(const paqm_u8 *payload, paqm_u32 len, paqm_u8 *out)
{
	paqm_u32 n = 0, skip = 0, i;

	if (len > PAQM_QUOTE_UDP)
		len = PAQM_QUOTE_UDP;
	if (len >= 12 && payload[0] >> 6 == 2) {
		skip = 12 + (payload[0] & 15U) * 4;
		if (payload[0] & 0x10) { /* X: RFC 3550 section 5.3.1 */
			if (skip + 4 <= len)
				skip += 4 + 4U * paqm_get16(payload + skip + 2);
			else
				skip = len;
		}
	}
	for (i = 0; i < len; i++)
		if (i < 12 || i >= skip)
			out[n++] = payload[i];
	return n;
}

/**
 * paqm_tag_bytes() - what the tag of a message covers
 * @m: the object; its tag does not count
 * @payload: the quoted UDP payload
 * @len: its length
 * @out: at least PAQM_TAG_BYTES bytes
 *
 * The object with a tag of zero, then of the quoted payload what nothing on the path may
 * change. Headers of the quoted packet are left out: a NAT between sender and router
 * rewrites them, and TTL and checksums change at every hop. The payload binds the tag to
 * one packet of one flow.
 *
 * Return: number of bytes written to @out; the tag is their SipHash-2-4.
 */
static inline paqm_u32 paqm_tag_bytes(const struct paqm_msg *m, const paqm_u8 *payload,
				      paqm_u32 len, paqm_u8 *out)
{
	struct paqm_msg plain = *m;

	plain.tag = 0;
	paqm_msg_encode(out, &plain);
	return PAQM_OBJ_LEN + paqm_rtp_invariant(payload, len, out + PAQM_OBJ_LEN);
}

/* Are two tags the same? Takes as long wherever they differ. */
static inline int paqm_tag_equal(paqm_u64 a, paqm_u64 b)
{
	paqm_u64 d = a ^ b;

	return !((paqm_u32)(d >> 32) | (paqm_u32)d);
}

#endif /* PAQM_MSG_H */
