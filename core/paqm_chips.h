/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * ChIPS, cut-in packet scheduling (Chung, WPI, 2000): where the queue is longer than its average,
 * a tagged packet is put where the average ends. A second, virtual queue of class labels keeps the
 * order of arrival; from it classes are counted, since who leaves early must not look small.
 */
#ifndef PAQM_CHIPS_H
#define PAQM_CHIPS_H

#include "paqm_cbt.h"

/**
 * struct paqm_labels - virtual queue: a class label for each packet that waits
 * @label: ring of @mask + 1 labels
 * @mask: its size, a power of two, less 1
 * @head: the next to leave
 * @len: how many there are
 * @held: how many of each class
 */
struct paqm_labels {
	paqm_u8 *label;
	paqm_u32 mask;
	paqm_u32 head;
	paqm_u32 len;
	paqm_u32 held[PAQM_CBT_CLASSES];
};

/**
 * paqm_chips_cuts_in() - may a tagged arrival go ahead of others?
 * @red_avg: average of the queue, packets Q24
 * @len: packets that wait
 * @flows: active flows by class
 * @most_q16: the largest part of tagged flows among all
 *
 * Return: true if the queue is longer than its average, and tagged flows are not too many.
 */
static inline int paqm_chips_cuts_in(paqm_u64 red_avg, paqm_u32 len, const paqm_u32 *flows,
				     paqm_u32 most_q16)
{
	return (paqm_u64)len << 24 > red_avg && (paqm_u64)flows[PAQM_CBT_TAGGED] << 16 <=
							(paqm_u64)paqm_dcbt_flows(flows) * most_q16;
}

/* Packets that stay ahead of one that cuts in. */
static inline paqm_u32 paqm_chips_place(paqm_u64 red_avg)
{
	return (paqm_u32)(red_avg >> 24);
}

static inline void paqm_labels_clear(struct paqm_labels *l)
{
	int i;

	l->head = 0;
	l->len = 0;
	for (i = 0; i < PAQM_CBT_CLASSES; i++)
		l->held[i] = 0;
}

/* A packet arrives; there is room. */
static inline void paqm_labels_push(struct paqm_labels *l, enum paqm_cbt_class class)
{
	l->label[(l->head + l->len++) & l->mask] = class;
	l->held[class]++;
}

/* A packet leaves, of whatever class; there is one. */
static inline void paqm_labels_pop(struct paqm_labels *l)
{
	l->held[l->label[l->head]]--;
	l->head = (l->head + 1) & l->mask;
	l->len--;
}

/* Index of the newest label of a class, @l->len if there is none. */
static inline paqm_u32 paqm_labels_newest(const struct paqm_labels *l, enum paqm_cbt_class class)
{
	paqm_u32 i;

	for (i = l->len; i; i--)
		if (l->label[(l->head + i - 1) & l->mask] == class)
			return i - 1;
	return l->len;
}

/**
 * paqm_labels_remove() - a packet of a class was dropped out of the queue
 * @l: labels, not empty
 * @class: of the packet
 *
 * The newest label of the class goes, and if there is none, since packets that cut in have taken
 * it along, the newest tagged one: that disturbs least what is still to leave.
 */
static inline void paqm_labels_remove(struct paqm_labels *l, enum paqm_cbt_class class)
{
	paqm_u32 at = paqm_labels_newest(l, class);

	if (at == l->len)
		at = paqm_labels_newest(l, PAQM_CBT_TAGGED);
	if (at == l->len) /* neither: labels and packets would be of different classes */
		at = l->len - 1;
	l->held[l->label[(l->head + at) & l->mask]]--;
	for (l->len--; at < l->len; at++)
		l->label[(l->head + at) & l->mask] = l->label[(l->head + at + 1) & l->mask];
}

#endif /* PAQM_CHIPS_H */
