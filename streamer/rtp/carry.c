// SPDX-License-Identifier: GPL-2.0
/* Carriers of feedback within the stream; see carry.h. */
#include "streamer/rtp/carry.h"

#include <gst/rtp/gstrtpbuffer.h>
#include <string.h>

#include "streamer/options.h"

#define ELEMENT_ID 2 /* behind TWCC_ID; routers know it by its magic */
#define MORE_ID 3
#define KEY_BYTES 30

GstBuffer *carry_insert(GstBuffer *buf, const struct paqm_field *field,
			const struct paqm_more *more)
{
	GstRTPBuffer rtp = GST_RTP_BUFFER_INIT;
	guint8 data[PAQM_FIELD_LEN];

	buf = gst_buffer_make_writable(buf);
	if (!gst_rtp_buffer_map(buf, GST_MAP_READWRITE, &rtp))
		return buf;
	paqm_field_encode(data, field);
	gst_rtp_buffer_add_extension_onebyte_header(&rtp, ELEMENT_ID, data, sizeof(data));
	if (more) {
		paqm_more_encode(data, more);
		gst_rtp_buffer_add_extension_onebyte_header(&rtp, MORE_ID, data, sizeof(data));
	}
	gst_rtp_buffer_unmap(&rtp);
	return buf;
}

GstBuffer *carry_key(const char *path, GError **error)
{
	char *text = NULL;
	guint8 key[KEY_BYTES];
	gsize i, len;

	if (!read_small(path, &text, &len, error)) {
		g_prefix_error(error, "--srtp-key: ");
		return NULL;
	}
	g_strstrip(text);
	for (i = 0; i < KEY_BYTES; i++) {
		int high = g_ascii_xdigit_value(text[2 * i]);
		int low = high < 0 ? -1 : g_ascii_xdigit_value(text[2 * i + 1]);

		if (low < 0)
			break;
		key[i] = (guint8)(high << 4 | low);
	}
	if (i < KEY_BYTES || text[2 * KEY_BYTES]) {
		g_set_error(error, USAGE_ERROR, 0,
			    "%s does not hold an SRTP key: write 60 hexadecimal digits, 16 bytes "
			    "of key and 14 of salt",
			    path);
		g_free(text);
		return NULL;
	}
	memset(text, 0, strlen(text));
	g_free(text);
	return gst_buffer_new_memdup(key, sizeof(key));
}

gboolean carry_key_fits(const char *repeats, gboolean anyway, GError **error)
{
	if (!repeats || anyway)
		return TRUE;
	g_set_error(
		error, USAGE_ERROR, 0,
		"%s does not go with --srtp-key: a second run would encrypt other pictures with "
		"the same keystream, and anyone who hears both can read them; omit %s, or make a "
		"key for this run alone and give --reuse-keystream",
		repeats, repeats);
	return FALSE;
}

GstCaps *carry_key_caps(GstBuffer *key, guint roc)
{
	return gst_caps_new_simple("application/x-srtp", "srtp-key", GST_TYPE_BUFFER, key, "roc",
				   G_TYPE_UINT, roc, "srtp-cipher", G_TYPE_STRING, "aes-128-icm",
				   "srtp-auth", G_TYPE_STRING, "hmac-sha1-80", "srtcp-cipher",
				   G_TYPE_STRING, "aes-128-icm", "srtcp-auth", G_TYPE_STRING,
				   "hmac-sha1-80", NULL);
}

static GstCaps *on_request_key(GstElement *dec, guint ssrc, gpointer data)
{
	(void)dec;
	(void)ssrc;
	return carry_key_caps(data, 0);
}

static void drop_key(gpointer key, GClosure *closure)
{
	(void)closure;
	gst_buffer_unref(key);
}

void carry_use_key(GstElement *srtp, GstBuffer *key)
{
	if (g_object_class_find_property(G_OBJECT_GET_CLASS(srtp), "key"))
		g_object_set(srtp, "key", key, NULL);
	else
		g_signal_connect_data(srtp, "request-key", G_CALLBACK(on_request_key),
				      gst_buffer_ref(key), drop_key, 0);
}
