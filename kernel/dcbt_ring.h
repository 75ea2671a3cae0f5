/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The queue of sch_dcbt: packets that any place can be taken from or put to, since ChIPS lets some
 * cut in and a full queue loses a random one. An array; what is moved are pointers.
 */
#ifndef DCBT_RING_H
#define DCBT_RING_H

#include <linux/skbuff.h>
#include <net/sch_generic.h>

/**
 * struct dcbt_skb_cb - what is kept with a packet that waits
 * @key: of its flow, low and high half; 64 bits at once would not leave room for the rest
 * @enqueued: units of 1024 ns
 * @class: enum paqm_cbt_class
 */
struct dcbt_skb_cb {
	u32 key[2];
	u32 enqueued;
	u8 class;
};

static inline struct dcbt_skb_cb *dcbt_skb_cb(const struct sk_buff *skb)
{
	qdisc_cb_private_validate(skb, sizeof(struct dcbt_skb_cb));
	return (struct dcbt_skb_cb *)qdisc_skb_cb(skb)->data;
}

static inline u64 dcbt_skb_key(const struct sk_buff *skb)
{
	const struct dcbt_skb_cb *cb = dcbt_skb_cb(skb);

	return (u64)cb->key[1] << 32 | cb->key[0];
}

/**
 * struct dcbt_ring - packets in the order in which they leave
 * @slot: ring of @mask + 1 packets
 * @mask: its size, a power of two, less 1
 * @head: the next to leave
 * @len: how many there are
 */
struct dcbt_ring {
	struct sk_buff **slot;
	u32 mask;
	u32 head;
	u32 len;
};

/* The packet with @i others ahead of it. */
static inline struct sk_buff **dcbt_ring_at(const struct dcbt_ring *r, u32 i)
{
	return &r->slot[(r->head + i) & r->mask];
}

/* Put a packet where @i others are ahead of it; there is room. */
static inline void dcbt_ring_insert(struct dcbt_ring *r, u32 i, struct sk_buff *skb)
{
	u32 at;

	for (at = r->len++; at > i; at--)
		*dcbt_ring_at(r, at) = *dcbt_ring_at(r, at - 1);
	*dcbt_ring_at(r, i) = skb;
}

/* Take out the packet with @i others ahead of it. */
static inline struct sk_buff *dcbt_ring_remove(struct dcbt_ring *r, u32 i)
{
	struct sk_buff *skb = *dcbt_ring_at(r, i);

	r->len--;
	if (!i) {
		r->head = (r->head + 1) & r->mask;
		return skb;
	}
	for (; i < r->len; i++)
		*dcbt_ring_at(r, i) = *dcbt_ring_at(r, i + 1);
	return skb;
}

/**
 * dcbt_ring_place() - where a packet that cuts in goes
 * @r: ring
 * @i: packets that are to stay ahead of it at least
 * @key: its flow
 *
 * Return: @i, or right behind the last packet of its flow, which it must not overtake.
 */
static inline u32 dcbt_ring_place(const struct dcbt_ring *r, u32 i, u64 key)
{
	u32 at;

	for (at = r->len; at > i; at--)
		if (dcbt_skb_key(*dcbt_ring_at(r, at - 1)) == key)
			break;
	return at;
}

#endif /* DCBT_RING_H */
