// SPDX-License-Identifier: GPL-2.0
/* The pipeline of a stream that is sent. */
#include <string.h>

#include "streamer/rtp/carry.h"
#include "streamer/encoder/encoded.h"
#include "streamer/media/parts.h"
#include "streamer/send/state.h"

static char *source_description(struct sender *s, GError **error)
{
	char *uri, *text;
	int pipe; /* read until the program ends */

	if (s->from_file)
		return g_strdup("appsrc name=source is-live=true format=time max-buffers=4 "
				"leaky-type=downstream");
	if (s->loop_source || s->start_frame) {
		g_set_error(error, USAGE_ERROR, 0,
			    "--loop and --start-frame need a .y4m file as --source%s",
			    source_is_pipe(s->source) ? ", and no pipe" : "");
		return NULL;
	}
	if (!strcmp(s->source, "test"))
		return g_strdup_printf("videotestsrc is-live=true pattern=ball ! "
				       "video/x-raw,format=I420,width=640,height=360,"
				       "framerate=%d/1 ! " OUTGOING_QUEUE,
				       s->fps);
	uri = source_uri(s->source, &pipe, error);
	if (!uri)
		return NULL;
	text = g_strdup_printf(
		"uridecodebin name=" SEND_FILE " uri=\"%s\" ! " SOURCE_UPRIGHT
		" ! videoscale ! videorate ! "
		"video/x-raw,format=I420,framerate=%d/1 ! identity sync=true ! " OUTGOING_QUEUE,
		uri, s->fps);
	g_free(uri);
	return text;
}

static gboolean launch(struct sender *s, GError **error)
{
	char *source = source_description(s, error), *coder, *host, *text;
	guint16 port = g_inet_socket_address_get_port(s->dest);
	GError *wrong = NULL;

	if (!source)
		return FALSE;
	host = address_host(s->dest);
	coder = outgoing_elements(&s->out);
	text = g_strdup_printf(
		"rtpbin name=bin rtp-profile=avpf %s ! %s ! bin.send_rtp_sink_0 %s "
		"bin.send_rtp_src_0 ! %s "
		"udpsink name=" SEND_SINK
		" host=%s port=%u sync=false async=false close-socket=false "
		"bin.send_rtcp_src_0 ! %s "
		"udpsink name=rtcp host=%s port=%u sync=false async=false close-socket=false "
		"udpsrc name=rtcpin close-socket=false caps=application/x-%s ! %s "
		"bin.recv_rtcp_sink_0",
		source, coder, s->srtp_key ? "srtpenc name=srtp srtpdec name=srtpin" : "",
		s->srtp_key ? "srtp.rtp_sink_0 srtp.rtp_src_0 !" : "", host, port,
		s->srtp_key ? "srtp.rtcp_sink_0 srtp.rtcp_src_0 !" : "", host, port + 1,
		s->srtp_key ? "srtcp" : "rtcp",
		s->srtp_key ? "srtpin.rtcp_sink srtpin.rtcp_src !" : "");
	s->pipeline = gst_parse_launch(text, &wrong);
	g_free(text);
	g_free(source);
	g_free(coder);
	g_free(host);
	if (wrong && s->encoder_text)
		g_set_error(error, USAGE_ERROR, 0, "--encoder '%s': %s", s->encoder_text,
			    wrong->message);
	else if (wrong)
		g_propagate_error(error, g_steal_pointer(&wrong));
	g_clear_error(&wrong);
	return s->pipeline && !(error && *error);
}

static void use_key(struct sender *s)
{
	static const char *const names[] = {"srtp", "srtpin"};

	for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
		GstElement *e = gst_bin_get_by_name(GST_BIN(s->pipeline), names[i]);

		carry_use_key(e, s->srtp_key);
		gst_object_unref(e);
	}
}

static gboolean quit(gpointer data)
{
	g_main_loop_quit(((struct sender *)data)->main);
	return G_SOURCE_REMOVE;
}

/* The last packet has gone out. */
static GstPadProbeReturn on_sink_event(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	(void)pad;
	if (GST_EVENT_TYPE(GST_PAD_PROBE_INFO_EVENT(info)) == GST_EVENT_EOS)
		g_idle_add(quit, data);
	return GST_PAD_PROBE_OK;
}

static void use_sockets(struct sender *s)
{
	GstElement *sink, *rtcp_sink, *rtcp_src;
	GstPad *pad;

	sink = gst_bin_get_by_name(GST_BIN(s->pipeline), "rtp");
	g_object_set(sink, "socket", s->rtp, NULL);
	pad = gst_element_get_static_pad(sink, "sink");
	gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM, on_sink_event, s, NULL);
	gst_object_unref(pad);
	gst_object_unref(sink);
	rtcp_sink = gst_bin_get_by_name(GST_BIN(s->pipeline), "rtcp");
	g_object_set(rtcp_sink, "socket", s->rtcp, NULL);
	gst_object_unref(rtcp_sink);
	rtcp_src = gst_bin_get_by_name(GST_BIN(s->pipeline), "rtcpin");
	g_object_set(rtcp_src, "socket", s->rtcp, NULL);
	gst_object_unref(rtcp_src);
}

/* A reporter gets the place of this one, which is silent; rtpsession forgets it by itself. */
static void on_gone(guint32 ssrc, gpointer data)
{
	struct sender *s = data;

	if (s->srtp_key)
		g_signal_emit_by_name(part_of(s->pipeline, "srtpin"), "remove-key", ssrc);
}

static void watch_reports(struct sender *s)
{
	GstElement *in = part_of(s->pipeline, "rtcpin");

	s->guard = guard_new(s->srtp_key != NULL, on_gone, s);
	guard_own(s->guard, s->out.ssrc);
	if (s->out.repairs.rtx)
		guard_own(s->guard, s->out.repairs.rtx_ssrc);
	guard_rtcp(s->guard, in, "src");
	if (s->srtp_key)
		guard_proven_rtcp(s->guard, part_of(s->pipeline, "srtpin"), "rtcp_src");
	else
		guard_proven_rtcp(s->guard, in, "src");
}

static void use_session(struct sender *s)
{
	s->bin = gst_bin_get_by_name(GST_BIN(s->pipeline), "bin");
	g_signal_emit_by_name(s->bin, "get-internal-session", 0, &s->session);
	/* It would propose a source of its own to the payloader, and paqmd know another. */
	g_object_set(s->session, "internal-ssrc", s->out.ssrc, "rtcp-min-interval",
		     (guint64)REPORT_INTERVAL, NULL);
}

/* What is drawn at random, always in this order: a seed repeats it. */
static void draw(struct outgoing *o, GRand *rand)
{
	o->ts_offset = g_rand_int(rand);
	if (o->repairs.rtx || o->repairs.fec) {
		o->repairs.ssrc = o->ssrc;
		do
			o->repairs.rtx_ssrc = g_rand_int(rand);
		while (o->repairs.rtx_ssrc == o->repairs.ssrc);
	}
	o->first_seq = g_rand_int(rand) & 0x7fff;
	if (o->carrier != CARRIER_ICMP)
		o->nonce = g_rand_int(rand);
}

static gboolean see_link(GstElement *file, GstPad *pad, gpointer linked)
{
	(void)file;
	*(gboolean *)linked |= gst_pad_is_linked(pad);
	return TRUE;
}

/* Of a file only sound or text may be decoded, which nothing here waits for. */
static void on_no_more_pads(GstElement *file, gpointer data)
{
	gboolean linked = FALSE;

	(void)data;
	gst_element_foreach_src_pad(file, see_link, &linked);
	if (!linked)
		GST_ELEMENT_ERROR(file, STREAM, DECODE,
				  ("there is no picture in it that can be decoded"), (NULL));
}

gboolean send_build(struct sender *s, GRand *rand, GError **error)
{
	draw(&s->out, rand);
	if (!launch(s, error))
		return FALSE;
	if (s->srtp_key)
		use_key(s);
	if (!outgoing_build(&s->out, s->pipeline, error))
		return FALSE;
	if (part_of(s->pipeline, SEND_FILE))
		g_signal_connect(part_of(s->pipeline, SEND_FILE), "no-more-pads",
				 G_CALLBACK(on_no_more_pads), NULL);
	use_sockets(s);
	use_session(s);
	watch_reports(s);
	if (s->from_file) {
		GstCaps *caps = y4m_caps(&s->y4m);

		s->appsrc = gst_bin_get_by_name(GST_BIN(s->pipeline), "source");
		g_object_set(s->appsrc, "caps", caps, NULL);
		gst_caps_unref(caps);
	}
	return TRUE;
}
