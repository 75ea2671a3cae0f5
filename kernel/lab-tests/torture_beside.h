/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Traffic of the torture test beside its operations, on other processors; see torture_beside.c.
 */
#ifndef TORTURE_BESIDE_H
#define TORTURE_BESIDE_H

#include <stdbool.h>

void beside_start(int count);
void beside_rest(bool rest);
bool beside_rests(void);

#endif /* TORTURE_BESIDE_H */
