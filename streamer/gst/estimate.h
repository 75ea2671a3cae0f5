/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The part of paqmestimator that follows: a thread that finds the flow, speaks with paqmd, works
 * out the estimate and tells the encoder. The element's own part is gstpaqmestimator.c.
 */
#ifndef GST_PAQM_ESTIMATE_H
#define GST_PAQM_ESTIMATE_H

#include "libpaqmclient/paqmclient.h"
#include "streamer/encoder/retune.h"
#include "streamer/gst/balance.h"
#include "streamer/gst/gstpaqmestimator.h"
#include "streamer/gst/route.h"

struct _GstPaqmEstimator {
	GstBin parent;
	GstElement *tap, *pacer, *net; /* pacer: NULL with a safety net, which paces by itself */
	GstPad *src;
	GThread *thread;

	/* as long as the thread runs, its own */
	struct paqm_client *client;
	struct retune *retune;
	struct route route;
	struct route_name *name; /* of a udpsink */
	int flow;		 /* -1: not registered */
	guint64 told_floor, told_ceiling;
	guint ticks;

	GMutex lock; /* for all below */
	int wake;    /* eventfd, -1: not running; set by who starts and stops the thread */
	gboolean stop;
	char *socket, *net_name, *encoder;
	guint least, most, start;
	gboolean advises; /* there is advice, or a safety net */
	guint fits;	  /* bit/s of RTP packets */
	guint estimate;	  /* what is told of it */
	struct balance balance;
	double advised;	    /* bit/s at the IP level, 0: no advice */
	double lifted;	    /* the last advice, bit/s of RTP packets; 0: there was none */
	double mean_packet; /* RTP bytes */
	guint below;
	guint64 wire_bytes, wire_seen;
	double marked, woken;  /* s: the last packet with a marker; the thread, last */
	GstClockTime picture;  /* of the last packet with a marker */
	GstClockTime interval; /* between pictures, their mean */
	struct paqm_client_advice advice;
	struct route found; /* by ICE */
	gboolean asked;
};

/* Begin in READY. Return: FALSE with an error message posted; estimate_stop() cleans up. */
gboolean estimate_start(GstPaqmEstimator *self);
void estimate_stop(GstPaqmEstimator *self);

/* Wire bytes for each byte of RTP. Called with the lock held. */
double estimate_expansion(const GstPaqmEstimator *self);

/* What leaves, bit/s on the wire: what fits, but without advice more, or what an encoder makes too
 * much would wait for good. Called with the lock held.
 */
double estimate_pace(const GstPaqmEstimator *self);

/* Something has changed: the thread looks at it. Any thread, without the lock. */
void estimate_wake(GstPaqmEstimator *self);

/* Work out the estimate anew and tell of it, unless it has risen by next to nothing. Any thread. */
void estimate_update(GstPaqmEstimator *self);

#endif /* GST_PAQM_ESTIMATE_H */
