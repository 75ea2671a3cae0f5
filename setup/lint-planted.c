// SPDX-License-Identifier: GPL-2.0
/*
 * One fault for each tool of lint-kernel.sh, which must find it: a tool that says nothing
 * about this file says nothing about the modules either. Part of no module.
 */
#include <linux/slab.h>
#include <linux/types.h>

struct paqm_planted {
	__be32 word;
	u64 a, b;
	u64 *p;
};

/* gcc W=1, clang: no prototype; as a header: it defines a function */
u64 paqm_planted(struct paqm_planted *x, u32 len)
{
	struct paqm_planted *y = NULL;

	x->word = len; /* sparse: byte order */
	if (x->p) /* coccinelle: kfree() takes NULL */
		kfree(x->p);
	if (len > 3)
		y = x;
	{
		u32 len = 4; /* gcc W=2: shadows */

		x->a += len;
	}
	return y->a + x->a / x->b; /* gcc -fanalyzer: NULL; 32 bit: division of 64 bit */
}
