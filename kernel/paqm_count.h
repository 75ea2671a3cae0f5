/* SPDX-License-Identifier: GPL-2.0 */
/* Counters with one writer, who holds the qdisc's lock, and readers who do not. */
#ifndef PAQM_COUNT_H
#define PAQM_COUNT_H

#include <linux/compiler.h>
#include <linux/types.h>

static inline void paqm_inc(u32 *counter)
{
	WRITE_ONCE(*counter, *counter + 1);
}

static __always_inline void paqm_count(u64 *counter)
{
	WRITE_ONCE(*counter, *counter + 1);
}

#endif /* PAQM_COUNT_H */
