/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The flow-controlled applications of J. Chung's thesis (WPI 2000), without the pictures: which
 * frame is sent when. MM_APP sends frames of one size, more often at a higher level; MPEG_APP sends
 * those pictures of a group that its level has.
 */
#ifndef PAQM_TRACE_LEVELS_H
#define PAQM_TRACE_LEVELS_H

#include <stdint.h>

#include "streamer/decide/levels.h"

struct levels_app {
	const char *name, *summary;
	double rate[LEVELS];   /* bit/s in the long run */
	const char *pattern;   /* types of a group's pictures; NULL: frames of one packet */
	unsigned int packet;   /* bytes of the longest, with all headers */
	unsigned int pause_ms; /* longest time between two pictures of a pattern */
};

/* The last has no name. */
extern const struct levels_app levels_apps[];
const struct levels_app *levels_find(const char *name);

/* The level whose rate is the highest within @rate. */
int levels_at(const struct levels_app *app, double rate);
/* From one frame to the next, or of a pattern to that which may be next, ns. */
int64_t levels_step_ns(const struct levels_app *app, unsigned int packet, double rate);
/* Bytes of a frame with all headers; 0: at this level it is not sent. @tick: its number. */
unsigned int levels_frame(const struct levels_app *app, unsigned int packet, unsigned int tick,
			  int level);
/* Longest time between two frames, s. */
double levels_pause(const struct levels_app *app, unsigned int packet);

#endif /* PAQM_TRACE_LEVELS_H */
