/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Operations of the torture test; see torture_ops.c.
 */
#ifndef TORTURE_OPS_H
#define TORTURE_OPS_H

#include <stdint.h>
#include "torture_report.h"

struct op_kind {
	const char *name;
	int weight;
	int (*run)(void);
};

extern const struct op_kind ops[OPS];

uint32_t some_handle(void);
void burst(void);
void traffic(void);
void one_operation(void);

#endif /* TORTURE_OPS_H */
