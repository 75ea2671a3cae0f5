// SPDX-License-Identifier: GPL-2.0
/* Options and sockets of sender and sink of spec_traffic. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "kernel/lab-tests/spec_traffic.h"

void parse_options(char **argv, const struct option_of *table)
{
	while (*++argv) {
		const struct option_of *o = table;

		while (o->name && (strncmp(*argv, "--", 2) || strcmp(*argv + 2, o->name)))
			o++;
		if (!o->name)
			die("unknown option %s", *argv);
		if (o->on) {
			*o->on = true;
			continue;
		}
		if (!*++argv)
			die("--%s: its value is missing", o->name);
		if (o->word)
			*o->word = *argv;
		else
			*o->number = number(o->name, *argv, o->least, o->most);
	}
}

int one_of(const char *name, const char *value, const char *const *wanted)
{
	int i;

	for (i = 0; wanted[i]; i++)
		if (!strcmp(value, wanted[i]))
			return i;
	die("--%s %s: no such word", name, value);
}

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
