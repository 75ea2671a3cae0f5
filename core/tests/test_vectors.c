/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Runs the decoder of core/paqm_msg.h over the published test vectors:
 *	test_vectors DIR
 */
#include <arpa/inet.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "msg_kit.h"
#include "vector_names.h"

static const char *where;

#define expect(what, got, want)                                                                    \
	check_equal(where, __LINE__, what, (unsigned long long)(got), (unsigned long long)(want))
#define expect_text(what, got, want)                                                               \
	check_that(!strcmp(got, want), where, __LINE__, "%s is %s, want %s", what, got, want)

static const char *text(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	if (!s) {
		fprintf(stderr, "%s: no text '%s'\n", where, key);
		exit(1);
	}
	return s;
}

static unsigned long long integer(const json_t *o, const char *key)
{
	return json_integer_value(json_object_get(o, key));
}

static unsigned long long number_hex(const json_t *o, const char *key)
{
	return strtoull(text(o, key), NULL, 16);
}

/* Bytes in a block of exactly their length, so that sanitizers see overreads. */
static paqm_u8 *unhex(const char *s, paqm_u32 *len)
{
	paqm_u8 *p;
	paqm_u32 i;
	unsigned int byte;

	*len = (paqm_u32)(strlen(s) / 2);
	p = malloc(*len ? *len : 1);
	for (i = 0; i < *len; i++) {
		if (sscanf(s + 2 * i, "%2x", &byte) != 1) {
			fprintf(stderr, "%s: not hexadecimal\n", where);
			exit(1);
		}
		p[i] = (paqm_u8)byte;
	}
	return p;
}

static void check_quote(const struct paqm_quote *q, const json_t *want)
{
	char dotted[INET6_ADDRSTRLEN];
	paqm_u32 len;
	paqm_u8 *payload = unhex(text(want, "payload"), &len);

	inet_ntop(q->version == 6 ? AF_INET6 : AF_INET, q->src, dotted, sizeof(dotted));
	expect_text("saddr", dotted, text(want, "saddr"));
	inet_ntop(q->version == 6 ? AF_INET6 : AF_INET, q->dst, dotted, sizeof(dotted));
	expect_text("daddr", dotted, text(want, "daddr"));
	if (q->version == 4) {
		expect("saddr as a number", q->saddr, paqm_get32(q->src));
		expect("daddr as a number", q->daddr, paqm_get32(q->dst));
	}
	expect("sport", q->sport, integer(want, "sport"));
	expect("dport", q->dport, integer(want, "dport"));
	expect("payload length", q->payload_len, len);
	if (q->payload_len == len)
		expect("payload", !!memcmp(q->payload, payload, len), 0);
	free(payload);
}

static void check_fields(const struct paqm_msg *m, const json_t *want)
{
	const json_t *value = json_object_get(want, "ecf_value");
	float ecf;

	memcpy(&ecf, &m->ecf, sizeof(ecf));
	expect("version", m->version, integer(want, "version"));
	expect("flags", m->flags, integer(want, "flags"));
	expect("key_id", m->key_id, integer(want, "key_id"));
	expect("router_id", m->router_id, number_hex(want, "router_id"));
	expect("boot", m->boot, number_hex(want, "boot"));
	expect("seq", m->seq, integer(want, "seq"));
	if (json_is_null(value)) {
		expect("no ecf", m->ecf, 0);
		expect("ecf is null", json_is_null(json_object_get(want, "ecf")), 1);
	} else {
		expect("ecf", m->ecf, number_hex(want, "ecf"));
		expect("ecf_value", (double)ecf == json_real_value(value), 1);
	}
	expect("rate_bps", m->rate, integer(want, "rate_bps"));
	expect("period_ms", m->period_ms, integer(want, "period_ms"));
	expect("qdelay_100us", m->qdelay_100us, integer(want, "qdelay_100us"));
	expect("flows", m->flows, integer(want, "flows"));
	expect("util", m->util, integer(want, "util"));
	expect("tag", m->tag, number_hex(want, "tag"));
}

/* The tag is right, and no bit of what it covers may change. */
static void check_tag(const struct paqm_msg *m, const struct paqm_quote *q, const json_t *v)
{
	paqm_u8 bytes[PAQM_TAG_BYTES], own[PAQM_SIPHASH_KEY], *router;
	paqm_u32 len, n, i;
	paqm_u8 *key = unhex(text(v, "key"), &len);

	expect("key length", len, PAQM_SIPHASH_KEY);
	expect("flag AUTH", m->flags & PAQM_F_AUTH, PAQM_F_AUTH);
	if (m->version == 1) {
		n = paqm1_tag_bytes(m->object, q, bytes);
	} else {
		n = paqm_tag_bytes(m->object, m->object_len, q, bytes);
		router = unhex(text(v, "router_key"), &len);
		expect("key length", len, PAQM_SIPHASH_KEY);
		vec_derive(router, q->version == 6, q->src, own);
		expect("key of the host", !!memcmp(own, key, len), 0);
		free(router);
	}
	expect("tag of the key", paqm_siphash24(key, bytes, n), m->tag);
	expect("equal tags", paqm_tag_equal(m->tag, m->tag), 1);
	for (i = 0; i < 64; i++)
		expect("tags that differ in a bit", paqm_tag_equal(m->tag, m->tag ^ 1ULL << i), 0);
	for (i = 0; i < 8 * n; i++) {
		bytes[i / 8] ^= (paqm_u8)(1 << i % 8);
		expect("a changed bit", paqm_siphash24(key, bytes, n) == m->tag, 0);
		bytes[i / 8] ^= (paqm_u8)(1 << i % 8);
	}
	free(key);
}

/* What came of decoding a vector is what it says. */
static void check_decoded(const json_t *v, enum paqm_msg_err err, const struct paqm_msg *m,
			  const struct paqm_quote *q)
{
	const json_t *want = json_object_get(v, "expect");
	const json_t *refusal = json_object_get(v, "refusal");

	expect("either", !want, !!refusal);
	expect_text("refusal", vector_refusals[err], refusal ? json_string_value(refusal) : "none");
	if (err != PAQM_MSG_OK || !want)
		return;
	check_fields(m, want);
	check_quote(q, json_object_get(want, "quote"));
	if (json_object_get(v, "key"))
		check_tag(m, q, v);
}

static void check_message(const json_t *v)
{
	const json_t *six = json_object_get(v, "icmp6");
	paqm_u8 src[16], dst[16], *buf;
	enum paqm_msg_err err;
	struct paqm_quote q;
	struct paqm_msg m;
	paqm_u32 len;

	buf = unhex(text(v, six ? "icmp6" : "icmp"), &len);
	if (six) {
		expect("source", inet_pton(AF_INET6, text(v, "src"), src) == 1, 1);
		expect("destination", inet_pton(AF_INET6, text(v, "dst"), dst) == 1, 1);
		err = paqm_icmp6_decode(buf, len, src, dst, &m, &q);
	} else { /* a receiver of both carriers */
		err = paqm_icmp_decode(buf, len,
				       len && buf[0] == PAQM_ICMP_TYPE_QUENCH
					       ? PAQM_ICMP_TYPE_QUENCH
					       : PAQM_ICMP_TYPE_EXP,
				       &m, &q);
	}
	check_decoded(v, err, &m, &q);
	free(buf);
}

static void check_proof(const json_t *v)
{
	const json_t *proves = json_object_get(v, "proof");
	paqm_u8 out[PAQM_PROOF_MAX], *payload, *want;
	paqm_u32 len, want_len, n;

	payload = unhex(text(v, "payload"), &len);
	n = paqm_proof(payload, len, out);
	expect("there is a proof", json_is_string(proves), n > 0);
	if (n) {
		want = unhex(text(v, "proof"), &want_len);
		expect("proof length", n, want_len);
		if (n == want_len)
			expect("proof", !!memcmp(out, want, n), 0);
		free(want);
		/* what is quoted proves the same */
		expect("length of the quote", paqm_proof_len(payload, len) <= len, 1);
		expect("proof of the quote", paqm_proof(payload, paqm_proof_len(payload, len), out),
		       n);
	}
	free(payload);
}

static void check_hostkey(const json_t *v)
{
	paqm_u8 addr[16], own[PAQM_SIPHASH_KEY], *router, *want;
	int v6 = !!strchr(text(v, "address"), ':');
	paqm_u32 len;

	expect("address", inet_pton(v6 ? AF_INET6 : AF_INET, text(v, "address"), addr) == 1, 1);
	want = unhex(text(v, "host_key"), &len);
	expect("length", len, sizeof(own));
	router = unhex(text(v, "router_key"), &len);
	expect("length", len, sizeof(own));
	vec_derive(router, v6, addr, own);
	expect("host's key", !!memcmp(own, want, sizeof(own)), 0);
	free(router);
	free(want);
}

/* A payload with or without a rate for routers, and what a router makes of it. */
static void check_inband(const json_t *v)
{
	static const struct paqm_field mine = {.rate = 0x49742400, .router = 0xBEEF, .period = 13};
	const json_t *offset = json_object_get(v, "offset");
	paqm_u32 len, udp_len, want_len, at;
	paqm_u8 *payload = unhex(text(v, "payload"), &len), *udp, *want;

	at = paqm_field_find(payload, len);
	expect("offset", at, offset ? json_integer_value(offset) : 0);
	if (at && offset) {
		udp = unhex(text(v, "udp"), &udp_len);
		want = unhex(text(v, "lowered"), &want_len);
		expect("length", udp_len, 8 + len);
		expect("payload", !!memcmp(udp + 8, payload, len), 0);
		paqm_field_lower(udp, at, &mine, 0);
		expect("lowered", want_len != udp_len || memcmp(udp, want, udp_len), 0);
		expect("checksum", paqm_checksum(want, want_len), 0);
		free(udp);
		free(want);
	}
	free(payload);
}

static void check_returns(const json_t *v)
{
	paqm_u32 len;
	paqm_u8 *app = unhex(text(v, "app"), &len);
	struct paqm_return r = {.kind = 255};

	expect("length", len, PAQM_APP_LEN);
	expect("decode", -paqm_return_decode(app + PAQM_APP_DATA, PAQM_APP_DATA_LEN, &r), 0);
	expect("rate", r.field.rate, number_hex(v, "rate"));
	expect("router", r.field.router, integer(v, "router"));
	expect("period", r.field.period, integer(v, "period"));
	expect("nonce", r.field.nonce, number_hex(v, "nonce"));
	expect("seq", r.seq, number_hex(v, "seq"));
	expect("kind", r.kind, integer(v, "kind"));
	free(app);
}

static void run(const char *dir, const char *file, void (*look)(const json_t *))
{
	char path[4096];
	json_t *all, *v;
	json_error_t err;
	size_t i;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	all = json_load_file(path, 0, &err);
	if (!all || integer(all, "format") != 1) {
		fprintf(stderr, "%s: %s\n", path, all ? "not format 1" : err.text);
		exit(1);
	}
	where = path;
	expect("there are vectors", json_array_size(json_object_get(all, "vectors")) > 0, 1);
	json_array_foreach(json_object_get(all, "vectors"), i, v)
	{
		where = text(v, "name");
		look(v);
	}
	json_decref(all);
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fputs("Usage: test_vectors DIR\n", stderr);
		return 2;
	}
	run(argv[1], "messages.json", check_message);
	run(argv[1], "messages6.json", check_message);
	run(argv[1], "version1.json", check_message);
	run(argv[1], "refusals.json", check_message);
	run(argv[1], "proof.json", check_proof);
	run(argv[1], "hostkeys.json", check_hostkey);
	run(argv[1], "inband.json", check_inband);
	run(argv[1], "returns.json", check_returns);
	return check_run();
}
