/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How long a receiver should wait for what may still come: as long as the latest packets of the
 * last seconds would have been behind the time that a jitter buffer gives to what comes now (until
 * it says so, behind the earliest), counted from their RTP time stamps. Pictures whose packets are
 * spread over their interval, queues and retransmissions all show in that. When all packets take
 * longer than before, the jitter buffer's time moves, and nobody waits for that twice.
 *
 * Pure functions: no clock, no I/O. Times are seconds of any monotonic clock.
 */
#ifndef PAQM_PLAYOUT_H
#define PAQM_PLAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#define PLAYOUT_SLOTS 10 /* of a second each, for which the worst is remembered */
#define PLAYOUT_MARGIN 0.020
#define PLAYOUT_SLACK 0.020 /* what is waited too long is given up from here on */
#define PLAYOUT_STEP 0.010  /* at a time: more at once would skip pictures */

/**
 * struct playout
 * @clock: RTP time stamps per second
 * @lo: never wait less, s
 * @hi: nor more
 * @wait: s, now
 * @falls: it is too long, and on its way down
 */
struct playout {
	double clock, lo, hi, wait;
	bool falls;
	double asked; /* for by the last update */
	bool begun;
	bool stamped;
	double stamp; /* of a packet, less its media time */
	uint32_t ts;
	double media; /* what @ts stands for, s */
	double slot;  /* when the present one began */
	unsigned int at, used;
	struct {
		double least, most; /* arrival less media time */
	} seen[PLAYOUT_SLOTS];
};

void playout_begin(struct playout *p, double clock, double lo, double hi, double wait);

/**
 * playout_see() - a packet of the stream came, a retransmitted one with its first time stamp
 * @ts: RTP time stamp
 * @now: when
 */
void playout_see(struct playout *p, uint32_t ts, double now);

/**
 * playout_stamp() - the jitter buffer let a packet go
 * @ts: RTP time stamp
 * @time: what it stands for, says the jitter buffer; it is played at that and the wait
 */
void playout_stamp(struct playout *p, uint32_t ts, double time);

/* How far the latest was behind, s. */
double playout_excess(const struct playout *p);

/**
 * playout_update() - how long to wait from now on
 * @least: what it takes at least for another reason, s; 0: nothing
 *
 * Grows when that is asked for twice in a row: the jitter buffer moves its time at once if a packet
 * comes too late for it, and then the wait is long enough. Shrinks step by step, and only if it is
 * more than PLAYOUT_SLACK too long, so that it does not hunt.
 */
double playout_update(struct playout *p, double least);

#endif /* PAQM_PLAYOUT_H */
