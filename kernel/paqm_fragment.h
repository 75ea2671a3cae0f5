/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Later fragments say neither ports nor payload: they go where the first one of their datagram
 * went. A small table remembers these; who is not in it is a flow of two hosts, and elastic.
 */
#ifndef PAQM_FRAGMENT_H
#define PAQM_FRAGMENT_H

#include <linux/types.h>
#include "paqm_classify.h"

/* Datagrams that are remembered. Fragments of one come together, but for those of a few others. */
#define PAQM_DATAGRAMS 64

/**
 * struct paqm_datagram - a datagram whose first fragment was seen
 * @key: what tells it from others; 0: none
 * @flow: hash of its flow, or of what is not counted
 * @tick: when that was, paqm_flow_clock()
 * @ports: source and destination port
 * @kind: enum paqm_kind
 * @class: where it went: class, or PAQM_FLOW_UNSURE
 */
struct paqm_datagram {
	u64 key;
	u64 flow;
	u32 tick;
	__be32 ports;
	u8 kind;
	u8 class;
};

/* paqm_fragment.c */
void paqm_fragment_first(struct paqm_datagram *table, const struct paqm_packet *p,
			 const struct paqm_rules *r, u8 class, u32 now_tick);
bool paqm_fragment_later(const struct paqm_datagram *table, struct paqm_packet *p,
			 const struct paqm_rules *r, u32 now_tick, u8 *class);

#endif /* PAQM_FRAGMENT_H */
