/* SPDX-License-Identifier: GPL-2.0 */
/* Checks of tests in C; they count in the variable `failures` of the program. */
#ifndef PAQM_CHECK_H
#define PAQM_CHECK_H

#include <stdio.h>

#define CHECK(cond)                                                                                \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			fprintf(stderr, "%s:%d: %s: failed: %s\n", __FILE__, __LINE__, __func__,   \
				#cond);                                                            \
			failures++;                                                                \
		}                                                                                  \
	} while (0)

#define CHECK_EQ(got, want)                                                                        \
	do {                                                                                       \
		unsigned long long g_ = (unsigned long long)(got);                                 \
		unsigned long long w_ = (unsigned long long)(want);                                \
		if (g_ != w_) {                                                                    \
			fprintf(stderr, "%s:%d: %s: %s is %llu, want %llu\n", __FILE__, __LINE__,  \
				__func__, #got, g_, w_);                                           \
			failures++;                                                                \
		}                                                                                  \
	} while (0)

#endif /* PAQM_CHECK_H */
