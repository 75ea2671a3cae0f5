/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Probes beside the peer's pictures, into which routers write its rate (docs/protocol.md, section
 * 4a): they are taken out before anything else sees them, and their newest rate is returned with
 * the next report. Whose probes these are their nonce tells, which the peer has told over TLS.
 */
#ifndef PAQM_CALL_CARRIAGE_H
#define PAQM_CALL_CARRIAGE_H

#include <gst/gst.h>

struct carriage;

/**
 * carriage_new() - before the pipeline runs, and before other probes of the pad
 * @src: where packets come in
 * @session: rtpbin's RTPSession, which makes the reports
 * @nonce: of the peer's probes
 */
struct carriage *carriage_new(GstElement *src, GObject *session, guint32 nonce);
/* After the pipeline has stopped. */
void carriage_free(struct carriage *c);

#endif /* PAQM_CALL_CARRIAGE_H */
