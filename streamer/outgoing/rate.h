/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Between the rate controller, which knows no GStreamer, and the sender's
 * pipeline: brings it transport-wide reports (or receiver reports, if the peer
 * sends no others) and the estimates of an element, tells the sender each new
 * rate, logs the controller's state. All of it in the main loop's thread.
 */
#ifndef PAQM_STREAMER_RATE_H
#define PAQM_STREAMER_RATE_H

#include <gst/gst.h>
#include <stdio.h>

#include "streamer/control/control.h"

#define RATE_HEADER "t_ns,controller,key,value"
#define RATE_TICK_MS 50

struct rate;

/* @follows: it is what routers advise, see ctl_follows() */
typedef void (*rate_fn)(guint64 bps, gboolean follows, gpointer data);

/**
 * rate_new() - a controller, ready to be asked
 * @log: gets RATE_HEADER's columns every 100 ms; NULL: nothing
 * @apply: called when the rate has changed, or whose it is
 */
struct rate *rate_new(const struct ctl_kind *kind, const struct ctl_params *p, FILE *log,
		      rate_fn apply, gpointer data);
/**
 * rate_watch() - look at the reports that come back
 * @before: the pad through which packets enter rtpbin; reports come out there
 * @session: rtpbin's RTPSession
 * @ssrc: our stream
 * @headers: bytes of a packet around its RTP payload
 * @estimator: the element that the controller needs, or NULL
 */
void rate_watch(struct rate *r, GstPad *before, GObject *session, guint32 ssrc, guint headers,
		GstElement *estimator);
/**
 * rate_hear() - after rate_watch(): read reports of RFC 8888, too
 * @after: the pad by which packets leave rtpbin
 * @below: bytes around what leaves there
 */
void rate_hear(struct rate *r, GstPad *after, guint below);
void rate_advise(struct rate *r, const struct ctl_advice *a);
/* As ctl_moved(). */
void rate_moved(struct rate *r);
/* The round trip by RTCP, s, smoothed by an eighth; 0: not known. From any thread. */
double rate_trip(const struct rate *r);
/* The stream has sent this many bytes in all. */
void rate_sent(struct rate *r, guint64 total);
/* The pictures that the controller wants now. */
void rate_format(const struct rate *r, struct ctl_format *f);
/* As ctl_train(). */
bool rate_train(struct rate *r, struct ctl_train *t);
/* Why the stream must not be sent as ECN-capable any more; NULL: it may. */
const char *rate_ecn_fault(const struct rate *r);
const struct ctl_ecn_seen *rate_ecn_seen(const struct rate *r);
/* Every RATE_TICK_MS: lets time act, looks for receiver reports. */
void rate_tick(struct rate *r);
void rate_free(struct rate *r);

/* Puts the transport-wide sequence number into the packets of a payloader. */
gboolean rate_number_packets(GstElement *pay, GError **error);

#endif /* PAQM_STREAMER_RATE_H */
