// SPDX-License-Identifier: GPL-2.0
/*
 * paqm-streamer send: source -> paqmh264enc (or another encoder, adaptor.c) ->
 * payloader -> paqmpacer -> rtpbin -> udpsink. The rate comes from a controller (control/), which
 * hears paqmd, what the peer returns of rates that travel with the stream, and the peer's reports;
 * it reaches the encoder at its next picture. The pacer stands before rtpbin, which notes when each
 * packet has left.
 */
#include <glib-unix.h>
#include <gst/app/gstappsrc.h>
#include <string.h>

#include "streamer/rtp/carry.h"
#include "streamer/encoder/encoded.h"
#include "streamer/gst/gstpaqmh264enc.h"
#include "streamer/gst/gstpaqmpacer.h"
#include "streamer/media/parts.h"
#include "streamer/rtp/wire.h"
#include "streamer/send/state.h"

#define UNSENT_REST_S 5 /* so long all could be sent, then it is news again */

/* What nobody receives must not load the path for ever. */
static void check_breaker(struct sender *s)
{
	gint64 now = guard_now(s->guard), heard = guard_heard(s->guard);

	if (s->paused)
		return; /* nobody reports on what is not sent */
	if (s->out.stopped) {
		if (heard <= s->retry_at)
			return;
		g_printerr("paqm-streamer: reports arrive again: sending pictures\n");
		s->sends_since = now;
		g_atomic_int_set(&s->out.stopped, 0);
		return;
	}
	if (now - MAX(guard_reported(s->guard), s->sends_since) < BREAKER_S * G_USEC_PER_SEC)
		return;
	s->retry_at = now;
	if (now - heard < BREAKER_S * G_USEC_PER_SEC)
		s->retry_at += BREAKER_RETRY_S * G_USEC_PER_SEC;
	g_printerr("paqm-streamer: no report on the stream for %d s: sending no pictures until "
		   "reports "
		   "arrive; is there a receiver, and is port %u of this host open for its RTCP? "
		   "--no-breaker keeps sending\n",
		   BREAKER_S, socket_port(s->rtcp));
	g_atomic_int_set(&s->out.stopped, 1);
}

static gboolean on_tick(gpointer data)
{
	struct sender *s = data;

	guard_tick(s->guard, RATE_TICK_MS);
	if (!s->no_breaker)
		check_breaker(s);
	outgoing_tick(&s->out);
	return G_SOURCE_CONTINUE;
}

/* SIGUSR1: no picture is sent until the next one; reports, advice and the controller go on. */
static gboolean on_pause(gpointer data)
{
	struct sender *s = data;

	s->paused = !s->paused;
	s->sends_since = guard_now(s->guard);
	g_atomic_int_set(&s->out.stopped, s->paused);
	return G_SOURCE_CONTINUE;
}

static gboolean on_stop(gpointer data)
{
	struct sender *s = data;

	if (s->from_file) {
		feed_stop(s->feed);
		s->feed = NULL;
		gst_app_src_end_of_stream(GST_APP_SRC(s->appsrc));
	} else {
		/* Not at the source: its queues would have to run dry first. */
		for (int k = 0; k < s->out.n_encoders; k++) {
			GstPad *pad = gst_element_get_static_pad(s->out.encoders[k], "sink");

			gst_pad_send_event(pad, gst_event_new_eos());
			gst_object_unref(pad);
		}
	}
	return G_SOURCE_CONTINUE;
}

static GstBuffer *feed_picture(guint64 n, gpointer data)
{
	struct sender *s = data;

	return y4m_frame(&s->y4m, (guint)((s->out.start_frame + n) % s->y4m.frames));
}

static void start_feed(struct sender *s)
{
	guint64 count =
		s->duration > 0 ? (guint64)(s->duration / s->out.interval + 0.5) : G_MAXUINT64;
	GstClockTime begin = (GstClockTime)g_get_monotonic_time() * 1000;

	if (!s->loop_source)
		count = MIN(count, s->y4m.frames - s->out.start_frame);
	/* though that picture may come too late */
	s->out.first_pts = (gint64)(begin - gst_element_get_base_time(s->pipeline));
	s->feed = feed_start(s->appsrc, (guint64)s->y4m.fps_d, (guint64)s->y4m.fps_n, begin, count,
			     feed_picture, s);
}

static void on_begin(double ms, gboolean told, gpointer data)
{
	struct sender *s = data;

	printf("begins %.0f ms after its first packet, %s, at %.0f kbit/s\n", ms,
	       told ? "told by a router" : "no advice", s->out.granted / 1e3);
	fflush(stdout);
}

struct status {
	struct outgoing *out;
	guint64 wire_bps;
	guint gop, qp;
};

static gboolean send_status(gpointer data)
{
	struct status *st = data;

	if (st->out->advice)
		advice_status(st->out->advice, st->out->advice_flow, st->wire_bps, st->gop, st->qp);
	g_free(st);
	return G_SOURCE_REMOVE;
}

/* Streaming thread. */
static void on_group(GstElement *enc, const GstStructure *g, gpointer data)
{
	struct sender *s = data;
	struct outgoing *o = &s->out;
	struct status *st;
	guint64 pts = 0;
	int frames = 0, qp = 0;
	double bits = 0;
	guint gop = 0;

	gst_structure_get(g, "pts", G_TYPE_UINT64, &pts, "gop", G_TYPE_UINT, &gop, "frames",
			  G_TYPE_INT, &frames, "qp-base", G_TYPE_INT, &qp, "R", G_TYPE_DOUBLE,
			  &bits, NULL);
	if (!o->adaptor)
		encoded_group_log(s->gop_csv, g, watch_wall_ns(o, pts));
	if (enc != o->encoders[0])
		return; /* the first speaks for all of equal part */
	bits *= o->n_encoders;
	st = g_new(struct status, 1);
	*st = (struct status){o, (guint64)(bits / (frames * o->interval)), gop, (guint)qp};
	g_idle_add(send_status, st);
}

static gboolean quit(gpointer data)
{
	g_main_loop_quit(((struct sender *)data)->main);
	return G_SOURCE_REMOVE;
}

/* This host cannot send: it has no way there, or may not. It may have one again at any time. */
static void tell_unsent(struct sender *s, GstMessage *msg)
{
	gint64 now = g_get_monotonic_time();
	char *debug = NULL, *why;

	if (msg->src != GST_OBJECT(part_of(s->pipeline, SEND_SINK)))
		return;
	if (!s->unsent || now - s->unsent_at > UNSENT_REST_S * G_USEC_PER_SEC) {
		gst_message_parse_warning(msg, NULL, &debug);
		why = debug ? strrchr(debug, ':') : NULL; /* behind file, line and client */
		g_printerr("paqm-streamer: packets to %s cannot be sent%s; going on, trying "
			   "again\n",
			   s->to, why ? why : "");
		g_free(debug);
	}
	s->unsent++;
	s->unsent_at = now;
}

static gboolean on_message(GstBus *bus, GstMessage *msg, gpointer data)
{
	struct sender *s = data;

	(void)bus;
	if (GST_MESSAGE_TYPE(msg) == GST_MESSAGE_ERROR) {
		GstElement *file = part_of(s->pipeline, SEND_FILE);
		GError *error = NULL;
		char *debug = NULL;

		gst_message_parse_error(msg, &error, &debug);
		g_printerr("paqm-streamer: %s: %s\n",
			   (file && gst_object_has_as_ancestor(msg->src, GST_OBJECT(file))) ||
					   msg->src == GST_OBJECT(s->appsrc)
				   ? s->source
				   : GST_OBJECT_NAME(msg->src),
			   error->message);
		g_debug("%s", debug);
		g_error_free(error);
		g_free(debug);
		s->status = EXIT_RUN;
		g_main_loop_quit(s->main);
	} else if (GST_MESSAGE_TYPE(msg) == GST_MESSAGE_WARNING) {
		tell_unsent(s, msg);
	}
	return G_SOURCE_CONTINUE;
}

/* s, of pictures that were left out, too. */
static double sent_for(const struct outgoing *o)
{
	return (double)(o->newest - o->begun) / GST_SECOND + o->interval;
}

static void run(struct sender *s)
{
	guint tick, sigint, sigterm, sigusr1, timer = 0, first = 0, watch;
	GstBus *bus = gst_element_get_bus(s->pipeline);
	char *summary, *refused;
	GstPad *after;

	s->main = g_main_loop_new(NULL, FALSE);
	watch = gst_bus_add_watch(bus, on_message, s);
	outgoing_start(&s->out, s->bin, s->session);
	after = gst_element_get_static_pad(s->bin, "send_rtp_src_0");
	rate_hear(s->out.rate, after, wire_below(s->out.headers));
	gst_object_unref(after);
	sigint = g_unix_signal_add(SIGINT, on_stop, s);
	sigterm = g_unix_signal_add(SIGTERM, on_stop, s);
	sigusr1 = g_unix_signal_add(SIGUSR1, on_pause, s);
	tick = g_timeout_add(RATE_TICK_MS, on_tick, s);
	s->sends_since = guard_now(s->guard);
	if (s->out.waiting)
		first = g_timeout_add(FIRST_PROBES_MS, carried_first_probes, &s->out);
	outgoing_start_train(&s->out);
	if (gst_element_set_state(s->pipeline, GST_STATE_PLAYING) == GST_STATE_CHANGE_FAILURE) {
		s->status = EXIT_RUN;
		g_idle_add(quit, s);
	} else if (s->from_file) {
		gst_element_get_state(s->pipeline, NULL, NULL, GST_CLOCK_TIME_NONE);
		start_feed(s);
	} else if (s->duration > 0) {
		/* none at all would leave no time for quit() */
		timer = g_timeout_add(MAX(1, (guint)(s->duration * 1000)), on_stop, s);
	}
	g_main_loop_run(s->main);

	feed_stop(s->feed);
	s->feed = NULL;
	part_stop(s->pipeline);
	if (timer)
		g_source_remove(timer);
	if (first)
		g_source_remove(first);
	g_source_remove(tick);
	g_source_remove(sigint);
	g_source_remove(sigterm);
	g_source_remove(sigusr1);
	g_source_remove(watch);
	summary = outgoing_summary(&s->out);
	outgoing_stop(&s->out);
	/* Status messages of the last group may still be queued. */
	while (g_main_context_iteration(NULL, FALSE))
		;
	gst_object_unref(bus);
	printf("sent %u pictures, %.0f kbit/s on the wire\n%s", s->out.frames,
	       s->out.frames ? s->out.wire_bytes * 8 / sent_for(&s->out) / 1000 : 0.0, summary);
	g_free(summary);
	if (s->unsent)
		printf("%u packets could not be sent\n", s->unsent);
	refused = guard_summary(s->guard);
	if (refused)
		printf("%s\n", refused);
	g_free(refused);
}

int cmd_send(int argc, char **argv)
{
	struct sender s = {.ssrc = -1,
			   .seed = SEED_NONE,
			   .fps = 24,
			   .out = {.gop = OUTGOING_GOP,
				   .qp_min = OUTGOING_QP_MIN,
				   .first_pts = -1,
				   .begins = on_begin,
				   .group = on_group,
				   .data = &s}};
	GError *error = NULL;
	GRand *rand = NULL;
	gboolean named;
	char *host;

	g_set_prgname("paqm-streamer send");
	if (!send_parse(&s, argc, argv, &error))
		goto out;
	/* rtpbin draws names and intervals from GLib's generator. */
	if (s.seed >= 0)
		g_random_set_seed((guint32)s.seed);
	rand = s.seed >= 0 ? g_rand_new_with_seed((guint32)s.seed) : g_rand_new();
	s.out.ssrc = s.ssrc < 0 ? g_rand_int(rand) : (guint32)s.ssrc;
	gst_init(NULL, NULL);
	gst_paqm_h264_enc_register(NULL);
	gst_paqm_pacer_register(NULL);
	if (s.srtp_key_file && !(s.srtp_key = carry_key(s.srtp_key_file, &error)))
		goto out;
	if (!outgoing_check(&s.out, &error) || !send_open_sockets(&s, &error) ||
	    !send_open_logs(&s, &error) || !send_build(&s, rand, &error))
		goto out;
	host = address_host(s.dest);
	named = !strstr(s.to, host); /* which of its addresses it is, is not to be guessed */
	printf("sending to %s%s%s%s from port %u, SSRC %u, %.0f to %.0f kbit/s\n", s.to,
	       named ? " (" : "", named ? host : "", named ? ")" : "", socket_port(s.rtp),
	       s.out.ssrc, s.out.rate_min / 1e3, s.out.rate_max / 1e3);
	g_free(host);
	fflush(stdout);
	run(&s);
out:
	if (error)
		s.status = report_error(error);
	if (!close_log(s.out.control_csv, "control.csv") |
	    !close_log(s.out.frames_csv, "frames.csv") | !close_log(s.gop_csv, "gop.csv") |
	    !close_log(s.out.feedback_csv, "feedback.csv"))
		s.status = EXIT_RUN;
	if (rand)
		g_rand_free(rand);
	g_clear_object(&s.session);
	gst_clear_object(&s.appsrc);
	outgoing_clear(&s.out);
	gst_clear_object(&s.bin);
	gst_clear_object(&s.pipeline);
	guard_free(s.guard);
	if (s.main)
		g_main_loop_unref(s.main);
	g_clear_object(&s.rtp);
	g_clear_object(&s.rtcp);
	g_clear_object(&s.dest);
	y4m_close(&s.y4m);
	g_free(s.to);
	g_free(s.source);
	g_free(s.rate_max_text);
	g_free(s.rate_min_text);
	g_free(s.bind);
	g_free(s.log_dir);
	g_free(s.paqmd);
	g_free(s.controller);
	g_free(s.ecn_text);
	g_free(s.encoder_text);
	g_free(s.carrier);
	g_free(s.srtp_key_file);
	g_free(s.interlace_text);
	gst_clear_buffer(&s.srtp_key);
	return s.status;
}
