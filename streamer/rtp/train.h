/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The start of a stream: a short train of small packets of the stream itself, before the first
 * picture, so that routers on the way count the flow and tell its rate before that picture is
 * coded. What they carry is H.264 filler data (NAL unit type 12), which decoders ignore.
 */
#ifndef PAQM_STREAMER_TRAIN_H
#define PAQM_STREAMER_TRAIN_H

#include <gio/gio.h>

#include "streamer/rtp/wire.h"

/* A router knows a flow by its third packet, and answers in one of those that follow its round. */
#define TRAIN_PACKETS 12
#define TRAIN_GAP_MS 20
#define TRAIN_WAIT_MS 250 /* then it starts without an answer */
#define TRAIN_BYTES 60	  /* of UDP payload */
#define TRAIN_NAL 12	  /* first byte of the RTP payload */
#define TRAIN_CLOCK 90000 /* of RTP time stamps */

struct train;

struct train_params {
	GSocket *socket;
	GSocketAddress *to;
	guint32 ssrc;
	guint16 first; /* sequence number of the stream's first packet; the train comes before it */
	guint32 ts;    /* RTP time stamp of now */
};

/* @ms: after the first packet; @told: there was an answer. */
typedef void (*train_fn)(double ms, gboolean told, gpointer data);

/**
 * train_start() - send it, from the main loop
 * @over: called once, when the first picture may be coded
 */
struct train *train_start(const struct train_params *p, train_fn over, gpointer data);

/* An answer has come. */
void train_told(struct train *t);
void train_free(struct train *t);

/* Is a whole RTP packet, not encrypted, one of a train? */
gboolean train_is(const guint8 *packet, gsize len);

#endif /* PAQM_STREAMER_TRAIN_H */
