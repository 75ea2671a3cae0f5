/* SPDX-License-Identifier: GPL-2.0 */
/* What tests of rate controllers share: checks, and a path that a controller sends over. */
#ifndef PAQM_CONTROL_PATH_H
#define PAQM_CONTROL_PATH_H

#include "core/tests/check.h"
#include "streamer/control/control.h"

/* @part: of @want */
#define WITHIN(what, got, want, part) near(what, got, want, (part)*fabs((double)(want)) + 1e-9)
#define NEAR(what, got, want) WITHIN(what, got, want, 5e-5)
#define SAME(what, got, want) WITHIN(what, got, want, 1e-9)
#define TRUE(what, condition) check(condition, what, 0)

extern const struct ctl_params params;

/* Packets of 1000 bytes, sent evenly, 20 ms each way. */
struct path {
	struct ctl *c;
	double now, rate;
	double next; /* when the next packet is sent */
	uint64_t seq;
	double delay;	 /* s of queue */
	double ahead;	 /* s that the peer's clock has gained on ours */
	double capacity; /* bit/s of a bottleneck with a queue of its own; 0: none */
	double room;	 /* s that fit into that queue; 0: all */
	double busy;	 /* until when it is */
	double queue;	 /* longest wait there since it was last set to 0 */
	bool (*keeps)(uint64_t seq);
	bool ecn, bleached; /* sent as ECN-capable; arrives as if it were not */
	bool (*marks)(uint64_t seq);
	struct fb_packet last[FB_REPORT];
	size_t n_last;
};

/* For keeps and marks. */
bool all(uint64_t seq);
bool none(uint64_t seq);
bool tenth(uint64_t seq);

/* Begin, or begin again. */
void path_init(struct path *p, const struct ctl_kind *kind);
/* The same, as a sender of ECN-capable packets. */
void path_ecn(struct path *p, enum ctl_ecn ecn, const struct ctl_kind *kind);
/* So long with a report every 40 ms, which arrives 20 ms after its newest packet did. */
void path_run(struct path *p, double seconds, bool reports);
void advise_at(struct path *p, double now, double rate);
void advise(struct path *p, double rate);

/* What the controller would log under that name; NAN: nothing. */
double state(const struct ctl *c, const char *name);
struct fb_packet packet(uint64_t seq, bool received);

#endif /* PAQM_CONTROL_PATH_H */
