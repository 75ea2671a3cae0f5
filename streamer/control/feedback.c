// SPDX-License-Identifier: GPL-2.0
/* Fate of packets, from reports. */
#include "streamer/control/feedback.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A clock of the peer that jumps further than ours between two packets has been set. */
#define CLOCK_JUMP 30.0
#define CLOCK_BACK 0.5	    /* s: by more than rates are counted over */
#define REORDER_MARGIN 1.25 /* the next is later still */
#define OVERTAKEN 1.0	    /* s: a packet with a lower number is not sent later by as much */

void fb_init(struct fb *fb)
{
	memset(fb, 0, offsetof(struct fb, missing));
	fb->rtt = NAN;
}

uint64_t fb_unwrap(const struct fb *fb, uint16_t seq)
{
	uint64_t base = fb->any ? fb->highest : 1ULL << 32;

	return base + (int16_t)(uint16_t)(seq - (uint16_t)base);
}

static int by_seq(const void *a, const void *b)
{
	const struct fb_packet *x = a, *y = b;

	return x->seq < y->seq ? -1 : x->seq > y->seq;
}

static bool sane(const struct fb_packet *p, double now)
{
	return isfinite(p->sent) && now >= p->sent && now - p->sent < FB_RTT_MAX &&
	       (!p->received || isfinite(p->recv));
}

/* Of more packets than 16 bits tell apart no report came: what has left since then is newer. */
static uint64_t unwrap_gap(const struct fb *fb, const struct fb_packet *p)
{
	bool gap = fb->any && p->seq <= fb->highest && p->sent > fb->last_sent + OVERTAKEN;

	return gap ? p->seq + 65536 : p->seq;
}

static void forget(struct fb *fb, size_t i)
{
	memmove(fb->missing + i, fb->missing + i + 1,
		(--fb->n_missing - i) * sizeof(fb->missing[0]));
}

void fb_new_clock(struct fb *fb)
{
	for (size_t i = 0; i < fb->n_missing; i++)
		fb->missing[i].overtaken = NAN;
	for (size_t i = 0; i < FB_GONE && i < fb->n_gone; i++)
		fb->gone[i].overtaken = NAN;
}

static void note_arrival(struct fb *fb, const struct fb_packet *p)
{
	if (!fb->n_arrived || p->recv - fb->last_recv > CLOCK_JUMP ||
	    fb->last_recv - p->recv > CLOCK_BACK) {
		fb->n_arrived = 0;
		fb->first_recv = fb->last_recv = p->recv;
	}
	fb->arrived[fb->n_arrived % FB_HISTORY].recv = p->recv;
	fb->arrived[fb->n_arrived % FB_HISTORY].size = p->size;
	fb->n_arrived++;
	if (p->recv > fb->last_recv)
		fb->last_recv = p->recv;
}

double fb_recv_rate(const struct fb *fb, double window)
{
	double bytes = 0, span = fb->last_recv - fb->first_recv;
	uint64_t kept = fb->n_arrived < FB_HISTORY ? fb->n_arrived : FB_HISTORY;

	if (span < window)
		window = span;
	if (!kept || window <= 0)
		return 0;
	for (uint64_t i = fb->n_arrived - kept; i < fb->n_arrived; i++)
		if (fb->arrived[i % FB_HISTORY].recv > fb->last_recv - window)
			bytes += fb->arrived[i % FB_HISTORY].size;
	return 8 * bytes / window;
}

static void note_gone(struct fb *fb, const struct fb_missing *m)
{
	fb->gone[fb->n_gone % FB_GONE].seq = m->pkt.seq;
	fb->gone[fb->n_gone++ % FB_GONE].overtaken = m->overtaken;
}

/* An arrival counts against every older packet that is missing. */
static size_t give_up(struct fb *fb, const struct fb_packet *p)
{
	size_t lost = 0, kept = 0;

	for (size_t i = 0; i < fb->n_missing; i++) {
		struct fb_missing *m = &fb->missing[i];

		if (m->pkt.seq < p->seq) {
			m->later++;
			m->overtaken = fmin(m->overtaken, p->recv); /* that of NAN is the other */
			if (m->later >= FB_LATER && p->recv - m->overtaken >= fb->reorder) {
				note_gone(fb, m);
				fb->lost[lost++] = m->pkt;
				continue;
			}
		}
		fb->missing[kept++] = *m;
	}
	fb->n_missing = kept;
	return lost;
}

/* A packet has come after all, which others had overtaken. */
static void note_reorder(struct fb *fb, double now, double late)
{
	if (!(late > 0 && late <= FB_REORDER_MAX))
		return;
	if (late > fb->reorder / 2)
		fb->reordered = now;
	fb->reorder = fmax(fb->reorder, REORDER_MARGIN * late);
}

/* What counted as lost was late. */
static void note_late(struct fb *fb, double now, const struct fb_packet *p)
{
	for (size_t i = 0; i < FB_GONE && i < fb->n_gone; i++) {
		if (fb->gone[i].seq != p->seq)
			continue;
		note_reorder(fb, now, p->recv - fb->gone[i].overtaken);
		fb->gone[i].seq = 0; /* once */
	}
}

void fb_space(struct fb *fb, double interval)
{
	if (interval > 0)
		fb->spacing =
			fb->spacing > 0 ? fb->spacing + (interval - fb->spacing) / 8 : interval;
}

bool fb_packets(struct fb *fb, double now, const struct fb_packet *pkts, size_t n,
		struct fb_report *r)
{
	size_t fresh = 0, lost = 0, kept = 0, ect = 0, ce = 0;
	double bytes = 0, since = fb->last_sent, newest = -1;
	struct fb_packet *p = fb->fresh;
	struct fb_packet out[FB_PENDING];

	if (n > FB_REPORT)
		n = FB_REPORT;
	for (size_t i = 0; i < n; i++) {
		if (!sane(&pkts[i], now))
			continue;
		p[fresh] = pkts[i];
		p[fresh++].seq = unwrap_gap(fb, &pkts[i]);
	}
	qsort(p, fresh, sizeof(*p), by_seq);
	if (now - fb->reordered > FB_REORDER_KEPT)
		fb->reorder = 0;
	for (size_t i = 0; i < fresh; i++) {
		bool is_new = !fb->any || p[i].seq > fb->highest;
		size_t m = 0;

		while (m < fb->n_missing && fb->missing[m].pkt.seq != p[i].seq)
			m++;
		if (!is_new && (m == fb->n_missing || !p[i].received)) {
			if (p[i].received)
				note_late(fb, now, &p[i]);
			continue; /* known */
		}
		if (is_new) {
			fb->highest = p[i].seq;
			fb->any = true;
			bytes += p[i].size;
			fb->last_sent = fmax(fb->last_sent, p[i].sent);
		}
		if (!p[i].received) {
			if (fb->n_missing == FB_PENDING)
				forget(fb, 0);
			fb->missing[fb->n_missing++] =
				(struct fb_missing){.pkt = p[i], .overtaken = NAN};
			continue;
		}
		if (m < fb->n_missing) {
			if (fb->missing[m].later)
				note_reorder(fb, now, p[i].recv - fb->missing[m].overtaken);
			forget(fb, m);
		}
		note_arrival(fb, &p[i]);
		newest = fmax(newest, p[i].sent);
		if (is_new) {
			size_t gone = give_up(fb, &p[i]);

			for (size_t k = 0; k < gone && lost < FB_PENDING; k++)
				out[lost++] = fb->lost[k];
		}
		ect += p[i].ect;
		ce += p[i].ce;
		p[kept++] = p[i];
	}
	if (!kept && !lost)
		return false;
	memcpy(fb->lost, out, lost * sizeof(out[0]));
	*r = (struct fb_report){
		.now = now,
		.rtt = newest >= 0 ? now - newest : NAN,
		.interval = fb->last_report > 0 ? now - fb->last_report : 0,
		.pkts = p,
		.n = kept,
		.losses = fb->lost,
		.lost = lost,
		.ect = ect,
		.ce = ce,
		.expected = kept + lost,
		.fraction = (double)lost / (double)(kept + lost),
		.fb = fb,
	};
	if (isfinite(r->rtt))
		fb->rtt = isfinite(fb->rtt) ? fb->rtt + (r->rtt - fb->rtt) / 8 : r->rtt;
	fb_space(fb, r->interval);
	r->x_sent = since > 0 && fb->last_sent > since ? 8 * bytes / (fb->last_sent - since) : NAN;
	r->x_recv = fb_recv_rate(fb, fmax(r->interval, isfinite(fb->rtt) ? fb->rtt : 0));
	fb->last_report = now;
	return true;
}

const struct fb_packet *fb_next_sign(const struct fb_report *r, bool marks, size_t *lost,
				     size_t *came)
{
	while (*came < r->n && !(marks && r->pkts[*came].ce))
		++*came;
	if (*lost < r->lost && (*came == r->n || r->losses[*lost].seq < r->pkts[*came].seq))
		return &r->losses[(*lost)++];
	return *came < r->n ? &r->pkts[(*came)++] : NULL;
}

bool fb_congested(const struct fb_report *r, bool marks, double since, double rtt)
{
	const struct fb_packet *p;
	size_t lost = 0, came = 0;

	if (!r->expected)
		return r->fraction > 0 && !(r->now - since <= rtt);
	while ((p = fb_next_sign(r, marks, &lost, &came)))
		if (p->sent > since)
			return true;
	return false;
}
