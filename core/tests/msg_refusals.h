/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Feedback message codec: every refusal, mutation of every byte, options and objects that are yet
 * to come, version 1. As msg_vectors.h, which includes this.
 */
#ifndef PAQM_MSG_REFUSALS_H
#define PAQM_MSG_REFUSALS_H

#include "msg_kit.h"

/* One byte of a good message is changed: of the message, the extension structure or our object. */
struct vec_spoil {
	const char *what;
	enum { VEC_MSG, VEC_EXT, VEC_OBJ } part;
	unsigned int offset;
	paqm_u8 byte;
	enum paqm_msg_err want;
};

static const struct vec_spoil spoils[] = {
	{"type", VEC_MSG, 0, 3, PAQM_MSG_TYPE},
	{"code", VEC_MSG, 1, 1, PAQM_MSG_TYPE},
	{"extension structure of version 1", VEC_EXT, 0, 0x10, PAQM_MSG_MAGIC},
	{"reserved bits of the extension structure", VEC_EXT, 0, 0x2F, PAQM_MSG_OK},
	{"object of no bytes", VEC_OBJ, 1, 0, PAQM_MSG_MAGIC},
	{"object of 3 bytes", VEC_OBJ, 1, 3, PAQM_MSG_MAGIC},
	{"object beyond the message", VEC_OBJ, 1, 65, PAQM_MSG_MAGIC},
	{"object far beyond the message", VEC_OBJ, 0, 4, PAQM_MSG_MAGIC},
	{"another class", VEC_OBJ, 2, 1, PAQM_MSG_MAGIC},
	{"another type", VEC_OBJ, 3, 2, PAQM_MSG_MAGIC},
	{"magic", VEC_OBJ, 4, 'Q', PAQM_MSG_MAGIC},
	{"version 0", VEC_OBJ, 8, 0, PAQM_MSG_VERSION_ERR},
	{"version 1 in an object", VEC_OBJ, 8, 1, PAQM_MSG_VERSION_ERR},
	{"version 3", VEC_OBJ, 8, 3, PAQM_MSG_VERSION_ERR},
	{"object shorter than version 2", VEC_OBJ, 1, 43, PAQM_MSG_VERSION_ERR},
	{"tag without flag", VEC_OBJ, 9, PAQM_F_FINAL, PAQM_MSG_OPTION},
	{"option beyond the object", VEC_OBJ, 47, 17, PAQM_MSG_OPTION},
	{"relative value of 3 bytes", VEC_OBJ, 47, 3, PAQM_MSG_OPTION},
	{"tag of 7 bytes", VEC_OBJ, 55, 7, PAQM_MSG_OPTION},
	{"tag of 9 bytes", VEC_OBJ, 55, 9, PAQM_MSG_OPTION},
	{"unknown option that must be known", VEC_OBJ, 44, 0xC0, PAQM_MSG_OPTION},
	{"relative value negative", VEC_OBJ, 48, 0xBF, PAQM_MSG_VALUE},
	{"relative value too large", VEC_OBJ, 48, 0x7F, PAQM_MSG_VALUE},
	{"rate above 10^12", VEC_OBJ, 28, 1, PAQM_MSG_VALUE},
};

static const struct vec_spoil spoils4[] = {
	{"no quote", VEC_MSG, 5, 0, PAQM_MSG_MAGIC},
	{"quote of a word less", VEC_MSG, 5, 13, PAQM_MSG_MAGIC},
	{"quote of a word more", VEC_MSG, 5, 15, PAQM_MSG_MAGIC},
	{"quote beyond the message", VEC_MSG, 5, 255, PAQM_MSG_MAGIC},
	{"what IPv6 has the length in", VEC_MSG, 4, 9, PAQM_MSG_OK},
	{"quoted IPv6", VEC_MSG, 8, 0x65, PAQM_MSG_QUOTE},
	{"quoted TCP", VEC_MSG, 8 + 9, 6, PAQM_MSG_QUOTE},
	{"quoted header too short", VEC_MSG, 8, 0x44, PAQM_MSG_QUOTE},
	{"quoted header beyond the quote", VEC_MSG, 8, 0x4F, PAQM_MSG_QUOTE},
	{"quoted later fragment", VEC_MSG, 8 + 7, 1, PAQM_MSG_QUOTE},
	{"quoted first fragment", VEC_MSG, 8 + 6, 0x20, PAQM_MSG_OK},
};

static const struct vec_spoil spoils6[] = {
	{"no quote", VEC_MSG, 4, 0, PAQM_MSG_MAGIC},
	{"quote of a word less", VEC_MSG, 4, 9, PAQM_MSG_MAGIC},
	{"quote of a word more", VEC_MSG, 4, 11, PAQM_MSG_MAGIC},
	{"quote beyond the message", VEC_MSG, 4, 255, PAQM_MSG_MAGIC},
	{"what IPv4 has the length in", VEC_MSG, 5, 14, PAQM_MSG_OK},
	{"quoted IPv4", VEC_MSG, 8, 0x45, PAQM_MSG_QUOTE},
	{"quoted TCP", VEC_MSG, 8 + 6, 6, PAQM_MSG_QUOTE},
	{"quoted fragment header", VEC_MSG, 8 + 6, 44, PAQM_MSG_QUOTE},
	{"type of version 1", VEC_MSG, 0, PAQM_ICMP6_TYPE_OLD, PAQM_MSG_TYPE},
};

static void spoil(int v6, const paqm_u8 *good, unsigned int len, const struct vec_spoil *s,
		  unsigned int n)
{
	paqm_u8 buf[PAQM_MSG_MAX];
	unsigned int i, at;

	for (i = 0; i < n; i++) {
		at = s[i].part == VEC_MSG ? 0 : ext_of(good, v6);
		at += s[i].part == VEC_OBJ ? PAQM_EXT_HDR : 0;
		memcpy(buf, good, len);
		buf[at + s[i].offset] = s[i].byte;
		seal(buf, len, v6);
		EXPECT(s[i].what, decode(buf, len, v6), s[i].want);
	}
}

#define SPOIL(v6, good, len, list) spoil(v6, good, len, list, sizeof(list) / sizeof(list[0]))

/* Nothing that is cut or changed is believed; with right checksums nothing is read beyond it. */
static void mutate(int v6, const paqm_u8 *good, unsigned int len)
{
	paqm_u8 buf[PAQM_MSG_MAX];
	unsigned int i, bit;

	for (i = 0; i < len; i++) {
		if (i < PAQM_ICMP_HDR + VEC_HLEN(v6) + 8 + PAQM_EXT_HDR + PAQM_OBJ_FIXED)
			EXPECT("too short", decode(good, i, v6), PAQM_MSG_SHORT);
		EXPECT("truncated", decode(good, i, v6) != PAQM_MSG_OK, 1);
		memcpy(buf, good, len);
		if (i >= PAQM_ICMP_HDR)
			seal(buf, i, v6);
		EXPECT("truncated and sealed", decode(buf, i, v6) != PAQM_MSG_OK, 1);
	}
	for (i = 0; i < len; i++) {
		for (bit = 0; bit < 8; bit++) {
			memcpy(buf, good, len);
			buf[i] ^= (paqm_u8)(1 << bit);
			EXPECT("bit flip", decode(buf, len, v6),
			       i < 2 ? PAQM_MSG_TYPE : PAQM_MSG_CHECKSUM);
			seal_icmp(buf, len, v6);
			decode(buf, len, v6);
			seal(buf, len, v6);
			decode(buf, len, v6);
		}
	}
}

static void refusals(int v6)
{
	unsigned int hlen = VEC_HLEN(v6), len, ext, obj, i;
	static paqm_u8 quote[PAQM_QUOTE_MAX], good[PAQM_MSG_MAX], buf[PAQM_MSG_MAX + 1];
	struct paqm_msg m = sample;

	m.ecf = 0x3F59999A;
	m.flags |= PAQM_F_AUTH;
	m.tag = 1;
	len = encode(good, v6, quote, make_quote(quote, v6, VEC_PLAIN), &m);
	mutate(v6, good, len);
	ext = ext_of(good, v6);
	obj = ext + PAQM_EXT_HDR;
	SPOIL(v6, good, len, spoils);
	if (v6)
		SPOIL(v6, good, len, spoils6);
	else
		SPOIL(v6, good, len, spoils4);
	memcpy(buf, good, len);
	buf[ext + 3] ^= 1;
	seal_icmp(buf, len, v6);
	EXPECT("checksum of the extension structure", decode(buf, len, v6), PAQM_MSG_MAGIC);
	paqm_put16(buf + ext + 2, 0);
	seal_icmp(buf, len, v6);
	EXPECT("no checksum of the extension structure", decode(buf, len, v6), PAQM_MSG_OK);

	m = sample;
	for (i = 0; i < 4; i++) {
		static const paqm_u64 rates[] = {0, 1, PAQM_VALUE_MAX, PAQM_VALUE_MAX + 1};

		m.rate = rates[i];
		len = encode(buf, v6, quote, make_quote(quote, v6, VEC_PLAIN), &m);
		EXPECT("rate", decode(buf, len, v6), i % 3 ? PAQM_MSG_OK : PAQM_MSG_VALUE);
	}
	/* two faults: the first one is named */
	m.rate = 0;
	len = encode(buf, v6, quote, make_quote(quote, v6, VEC_PLAIN), &m);
	buf[obj + 9] |= PAQM_F_AUTH;
	seal(buf, len, v6);
	EXPECT("option before value", decode(buf, len, v6), PAQM_MSG_OPTION);
	buf[8 + (v6 ? 6 : 9)] = 6;
	seal(buf, len, v6);
	EXPECT("quote before option", decode(buf, len, v6), PAQM_MSG_QUOTE);
	buf[obj + 8] = 9;
	seal(buf, len, v6);
	EXPECT("version before quote", decode(buf, len, v6), PAQM_MSG_VERSION_ERR);

	/* 128 bytes of payload are the most, and the zeros of a word */
	len = make_quote(quote, v6, VEC_PLAIN);
	for (i = 0; i < 2; i++) {
		unsigned int quoted = hlen + 8 + PAQM_PROOF_MAX + i * (v6 ? 8 : 4);

		memset(buf, 0, sizeof(buf));
		buf[0] = v6 ? PAQM_ICMP6_TYPE_EXP : PAQM_ICMP_TYPE_EXP;
		buf[v6 ? 4 : 5] = (paqm_u8)(quoted / (v6 ? 8 : 4));
		memcpy(buf + 8, quote, len);
		ext = 8 + quoted;
		buf[ext] = 0x20;
		len = ext + 4 + paqm_object_encode(buf + ext + 4, &sample);
		seal(buf, len, v6);
		EXPECT("bytes of payload", decode(buf, len, v6), i ? PAQM_MSG_QUOTE : PAQM_MSG_OK);
		len = hlen + 8 + VEC_PLAIN;
	}
	EXPECT("too long", decode(buf, PAQM_MSG_MAX + 1, v6), PAQM_MSG_SHORT);
}

static void check_refusals(void)
{
	refusals(0);
}

static void check_refusals6(void)
{
	refusals(1);
}

/* What becomes of a message whose object has the flags @flags and the options @opts. */
static enum paqm_msg_err with_options(int v6, paqm_u8 flags, const char *opts, struct paqm_msg *m)
{
	paqm_u8 object[PAQM_OBJ_MAX + 8], buf[PAQM_MSG_MAX + 8];
	unsigned int n = paqm_object_encode(object, &sample), len, hi = 0, odd = 0;
	enum paqm_msg_err err;
	struct paqm_quote q;

	object[9] = flags;
	for (; *opts; opts++) {
		unsigned int nibble = (unsigned int)(*opts <= '9' ? *opts - '0' : *opts - 'a' + 10);

		if (*opts == ' ')
			continue;
		if (odd)
			object[n++] = (paqm_u8)(hi << 4 | nibble);
		hi = nibble;
		odd = !odd;
	}
	paqm_put16(object, (paqm_u16)n);
	len = assemble(buf, v6, object, n);
	err = decode(buf, len, v6);
	EXPECT("the same wherever it lies", decode_into(buf, len, v6, m, &q), err);
	return err;
}

#define VEC_REL "00010004 3f000000"
#define VEC_TAG "80010008 0102030405060708"
#define VEC_16 "00112233445566778899aabbccddeeff"

/* Options: those of later versions are passed over, unless they must be known. */
static void check_options(void)
{
	static const struct {
		const char *what;
		const char *opts;
		paqm_u8 flags;
		enum paqm_msg_err want;
		paqm_u32 ecf;
	} cases[] = {
		{"none", "", 0, PAQM_MSG_OK, 0},
		{"relative value", VEC_REL, 0, PAQM_MSG_OK, 0x3F000000},
		{"tag", VEC_TAG, PAQM_F_AUTH, PAQM_MSG_OK, 0},
		{"both", VEC_REL VEC_TAG, PAQM_F_AUTH, PAQM_MSG_OK, 0x3F000000},
		{"unknown, empty", "00020000" VEC_REL, 0, PAQM_MSG_OK, 0x3F000000},
		{"unknown, 1 byte", "7fff0001 aa000000" VEC_REL, 0, PAQM_MSG_OK, 0x3F000000},
		{"unknown, padded with other than zeros", "00020003 aabbccdd" VEC_REL, 0,
		 PAQM_MSG_OK, 0x3F000000},
		{"unknown, behind what is known", VEC_REL "00020004 aabbccdd" VEC_TAG, PAQM_F_AUTH,
		 PAQM_MSG_OK, 0x3F000000},
		{"unknown, twice", "00020000 00020000", 0, PAQM_MSG_OK, 0},
		{"as many as there is room for",
		 "0002004c" VEC_16 VEC_16 VEC_16 VEC_16 "00112233445566778899aabb"
		 "00030000",
		 0, PAQM_MSG_OK, 0},
		{"type 0", "00000004 aabbccdd", 0, PAQM_MSG_OK, 0},
		{"must be known", "80020000", 0, PAQM_MSG_OPTION, 0},
		{"must be known, behind what is known", VEC_REL "ffff0000", 0, PAQM_MSG_OPTION, 0},
		{"half a header", "0002", 0, PAQM_MSG_OPTION, 0},
		{"three bytes of a header", "000200", 0, PAQM_MSG_OPTION, 0},
		{"a byte behind the last", VEC_REL "00", 0, PAQM_MSG_OPTION, 0},
		{"value cut", "00020004 aabbcc", 0, PAQM_MSG_OPTION, 0},
		{"value missing", "00020004", 0, PAQM_MSG_OPTION, 0},
		{"absurd length", "0002ffff aabbccdd", 0, PAQM_MSG_OPTION, 0},
		{"length that wraps when it is rounded up", "0002fffd aabbccdd", 0, PAQM_MSG_OPTION,
		 0},
		{"zeros cut", "00020005 aabbccddee 0000", 0, PAQM_MSG_OPTION, 0},
		{"relative value cut", "00010004 3f0000", 0, PAQM_MSG_OPTION, 0},
		{"relative value of 8 bytes", "00010008 3f00000000000000", 0, PAQM_MSG_OPTION, 0},
		{"relative value twice", VEC_REL VEC_REL, 0, PAQM_MSG_OPTION, 0},
		{"tag twice", VEC_TAG VEC_TAG, PAQM_F_AUTH, PAQM_MSG_OPTION, 0},
		{"something behind the tag", VEC_TAG VEC_REL, PAQM_F_AUTH, PAQM_MSG_OPTION, 0},
		{"unknown behind the tag", VEC_TAG "00020000", PAQM_F_AUTH, PAQM_MSG_OPTION, 0},
		{"tag cut", "80010008 01020304050607", PAQM_F_AUTH, PAQM_MSG_OPTION, 0},
		{"tag of 4 bytes", "80010004 01020304", PAQM_F_AUTH, PAQM_MSG_OPTION, 0},
		{"tag of 12 bytes", "8001000c 0102030405060708090a0b0c", PAQM_F_AUTH,
		 PAQM_MSG_OPTION, 0},
		{"tag and no flag", VEC_TAG, 0, PAQM_MSG_OPTION, 0},
		{"flag and no tag", VEC_REL, PAQM_F_AUTH, PAQM_MSG_OPTION, 0},
		{"relative value 0", "00010004 00000000", 0, PAQM_MSG_VALUE, 0},
		{"relative value NaN", "00010004 7fc00001", 0, PAQM_MSG_VALUE, 0},
		{"relative value infinite", "00010004 7f800000", 0, PAQM_MSG_VALUE, 0},
		{"relative value below 2^-20", "00010004 357fffff", 0, PAQM_MSG_VALUE, 0},
		{"relative value 2^-20", "00010004 35800000", 0, PAQM_MSG_OK, 0x35800000},
		{"relative value 10^12", "00010004 5368d4a5", 0, PAQM_MSG_OK, 0x5368D4A5},
		{"relative value above", "00010004 5368d4a6", 0, PAQM_MSG_VALUE, 0},
	};
	unsigned int i;
	struct paqm_msg m;
	int v6;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (v6 = 0; v6 < 2; v6++) {
			EXPECT(cases[i].what, with_options(v6, cases[i].flags, cases[i].opts, &m),
			       cases[i].want);
			if (cases[i].want != PAQM_MSG_OK)
				continue;
			EXPECT(cases[i].what, m.ecf, cases[i].ecf);
			EXPECT(cases[i].what, m.tag,
			       m.flags & PAQM_F_AUTH ? 0x0102030405060708ULL : 0);
			EXPECT(cases[i].what, m.rate, sample.rate);
		}
	}
	/* an object of more than PAQM_OBJ_MAX bytes is of another version */
	EXPECT("too many options",
	       with_options(0, 0, "00020050" VEC_16 VEC_16 VEC_16 VEC_16 VEC_16 "00030000", &m),
	       PAQM_MSG_VERSION_ERR);
}

/* Objects beside ours are passed over. */
static void check_objects(void)
{
	static const paqm_u8 foreign[] = {0, 8, 2, 1, 0xDE, 0xAD, 0xBE, 0xEF}; /* RFC 5837 */
	static const paqm_u8 alien[] = {
		0, 12, PAQM_OBJ_CLASS, PAQM_OBJ_TYPE, 'P', 'A', 'Q', 'N', PAQM_MSG_VERSION, 0,
		0, 0};
	static const paqm_u8 empty[] = {0, 4, PAQM_OBJ_CLASS, PAQM_OBJ_TYPE};
	static const paqm_u8 later[] = {0,   12, PAQM_OBJ_CLASS, PAQM_OBJ_TYPE, 'P', 'A', 'Q',
					'M', 3,	 0xFF,		 0xFF,		0xFF};
	static const paqm_u8 bare[] = {0, 8, PAQM_OBJ_CLASS, PAQM_OBJ_TYPE, 'P', 'A', 'Q', 'M'};
	static const paqm_u8 broken[] = {0, 3, 2, 1};
	static const struct {
		const char *what, *order; /* o: ours, n: ours with another sequence */
		enum paqm_msg_err want;
	} cases[] = {
		{"alone", "o", PAQM_MSG_OK},
		{"foreign before", "fo", PAQM_MSG_OK},
		{"foreign behind", "of", PAQM_MSG_OK},
		{"foreign on both sides", "faof", PAQM_MSG_OK},
		{"of this class, too short for a magic", "eo", PAQM_MSG_OK},
		{"later version before", "lo", PAQM_MSG_OK},
		{"later version behind", "ol", PAQM_MSG_OK},
		{"the first of two counts", "on", PAQM_MSG_OK},
		{"none", "", PAQM_MSG_SHORT},
		{"foreign ones only", "fffffff", PAQM_MSG_MAGIC},
		{"magic and no version", "fffffm", PAQM_MSG_MAGIC},
		{"another magic only", "aaaaa", PAQM_MSG_MAGIC},
		{"later version only", "llllf", PAQM_MSG_VERSION_ERR},
		{"broken before", "bo", PAQM_MSG_MAGIC},
		{"broken behind", "ob", PAQM_MSG_OK},
		{"later version before a broken one", "llllb", PAQM_MSG_VERSION_ERR},
	};
	paqm_u8 objects[2 * PAQM_OBJ_MAX], buf[PAQM_MSG_MAX];
	struct paqm_msg m, want = sample;
	struct paqm_quote q;
	unsigned int i, n, len;
	const char *c;
	int v6;

	want.seq++;
	for (i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
		v6 = i & 1;
		n = 0;
		for (c = cases[i / 2].order; *c; c++) {
			const paqm_u8 *p = *c == 'f'   ? foreign
					   : *c == 'a' ? alien
					   : *c == 'e' ? empty
					   : *c == 'l' ? later
					   : *c == 'm' ? bare
						       : broken;

			if (*c == 'o' || *c == 'n') {
				n += paqm_object_encode(objects + n, *c == 'o' ? &sample : &want);
				continue;
			}
			len = p == broken ? sizeof(broken) : paqm_get16(p);
			memcpy(objects + n, p, len);
			n += len;
		}
		len = assemble(buf, v6, objects, n);
		EXPECT(cases[i / 2].what, decode(buf, len, v6), cases[i / 2].want);
		if (cases[i / 2].want != PAQM_MSG_OK)
			continue;
		decode_into(buf, len, v6, &m, &q);
		EXPECT(cases[i / 2].what, same(&m, &sample), 1);
		EXPECT(cases[i / 2].what, m.object_len, PAQM_OBJ_FIXED);
	}
}

/* Without a quote there is nothing to believe, whatever stands in its place. */
static void check_unquoted(void)
{
	paqm_u8 buf[PAQM_MSG_MAX], *ext = buf + PAQM_ICMP_HDR;
	unsigned int len;
	int v6;

	for (v6 = 0; v6 < 2; v6++) {
		memset(buf, 0, sizeof(buf));
		buf[0] = v6 ? PAQM_ICMP6_TYPE_EXP : PAQM_ICMP_TYPE_EXP;
		ext[0] = PAQM_EXT_VERSION << 4;
		len = PAQM_EXT_HDR + paqm_object_encode(ext + PAQM_EXT_HDR, &sample);
		ext[len + 1] = 60; /* a foreign object, so that the message is long enough */
		len += 60;
		paqm_put16(ext + 2, paqm_checksum(ext, len));
		seal_icmp(buf, PAQM_ICMP_HDR + len, v6);
		EXPECT("no quote", decode(buf, PAQM_ICMP_HDR + len, v6), PAQM_MSG_MAGIC);
	}
}

/* Version 1 is read for one release more, over IPv4 and as ICMPv6 type 100. */
static void version1(int v6)
{
	unsigned int head = VEC_HLEN(v6) + 8, payload, len, obj;
	paqm_u8 quote[PAQM_QUOTE_MAX], buf[PAQM1_MSG_MAX + 8], good[PAQM1_MSG_MAX];
	paqm_u8 type = v6 ? PAQM_ICMP6_TYPE_OLD : PAQM_ICMP_TYPE_EXP;
	const paqm_u8 *src = v6 ? router6 : 0;
	struct paqm_msg m, want = sample;
	struct paqm_quote q;

	want.ecf = 0x3F59999A;
	want.flags |= PAQM_F_AUTH;
	want.key_id = 7;
	want.tag = 0x0102030405060708ULL;
	for (payload = 0; payload <= PAQM1_QUOTE_UDP; payload++) {
		len = paqm1_encode(good, type, src, sender6, quote, make_quote(quote, v6, payload),
				   &want);
		EXPECT("length", len, 8 + head + payload + 48);
		EXPECT("decode", decode_into(good, len, v6, &m, &q), PAQM_MSG_OK);
		EXPECT("version", m.version, 1);
		EXPECT("fields", same(&m, &want), 1);
		EXPECT("object", m.object == good + len - 48 && m.object_len == 48, 1);
		EXPECT("payload length", q.payload_len, payload);
		EXPECT("payload", memcmp(q.payload, quote + head, payload), 0);
		EXPECT("within its block", decode(good, len, v6), PAQM_MSG_OK);
	}
	EXPECT("quote too short", paqm1_encode(buf, type, src, sender6, quote, head - 1, &want), 0);
	EXPECT("quote too long",
	       paqm1_encode(buf, type, src, sender6, quote, v6 ? 77 : PAQM1_QUOTE_MAX + 1, &want),
	       0);
	mutate(v6, good, len);
	obj = len - PAQM1_OBJ_LEN;
#define TRY1(what, offset, byte, want)                                                             \
	do {                                                                                       \
		memcpy(buf, good, len);                                                            \
		buf[offset] = (byte);                                                              \
		seal_icmp(buf, len, v6);                                                           \
		EXPECT(what, decode(buf, len, v6), want);                                          \
	} while (0)
	TRY1("magic", obj, 'Q', PAQM_MSG_MAGIC);
	TRY1("version 2 where version 1 had it", obj + 4, 2, PAQM_MSG_VERSION_ERR);
	TRY1("version 0", obj + 4, 0, PAQM_MSG_VERSION_ERR);
	TRY1("quoted TCP", 8 + (v6 ? 6 : 9), 6, PAQM_MSG_QUOTE);
	TRY1("quoted IP of the other version", 8, v6 ? 0x45 : 0x65, PAQM_MSG_QUOTE);
	TRY1("negative rate", obj + 28, 0xC9, PAQM_MSG_VALUE);
	TRY1("rate NaN", obj + 28, 0x7F, PAQM_MSG_VALUE);
	TRY1("ICMP value differs", 7, 0x9B, PAQM_MSG_MISMATCH);
	if (v6)
		TRY1("type of version 2", 0, PAQM_ICMP6_TYPE_EXP, PAQM_MSG_TYPE);
	/* more behind UDP than version 1 quotes */
	memcpy(buf, good, obj);
	memset(buf + obj, 0, 4);
	memcpy(buf + obj + 4, good + obj, PAQM1_OBJ_LEN);
	seal_icmp(buf, len + 4, v6);
	EXPECT("32 bytes of payload", decode(buf, len + 4, v6), PAQM_MSG_QUOTE);

	/* its rate is binary32: rounded, at least 1 bit/s */
	want.rate = 16777217;
	len = paqm1_encode(buf, type, src, sender6, quote, head + VEC_PLAIN, &want);
	EXPECT("rounded rate", decode_into(buf, len, v6, &m, &q), PAQM_MSG_OK);
	EXPECT("rounded rate", m.rate, 16777216);
	paqm_put32(buf + len - 20, 0x35800000); /* 2^-20 */
	seal_icmp(buf, len, v6);
	EXPECT("least rate", decode_into(buf, len, v6, &m, &q), PAQM_MSG_OK);
	EXPECT("least rate", m.rate, 1);
}

static void check_version1(void)
{
	version1(0);
	version1(1);
}

#endif /* PAQM_MSG_REFUSALS_H */
