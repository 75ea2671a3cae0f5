/* SPDX-License-Identifier: GPL-2.0 */
/*
 * SipHash-2-4 (Aumasson, Bernstein 2012): a keyed 64-bit hash. The digests of
 * sent media are kept under a key that only this process knows, so that nobody
 * can search for a packet that collides with one of them.
 */
#ifndef PAQMD_SIPHASH_H
#define PAQMD_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

#define SIPHASH_KEY_LEN 16

static inline uint64_t siphash_le64(const uint8_t *p, size_t n)
{
	uint64_t v = 0;

	while (n--)
		v = v << 8 | p[n];
	return v;
}

static inline uint64_t siphash_rotl(uint64_t v, int n)
{
	return v << n | v >> (64 - n);
}

static inline void siphash_round(uint64_t v[4])
{
	v[0] += v[1];
	v[1] = siphash_rotl(v[1], 13) ^ v[0];
	v[0] = siphash_rotl(v[0], 32);
	v[2] += v[3];
	v[3] = siphash_rotl(v[3], 16) ^ v[2];
	v[0] += v[3];
	v[3] = siphash_rotl(v[3], 21) ^ v[0];
	v[2] += v[1];
	v[1] = siphash_rotl(v[1], 17) ^ v[2];
	v[2] = siphash_rotl(v[2], 32);
}

static inline uint64_t siphash24(const uint8_t key[SIPHASH_KEY_LEN], const uint8_t *p, size_t len)
{
	uint64_t k0 = siphash_le64(key, 8), k1 = siphash_le64(key + 8, 8);
	uint64_t v[4] = {
		k0 ^ 0x736f6d6570736575ULL,
		k1 ^ 0x646f72616e646f6dULL,
		k0 ^ 0x6c7967656e657261ULL,
		k1 ^ 0x7465646279746573ULL,
	};
	uint64_t m;
	size_t i;

	for (i = 0; i + 8 <= len; i += 8) {
		m = siphash_le64(p + i, 8);
		v[3] ^= m;
		siphash_round(v);
		siphash_round(v);
		v[0] ^= m;
	}
	m = siphash_le64(p + i, len - i) | (uint64_t)len << 56;
	v[3] ^= m;
	siphash_round(v);
	siphash_round(v);
	v[0] ^= m;
	v[2] ^= 0xff;
	for (i = 0; i < 4; i++)
		siphash_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

#endif /* PAQMD_SIPHASH_H */
