/* SPDX-License-Identifier: GPL-2.0 */
/* paqm-streamer send: what its parts share. */
#ifndef PAQM_SEND_H
#define PAQM_SEND_H

#include <gio/gio.h>
#include <gst/gst.h>
#include <stdio.h>

#include "streamer/media/feed.h"
#include "streamer/rtp/guard.h"
#include "streamer/options.h"
#include "streamer/outgoing/outgoing.h"
#include "streamer/media/source.h"

/* The circuit breaker has opened (gate.h). If reports come, but of others, it is tried again after
 * a while.
 */
#define BREAKER_RETRY_S 60

#define SEND_FILE "file" /* of the elements: what decodes --source */
#define SEND_SINK "rtp"	 /* and what sends packets */

struct sender {
	/* options */
	char *to, *source, *rate_max_text, *rate_min_text, *bind, *log_dir, *paqmd, *controller;
	char *ecn_text, *encoder_text, *interlace_text, *carrier, *srtp_key_file;
	gboolean loop_source, no_breaker, reuse_keystream;
	gint start_frame, fps, fec;
	gint64 ssrc, seed;
	gdouble duration;

	GInetSocketAddress *dest;
	GSocket *rtp, *rtcp;
	GstBuffer *srtp_key;

	GMainLoop *main;
	GstElement *pipeline, *bin, *appsrc;
	GObject *session;
	struct guard *guard; /* few reporters get in */
	gboolean paused;     /* by SIGUSR1 */
	gint64 sends_since;  /* us: when it last began to send */
	gint64 retry_at;     /* us: what is heard from then on lets it begin again */
	guint unsent;	     /* packets that this host could not send */
	gint64 unsent_at;    /* us: the last of them */
	int status;

	struct y4m y4m;
	gboolean from_file;
	struct feed *feed;

	struct outgoing out;
	FILE *gop_csv;
};

/* setup.c */
gboolean send_parse(struct sender *s, int argc, char **argv, GError **error);
gboolean send_open_sockets(struct sender *s, GError **error);
gboolean send_open_logs(struct sender *s, GError **error);

/* pipeline.c */
gboolean send_build(struct sender *s, GRand *rand, GError **error);

#endif /* PAQM_SEND_H */
