/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What a packet costs on a link that adds headers, cells or code words: DSL, PPPoE,
 * DOCSIS. The laws, the split and the shaper must count what the link counts, or
 * small media packets are given a share that the link cannot carry.
 */
#ifndef PAQM_LINK_H
#define PAQM_LINK_H

#include "paqm_fix.h"

enum paqm_link_layer { PAQM_LAYER_ETHERNET, PAQM_LAYER_ATM, PAQM_LAYER_PTM };

/**
 * struct paqm_link - how a link frames packets
 * @overhead: bytes added to every packet, may be negative
 * @mpu: least size of a packet with its overhead, bytes
 * @layer: framing below
 */
struct paqm_link {
	paqm_s32 overhead;
	paqm_u16 mpu;
	paqm_u16 layer;
};

/* Does the link change the length of any packet? */
static inline int paqm_link_counts(const struct paqm_link *l)
{
	return l->overhead || l->mpu || l->layer != PAQM_LAYER_ETHERNET;
}

/**
 * paqm_link_len() - bytes that a packet takes on the link
 * @l: link
 * @len: packet with the headers that the device sends, below 2^24
 *
 * ATM: AAL5 fills whole cells of 48 bytes, each 53 on the wire (ITU-T I.432,
 * I.363.5); the trailer of 8 bytes is part of the overhead. PTM: 64/65 coding
 * (IEEE 802.3 clause 61).
 *
 * Return: bytes, at least 1.
 */
static inline paqm_u32 paqm_link_len(const struct paqm_link *l, paqm_u32 len)
{
	paqm_s32 n = (paqm_s32)len + l->overhead;

	if (n < (paqm_s32)l->mpu)
		n = l->mpu;
	if (n < 1)
		n = 1;
	switch (l->layer) {
	case PAQM_LAYER_ATM:
		return ((paqm_u32)n + 47) / 48 * 53;
	case PAQM_LAYER_PTM:
		return (paqm_u32)n + ((paqm_u32)n + 63) / 64;
	}
	return (paqm_u32)n;
}

/**
 * paqm_link_time() - time that a link takes to send, without losing what is less than an ns
 * @len: bytes on the link
 * @mult: time of a byte, ns, in Q of @shift
 * @shift: below 35
 * @mask: the bits of that fraction
 * @part: what of an ns is left over, in Q of @shift; updated
 *
 * 64 bytes take 1.28 ns at 400 Gbit/s: cut to whole ones that would be a quarter too fast.
 *
 * Return: ns.
 */
static inline paqm_u64 paqm_link_time(paqm_u32 len, paqm_u32 mult, paqm_u8 shift, paqm_u64 mask,
				      paqm_u64 *part)
{
	paqm_u64 time = (paqm_u64)len * mult + *part;

	*part = time & mask;
	return time >> shift;
}

#endif /* PAQM_LINK_H */
