/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Byte-true sharing of a link between the media queue U and the elastic queue T,
 * weighted by the number of active flows, with a bounded credit that lets media
 * run ahead of bulk (control notes section 5; the published scheduler alternates
 * packets and its author asks for a byte-oriented one).
 *
 * One number describes the state: the lead of media, i.e. the bytes it has had
 * beyond its share of what was served while T was waiting. U goes first while
 * the lead is below the credit, so the credit is a token bucket of rate c_u that
 * is repaid out of media's own share and the long-run split is exact.
 */
#ifndef PAQM_SCHED_H
#define PAQM_SCHED_H

#include "paqm_fix.h"

/**
 * struct paqm_sched - split state
 * @lead: media bytes beyond its share, Q16; negative: media is owed
 * @share_q16: media share of the link, 0..1 in Q16
 * @credit: how far media may run ahead, bytes; at least one packet, or a share
 *	of 0 would never be served
 */
struct paqm_sched {
	paqm_s64 lead;
	paqm_u32 share_q16;
	paqm_u32 credit;
};

/**
 * paqm_idle_for() - has nothing waited for this long?
 * @now: ns
 * @since: ns, when the last packet left; another CPU may have written it after @now was read
 * @least: ns
 *
 * Return: whether it is so.
 */
static inline int paqm_idle_for(paqm_u64 now, paqm_u64 since, paqm_u64 least)
{
	return (paqm_s64)(now - since) >= (paqm_s64)least;
}

/* Is media next? Both queues hold packets. */
static inline int paqm_sched_media_next(const struct paqm_sched *s)
{
	return s->lead < (paqm_s64)paqm_once(s->credit) << 16;
}

/*
 * What media owes after it has sent @bytes while T was empty. That is forgiven slowly: T of a
 * single TCP flow runs dry once per round trip, and a flood would have the credit anew each time,
 * hence half of that flow's share. What media was owed is gone.
 */
static inline paqm_s64 paqm_sched_forgive(const struct paqm_sched *s, paqm_s64 bytes)
{
	paqm_s64 cost = bytes * (PAQM_Q16_ONE - s->share_q16) / 4;

	return s->lead > cost ? s->lead - cost : 0;
}

/**
 * paqm_sched_sent() - account a packet
 * @s: state
 * @media: which class sent it
 * @len: bytes
 * @media_waits: media still has packets
 * @elastic_waits: T had packets waiting when this packet left, or still has
 */
static inline void paqm_sched_sent(struct paqm_sched *s, int media, paqm_u32 len, int media_waits,
				   int elastic_waits)
{
	paqm_s64 bytes = len;

	if (media) {
		if (elastic_waits)
			s->lead += bytes * (PAQM_Q16_ONE - s->share_q16);
		else if (s->lead) /* no one was kept waiting: nothing more is owed */
			s->lead = paqm_sched_forgive(s, bytes);
		return;
	}
	s->lead -= bytes * s->share_q16;
	/* idle media saves nothing up */
	if (!media_waits && s->lead < 0)
		s->lead = 0;
}

/* Bytes of fixed-point media share of @n_media against @n_elastic active flows. */
static inline paqm_u32 paqm_share_q16(paqm_u32 n_media, paqm_u32 n_elastic)
{
	if (!n_media && !n_elastic)
		return PAQM_Q16_ONE / 2;
	return (paqm_u32)paqm_div64(((paqm_u64)n_media << 16) + (n_media + n_elastic) / 2,
				    (paqm_u64)n_media + n_elastic);
}

/**
 * paqm_share_draining() - media share in force while more of it waits than should
 * @share: share that its senders have been offered, Q16
 * @equal: what an equal division among all flows would give it, Q16
 * @excess: bytes that wait beyond its target
 * @period_us: by when they should have left
 * @capacity: of the link, bit/s
 *
 * Flows that wait send less, are believed to want less, and the others are given what they do not
 * use: so their queue would stand. What drains it is taken from what media leaves of an equal
 * division, hence nobody has less than his part.
 *
 * Return: share, Q16; at least @share.
 */
static inline paqm_u32 paqm_share_draining(paqm_u32 share, paqm_u32 equal, paqm_u32 excess,
					   paqm_u32 period_us, paqm_u64 capacity)
{
	paqm_u64 bps = paqm_muldiv((paqm_u64)excess * 8, 1000000, period_us);

	if (share >= equal || !capacity)
		return share;
	return (paqm_u32)paqm_min64(equal, share + paqm_muldiv(bps, PAQM_Q16_ONE, capacity));
}

/**
 * paqm_fifo_waits() - does a packet still wait in a queue?
 * @in: packets that joined it, lowest bits
 * @out: packets that left it, the same; less than 2^16 wait
 * @number: what @in was after that packet had joined
 *
 * A number that is older than the bits can tell is taken for that of one of those that wait,
 * if it is taken for one at all, so nobody waits for a packet that is not there.
 *
 * Return: whether it does.
 */
static inline int paqm_fifo_waits(paqm_u16 in, paqm_u16 out, paqm_u16 number)
{
	return (paqm_u16)(in - number) < (paqm_u16)(in - out);
}

#endif /* PAQM_SCHED_H */
