/* SPDX-License-Identifier: GPL-2.0 */
/* What the test vectors are made of (make_vectors.c): packets quoted, and messages about them. */
#ifndef PAQM_VECTOR_KIT_H
#define PAQM_VECTOR_KIT_H

#include <jansson.h>

#include "../paqm_siphash.h"
#include "inband_vectors.h"
#include "vector_names.h"

#define PLAIN 28		      /* bytes that prove a plain RTP packet */
#define FOREIGN "0008 02 01 deadbeef" /* RFC 5837 */
#define LATER "000c f7 01 5041514d 03ffffff"

extern const struct paqm_msg vector_sample;
extern const paqm_u8 vector_router_key[PAQM_SIPHASH_KEY];
extern const paqm_u8 vector_router6[16];

/* A packet's head as a router quotes it. */
struct vector_quote {
	paqm_u8 bytes[PAQM_QUOTE_MAX];
	paqm_u32 hlen;
	paqm_u32 payload;
	int v6;
};

/* How a message is made. */
struct vector_how {
	paqm_u8 type; /* 0: that of carrier `icmp` */
	int version;  /* 0: the present one */
	int tagged;
	const char *options;	     /* more of them in our object, hexadecimal */
	const char *before, *behind; /* objects beside ours */
	int no_checksum;	     /* of the extension structure */
	int alone;		     /* without our object */
	int auth;		     /* the flag, and no tag */
};

/* Hexadecimal digits as JSON, and back: without blanks into @p; bytes. */
json_t *vector_hex(const paqm_u8 *p, paqm_u32 len);
paqm_u32 vector_unhex(paqm_u8 *p, const char *text);
json_t *vector_number_hex(unsigned long long v, int digits);

/* The head of an RTP packet with so many bytes of options and payload, of one with this payload,
 * the same packet over IPv6, and who is told of it. */
struct vector_quote vector_quote(paqm_u32 options, paqm_u32 payload);
struct vector_quote vector_payload(const char *payload);
struct vector_quote vector_to6(const struct vector_quote *v4);
const paqm_u8 *vector_told(const struct vector_quote *q);

/* Return: length of the message; @m gets its tag. */
paqm_u32 vector_build(paqm_u8 *buf, const struct vector_how *how, struct paqm_msg *m,
		      const struct vector_quote *q);
/* Where the extension structure of a message begins. */
paqm_u32 vector_ext(const paqm_u8 *buf, int v6);
/* Checksums again: of the message and, if it has one, of the extension structure. */
void vector_seal(paqm_u8 *buf, paqm_u32 len, int v6, const paqm_u8 *to, int version);
/* The key of the host with this address. */
void vector_derive(const paqm_u8 *router, int v6, const paqm_u8 *addr, paqm_u8 *own);

/* A vector with the message in it and, over IPv6, between which addresses; what is in it. */
json_t *vector_new(const char *name, const paqm_u8 *buf, paqm_u32 len,
		   const struct vector_quote *q);
json_t *vector_fields(const struct paqm_msg *m, const struct vector_quote *q, int version);

/* The lists: vector_messages.c, vector_refusals.c. */
json_t *vector_messages(void);
json_t *vector_messages6(void);
json_t *vector_version1(void);
json_t *vector_refused(void);

#endif
