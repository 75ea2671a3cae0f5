// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit suite of rates in media packets: whatever part of a packet is linear, whoever else
 * holds it, and whatever its checksum is like, the right bytes change and no others.
 */
#include <kunit/test.h>
#include <linux/skbuff.h>
#include <linux/udp.h>
#include <net/ip6_checksum.h>
#include <net/udp.h>
#include "core/tests/inband_vectors.h"
#include "kernel/fuzz/packets.h"
#include "paqm_inband.h"
#include "skb.h"

#define PAQM_HEAD4 (ETH_HLEN + 20)
#define PAQM_HEAD6 (ETH_HLEN + 40)

enum paqm_sum { PAQM_SUM_FULL, PAQM_SUM_NONE, PAQM_SUM_PARTIAL, PAQM_SUM_COMPLETE, PAQM_SUMS };

static const struct paqm_field paqm_mine = { .rate = 0x49742400, .router = 0xBEEF, .period = 13 };

static enum paqm_stamp paqm_try(struct sk_buff *skb, bool judged)
{
	struct paqm_field mine = paqm_mine;

	return paqm_stamp(skb, &mine, judged, NULL);
}

/* The UDP checksum of a packet, as it ought to be. */
static u16 paqm_udp_sum(const u8 *ip, u32 udp_len)
{
	bool v6 = *ip >> 4 == 6;
	const u8 *udp = ip + (v6 ? 40 : 20);
	__wsum sum = csum_partial(udp, 6, 0);

	sum = csum_block_add(sum, csum_partial(udp + 8, udp_len - 8, 0), 8);
	if (v6)
		return ntohs((__force __be16)csum_ipv6_magic((const struct in6_addr *)(ip + 8),
							      (const struct in6_addr *)(ip + 24),
							      udp_len, IPPROTO_UDP, sum));
	return ntohs((__force __be16)csum_tcpudp_magic(*(const __be32 *)(ip + 12),
							*(const __be32 *)(ip + 16), udp_len,
							IPPROTO_UDP, sum));
}

/* A frame around a payload into @frame; its length. */
static u32 paqm_frame(u8 *frame, const u8 *payload, u32 len, bool v6, enum paqm_sum how)
{
	u32 head = v6 ? PAQM_HEAD6 : PAQM_HEAD4;
	static struct paqm_pkt pkt;
	char words[48];

	snprintf(words, sizeof(words), "eth ip%d udp:5004:5006 fill:%u", v6 ? 6 : 4, len);
	paqm_pkt_make(&pkt, words);
	memcpy(frame, pkt.data, pkt.len);
	memcpy(frame + head + 8, payload, len);
	if (how == PAQM_SUM_FULL || how == PAQM_SUM_COMPLETE)
		paqm_put16(frame + head + 6, paqm_udp_sum(frame + ETH_HLEN, 8 + len) ?: 0xFFFF);
	else if (how == PAQM_SUM_PARTIAL)
		paqm_put16(frame + head + 6, 0x4321); /* the pseudo header's sum, for the device */
	return pkt.len;
}

/* A packet of which @headlen bytes are linear. */
static struct sk_buff *paqm_packet(struct kunit *test, const u8 *frame, u32 len, u32 headlen,
				   enum paqm_sum how)
{
	struct sk_buff *skb = paqm_skb(test, frame, len, headlen, ETH_HLEN);

	if (how == PAQM_SUM_PARTIAL) {
		skb->ip_summed = CHECKSUM_PARTIAL;
	} else if (how == PAQM_SUM_COMPLETE) {
		skb->ip_summed = CHECKSUM_COMPLETE;
		skb->csum = skb_checksum(skb, ETH_HLEN, len - ETH_HLEN, 0);
	}
	return skb;
}

/* What must have become of the packet. */
static void paqm_expect_lowered(struct kunit *test, const char *name, struct sk_buff *skb,
				const u8 *frame, u32 len, u32 at, enum paqm_sum how)
{
	u32 head = frame[ETH_HLEN] >> 4 == 6 ? PAQM_HEAD6 : PAQM_HEAD4, i, field = head + 8 + at;
	u8 after[PAQM_HEAD6 + 8 + PAQM_INBAND_MAX];
	struct paqm_field f;

	KUNIT_ASSERT_EQ_MSG(test, skb->len, len, "%s", name);
	KUNIT_ASSERT_EQ(test, skb_copy_bits(skb, 0, after, len), 0);
	paqm_field_decode(after + field, &f);
	KUNIT_EXPECT_EQ_MSG(test, f.rate, paqm_mine.rate, "%s", name);
	KUNIT_EXPECT_EQ_MSG(test, f.router, paqm_mine.router, "%s", name);
	KUNIT_EXPECT_EQ_MSG(test, f.nonce, VEC_NONCE, "%s", name);
	for (i = 0; i < len; i++) {
		if (i == head + 6 || i == head + 7 ||
		    (i >= field + PAQM_FIELD_RATE && i < field + PAQM_FIELD_NONCE))
			continue;
		KUNIT_ASSERT_EQ_MSG(test, after[i], frame[i], "%s: byte %u", name, i);
	}
	if (how == PAQM_SUM_FULL || how == PAQM_SUM_COMPLETE)
		KUNIT_EXPECT_EQ_MSG(test, paqm_get16(after + head + 6),
				    paqm_udp_sum(after + ETH_HLEN, len - head) ?: 0xFFFF, "%s",
				    name);
	else
		KUNIT_EXPECT_EQ_MSG(test, paqm_get16(after + head + 6),
				    paqm_get16(frame + head + 6), "%s", name);
	if (how == PAQM_SUM_COMPLETE)
		KUNIT_EXPECT_EQ_MSG(test, csum_fold(skb->csum),
				    csum_fold(skb_checksum(skb, ETH_HLEN, len - ETH_HLEN, 0)),
				    "%s", name);
}

/* Every payload of the table in both versions of IP, with every kind of checksum. */
static void paqm_kunit_stamp(struct kunit *test)
{
	u8 payload[PAQM_INBAND_MAX], frame[PAQM_HEAD6 + 8 + PAQM_INBAND_MAX];
	u32 i, v6, how, len, n, head;

	for (i = 0; i < ARRAY_SIZE(paqm_inband_cases); i++) {
		const struct paqm_inband_case *c = &paqm_inband_cases[i];

		n = paqm_inband_make(payload, c->hex);
		for (v6 = 0; v6 < 2; v6++) {
			for (how = 0; how < PAQM_SUMS; how++) {
				len = paqm_frame(frame, payload, n, v6, how);
				for (head = ETH_HLEN; head <= len; head += 7) {
					struct sk_buff *skb =
						paqm_packet(test, frame, len, head, how);
					enum paqm_stamp done = paqm_try(skb, true);

					KUNIT_EXPECT_EQ_MSG(test, done,
							    c->at ? PAQM_STAMP_LOWERED :
								    PAQM_STAMP_NONE,
							    "%s", c->name);
					if (done == PAQM_STAMP_LOWERED) {
						paqm_expect_lowered(test, c->name, skb, frame, len,
								    c->at, how);
						KUNIT_EXPECT_EQ(test, paqm_try(skb, true),
								PAQM_STAMP_KEPT);
					}
					kfree_skb(skb);
				}
			}
		}
	}
}

/*
 * With a law that asks: what senders say is read, what the router says is written, and a rate that
 * follows from the sender's own word, or a grade in its place, goes before the router's.
 */
static void paqm_kunit_ask(struct kunit *test)
{
	static const struct {
		const char *name;
		struct paqm_each each;
		u8 said;
		u32 rate; /* binary32 of what is told; 0: as it was */
	} t[] = {
		{ "one rate", {}, PAQM_SAID_SEARCHES, 0x49742400 },
		{ "half of its own", { .keep_q24 = PAQM_Q24_ONE / 2 }, PAQM_SAID_SEARCHES,
		  0x48F42400 },
		{ "more than it has", { .keep_q24 = PAQM_Q24_ONE, .add = 4000000 },
		  PAQM_SAID_SEARCHES, 0 },
		{ "a grade", { .keep_q24 = PAQM_Q24_ONE, .grade = 3 }, PAQM_SAID_SEARCHES | 3, 0 },
	};
	u8 payload[PAQM_INBAND_MAX], frame[PAQM_HEAD6 + 8 + PAQM_INBAND_MAX];
	u8 after[PAQM_HEAD6 + 8 + PAQM_INBAND_MAX];
	u32 i, k, n, len, v6;

	for (i = 0; i < ARRAY_SIZE(paqm_inband_cases); i++) {
		const struct paqm_inband_case *c = &paqm_inband_cases[i];

		n = paqm_inband_make(payload, c->hex);
		for (k = 0; k < ARRAY_SIZE(t) * 2; k++) {
			struct paqm_ask ask = { .each = &t[k / 2].each, .said = t[k / 2].said };
			struct paqm_field mine = paqm_mine;
			struct sk_buff *skb;
			struct paqm_field f;
			struct paqm_more m;
			u32 head;

			v6 = k & 1;
			head = (v6 ? PAQM_HEAD6 : PAQM_HEAD4) + 8;
			len = paqm_frame(frame, payload, n, v6, PAQM_SUM_FULL);
			skb = paqm_packet(test, frame, len, min(head + 2, len), PAQM_SUM_FULL);
			paqm_stamp(skb, &mine, true, &ask);
			KUNIT_EXPECT_EQ_MSG(test, ask.has, c->at && c->more, "%s", c->name);
			KUNIT_ASSERT_EQ(test, skb_copy_bits(skb, 0, after, len), 0);
			kfree_skb(skb);
			if (!ask.has)
				continue;
			KUNIT_EXPECT_EQ_MSG(test, ask.more.used, VEC_USED, "%s", c->name);
			KUNIT_EXPECT_EQ_MSG(test, ask.more.rtt, 400, "%s", c->name);
			paqm_field_decode(after + head + c->at, &f);
			paqm_more_decode(after + head + c->more, &m);
			KUNIT_EXPECT_EQ_MSG(test, f.rate, t[k / 2].rate ?: VEC_RATE, "%s, %s",
					    c->name, t[k / 2].name);
			KUNIT_EXPECT_EQ_MSG(test, m.said, t[k / 2].said, "%s, %s", c->name,
					    t[k / 2].name);
			KUNIT_EXPECT_EQ_MSG(test, paqm_get16(after + head - 2),
					    paqm_udp_sum(after + ETH_HLEN, len - head + 8) ?:
						    0xFFFF,
					    "%s, %s", c->name, t[k / 2].name);
		}
	}
}

/* Of a flow that is not judged media only probes are of interest. */
static void paqm_kunit_unjudged(struct kunit *test)
{
	u8 payload[PAQM_INBAND_MAX], frame[PAQM_HEAD4 + 8 + PAQM_INBAND_MAX];
	u32 i, len, n;

	for (i = 0; i < ARRAY_SIZE(paqm_inband_cases); i++) {
		const struct paqm_inband_case *c = &paqm_inband_cases[i];
		struct sk_buff *skb;

		n = paqm_inband_make(payload, c->hex);
		len = paqm_frame(frame, payload, n, false, PAQM_SUM_FULL);
		skb = paqm_packet(test, frame, len, len, PAQM_SUM_FULL);
		KUNIT_EXPECT_EQ_MSG(test, paqm_try(skb, false),
				    c->at == 1 ? PAQM_STAMP_LOWERED : PAQM_STAMP_NONE, "%s",
				    c->name);
		kfree_skb(skb);
	}
}

/* Bytes that others hold too do not change for them. */
static void paqm_kunit_shared(struct kunit *test)
{
	u8 payload[PAQM_INBAND_MAX], frame[PAQM_HEAD4 + 8 + PAQM_INBAND_MAX], other[256];
	u32 n = paqm_inband_make(payload, paqm_inband_cases[0].hex);
	u32 len = paqm_frame(frame, payload, n, false, PAQM_SUM_FULL);
	struct sk_buff *skb = paqm_packet(test, frame, len, len, PAQM_SUM_FULL);
	struct sk_buff *clone = skb_clone(skb, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, clone);
	KUNIT_EXPECT_EQ(test, paqm_try(skb, true), PAQM_STAMP_LOWERED);
	paqm_expect_lowered(test, "cloned", skb, frame, len, 17, PAQM_SUM_FULL);
	KUNIT_ASSERT_EQ(test, skb_copy_bits(clone, 0, other, len), 0);
	KUNIT_EXPECT_EQ(test, memcmp(other, frame, len), 0);
	kfree_skb(skb);

	skb_get(clone); /* two holders of one packet: it cannot be written to */
	KUNIT_EXPECT_EQ(test, paqm_try(clone, true), PAQM_STAMP_LEFT);
	kfree_skb(clone);
	KUNIT_EXPECT_EQ(test, paqm_try(clone, true), PAQM_STAMP_LOWERED);
	kfree_skb(clone);
}

/* What is left alone: fragments, options, other protocols, tags, lying lengths. */
static void paqm_kunit_alone(struct kunit *test)
{
	static const struct {
		const char *name;
		u32 at;
		u8 byte;
		enum paqm_stamp want;
	} t[] = {
		{ "first fragment", ETH_HLEN + 6, 0x20, PAQM_STAMP_LEFT },
		{ "later fragment", ETH_HLEN + 7, 0x01, PAQM_STAMP_NONE },
		{ "UDP-Lite", ETH_HLEN + 9, IPPROTO_UDPLITE, PAQM_STAMP_NONE },
		{ "IP version 5", ETH_HLEN, 0x55, PAQM_STAMP_NONE },
		{ "header of 16 bytes", ETH_HLEN, 0x44, PAQM_STAMP_NONE },
		{ "tagged", 12, 0x81, PAQM_STAMP_NONE },
		{ "UDP length cuts the field", PAQM_HEAD4 + 5, 8 + 30, PAQM_STAMP_NONE },
		{ "UDP length of 7", PAQM_HEAD4 + 5, 7, PAQM_STAMP_NONE },
	};
	u8 payload[PAQM_INBAND_MAX], frame[PAQM_HEAD4 + 12 + PAQM_INBAND_MAX];
	u32 n = paqm_inband_make(payload, paqm_inband_cases[0].hex), i, len;
	struct sk_buff *skb;

	for (i = 0; i < ARRAY_SIZE(t); i++) {
		len = paqm_frame(frame, payload, n, false, PAQM_SUM_FULL);
		frame[t[i].at] = t[i].byte;
		skb = paqm_packet(test, frame, len, len, PAQM_SUM_FULL);
		KUNIT_EXPECT_EQ_MSG(test, paqm_try(skb, true), t[i].want, "%s", t[i].name);
		KUNIT_EXPECT_EQ_MSG(test, memcmp(skb->data, frame, len), 0, "%s", t[i].name);
		kfree_skb(skb);
	}
	/* options: four bytes more */
	len = paqm_frame(frame, payload, n, false, PAQM_SUM_NONE);
	memmove(frame + PAQM_HEAD4 + 4, frame + PAQM_HEAD4, len - PAQM_HEAD4);
	frame[ETH_HLEN] = 0x46;
	skb = paqm_packet(test, frame, len + 4, len + 4, PAQM_SUM_NONE);
	KUNIT_EXPECT_EQ(test, paqm_try(skb, true), PAQM_STAMP_LEFT);
	kfree_skb(skb);
}

static struct kunit_case paqm_inband_kunit_cases[] = {
	KUNIT_CASE(paqm_kunit_stamp),
	KUNIT_CASE(paqm_kunit_ask),
	KUNIT_CASE(paqm_kunit_unjudged),
	KUNIT_CASE(paqm_kunit_shared),
	KUNIT_CASE(paqm_kunit_alone),
	{}
};

static struct kunit_suite paqm_inband_suite = {
	.name = "paqm_inband",
	.test_cases = paqm_inband_kunit_cases,
};
kunit_test_suite(paqm_inband_suite);
