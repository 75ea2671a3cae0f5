/* SPDX-License-Identifier: GPL-2.0 */
/* The pacer by a clock that stands until the test moves it. */
#ifndef PAQM_PACER_BENCH_H
#define PAQM_PACER_BENCH_H

#include <gst/check/gstharness.h>
#include <gst/check/gsttestclock.h>

#define BEGIN 1000000 /* us of the clock, so that no time is 0 by chance */
#define PT 96
#define FEC 107
#define OURS 1
#define AGAIN 2
#define HEADERS 28

struct sent {
	gint64 at; /* us after BEGIN */
	guint8 pt, seq, ssrc;
	gsize size;
	guint32 ts;
};

struct bench {
	GstHarness *h;
	GstTestClock *clock;
	GMutex lock;
	GArray *sent; /* of struct sent */
	gint64 eos;   /* us after BEGIN; -1: not yet */
	guint8 seq;
};

gint64 now(struct bench *b);
void bench_begin(struct bench *b, const char *elements, const char *caps);
/* A pacer of pictures of 40 ms. */
void begin_pacer(struct bench *b);
void bench_end(struct bench *b);
guint count(struct bench *b);
struct sent *nth(struct bench *b, guint i);
/* The pacer has something to send later. */
void stands(struct bench *b);
/* Lets time pass from one packet to the next until so many have left. */
void pass(struct bench *b, guint packets);
void set_now(struct bench *b, gint64 us);
/* Is everything sent that has a time? */
gboolean idle(struct bench *b);
/* Lets time pass until then. */
void pass_until(struct bench *b, gint64 us);
void push_at(struct bench *b, gsize wire, guint8 pt, gboolean marker, guint8 ssrc, guint8 ts);
void push(struct bench *b, gsize wire, guint8 pt, gboolean marker, guint8 ssrc);
/* A frame of packets with so many bytes on the wire. */
void push_frame(struct bench *b, const guint *wire, guint n);
void check_times(struct bench *b, guint from, const gint64 *at, guint n);

#endif /* PAQM_PACER_BENCH_H */
