/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Rates that travel with the media: where they are found, and how receivers return them. How they
 * are lowered, and what the checksum is then: kernel/fuzz/fuzz_inband.c, which inband_replay.c
 * gives the same table.
 */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "inband_vectors.h"

#define expect(where, what, got, want)                                                             \
	check_equal(where, __LINE__, what, (unsigned long long)(got), (unsigned long long)(want))

TEST(test_table)
{
	paqm_u8 buf[PAQM_INBAND_MAX], *exact;
	size_t i;

	for (i = 0; i < ROWS(paqm_inband_cases); i++) {
		const struct paqm_inband_case *c = &paqm_inband_cases[i];
		paqm_u32 len = paqm_inband_make(buf, c->hex), cut;

		/* in a block of its own: the sanitizer sees a byte too far */
		for (cut = 0; cut <= len; cut++) {
			paqm_u32 at;

			exact = malloc(cut ? cut : 1);
			memcpy(exact, buf, cut);
			at = paqm_field_find(exact, cut);
			if (cut == len)
				expect(c->name, "place", at, c->at);
			else if (at)
				expect(c->name, "place when cut", at, c->at);
			free(exact);
		}
		expect(c->name, "supplement", c->at ? paqm_more_find(buf, len) : 0, c->more);
		if (c->at)
			expect(c->name, "above", paqm_field_above(buf + c->at, &vec_router), 1);
	}
}

/* Every change of two bytes at both parities, also to and from what sums to zero. */
TEST(test_checksum)
{
	paqm_u8 data[10], old[3];
	paqm_u32 i, at;

	for (i = 0; i < 200000; i++) {
		paqm_u32 r = i * 2654435761U;
		paqm_u16 check;

		for (at = 0; at < sizeof(data); at++)
			data[at] = (paqm_u8)(i % 7 ? r >> at : 0);
		check = paqm_checksum(data, sizeof(data));
		at = i % 5;
		memcpy(old, data + at, 3);
		data[at] = (paqm_u8)(r >> 24);
		data[at + 1] = i % 3 ? 0xFF : (paqm_u8)(r >> 16);
		data[at + 2] = i % 11 ? (paqm_u8)(r >> 8) : 0;
		check = paqm_checksum_adjust(check, old, data + at, 3, (int)(at & 1));
		/* 0 and 0xFFFF are the same number */
		expect("checksum", "change", check % 0xFFFF,
		       paqm_checksum(data, sizeof(data)) % 0xFFFF);
	}
}

TEST(test_period)
{
	expect("period", "0 ms", paqm_field_period(0), 1);
	expect("period", "20 ms", paqm_field_period(20), 1);
	expect("period", "21 ms", paqm_field_period(21), 2);
	expect("period", "250 ms", paqm_field_period(250), 13);
	expect("period", "5 s", paqm_field_period(5000), 250);
	expect("period", "65535 ms", paqm_field_period(65535), 255);
}

/* What several routers say of a way, in any order. */
TEST(test_said)
{
	static const struct {
		paqm_u8 said, mine, both;
	} t[] = {
		{0, 0, 0}, {0, 1, 1},  {3, 1, 3},   {1, 3, 3},	      {2, 0, 2},
		{0, 4, 4}, {5, 8, 13}, {6, 11, 15}, {0xF0, 15, 0xFF}, {0, 0xF0, 0},
	};
	paqm_u8 udp[8 + PAQM_INBAND_MAX] = {0};
	size_t i;

	for (i = 0; i < ROWS(t); i++)
		expect("said", "both", paqm_said_both(t[i].said, t[i].mine), t[i].both);
	for (i = 0; i < ROWS(paqm_inband_cases); i++) {
		const struct paqm_inband_case *c = &paqm_inband_cases[i];
		paqm_u32 len = 8 + paqm_inband_make(udp + 8, c->hex), k;
		paqm_u8 before[8 + PAQM_INBAND_MAX];
		struct paqm_more m;

		if (!c->more)
			continue;
		paqm_put16(udp + 6, 0);
		paqm_put16(udp + 6, paqm_checksum(udp, len));
		memcpy(before, udp, len);
		paqm_more_say(udp, c->more, PAQM_SAID_CONGESTED | 2, 0);
		paqm_more_decode(udp + 8 + c->more, &m);
		expect(c->name, "said", m.said, 6);
		expect(c->name, "round trip", m.rtt, 400);
		expect(c->name, "demand", m.demand, VEC_RATE);
		expect(c->name, "use", m.used, VEC_USED);
		for (k = 8; k < len; k++)
			if (k != 8 + c->more + PAQM_MORE_SAID)
				expect(c->name, "other bytes", udp[k], before[k]);
		before[6] = udp[6];
		before[7] = udp[7];
		paqm_put16(udp + 6, 0);
		expect(c->name, "checksum", paqm_get16(before + 6) % 0xFFFF,
		       paqm_checksum(udp, len) % 0xFFFF);
		paqm_put16(udp + 6, 7); /* to be computed by the device: stays */
		paqm_more_say(udp, c->more, PAQM_SAID_ALL, 1);
		expect(c->name, "partial checksum", paqm_get16(udp + 6), 7);
	}
}

TEST(test_return)
{
	struct paqm_return got;
	paqm_u8 p[PAQM_APP_LEN + PAQM_APP_MORE], t[PAQM_TMMBR_LEN], b[PAQM_REMB_LEN];
	paqm_u32 exp;

	for (size_t i = ROWS(vec_returns); i-- > 0;) {
		const struct paqm_return *r = &vec_returns[i].r;
		const char *name = vec_returns[i].name;

		paqm_return_encode(p, 0xCAFEBABE, r);
		expect(name, "decode",
		       paqm_return_decode(p + PAQM_APP_DATA, paqm_return_len(r) - PAQM_APP_DATA,
					  &got),
		       0);
		expect(name, "length", paqm_get16(p + 2), paqm_return_len(r) / 4 - 1);
		expect(name, "more", got.more, r->more);
		expect(name, "said", got.said, r->said);
		expect(name, "rate", got.field.rate, r->field.rate);
		expect(name, "nonce", got.field.nonce, r->field.nonce);
		expect(name, "router", got.field.router, r->field.router);
		expect(name, "period", got.field.period, r->field.period);
		expect(name, "seq", got.seq, r->seq);
		expect(name, "kind", got.kind, r->kind);
	}
	paqm_return_encode(p, 0xCAFEBABE, &vec_returns[0].r);
	expect("return", "header", paqm_get32(p), 0x81CC0006);
	expect("return", "ssrc", paqm_get32(p + 4), 0xCAFEBABE);
	expect("return", "name", memcmp(p + 8, "PAQM", 4), 0);
	expect("return", "decode", paqm_return_decode(p + PAQM_APP_DATA, PAQM_APP_DATA_LEN, &got),
	       0);
	expect("return", "short",
	       -paqm_return_decode(p + PAQM_APP_DATA, PAQM_APP_DATA_LEN - 4, &got), 1);
	p[19] = 2;
	expect("return", "unknown kind",
	       -paqm_return_decode(p + PAQM_APP_DATA, PAQM_APP_DATA_LEN, &got), 1);
	p[19] = 0;
	paqm_put32(p + 12, 0xFF800000);
	expect("return", "rate -inf",
	       -paqm_return_decode(p + PAQM_APP_DATA, PAQM_APP_DATA_LEN, &got), 1);

	expect("mantissa", "17 bits", paqm_mantissa(131071, 17, &exp), 131071);
	expect("mantissa", "exponent", exp, 0);
	expect("mantissa", "next", paqm_mantissa(131073, 17, &exp), 65536);
	expect("mantissa", "its exponent", exp, 1);
	/* 625 kbit/s: 625000 = 78125 * 8 */
	paqm_tmmbr_encode(t, 1, 2, 625000, 40);
	expect("tmmbr", "header", paqm_get32(t), 0x83CD0004);
	expect("tmmbr", "media", paqm_get32(t + 12), 2);
	expect("tmmbr", "rate", paqm_get32(t + 16), 3U << 26 | 78125U << 9 | 40);
	paqm_remb_encode(b, 1, 2, 1000000);
	expect("remb", "header", paqm_get32(b), 0x8FCE0005);
	expect("remb", "name", memcmp(b + 12, "REMB", 4), 0);
	expect("remb", "rate", paqm_get32(b + 16), 1U << 24 | 2U << 18 | 250000);
	expect("remb", "media", paqm_get32(b + 20), 2);
}

CHECK_MAIN
