// SPDX-License-Identifier: GPL-2.0
/* Unit tests of the judging part of paqmd: what they share, and their order. See unit.h. */
#include "unit.h"

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

struct flow *begin(const struct engine_params *p)
{
	struct flow *f;

	setup(p);
	f = add(1, T_SPORT, T_SSRC);
	send_media(T_SPORT, T_SSRC, 1, S);
	return f;
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

static enum refuse change(const uint8_t *good, uint32_t len, uint32_t at, uint8_t byte, bool seal)
{
	uint8_t p[T_MESSAGE];

	memcpy(p, good, len);
	p[at] = byte;
	if (seal)
		t_seal(p, len);
	return deliver(p, len, S, NULL);
}

enum refuse damaged(const uint8_t *good, uint32_t len, uint32_t at, uint8_t byte)
{
	return change(good, len, at, byte, false);
}

enum refuse changed(const uint8_t *good, uint32_t len, uint32_t at, uint8_t byte)
{
	return change(good, len, at, byte, true);
}

enum refuse about(const uint8_t *packet, const struct paqm_msg *m)
{
	uint8_t ip[T_MESSAGE];

	return deliver(ip, t_message(ip, packet, m), S, NULL);
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

int main(void)
{
	int failed = check_run();

	/* every reason has a name and has been provoked */
	for (unsigned int i = 0; i < REFUSE_MAX; i++)
		failed |= !check(seen[i], refuse_name((enum refuse)i), i);
	engine_free(&eng);
	return failed;
}
