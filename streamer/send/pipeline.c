// SPDX-License-Identifier: GPL-2.0
/* The pipeline of a stream that is sent. */
#include <string.h>

#include "streamer/carry.h"
#include "streamer/encoded.h"
#include "streamer/parts.h"
#include "streamer/send/send.h"

/* Frame rate and first picture are known once the encoder has caps. */
static void on_caps(GObject *pad, GParamSpec *pspec, gpointer data)
{
	struct sender *s = data;
	GstCaps *caps = gst_pad_get_current_caps(GST_PAD(pad));
	int n = 0, d = 0;

	(void)pspec;
	if (caps &&
	    gst_structure_get_fraction(gst_caps_get_structure(caps, 0), "framerate", &n, &d) &&
	    n > 0 && d > 0) {
		s->interval = (double)d / n;
		g_object_set(s->pacer, "interval",
			     (guint64)(s->interval * GST_SECOND / s->encoders), NULL);
	}
	if (caps)
		gst_caps_unref(caps);
}

static char *source_description(struct sender *s, GError **error)
{
	char *uri, *text;

	if (s->from_file)
		return g_strdup("appsrc name=source is-live=true format=time max-buffers=4 "
				"leaky-type=downstream");
	if (s->loop_source || s->start_frame) {
		g_set_error(error, USAGE_ERROR, 0,
			    "--loop and --start-frame need a .y4m file as --source");
		return NULL;
	}
	if (!strcmp(s->source, "test"))
		return g_strdup("videotestsrc is-live=true pattern=ball ! "
				"video/x-raw,format=I420,width=640,height=360,framerate=24/1");
	uri = gst_filename_to_uri(s->source, error);
	if (!uri)
		return NULL;
	text = g_strdup_printf("uridecodebin uri=\"%s\" ! videoconvert ! videoscale ! videorate ! "
			       "video/x-raw,format=I420,framerate=24/1 ! identity sync=true",
			       uri);
	g_free(uri);
	return text;
}

/*
 * Encoder and payloader. With --interlace one encoder per part of a picture, each with its part
 * of the rate.
 */
static char *coder_description(struct sender *s)
{
	const char *own = s->encoder_text ? s->encoder_text + strlen(OWN_ENCODER) : "";
	char *options, *encoders, *text;

	if (s->adaptor)
		return adaptor_text(s->adaptor);
	options = g_strdup_printf("gop=%d qp-min=%d headers=%u %s rate-max=%" G_GUINT64_FORMAT "%s",
				  s->gop, s->qp_min, s->headers, own,
				  s->rate_max / (guint64)s->encoders,
				  /* a key picture per group: the way back for who has lost one */
				  s->interlace ? " refresh=idr floor-qp=52" : "");
	encoders = s->interlace ? split_elements(s->interlace, options)
				: g_strdup_printf(OWN_ENCODER " %s name=enc0 ! ", options);
	text = g_strdup_printf("%srtph264pay name=pay pt=96 config-interval=0 aggregate-mode=none",
			       encoders);
	g_free(options);
	g_free(encoders);
	return text;
}

static gboolean launch(struct sender *s, GRand *rand, GError **error)
{
	char *source = source_description(s, error), *coder, *host, *text, *repairs;
	guint16 port = g_inet_socket_address_get_port(s->dest);
	GError *wrong = NULL;

	if (!source)
		return FALSE;
	host = address_host(s->dest);
	s->encoders = s->interlace ? interlace_phases(s->interlace) : 1;
	coder = coder_description(s);
	repairs = repair_elements(&s->repairs);
	s->ts_offset = g_rand_int(rand);
	text = g_strdup_printf(
		"rtpbin name=bin rtp-profile=avpf %s ! "
		"%s mtu=%u ! %spaqmpacer name=pacer below=%u ! %s%sbin.send_rtp_sink_0 %s "
		"bin.send_rtp_src_0 ! %s "
		"udpsink name=rtp host=%s port=%u sync=false async=false close-socket=false "
		"bin.send_rtcp_src_0 ! %s "
		"udpsink name=rtcp host=%s port=%u sync=false async=false close-socket=false "
		"udpsrc name=rtcpin close-socket=false caps=application/x-%s ! %s "
		"bin.recv_rtcp_sink_0",
		source, coder, wire_rtp_mtu(WIRE_PACKET, s->headers), repairs,
		wire_below(s->headers), s->kind->element ? s->kind->element : "",
		s->kind->element ? " name=estimator ! " : "",
		s->srtp_key ? "srtpenc name=srtp srtpdec name=srtpin" : "",
		s->srtp_key ? "srtp.rtp_sink_0 srtp.rtp_src_0 !" : "", host, port,
		s->srtp_key ? "srtp.rtcp_sink_0 srtp.rtcp_src_0 !" : "", host, port + 1,
		s->srtp_key ? "srtcp" : "rtcp",
		s->srtp_key ? "srtpin.rtcp_sink srtpin.rtcp_src !" : "");
	s->pipeline = gst_parse_launch(text, &wrong);
	g_free(text);
	g_free(source);
	g_free(coder);
	g_free(repairs);
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

static void watch_encoders(struct sender *s)
{
	for (int k = 0; k < s->encoders; k++) {
		char name[8];

		g_snprintf(name, sizeof(name), s->adaptor ? "enc" : "enc%d", k);
		s->encoder[k] = gst_bin_get_by_name(GST_BIN(s->pipeline), name);
		g_object_set(s->encoder[k], "min-force-key-unit-interval", (guint64)KEY_INTERVAL_NS,
			     NULL);
		if (s->adaptor)
			continue;
		g_signal_connect(s->encoder[k], "picture", G_CALLBACK(send_on_picture), s);
		g_signal_connect(s->encoder[k], "group", G_CALLBACK(send_on_group), s);
	}
}

/* What enters the encoder, or what splits pictures for several. */
static void watch_source(struct sender *s)
{
	GstElement *first;
	GstPad *pad;

	first = s->interlace ? gst_bin_get_by_name(GST_BIN(s->pipeline), "split")
			     : gst_object_ref(s->encoder[0]);
	pad = gst_element_get_static_pad(first, "sink");
	gst_object_unref(first);
	g_signal_connect(pad, "notify::caps", G_CALLBACK(on_caps), s);
	gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_BUFFER, send_on_raw_picture, s, NULL);
	gst_object_unref(pad);
}

static void add_repair(struct sender *s, GRand *rand)
{
	s->repairs.ssrc = (guint32)s->ssrc;
	do
		s->repairs.rtx_ssrc = g_rand_int(rand);
	while (s->repairs.rtx_ssrc == s->repairs.ssrc);
	s->repair = repair_new(GST_BIN(s->pipeline), s->pacer, &s->repairs);
}

static gboolean use_payloader(struct sender *s, GRand *rand, GError **error)
{
	GstElement *pay = s->pay;
	guint pt = 0;
	GstPad *pad;

	g_object_get(pay, "pt", &pt, NULL);
	if (pt != VIDEO_PT && s->repair) {
		g_set_error(error, USAGE_ERROR, 0, "--rtx and --fec need an encoder of H.264");
		return FALSE;
	}
	if (s->adaptor)
		adaptor_watch(s->adaptor, s->encoder[0], pay, send_on_picture, send_on_group, s);
	s->first_seq = g_rand_int(rand) & 0x7fff;
	g_object_set(pay, "ssrc", (guint)s->ssrc, "timestamp-offset", s->ts_offset, "seqnum-offset",
		     (gint)s->first_seq, NULL);
	if (s->interlace)
		s->split = split_new(GST_BIN(s->pipeline), s->interlace, (guint)s->gop, pay);
	if (s->element) {
		pad = gst_element_get_static_pad(pay, "src");
		gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_BUFFER_LIST,
				  send_on_payload, s, NULL);
		gst_object_unref(pad);
	}
	return rate_number_packets(pay, error);
}

static void use_sockets(struct sender *s)
{
	GstElement *sink, *rtcp_sink, *rtcp_src;
	GstPad *pad;

	sink = gst_bin_get_by_name(GST_BIN(s->pipeline), "rtp");
	g_object_set(sink, "socket", s->rtp, NULL);
	pad = gst_element_get_static_pad(sink, "sink");
	gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM, send_on_sink_event, s, NULL);
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
	guard_own(s->guard, (guint32)s->ssrc);
	if (s->repairs.rtx)
		guard_own(s->guard, s->repairs.rtx_ssrc);
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
	g_object_set(s->session, "internal-ssrc", (guint)s->ssrc, "rtcp-min-interval",
		     (guint64)REPORT_INTERVAL, NULL);
	if (s->element || s->probes)
		g_signal_connect(s->session, "on-app-rtcp", G_CALLBACK(send_on_app), s);
	s->estimator = gst_bin_get_by_name(GST_BIN(s->pipeline), "estimator");
	if (s->estimator)
		g_object_set(s->estimator, "min-bitrate", (guint)s->rate_min, "max-bitrate",
			     (guint)s->rate_max, "estimated-bitrate",
			     (guint)(CTL_START_SHARE * s->rate_max), NULL);
}

gboolean send_build(struct sender *s, GRand *rand, GError **error)
{
	if (!launch(s, rand, error))
		return FALSE;
	if (s->srtp_key)
		use_key(s);
	watch_encoders(s);
	s->pacer = gst_bin_get_by_name(GST_BIN(s->pipeline), "pacer");
	if (s->repairs.rtx || s->repairs.fec)
		add_repair(s, rand);
	watch_source(s);
	s->pay = gst_bin_get_by_name(GST_BIN(s->pipeline), "pay");
	if (!use_payloader(s, rand, error))
		return FALSE;
	if (s->element || s->probes) { /* nobody who has not seen the stream can know it */
		s->returned.nonce = g_rand_int(rand);
		/* above every router's rate, so that each that speaks shows */
		s->field = (struct paqm_field){.rate = paqm_f32_encode(PAQM_VALUE_MAX, 0),
					       .nonce = s->returned.nonce};
	}
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
