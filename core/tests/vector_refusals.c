/* SPDX-License-Identifier: GPL-2.0 */
/* Test vectors: messages that a receiver must refuse, and why. */
#include <stdio.h>
#include <string.h>

#include "vector_kit.h"

/* One way to spoil a good message. */
struct spoil {
	const char *name;
	enum paqm_msg_err why;
	enum { MSG, EXT, OBJ } part; /* what the offset counts in; version 1: OBJ is its object */
	int offset;		     /* of the first byte changed; from the end if negative */
	const char *bytes;	     /* hexadecimal */
	int keep_checksum;	     /* do not make it right again */
};

/* Of a tagged message with a relative value: options at 44 and 52 of its object. */
static const struct spoil spoils[] = {
	{"ICMP type 3", PAQM_MSG_TYPE, MSG, 0, "03", 0},
	{"ICMP code 1", PAQM_MSG_TYPE, MSG, 1, "01", 0},
	{"checksum off by one", PAQM_MSG_CHECKSUM, MSG, -1, "01", 1},
	{"no quote", PAQM_MSG_MAGIC, MSG, 4, "0000", 0},
	{"quote beyond the message", PAQM_MSG_MAGIC, MSG, 4, "ffff", 0},
	{"quote a word shorter than it is", PAQM_MSG_MAGIC, MSG, 4, "090d", 0},
	{"quote a word longer than it is", PAQM_MSG_MAGIC, MSG, 4, "0b0f", 0},
	{"extension structure of version 1", PAQM_MSG_MAGIC, EXT, 0, "10", 0},
	{"object without a header", PAQM_MSG_MAGIC, OBJ, 0, "0003", 0},
	{"object that never ends", PAQM_MSG_MAGIC, OBJ, 0, "0000", 0},
	{"object beyond the message", PAQM_MSG_MAGIC, OBJ, 0, "0044", 0},
	{"object of another class", PAQM_MSG_MAGIC, OBJ, 2, "f8", 0},
	{"object of another type", PAQM_MSG_MAGIC, OBJ, 3, "02", 0},
	{"object with another magic", PAQM_MSG_MAGIC, OBJ, 4, "5041514e", 0},
	{"version 3", PAQM_MSG_VERSION_ERR, OBJ, 8, "03", 0},
	{"version 1 in an object of version 2", PAQM_MSG_VERSION_ERR, OBJ, 8, "01", 0},
	{"version 0", PAQM_MSG_VERSION_ERR, OBJ, 8, "00", 0},
	{"object shorter than version 2 has it", PAQM_MSG_VERSION_ERR, OBJ, 0, "0028", 0},
	{"quoted IP version 5", PAQM_MSG_QUOTE, MSG, 8, "55", 0},
	{"relative value and tag, no flag", PAQM_MSG_OPTION, OBJ, 9, "04", 0},
	{"option that must be known", PAQM_MSG_OPTION, OBJ, 44, "8002", 0},
	{"option beyond the object", PAQM_MSG_OPTION, OBJ, 46, "0011", 0},
	{"option of 65535 bytes", PAQM_MSG_OPTION, OBJ, 46, "ffff", 0},
	{"relative value of 3 bytes", PAQM_MSG_OPTION, OBJ, 46, "0003", 0},
	{"tag of 4 bytes, and half an option", PAQM_MSG_OPTION, OBJ, 54, "0004", 0},
	{"relative value twice, no tag", PAQM_MSG_OPTION, OBJ, 52, "00010004", 0},
	{"unknown option in place of the tag", PAQM_MSG_OPTION, OBJ, 52, "0002", 0},
	{"rate zero", PAQM_MSG_VALUE, OBJ, 28, "0000000000000000", 0},
	{"rate above 1e12 bit/s", PAQM_MSG_VALUE, OBJ, 28, "000000e8d4a51001", 0},
	{"largest number as rate", PAQM_MSG_VALUE, OBJ, 28, "ffffffffffffffff", 0},
	{"relative value NaN", PAQM_MSG_VALUE, OBJ, 48, "7fc00001", 0},
	{"relative value infinite", PAQM_MSG_VALUE, OBJ, 48, "7f800000", 0},
	{"relative value negative", PAQM_MSG_VALUE, OBJ, 48, "bf59999a", 0},
	{"relative value zero", PAQM_MSG_VALUE, OBJ, 48, "00000000", 0},
	{"relative value below 2^-20", PAQM_MSG_VALUE, OBJ, 48, "357fffff", 0},
	{"relative value above 1e12", PAQM_MSG_VALUE, OBJ, 48, "5368d4a6", 0},
	{"two faults: version before quote", PAQM_MSG_VERSION_ERR, OBJ, 8, "03", 0},
};

static const struct spoil spoils4[] = {
	{"another checksum of the extension structure", PAQM_MSG_MAGIC, EXT, 2, "0001", 0},
	{"quoted IP version 6", PAQM_MSG_QUOTE, MSG, 8, "65", 0},
	{"quoted IP header of 16 bytes", PAQM_MSG_QUOTE, MSG, 8, "44", 0},
	{"quoted IP header beyond the quote", PAQM_MSG_QUOTE, MSG, 8, "4f", 0},
	{"quoted TCP", PAQM_MSG_QUOTE, MSG, 17, "06", 0},
	{"quoted later fragment", PAQM_MSG_QUOTE, MSG, 14, "2001", 0},
};

static const struct spoil spoils6[] = {
	{"quoted IP version 4", PAQM_MSG_QUOTE, MSG, 8, "45", 0},
	{"quoted TCP", PAQM_MSG_QUOTE, MSG, 14, "06", 0},
	{"quoted fragment", PAQM_MSG_QUOTE, MSG, 14, "2c", 0},
	{"version 2 in a message of version 1's type", PAQM_MSG_TYPE, MSG, 0, "64", 0},
};

static const struct spoil spoils1[] = {
	{"no object at the end", PAQM_MSG_MAGIC, OBJ, 0, "5041514e", 0},
	{"version 2 in the place of version 1", PAQM_MSG_VERSION_ERR, OBJ, 4, "02", 0},
	{"version 0", PAQM_MSG_VERSION_ERR, OBJ, 4, "00", 0},
	{"quoted IP version 5", PAQM_MSG_QUOTE, MSG, 8, "55", 0},
	{"rate NaN", PAQM_MSG_VALUE, OBJ, 28, "7fc00001", 0},
	{"rate infinite", PAQM_MSG_VALUE, OBJ, 28, "7f800000", 0},
	{"rate negative", PAQM_MSG_VALUE, OBJ, 28, "c9c35000", 0},
	{"rate zero", PAQM_MSG_VALUE, OBJ, 28, "00000000", 0},
	{"rate above 1e12 bit/s", PAQM_MSG_VALUE, OBJ, 28, "5368d4a6", 0},
	{"ECF value below 2^-20", PAQM_MSG_VALUE, OBJ, 24, "357fffff", 0},
	{"ICMP value is not that of the object", PAQM_MSG_MISMATCH, MSG, 4, "3f800000", 0},
};

static const struct spoil spoils16[] = {
	{"type of version 2", PAQM_MSG_TYPE, MSG, 0, "c8", 0},
};

static void add_refusal(json_t *list, const char *prefix, const char *name, const paqm_u8 *buf,
			paqm_u32 len, const struct vector_quote *q, enum paqm_msg_err why)
{
	char text[128];
	json_t *v;

	snprintf(text, sizeof(text), "%s: %s", prefix, name);
	v = vector_new(text, buf, len, q);
	json_object_set_new(v, "refusal", json_string(vector_refusals[why]));
	json_array_append_new(list, v);
}

static void add_spoiled(json_t *list, const char *prefix, const struct vector_quote *q, int version,
			const struct spoil *s, size_t n)
{
	struct vector_how how = {.version = version, .tagged = version != 1};
	paqm_u8 good[PAQM_MSG_MAX], buf[PAQM_MSG_MAX], bytes[16];
	paqm_u32 len, at, k;
	struct paqm_msg m = vector_sample;

	m.ecf = 0x3F59999A;
	len = vector_build(good, &how, &m, q);
	for (; n--; s++) {
		memcpy(buf, good, len);
		/* the second fault of the last one */
		if (strstr(s->name, "two faults"))
			buf[PAQM_ICMP_HDR] = 0;
		at = s->part == MSG ? 0
		     : version == 1 ? len - PAQM1_OBJ_LEN
				    : vector_ext(good, q->v6);
		at += s->part == OBJ && version != 1 ? PAQM_EXT_HDR : 0;
		at = s->offset < 0 ? len - (paqm_u32)-s->offset : at + (paqm_u32)s->offset;
		k = vector_unhex(bytes, s->bytes);
		memcpy(buf + at, bytes, k);
		if (s->keep_checksum)
			;
		else if (s->part == EXT && s->offset == 2) /* its own checksum is the fault */
			vector_seal(buf, len, q->v6, vector_told(q), 1);
		else
			vector_seal(buf, len, q->v6, vector_told(q), version);
		add_refusal(list, prefix, s->name, buf, len, q, s->why);
	}
}

#define SPOIL(list, prefix, q, version, spoils)                                                    \
	add_spoiled(list, prefix, q, version, spoils, sizeof(spoils) / sizeof((spoils)[0]))

/* Messages that are wrong in more than a few bytes. */
static void add_built(json_t *list, const char *prefix, const struct vector_quote *q)
{
	static const struct {
		const char *name;
		struct vector_how how;
		enum paqm_msg_err why;
	} t[] = {
		{"only a later version",
		 {.alone = 1, .before = LATER LATER LATER LATER},
		 PAQM_MSG_VERSION_ERR},
		{"no object",
		 {.alone = 1, .before = FOREIGN FOREIGN FOREIGN FOREIGN FOREIGN FOREIGN},
		 PAQM_MSG_MAGIC},
		{"a magic and no version",
		 {.alone = 1,
		  .before = FOREIGN FOREIGN FOREIGN FOREIGN FOREIGN "0008 f7 01 5041514d"},
		 PAQM_MSG_MAGIC},
		{"flag and no tag", {.auth = 1}, PAQM_MSG_OPTION},
		{"tag of 12 bytes",
		 {.auth = 1, .options = "8001000c" VEC_EIGHT "0a0b0c0d"},
		 PAQM_MSG_OPTION},
		{"option behind the tag", {.tagged = 1, .options = "00020000"}, PAQM_MSG_OPTION},
		{"two tags", {.tagged = 1, .options = "80010008" VEC_EIGHT}, PAQM_MSG_OPTION},
		{"relative value twice", {.options = "00010004 3f59999a"}, PAQM_MSG_OPTION},
		{"tag without flag", {.options = "80010008" VEC_EIGHT}, PAQM_MSG_OPTION},
		{"half an option", {.options = "0002"}, PAQM_MSG_OPTION},
		{"zeros behind an option cut", {.options = "00020001 aa00"}, PAQM_MSG_OPTION},
		{"a broken object before", {.tagged = 1, .before = "0002 0201"}, PAQM_MSG_MAGIC},
		{"object of 132 bytes",
		 {.options = "0002004c" VEC_64 VEC_EIGHT "0a0b0c0d"},
		 PAQM_MSG_VERSION_ERR},
	};
	paqm_u8 buf[PAQM_MSG_MAX + 8];
	struct paqm_msg m;
	paqm_u32 len, ext, quoted;
	size_t i;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		m = vector_sample;
		m.ecf = 0x3F59999A;
		len = vector_build(buf, &t[i].how, &m, q);
		add_refusal(list, prefix, t[i].name, buf, len, q, t[i].why);
	}
	/* an extension structure where the quote should be */
	m = vector_sample;
	len = vector_build(
		buf,
		&(struct vector_how){.behind = FOREIGN FOREIGN FOREIGN FOREIGN FOREIGN FOREIGN}, &m,
		q);
	ext = vector_ext(buf, q->v6);
	memmove(buf + PAQM_ICMP_HDR, buf + ext, len - ext);
	len -= ext - PAQM_ICMP_HDR;
	buf[q->v6 ? 4 : 5] = 0;
	vector_seal(buf, len, q->v6, vector_told(q), 1);
	add_refusal(list, prefix, "no quote, but an object", buf, len, q, PAQM_MSG_MAGIC);
	/* a word more of payload than any packet is quoted with */
	m = vector_sample;
	len = vector_build(buf, &(struct vector_how){0}, &m, q);
	ext = vector_ext(buf, q->v6);
	len -= ext;
	quoted = q->hlen + 8 + PAQM_PROOF_MAX + (q->v6 ? 8 : 4);
	memmove(buf + PAQM_ICMP_HDR + quoted, buf + ext, len);
	memset(buf + ext, 0, PAQM_ICMP_HDR + quoted - ext);
	len += PAQM_ICMP_HDR + quoted;
	buf[q->v6 ? 4 : 5] = (paqm_u8)(quoted / (q->v6 ? 8 : 4));
	vector_seal(buf, len, q->v6, vector_told(q), 0);
	add_refusal(list, prefix, "more payload quoted than by any router", buf, len, q,
		    PAQM_MSG_QUOTE);
}

json_t *vector_refused(void)
{
	struct vector_quote q = vector_quote(0, PLAIN), q6 = vector_to6(&q);
	paqm_u8 buf[PAQM_MSG_MAX + 1] = {0};
	json_t *list = json_array();
	struct paqm_msg m = vector_sample;
	paqm_u32 len, obj;

	len = vector_build(buf, &(struct vector_how){0}, &m, &q);
	add_refusal(list, "IPv4", "empty", buf, 0, &q, PAQM_MSG_SHORT);
	add_refusal(list, "IPv4", "83 bytes: one too few", buf, 83, &q, PAQM_MSG_SHORT);
	add_refusal(list, "IPv4", "341 bytes: one too many", buf, PAQM_MSG_MAX + 1, &q,
		    PAQM_MSG_SHORT);
	vector_seal(buf, len - 4, 0, vector_told(&q), 0);
	add_refusal(list, "IPv4", "the last word is missing", buf, len - 4, &q, PAQM_MSG_MAGIC);
	SPOIL(list, "IPv4", &q, 0, spoils);
	SPOIL(list, "IPv4", &q, 0, spoils4);
	add_built(list, "IPv4", &q);

	len = vector_build(buf, &(struct vector_how){0}, &m, &q6);
	add_refusal(list, "IPv6", "103 bytes: one too few", buf, 103, &q6, PAQM_MSG_SHORT);
	SPOIL(list, "IPv6", &q6, 0, spoils);
	SPOIL(list, "IPv6", &q6, 0, spoils6);
	add_built(list, "IPv6", &q6);

	SPOIL(list, "version 1, IPv4", &q, 1, spoils1);
	SPOIL(list, "version 1, IPv6", &q6, 1, spoils1);
	SPOIL(list, "version 1, IPv6", &q6, 1, spoils16);
	/* more behind UDP than it ever quoted, in a message of legal length */
	m.ecf = 0x3F59999A;
	len = vector_build(buf, &(struct vector_how){.version = 1}, &m, &q);
	obj = len - PAQM1_OBJ_LEN;
	memmove(buf + obj + 4, buf + obj, PAQM1_OBJ_LEN);
	memset(buf + obj, 0, 4);
	vector_seal(buf, len + 4, 0, vector_told(&q), 1);
	add_refusal(list, "version 1, IPv4", "32 bytes quoted behind UDP", buf, len + 4, &q,
		    PAQM_MSG_QUOTE);
	return list;
}
