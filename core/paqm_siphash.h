/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * SipHash-2-4 (Aumasson, Bernstein 2012): a keyed 64-bit hash. It makes the tags of
 * feedback messages (core/paqm_msg.h: paqm_tag_bytes) and, in the daemon, digests that
 * nobody can search collisions for. The kernel has its own copy, <linux/siphash.h>.
 */
#ifndef PAQM_SIPHASH_H
#define PAQM_SIPHASH_H

#include "paqm_fix.h"

#define PAQM_SIPHASH_KEY 16 /* bytes of a key */

static inline paqm_u64 paqm_siphash_le64(const paqm_u8 *p, paqm_u32 n)
{
	paqm_u64 v = 0;

	while (n--)
		v = v << 8 | p[n];
	return v;
}

static inline paqm_u64 paqm_siphash_rotl(paqm_u64 v, int n)
{
	return v << n | v >> (64 - n);
}

static inline void paqm_siphash_round(paqm_u64 v[4])
{
	v[0] += v[1];
	v[1] = paqm_siphash_rotl(v[1], 13) ^ v[0];
	v[0] = paqm_siphash_rotl(v[0], 32);
	v[2] += v[3];
	v[3] = paqm_siphash_rotl(v[3], 16) ^ v[2];
	v[0] += v[3];
	v[3] = paqm_siphash_rotl(v[3], 21) ^ v[0];
	v[2] += v[1];
	v[1] = paqm_siphash_rotl(v[1], 17) ^ v[2];
	v[2] = paqm_siphash_rotl(v[2], 32);
}

/**
 * paqm_siphash24() - keyed hash
 * @key: PAQM_SIPHASH_KEY bytes
 * @p: what to hash
 * @len: bytes of it
 *
 * Return: the hash; the authors' vectors read its bytes as little endian.
 */
static inline paqm_u64 paqm_siphash24(const paqm_u8 *key, const paqm_u8 *p, paqm_u32 len)
{
	paqm_u64 k0 = paqm_siphash_le64(key, 8), k1 = paqm_siphash_le64(key + 8, 8);
	paqm_u64 v[4] = {
		k0 ^ 0x736f6d6570736575ULL,
		k1 ^ 0x646f72616e646f6dULL,
		k0 ^ 0x6c7967656e657261ULL,
		k1 ^ 0x7465646279746573ULL,
	};
	paqm_u64 m;
	paqm_u32 i;

	for (i = 0; i + 8 <= len; i += 8) {
		m = paqm_siphash_le64(p + i, 8);
		v[3] ^= m;
		paqm_siphash_round(v);
		paqm_siphash_round(v);
		v[0] ^= m;
	}
	m = paqm_siphash_le64(p + i, len - i) | (paqm_u64)len << 56;
	v[3] ^= m;
	paqm_siphash_round(v);
	paqm_siphash_round(v);
	v[0] ^= m;
	v[2] ^= 0xff;
	for (i = 0; i < 4; i++)
		paqm_siphash_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

#endif /* PAQM_SIPHASH_H */
