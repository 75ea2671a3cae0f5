// SPDX-License-Identifier: GPL-2.0
/*
 * paqm-streamer recv: udpsrc -> rtpbin -> rtph264depay -> avdec_h264 -> y4m, or
 * what another payload type wants in their place (adaptor.c). Of several streams
 * one is played (streams.c). Every RTP packet of it is logged as it arrives, every
 * decoded picture as it comes out of the decoder. Receiver reports go back on the RTCP port, and
 * with them what routers have written into the stream.
 */
#include <errno.h>
#include <gio/gio.h>
#include <glib-unix.h>
#include <gst/app/gstappsink.h>
#include <gst/app/gstappsrc.h>
#include <gst/gst.h>
#include <gst/net/gstnetaddressmeta.h>
#include <gst/rtp/gstrtcpbuffer.h>
#include <gst/rtp/gstrtpbuffer.h>
#include <gst/video/video.h>
#include <string.h>

#include "streamer/encoder/adaptor.h"
#include "streamer/rtp/carry.h"
#include "streamer/rtp/ccfb.h"
#include "streamer/rtp/ecn.h"
#include "streamer/rtp/guard.h"
#include "streamer/recv/inbound.h"
#include "streamer/options.h"
#include "streamer/media/parts.h"
#include "streamer/outgoing/rate.h"
#include "streamer/rtp/repair.h"
#include "streamer/rtp/returns.h"
#include "streamer/media/size.h"
#include "streamer/media/source.h"
#include "streamer/recv/streams.h"
#include "streamer/rtp/train.h"
#include "streamer/recv/weave.h"
#include "streamer/rtp/wire.h"
#include "streamer/rtp/xr.h"

/* How long a missing packet is waited for: to begin with, and between which bounds. */
#define WAIT_MS 200
#define WAIT_MIN_MS 60
#define WAIT_MAX_MS 500
#define SUMMARY_TICKS 5		  /* a second */
#define NTP_EPOCH_S 2208988800ULL /* 1970, in seconds since 1900 */
#define TWCC_FMT 15

struct receiver {
	char *listen, *log_dir, *output;
	gdouble duration;
	gint64 seed;

	GInetSocketAddress *local;
	GSocket *rtp, *rtcp;
	GMainLoop *main;
	GstElement *pipeline;
	struct streams *streams;
	GstElement *decoder; /* of the stream that is played; NULL: none yet, or weave's */
	int status;
	GMutex lock;
	GSocketAddress *peer; /* where reports go; NULL until something came */

	char *form_text, *feedback_text, *srtp_key_file, *cname;
	enum returns_form form;
	gboolean twcc_only, reuse_keystream;
	gint tell_ecn;	/* atomic: reports are those of RFC 8888 */
	guint64 ntp_ns; /* NTP time less that of monotonic_ns() */
	GstBuffer *srtp_key;
	GObject *session;
	gboolean rtx, fec;
	struct inbound *inbound;
	struct guard *guard; /* few streams get in */
	char *interlace_text;
	enum interlace_mode interlace;
	struct weave *weave;
	GstElement *demux; /* rtpbin's, of streams */
	GstElement *news;  /* what is returned enters the stream of reports here */

	FILE *rx_csv, *decoded_csv, *inbound_csv, *y4m;
	struct xr_window window; /* with the lock */
	guint ticks;
	gint summary_due; /* atomic */
	/* network thread */
	guint64 packets, probes, returned, repairs;
	struct returns returns;
	struct ccfb ccfb;
	guint64 told;
	guint32 media_ssrc;
	/* jitter buffer thread */
	guint64 rtp_ext; /* extended RTP time stamp */
	gboolean have_ext;
	gint pictures; /* atomic; the decoder's thread counts */
	struct size size;
};

/* Before the first report of the sender: it is a port above the media's. */
static void guess_peer(struct receiver *r, GstBuffer *buf)
{
	GstNetAddressMeta *meta = gst_buffer_get_net_address_meta(buf);

	g_mutex_lock(&r->lock);
	if (meta && !r->peer && G_IS_INET_SOCKET_ADDRESS(meta->addr))
		r->peer = address_with_port(G_INET_SOCKET_ADDRESS(meta->addr), 1);
	g_mutex_unlock(&r->lock);
}

/* Network thread: return the newest rate to the sender. */
static void return_rate(struct receiver *r)
{
	guint overhead =
		wire_ip_udp(g_socket_get_family(r->rtp) == G_SOCKET_FAMILY_IPV6) + WIRE_RTP;
	guint8 packet[RETURNS_MAX];
	GstFlowReturn flow;
	guint ssrc = 0;
	gsize len;

	g_object_get(r->session, "internal-ssrc", &ssrc, NULL);
	len = returns_compound(packet, &r->returns.newest, r->form, r->cname, ssrc, r->media_ssrc,
			       overhead);
	flow = gst_app_src_push_buffer(GST_APP_SRC(r->news), gst_buffer_new_memdup(packet, len));
	if (flow == GST_FLOW_OK)
		r->returned++;
}

/* Network thread: what has come, for the sender's controller. */
static void see_packet(struct receiver *r, const guint8 *p, enum ecn ecn)
{
	guint64 now = (guint64)monotonic_ns(), ntp = now + r->ntp_ns;
	gboolean again = (p[1] & 0x7f) == RTX_PT;
	guint8 report[CCFB_MAX];
	guint ssrc = 0;
	gsize len;

	ccfb_see(&r->ccfb, again, paqm_get32(p + 8), paqm_get16(p + 2), ecn, now);
	if (ecn != ECN_NOT_ECT && !again && !r->twcc_only)
		g_atomic_int_set(&r->tell_ecn, TRUE);
	if (!g_atomic_int_get(&r->tell_ecn) || !ccfb_due(&r->ccfb, !again && p[1] >> 7, now))
		return;
	g_object_get(r->session, "internal-ssrc", &ssrc, NULL);
	len = ccfb_write(&r->ccfb, report, ssrc,
			 (guint32)(ntp / 1000000000 << 16 | (ntp % 1000000000 << 16) / 1000000000),
			 now);
	if (gst_app_src_push_buffer(GST_APP_SRC(r->news), gst_buffer_new_memdup(report, len)) ==
	    GST_FLOW_OK)
		r->told++;
}

/* Streaming thread of RTCP: one kind of report on each packet is enough. */
static GstPadProbeReturn on_own_report(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	struct receiver *r = data;
	guint8 head[2];

	(void)pad;
	if (g_atomic_int_get(&r->tell_ecn) &&
	    gst_buffer_extract(GST_PAD_PROBE_INFO_BUFFER(info), 0, head, sizeof(head)) ==
		    sizeof(head) &&
	    (head[0] & 31) == TWCC_FMT && head[1] == GST_RTCP_TYPE_RTPFB)
		return GST_PAD_PROBE_DROP;
	return GST_PAD_PROBE_OK;
}

/* Not of RTP: returns_see() looks closer. */
static gboolean is_probe(const guint8 *p, gsize len)
{
	return len >= PAQM_PROBE_LEN && p[0] == PAQM_PROBE_FIRST;
}

static GstPadProbeReturn on_packet(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	GstBuffer *buf = GST_PAD_PROBE_INFO_BUFFER(info);
	GstRTPBuffer rtp = GST_RTP_BUFFER_INIT;
	struct receiver *r = data;
	bool probe = false, begins, due = false;
	enum ecn ecn = ecn_taken();
	GstNetAddressMeta *meta;
	gboolean ours = TRUE;
	GstMapInfo map;

	(void)pad;
	if (!gst_buffer_map(buf, &map, GST_MAP_READ))
		return GST_PAD_PROBE_OK;
	if (!is_probe(map.data, map.size) && !guard_let(r->guard, map.data, map.size)) {
		gst_buffer_unmap(buf, &map);
		return GST_PAD_PROBE_DROP;
	}
	if (map.size >= 12 && map.data[0] >> 6 == 2 && (map.data[1] & 0x7f) != RTX_PT) {
		meta = gst_buffer_get_net_address_meta(buf);
		ours = streams_heard(r->streams, paqm_get32(map.data + 8),
				     meta ? meta->addr : NULL);
		if (ours && (map.data[1] & 0x7f) == VIDEO_PT)
			r->media_ssrc = paqm_get32(map.data + 8);
	}
	if (map.size >= 12 && map.data[0] >> 6 == 2 && ours)
		see_packet(r, map.data, ecn);
	begins = !r->srtp_key && train_is(map.data, map.size);
	if (ours)
		due = returns_see(&r->returns, map.data, map.size, (guint64)monotonic_ns(), &probe);
	gst_buffer_unmap(buf, &map);
	if (!ours) /* rtpbin has to know of it, nobody else */
		return begins ? GST_PAD_PROBE_DROP : GST_PAD_PROBE_OK;
	guess_peer(r, buf);
	if (due)
		return_rate(r);
	if (probe) {
		r->probes++;
		return GST_PAD_PROBE_DROP;
	}
	if (begins) /* it has done its work on the way */
		return GST_PAD_PROBE_DROP;
	if (!gst_rtp_buffer_map(buf, GST_MAP_READ, &rtp))
		return GST_PAD_PROBE_OK;
	inbound_packet(r->inbound, gst_rtp_buffer_get_timestamp(&rtp));
	if (gst_rtp_buffer_get_payload_type(&rtp) == RTX_PT ||
	    gst_rtp_buffer_get_payload_type(&rtp) == FEC_PT) {
		/* numbered otherwise: not for the log of the stream's packets */
		r->repairs++;
		gst_rtp_buffer_unmap(&rtp);
		return GST_PAD_PROBE_OK;
	}
	r->packets++;
	g_mutex_lock(&r->lock);
	xr_see(&r->window, gst_rtp_buffer_get_seq(&rtp),
	       (guint32)gst_util_uint64_scale((guint64)monotonic_ns(), 90000, GST_SECOND) -
		       gst_rtp_buffer_get_timestamp(&rtp));
	g_mutex_unlock(&r->lock);
	if (r->rx_csv)
		fprintf(r->rx_csv, "%" G_GINT64_FORMAT ",%u,%u,%d,%" G_GSIZE_FORMAT "\n",
			realtime_ns(), gst_rtp_buffer_get_seq(&rtp),
			gst_rtp_buffer_get_timestamp(&rtp), gst_rtp_buffer_get_marker(&rtp),
			gst_buffer_get_size(buf) +
				wire_ip_udp(g_socket_get_family(r->rtp) == G_SOCKET_FAMILY_IPV6));
	gst_rtp_buffer_unmap(&rtp);
	return GST_PAD_PROBE_OK;
}

/* Reports go to wherever those of the stream's sender come from. */
static GstPadProbeReturn on_rtcp(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	GstBuffer *buf = GST_PAD_PROBE_INFO_BUFFER(info);
	GstNetAddressMeta *meta = gst_buffer_get_net_address_meta(buf);
	struct receiver *r = data;
	guint8 head[8];

	(void)pad;
	if (meta && gst_buffer_extract(buf, 0, head, sizeof(head)) == sizeof(head) &&
	    streams_ours(r->streams, paqm_get32(head + 4))) {
		g_mutex_lock(&r->lock);
		g_set_object(&r->peer, meta->addr);
		g_mutex_unlock(&r->lock);
	}
	return GST_PAD_PROBE_OK;
}

static GstFlowReturn on_report(GstAppSink *sink, gpointer data)
{
	GstSample *sample = gst_app_sink_pull_sample(sink);
	struct receiver *r = data;
	GstMapInfo map;

	if (!sample)
		return GST_FLOW_EOS;
	g_mutex_lock(&r->lock);
	/* A lost report is no harm: the next one says more. */
	if (r->peer && gst_buffer_map(gst_sample_get_buffer(sample), &map, GST_MAP_READ)) {
		g_socket_send_to(r->rtcp, r->peer, (const char *)map.data, map.size, NULL, NULL);
		gst_buffer_unmap(gst_sample_get_buffer(sample), &map);
	}
	g_mutex_unlock(&r->lock);
	gst_sample_unref(sample);
	return GST_FLOW_OK;
}

/* RFC 6184 section 5.2, mode 1; at any other type the depayloader would give up. */
static gboolean is_h264(GstRTPBuffer *rtp)
{
	const guint8 *payload = gst_rtp_buffer_get_payload(rtp);
	guint type = gst_rtp_buffer_get_payload_len(rtp) > 0 ? payload[0] & 31U : 0;

	return (type >= 1 && type <= 24) || type == 28;
}

/*
 * Carry the RTP time stamp through the decoder as presentation time: nothing
 * behind this point plays in time, and the decoder hands it back untouched.
 */
static GstPadProbeReturn on_depay(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	GstBuffer *buf = gst_buffer_make_writable(GST_PAD_PROBE_INFO_BUFFER(info));
	GstRTPBuffer rtp = GST_RTP_BUFFER_INIT;
	struct receiver *r = data;

	(void)pad;
	info->data = buf;
	if (!gst_rtp_buffer_map(buf, GST_MAP_READ, &rtp))
		return GST_PAD_PROBE_OK;
	if (gst_rtp_buffer_get_payload_type(&rtp) == CODEC_H264_PT && !is_h264(&rtp)) {
		gst_rtp_buffer_unmap(&rtp);
		return GST_PAD_PROBE_DROP;
	}
	if (!r->have_ext) /* of another stream: time goes on forward */
		r->rtp_ext = ((r->rtp_ext >> 32) + 1) << 32 | gst_rtp_buffer_get_timestamp(&rtp);
	else
		gst_rtp_buffer_ext_timestamp(&r->rtp_ext, gst_rtp_buffer_get_timestamp(&rtp));
	r->have_ext = TRUE;
	gst_rtp_buffer_unmap(&rtp);
	GST_BUFFER_PTS(buf) = gst_util_uint64_scale(r->rtp_ext, GST_SECOND, 90000);
	GST_BUFFER_DTS(buf) = GST_CLOCK_TIME_NONE;
	return GST_PAD_PROBE_OK;
}

/* Decoder's thread: a picture to be shown. */
static gboolean show(struct receiver *r, GstSample *sample)
{
	GstClockTime pts = GST_BUFFER_PTS(gst_sample_get_buffer(sample));

	if (r->decoded_csv)
		fprintf(r->decoded_csv, "%d,%u,%" G_GINT64_FORMAT ",%d,%d\n", r->pictures,
			(guint32)gst_util_uint64_scale_round(pts, 90000, GST_SECOND), realtime_ns(),
			r->size.width, r->size.height);
	if (!r->y4m || y4m_write(r->y4m, sample, !r->pictures)) {
		g_atomic_int_inc(&r->pictures);
		return TRUE;
	}
	GST_ELEMENT_ERROR(r->pipeline, RESOURCE, WRITE,
			  ("cannot write %s: %s; is the disk full?", r->output, g_strerror(errno)),
			  (NULL));
	return FALSE;
}

static GstFlowReturn on_sample(GstAppSink *sink, gpointer data)
{
	GstSample *sample = gst_app_sink_pull_sample(sink);
	gboolean ok;

	if (!sample)
		return GST_FLOW_EOS;
	ok = show(data, sample);
	gst_sample_unref(sample);
	return ok ? GST_FLOW_OK : GST_FLOW_ERROR;
}

static void on_woven(GstSample *picture, gpointer data)
{
	const GstStructure *caps = gst_caps_get_structure(gst_sample_get_caps(picture), 0);
	struct receiver *r = data;

	gst_structure_get_int(caps, "width", &r->size.width);
	gst_structure_get_int(caps, "height", &r->size.height);
	show(r, picture);
}

static GstCaps *on_pt_map(GstElement *bin, guint session, guint pt, gpointer data)
{
	const struct codec *codec = codec_of_payload(pt);
	struct receiver *r = data;

	(void)bin;
	(void)session;
	/* What corrects has the clock of the stream, or the jitter buffer takes it for nothing. */
	if (r->fec && pt == FEC_PT)
		return gst_caps_from_string("application/x-rtp, media=(string)video, "
					    "clock-rate=(int)90000, encoding-name=(string)ULPFEC");
	return codec ? codec_caps(codec) : NULL;
}

/* Packets go to what decodes them, by way of what corrects them. */
static GstElement *before_decoder(struct receiver *r)
{
	return r->fec ? part_of(r->pipeline, "corrector") : streams_outlet(r->streams);
}

/* The one before has seen another stream: what it refers to is not there. */
static void remove_decoder(struct receiver *r)
{
	if (!r->decoder)
		return;
	gst_element_unlink(before_decoder(r), r->decoder);
	gst_element_set_state(r->decoder, GST_STATE_NULL);
	gst_bin_remove(GST_BIN(r->pipeline), r->decoder);
	r->have_ext = FALSE;
}

/* What decodes a coding, before the pictures' common way. */
static gboolean build_decoder(struct receiver *r, const struct codec *codec)
{
	char *text = g_strdup_printf("%s name=depay request-keyframe=true ! %s name=dec",
				     codec->depay, codec->decoder);
	GError *error = NULL;
	GstElement *in;

	if (r->weave) {
		g_free(text);
		return gst_element_link(before_decoder(r), weave_inlet(r->weave));
	}
	in = gst_parse_bin_from_description_full(text, TRUE, NULL, GST_PARSE_FLAG_FATAL_ERRORS,
						 &error);

	g_free(text);
	if (!in) {
		g_printerr("paqm-streamer: %s cannot be decoded here: %s\n", codec->name,
			   error->message);
		g_error_free(error);
		return FALSE;
	}
	remove_decoder(r);
	r->decoder = in;
	gst_bin_add(GST_BIN(r->pipeline), in);
	part_probe(part_of(in, "depay"), "sink", on_depay, r);
	size_keep(&r->size, part_of(in, "dec"), part_of(r->pipeline, "size"));
	gst_element_link(in, part_of(r->pipeline, "pictures"));
	gst_element_sync_state_with_parent(in);
	return gst_element_link(before_decoder(r), in);
}

/* Reports are about the stream that plays now, and go to its sender. */
static void follow(struct receiver *r)
{
	GSocketAddress *from;

	inbound_take(r->inbound, streams_now(r->streams, &from));
	g_mutex_lock(&r->lock);
	g_clear_object(&r->peer);
	if (from && G_IS_INET_SOCKET_ADDRESS(from))
		r->peer = address_with_port(G_INET_SOCKET_ADDRESS(from), 1);
	r->window = (struct xr_window){0};
	g_mutex_unlock(&r->lock);
	g_clear_object(&from);
}

static gboolean on_take(guint pt, gboolean first, gpointer data)
{
	struct receiver *r = data;

	if ((first || !r->weave) && !build_decoder(r, codec_of_payload(pt)))
		return FALSE;
	if (!first)
		follow(r);
	return TRUE;
}

/* A stream that nobody wants must not stop the others, as one without an end would. */
static void ignore(struct receiver *r, GstPad *pad)
{
	GstElement *nowhere = gst_element_factory_make("fakesink", NULL);
	GstPad *sink = gst_element_get_static_pad(nowhere, "sink");

	g_object_set(nowhere, "sync", FALSE, "async", FALSE, NULL);
	gst_bin_add(GST_BIN(r->pipeline), nowhere);
	gst_element_sync_state_with_parent(nowhere);
	gst_pad_link(pad, sink);
	gst_object_unref(sink);
	g_object_set_data(G_OBJECT(pad), "nowhere", nowhere);
}

static void on_pad_added(GstElement *bin, GstPad *pad, gpointer data)
{
	guint session, ssrc, pt;
	struct receiver *r = data;

	(void)bin;
	if (sscanf(GST_PAD_NAME(pad), "recv_rtp_src_%u_%u_%u", &session, &ssrc, &pt) != 3)
		return;
	/* parts of H.264 pictures; with correction rtpbin does not look at payload types */
	if (r->interlace || r->fec)
		pt = VIDEO_PT;
	if (!codec_of_payload(pt))
		g_printerr("paqm-streamer: a stream of an unknown payload type; ignored\n");
	else if (streams_add(r->streams, pad, ssrc, pt))
		return;
	ignore(r, pad);
}

/* What ignore() has put behind it goes with it. */
static void on_pad_removed(GstElement *bin, GstPad *pad, gpointer data)
{
	GstElement *nowhere = g_object_get_data(G_OBJECT(pad), "nowhere");
	guint session, ssrc, pt;
	struct receiver *r = data;

	(void)bin;
	if (sscanf(GST_PAD_NAME(pad), "recv_rtp_src_%u_%u_%u", &session, &ssrc, &pt) != 3)
		return;
	if (!nowhere) {
		streams_remove(r->streams, ssrc);
		return;
	}
	gst_element_set_state(nowhere, GST_STATE_NULL);
	gst_bin_remove(GST_BIN(r->pipeline), nowhere);
}

/* Network thread: another stream gets the place of this one, which is silent. */
static void on_gone(guint32 ssrc, gpointer data)
{
	struct receiver *r = data;

	if (r->srtp_key)
		g_signal_emit_by_name(part_of(r->pipeline, "srtp"), "remove-key", ssrc);
	g_signal_emit_by_name(r->demux, "clear-ssrc", ssrc);
}

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

/* Thread of RTCP: statistics of the stream, for whoever watches the session, join a regular report.
 */
static gboolean on_sending_report(GObject *session, GstBuffer *buf, gboolean early, gpointer data)
{
	guint8 head[8], packet[XR_SUMMARY_LEN];
	struct receiver *r = data;
	gsize len;

	(void)session;
	if (early || gst_buffer_extract(buf, 0, head, sizeof(head)) != sizeof(head) ||
	    !g_atomic_int_compare_and_exchange(&r->summary_due, TRUE, FALSE))
		return FALSE;
	g_mutex_lock(&r->lock);
	len = xr_summary(packet, &r->window, paqm_get32(head + 4), r->media_ssrc);
	g_mutex_unlock(&r->lock);
	if (len)
		gst_buffer_append_memory(buf, gst_memory_new_wrapped(0, g_memdup2(packet, len), len,
								     0, len, NULL, g_free));
	return len > 0;
}

static gboolean on_tick(gpointer data)
{
	struct receiver *r = data;

	guard_tick(r->guard, INBOUND_TICK_MS);
	inbound_tick(r->inbound, r->inbound_csv);
	streams_tick(r->streams, (guint)g_atomic_int_get(&r->pictures));
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
		{"listen", 0, 0, G_OPTION_ARG_STRING, &r->listen,
		 "Where to receive; RTCP on PORT+1", "ADDR:PORT"},
		{"output", 0, 0, G_OPTION_ARG_FILENAME, &r->output,
		 "Write the decoded pictures there", "FILE.y4m"},
		{"log", 0, 0, G_OPTION_ARG_FILENAME, &r->log_dir,
		 "Write rx.csv, decoded.csv and inbound.csv there", "DIR"},
		{"duration", 0, 0, G_OPTION_ARG_DOUBLE, &r->duration, "Stop after so long", "S"},
		{"return", 0, 0, G_OPTION_ARG_STRING, &r->form_text,
		 "What routers wrote goes back as APP (app), and also as TMMBR or REMB",
		 "app|tmmbr|remb"},
		{"feedback", 0, 0, G_OPTION_ARG_STRING, &r->feedback_text,
		 "Reports on each packet: RFC 8888 from the first ECN-capable one on (auto), or "
		 "always, or never",
		 "auto|rfc8888|twcc"},
		{"interlace", 0, 0, G_OPTION_ARG_STRING, &r->interlace_text,
		 "The sender codes parts of each picture apart, with the same option",
		 "rows|checkerboard|quarters"},
		{"rtx", 0, 0, G_OPTION_ARG_NONE, &r->rtx, "Ask for lost packets again", NULL},
		{"fec", 0, 0, G_OPTION_ARG_NONE, &r->fec,
		 "Correct losses by what a sender with --fec adds", NULL},
		{"srtp-key", 0, 0, G_OPTION_ARG_FILENAME, &r->srtp_key_file,
		 "Decrypt with the key in FILE, 60 hexadecimal digits", "FILE"},
		{"reuse-keystream", 0, 0, G_OPTION_ARG_NONE, &r->reuse_keystream,
		 "Unsafe, for tests: --srtp-key may go with --seed", NULL},
		{"seed", 0, 0, G_OPTION_ARG_INT64, &r->seed, "Makes all random choices repeatable",
		 "N"},
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
	return r->local != NULL;
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
	}
	if (r->output) {
		r->y4m = fopen(r->output, "we");
		if (!r->y4m) {
			g_set_error(error, USAGE_ERROR, 0, "cannot write %s: %s", r->output,
				    g_strerror(errno));
			return FALSE;
		}
	}
	return TRUE;
}

/* What gives each stream a thread. */
static GstElement *find_demux(GstBin *bin)
{
	GstIterator *it = gst_bin_iterate_all_by_element_factory_name(bin, "rtpssrcdemux");
	GstElement *demux = NULL;
	GValue item = G_VALUE_INIT;

	if (gst_iterator_next(it, &item) == GST_ITERATOR_OK) {
		demux = g_value_dup_object(&item);
		g_value_unset(&item);
	}
	gst_iterator_free(it);
	return demux;
}

/* Its pads come last: when they are asked for, it asks for what stands behind them. */
static gboolean add_rtpbin(struct receiver *r, GError **error)
{
	struct inbound_params wait = {r->rtx, r->fec, WAIT_MIN_MS, WAIT_MAX_MS, WAIT_MS};
	GstElement *bin = gst_element_factory_make("rtpbin", "bin");

	if (!bin) {
		g_set_error(error, USAGE_ERROR, 0,
			    "the GStreamer element rtpbin is missing: install "
			    "gstreamer1.0-plugins-good");
		return FALSE;
	}
	gst_util_set_object_arg(G_OBJECT(bin), "rtp-profile", "avpf");
	gst_bin_add(GST_BIN(r->pipeline), bin);
	r->inbound = inbound_new(bin, 0, &wait);
	g_signal_connect(bin, "pad-added", G_CALLBACK(on_pad_added), r);
	g_signal_connect(bin, "pad-removed", G_CALLBACK(on_pad_removed), r);
	g_signal_connect(bin, "request-pt-map", G_CALLBACK(on_pt_map), r);
	if (gst_element_link_pads(part_of(r->pipeline, r->srtp_key ? "srtp" : "rtp"),
				  r->srtp_key ? "rtp_src" : "src", bin, "recv_rtp_sink_0") &&
	    gst_element_link_pads(part_of(r->pipeline, r->srtp_key ? "srtp" : "rtcpin"),
				  r->srtp_key ? "rtcp_src" : "src", bin, "recv_rtcp_sink_0") &&
	    gst_element_link_pads(bin, "send_rtcp_src_0", part_of(r->pipeline, "reports"), NULL) &&
	    (r->demux = find_demux(GST_BIN(bin))))
		return TRUE;
	g_set_error(error, USAGE_ERROR, 0, "the pipeline cannot be linked");
	return FALSE;
}

static void watch_rtcp(struct receiver *r)
{
	GstElement *in = part_of(r->pipeline, "rtcpin"), *dec = part_of(r->pipeline, "srtp");

	guard_rtcp(r->guard, in, "src");
	if (r->srtp_key) {
		guard_proven_rtp(r->guard, dec, "rtp_src");
		guard_proven_rtcp(r->guard, dec, "rtcp_src");
	} else {
		guard_proven_rtcp(r->guard, in, "src");
	}
	part_probe(in, "src", on_rtcp, r);
}

static gboolean build(struct receiver *r, GError **error)
{
	GstAppSinkCallbacks pictures = {.new_sample = on_sample};
	GstAppSinkCallbacks reports = {.new_sample = on_report};
	guint16 port = g_inet_socket_address_get_port(r->local);
	GstStructure *sdes = NULL;
	GstCaps *caps;
	guint ssrc = 0;
	char *text;

	r->rtp = open_socket(r->local, port, error);
	if (!r->rtp)
		return FALSE;
	r->rtcp = open_socket(r->local, port + 1, error);
	if (!r->rtcp)
		return FALSE;
	/* One decoder thread: no added delay, and runs that repeat exactly. */
	text = g_strdup_printf(
		"udpsrc name=rtp close-socket=false buffer-size=2097152 %s "
		"udpsrc name=rtcpin close-socket=false caps=application/x-%s %s "
		"appsrc name=news is-live=true format=time caps=application/x-rtcp ! reports. "
		"funnel name=reports ! %s appsink name=rtcp sync=false async=false %s %s",
		r->srtp_key ? "! srtp.rtp_sink srtpdec name=srtp rtcpin. ! srtp.rtcp_sink" : "",
		r->srtp_key ? "srtcp" : "rtcp", r->srtp_key ? "srtpenc name=srtpout" : "",
		r->srtp_key ? "srtpout.rtcp_sink_0 srtpout.rtcp_src_0 !" : "",
		r->fec ? "rtpulpfecdec name=corrector" : "",
		r->interlace ? ""
			     : SIZE_FIXED
			" ! appsink name=out sync=false async=false max-buffers=8");
	r->pipeline = gst_parse_launch(text, error);
	g_free(text);
	if (!r->pipeline)
		return FALSE;
	r->guard = guard_new(r->srtp_key != NULL, on_gone, r);
	r->streams = streams_new(GST_BIN(r->pipeline), on_take, r);
	if (r->fec)
		gst_element_link(streams_outlet(r->streams), part_of(r->pipeline, "corrector"));
	if (!add_rtpbin(r, error))
		return FALSE;
	if (r->srtp_key) {
		carry_use_key(part_of(r->pipeline, "srtp"), r->srtp_key);
		carry_use_key(part_of(r->pipeline, "srtpout"), r->srtp_key);
	}
	r->news = part_of(r->pipeline, "news");
	caps = gst_caps_from_string(r->srtp_key ? "application/x-srtp, " RTP_CAPS
						: "application/x-rtp, " RTP_CAPS);
	gst_caps_set_simple(caps, "extmap-" G_STRINGIFY(TWCC_ID), G_TYPE_STRING, TWCC_URI,
			    /* What is lost is asked for anew: RFC 4585 section 6.3.1. */
			    "rtcp-fb-nack-pli", G_TYPE_BOOLEAN, TRUE, NULL);
	g_object_set(part_of(r->pipeline, "rtp"), "socket", r->rtp, "caps", caps, NULL);
	gst_caps_unref(caps);
	g_object_set(part_of(r->pipeline, "rtcpin"), "socket", r->rtcp, NULL);
	gst_app_sink_set_callbacks(GST_APP_SINK(part_of(r->pipeline, "rtcp")), &reports, r, NULL);
	if (r->interlace)
		r->weave = weave_new(GST_BIN(r->pipeline), r->interlace, on_woven, r, error);
	else
		gst_app_sink_set_callbacks(GST_APP_SINK(part_of(r->pipeline, "out")), &pictures, r,
					   NULL);
	if (r->interlace && !r->weave)
		return FALSE;
	if (r->fec)
		inbound_correct(r->inbound, part_of(r->pipeline, "corrector"));
	ecn_watch(part_of(r->pipeline, "rtp"), r->rtp);
	r->ntp_ns = NTP_EPOCH_S * 1000000000 + (guint64)(realtime_ns() - monotonic_ns());
	part_probe(part_of(r->pipeline, "rtp"), "src", on_packet, r);
	part_probe(part_of(r->pipeline, "bin"), "send_rtcp_src_0", on_own_report, r);
	watch_rtcp(r);
	g_signal_emit_by_name(part_of(r->pipeline, "bin"), "get-internal-session", 0, &r->session);
	g_object_get(r->session, "internal-ssrc", &ssrc, NULL);
	g_signal_connect(r->session, "on-sending-rtcp", G_CALLBACK(on_sending_report), r);
	guard_own(r->guard, ssrc);
	/* Told, since it takes rtpbin seconds to find out: reports would come late until then. */
	g_object_set(r->session, "rtcp-min-interval", (guint64)RTCP_INTERVAL, "rtcp-reduced-size",
		     TRUE, "bandwidth", MEDIA_BANDWIDTH, NULL);
	g_object_get(r->session, "sdes", &sdes, NULL);
	r->cname = g_strdup(sdes ? gst_structure_get_string(sdes, "cname") : NULL);
	if (!r->cname)
		r->cname = g_strdup("paqm");
	if (sdes)
		gst_structure_free(sdes);
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
	if (r->duration > 0)
		g_timeout_add((guint)(r->duration * 1000), on_stop, r);
	if (gst_element_set_state(r->pipeline, GST_STATE_PLAYING) == GST_STATE_CHANGE_FAILURE)
		r->status = EXIT_RUN;
	else
		g_main_loop_run(r->main);
	inbound_stats(r->inbound, &st);
	/* now all pads go */
	g_signal_handlers_disconnect_by_func(part_of(r->pipeline, "bin"), on_pad_removed, r);
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
}

int cmd_recv(int argc, char **argv)
{
	struct receiver r = {.seed = -1};
	GError *error = NULL;

	g_set_prgname("paqm-streamer recv");
	g_mutex_init(&r.lock);
	if (!parse(&r, argc, argv, &error))
		goto out;
	if (r.seed >= 0)
		g_random_set_seed((guint32)r.seed);
	gst_init(NULL, NULL);
	if (r.srtp_key_file && !(r.srtp_key = carry_key(r.srtp_key_file, &error)))
		goto out;
	if (!open_files(&r, &error) || !build(&r, &error))
		goto out;
	printf("listening on %s\n", r.listen);
	fflush(stdout);
	run(&r);
out:
	if (error)
		r.status = report_error(error);
	if (!close_log(r.rx_csv, "rx.csv") | !close_log(r.decoded_csv, "decoded.csv") |
	    !close_log(r.inbound_csv, "inbound.csv") | !close_log(r.y4m, "the recording"))
		r.status = EXIT_RUN;
	inbound_free(r.inbound);
	weave_free(r.weave);
	streams_free(r.streams);
	gst_clear_object(&r.demux);
	gst_clear_object(&r.pipeline);
	guard_free(r.guard);
	if (r.main)
		g_main_loop_unref(r.main);
	g_clear_object(&r.peer);
	g_mutex_clear(&r.lock);
	g_clear_object(&r.rtp);
	g_clear_object(&r.rtcp);
	g_clear_object(&r.local);
	g_clear_object(&r.session);
	gst_clear_buffer(&r.srtp_key);
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
