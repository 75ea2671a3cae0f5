// SPDX-License-Identifier: GPL-2.0
/*
 * detrand: a repeatable getrandom() for the lab's kernel.
 *
 * User-Mode Linux seeds its random core from the host through getrandom(). Loaded with LD_PRELOAD
 * into the kernel's process, this library answers from a generator (splitmix64) that is seeded by
 * the environment variable PAQM_SEED, so that every run with the same seed is the same run.
 * It must never be loaded into anything but a simulation.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static uint64_t state;

static uint64_t next(void)
{
	uint64_t z = (state += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

__attribute__((constructor)) static void seed_from_environment(void)
{
	const char *text = getenv("PAQM_SEED");
	char *end = NULL;

	errno = 0;
	if (text)
		state = strtoull(text, &end, 10);
	if (!text || end == text || *end || errno) {
		fprintf(stderr, "detrand: PAQM_SEED must be a whole number, it is \"%s\"\n",
			text ? text : "");
		_exit(2);
	}
}

ssize_t getrandom(void *buffer, size_t length, unsigned int flags)
{
	uint8_t *out = buffer;

	(void)flags;
	for (size_t done = 0; done < length;) {
		uint64_t word = next();
		size_t part = length - done < sizeof(word) ? length - done : sizeof(word);

		memcpy(out + done, &word, part);
		done += part;
	}
	return (ssize_t)length;
}
