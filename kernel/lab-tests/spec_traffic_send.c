// SPDX-License-Identifier: GPL-2.0
/* The sender of spec_traffic: schedules, and what becomes of advice. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "core/paqm_msg.h"
#include "feedback-daemon/paqm_ipc.h"
#include "kernel/lab-tests/spec_traffic.h"

#define FLOWS_MAX 256
#define PENDING 64
#define SIZES_MAX 32
#define SSRC 0x1000 /* of the first flow */

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
	int frame; /* packets of a frame */
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

	/* the packets of a frame leave at once, all of its time behind the last */
	if (s->frame > 1)
		gap *= f->packets % (uint64_t)s->frame ? 0 : s->frame;
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

	if (len <= header ||
	    paqm_icmp_decode(packet + header, (uint32_t)(len - header), &m, &quote) != PAQM_MSG_OK)
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

int send_main(char **argv)
{
	static const char *const kinds[] = {"plain", "rtp", NULL};
	static const char *const laws[] = {[FIXED] = "fixed", [ECF] = "ecf", [ERF] = "erf", NULL};
	static struct sender s = {.least = 1e4, .most = 1e12, .ear = -1};
	double rate = 1e6, start = 0, stop = 1, epoch = 0, port = 5004, sport = 20000, flows = 1;
	double lag = 0, seed_number = 1, ideal_from = 0, frame = 1;
	const char *to = "10.2.0.2", *log_name = NULL, *paqmd = NULL, *kind = "rtp", *law = "fixed";
	const char *size_text = "1000";
	bool spread = false;
	const struct option_of table[] = {
		{"to", .word = &to},
		{"port", .number = &port, .least = 1, .most = 65535},
		{"sport", .number = &sport, .least = 1, .most = 65535},
		{"flows", .number = &flows, .least = 1, .most = FLOWS_MAX},
		{"kind", .word = &kind},
		{"sizes", .word = &size_text},
		{"rate", .number = &rate, .least = 1, .most = 1e12},
		{"poisson", .on = &s.poisson},
		{"frame", .number = &frame, .least = 1, .most = 64},
		{"spread", .on = &spread},
		{"epoch", .number = &epoch, .least = 0, .most = 9e18},
		{"start", .number = &start, .least = 0, .most = 1e6},
		{"stop", .number = &stop, .least = 0, .most = 1e6},
		{"law", .word = &law},
		{"min", .number = &s.least, .least = 1000, .most = 1e12},
		{"max", .number = &s.most, .least = 1000, .most = 1e12},
		{"lag", .number = &lag, .least = 0, .most = 10},
		{"seed", .number = &seed_number, .least = 0, .most = 1e9},
		{"log", .word = &log_name},
		{"ideal", .number = &s.ideal_rate, .least = 1, .most = 1e12},
		{"ideal-from", .number = &ideal_from, .least = 0, .most = 1e12},
		{"paqmd", .word = &paqmd},
		{"safe", .number = &s.safe, .least = 1000, .most = 1e12},
		{NULL},
	};
	char sizes[256];
	uint64_t seed;
	int i;

	parse_options(argv, table);
	s.rtp = one_of("kind", kind, kinds);
	s.law = paqmd ? PAQMD : (enum law)one_of("law", law, laws);
	s.sport = (int)sport;
	s.flows = (int)flows;
	s.frame = (int)frame;
	s.lag = (int64_t)(lag * NS);
	s.ideal_from = (uint64_t)ideal_from;
	seed = (uint64_t)seed_number;
	if (snprintf(sizes, sizeof(sizes), "%s", size_text) >= (int)sizeof(sizes))
		die("--sizes is too long");
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
		f->to.sin_port = htons((uint16_t)((int)port + (spread ? i : 0)));
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
