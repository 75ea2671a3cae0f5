// SPDX-License-Identifier: GPL-2.0
/* The pipeline of recv: sockets, SRTP, rtpbin, and what its pads bring. */
#include "streamer/encoder/adaptor.h"
#include "streamer/media/parts.h"
#include "streamer/options.h"
#include "streamer/rtp/wire.h"
#include "streamer/recv/state.h"
#include "streamer/rtp/carry.h"

/* How long a missing packet is waited for: to begin with, and between which bounds. */
#define WAIT_MS 200
#define WAIT_MIN_MS 60
#define WAIT_MAX_MS 500

/*
 * How far back a number is late, and how far ahead others are lost; beyond that the sender was
 * begun anew. rtpbin counts in ms at the packet rate, which it tells from time stamps: parts of a
 * picture are a tick apart (split.h), so it takes them for about 80,000 packets in a second.
 */
#define PARTS_BACK_MS 6	  /* some 500 packets: WAIT_MAX_MS at 10 Mbit/s */
#define PARTS_AHEAD_MS 40 /* some 3000: RFC 3550 section A.1 */

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
		rollover_leave(r->rollover, ssrc);
	g_signal_emit_by_name(r->demux, "clear-ssrc", ssrc);
	inbound_leave(r->inbound, ssrc);
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
	if (r->interlace)
		g_object_set(bin, "max-misorder-time", PARTS_BACK_MS, "max-dropout-time",
			     PARTS_AHEAD_MS, NULL);
	gst_bin_add(GST_BIN(r->pipeline), bin);
	r->inbound = inbound_new(bin, 0, &wait);
	g_signal_connect(bin, "pad-added", G_CALLBACK(on_pad_added), r);
	g_signal_connect(bin, "pad-removed", G_CALLBACK(on_pad_removed), r);
	g_signal_connect(bin, "request-pt-map", G_CALLBACK(recv_on_pt_map), r);
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

gboolean recv_build(struct receiver *r, GError **error)
{
	GstAppSinkCallbacks reports = {.new_sample = recv_on_report};
	guint16 port = g_inet_socket_address_get_port(r->local);
	GstStructure *sdes = NULL;
	GstCaps *caps;
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
	/* not a pipeline that lacks an element: what is built next would fail without a reason */
	r->pipeline = gst_parse_launch_full(text, NULL, GST_PARSE_FLAG_FATAL_ERRORS, error);
	g_free(text);
	if (!r->pipeline) {
		g_prefix_error(error, "install gstreamer1.0-plugins-base, -good and -bad: ");
		return FALSE;
	}
	r->guard = guard_new(r->srtp_key != NULL, on_gone, r);
	r->streams = streams_new(GST_BIN(r->pipeline), r->srtp_key != NULL, recv_on_take, r);
	if (r->fec)
		gst_element_link(streams_outlet(r->streams), part_of(r->pipeline, "corrector"));
	if (!add_rtpbin(r, error))
		return FALSE;
	if (r->srtp_key) {
		r->rollover = rollover_new(part_of(r->pipeline, "srtp"), r->srtp_key);
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
	if (!recv_pictures(r, error))
		return FALSE;
	recv_watch_packets(r);
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

void recv_let_go(struct receiver *r)
{
	g_signal_handlers_disconnect_by_func(part_of(r->pipeline, "bin"), on_pad_removed, r);
}
