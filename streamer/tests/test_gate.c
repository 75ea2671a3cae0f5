// SPDX-License-Identifier: GPL-2.0
/* Who reaches rtpbin, and what is taken out of RTCP before. */
#include <string.h>

#include "core/paqm_msg.h"
#include "core/tests/check.h"
#include "streamer/rtp/gate.h"

#define MS 1000000ULL
#define START (100000 * MS)

static unsigned int failures;

static enum gate_why rtp(struct gate *g, uint32_t ssrc, uint16_t seq, uint64_t ms,
			 struct gate_gone *gone)
{
	uint8_t p[12] = {0x80, 96};

	paqm_put16(p + 2, seq);
	paqm_put32(p + 8, ssrc);
	return gate_rtp(g, p, sizeof(p), START + ms * MS, gone);
}

static unsigned int used(const struct gate *g)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < GATE_STREAMS; i++)
		n += g->streams[i].used;
	return n;
}

static void test_agreed(void)
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

static void test_heads(void)
{
	static const uint8_t bad[][12] = {
		{0x00, 96},  /* another version */
		{0x80, 200}, /* RTCP */
		{0x80, 72},
	};
	uint8_t p[12] = {0x83, 96};
	struct gate_gone gone;
	struct gate g = {0};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
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
static void test_open(void)
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
static void test_proof(void)
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

static size_t clean(struct gate *g, const uint8_t *from, size_t len, uint8_t *p, bool *about_us)
{
	memcpy(p, from, len);
	return gate_clean(g, p, len, about_us);
}

static void test_clean(void)
{
	static const uint8_t rr[] = {0x80, 201, 0, 1, 0, 0, 0, 5};
	static const uint8_t asks[] = {0x80, 201, 0, 1, 0, 0, 0, 5, 0x85, 205,
				       0,    2,	  0, 0, 0, 5, 0, 0, 0,	  77};
	static const uint8_t between[] = {0x80, 201, 0, 1, 0, 0, 0, 5, 0x85, 205,  0,
					  2,	0,   0, 0, 5, 0, 0, 0, 77,   0x81, 206,
					  0,	2,   0, 0, 0, 5, 0, 0, 0,    77};
	static const uint8_t others[] = {0x80, 201, 0, 1, 0, 0, 0, 6};
	static const uint8_t self[] = {0x80, 201, 0, 1, 0, 0, 0, 77};
	static const uint8_t short_app[] = {0x81, 204, 0, 1, 0, 0, 0, 5};
	static const uint8_t short_fb[] = {0x81, 206, 0, 1, 0, 0, 0, 5};
	static const uint8_t short_rr[] = {0x81, 201, 0, 1, 0, 0, 0, 5};
	static const uint8_t names[] = {0x82, 202, 0, 4, 0, 0, 0, 5, 0, 0,
					0,    0,   0, 0, 0, 9, 0, 0, 0, 0};
	static const uint8_t name[] = {0x81, 202, 0, 3, 0, 0, 0, 5, 1, 2, 'a', 'b', 0, 0, 0, 0};
	static const uint8_t more[] = {0x81, 202, 0, 3, 0, 0, 0, 5, 0, 0, 0, 77, 0, 0, 0, 0};
	static const uint8_t endless[] = {0x81, 202, 0, 2, 0, 0, 0, 5, 1, 2, 'a', 'b'};
	uint8_t block[32] = {0x81, 201, 0, 7, 0, 0, 0, 5, 0, 0, 0, 77}, p[64];
	struct gate_gone gone;
	struct gate g = {0};
	bool us;

	gate_own(&g, 77);
	CHECK_EQ(gate_rtcp(&g, rr, sizeof(rr), START, &gone), GATE_IN);
	CHECK_EQ(clean(&g, rr, sizeof(rr), p, &us), 8);
	CHECK_EQ(us, false);
	CHECK_EQ(clean(&g, asks, sizeof(asks), p, &us), 8);
	CHECK_EQ(us, false);
	CHECK_EQ(clean(&g, between, sizeof(between), p, &us), 20);
	CHECK_EQ(us, true);
	CHECK_EQ(p[9], 206);
	CHECK_EQ(g.refused[GATE_HANGS], 2);
	CHECK_EQ(clean(&g, asks + 8, 12, p, &us), 0);
	CHECK_EQ(clean(&g, block, sizeof(block), p, &us), 32);
	CHECK_EQ(us, true);
	block[11] = 78;
	CHECK_EQ(clean(&g, block, sizeof(block), p, &us), 32);
	CHECK_EQ(us, false);
	CHECK_EQ(clean(&g, others, sizeof(others), p, &us), 0);
	CHECK_EQ(clean(&g, names, sizeof(names), p, &us), 0);
	CHECK_EQ(g.refused[GATE_OTHERS], 2);
	CHECK_EQ(clean(&g, self, sizeof(self), p, &us), 0);
	CHECK_EQ(g.refused[GATE_SELF], 1);
	CHECK_EQ(clean(&g, name, sizeof(name), p, &us), sizeof(name));
	CHECK_EQ(clean(&g, more, sizeof(more), p, &us), 0);
	CHECK_EQ(clean(&g, endless, sizeof(endless), p, &us), 0);
	CHECK_EQ(clean(&g, short_app, sizeof(short_app), p, &us), 0);
	CHECK_EQ(clean(&g, short_fb, sizeof(short_fb), p, &us), 0);
	CHECK_EQ(clean(&g, short_rr, sizeof(short_rr), p, &us), 0);
	CHECK_EQ(clean(&g, rr, 7, p, &us), 0);
	CHECK_EQ(clean(&g, rr, 0, p, &us), 0);
	CHECK_EQ(clean(&g, block, 31, p, &us), 0);
	CHECK_EQ(g.refused[GATE_BROKEN], 8);
}

int main(void)
{
	test_agreed();
	test_heads();
	test_open();
	test_proof();
	test_clean();
	return failures != 0;
}
