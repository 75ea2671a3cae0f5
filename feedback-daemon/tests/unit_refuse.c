// SPDX-License-Identifier: GPL-2.0
/* Refusals: every reason, sequence and boot, mutations. See unit.h. */
#include <stdlib.h>

#include "unit.h"

TEST(test_ip_refusals)
{
	struct paqm_msg m = msg(1, 1, 0.9, 500000);
	uint8_t good[T_MESSAGE], p[T_MESSAGE];
	uint32_t len;
	struct verdict v;

	begin(NULL);
	len = t_message(good, media, &m);

	CHECK_EQ(deliver(good, 19, S, NULL), REFUSE_IP_CUT);
	CHECK_EQ(deliver(good, len - 1, S, &v), REFUSE_IP_CUT);
	CHECK(addr_is_v4(&v.addr) && paqm_get32(v.addr.b + 12) == T_ROUTER);
	CHECK_EQ(damaged(good, len, 0, 0x44), REFUSE_IP_HEADER);
	CHECK_EQ(damaged(good, len, 0, 0x55), REFUSE_IP_HEADER);
	CHECK_EQ(damaged(good, len, 3, 19), REFUSE_IP_HEADER);
	CHECK_EQ(damaged(good, len, 8, 63), REFUSE_IP_CHECKSUM);
	CHECK_EQ(changed(good, len, 6, 0x20), REFUSE_IP_FRAGMENT); /* more fragments */
	CHECK_EQ(changed(good, len, 7, 1), REFUSE_IP_FRAGMENT);	   /* offset */
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

TEST(test_msg_refusals)
{
	struct paqm_msg m = msg(1, 1, 0.9, 500000);
	uint8_t good[T_MESSAGE], p[T_MESSAGE];
	uint32_t len, obj;

	begin(NULL);
	len = t_message(good, media, &m);
	obj = 20 + 8 + t_quote(media) + PAQM_EXT_HDR;

	memcpy(p, good, len);
	paqm_put16(p + 2, 20 + 8 + 27 + 48);
	t_seal(p, 20 + 8 + 27 + 48);
	CHECK_EQ(deliver(p, 20 + 8 + 27 + 48, S, NULL), REFUSE_MSG_SHORT);
	CHECK_EQ(changed(good, len, 20, 3), REFUSE_MSG_TYPE); /* destination unreachable */
	CHECK_EQ(damaged(good, len, obj + 35, good[obj + 35] ^ 1), REFUSE_MSG_CHECKSUM);
	CHECK_EQ(changed(good, len, obj + 4, 'Q'), REFUSE_MSG_MAGIC);
	CHECK_EQ(changed(good, len, obj + 8, 3), REFUSE_MSG_VERSION);
	CHECK_EQ(changed(good, len, 28 + 9, 6), REFUSE_MSG_QUOTE); /* about TCP */
	/* an option that must be known */
	CHECK_EQ(changed(good, len, obj + PAQM_OBJ_FIXED, 0x80), REFUSE_MSG_OPTION);
	memcpy(p, good, len);
	paqm_put32(p + obj + PAQM_OBJ_FIXED + PAQM_OPT_HDR, 0x7FC00000); /* NaN */
	t_seal(p, len);
	CHECK_EQ(deliver(p, len, S, NULL), REFUSE_MSG_VALUE);
	memcpy(p, good, len);
	paqm_put64(p + obj + 28, PAQM_VALUE_MAX + 1);
	t_seal(p, len);
	CHECK_EQ(deliver(p, len, S, NULL), REFUSE_MSG_VALUE);
	/* version 1 says its value twice */
	len = t_message1(p, media, &m);
	paqm_put32(p + 24, t_f32(0.1));
	t_seal(p, len);
	CHECK_EQ(deliver(p, len, S, NULL), REFUSE_MSG_MISMATCH);
	CHECK_EQ(eng.accepted, 0);
	len = t_message(good, media, &m);
	CHECK_EQ(deliver(good, len, S, NULL), REFUSE_NONE);
}

/* Routers that have not learnt version 2 yet are understood; and what they quote must prove, too.
 */
TEST(test_version1)
{
	struct paqm_msg m = msg(1, 1, 0.9, 500000);
	uint8_t p[T_MESSAGE];
	struct verdict v;
	struct flow *f;

	f = begin(NULL);
	CHECK_EQ(deliver(p, t_message1(p, media, &m), S, &v), REFUSE_NONE);
	CHECK_EQ(v.msg.version, 1);
	CHECK_EQ(f->rate.rate_bps, 500000);
	/* one sequence for both */
	CHECK_EQ(deliver(p, t_message(p, media, &m), S, &v), REFUSE_SEQ_REPLAY);
	CHECK_EQ(v.msg.version, 2);
	m.seq++;
	CHECK_EQ(deliver(p, t_message(p, media, &m), S, &v), REFUSE_NONE);
	/* of a packet with a header extension it quotes what can be guessed, and no more */
	t_media(media, T_SPORT, T_SSRC, 2);
	media[28] |= 0x10;
	paqm_put16(media + 40, 0xBEDE);
	paqm_put16(media + 42, 2);
	engine_media(&eng, media, T_MEDIA, S);
	m.seq++;
	CHECK_EQ(deliver(p, t_message1(p, media, &m), S, &v), REFUSE_QUOTE_SHORT);
	CHECK_EQ(deliver(p, t_message(p, media, &m), S, &v), REFUSE_NONE);
}

TEST(test_flow_and_quote)
{
	struct paqm_msg m = msg(1, 1, 0.9, 500000);
	struct flow *f, *g;
	uint8_t p[T_MESSAGE], other[T_MEDIA];
	uint32_t len;

	setup(NULL);
	f = add(1, T_SPORT, T_SSRC);
	g = add(2, T_SPORT + 2, 0);
	send_media(T_SPORT, T_SSRC, 1, S);

	/* (b) */
	t_media(other, T_SPORT + 4, T_SSRC, 1);
	CHECK_EQ(about(other, &m), REFUSE_FLOW_UNKNOWN);
	t_media(other, T_SPORT, T_SSRC + 1, 1);
	CHECK_EQ(about(other, &m), REFUSE_FLOW_SSRC);
	/* (c): all is right except one byte of payload, or the packet was never sent */
	t_media(other, T_SPORT, T_SSRC, 1);
	other[28 + 27] ^= 1;
	CHECK_EQ(about(other, &m), REFUSE_QUOTE_UNKNOWN);
	t_media(other, T_SPORT, T_SSRC, 2);
	CHECK_EQ(about(other, &m), REFUSE_QUOTE_UNKNOWN);
	/* the same bytes in another flow do not prove this one */
	CHECK_EQ(g->packets, 0);
	t_media(other, T_SPORT + 2, T_SSRC, 1);
	CHECK_EQ(about(other, &m), REFUSE_QUOTE_UNKNOWN);
	/* a shorter quote of a sent packet proves nothing */
	len = paqm_icmp_encode(p + 20, PAQM_ICMP_TYPE_EXP, media, 20 + 8 + 24, &m);
	t_ip(p, 1, 20 + len, T_ROUTER, T_SADDR);
	CHECK_EQ(deliver(p, 20 + len, S, NULL), REFUSE_QUOTE_SHORT);
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

/* Carrier quench: the same checks; without object only if that is allowed. */
TEST(test_quench)
{
	struct engine_params p = engine_defaults;
	struct paqm_msg m = msg(1, 1, 0.9, 500000);
	uint8_t ip[T_MESSAGE], other[T_MEDIA];
	struct flow *f;
	uint32_t len;

	f = begin(NULL);
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
	m.rate = 200000;
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
	/* it has no tag, and may need one */
	use_keys("7 1 " KEY_A);
	CHECK_EQ(deliver(ip, t_bare(ip, media, t_f32(0.5)), 5 * S, NULL), REFUSE_NONE);
	use_keys("* 1 " KEY_A);
	CHECK_EQ(deliver(ip, t_bare(ip, media, t_f32(0.5)), 5 * S, NULL), REFUSE_AUTH_MISSING);
	p.require_auth = true;
	setup(&p);
	add(1, T_SPORT, T_SSRC);
	CHECK_EQ(deliver(ip, t_bare(ip, media, t_f32(0.5)), 5 * S, NULL), REFUSE_AUTH_MISSING);
}

TEST(test_sequence)
{
	static const struct {
		uint32_t boot, seq;
		enum refuse want;
	} later[] = {
		/* the counter wraps; half the circle away is old */
		{7, 0x7FFFFFFF, REFUSE_NONE},
		{7, 0xFFFFFFFE, REFUSE_NONE},
		{7, 3, REFUSE_NONE},
		{7, 0xFFFFFFFF, REFUSE_SEQ_STALE},
		/* a restarted router begins anew; messages from before are not believed any more */
		{8, 1, REFUSE_NONE},
		{7, 100, REFUSE_BOOT_OLD},
		/* a new boot nonce alone is no proof */
		{9, 1, REFUSE_QUOTE_UNKNOWN},
		{8, 2, REFUSE_NONE},
	};
	struct paqm_msg m = msg(1, 5, 0.9, 500000);
	struct flow *f, *g;
	size_t i;

	f = begin(NULL);
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
	for (i = 0; i < ROWS(later); i++) {
		m.boot = later[i].boot;
		m.seq = later[i].seq;
		media[28 + 20] ^= later[i].want == REFUSE_QUOTE_UNKNOWN;
		CHECK_EQ(say(&m, S), later[i].want);
		media[28 + 20] ^= later[i].want == REFUSE_QUOTE_UNKNOWN;
	}
	CHECK_EQ(f->rate.routers, 2);
	CHECK_EQ(eng.routers[1].refused, 2);
}

/* With a key no bit of a message can be changed so that it is believed. */
TEST(test_mutations)
{
	struct paqm_msg m = msg(0xA1, 1, 0.9, 500000);
	uint8_t a[16], own[16], good[T_MESSAGE], p[T_MESSAGE];
	struct addr sender = {{[10] = 0xFF, [11] = 0xFF, 10, 0, 1, 2}};
	uint64_t accepted;
	uint32_t len, bit;

	memset(a, 0x0f, sizeof(a));
	setup(NULL);
	add(1, T_SPORT, T_SSRC);
	use_keys("* 7 " KEY_A);
	send_media(T_SPORT, T_SSRC, 1, S);
	keys_derive(a, &sender, own);
	t_tag(&m, media, 7, own);
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

/* The encoder refuses what no decoder takes; the decoder refuses every other length. */
TEST(test_lengths)
{
	uint8_t quoted[PAQM_QUOTE_MAX + 1] = {0x45}, buf[PAQM_MSG_MAX + 8];
	struct paqm_msg m = msg(1, 1, 0, 500000), out;
	struct paqm_quote q;
	uint32_t len, got;

	quoted[9] = 17;
	for (len = 0; len < sizeof(quoted); len++) {
		got = paqm_icmp_encode(buf, PAQM_ICMP_TYPE_EXP, quoted, len, &m);
		CHECK_EQ(got,
			 len < 28 || len > PAQM_QUOTE_MAX ? 0 : 8 + (len + 3) / 4 * 4 + 4 + 44);
		CHECK(!got || got == paqm_icmp_len(0, len, &m));
	}
	quoted[0] = 0x60;
	quoted[6] = 17;
	for (len = 0; len < sizeof(quoted); len++) {
		got = paqm_icmp6_encode(buf, PAQM_ICMP6_TYPE_EXP, media, media, quoted, len, &m);
		CHECK_EQ(got, len < 48 || len > 176 ? 0 : 8 + (len + 7) / 8 * 8 + 4 + 44);
		CHECK(!got || got == paqm_icmp_len(1, len, &m));
		if (got)
			CHECK_EQ(paqm_icmp6_decode(buf, got, media, media, &out, &q), PAQM_MSG_OK);
	}
	for (len = 0; len <= PAQM_MSG_MAX + 1; len++) {
		memset(buf, 0, sizeof(buf));
		buf[0] = PAQM_ICMP6_TYPE_EXP;
		CHECK_EQ(paqm_icmp6_decode(buf, len, media, media, &out, &q),
			 len < 104 || len > PAQM_MSG_MAX ? PAQM_MSG_SHORT : PAQM_MSG_CHECKSUM);
	}
	buf[1] = 1;
	CHECK_EQ(paqm_icmp6_decode(buf, 104, media, media, &out, &q), PAQM_MSG_TYPE);
	/* whatever a payload claims of extension and CSRC, nothing behind it is read */
	for (len = 0; len <= PAQM_PROOF_MAX + 4; len++) {
		uint8_t *payload = malloc(len ? len : 1), bytes[PAQM_PROOF_MAX];
		unsigned int first;

		CHECK(payload);
		for (first = 0; first < 256; first++) {
			memset(payload, first & 1 ? 0xFF : 0, len);
			if (len)
				payload[0] = (uint8_t)first;
			got = paqm_proof(payload, len, bytes);
			CHECK(got <= len && got <= PAQM_PROOF_MAX);
		}
		free(payload);
	}
}
