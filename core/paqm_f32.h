/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * IEEE 754 binary32 coded with integers: the kernel has no FPU, and the
 * feedback values on the wire are binary32 (P-AQM, App. C; protocol.md).
 * Only finite values >= 0 exist in the protocol.
 */
#ifndef PAQM_F32_H
#define PAQM_F32_H

#include "paqm_fix.h"

#define PAQM_F32_ONE 0x3F800000U

/**
 * paqm_f32_encode() - binary32 of a fixed-point number
 * @v: magnitude, Q@frac
 * @frac: fraction bits of @v, 0..63
 *
 * Round to nearest, ties to even. Subnormals cannot occur: the smallest
 * non-zero input is 2^-63.
 *
 * Return: the bit pattern, host order.
 */
static inline paqm_u32 paqm_f32_encode(paqm_u64 v, int frac)
{
	int top = paqm_fls64(v);
	int exp = top - 1 - frac + 127;
	paqm_u64 mant, rest, half;
	int drop;

	if (!v)
		return 0;
	drop = top - 24;
	if (drop <= 0) {
		mant = v << -drop;
	} else {
		mant = v >> drop;
		rest = v & ((1ULL << drop) - 1);
		half = 1ULL << (drop - 1);
		if (rest > half || (rest == half && (mant & 1)))
			mant++;
		if (mant >> 24) { /* the carry reached the exponent */
			mant >>= 1;
			exp++;
		}
	}
	return ((paqm_u32)exp << 23) | ((paqm_u32)mant & 0x7FFFFF);
}

/**
 * paqm_f32_decode() - fixed-point number of a binary32 received from outside
 * @bits: the bit pattern, host order
 * @frac: wanted fraction bits, 0..63
 * @out: result, Q@frac, truncated
 *
 * Return: 0, or -1 if the value is NaN, infinite, negative or does not fit.
 */
static inline int paqm_f32_decode(paqm_u32 bits, int frac, paqm_u64 *out)
{
	int exp = (int)((bits >> 23) & 0xFF);
	paqm_u64 mant = bits & 0x7FFFFF;
	int shift;

	if (bits >> 31 || exp == 0xFF)
		return -1;
	if (exp)
		mant |= 0x800000;
	else
		exp = 1;
	shift = exp - 127 - 23 + frac;
	if (shift >= 0) {
		if (mant && paqm_fls64(mant) + shift > 64)
			return -1;
		*out = mant ? mant << shift : 0;
	} else {
		*out = shift > -64 ? mant >> -shift : 0;
	}
	return 0;
}

#endif /* PAQM_F32_H */
