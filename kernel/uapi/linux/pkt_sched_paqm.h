/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Netlink interface of sch_paqm, shared by the module and the tc plugin.
 *
 * A header of its own instead of a copy of pkt_sched.h, since a private copy of that
 * one clashes with the system's.
 */
#ifndef __LINUX_PKT_SCHED_PAQM_H
#define __LINUX_PKT_SCHED_PAQM_H

#include <linux/types.h>

/* Options, nested in TCA_OPTIONS. Fractions are Q24 (1.0 == 1 << 24). */
enum {
	TCA_PAQM_UNSPEC,
	TCA_PAQM_PAD,
	TCA_PAQM_BANDWIDTH,	 /* u64 bytes/s; 0: no shaper, capacity from the device;
				  * PAQM_BANDWIDTH_AUTO: no shaper, capacity measured
				  */
	TCA_PAQM_MEDIA_TARGET,	 /* u32 us, N_out of the media queue */
	TCA_PAQM_ELASTIC_TARGET, /* u32 us, N* of the elastic queue */
	TCA_PAQM_LIMIT,		 /* u32 bytes of both queues together; 0: derived */
	TCA_PAQM_INTERVAL,	 /* u32 us, inner period dT; 0: derived */
	TCA_PAQM_GAIN,		 /* u32 Q24, inner gain K */
	TCA_PAQM_GAMMA,		 /* u32 Q24, weight of the newest rate sample; 0: derived */
	TCA_PAQM_ALPHA,		 /* u32 Q24, outer gain of the rate term */
	TCA_PAQM_BETA,		 /* u32 Q24, outer gain of the queue term */
	TCA_PAQM_PERIOD,	 /* u32 us, outer period d */
	TCA_PAQM_RTT,		 /* u32 us, longest RTT between router and sender; 0: measured */
	TCA_PAQM_TARGET_UTIL,	 /* u32 Q24, rho */
	TCA_PAQM_LAW,		 /* u32 PAQM_LAW_* */
	TCA_PAQM_TRANSFER,	 /* u32 us, delay of an announced share transfer */
	TCA_PAQM_CREDIT,	 /* u32 us of the media share */
	TCA_PAQM_MD_FLOOR,	 /* u32 Q24, least ECF factor */
	TCA_PAQM_FORCED_MD,	 /* u32 0/1 */
	TCA_PAQM_AI_HOLD,	 /* u32 0/1 */
	TCA_PAQM_FEEDBACK,	 /* u32 PAQM_FEEDBACK_* */
	TCA_PAQM_CLASSIFY,	 /* u32 PAQM_CLASSIFY_* */
	TCA_PAQM_FLOWS,		 /* u32 slots of the flow table; living flows move */
	TCA_PAQM_ECN,		 /* u32 0/1 */
	TCA_PAQM_POLICE,	 /* u32 0/1 */
	TCA_PAQM_ROUTER_ID,	 /* u64; random unless given */
	TCA_PAQM_OVERHEAD,	 /* s32 bytes that the link adds to every packet */
	TCA_PAQM_MPU,		 /* u32 bytes, least size of a packet on the link */
	TCA_PAQM_LINKLAYER,	 /* u32 PAQM_LINK_* */
	TCA_PAQM_MEDIA_TARGET_BYTES,   /* u32; takes precedence over the time; 0: time */
	TCA_PAQM_ELASTIC_TARGET_BYTES, /* u32; the same */
	TCA_PAQM_MEDIA_LIMIT,	 /* u32 bytes of the media queue; 0: derived */
	TCA_PAQM_ELASTIC_LIMIT,	 /* u32 bytes of the elastic queue; 0: derived */
	TCA_PAQM_GOP,		 /* u32 us that senders take to answer; 0: not known */
	TCA_PAQM_FEEDBACK_TO,	 /* struct tc_paqm_prefix[]; empty: anywhere */
	TCA_PAQM_DSCP_MEDIA,	 /* u64, bit n: DSCP n is media */
	TCA_PAQM_DSCP_ELASTIC,	 /* u64, bit n: DSCP n is elastic */
	TCA_PAQM_FLOW_AGE,	 /* u32 us after which a silent flow's slot may be taken */
	TCA_PAQM_MEDIA_WEIGHT,	 /* u32, a media flow counts as this many */
	TCA_PAQM_ELASTIC_WEIGHT, /* u32, an elastic flow counts as this many */
	TCA_PAQM_SPLIT,		 /* u32 Q16, fixed media share; 0: by counted flows */
	TCA_PAQM_BORROW,	 /* u32 0/1: advice includes what elastic leaves idle */
	TCA_PAQM_SEED,		 /* u64, makes hash and draws repeatable; 0: random */
	TCA_PAQM_KEY,		 /* struct tc_paqm_key, makes tags; never shown */
	TCA_PAQM_KEY_ID,	 /* u32, shown only: id of the key in use; 0: none */
	TCA_PAQM_ISOLATE,	 /* u32 0/1: media flows above their fair rate wait apart */
	TCA_PAQM_WEIGHTS,	 /* u32 PAQM_WEIGHTS_* */
	TCA_PAQM_MEDIA_INNER_TARGET, /* u32 bytes, N* of the media queue; 0: derived */
	TCA_PAQM_AI_FACTOR,	 /* u32 Q24, part of an ECF increase that is told */
	TCA_PAQM_ERF_COUNT,	 /* u32 0/1: ERF uses the counted flows and the fastest */
	TCA_PAQM_EVENTS,	 /* u32 0/1: rounds between periods */
	TCA_PAQM_ADAPT_UTIL,	 /* u32 0/1: rho depends on elastic and many flows */
	TCA_PAQM_NOTICE_PART,	 /* u32, messages take at most one such part of the capacity */
	TCA_PAQM_NOTICE_PAUSE,	 /* u32 us, longest between two messages to a deaf flow */
	TCA_PAQM_IN_STEP,	 /* u32 0/1: laws ecf, erf: all are told as a period ends */
	__TCA_PAQM_MAX
};
#define TCA_PAQM_MAX (__TCA_PAQM_MAX - 1)

enum {
	PAQM_LAW_MAXMIN,
	PAQM_LAW_ECF,
	PAQM_LAW_ERF,
	PAQM_LAW_ACP,
	PAQM_LAW_QLBIC,
	PAQM_LAW_RCP,
	PAQM_LAW_XCP,
	PAQM_LAW_VCP,
	__PAQM_LAW_MAX
};
enum {
	PAQM_FEEDBACK_NONE,
	PAQM_FEEDBACK_ICMP,
	PAQM_FEEDBACK_QUENCH,
	PAQM_FEEDBACK_INBAND,
	__PAQM_FEEDBACK_MAX
};
enum { PAQM_CLASSIFY_AUTO, PAQM_CLASSIFY_PROTOCOL, __PAQM_CLASSIFY_MAX };
/* What is equal, and counts in the split: flows, or the hosts that have them. */
enum { PAQM_WEIGHTS_FLOW, PAQM_WEIGHTS_HOST, __PAQM_WEIGHTS_MAX };
enum { PAQM_LINK_ETHERNET, PAQM_LINK_ATM, PAQM_LINK_PTM, __PAQM_LINK_MAX };

/* A prefix that messages may go to. */
struct tc_paqm_prefix {
	__u8 family; /* 4 or 6 */
	__u8 len;    /* bits */
	__u8 pad[2];
	__u8 addr[16]; /* IPv4: the first four bytes */
};

/* Key of the tags in messages. */
#define PAQM_KEY_LEN 16
struct tc_paqm_key {
	__u16 id; /* as messages name it; 0: no key, all the rest is 0 */
	__u8 key[PAQM_KEY_LEN];
};

/* Ends of ranges that limit other things, too; all ranges are in the module's table of options. */
#define PAQM_BANDWIDTH_MAX 100000000000ULL /* bytes/s, 800 Gbit/s */
#define PAQM_BANDWIDTH_AUTO (~0ULL)
#define PAQM_INTERVAL_MIN_US 1000U
#define PAQM_INTERVAL_MAX_US 40000U
#define PAQM_PERIOD_MAX_US 5000000U
#define PAQM_RTT_MIN_US 100U
#define PAQM_RTT_MAX_US 2000000U
#define PAQM_PREFIXES 16

#define PAQM_HIST_BINS 32

/*
 * Statistics of one class. All counters only grow. @hist is the sojourn
 * histogram of core/paqm_hist.h: two bins per octave from 32.8 us to 2.1 s. Alone
 * it is the TCA_STATS_APP of a class; its size is fixed, so there counts have 32
 * bits. While the elastic class holds another qdisc, its sojourn fields and
 * drop_inner, ecn_mark stand still.
 */
struct tc_paqm_class_stats {
	__u64 sent_bytes;
	__u64 sent_packets;
	__u64 arrived_bytes;
	__u64 sojourn_ns;    /* sum over sent packets */
	__u32 backlog;	     /* bytes */
	__u32 qlen;	     /* packets */
	__u32 drop_tail;     /* no room */
	__u32 drop_inner;    /* inner law */
	__u32 drop_strike;   /* policed */
	__u32 ecn_mark;
	__u32 prob;	     /* 1 - u*, Q32 */
	__u32 flows;	     /* counted active flows, n_u or n_t */
	__u32 sojourn_max_us;/* since the last reset */
	__u32 pad;
	__u64 rate;	     /* r, arrival rate seen by the inner loop, bit/s */
	__u64 share;	     /* c_u or c_t, bit/s */
	__u32 hist[PAQM_HIST_BINS];
};

/*
 * Counts of packets, which on a fast link go through 32 bits within minutes. Where the same
 * name stands elsewhere in the statistics it is the low half of what stands here.
 */
struct tc_paqm_class_counts {
	__u64 drop_tail;
	__u64 drop_inner;
	__u64 drop_strike;
	__u64 ecn_mark;
	__u64 hist[PAQM_HIST_BINS];
};

struct tc_paqm_counts {
	struct tc_paqm_class_counts media;
	struct tc_paqm_class_counts elastic;
	__u64 over_hist[PAQM_HIST_BINS];
	__u64 notices_owed;
	__u64 notices_sent;
	__u64 notices_limited;
	__u64 notices_ring;
	__u64 notices_refused;
	__u64 notices_failed;
	__u64 notices_unfit;
	__u64 inband_kept;
	__u64 inband_lowered;
	__u64 inband_left;
	__u64 table_overflow;
	__u64 not_ip;
	__u64 filter_drop;
	__u64 filter_taken;
	__u64 echo_unknown;
	__u64 flows_seen;
	__u64 flows_rtp;
	__u64 flows_not_rtp;
	__u64 packets_unsure;
	__u64 packets_small;
	__u64 packets_small_over;
	__u64 packets_dscp;
	__u64 packets_tagged;
	__u64 packets_tunnel;
	__u64 packets_fragment;
	__u64 packets_control;
	__u64 over_packets;
	__u64 over_strangers;
	__u64 over_drops;
	__u64 over_full;
	__u64 over_marks;
};

/* TCA_STATS_APP of sch_paqm. New fields are appended; readers use the length. */
struct tc_paqm_xstats {
	struct tc_paqm_class_stats media;
	struct tc_paqm_class_stats elastic;
	__u64 router_id;
	__u64 capacity;	     /* bit/s */
	__u64 fair_rate;     /* R of the law in force, bit/s */
	__u64 outer_rate;    /* measured aggregate of the last period, bit/s */
	__u64 erf_flows_q16; /* N of the ERF law, Q16 */
	__u64 idle_ns;	     /* time since creation with nothing queued: never congested? */
	__u64 uptime_ns;
	__u32 boot;
	__u32 seq;	     /* notice rounds */
	__u32 phi_q16;	     /* elastic fraction n_t / (n_t + n_u) in force */
	__u32 share_q16;     /* media share used by the scheduler now */
	__u32 period_us;     /* d */
	__u32 skip_us;	     /* tau1 */
	__u32 rtt_us;	     /* RTT_max in use */
	__u32 interval_us;   /* dT */
	__u32 trim_q24;
	__u32 ecf;	     /* last ECF value, binary32 */
	__u32 ecf_md;	     /* periods with a decrease, increase, hold */
	__u32 ecf_ai;
	__u32 ecf_hold;
	__u32 rounds;
	__u32 event_flow;    /* event rounds by cause */
	__u32 event_split;
	__u32 event_capacity;
	__u32 event_queue;
	__u32 notices_owed;  /* taken from packets */
	__u32 notices_sent;
	__u32 notices_limited; /* token bucket */
	__u32 notices_ring;  /* ring full */
	__u32 notices_refused; /* martian, multicast, fragment, option */
	__u32 notices_failed; /* no route or memory */
	__u32 table_slots;
	__u32 table_used;
	__u32 table_overflow; /* packets whose flow found no slot */
	__u32 timer_slips;   /* inner periods that came late by more than dT */
	__u32 overload;	     /* episodes with the media queue above 2 N_out */
	__u32 transfers;     /* announced share transfers */
	__u32 strikes;	     /* flows being policed now */
	__u32 not_ip;	     /* packets that are neither IPv4 nor IPv6 */
	__u32 filter_drop;   /* packets that a filter dropped */
	__u32 filter_taken;  /* packets that a filter took: stolen, trapped, queued elsewhere */
	__u32 capacity_source; /* PAQM_CAPACITY_* */
	__u32 rtt_mean_us;   /* measured to media senders; 0: none measured */
	__u32 rtt_max_us;
	__u32 rtt_samples;   /* senders that answered lately */
	__u32 echo_sent;     /* echo requests */
	__u32 echo_answered;
	__u32 echo_limited;  /* not sent: budget */
	__u32 echo_unknown;  /* replies that match no request */
	__u32 flows_seen;    /* flows that were given a slot */
	__u32 flows_rtp;     /* flows recognised by their RTP sequence */
	__u32 flows_not_rtp; /* flows that began like RTP and were none */
	__u32 packets_unsure; /* media for now: the flow is not recognised yet */
	__u32 packets_small; /* uncounted media: requests, control, ICMP */
	__u32 packets_small_over; /* the same beyond their budget: served as elastic */
	__u32 packets_dscp;  /* class by DSCP */
	__u32 packets_tagged; /* VLAN, MPLS or PPPoE inside the packet */
	__u32 packets_tunnel; /* tunnels, told by port or protocol: the outer flow counts */
	__u32 packets_fragment; /* non-first fragments */
	__u64 overload_ns;   /* time with the media queue above 2 N_out */
	__u32 echo_late;     /* answers that came when they were no longer waited for */
	__u32 echo_refused;  /* not sent: the source may not be answered any more */
	__u32 echo_failed;   /* not sent: no route or memory */
	__u32 headroom_q16;  /* bandwidth auto: part of the capacity that is not offered */
	__u32 notices_unfit; /* packets of flows owed a notice that none may quote */
	__u32 inband_kept;   /* rates found in media packets that were not above ours */
	__u32 inband_lowered; /* those that were */
	__u32 inband_left;   /* the same in packets that cannot be written to */
	__u32 over_queues;   /* overflow queues with packets now */
	__u32 over_packets;  /* beyond the fair rate of their flow */
	__u32 over_strangers; /* of them: of flows not known yet */
	__u32 over_drops;    /* dropped by the AQM of their overflow queue */
	__u32 over_full;     /* dropped as there was no room in it */
	__u32 over_marks;    /* marked CE there */
	__u32 over_qlen;
	__u32 over_backlog;  /* bytes */
	__u32 flows_deaf;    /* media flows that send more than they were told */
	__u64 over_sent;     /* packets */
	__u64 over_sojourn_ns; /* sum over these */
	__u32 over_hist[PAQM_HIST_BINS];
	__u32 flows_new;     /* media flows not known yet */
	__u32 newcomers_q16; /* part of those before that came to stay */
	__u32 packets_control; /* the network's own: ARP, neighbour discovery, routing */
	__u32 pad;
	struct tc_paqm_counts counts;
	__u64 room_bytes;    /* what the link could have carried since creation */
};

/* Where the capacity in struct tc_paqm_xstats comes from. */
enum { PAQM_CAPACITY_GIVEN, PAQM_CAPACITY_DEVICE, PAQM_CAPACITY_GUESS, PAQM_CAPACITY_MEASURED };

/*
 * TCA_STATS_APP of the pseudo classes X:101, X:102, ...: the busiest media flows of the
 * last round, the fastest first. They can be shown, not changed.
 */
#define PAQM_TOP_FLOWS 16
#define PAQM_TOP_MINOR 0x101
struct tc_paqm_flow_stats {
	__u8 family;	     /* 4, 6 */
	__u8 proto;
	__be16 sport;
	__be16 dport;
	__u16 strikes;	     /* rounds above 1.25 times what it was told; halved by one within it */
	__u8 saddr[16];	     /* IPv4: the first four bytes */
	__u8 daddr[16];
	__u64 rate;	     /* measured, bit/s on the wire */
	__u64 share;	     /* fair rate, bit/s on the wire */
	__u64 told;	     /* rate in the last message to it, bit/s on the IP layer; 0: none */
	__u32 told_ms;	     /* how long ago */
	__u32 idle_ms;	     /* since its last packet */
	__u32 drop;	     /* drop probability by policing, Q32 */
	__u32 hears;	     /* PAQM_HEARS_* */
	__u32 lost;	     /* packets beyond its fair rate that were dropped */
	__u32 marked;	     /* the same, marked CE */
	__u32 waiting;	     /* bytes in its overflow queue */
	__u32 pad;
};

/* By what a media flow may know its fair rate, and whether it keeps to it. */
#define PAQM_HEARS_MESSAGE 1
#define PAQM_HEARS_INBAND 2
#define PAQM_HEARS_MARK 4  /* ECN-capable */
#define PAQM_HEARS_LOSS 8
#define PAQM_FOLLOWS 16

#endif /* __LINUX_PKT_SCHED_PAQM_H */
