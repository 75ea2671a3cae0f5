/* SPDX-License-Identifier: GPL-2.0 */
/* What the flow table of the KUnit suites calls at its barriers: NULL, or another CPU's part. */
#ifndef PAQM_KUNIT_HOOKS_H
#define PAQM_KUNIT_HOOKS_H

extern void (*paqm_at_barrier)(void); /* between the walker's two looks at the key */
extern void (*paqm_at_write)(void); /* before it writes what it has found out */

#endif
