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

#include "streamer/carry.h"
#include "streamer/gstpaqmh264enc.h"
#include "streamer/gstpaqmpacer.h"
#include "streamer/send/send.h"

/* ECN that the path does not treat as it should is not used (RFC 6679 section 7.2). */
static void check_ecn(struct sender *s)
{
	const char *fault = s->ecn != ECN_NOT_ECT ? rate_ecn_fault(s->rate) : NULL;

	if (!fault)
		return;
	g_printerr("paqm-streamer: ECN is off from now on: %s\n", fault);
	s->ecn = ECN_NOT_ECT;
	ecn_send_as(s->rtp, s->ecn, NULL);
}

/* What nobody receives must not load the path for ever. */
static void check_breaker(struct sender *s)
{
	gint64 now = guard_now(s->guard), heard = guard_heard(s->guard);

	if (s->broken) {
		if (heard <= s->retry_at)
			return;
		g_printerr("paqm-streamer: there are reports: pictures are sent again\n");
		s->sends_since = now;
		g_atomic_int_set(&s->broken, 0);
		return;
	}
	if (now - MAX(guard_reported(s->guard), s->sends_since) < BREAKER_S * G_USEC_PER_SEC)
		return;
	s->retry_at = now;
	if (now - heard < BREAKER_S * G_USEC_PER_SEC)
		s->retry_at += BREAKER_RETRY_S * G_USEC_PER_SEC;
	g_printerr(
		"paqm-streamer: no report on the stream for %d s: no picture is sent until there "
		"are reports; is a receiver there, and port %u of this host open for its RTCP? "
		"--no-breaker sends on\n",
		BREAKER_S, socket_port(s->rtcp));
	g_atomic_int_set(&s->broken, 1);
}

static gboolean on_tick(gpointer data)
{
	struct sender *s = data;
	guint64 bytes, left;

	g_object_get(s->pacer, "wire-bytes", &bytes, NULL);
	rate_sent(s->rate, bytes);
	if (s->advised && !returned_rate(&s->returned, (guint64)monotonic_ns()))
		send_advise(s);
	guard_tick(s->guard, RATE_TICK_MS);
	if (!s->no_breaker)
		check_breaker(s);
	if (s->probes && !g_atomic_int_get(&s->waiting) && !s->broken)
		send_probe(s);
	rate_tick(s->rate);
	check_ecn(s);
	if (s->repair && repair_tick(s->repair, s->granted, s->control_csv, &left))
		send_use_rate(s, left);
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
		for (int k = 0; k < s->encoders; k++) {
			GstPad *pad = gst_element_get_static_pad(s->encoder[k], "sink");

			gst_pad_send_event(pad, gst_event_new_eos());
			gst_object_unref(pad);
		}
	}
	return G_SOURCE_CONTINUE;
}

static GstBuffer *feed_picture(guint64 n, gpointer data)
{
	struct sender *s = data;

	return y4m_frame(&s->y4m, (guint)((s->start_frame + n) % s->y4m.frames));
}

static void start_feed(struct sender *s)
{
	guint64 count = s->duration > 0 ? (guint64)(s->duration / s->interval + 0.5) : G_MAXUINT64;
	GstClockTime begin = (GstClockTime)g_get_monotonic_time() * 1000;

	if (!s->loop_source)
		count = MIN(count, s->y4m.frames - (guint64)s->start_frame);
	/* though that picture may come too late */
	s->first_pts = (gint64)(begin - gst_element_get_base_time(s->pipeline));
	s->feed = feed_start(s->appsrc, (guint64)s->y4m.fps_d, (guint64)s->y4m.fps_n, begin, count,
			     feed_picture, s);
}

static gboolean quit(gpointer data)
{
	g_main_loop_quit(((struct sender *)data)->main);
	return G_SOURCE_REMOVE;
}

/* The last packet has gone out. */
GstPadProbeReturn send_on_sink_event(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	(void)pad;
	if (GST_EVENT_TYPE(GST_PAD_PROBE_INFO_EVENT(info)) == GST_EVENT_EOS)
		g_idle_add(quit, data);
	return GST_PAD_PROBE_OK;
}

static gboolean on_message(GstBus *bus, GstMessage *msg, gpointer data)
{
	struct sender *s = data;

	(void)bus;
	if (GST_MESSAGE_TYPE(msg) == GST_MESSAGE_ERROR) {
		GError *error = NULL;
		char *debug = NULL;

		gst_message_parse_error(msg, &error, &debug);
		g_printerr("paqm-streamer: %s: %s\n", GST_OBJECT_NAME(msg->src), error->message);
		g_debug("%s", debug);
		g_error_free(error);
		g_free(debug);
		s->status = EXIT_RUN;
		g_main_loop_quit(s->main);
	}
	return G_SOURCE_CONTINUE;
}

static void run(struct sender *s)
{
	guint tick, sigint, sigterm, timer = 0, first = 0, watch;
	GstBus *bus = gst_element_get_bus(s->pipeline);
	struct ctl_params limits = {.rate_min = (double)s->rate_min,
				    .rate_max = (double)s->rate_max,
				    .packet = WIRE_PACKET,
				    .ecn = s->ecn == ECN_ECT0	? CTL_ECN_CLASSIC
					   : s->ecn == ECN_ECT1 ? CTL_ECN_SCALABLE
								: CTL_ECN_NONE};
	struct ctl_ecn_seen marks;
	char *repairs = NULL, *refused;
	GstPad *before, *after;

	s->main = g_main_loop_new(NULL, FALSE);
	watch = gst_bus_add_watch(bus, on_message, s);
	s->wall_offset = realtime_ns() - monotonic_ns();
	s->rate = rate_new(s->kind, &limits, s->control_csv, send_apply_rate, s);
	before = gst_element_get_static_pad(s->bin, "send_rtp_sink_0");
	rate_watch(s->rate, before, s->session, (guint32)s->ssrc, s->headers, s->estimator);
	gst_object_unref(before);
	after = gst_element_get_static_pad(s->bin, "send_rtp_src_0");
	rate_hear(s->rate, after);
	gst_object_unref(after);
	send_register_flow(s);
	sigint = g_unix_signal_add(SIGINT, on_stop, s);
	sigterm = g_unix_signal_add(SIGTERM, on_stop, s);
	tick = g_timeout_add(RATE_TICK_MS, on_tick, s);
	s->begin = monotonic_ns() / 1e9;
	s->sends_since = guard_now(s->guard);
	if (s->waiting)
		first = g_timeout_add(FIRST_PROBES_MS, send_on_first_probes, s);
	send_start_train(s);
	if (gst_element_set_state(s->pipeline, GST_STATE_PLAYING) == GST_STATE_CHANGE_FAILURE) {
		s->status = EXIT_RUN;
		g_idle_add(quit, s);
	} else if (s->from_file) {
		gst_element_get_state(s->pipeline, NULL, NULL, GST_CLOCK_TIME_NONE);
		start_feed(s);
	} else if (s->duration > 0) {
		timer = g_timeout_add((guint)(s->duration * 1000), on_stop, s);
	}
	g_main_loop_run(s->main);

	feed_stop(s->feed);
	s->feed = NULL;
	gst_element_set_state(s->pipeline, GST_STATE_NULL);
	if (timer)
		g_source_remove(timer);
	if (first)
		g_source_remove(first);
	g_source_remove(tick);
	g_source_remove(sigint);
	g_source_remove(sigterm);
	g_source_remove(watch);
	train_free(s->train);
	s->train = NULL;
	advice_free(s->advice);
	s->advice = NULL;
	marks = *rate_ecn_seen(s->rate);
	rate_free(s->rate);
	s->rate = NULL;
	if (s->repair) {
		repairs = repair_summary(s->repair);
		repair_free(s->repair);
		s->repair = NULL;
	}
	/* Status messages of the last group may still be queued. */
	while (g_main_context_iteration(NULL, FALSE))
		;
	gst_object_unref(bus);
	printf("sent %u pictures, %.0f kbit/s on the wire\n", s->frames,
	       s->frames ? s->wire_bytes * 8 / (s->frames * s->interval) / 1000 : 0.0);
	if (limits.ecn != CTL_ECN_NONE)
		printf("ECN: %" G_GUINT64_FORMAT " packets came back marked, %" G_GUINT64_FORMAT
		       " not\n",
		       marks.ce, marks.ect);
	if (repairs)
		printf("%s\n", repairs);
	g_free(repairs);
	refused = guard_summary(s->guard);
	if (refused)
		printf("%s\n", refused);
	g_free(refused);
}

int cmd_send(int argc, char **argv)
{
	struct sender s = {.gop = 12,
			   .qp_min = 4,
			   .ssrc = -1,
			   .seed = -1,
			   .first_pts = -1,
			   .interval = 1.0 / 24};
	GError *error = NULL;
	GRand *rand = NULL;

	g_set_prgname("paqm-streamer send");
	if (!send_parse(&s, argc, argv, &error))
		goto out;
	/* rtpbin draws names and intervals from GLib's generator. */
	if (s.seed >= 0)
		g_random_set_seed((guint32)s.seed);
	rand = s.seed >= 0 ? g_rand_new_with_seed((guint32)s.seed) : g_rand_new();
	if (s.ssrc < 0)
		s.ssrc = g_rand_int(rand);
	gst_init(NULL, NULL);
	gst_paqm_h264_enc_register(NULL);
	gst_paqm_pacer_register(NULL);
	if (s.srtp_key_file && !(s.srtp_key = carry_key(s.srtp_key_file, &error)))
		goto out;
	if (!send_need_element(s.kind, &error) || !send_choose_encoder(&s, &error) ||
	    !send_open_sockets(&s, &error) || !send_open_logs(&s, &error) ||
	    !send_build(&s, rand, &error))
		goto out;
	printf("sending to %s from port %u, SSRC %u, %.0f to %.0f kbit/s\n", s.to,
	       socket_port(s.rtp), (guint32)s.ssrc, s.rate_min / 1e3, s.rate_max / 1e3);
	fflush(stdout);
	run(&s);
out:
	if (error)
		s.status = report_error(error);
	if (!close_log(s.control_csv, "control.csv") | !close_log(s.frames_csv, "frames.csv") |
	    !close_log(s.gop_csv, "gop.csv") | !close_log(s.feedback_csv, "feedback.csv"))
		s.status = EXIT_RUN;
	if (rand)
		g_rand_free(rand);
	g_clear_object(&s.session);
	gst_clear_object(&s.appsrc);
	for (int k = 0; k < INTERLACE_PHASES; k++)
		gst_clear_object(&s.encoder[k]);
	gst_clear_object(&s.estimator);
	repair_free(s.repair);
	gst_clear_object(&s.pacer);
	gst_clear_object(&s.pay);
	gst_clear_object(&s.bin);
	gst_clear_object(&s.pipeline);
	guard_free(s.guard);
	if (s.main)
		g_main_loop_unref(s.main);
	g_clear_object(&s.rtp);
	g_clear_object(&s.rtcp);
	g_clear_object(&s.dest);
	adaptor_free(s.adaptor);
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
	split_free(s.split);
	gst_clear_buffer(&s.srtp_key);
	return s.status;
}
