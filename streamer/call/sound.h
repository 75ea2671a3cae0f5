/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Losses of a call's sound. With Opus' in-band FEC (RFC 6716 section 2.1.7) a packet has, beside
 * its own 20 ms, a coarse copy of the 20 ms before: who lost those plays the copy, all else is
 * concealed. The encoder takes the copy out of its own rate, and only if the peer's reports tell of
 * losses and the peer uses it.
 */
#ifndef PAQM_CALL_SOUND_H
#define PAQM_CALL_SOUND_H

#include <gst/gst.h>

#include "streamer/rtp/losses.h"

/* Pieces that came not: had from the next one, or concealed. */
struct sound_stats {
	guint64 lost, repaired;
};

/* What comes. */
struct sound_in {
	GMutex lock;
	guint missing; /* pieces before the next one */
	struct sound_stats stats;
};

/**
 * sound_watch() - count what is lost
 * @decoder: opusdec; what it gets is looked at
 */
void sound_watch(struct sound_in *in, GstElement *decoder);
void sound_stats(struct sound_in *in, struct sound_stats *stats);

/* Does a packet have a copy of what was before it? RFC 6716 sections 3.1 and 4.2.4. */
gboolean sound_has_copy(const guint8 *packet, gsize len);

#endif /* PAQM_CALL_SOUND_H */
