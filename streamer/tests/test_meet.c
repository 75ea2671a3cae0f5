// SPDX-License-Identifier: GPL-2.0
/* A rendezvous: its lines, there and back, and who may come in, meet whom, and stay how long. */
#include <stdlib.h>
#include <string.h>

#include "core/tests/check.h"
#include "streamer/meet/room.h"

#define W "000102030405060708090a0b0c0d0e0f"
#define N "ffeeddccbbaa99887766554433221100ffeeddccbbaa99887766554433221100"

TEST(test_lines)
{
	static const struct {
		const char *line;
		enum meet_kind kind;
	} good[] = {{"paqm-meet 1 " W, MEET_GREETING},
		    {"meet " W " " N, MEET_HELLO},
		    {"first", MEET_FIRST},
		    {"second", MEET_SECOND},
		    {"no third", MEET_NO},
		    {"no abcdefgh", MEET_NO}};
	static const char *const bad[] = {
		"",
		"no",
		"no ",
		"no Third",
		"no th ird",
		"no abcdefghi",
		"First",
		"first ",
		" first",
		"second\r",
		"firstsecond",
		"meet",
		"meet " W,
		"meet " W " ",
		"meet " N " " W,
		"meet " W "  " N,
		"meet " W " " N " ",
		"meet " W " " N "0",
		"Meet " W " " N,
		"meet 000102030405060708090A0B0C0D0E0F " N,
		"meet " W " x" N,
		"paqm-meet 2 " W,
		"paqm-meet 1 " W W,
		"paqm-meet 1",
		"GET / HTTP/1.1",
	};
	struct meet_line l;
	char text[MEET_LINE];

	for (unsigned int i = 0; i < ROWS(good); i++) {
		size_t len = strlen(good[i].line);

		check(meet_read(&l, good[i].line, len) && l.kind == good[i].kind, good[i].line, i);
		check(meet_write(&l, text) == len + 1 && !memcmp(text, good[i].line, len) &&
			      !strcmp(text + len, "\n"),
		      text, i);
	}
	for (unsigned int i = 0; i < ROWS(bad); i++)
		check(!meet_read(&l, bad[i], strlen(bad[i])), bad[i], i);
	check(!meet_read(&l, "first\0x", 7), "a zero within", 0);
	meet_read(&l, good[1].line, strlen(good[1].line));
	check(l.word[1] == 1 && l.name[0] == 0xff && l.name[31] == 0, "bytes", l.name[0]);
}

static struct room *room;
static uint64_t now;

static void begin(int most, int per_address)
{
	static const uint8_t word[MEET_WORD] = {1};

	free(room);
	room = malloc(sizeof(*room));
	now = 100 * ROOM_S;
	room_begin(room, most, per_address, word);
}

static int come(uint32_t host, int *pushed)
{
	uint8_t bytes[4] = {10, (uint8_t)(host >> 16), (uint8_t)(host >> 8), (uint8_t)host};
	uint8_t address[ROOM_ADDRESS];
	enum room_why why;
	int nobody;

	room_address(address, bytes, 4);
	return room_enter(room, address, now, pushed ? pushed : &nobody, &why);
}

/* An end names meeting @n, as an answer to @word. */
static enum room_answer say(int place, const uint8_t *word, int n, enum room_why *why)
{
	struct meet_line l = {.kind = MEET_HELLO};
	char text[MEET_LINE];
	size_t len;

	memcpy(l.word, word, MEET_WORD);
	l.name[3] = (uint8_t)n;
	len = meet_write(&l, text);
	return room_hear(room, place, text, len - 1, now, why);
}

static int waiting(uint32_t host, int n)
{
	enum room_why why;
	int place = come(host, NULL);

	check(say(place, room->word, n, &why) == ROOM_MUST_WAIT, "it waits", n);
	return place;
}

TEST(test_meeting)
{
	enum room_why why = ROOM_WHYS;
	int a, b, c, d;

	begin(10, 10);
	a = waiting(1, 7);
	c = waiting(2, 8);
	b = come(3, NULL);
	CHECK_EQ(say(b, room->word, 7, &why), ROOM_IS_SECOND);
	CHECK(room->end[a].state == ROOM_JOINED && room->end[a].other == b);
	CHECK(room->end[b].other == a && room->end[c].state == ROOM_WAITS);
	CHECK_EQ(room->joined, 1);
	d = come(4, NULL);
	CHECK_EQ(say(d, room->word, 7, &why), ROOM_HAS_WHY);
	CHECK_EQ(why, ROOM_THIRD);
	CHECK_EQ(say(c, room->word, 8, &why), ROOM_HAS_WHY); /* twice */
	CHECK_EQ(why, ROOM_WRONG);
	room_leave(room, a);
	CHECK_EQ(room->end[b].other, ROOM_NOBODY);
	room_leave(room, b);
	room_leave(room, b);
	CHECK_EQ(say(d, room->word, 7, &why), ROOM_MUST_WAIT); /* they have gone */
	CHECK_EQ(room->used, 2);
	CHECK_EQ(room->refused[ROOM_THIRD], 1);
	CHECK_EQ(room_hear(room, come(5, NULL), "first", 5, now, &why), ROOM_HAS_WHY);
	CHECK_EQ(room->refused[ROOM_WRONG], 2);
}

TEST(test_words)
{
	static const uint8_t second[MEET_WORD] = {2}, third[MEET_WORD] = {3};
	uint8_t first[MEET_WORD];
	enum room_why why = ROOM_WHYS;
	int a, b, late;

	begin(10, 10);
	memcpy(first, room->word, MEET_WORD);
	a = waiting(1, 7);
	late = come(2, NULL);
	room_turn(room, second, now);
	CHECK_EQ(room->end[a].state, ROOM_ASKED);
	/* what was on its way when the word changed */
	CHECK_EQ(say(late, first, 7, &why), ROOM_NOT_NOW);
	CHECK_EQ(say(late, second, 7, &why), ROOM_MUST_WAIT);
	b = come(3, NULL);
	CHECK_EQ(say(b, third, 7, &why), ROOM_HAS_WHY); /* of nobody */
	CHECK_EQ(why, ROOM_WRONG);
	CHECK_EQ(say(a, second, 7, &why), ROOM_IS_SECOND);
	CHECK_EQ(room->end[late].other, a);
	room_turn(room, third, now);
	CHECK(room->end[a].state == ROOM_JOINED && room->end[late].state == ROOM_JOINED);
	CHECK_EQ(say(come(4, NULL), first, 7, &why), ROOM_HAS_WHY);
}

TEST(test_limits)
{
	enum room_why why = ROOM_WHYS;
	uint8_t v6[16] = {0x20, 1}, one[ROOM_ADDRESS], other[ROOM_ADDRESS];
	int pushed, old, place;

	begin(4, 2);
	waiting(1, 1);
	waiting(1, 2);
	CHECK_EQ(come(1, NULL), ROOM_NOBODY);
	CHECK_EQ(room->refused[ROOM_ADDRESS_FULL], 1);
	old = come(2, NULL);
	now += ROOM_S;
	come(2, NULL);
	now += ROOM_S;
	/* who has said nothing makes room: of this address first, then of all */
	CHECK_EQ(come(2, &pushed), old);
	CHECK_EQ(pushed, old);
	now += ROOM_S;
	CHECK(come(3, &pushed) != ROOM_NOBODY && pushed != ROOM_NOBODY && pushed != old);
	CHECK_EQ(room->used, 4);
	CHECK_EQ(room->refused[ROOM_SILENT], 2);
	for (int i = 0; i < 4; i++)
		if (room->end[i].state == ROOM_ASKED)
			CHECK_EQ(say(i, room->word, 10 + i, &why), ROOM_MUST_WAIT);
	CHECK_EQ(come(4, &pushed), ROOM_NOBODY);
	CHECK_EQ(pushed, ROOM_NOBODY);
	CHECK_EQ(room->refused[ROOM_FULL], 1);
	CHECK_EQ(room_count(room, ROOM_WAITS), 4);

	room_address(one, v6, 16);
	v6[15] = 9;
	room_address(other, v6, 16);
	CHECK(!memcmp(one, other, ROOM_ADDRESS)); /* one network */
	v6[7] = 9;
	room_address(other, v6, 16);
	CHECK(memcmp(one, other, ROOM_ADDRESS));
	for (place = 0; place < 4; place++)
		room_leave(room, place);
	CHECK_EQ(room->used, 0);
}

static void after(int place, uint64_t s, bool stays, enum room_why want)
{
	enum room_why why = ROOM_WHYS;
	bool may = room_may_stay(room, place, now + s * ROOM_S + 1, &why);

	check(may == stays && (may || why == want), room_why_names[want], (int)s);
}

TEST(test_times)
{
	static const uint8_t second[MEET_WORD] = {2};
	struct room_end *e;
	enum room_why why;
	int a, b;

	begin(10, 10);
	a = come(1, NULL);
	after(a, ROOM_ANSWER_S - 1, true, ROOM_SILENT);
	after(a, ROOM_ANSWER_S, false, ROOM_SILENT);
	say(a, room->word, 1, &why);
	after(a, 1000 * ROOM_IDLE_S, true, ROOM_SILENT); /* it waits as long as it likes */
	now += 1000 * ROOM_S;
	room_turn(room, second, now);
	after(a, ROOM_ANSWER_S - 1, true, ROOM_SILENT);
	after(a, ROOM_ANSWER_S, false, ROOM_SILENT);
	say(a, second, 1, &why);
	b = come(2, NULL);
	CHECK_EQ(say(b, second, 1, &why), ROOM_IS_SECOND);
	e = &room->end[b];
	after(b, ROOM_BEGIN_S - 1, true, ROOM_MUTE);
	after(b, ROOM_BEGIN_S, false, ROOM_MUTE);
	e->bytes = 1;
	after(b, ROOM_BEGIN_S, true, ROOM_MUTE);
	after(b, ROOM_IDLE_S - 1, true, ROOM_IDLE);
	after(b, ROOM_IDLE_S, false, ROOM_IDLE);
	e->half_ns = now;
	after(b, ROOM_HALF_S - 1, true, ROOM_HALF);
	after(b, ROOM_HALF_S, false, ROOM_HALF);
	e->half_ns = 0;
	e->stuck_ns = now;
	after(b, ROOM_STUCK_S - 1, true, ROOM_STUCK);
	after(b, ROOM_STUCK_S, false, ROOM_STUCK);
	e->stuck_ns = 0;
	e->bytes = ROOM_BYTES;
	after(b, 1, true, ROOM_MUCH);
	e->bytes++;
	after(b, 1, false, ROOM_MUCH);
}

CHECK_MAIN
