// SPDX-License-Identifier: GPL-2.0
/* Who is at a rendezvous; see room.h. Few enough that nothing has to be found faster than by
 * looking. */
#include "streamer/meet/room.h"

#include <string.h>

const char *const room_why_names[ROOM_WHYS] = {
	[ROOM_FULL] = "full",	  [ROOM_ADDRESS_FULL] = "address",
	[ROOM_SILENT] = "silent", [ROOM_WRONG] = "wrong",
	[ROOM_THIRD] = "third",	  [ROOM_MUTE] = "mute",
	[ROOM_STUCK] = "stuck",	  [ROOM_HALF] = "half",
	[ROOM_IDLE] = "idle",	  [ROOM_MUCH] = "much"};

void room_begin(struct room *r, int most, int per_address, const uint8_t word[MEET_WORD])
{
	memset(r->end, 0, (size_t)most * sizeof(r->end[0]));
	memset(r->refused, 0, sizeof(r->refused));
	r->joined = 0;
	r->used = 0;
	r->most = most;
	r->per_address = per_address;
	memcpy(r->word, word, MEET_WORD);
	memcpy(r->old, word, MEET_WORD);
}

void room_address(uint8_t out[ROOM_ADDRESS], const uint8_t *bytes, size_t size)
{
	memset(out, 0, ROOM_ADDRESS);
	if (size == 4) {
		out[10] = out[11] = 0xff; /* as IPv6 writes it */
		memcpy(out + 12, bytes, 4);
	} else {
		memcpy(out, bytes, 8);
	}
}

/* Who has been asked for longest, of that address or of all. */
static int oldest_asked(const struct room *r, const uint8_t *address)
{
	int found = ROOM_NOBODY;

	for (int i = 0; i < r->most; i++) {
		const struct room_end *e = &r->end[i];

		if (e->state != ROOM_ASKED ||
		    (address && memcmp(e->address, address, ROOM_ADDRESS)))
			continue;
		if (found == ROOM_NOBODY || e->since_ns < r->end[found].since_ns)
			found = i;
	}
	return found;
}

int room_enter(struct room *r, const uint8_t address[ROOM_ADDRESS], uint64_t now_ns, int *pushed,
	       enum room_why *why)
{
	int place = ROOM_NOBODY, of_address = 0;

	*pushed = ROOM_NOBODY;
	for (int i = 0; i < r->most; i++) {
		if (r->end[i].state == ROOM_FREE)
			place = place == ROOM_NOBODY ? i : place;
		else if (!memcmp(r->end[i].address, address, ROOM_ADDRESS))
			of_address++;
	}
	if (of_address >= r->per_address) {
		*why = ROOM_ADDRESS_FULL;
		*pushed = oldest_asked(r, address);
	} else if (place == ROOM_NOBODY) {
		*why = ROOM_FULL;
		*pushed = oldest_asked(r, NULL);
	}
	if (*pushed != ROOM_NOBODY) {
		place = *pushed;
		room_leave(r, place);
		r->refused[ROOM_SILENT]++;
	} else if (place == ROOM_NOBODY || of_address >= r->per_address) {
		r->refused[*why]++;
		return ROOM_NOBODY;
	}
	r->end[place] =
		(struct room_end){.state = ROOM_ASKED, .since_ns = now_ns, .other = ROOM_NOBODY};
	memcpy(r->end[place].address, address, ROOM_ADDRESS);
	r->used++;
	return place;
}

static int find(const struct room *r, const uint8_t name[MEET_NAME], enum room_state state)
{
	for (int i = 0; i < r->most; i++)
		if (r->end[i].state == state && !memcmp(r->end[i].name, name, MEET_NAME))
			return i;
	return ROOM_NOBODY;
}

static enum room_answer refuse(struct room *r, enum room_why cause, enum room_why *why)
{
	r->refused[cause]++;
	*why = cause;
	return ROOM_HAS_WHY;
}

enum room_answer room_hear(struct room *r, int place, const char *line, size_t len, uint64_t now_ns,
			   enum room_why *why)
{
	struct room_end *e = &r->end[place];
	struct meet_line l;
	int other;

	if (e->state != ROOM_ASKED || !meet_read(&l, line, len) || l.kind != MEET_HELLO)
		return refuse(r, ROOM_WRONG, why);
	if (memcmp(l.word, r->word, MEET_WORD)) {
		/* the newer one is on its way to this end */
		return memcmp(l.word, r->old, MEET_WORD) ? refuse(r, ROOM_WRONG, why)
							 : ROOM_NOT_NOW;
	}
	if (find(r, l.name, ROOM_JOINED) != ROOM_NOBODY)
		return refuse(r, ROOM_THIRD, why);
	other = find(r, l.name, ROOM_WAITS);
	memcpy(e->name, l.name, MEET_NAME);
	e->state = ROOM_WAITS;
	if (other == ROOM_NOBODY)
		return ROOM_MUST_WAIT;
	e->other = other;
	r->end[other].other = place;
	e->state = r->end[other].state = ROOM_JOINED;
	e->since_ns = r->end[other].since_ns = now_ns;
	e->heard_ns = r->end[other].heard_ns = now_ns;
	r->joined++;
	return ROOM_IS_SECOND;
}

void room_turn(struct room *r, const uint8_t word[MEET_WORD], uint64_t now_ns)
{
	memcpy(r->old, r->word, MEET_WORD);
	memcpy(r->word, word, MEET_WORD);
	for (int i = 0; i < r->most; i++) {
		struct room_end *e = &r->end[i];

		/* who has still to answer the old one gets no more time by that */
		if (e->state == ROOM_WAITS) {
			e->state = ROOM_ASKED;
			e->since_ns = now_ns;
		}
	}
}

static bool is_over(uint64_t since_ns, uint64_t now_ns, uint64_t s)
{
	return since_ns && now_ns > since_ns && now_ns - since_ns > s * ROOM_S;
}

bool room_may_stay(const struct room *r, int place, uint64_t now_ns, enum room_why *why)
{
	const struct room_end *e = &r->end[place];

	if (e->state == ROOM_ASKED) {
		*why = ROOM_SILENT;
		return !is_over(e->since_ns, now_ns, ROOM_ANSWER_S);
	}
	if (e->state != ROOM_JOINED)
		return true;
	if (e->bytes > ROOM_BYTES)
		*why = ROOM_MUCH;
	else if (is_over(e->stuck_ns, now_ns, ROOM_STUCK_S))
		*why = ROOM_STUCK;
	else if (is_over(e->half_ns, now_ns, ROOM_HALF_S))
		*why = ROOM_HALF;
	else if (!e->bytes && is_over(e->since_ns, now_ns, ROOM_BEGIN_S))
		*why = ROOM_MUTE;
	else if (is_over(e->heard_ns, now_ns, ROOM_IDLE_S))
		*why = ROOM_IDLE;
	else
		return true;
	return false;
}

void room_leave(struct room *r, int place)
{
	struct room_end *e = &r->end[place];

	if (e->state == ROOM_FREE)
		return;
	if (e->state == ROOM_JOINED && e->other != ROOM_NOBODY)
		r->end[e->other].other = ROOM_NOBODY;
	memset(e, 0, sizeof(*e));
	e->other = ROOM_NOBODY;
	r->used--;
}

int room_count(const struct room *r, enum room_state state)
{
	int n = 0;

	for (int i = 0; i < r->most; i++)
		n += r->end[i].state == state;
	return n;
}
