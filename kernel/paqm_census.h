/* SPDX-License-Identifier: GPL-2.0 */
/* What a walk over the flow table finds, flow by flow and host by host; paqm_census.c. */
#ifndef PAQM_CENSUS_H
#define PAQM_CENSUS_H

#include <linux/types.h>
#include "core/paqm_maxmin.h"
#include "paqm_flows.h"

/* tau1 takes at most half of the default period: what it leaves has to count, however late */
#define PAQM_WINDOW_MIN_NS (120 * NSEC_PER_MSEC)

/**
 * struct paqm_top - the busiest media flows of a round, fastest first
 * @n: how many
 * @flow: they
 */
struct paqm_top {
	u32 n;
	struct paqm_top_flow {
		struct paqm_tuple tuple;
		u64 rate;
		u32 told;
		u32 told_tick;
		u32 last_tick;
		u32 drop;
		u32 tag;
		u32 lost;
		u32 marked;
		u16 over;
		u16 deaf;
		u16 host;
		u8 hears;
		u8 every;
	} flow[PAQM_TOP_FLOWS];
};

#define PAQM_HOSTS 4096 /* distinguished by a keyed hash */
#define PAQM_PART_ONE 256 /* a host by its flow, where that is its only one: Q8 */

/* Whose address is a host's. */
enum paqm_side {
	PAQM_SIDE_SOURCE,
	PAQM_SIDE_DESTINATION,
	PAQM_SIDES,
	PAQM_SIDE_NONE = PAQM_SIDES, /* there is one only: flows are equal */
};

/**
 * struct paqm_host - a host with media flows that are known
 * @rate: what they send together, bit/s
 * @held: what is held for them together, bit/s
 * @told: what they were told together, bit/s
 * @limited: what those of them send that use less than an equal part of the host's rate
 * @n_limited: how many are limited
 * @seen: how many there are, in the walk
 * @grows: one of them is taken for one that grows
 * @joins: it has none yet, but newcomers
 * @then: @parts at the end of the last period
 * @high: the highest of it since the one before
 * @parts: rate of the host by that of each of its flows, Q8
 * @low: the lowest of it since the last period but one: no flow is beyond its rate before it knows
 * @flows: how many share its rate
 * @due: when the bucket of all of them is full again
 * @used_tick: when that was last looked at
 *
 * The datapath reads @parts to @flows, which the outer loop publishes, and owns what follows.
 */
struct paqm_host {
	u64 rate;
	u64 held;
	u64 told;
	u64 limited;
	u32 n_limited;
	u32 seen;
	bool grows;
	bool joins;
	u32 then;
	u32 high;
	u32 parts;
	u32 low;
	u32 flows;
	u32 due;
	u32 used_tick;
};

/**
 * struct paqm_host_over - overflow queues of the flows of such a host, which share one turn in the
 * round robin; the datapath owns it
 * @served: those that have their place there
 * @busy: those that hold packets
 * @last: the one that a packet joined last
 */
struct paqm_host_over {
	u16 served;
	u16 busy;
	u16 last;
};

/**
 * struct paqm_hosts - hosts that are equal, whatever number of flows each has
 * @side: of the media flows' addresses, the one by which hosts are told apart
 * @flows: media flows that are known, by the hash of their host; for both sides
 * @elastic: hosts of elastic flows, the same
 * @host: those of media, on that side
 * @over: their overflow queues; these outlive a change of @side and of `weights`
 */
struct paqm_hosts {
	enum paqm_side side;
	u32 flows[PAQM_SIDES][PAQM_HOSTS];
	DECLARE_BITMAP(elastic[PAQM_SIDES], PAQM_HOSTS);
	struct paqm_host host[PAQM_HOSTS];
	struct paqm_host_over over[PAQM_HOSTS];
};

/**
 * struct paqm_census - what one walk over the table found
 * @mm: media flows that are known, for the water-filling
 * @left_tag: which flow was counted as @left last, or would have been; kept from walk to walk
 * @media: active media flows
 * @sending: those that send right now: who has left still counts in @media for half a second
 * @takers: those among whom capacity is divided: flows that are known, or their hosts
 * @newcomers: those that are not known yet
 * @joining: takers that these will be: where hosts are equal, those that are not known
 * @rare: those that came before, and ended unmeasured, within the longest pause
 * @proven: newcomers that became known in this walk
 * @passed: newcomers that went before they were
 * @stayed: flows that have sent more than they were told, not young any more since this walk
 * @left: those that left while they were
 * @young: those that are, and send
 * @deaf: flows that send more than they were told
 * @deaf_q16: the same, a flow of a host with several counting as its part of that
 * @follow_q16: flows that use what they were told, and no more; likewise
 * @follow_rate: what those send together, bit/s
 * @held: what is held for flows that use less than they were told, beyond what they use, bit/s
 * @heavy: flows that send a quarter of the fair rate or more
 * @elastic: active elastic flows that are more than mice
 * @elastic_q16: the same, one that uses less than its part counting with what it uses
 * @greedy: those that count in full
 * @leaves: ticks until the first of those has left, if no packet of it comes
 * @present: all active elastic flows
 * @crowd: all elastic flows that are more than a trickle, also those that send now and then
 * @used: slots in use
 * @policed: flows with a drop probability
 * @top: the fastest media flows
 */
struct paqm_census {
	struct paqm_mm mm;
	struct paqm_top top;
	u32 left_tag;
	u32 media;
	u32 sending;
	u32 takers;
	u32 newcomers;
	u32 joining;
	u32 rare;
	u32 proven;
	u32 passed;
	u32 stayed;
	u32 left;
	u32 young;
	u32 deaf;
	u64 deaf_q16;
	u64 follow_q16;
	u64 follow_rate;
	u64 held;
	u32 heavy;
	u32 elastic;
	u64 elastic_q16;
	u32 greedy;
	u32 leaves;
	u32 present;
	u32 crowd;
	u32 used;
	u32 policed;
};

/**
 * struct paqm_walk - how to measure during a walk
 * @now_tick: time
 * @window_ns: since the marks were set
 * @window_min_ns: a shorter one says nothing
 * @grain: rate of some full packets in the window: less is chance, bit/s
 * @fair: rate that media flows may send since the window began, bit/s; 0 before the first
 *	round. Where it changed meanwhile, the lowest: no flow could rely on more
 * @fair_least: the lowest in the last second, without trim: its answer may still be arriving
 * @fair_most: the highest since the window began
 * @equal: capacity divided by all flows, bit/s
 * @fair_new: what newcomers were told, bit/s
 * @answer_ticks: until what flows were told shows in what they send
 * @link_q24: rate without trim on the link, by the one that messages say; 0: there are none
 * @ip_part: struct paqm_sched_data's
 * @elastic_each: what an elastic flow may use, bit/s, or 0
 * @elastic_ticks: an elastic flow that was silent for longer has left
 * @mouse: elastic flows below this rate are mice, bit/s
 * @cautious: the queue grew: no flow counts as limited by an old measurement
 * @queued: media has waited lately, or some flows find their rate by the queue: who sends less may
 *	do so for that, and come back
 * @police: packets of flows that do not follow may be dropped
 * @overloaded: media is overloaded: policing may begin
 * @crowded: overflow queues hold packets: what a flow has too much, another one lacks
 * @max_every: longest pause between notices, in rounds
 * @hosts: that are to be equal; NULL: flows are
 * @key: of their hash
 * @slow: telling all flows takes more than a period
 * @rotating: most flows that send too much have left young, lately
 * @rare: as in struct paqm_census, of the walk before
 */
struct paqm_walk {
	u32 now_tick;
	u64 window_ns;
	u64 window_min_ns;
	u64 grain;
	u64 fair;
	u64 fair_least;
	u64 fair_most;
	u64 equal;
	u64 fair_new;
	u32 answer_ticks;
	u32 link_q24;
	u32 ip_part;
	u64 elastic_each;
	u32 elastic_ticks;
	u64 mouse;
	bool cautious;
	bool queued;
	bool police;
	bool overloaded;
	bool crowded;
	u32 max_every;
	struct paqm_hosts *hosts;
	const u64 *key;
	bool slow;
	bool rotating;
	u32 rare;
};

/**
 * struct paqm_rotation - do flows that send too much stay?
 * @left_q16: part of them that left young, lately
 * @tick: when there was one last
 */
struct paqm_rotation {
	u32 left_q16;
	u32 tick;
};

/* Is a rate far above @most, the highest that was told? 0: nothing was. */
static inline bool paqm_far_above(u64 rate, u64 most)
{
	return most && rate > most + most / 4;
}

/* What a flow of a host is told of the host's rate. */
static inline u64 paqm_host_part(const struct paqm_host *h, u64 fair)
{
	return paqm_muldiv(fair, PAQM_PART_ONE, max_t(u32, READ_ONCE(h->parts), PAQM_PART_ONE));
}

/* paqm_census.c */
void paqm_flows_mark(struct paqm_flows *t);
void paqm_flows_walk(struct paqm_flows *t, const struct paqm_walk *w, struct paqm_census *c);

/* paqm_gauge.c */
#define PAQM_RATE_UNKNOWN U64_MAX

u16 paqm_flow_turns(const struct paqm_flow_gauge *g, u32 bytes);
void paqm_gauge_open(struct paqm_flow_gauge *g, u32 bytes, u16 turns);
void paqm_gauge_steady(struct paqm_flow_gauge *g);
u64 paqm_gauge_sent(const struct paqm_flow_gauge *g, u32 bytes, u16 turns);
bool paqm_gauge_again(const struct paqm_flow_gauge *g);
bool paqm_gauge_own(const struct paqm_flow_gauge *g);
bool paqm_gauge_silent(struct paqm_flow_gauge *g, u32 silent);
bool paqm_flow_measure(struct paqm_flow_gauge *g, const struct paqm_walk *w, u32 bytes, u16 turns,
		       u32 silent, u64 *now);

/* paqm_heed.c */
u64 paqm_heed_knows(const struct paqm_flow_more *m, const struct paqm_walk *w, u64 fair);
u32 paqm_heed_rare(const struct paqm_flow_gauge *g, struct paqm_flow_more *m);
void paqm_heed_window(struct paqm_flow_gauge *g, struct paqm_flow_more *m, u64 now, u64 most,
		      bool crowded);
bool paqm_heed_strict(const struct paqm_flow_gauge *g, const struct paqm_flow_more *m);

/* paqm_newcomer.c */
u64 paqm_newcomer_window(struct paqm_flow_gauge *g, const struct paqm_walk *w, u64 sent,
			 u32 silent);
bool paqm_newcomer_judge(struct paqm_flow_gauge *g, const struct paqm_walk *w, u32 silent, u32 tag,
			 struct paqm_census *c);
u32 paqm_elastic_patience(const struct paqm_flow_gauge *g, const struct paqm_walk *w,
			  u32 silent);
bool paqm_newcomers_rotate(struct paqm_rotation *r, const struct paqm_census *c, u32 now_tick,
			   u32 period_ticks, bool whole);

/* paqm_hosts.c */
void paqm_hosts_clear(struct paqm_hosts *h);
u32 paqm_hosts_elastic(const struct paqm_hosts *h);
u32 paqm_host_place(const struct paqm_tuple *t, enum paqm_side side, const u64 *key);
enum paqm_side paqm_hosts_side(u32 sources, u32 destinations, enum paqm_side before);
bool paqm_host_joins(const struct paqm_flow_more *m, const struct paqm_walk *w);
void paqm_host_elastic(const struct paqm_walk *w, const struct paqm_tuple *t);
void paqm_hosts_divide(struct paqm_hosts *hosts, u64 fair, bool whole);

#endif /* PAQM_CENSUS_H */
