// SPDX-License-Identifier: GPL-2.0
/* RTCP congestion control feedback; see ccfb.h. Section numbers are those of RFC 8888. */
#include "streamer/rtp/ccfb.h"

#include <string.h>

#include "core/paqm_inband.h"

#define HEAD 8	     /* of the packet: flags, type, length, SSRC of its sender */
#define BLOCK_HEAD 8 /* SSRC, begin_seq, num_reports */
#define STAMP 4
#define METRIC 2
#define MOST 16384 /* num_reports, section 3.1 */
#define RECEIVED 0x8000
#define OVER_RANGE 0x1FFE
#define UNKNOWN 0x1FFF

_Static_assert(HEAD + CCFB_STREAMS * (BLOCK_HEAD + CCFB_KEPT / 2 * METRIC) + STAMP <= CCFB_MAX,
	       "half of what is remembered in each report");

static bool newer(uint16_t a, uint16_t b)
{
	return (int16_t)(uint16_t)(a - b) > 0;
}

void ccfb_see(struct ccfb *c, unsigned int k, uint32_t ssrc, uint16_t seq, enum ecn ecn,
	      uint64_t at_ns)
{
	struct ccfb_stream *s = &c->streams[k];
	uint16_t ahead;

	c->ce += ecn == ECN_CE;
	c->ect += ecn == ECN_ECT0 || ecn == ECN_ECT1;
	ahead = (uint16_t)(seq - s->highest);
	/* numbers that leap are another beginning */
	if (!s->any || s->ssrc != ssrc ||
	    (ahead >= CCFB_KEPT && (uint16_t)(0U - ahead) >= CCFB_KEPT)) {
		*s = (struct ccfb_stream){
			.any = true, .ssrc = ssrc, .from = seq, .next = seq, .highest = seq};
	} else if (newer(seq, s->highest)) {
		for (uint16_t n = (uint16_t)(s->highest + 1); n != seq; n++)
			s->p[n % CCFB_KEPT].at_ns = 0;
		s->p[seq % CCFB_KEPT].at_ns = 0;
		s->highest = seq;
	}
	if (s->p[seq % CCFB_KEPT].at_ns) {
		/* of several copies the first counts, and CE of any (section 3.1) */
		if (ecn == ECN_CE)
			s->p[seq % CCFB_KEPT].ecn = ECN_CE;
		return;
	}
	c->overtaken += newer(s->highest, seq);
	if (newer(s->from, seq)) /* told as missing, perhaps more than once */
		s->from = seq;
	s->p[seq % CCFB_KEPT].at_ns = at_ns;
	s->p[seq % CCFB_KEPT].ecn = (uint8_t)ecn;
	if (!c->waiting_ns)
		c->waiting_ns = at_ns;
}

bool ccfb_due(const struct ccfb *c, bool last, uint64_t now_ns)
{
	return c->waiting_ns && (last || now_ns - c->waiting_ns >= CCFB_MS * 1000000ULL);
}

static uint16_t metric(const struct ccfb_stream *s, uint16_t seq, uint64_t now_ns)
{
	uint64_t at = s->p[seq % CCFB_KEPT].at_ns, before;

	if (!at)
		return 0;
	before = at > now_ns ? UNKNOWN : (now_ns - at) * 1024 / 1000000000;
	if (at <= now_ns && before >= OVER_RANGE)
		before = OVER_RANGE;
	return (uint16_t)(RECEIVED | s->p[seq % CCFB_KEPT].ecn << 13 | before);
}

static size_t write_stream(struct ccfb_stream *s, uint8_t *p, uint64_t now_ns)
{
	uint16_t n;
	size_t at = BLOCK_HEAD;

	if (!s->any)
		return 0;
	n = (uint16_t)(s->highest - s->from + 1);
	if (!n)
		return 0;
	if (n > CCFB_KEPT / 2) {
		n = CCFB_KEPT / 2;
		s->from = (uint16_t)(s->highest - n + 1);
	}
	paqm_put32(p, s->ssrc);
	paqm_put16(p + 4, s->from);
	paqm_put16(p + 6, n);
	for (uint16_t i = 0; i < n; i++, at += METRIC)
		paqm_put16(p + at, metric(s, (uint16_t)(s->from + i), now_ns));
	if (n % 2) {
		paqm_put16(p + at, 0);
		at += METRIC;
	}
	s->from = newer(s->next, s->from) ? s->next : s->from;
	s->next = (uint16_t)(s->highest + 1);
	return at;
}

size_t ccfb_write(struct ccfb *c, uint8_t *p, uint32_t ssrc, uint32_t ntp, uint64_t now_ns)
{
	size_t len = HEAD;

	if (!c->waiting_ns)
		return 0;
	c->waiting_ns = 0;
	for (unsigned int k = 0; k < CCFB_STREAMS; k++)
		len += write_stream(&c->streams[k], p + len, now_ns);
	paqm_put32(p + len, ntp);
	len += STAMP;
	paqm_put32(p, 0x80CD0000U | CCFB_FMT << 24 | (uint32_t)(len / 4 - 1));
	paqm_put32(p + 4, ssrc);
	return len;
}

static void tell(uint32_t ssrc, uint16_t seq, uint16_t m, ccfb_fn fn, void *data)
{
	unsigned int before = m & 0x1FFF;
	struct ccfb_entry e = {.ssrc = ssrc, .seq = seq, .received = m & RECEIVED};

	if (e.received) {
		e.ecn = (enum ecn)(m >> 13 & 3);
		e.known = before < OVER_RANGE;
		e.before = e.known ? before / 1024.0 : 0;
	}
	fn(&e, data);
}

/* One pass over the blocks; false: they do not end where the packet does. */
static bool blocks(const uint8_t *p, size_t len, ccfb_fn fn, void *data)
{
	size_t at = 0;

	while (at < len) {
		unsigned int n;
		size_t size;

		if (len - at < BLOCK_HEAD)
			return false;
		n = paqm_get16(p + at + 6);
		size = (size_t)(n + n % 2) * METRIC;
		if (n > MOST || len - at - BLOCK_HEAD < size)
			return false;
		for (unsigned int i = 0; fn && i < n; i++)
			tell(paqm_get32(p + at), (uint16_t)(paqm_get16(p + at + 4) + i),
			     paqm_get16(p + at + BLOCK_HEAD + i * METRIC), fn, data);
		at += BLOCK_HEAD + size;
	}
	return true;
}

bool ccfb_read(const uint8_t *p, size_t len, uint32_t *ntp, ccfb_fn fn, void *data)
{
	if (len < STAMP || len % 4 || !blocks(p, len - STAMP, NULL, NULL))
		return false;
	*ntp = paqm_get32(p + len - STAMP);
	return blocks(p, len - STAMP, fn, data);
}
