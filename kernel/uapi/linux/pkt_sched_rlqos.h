/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Netlink interface of sch_rlqos, shared by the module, the tc plugin and rlqosd. Fractions of
 * options are Q16 or Q24, loads and lengths Q24, probabilities Q32.
 */
#ifndef __LINUX_PKT_SCHED_RLQOS_H
#define __LINUX_PKT_SCHED_RLQOS_H

#include <linux/types.h>

/* Options, nested in TCA_OPTIONS. */
enum {
	TCA_RLQOS_UNSPEC,
	TCA_RLQOS_PAD,
	TCA_RLQOS_LIMIT,       /* u32 packets of TC2 that wait at most */
	TCA_RLQOS_OTHER_LIMIT, /* u32 the same of TC1 and of TC3 */
	TCA_RLQOS_K1,	       /* u32 packets; 0: by the limit */
	TCA_RLQOS_K3,	       /* u32 Q16, probabilities up to this count as 0 */
	TCA_RLQOS_DOWN_SHARE,  /* u32 Q16, part of the load downstream that counts */
	TCA_RLQOS_WEIGHT,      /* u32 Q24, of the newest sample */
	TCA_RLQOS_INTERVAL,    /* u32 us between two samples */
	TCA_RLQOS_SAMPLES,     /* u32 in a period */
	TCA_RLQOS_TRANSIT,     /* u32 fwmark of packets that are not thinned; 0: none */
	TCA_RLQOS_FRAMES,      /* u32 0/1, no frame loses two packets */
	TCA_RLQOS_TC1,	       /* u64, bit n: DSCP n is TC1 */
	TCA_RLQOS_TC2,	       /* u64, the same */
	TCA_RLQOS_TC1_SHARE,   /* u32 Q16, part of the link in which TC1 goes first */
	TCA_RLQOS_DOWNSTREAM,  /* u32 Q24, load of the node downstream; forgotten after 5 periods */
	__TCA_RLQOS_MAX
};
#define TCA_RLQOS_MAX (__TCA_RLQOS_MAX - 1)

#define RLQOS_HIST_BINS 32

/* Statistics of one class. Counters only grow; all but those of bytes and times count packets. */
struct tc_rlqos_class_stats {
	__u64 arrived;
	__u64 arrived_bytes;
	__u64 sent;
	__u64 sent_bytes;
	__u64 sojourn_ns; /* sum over sent packets */
	__u64 entered;	  /* arrivals that thinning is for */
	__u64 drop_thin;  /* by thinning */
	__u64 drop_limit; /* the queue was full */
	__u64 drop_again; /* of drop_limit: the frame had lost one before */
	__u32 backlog;	  /* bytes */
	__u32 qlen;	  /* packets */
	__u64 hist[RLQOS_HIST_BINS]; /* sojourn times, core/paqm_hist.h */
};

/* TCA_STATS_APP of sch_rlqos. New fields are appended; readers use the length. */
struct tc_rlqos_xstats {
	struct tc_rlqos_class_stats tc1;
	struct tc_rlqos_class_stats tc2;
	struct tc_rlqos_class_stats tc3;
	__s64 mean;	   /* Q24 packets of TC2 */
	__s64 growth;	   /* Q24 packets per sample */
	__u32 load;	   /* Q24, of this node */
	__u32 downstream;  /* Q24, of the next one */
	__u32 probability; /* Q32, of thinning */
	__u32 pad;
	__u64 not_cut; /* GSO packets that could not be segmented, dropped */
};

#endif /* __LINUX_PKT_SCHED_RLQOS_H */
