/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Feedback message, version 2: layout, encoder and decoder (docs/protocol.md).
 *
 *   ICMP header, 8 bytes   type, code 0, checksum; the length of the quote as RFC 4884
 *                          has it: IPv4 in byte 5, in words of 4 bytes, IPv6 in byte 4,
 *                          in words of 8 bytes
 *   quote                  the first bytes of the media packet (paqm_quote.h), zeros up
 *                          to a whole word
 *   extension structure    RFC 4884 section 7: a header of 4 bytes with a checksum, then
 *                          objects; ours is of class PAQM_OBJ_CLASS
 *   our object             4 bytes of RFC 4884, 40 bytes that are always there, options
 *
 * All fields are in network byte order. The decoder trusts no length: it reads nothing
 * outside [buf, buf + len) and names the first thing that is wrong. It passes over
 * objects and options that it does not know, so that a router may say more, or the same
 * in the words of a later version beside these.
 */
#ifndef PAQM_MSG_H
#define PAQM_MSG_H

#include "paqm_msg1.h"
#include "paqm_msg_format.h"
#include "paqm_quote.h"

/**
 * paqm_object_encode() - our object
 * @p: room for PAQM_OBJ_SENT_MAX bytes
 * @m: what to tell
 *
 * Return: its length.
 */
static inline paqm_u32 paqm_object_encode(paqm_u8 *p, const struct paqm_msg *m)
{
	paqm_u32 len = PAQM_OBJ_FIXED;

	p[2] = PAQM_OBJ_CLASS;
	p[3] = PAQM_OBJ_TYPE;
	paqm_put32(p + 4, PAQM_OBJ_MAGIC);
	p[8] = PAQM_MSG_VERSION;
	p[9] = m->flags;
	paqm_put16(p + 10, m->key_id);
	paqm_put64(p + 12, m->router_id);
	paqm_put32(p + 20, m->boot);
	paqm_put32(p + 24, m->seq);
	paqm_put64(p + 28, m->rate);
	paqm_put16(p + 36, m->period_ms);
	paqm_put16(p + 38, m->qdelay_100us);
	paqm_put16(p + 40, m->flows);
	paqm_put16(p + 42, m->util);
	if (m->ecf) {
		paqm_put16(p + len, PAQM_OPT_RELATIVE);
		paqm_put16(p + len + 2, 4);
		paqm_put32(p + len + PAQM_OPT_HDR, m->ecf);
		len += PAQM_OPT_RELATIVE_LEN;
	}
	if (m->flags & PAQM_F_AUTH) {
		paqm_put16(p + len, PAQM_OPT_TAG);
		paqm_put16(p + len + 2, 8);
		paqm_put64(p + len + PAQM_OPT_HDR, m->tag);
		len += PAQM_OPT_TAG_LEN;
	}
	paqm_put16(p, (paqm_u16)len);
	return len;
}

/* Bytes of a message about @quote_len quoted bytes over IPv6 or IPv4. */
static inline paqm_u32 paqm_icmp_len(int v6, paqm_u32 quote_len, const struct paqm_msg *m)
{
	paqm_u32 word = v6 ? 8 : 4;

	return PAQM_ICMP_HDR + (quote_len + word - 1) / word * word + PAQM_EXT_HDR +
	       PAQM_OBJ_FIXED + (m->ecf ? PAQM_OPT_RELATIVE_LEN : 0) +
	       (m->flags & PAQM_F_AUTH ? PAQM_OPT_TAG_LEN : 0);
}

/* A message but for its checksum, which is 0; the length of the quote has been looked at. */
static inline paqm_u32 paqm_icmp_fill(paqm_u8 *buf, paqm_u8 type, int v6, const paqm_u8 *quote,
				      paqm_u32 quote_len, const struct paqm_msg *m)
{
	paqm_u32 words = v6 ? (quote_len + 7) / 8 : (quote_len + 3) / 4;
	paqm_u32 padded = words * (v6 ? 8 : 4), len, i;
	paqm_u8 *ext = buf + PAQM_ICMP_HDR + padded;

	paqm_put32(buf, (paqm_u32)type << 24);
	paqm_put32(buf + 4, words << (v6 ? 24 : 16));
	for (i = 0; i < quote_len; i++)
		buf[PAQM_ICMP_HDR + i] = quote[i];
	for (; i < padded; i++)
		buf[PAQM_ICMP_HDR + i] = 0;
	paqm_put32(ext, (paqm_u32)PAQM_EXT_VERSION << 28);
	len = PAQM_EXT_HDR + paqm_object_encode(ext + PAQM_EXT_HDR, m);
	paqm_put16(ext + 2, paqm_checksum(ext, len));
	return PAQM_ICMP_HDR + padded + len;
}

/**
 * paqm_icmp_encode() - whole ICMP message of carrier `icmp`
 * @buf: room for PAQM_MSG_MAX bytes
 * @type: ICMP type
 * @quote: quoted packet, starting with its IPv4 header
 * @quote_len: its length, at most PAQM_QUOTE_MAX
 * @m: what to tell
 *
 * Return: length of the message, 0 if @quote_len is out of range.
 */
static inline paqm_u32 paqm_icmp_encode(paqm_u8 *buf, paqm_u8 type, const paqm_u8 *quote,
					paqm_u32 quote_len, const struct paqm_msg *m)
{
	paqm_u32 len;

	if (quote_len < 28 || quote_len > PAQM_QUOTE_MAX)
		return 0;
	len = paqm_icmp_fill(buf, type, 0, quote, quote_len, m);
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
 * @quote_len: its length, at most PAQM_IP6_HDR + 8 + PAQM_PROOF_MAX
 * @m: what to tell
 *
 * Return: length of the message, 0 if @quote_len is out of range.
 */
static inline paqm_u32 paqm_icmp6_encode(paqm_u8 *buf, paqm_u8 type, const paqm_u8 *src,
					 const paqm_u8 *dst, const paqm_u8 *quote,
					 paqm_u32 quote_len, const struct paqm_msg *m)
{
	paqm_u32 len;

	if (quote_len < PAQM_IP6_HDR + 8 || quote_len > PAQM_IP6_HDR + 8 + PAQM_PROOF_MAX)
		return 0;
	len = paqm_icmp_fill(buf, type, 1, quote, quote_len, m);
	paqm_put16(buf + 2, paqm_checksum6(src, dst, buf, len));
	return len;
}

/* Options of our object, from @at on. */
static inline enum paqm_msg_err paqm_options_parse(const paqm_u8 *obj, paqm_u32 at, paqm_u32 len,
						   struct paqm_msg *m)
{
	int relative = 0, tag = 0;

	while (at < len) {
		paqm_u32 type, size, left = len - at;

		if (left < PAQM_OPT_HDR || tag) /* nothing may follow the tag */
			return PAQM_MSG_OPTION;
		type = paqm_get16(obj + at);
		size = paqm_get16(obj + at + 2);
		at += PAQM_OPT_HDR;
		left -= PAQM_OPT_HDR;
		if (size > left || ((size + 3) & ~3U) > left)
			return PAQM_MSG_OPTION;
		if (type == PAQM_OPT_RELATIVE) {
			if (size != 4 || relative++)
				return PAQM_MSG_OPTION;
			m->ecf = paqm_get32(obj + at);
			if (!paqm_value_ok(m->ecf))
				return PAQM_MSG_VALUE;
		} else if (type == PAQM_OPT_TAG) {
			if (size != 8)
				return PAQM_MSG_OPTION;
			tag = 1;
			m->tag = paqm_get64(obj + at);
		} else if (type & PAQM_OPT_MUST) {
			return PAQM_MSG_OPTION;
		}
		at += (size + 3) & ~3U;
	}
	return !tag == !(m->flags & PAQM_F_AUTH) ? PAQM_MSG_OK : PAQM_MSG_OPTION;
}

/* Our object of @len bytes, whose magic and version are right. */
static inline enum paqm_msg_err paqm_object_parse(const paqm_u8 *obj, paqm_u32 len,
						  struct paqm_msg *m)
{
	enum paqm_msg_err err;

	m->version = PAQM_MSG_VERSION;
	m->flags = obj[9];
	m->key_id = paqm_get16(obj + 10);
	m->router_id = paqm_get64(obj + 12);
	m->boot = paqm_get32(obj + 20);
	m->seq = paqm_get32(obj + 24);
	m->ecf = 0;
	m->rate = paqm_get64(obj + 28);
	m->period_ms = paqm_get16(obj + 36);
	m->qdelay_100us = paqm_get16(obj + 38);
	m->flows = paqm_get16(obj + 40);
	m->util = paqm_get16(obj + 42);
	m->tag = 0;
	m->object = obj;
	m->object_len = len;
	err = paqm_options_parse(obj, PAQM_OBJ_FIXED, len, m);
	if (err != PAQM_MSG_OK)
		return err;
	return m->rate && m->rate <= PAQM_VALUE_MAX ? PAQM_MSG_OK : PAQM_MSG_VALUE;
}

/**
 * paqm_object_find() - our object in an extension structure
 * @ext: the structure
 * @len: bytes up to the end of the message
 * @object_len: set to the object's length
 * @other: set if there are only objects of ours of other versions
 *
 * Objects of other classes are passed over, and those of ours that are of another version.
 *
 * Return: the object, or NULL.
 */
static inline const paqm_u8 *paqm_object_find(const paqm_u8 *ext, paqm_u32 len,
					      paqm_u32 *object_len, int *other)
{
	paqm_u32 at, size;

	*other = 0;
	if (len < PAQM_EXT_HDR || ext[0] >> 4 != PAQM_EXT_VERSION)
		return 0;
	if (paqm_get16(ext + 2) && paqm_checksum(ext, len)) /* 0: there is none */
		return 0;
	for (at = PAQM_EXT_HDR; len - at >= PAQM_OBJ_HDR; at += size) {
		const paqm_u8 *obj = ext + at;

		size = paqm_get16(obj);
		if (size < PAQM_OBJ_HDR || size > len - at)
			return 0;
		if (obj[2] != PAQM_OBJ_CLASS || obj[3] != PAQM_OBJ_TYPE ||
		    size < PAQM_OBJ_HDR + 5 || paqm_get32(obj + 4) != PAQM_OBJ_MAGIC)
			continue;
		if (obj[8] != PAQM_MSG_VERSION || size < PAQM_OBJ_FIXED || size > PAQM_OBJ_MAX) {
			*other = 1;
			continue;
		}
		*object_len = size;
		return obj;
	}
	return 0;
}

/* Object and quote of a message whose length, type and checksum are right. */
static inline enum paqm_msg_err paqm_icmp_parse(const paqm_u8 *buf, paqm_u32 len, paqm_u32 version,
						struct paqm_msg *m, struct paqm_quote *q)
{
	paqm_u32 quoted = version == 4 ? buf[5] * 4U : buf[4] * 8U, object_len = 0;
	const paqm_u8 *obj = 0;
	int other = 0;

	if (quoted && quoted <= len - PAQM_ICMP_HDR)
		obj = paqm_object_find(buf + PAQM_ICMP_HDR + quoted, len - PAQM_ICMP_HDR - quoted,
				       &object_len, &other);
	if (!obj)
		return other ? PAQM_MSG_VERSION_ERR : paqm1_parse(buf, len, version, m, q);
	if (paqm_quote_decode(buf + PAQM_ICMP_HDR, quoted, version, q) ||
	    q->payload_len > PAQM_PROOF_MAX + (version == 4 ? 3 : 7))
		return PAQM_MSG_QUOTE;
	return paqm_object_parse(obj, object_len, m);
}

/**
 * paqm_icmp_decode() - decode and check an ICMP message from anywhere
 * @buf: message, starting with the ICMP header
 * @len: its length as given by the IP header
 * @m: result
 * @q: result, points into @buf
 *
 * By any carrier. Covers receiver check (a): well-formed, checksum right, lengths agree,
 * values finite and inside limits. Version 1 is understood, too.
 *
 * Return: PAQM_MSG_OK, or why it was refused.
 */
static inline enum paqm_msg_err paqm_icmp_decode(const paqm_u8 *buf, paqm_u32 len,
						 struct paqm_msg *m, struct paqm_quote *q)
{
	if (len < PAQM_ICMP_HDR + 28 + PAQM_EXT_HDR + PAQM_OBJ_FIXED || len > PAQM_MSG_MAX)
		return PAQM_MSG_SHORT;
	if (!paqm_icmp_carries(buf[0]) || buf[1] != 0)
		return PAQM_MSG_TYPE;
	if (paqm_checksum(buf, len) != 0)
		return PAQM_MSG_CHECKSUM;
	return paqm_icmp_parse(buf, len, 4, m, q);
}

/**
 * paqm_icmp6_decode() - the same for an ICMPv6 message
 * @buf: message, starting with the ICMPv6 header
 * @len: its length as given by the IPv6 header
 * @src: source address of the message, 16 bytes
 * @dst: destination address of the message, 16 bytes
 * @m: result
 * @q: result, points into @buf
 *
 * The type is PAQM_ICMP6_TYPE_EXP; of version 1 PAQM_ICMP6_TYPE_OLD.
 *
 * Return: PAQM_MSG_OK, or why it was refused.
 */
static inline enum paqm_msg_err paqm_icmp6_decode(const paqm_u8 *buf, paqm_u32 len,
						  const paqm_u8 *src, const paqm_u8 *dst,
						  struct paqm_msg *m, struct paqm_quote *q)
{
	enum paqm_msg_err err;

	if (len < PAQM_ICMP_HDR + PAQM_IP6_HDR + 8 + PAQM_EXT_HDR + PAQM_OBJ_FIXED ||
	    len > PAQM_MSG_MAX)
		return PAQM_MSG_SHORT;
	if ((buf[0] != PAQM_ICMP6_TYPE_EXP && buf[0] != PAQM_ICMP6_TYPE_OLD) || buf[1] != 0)
		return PAQM_MSG_TYPE;
	if (paqm_checksum6(src, dst, buf, len) != 0)
		return PAQM_MSG_CHECKSUM;
	err = paqm_icmp_parse(buf, len, 6, m, q);
	if (err == PAQM_MSG_OK && (m->version == 1) != (buf[0] == PAQM_ICMP6_TYPE_OLD))
		return PAQM_MSG_TYPE;
	return err;
}

/**
 * paqm_tag_bytes() - what the tag of a message covers
 * @object: our object, at most PAQM_OBJ_MAX bytes, which ends with a tag
 * @len: its length
 * @q: the quoted packet
 * @out: room for PAQM_TAG_BYTES bytes
 *
 * For whom the quoted packet was: its destination address, of IPv4 mapped into IPv6, and port,
 * which bind the tag to the flow. The object with a tag of zero. What the quote proves. Source
 * address and port are left out: a NAT between sender and router rewrites them; so are TTL and
 * checksums, which change at every hop.
 *
 * Return: number of bytes written to @out; the tag is their SipHash-2-4.
 */
static inline paqm_u32 paqm_tag_bytes(const paqm_u8 *object, paqm_u32 len,
				      const struct paqm_quote *q, paqm_u8 *out)
{
	paqm_u32 i;

	for (i = 0; i < 16; i++)
		out[i] = q->version == 6 ? q->dst[i]
			 : i >= 12	 ? q->dst[i - 12]
			 : i >= 10	 ? 0xFF
					 : 0;
	paqm_put16(out + 16, q->dport);
	for (i = 0; i < len; i++)
		out[18 + i] = i < len - 8 ? object[i] : 0;
	return 18 + len + paqm_proof(q->payload, q->payload_len, out + 18 + len);
}

#define PAQM_HOST_BYTES 17

/**
 * paqm_host_bytes() - what a host's own key is derived from
 * @addr: address that the router tells the host at, of IPv4 mapped into IPv6
 * @half: which half of the key, 0 or 1
 * @out: PAQM_HOST_BYTES bytes
 *
 * Each half of the key is the SipHash-2-4 of them under the router's key, least significant byte
 * first. Of an IPv6 address the first 64 bits count: a host has many of the others (RFC 8981).
 */
static inline void paqm_host_bytes(const paqm_u8 *addr, int half, paqm_u8 *out)
{
	int v4 = 1;
	paqm_u32 i;

	for (i = 0; i < 12; i++)
		v4 &= addr[i] == (i < 10 ? 0 : 0xFF);
	for (i = 0; i < 16; i++)
		out[i] = v4 || i < 8 ? addr[i] : 0;
	out[16] = (paqm_u8)half;
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

	if (len != PAQM_BARE_LEN)
		return PAQM_MSG_SHORT;
	if (buf[0] != PAQM_ICMP_TYPE_QUENCH || buf[1] != 0)
		return PAQM_MSG_TYPE;
	if (paqm_checksum(buf, len) != 0)
		return PAQM_MSG_CHECKSUM;
	if (paqm_quote_decode(buf + PAQM_ICMP_HDR, len - PAQM_ICMP_HDR, 4, q))
		return PAQM_MSG_QUOTE;
	*m = none;
	m->ecf = paqm_get32(buf + 4);
	return paqm_value_ok(m->ecf) ? PAQM_MSG_OK : PAQM_MSG_VALUE;
}

/* Are two tags the same? Takes as long wherever they differ. */
static inline int paqm_tag_equal(paqm_u64 a, paqm_u64 b)
{
	paqm_u64 d = a ^ b;

	return !((paqm_u32)(d >> 32) | (paqm_u32)d);
}

#endif /* PAQM_MSG_H */
