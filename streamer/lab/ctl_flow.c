// SPDX-License-Identifier: GPL-2.0
/*
 * A flow that always has data, at the rate of a controller: for checks of the
 * control laws on real queues, where the encoder's limits would hide them.
 *
 *   ctl_flow send ADDR:PORT CONTROLLER SECONDS RATE_MAX SEED LOG.csv [ect0|counters=PORT]
 *   ctl_flow recv PORT SECONDS LOG.csv
 *
 * With ect0 packets are sent as ECN-capable, and their marks are reported. They have 1000 bytes
 * with IP and UDP headers; gaps are dithered by 10 % against phase effects. The receiver reports
 * the arrival of each packet, not more often than every 20 ms, and logs t,packets,bytes (so far)
 * every 200 ms. The sender logs t,rate_bps,p,rtt,sent every 100 ms. Times are CLOCK_MONOTONIC.
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

#define PACKET 1000
#define HEADERS 28
#define REPORT_GAP 0.020
#define REPORT_MAX 600
#define HISTORY (1 << 17)
#define RATE_MIN 1000.0
#define COUNTERS 256

struct data {
	uint64_t seq;
	uint64_t rate; /* to see in a packet log what was meant */
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
static bool readable(int fd, double until)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	/* Rounded up: a wait of nothing would stop virtual time. */
	double left = fmax(0, until - now_s()) + 1e-6;
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

static int receive(int port, double seconds, const char *path)
{
	struct sockaddr_in me = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)}, peer;
	static uint64_t arrived[HISTORY];
	static union {
		struct data d;
		char room[2048];
	} in;
	static struct report out;
	uint64_t next = 1, highest = 0, packets = 0, bytes = 0;
	double end = now_s() + seconds, last = 0, logged = now_s();
	FILE *log = fopen(path, "w");
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&me, sizeof(me)) < 0)
		die("bind");
	if (!log)
		die(path);
	setsockopt(fd, IPPROTO_IP, IP_RECVTOS, &(int){1}, sizeof(int));
	fprintf(log, "t,packets,bytes\n");
	while (now_s() < end) {
		ssize_t got;
		bool marked;

		for (; logged <= now_s(); logged += 0.2)
			fprintf(log, "%.3f,%llu,%llu\n", logged, (unsigned long long)packets,
				(unsigned long long)bytes);
		if (!readable(fd, fmin(end, logged)))
			continue;
		got = take(fd, &in, sizeof(in), &peer, &marked);
		if (got < (ssize_t)sizeof(in.d))
			continue;
		packets++;
		bytes += (uint64_t)got + HEADERS;
		if (in.d.seq + HISTORY <= highest)
			continue;
		arrived[in.d.seq % HISTORY] = (uint64_t)(now_s() * 1e9) / 2 * 2 + marked;
		if (in.d.seq > highest)
			highest = in.d.seq;
		if (now_s() - last < REPORT_GAP)
			continue;
		last = now_s();
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
static void take_counters(int fd, struct ctl *c, double rtt)
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
			ctl_advise(c, now_s(),
				   &(struct ctl_advice){.capacity = now.capacity,
							.load = ctl_load(now.bytes - then->bytes,
									 now.at - then->at,
									 now.capacity)});
	}
}

static double kept[2]; /* p and rtt of the controller, for the log */

static void keep(const char *controller, const char *key, double value, void *data)
{
	(void)controller;
	(void)data;
	if (!strcmp(key, "p"))
		kept[0] = value;
	else if (!strcmp(key, "rtt"))
		kept[1] = value;
}

static int send_flow(char **argv, const char *how)
{
	bool ect = how && !strcmp(how, "ect0");
	int told = how && !ect ? socket(AF_INET, SOCK_DGRAM, 0) : -1;
	struct sockaddr_in here = {.sin_family = AF_INET};
	struct sockaddr_in to = {.sin_family = AF_INET};
	char *colon = strchr(argv[0], ':');
	double option[CTL_OPTIONS];
	char why[256];
	const struct ctl_kind *kind = ctl_choose(argv[1], option, why, sizeof(why));
	double end = now_s() + atof(argv[2]), begin = now_s(), due = begin, logged = 0,
	       last = begin;
	struct ctl_params params = {.rate_min = RATE_MIN,
				    .rate_max = atof(argv[3]),
				    .packet = PACKET,
				    .option = option,
				    .ecn = ect ? CTL_ECN_CLASSIC : CTL_ECN_NONE};
	static struct fb_packet pkts[REPORT_MAX];
	static double sent_at[HISTORY];
	static char packet[PACKET - HEADERS];
	static struct report in;
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
	here.sin_port = htons((uint16_t)(told < 0 ? 0 : atoi(how + strlen("counters="))));
	if (told >= 0 && bind(told, (struct sockaddr *)&here, sizeof(here)) < 0)
		die(how);
	if (ect && setsockopt(fd, IPPROTO_IP, IP_TOS, &(int){2}, sizeof(int)) < 0)
		die("ect0");
	fprintf(log, "t,rate_bps,p,rtt,sent\n");
	c = ctl_new(kind, &params, begin);
	while (now_s() < end) {
		double now = now_s(), rate;

		if (now < due && readable(fd, fmin(fmin(due, end), now + 0.1))) {
			ssize_t got = recv(fd, &in, sizeof(in), MSG_DONTWAIT);
			size_t head = offsetof(struct report, at);

			if (got < (ssize_t)head || in.count > REPORT_MAX ||
			    (size_t)got < head + in.count * sizeof(in.at[0]))
				continue;
			for (uint32_t i = 0; i < in.count; i++)
				pkts[i] = (struct fb_packet){
					.seq = in.first + i,
					.sent = sent_at[(in.first + i) % HISTORY],
					.recv = in.at[i] / 1e9,
					.size = PACKET,
					.received = in.at[i] != 0,
					.ect = ect && in.at[i] % 2 == 0,
					.ce = ect && in.at[i] % 2,
				};
			ctl_feedback(c, now_s(), pkts, in.count);
		}
		if (told >= 0)
			take_counters(told, c, kept[1] > 0 ? kept[1] : 0.04);
		now = now_s();
		rate = ctl_rate(c, now);
		/* A higher rate need not wait for a gap of the lower one. */
		due = fmin(due, fmax(now, last + 8 * PACKET / rate));
		if (now >= due) {
			struct data d = {seq, (uint64_t)rate};

			memcpy(packet, &d, sizeof(d));
			sent_at[seq++ % HISTORY] = now;
			if (send(fd, packet, sizeof(packet), MSG_DONTWAIT) > 0)
				sent++;
			ctl_sent(c, now, PACKET);
			/* Absolute deadlines; at most one tick is made good. */
			last = fmax(due, now - 0.01);
			due = last + 8 * PACKET / rate * (0.9 + 0.2 * drand48());
		}
		if (now - logged >= 0.1) {
			ctl_state(c, keep, NULL);
			fprintf(log, "%.3f,%.0f,%.6g,%.5f,%llu\n", now, rate, kept[0], kept[1],
				(unsigned long long)sent);
			logged = now;
		}
	}
	ctl_free(c);
	return fclose(log) != 0;
}

int main(int argc, char **argv)
{
	/* Timers of 50 us slack are a packet at 10 Mbit/s. */
	prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
	if ((argc == 8 || (argc == 9 && (!strcmp(argv[8], "ect0") ||
					 !strncmp(argv[8], "counters=", strlen("counters="))))) &&
	    !strcmp(argv[1], "send"))
		return send_flow(argv + 2, argc == 9 ? argv[8] : NULL);
	if (argc == 5 && !strcmp(argv[1], "recv"))
		return receive(atoi(argv[2]), atof(argv[3]), argv[4]);
	fprintf(stderr, "usage: ctl_flow send ADDR:PORT CONTROLLER SECONDS RATE_MAX SEED LOG.csv "
			"[ect0|counters=PORT]\n"
			"       ctl_flow recv PORT SECONDS LOG.csv\n");
	return 2;
}
