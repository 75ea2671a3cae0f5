/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which UDP flow the RTP packets of an element leave in: found from the pipeline around it, a
 * webrtcbin that it is in, or the udpsink that it leads to.
 */
#ifndef GST_PAQM_ROUTE_H
#define GST_PAQM_ROUTE_H

#include <gst/gst.h>

struct route {
	char *source; /* address, NULL: any */
	char *destination;
	guint16 source_port, destination_port;
	guint below; /* bytes of IP, UDP and SRTP around each RTP packet */
};

void route_clear(struct route *r);
gboolean route_equal(const struct route *a, const struct route *b);

/* Return: the webrtcbin that @element is in, with a reference, or NULL. */
GstElement *route_webrtcbin(GstElement *element);

/**
 * route_of_stats() - the pair of candidates that ICE has selected
 * @stats: what webrtcbin answers to get-stats
 *
 * Of several transports the first counts. Return: FALSE if there is none yet, it is not UDP, or it
 * goes through a relay.
 */
gboolean route_of_stats(const GstStructure *stats, struct route *r);

struct route_name; /* a name, looked up once */

/* Forget it; NULL is allowed. A look-up that hangs is not waited for. */
void route_name_drop(struct route_name *n);

/**
 * route_of_sink() - where the udpsink sends that @pad leads to
 * @pad: source pad
 * @name: NULL at first; what it sends to, if that is a name
 *
 * Return: FALSE if it leads to none, that has no socket yet, or the name is still looked up.
 */
gboolean route_of_sink(GstPad *pad, struct route_name **name, struct route *r);

#endif /* GST_PAQM_ROUTE_H */
