// SPDX-License-Identifier: GPL-2.0
/* Rates that travel with the media, at both ends; see returns.h. */
#include "streamer/rtp/returns.h"

#include <string.h>

#include "core/paqm_follow.h"
#include "core/paqm_vcp.h"
#include "streamer/rtp/wire.h"

#define MS 1000000ULL
#define GAP_NS (20 * MS)
#define PAUSE_NS (100 * MS)
#define EXPIRY_MIN_NS (3000 * MS) /* as paqmd's allowances */
#define EXPIRY_MAX_NS (30000 * MS)
#define ANEW_NS (EXPIRY_MAX_NS + 1000 * MS) /* what was returned before is in force no more */
#define CNAME_MAX 40
#define TRIP_US 100000	       /* where no round trip is known */
#define ASKED_NS (5000 * MS)   /* for so long routers that asked are taken to ask */
#define GRADED_PACKET 1200     /* bytes that VCP adds */
#define GRADED_MOST_US 1000000 /* a grade is answered for so long at most */

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

uint32_t returns_probe_nonce(const uint8_t *payload, size_t len)
{
	if (!len || payload[0] != PAQM_PROBE_FIRST || paqm_field_find(payload, (uint32_t)len) != 1)
		return 0;
	return paqm_get32(payload + 1 + PAQM_FIELD_NONCE);
}

bool returns_see(struct returns *r, const uint8_t *payload, size_t len, uint64_t now_ns,
		 bool *probe)
{
	uint32_t at, at_more, seq;
	uint64_t rate;
	uint8_t kind;

	*probe = len && payload[0] == PAQM_PROBE_FIRST;
	at = paqm_field_find(payload, (uint32_t)(len < 65536 ? len : 65536));
	/* what is sent again has the field of then, and numbers of its own */
	if (!at || (!*probe && (payload[1] & 0x7f) == RTX_PT))
		return false;
	/* another stream begins; anybody can say so, and is not answered more often for it. Or this
	 * one comes again, and more packets than 16 bits tell apart may have been lost.
	 */
	if (r->have && (r->newest.field.nonce != paqm_get32(payload + at + PAQM_FIELD_NONCE) ||
			now_ns - r->said_ns > ANEW_NS))
		*r = (struct returns){.said = r->said, .said_ns = r->said_ns};
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
	at_more = paqm_more_find(payload, (uint32_t)(len < 65536 ? len : 65536));
	if (r->again)
		r->newest.more = r->newest.said = 0;
	r->again = false;
	if (at_more) {
		r->newest.more = 1;
		r->newest.said = paqm_said_both(r->newest.said,
						payload[at_more + PAQM_MORE_SAID] & PAQM_SAID_ALL);
	}
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
	r->again = true;
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

size_t returns_app(uint8_t *p, const struct paqm_return *r, uint32_t ssrc)
{
	paqm_return_encode(p, ssrc, r);
	return paqm_return_len(r);
}

size_t returns_compound(uint8_t *p, const struct paqm_return *r, enum returns_form form,
			const char *cname, uint32_t ssrc, uint32_t media, uint32_t overhead)
{
	size_t len = put_head(p, cname, ssrc);

	len += returns_app(p + len, r, ssrc);
	if (form == RETURNS_TMMBR) {
		paqm_tmmbr_encode(p + len, ssrc, media, bps(r->field.rate), overhead);
		len += PAQM_TMMBR_LEN;
	} else if (form == RETURNS_REMB) {
		paqm_remb_encode(p + len, ssrc, media, bps(r->field.rate));
		len += PAQM_REMB_LEN;
	}
	return len;
}

/* The rate after a return that says @told; @since_us: since the one before, 0: there was none. */
static uint64_t follow(struct returned *s, const struct paqm_return *r, uint64_t told,
		       uint64_t since_us, uint64_t now_ns)
{
	uint64_t before = since_us && s->rate ? s->rate : s->used;
	unsigned int grade = r->said & PAQM_SAID_GRADE;
	struct paqm_each each;

	if (!before || !(r->said & PAQM_SAID_SEARCHES))
		return told;
	if (!grade)
		return paqm_follow(before, told, since_us, s->rtt_us ? s->rtt_us : TRIP_US,
				   r->said & PAQM_SAID_CONGESTED);
	if (grade == PAQM_VCP_OVER) {
		if (s->cut_ns && now_ns - s->cut_ns < PAQM_VCP_TIME_US * 1000ULL)
			return paqm_min64(before, told);
		s->cut_ns = now_ns;
	}
	each = paqm_vcp_answer((enum paqm_vcp_load)grade,
			       (paqm_u32)paqm_min64(since_us, GRADED_MOST_US), GRADED_PACKET);
	return paqm_clamp64(paqm_each_rate(&each, before), 1, told);
}

uint64_t returned_take(struct returned *s, const uint8_t *data, size_t len, uint64_t now_ns)
{
	struct paqm_return r;
	bool held = s->have && now_ns < s->until_ns;

	if (len > UINT32_MAX || paqm_return_decode(data, (uint32_t)len, &r) ||
	    r.field.nonce != s->nonce ||
	    (r.kind == PAQM_RETURN_PROBE && !paqm_seq_newer(r.seq, s->moved)) ||
	    /* a receiver that is started again counts cycles anew */
	    (held && !newer(&s->newest, r.seq, r.kind))) {
		s->refused++;
		return 0;
	}
	if (!r.field.router && !r.said) {
		s->untold++;
		return 0;
	}
	s->rate =
		follow(s, &r, bps(r.field.rate), held ? (now_ns - s->taken_ns) / 1000 : 0, now_ns);
	s->taken_ns = now_ns;
	if (r.said)
		s->asked_ns = now_ns;
	s->have = true;
	s->newest = r;
	s->until_ns = now_ns + paqm_clamp64(3ULL * r.field.period * PAQM_FIELD_PERIOD_MS * MS,
					    EXPIRY_MIN_NS, EXPIRY_MAX_NS);
	s->believed++;
	return s->rate;
}

void returned_move(struct returned *s, uint32_t probe)
{
	*s = (struct returned){.nonce = s->nonce, .moved = probe};
}

uint64_t returned_rate(const struct returned *s, uint64_t now_ns)
{
	return s->have && now_ns < s->until_ns ? s->rate : 0;
}

bool returned_asked(const struct returned *s, uint64_t now_ns)
{
	return s->asked_ns && now_ns - s->asked_ns < ASKED_NS;
}
