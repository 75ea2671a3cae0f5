// SPDX-License-Identifier: GPL-2.0
/*
 * Fuzz target: trains of packets. The first byte tells what the input is: a report for the sender
 * (odd), or for the receiver packets of 64 bytes at most, each behind its length and the time since
 * the one before; what is reported of them must be one that the sender understands.
 */
#include <math.h>
#include <stdlib.h>

#include "streamer/rtp/probe.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const uint8_t *data, size_t size, uint64_t now_us, bool must)
{
	struct probe_result r;

	if (!probe_heard(data, size, now_us, &r)) {
		if (must)
			abort();
		return;
	}
	if (r.came > r.of || r.of > PROBE_TRAIN || !(r.fs >= 0 && r.fs < 1) || !isfinite(r.rate) ||
	    r.rate < 0 || r.rtt <= 0 || r.verdict > PROBE_INVALID)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct probes r = {0};
	uint64_t now = 1000000000;
	uint8_t out[PROBE_REPORT];

	if (!size)
		return 0;
	if (data[0] & 1) {
		check(data + 1, size - 1, 1 << 20, false);
		return 0;
	}
	for (size_t at = 1; at + 2 <= size;) {
		size_t len = data[at] & 63, head;
		const uint8_t *p = data + at + 2;

		now += 100000ULL * data[at + 1];
		if (len > size - at - 2)
			len = size - at - 2;
		if (probe_find(p, len, &head) && head > len)
			abort();
		if (probes_see(&r, p, len, len + 28, now) || probes_late(&r, now)) {
			if (!probes_report(&r, out, now))
				abort();
			check(out, sizeof(out), now / 1000, true);
		}
		at += 2 + len;
	}
	if (probes_report(&r, out, now))
		check(out, sizeof(out), now / 1000, true);
	return 0;
}
