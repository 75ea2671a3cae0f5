// SPDX-License-Identifier: GPL-2.0
/*
 * Fuzz target: messages of neighbours (rlqosd). Input: for each a byte of steps of time, one that
 * is the TTL or, by its lowest bit, 255, one for the length, and so many bytes.
 */
#include <stdlib.h>
#include <string.h>

#include "core/paqm_rlmsg.h"
#include "feedback-daemon/neighbour/neighbours.h"

#define SELF 7
#define KEEP 25

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds)
{
	if (!holds)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct neighbours n = {0};
	uint64_t now = 1;

	while (size >= 3) {
		uint32_t len = data[2] < size - 3 ? data[2] : (uint32_t)(size - 3);
		int ttl = data[1] & 1 ? PAQM_RLMSG_TTL : data[1];
		uint8_t *copy = malloc(len ? len : 1), again[PAQM_RLMSG_SIZE];
		uint32_t before, after;
		struct paqm_rlmsg m;
		enum heard what;

		now += data[0];
		require(copy != NULL);
		memcpy(copy, data + 3, len);
		before = neighbours_load(&n, now);
		what = neighbours_hear(&n, SELF, copy, len, ttl, now, KEEP);
		after = neighbours_load(&n, now);
		require(after <= PAQM_RLQOS_LOAD_MAX);
		if (what == HEARD) {
			require(ttl == PAQM_RLMSG_TTL && !paqm_rlmsg_decode(&m, copy, len));
			require(m.node && m.node != SELF && after >= m.load);
			paqm_rlmsg_encode(again, &m);
			require(!memcmp(again, copy, sizeof(again)));
			/* it is not taken twice, and is forgotten */
			require(neighbours_hear(&n, SELF, copy, len, ttl, now, KEEP) == HEARD_OLD);
			require(!neighbours_load(&n, now + KEEP));
		} else {
			require(after == before);
		}
		free(copy);
		data += 3 + len;
		size -= 3 + len;
	}
	return 0;
}
