// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit suite of the control laws and the message codec: the same vectors that the
 * user-space tests run, compiled as kernel code.
 */
#include <kunit/test.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>

static struct kunit *paqm_test;

static void paqm_near(const char *what, u64 got, u64 want, u64 tol)
{
	KUNIT_EXPECT_LE_MSG(paqm_test, got > want ? got - want : want - got, tol,
			    "%s: got %llu, want %llu", what, got, want);
}

#define PAQM_NEAR(what, got, want, tol) paqm_near(what, got, want, tol)
#define EXPECT(what, got, want) KUNIT_EXPECT_EQ_MSG(paqm_test, (long)(got), (long)(want), what)
#define VEC_ALLOC(len) kmalloc(len, GFP_KERNEL)
#define VEC_FREE(copy) kfree(copy)

#include "core/tests/law_vectors.h"
#include "core/tests/msg_vectors.h"

#define PAQM_CASE(name)                                     \
	static void paqm_kunit_##name(struct kunit *test) \
	{                                                   \
		paqm_test = test;                           \
		paqm_check_##name();                        \
	}

PAQM_CASE(inner)
PAQM_CASE(inner_loop)
PAQM_CASE(ecf)
PAQM_CASE(outer_bound)
PAQM_CASE(forced_md)
PAQM_CASE(erf)
PAQM_CASE(erf_plants)
PAQM_CASE(ecf_plant)
PAQM_CASE(f32)
PAQM_CASE(maxmin)
PAQM_CASE(sched)
PAQM_CASE(bucket)
PAQM_CASE(link_time)

#define PAQM_MSG_CASE(name)                                     \
	static void paqm_kunit_msg_##name(struct kunit *test) \
	{                                                       \
		paqm_test = test;                               \
		check_##name();                                 \
	}

PAQM_MSG_CASE(roundtrip)
PAQM_MSG_CASE(roundtrip6)
PAQM_MSG_CASE(vectors)
PAQM_MSG_CASE(refusals)
PAQM_MSG_CASE(refusals6)
PAQM_MSG_CASE(options)
PAQM_MSG_CASE(objects)
PAQM_MSG_CASE(unquoted)
PAQM_MSG_CASE(version1)
PAQM_MSG_CASE(sequence)
PAQM_MSG_CASE(proof)
PAQM_MSG_CASE(tag)
PAQM_MSG_CASE(host_bytes)
PAQM_MSG_CASE(bare)

static struct kunit_case paqm_law_cases[] = {
	KUNIT_CASE(paqm_kunit_inner),
	KUNIT_CASE(paqm_kunit_inner_loop),
	KUNIT_CASE(paqm_kunit_ecf),
	KUNIT_CASE(paqm_kunit_outer_bound),
	KUNIT_CASE(paqm_kunit_forced_md),
	KUNIT_CASE(paqm_kunit_erf),
	KUNIT_CASE(paqm_kunit_erf_plants),
	KUNIT_CASE(paqm_kunit_ecf_plant),
	KUNIT_CASE(paqm_kunit_f32),
	KUNIT_CASE(paqm_kunit_maxmin),
	KUNIT_CASE(paqm_kunit_sched),
	KUNIT_CASE(paqm_kunit_bucket),
	KUNIT_CASE(paqm_kunit_link_time),
	{}
};

static struct kunit_case paqm_msg_cases[] = {
	KUNIT_CASE(paqm_kunit_msg_roundtrip),
	KUNIT_CASE(paqm_kunit_msg_roundtrip6),
	KUNIT_CASE(paqm_kunit_msg_vectors),
	KUNIT_CASE(paqm_kunit_msg_refusals),
	KUNIT_CASE(paqm_kunit_msg_refusals6),
	KUNIT_CASE(paqm_kunit_msg_options),
	KUNIT_CASE(paqm_kunit_msg_objects),
	KUNIT_CASE(paqm_kunit_msg_unquoted),
	KUNIT_CASE(paqm_kunit_msg_version1),
	KUNIT_CASE(paqm_kunit_msg_sequence),
	KUNIT_CASE(paqm_kunit_msg_proof),
	KUNIT_CASE(paqm_kunit_msg_tag),
	KUNIT_CASE(paqm_kunit_msg_host_bytes),
	KUNIT_CASE(paqm_kunit_msg_bare),
	{}
};

static struct kunit_suite paqm_law_suite = {
	.name = "paqm_laws",
	.test_cases = paqm_law_cases,
};

static struct kunit_suite paqm_msg_suite = {
	.name = "paqm_message",
	.test_cases = paqm_msg_cases,
};

kunit_test_suites(&paqm_law_suite, &paqm_msg_suite);

MODULE_DESCRIPTION("KUnit suites of P-AQM");
MODULE_AUTHOR("The P-AQM project");
MODULE_LICENSE("GPL");
