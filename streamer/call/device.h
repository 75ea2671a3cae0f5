/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What may vanish in the middle of a call and come back: camera, microphone, loudspeaker, windows.
 * Each is a bin of its own, which is taken out of the pipeline when it fails and made anew when it
 * may be there again. What it is joined to goes on and does not learn of it.
 */
#ifndef PAQM_CALL_DEVICE_H
#define PAQM_CALL_DEVICE_H

#include <gst/gst.h>

#define DEVICE_RETRY_MS 2000

enum device_return {
	DEVICE_RETRIED, /* every DEVICE_RETRY_MS */
	DEVICE_ASKED,	/* by device_ask(): a window that somebody has closed */
	DEVICE_GONE,	/* never: a file would lose what is in it */
};

enum device_gives {
	DEVICE_SOMETHING,
	DEVICE_SILENCE, /* and nothing else since it was opened */
	DEVICE_NOTHING,
};

struct device;

/* Main loop or a streaming thread: it is lost, and @why; NULL: it is back. */
typedef void (*device_fn)(const char *what, enum device_return returns, const char *why,
			  gpointer data);

/**
 * struct device_params
 * @what: for people; must live as long as the device
 * @elements: as gst-launch has them
 * @source: it gives; else it takes
 * @counts: what it gives has time stamps by a clock of its own, see drift.h
 * @joint: an identity in a bin of the pipeline; its pad towards the device is the device's
 * @probe: sees what a device that takes is given; NULL: nobody
 * @made: sees the elements before they are used; NULL: nobody
 * @tell: gets @data, as @probe and @made do
 */
struct device_params {
	const char *what;
	const char *elements;
	gboolean source, counts;
	enum device_return returns;
	GstElement *pipeline, *joint;
	GstPadProbeCallback probe;
	void (*made)(GstElement *elements, gpointer data);
	device_fn tell;
	gpointer data;
};

/* Not in the pipeline yet. NULL: the elements are not to be had. */
struct device *device_new(const struct device_params *p, GError **error);
/* Main loop, while the pipeline plays. Messages tell whether it works, see device_message(). */
void device_open(struct device *d);
/* Main loop: does the error belong to it? Then it is lost, and that is told once. */
gboolean device_message(struct device *d, GstMessage *msg);
/**
 * device_begins() - streaming thread: it begins now, not when it was opened
 * @pacer: holds what it gives to time
 * @late: it has begun, and stood still for so long; 0: it has not
 */
void device_begins(struct device *d, GstElement *pacer, GstClockTime late);
/* Main loop: it is opened, and nothing has gone through yet. */
gboolean device_waits(const struct device *d);
/* Main loop: what a device that gives has given since it was asked last. */
enum device_gives device_gives(struct device *d);
/* Main loop: what it is made of is of no use any more, for @why. It has elements. */
void device_lose(struct device *d, const char *why);
/* Main loop: what it is made of from the next time on. */
void device_replace(struct device *d, const char *elements);
/* Main loop: its elements; NULL: it is lost. */
GstElement *device_elements(const struct device *d);
/* Main loop: somebody wants it back, if it is one of DEVICE_ASKED and lost. */
void device_ask(struct device *d);
/* No more is opened; before the pipeline stops. */
void device_stop(struct device *d);
/* After the pipeline has stopped. */
void device_free(struct device *d);

#endif /* PAQM_CALL_DEVICE_H */
