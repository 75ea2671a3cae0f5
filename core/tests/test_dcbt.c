/* SPDX-License-Identifier: GPL-2.0 */
/*
 * User-space run of the vectors of RED, FRED, CBT, D-CBT and ChIPS, and what needs floating point
 * or many random numbers: the laws against their textbook forms in double precision, the table of
 * flows and the virtual queue against plain models.
 */
#include <stdlib.h>
#include <string.h>

#include "check.h"

static void near_int(int line, const char *what, unsigned long long got, unsigned long long want,
		     unsigned long long tol)
{
	check_that((got > want ? got - want : want - got) <= tol, __FILE__, line,
		   "%s: got %llu, want %llu +-%llu", what, got, want, tol);
}

#define PAQM_NEAR(what, got, want, tol)                                                            \
	near_int(__LINE__, what, (unsigned long long)(got), (unsigned long long)(want), tol)

#include "dcbt_vectors.h"

static paqm_u32 state = 1;

static double real(paqm_u64 packets)
{
	return (double)packets / (double)PAQM_RED_PACKET;
}

TEST(test_average_random)
{
	double want = 0, w = (double)PAQM_W / PAQM_Q24_ONE;
	paqm_u64 avg = 0;
	int i;

	for (i = 0; i < 100000; i++) {
		paqm_u32 len = paqm_vec_random(&state) % 60, idle = paqm_vec_random(&state) % 3000;

		avg = paqm_red_average(avg, len, PAQM_W);
		want += w * (len - want);
		if (i % 1000 == 0) {
			avg = paqm_red_decay(avg, PAQM_W, idle);
			want *= pow(1 - w, idle);
		}
		near("average", real(avg), want, 1e-4);
	}
}

/* The mean distance of drops is that of the published spacing: 1.5/p and 1/(2p). */
TEST(test_spacing)
{
	struct paqm_red_params p = paqm_vec_red();
	int uniform, i;

	for (uniform = 0; uniform < 2; uniform++) {
		struct paqm_red_vars v;
		double drops = 0;

		p.uniform = (paqm_u8)uniform;
		paqm_red_start(&v, &p, 0);
		v.avg = 10 * PAQM_RED_PACKET;
		for (i = 0; i < 400000; i++)
			drops += paqm_red_test(&v, &p, 10, paqm_vec_random(&state) << 8) !=
				 PAQM_RED_PASS;
		near("packets between drops, in 1/p", i / drops * 0.05, uniform ? 0.525 : 1.5,
		     0.03);
	}
}

/* D-CBT as one loop: classes that offer far more than their share are held to it. */
TEST(test_proportion)
{
	static const paqm_u32 flows[PAQM_CBT_CLASSES] = {25, 10, 2};
	struct paqm_red_params p = paqm_vec_red();
	paqm_u64 avg[PAQM_CBT_CLASSES] = {0}, red = 0;
	double left[PAQM_CBT_CLASSES] = {0}, all = 0;
	paqm_u32 held[PAQM_CBT_CLASSES] = {0};
	paqm_u8 fifo[64];
	int len = 0, i;

	for (i = 0; i < 2000000; i++) {
		/* TCP keeps the queue at about ten, untagged UDP offers two fifths of the link */
		enum paqm_cbt_class c = PAQM_CBT_TCP;
		paqm_u32 dice = paqm_vec_random(&state) % 100;
		int joins;

		if (dice < 28)
			c = PAQM_CBT_UNTAGGED;
		joins = c == PAQM_CBT_UNTAGGED || len < 10;
		if (joins) {
			paqm_dcbt_average(&red, avg, (paqm_u32)len, held, PAQM_W);
			if (paqm_dcbt_gate(&p, red) &&
			    paqm_cbt_over(avg[c], paqm_dcbt_threshold(&p, PAQM_Q24(1, 10), 0, c,
								      red, flows)))
				joins = 0;
		}
		if (joins && len < 60) {
			fifo[len++] = c;
			held[c]++;
		}
		if (len && i % 10 < 7) {
			c = fifo[0];
			memmove(fifo, fifo + 1, (size_t)--len);
			held[c]--;
			if (i > 200000) {
				left[c]++;
				all++;
			}
		}
	}
	/* 6 packets of a queue of 10, times 2 of 37 flows */
	near("part of the link", left[PAQM_CBT_UNTAGGED] / all, 6 / real(red) * 2 / 37, 0.004);
	near("part of the average", real(avg[PAQM_CBT_UNTAGGED]), 6.0 * 2 / 37, 0.03);
}

/* The table against a plain list of what was seen when. */
TEST(test_active_random)
{
	enum { SLOTS = 32, KEYS = 64 };
	static struct paqm_active_flow flow[SLOTS];
	static paqm_u32 bucket[16];
	struct paqm_active t = {.flow = flow, .bucket = bucket, .slots = SLOTS, .mask = 15};
	paqm_u64 seen[KEYS] = {0}, now = 1000, missed = 0, swept = now;
	int class[KEYS], used = 0, i, c;

	paqm_active_clear(&t, now);
	for (i = 0; i < 200000; i++) {
		paqm_u32 key = paqm_vec_random(&state) % KEYS, had = 0, count[3] = {0}, k;

		now += paqm_vec_random(&state) % 20;
		if (paqm_vec_random(&state) % 16 == 0 && seen[key]) {
			paqm_active_remove(&t, paqm_active_find(&t, key));
			seen[key] = 0;
			used--;
		} else {
			had = paqm_active_touch(&t, key, key % 3, now) != PAQM_ACTIVE_NONE;
			CHECK_EQ(had, seen[key] || used < SLOTS);
			missed += !had;
			used += had && !seen[key];
			if (had) {
				seen[key] = now;
				class[key] = (int)(key % 3);
			}
		}
		paqm_active_sweep(&t, now, 300);
		if (now - swept >= 300) {
			swept = now;
			for (k = 0; k < KEYS; k++)
				if (seen[k] && now - seen[k] > 300) {
					seen[k] = 0;
					used--;
				}
		}
		for (k = 0; k < KEYS; k++) {
			if (seen[k])
				count[class[k]]++;
			CHECK_EQ(paqm_active_find(&t, k) != PAQM_ACTIVE_NONE, seen[k] != 0);
		}
		for (c = 0; c < 3; c++)
			CHECK_EQ(t.count[c], count[c]);
	}
	CHECK_EQ(t.missed, missed);
	CHECK(missed > 100);
}

/* Labels are as many as packets, and tagged ones never fewer, whatever is dropped or cuts in. */
TEST(test_labels_random)
{
	static paqm_u8 label[16];
	struct paqm_labels l = {.label = label, .mask = 15};
	paqm_u8 line[16];
	int i;

	paqm_labels_clear(&l);
	for (i = 0; i < 300000; i++) {
		paqm_u32 dice = paqm_vec_random(&state) % 8, at, n;
		enum paqm_cbt_class c = paqm_vec_random(&state) % 3;

		if (dice < 4 && l.len < 16) {
			at = c == PAQM_CBT_TAGGED ? paqm_vec_random(&state) % (l.len + 1) : l.len;
			memmove(line + at + 1, line + at, l.len - at);
			line[at] = (paqm_u8)c;
			paqm_labels_push(&l, c);
		} else if (dice < 7 && l.len) {
			paqm_labels_pop(&l);
			memmove(line, line + 1, l.len);
		} else if (l.len) {
			at = paqm_vec_random(&state) % l.len;
			c = line[at];
			paqm_labels_remove(&l, c);
			memmove(line + at, line + at + 1, l.len - at);
		}
		CHECK_EQ(l.held[0] + l.held[1] + l.held[2], l.len);
		for (n = 0, at = 0; at < l.len; at++)
			n += label[(l.head + at) & l.mask] == PAQM_CBT_TAGGED;
		CHECK_EQ(l.held[PAQM_CBT_TAGGED], n);
	}
}

TEST(test_dcbt_vectors)
{
	paqm_check_red_average();
	paqm_check_red_curve();
	paqm_check_red_test();
	paqm_check_red_adaptive();
	paqm_check_fred();
	paqm_check_thresholds();
	paqm_check_joint_average();
	paqm_check_unsynchronised();
	paqm_check_active();
	paqm_check_chips();
}

CHECK_MAIN
