// SPDX-License-Identifier: GPL-2.0
/* The lines of a rendezvous; see words.h. Each has one spelling only. */
#include "streamer/meet/words.h"

#include <stdio.h>
#include <string.h>

#define GREETING "paqm-meet 1 "
#define HELLO "meet "
#define NO "no "

struct text {
	const char *at;
	size_t left;
};

static bool take(struct text *t, const char *what)
{
	size_t len = strlen(what);

	if (t->left < len || memcmp(t->at, what, len))
		return false;
	t->at += len;
	t->left -= len;
	return true;
}

static int digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool take_bytes(struct text *t, uint8_t *out, size_t size)
{
	if (t->left < 2 * size)
		return false;
	for (size_t i = 0; i < size; i++) {
		int high = digit(t->at[2 * i]), low = digit(t->at[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		out[i] = (uint8_t)(high << 4 | low);
	}
	t->at += 2 * size;
	t->left -= 2 * size;
	return true;
}

static bool take_reason(struct text *t, char out[MEET_REASON])
{
	if (!t->left || t->left >= MEET_REASON)
		return false;
	for (size_t i = 0; i < t->left; i++)
		if (t->at[i] < 'a' || t->at[i] > 'z')
			return false;
	memcpy(out, t->at, t->left);
	t->left = 0;
	return true;
}

bool meet_read(struct meet_line *out, const char *line, size_t len)
{
	struct text t = {line, len};

	memset(out, 0, sizeof(*out));
	if (take(&t, GREETING)) {
		out->kind = MEET_GREETING;
		return take_bytes(&t, out->word, MEET_WORD) && !t.left;
	}
	if (take(&t, HELLO)) {
		out->kind = MEET_HELLO;
		return take_bytes(&t, out->word, MEET_WORD) && take(&t, " ") &&
		       take_bytes(&t, out->name, MEET_NAME) && !t.left;
	}
	if (take(&t, NO)) {
		out->kind = MEET_NO;
		return take_reason(&t, out->reason);
	}
	out->kind = take(&t, "first") ? MEET_FIRST : MEET_SECOND;
	return (out->kind == MEET_FIRST || take(&t, "second")) && !t.left;
}

static size_t put_bytes(char *out, const uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		sprintf(out + 2 * i, "%02x", bytes[i]);
	return 2 * size;
}

size_t meet_write(const struct meet_line *line, char out[MEET_LINE])
{
	size_t n = 0;

	switch (line->kind) {
	case MEET_GREETING:
		n = (size_t)sprintf(out, GREETING);
		n += put_bytes(out + n, line->word, MEET_WORD);
		break;
	case MEET_HELLO:
		n = (size_t)sprintf(out, HELLO);
		n += put_bytes(out + n, line->word, MEET_WORD);
		out[n++] = ' ';
		n += put_bytes(out + n, line->name, MEET_NAME);
		break;
	case MEET_FIRST:
		n = (size_t)sprintf(out, "first");
		break;
	case MEET_SECOND:
		n = (size_t)sprintf(out, "second");
		break;
	case MEET_NO:
		n = (size_t)sprintf(out, NO "%.*s", MEET_REASON - 1, line->reason);
		break;
	}
	out[n] = '\n';
	out[n + 1] = 0;
	return n + 1;
}
