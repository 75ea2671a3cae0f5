// SPDX-License-Identifier: GPL-2.0
/* Connections at a rendezvous; see serve.h. What comes from one end is read when the other has
 * taken what came before.
 */
#define _GNU_SOURCE /* accept4 */
#include "streamer/meet/serve.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "feedback-daemon/host/log.h"
#include "feedback-daemon/host/notify.h"
#include "streamer/meet/room.h"

#define BUFFER 4096
#define EVENTS 64
#define TURN_S 600 /* a word is good for so long */
#define SAY_S 60

/* What an event is about: a place in the room, or one of these. */
#define AT_SIGNAL ROOM_MOST
#define AT_LISTENER (ROOM_MOST + 1)

struct conn {
	int fd;
	uint32_t watched, number; /* of all that have had this place */
	int begin, end;		  /* of what the other has to get, or of the line so far */
	char buf[BUFFER];
};

static struct room room;
static struct conn conns[ROOM_MOST];
static const int *listener;
static int listeners, epfd;
static bool deaf; /* no connection can be accepted before the next second */
static uint64_t accept_failed;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * ROOM_S + (uint64_t)t.tv_nsec;
}

static void watch(int fd, uint32_t place, uint32_t events, int op)
{
	uint32_t number = place < ROOM_MOST ? conns[place].number : 0;
	struct epoll_event ev = {.events = events, .data.u64 = (uint64_t)number << 32 | place};

	if (epoll_ctl(epfd, op, fd, &ev))
		log_limited(LOG_CLASS_CLIENT, "epoll: %s", strerror(errno));
}

static void hang_up(int place)
{
	int other = room.end[place].state == ROOM_JOINED ? room.end[place].other : ROOM_NOBODY;

	for (int i = place;; i = other) {
		close(conns[i].fd); /* and out of the set */
		room_leave(&room, i);
		if (i == other || other == ROOM_NOBODY)
			return;
	}
}

/* FALSE: it takes not even a line, and is gone. */
static bool say(int place, const struct meet_line *line)
{
	char text[MEET_LINE];
	size_t len = meet_write(line, text);

	if (send(conns[place].fd, text, len, MSG_NOSIGNAL) == (ssize_t)len)
		return true;
	hang_up(place);
	return false;
}

static void send_away(int place, enum room_why why)
{
	struct meet_line line = {.kind = MEET_NO};

	snprintf(line.reason, sizeof(line.reason), "%s", room_why_names[why]);
	/* to who is joined all bytes are the other end's */
	if (room.end[place].state == ROOM_JOINED || say(place, &line))
		hang_up(place);
}

static void greet(int place)
{
	struct meet_line line = {.kind = MEET_GREETING};

	memcpy(line.word, room.word, MEET_WORD);
	say(place, &line);
}

/* Joined ends */

static void watch_joined(int place)
{
	const struct room_end *e = &room.end[place];
	struct conn *c = &conns[place], *other = &conns[e->other];
	uint32_t events = 0;

	if (!e->half_ns && c->begin == c->end)
		events |= EPOLLIN;
	if (other->begin < other->end)
		events |= EPOLLOUT;
	if (events != c->watched)
		watch(c->fd, (uint32_t)place, events, EPOLL_CTL_MOD);
	c->watched = events;
}

/* Hand on what has come from an end. FALSE: the two are no more. */
static bool flush(int place, uint64_t now)
{
	struct room_end *e = &room.end[place];
	struct conn *c = &conns[place];

	while (c->begin < c->end) {
		ssize_t n = send(conns[e->other].fd, c->buf + c->begin, (size_t)(c->end - c->begin),
				 MSG_NOSIGNAL);

		if (n < 0 && errno == EAGAIN) {
			e->stuck_ns = e->stuck_ns ? e->stuck_ns : now;
			return true;
		}
		if (n < 0) {
			hang_up(place);
			return false;
		}
		c->begin += (int)n;
		e->stuck_ns = 0;
	}
	c->begin = c->end = 0;
	if (e->half_ns && room.end[e->other].half_ns) {
		hang_up(place);
		return false;
	}
	if (e->half_ns)
		shutdown(conns[e->other].fd, SHUT_WR);
	return true;
}

static void on_joined(int place, uint32_t events, uint64_t now)
{
	struct room_end *e = &room.end[place];
	int other = e->other;
	struct conn *c = &conns[place];
	enum room_why why;

	/* gone, and what it has said cannot be handed on: it would be told of again and again */
	if (events & (EPOLLHUP | EPOLLERR) && (c->begin < c->end || e->half_ns)) {
		hang_up(place);
		return;
	}
	if (events & EPOLLOUT && !flush(other, now))
		return;
	if (c->begin == c->end && !e->half_ns) {
		ssize_t n = recv(c->fd, c->buf, BUFFER, 0);

		if (n < 0 && errno != EAGAIN) {
			hang_up(place);
			return;
		}
		if (n == 0)
			e->half_ns = now;
		if (n > 0) {
			c->end = (int)n;
			e->bytes += (uint64_t)n;
			e->heard_ns = room.end[other].heard_ns = now;
		}
		if (n >= 0 && !flush(place, now))
			return;
		if (!room_may_stay(&room, place, now, &why)) {
			room.refused[why]++;
			hang_up(place);
			return;
		}
	}
	watch_joined(place);
	watch_joined(other);
}

/* Before that */

static void join(int second)
{
	int first = room.end[second].other;
	struct meet_line line = {.kind = MEET_FIRST};

	if (!say(first, &line))
		return;
	line.kind = MEET_SECOND;
	if (!say(second, &line))
		return;
	watch_joined(first);
	watch_joined(second);
}

/* FALSE: it is no more, or it is joined. */
static bool on_line(int place, const char *line, size_t len, uint64_t now)
{
	enum room_why why;

	switch (room_hear(&room, place, line, len, now, &why)) {
	case ROOM_HAS_WHY:
		send_away(place, why);
		return false;
	case ROOM_IS_SECOND:
		/* an end says nothing more before it has heard that the other is there */
		if (conns[place].begin == conns[place].end) {
			conns[place].begin = conns[place].end = 0;
			join(place);
		} else {
			room.refused[ROOM_WRONG]++;
			hang_up(place);
		}
		return false;
	case ROOM_NOT_NOW:
	case ROOM_MUST_WAIT:
		break;
	}
	return true;
}

static void on_words(int place, uint64_t now)
{
	struct conn *c = &conns[place];
	ssize_t n = recv(c->fd, c->buf + c->end, (size_t)(MEET_LINE - c->end), 0);
	char *end;

	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0) {
		hang_up(place);
		return;
	}
	c->end += (int)n;
	while ((end = memchr(c->buf + c->begin, '\n', (size_t)(c->end - c->begin)))) {
		const char *line = c->buf + c->begin;

		c->begin = (int)(end - c->buf) + 1;
		if (!on_line(place, line, (size_t)(end - line), now))
			return;
	}
	memmove(c->buf, c->buf + c->begin, (size_t)(c->end - c->begin));
	c->end -= c->begin;
	c->begin = 0;
	if (c->end == MEET_LINE) {
		room.refused[ROOM_WRONG]++;
		send_away(place, ROOM_WRONG);
	}
}

static void take_in(int fd, const struct sockaddr_storage *from, uint64_t now)
{
	uint8_t address[ROOM_ADDRESS];
	enum room_why why = ROOM_FULL;
	int place, pushed;

	if (from->ss_family == AF_INET6)
		room_address(address, ((const struct sockaddr_in6 *)from)->sin6_addr.s6_addr, 16);
	else
		room_address(address,
			     (const uint8_t *)&((const struct sockaddr_in *)from)->sin_addr, 4);
	place = room_enter(&room, address, now, &pushed, &why);
	if (place == ROOM_NOBODY) {
		struct meet_line line = {.kind = MEET_NO};
		char text[MEET_LINE];

		snprintf(line.reason, sizeof(line.reason), "%s", room_why_names[why]);
		if (send(fd, text, meet_write(&line, text), MSG_NOSIGNAL) < 0)
			errno = 0; /* it is gone already */
		close(fd);
		return;
	}
	if (pushed != ROOM_NOBODY)
		close(conns[pushed].fd);
	conns[place].fd = fd;
	conns[place].number++;
	conns[place].watched = EPOLLIN;
	conns[place].begin = conns[place].end = 0;
	watch(fd, (uint32_t)place, EPOLLIN, EPOLL_CTL_ADD);
	greet(place);
}

static void on_listener(int n, uint64_t now)
{
	for (int i = 0; i < EVENTS; i++) {
		struct sockaddr_storage from = {0};
		socklen_t len = sizeof(from);
		int fd = accept4(listener[n], (struct sockaddr *)&from, &len,
				 SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0) {
			take_in(fd, &from, now);
			continue;
		}
		if (errno == EAGAIN)
			return;
		accept_failed++;
		if (errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM)
			continue; /* that one has gone again */
		log_limited(LOG_CLASS_CLIENT, "cannot take a connection: %s", strerror(errno));
		deaf = true;
		for (int k = 0; k < listeners; k++)
			watch(listener[k], 0, 0, EPOLL_CTL_DEL);
		return;
	}
}

static void hear(void)
{
	for (int i = 0; i < listeners; i++)
		watch(listener[i], (uint32_t)(AT_LISTENER + i), EPOLLIN, EPOLL_CTL_ADD);
	deaf = false;
}

/* Each second */

static bool draw(uint8_t word[MEET_WORD])
{
	return getrandom(word, MEET_WORD, 0) == MEET_WORD;
}

static void turn(uint64_t now)
{
	uint8_t word[MEET_WORD];

	if (!draw(word))
		return;
	room_turn(&room, word, now);
	for (int i = 0; i < room.most; i++)
		if (room.end[i].state == ROOM_ASKED)
			greet(i);
}

/* What has happened, if anything has: nobody fills a disk by knocking. */
static void tell(void)
{
	static uint64_t joined, refused[ROOM_WHYS];
	char text[320];
	int n = 0;

	if (joined == room.joined && !memcmp(refused, room.refused, sizeof(refused)))
		return;
	for (int i = 0; i < ROOM_WHYS; i++)
		if (room.refused[i] > refused[i])
			n += snprintf(text + n, sizeof(text) - (size_t)n, "%s%s %llu",
				      n ? ", " : "; sent away: ", room_why_names[i],
				      (unsigned long long)(room.refused[i] - refused[i]));
	log_info("%d wait, %d pairs are joined, %llu of them in the last minute%.*s",
		 room_count(&room, ROOM_WAITS), room_count(&room, ROOM_JOINED) / 2,
		 (unsigned long long)(room.joined - joined), n, text);
	joined = room.joined;
	memcpy(refused, room.refused, sizeof(refused));
}

static void on_second(uint64_t now)
{
	static uint64_t turned, said;
	enum room_why why;

	turned = turned ? turned : now;
	said = said ? said : now;
	for (int i = 0; i < room.most; i++) {
		if (room.end[i].state == ROOM_FREE || room_may_stay(&room, i, now, &why))
			continue;
		room.refused[why]++;
		send_away(i, why);
	}
	if (now - turned >= TURN_S * ROOM_S) {
		turned = now;
		turn(now);
	}
	if (now - said >= SAY_S * ROOM_S) {
		said = now;
		tell();
	}
	if (deaf)
		hear();
	notify("WATCHDOG=1");
}

int serve_run(void)
{
	uint64_t second = now_ns();
	struct epoll_event ev[EVENTS];

	hear();
	notify("READY=1");
	log_info("ready");
	for (;;) {
		uint64_t now = now_ns();
		int n = epoll_wait(epfd, ev, EVENTS,
				   now - second >= ROOM_S
					   ? 0
					   : (int)((ROOM_S - (now - second)) / 1000000) + 1);

		if (n < 0 && errno != EINTR) {
			log_line("epoll: %s", strerror(errno));
			return 1;
		}
		now = now_ns();
		for (int i = 0; i < n; i++) {
			uint32_t place = (uint32_t)ev[i].data.u64;

			if (place == AT_SIGNAL)
				return 0;
			if (place >= AT_LISTENER)
				on_listener((int)(place - AT_LISTENER), now);
			else if (conns[place].number != ev[i].data.u64 >> 32)
				continue; /* that one has gone meanwhile */
			else if (room.end[place].state == ROOM_JOINED)
				on_joined((int)place, ev[i].events, now);
			else if (room.end[place].state != ROOM_FREE)
				on_words((int)place, now);
		}
		if (now - second >= ROOM_S) {
			second = now;
			on_second(now);
		}
	}
}

void serve_counters(void)
{
	printf("{\"waiting\": %d, \"pairs\": %d, \"joined\": %llu, \"accept_failed\": %llu",
	       room_count(&room, ROOM_WAITS), room_count(&room, ROOM_JOINED) / 2,
	       (unsigned long long)room.joined, (unsigned long long)accept_failed);
	for (int i = 0; i < ROOM_WHYS; i++)
		printf(", \"%s\": %llu", room_why_names[i], (unsigned long long)room.refused[i]);
	printf("}\n");
}

bool serve_begin(int signals, const int *listening, int n, int most, int per_address)
{
	uint8_t word[MEET_WORD];

	listener = listening;
	listeners = n;
	epfd = epoll_create1(EPOLL_CLOEXEC);
	if (epfd < 0 || !draw(word))
		return false;
	watch(signals, AT_SIGNAL, EPOLLIN, EPOLL_CTL_ADD);
	room_begin(&room, most, per_address, word);
	return true;
}
