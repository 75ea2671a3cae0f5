// SPDX-License-Identifier: GPL-2.0
/*
 * paqm-streamer call: picture and sound between two hosts, both ways. The ends
 * agree over a TLS link (link.c) on ports, sources and SRTP keys (offer.c);
 * media go from host to host. One pipeline per end:
 *
 *   camera -> paqmh264enc -> rtph264pay -> paqmpacer -> rtpbin 0 -> srtpenc -> udpsink
 *   microphone -> volume -> opusenc -> rtpopuspay ---> rtpbin 1 -> srtpenc -> udpsink
 *   udpsrc -> srtpdec -> rtpbin 0 -> rtph264depay -> avdec_h264 -> screen
 *   udpsrc -> srtpdec -> rtpbin 1 -> rtpopusdepay -> opusdec -> loudspeaker
 *
 * The picture's rate follows a rate controller (control/), as in `send`; sound
 * has a fixed small rate. rtpbin plays both in step by their sender reports.
 */
#include "streamer/call/call.h"

#include <errno.h>
#include <gio/gio.h>
#include <glib-unix.h>
#include <gst/rtp/gstrtpbuffer.h>
#include <gst/video/video.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "streamer/advice.h"
#include "streamer/call/feed.h"
#include "streamer/call/link.h"
#include "streamer/gstpaqmh264enc.h"
#include "streamer/gstpaqmpacer.h"
#include "streamer/options.h"
#include "streamer/rate.h"
#include "streamer/source.h"
#include "streamer/wire.h"

#define PORT_DEFAULT 5090
#define VIDEO_PT 96
#define AUDIO_PT 97
#define AUDIO_BPS 32000
#define SRTP_TAG 10 /* bytes of HMAC-SHA1-80 behind each packet, RFC 3711 */
/*
 * What has arrived is played so much later, picture and sound alike: a lost packet or a late
 * one has JITTER_MS, the rest is for decoders and for sound in pieces of 20 ms.
 */
#define JITTER_MS 60
#define PLAY_MS 100
#define GOP 12	     /* pictures that share a base quantizer, the encoder's default */
#define SILENCE_S 10 /* no packet of the peer for so long: it has vanished */
#define NTP_TO_UNIX_NS (2208988800LL * 1000000000LL)

/* What comes of one kind. */
struct call_in {
	GstElement *inlet;	/* where the peer's stream goes; NULL: it sends none */
	GstElement *rtp, *rtcp; /* sockets */
};

struct call {
	/* options */
	gboolean listen, self_view, muted;
	char *secret_path, *source, *audio, *sink, *audio_sink, *record_dir, *name, *paqmd,
		*rate_max_text, *rate_min_text;
	gdouble duration;
	guint64 rate_max, rate_min;

	GInetSocketAddress *address; /* where to listen, or whom to call */
	struct call_link *link;
	struct offer mine, theirs;
	GSocket *rtp[CALL_MEDIA], *rtcp[CALL_MEDIA];

	struct y4m y4m;
	GBytes *samples;
	struct feed *feeds[CALL_MEDIA];

	GMainLoop *main;
	GstElement *pipeline, *bin, *encoder, *pacer, *overlay, *mute;
	struct call_in in[CALL_MEDIA];
	GObject *session[CALL_MEDIA];
	struct rate *rate;
	struct advice *advice;
	double interval; /* of pictures, s */
	guint64 rate_now, advised;
	gint64 wall_offset; /* CLOCK_REALTIME - CLOCK_MONOTONIC */
	gint heard;	    /* last packet of the peer, s of the monotonic clock */
	guint64 played[CALL_MEDIA];
	gint64 last_play_ns;
	guint32 ts_offset;
	guint frames, gop_qp;
	gint64 first_pts;
	double fraction_lost, rtt_ms;
	guint64 reports[CALL_MEDIA];
	gboolean peer_muted;
	struct call_record rec;
	const char *why; /* the call ended */
	int status;
};

static void end_call(struct call *c, const char *why)
{
	if (!c->why)
		c->why = why;
	if (c->main)
		g_main_loop_quit(c->main);
}

/* Rate and advice */

static void apply_rate(guint64 rate, gpointer data)
{
	struct call *c = data;

	c->rate_now = rate;
	if (c->encoder)
		g_object_set(c->encoder, "rate", rate, NULL);
}

static void on_advice(const struct paqm_client_advice *a, gpointer data)
{
	static const char *const causes[] = {"none", "erf", "ecf", "expired", "lost", "refused"};
	struct call *c = data;

	c->advised = a->rate_bps;
	rate_advise(c->rate, &(struct ctl_advice){.rate = (double)a->rate_bps,
						  .value = a->value,
						  .router = a->router_id,
						  .seq = a->seq});
	if (c->rec.feedback)
		fprintf(c->rec.feedback, "%" G_GINT64_FORMAT ",%s,%s,%.9g,%" G_GUINT64_FORMAT "\n",
			realtime_ns(), a->router,
			(guint)a->cause < G_N_ELEMENTS(causes) ? causes[a->cause] : "unknown",
			(double)a->value, (guint64)a->rate_bps);
}

static void register_flow(struct call *c)
{
	struct advice_flow flow = {
		.from_port = socket_port(c->rtp[CALL_VIDEO]),
		.to = link_peer(c->link),
		.to_port = c->theirs.stream[CALL_VIDEO].port,
		.ssrc = c->mine.stream[CALL_VIDEO].ssrc,
		.floor_bps = c->rate_min,
		.ceil_bps = c->rate_max,
		.gop_s = GOP * c->interval,
		.answer_s = c->interval,
	};

	if (!c->paqmd || strcmp(c->paqmd, "none"))
		c->advice = advice_new(c->paqmd, &flow, on_advice, c);
}

/* Logs of what is sent */

static gint64 wall_ns(struct call *c, GstClockTime running)
{
	return (gint64)(gst_element_get_base_time(c->pipeline) + running) + c->wall_offset;
}

static void on_picture(GstElement *enc, const GstStructure *p, gpointer data)
{
	guint frame = 0, gop = 0, bytes = 0, wire = 0, packets = 0, index;
	double qp = 0, bound = 0, rate = 0;
	struct call *c = data;
	guint64 pts = 0;
	int qp_base = 0;

	(void)enc;
	gst_structure_get(p, "pts", G_TYPE_UINT64, &pts, "frame", G_TYPE_UINT, &frame, "gop",
			  G_TYPE_UINT, &gop, "qp-base", G_TYPE_INT, &qp_base, "qp", G_TYPE_DOUBLE,
			  &qp, "bytes", G_TYPE_UINT, &bytes, "wire-bytes", G_TYPE_UINT, &wire,
			  "packets", G_TYPE_UINT, &packets, "bound-bytes", G_TYPE_DOUBLE, &bound,
			  "rate", G_TYPE_DOUBLE, &rate, NULL);
	if (c->first_pts < 0)
		c->first_pts = (gint64)pts;
	index = (guint)(((gint64)pts - c->first_pts) / 1e9 / c->interval + 0.5);
	if (c->y4m.frames)
		index %= c->y4m.frames;
	c->frames++;
	c->gop_qp = (guint)qp;
	if (c->rec.frames)
		fprintf(c->rec.frames,
			"%u,%" G_GINT64_FORMAT ",%u,%u,%u,%s,%d,%.2f,%u,%u,%u,%.0f,%.0f\n", frame,
			wall_ns(c, pts),
			c->ts_offset + (guint32)gst_util_uint64_scale_int(pts, 90000, GST_SECOND),
			index, gop, gst_structure_get_string(p, "type"), qp_base, qp, bytes, wire,
			packets, bound, rate);
}

static void on_group(GstElement *enc, const GstStructure *g, gpointer data)
{
	static const char *const keys[] = {"R-bits",   "r-eff",	 "b-eff",  "X",
					   "overflow", "x",	 "e1",	   "e2",
					   "R-open",   "R-temp", "Q-star", "r-t"};
	struct call *c = data;
	guint gop = 0, frames = 0;
	int qp = 0;

	(void)enc;
	if (!c->rec.gop)
		return;
	gst_structure_get(g, "gop", G_TYPE_UINT, &gop, "frames", G_TYPE_UINT, &frames, "qp-base",
			  G_TYPE_INT, &qp, NULL);
	fprintf(c->rec.gop, "%u,%" G_GINT64_FORMAT ",%u,%d", gop, realtime_ns(), frames, qp);
	for (gsize i = 0; i < G_N_ELEMENTS(keys); i++) {
		double v = NAN;

		gst_structure_get_double(g, keys[i], &v);
		fprintf(c->rec.gop, ",%.6g", v);
	}
	fputc('\n', c->rec.gop);
}

/* Logs of what is received */

/* A packet from the wire, still encrypted: what strangers send is not ours. */
static GstPadProbeReturn on_packet(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	GstBuffer *buf = GST_PAD_PROBE_INFO_BUFFER(info);
	struct call *c = data;
	guint8 head[12];
	int around = g_socket_get_family(c->rtp[CALL_VIDEO]) == G_SOCKET_FAMILY_IPV6 ? 48 : 28;

	(void)pad;
	if (gst_buffer_extract(buf, 0, head, sizeof(head)) == sizeof(head) &&
	    GST_READ_UINT32_BE(head + 8) == c->theirs.stream[CALL_VIDEO].ssrc)
		fprintf(c->rec.rx, "%" G_GINT64_FORMAT ",%u,%u,%d,%" G_GSIZE_FORMAT "\n",
			realtime_ns(), GST_READ_UINT16_BE(head + 2), GST_READ_UINT32_BE(head + 4),
			head[1] >> 7, gst_buffer_get_size(buf) + around);
	return GST_PAD_PROBE_OK;
}

static void let_in(GstElement *src)
{
	gst_element_set_locked_state(src, FALSE);
	gst_element_sync_state_with_parent(src);
}

/* A packet that is truly the peer's. */
static GstPadProbeReturn on_heard(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	struct call *c = data;

	(void)pad;
	(void)info;
	g_atomic_int_set(&c->heard, (gint)(g_get_monotonic_time() / G_USEC_PER_SEC));
	return GST_PAD_PROBE_OK;
}

/* When a buffer is played: at its time plus the latency, or at once if that is past. */
static void on_play(struct call *c, GstPad *pad, GstBuffer *buf, enum call_media media)
{
	static GstCaps *ntp;
	const GstReferenceTimestampMeta *meta;
	gint64 now = monotonic_ns(), play, capture = 0;
	const GstSegment *segment;
	GstEvent *event;
	guint64 running;

	if (g_once_init_enter(&ntp))
		g_once_init_leave(&ntp, gst_caps_new_empty_simple("timestamp/x-ntp"));
	event = gst_pad_get_sticky_event(pad, GST_EVENT_SEGMENT, 0);
	if (!event)
		return;
	gst_event_parse_segment(event, &segment);
	running = gst_segment_to_running_time(segment, GST_FORMAT_TIME, GST_BUFFER_PTS(buf));
	gst_event_unref(event);
	play = (gint64)(gst_element_get_base_time(c->pipeline) + running + PLAY_MS * GST_MSECOND);
	play = MAX(play, now);
	meta = gst_buffer_get_reference_timestamp_meta(buf, ntp);
	if (meta)
		capture = (gint64)meta->timestamp - NTP_TO_UNIX_NS;
	if (c->rec.play[media])
		fprintf(c->rec.play[media],
			"%" G_GUINT64_FORMAT ",%" G_GINT64_FORMAT ",%" G_GINT64_FORMAT
			",%" G_GINT64_FORMAT "\n",
			c->played[media], capture, now + c->wall_offset, play + c->wall_offset);
	c->played[media]++;
	if (media == CALL_VIDEO)
		c->last_play_ns = capture ? play + c->wall_offset - capture : 0;
}

static GstPadProbeReturn on_video_played(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	on_play(data, pad, GST_PAD_PROBE_INFO_BUFFER(info), CALL_VIDEO);
	return GST_PAD_PROBE_OK;
}

static GstPadProbeReturn on_audio_played(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	on_play(data, pad, GST_PAD_PROBE_INFO_BUFFER(info), CALL_AUDIO);
	return GST_PAD_PROBE_OK;
}

/* The peer's reports about what we send. */
static void poll_reports(struct call *c, enum call_media media)
{
	GstStructure *stats = NULL;
	const GValue *list;

	g_object_get(c->session[media], "stats", &stats, NULL);
	list = stats ? gst_structure_get_value(stats, "source-stats") : NULL;
	if (list) {
		G_GNUC_BEGIN_IGNORE_DEPRECATIONS
		GValueArray *sources = g_value_get_boxed(list);

		for (guint i = 0; sources && i < sources->n_values; i++) {
			const GstStructure *src =
				g_value_get_boxed(g_value_array_get_nth(sources, i));
			guint lsr = 0, dlsr = 0, fraction = 0, about = 0, seq = 0, jitter = 0,
			      rtt = 0;
			gboolean have = FALSE;
			int lost = 0;
			guint64 id;

			gst_structure_get_boolean(src, "have-rb", &have);
			if (!have || !gst_structure_get_uint(src, "rb-ssrc", &about) ||
			    about != c->mine.stream[media].ssrc)
				continue;
			gst_structure_get_uint(src, "rb-lsr", &lsr);
			gst_structure_get_uint(src, "rb-dlsr", &dlsr);
			gst_structure_get_uint(src, "rb-exthighestseq", &seq);
			gst_structure_get_uint(src, "rb-fractionlost", &fraction);
			gst_structure_get_uint(src, "rb-jitter", &jitter);
			gst_structure_get_uint(src, "rb-round-trip", &rtt);
			gst_structure_get_int(src, "rb-packetslost", &lost);
			id = ((guint64)lsr << 32) ^ ((guint64)seq << 16) ^ dlsr ^ 1;
			if (id == c->reports[media])
				continue;
			c->reports[media] = id;
			if (media == CALL_VIDEO) {
				c->fraction_lost = fraction / 256.0;
				c->rtt_ms = rtt * 1000.0 / 65536;
			}
			if (c->rec.rtcp)
				fprintf(c->rec.rtcp, "%" G_GINT64_FORMAT ",%s,%.4f,%d,%.3f,%.3f\n",
					realtime_ns(), call_media_names[media], fraction / 256.0,
					lost,
					jitter * 1000.0 / (media == CALL_VIDEO ? 90000 : 48000),
					rtt * 1000.0 / 65536);
		}
		G_GNUC_END_IGNORE_DEPRECATIONS
	}
	if (stats)
		gst_structure_free(stats);
}

/* What a person wants to see. */
static char *statistics(struct call *c)
{
	return g_strdup_printf("%.0f kbit/s%s, quantizer %u, loss %.1f %%, round trip %.0f ms, "
			       "their picture is %.0f ms old%s%s",
			       c->rate_now / 1e3,
			       c->advised ? " (a router's advice)" : " (own judgement)", c->gop_qp,
			       c->fraction_lost * 100, c->rtt_ms, c->last_play_ns / 1e6,
			       c->muted ? ", muted" : "", c->peer_muted ? ", peer muted" : "");
}

static gboolean on_second(gpointer data)
{
	struct call *c = data;
	char *text;

	for (int i = 0; i < CALL_MEDIA; i++)
		if (c->session[i])
			poll_reports(c, i);
	if (g_get_monotonic_time() / G_USEC_PER_SEC - g_atomic_int_get(&c->heard) > SILENCE_S)
		end_call(c, "no packet of the peer for 10 s");
	text = statistics(c);
	if (c->overlay)
		g_object_set(c->overlay, "text", text, NULL);
	else if (isatty(STDOUT_FILENO))
		printf("\r\033[K%s", text);
	fflush(stdout);
	g_free(text);
	return G_SOURCE_CONTINUE;
}

static gboolean on_tick(gpointer data)
{
	struct call *c = data;
	guint64 bytes;

	if (!c->rate)
		return G_SOURCE_CONTINUE;
	g_object_get(c->pacer, "wire-bytes", &bytes, NULL);
	rate_sent(c->rate, bytes);
	rate_tick(c->rate);
	return G_SOURCE_CONTINUE;
}

/* What people do */

static void set_mute(struct call *c, gboolean muted)
{
	char *note = note_write(muted ? NOTE_MUTED : NOTE_UNMUTED, NULL);

	c->muted = muted;
	if (c->mute)
		g_object_set(c->mute, "mute", muted, NULL);
	link_send(c->link, note);
	g_free(note);
	call_record_event(&c->rec, "muted", muted ? "yes" : "no");
}

static gboolean on_mute(gpointer data)
{
	struct call *c = data;

	set_mute(c, !c->muted);
	return G_SOURCE_CONTINUE;
}

static gboolean on_key(gint fd, GIOCondition condition, gpointer data)
{
	struct call *c = data;
	char keys[64];
	ssize_t n = read(fd, keys, sizeof(keys));

	(void)condition;
	if (n <= 0)
		return G_SOURCE_REMOVE;
	for (ssize_t i = 0; i < n; i++) {
		if (keys[i] == 'm')
			set_mute(c, !c->muted);
		else if (keys[i] == 'q')
			end_call(c, "you hung up");
	}
	return G_SOURCE_CONTINUE;
}

static gboolean on_stop(gpointer data)
{
	end_call(data, "you hung up");
	return G_SOURCE_CONTINUE;
}

static gboolean on_length(gpointer data)
{
	end_call(data, "the time given with --duration is over");
	return G_SOURCE_REMOVE;
}

static void on_line(const char *line, gsize len, const char *why, gpointer data)
{
	char text[OFFER_NAME];
	struct call *c = data;

	if (!line) {
		end_call(c, why);
		return;
	}
	switch (note_read(line, len, text)) {
	case NOTE_MUTED:
	case NOTE_UNMUTED:
		c->peer_muted = note_read(line, len, text) == NOTE_MUTED;
		call_record_event(&c->rec, "peer-muted", c->peer_muted ? "yes" : "no");
		break;
	case NOTE_BYE:
		end_call(c, "the peer hung up");
		break;
	case NOTE_NONE:
		break;
	}
}

static gboolean on_message(GstBus *bus, GstMessage *msg, gpointer data)
{
	struct call *c = data;
	GError *error = NULL;
	char *debug = NULL;

	(void)bus;
	if (GST_MESSAGE_TYPE(msg) == GST_MESSAGE_LATENCY) {
		gst_bin_recalculate_latency(GST_BIN(c->pipeline));
	} else if (GST_MESSAGE_TYPE(msg) == GST_MESSAGE_ERROR) {
		gst_message_parse_error(msg, &error, &debug);
		g_printerr("paqm-streamer: %s: %s\n", GST_OBJECT_NAME(msg->src), error->message);
		g_debug("%s", debug);
		call_record_event(&c->rec, "error", GST_OBJECT_NAME(msg->src));
		g_error_free(error);
		g_free(debug);
		c->status = EXIT_RUN;
		end_call(c, "an element failed");
	}
	return G_SOURCE_CONTINUE;
}

/* SRTP */

static GstBuffer *key_buffer(const struct offer_stream *st)
{
	return gst_buffer_new_memdup(st->key, OFFER_KEY);
}

/* One srtpenc for RTP and RTCP of a session; rtpbin wants its pad to be there. */
static GstElement *encoder_of(struct call *c, guint session, gboolean rtcp)
{
	GstElement *enc;
	GstBuffer *key;
	char *name;
	GstPad *pad;

	if (session >= CALL_MEDIA)
		return NULL;
	name = g_strdup_printf("srtpenc%u", session);
	enc = gst_bin_get_by_name(GST_BIN(c->bin), name);
	if (!enc) {
		enc = gst_object_ref_sink(gst_element_factory_make("srtpenc", name));
		key = key_buffer(&c->mine.stream[session]);
		g_object_set(enc, "key", key, NULL);
		gst_buffer_unref(key);
	}
	g_free(name);
	name = g_strdup_printf(rtcp ? "rtcp_sink_%u" : "rtp_sink_%u", session);
	pad = gst_element_request_pad_simple(enc, name);
	g_free(name);
	gst_object_unref(pad);
	return enc;
}

static GstElement *on_rtp_encoder(GstElement *bin, guint session, gpointer data)
{
	(void)bin;
	return encoder_of(data, session, FALSE);
}

static GstElement *on_rtcp_encoder(GstElement *bin, guint session, gpointer data)
{
	(void)bin;
	return encoder_of(data, session, TRUE);
}

static GstCaps *on_key_wanted(GstElement *dec, guint ssrc, gpointer data)
{
	const struct offer_stream *st = data;
	GstBuffer *key = key_buffer(st);
	GstCaps *caps = gst_caps_new_simple("application/x-srtp", "srtp-key", GST_TYPE_BUFFER, key,
					    "srtp-cipher", G_TYPE_STRING, "aes-128-icm",
					    "srtp-auth", G_TYPE_STRING, "hmac-sha1-80",
					    "srtcp-cipher", G_TYPE_STRING, "aes-128-icm",
					    "srtcp-auth", G_TYPE_STRING, "hmac-sha1-80", NULL);

	(void)dec;
	(void)ssrc;
	gst_buffer_unref(key);
	return caps;
}

static GstElement *on_decoder(GstElement *bin, guint session, gpointer data)
{
	struct call *c = data;
	GstElement *dec;
	char *name;

	if (session >= CALL_MEDIA)
		return NULL;
	name = g_strdup_printf("srtpdec%u", session);
	dec = gst_bin_get_by_name(GST_BIN(bin), name);
	if (!dec) {
		dec = gst_object_ref_sink(gst_element_factory_make("srtpdec", name));
		g_signal_connect(dec, "request-key", G_CALLBACK(on_key_wanted),
				 &c->theirs.stream[session]);
	}
	g_free(name);
	return dec;
}

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
		g_printerr("paqm-streamer: the peer's %s is not what was agreed\n",
			   call_media_names[session]);
	gst_object_unref(sink);
}

static GstCaps *on_pt_map(GstElement *bin, guint session, guint pt, gpointer data)
{
	GstCaps *caps = NULL;

	(void)bin;
	(void)data;
	if (session == CALL_VIDEO && pt == VIDEO_PT) {
		caps = gst_caps_from_string("application/x-rtp, " RTP_CAPS);
		/* a lost picture is asked for anew: RFC 4585 section 6.3.1 */
		gst_caps_set_simple(caps, "extmap-" G_STRINGIFY(TWCC_ID), G_TYPE_STRING, TWCC_URI,
				    "rtcp-fb-nack-pli", G_TYPE_BOOLEAN, TRUE, NULL);
	} else if (session == CALL_AUDIO && pt == AUDIO_PT) {
		caps = gst_caps_from_string("application/x-rtp, media=(string)audio, "
					    "clock-rate=(int)48000, encoding-name=(string)OPUS");
	}
	return caps;
}

/* The pipeline */

static gboolean is_none(const char *text)
{
	return !strcmp(text, "none");
}

static char *camera(struct call *c, GError **error)
{
	static const char raw[] = "videoconvert ! videoscale ! videorate ! "
				  "video/x-raw,format=I420,width=640,height=360,framerate=24/1";
	char *uri, *text;

	c->interval = 1.0 / 24;
	if (!strcmp(c->source, "test"))
		return g_strdup_printf("videotestsrc is-live=true pattern=ball ! %s", raw);
	if (!strcmp(c->source, "screen"))
		return g_strdup_printf("ximagesrc use-damage=false ! %s", raw);
	if (!strcmp(c->source, "camera"))
		return g_strdup_printf("v4l2src ! decodebin ! %s", raw);
	if (g_str_has_prefix(c->source, "/dev/video"))
		return g_strdup_printf("v4l2src device=%s ! decodebin ! %s", c->source, raw);
	if (g_str_has_suffix(c->source, ".y4m")) {
		if (!y4m_open(&c->y4m, c->source, error))
			return NULL;
		c->interval = (double)c->y4m.fps_d / c->y4m.fps_n;
		return g_strdup("appsrc name=camera is-live=true format=time max-buffers=4 "
				"leaky-type=downstream");
	}
	uri = gst_filename_to_uri(c->source, error);
	if (!uri)
		return NULL;
	text = g_strdup_printf("uridecodebin uri=\"%s\" caps=video/x-raw ! identity sync=true ! %s",
			       uri, raw);
	g_free(uri);
	return text;
}

static char *microphone(struct call *c, GError **error)
{
	if (!strcmp(c->audio, "mic"))
		return g_strdup("autoaudiosrc");
	if (!strcmp(c->audio, "test"))
		return g_strdup("audiotestsrc is-live=true wave=ticks");
	c->samples = feed_load_audio(c->audio, error);
	if (!c->samples)
		return NULL;
	return g_strdup_printf("appsrc name=microphone is-live=true format=time max-buffers=10 "
			       "leaky-type=downstream caps=audio/x-raw,format=S16LE,rate=%d,"
			       "channels=1,layout=interleaved",
			       FEED_RATE);
}

static char *screen(struct call *c)
{
	if (is_none(c->sink))
		return g_strdup("fakesink name=vsink sync=true async=false");
	if (strcmp(c->sink, "window"))
		return g_strdup_printf("video/x-raw,format=I420 ! y4menc ! "
				       "filesink name=vsink location=\"%s\" sync=true async=false",
				       c->sink);
	return g_strdup("autovideosink name=vsink");
}

static char *loudspeaker(struct call *c)
{
	if (is_none(c->audio_sink))
		return g_strdup("fakesink name=asink sync=true async=false");
	if (strcmp(c->audio_sink, "auto"))
		return g_strdup_printf("wavenc ! "
				       "filesink name=asink location=\"%s\" sync=true async=false",
				       c->audio_sink);
	return g_strdup("autoaudiosink name=asink");
}

/* Elements in a row, as gst-launch has them, added to the pipeline; NULL on failure. */
static GstElement *row(struct call *c, GError **error, const char *format, ...) G_GNUC_PRINTF(3, 4);
static GstElement *row(struct call *c, GError **error, const char *format, ...)
{
	GstElement *bin;
	va_list args;
	char *text;

	va_start(args, format);
	text = g_strdup_vprintf(format, args);
	va_end(args);
	bin = gst_parse_bin_from_description_full(text, TRUE, NULL, GST_PARSE_FLAG_FATAL_ERRORS,
						  error);
	g_free(text);
	if (bin)
		gst_bin_add(GST_BIN(c->pipeline), bin);
	return bin;
}

static GstElement *part(struct call *c, const char *name)
{
	GstElement *e = gst_bin_get_by_name(GST_BIN(c->pipeline), name);

	if (e)
		gst_object_unref(e); /* the pipeline keeps it */
	return e;
}

static void probe(GstElement *e, const char *name, GstPadProbeCallback fn, gpointer data)
{
	GstPad *pad = gst_element_get_static_pad(e, name);

	gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_BUFFER, fn, data, NULL);
	gst_object_unref(pad);
}

/* Packets to the peer's port of a session; @pad is rtpbin's. */
static gboolean to_peer(struct call *c, const char *pad, GSocket *socket, guint16 port,
			GError **error)
{
	char *host = g_inet_address_to_string(link_peer(c->link));
	GstElement *sink = gst_element_factory_make("udpsink", NULL);

	g_object_set(sink, "host", host, "port", (gint)port, "socket", socket, "sync", FALSE,
		     "async", FALSE, "close-socket", FALSE, NULL);
	g_free(host);
	gst_bin_add(GST_BIN(c->pipeline), sink);
	if (gst_element_link_pads(c->bin, pad, sink, "sink"))
		return TRUE;
	g_set_error(error, USAGE_ERROR, 0, "rtpbin has no %s", pad);
	return FALSE;
}

/* Packets that come to a socket; @pad is rtpbin's. */
static GstElement *from_peer(struct call *c, const char *pad, GSocket *socket, const char *caps,
			     GError **error)
{
	GstElement *src = gst_element_factory_make("udpsrc", NULL);
	GstCaps *kind = gst_caps_from_string(caps);

	g_object_set(src, "socket", socket, "close-socket", FALSE, "buffer-size", 1 << 20, "caps",
		     kind, NULL);
	gst_caps_unref(kind);
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
}

static gboolean build_video_out(struct call *c, GError **error)
{
	char *cam = camera(c, error);
	GstElement *out, *pay;
	GstPad *pad;

	if (!cam)
		return FALSE;
	out = row(c, error,
		  "%s ! tee name=self ! queue ! paqmh264enc name=enc rate-max=%" G_GUINT64_FORMAT
		  " ! rtph264pay name=pay mtu=%d pt=%d config-interval=0 aggregate-mode=none ! "
		  "paqmpacer name=pacer %s",
		  cam, c->rate_max, WIRE_RTP_MTU - SRTP_TAG, VIDEO_PT,
		  c->self_view ? "self. ! queue leaky=downstream max-size-buffers=2 ! "
				 "videoconvert ! autovideosink sync=false"
			       : "");
	g_free(cam);
	if (!out)
		return FALSE;
	c->encoder = gst_object_ref(part(c, "enc"));
	c->pacer = gst_object_ref(part(c, "pacer"));
	g_object_set(c->pacer, "interval", (guint64)(c->interval * GST_SECOND), NULL);
	g_signal_connect(c->encoder, "picture", G_CALLBACK(on_picture), c);
	g_signal_connect(c->encoder, "group", G_CALLBACK(on_group), c);
	pay = part(c, "pay");
	g_object_set(pay, "ssrc", (guint)c->mine.stream[CALL_VIDEO].ssrc, "timestamp-offset",
		     c->ts_offset, NULL);
	if (!rate_number_packets(pay, error))
		return FALSE;
	if (c->y4m.frames) {
		GstCaps *caps = y4m_caps(&c->y4m);

		g_object_set(part(c, "camera"), "caps", caps, NULL);
		gst_caps_unref(caps);
	}
	if (!gst_element_link_pads(out, "src", c->bin, "send_rtp_sink_0") ||
	    !to_peer(c, "send_rtp_src_0", c->rtp[CALL_VIDEO], c->theirs.stream[CALL_VIDEO].port,
		     error))
		return FALSE;
	c->rate = rate_new(
		&ctl_auto,
		&(struct ctl_params){(double)c->rate_min, (double)c->rate_max, WIRE_IP_PACKET},
		c->rec.control, apply_rate, c);
	pad = gst_element_get_static_pad(out, "src");
	own_session(c, CALL_VIDEO);
	rate_watch(c->rate, pad, c->session[CALL_VIDEO], c->mine.stream[CALL_VIDEO].ssrc,
		   WIRE_HEADERS - 12 + SRTP_TAG, NULL);
	gst_object_unref(pad);
	return TRUE;
}

static gboolean build_audio_out(struct call *c, GError **error)
{
	char *mic = microphone(c, error);
	GstElement *out;

	if (!mic)
		return FALSE;
	out = row(c, error,
		  "%s ! audioconvert ! audioresample ! volume name=mute mute=%s ! "
		  "opusenc bitrate=%d audio-type=voice frame-size=20 ! rtpopuspay name=apay pt=%d",
		  mic, c->muted ? "true" : "false", AUDIO_BPS, AUDIO_PT);
	g_free(mic);
	if (!out)
		return FALSE;
	c->mute = gst_object_ref(part(c, "mute"));
	g_object_set(part(c, "apay"), "ssrc", (guint)c->mine.stream[CALL_AUDIO].ssrc, NULL);
	if (!gst_element_link_pads(out, "src", c->bin, "send_rtp_sink_1"))
		return FALSE;
	own_session(c, CALL_AUDIO);
	return to_peer(c, "send_rtp_src_1", c->rtp[CALL_AUDIO], c->theirs.stream[CALL_AUDIO].port,
		       error);
}

static gboolean build_in(struct call *c, enum call_media media, GError **error)
{
	char *out = media == CALL_VIDEO ? screen(c) : loudspeaker(c);
	gboolean overlay =
		!strcmp(c->sink, "window") &&
		gst_registry_check_feature_version(gst_registry_get(), "textoverlay", 1, 0, 0);
	GstElement *in;

	if (media == CALL_VIDEO)
		in = row(c, error, "rtph264depay name=depay0 ! avdec_h264 max-threads=1 ! %s%s",
			 overlay ? "videoconvert ! textoverlay name=overlay valignment=top "
				   "halignment=left font-desc=\"Sans 8\" ! videoconvert ! "
				 : "videoconvert ! ",
			 out);
	else
		in = row(c, error,
			 "rtpopusdepay name=depay1 ! opusdec plc=true ! audioconvert ! "
			 "audioresample ! %s",
			 out);
	g_free(out);
	if (!in)
		return FALSE;
	c->in[media].inlet = in;
	probe(part(c, media == CALL_VIDEO ? "depay0" : "depay1"), "sink", on_heard, c);
	probe(part(c, media == CALL_VIDEO ? "vsink" : "asink"), "sink",
	      media == CALL_VIDEO ? on_video_played : on_audio_played, c);
	if (media == CALL_VIDEO && overlay)
		c->overlay = gst_object_ref(part(c, "overlay"));
	return TRUE;
}

static gboolean build_session(struct call *c, enum call_media media, GError **error)
{
	static const char srtp[] = "application/x-srtp", srtcp[] = "application/x-srtcp";
	const struct offer_stream *theirs = &c->theirs.stream[media];
	char send[32], recv[32], rtp[32];
	struct call_in *in = &c->in[media];

	g_snprintf(rtp, sizeof(rtp), "recv_rtp_sink_%d", media);
	g_snprintf(recv, sizeof(recv), "recv_rtcp_sink_%d", media);
	g_snprintf(send, sizeof(send), "send_rtcp_src_%d", media);
	in->rtp = from_peer(c, rtp, c->rtp[media], srtp, error);
	if (!in->rtp)
		return FALSE;
	in->rtcp = from_peer(c, recv, c->rtcp[media], srtcp, error);
	if (!in->rtcp || !to_peer(c, send, c->rtcp[media], theirs->port + 1, error))
		return FALSE;
	if (media == CALL_VIDEO && c->rec.rx)
		probe(in->rtp, "src", on_packet, c);
	own_session(c, media);
	g_object_set(c->session[media], "rtcp-min-interval", (guint64)RTCP_INTERVAL,
		     "rtcp-reduced-size", TRUE, "bandwidth", MEDIA_BANDWIDTH, NULL);
	return !theirs->sends || build_in(c, media, error);
}

static gboolean build(struct call *c, GError **error)
{
	GstElement *bin;

	c->pipeline = gst_pipeline_new("call");
	gst_pipeline_set_latency(GST_PIPELINE(c->pipeline), PLAY_MS * GST_MSECOND);
	bin = gst_element_factory_make("rtpbin", "bin");
	if (!bin || !gst_registry_check_feature_version(gst_registry_get(), "srtpenc", 1, 0, 0)) {
		g_clear_object(&bin);
		g_set_error(error, USAGE_ERROR, 0,
			    "the GStreamer elements rtpbin and srtpenc are needed: install "
			    "gstreamer1.0-plugins-good and gstreamer1.0-plugins-bad");
		return FALSE;
	}
	c->bin = gst_object_ref(bin);
	gst_util_set_object_arg(G_OBJECT(bin), "rtp-profile", "avpf");
	/* Sender reports tell when things were captured: pictures wait for the pacer, sound does
	 * not. */
	g_object_set(bin, "latency", JITTER_MS, "add-reference-timestamp-meta", TRUE,
		     "rtcp-sync-send-time", FALSE, NULL);
	/* before its pads are asked for: that is when it asks for these */
	g_signal_connect(bin, "request-rtp-encoder", G_CALLBACK(on_rtp_encoder), c);
	g_signal_connect(bin, "request-rtcp-encoder", G_CALLBACK(on_rtcp_encoder), c);
	g_signal_connect(bin, "request-rtp-decoder", G_CALLBACK(on_decoder), c);
	g_signal_connect(bin, "request-rtcp-decoder", G_CALLBACK(on_decoder), c);
	g_signal_connect(bin, "request-pt-map", G_CALLBACK(on_pt_map), c);
	g_signal_connect(bin, "pad-added", G_CALLBACK(on_pad_added), c);
	gst_bin_add(GST_BIN(c->pipeline), bin);
	if (c->mine.stream[CALL_VIDEO].sends && !build_video_out(c, error))
		return FALSE;
	if (c->mine.stream[CALL_AUDIO].sends && !build_audio_out(c, error))
		return FALSE;
	return build_session(c, CALL_VIDEO, error) && build_session(c, CALL_AUDIO, error);
}

/* Before the link: what the peer will be told. */
static gboolean prepare_offer(struct call *c, GError **error)
{
	GSocketFamily family =
		g_inet_address_get_family(g_inet_socket_address_get_address(c->address));
	GInetAddress *any = g_inet_address_new_any(family);
	gboolean ok = TRUE;

	for (int i = 0; i < CALL_MEDIA && ok; i++) {
		struct offer_stream *st = &c->mine.stream[i];

		st->sends = !is_none(i == CALL_VIDEO ? c->source : c->audio);
		st->ssrc = g_random_int() | 1;
		if (getentropy(st->key, OFFER_KEY) < 0)
			g_error("no random numbers: %s", g_strerror(errno));
		ok = FALSE;
		for (int attempt = 0; attempt < 16 && !ok; attempt++) {
			c->rtp[i] = open_socket(any, 0, error);
			if (!c->rtp[i])
				break;
			c->rtcp[i] = open_socket(any, socket_port(c->rtp[i]) + 1, NULL);
			ok = c->rtcp[i] != NULL;
			if (!ok)
				g_clear_object(&c->rtp[i]);
		}
		if (ok)
			st->port = socket_port(c->rtp[i]);
		else if (error && !*error)
			g_set_error(error, USAGE_ERROR, 0,
				    "no two neighbouring UDP ports are free");
	}
	g_object_unref(any);
	g_strlcpy(c->mine.name, c->name ? c->name : g_get_host_name(), OFFER_NAME);
	c->mine.rate_max = c->rate_max;
	c->ts_offset = g_random_int();
	return ok;
}

static gboolean agree(struct call *c, GError **error)
{
	GBytes *secret = link_secret(c->secret_path, error);
	char *line, *answer = NULL;
	gboolean ok;

	if (!secret || !prepare_offer(c, error)) {
		g_clear_pointer(&secret, g_bytes_unref);
		return FALSE;
	}
	printf(c->listen ? "waiting for a call on port %u\n" : "calling port %u\n",
	       g_inet_socket_address_get_port(c->address));
	fflush(stdout);
	c->link = c->listen ? link_listen(c->address, secret, error)
			    : link_connect(c->address, secret, error);
	g_bytes_unref(secret);
	if (!c->link)
		return FALSE;
	line = offer_write(&c->mine);
	ok = link_exchange(c->link, line, &answer, error) &&
	     offer_read(&c->theirs, answer, strlen(answer), error);
	g_free(line);
	g_free(answer);
	if (!ok)
		return FALSE;
	/* a receiver may ask for less than we would send */
	c->rate_max = MIN(c->rate_max, c->theirs.rate_max);
	c->rate_min = MIN(c->rate_min, c->rate_max);
	printf("talking to %s\n", c->theirs.name);
	fflush(stdout);
	return TRUE;
}

static gboolean has_display(void)
{
	const char *x = g_getenv("DISPLAY"), *wayland = g_getenv("WAYLAND_DISPLAY");

	return (x && *x) || (wayland && *wayland);
}

static gboolean parse(struct call *c, int argc, char **argv, GError **error)
{
	GOptionEntry entries[] = {
		{"listen", 0, 0, G_OPTION_ARG_NONE, &c->listen,
		 "Wait for a call, on the address given or on all", NULL},
		{"secret", 0, 0, G_OPTION_ARG_FILENAME, &c->secret_path,
		 "File with what both ends know: 16 bytes or more", "FILE"},
		{"source", 0, 0, G_OPTION_ARG_FILENAME, &c->source,
		 "Picture: camera (default), /dev/videoN, screen, test, a file, or none", "WHAT"},
		{"audio", 0, 0, G_OPTION_ARG_FILENAME, &c->audio,
		 "Sound: mic (default), test, a file, or none", "WHAT"},
		{"sink", 0, 0, G_OPTION_ARG_FILENAME, &c->sink,
		 "Peer's picture: window (default), a .y4m file, or none", "WHAT"},
		{"audio-sink", 0, 0, G_OPTION_ARG_FILENAME, &c->audio_sink,
		 "Peer's sound: auto (default), a .wav file, or none", "WHAT"},
		{"self-view", 0, 0, G_OPTION_ARG_NONE, &c->self_view, "Show the own picture, too",
		 NULL},
		{"muted", 0, 0, G_OPTION_ARG_NONE, &c->muted,
		 "Begin without sound; key m or SIGUSR1 changes it", NULL},
		{"name", 0, 0, G_OPTION_ARG_STRING, &c->name, "What the peer sees (host name)",
		 "TEXT"},
		{"rate-max", 0, 0, G_OPTION_ARG_STRING, &c->rate_max_text,
		 "Highest rate of a picture, either way, headers included (3mbit)", "BPS"},
		{"rate-min", 0, 0, G_OPTION_ARG_STRING, &c->rate_min_text,
		 "Lowest rate of the picture (200kbit)", "BPS"},
		{"record", 0, 0, G_OPTION_ARG_FILENAME, &c->record_dir,
		 "Keep the logs of the call there, for paqm-lab report", "DIR"},
		{"duration", 0, 0, G_OPTION_ARG_DOUBLE, &c->duration, "Hang up after so long", "S"},
		{"paqmd", 0, 0, G_OPTION_ARG_FILENAME, &c->paqmd,
		 "Socket of the feedback daemon, or none ($PAQM_SOCKET, /run/paqmd/client.sock)",
		 "PATH|none"},
		{0},
	};
	const char *where;

	if (!parse_options("[HOST[:PORT]]", "Two-way picture and sound, from host to host.",
			   entries, &argc, &argv, error))
		return FALSE;
	if (argc > 2 || (argc < 2 && !c->listen)) {
		g_set_error(error, USAGE_ERROR, 0,
			    argc > 2 ? "one host at a time; see paqm-streamer call --help"
				     : "whom to call? give HOST or --listen");
		return FALSE;
	}
	if (!c->secret_path) {
		g_set_error(error, USAGE_ERROR, 0,
			    "--secret FILE is missing: both ends need the same; make one with "
			    "(umask 077; head -c 24 /dev/urandom | base64 >FILE)");
		return FALSE;
	}
	where = argc == 2 ? argv[1] : "0.0.0.0";
	c->address = parse_address(where, PORT_DEFAULT, error);
	if (!c->address ||
	    !parse_rate(c->rate_max_text ? c->rate_max_text : "3mbit", &c->rate_max, error) ||
	    !parse_rate(c->rate_min_text ? c->rate_min_text : "200kbit", &c->rate_min, error))
		return FALSE;
	if (c->rate_min > c->rate_max || c->duration < 0 || c->duration > 1e6) {
		g_set_error(error, USAGE_ERROR, 0,
			    "an option is out of range: --rate-min must not exceed --rate-max, "
			    "--duration not be negative");
		return FALSE;
	}
	c->source = c->source ? c->source : g_strdup("camera");
	c->audio = c->audio ? c->audio : g_strdup("mic");
	c->sink = c->sink ? c->sink : g_strdup("window");
	c->audio_sink = c->audio_sink ? c->audio_sink : g_strdup("auto");
	if ((!strcmp(c->sink, "window") || c->self_view || !strcmp(c->source, "screen")) &&
	    !has_display()) {
		g_set_error(error, USAGE_ERROR, 0,
			    "there is no display: give --sink none or --sink FILE.y4m, no "
			    "--self-view, and another --source than screen");
		return FALSE;
	}
	return TRUE;
}

/* What the recording says of the call itself; keys stay out of it. */
static gboolean write_config(struct call *c, GError **error)
{
	char *peer, *path, *text, *name;
	gboolean ok;

	if (!c->rec.dir)
		return TRUE;
	peer = g_inet_address_to_string(link_peer(c->link));
	name = g_strescape(c->mine.name, NULL);
	text = g_strdup_printf(
		"{\n \"version\": 1,\n \"program\": \"%s\",\n \"name\": \"%s\",\n"
		" \"peer\": \"%s\",\n \"peer_name\": \"%s\",\n \"listened\": %s,\n"
		" \"t0_ns\": %" G_GINT64_FORMAT ",\n \"rate_max\": %" G_GUINT64_FORMAT
		",\n \"rate_min\": %" G_GUINT64_FORMAT ",\n \"fps\": %.6f,\n"
		" \"video\": {\"ssrc\": %u, \"port\": %u, \"sent\": %s},\n"
		" \"audio\": {\"ssrc\": %u, \"port\": %u, \"sent\": %s}\n}\n",
		PAQM_VERSION, name, peer, c->theirs.name, c->listen ? "true" : "false",
		realtime_ns(), c->rate_max, c->rate_min, 1 / c->interval,
		c->mine.stream[CALL_VIDEO].ssrc, c->mine.stream[CALL_VIDEO].port,
		c->mine.stream[CALL_VIDEO].sends ? "true" : "false",
		c->mine.stream[CALL_AUDIO].ssrc, c->mine.stream[CALL_AUDIO].port,
		c->mine.stream[CALL_AUDIO].sends ? "true" : "false");
	path = g_build_filename(c->rec.dir, "call.json", NULL);
	ok = g_file_set_contents(path, text, -1, error);
	g_free(path);
	g_free(text);
	g_free(name);
	g_free(peer);
	return ok;
}

static GstBuffer *feed_picture(guint64 n, gpointer data)
{
	struct call *c = data;

	return y4m_frame(&c->y4m, (guint)(n % c->y4m.frames));
}

static void start_feeds(struct call *c)
{
	GstClockTime origin = (GstClockTime)g_get_monotonic_time() * 1000 -
			      gst_element_get_base_time(c->pipeline);

	if (c->y4m.frames)
		c->feeds[CALL_VIDEO] = feed_start(part(c, "camera"), (guint64)c->y4m.fps_d,
						  (guint64)c->y4m.fps_n, origin, feed_picture, c);
	if (c->samples)
		c->feeds[CALL_AUDIO] = feed_start(part(c, "microphone"), FEED_CHUNK_MS, 1000,
						  origin, feed_audio, c->samples);
}

static void run(struct call *c)
{
	guint sources[7], n = 0;
	GstBus *bus = gst_element_get_bus(c->pipeline);
	GstClock *clock = gst_system_clock_obtain();
	char *note;

	/* Sound cards bring clocks of their own; time stamps must be the host's. */
	gst_pipeline_use_clock(GST_PIPELINE(c->pipeline), clock);
	gst_object_unref(clock);
	c->main = g_main_loop_new(NULL, FALSE);
	c->wall_offset = realtime_ns() - monotonic_ns();
	g_atomic_int_set(&c->heard, (gint)(g_get_monotonic_time() / G_USEC_PER_SEC));
	if (c->encoder)
		register_flow(c);
	link_watch(c->link, on_line, c);
	sources[n++] = gst_bus_add_watch(bus, on_message, c);
	sources[n++] = g_unix_signal_add(SIGINT, on_stop, c);
	sources[n++] = g_unix_signal_add(SIGTERM, on_stop, c);
	sources[n++] = g_unix_signal_add(SIGUSR1, on_mute, c);
	sources[n++] = g_timeout_add(RATE_TICK_MS, on_tick, c);
	sources[n++] = g_timeout_add(1000, on_second, c);
	if (isatty(STDIN_FILENO))
		g_unix_fd_add(STDIN_FILENO, G_IO_IN, on_key, c);
	if (c->duration > 0)
		sources[n++] = g_timeout_add((guint)(c->duration * 1000), on_length, c);
	call_record_event(&c->rec, "begin", c->theirs.name);
	if (gst_element_set_state(c->pipeline, GST_STATE_PLAYING) == GST_STATE_CHANGE_FAILURE) {
		c->status = EXIT_RUN;
		end_call(c, "the pipeline does not start; is there a camera, a microphone, a "
			    "display? try --source test --audio test");
	} else {
		gst_element_get_state(c->pipeline, NULL, NULL, GST_SECOND);
		for (int i = 0; i < CALL_MEDIA; i++) {
			let_in(c->in[i].rtp);
			let_in(c->in[i].rtcp);
		}
		start_feeds(c);
		if (!c->why)
			g_main_loop_run(c->main);
	}
	note = note_write(NOTE_BYE, "bye");
	link_send(c->link, note);
	g_free(note);
	for (int i = 0; i < CALL_MEDIA; i++)
		feed_stop(c->feeds[i]);
	gst_element_set_state(c->pipeline, GST_STATE_NULL);
	while (n > 0)
		if (sources[--n] && g_main_context_find_source_by_id(NULL, sources[n]))
			g_source_remove(sources[n]);
	gst_object_unref(bus);
	advice_free(c->advice);
	call_record_event(&c->rec, "end", c->why);
	printf("%sended: %s; sent %u pictures, showed %" G_GUINT64_FORMAT
	       ", played %" G_GUINT64_FORMAT " pieces of sound\n",
	       isatty(STDOUT_FILENO) ? "\n" : "", c->why, c->frames, c->played[CALL_VIDEO],
	       c->played[CALL_AUDIO]);
}

int cmd_call(int argc, char **argv)
{
	struct call *c = g_new0(struct call, 1);
	GError *error = NULL;
	int status;

	g_set_prgname("paqm-streamer call");
	c->first_pts = -1;
	c->interval = 1.0 / 24;
	if (!parse(c, argc, argv, &error))
		goto out;
	gst_init(NULL, NULL);
	gst_paqm_h264_enc_register(NULL);
	gst_paqm_pacer_register(NULL);
	if (call_record_open(&c->rec, c->record_dir, &error) && agree(c, &error) &&
	    build(c, &error) && write_config(c, &error))
		run(c);
out:
	if (error)
		c->status = report_error(error);
	if (!call_record_close(&c->rec))
		c->status = EXIT_RUN;
	if (c->rate)
		rate_free(c->rate);
	link_free(c->link);
	for (int i = 0; i < CALL_MEDIA; i++) {
		g_clear_object(&c->session[i]);
		g_clear_object(&c->rtp[i]);
		g_clear_object(&c->rtcp[i]);
	}
	gst_clear_object(&c->overlay);
	gst_clear_object(&c->mute);
	gst_clear_object(&c->encoder);
	gst_clear_object(&c->pacer);
	gst_clear_object(&c->bin);
	gst_clear_object(&c->pipeline);
	if (c->main)
		g_main_loop_unref(c->main);
	g_clear_object(&c->address);
	g_clear_pointer(&c->samples, g_bytes_unref);
	y4m_close(&c->y4m);
	g_free(c->secret_path);
	g_free(c->source);
	g_free(c->audio);
	g_free(c->sink);
	g_free(c->audio_sink);
	g_free(c->record_dir);
	g_free(c->name);
	g_free(c->paqmd);
	g_free(c->rate_max_text);
	g_free(c->rate_min_text);
	status = c->status;
	g_free(c);
	return status;
}
