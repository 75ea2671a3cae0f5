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

/* A case of each, and the list of them. */
#define PAQM_LAWS(x) x(inner) x(inner_loop) x(ecf) x(outer_bound) x(forced_md) x(erf) x(erf_plants) \
	x(ecf_plant) x(f32) x(maxmin) x(sched) x(bucket) x(link_time)
#define PAQM_MESSAGES(x) x(roundtrip) x(roundtrip6) x(vectors) x(published) x(mutations) \
	x(version1) x(sequence) x(proof) x(tag) x(host_bytes) x(bare)

#define PAQM_LAW_CASE(name)                                 \
	static void paqm_kunit_##name(struct kunit *test)   \
	{                                                   \
		paqm_test = test;                           \
		paqm_check_##name();                        \
	}
#define PAQM_MSG_CASE(name)                                 \
	static void paqm_kunit_msg_##name(struct kunit *test) \
	{                                                   \
		paqm_test = test;                           \
		check_##name();                             \
	}
PAQM_LAWS(PAQM_LAW_CASE)
PAQM_MESSAGES(PAQM_MSG_CASE)

#define PAQM_LAW_ROW(name) KUNIT_CASE(paqm_kunit_##name),
#define PAQM_MSG_ROW(name) KUNIT_CASE(paqm_kunit_msg_##name),
static struct kunit_case paqm_law_cases[] = { PAQM_LAWS(PAQM_LAW_ROW) {} };
static struct kunit_case paqm_msg_cases[] = { PAQM_MESSAGES(PAQM_MSG_ROW) {} };

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
