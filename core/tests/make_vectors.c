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
#include <string.h>

#include "msg_cases.h"
#include "vector_names.h"

static json_t *hex(const paqm_u8 *p, paqm_u32 len)
{
	char text[2 * (PAQM_MSG_MAX + PAQM_INBAND_MAX) + 3];
	paqm_u32 i;

	for (i = 0; i < len; i++)
		snprintf(text + 2 * i, 3, "%02x", p[i]);
	return json_stringn(text, 2 * len);
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

/* What a message must decode to. */
static json_t *fields(const struct paqm_msg *m, const struct vec_quote *q, int version)
{
	const paqm_u8 *udp = q->bytes + q->hlen;
	paqm_u32 word = version == 1 ? 1 : q->v6 ? 8 : 4;
	/* zeros up to a word: the rest of the quote is 0 */
	paqm_u32 payload = (vec_quoted(q) + word - 1) / word * word - q->hlen - 8;

	return json_pack(
		"{s:i,s:i,s:i,s:o,s:o,s:I,s:o,s:o,s:I,s:i,s:i,s:i,s:i,s:o,s:{s:o,s:o,s:i,s:i,s:o}}",
		"version", version ? version : PAQM_MSG_VERSION, "flags", m->flags, "key_id",
		m->key_id, "router_id", number_hex(m->router_id, 16), "boot",
		number_hex(m->boot, 8), "seq", (json_int_t)m->seq, "ecf",
		m->ecf ? number_hex(m->ecf, 8) : json_null(), "ecf_value",
		m->ecf ? json_real(real(m->ecf)) : json_null(), "rate_bps", (json_int_t)m->rate,
		"period_ms", m->period_ms, "qdelay_100us", m->qdelay_100us, "flows", m->flows,
		"util", m->util, "tag", number_hex(m->tag, 16), "quote", "saddr",
		address(q->v6, vec_told(q)), "daddr", address(q->v6, q->bytes + (q->v6 ? 24 : 16)),
		"sport", paqm_get16(udp), "dport", paqm_get16(udp + 2), "payload",
		hex(udp + 8, payload));
}

static json_t *list; /* being made */

/* A vector with the message in it and, over IPv6, between which addresses. */
static void vec_take(const struct vec_case *c)
{
	paqm_u8 own[PAQM_SIPHASH_KEY];
	json_t *v;

	if (c->want == PAQM_MSG_OK && c->how.auth)
		return; /* its tag is of no key */
	v = json_pack("{s:o}", "name",
		      c->list ? json_sprintf("%s: %s", c->list, c->name) : json_string(c->name));
	if (c->q->v6) {
		json_object_set_new(v, "src", address(1, vec_router6));
		json_object_set_new(v, "dst", address(1, vec_told(c->q)));
	}
	json_object_set_new(v, c->q->v6 ? "icmp6" : "icmp", hex(c->buf, c->len));
	if (c->want == PAQM_MSG_OK)
		json_object_set_new(v, "expect", fields(&c->m, c->q, c->how.version));
	else
		json_object_set_new(v, "refusal", json_string(vector_refusals[c->want]));
	if (c->want == PAQM_MSG_OK && c->how.tagged) {
		memcpy(own, vec_router_key, sizeof(own));
		if (c->how.version != 1) {
			vec_derive(vec_router_key, c->q->v6, vec_told(c->q), own);
			json_object_set_new(v, "router_key", hex(vec_router_key, sizeof(own)));
		}
		json_object_set_new(v, "key", hex(own, sizeof(own)));
	}
	json_array_append_new(list, v);
}

static void proof(void)
{
	paqm_u8 bytes[PAQM_INBAND_MAX];
	size_t i;

	for (i = 0; i < sizeof(vec_proofs) / sizeof(vec_proofs[0]); i++) {
		json_t *v = json_pack("{s:s,s:o}", "name", vec_proofs[i].name, "payload",
				      hex(bytes, paqm_inband_make(bytes, vec_proofs[i].payload)));

		json_object_set_new(
			v, "proof",
			vec_proofs[i].proof
				? hex(bytes, paqm_inband_make(bytes, vec_proofs[i].proof))
				: json_null());
		json_array_append_new(list, v);
	}
}

static void hostkeys(void)
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
	size_t i;
	int v6;

	memcpy(router, vec_router_key, sizeof(router));
	for (i = 0; i < 2 * sizeof(t) / sizeof(t[0]); i++) {
		const char *const *c = t[i / 2];

		v6 = !!strchr(c[1], ':');
		inet_pton(v6 ? AF_INET6 : AF_INET, c[1], addr);
		memset(router, i & 1 ? 0xFF : 0, 1);
		vec_derive(router, v6, addr, own);
		json_array_append_new(
			list, json_pack("{s:o,s:o,s:s,s:o}", "name",
					json_sprintf("%s%s", c[0], i & 1 ? ", another router" : ""),
					"router_key", hex(router, sizeof(router)), "address", c[1],
					"host_key", hex(own, sizeof(own))));
	}
}

static void inband(void)
{
	paqm_u8 udp[8 + PAQM_INBAND_MAX];
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
			paqm_field_lower(udp, c->at, &vec_router, 0);
			if (c->more) {
				json_object_set_new(v, "supplement", json_integer(c->more));
				paqm_more_say(udp, c->more, VEC_SAID, 0);
			}
			json_object_set_new(v, "lowered", hex(udp, 8 + len));
		}
		json_array_append_new(list, v);
	}
}

static void returns(void)
{
	paqm_u8 app[PAQM_APP_LEN + PAQM_APP_MORE], tmmbr[PAQM_TMMBR_LEN], remb[PAQM_REMB_LEN];
	size_t i;

	for (i = 0; i < sizeof(vec_returns) / sizeof(vec_returns[0]); i++) {
		const struct paqm_return *r = &vec_returns[i].r;
		json_t *v;

		paqm_return_encode(app, 0xCAFEBABE, r);
		paqm_tmmbr_encode(tmmbr, 0xCAFEBABE, 0x12345678, vec_returns[i].bps, 40);
		paqm_remb_encode(remb, 0xCAFEBABE, 0x12345678, vec_returns[i].bps);
		v = json_pack("{s:s,s:o,s:i,s:i,s:o,s:o,s:i}", "name", vec_returns[i].name, "rate",
			      number_hex(r->field.rate, 8), "router", r->field.router, "period",
			      r->field.period, "nonce", number_hex(r->field.nonce, 8), "seq",
			      number_hex(r->seq, 8), "kind", r->kind);
		if (r->more)
			json_object_set_new(v, "said", json_integer(r->said));
		json_object_set_new(v, "app", hex(app, paqm_return_len(r)));
		json_object_set_new(v, "bps", json_integer((json_int_t)vec_returns[i].bps));
		json_object_set_new(v, "tmmbr", hex(tmmbr, sizeof(tmmbr)));
		json_object_set_new(v, "remb", hex(remb, sizeof(remb)));
		json_array_append_new(list, v);
	}
}

/* Return: 0, or 1 when the file differs or cannot be written. */
static int put(const char *dir, const char *file, const char *about, void (*make)(void), int check)
{
	char path[4096];
	json_t *all, *old;
	json_error_t err;
	int bad = 1;

	list = json_array();
	make();
	all = json_pack("{s:i,s:s,s:o}", "format", 1, "about", about, "vectors", list);
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
	static const struct {
		const char *file, *about;
		void (*make)(void);
	} files[] = {
		{"messages.json", "ICMP messages that a receiver must decode", vec_messages},
		{"messages6.json", "ICMPv6 messages, and between which addresses", vec_messages6},
		{"version1.json", "messages of version 1, which is read, too", vec_version1},
		{"refusals.json", "ICMP and ICMPv6 messages that a receiver must refuse, and why",
		 vec_refused},
		{"proof.json",
		 "bytes of a UDP payload that prove the packet; null: it proves nothing", proof},
		{"hostkeys.json", "keys of hosts, derived from those of routers", hostkeys},
		{"inband.json",
		 "UDP payloads with and without a rate for routers; lowered to 1000000 bit/s by "
		 "router beef with a period of 260 ms",
		 inband},
		{"returns.json", "what receivers return by RTCP", returns},
	};
	int check = argc == 3 && !strcmp(argv[1], "--check"), bad = 0;

	if (argc != 2 && !check) {
		fputs("Usage: make_vectors [--check] DIR\n", stderr);
		return 2;
	}
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		bad |= put(argv[argc - 1], files[i].file, files[i].about, files[i].make, check);
	return bad;
}
