/* SPDX-License-Identifier: GPL-2.0 */
/* A limit that `change` lowers holds at once; paqm_trim.c. */
#ifndef PAQM_TRIM_H
#define PAQM_TRIM_H

struct Qdisc;

bool paqm_lowers(u32 limit, u32 before);
void paqm_trim(struct Qdisc *sch);

#endif /* PAQM_TRIM_H */
