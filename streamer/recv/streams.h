/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The streams that arrive on one port, of which one is played: the first, as long as it comes and
 * gives pictures. When it has been silent for a moment, or gives none, another that is there takes
 * its place; nobody else does.
 *
 * A stream belongs to the address that it comes from. Two senders with one SSRC collide, and the
 * first is kept (RFC 3550 section 8.2); but when nothing comes from there any more, whoever sends
 * with that SSRC is taken for the same: a sender that was begun anew, or that a NAT has moved.
 */
#ifndef PAQM_STREAMER_STREAMS_H
#define PAQM_STREAMER_STREAMS_H

#include <gio/gio.h>
#include <gst/gst.h>

#define STREAMS_SILENT_MS 1000 /* without a packet: silent */
#define STREAMS_BARREN_MS 2000 /* without a picture, though packets come */

struct streams;

/**
 * streams_fn() - a stream is about to be played
 * @pt: its payload type
 * @first: none has been before; else nothing moves between the streams' outlet and what follows
 *
 * Return: FALSE: it cannot be.
 */
typedef gboolean (*streams_fn)(guint pt, gboolean first, gpointer data);

/* @proof: packets prove themselves later (SRTP): they may come from anywhere. */
struct streams *streams_new(GstBin *pipeline, gboolean proof, streams_fn take, gpointer data);
/* Packets of the stream that is played leave this element. */
GstElement *streams_outlet(struct streams *s);
/**
 * streams_add() - rtpbin has a pad for a stream
 * @pt: its payload type
 *
 * Return: FALSE: it will never be played; the pad is not linked.
 */
gboolean streams_add(struct streams *s, GstPad *pad, guint32 ssrc, guint pt);
/* Nothing comes of a stream any more, and rtpbin's pad for it is gone; it was not played. */
void streams_remove(struct streams *s, guint32 ssrc);

enum streams_whose {
	STREAMS_REFUSED, /* of another sender with the same SSRC: it must not go on */
	STREAMS_OTHER,	 /* of a stream that is not played */
	STREAMS_OURS,	 /* of that which is, or none is yet */
	STREAMS_MOVED,	 /* the same, whose sender has another address now */
};

/**
 * streams_heard() - network thread: a packet has come
 * @from: address of its sender, or NULL
 */
enum streams_whose streams_heard(struct streams *s, guint32 ssrc, GSocketAddress *from);
/*
 * Thread of RTCP: the same of a report; never STREAMS_MOVED, and STREAMS_OTHER of an unknown
 * stream. It comes from the host that the packets come from, or, when that has been silent for
 * long, from anywhere: where it is from decides where ours go.
 */
enum streams_whose streams_reported(struct streams *s, guint32 ssrc, GSocketAddress *from);
/* Any thread: how many of them were of somebody else. */
guint64 streams_reports_refused(struct streams *s);
/* Any thread: that is played; 0: none. */
guint32 streams_played(struct streams *s);
/* Main loop, a few times a second; @pictures: shown so far. */
void streams_tick(struct streams *s, guint pictures);
/* That is played, with the address of its newest packet (to be released, NULL: unknown). */
guint32 streams_now(struct streams *s, GSocketAddress **from);
/* After the pipeline has stopped. */
void streams_free(struct streams *s);

#endif /* PAQM_STREAMER_STREAMS_H */
