// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit suite of the control laws: the same vectors that the user-space test
 * runs, compiled as kernel code.
 */
#include <kunit/test.h>
#include <linux/module.h>

static struct kunit *paqm_test;

#define PAQM_NEAR(what, got, want, tol)                                                            \
	do {                                                                                       \
		paqm_u64 __got = (got), __want = (want), __tol = (tol);                            \
		paqm_u64 __diff = __got > __want ? __got - __want : __want - __got;                \
                                                                                                   \
		KUNIT_EXPECT_LE_MSG(paqm_test, __diff, __tol, "%s: got %llu, want %llu", what,      \
				    __got, __want);                                                \
	} while (0)

#include "core/tests/law_vectors.h"

#define PAQM_CASE(name)                                                                            \
	static void paqm_kunit_##name(struct kunit *test)                                          \
	{                                                                                          \
		paqm_test = test;                                                                  \
		paqm_check_##name();                                                               \
	}

PAQM_CASE(inner)
PAQM_CASE(inner_loop)
PAQM_CASE(ecf)
PAQM_CASE(forced_md)
PAQM_CASE(erf)
PAQM_CASE(erf_plants)
PAQM_CASE(ecf_plant)
PAQM_CASE(f32)
PAQM_CASE(maxmin)
PAQM_CASE(sched)

static struct kunit_case paqm_cases[] = {
	KUNIT_CASE(paqm_kunit_inner),	   KUNIT_CASE(paqm_kunit_inner_loop),
	KUNIT_CASE(paqm_kunit_ecf),	   KUNIT_CASE(paqm_kunit_forced_md),
	KUNIT_CASE(paqm_kunit_erf),	   KUNIT_CASE(paqm_kunit_erf_plants),
	KUNIT_CASE(paqm_kunit_ecf_plant),  KUNIT_CASE(paqm_kunit_f32),
	KUNIT_CASE(paqm_kunit_maxmin),	   KUNIT_CASE(paqm_kunit_sched),
	{}
};

static struct kunit_suite paqm_suite = {
	.name = "paqm",
	.test_cases = paqm_cases,
};
kunit_test_suite(paqm_suite);

MODULE_DESCRIPTION("KUnit suite of P-AQM");
MODULE_AUTHOR("The P-AQM project");
MODULE_LICENSE("GPL");
