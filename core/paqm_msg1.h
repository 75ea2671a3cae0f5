/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Feedback message, version 1, which routers sent before version 2 (docs/protocol.md,
 * appendix A). Receivers read it for one release more; nobody sends it but tests.
 *
 *   ICMP header, 8 bytes   type, code 0, checksum, ECF value (binary32)
 *   quote                  IPv4 or IPv6 header, 8 bytes of UDP header, up to
 *                          PAQM1_QUOTE_UDP bytes of UDP payload
 *   object, 48 bytes       always the last 48 bytes of the message
 */
#ifndef PAQM_MSG1_H
#define PAQM_MSG1_H

#include "paqm_msg_format.h"

#define PAQM1_OBJ_LEN 48
#define PAQM1_QUOTE_UDP 28
#define PAQM1_QUOTE_MAX (PAQM_IP4_MAX_HDR + 8 + PAQM1_QUOTE_UDP)
#define PAQM1_MSG_MAX (PAQM_ICMP_HDR + PAQM1_QUOTE_MAX + PAQM1_OBJ_LEN)

/* Write the 48 bytes of the object. */
static inline void paqm1_object_encode(paqm_u8 *p, const struct paqm_msg *m)
{
	paqm_put32(p, PAQM_OBJ_MAGIC);
	p[4] = 1;
	p[5] = m->flags;
	paqm_put16(p + 6, m->key_id);
	paqm_put64(p + 8, m->router_id);
	paqm_put32(p + 16, m->boot);
	paqm_put32(p + 20, m->seq);
	paqm_put32(p + 24, m->ecf);
	paqm_put32(p + 28, paqm_f32_encode(m->rate, 0));
	paqm_put16(p + 32, m->period_ms);
	paqm_put16(p + 34, m->qdelay_100us);
	paqm_put16(p + 36, m->flows);
	paqm_put16(p + 38, m->util);
	paqm_put64(p + 40, m->tag);
}

/**
 * paqm1_encode() - a message of version 1
 * @buf: room for PAQM1_MSG_MAX bytes
 * @type: ICMP type
 * @src: IPv6: source address of the message; NULL: IPv4
 * @dst: IPv6: its destination address
 * @quote: quoted packet, from its IP header on
 * @quote_len: its length
 * @m: what to tell; its rate is rounded to binary32
 *
 * Return: length of the message, 0 if @quote_len is out of range.
 */
static inline paqm_u32 paqm1_encode(paqm_u8 *buf, paqm_u8 type, const paqm_u8 *src,
				    const paqm_u8 *dst, const paqm_u8 *quote, paqm_u32 quote_len,
				    const struct paqm_msg *m)
{
	paqm_u32 least = (src ? PAQM_IP6_HDR : 20) + 8, len, i;
	paqm_u32 most = src ? least + PAQM1_QUOTE_UDP : PAQM1_QUOTE_MAX;

	if (quote_len < least || quote_len > most)
		return 0;
	paqm_put32(buf, (paqm_u32)type << 24);
	paqm_put32(buf + 4, m->ecf);
	for (i = 0; i < quote_len; i++)
		buf[PAQM_ICMP_HDR + i] = quote[i];
	paqm1_object_encode(buf + PAQM_ICMP_HDR + quote_len, m);
	len = PAQM_ICMP_HDR + quote_len + PAQM1_OBJ_LEN;
	paqm_put16(buf + 2, src ? paqm_checksum6(src, dst, buf, len) : paqm_checksum(buf, len));
	return len;
}

/**
 * paqm1_parse() - object and quote of a message of version 1
 * @buf: the message; its length, type and checksum have been looked at
 * @len: its length
 * @version: of IP
 * @m: result
 * @q: result, points into @buf
 *
 * Return: PAQM_MSG_OK, or why it was refused.
 */
static inline enum paqm_msg_err paqm1_parse(const paqm_u8 *buf, paqm_u32 len, paqm_u32 version,
					    struct paqm_msg *m, struct paqm_quote *q)
{
	const paqm_u8 *obj;
	paqm_u64 rate = 0;

	if (len < PAQM_ICMP_HDR + 28 + PAQM1_OBJ_LEN)
		return PAQM_MSG_SHORT;
	obj = buf + len - PAQM1_OBJ_LEN;
	if (paqm_get32(obj) != PAQM_OBJ_MAGIC)
		return PAQM_MSG_MAGIC;
	if (obj[4] != 1)
		return PAQM_MSG_VERSION_ERR;
	if (paqm_quote_decode(buf + PAQM_ICMP_HDR, len - PAQM_ICMP_HDR - PAQM1_OBJ_LEN, version,
			      q) ||
	    q->payload_len > PAQM1_QUOTE_UDP)
		return PAQM_MSG_QUOTE;

	m->version = 1;
	m->flags = obj[5];
	m->key_id = paqm_get16(obj + 6);
	m->router_id = paqm_get64(obj + 8);
	m->boot = paqm_get32(obj + 16);
	m->seq = paqm_get32(obj + 20);
	m->ecf = paqm_get32(obj + 24);
	m->period_ms = paqm_get16(obj + 32);
	m->qdelay_100us = paqm_get16(obj + 34);
	m->flows = paqm_get16(obj + 36);
	m->util = paqm_get16(obj + 38);
	m->tag = paqm_get64(obj + 40);
	m->object = obj;
	m->object_len = PAQM1_OBJ_LEN;
	if (!paqm_value_ok(m->ecf) || !paqm_value_ok(paqm_get32(obj + 28)))
		return PAQM_MSG_VALUE;
	paqm_f32_decode(paqm_get32(obj + 28), 0, &rate);
	m->rate = rate ? rate : 1;
	return paqm_get32(buf + 4) == m->ecf ? PAQM_MSG_OK : PAQM_MSG_MISMATCH;
}

/**
 * paqm1_tag_bytes() - what the tag of a message of version 1 covers
 * @object: its 48 bytes
 * @q: the quoted packet
 * @out: room for PAQM_TAG_BYTES bytes
 *
 * The object with a tag of zero, then what the quote proves. It is bound to no host and no flow.
 *
 * Return: number of bytes written to @out; the tag is their SipHash-2-4.
 */
static inline paqm_u32 paqm1_tag_bytes(const paqm_u8 *object, const struct paqm_quote *q,
				       paqm_u8 *out)
{
	paqm_u32 i;

	for (i = 0; i < PAQM1_OBJ_LEN; i++)
		out[i] = i < PAQM1_OBJ_LEN - 8 ? object[i] : 0;
	return PAQM1_OBJ_LEN + paqm_proof(q->payload, q->payload_len, out + PAQM1_OBJ_LEN);
}

#endif /* PAQM_MSG1_H */
