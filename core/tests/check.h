/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tests in C, in user space: TEST() defines one, CHECK_MAIN runs all of the program in the order
 * of its files; checks are counted, and what fails is said.
 */
#ifndef PAQM_CHECK_H
#define PAQM_CHECK_H

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

struct check_test {
	void (*run)(void);
	struct check_test *next;
};

/* One of each in a program of several files. */
__attribute__((weak)) unsigned long checks, failures;
__attribute__((weak)) struct check_test *check_first, **check_last;

__attribute__((format(printf, 4, 5))) static inline bool
check_that(bool holds, const char *file, int line, const char *format, ...)
{
	va_list args;

	checks++;
	if (holds)
		return true;
	failures++;
	fprintf(stderr, "%s:%d: ", file, line);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	return false;
}

#define CHECK(holds) check_that(holds, __FILE__, __LINE__, "failed: %s", #holds)
#define CHECK_EQ(got, want) same(#got, got, want)
/* The same, where @what names the case. */
#define check(holds, what, got) check_that(holds, __FILE__, __LINE__, "%s: %g", what, (double)(got))
#define same(what, got, want)                                                                      \
	({                                                                                         \
		unsigned long long got_ = (unsigned long long)(got); /* first */                   \
		check_equal(__FILE__, __LINE__, what, got_, (unsigned long long)(want));           \
	})
#define near(what, got, want, by) check_near(__FILE__, __LINE__, what, got, want, by)

static inline bool check_equal(const char *file, int line, const char *what, unsigned long long got,
			       unsigned long long want)
{
	return check_that(got == want, file, line, "%s is %llu (%llx), want %llu (%llx)", what, got,
			  got, want, want);
}

static inline bool check_near(const char *file, int line, const char *what, double got, double want,
			      double by)
{
	return check_that(fabs(got - want) <= by, file, line, "%s is %.9g, want %.9g +-%g", what,
			  got, want, by);
}

static inline void check_list(struct check_test *test)
{
	*(check_last ? check_last : &check_first) = test;
	check_last = &test->next;
}

#define TEST(name)                                                                                 \
	static void name(void);                                                                    \
	__attribute__((constructor)) static void name##_list(void)                                 \
	{                                                                                          \
		static struct check_test test = {.run = name};                                     \
		check_list(&test);                                                                 \
	}                                                                                          \
	static void name(void)

/* Run all tests. Return: status of the program. */
static inline int check_run(void)
{
	for (struct check_test *test = check_first; test; test = test->next)
		test->run();
	printf("%lu checks, %lu failed\n", checks, failures);
	return !checks || failures;
}

#define CHECK_MAIN                                                                                 \
	int main(void)                                                                             \
	{                                                                                          \
		return check_run();                                                                \
	}

#endif /* PAQM_CHECK_H */
