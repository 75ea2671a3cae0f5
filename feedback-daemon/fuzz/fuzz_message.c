// SPDX-License-Identifier: GPL-2.0
/*
 * Fuzz target: the pipeline of checks. The first byte of the input says how to
 * help it past the checksums and the proof, the rest are IP packets, each with
 * a 16-bit length in front; bit 15 of the length makes it outgoing media.
 */
#include <stdlib.h>

#include "feedback-daemon/tests/packets.h"

#define HELP_SEAL 1  /* make both checksums right */
#define HELP_QUOTE 2 /* quote a packet that was sent */
#define HELP_ECF 4   /* use the relative value */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct engine eng;

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
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t key[PAQM_SIPHASH_KEY] = {1};
	struct engine_params p = engine_defaults;
	struct paqm_ipc_register reg = t_reg(1, T_SPORT, T_SSRC);
	uint8_t media[T_MEDIA], *pkt;
	uint64_t now = 1000000000;
	struct verdict v;
	struct flow *f;
	uint8_t help;

	if (!size)
		return 0;
	help = data[0];
	p.use = help & HELP_ECF ? ALLOW_USE_ECF : ALLOW_USE_ERF;
	engine_init(&eng, &p, key);
	if (engine_register(&eng, 1, &reg, &f))
		abort();
	engine_media(&eng, media, t_media(media, T_SPORT, T_SSRC, 1), now);
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
		if (!out && help & HELP_QUOTE && len >= 28 + 56)
			memcpy(pkt + 28, media, 56);
		if (!out && help & HELP_SEAL && len >= 20)
			t_seal(pkt, len);
		if (out) {
			engine_media(&eng, pkt, len, now);
		} else {
			engine_message(&eng, pkt, len, now, &v);
			verify(&v);
		}
		free(pkt);
		data += len;
		size -= len;
		now += 200000000;
		engine_expire(&eng, f, now);
	}
	engine_free(&eng);
	return 0;
}
