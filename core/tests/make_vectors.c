/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Writes the test vectors of docs/protocol.md, made with the encoder:
 *
 *	make_vectors DIR		write messages.json and the others of it into DIR
 *	make_vectors --check DIR	fail if a file there is not what would be written
 *
 * What a message must decode to is taken from what was put in, never from the decoder.
 */
#include <arpa/inet.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../paqm_siphash.h"
#include "inband_vectors.h"
#include "vector_names.h"

#define PLAIN 28 /* bytes that prove a plain RTP packet */
#define KEY_ID 0x0102

static const struct paqm_msg sample = {
	.flags = PAQM_F_FINAL,
	.router_id = 0x1122334455667788ULL,
	.boot = 0xA1B2C3D4,
	.seq = 77,
	.rate = 1600000,
	.period_ms = 250,
	.qdelay_100us = 13,
	.flows = 3,
	.util = 62000,
};

/* 00 01 .. 0f */
static const paqm_u8 router_key[PAQM_SIPHASH_KEY] = {0, 1, 2,  3,  4,  5,  6,  7,
						     8, 9, 10, 11, 12, 13, 14, 15};

static const paqm_u8 router6[16] = {0x20, 0x01, 0x0D, 0xB8, [15] = 1};

/* A packet's head as a router quotes it. */
struct quote {
	paqm_u8 bytes[PAQM_QUOTE_MAX];
	paqm_u32 hlen;
	paqm_u32 payload;
	int v6;
};

/* How a message is made. */
struct how {
	paqm_u8 type; /* 0: that of carrier `icmp` */
	int version;  /* 0: the present one */
	int tagged;
	const char *options;	     /* more of them in our object, hexadecimal */
	const char *before, *behind; /* objects beside ours */
	int no_checksum;	     /* of the extension structure */
	int alone;		     /* without our object */
	int auth;		     /* the flag, and no tag */
};

static json_t *hex(const paqm_u8 *p, paqm_u32 len)
{
	char text[2 * (PAQM_MSG_MAX + PAQM_INBAND_MAX) + 3];
	paqm_u32 i;

	for (i = 0; i < len; i++)
		snprintf(text + 2 * i, 3, "%02x", p[i]);
	return json_stringn(text, 2 * len);
}

/* Hexadecimal digits without blanks into @p. Return: bytes. */
static paqm_u32 unhex(paqm_u8 *p, const char *text)
{
	return text ? paqm_inband_make(p, text) : 0;
}

static json_t *number_hex(unsigned long long v, int digits)
{
	return json_sprintf("%0*llx", digits, v);
}

static json_t *address(int v6, const paqm_u8 *a)
{
	char text[INET6_ADDRSTRLEN];

	return json_string(inet_ntop(v6 ? AF_INET6 : AF_INET, a, text, sizeof(text)));
}

/* binary32 as a number for people; exact in a double */
static double real(paqm_u32 bits)
{
	float f;

	memcpy(&f, &bits, sizeof(f));
	return (double)f;
}

/* The head of an RTP packet as a router quotes it. */
static struct quote make_quote(paqm_u32 options, paqm_u32 payload)
{
	struct quote q = {.hlen = 20 + options, .payload = payload};
	paqm_u8 *ip = q.bytes, *udp = ip + q.hlen, *rtp = udp + 8;
	paqm_u32 i;

	ip[0] = (paqm_u8)(0x40 | q.hlen / 4);
	paqm_put16(ip + 2, (paqm_u16)(q.hlen + 8 + 1160));
	paqm_put16(ip + 4, 0x4711);
	paqm_put16(ip + 6, 0x4000);
	ip[8] = 63;
	ip[9] = 17;
	paqm_put32(ip + 12, 0xC0000202); /* 192.0.2.2 */
	paqm_put32(ip + 16, 0xC6336407); /* 198.51.100.7 */
	for (i = 20; i < q.hlen; i++)
		ip[i] = 1; /* no operation */
	paqm_put16(ip + 10, paqm_checksum(ip, q.hlen));
	paqm_put16(udp, 5004);
	paqm_put16(udp + 2, 6004);
	paqm_put16(udp + 4, 8 + 1160);
	paqm_put16(udp + 6, 0xBEEF);
	for (i = 0; i < payload; i++)
		rtp[i] = (paqm_u8)(0x61 + i);
	if (payload >= 12) {
		rtp[0] = 0x80;
		rtp[1] = 96;
		paqm_put16(rtp + 2, 4660);
		paqm_put32(rtp + 4, 0x01020304);
		paqm_put32(rtp + 8, 0xCAFEBABE);
	}
	return q;
}

/* The head of a packet with this payload, which is written as in inband_vectors.h. */
static struct quote make_payload(const char *payload)
{
	paqm_u8 bytes[PAQM_INBAND_MAX];
	struct quote q = make_quote(0, paqm_proof_len(bytes, unhex(bytes, payload)));

	memcpy(q.bytes + q.hlen + 8, bytes, q.payload);
	return q;
}

/* The same packet over IPv6: 2001:db8::2 to 2001:db8::700:0:0:1. */
static struct quote to6(const struct quote *v4)
{
	struct quote q = {.hlen = PAQM_IP6_HDR, .payload = v4->payload, .v6 = 1};
	paqm_u8 *ip = q.bytes;

	ip[0] = 0x60;
	paqm_put16(ip + 4, 8 + 1160);
	ip[6] = 17;
	ip[7] = 63;
	memcpy(ip + 8, router6, 16);
	ip[23] = 2;
	memcpy(ip + 24, router6, 16);
	ip[32] = 7;
	memcpy(ip + PAQM_IP6_HDR, v4->bytes + v4->hlen, 8 + v4->payload);
	return q;
}

/* Where the extension structure of a message begins. */
static paqm_u32 ext_of(const paqm_u8 *buf, int v6)
{
	return PAQM_ICMP_HDR + (v6 ? buf[4] * 8U : buf[5] * 4U);
}

/* Checksums again: of the message and, if it has one, of the extension structure. */
static void seal(paqm_u8 *buf, paqm_u32 len, int v6, const paqm_u8 *to, int version)
{
	paqm_u32 ext = ext_of(buf, v6);

	if (version != 1 && ext + PAQM_EXT_HDR <= len && paqm_get16(buf + ext + 2)) {
		paqm_put16(buf + ext + 2, 0);
		paqm_put16(buf + ext + 2, paqm_checksum(buf + ext, len - ext));
	}
	paqm_put16(buf + 2, 0);
	paqm_put16(buf + 2, v6 ? paqm_checksum6(router6, to, buf, len) : paqm_checksum(buf, len));
}

/* The key of the host with this address. */
static void derive(const paqm_u8 *router, int v6, const paqm_u8 *addr, paqm_u8 *own)
{
	paqm_u8 mapped[16] = {[10] = 0xFF, [11] = 0xFF}, bytes[PAQM_HOST_BYTES];
	paqm_u64 half;
	int i, b;

	memcpy(v6 ? mapped : mapped + 12, addr, v6 ? 16 : 4);
	for (i = 0; i < 2; i++) {
		paqm_host_bytes(mapped, i, bytes);
		half = paqm_siphash24(router, bytes, sizeof(bytes));
		for (b = 0; b < 8; b++)
			own[8 * i + b] = (paqm_u8)(half >> 8 * b);
	}
}

/* Who is told: the source of the quoted packet. */
static const paqm_u8 *told(const struct quote *q)
{
	return q->bytes + (q->v6 ? 8 : 12);
}

static void tag(struct paqm_msg *m, const struct quote *q, int version)
{
	paqm_u8 key[PAQM_SIPHASH_KEY], object[PAQM_OBJ_SENT_MAX], bytes[PAQM_TAG_BYTES];
	struct paqm_quote quoted;

	m->flags |= PAQM_F_AUTH;
	m->key_id = KEY_ID;
	if (paqm_quote_decode(q->bytes, q->hlen + 8 + q->payload, q->v6 ? 6 : 4, &quoted))
		abort();
	if (version == 1) {
		paqm1_object_encode(object, m);
		m->tag = paqm_siphash24(router_key, bytes, paqm1_tag_bytes(object, &quoted, bytes));
		return;
	}
	derive(router_key, q->v6, told(q), key);
	m->tag = paqm_siphash24(
		key, bytes, paqm_tag_bytes(object, paqm_object_encode(object, m), &quoted, bytes));
}

/* Return: length of the message; @m gets its tag. */
static paqm_u32 build(paqm_u8 *buf, const struct how *how, struct paqm_msg *m,
		      const struct quote *q)
{
	paqm_u32 len = q->hlen + 8 + q->payload, ext, obj, n;
	paqm_u8 type = how->type, own[2 * PAQM_OBJ_MAX];

	if (how->tagged)
		tag(m, q, how->version);
	if (how->version == 1)
		return paqm1_encode(buf,
				    type    ? type
				    : q->v6 ? PAQM_ICMP6_TYPE_OLD
					    : PAQM_ICMP_TYPE_EXP,
				    q->v6 ? router6 : NULL, told(q), q->bytes, len, m);
	if (q->v6)
		len = paqm_icmp6_encode(buf, PAQM_ICMP6_TYPE_EXP, router6, told(q), q->bytes, len,
					m);
	else
		len = paqm_icmp_encode(buf, type ? type : PAQM_ICMP_TYPE_EXP, q->bytes, len, m);
	if (!how->options && !how->before && !how->behind && !how->no_checksum && !how->auth)
		return len;
	ext = ext_of(buf, q->v6);
	obj = ext + PAQM_EXT_HDR;
	n = len - obj;
	memcpy(own, buf + obj, n);
	n += unhex(own + n, how->options);
	paqm_put16(own, (paqm_u16)n);
	own[9] |= how->auth ? PAQM_F_AUTH : 0;
	n = how->alone ? 0 : n;
	len = obj + unhex(buf + obj, how->before);
	memcpy(buf + len, own, n);
	len += n;
	len += unhex(buf + len, how->behind);
	if (how->no_checksum)
		paqm_put16(buf + ext + 2, 0);
	seal(buf, len, q->v6, told(q), how->version);
	return len;
}

static json_t *fields(const struct paqm_msg *m, const struct quote *q, int version)
{
	json_t *o = json_object(), *quote = json_object();
	const paqm_u8 *udp = q->bytes + q->hlen;
	paqm_u32 word = q->v6 ? 8 : 4, payload = q->payload;

	if (version != 1) /* zeros up to a word: the rest of the quote is 0 */
		payload = (q->hlen + 8 + payload + word - 1) / word * word - q->hlen - 8;
	json_object_set_new(o, "version", json_integer(version ? version : PAQM_MSG_VERSION));
	json_object_set_new(o, "flags", json_integer(m->flags));
	json_object_set_new(o, "key_id", json_integer(m->key_id));
	json_object_set_new(o, "router_id", number_hex(m->router_id, 16));
	json_object_set_new(o, "boot", number_hex(m->boot, 8));
	json_object_set_new(o, "seq", json_integer(m->seq));
	json_object_set_new(o, "ecf", m->ecf ? number_hex(m->ecf, 8) : json_null());
	json_object_set_new(o, "ecf_value", m->ecf ? json_real(real(m->ecf)) : json_null());
	json_object_set_new(o, "rate_bps", json_integer((json_int_t)m->rate));
	json_object_set_new(o, "period_ms", json_integer(m->period_ms));
	json_object_set_new(o, "qdelay_100us", json_integer(m->qdelay_100us));
	json_object_set_new(o, "flows", json_integer(m->flows));
	json_object_set_new(o, "util", json_integer(m->util));
	json_object_set_new(o, "tag", number_hex(m->tag, 16));
	json_object_set_new(quote, "saddr", address(q->v6, told(q)));
	json_object_set_new(quote, "daddr", address(q->v6, q->bytes + (q->v6 ? 24 : 16)));
	json_object_set_new(quote, "sport", json_integer(paqm_get16(udp)));
	json_object_set_new(quote, "dport", json_integer(paqm_get16(udp + 2)));
	json_object_set_new(quote, "payload", hex(udp + 8, payload));
	json_object_set_new(o, "quote", quote);
	return o;
}

/* A vector with the message in it and, over IPv6, between which addresses. */
static json_t *vector(const char *name, const paqm_u8 *buf, paqm_u32 len, const struct quote *q)
{
	if (!q->v6)
		return json_pack("{s:s,s:o}", "name", name, "icmp", hex(buf, len));
	return json_pack("{s:s,s:o,s:o,s:o}", "name", name, "src", address(1, router6), "dst",
			 address(1, told(q)), "icmp6", hex(buf, len));
}

static void add(json_t *list, const char *name, struct how how, struct paqm_msg m,
		const struct quote *q)
{
	paqm_u8 buf[PAQM_MSG_MAX], own[PAQM_SIPHASH_KEY];
	paqm_u32 len = build(buf, &how, &m, q);
	json_t *v = vector(name, buf, len, q);

	json_object_set_new(v, "expect", fields(&m, q, how.version));
	if (how.tagged && how.version == 1)
		json_object_set_new(v, "key", hex(router_key, sizeof(router_key)));
	if (how.tagged && how.version != 1) {
		derive(router_key, q->v6, told(q), own);
		json_object_set_new(v, "router_key", hex(router_key, sizeof(router_key)));
		json_object_set_new(v, "key", hex(own, sizeof(own)));
	}
	json_array_append_new(list, v);
}

#define EXTENDED "90" VEC_RTP "bede0003 22aabbcc 51010203040506 00" VEC_EIGHT VEC_EIGHT
#define CSRC_EXTENDED "92" VEC_RTP "1111111122222222 abcd0001 aabbccdd" VEC_EIGHT VEC_EIGHT
#define LONGEST                                                                                    \
	"90" VEC_RTP "abcd0018" VEC_64 VEC_EIGHT VEC_EIGHT VEC_EIGHT VEC_EIGHT VEC_EIGHT VEC_EIGHT
#define FIELD "90" VEC_RTP "bede0004 1e@" VEC_EIGHT VEC_EIGHT
#define DTLS "16fefd000000000000000100" VEC_EIGHT VEC_EIGHT VEC_EIGHT
#define FOREIGN "0008 02 01 deadbeef"	     /* RFC 5837 */
#define ALIEN "000c f7 01 5041514e 02000000" /* another magic */
#define LATER "000c f7 01 5041514d 03ffffff"

/* What is the same over IPv4 and IPv6. */
static void add_common(json_t *list, const struct quote *plain)
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
	struct paqm_msg m = sample;
	struct quote q;
	size_t i;

	add(list, "usual", (struct how){0}, m, plain);
	m.ecf = 0x3F59999A;
	add(list, "with a relative value: multiply", (struct how){0}, m, plain);
	m.ecf = PAQM_F32_ONE;
	add(list, "with a relative value: hold", (struct how){0}, m, plain);
	m.ecf = 0x489B9955;
	add(list, "with a relative value: 318666.667 bit/s more", (struct how){0}, m, plain);
	add(list, "tagged, with a relative value", (struct how){.tagged = 1}, m, plain);
	add(list, "tagged", (struct how){.tagged = 1}, sample, plain);
	for (i = 0; i < sizeof(packets) / sizeof(packets[0]); i++) {
		q = make_payload(packets[i].payload);
		if (plain->v6)
			q = to6(&q);
		add(list, packets[i].name, (struct how){.tagged = i & 1}, sample, &q);
	}
	add(list, "a foreign object before", (struct how){.before = FOREIGN}, sample, plain);
	add(list, "foreign objects behind", (struct how){.behind = ALIEN FOREIGN}, sample, plain);
	add(list, "the same in a later version before", (struct how){.before = LATER}, sample,
	    plain);
	add(list, "tagged, the same in a later version behind",
	    (struct how){.tagged = 1, .behind = LATER}, sample, plain);
	add(list, "unknown options are passed over",
	    (struct how){.options = "00020003 aabbcc00 7fff0000"}, m, plain);
	add(list, "no checksum of the extension structure", (struct how){.no_checksum = 1}, sample,
	    plain);
}

static json_t *messages(void)
{
	struct quote q = make_quote(0, PLAIN), bare = make_quote(0, 0);
	struct quote options = make_quote(40, PLAIN), few = make_quote(0, 17);
	struct paqm_field lower = {.rate = 0x49742400, .router = 0xBEEF, .period = 13};
	json_t *list = json_array();
	struct paqm_msg m;
	paqm_u8 *udp;

	add_common(list, &q);
	m = sample;
	m.flags = PAQM_F_OVERLOAD | PAQM_F_POLICED;
	m.qdelay_100us = 65535;
	m.flows = 65535;
	m.util = 65535;
	add(list, "overload and policed, saturated fields", (struct how){0}, m, &q);
	m = sample;
	m.boot = 0xFFFFFFFF;
	m.seq = 0xFFFFFFFF;
	m.router_id = ~0ULL;
	m.period_ms = 65535;
	add(list, "largest identities", (struct how){0}, m, &q);
	m = sample;
	m.flags = 0xF0;
	add(list, "unassigned flags are ignored", (struct how){0}, m, &q);
	m = sample;
	m.rate = PAQM_VALUE_MAX;
	m.ecf = 0x35800000; /* 2^-20, the least that the check sees */
	add(list, "largest rate, least factor", (struct how){0}, m, &q);
	m.rate = 1;
	m.ecf = 0x5368D4A5; /* 1e12 */
	add(list, "least rate, largest increase", (struct how){0}, m, &q);
	m.rate = 123456789012ULL;
	m.ecf = 0;
	add(list, "rate that no binary32 is", (struct how){0}, m, &q);
	add(list, "quoted packet of 17 payload bytes, zeros behind it", (struct how){0}, sample,
	    &few);
	add(list, "quoted packet without payload", (struct how){0}, sample, &bare);
	add(list, "quoted IPv4 header with options", (struct how){0}, sample, &options);
	add(list, "carrier quench: ICMP type 4", (struct how){.type = PAQM_ICMP_TYPE_QUENCH},
	    sample, &q);
	q.bytes[8]--; /* TTL */
	paqm_put16(q.bytes + 10, 0);
	paqm_put16(q.bytes + 10, paqm_checksum(q.bytes, q.hlen));
	paqm_put16(q.bytes + q.hlen, 40000);
	add(list, "tagged, TTL and source port differ: the tag does not", (struct how){.tagged = 1},
	    sample, &q);
	paqm_put16(q.bytes + q.hlen + 2, 6005);
	add(list, "tagged, destination port differs: so does the tag", (struct how){.tagged = 1},
	    sample, &q);
	q.bytes[19] = 8;
	add(list, "tagged, destination address differs: so does the tag", (struct how){.tagged = 1},
	    sample, &q);
	q.bytes[15] = 3;
	add(list, "tagged, another host: another key", (struct how){.tagged = 1}, sample, &q);
	q = make_payload(FIELD);
	udp = q.bytes + q.hlen;
	add(list, "tagged, with an in-band field", (struct how){.tagged = 1}, sample, &q);
	paqm_field_lower(udp, paqm_field_find(udp + 8, q.payload), &lower, 0);
	add(list, "tagged, a router has lowered the field: the tag is the same",
	    (struct how){.tagged = 1}, sample, &q);
	return list;
}

static json_t *messages6(void)
{
	struct quote plain = make_quote(0, PLAIN), few = make_quote(0, 17);
	json_t *list = json_array();

	plain = to6(&plain);
	few = to6(&few);
	add_common(list, &plain);
	add(list, "quoted packet of 17 payload bytes, zeros behind it", (struct how){0}, sample,
	    &few);
	return list;
}

static json_t *version1(void)
{
	struct quote q = make_quote(0, PLAIN), options = make_quote(40, PLAIN), q6 = to6(&q);
	struct how old = {.version = 1}, tagged = {.version = 1, .tagged = 1};
	struct how quench = {.version = 1, .type = PAQM_ICMP_TYPE_QUENCH};
	json_t *list = json_array();
	struct paqm_msg m = sample;

	m.ecf = 0x3F59999A;
	add(list, "IPv4", old, m, &q);
	add(list, "IPv4, quoted header with options", old, m, &options);
	add(list, "IPv4, carrier quench", quench, m, &q);
	add(list, "IPv4, tagged with the router's key", tagged, m, &q);
	add(list, "IPv6: ICMPv6 type 100", old, m, &q6);
	add(list, "IPv6, tagged with the router's key", tagged, m, &q6);
	q = make_quote(0, 20);
	add(list, "IPv4, quoted packet of 20 payload bytes", old, m, &q);
	q = make_payload("82" VEC_RTP "1111111122222222" VEC_EIGHT VEC_EIGHT);
	q.payload = PLAIN;
	add(list, "IPv4, 28 bytes of a packet with sources: they prove nothing", old, m, &q);
	q = make_payload(DTLS);
	add(list, "IPv4, no RTP, tagged", tagged, m, &q);
	return list;
}

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
			paqm_u32 len, const struct quote *q, enum paqm_msg_err why)
{
	char text[128];
	json_t *v;

	snprintf(text, sizeof(text), "%s: %s", prefix, name);
	v = vector(text, buf, len, q);
	json_object_set_new(v, "refusal", json_string(vector_refusals[why]));
	json_array_append_new(list, v);
}

static void add_spoiled(json_t *list, const char *prefix, const struct quote *q, int version,
			const struct spoil *s, size_t n)
{
	struct how how = {.version = version, .tagged = version != 1};
	paqm_u8 good[PAQM_MSG_MAX], buf[PAQM_MSG_MAX], bytes[16];
	paqm_u32 len, at, k;
	struct paqm_msg m = sample;

	m.ecf = 0x3F59999A;
	len = build(good, &how, &m, q);
	for (; n--; s++) {
		memcpy(buf, good, len);
		/* the second fault of the last one */
		if (strstr(s->name, "two faults"))
			buf[PAQM_ICMP_HDR] = 0;
		at = s->part == MSG ? 0 : version == 1 ? len - PAQM1_OBJ_LEN : ext_of(good, q->v6);
		at += s->part == OBJ && version != 1 ? PAQM_EXT_HDR : 0;
		at = s->offset < 0 ? len - (paqm_u32)-s->offset : at + (paqm_u32)s->offset;
		k = unhex(bytes, s->bytes);
		memcpy(buf + at, bytes, k);
		if (s->keep_checksum)
			;
		else if (s->part == EXT && s->offset == 2) /* its own checksum is the fault */
			seal(buf, len, q->v6, told(q), 1);
		else
			seal(buf, len, q->v6, told(q), version);
		add_refusal(list, prefix, s->name, buf, len, q, s->why);
	}
}

#define SPOIL(list, prefix, q, version, spoils)                                                    \
	add_spoiled(list, prefix, q, version, spoils, sizeof(spoils) / sizeof((spoils)[0]))

/* Messages that are wrong in more than a few bytes. */
static void add_built(json_t *list, const char *prefix, const struct quote *q)
{
	static const struct {
		const char *name;
		struct how how;
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
		m = sample;
		m.ecf = 0x3F59999A;
		len = build(buf, &t[i].how, &m, q);
		add_refusal(list, prefix, t[i].name, buf, len, q, t[i].why);
	}
	/* an extension structure where the quote should be */
	m = sample;
	len = build(buf, &(struct how){.behind = FOREIGN FOREIGN FOREIGN FOREIGN FOREIGN FOREIGN},
		    &m, q);
	ext = ext_of(buf, q->v6);
	memmove(buf + PAQM_ICMP_HDR, buf + ext, len - ext);
	len -= ext - PAQM_ICMP_HDR;
	buf[q->v6 ? 4 : 5] = 0;
	seal(buf, len, q->v6, told(q), 1);
	add_refusal(list, prefix, "no quote, but an object", buf, len, q, PAQM_MSG_MAGIC);
	/* a word more of payload than any packet is quoted with */
	m = sample;
	len = build(buf, &(struct how){0}, &m, q);
	ext = ext_of(buf, q->v6);
	len -= ext;
	quoted = q->hlen + 8 + PAQM_PROOF_MAX + (q->v6 ? 8 : 4);
	memmove(buf + PAQM_ICMP_HDR + quoted, buf + ext, len);
	memset(buf + ext, 0, PAQM_ICMP_HDR + quoted - ext);
	len += PAQM_ICMP_HDR + quoted;
	buf[q->v6 ? 4 : 5] = (paqm_u8)(quoted / (q->v6 ? 8 : 4));
	seal(buf, len, q->v6, told(q), 0);
	add_refusal(list, prefix, "more payload quoted than by any router", buf, len, q,
		    PAQM_MSG_QUOTE);
}

static json_t *refusals(void)
{
	struct quote q = make_quote(0, PLAIN), q6 = to6(&q);
	paqm_u8 buf[PAQM_MSG_MAX + 1] = {0};
	json_t *list = json_array();
	struct paqm_msg m = sample;
	paqm_u32 len, obj;

	len = build(buf, &(struct how){0}, &m, &q);
	add_refusal(list, "IPv4", "empty", buf, 0, &q, PAQM_MSG_SHORT);
	add_refusal(list, "IPv4", "83 bytes: one too few", buf, 83, &q, PAQM_MSG_SHORT);
	add_refusal(list, "IPv4", "341 bytes: one too many", buf, PAQM_MSG_MAX + 1, &q,
		    PAQM_MSG_SHORT);
	seal(buf, len - 4, 0, told(&q), 0);
	add_refusal(list, "IPv4", "the last word is missing", buf, len - 4, &q, PAQM_MSG_MAGIC);
	SPOIL(list, "IPv4", &q, 0, spoils);
	SPOIL(list, "IPv4", &q, 0, spoils4);
	add_built(list, "IPv4", &q);

	len = build(buf, &(struct how){0}, &m, &q6);
	add_refusal(list, "IPv6", "103 bytes: one too few", buf, 103, &q6, PAQM_MSG_SHORT);
	SPOIL(list, "IPv6", &q6, 0, spoils);
	SPOIL(list, "IPv6", &q6, 0, spoils6);
	add_built(list, "IPv6", &q6);

	SPOIL(list, "version 1, IPv4", &q, 1, spoils1);
	SPOIL(list, "version 1, IPv6", &q6, 1, spoils1);
	SPOIL(list, "version 1, IPv6", &q6, 1, spoils16);
	/* more behind UDP than it ever quoted, in a message of legal length */
	m.ecf = 0x3F59999A;
	len = build(buf, &(struct how){.version = 1}, &m, &q);
	obj = len - PAQM1_OBJ_LEN;
	memmove(buf + obj + 4, buf + obj, PAQM1_OBJ_LEN);
	memset(buf + obj, 0, 4);
	seal(buf, len + 4, 0, told(&q), 1);
	add_refusal(list, "version 1, IPv4", "32 bytes quoted behind UDP", buf, len + 4, &q,
		    PAQM_MSG_QUOTE);
	return list;
}

#define SIXTEEN "000102030405060708090a0b0c0d0e0f"

/* What of a UDP payload proves the packet, written down by hand; NULL: nothing does. */
static const struct {
	const char *name, *payload, *proof;
} proofs[] = {
	{"plain RTP: its header and 16 bytes behind it", "80" VEC_RTP SIXTEEN "1011121314",
	 "80" VEC_RTP SIXTEEN},
	{"no more than that", "80" VEC_RTP SIXTEEN, "80" VEC_RTP SIXTEEN},
	{"a byte less", "80" VEC_RTP "000102030405060708090a0b0c0d0e", NULL},
	{"two sources count", "82" VEC_RTP "1111111122222222" SIXTEEN "10",
	 "82" VEC_RTP "1111111122222222" SIXTEEN},
	{"fifteen sources count",
	 "8f" VEC_RTP VEC_EIGHT VEC_EIGHT VEC_EIGHT VEC_EIGHT VEC_EIGHT VEC_EIGHT VEC_EIGHT
	 "0a0b0c0d" SIXTEEN "10",
	 "8f" VEC_RTP VEC_EIGHT VEC_EIGHT VEC_EIGHT VEC_EIGHT VEC_EIGHT VEC_EIGHT VEC_EIGHT
	 "0a0b0c0d" SIXTEEN},
	{"sources, a byte less",
	 "82" VEC_RTP "1111111122222222"
	 "000102030405060708090a0b0c0d0e",
	 NULL},
	{"a header extension counts", "90" VEC_RTP "bede0001 aabbccdd" SIXTEEN "10",
	 "90" VEC_RTP "bede0001 aabbccdd" SIXTEEN},
	{"an empty one, too", "90" VEC_RTP "bede0000" SIXTEEN "10",
	 "90" VEC_RTP "bede0000" SIXTEEN},
	{"sources and header extension", "92" VEC_RTP "1111111122222222 abcd0001 aabbccdd" SIXTEEN,
	 "92" VEC_RTP "1111111122222222 abcd0001 aabbccdd" SIXTEEN},
	{"with padding at its end", "b0" VEC_RTP "bede0001 aabbccdd" SIXTEEN "00000004",
	 "b0" VEC_RTP "bede0001 aabbccdd" SIXTEEN},
	{"fewer than 16 bytes behind the extension", "90" VEC_RTP "bede0001 aabbccdd" VEC_EIGHT,
	 NULL},
	{"extension longer than the packet", "90" VEC_RTP "bede0010 aabbccdd" SIXTEEN, NULL},
	{"extension of 262140 bytes", "90" VEC_RTP "bedeffff aabbccdd" SIXTEEN, NULL},
	{"cut before the length of the extension", "9f" VEC_RTP SIXTEEN, NULL},
	{"header of 112 bytes: the longest that is quoted",
	 "90" VEC_RTP "abcd0018" VEC_64 VEC_EIGHT VEC_EIGHT VEC_EIGHT VEC_EIGHT SIXTEEN "10",
	 "90" VEC_RTP "abcd0018" VEC_64 VEC_EIGHT VEC_EIGHT VEC_EIGHT VEC_EIGHT SIXTEEN},
	{"header of 116 bytes: too long",
	 "90" VEC_RTP "abcd0019" VEC_64 VEC_EIGHT VEC_EIGHT VEC_EIGHT VEC_EIGHT "0a0b0c0d" SIXTEEN
	 "10",
	 NULL},
	{"in-band field: what routers write is left out", "90" VEC_RTP "bede0004 1e@" SIXTEEN "10",
	 "90" VEC_RTP "bede0004 1e50415131 11223344" SIXTEEN},
	{"in-band field in an element with a header of two bytes",
	 "90" VEC_RTP "10000005 010f@ 000000" SIXTEEN,
	 "90" VEC_RTP "10000005 010f50415131 11223344 000000" SIXTEEN},
	{"in-band field, lowered",
	 "90" VEC_RTP "bede0004 1e50415131 49742400 beef 0d 11223344" SIXTEEN,
	 "90" VEC_RTP "bede0004 1e50415131 11223344" SIXTEEN},
	{"no field: its rate is no number",
	 "90" VEC_RTP "bede0004 1e50415131 7fc00000 0000 00 11223344" SIXTEEN,
	 "90" VEC_RTP "bede0004 1e50415131 7fc00000 0000 00 11223344" SIXTEEN},
	{"no field: behind the extension", "90" VEC_RTP "bede0001 aabbccdd 1e@" SIXTEEN,
	 "90" VEC_RTP "bede0001 aabbccdd 1e50415131 4a3ebc20 0000 00 11223344"},
	{"a probe with more behind it than is usual", "0f@00000001" SIXTEEN,
	 "0f50415131 11223344 00000001 0001020304050607"},
	{"a probe: too short", "0f@00000001", NULL},
	{"not RTP version 2: 28 bytes", "16fefd000000000000000000" SIXTEEN "1011",
	 "16fefd000000000000000000" SIXTEEN},
	{"not RTP version 2: 27 bytes", "16fefd0000000000000000" SIXTEEN, NULL},
	{"RTP version 3: 28 bytes", "d3" VEC_RTP SIXTEEN "10", "d3" VEC_RTP SIXTEEN},
	{"nothing", "", NULL},
};

static json_t *proof(void)
{
	paqm_u8 bytes[PAQM_INBAND_MAX];
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < sizeof(proofs) / sizeof(proofs[0]); i++) {
		json_t *v = json_pack("{s:s,s:o}", "name", proofs[i].name, "payload",
				      hex(bytes, unhex(bytes, proofs[i].payload)));

		json_object_set_new(v, "proof",
				    proofs[i].proof ? hex(bytes, unhex(bytes, proofs[i].proof))
						    : json_null());
		json_array_append_new(list, v);
	}
	return list;
}

static json_t *hostkeys(void)
{
	static const char *const t[][2] = {
		{"IPv4", "192.0.2.2"},
		{"the next one has another key", "192.0.2.3"},
		{"IPv6", "2001:db8:0:7::2"},
		{"another address in the same network: the same key", "2001:db8:0:7:a:b:c:d"},
		{"another network: another key", "2001:db8:0:8::2"},
		{"nearly IPv4", "::fffe:192.0.2.2"},
	};
	paqm_u8 router[PAQM_SIPHASH_KEY], own[PAQM_SIPHASH_KEY], addr[16];
	json_t *list = json_array();
	size_t i;
	int v6;

	memcpy(router, router_key, sizeof(router));
	for (i = 0; i < 2 * sizeof(t) / sizeof(t[0]); i++) {
		const char *const *c = t[i / 2];

		v6 = !!strchr(c[1], ':');
		inet_pton(v6 ? AF_INET6 : AF_INET, c[1], addr);
		memset(router, i & 1 ? 0xFF : 0, 1);
		derive(router, v6, addr, own);
		json_array_append_new(
			list, json_pack("{s:o,s:o,s:s,s:o}", "name",
					json_sprintf("%s%s", c[0], i & 1 ? ", another router" : ""),
					"router_key", hex(router, sizeof(router)), "address", c[1],
					"host_key", hex(own, sizeof(own))));
	}
	return list;
}

/* What a router with this rate makes of the payloads of the table. */
static const struct paqm_field router = {.rate = 0x49742400, .router = 0xBEEF, .period = 13};

static json_t *inband(void)
{
	paqm_u8 udp[8 + PAQM_INBAND_MAX];
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < sizeof(paqm_inband_cases) / sizeof(paqm_inband_cases[0]); i++) {
		const struct paqm_inband_case *c = &paqm_inband_cases[i];
		paqm_u32 len = paqm_inband_make(udp + 8, c->hex);
		json_t *v = json_pack("{s:s,s:o}", "name", c->name, "payload", hex(udp + 8, len));

		if (c->at) {
			json_object_set_new(v, "offset", json_integer(c->at));
			paqm_put32(udp, 0x138C138E);
			paqm_put16(udp + 4, (paqm_u16)(8 + len));
			paqm_put16(udp + 6, 0);
			/* as if the pseudo header summed to zero */
			paqm_put16(udp + 6, paqm_checksum(udp, 8 + len));
			json_object_set_new(v, "udp", hex(udp, 8 + len));
			paqm_field_lower(udp, c->at, &router, 0);
			json_object_set_new(v, "lowered", hex(udp, 8 + len));
		}
		json_array_append_new(list, v);
	}
	return list;
}

static json_t *returns(void)
{
	static const struct {
		const char *name;
		struct paqm_return r;
		unsigned long long bps;
	} t[] = {
		{"of an element", {{0x49189680, 0x11223344, 0xBEEF, 13}, 0x10002, 0}, 625000},
		{"of a probe that no router lowered", {{0x4A3EBC20, 1, 0, 0}, 7, 1}, 3125000},
		{"largest rate",
		 {{0x5368D4A5, 0xFFFFFFFF, 0xFFFF, 255}, 0xFFFFFFFF, 1},
		 999999995904ULL},
	};
	paqm_u8 app[PAQM_APP_LEN], tmmbr[PAQM_TMMBR_LEN], remb[PAQM_REMB_LEN];
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		const struct paqm_return *r = &t[i].r;
		json_t *v;

		paqm_return_encode(app, 0xCAFEBABE, r);
		paqm_tmmbr_encode(tmmbr, 0xCAFEBABE, 0x12345678, t[i].bps, 40);
		paqm_remb_encode(remb, 0xCAFEBABE, 0x12345678, t[i].bps);
		v = json_pack("{s:s,s:o,s:i,s:i,s:o,s:o,s:i}", "name", t[i].name, "rate",
			      number_hex(r->field.rate, 8), "router", r->field.router, "period",
			      r->field.period, "nonce", number_hex(r->field.nonce, 8), "seq",
			      number_hex(r->seq, 8), "kind", r->kind);
		json_object_set_new(v, "app", hex(app, sizeof(app)));
		json_object_set_new(v, "bps", json_integer((json_int_t)t[i].bps));
		json_object_set_new(v, "tmmbr", hex(tmmbr, sizeof(tmmbr)));
		json_object_set_new(v, "remb", hex(remb, sizeof(remb)));
		json_array_append_new(list, v);
	}
	return list;
}

/* Return: 0, or 1 when the file differs or cannot be written. */
static int put(const char *dir, const char *file, const char *about, json_t *list, int check)
{
	char path[4096];
	json_t *all = json_pack("{s:i,s:s,s:o}", "format", 1, "about", about, "vectors", list),
	       *old;
	json_error_t err;
	int bad = 1;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	if (!check) {
		bad = json_dump_file(all, path, JSON_INDENT(1) | JSON_REAL_PRECISION(17)) != 0;
		if (bad)
			fprintf(stderr, "make_vectors: cannot write %s\n", path);
	} else {
		old = json_load_file(path, 0, &err);
		if (!old)
			fprintf(stderr, "make_vectors: %s: %s\n", path, err.text);
		else if (!json_equal(old, all))
			fprintf(stderr,
				"make_vectors: %s is not what the encoder makes; "
				"write it again and look at the difference\n",
				path);
		else
			bad = 0;
		json_decref(old);
	}
	json_decref(all);
	return bad;
}

int main(int argc, char **argv)
{
	int check = argc == 3 && !strcmp(argv[1], "--check"), bad;
	const char *dir = argv[argc - 1];

	if (argc != 2 && !check) {
		fputs("Usage: make_vectors [--check] DIR\n", stderr);
		return 2;
	}
	bad = put(dir, "messages.json", "ICMP messages that a receiver must decode", messages(),
		  check);
	bad |= put(dir, "messages6.json", "ICMPv6 messages, and between which addresses",
		   messages6(), check);
	bad |= put(dir, "version1.json", "messages of version 1, which is read, too", version1(),
		   check);
	bad |= put(dir, "refusals.json",
		   "ICMP and ICMPv6 messages that a receiver must refuse, and why", refusals(),
		   check);
	bad |= put(dir, "proof.json",
		   "bytes of a UDP payload that prove the packet; null: it proves nothing", proof(),
		   check);
	bad |= put(dir, "hostkeys.json", "keys of hosts, derived from those of routers", hostkeys(),
		   check);
	bad |= put(dir, "inband.json",
		   "UDP payloads with and without a rate for routers; lowered to 1000000 bit/s by "
		   "router beef with a period of 260 ms",
		   inband(), check);
	bad |= put(dir, "returns.json", "what receivers return by RTCP", returns(), check);
	return bad;
}
