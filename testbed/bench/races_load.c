// SPDX-License-Identifier: GPL-2.0
/*
 * Traffic for races.sh: streams as of video, TCP, and the far end that takes both.
 *
 *   races_load sink                        takes datagrams of all streams, and connections
 *   races_load rtp PORT FLOWS PAUSE_US     RTP to ports from PORT on, a packet each, then a pause
 *   races_load tcp                         one connection after another, as fast as they go
 *
 * Ends when it is killed.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define FAR "10.0.0.2"
#define TCP_PORT 8000
#define FIRST_PORT 5000
#define PORTS 32
#define CONNECTIONS 32
#define WRITES 200 /* of a connection, before the next one */
#define PICTURE 10 /* packets; the last one has the marker */
#define TICKS 3000 /* of RTP's clock between two pictures */

static struct sockaddr_in far_end(int port)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};

	inet_pton(AF_INET, FAR, &to.sin_addr);
	return to;
}

static int bound(int type, int port)
{
	struct sockaddr_in here = far_end(port);
	int fd = socket(AF_INET, type, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&here, sizeof(here))) {
		perror("races_load: sink");
		exit(1);
	}
	return fd;
}

static void sink(void)
{
	struct pollfd fds[1 + PORTS + CONNECTIONS] = {{.events = POLLIN}};
	static char taken[1 << 16];
	int count = 1;

	fds[0].fd = bound(SOCK_STREAM, TCP_PORT);
	listen(fds[0].fd, CONNECTIONS);
	for (; count <= PORTS; count++) {
		fds[count].fd = bound(SOCK_DGRAM, FIRST_PORT + count - 1);
		fds[count].events = POLLIN;
	}
	for (;;) {
		poll(fds, count, -1);
		for (int i = count - 1; i > 0; i--) {
			if (!fds[i].revents || recv(fds[i].fd, taken, sizeof(taken), 0) > 0 ||
			    i <= PORTS)
				continue;
			close(fds[i].fd);
			fds[i] = fds[--count];
		}
		if (!(fds[0].revents & POLLIN) || count == 1 + PORTS + CONNECTIONS)
			continue;
		fds[count].fd = accept(fds[0].fd, NULL, NULL);
		fds[count].revents = 0;
		fds[count++].events = POLLIN;
	}
}

static void tcp(void)
{
	static const char zeros[1 << 16];
	struct sockaddr_in to = far_end(TCP_PORT);

	for (;;) {
		int fd = socket(AF_INET, SOCK_STREAM, 0);

		if (connect(fd, (struct sockaddr *)&to, sizeof(to)))
			usleep(100000);
		else
			for (int i = 0; i < WRITES; i++)
				if (send(fd, zeros, sizeof(zeros), MSG_NOSIGNAL) <= 0)
					break;
		close(fd);
	}
}

static void put16(unsigned char *at, unsigned int value)
{
	at[0] = value >> 8;
	at[1] = value;
}

static void rtp(int port, int flows, int pause_us)
{
	unsigned char packet[1200] = {0x80};
	int fds[PORTS];

	for (int i = 0; i < flows; i++)
		fds[i] = socket(AF_INET, SOCK_DGRAM, 0);
	for (unsigned int seq = 0;; seq++) {
		unsigned int ticks = seq / PICTURE * TICKS;

		packet[1] = 96 | (seq % PICTURE == PICTURE - 1) << 7;
		put16(packet + 2, seq);
		put16(packet + 4, ticks >> 16);
		put16(packet + 6, ticks);
		for (int i = 0; i < flows; i++) {
			struct sockaddr_in to = far_end(port + i);

			put16(packet + 10, port + i);
			sendto(fds[i], packet, sizeof(packet), MSG_DONTWAIT, (struct sockaddr *)&to,
			       sizeof(to));
		}
		usleep(pause_us);
	}
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "sink"))
		sink();
	if (argc == 2 && !strcmp(argv[1], "tcp"))
		tcp();
	if (argc == 5 && !strcmp(argv[1], "rtp") && atoi(argv[3]) <= PORTS)
		rtp(atoi(argv[2]), atoi(argv[3]), atoi(argv[4]));
	fprintf(stderr, "usage: races_load sink | tcp | rtp PORT FLOWS PAUSE_US\n");
	return 2;
}
