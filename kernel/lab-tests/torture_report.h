/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the torture test counts, notes and reports; see torture_report.c.
 */
#ifndef TORTURE_REPORT_H
#define TORTURE_REPORT_H

#include <stdbool.h>
#include <stdint.h>

enum op {
	OP_ADD,
	OP_CHANGE,
	OP_DELETE,
	OP_GRAFT,
	OP_CLASS_ADD,
	OP_CLASS_DELETE,
	OP_FILTER_ADD,
	OP_FILTER_DELETE,
	OP_DUMP,
	OP_GET,
	OP_MTU,
	OP_UPDOWN,
	OP_QUEUE_LENGTH,
	OP_OFFLOADS,
	OP_DEVICE,
	OP_UNLOAD,
	OPS
};

/* Figures of all epochs, shared with the processes that run them. */
struct figures {
	uint64_t tried[OPS], taken[OPS], unanswered;
	uint64_t paqm_tried, paqm_taken;
	uint64_t faults_armed, faults_hit;
	uint64_t frames, refused, datagrams, stream_bytes;
	uint64_t foreign; /* queues that stay, with no paqm in them */
	uint64_t drains, looks, paqm_seen, queued_seen, with_child, most_qdiscs;
	uint64_t media_bytes, elastic_bytes, notices, drops;
	uint64_t ops;
};

extern struct figures *fig;

/* What the command line says. */
struct arguments {
	uint64_t seed, ops;
	uint32_t first;
	const char *modules;
	bool verbose;
	uint32_t each; /* epoch from which on counters are looked at after every operation */
	uint32_t beside; /* processes that send all the time, for machines with several processors */
};

extern struct arguments args;
extern uint32_t epoch, op_number;
extern const char *test_name;
extern void (*fault_state)(void); /* prints what there is, with a fault */

void __attribute__((format(printf, 1, 2))) note(const char *format, ...);
void __attribute__((noreturn, format(printf, 1, 2))) fail(const char *format, ...);
void sleep_us(uint64_t us);
void kmsg_open(void);
void kmsg_check(void);
void leaks_check(void);

#endif /* TORTURE_REPORT_H */
