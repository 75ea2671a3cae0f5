// SPDX-License-Identifier: GPL-2.0
/*
 * Fuzz target: congestion control feedback. The input is what follows the SSRC of the report's
 * sender. What is well formed is told as arrivals to a receiver, whose report must be well formed.
 */
#include <stdlib.h>

#include "streamer/rtp/ccfb.h"

#define NOW_NS 100000000000ULL

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void see(const struct ccfb_entry *e, void *data)
{
	if (e->before < 0 || e->before > 8 || (e->known && !e->received))
		abort();
	if (e->received)
		ccfb_see(data, e->ssrc & 1, e->ssrc, e->seq, e->ecn,
			 NOW_NS - (uint64_t)(e->before * 1e9));
}

static void count(const struct ccfb_entry *e, void *data)
{
	*(size_t *)data += e->received;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ccfb c = {0};
	uint8_t p[CCFB_MAX];
	size_t len, told = 0;
	uint32_t ntp;

	if (!ccfb_read(data, size, &ntp, see, &c))
		return 0;
	len = ccfb_write(&c, p, 1, ntp, NOW_NS);
	if (len > sizeof(p) || (len && (!ccfb_read(p + 8, len - 8, &ntp, count, &told) || !told)))
		abort();
	return 0;
}
