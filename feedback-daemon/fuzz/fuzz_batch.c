// SPDX-License-Identifier: GPL-2.0
/*
 * Fuzz target: batches of segmentation offload are taken apart without a byte lost, doubled or read
 * beyond their end. The input is an IP packet.
 */
#include <stdlib.h>
#include <string.h>

#include "feedback-daemon/capture/batch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
	const uint8_t *next;
	unsigned int n;
};

static void emit(void *data, const uint8_t *head, uint32_t head_len, const uint8_t *payload,
		 uint32_t len)
{
	struct seen *s = data;
	static volatile uint8_t sum;
	uint32_t i;

	for (i = 0; i < head_len; i++)
		sum ^= head[i];
	for (i = 0; i < len; i++)
		sum ^= payload[i];
	if (head_len > BATCH_HEAD || ++s->n > BATCH_SEGMENTS || (s->next && payload != s->next))
		abort();
	s->next = payload + len;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1); /* of its own: reading beyond it is seen */
	struct seen s = {0};

	if (!copy)
		return 0;
	memcpy(copy, data, size);
	batch_split(copy, (uint32_t)size, emit, &s);
	if (s.n > 1 && s.next != copy + size)
		abort();
	free(copy);
	return 0;
}
