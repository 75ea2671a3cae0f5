/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What is said at a rendezvous before two ends are joined, in lines of ASCII:
 *
 *   server  paqm-meet 1 WORD    to who has come, and again to who waits when the word changes
 *   end     meet WORD NAME      to each of these
 *   server  first | second      the other one is there: all further bytes are its
 *   server  no REASON           and hangs up
 *
 * WORD has 32 hexadecimal digits, NAME 64, small letters only. A NAME is made of the secret that
 * both ends share and of the WORD (call/meet.c): it is the same for both, nobody else can make it,
 * and it is worth nothing once the word has changed. Pure functions; they trust nothing in a line.
 */
#ifndef PAQM_MEET_WORDS_H
#define PAQM_MEET_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MEET_PORT 5091
#define MEET_WORD 16  /* bytes */
#define MEET_NAME 32  /* bytes: HMAC-SHA256 */
#define MEET_REASON 9 /* letters, with the final zero */
#define MEET_LINE 112 /* the longest line, with its end and a final zero */

enum meet_kind { MEET_GREETING, MEET_HELLO, MEET_FIRST, MEET_SECOND, MEET_NO };

struct meet_line {
	enum meet_kind kind;
	uint8_t word[MEET_WORD]; /* of a greeting, of a hello */
	uint8_t name[MEET_NAME]; /* of a hello */
	char reason[MEET_REASON];
};

/* @line without its end. FALSE: it is none of these. */
bool meet_read(struct meet_line *out, const char *line, size_t len);
/* With its end, and a final zero. Return: bytes without that. */
size_t meet_write(const struct meet_line *line, char out[MEET_LINE]);

#endif /* PAQM_MEET_WORDS_H */
