// SPDX-License-Identifier: GPL-2.0
/*
 * Senders and sink of the acceptance checks (spec.py). Run inside a lab guest, where time is
 * virtual: a sender keeps its schedule to the nanosecond and costs no time.
 *
 *	spec_traffic send ...	UDP flows, constant or Poisson, fixed or following the advice of the
 *				router (ICMP, docs/protocol.md) after a lag of their own; or what
 *				paqmd makes of the advice of several (feedback-daemon/paqm_ipc.h)
 *	spec_traffic sink ...	receives them: rates on the link, waiting times, series
 *
 * Sizes and rates are those of IP packets. Every payload carries its time of sending, so the
 * sink measures delays without the statistics of the queue under test. Both end with one JSON
 * object on standard output.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "core/paqm_msg.h"
#include "feedback-daemon/paqm_ipc.h"

#define PROGRAM "spec_traffic"
#include "testbed/guest/traffic.h"

#define STAMP 12   /* offset of the time of sending: behind an RTP header */
#define LEAST (HEADERS + STAMP + 8)
#define ETHERNET 14
#define FLOWS_MAX 256
#define PENDING 64
#define SIZES_MAX 32
#define PORTS_MAX 64
#define SSRC 0x1000 /* of the first flow */

static int udp_socket(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);

	if (fd < 0)
		die("no UDP socket: %s", strerror(errno));
	return fd;
}

static void force_buffer(int fd, int option, int bytes)
{
	if (setsockopt(fd, SOL_SOCKET, option, &bytes, sizeof(bytes)))
		die("socket buffer of %d bytes: %s", bytes, strerror(errno));
}

static void bind_port(int fd, int port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};

	if (bind(fd, (struct sockaddr *)&a, sizeof(a)))
		die("UDP port %d: %s", port, strerror(errno));
}

/* ------------------------------------------------------------------------ sender */

enum law { FIXED, ECF, ERF, PAQMD };

struct change {
	int64_t due;
	double value;
};

struct flow {
	int fd;
	struct sockaddr_in to;
	double rate; /* bit/s */
	int64_t last, next;
	uint64_t packets, bytes;
	uint32_t seq_seen, boot_seen; /* of the router */
	bool told;
	struct change pending[PENDING];
	unsigned int head, tail;
	int size; /* of the next packet */
};

struct sender {
	struct flow flow[FLOWS_MAX];
	int flows, sport;
	bool rtp, poisson;
	enum law law;
	double least, most;
	int64_t lag;
	int low[SIZES_MAX], high[SIZES_MAX], sizes;
	unsigned short random[3];
	double safe; /* bit/s while paqmd has no advice in force */
	int ear;     /* raw ICMP socket or connection to paqmd; -1: does not listen */
	FILE *log;
	int64_t epoch;
	uint64_t refused, messages, repeated;
	/* the same arrivals at an ideal server of this rate: its waiting time */
	double ideal_rate, ideal_work, ideal_sum, ideal_max;
	int64_t ideal_last;
	uint64_t ideal_from, ideal_count;
};

static void parse_sizes(struct sender *s, char *text)
{
	char *word, *save = NULL;

	for (word = strtok_r(text, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		char *dash = strchr(word, '-');

		if (s->sizes == SIZES_MAX)
			die("--sizes: at most %d", SIZES_MAX);
		if (dash)
			*dash++ = 0;
		s->low[s->sizes] = (int)number("sizes", word, LEAST, MOST);
		s->high[s->sizes] =
			dash ? (int)number("sizes", dash, LEAST, MOST) : s->low[s->sizes];
		if (s->high[s->sizes] < s->low[s->sizes])
			die("--sizes: %d-%d is empty", s->low[s->sizes], s->high[s->sizes]);
		s->sizes++;
	}
}

static int draw_size(struct sender *s)
{
	int i = s->sizes == 1 ? 0 : (int)(erand48(s->random) * s->sizes);
	int span = s->high[i] - s->low[i];

	return s->low[i] + (span ? (int)(erand48(s->random) * (span + 1)) : 0);
}

/* When the next packet goes, @from the last. */
static void schedule(struct sender *s, struct flow *f, int64_t from)
{
	double gap = f->size * 8.0 / f->rate * NS;

	if (s->poisson)
		gap *= -log(1.0 - erand48(s->random));
	f->next = from + (int64_t)llround(gap);
}

static void ideal_arrival(struct sender *s, int64_t now, int bytes)
{
	if (!s->ideal_rate)
		return;
	s->ideal_work -= (double)(now - s->ideal_last) / NS * s->ideal_rate;
	if (s->ideal_work < 0)
		s->ideal_work = 0;
	s->ideal_last = now;
	if (++s->ideal_count > s->ideal_from) {
		s->ideal_sum += s->ideal_work / s->ideal_rate;
		if (s->ideal_work / s->ideal_rate > s->ideal_max)
			s->ideal_max = s->ideal_work / s->ideal_rate;
	}
	s->ideal_work += bytes * 8.0;
}

static void send_one(struct sender *s, struct flow *f, int64_t now)
{
	static uint8_t payload[MOST];
	int len = f->size - HEADERS;

	if (s->rtp) {
		payload[0] = 0x80;
		payload[1] = 96;
		paqm_put16(payload + 2, (uint16_t)f->packets);
		paqm_put32(payload + 4, (uint32_t)(f->packets * 90));
		paqm_put32(payload + 8, SSRC + (uint32_t)(f - s->flow));
	} else {
		memset(payload, 0xFF, STAMP);
	}
	paqm_put64(payload + STAMP, (uint64_t)now);
	f->packets++;
	f->bytes += (uint64_t)f->size;
	if (sendto(f->fd, payload, (size_t)len, MSG_DONTWAIT, (struct sockaddr *)&f->to,
		   sizeof(f->to)) < 0) {
		f->packets--;
		f->bytes -= (uint64_t)f->size;
		s->refused++;
	} else {
		ideal_arrival(s, now, f->size);
	}
	f->last = f->next;
	f->size = draw_size(s);
	schedule(s, f, f->last);
}

/* A message becomes a change that takes effect after the lag of the source. */
static void take_message(struct sender *s, const uint8_t *packet, size_t len, int64_t now)
{
	size_t header = len ? (packet[0] & 15U) * 4 : 0;
	struct paqm_quote quote;
	struct paqm_msg m;
	struct flow *f;
	paqm_u64 fixed;
	int i;

	if (len <= header || paqm_icmp_decode(packet + header, (uint32_t)(len - header),
					      PAQM_ICMP_TYPE_EXP, &m, &quote) != PAQM_MSG_OK)
		return;
	i = quote.sport - s->sport;
	if (i < 0 || i >= s->flows)
		return; /* another program's */
	f = &s->flow[i];
	if (f->told && f->boot_seen == m.boot && !paqm_seq_newer(m.seq, f->seq_seen)) {
		s->repeated++;
		return;
	}
	f->told = true;
	f->boot_seen = m.boot;
	f->seq_seen = m.seq;
	s->messages++;
	if (s->law != ECF)
		fixed = m.rate << 20;
	else if (!m.ecf || paqm_f32_decode(m.ecf, 20, &fixed))
		return;
	f->pending[f->tail++ % PENDING] = (struct change){now + s->lag, ldexp((double)fixed, -20)};
	if (f->tail - f->head > PENDING)
		die("flow %d: more than %d messages within the lag", i, PENDING);
	if (s->log)
		fprintf(s->log, "%.6f %d %u %.9g %.0f\n", (double)(now - s->epoch) / NS, i, m.seq,
			ldexp((double)fixed, -20), f->rate);
}

static void take_record(struct sender *s, const uint8_t *record, size_t len, int64_t now)
{
	struct paqm_ipc_rate r;
	struct flow *f;

	if (len != sizeof(r))
		return;
	memcpy(&r, record, sizeof(r));
	if (r.hdr.magic != PAQM_IPC_MAGIC || r.hdr.version != PAQM_IPC_VERSION ||
	    r.hdr.kind != PAQM_IPC_RATE || r.cookie >= (uint64_t)s->flows)
		return;
	f = &s->flow[r.cookie];
	if (s->log)
		fprintf(s->log, "%.6f %d %u %llu %u %u %llx\n", (double)(now - s->epoch) / NS,
			(int)r.cookie, r.seq, (unsigned long long)r.rate_bps, r.cause, r.routers,
			(unsigned long long)r.router_id);
	if (r.cause == PAQM_CAUSE_NONE)
		return;
	s->messages++;
	f->pending[f->tail++ % PENDING] =
		(struct change){now + s->lag, r.rate_bps ? (double)r.rate_bps : s->safe};
	if (f->tail - f->head > PENDING)
		die("flow %d: more than %d records within the lag", (int)r.cookie, PENDING);
}

static void listen_ear(struct sender *s, int64_t now)
{
	uint8_t buf[2048];
	ssize_t n;

	while ((n = recv(s->ear, buf, sizeof(buf), MSG_DONTWAIT)) > 0) {
		if (s->law == PAQMD)
			take_record(s, buf, (size_t)n, now);
		else
			take_message(s, buf, (size_t)n, now);
	}
	if (!n)
		die("paqmd has closed the connection");
}

static void map_v4(uint8_t to[16], const struct in_addr *from)
{
	memset(to, 0, 10);
	memset(to + 10, 0xFF, 2);
	memcpy(to + 12, from, 4);
}

/* Register every flow; traffic begins when paqmd watches for it. */
static void join_paqmd(struct sender *s, const char *path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	struct paqm_ipc_registered answer;
	int i, answers = 0;
	uint8_t buf[256];
	ssize_t n;

	if (strlen(path) >= sizeof(a.sun_path))
		die("--paqmd: the path is too long for a socket");
	strcpy(a.sun_path, path);
	s->ear = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	if (s->ear < 0 || connect(s->ear, (struct sockaddr *)&a, sizeof(a)))
		die("paqmd at %s: %s", path, strerror(errno));
	for (i = 0; i < s->flows; i++) {
		struct paqm_ipc_register r = {
			.hdr = {PAQM_IPC_MAGIC, PAQM_IPC_VERSION, PAQM_IPC_REGISTER, sizeof(r)},
			.sport = (uint16_t)(s->sport + i),
			.dport = ntohs(s->flow[i].to.sin_port),
			.ssrc = SSRC + (uint32_t)i,
			.floor_bps = (uint64_t)s->least,
			.ceil_bps = (uint64_t)s->most,
			.cookie = (uint64_t)i,
		};

		map_v4(r.daddr, &s->flow[i].to.sin_addr);
		if (send(s->ear, &r, sizeof(r), MSG_NOSIGNAL) != sizeof(r))
			die("paqmd at %s: %s", path, strerror(errno));
	}
	while (answers < s->flows) {
		n = recv(s->ear, buf, sizeof(buf), 0);
		if (n <= 0)
			die("paqmd at %s closed the connection", path);
		if (n != sizeof(answer))
			continue; /* the present state of a flow */
		memcpy(&answer, buf, sizeof(answer));
		if (answer.hdr.kind != PAQM_IPC_REGISTERED)
			continue;
		if (answer.error)
			die("paqmd refused flow %llu: %s", (unsigned long long)answer.cookie,
			    strerror(answer.error));
		answers++;
	}
}

static void apply_changes(struct sender *s, struct flow *f, int64_t now)
{
	while (f->head != f->tail && f->pending[f->head % PENDING].due <= now) {
		double v = f->pending[f->head++ % PENDING].value;
		double old = f->rate;

		if (s->law != ECF)
			f->rate = v;
		else
			f->rate = v < 1 ? f->rate * v : v > 1 ? f->rate + v : f->rate;
		f->rate = fmin(fmax(f->rate, s->least), s->most);
		/* what is left of the gap stretches or shrinks with the rate */
		if (f->next > now)
			f->next = now + (int64_t)((double)(f->next - now) * old / f->rate);
	}
}

static int64_t next_event(struct sender *s, int64_t until)
{
	int64_t t = until;
	int i;

	for (i = 0; i < s->flows; i++) {
		struct flow *f = &s->flow[i];

		if (f->next < t)
			t = f->next;
		if (f->head != f->tail && f->pending[f->head % PENDING].due < t)
			t = f->pending[f->head % PENDING].due;
	}
	return t;
}

static void wait_until(struct sender *s, int64_t when, int64_t now)
{
	struct timespec t = {when / NS, when % NS};
	struct pollfd p = {.fd = s->ear, .events = POLLIN};

	if (when <= now)
		return;
	if (s->ear < 0) {
		clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &t, NULL);
		return;
	}
	t = (struct timespec){(when - now) / NS, (when - now) % NS};
	if (ppoll(&p, 1, &t, NULL) > 0)
		listen_ear(s, now_ns());
}

static void run_sender(struct sender *s, int64_t begin, int64_t until)
{
	int64_t now, t;
	int i;

	for (i = 0; i < s->flows; i++) {
		struct flow *f = &s->flow[i];

		f->size = draw_size(s);
		/* flows of one kind do not beat in step */
		f->next = begin + (int64_t)(erand48(s->random) * f->size * 8.0 / f->rate * NS);
	}
	s->ideal_last = begin;
	for (now = now_ns(); (t = next_event(s, until)) < until; now = now_ns()) {
		if (t > now) {
			wait_until(s, t, now);
			continue;
		}
		for (i = 0; i < s->flows; i++) {
			apply_changes(s, &s->flow[i], now);
			if (s->flow[i].next <= now)
				send_one(s, &s->flow[i], now);
		}
	}
}

static void report_sender(const struct sender *s)
{
	uint64_t packets = 0, bytes = 0, counted = 0;
	int i;

	for (i = 0; i < s->flows; i++) {
		packets += s->flow[i].packets;
		bytes += s->flow[i].bytes;
	}
	if (s->ideal_count > s->ideal_from)
		counted = s->ideal_count - s->ideal_from;
	printf("{\"packets\": %llu, \"bytes\": %llu, \"refused\": %llu, \"messages\": %llu, "
	       "\"repeated\": %llu, \"ideal_wait_us\": %.3f, \"ideal_max_us\": %.3f, \"rates\": [",
	       (unsigned long long)packets, (unsigned long long)bytes,
	       (unsigned long long)s->refused, (unsigned long long)s->messages,
	       (unsigned long long)s->repeated, counted ? s->ideal_sum / (double)counted * 1e6 : 0,
	       s->ideal_max * 1e6);
	for (i = 0; i < s->flows; i++)
		printf("%s%.0f", i ? ", " : "", s->flow[i].rate);
	printf("]}\n");
}

static int send_main(int argc, char **argv)
{
	static const struct option options[] = {
		{"to", 1, NULL, 't'},	 {"port", 1, NULL, 'p'},       {"sport", 1, NULL, 's'},
		{"flows", 1, NULL, 'n'}, {"kind", 1, NULL, 'k'},       {"sizes", 1, NULL, 'z'},
		{"rate", 1, NULL, 'r'},	 {"poisson", 0, NULL, 'P'},    {"spread", 0, NULL, 'S'},
		{"epoch", 1, NULL, 'e'}, {"start", 1, NULL, 'a'},      {"stop", 1, NULL, 'b'},
		{"law", 1, NULL, 'l'},	 {"min", 1, NULL, 'm'},	       {"max", 1, NULL, 'M'},
		{"lag", 1, NULL, 'L'},	 {"seed", 1, NULL, 'x'},       {"log", 1, NULL, 'f'},
		{"ideal", 1, NULL, 'i'}, {"ideal-from", 1, NULL, 'I'}, {"paqmd", 1, NULL, 'q'},
		{"safe", 1, NULL, 'Q'},	 {0}};
	static struct sender s = {.flows = 1, .rtp = true, .least = 1e4, .most = 1e12, .ear = -1};
	double rate = 1e6, start = 0, stop = 1, epoch = 0;
	const char *to = "10.2.0.2", *log_name = NULL, *paqmd = NULL;
	int port = 5004, option, i;
	char sizes[256] = "1000";
	bool spread = false;
	uint64_t seed = 1;

	s.sport = 20000;
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 't':
			to = optarg;
			break;
		case 'p':
			port = (int)number("port", optarg, 1, 65535);
			break;
		case 's':
			s.sport = (int)number("sport", optarg, 1, 65535);
			break;
		case 'n':
			s.flows = (int)number("flows", optarg, 1, FLOWS_MAX);
			break;
		case 'k':
			if (strcmp(optarg, "rtp") && strcmp(optarg, "plain"))
				die("--kind %s: want rtp or plain", optarg);
			s.rtp = !strcmp(optarg, "rtp");
			break;
		case 'z':
			if (strlen(optarg) >= sizeof(sizes))
				die("--sizes is too long");
			strcpy(sizes, optarg);
			break;
		case 'r':
			rate = number("rate", optarg, 1, 1e12);
			break;
		case 'P':
			s.poisson = true;
			break;
		case 'S':
			spread = true;
			break;
		case 'e':
			epoch = number("epoch", optarg, 0, 9e18);
			break;
		case 'a':
			start = number("start", optarg, 0, 1e6);
			break;
		case 'b':
			stop = number("stop", optarg, 0, 1e6);
			break;
		case 'l':
			s.law = !strcmp(optarg, "ecf") ? ECF : !strcmp(optarg, "erf") ? ERF : FIXED;
			if (s.law == FIXED && strcmp(optarg, "fixed"))
				die("--law %s: want fixed, ecf or erf", optarg);
			break;
		case 'm':
			s.least = number("min", optarg, 1000, 1e12);
			break;
		case 'M':
			s.most = number("max", optarg, 1000, 1e12);
			break;
		case 'L':
			s.lag = (int64_t)(number("lag", optarg, 0, 10) * NS);
			break;
		case 'x':
			seed = (uint64_t)number("seed", optarg, 0, 1e9);
			break;
		case 'f':
			log_name = optarg;
			break;
		case 'i':
			s.ideal_rate = number("ideal", optarg, 1, 1e12);
			break;
		case 'I':
			s.ideal_from = (uint64_t)number("ideal-from", optarg, 0, 1e12);
			break;
		case 'q':
			paqmd = optarg;
			s.law = PAQMD;
			break;
		case 'Q':
			s.safe = number("safe", optarg, 1000, 1e12);
			break;
		default:
			exit(2);
		}
	}
	parse_sizes(&s, sizes);
	s.random[0] = 0x330E;
	s.random[1] = (unsigned short)seed;
	s.random[2] = (unsigned short)(seed >> 16 ^ 0xA5A5);
	for (i = 0; i < 10; i++) /* close seeds begin alike */
		erand48(s.random);
	s.epoch = epoch ? (int64_t)epoch : now_ns();
	for (i = 0; i < s.flows; i++) {
		struct flow *f = &s.flow[i];

		f->to.sin_family = AF_INET;
		f->to.sin_port = htons((uint16_t)(port + (spread ? i : 0)));
		if (inet_pton(AF_INET, to, &f->to.sin_addr) != 1)
			die("--to %s: no IPv4 address", to);
		f->rate = rate / s.flows;
		f->fd = udp_socket();
		/* what waits in a qdisc counts against the socket: it must never be the limit */
		force_buffer(f->fd, SO_SNDBUFFORCE, 1 << 29);
		bind_port(f->fd, s.sport + i);
	}
	if (!s.safe)
		s.safe = rate / s.flows;
	if (paqmd) {
		join_paqmd(&s, paqmd);
	} else if (s.law != FIXED) {
		s.ear = socket(AF_INET, SOCK_RAW | SOCK_NONBLOCK, IPPROTO_ICMP);
		if (s.ear < 0)
			die("no raw socket for the messages of routers: %s", strerror(errno));
		force_buffer(s.ear, SO_RCVBUFFORCE, 1 << 22);
	}
	if (log_name) {
		s.log = fopen(log_name, "w");
		if (!s.log)
			die("%s: %s", log_name, strerror(errno));
	}
	run_sender(&s, s.epoch + (int64_t)(start * NS), s.epoch + (int64_t)(stop * NS));
	report_sender(&s);
	if (s.log && fclose(s.log))
		die("%s: %s", log_name, strerror(errno));
	return 0;
}

/* -------------------------------------------------------------------------- sink */

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
	uint64_t window_packets, window_bytes;
	double wait_sum, wait_max; /* us */
	struct bin *bin;
};

struct sink {
	struct port port[PORTS_MAX];
	int ports;
	int64_t epoch, from, until, bin_ns, end;
	size_t bins;
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
	p->wait_sum += wait;
	p->wait_max = fmax(p->wait_max, wait);
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
		       "\"window_wire_bytes\": %llu, \"wait_mean_us\": %.3f, \"wait_max_us\": "
		       "%.3f, "
		       "\"bins\": [",
		       i ? ", " : "", p->number, (unsigned long long)p->packets,
		       (unsigned long long)p->bytes, (unsigned long long)p->window_packets,
		       (unsigned long long)p->window_bytes,
		       p->window_packets ? p->wait_sum / (double)p->window_packets : 0,
		       p->wait_max);
		for (b = 0; b < s->bins; b++)
			printf("%s[%u, %llu, %.1f]", b ? ", " : "", p->bin[b].packets,
			       (unsigned long long)p->bin[b].bytes, p->bin[b].wait_last);
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

static int sink_main(int argc, char **argv)
{
	static const struct option options[] = {{"ports", 1, NULL, 'p'},    {"epoch", 1, NULL, 'e'},
						{"from", 1, NULL, 'a'},	    {"until", 1, NULL, 'b'},
						{"end", 1, NULL, 'E'},	    {"bin", 1, NULL, 'i'},
						{"overhead", 1, NULL, 'o'}, {"mpu", 1, NULL, 'm'},
						{"layer", 1, NULL, 'l'},    {0}};
	static struct sink s = {.bin_ns = NS};
	double epoch = 0, from = 0, until = 1, end = 1;
	int option, i, one = 1;
	int64_t t;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'p':
			add_ports(&s, optarg);
			break;
		case 'e':
			epoch = number("epoch", optarg, 0, 9e18);
			break;
		case 'a':
			from = number("from", optarg, 0, 1e6);
			break;
		case 'b':
			until = number("until", optarg, 0, 1e6);
			break;
		case 'E':
			end = number("end", optarg, 0, 1e6);
			break;
		case 'i':
			s.bin_ns = (int64_t)(number("bin", optarg, 1e-4, 1e6) * NS);
			break;
		case 'o':
			s.overhead = (int)number("overhead", optarg, -64, 256);
			break;
		case 'm':
			s.mpu = (int)number("mpu", optarg, 0, 256);
			break;
		case 'l':
			s.layer = !strcmp(optarg, "atm")   ? ATM
				  : !strcmp(optarg, "ptm") ? PTM
							   : ETHERNET_LAYER;
			if (s.layer == ETHERNET_LAYER && strcmp(optarg, "ethernet"))
				die("--layer %s: want ethernet, atm or ptm", optarg);
			break;
		default:
			exit(2);
		}
	}
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
		if (!p->bin)
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

int main(int argc, char **argv)
{
	prctl(PR_SET_TIMERSLACK, 1);
	if (argc > 1 && !strcmp(argv[1], "send"))
		return send_main(argc - 1, argv + 1);
	if (argc > 1 && !strcmp(argv[1], "sink"))
		return sink_main(argc - 1, argv + 1);
	fputs("usage: spec_traffic send|sink OPTION...\n", stderr);
	return 2;
}
