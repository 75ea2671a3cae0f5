// SPDX-License-Identifier: GPL-2.0
/*
 * Fuzz target: the pipeline of checks. The first byte of the input says how to
 * help it past the checksums and the proof, the rest are IP packets, each with
 * a 16-bit length in front; bit 15 of the length makes it outgoing media.
 */
#include <stdlib.h>

#include "feedback-daemon/tests/packets.h"

#define HELP_SEAL 1    /* make both checksums right */
#define HELP_QUOTE 2   /* quote a packet that was sent */
#define HELP_ECF 4     /* use the relative value */
#define HELP_KEYS 8    /* routers must have a key */
#define HELP_TAG 16    /* tag messages with it */
#define HELP_V6 32     /* the flow is one of IPv6 */
#define HELP_LEGACY 64 /* believe Source Quench without object */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct engine eng;
static const uint8_t key[PAQM_SIPHASH_KEY] = {1};

/* What must hold whatever comes in. */
static void verify(const struct verdict *v)
{
	const struct flow *f = &eng.flows[0];

	if (f->rate.rate_bps &&
	    (f->rate.rate_bps < f->floor_bps || f->rate.rate_bps > f->ceil_bps || !f->rate.routers))
		abort();
	if (v->changed && v->refuse)
		abort();
	if (!v->refuse && (!v->decoded || v->flow != f))
		abort();
	if (!v->refuse && !(v->msg.flags & PAQM_F_AUTH) != !eng.params.require_auth)
		abort();
}

/* The flow's only packet. Return: its length. */
static uint32_t begin(uint8_t media[T_MEDIA + 20], uint8_t help)
{
	struct paqm_ipc_register reg = t_reg(1, T_SPORT, T_SSRC);
	struct engine_params p = engine_defaults;
	static struct keyring ring = {.n = 1, .key[0] = {.any = true, .id = 7}};
	uint32_t len = t_media(media, T_SPORT, T_SSRC, 1);
	struct flow *f;

	p.use = help & HELP_ECF ? ALLOW_USE_ECF : ALLOW_USE_ERF;
	p.require_auth = help & HELP_KEYS;
	p.legacy = help & HELP_LEGACY;
	if (help & HELP_V6) {
		len = t_to6(media, len);
		t_v6(reg.saddr, T_SADDR);
		t_v6(reg.daddr, T_DADDR);
	}
	memcpy(ring.key[0].bytes, key, sizeof(key));
	engine_init(&eng, &p, key);
	engine_set_keys(&eng, p.require_auth ? &ring : NULL);
	if (engine_register(&eng, 1, 0, &reg, &f))
		abort();
	return len;
}

/* Help a message of @len bytes past the checks. */
static void assist(uint8_t *pkt, uint32_t len, const uint8_t *media, uint8_t help)
{
	uint32_t hlen = help & HELP_V6 ? 40 : 20, quote = hlen + 8 + PAQM_QUOTE_UDP;
	uint8_t *obj = pkt + len - PAQM_OBJ_LEN, bytes[PAQM_TAG_BYTES];

	if (help & HELP_QUOTE && len >= hlen + 8 + quote)
		memcpy(pkt + hlen + 8, media, quote);
	else if (help & HELP_QUOTE && len >= hlen + 8 + 28) /* without object */
		memcpy(pkt + hlen + 8, media, 28);
	if (help & HELP_TAG && len >= hlen + 8 + quote + PAQM_OBJ_LEN) {
		obj[5] |= PAQM_F_AUTH;
		paqm_put16(obj + 6, 7);
		memset(obj + 40, 0, 8);
		memcpy(bytes, obj, PAQM_OBJ_LEN);
		paqm_put64(obj + 40,
			   paqm_siphash24(key, bytes,
					  PAQM_OBJ_LEN + paqm_rtp_invariant(pkt + 2 * hlen + 16,
									    PAQM_QUOTE_UDP,
									    bytes + PAQM_OBJ_LEN)));
	}
	if (help & HELP_SEAL && len >= 20)
		t_seal(pkt, len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t media[T_MEDIA + 20], *pkt, help;
	uint64_t now = 1000000000;
	struct early early;
	struct verdict v;

	if (!size)
		return 0;
	help = data[0];
	engine_media(&eng, media, begin(media, help), now);
	for (data++, size--; size >= 2;) {
		uint16_t len = paqm_get16(data), out = len & 0x8000;

		len &= 0x7FFF;
		data += 2;
		size -= 2;
		if (len > size)
			len = (uint16_t)size;
		pkt = malloc(len ? len : 1);
		if (!pkt)
			abort();
		memcpy(pkt, data, len);
		if (out) {
			engine_media(&eng, pkt, len, now);
		} else {
			assist(pkt, len, media, help);
			engine_message(&eng, pkt, len, now, &v);
			if (!v.waits)
				verify(&v);
		}
		while (engine_waited(&eng, now, &early)) {
			engine_again(&eng, &early, now, &v);
			verify(&v);
		}
		free(pkt);
		data += len;
		size -= len;
		now += 200000000;
		engine_expire(&eng, &eng.flows[0], now);
	}
	engine_free(&eng);
	return 0;
}
