/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Makes an encoder of any kind follow a rate that counts headers and all that is sent beside its
 * output: tells it (knob.h) its share of that.
 */
#ifndef PAQM_STREAMER_RETUNE_H
#define PAQM_STREAMER_RETUNE_H

#include <gst/gst.h>

struct retune;

/* Return: NULL with @error set if it has no rate that can be set. Takes a reference. */
struct retune *retune_new(GstElement *encoder, GError **error);
/* The rate of all that is sent, bit/s. Any thread, as the next one. */
void retune_rate(struct retune *r, double rate);
/* To be called about twice a second: so many bytes were sent since, as the rate counts them. */
void retune_sent(struct retune *r, gsize bytes);
void retune_free(struct retune *r);

#endif /* PAQM_STREAMER_RETUNE_H */
