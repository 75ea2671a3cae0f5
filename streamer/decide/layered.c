// SPDX-License-Identifier: GPL-2.0
/* The receiving side of layered probing: measures trains of packets, and tells what they were like.
 */
#include "streamer/decide/decide.h"
#include "streamer/rtp/probe.h"

struct trains {
	struct probes probes;
	bool due;
};

static uint64_t ns(double seconds)
{
	return (uint64_t)(seconds * 1e9);
}

static void trains_init(void *state, const double *option, double now)
{
	(void)state;
	(void)option;
	(void)now;
}

static void trains_packet(void *state, const struct dec_packet *p)
{
	struct trains *t = state;

	t->due |= probes_see(&t->probes, p->rtp, p->readable, p->bytes, ns(p->at));
}

static size_t trains_tell(void *state, double now, uint32_t media, uint8_t data[DEC_DATA])
{
	struct trains *t = state;

	(void)media;
	if (!t->due && !probes_late(&t->probes, ns(now)))
		return 0;
	t->due = false;
	return probes_report(&t->probes, data, ns(now));
}

#define TRAINS(word)                                                                               \
	{                                                                                          \
		.name = (word), .size = sizeof(struct trains), .app = PROBE_NAME,                  \
		.subtype = PROBE_SUBTYPE, .init = trains_init, .packet = trains_packet,            \
		.tell = trains_tell,                                                               \
	}
const struct dec_kind dec_layered = TRAINS("layered-probing");
const struct dec_kind dec_binary = TRAINS("binary");
