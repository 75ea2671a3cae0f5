/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What a feedback message quotes of a media packet, and what of it proves that the
 * packet was seen (docs/protocol.md, section 2.3).
 *
 * The proof are the first bytes of the UDP payload: of RTP the whole header, with CSRC
 * list and header extension, and PAQM_PROOF_BEHIND bytes behind it; of anything else
 * PAQM_PROOF_OTHER bytes. Routers on the way may write seven bytes of an in-band field
 * (paqm_inband.h); these do not count. Whoever has the packet finds the same bytes.
 */
#ifndef PAQM_QUOTE_H
#define PAQM_QUOTE_H

#include "paqm_inband.h"

#define PAQM_IP4_MAX_HDR 60
#define PAQM_IP6_HDR 40
#define PAQM_PROOF_BEHIND 16 /* bytes behind the RTP header */
#define PAQM_PROOF_OTHER 28  /* an RTP header without extension, and as many behind it */
#define PAQM_PROOF_MAX 128   /* a packet with a longer header is not quoted */
#define PAQM_QUOTE_MAX (PAQM_IP4_MAX_HDR + 8 + PAQM_PROOF_MAX)

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
 * @payload_len: 0..PAQM_PROOF_MAX, with up to 7 bytes of padding behind it
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

/**
 * paqm_quote_decode() - read a quoted packet
 * @ip: its first bytes
 * @len: how many
 * @version: of IP: it must be 4 or 6 as this says
 * @q: result, points into @ip
 *
 * Return: 0, or -1 if it is not UDP, is a later fragment, or is cut before its payload.
 */
static inline int paqm_quote_decode(const paqm_u8 *ip, paqm_u32 len, paqm_u32 version,
				    struct paqm_quote *q)
{
	q->payload = ip;
	q->payload_len = 0;
	q->ip = ip;
	q->version = version;
	if (len < 20 || ip[0] >> 4 != version)
		return -1;
	q->ip_hlen = version == 4 ? (paqm_u32)(ip[0] & 15) * 4 : PAQM_IP6_HDR;
	if (q->ip_hlen < 20 || q->ip_hlen + 8 > len)
		return -1;
	if (ip[version == 4 ? 9 : 6] != 17)
		return -1;
	if (version == 4) {
		if (paqm_get16(ip + 6) & 0x1FFF) /* no ports in a later fragment */
			return -1;
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
	return 0;
}

/**
 * paqm_proof_len() - how much of a UDP payload must be quoted
 * @payload: its beginning
 * @len: bytes of it
 *
 * RTP: RFC 3550 section 5.1 and 5.3.1.
 *
 * Return: bytes, at most PAQM_PROOF_MAX; 0: there are too few, or the header is too long.
 */
static inline paqm_u32 paqm_proof_len(const paqm_u8 *payload, paqm_u32 len)
{
	paqm_u32 need = PAQM_PROOF_OTHER;

	if (len < need)
		return 0;
	if (payload[0] >> 6 == 2) {
		need = 12 + (payload[0] & 15U) * 4;
		if (payload[0] & 0x10) {
			if (need + 4 > len)
				return 0;
			need += 4 + 4U * paqm_get16(payload + need + 2);
		}
		need += PAQM_PROOF_BEHIND;
	}
	return need <= len && need <= PAQM_PROOF_MAX ? need : 0;
}

/**
 * paqm_proof() - the bytes that prove a packet
 * @payload: UDP payload, or its quoted beginning
 * @len: bytes of it
 * @out: room for PAQM_PROOF_MAX bytes
 *
 * Return: number of bytes written to @out; 0: the payload proves nothing.
 */
static inline paqm_u32 paqm_proof(const paqm_u8 *payload, paqm_u32 len, paqm_u8 *out)
{
	paqm_u32 need = paqm_proof_len(payload, len), field, more, n = 0, i;

	field = need ? paqm_field_find(payload, need) : 0;
	more = field ? paqm_more_find(payload, need) : 0;
	for (i = 0; i < need; i++) {
		if (field && i >= field + PAQM_FIELD_RATE && i < field + PAQM_FIELD_NONCE)
			continue;
		if (more && i == more + PAQM_MORE_SAID)
			continue;
		out[n++] = payload[i];
	}
	return n;
}

#endif /* PAQM_QUOTE_H */
