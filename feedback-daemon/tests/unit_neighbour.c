// SPDX-License-Identifier: GPL-2.0
/* Messages of neighbours (rlqosd): the layout, what is refused, the largest load, forgetting. */
#include <string.h>

#include "core/paqm_rlmsg.h"
#include "core/tests/check.h"
#include "feedback-daemon/neighbour/neighbours.h"

#define SELF 99
#define KEEP 25

static enum heard say(struct neighbours *n, uint64_t node, uint32_t seq, uint32_t load,
		      uint64_t now)
{
	struct paqm_rlmsg m = {.node = node, .seq = seq, .load = load};
	uint8_t data[PAQM_RLMSG_SIZE];

	paqm_rlmsg_encode(data, &m);
	return neighbours_hear(n, SELF, data, sizeof(data), 255, now, KEEP);
}

TEST(test_layout)
{
	static const uint8_t want[PAQM_RLMSG_SIZE] = {'R', 'L', 'Q', 'S', 1, 0, 0, 0, 1, 2, 3, 4,
						      5,   6,	7,   8,	  0, 0, 0, 9, 1, 0, 0, 0};
	struct paqm_rlmsg m = {.node = 0x0102030405060708, .seq = 9, .load = 1 << 24}, got;
	uint8_t data[PAQM_RLMSG_SIZE + 1] = {0};

	paqm_rlmsg_encode(data, &m);
	CHECK(!memcmp(data, want, sizeof(want)));
	CHECK(!paqm_rlmsg_decode(&got, data, sizeof(want)));
	CHECK(got.node == m.node && got.seq == m.seq && got.load == m.load);
	CHECK(paqm_rlmsg_decode(&got, data, sizeof(want) - 1));
	CHECK(paqm_rlmsg_decode(&got, data, sizeof(want) + 1));
	for (int i = 0; i < 8; i++) { /* magic, version, zeros */
		data[i] ^= 1;
		CHECK(paqm_rlmsg_decode(&got, data, sizeof(want)));
		data[i] ^= 1;
	}
	m.load = PAQM_RLQOS_LOAD_MAX;
	paqm_rlmsg_encode(data, &m);
	CHECK(!paqm_rlmsg_decode(&got, data, sizeof(want)));
	m.load++;
	paqm_rlmsg_encode(data, &m);
	CHECK(paqm_rlmsg_decode(&got, data, sizeof(want)));
	m = (struct paqm_rlmsg){0};
	paqm_rlmsg_encode(data, &m);
	CHECK(paqm_rlmsg_decode(&got, data, sizeof(want)));
}

TEST(test_refused)
{
	struct paqm_rlmsg m = {.node = 1, .seq = 1, .load = 5};
	uint8_t data[PAQM_RLMSG_SIZE];
	struct neighbours n = {0};

	paqm_rlmsg_encode(data, &m);
	CHECK_EQ(neighbours_hear(&n, SELF, data, sizeof(data), 254, 1, KEEP), HEARD_AFAR);
	CHECK_EQ(neighbours_hear(&n, SELF, data, sizeof(data), -1, 1, KEEP), HEARD_AFAR);
	CHECK_EQ(neighbours_hear(&n, 1, data, sizeof(data), 255, 1, KEEP), HEARD_SELF);
	CHECK_EQ(neighbours_hear(&n, SELF, data, 3, 255, 1, KEEP), HEARD_FORMAT);
	CHECK_EQ(neighbours_load(&n, 1), 0);
	CHECK_EQ(say(&n, 1, 0xFFFFFFFF, 5, 1), HEARD);
	CHECK_EQ(say(&n, 1, 0xFFFFFFFF, 9, 2), HEARD_OLD);
	CHECK_EQ(say(&n, 1, 0x80000000, 9, 2), HEARD_OLD);
	CHECK_EQ(say(&n, 1, 2, 7, 2), HEARD); /* it wraps */
	CHECK_EQ(neighbours_load(&n, 2), 7);
	CHECK_EQ(say(&n, 1, 1, 9, 2 + KEEP), HEARD); /* a daemon that was started again */
}

TEST(test_largest)
{
	struct neighbours n = {0};

	for (uint32_t i = 0; i < NEIGHBOURS_MAX; i++)
		CHECK_EQ(say(&n, 1 + i, 1, 10 * i, 1 + i), HEARD);
	CHECK_EQ(neighbours_load(&n, 20), 10 * (NEIGHBOURS_MAX - 1));
	CHECK_EQ(say(&n, 200, 1, 500, 20), HEARD_FULL);
	CHECK_EQ(say(&n, NEIGHBOURS_MAX, 2, 0, 20), HEARD);
	CHECK_EQ(neighbours_load(&n, 20), 10 * (NEIGHBOURS_MAX - 2));
	CHECK_EQ(say(&n, 200, 1, 500, 1 + KEEP), HEARD); /* the first one's place */
	CHECK_EQ(neighbours_load(&n, 1 + KEEP), 500);
	CHECK_EQ(neighbours_load(&n, 1 + 2 * KEEP), 0);
	for (int w = 0; w < HEARD_WHATS; w++)
		CHECK(heard_name((enum heard)w));
}

CHECK_MAIN
