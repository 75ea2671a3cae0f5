/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * RL-QoS, the predecessor of P-AQM: every node watches the queue of its adaptive media, tells the
 * nodes before it how loaded it is, and thins what enters the network at it.
 *
 * Source: A. Lie, NTNU 2008:74, Paper A and appendix A. Neither prints the coefficients; those of
 * this file reproduce the published figures (core/tests/test_rlqos.c; docs/rlqos.md).
 *
 * Lengths are packets Q24, loads Q24, probabilities Q32, times ns.
 */
#ifndef PAQM_RLQOS_H
#define PAQM_RLQOS_H

#include "paqm_fix.h"

/* TC1 signals and is reserved, TC2 is adaptive media, TC3 best effort. */
enum paqm_rlqos_class { PAQM_RLQOS_TC1, PAQM_RLQOS_TC2, PAQM_RLQOS_TC3, PAQM_RLQOS_CLASSES };

#define PAQM_RLQOS_LOAD_MAX (16U << 24) /* all is thinned but 10^-7 */
#define PAQM_RLQOS_LEN_MAX 8192		/* packets */
#define PAQM_RLQOS_FORGETS 64		/* samples after which the means are those of the newest */
#define PAQM_RLQOS_OWED_MAX 16		/* packets that are still to be thinned */
#define PAQM_RLQOS_KEEPS 5		/* periods that a neighbour's word counts */
#define PAQM_RLQOS_BURST 15000		/* bytes that TC1 may be ahead of its share or behind */
#define PAQM_RLQOS_FRAME_SETS 512	/* a power of two */
#define PAQM_RLQOS_FRAME_WAYS 4

/**
 * struct paqm_rlqos_params - what a node is told
 * @interval: between two samples
 * @samples: in a period; at its end the probability is computed anew
 * @weight_q24: of the newest sample in both means
 * @k1: packets; the larger, the later a queue counts as loaded
 * @share_q16: of the load downstream that is counted here, k1 there / k2
 * @k3_q16: probabilities up to this count as 0
 */
struct paqm_rlqos_params {
	paqm_u64 interval;
	paqm_u32 samples;
	paqm_u32 weight_q24;
	paqm_u32 k1;
	paqm_u32 share_q16;
	paqm_u32 k3_q16;
};

/**
 * struct paqm_rlqos - state of a node
 * @next: when the next sample is due
 * @taken: samples of this period
 * @last: newest sample, packets
 * @mean: of the length
 * @growth: mean of its change between samples
 * @load: of the last period
 * @down: load of the node downstream, as it said
 * @down_until: when that is forgotten
 * @probability: of thinning
 * @owed: packets that were spared for their frame's sake
 */
struct paqm_rlqos {
	paqm_u64 next;
	paqm_u32 taken;
	paqm_u32 last;
	paqm_s64 mean;
	paqm_s64 growth;
	paqm_u32 load;
	paqm_u32 down;
	paqm_u64 down_until;
	paqm_u32 probability;
	paqm_u32 owed;
};

static inline void paqm_rlqos_start(struct paqm_rlqos *v, const struct paqm_rlqos_params *p,
				    paqm_u64 now)
{
	*v = (struct paqm_rlqos){.next = now + p->interval};
}

/**
 * paqm_rlqos_probability() - 1 - exp(-load)
 * @load: Q24, at most PAQM_RLQOS_LOAD_MAX
 *
 * Return: Q32, within 2^-29.
 */
static inline paqm_u32 paqm_rlqos_probability(paqm_u32 load)
{
	/* exp(-2^i) in Q32, from i = 4 down to -24 */
	static const paqm_u32 factor[] = {
		483,	    1440801,	78665070,   581260615,	1580030169, 2605029347,
		3344923893, 3790295335, 4034748382, 4162825044, 4228380000, 4261543595,
		4278222805, 4286586875, 4290775039, 4292870656, 4293918848, 4294443040,
		4294705160, 4294836226, 4294901760, 4294934528, 4294950912, 4294959104,
		4294963200, 4294965248, 4294966272, 4294966784, 4294967040,
	};
	paqm_u64 left = 1ULL << 32;
	paqm_u32 i;

	for (i = 0; i < sizeof(factor) / sizeof(factor[0]); i++)
		if (load >> (28 - i) & 1)
			left = (left * factor[i] + (1U << 31)) >> 32;
	return (paqm_u32)paqm_min64((1ULL << 32) - left, PAQM_U32_MAX);
}

/* @mean moves towards @to, both Q24, by a part of the way. */
static inline paqm_s64 paqm_rlqos_mean(paqm_s64 mean, paqm_s64 to, paqm_u32 weight_q24)
{
	return mean + paqm_sdiv64((to - mean) * weight_q24, PAQM_Q24_ONE);
}

/* The end of a period. */
static inline void paqm_rlqos_period(struct paqm_rlqos *v, const struct paqm_rlqos_params *p,
				     paqm_u64 now)
{
	paqm_s64 s = v->mean + v->growth;
	paqm_u64 load;

	v->taken = 0;
	v->load =
		s <= 0 ? 0
		       : (paqm_u32)paqm_min64(paqm_div64((paqm_u64)s, p->k1), PAQM_RLQOS_LOAD_MAX);
	if (now >= v->down_until)
		v->down = 0;
	load = v->load + (((paqm_u64)v->down * p->share_q16) >> 16);
	v->probability = paqm_rlqos_probability((paqm_u32)paqm_min64(load, PAQM_RLQOS_LOAD_MAX));
	if (v->probability <= (paqm_u64)p->k3_q16 << 16)
		v->probability = 0;
}

/**
 * paqm_rlqos_advance() - take all samples that are due
 * @v: state
 * @p: parameters
 * @now: time
 * @len: packets that have waited since the last call
 *
 * To be called before the length changes: what a timer would have seen in between is known.
 */
static inline void paqm_rlqos_advance(struct paqm_rlqos *v, const struct paqm_rlqos_params *p,
				      paqm_u64 now, paqm_u32 len)
{
	paqm_s64 sample = (paqm_s64)(len < PAQM_RLQOS_LEN_MAX ? len : PAQM_RLQOS_LEN_MAX) << 24;
	paqm_u64 due;

	if (now < v->next)
		return;
	due = paqm_div64(now - v->next, p->interval) + 1;
	v->next += due * p->interval;
	if (due > PAQM_RLQOS_FORGETS + p->samples) {
		v->mean = sample;
		v->growth = 0;
		v->last = (paqm_u32)(sample >> 24);
		paqm_rlqos_period(v, p, now);
		return;
	}
	while (due--) {
		v->mean = paqm_rlqos_mean(v->mean, sample, p->weight_q24);
		v->growth = paqm_rlqos_mean(v->growth, sample - ((paqm_s64)v->last << 24),
					    p->weight_q24);
		v->last = (paqm_u32)(sample >> 24);
		if (++v->taken >= p->samples)
			paqm_rlqos_period(v, p, v->next - (due + 1) * p->interval);
	}
}

/**
 * paqm_rlqos_hear() - the node downstream says how loaded it is
 * @v: state
 * @p: parameters
 * @now: time
 * @load: of that node
 */
static inline void paqm_rlqos_hear(struct paqm_rlqos *v, const struct paqm_rlqos_params *p,
				   paqm_u64 now, paqm_u32 load)
{
	v->down = load < PAQM_RLQOS_LOAD_MAX ? load : PAQM_RLQOS_LOAD_MAX;
	v->down_until = now + PAQM_RLQOS_KEEPS * p->interval * p->samples;
}

/**
 * paqm_rlqos_thins() - is a packet that enters the network here dropped?
 * @v: state
 * @random: 32 random bits
 * @hurt: its frame has lost a packet already
 *
 * Such a frame is spared; another one pays instead, so that as much is dropped as should be, where
 * frames are as many as that.
 *
 * Return: whether it is.
 */
static inline int paqm_rlqos_thins(struct paqm_rlqos *v, paqm_u32 random, int hurt)
{
	int wanted = random < v->probability;

	if (!v->probability)
		v->owed = 0;
	if (hurt) {
		v->owed += wanted && v->owed < PAQM_RLQOS_OWED_MAX;
		return 0;
	}
	if (wanted || !v->owed)
		return wanted;
	v->owed--;
	return 1;
}

/**
 * struct paqm_rlqos_frames - frames that have lost a packet, the last ones
 * @tag: of each; 0: none
 * @oldest: of each set, the way that is used next
 */
struct paqm_rlqos_frames {
	paqm_u32 tag[PAQM_RLQOS_FRAME_SETS][PAQM_RLQOS_FRAME_WAYS];
	paqm_u8 oldest[PAQM_RLQOS_FRAME_SETS];
};

/* Has frame @key, a hash of 64 bits, lost a packet? 0 is no frame. */
static inline int paqm_rlqos_hurt(const struct paqm_rlqos_frames *f, paqm_u64 key)
{
	const paqm_u32 *tag = f->tag[(paqm_u32)(key >> 40) % PAQM_RLQOS_FRAME_SETS];
	paqm_u32 want = (paqm_u32)key | 1;
	int i;

	if (!key)
		return 0;
	for (i = 0; i < PAQM_RLQOS_FRAME_WAYS; i++)
		if (tag[i] == want)
			return 1;
	return 0;
}

/* Frame @key loses one. */
static inline void paqm_rlqos_hurts(struct paqm_rlqos_frames *f, paqm_u64 key)
{
	paqm_u32 set = (paqm_u32)(key >> 40) % PAQM_RLQOS_FRAME_SETS;

	if (!key || paqm_rlqos_hurt(f, key))
		return;
	f->tag[set][f->oldest[set]] = (paqm_u32)key | 1;
	f->oldest[set] = (paqm_u8)((f->oldest[set] + 1) % PAQM_RLQOS_FRAME_WAYS);
}

/**
 * paqm_rlqos_next() - whose turn is it?
 * @credit: of TC1, bytes Q16
 * @waits: packets of each class
 *
 * TC1 within its share of the link, then TC2, TC3, and TC1 beyond its share.
 *
 * Return: the class, PAQM_RLQOS_CLASSES if nothing waits.
 */
static inline enum paqm_rlqos_class paqm_rlqos_next(paqm_s64 credit, const paqm_u32 *waits)
{
	if (waits[PAQM_RLQOS_TC1] && credit >= 0)
		return PAQM_RLQOS_TC1;
	if (waits[PAQM_RLQOS_TC2])
		return PAQM_RLQOS_TC2;
	if (waits[PAQM_RLQOS_TC3])
		return PAQM_RLQOS_TC3;
	return waits[PAQM_RLQOS_TC1] ? PAQM_RLQOS_TC1 : PAQM_RLQOS_CLASSES;
}

/* Credit of TC1 after a packet of @len bytes; @share_q16 is its part of all that is sent. */
static inline paqm_s64 paqm_rlqos_credit(paqm_s64 credit, enum paqm_rlqos_class sent, paqm_u32 len,
					 paqm_u32 share_q16)
{
	const paqm_s64 most = (paqm_s64)PAQM_RLQOS_BURST << 16;

	credit += (paqm_s64)len * share_q16;
	if (sent == PAQM_RLQOS_TC1)
		credit -= (paqm_s64)len << 16;
	return credit > most ? most : credit < -most ? -most : credit;
}

#endif /* PAQM_RLQOS_H */
