// SPDX-License-Identifier: GPL-2.0
/* Losses of a call's sound; see sound.h. */
#include "streamer/call/sound.h"

#define PIECE (20 * GST_MSECOND)
#define TOC_CELT 16 /* configurations from here on have no part that could be copied */
#define TOC_HYBRID 12

/* Pieces of 20 ms in a frame of this configuration, RFC 6716 table 2. */
static guint pieces(guint config)
{
	return config >= TOC_HYBRID || config % 4 < 2 ? 1 : config % 4;
}

gboolean sound_has_copy(const guint8 *packet, gsize len)
{
	guint config, flag;

	/* of several frames in a packet the lengths may come first: our encoder sends one */
	if (len < 2 || packet[0] & 3 || (config = packet[0] >> 3) >= TOC_CELT)
		return FALSE;
	/* flags of activity, then whether there is a copy; in stereo the same of the side follows
	 */
	flag = pieces(config) + 1;
	return (packet[1] & 0x100 >> flag) || (packet[0] & 4 && packet[1] & 0x100 >> 2 * flag);
}

/* Streaming thread: what the jitter buffer has given up. */
static GstPadProbeReturn on_gap(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	GstEvent *event = GST_PAD_PROBE_INFO_EVENT(info);
	GstClockTime duration = PIECE;
	struct sound_in *in = data;
	guint n;

	(void)pad;
	if (GST_EVENT_TYPE(event) != GST_EVENT_GAP)
		return GST_PAD_PROBE_OK;
	gst_event_parse_gap(event, NULL, &duration);
	n = GST_CLOCK_TIME_IS_VALID(duration) ? (guint)((duration + PIECE / 2) / PIECE) : 1;
	g_mutex_lock(&in->lock);
	in->missing += MAX(n, 1);
	in->stats.lost += MAX(n, 1);
	g_mutex_unlock(&in->lock);
	return GST_PAD_PROBE_OK;
}

static GstPadProbeReturn on_packet(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	struct sound_in *in = data;
	guint8 head[2];
	gsize len;

	(void)pad;
	len = gst_buffer_extract(GST_PAD_PROBE_INFO_BUFFER(info), 0, head, sizeof(head));
	g_mutex_lock(&in->lock);
	in->stats.repaired += in->missing && sound_has_copy(head, len);
	in->missing = 0;
	g_mutex_unlock(&in->lock);
	return GST_PAD_PROBE_OK;
}

void sound_watch(struct sound_in *in, GstElement *decoder)
{
	GstPad *pad = gst_element_get_static_pad(decoder, "sink");

	gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM, on_gap, in, NULL);
	gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_BUFFER, on_packet, in, NULL);
	gst_object_unref(pad);
}

void sound_stats(struct sound_in *in, struct sound_stats *stats)
{
	g_mutex_lock(&in->lock);
	*stats = in->stats;
	g_mutex_unlock(&in->lock);
}
