// SPDX-License-Identifier: GPL-2.0
/*
 * Gives every payload of the table to the fuzz target for rates in packets, with each byte
 * changed in turn and cut at every length.
 *
 *	inband-replay			do so
 *	inband-replay --corpus DIR	write the payloads as first inputs of the fuzzer
 */
#include "core/tests/inband_vectors.h"
#include "kernel/fuzz/corpus.h"

#define COUNT (sizeof(paqm_inband_cases) / sizeof(paqm_inband_cases[0]))

int main(int argc, char **argv)
{
	int corpus = argc == 3 && !strcmp(argv[1], "--corpus");
	paqm_u8 payload[PAQM_INBAND_MAX];
	unsigned long inputs = 0;
	unsigned int how;
	paqm_u32 len;
	size_t i;

	if (argc != 1 && !corpus) {
		fprintf(stderr, "usage: inband-replay [--corpus DIR]\n");
		return 2;
	}
	for (i = 0; i < COUNT; i++) {
		len = paqm_inband_make(payload, paqm_inband_cases[i].hex);
		if (corpus) {
			if (corpus_write(argv[2], i, (const uint8_t *)"", 1, payload, len))
				return 1;
			continue;
		}
		for (how = 0; how < 256; how += 5) {
			uint8_t first = (uint8_t)how;

			inputs += corpus_change(&first, 1, payload, 0, len);
		}
	}
	printf("%lu inputs\n", inputs);
	return 0;
}
