// SPDX-License-Identifier: GPL-2.0
/*
 * Many hours of traffic through one paqm, in virtual time: media flows that come
 * and go and follow the advised rate, some that do not, bursts of elastic traffic,
 * a capacity and options that change, feedback on. Runs as root in a lab guest;
 * see soak.py.
 *
 * All frames have the same length, so at every checkpoint packets and bytes must
 * come out even, to the last one: what was sent to the qdisc = what it has passed
 * on + what it counted as dropped + what it holds; what it passed on = what the
 * device counted. Rounds must have gone on, memory must not grow, and at the end
 * the modules must unload and kmemleak find nothing.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_link.h>
#include <linux/if_packet.h>
#include <linux/neighbour.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "../../core/paqm_bytes.h"
#include "torture_nl.h"
#include "torture_report.h"
#include "torture_state.h"
#include "torture_traffic.h"

#define FRAME 600
#define FLOWS 12
#define MEDIA_FLOWS 8
#define CHECK_S 600 /* between checkpoints */
#define GROWTH_KB 1024
#define ROUNDS_MIN 3 /* per second; the period is 250 ms */

static struct flow {
	bool on, deaf;	      /* deaf: does not follow */
	uint64_t next, until; /* ns */
	uint64_t rate;	      /* bit/s */
	uint16_t seq;
	uint16_t port;
} flows[FLOWS];

static struct {
	uint64_t packets, refused, joins, changes, checkpoints;
	uint64_t media_sent, elastic_sent, drops, notices, rounds, overloads;
	uint64_t slab_first, slab_last, slab_most, timer_slips;
} sum;

static uint64_t bandwidth = 400000; /* bit/s */
static uint64_t fair = 50000;
static uint32_t dev_index, rounds_before;
static uint64_t device_packets, device_bytes;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

/* ---------------------------------------------------------------------- set-up */

static void neighbour_add(uint32_t index, const char *text)
{
	struct ndmsg *nd = nl_begin(RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE, sizeof(*nd));
	uint8_t address[4];

	inet_pton(AF_INET, text, address);
	nd->ndm_family = AF_INET;
	nd->ndm_ifindex = index;
	nd->ndm_state = NUD_PERMANENT;
	nl_attr(NDA_DST, address, 4);
	nl_attr(NDA_LLADDR, "\x02\0\0\0\0\x09", 6);
	if (nl_talk())
		fail("no neighbour %s", text);
}

static void take_link(const struct nlmsghdr *head)
{
	const struct ifinfomsg *info = NLMSG_DATA(head);
	const struct rtattr *attr[IFLA_MAX + 1];
	struct rtnl_link_stats64 stats;

	if (head->nlmsg_type != RTM_NEWLINK || (uint32_t)info->ifi_index != dev_index)
		return;
	nl_parse(IFLA_RTA(info), NLMSG_PAYLOAD(head, sizeof(*info)), attr, IFLA_MAX);
	if (!attr[IFLA_STATS64])
		return;
	memcpy(&stats, RTA_DATA(attr[IFLA_STATS64]), sizeof(stats));
	device_packets = stats.tx_packets;
	device_bytes = stats.tx_bytes;
}

/* The qdisc with some of its options drawn anew; the first time it is made. */
static void qdisc_set(uint16_t how)
{
	static const uint64_t rates[] = {100000, 150000, 200000, 300000, 400000};
	struct rtattr *nest;
	int err;

	bandwidth = rates[rnd(ARRAY_SIZE(rates))];
	note("bandwidth %lu", bandwidth);
	tc_begin(RTM_NEWQDISC, how, dev_index, 0x10000, TC_H_ROOT);
	nl_str(TCA_KIND, "paqm");
	nest = nl_nest(TCA_OPTIONS);
	nl_u64(TCA_PAQM_BANDWIDTH, bandwidth / 8);
	nl_u32(TCA_PAQM_FEEDBACK, chance(95) ? PAQM_FEEDBACK_ICMP : PAQM_FEEDBACK_NONE);
	if (chance(20))
		nl_u32(TCA_PAQM_LAW, rnd(__PAQM_LAW_MAX));
	if (chance(20))
		nl_u32(TCA_PAQM_MEDIA_TARGET, between(2000, 20000));
	if (chance(20))
		nl_u32(TCA_PAQM_ELASTIC_TARGET, between(10000, 100000));
	if (chance(20))
		nl_u32(TCA_PAQM_POLICE, rnd(2));
	nl_end(nest);
	err = nl_talk();
	if (err)
		fail("the qdisc was refused: %s", strerror(err));
	sum.changes++;
}

static void set_up(void)
{
	struct device wire = {.name = "v0"}, side = {.name = "s0"};

	namespace_new();
	/* nothing but our own frames may pass the qdisc */
	write_file("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1");
	write_file("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
	device_create(&wire, "veth", 1, "v1", 0, 0);
	device_create(&side, "veth", 1, "s1", 0, 0);
	dev_index = wire.index;
	qdisc_set(NLM_F_CREATE | NLM_F_EXCL);
	device_up(if_nametoindex("v1"), true);
	device_up(if_nametoindex("s1"), true);
	device_up(wire.index, true);
	device_up(side.index, true);
	/* messages to the senders leave by another device */
	address_add(side.index, "10.2.0.1");
	neighbour_add(side.index, "10.2.0.2");
	tr.packet = traffic_socket(AF_PACKET, SOCK_RAW, 0);
}

/* --------------------------------------------------------------------- traffic */

static void flow_send(int i)
{
	static const uint32_t addresses[] = {0x0a020002, 0x0a030002};
	bool media = i < MEDIA_FLOWS;
	struct flow *f = &flows[i];
	uint8_t frame[FRAME];

	frame_plain(frame, FRAME, media ? IPPROTO_UDP : IPPROTO_TCP, addresses, f->port,
		    media ? 5004 : 80);
	f->seq++;
	if (media) {
		frame_rtp(frame, f->seq, f->port);
	} else {
		memset(frame + 38, 0, 16);
		paqm_put32(frame + 38, f->seq * 546);
		frame[46] = 0x50;
		frame[47] = 0x10;
	}
	sum.packets++;
	if (!frame_send(dev_index, frame, FRAME)) {
		if (errno != ENOBUFS)
			fail("a frame was not sent: %s", strerror(errno));
		sum.refused++;
	}
}

/* Who talks, how long and how fast. */
static void flow_turn(int i, uint64_t now)
{
	struct flow *f = &flows[i];
	uint64_t s = 1000000000;

	if (now < f->until)
		return;
	f->on = i == 0 || chance(60); /* the first never rests: the loops never sleep */
	f->until = now + between(5, 90) * s;
	f->deaf = i < MEDIA_FLOWS && chance(10);
	f->port = 20000 + (i == 0 ? 0 : rnd(20000));
	f->seq = rnd64();
	f->next = now;
	if (i >= MEDIA_FLOWS) { /* bursts beyond the capacity */
		f->until = now + (f->on ? between(1, 20) : between(20, 200)) * s;
		f->rate = bandwidth * between(20, 150) / 100;
	}
	sum.joins += f->on;
}

static void media_rates(void)
{
	for (int i = 0; i < MEDIA_FLOWS; i++)
		flows[i].rate = flows[i].deaf ? 60000 : fair > 100000 ? 100000 : fair;
}

/* ----------------------------------------------------------------- checkpoints */

static uint64_t slab_kb(void)
{
	FILE *f = fopen("/proc/meminfo", "r");
	char line[256];
	uint64_t kb = 0;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "SUnreclaim: %lu", &kb) == 1)
			break;
	if (f)
		fclose(f);
	return kb;
}

static const struct tc_paqm_xstats *stats(void)
{
	look();
	for (int i = 0; i < seen_count; i++)
		if (seen[i].has_xstats)
			return &seen[i].x;
	fail("the qdisc has gone");
}

static uint64_t all_drops(const struct tc_paqm_xstats *x)
{
	const struct tc_paqm_class_stats *u = &x->media, *t = &x->elastic;

	/* what flows send beyond their rate is dropped in queues of their own */
	return (uint64_t)u->drop_tail + u->drop_inner + u->drop_strike + t->drop_tail +
	       t->drop_inner + t->drop_strike + x->over_drops + x->over_full;
}

/* The books of this moment; the listing is taken without the queue's lock. */
static bool even(const struct tc_paqm_xstats *x, bool last)
{
	const struct tc_paqm_class_stats *u = &x->media, *t = &x->elastic;
	uint64_t sent = u->sent_packets + t->sent_packets, bytes = u->sent_bytes + t->sent_bytes;
	uint64_t held = (uint64_t)u->qlen + t->qlen, drops = all_drops(x);
	const struct {
		const char *what;
		uint64_t got, want;
	} books[] = {
		{"packets sent, dropped and held", sent + drops + held, sum.packets},
		{"bytes that arrived", u->arrived_bytes + t->arrived_bytes, sum.packets * FRAME},
		{"bytes sent, dropped and held",
		 bytes + drops * FRAME + (uint64_t)u->backlog + t->backlog, sum.packets * FRAME},
		{"packets of the device", device_packets, sent},
		{"bytes of the device", device_bytes, bytes},
	};

	for (size_t i = 0; i < ARRAY_SIZE(books); i++) {
		if (books[i].got == books[i].want)
			continue;
		if (last)
			fail("%s: %lu, should be %lu (difference %ld)", books[i].what, books[i].got,
			     books[i].want, (long)(books[i].got - books[i].want));
		return false;
	}
	return true;
}

static void checkpoint(uint64_t elapsed_s)
{
	const struct tc_paqm_xstats *x;
	uint64_t slab;

	op_number++;
	check();
	for (int turn = 0;; turn++) { /* a packet may leave between two figures */
		x = stats();
		link_begin(RTM_GETLINK, 0, dev_index);
		if (nl_dump(take_link))
			fail("the device cannot be asked");
		if (even(x, turn == 5))
			break;
	}
	if (elapsed_s && x->rounds - rounds_before < (uint64_t)ROUNDS_MIN * CHECK_S)
		fail("only %u rounds in %u s", x->rounds - rounds_before, CHECK_S);
	rounds_before = x->rounds;
	write_file("/proc/sys/vm/drop_caches", "3");
	slab = slab_kb();
	if (elapsed_s >= 3600 && !sum.slab_first)
		sum.slab_first = slab;
	sum.slab_last = slab;
	if (slab > sum.slab_most)
		sum.slab_most = slab;
	sum.checkpoints++;
	sum.media_sent = x->media.sent_packets;
	sum.elastic_sent = x->elastic.sent_packets;
	sum.drops = all_drops(x);
	sum.notices = x->notices_sent;
	sum.rounds = x->rounds;
	sum.overloads = x->overload;
	sum.timer_slips = x->timer_slips;
	kmsg_check();
	if (elapsed_s % 3600 == 0) {
		printf("# %lu h: %lu packets, %lu dropped, %lu messages, slab %lu kB\n",
		       elapsed_s / 3600, sum.packets, sum.drops, sum.notices, slab);
		fflush(stdout);
	}
}

int main(int argc, char **argv)
{
	uint64_t hours = 1, begin, now, next_check, next_look, next_change, second = 1000000000;
	bool any_growth = false;

	for (int i = 1; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : "";

		if (!strcmp(argv[i], "--any-growth")) {
			any_growth = true;
			continue;
		}
		if (!strcmp(argv[i], "--hours"))
			hours = strtoull(value, NULL, 0);
		else if (!strcmp(argv[i], "--seed"))
			args.seed = strtoull(value, NULL, 0);
		else
			die("usage: soak [--hours N] [--seed N] [--any-growth]");
		i++;
	}
	args.modules = getenv("PAQM_KO_DIR");
	if (!args.modules)
		die("PAQM_KO_DIR does not name the modules' directory; use paqm-lab exec");
	test_name = "soak";
	args.each = 0;
	fig = calloc(1, sizeof(*fig));
	kmsg_open();
	modules_insert();
	rng_seed(args.seed, 0);
	set_up();
	media_rates();
	begin = now_ns();
	next_check = begin + CHECK_S * second;
	next_look = begin;
	next_change = begin + 60 * second;
	for (now = begin; now < begin + hours * 3600 * second;) {
		uint64_t wake = next_look;

		for (int i = 0; i < FLOWS; i++) {
			flow_turn(i, now);
			while (flows[i].on && flows[i].next <= now) {
				flow_send(i);
				flows[i].next += FRAME * 8 * second / flows[i].rate;
			}
			if (flows[i].on && flows[i].next < wake)
				wake = flows[i].next;
		}
		if (now >= next_look) { /* senders read what they were told */
			fair = stats()->fair_rate;
			if (fair < 20000)
				fair = 20000;
			media_rates();
			next_look = now + 2 * second;
		}
		if (now >= next_change) {
			qdisc_set(0);
			next_change = now + between(30, 240) * second;
		}
		if (now >= next_check) {
			checkpoint((next_check - begin) / second);
			next_check += CHECK_S * second;
		}
		if (wake > now)
			sleep_us((wake - now) / 1000 + 1);
		now = now_ns();
	}
	sleep_us(120000000);
	checkpoint(hours * 3600);
	if (stats()->media.qlen || stats()->elastic.qlen)
		fail("packets stay after two minutes without traffic");
	if (hours > 1 && !any_growth && sum.slab_last > sum.slab_first + GROWTH_KB)
		fail("kernel memory grew from %lu kB after one hour to %lu kB", sum.slab_first,
		     sum.slab_last);
	tc_begin(RTM_DELQDISC, 0, dev_index, 0, TC_H_ROOT);
	if (nl_talk())
		fail("the qdisc cannot be deleted");
	close(tr.packet);
	modules_remove();
	leaks_check();
	kmsg_check();
	printf("{\"hours\": %lu, \"seed\": %lu, \"packets\": %lu, \"refused\": %lu, \"joins\": "
	       "%lu, "
	       "\"changes\": %lu, \"checkpoints\": %lu, \"media_sent\": %lu, \"elastic_sent\": "
	       "%lu, "
	       "\"drops\": %lu, \"notices\": %lu, \"rounds\": %lu, \"overloads\": %lu, "
	       "\"timer_slips\": %lu, \"slab_first_kb\": %lu, \"slab_last_kb\": %lu, "
	       "\"slab_most_kb\": %lu}\n",
	       hours, args.seed, sum.packets, sum.refused, sum.joins, sum.changes, sum.checkpoints,
	       sum.media_sent, sum.elastic_sent, sum.drops, sum.notices, sum.rounds, sum.overloads,
	       sum.timer_slips, sum.slab_first, sum.slab_last, sum.slab_most);
	printf("ok soak: %lu virtual hours, %lu packets, all accounted for\n", hours, sum.packets);
	return 0;
}
