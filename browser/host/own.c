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

/* Does a socket with this local address, words in host order, send from @source? */
static bool sends_from(const char *hex, const char *source)
{
	static const uint8_t any[16], mapped[12] = {[10] = 0xFF, [11] = 0xFF};
	size_t len = strlen(hex), i;
	uint8_t local[16], want[16];
	bool v6 = len == 32;
	uint32_t word;

	if (!*source)
		return true;
	if (!v6 && len != 8)
		return false;
	for (i = 0; i < len / 8; i++) {
		if (sscanf(hex + 8 * i, "%8x", &word) != 1)
			return false;
		memcpy(local + 4 * i, &word, sizeof(word));
	}
	/* An open socket of IPv6 may send over IPv4. */
	if (!memcmp(local, any, len / 2))
		return v6 || inet_pton(AF_INET, source, want) == 1;
	if (inet_pton(AF_INET6, source, want) == 1)
		return v6 && !memcmp(local, want, 16);
	return inet_pton(AF_INET, source, want) == 1 &&
	       (!v6 || !memcmp(local, mapped, sizeof(mapped))) &&
	       !memcmp(local + (v6 ? 12 : 0), want, 4);
}

bool own_line(const char *line, const char *source, uint16_t port, uid_t uid)
{
	unsigned int local, owner;
	char addr[33];

	/* sl local:port remote:port st tx:rx tr:when retrnsmt uid */
	return sscanf(line, "%*u: %32[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %*x %*x:%*x %*x:%*x %*x %u",
		      addr, &local, &owner) == 3 &&
	       local == port && owner == uid && sends_from(addr, source);
}

bool own_socket(const char *source, uint16_t port, uid_t uid)
{
	static const char *const table[] = {"/proc/net/udp", "/proc/net/udp6"};
	bool found = false;
	char line[512];
	size_t i;

	for (i = 0; i < 2 && !found; i++) {
		FILE *f = fopen(table[i], "re");

		while (f && !found && fgets(line, sizeof(line), f))
			found = own_line(line, source, port, uid);
		if (f)
			fclose(f);
	}
	return found;
}
