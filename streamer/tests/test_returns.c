// SPDX-License-Identifier: GPL-2.0
/* Rates that travel with the media, at both ends: when they are returned, what is believed. */
#include <string.h>

#include "core/tests/check.h"
#include "core/tests/inband_vectors.h"
#include "streamer/rtp/returns.h"
#include "streamer/rtp/wire.h"
#include "streamer/rtp/xr.h"

#define MS 1000000ULL

static size_t probe(uint8_t *p, uint32_t seq, uint64_t rate, uint32_t nonce)
{
	struct paqm_field f = {
		.rate = paqm_f32_encode(rate, 0), .nonce = nonce, .router = 5, .period = 13};

	p[0] = PAQM_PROBE_FIRST;
	paqm_field_encode(p + 1, &f);
	paqm_put32(p + 16, seq);
	return PAQM_PROBE_LEN;
}

/* RTP whose element is the first one. */
static size_t element(uint8_t *p, uint16_t seq, uint64_t rate, uint32_t nonce)
{
	size_t len = paqm_inband_make(p, paqm_inband_cases[0].hex);
	struct paqm_field f = {.rate = paqm_f32_encode(rate, 0), .nonce = nonce, .period = 13};

	paqm_put16(p + 2, seq);
	paqm_field_encode(p + 17, &f);
	return len;
}

TEST(test_see)
{
	uint8_t p[PAQM_INBAND_MAX];
	struct returns r = {0};
	bool is;
	int i;

	CHECK_EQ(returns_see(&r, p, probe(p, 1, 1000000, 7), 0, &is), true);
	CHECK_EQ(is, true);
	CHECK_EQ(r.newest.field.router, 5);
	/* not again before 100 ms, or 20 ms if it changes by more than 1 % */
	CHECK_EQ(returns_see(&r, p, probe(p, 2, 1000000, 7), 99 * MS, &is), false);
	CHECK_EQ(returns_see(&r, p, probe(p, 3, 1010000, 7), 99 * MS, &is), false);
	CHECK_EQ(returns_see(&r, p, probe(p, 4, 1010064, 7), 99 * MS, &is), true);
	CHECK_EQ(returns_see(&r, p, probe(p, 5, 500000, 7), 118 * MS, &is), false);
	CHECK_EQ(returns_see(&r, p, probe(p, 6, 500000, 7), 119 * MS, &is), true);
	CHECK_EQ(returns_see(&r, p, probe(p, 7, 500000, 7), 219 * MS, &is), true);
	/* late and repeated ones say nothing */
	CHECK_EQ(returns_see(&r, p, probe(p, 7, 900000, 7), 400 * MS, &is), false);
	CHECK_EQ(returns_see(&r, p, probe(p, 6, 900000, 7), 400 * MS, &is), false);
	CHECK_EQ(is, true);
	/* media begins: from now on its elements count */
	CHECK_EQ(returns_see(&r, p, element(p, 65534, 800000, 7), 400 * MS, &is), true);
	CHECK_EQ(is, false);
	CHECK_EQ(r.newest.seq, 65534);
	CHECK_EQ(returns_see(&r, p, probe(p, 8, 100000, 7), 600 * MS, &is), false);
	CHECK_EQ(is, true);
	for (i = 65535; i < 3 * 65536 + 5; i += 1000)
		returns_see(&r, p, element(p, (uint16_t)i, 800000, 7), 600 * MS, &is);
	CHECK_EQ(r.newest.seq, 65535 + 131 * 1000);
	CHECK_EQ(returns_see(&r, p, element(p, (uint16_t)(i - 2000), 1, 7), 900 * MS, &is), false);
	/* another stream, though its numbers are lower */
	CHECK_EQ(returns_see(&r, p, element(p, 3, 700000, 8), 901 * MS, &is), true);
	CHECK_EQ(r.newest.seq, 3);
	/* the same again after half a minute, in which numbers have gone round by more than half */
	CHECK_EQ(returns_see(&r, p, element(p, 40003, 700000, 8), 30000 * MS, &is), false);
	CHECK_EQ(returns_see(&r, p, element(p, 40003, 700000, 8), 32000 * MS, &is), true);
	CHECK_EQ(returns_see(&r, p, element(p, 40004, 700000, 8), 32100 * MS, &is), true);
	/* what holds no field */
	CHECK_EQ(returns_see(&r, p, 0, 2000 * MS, &is), false);
	CHECK_EQ(is, false);
	p[0] = PAQM_PROBE_FIRST;
	CHECK_EQ(returns_see(&r, p, 5, 2000 * MS, &is), false);
	CHECK_EQ(is, true); /* for no decoder either */
}

/* Streams that begin one after the other are no reason to return more. */
TEST(test_see_others)
{
	uint8_t p[PAQM_INBAND_MAX];
	struct returns r = {0};
	uint32_t nonce;
	int returned = 0;
	bool is;

	for (nonce = 1; nonce <= 1000; nonce++)
		returned += returns_see(&r, p, probe(p, 1, 1000 * nonce, nonce), nonce * MS, &is);
	CHECK_EQ(returned, 50);
	CHECK_EQ(r.newest.field.nonce, 1000);
}

/* What is sent again carries the fields of then, and numbers of its own. */
TEST(test_see_again)
{
	uint8_t p[PAQM_INBAND_MAX];
	struct returns r = {0};
	size_t len;
	bool is;

	CHECK_EQ(returns_see(&r, p, element(p, 1000, 800000, 7), 0, &is), true);
	len = element(p, 20000, 300000, 7);
	p[1] = RTX_PT;
	CHECK_EQ(returns_see(&r, p, len, 100 * MS, &is), false);
	CHECK_EQ(returns_see(&r, p, element(p, 1001, 800000, 7), 200 * MS, &is), true);
	CHECK_EQ(r.newest.seq, 1001);
}

TEST(test_compound)
{
	struct paqm_return ret = {.field = {.rate = VEC_RATE, .nonce = 7}, .seq = 1};
	static const char name[] = "a name that is much too long for any packet, and more so";
	uint8_t p[RETURNS_MAX];
	size_t len, at, n;
	int form;

	for (n = 0; n < sizeof(name); n++) {
		for (form = RETURNS_APP; form <= RETURNS_REMB; form++) {
			char cname[sizeof(name)] = "";
			static const uint8_t last[] = {204, 205, 206};
			uint8_t type = 0;

			memcpy(cname, name, n);
			memset(p, 0xEE, sizeof(p));
			len = returns_compound(p, &ret, (enum returns_form)form, cname, 11, 22, 40);
			CHECK_EQ(len <= sizeof(p), 1);
			for (at = 0; at < len; at += 4 + 4 * paqm_get16(p + at + 2)) {
				CHECK_EQ(p[at] >> 6, 2);
				type = p[at + 1];
			}
			CHECK_EQ(at, len);
			CHECK_EQ(type, last[form]);
			CHECK_EQ(p[1], 201);
			CHECK_EQ(p[9], 202);
			CHECK_EQ(memcmp(p + 18, name, n < 40 ? n : 40), 0);
		}
	}
}

TEST(test_summary)
{
	struct xr_window w = {0};
	uint8_t p[XR_SUMMARY_LEN];
	size_t len = 0;

	CHECK_EQ(xr_summary(p, &w, 1, 2), 0);
	/* 65534 to 3 without 0, the second late by 90 and back: differences 90, 90, 0, 0 */
	xr_see(&w, 65534, 1000);
	xr_see(&w, 65535, 1090);
	xr_see(&w, 2, 1000);
	xr_see(&w, 1, 1000);
	xr_see(&w, 3, 1000);
	CHECK_EQ(xr_summary(p, &w, 11, 22), XR_SUMMARY_LEN);
	CHECK_EQ(p[0], 0x80);
	CHECK_EQ(p[1], 207);
	CHECK_EQ(paqm_get16(p + 2), XR_SUMMARY_LEN / 4 - 1);
	CHECK_EQ(paqm_get32(p + 4), 11);
	CHECK_EQ(p[8], 6);
	CHECK_EQ(p[9], 0xA0);
	CHECK_EQ(paqm_get16(p + 10), 9);
	CHECK_EQ(paqm_get32(p + 12), 22);
	CHECK_EQ(paqm_get16(p + 16), 65534);
	CHECK_EQ(paqm_get16(p + 18), 4);
	CHECK_EQ(paqm_get32(p + 20), 1);
	CHECK_EQ(paqm_get32(p + 28), 0);
	CHECK_EQ(paqm_get32(p + 32), 90);
	CHECK_EQ(paqm_get32(p + 36), 45);
	CHECK_EQ(paqm_get32(p + 40), 45);
	/* the next window goes on; what belongs to the one before is passed over */
	CHECK_EQ(xr_summary(p, &w, 11, 22), 0);
	xr_see(&w, 0, 1000);
	CHECK_EQ(xr_summary(p, &w, 11, 22), 0);
	xr_see(&w, 5, 990);
	CHECK_EQ(xr_summary(p, &w, 11, 22), XR_SUMMARY_LEN);
	CHECK_EQ(paqm_get16(p + 16), 4);
	CHECK_EQ(paqm_get16(p + 18), 6);
	CHECK_EQ(paqm_get32(p + 20), 1);
	CHECK_EQ(paqm_get32(p + 32), 10);
	/* and counts on when 32 bits have gone round: seven weeks of 1000 packets a second */
	for (size_t n = 0; n < 1 << 18; n++) {
		xr_see(&w, (uint16_t)(w.highest + 0x7fff), 1000);
		len = xr_summary(p, &w, 11, 22);
	}
	CHECK_EQ(len, XR_SUMMARY_LEN);
}

TEST(test_take)
{
	struct paqm_return ret = {.field = {.rate = paqm_f32_encode(625000, 0),
					    .nonce = 7,
					    .router = 5,
					    .period = 13},
				  .seq = 10};
	struct returned s = {.nonce = 7};
	uint8_t p[PAQM_APP_LEN];

	CHECK_EQ(returned_rate(&s, 0), 0);
	/* what no router has touched is no advice */
	ret.field.router = 0;
	paqm_return_encode(p, 1, &ret);
	CHECK_EQ(returned_take(&s, p + 12, 16, 0), 0);
	CHECK_EQ(returned_rate(&s, 0), 0);
	CHECK_EQ(s.untold, 1);
	CHECK_EQ(s.refused, 0);
	ret.field.router = 5;
	paqm_return_encode(p, 1, &ret);
	CHECK_EQ(returned_take(&s, p + 12, 16, 0), 625000);
	CHECK_EQ(returned_rate(&s, 3000 * MS - 1), 625000);
	CHECK_EQ(returned_rate(&s, 3000 * MS), 0);
	/* the same again, an older one, one of somebody who never saw a field, a damaged one */
	CHECK_EQ(returned_take(&s, p + 12, 16, 0), 0);
	ret.seq = 9;
	paqm_return_encode(p, 1, &ret);
	CHECK_EQ(returned_take(&s, p + 12, 16, 0), 0);
	ret.seq = 11;
	ret.field.nonce = 8;
	paqm_return_encode(p, 1, &ret);
	CHECK_EQ(returned_take(&s, p + 12, 16, 0), 0);
	ret.field.nonce = 7;
	paqm_return_encode(p, 1, &ret);
	CHECK_EQ(returned_take(&s, p + 12, 15, 0), 0);
	CHECK_EQ(s.refused, 4);
	CHECK_EQ(s.believed, 1);
	/* nor does it end what holds, or prolong it */
	ret.field.router = 0;
	paqm_return_encode(p, 1, &ret);
	CHECK_EQ(returned_take(&s, p + 12, 16, 2000 * MS), 0);
	CHECK_EQ(returned_rate(&s, 3000 * MS - 1), 625000);
	CHECK_EQ(returned_rate(&s, 3000 * MS), 0);
	ret.field.router = 5;
	/* a long period lives longer, no router's shortest */
	ret.field.period = 250;
	paqm_return_encode(p, 1, &ret);
	CHECK_EQ(returned_take(&s, p + 12, 16, 0), 625000);
	CHECK_EQ(returned_rate(&s, 15000 * MS - 1), 625000);
	CHECK_EQ(returned_rate(&s, 15000 * MS), 0);
}

/* A return of what a router says at its time. */
static uint64_t take(struct returned *s, uint32_t seq, uint64_t rate, uint8_t said, uint64_t ms)
{
	struct paqm_return ret = {.field = {.rate = paqm_f32_encode(rate, 0),
					    .nonce = 7,
					    .router = said & PAQM_SAID_GRADE ? 0 : 5,
					    .period = 5},
				  .seq = seq,
				  .more = 1,
				  .said = said};
	uint8_t p[PAQM_APP_LEN + PAQM_APP_MORE];

	paqm_return_encode(p, 1, &ret);
	return returned_take(s, p + PAQM_APP_DATA, PAQM_APP_DATA_LEN + PAQM_APP_MORE, ms * MS);
}

/* A receiver that is started again counts cycles anew: believed when what holds has expired. */
TEST(test_take_again)
{
	struct returned s = {.nonce = 7};

	CHECK_EQ(take(&s, 0x30010, 600000, 0, 0), 600000);
	CHECK_EQ(take(&s, 0x200, 500000, 0, 2999), 0);
	CHECK_EQ(take(&s, 0x201, 500000, 0, 4000), 500000);
	CHECK_EQ(take(&s, 0x200, 600000, 0, 4100), 0);
}

/* Another path: the rate of the one before ends, and what still comes of its probes is too old. */
TEST(test_moved)
{
	struct paqm_return ret = {.field = {.rate = paqm_f32_encode(625000, 0),
					    .nonce = 7,
					    .router = 5,
					    .period = 250},
				  .kind = PAQM_RETURN_PROBE,
				  .seq = 10};
	struct returned s = {.nonce = 7};
	uint8_t p[PAQM_APP_LEN];

	paqm_return_encode(p, 1, &ret);
	CHECK_EQ(returned_take(&s, p + 12, 16, 0), 625000);
	returned_move(&s, 12);
	CHECK_EQ(returned_rate(&s, 0), 0);
	for (ret.seq = 11; ret.seq <= 13; ret.seq++) {
		paqm_return_encode(p, 1, &ret);
		CHECK_EQ(returned_take(&s, p + 12, 16, 100 * MS), ret.seq > 12 ? 625000 : 0);
	}
	CHECK_EQ(s.refused, 2);
	CHECK_EQ(returned_rate(&s, 100 * MS), 625000);
}

/* A rate that a law searches for: the sender's vectors of ACP, and what there is no time for. */
TEST(test_follow)
{
	struct returned s = {.nonce = 7, .used = 100000, .rtt_us = 80000};

	CHECK_EQ(returned_asked(&s, 0), false);
	CHECK_EQ(take(&s, 1, 300000, PAQM_SAID_SEARCHES, 1000), 100000); /* no time has passed */
	CHECK_EQ(returned_asked(&s, 1000 * MS), true);
	near("searched", (double)take(&s, 2, 300000, PAQM_SAID_SEARCHES, 1050), 192948, 1);
	near("and down", (double)take(&s, 3, 100000, 12, 1100), 149753, 3);
	near("nearly full", (double)take(&s, 4, 300000, 12, 1150), 158855, 1);
	/* a law that knows its rate is followed at once, and so is one after a silence */
	CHECK_EQ(take(&s, 5, 300000, 0, 1200), 300000);
	s.used = 120000;
	CHECK_EQ(take(&s, 6, 300000, PAQM_SAID_SEARCHES, 9000), 120000);
	CHECK_EQ(returned_rate(&s, 9000 * MS), 120000);
	CHECK_EQ(returned_asked(&s, 14000 * MS), false);
	/* without a word of what is sent there is nothing to begin with */
	s = (struct returned){.nonce = 7};
	CHECK_EQ(take(&s, 1, 300000, PAQM_SAID_SEARCHES, 0), 300000);
}

/* Grades of load: multiply, add, cut once in 200 ms; never above what other routers allow. */
TEST(test_grades)
{
	struct returned s = {.nonce = 7, .used = 1600000};
	const uint8_t low = PAQM_SAID_SEARCHES | 1, high = low + 1, over = low + 2;
	uint64_t most = 1000000000000ULL;

	CHECK_EQ(take(&s, 1, most, low, 1000), 1600000);
	CHECK_EQ(take(&s, 2, most, low, 1200), 1700000);
	CHECK_EQ(take(&s, 3, most, high, 1400), 1748000);
	CHECK_EQ(take(&s, 4, most, over, 1500), 1529500);
	CHECK_EQ(take(&s, 5, most, over, 1600), 1529500);
	CHECK_EQ(take(&s, 6, most, over, 1700), 1338312);
	CHECK_EQ(take(&s, 7, 1000000, low, 1900), 1000000);
	CHECK_EQ(s.untold, 0);
}

/* What routers said since the last return is returned, the worst of it, and only once. */
TEST(test_see_supplement)
{
	static const uint8_t said[] = {PAQM_SAID_SEARCHES | 1, PAQM_SAID_CONGESTED | 2, 0, 0};
	struct returns r = {0};
	uint8_t p[PAQM_INBAND_MAX];
	size_t i;
	bool is;

	for (i = 0; i < ROWS(said); i++) {
		size_t len = element(p, (uint16_t)(i + 1), 800000, 7);

		if (said[i]) {
			len = paqm_inband_make(p, "90" VEC_RTP "bede0008 1e@ 2e+" VEC_EIGHT);
			paqm_put16(p + 2, (uint16_t)(i + 1));
			paqm_put32(p + 17 + PAQM_FIELD_NONCE, 7);
			p[33 + PAQM_MORE_SAID] = said[i];
		}
		CHECK_EQ(returns_see(&r, p, len, (i < 2 ? 0 : 60 * i) * MS, &is), i == 0 || i == 2);
		if (i == 0)
			CHECK_EQ(r.newest.said, PAQM_SAID_SEARCHES | 1);
		if (i == 1 || i == 2) /* not returned by itself, but with the next */
			CHECK_EQ(r.newest.said, PAQM_SAID_CONGESTED | 2);
		CHECK_EQ(r.newest.more, i < 3);
	}
}

/* Specification of the sender, section 9.4, ERF: the lowest of three routers comes back. */
TEST(test_chain)
{
	static const uint64_t routers[] = {700000, 450000, 900000};
	struct paqm_return ret = {.seq = 1};
	struct returned s = {.nonce = 7};
	uint8_t udp[8 + PAQM_INBAND_MAX] = {0}, app[PAQM_APP_LEN];
	size_t len = element(udp + 8, 1, 1000000000, 7);
	struct returns r = {0};
	size_t i;
	bool is;

	for (i = 0; i < 3; i++) {
		struct paqm_field mine = {.rate = paqm_f32_encode(routers[i], 0),
					  .router = (uint16_t)(i + 1)};
		uint32_t at = paqm_field_find(udp + 8, (uint32_t)len);

		CHECK_EQ(at, 17);
		CHECK_EQ(paqm_field_above(udp + 8 + at, &mine), i < 2);
		if (paqm_field_above(udp + 8 + at, &mine))
			paqm_field_lower(udp, at, &mine, 0);
	}
	CHECK_EQ(returns_see(&r, udp + 8, len, 0, &is), true);
	CHECK_EQ(r.newest.field.router, 2);
	ret.field = r.newest.field;
	paqm_return_encode(app, 1, &ret);
	CHECK_EQ(returned_take(&s, app + 12, 16, 0), 450000);
}

CHECK_MAIN
