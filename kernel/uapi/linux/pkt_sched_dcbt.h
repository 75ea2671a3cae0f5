/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Netlink interface of sch_dcbt, shared by the module and the tc plugin. Fractions are Q24
 * (1.0 == 1 << 24), numbers of packets in options Q16, in statistics Q24.
 */
#ifndef __LINUX_PKT_SCHED_DCBT_H
#define __LINUX_PKT_SCHED_DCBT_H

#include <linux/types.h>

/* Options, nested in TCA_OPTIONS. */
enum {
	TCA_DCBT_UNSPEC,
	TCA_DCBT_PAD,
	TCA_DCBT_MODE,		     /* u32 DCBT_MODE_* */
	TCA_DCBT_LIMIT,		     /* u32 packets that wait at most */
	TCA_DCBT_MIN_TH,	     /* u32 Q16 packets, lower threshold of the average */
	TCA_DCBT_MAX_TH,	     /* u32 Q16 packets, upper threshold */
	TCA_DCBT_WEIGHT,	     /* u32 Q24, weight of the newest sample */
	TCA_DCBT_MAX_P,		     /* u32 Q24, drop probability at the upper threshold */
	TCA_DCBT_GENTLE,	     /* u32 0/1 */
	TCA_DCBT_ADAPTIVE,	     /* u32 0/1 */
	TCA_DCBT_ECN,		     /* u32 0/1 */
	TCA_DCBT_SPACING,	     /* u32 DCBT_SPACING_* */
	TCA_DCBT_FORCED,	     /* u32 DCBT_FORCED_* */
	TCA_DCBT_MIN_Q,		     /* u32 packets, fred: a flow's own */
	TCA_DCBT_TAGGED_TH,	     /* u32 Q16 packets, cbt */
	TCA_DCBT_UNTAGGED_TH,    /* u32 Q16 packets, cbt */
	TCA_DCBT_BETA,		     /* u32 Q24, dcbt: allowance of untagged flows */
	TCA_DCBT_CAP,		     /* u32 0/1, dcbt: untagged flows get no more than tagged */
	TCA_DCBT_SWEEP,		     /* u32 us of silence after which a flow is not active */
	TCA_DCBT_FLOWS,		     /* u32, most flows that are counted */
	TCA_DCBT_FLOW_KEY,	     /* u32 DCBT_FLOW_KEY_* */
	TCA_DCBT_TAG,		     /* u64, bit n: UDP with DSCP n is tagged */
	TCA_DCBT_CHIPS,		     /* u32 0/1 */
	TCA_DCBT_CHIPS_SHARE,	     /* u32 Q16, largest part of tagged flows that may cut in */
	__TCA_DCBT_MAX
};
#define TCA_DCBT_MAX (__TCA_DCBT_MAX - 1)

enum {
	DCBT_MODE_RED,
	DCBT_MODE_FRED,
	DCBT_MODE_CBT,
	DCBT_MODE_CBT_TCP,
	DCBT_MODE_DCBT,
	__DCBT_MODE_MAX
};
enum { DCBT_SPACING_WAIT, DCBT_SPACING_UNIFORM, __DCBT_SPACING_MAX };
enum { DCBT_FORCED_RANDOM, DCBT_FORCED_TAIL, __DCBT_FORCED_MAX };
enum { DCBT_FLOW_KEY_TUPLE, DCBT_FLOW_KEY_HOSTS, __DCBT_FLOW_KEY_MAX };

#define DCBT_HIST_BINS 32
#define DCBT_NO_THRESHOLD (~0ULL)

/* Statistics of one class. Counters only grow; all but those of bytes and times count packets. */
struct tc_dcbt_class_stats {
	__u64 arrived;
	__u64 arrived_bytes;
	__u64 sent;
	__u64 sent_bytes;
	__u64 sojourn_ns;     /* sum over sent packets */
	__u64 drop_early;     /* random, by RED or FRED */
	__u64 drop_forced;    /* the average was above the upper threshold */
	__u64 drop_limit;     /* the queue was full */
	__u64 drop_threshold; /* by the threshold of the class */
	__u64 drop_flow;      /* fred: the flow held too much */
	__u64 ecn_mark;
	__u64 cut_in;	      /* put ahead of others by ChIPS */
	__u64 average;	      /* Q24 packets, of what waits */
	__u64 threshold;      /* Q24 packets, now; DCBT_NO_THRESHOLD: none */
	__u32 backlog;	      /* bytes */
	__u32 qlen;	      /* packets */
	__u32 flows;	      /* active ones */
	__u32 pad;
	__u64 hist[DCBT_HIST_BINS]; /* sojourn times, core/paqm_hist.h */
};

/* TCA_STATS_APP of sch_dcbt. New fields are appended; readers use the length. */
struct tc_dcbt_xstats {
	struct tc_dcbt_class_stats tcp;
	struct tc_dcbt_class_stats tagged;
	struct tc_dcbt_class_stats untagged;
	__u64 average;	   /* Q24 packets, that RED goes by */
	__u64 packet_ns;   /* time that a packet takes, measured; idle time is counted in it */
	__u64 flow_missed; /* arrivals of flows for which there was no slot */
	__u64 not_cut;	   /* GSO packets that could not be segmented, dropped */
	__u32 max_p;	   /* Q24, in force */
	__u32 pad;
};

#endif /* __LINUX_PKT_SCHED_DCBT_H */
