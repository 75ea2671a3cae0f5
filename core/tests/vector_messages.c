/* SPDX-License-Identifier: GPL-2.0 */
/* Test vectors: messages that a receiver must decode. */
#include <string.h>

#include "vector_kit.h"

static void add(json_t *list, const char *name, struct vector_how how, struct paqm_msg m,
		const struct vector_quote *q)
{
	paqm_u8 buf[PAQM_MSG_MAX], own[PAQM_SIPHASH_KEY];
	paqm_u32 len = vector_build(buf, &how, &m, q);
	json_t *v = vector_new(name, buf, len, q);

	json_object_set_new(v, "expect", vector_fields(&m, q, how.version));
	if (how.tagged && how.version == 1)
		json_object_set_new(v, "key",
				    vector_hex(vector_router_key, sizeof(vector_router_key)));
	if (how.tagged && how.version != 1) {
		vector_derive(vector_router_key, q->v6, vector_told(q), own);
		json_object_set_new(v, "router_key",
				    vector_hex(vector_router_key, sizeof(vector_router_key)));
		json_object_set_new(v, "key", vector_hex(own, sizeof(own)));
	}
	json_array_append_new(list, v);
}

#define EXTENDED "90" VEC_RTP "bede0003 22aabbcc 51010203040506 00" VEC_EIGHT VEC_EIGHT
#define CSRC_EXTENDED "92" VEC_RTP "1111111122222222 abcd0001 aabbccdd" VEC_EIGHT VEC_EIGHT
#define LONGEST                                                                                    \
	"90" VEC_RTP "abcd0018" VEC_64 VEC_EIGHT VEC_EIGHT VEC_EIGHT VEC_EIGHT VEC_EIGHT VEC_EIGHT
#define FIELD "90" VEC_RTP "bede0004 1e@" VEC_EIGHT VEC_EIGHT
#define DTLS "16fefd000000000000000100" VEC_EIGHT VEC_EIGHT VEC_EIGHT
#define ALIEN "000c f7 01 5041514e 02000000" /* another magic */

/* What is the same over IPv4 and IPv6. */
static void add_common(json_t *list, const struct vector_quote *plain)
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
	struct paqm_msg m = vector_sample;
	struct vector_quote q;
	size_t i;

	add(list, "usual", (struct vector_how){0}, m, plain);
	m.ecf = 0x3F59999A;
	add(list, "with a relative value: multiply", (struct vector_how){0}, m, plain);
	m.ecf = PAQM_F32_ONE;
	add(list, "with a relative value: hold", (struct vector_how){0}, m, plain);
	m.ecf = 0x489B9955;
	add(list, "with a relative value: 318666.667 bit/s more", (struct vector_how){0}, m, plain);
	add(list, "tagged, with a relative value", (struct vector_how){.tagged = 1}, m, plain);
	add(list, "tagged", (struct vector_how){.tagged = 1}, vector_sample, plain);
	for (i = 0; i < sizeof(packets) / sizeof(packets[0]); i++) {
		q = vector_payload(packets[i].payload);
		if (plain->v6)
			q = vector_to6(&q);
		add(list, packets[i].name, (struct vector_how){.tagged = i & 1}, vector_sample, &q);
	}
	add(list, "a foreign object before", (struct vector_how){.before = FOREIGN}, vector_sample,
	    plain);
	add(list, "foreign objects behind", (struct vector_how){.behind = ALIEN FOREIGN},
	    vector_sample, plain);
	add(list, "the same in a later version before", (struct vector_how){.before = LATER},
	    vector_sample, plain);
	add(list, "tagged, the same in a later version behind",
	    (struct vector_how){.tagged = 1, .behind = LATER}, vector_sample, plain);
	add(list, "unknown options are passed over",
	    (struct vector_how){.options = "00020003 aabbcc00 7fff0000"}, m, plain);
	add(list, "no checksum of the extension structure", (struct vector_how){.no_checksum = 1},
	    vector_sample, plain);
}

json_t *vector_messages(void)
{
	struct vector_quote q = vector_quote(0, PLAIN), bare = vector_quote(0, 0);
	struct vector_quote options = vector_quote(40, PLAIN), few = vector_quote(0, 17);
	struct paqm_field lower = {.rate = 0x49742400, .router = 0xBEEF, .period = 13};
	json_t *list = json_array();
	struct paqm_msg m;
	paqm_u8 *udp;

	add_common(list, &q);
	m = vector_sample;
	m.flags = PAQM_F_OVERLOAD | PAQM_F_POLICED;
	m.qdelay_100us = 65535;
	m.flows = 65535;
	m.util = 65535;
	add(list, "overload and policed, saturated fields", (struct vector_how){0}, m, &q);
	m = vector_sample;
	m.boot = 0xFFFFFFFF;
	m.seq = 0xFFFFFFFF;
	m.router_id = ~0ULL;
	m.period_ms = 65535;
	add(list, "largest identities", (struct vector_how){0}, m, &q);
	m = vector_sample;
	m.flags = 0xF0;
	add(list, "unassigned flags are ignored", (struct vector_how){0}, m, &q);
	m = vector_sample;
	m.rate = PAQM_VALUE_MAX;
	m.ecf = 0x35800000; /* 2^-20, the least that the check sees */
	add(list, "largest rate, least factor", (struct vector_how){0}, m, &q);
	m.rate = 1;
	m.ecf = 0x5368D4A5; /* 1e12 */
	add(list, "least rate, largest increase", (struct vector_how){0}, m, &q);
	m.rate = 123456789012ULL;
	m.ecf = 0;
	add(list, "rate that no binary32 is", (struct vector_how){0}, m, &q);
	add(list, "quoted packet of 17 payload bytes, zeros behind it", (struct vector_how){0},
	    vector_sample, &few);
	add(list, "quoted packet without payload", (struct vector_how){0}, vector_sample, &bare);
	add(list, "quoted IPv4 header with options", (struct vector_how){0}, vector_sample,
	    &options);
	add(list, "carrier quench: ICMP type 4", (struct vector_how){.type = PAQM_ICMP_TYPE_QUENCH},
	    vector_sample, &q);
	q.bytes[8]--; /* TTL */
	paqm_put16(q.bytes + 10, 0);
	paqm_put16(q.bytes + 10, paqm_checksum(q.bytes, q.hlen));
	paqm_put16(q.bytes + q.hlen, 40000);
	add(list, "tagged, TTL and source port differ: the tag does not",
	    (struct vector_how){.tagged = 1}, vector_sample, &q);
	paqm_put16(q.bytes + q.hlen + 2, 6005);
	add(list, "tagged, destination port differs: so does the tag",
	    (struct vector_how){.tagged = 1}, vector_sample, &q);
	q.bytes[19] = 8;
	add(list, "tagged, destination address differs: so does the tag",
	    (struct vector_how){.tagged = 1}, vector_sample, &q);
	q.bytes[15] = 3;
	add(list, "tagged, another host: another key", (struct vector_how){.tagged = 1},
	    vector_sample, &q);
	q = vector_payload(FIELD);
	udp = q.bytes + q.hlen;
	add(list, "tagged, with an in-band field", (struct vector_how){.tagged = 1}, vector_sample,
	    &q);
	paqm_field_lower(udp, paqm_field_find(udp + 8, q.payload), &lower, 0);
	add(list, "tagged, a router has lowered the field: the tag is the same",
	    (struct vector_how){.tagged = 1}, vector_sample, &q);
	return list;
}

json_t *vector_messages6(void)
{
	struct vector_quote plain = vector_quote(0, PLAIN), few = vector_quote(0, 17);
	json_t *list = json_array();

	plain = vector_to6(&plain);
	few = vector_to6(&few);
	add_common(list, &plain);
	add(list, "quoted packet of 17 payload bytes, zeros behind it", (struct vector_how){0},
	    vector_sample, &few);
	return list;
}

json_t *vector_version1(void)
{
	struct vector_quote q = vector_quote(0, PLAIN), options = vector_quote(40, PLAIN),
			    q6 = vector_to6(&q);
	struct vector_how old = {.version = 1}, tagged = {.version = 1, .tagged = 1};
	struct vector_how quench = {.version = 1, .type = PAQM_ICMP_TYPE_QUENCH};
	json_t *list = json_array();
	struct paqm_msg m = vector_sample;

	m.ecf = 0x3F59999A;
	add(list, "IPv4", old, m, &q);
	add(list, "IPv4, quoted header with options", old, m, &options);
	add(list, "IPv4, carrier quench", quench, m, &q);
	add(list, "IPv4, tagged with the router's key", tagged, m, &q);
	add(list, "IPv6: ICMPv6 type 100", old, m, &q6);
	add(list, "IPv6, tagged with the router's key", tagged, m, &q6);
	q = vector_quote(0, 20);
	add(list, "IPv4, quoted packet of 20 payload bytes", old, m, &q);
	q = vector_payload("82" VEC_RTP "1111111122222222" VEC_EIGHT VEC_EIGHT);
	q.payload = PLAIN;
	add(list, "IPv4, 28 bytes of a packet with sources: they prove nothing", old, m, &q);
	q = vector_payload(DTLS);
	add(list, "IPv4, no RTP, tagged", tagged, m, &q);
	return list;
}
