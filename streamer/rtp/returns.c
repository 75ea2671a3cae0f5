// SPDX-License-Identifier: GPL-2.0
/* Rates that travel with the media, at both ends; see returns.h. */
#include "streamer/rtp/returns.h"

#include <string.h>

#define MS 1000000ULL
#define GAP_NS (20 * MS)
#define PAUSE_NS (100 * MS)
#define EXPIRY_MIN_NS (3000 * MS) /* as paqmd's allowances */
#define EXPIRY_MAX_NS (30000 * MS)
#define CNAME_MAX 40

static uint64_t bps(uint32_t rate)
{
	paqm_u64 v = 0;

	if (paqm_f32_decode(rate, 0, &v))
		return 1;
	return paqm_max64(v, 1);
}

/* In serial arithmetic; the probes that begin a stream end with its first element. */
static bool newer(const struct paqm_return *a, uint32_t seq, uint8_t kind)
{
	if (a->kind != kind)
		return kind == PAQM_RETURN_ELEMENT;
	return paqm_seq_newer(seq, a->seq);
}

bool returns_see(struct returns *r, const uint8_t *payload, size_t len, uint64_t now_ns,
		 bool *probe)
{
	uint32_t at, seq;
	uint64_t rate;
	uint8_t kind;

	*probe = len && payload[0] == PAQM_PROBE_FIRST;
	at = paqm_field_find(payload, (uint32_t)(len < 65536 ? len : 65536));
	if (!at)
		return false;
	/* another stream begins */
	if (r->have && r->newest.field.nonce != paqm_get32(payload + at + PAQM_FIELD_NONCE))
		*r = (struct returns){0};
	if (*probe) {
		kind = PAQM_RETURN_PROBE;
		seq = paqm_get32(payload + 1 + PAQM_FIELD_LEN);
	} else {
		kind = PAQM_RETURN_ELEMENT;
		seq = paqm_get16(payload + 2);
		if (r->have && r->newest.kind == kind) /* with its cycles */
			seq = r->newest.seq + (uint32_t)(int16_t)(seq - (uint16_t)r->newest.seq);
	}
	if (r->have && !newer(&r->newest, seq, kind))
		return false;
	r->have = true;
	r->newest.seq = seq;
	r->newest.kind = kind;
	paqm_field_decode(payload + at, &r->newest.field);
	rate = bps(r->newest.field.rate);
	if (r->said) {
		uint64_t change = rate > r->said ? rate - r->said : r->said - rate;
		uint64_t since = now_ns - r->said_ns;

		if (since < GAP_NS || (since < PAUSE_NS && change <= r->said / 100))
			return false;
	}
	r->said = rate;
	r->said_ns = now_ns;
	return true;
}

/* What a compound packet begins with: empty RR, SDES with CNAME. */
static size_t put_head(uint8_t *p, const char *cname, uint32_t ssrc)
{
	size_t len = 0, text = strnlen(cname, CNAME_MAX), chunk;

	paqm_put32(p, 0x80C90001); /* RR without blocks */
	paqm_put32(p + 4, ssrc);
	len += 8;
	chunk = (4 + 2 + text + 1 + 3) / 4 * 4; /* SSRC, item, end, to a multiple of 4 */
	memset(p + len, 0, 4 + chunk);
	paqm_put32(p + len, 0x81CA0000U | (uint32_t)(chunk / 4));
	paqm_put32(p + len + 4, ssrc);
	p[len + 8] = 1; /* CNAME */
	p[len + 9] = (uint8_t)text;
	memcpy(p + len + 10, cname, text);
	return len + 4 + chunk;
}

size_t returns_compound(uint8_t *p, const struct paqm_return *r, enum returns_form form,
			const char *cname, uint32_t ssrc, uint32_t media, uint32_t overhead)
{
	size_t len = put_head(p, cname, ssrc);

	paqm_return_encode(p + len, ssrc, r);
	len += PAQM_APP_LEN;
	if (form == RETURNS_TMMBR) {
		paqm_tmmbr_encode(p + len, ssrc, media, bps(r->field.rate), overhead);
		len += PAQM_TMMBR_LEN;
	} else if (form == RETURNS_REMB) {
		paqm_remb_encode(p + len, ssrc, media, bps(r->field.rate));
		len += PAQM_REMB_LEN;
	}
	return len;
}

uint64_t returned_take(struct returned *s, const uint8_t *data, size_t len, uint64_t now_ns)
{
	struct paqm_return r;

	if (len > UINT32_MAX || paqm_return_decode(data, (uint32_t)len, &r) ||
	    r.field.nonce != s->nonce || (s->have && !newer(&s->newest, r.seq, r.kind))) {
		s->refused++;
		return 0;
	}
	if (!r.field.router) {
		s->untold++;
		return 0;
	}
	s->have = true;
	s->newest = r;
	s->until_ns = now_ns + paqm_clamp64(3ULL * r.field.period * PAQM_FIELD_PERIOD_MS * MS,
					    EXPIRY_MIN_NS, EXPIRY_MAX_NS);
	s->believed++;
	return bps(r.field.rate);
}

uint64_t returned_rate(const struct returned *s, uint64_t now_ns)
{
	return s->have && now_ns < s->until_ns ? bps(s->newest.field.rate) : 0;
}
