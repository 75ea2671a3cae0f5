// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Sends RTP-like packets to ADDRESS PORT, at what the routers allow.
 * cc follow.c $(pkg-config --cflags --libs libpaqmclient)
 */
#include <arpa/inet.h>
#include <paqmclient.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

int main(int argc, char **argv)
{
	uint64_t rate = 300000, debt_ns = 0; /* without advice: what is safe here */
	struct sockaddr_in to = {.sin_family = AF_INET}, from = {.sin_family = AF_INET};
	struct paqm_client *c = paqm_client_open(NULL);
	int s = socket(AF_INET, SOCK_DGRAM, 0);
	struct paqm_client_advice a;
	uint8_t rtp[1172] = {0x80, 96};

	if (!c) {
		perror("follow: paqmd's socket");
		return 1;
	}
	if (argc != 3 || inet_pton(AF_INET, argv[1], &to.sin_addr) != 1 || atoi(argv[2]) < 1 ||
	    atoi(argv[2]) > UINT16_MAX) {
		fprintf(stderr, "Usage: follow ADDRESS PORT, an IPv4 address and 1 to 65535\n");
		return 1;
	}
	to.sin_port = htons((uint16_t)atoi(argv[2]));
	from.sin_port = htons(5004);
	if (bind(s, (struct sockaddr *)&from, sizeof(from)) ||
	    connect(s, (struct sockaddr *)&to, sizeof(to))) {
		perror("follow: from port 5004 to there");
		return 1;
	}
	if (paqm_client_add(c, NULL, 5004, argv[1], ntohs(to.sin_port), 0, 100000, 5000000) < 0) {
		fprintf(stderr, "follow: this cannot be a flow\n");
		return 1;
	}
	for (uint16_t seq = 0;; seq++) {
		struct pollfd p = {.fd = paqm_client_fd(c), .events = POLLIN};

		rtp[2] = (uint8_t)(seq >> 8);
		rtp[3] = (uint8_t)seq;
		if (getrandom(rtp + 12, sizeof(rtp) - 12, 0) < 0 ||
		    send(s, rtp, sizeof(rtp), 0) < 0) {
			perror("follow: send");
			return 1;
		}
		debt_ns += 8 * (sizeof(rtp) + 28) * 1000000000ULL / rate;
		while (poll(&p, 1, (int)(debt_ns / 1000000)) > 0)
			while (paqm_client_next(c, &a))
				printf("%llu\n", (unsigned long long)(rate = a.rate_bps ? a.rate_bps
											: 300000));
		debt_ns %= 1000000;
		fflush(stdout);
	}
}
