// SPDX-License-Identifier: GPL-2.0
/*
 * The load of bench.py: registers flows, sends a media packet of one flow after
 * the other and has the router that it belongs to answer, at a given rate.
 * Measures how long it takes from the capture of a message until the sender has
 * the rate. Prints one JSON object.
 *
 * Before that it sends BURST packets of each flow, so that rings of digests grow.
 *
 * MEDIA packets are sent for each message.
 *
 * Usage: bench_load SOCKET ROUTER-NETNS SENDER-IP ROUTER-IP FLOWS ROUTERS RATE SECONDS BURST MEDIA
 */
#define _GNU_SOURCE /* setns */
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "feedback-daemon/tests/packets.h"
#include "libpaqmclient/paqmclient.h"

#define CLIENTS 16
#define NS 1000000000ULL
#define SLICES_PER_S 20000 /* at most; packets of one slice are sent together */

static struct paqm_client *client[CLIENTS];
static uint32_t *latency_ns; /* of each rate that came */
static size_t latencies, latencies_max;
static atomic_bool stop;
static atomic_uint registered, refused, expired;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NS + (uint64_t)t.tv_nsec;
}

static void take(const struct paqm_client_advice *a)
{
	if (a->cause == PAQM_CLIENT_NONE)
		registered++;
	else if (a->cause == PAQM_CLIENT_REFUSED)
		refused++;
	else if (a->cause == PAQM_CLIENT_EXPIRED)
		expired++;
	else if (a->rate_bps && latencies < latencies_max)
		latency_ns[latencies++] = (uint32_t)(now_ns() - a->captured_ns);
}

/* The senders: one thread that does nothing else. */
static void *receive(void *arg)
{
	struct epoll_event e[CLIENTS];
	struct paqm_client_advice a;
	int i, n, set = epoll_create1(0);

	(void)arg;
	for (i = 0; i < CLIENTS; i++) {
		e[0] = (struct epoll_event){.events = EPOLLIN, .data.ptr = client[i]};
		epoll_ctl(set, EPOLL_CTL_ADD, paqm_client_fd(client[i]), e);
	}
	while (!stop) {
		n = epoll_wait(set, e, CLIENTS, 100);
		for (i = 0; i < n; i++)
			while (paqm_client_next(e[i].data.ptr, &a) > 0)
				take(&a);
	}
	return NULL;
}

static int raw_in(const char *netns)
{
	int home = open("/proc/self/ns/net", O_RDONLY), there = open(netns, O_RDONLY);
	int fd = -1;

	if (there >= 0 && !setns(there, CLONE_NEWNET)) {
		fd = socket(AF_INET, SOCK_RAW, IPPROTO_RAW);
		if (setns(home, CLONE_NEWNET))
			fd = -1;
	}
	return fd;
}

static void send_ip(int fd, const uint8_t *ip, uint32_t len)
{
	struct sockaddr_in to = {.sin_family = AF_INET};

	memcpy(&to.sin_addr, ip + 16, 4);
	sendto(fd, ip, len, 0, (struct sockaddr *)&to, sizeof(to));
}

static uint16_t port_of(uint32_t flow)
{
	return (uint16_t)(2000 + flow);
}

/* Send packet @seq of a flow, made in @media. */
static void send_media(int fd, uint8_t *media, uint32_t flow, uint16_t seq, uint32_t saddr,
		       uint32_t daddr)
{
	uint32_t len = t_media(media, port_of(flow), flow, seq);

	t_ip(media, IPPROTO_UDP, len, saddr, daddr);
	send_ip(fd, media, len);
}

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static double percentile_ms(double share)
{
	return latencies ? latency_ns[(size_t)((double)(latencies - 1) * share)] / 1e6 : -1;
}

int main(int argc, char **argv)
{
	uint32_t flows, routers, rate, seconds, burst, per_message, slice, i, saddr, daddr;
	uint64_t next, sent = 0, packets = 0, total;
	uint8_t media[T_MEDIA];
	int media_fd, router_fd;
	pthread_t thread;

	if (argc != 11)
		return 2;
	saddr = ntohl(inet_addr(argv[3]));
	daddr = ntohl(inet_addr(argv[4]));
	flows = (uint32_t)atoi(argv[5]);
	routers = (uint32_t)atoi(argv[6]);
	rate = (uint32_t)atoi(argv[7]);
	seconds = (uint32_t)atoi(argv[8]);
	burst = (uint32_t)atoi(argv[9]);
	per_message = (uint32_t)atoi(argv[10]);
	total = (uint64_t)rate * seconds;
	latencies_max = total;
	latency_ns = malloc(total * sizeof(*latency_ns));
	media_fd = socket(AF_INET, SOCK_RAW, IPPROTO_RAW);
	router_fd = raw_in(argv[2]);
	if (!latency_ns || media_fd < 0 || router_fd < 0) {
		perror("bench_load");
		return 1;
	}
	for (i = 0; i < CLIENTS; i++)
		client[i] = paqm_client_open(argv[1]);
	for (i = 0; i < flows; i++)
		if (paqm_client_add(client[i % CLIENTS], argv[3], port_of(i), argv[4], T_DPORT, 0,
				    1000, 1000000000) < 0)
			return 1;
	pthread_create(&thread, NULL, receive, NULL);
	for (i = 0; i < 600 && registered + refused < flows; i++)
		usleep(100000);

	for (i = 0; i < flows * burst; i++)
		send_media(media_fd, media, i / burst, (uint16_t)i, saddr, daddr);
	next = now_ns();
	rate *= per_message;
	slice = rate > SLICES_PER_S ? rate / SLICES_PER_S : 1;
	while (sent < total) {
		struct timespec at;
		uint32_t n;

		next += slice * NS / rate;
		at = (struct timespec){.tv_sec = (time_t)(next / NS), .tv_nsec = (long)(next % NS)};
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
		for (n = 0; n < slice && sent < total; n++, packets++) {
			uint32_t flow = (uint32_t)(sent % flows), len;
			uint8_t ip[T_MESSAGE];
			struct paqm_msg m = {
				.router_id = 1 + flow % routers,
				.boot = 7,
				.seq = (uint32_t)(sent / flows) + 1,
				.ecf = t_f32(0.9),
				.rate = 500000 + sent % 100000,
				.period_ms = 250,
			};

			send_media(media_fd, media, flow, (uint16_t)packets, saddr, daddr);
			if (packets % per_message)
				continue;
			len = t_message(ip, media, &m);
			paqm_put32(ip + 12, daddr);
			paqm_put32(ip + 16, saddr);
			t_seal(ip, len);
			send_ip(router_fd, ip, len);
			sent++;
		}
	}
	sleep(1);
	stop = true;
	pthread_join(thread, NULL);
	qsort(latency_ns, latencies, sizeof(*latency_ns), compare);
	printf("{\"registered\": %u, \"refused\": %u, \"sent\": %llu, \"told\": %zu, "
	       "\"p50_ms\": %.4f, \"p99_ms\": %.4f, \"max_ms\": %.4f, \"expired\": %u}\n",
	       registered, refused, (unsigned long long)sent, latencies, percentile_ms(0.5),
	       percentile_ms(0.99), percentile_ms(1), expired);
	return 0;
}
