// SPDX-License-Identifier: GPL-2.0
/* Flows of RTP and their sink: modes udp, idle and sink of load. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "core/paqm_msg.h"
#include "testbed/guest/load.h"

#define SPORT 20000 /* first source port of a load, which has a host of its own */
#define SPORTS 40000

static uint32_t draw32(struct options *o)
{
	return (uint32_t)jrand48(o->random);
}

struct flow {
	int fd, index;
	struct sockaddr_in to;
	double rate, credit;
	int64_t next, next_port, next_ssrc;
	uint32_t ssrc[SSRCS_MAX];
	uint16_t seq[SSRCS_MAX];
	uint64_t packets, bytes, refused;
	int left; /* packets of an idle flow */
};

static int next_sport;

static void open_flow(struct options *o, struct flow *f)
{
	int buffer = 1 << 26, tos = o->ect;

	f->fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	if (f->fd < 0)
		die("no UDP socket: %s", strerror(errno));
	/* what waits in the delay of the path counts against the socket */
	if (setsockopt(f->fd, SOL_SOCKET, SO_SNDBUFFORCE, &buffer, sizeof(buffer)) ||
	    setsockopt(f->fd, IPPROTO_IP, IP_TOS, &tos, sizeof(tos)))
		die("socket options: %s", strerror(errno));
	must_bind(f->fd, SPORT + next_sport++ % SPORTS);
}

static void renew_ssrcs(struct options *o, struct flow *f)
{
	int i;

	for (i = 0; i < o->ssrcs; i++) {
		f->ssrc[i] = draw32(o);
		f->seq[i] = (uint16_t)draw32(o);
	}
}

static void send_one(struct options *o, struct flow *f, int size, int64_t now)
{
	static uint8_t payload[MOST];
	int which = o->ssrcs > 1 ? (int)(erand48(o->random) * o->ssrcs) : 0;
	int len = size - HEADERS;

	payload[0] = 0x80;
	payload[1] = (uint8_t)o->kind;
	paqm_put16(payload + 2, f->seq[which]++);
	paqm_put32(payload + 4, (uint32_t)(now / 1000 * 90 / 1000));
	paqm_put32(payload + 8, f->ssrc[which]);
	paqm_put64(payload + RTP, (uint64_t)now);
	if (sendto(f->fd, payload, (size_t)len, MSG_DONTWAIT, (struct sockaddr *)&f->to,
		   sizeof(f->to)) < 0) {
		f->refused++;
		return;
	}
	f->packets++;
	f->bytes += (uint64_t)size;
}

/* The rate of a flow at a moment; *until: how long it stays so. */
static double rate_at(const struct options *o, const struct flow *f, int64_t t, int64_t *until)
{
	int64_t on = (int64_t)(o->on_ms * 1e6), cycle = on + (int64_t)(o->off_ms * 1e6);
	int64_t place;

	*until = INT64_MAX;
	if (!o->off_ms)
		return f->rate;
	place = (t - o->from) % cycle;
	*until = t - place + (place < on ? on : cycle);
	return place < on ? f->rate : o->off_rate / o->flows;
}

static void schedule(const struct options *o, struct flow *f)
{
	int64_t until;
	double rate = rate_at(o, f, f->next, &until);
	int64_t next = INT64_MAX;

	if (o->burst_ms)
		next = f->next + (int64_t)(o->burst_ms * 1e6);
	else if (rate > 0)
		next = f->next + llround(o->size * 8.0 / rate * NS);
	f->next = next < until ? next : until;
}

static void act(struct options *o, struct flow *f, int64_t now)
{
	int64_t until;

	if (o->ports_per_s && now >= f->next_port) {
		close(f->fd);
		open_flow(o, f);
		f->next_port += llround(NS / o->ports_per_s);
	}
	if (o->ssrc_per_s && now >= f->next_ssrc) {
		renew_ssrcs(o, f);
		f->next_ssrc += llround(NS / o->ssrc_per_s);
	}
	if (o->burst_ms) {
		f->credit += rate_at(o, f, f->next, &until) * o->burst_ms / 1000 / 8 / o->size;
		for (; f->credit >= 1; f->credit--)
			send_one(o, f, o->size, now);
	} else if (rate_at(o, f, f->next, &until) > 0) {
		send_one(o, f, o->size, now);
	}
	schedule(o, f);
}

static void report_flows(const struct flow *flow, int flows)
{
	uint64_t packets = 0, bytes = 0, refused = 0;
	int i;

	for (i = 0; i < flows; i++) {
		packets += flow[i].packets;
		bytes += flow[i].bytes;
		refused += flow[i].refused;
	}
	printf("{\"packets\": %llu, \"bytes\": %llu, \"refused\": %llu}\n",
	       (unsigned long long)packets, (unsigned long long)bytes, (unsigned long long)refused);
}

static struct flow *make_flows(struct options *o)
{
	struct flow *flow = calloc((size_t)o->flows, sizeof(*flow));
	int i;

	if (!flow)
		die("no memory for %d flows", o->flows);
	for (i = 0; i < o->flows; i++) {
		flow[i].index = i;
		flow[i].to = address(o->to, o->port + i % o->ports);
		flow[i].rate = o->rate / o->flows;
		flow[i].next_port = o->from + NS;
		flow[i].next_ssrc = o->from + NS;
		renew_ssrcs(o, &flow[i]);
		open_flow(o, &flow[i]);
	}
	return flow;
}

static struct flow *earliest(struct flow *flow, int flows)
{
	struct flow *first = flow;
	int i;

	for (i = 1; i < flows; i++)
		if (flow[i].next < first->next)
			first = &flow[i];
	return first;
}

int udp_main(struct options *o)
{
	struct flow *flow = make_flows(o), *f;
	int i;

	for (i = 0; i < o->flows; i++) {
		/* flows of one kind do not beat in step */
		double gap = o->burst_ms ? o->burst_ms * 1e6 : o->size * 8.0 / flow[i].rate * NS;

		flow[i].next = o->from + (int64_t)(erand48(o->random) * gap);
	}
	while ((f = earliest(flow, o->flows))->next < o->until) {
		sleep_until(f->next);
		act(o, f, f->next);
	}
	report_flows(flow, o->flows);
	return 0;
}

/* Each flow begins somewhere within the time, sends three or four packets and is heard no more. */
int idle_main(struct options *o)
{
	struct flow *flow = make_flows(o), *f;
	int i;

	for (i = 0; i < o->flows; i++) {
		flow[i].next =
			o->from + (int64_t)(erand48(o->random) * (double)(o->until - o->from));
		flow[i].left = 3 + (int)(erand48(o->random) * 2);
	}
	while ((f = earliest(flow, o->flows))->next != INT64_MAX) {
		sleep_until(f->next);
		send_one(o, f, o->size, f->next);
		f->next = --f->left ? f->next + NS / 50 : INT64_MAX;
	}
	report_flows(flow, o->flows);
	return 0;
}

/* ------------------------------------------------------------------ sink of them */

struct port {
	int fd;
	uint64_t packets, bytes, late, ce, sources;
	uint32_t source;  /* of the last packet */
	double sum, most; /* us from sending to arrival */
};

static void note_control(struct msghdr *h, struct port *p, int64_t *at)
{
	struct cmsghdr *c;
	struct timespec t;

	for (c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c)) {
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_TIMESTAMPNS) {
			memcpy(&t, CMSG_DATA(c), sizeof(t));
			*at = t.tv_sec * NS + t.tv_nsec;
		} else if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) {
			p->ce += (*CMSG_DATA(c) & 3) == 3;
		}
	}
}

static void drain(const struct options *o, struct port *p)
{
	static uint8_t payload[BATCH][64], control[BATCH][128]; /* the rest is cut off */
	static struct sockaddr_in from[BATCH];
	struct mmsghdr m[BATCH];
	struct iovec v[BATCH];
	int n, i;

	do {
		for (i = 0; i < BATCH; i++) {
			v[i] = (struct iovec){payload[i], sizeof(payload[i])};
			m[i].msg_hdr = (struct msghdr){.msg_name = &from[i],
						       .msg_namelen = sizeof(from[i]),
						       .msg_iov = &v[i],
						       .msg_iovlen = 1,
						       .msg_control = control[i],
						       .msg_controllen = sizeof(control[i])};
		}
		n = recvmmsg(p->fd, m, BATCH, MSG_DONTWAIT | MSG_TRUNC, NULL);
		for (i = 0; i < n; i++) {
			int64_t sent, at = 0;
			double delay;

			note_control(&m[i].msg_hdr, p, &at);
			sent = (int64_t)paqm_get64(payload[i] + RTP);
			delay = (double)(at - sent) / 1000;
			p->packets++;
			p->bytes += m[i].msg_len + HEADERS;
			p->sum += delay;
			p->most = fmax(p->most, delay);
			p->late += delay > o->late_ms * 1000;
			p->sources += p->source != from[i].sin_port;
			p->source = from[i].sin_port;
		}
	} while (n == BATCH);
}

int sink_main(struct options *o)
{
	static struct port port[PORTS_MAX];
	int i, one = 1, buffer = 1 << 27;

	for (i = 0; i < o->ports; i++) {
		struct port *p = &port[i];

		p->fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
		if (p->fd < 0 ||
		    setsockopt(p->fd, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof(buffer)) ||
		    setsockopt(p->fd, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof(one)) ||
		    setsockopt(p->fd, IPPROTO_IP, IP_RECVTOS, &one, sizeof(one)))
			die("sink: no socket: %s", strerror(errno));
		must_bind(p->fd, o->port + i);
	}
	/* The kernel stamps arrivals: to look after them now and then is enough. */
	while (now_ns() < o->until) {
		sleep_until(now_ns() + NS / 50);
		for (i = 0; i < o->ports; i++)
			drain(o, &port[i]);
	}
	printf("{");
	for (i = 0; i < o->ports; i++) {
		const struct port *p = &port[i];

		printf("%s\"%d\": {\"received\": %llu, \"bytes\": %llu, \"late\": %llu, \"ce\": "
		       "%llu, \"source_changes\": %llu, \"delay_mean_ms\": %.3f, \"delay_max_ms\": "
		       "%.3f}",
		       i ? ", " : "", o->port + i, (unsigned long long)p->packets,
		       (unsigned long long)p->bytes, (unsigned long long)p->late,
		       (unsigned long long)p->ce, (unsigned long long)p->sources,
		       p->packets ? p->sum / (double)p->packets / 1000 : 0, p->most / 1000);
	}
	printf("}\n");
	return 0;
}
