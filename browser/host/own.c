// SPDX-License-Identifier: GPL-2.0
/* Addresses and UDP sockets of this host; see own.h. */
#include "browser/host/own.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

bool own_address(const char *text)
{
	struct ifaddrs *all, *one;
	uint8_t want[16];
	bool found = false;
	int family = inet_pton(AF_INET, text, want) == 1 ? AF_INET : AF_INET6;

	if (family == AF_INET6 && inet_pton(AF_INET6, text, want) != 1)
		return false;
	if (getifaddrs(&all))
		return false;
	for (one = all; one && !found; one = one->ifa_next) {
		if (!one->ifa_addr || one->ifa_addr->sa_family != family)
			continue;
		if (family == AF_INET)
			found = !memcmp(&((struct sockaddr_in *)one->ifa_addr)->sin_addr, want, 4);
		else
			found = !memcmp(&((struct sockaddr_in6 *)one->ifa_addr)->sin6_addr, want,
					16);
	}
	freeifaddrs(all);
	return found;
}

bool own_line(const char *line, uint16_t port, uid_t uid)
{
	unsigned int local, owner;

	/* sl local:port remote:port st tx:rx tr:when retrnsmt uid */
	return sscanf(line, "%*u: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %*x %*x:%*x %*x:%*x %*x %u",
		      &local, &owner) == 2 &&
	       local == port && owner == uid;
}

bool own_port(uint16_t port, uid_t uid)
{
	static const char *const table[] = {"/proc/net/udp", "/proc/net/udp6"};
	bool found = false;
	char line[512];
	size_t i;

	for (i = 0; i < 2 && !found; i++) {
		FILE *f = fopen(table[i], "re");

		while (f && !found && fgets(line, sizeof(line), f))
			found = own_line(line, port, uid);
		if (f)
			fclose(f);
	}
	return found;
}
