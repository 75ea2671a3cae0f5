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

struct paqm_vectors {
	const char *name;
	void (*run)(void);
};

#define PAQM_LAW(what) { .name = "paqm_kunit_" #what, .run = paqm_check_##what }
#define PAQM_MSG(what) { .name = "paqm_kunit_msg_" #what, .run = check_##what }

static const struct paqm_vectors paqm_laws[] = {
	PAQM_LAW(inner), PAQM_LAW(inner_loop), PAQM_LAW(ecf), PAQM_LAW(outer_bound),
	PAQM_LAW(forced_md), PAQM_LAW(old_laws), PAQM_LAW(erf), PAQM_LAW(erf_plants),
	PAQM_LAW(ecf_plant), PAQM_LAW(f32), PAQM_LAW(maxmin), PAQM_LAW(sched), PAQM_LAW(bucket),
	PAQM_LAW(link_time), PAQM_LAW(acp), PAQM_LAW(qlbic), PAQM_LAW(rcp), PAQM_LAW(xcp),
	PAQM_LAW(vcp), PAQM_LAW(follow),
};

static const struct paqm_vectors paqm_messages[] = {
	PAQM_MSG(roundtrip), PAQM_MSG(roundtrip6), PAQM_MSG(vectors), PAQM_MSG(published),
	PAQM_MSG(mutations), PAQM_MSG(version1), PAQM_MSG(sequence), PAQM_MSG(proof),
	PAQM_MSG(tag), PAQM_MSG(host_bytes), PAQM_MSG(bare),
};

static void paqm_name(const struct paqm_vectors *v, char *text)
{
	strscpy(text, v->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(paqm_laws, paqm_laws, paqm_name);
KUNIT_ARRAY_PARAM(paqm_messages, paqm_messages, paqm_name);

static void paqm_kunit_vectors(struct kunit *test)
{
	const struct paqm_vectors *v = test->param_value;

	paqm_test = test;
	v->run();
}

static struct kunit_case paqm_law_cases[] = {
	KUNIT_CASE_PARAM(paqm_kunit_vectors, paqm_laws_gen_params),
	{}
};

static struct kunit_case paqm_msg_cases[] = {
	KUNIT_CASE_PARAM(paqm_kunit_vectors, paqm_messages_gen_params),
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
