// SPDX-License-Identifier: GPL-2.0
/*
 * RAF, the sender's side: it obeys. What is chosen, and from which source, is in decide/raf.h. The
 * rate of a format counts headers, so that a layer holds all that is sent. Before the first request
 * the format is what a receiver with the same wishes would ask for that has measured nothing.
 *
 * That a sender who hears nothing for 4 s goes back to the lowest layer is a choice of ours, and so
 * is that a request for more than its layer carries is refused, not cut.
 */
#include <math.h>

#include "streamer/control/control.h"
#include "streamer/decide/raf.h"
#include "streamer/decide/rafwish.h"

#define SILENT 4.0 /* s; a request comes every second */

struct raf {
	struct raf_choice choice;
	uint32_t avail;
	double silent;
};

static void raf_init(void *state, const struct ctl_params *p, double now)
{
	struct raf_user user = raf_wish(p->option);
	struct raf *s = state;

	s->avail = RAF_AVAIL;
	s->choice = raf_choose(s->avail, 0, 0, raf_wish_layers(p->option), &user);
	s->silent = now + SILENT;
}

static bool raf_message(void *state, const struct ctl_params *p, double now,
			const struct ctl_message *m)
{
	struct raf *s = state;
	struct raf_request q;

	if (m->name != RAF_APP || m->subtype != RAF_SUBTYPE ||
	    !raf_read(m->data, m->len, raf_wish_layers(p->option), &q))
		return false;
	s->choice = q.choice;
	s->avail = q.avail;
	s->silent = now + SILENT;
	return true;
}

static double raf_next(const void *state)
{
	return ((const struct raf *)state)->silent;
}

static void raf_timeout(void *state, const struct ctl_params *p, double now)
{
	struct raf_user user = raf_wish(p->option);
	struct raf *s = state;

	s->avail = 0;
	s->choice = raf_choose(0, 0, 0, raf_wish_layers(p->option), &user);
	s->silent = now + SILENT;
}

static double raf_send_rate(const void *state, const struct ctl_params *p)
{
	(void)p;
	return raf_rate(&((const struct raf *)state)->choice);
}

/* 4:2:0 has even sides only; the report's sizes are exact, and what is sent is below them. */
static void raf_format(const void *state, struct ctl_format *f)
{
	const struct raf_choice *c = &((const struct raf *)state)->choice;

	*f = (struct ctl_format){c->width & ~1, c->height & ~1, c->fps};
}

static void raf_state(const void *state, const char *name, ctl_log_fn log, void *data)
{
	const struct raf *s = state;
	struct ctl_format f;

	raf_format(s, &f);
	log(name, "avail", s->avail, data);
	log(name, "layer", s->choice.layer, data);
	log(name, "cap", raf_ladder[s->choice.layer], data);
	log(name, "bits_per_pixel", s->choice.millibits / 1e3, data);
	log(name, "fps", s->choice.fps, data);
	log(name, "width", s->choice.width, data);
	log(name, "height", s->choice.height, data);
	log(name, "sent_width", f.width, data);
	log(name, "sent_height", f.height, data);
	log(name, "opinion", raf_opinion(&s->choice) / 1e3, data);
}

const struct ctl_kind ctl_raf = {
	.name = "raf",
	.summary = "RAF: the receiver asks for size, quality and pace of pictures",
	.options = raf_wishes,
	.bursts = true,
	.size = sizeof(struct raf),
	.init = raf_init,
	.message = raf_message,
	.format = raf_format,
	.next = raf_next,
	.timeout = raf_timeout,
	.rate = raf_send_rate,
	.state = raf_state,
};
