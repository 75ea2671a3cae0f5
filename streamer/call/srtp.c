// SPDX-License-Identifier: GPL-2.0
/* SRTP of a call: the keys that the ends have agreed on, given to rtpbin. */
#include "streamer/call/state.h"
#include "streamer/rtp/carry.h"
#include "streamer/media/parts.h"

static void use_key(GstElement *srtp, const struct offer_stream *st)
{
	GstBuffer *key = gst_buffer_new_memdup(st->key, OFFER_KEY);

	carry_use_key(srtp, key);
	gst_buffer_unref(key);
}

/* The element of a session, the same for RTP and RTCP. */
static GstElement *element_of(struct call *c, const char *factory, guint session,
			      const struct offer_stream *st)
{
	char *name = g_strdup_printf("%s%u", factory, session);
	GstElement *e = gst_bin_get_by_name(GST_BIN(c->bin), name);

	if (!e) {
		e = gst_object_ref_sink(gst_element_factory_make(factory, name));
		use_key(e, st);
	}
	g_free(name);
	return e;
}

static GstElement *encoder_of(struct call *c, guint session, const char *kind)
{
	GstElement *enc;
	char *name;
	GstPad *pad;

	if (session >= CALL_MEDIA)
		return NULL;
	enc = element_of(c, "srtpenc", session, &c->mine.stream[session]);
	/* rtpbin wants its pad to be there */
	name = g_strdup_printf("%s_sink_%u", kind, session);
	pad = gst_element_request_pad_simple(enc, name);
	g_free(name);
	gst_object_unref(pad);
	return enc;
}

static GstElement *on_rtp_encoder(GstElement *bin, guint session, gpointer data)
{
	(void)bin;
	return encoder_of(data, session, "rtp");
}

static GstElement *on_rtcp_encoder(GstElement *bin, guint session, gpointer data)
{
	(void)bin;
	return encoder_of(data, session, "rtcp");
}

static GstElement *decoder_of(struct call *c, guint session)
{
	if (session >= CALL_MEDIA)
		return NULL;
	return element_of(c, "srtpdec", session, &c->theirs.stream[session]);
}

static GstElement *on_rtp_decoder(GstElement *bin, guint session, gpointer data)
{
	GstElement *dec = decoder_of(data, session);
	struct call *c = data;

	(void)bin;
	if (!dec)
		return NULL;
	guard_proven_rtp(c->guard[session], dec, "rtp_src");
	if (session == CALL_VIDEO)
		part_probe(dec, "rtp_src", call_on_proven, c);
	guard_hide_sender(dec, "rtp_src");
	return dec;
}

static GstElement *on_rtcp_decoder(GstElement *bin, guint session, gpointer data)
{
	GstElement *dec = decoder_of(data, session);
	struct call *c = data;

	(void)bin;
	if (!dec)
		return NULL;
	guard_proven_rtcp(c->guard[session], dec, "rtcp_src");
	capture_reports(&c->capture[session], dec, "rtcp_src");
	guard_hide_sender(dec, "rtcp_src");
	return dec;
}

void call_use_srtp(struct call *c)
{
	g_signal_connect(c->bin, "request-rtp-encoder", G_CALLBACK(on_rtp_encoder), c);
	g_signal_connect(c->bin, "request-rtcp-encoder", G_CALLBACK(on_rtcp_encoder), c);
	g_signal_connect(c->bin, "request-rtp-decoder", G_CALLBACK(on_rtp_decoder), c);
	g_signal_connect(c->bin, "request-rtcp-decoder", G_CALLBACK(on_rtcp_decoder), c);
}
