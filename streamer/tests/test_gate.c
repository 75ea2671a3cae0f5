// SPDX-License-Identifier: GPL-2.0
/* Who reaches rtpbin, and what is taken out of RTCP before. */
#include <string.h>

#include "core/paqm_msg.h"
#include "core/tests/check.h"
#include "core/tests/inband_vectors.h"
#include "streamer/rtp/gate.h"

#define MS 1000000ULL
#define START (100000 * MS)

static enum gate_why rtp(struct gate *g, uint32_t ssrc, uint16_t seq, uint64_t ms,
			 struct gate_gone *gone)
{
	uint8_t p[12] = {0x80, 96};

	paqm_put16(p + 2, seq);
	paqm_put32(p + 8, ssrc);
	return gate_rtp(g, p, sizeof(p), START + ms * MS, gone);
}

#define ZEROS_18 "000000000000000000000000000000000000"
#define ZEROS_20 ZEROS_18 "0000"

static unsigned int used(const struct gate *g)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < GATE_STREAMS; i++)
		n += g->streams[i].used;
	return n;
}

TEST(test_agreed)
{
	struct gate_gone gone;
	struct gate g = {0};

	gate_agree(&g, 7);
	gate_agree(&g, 8);
	gate_own(&g, 9);
	for (uint32_t n = 0; n < 70000; n++)
		rtp(&g, 1000 + n / 4, (uint16_t)n, n, &gone);
	CHECK_EQ(g.refused[GATE_STRANGER], 70000);
	CHECK_EQ(used(&g), 2);
	CHECK_EQ(rtp(&g, 7, 1, 80000, &gone), GATE_IN);
	CHECK_EQ(rtp(&g, 8, 1, 90000, &gone), GATE_IN);
	CHECK_EQ(rtp(&g, 9, 1, 90000, &gone), GATE_SELF);
	CHECK_EQ(gone.any, false);
	g = (struct gate){0};
	gate_agree(&g, 0);
	CHECK_EQ(rtp(&g, 0, 1, 0, &gone), GATE_STRANGER);
}

TEST(test_heads)
{
	static const uint8_t bad[][12] = {
		{0x00, 96},  /* another version */
		{0x80, 200}, /* RTCP */
		{0x80, 72},
	};
	uint8_t p[12] = {0x83, 96};
	struct gate_gone gone;
	struct gate g = {0};

	for (size_t i = 0; i < ROWS(bad); i++)
		CHECK_EQ(gate_rtp(&g, bad[i], 12, START, &gone), GATE_BROKEN);
	CHECK_EQ(gate_rtp(&g, p, 11, START, &gone), GATE_BROKEN);
	CHECK_EQ(gate_rtp(&g, p, 0, START, &gone), GATE_BROKEN);
	CHECK_EQ(gate_rtp(&g, p, 12, START, &gone), GATE_OTHERS);
	for (unsigned int type = 0; type < 256; type++) {
		p[0] = 0x80;
		p[1] = (uint8_t)type;
		CHECK_EQ(gate_rtcp(&g, p, 8, START, &gone),
			 type >= 200 && type <= 207 ? GATE_IN : GATE_BROKEN);
	}
	CHECK_EQ(gate_rtcp(&g, p, 7, START, &gone), GATE_BROKEN);
	CHECK_EQ(used(&g), 1);
}

/* Nobody has agreed on anything: a few get in, and those who show packets in sequence. */
TEST(test_open)
{
	struct gate_gone gone;
	struct gate g = {0};
	unsigned int in = 0, left = 0;

	CHECK_EQ(rtp(&g, 1, 65535, 0, &gone), GATE_IN);
	g.keep = 1;
	for (uint32_t n = 0; n < 4000; n++)
		in += rtp(&g, 1000 + n, 5, 1, &gone) == GATE_IN;
	CHECK_EQ(in, GATE_FREE - 1);
	CHECK_EQ(rtp(&g, 2, 65535, 2, &gone), GATE_STRANGER);
	CHECK_EQ(rtp(&g, 2, 0, 2, &gone), GATE_STRANGER);
	CHECK_EQ(rtp(&g, 2, 1, 2, &gone), GATE_IN);
	/* out of sequence they wait again */
	for (uint16_t n = 0; n < 20; n = (uint16_t)(n + 2))
		CHECK_EQ(rtp(&g, 3, n, 2, &gone), GATE_STRANGER);
	for (uint32_t n = 0; n < 40000; n++)
		rtp(&g, 5000 + n / 4, (uint16_t)n, 3, &gone);
	CHECK_EQ(used(&g), GATE_STREAMS);
	CHECK_EQ(gone.any, false);
	CHECK(g.refused[GATE_FULL] > 9000);
	CHECK_EQ(rtp(&g, 1, 0, 3, &gone), GATE_IN);
	CHECK_EQ(rtp(&g, 2, 2, 3000, &gone), GATE_IN);
	/* one who is silent leaves for another, but not the one that plays */
	for (uint32_t n = 0; n < 3 * GATE_STREAMS; n++)
		if (rtp(&g, 80000 + n / 3, (uint16_t)n, 6000, &gone) == GATE_IN && gone.any) {
			left++;
			CHECK(gone.ssrc != 1 && gone.ssrc != 2);
		}
	CHECK_EQ(left, GATE_STREAMS - 2);
	CHECK_EQ(used(&g), GATE_STREAMS);
	CHECK_EQ(rtp(&g, 1, 1, 6000, &gone), GATE_IN);
	CHECK_EQ(rtp(&g, 2, 3, 6000, &gone), GATE_IN);
}

/* Who has proven to know the key keeps its place, who has not gives it away at once. */
TEST(test_proof)
{
	struct gate g = {.proof = true};
	struct gate_gone gone;

	for (uint32_t n = 0; n < 3 * GATE_STREAMS + 3; n++)
		rtp(&g, 1000 + n / 3, (uint16_t)n, 0, &gone);
	CHECK_EQ(used(&g), GATE_STREAMS);
	for (uint16_t n = 0; n < 3; n++)
		rtp(&g, 7, n, 1, &gone);
	CHECK_EQ(rtp(&g, 7, 3, 1, &gone), GATE_IN);
	gate_prove(&g, 7);
	for (uint32_t n = 0; n < 40000; n++)
		rtp(&g, 5000 + n / 4, (uint16_t)n, 2, &gone);
	CHECK_EQ(rtp(&g, 7, 4, 3, &gone), GATE_IN);
	CHECK_EQ(gone.any, false);
	CHECK_EQ(g.refused[GATE_FULL], 0);
}

TEST(test_clean)
{
	static const struct {
		const char *rtcp;
		size_t left;
		bool about_us;
		enum gate_why why; /* GATE_IN: nothing is refused */
	} rows[] = {
		{"80c90001 00000005", 8, false, GATE_IN},
		{"80c90001 00000005 85cd0002 00000005 0000004d", 8, false, GATE_HANGS},
		{"80c90001 00000005 85cd0002 00000005 0000004d 81ce0002 00000005 0000004d", 20,
		 true, GATE_HANGS},
		{"85cd0002 00000005 0000004d", 0, false, GATE_HANGS},
		{"81c90007 00000005 0000004d" ZEROS_20, 32, true, GATE_IN},
		{"81c90007 00000005 0000004e" ZEROS_20, 32, false, GATE_IN},
		{"80c90001 00000006", 0, false, GATE_OTHERS},
		{"82ca0004 00000005 00000000 00000009 00000000", 0, false, GATE_OTHERS},
		{"80c90001 0000004d", 0, false, GATE_SELF},
		{"81ca0003 00000005 01026162 00000000", 16, false, GATE_IN}, /* a name */
		{"81ca0003 00000005 0000004d 00000000", 0, false, GATE_BROKEN},
		{"81ca0002 00000005 01026162", 0, false, GATE_BROKEN}, /* one without end */
		{"81cc0001 00000005", 0, false, GATE_BROKEN},	       /* cut: APP */
		{"81ce0001 00000005", 0, false, GATE_BROKEN},	       /* feedback */
		{"81c90001 00000005", 0, false, GATE_BROKEN},	       /* receiver report */
		{"80c90001 000000", 0, false, GATE_BROKEN},
		{"", 0, false, GATE_BROKEN},
		{"81c90007 00000005 0000004e 00" ZEROS_18, 0, false, GATE_BROKEN},
	};
	struct gate_gone gone;
	struct gate g = {0};
	uint8_t p[PAQM_INBAND_MAX];
	size_t len;
	bool us;

	gate_own(&g, 77);
	len = paqm_inband_make(p, rows[0].rtcp);
	CHECK_EQ(gate_rtcp(&g, p, len, START, &gone), GATE_IN);
	for (size_t i = 0; i < ROWS(rows); i++) {
		uint64_t before = gate_refused(&g), reason = g.refused[rows[i].why];

		len = paqm_inband_make(p, rows[i].rtcp);
		same(rows[i].rtcp, gate_clean(&g, p, len, &us), rows[i].left);
		same(rows[i].rtcp, us, rows[i].about_us);
		same(rows[i].rtcp, gate_refused(&g), before + (rows[i].why != GATE_IN));
		if (rows[i].why != GATE_IN)
			same(rows[i].rtcp, g.refused[rows[i].why], reason + 1);
		if (rows[i].left == 20)
			CHECK_EQ(p[9], 206);
	}
}

CHECK_MAIN
