/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Integer types and wide fixed-point arithmetic for the P-AQM control laws.
 *
 * Everything in core/ is pure, integer-only C without kernel or libc headers:
 * the same text is compiled into the kernel module, its KUnit suite, the
 * user-space tests, the daemon and simulators. 32-bit kernels have no 64-bit
 * division operator, so division goes through paqm_div64()/paqm_muldiv().
 */
#ifndef PAQM_FIX_H
#define PAQM_FIX_H

typedef unsigned char paqm_u8;
typedef unsigned short paqm_u16;
typedef unsigned int paqm_u32;
typedef int paqm_s32;
typedef unsigned long long paqm_u64;
typedef long long paqm_s64;

/* A word that another context may write meanwhile: read once, and whole. */
#define paqm_once(word) (*(const volatile __typeof__(word) *)&(word))

#define PAQM_U32_MAX 0xFFFFFFFFU
#define PAQM_U64_MAX 0xFFFFFFFFFFFFFFFFULL

/* Gains and ratios are Q24: 1.0 == 1 << 24. Q16 misses the tolerances of the
 * vectors I6 and EC2.
 */
#define PAQM_Q24_ONE (1U << 24)
#define PAQM_Q16_ONE (1U << 16)

/* Q24 value of the constant fraction num/den, for initialisers. */
#define PAQM_Q24(num, den) ((paqm_u32)((((paqm_u64)(num) << 24) + (den) / 2) / (den)))

static inline paqm_u64 paqm_min64(paqm_u64 a, paqm_u64 b)
{
	return a < b ? a : b;
}

static inline paqm_u64 paqm_max64(paqm_u64 a, paqm_u64 b)
{
	return a > b ? a : b;
}

static inline paqm_u64 paqm_clamp64(paqm_u64 v, paqm_u64 lo, paqm_u64 hi)
{
	return v < lo ? lo : v > hi ? hi : v;
}

/* Position of the highest set bit, 1..64; 0 for 0. */
static inline int paqm_fls64(paqm_u64 v)
{
	return v ? 64 - __builtin_clzll(v) : 0;
}

/**
 * paqm_div64() - a / b, rounded down
 * @a: dividend
 * @b: divisor; 0 yields PAQM_U64_MAX, so that a caller's clamp decides
 *
 * Return: the quotient.
 */
static inline paqm_u64 paqm_div64(paqm_u64 a, paqm_u64 b)
{
	if (!b)
		return PAQM_U64_MAX;
#if defined(__LP64__)
	return a / b;
#else
	{
		paqm_u64 quot = 0;
		int shift = paqm_fls64(a) - paqm_fls64(b);

		for (; shift >= 0; shift--) {
			if (a >= b << shift) {
				a -= b << shift;
				quot |= 1ULL << shift;
			}
		}
		return quot;
	}
#endif
}

/* @a / @b, rounded towards 0; @b is below 2^63 and not 0. */
static inline paqm_s64 paqm_sdiv64(paqm_s64 a, paqm_u64 b)
{
	paqm_u64 quot = paqm_div64(a < 0 ? -(paqm_u64)a : (paqm_u64)a, b);

	return a < 0 ? -(paqm_s64)quot : (paqm_s64)quot;
}

/* 64 x 64 -> 128 bit product, by schoolbook multiplication. */
static inline void paqm_mul128(paqm_u64 a, paqm_u64 b, paqm_u64 *hi, paqm_u64 *lo)
{
	paqm_u64 a0 = a & PAQM_U32_MAX, a1 = a >> 32;
	paqm_u64 b0 = b & PAQM_U32_MAX, b1 = b >> 32;
	paqm_u64 low = a0 * b0;
	paqm_u64 mid = a1 * b0 + (low >> 32); /* cannot overflow */
	paqm_u64 mid2 = a0 * b1 + (mid & PAQM_U32_MAX);

	*hi = a1 * b1 + (mid >> 32) + (mid2 >> 32);
	*lo = (mid2 << 32) | (low & PAQM_U32_MAX);
}

/**
 * paqm_muldiv() - a * b / c with a 128-bit intermediate, rounded to nearest
 * @a: factor
 * @b: factor
 * @c: divisor; 0 saturates
 *
 * Return: the quotient, saturated to PAQM_U64_MAX.
 */
static inline paqm_u64 paqm_muldiv(paqm_u64 a, paqm_u64 b, paqm_u64 c)
{
	paqm_u64 hi, lo, rem, quot;
	int i;

	paqm_mul128(a, b, &hi, &lo);
	if (hi >= c) /* also c == 0 */
		return PAQM_U64_MAX;
	if (!hi) {
		quot = paqm_div64(lo, c);
		rem = lo - quot * c;
		return rem >= c - rem && quot != PAQM_U64_MAX ? quot + 1 : quot;
	}
	rem = hi;
	quot = 0;
	for (i = 63; i >= 0; i--) {
		int carry = rem >> 63;

		rem = (rem << 1) | ((lo >> i) & 1);
		quot <<= 1;
		if (carry || rem >= c) {
			rem -= c;
			quot |= 1;
		}
	}
	return rem >= c - rem && quot != PAQM_U64_MAX ? quot + 1 : quot;
}

/**
 * paqm_mul_q24() - v * gain for a Q24 gain, rounded down, saturating
 * @v: value
 * @gain_q24: factor in Q24
 *
 * Return: the product, PAQM_U64_MAX if it does not fit.
 */
static inline paqm_u64 paqm_mul_q24(paqm_u64 v, paqm_u64 gain_q24)
{
	paqm_u64 hi, lo;

	paqm_mul128(v, gain_q24, &hi, &lo);
	return hi >> 24 ? PAQM_U64_MAX : (hi << 40) | (lo >> 24);
}

/* Rate in bit/s of @bytes seen during @ns; rounded, 0 for an empty window. */
static inline paqm_u64 paqm_rate_bps(paqm_u64 bytes, paqm_u64 ns)
{
	return ns ? paqm_muldiv(bytes, 8000000000ULL, ns) : 0;
}

/* Bytes that @bps moves in @ns; rounded. */
static inline paqm_u64 paqm_bytes_in(paqm_u64 bps, paqm_u64 ns)
{
	return paqm_muldiv(bps, ns, 8000000000ULL);
}

#endif /* PAQM_FIX_H */
