/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the unit tests of paqmd share: one engine, one sender whose media it has seen, messages
 * about that media. The tests run one after the other (unit.c) and each sets the engine up anew.
 */
#ifndef PAQMD_TEST_UNIT_H
#define PAQMD_TEST_UNIT_H

#include "core/tests/check.h"
#include "packets.h"

#define S 1000000000ULL
#define MS 1000000ULL

extern bool seen[REFUSE_MAX]; /* reasons that were provoked */

#define KEY_A "0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f"
#define KEY_B "B0b0B0b0B0b0B0b0B0b0B0b0B0b0B0b0"

extern const uint8_t key[PAQM_SIPHASH_KEY];
extern const struct addr nowhere;
extern struct engine eng;
extern uint8_t media[T_MEDIA]; /* the packet that was sent last */

/* A new engine; @p: NULL: as by default. */
void setup(const struct engine_params *p);
/* The same with a flow, number 1 from T_SPORT with T_SSRC, and a packet of it at 1 s. */
struct flow *begin(const struct engine_params *p);
struct flow *add(uint64_t cookie, uint16_t sport, uint32_t ssrc);
void send_media(uint16_t sport, uint32_t ssrc, uint16_t seq, uint64_t now);
struct paqm_msg msg(uint64_t router, uint32_t seq, double ecf, double erf);
/* Deliver raw bytes; counters have to tell the same. @v: may be NULL. */
enum refuse deliver(const uint8_t *ip, uint32_t len, uint64_t now, struct verdict *v);
/* Deliver a message with one byte changed: as it is then, and with its checksums right. */
enum refuse damaged(const uint8_t *good, uint32_t len, uint32_t at, uint8_t byte);
enum refuse changed(const uint8_t *good, uint32_t len, uint32_t at, uint8_t byte);
/* Deliver a message about the last media packet, or about @packet, at 1 s. */
enum refuse say(const struct paqm_msg *m, uint64_t now);
enum refuse about(const uint8_t *packet, const struct paqm_msg *m);

/* Keys for the router's messages, as the file has them. */
void use_keys(const char *text);

/* One router says @low and @high in turn. Return: how often the rate rose by a fifth. */
unsigned int flap(struct flow *f, uint64_t *now, unsigned int rounds, uint64_t gap, double low,
		  double high);

#endif /* PAQMD_TEST_UNIT_H */
