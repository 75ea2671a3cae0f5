// SPDX-License-Identifier: GPL-2.0
/*
 * paqm-streamer recv: udpsrc -> rtpbin -> rtph264depay -> avdec_h264 -> y4m, or
 * what another payload type wants in their place (adaptor.c). Of several streams
 * one is played (streams.c). Every RTP packet of it is logged as it arrives, every
 * decoded picture as it comes out of the decoder. Receiver reports go back on the RTCP port, and
 * with them what routers have written into the stream.
 */
#include <errno.h>
#include <glib-unix.h>
#include <string.h>

#include "streamer/options.h"
#include "streamer/outgoing/choice.h"
#include "streamer/outgoing/rate.h"
#include "streamer/recv/state.h"
#include "streamer/rtp/carry.h"

#define SUMMARY_TICKS 5	     /* a second */
#define Y4M_BUFFER (1 << 20) /* pictures are written together: one system call for three */

static gboolean on_message(GstBus *bus, GstMessage *msg, gpointer data)
{
	struct receiver *r = data;

	(void)bus;
	if (GST_MESSAGE_TYPE(msg) == GST_MESSAGE_ERROR) {
		GError *error = NULL;

		gst_message_parse_error(msg, &error, NULL);
		g_printerr("paqm-streamer: %s: %s\n", GST_OBJECT_NAME(msg->src), error->message);
		g_error_free(error);
		r->status = EXIT_RUN;
		g_main_loop_quit(r->main);
	}
	return G_SOURCE_CONTINUE;
}

static gboolean on_tick(gpointer data)
{
	struct receiver *r = data;

	guard_tick(r->guard, INBOUND_TICK_MS);
	inbound_tick(r->inbound, r->inbound_csv);
	streams_tick(r->streams, (guint)g_atomic_int_get(&r->pictures));
	recv_watch_pictures(r);
	/* who has begun to play since the last tick has been heard, and keeps its place by that */
	guard_keep(r->guard, streams_played(r->streams));
	if (++r->ticks % SUMMARY_TICKS == 0)
		g_atomic_int_set(&r->summary_due, TRUE);
	return G_SOURCE_CONTINUE;
}

static gboolean on_stop(gpointer data)
{
	g_main_loop_quit(((struct receiver *)data)->main);
	return G_SOURCE_CONTINUE;
}

static gboolean parse(struct receiver *r, int argc, char **argv, GError **error)
{
	GOptionEntry entries[] = {
		{"listen", 0, 0, G_OPTION_ARG_STRING, &r->listen, "Where to listen; RTCP on PORT+1",
		 "ADDR:PORT"},
		{"output", 0, 0, G_OPTION_ARG_FILENAME, &r->output,
		 "Write the decoded pictures to FILE", "FILE.y4m"},
		{"log", 0, 0, G_OPTION_ARG_FILENAME, &r->log_dir,
		 "Write rx.csv, decoded.csv, inbound.csv and control.csv to DIR", "DIR"},
		{"duration", 0, 0, G_OPTION_ARG_DOUBLE, &r->duration, "Stop after S seconds", "S"},
		{"return", 0, 0, G_OPTION_ARG_STRING, &r->form_text,
		 "Return what routers wrote as RTCP APP (app), or as TMMBR or REMB as well",
		 "app|tmmbr|remb"},
		{"feedback", 0, 0, G_OPTION_ARG_STRING, &r->feedback_text,
		 "Per-packet feedback: RFC 8888, transport-wide (twcc), or this until the first "
		 "ECN-capable packet, then the former, and both where packets are reordered "
		 "(auto, default)",
		 "auto|rfc8888|twcc"},
		{"controller", 0, 0, G_OPTION_ARG_STRING, &r->controller,
		 "The sender's controller and options, if the receiver takes part in it",
		 "NAME[:OPTION=VALUE,...]"},
		{"size", 0, 0, G_OPTION_ARG_STRING, &r->size_text,
		 "Scale all pictures to this size (the first one's)", "WIDTHxHEIGHT"},
		{"interlace", 0, 0, G_OPTION_ARG_STRING, &r->interlace_text,
		 "Join the parts of pictures that a sender with the same option codes separately",
		 "rows|checkerboard|quarters"},
		{"rtx", 0, 0, G_OPTION_ARG_NONE, &r->rtx, "Request retransmission of lost packets",
		 NULL},
		{"fec", 0, 0, G_OPTION_ARG_NONE, &r->fec,
		 "Use the forward error correction of a sender with --fec", NULL},
		{"srtp-key", 0, 0, G_OPTION_ARG_FILENAME, &r->srtp_key_file,
		 "Decrypt with the key in FILE, 60 hexadecimal digits", "FILE"},
		{"reuse-keystream", 0, 0, G_OPTION_ARG_NONE, &r->reuse_keystream,
		 "Unsafe, for tests: allow --srtp-key with --seed", NULL},
		{"seed", 0, 0, G_OPTION_ARG_INT64, &r->seed, "Seed of all random choices", "N"},
		{0},
	};

	if (!parse_options(NULL, "Receives, decodes and records a stream.", entries, &argc, &argv,
			   error))
		return FALSE;
	if (!r->listen) {
		g_set_error(error, USAGE_ERROR, 0,
			    "--listen is missing; see paqm-streamer recv --help");
		return FALSE;
	}
	if (!duration_fits(r->duration, error) || !seed_fits(r->seed, error))
		return FALSE;
	/* reports are encrypted, too */
	if (r->srtp_key_file &&
	    !carry_key_fits(r->seed >= 0 ? "--seed" : NULL, r->reuse_keystream, error))
		return FALSE;
	if (r->form_text && !strcmp(r->form_text, "tmmbr")) {
		r->form = RETURNS_TMMBR;
	} else if (r->form_text && !strcmp(r->form_text, "remb")) {
		r->form = RETURNS_REMB;
	} else if (r->form_text && strcmp(r->form_text, "app")) {
		g_set_error(error, USAGE_ERROR, 0, "--return %s: must be app, tmmbr or remb",
			    r->form_text);
		return FALSE;
	}
	r->tell_ecn = r->feedback_text && !strcmp(r->feedback_text, "rfc8888");
	r->twcc_only = r->feedback_text && !strcmp(r->feedback_text, "twcc");
	if (r->feedback_text && !r->tell_ecn && !r->twcc_only &&
	    strcmp(r->feedback_text, "auto") != 0) {
		g_set_error(error, USAGE_ERROR, 0, "--feedback %s: must be auto, rfc8888 or twcc",
			    r->feedback_text);
		return FALSE;
	}
	if (r->interlace_text && !(r->interlace = interlace_find(r->interlace_text))) {
		g_set_error(error, USAGE_ERROR, 0,
			    "--interlace %s: must be rows, checkerboard or quarters",
			    r->interlace_text);
		return FALSE;
	}
	r->local = parse_address(r->listen, 0, error);
	if (r->size_text &&
	    !size_parse(&r->size.wanted_width, &r->size.wanted_height, r->size_text, error))
		return FALSE;
	return r->local && (!r->controller || parse_decider(r->controller, &r->dec, error));
}

static gboolean open_files(struct receiver *r, GError **error)
{
	if (r->log_dir) {
		r->rx_csv =
			open_log(r->log_dir, "rx.csv", "t_ns,seq,rtp_ts,marker,wire_bytes", error);
		if (!r->rx_csv)
			return FALSE;
		r->decoded_csv = open_log(r->log_dir, "decoded.csv",
					  "index,rtp_ts,t_ns,width,height", error);
		if (!r->decoded_csv)
			return FALSE;
		r->inbound_csv = open_log(r->log_dir, "inbound.csv", INBOUND_HEADER, error);
		if (!r->inbound_csv)
			return FALSE;
		if (r->dec)
			r->control_csv = open_log(r->log_dir, "control.csv", RATE_HEADER, error);
		if (r->dec && !r->control_csv)
			return FALSE;
	}
	if (r->output) {
		r->y4m = fopen(r->output, "we");
		if (!r->y4m) {
			g_set_error(error, USAGE_ERROR, 0, "cannot write %s: %s", r->output,
				    g_strerror(errno));
			return FALSE;
		}
		r->y4m_buffer = g_malloc(Y4M_BUFFER); /* glibc takes no size without one */
		setvbuf(r->y4m, r->y4m_buffer, _IOFBF, Y4M_BUFFER);
	}
	return TRUE;
}

static void run(struct receiver *r)
{
	GstBus *bus = gst_element_get_bus(r->pipeline);
	struct inbound_stats st;
	struct weave_stats parts;
	char *refused;

	r->main = g_main_loop_new(NULL, FALSE);
	gst_bus_add_watch(bus, on_message, r);
	g_unix_signal_add(SIGINT, on_stop, r);
	g_unix_signal_add(SIGTERM, on_stop, r);
	g_timeout_add(INBOUND_TICK_MS, on_tick, r);
	if (r->dec)
		g_timeout_add(RATE_TICK_MS, recv_on_deciding, r);
	if (r->duration > 0)
		g_timeout_add((guint)(r->duration * 1000), on_stop, r);
	if (gst_element_set_state(r->pipeline, GST_STATE_PLAYING) == GST_STATE_CHANGE_FAILURE)
		r->status = EXIT_RUN;
	else
		g_main_loop_run(r->main);
	inbound_stats(r->inbound, &st);
	recv_end_pictures(r);
	recv_let_go(r);
	gst_element_set_state(r->pipeline, GST_STATE_NULL);
	gst_bus_remove_watch(bus);
	gst_object_unref(bus);
	printf("received %" G_GUINT64_FORMAT " packets, decoded %d pictures", r->packets,
	       r->pictures);
	if (r->returned)
		printf("; %" G_GUINT64_FORMAT " probes, returned %" G_GUINT64_FORMAT " rates",
		       r->probes, r->returned);
	if (r->told)
		printf("; %" G_GUINT64_FORMAT " came with CE, %" G_GUINT64_FORMAT
		       " with ECT, told in %" G_GUINT64_FORMAT " reports",
		       r->ccfb.ce, r->ccfb.ect, r->told);
	if (r->rtx || r->fec)
		printf("; asked for %" G_GUINT64_FORMAT " again, got %" G_GUINT64_FORMAT
		       " in time, corrected %u, lost %" G_GUINT64_FORMAT,
		       st.asked, st.resent, st.corrected, st.lost);
	if (r->weave) {
		weave_stats(r->weave, &parts);
		printf("; %" G_GUINT64_FORMAT " parts of pictures, %" G_GUINT64_FORMAT
		       " interpolated",
		       parts.parts, parts.missing);
	}
	printf("\n");
	refused = guard_summary(r->guard);
	if (refused)
		printf("%s\n", refused);
	g_free(refused);
	if (streams_reports_refused(r->streams))
		printf("refused reports: %" G_GUINT64_FORMAT " of a stream from another sender\n",
		       streams_reports_refused(r->streams));
}

int cmd_recv(int argc, char **argv)
{
	struct receiver r = {.seed = SEED_NONE};
	GError *error = NULL;

	g_set_prgname("paqm-streamer recv");
	g_mutex_init(&r.lock);
	g_mutex_init(&r.deciding);
	if (!parse(&r, argc, argv, &error))
		goto out;
	if (r.seed >= 0)
		g_random_set_seed((guint32)r.seed);
	gst_init(NULL, NULL);
	if (r.srtp_key_file && !(r.srtp_key = carry_key(r.srtp_key_file, &error)))
		goto out;
	if (!open_files(&r, &error) || !recv_build(&r, &error))
		goto out;
	printf("listening on %s\n", r.listen);
	fflush(stdout);
	run(&r);
out:
	if (error)
		r.status = report_error(error);
	if (!close_log(r.rx_csv, "rx.csv") | !close_log(r.decoded_csv, "decoded.csv") |
	    !close_log(r.inbound_csv, "inbound.csv") | !close_log(r.control_csv, "control.csv") |
	    !close_log(r.y4m, "the recording"))
		r.status = EXIT_RUN;
	g_free(r.y4m_buffer);
	inbound_free(r.inbound);
	weave_free(r.weave);
	streams_free(r.streams);
	gst_clear_object(&r.demux);
	gst_clear_object(&r.pipeline);
	rollover_free(r.rollover);
	guard_free(r.guard);
	if (r.main)
		g_main_loop_unref(r.main);
	g_clear_object(&r.peer);
	g_clear_object(&r.from);
	dec_free(r.dec);
	g_mutex_clear(&r.deciding);
	g_mutex_clear(&r.lock);
	g_clear_object(&r.rtp);
	g_clear_object(&r.rtcp);
	g_clear_object(&r.local);
	g_clear_object(&r.session);
	gst_clear_buffer(&r.srtp_key);
	g_free(r.controller);
	g_free(r.size_text);
	g_free(r.form_text);
	g_free(r.feedback_text);
	g_free(r.interlace_text);
	g_free(r.srtp_key_file);
	g_free(r.cname);
	g_free(r.listen);
	g_free(r.log_dir);
	g_free(r.output);
	return r.status;
}
