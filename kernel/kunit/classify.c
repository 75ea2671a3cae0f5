// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit suite of the recogniser: a table of packets (kernel/fuzz/packets.h), each whole,
 * with any part of it not linear, and cut at every length; tags that the device keeps beside the
 * packet; rules; fragments of datagrams.
 */
#include <kunit/test.h>
#include <linux/if_vlan.h>
#include <linux/skbuff.h>
#include <net/dsfield.h>
#include "kernel/fuzz/packets.h"
#include "../paqm_classify.c" /* an object is of one module only */
#include "../paqm_fragment.c"
#include "skb.h"

static const struct paqm_rules paqm_plain = {
	.key = { 0x0706050403020100ULL, 0x0f0e0d0c0b0a0908ULL, 0x3C6EF372FE94F82BULL,
		 0xA54FF53A5F1D36F1ULL, 0x510E527FADE682D1ULL, 0x9B05688C2B3E6C1FULL },
	.dscp_any = PAQM_DSCP_CONTROL,
};

/* A packet in words. */
static struct sk_buff *paqm_words(struct kunit *test, const char *words)
{
	struct paqm_pkt pkt;

	KUNIT_ASSERT_EQ_MSG(test, paqm_pkt_make(&pkt, words), 0, "%s", words);
	return paqm_skb(test, pkt.data, pkt.len, pkt.len, paqm_pkt_network(pkt.data, pkt.len));
}

/* What the recogniser says about a packet, which is gone then. */
static struct paqm_packet paqm_answer(struct sk_buff *skb)
{
	struct paqm_packet p;

	paqm_classify(skb, &paqm_plain, &p);
	kfree_skb(skb);
	return p;
}

static struct paqm_packet paqm_ask_words(struct kunit *test, const char *words)
{
	return paqm_answer(paqm_words(test, words));
}

/* Of so many bytes, of which @headlen are linear. */
static struct paqm_packet paqm_ask(struct kunit *test, const u8 *data, u32 len, u32 headlen)
{
	return paqm_answer(paqm_skb(test, data, len, headlen, paqm_pkt_network(data, len)));
}

static bool paqm_same_answer(const struct paqm_packet *a, const struct paqm_packet *b)
{
	return a->hash == b->hash && a->kind == b->kind && a->note == b->note &&
	       a->family == b->family && a->quotable == b->quotable && a->ports == b->ports &&
	       (a->kind != PAQM_KIND_RTP || (a->seq == b->seq && a->ssrc == b->ssrc));
}

static void paqm_kunit_packets(struct kunit *test)
{
	struct paqm_packet p;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(paqm_pkt_cases); i++) {
		const struct paqm_pkt_case *c = &paqm_pkt_cases[i];

		p = paqm_ask_words(test, c->words);
		KUNIT_EXPECT_EQ_MSG(test, p.kind, c->kind, "%s", c->words);
		KUNIT_EXPECT_EQ_MSG(test, p.note, c->note, "%s", c->words);
		KUNIT_EXPECT_EQ_MSG(test, p.quotable, !!c->quotable, "%s", c->words);
		KUNIT_EXPECT_EQ_MSG(test, !p.family, !!(c->note & PAQM_NOTE_NOT_IP), "%s",
				    c->words);
		KUNIT_EXPECT_EQ_MSG(test, !p.hash,
				    c->kind == PAQM_KIND_SMALL || c->kind == PAQM_KIND_CONTROL ||
					    c->kind == PAQM_KIND_OTHER,
				    "%s", c->words);
		if (p.kind == PAQM_KIND_RTP) {
			KUNIT_EXPECT_EQ_MSG(test, p.seq, 1, "%s", c->words);
			KUNIT_EXPECT_EQ_MSG(test, p.ssrc, 0x12345678, "%s", c->words);
		}
	}
}

/* The answer does not depend on where the packet's bytes are. */
static void paqm_kunit_places(struct kunit *test)
{
	struct paqm_packet whole, p;
	struct paqm_pkt pkt;
	u32 i, head;

	for (i = 0; i < ARRAY_SIZE(paqm_pkt_cases); i++) {
		const char *words = paqm_pkt_cases[i].words;

		paqm_pkt_make(&pkt, words);
		whole = paqm_ask(test, pkt.data, pkt.len, pkt.len);
		for (head = 0; head < pkt.len; head++) {
			p = paqm_ask(test, pkt.data, pkt.len, head);
			KUNIT_EXPECT_TRUE_MSG(test, paqm_same_answer(&p, &whole),
					      "%s, %u bytes linear", words, head);
		}
	}
}

/* A packet that ends early is still something, and nothing behind its end is read. */
static void paqm_kunit_cut(struct kunit *test)
{
	struct paqm_packet p, split;
	struct paqm_pkt pkt;
	u32 i, len;

	for (i = 0; i < ARRAY_SIZE(paqm_pkt_cases); i++) {
		const char *words = paqm_pkt_cases[i].words;

		paqm_pkt_make(&pkt, words);
		for (len = ETH_HLEN; len < pkt.len; len++) {
			p = paqm_ask(test, pkt.data, len, len);
			split = paqm_ask(test, pkt.data, len, len / 2);
			KUNIT_EXPECT_TRUE_MSG(test, paqm_same_answer(&p, &split),
					      "%s, cut at %u", words, len);
			KUNIT_EXPECT_LE_MSG(test, p.kind, PAQM_KIND_OTHER, "%s, cut at %u", words,
					    len);
			KUNIT_EXPECT_EQ_MSG(test, !p.family, !!(p.note & PAQM_NOTE_NOT_IP),
					    "%s, cut at %u", words, len);
			if (p.kind == PAQM_KIND_RTP)
				KUNIT_EXPECT_EQ_MSG(test, p.ssrc, 0x12345678, "%s, cut at %u",
						    words, len);
		}
	}
}

/* A flow is its addresses, ports and protocol, and where these hold: nothing else. */
static void paqm_kunit_identity(struct kunit *test)
{
	static const char *const same[] = {
		"eth ip4 udp:5004:6000 rtp fill:100", "eth ip4ef udp:5004:6000 ff fill:10",
		"eth ip4opt udp:5004:6000 quiclong fill:90", "eth ip4first udp:5004:6000 rtp",
	};
	static const char *const others[] = {
		"eth ip4 udp:5005:6000 rtp fill:100", "eth ip4 udp:5004:6001 rtp fill:100",
		"eth ip4 udp:6000:5004 rtp fill:100", "eth ip4 tcp:5004:6000",
		"eth ip6 udp:5004:6000 rtp fill:100", "eth ip4later fill:50",
		"eth vlan ip4 udp:5004:6000 rtp fill:33", "eth mpls ip4 udp:5004:6000 ff fill:30",
		"eth pppoe4 ip4 udp:5004:6000 rtp fill:100",
	};
	struct paqm_packet first, p;
	struct paqm_pkt pkt;
	u32 i;

	first = paqm_ask_words(test, same[0]);
	KUNIT_EXPECT_NE(test, first.hash, 0);
	for (i = 1; i < ARRAY_SIZE(same); i++) {
		p = paqm_ask_words(test, same[i]);
		KUNIT_EXPECT_EQ_MSG(test, p.hash, first.hash, "%s", same[i]);
	}
	for (i = 0; i < ARRAY_SIZE(others); i++) {
		p = paqm_ask_words(test, others[i]);
		KUNIT_EXPECT_NE_MSG(test, p.hash, 0, "%s", others[i]);
		KUNIT_EXPECT_NE_MSG(test, p.hash, first.hash, "%s", others[i]);
	}
	/* every bit of both addresses counts */
	for (i = 0; i < 64; i++) {
		paqm_pkt_make(&pkt, same[0]);
		pkt.data[14 + 12 + i / 8] ^= 1 << i % 8;
		p = paqm_ask(test, pkt.data, pkt.len, pkt.len);
		KUNIT_EXPECT_NE_MSG(test, p.hash, first.hash, "IPv4 address bit %u", i);
	}
	paqm_pkt_make(&pkt, others[4]);
	first = paqm_ask(test, pkt.data, pkt.len, pkt.len);
	for (i = 0; i < 256; i++) {
		paqm_pkt_make(&pkt, others[4]);
		pkt.data[14 + 8 + i / 8] ^= 1 << i % 8;
		p = paqm_ask(test, pkt.data, pkt.len, pkt.len);
		KUNIT_EXPECT_NE_MSG(test, p.hash, first.hash, "IPv6 address bit %u", i);
	}
}

/* A tag that the device keeps, and one before what the skb calls its network header. */
static void paqm_kunit_tags(struct kunit *test)
{
	struct paqm_packet p;
	struct sk_buff *skb;
	u64 bare, in_ten;

	skb = paqm_words(test, "eth ip4 udp:5004:6000 rtp fill:100");
	__vlan_hwaccel_put_tag(skb, htons(ETH_P_8021Q), 10);
	paqm_classify(skb, &paqm_plain, &p);
	in_ten = p.hash;
	KUNIT_EXPECT_EQ(test, p.kind, PAQM_KIND_RTP);
	KUNIT_EXPECT_EQ(test, p.note, PAQM_NOTE_TAGGED);
	KUNIT_EXPECT_TRUE(test, p.quotable);
	KUNIT_EXPECT_EQ(test, paqm_plain_flow(skb, &paqm_plain), p.hash);
	__vlan_hwaccel_clear_tag(skb);
	paqm_classify(skb, &paqm_plain, &p);
	KUNIT_EXPECT_EQ(test, p.note, 0);
	bare = p.hash;
	KUNIT_EXPECT_NE(test, bare, in_ten); /* the same addresses, but somewhere else */
	__vlan_hwaccel_put_tag(skb, htons(ETH_P_8021AD), 0); /* a priority alone */
	paqm_classify(skb, &paqm_plain, &p);
	KUNIT_EXPECT_EQ(test, p.note, PAQM_NOTE_TAGGED);
	KUNIT_EXPECT_EQ(test, p.hash, bare);
	kfree_skb(skb);

	skb = paqm_words(test, "eth vlan ip4 udp:5004:6000 rtp fill:100");
	paqm_classify(skb, &paqm_plain, &p);
	KUNIT_EXPECT_NE(test, p.hash, bare);
	__vlan_hwaccel_put_tag(skb, htons(ETH_P_8021AD), 10); /* one of two */
	paqm_classify(skb, &paqm_plain, &p);
	KUNIT_EXPECT_EQ(test, p.note, PAQM_NOTE_TAGGED);
	KUNIT_EXPECT_NE(test, p.hash, in_ten);
	put_unaligned_be16(3 << VLAN_PRIO_SHIFT, skb->data + ETH_HLEN); /* a priority alone */
	paqm_classify(skb, &paqm_plain, &p);
	KUNIT_EXPECT_EQ(test, p.hash, in_ten);
	__vlan_hwaccel_clear_tag(skb);
	paqm_classify(skb, &paqm_plain, &p);
	KUNIT_EXPECT_EQ(test, p.hash, bare);
	kfree_skb(skb);

	skb = paqm_words(test, "eth qinq vlan ip4 udp:5004:6000 rtp fill:100");
	skb_set_network_header(skb, ETH_HLEN); /* as bridges do */
	paqm_classify(skb, &paqm_plain, &p);
	KUNIT_EXPECT_EQ(test, p.kind, PAQM_KIND_RTP);
	KUNIT_EXPECT_EQ(test, p.note, PAQM_NOTE_TAGGED);
	KUNIT_EXPECT_FALSE(test, p.quotable); /* what is copied begins at the header */
	kfree_skb(skb);
}

/* Rules of the administrator. */
static void paqm_kunit_rules(struct kunit *test)
{
	static const struct {
		const char *words;
		bool protocol;
		u64 media, elastic;
		enum paqm_kind kind;
		u8 note;
	} t[] = {
		{ "eth ip4 udp:50000:443 quiclong fill:9", true, 0, 0, PAQM_KIND_MEDIA, 0 },
		{ "eth ip4 udp:50000:53", true, 0, 0, PAQM_KIND_MEDIA, 0 },
		{ "eth ip4 tcp:50000:53", true, 0, 0, PAQM_KIND_ELASTIC, 0 },
		{ "eth ip4ef tcp:1:2", false, 1ULL << 46, 0, PAQM_KIND_MEDIA, PAQM_NOTE_DSCP },
		{ "eth ip6ef tcp:1:2", false, 1ULL << 46, 0, PAQM_KIND_MEDIA, PAQM_NOTE_DSCP },
		{ "eth ip4ef udp:1:2 rtp", false, 0, 1ULL << 46, PAQM_KIND_ELASTIC,
		  PAQM_NOTE_DSCP },
		{ "eth ip6ef udp:1:2 rtp", false, 0, 1ULL << 46, PAQM_KIND_ELASTIC,
		  PAQM_NOTE_DSCP },
		{ "eth ip4 udp:1:2 rtp", false, 1ULL << 46, 1ULL << 8, PAQM_KIND_RTP, 0 },
		{ "eth ip4 tcp:1:2", false, 1, 0, PAQM_KIND_MEDIA, PAQM_NOTE_DSCP },
		{ "eth arp", true, ~0ULL, 0, PAQM_KIND_CONTROL, PAQM_NOTE_NOT_IP },
	};
	struct paqm_packet p;
	struct sk_buff *skb;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(t); i++) {
		struct paqm_rules r = paqm_plain;

		r.protocol = t[i].protocol;
		paqm_rules_dscp(&r, t[i].media, t[i].elastic);
		skb = paqm_words(test, t[i].words);
		paqm_classify(skb, &r, &p);
		kfree_skb(skb);
		KUNIT_EXPECT_EQ_MSG(test, p.kind, t[i].kind, "%s", t[i].words);
		KUNIT_EXPECT_EQ_MSG(test, p.note, t[i].note, "%s", t[i].words);
	}
}

/* The short way finds the same flow as the long one, and takes what most packets are. */
static void paqm_kunit_plain(struct kunit *test)
{
	static const struct {
		const char *words;
		bool protocol;
		u64 media;
		bool plain;
	} t[] = {
		{ "eth ip4 udp:5004:6000 rtp fill:100", false, 0, true },
		{ "eth ip6 udp:5004:6000 rtp fill:100", false, 0, true },
		{ "eth ip4 tcp:50000:443 fill:100", false, 0, true },
		{ "eth ip6 tcp:50000:443 fill:10", false, 0, true },
		{ "eth ip4ef tcp:1:2", false, 1ULL << 8, true },
		{ "eth ip4ef tcp:1:2", false, 1ULL << 46, false },
		{ "eth ip6ef udp:1:2 rtp", false, 1ULL << 46, false },
		{ "eth ip4 udp:1:2 rtp", true, 0, true },
		{ "eth ip4 tcp:1:2", true, 0, true },
		{ "eth ip4opt udp:5004:6000 rtp fill:100", false, 0, false },
		{ "eth ip4first udp:5004:6000 rtp fill:100", false, 0, false },
		{ "eth ip4later fill:100", false, 0, false },
		{ "eth ip6 hop udp:5004:6000 rtp fill:100", false, 0, false },
		{ "eth ip4 sctp:5000:5000 fill:50", false, 0, false },
		{ "eth vlan ip4 udp:5004:6000 rtp fill:100", false, 0, false },
		{ "eth ip4six udp:5004:6000 rtp fill:50", false, 0, false },
		{ "eth arp", false, 0, false },
	};
	struct paqm_packet p;
	struct paqm_pkt pkt;
	struct sk_buff *skb;
	u32 i, head;
	u64 hash;

	for (i = 0; i < ARRAY_SIZE(t); i++) {
		struct paqm_rules r = paqm_plain;

		r.protocol = t[i].protocol;
		paqm_rules_dscp(&r, t[i].media, 0);
		KUNIT_ASSERT_EQ(test, paqm_pkt_make(&pkt, t[i].words), 0);
		for (head = 0; head <= pkt.len; head++) {
			skb = paqm_skb(test, pkt.data, pkt.len, head,
				       paqm_pkt_network(pkt.data, pkt.len));
			hash = paqm_plain_flow(skb, &r);
			paqm_identify(skb, &r, &p);
			kfree_skb(skb);
			if (hash)
				KUNIT_EXPECT_EQ_MSG(test, hash, p.hash, "%s, %u linear",
						    t[i].words, head);
		}
		KUNIT_EXPECT_EQ_MSG(test, !!hash, t[i].plain, "%s", t[i].words);
	}
}

/* What a later fragment is, and whether its class is known, after a first one went to @class. */
static bool paqm_follows(struct kunit *test, const char *first, const char *later, u8 class,
			 struct paqm_packet *is, u32 ticks)
{
	static struct paqm_datagram table[PAQM_DATAGRAMS];
	struct paqm_packet p = paqm_ask_words(test, first);
	struct sk_buff *skb = paqm_words(test, later);
	u8 told = U8_MAX;
	bool known;

	memset(table, 0, sizeof(table));
	KUNIT_EXPECT_TRUE_MSG(test, p.piece, "%s", first);
	p.net = skb_network_header(skb); /* the same addresses; that of the first is gone */
	paqm_fragment_first(table, &p, &paqm_plain, class, 1000);
	paqm_classify(skb, &paqm_plain, is);
	KUNIT_EXPECT_TRUE_MSG(test, is->piece, "%s", later);
	known = paqm_fragment_later(table, is, &paqm_plain, 1000 + ticks, &told);
	kfree_skb(skb);
	KUNIT_EXPECT_EQ_MSG(test, told, known ? class : U8_MAX, "%s", later);
	if (known)
		KUNIT_EXPECT_EQ_MSG(test, is->hash, p.hash, "%s", later);
	return known;
}

/* Later fragments go where the first of their datagram went, for a while. */
static void paqm_kunit_fragments(struct kunit *test)
{
	static const char first4[] = "eth ip4first udp:5004:6000 rtp fill:100";
	static const char later4[] = "eth ip4later udp:1:2 fill:42"; /* these are no ports */
	static const char first6[] = "eth ip6 first6 udp:5004:6000 rtp fill:100";
	const u32 second = paqm_flow_clock(NSEC_PER_SEC);
	struct paqm_packet p;

	KUNIT_EXPECT_TRUE(test, paqm_follows(test, first4, later4, PAQM_MEDIA, &p, 5));
	KUNIT_EXPECT_EQ(test, p.kind, PAQM_KIND_RTP);
	KUNIT_EXPECT_NE(test, p.ports, 0);
	KUNIT_EXPECT_TRUE(test, paqm_follows(test, first4, later4, PAQM_FLOW_UNSURE, &p,
					     second));
	KUNIT_EXPECT_FALSE(test, paqm_follows(test, first4, later4, PAQM_MEDIA,
					      &p, second + 1));
	KUNIT_EXPECT_EQ(test, p.kind, PAQM_KIND_ELASTIC);
	KUNIT_EXPECT_TRUE(test, paqm_follows(test, first6, "eth ip6 later6 fill:50",
					     PAQM_ELASTIC, &p, 5));
	/* its own extension headers do not matter */
	KUNIT_EXPECT_TRUE(test, paqm_follows(test, first6, "eth ip6 hop later6 fill:50",
					     PAQM_MEDIA, &p, 5));
	/* another datagram */
	KUNIT_EXPECT_FALSE(test, paqm_follows(test, "eth ip4next udp:5004:6000 rtp fill:100",
					      later4, PAQM_MEDIA, &p, 5));
	/* what is within a budget is so in all its parts */
	KUNIT_EXPECT_FALSE(test, paqm_follows(test, "eth ip4first udp:50000:53 fill:100",
					      later4, PAQM_MEDIA, &p, 5));
	KUNIT_EXPECT_EQ(test, p.kind, PAQM_KIND_SMALL);
	KUNIT_EXPECT_EQ(test, p.hash, 0);
	KUNIT_EXPECT_NE(test, p.apart, 0);
	/* the first one of a whole datagram is none */
	p = paqm_ask_words(test, "eth ip4 udp:5004:6000 rtp fill:100");
	KUNIT_EXPECT_FALSE(test, p.piece);
}

static struct kunit_case paqm_classify_cases[] = {
	KUNIT_CASE(paqm_kunit_packets),
	KUNIT_CASE(paqm_kunit_places),
	KUNIT_CASE(paqm_kunit_cut),
	KUNIT_CASE(paqm_kunit_identity),
	KUNIT_CASE(paqm_kunit_plain),
	KUNIT_CASE(paqm_kunit_tags),
	KUNIT_CASE(paqm_kunit_rules),
	KUNIT_CASE(paqm_kunit_fragments),
	{}
};

static struct kunit_suite paqm_classify_suite = {
	.name = "paqm_recogniser",
	.test_cases = paqm_classify_cases,
};
kunit_test_suite(paqm_classify_suite);
