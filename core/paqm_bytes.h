/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Numbers and checksums as they are on the wire: network byte order, RFC 1071. What
 * messages (paqm_msg.h) and fields in media (paqm_inband.h) share.
 */
#ifndef PAQM_BYTES_H
#define PAQM_BYTES_H

#include "paqm_f32.h"

#define PAQM_VALUE_MAX 1000000000000ULL /* of a rate, bit/s, and of an ECF value */

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

/* An ECF value and a rate in bit/s are usable if 0 < v <= PAQM_VALUE_MAX. */
static inline int paqm_value_ok(paqm_u32 bits)
{
	paqm_u64 v;

	return !paqm_f32_decode(bits, 20, &v) && v && v <= PAQM_VALUE_MAX << 20;
}

/* Serial number arithmetic (RFC 1982): is @a newer than @b? */
static inline int paqm_seq_newer(paqm_u32 a, paqm_u32 b)
{
	return (paqm_s32)(a - b) > 0;
}

#endif /* PAQM_BYTES_H */
