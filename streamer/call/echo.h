/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Echo cancellation: what the loudspeaker plays is taken out of what the microphone hears, by
 * GStreamer's webrtcdsp, which learns from webrtcechoprobe what is played. They pair sound by time:
 * what is played at the moment at which it was to be played. This finds out how much later the
 * microphone hears it, and shifts the microphone's time stamps by that on the way into webrtcdsp.
 */
#ifndef PAQM_CALL_ECHO_H
#define PAQM_CALL_ECHO_H

#include <gst/gst.h>

#include "streamer/call/samples.h"

#define ECHO_TICK_MS 100

/*
 * Both elements work on pieces of 10 ms, and both have to have the same rate. In rows: behind what
 * the microphone is joined to, and before what the loudspeaker is. Not in their own bins, where
 * times are others, and which are made anew while webrtcdsp keeps the probe that it began with.
 * Suppression and noise are at their lowest, since more takes more of a person who speaks at the
 * same time; gain control would lift what is left of the echo by 10 dB. See docs/echo.md.
 */
#define ECHO_CANCELLER                                                                             \
	SAMPLES_CAPS " ! webrtcdsp name=echo probe=echo-probe gain-control=false "                 \
		     "echo-suppression-level=low noise-suppression-level=low ! "
#define ECHO_PROBE                                                                                 \
	"audioconvert ! audioresample ! " SAMPLES_CAPS " ! webrtcechoprobe name=echo-probe ! "

struct echo;

/*
 * Are the elements there? If not, that is an error if they @must be, else it is said.
 * Return: FALSE: they are not.
 */
gboolean echo_possible(gboolean must, GError **error);
/* The two are in @pipeline, and it does not play yet. */
struct echo *echo_new(GstElement *pipeline);
/* Main loop, every ECHO_TICK_MS. NULL: nothing to do. */
void echo_tick(struct echo *e);
/* After the pipeline has stopped. */
void echo_free(struct echo *e);

#endif /* PAQM_CALL_ECHO_H */
