// SPDX-License-Identifier: GPL-2.0
/* Digests and the ring that keeps them. See unit.h. */
#include "unit.h"

TEST(test_siphash)
{
	/* vectors of the authors: key 00..0f, message 00..n-1 */
	uint8_t k[16], m[63];
	int i;

	for (i = 0; i < 16; i++)
		k[i] = (uint8_t)i;
	for (i = 0; i < 63; i++)
		m[i] = (uint8_t)i;
	CHECK_EQ(paqm_siphash24(k, m, 0), 0x726fdb47dd0e0e31ULL);
	CHECK_EQ(paqm_siphash24(k, m, 8), 0x93f5f5799a932462ULL);
	CHECK_EQ(paqm_siphash24(k, m, 15), 0xa129ca6149be45e5ULL);
	CHECK_EQ(paqm_siphash24(k, m, 63), 0x958a324ceb064572ULL);
}

TEST(test_ring)
{
	struct ring r;
	unsigned int i;

	uint64_t x = 1;

	CHECK_EQ(ring_init(&r, 4), 0);
	CHECK_EQ(ring_find(&r, 0, 0, 4 * S), RING_UNKNOWN); /* free entries hold nothing */
	for (i = 1; i <= 6; i++)
		ring_put(&r, i, i * S, 4 * S);
	CHECK_EQ(r.early, 0); /* what gave way had just expired */
	CHECK_EQ(ring_find(&r, 2, 6 * S, 4 * S), RING_UNKNOWN);
	CHECK_EQ(ring_find(&r, 3, 7 * S, 4 * S), RING_HIT);
	CHECK_EQ(ring_find(&r, 3, 7 * S + 1, 4 * S), RING_OLD);
	CHECK_EQ(ring_find(&r, 6, 6 * S, 4 * S), RING_HIT);
	ring_put(&r, 7, 6 * S, 4 * S);
	CHECK_EQ(r.early, 1); /* 3 was 3 s old */
	ring_free(&r);

	/* It grows as long as it would forget too early, and finds what it keeps. */
	CHECK_EQ(ring_init(&r, RING_CAP), 0);
	for (i = 0; i < 10 * RING_CAP; i++) {
		x = x * 6364136223846793005ULL + 1442695040888963407ULL;
		ring_put(&r, i & 1 ? x : x & 7, i, 300);
		CHECK_EQ(ring_find(&r, i & 1 ? x : x & 7, i + 300, 300), RING_HIT);
	}
	CHECK_EQ(r.cap, 512);
	CHECK_EQ(r.early, 0);
	CHECK_EQ(ring_find(&r, x, i + 299, 300), RING_HIT);
	CHECK_EQ(ring_find(&r, x, i + 300, 300), RING_OLD);
	CHECK_EQ(ring_find(&r, x + 1, i, 300), RING_UNKNOWN);
	for (i = 0; i < 3 * RING_CAP; i++)
		ring_put(&r, i, 1000000, 300);
	CHECK_EQ(r.cap, RING_CAP);
	CHECK(r.early > RING_CAP);
	for (i = 0; i < 3 * RING_CAP; i++)
		CHECK_EQ(ring_find(&r, i, 1000000, 300),
			 i < 2 * RING_CAP ? RING_UNKNOWN : RING_HIT);

	/* It shrinks when three quarters are old, and keeps all that is not. */
	ring_trim(&r, 1000300, 300);
	CHECK_EQ(r.cap, RING_CAP);
	for (i = 0; i <= RING_CAP / 4; i++)
		ring_put(&r, i, 1000301, 300);
	ring_trim(&r, 1000301, 300);
	CHECK_EQ(r.cap, RING_CAP);
	ring_put(&r, 0, 1000601, 300);
	ring_trim(&r, 1000601, 300);
	CHECK_EQ(r.cap, RING_CAP);
	for (i = 0; i < 100; i++)
		ring_put(&r, ~(uint64_t)i, 1000602, 300);
	ring_trim(&r, 1000602, 300);
	CHECK_EQ(r.cap, 256);
	CHECK_EQ(r.used, 256);
	for (i = 0; i < 100; i++)
		CHECK_EQ(ring_find(&r, ~(uint64_t)i, 1000602, 300), RING_HIT);
	CHECK_EQ(ring_find(&r, 0, 1000602, 300), RING_HIT);
	CHECK_EQ(ring_find(&r, RING_CAP / 4, 1000602, 300), RING_OLD);
	CHECK_EQ(ring_find(&r, 1, 1000602, 300), RING_UNKNOWN);
	ring_trim(&r, 2000000, 300);
	CHECK_EQ(r.cap, RING_MIN);
	CHECK_EQ(r.used, RING_MIN);
	CHECK_EQ(ring_find(&r, ~99ULL, 2000000, 300), RING_OLD);
	ring_trim(&r, 3000000, 300);
	CHECK_EQ(r.cap, RING_MIN);
	ring_free(&r);
}
