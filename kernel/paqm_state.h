/* SPDX-License-Identifier: GPL-2.0 */
/*
 * State of one sch_paqm: what it holds, who owns which part, and the packet lists
 * of its two classes.
 */
#ifndef PAQM_STATE_H
#define PAQM_STATE_H

#include <linux/hrtimer.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/prandom.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <net/codel.h>
#include <net/pkt_sched.h>
#include "uapi/linux/pkt_sched_paqm.h"
#include "core/paqm_auto.h"
#include "core/paqm_inband.h"
#include "core/paqm_laws.h"
#include "core/paqm_link.h"
#include "core/paqm_msg.h"
#include "core/paqm_sched.h"
#include "paqm_census.h"
#include "paqm_classify.h"
#include "paqm_count.h"
#include "paqm_feedback.h"
#include "paqm_flows.h"
#include "paqm_fragment.h"
#include "paqm_gso.h"
#include "paqm_options.h"

/**
 * struct paqm_queue - one class; of media the common queue of all flows that conform
 * @head: first packet
 * @tail: last packet
 * @st: counters; written under the qdisc lock, read anywhere
 * @inner: inner loop, owned by the timer; the datapath reads @inner.prob
 * @taken: packets that were put into the list, and have left it or are there; those
 *	that left it without being sent are taken off again
 * @load: bytes on the link that arrived, as the inner loop sees them: without @policed
 *	and @beyond
 * @policed: bytes on the link that policing dropped
 * @beyond: bytes on the link that arrived beyond the fair rate of their flow
 * @framing: how much more the link counts than the packets of these three have
 * @seen: @load at the last inner period, as much of it as is read at once
 * @sojourn_max: longest sojourn, ns
 * @target: equilibrium backlog N*, bytes
 * @limit: bytes
 * @n: counts of packets, which @st has the low halves of when it is shown
 */
struct paqm_queue {
	struct sk_buff *head;
	struct sk_buff *tail;
	struct paqm_inner_vars inner;
	u32 taken;
	u64 load;
	u64 policed;
	u64 beyond;
	u64 framing;
	unsigned long seen;
	u64 sojourn_max;
	u32 target;
	u32 limit;
	struct tc_paqm_class_stats st;
	struct tc_paqm_class_counts n;
};

/**
 * struct paqm_flowq - a flow's own queue: what it sends beyond its fair rate, or, in the
 * elastic class, all of it
 * @list: place among those that are served, or among the free ones
 * @head: first packet
 * @tail: last packet
 * @backlog: bytes
 * @deficit: bytes it may still send in this round of the round robin
 * @in: packets that joined, lowest bits
 * @out: packets that left, the same
 * @served: it has its place in the round robin, if only to find that it is empty
 * @patient: its flow is too new to have been told: it needs time, not losses
 * @above: its flow has sent more than it was told for long: what waits is no picture
 * @strangers: it is for flows that are not known yet
 * @part: it shares a turn with others: a queue of strangers, or that of a flow whose host is equal
 * @gated: the queue of strangers whose packets leave before it is served, 0: none
 * @codel: its AQM; what it looks at while nothing waits for long is in the first cache line
 * @gate: they do up to this number
 * @host: place in struct paqm_hosts of the host with whose others it shares a turn, plus 1; 0: it
 *	has its own
 * @behind: nor before so many have left the common queue: those in it when this one began
 * @waits: in the list of queues that may have to wait for that
 * @waits_whole: counted there as one that has a turn of its own
 * @since: paqm_bucket_clock() since when it stands, paqm_over_append(); media
 * @tag: flow it belongs to, or the last one where several share it
 * @lost: packets of it that the AQM or its limit dropped
 * @marked: packets of it that were marked CE
 * @due: when the bucket of an elastic flow is full again, paqm_bucket.h
 */
struct paqm_flowq {
	struct list_head list;
	struct sk_buff *head;
	struct sk_buff *tail;
	u32 backlog;
	s32 deficit;
	u16 in;
	u16 out;
	bool served;
	bool patient;
	bool above;
	bool strangers;
	bool part;
	bool waits_whole;
	u8 gated;
	struct codel_vars codel;
	u16 gate;
	u16 host;
	u32 behind;
	u32 since;
	u32 tag;
	u32 lost;
	u32 marked;
	u32 due;
	struct list_head waits;
} ____cacheline_aligned;

/**
 * struct paqm_round - flow queues of a class, served by deficit round robin
 * @ahead: those of elastic flows that take less than their share: served before all others
 * @fresh: those that are to be served first, once
 * @old: the others
 * @codel: parameters of their AQM
 * @codel_drops: those of a queue of media that drops already: what stands there is no picture
 * @stats: what it did
 * @busy: queues with packets
 * @served: those, and those that have been emptied in this round
 * @qlen: packets
 * @backlog: bytes
 * @memory: truesize of the packets
 * @quantum: bytes of a turn
 * @l4s_floor_ns: queue delay from which on ECT(1) is marked
 * @drops: packets that the AQM dropped
 * @marks: packets that were marked CE
 */
struct paqm_round {
	struct list_head ahead;
	struct list_head fresh;
	struct list_head old;
	struct codel_params codel;
	struct codel_params codel_drops; /* interval of 100 ms, codel_params_init() */
	struct codel_stats stats;
	u32 busy;
	u32 served;
	u32 qlen;
	u32 backlog;
	u32 memory;
	u32 quantum;
	u64 l4s_floor_ns;
	u64 drops;
	u64 marks;
};

/* Rates at which buckets fill. */
enum paqm_pace {
	PAQM_PACE_FOLLOW, /* of a flow that follows: what it was told */
	PAQM_PACE_DEAF,	  /* of one that does not: the fair rate */
	PAQM_PACE_NEW,	  /* of all together that are not known yet */
	PAQM_PACE_ONE,	  /* of each of them */
	PAQM_PACES
};

#define PAQM_OVER_HOLD_NS (500 * NSEC_PER_MSEC) /* of a flow's fair rate, at most, */
#define PAQM_OVER_PACKETS 20 /* or this many packets */
#define PAQM_BUCKET_PACKETS 2 /* that a bucket holds at least, and one more fits in always: */
#define PAQM_BUCKET_MOST (PAQM_BUCKET_PACKETS + 1)
#define PAQM_L4S_FLOOR_NS NSEC_PER_MSEC /* ECT(1): queue delay at which marking begins */

/* Overflow queues never get all of media's share, however many there are. */
#define PAQM_OVER_MOST_Q16 (PAQM_Q16_ONE / 16 * 15)

/* Below this hardly a newcomer stays: no rounds for them, and not the common queue. */
#define PAQM_CREDIT_LEAST_Q16 (PAQM_Q16_ONE / 8)

enum paqm_event {
	PAQM_EV_FLOW,	  /* a new media flow */
	PAQM_EV_SPLIT,	  /* the class split changed */
	PAQM_EV_CAPACITY, /* the capacity changed */
	PAQM_EV_QUEUE,	  /* the media queue exceeds 2 N_out */
	PAQM_EVENTS
};

/**
 * struct paqm_asked - what senders said of themselves in a period
 * @trips_us: sum of their round trips, us
 * @trips: how many said one
 * @demand: greatest rate that one could use, bit/s
 */
struct paqm_asked {
	u64 trips_us;
	u32 trips;
	u64 demand;
};

struct paqm_sched_data {
	/* datapath, under the qdisc lock */
	struct paqm_queue queue[PAQM_CLASSES];
	struct Qdisc __rcu *child; /* holds the elastic class's packets; NULL: its own list */
	struct tcf_proto __rcu *filter_list;
	struct tcf_block *block;
	struct paqm_sched sched;
	struct paqm_flows flows;
	struct paqm_rules rules;
	struct paqm_datagram datagram[PAQM_DATAGRAMS]; /* in fragments */
	u8 settled; /* PAQM_SETTLED_* for the rules in force */
	struct paqm_link link;
	bool link_counts; /* the link changes lengths */
	struct psched_ratecfg shaper;
	u64 next_tx; /* ns: the shaper's next departure, */
	u64 tx_mask; /* of paqm_link_time(), */
	u64 tx_part; /* and what of an ns that leaves: paqm_link_time() */
	unsigned long wire_sent; /* bytes on the link, wraps */
	u32 memory; /* truesize of the packets of both queues */
	u32 memory_limit; /* of both queues */
	u32 calm_usual; /* @calm for the capacity that is believed */
	u32 bulk_limit; /* bytes of all queues of elastic flows */
	u32 calm; /* bytes of both queues: as long as there are no more, no length matters */
	u32 overload_bytes; /* 2 N_out */
	u32 limit; /* bytes of both queues */
	struct paqm_cut cut; /* segments of a GSO packet that no parent knows of yet */
	u32 gso_split; /* GSO packets above this length are segmented, bytes */
	u32 gso_look; /* above this length it is looked at whether one is to be */
	u32 small_q8; /* uncounted media: ns of their budget per byte, Q8 */
	u64 small_due; /* ns: when their budget is used up to */
	u64 control_due; /* ns: the same for the network's own packets */
	u64 small_bytes; /* on the link, of both */

	/* isolation, paqm_isolate.h */
	bool isolate;
	u64 isolate_ns; /* when that was changed */
	u32 pace[PAQM_PACES]; /* paqm_bucket_cost(); 0: no limit */
	u32 bucket_depth;
	u32 owed_most[PAQM_PACES]; /* paqm_bucket_owe() */
	u32 bulk_cost; /* buckets of elastic flows: paqm_bucket_cost(), */
	u32 bulk_depth; /* and paqm_bucket_depth(); */
	u32 bulk_cost_all; /* the same of one for all of them */
	u32 bulk_depth_all;
	u32 bulk_due; /* when that is full again */
	bool alone_ahead; /* what joined the empty elastic class last keeps to these */
	u32 stranger_due;
	u64 stranger_ns;
	u64 stranger_bytes; /* on the link */
	struct paqm_round drr[PAQM_CLASSES]; /* overflow queues; queues of elastic flows */
	struct paqm_flowq *flowq; /* those, then these */
	struct list_head over_free;
	struct paqm_hosts *hosts; /* once `weights host` was asked for */
	struct paqm_sched inside; /* between the common queue and these */
	u32 over_part; /* a flow's part of the media share, Q16 */
	u32 over_part_new; /* that of strangers */
	u32 over_limit; /* bytes of one */
	u32 over_gated; /* queues that are not served yet */
	u32 strangers_busy; /* queues of strangers that hold packets */
	u32 strangers_served; /* those that have their place in the round robin */
	u32 parts_served; /* these, and those of hosts that share a turn */
	u32 siblings_busy; /* queues of hosts that hold packets, but for one of each host */
	u32 strangers_memory; /* truesize of their packets */
	u32 strangers_backlog; /* bytes of them */
	struct list_head over_waiting; /* those that @behind may hold back, by that */
	u32 over_waits; /* how many, */
	u32 over_waits_whole; /* and how many of them have a turn of their own */
	u32 over_memory_limit;
	u32 preview_seen; /* the @preview_from that @preview_due is for */
	u32 preview_due; /* paqm_bucket_clock() until when they have had what they may have */
	u32 common_cut; /* packets that left the common queue as its limit fell */
	u64 over_purged; /* packets that were thrown away in a reset */
	u64 over_full;
	u64 over_strangers;
	u64 over_sent;
	u64 over_sojourn_ns;
	u64 over_hist[PAQM_HIST_BINS];
	u64 not_ip;
	u64 tagged;
	u64 tunnel;
	u64 fragment;
	u64 dscp;
	u64 small;
	u64 control;
	u64 small_over;
	u64 unsure;
	u64 filter_drop;
	u64 filter_taken;
	u32 overload;
	u64 overload_ns;
	u64 overload_since;
	struct rnd_state rnd; /* draws of a qdisc with a seed */
	u64 notices_owed;
	u64 notices_unfit;
	u64 stamped[4]; /* packets by enum paqm_stamp */
	u64 long_since; /* ns: when the media queue came above 2 N_out; 0: it is short again */
	u64 burst_ns; /* for how long it was, lately, where that was soon over */
	bool overloaded; /* it has been for a while */
	bool awake; /* timer and outer loop run */
	bool elastic_awake; /* its next packet is no event */
	u32 elastic_last; /* when the last elastic packet came, paqm_flow_clock() */
	u64 elastic_since; /* ns: when elastic flows' queues were empty last, and got a packet */
	u64 elastic_busy_ns; /* for how long in sum they held some, until they were empty last */
	bool stalled; /* the child held back all there was: no credit for the shaper */
	u64 idle_since;
	u64 idle_ns;
	struct qdisc_watchdog watchdog;
	struct paqm_fb *fb;
	bool tell; /* by notices */
	bool stamp; /* by rates in media packets */
	struct paqm_msg advice; /* what notices say */
	struct paqm_each each; /* and, by some laws, to a flow whose rate is known */
	u8 said; /* in supplements, enum paqm_said; 0: the law does not ask */
	struct paqm_asked asked; /* what senders say in this period */
	struct paqm_field field; /* the same for media packets */
	u32 round; /* notice round, 0: none yet */
	u16 notice_turn; /* rounds, 1 or more: flows that were told since wait for the others, */
	bool notice_missed; /* one that has had to wait for longer found no room in this round */
	u32 max_every; /* most rounds between two notices to a flow */
	u32 notice_gap_ns; /* between two notices, in the long run */
	u32 crowd_ticks; /* where telling all flows takes long: how long, else 0 */
	u64 notice_due; /* ns: when the next may be taken */
	u32 due_flows[2]; /* media flows due in rounds: those to tell; outside `feedback-to` */
	u32 due_flows_then[2]; /* the same when it was looked at last */
	u32 outside_q16; /* part of media flows that are not to be told, Q16 */
	unsigned long events; /* bits of enum paqm_event, set by anyone */

	/* bandwidth auto: the meter under the qdisc lock, the estimate by its timer */
	struct paqm_meter meter;
	struct hrtimer auto_timer;
	struct paqm_auto_vars estimate;
	u64 auto_capacity; /* bit/s, published by the timer */
	u64 auto_usual; /* bit/s, what the link mostly does */
	u32 auto_headroom; /* Q24, part of the capacity to leave unused */
	u32 auto_allowed; /* bytes, a media queue as it should be for 96 % of the time */
	u64 auto_limit; /* bit/s, most that the device can do */

	/* inner loop */
	struct hrtimer inner_timer;
	u64 inner_stamp;
	u32 interval_ns;
	u32 interval_seen; /* that the filtered rates are for */
	u32 gamma;
	u32 slips;
	unsigned long sent_seen; /* @wire_sent at the last inner period */
	u64 moved_q24; /* bytes per period that the busy link moves, 0: it is not busy */
	u32 pause_ns; /* for how long it has stood still of late */
	bool pauses; /* it does so now */
	u32 guard_bytes; /* a queue below this is no queue */
	bool over_stands; /* overflow queues were never seen empty since the last preview */
	bool preview_again; /* nor between the last two: it is a longer one */
	u8 preview_vain; /* score of those that did not help */
	u8 preview_rest; /* so many half seconds go by without one */
	u32 preview_slot; /* the half second that it is */

	/* published to the datapath by the outer loop */
	u32 share_now; /* media share the scheduler uses, Q16 */
	u32 share_next; /* share announced to the senders */
	u64 share_due; /* ns: when share_next takes effect; 0: it has */
	u64 share_first; /* ns: when the pending transfer was announced */
	u32 share_from; /* part of the link that media used then, Q16 */
	u32 share_low; /* where the last fall was when it ended, and when that was, ns */
	u64 share_low_ns;
	u32 preview_from; /* paqm_bucket_clock() when a preview began; 0: there is none */
	u32 pace_next[PAQM_PACES]; /* what buckets fill with from @pace_due on */
	u32 depth_next;
	u32 depth_wide; /* in force, but while the common queue stands */
	u32 depth_packet; /* then */
	u32 pace_base; /* as @pace_next, of a flow that follows: the fair rate without trim */
	u32 pace_wide; /* in force for these, but while the common queue stands */
	u32 pace_narrow; /* then */
	u32 stands_bytes; /* a common queue of more stands */
	u64 pace_due; /* ns; 0: they do already */
	u64 pace_first; /* ns: when the pending fall was announced */

	/* outer loop, under ctl_lock */
	struct mutex ctl_lock;
	struct work_struct outer_work;
	struct hrtimer outer_timer;
	struct list_head list; /* of all instances, RTNL */
	struct Qdisc *sch;
	struct paqm_config cfg;
	u64 capacity; /* bit/s */
	u32 capacity_source;
	u64 leave_ns; /* when an elastic flow will have left; 0: does not matter */
	u64 round_stamp; /* ns: last round */
	u64 event_stamp; /* ns: last event round */
	u64 mark_stamp; /* ns: beginning of the measuring window; 0: not yet */
	u64 mark_bytes[PAQM_CLASSES];
	u64 mark_sent; /* media bytes and packets sent, for their mean length */
	u64 mark_packets;
	u64 mark_others; /* elastic packets sent */
	struct paqm_law_vars law;
	struct paqm_census census;
	spinlock_t top_lock; /* and prefixes in @cfg; process context only */
	struct paqm_top top;
	struct paqm_fb_rtt rtt; /* to the senders, measured */
	u64 walk_ns; /* time that a walk over the flow table takes */
	u64 fair; /* R in force, bit/s on the wire as the qdisc counts */
	u64 fair_told; /* the same in the last notice round */
	u64 fair_base; /* the same without what senders stay below */
	u64 fair_new; /* what a newcomer is told, bit/s */
	u64 right; /* what a flow may send: R, or more where R is no max-min rate */
	u64 right_low; /* lowest and highest of it since the round before this */
	u64 right_high;
	u64 low_now; /* lowest of it in this half second */
	u64 low_then; /* and in the one before, */
	u64 low_stamp; /* which ended then, ns */
	u64 right_then; /* the same at the last whole round */
	bool steady; /* which hardly changed it */
	bool slow; /* telling all takes more than a period */
	u64 equal; /* capacity divided by all media flows */
	u64 told_new; /* @fair_new as messages say it */
	u32 ip_part; /* of the bytes of media on the link, what IP has; PAQM_IP_ALL: all */
	u32 split; /* media share by what the flows can use, Q16 */
	u32 entitled; /* the same if elastic flows used all that they may */
	u32 even; /* if all flows had the same, by weight; 0: it does not go by demand */
	bool elastic_limited; /* they do not */
	u32 n_elastic_then; /* the most of them, lately */
	u8 elastic_calm; /* periods in which their class was empty for long, see paqm_calm() */
	u8 calm_seen; /* periods since the first of these */
	u32 busy_then; /* part of the last period in which it was not, Q16 */
	u64 mark_busy;
	u64 elastic_wait_ns; /* mean sojourn of theirs in the last window */
	u64 mark_waited;
	u64 mark_media_waited;
	u64 queued; /* mean media queue in the last window, bytes */
	struct paqm_asked asked_then; /* what senders said in the last period */
	u32 newcomers; /* that count in full */
	bool proven; /* some have become known in this period */
	u32 credit_q16; /* part of newcomers that came to stay, lately */
	struct paqm_rotation rotation;
	bool rotating; /* most flows that sent too much have left young, lately */
	u64 stranger_rate;
	u64 stranger_then; /* that of the window before */
	u64 stranger_mean;
	u64 mark_strangers;
	u64 mark_small;
	u64 small_rate; /* of media that is in no flow */
	u64 small_mean;
	u64 outer_rate;
	u64 elastic_rate;
	u64 elastic_mean; /* smoothed: short connections come in bursts */
	u64 elastic_long; /* more, over their pauses */
	u32 trim;
	u64 trim_ns; /* when it began anew */
	u32 mean_len; /* of media packets, bytes */
	u32 n_media;
	u32 n_elastic;
	bool cautious; /* the queue grew, and nothing has been measured since */
	bool middling; /* many flows on a fast link: they even each other out */
	bool large; /* more */
	bool sought; /* some media flows find their rate by the queue */
	bool stood; /* the common queue did since the last period ended; set by the inner timer */
	bool queued_now; /* media waited in the last period: there, or in queues of its flows */
	bool queued_then; /* and in the one before */
	u32 seeking; /* how often some did, lately */
	u32 seeking_mark; /* @over_sent at the last look */
	u32 rtt_us; /* in force */
	u32 period_us; /* in force */
	u32 skip_us; /* in force: tau1 */
	u32 boot;
	u64 created;
	u64 room_bytes; /* that the link could have carried until room_since, ns */
	u64 room_since;
	u32 rounds;
	u32 event_rounds[PAQM_EVENTS];
	u32 ecf_kind[4];
	u32 transfers;
};

/**
 * struct paqm_skb_cb - private part of the control block, 20 bytes at most
 * @enqueued: time of arrival, ns; only for packets in our own lists, a child writes its own
 * @moved: paqm_behind_tags() has moved the network header; only of a packet whose protocol is a
 *	VLAN's, and while it is put into a queue
 */
struct paqm_skb_cb {
	u64 enqueued;
	bool moved;
};

static inline struct paqm_skb_cb *paqm_skb_cb(const struct sk_buff *skb)
{
	qdisc_cb_private_validate(skb, sizeof(struct paqm_skb_cb));
	return (struct paqm_skb_cb *)qdisc_skb_cb(skb)->data;
}

/* 32 bits for a comparison with a drop probability. */
static inline u32 paqm_draw(struct paqm_sched_data *q)
{
	return unlikely(q->cfg.seed) ? prandom_u32_state(&q->rnd) : get_random_u32();
}

/* Bytes per second that messages may have: one of @part of a link of @bps; a few on the slowest. */
static inline u64 paqm_fb_budget(u64 bps, u32 part)
{
	return max(paqm_div64(bps, 8ULL * part), 1000ULL);
}

/* Packets in the list of a class. */
static inline u32 paqm_qlen(const struct paqm_queue *queue)
{
	return READ_ONCE(queue->taken) - (u32)READ_ONCE(queue->st.sent_packets);
}

static __always_inline void paqm_append(struct paqm_sched_data *q, struct paqm_queue *queue,
					struct sk_buff *skb)
{
	if (queue->head)
		queue->tail->next = skb;
	else
		queue->head = skb;
	queue->tail = skb;
	skb->next = NULL;
	q->memory += skb->truesize;
	WRITE_ONCE(queue->taken, queue->taken + 1);
	WRITE_ONCE(queue->st.backlog, queue->st.backlog + qdisc_pkt_len(skb));
}

static __always_inline struct sk_buff *paqm_pop(struct paqm_sched_data *q,
						struct paqm_queue *queue)
{
	struct sk_buff *skb = queue->head;

	queue->head = skb->next;
	skb_mark_not_on_list(skb);
	q->memory -= skb->truesize;
	WRITE_ONCE(queue->st.backlog, queue->st.backlog - qdisc_pkt_len(skb));
	return skb;
}

/* Bytes, headers included; a device may name any MTU, and 0. */
static inline u32 paqm_longest_packet(const struct paqm_sched_data *q)
{
	return clamp_t(u32, psched_mtu(qdisc_dev(q->sch)), 64, 65535);
}

/* Is the fair rate divided by what flows use? Laws that measure the aggregate know no flow. */
static inline bool paqm_by_demands(const struct paqm_sched_data *q)
{
	return !paqm_law_of(q->cfg.law)->rate;
}

/*
 * Are all told as a period ends, as published, and not by their next packet? Where each is told
 * another rate, each needs its packet.
 */
static inline bool paqm_in_step(const struct paqm_sched_data *q)
{
	return q->cfg.in_step && !paqm_by_demands(q) && !paqm_law_of(q->cfg.law)->each;
}

#endif /* PAQM_STATE_H */
