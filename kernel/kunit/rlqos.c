// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit suites of sch_rlqos: the vectors of its law that the user-space test runs, too, and its
 * datapath with packets: classes, thinning, frames, full queues, turns.
 */
#include <kunit/test.h>
#include <linux/string.h>
#include "kernel/fuzz/packets.h"
#include "../rlqos_datapath.c" /* paqm_classify.c is in classify.c */
#include "skb.h"

static struct kunit *rlqos_test;

static void rlqos_near(const char *what, u64 got, u64 want, u64 tol)
{
	KUNIT_EXPECT_LE_MSG(rlqos_test, got > want ? got - want : want - got, tol,
			    "%s: got %llu, want %llu", what, got, want);
}

#define PAQM_NEAR(what, got, want, tol) rlqos_near(what, got, want, tol)

#include "core/tests/rlqos_vectors.h"

struct rlqos_vectors {
	const char *name;
	void (*run)(void);
};

#define RLQOS_LAW(what) { .name = "paqm_kunit_rlqos_" #what, .run = paqm_check_rlqos_##what }

static const struct rlqos_vectors rlqos_laws[] = {
	RLQOS_LAW(probability), RLQOS_LAW(means), RLQOS_LAW(catches_up),
	RLQOS_LAW(downstream), RLQOS_LAW(frames), RLQOS_LAW(turns),
};

static void rlqos_name(const struct rlqos_vectors *v, char *text)
{
	strscpy(text, v->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(rlqos_laws, rlqos_laws, rlqos_name);

static void paqm_kunit_rlqos_vectors(struct kunit *test)
{
	const struct rlqos_vectors *v = test->param_value;

	rlqos_test = test;
	v->run();
}

#define STAMP (14 + 20 + 8 + 4) /* offset of the RTP timestamp, without options or tags */

/* A queue without a device that takes no sample by itself. */
static struct Qdisc *rlqos_made(struct kunit *test, u32 limit)
{
	struct Qdisc *sch = kunit_kzalloc(test, sizeof(*sch) + sizeof(struct rlqos_sched_data),
					  GFP_KERNEL);
	struct rlqos_sched_data *q;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, sch);
	gnet_stats_basic_sync_init(&sch->bstats);
	q = qdisc_priv(sch);
	q->cfg.limit = limit;
	q->cfg.other_limit = limit;
	q->cfg.frames = 1;
	q->cfg.tc1_share = PAQM_Q16_ONE / 10;
	q->cfg.tc2 = BIT_ULL(34);
	q->rules.dscp_any = BIT_ULL(46);
	q->params = paqm_vec_rlqos(350);
	q->law.next = U64_MAX;
	get_random_bytes(q->rules.key, sizeof(q->rules.key));
	for (i = 0; i < PAQM_RLQOS_CLASSES; i++)
		__skb_queue_head_init(&q->class[i].queue);
	return sch;
}

static struct sk_buff *rlqos_skb(struct kunit *test, const char *words, u32 dscp)
{
	struct paqm_pkt pkt;
	struct sk_buff *skb;

	KUNIT_ASSERT_EQ_MSG(test, paqm_pkt_make(&pkt, words), 0, "%s", words);
	if (dscp)
		pkt.data[15] = dscp << 2;
	skb = paqm_skb(test, pkt.data, pkt.len, pkt.len, paqm_pkt_network(pkt.data, pkt.len));
	return skb;
}

static int rlqos_put(struct kunit *test, struct Qdisc *sch, struct sk_buff *skb)
{
	struct sk_buff *to_free = NULL;
	int ret = rlqos_enqueue(skb, sch, &to_free);

	kfree_skb_list(to_free);
	return ret;
}

/* A packet of the picture with this timestamp, from a port. */
static struct sk_buff *rlqos_video(struct kunit *test, u32 port, u32 stamp)
{
	struct sk_buff *skb;
	char words[96];

	snprintf(words, sizeof(words), "eth ip4 udp:%u:5004 rtp fill:100", port);
	skb = rlqos_skb(test, words, 0);
	put_unaligned_be32(stamp, skb_mac_header(skb) + STAMP);
	return skb;
}

static void rlqos_emptied(struct Qdisc *sch)
{
	struct sk_buff *skb;

	while ((skb = rlqos_dequeue(sch)))
		kfree_skb(skb);
}

/* All that counts packets agrees. */
static void rlqos_sound(struct kunit *test, struct Qdisc *sch)
{
	struct rlqos_sched_data *q = qdisc_priv(sch);
	u32 i, packets = 0, bytes = 0;

	for (i = 0; i < PAQM_RLQOS_CLASSES; i++) {
		struct rlqos_class *c = &q->class[i];
		u32 waits = skb_queue_len(&c->queue), all = 0;
		struct sk_buff *skb;

		skb_queue_walk(&c->queue, skb)
			all += qdisc_pkt_len(skb);
		KUNIT_EXPECT_EQ(test, c->backlog, all);
		KUNIT_EXPECT_EQ(test, c->arrived, c->sent + c->drop_thin + c->drop_limit + waits);
		packets += waits;
		bytes += all;
	}
	KUNIT_EXPECT_EQ(test, sch->q.qlen, packets);
	KUNIT_EXPECT_EQ(test, sch->qstats.backlog, bytes);
}

static void paqm_kunit_rlqos_classes(struct kunit *test)
{
	static const struct {
		const char *packet;
		u32 dscp;
		u8 class;
		bool frame;
	} t[] = {
		{ "eth ip4 udp:5004:6000 rtp fill:100", 0,
		  PAQM_RLQOS_TC2, true },
		{ "eth ip4 udp:5004:6000 rtp fill:100", 34,
		  PAQM_RLQOS_TC2, true },
		{ "eth ip4 udp:5004:6000 rtp fill:100", 46,
		  PAQM_RLQOS_TC1, false },
		{ "eth ip6 udp:5004:6000 rtp fill:100", 0,
		  PAQM_RLQOS_TC2, true },
		{ "eth vlan ip4 udp:5004:6000 rtp fill:100", 0,
		  PAQM_RLQOS_TC2, true },
		{ "eth ip4 udp:1:2 ff fill:60", 0, PAQM_RLQOS_TC3, false },
		{ "eth ip4 udp:1:2 ff fill:60", 34, PAQM_RLQOS_TC2, false },
		{ "eth ip4 tcp:1:80 fill:60", 0, PAQM_RLQOS_TC3, false },
		{ "eth ip4 tcp:1:80 fill:60", 34, PAQM_RLQOS_TC2, false },
		{ "eth ip4 udp:50000:53 ff fill:30", 0, PAQM_RLQOS_TC1, false },
		{ "eth ip4 icmp fill:30", 0, PAQM_RLQOS_TC1, false },
		{ "eth arp", 0, PAQM_RLQOS_TC1, false },
	};
	struct Qdisc *sch = rlqos_made(test, 10);
	u32 i;

	for (i = 0; i < ARRAY_SIZE(t); i++) {
		struct sk_buff *skb = rlqos_skb(test, t[i].packet, t[i].dscp);
		struct rlqos_packet to = rlqos_classify(qdisc_priv(sch), skb);

		KUNIT_EXPECT_EQ_MSG(test, to.class, t[i].class, "%s", t[i].packet);
		KUNIT_EXPECT_EQ_MSG(test, !!to.frame, t[i].frame, "%s", t[i].packet);
		kfree_skb(skb);
	}
}

/* Ports and SSRCs do not matter, the timestamp does. */
static void paqm_kunit_rlqos_frame(struct kunit *test)
{
	struct Qdisc *sch = rlqos_made(test, 10);
	u32 i, k;
	u64 frame[3];

	for (i = 0; i < 3; i++) {
		struct sk_buff *skb = rlqos_video(test, 5004 + (i & 1), i == 2 ? 8 : 7);

		frame[i] = rlqos_classify(qdisc_priv(sch), skb).frame;
		kfree_skb(skb);
	}
	KUNIT_EXPECT_EQ(test, frame[0], frame[1]);
	KUNIT_EXPECT_NE(test, frame[0], frame[2]);
	for (k = 0; k < 3; k++)
		KUNIT_EXPECT_NE(test, frame[k], 0);
}

/* What enters is thinned, what is in transit is not. */
static void paqm_kunit_rlqos_thinning(struct kunit *test)
{
	struct Qdisc *sch = rlqos_made(test, 1000);
	struct rlqos_sched_data *q = qdisc_priv(sch);
	struct rlqos_class *c = &q->class[PAQM_RLQOS_TC2];
	u32 i, stamp = 0;

	q->law.probability = 1U << 30;
	for (i = 0; i < 800; i++)
		rlqos_put(test, sch, rlqos_video(test, 1, stamp++));
	rlqos_sound(test, sch);
	KUNIT_EXPECT_EQ(test, c->entered, 800);
	KUNIT_EXPECT_GT(test, c->drop_thin, 130);
	KUNIT_EXPECT_LT(test, c->drop_thin, 270);
	rlqos_emptied(sch);
	q->cfg.transit = 7;
	q->law.probability = U32_MAX;
	for (i = 0; i < 100; i++) {
		struct sk_buff *skb = rlqos_video(test, 1, stamp++);

		skb->mark = i & 1 ? 7 : 6;
		KUNIT_EXPECT_EQ(test, rlqos_put(test, sch, skb),
				i & 1 ? NET_XMIT_SUCCESS : NET_XMIT_DROP);
	}
	rlqos_put(test, sch, rlqos_skb(test, "eth ip4 tcp:1:80 fill:60", 0));
	KUNIT_EXPECT_EQ(test, q->class[PAQM_RLQOS_TC3].entered, 0);
	KUNIT_EXPECT_EQ(test, c->entered, 850);
	rlqos_sound(test, sch);
	rlqos_emptied(sch);
}

/* Pictures of two packets, half of all thinned: each picture loses one at most. */
static void paqm_kunit_rlqos_sub_streams(struct kunit *test)
{
	struct Qdisc *sch = rlqos_made(test, 1000);
	struct rlqos_sched_data *q = qdisc_priv(sch);
	struct rlqos_class *c = &q->class[PAQM_RLQOS_TC2];
	u32 i, part, lost;

	q->law.probability = 3U << 29; /* 0.375 */
	for (i = 0; i < 1000; i++) {
		for (part = 0, lost = 0; part < 2; part++)
			lost += rlqos_put(test, sch, rlqos_video(test, 1 + part, i)) !=
				NET_XMIT_SUCCESS;
		KUNIT_EXPECT_LE(test, lost, 1);
		rlqos_emptied(sch);
	}
	KUNIT_EXPECT_GT(test, c->drop_thin, 650);
	KUNIT_EXPECT_LT(test, c->drop_thin, 850);
	KUNIT_EXPECT_EQ(test, c->drop_again, 0);
	rlqos_sound(test, sch);
}

/* A full queue: a frame that has lost one is spared at the cost of another one. */
static void paqm_kunit_rlqos_full(struct kunit *test)
{
	struct Qdisc *sch = rlqos_made(test, 4);
	struct rlqos_sched_data *q = qdisc_priv(sch);
	struct rlqos_class *c = &q->class[PAQM_RLQOS_TC2];
	u32 i;

	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_EQ(test, rlqos_put(test, sch, rlqos_video(test, 1, i)), 0);
	KUNIT_EXPECT_EQ(test, rlqos_put(test, sch, rlqos_video(test, 1, 9)), NET_XMIT_DROP);
	rlqos_sound(test, sch);
	for (i = 0; i < 4; i++) /* in the places of 3, 2, 1, 0 */
		KUNIT_EXPECT_EQ(test, rlqos_put(test, sch, rlqos_video(test, 1, 9)), 0);
	KUNIT_EXPECT_EQ(test, c->drop_limit, 5);
	KUNIT_EXPECT_EQ(test, c->drop_again, 0);
	rlqos_sound(test, sch);
	KUNIT_EXPECT_EQ(test, rlqos_put(test, sch, rlqos_video(test, 1, 9)), NET_XMIT_DROP);
	KUNIT_EXPECT_EQ_MSG(test, c->drop_again, 1, "no other frame is left to pay");
	q->cfg.frames = 0;
	KUNIT_EXPECT_EQ(test, rlqos_put(test, sch, rlqos_video(test, 1, 9)), NET_XMIT_DROP);
	KUNIT_EXPECT_EQ(test, c->drop_again, 1);
	rlqos_sound(test, sch);
	rlqos_emptied(sch);
	rlqos_sound(test, sch);
}

/* TC1 first within its share, then TC2, TC3, then the rest of TC1; each in order. */
static void paqm_kunit_rlqos_order(struct kunit *test)
{
	struct Qdisc *sch = rlqos_made(test, 300);
	struct rlqos_sched_data *q = qdisc_priv(sch);
	u32 i, first = 0;
	struct sk_buff *skb;

	for (i = 0; i < 200; i++) {
		rlqos_put(test, sch, rlqos_skb(test, "eth ip4 udp:1:2 ff fill:400", 46));
		rlqos_put(test, sch, rlqos_skb(test, "eth ip4 udp:1:2 ff fill:400", 34));
	}
	for (i = 0; i < 200; i++) {
		skb = rlqos_dequeue(sch);
		KUNIT_ASSERT_NOT_NULL(test, skb);
		first += ip_hdr(skb)->tos >> 2 == 46;
		kfree_skb(skb);
	}
	KUNIT_EXPECT_GE(test, first, 19);
	KUNIT_EXPECT_LE(test, first, 21);
	rlqos_put(test, sch, rlqos_skb(test, "eth ip4 tcp:1:80 fill:60", 0));
	q->credit = -1;
	for (i = 0; skb_queue_len(&q->class[PAQM_RLQOS_TC2].queue); i++)
		kfree_skb(rlqos_dequeue(sch));
	KUNIT_EXPECT_GT(test, i, 19);
	q->credit = -1;
	kfree_skb(rlqos_dequeue(sch));
	KUNIT_EXPECT_EQ_MSG(test, q->class[PAQM_RLQOS_TC3].sent, 1, "before TC1 beyond its share");
	rlqos_emptied(sch);
	rlqos_sound(test, sch);
}

static struct kunit_case rlqos_law_cases[] = {
	KUNIT_CASE_PARAM(paqm_kunit_rlqos_vectors, rlqos_laws_gen_params),
	{}
};

static struct kunit_case rlqos_queue_cases[] = {
	KUNIT_CASE(paqm_kunit_rlqos_classes),
	KUNIT_CASE(paqm_kunit_rlqos_frame),
	KUNIT_CASE(paqm_kunit_rlqos_thinning),
	KUNIT_CASE(paqm_kunit_rlqos_sub_streams),
	KUNIT_CASE(paqm_kunit_rlqos_full),
	KUNIT_CASE(paqm_kunit_rlqos_order),
	{}
};

static struct kunit_suite rlqos_law_suite = {
	.name = "paqm_rlqos_laws",
	.test_cases = rlqos_law_cases,
};

static struct kunit_suite rlqos_queue_suite = {
	.name = "paqm_rlqos_queue",
	.test_cases = rlqos_queue_cases,
};

kunit_test_suites(&rlqos_law_suite, &rlqos_queue_suite);
