// SPDX-License-Identifier: GPL-2.0
/*
 * Gives every packet of the table to the fuzz target, with each byte changed in turn and
 * cut at every length: what a fuzzer begins with, in every run of the tests.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/fuzz/frame.h"
#include "kernel/fuzz/packets.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned long inputs;

static void give(uint8_t layout, uint8_t split, const struct paqm_pkt *pkt, size_t len)
{
	uint8_t *input = malloc(len + 2);

	if (!input)
		abort();
	input[0] = layout;
	input[1] = split;
	memcpy(input + 2, pkt->data, len);
	LLVMFuzzerTestOneInput(input, len + 2);
	free(input);
	inputs++;
}

int main(void)
{
	static const uint8_t changes[] = {0x00, 0xFF, 0x01, 0x80};
	struct paqm_pkt pkt;
	size_t i, len;
	uint8_t layout, old;
	paqm_u32 at, c;

	for (i = 0; i < sizeof(paqm_pkt_cases) / sizeof(paqm_pkt_cases[0]); i++) {
		if (paqm_pkt_make(&pkt, paqm_pkt_cases[i].words)) {
			fprintf(stderr, "cannot make \"%s\"\n", paqm_pkt_cases[i].words);
			return 1;
		}
		for (layout = 0; layout < 16; layout++) {
			for (len = 0; len <= pkt.len; len++)
				give(layout, (uint8_t)len, &pkt, len);
			for (at = 12; at < pkt.len; at++) {
				old = pkt.data[at];
				for (c = 0; c < sizeof(changes); c++) {
					pkt.data[at] = c < 2 ? changes[c] : old ^ changes[c];
					give(layout, (uint8_t)(at + 1), &pkt, pkt.len);
				}
				pkt.data[at] = old;
			}
		}
	}
	printf("%lu inputs\n", inputs);
	return 0;
}
