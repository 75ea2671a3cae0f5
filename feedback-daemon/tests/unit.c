// SPDX-License-Identifier: GPL-2.0
/*
 * Unit tests of the judging part of paqmd: allowances (vectors of the
 * sender specification 9.4), every reason of refusal, sequence and boot
 * handling, expiry, limits, records, control requests.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "feedback-daemon/conf.h"
#include "feedback-daemon/record.h"
#include "feedback-daemon/request.h"
#include "packets.h"

#define S 1000000000ULL
#define MS 1000000ULL

static unsigned int failures;
static bool seen[REFUSE_MAX];

#define CHECK(cond)                                                                                \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			fprintf(stderr, "%s:%d: %s: failed: %s\n", __FILE__, __LINE__, __func__,   \
				#cond);                                                            \
			failures++;                                                                \
		}                                                                                  \
	} while (0)

#define CHECK_EQ(got, want)                                                                        \
	do {                                                                                       \
		unsigned long long g_ = (unsigned long long)(got);                                 \
		unsigned long long w_ = (unsigned long long)(want);                                \
		if (g_ != w_) {                                                                    \
			fprintf(stderr, "%s:%d: %s: %s is %llu, want %llu\n", __FILE__, __LINE__,  \
				__func__, #got, g_, w_);                                           \
			failures++;                                                                \
		}                                                                                  \
	} while (0)

static const uint8_t key[PAQM_SIPHASH_KEY] = {1, 2, 3};
static const struct addr nowhere;
static struct engine eng;
static uint8_t media[T_MEDIA];

static void setup(const struct engine_params *p)
{
	engine_free(&eng);
	engine_init(&eng, p ? p : &engine_defaults, key);
}

static struct flow *add(uint64_t cookie, uint16_t sport, uint32_t ssrc)
{
	struct paqm_ipc_register reg = t_reg(cookie, sport, ssrc);
	struct flow *f = NULL;

	CHECK_EQ(engine_register(&eng, 1, &reg, &f), 0);
	return f;
}

static void send_media(uint16_t sport, uint32_t ssrc, uint16_t seq, uint64_t now)
{
	engine_media(&eng, media, t_media(media, sport, ssrc, seq), now);
}

static struct paqm_msg msg(uint64_t router, uint32_t seq, double ecf, double erf)
{
	return (struct paqm_msg){.router_id = router,
				 .boot = 7,
				 .seq = seq,
				 .ecf = t_f32(ecf),
				 .erf = t_f32(erf),
				 .period_ms = 500};
}

/* Deliver raw bytes. */
static enum refuse deliver(const uint8_t *ip, uint32_t len, uint64_t now, struct verdict *v)
{
	struct verdict own;
	uint64_t before[REFUSE_MAX], accepted = eng.accepted;
	unsigned int i;

	if (!v)
		v = &own;
	memcpy(before, eng.refused, sizeof(before));
	engine_message(&eng, ip, len, now, v);
	seen[v->refuse] = true;
	for (i = 1; i < REFUSE_MAX; i++)
		CHECK_EQ(eng.refused[i], before[i] + (i == v->refuse));
	CHECK_EQ(eng.accepted, accepted + !v->refuse);
	return v->refuse;
}

/* Deliver a message about the last media packet. */
static enum refuse say(const struct paqm_msg *m, uint64_t now)
{
	uint8_t ip[256];

	return deliver(ip, t_message(ip, media, m), now, NULL);
}

static void test_siphash(void)
{
	/* vectors of the authors: key 00..0f, message 00..n-1 */
	uint8_t k[16], m[63];
	int i;

	for (i = 0; i < 16; i++)
		k[i] = (uint8_t)i;
	for (i = 0; i < 63; i++)
		m[i] = (uint8_t)i;
	CHECK_EQ(paqm_siphash24(k, m, 0), 0x726fdb47dd0e0e31ULL);
	CHECK_EQ(paqm_siphash24(k, m, 8), 0x93f5f5799a932462ULL);
	CHECK_EQ(paqm_siphash24(k, m, 15), 0xa129ca6149be45e5ULL);
	CHECK_EQ(paqm_siphash24(k, m, 63), 0x958a324ceb064572ULL);
}

static void test_ring(void)
{
	struct ring r;
	unsigned int i;

	uint64_t x = 1;

	CHECK_EQ(ring_init(&r, 4), 0);
	CHECK_EQ(ring_find(&r, 0, 0, 4 * S), RING_UNKNOWN); /* free entries hold nothing */
	for (i = 1; i <= 6; i++)
		ring_put(&r, i, i * S, 4 * S);
	CHECK_EQ(r.early, 0); /* what gave way had just expired */
	CHECK_EQ(ring_find(&r, 2, 6 * S, 4 * S), RING_UNKNOWN);
	CHECK_EQ(ring_find(&r, 3, 7 * S, 4 * S), RING_HIT);
	CHECK_EQ(ring_find(&r, 3, 7 * S + 1, 4 * S), RING_OLD);
	CHECK_EQ(ring_find(&r, 6, 6 * S, 4 * S), RING_HIT);
	ring_put(&r, 7, 6 * S, 4 * S);
	CHECK_EQ(r.early, 1); /* 3 was 3 s old */
	ring_free(&r);

	/* It grows as long as it would forget too early, and finds what it keeps. */
	CHECK_EQ(ring_init(&r, RING_CAP), 0);
	for (i = 0; i < 10 * RING_CAP; i++) {
		x = x * 6364136223846793005ULL + 1442695040888963407ULL;
		ring_put(&r, i & 1 ? x : x & 7, i, 300);
		CHECK_EQ(ring_find(&r, i & 1 ? x : x & 7, i + 300, 300), RING_HIT);
	}
	CHECK_EQ(r.cap, 512);
	CHECK_EQ(r.early, 0);
	CHECK_EQ(ring_find(&r, x, i + 299, 300), RING_HIT);
	CHECK_EQ(ring_find(&r, x, i + 300, 300), RING_OLD);
	CHECK_EQ(ring_find(&r, x + 1, i, 300), RING_UNKNOWN);
	for (i = 0; i < 3 * RING_CAP; i++)
		ring_put(&r, i, 1000000, 300);
	CHECK_EQ(r.cap, RING_CAP);
	CHECK(r.early > RING_CAP);
	for (i = 0; i < 3 * RING_CAP; i++)
		CHECK_EQ(ring_find(&r, i, 1000000, 300),
			 i < 2 * RING_CAP ? RING_UNKNOWN : RING_HIT);
	ring_free(&r);
}

static void test_ecf_vectors(void)
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

		for (i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
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

static void test_erf_vectors(void)
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

/* What is relative counts only after what came before it; else the absolute rate. */
static void test_heal(void)
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
	m.erf = 0;
	t += 3500 * MS;
	CHECK_EQ(SAY(), ceil);
	m.seq = 2;
	m.ecf = t_f32(0.5);
	CHECK_EQ(SAY(), 5000000);
	m.seq = 3; /* with one, nobody is sent below it, but for a twentieth */
	m.erf = t_f32(4000000);
	CHECK(SAY() >= 3799999 && s.slot[0].rate <= 3800000);
	m.seq = 4;
	CHECK(SAY() >= 3799999 && s.slot[0].rate <= 3800000);
	m.seq = 5;
	m.erf = t_f32(1000000);
	CHECK(SAY() >= 1899999 && s.slot[0].rate <= 1900000);
#undef SAY
}

static void test_windup(void)
{
	const uint64_t floor = 100000, ceil = 10000000;
	struct allow_set s = {0};
	struct paqm_msg a = msg(1, 1, 1.0, 1e7), b = msg(2, 1, 1.0, 1e7);
	const struct allow *min;
	unsigned int n, i;

#define SAY(m) allow_apply(&s, &(m), &nowhere, floor, ceil, ALLOW_USE_ECF, S, 4 * S)->rate
	CHECK_EQ(SAY(a), ceil);
	CHECK_EQ(SAY(b), ceil);
	a.erf = t_f32(50000);
	b.erf = a.erf;
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
	b.erf = t_f32(3000000);
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

/* One router says @low and @high in turn. Return: how often the rate rose by a fifth. */
static unsigned int flap(struct flow *f, uint64_t *now, unsigned int rounds, uint64_t gap,
			 double low, double high)
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

static void test_flapping(void)
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
	/* quiet frees it: never more than 15 s later */
	t = now;
	while (f->allow.damp.held && now < t + 20 * S) {
		uint64_t before = f->rate.rate_bps;

		flap(f, &now, 1, 250 * MS, 800000, 0);
		/* meanwhile it rises, an eighth in a quarter of a second */
		if (f->allow.damp.held)
			CHECK_EQ(f->rate.rate_bps, paqm_min64(before + before / 8, 800000));
	}
	CHECK_EQ(f->rate.rate_bps, 800000);
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

static void count_told(void *data, struct flow *f)
{
	(void)f;
	++*(unsigned int *)data;
}

static void test_expiry(void)
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

static void test_ip_refusals(void)
{
	struct paqm_msg m = msg(1, 1, 0.9, 500000);
	uint8_t good[256], p[256];
	uint32_t len;
	struct verdict v;

	setup(NULL);
	add(1, T_SPORT, T_SSRC);
	send_media(T_SPORT, T_SSRC, 1, S);
	len = t_message(good, media, &m);

	CHECK_EQ(deliver(good, 19, S, NULL), REFUSE_IP_CUT);
	CHECK_EQ(deliver(good, len - 1, S, &v), REFUSE_IP_CUT);
	CHECK(addr_is_v4(&v.addr) && paqm_get32(v.addr.b + 12) == T_ROUTER);
	memcpy(p, good, len);
	p[0] = 0x44;
	CHECK_EQ(deliver(p, len, S, NULL), REFUSE_IP_HEADER);
	memcpy(p, good, len);
	p[0] = 0x55;
	CHECK_EQ(deliver(p, len, S, NULL), REFUSE_IP_HEADER);
	memcpy(p, good, len);
	paqm_put16(p + 2, 19);
	CHECK_EQ(deliver(p, len, S, NULL), REFUSE_IP_HEADER);
	memcpy(p, good, len);
	p[8]--;
	CHECK_EQ(deliver(p, len, S, NULL), REFUSE_IP_CHECKSUM);
	memcpy(p, good, len);
	p[6] = 0x20; /* more fragments */
	t_seal(p, len);
	CHECK_EQ(deliver(p, len, S, NULL), REFUSE_IP_FRAGMENT);
	memcpy(p, good, len);
	p[7] = 1; /* offset */
	t_seal(p, len);
	CHECK_EQ(deliver(p, len, S, NULL), REFUSE_IP_FRAGMENT);
	/* four bytes of options */
	memcpy(p, good, 20);
	memset(p + 20, 1, 4);
	memcpy(p + 24, good + 20, len - 20);
	p[0] = 0x46;
	paqm_put16(p + 2, (uint16_t)(len + 4));
	t_seal(p, len + 4);
	CHECK_EQ(deliver(p, len + 4, S, NULL), REFUSE_IP_OPTIONS);
	/* link-layer padding behind the packet does not matter */
	memcpy(p, good, len);
	memset(p + len, 0xEE, 12);
	CHECK_EQ(deliver(p, len + 12, S, NULL), REFUSE_NONE);
}

static void test_msg_refusals(void)
{
	struct paqm_msg m = msg(1, 1, 0.9, 500000);
	uint8_t good[256], p[256];
	uint32_t len, obj;

	setup(NULL);
	add(1, T_SPORT, T_SSRC);
	send_media(T_SPORT, T_SSRC, 1, S);
	len = t_message(good, media, &m);
	obj = len - PAQM_OBJ_LEN;

	memcpy(p, good, len);
	paqm_put16(p + 2, 20 + 8 + 27 + 48);
	t_seal(p, 20 + 8 + 27 + 48);
	CHECK_EQ(deliver(p, 20 + 8 + 27 + 48, S, NULL), REFUSE_MSG_SHORT);
	memcpy(p, good, len);
	p[20] = 3; /* destination unreachable */
	t_seal(p, len);
	CHECK_EQ(deliver(p, len, S, NULL), REFUSE_MSG_TYPE);
	memcpy(p, good, len);
	p[obj + 35] ^= 1;
	CHECK_EQ(deliver(p, len, S, NULL), REFUSE_MSG_CHECKSUM);
	memcpy(p, good, len);
	p[obj] = 'Q';
	t_seal(p, len);
	CHECK_EQ(deliver(p, len, S, NULL), REFUSE_MSG_MAGIC);
	memcpy(p, good, len);
	p[obj + 4] = 2;
	t_seal(p, len);
	CHECK_EQ(deliver(p, len, S, NULL), REFUSE_MSG_VERSION);
	memcpy(p, good, len);
	p[28 + 9] = 6; /* about TCP */
	t_seal(p, len);
	CHECK_EQ(deliver(p, len, S, NULL), REFUSE_MSG_QUOTE);
	memcpy(p, good, len);
	paqm_put32(p + 24, 0x7FC00000); /* NaN */
	paqm_put32(p + obj + 24, 0x7FC00000);
	t_seal(p, len);
	CHECK_EQ(deliver(p, len, S, NULL), REFUSE_MSG_VALUE);
	memcpy(p, good, len);
	paqm_put32(p + obj + 28, 0xBF800000); /* -1 */
	t_seal(p, len);
	CHECK_EQ(deliver(p, len, S, NULL), REFUSE_MSG_VALUE);
	memcpy(p, good, len);
	paqm_put32(p + 24, t_f32(0.1));
	t_seal(p, len);
	CHECK_EQ(deliver(p, len, S, NULL), REFUSE_MSG_MISMATCH);
	CHECK_EQ(eng.accepted, 0);
	CHECK_EQ(deliver(good, len, S, NULL), REFUSE_NONE);
}

static void test_flow_and_quote(void)
{
	struct paqm_msg m = msg(1, 1, 0.9, 500000);
	struct flow *f, *g;
	uint8_t p[256], other[T_MEDIA];
	uint32_t len;

	setup(NULL);
	f = add(1, T_SPORT, T_SSRC);
	g = add(2, T_SPORT + 2, 0);
	send_media(T_SPORT, T_SSRC, 1, S);

	/* (b) */
	t_media(other, T_SPORT + 4, T_SSRC, 1);
	CHECK_EQ(deliver(p, t_message(p, other, &m), S, NULL), REFUSE_FLOW_UNKNOWN);
	t_media(other, T_SPORT, T_SSRC + 1, 1);
	CHECK_EQ(deliver(p, t_message(p, other, &m), S, NULL), REFUSE_FLOW_SSRC);
	/* (c): all is right except one byte of payload, or the packet was never sent */
	t_media(other, T_SPORT, T_SSRC, 1);
	other[28 + 27] ^= 1;
	CHECK_EQ(deliver(p, t_message(p, other, &m), S, NULL), REFUSE_QUOTE_UNKNOWN);
	t_media(other, T_SPORT, T_SSRC, 2);
	CHECK_EQ(deliver(p, t_message(p, other, &m), S, NULL), REFUSE_QUOTE_UNKNOWN);
	/* the same bytes in another flow do not prove this one */
	CHECK_EQ(g->packets, 0);
	t_media(other, T_SPORT + 2, T_SSRC, 1);
	CHECK_EQ(deliver(p, t_message(p, other, &m), S, NULL), REFUSE_QUOTE_UNKNOWN);
	/* a shorter quote of a sent packet proves nothing */
	len = paqm_icmp_encode(p + 20, PAQM_ICMP_TYPE_EXP, media, 20 + 8 + 12, &m);
	t_ip(p, 1, 20 + len, T_ROUTER, T_SADDR);
	CHECK_EQ(deliver(p, 20 + len, S, NULL), REFUSE_QUOTE_UNKNOWN);
	/* too old */
	CHECK_EQ(say(&m, 5 * S + 1), REFUSE_QUOTE_OLD);
	/* what the path may change: TTL, DSCP/ECN, addresses' checksums */
	memcpy(other, media, T_MEDIA);
	other[1] = 3;
	other[8] = 60;
	other[10] ^= 0x55;
	other[26] ^= 0x55;
	CHECK_EQ(deliver(p, t_message(p, other, &m), 5 * S, NULL), REFUSE_NONE);
	CHECK_EQ(f->rate.rate_bps, 500000);
	CHECK_EQ(f->rate.cause, PAQM_CAUSE_ERF);
	CHECK_EQ(f->rate.mono_ns, 5 * S);
	CHECK_EQ(f->rate.router[15], 1);
	CHECK_EQ(g->rate.rate_bps, 0);

	/* constant keep-alives are not kept: everybody can guess them */
	t_media(other, T_SPORT + 2, 0, 1);
	paqm_put16(other + 24, 8 + 4);
	engine_media(&eng, other, T_MEDIA, S);
	CHECK_EQ(g->packets, 0);
	/* nor fragments, truncated headers, lying lengths, strangers */
	t_media(other, T_SPORT + 2, 0, 1);
	other[6] = 0x20;
	engine_media(&eng, other, T_MEDIA, S);
	t_media(other, T_SPORT + 2, 0, 1);
	engine_media(&eng, other, 47, S);
	paqm_put16(other + 24, 2000);
	engine_media(&eng, other, T_MEDIA, S);
	t_media(other, T_SPORT + 6, 0, 1);
	engine_media(&eng, other, T_MEDIA, S);
	CHECK_EQ(g->packets, 0);
	CHECK_EQ(eng.media_ignored, 5);
	t_media(other, T_SPORT + 2, 0, 1);
	engine_media(&eng, other, T_MEDIA, S);
	CHECK_EQ(g->packets, 1);
}

/* In-band feedback in a header extension may be rewritten on the path. */
/* Carrier quench: the same checks; without object only if that is allowed. */
static void test_quench(void)
{
	struct engine_params p = engine_defaults;
	struct paqm_msg m = msg(1, 1, 0.9, 500000);
	uint8_t ip[256], other[T_MEDIA];
	struct flow *f;
	uint32_t len;

	setup(NULL);
	f = add(1, T_SPORT, T_SSRC);
	send_media(T_SPORT, T_SSRC, 1, S);
	t_media(other, T_SPORT, T_SSRC, 2);
	len = t_message_type(ip, PAQM_ICMP_TYPE_QUENCH, other, &m);
	CHECK_EQ(deliver(ip, len, S, NULL), REFUSE_QUOTE_UNKNOWN);
	len = t_message_type(ip, PAQM_ICMP_TYPE_QUENCH, media, &m);
	CHECK_EQ(deliver(ip, len, S, NULL), REFUSE_NONE);
	CHECK_EQ(f->rate.rate_bps, 500000);
	/* one sequence for both carriers */
	CHECK_EQ(say(&m, S), REFUSE_SEQ_REPLAY);
	/* without object: not unless asked for */
	CHECK_EQ(deliver(ip, t_bare(ip, media, t_f32(0.5)), S, NULL), REFUSE_MSG_SHORT);
	CHECK_EQ(f->rate.rate_bps, 500000);

	p.legacy = true;
	setup(&p);
	f = add(1, T_SPORT, T_SSRC);
	CHECK_EQ(deliver(ip, t_bare(ip, other, t_f32(0.5)), S, NULL), REFUSE_NONE);
	CHECK_EQ(f->rate.rate_bps, 500000); /* half of the ceiling */
	CHECK_EQ(f->rate.cause, PAQM_CAUSE_ECF);
	CHECK_EQ(f->rate.router_id, T_ROUTER);
	CHECK_EQ(deliver(ip, t_bare(ip, other, t_f32(0.5)), S, NULL), REFUSE_NONE);
	CHECK_EQ(f->rate.rate_bps, 250000);
	CHECK_EQ(deliver(ip, t_bare(ip, other, t_f32(1)), S, NULL), REFUSE_NONE);
	CHECK_EQ(f->rate.rate_bps, 250000);
	CHECK_EQ(deliver(ip, t_bare(ip, other, t_f32(50000)), S, NULL), REFUSE_NONE);
	CHECK_EQ(f->rate.rate_bps, 300000);
	/* a router with an object beside it is another one */
	send_media(T_SPORT, T_SSRC, 3, S);
	m.erf = t_f32(200000);
	CHECK_EQ(say(&m, S), REFUSE_NONE);
	CHECK_EQ(f->rate.rate_bps, 200000);
	CHECK_EQ(f->rate.cause, PAQM_CAUSE_ERF);
	CHECK_EQ(f->rate.routers, 2);
	/* the checks that are left */
	CHECK_EQ(deliver(ip, t_bare(ip, other, 0), S, NULL), REFUSE_MSG_VALUE);
	len = t_bare(ip, other, t_f32(0.5));
	ip[24] ^= 1;
	CHECK_EQ(deliver(ip, len, S, NULL), REFUSE_MSG_CHECKSUM);
	len = t_bare(ip, other, t_f32(0.5));
	ip[28 + 9] = 6;
	t_seal(ip, len);
	CHECK_EQ(deliver(ip, len, S, NULL), REFUSE_MSG_QUOTE);
	t_media(other, T_SPORT + 4, T_SSRC, 1);
	CHECK_EQ(deliver(ip, t_bare(ip, other, t_f32(0.5)), S, NULL), REFUSE_FLOW_UNKNOWN);
	len = t_bare(ip, media, t_f32(0.5));
	ip[20] = PAQM_ICMP_TYPE_EXP;
	t_seal(ip, len);
	CHECK_EQ(deliver(ip, len, S, NULL), REFUSE_MSG_SHORT);
	CHECK_EQ(f->rate.rate_bps, 200000);
	/* silence ends it as it ends others */
	CHECK(engine_expire(&eng, f, S + 3 * S));
	CHECK_EQ(f->rate.rate_bps, 0);
}

static void test_extension(void)
{
	struct paqm_msg m = msg(1, 1, 0.9, 500000);
	uint8_t p[256];
	uint32_t i;

	setup(NULL);
	add(1, T_SPORT, T_SSRC);
	t_media(media, T_SPORT, T_SSRC, 1);
	media[28] = 0x90;
	paqm_put16(media + 40, 0xBEDE);
	paqm_put16(media + 42, 2);
	engine_media(&eng, media, T_MEDIA, S);
	for (i = 0; i < 8; i++)
		media[44 + i] ^= 0xFF;
	CHECK_EQ(deliver(p, t_message(p, media, &m), S, NULL), REFUSE_NONE);
	m.seq++;
	media[52] ^= 1;
	CHECK_EQ(deliver(p, t_message(p, media, &m), S, NULL), REFUSE_QUOTE_UNKNOWN);
}

static void test_sequence(void)
{
	struct paqm_msg m = msg(1, 5, 0.9, 500000);
	struct flow *f, *g;

	setup(NULL);
	f = add(1, T_SPORT, T_SSRC);
	send_media(T_SPORT, T_SSRC, 1, S);
	CHECK_EQ(say(&m, S), REFUSE_NONE);
	CHECK_EQ(say(&m, S), REFUSE_SEQ_REPLAY);
	m.seq = 4;
	CHECK_EQ(say(&m, S), REFUSE_SEQ_STALE);
	/* a round has one number for all flows */
	g = add(2, T_SPORT + 2, 0);
	send_media(T_SPORT + 2, T_SSRC, 1, S);
	m.seq = 5;
	CHECK_EQ(say(&m, S), REFUSE_NONE);
	CHECK_EQ(g->accepted, 1);
	/* other routers count by themselves */
	send_media(T_SPORT, T_SSRC, 2, S);
	m.router_id = 2;
	m.seq = 1;
	CHECK_EQ(say(&m, S), REFUSE_NONE);
	/* the counter wraps; half the circle away is old */
	m.seq = 0x7FFFFFFF;
	CHECK_EQ(say(&m, S), REFUSE_NONE);
	m.seq = 0xFFFFFFFE;
	CHECK_EQ(say(&m, S), REFUSE_NONE);
	m.seq = 3;
	CHECK_EQ(say(&m, S), REFUSE_NONE);
	m.seq = 0xFFFFFFFF;
	CHECK_EQ(say(&m, S), REFUSE_SEQ_STALE);
	/* a restarted router begins anew; messages from before are not believed any more */
	m.boot = 8;
	m.seq = 1;
	CHECK_EQ(say(&m, S), REFUSE_NONE);
	m.boot = 7;
	m.seq = 100;
	CHECK_EQ(say(&m, S), REFUSE_BOOT_OLD);
	/* a new boot nonce alone is no proof */
	m.boot = 9;
	m.seq = 1;
	media[28 + 20] ^= 1;
	CHECK_EQ(say(&m, S), REFUSE_QUOTE_UNKNOWN);
	media[28 + 20] ^= 1;
	m.boot = 8;
	m.seq = 2;
	CHECK_EQ(say(&m, S), REFUSE_NONE);
	CHECK_EQ(f->rate.routers, 2);
	CHECK_EQ(eng.routers[1].refused, 2);
}

/* Message about the last media packet, tagged with @k as key @id. */
static enum refuse say_tagged(struct paqm_msg m, uint16_t id, const uint8_t *k, uint64_t now)
{
	uint8_t bytes[PAQM_TAG_BYTES];

	m.flags |= PAQM_F_AUTH;
	m.key_id = id;
	m.tag = paqm_siphash24(k, bytes, paqm_tag_bytes(&m, media + 28, PAQM_QUOTE_UDP, bytes));
	return say(&m, now);
}

static void use_keys(const char *text)
{
	struct keyring ring;
	unsigned int line;

	CHECK(!keys_parse(text, strlen(text), &ring, &line));
	engine_set_keys(&eng, &ring);
}

#define KEY_A "0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f"
#define KEY_B "B0b0B0b0B0b0B0b0B0b0B0b0B0b0B0b0"

static void test_keys(void)
{
	struct engine_params p = engine_defaults;
	struct paqm_msg m = msg(0xA1, 1, 0.9, 500000);
	uint8_t a[16], b[16];
	struct verdict v;
	uint8_t ip[256];
	struct flow *f;

	memset(a, 0x0f, sizeof(a));
	memset(b, 0xb0, sizeof(b));
	setup(NULL);
	f = add(1, T_SPORT, T_SSRC);
	send_media(T_SPORT, T_SSRC, 1, S);
	/* without keys nobody looks at tags, and nobody is told that one is right */
	m.flags = PAQM_F_AUTH;
	m.tag = 1;
	CHECK_EQ(deliver(ip, t_message(ip, media, &m), S, &v), REFUSE_NONE);
	CHECK(!(v.msg.flags & PAQM_F_AUTH) && !(f->rate.flags & PAQM_F_AUTH));

	/* one router has a key: it must use it, the others need not */
	use_keys("a1 7 " KEY_A "\n");
	m = msg(0xA1, 2, 0.9, 400000);
	CHECK_EQ(say(&m, S), REFUSE_AUTH_MISSING);
	CHECK_EQ(say_tagged(m, 8, a, S), REFUSE_KEY_UNKNOWN);
	CHECK_EQ(say_tagged(m, 7, b, S), REFUSE_AUTH_BAD);
	CHECK_EQ(f->rate.rate_bps, 500000);
	CHECK_EQ(say_tagged(m, 7, a, S), REFUSE_NONE);
	CHECK_EQ(f->rate.rate_bps, 400000);
	CHECK(f->rate.flags & PAQM_F_AUTH);
	CHECK_EQ(say_tagged(m, 7, a, S), REFUSE_SEQ_REPLAY);
	m = msg(0xB2, 1, 0.9, 450000);
	CHECK_EQ(say(&m, S), REFUSE_NONE);

	/* rotation: both hold, then the old one is gone */
	use_keys("a1 7 " KEY_A "\na1 8 " KEY_B "\n");
	m = msg(0xA1, 3, 0.9, 400000);
	CHECK_EQ(say_tagged(m, 7, a, S), REFUSE_NONE);
	m.seq++;
	CHECK_EQ(say_tagged(m, 8, b, S), REFUSE_NONE);
	use_keys("a1 8 " KEY_B "\n");
	m.seq++;
	CHECK_EQ(say_tagged(m, 7, a, S), REFUSE_KEY_UNKNOWN);
	CHECK_EQ(say_tagged(m, 8, b, S), REFUSE_NONE);
	CHECK_EQ(f->rate.routers, 2); /* allowances have stayed */

	/* a key for all says nothing about a router with its own */
	use_keys("* 8 " KEY_A "\na1 8 " KEY_B "\n");
	m.seq++;
	CHECK_EQ(say_tagged(m, 8, a, S), REFUSE_AUTH_BAD);
	CHECK_EQ(say_tagged(m, 8, b, S), REFUSE_NONE);
	m = msg(0xB2, 2, 0.9, 450000);
	CHECK_EQ(say_tagged(m, 8, b, S), REFUSE_AUTH_BAD);
	CHECK_EQ(say(&m, S), REFUSE_AUTH_MISSING);
	CHECK_EQ(say_tagged(m, 8, a, S), REFUSE_NONE);

	/* no router without a key */
	p.require_auth = true;
	setup(&p);
	add(1, T_SPORT, T_SSRC);
	send_media(T_SPORT, T_SSRC, 1, S);
	use_keys("a1 7 " KEY_A "\n");
	m = msg(0xB2, 1, 0.9, 450000);
	CHECK_EQ(say(&m, S), REFUSE_AUTH_MISSING);
	CHECK_EQ(say_tagged(m, 7, a, S), REFUSE_KEY_UNKNOWN);
	m = msg(0xA1, 1, 0.9, 450000);
	CHECK_EQ(say_tagged(m, 7, a, S), REFUSE_NONE);
	engine_set_keys(&eng, NULL);
	m.seq++;
	CHECK_EQ(say_tagged(m, 7, a, S), REFUSE_KEY_UNKNOWN);
}

/* With a key no bit of a message can be changed so that it is believed. */
static void test_mutations(void)
{
	struct paqm_msg m = msg(0xA1, 1, 0.9, 500000);
	uint8_t a[16], bytes[PAQM_TAG_BYTES], good[256], p[256];
	uint64_t accepted;
	uint32_t len, bit;

	memset(a, 0x0f, sizeof(a));
	setup(NULL);
	add(1, T_SPORT, T_SSRC);
	use_keys("* 7 " KEY_A);
	send_media(T_SPORT, T_SSRC, 1, S);
	m.flags = PAQM_F_AUTH;
	m.key_id = 7;
	m.tag = paqm_siphash24(a, bytes, paqm_tag_bytes(&m, media + 28, PAQM_QUOTE_UDP, bytes));
	len = t_message(good, media, &m);
	CHECK_EQ(deliver(good, len, S, NULL), REFUSE_NONE);
	for (bit = 0; bit < 8 * len; bit++) {
		memcpy(p, good, len);
		p[bit / 8] ^= (uint8_t)(1 << bit % 8);
		accepted = eng.accepted;
		CHECK(deliver(p, len, S, NULL) != REFUSE_NONE); /* the checksums say so */
		t_seal(p, len);
		CHECK(deliver(p, len, S, NULL) != REFUSE_NONE); /* replay or tag */
		CHECK_EQ(eng.accepted, accepted);
	}
}

static void test_keys_file(void)
{
	static const struct {
		const char *text;
		unsigned int line; /* of the fault; 0: none */
		unsigned int n;
	} cases[] = {
		{"", 0, 0},
		{"\n\n# nothing\n \t\r\n", 0, 0},
		{"1 1 " KEY_A, 0, 1},
		{"FFFFFFFFFFFFFFFF 65535 " KEY_B "\n*\t1\t" KEY_A "#x\r\n", 0, 2},
		{"1 1 " KEY_A "\n1 2 " KEY_A "\n2 1 " KEY_A "\n* 1 " KEY_A "\n", 0, 4},
		{"1 1 " KEY_A "\n\n01 01 " KEY_B "\n", 3, 0},
		{"* 1 " KEY_A "\n* 1 " KEY_B "\n", 2, 0},
		{"1 1\n", 1, 0},
		{"1\n", 1, 0},
		{"1 1 " KEY_A " x\n", 1, 0},
		{"0 1 " KEY_A, 1, 0},
		{"** 1 " KEY_A, 1, 0},
		{"10000000000000000 1 " KEY_A, 1, 0},
		{"0x1 1 " KEY_A, 1, 0},
		{"1 0 " KEY_A, 1, 0},
		{"1 65536 " KEY_A, 1, 0},
		{"1 000001 " KEY_A, 1, 0},
		{"1 a " KEY_A, 1, 0},
		{"1 1 " KEY_A "0", 1, 0},
		{"1 1 0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0", 1, 0},
		{"1 1 0g0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f", 1, 0},
		{"1 1 f@0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f", 1, 0},
		{"1 1 00000000000000000000000000000000", 1, 0},
	};
	static struct keyring ring;
	char text[KEYS_FILE_MAX], *p = text;
	unsigned int line, i;
	const char *error;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		error = keys_parse(cases[i].text, strlen(cases[i].text), &ring, &line);
		if (!error != !cases[i].line)
			fprintf(stderr, "keys case %u: %s\n", i, error ? error : "taken");
		CHECK_EQ(!error, !cases[i].line);
		if (error)
			CHECK_EQ(line, cases[i].line);
		else
			CHECK_EQ(ring.n, cases[i].n);
	}
	for (i = 1; i <= KEYS_MAX + 1; i++) {
		CHECK_EQ(!!keys_parse(text, (size_t)(p - text), &ring, &line), 0);
		CHECK_EQ(ring.n, i - 1);
		p += sprintf(p, "%x 1 " KEY_A "\n", i);
	}
	CHECK(keys_parse(text, (size_t)(p - text), &ring, &line));
	CHECK_EQ(line, KEYS_MAX + 1);
}

/* A file that others may read or write holds no secrets. */
static void test_keys_load(void)
{
	char dir[] = "/tmp/paqmd-unit-XXXXXX", path[64], error[256];
	static struct keyring ring;
	FILE *f;
	int i;

	CHECK(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/keys", dir);
	CHECK(keys_load(path, geteuid(), &ring, error, sizeof(error)));
	CHECK(strstr(error, "No such file"));
	f = fopen(path, "w");
	CHECK(f && fputs("# one\n1 1 " KEY_A "\n", f) > 0 && !fclose(f));
	for (i = 0; i < 0200; i++) {
		CHECK(!chmod(path, (mode_t)(0600 | i)));
		CHECK_EQ(!keys_load(path, geteuid(), &ring, error, sizeof(error)), !(i & 077));
	}
	CHECK(!chmod(path, 0600));
	CHECK(!keys_load(path, geteuid(), &ring, error, sizeof(error)));
	CHECK_EQ(ring.n, 1);
	f = fopen(path, "a");
	CHECK(f && fputs("1 1 " KEY_A "\n", f) > 0 && !fclose(f));
	CHECK(keys_load(path, geteuid(), &ring, error, sizeof(error)));
	CHECK(strstr(error, "/keys:3: "));
	CHECK(!truncate(path, KEYS_FILE_MAX + 1));
	CHECK(keys_load(path, geteuid(), &ring, error, sizeof(error)));
	CHECK(strstr(error, "65536"));
	if (!geteuid()) {
		CHECK(!chown(path, 1, 0));
		CHECK(keys_load(path, geteuid(), &ring, error, sizeof(error)));
		CHECK(strstr(error, "another user"));
		CHECK(!truncate(path, 0));
		CHECK(!keys_load(path, 1, &ring, error, sizeof(error)));
	}
	unlink(path);
	CHECK(!mkfifo(path, 0600));
	CHECK(keys_load(path, geteuid(), &ring, error, sizeof(error)));
	CHECK(strstr(error, "plain file"));
	unlink(path);
	rmdir(dir);
	keys_wipe(&ring);
	CHECK_EQ(ring.n, 0);
}

static void test_limits(void)
{
	struct engine_params p = engine_defaults;
	struct paqm_msg m = msg(1, 0, 0.9, 500000);
	unsigned int i;

	p.router = (struct bucket_limit){.per_s = 10, .burst = 5};
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

static void test_ecf_engine(void)
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

static void test_register(void)
{
	struct paqm_ipc_register r = t_reg(1, T_SPORT, 0);
	struct paqm_msg m = msg(1, 1, 1.0, 800000);
	struct flow *f = NULL, *g = NULL;
	unsigned int i;

	setup(NULL);
	CHECK_EQ(engine_register(&eng, 1, &r, &f), 0);
	CHECK_EQ(engine_register(&eng, 2, &r, &g), EEXIST);
	r.cookie = 2;
	CHECK_EQ(engine_register(&eng, 1, &r, &g), EEXIST);
	memset(r.saddr, 0, 16); /* the wildcard overlaps */
	CHECK_EQ(engine_register(&eng, 1, &r, &g), EEXIST);
	r.sport++;
	CHECK_EQ(engine_register(&eng, 2, &r, &g), 0);
	send_media(T_SPORT + 1, 5, 1, S);
	CHECK_EQ(g->packets, 1);
	CHECK_EQ(say(&m, S), REFUSE_NONE);
	CHECK_EQ(g->rate.rate_bps, 800000);
	/* new limits for a known flow act at once and keep what routers said */
	r.ceil_bps = 400000;
	CHECK_EQ(engine_register(&eng, 2, &r, &g), 0);
	CHECK_EQ(g->rate.rate_bps, 400000);
	r.ceil_bps = 5000000;
	r.floor_bps = 900000;
	CHECK_EQ(engine_register(&eng, 2, &r, &g), 0);
	CHECK_EQ(g->rate.rate_bps, 900000);

	r = t_reg(3, T_SPORT + 9, 0);
	r.daddr[0] = 0x20; /* IPv4 to IPv6 */
	CHECK_EQ(engine_register(&eng, 1, &r, &g), EAFNOSUPPORT);
	r = t_reg(3, T_SPORT + 9, 0);
	t_v4(r.daddr, 0);
	CHECK_EQ(engine_register(&eng, 1, &r, &g), EINVAL);
	memset(r.daddr, 0, 16);
	memset(r.saddr, 0, 16);
	CHECK_EQ(engine_register(&eng, 1, &r, &g), EINVAL);
	r = t_reg(3, 0, 0);
	CHECK_EQ(engine_register(&eng, 1, &r, &g), EINVAL);
	r = t_reg(3, T_SPORT + 9, 0);
	r.floor_bps = r.ceil_bps + 1;
	CHECK_EQ(engine_register(&eng, 1, &r, &g), EINVAL);
	r.floor_bps = 0;
	r.ceil_bps = 0;
	CHECK_EQ(engine_register(&eng, 1, &r, &g), EINVAL);
	r.ceil_bps = UINT64_MAX;
	CHECK_EQ(engine_register(&eng, 1, &r, &g), EINVAL);

	engine_unregister(&eng, f);
	CHECK(!engine_flow(&eng, 1, 1));
	for (i = 1; i < ENGINE_FLOWS; i++)
		add(100 + i, (uint16_t)(10000 + i), 0);
	r = t_reg(1000000, 999, 0);
	CHECK_EQ(engine_register(&eng, 1, &r, &g), ENOSPC);
}

/* Tables and rings under change: whatever is registered is found, nothing else is. */
static void test_tables(void)
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
		CHECK_EQ(engine_register(&eng, 1 + k % 3, &r, &f), 0);
		CHECK_EQ(f->ceil_bps, 1000000 + i);
		n += !there[k];
		there[k] = true;
		/* the other owner, the same packets */
		r.cookie = ~0ULL;
		CHECK_EQ(engine_register(&eng, 5, &r, &f), EEXIST);
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
	/* the memory of all rings is bounded */
	for (k++; !there[k]; k++)
		;
	f = engine_flow(&eng, 1 + k % 3, k);
	eng.digests = ENGINE_DIGESTS - RING_MIN;
	for (i = 0; i < 2 * RING_CAP; i++)
		send_media((uint16_t)(1000 + k), 1, (uint16_t)i, 2 * S);
	CHECK_EQ(f->ring.cap, 2 * RING_MIN);
	CHECK(f->ring.early > RING_CAP);
	CHECK_EQ(eng.digests, ENGINE_DIGESTS);
}

static void test_ipv6(void)
{
	struct paqm_ipc_register r = t_reg(1, T_SPORT, T_SSRC);
	struct paqm_msg m = msg(1, 1, 0.9, 500000);
	uint8_t good[256], p[256], m6[T_MEDIA + 20];
	struct flow *f, *g;
	struct verdict v;
	uint32_t len, i;

	setup(NULL);
	t_v6(r.saddr, T_SADDR);
	t_v6(r.daddr, T_DADDR);
	CHECK_EQ(engine_register(&eng, 1, &r, &f), 0);
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
	CHECK_EQ(engine_register(&eng, 1, &r, &g), 0);
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
static void test_reuse(void)
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

static void test_records(void)
{
	struct paqm_ipc_register r = t_reg(1, T_SPORT, 0);
	union record out;

	CHECK(!record_parse(&r, sizeof(r), &out));
	CHECK_EQ(out.reg.cookie, 1);
	CHECK(record_parse(&r, sizeof(r) - 1, &out));
	CHECK(record_parse(&r, sizeof(r) + 1, &out));
	CHECK(record_parse(&r, 7, &out));
	CHECK(record_parse(&r, 0, &out));
	r.hdr.len--;
	CHECK(record_parse(&r, sizeof(r), &out));
	r = t_reg(1, T_SPORT, 0);
	r.hdr.kind = PAQM_IPC_RATE;
	CHECK(record_parse(&r, sizeof(r), &out));
	r = t_reg(1, T_SPORT, 0);
	r.hdr.version = 2;
	CHECK(record_parse(&r, sizeof(r), &out));
	r = t_reg(1, T_SPORT, 0);
	r.hdr.magic++;
	CHECK(record_parse(&r, sizeof(r), &out));
}

static json_t *request(const char *line, enum request_act *act)
{
	struct request_env env = {.now_ns = 2 * S, .start_ns = S, .ifaces = 1};

	strcpy(env.iface[0].name, "e\xFF"); /* any byte may stand in such a name */
	return request_answer(&eng, &env, line, strlen(line), act);
}

static void test_requests(void)
{
	static const char *const bad[] = {"", "{", "[]", "{}", "{\"cmd\": 1}", "{\"cmd\": \"x\"}"};
	struct paqm_msg m = msg(0xABC, 1, 0.9, 500000);
	enum request_act act;
	json_t *o, *f;
	size_t i;

	setup(NULL);
	add(1, T_SPORT, T_SSRC);
	send_media(T_SPORT, T_SSRC, 1, S);
	m.flags = PAQM_F_OVERLOAD | PAQM_F_FINAL;
	m.qdelay_100us = 35;
	CHECK_EQ(say(&m, S), REFUSE_NONE);
	CHECK_EQ(say(&m, S), REFUSE_SEQ_REPLAY);
	o = request("{\"cmd\": \"show\"}", &act);
	CHECK(json_is_true(json_object_get(o, "ok")));
	f = json_array_get(json_object_get(o, "flows"), 0);
	CHECK_EQ(json_integer_value(json_object_get(f, "rate_bps")), 500000);
	CHECK(!strcmp(json_string_value(json_object_get(f, "flow")),
		      "10.0.1.2:5004 > 10.0.2.2:5006"));
	CHECK(!strcmp(json_string_value(json_object_get(f, "limited_by")), "0000000000000abc"));
	f = json_array_get(json_object_get(o, "routers"), 0);
	CHECK(json_real_value(json_object_get(f, "qdelay_ms")) == 3.5);
	CHECK_EQ(json_array_size(json_object_get(f, "flags")), 2);
	f = json_array_get(json_object_get(json_object_get(o, "stats"), "interfaces"), 0);
	CHECK(!strcmp(json_string_value(json_object_get(f, "name")), "e?"));
	f = json_object_get(json_object_get(o, "stats"), "refused");
	CHECK_EQ(json_integer_value(json_object_get(f, "seq_replay")), 1);
	CHECK_EQ(json_object_size(f), REFUSE_MAX - 1);
	json_decref(o);
	CHECK(act == REQUEST_NOTHING);
	o = request("{\"cmd\": \"watch\"}", &act);
	CHECK(act == REQUEST_WATCH && json_is_true(json_object_get(o, "ok")));
	json_decref(o);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		o = request(bad[i], &act);
		CHECK(json_is_false(json_object_get(o, "ok")));
		CHECK(json_string_value(json_object_get(o, "error")));
		json_decref(o);
	}
}

/* The first flow's answer to "why". */
static const char *why(struct request_env *env, const char **text)
{
	static json_t *o;
	enum request_act act;
	json_t *first;

	json_decref(o);
	o = request_answer(&eng, env, "{\"cmd\": \"why\"}", 14, &act);
	first = json_array_get(json_object_get(o, "why"), 0);
	CHECK_EQ(json_array_size(json_object_get(o, "why")), 1);
	*text = json_string_value(json_object_get(first, "text"));
	return json_string_value(json_object_get(first, "code"));
}

#define CHECK_WHY(want, part)                                                                      \
	do {                                                                                       \
		const char *text_, *code_ = why(&env, &text_);                                     \
		if (strcmp(code_, want) || !strstr(text_, part)) {                                 \
			fprintf(stderr, "%s:%d: why is %s: %s\n", __FILE__, __LINE__, code_,       \
				text_);                                                            \
			failures++;                                                                \
		}                                                                                  \
	} while (0)

/* Whatever the state of a flow, its reason is named. */
static void test_why(void)
{
	struct request_env env = {.now_ns = 2 * S, .start_ns = S, .ifaces = 1};
	struct paqm_msg m = msg(0xABC, 1, 1.0, 500000);
	uint8_t other[T_MEDIA], p[256];
	uint64_t now = 40 * S;
	struct flow *f;

	setup(NULL);
	f = add(1, T_SPORT, 0);
	CHECK_WHY("no_media", "is it sent");
	env.iface[0].up = false;
	CHECK_WHY("no_media", "one is gone");
	env.iface[0].up = true;
	send_media(T_SPORT, 1, 1, S);
	CHECK_WHY("no_message", "1 packets have left");
	t_media(other, T_SPORT + 4, 1, 1);
	CHECK_EQ(deliver(p, t_message(p, other, &m), S, NULL), REFUSE_FLOW_UNKNOWN);
	CHECK_WHY("no_message", "addresses translated?");
	t_media(other, T_SPORT, 1, 9);
	CHECK_EQ(deliver(p, t_message(p, other, &m), S, NULL), REFUSE_QUOTE_UNKNOWN);
	CHECK_WHY("unproven", "quote_unknown");
	CHECK_EQ(say(&m, S), REFUSE_NONE);
	CHECK_WHY("advice", "0.500 Mbit/s (1.0 s ago), the least of 1 router");
	m = msg(0xDEF, 1, 1.0, 600000);
	CHECK_EQ(say(&m, S), REFUSE_NONE);
	CHECK_WHY("advice", "2 routers");
	m = msg(0xABC, 2, 1.0, 1000);
	CHECK_EQ(say(&m, S), REFUSE_NONE);
	CHECK_WHY("floor", "less than the floor of 0.010");
	m = msg(0xABC, 3, 1.0, 1e7);
	CHECK_EQ(say(&m, S), REFUSE_NONE);
	m = msg(0xDEF, 2, 1.0, 1e7);
	CHECK_EQ(say(&m, S), REFUSE_NONE);
	CHECK_WHY("ceiling", "more than the 1.000 Mbit/s");
	engine_expire(&eng, f, 5 * S);
	env.now_ns = 6 * S;
	CHECK_WHY("expired", "silent for 5.0 s");
	CHECK_WHY("expired", "some were refused");

	setup(NULL);
	f = add(1, T_SPORT, T_SSRC);
	flap(f, &now, 40, 250 * MS, 200000, 800000);
	env.now_ns = now;
	CHECK_WHY("damped", "slowly rising");
	engine_expire(&eng, f, now + 10 * S);
	CHECK_WHY("expired", "its messages are lost");
}

/* Requests and events, with and without everything that may be missing. */
static void test_views(void)
{
	static const char *const lines[] = {"show",  "flows",	"routers",
					    "stats", "capture", "reload"};
	struct request_env env = {.now_ns = 2 * S, .start_ns = S};
	struct engine_params params = engine_defaults;
	struct paqm_msg m = msg(0xABC, 1, 0.5, 500000);
	struct verdict v = {.refuse = REFUSE_IP_CUT};
	uint8_t big[REQUEST_PACKET_MAX + 9] = {0xAB};
	enum request_act act, acts = 0;
	char line[64];
	struct flow *f;
	json_t *o;
	size_t i;

	params.use = ALLOW_USE_ECF;
	params.require_auth = true;
	setup(&params);
	f = add(1, T_SPORT, 0);
	f->has_status = true;
	f->status.qp = 30;
	send_media(T_SPORT, 1, 1, S);
	CHECK_EQ(say(&m, S), REFUSE_AUTH_MISSING);
	for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		snprintf(line, sizeof(line), "{\"cmd\": \"%s\"}", lines[i]);
		o = request_answer(&eng, &env, line, strlen(line), &act);
		CHECK(json_is_true(json_object_get(o, "ok")));
		acts |= act;
		if (i == 1)
			CHECK_EQ(json_integer_value(json_object_get(
					 json_object_get(
						 json_array_get(json_object_get(o, "flows"), 0),
						 "status"),
					 "qp")),
				 30);
		if (i == 3)
			CHECK(json_is_true(
				json_object_get(json_object_get(o, "stats"), "require_auth")));
		json_decref(o);
	}
	CHECK_EQ(acts, REQUEST_CAPTURE | REQUEST_RELOAD);
	o = request_event_verdict(&eng, &v, S);
	CHECK(!json_object_get(o, "seq") && !json_object_get(o, "flow"));
	CHECK(!strcmp(json_string_value(json_object_get(o, "reason")), "ip_cut"));
	json_decref(o);
	o = request_event_packet(&v, big, sizeof(big), S);
	CHECK_EQ(strlen(json_string_value(json_object_get(o, "ip"))), 2 * REQUEST_PACKET_MAX);
	CHECK(!strncmp(json_string_value(json_object_get(o, "ip")), "ab00", 4));
	json_decref(o);
	o = request_reloaded(NULL);
	CHECK(json_is_true(json_object_get(o, "ok")));
	json_decref(o);
	o = request_reloaded("line 1");
	CHECK(!strcmp(json_string_value(json_object_get(o, "error")), "line 1"));
	json_decref(o);
	/* what is no text does not cost the answer */
	o = request_reloaded("line 1: \xE2\x82 is no word");
	CHECK(!strcmp(json_string_value(json_object_get(o, "error")), "line 1: ?? is no word"));
	json_decref(o);
	CHECK(!strcmp(refuse_name(REFUSE_MAX), "unknown"));
}

/* 64 routers of a host: one more finds no room, until one has been silent for long. */
static void test_many_routers(void)
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

/* The encoder refuses what no decoder takes; the decoder refuses every other length. */
static void test_lengths(void)
{
	uint8_t quoted[PAQM_QUOTE_MAX + 1] = {0x45}, buf[PAQM_MSG_MAX + 8];
	struct paqm_msg m = msg(1, 1, 1.0, 500000), out;
	struct paqm_quote q;
	uint32_t len, got;

	quoted[9] = 17;
	for (len = 0; len < sizeof(quoted); len++) {
		got = paqm_icmp_encode(buf, PAQM_ICMP_TYPE_EXP, quoted, len, &m);
		CHECK_EQ(got, len < 28 || len > PAQM_QUOTE_MAX ? 0 : 8 + len + 48);
	}
	quoted[0] = 0x60;
	quoted[6] = 17;
	for (len = 0; len < sizeof(quoted); len++) {
		got = paqm_icmp6_encode(buf, PAQM_ICMP6_TYPE_EXP, media, media, quoted, len, &m);
		CHECK_EQ(got, len < 48 || len > 76 ? 0 : 8 + len + 48);
		if (got)
			CHECK_EQ(paqm_icmp6_decode(buf, got, PAQM_ICMP6_TYPE_EXP, media, media,
						   &out, &q),
				 PAQM_MSG_OK);
	}
	for (len = 0; len <= PAQM_MSG_MAX + 1; len++) {
		memset(buf, 0, sizeof(buf));
		buf[0] = PAQM_ICMP6_TYPE_EXP;
		CHECK_EQ(paqm_icmp6_decode(buf, len, PAQM_ICMP6_TYPE_EXP, media, media, &out, &q),
			 len < 104 || len > 152 ? PAQM_MSG_SHORT : PAQM_MSG_CHECKSUM);
	}
	buf[1] = 1;
	CHECK_EQ(paqm_icmp6_decode(buf, 104, PAQM_ICMP6_TYPE_EXP, media, media, &out, &q),
		 PAQM_MSG_TYPE);
	/* whatever a payload claims of extension and CSRC, nothing behind it is read */
	for (len = 0; len <= PAQM_QUOTE_UDP + 4; len++) {
		uint8_t *payload = malloc(len ? len : 1), bytes[PAQM_QUOTE_UDP];
		unsigned int first;

		CHECK(payload);
		for (first = 0; first < 256; first++) {
			memset(payload, 0xFF, len);
			if (len)
				payload[0] = (uint8_t)first;
			got = paqm_rtp_invariant(payload, len, bytes);
			CHECK(got <= len && got <= PAQM_QUOTE_UDP);
		}
		free(payload);
	}
}

/* What a configuration file must be, before its lines count. */
static unsigned int mistakes;
static char mistake[CONF_WHY];

static void note(void *data, unsigned int line, const char *text)
{
	(void)data;
	(void)line;
	mistakes++;
	snprintf(mistake, sizeof(mistake), "%s", text);
}

static void test_conf_file(void)
{
	static const struct {
		const char *line, *fault;
	} bad[] = {
		{"interface 0123456789abcdef", "1 to 15"},
		{"interface a/b", "name of an interface"},
		{"interface \x80\n interface a b", "more than one value"},
		{"user 0123456789012345678901234567890123", "1 to 32"},
		{"group 0123456789012345678901234567890123", "1 to 32"},
		{"socket relative", "absolute path"},
		{"control x", "absolute path"},
		{"keys x", "absolute path"},
		{"require-auth maybe", "yes or no"},
		{"sandbox 1", "yes or no"},
		{"verbose true", "yes or no"},
		{"use both", "erf or ecf"},
		{"use ecf\nuse erf", "once only"},
		{"interface a\ninterface a", "once only"},
		{"nothing 1", "unknown setting"},
		{"use", "no value"},
		{"use erf\x01", "control character"},
	};
	char dir[] = "/tmp/paqmd-unit-XXXXXX", path[64], why[CONF_WHY];
	uint32_t seen = 0;
	struct conf c;
	unsigned int i;
	FILE *f;

	conf_default(&c);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		mistakes = 0;
		CHECK_EQ(conf_parse(&c, bad[i].line, strlen(bad[i].line), note, NULL), mistakes);
		CHECK(mistakes);
		if (!strstr(mistake, bad[i].fault)) {
			fprintf(stderr, "conf '%s': %s\n", bad[i].line, mistake);
			failures++;
		}
	}
	CHECK(!conf_set(&c, CONF_USER, "", &seen, why));
	CHECK(!conf_set(&c, CONF_INTERFACE, "", &seen, why));
	for (i = 0; i < CONF_IFACES + 1; i++) {
		char name[8];

		snprintf(name, sizeof(name), "e%u", i);
		CHECK_EQ(conf_set(&c, CONF_INTERFACE, name, &seen, why), i < CONF_IFACES);
	}
	setenv("PAQM_SOCKET", "", 1);
	setenv("PAQM_CONTROL", "/x", 1);
	conf_default(&c);
	CHECK(!strcmp(c.socket, PAQM_IPC_PATH) && !strcmp(c.control, "/x"));

	CHECK(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/conf", dir);
	mistakes = 0;
	CHECK_EQ(conf_load(&c, path, false, note, NULL), 0);
	CHECK_EQ(conf_load(&c, path, true, note, NULL), 1);
	CHECK(strstr(mistake, "No such file"));
	CHECK_EQ(conf_load(&c, dir, false, note, NULL), 1);
	CHECK(strstr(mistake, "directory"));
	f = fopen(path, "w");
	CHECK(f && fputs("use ecf # relative\n\nverbose yes", f) > 0 && !fclose(f));
	CHECK_EQ(conf_load(&c, path, true, note, NULL), 0);
	CHECK(c.use == ALLOW_USE_ECF && c.verbose);
	CHECK(!truncate(path, CONF_FILE_MAX + 1));
	CHECK_EQ(conf_load(&c, path, true, note, NULL), 1);
	CHECK(strstr(mistake, "64 KiB"));
	unlink(path);
	rmdir(dir);
}

/* Every reason has a name and has been provoked above. */
static void test_all_reasons(void)
{
	unsigned int i;

	for (i = 0; i < REFUSE_MAX; i++) {
		if (!seen[i])
			fprintf(stderr, "never provoked: %s\n", refuse_name((enum refuse)i));
		CHECK(seen[i]);
	}
}

int main(void)
{
	test_siphash();
	test_ring();
	test_ecf_vectors();
	test_erf_vectors();
	test_heal();
	test_windup();
	test_flapping();
	test_expiry();
	test_ip_refusals();
	test_msg_refusals();
	test_flow_and_quote();
	test_quench();
	test_extension();
	test_sequence();
	test_keys();
	test_mutations();
	test_keys_file();
	test_keys_load();
	test_limits();
	test_ecf_engine();
	test_register();
	test_reuse();
	test_tables();
	test_ipv6();
	test_records();
	test_requests();
	test_why();
	test_views();
	test_many_routers();
	test_lengths();
	test_conf_file();
	test_all_reasons();
	engine_free(&eng);
	if (failures)
		fprintf(stderr, "%u checks failed\n", failures);
	return failures ? 1 : 0;
}
