// SPDX-License-Identifier: GPL-2.0
/* Fuzz target: what the peer of a call says. What is taken must come out the same once written. */
#include <stdlib.h>
#include <string.h>

#include "streamer/call/offer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct offer first, second;
	struct offer_ice more[CALL_MEDIA], same[CALL_MEDIA];
	char text[OFFER_NAME], *line;

	note_read((const char *)data, size, text);
	if (note_read_candidates((const char *)data, size, more)) {
		line = note_write_candidates(more);
		if (!note_read_candidates(line, strlen(line) - 1, same) ||
		    memcmp(more, same, sizeof(more)))
			abort();
		g_free(line);
	}
	if (!offer_read(&first, (const char *)data, size, NULL))
		return 0;
	line = offer_write(&first);
	if (!offer_read(&second, line, strlen(line) - 1, NULL) ||
	    memcmp(&first, &second, sizeof(first)))
		abort();
	g_free(line);
	return 0;
}
