// SPDX-License-Identifier: GPL-2.0
/*
 * A flow that always has data, at the rate of a controller: for checks of the
 * control laws on real queues, where the encoder's limits would hide them.
 *
 *   ctl_flow send ADDR:PORT CONTROLLER SECONDS RATE_MAX SEED LOG.csv
 *            [ect0] [counters=PORT] [packet=BYTES] [rate-min=BPS]
 *   ctl_flow recv PORT SECONDS LOG.csv
 *   ctl_flow cross ADDR:PORT pareto|cbr SECONDS RATE SEED
 *
 * With ect0 packets are sent as ECN-capable, and their marks are reported. They have 1000 bytes
 * with IP and UDP headers; gaps are dithered by 10 % against phase effects. The receiver reports
 * the arrival of each packet, not more often than every 20 ms, and logs every 200 ms
 * t,packets,bytes,way (so far; way: the sum of all one-way delays, s) and jitter (RFC 3550, s).
 * The sender logs t,rate_bps,p,rtt,sent,trains,estimate,probes every 100 ms. Times are
 * CLOCK_MONOTONIC, read once after each wait: a system call is most of what a packet costs in a
 * guest. Trains of packets are those of the streamer (streamer/rtp/probe.h).
 *
 * cross is traffic that nobody answers: 16 sources with Pareto gaps (shape 1.5), packets of 40,
 * 550 and 1500 bytes (4:5:1), as in Wang and Hsiao 2010; or 550 bytes in equal gaps.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "streamer/control/control.h"
#include "streamer/rtp/probe.h"

#define PACKET 1000 /* unless told */
#define PACKET_MAX 1500
#define HEADERS 28
#define REPORT_GAP 0.020
#define REPORT_MAX 600
#define HISTORY (1 << 17)
#define RATE_MIN 1000.0
#define COUNTERS 256
#define RTP_HEADER 12
#define SOURCES 16 /* of cross traffic, */
#define SHAPE 1.5  /* of their gaps */

struct data {
	uint64_t seq;
	uint64_t rate; /* to see in a packet log what was meant */
	double at;     /* when it was sent; both ends have one clock */
};

struct report {
	uint64_t first;
	uint32_t count, pad;
	uint64_t at[REPORT_MAX]; /* ns, odd if marked; 0: not arrived */
};

/* A reading of the bottleneck's byte counter, which bands.py sends to PORT. */
struct counter {
	double at, bytes, capacity; /* s, bit/s */
};

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + ts.tv_nsec / 1e9;
}

static void die(const char *what)
{
	fprintf(stderr, "ctl_flow: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* Until there is something to read, or the time has come. */
static bool readable(int fd, double now, double until)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	/* Rounded up: a wait of nothing would stop virtual time. */
	double left = fmax(0, until - now) + 1e-6;
	struct timespec ts = {(time_t)left, (long)(fmod(left, 1) * 1e9)};

	return ppoll(&p, 1, &ts, NULL) > 0;
}

/* The next packet, and whether it is marked. */
static ssize_t take(int fd, void *room, size_t size, struct sockaddr_in *peer, bool *marked)
{
	char control[CMSG_SPACE(sizeof(int))];
	struct iovec iov = {room, size};
	struct msghdr msg = {.msg_name = peer,
			     .msg_namelen = sizeof(*peer),
			     .msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control,
			     .msg_controllen = sizeof(control)};
	ssize_t got = recvmsg(fd, &msg, 0);

	*marked = false;
	for (struct cmsghdr *c = got < 0 ? NULL : CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c))
		if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS)
			*marked = (*CMSG_DATA(c) & 3) == 3;
	return got;
}

/* Reports on packets are a multiple of eight bytes; this is not. */
static void tell_train(int fd, struct probes *probes, const struct sockaddr_in *peer, double now)
{
	uint8_t told[PROBE_REPORT + 4] = {0};

	probes_report(probes, told, (uint64_t)(now * 1e9));
	sendto(fd, told, sizeof(told), 0, (const struct sockaddr *)peer, sizeof(*peer));
}

static int receive(int port, double seconds, const char *path)
{
	struct sockaddr_in me = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)}, peer;
	static uint64_t arrived[HISTORY];
	static uint8_t in[2048];
	static struct report out;
	static struct probes probes;
	uint64_t next = 1, highest = 0, packets = 0, bytes = 0;
	double way = 0, before = 0, jitter = 0;
	double now = now_s(), end = now + seconds, last = 0, logged = now;
	FILE *log = fopen(path, "w");
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&me, sizeof(me)) < 0)
		die("bind");
	if (!log)
		die(path);
	setsockopt(fd, IPPROTO_IP, IP_RECVTOS, &(int){1}, sizeof(int));
	fprintf(log, "t,packets,bytes,way,jitter\n");
	while (now < end) {
		bool train_ended, ready;
		struct data d;
		size_t head;
		ssize_t got;
		bool marked;

		for (; logged <= now; logged += 0.2)
			fprintf(log, "%.3f,%llu,%llu,%.6f,%.6f\n", logged,
				(unsigned long long)packets, (unsigned long long)bytes, way,
				jitter);
		if (probes_late(&probes, (uint64_t)(now * 1e9)))
			tell_train(fd, &probes, &peer, now);
		ready = readable(fd, now, fmin(end, logged));
		now = now_s();
		if (!ready)
			continue;
		got = take(fd, in, sizeof(in), &peer, &marked);
		if (got < 0)
			continue;
		train_ended = probes_see(&probes, in, (size_t)got, (size_t)got + HEADERS,
					 (uint64_t)(now * 1e9));
		probe_find(in, (size_t)got, &head);
		if (!head || (size_t)got < head + sizeof(d))
			continue;
		memcpy(&d, in + head, sizeof(d));
		bytes += (uint64_t)got + HEADERS;
		d.at = now - d.at;
		way += d.at;
		if (packets++)
			jitter += (fabs(d.at - before) - jitter) / 16;
		before = d.at;
		if (train_ended)
			tell_train(fd, &probes, &peer, now);
		if (d.seq + HISTORY <= highest)
			continue;
		arrived[d.seq % HISTORY] = (uint64_t)(now * 1e9) / 2 * 2 + marked;
		if (d.seq > highest)
			highest = d.seq;
		if (now - last < REPORT_GAP)
			continue;
		last = now;
		if (highest + 1 - next > REPORT_MAX)
			next = highest + 1 - REPORT_MAX;
		out.first = next;
		out.count = (uint32_t)(highest + 1 - next);
		for (uint32_t i = 0; i < out.count; i++, next++) {
			out.at[i] = arrived[next % HISTORY];
			arrived[next % HISTORY] = 0;
		}
		sendto(fd, &out, offsetof(struct report, at) + out.count * sizeof(out.at[0]), 0,
		       (struct sockaddr *)&peer, sizeof(peer));
	}
	return fclose(log) != 0;
}

/* Tell the controller the load of the last four round trips. */
static void take_counters(int fd, struct ctl *c, double at, double rtt)
{
	static struct counter seen[COUNTERS];
	static uint64_t n;
	struct counter now;

	while (recv(fd, &now, sizeof(now), MSG_DONTWAIT) == sizeof(now)) {
		const struct counter *then = NULL;

		for (uint64_t i = n; i-- > 0 && n - i <= COUNTERS;) {
			then = &seen[i % COUNTERS];
			if (now.at - then->at >= 4 * rtt)
				break;
		}
		seen[n++ % COUNTERS] = now;
		if (then && now.at - then->at >= 4 * rtt)
			ctl_advise(c, at,
				   &(struct ctl_advice){.capacity = now.capacity,
							.load = ctl_load(now.bytes - then->bytes,
									 now.at - then->at,
									 now.capacity)});
	}
}

/* Of the controller's state, for the log. */
static const char *const keys[] = {"p", "rtt", "trains", "estimate", "probes"};
static double kept[5];

static void keep(const char *controller, const char *key, double value, void *data)
{
	(void)controller;
	(void)data;
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (!strcmp(key, keys[i]))
			kept[i] = value;
}

/* The train under way. */
static struct {
	struct ctl_train t;
	bool any, on;
	double begin;
	uint8_t next;
} train;

static void use_train(struct ctl *c, double now)
{
	struct ctl_train t;

	if (!ctl_train(c, now, &t)) {
		train.on = false;
	} else if (!train.any || t.id != train.t.id) {
		train.t = t;
		train.any = train.on = true;
		train.begin = now;
		train.next = 0;
	}
}

/* When its next packet leaves. */
static double slot(int bytes)
{
	return train.begin + train.next * 8 * bytes / train.t.rate;
}

/* The header and the extension of a packet; returns their length. */
static size_t write_head(uint8_t *p)
{
	struct probe probe = {(uint64_t)(now_s() * 1e6),
			      train.t.id,
			      train.next,
			      train.t.packets,
			      train.t.start ? PROBE_START : 0,
			      (uint32_t)train.t.rate};

	p[0] = train.on ? 0x90 : 0x80;
	if (!train.on)
		return RTP_HEADER;
	probe_extension(p + RTP_HEADER, 4 + PROBE_DATA, &probe);
	train.on = ++train.next < train.t.packets;
	return RTP_HEADER + 4 + PROBE_DATA;
}

static int cross(char **argv)
{
	static const int sizes[10] = {40, 40, 40, 40, 550, 550, 550, 550, 550, 1500};
	struct sockaddr_in to = {.sin_family = AF_INET};
	char *colon = strchr(argv[0], ':');
	bool cbr = !strcmp(argv[1], "cbr");
	double end = now_s() + atof(argv[2]), rate = atof(argv[3]), due[SOURCES];
	int fd = socket(AF_INET, SOCK_DGRAM, 0), n = cbr ? 1 : SOURCES;
	double gap = 8 * (cbr ? 550 : 0.4 * 40 + 0.5 * 550 + 0.1 * 1500) * n / rate;
	static char packet[1500];

	srand48(atol(argv[4]));
	if (!colon || fd < 0)
		die("cross");
	*colon = 0;
	to.sin_port = htons((uint16_t)atoi(colon + 1));
	if (inet_pton(AF_INET, argv[0], &to.sin_addr) != 1 ||
	    connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0)
		die(argv[0]);
	for (int i = 0; i < n; i++)
		due[i] = now_s() + gap * drand48();
	for (double now = now_s(); now < end; now = now_s()) {
		int next = 0;

		for (int i = 1; i < n; i++)
			if (due[i] < due[next])
				next = i;
		if (now < due[next]) {
			/* nobody answers; what is refused is no event either */
			struct timespec ts;
			double left = due[next] - now + 1e-6;

			ts = (struct timespec){(time_t)left, (long)(fmod(left, 1) * 1e9)};
			ppoll(NULL, 0, &ts, NULL);
			continue;
		}
		(void)!send(fd, packet,
			    (size_t)((cbr ? 550 : sizes[(int)(drand48() * 10)]) - HEADERS),
			    MSG_DONTWAIT);
		due[next] += cbr ? gap : gap * (SHAPE - 1) / SHAPE * pow(1 - drand48(), -1 / SHAPE);
	}
	return 0;
}

/* What may follow the log file. */
struct more {
	bool ect;
	int counters; /* port, or 0 */
	int packet;
	double rate_min;
};

static bool take_more(char **argv, struct more *m)
{
	*m = (struct more){.packet = PACKET, .rate_min = RATE_MIN};
	for (; *argv; argv++) {
		const char *value = strchr(*argv, '=');

		if (!strcmp(*argv, "ect0"))
			m->ect = true;
		else if (!strncmp(*argv, "counters=", 9))
			m->counters = atoi(value + 1);
		else if (!strncmp(*argv, "packet=", 7))
			m->packet = atoi(value + 1);
		else if (!strncmp(*argv, "rate-min=", 9))
			m->rate_min = atof(value + 1);
		else
			return false;
	}
	return m->packet >= 100 && m->packet <= PACKET_MAX && m->rate_min > 0;
}

static int send_flow(char **argv, const struct more *more)
{
	bool ect = more->ect;
	int told = more->counters ? socket(AF_INET, SOCK_DGRAM, 0) : -1;
	struct sockaddr_in here = {.sin_family = AF_INET};
	struct sockaddr_in to = {.sin_family = AF_INET};
	char *colon = strchr(argv[0], ':');
	double option[CTL_OPTIONS];
	char why[256];
	const struct ctl_kind *kind = ctl_choose(argv[1], option, why, sizeof(why));
	double now = now_s(), end = now + atof(argv[2]), begin = now, due = begin, logged = 0,
	       last = begin, gap = 1; /* of the usual one, as it is dithered this time */
	struct ctl_params params = {.rate_min = more->rate_min,
				    .rate_max = atof(argv[3]),
				    .packet = more->packet,
				    .option = option,
				    .ecn = ect ? CTL_ECN_CLASSIC : CTL_ECN_NONE};
	static struct fb_packet pkts[REPORT_MAX];
	static double sent_at[HISTORY];
	static uint8_t packet[PACKET_MAX - HEADERS];
	const int bytes = more->packet;
	static union {
		struct report r;
		uint8_t told[PROBE_REPORT + 4];
	} in;
	uint64_t seq = 1, sent = 0;
	FILE *log = fopen(argv[5], "w");
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	struct ctl *c;

	srand48(atol(argv[4]));
	if (!kind || !colon || !log || fd < 0) {
		fprintf(stderr, "ctl_flow: %s\n", kind ? "wrong address or log file" : why);
		return 2;
	}
	*colon = 0;
	to.sin_port = htons((uint16_t)atoi(colon + 1));
	if (inet_pton(AF_INET, argv[0], &to.sin_addr) != 1 ||
	    connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0)
		die(argv[0]);
	here.sin_port = htons((uint16_t)more->counters);
	if (told >= 0 && bind(told, (struct sockaddr *)&here, sizeof(here)) < 0)
		die("counters");
	if (ect && setsockopt(fd, IPPROTO_IP, IP_TOS, &(int){2}, sizeof(int)) < 0)
		die("ect0");
	fprintf(log, "t,rate_bps,p,rtt,sent,trains,estimate,probes\n");
	c = ctl_new(kind, &params, begin);
	while (now < end) {
		bool ready = now < due && readable(fd, now, fmin(fmin(due, end), now + 0.1));
		double rate;

		now = now_s();
		if (ready) {
			ssize_t got = recv(fd, &in, sizeof(in), MSG_DONTWAIT);
			size_t head = offsetof(struct report, at);

			if (got == sizeof(in.told)) {
				ctl_message(c, now,
					    &(struct ctl_message){.name = PROBE_NAME,
								  .subtype = PROBE_SUBTYPE,
								  .data = in.told,
								  .len = PROBE_REPORT});
				continue;
			}
			if (got < (ssize_t)head || in.r.count > REPORT_MAX ||
			    (size_t)got < head + in.r.count * sizeof(in.r.at[0]))
				continue;
			for (uint32_t i = 0; i < in.r.count; i++)
				pkts[i] = (struct fb_packet){
					.seq = in.r.first + i,
					.sent = sent_at[(in.r.first + i) % HISTORY],
					.recv = in.r.at[i] / 1e9,
					.size = bytes,
					.received = in.r.at[i] != 0,
					.ect = ect && in.r.at[i] % 2 == 0,
					.ce = ect && in.r.at[i] % 2,
				};
			ctl_feedback(c, now, pkts, in.r.count);
		}
		if (told >= 0)
			take_counters(told, c, now, kept[1] > 0 ? kept[1] : 0.04);
		rate = ctl_rate(c, now);
		/* A higher rate need not wait for a gap of the lower one. */
		due = fmin(due, fmax(now, last + gap * 8 * bytes / rate));
		use_train(c, now);
		if (train.on)
			due = slot(bytes);
		if (now >= due) {
			struct data d = {seq, (uint64_t)rate, now};

			memcpy(packet + write_head(packet), &d, sizeof(d));
			sent_at[seq++ % HISTORY] = now;
			if (send(fd, packet, (size_t)(bytes - HEADERS), MSG_DONTWAIT) > 0)
				sent++;
			ctl_sent(c, now, bytes);
			/* Absolute deadlines; at most one tick is made good. */
			last = fmax(due, now - 0.01);
			gap = 0.9 + 0.2 * drand48();
			due = train.on ? slot(bytes) : last + gap * 8 * bytes / rate;
		}
		if (now - logged >= 0.1) {
			ctl_state(c, keep, NULL);
			fprintf(log, "%.3f,%.0f,%.6g,%.5f,%llu,%.0f,%.0f,%.0f\n", now, rate,
				kept[0], kept[1], (unsigned long long)sent, kept[2], kept[3],
				kept[4]);
			logged = now;
		}
	}
	ctl_free(c);
	return fclose(log) != 0;
}

int main(int argc, char **argv)
{
	struct more more;

	/* Timers of 50 us slack are a packet at 10 Mbit/s. */
	prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
	if (argc >= 8 && !strcmp(argv[1], "send") && take_more(argv + 8, &more))
		return send_flow(argv + 2, &more);
	if (argc == 7 && !strcmp(argv[1], "cross"))
		return cross(argv + 2);
	if (argc == 5 && !strcmp(argv[1], "recv"))
		return receive(atoi(argv[2]), atof(argv[3]), argv[4]);
	fprintf(stderr, "usage: ctl_flow send ADDR:PORT CONTROLLER SECONDS RATE_MAX SEED LOG.csv "
			"[ect0] [counters=PORT] [packet=BYTES] [rate-min=BPS]\n"
			"       ctl_flow recv PORT SECONDS LOG.csv\n"
			"       ctl_flow cross ADDR:PORT pareto|cbr SECONDS RATE SEED\n");
	return 2;
}
