/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A camera that is switched off: black pictures leave in place of its own, at the same times, so
 * that the stream goes on and its end, the encoder and the routers have nothing to begin anew.
 */
#ifndef PAQM_CALL_SHUTTER_H
#define PAQM_CALL_SHUTTER_H

#include <gst/gst.h>

/* What leaves @pad, raw pictures; @closed (atomic) must live as long as it. */
void shutter_put(GstPad *pad, gint *closed);

#endif /* PAQM_CALL_SHUTTER_H */
