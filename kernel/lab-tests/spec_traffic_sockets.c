// SPDX-License-Identifier: GPL-2.0
/* Sockets of sender and sink of spec_traffic. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "kernel/lab-tests/spec_traffic.h"

int udp_socket(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);

	if (fd < 0)
		die("no UDP socket: %s", strerror(errno));
	return fd;
}

void force_buffer(int fd, int option, int bytes)
{
	if (setsockopt(fd, SOL_SOCKET, option, &bytes, sizeof(bytes)))
		die("socket buffer of %d bytes: %s", bytes, strerror(errno));
}

void bind_port(int fd, int port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};

	if (bind(fd, (struct sockaddr *)&a, sizeof(a)))
		die("UDP port %d: %s", port, strerror(errno));
}
