// SPDX-License-Identifier: GPL-2.0
/* Fuzz target: the ladder's reader. The input is ladder.json, a zero byte, frames.csv. */
#include <string.h>

#include "streamer/trace/ladder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *zero = size ? memchr(data, 0, size) : NULL;
	gsize head = zero ? (gsize)(zero - data) : size;
	struct ladder l = {0};

	if (ladder_read_head(&l, (const char *)data, head, NULL) && zero)
		ladder_read_frames(&l, (const char *)zero + 1, size - head - 1, NULL);
	ladder_close(&l);
	return 0;
}
