// SPDX-License-Identifier: GPL-2.0
/* The table of codings; see codec.h. */
#include "streamer/encoder/codec.h"

#include <string.h>

#include "streamer/options.h"

static const struct codec codecs[] = {
	{"video/x-h264", CODEC_H264_PT, "H264", "rtph264pay config-interval=-1 aggregate-mode=none",
	 "rtph264depay request-keyframe=true", "avdec_h264 max-threads=1"},
	{"video/x-vp8", 98, "VP8", "rtpvp8pay picture-id-mode=15-bit",
	 "rtpvp8depay request-keyframe=true", "vp8dec"},
	{"video/x-vp9", 99, "VP9", "rtpvp9pay picture-id-mode=15-bit",
	 "rtpvp9depay request-keyframe=true", "vp9dec"},
	/* static payload type of RFC 3551 */
	{"image/jpeg", 26, "JPEG", "rtpjpegpay", "rtpjpegdepay", "jpegdec"},
	/* There is no RTP payload for files; GStreamer's own one tells caps once a second. */
	{"image/bmp", CODEC_BMP_PT, "X-GST", "rtpgstpay config-interval=1", "rtpgstdepay",
	 "avdec_bmp"},
};

const struct codec *codec_of_payload(guint pt)
{
	for (guint i = 0; i < G_N_ELEMENTS(codecs); i++)
		if (codecs[i].pt == pt)
			return &codecs[i];
	return NULL;
}

const struct codec *codec_of_factory(GstElementFactory *factory)
{
	for (const GList *l = gst_element_factory_get_static_pad_templates(factory); l;
	     l = l->next) {
		GstStaticPadTemplate *t = l->data;

		for (guint i = 0; t->direction == GST_PAD_SRC && i < G_N_ELEMENTS(codecs); i++)
			if (strstr(t->static_caps.string, codecs[i].caps))
				return &codecs[i];
	}
	return NULL;
}

gboolean codec_is_known(const struct codec *codec, GError **error)
{
	char *decoder = g_strndup(codec->decoder, strcspn(codec->decoder, " "));
	gboolean known = gst_registry_check_feature_version(gst_registry_get(), decoder, 1, 0, 0);

	if (!known)
		g_set_error(error, USAGE_ERROR, 0,
			    "%s cannot be decoded here, the GStreamer element %s is missing: "
			    "install gstreamer1.0-%s",
			    codec->name, decoder,
			    g_str_has_prefix(decoder, "avdec_") ? "libav" : "plugins-good");
	g_free(decoder);
	return known;
}

GstCaps *codec_caps(const struct codec *codec)
{
	return gst_caps_new_simple("application/x-rtp", "media", G_TYPE_STRING,
				   codec->pt == CODEC_BMP_PT ? "application" : "video",
				   "clock-rate", G_TYPE_INT, 90000, "encoding-name", G_TYPE_STRING,
				   codec->name, "payload", G_TYPE_INT, (gint)codec->pt,
				   /* What is lost is asked for anew: RFC 4585 section 6.3.1. */
				   "rtcp-fb-nack-pli", G_TYPE_BOOLEAN, TRUE, NULL);
}
