// SPDX-License-Identifier: GPL-2.0
/* Five-level media scaling: both sides over a path of 31 ms each way, frames of 1000 bytes. */
#include <math.h>

#include "core/paqm_bytes.h"
#include "streamer/decide/decide.h"
#include "streamer/decide/levels.h"
#include "streamer/tests/control_path.h"

#define RTP 12
#define SSRC 7
#define WAY 0.031
#define RTT (2 * WAY)
#define PACKET 1000

/* Frames go at the controller's rate, each of so many packets; what is told comes back. */
struct run {
	struct ctl *c;
	struct dec *d;
	double now, next; /* time; when the next frame leaves */
	uint16_t seq;
	uint32_t frame;
	int packets;
	bool lose, silent; /* the next packet; all of them */
	struct {
		double at;
		uint16_t seq;
		uint32_t ts;
		uint8_t bytes[RTP + LEVELS_EXTENSION];
	} way[64];
	unsigned int sent, arrived;
	struct {
		double at;
		uint8_t app[DEC_APP];
		size_t len;
	} back[64];
	unsigned int told, heard;
};

static void begin(struct run *r, const char *how)
{
	double option[CTL_OPTIONS];
	struct ctl_params p = params;
	char why[100];

	*r = (struct run){.seq = 65530, .packets = 1};
	TRUE("options", ctl_choose(how, option, why, sizeof(why)) == &ctl_levels);
	p.option = option;
	p.rate_min = 300e3;
	p.rate_max = 1100e3;
	p.pause = 8 * PACKET / 300e3;
	r->c = ctl_new(&ctl_levels, &p, 0);
	r->d = dec_new(dec_find("levels"), option, 0);
}

static void end(struct run *r)
{
	ctl_free(r->c);
	dec_free(r->d);
}

static void send_frame(struct run *r)
{
	for (int i = 0; i < r->packets; i++, r->seq++) {
		unsigned int at = r->sent % ROWS(r->way);

		if (r->lose || r->silent) {
			r->lose = false;
			continue;
		}
		r->way[at].at = r->now + WAY;
		r->way[at].seq = r->seq;
		r->way[at].ts = 3000 * r->frame;
		r->way[at].bytes[0] = 0x90;
		ctl_extend(r->c, r->now, r->way[at].bytes + RTP);
		r->sent++;
	}
	r->frame++;
	r->next = r->now + 8.0 * PACKET * r->packets / ctl_rate(r->c, r->now);
}

static void tell(struct run *r)
{
	unsigned int at = r->told % ROWS(r->back);
	size_t len = dec_tell(r->d, r->now, 1, r->back[at].app);

	if (!len)
		return;
	r->back[at].at = r->now + WAY;
	r->back[at].len = len;
	r->told++;
}

static void hear(struct run *r)
{
	unsigned int at = r->heard++ % ROWS(r->back);
	struct ctl_message m;

	TRUE("a message", dec_read(r->back[at].app, r->back[at].len, &m));
	ctl_message(r->c, r->now, &m);
}

static void arrive(struct run *r)
{
	unsigned int at = r->arrived++ % ROWS(r->way);
	struct dec_packet p = {.at = r->now,
			       .bytes = PACKET,
			       .ts = r->way[at].ts,
			       .seq = r->way[at].seq,
			       .marker = true,
			       .rtp = r->way[at].bytes,
			       .len = sizeof(r->way[at].bytes),
			       .readable = sizeof(r->way[at].bytes)};

	dec_see(r->d, SSRC, &p);
	tell(r);
}

static void run_until(struct run *r, double until)
{
	for (;;) {
		double packet =
			r->arrived < r->sent ? r->way[r->arrived % ROWS(r->way)].at : INFINITY;
		double message =
			r->heard < r->told ? r->back[r->heard % ROWS(r->back)].at : INFINITY;
		double first = fmin(fmin(r->next, packet), fmin(message, dec_next(r->d)));

		if (first > until)
			break;
		r->now = fmax(r->now, first);
		if (first == packet)
			arrive(r);
		else if (first == message)
			hear(r);
		else if (first == r->next)
			send_frame(r);
		else
			tell(r);
	}
	r->now = until;
}

static double level(const struct run *r)
{
	return state(r->c, "levels.level");
}

/* Without loss to the top, a level in each round trip, the first of which measures it. */
TEST(test_levels_up)
{
	struct run r;

	begin(&r, "levels");
	SAME("begins at the lowest", ctl_rate(r.c, 0), 300e3);
	run_until(&r, 2 * RTT - 0.001);
	SAME("stays there until the round trip is known", ctl_rate(r.c, r.now), 300e3);
	/* the packet that tells the round trip is up to 27 ms late */
	run_until(&r, 5 * RTT + 0.028);
	SAME("highest", ctl_rate(r.c, r.now), 1100e3);
	WITHIN("round trip", state(r.c, "levels.rtt"), RTT, 0.01);
	run_until(&r, r.next);
	WITHIN("7.27 ms", r.next - r.now, 7.273e-3, 1e-3);
	run_until(&r, 3);
	SAME("stays", ctl_rate(r.c, r.now), 1100e3);
	end(&r);
}

/* The level in the newest message. */
static int told(const struct run *r)
{
	return r->back[(r->told - 1) % ROWS(r->back)].app[12 + 6];
}

/* A loss in each check: half the level, down to the lowest; without, up again. */
TEST(test_levels_down)
{
	static const int want[] = {2, 1, 0, 0};
	struct run r;

	begin(&r, "levels");
	run_until(&r, 1);
	for (size_t i = 0; i < ROWS(want);) {
		unsigned int before = r.told;

		r.lose = true;
		while (r.told == before)
			run_until(&r, r.now + 0.001);
		if (!i && told(&r) == 4)
			continue; /* the first loss may be missed after a check */
		SAME("level", told(&r), want[i]);
		i++;
	}
	r.lose = false;
	run_until(&r, r.now + 7 * RTT);
	SAME("and up again", level(&r), 4);
	end(&r);
}

/* Silence counts as loss after a round trip, here longer than two frames are apart. */
TEST(test_levels_silence)
{
	struct run r;

	begin(&r, "levels");
	run_until(&r, 1);
	r.silent = true;
	run_until(&r, 1 + 3 * RTT + WAY + 0.01);
	TRUE("lower", level(&r) <= 2);
	run_until(&r, 2);
	SAME("lowest", level(&r), 0);
	end(&r);
}

/* At once: half in less than a round trip, then a round trip of rest whatever is lost. */
TEST(test_levels_immediate)
{
	struct run r;

	begin(&r, "levels:immediate=1");
	run_until(&r, 1);
	r.lose = true;
	run_until(&r, 1 + 2 * WAY + 3 * 0.0073);
	SAME("half", level(&r), 2);
	r.lose = true;
	run_until(&r, r.now + WAY);
	SAME("rest", level(&r), 2);
	end(&r);
}

static struct dec_packet at(double now, uint16_t seq, uint32_t ts, const uint8_t *bytes)
{
	return (struct dec_packet){
		.at = now, .seq = seq, .ts = ts, .rtp = bytes, .len = RTP + LEVELS_EXTENSION};
}

/* What is missing of a frame counts when the next begins; what comes late is no loss then. */
TEST(test_levels_frames)
{
	static const struct levels_mark mark = {.rtt_us = 100000, .pause_ms = 300};
	double option[CTL_OPTIONS] = {300e3, 500e3, 700e3, 900e3, 1100e3};
	struct dec *d = dec_new(dec_find("levels"), option, 0);
	uint8_t bytes[RTP + LEVELS_EXTENSION] = {0x90}, app[DEC_APP];
	struct dec_packet p;

	levels_mark_write(bytes + RTP, &mark);
	p = at(0, 1, 0, bytes);
	dec_see(d, SSRC, &p);
	TRUE("told at once", dec_tell(d, 0, 1, app) > 0);
	p = at(0.01, 3, 0, bytes);
	dec_see(d, SSRC, &p);
	TRUE("told again", dec_tell(d, 0.1, 1, app) > 0);
	SAME("nothing is lost yet: up", app[12 + 6], 1);
	p = at(0.11, 4, 3000, bytes);
	dec_see(d, SSRC, &p);
	TRUE("told again", dec_tell(d, 0.2, 1, app) > 0);
	SAME("now it is: half", app[12 + 6], 0);
	TRUE("silence of 350 ms counts", dec_next(d) < 0.31 && !dec_tell(d, 0.29, 1, app));
	dec_free(d);
}

TEST(test_levels_messages)
{
	struct levels_mark mark = {1, 2, 3, 4}, got_mark;
	struct levels_wish wish = {.media = SSRC,
				   .number = 65535,
				   .level = 4,
				   .echo_us = 5,
				   .held_us = 6},
			   got;
	uint8_t packet[RTP + LEVELS_EXTENSION] = {0x90}, data[LEVELS_LEN];

	levels_mark_write(packet + RTP, &mark);
	TRUE("mark", levels_mark_read(packet, sizeof(packet), &got_mark) &&
			     got_mark.clock_us == 1 && got_mark.rtt_us == 2 &&
			     got_mark.pause_ms == 3 && got_mark.level == 4);
	TRUE("shorter", !levels_mark_read(packet, sizeof(packet) - 1, &got_mark));
	packet[0] = 0x80;
	TRUE("without extension", !levels_mark_read(packet, sizeof(packet), &got_mark));
	levels_wish_write(data, &wish);
	TRUE("wish", levels_wish_read(data, sizeof(data), &got) && got.number == 65535 &&
			     got.level == 4 && got.echo_us == 5 && got.held_us == 6);
	data[6] = LEVELS;
	TRUE("no such level", !levels_wish_read(data, sizeof(data), &got));
	data[6] = 0;
	TRUE("longer", !levels_wish_read(data, sizeof(data) + 1, &got));
}

/* Of what one receiver tells the newest counts; another one, or it started anew, counts anew. */
TEST(test_levels_receivers)
{
	static const struct {
		uint32_t from;
		uint16_t number;
		int level, want;
	} row[] = {{1, 300, 3, 3}, {1, 299, 1, 3}, {2, 0, 2, 2}, {2, 1, 4, 4}, {2, 1, 0, 4}};
	double option[CTL_OPTIONS] = {300e3, 500e3, 700e3, 900e3, 1100e3};
	struct ctl_params p = params;
	struct ctl *c;

	p.option = option;
	c = ctl_new(&ctl_levels, &p, 0);
	for (size_t i = 0; i < ROWS(row); i++) {
		struct levels_wish w = {
			.media = SSRC, .number = row[i].number, .level = (uint8_t)row[i].level};
		uint8_t app[12 + LEVELS_LEN] = {0x80, 204, 0, 12 / 4 + LEVELS_LEN / 4 - 1};
		struct ctl_message m;

		paqm_put32(app + 4, row[i].from);
		paqm_put32(app + 8, LEVELS_APP);
		levels_wish_write(app + 12, &w);
		TRUE("a message", dec_read(app, sizeof(app), &m));
		ctl_message(c, 1, &m);
		SAME("level", state(c, "levels.level"), row[i].want);
	}
	ctl_free(c);
}
