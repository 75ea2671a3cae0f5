// SPDX-License-Identifier: GPL-2.0
/*
 * Five-level media scaling, the sender's side: it uses the level that it was told last, the lowest
 * at first. It measures the round trip by what is echoed and tells it with its media, since the
 * receiver decides once in one. Rules and sources: decide/levels.h, decide/levels.c.
 */
#include "streamer/control/control.h"
#include "streamer/decide/levels.h"

#define RTT_GAIN 0.1 /* of the newest sample, as in the author's example */
#define RTT_MOST 10.0
#define PAUSE_MOST 65.0

struct levels {
	int level;
	bool told;
	uint32_t from; /* by whom, who counts what he tells */
	uint16_t number;
	double rtt;   /* s; 0: unknown */
	double pause; /* s */
};

static uint32_t clock_us(double now)
{
	return (uint32_t)(uint64_t)(now * 1e6);
}

static void levels_init(void *state, const struct ctl_params *p, double now)
{
	struct levels *s = state;

	(void)now;
	s->pause = ctl_clamp(p->pause, 0, PAUSE_MOST);
}

static bool levels_message(void *state, const struct ctl_params *p, double now,
			   const struct ctl_message *m)
{
	struct levels *s = state;
	struct levels_wish w;
	double sample;

	(void)p;
	if (m->name != LEVELS_APP || m->subtype != LEVELS_SUBTYPE ||
	    !levels_wish_read(m->data, m->len, &w))
		return false;
	if (s->told && m->from == s->from && (int16_t)(uint16_t)(w.number - s->number) <= 0)
		return true; /* overtaken */
	s->told = true;
	s->from = m->from;
	s->number = w.number;
	s->level = w.level;
	sample = (int32_t)(clock_us(now) - w.echo_us - w.held_us) / 1e6;
	if (sample > 0 && sample < RTT_MOST)
		s->rtt = s->rtt > 0 ? (1 - RTT_GAIN) * s->rtt + RTT_GAIN * sample : sample;
	return true;
}

static void levels_extend(const void *state, double now, uint8_t *ext)
{
	const struct levels *s = state;
	struct levels_mark m = {.clock_us = clock_us(now),
				.rtt_us = (uint32_t)(s->rtt * 1e6),
				.pause_ms = (uint16_t)(s->pause * 1e3 + 0.5),
				.level = (uint8_t)s->level};

	levels_mark_write(ext, &m);
}

static double levels_rate(const void *state, const struct ctl_params *p)
{
	return p->option[((const struct levels *)state)->level];
}

static void levels_state(const void *state, const char *name, ctl_log_fn log, void *data)
{
	const struct levels *s = state;

	log(name, "level", s->level, data);
	if (s->rtt > 0)
		log(name, "rtt", s->rtt, data);
}

const struct ctl_kind ctl_levels = {
	.name = "levels",
	.summary = "the receiver chooses one of five rates by what it misses; with send --levels",
	.options = levels_options,
	.extension = LEVELS_EXTENSION,
	.size = sizeof(struct levels),
	.init = levels_init,
	.message = levels_message,
	.extend = levels_extend,
	.rate = levels_rate,
	.state = levels_state,
};
