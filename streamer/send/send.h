/* SPDX-License-Identifier: GPL-2.0 */
/* paqm-streamer send: what its parts share. */
#ifndef PAQM_SEND_H
#define PAQM_SEND_H

#include <gio/gio.h>
#include <gst/gst.h>
#include <stdio.h>

#include "streamer/adaptor.h"
#include "streamer/advice.h"
#include "streamer/ecn.h"
#include "streamer/feed.h"
#include "streamer/guard.h"
#include "streamer/options.h"
#include "streamer/rate.h"
#include "streamer/repair.h"
#include "streamer/returns.h"
#include "streamer/source.h"
#include "streamer/split.h"
#include "streamer/train.h"
#include "streamer/wire.h"

#define OWN_ENCODER "paqmh264enc"
/* Probes: often until the first answer. */
#define FIRST_PROBES_MS 20
/* The circuit breaker of RFC 8083: without reports for three of their longest intervals nothing is
 * sent. If there are some, but of others, it is tried again after a while.
 */
#define BREAKER_S 15
#define BREAKER_RETRY_S 60
#define PROBE_BYTES (28 + PAQM_PROBE_LEN)

struct sender {
	/* options */
	char *to, *source, *rate_max_text, *rate_min_text, *bind, *log_dir, *paqmd, *controller;
	char *ecn_text;
	enum ecn ecn;
	gboolean loop_source;
	gint start_frame, gop, qp_min;
	gint64 ssrc, seed;
	gdouble duration;
	guint64 rate_max, rate_min;

	GInetSocketAddress *dest;
	GSocket *rtp, *rtcp;
	guint headers; /* bytes around the payload of each packet */
	guint32 ts_offset;
	gint64 wall_offset; /* CLOCK_REALTIME - CLOCK_MONOTONIC */

	GMainLoop *main;
	GstElement *pipeline, *pacer, *bin, *appsrc;
	GstElement *encoder[INTERLACE_PHASES]; /* one, or one per sub-picture */
	GstElement *pay;
	int encoders;
	GObject *session;
	struct guard *guard; /* few reporters get in */
	gboolean no_breaker;
	gint broken;	    /* atomic: nobody reports, no picture is sent */
	gint64 sends_since; /* us: when it last began to send */
	gint64 retry_at;    /* us: what is heard from then on lets it begin again */
	int status;

	struct y4m y4m;
	gboolean from_file;
	struct feed *feed;
	gint64 first_pts; /* of the first picture, running time */

	char *encoder_text;
	struct adaptor *adaptor; /* of an encoder that is not ours, or NULL */

	const struct ctl_kind *kind;
	struct rate *rate;
	GstElement *estimator; /* what the controller needs, or NULL */
	struct advice *advice;
	int advice_flow;
	struct ctl_advice daemon; /* newest word of paqmd */
	struct train *train;	  /* until the first picture */
	guint16 first_seq;

	struct repair_params repairs;
	gint fec;
	struct repair *repair;
	guint64 granted; /* by the controller, bit/s */

	char *interlace_text;
	enum interlace_mode interlace;
	struct split *split;

	/* rates that travel with the stream */
	char *carrier, *srtp_key_file;
	gboolean reuse_keystream;
	gboolean element; /* within RTP */
	gboolean probes;  /* beside it, all the time */
	GstBuffer *srtp_key;
	struct paqm_field field; /* as we send it */
	guint32 probe_seq;
	guint32 field_ts; /* of the last RTP packet that got one */
	gboolean field_any;
	struct returned returned;
	guint64 advised; /* by it, bit/s; 0: nothing is in force */
	double begin;
	gint waiting; /* atomic: the first picture waits for the first answer */

	FILE *frames_csv, *gop_csv, *feedback_csv, *control_csv;
	/* counted by the streaming thread */
	guint frames;
	guint64 wire_bytes;
	double interval; /* of the source, s */
	double paced;	 /* of the pacer; streaming thread */
};

/* send.c: the last packet has gone out */
GstPadProbeReturn send_on_sink_event(GstPad *pad, GstPadProbeInfo *info, gpointer data);

/* setup.c */
gboolean send_parse(struct sender *s, int argc, char **argv, GError **error);
gboolean send_need_element(const struct ctl_kind *kind, GError **error);
gboolean send_choose_encoder(struct sender *s, GError **error);
gboolean send_open_sockets(struct sender *s, GError **error);
gboolean send_open_logs(struct sender *s, GError **error);

/* pipeline.c */
gboolean send_build(struct sender *s, GRand *rand, GError **error);

/* follow.c */
void send_use_rate(struct sender *s, guint64 left);
void send_apply_rate(guint64 rate, gboolean follows, gpointer data);
void send_advise(struct sender *s);
void send_register_flow(struct sender *s);
/* The first picture may be coded, @ms after the first packet. */
void send_begin_pictures(double ms, gboolean told, gpointer data);
void send_start_train(struct sender *s);

/* carried.c */
void send_on_app(GObject *session, guint subtype, guint ssrc, const char *name, GstBuffer *data,
		 gpointer user);
void send_probe(struct sender *s);
gboolean send_on_first_probes(gpointer data);
GstPadProbeReturn send_on_payload(GstPad *pad, GstPadProbeInfo *info, gpointer data);

/* watch.c */
GstPadProbeReturn send_on_raw_picture(GstPad *pad, GstPadProbeInfo *info, gpointer data);
void send_on_picture(GstElement *enc, const GstStructure *p, gpointer data);
void send_on_group(GstElement *enc, const GstStructure *g, gpointer data);

#endif /* PAQM_SEND_H */
