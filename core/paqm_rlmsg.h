/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What a node of RL-QoS tells its neighbours upstream; docs/rlqos.md has the format. */
#ifndef PAQM_RLMSG_H
#define PAQM_RLMSG_H

#include "paqm_bytes.h"
#include "paqm_rlqos.h"

#define PAQM_RLMSG_SIZE 24
#define PAQM_RLMSG_MAGIC 0x524C5153U /* "RLQS" */
#define PAQM_RLMSG_VERSION 1
#define PAQM_RLMSG_PORT 1021	     /* RFC 4727: experiments */
#define PAQM_RLMSG_GROUP 0xE00000FEU /* 224.0.0.254, of the link; the same RFC */
#define PAQM_RLMSG_TTL 255	     /* what comes from further away has less: RFC 5082 */

/**
 * struct paqm_rlmsg - a message
 * @node: who says it, not 0
 * @seq: one more with each
 * @load: Q24, at most PAQM_RLQOS_LOAD_MAX
 */
struct paqm_rlmsg {
	paqm_u64 node;
	paqm_u32 seq;
	paqm_u32 load;
};

static inline void paqm_rlmsg_encode(paqm_u8 *p, const struct paqm_rlmsg *m)
{
	paqm_put32(p, PAQM_RLMSG_MAGIC);
	paqm_put32(p + 4, (paqm_u32)PAQM_RLMSG_VERSION << 24);
	paqm_put64(p + 8, m->node);
	paqm_put32(p + 16, m->seq);
	paqm_put32(p + 20, m->load);
}

/* Return: 0, or -1 if it is not exactly such a message. */
static inline int paqm_rlmsg_decode(struct paqm_rlmsg *m, const paqm_u8 *p, paqm_u32 len)
{
	if (len != PAQM_RLMSG_SIZE || paqm_get32(p) != PAQM_RLMSG_MAGIC ||
	    paqm_get32(p + 4) != (paqm_u32)PAQM_RLMSG_VERSION << 24)
		return -1;
	m->node = paqm_get64(p + 8);
	m->seq = paqm_get32(p + 16);
	m->load = paqm_get32(p + 20);
	return m->node && m->load <= PAQM_RLQOS_LOAD_MAX ? 0 : -1;
}

#endif /* PAQM_RLMSG_H */
