/* SPDX-License-Identifier: GPL-2.0 */
/*
 * UDP payloads with and without a rate for the routers (core/paqm_inband.h), and where it
 * is. One table for the user-space test, the fuzzer's first inputs and the KUnit suite.
 *
 * Hexadecimal; blanks are ignored, '@' stands for a usable field, '+' for a usable supplement.
 */
#ifndef PAQM_INBAND_VECTORS_H
#define PAQM_INBAND_VECTORS_H

#include "../paqm_inband.h"

#define PAQM_INBAND_MAX 256
#define VEC_SOME __attribute__((unused)) /* not everybody who includes this has a use for all */
#define VEC_RATE 0x4A3EBC20U		 /* 3125000 */
#define VEC_NONCE 0x11223344U
#define VEC_USED 0x49742400U /* 1000000 */
#define VEC_RTP "60 0001 00000010 12345678"
#define VEC_EIGHT "0a0b0c0d0e0f1011"
#define VEC_64 VEC_EIGHT VEC_EIGHT VEC_EIGHT VEC_EIGHT VEC_EIGHT VEC_EIGHT VEC_EIGHT VEC_EIGHT

static const struct paqm_inband_case {
	const char *name;
	const char *hex;
	paqm_u32 at;
	paqm_u32 more; /* where the supplement is; 0: there is none, or it does not count */
} paqm_inband_cases[] VEC_SOME = {
	{"one-byte element alone", "90" VEC_RTP "bede0004 1e@" VEC_EIGHT, 17, 0},
	{"its packet has no payload", "90" VEC_RTP "bede0004 1e@", 17, 0},
	{"largest identifier", "90" VEC_RTP "bede0004 ee@" VEC_EIGHT, 17, 0},
	{"behind another element and padding", "90" VEC_RTP "bede0006 22aabbcc 00 1e@ 000000 61",
	 22, 0},
	{"before another element", "90" VEC_RTP "bede0005 1e@ 22aabbcc 61", 17, 0},
	{"two-byte element", "90" VEC_RTP "10000005 010f@ 000000 6162", 18, 0},
	{"two-byte element, application bits", "90" VEC_RTP "10070005 ff0f@ 000000 6162", 18, 0},
	{"two-byte element behind an empty one", "90" VEC_RTP "10000005 0700 010f@ 00 6162", 20, 0},
	{"two sources", "92" VEC_RTP "1111111122222222 bede0004 1e@ 61", 25, 0},
	{"15 sources, extension too late", "9f" VEC_RTP VEC_64 "0a0b0c0d bede0004 1e@ 61", 0, 0},
	{"15 sources in their place",
	 "9f" VEC_RTP VEC_EIGHT VEC_EIGHT VEC_EIGHT VEC_EIGHT VEC_EIGHT VEC_EIGHT VEC_EIGHT
	 "0a0b0c0d bede0004 1e@ 61",
	 77, 0},
	{"with padding behind the payload", "b0" VEC_RTP "bede0004 1e@ 61 00000004", 17, 0},
	{"last in the window",
	 "90" VEC_RTP "1000002c 0194" VEC_64 VEC_64 VEC_EIGHT VEC_EIGHT "0a0b0c0d 010f@ 0000000000",
	 168, 0},
	{"probe", "0f@00000001", 1, 0},
	{"probe with more behind", "0f@00000001" VEC_EIGHT, 1, 0},

	{"no extension", "80" VEC_RTP "bede0004 1e@" VEC_EIGHT, 0, 0},
	{"not version 2", "50" VEC_RTP "bede0004 1e@" VEC_EIGHT, 0, 0},
	{"another profile", "90" VEC_RTP "abcd0004 1e@" VEC_EIGHT, 0, 0},
	{"another magic", "90" VEC_RTP "bede0004 1e50415132 4a3ebc20 0000 00 11223344 61", 0, 0},
	{"element of 16 bytes", "90" VEC_RTP "bede0005 1f@ 00 000000 61", 0, 0},
	{"element of 14 bytes", "90" VEC_RTP "bede0004 1d@ 61", 0, 0},
	{"behind identifier 15", "90" VEC_RTP "bede0005 f0000000 1e@ 61", 0, 0},
	{"behind identifier 0 with a length", "90" VEC_RTP "bede0005 03000000 1e@ 61", 0, 0},
	{"beyond the extension", "90" VEC_RTP "bede0003 1e@ 61", 0, 0},
	{"two-byte element, half a header", "90" VEC_RTP "10000001 00000001 0f@", 0, 0},
	{"cut extension", "90" VEC_RTP "bede0004 1e50415131 4a3ebc20 0000 00 112233", 0, 0},
	{"cut before the length of the extension", "90" VEC_RTP "bede", 0, 0},
	{"empty extension", "90" VEC_RTP "bede0000 1e@", 0, 0},
	{"rate NaN", "90" VEC_RTP "bede0004 1e50415131 7fc00000 0000 00 11223344 61", 0, 0},
	{"rate infinite", "90" VEC_RTP "bede0004 1e50415131 7f800000 0000 00 11223344 61", 0, 0},
	{"rate negative", "90" VEC_RTP "bede0004 1e50415131 ca3ebc20 0000 00 11223344 61", 0, 0},
	{"rate zero", "90" VEC_RTP "bede0004 1e50415131 00000000 0000 00 11223344 61", 0, 0},
	{"probe without sequence", "0f@000000", 0, 0},
	{"probe with another magic", "0f50415132 4a3ebc20 0000 00 11223344 00000001", 0, 0},
	{"neither RTP nor probe", "0e@00000001", 0, 0},

	{"supplement behind the field", "90" VEC_RTP "bede0008 1e@ 2e+" VEC_EIGHT, 17, 33},
	{"supplement before the field", "90" VEC_RTP "bede0008 2e+ 1e@" VEC_EIGHT, 33, 17},
	{"supplement, two-byte headers", "90" VEC_RTP "10000009 010f@ 020f+ 0000 61", 18, 35},
	{"supplement without a field", "90" VEC_RTP "bede0004 2e+" VEC_EIGHT, 0, 0},
	{"cut supplement", "90" VEC_RTP "bede0008 1e@ 2e50415132 0190 4a3ebc20 4a3ebc", 17, 0},
	{"supplement beyond the extension", "90" VEC_RTP "bede0004 1e@ 2e+", 17, 0},
	{"supplement with a demand of NaN",
	 "90" VEC_RTP "bede0008 1e@ 2e50415132 0190 7fc00000 4a3ebc20 00 61", 17, 0},
	{"supplement with a use of zero",
	 "90" VEC_RTP "bede0008 1e@ 2e50415132 0190 4a3ebc20 00000000 00 61", 17, 0},
	{"probe with a supplement", "0f@00000001+", 1, 20},
	{"probe with a cut supplement", "0f@00000001 50415132 0190 4a3ebc20 4a3ebc20", 1, 0},
	{"probe with a supplement too late", "0f@00000001 00+", 1, 0},
	{"nothing", "", 0, 0},
};

/* What a router with this rate makes of them is published. */
#define VEC_SAID 14
VEC_SOME static const struct paqm_field vec_router = {
	.rate = 0x49742400, .router = 0xBEEF, .period = 13};

/* What receivers return by RTCP. */
static const struct {
	const char *name;
	struct paqm_return r;
	paqm_u64 bps;
} vec_returns[] VEC_SOME = {
	{"of an element", {{0x49189680, 0x11223344, 0xBEEF, 13}, 0x10002, 0, 0, 0}, 625000},
	{"of a probe that no router lowered", {{0x4A3EBC20, 1, 0, 0}, 7, 1, 0, 0}, 3125000},
	{"largest rate",
	 {{0x5368D4A5, 0xFFFFFFFF, 0xFFFF, 255}, 0xFFFFFFFF, 1, 0, 0},
	 999999995904ULL},
	{"of a supplement", {{0x49189680, 0x11223344, 0xBEEF, 13}, 0x10002, 0, 1, 14}, 625000},
	{"of a probe's supplement in which nobody wrote",
	 {{0x4A3EBC20, 1, 0, 0}, 7, 1, 1, 0},
	 3125000},
};

static inline paqm_u32 paqm_inband_nibble(char c)
{
	return (paqm_u32)(c <= '9' ? c - '0' : c - 'a' + 10);
}

/* The payload of a case into @p, which has room for PAQM_INBAND_MAX bytes; its length. */
static inline paqm_u32 paqm_inband_make(paqm_u8 *p, const char *hex)
{
	static const struct paqm_field field = {.rate = VEC_RATE, .nonce = VEC_NONCE};
	static const struct paqm_more more = {.rtt = 400, .demand = VEC_RATE, .used = VEC_USED};
	paqm_u32 n = 0;

	for (; *hex; hex++) {
		if (*hex == ' ')
			continue;
		if (*hex == '@') {
			paqm_field_encode(p + n, &field);
			n += PAQM_FIELD_LEN;
			continue;
		}
		if (*hex == '+') {
			paqm_more_encode(p + n, &more);
			n += PAQM_FIELD_LEN;
			continue;
		}
		p[n++] = (paqm_u8)(paqm_inband_nibble(hex[0]) << 4 | paqm_inband_nibble(hex[1]));
		hex++;
	}
	return n;
}

#endif /* PAQM_INBAND_VECTORS_H */
