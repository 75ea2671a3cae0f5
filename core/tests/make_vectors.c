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
#include <stdio.h>
#include <string.h>

#include "vector_kit.h"

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
				      vector_hex(bytes, vector_unhex(bytes, proofs[i].payload)));

		json_object_set_new(
			v, "proof",
			proofs[i].proof ? vector_hex(bytes, vector_unhex(bytes, proofs[i].proof))
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

	memcpy(router, vector_router_key, sizeof(router));
	for (i = 0; i < 2 * sizeof(t) / sizeof(t[0]); i++) {
		const char *const *c = t[i / 2];

		v6 = !!strchr(c[1], ':');
		inet_pton(v6 ? AF_INET6 : AF_INET, c[1], addr);
		memset(router, i & 1 ? 0xFF : 0, 1);
		vector_derive(router, v6, addr, own);
		json_array_append_new(
			list, json_pack("{s:o,s:o,s:s,s:o}", "name",
					json_sprintf("%s%s", c[0], i & 1 ? ", another router" : ""),
					"router_key", vector_hex(router, sizeof(router)), "address",
					c[1], "host_key", vector_hex(own, sizeof(own))));
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
		json_t *v = json_pack("{s:s,s:o}", "name", c->name, "payload",
				      vector_hex(udp + 8, len));

		if (c->at) {
			json_object_set_new(v, "offset", json_integer(c->at));
			paqm_put32(udp, 0x138C138E);
			paqm_put16(udp + 4, (paqm_u16)(8 + len));
			paqm_put16(udp + 6, 0);
			/* as if the pseudo header summed to zero */
			paqm_put16(udp + 6, paqm_checksum(udp, 8 + len));
			json_object_set_new(v, "udp", vector_hex(udp, 8 + len));
			paqm_field_lower(udp, c->at, &router, 0);
			json_object_set_new(v, "lowered", vector_hex(udp, 8 + len));
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
			      vector_number_hex(r->field.rate, 8), "router", r->field.router,
			      "period", r->field.period, "nonce",
			      vector_number_hex(r->field.nonce, 8), "seq",
			      vector_number_hex(r->seq, 8), "kind", r->kind);
		json_object_set_new(v, "app", vector_hex(app, sizeof(app)));
		json_object_set_new(v, "bps", json_integer((json_int_t)t[i].bps));
		json_object_set_new(v, "tmmbr", vector_hex(tmmbr, sizeof(tmmbr)));
		json_object_set_new(v, "remb", vector_hex(remb, sizeof(remb)));
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
	bad = put(dir, "messages.json", "ICMP messages that a receiver must decode",
		  vector_messages(), check);
	bad |= put(dir, "messages6.json", "ICMPv6 messages, and between which addresses",
		   vector_messages6(), check);
	bad |= put(dir, "version1.json", "messages of version 1, which is read, too",
		   vector_version1(), check);
	bad |= put(dir, "refusals.json",
		   "ICMP and ICMPv6 messages that a receiver must refuse, and why",
		   vector_refused(), check);
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
