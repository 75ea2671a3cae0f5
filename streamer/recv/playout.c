// SPDX-License-Identifier: GPL-2.0
/* How long to wait for what may still come; see playout.h. */
#include "streamer/recv/playout.h"

#include <math.h>

#define SLOT 1.0
#define JUMP 5.0 /* s between two packets' time stamps: another stream, or nonsense */

void playout_begin(struct playout *p, double clock, double lo, double hi, double wait)
{
	*p = (struct playout){.clock = clock, .lo = lo, .hi = hi, .wait = wait};
}

static void forget(struct playout *p, uint32_t ts, double now)
{
	p->begun = true;
	p->stamped = false;
	p->ts = ts;
	p->media = now;
	p->slot = now;
	p->at = 0;
	p->used = 1;
	p->seen[0].least = p->seen[0].most = 0;
}

/* What a time stamp stands for, counted from the newest packet. */
static double media_time(const struct playout *p, uint32_t ts)
{
	return p->media + (int32_t)(ts - p->ts) / p->clock;
}

void playout_see(struct playout *p, uint32_t ts, double now)
{
	double media = media_time(p, ts), late;

	if (!p->begun || fabs(now - media) > JUMP + fabs(now - p->slot)) {
		forget(p, ts, now);
		return;
	}
	late = now - media;
	if (media > p->media) { /* the newest is what the next one is counted from */
		p->ts = ts;
		p->media = media;
	}
	if (now - p->slot >= SLOT) {
		p->at = (p->at + 1) % PLAYOUT_SLOTS;
		p->used = p->used < PLAYOUT_SLOTS ? p->used + 1 : p->used;
		p->slot = now;
		p->seen[p->at].least = p->seen[p->at].most = late;
		return;
	}
	p->seen[p->at].least = fmin(p->seen[p->at].least, late);
	p->seen[p->at].most = fmax(p->seen[p->at].most, late);
}

void playout_stamp(struct playout *p, uint32_t ts, double time)
{
	p->stamp = time - media_time(p, ts);
	p->stamped = p->begun && fabs(p->stamp) < JUMP;
}

double playout_excess(const struct playout *p)
{
	double least = INFINITY, most = -INFINITY;

	for (unsigned int i = 0; i < p->used; i++) {
		least = fmin(least, p->seen[i].least);
		most = fmax(most, p->seen[i].most);
	}
	return p->used ? fmax(most - (p->stamped ? p->stamp : least), 0) : 0;
}

double playout_update(struct playout *p, double least)
{
	double want = fmax(playout_excess(p) + PLAYOUT_MARGIN, least);

	want = fmin(fmax(want, p->lo), p->hi);
	/* nothing is known before every slot has been used once */
	p->wait = fmax(p->wait, fmin(want, p->asked));
	p->asked = want;
	if (p->used == PLAYOUT_SLOTS && want < p->wait - PLAYOUT_SLACK)
		p->falls = true;
	if (p->falls)
		p->wait = fmax(want, p->wait - PLAYOUT_STEP);
	p->falls = p->falls && p->wait > want;
	return p->wait;
}
