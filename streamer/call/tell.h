/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a call tells the peer about the pictures that come from it: which packets, with which ECN
 * field (RFC 8888), and what the receiving side of a controller has to say (decide/decide.h).
 */
#ifndef PAQM_CALL_TELL_H
#define PAQM_CALL_TELL_H

#include <gio/gio.h>
#include <gst/gst.h>

#include "streamer/control/control.h"

struct call_tell;

/**
 * call_tell_new() - before the pipeline runs
 * @src: where packets come in; it is not yet running
 * @socket: its, if it is udpsrc; NULL: ECN fields of packets are not known
 * @ipv6: they come in it
 * @session: rtpbin's RTPSession, which makes the reports
 * @ssrc: of the peer's stream
 * @pt: its payload type
 * @kind: our controller; that of the peer, if both are to be of use to each other
 * @option: its options
 */
struct call_tell *call_tell_new(GstElement *src, GSocket *socket, gboolean ipv6, GObject *session,
				guint32 ssrc, guint pt, const struct ctl_kind *kind,
				const double option[CTL_OPTIONS]);
void call_tell_free(struct call_tell *t);

#endif /* PAQM_CALL_TELL_H */
