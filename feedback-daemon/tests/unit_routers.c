// SPDX-License-Identifier: GPL-2.0
/* The router table and the budgets of routers. See unit.h. */
#include "unit.h"

TEST(test_limits)
{
	struct engine_params p = engine_defaults;
	struct paqm_msg m = msg(1, 0, 0.9, 500000);
	unsigned int i;

	p.router = (struct bucket_limit){.per_s = 10, .burst = 5};
	p.flow = (struct bucket_limit){0};
	p.global = (struct bucket_limit){.per_s = 10, .burst = 7};
	begin(&p);
	/* what is not proven costs nothing */
	media[28 + 20] ^= 1;
	for (i = 0; i < 20; i++) {
		m.seq++;
		CHECK_EQ(say(&m, S), REFUSE_QUOTE_UNKNOWN);
	}
	media[28 + 20] ^= 1;
	for (i = 0; i < 5; i++) {
		m.seq++;
		CHECK_EQ(say(&m, S), REFUSE_NONE);
		CHECK_EQ(say(&m, S), REFUSE_SEQ_REPLAY); /* nor what is not new */
	}
	m.seq++;
	CHECK_EQ(say(&m, S), REFUSE_RATE_ROUTER);
	/* the refused message has not moved the sequence, and has not cost the others */
	m.router_id = 2;
	CHECK_EQ(say(&m, S), REFUSE_NONE);
	m.seq++;
	CHECK_EQ(say(&m, S), REFUSE_NONE);
	m.seq++;
	CHECK_EQ(say(&m, S), REFUSE_RATE_GLOBAL);
	m.router_id = 1;
	m.seq = 26;
	CHECK_EQ(say(&m, S + 100 * MS), REFUSE_NONE);

	/* one flow, too many routers */
	begin(NULL);
	for (i = 1; i <= ALLOW_ROUTERS; i++) {
		m = msg(i, 1, 0.9, 500000);
		CHECK_EQ(say(&m, S), REFUSE_NONE);
	}
	m = msg(100, 1, 0.9, 100000);
	CHECK_EQ(say(&m, S), REFUSE_ROUTERS_FULL);
	/* a silent one makes room */
	send_media(T_SPORT, T_SSRC, 2, 4 * S);
	engine_expire(&eng, &eng.flows[0], 4 * S);
	CHECK_EQ(say(&m, 4 * S), REFUSE_NONE);
	CHECK_EQ(eng.flows[0].rate.rate_bps, 100000);
}

/* A message of a router to each of the flows, within @spread. Return: how many were refused. */
static unsigned int tell_all(uint64_t router, unsigned int flows, uint32_t seq, uint64_t now,
			     uint64_t spread)
{
	struct paqm_msg m = msg(router, seq, 1, 500000);
	unsigned int i, refused = 0;

	for (i = 0; i < flows; i++) {
		uint64_t t = now + spread * i / flows;

		send_media((uint16_t)(1000 + i), 1, (uint16_t)seq, t);
		refused += say(&m, t) != REFUSE_NONE;
	}
	return refused;
}

TEST(test_router_budget)
{
	const unsigned int flows = 10000;
	struct paqm_msg m = msg(1, 0, 1, 500000);
	unsigned int i, believed = 0;
	uint64_t t;

	setup(NULL);
	for (i = 0; i < flows; i++)
		add(1 + i, (uint16_t)(1000 + i), 1);
	/* all flows behind one router, four rounds a second, told within 20 ms or all at once */
	for (i = 0; i < 20; i++)
		CHECK_EQ(tell_all(1, flows, 1 + i, S + i * 250 * MS, i % 2 * 20 * MS), 0);
	/* few flows, while much changes */
	for (i = 0; i < 40; i++)
		CHECK_EQ(tell_all(2, 500, 1 + i, 10 * S + i * 50 * MS, 20 * MS), 0);
	/* who says more than that does not take it from another */
	send_media(1000, 1, 1, 20 * S);
	for (i = 0; i < 100000; i++) {
		m.seq = 1000 + i;
		t = 20 * S + i * 10000ULL;
		believed += say(&m, t) == REFUSE_NONE;
	}
	CHECK(believed >= 1000 && believed <= 1600);
	CHECK_EQ(tell_all(3, 500, 1, 21 * S, 20 * MS), 0);
	/* not even with all flows behind him */
	CHECK_EQ(tell_all(1, flows, 200000, 22 * S, 200 * MS), 0);
	believed = 0;
	for (i = 0; i < 10 * flows; i++) {
		if (i % flows == 0)
			m.seq = 300000 + i;
		t = 22 * S + 200 * MS + i * 7000ULL;
		send_media((uint16_t)(1000 + i % flows), 1, 1, t);
		believed += say(&m, t) == REFUSE_NONE;
	}
	CHECK(believed <= 18000 + 700 * 45);
	CHECK_EQ(tell_all(3, 500, 2, 22 * S + 900 * MS, 20 * MS), 0);
}

/* 64 routers of a host: one more finds no room, until one has been silent for long. */
TEST(test_many_routers)
{
	struct flow *f = NULL;
	unsigned int i, n = 0;
	uint64_t now = S;

	setup(NULL);
	for (i = 0; i < ENGINE_ROUTERS / ALLOW_ROUTERS + 1; i++)
		f = add(1 + i, (uint16_t)(T_SPORT + 2 * i), 0);
	for (i = 0; i < ENGINE_ROUTERS; i++) {
		struct paqm_msg m = msg(1 + i, 1, 1.0, 500000);

		send_media((uint16_t)(T_SPORT + 2 * (i / ALLOW_ROUTERS)), 1, (uint16_t)i, now + i);
		CHECK_EQ(say(&m, now + i), REFUSE_NONE);
		n++;
	}
	send_media((uint16_t)(T_SPORT + 2 * (n / ALLOW_ROUTERS)), 1, 1, now + 100);
	{
		struct paqm_msg m = msg(1000, 1, 1.0, 500000);

		CHECK_EQ(say(&m, now + 100), REFUSE_ROUTERS_FULL);
		CHECK_EQ(f->accepted, 0);
		now += 31 * S;
		send_media((uint16_t)(T_SPORT + 2 * (n / ALLOW_ROUTERS)), 1, 2, now);
		CHECK_EQ(say(&m, now), REFUSE_NONE);
		CHECK_EQ(eng.routers[0].id, 1000); /* the one that was silent for longest */
	}
}
