/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Five-level media scaling (J. Chung, M. Sc. thesis, WPI 2000): the receiver watches for lost
 * frames and tells the sender which of five rates to use. Here is what both sides share: options,
 * and what they say to each other.
 *
 * That the sender measures the round trip and tells it with its media, layouts, and numbers of
 * messages are choices of ours: the published receiver doubled the one-way delay, which needs one
 * clock.
 */
#ifndef PAQM_LEVELS_H
#define PAQM_LEVELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "streamer/control/control.h"

#define LEVELS 5
#define LEVELS_APP 0x4C45564CU /* "LEVL" */
#define LEVELS_SUBTYPE 0
#define LEVELS_LEN 16	      /* bytes behind the name */
#define LEVELS_PROFILE 0x4C56 /* of the RTP header extension, which holds nothing else */
#define LEVELS_EXTENSION 16   /* bytes of it, with its head */

enum { LEVELS_IMMEDIATE = LEVELS, LEVELS_OPTIONS };

static const struct ctl_option levels_options[] = {
	{"l0", "bit/s of the lowest level", 1e4, 1e9, 300e3},
	{"l1", "bit/s of the next", 1e4, 1e9, 500e3},
	{"l2", "bit/s of the next", 1e4, 1e9, 700e3},
	{"l3", "bit/s of the next", 1e4, 1e9, 900e3},
	{"l4", "bit/s of the highest", 1e4, 1e9, 1100e3},
	[LEVELS_IMMEDIATE] = {"immediate", "1: down at the first loss, then a round trip of rest",
			      0, 1, 0},
	{0},
};

_Static_assert((int)LEVELS_OPTIONS <= CTL_OPTIONS, "all fit");

/**
 * struct levels_mark - what each packet of media carries
 * @clock_us: the sender's, when it was sent
 * @rtt_us: as the sender knows it; 0: not yet
 * @pause_ms: longest time between two frames
 * @level: in force
 */
struct levels_mark {
	uint32_t clock_us, rtt_us;
	uint16_t pause_ms;
	uint8_t level;
};

/**
 * struct levels_wish - what the receiver tells
 * @media: SSRC of the stream
 * @number: of this message, from 0
 * @level: that is to be used
 * @echo_us: clock of the newest packet, which came so long ago:
 * @held_us: .
 */
struct levels_wish {
	uint32_t media;
	uint16_t number;
	uint8_t level;
	uint32_t echo_us, held_us;
};

void levels_mark_write(uint8_t ext[LEVELS_EXTENSION], const struct levels_mark *m);
/* Of an RTP packet; false: it has none. */
bool levels_mark_read(const uint8_t *packet, size_t len, struct levels_mark *m);
void levels_wish_write(uint8_t data[LEVELS_LEN], const struct levels_wish *w);
/* Data of an APP packet with that name and subtype; false: malformed, or no such level. */
bool levels_wish_read(const uint8_t *data, size_t len, struct levels_wish *w);

#endif /* PAQM_LEVELS_H */
