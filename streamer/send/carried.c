// SPDX-License-Identifier: GPL-2.0
/* Rates that travel with the stream: what goes out for routers to write into, what comes back. */
#include <gst/app/gstappsrc.h>
#include <gst/rtp/gstrtpbuffer.h>
#include <string.h>

#include "streamer/carry.h"
#include "streamer/send/send.h"

#define FIRST_ANSWER_S 1.0 /* so long the first picture waits for one */
/* Returns of what no router has touched, 100 ms apart: the first may have woken one. */
#define FIRST_UNTOLD 2

static double since_first(const struct sender *s)
{
	return (monotonic_ns() / 1e9 - s->begin) * 1000 - FIRST_PROBES_MS;
}

/* Main loop: what the receiver has returned. */
static gboolean on_returned(gpointer data)
{
	gpointer *both = data;
	struct sender *s = both[0];
	gsize len = 0;
	gconstpointer bytes = g_bytes_get_data(both[1], &len);
	guint64 rate = returned_take(&s->returned, bytes, len, (guint64)monotonic_ns());

	if (rate && s->rate) {
		send_advise(s);
		send_begin_pictures(since_first(s), TRUE, s);
		if (s->feedback_csv)
			fprintf(s->feedback_csv,
				"%" G_GINT64_FORMAT ",%04x,%s,1,%" G_GUINT64_FORMAT "\n",
				realtime_ns(), s->returned.newest.field.router,
				s->returned.newest.kind == PAQM_RETURN_PROBE ? "probe" : "in-band",
				s->advised);
	} else if (s->returned.untold >= FIRST_UNTOLD) {
		send_begin_pictures(since_first(s), FALSE, s);
	}
	g_bytes_unref(both[1]);
	g_free(both);
	return G_SOURCE_REMOVE;
}

/* Streaming thread: an RTCP APP packet. */
void send_on_app(GObject *session, guint subtype, guint ssrc, const char *name, GstBuffer *data,
		 gpointer user)
{
	gpointer *both;
	GstMapInfo map;

	(void)session;
	(void)ssrc;
	if (subtype != PAQM_APP_SUBTYPE || strncmp(name, "PAQM", 4) || !data ||
	    !gst_buffer_map(data, &map, GST_MAP_READ))
		return;
	both = g_new(gpointer, 2);
	both[0] = user;
	both[1] = g_bytes_new(map.data, map.size);
	gst_buffer_unmap(data, &map);
	g_idle_add(on_returned, both);
}

void send_probe(struct sender *s)
{
	guint8 p[PAQM_PROBE_LEN];

	p[0] = PAQM_PROBE_FIRST;
	paqm_field_encode(p + 1, &s->field);
	paqm_put32(p + 1 + PAQM_FIELD_LEN, ++s->probe_seq);
	/* one that is lost is no harm: the next one says more */
	g_socket_send_to(s->rtp, G_SOCKET_ADDRESS(s->dest), (const char *)p, sizeof(p), NULL, NULL);
}

gboolean send_on_first_probes(gpointer data)
{
	struct sender *s = data;

	if (monotonic_ns() / 1e9 - s->begin > FIRST_ANSWER_S)
		send_begin_pictures(since_first(s), FALSE, s);
	if (g_atomic_int_get(&s->waiting))
		send_probe(s);
	return G_SOURCE_CONTINUE;
}

/* The first packet of each picture carries a field. */
static GstBuffer *carry_in(struct sender *s, GstBuffer *buf)
{
	GstRTPBuffer rtp = GST_RTP_BUFFER_INIT;
	guint32 ts;

	if (!gst_rtp_buffer_map(buf, GST_MAP_READ, &rtp))
		return buf;
	ts = gst_rtp_buffer_get_timestamp(&rtp);
	gst_rtp_buffer_unmap(&rtp);
	if (s->field_any && ts == s->field_ts)
		return buf;
	s->field_any = TRUE;
	s->field_ts = ts;
	return carry_insert(buf, &s->field);
}

static gboolean carry_in_list(GstBuffer **buf, guint i, gpointer data)
{
	(void)i;
	*buf = carry_in(data, *buf);
	return TRUE;
}

/* Streaming thread: what leaves the payloader. */
GstPadProbeReturn send_on_payload(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	struct sender *s = data;

	(void)pad;
	if (info->type & GST_PAD_PROBE_TYPE_BUFFER_LIST) {
		GstBufferList *list =
			gst_buffer_list_make_writable(GST_PAD_PROBE_INFO_BUFFER_LIST(info));

		gst_buffer_list_foreach(list, carry_in_list, s);
		info->data = list;
	} else {
		info->data = carry_in(s, GST_PAD_PROBE_INFO_BUFFER(info));
	}
	return GST_PAD_PROBE_OK;
}
