// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit suites of sch_dcbt: the vectors of its laws that the user-space test runs, too, and its
 * datapath with packets: classes, places, victims, accounts.
 */
#include <kunit/test.h>
#include <linux/string.h>
#include "kernel/fuzz/packets.h"
#include "../dcbt_datapath.c" /* paqm_classify.c is in classify.c */
#include "skb.h"

static struct kunit *dcbt_test;

static void dcbt_near(const char *what, u64 got, u64 want, u64 tol)
{
	KUNIT_EXPECT_LE_MSG(dcbt_test, got > want ? got - want : want - got, tol,
			    "%s: got %llu, want %llu", what, got, want);
}

#define PAQM_NEAR(what, got, want, tol) dcbt_near(what, got, want, tol)

#include "core/tests/dcbt_vectors.h"

struct dcbt_vectors {
	const char *name;
	void (*run)(void);
};

#define DCBT_LAW(what) { .name = "paqm_kunit_dcbt_" #what, .run = paqm_check_##what }

static const struct dcbt_vectors dcbt_laws[] = {
	DCBT_LAW(red_average), DCBT_LAW(red_curve), DCBT_LAW(red_test), DCBT_LAW(red_adaptive),
	DCBT_LAW(fred), DCBT_LAW(thresholds), DCBT_LAW(joint_average), DCBT_LAW(unsynchronised),
	DCBT_LAW(active), DCBT_LAW(chips),
};

static void dcbt_name(const struct dcbt_vectors *v, char *text)
{
	strscpy(text, v->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(dcbt_laws, dcbt_laws, dcbt_name);

static void paqm_kunit_dcbt_vectors(struct kunit *test)
{
	const struct dcbt_vectors *v = test->param_value;

	dcbt_test = test;
	v->run();
}

#define SLOTS 64
#define TAG 3
#define TCP "tcp"
#define UDP "udp"

/* A queue without a device: limit 60, thresholds 5 and 15, as the module's defaults. */
static struct Qdisc *dcbt_made(struct kunit *test, u32 mode)
{
	struct Qdisc *sch = kunit_kzalloc(test, sizeof(*sch) + sizeof(struct dcbt_sched_data),
					  GFP_KERNEL);
	struct dcbt_sched_data *q;

	KUNIT_ASSERT_NOT_NULL(test, sch);
	gnet_stats_basic_sync_init(&sch->bstats);
	q = qdisc_priv(sch);
	q->cfg.mode = mode;
	q->cfg.limit = 60;
	q->cfg.tag = BIT_ULL(TAG);
	q->cfg.sweep = 300 * USEC_PER_MSEC;
	q->cfg.chips_share = PAQM_Q16_ONE / 2;
	q->cfg.min_q = 2;
	q->cfg.beta = PAQM_Q24(1, 10);
	q->params = paqm_vec_red();
	q->rules.protocol = true;
	get_random_bytes(q->rules.key, sizeof(q->rules.key));
	q->ring.slot = kunit_kcalloc(test, SLOTS, sizeof(*q->ring.slot), GFP_KERNEL);
	q->ring.mask = SLOTS - 1;
	q->labels.label = kunit_kzalloc(test, SLOTS, GFP_KERNEL);
	q->labels.mask = SLOTS - 1;
	q->active.flow = kunit_kcalloc(test, SLOTS, sizeof(*q->active.flow), GFP_KERNEL);
	q->active.bucket = kunit_kcalloc(test, SLOTS, sizeof(u32), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, q->ring.slot);
	KUNIT_ASSERT_NOT_NULL(test, q->labels.label);
	KUNIT_ASSERT_NOT_NULL(test, q->active.flow);
	KUNIT_ASSERT_NOT_NULL(test, q->active.bucket);
	q->active.slots = SLOTS;
	q->active.mask = SLOTS - 1;
	paqm_active_clear(&q->active, ktime_get_ns());
	paqm_red_start(&q->red, &q->params, ktime_get_ns());
	return sch;
}

static void dcbt_emptied(struct Qdisc *sch)
{
	struct sk_buff *skb;

	while ((skb = dcbt_dequeue(sch)))
		kfree_skb(skb);
}

/* One of any protocol, its flow told by its source port. */
static struct sk_buff *dcbt_skb(struct kunit *test, const char *proto, u32 port, u32 dscp)
{
	struct paqm_pkt pkt;
	struct sk_buff *skb;
	char words[64];

	if (*proto == 't' || *proto == 'u')
		snprintf(words, sizeof(words), "eth ip4 %s:%u:80 fill:100", proto, port);
	else
		snprintf(words, sizeof(words), "%s", proto);
	KUNIT_ASSERT_EQ_MSG(test, paqm_pkt_make(&pkt, words), 0, "%s", words);
	if (dscp)
		pkt.data[15] = dscp << 2;
	skb = paqm_skb(test, pkt.data, pkt.len, pkt.len, paqm_pkt_network(pkt.data, pkt.len));
	skb->mark = port; /* to know it again */
	return skb;
}

static int dcbt_put(struct kunit *test, struct Qdisc *sch, const char *proto, u32 port, u32 dscp)
{
	struct sk_buff *to_free = NULL;
	int ret = dcbt_enqueue(dcbt_skb(test, proto, port, dscp), sch, &to_free);

	kfree_skb_list(to_free);
	return ret;
}

/* What leaves next. */
static u32 dcbt_next(struct Qdisc *sch)
{
	struct sk_buff *skb = dcbt_dequeue(sch);
	u32 mark = skb ? skb->mark : 0;

	kfree_skb(skb);
	return mark;
}

/* All that counts packets agrees. */
static void dcbt_sound(struct kunit *test, struct Qdisc *sch)
{
	struct dcbt_sched_data *q = qdisc_priv(sch);
	u32 qlen[PAQM_CBT_CLASSES] = {}, bytes = 0, i, c, held = 0;

	for (i = 0; i < q->ring.len; i++) {
		const struct sk_buff *skb = *dcbt_ring_at(&q->ring, i);

		qlen[dcbt_skb_cb(skb)->class]++;
		bytes += qdisc_pkt_len(skb);
	}
	for (c = 0; c < PAQM_CBT_CLASSES; c++) {
		KUNIT_EXPECT_EQ(test, q->qlen[c], qlen[c]);
		held += q->labels.held[c];
	}
	KUNIT_EXPECT_EQ(test, sch->q.qlen, q->ring.len);
	KUNIT_EXPECT_EQ(test, sch->qstats.backlog, bytes);
	KUNIT_EXPECT_LE(test, q->ring.len, q->cfg.limit);
	if (q->cfg.chips) {
		KUNIT_EXPECT_EQ(test, q->labels.len, q->ring.len);
		KUNIT_EXPECT_EQ(test, held, q->ring.len);
		KUNIT_EXPECT_GE(test, q->labels.held[PAQM_CBT_TAGGED], 0);
	}
	if (q->cfg.mode == DCBT_MODE_FRED) {
		for (i = q->active.oldest, held = 0; i != PAQM_ACTIVE_NONE;
		     i = q->active.flow[i].newer)
			held += q->active.flow[i].account.qlen;
		KUNIT_EXPECT_EQ(test, held, q->ring.len);
	}
}

static void paqm_kunit_dcbt_classes(struct kunit *test)
{
	static const struct {
		const char *packet;
		u32 dscp;
		u8 class;
		bool counted;
	} t[] = {
		{ TCP, 0, PAQM_CBT_TCP, true },
		{ TCP, TAG, PAQM_CBT_TCP, true },
		{ UDP, 0, PAQM_CBT_UNTAGGED, true },
		{ UDP, TAG, PAQM_CBT_TAGGED, true },
		{ UDP, 46, PAQM_CBT_UNTAGGED, true },
		{ "eth ip4 udp:50000:53 ff fill:30", 0, PAQM_CBT_UNTAGGED, true },
		{ "eth ip4opt udp:5004:80 fill:30", 0, PAQM_CBT_UNTAGGED, true },
		{ "eth ip4opt udp:5004:80 fill:30", TAG, PAQM_CBT_TAGGED, true },
		{ "eth vlan ip4 tcp:1:80 fill:30", 0, PAQM_CBT_TCP, true },
		{ "eth ip6 udp:1:80 fill:30", 0, PAQM_CBT_UNTAGGED, true },
		{ "eth ip6 hop udp:1:80 fill:30", 0, PAQM_CBT_UNTAGGED, true },
		{ "eth ip6 hop tcp:1:80 fill:30", 0, PAQM_CBT_TCP, true },
		{ "eth ip4 icmp fill:30", 0, PAQM_CBT_TCP, false },
		{ "eth arp", 0, PAQM_CBT_TCP, false },
	};
	struct Qdisc *sch = dcbt_made(test, DCBT_MODE_DCBT);
	const struct dcbt_sched_data *q = qdisc_priv(sch);
	u32 i;

	for (i = 0; i < ARRAY_SIZE(t); i++) {
		struct sk_buff *skb = dcbt_skb(test, t[i].packet, 5, t[i].dscp);
		struct dcbt_packet to = dcbt_classify(q, skb);

		KUNIT_EXPECT_EQ_MSG(test, to.class, t[i].class, "%s", t[i].packet);
		KUNIT_EXPECT_EQ_MSG(test, !!to.key, t[i].counted, "%s", t[i].packet);
		kfree_skb(skb);
	}
}

/* Which key of a flow: with hosts two ports are one flow. */
static void paqm_kunit_dcbt_flow_key(struct kunit *test)
{
	struct Qdisc *sch = dcbt_made(test, DCBT_MODE_DCBT);
	struct dcbt_sched_data *q = qdisc_priv(sch);
	u32 key, i;

	for (key = 0; key < __DCBT_FLOW_KEY_MAX; key++) {
		q->cfg.flow_key = key;
		paqm_active_clear(&q->active, ktime_get_ns());
		for (i = 1; i <= 3; i++)
			dcbt_put(test, sch, TCP, i, 0);
		KUNIT_EXPECT_EQ(test, q->active.count[PAQM_CBT_TCP],
				key == DCBT_FLOW_KEY_HOSTS ? 1 : 3);
	}
	dcbt_emptied(sch);
}

/* 10 (or @waiting) TCP packets, an average of 6.4, tagged flows of all: what leaves how. */
static u32 dcbt_cut_in(struct kunit *test, u32 waiting, u32 tagged, u32 others, u32 dscp)
{
	struct Qdisc *sch = dcbt_made(test, DCBT_MODE_RED);
	struct dcbt_sched_data *q = qdisc_priv(sch);
	u32 i, place = 0;

	q->cfg.chips = true;
	for (i = 0; i < waiting; i++)
		dcbt_put(test, sch, TCP, 1, 0);
	/* the arrival's own flow and that of TCP are two of them */
	for (i = 0; i < others - 1; i++)
		paqm_active_touch(&q->active, 100 + i, PAQM_CBT_TCP, ktime_get_ns());
	for (i = 0; i < tagged - 1; i++)
		paqm_active_touch(&q->active, 200 + i, PAQM_CBT_TAGGED, ktime_get_ns());
	q->red.avg = PAQM_PACKETS(64, 10);
	dcbt_put(test, sch, UDP, 9, dscp);
	dcbt_sound(test, sch);
	for (i = 1; sch->q.qlen; i++)
		if (dcbt_next(sch) == 9)
			place = i;
	return place;
}

static void paqm_kunit_dcbt_places(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, dcbt_cut_in(test, 10, 10, 25, TAG), 7);
	KUNIT_EXPECT_EQ_MSG(test, dcbt_cut_in(test, 6, 10, 25, TAG), 7, "at the end");
	KUNIT_EXPECT_EQ_MSG(test, dcbt_cut_in(test, 10, 10, 25, 0), 11, "not tagged");
	KUNIT_EXPECT_EQ_MSG(test, dcbt_cut_in(test, 10, 6, 4, TAG), 11, "too many");
}

/* What cuts in one after the other leaves in its order; another flow may go ahead of it. */
static void paqm_kunit_dcbt_order(struct kunit *test)
{
	/* 7 behind two, then behind itself; 8 behind one; 7, which might be first, behind 7 */
	static const u32 want[] = { 1, 8, 1, 7, 7, 7, 1, 1, 1, 1 };
	static const struct {
		u32 port, avg_x10;
	} t[] = { { 7, 25 }, { 7, 25 }, { 8, 15 }, { 7, 5 } };
	struct Qdisc *sch = dcbt_made(test, DCBT_MODE_RED);
	struct dcbt_sched_data *q = qdisc_priv(sch);
	u32 i;

	q->cfg.chips = true;
	for (i = 0; i < 6; i++)
		dcbt_put(test, sch, TCP, 1, 0);
	for (i = 0; i < 2; i++) /* tagged flows shall be a minority */
		paqm_active_touch(&q->active, 100 + i, PAQM_CBT_TCP, ktime_get_ns());
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		q->red.avg = PAQM_PACKETS(t[i].avg_x10, 10);
		dcbt_put(test, sch, UDP, t[i].port, TAG);
		dcbt_sound(test, sch);
	}
	KUNIT_EXPECT_EQ(test, q->class[PAQM_CBT_TAGGED].cut_in, 4);
	for (i = 0; i < ARRAY_SIZE(want); i++)
		KUNIT_EXPECT_EQ_MSG(test, dcbt_next(sch), want[i], "%u", i);
	KUNIT_EXPECT_EQ(test, sch->q.qlen, 0);
}

/* A full queue loses one packet for each arrival, any of them, and is never longer. */
static void paqm_kunit_dcbt_victims(struct kunit *test)
{
	static const u32 modes[] = { DCBT_MODE_RED, DCBT_MODE_FRED, DCBT_MODE_CBT_TCP,
				     DCBT_MODE_DCBT };
	u32 m, forced, chips, i;

	for (m = 0; m < ARRAY_SIZE(modes) * 4; m++) {
		struct Qdisc *sch = dcbt_made(test, modes[m / 4]);
		struct dcbt_sched_data *q = qdisc_priv(sch);
		u64 lost = 0, mine = 0;

		forced = m & 1;
		chips = m >> 1 & 1;
		q->cfg.forced = forced;
		q->cfg.chips = chips;
		q->cfg.limit = 20;
		q->params.min = 40 * PAQM_RED_PACKET; /* RED has no part in it */
		q->params.max = 50 * PAQM_RED_PACKET;
		q->cfg.tagged_th = 40 << 16;
		q->cfg.untagged_th = 40 << 16;
		for (i = 0; i < 500; i++) {
			mine += dcbt_put(test, sch, i % 3 ? TCP : UDP, 1 + i % 7,
					 i % 2 ? TAG : 0) != NET_XMIT_SUCCESS;
			if (i % 5 == 4)
				dcbt_next(sch);
			dcbt_sound(test, sch);
		}
		for (i = 0; i < PAQM_CBT_CLASSES; i++)
			lost += q->class[i].drop[DCBT_FULL];
		KUNIT_EXPECT_EQ(test, sch->qstats.drops, lost);
		KUNIT_EXPECT_EQ(test, lost + sch->q.qlen + 100, 500);
		if (forced || modes[m / 4] == DCBT_MODE_FRED)
			KUNIT_EXPECT_EQ_MSG(test, mine, lost, "the arrival");
		else
			KUNIT_EXPECT_LT_MSG(test, mine * 4, lost, "seldom the arrival");
		dcbt_emptied(sch);
		dcbt_sound(test, sch);
	}
}

/* D-CBT: no threshold drops below min_th, none of TCP; a flow that loses all it sends counts. */
static void paqm_kunit_dcbt_gate(struct kunit *test)
{
	struct Qdisc *sch = dcbt_made(test, DCBT_MODE_DCBT);
	struct dcbt_sched_data *q = qdisc_priv(sch);
	u64 *drop = q->class[PAQM_CBT_UNTAGGED].drop;
	u32 i;

	q->avg[PAQM_CBT_UNTAGGED] = 3 * PAQM_RED_PACKET;
	q->red.avg = 4 * PAQM_RED_PACKET;
	for (i = 0; i < 10; i++) {
		dcbt_put(test, sch, TCP, i % 4, 0);
		dcbt_put(test, sch, UDP, 9, 0);
	}
	KUNIT_EXPECT_EQ(test, drop[DCBT_THRESHOLD], 0);
	q->red.avg = 7 * PAQM_RED_PACKET;
	for (i = 0; i < 10; i++) {
		dcbt_put(test, sch, TCP, i % 4, 0);
		KUNIT_EXPECT_EQ(test, dcbt_put(test, sch, UDP, 9, 0), NET_XMIT_DROP);
	}
	KUNIT_EXPECT_EQ(test, drop[DCBT_THRESHOLD], 10);
	KUNIT_EXPECT_EQ(test, q->class[PAQM_CBT_TCP].drop[DCBT_THRESHOLD], 0);
	KUNIT_EXPECT_EQ(test, q->active.count[PAQM_CBT_TCP], 4);
	KUNIT_EXPECT_EQ(test, q->active.count[PAQM_CBT_UNTAGGED], 1);
	dcbt_emptied(sch);
}

/* Mode cbt-tcp: UDP below its threshold is not asked by RED, which sees only TCP. */
static void paqm_kunit_dcbt_red_for_tcp(struct kunit *test)
{
	u32 mode, i;

	for (mode = DCBT_MODE_CBT; mode <= DCBT_MODE_CBT_TCP; mode++) {
		struct Qdisc *sch = dcbt_made(test, mode);
		struct dcbt_sched_data *q = qdisc_priv(sch);

		q->cfg.untagged_th = 40 << 16;
		q->red.avg = 16 * PAQM_RED_PACKET;
		for (i = 0; i < 10; i++)
			dcbt_put(test, sch, UDP, 9, 0);
		KUNIT_EXPECT_EQ(test, q->class[PAQM_CBT_UNTAGGED].drop[DCBT_FORCED] > 0,
				mode == DCBT_MODE_CBT);
		if (mode == DCBT_MODE_CBT_TCP)
			KUNIT_EXPECT_EQ(test, q->red.avg, 16 * PAQM_RED_PACKET);
		dcbt_emptied(sch);
	}
}

/* FRED: a flow that is greedy pays, one that is not does not. */
static void paqm_kunit_dcbt_fred(struct kunit *test)
{
	struct Qdisc *sch = dcbt_made(test, DCBT_MODE_FRED);
	struct dcbt_sched_data *q = qdisc_priv(sch);
	u32 lost[3] = {}, i;

	for (i = 0; i < 3000; i++) {
		lost[1] += dcbt_put(test, sch, UDP, 1, 0) != NET_XMIT_SUCCESS;
		if (i % 4 == 0)
			lost[2] += dcbt_put(test, sch, TCP, 2, 0) != NET_XMIT_SUCCESS;
		if (i % 4 != 1)
			dcbt_next(sch);
		dcbt_sound(test, sch);
	}
	KUNIT_EXPECT_EQ(test, lost[2], 0);
	KUNIT_EXPECT_GT(test, lost[1], 600);
	KUNIT_EXPECT_EQ(test, q->class[PAQM_CBT_UNTAGGED].drop[DCBT_FLOW], lost[1]);
	dcbt_emptied(sch);
	KUNIT_EXPECT_EQ(test, paqm_dcbt_flows(q->active.count), 0);
}

/* Instead of early drops, marks, where the packet has room for one. */
static void paqm_kunit_dcbt_ecn(struct kunit *test)
{
	struct Qdisc *sch = dcbt_made(test, DCBT_MODE_RED);
	struct dcbt_sched_data *q = qdisc_priv(sch);
	struct dcbt_class *c = &q->class[PAQM_CBT_TCP];
	struct sk_buff *skb, *to_free = NULL;
	u64 dropped = 0;
	u32 i, ect;

	q->cfg.ecn = true;
	q->red.max_p_q24 = PAQM_Q24_ONE;
	for (ect = 0; ect < 2; ect++) {
		for (i = 0; i < 200; i++) {
			q->red.avg = 14 * PAQM_RED_PACKET;
			skb = dcbt_skb(test, TCP, 1, 0);
			ip_hdr(skb)->tos = ect ? INET_ECN_ECT_0 : 0;
			dcbt_enqueue(skb, sch, &to_free);
			if (sch->q.qlen > 10)
				dcbt_next(sch);
		}
		kfree_skb_list(to_free);
		to_free = NULL;
		if (!ect) {
			dropped = c->drop[DCBT_EARLY];
			KUNIT_EXPECT_GT(test, dropped, 50);
			KUNIT_EXPECT_EQ(test, c->marks, 0);
		} else {
			KUNIT_EXPECT_EQ(test, c->drop[DCBT_EARLY], dropped);
			KUNIT_EXPECT_GT(test, c->marks, 50);
		}
		dcbt_emptied(sch);
	}
}

static struct kunit_case dcbt_law_cases[] = {
	KUNIT_CASE_PARAM(paqm_kunit_dcbt_vectors, dcbt_laws_gen_params),
	{}
};

static struct kunit_case dcbt_queue_cases[] = {
	KUNIT_CASE(paqm_kunit_dcbt_classes),
	KUNIT_CASE(paqm_kunit_dcbt_flow_key),
	KUNIT_CASE(paqm_kunit_dcbt_places),
	KUNIT_CASE(paqm_kunit_dcbt_order),
	KUNIT_CASE(paqm_kunit_dcbt_victims),
	KUNIT_CASE(paqm_kunit_dcbt_gate),
	KUNIT_CASE(paqm_kunit_dcbt_red_for_tcp),
	KUNIT_CASE(paqm_kunit_dcbt_fred),
	KUNIT_CASE(paqm_kunit_dcbt_ecn),
	{}
};

static struct kunit_suite dcbt_law_suite = {
	.name = "paqm_dcbt_laws",
	.test_cases = dcbt_law_cases,
};

static struct kunit_suite dcbt_queue_suite = {
	.name = "paqm_dcbt_queue",
	.test_cases = dcbt_queue_cases,
};

kunit_test_suites(&dcbt_law_suite, &dcbt_queue_suite);
