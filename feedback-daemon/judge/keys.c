// SPDX-License-Identifier: GPL-2.0
/* Keys of routers: lines of the file, and the check of tags; see keys.h. */
#include "feedback-daemon/judge/keys.h"

#include <string.h>

#define WORDS 4 /* the last one may be missing */
#define ROUTER_DIGITS 16
#define ID_DIGITS 5

struct word {
	const char *p;
	size_t len;
};

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* Digits of base 10 or 16 that fill the word, at most @max. */
static bool number(const struct word *w, int base, size_t max, uint64_t *value)
{
	size_t i;
	int d;

	*value = 0;
	if (!w->len || w->len > max)
		return false;
	for (i = 0; i < w->len; i++) {
		d = hex_digit(w->p[i]);
		if (d < 0 || d >= base)
			return false;
		*value = *value * (uint64_t)base + (uint64_t)d;
	}
	return true;
}

/* Words of a line up to a comment; at most one more than WORDS are counted. */
static unsigned int split(const char *p, size_t len, struct word *word)
{
	unsigned int n = 0;
	size_t i = 0, begin;

	while (n <= WORDS) {
		while (i < len && (p[i] == ' ' || p[i] == '\t' || p[i] == '\r'))
			i++;
		if (i == len || p[i] == '#')
			break;
		begin = i;
		while (i < len && p[i] != ' ' && p[i] != '\t' && p[i] != '\r' && p[i] != '#')
			i++;
		if (n < WORDS)
			word[n] = (struct word){p + begin, i - begin};
		n++;
	}
	return n;
}

static const char *parse_line(const struct word *word, unsigned int n, struct key *k)
{
	unsigned int any = 0;
	uint64_t value;
	size_t i;
	int hi, lo;

	*k = (struct key){.any = word[0].len == 1 && *word[0].p == '*'};
	if (!k->any && (!number(&word[0], 16, ROUTER_DIGITS, &k->router) || !k->router))
		return "router must be * or its id, 1 to 16 hexadecimal digits (tc -d qdisc show)";
	if (!number(&word[1], 10, ID_DIGITS, &value) || !value || value > 0xFFFF)
		return "key id must be a number from 1 to 65535";
	k->id = (uint16_t)value;
	if (word[2].len != 2 * sizeof(k->bytes))
		return "key must have 32 hexadecimal digits (openssl rand -hex 16)";
	for (i = 0; i < sizeof(k->bytes); i++) {
		hi = hex_digit(word[2].p[2 * i]);
		lo = hex_digit(word[2].p[2 * i + 1]);
		if (hi < 0 || lo < 0)
			return "key must have 32 hexadecimal digits (openssl rand -hex 16)";
		k->bytes[i] = (uint8_t)(hi << 4 | lo);
		any |= k->bytes[i];
	}
	k->host = n == WORDS;
	if (k->host && (word[3].len != 4 || memcmp(word[3].p, "host", 4)))
		return "only the word host may follow the key: it marks a key of this host";
	return any ? NULL : "key must not be all 0";
}

static const char *add(struct keyring *ring, const struct key *k)
{
	unsigned int i;

	for (i = 0; i < ring->n; i++) {
		const struct key *old = &ring->key[i];

		if (old->router != k->router || old->id != k->id)
			continue;
		/* a host has a key for each of its addresses */
		if (!old->host || !k->host || !memcmp(old->bytes, k->bytes, sizeof(k->bytes)))
			return "same router and key id as an earlier line; remove one";
	}
	if (ring->n == KEYS_MAX)
		return "more than 256 keys; remove those no longer used";
	ring->key[ring->n++] = *k;
	return NULL;
}

const char *keys_parse(const char *text, size_t len, struct keyring *ring, unsigned int *line)
{
	struct word word[WORDS];
	const char *end, *error;
	struct key k;
	unsigned int n;
	size_t used;

	ring->n = 0;
	for (*line = 1; len; ++*line) {
		end = memchr(text, '\n', len);
		used = end ? (size_t)(end - text) : len;
		n = split(text, used, word);
		if (n && n != WORDS && n != WORDS - 1)
			return "expected ROUTER-ID|* KEY-ID HEX [host]";
		error = n ? parse_line(word, n, &k) : NULL;
		if (n && !error)
			error = add(ring, &k);
		explicit_bzero(&k, sizeof(k));
		if (error)
			return error;
		used += !!end;
		text += used;
		len -= used;
	}
	return NULL;
}

void keys_derive(const uint8_t router[PAQM_SIPHASH_KEY], const struct addr *addr,
		 uint8_t own[PAQM_SIPHASH_KEY])
{
	uint8_t bytes[PAQM_HOST_BYTES];
	uint64_t half;
	int i, b;

	for (i = 0; i < 2; i++) {
		paqm_host_bytes(addr->b, i, bytes);
		half = paqm_siphash24(router, bytes, sizeof(bytes));
		for (b = 0; b < 8; b++) /* the least significant byte comes first */
			own[8 * i + b] = (uint8_t)(half >> 8 * b);
	}
}

/* Is the tag of @m what @k makes of @bytes? */
static bool proves(const struct key *k, const struct paqm_msg *m, const struct addr *to,
		   const uint8_t *bytes, uint32_t n)
{
	uint8_t own[PAQM_SIPHASH_KEY];
	bool ok;

	if (m->version == 1)
		return !k->host && paqm_tag_equal(paqm_siphash24(k->bytes, bytes, n), m->tag);
	if (!k->host && !to)
		return false;
	if (k->host)
		memcpy(own, k->bytes, sizeof(own));
	else
		keys_derive(k->bytes, to, own);
	ok = paqm_tag_equal(paqm_siphash24(own, bytes, n), m->tag);
	explicit_bzero(own, sizeof(own));
	return ok;
}

enum keys_verdict keys_check(const struct keyring *ring, const struct paqm_msg *m,
			     const struct paqm_quote *q, const struct addr *to)
{
	bool own = false, theirs = false, found = false;
	uint8_t bytes[PAQM_TAG_BYTES];
	uint32_t n;
	unsigned int i;

	for (i = 0; i < ring->n; i++) {
		own |= !ring->key[i].any && ring->key[i].router == m->router_id;
		theirs |= ring->key[i].any;
	}
	if (!own && !theirs)
		return KEYS_NONE;
	if (!(m->flags & PAQM_F_AUTH))
		return KEYS_MISSING;
	n = m->version == 1 ? paqm1_tag_bytes(m->object, q, bytes)
			    : paqm_tag_bytes(m->object, m->object_len, q, bytes);
	for (i = 0; i < ring->n; i++) {
		const struct key *k = &ring->key[i];

		/* the key of all routers says nothing about one that has its own */
		if (k->id != m->key_id || k->any == own || (own && k->router != m->router_id))
			continue;
		found = true;
		if (proves(k, m, to, bytes, n))
			return KEYS_VALID;
	}
	return found ? KEYS_BAD : KEYS_UNKNOWN;
}

void keys_wipe(struct keyring *ring)
{
	explicit_bzero(ring, sizeof(*ring));
}
