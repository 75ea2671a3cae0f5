// SPDX-License-Identifier: GPL-2.0
/*
 * Five-level media scaling, the receiver's side: once per round trip the level is halved if a frame
 * was lost, or raised by one if none was. A frame is lost if a later one begins before all of it
 * has come, or if nothing comes for longer than frames may be apart.
 *
 * Printed are the rules; the check once per round trip is the author's later example for ns-2,
 * `immediate` what the thesis' prose says.
 */
#include <math.h>
#include <string.h>

#include "core/paqm_bytes.h"
#include "streamer/decide/decide.h"
#include "streamer/decide/levels.h"

#define RTP_HEAD 12
#define CHECK_LEAST 0.01 /* s; beside it a shorter round trip does not matter */
#define SILENT_ALPHA 0.5 /* of a round trip beyond the pause, where that is longer */

struct levels {
	bool immediate;
	int level;
	unsigned int lost, got; /* since the last check: frames, packets */
	unsigned int missing;	/* packets that may belong to the frame under way */
	bool any, first;
	uint16_t expected;
	uint32_t ts;
	double began;	   /* when the first packet came */
	double check;	   /* when the next one is due */
	double silent;	   /* when silence counts as loss */
	double rest;	   /* with `immediate`: no other step down before */
	double rtt, pause; /* s; rtt 0: unknown */
	uint32_t echo_us;  /* clock of the newest packet, */
	double echo_at;	   /* and when it came */
	uint16_t told;
};

void levels_mark_write(uint8_t ext[LEVELS_EXTENSION], const struct levels_mark *m)
{
	memset(ext, 0, LEVELS_EXTENSION);
	paqm_put16(ext, LEVELS_PROFILE);
	paqm_put16(ext + 2, LEVELS_EXTENSION / 4 - 1);
	paqm_put32(ext + 4, m->clock_us);
	paqm_put32(ext + 8, m->rtt_us);
	paqm_put16(ext + 12, m->pause_ms);
	ext[14] = m->level;
}

bool levels_mark_read(const uint8_t *packet, size_t len, struct levels_mark *m)
{
	const uint8_t *ext;

	if (len < RTP_HEAD || packet[0] >> 6 != 2 || !(packet[0] & 0x10))
		return false;
	if (len - RTP_HEAD < 4U * (packet[0] & 15) + LEVELS_EXTENSION)
		return false;
	ext = packet + RTP_HEAD + 4 * (packet[0] & 15);
	if (paqm_get16(ext) != LEVELS_PROFILE || paqm_get16(ext + 2) != LEVELS_EXTENSION / 4 - 1)
		return false;
	*m = (struct levels_mark){.clock_us = paqm_get32(ext + 4),
				  .rtt_us = paqm_get32(ext + 8),
				  .pause_ms = paqm_get16(ext + 12),
				  .level = ext[14]};
	return m->level < LEVELS;
}

void levels_wish_write(uint8_t data[LEVELS_LEN], const struct levels_wish *w)
{
	paqm_put32(data, w->media);
	paqm_put16(data + 4, w->number);
	data[6] = w->level;
	data[7] = 0;
	paqm_put32(data + 8, w->echo_us);
	paqm_put32(data + 12, w->held_us);
}

bool levels_wish_read(const uint8_t *data, size_t len, struct levels_wish *w)
{
	if (len != LEVELS_LEN || data[6] >= LEVELS)
		return false;
	*w = (struct levels_wish){.media = paqm_get32(data),
				  .number = paqm_get16(data + 4),
				  .level = data[6],
				  .echo_us = paqm_get32(data + 8),
				  .held_us = paqm_get32(data + 12)};
	return true;
}

static void levels_init(void *state, const double *option, double now)
{
	struct levels *s = state;

	(void)now;
	s->immediate = option[LEVELS_IMMEDIATE] > 0;
	s->check = s->silent = INFINITY;
	s->rest = -INFINITY;
}

/* From one check to the next. */
static double period(const struct levels *s)
{
	return fmax(s->rtt, CHECK_LEAST);
}

/* The timeout interval of the thesis; before the round trip is known any that does no harm. */
static double timeout(const struct levels *s)
{
	if (s->rtt <= 0)
		return INFINITY;
	return s->rtt > s->pause ? s->rtt : s->pause + SILENT_ALPHA * s->rtt;
}

static void take_mark(struct levels *s, const struct levels_mark *m, double at)
{
	s->rtt = m->rtt_us / 1e6;
	s->pause = m->pause_ms / 1e3;
	s->echo_us = m->clock_us;
	s->echo_at = at;
	if (s->check == INFINITY && s->rtt > 0) /* that was waited for */
		s->check = fmax(at, s->began + period(s));
}

static void levels_packet(void *state, const struct dec_packet *p)
{
	struct levels *s = state;
	struct levels_mark m;
	int16_t ahead;

	if (!levels_mark_read(p->rtp, p->len, &m))
		return;
	if (!s->any) {
		s->any = s->first = true;
		s->began = s->check = p->at; /* the first message is due at once */
		s->expected = p->seq;
		s->ts = p->ts;
	}
	s->got++;
	ahead = (int16_t)(uint16_t)(p->seq - s->expected);
	if (ahead < 0)
		return; /* late: it has been given up */
	s->missing += (unsigned int)ahead;
	s->expected = (uint16_t)(p->seq + 1);
	if (p->ts != s->ts) {
		s->lost += s->missing;
		s->missing = 0;
		s->ts = p->ts;
	}
	take_mark(s, &m, p->at);
	s->silent = p->at + timeout(s);
}

/* One decision. The packet that asked for the first message counts for the next check. */
static void decide(struct levels *s, double now)
{
	if (s->lost)
		s->level /= 2;
	else if (s->got && !s->first && s->level < LEVELS - 1)
		s->level++;
	s->lost = 0;
	s->got = s->first;
	s->first = false;
	if (s->rtt <= 0)
		s->check = INFINITY; /* until it is known */
	else
		s->check = (s->check + period(s) > now ? s->check : now) + period(s);
}

static size_t levels_tell(void *state, double now, uint32_t media, uint8_t data[DEC_DATA])
{
	struct levels *s = state;
	struct levels_wish w;

	if (now >= s->silent) {
		s->lost++;
		s->silent = now + timeout(s);
	}
	if (s->immediate && s->lost && now >= s->rest && now < s->check) {
		s->check = now;
		s->rest = now + period(s);
	}
	if (!s->any || now < s->check)
		return 0;
	decide(s, now);
	w = (struct levels_wish){.media = media,
				 .number = s->told++,
				 .level = (uint8_t)s->level,
				 .echo_us = s->echo_us,
				 .held_us = (uint32_t)(fmax(0, now - s->echo_at) * 1e6)};
	levels_wish_write(data, &w);
	return LEVELS_LEN;
}

static double levels_next(const void *state)
{
	const struct levels *s = state;

	return fmin(s->check, s->silent);
}

static void levels_state(const void *state, const char *name, ctl_log_fn log, void *data)
{
	const struct levels *s = state;

	log(name, "level", s->level, data);
	log(name, "lost", s->lost, data);
	log(name, "got", s->got, data);
}

const struct dec_kind dec_levels = {
	.name = "levels",
	.size = sizeof(struct levels),
	.app = LEVELS_APP,
	.subtype = LEVELS_SUBTYPE,
	.init = levels_init,
	.packet = levels_packet,
	.tell = levels_tell,
	.next = levels_next,
	.state = levels_state,
};
