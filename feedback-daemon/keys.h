/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Keys that routers make the tags of their messages with (docs/protocol.md section 10.4).
 *
 * A keys file has a line for each key:
 *
 *	ROUTER-ID|* KEY-ID HEX	# comment
 *
 * 1 to 16 hexadecimal digits as `tc` shows them, or * for every router without a line of its
 * own; 1 to 65535; 32 hexadecimal digits. Several keys of one router hold at once, so that a
 * new one can be known here before the router uses it.
 */
#ifndef PAQMD_KEYS_H
#define PAQMD_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/paqm_msg.h"
#include "core/paqm_siphash.h"

#define KEYS_MAX 256
#define KEYS_FILE_MAX 65536 /* bytes */

struct key {
	uint64_t router;
	uint16_t id;
	bool any; /* for routers without a key of their own; @router is 0 */
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
 * keys_load() - read a keys file
 * @path: must be a plain file of root, this user or @user which nobody else may read or write;
 *        or a credential, in $CREDENTIALS_DIRECTORY
 * @user: whom this process is going to be; or the same as geteuid()
 * @ring: set to the keys; empty on failure
 * @error: text for people, names file and line
 * @size: of @error
 *
 * Return: 0 or -1.
 */
int keys_load(const char *path, uid_t user, struct keyring *ring, char *error, size_t size);

/* Does the tag of a message with the quoted @payload prove its router? */
enum keys_verdict keys_check(const struct keyring *ring, const struct paqm_msg *m,
			     const uint8_t *payload, uint32_t len);

/* Forget the keys, for good. */
void keys_wipe(struct keyring *ring);

#endif /* PAQMD_KEYS_H */
