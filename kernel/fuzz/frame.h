/* SPDX-License-Identifier: GPL-2.0 */
/*
 * From a frame's bytes to what the recogniser says about it, in user space.
 */
#ifndef PAQM_FRAME_H
#define PAQM_FRAME_H

#include <stdlib.h>

#include "kernel/paqm_classify.h"

/* What each frame is asked with. */
static inline struct paqm_rules frame_rules(void)
{
	struct paqm_rules r = {.key = {0x0706050403020100ULL, 0x0f0e0d0c0b0a0908ULL,
				       0x3C6EF372FE94F82BULL, 0xA54FF53A5F1D36F1ULL,
				       0x510E527FADE682D1ULL, 0x9B05688C2B3E6C1FULL}};

	paqm_rules_dscp(&r, 0, 0);
	return r;
}

/**
 * frame_classify() - ask the recogniser
 * @data: frame, at least an Ethernet header
 * @len: bytes
 * @headlen: how many of them are linear
 * @network: offset of the network header
 * @gso: several packets in one
 * @r: rules
 * @p: what it says; what @net points to is gone
 * @plain: the flow that the short way finds, or 0
 *
 * The IP header lies on a multiple of 4, as in the kernel where that matters.
 */
static inline void frame_classify(const u8 *data, size_t len, size_t headlen, int network, bool gso,
				  const struct paqm_rules *r, struct paqm_packet *p, u64 *plain)
{
	struct sk_buff skb = {.headlen = (unsigned int)headlen,
			      .len = (unsigned int)len,
			      .network = network,
			      .gso = gso};
	u8 *linear = malloc(headlen + 2), *frags = malloc(len - headlen + 1);

	if (!linear || !frags)
		abort();
	memcpy(linear + 2, data, headlen);
	memcpy(frags + 1, data + headlen, len - headlen);
	memcpy(&skb.protocol, data + 12, 2);
	skb.data = linear + 2;
	skb.frags = frags + 1;
	paqm_classify(&skb, r, p);
	*plain = paqm_plain_flow(&skb, r);
	free(linear);
	free(frags);
}

#endif /* PAQM_FRAME_H */
