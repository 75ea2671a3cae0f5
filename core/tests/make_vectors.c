/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Writes the test vectors of docs/protocol.md, made with the encoder:
 *
 *	make_vectors DIR		write DIR/messages.json, messages6.json, refusals.json,
 *					invariant.json, inband.json, returns.json
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

#define QUOTE_PLAIN 28 /* IPv4 and UDP header */

static const struct paqm_msg sample = {
	.flags = PAQM_F_FINAL,
	.router_id = 0x1122334455667788ULL,
	.boot = 0xA1B2C3D4,
	.seq = 77,
	.ecf = 0x3F59999A,
	.erf = 0x49C35000,
	.period_ms = 250,
	.qdelay_100us = 13,
	.flows = 3,
	.util = 62000,
};

struct quote {
	paqm_u8 bytes[PAQM_QUOTE_MAX];
	paqm_u32 hlen;
	paqm_u32 payload;
};

static json_t *hex(const paqm_u8 *p, paqm_u32 len)
{
	char text[2 * PAQM_INBAND_MAX + 8];
	paqm_u32 i;

	for (i = 0; i < len; i++)
		snprintf(text + 2 * i, 3, "%02x", p[i]);
	return json_stringn(text, 2 * len);
}

static json_t *number_hex(unsigned long long v, int digits)
{
	return json_sprintf("%0*llx", digits, v);
}

static json_t *address(paqm_u32 a)
{
	return json_sprintf("%u.%u.%u.%u", a >> 24, a >> 16 & 255, a >> 8 & 255, a & 255);
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

static json_t *fields(const struct paqm_msg *m, const struct quote *q)
{
	json_t *o = json_object(), *quote = json_object();
	const paqm_u8 *udp = q->bytes + q->hlen;

	json_object_set_new(o, "flags", json_integer(m->flags));
	json_object_set_new(o, "key_id", json_integer(m->key_id));
	json_object_set_new(o, "router_id", number_hex(m->router_id, 16));
	json_object_set_new(o, "boot", number_hex(m->boot, 8));
	json_object_set_new(o, "seq", json_integer(m->seq));
	json_object_set_new(o, "ecf", number_hex(m->ecf, 8));
	json_object_set_new(o, "ecf_value", json_real(real(m->ecf)));
	json_object_set_new(o, "erf", number_hex(m->erf, 8));
	json_object_set_new(o, "erf_bps", json_real(real(m->erf)));
	json_object_set_new(o, "period_ms", json_integer(m->period_ms));
	json_object_set_new(o, "qdelay_100us", json_integer(m->qdelay_100us));
	json_object_set_new(o, "flows", json_integer(m->flows));
	json_object_set_new(o, "util", json_integer(m->util));
	json_object_set_new(o, "tag", number_hex(m->tag, 16));
	json_object_set_new(quote, "saddr", address(paqm_get32(q->bytes + 12)));
	json_object_set_new(quote, "daddr", address(paqm_get32(q->bytes + 16)));
	json_object_set_new(quote, "sport", json_integer(paqm_get16(udp)));
	json_object_set_new(quote, "dport", json_integer(paqm_get16(udp + 2)));
	json_object_set_new(quote, "payload", hex(udp + 8, q->payload));
	json_object_set_new(o, "quote", quote);
	return o;
}

static paqm_u32 encode(paqm_u8 *buf, const struct paqm_msg *m, const struct quote *q)
{
	return paqm_icmp_encode(buf, PAQM_ICMP_TYPE_EXP, q->bytes, q->hlen + 8 + q->payload, m);
}

static void add_typed(json_t *list, const char *name, paqm_u8 type, const struct paqm_msg *m,
		      const struct quote *q)
{
	paqm_u8 buf[PAQM_MSG_MAX];
	paqm_u32 len = paqm_icmp_encode(buf, type, q->bytes, q->hlen + 8 + q->payload, m);

	json_array_append_new(list, json_pack("{s:s,s:o,s:o}", "name", name, "icmp", hex(buf, len),
					      "expect", fields(m, q)));
}

static void add_message(json_t *list, const char *name, const struct paqm_msg *m,
			const struct quote *q)
{
	add_typed(list, name, PAQM_ICMP_TYPE_EXP, m, q);
}

/* The same with a tag under the key 00 01 .. 0f. */
static void add_tagged(json_t *list, const char *name, const struct quote *q)
{
	paqm_u8 key[PAQM_SIPHASH_KEY], bytes[PAQM_TAG_BYTES];
	struct paqm_msg m = sample;
	paqm_u32 i, n;

	for (i = 0; i < sizeof(key); i++)
		key[i] = (paqm_u8)i;
	m.flags |= PAQM_F_AUTH;
	m.key_id = 0x0102;
	n = paqm_tag_bytes(&m, q->bytes + q->hlen + 8, q->payload, bytes);
	m.tag = paqm_siphash24(key, bytes, n);
	add_message(list, name, &m, q);
	json_object_set_new(json_array_get(list, json_array_size(list) - 1), "key",
			    hex(key, sizeof(key)));
}

static json_t *messages(void)
{
	struct quote q = make_quote(0, PAQM_QUOTE_UDP), bare = make_quote(0, 0);
	struct quote options = make_quote(40, PAQM_QUOTE_UDP), few = make_quote(0, 20);
	json_t *list = json_array();
	struct paqm_msg m;

	add_message(list, "usual: 28 bytes quoted behind UDP, factor and rate", &sample, &q);
	m = sample;
	m.ecf = PAQM_F32_ONE;
	add_message(list, "hold", &m, &q);
	m.ecf = 0x489B9955;
	add_message(list, "increase of 318666.667 bit/s", &m, &q);
	m = sample;
	m.flags = PAQM_F_OVERLOAD | PAQM_F_POLICED;
	m.qdelay_100us = 65535;
	m.flows = 65535;
	m.util = 65535;
	add_message(list, "overload and policed, saturated fields", &m, &q);
	m = sample;
	m.boot = 0xFFFFFFFF;
	m.seq = 0xFFFFFFFF;
	m.router_id = ~0ULL;
	m.period_ms = 65535;
	add_message(list, "largest identities", &m, &q);
	m = sample;
	m.flags = 0xF0;
	add_message(list, "unassigned flags are ignored", &m, &q);
	m = sample;
	m.erf = 0x5368D4A5; /* 1e12 */
	m.ecf = 0x35800000; /* 2^-20, the least that the check sees */
	add_message(list, "limits of the values", &m, &q);
	add_message(list, "quoted packet of 20 payload bytes", &sample, &few);
	add_message(list, "quoted packet without payload", &sample, &bare);
	add_message(list, "quoted IPv4 header with options", &sample, &options);
	add_typed(list, "carrier quench: ICMP type 4", PAQM_ICMP_TYPE_QUENCH, &sample, &q);
	add_tagged(list, "tagged", &q);
	q.bytes[8]--; /* TTL */
	paqm_put16(q.bytes + 10, 0);
	paqm_put16(q.bytes + 10, paqm_checksum(q.bytes, q.hlen));
	paqm_put16(q.bytes + q.hlen, 40000);
	add_tagged(list, "tagged, TTL and source port differ: the tag does not", &q);
	q.bytes[q.hlen + 8] |= 0x10; /* a header extension of one word */
	paqm_put32(q.bytes + q.hlen + 20, 0xBEDE0001);
	add_tagged(list, "tagged, what lies in a header extension is not covered", &q);
	add_tagged(list, "tagged, 20 payload bytes", &few);
	return list;
}

/* One way to spoil a good message. */
struct spoil {
	const char *name;
	enum paqm_msg_err why;
	int offset;	   /* of the first byte changed; from the end if negative */
	const char *bytes; /* hexadecimal */
	int keep_checksum; /* do not make it right again */
};

static const struct spoil spoils[] = {
	{"ICMP type 3", PAQM_MSG_TYPE, 0, "03", 0},
	{"ICMP code 1", PAQM_MSG_TYPE, 1, "01", 0},
	{"checksum off by one", PAQM_MSG_CHECKSUM, -1, "01", 1},
	{"no object at the end", PAQM_MSG_MAGIC, -48, "5041514e", 0},
	{"version 2", PAQM_MSG_VERSION_ERR, -44, "02", 0},
	{"version 0", PAQM_MSG_VERSION_ERR, -44, "00", 0},
	{"quoted IP version 6", PAQM_MSG_QUOTE, 8, "65", 0},
	{"quoted IP header of 16 bytes", PAQM_MSG_QUOTE, 8, "44", 0},
	{"quoted IP header beyond the quote", PAQM_MSG_QUOTE, 8, "4f", 0},
	{"quoted TCP", PAQM_MSG_QUOTE, 17, "06", 0},
	{"quoted later fragment", PAQM_MSG_QUOTE, 14, "2001", 0},
	{"rate NaN", PAQM_MSG_VALUE, -20, "7fc00001", 0},
	{"rate infinite", PAQM_MSG_VALUE, -20, "7f800000", 0},
	{"rate negative", PAQM_MSG_VALUE, -20, "c9c35000", 0},
	{"rate zero", PAQM_MSG_VALUE, -20, "00000000", 0},
	{"rate above 1e12 bit/s", PAQM_MSG_VALUE, -20, "5368d4a6", 0},
	{"ECF value below 2^-20", PAQM_MSG_VALUE, -24, "357fffff", 0},
	{"ICMP value is not that of the object", PAQM_MSG_MISMATCH, 4, "3f800000", 0},
	{"two faults: version before value", PAQM_MSG_VERSION_ERR, -44, "03", 0},
};

static void add_refusal(json_t *list, const char *name, const paqm_u8 *buf, paqm_u32 len,
			enum paqm_msg_err why)
{
	json_array_append_new(list, json_pack("{s:s,s:o,s:s}", "name", name, "icmp", hex(buf, len),
					      "refusal", vector_refusals[why]));
}

static void seal(paqm_u8 *buf, paqm_u32 len)
{
	paqm_put16(buf + 2, 0);
	paqm_put16(buf + 2, paqm_checksum(buf, len));
}

static json_t *refusals(void)
{
	struct quote q = make_quote(0, PAQM_QUOTE_UDP), max = make_quote(40, PAQM_QUOTE_UDP);
	paqm_u8 good[PAQM_MSG_MAX], buf[PAQM_MSG_MAX + 1];
	paqm_u32 len = encode(good, &sample, &q), at;
	json_t *list = json_array();
	struct paqm_msg zero = sample;
	unsigned int byte;
	size_t i, j;

	zero.erf = 0;
	add_refusal(list, "empty", good, 0, PAQM_MSG_SHORT);
	add_refusal(list, "83 bytes: one too few", good, PAQM_ICMP_HDR + QUOTE_PLAIN + 47,
		    PAQM_MSG_SHORT);
	memset(buf, 0, sizeof(buf));
	encode(buf, &sample, &max);
	add_refusal(list, "153 bytes: one too many", buf, PAQM_MSG_MAX + 1, PAQM_MSG_SHORT);
	for (i = 0; i < sizeof(spoils) / sizeof(spoils[0]); i++) {
		const struct spoil *s = &spoils[i];

		/* the last one has a second fault behind the first */
		if (i + 1 == sizeof(spoils) / sizeof(spoils[0]))
			encode(buf, &zero, &q);
		else
			memcpy(buf, good, len);
		at = s->offset < 0 ? len - (paqm_u32)-s->offset : (paqm_u32)s->offset;
		for (j = 0; s->bytes[2 * j]; j++) {
			sscanf(s->bytes + 2 * j, "%2x", &byte);
			buf[at + j] = (paqm_u8)byte;
		}
		if (!s->keep_checksum)
			seal(buf, len);
		add_refusal(list, s->name, buf, len, s->why);
	}
	/* more behind UDP than any router quotes, in a message of legal length */
	q = make_quote(0, PAQM_QUOTE_UDP);
	len = PAQM_ICMP_HDR + QUOTE_PLAIN + PAQM_QUOTE_UDP + 4 + PAQM_OBJ_LEN;
	memset(buf, 0, len);
	memcpy(buf, good, PAQM_ICMP_HDR + QUOTE_PLAIN + PAQM_QUOTE_UDP);
	paqm_msg_encode(buf + len - PAQM_OBJ_LEN, &sample);
	seal(buf, len);
	add_refusal(list, "32 bytes quoted behind UDP", buf, len, PAQM_MSG_QUOTE);
	return list;
}

static json_t *address6(const paqm_u8 *a)
{
	char text[INET6_ADDRSTRLEN];

	return json_string(inet_ntop(AF_INET6, a, text, sizeof(text)));
}

/* Messages about IPv6: what is quoted begins with an IPv6 header. */
static void add_message6(json_t *list, const char *name, struct paqm_msg m, paqm_u32 payload,
			 int spoil)
{
	static const paqm_u8 router[16] = {0x20, 0x01, 0x0D, 0xB8, [15] = 1};
	struct quote v4 = make_quote(0, payload);
	paqm_u8 q[PAQM_IP6_HDR + 8 + PAQM_QUOTE_UDP] = {0x60}, buf[PAQM_MSG_MAX], key[16];
	paqm_u8 bytes[PAQM_TAG_BYTES];
	json_t *v, *want, *quote;
	paqm_u32 len, i;

	paqm_put16(q + 4, 8 + 1160);
	q[6] = 17;
	q[7] = 63;
	memcpy(q + 8, router, 16);
	q[23] = 2;
	memcpy(q + 24, router, 16);
	q[31] = 7;
	memcpy(q + 40, v4.bytes + 20, 8 + payload);
	for (i = 0; i < sizeof(key); i++)
		key[i] = (paqm_u8)i;
	if (m.flags & PAQM_F_AUTH)
		m.tag = paqm_siphash24(key, bytes, paqm_tag_bytes(&m, q + 48, payload, bytes));
	len = paqm_icmp6_encode(buf, PAQM_ICMP6_TYPE_EXP, router, q + 8, q, 48 + payload, &m);
	buf[len - 1] ^= (paqm_u8)spoil;
	v = json_pack("{s:s,s:o,s:o,s:o}", "name", name, "src", address6(router), "dst",
		      address6(q + 8), "icmp6", hex(buf, len));
	if (spoil) {
		json_object_set_new(v, "refusal", json_string(vector_refusals[PAQM_MSG_CHECKSUM]));
	} else {
		want = fields(&m, &v4);
		quote = json_object_get(want, "quote");
		json_object_set_new(quote, "saddr", address6(q + 8));
		json_object_set_new(quote, "daddr", address6(q + 24));
		json_object_set_new(v, "expect", want);
	}
	if (m.flags & PAQM_F_AUTH)
		json_object_set_new(v, "key", hex(key, sizeof(key)));
	json_array_append_new(list, v);
}

static json_t *messages6(void)
{
	json_t *list = json_array();
	struct paqm_msg m = sample;

	add_message6(list, "usual: 28 bytes quoted behind UDP", m, PAQM_QUOTE_UDP, 0);
	add_message6(list, "quoted packet of 20 payload bytes", m, 20, 0);
	add_message6(list, "checksum off by one", m, PAQM_QUOTE_UDP, 1);
	m.flags |= PAQM_F_AUTH;
	m.key_id = 0x0102;
	add_message6(list, "tagged: as over IPv4, addresses are not covered", m, PAQM_QUOTE_UDP, 0);
	return list;
}

/* What of a UDP payload is digested, written down by hand. */
static const struct {
	const char *name, *payload, *invariant;
} invariants[] = {
	{"plain RTP: the first 28 bytes",
	 "8060123401020304cafebabe000102030405060708090a0b0c0d0e0f1011121314",
	 "8060123401020304cafebabe000102030405060708090a0b0c0d0e0f"},
	{"one word of header extension is left out",
	 "9060123401020304cafebabebede0001aabbccdd0001020304050607",
	 "9060123401020304cafebabe0001020304050607"},
	{"two CSRC are left out", "8260123401020304cafebabe11111111222222220001020304050607",
	 "8260123401020304cafebabe0001020304050607"},
	{"extension longer than what is quoted",
	 "9060123401020304cafebabebede0010aabbccdd0001020304050607", "9060123401020304cafebabe"},
	{"cut before the length of the extension", "9060123401020304cafebabebede",
	 "9060123401020304cafebabe"},
	{"not RTP version 2: taken as a whole",
	 "16fefd000000000000000000aabbccddeeff00112233445566778899aabb",
	 "16fefd000000000000000000aabbccddeeff00112233445566778899"},
	{"shorter than an RTP header: taken as a whole", "8060123401", "8060123401"},
};

static json_t *invariant(void)
{
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < sizeof(invariants) / sizeof(invariants[0]); i++)
		json_array_append_new(list, json_pack("{s:s,s:s,s:s}", "name", invariants[i].name,
						      "payload", invariants[i].payload, "invariant",
						      invariants[i].invariant));
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
	bad |= put(dir, "refusals.json", "ICMP messages that a receiver must refuse, and why",
		   refusals(), check);
	bad |= put(dir, "invariant.json", "bytes of a UDP payload that the digest covers",
		   invariant(), check);
	bad |= put(dir, "inband.json",
		   "UDP payloads with and without a rate for routers; lowered to 1000000 bit/s by "
		   "router beef with a period of 260 ms",
		   inband(), check);
	bad |= put(dir, "returns.json", "what receivers return by RTCP", returns(), check);
	return bad;
}
