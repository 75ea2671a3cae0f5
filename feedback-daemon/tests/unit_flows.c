// SPDX-License-Identifier: GPL-2.0
/* Flows and tables: limits, registration, reuse, IPv6, many routers. See unit.h. */
#include <errno.h>

#include "feedback-daemon/batch.h"
#include "unit.h"

void test_limits(void)
{
	struct engine_params p = engine_defaults;
	struct paqm_msg m = msg(1, 0, 0.9, 500000);
	unsigned int i;

	p.router = (struct bucket_limit){.per_s = 10, .burst = 5};
	p.flow = (struct bucket_limit){0};
	p.global = (struct bucket_limit){.per_s = 10, .burst = 7};
	setup(&p);
	add(1, T_SPORT, T_SSRC);
	send_media(T_SPORT, T_SSRC, 1, S);
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
	setup(NULL);
	add(1, T_SPORT, T_SSRC);
	send_media(T_SPORT, T_SSRC, 1, S);
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

void test_router_budget(void)
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

void test_ecf_engine(void)
{
	struct engine_params p = engine_defaults;
	struct paqm_msg m = msg(1, 1, 0.5, 300000);
	struct flow *f;

	p.use = ALLOW_USE_ECF;
	setup(&p);
	f = add(1, T_SPORT, T_SSRC);
	send_media(T_SPORT, T_SSRC, 1, S);
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

void test_register(void)
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

	r = t_reg(3, T_SPORT + 9, 0);
	r.daddr[0] = 0x20; /* IPv4 to IPv6 */
	CHECK_EQ(engine_register(&eng, 1, 0, &r, &g), EAFNOSUPPORT);
	r = t_reg(3, T_SPORT + 9, 0);
	t_v4(r.daddr, 0);
	CHECK_EQ(engine_register(&eng, 1, 0, &r, &g), EINVAL);
	memset(r.daddr, 0, 16);
	memset(r.saddr, 0, 16);
	CHECK_EQ(engine_register(&eng, 1, 0, &r, &g), EINVAL);
	r = t_reg(3, 0, 0);
	CHECK_EQ(engine_register(&eng, 1, 0, &r, &g), EINVAL);
	r = t_reg(3, T_SPORT + 9, 0);
	r.floor_bps = r.ceil_bps + 1;
	CHECK_EQ(engine_register(&eng, 1, 0, &r, &g), EINVAL);
	r.floor_bps = 0;
	r.ceil_bps = 0;
	CHECK_EQ(engine_register(&eng, 1, 0, &r, &g), EINVAL);
	r.ceil_bps = UINT64_MAX;
	CHECK_EQ(engine_register(&eng, 1, 0, &r, &g), EINVAL);

	engine_unregister(&eng, f);
	CHECK(!engine_flow(&eng, 1, 1));
	for (i = 1; i < ENGINE_FLOWS; i++)
		add(100 + i, (uint16_t)(10000 + i), 0);
	r = t_reg(1000000, 999, 0);
	CHECK_EQ(engine_register(&eng, 1, 0, &r, &g), ENOSPC);
}

/* Tables and rings under change: whatever is registered is found, nothing else is. */
void test_tables(void)
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
void test_shares(void)
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
void test_digest_shares(void)
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

struct parts {
	unsigned int n;
	uint32_t len[BATCH_SEGMENTS];
	uint8_t ip[BATCH_SEGMENTS][T_MEDIA + 200];
};

static void part(void *data, const uint8_t *head, uint32_t head_len, const uint8_t *payload,
		 uint32_t len)
{
	struct parts *p = data;

	CHECK(p->n < BATCH_SEGMENTS);
	if (head_len + len > sizeof(p->ip[0])) /* one that is no batch */
		len = (uint32_t)sizeof(p->ip[0]) - head_len;
	memcpy(p->ip[p->n], head, head_len);
	memcpy(p->ip[p->n] + head_len, payload, len);
	p->len[p->n++] = head_len + len;
}

/* What segmentation offload makes of a batch is what the flow has sent. */
void test_batch(void)
{
	static struct parts p;
	static uint8_t ip[65536];
	uint32_t segments, last, seq, size = T_PAYLOAD, total;
	struct flow *f;

	for (segments = 1; segments <= 130; segments += segments < 4 ? 1 : 42) {
		for (last = 14; last <= size; last += 13) {
			setup(NULL);
			f = add(1, T_SPORT, T_SSRC);
			for (seq = 0; seq < segments; seq++) {
				t_media(media, T_SPORT, T_SSRC, (uint16_t)(65500 + seq));
				if (!seq)
					memcpy(ip, media, 28);
				memcpy(ip + 28 + seq * size, media + 28, size);
			}
			total = 28 + (segments - 1) * size + last;
			paqm_put16(ip + 2, (uint16_t)total);
			paqm_put16(ip + 24, (uint16_t)(total - 20));
			p.n = 0;
			batch_split(ip, total, part, &p);
			if (segments == 1 || segments > BATCH_SEGMENTS) {
				CHECK_EQ(p.n, 1); /* no batch of this kernel's */
				continue;
			}
			CHECK_EQ(p.n, segments);
			for (seq = 0; seq < p.n; seq++) {
				CHECK_EQ(p.len[seq], seq < p.n - 1 ? T_MEDIA : 28 + last);
				engine_media(&eng, p.ip[seq], p.len[seq], S);
			}
			CHECK_EQ(f->packets, last >= 28 ? segments : segments - 1);
			/* each proves, as it is alone */
			for (seq = 0; seq < segments - 1; seq++) {
				struct paqm_msg m = msg(1, 1 + seq, 0, 500000);

				t_media(media, T_SPORT, T_SSRC, (uint16_t)(65500 + seq));
				CHECK_EQ(say(&m, S), REFUSE_NONE);
			}
		}
	}
	/* another source or a gap is no segment; a jumbo packet is one packet */
	t_media(media, T_SPORT, T_SSRC, 1);
	memcpy(ip, media, T_MEDIA);
	t_media(media, T_SPORT, T_SSRC + 1, 2);
	memcpy(ip + T_MEDIA, media + 28, size);
	CHECK_EQ(batch_segment(ip + 28, 2 * size), 2 * size);
	t_media(media, T_SPORT, T_SSRC, 3);
	memcpy(ip + T_MEDIA, media + 28, size);
	CHECK_EQ(batch_segment(ip + 28, 2 * size), 2 * size);
	t_media(media, T_SPORT, T_SSRC, 2);
	memcpy(ip + T_MEDIA, media + 28, size);
	CHECK_EQ(batch_segment(ip + 28, 2 * size), size);
}

static enum owner whose;
static struct owner_ends asked;
static unsigned int looks;

static enum owner look(const struct owner_ends *p, uint32_t uid)
{
	CHECK_EQ(uid, 1000);
	asked = *p;
	looks++;
	return whose;
}

/* Where the source is left open a packet counts if it is from a socket of the flow's user. */
void test_owner(void)
{
	/* as a kernel shows them, on a little-endian machine; of 10.0.1.2, open, and connected */
	static const char table[] = "  sl  local_address rem_address   st tx_queue rx_queue tr "
				    "tm->when retrnsmt   uid\n"
				    "  1: 0201000A:138C 00000000:0000 07 00000000:00000000 "
				    "00:00000000 00000000  1000 0\n"
				    "  2: 00000000:138D 00000000:0000 07 00000000:00000000 "
				    "00:00000000 00000000     0 0\n"
				    "  3: 0301000A:138C 0202000A:138E 01 00000000:00000000 "
				    "00:00000000 00000000  1001 0\n"
				    " bad line\n";
	static const char table6[] = "  9: 00000000000000000000000000000000:138F "
				     "00000000000000000000000000000000:0000 07 "
				     "00000000:00000000 00:00000000 00000000  1000 0\n"
				     " 10: 0000000000000000FFFF00000201000A:138C "
				     "00000000000000000000000000000000:0000 07 "
				     "00000000:00000000 00:00000000 00000000  1002 0\n";
	static const struct {
		uint8_t host;
		uint16_t sport, dport;
		enum owner v4, both;
	} cases[] = {
		{2, 5004, 5006, OWNER_HIS, OWNER_OTHER}, /* another has it in disguise */
		{3, 5004, 5006, OWNER_OTHER, OWNER_OTHER},
		{3, 5004, 5008, OWNER_UNKNOWN, OWNER_UNKNOWN}, /* connected elsewhere */
		{4, 5004, 5006, OWNER_UNKNOWN, OWNER_UNKNOWN},
		{4, 5005, 5006, OWNER_HIS, OWNER_HIS},	   /* root's */
		{4, 5007, 5006, OWNER_UNKNOWN, OWNER_HIS}, /* of IPv6, open to both */
	};
	struct paqm_ipc_register reg = t_reg(1, T_SPORT, T_SSRC);
	struct flow *f, *named;
	enum owner found;
	unsigned int i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct owner_ends p = {
			.saddr = {{[10] = 0xFF, [11] = 0xFF, 10, 0, 1, cases[i].host}},
			.daddr = {{[10] = 0xFF, [11] = 0xFF, 10, 0, 2, 2}},
			.sport = cases[i].sport,
			.dport = cases[i].dport};
		FILE *t = fmemopen((void *)table, sizeof(table) - 1, "r");

		CHECK(t);
		found = owner_read(t, &p, 1000, OWNER_UNKNOWN);
		CHECK_EQ(found, cases[i].v4);
		fclose(t);
		t = fmemopen((void *)table6, sizeof(table6) - 1, "r");
		CHECK(t);
		CHECK_EQ(owner_read(t, &p, 1000, found), cases[i].both);
		fclose(t);
	}

	setup(NULL);
	eng.owner = look;
	memset(reg.saddr, 0, 16);
	CHECK_EQ(engine_register(&eng, 1, 1000, &reg, &f), 0);
	whose = OWNER_OTHER;
	send_media(T_SPORT, T_SSRC, 1, S);
	whose = OWNER_UNKNOWN;
	send_media(T_SPORT, T_SSRC, 2, S);
	CHECK_EQ(f->packets, 0);
	CHECK_EQ(eng.media_others, 2);
	CHECK(asked.sport == T_SPORT && asked.dport == T_DPORT && asked.saddr.b[15] == 2);
	whose = OWNER_HIS;
	send_media(T_SPORT, T_SSRC, 3, S);
	CHECK_EQ(f->packets, 1);
	/* it is known for a while, for this address */
	whose = OWNER_OTHER;
	send_media(T_SPORT, T_SSRC, 4, 2 * S);
	CHECK_EQ(f->packets, 2);
	CHECK_EQ(looks, 3);
	t_media(media, T_SPORT, T_SSRC, 5);
	media[15]++;
	engine_media(&eng, media, T_MEDIA, 2 * S);
	send_media(T_SPORT, T_SSRC, 6, 12 * S);
	CHECK_EQ(f->packets, 2);
	CHECK_EQ(looks, 5);
	/* who names his source is not looked for */
	reg = t_reg(2, T_SPORT + 2, T_SSRC);
	CHECK_EQ(engine_register(&eng, 1, 1000, &reg, &named), 0);
	send_media(T_SPORT + 2, T_SSRC, 1, S);
	CHECK_EQ(named->packets, 1);
	CHECK_EQ(looks, 5);
}

void test_ipv6(void)
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
	len = t_message6(good, m6, &m);
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
	memcpy(p, good, len);
	p[40] = 101;
	t_seal(p, len);
	CHECK_EQ(deliver(p, len, S, NULL), REFUSE_MSG_TYPE);
	memcpy(p, good, len);
	p[48] = 0x45; /* about IPv4 */
	t_seal(p, len);
	CHECK_EQ(deliver(p, len, S, NULL), REFUSE_MSG_QUOTE);
	m.seq++;
	m6[23] ^= 1; /* quoted source */
	CHECK_EQ(deliver(p, t_message6(p, m6, &m), S, NULL), REFUSE_FLOW_UNKNOWN);
	m6[23] ^= 1;
	m6[48 + 20] ^= 1;
	CHECK_EQ(deliver(p, t_message6(p, m6, &m), S, NULL), REFUSE_QUOTE_UNKNOWN);
	m6[48 + 20] ^= 1;
	m6[1] = 0xC0; /* traffic class, hop limit, checksum */
	m6[7] = 9;
	m6[46] ^= 0x55;
	CHECK_EQ(deliver(p, t_message6(p, m6, &m), S, NULL), REFUSE_NONE);

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
		CHECK_EQ(deliver(p, t_message6(p, m6, &m), S, NULL), REFUSE_NONE);
	}
	CHECK_EQ(g->packets, 3);
}

/* A flow that takes a freed slot must not inherit proofs or allowances. */
void test_reuse(void)
{
	struct paqm_msg m = msg(1, 1, 1.0, 800000);
	struct flow *f;

	setup(NULL);
	f = add(1, T_SPORT, T_SSRC);
	send_media(T_SPORT, T_SSRC, 1, S);
	CHECK_EQ(say(&m, S), REFUSE_NONE);
	engine_unregister(&eng, f);
	CHECK_EQ(say(&m, S), REFUSE_FLOW_UNKNOWN);
	f = add(1, T_SPORT, T_SSRC);
	CHECK_EQ(f->rate.cause, PAQM_CAUSE_NONE);
	m.seq++;
	CHECK_EQ(say(&m, S), REFUSE_QUOTE_UNKNOWN);
}

/* 64 routers of a host: one more finds no room, until one has been silent for long. */
void test_many_routers(void)
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
