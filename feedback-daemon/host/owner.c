// SPDX-License-Identifier: GPL-2.0
/* Owners of UDP sockets; see owner.h. */
#include "feedback-daemon/host/owner.h"

#include <string.h>

#include "feedback-daemon/loop.h"

#define SHARE 20	 /* at most one part in this many of the time, */
#define BURST 50000000LL /* ns: at most this much at once */

/* An address of the table: words in host order, of IPv6 four of them. Return: whether it is one. */
static bool parse_addr(const char *hex, struct addr *a)
{
	size_t words = strlen(hex) / 8, i;
	uint32_t w[4];

	if (strlen(hex) % 8 || (words != 1 && words != 4))
		return false;
	for (i = 0; i < words; i++)
		if (sscanf(hex + 8 * i, "%8x", &w[i]) != 1)
			return false;
	*a = words == 4 ? addr_v6((const uint8_t *)w) : addr_v4((const uint8_t *)w);
	return true;
}

/* An open address of IPv6 may stand for one of IPv4. */
static bool fits(const struct addr *of_socket, bool v6, const struct addr *of_packet)
{
	if (addr_is_any(of_socket))
		return v6 || addr_is_v4(of_packet);
	return addr_equal(of_socket, of_packet);
}

enum owner owner_read(FILE *table, const struct owner_ends *p, uint32_t uid, enum owner found)
{
	char line[512], local[33], remote[33];
	unsigned int lport, rport, owner;
	struct addr l, r;

	while (found != OWNER_OTHER && fgets(line, sizeof(line), table)) {
		bool v6;

		if (sscanf(line, " %*u: %32[0-9A-F]:%4x %32[0-9A-F]:%4x %*x %*x:%*x %*x:%*x %*x %u",
			   local, &lport, remote, &rport, &owner) != 5 ||
		    lport != p->sport || !parse_addr(local, &l) || !parse_addr(remote, &r))
			continue;
		v6 = strlen(local) == 32;
		if (!fits(&l, v6, &p->saddr) ||
		    (rport && (rport != p->dport || !fits(&r, v6, &p->daddr))))
			continue;
		found = owner == uid || !owner ? OWNER_HIS : OWNER_OTHER;
	}
	return found;
}

enum owner owner_of(const struct owner_ends *p, uint32_t uid)
{
	static const char *const tables[] = {"/proc/self/net/udp", "/proc/self/net/udp6"};
	static int64_t credit = BURST;
	static uint64_t before_ns;
	enum owner found = OWNER_UNKNOWN;
	uint64_t begin = clock_ns(CLOCK_MONOTONIC);
	size_t i;

	credit += (int64_t)((begin - before_ns) / SHARE);
	if (credit > BURST)
		credit = BURST;
	before_ns = begin;
	if (credit <= 0)
		return OWNER_UNKNOWN;
	for (i = addr_is_v4(&p->saddr) ? 0 : 1; i < 2; i++) {
		FILE *f = fopen(tables[i], "re");

		if (!f) /* without IPv6 there is no second one */
			continue;
		found = owner_read(f, p, uid, found);
		fclose(f);
	}
	credit -= (int64_t)(clock_ns(CLOCK_MONOTONIC) - begin);
	return found;
}
