// SPDX-License-Identifier: GPL-2.0
/* What a quoted packet proves: options, header extensions, messages that come early. See unit.h. */
#include "unit.h"

/* Packets that are answered, too: with options, and with just enough payload. */
TEST(test_quotes)
{
	struct paqm_msg m = msg(1, 1, 0.9, 500000);
	uint8_t with[T_MEDIA + 40], p[T_MESSAGE];
	uint32_t len, bytes;

	setup(NULL);
	add(1, T_SPORT, T_SSRC);
	t_media(media, T_SPORT, T_SSRC, 1);
	memcpy(with, media, 20);
	memset(with + 20, 1, 40);
	memcpy(with + 60, media + 20, T_MEDIA - 20);
	with[0] = 0x4F;
	paqm_put16(with + 2, sizeof(with));
	engine_media(&eng, with, sizeof(with), S);
	CHECK_EQ(eng.media, 1);
	CHECK_EQ(about(with, &m), REFUSE_NONE);

	/* one byte less proves nothing, and is asked for in vain */
	for (bytes = 28; bytes >= 27; bytes--) {
		t_media(media, T_SPORT, T_SSRC, 2);
		paqm_put16(media + 2, (uint16_t)(20 + 8 + bytes));
		paqm_put16(media + 24, (uint16_t)(8 + bytes));
		engine_media(&eng, media, T_MEDIA, S);
		CHECK_EQ(eng.media, 2);
		m.seq++;
		len = paqm_icmp_encode(p + 20, PAQM_ICMP_TYPE_EXP, media, 20 + 8 + bytes, &m);
		t_ip(p, 1, 20 + len, T_ROUTER, T_SADDR);
		/* the word is filled up with zeros */
		CHECK_EQ(deliver(p, 20 + len, S, NULL),
			 bytes == 28 ? REFUSE_NONE : REFUSE_QUOTE_UNKNOWN);
	}
}

/* A message comes before its packet. Return: whether it waits. */
static bool say_early(uint64_t router, uint64_t now)
{
	struct paqm_msg m = msg(router, 1, 0.9, 500000);
	struct verdict v;
	uint8_t ip[T_MESSAGE];

	engine_message(&eng, ip, t_message(ip, media, &m), now, &v);
	CHECK_EQ(v.refuse, REFUSE_QUOTE_UNKNOWN);
	return v.waits;
}

/* The next that has waited is judged: @why; REFUSE_MAX: there is none. */
static void again(uint64_t now, enum refuse why)
{
	struct verdict v = {.refuse = REFUSE_MAX};
	struct early m;

	if (engine_waited(&eng, now, &m))
		engine_again(&eng, &m, now, &v);
	CHECK_EQ(v.refuse, why);
	CHECK(!v.waits);
}

/* The queue that tells is this host's own: its messages are there before the packets are. */
TEST(test_early)
{
	struct flow *f;
	unsigned int i;

	setup(NULL);
	f = add(1, T_SPORT, T_SSRC);
	CHECK_EQ(engine_next(&eng), UINT64_MAX);
	t_media(media, T_SPORT, T_SSRC, 1);
	/* of two routers about one packet, and nothing is counted yet */
	CHECK(say_early(1, S));
	CHECK(say_early(2, S + 10 * MS));
	CHECK_EQ(engine_next(&eng), S + 250 * MS);
	again(S + 249 * MS, REFUSE_MAX);
	CHECK_EQ(eng.refused[REFUSE_QUOTE_UNKNOWN] + f->refused + f->accepted, 0);
	/* another packet proves neither */
	send_media(T_SPORT, T_SSRC, 2, S + 100 * MS);
	again(S + 100 * MS, REFUSE_MAX);
	send_media(T_SPORT, T_SSRC, 1, S + 200 * MS);
	again(S + 200 * MS, REFUSE_NONE);
	again(S + 200 * MS, REFUSE_NONE);
	again(S + 200 * MS, REFUSE_MAX);
	CHECK_EQ(f->accepted, 2);
	CHECK_EQ(eng.refused[REFUSE_QUOTE_UNKNOWN], 0);

	/* a packet that the queue drops proves nothing, and is waited for no longer than that */
	t_media(media, T_SPORT, T_SSRC, 3);
	CHECK(say_early(3, 2 * S));
	again(2 * S + 250 * MS, REFUSE_QUOTE_UNKNOWN);
	CHECK_EQ(eng.refused[REFUSE_QUOTE_UNKNOWN], 1);
	send_media(T_SPORT, T_SSRC, 3, 2 * S + 251 * MS);
	again(2 * S + 251 * MS, REFUSE_MAX);

	/* who guesses fills the places, for so long; what finds none is refused at once */
	for (i = 0; i < ENGINE_EARLY; i++) {
		t_media(media, T_SPORT, T_SSRC, (uint16_t)(100 + i));
		CHECK(say_early(4, 3 * S));
	}
	CHECK(!say_early(4, 3 * S));
	CHECK_EQ(eng.refused[REFUSE_QUOTE_UNKNOWN], 2);
	for (i = 0; i < ENGINE_EARLY; i++)
		again(4 * S, REFUSE_QUOTE_UNKNOWN);
	again(4 * S, REFUSE_MAX);
	CHECK(say_early(4, 4 * S));
	/* the flow has gone meanwhile */
	engine_unregister(&eng, f);
	again(5 * S, REFUSE_FLOW_UNKNOWN);
}

/* Media packet @seq with a header extension of so many words. */
static void extended(uint16_t seq, uint16_t words)
{
	t_media(media, T_SPORT, T_SSRC, seq);
	media[28] |= 0x10;
	paqm_put16(media + 40, 0xBEDE);
	paqm_put16(media + 42, words);
}

/* A header extension proves as the rest does; but routers write into a field of ours. */
TEST(test_extension)
{
	const struct paqm_field field = {.rate = 0x49742400, .nonce = 77},
				lower = {.rate = 0x48742400};
	struct paqm_msg m = msg(1, 1, 0.9, 500000);
	uint8_t sent[T_MEDIA];
	unsigned int i, believed = 0;

	setup(NULL);
	add(1, T_SPORT, T_SSRC);
	extended(1, 2);
	engine_media(&eng, media, T_MEDIA, S);
	CHECK_EQ(t_quote(media), 28 + 12 + 12 + 16);
	/* nobody guesses the rest: not one byte of extension and payload may be another */
	memcpy(sent, media, T_MEDIA);
	for (i = 28 + 12; i < t_quote(sent); i++) {
		if (i == 42 || i == 43) /* its length */
			continue;
		media[i] ^= 0xFF;
		believed += about(media, &m) == REFUSE_NONE;
		media[i] ^= 0xFF;
	}
	CHECK_EQ(believed, 0);
	CHECK_EQ(about(media, &m), REFUSE_NONE);

	/* a field in there is lowered between sender and router */
	extended(2, 4);
	paqm_put16(media + 24, 8 + 12 + 4 + 16 + 16);
	paqm_put16(media + 2, 20 + 8 + 12 + 4 + 16 + 16);
	media[44] = 0x1E;
	paqm_field_encode(media + 45, &field);
	CHECK_EQ(t_quote(media), 28 + 12 + 4 + 16 + 16);
	engine_media(&eng, media, 28 + 12 + 4 + 16 + 16, S);
	CHECK_EQ(eng.media, 2);
	m.seq++;
	paqm_field_lower(media + 20, 45 - 28, &lower, 0);
	CHECK_EQ(about(media, &m), REFUSE_NONE);
	m.seq++;
	media[45 + PAQM_FIELD_NONCE] ^= 1;
	CHECK_EQ(about(media, &m), REFUSE_QUOTE_UNKNOWN);

	/* a header that is longer than a quote proves nothing */
	extended(3, 30);
	engine_media(&eng, media, T_MEDIA, S);
	CHECK_EQ(eng.media, 2);
}
