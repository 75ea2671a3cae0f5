/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Messages that a receiver must decode, and such that it must refuse, and why: published in
 * docs/vectors, and what the decoder is tested with in user space and in the kernel. Who includes
 * this defines vec_take(), which gets them one by one.
 */
#ifndef PAQM_MSG_CASES_H
#define PAQM_MSG_CASES_H

#include "msg_kit.h"

struct vec_case {
	const char *list, *name; /* @list: what of, if it is refused */
	const paqm_u8 *buf;
	paqm_u32 len;
	const struct vec_quote *q;
	struct vec_how how;
	struct paqm_msg m; /* what is in it */
	enum paqm_msg_err want;
};

static void vec_take(const struct vec_case *c);

static void vec_add(const char *name, struct vec_how how, struct paqm_msg m,
		    const struct vec_quote *q)
{
	paqm_u8 buf[PAQM_MSG_MAX];
	struct vec_case c = {.name = name, .buf = buf, .q = q, .how = how, .m = m};

	c.len = vec_build(buf, &how, &c.m, q);
	vec_take(&c);
}

static void vec_refuse(const char *list, const char *name, const paqm_u8 *buf, paqm_u32 len,
		       const struct vec_quote *q, enum paqm_msg_err want)
{
	struct vec_case c = {list, name, buf, len, q, .want = want};

	vec_take(&c);
}

#define EXTENDED "90" VEC_RTP "bede0003 22aabbcc 51010203040506 00" VEC_EIGHT VEC_EIGHT
#define CSRC_EXTENDED "92" VEC_RTP "1111111122222222 abcd0001 aabbccdd" VEC_EIGHT VEC_EIGHT
#define LONGEST                                                                                    \
	"90" VEC_RTP "abcd0018" VEC_64 VEC_EIGHT VEC_EIGHT VEC_EIGHT VEC_EIGHT VEC_EIGHT VEC_EIGHT
#define FIELD "90" VEC_RTP "bede0004 1e@" VEC_EIGHT VEC_EIGHT
#define DTLS "16fefd000000000000000100" VEC_EIGHT VEC_EIGHT VEC_EIGHT

/* Objects beside ours: of RFC 5837, of our class, ours in a later version, with another sequence */
#define FOREIGN "0008 02 01 deadbeef"
#define FOREIGNS FOREIGN FOREIGN FOREIGN FOREIGN FOREIGN
#define ALIEN "000c f7 01 5041514e 02000000" /* another magic */
#define EMPTY "0004 f7 01"
#define BARE "0008 f7 01 5041514d" /* a magic and no version */
#define BROKEN "0003 02 01"
#define LATER "000c f7 01 5041514d 03ffffff"
#define LATERS LATER LATER LATER LATER
#define SECOND                                                                                     \
	"002c f7 01 5041514d 0204 0000 1122334455667788 a1b2c3d4 0000004e 0000000000186a00"        \
	"00fa 000d 0003 f230"

static const struct {
	const char *name, *before, *behind;
	int alone;
	enum paqm_msg_err want;
} vec_objects[] = {
	{"a foreign object before", FOREIGN, 0, 0, PAQM_MSG_OK},
	{"a foreign object behind", 0, FOREIGN, 0, PAQM_MSG_OK},
	{"foreign objects behind", 0, ALIEN FOREIGN, 0, PAQM_MSG_OK},
	{"foreign objects on both sides", FOREIGN ALIEN, FOREIGN, 0, PAQM_MSG_OK},
	{"an object of this class, too short for a magic", EMPTY, 0, 0, PAQM_MSG_OK},
	{"the same in a later version before", LATER, 0, 0, PAQM_MSG_OK},
	{"the same in a later version behind", 0, LATER, 0, PAQM_MSG_OK},
	{"the first of two counts", 0, SECOND, 0, PAQM_MSG_OK},
	{"a broken object behind", 0, BROKEN, 0, PAQM_MSG_OK},
	{"an extension structure without objects", 0, 0, 1, PAQM_MSG_SHORT},
	{"only a later version", LATERS, 0, 1, PAQM_MSG_VERSION_ERR},
	{"only a later version, and a broken object", LATERS BROKEN, 0, 1, PAQM_MSG_VERSION_ERR},
	{"no object", FOREIGNS FOREIGN, 0, 1, PAQM_MSG_MAGIC},
	{"a magic and no version", FOREIGNS BARE, 0, 1, PAQM_MSG_MAGIC},
	{"another magic only", ALIEN ALIEN ALIEN ALIEN ALIEN, 0, 1, PAQM_MSG_MAGIC},
	{"a broken object before", BROKEN, 0, 0, PAQM_MSG_MAGIC},
	{"an object of 2 bytes before", "0002 02 01", 0, 0, PAQM_MSG_MAGIC},
};

#define REL "00010004 3f000000"
#define TAG "80010008 0102030405060708"
#define SIXTEEN "00112233445566778899aabbccddeeff"
#define ROOMY "0002004c" SIXTEEN SIXTEEN SIXTEEN SIXTEEN "00112233445566778899aabb"

/* Options of an object that has none: those of later versions are passed over, unless they must be
 * known. */
static const struct {
	const char *name, *options;
	int auth;
	enum paqm_msg_err want;
	paqm_u32 ecf;
} vec_options[] = {
	{"relative value of a half", REL, 0, PAQM_MSG_OK, 0x3F000000},
	{"a tag", TAG, 1, PAQM_MSG_OK, 0},
	{"relative value and tag", REL TAG, 1, PAQM_MSG_OK, 0x3F000000},
	{"unknown option, empty", "00020000" REL, 0, PAQM_MSG_OK, 0x3F000000},
	{"unknown option, 1 byte", "7fff0001 aa000000" REL, 0, PAQM_MSG_OK, 0x3F000000},
	{"unknown option, padded with other than zeros", "00020003 aabbccdd" REL, 0, PAQM_MSG_OK,
	 0x3F000000},
	{"unknown option behind what is known", REL "00020004 aabbccdd" TAG, 1, PAQM_MSG_OK,
	 0x3F000000},
	{"unknown option, twice", "00020000 00020000", 0, PAQM_MSG_OK, 0},
	{"as many options as there is room for", ROOMY "00030000", 0, PAQM_MSG_OK, 0},
	{"option of type 0", "00000004 aabbccdd", 0, PAQM_MSG_OK, 0},
	{"option that must be known, empty", "80020000", 0, PAQM_MSG_OPTION, 0},
	{"option that must be known, behind what is", REL "ffff0000", 0, PAQM_MSG_OPTION, 0},
	{"half an option", "0002", 0, PAQM_MSG_OPTION, 0},
	{"three bytes of an option", "000200", 0, PAQM_MSG_OPTION, 0},
	{"a byte behind the last option", REL "00", 0, PAQM_MSG_OPTION, 0},
	{"option cut", "00020004 aabbcc", 0, PAQM_MSG_OPTION, 0},
	{"option without its value", "00020004", 0, PAQM_MSG_OPTION, 0},
	{"unknown option of 65535 bytes", "0002ffff aabbccdd", 0, PAQM_MSG_OPTION, 0},
	{"option whose length wraps when rounded up", "0002fffd aabbccdd", 0, PAQM_MSG_OPTION, 0},
	{"zeros behind an option cut", "00020005 aabbccddee 0000", 0, PAQM_MSG_OPTION, 0},
	{"relative value cut", "00010004 3f0000", 0, PAQM_MSG_OPTION, 0},
	{"relative value of 8 bytes", "00010008 3f00000000000000", 0, PAQM_MSG_OPTION, 0},
	{"relative value twice", REL REL, 0, PAQM_MSG_OPTION, 0},
	{"two tags", TAG TAG, 1, PAQM_MSG_OPTION, 0},
	{"relative value behind the tag", TAG REL, 1, PAQM_MSG_OPTION, 0},
	{"option behind the tag", TAG "00020000", 1, PAQM_MSG_OPTION, 0},
	{"tag cut", "80010008 01020304050607", 1, PAQM_MSG_OPTION, 0},
	{"tag of 4 bytes", "80010004 01020304", 1, PAQM_MSG_OPTION, 0},
	{"tag of 12 bytes", "8001000c 0102030405060708090a0b0c", 1, PAQM_MSG_OPTION, 0},
	{"tag without flag", TAG, 0, PAQM_MSG_OPTION, 0},
	{"flag and no tag", REL, 1, PAQM_MSG_OPTION, 0},
	{"relative value 0", "00010004 00000000", 0, PAQM_MSG_VALUE, 0},
	{"relative value no number", "00010004 7fc00001", 0, PAQM_MSG_VALUE, 0},
	{"relative value without end", "00010004 7f800000", 0, PAQM_MSG_VALUE, 0},
	{"relative value just below 2^-20", "00010004 357fffff", 0, PAQM_MSG_VALUE, 0},
	{"relative value 2^-20", "00010004 35800000", 0, PAQM_MSG_OK, 0x35800000},
	{"relative value 1e12", "00010004 5368d4a5", 0, PAQM_MSG_OK, 0x5368D4A5},
	{"relative value just above 1e12", "00010004 5368d4a6", 0, PAQM_MSG_VALUE, 0},
	/* an object that long is of another version */
	{"object of 132 bytes", ROOMY "00112233 00030000", 0, PAQM_MSG_VERSION_ERR, 0},
};

/* One way to spoil a good message; offsets count in the message, its extension structure, our
 * object (which is what version 1 has at its end), or back from the end. */
enum vec_part { MSG, EXT, OBJ, END };

struct vec_spoil {
	const char *name;
	enum paqm_msg_err want;
	enum vec_part part;
	paqm_u32 offset;   /* of the first byte changed */
	const char *bytes; /* hexadecimal */
	struct {
		enum vec_part part;
		paqm_u32 offset;
		const char *bytes;
	} also;			/* a second fault */
	enum paqm_msg_err seal; /* the checksum that is the fault */
};

/* Of a tagged message with a relative value: options at 44 and 52 of its object. */
static const struct vec_spoil vec_spoils[] = {
	{"ICMP type 3", PAQM_MSG_TYPE, MSG, 0, .bytes = "03"},
	{"ICMP code 1", PAQM_MSG_TYPE, MSG, 1, .bytes = "01"},
	{"checksum off by one", PAQM_MSG_CHECKSUM, END, 1, .bytes = "01",
	 .seal = PAQM_MSG_CHECKSUM},
	{"no quote", PAQM_MSG_MAGIC, MSG, 4, .bytes = "0000"},
	{"quote beyond the message", PAQM_MSG_MAGIC, MSG, 4, .bytes = "ffff"},
	{"quote a word shorter than it is", PAQM_MSG_MAGIC, MSG, 4, .bytes = "090d"},
	{"quote a word longer than it is", PAQM_MSG_MAGIC, MSG, 4, .bytes = "0b0f"},
	{"extension structure of version 1", PAQM_MSG_MAGIC, EXT, 0, .bytes = "10"},
	{"reserved bits of the extension structure", PAQM_MSG_OK, EXT, 0, .bytes = "2f"},
	{"another checksum of the extension structure", PAQM_MSG_MAGIC, EXT, 2, .bytes = "0001",
	 .seal = PAQM_MSG_MAGIC},
	{"object without a header", PAQM_MSG_MAGIC, OBJ, 0, .bytes = "0003"},
	{"object that never ends", PAQM_MSG_MAGIC, OBJ, 0, .bytes = "0000"},
	{"object a byte beyond the message", PAQM_MSG_MAGIC, OBJ, 0, .bytes = "0041"},
	{"object beyond the message", PAQM_MSG_MAGIC, OBJ, 0, .bytes = "0044"},
	{"object far beyond the message", PAQM_MSG_MAGIC, OBJ, 0, .bytes = "0440"},
	{"object of class 1", PAQM_MSG_MAGIC, OBJ, 2, .bytes = "01"},
	{"object of another class", PAQM_MSG_MAGIC, OBJ, 2, .bytes = "f8"},
	{"object of another type", PAQM_MSG_MAGIC, OBJ, 3, .bytes = "02"},
	{"object with another magic", PAQM_MSG_MAGIC, OBJ, 4, .bytes = "5041514e"},
	{"object whose magic begins otherwise", PAQM_MSG_MAGIC, OBJ, 4, .bytes = "51"},
	{"version 3", PAQM_MSG_VERSION_ERR, OBJ, 8, .bytes = "03"},
	{"version 1 in an object of version 2", PAQM_MSG_VERSION_ERR, OBJ, 8, .bytes = "01"},
	{"version 0", PAQM_MSG_VERSION_ERR, OBJ, 8, .bytes = "00"},
	{"object shorter than version 2 has it", PAQM_MSG_VERSION_ERR, OBJ, 0, .bytes = "0028"},
	{"object a byte shorter than version 2 has it", PAQM_MSG_VERSION_ERR, OBJ, 0,
	 .bytes = "002b"},
	{"quoted IP version 5", PAQM_MSG_QUOTE, MSG, 8, .bytes = "55"},
	{"relative value and tag, no flag", PAQM_MSG_OPTION, OBJ, 9, .bytes = "04"},
	{"option that must be known", PAQM_MSG_OPTION, OBJ, 44, .bytes = "8002"},
	{"option of type C001", PAQM_MSG_OPTION, OBJ, 44, .bytes = "c001"},
	{"option beyond the object", PAQM_MSG_OPTION, OBJ, 46, .bytes = "0011"},
	{"option of 65535 bytes", PAQM_MSG_OPTION, OBJ, 46, .bytes = "ffff"},
	{"relative value of 3 bytes", PAQM_MSG_OPTION, OBJ, 46, .bytes = "0003"},
	{"tag of 4 bytes, and half an option", PAQM_MSG_OPTION, OBJ, 54, .bytes = "0004"},
	{"tag of 7 bytes", PAQM_MSG_OPTION, OBJ, 54, .bytes = "0007"},
	{"tag of 9 bytes", PAQM_MSG_OPTION, OBJ, 54, .bytes = "0009"},
	{"relative value twice, no tag", PAQM_MSG_OPTION, OBJ, 52, .bytes = "00010004"},
	{"unknown option in place of the tag", PAQM_MSG_OPTION, OBJ, 52, .bytes = "0002"},
	{"rate zero", PAQM_MSG_VALUE, OBJ, 28, .bytes = "0000000000000000"},
	{"rate above 1e12 bit/s", PAQM_MSG_VALUE, OBJ, 28, .bytes = "000000e8d4a51001"},
	{"rate of 2^56 bit/s", PAQM_MSG_VALUE, OBJ, 28, .bytes = "01"},
	{"largest number as rate", PAQM_MSG_VALUE, OBJ, 28, .bytes = "ffffffffffffffff"},
	{"relative value NaN", PAQM_MSG_VALUE, OBJ, 48, .bytes = "7fc00001"},
	{"relative value infinite", PAQM_MSG_VALUE, OBJ, 48, .bytes = "7f800000"},
	{"relative value negative", PAQM_MSG_VALUE, OBJ, 48, .bytes = "bf59999a"},
	{"relative value zero", PAQM_MSG_VALUE, OBJ, 48, .bytes = "00000000"},
	{"relative value below 2^-20", PAQM_MSG_VALUE, OBJ, 48, .bytes = "357fffff"},
	{"relative value above 1e12", PAQM_MSG_VALUE, OBJ, 48, .bytes = "5368d4a6"},
	{"relative value far above 1e12", PAQM_MSG_VALUE, OBJ, 48, .bytes = "7f"},
	{"two faults: version before quote", PAQM_MSG_VERSION_ERR, OBJ, 8, .bytes = "03",
	 .also = {MSG, 8, "00"}},
	{"two faults: quote before option", PAQM_MSG_QUOTE, MSG, 8, .bytes = "00",
	 .also = {OBJ, 9, "04"}},
	{"two faults: option before value", PAQM_MSG_OPTION, OBJ, 9, .bytes = "04",
	 .also = {OBJ, 28, "ff"}},
};

static const struct vec_spoil vec_spoils4[] = {
	{"what IPv6 has the length in", PAQM_MSG_OK, MSG, 4, .bytes = "09"},
	{"quoted IP version 6", PAQM_MSG_QUOTE, MSG, 8, .bytes = "65"},
	{"quoted IP header of 16 bytes", PAQM_MSG_QUOTE, MSG, 8, .bytes = "44"},
	{"quoted IP header beyond the quote", PAQM_MSG_QUOTE, MSG, 8, .bytes = "4f"},
	{"quoted TCP", PAQM_MSG_QUOTE, MSG, 17, .bytes = "06"},
	{"quoted later fragment", PAQM_MSG_QUOTE, MSG, 14, .bytes = "2001"},
	{"quoted last fragment", PAQM_MSG_QUOTE, MSG, 14, .bytes = "0001"},
	{"quoted first fragment", PAQM_MSG_OK, MSG, 14, .bytes = "2000"},
};

static const struct vec_spoil vec_spoils6[] = {
	{"what IPv4 has the length in", PAQM_MSG_OK, MSG, 5, .bytes = "0e"},
	{"quoted IP version 4", PAQM_MSG_QUOTE, MSG, 8, .bytes = "45"},
	{"quoted TCP", PAQM_MSG_QUOTE, MSG, 14, .bytes = "06"},
	{"quoted fragment", PAQM_MSG_QUOTE, MSG, 14, .bytes = "2c"},
	{"version 2 in a message of version 1's type", PAQM_MSG_TYPE, MSG, 0, .bytes = "64"},
};

/* Of version 1. */
static const struct vec_spoil vec_spoils1[] = {
	{"no object at the end", PAQM_MSG_MAGIC, OBJ, 0, .bytes = "5041514e"},
	{"another magic at the end", PAQM_MSG_MAGIC, OBJ, 0, .bytes = "51"},
	{"version 2 in the place of version 1", PAQM_MSG_VERSION_ERR, OBJ, 4, .bytes = "02"},
	{"version 0", PAQM_MSG_VERSION_ERR, OBJ, 4, .bytes = "00"},
	{"quoted IP version 5", PAQM_MSG_QUOTE, MSG, 8, .bytes = "55"},
	{"rate NaN", PAQM_MSG_VALUE, OBJ, 28, .bytes = "7fc00001"},
	{"rate infinite", PAQM_MSG_VALUE, OBJ, 28, .bytes = "7f800000"},
	{"rate negative", PAQM_MSG_VALUE, OBJ, 28, .bytes = "c9c35000"},
	{"rate zero", PAQM_MSG_VALUE, OBJ, 28, .bytes = "00000000"},
	{"rate above 1e12 bit/s", PAQM_MSG_VALUE, OBJ, 28, .bytes = "5368d4a6"},
	{"ECF value below 2^-20", PAQM_MSG_VALUE, OBJ, 24, .bytes = "357fffff"},
	{"ICMP value is not that of the object", PAQM_MSG_MISMATCH, MSG, 4, .bytes = "3f800000"},
	{"ICMP value differs in its last bit", PAQM_MSG_MISMATCH, MSG, 7, .bytes = "9b"},
};

static const struct vec_spoil vec_spoils14[] = {
	{"quoted IP version 6", PAQM_MSG_QUOTE, MSG, 8, .bytes = "65"},
	{"quoted TCP", PAQM_MSG_QUOTE, MSG, 17, .bytes = "06"},
};

static const struct vec_spoil vec_spoils16[] = {
	{"quoted IP version 4", PAQM_MSG_QUOTE, MSG, 8, .bytes = "45"},
	{"quoted TCP", PAQM_MSG_QUOTE, MSG, 14, .bytes = "06"},
	{"type of version 2", PAQM_MSG_TYPE, MSG, 0, .bytes = "c8"},
};

static void vec_change(paqm_u8 *buf, const struct vec_case *c, enum vec_part part, paqm_u32 offset,
		       const char *bytes)
{
	paqm_u32 ext = c->how.version == 1 ? 0 : vec_ext(c->buf, c->q->v6);
	paqm_u32 at = part == MSG	    ? offset
		      : part == END	    ? c->len - offset
		      : part == EXT	    ? ext + offset
		      : c->how.version == 1 ? c->len - PAQM1_OBJ_LEN + offset
					    : ext + PAQM_EXT_HDR + offset;

	paqm_inband_make(buf + at, bytes);
}

/* Those that are refused, or those that are not: what is changed does not matter. */
static void vec_spoil(const char *list, const struct vec_quote *q, int version,
		      const struct vec_spoil *s, paqm_u32 n)
{
	struct vec_case c = {.list = list, .q = q, .m = vec_sample};
	static paqm_u8 good[PAQM_MSG_MAX], buf[PAQM_MSG_MAX];

	c.how.version = version;
	c.how.tagged = version != 1;
	c.m.ecf = 0x3F59999A;
	c.len = vec_build(good, &c.how, &c.m, q);
	for (; n--; s++) {
		if (!list != (s->want == PAQM_MSG_OK))
			continue;
		c.buf = good;
		memcpy(buf, good, c.len);
		vec_change(buf, &c, s->part, s->offset, s->bytes);
		if (s->also.bytes)
			vec_change(buf, &c, s->also.part, s->also.offset, s->also.bytes);
		if (version == 1 || s->seal == PAQM_MSG_MAGIC)
			vec_seal_icmp(buf, c.len, q);
		else if (s->seal == PAQM_MSG_OK)
			vec_seal(buf, c.len, q);
		c.name = s->name;
		c.want = s->want;
		c.buf = buf;
		vec_take(&c);
	}
}

#define VEC_SPOIL(list, q, version, spoils)                                                        \
	vec_spoil(list, q, version, spoils, sizeof(spoils) / sizeof((spoils)[0]))

/* Of the tables, what is decoded (@list: 0) or what is refused. */
static void vec_tables(const char *list, const struct vec_quote *q)
{
	struct vec_case c = {.list = list, .q = q};
	static paqm_u8 buf[PAQM_MSG_MAX + 8];
	paqm_u32 i;

	c.buf = buf;
	VEC_SPOIL(list, q, 0, vec_spoils);
	if (q->v6)
		VEC_SPOIL(list, q, 0, vec_spoils6);
	else
		VEC_SPOIL(list, q, 0, vec_spoils4);
	for (i = 0; i < sizeof(vec_objects) / sizeof(vec_objects[0]); i++) {
		c.how = (struct vec_how){.before = vec_objects[i].before,
					 .behind = vec_objects[i].behind,
					 .alone = vec_objects[i].alone};
		c.m = vec_sample;
		c.len = vec_build(buf, &c.how, &c.m, q);
		c.name = vec_objects[i].name;
		c.want = vec_objects[i].want;
		if (!list == (c.want == PAQM_MSG_OK))
			vec_take(&c);
	}
	for (i = 0; i < sizeof(vec_options) / sizeof(vec_options[0]); i++) {
		c.how = (struct vec_how){.options = vec_options[i].options,
					 .auth = vec_options[i].auth};
		c.m = vec_sample;
		c.len = vec_build(buf, &c.how, &c.m, q);
		c.name = vec_options[i].name;
		c.want = vec_options[i].want;
		c.m.ecf = vec_options[i].ecf;
		c.m.flags |= c.how.auth ? PAQM_F_AUTH : 0;
		c.m.tag = c.how.auth ? 0x0102030405060708ULL : 0;
		if (!list == (c.want == PAQM_MSG_OK))
			vec_take(&c);
	}
}

/* What is the same over IPv4 and IPv6. */
static void vec_common(const struct vec_quote *plain)
{
	static const struct {
		const char *name, *payload;
	} packets[] = {
		{"about a packet with header extension: it is quoted whole", EXTENDED},
		{"about a packet with sources and header extension", CSRC_EXTENDED},
		{"about a packet with the longest header that is quoted", LONGEST},
		{"about a packet with an in-band field", FIELD},
		{"about a packet that is no RTP", DTLS},
	};
	static const struct vec_how usual, tagged = {.tagged = 1};
	struct paqm_msg m = vec_sample;
	struct vec_quote q;
	paqm_u32 i;

	vec_add("usual", usual, m, plain);
	m.ecf = 0x3F59999A;
	vec_add("with a relative value: multiply", usual, m, plain);
	m.ecf = PAQM_F32_ONE;
	vec_add("with a relative value: hold", usual, m, plain);
	m.ecf = 0x489B9955;
	vec_add("with a relative value: 318666.667 bit/s more", usual, m, plain);
	vec_add("tagged, with a relative value", tagged, m, plain);
	vec_add("unknown options are passed over",
		(struct vec_how){.options = "00020003 aabbcc00 7fff0000"}, m, plain);
	vec_add("tagged", tagged, vec_sample, plain);
	for (i = 0; i < sizeof(packets) / sizeof(packets[0]); i++) {
		q = vec_payload(plain->v6, packets[i].payload);
		vec_add(packets[i].name, i & 1 ? tagged : usual, vec_sample, &q);
	}
	vec_add("tagged, the same in a later version behind",
		(struct vec_how){.tagged = 1, .behind = LATER}, vec_sample, plain);
	vec_add("no checksum of the extension structure", (struct vec_how){.no_checksum = 1},
		vec_sample, plain);
	m = vec_sample;
	m.rate = PAQM_VALUE_MAX;
	m.ecf = 0x35800000; /* 2^-20, the least that the check sees */
	vec_add("largest rate, least factor", usual, m, plain);
	m.rate = 1;
	m.ecf = 0x5368D4A5; /* 1e12 */
	vec_add("least rate, largest increase", usual, m, plain);
	q = vec_quote(0, 17);
	if (plain->v6)
		q = vec_to6(q);
	vec_add("quoted packet of 17 payload bytes, zeros behind it", usual, vec_sample, &q);
	vec_tables(0, plain);
}

static void vec_messages(void)
{
	static const struct vec_how usual, tagged = {.tagged = 1};
	struct vec_quote q = vec_quote(0, VEC_PLAIN), bare = vec_quote(0, 0);
	struct vec_quote options = vec_quote(40, VEC_PLAIN);
	struct paqm_field lower = {.rate = 0x49742400, .router = 0xBEEF, .period = 13};
	struct paqm_msg m = vec_sample;
	paqm_u8 *udp;

	vec_common(&q);
	m.flags = PAQM_F_OVERLOAD | PAQM_F_POLICED;
	m.qdelay_100us = 65535;
	m.flows = 65535;
	m.util = 65535;
	vec_add("overload and policed, saturated fields", usual, m, &q);
	m = vec_sample;
	m.boot = 0xFFFFFFFF;
	m.seq = 0xFFFFFFFF;
	m.router_id = ~0ULL;
	m.period_ms = 65535;
	vec_add("largest identities", usual, m, &q);
	m = vec_sample;
	m.flags = 0xF0;
	vec_add("unassigned flags are ignored", usual, m, &q);
	m = vec_sample;
	m.rate = 123456789012ULL;
	vec_add("rate that no binary32 is", usual, m, &q);
	vec_add("quoted packet without payload", usual, vec_sample, &bare);
	vec_add("quoted IPv4 header with options", usual, vec_sample, &options);
	vec_add("carrier quench: ICMP type 4", (struct vec_how){.type = PAQM_ICMP_TYPE_QUENCH},
		vec_sample, &q);
	q.bytes[8]--; /* TTL */
	paqm_put16(q.bytes + 10, 0);
	paqm_put16(q.bytes + 10, paqm_checksum(q.bytes, q.hlen));
	paqm_put16(q.bytes + q.hlen, 40000);
	vec_add("tagged, TTL and source port differ: the tag does not", tagged, vec_sample, &q);
	paqm_put16(q.bytes + q.hlen + 2, 6005);
	vec_add("tagged, destination port differs: so does the tag", tagged, vec_sample, &q);
	q.bytes[19] = 8;
	vec_add("tagged, destination address differs: so does the tag", tagged, vec_sample, &q);
	q.bytes[15] = 3;
	vec_add("tagged, another host: another key", tagged, vec_sample, &q);
	q = vec_payload(0, FIELD);
	udp = q.bytes + q.hlen;
	vec_add("tagged, with an in-band field", tagged, vec_sample, &q);
	paqm_field_lower(udp, paqm_field_find(udp + 8, q.payload), &lower, 0);
	vec_add("tagged, a router has lowered the field: the tag is the same", tagged, vec_sample,
		&q);
}

static void vec_messages6(void)
{
	struct vec_quote plain = vec_plain(1);

	vec_common(&plain);
}

static void vec_version1(void)
{
	static struct vec_quote q, options, q6; /* not on a kernel's small stack */
	struct vec_how old = {.version = 1}, tagged = {.version = 1, .tagged = 1};
	struct vec_how quench = {.version = 1, .type = PAQM_ICMP_TYPE_QUENCH};
	struct paqm_msg m = vec_sample;

	q = vec_quote(0, VEC_PLAIN);
	options = vec_quote(40, VEC_PLAIN);
	q6 = vec_to6(q);
	m.ecf = 0x3F59999A;
	vec_add("IPv4", old, m, &q);
	vec_add("IPv4, quoted header with options", old, m, &options);
	vec_add("IPv4, carrier quench", quench, m, &q);
	vec_add("IPv4, tagged with the router's key", tagged, m, &q);
	vec_add("IPv6: ICMPv6 type 100", old, m, &q6);
	vec_add("IPv6, tagged with the router's key", tagged, m, &q6);
	q = vec_quote(0, 20);
	vec_add("IPv4, quoted packet of 20 payload bytes", old, m, &q);
	q = vec_payload(0, "82" VEC_RTP "1111111122222222" VEC_EIGHT VEC_EIGHT);
	q.payload = VEC_PLAIN;
	vec_add("IPv4, 28 bytes of a packet with sources: they prove nothing", old, m, &q);
	q = vec_payload(0, DTLS);
	vec_add("IPv4, no RTP, tagged", tagged, m, &q);
}

/* Messages that are wrong in more than a few bytes, and all those of the tables. */
static void vec_refused_by(const char *list, const struct vec_quote *q)
{
	static const struct vec_how usual, longer = {.behind = FOREIGNS FOREIGN};
	static paqm_u8 buf[PAQM_MSG_MAX + 8];
	struct paqm_msg m = vec_sample;
	paqm_u32 len, ext, quoted;

	memset(buf, 0, sizeof(buf));
	len = vec_build(buf, &usual, &m, q);
	ext = vec_ext(buf, q->v6);
	vec_refuse(list, "empty", buf, 0, q, PAQM_MSG_SHORT);
	quoted = PAQM_ICMP_HDR + q->hlen + 8 + PAQM_EXT_HDR + PAQM_OBJ_FIXED;
	vec_refuse(list, "a byte too few", buf, quoted - 1, q, PAQM_MSG_SHORT);
	vec_refuse(list, "a byte too many", buf, PAQM_MSG_MAX + 1, q, PAQM_MSG_SHORT);
	vec_seal(buf, len - 4, q);
	vec_refuse(list, "the last word is missing", buf, len - 4, q, PAQM_MSG_MAGIC);
	vec_tables(list, q);
	/* an extension structure where the quote should be */
	len = vec_build(buf, &longer, &m, q);
	memmove(buf + PAQM_ICMP_HDR, buf + ext, len - ext);
	len -= ext - PAQM_ICMP_HDR;
	buf[q->v6 ? 4 : 5] = 0;
	vec_seal_icmp(buf, len, q);
	vec_refuse(list, "no quote, but an object", buf, len, q, PAQM_MSG_MAGIC);
	/* a word more of payload than any packet is quoted with */
	len = vec_build(buf, &usual, &m, q) - ext;
	quoted = q->hlen + 8 + PAQM_PROOF_MAX + (q->v6 ? 8 : 4);
	memmove(buf + PAQM_ICMP_HDR + quoted, buf + ext, len);
	memset(buf + ext, 0, PAQM_ICMP_HDR + quoted - ext);
	len += PAQM_ICMP_HDR + quoted;
	buf[q->v6 ? 4 : 5] = (paqm_u8)(quoted / (q->v6 ? 8 : 4));
	vec_seal(buf, len, q);
	vec_refuse(list, "more payload quoted than by any router", buf, len, q, PAQM_MSG_QUOTE);
}

static void vec_refused_by1(const char *list, const struct vec_quote *q)
{
	paqm_u8 buf[PAQM1_MSG_MAX + 4];
	struct paqm_msg m = vec_sample;
	paqm_u32 len, obj;

	VEC_SPOIL(list, q, 1, vec_spoils1);
	if (q->v6)
		VEC_SPOIL(list, q, 1, vec_spoils16);
	else
		VEC_SPOIL(list, q, 1, vec_spoils14);
	/* more behind UDP than it ever quoted, in a message of legal length */
	m.ecf = 0x3F59999A;
	len = vec_build(buf, &(struct vec_how){.version = 1}, &m, q);
	obj = len - PAQM1_OBJ_LEN;
	memmove(buf + obj + 4, buf + obj, PAQM1_OBJ_LEN);
	memset(buf + obj, 0, 4);
	vec_seal_icmp(buf, len + 4, q);
	vec_refuse(list, "32 bytes quoted behind UDP", buf, len + 4, q, PAQM_MSG_QUOTE);
}

static void vec_refused(void)
{
	struct vec_quote q = vec_plain(0), q6 = vec_plain(1);

	vec_refused_by("IPv4", &q);
	vec_refused_by("IPv6", &q6);
	vec_refused_by1("version 1, IPv4", &q);
	vec_refused_by1("version 1, IPv6", &q6);
}

#define COUNT16 "000102030405060708090a0b0c0d0e0f"

/* What of a UDP payload proves the packet, written down by hand; 0: nothing does. */
static const struct {
	const char *name, *payload, *proof;
} vec_proofs[] = {
	{"plain RTP: its header and 16 bytes behind it", "80" VEC_RTP COUNT16 "1011121314",
	 "80" VEC_RTP COUNT16},
	{"no more than that", "80" VEC_RTP COUNT16, "80" VEC_RTP COUNT16},
	{"a byte less", "80" VEC_RTP "000102030405060708090a0b0c0d0e", 0},
	{"two sources count", "82" VEC_RTP "1111111122222222" COUNT16 "10",
	 "82" VEC_RTP "1111111122222222" COUNT16},
	{"fifteen sources count",
	 "8f" VEC_RTP VEC_EIGHT VEC_EIGHT VEC_EIGHT VEC_EIGHT VEC_EIGHT VEC_EIGHT VEC_EIGHT
	 "0a0b0c0d" COUNT16 "10",
	 "8f" VEC_RTP VEC_EIGHT VEC_EIGHT VEC_EIGHT VEC_EIGHT VEC_EIGHT VEC_EIGHT VEC_EIGHT
	 "0a0b0c0d" COUNT16},
	{"sources, a byte less",
	 "82" VEC_RTP "1111111122222222"
	 "000102030405060708090a0b0c0d0e",
	 0},
	{"a header extension counts", "90" VEC_RTP "bede0001 aabbccdd" COUNT16 "10",
	 "90" VEC_RTP "bede0001 aabbccdd" COUNT16},
	{"an empty one, too", "90" VEC_RTP "bede0000" COUNT16 "10",
	 "90" VEC_RTP "bede0000" COUNT16},
	{"sources and header extension", "92" VEC_RTP "1111111122222222 abcd0001 aabbccdd" COUNT16,
	 "92" VEC_RTP "1111111122222222 abcd0001 aabbccdd" COUNT16},
	{"with padding at its end", "b0" VEC_RTP "bede0001 aabbccdd" COUNT16 "00000004",
	 "b0" VEC_RTP "bede0001 aabbccdd" COUNT16},
	{"fewer than 16 bytes behind the extension", "90" VEC_RTP "bede0001 aabbccdd" VEC_EIGHT, 0},
	{"extension longer than the packet", "90" VEC_RTP "bede0010 aabbccdd" COUNT16, 0},
	{"extension of 262140 bytes", "90" VEC_RTP "bedeffff aabbccdd" COUNT16, 0},
	{"cut before the length of the extension", "9f" VEC_RTP COUNT16, 0},
	{"header of 112 bytes: the longest that is quoted",
	 "90" VEC_RTP "abcd0018" VEC_64 VEC_EIGHT VEC_EIGHT VEC_EIGHT VEC_EIGHT COUNT16 "10",
	 "90" VEC_RTP "abcd0018" VEC_64 VEC_EIGHT VEC_EIGHT VEC_EIGHT VEC_EIGHT COUNT16},
	{"header of 116 bytes: too long",
	 "90" VEC_RTP "abcd0019" VEC_64 VEC_EIGHT VEC_EIGHT VEC_EIGHT VEC_EIGHT "0a0b0c0d" COUNT16
	 "10",
	 0},
	{"in-band field and supplement: what routers write is left out",
	 "90" VEC_RTP "bede0008 1e@ 2e+" COUNT16 "10",
	 "90" VEC_RTP "bede0008 1e50415131 11223344 2e50415132 0190 4a3ebc20 49742400" COUNT16},
	{"a supplement alone is nothing that routers write into",
	 "90" VEC_RTP "bede0004 2e+" COUNT16, "90" VEC_RTP "bede0004 2e+" COUNT16},
	{"in-band field: what routers write is left out", "90" VEC_RTP "bede0004 1e@" COUNT16 "10",
	 "90" VEC_RTP "bede0004 1e50415131 11223344" COUNT16},
	{"in-band field in an element with a header of two bytes",
	 "90" VEC_RTP "10000005 010f@ 000000" COUNT16,
	 "90" VEC_RTP "10000005 010f50415131 11223344 000000" COUNT16},
	{"in-band field, lowered",
	 "90" VEC_RTP "bede0004 1e50415131 49742400 beef 0d 11223344" COUNT16,
	 "90" VEC_RTP "bede0004 1e50415131 11223344" COUNT16},
	{"no field: its rate is no number",
	 "90" VEC_RTP "bede0004 1e50415131 7fc00000 0000 00 11223344" COUNT16,
	 "90" VEC_RTP "bede0004 1e50415131 7fc00000 0000 00 11223344" COUNT16},
	{"no field: behind the extension", "90" VEC_RTP "bede0001 aabbccdd 1e@" COUNT16,
	 "90" VEC_RTP "bede0001 aabbccdd 1e50415131 4a3ebc20 0000 00 11223344"},
	{"a probe with more behind it than is usual", "0f@00000001" COUNT16,
	 "0f50415131 11223344 00000001 0001020304050607"},
	{"a probe: too short", "0f@00000001", 0},
	{"not RTP version 2: 28 bytes", "16fefd000000000000000000" COUNT16 "1011",
	 "16fefd000000000000000000" COUNT16},
	{"not RTP version 2: 27 bytes", "16fefd0000000000000000" COUNT16, 0},
	{"RTP version 3: 28 bytes", "d3" VEC_RTP COUNT16 "10", "d3" VEC_RTP COUNT16},
	{"RTP version 1: 28 bytes", "40" VEC_RTP COUNT16, "40" VEC_RTP COUNT16},
	{"extension of 65536 bytes", "90" VEC_RTP "bede4000 aabbccdd" COUNT16, 0},
	{"nothing", "", 0},
};

#endif /* PAQM_MSG_CASES_H */
