/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Keys that routers make the tags of their messages with (docs/protocol.md section 10.4).
 *
 * A keys file has a line for each key:
 *
 *	ROUTER-ID|* KEY-ID HEX [host]	# comment
 *
 * 1 to 16 hexadecimal digits as `tc` shows them, or * for every router without a line of its
 * own; 1 to 65535; 32 hexadecimal digits: the router's key or, with the word `host`, what
 * `paqmctl host-key` derives from it for this host: with it no other host can be deceived.
 * A host has a key for each of its addresses, so such lines may have one router and id.
 * Several keys of a router are valid at once, so that a new one can be added here before the
 * router uses it.
 */
#ifndef PAQMD_KEYS_H
#define PAQMD_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "feedback-daemon/judge/addr.h"
#include "core/paqm_msg.h"
#include "core/paqm_siphash.h"

#define KEYS_MAX 256
#define KEYS_FILE_MAX 65536 /* bytes */

struct key {
	uint64_t router;
	uint16_t id;
	bool any;  /* for routers without their own key; @router is 0 */
	bool host; /* of this host; else the router's */
	uint8_t bytes[PAQM_SIPHASH_KEY];
};

struct keyring {
	unsigned int n;
	struct key key[KEYS_MAX];
};

enum keys_verdict {
	KEYS_NONE,    /* there is no key for this router */
	KEYS_VALID,   /* the tag is right */
	KEYS_MISSING, /* the router has keys, the message has no tag */
	KEYS_UNKNOWN, /* the router has keys, none with this id */
	KEYS_BAD,     /* the tag is wrong */
};

/**
 * keys_parse() - read the text of a keys file
 * @text: text, not terminated
 * @len: its length
 * @ring: set to the keys; undefined on failure
 * @line: set to the line that is wrong, from 1
 *
 * Return: NULL, or what is wrong and what to do.
 */
const char *keys_parse(const char *text, size_t len, struct keyring *ring, unsigned int *line);

/**
 * keys_check() - does the tag of a message prove its router?
 * @ring: the keys
 * @m: the message, as it was decoded
 * @q: what it quotes
 * @to: address that it came to; NULL: none that the quoted flow sends from
 *
 * A router's key proves what is tagged with the key that is derived from it for @to, and messages
 * of version 1, which are tagged with itself. This host's own key proves wherever @to is: a NAT may
 * have put another address there.
 */
enum keys_verdict keys_check(const struct keyring *ring, const struct paqm_msg *m,
			     const struct paqm_quote *q, const struct addr *to);

/* The key of the host at @addr, derived from that of a router. */
void keys_derive(const uint8_t router[PAQM_SIPHASH_KEY], const struct addr *addr,
		 uint8_t own[PAQM_SIPHASH_KEY]);

/* Erase the keys. */
void keys_wipe(struct keyring *ring);

#endif /* PAQMD_KEYS_H */
