// SPDX-License-Identifier: GPL-2.0
/*
 * What the torture test knows of the kernel: the devices, the qdiscs that it has, what must
 * hold for their counters, the modules.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/gen_stats.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/veth.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "torture_beside.h"
#include "torture_nl.h"
#include "torture_report.h"
#include "torture_state.h"
#include "torture_traffic.h"

#define DRAIN_MS 900000
#define MAX_QDISCS 512

/* --------------------------------------------------------------------- devices */

struct device devs[DEVICES] = {{.name = "v0"}, {.name = "d0"}, {.name = "d1"}, {.name = "i0"},
			       {.name = "w0"}, {.name = "w1"}, {.name = "vl0"}};

void link_begin(uint16_t type, uint16_t flags, uint32_t index)
{
	struct ifinfomsg *info = nl_begin(type, flags, sizeof(*info));

	info->ifi_index = index;
}

/* A new device; @peer: name of a veth's other end, in the namespace of @pid unless 0. */
void device_create(struct device *d, const char *kind, int queues, const char *peer, pid_t pid,
		   uint32_t lower)
{
	struct rtattr *info, *data, *end;
	struct ifinfomsg none = {};
	int err;

	link_begin(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, 0);
	nl_str(IFLA_IFNAME, d->name);
	if (lower)
		nl_u32(IFLA_LINK, lower);
	nl_u32(IFLA_NUM_TX_QUEUES, queues);
	nl_u32(IFLA_NUM_RX_QUEUES, queues);
	info = nl_nest(IFLA_LINKINFO);
	nl_str(IFLA_INFO_KIND, kind);
	if (peer || lower) {
		data = nl_nest(IFLA_INFO_DATA);
		if (peer) {
			end = nl_nest(VETH_INFO_PEER);
			memcpy(req.bytes + req.head.nlmsg_len, &none, sizeof(none));
			req.head.nlmsg_len += sizeof(none);
			nl_str(IFLA_IFNAME, peer);
			nl_u32(IFLA_NUM_TX_QUEUES, queues);
			nl_u32(IFLA_NUM_RX_QUEUES, queues);
			if (pid)
				nl_u32(IFLA_NET_NS_PID, pid);
			nl_end(end);
		} else {
			nl_u16(IFLA_VLAN_ID, 10);
		}
		nl_end(data);
	}
	nl_end(info);
	err = nl_talk();
	if (err == EOPNOTSUPP && lower) { /* no VLANs in this kernel */
		device_create(d, "dummy", queues, NULL, 0, 0);
		return;
	}
	if (err)
		fail("cannot make the device %s: %s", d->name, strerror(err));
	d->index = if_nametoindex(d->name);
	d->mtu = 1500;
}

int device_up(uint32_t index, bool up)
{
	struct ifinfomsg *info = nl_begin(RTM_NEWLINK, 0, sizeof(*info));

	info->ifi_index = index;
	info->ifi_change = IFF_UP;
	info->ifi_flags = up ? IFF_UP : 0;
	return nl_talk();
}

void address_add(uint32_t index, const char *text)
{
	struct ifaddrmsg *info = nl_begin(RTM_NEWADDR, NLM_F_CREATE | NLM_F_REPLACE, sizeof(*info));
	uint8_t address[16];
	bool v6 = strchr(text, ':');

	inet_pton(v6 ? AF_INET6 : AF_INET, text, address);
	info->ifa_family = v6 ? AF_INET6 : AF_INET;
	info->ifa_prefixlen = v6 ? 64 : 24;
	info->ifa_index = index;
	nl_attr(IFA_LOCAL, address, v6 ? 16 : 4);
	nl_attr(IFA_ADDRESS, address, v6 ? 16 : 4);
	if (v6)
		nl_u32(IFA_FLAGS, IFA_F_NODAD);
	nl_talk();
}

void devices_create(pid_t peer)
{
	device_create(&devs[D_VETH], "veth", 4, "v1", peer, 0);
	device_create(&devs[D_DUMMY], "dummy", 1, NULL, 0, 0);
	device_create(&devs[D_MULTI], "dummy", 4, NULL, 0, 0);
	device_create(&devs[D_IFB], "ifb", 2, NULL, 0, 0);
	device_create(&devs[D_PAIR0], "veth", 2, "w1", 0, 0);
	devs[D_PAIR1].index = if_nametoindex("w1");
	devs[D_PAIR1].mtu = 1500;
	device_create(&devs[D_VLAN], "vlan", 2, NULL, 0, devs[D_VETH].index);
	for (int i = 0; i < DEVICES; i++)
		device_up(devs[i].index, true);
	address_add(devs[D_VETH].index, "10.0.0.1");
	address_add(devs[D_VETH].index, "fd00::1");
}

/* -------------------------------------------------- what the kernel has, looked at */

struct qdisc seen[MAX_QDISCS];
int seen_count;

/* Attributes, statistics and queue of a listed object of @type. Return: whether it is one. */
static bool take_stats(const struct nlmsghdr *head, uint16_t type, const struct rtattr **attr,
		       const struct rtattr **stats, struct gnet_stats_queue *queue)
{
	const struct tcmsg *tc = NLMSG_DATA(head);

	memset(queue, 0, sizeof(*queue));
	if (head->nlmsg_type != type)
		return false;
	nl_parse(TCA_RTA(tc), NLMSG_PAYLOAD(head, sizeof(*tc)), attr, TCA_MAX);
	if (!attr[TCA_KIND] || !attr[TCA_STATS2])
		return false;
	nl_parse(RTA_DATA(attr[TCA_STATS2]), RTA_PAYLOAD(attr[TCA_STATS2]), stats, TCA_STATS_MAX);
	if (stats[TCA_STATS_QUEUE])
		memcpy(queue, RTA_DATA(stats[TCA_STATS_QUEUE]), sizeof(*queue));
	return true;
}

static void take_qdisc(const struct nlmsghdr *head)
{
	const struct tcmsg *tc = NLMSG_DATA(head);
	const struct rtattr *attr[TCA_MAX + 1], *stats[TCA_STATS_MAX + 1];
	struct qdisc *q = &seen[seen_count];
	struct gnet_stats_queue queue;

	if (seen_count == MAX_QDISCS || tc->tcm_ifindex == 1 ||
	    !take_stats(head, RTM_NEWQDISC, attr, stats, &queue))
		return;
	*q = (struct qdisc){.ifindex = tc->tcm_ifindex,
			    .handle = tc->tcm_handle,
			    .parent = tc->tcm_parent,
			    .qlen = queue.qlen,
			    .backlog = queue.backlog};
	snprintf(q->kind, sizeof(q->kind), "%s", (const char *)RTA_DATA(attr[TCA_KIND]));
	if (!strcmp(q->kind, "paqm") && stats[TCA_STATS_APP]) {
		size_t len = RTA_PAYLOAD(stats[TCA_STATS_APP]);

		q->has_xstats = true;
		memcpy(&q->x, RTA_DATA(stats[TCA_STATS_APP]),
		       len < sizeof(q->x) ? len : sizeof(q->x));
	}
	seen_count++;
}

const char *qdisc_name(const struct qdisc *q)
{
	static char text[4][96];
	static int turn;
	char *out = text[turn++ % 4];

	snprintf(out, sizeof(text[0]), "%s %x: (device %u, parent %x:%x, %u packets, %u bytes)",
		 q->kind, q->handle >> 16, q->ifindex, q->parent >> 16, q->parent & 0xffff, q->qlen,
		 q->backlog);
	return out;
}

static void list_qdiscs(void)
{
	for (int i = 0; i < seen_count; i++) {
		const struct tc_paqm_xstats *x = &seen[i].x;

		printf("# %s", qdisc_name(&seen[i]));
		if (seen[i].has_xstats)
			printf(": media %u packets %u bytes, elastic %u packets %u bytes",
			       x->media.qlen, x->media.backlog, x->elastic.qlen,
			       x->elastic.backlog);
		printf("\n");
	}
}

/* In tc's words, if the host has it. */
static void list_classes(void)
{
	char command[96];

	for (int i = 0; i < DEVICES; i++) {
		fflush(stdout);
		snprintf(command, sizeof(command),
			 "tc -s class show dev %s 2>&1 | sed \"s/^/# %s: /\"", devs[i].name,
			 devs[i].name);
		if (system(command))
			break;
	}
}

/* All qdiscs and classes, to be told with a fault. */
void list_queues(void)
{
	list_qdiscs();
	list_classes();
}

static char problem[512];

static void __attribute__((format(printf, 1, 2))) complain(const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vsnprintf(problem, sizeof(problem), format, list);
	va_end(list);
}

/* Handles below which something was put in this epoch, on whatever device. */
static uint8_t had_child[1 << 16];

void had_child_set(uint32_t parent)
{
	had_child[parent >> 16] = 1;
}

static void check_class(const struct qdisc *q, const struct tc_paqm_class_stats *c,
			const char *name)
{
	/* a child that cuts an offload packet makes a header more for every piece */
	if (c->sent_bytes + c->backlog > c->arrived_bytes && !had_child[q->handle >> 16])
		complain("%s: %s sent %llu and holds %u bytes of %llu that arrived", qdisc_name(q),
			 name, c->sent_bytes, c->backlog, c->arrived_bytes);
	if (c->qlen >= 1U << 31 || !c->qlen != !c->backlog)
		complain("%s: %s holds %u packets of %u bytes", qdisc_name(q), name, c->qlen,
			 c->backlog);
}

/* Kinds whose length is at least that of their children, by packets. */
static bool sums_children(const char *kind)
{
	return strcmp(kind, "mq") && strcmp(kind, "mqprio") && strcmp(kind, "clsact") &&
	       strcmp(kind, "ingress");
}

static void check_qdisc(const struct qdisc *q)
{
	uint32_t own, bytes;

	if (q->qlen >= 1U << 31 || q->backlog >= 1U << 31)
		complain("%s: less than nothing in it", qdisc_name(q));
	if (!q->qlen != !q->backlog)
		complain("%s: packets without bytes or bytes without packets", qdisc_name(q));
	if (q->has_xstats) {
		own = q->x.media.qlen + q->x.elastic.qlen;
		bytes = q->x.media.backlog + q->x.elastic.backlog;
		/* one packet may have been looked at */
		if (own > q->qlen || q->qlen > own + 1 || bytes > q->backlog)
			complain("%s: its classes have %u packets, %u bytes", qdisc_name(q), own,
				 bytes);
		check_class(q, &q->x.media, "media");
		check_class(q, &q->x.elastic, "elastic");
		fig->paqm_seen++;
		fig->queued_seen += !!q->qlen;
	}
	if (!sums_children(q->kind))
		return;
	own = 0;
	for (int i = 0; i < seen_count; i++)
		if (seen[i].ifindex == q->ifindex && seen[i].parent >> 16 == q->handle >> 16 &&
		    seen[i].parent != TC_H_ROOT && &seen[i] != q) {
			own += seen[i].qlen;
			fig->with_child += q->has_xstats;
		}
	if (own > q->qlen)
		complain("%s: its children have %u packets", qdisc_name(q), own);
}

bool makes_classes(const char *kind)
{
	return !strcmp(kind, "drr") || !strcmp(kind, "qfq") || !strcmp(kind, "hfsc") ||
	       !strcmp(kind, "htb");
}

/* Ask for all qdiscs with their statistics. */
void look(void)
{
	int err;

	/* a dump that a change interrupted is incomplete, not wrong: nothing changes here */
	nl_begin(RTM_GETQDISC, 0, sizeof(struct tcmsg));
	seen_count = 0;
	err = nl_dump(take_qdisc);
	if (err)
		fail("the qdiscs cannot be listed: %s", strerror(err));
	fig->looks++;
	if ((uint64_t)seen_count > fig->most_qdiscs)
		fig->most_qdiscs = seen_count;
}

/*
 * A listing is taken without the queue's lock, and may sleep: packets come and go
 * between two of its figures. What is wrong stays wrong when the traffic rests.
 */
void check(void)
{
	bool rested = beside_rests();

	for (int turn = 0; turn < 10; turn++) {
		if (turn == 2) {
			traffic_quiet();
			beside_rest(true);
		}
		if (turn)
			sleep_us(1000 << turn);
		problem[0] = 0;
		look();
		for (int i = 0; i < seen_count; i++)
			check_qdisc(&seen[i]);
		if (!problem[0])
			break;
	}
	if (problem[0])
		fail("%s", problem);
	beside_rest(rested);
	kmsg_check();
}

struct tcmsg *tc_begin(uint16_t type, uint16_t flags, uint32_t ifindex, uint32_t handle,
		       uint32_t parent)
{
	struct tcmsg *tc = nl_begin(type, flags, sizeof(*tc));

	tc->tcm_family = AF_UNSPEC;
	tc->tcm_ifindex = ifindex;
	tc->tcm_handle = handle;
	tc->tcm_parent = parent;
	return tc;
}

/* Shapers are opened: what waits may go. */
void hurry(void)
{
	struct rtattr *nest;

	for (int i = 0; i < seen_count; i++) {
		if (!seen[i].has_xstats)
			continue;
		tc_begin(RTM_NEWQDISC, 0, seen[i].ifindex, seen[i].handle, seen[i].parent);
		nl_str(TCA_KIND, "paqm");
		nest = nl_nest(TCA_OPTIONS);
		nl_u64(TCA_PAQM_BANDWIDTH, 125000000);
		nl_end(nest);
		nl_talk();
	}
}

static uint32_t class_packets;

static void take_class(const struct nlmsghdr *head)
{
	const struct rtattr *attr[TCA_MAX + 1], *stats[TCA_STATS_MAX + 1];
	struct gnet_stats_queue queue;

	if (take_stats(head, RTM_NEWTCLASS, attr, stats, &queue))
		class_packets += queue.qlen;
}

/* What waits in the classes of a qdisc, in the queues of their own that are not listed. */
static uint32_t in_classes(const struct qdisc *q)
{
	class_packets = 0;
	tc_begin(RTM_GETTCLASS, 0, q->ifindex, 0, q->handle);
	nl_dump(take_class);
	return class_packets;
}

/*
 * Is a paqm among what stays: in this qdisc's place, below it, or as what the
 * count of a parent may be left from? hfsc, for one, forgets what it has itself.
 */
static bool holds_paqm(const struct qdisc *q)
{
	uint32_t below = 0;
	bool leaf = true;

	if (q->has_xstats)
		return true;
	for (int i = 0; i < seen_count; i++) {
		if (seen[i].ifindex != q->ifindex || seen[i].parent == TC_H_ROOT ||
		    seen[i].parent >> 16 != q->handle >> 16 || &seen[i] == q)
			continue;
		leaf = false;
		below += seen[i].qlen;
		if (seen[i].qlen && holds_paqm(&seen[i]))
			return true;
	}
	if (makes_classes(q->kind))
		return in_classes(q) != q->qlen;
	return !leaf && below != q->qlen;
}

/* Nothing is sent any more: all queues must run empty. */
void drain(void)
{
	uint64_t waited = 0, step = 10;
	int left = 0;

	traffic_quiet();
	beside_rest(true);
	for (;;) {
		check();
		left = -1;
		for (int i = 0; i < seen_count && left < 0; i++)
			if (seen[i].qlen || seen[i].backlog)
				left = i;
		if (left < 0)
			break;
		if (waited > DRAIN_MS && !holds_paqm(&seen[left])) {
			fig->foreign++;
			tc_begin(RTM_DELQDISC, 0, seen[left].ifindex, 0, TC_H_ROOT);
			nl_talk();
			waited = 0;
			step = 10;
		}
		if (waited > DRAIN_MS)
			fail("%s stays after %lu s without traffic", qdisc_name(&seen[left]),
			     waited / 1000);
		if (step == 1280)
			hurry();
		sleep_us(step * 1000);
		waited += step;
		if (step < 20000)
			step *= 2;
	}
	beside_rest(false);
	fig->drains++;
	for (int i = 0; i < seen_count; i++) {
		const struct tc_paqm_xstats *x = &seen[i].x;

		if (!seen[i].has_xstats)
			continue;
		fig->media_bytes += x->media.sent_bytes;
		fig->elastic_bytes += x->elastic.sent_bytes;
		fig->notices += x->notices_sent;
		fig->drops += x->media.drop_tail + x->media.drop_inner + x->media.drop_strike +
			      x->elastic.drop_tail + x->elastic.drop_inner;
	}
}

/* --------------------------------------------------------------------- modules */

static const char *const modules[] = {"paqm_feedback", "sch_paqm", "sch_dcbt", "sch_rlqos"};

void modules_insert(void)
{
	char path[512];
	int fd;

	for (size_t i = 0; i < ARRAY_SIZE(modules); i++) {
		snprintf(path, sizeof(path), "%s/%s.ko", args.modules, modules[i]);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0 || syscall(SYS_finit_module, fd, "", 0))
			die("%s: %s", path, strerror(errno));
		close(fd);
	}
}

/*
 * Unload the modules. Packets hold their sockets, which hold the namespace: slow
 * queues let it live for a while.
 */
void modules_remove(void)
{
	uint64_t waited = 0, step = 10;

	for (size_t i = ARRAY_SIZE(modules); i-- > 0;)
		while (syscall(SYS_delete_module, modules[i], O_NONBLOCK)) {
			if (waited > DRAIN_MS)
				fail("%s cannot be unloaded after the epoch: %s", modules[i],
				     strerror(errno));
			sleep_us(step * 1000);
			waited += step;
			if (step < 20000)
				step *= 2;
		}
}
