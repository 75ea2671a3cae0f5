/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The receiving side of a video stream within rtpbin: asks for lost packets (RFC 4588), corrects
 * them (RFC 5109), waits as long as the path needs (playout.h), and writes down how that went.
 */
#ifndef PAQM_STREAMER_INBOUND_H
#define PAQM_STREAMER_INBOUND_H

#include <gst/gst.h>
#include <stdio.h>

#define INBOUND_HEADER "t_ns,excess_ms,wait_ms,lost,late,asked,resent,corrected"
#define INBOUND_TICK_MS 200

struct inbound;

struct inbound_params {
	gboolean rtx, fec;
	guint wait_min, wait_max; /* ms */
	guint wait;		  /* ms, to begin with */
};

struct inbound_stats {
	guint64 lost;	/* packets given up */
	guint64 late;	/* came after that */
	guint64 asked;	/* requests to send again */
	guint64 resent; /* packets that came by that, in time */
	guint corrected;
};

/**
 * inbound_new() - before pads of rtpbin are asked for: that is when it asks for elements
 * @bin: rtpbin
 * @session: its number
 */
struct inbound *inbound_new(GstElement *bin, guint session, const struct inbound_params *p);

/**
 * inbound_correct() - name the element that corrects, once rtpbin has its pads
 * @corrector: rtpulpfecdec, which stands behind rtpbin
 */
void inbound_correct(struct inbound *in, GstElement *corrector);

/* Another stream is the one from now on. */
void inbound_take(struct inbound *in, guint32 ssrc);

/* Any thread: rtpbin has given up a stream that was not played; its jitter buffer can go. */
void inbound_leave(struct inbound *in, guint32 ssrc);

/* Any one thread: a packet of the stream came, or a retransmitted one. */
void inbound_packet(struct inbound *in, guint32 rtp_ts);

/* Any thread: pictures a second, by the time stamps of packets; 24 before there are two. */
void inbound_pace(struct inbound *in, gint *n, gint *d);

/**
 * inbound_tick() - main loop, every INBOUND_TICK_MS
 * @log: gets INBOUND_HEADER's columns; NULL: nothing
 *
 * Return: for how long to wait now, ms.
 */
guint inbound_tick(struct inbound *in, FILE *log);
void inbound_stats(struct inbound *in, struct inbound_stats *st);
void inbound_free(struct inbound *in);

#endif /* PAQM_STREAMER_INBOUND_H */
