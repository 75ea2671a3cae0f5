// SPDX-License-Identifier: GPL-2.0
/*
 * Gives every payload of the table to the fuzz target for rates in packets, with each byte
 * changed in turn and cut at every length.
 *
 *	inband-replay			do so
 *	inband-replay --corpus DIR	write the payloads as first inputs of the fuzzer
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/tests/inband_vectors.h"
#include "kernel/fuzz/corpus.h"

#define COUNT (sizeof(paqm_inband_cases) / sizeof(paqm_inband_cases[0]))

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned long inputs;

static void give(uint8_t how, const paqm_u8 *payload, size_t len)
{
	uint8_t *input = malloc(len + 1);

	if (!input)
		abort();
	input[0] = how;
	memcpy(input + 1, payload, len);
	LLVMFuzzerTestOneInput(input, len + 1);
	free(input);
	inputs++;
}

static void change(uint8_t how, paqm_u8 *payload, paqm_u32 len)
{
	static const uint8_t changes[] = {0x00, 0xFF, 0x01, 0x80};
	paqm_u32 at, c;

	for (at = 0; at < len; at++) {
		paqm_u8 old = payload[at];

		for (c = 0; c < sizeof(changes); c++) {
			payload[at] = c < 2 ? changes[c] : old ^ changes[c];
			give(how, payload, len);
		}
		payload[at] = old;
	}
}

int main(int argc, char **argv)
{
	int corpus = argc == 3 && !strcmp(argv[1], "--corpus");
	paqm_u8 payload[PAQM_INBAND_MAX];
	paqm_u32 len, cut;
	unsigned int how;
	size_t i;

	if (argc != 1 && !corpus) {
		fprintf(stderr, "usage: inband-replay [--corpus DIR]\n");
		return 2;
	}
	for (i = 0; i < COUNT; i++) {
		len = paqm_inband_make(payload, paqm_inband_cases[i].hex);
		if (corpus) {
			const uint8_t how = 0;

			if (corpus_write(argv[2], i, &how, 1, payload, len))
				return 1;
			continue;
		}
		for (how = 0; how < 256; how += 5) {
			for (cut = 0; cut <= len; cut++)
				give((uint8_t)how, payload, cut);
			change((uint8_t)how, payload, len);
		}
	}
	printf("%lu inputs\n", inputs);
	return 0;
}
