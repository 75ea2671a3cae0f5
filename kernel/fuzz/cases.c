// SPDX-License-Identifier: GPL-2.0
/*
 * The table of packets and the user-space build of the recogniser:
 *
 *	cases			compare each with what the table says
 *	cases --corpus DIR	write them as first inputs of the fuzz target
 *	cases --frames		print `HEX KIND NOTE COUNTED WORDS`, the answers of the
 *				recogniser as numbers, for the comparison with the kernel's
 */
#include <stdio.h>

#include "kernel/fuzz/corpus.h"
#include "kernel/fuzz/frame.h"
#include "kernel/fuzz/packets.h"

#define COUNT (sizeof(paqm_pkt_cases) / sizeof(paqm_pkt_cases[0]))

int main(int argc, char **argv)
{
	int frames = argc == 2 && !strcmp(argv[1], "--frames");
	int corpus = argc == 3 && !strcmp(argv[1], "--corpus");
	struct paqm_rules rules = frame_rules();
	unsigned int wrong = 0;
	size_t i;

	if (argc != 1 && !frames && !corpus) {
		fprintf(stderr, "usage: cases [--frames | --corpus DIR]\n");
		return 2;
	}
	for (i = 0; i < COUNT; i++) {
		const struct paqm_pkt_case *c = &paqm_pkt_cases[i];
		struct paqm_packet p;
		struct paqm_pkt pkt;
		u64 plain;
		paqm_u32 n;

		if (paqm_pkt_make(&pkt, c->words)) {
			fprintf(stderr, "cases: cannot make \"%s\"\n", c->words);
			return 1;
		}
		frame_classify(pkt.data, pkt.len, pkt.len, paqm_pkt_network(pkt.data, pkt.len),
			       false, &rules, &p, &plain);
		if (corpus) {
			const uint8_t how[2] = {0, (uint8_t)(i * 5)};

			if (corpus_write(argv[2], i, how, sizeof(how), pkt.data, pkt.len))
				return 1;
		} else if (frames) {
			for (n = 0; n < pkt.len; n++)
				printf("%02x", pkt.data[n]);
			printf(" %d %d %d %s\n", p.kind, p.note, !!p.hash, c->words);
		} else if (p.kind != c->kind || p.note != c->note || p.quotable != c->quotable) {
			wrong++;
			fprintf(stderr, "%s:\n\tkind %d note %d quotable %d, want %d %d %d\n",
				c->words, p.kind, p.note, p.quotable, (int)c->kind, c->note,
				c->quotable);
		}
	}
	if (argc == 1)
		printf("%zu packets, %u wrong\n", COUNT, wrong);
	return wrong != 0;
}
