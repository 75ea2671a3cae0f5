// SPDX-License-Identifier: GPL-2.0
/*
 * Gives every packet of the table to the fuzz target, with each byte changed in turn and
 * cut at every length: what a fuzzer begins with, in every run of the tests.
 */
#include "kernel/fuzz/corpus.h"
#include "kernel/fuzz/frame.h"
#include "kernel/fuzz/packets.h"

int main(void)
{
	unsigned long inputs = 0;
	struct paqm_pkt pkt;

	for (size_t i = 0; i < sizeof(paqm_pkt_cases) / sizeof(paqm_pkt_cases[0]); i++) {
		if (paqm_pkt_make(&pkt, paqm_pkt_cases[i].words)) {
			fprintf(stderr, "cannot make \"%s\"\n", paqm_pkt_cases[i].words);
			return 1;
		}
		for (uint8_t layout = 0; layout < 16; layout++) {
			uint8_t how[] = {layout, 0};

			inputs += corpus_change(how, sizeof(how), pkt.data, 12, pkt.len);
		}
	}
	printf("%lu inputs\n", inputs);
	return 0;
}
