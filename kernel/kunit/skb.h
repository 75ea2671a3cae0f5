/* SPDX-License-Identifier: GPL-2.0 */
/* Packets of the KUnit suites. */
#ifndef PAQM_KUNIT_SKB_H
#define PAQM_KUNIT_SKB_H

#include <kunit/test.h>
#include <linux/skbuff.h>
#include <net/sch_generic.h>
#include "core/paqm_bytes.h"
#include "../paqm_compat.h"

/*
 * A packet of @len bytes, of which @headlen are linear, with its network header at @network, as a
 * device hands it to its qdisc.
 */
static inline struct sk_buff *paqm_skb(struct kunit *test, const u8 *data, u32 len, u32 headlen,
				       u32 network)
{
	struct sk_buff *skb = alloc_skb(NET_IP_ALIGN + headlen, GFP_KERNEL);
	u32 rest = len - headlen;
	struct page *page;

	KUNIT_ASSERT_NOT_NULL(test, skb);
	skb_reserve(skb, NET_IP_ALIGN);
	skb_put_data(skb, data, headlen);
	if (rest) {
		page = alloc_page(GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, page);
		/* to the end of the page: one byte more is another page */
		memcpy(page_address(page) + PAGE_SIZE - rest, data + headlen, rest);
		skb_add_rx_frag(skb, 0, page, PAGE_SIZE - rest, rest, PAGE_SIZE);
	}
	skb_reset_mac_header(skb);
	skb_set_network_header(skb, network);
	skb->protocol = htons(paqm_get16(data + 12));
	qdisc_skb_cb(skb)->pkt_len = skb->len;
	paqm_set_segs(skb);
	return skb;
}

#endif /* PAQM_KUNIT_SKB_H */
