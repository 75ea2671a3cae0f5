// SPDX-License-Identifier: GPL-2.0
/*
 * The pipelines of a call: what is sent, what comes, and rtpbin's two sessions between them.
 */

#include "streamer/call/shutter.h"
#include "streamer/call/state.h"
#include "streamer/encoder/encoded.h"
#include "streamer/options.h"
#include "streamer/media/parts.h"
#include "streamer/rtp/wire.h"
#include <string.h>

#define AUDIO_PT 97
#define AUDIO_BPS 32000
/* Of more channels opusenc makes what RFC 7587, and the peer, know nothing of. */
#define OPUS_CHANNELS "audio/x-raw,channels=[1,2] ! "
#define VIDEO_CLOCK 90000
#define AUDIO_CLOCK 48000
/* Sound and picture are brought into step by this much per packet: after a jump of the path's delay
 * the reports of the two disagree for a moment.
 */
#define SYNC_STEP ((guint64)GST_MSECOND)
#define ADVICE_MIN 1000	    /* bit/s; what the picture cannot do with is told, too */
#define SOCKET_PACKETS 4096 /* more do not fit into a socket; strangers may send without end */

/* Only the streams that the peer has offered reach a decoder. */
static void on_pad_added(GstElement *bin, GstPad *pad, gpointer data)
{
	struct call *c = data;
	guint session, ssrc, pt;
	GstPad *sink;

	(void)bin;
	if (sscanf(GST_PAD_NAME(pad), "recv_rtp_src_%u_%u_%u", &session, &ssrc, &pt) != 3 ||
	    session >= CALL_MEDIA || ssrc != c->theirs.stream[session].ssrc)
		return;
	if (!c->in[session].inlet)
		return;
	sink = gst_element_get_static_pad(c->in[session].inlet, "sink");
	if (!gst_pad_is_linked(sink) && gst_pad_link(pad, sink) != GST_PAD_LINK_OK)
		g_printerr("paqm-streamer: the peer's %s does not match what was agreed\n",
			   call_media_names[session]);
	gst_object_unref(sink);
}

/* What comes; @kind: of packets. */
static GstCaps *stream_caps(const struct call *c, enum call_media media, const char *kind)
{
	GstCaps *caps;

	if (media == CALL_AUDIO)
		return gst_caps_new_simple(kind, "media", G_TYPE_STRING, "audio", "clock-rate",
					   G_TYPE_INT, AUDIO_CLOCK, "encoding-name", G_TYPE_STRING,
					   "OPUS", "payload", G_TYPE_INT, AUDIO_PT, NULL);
	caps = codec_caps(codec_of_payload(call_payload(&c->theirs)));
	gst_structure_set_name(gst_caps_get_structure(caps, 0), kind);
	gst_caps_set_simple(caps, "extmap-" G_STRINGIFY(TWCC_ID), G_TYPE_STRING, TWCC_URI, NULL);
	return caps;
}

/* opusdec repairs or conceals what it is told is lost; pictures are inbound's affair. */
static void on_buffer(GstElement *bin, GstElement *buffer, guint session, guint ssrc, gpointer data)
{
	struct call *c = data;

	(void)bin;
	if (session == CALL_AUDIO)
		g_object_set(buffer, "do-lost", TRUE, NULL);
	if (session < CALL_MEDIA && ssrc == c->theirs.stream[session].ssrc)
		capture_packets(&c->capture[session], buffer, "src");
}

static GstCaps *on_pt_map(GstElement *bin, guint session, guint pt, gpointer data)
{
	struct call *c = data;

	(void)bin;
	/* What corrects has the clock of the stream, or the jitter buffer takes it for nothing. */
	if (session == CALL_VIDEO && pt == FEC_PT)
		return gst_caps_from_string("application/x-rtp, media=(string)video, "
					    "clock-rate=(int)90000, encoding-name=(string)ULPFEC, "
					    "payload=(int)" G_STRINGIFY(FEC_PT));
	if (session < CALL_MEDIA &&
	    pt == (session == CALL_VIDEO ? call_payload(&c->theirs) : AUDIO_PT))
		return stream_caps(c, session, "application/x-rtp");
	return NULL;
}

/*
 * Elements in a row, as gst-launch has them, added to the pipeline; only pad @open of the element
 * @end is left open: what a decoder will be linked to once it knows what it decodes is not. NULL on
 * failure.
 */
static GstElement *row(struct call *c, const char *end, const char *open, GError **error,
		       const char *format, ...) G_GNUC_PRINTF(5, 6);
static GstElement *row(struct call *c, const char *end, const char *open, GError **error,
		       const char *format, ...)
{
	GstElement *bin;
	va_list args;
	GstPad *pad;
	char *text;

	va_start(args, format);
	text = g_strdup_vprintf(format, args);
	va_end(args);
	bin = gst_parse_bin_from_description_full(text, FALSE, NULL, GST_PARSE_FLAG_FATAL_ERRORS,
						  error);
	g_free(text);
	if (!bin)
		return NULL;
	gst_bin_add(GST_BIN(c->pipeline), bin);
	pad = gst_element_get_static_pad(part_of(c->pipeline, end), open);
	gst_element_add_pad(bin, gst_ghost_pad_new(open, pad));
	gst_object_unref(pad);
	return bin;
}

static GstElement *udp_sink(struct call *c, GSocket *socket, guint16 port)
{
	char *host = address_host(link_peer(c->link));
	GstElement *sink = gst_element_factory_make("udpsink", NULL);

	g_object_set(sink, "host", host, "port", (gint)port, "socket", socket, "sync", FALSE,
		     "async", FALSE, "close-socket", FALSE, NULL);
	g_free(host);
	return sink;
}

/* Packets to the peer's port of a session, by that socket or by ICE; @pad is rtpbin's. */
static gboolean to_peer(struct call *c, const char *pad, enum call_media media, GSocket *socket,
			guint16 port, GError **error)
{
	GstElement *sink = c->ice ? ice_sink(c->ice, media) : udp_sink(c, socket, port);

	gst_bin_add(GST_BIN(c->pipeline), sink);
	if (gst_element_link_pads(c->bin, pad, sink, "sink"))
		return TRUE;
	g_set_error(error, USAGE_ERROR, 0, "rtpbin has no %s", pad);
	return FALSE;
}

static GstElement *udp_src(GSocket *socket, GstCaps *caps)
{
	GstElement *src = gst_element_factory_make("udpsrc", NULL);

	g_object_set(src, "socket", socket, "close-socket", FALSE, "buffer-size", 1 << 20, "caps",
		     caps, NULL);
	return src;
}

/* Packets that come to a socket, or by ICE; @pad is rtpbin's. Takes @caps. */
static GstElement *from_peer(struct call *c, const char *pad, enum call_media media,
			     GSocket *socket, GstCaps *caps, GError **error)
{
	GstElement *src = c->ice ? ice_src(c->ice, media, caps) : udp_src(socket, caps);

	gst_caps_unref(caps);
	/* Not before everything behind it can take packets: the peer may be sending already. */
	gst_element_set_locked_state(src, TRUE);
	gst_bin_add(GST_BIN(c->pipeline), src);
	if (gst_element_link_pads(src, "src", c->bin, pad))
		return src;
	g_set_error(error, USAGE_ERROR, 0, "rtpbin has no %s", pad);
	return NULL;
}

/* The session of a kind; it would propose a source of its own to the payloader. */
static void own_session(struct call *c, enum call_media media)
{
	if (c->session[media])
		return;
	g_signal_emit_by_name(c->bin, "get-internal-session", media, &c->session[media]);
	g_object_set(c->session[media], "internal-ssrc", c->mine.stream[media].ssrc, NULL);
	c->reports[media] = reports_new(c->session[media], c->mine.stream[media].ssrc);
}

/* What is sent again has an SSRC of its own: both ends know it. */
static guint32 rtx_ssrc(const struct offer_stream *st)
{
	return st->ssrc ^ 0x80000000U;
}

static void on_begin(double ms, gboolean told, gpointer data)
{
	struct call *c = data;

	(void)ms;
	call_record_event(&c->rec, "first-rate", told ? "told by a router" : "no advice");
}

/* What both ends have agreed on decides about the stream of pictures. */
static void agreed(struct call *c)
{
	const struct offer_stream *mine = &c->mine.stream[CALL_VIDEO];
	struct outgoing *o = &c->out;

	if (!c->ice)
		c->to = G_INET_SOCKET_ADDRESS(
			address_to_port(link_peer(c->link), c->theirs.stream[CALL_VIDEO].port));
	o->qp_min = OUTGOING_QP_MIN;
	if (o->carrier == CARRIER_PROBE && !c->theirs.returns) {
		g_printerr("paqm-streamer: the peer's version returns no rates; --carrier probe "
			   "has no effect\n");
		o->carrier = CARRIER_ICMP;
	}
	o->repairs.fec = (guint)c->fec;
	o->repairs.ssrc = mine->ssrc;
	o->repairs.rtx_ssrc = rtx_ssrc(mine);
	o->paqmd = c->paqmd;
	o->advice_min = ADVICE_MIN;
	o->ssrc = mine->ssrc;
	o->socket = c->rtp[CALL_VIDEO];
	o->dest = c->to;
	o->first_pts = -1;
	o->begins = on_begin;
	o->group = call_on_group;
	o->data = c;
	o->frames_csv = c->rec.frames;
	o->feedback_csv = c->rec.feedback;
	o->control_csv = c->rec.control;
}

static gboolean build_video_out(struct call *c, GError **error)
{
	GstElement *out;
	char *elements;
	GstPad *pad;

	agreed(c);
	elements = outgoing_elements(&c->out);
	out = row(c, outgoing_end(&c->out), "src", error,
		  "identity name=camera-joint silent=true ! tee name=self ! " OUTGOING_QUEUE
		  " ! %s %s",
		  elements,
		  c->self_view ? "self. ! queue leaky=downstream max-size-buffers=2 ! "
				 "identity name=self-joint silent=true"
			       : "");
	g_free(elements);
	if (!out)
		return FALSE;
	pad = gst_element_get_static_pad(part_of(c->pipeline, "camera-joint"), "src");
	shutter_put(pad, &c->dark);
	gst_object_unref(pad);
	if (!call_use_device(c, CALL_CAMERA, error) ||
	    (c->self_view && !call_use_device(c, CALL_SELF, error)) ||
	    !outgoing_build(&c->out, c->pipeline, error) ||
	    !gst_element_link_pads(out, "src", c->bin, "send_rtp_sink_0") ||
	    !to_peer(c, "send_rtp_src_0", CALL_VIDEO, c->rtp[CALL_VIDEO],
		     c->theirs.stream[CALL_VIDEO].port, error))
		return FALSE;
	own_session(c, CALL_VIDEO);
	return c->out.ecn == ECN_NOT_ECT || ecn_send_as(c->rtp[CALL_VIDEO], c->out.ecn, error);
}

static gboolean build_audio_out(struct call *c, GError **error)
{
	GstElement *out;

	out = row(c, "apay", "src", error,
		  "identity name=microphone-joint silent=true ! audioconvert ! audioresample ! "
		  "%svolume name=mute mute=%s ! "
		  "opusenc name=opus bitrate=%d audio-type=voice frame-size=20 inband-fec=%s ! "
		  "rtpopuspay name=apay pt=%d",
		  c->cancels ? ECHO_CANCELLER : OPUS_CHANNELS, c->muted ? "true" : "false",
		  AUDIO_BPS, c->theirs.mends ? "true" : "false", AUDIO_PT);
	if (!out || !call_use_device(c, CALL_MICROPHONE, error))
		return FALSE;
	c->mute = gst_object_ref(part_of(c->pipeline, "mute"));
	c->opus = gst_object_ref(part_of(c->pipeline, "opus"));
	part_probe(c->mute, "sink", call_on_raw_sound, c);
	g_object_set(part_of(c->pipeline, "apay"), "ssrc", (guint)c->mine.stream[CALL_AUDIO].ssrc,
		     NULL);
	if (!gst_element_link_pads(out, "src", c->bin, "send_rtp_sink_1"))
		return FALSE;
	own_session(c, CALL_AUDIO);
	return to_peer(c, "send_rtp_src_1", CALL_AUDIO, c->rtp[CALL_AUDIO],
		       c->theirs.stream[CALL_AUDIO].port, error);
}

static gboolean build_in(struct call *c, enum call_media media, GError **error)
{
	const struct codec *codec = codec_of_payload(call_payload(&c->theirs));
	GstElement *in;

	if (media == CALL_VIDEO)
		in = row(c, c->theirs.fec ? "corrector" : "depay0", "sink", error,
			 "%s%s name=depay0 ! %s name=dec ! " SIZE_FIXED
			 " ! identity name=screen-joint silent=true",
			 c->theirs.fec ? "rtpulpfecdec name=corrector ! " : "", codec->depay,
			 codec->decoder);
	else
		in = row(c, "depay1", "sink", error,
			 "rtpopusdepay name=depay1 ! opusdec name=sound plc=true use-inband-fec=%s "
			 "! %s"
			 "identity name=speaker-joint silent=true",
			 c->theirs.mends ? "true" : "false", c->cancels ? ECHO_PROBE : "");
	if (!in || !call_use_device(c, media == CALL_VIDEO ? CALL_SCREEN : CALL_SPEAKER, error))
		return FALSE;
	c->in[media].inlet = in;
	if (media == CALL_VIDEO && c->theirs.fec)
		inbound_correct(c->inbound, part_of(c->pipeline, "corrector"));
	if (media == CALL_AUDIO)
		sound_watch(&c->sound, part_of(c->pipeline, "sound"));
	if (media == CALL_VIDEO)
		size_keep(&c->size, part_of(c->pipeline, "dec"), part_of(c->pipeline, "size"));
	return TRUE;
}

static gboolean ask_pad(struct call *c, const char *name, GError **error)
{
	GstPad *pad = gst_element_request_pad_simple(c->bin, name);

	if (!pad) {
		g_set_error(error, USAGE_ERROR, 0, "rtpbin has no %s", name);
		return FALSE;
	}
	gst_object_unref(pad);
	return TRUE;
}

static gboolean build_session(struct call *c, enum call_media media, GError **error)
{
	const struct offer_stream *theirs = &c->theirs.stream[media];
	char send[32], recv[32], rtp[32];
	struct call_in *in = &c->in[media];

	g_snprintf(rtp, sizeof(rtp), "recv_rtp_sink_%d", media);
	g_snprintf(recv, sizeof(recv), "recv_rtcp_sink_%d", media);
	g_snprintf(send, sizeof(send), "send_rtcp_src_%d", media);
	/* In full: with what corrects, rtpbin does not look at payload types. */
	in->rtp = from_peer(c, rtp, media, c->rtp[media],
			    stream_caps(c, media, "application/x-srtp"), error);
	if (!in->rtp)
		return FALSE;
	own_session(c, media);
	/* before the gate, which knows no probes */
	if (media == CALL_VIDEO && theirs->sends && c->theirs.nonce)
		c->carriage = carriage_new(in->rtp, c->session[media], c->theirs.nonce);
	if (c->rtcp[media]) {
		in->rtcp = from_peer(c, recv, media, c->rtcp[media],
				     gst_caps_new_empty_simple("application/x-srtcp"), error);
		if (!in->rtcp || !to_peer(c, send, media, c->rtcp[media], theirs->port + 1, error))
			return FALSE;
		guard_rtp(c->guard[media], in->rtp, "src");
		guard_rtcp(c->guard[media], in->rtcp, "src");
	} else {
		/* srtpdec tells one from the other, and has a way into the session for both */
		if (!ask_pad(c, recv, error) ||
		    !to_peer(c, send, media, c->rtp[media], theirs->port, error))
			return FALSE;
		guard_both(c->guard[media], in->rtp, "src");
	}
	if (media == CALL_VIDEO && c->rec.rx)
		part_probe(in->rtp, "src", call_on_packet, c);
	if (media == CALL_VIDEO && theirs->sends)
		c->tell = call_tell_new(in->rtp, c->ice ? NULL : c->rtp[media], c->ipv6,
					c->session[media], theirs->ssrc, call_payload(&c->theirs),
					c->out.kind, c->out.control);
	g_object_set(c->session[media], "rtcp-min-interval", (guint64)RTCP_INTERVAL,
		     "rtcp-reduced-size", TRUE, "bandwidth", MEDIA_BANDWIDTH, NULL);
	return !theirs->sends || build_in(c, media, error);
}

static struct guard *new_guard(const struct call *c, enum call_media media)
{
	struct guard *g = guard_new(TRUE, NULL, NULL);

	guard_agree(g, c->theirs.stream[media].ssrc);
	/* with which rtpsession sends feedback while it has no source yet */
	guard_agree(g, G_MAXUINT32);
	guard_own(g, c->mine.stream[media].ssrc);
	if (media == CALL_VIDEO && c->out.repairs.rtx) {
		if (c->theirs.stream[media].ssrc)
			guard_agree(g, rtx_ssrc(&c->theirs.stream[media]));
		guard_own(g, rtx_ssrc(&c->mine.stream[media]));
	}
	return g;
}

gboolean call_has_elements(GError **error)
{
	static const struct {
		const char *element, *package;
	} needed[] = {
		{"videorate", "base"},	   {"videoscale", "base"}, {"audioconvert", "base"},
		{"audioresample", "base"}, {"volume", "base"},	   {"opusenc", "base"},
		{"opusdec", "base"},	   {"rtpbin", "good"},	   {"rtpopuspay", "good"},
		{"udpsink", "good"},	   {"srtpenc", "bad"},
	};

	for (gsize i = 0; i < G_N_ELEMENTS(needed); i++) {
		if (gst_registry_check_feature_version(gst_registry_get(), needed[i].element, 1, 0,
						       0))
			continue;
		g_set_error(error, USAGE_ERROR, 0,
			    "the GStreamer element %s is needed: install gstreamer1.0-plugins-%s",
			    needed[i].element, needed[i].package);
		return FALSE;
	}
	/* a peer with another encoder needs none */
	if (!gst_registry_check_feature_version(gst_registry_get(), "avdec_h264", 1, 0, 0))
		g_printerr(
			"paqm-streamer: H.264 pictures of the peer cannot be decoded, and such a "
			"call will end at once: install gstreamer1.0-libav\n");
	return TRUE;
}

gboolean call_build(struct call *c, GError **error)
{
	GstElement *bin;

	c->cancels = c->cancels && c->theirs.stream[CALL_AUDIO].sends;
	c->pipeline = gst_pipeline_new("call");
	for (int i = 0; i < CALL_MEDIA; i++) {
		c->guard[i] = new_guard(c, i);
		c->capture[i].ssrc = c->theirs.stream[i].ssrc;
		c->capture[i].clock = i == CALL_VIDEO ? VIDEO_CLOCK : AUDIO_CLOCK;
	}
	c->play_ms = JITTER_MS + DECODE_MS;
	gst_pipeline_set_latency(GST_PIPELINE(c->pipeline), c->play_ms * GST_MSECOND);
	bin = gst_element_factory_make("rtpbin", "bin");
	c->bin = gst_object_ref(bin);
	gst_util_set_object_arg(G_OBJECT(bin), "rtp-profile", "avpf");
	/* Sender reports tell when things were captured: pictures wait for the pacer, sound does
	 * not. */
	g_object_set(bin, "latency", JITTER_MS, "rtcp-sync-send-time", FALSE,
		     "max-ts-offset-adjustment", SYNC_STEP, NULL);
	/* before its pads are asked for: that is when it asks for these */
	call_use_srtp(c);
	c->inbound = inbound_new(bin, CALL_VIDEO,
				 &(struct inbound_params){.rtx = c->out.repairs.rtx,
							  .fec = c->theirs.fec > 0,
							  .wait_min = JITTER_MIN_MS,
							  .wait_max = JITTER_MAX_MS,
							  .wait = JITTER_MS});
	g_signal_connect(bin, "new-jitterbuffer", G_CALLBACK(on_buffer), c);
	g_signal_connect(bin, "request-pt-map", G_CALLBACK(on_pt_map), c);
	g_signal_connect(bin, "pad-added", G_CALLBACK(on_pad_added), c);
	gst_bin_add(GST_BIN(c->pipeline), bin);
	if (c->mine.stream[CALL_VIDEO].sends && !build_video_out(c, error))
		return FALSE;
	if (c->mine.stream[CALL_AUDIO].sends && !build_audio_out(c, error))
		return FALSE;
	if (!build_session(c, CALL_VIDEO, error) || !build_session(c, CALL_AUDIO, error))
		return FALSE;
	if (c->cancels)
		c->echo = echo_new(c->pipeline);
	return TRUE;
}

gboolean call_on_inbound(gpointer data)
{
	struct call *c = data;
	gint play = (gint)inbound_tick(c->inbound, c->rec.inbound) + DECODE_MS;

	if (play == c->play_ms)
		return G_SOURCE_CONTINUE;
	/* Sound waits for pictures: lip sync. */
	g_atomic_int_set(&c->play_ms, play);
	g_object_set(c->bin, "latency", (guint)(play - DECODE_MS), NULL);
	gst_pipeline_set_latency(GST_PIPELINE(c->pipeline), play * GST_MSECOND);
	gst_bin_recalculate_latency(GST_BIN(c->pipeline));
	return G_SOURCE_CONTINUE;
}

void call_finish_media(struct call *c)
{
	GstElement *sink;
	GstEvent *begun;
	GstPad *pad;

	for (int i = 0; i < CALL_DEVICES; i++)
		device_stop(c->devices[i]);
	sink = part_of(c->pipeline, "asink");
	if (!sink)
		return;
	pad = gst_element_get_static_pad(sink, "sink");
	begun = gst_pad_get_sticky_event(pad, GST_EVENT_STREAM_START, 0);
	if (!begun) /* no sound has come: the file has none, but a head */
		gst_pad_send_event(pad, gst_event_new_stream_start("nothing"));
	gst_clear_event(&begun);
	gst_pad_send_event(pad, gst_event_new_eos());
	gst_object_unref(pad);
}

static GstBuffer *feed_picture(guint64 n, gpointer data)
{
	struct call *c = data;

	return y4m_frame(&c->y4m, (guint)(n % c->y4m.frames));
}

/* What has come before would be taken for what comes now, on a path that much longer. */
static void drain(GSocket *socket)
{
	char byte;

	for (int n = 0; n < SOCKET_PACKETS; n++)
		if (g_socket_receive_with_blocking(socket, &byte, 1, FALSE, NULL, NULL) < 0)
			return;
}

static void let_in(GstElement *src, GSocket *socket)
{
	if (socket)
		drain(socket);
	gst_element_set_locked_state(src, FALSE);
	gst_element_sync_state_with_parent(src);
}

void call_start_media(struct call *c)
{
	GstClockTime begin;

	for (int i = 0; i < CALL_DEVICES; i++)
		if (c->devices[i])
			device_open(c->devices[i]);
	for (int i = 0; i < CALL_MEDIA; i++) {
		let_in(c->in[i].rtp, c->ice ? NULL : c->rtp[i]);
		if (c->ice)
			ice_let_in(c->ice, i);
		if (c->rtcp[i])
			let_in(c->in[i].rtcp, c->rtcp[i]);
	}
	begin = (GstClockTime)g_get_monotonic_time() * 1000;
	if (c->y4m.frames)
		c->feeds[CALL_VIDEO] =
			feed_start(part_of(c->pipeline, "camera"), (guint64)c->y4m.fps_d,
				   (guint64)c->y4m.fps_n, begin, G_MAXUINT64, feed_picture, c);
	if (c->samples)
		c->feeds[CALL_AUDIO] =
			feed_start(part_of(c->pipeline, "microphone"), SAMPLES_CHUNK_MS, 1000,
				   begin, G_MAXUINT64, samples_chunk, c->samples);
}
