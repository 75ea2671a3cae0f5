// SPDX-License-Identifier: GPL-2.0
/*
 * A sender as webrtcsink is one, for the lab: an encoder of others, its payloader, rtpbin with an
 * estimator in its request-aux-sender, and an application that does nothing but tell the encoder
 * what notify::estimated-bitrate says, as it is. Nothing of paqm-streamer's control is in it, so
 * that the estimators alone make the difference. Packets go to paqm-streamer recv.
 *
 * Usage: gst_send --clip FILE --to HOST:PORT --bind ADDR:PORT --estimator DESCRIPTION --log DIR
 *        --duration S [--encoder DESCRIPTION] [--start-frame N] [--ssrc N] [--rate-min BPS]
 *        [--rate-max BPS]
 * Writes DIR/frames.csv (pictures) and DIR/estimate.csv (each change).
 */
#include <gst/gst.h>
#include <gst/rtp/rtp.h>
#include <stdlib.h>
#include <string.h>

#include "streamer/encoder/adaptor.h"
#include "streamer/encoder/knob.h"
#include "streamer/media/feed.h"
#include "streamer/media/source.h"
#include "streamer/options.h"
#include "streamer/rtp/wire.h"

#define START_SHARE 0.25 /* of the highest rate, until something is known; as the streamer's */
#define KEY_INTERVAL_NS (500 * GST_MSECOND)

/* What webrtcsink sets (gst-plugins-rs, net/webrtc/src/webrtcsink/imp.rs, configure_encoder), and
 * the defaults of what knob.c sets besides.
 */
static const char *const as_webrtcsink[] = {
	"vp8enc deadline=1 cpu-used=-16 keyframe-max-dist=2000 keyframe-mode=disabled "
	"end-usage=cbr buffer-initial-size=100 buffer-optimal-size=120 buffer-size=150 "
	"max-intra-bitrate=250 error-resilient=default lag-in-frames=0 undershoot=100 "
	"overshoot=100",
	"openh264enc gop-size=2560 rate-control=bitrate complexity=low background-detection=false "
	"scene-change-detection=false",
};

struct picture {
	gint64 taken; /* ns of the wall clock */
	guint index;  /* in the clip */
};

struct app {
	char *clip, *to, *bind, *estimator_text, *encoder_text, *log_dir;
	gint64 start_frame, ssrc, rate_min, rate_max;
	double duration;

	GstElement *pipeline, *estimator;
	struct adaptor *adaptor;
	struct knob knob;
	struct y4m y4m;
	struct feed *feed;
	GMainLoop *main;
	FILE *frames, *estimates;
	GSocket *rtp, *rtcp;

	GMutex lock;
	GArray *pictures; /* by their number from the start */
	GstClockTime origin;
	guint packets;
	int status;
};

static GstBuffer *next_picture(guint64 n, gpointer data)
{
	struct app *a = data;
	struct picture p = {realtime_ns(), (guint)(((guint64)a->start_frame + n) % a->y4m.frames)};

	g_mutex_lock(&a->lock);
	g_array_set_size(a->pictures, (guint)n + 1);
	g_array_index(a->pictures, struct picture, n) = p;
	g_mutex_unlock(&a->lock);
	return y4m_frame(&a->y4m, p.index);
}

/* The last packet of a picture leaves the payloader. */
static void log_picture(struct app *a, GstBuffer *buf, guint32 ts)
{
	guint64 length = (guint64)a->y4m.fps_d * GST_SECOND;
	guint64 n = gst_util_uint64_scale_round(GST_BUFFER_PTS(buf) - a->origin,
						(guint64)a->y4m.fps_n, length);
	struct picture p = {0};

	g_mutex_lock(&a->lock);
	if (n < a->pictures->len)
		p = g_array_index(a->pictures, struct picture, n);
	g_mutex_unlock(&a->lock);
	if (p.taken)
		fprintf(a->frames, "%" G_GUINT64_FORMAT ",%" G_GINT64_FORMAT ",%u,%u,%u\n", n,
			p.taken, ts, p.index, a->packets);
	a->packets = 0;
}

static gboolean on_packet(GstBuffer **buf, guint i, gpointer data)
{
	GstRTPBuffer rtp = GST_RTP_BUFFER_INIT;
	struct app *a = data;
	gboolean last;
	guint32 ts;

	(void)i;
	if (!gst_rtp_buffer_map(*buf, GST_MAP_READ, &rtp))
		return TRUE;
	last = gst_rtp_buffer_get_marker(&rtp);
	ts = gst_rtp_buffer_get_timestamp(&rtp);
	gst_rtp_buffer_unmap(&rtp);
	a->packets++;
	if (last)
		log_picture(a, *buf, ts);
	return TRUE;
}

static GstPadProbeReturn on_packets(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	(void)pad;
	if (info->type & GST_PAD_PROBE_TYPE_BUFFER_LIST) {
		gst_buffer_list_foreach(GST_PAD_PROBE_INFO_BUFFER_LIST(info), on_packet, data);
	} else {
		GstBuffer *buf = GST_PAD_PROBE_INFO_BUFFER(info);

		on_packet(&buf, 0, data);
	}
	return GST_PAD_PROBE_OK;
}

static GstElement *part(const struct app *a, const char *name)
{
	GstElement *e = gst_bin_get_by_name(GST_BIN(a->pipeline), name);

	gst_object_unref(e); /* the pipeline keeps it */
	return e;
}

static void on_estimate(GObject *estimator, GParamSpec *pspec, gpointer data)
{
	struct app *a = data;
	guint rate;

	(void)pspec;
	g_object_get(estimator, "estimated-bitrate", &rate, NULL);
	knob_turn(part(a, "enc"), &a->knob, rate);
	g_mutex_lock(&a->lock);
	fprintf(a->estimates, "%" G_GINT64_FORMAT ",%u\n", realtime_ns(), rate);
	g_mutex_unlock(&a->lock);
}

/* rtpbin asks: a bin with the estimator, whose pads have the session's number. */
static GstElement *on_aux(GstElement *rtpbin, guint session, gpointer data)
{
	GError *error = NULL;
	struct app *a = data;
	GstElement *bin = gst_parse_bin_from_description(a->estimator_text, FALSE, &error);

	(void)rtpbin;
	if (session || !bin) {
		g_printerr("gst_send: --estimator '%s': %s\n", a->estimator_text,
			   error ? error->message : "there is one session only");
		exit(EXIT_USAGE);
	}
	for (int side = 0; side < 2; side++) {
		GstPad *pad =
			gst_bin_find_unlinked_pad(GST_BIN(bin), side ? GST_PAD_SRC : GST_PAD_SINK);

		gst_element_add_pad(bin, gst_ghost_pad_new(side ? "src_0" : "sink_0", pad));
		gst_object_unref(pad);
	}
	a->estimator = gst_bin_get_by_name(GST_BIN(bin), "estimator");
	g_object_set(a->estimator, "min-bitrate", (guint)a->rate_min, "max-bitrate",
		     (guint)a->rate_max, "estimated-bitrate", (guint)(START_SHARE * a->rate_max),
		     NULL);
	g_signal_connect(a->estimator, "notify::estimated-bitrate", G_CALLBACK(on_estimate), a);
	return bin;
}

static gboolean quit(gpointer data)
{
	g_main_loop_quit(((struct app *)data)->main);
	return G_SOURCE_REMOVE;
}

static gboolean on_message(GstBus *bus, GstMessage *message, gpointer data)
{
	struct app *a = data;
	GError *error;

	(void)bus;
	if (GST_MESSAGE_TYPE(message) != GST_MESSAGE_ERROR)
		return TRUE;
	gst_message_parse_error(message, &error, NULL);
	g_printerr("gst_send: %s\n", error->message);
	g_error_free(error);
	a->status = EXIT_RUN;
	return quit(a), TRUE;
}

static void probe(GstElement *e, const char *pad_name, GstPadProbeCallback fn, struct app *a)
{
	GstPad *pad = gst_element_get_static_pad(e, pad_name);

	gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_BUFFER_LIST, fn, a,
			  NULL);
	gst_object_unref(pad);
}

/* Google congestion control lives on transport-wide sequence numbers. */
static gboolean number_packets(GstElement *pay)
{
	GstElement *ext = gst_element_factory_make("rtphdrexttwcc", NULL);

	if (!ext)
		return FALSE;
	gst_rtp_header_extension_set_id(GST_RTP_HEADER_EXTENSION(ext), TWCC_ID);
	g_signal_emit_by_name(pay, "add-extension", ext);
	gst_object_unref(ext);
	return TRUE;
}

static gboolean sockets(struct app *a, GError **error)
{
	GInetSocketAddress *local = parse_address(a->bind, 65535, error);

	if (!local)
		return FALSE;
	a->rtp = open_socket(local, g_inet_socket_address_get_port(local), error);
	if (a->rtp)
		a->rtcp = open_socket(local, (guint16)(g_inet_socket_address_get_port(local) + 1),
				      error);
	g_object_unref(local);
	return a->rtcp != NULL;
}

static gboolean build(struct app *a, GError **error)
{
	GInetSocketAddress *to = parse_address(a->to, 65535, error);
	char *host, *coder, *text;
	GstCaps *caps;
	guint16 port;

	if (!to || !sockets(a, error) || !y4m_open(&a->y4m, a->clip, error))
		return FALSE;
	for (guint i = 0; i < G_N_ELEMENTS(as_webrtcsink); i++)
		if (g_str_has_prefix(as_webrtcsink[i], a->encoder_text) &&
		    as_webrtcsink[i][strlen(a->encoder_text)] == ' ') {
			g_free(a->encoder_text);
			a->encoder_text = g_strdup(as_webrtcsink[i]);
		}
	a->adaptor = adaptor_new(a->encoder_text, 1, wire_headers(FALSE, FALSE), error);
	if (!a->adaptor)
		return FALSE;
	host = address_host(to);
	port = g_inet_socket_address_get_port(to);
	coder = adaptor_text(a->adaptor);
	text = g_strdup_printf(
		"rtpbin name=bin rtp-profile=avpf appsrc name=source is-live=true format=time ! %s "
		"bin.send_rtp_src_0 ! udpsink name=rtp host=%s port=%u sync=false async=false "
		"close-socket=false bin.send_rtcp_src_0 ! udpsink name=rtcp host=%s port=%u "
		"sync=false async=false close-socket=false udpsrc name=rtcpin close-socket=false "
		"caps=application/x-rtcp ! bin.recv_rtcp_sink_0",
		coder, host, port, host, port + 1);
	a->pipeline = gst_parse_launch(text, error);
	g_free(host);
	g_free(coder);
	g_free(text);
	g_object_unref(to);
	if (!a->pipeline)
		return FALSE;
	g_object_set(part(a, "rtp"), "socket", a->rtp, NULL);
	g_object_set(part(a, "rtcp"), "socket", a->rtcp, NULL);
	g_object_set(part(a, "rtcpin"), "socket", a->rtcp, NULL);
	g_object_set(part(a, "enc"), "min-force-key-unit-interval", (guint64)KEY_INTERVAL_NS, NULL);
	g_object_set(part(a, "pay"), "ssrc", (guint)a->ssrc, "timestamp-offset", (guint)0, "mtu",
		     wire_rtp_mtu(WIRE_PACKET, wire_headers(FALSE, FALSE)), NULL);
	caps = y4m_caps(&a->y4m);
	g_object_set(part(a, "source"), "caps", caps, NULL);
	gst_caps_unref(caps);
	if (!knob_find(gst_element_get_factory(part(a, "enc")), &a->knob, error))
		return FALSE;
	knob_turn(part(a, "enc"), &a->knob, START_SHARE * (double)a->rate_max);
	g_signal_connect(part(a, "bin"), "request-aux-sender", G_CALLBACK(on_aux), a);
	probe(part(a, "pay"), "src", on_packets, a);
	if (number_packets(part(a, "pay")) &&
	    gst_element_link_pads(part(a, "pay"), "src", part(a, "bin"), "send_rtp_sink_0"))
		return TRUE;
	g_set_error(error, USAGE_ERROR, 0, "the pipeline cannot be linked");
	return FALSE;
}

static gboolean options(struct app *a, int argc, char **argv, GError **error)
{
	GOptionEntry all[] = {
		{"clip", 0, 0, G_OPTION_ARG_FILENAME, &a->clip, "Pictures", "FILE.y4m"},
		{"to", 0, 0, G_OPTION_ARG_STRING, &a->to, "Receiver", "HOST:PORT"},
		{"bind", 0, 0, G_OPTION_ARG_STRING, &a->bind, "Own address", "ADDR:PORT"},
		{"estimator", 0, 0, G_OPTION_ARG_STRING, &a->estimator_text,
		 "Elements, one of them called estimator", "DESCRIPTION"},
		{"encoder", 0, 0, G_OPTION_ARG_STRING, &a->encoder_text, "Encoder (vp8enc)",
		 "DESCRIPTION"},
		{"log", 0, 0, G_OPTION_ARG_FILENAME, &a->log_dir, "For frames.csv, estimate.csv",
		 "DIR"},
		{"duration", 0, 0, G_OPTION_ARG_DOUBLE, &a->duration, "Seconds", "S"},
		{"start-frame", 0, 0, G_OPTION_ARG_INT64, &a->start_frame, "First picture", "N"},
		{"ssrc", 0, 0, G_OPTION_ARG_INT64, &a->ssrc, "Of the stream", "N"},
		{"rate-min", 0, 0, G_OPTION_ARG_INT64, &a->rate_min, "Lowest rate", "BPS"},
		{"rate-max", 0, 0, G_OPTION_ARG_INT64, &a->rate_max, "Highest rate", "BPS"},
		{0}};
	GOptionContext *context = g_option_context_new(NULL);
	gboolean ok;

	g_option_context_add_main_entries(context, all, NULL);
	ok = g_option_context_parse(context, &argc, &argv, error);
	g_option_context_free(context);
	if (ok && (!a->clip || !a->to || !a->bind || !a->estimator_text || !a->log_dir ||
		   a->duration <= 0)) {
		g_set_error(error, USAGE_ERROR, 0,
			    "--clip, --to, --bind, --estimator, --log and --duration are needed");
		return FALSE;
	}
	return ok;
}

int main(int argc, char **argv)
{
	struct app a = {.ssrc = 1, .rate_min = 100000, .rate_max = 3000000};
	GError *error = NULL;
	GstBus *bus;

	gst_init(NULL, NULL);
	g_mutex_init(&a.lock);
	a.pictures = g_array_new(FALSE, TRUE, sizeof(struct picture));
	a.encoder_text = g_strdup("vp8enc");
	if (!options(&a, argc, argv, &error) ||
	    !(a.frames = open_log(a.log_dir, "frames.csv", "frame,t_ns,rtp_ts,src_frame,packets",
				  &error)) ||
	    !(a.estimates = open_log(a.log_dir, "estimate.csv", "t_ns,rate_bps", &error)) ||
	    !build(&a, &error)) {
		g_printerr("gst_send: %s\n", error ? error->message : "it cannot be built");
		return EXIT_USAGE;
	}
	a.main = g_main_loop_new(NULL, FALSE);
	bus = gst_element_get_bus(a.pipeline);
	gst_bus_add_watch(bus, on_message, &a);
	gst_object_unref(bus);
	g_timeout_add((guint)(a.duration * 1000), quit, &a);
	gst_element_set_state(a.pipeline, GST_STATE_PLAYING);
	gst_element_get_state(a.pipeline, NULL, NULL, GST_SECOND);
	a.origin =
		(GstClockTime)g_get_monotonic_time() * 1000 - gst_element_get_base_time(a.pipeline);
	a.feed = feed_start(part(&a, "source"), (guint64)a.y4m.fps_d, (guint64)a.y4m.fps_n,
			    a.origin + gst_element_get_base_time(a.pipeline), G_MAXUINT64,
			    next_picture, &a);
	g_main_loop_run(a.main);
	feed_stop(a.feed);
	gst_element_set_state(a.pipeline, GST_STATE_NULL);
	fclose(a.frames);
	fclose(a.estimates);
	return a.status;
}
