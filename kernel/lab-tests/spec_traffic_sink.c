// SPDX-License-Identifier: GPL-2.0
/* The sink of spec_traffic: what arrives, when, and what it takes on the link. */
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

#include "core/paqm_msg.h"
#include "kernel/lab-tests/spec_traffic.h"

#define ETHERNET 14
#define PORTS_MAX 256
#define WAIT_STEP 100	 /* us */
#define WAIT_STEPS 65536 /* up to 6.5 s, and all that is longer */

enum layer { ETHERNET_LAYER, ATM, PTM };

struct bin {
	uint32_t packets;
	uint64_t bytes;
	double wait_last; /* us */
};

struct port {
	int number, fd;
	uint64_t packets, bytes; /* ever */
	/* within the window */
	uint64_t window_packets, window_bytes, window_over;
	double wait_sum, wait_squares, wait_max; /* us */
	uint32_t *wait;				 /* how many waited for so many WAIT_STEP */
	struct bin *bin;
};

struct sink {
	struct port port[PORTS_MAX];
	int ports;
	int64_t epoch, from, until, bin_ns, end;
	size_t bins;
	double over; /* us: longer waits are counted */
	int overhead, mpu;
	enum layer layer;
	/* all ports, within the window */
	int64_t first, last;
	uint64_t wire, wire_last;
};

/*
 * What a packet takes on the link. Written from the definitions of the layers and not with the
 * core's function: it is the measure for that one.
 */
static uint64_t wire_bytes(const struct sink *s, int ip_len)
{
	int n = ip_len + ETHERNET + s->overhead;

	if (n < s->mpu)
		n = s->mpu;
	if (s->layer == ATM) /* whole cells: 48 bytes of payload and 5 of header */
		return (uint64_t)ceil(n / 48.0) * 53;
	if (s->layer == PTM) /* a byte of synchronisation for each 64 begun */
		return (uint64_t)n + (uint64_t)ceil(n / 64.0);
	return (uint64_t)n;
}

static void count(struct sink *s, struct port *p, const uint8_t *payload, int len, int64_t at)
{
	double wait = (double)(at - (int64_t)paqm_get64(payload + STAMP)) / 1000;
	uint64_t wire = wire_bytes(s, len + HEADERS);
	int64_t t = at - s->epoch;

	p->packets++;
	p->bytes += (uint64_t)len + HEADERS;
	if (t >= 0 && (size_t)(t / s->bin_ns) < s->bins) {
		struct bin *b = &p->bin[t / s->bin_ns];

		b->packets++;
		b->bytes += (uint64_t)len + HEADERS;
		b->wait_last = wait;
	}
	if (t < s->from || t >= s->until)
		return;
	p->window_packets++;
	p->window_bytes += wire;
	p->window_over += wait > s->over;
	p->wait_sum += wait;
	p->wait_squares += wait * wait;
	p->wait_max = fmax(p->wait_max, wait);
	p->wait[(size_t)fmin(fmax(wait, 0) / WAIT_STEP, WAIT_STEPS - 1)]++;
	s->wire += wire;
	if (!s->first || at < s->first)
		s->first = at;
	if (at >= s->last) {
		s->last = at;
		s->wire_last = wire;
	}
}

static int64_t stamp_of(struct msghdr *h)
{
	struct cmsghdr *c;
	struct timespec t;

	for (c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c)) {
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_TIMESTAMPNS) {
			memcpy(&t, CMSG_DATA(c), sizeof(t));
			return t.tv_sec * NS + t.tv_nsec;
		}
	}
	die("a packet without its time of arrival");
	return 0;
}

static void drain(struct sink *s, struct port *p)
{
	static uint8_t payload[BATCH][64]; /* the rest of a packet is cut off */
	static uint8_t control[BATCH][64];
	struct mmsghdr m[BATCH];
	struct iovec v[BATCH];
	int n, i;

	do {
		for (i = 0; i < BATCH; i++) {
			v[i] = (struct iovec){payload[i], sizeof(payload[i])};
			m[i].msg_hdr = (struct msghdr){.msg_iov = &v[i],
						       .msg_iovlen = 1,
						       .msg_control = control[i],
						       .msg_controllen = sizeof(control[i])};
		}
		n = recvmmsg(p->fd, m, BATCH, MSG_DONTWAIT | MSG_TRUNC, NULL);
		for (i = 0; i < n; i++)
			count(s, p, payload[i], (int)m[i].msg_len, stamp_of(&m[i].msg_hdr));
	} while (n == BATCH);
}

/* Of the waits within the window. */
static double deviation(const struct port *p)
{
	double n = (double)p->window_packets, mean = p->wait_sum / n;

	return p->window_packets ? sqrt(fmax(0, p->wait_squares / n - mean * mean)) : 0;
}

/* Pairs of a wait in WAIT_STEP, rounded down, and how many packets waited for so long. */
static void report_waits(const struct port *p)
{
	const char *between = "";

	for (size_t i = 0; i < WAIT_STEPS; i++) {
		if (!p->wait[i])
			continue;
		printf("%s[%zu, %u]", between, i, p->wait[i]);
		between = ", ";
	}
}

static void report_sink(const struct sink *s)
{
	double span = s->last > s->first ? (double)(s->last - s->first) / NS : 0;
	size_t b;
	int i;

	/* a packet holds the link after its departure: the last one's time is not in the span */
	printf("{\"wire_bps\": %.3f, \"span_s\": %.6f, \"bin_s\": %g, \"ports\": {",
	       span ? (double)(s->wire - s->wire_last) * 8 / span : 0, span,
	       (double)s->bin_ns / NS);
	for (i = 0; i < s->ports; i++) {
		const struct port *p = &s->port[i];

		printf("%s\"%d\": {\"packets\": %llu, \"bytes\": %llu, \"window_packets\": %llu, "
		       "\"window_over\": %llu, \"window_wire_bytes\": %llu, \"wait_mean_us\": "
		       "%.3f, \"wait_sd_us\": %.3f, \"wait_max_us\": %.3f, \"bins\": [",
		       i ? ", " : "", p->number, (unsigned long long)p->packets,
		       (unsigned long long)p->bytes, (unsigned long long)p->window_packets,
		       (unsigned long long)p->window_over, (unsigned long long)p->window_bytes,
		       p->window_packets ? p->wait_sum / (double)p->window_packets : 0,
		       deviation(p), p->wait_max);
		for (b = 0; b < s->bins; b++)
			printf("%s[%u, %llu, %.1f]", b ? ", " : "", p->bin[b].packets,
			       (unsigned long long)p->bin[b].bytes, p->bin[b].wait_last);
		printf("], \"waits\": [");
		report_waits(p);
		printf("]}");
	}
	printf("}}\n");
}

static void add_ports(struct sink *s, char *text)
{
	char *word, *save = NULL;

	for (word = strtok_r(text, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		char *dash = strchr(word, '-');
		int low, high;

		if (dash)
			*dash++ = 0;
		low = (int)number("ports", word, 1, 65535);
		high = dash ? (int)number("ports", dash, 1, 65535) : low;
		for (; low <= high; low++) {
			if (s->ports == PORTS_MAX)
				die("--ports: at most %d", PORTS_MAX);
			s->port[s->ports++].number = low;
		}
	}
}

int sink_main(char **argv)
{
	static const char *const layers[] = {
		[ETHERNET_LAYER] = "ethernet", [ATM] = "atm", [PTM] = "ptm", NULL};
	static struct sink s;
	double epoch = 0, from = 0, until = 1, end = 1, bin = 1, overhead = 0, mpu = 0;
	const char *ports = "", *layer = "ethernet";
	const struct option_of table[] = {
		{"ports", .word = &ports},
		{"epoch", .number = &epoch, .least = 0, .most = 9e18},
		{"from", .number = &from, .least = 0, .most = 1e6},
		{"until", .number = &until, .least = 0, .most = 1e6},
		{"end", .number = &end, .least = 0, .most = 1e6},
		{"over", .number = &s.over, .least = 0, .most = 1e9},
		{"bin", .number = &bin, .least = 1e-4, .most = 1e6},
		{"overhead", .number = &overhead, .least = -64, .most = 256},
		{"mpu", .number = &mpu, .least = 0, .most = 256},
		{"layer", .word = &layer},
		{NULL},
	};
	int i, one = 1;
	int64_t t;

	parse_options(argv, table);
	add_ports(&s, strdup(ports));
	s.bin_ns = (int64_t)(bin * NS);
	s.overhead = (int)overhead;
	s.mpu = (int)mpu;
	s.layer = (enum layer)one_of("layer", layer, layers);
	if (!s.ports)
		die("sink: --ports is missing");
	s.epoch = epoch ? (int64_t)epoch : now_ns();
	s.from = (int64_t)(from * NS);
	s.until = (int64_t)(until * NS);
	s.end = s.epoch + (int64_t)(end * NS);
	s.bins = (size_t)(end * NS / (double)s.bin_ns) + 1;
	for (i = 0; i < s.ports; i++) {
		struct port *p = &s.port[i];

		p->bin = calloc(s.bins, sizeof(*p->bin));
		p->wait = calloc(WAIT_STEPS, sizeof(*p->wait));
		if (!p->bin || !p->wait)
			die("no memory for %zu bins", s.bins);
		p->fd = udp_socket();
		force_buffer(p->fd, SO_RCVBUFFORCE, 1 << 27);
		if (setsockopt(p->fd, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof(one)))
			die("no time stamps of arrival: %s", strerror(errno));
		bind_port(p->fd, p->number);
	}
	/* Arrivals are stamped by the kernel: looking after them now and then is enough. */
	for (t = now_ns(); t < s.end; t = now_ns()) {
		int64_t next = t + NS / 100;
		struct timespec at = {next / NS, next % NS};

		clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &at, NULL);
		for (i = 0; i < s.ports; i++)
			drain(&s, &s.port[i]);
	}
	report_sink(&s);
	return 0;
}
