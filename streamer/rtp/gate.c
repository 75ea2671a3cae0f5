// SPDX-License-Identifier: GPL-2.0
/* Who and what reaches rtpbin; see gate.h. */
#include "streamer/rtp/gate.h"

#include <string.h>

#include "core/paqm_msg.h"

#define RTP_HEAD 12
#define RTCP_HEAD 8   /* of a packet, with the SSRC of who sends it */
#define RTCP_FIRST 64 /* as a payload type */
#define RTCP_LAST 95

#define SR 200
#define RR 201
#define SDES 202
#define BYE 203
#define APP 204
#define RTPFB 205
#define PSFB 206
#define XR 207
#define FMT_SR_REQ 5

const char *const gate_whys[GATE_WHYS] = {
	[GATE_IN] = "let in",
	[GATE_BROKEN] = "broken",
	[GATE_STRANGER] = "of strangers",
	[GATE_FULL] = "of too many streams",
	[GATE_SELF] = "with an SSRC of our own",
	[GATE_OTHERS] = "that speak for others",
	[GATE_HANGS] = "that ask for a sender report",
};

static enum gate_why refuse(struct gate *g, enum gate_why why)
{
	g->refused[why]++;
	return why;
}

static struct gate_stream *find(struct gate *g, uint32_t ssrc)
{
	for (unsigned int i = 0; i < GATE_STREAMS; i++)
		if (g->streams[i].used && g->streams[i].ssrc == ssrc)
			return &g->streams[i];
	return NULL;
}

static bool is_own(const struct gate *g, uint32_t ssrc)
{
	for (unsigned int i = 0; i < g->n_own; i++)
		if (g->own[i] == ssrc)
			return true;
	return false;
}

void gate_agree(struct gate *g, uint32_t ssrc)
{
	g->agreed = true;
	if (!ssrc)
		return;
	for (unsigned int i = 0; i < GATE_STREAMS; i++) {
		if (g->streams[i].used)
			continue;
		g->streams[i] = (struct gate_stream){.ssrc = ssrc, .used = true};
		return;
	}
}

void gate_own(struct gate *g, uint32_t ssrc)
{
	if (g->n_own < sizeof(g->own) / sizeof(*g->own))
		g->own[g->n_own++] = ssrc;
}

static bool silent(const struct gate_stream *s, uint64_t now_ns)
{
	return now_ns - s->heard_ns > GATE_SILENT_NS;
}

/* A place for a stream: a free one, or that of who has been silent for longest. */
static struct gate_stream *place(struct gate *g, uint64_t now_ns)
{
	struct gate_stream *best = NULL;

	for (unsigned int i = 0; i < GATE_STREAMS; i++) {
		struct gate_stream *s = &g->streams[i];

		if (!s->used)
			return s;
		if (s->ssrc == g->keep || (!silent(s, now_ns) && (!g->proof || s->proven)))
			continue;
		if (!best || s->heard_ns < best->heard_ns)
			best = s;
	}
	return best;
}

static unsigned int alive(const struct gate *g, uint64_t now_ns)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < GATE_STREAMS; i++)
		n += g->streams[i].used && !silent(&g->streams[i], now_ns);
	return n;
}

/* Has it shown packets in sequence? Chance does not: what is sprayed with other SSRCs. */
static bool has_waited(struct gate *g, uint32_t ssrc, const uint16_t *seq)
{
	unsigned int at = (ssrc * 2654435761U) >> 16 & (GATE_WAITING - 1);

	if (g->waiting[at].row && g->waiting[at].ssrc == ssrc &&
	    (!seq || *seq == (uint16_t)(g->waiting[at].seq + 1))) {
		g->waiting[at].row++;
	} else {
		g->waiting[at].ssrc = ssrc;
		g->waiting[at].row = 1;
	}
	if (seq)
		g->waiting[at].seq = *seq;
	if (g->waiting[at].row < GATE_ROW)
		return false;
	g->waiting[at].row = 0;
	return true;
}

/* @seq: of a packet of RTP */
static enum gate_why enter(struct gate *g, uint32_t ssrc, const uint16_t *seq, uint64_t now_ns,
			   struct gate_gone *gone)
{
	struct gate_stream *s = find(g, ssrc);

	*gone = (struct gate_gone){0};
	if (is_own(g, ssrc))
		return refuse(g, GATE_SELF);
	if (s) {
		s->heard_ns = now_ns;
		return GATE_IN;
	}
	if (g->agreed || (alive(g, now_ns) >= GATE_FREE && !has_waited(g, ssrc, seq)))
		return refuse(g, GATE_STRANGER);
	s = place(g, now_ns);
	if (!s)
		return refuse(g, GATE_FULL);
	*gone = (struct gate_gone){s->used, s->ssrc};
	*s = (struct gate_stream){.ssrc = ssrc, .used = true, .heard_ns = now_ns};
	return GATE_IN;
}

enum gate_why gate_rtp(struct gate *g, const uint8_t *p, size_t len, uint64_t now_ns,
		       struct gate_gone *gone)
{
	uint16_t seq;

	*gone = (struct gate_gone){0};
	/* what srtpdec and others take for RTCP has a port of its own (RFC 5761 section 4) */
	if (len < RTP_HEAD || p[0] >> 6 != 2 ||
	    ((p[1] & 0x7f) >= RTCP_FIRST && (p[1] & 0x7f) <= RTCP_LAST))
		return refuse(g, GATE_BROKEN);
	/* each of them would be a source */
	if (p[0] & 15)
		return refuse(g, GATE_OTHERS);
	seq = paqm_get16(p + 2);
	return enter(g, paqm_get32(p + 8), &seq, now_ns, gone);
}

enum gate_why gate_rtcp(struct gate *g, const uint8_t *p, size_t len, uint64_t now_ns,
			struct gate_gone *gone)
{
	*gone = (struct gate_gone){0};
	/* srtpdec looks further if it does not know the first type: into what is encrypted */
	if (len < RTCP_HEAD || p[0] >> 6 != 2 || p[1] < SR || p[1] > XR)
		return refuse(g, GATE_BROKEN);
	return enter(g, paqm_get32(p + 4), NULL, now_ns, gone);
}

void gate_prove(struct gate *g, uint32_t ssrc)
{
	struct gate_stream *s = find(g, ssrc);

	if (s)
		s->proven = true;
}

/* Words behind the first that a packet of a kind has at least. */
static size_t least(unsigned int type, unsigned int count)
{
	switch (type) {
	case SR:
		return 6 + 6 * (size_t)count;
	case RR:
		return 1 + 6 * (size_t)count;
	case SDES:
	case BYE:
		return count;
	case APP:
	case RTPFB:
	case PSFB:
		return 2;
	default:
		return 0;
	}
}

/* Is it one chunk, whose items end where the packet does? What follows may be taken for others. */
static bool one_chunk(const uint8_t *p, size_t size)
{
	size_t at = 8;

	while (at < size && p[at]) {
		if (size - at < 2 || size - at - 2 < p[at + 1])
			return false;
		at += 2 + (size_t)p[at + 1];
	}
	return at < size && size - at <= 4;
}

static bool reports_on_us(const struct gate *g, const uint8_t *p, unsigned int type,
			  unsigned int count)
{
	const uint8_t *block = p + (type == SR ? 28 : 8);

	if (type == RTPFB || type == PSFB)
		return is_own(g, paqm_get32(p + 8));
	for (unsigned int i = 0; (type == SR || type == RR) && i < count; i++)
		if (is_own(g, paqm_get32(block + (size_t)24 * i)))
			return true;
	return false;
}

/* One packet within a datagram. */
static enum gate_why judge(struct gate *g, const uint8_t *p, size_t words)
{
	unsigned int type = p[1], count = p[0] & 31;
	uint32_t ssrc = words ? paqm_get32(p + 4) : 0;

	if (words < least(type, count))
		return GATE_BROKEN;
	if (type == RTPFB && count == FMT_SR_REQ)
		return GATE_HANGS;
	if (type > BYE || type < SR || !words)
		return GATE_IN;
	/* these make sources, or end them */
	if (is_own(g, ssrc))
		return GATE_SELF;
	if (!find(g, ssrc) || ((type == SDES || type == BYE) && count > 1))
		return GATE_OTHERS;
	if (type == SDES && (!count || !one_chunk(p, 4 * (words + 1))))
		return GATE_BROKEN;
	return GATE_IN;
}

/* Do packets fill the datagram? */
static bool whole(const uint8_t *p, size_t len)
{
	size_t at = 0;

	while (len - at >= 4 && p[at] >> 6 == 2) {
		size_t size = 4 * ((size_t)paqm_get16(p + at + 2) + 1);

		if (size > len - at)
			return false;
		at += size;
	}
	return at && at == len;
}

size_t gate_clean(struct gate *g, uint8_t *p, size_t len, bool *about_us)
{
	size_t at = 0;

	*about_us = false;
	if (!whole(p, len)) {
		refuse(g, GATE_BROKEN);
		return 0;
	}
	while (at < len) {
		size_t words = paqm_get16(p + at + 2), size = 4 * (words + 1);
		enum gate_why why = judge(g, p + at, words);

		if (why == GATE_IN) {
			*about_us |= reports_on_us(g, p + at, p[at + 1], p[at] & 31);
			at += size;
			continue;
		}
		refuse(g, why);
		memmove(p + at, p + at + size, len - at - size);
		len -= size;
	}
	return len;
}

uint64_t gate_refused(const struct gate *g)
{
	uint64_t n = 0;

	for (unsigned int i = 0; i < GATE_WHYS; i++)
		n += g->refused[i];
	return n;
}
