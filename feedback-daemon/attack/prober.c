// SPDX-License-Identifier: GPL-2.0
/*
 * Measures how long a true message takes from the wire to the media sender: registers a
 * flow at paqmd, sends a media packet, then as its router a message about it, and waits for
 * the record.
 *
 *	prober SOCKET ROUTER-NETNS SADDR DADDR COUNT GAP-US
 *
 * Runs in the network namespace of the sender; the messages leave from the namespace at the
 * path ROUTER-NETNS. Prints one line of JSON: how many came, quantiles in microseconds.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "core/paqm_msg.h"
#include "feedback-daemon/judge/addr.h"
#include "feedback-daemon/paqm_ipc.h"

#define PORT 5004
#define PAYLOAD 200
#define PATIENCE_MS 2000

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

static void die(const char *what)
{
	fprintf(stderr, "prober: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int raw_in(const char *netns)
{
	int home = open("/proc/self/ns/net", O_RDONLY), there = open(netns, O_RDONLY), fd;

	if (home < 0 || there < 0 || setns(there, CLONE_NEWNET))
		die(netns);
	fd = socket(AF_INET, SOCK_RAW, IPPROTO_ICMP);
	if (fd < 0 || setns(home, CLONE_NEWNET))
		die("raw socket");
	close(home);
	close(there);
	return fd;
}

static int connect_daemon(const char *path)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", path);
	if (fd < 0 || connect(fd, (struct sockaddr *)&sa, sizeof(sa)))
		die(path);
	return fd;
}

/* The next record of the daemon. Return: its length, 0 when none came in time. */
static size_t record(int fd, void *buf, size_t size)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	ssize_t n;

	if (poll(&p, 1, PATIENCE_MS) < 1)
		return 0;
	n = recv(fd, buf, size, 0);
	if (n <= 0)
		die("paqmd");
	return (size_t)n;
}

static void enrol(int fd, const struct in_addr *src, const struct in_addr *dst)
{
	struct paqm_ipc_register r = {
		.hdr = {PAQM_IPC_MAGIC, PAQM_IPC_VERSION, PAQM_IPC_REGISTER, sizeof(r)},
		.sport = PORT,
		.dport = PORT,
		.ceil_bps = 1000000000,
		.cookie = 1,
	};
	struct paqm_ipc_registered answer;
	uint8_t rest[512];

	memcpy(r.saddr, addr_v4((const uint8_t *)src).b, 16);
	memcpy(r.daddr, addr_v4((const uint8_t *)dst).b, 16);
	if (send(fd, &r, sizeof(r), 0) < 0 || record(fd, &answer, sizeof(answer)) != sizeof(answer))
		die("registration");
	errno = answer.error;
	if (answer.error)
		die("registration");
	record(fd, rest, sizeof(rest)); /* the state at the beginning */
}

/* The media packet that the router quotes. */
static uint32_t quote(uint8_t *q, const struct in_addr *src, const struct in_addr *dst,
		      const uint8_t *payload)
{
	memset(q, 0, 28);
	q[0] = 0x45;
	paqm_put16(q + 2, 28 + PAYLOAD);
	q[8] = 63;
	q[9] = 17;
	memcpy(q + 12, src, 4);
	memcpy(q + 16, dst, 4);
	paqm_put16(q + 20, PORT);
	paqm_put16(q + 22, PORT);
	paqm_put16(q + 24, 8 + PAYLOAD);
	memcpy(q + 28, payload, PAQM_PROOF_OTHER);
	return 28 + PAQM_PROOF_OTHER;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	struct sockaddr_in src = {.sin_family = AF_INET, .sin_port = htons(PORT)}, dst = src, to;
	struct paqm_msg m = {.router_id = 0xA1, .boot = 7, .period_ms = 250};
	unsigned int count, gap_us, i, got = 0;
	uint8_t payload[PAYLOAD], q[PAQM_QUOTE_MAX], icmp[PAQM_MSG_MAX], rec[512];
	struct paqm_ipc_rate rate = {0};
	uint64_t *took, t;
	uint32_t len;
	int daemon, raw, media;

	if (argc != 7 || !inet_aton(argv[3], &src.sin_addr) || !inet_aton(argv[4], &dst.sin_addr)) {
		fputs("Usage: prober SOCKET ROUTER-NETNS SADDR DADDR COUNT GAP-US\n", stderr);
		return 2;
	}
	count = (unsigned int)atoi(argv[5]);
	gap_us = (unsigned int)atoi(argv[6]);
	took = calloc(count + 1, sizeof(*took));
	raw = raw_in(argv[2]);
	daemon = connect_daemon(argv[1]);
	media = socket(AF_INET, SOCK_DGRAM, 0);
	if (!took || media < 0 || bind(media, (struct sockaddr *)&src, sizeof(src)) ||
	    mlockall(MCL_CURRENT))
		die("media");
	enrol(daemon, &src.sin_addr, &dst.sin_addr);
	to = src;
	to.sin_port = 0;
	for (i = 0; i < count; i++) {
		struct timespec pause = {.tv_sec = gap_us / 1000000,
					 .tv_nsec = gap_us % 1000000 * 1000L};

		nanosleep(&pause, NULL);
		if (getrandom(payload, sizeof(payload), 0) < 0)
			die("random");
		payload[0] = 0x80;
		sendto(media, payload, sizeof(payload), 0, (struct sockaddr *)&dst, sizeof(dst));
		m.rate = 100000 + i;
		m.seq = i + 1;
		len = paqm_icmp_encode(icmp, PAQM_ICMP_TYPE_EXP, q,
				       quote(q, &src.sin_addr, &dst.sin_addr, payload), &m);
		t = now_ns();
		if (sendto(raw, icmp, len, 0, (struct sockaddr *)&to, sizeof(to)) < 0)
			die("message");
		do /* until that of this message comes; none other has its number */
			if (record(daemon, rec, sizeof(rec)) != sizeof(rate))
				break;
		while (memcpy(&rate, rec, sizeof(rate)), rate.seq != m.seq);
		if (rate.seq == m.seq)
			took[got++] = now_ns() - t;
	}
	qsort(took, got, sizeof(*took), compare);
	printf("{\"sent\": %u, \"told\": %u, \"p50_us\": %.1f, \"p99_us\": %.1f, \"max_us\": "
	       "%.1f}\n",
	       count, got, (double)took[got / 2] / 1e3, (double)took[got - got / 100 - !!got] / 1e3,
	       (double)took[got ? got - 1 : 0] / 1e3);
	return 0;
}
