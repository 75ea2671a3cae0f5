/* SPDX-License-Identifier: GPL-2.0 */
/* paqm-streamer recv: what its parts share. */
#ifndef PAQM_RECV_H
#define PAQM_RECV_H

#include <gio/gio.h>
#include <gst/app/gstappsink.h>
#include <gst/gst.h>
#include <stdio.h>

#include "streamer/decide/decide.h"
#include "streamer/media/size.h"
#include "streamer/recv/inbound.h"
#include "streamer/recv/streams.h"
#include "streamer/recv/weave.h"
#include "streamer/rtp/ccfb.h"
#include "streamer/rtp/guard.h"
#include "streamer/rtp/returns.h"
#include "streamer/rtp/rollover.h"
#include "streamer/rtp/xr.h"

struct receiver {
	char *listen, *log_dir, *output;
	gdouble duration;
	gint64 seed;

	GInetSocketAddress *local;
	GSocket *rtp, *rtcp;
	GMainLoop *main;
	GstElement *pipeline;
	struct streams *streams;
	GstElement *decoder; /* of the stream that is played; NULL: none yet, or weave's */
	int status;
	GMutex lock;
	GSocketAddress *peer;	  /* where reports go; NULL until something came */
	gboolean peer_reported;	  /* by the sender; else guessed */
	GInetSocketAddress *from; /* the stream; NULL until it came */

	char *form_text, *feedback_text, *srtp_key_file, *cname;
	enum returns_form form;
	gboolean twcc_only, reuse_keystream;
	gint tell_ecn;	/* atomic: reports are those of RFC 8888 */
	guint64 ntp_ns; /* NTP time less that of monotonic_ns() */
	GstBuffer *srtp_key;
	struct rollover *rollover; /* NULL: no SRTP */
	GObject *session;
	char *controller;
	gboolean rtx, fec;
	struct inbound *inbound;
	struct guard *guard; /* few streams get in */
	char *interlace_text, *size_text;
	enum interlace_mode interlace;
	struct weave *weave;
	GstElement *demux; /* rtpbin's, of streams */
	GstElement *news;  /* what is returned enters the stream of reports here */

	FILE *rx_csv, *decoded_csv, *inbound_csv, *control_csv, *y4m;
	char *y4m_buffer;
	struct xr_window window; /* with the lock */
	guint ticks;
	gint summary_due; /* atomic */
	/* network thread */
	guint64 packets, probes, returned, repairs;
	struct returns returns;
	struct ccfb ccfb;
	guint64 told;
	guint32 media_ssrc;
	GMutex deciding; /* of the next */
	struct dec *dec; /* receiving side of a controller; NULL: none */
	guint ticks_deciding;
	/* jitter buffer thread */
	guint64 rtp_ext; /* extended RTP time stamp */
	gboolean have_ext;
	gint pictures; /* atomic; the decoder's thread counts */
	/* atomic: packets since the last picture, whoever sends them; the newest one's stream */
	gint unshown, newest_ssrc, newest_pt;
	struct {
		gint pictures, packets;
		guint ticks; /* with packets, since the last picture */
		gboolean told;
	} barren;
	struct size size;
};

/* packets.c */
/* Every RATE_TICK_MS: what the receiving side of a controller has to tell, packets or not. */
gboolean recv_on_deciding(gpointer receiver);
/* All that comes and goes by the sockets is looked at; the session is there. */
void recv_watch_packets(struct receiver *r);
/* Reports leave rtpbin here. */
GstFlowReturn recv_on_report(GstAppSink *sink, gpointer receiver);

/* pictures.c */
gboolean recv_pictures(struct receiver *r, GError **error);
GstCaps *recv_on_pt_map(GstElement *bin, guint session, guint pt, gpointer receiver);
/* Main loop, every INBOUND_TICK_MS: says why packets come and no picture does. */
void recv_watch_pictures(struct receiver *r);
/* At the end, which may be before that was due: the same, if there was no picture at all. */
void recv_end_pictures(struct receiver *r);
/* A stream is about to be played; streams_fn. */
gboolean recv_on_take(guint pt, gboolean first, gpointer receiver);

/* pipeline.c */
gboolean recv_build(struct receiver *r, GError **error);
/* Before the pipeline stops: its pads go now, which says nothing about streams. */
void recv_let_go(struct receiver *r);

#endif /* PAQM_RECV_H */
