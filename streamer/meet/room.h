/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Who is at a rendezvous: ends that have said nothing yet, ends that wait, ends that are joined. It
 * decides who may come in, who waits for whom, and whose time is over. No sockets, no clock.
 */
#ifndef PAQM_MEET_ROOM_H
#define PAQM_MEET_ROOM_H

#include "streamer/meet/words.h"

#define ROOM_MOST 4096 /* ends; all are looked at once per line and second */
#define ROOM_ADDRESS 16
#define ROOM_NOBODY (-1)

#define ROOM_S UINT64_C(1000000000)
#define ROOM_ANSWER_S 5 /* time to answer a word */
#define ROOM_BEGIN_S 30 /* for two that are joined until both have said something */
#define ROOM_STUCK_S 15 /* what one sends must get to the other in that time */
#define ROOM_HALF_S 10	/* one end has closed, the other has not */
#define ROOM_IDLE_S (12 * 3600)
/* Two ends say a few kB to begin with, and 60 bytes whenever one is muted. */
#define ROOM_BYTES (1 << 20)

/* Why an end was sent away; the words are those of the counters, and of the line `no`. */
enum room_why {
	ROOM_FULL,	   /* at most so many ends in all */
	ROOM_ADDRESS_FULL, /* and so many of one address */
	ROOM_SILENT,	   /* has not answered a word in time */
	ROOM_WRONG,	   /* said what is no hello */
	ROOM_THIRD,	   /* two are there already */
	ROOM_MUTE,	   /* joined, and one says nothing from the beginning */
	ROOM_STUCK,	   /* takes nothing more */
	ROOM_HALF,	   /* half closed for too long */
	ROOM_IDLE,	   /* joined, and nothing said for hours */
	ROOM_MUCH,	   /* says more than a call has to say */
	ROOM_WHYS
};

enum room_state { ROOM_FREE, ROOM_ASKED, ROOM_WAITS, ROOM_JOINED };

struct room_end {
	enum room_state state;
	uint8_t address[ROOM_ADDRESS];
	uint8_t name[MEET_NAME];
	uint64_t since_ns; /* asked, joined */
	uint64_t heard_ns; /* joined: the last byte of either */
	uint64_t stuck_ns; /* what it has said waits to be taken; 0: nothing does */
	uint64_t half_ns;  /* it has closed; 0: it has not */
	uint64_t bytes;	   /* joined: of what it has said */
	int other;	   /* joined: place of the other end */
};

struct room {
	struct room_end end[ROOM_MOST];
	int most, per_address, used;
	uint8_t word[MEET_WORD], old[MEET_WORD];
	uint64_t joined, refused[ROOM_WHYS];
};

enum room_answer { ROOM_HAS_WHY, ROOM_NOT_NOW, ROOM_MUST_WAIT, ROOM_IS_SECOND };

extern const char *const room_why_names[ROOM_WHYS];

void room_begin(struct room *r, int most, int per_address, const uint8_t word[MEET_WORD]);

/* Of an address what counts as one place: IPv4 whole, of IPv6 a network of 64 bits. @size: 4 or 16.
 */
void room_address(uint8_t out[ROOM_ADDRESS], const uint8_t *bytes, size_t size);

/**
 * room_enter() - somebody has come
 * @pushed: the end that has to go for it: it has been silent for longest; or ROOM_NOBODY
 * @why: if there is no place
 *
 * Return: its place, or ROOM_NOBODY.
 */
int room_enter(struct room *r, const uint8_t address[ROOM_ADDRESS], uint64_t now_ns, int *pushed,
	       enum room_why *why);

/* An end that has not been joined says a line. With ROOM_IS_SECOND both are joined. */
enum room_answer room_hear(struct room *r, int place, const char *line, size_t len, uint64_t now_ns,
			   enum room_why *why);

/* Another word: who waits has to answer it. */
void room_turn(struct room *r, const uint8_t word[MEET_WORD], uint64_t now_ns);

/* FALSE: its time is over. Of two that are joined both are asked. */
bool room_may_stay(const struct room *r, int place, uint64_t now_ns, enum room_why *why);

/* It goes; the end that it was joined to has none then. */
void room_leave(struct room *r, int place);

int room_count(const struct room *r, enum room_state state);

#endif /* PAQM_MEET_ROOM_H */
