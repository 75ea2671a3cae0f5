// SPDX-License-Identifier: GPL-2.0
/* Owners of UDP sockets; see owner.h. */
#include "feedback-daemon/host/owner.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "feedback-daemon/loop.h"

#define SHARE 20	 /* at most one part in this many of the time, */
#define BURST 50000000LL /* ns: at most this much at once */

/* 192.0.0.0/29: what a host that translates its own IPv4 calls itself (RFC 7335) */
#define CLAT_ADDRS 8U

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

/* All but the user: what a packet tells of its socket. */
#define ENDS offsetof(struct owner_socket, uid)

_Static_assert(sizeof(struct owner_socket) == ENDS + sizeof(uint32_t), "compared as bytes");

static int compare(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct owner_socket));
}

/* Return: false if there is no memory for another one. */
static bool add(struct owner_table *t, const struct owner_socket *s)
{
	uint32_t room = t->room ? 2 * t->room : 64;
	struct owner_socket *more;

	if (t->n == t->room) {
		more = t->room < OWNER_SOCKETS ? realloc(t->of, room * sizeof(*more)) : NULL;
		if (!more)
			return false;
		t->of = more;
		t->room = room;
	}
	t->of[t->n++] = *s;
	return true;
}

/* Sockets that are alike in all, of which a user may have any number, are one. */
static void put_in_order(struct owner_table *t)
{
	uint32_t i, n = 0;

	if (!t->n)
		return;
	qsort(t->of, t->n, sizeof(*t->of), compare);
	for (i = 1; i < t->n; i++)
		if (compare(&t->of[n], &t->of[i]))
			t->of[++n] = t->of[i];
	t->n = n + 1;
}

void owner_read(struct owner_table *t, FILE *text)
{
	char line[512], local[33], remote[33];
	unsigned int lport, rport, owner;

	while (fgets(line, sizeof(line), text)) {
		struct owner_socket s = {0};

		if (sscanf(line, " %*u: %32[0-9A-F]:%4x %32[0-9A-F]:%4x %*x %*x:%*x %*x:%*x %*x %u",
			   local, &lport, remote, &rport, &owner) != 5 ||
		    !parse_addr(local, &s.local) || !parse_addr(remote, &s.remote))
			continue;
		if (!rport) /* connected to nobody */
			s.remote = (struct addr){{0}};
		s.lport = (uint16_t)lport;
		s.rport = (uint16_t)rport;
		s.uid = owner;
		if (!add(t, &s))
			break;
	}
	put_in_order(t);
}

/* The first socket that is not before @s. */
static uint32_t place(const struct owner_table *t, const struct owner_socket *s)
{
	uint32_t low = 0, high = t->n;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (memcmp(&t->of[mid], s, ENDS) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

enum owner owner_find(const struct owner_table *t, const struct owner_ends *p, uint32_t uid)
{
	/* An open address of IPv6 may stand for one of IPv4. */
	struct addr local[3 + CLAT_ADDRS] = {p->saddr, {{0}}, {{[10] = 0xff, [11] = 0xff}}};
	unsigned int n, count = addr_is_v4(&p->daddr) ? 3 : 2;
	enum owner found = OWNER_UNKNOWN;
	uint32_t i;

	for (n = 0; addr_is_any(&p->saddr) && n < CLAT_ADDRS; n++)
		local[count++] = addr_v4((const uint8_t[]){192, 0, 0, (uint8_t)n});
	for (n = 0; n < 2 * count; n++) { /* of each address: connected, or not */
		struct owner_socket s = {.lport = p->sport, .local = local[n / 2]};

		if (n % 2) {
			s.remote = p->daddr;
			s.rport = p->dport;
		}
		for (i = place(t, &s); i < t->n && !memcmp(&t->of[i], &s, ENDS); i++) {
			if (t->of[i].uid && t->of[i].uid != uid)
				return OWNER_OTHER;
			found = OWNER_HIS;
		}
	}
	return found;
}

enum owner owner_of(const struct owner_ends *p, uint32_t uid)
{
	static const char *const tables[] = {"/proc/self/net/udp", "/proc/self/net/udp6"};
	static struct owner_table table;
	static int64_t credit = BURST;
	static uint64_t before_ns;
	uint64_t begin = clock_ns(CLOCK_MONOTONIC);
	size_t i;

	credit += (int64_t)((begin - before_ns) / SHARE);
	if (credit > BURST)
		credit = BURST;
	before_ns = begin;
	if (credit > 0) {
		for (i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
			FILE *f = fopen(tables[i], "re");

			if (!f) /* there is no IPv6; or no file is left, and the former holds */
				break;
			if (!i)
				table.n = 0;
			owner_read(&table, f);
			fclose(f);
		}
		credit -= (int64_t)(clock_ns(CLOCK_MONOTONIC) - begin);
	}
	return owner_find(&table, p, uid);
}
