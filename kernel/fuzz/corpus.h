/* SPDX-License-Identifier: GPL-2.0 */
/* First inputs of a fuzz target: written into files, or given to it with changes. */
#ifndef PAQM_CORPUS_H
#define PAQM_CORPUS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Write input number @i: how the target is to look at it, then the bytes. Return: 0, or -1 after
 * having said why not.
 */
static inline int corpus_write(const char *dir, size_t i, const uint8_t *how, size_t how_len,
			       const uint8_t *data, size_t len)
{
	char path[4096];
	FILE *f;
	int err;

	snprintf(path, sizeof(path), "%s/case-%02zu", dir, i);
	f = fopen(path, "wb");
	if (!f) {
		perror(path);
		return -1;
	}
	err = fwrite(how, 1, how_len, f) != how_len || fwrite(data, 1, len, f) != len;
	if (fclose(f) || err) {
		perror(path);
		return -1;
	}
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* One input; @place: what a second byte of @how is. Return: 1 */
static inline unsigned long corpus_give(uint8_t *how, size_t how_len, size_t place,
					const uint8_t *data, size_t len)
{
	uint8_t *input = malloc(how_len + len);

	if (!input)
		abort();
	if (how_len > 1)
		how[1] = (uint8_t)place;
	memcpy(input, how, how_len);
	memcpy(input + how_len, data, len);
	LLVMFuzzerTestOneInput(input, how_len + len);
	free(input);
	return 1;
}

/* Cut at every length, and with each byte behind @from changed in turn. Return: how many. */
static inline unsigned long corpus_change(uint8_t *how, size_t how_len, uint8_t *data, size_t from,
					  size_t len)
{
	static const uint8_t changes[] = {0x00, 0xFF, 0x01, 0x80};
	unsigned long given = 0;

	for (size_t cut = 0; cut <= len; cut++)
		given += corpus_give(how, how_len, cut, data, cut);
	for (size_t at = from; at < len; at++) {
		uint8_t old = data[at];

		for (size_t c = 0; c < sizeof(changes); c++) {
			data[at] = c < 2 ? changes[c] : old ^ changes[c];
			given += corpus_give(how, how_len, at + 1, data, len);
		}
		data[at] = old;
	}
	return given;
}

#endif /* PAQM_CORPUS_H */
