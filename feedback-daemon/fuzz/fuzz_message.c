// SPDX-License-Identifier: GPL-2.0
/*
 * Fuzz target: the pipeline of checks. The first byte of the input says how to
 * help it past the checksums and the proof, the rest are IP packets, each with
 * a 16-bit length in front; bit 15 of the length makes it outgoing media.
 * Messages may be of version 1 or 2.
 */
#include <stdlib.h>

#include "feedback-daemon/tests/packets.h"

#define HELP_SEAL 1    /* make all checksums right */
#define HELP_QUOTE 2   /* quote a packet that was sent */
#define HELP_ECF 4     /* use the relative value */
#define HELP_KEYS 8    /* routers must have a key */
#define HELP_TAG 16    /* tag messages with it: version 2 where there is room for a tag */
#define HELP_V6 32     /* the flow is one of IPv6 */
#define HELP_LEGACY 64 /* believe Source Quench without object */
#define HELP_EXT 128   /* the flow's packets have a header extension with a field of ours */

#define FIELD_WORDS 4
#define MEDIA_MAX (T_MEDIA + 20 + 4 + 4 * FIELD_WORDS)

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

/* Give the RTP packet @ip a header extension. Return: its length. */
static uint32_t extend(uint8_t *ip, uint32_t len)
{
	static const struct paqm_field field = {.rate = 0x4A3EBC20, .nonce = 0x11223344};
	uint32_t more = 4 + 4 * FIELD_WORDS;
	uint8_t *rtp = ip + 28;

	memmove(rtp + 12 + more, rtp + 12, len - 40);
	rtp[0] |= 0x10;
	paqm_put16(rtp + 12, 0xBEDE);
	paqm_put16(rtp + 14, FIELD_WORDS);
	rtp[16] = 0x1E; /* element of 15 bytes */
	paqm_field_encode(rtp + 17, &field);
	paqm_put16(ip + 24, (uint16_t)(len - 20 + more));
	t_ip(ip, 17, len + more, T_SADDR, T_DADDR);
	return len + more;
}

/* The flow's only packet. Return: its length. */
static uint32_t begin(uint8_t media[MEDIA_MAX], uint8_t help)
{
	struct paqm_ipc_register reg = t_reg(1, T_SPORT, T_SSRC);
	struct engine_params p = engine_defaults;
	static struct keyring ring = {.n = 1, .key[0] = {.any = true, .id = 7}};
	uint32_t len = t_media(media, T_SPORT, T_SSRC, 1);
	struct flow *f;

	p.use = help & HELP_ECF ? ALLOW_USE_ECF : ALLOW_USE_ERF;
	p.require_auth = help & HELP_KEYS;
	p.legacy = help & HELP_LEGACY;
	if (help & HELP_EXT)
		len = extend(media, len);
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

/* The checksum of the extension structure at @ext, if there is one. */
static void seal_ext(uint8_t *ext, uint32_t len)
{
	if (len < PAQM_EXT_HDR || ext[0] >> 4 != PAQM_EXT_VERSION || !paqm_get16(ext + 2))
		return;
	paqm_put16(ext + 2, 0);
	paqm_put16(ext + 2, paqm_checksum(ext, len));
}

/* Checksums of the IP packet @ip and of the message in it, which begins at @icmp. */
static void seal(uint8_t *ip, uint8_t *icmp, uint32_t len)
{
	icmp[2] = 0;
	icmp[3] = 0;
	if (ip[0] >> 4 == 6) {
		paqm_put16(icmp + 2, paqm_checksum6(ip + 8, ip + 24, icmp, len));
		return;
	}
	paqm_put16(icmp + 2, paqm_checksum(icmp, len));
	ip[10] = 0;
	ip[11] = 0;
	paqm_put16(ip + 10, paqm_checksum(ip, (ip[0] & 15U) * 4));
}

/* Tag version 1, which ends with its object, with the router's key. */
static void tag1(uint8_t *icmp, uint32_t len, const struct paqm_quote *q)
{
	uint8_t *obj = icmp + len - PAQM1_OBJ_LEN, bytes[PAQM_TAG_BYTES];

	obj[5] |= PAQM_F_AUTH;
	paqm_put16(obj + 6, 7);
	paqm_put64(obj + 40, paqm_siphash24(key, bytes, paqm1_tag_bytes(obj, q, bytes)));
}

/* Tag version 2, if its object ends with a tag, with the key of the host that it goes to. */
static void tag2(const uint8_t *ip, uint8_t *ext, uint32_t len, const struct paqm_quote *q)
{
	struct addr to = ip[0] >> 4 == 6 ? addr_v6(ip + 24) : addr_v4(ip + 16);
	uint8_t bytes[PAQM_TAG_BYTES], own[PAQM_SIPHASH_KEY], *obj;
	const uint8_t *found;
	uint32_t size;
	int other;

	found = paqm_object_find(ext, len, &size, &other);
	if (!found || size < PAQM_OBJ_FIXED + PAQM_OPT_TAG_LEN)
		return;
	obj = ext + (found - ext);
	if (paqm_get32(obj + size - PAQM_OPT_TAG_LEN) != ((uint32_t)PAQM_OPT_TAG << 16 | 8))
		return;
	obj[9] |= PAQM_F_AUTH;
	paqm_put16(obj + 10, 7);
	keys_derive(key, &to, own);
	paqm_put64(obj + size - 8, paqm_siphash24(own, bytes, paqm_tag_bytes(obj, size, q, bytes)));
}

/* Help a message of @len bytes past the checks. */
static void assist(uint8_t *pkt, uint32_t len, const uint8_t *media, uint8_t help)
{
	bool v6 = help & HELP_V6, first;
	uint32_t hlen, quote, n;
	struct paqm_quote q;
	uint8_t *icmp;

	if (!len || pkt[0] >> 4 != (v6 ? 6 : 4))
		return;
	hlen = v6 ? 40 : (pkt[0] & 15U) * 4;
	if (hlen < 20 || len < hlen + PAQM_ICMP_HDR + 28)
		return;
	icmp = pkt + hlen;
	len -= hlen;
	/* version 1 has a value where version 2 has zeros and a length */
	first = v6 ? icmp[0] == PAQM_ICMP6_TYPE_OLD : icmp[4] || icmp[6] || icmp[7];
	if (first)
		quote = len < PAQM_ICMP_HDR + PAQM1_OBJ_LEN ? 28 /* Source Quench without object */
							    : len - PAQM_ICMP_HDR - PAQM1_OBJ_LEN;
	else
		quote = v6 ? icmp[4] * 8U : icmp[5] * 4U;
	if (quote > len - PAQM_ICMP_HDR)
		quote = len - PAQM_ICMP_HDR;
	n = t_quote(media);
	if (help & HELP_QUOTE)
		memcpy(icmp + PAQM_ICMP_HDR, media, n < quote ? n : quote);
	if (help & HELP_SEAL && !first)
		seal_ext(icmp + PAQM_ICMP_HDR + quote, len - PAQM_ICMP_HDR - quote);
	if (help & HELP_TAG && !paqm_quote_decode(icmp + PAQM_ICMP_HDR, quote, v6 ? 6 : 4, &q)) {
		if (!first)
			tag2(pkt, icmp + PAQM_ICMP_HDR + quote, len - PAQM_ICMP_HDR - quote, &q);
		else if (len >= PAQM_ICMP_HDR + PAQM1_OBJ_LEN)
			tag1(icmp, len, &q);
	}
	if (help & HELP_SEAL && !first)
		seal_ext(icmp + PAQM_ICMP_HDR + quote, len - PAQM_ICMP_HDR - quote);
	if (help & HELP_SEAL)
		seal(pkt, icmp, len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t media[MEDIA_MAX], *pkt, help;
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
