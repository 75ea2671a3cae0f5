/* SPDX-License-Identifier: GPL-2.0 */
/* Addresses of 16 bytes: IPv6, or IPv4 mapped into it (RFC 4291 section 2.5.5.2). */
#ifndef PAQMD_ADDR_H
#define PAQMD_ADDR_H

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define ADDR_TEXT INET6_ADDRSTRLEN

struct addr {
	uint8_t b[16];
};

static inline struct addr addr_v4(const uint8_t a[4])
{
	return (struct addr){{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a[0], a[1], a[2], a[3]}};
}

static inline struct addr addr_v6(const uint8_t a[16])
{
	struct addr r;

	memcpy(r.b, a, sizeof(r.b));
	return r;
}

static inline bool addr_is_v4(const struct addr *a)
{
	static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};

	return !memcmp(a->b, prefix, sizeof(prefix));
}

/* Unspecified, of either version. */
static inline bool addr_is_any(const struct addr *a)
{
	static const uint8_t zero[16];

	return !memcmp(a->b, zero, 16) || (addr_is_v4(a) && !memcmp(a->b + 12, zero, 4));
}

static inline bool addr_equal(const struct addr *a, const struct addr *b)
{
	return !memcmp(a->b, b->b, sizeof(a->b));
}

/* As people write it. Return: @buf. */
static inline const char *addr_text(const struct addr *a, char buf[ADDR_TEXT])
{
	return addr_is_v4(a) ? inet_ntop(AF_INET, a->b + 12, buf, ADDR_TEXT)
			     : inet_ntop(AF_INET6, a->b, buf, ADDR_TEXT);
}

#endif /* PAQMD_ADDR_H */
