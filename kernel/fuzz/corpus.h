/* SPDX-License-Identifier: GPL-2.0 */
/* First inputs of a fuzz target. */
#ifndef PAQM_CORPUS_H
#define PAQM_CORPUS_H

#include <stdint.h>
#include <stdio.h>

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

#endif /* PAQM_CORPUS_H */
