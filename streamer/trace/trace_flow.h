/* SPDX-License-Identifier: GPL-2.0 */
/* Flows of trace mode's sender, and what they share: pictures of a ladder, or frames of levels.h.
 * Times are CLOCK_MONOTONIC's, ns. */
#ifndef PAQM_TRACE_FLOW_H
#define PAQM_TRACE_FLOW_H

#include <gio/gio.h>
#include <stdio.h>

#include "streamer/control/control.h"
#include "streamer/encoder/rasvbr.h"
#include "streamer/outgoing/advice.h"
#include "streamer/rtp/probe.h"
#include "streamer/rtp/ccfb.h"
#include "streamer/trace/ladder.h"
#include "streamer/trace/levels.h"
#include "streamer/trace/rtph264.h"
#include "streamer/trace/trace.h"

#define TRACE_SENT 2048 /* packets of a flow that are remembered for reports; power of two */
#define Q_REF 31	/* spec: parity with the thesis' quantizer 8 */

/* Packets that wait in a send buffer, at the most; a picture that finds it full is not sent. */
#define TRACE_WAITING 4096

struct trace_sender;

/* A packet that has been cut. */
struct trace_packet {
	struct h264_piece piece;
	guint frame, source, number, of; /* picture, that in the clip; which packet of how many */
	int q;
};

struct trace_flow {
	struct trace_sender *s;
	guint index;
	int rtp, rtcp;
	struct trace_watch watch;
	guint32 ssrc, ts_offset;
	guint16 seq;
	guint64 packets, octets;
	guint64 wire; /* bytes that the controller has not been told of */
	guint ticks;
	gboolean ecn; /* packets are sent as ECN-capable */

	struct trace_sent {
		gint64 at; /* ns */
		guint32 size;
		guint16 seq;
	} * sent;
	struct ccfb_clock clock; /* of its receiver */

	struct ctl *ctl;
	double rate; /* bit/s in force */

	struct ra_state ra;
	struct ra_params ra_params;
	guint gop_number;
	guint gop_first; /* first picture of the group, in the clip */
	int q;

	guint frame;	  /* pictures sent */
	GArray *pieces;	  /* of the picture under way */
	guint piece;	  /* next of them */
	GQueue *waiting;  /* of struct trace_packet: the send buffer; NULL: there is none */
	gint64 drain_ns;  /* when its first may leave */
	gint64 frame_ns;  /* when the picture under way began */
	gint64 step_ns;	  /* from then to the next */
	guint tick;	  /* of an application with levels: frames, those not sent too */
	gint64 report_ns; /* when the next sender report is due */
	gint64 due;	  /* when there is anything to do; NEVER: it has ended */

	struct ctl_train train; /* under way, or the last */
	gboolean in_train, any_train;
	guint8 train_next; /* index of its next packet */
	gint64 train_ns;   /* when it began */

	FILE *tx_csv, *gop_csv, *feedback_csv, *control_csv;
};

struct trace_sender {
	char *to, *ladder_dir, *controller, *log_dir, *paqmd, *rate_max_text, *rate_min_text,
		*ecn_text, *levels;
	gint flows, loops, packet, dscp;
	gdouble duration, spread, beta;
	gint64 seed;
	gboolean burst, a_priori, no_reports;
	guint64 rate_max, rate_min;

	struct ladder ladder;
	const struct levels_app *app; /* instead of the ladder; NULL: none */
	const struct ctl_kind *kind;
	double control[CTL_OPTIONS]; /* its options */
	double decay;		     /* of a send buffer; 0: there is none */
	enum ecn ecn;
	struct ctl_params ctl_params;
	GInetSocketAddress *dest;
	guint headers; /* bytes around the payload of each packet */
	struct trace_flow flow[TRACE_FLOWS_MAX];
	guint64 *open_bits; /* of each group at the reference quantizer */
	GRand *rand;
	struct trace_loop loop;
	/* Advice comes in a thread of its own, which alone runs GLib's main loop. */
	GMainLoop *hearing;
	struct advice *advice; /* NULL: none is wanted */
	GMutex lock;	       /* of the controllers */
	gint64 interval_ns, begin_ns, tick_ns;
	gint64 wall_offset; /* CLOCK_REALTIME - CLOCK_MONOTONIC */
	guint running;
	guint64 refused; /* packets that the kernel did not take */
	int status;
};

gboolean trace_flow_open(struct trace_sender *s, guint index, GError **error);
/* Its first picture is due now, or later at random; paqmd is told of it. */
void trace_flow_start(struct trace_flow *f);
/* With the lock: tell the controller what was sent, use the rate that it grants. */
void trace_flow_tick(struct trace_flow *f, gint64 now);
/* trace_heard.c: with the lock: a datagram on the port of RTCP. */
void trace_flow_hear(struct trace_flow *f, const guint8 *packet, gsize len, gint64 now);
/* With the lock: everything of a flow that is due. */
void trace_flow_serve(struct trace_flow *f, gint64 now);
void trace_flow_end(struct trace_flow *f);
/* FALSE: a log is not whole. */
gboolean trace_flow_close(struct trace_flow *f);

#endif /* PAQM_TRACE_FLOW_H */
