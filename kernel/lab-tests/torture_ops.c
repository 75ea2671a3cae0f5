// SPDX-License-Identifier: GPL-2.0
/*
 * Operations of the torture test, each drawn at random: tc requests, sensible and not, changes of
 * devices and modules, and the traffic between two of them.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "torture_kinds.h"
#include "torture_nl.h"
#include "torture_ops.h"
#include "torture_report.h"
#include "torture_state.h"
#include "torture_traffic.h"

#define STAB_MAJOR 13 /* handles of qdiscs with a size table, and the next two */

uint32_t some_handle(void)
{
	return chance(95) ? between(1, 12) << 16 : (uint32_t)(chance(50) ? rnd_edge() : rnd64());
}

/* A qdisc of the last look, half of the time a paqm; NULL if there is none. */
static const struct qdisc *some_qdisc(bool paqm)
{
	int start = rnd(seen_count);

	for (int i = 0; i < seen_count; i++) {
		const struct qdisc *q = &seen[(start + i) % seen_count];

		if (!paqm || q->has_xstats)
			return q;
	}
	return seen_count ? &seen[start] : NULL;
}

/* Classes made lately. */
#define MADE 64
static uint32_t made[MADE];

static uint32_t some_class(const struct qdisc *q)
{
	static const uint32_t minors[] = {0, 3, 4, 5, 0x101, 0x110, 0xffff};
	uint32_t minor = chance(90) ? between(1, 2) : minors[rnd(ARRAY_SIZE(minors))];

	if (!q || chance(3))
		return chance(50) ? rnd_edge() : rnd64();
	if (q->has_xstats && chance(90))
		minor = 2;
	/* without one that was made there is none in these */
	for (int i = 0; i < MADE && makes_classes(q->kind); i++) {
		uint32_t class = made[rnd(MADE)];

		if (class >> 16 == q->handle >> 16)
			return class;
	}
	return (q->handle & 0xffff0000) | minor;
}

/* The device whose index it is; the first if it has gone. */
static const struct device *device_of(uint32_t index)
{
	for (int i = 0; i < DEVICES; i++)
		if (devs[i].index == index)
			return &devs[i];
	return &devs[0];
}

/* Send a request about a qdisc of @kind; those about ours are counted. */
static int talk_about(const struct kind *kind)
{
	int err = nl_talk();

	if (kind == kinds) {
		fig->paqm_tried++;
		fig->paqm_taken += !err;
	}
	return err;
}

static int op_add(void)
{
	static const uint16_t flags[] = {NLM_F_CREATE | NLM_F_EXCL, NLM_F_CREATE | NLM_F_REPLACE,
					 NLM_F_CREATE, NLM_F_REPLACE, 0};
	const struct kind *kind = random_kind();
	const struct qdisc *above = chance(75) ? some_qdisc(chance(50)) : NULL;
	uint32_t dev = above ? above->ifindex : devs[rnd(DEVICES)].index, parent = TC_H_ROOT;
	uint32_t handle = chance(50) ? 0 : some_handle();
	uint16_t how = flags[chance(70) ? 1 : rnd(ARRAY_SIZE(flags))];
	bool valid = chance(88);
	bool stab;
	int err;

	if (above)
		parent = some_class(above);
	/* Linux 6.12 searches for the parent of the ingress qdisc for ever as fq is made */
	if (kind != kinds && parent >> 16 == TC_H_CLSACT >> 16)
		parent = TC_H_ROOT;
	/*
	 * A size table is for roots: further down it changes a packet's length between the
	 * moments at which the qdiscs above count it in and out. Any kind's, and not ours.
	 */
	stab = parent == TC_H_ROOT && chance(10);
	if (stab)
		handle = between(STAB_MAJOR, STAB_MAJOR + 2) << 16;
	if (!strcmp(kind->name, "clsact") || !strcmp(kind->name, "ingress"))
		parent = TC_H_CLSACT;
	note("add %s %x: parent %x:%x on %s flags %x%s", kind->name, handle >> 16, parent >> 16,
	     parent & 0xffff, device_of(dev)->name, how, valid ? "" : " with garbage");
	tc_begin(RTM_NEWQDISC, how, dev, handle, parent);
	nl_str(TCA_KIND, kind->name);
	if (stab)
		opt_stab();
	if (kind->options != opt_none || !valid)
		if (kind != kinds || chance(90))
			kind->options(valid);
	err = talk_about(kind);
	if (!err)
		had_child_set(parent);
	return err;
}

static int op_change(void)
{
	const struct qdisc *q = some_qdisc(chance(85));
	const struct kind *kind = q ? kind_of(q->kind) : NULL;
	bool valid = chance(80);

	if (!kind)
		return op_add();
	note("change %s on %s%s", qdisc_name(q), device_of(q->ifindex)->name,
	     valid ? "" : " with garbage");
	tc_begin(RTM_NEWQDISC, chance(20) ? NLM_F_REPLACE | NLM_F_CREATE : 0, q->ifindex,
		 chance(80) ? q->handle : 0, q->parent);
	nl_str(TCA_KIND, chance(95) ? kind->name : "paqm");
	kind->options(valid);
	return talk_about(kind);
}

static int op_delete(void)
{
	const struct qdisc *q = some_qdisc(chance(40));
	uint32_t handle, parent;

	if (!q)
		return op_add();
	handle = chance(50) ? q->handle : chance(80) ? 0 : some_handle();
	parent = chance(95) ? q->parent : some_class(q);
	note("delete %x: parent %x:%x on %s", handle >> 16, parent >> 16, parent & 0xffff,
	     device_of(q->ifindex)->name);
	tc_begin(RTM_DELQDISC, 0, q->ifindex, handle, parent);
	return nl_talk();
}

/* Put a qdisc that exists below another class, its own among them. */
static int op_graft(void)
{
	const struct qdisc *q = some_qdisc(chance(60)), *to = some_qdisc(chance(60));
	uint32_t parent = to ? some_class(to) : 0;
	int err;

	if (!q || !to || (q->handle >> 16 >= STAB_MAJOR && q->handle >> 16 <= STAB_MAJOR + 2))
		return op_add();
	note("graft %s below %x:%x on %s", qdisc_name(q), parent >> 16, parent & 0xffff,
	     device_of(to->ifindex)->name);
	tc_begin(RTM_NEWQDISC, NLM_F_CREATE | NLM_F_REPLACE, to->ifindex, q->handle, parent);
	nl_str(TCA_KIND, q->kind);
	err = nl_talk();
	if (!err)
		had_child_set(parent);
	return err;
}

static int op_class(bool add)
{
	const struct qdisc *q = NULL;
	int start = rnd(seen_count), err;
	uint32_t class;

	for (int i = 0; i < seen_count; i++) {
		q = &seen[(start + i) % seen_count];
		if (makes_classes(q->kind) && chance(90))
			break;
	}
	if (!q)
		return op_add();
	class = (q->handle & 0xffff0000) | between(1, 4);
	if (!add || chance(5))
		class = some_class(q);
	note("class %s %x:%x in %s", add ? "add" : "delete", class >> 16, class & 0xffff,
	     qdisc_name(q));
	tc_begin(add ? RTM_NEWTCLASS : RTM_DELTCLASS,
		 !add	      ? 0
		 : chance(70) ? NLM_F_CREATE | NLM_F_EXCL
		 : chance(50) ? NLM_F_CREATE
			      : 0,
		 q->ifindex, class, chance(80) ? q->handle : some_class(q));
	if (add) {
		nl_str(TCA_KIND, q->kind);
		opt_class(q->kind, chance(85));
	}
	err = nl_talk();
	if (add && !err)
		made[rnd(MADE)] = class;
	return err;
}

static int op_filter(bool add)
{
	static const char *const kind[] = {"matchall", "u32", "fw", "basic", "flower"};
	const struct qdisc *q = some_qdisc(chance(70));
	uint32_t targets[DEVICES], class;
	const char *name = kind[rnd(ARRAY_SIZE(kind))];
	uint16_t prio = chance(95) ? between(1, 4) : rnd(65536);
	struct tcmsg *tc;
	bool ingress;
	int count = 0;

	if (!q)
		return op_add();
	/*
	 * Packets are only mirrored to devices further down the list: two that mirror to
	 * each other are a lock inversion of the administrator's making. Nor to what brings
	 * them back at once, for ever and in no virtual time: the other end of the pair, and
	 * from a queue to an ifb, which gives them back to that queue.
	 */
	ingress = !strcmp(q->kind, "ingress") || !strcmp(q->kind, "clsact");
	for (int i = DEVICES - 2; i >= 0 && devs[i].index != q->ifindex; i--)
		if (!(i == D_PAIR1 && q->ifindex == devs[D_PAIR0].index) &&
		    !(i == D_IFB && !ingress))
			targets[count++] = devs[i].index;
	if (!count)
		targets[count++] = 1; /* lo */
	class = chance(70) ? (q->handle & 0xffff0000) | between(1, 4) : some_class(q);
	note("filter %s %s prio %u to %x:%x at %s", add ? "add" : "delete", name, prio, class >> 16,
	     class & 0xffff, qdisc_name(q));
	tc = tc_begin(add ? RTM_NEWTFILTER : RTM_DELTFILTER, add ? NLM_F_CREATE | NLM_F_EXCL : 0,
		      q->ifindex, 0, q->handle);
	tc->tcm_info = (uint32_t)prio << 16 | htons(chance(90) ? ETH_P_ALL : ETH_P_IP);
	if (add) {
		nl_str(TCA_KIND, name);
		opt_filter(name, class, targets, count);
	} else if (chance(20)) { /* all of them */
		tc->tcm_info = 0;
	}
	return nl_talk();
}

static int op_dump(void)
{
	static const uint16_t types[] = {RTM_GETQDISC, RTM_GETTCLASS, RTM_GETTCLASS,
					 RTM_GETTFILTER};
	uint16_t type = types[rnd(ARRAY_SIZE(types))];
	const struct qdisc *q = some_qdisc(chance(70));
	uint32_t dev = q ? q->ifindex : devs[rnd(DEVICES)].index;

	note("dump %u on %s", type, device_of(dev)->name);
	tc_begin(type, 0, dev, 0, q && type == RTM_GETTFILTER ? q->handle : 0);
	return nl_dump(NULL);
}

static int op_get(void)
{
	const struct qdisc *q = some_qdisc(chance(70));
	bool class = chance(60);
	uint32_t handle;

	if (!q)
		return op_dump();
	handle = class ? some_class(q) : q->handle;
	note("get %s %x:%x on %s", class ? "class" : "qdisc", handle >> 16, handle & 0xffff,
	     device_of(q->ifindex)->name);
	tc_begin(class ? RTM_GETTCLASS : RTM_GETQDISC, 0, q->ifindex, handle,
		 class ? 0 : q->parent);
	return nl_talk();
}

static int op_mtu(void)
{
	static const uint32_t mtus[] = {68, 100, 576, 1279, 1280, 1500, 1500, 9000, 65521, 65535};
	struct device *d = &devs[rnd(DEVICES)];
	uint32_t mtu = chance(90) ? mtus[rnd(ARRAY_SIZE(mtus))] : (uint32_t)rnd_edge();
	int err;

	note("mtu %u on %s", mtu, d->name);
	link_begin(RTM_NEWLINK, 0, d->index);
	nl_u32(IFLA_MTU, mtu);
	err = nl_talk();
	if (!err)
		d->mtu = mtu;
	if (d == devs && mtu >= 1280)
		address_add(d->index, "fd00::1");
	return err;
}

static int op_updown(void)
{
	struct device *d = &devs[rnd(DEVICES)];
	int err;

	if (hfsc_real_time())
		return -EOPNOTSUPP;
	note("down and up of %s", d->name);
	err = device_up(d->index, false);
	if (chance(30)) {
		send_frames(d->index, d->mtu, 3);
		sleep_us(rnd(20000));
	}
	device_up(d->index, true);
	if (d == devs) {
		address_add(d->index, "fd00::1");
		device_up(devs[D_VLAN].index, true); /* went down with the device below it */
	}
	return err;
}

static int op_queue_length(void)
{
	struct device *d = &devs[rnd(DEVICES)];

	note("txqueuelen of %s", d->name);
	link_begin(RTM_NEWLINK, 0, d->index);
	nl_u32(IFLA_TXQLEN, chance(50) ? rnd(1000) : (uint32_t)rnd_edge());
	return nl_talk();
}

static int op_offloads(void)
{
	static const uint32_t commands[] = {ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SGRO, ETHTOOL_SSG,
					    ETHTOOL_STXCSUM};
	struct device *d = &devs[rnd(DEVICES)];
	struct ethtool_value value = {.cmd = commands[rnd(ARRAY_SIZE(commands))], .data = rnd(2)};
	struct ifreq ifr = {.ifr_data = (char *)&value};

	note("offload %x %s on %s", value.cmd, value.data ? "on" : "off", d->name);
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", d->name);
	return ioctl(tr.udp4, SIOCETHTOOL, &ifr) ? errno : 0;
}

/* A device goes with all that is on it, and comes back. */
static int op_device(void)
{
	struct device *d = &devs[chance(50) ? D_DUMMY : chance(50) ? D_MULTI : D_VLAN];
	int err;

	note("%s anew", d->name);
	link_begin(RTM_DELLINK, 0, d->index);
	err = nl_talk();
	if (d == &devs[D_VLAN])
		device_create(d, "vlan", 2, NULL, 0, devs[D_VETH].index);
	else
		device_create(d, "dummy", d == &devs[D_MULTI] ? 4 : 1, NULL, 0, 0);
	device_up(d->index, true);
	return err;
}

/* Must be refused while a paqm exists; a module in use may not go. */
static int op_unload(void)
{
	bool used = false;
	int err;

	look();
	for (int i = 0; i < seen_count; i++)
		used |= seen[i].has_xstats;
	note("unload the module while %s", used ? "in use" : "idle");
	if (!used)
		return 0;
	err = syscall(SYS_delete_module, "sch_paqm", O_NONBLOCK) ? errno : 0;
	if (!err)
		fail("the module went while a qdisc used it");
	return err;
}

static int op_class_add(void)
{
	return op_class(true);
}

static int op_class_delete(void)
{
	return op_class(false);
}

static int op_filter_add(void)
{
	return op_filter(true);
}

static int op_filter_delete(void)
{
	return op_filter(false);
}

const struct op_kind ops[OPS] = {
	[OP_ADD] = {"qdisc add", 300, op_add},
	[OP_CHANGE] = {"qdisc change", 160, op_change},
	[OP_DELETE] = {"qdisc delete", 80, op_delete},
	[OP_GRAFT] = {"qdisc graft", 60, op_graft},
	[OP_CLASS_ADD] = {"class add", 120, op_class_add},
	[OP_CLASS_DELETE] = {"class delete", 40, op_class_delete},
	[OP_FILTER_ADD] = {"filter add", 80, op_filter_add},
	[OP_FILTER_DELETE] = {"filter delete", 30, op_filter_delete},
	[OP_DUMP] = {"dump", 40, op_dump},
	[OP_GET] = {"get", 30, op_get},
	[OP_MTU] = {"mtu", 20, op_mtu},
	[OP_UPDOWN] = {"up or down", 20, op_updown},
	[OP_QUEUE_LENGTH] = {"txqueuelen", 8, op_queue_length},
	[OP_OFFLOADS] = {"offloads", 10, op_offloads},
	[OP_DEVICE] = {"device anew", 4, op_device},
	[OP_UNLOAD] = {"module unload", 2, op_unload},
};

static enum op random_op(void)
{
	static int total;
	int pick;

	if (!total)
		for (int i = 0; i < OPS; i++)
			total += ops[i].weight;
	pick = rnd(total);
	for (int i = 0;; i++) {
		if (pick < ops[i].weight)
			return i;
		pick -= ops[i].weight;
	}
}

/* Traffic and time between two operations. */
/* Packets of one kind, at once. */
void burst(void)
{
	const struct device *d = &devs[rnd(DEVICES)];

	if (chance(3))
		send_call(d->index, 10 + rnd(30), sleep_us);
	switch (rnd(8)) {
	case 0:
	case 1:
	case 2:
		send_frames(d->index, d->mtu, 1 + rnd(16));
		break;
	case 3:
		send_datagrams(1 + rnd(8));
		break;
	case 4:
		send_streams();
		break;
	}
}

/* The same, and now and then a pause. */
void traffic(void)
{
	burst();
	if (chance(25))
		sleep_us(chance(90) ? rnd(10000) : rnd(500000));
}

void one_operation(void)
{
	enum op op = random_op();
	bool faulty = chance(4) && op <= OP_GET;
	int err;

	if (faulty) {
		fig->faults_armed++;
		fault_arm(1 + rnd(60));
	}
	err = ops[op].run();
	if (faulty)
		fig->faults_hit += fault_disarm();
	fig->tried[op]++;
	fig->taken[op] += !err;
	fig->unanswered += err == NL_UNANSWERED;
	fig->ops++;
}
