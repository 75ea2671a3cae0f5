// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit suite of the deficit round robin: who is next is found in a few looks, whatever queues owe,
 * and is who it would be if every round were gone through.
 */
#include <kunit/test.h>
#include <linux/prandom.h>
#include "../paqm_drr.c"
#include "../paqm_isolate.h"

#define PAQM_ROUND_QUEUES 6

static struct paqm_flowq paqm_fqs[2 * PAQM_ROUND_QUEUES]; /* and of the round robin to compare */
static struct sk_buff paqm_waits; /* that a queue has a packet is all that is looked at */
static u32 paqm_looks;

static bool paqm_is_held(struct paqm_sched_data *q, struct paqm_flowq *fq)
{
	paqm_looks++;
	return fq->gated;
}

static struct paqm_sched_data *paqm_round_of(struct kunit *test, u32 quantum)
{
	struct paqm_sched_data *q = kunit_kzalloc(test, sizeof(*q), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, q);
	INIT_LIST_HEAD(&q->drr[PAQM_MEDIA].fresh);
	INIT_LIST_HEAD(&q->drr[PAQM_MEDIA].old);
	q->drr[PAQM_MEDIA].quantum = quantum;
	return q;
}

static void paqm_queue_of(struct paqm_sched_data *q, struct paqm_flowq *fq, s32 deficit, bool held)
{
	*fq = (struct paqm_flowq){ .head = &paqm_waits, .gated = held };
	paqm_drr_join(&q->drr[PAQM_MEDIA], fq, &q->drr[PAQM_MEDIA].old, 0);
	fq->deficit = deficit;
	q->drr[PAQM_MEDIA].busy++;
}

/* A large GSO packet of a stranger, whose turn is a sixteenth, beside a queue that has to wait. */
static void paqm_kunit_debt(struct kunit *test)
{
	struct paqm_sched_data *q = paqm_round_of(test, 1514);
	struct paqm_flowq *next;
	struct list_head *from;

	q->strangers_served = 16;
	q->strangers_busy = 1;
	paqm_queue_of(q, &paqm_fqs[0], -65000, false);
	paqm_fqs[0].strangers = true;
	paqm_fqs[0].part = true;
	paqm_queue_of(q, &paqm_fqs[1], 1000, true);
	paqm_looks = 0;
	KUNIT_ASSERT_TRUE(test, paqm_drr_next(q, PAQM_MEDIA, paqm_is_held, &from, &next));
	KUNIT_EXPECT_PTR_EQ(test, next, &paqm_fqs[0]);
	KUNIT_EXPECT_EQ(test, paqm_fqs[0].deficit, -65000 + 692 * (1514 / 16));
	KUNIT_EXPECT_EQ(test, paqm_fqs[1].deficit, 1000);
	KUNIT_EXPECT_LE(test, paqm_looks, 12);
	/* all are held back */
	paqm_fqs[0].gated = 1;
	KUNIT_EXPECT_FALSE(test, paqm_drr_next(q, PAQM_MEDIA, paqm_is_held, &from, &next));
}

/* Three flows of a host that is equal to others have one turn together; one has nothing to send. */
static void paqm_kunit_siblings(struct kunit *test)
{
	struct paqm_sched_data *q = paqm_round_of(test, 1514);
	struct paqm_flowq *next;
	struct list_head *from;
	u32 turn, i, sent[3] = {};

	q->hosts = kunit_kzalloc(test, sizeof(*q->hosts), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, q->hosts);
	q->hosts->over[6].served = 3;
	for (i = 0; i < 3; i++) {
		paqm_queue_of(q, &paqm_fqs[i], 0, false);
		paqm_fqs[i].part = i < 2;
		paqm_fqs[i].host = i < 2 ? 7 : 0;
	}
	for (turn = 0; turn < 5000; turn++) {
		KUNIT_ASSERT_TRUE(test, paqm_drr_next(q, PAQM_MEDIA, paqm_is_held, &from, &next));
		next->deficit -= 1000;
		sent[next - paqm_fqs]++;
	}
	for (i = 0; i < 2; i++) {
		KUNIT_EXPECT_GE(test, sent[i], 995U);
		KUNIT_EXPECT_LE(test, sent[i], 1005U);
	}
}

/* Round by round. */
static struct paqm_flowq *paqm_plain_next(struct paqm_sched_data *q)
{
	struct paqm_round *r = &q->drr[PAQM_MEDIA];
	struct paqm_flowq *fq;
	u32 held = 0;

	for (;;) {
		fq = list_first_entry(&r->old, struct paqm_flowq, list);
		if (!fq->gated && fq->deficit > 0)
			return fq;
		held = fq->gated ? held + 1 : 0;
		if (held > PAQM_ROUND_QUEUES)
			return NULL;
		if (!fq->gated)
			fq->deficit += r->quantum;
		list_move_tail(&fq->list, &r->old);
	}
}

static void paqm_kunit_rounds(struct kunit *test)
{
	struct paqm_flowq *mine, *plain;
	struct list_head *from;
	struct rnd_state rnd;
	u32 n, i, turn;

	prandom_seed_state(&rnd, 7);
	for (n = 0; n < 2000; n++) {
		u32 quantum = 1 + prandom_u32_state(&rnd) % 2000, holds = prandom_u32_state(&rnd);
		struct paqm_sched_data *q = paqm_round_of(test, quantum);
		struct paqm_sched_data *other = paqm_round_of(test, quantum);
		u32 owed = n & 1 ? 4000 : 100000;

		for (i = 0; i < PAQM_ROUND_QUEUES; i++) {
			s32 deficit = 2000 - (s32)(prandom_u32_state(&rnd) % owed);
			bool held = holds >> i & 1;

			paqm_queue_of(q, &paqm_fqs[i], deficit, held);
			paqm_queue_of(other, &paqm_fqs[PAQM_ROUND_QUEUES + i], deficit, held);
		}
		for (turn = 0; turn < 20; turn++) {
			u32 len = 1 + prandom_u32_state(&rnd) % (turn % 5 ? 1500 : 65535);

			paqm_looks = 0;
			if (!paqm_drr_next(q, PAQM_MEDIA, paqm_is_held, &from, &mine))
				mine = NULL;
			plain = paqm_plain_next(other);
			KUNIT_EXPECT_LE(test, paqm_looks, 6 * PAQM_ROUND_QUEUES);
			KUNIT_ASSERT_EQ(test, !mine, !plain);
			if (!mine)
				break;
			KUNIT_ASSERT_PTR_EQ(test, mine + PAQM_ROUND_QUEUES, plain);
			KUNIT_ASSERT_EQ(test, mine->deficit, plain->deficit);
			mine->deficit -= len;
			plain->deficit -= len;
		}
		kunit_kfree(test, q);
		kunit_kfree(test, other);
	}
}

/* Hashes of elastic flows use all queues that there are for these. */
static void paqm_kunit_bulk(struct kunit *test)
{
	struct paqm_sched_data *q = paqm_round_of(test, 1514);
	u32 queues = PAQM_OVER_QUEUES + PAQM_BULK_QUEUES, used = 0, n;

	q->flowq = kunit_kcalloc(test, queues, sizeof(*q->flowq), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, q->flowq);
	for (n = 0; n < PAQM_BULK_QUEUES; n++)
		paqm_bulk_of(q, paqm_flow_tag((u64)n << 33 | PAQM_HASH_SET))->in = 1;
	for (n = PAQM_OVER_QUEUES; n < queues; n++)
		used += q->flowq[n].in;
	KUNIT_EXPECT_EQ(test, used, PAQM_BULK_QUEUES);
}

/*
 * An overflow queue that stands waits for what was in the common queue before, but not again when
 * 2^31 packets have gone through that.
 */
static void paqm_kunit_behind(struct kunit *test)
{
	struct paqm_sched_data *q = paqm_round_of(test, 1514);
	u64 *out = &q->queue[PAQM_MEDIA].st.sent_packets;
	u32 behind, step;

	*out = U32_MAX - 1;
	behind = paqm_common_out(q) + 3;
	for (step = 0; step < 3; step++) {
		KUNIT_EXPECT_TRUE(test, paqm_common_first(q, &behind));
		(*out)++;
	}
	for (step = 0; step < 16; step++) {
		KUNIT_EXPECT_FALSE(test, paqm_common_first(q, &behind));
		*out += 1U << 29;
	}
}

/* Those that wait for the common queue do so for what was there before each of them. */
static void paqm_kunit_waits(struct kunit *test)
{
	struct paqm_sched_data *q = paqm_round_of(test, 1514);
	u64 *out = &q->queue[PAQM_MEDIA].st.sent_packets;
	struct paqm_flowq *over = paqm_fqs;
	u32 n;

	INIT_LIST_HEAD(&q->over_waiting);
	KUNIT_EXPECT_EQ(test, paqm_over_waits(q), 0);
	for (n = 0; n < 3; n++) {
		over[n].behind = paqm_common_out(q) + 2 * n + 1;
		over[n].waits_whole = n != 1;
		list_add_tail(&over[n].waits, &q->over_waiting);
	}
	q->over_waits = 3;
	q->over_waits_whole = 2;
	KUNIT_EXPECT_EQ(test, paqm_over_waits(q), 3);
	(*out)++;
	KUNIT_EXPECT_EQ(test, paqm_over_waits(q), 2);
	KUNIT_EXPECT_EQ(test, q->over_waits_whole, 1);
	(*out)++;
	KUNIT_EXPECT_EQ(test, paqm_over_waits(q), 2);
	(*out)++;
	KUNIT_EXPECT_EQ(test, paqm_over_waits(q), 1);
	KUNIT_EXPECT_EQ(test, q->over_waits_whole, 1);
	*out += 2;
	KUNIT_EXPECT_EQ(test, paqm_over_waits(q), 0);
	KUNIT_EXPECT_EQ(test, q->over_waits_whole, 0);
	KUNIT_EXPECT_TRUE(test, list_empty(&over[2].waits));
}

/* The common queue has the rest, and what those have that wait for it; it is less ahead of few. */
static void paqm_kunit_common(struct kunit *test)
{
	struct paqm_sched_data *q = paqm_round_of(test, 1514);

	INIT_LIST_HEAD(&q->over_waiting);
	q->over_part = PAQM_Q16_ONE / 100;
	q->drr[PAQM_MEDIA].busy = 2;
	q->sched.credit = 312500;
	q->inside.share_q16 = paqm_common_share(q);
	KUNIT_EXPECT_EQ(test, q->inside.share_q16, PAQM_Q16_ONE - 2 * q->over_part);
	q->inside.lead = 300000LL << 16;
	KUNIT_EXPECT_EQ(test, paqm_common_credit(q), 312500ULL * 8 * 2 * q->over_part >> 16);
	KUNIT_EXPECT_EQ(test, q->inside.lead >> 16, 312500ULL * 8 * 2 * q->over_part >> 16);

	paqm_fqs[0] = (struct paqm_flowq){ .behind = paqm_common_out(q) + 1, .waits_whole = true };
	list_add_tail(&paqm_fqs[0].waits, &q->over_waiting);
	q->over_waits = 1;
	q->over_waits_whole = 1;
	q->inside.share_q16 = paqm_common_share(q);
	KUNIT_EXPECT_EQ(test, q->inside.share_q16, PAQM_Q16_ONE - q->over_part);
	q->drr[PAQM_MEDIA].busy = 1;
	q->inside.share_q16 = paqm_common_share(q);
	KUNIT_EXPECT_EQ(test, q->inside.share_q16, PAQM_Q16_ONE);
	KUNIT_EXPECT_EQ(test, paqm_common_credit(q), 312500);

	q->drr[PAQM_MEDIA].busy = 20; /* as of a few flows on a link */
	q->inside.share_q16 = paqm_common_share(q);
	KUNIT_EXPECT_EQ(test, paqm_common_credit(q), 312500);
	q->drr[PAQM_MEDIA].busy = 2;
	q->sched.credit = 10000; /* on a slow one: some packets */
	q->inside.share_q16 = paqm_common_share(q);
	KUNIT_EXPECT_EQ(test, paqm_common_credit(q), 4 * 1514);
}

static struct kunit_case paqm_rounds_cases[] = {
	KUNIT_CASE(paqm_kunit_behind),
	KUNIT_CASE(paqm_kunit_waits),
	KUNIT_CASE(paqm_kunit_common),
	KUNIT_CASE(paqm_kunit_bulk),
	KUNIT_CASE(paqm_kunit_debt),
	KUNIT_CASE(paqm_kunit_siblings),
	KUNIT_CASE(paqm_kunit_rounds),
	{}
};

static struct kunit_suite paqm_rounds_suite = {
	.name = "paqm_rounds",
	.test_cases = paqm_rounds_cases,
};
kunit_test_suite(paqm_rounds_suite);
