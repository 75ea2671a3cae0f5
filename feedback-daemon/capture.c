// SPDX-License-Identifier: GPL-2.0
/* Packet capture; see capture.h. */
#include "capture.h"

#include <errno.h>
#include <linux/if_packet.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ctl.h"
#include "ipc_server.h"
#include "log.h"
#include "opener.h"

#define NEWS_PER_TURN 64     /* of interfaces */
#define PACKETS_PER_TURN 256 /* of one interface, before the others get theirs */
#define RETRY_NS 2000000000ULL
#define AGE_MAX_NS 1000000000ULL
#define LATE_NS 3000000000ULL /* an opener that does not answer for so long is told of */

/* So many packets within a window, media or messages, are then read in lots, as waking
 * for each would cost several times as much as judging it.
 */
#define LOTS_WINDOW_NS 10000000ULL
#define LOTS_PACKETS 100
#define LOTS_NAP_NS 300000L

struct iface {
	struct source src; /* first: the loop knows the interface by it; -1: not open */
	struct daemon *d;
	char name[CONF_IFACE_LEN]; /* empty: the slot is free */
	uint8_t *ring;
	unsigned int next;  /* frame of the ring to be read next */
	unsigned int index; /* of the device, 0 for "any" */
	bool named;	    /* still in the configuration; used by capture_reload() */
	bool due;	    /* to be opened */
	bool held;	    /* the opener has a socket in this slot */
	uint64_t received, dropped;
};

struct held {
	uint64_t t_ns;
	uint32_t len;
	uint8_t data[FILTER_SNAP];
};

enum asked { NOTHING, FILTER, OPEN, CLOSE };

struct capture {
	struct source link;    /* rtnetlink; first: the loop knows us by it */
	uint64_t link_foreign; /* what came by it and not from the kernel */
	struct source opener;
	/* What the opener is doing. Others are served meanwhile, so an interface may be
	 * wanted no longer when it comes.
	 */
	enum asked asked;
	uint64_t late_ns; /* when it will be told that it hangs; UINT64_MAX: it has been */
	unsigned int asked_slot;
	char asked_name[CONF_IFACE_LEN];
	uint64_t asked_change, change; /* of flows: asked for, in force */
	struct iface iface[CONF_IFACES];
	struct filter_flows flows; /* what the sockets let through */
	uint64_t retry_ns;
	/* Read once per turn: captures carry the wall clock. */
	uint64_t now_real, now_ns;
	uint64_t slept_ns; /* since the machine started */
	uint64_t age_max;  /* of what the rings hold */
	/* Packets of the present window of LOTS_WINDOW_NS, and whether those of the last
	 * one were many.
	 */
	uint64_t window_ns;
	unsigned int packets;
	bool lots;
	/* Messages wait here until all interfaces have been read: the packet
	 * that one quotes may have left through another.
	 */
	unsigned int held;
	struct held msg[CONF_IFACES * PACKETS_PER_TURN];
};

static void flows_of(const struct engine *e, struct filter_flows *f)
{
	size_t i;

	memset(f, 0, sizeof(*f));
	for (i = 0; i < ENGINE_FLOWS; i++) {
		const struct flow_key *k = &e->keys[i];

		if (!k->used)
			continue;
		if (f->n == FILTER_FLOWS) {
			/* All of them are alike. */
			memset(f, 0, sizeof(*f));
			f->n = FILTER_FLOWS + 1;
			return;
		}
		f->flow[f->n++] = (struct filter_flow){
			.version = addr_is_v4(&k->daddr) ? 4 : 6,
			.addr = paqm_get32(k->daddr.b + 12),
			.ports = (uint32_t)k->sport << 16 | k->dport,
		};
	}
}

static void packet(struct iface *f, const struct tpacket2_hdr *h, const struct sockaddr_ll *ll)
{
	struct capture *c = f->d->capture;
	uint64_t t = (uint64_t)h->tp_sec * 1000000000ULL + h->tp_nsec;
	uint64_t age = c->now_real > t ? c->now_real - t : 0;
	const uint8_t *ip = (const uint8_t *)h + h->tp_net;
	struct held *m;

	c->packets++;
	/* A step of the wall clock must not age or rejuvenate packets much. */
	t = c->now_ns - paqm_min64(paqm_min64(age, c->age_max), c->now_ns);
	if (ll->sll_pkttype == PACKET_OUTGOING) {
		engine_media(&f->d->engine, ip, h->tp_snaplen, t);
		return;
	}
	if (c->held == sizeof(c->msg) / sizeof(c->msg[0]))
		return; /* cannot happen: a turn reads no more than that */
	m = &c->msg[c->held++];
	m->t_ns = t;
	m->len = h->tp_snaplen < FILTER_SNAP ? h->tp_snaplen : FILTER_SNAP;
	memcpy(m->data, ip, m->len);
}

/* Return: false if there may be more. */
static bool read_ring(struct iface *f)
{
	unsigned int i;

	for (i = 0; i < PACKETS_PER_TURN; i++) {
		uint8_t *frame = f->ring + (size_t)f->next * OPENER_FRAME;
		struct tpacket2_hdr *h = (struct tpacket2_hdr *)frame;

		if (!(__atomic_load_n(&h->tp_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER))
			return true;
		packet(f, h, (const struct sockaddr_ll *)(frame + TPACKET_ALIGN(sizeof(*h))));
		__atomic_store_n(&h->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
		f->next = (f->next + 1) % OPENER_FRAMES;
	}
	return false;
}

static void log_verdict(const struct verdict *v)
{
	char addr[ADDR_TEXT];

	if (v->refuse && !log_room(LOG_CLASS_REFUSED))
		return;
	if (v->refuse)
		log_limited(LOG_CLASS_REFUSED, "message from %s refused: %s",
			    addr_text(&v->addr, addr), refuse_name(v->refuse));
	else if (log_verbose && v->changed)
		log_limited(LOG_CLASS_RATE, "message %u from %s: flow %llx may send %llu bit/s",
			    v->msg.seq, addr_text(&v->addr, addr),
			    (unsigned long long)v->flow->cookie,
			    (unsigned long long)v->flow->rate.rate_bps);
}

static void judge_held(struct daemon *d)
{
	struct capture *c = d->capture;
	struct verdict v;
	unsigned int i;

	for (i = 0; i < c->held; i++) {
		const struct held *m = &c->msg[i];
		uint64_t t_ns = c->now_real - (c->now_ns - m->t_ns);

		engine_message(&d->engine, m->data, m->len, m->t_ns, &v);
		log_verdict(&v);
		ctl_event_verdict(d, &v, t_ns);
		ctl_event_packet(d, &v, m->data, m->len, t_ns);
		if (v.changed)
			ipc_push(d, v.flow);
	}
	c->held = 0;
	if (c->now_ns - c->window_ns < LOTS_WINDOW_NS)
		return;
	c->lots = c->packets > LOTS_PACKETS;
	c->window_ns = c->now_ns;
	c->packets = 0;
}

/* Add what the kernel has counted since the last call. */
static void count(struct iface *f)
{
	struct tpacket_stats st = {0};
	socklen_t len = sizeof(st);

	if (f->src.fd < 0 || getsockopt(f->src.fd, SOL_PACKET, PACKET_STATISTICS, &st, &len))
		return;
	f->received += st.tp_packets;
	f->dropped += st.tp_drops;
}

static void iface_close(struct iface *f)
{
	if (f->src.fd < 0)
		return;
	count(f);
	munmap(f->ring, OPENER_RING);
	close(f->src.fd);
	f->src.fd = -1;
}

/* It is looked for at once, and then every two seconds. */
static void iface_lost(struct iface *f, const char *why)
{
	log_line("%s: capture ended: %s; trying again every %llu s", f->name, why,
		 RETRY_NS / 1000000000ULL);
	iface_close(f);
	f->d->capture->retry_ns = 0;
}

/* What waits in the rings may be from before a sleep. */
static void set_now(struct capture *c)
{
	uint64_t slept;

	c->now_real = clock_ns(CLOCK_REALTIME);
	c->now_ns = clock_ns(DAEMON_CLOCK);
	slept = c->now_ns - paqm_min64(clock_ns(CLOCK_MONOTONIC), c->now_ns);
	c->age_max = AGE_MAX_NS + (slept > c->slept_ns ? slept - c->slept_ns : 0);
	c->slept_ns = slept;
}

static void iface_ready(struct source *s, uint32_t events)
{
	struct iface *f = (struct iface *)s;
	struct daemon *d = f->d;
	struct capture *c = d->capture;
	socklen_t len = sizeof(int);
	const struct timespec nap = {.tv_nsec = LOTS_NAP_NS};
	bool empty = true;
	unsigned int i;
	int err = 0;

	/* That the link went down is not the end: it may come up again, and
	 * link_ready() hears of a device that has gone. Reading clears it.
	 */
	if (events & EPOLLERR)
		getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &err, &len);
	set_now(c);
	for (i = 0; i < CONF_IFACES; i++)
		if (c->iface[i].src.fd >= 0)
			empty &= read_ring(&c->iface[i]);
	judge_held(d);
	if (c->lots && empty)
		clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL);
}

static const char *open_hint(int err)
{
	if (err == EPERM || err == EACCES)
		return "; run as root or with CAP_NET_RAW";
	if (err == ENODEV)
		return "; see 'ip link' for the names";
	return "";
}

/* Take what the opener has opened. Return: 0 or an errno. */
static int iface_open(struct iface *f, const struct opener_answer *a)
{
	int err;

	if (a->error)
		return a->error;
	f->ring = mmap(NULL, OPENER_RING, PROT_READ | PROT_WRITE, MAP_SHARED, a->sock, 0);
	if (f->ring == MAP_FAILED) {
		err = errno;
		close(a->sock);
		return err;
	}
	f->index = a->index;
	f->next = 0;
	f->src.fd = a->sock;
	if (!loop_watch(f->d, &f->src, EPOLLIN))
		return 0;
	err = errno;
	iface_close(f);
	return err;
}

/* What an RTM_NEWLINK or RTM_DELLINK says about our interfaces. */
static void link_message(struct capture *c, const struct nlmsghdr *h)
{
	const struct ifinfomsg *ifi = NLMSG_DATA(h);
	int left = (int)h->nlmsg_len - (int)NLMSG_LENGTH(sizeof(*ifi));
	const struct rtattr *a = IFLA_RTA(ifi);
	const char *name = "";
	unsigned int i;

	for (; RTA_OK(a, left); a = RTA_NEXT(a, left))
		if (a->rta_type == IFLA_IFNAME)
			name = RTA_DATA(a); /* terminated by the kernel */
	for (i = 0; i < CONF_IFACES; i++) {
		struct iface *f = &c->iface[i];

		if (f->src.fd >= 0 && f->index && f->index == (unsigned int)ifi->ifi_index) {
			if (h->nlmsg_type == RTM_DELLINK)
				iface_lost(f, "the interface has gone");
			else if (strcmp(f->name, name))
				iface_lost(f, "the interface has another name now");
		} else if (f->src.fd < 0 && f->name[0] && !strcmp(f->name, name)) {
			c->retry_ns = 0;
		}
	}
}

/* News of the kernel, whose port is 0. Others may write to a netlink socket as well, and what
 * they say of interfaces is theirs. Return: bytes, 0 if there is nothing to be read in them, -1
 * with errno.
 */
static ssize_t link_receive(struct capture *c, void *buf, size_t size)
{
	struct sockaddr_nl from = {.nl_pid = UINT32_MAX};
	socklen_t len = sizeof(from);
	ssize_t n = recvfrom(c->link.fd, buf, size, MSG_DONTWAIT, (struct sockaddr *)&from, &len);

	if (n < 0 || (len == sizeof(from) && from.nl_family == AF_NETLINK && !from.nl_pid))
		return n;
	c->link_foreign++;
	log_limited(LOG_CLASS_CLIENT, "news of interfaces from port %u, not the kernel: ignored",
		    from.nl_pid);
	return 0;
}

static void link_ready(struct source *s, uint32_t events)
{
	struct capture *c = (struct capture *)s;
	union {
		struct nlmsghdr h;
		char buf[16384];
	} u;
	unsigned int turn, i;

	(void)events;
	for (turn = 0; turn < NEWS_PER_TURN; turn++) {
		ssize_t n = link_receive(c, &u, sizeof(u));
		const struct nlmsghdr *h = &u.h;
		unsigned int left = n > 0 ? (unsigned int)n : 0;

		if (n < 0 && errno != ENOBUFS && errno != EINTR)
			return;

		/* What was lost may have been about any of them. */
		for (i = 0; n < 0 && errno == ENOBUFS && i < CONF_IFACES; i++)
			if (c->iface[i].src.fd >= 0 && c->iface[i].index)
				iface_lost(&c->iface[i], "news of interfaces were lost");
		for (; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left))
			if (h->nlmsg_type == RTM_NEWLINK || h->nlmsg_type == RTM_DELLINK)
				link_message(c, h);
	}
}

static int link_open(struct daemon *d)
{
	struct capture *c = d->capture;
	struct sockaddr_nl sa = {.nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK};

	c->link.ready = link_ready;
	c->link.fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
	if (c->link.fd >= 0 && !bind(c->link.fd, (struct sockaddr *)&sa, sizeof(sa)) &&
	    !loop_watch(d, &c->link, EPOLLIN))
		return 0;
	log_line("cannot follow changes of interfaces: %s", strerror(errno));
	return -1;
}

static void opened(struct capture *c, const struct opener_answer *a)
{
	struct iface *f = &c->iface[c->asked_slot];
	int err;

	f->held = !a->error;
	/* Not wanted any more; or there was news of the device meanwhile, and it must be
	 * looked for anew.
	 */
	if (strcmp(f->name, c->asked_name) || f->due) {
		if (a->sock >= 0)
			close(a->sock);
		return;
	}
	err = iface_open(f, a);
	if (err)
		c->retry_ns = paqm_min64(c->retry_ns, clock_ns(DAEMON_CLOCK) + RETRY_NS);
	else
		log_info("%s: capturing", f->name);
}

static void filter_in_force(struct daemon *d, uint64_t change)
{
	d->capture->change = change;
	ipc_filter_in_force(d, change);
}

/* An answer, or its end: without the opener no interface could be brought back, so the
 * whole daemon starts anew.
 */
static void opener_ready(struct source *s, uint32_t events)
{
	struct capture *c = (struct capture *)((char *)s - offsetof(struct capture, opener));
	struct daemon *d = c->iface[0].d;
	enum asked asked = c->asked;
	struct opener_answer a;
	int err = opener_take(s->fd, false, &a);

	(void)events;
	if (err == EAGAIN)
		return;
	if (err) {
		log_line("the opener has ended");
		d->stop = DAEMON_FAILED;
		return;
	}
	if (c->late_ns == UINT64_MAX)
		log_info("the opener answers again");
	c->asked = NOTHING;
	switch (asked) {
	case OPEN:
		opened(c, &a);
		break;
	case CLOSE:
		c->iface[c->asked_slot].held = false;
		break;
	case FILTER:
		if (a.error)
			log_line("cannot set the filter: %s", strerror(a.error));
		filter_in_force(d, c->asked_change);
		break;
	case NOTHING:
		break;
	}
}

static struct iface *slot_of(struct capture *c, const char *name)
{
	size_t i;

	for (i = 0; i < CONF_IFACES; i++)
		if (!strcmp(c->iface[i].name, name))
			return &c->iface[i];
	return NULL;
}

int capture_open(struct daemon *d, int opener)
{
	struct capture *c = calloc(1, sizeof(*c));
	unsigned int i;

	if (!c)
		return -1;
	d->capture = c;
	c->retry_ns = UINT64_MAX;
	set_now(c);
	c->link.fd = -1;
	c->opener = (struct source){.fd = opener, .ready = opener_ready};
	for (i = 0; i < CONF_IFACES; i++)
		c->iface[i] = (struct iface){.src = {.fd = -1, .ready = iface_ready}, .d = d};
	if (link_open(d) || loop_watch(d, &c->opener, EPOLLIN))
		return -1;
	for (i = 0; i < d->conf.ifaces; i++) {
		struct iface *f = &c->iface[i];
		struct opener_answer a;
		int err = EPIPE;

		strcpy(f->name, d->conf.iface[i]);
		if (opener_open(opener, i, f->name, &c->flows))
			err = opener_take(opener, true, &a);
		if (!err)
			err = iface_open(f, &a);
		f->held = !err;
		if (err) {
			log_line("cannot capture on %s: %s%s", f->name, strerror(err),
				 open_hint(err));
			return -1;
		}
	}
	return 0;
}

void capture_reload(struct daemon *d)
{
	struct capture *c = d->capture;
	struct iface *f;
	unsigned int i;

	for (i = 0; i < CONF_IFACES; i++)
		c->iface[i].named = false;
	for (i = 0; i < d->conf.ifaces; i++) {
		f = slot_of(c, d->conf.iface[i]);
		if (f)
			f->named = true;
	}
	for (i = 0; i < CONF_IFACES; i++) {
		f = &c->iface[i];
		if (f->named || !f->name[0])
			continue;
		iface_close(f);
		f->name[0] = 0;
		f->due = false;
		f->received = 0;
		f->dropped = 0;
	}
	for (i = 0; i < d->conf.ifaces; i++) {
		if (slot_of(c, d->conf.iface[i]))
			continue;
		f = slot_of(c, "");
		strcpy(f->name, d->conf.iface[i]); /* as many slots as names */
		c->retry_ns = 0;
	}
}

void capture_close(struct daemon *d)
{
	unsigned int i;

	if (!d->capture)
		return;
	for (i = 0; i < CONF_IFACES; i++)
		iface_close(&d->capture->iface[i]);
	if (d->capture->link.fd >= 0)
		close(d->capture->link.fd);
	close(d->capture->opener.fd);
	free(d->capture);
	d->capture = NULL;
}

/* Is another filter due? If the one in force will do, it is so at once. */
static bool filter_due(struct daemon *d)
{
	struct capture *c = d->capture;
	struct filter_flows flows;

	if (c->change == d->flows_change)
		return false;
	flows_of(&d->engine, &flows);
	if (!memcmp(&flows, &c->flows, sizeof(flows))) {
		filter_in_force(d, d->flows_change);
		return false;
	}
	c->flows = flows;
	c->asked_change = d->flows_change;
	return true;
}

/* The next request. */
static enum asked choose(struct daemon *d)
{
	struct capture *c = d->capture;
	unsigned int i;

	if (filter_due(d))
		return FILTER;
	for (i = 0; i < CONF_IFACES; i++) {
		struct iface *f = &c->iface[i];

		if (!f->due && (!f->held || f->name[0]))
			continue;
		c->asked_slot = i;
		strcpy(c->asked_name, f->name);
		f->due = false;
		return f->name[0] ? OPEN : CLOSE;
	}
	return NOTHING;
}

static void ask(struct daemon *d, uint64_t now_ns)
{
	struct capture *c = d->capture;
	bool good = true;

	c->asked = choose(d);
	c->late_ns = now_ns + LATE_NS;
	switch (c->asked) {
	case FILTER:
		good = opener_filter(c->opener.fd, &c->flows);
		break;
	case OPEN:
		good = opener_open(c->opener.fd, c->asked_slot, c->asked_name, &c->flows);
		break;
	case CLOSE:
		good = opener_close(c->opener.fd, c->asked_slot);
		break;
	case NOTHING:
		break;
	}
	if (good)
		return;
	log_line("the opener cannot be asked: %s", strerror(errno));
	d->stop = DAEMON_FAILED;
}

uint64_t capture_run(struct daemon *d, uint64_t now_ns)
{
	struct capture *c = d->capture;
	unsigned int i;

	if (now_ns >= c->retry_ns) {
		c->retry_ns = UINT64_MAX;
		for (i = 0; i < CONF_IFACES; i++)
			c->iface[i].due = c->iface[i].src.fd < 0 && c->iface[i].name[0];
	}
	if (c->asked == NOTHING)
		ask(d, now_ns);
	if (c->asked == NOTHING)
		return c->retry_ns;
	if (now_ns >= c->late_ns) {
		log_line("the opener has not answered for %llu s: flows and interfaces that are "
			 "new have to wait; restart paqmd if it hangs",
			 LATE_NS / 1000000000ULL);
		c->late_ns = UINT64_MAX;
	}
	return paqm_min64(c->retry_ns, c->late_ns);
}

void capture_stats(struct daemon *d, struct request_env *env)
{
	struct capture *c = d->capture;
	unsigned int i;

	env->link_foreign = c->link_foreign;
	env->ifaces = 0;
	for (i = 0; i < CONF_IFACES; i++) {
		struct iface *f = &c->iface[i];
		struct request_iface *r = &env->iface[env->ifaces];

		if (!f->name[0])
			continue;
		count(f);
		env->ifaces++;
		strcpy(r->name, f->name);
		r->up = f->src.fd >= 0;
		r->received = f->received;
		r->dropped = f->dropped;
	}
}
