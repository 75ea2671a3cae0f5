// SPDX-License-Identifier: GPL-2.0
/*
 * Fuzz target: a rendezvous. The input is what happens there, a byte each that says what and to
 * whom; of lines the length follows, and the line. What is read must come out the same once
 * written, and the room must keep its promises whatever is said in it.
 */
#include <stdlib.h>
#include <string.h>

#include "streamer/meet/room.h"

#define ENDS 8
#define MEETINGS 3

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool holds)
{
	if (!holds)
		abort();
}

static void there_and_back(const char *line, size_t len)
{
	struct meet_line l;
	char text[MEET_LINE];

	if (meet_read(&l, line, len))
		demand(meet_write(&l, text) == len + 1 && !memcmp(text, line, len));
}

static void promises(const struct room *r)
{
	int used = 0;

	for (int i = 0; i < ENDS; i++) {
		const struct room_end *e = &r->end[i];

		used += e->state != ROOM_FREE;
		if (e->state == ROOM_JOINED && e->other != ROOM_NOBODY)
			demand(e->other != i && r->end[e->other].other == i &&
			       r->end[e->other].state == ROOM_JOINED &&
			       !memcmp(e->name, r->end[e->other].name, MEET_NAME));
		if (e->state != ROOM_WAITS)
			continue;
		for (int k = 0; k < i; k++) /* two of one name would have been joined */
			demand(r->end[k].state != ROOM_WAITS ||
			       memcmp(e->name, r->end[k].name, MEET_NAME));
	}
	demand(used == r->used);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct room r;
	uint8_t word[MEET_WORD] = {0}, address[ROOM_ADDRESS] = {0};
	uint64_t now = ROOM_S;
	enum room_why why;
	size_t len;
	int pushed;

	there_and_back((const char *)data, size);
	room_begin(&r, ENDS, ENDS / 2, word);
	while (size--) {
		int place = *data & 7, what = *data++ >> 3;
		struct meet_line l = {.kind = MEET_HELLO};
		char text[MEET_LINE];

		now += ROOM_S / 2;
		switch (what & 7) {
		case 0:
			address[0] = (uint8_t)place / 3;
			place = room_enter(&r, address, now, &pushed, &why);
			demand(place == ROOM_NOBODY || r.end[place].state == ROOM_ASKED);
			demand(pushed == ROOM_NOBODY || pushed == place);
			break;
		case 1: /* a hello, to this word or the one before it */
		case 2:
			memcpy(l.word, what & 8 ? r.old : r.word, MEET_WORD);
			l.name[0] = (uint8_t)(what >> 1) % MEETINGS;
			len = meet_write(&l, text);
			if (r.end[place].state != ROOM_FREE &&
			    room_hear(&r, place, text, len - 1, now, &why) == ROOM_HAS_WHY)
				room_leave(&r, place);
			break;
		case 3: /* anything */
			len = size ? *data : 0;
			len = len < size ? len : size;
			if (r.end[place].state != ROOM_FREE &&
			    room_hear(&r, place, (const char *)data, len, now, &why) ==
				    ROOM_HAS_WHY)
				room_leave(&r, place);
			data += len;
			size -= len;
			break;
		case 4:
			word[0]++;
			room_turn(&r, word, now);
			break;
		case 5:
			room_leave(&r, place);
			break;
		default:
			for (int i = 0; i < ENDS; i++)
				if (r.end[i].state != ROOM_FREE &&
				    !room_may_stay(&r, i, now, &why)) {
					demand(why < ROOM_WHYS);
					room_leave(&r, i);
				}
		}
		promises(&r);
	}
	return 0;
}
