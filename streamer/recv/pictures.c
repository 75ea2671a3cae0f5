// SPDX-License-Identifier: GPL-2.0
/* From the packets of the stream that recv plays to pictures, logged and recorded. */
#include <errno.h>
#include <gst/rtp/gstrtpbuffer.h>
#include <gst/video/video.h>

#include "streamer/encoder/adaptor.h"
#include "streamer/media/parts.h"
#include "streamer/media/source.h"
#include "streamer/options.h"
#include "streamer/recv/state.h"
#include "streamer/rtp/wire.h"

#define BARREN_MS 5000	   /* in which packets come, and no picture */
#define BARREN_END_MS 1000 /* the same, where nothing more is to come */
#define BARREN_PACKETS 30  /* it may be the machine that is slow */

/*
 * Carry the RTP time stamp through the decoder as presentation time: nothing
 * behind this point plays in time, and the decoder hands it back untouched.
 */
static GstPadProbeReturn on_depay(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	GstBuffer *buf = gst_buffer_make_writable(GST_PAD_PROBE_INFO_BUFFER(info));
	GstRTPBuffer rtp = GST_RTP_BUFFER_INIT;
	struct receiver *r = data;
	guint32 ts;

	(void)pad;
	info->data = buf;
	if (!gst_rtp_buffer_map(buf, GST_MAP_READ, &rtp))
		return GST_PAD_PROBE_OK;
	if (!payload_expects(gst_rtp_buffer_get_payload_type(&rtp),
			     gst_rtp_buffer_get_payload(&rtp),
			     gst_rtp_buffer_get_payload_len(&rtp))) {
		gst_rtp_buffer_unmap(&rtp);
		return GST_PAD_PROBE_DROP;
	}
	ts = gst_rtp_buffer_get_timestamp(&rtp);
	/* of another stream, or a sender that was begun anew: time goes on forward; a little back
	 * are pictures that are coded in another order
	 */
	if (!r->have_ext || (gint32)(ts - (guint32)r->rtp_ext) < -RTP_JUMP_MAX)
		r->rtp_ext = ((r->rtp_ext >> 32) + 1) << 32 | ts;
	else
		gst_rtp_buffer_ext_timestamp(&r->rtp_ext, ts);
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
	int n = 0, d = 0;

	if (r->decoded_csv)
		fprintf(r->decoded_csv, "%d,%u,%" G_GINT64_FORMAT ",%d,%d\n", r->pictures,
			(guint32)gst_util_uint64_scale_round(pts, 90000, GST_SECOND), realtime_ns(),
			r->size.width, r->size.height);
	/* VP8 and others do not tell their pace */
	if (r->y4m && !r->pictures)
		inbound_pace(r->inbound, &n, &d);
	if (!r->y4m || y4m_write(r->y4m, sample, !r->pictures, n, d)) {
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

GstCaps *recv_on_pt_map(GstElement *bin, guint session, guint pt, gpointer receiver)
{
	const struct codec *codec = codec_of_payload(pt);
	struct receiver *r = receiver;

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
	char *text = g_strdup_printf("%s name=depay ! %s name=dec", codec->depay, codec->decoder);
	GError *error = NULL;
	GstElement *in;

	if (r->weave) {
		g_free(text);
		return gst_element_link(before_decoder(r), weave_inlet(r->weave));
	}
	in = codec_is_known(codec, &error)
		     ? gst_parse_bin_from_description_full(text, TRUE, NULL,
							   GST_PARSE_FLAG_FATAL_ERRORS, &error)
		     : NULL;
	g_free(text);
	if (!in) {
		g_printerr("paqm-streamer: %s\n", error->message);
		g_error_free(error);
		r->barren.told = TRUE; /* no picture comes, and that is why */
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

gboolean recv_on_take(guint pt, gboolean first, gpointer receiver)
{
	struct receiver *r = receiver;

	if ((first || !r->weave) && !build_decoder(r, codec_of_payload(pt)))
		return FALSE;
	if (!first)
		follow(r);
	return TRUE;
}

/* Once, if packets have come for @ms, and no picture. */
static void tell_barren(struct receiver *r, guint ms)
{
	guint32 ssrc = (guint32)g_atomic_int_get(&r->newest_ssrc);
	guint pt = (guint)g_atomic_int_get(&r->newest_pt);
	const struct codec *codec = codec_of_payload(pt);

	if (r->barren.told || r->barren.packets < BARREN_PACKETS ||
	    r->barren.ticks < ms / INBOUND_TICK_MS)
		return;
	r->barren.told = TRUE;
	if (r->srtp_key && !rollover_proven(r->rollover, ssrc))
		g_printerr("paqm-streamer: packets of SSRC %u cannot be decrypted: their sender "
			   "has another key, or none; give both ends the same --srtp-key\n",
			   ssrc);
	else if (!codec)
		g_printerr("paqm-streamer: packets of SSRC %u have payload type %u, which is "
			   "no coding known here; 96 is H264\n",
			   ssrc, pt);
	else if ((r->interlace || r->fec) && pt != VIDEO_PT)
		g_printerr("paqm-streamer: packets of SSRC %u are %s, and %s is for H264: omit "
			   "it\n",
			   ssrc, codec->name, r->interlace ? "--interlace" : "--fec");
	else
		g_printerr(
			"paqm-streamer: packets of SSRC %u come as %s, but no picture does: %s\n",
			ssrc, codec->name,
			r->srtp_key ? "they carry another coding, or are damaged"
				    : "their sender encrypts, and this end needs its --srtp-key, "
				      "or they carry another coding, or the parameter sets (SPS, "
				      "PPS) are in the sender's SDP only: let it repeat them in "
				      "the stream");
}

void recv_watch_pictures(struct receiver *r)
{
	gint pictures = g_atomic_int_get(&r->pictures), packets = g_atomic_int_get(&r->unshown);

	if (pictures != r->barren.pictures) {
		r->barren.pictures = pictures;
		r->barren.ticks = 0;
		r->barren.told = FALSE;
		g_atomic_int_set(&r->unshown, 0);
		r->barren.packets = 0;
		return;
	}
	if (packets == r->barren.packets)
		return;
	r->barren.packets = packets;
	r->barren.ticks++;
	tell_barren(r, BARREN_MS);
}

void recv_end_pictures(struct receiver *r)
{
	if (!g_atomic_int_get(&r->pictures))
		tell_barren(r, BARREN_END_MS);
}

gboolean recv_pictures(struct receiver *r, GError **error)
{
	GstAppSinkCallbacks pictures = {.new_sample = on_sample};

	if (r->fec)
		inbound_correct(r->inbound, part_of(r->pipeline, "corrector"));
	if (r->interlace) {
		r->weave = weave_new(GST_BIN(r->pipeline), r->interlace, on_woven, r, error);
		return r->weave != NULL;
	}
	gst_app_sink_set_callbacks(GST_APP_SINK(part_of(r->pipeline, "out")), &pictures, r, NULL);
	return TRUE;
}
