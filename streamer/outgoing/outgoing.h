/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Outgoing video, the same in `send` and `call`: encoder -> payloader -> repair -> pacer, and
 * what sets their rate. Encoder, controller, carrier of rates and repair are options of it. The
 * owner has the source before it, and rtpbin and sockets behind it.
 *
 * Fields up to the log files are the owner's to fill in before outgoing_elements(). Functions
 * belong to the main loop's thread where nothing else is said.
 */
#ifndef PAQM_STREAMER_OUTGOING_H
#define PAQM_STREAMER_OUTGOING_H

#include <gio/gio.h>
#include <gst/gst.h>
#include <stdio.h>

#include "streamer/encoder/adaptor.h"
#include "streamer/outgoing/advice.h"
#include "streamer/outgoing/choice.h"
#include "streamer/rtp/ecn.h"
#include "streamer/outgoing/rate.h"
#include "streamer/rtp/repair.h"
#include "streamer/rtp/returns.h"
#include "streamer/outgoing/split.h"
#include "streamer/outgoing/trains.h"
#include "streamer/rtp/train.h"

#define OWN_ENCODER "paqmh264enc"
#define OWN_SIDE_MAX 4096 /* of its pictures */
#define OUTGOING_GOP 12	  /* usual; pictures that share a base quantizer */
#define OUTGOING_QP_MIN 4 /* usual */
/*
 * Before outgoing_elements(), behind what gives pictures by the clock: what the encoder is too slow
 * for is left out, the oldest first, instead of being shown late.
 */
#define OUTGOING_QUEUE                                                                             \
	"queue name=newest leaky=downstream max-size-buffers=2 max-size-bytes=0 max-size-time=0"
/* Probes: often until the first answer. */
#define FIRST_PROBES_MS 20

struct outgoing {
	/* options */
	const char *encoder; /* element and its properties; NULL: OWN_ENCODER */
	enum interlace_mode interlace;
	gint gop, qp_min;
	const struct ctl_kind *kind; /* of controller */
	double control[CTL_OPTIONS]; /* its options */
	enum ecn ecn;
	enum carrier carrier;
	struct repair_params repairs; /* with all SSRCs */
	guint64 rate_min, rate_max;   /* bit/s, IP level */
	guint64 advice_min;	      /* what less than that routers may say; 0: rate_min */
	const char *paqmd;	      /* see advice_new() */

	/* the stream */
	guint32 ssrc, ts_offset, nonce; /* @nonce: of carriers; nobody else can know it */
	guint16 first_seq;
	guint headers;		  /* bytes around the payload of each packet */
	GSocket *socket;	  /* the owner's; probes and the train leave by it; may be NULL */
	GInetSocketAddress *dest; /* likewise */
	GInetSocketAddress *from; /* likewise; NULL: as the socket says */
	gboolean wrapped;	  /* routers do not see RTP where they expect it: behind a relay */
	double interval;	  /* of pictures, s; the source's caps correct it */
	double source_interval;	  /* before the controller asked for fewer; 0: not known yet */
	guint start_frame;	  /* the first picture's number in the source's file */
	guint clip_frames;	  /* the file's; 0: no file whose pictures are numbered */
	gint64 first_pts;	  /* of the first picture, running time; -1: not known yet */

	/* what the owner hears */
	void (*begins)(double ms, gboolean told, gpointer data); /* first picture may be coded */
	adaptor_fn group; /* streaming thread: a group has been coded */
	gpointer data;
	FILE *frames_csv, *feedback_csv, *control_csv; /* NULL: not written */

	/* its own from here on */
	GstElement *pipeline;			/* the owner's */
	GstElement *encoders[INTERLACE_PHASES]; /* one, or one per sub-picture */
	int n_encoders;
	GstElement *pay, *pacer, *estimator; /* @estimator: what the controller needs, or NULL */
	struct adaptor *adaptor;	     /* of an encoder that is not ours, or NULL */
	struct split *split;
	struct repair *repair;
	struct rate *rate;
	gint64 wall_offset; /* CLOCK_REALTIME - CLOCK_MONOTONIC */

	struct advice *advice;
	int advice_flow;
	struct ctl_advice daemon; /* newest word of paqmd */
	struct ctl_advice told;	  /* what is in force, of it and of what was returned */
	struct train *train;	  /* until the first picture */
	struct trains *trains;	  /* that the controller measures with, or NULL */
	guint64 granted;	  /* by the controller, bit/s */
	struct ctl_format format; /* and as it wants pictures */
	gint waiting;		  /* atomic: the first picture waits for the first answer */
	gint stopped;		  /* atomic, the owner's: no picture is coded */
	gint sparse;		  /* likewise: only one in so many is; 0: all */

	struct paqm_field field; /* as we send it */
	guint32 fields;		 /* sent so far, with or without supplement */
	guint32 probe_seq;
	guint32 field_ts; /* of the last RTP packet that got one */
	gboolean field_any;
	struct returned returned;
	guint64 advised; /* by it, bit/s; 0: nothing is in force */
	double begin;	 /* monotonic, s */

	/* counted by the streaming thread */
	guint frames, qp, raw;
	guint64 wire_bytes;
	gint64 begun, newest; /* first and last picture that came to the encoder, ns; -1: none */
	double paced;	      /* interval of the pacer, s */

	/* counted before OUTGOING_QUEUE, by the camera's thread */
	gint64 came, came_before; /* us: the newest picture, and the one before */
	gint64 spread_until;	  /* us: when the pacer can have sent what has come */
	gint64 slow_since;	  /* us: left_out counts from here */
	guint left_out;
	gboolean slow_told;
};

/**
 * outgoing_check() - after gst_init(): are encoder and controller possible here?
 *
 * Return: FALSE with @error set, of USAGE_ERROR.
 */
gboolean outgoing_check(struct outgoing *o, GError **error);
/* Elements from encoder to pacer for gst_parse_launch(); free with g_free(). */
char *outgoing_elements(struct outgoing *o);
/* The name of the last of them. */
const char *outgoing_end(const struct outgoing *o);
/* Let these elements work, which are in @pipeline now. */
gboolean outgoing_build(struct outgoing *o, GstElement *pipeline, GError **error);
/* Before the pipeline plays: start the controller, ask paqmd. @bin: rtpbin, session 0 is ours. */
void outgoing_start(struct outgoing *o, GstElement *bin, GObject *session);
/* With paqmd: let routers know of the stream before there is a picture. */
void outgoing_start_train(struct outgoing *o);
/* The owner's socket and addresses are others now. */
void outgoing_move(struct outgoing *o);
/* Every RATE_TICK_MS; probes go with it. */
void outgoing_tick(struct outgoing *o);
/* For people: lines about ECN and repair, each with its end; free with g_free(). */
char *outgoing_summary(const struct outgoing *o);
/* The pipeline has stopped: nothing is heard or told any more. */
void outgoing_stop(struct outgoing *o);
void outgoing_clear(struct outgoing *o);

/* carried.c */
/* The session hears what the receiver returns; packets get fields. */
void carried_watch(struct outgoing *o, GObject *session);
void carried_in(struct outgoing *o, GstElement *pay);
void carried_probe(struct outgoing *o);
gboolean carried_first_probes(gpointer outgoing); /* every FIRST_PROBES_MS, while waiting */

/* follow.c */
void follow_advise(struct outgoing *o);
void follow_rate(guint64 rate, gboolean follows, gpointer outgoing); /* rate_fn */
void follow_format(struct outgoing *o);
/* Every RATE_TICK_MS: the train that the controller wants. */
void follow_trains(struct outgoing *o);
void follow_left(struct outgoing *o, guint64 left);
void follow_register(struct outgoing *o);
/* The first picture may be coded, @ms after the first packet. */
void follow_begin(double ms, gboolean told, gpointer outgoing); /* train_fn */

/* watch.c */
void watch_pictures(struct outgoing *o);
gint64 watch_wall_ns(const struct outgoing *o, GstClockTime running);

#endif /* PAQM_STREAMER_OUTGOING_H */
