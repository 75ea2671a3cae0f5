/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Trains of packets that a rate controller asks for (control.c: ctl_train), made of the packets of
 * a stream with an encoder: they are filled up to one length, and packets without payload follow a
 * picture that is short of the train's rate. The pacer knows them by what they carry.
 */
#ifndef PAQM_STREAMER_TRAINS_H
#define PAQM_STREAMER_TRAINS_H

#include <gst/gst.h>

#include "streamer/control/control.h"

struct trains;

/* Bytes by which packets have to be shorter, so that they can join one. */
guint trains_room(const struct ctl_kind *kind);

/**
 * trains_new() - between payloader and whatever is behind it
 * @pacer: what leaves it gets the time
 * @headers: bytes of a packet around its RTP payload
 */
struct trains *trains_new(GstElement *pay, GstElement *pacer, guint headers);
/* Main loop: which train is wanted; NULL: none. @interval: of pictures, s. */
void trains_want(struct trains *t, const struct ctl_train *want, double interval);
/* After the pipeline has stopped. */
void trains_free(struct trains *t);

#endif /* PAQM_STREAMER_TRAINS_H */
