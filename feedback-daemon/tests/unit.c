// SPDX-License-Identifier: GPL-2.0
/* Unit tests of the judging part of paqmd: what they share, and their order. See unit.h. */
#include "unit.h"

unsigned int failures;
bool seen[REFUSE_MAX];
const uint8_t key[PAQM_SIPHASH_KEY] = {1, 2, 3};
const struct addr nowhere;
struct engine eng;
uint8_t media[T_MEDIA];

void setup(const struct engine_params *p)
{
	engine_free(&eng);
	engine_init(&eng, p ? p : &engine_defaults, key);
}

struct flow *add(uint64_t cookie, uint16_t sport, uint32_t ssrc)
{
	struct paqm_ipc_register reg = t_reg(cookie, sport, ssrc);
	struct flow *f = NULL;

	CHECK_EQ(engine_register(&eng, 1, 0, &reg, &f), 0);
	return f;
}

void send_media(uint16_t sport, uint32_t ssrc, uint16_t seq, uint64_t now)
{
	engine_media(&eng, media, t_media(media, sport, ssrc, seq), now);
}

struct paqm_msg msg(uint64_t router, uint32_t seq, double ecf, double erf)
{
	return (struct paqm_msg){.router_id = router,
				 .boot = 7,
				 .seq = seq,
				 .ecf = t_f32(ecf),
				 .rate = (uint64_t)erf,
				 .period_ms = 500};
}

enum refuse deliver(const uint8_t *ip, uint32_t len, uint64_t now, struct verdict *v)
{
	struct verdict own;
	struct early early;
	uint64_t before[REFUSE_MAX], accepted = eng.accepted;
	unsigned int i;

	if (!v)
		v = &own;
	memcpy(before, eng.refused, sizeof(before));
	engine_message(&eng, ip, len, now, v);
	if (v->waits) {
		CHECK(engine_waited(&eng, UINT64_MAX, &early));
		engine_again(&eng, &early, now, v);
	}
	seen[v->refuse] = true;
	for (i = 1; i < REFUSE_MAX; i++)
		CHECK_EQ(eng.refused[i], before[i] + (i == v->refuse));
	CHECK_EQ(eng.accepted, accepted + !v->refuse);
	return v->refuse;
}

enum refuse changed(const uint8_t *good, uint32_t len, uint32_t at, uint8_t byte)
{
	uint8_t p[T_MESSAGE];

	memcpy(p, good, len);
	p[at] = byte;
	t_seal(p, len);
	return deliver(p, len, S, NULL);
}

enum refuse say(const struct paqm_msg *m, uint64_t now)
{
	uint8_t ip[T_MESSAGE];

	return deliver(ip, t_message(ip, media, m), now, NULL);
}

void use_keys(const char *text)
{
	struct keyring ring;
	unsigned int line;

	CHECK(!keys_parse(text, strlen(text), &ring, &line));
	engine_set_keys(&eng, &ring);
}

/* Every reason has a name and has been provoked above. */
static void test_all_reasons(void)
{
	unsigned int i;

	for (i = 0; i < REFUSE_MAX; i++) {
		if (!seen[i])
			fprintf(stderr, "never provoked: %s\n", refuse_name((enum refuse)i));
		CHECK(seen[i]);
	}
}

int main(void)
{
	test_siphash();
	test_ring();
	test_ecf_vectors();
	test_erf_vectors();
	test_parking_lot();
	test_heal();
	test_windup();
	test_flapping();
	test_expiry();
	test_ip_refusals();
	test_msg_refusals();
	test_version1();
	test_flow_and_quote();
	test_quotes();
	test_early();
	test_quench();
	test_extension();
	test_sequence();
	test_keys();
	test_host_keys();
	test_mutations();
	test_keys_file();
	test_keys_load();
	test_keys_credential();
	test_limits();
	test_router_budget();
	test_ecf_engine();
	test_register();
	test_reuse();
	test_tables();
	test_shares();
	test_digest_shares();
	test_batch();
	test_owner();
	test_ipv6();
	test_records();
	test_requests();
	test_why();
	test_views();
	test_many_routers();
	test_lengths();
	test_conf_file();
	test_all_reasons();
	engine_free(&eng);
	if (failures)
		fprintf(stderr, "%u checks failed\n", failures);
	return failures ? 1 : 0;
}
