// SPDX-License-Identifier: GPL-2.0
/*
 * Loads of a scenario that need no encoder, and their receivers. Run inside a lab guest, where time
 * is virtual: a sender keeps its schedule to the nanosecond and waiting costs nothing.
 *
 *	load udp ...	RTP flows at a rate of their own, deaf to the network: floods, audio
 *	load idle ...	RTP flows of three or four packets each
 *	load web ...	short TCP connections, so many a second
 *	load sink ...	receives UDP and tells what came, per port
 *	load websink ..	receives the connections
 *
 * Rates and sizes are those of IP packets. All random choices come from --seed. Each ends with one
 * JSON object on standard output.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "core/paqm_msg.h"

#define PROGRAM "load"
#include "testbed/guest/traffic.h"

#define RTP 12
#define STAMP (RTP + 8) /* payload up to and with the time of sending */
#define LEAST (HEADERS + STAMP)
#define FLOWS_MAX 2000
#define SSRCS_MAX 256
#define PORTS_MAX 1000
#define SPORT 20000 /* first source port of a load, which has a host of its own */
#define SPORTS 40000
#define CONNECTIONS_MAX 4096
#define CHUNK 65536

struct options {
	const char *to, *algorithm, *log;
	int port, ports, flows, size, kind, ssrcs, ect, low, high;
	double rate, off_rate, on_ms, off_ms, burst_ms, ports_per_s, ssrc_per_s, per_s, late_ms;
	int64_t from, until;
	unsigned short random[3];
};

static void sleep_until(int64_t when)
{
	struct timespec t = {when / NS, when % NS};

	clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &t, NULL);
}

static uint32_t draw32(struct options *o)
{
	return (uint32_t)jrand48(o->random);
}

static struct sockaddr_in address(const char *host, int port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};

	if (host && inet_pton(AF_INET, host, &a.sin_addr) != 1)
		die("--to %s: no IPv4 address", host);
	return a;
}

static void must_bind(int fd, int port)
{
	struct sockaddr_in a = address(NULL, port);

	if (bind(fd, (struct sockaddr *)&a, sizeof(a)))
		die("port %d: %s", port, strerror(errno));
}

/* ----------------------------------------------------------------- flows of RTP */

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

static int udp_main(struct options *o)
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
static int idle_main(struct options *o)
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

static int sink_main(struct options *o)
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

/* ------------------------------------------------------------- short connections */

struct connection {
	int64_t begin;
	int left, bytes;
	bool shut;
};

static struct connection connection[CONNECTIONS_MAX];
static struct pollfd polled[CONNECTIONS_MAX];
static int open_connections;

static void forget(int i)
{
	close(polled[i].fd);
	open_connections--;
	polled[i] = polled[open_connections];
	connection[i] = connection[open_connections];
}

static void open_connection(struct options *o, int64_t now)
{
	struct connection *c = &connection[open_connections];
	struct pollfd *p = &polled[open_connections];
	struct sockaddr_in to = address(o->to, o->port);

	if (open_connections == CONNECTIONS_MAX)
		die("more than %d connections at once", CONNECTIONS_MAX);
	*p = (struct pollfd){.fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0),
			     .events = POLLOUT};
	if (p->fd < 0 || setsockopt(p->fd, IPPROTO_TCP, TCP_CONGESTION, o->algorithm,
				    (socklen_t)strlen(o->algorithm)))
		die("no TCP socket with %s: %s", o->algorithm, strerror(errno));
	if (connect(p->fd, (struct sockaddr *)&to, sizeof(to)) && errno != EINPROGRESS)
		die("connect: %s", strerror(errno));
	*c = (struct connection){.begin = now};
	c->bytes = c->left = o->low + (int)(erand48(o->random) * (o->high - o->low + 1));
	open_connections++;
}

/* Writes what goes in; true: the connection is over. *good: all of it was received. */
static bool serve(int i, bool *good)
{
	static const char block[CHUNK];
	struct connection *c = &connection[i];
	struct pollfd *p = &polled[i];
	char byte;
	ssize_t n;

	*good = false;
	while (c->left) {
		n = send(p->fd, block, c->left < CHUNK ? (size_t)c->left : CHUNK, MSG_NOSIGNAL);
		if (n < 0)
			return errno != EAGAIN;
		c->left -= (int)n;
	}
	if (!c->shut) {
		shutdown(p->fd, SHUT_WR);
		c->shut = true;
		p->events = POLLIN;
		return false;
	}
	n = recv(p->fd, &byte, 1, 0);
	if (n < 0 && errno == EAGAIN)
		return false;
	*good = n == 0; /* the other side has read to the end and closed */
	return true;
}

static int wait_events(int64_t until, int64_t now)
{
	int64_t left = until > now ? until - now : 0;
	struct timespec t = {left / NS, left % NS};

	return ppoll(polled, (nfds_t)open_connections, &t, NULL);
}

static int64_t poisson(struct options *o)
{
	return llround(-log(1 - erand48(o->random)) / o->per_s * NS);
}

static int web_main(struct options *o)
{
	FILE *log = fopen(o->log, "w");
	int64_t now, next = o->from + poisson(o);
	int begun = 0, done = 0, failed = 0, i;
	bool good;

	if (!log)
		die("%s: %s", o->log, strerror(errno));
	fputs("t_ns,bytes,ms\n", log);
	/* what is under way at the end has another second */
	while ((now = now_ns()) < o->until + (open_connections ? NS : 0)) {
		if (next <= now && next < o->until) {
			open_connection(o, now);
			begun++;
			next += poisson(o);
		}
		wait_events(next < o->until ? next : o->until + NS, now);
		now = now_ns();
		for (i = open_connections - 1; i >= 0; i--) {
			struct connection c = connection[i];

			if (!polled[i].revents || !serve(i, &good))
				continue;
			done += good;
			failed += !good;
			if (good)
				fprintf(log, "%lld,%d,%.3f\n", (long long)c.begin, c.bytes,
					(double)(now - c.begin) / 1e6);
			forget(i);
		}
	}
	printf("{\"begun\": %d, \"done\": %d, \"failed\": %d, \"unfinished\": %d}\n", begun, done,
	       failed, open_connections);
	return fclose(log) ? 2 : 0;
}

static int websink_main(struct options *o)
{
	int one = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), i;
	static char block[CHUNK];
	uint64_t bytes = 0;
	int accepted = 0;
	int64_t now;

	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	must_bind(listener, o->port);
	if (listen(listener, CONNECTIONS_MAX))
		die("listen: %s", strerror(errno));
	polled[0] = (struct pollfd){.fd = listener, .events = POLLIN};
	open_connections = 1;
	while ((now = now_ns()) < o->until) {
		wait_events(o->until, now);
		for (i = open_connections - 1; i >= 1; i--) {
			ssize_t n = 0;

			if (!polled[i].revents)
				continue;
			while ((n = recv(polled[i].fd, block, sizeof(block), 0)) > 0)
				bytes += (uint64_t)n;
			if (n == 0 || errno != EAGAIN)
				forget(i);
		}
		while (polled[0].revents && open_connections < CONNECTIONS_MAX) {
			int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);

			if (fd < 0)
				break;
			accepted++;
			polled[open_connections++] = (struct pollfd){.fd = fd, .events = POLLIN};
		}
	}
	printf("{\"accepted\": %d, \"bytes\": %llu}\n", accepted, (unsigned long long)bytes);
	return 0;
}

/* -------------------------------------------------------------------------------- */

static void parse(struct options *o, int argc, char **argv)
{
	static const struct option options[] = {{"to", 1, NULL, 't'},
						{"port", 1, NULL, 'p'},
						{"ports", 1, NULL, 'P'},
						{"flows", 1, NULL, 'n'},
						{"size", 1, NULL, 'z'},
						{"type", 1, NULL, 'k'},
						{"rate", 1, NULL, 'r'},
						{"off-rate", 1, NULL, 'R'},
						{"on-ms", 1, NULL, 'o'},
						{"off-ms", 1, NULL, 'O'},
						{"burst-ms", 1, NULL, 'b'},
						{"ports-per-s", 1, NULL, 'c'},
						{"ssrc-per-s", 1, NULL, 's'},
						{"ssrcs", 1, NULL, 'S'},
						{"ect", 1, NULL, 'e'},
						{"per-s", 1, NULL, 'w'},
						{"low", 1, NULL, 'l'},
						{"high", 1, NULL, 'h'},
						{"algorithm", 1, NULL, 'a'},
						{"late-ms", 1, NULL, 'L'},
						{"from-ns", 1, NULL, 'f'},
						{"until-ns", 1, NULL, 'u'},
						{"seed", 1, NULL, 'x'},
						{"log", 1, NULL, 'g'},
						{0}};
	uint64_t seed = 1;
	int option, i;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 't':
			o->to = optarg;
			break;
		case 'p':
			o->port = (int)number("port", optarg, 1, 65535);
			break;
		case 'P':
			o->ports = (int)number("ports", optarg, 1, PORTS_MAX);
			break;
		case 'n':
			o->flows = (int)number("flows", optarg, 1, FLOWS_MAX);
			break;
		case 'z':
			o->size = (int)number("size", optarg, LEAST, MOST);
			break;
		case 'k':
			o->kind = (int)number("type", optarg, 0, 127);
			break;
		case 'r':
			o->rate = number("rate", optarg, 1, 1e12);
			break;
		case 'R':
			o->off_rate = number("off-rate", optarg, 0, 1e12);
			break;
		case 'o':
			o->on_ms = number("on-ms", optarg, 1, 1e6);
			break;
		case 'O':
			o->off_ms = number("off-ms", optarg, 0, 1e6);
			break;
		case 'b':
			o->burst_ms = number("burst-ms", optarg, 0, 1e6);
			break;
		case 'c':
			o->ports_per_s = number("ports-per-s", optarg, 0, 1e4);
			break;
		case 's':
			o->ssrc_per_s = number("ssrc-per-s", optarg, 0, 1e4);
			break;
		case 'S':
			o->ssrcs = (int)number("ssrcs", optarg, 1, SSRCS_MAX);
			break;
		case 'e':
			o->ect = (int)number("ect", optarg, 0, 3);
			break;
		case 'w':
			o->per_s = number("per-s", optarg, 0.001, 1e4);
			break;
		case 'l':
			o->low = (int)number("low", optarg, 1, 1e8);
			break;
		case 'h':
			o->high = (int)number("high", optarg, 1, 1e8);
			break;
		case 'a':
			o->algorithm = optarg;
			break;
		case 'L':
			o->late_ms = number("late-ms", optarg, 0, 1e6);
			break;
		case 'f':
			o->from = strtoll(optarg, NULL, 10);
			break;
		case 'u':
			o->until = strtoll(optarg, NULL, 10);
			break;
		case 'x':
			seed = strtoull(optarg, NULL, 10);
			break;
		case 'g':
			o->log = optarg;
			break;
		default:
			exit(2);
		}
	}
	if (o->until <= o->from)
		die("--until-ns must be later than --from-ns");
	if (o->high < o->low)
		die("--high is below --low");
	o->random[0] = 0x330E;
	o->random[1] = (unsigned short)seed;
	o->random[2] = (unsigned short)(seed >> 16 ^ 0xA5A5);
	for (i = 0; i < 10; i++) /* close seeds begin alike */
		erand48(o->random);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(struct options *o);
	} modes[] = {{"udp", udp_main},
		     {"idle", idle_main},
		     {"web", web_main},
		     {"sink", sink_main},
		     {"websink", websink_main}};
	struct options o = {.to = "127.0.0.1",
			    .algorithm = "cubic",
			    .log = "web.csv",
			    .port = 5000,
			    .ports = 1,
			    .flows = 1,
			    .size = 1200,
			    .kind = 96,
			    .ssrcs = 1,
			    .low = 30000,
			    .high = 60000,
			    .rate = 1e6,
			    .per_s = 1};
	size_t i;

	prctl(PR_SET_TIMERSLACK, 1);
	for (i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (argc > 1 && !strcmp(argv[1], modes[i].name)) {
			parse(&o, argc - 1, argv + 1);
			return modes[i].run(&o);
		}
	}
	fputs("usage: load udp|idle|web|sink|websink OPTION...\n", stderr);
	return 2;
}
