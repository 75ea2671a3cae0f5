// SPDX-License-Identifier: GPL-2.0
/* Is a UDP flow RTP? Its sequence numbers tell, in a few packets. Under the qdisc lock. */
#include "paqm_flows.h"

#define PAQM_RTP_MATCHES 2  /* packets in sequence that make an open flow RTP */
#define PAQM_RTP_REMATCH 4  /* the same for one that was judged before */
/*
 * Packets that are not in sequence: those of a source that is not remembered count as one,
 * since a flow may carry many sources (the downlink of an SFU), others as four.
 */
#define PAQM_RTP_MISS_OTHER 4
#define PAQM_RTP_MISSES 32  /* this many make an undecided flow no RTP */
#define PAQM_RTP_LOST 128   /* and one that was RTP: half a megabyte of other things */
#define PAQM_RTP_HOLD 4	    /* one in this many packets of others takes a place among them */
#define PAQM_RTP_JUMP 256   /* sequence numbers may be missing: loss upstream */
#define PAQM_RTP_JUMP_JUDGED 1024 /* and of a judged flow not all packets are looked at */

/*
 * The remembered source of a packet, or NULL. One that is new takes a place that is free,
 * or, now and then, that of the oldest: in a flow of more sources than places some stay.
 */
static struct paqm_rtp_source *paqm_rtp_find(struct paqm_flow_more *m, const struct paqm_packet *p)
{
	u16 mark = (u16)((p->ssrc * PAQM_SPREAD) >> 16);
	u32 i, known = min_t(u32, m->sources, PAQM_RTP_SOURCES);

	for (i = 0; i < known; i++)
		if (m->source[i].mark == mark)
			return &m->source[i];
	if (known < PAQM_RTP_SOURCES || m->misses % PAQM_RTP_HOLD == PAQM_RTP_HOLD - 1) {
		m->source[m->sources % PAQM_RTP_SOURCES] = (struct paqm_rtp_source){ mark, p->seq };
		m->sources = m->sources < 2 * PAQM_RTP_SOURCES - 1 ? m->sources + 1 :
								     PAQM_RTP_SOURCES;
	}
	return NULL;
}

/* Weigh the evidence of a packet for or against RTP; returns what the flow is now. */
static u8 paqm_flow_watch(struct paqm_flows *t, struct paqm_flow *f, u8 nature,
			  const struct paqm_packet *p)
{
	struct paqm_flow_more *m = paqm_flow_more(t, f);
	bool rtp = p->kind == PAQM_KIND_RTP;
	struct paqm_rtp_source *s = rtp ? paqm_rtp_find(m, p) : NULL;
	u16 ahead = s ? p->seq - s->seq : 0, most = PAQM_RTP_JUMP_JUDGED;
	u32 misses;

	if (nature == PAQM_NATURE_OPEN)
		most = PAQM_RTP_JUMP;
	if (s)
		s->seq = p->seq;
	if (ahead && ahead <= most) {
		m->misses = 0;
		if (nature == PAQM_NATURE_RTP)
			return nature;
		m->matches++;
		if (m->matches < (nature == PAQM_NATURE_OPEN ? PAQM_RTP_MATCHES : PAQM_RTP_REMATCH))
			return nature;
		WRITE_ONCE(t->rtp, t->rtp + 1);
		return PAQM_NATURE_RTP;
	}
	/* a known source out of sequence is worse than one that is new here */
	misses = min_t(u32, m->misses + (rtp && !s ? 1 : PAQM_RTP_MISS_OTHER), U8_MAX);
	m->misses = misses;
	if (nature == PAQM_NATURE_NOT_RTP) {
		m->matches /= 2;
		return nature;
	}
	if (misses <= (nature == PAQM_NATURE_RTP ? PAQM_RTP_LOST : PAQM_RTP_MISSES))
		return nature;
	m->matches = 0;
	WRITE_ONCE(t->not_rtp, t->not_rtp + 1);
	return PAQM_NATURE_NOT_RTP;
}

/**
 * paqm_flow_judge_udp() - which queue a packet of a UDP flow belongs to
 * @t: table
 * @f: its flow, NULL if there was no room: then the packet alone decides
 * @p: packet; of kind PAQM_KIND_UDP if it was not looked into
 *
 * Until a flow is recognised its RTP-like packets ride with media and it is not
 * counted, so a false alarm costs no flow its share.
 *
 * Return: class, PAQM_FLOW_UNSURE for media that is not to be counted.
 */
u8 paqm_flow_judge_udp(struct paqm_flows *t, struct paqm_flow *f, const struct paqm_packet *p)
{
	bool rtp = p->kind == PAQM_KIND_RTP;
	u8 nature, now;

	if (unlikely(!f))
		return rtp ? PAQM_MEDIA : PAQM_ELASTIC;
	nature = paqm_flow_nature(f);
	if (p->kind != PAQM_KIND_UDP) {
		now = paqm_flow_watch(t, f, nature, p);
		if (now != nature)
			paqm_flow_set(f, paqm_flow_class(f), now);
		nature = now;
	}
	switch (nature) {
	case PAQM_NATURE_RTP:
		return PAQM_MEDIA;
	case PAQM_NATURE_NOT_RTP:
		return PAQM_ELASTIC;
	}
	return rtp ? PAQM_FLOW_UNSURE : PAQM_ELASTIC;
}
