/* SPDX-License-Identifier: GPL-2.0 */
/* User-space run of the vectors of the message codec. */
#include <stdlib.h>
#include <string.h>

#include "check.h"

#define EXPECT(what, got, want) same(what, (long)(got), (long)(want))
#define VEC_ALLOC(len) malloc(len)
#define VEC_FREE(copy) free(copy)

#include "msg_vectors.h"

TEST(test_messages)
{
	check_roundtrip();
	check_roundtrip6();
	check_vectors();
	check_published();
	check_mutations();
	check_version1();
	check_sequence();
	check_proof();
	check_tag();
	check_host_bytes();
	check_bare();
}

CHECK_MAIN
