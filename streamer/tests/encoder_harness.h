/* SPDX-License-Identifier: GPL-2.0 */
/* The encoder under GstHarness, and what it tells of its pictures. */
#ifndef PAQM_ENCODER_HARNESS_H
#define PAQM_ENCODER_HARNESS_H

#include <gst/check/gstharness.h>

struct seen {
	GArray *pictures; /* of struct picture */
	guint groups;
};

struct picture {
	char type;
	int qp_base;
	double qp, bound, rate, interval;
	guint64 pts;
	guint wire, bytes, gop;
	gint width, height;
};

GstHarness *new_encoder(struct seen *seen);
void start(GstHarness *h);
/* Pictures @from to @to of pictures.h. */
void encode(GstHarness *h, guint from, guint to, guint cut, guint detail);
struct picture *nth(struct seen *seen, guint i);
void finish(GstHarness *h, struct seen *seen);

#endif /* PAQM_ENCODER_HARNESS_H */
