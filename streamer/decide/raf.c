// SPDX-License-Identifier: GPL-2.0
/*
 * RAF, the receiver's side: counts pictures that came whole, measures the path, and asks for a
 * format every second.
 *
 * The report's system estimates what is available by pairs of packets; how is not printed. Here it
 * is the median of the rates of packets that directly follow each other within a picture, of the
 * last second, or of as much of five as ten pairs need: small pictures have few. All that is a
 * choice of ours, and so are ten pictures per decision; with less the format stays.
 */
#include <stdlib.h>

#include "streamer/decide/decide.h"
#include "streamer/decide/raf.h"
#include "streamer/decide/rafwish.h"

#define PAIRS 512 /* remembered; power of two */
#define PAIRS_LEAST 10
#define RECENT 1.0 /* s */
#define OLDEST 5.0
#define FIRST 0.1 /* s after the first packet */
#define EVERY 1.0
#define PICTURES_LEAST 10
#define GAP_LEAST 1e-6 /* s: closer than a clock can tell */
#define COUNT_MOST 0xffff

struct raf {
	struct raf_user user;
	int layers;
	uint32_t avail, known;
	struct {
		double at;
		float rate;
	} pair[PAIRS];
	uint64_t n_pairs;

	bool any;
	uint16_t seq;
	uint32_t ts;
	uint32_t step; /* shortest between two pictures so far; 0: unknown */
	double at;
	bool whole, ended;	 /* the picture under way: so far; its last packet has come */
	uint32_t lost, received; /* pictures since the last decision */

	double due;
	struct raf_choice choice;
	bool chosen;
};

static void raf_init(void *state, const double *option, double now)
{
	struct raf *s = state;

	(void)now;
	s->user = raf_wish(option);
	s->layers = raf_wish_layers(option);
	s->known = (uint32_t)option[RAF_KNOWN];
	s->avail = s->known ? s->known : RAF_AVAIL;
}

static void see_pair(struct raf *s, const struct dec_packet *p)
{
	double gap = p->at - s->at;

	if (gap < GAP_LEAST)
		return;
	s->pair[s->n_pairs % PAIRS].at = p->at;
	s->pair[s->n_pairs % PAIRS].rate = (float)(8.0 * (double)p->bytes / gap);
	s->n_pairs++;
}

/* Another picture begins, after @missing packets. */
static void next_picture(struct raf *s, const struct dec_packet *p, unsigned int missing)
{
	uint32_t step = p->ts - s->ts, between = 0;

	if (!s->ended)
		s->lost++; /* its end has not come, nor will it */
	if (missing && s->ended && s->step)
		between = (step + s->step / 2) / s->step - 1;
	else if (!missing && (!s->step || step < s->step))
		s->step = step;
	if (between > missing)
		between = missing;
	s->lost += between;
	/* what is missing was that picture's end, others', or this one's beginning */
	s->whole = !missing || !s->ended || between;
	s->ended = false;
}

static void raf_packet(void *state, const struct dec_packet *p)
{
	struct raf *s = state;
	uint16_t ahead = (uint16_t)(p->seq - s->seq);

	if (!s->any) {
		s->any = s->whole = true;
		s->due = p->at + FIRST;
	} else if (!ahead || ahead >= 0x8000) {
		return; /* again, or late: it has been given up */
	} else if (p->ts != s->ts) {
		next_picture(s, p, ahead - 1U);
	} else if (ahead == 1) {
		see_pair(s, p);
	} else {
		s->whole = false;
	}
	if (p->marker && !s->ended) {
		s->ended = true;
		s->received += s->whole;
		s->lost += !s->whole;
	}
	s->seq = p->seq;
	s->ts = p->ts;
	s->at = p->at;
}

static int compare(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

static void measure(struct raf *s, double now)
{
	static _Thread_local float rates[PAIRS];
	size_t n = 0;

	if (s->known)
		return;
	for (uint64_t i = s->n_pairs; i-- > 0 && s->n_pairs - i <= PAIRS;) {
		double age = now - s->pair[i % PAIRS].at;

		if (age > OLDEST || (age > RECENT && n >= PAIRS_LEAST))
			break;
		rates[n++] = s->pair[i % PAIRS].rate;
	}
	if (n < PAIRS_LEAST)
		return;
	qsort(rates, n, sizeof(*rates), compare);
	s->avail = rates[n / 2] < 4e9F ? (uint32_t)rates[n / 2] : 4000000000U;
}

static size_t raf_tell(void *state, double now, uint32_t media, uint8_t data[DEC_DATA])
{
	struct raf *s = state;
	struct raf_request q = {.media = media};

	if (!s->any || now < s->due)
		return 0;
	measure(s, now);
	q.lost = (uint16_t)(s->lost < COUNT_MOST ? s->lost : COUNT_MOST);
	q.received = (uint16_t)(s->received < COUNT_MOST ? s->received : COUNT_MOST);
	if (!s->chosen || s->lost + s->received >= PICTURES_LEAST) {
		s->choice = raf_choose(s->avail, s->lost, s->received, s->layers, &s->user);
		s->chosen = true;
		s->lost = s->received = 0;
	}
	s->due = now + EVERY;
	q.choice = s->choice;
	q.avail = s->avail;
	raf_write(&q, data);
	return RAF_LEN;
}

static void raf_state(const void *state, const char *name, ctl_log_fn log, void *data)
{
	const struct raf *s = state;

	log(name, "avail", s->avail, data);
	log(name, "pairs", (double)s->n_pairs, data);
	log(name, "lost", s->lost, data);
	log(name, "received", s->received, data);
	log(name, "width", s->choice.width, data);
}

const struct dec_kind dec_raf = {
	.name = "raf",
	.size = sizeof(struct raf),
	.app = RAF_APP,
	.subtype = RAF_SUBTYPE,
	.init = raf_init,
	.packet = raf_packet,
	.tell = raf_tell,
	.state = raf_state,
};
