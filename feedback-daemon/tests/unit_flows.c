// SPDX-License-Identifier: GPL-2.0
/* The flow table: registration, shares, reuse; IPv6. See unit.h. */
#include <errno.h>

#include "unit.h"

TEST(test_register)
{
	struct paqm_ipc_register r = t_reg(1, T_SPORT, 0);
	struct paqm_msg m = msg(1, 1, 1.0, 800000);
	struct flow *f = NULL, *g = NULL;
	unsigned int i;

	setup(NULL);
	CHECK_EQ(engine_register(&eng, 1, 0, &r, &f), 0);
	CHECK_EQ(engine_register(&eng, 2, 0, &r, &g), EEXIST);
	r.cookie = 2;
	CHECK_EQ(engine_register(&eng, 1, 0, &r, &g), EEXIST);
	memset(r.saddr, 0, 16); /* the wildcard overlaps */
	CHECK_EQ(engine_register(&eng, 1, 0, &r, &g), EEXIST);
	r.sport++;
	CHECK_EQ(engine_register(&eng, 2, 0, &r, &g), 0);
	send_media(T_SPORT + 1, 5, 1, S);
	CHECK_EQ(g->packets, 1);
	CHECK_EQ(say(&m, S), REFUSE_NONE);
	CHECK_EQ(g->rate.rate_bps, 800000);
	/* new limits for a known flow act at once and keep what routers said */
	r.ceil_bps = 400000;
	CHECK_EQ(engine_register(&eng, 2, 0, &r, &g), 0);
	CHECK_EQ(g->rate.rate_bps, 400000);
	r.ceil_bps = 5000000;
	r.floor_bps = 900000;
	CHECK_EQ(engine_register(&eng, 2, 0, &r, &g), 0);
	CHECK_EQ(g->rate.rate_bps, 900000);

	/* a flow that opens its source must not take another's packets */
	r = t_reg(4, T_SPORT, 0);
	t_v4(r.saddr, T_SADDR + 1);
	CHECK_EQ(engine_register(&eng, 2, 0, &r, &g), 0);
	memset(r.saddr, 0, 16);
	CHECK_EQ(engine_register(&eng, 2, 0, &r, &g), EEXIST);
	send_media(T_SPORT, 0, 1, S);
	CHECK_EQ(f->packets, 1);
	CHECK_EQ(g->packets, 0);
	engine_unregister(&eng, g);

#define NOT_TAKEN(error, ...)                                                                      \
	do {                                                                                       \
		r = t_reg(3, T_SPORT + 9, 0);                                                      \
		__VA_ARGS__;                                                                       \
		CHECK_EQ(engine_register(&eng, 1, 0, &r, &g), error);                              \
	} while (0)
	NOT_TAKEN(EAFNOSUPPORT, r.daddr[0] = 0x20); /* IPv4 to IPv6 */
	NOT_TAKEN(EINVAL, t_v4(r.daddr, 0));
	NOT_TAKEN(EINVAL, memset(r.saddr, 0, 16), memset(r.daddr, 0, 16));
	NOT_TAKEN(EINVAL, r.sport = 0);
	NOT_TAKEN(EINVAL, r.floor_bps = r.ceil_bps + 1);
	NOT_TAKEN(EINVAL, r.floor_bps = 0, r.ceil_bps = 0);
	NOT_TAKEN(EINVAL, r.floor_bps = 0, r.ceil_bps = UINT64_MAX);

	engine_unregister(&eng, f);
	CHECK(!engine_flow(&eng, 1, 1));
	for (i = 1; i < ENGINE_FLOWS; i++)
		add(100 + i, (uint16_t)(10000 + i), 0);
	r = t_reg(1000000, 999, 0);
	CHECK_EQ(engine_register(&eng, 1, 0, &r, &g), ENOSPC);
}

/* Tables and rings under change: whatever is registered is found, nothing else is. */
TEST(test_tables)
{
	static bool there[ENGINE_FLOWS];
	struct paqm_ipc_register r;
	uint32_t x = 12345, n = 0, i, k;
	struct flow *f;

	setup(NULL);
	memset(there, 0, sizeof(there));
	for (i = 0; i < 20000; i++) {
		x = x * 1664525 + 1013904223;
		k = (x >> 10) % (ENGINE_FLOWS + 0);
		f = engine_flow(&eng, 1 + k % 3, k);
		CHECK_EQ(!!f, there[k]);
		if (f && x >> 30) {
			engine_unregister(&eng, f);
			there[k] = false;
			n--;
			continue;
		}
		r = t_reg(k, (uint16_t)(1000 + k), 0);
		r.ceil_bps = 1000000 + i;
		if (k % 2)
			memset(r.saddr, 0, 16);
		CHECK_EQ(engine_register(&eng, 1 + k % 3, 0, &r, &f), 0);
		CHECK_EQ(f->ceil_bps, 1000000 + i);
		n += !there[k];
		there[k] = true;
		/* the other owner, the same packets */
		r.cookie = ~0ULL;
		CHECK_EQ(engine_register(&eng, 5, 0, &r, &f), EEXIST);
	}
	CHECK_EQ(eng.digests, n * RING_MIN);
	for (k = 0; k < ENGINE_FLOWS; k++) {
		uint64_t media_before = eng.media;

		send_media((uint16_t)(1000 + k), 1, 1, S);
		CHECK_EQ(eng.media, media_before + there[k]);
	}
	/* a ring that grows is counted, and freed with its flow */
	for (k = 0; !there[k]; k++)
		;
	f = engine_flow(&eng, 1 + k % 3, k);
	for (i = 0; i < 3 * RING_CAP; i++)
		send_media((uint16_t)(1000 + k), 1, (uint16_t)i, 2 * S);
	CHECK_EQ(f->ring.cap, RING_CAP);
	CHECK_EQ(eng.digests, (n - 1) * RING_MIN + RING_CAP);
	engine_unregister(&eng, f);
	CHECK_EQ(eng.digests, (n - 1) * RING_MIN);
}

/* Send @n packets of the flow from @sport, new ones each time. */
static void burst(uint16_t sport, unsigned int n, uint64_t now)
{
	static uint32_t ssrc;

	for (; n; n--)
		send_media(sport, ++ssrc, (uint16_t)n, now);
}

/* Nobody has more flows than he leaves to the others; who leaves gives back. */
TEST(test_shares)
{
	static const unsigned int have[] = {ENGINE_FLOWS / 2, ENGINE_FLOWS / 4, ENGINE_FLOWS / 8};
	struct paqm_ipc_register r;
	unsigned int uid, i, n = 0;
	struct flow *f;

	CHECK(share_has(0, 1, 63, 64) && !share_has(1, 1, 63, 64) && !share_has(0, 1, 64, 64));
	CHECK(share_has(31, 1, 31, 64) && !share_has(32, 1, 32, 64) && !share_has(0, 1, 9, 8));
	setup(NULL);
	for (uid = 1; uid <= 3; uid++) {
		for (i = 0; i < have[uid - 1]; i++) {
			r = t_reg(i, (uint16_t)(1000 + n++), 0);
			CHECK_EQ(engine_register(&eng, uid, uid, &r, &f), 0);
		}
		r = t_reg(i, (uint16_t)(1000 + n), 0);
		/* another client makes no other user */
		CHECK_EQ(engine_register(&eng, 10 + uid, uid, &r, &f), EDQUOT);
		CHECK_EQ(eng.not_taken[NOT_TAKEN_USER_FULL], uid);
		CHECK_EQ(engine_user(&eng, uid)->flows, have[uid - 1]);
	}
	/* new limits are no new flow */
	r = t_reg(0, 1000, 0);
	CHECK_EQ(engine_register(&eng, 1, 1, &r, &f), 0);
	engine_unregister(&eng, f);
	r.cookie = ENGINE_FLOWS;
	CHECK_EQ(engine_register(&eng, 2, 2, &r, &f), EDQUOT);
	CHECK_EQ(engine_register(&eng, 3, 3, &r, &f), 0);
	/* root has the rest */
	for (i = 0; n < ENGINE_FLOWS; i++) {
		r = t_reg(i, (uint16_t)(1000 + n++), 0);
		CHECK_EQ(engine_register(&eng, 9, 0, &r, &f), 0);
	}
	r = t_reg(i, (uint16_t)(1000 + n), 0);
	CHECK_EQ(engine_register(&eng, 9, 0, &r, &f), ENOSPC);
	CHECK_EQ(eng.not_taken[NOT_TAKEN_ALL_FULL], 1);
	r = t_reg(i, 1000, 0);
	CHECK_EQ(engine_register(&eng, 9, 0, &r, &f), EEXIST);
	r.ceil_bps = 0;
	CHECK_EQ(engine_register(&eng, 9, 0, &r, &f), EINVAL);
	CHECK_EQ(eng.not_taken[NOT_TAKEN_TAKEN], 1);
	CHECK_EQ(eng.not_taken[NOT_TAKEN_IMPOSSIBLE], 1);
	engine_free(&eng);
	CHECK(!engine_user(&eng, 0) && !engine_user(&eng, 1));
	CHECK_EQ(eng.used, 0);
	CHECK_EQ(eng.digests, 0);
}

static void told(void *data, struct flow *f)
{
	(void)data;
	(void)f;
}

/* The memory for digests: one user's burst leaves enough for the next, and is given back. */
TEST(test_digest_shares)
{
	enum { FLOWS = 400 };
	struct paqm_ipc_register r;
	struct paqm_msg m = msg(1, 1, 0.9, 500000);
	struct flow *f = NULL, *victim;
	uint32_t most = 0;
	unsigned int i;

	setup(NULL);
	for (i = 0; i < FLOWS; i++) {
		r = t_reg(i, (uint16_t)(1000 + i), 0);
		CHECK_EQ(engine_register(&eng, 1, 1001, &r, &f), 0);
	}
	r = t_reg(1, 5000, 0);
	CHECK_EQ(engine_register(&eng, 2, 1002, &r, &victim), 0);
	CHECK_EQ(engine_next(&eng), UINT64_MAX);
	for (i = 0; i < FLOWS; i++)
		burst((uint16_t)(1000 + i), 2 * RING_CAP, S);
	most = engine_user(&eng, 1001)->digests - FLOWS * RING_MIN;
	/* half, but for the ring that grew last */
	CHECK(most <= ENGINE_SPARE / 2 + RING_CAP / 4 && most > ENGINE_SPARE / 2 - RING_CAP);
	CHECK(eng.forgot[FORGOT_FLOW_FULL] && eng.forgot[FORGOT_USER_FULL]);
	CHECK_EQ(eng.forgot[FORGOT_NO_MEMORY], 0);
	CHECK_EQ(f->ring.cap, RING_MIN); /* nothing was left of the share */
	CHECK(f->ring.early > 0);

	/* the other user's packets are all remembered, and prove */
	send_media(5000, 7, 1, S);
	burst(5000, RING_CAP - 1, S);
	CHECK_EQ(victim->ring.cap, RING_CAP);
	CHECK_EQ(victim->ring.early, 0);
	t_media(media, 5000, 7, 1);
	CHECK_EQ(say(&m, 2 * S), REFUSE_NONE);

	/* what is old is given back, though nothing is sent any more */
	CHECK_EQ(engine_next(&eng), 2 * S);
	engine_expire_all(&eng, 2 * S, told, NULL);
	CHECK_EQ(victim->ring.cap, RING_CAP);
	CHECK_EQ(engine_next(&eng), 3 * S);
	engine_expire_all(&eng, 5 * S + 1, told, NULL);
	CHECK_EQ(eng.digests, (FLOWS + 1) * RING_MIN);
	CHECK_EQ(engine_user(&eng, 1001)->digests, FLOWS * RING_MIN);
	CHECK_EQ(eng.trim_ns, UINT64_MAX);
	/* and can be had again */
	burst(1000, RING_CAP, 6 * S);
	CHECK_EQ(eng.flows[0].ring.cap, RING_CAP);
	CHECK_EQ(engine_next(&eng), 7 * S);

	/* all of them together have no more than there is */
	setup(NULL);
	for (i = 0; i < 12 * FLOWS; i++) {
		r = t_reg(i, (uint16_t)(1000 + i), 0);
		CHECK_EQ(engine_register(&eng, 1, 1000 + i / FLOWS, &r, &f), 0);
	}
	for (i = 0; i < 12 * FLOWS; i++)
		burst((uint16_t)(1000 + i), 1000, S);
	most = eng.digests - eng.used * RING_MIN;
	CHECK(most <= ENGINE_SPARE && most > ENGINE_SPARE / 10 * 9);
}

TEST(test_ipv6)
{
	struct paqm_ipc_register r = t_reg(1, T_SPORT, T_SSRC);
	struct paqm_msg m = msg(1, 1, 0.9, 500000);
	uint8_t good[T_MESSAGE], p[T_MESSAGE], m6[T_MEDIA + 20];
	struct flow *f, *g;
	struct verdict v;
	uint32_t len, i;

	setup(NULL);
	t_v6(r.saddr, T_SADDR);
	t_v6(r.daddr, T_DADDR);
	CHECK_EQ(engine_register(&eng, 1, 0, &r, &f), 0);
	g = add(2, T_SPORT, T_SSRC); /* the same ports over IPv4 */
	t_media(m6, T_SPORT, T_SSRC, 1);
	CHECK_EQ(t_to6(m6, T_MEDIA), sizeof(m6));
	engine_media(&eng, m6, sizeof(m6), S);
	CHECK_EQ(f->packets, 1);
	CHECK_EQ(g->packets, 0);
	len = t_message(good, m6, &m);
	CHECK_EQ(deliver(good, len, S, &v), REFUSE_NONE);
	CHECK_EQ(f->rate.rate_bps, 500000);
	CHECK(!memcmp(f->rate.router, v.addr.b, 16) && !addr_is_v4(&v.addr));
	CHECK_EQ(deliver(good, len, S, NULL), REFUSE_SEQ_REPLAY);

	CHECK_EQ(deliver(good, 39, S, NULL), REFUSE_IP_CUT);
	CHECK_EQ(deliver(good, len - 1, S, &v), REFUSE_IP_CUT);
	for (i = 0; i < 256; i++) { /* nothing but ICMPv6 behind the header */
		memcpy(p, good, len);
		p[6] = (uint8_t)i;
		if (i != 58)
			CHECK_EQ(deliver(p, len, S, NULL), i == 44 ? REFUSE_IP_FRAGMENT
							   : i == 0 || i == 43 || i == 51 ||
									   i == 60 || i == 135 ||
									   i == 139 || i == 140
								   ? REFUSE_IP_OPTIONS
								   : REFUSE_IP_HEADER);
	}
	memcpy(p, good, len);
	p[39] ^= 1; /* another destination: the checksum knows */
	CHECK_EQ(deliver(p, len, S, NULL), REFUSE_MSG_CHECKSUM);
	CHECK_EQ(changed(good, len, 40, 101), REFUSE_MSG_TYPE);
	CHECK_EQ(changed(good, len, 48, 0x45), REFUSE_MSG_QUOTE); /* about IPv4 */
	m.seq++;
	m6[23] ^= 1; /* quoted source */
	CHECK_EQ(about(m6, &m), REFUSE_FLOW_UNKNOWN);
	m6[23] ^= 1;
	m6[48 + 20] ^= 1;
	CHECK_EQ(about(m6, &m), REFUSE_QUOTE_UNKNOWN);
	m6[48 + 20] ^= 1;
	m6[1] = 0xC0; /* traffic class, hop limit, checksum */
	m6[7] = 9;
	m6[46] ^= 0x55;
	CHECK_EQ(about(m6, &m), REFUSE_NONE);

	/* what leaves no digest */
	eng.media_ignored = 0;
	m6[6] = 44;
	engine_media(&eng, m6, sizeof(m6), S);
	m6[6] = 17;
	engine_media(&eng, m6, 47, S);
	engine_media(&eng, m6, 40 + 8 + 27, S);
	paqm_put16(m6 + 4, 7);
	engine_media(&eng, m6, sizeof(m6), S);
	paqm_put16(m6 + 4, 8 + T_PAYLOAD - 1);
	engine_media(&eng, m6, sizeof(m6), S);
	m6[0] = 0x55;
	engine_media(&eng, m6, sizeof(m6), S);
	CHECK_EQ(eng.media_ignored, 6);
	CHECK_EQ(f->packets, 1);

	/* several addresses of its own: whichever the route takes */
	r.cookie = 3;
	r.sport++;
	memset(r.saddr, 0, 16);
	CHECK_EQ(engine_register(&eng, 1, 0, &r, &g), 0);
	for (i = 0; i < 3; i++) {
		t_media(m6, T_SPORT + 1, T_SSRC, 1);
		t_to6(m6, T_MEDIA);
		m6[23] = (uint8_t)i;
		engine_media(&eng, m6, sizeof(m6), S);
		m = msg(1, i + 1, 0.9, 300000);
		CHECK_EQ(about(m6, &m), REFUSE_NONE);
	}
	CHECK_EQ(g->packets, 3);
}

/* A flow that takes a freed slot must not inherit proofs or allowances. */
TEST(test_reuse)
{
	struct paqm_msg m = msg(1, 1, 1.0, 800000);
	struct flow *f;

	f = begin(NULL);
	CHECK_EQ(say(&m, S), REFUSE_NONE);
	engine_unregister(&eng, f);
	CHECK_EQ(say(&m, S), REFUSE_FLOW_UNKNOWN);
	f = add(1, T_SPORT, T_SSRC);
	CHECK_EQ(f->rate.cause, PAQM_CAUSE_NONE);
	m.seq++;
	CHECK_EQ(say(&m, S), REFUSE_QUOTE_UNKNOWN);
}
