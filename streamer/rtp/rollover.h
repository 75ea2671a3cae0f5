/* SPDX-License-Identifier: GPL-2.0 */
/*
 * SRTP of streams that may have begun long ago. Packets are encrypted and signed with their number,
 * of which they carry the lower 16 bits only; how often these have begun anew (the rollover
 * counter, RFC 3711 section 3.3.1) srtpdec takes for 0 with the first packet that it sees. Packets
 * of RTCP carry all of theirs, so sender reports can be read, and tell how many packets there were.
 */
#ifndef PAQM_STREAMER_ROLLOVER_H
#define PAQM_STREAMER_ROLLOVER_H

#include <gst/gst.h>

struct rollover;

/* Let srtpdec use this key, for all streams. */
struct rollover *rollover_new(GstElement *srtpdec, GstBuffer *key);
/* Any thread: has a packet of this stream been authentic? */
gboolean rollover_proven(struct rollover *r, guint32 ssrc);
/* Any thread: nothing is kept of a stream. */
void rollover_leave(struct rollover *r, guint32 ssrc);
/* After the pipeline has stopped. */
void rollover_free(struct rollover *r);

#endif /* PAQM_STREAMER_ROLLOVER_H */
