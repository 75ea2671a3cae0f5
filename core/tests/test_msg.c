/* SPDX-License-Identifier: GPL-2.0 */
/*
 * User-space run of the vectors of the message codec.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned long checks, failures;

static void expect(const char *file, int line, const char *what, long got, long want)
{
	checks++;
	if (got == want)
		return;
	failures++;
	fprintf(stderr, "%s:%d: %s: got %ld, want %ld\n", file, line, what, got, want);
}

#define EXPECT(what, got, want) expect(__FILE__, __LINE__, what, (long)(got), (long)(want))
#define VEC_ALLOC(len) malloc(len)
#define VEC_FREE(copy) free(copy)

#include "msg_vectors.h"

int main(void)
{
	check_roundtrip();
	check_roundtrip6();
	check_vectors();
	check_refusals();
	check_refusals6();
	check_options();
	check_objects();
	check_unquoted();
	check_version1();
	check_sequence();
	check_proof();
	check_tag();
	check_host_bytes();
	check_bare();
	printf("%lu checks, %lu failed\n", checks, failures);
	return failures != 0;
}
