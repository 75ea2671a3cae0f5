// SPDX-License-Identifier: GPL-2.0
/* Allowances: vectors of the sender specification 9.4, windup, flaps, expiry. See unit.h. */
#include <math.h>
#include <stdlib.h>

#include "core/paqm_ecf.h"
#include "unit.h"

TEST(test_ecf_vectors)
{
	static const struct {
		char router;
		double v;
		uint64_t a, b, net;
	} row[] = {
		{'A', 1.0, 1000000, 1000000, 1000000},	{'B', 1.0, 1000000, 1000000, 1000000},
		{'A', 0.8, 800000, 1000000, 800000},	{'B', 0.6, 800000, 600000, 600000},
		{'A', 50000, 850000, 600000, 600000},	{'B', 30000, 850000, 630000, 630000},
		{'A', 0.5, 425000, 630000, 425000},	{'B', 1.0, 425000, 630000, 425000},
		{'A', 700000, 1000000, 630000, 630000}, {'B', 0.02, 1000000, 63000, 63000},
	};
	const uint64_t floors[] = {10000, 100000};
	size_t i, j;

	for (j = 0; j < 2; j++) {
		struct allow_set s = {0};

		for (i = 0; i < ROWS(row); i++) {
			/* each router counts for itself */
			struct paqm_msg m = msg((uint64_t)row[i].router, (uint32_t)i / 2, row[i].v,
						i < 2 ? 1000000 : 1);
			const struct allow *min;
			unsigned int n;
			uint64_t net, want = row[i].net < floors[j] ? floors[j] : row[i].net;

			CHECK_EQ(allow_order(&s, &m), ALLOW_NEWER);
			CHECK(allow_apply(&s, &m, &nowhere, floors[j], 1000000, ALLOW_USE_ECF,
					  i * 100 * MS, 4 * S));
			net = allow_min(&s, floors[j], 1000000, &min, &n);
			/* 0.8, 0.6, 0.02 are not exact in binary32: 1 bit/s of rounding */
			CHECK(net + 1 >= want && net <= want + 1);
			if (i < 1)
				continue;
			CHECK_EQ(n, 2);
			CHECK(s.slot[0].rate + 1 >= row[i].a && s.slot[0].rate <= row[i].a + 1);
			CHECK(s.slot[1].rate + 1 >= row[i].b && s.slot[1].rate <= row[i].b + 1);
		}
	}
}

TEST(test_erf_vectors)
{
	static const double rate[] = {700000, 450000, 900000};
	struct allow_set s = {0};
	const struct allow *min;
	unsigned int n, i;

	for (i = 0; i < 3; i++) {
		struct paqm_msg m = msg(i + 1, 1, 1.0, rate[i]);

		CHECK(allow_apply(&s, &m, &nowhere, 1000, 1000000000, ALLOW_USE_ERF, S, 4 * S));
	}
	CHECK_EQ(allow_min(&s, 1000, 1000000000, &min, &n), 450000);
	CHECK_EQ(min->msg.router_id, 2);
	CHECK_EQ(n, 3);
	CHECK_EQ(allow_min(&s, 1000, 400000, &min, &n), 400000);
	CHECK_EQ(allow_min(&s, 500000, 1000000, &min, &n), 500000);
	/* absolute rates have no memory: a higher one is simply taken */
	{
		struct paqm_msg m = msg(2, 2, 0.5, 800000);

		allow_apply(&s, &m, &nowhere, 1000, 1000000000, ALLOW_USE_ERF, S, 4 * S);
		CHECK_EQ(allow_min(&s, 1000, 1000000000, &min, &n), 700000);
	}
}

/* Noise of unit variance, the same each time. */
static double noise(void)
{
	static uint64_t state = 1;
	double sum = 0;
	int i;

	for (i = 0; i < 12; i++) {
		state ^= state >> 12;
		state ^= state << 25;
		state ^= state >> 27;
		sum += (double)((state * 0x2545F4914F6CDD1DULL) >> 11) / 9007199254740992.0;
	}
	return sum - 6;
}

#define LINKS 3
#define LONG 2
#define FLOWS (LONG + 2 * LINKS)

static bool crosses(int flow, int link)
{
	return flow < LONG || (flow - LONG) / 2 == link;
}

/*
 * Sender specification 3.1: three links of 10 Mbit/s at 95 %, two long flows over all of them,
 * two short ones over each, law ECF, periods of 0.5 s that do not coincide, rates that the
 * sources meet no better than @spread, queues at their targets. What a long flow and a short one
 * may send in the mean, Mbit/s.
 */
static void parking_lot(double spread, double *long_mbit, double *short_mbit)
{
	const uint64_t step = 50 * MS, floor = 10000, ceil = 10000000;
	struct paqm_outer_params p = {PAQM_Q24(75, 100),
				      PAQM_Q24(35, 100),
				      PAQM_Q24(1, 10),
				      10000,
				      1,
				      0,
				      0,
				      PAQM_Q24_ONE,
				      0};
	struct allow_set *set = calloc(FLOWS, sizeof(*set));
	struct paqm_ecf_vars v[LINKS] = {0};
	double carried[LINKS] = {0}, sum[FLOWS] = {0}, rate[FLOWS];
	const struct allow *min;
	unsigned int active;
	int i, k, n;

	for (n = 0; n < 8000; n++) {
		for (i = 0; i < FLOWS; i++) {
			uint64_t net = allow_min(&set[i], floor, ceil, &min, &active);

			if (n % 10 == 0) /* a group of pictures */
				rate[i] = (double)(net ? net : ceil / 4) *
					  fmax(0.1, 1 + spread * noise());
			if (n >= 2000)
				sum[i] += (double)net / 6000 / 1e6;
		}
		for (k = 0; k < LINKS; k++) {
			struct paqm_outer_in in = {.cap = 9500000,
						   .backlog = 20000,
						   .target = 20000,
						   .period_us = 500000,
						   .flows = 4};
			struct paqm_ecf_out out;
			double all = 0;

			for (i = 0; i < FLOWS; i++)
				all += crosses(i, k) ? rate[i] : 0;
			carried[k] += all / 10;
			if ((n + 3 * k) % 10) /* not yet its time */
				continue;
			in.rate = (paqm_u64)carried[k];
			carried[k] = 0;
			out = paqm_ecf_step(&v[k], &p, &in);
			for (i = 0; i < FLOWS; i++) {
				struct paqm_msg m =
					msg((uint64_t)k + 1, (uint32_t)(n / 10 + 1), 1, 0);

				m.ecf = out.value;
				if (crosses(i, k))
					allow_apply(&set[i], &m, &nowhere, floor, ceil,
						    ALLOW_USE_ECF, (uint64_t)n * step, 4 * S);
			}
		}
	}
	*long_mbit = (sum[0] + sum[1]) / LONG;
	*short_mbit = 0;
	for (i = LONG; i < FLOWS; i++)
		*short_mbit += sum[i] / (FLOWS - LONG);
	free(set);
}

TEST(test_parking_lot)
{
	static const struct {
		double spread, longs, shorts;
	} row[] = {{0, 2.41, 2.41}, {0.05, 2.40, 2.43}, {0.15, 2.35, 2.45}, {0.30, 2.26, 2.48}};
	size_t i;

	for (i = 0; i < ROWS(row); i++) {
		double longs, shorts;

		parking_lot(row[i].spread, &longs, &shorts);
		CHECK(longs / shorts >= 0.9);
		CHECK(fabs(longs - row[i].longs) < 0.06);
		CHECK(fabs(shorts - row[i].shorts) < 0.06);
	}
}

/* What is relative counts only after what came before it; else the absolute rate. */
TEST(test_heal)
{
	const uint64_t floor = 100000, ceil = 10000000;
	struct allow_set s = {0};
	struct paqm_msg m = msg(1, 1, 1e6, 2000000);
	uint64_t t = S;

#define SAY() allow_apply(&s, &m, &nowhere, floor, ceil, ALLOW_USE_ECF, t, 4 * S)->rate
	CHECK_EQ(SAY(), 2000000); /* relative to nothing */
	m.seq = 2;
	CHECK_EQ(SAY(), 3000000);
	m.seq = 4; /* 3 is lost: it may have said anything */
	CHECK_EQ(SAY(), 2000000);
	m.seq = 5;
	CHECK_EQ(SAY(), 3000000);
	m.boot++; /* a restarted router does not know what it allowed */
	m.seq = 1;
	CHECK_EQ(SAY(), 2000000);
	m.seq = 2;
	CHECK_EQ(SAY(), 3000000);
	m.seq = 3; /* nor do we after a silence */
	t += 3500 * MS;
	CHECK_EQ(SAY(), 2000000);
	m.seq = 0xFFFFFFFF; /* over the end */
	(void)SAY();
	m.seq = 0;
	CHECK_EQ(SAY(), 3000000);
	m.seq = 1; /* without an absolute rate there is nothing to heal with */
	m.rate = 0;
	t += 3500 * MS;
	CHECK_EQ(SAY(), ceil);
	m.seq = 2;
	m.ecf = t_f32(0.5);
	CHECK_EQ(SAY(), 5000000);
	m.seq = 3; /* with one, nobody is sent below it, but for a twentieth */
	m.rate = 4000000;
	CHECK(SAY() >= 3799999 && s.slot[0].rate <= 3800000);
	m.seq = 4;
	CHECK(SAY() >= 3799999 && s.slot[0].rate <= 3800000);
	m.seq = 5;
	m.rate = 1000000;
	CHECK(SAY() >= 1899999 && s.slot[0].rate <= 1900000);
#undef SAY
}

TEST(test_windup)
{
	const uint64_t floor = 100000, ceil = 10000000;
	struct allow_set s = {0};
	struct paqm_msg a = msg(1, 1, 1.0, 1e7), b = msg(2, 1, 1.0, 1e7);
	const struct allow *min;
	unsigned int n, i;

#define SAY(m) allow_apply(&s, &(m), &nowhere, floor, ceil, ALLOW_USE_ECF, S, 4 * S)->rate
	CHECK_EQ(SAY(a), ceil);
	CHECK_EQ(SAY(b), ceil);
	a.rate = 50000;
	b.rate = a.rate;
	a.seq++;
	a.ecf = t_f32(0.1);
	CHECK_EQ(SAY(a), 1000000);
	/* b has not seen more than a lets through: its 0.5 means half of at most 2 Mbit/s */
	b.seq++;
	b.ecf = t_f32(0.5);
	CHECK_EQ(SAY(b), 1000000);
	/* but never less than what it says is fair */
	b.seq++;
	b.ecf = t_f32(1e6);
	CHECK_EQ(SAY(b), 2000000);
	b.seq++;
	CHECK_EQ(SAY(b), 3000000);
	b.seq++;
	CHECK_EQ(SAY(b), 3000000);
	b.seq++;
	b.rate = 3000000;
	CHECK_EQ(SAY(b), 4000000);
	/* the floor does not wind up either: it is left as soon as there is room */
	a.ecf = t_f32(0.1);
	for (i = 0; i < 10; i++) {
		a.seq++;
		(void)SAY(a);
	}
	CHECK_EQ(allow_min(&s, floor, ceil, &min, &n), floor);
	a.seq++;
	a.ecf = t_f32(100000);
	CHECK(SAY(a) >= 150000);
#undef SAY
}

/* The published senders: the vectors again, and nothing that a message does not say. */
TEST(test_published)
{
	const uint64_t ceil = 1000000;
	struct allow_set s = {0};
	struct paqm_msg a = msg('A', 1, 0.8, 900000), b = msg('B', 1, 0.5, 900000);
	const struct allow *min;
	unsigned int n;

#define SAY(m) allow_apply(&s, &(m), &nowhere, 10000, ceil, ALLOW_USE_THESIS_ECF, S, 4 * S)->rate
	CHECK_EQ((SAY(a) + 5) / 10, 80000); /* of the ceiling; not the rate, and not 0.95 of it */
	CHECK_EQ(SAY(b), 500000);
	CHECK_EQ(allow_min(&s, 10000, ceil, &min, &n), 500000);
	a.seq = 4; /* two are lost, and stay so */
	CHECK_EQ((SAY(a) + 5) / 10, 64000);
	a.boot++;
	a.seq = 1;
	a.ecf = t_f32(50000);
	CHECK_EQ((SAY(a) + 5) / 10, 69000);
	a.seq = 2; /* it grows beside a router with less: no anti-windup */
	a.ecf = t_f32(1e6);
	b.seq = 2;
	b.ecf = t_f32(0.1);
	CHECK_EQ(SAY(b), 50000);
	CHECK_EQ(SAY(a), ceil);
	b.seq = 3; /* below the floor: it climbs from there */
	CHECK_EQ(SAY(b), 5000);
	CHECK_EQ(allow_min(&s, 10000, ceil, &min, &n), 10000);
	b.seq = 4;
	b.ecf = t_f32(2000);
	CHECK_EQ(SAY(b), 7000);
	CHECK_EQ(s.slot[1].use, ALLOW_USE_ECF);
	b.ecf = 0; /* of a router with another law */
	b.seq = 5;
	CHECK_EQ(SAY(b), 900000);
	CHECK_EQ(s.slot[1].use, ALLOW_USE_ERF);
#undef SAY
}

unsigned int flap(struct flow *f, uint64_t *now, unsigned int rounds, uint64_t gap, double low,
		  double high)
{
	static uint32_t seq;
	unsigned int rises = 0, i;
	uint64_t before;

	for (i = 0; i < rounds; i++) {
		struct paqm_msg m = msg(1, ++seq, 1.0, i & 1 ? high : low);

		*now += gap;
		before = f->rate.rate_bps;
		send_media(T_SPORT, T_SSRC, (uint16_t)seq, *now);
		CHECK_EQ(say(&m, *now), REFUSE_NONE);
		rises += before && f->rate.rate_bps >= before + before / 5;
		CHECK(f->rate.rate_bps <= (uint64_t)(i & 1 ? high : low) + 1);
	}
	return rises;
}

TEST(test_flapping)
{
	uint64_t now = S, t;
	struct flow *f;

	setup(NULL);
	f = add(1, T_SPORT, T_SSRC);
	/* 30 s of four changes a second: without damping 60 rises */
	CHECK(flap(f, &now, 120, 250 * MS, 200000, 800000) <= 14);
	CHECK(f->allow.damp.held);
	CHECK(f->rate.rate_bps >= 200000 && f->rate.rate_bps <= 230000);
	/* a fall counts at once also then */
	flap(f, &now, 1, 250 * MS, 100000, 0);
	CHECK_EQ(f->rate.rate_bps, 100000);
	/* a message of another device may be older than what was judged last: no time has passed */
	flap(f, &now, 1, 0, 800000, 0);
	now -= 250 * MS;
	t = f->rate.rate_bps;
	flap(f, &now, 1, 0, 800000, 0);
	CHECK_EQ(f->rate.rate_bps, t);
	now += 250 * MS;
	flap(f, &now, 1, 0, 100000, 0);
	/* for half a second it rises by an eighth in a quarter of a second, then as asked */
	t = now;
	while (f->rate.rate_bps < 800000 && now < t + 20 * S) {
		uint64_t before = f->rate.rate_bps;

		flap(f, &now, 1, 250 * MS, 800000, 0);
		if (now - t < 500 * MS)
			CHECK_EQ(f->rate.rate_bps, before + before / 8);
	}
	CHECK(now - t >= 500 * MS && now - t <= S);
	CHECK(f->allow.damp.held);
	/* quiet frees it: never more than 15 s later */
	while (f->allow.damp.held && now < t + 20 * S)
		flap(f, &now, 1, 250 * MS, 800000, 0);
	CHECK(now - t > S && now - t <= 15 * S);
	CHECK(!f->allow.damp.held);
	/* who was held before needs no second chance */
	CHECK(flap(f, &now, 4, 250 * MS, 200000, 800000) <= 1);
	CHECK(f->allow.damp.held);
	/* one every 0.7 s is held too, after some of them */
	now += 60 * S;
	CHECK(flap(f, &now, 200, 350 * MS, 200000, 800000) <= 40);
	/* but not what many flows make that join a link one after the other */
	now += 60 * S;
	CHECK_EQ(flap(f, &now, 19, 260 * MS, 400000, 800000), 10);
	CHECK(!f->allow.damp.held);

	/* changes that are no flaps pass as they are: small ones, seldom ones, stairs */
	setup(NULL);
	f = add(1, T_SPORT, T_SSRC);
	now = S;
	CHECK_EQ(flap(f, &now, 200, 250 * MS, 500000, 600000), 100);
	CHECK_EQ(flap(f, &now, 21, 8 * S, 200000, 800000), 10);
	CHECK_EQ(flap(f, &now, 1, 250 * MS, 900000, 0), 1);
}

/* A link that swings by itself: its router asks for little while the queue drains. */
TEST(test_flapping_drains)
{
	uint64_t now = S;
	unsigned int i;
	struct flow *f;

	setup(NULL);
	f = add(1, T_SPORT, T_SSRC);
	flap(f, &now, 22, 100 * MS, 200000, 800000);
	CHECK(f->allow.damp.held);
	/* one low in a second: it is at what the link has for nearly half of the time */
	for (i = 0; i < 10; i++) {
		flap(f, &now, 1, 100 * MS, 200000, 0);
		CHECK_EQ(f->rate.rate_bps, 200000);
		flap(f, &now, 4, 100 * MS, 800000, 800000);
		CHECK(f->rate.rate_bps < 250000);
		flap(f, &now, 4, 100 * MS, 800000, 800000);
		CHECK_EQ(f->rate.rate_bps, 800000);
	}
	CHECK(f->allow.damp.held);
	/* a high that is shorter than half a second does not count, a low between two messages
	 * does
	 */
	for (i = 0; i < 20; i++) {
		flap(f, &now, 1, 450 * MS, 200000, 0);
		flap(f, &now, 1, 20 * MS, 800000, 0);
		CHECK(f->rate.rate_bps < 250000);
	}
}

/* They follow a rate that flaps. */
TEST(test_flapping_published)
{
	struct engine_params p = engine_defaults;
	uint64_t now = S;
	struct flow *f;

	p.use = ALLOW_USE_THESIS_ERF;
	f = begin(&p);
	CHECK_EQ(flap(f, &now, 120, 250 * MS, 200000, 800000), 60);
	CHECK(!f->allow.damp.held);
}

static void count_told(void *data, struct flow *f)
{
	(void)f;
	++*(unsigned int *)data;
}

TEST(test_expiry)
{
	unsigned int told = 0;
	struct flow *f;
	struct paqm_msg a = msg(1, 1, 1.0, 300000), b = msg(2, 1, 1.0, 500000);
	struct paqm_msg slow = msg(3, 1, 1.0, 200000);

	setup(NULL);
	f = add(9, T_SPORT, T_SSRC);
	CHECK_EQ(f->rate.cause, PAQM_CAUSE_NONE);
	CHECK_EQ(f->rate.rate_bps, 0);
	CHECK_EQ(engine_next(&eng), UINT64_MAX);
	send_media(T_SPORT, T_SSRC, 1, 10 * S);
	CHECK_EQ(say(&a, 10 * S), REFUSE_NONE);
	CHECK_EQ(say(&b, 11 * S), REFUSE_NONE);
	CHECK_EQ(f->rate.rate_bps, 300000);
	CHECK_EQ(f->rate.routers, 2);
	CHECK_EQ(engine_next(&eng), 13 * S);
	CHECK(!engine_expire(&eng, f, 13 * S - 1));
	CHECK(engine_expire(&eng, f, 13 * S));
	CHECK_EQ(f->rate.rate_bps, 500000);
	CHECK_EQ(f->rate.cause, PAQM_CAUSE_ERF);
	CHECK_EQ(engine_next(&eng), 13 * S);
	engine_expire_all(&eng, 13 * S, count_told, &told);
	CHECK_EQ(told, 0); /* that one has been told */
	CHECK_EQ(engine_next(&eng), 14 * S);
	engine_expire_all(&eng, 14 * S - 1, count_told, &told);
	CHECK_EQ(told, 0);
	engine_expire_all(&eng, 14 * S, count_told, &told);
	CHECK_EQ(told, 1);
	CHECK_EQ(f->rate.rate_bps, 0);
	CHECK_EQ(f->rate.cause, PAQM_CAUSE_EXPIRED);
	CHECK_EQ(f->rate.routers, 0);
	/* the sequence is still known after expiry */
	send_media(T_SPORT, T_SSRC, 2, 15 * S);
	CHECK_EQ(say(&a, 15 * S), REFUSE_SEQ_REPLAY);
	a.seq++;
	CHECK_EQ(say(&a, 15 * S), REFUSE_NONE);
	CHECK_EQ(f->rate.rate_bps, 300000);
	/* three periods when that is longer than 3 s, but never more than 30 s */
	slow.period_ms = 2000;
	CHECK_EQ(say(&slow, 15 * S), REFUSE_NONE);
	engine_expire(&eng, f, 21 * S - 1);
	CHECK_EQ(f->rate.rate_bps, 200000);
	engine_expire(&eng, f, 21 * S);
	CHECK_EQ(f->rate.rate_bps, 0);
	slow.period_ms = 65535;
	slow.seq++;
	send_media(T_SPORT, T_SSRC, 3, 22 * S);
	CHECK_EQ(say(&slow, 22 * S), REFUSE_NONE);
	CHECK_EQ(f->rate.rate_bps, 200000);
	engine_expire(&eng, f, 52 * S);
	CHECK_EQ(f->rate.rate_bps, 0);
	/* all is forgotten in the end: no timer remains */
	engine_expire_all(&eng, 60 * S, count_told, &told);
	CHECK_EQ(engine_next(&eng), UINT64_MAX);
}

TEST(test_ecf_engine)
{
	struct engine_params p = engine_defaults;
	struct paqm_msg m = msg(1, 1, 0.5, 300000);
	struct flow *f;

	p.use = ALLOW_USE_ECF;
	f = begin(&p);
	CHECK_EQ(say(&m, S), REFUSE_NONE);
	CHECK_EQ(f->rate.rate_bps, 300000);
	CHECK_EQ(f->rate.cause, PAQM_CAUSE_ECF);
	m = msg(1, 2, 0.5, 100000);
	CHECK_EQ(say(&m, S), REFUSE_NONE);
	CHECK_EQ(f->rate.rate_bps, 150000);
	CHECK_EQ(say(&m, S), REFUSE_SEQ_REPLAY); /* it would have multiplied twice */
	CHECK_EQ(f->rate.rate_bps, 150000);
	m = msg(1, 3, 1e9, 300000);
	CHECK_EQ(say(&m, S), REFUSE_NONE);
	CHECK_EQ(f->rate.rate_bps, 1000000);
}
