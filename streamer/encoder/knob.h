/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The one knob of any encoder: which property sets its bit rate while it runs, in what unit.
 * A table has the encoders that are known; of others the property's own words tell.
 */
#ifndef PAQM_STREAMER_KNOB_H
#define PAQM_STREAMER_KNOB_H

#include <gst/gst.h>

/* Whose rate is one, or is made one by the size of each picture (bysize.h). */
enum knob_turns { KNOB_RATE, KNOB_QUALITY, KNOB_SIZE };

struct knob {
	const char *property;
	guint unit;	     /* bit/s that the property counts in */
	const char *control; /* V4L2: the property is a structure, and this its field; else NULL */
	const char *live;    /* properties that make it fit for live media, "" if unknown */
	enum knob_turns turns;
};

/**
 * knob_find() - which knob an encoder has
 * @factory: of the encoder, loaded
 *
 * Return: FALSE with @error set, if it has no rate or does not tell the unit.
 */
gboolean knob_find(GstElementFactory *factory, struct knob *knob, GError **error);

/* Set the rate of its output, bit/s, at least one unit, if it has one. Any thread. */
void knob_turn(GstElement *encoder, const struct knob *knob, double rate);

#endif /* PAQM_STREAMER_KNOB_H */
