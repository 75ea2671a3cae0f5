/* SPDX-License-Identifier: GPL-2.0 */
/* What the BPF programs of paqmtop gather for one device, shared with the tool itself. */
#ifndef PAQMTOP_H
#define PAQMTOP_H

#define PAQMTOP_NAME 16
#define PAQMTOP_DEVICES 1024
#define PAQMTOP_EVENTS 4  /* flow, split, capacity, queue */
#define PAQMTOP_CLASSES 2 /* media, elastic */
#define PAQMTOP_REASONS 4 /* tail, inner, strike, mark */

struct paqmtop_device {
	/* the last round of the outer law */
	__u64 router_id;
	__u64 capacity;
	__u64 fair;
	__u64 rate;
	__u64 elastic_rate;
	__u32 seq;
	__u32 backlog;
	__u32 n_media;
	__u32 n_elastic;
	__u32 share_q16;
	/* the last notice */
	__u32 erf; /* binary32 */
	__u32 ecf;
	__u32 pad;
	__u64 heard_ns; /* when the last record came, CLOCK_MONOTONIC */
	/* counters since paqmtop began */
	__u64 rounds;
	__u64 event_rounds[PAQMTOP_EVENTS];
	__u64 notices_queued;
	__u64 notices_ring_full;
	__u64 packets[PAQMTOP_CLASSES][PAQMTOP_REASONS];
	__u64 bytes[PAQMTOP_CLASSES][PAQMTOP_REASONS];
};

/*
 * Records of the tracepoints, as kernel/paqm_trace.h lays them out. A module that DKMS has built
 * carries no BTF to relocate against, so the tool compares these with the format that the running
 * kernel states before it attaches.
 */
struct paqmtop_law {
	__u64 common;
	char dev[PAQMTOP_NAME];
	__u64 router_id;
	__u64 capacity;
	__u64 fair;
	__u64 rate;
	__u64 elastic_rate;
	__u32 seq;
	__u32 events;
	__u32 backlog;
	__u32 n_media;
	__u32 n_elastic;
	__u32 share_q16;
};

struct paqmtop_notice {
	__u64 common;
	char dev[PAQMTOP_NAME];
	__u64 router_id;
	__u64 flow;
	__u32 seq;
	__u32 erf;
	__u32 ecf;
	__u16 sport;
	__u16 dport;
	__u8 family;
	__u8 queued;
};

struct paqmtop_drop {
	__u64 common;
	char dev[PAQMTOP_NAME];
	__u32 class;
	__u32 reason;
	__u32 len;
	__u32 backlog;
	__u32 prob;
};

#endif
