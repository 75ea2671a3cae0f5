/* SPDX-License-Identifier: GPL-2.0 */
/* ECN field and DSCP of packets that a socket sends, ECN field of those that udpsrc receives. */
#ifndef PAQM_STREAMER_ECN_H
#define PAQM_STREAMER_ECN_H

#include <gio/gio.h>
#include <gst/gst.h>

#include "streamer/rtp/ccfb.h"

/* "off", "ect0", "ect1"; FALSE: another word. */
gboolean ecn_parse(const char *text, enum ecn *ecn);
/* All that the socket sends from now on; its DSCP stays. */
gboolean ecn_send_as(GSocket *socket, enum ecn ecn, GError **error);
/* Likewise; its ECN field stays. */
gboolean dscp_send_as(GSocket *socket, guint dscp, GError **error);
/**
 * ecn_watch() - let ecn_taken() know what arrives
 * @udpsrc: has its socket, and is not yet running
 *
 * Without it all packets count as not ECN-capable, nothing else changes.
 */
void ecn_watch(GstElement *udpsrc, GSocket *socket);
/* In the thread of that udpsrc, once per packet: the field of the packet just received. */
enum ecn ecn_taken(void);

#endif /* PAQM_STREAMER_ECN_H */
