/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Any encoder whose bit rate can be changed while it runs in the place of
 * paqmh264enc: tells it the rate, less what headers take, and reports its
 * pictures in the form of that element's signals.
 */
#ifndef PAQM_STREAMER_ADAPTOR_H
#define PAQM_STREAMER_ADAPTOR_H

#include <gst/gst.h>

#include "streamer/encoder/codec.h"

struct adaptor;

typedef void (*adaptor_fn)(GstElement *enc, const GstStructure *s, gpointer data);

/**
 * adaptor_new() - find out what an encoder is like
 * @text: element and properties, as gst-launch has them
 * @group: pictures that are reported as one group
 * @headers: bytes around the payload of each packet, see wire_headers()
 *
 * Return: NULL with @error set if there is no such element or it has no rate.
 */
struct adaptor *adaptor_new(const char *text, guint group, guint headers, GError **error);
/* Encoder "enc" and payloader "pay" (its output unlimited) for gst_parse_launch(). */
char *adaptor_text(const struct adaptor *a);
/**
 * adaptor_watch() - begin to report
 * @picture: gets paqm-picture structures; quantizer and bound are 0, nobody knows them
 * @ended: gets paqm-group structures without the fields of RA-SVBR
 */
void adaptor_watch(struct adaptor *a, GstElement *enc, GstElement *pay, adaptor_fn picture,
		   adaptor_fn ended, gpointer data);
/* The allowance, bit/s at the IP level; any thread. */
void adaptor_rate(struct adaptor *a, guint64 rate);
/* Of its packets. */
guint adaptor_payload(const struct adaptor *a);
void adaptor_free(struct adaptor *a);

#endif /* PAQM_STREAMER_ADAPTOR_H */
