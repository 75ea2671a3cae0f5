// SPDX-License-Identifier: GPL-2.0
/* Packet capture; see capture.h. */
#include "capture.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <pcap/pcap.h>
#include <pcap/sll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ctl.h"
#include "ipc_server.h"
#include "log.h"

/* The longest message (IP header with options, quote with options) behind the
 * longest link header; media needs less.
 */
#define SNAPLEN 256

#define PACKETS_PER_TURN 64 /* of one interface, before the others get theirs */
#define RETRY_NS 2000000000ULL

/* Beyond this many flows the kernel passes all outgoing UDP and the flow table
 * alone decides: compiling a long filter takes longer than it saves.
 */
#define FILTER_FLOWS 48
#define FILTER_LEN (192 + FILTER_FLOWS * 128)

struct iface {
	struct source src; /* first: the loop knows the interface by it */
	struct daemon *d;
	char name[32];
	pcap_t *pcap; /* NULL: gone, to be tried again */
	int dlt;
	unsigned int index; /* of the device, 0 for "any" */
};

struct held {
	uint64_t t_ns;
	uint32_t len;
	uint8_t data[SNAPLEN];
};

struct capture {
	struct source link; /* rtnetlink; first: the loop knows us by it */
	unsigned int n;
	struct iface iface[REQUEST_IFACES];
	uint64_t retry_ns;
	/* realtime minus monotonic, read once per turn: captures carry realtime */
	uint64_t now_real, now_mono;
	/* Messages wait here until all interfaces have been read: the packet
	 * that one quotes may have left through another.
	 */
	unsigned int held;
	struct held msg[REQUEST_IFACES * PACKETS_PER_TURN];
};

static void filter_text(const struct engine *e, char *text, size_t size)
{
	static const char messages[] =
		"(inbound and (icmp[icmptype] = 253 or (icmp6 and ip6[40] = 100)))";
	char addr[ADDR_TEXT];
	size_t i, used;
	unsigned int n = 0;

	for (i = 0; i < ENGINE_FLOWS; i++)
		n += e->keys[i].used;
	if (!n) {
		snprintf(text, size, "%s", messages);
		return;
	}
	if (n > FILTER_FLOWS) {
		snprintf(text, size, "%s or (outbound and udp)", messages);
		return;
	}
	used = (size_t)snprintf(text, size, "%s or (outbound and udp and (", messages);
	for (i = 0, n = 0; i < ENGINE_FLOWS; i++) {
		const struct flow_key *k = &e->keys[i];

		if (!k->used)
			continue;
		used += (size_t)snprintf(
			text + used, size - used, "%s(dst host %s and src port %u and dst port %u)",
			n++ ? " or " : "", addr_text(&k->daddr, addr), k->sport, k->dport);
	}
	snprintf(text + used, size - used, "))");
}

/* libpcap applies a new filter a second time, in user space, to what is already
 * in the ring. There the direction of a packet is known only from the header of
 * cooked captures; elsewhere the next packet would always be lost. So such
 * filters go to the kernel directly, which exchanges them atomically. What the
 * old filter has let through does no harm: the flow table decides.
 */
static int attach(struct iface *f, const struct bpf_program *prog)
{
	struct sock_fprog p = {.len = (unsigned short)prog->bf_len};

	_Static_assert(sizeof(struct sock_filter) == sizeof(struct bpf_insn), "same layout");
	if (f->dlt == DLT_LINUX_SLL2 || f->dlt == DLT_LINUX_SLL) {
		if (!pcap_setfilter(f->pcap, (struct bpf_program *)prog))
			return 0;
		log_line("%s: cannot set the filter: %s", f->name, pcap_geterr(f->pcap));
		return -1;
	}
	p.filter = (struct sock_filter *)prog->bf_insns;
	if (!setsockopt(pcap_fileno(f->pcap), SOL_SOCKET, SO_ATTACH_FILTER, &p, sizeof(p)))
		return 0;
	log_line("%s: cannot set the filter: %s", f->name, strerror(errno));
	return -1;
}

static int set_filter(struct iface *f, const char *text)
{
	struct bpf_program prog;
	int err;

	if (pcap_compile(f->pcap, &prog, text, 1, PCAP_NETMASK_UNKNOWN)) {
		log_line("%s: cannot compile filter '%s': %s", f->name, text, pcap_geterr(f->pcap));
		return -1;
	}
	err = attach(f, &prog);
	pcap_freecode(&prog);
	return err;
}

/* Return: the IP packet behind the link header, or NULL. */
static const uint8_t *ip_of(const struct iface *f, const uint8_t *p, uint32_t *caplen)
{
	uint32_t hlen, type;

	switch (f->dlt) {
	case DLT_LINUX_SLL2:
		hlen = SLL2_HDR_LEN;
		type = *caplen >= hlen ? paqm_get16(p) : 0;
		break;
	case DLT_LINUX_SLL:
		hlen = SLL_HDR_LEN;
		type = *caplen >= hlen ? paqm_get16(p + 14) : 0;
		break;
	case DLT_EN10MB:
		hlen = 14;
		type = *caplen >= hlen ? paqm_get16(p + 12) : 0;
		break;
	default: /* DLT_RAW */
		hlen = 0;
		type = *caplen && *p >> 4 == 6 ? 0x86DD : 0x0800;
		break;
	}
	if ((type != 0x0800 && type != 0x86DD) || *caplen <= hlen)
		return NULL;
	*caplen -= hlen;
	return p + hlen;
}

static void packet(u_char *user, const struct pcap_pkthdr *h, const u_char *p)
{
	struct iface *f = (struct iface *)user;
	struct capture *c = f->d->capture;
	uint64_t t = (uint64_t)h->ts.tv_sec * 1000000000ULL + (uint64_t)h->ts.tv_usec;
	uint64_t age = c->now_real > t ? c->now_real - t : 0;
	uint32_t caplen = h->caplen;
	const uint8_t *ip = ip_of(f, p, &caplen);
	struct held *m;

	if (!ip)
		return;
	/* A step of the wall clock must not age or rejuvenate packets much. */
	t = c->now_mono - paqm_min64(age, 1000000000ULL);
	if (caplen < 20 || (*ip >> 4 == 6 ? ip[6] != 58 : ip[9] != 1)) {
		engine_media(&f->d->engine, ip, caplen, t);
		return;
	}
	if (c->held == sizeof(c->msg) / sizeof(c->msg[0]))
		return; /* cannot happen: a turn reads no more than that */
	m = &c->msg[c->held++];
	m->t_ns = t;
	m->len = caplen < SNAPLEN ? caplen : SNAPLEN;
	memcpy(m->data, ip, m->len);
}

static void log_verdict(const struct verdict *v)
{
	char addr[ADDR_TEXT];

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

		engine_message(&d->engine, m->data, m->len, m->t_ns, &v);
		log_verdict(&v);
		ctl_event_verdict(d, &v, c->now_real - (c->now_mono - m->t_ns));
		if (v.changed)
			ipc_push(d, v.flow);
	}
	c->held = 0;
}

static void iface_lost(struct iface *f, const char *why, uint64_t now_ns)
{
	log_line("%s: capture ended (%s); trying again every %llu s", f->name, why,
		 RETRY_NS / 1000000000ULL);
	pcap_close(f->pcap);
	f->pcap = NULL;
	f->d->capture->retry_ns = now_ns + RETRY_NS;
}

static void iface_ready(struct source *s, uint32_t events)
{
	struct daemon *d = ((struct iface *)s)->d;
	struct capture *c = d->capture;
	unsigned int i;

	(void)events;
	c->now_real = clock_ns(CLOCK_REALTIME);
	c->now_mono = clock_ns(CLOCK_MONOTONIC);
	for (i = 0; i < c->n; i++) {
		struct iface *f = &c->iface[i];

		if (f->pcap && pcap_dispatch(f->pcap, PACKETS_PER_TURN, packet, (u_char *)f) < 0)
			iface_lost(f, pcap_geterr(f->pcap), c->now_mono);
	}
	judge_held(d);
}

/* Links have changed. libpcap alone does not reliably notice that its device is
 * gone: it asks when the link goes down, and if the device still exists at that
 * moment, no further error ever comes.
 */
static void link_ready(struct source *s, uint32_t events)
{
	struct capture *c = (struct capture *)s;
	char buf[8192];
	unsigned int i;

	(void)events;
	/* What happened does not matter, nor whether some of it was lost. */
	while (recv(s->fd, buf, sizeof(buf), MSG_DONTWAIT) > 0 || errno == ENOBUFS)
		errno = 0;
	for (i = 0; i < c->n; i++) {
		struct iface *f = &c->iface[i];

		if (f->pcap && f->index && if_nametoindex(f->name) != f->index)
			iface_lost(f, "the interface has gone", clock_ns(CLOCK_MONOTONIC));
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

/* Why a handle could not be opened, in words that help. */
static void log_open(const struct iface *f, int err)
{
	const char *hint = "";

	if (err == PCAP_ERROR_PERM_DENIED)
		hint = "; run as root or with CAP_NET_RAW";
	else if (err == PCAP_ERROR_NO_SUCH_DEVICE)
		hint = "; see 'ip link' for the names";
	else if (err == PCAP_ERROR_IFACE_NOT_UP)
		hint = "; see 'ip link set DEV up'";
	log_line("cannot capture on %s: %s%s%s%s", f->name, pcap_statustostr(err),
		 *pcap_geterr(f->pcap) ? ": " : "", pcap_geterr(f->pcap), hint);
}

static void discard(u_char *user, const struct pcap_pkthdr *h, const u_char *p)
{
	(void)user;
	(void)h;
	(void)p;
}

static int iface_open(struct iface *f, bool quiet)
{
	char errbuf[PCAP_ERRBUF_SIZE], text[FILTER_LEN];
	int err, i;

	f->index = if_nametoindex(f->name);
	f->pcap = pcap_create(f->name, errbuf);
	if (!f->pcap) {
		log_line("cannot capture on %s: %s", f->name, errbuf);
		return -1;
	}
	pcap_set_snaplen(f->pcap, SNAPLEN);
	pcap_set_promisc(f->pcap, 0);
	/* A message must be seen when it arrives, not when a block is full. */
	pcap_set_immediate_mode(f->pcap, 1);
	pcap_set_tstamp_precision(f->pcap, PCAP_TSTAMP_PRECISION_NANO);
	err = pcap_activate(f->pcap);
	if (err < 0) {
		if (!quiet)
			log_open(f, err);
		goto fail;
	}
	if (!strcmp(f->name, "any"))
		pcap_set_datalink(f->pcap, DLT_LINUX_SLL2);
	f->dlt = pcap_datalink(f->pcap);
	if (f->dlt != DLT_LINUX_SLL2 && f->dlt != DLT_LINUX_SLL && f->dlt != DLT_EN10MB &&
	    f->dlt != DLT_RAW) {
		log_line("%s: link type %s is not supported; use '-i any'", f->name,
			 pcap_datalink_val_to_name(f->dlt));
		goto fail;
	}
	filter_text(&f->d->engine, text, sizeof(text));
	if (pcap_setnonblock(f->pcap, 1, errbuf) || set_filter(f, text))
		goto fail;
	/* What came in before there was a filter may be anything; the ring holds
	 * a few thousand packets.
	 */
	for (i = 0; i < 16 && pcap_dispatch(f->pcap, 1000, discard, NULL) > 0; i++)
		;
	f->src.fd = pcap_get_selectable_fd(f->pcap);
	if (loop_watch(f->d, &f->src, EPOLLIN)) {
		log_line("%s: cannot wait for packets: %s", f->name, strerror(errno));
		goto fail;
	}
	return 0;
fail:
	pcap_close(f->pcap);
	f->pcap = NULL;
	return -1;
}

int capture_open(struct daemon *d, const char *const *names, unsigned int n)
{
	struct capture *c = calloc(1, sizeof(*c));
	unsigned int i;

	if (!c)
		return -1;
	d->capture = c;
	c->retry_ns = UINT64_MAX;
	if (link_open(d))
		return -1;
	for (i = 0; i < n; i++) {
		struct iface *f = &c->iface[c->n++];

		f->d = d;
		f->src.ready = iface_ready;
		snprintf(f->name, sizeof(f->name), "%s", names[i]);
		if (iface_open(f, false))
			return -1;
	}
	return 0;
}

void capture_close(struct daemon *d)
{
	unsigned int i;

	if (!d->capture)
		return;
	for (i = 0; i < d->capture->n; i++)
		if (d->capture->iface[i].pcap)
			pcap_close(d->capture->iface[i].pcap);
	if (d->capture->link.fd >= 0)
		close(d->capture->link.fd);
	free(d->capture);
	d->capture = NULL;
}

void capture_filter(struct daemon *d)
{
	struct capture *c = d->capture;
	char text[FILTER_LEN];
	unsigned int i;

	filter_text(&d->engine, text, sizeof(text));
	for (i = 0; i < c->n; i++)
		if (c->iface[i].pcap)
			set_filter(&c->iface[i], text);
}

uint64_t capture_retry(struct daemon *d, uint64_t now_ns)
{
	struct capture *c = d->capture;
	unsigned int i;

	if (now_ns < c->retry_ns)
		return c->retry_ns;
	c->retry_ns = UINT64_MAX;
	for (i = 0; i < c->n; i++) {
		if (c->iface[i].pcap)
			continue;
		if (iface_open(&c->iface[i], true))
			c->retry_ns = now_ns + RETRY_NS;
		else
			log_line("%s: capturing again", c->iface[i].name);
	}
	return c->retry_ns;
}

void capture_stats(struct daemon *d, struct request_env *env)
{
	struct capture *c = d->capture;
	unsigned int i;

	env->ifaces = c->n;
	for (i = 0; i < c->n; i++) {
		struct request_iface *r = &env->iface[i];
		struct pcap_stat st = {0};

		snprintf(r->name, sizeof(r->name), "%s", c->iface[i].name);
		r->up = c->iface[i].pcap;
		if (r->up)
			pcap_stats(c->iface[i].pcap, &st);
		r->received = st.ps_recv;
		r->dropped = st.ps_drop;
	}
}
