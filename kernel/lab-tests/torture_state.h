/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the torture test knows of the kernel; see torture_state.c.
 */
#ifndef TORTURE_STATE_H
#define TORTURE_STATE_H

#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "../uapi/linux/pkt_sched_paqm.h"

enum { D_VETH, D_DUMMY, D_MULTI, D_IFB, D_PAIR0, D_PAIR1, D_VLAN, DEVICES };

struct device {
	const char *name;
	uint32_t index, mtu;
};

extern struct device devs[DEVICES];

/* A qdisc as the last look found it. */
struct qdisc {
	char kind[16];
	uint32_t ifindex, handle, parent, qlen, backlog;
	bool has_xstats;
	struct tc_paqm_xstats x;
};

extern struct qdisc seen[];
extern int seen_count;

void link_begin(uint16_t type, uint16_t flags, uint32_t index);
void device_create(struct device *d, const char *kind, int queues, const char *peer, pid_t pid,
		   uint32_t lower);
int device_up(uint32_t index, bool up);
void address_add(uint32_t index, const char *text);
void devices_create(pid_t peer);
const char *qdisc_name(const struct qdisc *q);
void list_queues(void);
void had_child_set(uint32_t parent);
bool makes_classes(const char *kind);
void look(void);
void check(void);
struct tcmsg *tc_begin(uint16_t type, uint16_t flags, uint32_t ifindex, uint32_t handle,
		       uint32_t parent);
void hurry(void);
void drain(void);
void modules_insert(void);
void modules_remove(void);

#endif /* TORTURE_STATE_H */
